"""What a quantity of the vocabulary is made of."""

from __future__ import annotations

from dataclasses import dataclass

from oomdoc.evidence.tables import TABLES

KINDS = ("bytes", "share", "seconds", "tokens", "count", "number", "index", "moment", "age", "text", "status")
"""What a value can be."""


@dataclass(frozen=True, eq=False)
class Quantity:
    """One quantity.

    `column` is the column of `table` that it fills; `+` before it marks a help to fill others (a bus address that tells the
    device), `:` the name of a row (a metric, a figure) whose value it is. `low` and `high` bound what is plausible, in the unit of the column. `unit` is what bare numbers
    are in; "" = told by their size, and with `needs_unit` a bare number is another quantity. A `counter` only grows; a gauge
    does not. A text must have `pattern` in it. What proves it stands in `samples.toml`: names with cells and values, and near misses.
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

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"quantity {self.id} is of unknown kind {self.kind}")
        if self.table not in TABLES or (
            self.column[:1] not in "+:" and self.column not in TABLES[self.table].column_names
        ):
            raise ValueError(f"quantity {self.id} fills an unknown column {self.table}.{self.column}")
