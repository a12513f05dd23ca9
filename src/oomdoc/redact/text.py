"""Text in, the same lines out with everything replaced that tells of people, places and access; numbers and times stay.

Three things tell what is to go: the field a value stands in (JSON, Python, YAML, `key=value`, labels of metrics, flags,
columns of tables), its shape (`shapes`), and, on the second reading, that it was seen in such a field elsewhere. A line stays a
line, so that `path:line` means the same place. What cannot be judged before its end (a list over many lines) is held back
until it is there, up to `HELD_CAP` characters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from oomdoc.ingest.record import TAG, peel
from oomdoc.redact import blocks, shapes
from oomdoc.redact.names import Pseudonyms, is_stand_in
from oomdoc.redact.shapes import Shape
from oomdoc.redact.words import GENERIC, HOME_OF_NOBODY, NOBODY, PUBLIC, ROLES, fold, kind_of

HELD_CAP = 12 << 20  # characters of one value that does not end: then it goes as far as it is
_RAW_LINES = 400  # of a prompt that was printed as it is, after the line in which it began
_DEPTH = 4  # JSON in strings of JSON
_NEAR = 160  # characters between the name and the value of `{"key": ..., "value": ...}`

_FIELD = re.compile(
    r"(?<![\w.@/])(?<![\w.]-)(?P<key>[A-Za-z_@][\w.@/-]{0,79}+)(?P<close>\\{0,7}[\"']?\]?)[ \t]{0,12}(?P<sep>=>|:=|[:=])(?!=)(?P<gap>[ \t]{0,8})"
)
_FLAG = re.compile(
    r"(?<![\w-])--?(?P<key>[A-Za-z][\w.-]{1,79}+)(?P<gap>[ \t\0]{1,8}|\r?\n[ \t]{1,40}(?:- )?|\\?[\"'],?\s{0,40}-?[ \t]{0,8})(?=[^\s\0-])"
)
_SHARE = re.compile(r"\\{2,4}(?=\w)")
_COOKIE = re.compile(r"[^\n\r\"'\\]+")
_WHO = re.compile(
    r"([\"'](?:id|name|login|username|user_name|slug|title|display_?name|sub)[\"']\s{0,8}:\s{0,8}[\"'])([^\"'\\\n]{1,200})([\"'])",
    re.I,
)
_OBJECT_CAP = 8000
_OPEN = re.compile(r"(\\{0,7})(\"\"\"|[\"'])")
_WHOLE = {'"': re.compile(r'"(?:[^"\\]|\\.)*+"', re.S), "'": re.compile(r"'(?:[^'\\]|\\.)*+'", re.S)}
_NAME = re.compile(r"[^\s,;&\"'\\()\[\]{}<>|\0]+")
_SECRET_VALUE = re.compile(r"(?:(?:Bearer|Basic|Token|Digest)[ \t]+)?([^\s,;&\"'\\)\]}<>|\0]+)", re.I)
_TO_END = re.compile(
    r"(?:(?!, ?(?:params|sampling_params|SamplingParams|prompt_token_ids|prompt_embeds_shape|lora_request|output_token_ids|"
    r"finish_reason|streaming|arrival_time|request_id|priority)\b|\\?\"\s*[,}]|[ ,;|&]{1,3}\w{2,40}[=]|\t)[^\n\0])*+"
)
_BLOCK = re.compile(r"(?:[&!]\S{1,80}[ \t]{1,8}){0,2}[|>][+-]?\d?[+-]?[ \t]{0,8}\r?\n")
_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'", re.S)
_JSON_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*+"')
_NUMBER = re.compile(r"[-+]?\d[\d.,:_eE+-]*\s?(?:[KMGT]i?B|ms|s|%)?|0x[0-9a-fA-F]+|NaN|nan|inf")
_NO_PROMPT = re.compile(
    r"|none|true|false|null|n/a|-|\d[\d.,]* ?(?:tokens?|tok(?:/s)?|ms|s|%|req(?:uest)?s?|chars?|bytes)\b.*", re.I
)
_INTEGER = re.compile(r"\d+")
_HIDDEN = re.compile(
    r"\*+(?:HIDDEN|TOKEN_[\w*]*|REDACTED)?\**|<[\w -]*>|\$\{?\w+\}?.*|\{\{.*|\[?REDACTED\]?|x{4,}|os\.environ.*", re.I
)
_RECORD = re.compile(
    r"\s{0,8}(?:DEBUG|INFO|WARNING|ERROR|CRITICAL|Traceback \(|File \"|\d{4}-\d\d-\d\d[T ]\d|[A-Z][a-z]{2} +\d+ \d\d:\d\d|<\d{1,3}>|"
    r"\[ *\d+\.\d|\[rank\d|\{\"|torch\.|[\w.]{1,60}Error: )"
)
_HEADER = re.compile(
    r"^(?:#+ ?|\| ?)?\"?[A-Za-z_][\w .\[\]%/()-]{0,60}\"?(?:[,;\t|][ \t]?\"?[A-Za-z_][\w .\[\]%/()-]{0,60}\"?){1,80}[ \t]*\|?[ \t]*\r?$",
    re.M,
)
_LISTING = re.compile(
    r"^(?:NAMESPACE|NAME|USER|UID|NODE|LAST SEEN)(?: {1,80}[A-Z][A-Z()%,/-]*(?:\([a-z]{1,10}\))?(?: [A-Z()-]+)?)+[ \t]*\r?$|"
    r"^USER +PID .*$|^ *(?:PID|JOBID) +[A-Z].*$",
    re.M,
)
_HEADS = {
    "USER": "user",
    "UID": "user",
    "NODE": "host",
    "NAMESPACE": "tenant",
    "ACCOUNT": "tenant",
    "NODELIST(REASON)": "host",
    "NODELIST": "host",
}
_ANSI = re.compile(r"(?:\x1b|\\{1,3}u001[bB]|\\{1,3}x1[bB]|#033|\^\[)\[[0-9;:]*[A-Za-z]")
_ENCODED = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_-]{256,}+={0,2}")
"""Pictures, sounds and files in base64 (RFC 4648) that no field or scheme announces: no line that is read has such a word."""
_BEGINS = re.compile(
    r"\b(?:prompt|output|text|inputs?)(?:: |=)\\?(?P<quote>[\"'])|(?P<key>-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY)"
)
_SAFE_SMALL = 3
_LONG_NUMBER = 24  # digits: what is longer is no amount
_VALUE = re.compile(r"[\"'](?:value|default)[\"']\s{0,8}:\s{0,8}[\"']([^\"'\\\n]{1,4000})[\"']")
_RANDOM = re.compile(r"\\{0,7}[\"']?[A-Za-z0-9+/_=-]{20,}")  # what a field that ends with "key" holds, if it is one

Act = Callable[[str, str], str]


def prompt_stand_in(text: str) -> str:
    """What stands for a prompt: its length stays. Empty text, numbers and stand-ins stay as they are."""
    if not text.strip() or is_stand_in(text.strip()) or _NUMBER.fullmatch(text):
        return text
    lines = text.count("\n")
    return f"redacted-prompt-{len(text)}-chars" + "\n" * lines


class Tally:
    """How many values of each kind were replaced."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def add(self, kind: str) -> None:
        """One more."""
        self.counts[kind] = self.counts.get(kind, 0) + 1


class Redactor:
    """Replaces in text, with one set of pseudonyms; `learning` reads once before, so that names are known wherever they stand.

    `common` are words that logs are made of: a user called `page` is replaced in `/home/page`, not in `page fault`.
    """

    def __init__(
        self, pseudonyms: Pseudonyms, common: frozenset[str] = frozenset(), tally: Tally | None = None
    ) -> None:
        self.pseudonyms = pseudonyms
        self.tally = tally or Tally()
        self._common = common
        self._known: tuple[re.Pattern[str], dict[str, str]] | None = None
        self._open = ""  # what the last line left open: the quote of a prompt, or `-----` of a private key

    # ---- what stands alone

    def learned(self) -> None:
        """From here on the names that are known by now are replaced wherever they stand."""
        stand_ins: dict[str, str] = {}
        own = self.pseudonyms.names["word"]
        for name, made in self.pseudonyms.learned().items():
            if name not in own and not self._stands_alone(name):
                continue
            for form in {
                name,
                name.lower(),
                name.capitalize(),
                *({name.upper()} if name.isalpha() and len(name) > 4 else ()),
            }:
                stand_ins.setdefault(form, made)
        self._known = None
        if stand_ins:
            # longest first, so that a name within another does not break it; grouped by first character for speed
            ordered = sorted(stand_ins, key=lambda name: (-len(name), name))
            by_first: dict[str, list[str]] = {}
            for name in ordered:
                by_first.setdefault(name[0], []).append(re.escape(name[1:]))
            parts = "|".join(f"{re.escape(first)}(?:{'|'.join(rest)})" for first, rest in sorted(by_first.items()))
            self._known = re.compile(rf"(?<![A-Za-z0-9])(?:{parts})(?![A-Za-z0-9])"), stand_ins

    def _stands_alone(self, name: str) -> bool:
        low = name.lower()
        return (
            len(name) >= _SAFE_SMALL
            and low not in self._common
            and low not in NOBODY
            and not GENERIC.fullmatch(low)
            and not _NUMBER.fullmatch(name)
            and any(character.isalpha() for character in name)
        )

    # ---- one value

    def name(self, kind: str, value: str) -> str:
        """The stand-in of a name that a field or a place tells; nobody's names, numbers and stand-ins stay."""
        bare = value.strip().strip("\"'")
        if (
            not bare
            or bare.lower() in NOBODY
            or _NUMBER.fullmatch(bare)
            or is_stand_in(bare)
            or _HIDDEN.fullmatch(bare)
        ):
            return value
        if kind == "user" and bare.lower() in HOME_OF_NOBODY:
            return value
        if shapes.EMAIL.regex.fullmatch(bare):
            kind = "email"
        elif shapes.IPV4.regex.match(bare) or bare.count(":") > 1:
            return self._shapes_in(value)
        elif kind == "host":
            head, colon, port = bare.partition(":")
            if _public(head) or head.lower() in NOBODY:
                return value
            if colon and port.isdigit():
                return value.replace(bare, self.name("host", head) + colon + port)
            if "," in bare:
                return value
        if kind not in ("user", "host", "tenant", "email"):
            return value
        self.tally.add(kind)
        return value.replace(bare, self.pseudonyms.of(kind, bare))

    def _secret(self, value: str) -> str:
        if (
            len(value) < 4
            or value.lower() in NOBODY
            or (len(value) < _LONG_NUMBER and _NUMBER.fullmatch(value))
            or is_stand_in(value)
            or _HIDDEN.fullmatch(value)
        ):
            return value
        if value.startswith(("<", "[", "{", "/", "./", "~/")) or value in ("Bearer", "Basic", "bearer", "basic"):
            return value
        self.tally.add("secret")
        return self.pseudonyms.of("secret", value)

    def _prompt(self, text: str) -> str:
        made = prompt_stand_in(text)
        if made != text:
            self.tally.add("prompt")
        return made

    # ---- a text

    def text(self, text: str, final: bool = True, depth: int = 0) -> tuple[str, str]:
        """The text with everything replaced, and what is held back until more is there (with `final` nothing)."""
        held = ""
        if "\x1b[" in text or "1b[" in text or "1B[" in text or "#033[" in text or "^[[" in text:
            text = _ANSI.sub("", text)  # colour within a value hides it from every expression; ingestors drop it too
        if depth == 0 and (self._open or _BEGINS.search(text)):
            text = self._over_lines(text)
        if "-----BEGIN" in text:
            text = shapes.PRIVATE_KEY.sub(self._key_block, text)
        if "data:" in text:
            text = shapes.DATA_URI.sub(lambda match: self._marked(match[0]), text)
        text = _ENCODED.sub(self._encoded, text)
        if "Secret" in text and "kind" in text:
            text = self._secret_data(text)
        if depth < _DEPTH and "\\" in text and '"' in text:
            text = self._strings(text, depth)
        text, held = self._fields(text, final)
        text = self._flags(text)
        text = self._pairs(text)
        text = self._tables(text)
        text = self._shapes_in(text)
        if self._known is not None:
            expression, stand_ins = self._known
            text = expression.sub(lambda match: self._alone(stand_ins[match[0]]), text)
        return text, held

    def whole(self, text: str) -> str:
        """A text that is all there: a path, a sentence of a report."""
        return self.text(text)[0]

    def path(self, path: str) -> str:
        """A member's path; its parts stay parts."""
        return "/".join(self.whole(part) for part in self._shapes_in(f"/{path}")[1:].split("/"))

    def _alone(self, made: str) -> str:
        self.tally.add(made.rsplit("-", 1)[0])
        return made

    def _key_block(self, match: re.Match[str]) -> str:
        self.tally.add("secret")
        return self.pseudonyms.of("secret", match[0]) + "\n" * match[0].count("\n")

    def _encoded(self, match: re.Match[str]) -> str:
        word = match[0]
        if not (re.search("[A-Z]", word) and re.search("[a-z]", word) and re.search("[0-9]", word)):
            return word
        return self._marked(word)

    def _secret_data(self, text: str) -> str:
        """Values of a Kubernetes Secret, whatever their names."""
        out: list[str] = []
        at = 0
        for begin, end in blocks.secret_data(text):
            value = text[begin:end]
            if begin >= at and value.strip() and not is_stand_in(value):
                self.tally.add("secret")
                out += [text[at:begin], self.pseudonyms.of("secret", value)]
                at = end
        return "".join([*out, text[at:]])

    def _marked(self, text: str) -> str:
        self.tally.add("prompt")
        return f"redacted-prompt-{len(text)}-chars"

    # ---- what goes over several lines, each in the envelope of its collector: prompts as they are, private keys

    def _over_lines(self, text: str) -> str:
        lines = text.split("\n")
        for place, line in enumerate(lines):
            if self._open:
                lines[place] = self._continued(line)
                if self._open or lines[place] != line:
                    continue
                line = lines[place]
            begins = _BEGINS.search(line)
            if begins is None:
                continue
            inner = _inner(line)
            for begins in _BEGINS.finditer(inner):
                if begins["key"]:
                    self._open = "" if "-----END" in inner[begins.end() :] else "-----"
                else:
                    closed = _WHOLE[begins["quote"]].match(inner, begins.start("quote"))
                    self._open = "" if closed else begins["quote"]
            if self._open == "-----":
                lines[place] = self._instead(line, inner, self.pseudonyms.of("secret", inner))
                self.tally.add("secret")
        return "\n".join(lines)

    def _continued(self, line: str) -> str:
        """A line after one that left something open; closes it where that ends, or where a record begins."""
        if not line:
            return line
        inner = _inner(line)
        if self._open == "-----":
            if "-----END" in inner or _RECORD.match(inner):
                self._open = ""
            return line if _RECORD.match(inner) else self._instead(line, inner, "" if inner.strip() else inner)
        if _RECORD.match(inner):
            self._open = ""
            return line
        end = re.search(re.escape(self._open) + r"(?=, ?[a-zA-Z_]+[:=]|[)\]}]*$)", inner)
        if end:
            self._open = ""
        cut = end.start() if end else len(inner)
        return self._instead(line, inner, self._prompt(inner[:cut]) + inner[cut:])

    @staticmethod
    def _instead(line: str, inner: str, made: str) -> str:
        """A line with another text in its envelope."""
        if inner == made or not inner.strip():
            return line
        bare = line.rstrip("\r\n")
        if bare.endswith(inner):
            return bare[: len(bare) - len(inner)] + made + line[len(bare) :]

        def string(match: re.Match[str]) -> str:
            try:
                value = json.loads(match[0])
            except ValueError:
                return match[0]
            at = value.find(inner)
            return (
                match[0]
                if at < 0
                else json.dumps(value[:at] + made + value[at + len(inner) :], ensure_ascii=match[0].isascii())
            )

        replaced = _JSON_STRING.sub(string, line)
        return made if replaced == line else replaced

    # ---- strings in JSON that hold text of their own: a collector's `log`, a request in a message

    def _strings(self, text: str, depth: int) -> str:
        def inner(match: re.Match[str]) -> str:
            token = match[0]
            if "\\" not in token or len(token) < 8:
                return token
            try:
                value = json.loads(token)
            except ValueError:
                return token
            made = self.text(value, depth=depth + 1)[0]
            return token if made == value else json.dumps(made, ensure_ascii=token.isascii())

        lines = text.split("\n")
        for place, line in enumerate(lines):
            if "\\" in line and ('{"' in line or '":' in line or '" :' in line or line.lstrip().startswith('"')):
                lines[place] = _JSON_STRING.sub(inner, line)
        return "\n".join(lines)

    # ---- values by the field they stand in

    def _fields(self, text: str, final: bool) -> tuple[str, str]:
        out: list[str] = []
        at = 0
        pending, pending_at = "", -_NEAR
        for match in _FIELD.finditer(text):
            if match.start() < at:
                continue
            key = match["key"]
            low = key.lower()
            if low in ("key", "name", "stringvalue", "value", "string_value"):
                if low in ("key", "name"):
                    value = _plain(text, match.end())
                    if value:
                        pending, pending_at = value, match.end()
                    continue
                kind = kind_of(pending) if match.start() - pending_at < _NEAR and pending else None
                if kind == "weak":
                    kind = "prompt"
                if text.startswith("{", match.end()) and kind in ("user", "tenant", "host"):
                    continue  # `"value": {"stringValue": ...}`: the field inside holds it
            else:
                kind = kind_of(key)
                if kind is None and low.endswith(("key", "pass", "pwd", "hmac")) and _RANDOM.match(text, match.end()):
                    kind = "secret"
            if kind is None:
                continue
            end, made = self._value(text, match.end(), kind, match)
            if end < 0:  # not all there
                if not final and len(text) - match.start() < HELD_CAP:
                    out.append(text[at : match.start()])
                    return "".join(out), text[match.start() :]
                end, made = len(text), self._cut(text[match.end() :], kind)
            if end > match.end():
                out += [text[at : match.end()], made]
                at = end
        out.append(text[at:])
        return "".join(out), ""

    def _cut(self, rest: str, kind: str) -> str:
        """A value that never ends: all of it goes, its lines stay."""
        if kind in ("prompt", "weak", "ids"):
            return self._prompt(rest)
        self.tally.add(kind)
        return self.pseudonyms.of("secret", rest) + "\n" * rest.count("\n")

    def _value(self, text: str, at: int, kind: str, field: re.Match[str]) -> tuple[int, str]:
        """Where the value at a place ends, and what stands for it; -1 where its end is not there yet."""
        content = kind in ("prompt", "weak", "ids")
        key = fold(field["key"])
        first = text[at : at + 1]
        if first == "\n" and content and field["close"]:  # pretty printed JSON goes on in the next line
            gap = re.compile(r"\s{0,200}").match(text, at)
            after = gap.end() if gap else at
            if text[after : after + 1] in ("[", "{", '"'):
                end, made = self._value(text, after, kind, field)
                return (end, made) if end < 0 else (end, text[at:after] + made)
            return at, ""
        if first in ("\n", "\r") and first:
            return self._yaml_items(text, at, kind, field)
        opened = _OPEN.match(text, at)
        if opened:
            end, inner, line_cut = _quoted(text, at, opened)
            if end < 0:
                if not line_cut:
                    return -1, ""
                return self._raw(text, opened.end(), opened[2], kind, text[at : opened.end()])
            mark = text[at : opened.end()]
            close = text[end - len(mark) : end]
            return end, mark + self._inside(inner, kind) + close
        if first in "[{(" and first:
            if first == "{" and not content:
                return self._object(text, at, kind)
            if kind == "weak" and first == "{":
                return at, ""
            end = blocks.closing(text, at)
            if end < 0:
                line_end = text.find("\n", at)
                # a list that a line cuts off is not continued in plain text
                if first == "(" or (line_end >= 0 and not field["close"]):
                    end = line_end if line_end >= 0 else len(text)
                else:
                    return -1, ""
            return end, self._container(text[at:end], kind)
        if content:
            if kind != "prompt":
                return at, ""
            if (block := _BLOCK.match(text, at)) and field["sep"] == ":":
                return self._yaml_block(text, at, block.end(), field)
            found = _TO_END.match(text, at)
            end = found.end() if found else at
            if field["sep"] == ":" and text[end : end + 1] not in ("\n", "", ",", '"', "\\", "\0", "\t"):
                stop = re.compile(r"(?:(?!, ?\w+=)[^\n\"\0])*").match(text, end)  # prose: an `a=b` in it is its own
                end = stop.end() if stop else end
            value = text[at:end]
            if _NO_PROMPT.fullmatch(value.strip()):
                return at, ""
            made = self._prompt(value.rstrip()) + value[len(value.rstrip()) :]
            if field["sep"] == ":" and field["gap"] and text[end : end + 1] == "\n":
                end, more = self._yaml_plain(text, end, field)
                made += more
            return end, made
        if kind == "secret":
            if (block := _BLOCK.match(text, at)) and field["sep"] == ":":
                return self._yaml_block(text, at, block.end(), field, kind)
            if key in ("cookie", "setcookie"):  # several, with blanks between
                found = _COOKIE.match(text, at)
                return (found.end(), self._secret(found[0])) if found and found[0].strip() else (at, "")
            found = _SECRET_VALUE.match(text, at)
            if not found:
                return at, ""
            return found.end(), text[at : found.start(1)] + self._secret(found[1])
        share = _SHARE.match(text, at) if kind == "host" else None
        found = _NAME.match(text, share.end() if share else at)
        if not found:
            return at, ""
        value = found[0].rstrip(".:")
        if kind == "user" and field["sep"] == ":" and not field["gap"]:
            return at, ""  # `user:pass@`, `INFO:user:...`
        return found.start() + len(value), text[at : found.start()] + self.name(kind, value)

    def _inside(self, inner: str, kind: str) -> str:
        if kind in ("prompt", "weak"):
            return self._prompt(inner)
        if kind == "ids":
            return _INTEGER.sub("0", inner)
        if kind == "secret":
            scheme = re.match(r"(?:Bearer|Basic|Token|Digest)\s+", inner, re.I)
            cut = scheme.end() if scheme else 0
            return inner[:cut] + self._secret(inner[cut:])
        if kind == "host" and "," in inner:
            return ",".join(self.name(kind, part) for part in inner.split(","))
        return self.name(kind, inner) if len(inner) < 256 else inner

    def _container(self, text: str, kind: str) -> str:
        """A list or object: every string in it, but the names of fields and what says only who spoke."""
        if kind in ("prompt", "ids", "weak") and re.fullmatch(r"[\[(]\s*(?:\d+\s*,?\s*)*[\])]?", text):
            return _INTEGER.sub("0", text)
        out: list[str] = []
        at = 0
        field = ""
        for match in _STRING.finditer(text):
            after = text[match.end() : match.end() + 4].lstrip()
            inner = match[0][1:-1]
            if after.startswith(":"):
                field = inner
                continue
            before = text[at : match.start()]
            if field and not before.rstrip().endswith(":") and "{" in before:
                field = ""
            if fold(field) in ROLES and before.rstrip().endswith(":"):
                continue
            out += [before, match[0][0], self._inside(inner, kind), match[0][-1]]
            at = match.end()
        out.append(text[at:])
        return "".join(out)

    def _object(self, text: str, at: int, kind: str) -> tuple[int, str]:
        """A user, tenant or host told as an object: `{"id": ..., "name": ...}`."""
        end = blocks.closing(text, at) if kind in ("user", "tenant", "host", "secret") else -1
        if end < 0 or end - at > _OBJECT_CAP:
            return at, ""
        if kind == "secret":
            return end, _VALUE.sub(lambda match: match[0].replace(match[1], self._secret(match[1])), text[at:end])
        made = _WHO.sub(lambda match: match[1] + self.name(kind, match[2]) + match[3], text[at:end])
        return end, self._fields(made, final=True)[0]

    def _raw(self, text: str, at: int, quote: str, kind: str, mark: str) -> tuple[int, str]:
        """A quote that its line does not close: the line was cut, or a prompt was printed with its line breaks."""
        stop = text.find("\n", at)
        end = stop if stop >= 0 else len(text)
        if kind in ("prompt", "weak") and stop >= 0:
            for _ in range(_RAW_LINES):
                line_end = text.find("\n", stop + 1)
                line = text[stop + 1 : line_end if line_end >= 0 else len(text)]
                if line_end < 0 or _RECORD.match(line):
                    break
                stop = end = line_end
                closed = line.find(quote)
                if closed >= 0 and (line[closed + 1 : closed + 2] in ("", ",", " ", "}", "]")):
                    start = line_end - len(line) + closed
                    value = text[at:start]
                    return start, mark + self._prompt(value)
        value = text[at:end]
        made = (
            self._inside(value, kind)
            if kind in ("prompt", "weak", "ids")
            else self._inside(value.split()[0] if value.split() else "", kind)
        )
        return end, mark + made

    def _yaml_items(self, text: str, at: int, kind: str, field: re.Match[str]) -> tuple[int, str]:
        """A list of plain values in the lines below their field."""
        indent = blocks.column(text, field.start())
        if indent is None or field["sep"] != ":" or kind == "weak":
            return at, ""
        end, places = blocks.items(text, at, indent)
        return end, self._at_places(text, at, end, places, kind)

    def _yaml_plain(self, text: str, at: int, field: re.Match[str]) -> tuple[int, str]:
        """The further lines of a prompt that is neither quoted nor marked as a block."""
        indent = blocks.column(text, field.start())
        if indent is None:
            return at, ""
        places = blocks.plain_lines(text, at, indent)
        if not places or any(_RECORD.match(text[begin:end]) for begin, end in places):
            return at, ""
        return places[-1][1], self._at_places(text, at, places[-1][1], places, "prompt")

    def _at_places(self, text: str, at: int, end: int, places: Iterable[tuple[int, int]], kind: str) -> str:
        out: list[str] = []
        for begin, stop in places:
            value = text[begin:stop]
            mark = value[0] if len(value) > 1 and value[0] in "\"'" and value[-1] == value[0] else ""
            inner = value[1:-1] if mark else value
            out += [text[at:begin], mark, self._inside(inner, kind), mark]
            at = stop
        return "".join([*out, text[at:end]])

    def _yaml_block(
        self, text: str, at: int, begin: int, field: re.Match[str], kind: str = "prompt"
    ) -> tuple[int, str]:
        line_start = text.rfind("\n", 0, field.start()) + 1
        indent = len(re.match(r"[ \t-]*", text[line_start : field.start()])[0])  # type: ignore[index]
        end = begin
        while end < len(text):
            stop = text.find("\n", end)
            stop = len(text) if stop < 0 else stop + 1
            line = text[end:stop]
            if line.strip() and len(line) - len(line.lstrip(" ")) <= indent:
                break
            end = stop
        body = text[begin:end]
        first = " " * (indent + 2)
        if not body.strip():
            return end, text[at:begin] + body
        if kind == "secret":
            return end, text[at:begin] + first + self._secret(body.strip()) + "\n" * body.count("\n")
        return end, text[at:begin] + first + self._prompt(body).lstrip()

    def _flags(self, text: str) -> str:
        if "-" not in text:
            return text

        if not any(_kind_of_flag(match["key"]) for match in _FLAG.finditer(text)):
            return text
        out: list[str] = []
        at = 0
        for match in _FLAG.finditer(text):
            kind = _kind_of_flag(match["key"])
            if match.start() < at or kind is None:
                continue
            start = match.end()
            opened = _OPEN.match(text, start)
            start = opened.end() if opened else start
            found = _NAME.match(text, start)
            if found:
                made = self._secret(found[0]) if kind == "secret" else self.name(kind, found[0])
                out += [text[at:start], made]
                at = found.end()
        out.append(text[at:])
        return "".join(out)

    def _pairs(self, text: str) -> str:
        """Fields in notations without `:` and `=`: pairs, elements of XML, a value that stands before its name."""

        def replaced(match: re.Match[str]) -> str:
            kind = kind_of(match["key"])
            if kind not in ("secret", "user", "host", "tenant", "prompt"):
                return match[0]
            begin, end = match.start("value") - match.start(), match.end("value") - match.start()
            return match[0][:begin] + self._inside(match["value"], kind) + match[0][end:]

        if "', " in text or '", ' in text or "','" in text or '","' in text:
            text = shapes.PAIR.sub(replaced, text)
        if "</" in text:
            text = shapes.ELEMENT.sub(replaced, text)
        if "value" in text and "name" in text:
            text = shapes.VALUE_FIRST.sub(replaced, text)
        return text

    # ---- columns

    def _tables(self, text: str) -> str:
        """Columns whose head names a field: CSV of any delimiter, listings of kubectl and ps."""
        if _HEADER.search(text):
            text = self._csv(text)
        return self._listings(text) if _LISTING.search(text) else text

    def _csv(self, text: str) -> str:
        out: list[str] = []
        lines = text.split("\n")
        place = 0
        while place < len(lines):
            line = lines[place]
            out.append(line)
            place += 1
            head = _columns(line)
            if head is None:
                continue
            delimiter, kinds, width = head
            while place < len(lines):
                taken = 1
                row = lines[place]
                while row.count('"') % 2 and taken < _RAW_LINES and place + taken < len(lines):
                    row += "\n" + lines[place + taken]
                    taken += 1
                cells = _cells(row, delimiter)
                if len(cells) != width:
                    break
                for column, kind in kinds:
                    cells[column] = self._cell(cells[column], kind)
                out += delimiter.join(cells).split("\n")
                place += taken
        return "\n".join(out)

    def _cell(self, cell: str, kind: str) -> str:
        bare = cell.strip()
        quoted = len(bare) > 1 and bare[0] == bare[-1] == '"'
        inner = bare[1:-1] if quoted else bare
        return (
            cell.replace(bare, f'"{self._inside(inner, kind)}"' if quoted else self._inside(inner, kind))
            if inner
            else cell
        )

    def _listings(self, text: str) -> str:
        lines = text.split("\n")
        columns: list[tuple[int, str]] = []
        spaced, width = "", 0
        for place, line in enumerate(lines):
            if _LISTING.fullmatch(line):
                spaced = r" +" if line.lstrip().startswith(("USER", "UID", "PID", "JOBID")) else r" {2,}"
                heads = re.split(spaced, line.strip())
                width = len(heads)
                columns = [
                    (at, kind)
                    for at, head in enumerate(heads)
                    if (kind := _HEADS.get(head))
                    or (kind := "host" if head == "NAME" and {"ROLES", "CPU%"} & set(heads) else None)
                ]
            elif columns:
                cells = list(re.finditer(r"\S+(?: \S+)*" if spaced == r" {2,}" else r"\S+", line))
                processes = spaced == r" +"
                if len(cells) < min(width, 2) or (
                    processes and not (cells[1][0].isdigit() or cells[0][0][:1].isdigit())
                ):
                    columns = []
                    continue
                for at, kind in reversed(columns):
                    if at < len(cells) and (len(cells) == width or at < 4 or not processes):
                        cell = cells[at]
                        line = line[: cell.start()] + self.name(kind, cell[0]) + line[cell.end() :]
                lines[place] = line
        return "\n".join(lines)

    # ---- values by their shape

    def _shapes_in(self, text: str) -> str:
        low = text.lower()
        for shape in shapes.SAID:
            if _has(shape, text, low):
                text = self._sub(shape, text, lambda kind, value: self._prompt(value))
        for shape in shapes.SECRETS:
            if _has(shape, text, low):
                text = self._sub(shape, text, lambda kind, value: self._shaped_secret(value))
        if "@" in low or "%40" in low:
            text = self._sub(shapes.EMAIL, text, self._mail)
        for shape in (*shapes.HOMES, *shapes.LINE_HEADS, shapes.EC2):
            if _has(shape, text, low):
                text = self._sub(shape, text, self.name)
        if "." in low:
            text = shapes.IPV4.regex.sub(self._address, text)
            if _has(shapes.FQDN, text, low):
                text = self._sub(shapes.FQDN, text, self._domain)
        if ":" in low:
            text = shapes.IPV6.regex.sub(self._address, text)
            text = self._sub(shapes.MAC, text, self._hardware)
        if "-" in low:
            text = self._sub(shapes.MAC_DASHED, text, self._hardware)
        if "://" in low:
            text = self._sub(shapes.URL_HOST, text, self._domain)
        return text

    def _sub(self, shape: Shape, text: str, act: Act) -> str:
        def replaced(match: re.Match[str]) -> str:
            value = match[shape.group]
            if value is None:
                return match[0]
            begin, end = match.start(shape.group) - match.start(), match.end(shape.group) - match.start()
            made = act(shape.kind, value)
            return match[0][:begin] + made + "\n" * (value.count("\n") - made.count("\n")) + match[0][end:]

        return shape.regex.sub(replaced, text)

    def _shaped_secret(self, value: str) -> str:
        if is_stand_in(value) or value.lower().startswith(("redacted-", "secret-")) or value.endswith("_token"):
            return value
        self.tally.add("secret")
        return self.pseudonyms.of("secret", value)

    def _mail(self, kind: str, value: str) -> str:
        local, _, domain = value.rpartition("@")
        if local.lower() == "git":
            return value
        if is_stand_in(local):  # the credentials of an address
            return f"{local}@{self._domain('host', domain)}"
        return self._made(kind, value)

    def _hardware(self, kind: str, value: str) -> str:
        plain = value.lower().replace("-", ":")
        if plain.startswith(("02:00:00:", "ff:ff:ff:", "00:00:00:")) or (
            "-" in value and not re.search("[a-f]", plain)
        ):
            return value  # a stand-in, nobody's, or a date and a time
        return self._made(kind, plain)

    def _made(self, kind: str, value: str) -> str:
        self.tally.add(kind)
        return self.pseudonyms.of(kind, value)

    def _domain(self, kind: str, value: str) -> str:
        bare = value.rstrip(".")
        low = bare.lower()
        if (
            _public(low)
            or low in NOBODY
            or is_stand_in(low)
            or GENERIC.fullmatch(low)
            or low.rpartition(".")[2].isdigit()
        ):
            return value
        return self._made("host", bare) + value[len(bare) :]

    def _address(self, match: re.Match[str]) -> str:
        value = match[0]
        before = match.string[max(0, match.start() - 16) : match.start()]
        if shapes.VERSION_BEFORE.search(before):
            return value
        made = _address_of(value)
        if made is None:
            return value
        self.tally.add("ip")
        return self.pseudonyms.of("ip", made)


@lru_cache(maxsize=4096)
def _address_of(value: str) -> str | None:
    """The address in its usual form, if it is one that tells of somebody."""
    import ipaddress

    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        return None
    if (
        address.is_loopback
        or address.is_unspecified
        or value.startswith(("255.", "169.254.", "2001:db8:", "2001:0db8:"))
    ):
        return None
    if address.version == 4 and int(address) >> 28 == 0xF:
        return None  # a stand-in
    if (
        address.version == 6
        and sum(part != "" for part in value.split(":")) < 3
        and not value.lower().startswith(("fe80", "fd", "fc", "2"))
    ):
        return None
    return value


def _public(domain: str) -> bool:
    parts = domain.lower().rstrip(".").split(".")
    return any(".".join(parts[at:]) in PUBLIC for at in range(len(parts) - 1))


def _kind_of_flag(name: str) -> str | None:
    kind = kind_of(name)
    return kind if kind in ("secret", "user", "tenant") or (kind == "host" and fold(name) == "hostname") else None


def _has(shape: Shape, text: str, low: str) -> bool:
    looked = low if shape.regex.flags & re.I else text
    return any(word in looked for word in shape.words)


def _inner(line: str) -> str:
    """What a line says inside its collector's envelope and its process tag."""
    text = peel(line)[0]
    tag = TAG.match(text)
    return text[tag.end() :] if tag and tag["pid"] else text


def _plain(text: str, at: int) -> str:
    """A short name that stands as a value: quoted or bare."""
    found = re.compile(r"\\{0,7}[\"']?([\w.@/-]{1,80})").match(text, at)
    return found[1] if found else ""


def _quoted(text: str, at: int, opened: re.Match[str]) -> tuple[int, str, bool]:
    """End and inside of a quoted value; end -1 where it is not closed, and whether its line was."""
    slashes, quote = opened[1], opened[2]
    if quote == '"""':
        end = text.find(quote, opened.end())
        return (end + 3, text[opened.end() : end], False) if end >= 0 else (-1, "", "\n" in text[at:])
    if not slashes:
        found = _WHOLE[quote].match(text, at)
        if found and (quote == '"' or "\n" not in found[0]) and "\n" not in found[0]:
            return found.end(), found[0][1:-1], False
        return -1, "", "\n" in text[at:]
    line_end = text.find("\n", at)
    close = re.compile(r"(?<!\\)" + re.escape(slashes + quote)).search(
        text, opened.end(), line_end if line_end >= 0 else len(text)
    )
    if close is None:
        return -1, "", line_end >= 0
    return close.end(), text[opened.end() : close.start()], False


def _columns(line: str) -> tuple[str, list[tuple[int, str]], int] | None:
    """Delimiter, columns that tell of somebody and how many there are, if a line is the head of a table."""
    if len(line) > 8000 or not _HEADER.fullmatch(line):
        return None
    delimiter = max(",;\t|", key=line.count)
    heads = [cell.strip().strip('"# ') for cell in line.strip("\r").split(delimiter)]
    kinds = []
    for place, head in enumerate(heads):
        kind = kind_of(head)
        if kind == "weak":
            kind = "prompt"
        if kind:
            kinds.append((place, kind))
    return (delimiter, kinds, len(heads)) if kinds and len(heads) > 1 else None


def _cells(row: str, delimiter: str) -> list[str]:
    if '"' not in row:
        return row.split(delimiter)
    pattern = re.compile(rf'(?:^|{re.escape(delimiter)})(\s*"(?:[^"]|"")*+"\s*|[^{re.escape(delimiter)}]*)')
    return [match[1] for match in pattern.finditer(row)]


def lines_of(chunks: Iterable[str], redactor: Redactor) -> Iterator[str]:
    """Text chunk by chunk through a redactor; what a chunk leaves open goes before the next."""
    held = ""
    for chunk in chunks:
        made, held = redactor.text(held + chunk, final=False)
        if made:
            yield made
    if held:
        yield redactor.text(held)[0]
