"""Rows of a query as table, CSV, JSON or JSON lines, and the list of tables and columns for `oomdoc tables`."""

from __future__ import annotations

import csv as csv_format
import io
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from oomdoc.report.json import dump
from oomdoc.report.words import count, neutral, neutral_line

LEAST_COLUMN = 8
UNITS = (
    "NULL is unknown, never zero. Names show units: _bytes are bytes, _s seconds, _per_s per second, _tokens tokens; t is epoch "
    "seconds in UTC, shares are 0..1, counts have no unit."
)


def table(names: Sequence[str], rows: Sequence[Sequence[Any]], width: int | None) -> str:
    """Aligned columns, numbers to the right; with a width the widest columns are cut (`…`) until a row fits."""
    from rich.cells import cell_len, set_cell_size

    heads = [neutral(name) for name in names]
    body = [[_cell(value) for value in row] for row in rows]
    sizes = [max([cell_len(head), *(cell_len(row[i]) for row in body)]) for i, head in enumerate(heads)]
    right = [
        any(_numeric(row[i]) for row in rows) and all(row[i] is None or _numeric(row[i]) for row in rows)
        for i in range(len(heads))
    ]
    while width and sum(sizes) + 2 * (len(sizes) - 1) > width and max(sizes) > LEAST_COLUMN:
        sizes[max(range(len(sizes)), key=sizes.__getitem__)] -= 1

    def line(cells: Sequence[str]) -> str:
        parts = []
        for text, size, to_right in zip(cells, sizes, right, strict=True):
            cut = text if cell_len(text) <= size else set_cell_size(text, size - 1) + "…"
            pad = " " * (size - cell_len(cut))
            parts.append(pad + cut if to_right else cut + pad)
        return "  ".join(parts).rstrip()

    lines = [line(heads), "  ".join("─" * size for size in sizes), *map(line, body), f"({count(len(rows), 'row')})"]
    return "\n".join(lines) + "\n"


def csv(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    r"""RFC 4180 with a header line and plain newlines; NULL is empty. Text is harmless in a spreadsheet and on a terminal.

    >>> csv(["a", "b", "c"], [["=1+1", "-5", None], ["-x\x1b[31m", -5, "@SUM"]])
    "a,b,c\n'=1+1,-5,\n'-x,-5,'@SUM\n"
    """
    out = io.StringIO()
    writer = csv_format.writer(out, lineterminator="\n")
    writer.writerow([_quoted(name) for name in names])
    writer.writerows([[_quoted(value) for value in row] for row in rows])
    return out.getvalue()


_NUMBER = re.compile(r"[-+]?(\d[\d_,]*\.?\d*|\.\d+)([eE][-+]?\d+)?%?")


def _quoted(value: Any) -> Any:
    """A cell of CSV: no control that a terminal acts on, an apostrophe before what a spreadsheet takes for a formula."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return value
    clean = neutral_line(value)
    return "'" + clean if clean[:1] in ("=", "+", "-", "@") and not _NUMBER.fullmatch(clean) else clean


def json(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A list with one object per row."""
    return dump([_object(names, row) for row in rows])


def jsonl(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """One object per line."""
    return "".join(dump(_object(names, row), compact=True) for row in rows)


def _object(names: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in zip(names, row, strict=True)}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (float, Decimal)):  # DuckDB takes 0.5 for a DECIMAL; to a reader of JSON it is a number
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return str(value)


def _numeric(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:.12g}"
    return neutral(str(value))


class Described(NamedTuple):
    """A table or view: what it is (`table`, `view per incident`), what a row is, and (column, type, meaning)."""

    kind: str
    says: str
    columns: Sequence[tuple[str, str, str]]


def catalogue(known: Mapping[str, Described], *, columns: bool, width: int) -> str:
    """Tables and views by name with their columns, or names and meanings only."""
    width = max(60, min(width, 140))
    room = max(len(name) for name in known)
    out = []
    for name, entry in known.items():
        if not columns:
            out.append(_hang(f"{name:<{room}}  ", entry.says, width))
            continue
        out.append(_hang("", f"{name}: {entry.says} ({entry.kind})", width))
        names = max((len(column) for column, _, _ in entry.columns), default=0)
        kinds = max((len(kind) for _, kind, _ in entry.columns), default=0)
        gap = 2 if kinds else 0
        for column, kind, says in entry.columns:
            out.append(_hang(f"  {column:<{names}}  {kind:<{kinds}}{' ' * gap}", says, width))
        out.append("")
    if columns:
        out.append(textwrap.fill(UNITS, width))
    return "\n".join(out).rstrip("\n") + "\n"


def _hang(lead: str, text: str, width: int) -> str:
    return (
        textwrap.fill(
            lead + text, width, subsequent_indent=" " * (len(lead) or 2), break_on_hyphens=False, drop_whitespace=True
        )
        if text
        else lead.rstrip()
    )
