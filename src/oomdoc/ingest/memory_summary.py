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
powers of 1000. Known from torch 1.4 (four sizes) to 2.13 (`Requested memory`, the two oversize rows).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from oomdoc.evidence.tables import TABLES as ALL_TABLES
from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Head
from oomdoc.ingest.problems import Capped
from oomdoc.ingest.record import HEAD, peel
from oomdoc.intake.cells import Field, Memo
from oomdoc.intake.columns import WORTHWHILE_BYTES, Template
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

KIND = "memory-summary"

_COLUMNS = ALL_TABLES["allocator_stat"].column_names[1:]
_WIDTH = 77
_RULE = "|" + "=" * 75 + "|"
_RULES = (b"|--", b"|==")
_RULE_BYTES = _RULE.encode()
_QUOTED_LINES = 400  # held before they are read; a table has 40, and several may follow without a line between them
_METRICS = {
    "Allocated memory": "allocated_bytes", "Active memory": "active_bytes", "Requested memory": "requested_bytes",
    "GPU reserved memory": "reserved_bytes", "Non-releasable memory": "inactive_split_bytes", "Allocations": "allocation",
    "Active allocs": "active", "GPU reserved segments": "segment", "Non-releasable allocs": "inactive_split",
    "Oversize allocations": "oversize_allocations", "Oversize GPU segments": "oversize_segments",
}  # fmt: skip
_POOLS = {"from large pool": "large_pool", "from small pool": "small_pool"}
_UNITS = {"": 1, "B": 1, "K": 10**3, "M": 10**6}
for _power, _letter in enumerate("KMGTP", 1):
    _UNITS[_letter + "iB"] = _UNITS[_letter + "B"] = 1024**_power
_BANNER_WORDS = b"PyTorch CUDA memory summary"
_BANNER = regex(r"\| +PyTorch CUDA memory summary, device ID (\d{1,4}) +\|")
_COUNTS = regex(r"\| +CUDA OOMs: (\d{1,15}) +\| +cudaMalloc retries: (\d{1,15}) +\|")
_FAILURE = regex(r"Traceback \(most recent|[A-Za-z]Error\b|out of memory", re.I)


_NAMES = (*_METRICS.values(), *_POOLS.values(), "all")
_HEADING, _STRANGE = -1, -2  # what else than a place in _NAMES a label can mean


def _label(cell: bytes) -> int:
    label = cell.decode("utf-8", "replace").strip()
    if label == "Metric":
        return _HEADING
    name = _METRICS.get(label) or _POOLS.get(label)
    return _NAMES.index(name) if name else _STRANGE


class _Tables:
    """The state of one source: which table, device and metric the next row belongs to."""

    def __init__(self) -> None:
        self.rows = Capped()
        self._summary = 0
        self._device: int | None = None
        self._metric: str | None = None
        self._open = False
        self._wide = False  # the line before was a rule of the right width

    def chunk(self, data: bytes, first_line: int) -> Iterator[Batch]:
        """Everything that a chunk of whole lines holds."""
        lead = 0
        if len(data) >= WORTHWHILE_BYTES:
            # up to the rule above the first banner: the end of a table that began in the chunk before goes line by line
            banner = data.find(_BANNER_WORDS)
            lead = data.rfind(b"\n", 0, max(0, data.rfind(b"\n", 0, max(0, banner)))) + 1
        if lead:
            yield from self._plain(data[:lead], first_line)
            first_line, data = first_line + data.count(b"\n", 0, lead), data[lead:]
        batches = self._dense(data, first_line) if len(data) >= WORTHWHILE_BYTES else []
        yield from batches or self._plain(data, first_line)

    def _dense(self, data: bytes, first_line: int) -> list[Batch]:
        """The same by columns, eight times as fast; nothing for a chunk that holds more than torch's tables."""
        import numpy as np

        cut = _TEMPLATE.read(data, 0.4)
        if cut is None:
            return []
        counts: list[tuple[Any, ...]] = []
        banners: list[tuple[int, int]] = []
        summary, device, wide = self._summary, self._device, self._wide
        for line, begin, end in cut.odd_lines():
            if data[begin : begin + 3] in _RULES:  # half of the lines of a table
                wide = end - begin == _WIDTH
                continue
            text = data[begin:end].decode("utf-8", "replace")
            if (match := _BANNER.fullmatch(text)) and wide:
                banners.append((line, int(match[1])))
                summary, device = summary + 1, int(match[1])
            elif match := _COUNTS.fullmatch(text):
                for metric, value in (("num_ooms", match[1]), ("num_alloc_retries", match[2])):
                    counts.append((line + first_line, device, summary, metric, "all", int(value), None, None, None))
            elif "|" in text:
                return []
        label = np.array(cut.columns["label"].tolist())
        rows = label != _HEADING
        label, lines = label[rows], cut.lines[rows]
        values = [_values(cut.columns[name][:, rows]) for name in _COLUMNS[-4:]]
        opened = lines[0] if self._open and len(lines) else banners[0][0] if banners else len(data)
        strange = (label == _STRANGE).any() or (len(lines) and lines[0] < opened)
        main = label < len(_METRICS)
        if strange or any(column is None for column in values) or not len(lines) or not main[0]:
            return []
        metric = label[np.maximum.accumulate(np.where(main, np.arange(len(label)), 0))]
        table = np.searchsorted(np.array([line for line, _ in banners], np.int64), lines)
        devices = np.array([self._device or 0, *(device for _, device in banners)], np.int32)
        names = np.array(_NAMES, object)
        columns = (
            lines + first_line, devices[table], (table + self._summary).astype(np.int32), names[metric],
            names[np.where(main, len(_NAMES) - 1, label)], *values,
        )  # fmt: skip
        self._open, self._summary, self._device = True, summary, device
        self._metric, self._wide = _NAMES[metric[-1]], wide
        batches = [Batch("allocator_stat", dict(zip(_COLUMNS, columns, strict=True)))]
        if counts:
            batches.append(
                Batch("allocator_stat", dict(zip(_COLUMNS, map(list, zip(*counts, strict=True)), strict=True)))
            )
        return batches

    def _plain(self, data: bytes, first_line: int) -> Iterator[Batch]:
        """The same line by line."""
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
            self._open, self._metric = self._wide, None
            if self._open:
                self._summary, self._device = self._summary + 1, int(match[1])
            else:
                self.rows.problem(number, "a memory summary whose lines are not 77 wide is not torch's", line)
        elif self._open and (match := _COUNTS.fullmatch(line)):
            for metric, value in (("num_ooms", match[1]), ("num_alloc_retries", match[2])):
                found.append((number, self._device, self._summary, metric, "all", int(value), None, None, None))

    def _row(self, number: int, line: str, found: list[tuple[Any, ...]]) -> None:
        label = line[1:24].strip()
        pool = _POOLS.get(label)
        if pool is None:
            if label == "Metric":
                return
            pool, self._metric = "all", _METRICS.get(label)
        values = [_VALUES[cell] for cell in line[25:-1].split("|")]
        if self._metric is None or len(values) != 4 or None in values:
            self.rows.problem(number, "no row of a memory summary", line)
            return
        found.append((number, self._device, self._summary, self._metric, pool, *values))


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
_TEMPLATE = Template(
    b"|",
    7,
    (
        Field("same", "", 0, 0),
        Field("text", "label", 1, 1, decode=Memo(_label)),
        *(Field("bytes", name, cell, cell, width=12) for cell, name in enumerate(_COLUMNS[-4:], 2)),
        Field("same", "", 6, 6),
    ),
)


def _values(cells: Any) -> Any:
    """What `_value` makes of every column of 12 bytes; None if one of them is no value."""
    import numpy as np

    digit = cells - 48
    is_digit, is_letter = digit <= 9, cells > 57
    value = np.zeros(cells.shape[1], np.int64)
    for figures, here in zip(digit, is_digit, strict=True):
        value = np.where(here, 10 * value + figures, value)
    letters = np.where(is_letter, cells, 0)
    word = np.zeros(cells.shape[1], np.int64)
    for letter in letters:
        word = np.where(letter > 0, 256 * word + letter, word)
    factor = np.zeros(cells.shape[1], np.int64)
    for unit, times in _UNITS.items():
        factor[word == int.from_bytes(unit.encode(), "big")] = times
    # one run of digits, then one of letters, a space between them and nothing else
    runs = [np.count_nonzero(kind[1:] & ~kind[:-1], 0) + kind[0] for kind in (is_digit, is_letter)]
    good = (runs[0] == 1) & (runs[1] <= 1) & (factor > 0) & (is_digit | is_letter | (cells == 32)).all(0)
    good &= ~((is_digit[:-1] & is_letter[1:]) | (is_letter[:-1] & is_digit[1:])).any(0)
    good &= np.where(word > 0, is_letter.argmax(0) > is_digit.argmax(0), True) & (
        value * factor.astype(np.float64) < 2**62
    )
    return value * factor if good.all() else None


class Quoted:
    """Tables inside of another text, such as a log: from the rule above a banner to the last line that begins with `|`.

    A text without a rule of the right width costs one search of its bytes.
    """

    def __init__(self) -> None:
        self._tables = _Tables()
        self._batches: list[Batch] = []
        self._held: list[tuple[int, str]] = []
        self._inside = False

    def chunk(self, chunk: Chunk) -> None:
        """Read what a chunk quotes; a table may go on in the next."""
        if not self._inside and not self._held and _RULE_BYTES not in chunk.data:
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
