"""Numbers that a query compares with: each with a name, a unit, a reason and a source, written once and named in SQL as `$name`.

    [[threshold]]
    name   = "pool_pinned"
    value  = 0.95
    unit   = "share of the pool"
    why    = "what is left of a pool of this fill is less than one request of the usual length"
    source = "recordings of eleven servers that preempted: the first preemption came between 0.94 and 0.99"

`views/thresholds.toml` holds those that several queries share; a rule file may declare its own before its evidence. A name is
replaced by its value when the file is read, so that nothing of this is left in what DuckDB is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import tomli

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_PLACE = re.compile(r"\$([a-z][a-z0-9_]*)")
KEYS = ("name", "value", "unit", "why", "source")


@dataclass(frozen=True)
class Threshold:
    """A number that is compared with: `value` in `unit`, why it is that one (`why`), and what says so (`source`)."""

    name: str
    value: float | int
    unit: str
    why: str
    source: str

    @property
    def sql(self) -> str:
        """The number as SQL writes it: whole numbers without a point."""
        return repr(self.value)


def read(items: Iterable[Mapping[str, Any]]) -> Mapping[str, Threshold]:
    """Thresholds by name; ValueError, in a sentence, for one that lacks its reason or repeats a name."""
    found: dict[str, Threshold] = {}
    for item in items:
        name = str(item.get("name", ""))
        if not _NAME.fullmatch(name):
            raise ValueError(f"threshold {name!r}: a name is small letters, digits and underscores")
        for key in item:
            if key not in KEYS:
                raise ValueError(f"threshold {name!r} has no key {key!r}")
        for key in KEYS[2:]:
            if not isinstance(item.get(key), str) or not item[key].strip():
                raise ValueError(f"threshold {name!r} lacks its {key}")
        value = item.get("value")
        if not isinstance(value, (int, float)) or isinstance(value, bool) or value != value or abs(value) > 2**62:
            raise ValueError(f"threshold {name!r}: value is no number")
        if name in found:
            raise ValueError(f"threshold {name!r} is declared twice")
        found[name] = Threshold(name, value, item["unit"], item["why"], item["source"])
    return found


def filled(sql: str, known: Mapping[str, Threshold]) -> str:
    """A query with the values of the thresholds it names; KeyError with the name of one that nobody declares.

    >>> filled("SELECT used > $most", read([dict(name="most", value=0.9, unit="share", why="because", source="here")]))
    'SELECT used > 0.9'
    """
    return _PLACE.sub(lambda match: known[match[1]].sql, sql) if "$" in sql else sql


def names_in(sql: str) -> frozenset[str]:
    """The thresholds that a query, as written, names."""
    return frozenset(_PLACE.findall(sql))


def _shared() -> Mapping[str, Threshold]:
    text = Path(__file__).with_name("thresholds.toml").read_text("utf-8")
    return MappingProxyType(dict(read(tomli.loads(text)["threshold"])))


SHARED: Mapping[str, Threshold] = _shared()
"""Those that views and several rules share, in the order of the file."""
