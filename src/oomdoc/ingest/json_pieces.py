"""JSON documents of any size, piece by piece: scalars where they stand, and whole values only where they are asked for.

A metrics export of a gigabyte is one line. `pieces` walks through it with a buffer as large as the largest value that is
wanted whole; everything else goes by. Several documents behind each other (JSON lines) are read one after the other.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

Path = tuple[str, ...]
ITEM = "[]"
"""The step of a path into a list."""

WHOLE_CAP = 16 << 20  # characters of one value that is wanted whole
_STRING_CAP = 1 << 20
_DEPTH = 64
_DECODER = json.JSONDecoder()
_SPACE = regex(r"[ \t\r\n]*")
_PLAIN = regex(r"[^\s,\]}:]+")  # a number, true, false, null
_STRING = regex(r'"(?:[^"\\]|\\.)*"', re.S)


class Piece(NamedTuple):
    """A value, the path of keys to it (`[]` for a list's entry), and the physical line in which it begins.

    `places` are the positions in the lists of the path, from 0, the outermost first.
    """

    line: int
    path: Path
    value: Any
    places: tuple[int, ...]


class BrokenError(ValueError):
    """The text is no JSON from here on, or is cut: `line` and a sentence."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line = line


def mapping(value: Any) -> Mapping[str, Any]:
    """An object of a document; an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


_PRINTED = 20_000  # letters of one line
_CONSTANTS = {"True": "true", "False": "false", "None": "null"}
_CONSTANT = regex(r"(?<=[\s:,\[])(?:True|False|None)(?=\s*[,}\]])")


def loads(text: str | bytes) -> Any:
    """The value of a JSON text, or of a dictionary in one line as Python prints it; None for what is none.

    >>> loads("{'gpu': 0, 'ok': True, 'note': None}"), loads("{'it': 'cut")
    ({'gpu': 0, 'ok': True, 'note': None}, None)
    """
    if isinstance(text, str) and text.startswith("{'") and '"' not in text and len(text) < _PRINTED:
        text = _CONSTANT.sub(lambda word: _CONSTANTS[word[0]], text.replace("'", '"'))
    try:
        return json.loads(text if isinstance(text, str) else text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def pieces(chunks: Iterable[Chunk], whole: Callable[[Path], bool]) -> Iterator[Piece]:
    """Scalars of the documents and, decoded at once, the containers for whose path `whole` says yes.

    Raises `BrokenError` where the text stops being JSON; what came before has been given.
    """
    text = _Text(chunks)
    while text.skip():
        yield from _value(text, (), (), whole)
        text.comma()


class _Text:
    """Decoded text with a place in it, filled up as it is read."""

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self._chunks = iter(chunks)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.buffer = ""
        self.at = 0
        self._line = 1
        self._counted = 0
        self.ended = False

    def more(self, least: int = 0) -> bool:
        """Append at least one chunk, and more up to `least` characters; False at the end."""
        if self.ended:
            return False
        self._line += self.buffer.count("\n", self._counted, self.at)
        parts = [self.buffer[self.at :]]
        self.at = self._counted = 0
        size = 0
        while not self.ended and (not size or size < least):
            chunk = next(self._chunks, None)
            part = self._decoder.decode(chunk.data if chunk else b"", final=chunk is None)
            self.ended = chunk is None
            size += len(part)
            parts.append(part)
        self.buffer = "".join(parts)
        if self.buffer.startswith("\ufeff"):
            self.at = 1
        return size > 0

    @property
    def line(self) -> int:
        self._line += self.buffer.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._line

    def skip(self) -> str:
        """The next character that is no space; empty at the end."""
        while True:
            found = _SPACE.match(self.buffer, self.at)
            assert found is not None
            self.at = found.end()
            if self.at < len(self.buffer):
                return self.buffer[self.at]
            if not self.more():
                return ""

    def comma(self) -> None:
        """Past a comma, if one is next: people cut documents out of lists."""
        if self.skip() == ",":
            self.at += 1

    def broken(self, why: str) -> BrokenError:
        return BrokenError(self.line, "a JSON document that is cut" if self.ended and not self.skip() else why)

    def match(self, pattern: re.Pattern[str], cap: int) -> str:
        """The text of a token that may reach beyond the buffer."""
        while True:
            found = pattern.match(self.buffer, self.at)
            if found and (found.end() < len(self.buffer) or self.ended):
                self.at = found.end()
                return found[0]
            if len(self.buffer) - self.at > cap:
                raise BrokenError(self.line, f"a JSON text of more than {cap} characters")
            if not self.more(len(self.buffer) - self.at) and found is None:
                raise BrokenError(self.line, "no JSON, or a document that is cut")

    def decoded(self) -> Any:
        """The whole value that begins here."""
        while True:
            try:
                value, self.at = _DECODER.raw_decode(self.buffer, self.at)
                return value
            except (ValueError, RecursionError) as problem:
                held = len(self.buffer) - self.at
                if isinstance(problem, RecursionError) or held > WHOLE_CAP or not self.more(held):
                    why = (
                        "a JSON value of more than 16 MiB" if held > WHOLE_CAP else "no JSON, or a document that is cut"
                    )
                    raise BrokenError(self.line, why) from None


def _value(text: _Text, path: Path, places: tuple[int, ...], whole: Callable[[Path], bool]) -> Iterator[Piece]:
    first = text.skip()
    if first in ("{", "["):
        if whole(path):
            line = text.line
            yield Piece(line, path, text.decoded(), places)
        elif len(path) >= _DEPTH:
            raise BrokenError(text.line, f"JSON of more than {_DEPTH} levels")
        else:
            yield from _container(text, path, places, whole, first == "{")
        return
    line = text.line
    yield Piece(line, path, _scalar(text, first), places)


def _scalar(text: _Text, first: str) -> Any:
    token = text.match(_STRING, _STRING_CAP) if first == '"' else text.match(_PLAIN, 1000)
    try:
        return json.loads(token, strict=False)
    except (ValueError, RecursionError):
        raise text.broken("no JSON") from None


def _container(
    text: _Text, path: Path, places: tuple[int, ...], whole: Callable[[Path], bool], keyed: bool
) -> Iterator[Piece]:
    text.at += 1
    close = "}" if keyed else "]"
    count = 0
    while True:
        first = text.skip()
        if first == close:
            text.at += 1
            return
        if first == ",":
            text.at += 1
            continue
        if not first:
            raise BrokenError(text.line, "a JSON document that is cut")
        if not keyed:
            yield from _value(text, (*path, ITEM), (*places, count), whole)
            count += 1
            continue
        if first != '"':
            raise BrokenError(text.line, "no JSON")
        key = _scalar(text, first)
        if text.skip() != ":":
            raise text.broken("no JSON")
        text.at += 1
        yield from _value(text, (*path, str(key)), places, whole)
