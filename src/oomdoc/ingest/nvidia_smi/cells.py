"""What a cell of nvidia-smi says: dates, sizes, shares, numbers. NULL is None; what should be a number and is none is an error."""

from __future__ import annotations

import re
from functools import lru_cache

from oomdoc.intake.cells import is_null, stamp
from oomdoc.regexes import regex
from oomdoc.units import MIB

MIB_CAP = 10**9  # a pebibyte: more is no memory of a device
INDEX_CAP = 10**4
MEMORY = regex(r"(\d{1,15})(?:\.\d+)?\s?(MiB|MB|GiB|GB|KiB|KB)?", re.I)
_PERCENT = regex(r"(\d{1,15})\s?%?")
_NUMBER = regex(r"(\d{1,6})\s?(?:MHz|C)?")
_FACTOR = {"k": 1 / 1024, "m": 1, "g": 1024}


class UnreadableError(ValueError):
    """A cell that should be a number and is none."""


def decode(line: bytes) -> str:
    """The text of a line, as far as any row of a query goes."""
    return line[:8192].decode("utf-8", "replace").rstrip("\r")


def null(text: str) -> bool:
    """Whether a cell says that there is no value: `[N/A]`, `ERR!` and the like."""
    return is_null(text.encode("utf-8", "replace"))


@lru_cache(maxsize=4096)  # cells repeat: half of the time of a row
def memory(text: str) -> int | None:
    """Bytes of `76012 MiB`, `76012` or a NULL."""
    if null(text):
        return None
    match = MEMORY.fullmatch(text)
    size = int(match[1]) * _FACTOR[(match[2] or "M")[0].lower()] if match else MIB_CAP + 1
    if size > MIB_CAP:
        raise UnreadableError(text)
    return int(size * MIB)


@lru_cache(maxsize=4096)
def share(text: str) -> float | None:
    """The share that `93 %` or `93` is."""
    if null(text):
        return None
    match = _PERCENT.fullmatch(text)
    if not match or int(match[1]) > 100:
        raise UnreadableError(text)
    return int(match[1]) / 100


@lru_cache(maxsize=4096)
def whole(text: str) -> int | None:
    """A whole number of at most 15 digits, or a NULL."""
    if null(text):
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise UnreadableError(text)
    return int(text)


def clock(text: str) -> int | None:
    """The number of `1980 MHz`, `1980` or `66 C`; None where there is none."""
    match = _NUMBER.fullmatch(text.strip())
    return int(match[1]) if match else None


def index(text: str) -> int | None:
    """The index of a device."""
    value = whole(text)
    if value is not None and value >= INDEX_CAP:
        raise UnreadableError(text)
    return value


def stamp_of(text: str) -> float | None:
    """Epoch seconds of a stamp of a query."""
    if null(text):
        return None
    t = stamp(text)
    if t is None:
        raise UnreadableError(text)
    return t


def name_of(text: str) -> str | None:
    """A name, or a NULL."""
    return None if null(text) else text
