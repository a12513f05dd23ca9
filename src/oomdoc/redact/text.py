"""Text in, the same lines out with everything replaced that tells of people, places and access; numbers and times stay.

Three things tell what is to go: the field a value stands in (JSON, Python, YAML, `key=value`, labels of metrics, flags,
columns of tables), its shape (`shapes`), and, on the second reading, that it was seen in such a field elsewhere. A line stays a
line, so that `path:line` means the same place. What cannot be judged before its end (a list over many lines) is held back
until it is there, up to `HELD_CAP` characters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from oomdoc.redact import blocks, shapes
from oomdoc.redact.columns import columns
from oomdoc.redact.documents import Documents
from oomdoc.redact.enveloped import inner as inner_of
from oomdoc.redact.enveloped import inside, put_back
from oomdoc.redact.fields import RECORD, WHOLE, Fields
from oomdoc.redact.names import Pseudonyms, is_stand_in
from oomdoc.redact.refuse import Refusal
from oomdoc.redact.values import NUMBER, Tally, Values
from oomdoc.redact.words import GENERIC, NOBODY

_DEPTH = 4  # JSON in strings of JSON
_SAFE_SMALL = 3
_JSON_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*+"')
_ANSI = re.compile(r"(?:\x1b|\\{1,3}u001[bB]|\\{1,3}x1[bB]|#033|\^\[)\[[0-9;:]*[A-Za-z]")
_ENCODED = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_-]{256,}+={0,2}")
"""Pictures, sounds and files in base64 (RFC 4648) that no field or scheme announces: no line that is read has such a word."""
_BEGINS = re.compile(
    r"\b(?:prompt|output|text|inputs?)(?:: |=)\\?(?P<quote>[\"'])|(?P<key>-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY)"
)


class Redactor:
    """Replaces in text, with one set of pseudonyms; `learning` reads once before, so that names are known wherever they stand.

    `common` are words that logs are made of: a user called `page` is replaced in `/home/page`, not in `page fault`.
    """

    def __init__(
        self, pseudonyms: Pseudonyms, common: frozenset[str] = frozenset(), tally: Tally | None = None
    ) -> None:
        self.values = Values(pseudonyms, tally)
        self._fields = Fields(self.values)
        self._documents = Documents(self.values)
        self._refusal: Refusal | None = Refusal(self.values)
        self._common = common
        self._known: tuple[re.Pattern[str], dict[str, str]] | None = None
        self._open = ""  # what the last line left open: the quote of a prompt, or `-----` of a private key

    def learning(self) -> None:
        """From here on only names are looked for: what is not known to be safe is not replaced."""
        self._refusal = None

    def learned(self) -> None:
        """From here on the names that are known by now are replaced wherever they stand."""
        stand_ins: dict[str, str] = {}
        own = self.values.pseudonyms.names["word"]
        for name, made in self.values.pseudonyms.learned().items():
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
            and not NUMBER.fullmatch(name)
            and any(character.isalpha() for character in name)
        )

    # ---- a text

    def text(self, text: str, final: bool = True, depth: int = 0) -> tuple[str, str]:
        """The text with everything replaced, and what is held back until more is there (with `final` nothing)."""
        held = ""
        if "\x1b[" in text or "1b[" in text or "1B[" in text or "#033[" in text or "^[[" in text:
            text = _ANSI.sub("", text)  # colour within a value hides it from every expression; ingestors drop it too
        if depth == 0 and (self._open or _BEGINS.search(text)):
            text = self._over_lines(text)
        if depth == 0:
            text = inside(text, self._plain)
        if "-----BEGIN" in text:
            text = shapes.PRIVATE_KEY.sub(self._key_block, text)
        if "data:" in text:
            text = shapes.DATA_URI.sub(lambda match: self.values.marked(match[0]), text)
        text = _ENCODED.sub(self._encoded, text)
        if "Secret" in text and "kind" in text:
            text = self._secret_data(text)
        if depth < _DEPTH and "\\" in text and '"' in text:
            text = self._strings(text, depth)
        text = self._documents.text(text)
        text, held = self._fields.fields(text, final)
        text = self._fields.flags(text)
        text = self._fields.pairs(text)
        text = columns(self.values, text)
        text = self.values.shaped(text)
        if self._known is not None:
            expression, stand_ins = self._known
            text = expression.sub(lambda match: self._alone(stand_ins[match[0]]), text)
        if self._refusal is not None:
            text = self._refusal.text(text)
        return text, held

    def _plain(self, text: str) -> str:
        """Documents, settings and listings of several lines: what needs its neighbours to be understood."""
        if "Secret" in text and "kind" in text:
            text = self._secret_data(text)
        text = self._fields.fields(self._documents.text(text), final=True)[0]
        return self.values.shaped(columns(self.values, self._fields.flags(text)))

    def whole(self, text: str) -> str:
        """A text that is all there: a path, a sentence of a report."""
        return self.text(text)[0]

    def path(self, path: str) -> str:
        """A member's path; its parts stay parts."""
        return "/".join(self.whole(part) for part in self.values.shaped(f"/{path}")[1:].split("/"))

    def _alone(self, made: str) -> str:
        self.values.tally.add(made.rsplit("-", 1)[0])
        return made

    def _key_block(self, match: re.Match[str]) -> str:
        return self.values.made("secret", match[0]) + "\n" * match[0].count("\n")

    def _encoded(self, match: re.Match[str]) -> str:
        word = match[0]
        if not (re.search("[A-Z]", word) and re.search("[a-z]", word) and re.search("[0-9]", word)):
            return word
        return self.values.marked(word)

    def _secret_data(self, text: str) -> str:
        """Values of a Kubernetes Secret, whatever their names."""
        out: list[str] = []
        at = 0
        for begin, end in blocks.secret_data(text):
            value = text[begin:end]
            if begin >= at and value.strip() and not is_stand_in(value):
                out += [text[at:begin], self.values.made("secret", value)]
                at = end
        return "".join([*out, text[at:]])

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
            inner = inner_of(line)
            for begins in _BEGINS.finditer(inner):
                if begins["key"]:
                    self._open = "" if "-----END" in inner[begins.end() :] else "-----"
                else:
                    closed = WHOLE[begins["quote"]].match(inner, begins.start("quote"))
                    self._open = "" if closed else begins["quote"]
            if self._open == "-----":
                lines[place] = put_back(line, inner, self.values.made("secret", inner))
        return "\n".join(lines)

    def _continued(self, line: str) -> str:
        """A line after one that left something open; closes it where that ends, or where a record begins."""
        if not line:
            return line
        inner = inner_of(line)
        if self._open == "-----":
            if "-----END" in inner or RECORD.match(inner):
                self._open = ""
            return line if RECORD.match(inner) else put_back(line, inner, "" if inner.strip() else inner)
        if RECORD.match(inner):
            self._open = ""
            return line
        end = re.search(re.escape(self._open) + r"(?=, ?[a-zA-Z_]+[:=]|[)\]}]*$)", inner)
        if end:
            self._open = ""
        cut = end.start() if end else len(inner)
        return put_back(line, inner, self.values.prompt(inner[:cut]) + inner[cut:])

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


def lines_of(chunks: Iterable[str], redactor: Redactor) -> Iterator[str]:
    """Text chunk by chunk through a redactor; what a chunk leaves open goes before the next."""
    held = ""
    for chunk in chunks:
        made, held = redactor.text(held + chunk, final=False)
        if made:
            yield made
    if held:
        yield redactor.text(held)[0]
