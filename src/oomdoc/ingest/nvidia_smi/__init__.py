"""What nvidia-smi prints: CSV queries with or without header and units, snapshot loops, the boxed table, `-q` (text and
XML), `-L`, dmon and pmon; one source may mix and repeat them.

    timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB]
    2026/11/20 20:04:51.120, 0, 93 %, 76012 MiB, 81559 MiB
    === 2026-11-20 20:04:51 ===                                  (a loop around a query without header)
    0, 93 %, 61 %, 76012 MiB, 81559 MiB
    |  N/A   41C    P0   310W / 700W |  76012MiB / 81559MiB |     97%      Default |
    GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-...)

MiB, and `MB` in dmon and pmon, are 2**20. Stamps have no zone and are taken as UTC; rows without one get that of their block
(`=== date ===`, the date above a boxed table). Cells such as `[N/A]`, `[Not Supported]` and `ERR!` are NULL. A column order
without header is inferred from units and values; where they leave a choice (no units; used against free memory) the rows
stay unknown and a problem says so. A device without index gets the position in which its uuid or bus id first appeared.
Memory of a MIG instance is a `gpu_device` row (profile `MIG` where the table does not name it), never a sample of its card.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Head, read_by
from oomdoc.ingest.nvidia_smi import cells as reads
from oomdoc.ingest.nvidia_smi import sheet as sheets
from oomdoc.ingest.nvidia_smi.boxes import (
    BOX_DEVICE,
    BOX_MIG,
    BOX_PROCESS,
    BOX_SHORT,
    FAILED,
    LISTED,
    LISTED_MIG,
    MONITOR_HEADER,
    MONITOR_ROW,
    Boxes,
    Listing,
    Monitor,
)
from oomdoc.ingest.nvidia_smi.csv_rows import AHEAD, CsvRows
from oomdoc.ingest.nvidia_smi.findings import Findings
from oomdoc.ingest.nvidia_smi.query import Open, Query
from oomdoc.ingest.prompts import typed
from oomdoc.ingest.record import peel
from oomdoc.ingest.vocabulary import meanings
from oomdoc.intake.cells import DATE, date, stamp
from oomdoc.intake.columns import WORTHWHILE_BYTES
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

KIND = "nvidia-smi"

_BLOCK = regex(r"=== (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) ===")
_WIDE = 256  # characters of a line of the boxed table or of -q that are looked at; drivers print up to 120
_DIGITS = "0123456789"
_ENVELOPE = regex(r"[{>]|\[pod/|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S* |[\w.-]+\s+\| ")


class Reader:
    """The state of one source: which form a line is of, and what reads it."""

    def __init__(self) -> None:
        self._found = Findings()
        self._csv = CsvRows(self._found)
        self._boxes = Boxes(self._found)
        self._listing = Listing(self._found)
        self._monitor = Monitor(self._found)
        self._query = Query(self._found)

    def chunk(self, chunk: Chunk) -> Iterator[Batch]:
        """Everything that a chunk holds."""
        data, first_line = chunk.whole()
        if len(data) >= WORTHWHILE_BYTES and self._query.open is None:
            lead = 0
            for _ in range(AHEAD):  # the header, the rows that tell the columns and name the devices: plainly
                lead = data.find(b"\n", lead) + 1 or len(data)
            head, rest = (b"", data) if self._csv.knows_columns else (data[:lead], data[lead:])
            if head:
                self._plain(head, first_line, data.split(b"\n", AHEAD)[:AHEAD])
            quick = None if self._csv.has_clocks(len(rest)) else self._csv.fast(rest, first_line + head.count(b"\n"))
            if quick is not None:
                yield from self._found.take()
                yield from quick
                return
            self._plain(rest, first_line + head.count(b"\n"))
        else:
            self._plain(data, first_line)
        yield from self._found.take()

    def close(self) -> Iterator[Batch]:
        """What the end of the source completes."""
        self._query.finish()
        yield from self._found.take()
        yield from self._found.rows.close()

    def _plain(self, data: bytes, first_line: int, ahead: Sequence[bytes] = ()) -> None:
        lines = data.split(b"\n")
        self._csv.lines = ahead or lines
        for at, raw in enumerate(lines):
            self._csv.at = at
            if b"><" in raw and raw.lstrip()[:1] == b"<":  # XML without its line breaks
                for piece in raw.replace(b"><", b">\n<").split(b"\n"):
                    self._line(first_line + at, reads.decode(piece) or " ")
                continue
            text = reads.decode(raw)
            if text and not text.isspace():
                self._line(first_line + at, text)
        self._csv.lines, self._csv.at = (), 0  # nobody looks ahead between two chunks

    def _line(self, line: int, text: str) -> None:
        if text[0] in _DIGITS and "," in text and text[10:11] != "T" and self._query.open is None:
            self._csv.add(line, text)  # nearly all lines of a long source
            return
        if "\x1b" in text or _ENVELOPE.match(text):
            text, t, _ = peel(text)
            self._found.dated(t)
        first = text[:1]
        if first == "|":
            self._boxes.add(line, text[:_WIDE])
        elif first == "=" and ("NVSMI LOG" in text or _BLOCK.match(text)):
            self._begin(text)
        elif first == "#" and "noheader" in text and self._csv.add(line, text):
            self._query.open = None
        elif first == "#":
            self._monitor.header(text)
            self._dated(text)
        elif first == "+" or text[:2] in ("<?", "<!"):
            pass
        elif first == "<" or (self._query.open and first in " \t" and text.lstrip()[:1] == "<"):
            self._query.xml(line, text)
        elif FAILED.search(text):
            self._found.rows.problem(line, "nvidia-smi could not read the devices", text)
        elif self._listing.add(line, text):
            pass
        elif self._query.open is not None and (
            " :" in text or ": " in text or first == "\t" or text[:4] == "    " or text.startswith("GPU ")
        ):
            self._query.add(line, text[:_WIDE])
        elif self._monitor.is_row(text):
            self._monitor.add(line, text)
        elif "," in text:
            if ("noheader" in text or typed(text) is None) and self._csv.add(line, text):
                self._query.open = None
        else:
            self._dated(text)

    def _dated(self, text: str) -> None:
        """A line that says when: what follows is of that moment, also where a person wrote it above a pasted listing."""
        self._found.dated(date(text) if len(text) < 200 else None)

    def _begin(self, text: str) -> None:
        """A block header: the time of what follows, or a `-q` listing."""
        self._query.finish()
        match = _BLOCK.match(text)
        if match:
            self._found.t = stamp(match[1])
        self._query.open = None if match else Open()


KEPT = (Reader, Findings, CsvRows, Boxes, Listing, Monitor, Query, Open, sheets.Sheet)
"""What a reading is made of (`ingest.kept`)."""


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """Rows of `gpu_sample`, `gpu_device` and `gpu_process`, and of `problem` for rows that could not be read."""
    yield from read_by(reading(path), chunks)


def reading(path: str) -> Reader:
    """The state of a source of which nothing was read."""
    return Reader()


# ---- recognising

_BOX_LINE = regex(r"[|+]")
_OWN_LINES = (regex(r"\| NVIDIA-SMI \d"), LISTED, BOX_DEVICE, BOX_SHORT, BOX_PROCESS, BOX_MIG)
"""Lines that no other tool prints."""
_WORDS = (
    b"nvidia-smi", b"nvsmi", b"nvidia_smi", b"nvml", b"device handle", b"no devices were", b"(uuid", b"mib", b"# gpu", b"#date",
    b"mib |", b"#time", b"memory.", b"utilization.", b"memory_", b"utilization_", b"gpu_uuid", b"gpu_memory",
)  # fmt: skip
_MEMORY_CELL = regex(r",\s*\d+ ?MiB\s*(?:,|$)")


def matches(head: Head) -> bool:
    """A form of nvidia-smi's own that fills at least half of the lines, so that a table inside notes is not taken for it."""
    text = head.data.lower()
    if not any(word in text for word in _WORDS):
        return False
    lines = [line[:1000] for line in head.lines if line.strip()]
    if not lines:
        return False
    if any("NVSMI LOG" in line and line[0] == "=" for line in lines[:6]) or any(
        "<nvidia_smi_log>" in line for line in lines[:4]
    ):
        return True
    if FAILED.match(lines[0]) and len(lines) < 4:
        return True
    if (sheets.header(lines[0]) or sheets.asked(lines[0])) is None and sum(
        bool(meanings(cell.strip())) for cell in lines[0].split(",")
    ) > 2:
        return False  # a header in somebody's own words: its rows would be told by what their cells look like
    sheet, hits, proofs = None, 0, 0
    blocks = sum(1 for line in lines if _BLOCK.fullmatch(line.strip()))
    monitor = 0
    for line in lines:
        cells = line.count(",") + 1
        if any(shape.match(line) for shape in _OWN_LINES):
            hits, proofs = hits + 1, proofs + 1
        elif (found := sheets.header(line)) and not found.is_own and not proofs:
            return False  # a table of somebody's own: `forms` knows its names
        elif (found and _proves(found)) or (found := sheets.asked(line)):
            sheet, hits, proofs = found, hits + 1, proofs + 1
        elif sheet and cells == len(sheet.roles):
            hits += 1
        elif cells > 2 and _MEMORY_CELL.search(line):
            hits, proofs = hits + 1, proofs + (blocks > 0 or cells > 3)
        elif MONITOR_HEADER.match(line):
            monitor = len(line[1:].split())
            hits += 1
        elif monitor and (line.startswith("#") or (MONITOR_ROW.match(line) and len(line.split()) >= monitor)):
            hits, proofs = hits + 1, proofs + 1
        elif (
            LISTED_MIG.match(line)
            or _BLOCK.fullmatch(line.strip())
            or DATE.search(line)
            or (proofs and _BOX_LINE.match(line))
        ):
            hits += 1
    return proofs > 0 and hits >= 0.5 * len(lines)


def _proves(sheet: sheets.Sheet) -> bool:
    """Whether a header can only be nvidia-smi's: a dotted or bracketed name, not words that any table has."""
    text = sheet.header.lower()
    return sheet.is_own and any(
        name in text for name in ("memory.", "utilization.", "used_gpu_memory", "used_memory", "gpu_uuid", "[mib]")
    )
