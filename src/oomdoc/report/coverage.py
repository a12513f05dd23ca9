"""The account of a bundle: every member with what it was read as, what came of it, and what was not read and why.

`analyze --explain-coverage` prints it. Bytes are those handed out by the intake, unpacked; lines are counted as references
count them. It knows the report and counts by table that its caller asked for, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from oomdoc.model import Report, SourceRow
from oomdoc.report.words import QUOTING, count, neutral
from oomdoc.units import show_bytes

_PROBLEMS_SHOWN = 3  # kinds of problem told per source
_COLUMNS_SHOWN = 40  # a collector's document may name hundreds of keys


class Problem(NamedTuple):
    """Places of one source that could not be read for one reason: how many, and the first line."""

    reason: str
    places: int
    line: int


def render(
    report: Report,
    tables: Mapping[str, Sequence[tuple[str, int]]],
    problems: Mapping[str, Sequence[Problem]],
    columns: Mapping[str, Sequence[tuple[str, str]]] | None = None,
) -> str:
    """The account as text. `tables` gives for a source its tables with rows, `problems` what could not be read of it,
    `columns` the names that were known by the vocabulary and what each was taken for."""
    coverage = report.coverage
    lines = [f"Coverage of {neutral(report.bundle.name)}", ""]
    for row in coverage.sources:
        lines += _source(row, tables.get(row.path, ()), problems.get(row.path, ()), (columns or {}).get(row.path, ()))
    if coverage.unread:
        lines += ["Not read, or not to its end", ""]
        lines += [f"  {neutral(item.path)}\n      {neutral(item.why)}" for item in coverage.unread] + [""]
    if coverage.uncollected:
        lines += ["Not collected, and how to get it", ""]
        lines += [
            f"  {neutral(item.what)}\n      {neutral(item.why)}  {neutral(item.ref)}" for item in coverage.uncollected
        ]
        lines += [""]
    lines += list(_sum(report))
    return "\n".join(lines) + "\n"


def _source(
    row: SourceRow, tables: Sequence[tuple[str, int]], problems: Sequence[Problem], columns: Sequence[tuple[str, str]]
) -> Iterable[str]:
    yield f"  {neutral(row.path)}"
    yield f"      read as {row.kind}: {row.bytes:,} bytes, {count(row.lines, 'line')}"
    filled = ", ".join(f"{name} {rows:,}" for name, rows in tables if name not in ("problem", "column_reading"))
    yield f"      {count(row.rows, 'row')}" + (f": {filled}" if filled else _nothing(row))
    if columns:
        width = min(40, max(len(name) for name, _ in columns))
        yield "      columns taken for"
        for name, taken_for in columns[:_COLUMNS_SHOWN]:
            yield f"        {neutral(name):{width}}  {taken_for}"
        if len(columns) > _COLUMNS_SHOWN:
            yield f"        {count(len(columns) - _COLUMNS_SHOWN, 'more name')}: see table column_reading"
    for problem in problems[:_PROBLEMS_SHOWN]:
        yield f"      {count(problem.places, 'problem')}: {neutral(problem.reason)}, first in line {problem.line:,}"
    if len(problems) > _PROBLEMS_SHOWN:
        yield f"      {count(len(problems) - _PROBLEMS_SHOWN, 'more kind')} of problem: see table problem"
    if row.lookalikes and row.kind in QUOTING:
        yield f"      {count(row.lookalikes, 'line')} with a message that is only quoted: no evidence"
        yield f"      (if it happened here, read it with --type '{neutral(row.path)}=text-log')"
    elif row.lookalikes:
        yield f"      {count(row.lookalikes, 'line')} with words of the engine in what users sent: no evidence"
    yield ""


def _nothing(row: SourceRow) -> str:
    return ", nothing in it bears on memory" if row.bytes else ", the file is empty"


def _sum(report: Report) -> Iterable[str]:
    sources, unread = report.coverage.sources, report.coverage.unread
    size = sum(row.bytes for row in sources)
    yield (
        f"{count(report.bundle.files, 'member')}: {count(len(sources), 'source')} read with {size:,} bytes"
        f" ({show_bytes(size)}), {count(sum(row.lines for row in sources), 'line')},"
        f" {count(sum(row.rows for row in sources), 'row')}, {count(sum(row.problems for row in sources), 'problem')}"
    )
    yield f"{count(len(unread), 'note')} of what was not read; {report.bundle.bytes:,} bytes were given, packed as they were"
