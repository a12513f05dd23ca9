"""What every ingestor is made of: the head of a source, batches of typed columns, and patterns that are data.

An ingestor is a module with `KIND`, `matches(head)` and `read(path, chunks)`. `read` streams, raises for nothing
in the data, never guesses (unknown is NULL) and yields a `problem` row for what it ought to have understood. It converts
units once, at the door. This module knows neither DuckDB nor rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from oomdoc.evidence.tables import LOOKALIKE, TABLES, Batch
from oomdoc.ingest.record import decode, peel
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex
from oomdoc.units import parse_size

HEAD_BYTES = 64 << 10
_HEAD_LINES = 400
_RAW_CAP = 2000
TEXT_CAP = 400


class Rows:
    """Collects rare rows one by one for several tables and hands them out as batches."""

    def __init__(self) -> None:
        self._tables: dict[str, dict[str, list[Any]]] = {}
        self._ready: list[Batch] = []
        self.count = 0

    def add(self, table: str, line: int, **values: Any) -> None:
        """Append one row; a name that the table does not have is a bug and raises KeyError."""
        columns = self._tables.get(table)
        if columns is None:
            names = ("line",) if table == LOOKALIKE else TABLES[table].column_names[1:]
            columns = self._tables[table] = {name: [] for name in names}
        for name, column in columns.items():
            column.append(line if name == "line" else values.pop(name, None))
        if values:
            raise KeyError(f"table {table} has no column {', '.join(sorted(values))}")
        self.count += 1

    def add_columns(self, table: str, columns: Mapping[str, Any]) -> None:
        """Append many rows as columns: arrays, or lists where there are few."""
        self._ready.append(Batch(table, columns))
        self.count += len(columns["line"])

    def problem(self, line: int, reason: str, text: str) -> None:
        """Note a place that ought to have been understood and was not."""
        self.add("problem", line, reason=reason, text=text[:200])

    def take(self) -> Iterator[Batch]:
        """Hand out what was collected so far and begin anew."""
        tables, self._tables = self._tables, {}
        ready, self._ready, self.count = self._ready, [], 0
        for name, columns in tables.items():
            yield Batch(name, columns)
        yield from ready


@dataclass(frozen=True)
class Head:
    """The beginning of a source, by which its kind is recognised; never decide by the path.

    `data` holds at most 64 KiB as they are; `lines` the first 400 lines of it as text, outer envelopes (docker JSON, CRI,
    time stamps, pod prefixes, ANSI colour) peeled off; `path` is there for the few formats that carry a time in it.
    """

    path: str
    data: bytes

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """Peeled by the first who asks: 2 ms, and most small sources are known by their bytes."""
        lines = self.data.split(b"\n", _HEAD_LINES)[:_HEAD_LINES]
        return tuple(peel(decode(line[:4096]))[0] for line in lines)

    @cached_property
    def raw(self) -> tuple[str, ...]:
        """The first 400 lines as they stand, blank ones too, each cut at 2,000 characters: what a person would see."""
        lines = self.data.split(b"\n", _HEAD_LINES)[:_HEAD_LINES]
        return tuple(line[:_RAW_CAP].decode("utf-8", "replace").rstrip("\r") for line in lines)

    @cached_property
    def told(self) -> tuple[str, ...]:
        """Those of them that are not blank."""
        return tuple(line for line in self.raw if line.strip())


class Reading(Protocol):
    """The reading of one source, a chunk at a time. All that it remembers lies in its attributes, so that it can be kept
    (`ingest.kept`) and go on another day."""

    def chunk(self, chunk: Chunk) -> Iterator[Batch]:
        """Read one chunk, and hand out what is complete."""
        ...

    def close(self) -> Iterator[Batch]:
        """Hand out the rest: the source ends here."""
        ...


def read_by(reading: Reading, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """Everything that a reading gives."""
    for chunk in chunks:
        yield from reading.chunk(chunk)
    yield from reading.close()


def beginning(chunks: Iterable[Chunk], cap: int) -> bytes:
    """The first chunks of a source, up to the one that reaches a size; all of them are drawn, since others may listen."""
    parts, held = [], 0
    for chunk in chunks:
        if held < cap:
            parts.append(chunk.data)
            held += len(chunk.data)
    return b"".join(parts)


class Ingestor(Protocol):
    """The shape of an ingestor module."""

    KIND: str

    def matches(self, head: Head) -> bool:
        """Whether the source is of this kind, by content."""

    def read(self, path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
        """Typed columns of the source, streamed."""


Sample = tuple[str, Mapping[str, Any]]
Row = dict[str, Any]
Convert = Callable[[Row, re.Match[str]], Row | None]


@dataclass(frozen=True, eq=False)
class Pattern:
    """A line shape as data: what to look for first, how to read it, the row it gives, and samples that prove it.

    `anchors` are literals of which one must be in the line (found on bytes, before anything is decoded; no quotes or
    backslashes, so that JSON envelopes cannot hide them). `regex` is searched in the record's message. Each
    named group fills the column of its name: `_bytes` columns go through `parse_size` (with `unit` where the text has
    none, binary for the engine's old `GB`), `kv_used`-like shares written as percent name their group `..._pct`. `const`
    adds fixed columns. `versions` are the first and the last release checked that print the shape (`0.9.2 →`: still there;
    "" for what is not the engine's own). `convert` may finish or drop the row (None). `samples` pair a line with the columns expected;
    a pattern without one is refused.
    """

    name: str
    dialect: str
    anchors: tuple[str, ...]
    regex: re.Pattern[str]
    table: str
    samples: tuple[Sample, ...]
    const: Mapping[str, Any] = field(default_factory=dict)
    unit: str = ""
    binary: bool = True
    convert: Convert | None = None
    versions: str = ""
    repeat: bool = False  # every match in the line gives a row, not the first only

    def __post_init__(self) -> None:
        if not self.samples:
            raise ValueError(f"pattern {self.name} has no sample")
        if self.table not in TABLES:
            raise ValueError(f"pattern {self.name} fills an unknown table {self.table}")
        for anchor in self.anchors:
            if len(anchor) < 4 or set(anchor) & set("\"'\\/\n\r\t"):
                raise ValueError(
                    f"pattern {self.name}: anchor {anchor!r} is too short or could be escaped by an envelope"
                )

    def rows(self, text: str) -> Iterator[dict[str, Any]]:
        """The rows that this pattern reads from a message; none where it does not match."""
        found: Iterable[re.Match[str]]
        if self.repeat:
            found = self.regex.finditer(text)
        else:
            first = self.regex.search(text)
            found = (first,) if first else ()
        for match in found:
            try:
                row = self._row(match)
            except (ValueError, OverflowError):  # an infinite number, or one of hundreds of digits: no server prints it
                continue
            if row is not None:
                yield row

    def _row(self, match: re.Match[str]) -> dict[str, Any] | None:
        row: dict[str, Any] = dict(self.const)
        for name, value in match.groupdict().items():
            if value is not None:
                self._fill(row, name, value)
        return self.convert(row, match) if self.convert else row

    def _fill(self, row: dict[str, Any], name: str, value: str) -> None:
        if name.endswith("_bytes"):
            row[name] = parse_size(value, binary=self.binary, unit=self.unit)
        elif name.endswith("_pct"):
            row[name.removesuffix("_pct")] = float(value) / 100
        else:
            row[name] = _TYPED[_column_type(self.table, name)](value)


@dataclass(frozen=True)
class Finish:
    """How a row is finished: the table that it fills, what every one of its samples must show, and the converter."""

    table: str
    proof: Mapping[str, Any]
    convert: Convert


def phrases(text: str) -> tuple[str, ...]:
    """The phrases of a list that is written as one text, with bars between them."""
    return tuple(text.split("|"))


def proved(common: Mapping[str, Any], samples: Iterable[Sample | str]) -> tuple[Sample, ...]:
    """Samples of rows that have some columns in common, which a sample without columns of its own shows all the same."""
    shown = ((sample, {}) if isinstance(sample, str) else sample for sample in samples)
    return tuple((text, {**common, **columns}) for text, columns in shown)


def pattern(
    name: str,
    dialect: str,
    anchors: tuple[str, ...],
    shapes: tuple[str, ...],
    finish: Finish | Convert,
    *samples: Sample | str,
    table: str = "host_event",
    versions: str = "",
) -> Pattern:
    """A pattern of `host_event`, or of another table, whose shapes are tried together.

    A sample without columns shows what all rows of its kind have (`Finish.proof`).
    """
    finish = finish if isinstance(finish, Finish) else Finish(table, {}, finish)
    return Pattern(
        name, dialect, anchors, regex("|".join(shapes)), finish.table, proved(finish.proof, samples),
        convert=finish.convert, versions=versions,
    )  # fmt: skip


def _column_type(table: str, name: str) -> str:
    for column in TABLES[table].columns:
        if column.name == name:
            return column.type
    return "VARCHAR"  # a helper group for `convert`, which removes it


def _number(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return kind(text.replace(",", ""))
        except ValueError:
            return None

    return read


_whole = _number(int)
_TYPED: Mapping[str, Callable[[str], Any]] = {
    "VARCHAR": lambda text: text,
    "DOUBLE": _number(float),
    "BIGINT": _whole,
    "INTEGER": _whole,
    "UINTEGER": _whole,
    "UBIGINT": _whole,
    "BOOLEAN": lambda text: text.lower() in ("true", "1", "yes"),
}


def interval(value: float, printed: str, factor: float) -> tuple[float, float]:
    """Smallest and largest value that print as `printed`: half of its last decimal, in units of `factor`.

    >>> interval(5.11, "5.11", 1.0)
    (5.105, 5.115)
    """
    decimals = len(printed.partition(".")[2])
    half = 0.5 * 10.0**-decimals
    return (value - half) * factor, (value + half) * factor


def check_patterns(patterns: Sequence[Pattern]) -> None:
    """Refuse a set in which two patterns share a name."""
    names = [pattern.name for pattern in patterns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"pattern names used twice: {', '.join(twice)}")
