"""Memory over time, as people keep it in tables of their own.

A *series* has a column of memory and an order (a time, hours since a start, rounds, requests done, states); what stands beside it
(load, phase, process, total) goes with each sample, and what distinguishes its columns (`prefix_on`, `0_8_0`) is the variant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oomdoc.ingest.forms import grammar
from oomdoc.ingest.forms.cells import (
    FIT,
    Values,
    filled,
    is_count,
    is_moment,
    is_number,
    is_size,
    null,
    number_of,
    number_or_none,
    seconds_in_year,
    share_of,
)
from oomdoc.ingest.forms.grammar import Column
from oomdoc.ingest.request_keys import moment
from oomdoc.ingest.vocabulary import foreign_program

_FOREIGN = 2  # columns of another program's table


@dataclass(frozen=True)
class Series:
    """Which column is what in a table of memory over time."""

    memory: tuple[tuple[str, Column, str], ...]  # name, what it is, the unit of bare cells
    totals: tuple[tuple[str, Column, str], ...]
    axis: str = ""
    role: str = ""
    seconds: float = 0.0
    state: str = ""
    who: tuple[str, ...] = ()
    variant: tuple[str, ...] = ()
    running: str = ""
    requests: str = ""


def series_of(records: Sequence[Values], columns: Mapping[str, Column], tables: frozenset[str]) -> Series | None:
    """The series that some records are; None for another table."""
    if "request" in tables or len(records) < 2:
        return None
    sizes = [
        (
            name,
            column,
            share_unit(filled(records, name))
            if column.unit == "%"
            else column.unit or usual_unit(filled(records, name)),
        )
        for name, column in columns.items()
        if column.role in (grammar.MEMORY, grammar.TOTAL) and share_of(filled(records, name), is_size) >= FIT
    ]
    memory = tuple(size for size in sizes if size[1].role == grammar.MEMORY and (size[1].unit or size[1].resource))
    if not memory or sum(bool(foreign_program(name)) for name in columns) >= _FOREIGN:
        return None
    found: dict[str, str] = {}
    texts: list[str] = []
    who: list[str] = []
    for name, column in columns.items():
        cells = filled(records, name)
        role = column.role
        if role in (grammar.ELAPSED, grammar.ORDINAL, grammar.STATE) and share_of(cells, lambda cell: isinstance(cell, str) and seconds_in_year(cell) is not None) >= FIT:  # fmt: skip
            role = grammar.TIME  # `Mon 3 Nov` under `day`
        if role == grammar.TIME and share_of(cells, is_moment) < FIT:
            role = grammar.ELAPSED if share_of(cells, is_number) >= FIT else grammar.STATE
        elif role == grammar.ELAPSED and share_of(cells, lambda cell: moment(cell) is not None) >= FIT:
            role = grammar.TIME
        elif role in (grammar.ELAPSED, grammar.ORDINAL, grammar.REQUESTS, grammar.RUNNING) and share_of(cells, is_count) < FIT:  # fmt: skip
            role = grammar.STATE if role in (grammar.ELAPSED, grammar.ORDINAL) else ""
        elif role == grammar.RUNNING and "%" in name:
            role = ""  # a share of time in which a device was busy
        elif role == grammar.STATE and share_of(cells, is_number) >= FIT:
            role = grammar.ORDINAL
        if role == grammar.STATE:
            texts.append(name)
        elif role == grammar.WHO:
            who.append(name)
        elif role:
            found.setdefault(role, name)
    axis_role = next((role for role in (grammar.TIME, grammar.ELAPSED, grammar.ORDINAL, grammar.REQUESTS) if role in found), "")  # fmt: skip
    axis = found.get(axis_role, "")
    states = {column.state for _, column, _ in memory if column.state}
    varied = tuple(name for name, column in columns.items() if column.role == grammar.SETTING)
    if axis_role in (grammar.ORDINAL, grammar.REQUESTS) and not texts and len({str(cell) for cell in filled(records, axis)}) < min(3, len(records)):  # fmt: skip
        axis = axis_role = ""
    named = bool(who or varied)
    if not (axis or texts or (len(states) >= 2 and named) or (states and len(who) >= 2)):
        return None
    if varied and not axis and not texts and len(states) < 2:
        return None  # an experiment
    known = "gpu_sample" in tables or "process_memory" in tables or "gpu_process" in tables
    beside = grammar.RUNNING in found or grammar.REQUESTS in found or any(column.variant or column.state for _, column, _ in memory)  # fmt: skip
    clocked = axis_role == grammar.TIME and share_of(filled(records, axis), lambda cell: moment(cell) is None) >= FIT
    if known and not beside and not clocked and axis_role != grammar.ELAPSED:
        return None  # the vocabulary has all of it
    if axis_role == grammar.ORDINAL and not texts and not beside and all(not column.resource for _, column, _ in memory):  # fmt: skip
        return None  # `index, memory.used`: a list, and no series
    return Series(
        memory, tuple(size for size in sizes if size[1].role == grammar.TOTAL), axis, axis_role,
        columns[axis].seconds if axis else 0.0, texts[0] if texts else "", tuple(who), varied,
        found.get(grammar.RUNNING, ""), found.get(grammar.REQUESTS, ""),
    )  # fmt: skip


def usual_unit(cells: Sequence[Any]) -> str:
    """The unit of sizes that name none, by how large they are, as `cells.unit_of` does."""
    found = [number_of(cell)[0] for cell in cells if is_number(cell)]
    if not found:
        return ""
    return "GiB" if max(found) <= 1024 else "MiB" if max(found) < 1e7 else "B"


WHOLE = {"%": 100.0, "1": 1.0}


def share_unit(cells: Sequence[Any]) -> str:
    """Percent, or shares of one: no column in percent stays at one and below, with digits behind the point."""
    numbers = [number_of(cell)[0] for cell in cells if is_number(cell)]
    return "1" if numbers and max(numbers) <= 1 and any(number != int(number) for number in numbers) else "%"


def share_cell(cell: Any, unit: str) -> float | None:
    """A share of one: of a cell in percent, or of one that is a share of one itself."""
    number = number_or_none(cell)
    whole = WHOLE["%"] if isinstance(cell, str) and cell.strip().endswith("%") else WHOLE[unit]
    return round(number / whole, 6) if number is not None and 0 <= number <= whole else None


def named_cells(names: Sequence[str], values: Values) -> str:
    """What some cells say together, numbers with the names of their columns."""
    found = [f"{name} {values[name]}" if is_number(values[name]) else str(values[name]) for name in names if not null(values.get(name))]  # fmt: skip
    return " ".join(found)[:200]
