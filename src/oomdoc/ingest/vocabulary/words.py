"""Names cut into words: `memory.used [MiB]`, `gpuMemUsedMiB`, `mem_used_mib` and `VRAM used (MB)` say the same.

A name is taken apart at dots, dashes, underscores, blanks and capitals, words of one meaning become one, a unit at its end or
in brackets is set aside, and the order does not matter. A word that is not known stays what it is, so that
`memory.used.peak` is another thing than `memory.used`. What a dashboard in German, French, Spanish, Portuguese, Italian or
Polish calls these things is put into English first. The words are data (`words.toml`); no quantity is known here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from oomdoc.ingest.vocabulary.quantity import read
from oomdoc.regexes import regex

_WORDS: dict[str, tuple[str, ...]] = {
    word: tuple(meaning.split()) for meaning, words in read("words")["meanings"] for word in words.split()
}
UNITS: dict[str, str] = {word: unit for unit, words in read("words")["units"] for word in words.split()}
"""What units are called at the end of a name; `1` is a share of one."""
TIME_UNITS: dict[str, float] = {word: seconds for seconds, words in read("words")["times"] for word in words.split()}
"""Words for units of time, and the seconds of one."""
_TONGUES: Sequence[tuple[str, str]] = read("words")["tongues"]
_SMALL_WORDS = r"(?:de|da|do|das|dos|del|della|di|du|des|der|die|den|el|la|le|los|les|il|na|w|z|acumulad[oa]s?|cumule[es]*|kumuliert|insgesamt|atual|actual|actuel|aktuell|attuale)"
BYTES = ("B", "KiB", "MiB", "GiB", "TiB", "KB", "MB", "GB", "TB")
SECONDS = ("ns", "us", "ms", "s", "min")
SHARES = ("%", "1")

_BRACKETS = regex(r"[\[(]\s*([A-Za-z%]{1,12}(?:/s)?)\s*[\])]")
_CAPITALS = regex(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNIT_CAPITALS = regex(r"([KMGT])(i?)B\b")
_HERTZ = regex(r"\b[kMG]Hz\b")
_PIECES = regex(r"[A-Za-z]+|\d+")
_GLUED = frozenset({*_WORDS, *(word for word in UNITS if len(word) > 1), "uuid", "pid", "status", "model", "kv"})
_LONGEST_GLUED = 24
_LONGEST_NAME = 100


def word_set(text: str) -> frozenset[str]:
    """The words of a list that is written as a text."""
    return frozenset(text.split())


_LISTS = read("lists")


def named(name: str) -> frozenset[str]:
    """The words of a list that is data (`lists.toml`)."""
    return word_set(_LISTS[name])


def _phrase(words: str) -> str:
    return r"[\W_]+".join(words.split())


def bare_letters(text: str) -> str:
    """A name with its accents taken off, so that one list of names serves: `comprimento máx.`, `nº`, `Länge`; Hangul in its letters.

    >>> bare_letters("nº"), bare_letters("długość máx."), bare_letters("µs")
    ('no', 'dlugosc max.', 'us')
    """
    if text.isascii():
        return text
    parts = unicodedata.normalize("NFKD", text.translate(_LETTERS))
    return "".join(each for each in parts if not unicodedata.combining(each))


_LETTERS = str.maketrans({"µ": "u", "μ": "u", "ł": "l", "Ł": "L", "ß": "ss", "ø": "o", "æ": "ae"})


_IN_ENGLISH = {words: english for english, phrases in _TONGUES for words in (" ".join(bare_letters(each).split()) for each in phrases.split(","))}  # fmt: skip
_FOREIGN = regex(rf"(?<![a-z])(?:{'|'.join(map(_phrase, sorted(_IN_ENGLISH, key=len, reverse=True)))})(?![a-z])")
_GO = regex(r"[\[(]([KMGT])(i)?o(?: (?P<binary>binaires?))?[\])]", re.I)
"""`(Go)` and `(Gio)`, as French tools name bytes (octets)."""
_SMALL = regex(rf"(?<![a-z]){_SMALL_WORDS}(?![a-z])", re.I)


@lru_cache(maxsize=8192)
def in_english(text: str) -> str:
    """A name with its words of other tongues in English; small words beside these go, and accents of all.

    >>> in_english("Uso do cache KV (%)"), in_english("File d'attente"), in_english("kolejka_max"), in_english("cola de impresion")
    ('used cache KV (%)', 'waiting', 'waiting_max', 'waiting impresion')
    """
    text = _GO.sub(lambda unit: f"({unit[1].upper()}{'iB' if unit[2] or unit['binary'] else 'B'})", text)
    plain = bare_letters(text)
    low = plain.lower()
    if len(low) != len(plain) or _FOREIGN.search(low) is None:
        return plain
    parts, at = [], 0
    for found in _FOREIGN.finditer(low):
        word = _IN_ENGLISH[" ".join(re.split(r"[\W_]+", found[0]))]
        parts += [plain[at : found.start()], word if found[0].isascii() else f" {word} "]
        at = found.end()
    return " ".join(_SMALL.sub(" ", "".join((*parts, plain[at:]))).split())


class Name(NamedTuple):
    """A name taken apart: its words in a fixed order, its unit ("" = none), the number of a device in front (None = none)."""

    words: tuple[str, ...]
    unit: str
    device: int | None = None


def _glued(piece: str, parts: int = 4) -> tuple[str, ...] | None:
    """A piece that is nothing but known words one behind another: `memused`, `prompttokens`."""
    if piece in _GLUED:
        return (piece,)
    if parts > 1 and len(piece) <= _LONGEST_GLUED:
        for at in range(len(piece) - 2, 1, -1):
            if piece[:at] in _GLUED and (rest := _glued(piece[at:], parts - 1)):
                return (piece[:at], *rest)
    return None


_DEVICE = regex(r"(?:gpu|device|card|cuda)[ _.:\-\[#]*(\d{1,2})(?!\d)[\]]?[ _.:\-]*(?=[A-Za-z])", re.I)
_DEVICE_BEHIND = regex(r"[ _.:\-\[]{1,2}(?:gpu|device|card|cuda)?[ _.:\-\[#]?(\d{1,2})\]?$", re.I)
_INSTANCE = regex(
    r"[ _.:\-\[]{1,2}(?:pod|replica|instance|engine|server|worker|rank|node|host|shard|dp)[ _.:\-\[#]?(\d{1,3})\]?$",
    re.I,
)


@lru_cache(maxsize=8192)
def taken_apart(text: str) -> Name:
    """The words and the unit of a name.

    >>> taken_apart("memory.used [MiB]"), taken_apart("latencyMs").unit, taken_apart("gpu3_mem_used").device
    (Name(words=('mem', 'used'), unit='MiB', device=None), 'ms', 3)
    """
    if len(text) > _LONGEST_NAME:
        return Name((text,), "")
    unit = ""
    plain = in_english(text.strip().strip("\"'`*").strip())
    device = None
    bracket = _BRACKETS.search(plain)
    if bracket and (bracket[1] == "%" or bracket[1].lower() in UNITS or bracket[1].lower() == "b"):
        unit = "%" if bracket[1] == "%" else UNITS.get(bracket[1].lower(), "B")
        plain = (plain[: bracket.start()].rstrip() + " " + plain[bracket.end() :].lstrip()).rstrip()
    if found := _DEVICE.match(plain):
        device = int(found[1])
        plain = "gpu " + plain[found.end() :]
    elif (found := _INSTANCE.search(plain)) and found.start():
        device = int(found[1])  # one of several servers in a row: its number tells them apart as that of a device does
        plain = plain[: found.start()]
    elif (found := _DEVICE_BEHIND.search(plain)) and found.start():
        device = int(found[1])
        plain = plain[: found.start()] + " gpu"
    plain = plain.replace("%", " pct ").replace("/", " per ").replace("in_use", "used").replace("in use", "used")
    plain = _UNIT_CAPITALS.sub(lambda unit: f" {unit[0].lower()} ", plain)
    plain = _HERTZ.sub(lambda unit: unit[0].lower(), plain)
    pieces: list[str] = []
    for piece in _PIECES.findall(_CAPITALS.sub(" ", plain)):
        low = piece.lower()
        pieces += _glued(low) or (low,) if low not in _WORDS and low not in UNITS else (low,)
    if (
        len(pieces) > 2
        and pieces[-1] in ("s", "sec")
        and _WORDS.get(pieces[-2]) == ("token",)
        and "first" not in pieces
    ):
        pieces[-1] = "rate"  # tok_s
    elif len(pieces) > 2 and pieces[-2] == "per" and pieces[-1] in ("s", "sec", "second"):
        pieces[-2:] = ["rate"]
    elif len(pieces) > 1 and pieces[-1] in UNITS and not (pieces[-1] == "s" and len(pieces) == 1):
        unit = unit or UNITS[pieces[-1]]
        pieces = pieces[:-1]
    elif len(pieces) > 1 and pieces[0] == "pct":
        unit, pieces = unit or "%", pieces[1:]
    words: set[str] = set()
    for piece in pieces:
        words.update(_WORDS.get(piece, (piece,)))
    return Name(tuple(sorted(words)), unit, device)
