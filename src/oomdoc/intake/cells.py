"""What stands in a cell of a dense line: its kind, its spelling of "unknown", its value by the obvious way."""

from __future__ import annotations

import calendar
import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from oomdoc.regexes import regex
from oomdoc.units import parse_time

INTEGER_DIGITS = 15  # more is no count of anything, and 15 digits are exact as a double too
REAL_CHARS = 18
TEXT_BYTES = 64
NULLS = (
    b"[N/A]", b"N/A", b"null", b"-", b"", b"[Not Supported]", b"None", b"ERR!", b"[Unknown Error]", b"Unknown Error",
    b"[Not Found]", b"[Insufficient Permissions]", b"[GPU is lost]", b"[GPU requires reset]", b"[Deprecated]", b"nan", b"NaN",
)  # fmt: skip
"""Spellings of "unknown" in a cell."""
_NULLS = frozenset(NULLS)
Kind = Literal["key", "same", "integer", "real", "stamp", "text"]


def is_null(text: bytes) -> bool:
    """Whether a cell spells "unknown"."""
    return text in _NULLS


class Memo(dict[bytes, Any]):
    """A decoding of text cells that remembers what it has seen.

    `column` keeps a table beside the dictionary, one slot for each 14-bit hash of a text's words: rows whose words stand in
    their slot take the value from there. A log with 4,000 tenants is read in 12 % less time than by the dictionary alone.
    """

    def __init__(self, decode: Callable[[bytes], Any]) -> None:
        super().__init__()
        self.decode = decode
        self._table: tuple[Any, Any, Any] | None = None

    def __missing__(self, text: bytes) -> Any:
        if len(self) >= 1 << 16:
            self.clear()
        value = self[text] = self.decode(text)
        return value

    def column(self, words: Any) -> Any:
        """Values of texts as rows of 64-bit words, zeros behind their ends; an object array."""
        import numpy as np

        width = words.shape[1]
        texts = words.view(f"S{8 * width}").ravel()  # numpy takes the zeros off again
        if len(texts) and (words == words[0]).all():  # one model in the whole chunk
            found = np.empty(len(texts), object)
            found.fill(self[bytes(texts[0])])
            return found
        if self._table is None or len(self._table[1]) != width:
            self._table = np.zeros(1 << 14, np.bool_), np.zeros((width, 1 << 14), np.uint64), np.empty(1 << 14, object)
        used, held, values = self._table
        mixed = np.zeros(len(texts), np.uint64)
        for column in words.T:
            mixed ^= column
            mixed *= np.uint64(0x9E3779B97F4A7C15)
        slot = (mixed >> np.uint64(50)).astype(np.intp)
        known = used.take(slot)
        for row, column in zip(held, words.T, strict=True):
            known &= row.take(slot) == column
        found = values.take(slot)
        if not known.all():
            fresh = np.flatnonzero(~known)
            found[fresh] = list(map(self.__getitem__, texts[fresh].tolist()))
            slot = slot[fresh]
            # of two texts in one slot the last stays, in all three
            used[slot], values[slot] = True, found[fresh]
            held[:, slot] = words[fresh].T
        return found


def cell_text(text: bytes) -> str | None:
    """The usual decoding of a text cell."""
    return None if text in _NULLS else text.decode("utf-8", "replace")


CELL_TEXT = Memo(cell_text)


@dataclass(frozen=True)
class Field:
    """A value in every line of a template: the cells `first` to `last`, less `prefix` and `suffix`.

    Kinds: `key` checks prefix and suffix only; `same` says that the whole cell is `prefix`; `integer` has 1 to 15 digits;
    `real` digits with or without a fraction; `stamp` is `2026-11-20T20:04:51` (`/` and a space are fine) with exactly
    `fraction` digits behind the seconds; `text` is anything up to 64 bytes, decoded by `decode`. A cell of
    kind integer or real that spells a NULL, with or without the suffix, is NULL; a value of another form makes its line odd.
    """

    kind: Kind
    name: str
    first: int
    last: int
    prefix: bytes = b""
    suffix: bytes = b""
    fraction: int = 0
    offset_s: float = 0.0
    decode: Memo = dataclasses.field(default_factory=lambda: CELL_TEXT, compare=False)


_INTEGER = regex(rb"[0-9]{1,15}")
_REAL = regex(rb"[0-9]+(?:\.([0-9]+))?")
_MINUTE = regex(rb"[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}[T ][0-9]{2}:[0-9]{2}")


def value_plain(field: Field, text: bytes) -> tuple[bool, Any]:
    """Whether the text has the field's form, and its value."""
    if field.kind == "integer":
        return (True, int(text)) if _INTEGER.fullmatch(text) else (False, None)
    if field.kind == "real":
        return (True, float(text)) if _REAL.fullmatch(text) and _exact(text) else (False, None)
    if field.kind == "text":
        return (True, field.decode[text]) if len(text) <= TEXT_BYTES and text[-1:] != b"\0" else (False, None)
    form = rb":[0-5][0-9]" + (rb"[.,][0-9]{%d}" % field.fraction if field.fraction else b"")
    if not _MINUTE.fullmatch(text[:16]) or not re.fullmatch(form, text[16:]):
        return False, None
    seconds = parse_time(text.decode())
    return seconds is not None, seconds - field.offset_s if seconds is not None else None


def _exact(text: bytes) -> bool:
    """Whether the digits without the point make an integer that a double holds exactly, so that one division rounds right."""
    return len(text) <= REAL_CHARS and int(text.replace(b".", b"")) < 1 << 53


@lru_cache(maxsize=8192)
def minute_of(text: str) -> int | None:
    """Epoch seconds of `2026-11-20T20:04`; None where that is no such text or no such minute."""
    seconds = parse_time(text + ":00") if _MINUTE.fullmatch(text.encode("latin-1", "replace")) else None
    return int(seconds) if seconds is not None else None


_STAMP = regex(r"(\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d):([0-5]\d)(?:[.,](\d{1,9}))?\s?(Z|[+-]\d\d:?\d\d)?", re.ASCII)


MONTHS = {name: number for number, name in enumerate(calendar.month_abbr) if name}
_MONTH_FIRST = regex(r"([A-Z][a-z]{2})[a-z]{0,6} (\d\d?), (\d{4})(?:,| @| at)? (\d\d:\d\d:\d\d(?:\.\d{1,9})?)")


def month_first(text: str) -> str | None:
    """A stamp that begins with its month, as log viewers and spreadsheets show it, in ISO 8601; None for any other text.

    >>> month_first("Nov 20, 2026 @ 20:04:51.500"), month_first("November 2, 2026 at 20:04:51"), month_first("Now 20, 2026 20:04:51")
    ('2026-11-20T20:04:51.500Z', '2026-11-02T20:04:51Z', None)
    """
    match = _MONTH_FIRST.fullmatch(text.strip())
    month = MONTHS.get(match[1]) if match else None
    return f"{match[3]}-{month:02}-{int(match[2]):02}T{match[4]}Z" if match and month else None


def stamp(text: str) -> float | None:
    """`units.parse_time`, three times as fast where stamps share their minutes.

    >>> stamp("[2026-11-20T20:04:51.5Z] started"), stamp("noon")
    (1795205091.5, None)
    """
    match = _STAMP.search(text)
    minute = minute_of(match[1]) if match else None
    if match is None or minute is None:
        return None
    seconds = float(minute + int(match[2]))
    if match[3]:
        seconds += int(match[3].ljust(9, "0")) / 1e9
    zone = match[4]
    if zone and zone != "Z":
        seconds -= (1 if zone[0] == "+" else -1) * (int(zone[1:3]) * 3600 + int(zone[-2:]) * 60)
    return seconds


_DAYS = "Mon|Tue|Wed|Thu|Fri|Sat|Sun"
DATE = regex(
    rf"(?:{_DAYS})\s+({'|'.join(MONTHS)})\s+(\d{{1,2}})\s+(\d\d):(\d\d:\d\d)(?: ([AP])M)?(?: [A-Z][A-Za-z]{{1,4}})?\s+(\d{{4}})"
)


def date(text: str) -> float | None:
    """Epoch seconds of `Tue Nov 18 10:00:00 2026`, as `date` and nvidia-smi print it, or of an ISO stamp, anywhere in the text; letters of a zone are passed over.

    >>> date("# node 3, Tue Oct  6 10:06:40 UTC 2026"), date("Oct 6 10:06:40")
    (1791281200.0, None)
    """
    match = DATE.search(text)
    if not match:
        return parse_time(text)
    hour = int(match[3]) % 12 + 12 * (match[5] == "P") if match[5] else int(match[3])
    return parse_time(f"{match[6]}-{MONTHS[match[1]]:02}-{int(match[2]):02} {hour:02}:{match[4]}")
