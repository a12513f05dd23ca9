"""Values on their way into columns: lists become arrays of the column's type, and figures that cannot be become NULL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oomdoc.evidence.tables import TABLES
from oomdoc.regexes import regex

_NUMPY_TYPES: dict[str, Any] = {
    "VARCHAR": object,
    "DOUBLE": "float64",
    "BOOLEAN": "bool",
    "UINTEGER": "uint32",
    "INTEGER": "int32",
    "BIGINT": "int64",
    "UBIGINT": "uint64",
}


_MOST: dict[str, float] = {
    "INTEGER": 2**31 - 1,
    "UINTEGER": 2**32 - 1,
    "BIGINT": 2**53,
    "UBIGINT": 2**53,
    "DOUBLE": 1e18,
}
"""What a figure may be: an exabyte or a quintillion of anything is a forged or damaged one, and would overflow sums and products."""


_READ_AGAIN = ("engine_flag.value", "milestone.text")  # texts out of which views read numbers: settings, versions
_ENDLESS = regex(r"[-+]?[\d_]{16,}(?:\.\d*)?$|[-+]?\d+(?:\.\d*)?[eE]\+?\d{2,}$|v?\d+\.[\d.]*\d{7}")


def sane(kind: str, values: Sequence[Any], column: str) -> list[Any]:
    """The values with NULL for figures that cannot be: infinite, without a number, or too large for their column."""
    if column in _READ_AGAIN:
        return [None if value and len(value) > 4 and _ENDLESS.match(value) else value for value in values]
    most = _MOST.get(kind)
    if most is None:
        return list(values)
    least = 0 if kind.startswith("U") else -most
    return [value if value is None or isinstance(value, str) or least <= value <= most else None for value in values]


def sane_array(values: Any) -> Any:
    """The same for an array: floats alone can hold what no column takes."""
    if values.dtype.kind != "f" or not values.size:
        return values
    import numpy as np

    with np.errstate(invalid="ignore"):
        wild = ~(np.abs(np.asarray(values)) <= _MOST["DOUBLE"])
    return np.ma.masked_array(values, mask=np.ma.getmaskarray(values) | wild) if wild.any() else values


def is_array(column: Any) -> bool:
    """Whether a column is one of numpy's, which is not imported to know it."""
    return type(column).__module__.startswith("numpy")


def arrays(table: str, columns: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Lists with None to numpy arrays (masked where NULL), by the column's type; all-NULL columns are left out."""
    import numpy as np

    types = {column.name: column.type for column in TABLES[table].columns}
    found = {}
    for name, values in columns.items():
        kind = _NUMPY_TYPES[types[name]]
        values = sane(types[name], values, f"{table}.{name}")
        missing = [value is None for value in values]
        if all(missing):
            continue
        if kind is object:
            array = np.empty(len(values), dtype=object)
            array[:] = values
            found[name] = array
        elif any(missing):
            found[name] = np.ma.masked_array(
                np.array([0 if value is None else value for value in values], dtype=kind), mask=missing
            )
        else:
            found[name] = np.array(values, dtype=kind)
    return found
