"""Memory over time, as people keep it in tables of their own.

A *series* has a column of memory and an order (a time, hours since a start, rounds, requests done, states); what stands beside it
(load, phase, process, total) goes with each sample, and what distinguishes its columns (`prefix_on`, `0_8_0`) is the variant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oomdoc.ingest.base import TEXT_CAP, Rows
from oomdoc.ingest.forms import grammar
from oomdoc.ingest.forms.cells import (
    CLOCK,
    DAYS_BEFORE,
    FIT,
    Values,
    filled,
    is_count,
    is_day,
    is_moment,
    is_number,
    is_size,
    midnight,
    null,
    number_of,
    number_or_none,
    seconds_in_year,
    share_of,
    size_of,
)
from oomdoc.ingest.forms.grammar import Column
from oomdoc.ingest.request_keys import moment
from oomdoc.ingest.vocabulary import foreign_program
from oomdoc.ingest.vocabulary.words import BYTES, TIME_UNITS
from oomdoc.regexes import regex
from oomdoc.units import parse_age

_FOREIGN = 2  # columns of another program's table
_RUNS = 4  # numbers in order by chance: one of 24
HEADING = "(heading)"
"""Under this name a record holds what stands above its table, where several tables of one text have the same columns."""


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
    restarts: str = ""
    """A count of restarts: between two of them lies a life, which is a series of its own and not one that gave back."""


_GIGABYTE = 1e9
_MEGABYTE = 1e6


def _in_bytes(cells: Sequence[Any]) -> bool:
    """Whether bare numbers are bytes of something that holds a model or a host: no other unit makes them as large."""
    numbers = [number for cell in cells if (number := number_or_none(cell)) is not None]
    return (
        len(numbers) > 1
        and sorted(numbers)[len(numbers) // 2] >= _GIGABYTE
        and all(number == int(number) for number in numbers)
    )


def _of_program(name: str, column: Column, cells: Sequence[Any]) -> Column | None:
    """A column of bare bytes that is called after a program, beside memory of the host in bytes: what that program holds; None for any other."""
    if (
        column.role != grammar.FIGURE
        or column.unit
        or not _PROGRAM.fullmatch(name)
        or grammar.is_size_of_something(name)
    ):
        return None
    numbers = [number_or_none(cell) for cell in cells]
    if any(number is None or number != int(number) or 0 < number < _MEGABYTE for number in numbers):
        return None
    largest = max((number or 0 for number in numbers), default=0)
    return Column(grammar.MEMORY, "host", "B", who=name) if largest >= 100 * _MEGABYTE else None


_OF_CLUSTER = regex(r"\d+(?:\.\d+)?[KMGT]i")
"""A quantity as Kubernetes writes it, of which `kubectl top` prints nothing but containers' memory."""


def _by_cells(column: Column, cells: Sequence[Any]) -> Column:
    """A column of somebody's memory whose cells tell the unit, and with it what memory it is where only one tool writes so."""
    if column.role != grammar.MEMORY or column.unit or column.resource or not column.who:
        return column
    if share_of(cells, lambda cell: bool(_OF_CLUSTER.fullmatch(str(cell).strip()))) >= FIT:
        return column._replace(resource="host")
    units = {number_of(cell)[1] for cell in cells if is_number(cell)}
    return column._replace(unit=min(units)) if units and units <= set(BYTES) else column


_PROGRAM = regex(r"[A-Za-z][A-Za-z0-9.]{1,40}(?:[-_][A-Za-z0-9.]{1,40}){0,4}")


def series_of(records: Sequence[Values], columns: Mapping[str, Column], tables: frozenset[str]) -> Series | None:
    """The series that some records are; None for another table."""
    if "request" in tables or len(records) < 2:
        return None
    columns = grammar.of_group(grammar.of_free(columns))
    if any(column.role == grammar.MEMORY and column.resource == "host" and column.who for column in columns.values()):
        columns = {name: grammar.by_company(name, column) or column for name, column in columns.items()}
    if any(column.role == grammar.MEMORY and column.resource.startswith("host") and not column.unit and _in_bytes(filled(records, name)) for name, column in columns.items()):  # fmt: skip
        columns = {name: _of_program(name, column, filled(records, name)) or column for name, column in columns.items()}
    columns = {name: _by_cells(column, filled(records, name)) for name, column in columns.items()}
    sizes = [
        (name, column, _unit_of(column, filled(records, name)))
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
        if role in (grammar.ELAPSED, grammar.ORDINAL, grammar.STATE) and share_of(cells, is_day) >= FIT:
            role = grammar.TIME  # `Mon 3 Nov` or `2026-11-03` under `day`
        if (
            role == grammar.ORDINAL
            and share_of(cells, _is_epoch if "epoch" in grammar.pieces(name) else _is_stamp) >= FIT
        ):
            role = (
                grammar.TIME
            )  # seconds since 1970 and no pass over a data set, or a `sample` that is known by its moment
        if role == grammar.TIME and share_of(cells, is_moment) < FIT:
            role = grammar.ELAPSED if share_of(cells, is_number) >= FIT else grammar.STATE
        elif role == grammar.ELAPSED and share_of(cells, lambda cell: moment(cell) is not None) >= FIT:
            role = grammar.TIME
        elif role in (grammar.ELAPSED, grammar.ORDINAL, grammar.REQUESTS, grammar.RUNNING) and share_of(cells, is_count) < FIT:  # fmt: skip
            role = grammar.STATE if role in (grammar.ELAPSED, grammar.ORDINAL) else ""
        elif role == grammar.RUNNING and "%" in name:
            role = ""  # a share of time in which a device was busy
        elif (role == grammar.STATE and share_of(cells, is_number) >= FIT) or (
            role == grammar.WHO and _counts_runs(name, cells)
        ):
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
    if known and not beside and not clocked and axis_role != grammar.ELAPSED and not of_both(memory):
        return None  # the vocabulary has all of it
    if axis_role == grammar.ORDINAL and not texts and not beside and all(not column.resource for _, column, _ in memory):  # fmt: skip
        return None  # `index, memory.used`: a list, and no series
    if any(HEADING in record for record in records):
        varied = (*varied, HEADING)
    return Series(
        memory, tuple(size for size in sizes if size[1].role == grammar.TOTAL), axis, axis_role,
        columns[axis].seconds if axis else 0.0, texts[0] if texts else "", tuple(who), varied,
        found.get(grammar.RUNNING, ""), found.get(grammar.REQUESTS, ""),
        next((name for name in records[0] if _counts_lives(name, filled(records, name))), ""),
    )  # fmt: skip


def of_both(memory: Sequence[tuple[str, Column, str]]) -> bool:
    """Whether memory of the host stands beside that of a device, which is one row of two in the vocabulary."""
    return {"host", "gpu"} <= {column.resource for _, column, _ in memory}


def _is_epoch(cell: Any) -> bool:
    return moment(cell) is not None


def _is_stamp(cell: Any) -> bool:
    return not is_number(cell) and moment(cell) is not None


_LIFE_ROWS = 5
"""Points of a life that show a shape: as many as `memory_trend` asks of a series."""


def _counts_lives(name: str, cells: Sequence[Any]) -> bool:
    """Whether a column counts restarts, with so many rows between two of them that each life has a course.

    >>> _counts_lives("restarts", ["3"] * 6 + ["4"] * 5), _counts_lives("restarts", ["1", "2", "3"]), _counts_lives("restarts", ["3"] * 9), _counts_lives("requests", ["3"] * 6 + ["4"] * 5)
    (True, False, False, False)
    """
    if not {"restarts", "restart"} & set(grammar.pieces(name)) or share_of(cells, is_count) < 1:
        return False
    numbers = [number_of(cell)[0] for cell in cells]
    return numbers == sorted(numbers) and len(set(numbers)) > 1 and len(numbers) >= _LIFE_ROWS * len(set(numbers))


def _counts_runs(name: str, cells: Sequence[Any]) -> bool:
    """Whether a column numbers runs that were done one after the other, a row or two of each; with more rows each is a series.

    >>> _counts_runs("run", ["0", "1", "1", "2", "2", "3"]), _counts_runs("run", ["1", "1", "1", "2", "2", "2"]), _counts_runs("gpu", ["0", "1", "2", "3"])
    (True, False, False)
    """
    if grammar.pieces(name) not in (["run"], ["run", "number"], ["run", "no"]) or share_of(cells, is_count) < 1:
        return False
    numbers = [number_of(cell)[0] for cell in cells]
    return numbers == sorted(numbers) and len(set(numbers)) >= _RUNS and len(numbers) <= 2 * len(set(numbers))


def _unit_of(column: Column, cells: Sequence[Any]) -> str:
    return share_unit(cells) if column.unit == "%" else column.unit or usual_unit(cells)


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


def _share_cell(cell: Any, unit: str) -> float | None:
    """A share of one: of a cell in percent, or of one that is a share of one itself."""
    number = number_or_none(cell)
    whole = WHOLE["%"] if isinstance(cell, str) and cell.strip().endswith("%") else WHOLE[unit]
    return round(number / whole, 6) if number is not None and 0 <= number <= whole else None


def _named_cells(names: Sequence[str], values: Values) -> str:
    """What some cells say together, numbers with the names of their columns."""
    found = [f"{name} {values[name]}" if is_number(values[name]) else str(values[name]) for name in names if not null(values.get(name))]  # fmt: skip
    return " ".join(found)[:200]


_OWN_FIRST = (("rss", "anon", "anonymous", "uss", "pss", "resident"), ("working", "wset", "ws"))
"""What a process holds itself, and what a container holds without the files that its kernel gives up; behind them all that is counted."""


def _further(memory: Sequence[tuple[str, Column, str]]) -> frozenset[str]:
    """Columns that measure once more what another one of the row measures: two measures of one holder are two series, and the narrowest has its name."""
    alike: dict[tuple[Any, ...], list[str]] = {}
    for name, column, _ in memory:
        if column.resource == "host":
            alike.setdefault((column.who, column.gpu, column.state, column.variant), []).append(name)

    def rank(name: str) -> int:
        pieces = set(grammar.pieces(name))
        return next((at for at, words in enumerate(_OWN_FIRST) if pieces & set(words)), len(_OWN_FIRST))

    return frozenset(name for names in alike.values() for name in sorted(names, key=rank)[1:])


_BOUNDS = {"shm": "shm-size", "container": "container-limit"}


class SeriesRows:
    """Makes the rows of one series: `process_memory`."""

    def __init__(self, rows: Rows, series: Series) -> None:
        self._rows, self._series = rows, series
        self._first: float | None = None
        self._last = 0.0
        self._days = 0
        self._said: dict[str, int] = {}
        self._further = _further(series.memory)

    def add(self, line: int, values: Values) -> None:
        """The samples of one record."""
        series = self._series
        if series.role == grammar.TIME and null(values.get(series.axis)):
            return  # what rows with a moment come to
        t, elapsed, step = self._when(values.get(series.axis)) if series.axis else (None, None, None)
        who = _named_cells(series.who, values)
        varied = " ".join(str(values.get(name)) for name in series.variant if not null(values.get(name)))
        if series.restarts:
            varied = " ".join(part for part in (varied, _named_cells((series.restarts,), values)) if part)
        gpu = number_or_none(values.get(next((name for name in series.who if set(grammar.pieces(name)) & {"gpu", "device", "card"}), "")))  # fmt: skip
        running = number_or_none(values.get(series.running)) if series.running else None
        requests = number_or_none(values.get(series.requests)) if series.requests else None
        state = values.get(series.state) if series.state else None
        self._bounds(line, values)
        for name, column, unit in series.memory:
            binary = column.resource == "gpu" or unit[1:2] == "i"
            share = _share_cell(values.get(name), unit) if unit in WHOLE else None
            size = None if unit in WHOLE else size_of(values.get(name), unit, binary)
            if size is None and share is None:
                continue
            device = column.gpu if column.gpu is not None else None if gpu is None else int(gpu)
            label = " ".join(part for part in (column.who, who) if part)
            if not label and column.resource == "gpu" and device is not None:
                label = f"GPU {device}"
            if not label and len(series.memory) > 1 and not column.state:
                label = name
            elif label and name in self._further:
                label = f"{label} {name}"
            resource = column.resource or self._beside(device)
            shown = " ".join(str(part) for part in (column.state, state) if part and not null(part)) or None
            self._rows.add(
                "process_memory", line, t=t, name=label or None, state=shown[:TEXT_CAP] if shown else None, resource=resource, bytes=size, share=share,
                elapsed_s=elapsed, step=step, running=running, requests=requests, variant=" ".join(part for part in (column.variant, varied) if part)[:200] or None,
            )  # fmt: skip

    def _bounds(self, line: int, values: Values) -> None:
        """How large the mount of shared memory is, and the limit of a group: said once, and again where it changes."""
        for name, column, unit in self._series.totals:
            topic = _BOUNDS.get(column.resource)
            size = size_of(values.get(name), unit, unit[1:2] == "i") if topic else None
            if topic and size and size != self._said.get(topic):
                self._said[topic] = size
                self._rows.add("note", line, topic=topic, value=float(size), text=f"{name} {values.get(name)}"[:TEXT_CAP])  # fmt: skip

    def _beside(self, device: float | None) -> str | None:
        """Whose memory a column is that does not say so: what stands beside it does. A device has a size, a container has a limit.

        `docker stats` leaves out the files that the kernel gives up before it kills, as a working set does.
        """
        if device is not None or any(column.resource == "gpu" for _, column, _ in self._series.totals):
            return "gpu"
        return "host" if any("limit" in grammar.pieces(name) for name, _, _ in self._series.totals) else None

    def _when(self, cell: Any) -> tuple[float | None, float | None, int | None]:
        """Time, seconds since the first sample or a beginning, and the number in an order."""
        if null(cell):
            return None, None, None
        if self._series.role == grammar.TIME:
            t = moment(cell)
            if t is None:
                t = midnight(str(cell))
            if t is not None:
                return t, None, None
            match = CLOCK.fullmatch(str(cell).strip())
            if match is None:
                day = seconds_in_year(str(cell))
                return None, None if day is None else self._since(day), None
            seconds = int(match["hour"]) * 3600.0 + int(match["minute"] or 0) * 60 + int(match["second"] or 0)
            if match["month"] and 1 <= int(match["month"]) <= 12:
                t = moment(f"{match['year']}-{int(match['month']):02}-{int(match['day']):02} {int(match['hour']):02}:{match['minute'] or '00'}:{match['second'] or '00'}") if match["year"] else None  # fmt: skip
                if t is not None:
                    return t, None, None
                seconds += 86400 * (DAYS_BEFORE[int(match["month"]) - 1] + int(match["day"]))
            elif self._first is not None and seconds + 86400 * self._days < self._last - 3600:
                self._days += 1
            return None, self._since(seconds + 86400 * (0 if match["month"] else self._days)), None
        if self._series.role == grammar.ELAPSED:
            if is_number(cell):
                number, behind = number_of(cell)
                factor = TIME_UNITS.get(behind.lower()) if behind else self._series.seconds or 1.0
                return None, None if factor is None else number * factor, None
            age = parse_age(str(cell))
            match = CLOCK.fullmatch(str(cell).strip())
            if age is None and match is not None:
                age = int(match["hour"]) * 3600.0 + int(match["minute"] or 0) * 60 + int(match["second"] or 0)
            return None, age, None
        return None, None, round(number_of(cell)[0]) if is_number(cell) else None

    def _since(self, seconds: float) -> float:
        if self._first is None:
            self._first = seconds
        self._last = seconds
        return seconds - self._first
