"""What a cell says: sizes, shares, durations, counts, moments, names; and the unit of a column whose cells name none.

A value comes as text, or as JSON's own number. NULL is None; what should be a number and is none is `UnreadableError`.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from oomdoc.ingest.request_keys import DAYS_IN_MS, moment, status
from oomdoc.ingest.vocabulary import Quantity
from oomdoc.ingest.vocabulary.words import TIME_UNITS
from oomdoc.intake.cells import date, is_null
from oomdoc.regexes import regex
from oomdoc.units import GIB, KIB, MIB, NOMINAL_YEAR, parse_age, parse_size

Values = Mapping[str, Any]
"""A record: what its cells say, by the names of their columns."""
_NUMBER = regex(
    r"(-?(?:0,\d{1,9}|\d{1,3}(?:[, '_]\d{3})+|\d{1,18})?(?:\.\d{1,18})?(?:[eE][+-]?\d{1,3})?)\s*(%|[A-Za-zµ/]{1,12})?"
)
_COMMA = regex(r"-?0,\d{1,9}")  # no thousands begin with nought
_INDEX = regex(r"(?:(?:gpu|cuda|device|card|nvidia|npu)[ _:#\[]*)?(\d{1,4})\]?", re.I)
_NULLS = frozenset(
    ("", "-", "--", "n/a", "[n/a]", "na", "null", "none", "nan", "unknown", "?", "<none>", "<unset>", "<unknown>", "...", "…")
)  # fmt: skip
_FACTORS = {"B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": 1024 * GIB}
_DECIMAL = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_TEXT = 400


class UnreadableError(ValueError):
    """A cell that should be a value of its quantity and is none."""


def null(value: Any) -> bool:
    """Whether a cell says that there is no value."""
    if value is None:
        return True
    if not isinstance(value, str):
        return isinstance(value, float) and math.isnan(value)
    text = value.strip()
    return text.lower() in _NULLS or is_null(text.encode("utf-8", "replace"))


def number_of(value: Any) -> tuple[float, str]:
    """A number and what stands behind it: `("93", "%")`."""
    if isinstance(value, bool):
        raise UnreadableError(str(value))
    if isinstance(value, (int, float)):
        if abs(value) > 1e30:
            raise UnreadableError(str(value)[:60])
        return float(value), ""
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value.strip())
        if match and match[1] not in ("", "-"):
            try:
                plain = match[1].replace(",", ".") if _COMMA.fullmatch(match[1]) else re.sub(r"[, '_]", "", match[1])
                return float(plain), match[2] or ""
            except ValueError:
                pass
    raise UnreadableError(str(value)[:60])


def is_number(value: Any) -> bool:
    """Whether a cell is a number, with or without a unit."""
    try:
        number_of(value)
    except UnreadableError:
        return False
    return True


def unit_of(quantity: Quantity, named: str, values: Sequence[Any]) -> str:
    """The unit of a column's bare numbers: what its name says, else what is usual, else what their size allows.

    Bytes: memory of a device or a process below 1024 is told in GiB (no device has 1 TiB), below ten million in MiB, else
    in bytes. Shares: above 1 they are percent. Durations: 1000 and more are milliseconds, or nanoseconds where those were months.
    """
    if named:
        return named
    found = []
    for value in values:
        try:
            number, unit = number_of(value) if not null(value) else (0.0, "null")
        except UnreadableError:
            continue
        if not unit:
            found.append(number)
    if not found:
        return ""
    largest = max(found)
    if quantity.kind == "bytes":
        if largest <= 1024:
            return "GiB"
        return "MiB" if largest < 1e7 else "B"
    if quantity.kind == "share":
        if largest > 1.0:
            return "%"
        return "1" if any(0 < value < 1 for value in found) or quantity.unit != "%" else "%"
    if quantity.kind == "seconds":
        return "ns" if largest >= DAYS_IN_MS else "ms" if largest >= 1000 else "s" if any(value != int(value) for value in found) else "?"  # fmt: skip
    return quantity.unit


def value_of(quantity: Quantity, value: Any, unit: str) -> Any:
    """The value in the unit of the quantity's column; None for a NULL or for a duration of unknown unit."""
    if null(value):
        return None
    kind = quantity.kind
    if kind == "text":
        if not isinstance(value, (str, int, float)):
            raise UnreadableError(str(value)[:60])
        return _bounded_text(quantity, str(value).strip())
    if kind == "moment":
        found = moment(value.strip().strip("[]") if isinstance(value, str) else value)
        if found is None and isinstance(value, str) and len(value) < 100:
            found = date(value) or of_day(value)
        # a number that is no date counts from a beginning that nobody tells
        counts = isinstance(value, (int, float)) or re.fullmatch(r"[\d.:]+(?:s|m|h)?", str(value).strip())
        if found is None and not counts:
            raise UnreadableError(str(value)[:60])
        return found
    if kind == "age":
        found = parse_age(value) if isinstance(value, str) else float(value)
        if found is None:
            raise UnreadableError(str(value)[:60])
        return found
    if kind == "status":
        return status(value)
    if kind == "index":
        match = _INDEX.fullmatch(str(value).strip())
        if not match:
            raise UnreadableError(str(value)[:60])
        return _bounded(quantity, int(match[1]))
    if kind == "bytes" and isinstance(value, str):
        size = _size(quantity, value, unit)
        return _bounded(quantity, size)
    number, behind = number_of(value)
    if kind == "bytes":
        return _bounded(quantity, _scaled(quantity, number, unit))
    if kind == "share":
        if behind not in ("", "%"):
            raise UnreadableError(str(value)[:60])
        return _bounded(quantity, number / 100 if behind == "%" or unit == "%" else number)
    if kind == "seconds":
        factor = TIME_UNITS.get(behind or unit)
        if behind and factor is None:
            raise UnreadableError(str(value)[:60])
        return None if factor is None else _bounded(quantity, number * factor)
    if kind in ("tokens", "count"):
        if (
            not math.isfinite(number)
            or number != int(number)
            or behind.lower() not in ("", "tokens", "tok", "reqs", "requests", "req")
        ):
            raise UnreadableError(str(value)[:60])
        return _bounded(quantity, int(number))
    return _bounded(quantity, int(number) if quantity.id == "process.pid" else number)


def _size(quantity: Quantity, text: str, unit: str) -> int:
    bare = text.strip()
    size = parse_size(bare, binary=_is_binary(quantity), unit="" if unit == "B" else unit)
    if size is None:
        number, behind = number_of(bare)
        if behind:
            raise UnreadableError(bare[:60])
        size = _scaled(quantity, number, unit)
    return size


def _is_binary(quantity: Quantity) -> bool:
    """Whether `MB` is 2**20: tools of devices and engines print it so; what a host tells means what it says."""
    return quantity.table not in ("process_memory",)


def _scaled(quantity: Quantity, number: float, unit: str) -> int:
    if unit in ("KB", "MB", "GB", "TB"):
        factor = _FACTORS[unit[0] + "iB"] if _is_binary(quantity) else _DECIMAL[unit]
    else:
        factor = _FACTORS.get(unit, 1)
    return round(number * factor)


def _bounded(quantity: Quantity, value: Any) -> Any:
    if not quantity.low <= value <= quantity.high and value != 0:
        raise UnreadableError(str(value)[:60])
    return value


_searched = functools.cache(re.compile)


def _bounded_text(quantity: Quantity, text: str) -> str:
    if quantity.pattern and not _searched(quantity.pattern).search(text):
        raise UnreadableError(text[:60])
    return text[:_TEXT]


# ---- cells of a column

FIT = 0.7  # of the cells of a column must be what its name says


def filled(records: Sequence[Values], name: str) -> list[Any]:
    """The cells of a column that hold something."""
    return [record[name] for record in records if name in record and not null(record[name])]


def share_of(cells: Sequence[Any], fits: Any) -> float:
    """Which share of cells is such; 0 of none."""
    return sum(bool(fits(cell)) for cell in cells) / len(cells) if cells else 0.0


def is_size(cell: Any) -> bool:
    """Whether a cell can be a size: a number, with or without a unit of bytes."""
    return is_number(cell) or (isinstance(cell, str) and parse_size(cell) is not None)


def is_text(cell: Any) -> bool:
    """Whether a cell is words, and no number."""
    return isinstance(cell, str) and not is_number(cell)


def number_or_none(cell: Any) -> float | None:
    """The number of a cell; None for a cell that has none."""
    try:
        return None if null(cell) else number_of(cell)[0]
    except UnreadableError:
        return None


# ---- moments and durations

CLOCK = regex(r"(?:(?P<year>\d{4})[-/])?(?:(?P<month>\d\d?)[-/.](?P<day>\d\d?)[ T])?(?P<hour>\d\d?)(?::(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.\d+)?)?|(?(month)h?|(?!)))")  # fmt: skip
"""A clock, with its day or without; the hour alone is one only behind a day."""
DAYS_BEFORE = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
_DAY_MONTH = regex(r"(?i)(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6},? )?(?:(?P<day>\d\d?)\.? (?P<month>[a-z]{3})[a-z]{0,6}|(?P<month2>[a-z]{3})[a-z]{0,6} (?P<day2>\d\d?))(?:,? (?P<hour>\d\d?):(?P<minute>\d\d))?")  # fmt: skip
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def is_moment(cell: Any) -> bool:
    """Whether a cell is a moment: a date with a clock or without, a clock, a day of a year."""
    return (
        moment(cell) is not None
        or is_day(cell)
        or (isinstance(cell, str) and CLOCK.fullmatch(cell.strip()) is not None)
    )


def is_day(cell: Any) -> bool:
    """Whether a cell is a date, or a day of a year that is not told, with a clock or without."""
    return isinstance(cell, str) and (midnight(cell) is not None or seconds_in_year(cell) is not None)


_DATE = regex(r"\d{4}([-/])\d\d\1\d\d")


def midnight(cell: str) -> float | None:
    """Epoch seconds of the beginning of a bare date; None for anything else.

    >>> midnight("2026-03-02"), midnight("2026-03-02 08:00"), midnight("2026-13-02")
    (1772409600.0, None, None)
    """
    text = cell.strip()
    return moment(f"{text.replace('/', '-')}T00:00:00Z") if _DATE.fullmatch(text) else None


def seconds_in_year(cell: str) -> float | None:
    """Seconds since the year began of a day and month, with a clock or without; the year is not told.

    >>> seconds_in_year("Mon 3 Nov"), seconds_in_year("Jan 2, 06:00"), seconds_in_year("run 3")
    (26438400.0, 108000.0, None)
    """
    match = _DAY_MONTH.fullmatch(cell.strip())
    if match is None or (month := (match["month"] or match["month2"]).lower()) not in MONTHS:
        return None
    days = DAYS_BEFORE[MONTHS.index(month)] + int(match["day"] or match["day2"]) - 1
    return days * 86400.0 + int(match["hour"] or 0) * 3600 + int(match["minute"] or 0) * 60


def of_day(cell: str) -> float | None:
    """Epoch seconds of a month, a day and a clock in the nominal year, as the engine's own stamps count; None for anything else.

    >>> of_day("06-08 02:30") - of_day("06-08 02"), of_day("06-31 02:30"), of_day("02:30"), of_day("08.06 02:30")
    (1800.0, None, None, None)
    """
    found = CLOCK.fullmatch(cell.strip())
    if (
        found is None or found["year"] or not found["month"] or "-" not in cell
    ):  # which of two numbers the month is, a dash alone tells
        return None
    return moment(f"{NOMINAL_YEAR}-{int(found['month']):02}-{int(found['day']):02}T{int(found['hour']):02}:{found['minute'] or '00'}:{found['second'] or '00'}Z")  # fmt: skip


def is_count(cell: Any) -> bool:
    """Whether a cell is a number, a duration or a clock."""
    return is_number(cell) or (isinstance(cell, str) and (parse_age(cell) is not None or CLOCK.fullmatch(cell.strip()) is not None))  # fmt: skip


# ---- sizes of a host and of a device

_MOST = 64 << 40


def size_of(cell: Any, unit: str, binary: bool) -> int | None:
    """A size in bytes; `MB` of a device is 2**20, of a host what it says, and the letter alone is 1024 in all that lists processes."""
    if null(cell) or not isinstance(cell, (str, int, float)):
        return None
    number, behind = number_of(cell) if is_number(cell) else (0.0, "?")
    if behind:
        value = parse_size(str(cell).replace("_", ""), binary=binary or behind in ("K", "M", "G", "T"))
    else:
        factor = _FACTORS.get(unit) or (_FACTORS[unit[0] + "iB"] if binary else _DECIMAL[unit]) if unit else 1
        value = round(number * factor)
    return value if value is not None and 0 <= value <= _MOST else None
