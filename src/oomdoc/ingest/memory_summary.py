"""Tables of `torch.cuda.memory_summary()`, full or abbreviated, any number to a file, other text between them.

    |===========================================================================|
    |                  PyTorch CUDA memory summary, device ID 0                 |
    |---------------------------------------------------------------------------|
    |            CUDA OOMs: 1            |        cudaMalloc retries: 2         |
    |===========================================================================|
    |        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
    |---------------------------------------------------------------------------|
    | Allocated memory      |  71680 MiB |  73728 MiB |    900 GiB |    830 GiB |
    |       from large pool |  70963 MiB |  72990 MiB |    891 GiB |    821 GiB |

Every line is 77 wide; a table of another width is not torch's own and is refused. Sizes are powers of 1024 in all versions,
also where old ones print `MB`, and rounded down: a figure is the least that its print allows. Counts with `K` and `M` are
powers of 1000. Told is what there is now of all pools together. Known from torch 1.4 (four sizes) to 2.13 (`Requested memory`, the two oversize rows).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from oomdoc.evidence.tables import TABLES as ALL_TABLES
from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Head
from oomdoc.ingest.problems import Capped
from oomdoc.ingest.record import HEAD, peel
from oomdoc.ingest.vocabulary.quantity import read as read_list
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

KIND = "memory-summary"

_COLUMNS = ALL_TABLES["allocator_stat"].column_names[1:]
_WIDTH = 77
_RULE = "|" + "=" * 75 + "|"
RULE = _RULE.encode()
"""The line above a table."""
_QUOTED_LINES = 400  # held before they are read; a table has 40, and several may follow without a line between them
_METRICS: Mapping[str, str] = read_list("names")["allocator_rows"]
_OTHERS = ("Metric", "from large pool", "from small pool")
"""Rows that tell no metric of the whole."""
_UNITS = {"": 1, "B": 1, "K": 10**3, "M": 10**6}
for _power, _letter in enumerate("KMGTP", 1):
    _UNITS[_letter + "iB"] = _UNITS[_letter + "B"] = 1024**_power
_BANNER = regex(r"\| +PyTorch CUDA memory summary, device ID (\d{1,4}) +\|")
_COUNTS = regex(r"\| +CUDA OOMs: (\d{1,15}) +\| +cudaMalloc retries: (\d{1,15}) +\|")
_FAILURE = regex(r"Traceback \(most recent|[A-Za-z]Error\b|out of memory", re.I)


class _Tables:
    """The state of one source: which table and device the next row belongs to."""

    def __init__(self) -> None:
        self.rows = Capped()
        self._summary = 0
        self._device: int | None = None
        self._open = False
        self._wide = False  # the line before was a rule of the right width

    def chunk(self, data: bytes, first_line: int) -> Iterator[Batch]:
        """Everything that a chunk of whole lines holds."""
        found: list[tuple[Any, ...]] = []
        for number, raw in enumerate(data.decode("utf-8", "replace").split("\n"), first_line):
            if "|" not in raw:
                continue
            line = raw.rstrip("\r")
            if line[0] != "|" or line[-1] != "|":  # an envelope around, or no line of a table
                line = peel(line[:4096])[0].strip()
                if line[:1] != "|" or line[-1] != "|":
                    continue
            if line[24:25] != "|":
                self._line(number, line, found)
            elif self._open:
                self._row(number, line, found)
        if found:
            columns = map(list, zip(*found, strict=True))
            yield Batch("allocator_stat", dict(zip(_COLUMNS, columns, strict=True)))
        yield from self.rows.take()

    def _line(self, number: int, line: str, found: list[tuple[Any, ...]]) -> None:
        if line[1:2] in ("-", "="):
            self._wide = len(line) == _WIDTH
        elif match := _BANNER.fullmatch(line):
            self._open = self._wide
            if self._open:
                self._summary, self._device = self._summary + 1, int(match[1])
            else:
                self.rows.problem(number, "a memory summary whose lines are not 77 wide is not torch's", line)
        elif self._open and (match := _COUNTS.fullmatch(line)):
            for metric, value in (("num_ooms", match[1]), ("num_alloc_retries", match[2])):
                found.append((number, self._device, self._summary, metric, int(value)))

    def _row(self, number: int, line: str, found: list[tuple[Any, ...]]) -> None:
        label = line[1:24].strip()
        if label in _OTHERS:
            return
        metric, values = _METRICS.get(label), [_VALUES[cell] for cell in line[25:-1].split("|")]
        if metric is None or len(values) != 4 or None in values:
            self.rows.problem(number, "no row of a memory summary", line)
            return
        found.append((number, self._device, self._summary, metric, values[0]))


def _value(cell: str) -> int | None:
    """Bytes or a count; None for what is neither."""
    number, _, unit = cell.strip().partition(" ")
    factor = _UNITS.get(unit.strip())
    if factor is None or not number.isascii() or not number.isdigit() or len(number) > 15:
        return None
    value = int(number) * factor
    return value if value < 1 << 63 else None


class _Values(dict[str, "int | None"]):
    """Values of cells that were seen: pools repeat those of the whole, and tables those of the table before."""

    def __missing__(self, cell: str) -> int | None:
        if len(self) >= 1 << 14:
            self.clear()
        value = self[cell] = _value(cell)
        return value


_VALUES = _Values()


class Quoted:
    """Tables inside of another text, such as a log: from the rule above a banner to the last line that begins with `|`."""

    def __init__(self) -> None:
        self._tables = _Tables()
        self._batches: list[Batch] = []
        self._held: list[tuple[int, str]] = []
        self._inside = False

    def chunk(self, chunk: Chunk, named: bool = True) -> None:
        """Read what a chunk quotes; a table may go on in the next. `named`: whether `RULE` is in it."""
        if not self._inside and not self._held and not named:
            return
        text = chunk.data.decode("utf-8", "replace")
        for number, raw in enumerate(text.split("\n"), chunk.first_line):
            if number == chunk.first_line and not chunk.at_line_start:
                continue
            if "|" not in raw and not self._inside:
                continue
            line = raw.rstrip("\r")
            if line[:1] != "|" or line[-1:] != "|":
                line = peel(line[:4096])[0].strip()
            if line[:1] == "|" and line[-1:] == "|":
                self._table_line(number, line)
            elif raw.strip() or number < chunk.first_line + text.count("\n"):  # not the empty end of a chunk
                self._close()
        if not self._inside and self._held and self._held[0][0] < number - 1:
            self._held = []  # no rule at the end of the chunk, above a banner in the next

    def _table_line(self, number: int, line: str) -> None:
        if not self._inside:
            above = self._held[-1:] if self._held and self._held[-1][0] == number - 1 else []
            self._held = [*above, (number, line)]
            self._inside = bool(above) and above[0][1] == _RULE and bool(_BANNER.fullmatch(line))
        else:
            self._held.append((number, line))
            if len(self._held) >= _QUOTED_LINES:
                self._read()

    def _read(self) -> None:
        if self._held:
            text = "\n".join(line for _, line in self._held)
            self._batches.extend(self._tables.chunk(text.encode(), self._held[0][0]))
        self._held = []

    def _close(self) -> None:
        if self._inside:
            self._read()
        self._held, self._inside = [], False

    def take(self) -> Iterator[Batch]:
        """The rows of the tables that were quoted."""
        self._close()
        batches, self._batches = self._batches, []
        yield from batches
        yield from self._tables.rows.close()


KEPT = (Quoted, _Tables)
"""What a reading is made of (`ingest.kept`)."""


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """Rows of `allocator_stat`, and of `problem` for rows and tables that are not torch's."""
    tables = _Tables()
    for chunk in chunks:
        data, first_line = chunk.whole()
        if data:
            yield from tables.chunk(data, first_line)
    yield from tables.rows.close()


def matches(head: Head) -> bool:
    """The banner under a rule of the right width, in a text that is mostly tables and tells of no failure besides.

    Logs and reports that quote a table hold more than the table, so they are left to the readers of text.
    """
    lines = [line.strip() for line in head.lines if line.strip()]
    if not any(_BANNER.fullmatch(line) and above == _RULE for above, line in pairwise(lines)):
        return False
    others = [line for line in lines if line[0] != "|"]
    return 2 * len(others) <= len(lines) and not any(_FAILURE.search(line) or _is_record(line) for line in others)


def _is_record(line: str) -> bool:
    match = HEAD.match(line)
    return match is not None and match["mon"] is not None
