"""What a cell says: sizes, shares, durations, counts, moments, names; and the unit of a column whose cells name none.

A value comes as text, or as JSON's own number. NULL is None; what should be a number and is none is `UnreadableError`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from oomdoc.ingest.nvidia_smi_cells import date
from oomdoc.ingest.request_keys import moment, status
from oomdoc.ingest.vocabulary import Quantity
from oomdoc.intake.columns import is_null
from oomdoc.units import GIB, KIB, MIB, parse_age, parse_size

_NUMBER = re.compile(
    r"(-?(?:0,\d{1,9}|\d{1,3}(?:[, ']\d{3})+|\d{1,18})?(?:\.\d{1,18})?(?:[eE][+-]?\d{1,3})?)\s*(%|[A-Za-zµ/]{1,12})?"
)
_COMMA = re.compile(r"-?0,\d{1,9}")  # no thousands begin with nought
_INDEX = re.compile(r"(?:(?:gpu|cuda|device|card|nvidia|npu)[ _:#\[]*)?(\d{1,4})\]?", re.I)
_NULLS = frozenset(
    ("", "-", "--", "n/a", "[n/a]", "na", "null", "none", "nan", "unknown", "?", "<none>", "<unset>", "<unknown>")
)
_SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "secs": 1.0,
    "seconds": 1.0,
    "m": 60.0,
    "min": 60.0,
}
_FACTORS = {"B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": 1024 * GIB}
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
                plain = match[1].replace(",", ".") if _COMMA.fullmatch(match[1]) else re.sub(r"[, ']", "", match[1])
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
    in bytes. Shares: above 1 they are percent. Durations: 1000 and more are milliseconds.
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
        return "ms" if largest >= 1000 else "s" if any(value != int(value) for value in found) else "?"
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
        found = moment(value) if not isinstance(value, str) else moment(value.strip().strip("[]"))
        if found is None and isinstance(value, str) and len(value) < 100:
            found = date(value)
        if found is None and isinstance(value, str) and re.fullmatch(r"[\d.:]+(?:s|m|h)?", value.strip()):
            return None  # counts from a beginning that nobody tells
        if found is None and isinstance(value, (int, float)):
            return None
        if found is None:
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
        factor = _SECONDS.get(behind) if behind else _SECONDS.get(unit)
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
    size = parse_size(bare, binary=_is_binary(quantity), unit=_spelled(unit))
    if size is None:
        number, behind = number_of(bare)
        if behind:
            raise UnreadableError(bare[:60])
        size = _scaled(quantity, number, unit)
    return size


def _is_binary(quantity: Quantity) -> bool:
    """Whether `MB` is 2**20: tools of devices and engines print it so; what a host tells means what it says."""
    return quantity.table not in ("process_memory",)


def _spelled(unit: str) -> str:
    return "" if unit in ("", "B") else unit


def _scaled(quantity: Quantity, number: float, unit: str) -> int:
    if unit in ("KB", "MB", "GB", "TB"):
        factor = {"K": KIB, "M": MIB, "G": GIB, "T": 1024 * GIB}[unit[0]]
        if not _is_binary(quantity):
            factor = {"K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}[unit[0]]
    else:
        factor = _FACTORS.get(unit, 1)
    return round(number * factor)


def _bounded(quantity: Quantity, value: Any) -> Any:
    if not quantity.low <= value <= quantity.high and value != 0:
        raise UnreadableError(str(value)[:60])
    return value


def _bounded_text(quantity: Quantity, text: str) -> str:
    if quantity.pattern and not _searched(quantity.pattern).search(text):
        raise UnreadableError(text[:60])
    return text[:_TEXT]


_compiled: dict[str, re.Pattern[str]] = {}


def _searched(pattern: str) -> re.Pattern[str]:
    found = _compiled.get(pattern)
    if found is None:
        found = _compiled[pattern] = re.compile(pattern)
    return found


# ---- numbers with a decimal comma

_COMMA = re.compile(r"-?(?:0|[1-9]\d{0,2}(?:\.\d{3})*),(?:\d{1,2}|\d{4,9})|-?0,\d{1,9}")
_POINT = re.compile(r"-?\d{1,12}\.(?:\d{1,2}|\d{4,9})|-?[1-9]\d{0,2}(?:,\d{3})+")
_WITH_COMMA = re.compile(r"(?P<number>-?\d{1,3}(?:\.\d{3})+(?:,\d{1,9})?|-?\d{1,12},\d{1,9})(?P<unit> ?[A-Za-z%]{0,8})")


def writes_commas(records: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the numbers of a table have a decimal comma: some can be nothing else, and none has a point for it."""
    cells = [cell.strip() for record in records for cell in record.values() if isinstance(cell, str)]
    return any(_COMMA.fullmatch(cell) for cell in cells) and not any(_POINT.fullmatch(cell) for cell in cells)


def with_points(values: Mapping[str, Any]) -> dict[str, Any]:
    """A record of such a table with its numbers as the rest of this program reads them."""
    return {name: _pointed(cell) if isinstance(cell, str) else cell for name, cell in values.items()}


def _pointed(cell: str) -> str:
    match = _WITH_COMMA.fullmatch(cell.strip())
    return match["number"].replace(".", "").replace(",", ".") + match["unit"] if match else cell
