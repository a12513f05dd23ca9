"""Values by the field they stand in: JSON, Python, YAML, `key=value`, labels of metrics, flags, pairs, elements of XML."""

from __future__ import annotations

import re
from collections.abc import Iterable

from oomdoc.redact import blocks, shapes
from oomdoc.redact.values import INTEGER, Values
from oomdoc.redact.words import MANY_VALUES, ROLES, fold, kind_of

HELD_CAP = 12 << 20  # characters of one value that does not end: then it goes as far as it is
RAW_LINES = 400  # of a prompt that was printed as it is, after the line in which it began
_NEAR = 160  # characters between the name and the value of `{"key": ..., "value": ...}`
_FIELD = re.compile(
    r"(?<![\w.@/])(?<![\w.]-)(?P<key>[A-Za-z_@][\w.@/-]{0,79}+)(?P<close>\\{0,7}[\"']?\]?)[ \t]{0,40}(?P<sep>=>|:=|[:=])(?!=)(?P<gap>[ \t]{0,120})"
)
_FLAG = re.compile(
    r"(?<![\w-])--?(?P<key>[A-Za-z][\w.-]{1,79}+)(?P<gap>[ \t]{0,8}(?:\\{1,2}|`|\^)?\r?\n[ \t]{0,40}(?:- )?|[ \t\0]{1,120}|\\?[\"'],?\s{0,40}-?[ \t]{0,8})(?=[^\s\0-])"
)
_SHARE = re.compile(r"\\{2,4}(?=\w)")
_COOKIE = re.compile(r"[^\n\r\"'\\]+")
_WHO = re.compile(
    r"([\"'](?:id|name|login|username|user_name|slug|title|display_?name|sub)[\"']\s{0,8}:\s{0,8}[\"'])([^\"'\\\n]{1,200})([\"'])",
    re.I,
)
_OBJECT_CAP = 8000
_OPEN = re.compile(r"(\\{0,7})(\"\"\"|[\"'])")
WHOLE = {'"': re.compile(r'"(?:[^"\\]|\\.)*+"', re.S), "'": re.compile(r"'(?:[^'\\]|\\.)*+'", re.S)}
_NEXT = re.compile(
    r"(?:[ \t]{0,8}\\?\r?\n[ \t]{0,40}(?:- )?|[ \t\0]{1,8}|\\{0,7}[\"'],?\s{0,40}-?[ \t]{0,8})(?=[^\s\0-])"
)
"""From one value of an option to the next: blanks, a new line of a shell or of YAML, the border of two strings."""
_VALUES_CAP = 100
_NAME = re.compile(r"[^\s,;&\"'\\()\[\]{}<>|\0]+")
_SECRET_VALUE = re.compile(
    r"(?:(?:Bearer|Basic|Token|Digest)[ \t]+)?(<(?:set to|your|no|not)\b[^<>\n]{1,200}>|<[^<>\s]{1,80}>|[<\[{($/]{0,2}[^\s,;&\"'\\)\]}<>|\0]+)",
    re.I,
)
_TO_END = re.compile(
    r"(?:(?!, ?(?:params|sampling_params|SamplingParams|prompt_token_ids|prompt_embeds_shape|lora_request|output_token_ids|"
    r"finish_reason|streaming|arrival_time|request_id|priority)\b|\\?\"\s*[,}]|[ ,;|&]{1,3}\w{2,40}[=]|\t)[^\n\0])*+"
)
_BLOCK = re.compile(r"(?:[&!]\S{1,80}[ \t]{1,8}){0,2}[|>][+-]?\d?[+-]?[ \t]{0,8}\r?\n")
_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'", re.S)
_NO_PROMPT = re.compile(
    r"|none|true|false|null|n/a|-|\d[\d.,]* ?(?:tokens?|tok(?:/s)?|ms|s|%|req(?:uest)?s?|chars?|bytes)\b.*", re.I
)
RECORD = re.compile(
    r"\s{0,8}(?:DEBUG|INFO|WARNING|ERROR|CRITICAL|Traceback \(|File \"|\d{4}-\d\d-\d\d[T ]\d|[A-Z][a-z]{2} +\d+ \d\d:\d\d|<\d{1,3}>|"
    r"\[ *\d+\.\d|\[rank\d|\{\"|torch\.|[\w.]{1,60}Error: )"
)
_INSIDE = re.compile(
    r"(?P<name>(?P<mark>\\{0,7}[\"'])(?:(?!(?P=mark))[^\n])*+(?P=mark)\s{0,8}:)|"
    r"(?P<open>\\{0,7}[\"'])(?P<value>(?:(?!(?P=open))[^\n])*+)(?P=open)|(?<=[:,\[=])(?P<gap>\s{0,20})(?P<bare>[^\s\"'\\{}\[\],:=]{1,400})(?=\s{0,20}[,}\]])"
)
_RANDOM = re.compile(r"\\{0,7}[\"']?[A-Za-z0-9+/_=-]{20,}")  # what a field that ends with "key" holds, if it is one


class Fields:
    """Replaces the values of fields that tell of people, places and access."""

    def __init__(self, values: Values) -> None:
        self.values = values

    def fields(self, text: str, final: bool) -> tuple[str, str]:
        """The text with the values of fields replaced, and what is held back until more is there (with `final` nothing)."""
        out: list[str] = []
        at = 0
        pending, pending_at = "", -_NEAR
        for match in _FIELD.finditer(text):
            if match.start() < at:
                continue
            key = match["key"]
            low = key.lower()
            if low in ("key", "name", "stringvalue", "value", "values", "string_value"):
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
            return self.values.prompt(rest)
        self.values.tally.add(kind)
        return self.values.pseudonyms.of("secret", rest) + "\n" * rest.count("\n")

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
            return end, mark + self.values.inside(inner, kind) + close
        if first in "[{(" and first:
            if first == "{" and not content:
                return self._object(text, at, kind)
            if kind == "weak" and first == "{":
                return self._object(text, at, "secret") if key == "tokens" else (at, "")
            end = blocks.closing(text, at)
            if end < 0 and kind == "secret" and (found := _SECRET_VALUE.match(text, at)) and len(found[1]) > 1:
                return found.end(), self.values.secret(found[1])
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
            made = self.values.prompt(value.rstrip()) + value[len(value.rstrip()) :]
            if field["sep"] == ":" and field["gap"] and text[end : end + 1] == "\n":
                end, more = self._yaml_plain(text, end, field)
                made += more
            return end, made
        if kind == "secret":
            if (block := _BLOCK.match(text, at)) and field["sep"] == ":":
                return self._yaml_block(text, at, block.end(), field, kind)
            if key in ("cookie", "setcookie"):  # several, with blanks between
                found = _COOKIE.match(text, at)
                return (found.end(), self.values.secret(found[0])) if found and found[0].strip() else (at, "")
            found = _SECRET_VALUE.match(text, at)
            if not found:
                return at, ""
            return found.end(), text[at : found.start(1)] + self.values.secret(found[1])
        share = _SHARE.match(text, at) if kind == "host" else None
        found = _NAME.match(text, share.end() if share else at)
        if not found:
            return at, ""
        value = found[0].rstrip(".:")
        if "=" in value:  # `host: cpus=2`: a field of its own
            return at, ""
        if kind == "user" and field["sep"] == ":" and not field["gap"]:
            return at, ""  # `user:pass@`, `INFO:user:...`
        return found.start() + len(value), text[at : found.start()] + self.values.name(kind, value)

    def _container(self, text: str, kind: str) -> str:
        """A list or object: every string in it, but the names of fields and what says only who spoke."""
        if kind in ("prompt", "ids", "weak") and re.fullmatch(r"[\[(]\s*(?:\d+\s*,?\s*)*[\])]?", text):
            return INTEGER.sub("0", text)
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
            out += [before, match[0][0], self.values.inside(inner, kind), match[0][-1]]
            at = match.end()
        out.append(text[at:])
        return "".join(out)

    def _object(self, text: str, at: int, kind: str) -> tuple[int, str]:
        """A user, tenant or host told as an object: `{"id": ..., "name": ...}`."""
        end = blocks.closing(text, at) if kind in ("user", "tenant", "host", "secret") else -1
        if end < 0 and kind == "secret" and not re.match(r"\{\s*(?:[\"'}]|$|\w+:)", text[at : at + 200]):
            found = _SECRET_VALUE.match(text, at)
            return (found.end(), self.values.secret(found[1])) if found else (at, "")
        if end < 0 or end - at > _OBJECT_CAP:
            return at, ""
        if kind == "secret" and not re.search(r"[:=,\"']|^\{\s*\}", text[at:end]):  # no object: a secret that begins so
            found = _SECRET_VALUE.match(text, at)
            return (found.end(), self.values.secret(found[0])) if found else (at, "")
        if kind == "secret":
            return end, _INSIDE.sub(self._inside_secret, text[at:end])
        made = _WHO.sub(lambda match: match[1] + self.values.name(kind, match[2]) + match[3], text[at:end])
        return end, self.fields(made, final=True)[0]

    def _inside_secret(self, match: re.Match[str]) -> str:
        """Whatever stands in an object with the name of a secret."""
        if match["name"]:
            return match[0]
        if match["open"]:
            return match["open"] + self.values.secret(match["value"]) + match["open"]
        return match["gap"] + self.values.secret(match["bare"])

    def _raw(self, text: str, at: int, quote: str, kind: str, mark: str) -> tuple[int, str]:
        """A quote that its line does not close: the line was cut, or a prompt was printed with its line breaks."""
        stop = text.find("\n", at)
        end = stop if stop >= 0 else len(text)
        if kind in ("prompt", "weak") and stop >= 0:
            for _ in range(RAW_LINES):
                line_end = text.find("\n", stop + 1)
                line = text[stop + 1 : line_end if line_end >= 0 else len(text)]
                if line_end < 0 or RECORD.match(line):
                    break
                stop = end = line_end
                closed = line.find(quote)
                if closed >= 0 and (line[closed + 1 : closed + 2] in ("", ",", " ", "}", "]")):
                    start = line_end - len(line) + closed
                    value = text[at:start]
                    return start, mark + self.values.prompt(value)
        value = text[at:end]
        made = (
            self.values.inside(value, kind)
            if kind in ("prompt", "weak", "ids")
            else self.values.inside(value.split()[0] if value.split() else "", kind)
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
        if not places or any(RECORD.match(text[begin:end]) for begin, end in places):
            return at, ""
        return places[-1][1], self._at_places(text, at, places[-1][1], places, "prompt")

    def _at_places(self, text: str, at: int, end: int, places: Iterable[tuple[int, int]], kind: str) -> str:
        out: list[str] = []
        for begin, stop in places:
            value = text[begin:stop]
            mark = value[0] if len(value) > 1 and value[0] in "\"'" and value[-1] == value[0] else ""
            inner = value[1:-1] if mark else value
            out += [text[at:begin], mark, self.values.inside(inner, kind), mark]
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
            return end, text[at:begin] + first + self.values.secret(body.strip()) + "\n" * body.count("\n")
        return end, text[at:begin] + first + self.values.prompt(body).lstrip()

    def flags(self, text: str) -> str:
        """The text with the values of command-line flags replaced."""
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
            for _ in range(_VALUES_CAP if kind == "secret" and fold(match["key"]) in MANY_VALUES else 1):
                opened = _OPEN.match(text, start)
                start = opened.end() if opened else start
                found = _SECRET_VALUE.match(text, start) if kind == "secret" else _NAME.match(text, start)
                if not found:
                    break
                made = self.values.secret(found[0]) if kind == "secret" else self.values.name(kind, found[0])
                out += [text[at:start], made]
                at = found.end()
                after = _NEXT.match(text, at)
                if after is None:
                    break
                start = after.end()
        out.append(text[at:])
        return "".join(out)

    def pairs(self, text: str) -> str:
        """Fields in notations without `:` and `=`: pairs, elements of XML, a value that stands before its name."""

        def replaced(match: re.Match[str]) -> str:
            kind = kind_of(match["key"])
            if kind not in ("secret", "user", "host", "tenant", "prompt"):
                return match[0]
            begin, end = match.start("value") - match.start(), match.end("value") - match.start()
            return match[0][:begin] + self.values.inside(match["value"], kind) + match[0][end:]

        if "', " in text or '", ' in text or "','" in text or '","' in text:
            text = shapes.PAIR.sub(replaced, text)
        if "</" in text:
            text = shapes.ELEMENT.sub(replaced, text)
        if "value" in text and "name" in text:
            text = shapes.VALUE_FIRST.sub(replaced, text)
        if "%3" in text or "u003d" in text or "&#" in text:
            text = shapes.ENCODED_PAIR.sub(replaced, text)

        def secret(match: re.Match[str]) -> str:
            return replaced(match) if kind_of(match["key"]) == "secret" else match[0]

        if "|" in text:
            text = shapes.ROW.sub(replaced, text)
        for shape in (shapes.SET_BEFORE, shapes.NAMED_BEFORE, shapes.VALUE_AFTER):
            text = shape.sub(secret, text)
        return text


def _kind_of_flag(name: str) -> str | None:
    kind = kind_of(name)
    return kind if kind in ("secret", "user", "tenant") or (kind == "host" and fold(name) == "hostname") else None


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
        found = WHOLE[quote].match(text, at)
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
