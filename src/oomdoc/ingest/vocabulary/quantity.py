"""What a quantity of the vocabulary is made of, and the files that list them: one a theme, refused where a quantity has no samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import tomli

from oomdoc.evidence.tables import TABLES

KINDS = ("bytes", "share", "seconds", "tokens", "count", "number", "index", "moment", "age", "text", "status")
"""What a value can be."""


@dataclass(frozen=True, eq=False)
class Quantity:
    """One quantity.

    `column` is the column of `table` that it fills; `+` before it marks a help to fill others (a bus address that tells the
    device), `:` the name of a row (a metric, a figure) whose value it is. `low` and `high` bound what is plausible, in the unit of the column. `unit` is what bare numbers
    are in; "" = told by their size, and with `needs_unit` a bare number is another quantity. A `counter` only grows; a gauge
    does not. A text must have `pattern` in it. `samples` are names with a cell and the value in the column (a size may be written
    with its unit), `not_names` near misses: what proves it.
    """

    id: str
    table: str
    column: str
    kind: str
    strong: str = ""
    weak: str = ""
    exact: str = ""
    unit: str = ""
    low: float = 0.0
    high: float = float("inf")
    counter: bool = False
    pattern: str = ""
    needs_unit: bool = False
    samples: tuple[tuple[str, Any, Any], ...] = ()
    not_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"quantity {self.id} is of unknown kind {self.kind}")
        if self.table not in TABLES or (
            self.column[:1] not in "+:" and self.column not in TABLES[self.table].column_names
        ):
            raise ValueError(f"quantity {self.id} fills an unknown column {self.table}.{self.column}")


THEMES = ("moment", "device", "process", "request", "engine", "memory", "host", "events", "scaling", "segments")
_ENGINE = ":vllm:"


def listed() -> Iterator[Quantity]:
    """Every quantity of every theme's file, in their order; ValueError for one without samples or near misses."""
    for theme in THEMES:
        for name, entry in read(theme).items():
            yield quantity_of(name, entry)


def quantity_of(name: str, entry: Mapping[str, Any]) -> Quantity:
    """One entry of a theme's file: `fills` is `table.column`, the rest the fields of a `Quantity`."""
    told = dict(entry)
    table, _, column = told.pop("fills").partition(".")
    samples = tuple((*sample,) for sample in told.pop("samples", ()))
    not_names = tuple(told.pop("not_names", ()))
    if not samples or not not_names:
        raise ValueError(f"quantity {name} has no samples, or no near misses")
    if column.startswith(_ENGINE):
        told = _metric(column[1:], told)
    return Quantity(name, table, column, samples=samples, not_names=not_names, **told)


def _metric(name: str, told: Mapping[str, Any]) -> dict[str, Any]:
    """A metric of the engine: its names with `vllm:` and `vllm_`, those without a prefix, and what other exporters call it."""
    share = told["kind"] == "share"
    bare = name.removeprefix(_ENGINE[1:])
    names = [name, f"vllm_{bare}", bare, *told.get("exact", "").split(", ")]
    names += [each for each, same in exporters().items() if same == name]
    exact = ", ".join(f"{entry}=1" if share else entry for entry in names if entry)
    return {**told, "exact": exact, "unit": "1" if share else ""}


@cache
def exporters() -> Mapping[str, str]:
    """Metrics of other engines and the name under which their samples are kept: rules ask for a quantity, not for an exporter."""
    return read("exporters")


@cache
def read(name: str) -> Mapping[str, Any]:
    """One file of this folder."""
    return tomli.loads((Path(__file__).parent / f"{name}.toml").read_text(encoding="utf-8"))
