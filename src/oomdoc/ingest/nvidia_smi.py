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

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oomdoc.evidence.tables import TABLES as ALL_TABLES
from oomdoc.evidence.tables import Batch
from oomdoc.ingest import nvidia_smi_cells as reads
from oomdoc.ingest import nvidia_smi_sheet as sheets
from oomdoc.ingest.base import Head, read_by
from oomdoc.ingest.problems import Capped
from oomdoc.ingest.record import peel
from oomdoc.ingest.vocabulary import meanings
from oomdoc.intake.cells import Field, stamp
from oomdoc.intake.columns import WORTHWHILE_BYTES, Cut, Template
from oomdoc.intake.scan import Chunk
from oomdoc.units import MIB, parse_time

KIND = "nvidia-smi"
TABLES = ("gpu_sample", "gpu_device", "gpu_process", "metric", "problem")

_AT_WORK = 0.5  # share of time with a kernel running: an idle device lowers its clock by itself
_CLOCK_STEP = 0.2  # a smaller change is boost
_CLOCKED_BYTES = 4 << 20
_SAMPLE_COLUMNS = ALL_TABLES["gpu_sample"].column_names[1:]
_BLOCK = re.compile(r"=== (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) ===")
_WIDE = 256  # characters of a line of the boxed table or of -q that are looked at; drivers print up to 120
_CELLS = 64  # more is no row of a query
_AHEAD = 64  # rows that are looked at to tell columns without header
MIG = "MIG"
_DIGITS = "0123456789"

# ---- the plain reader

_BOX_DEVICE = re.compile(
    r"\|\s+(\d{1,4})\s+(\S.*?)\s+(\S+)\s*\|\s*[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d\s+\S+\s*\|"
)
_BOX_MEMORY = re.compile(r"\s*(?:(\d{1,9})MiB\s*/\s*(\d{1,9})MiB|(Not Supported|N/A|ERR!|Unknown Error|.*N/A.*))\s*")
_BOX_UTIL = re.compile(r"\s*(\d{1,3})%")
_BOX_MIG = re.compile(r"\|\s*(\d{1,4})\s+(\d+|N/A)\s+(\d+|N/A)\s+(\d+)\s*\|\s*(\d{1,9})MiB\s*/\s*(\d{1,9})MiB\s*\|")
_BOX_PROCESS = re.compile(
    r"\|\s+(\d{1,4})\s+(?:(?:N/A|\d+)\s+(?:N/A|\d+)\s+)?(\d{1,15})\s+(C\+G|M\+C|C|G)\s+(\S.*?)\s+(\d{1,9}MiB|N/A|Not Supported)\s*\|"
)
_LISTED = re.compile(r"GPU (\d{1,4}): (\S.*?) \(UUID: ([^)\s]+)\)")
_LISTED_MIG = re.compile(r"\s+MIG (\S+)\s+Device\s+(\d+): \(UUID: ([^)\s]+)\)")
_MON_HEADER = re.compile(r"#\s*(?:Date\s+)?(?:Time\s+)?gpu\s")
_MON_ROW = re.compile(r"\s*(?:\d{8}\s+)?(?:\d\d:\d\d:\d\d\s+)?\d+\s")
_PAIR = re.compile(r"(\s*)((?:[^:\s][^:]*?)?)\s*:\s(.*)")
_XML = re.compile(r"\s*<(/?)(\w+)(?: id=\"([^\"]*)\")?>(?:([^<]*)</\w+>)?\s*")
_FAILED = re.compile(
    r"NVIDIA-SMI has failed|Failed to initialize NVML|Unable to determine the device handle|No devices were found"
)
_ENVELOPE = re.compile(r"[{>]|\[pod/|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S* |[\w.-]+\s+\| ")


@dataclass
class _Query:
    """Where a `-q` listing stands: open sections by indent, and what the device, slice and process at hand have shown."""

    sections: list[tuple[int, str]] = field(default_factory=list)
    gpu: int | None = None
    name: str | None = None
    device: dict[str, Any] = field(default_factory=dict)
    slice: dict[str, Any] = field(default_factory=dict)
    process: dict[str, Any] = field(default_factory=dict)


class Reader:
    """The state of one source."""

    def __init__(self) -> None:
        self.rows = Capped()
        self.samples: list[tuple[Any, ...]] = []
        self.t: float | None = None
        self.sheet: sheets.Sheet | None = None
        self.bare: dict[int, sheets.Sheet | None] = {}  # columns without header, by their number
        self._told: set[str] = set()
        self._untold: set[tuple[str, ...]] = set()  # kinds of cells of which no columns could be made
        self._known: set[tuple[Any, ...]] = set()
        self._names: dict[int, str] = {}
        self._clocks: dict[int | None, int] = {}  # the clock that was told last
        self._index: dict[str, int] = {}  # device index by uuid or bus id
        self._box: tuple[int, str | None] | None = None
        self._listed_gpu: int | None = None
        self._query: _Query | None = None
        self._mon: list[str] = []
        self._lines: Sequence[bytes] = ()
        self._at = 0
        self._shape: tuple[sheets.Sheet, Template] | None = None  # what fitted the last chunk

    # ---- clocks

    def _clock(
        self, line: int, t: float | None, gpu: int | None, clock: int | None, hot: int | None, util: float | None
    ) -> None:
        """The clock of a device that is at work, told where it changed: recordings have it in every line."""
        if clock is None or util is None or util < _AT_WORK:
            return
        last = self._clocks.get(gpu)
        if last is not None and abs(clock - last) <= _CLOCK_STEP * last:
            return
        self._clocks[gpu] = clock
        labels = None if gpu is None else f'gpu="{gpu}"'
        self.rows.add("metric", line, t=t, name="DCGM_FI_DEV_SM_CLOCK", labels=labels, value=float(clock))
        if hot is not None:
            self.rows.add("metric", line, t=t, name="DCGM_FI_DEV_GPU_TEMP", labels=labels, value=float(hot))

    def _tells_clocks(self, size: int) -> bool:
        """Whether the columns have a clock, which the fast reader passes over, and the chunk is worth the slow one."""
        return self.sheet is not None and "clock" in self.sheet.roles and size <= _CLOCKED_BYTES

    # ---- a chunk

    def chunk(self, chunk: Chunk) -> Iterator[Batch]:
        """Everything that a chunk holds."""
        data, first_line = chunk.whole()
        if len(data) >= WORTHWHILE_BYTES and self._query is None:
            lead = 0
            for _ in range(_AHEAD):  # the header, the rows that tell the columns and name the devices: plainly
                lead = data.find(b"\n", lead) + 1 or len(data)
            head, rest = (b"", data) if self.sheet or self.bare else (data[:lead], data[lead:])
            if head:
                self._plain(head, first_line, data.split(b"\n", _AHEAD)[:_AHEAD])
            quick = None if self._tells_clocks(len(rest)) else self._fast(rest, first_line + head.count(b"\n"))
            if quick is not None:
                yield from self.take()
                yield from quick
                return
            self._plain(rest, first_line + head.count(b"\n"))
        else:
            self._plain(data, first_line)
        yield from self.take()

    def close(self) -> Iterator[Batch]:
        """What the end of the source completes."""
        self.finish_query()
        yield from self.take()
        yield from self.rows.close()

    def take(self) -> Iterator[Batch]:
        """What was read line by line."""
        samples, self.samples = self.samples, []
        if samples:
            yield Batch(
                "gpu_sample",
                {name: list(column) for name, column in zip(_SAMPLE_COLUMNS, zip(*samples, strict=True), strict=True)},
            )
        yield from self.rows.take()

    def _plain(self, data: bytes, first_line: int, ahead: Sequence[bytes] = ()) -> None:
        lines = data.split(b"\n")
        self._lines = ahead or lines
        for at, raw in enumerate(lines):
            self._at = at
            if b"><" in raw and raw.lstrip()[:1] == b"<":  # XML without its line breaks
                for piece in raw.replace(b"><", b">\n<").split(b"\n"):
                    self._line(first_line + at, reads.decode(piece) or " ")
                continue
            text = reads.decode(raw)
            if text and not text.isspace():
                self._line(first_line + at, text)
        self._lines, self._at = (), 0  # nobody looks ahead between two chunks

    def _line(self, line: int, text: str) -> None:
        if text[0] in _DIGITS and "," in text and text[10:11] != "T" and self._query is None:
            self._csv(line, text)  # nearly all lines of a long source
            return
        if "\x1b" in text or _ENVELOPE.match(text):
            text, t, _ = peel(text)
            self.t = t if t is not None else self.t
        first = text[:1]
        if first == "|":
            self._boxed(line, text[:_WIDE])
        elif first == "+":
            pass
        elif first == "=" and ("NVSMI LOG" in text or _BLOCK.match(text)):
            self._begin(text)
        elif first == "#" and _MON_HEADER.match(text):
            self._mon = text[1:].lower().split()
        elif first == "#" or (first == "<" and text[:2] in ("<?", "<!")):
            pass
        elif first == "<" or (self._query and first in " \t" and text.lstrip()[:1] == "<"):
            self._xml(line, text)
        elif _FAILED.search(text):
            self.rows.problem(line, "nvidia-smi could not read the devices", text)
        elif (match := _LISTED.match(text)) or (match := _LISTED_MIG.match(text)):
            self._listed(line, match, text)
        elif self._query is not None and (
            " :" in text or ": " in text or first == "\t" or text[:4] == "    " or text.startswith("GPU ")
        ):
            self._queried(line, text[:_WIDE])
        elif self._mon and _MON_ROW.match(text):
            self._monitored(line, text)
        elif "," in text:
            self._csv(line, text)
        else:
            t = reads.date(text) if len(text) < 200 else None
            self.t = t if t is not None else self.t

    def _begin(self, text: str) -> None:
        """A block header: the time of what follows, or a `-q` listing."""
        self.finish_query()
        match = _BLOCK.match(text)
        if match:
            self.t = stamp(match[1])
            self._query = None
        else:
            self._query = _Query()

    # ---- devices

    def device(
        self, line: int, gpu: int | None, name: str | None, total: int | None, profile: str | None = None, key: str = "",
        used: int | None = None,
    ) -> None:  # fmt: skip
        """One `gpu_device` row for each device or slice of the source, as it is printed first."""
        if gpu is not None and name is not None:
            self._names[gpu] = name
        identity = (gpu, name, total, profile, key)
        if identity not in self._known:
            self._known.add(identity)
            self.rows.add(
                "gpu_device", line, gpu=gpu, name=name, total_bytes=total, mig_profile=profile, count=1, used_bytes=used
            )

    def index(self, identity: str) -> int:
        """The index of a device by its uuid or bus id: what the source said of it, else the order of appearance."""
        return self._index.setdefault(identity, len(self._index))

    # ---- CSV

    def _csv(self, line: int, text: str) -> None:
        sheet = None if text[0] in _DIGITS else sheets.header(text)
        if sheet:
            if self.sheet is None or self.sheet.names != sheet.names:
                for name in sheet.unknown:
                    self.rows.problem(line, f"a column of unknown meaning in a table of nvidia-smi: {name[:60]}", text)
            self.sheet, self._query = sheet, None
            return
        cells = [cell.strip() for cell in text.split(",")]
        sheet = self.sheet
        if sheet is None or len(sheet.roles) != len(cells):
            sheet = self._bare_sheet(line, cells, text)
            if sheet is None:
                return
        values: dict[str, Any] = {}
        for at, role, value_of in sheet.used:
            try:
                values[role] = value_of(cells[at])
            except reads.UnreadableError:
                values[role] = None
                self.rows.problem(line, f"no value of {_SHOWN.get(role, role)}: {cells[at][:60]}", text)
        self._csv_row(line, sheet, values)

    def _csv_row(self, line: int, sheet: sheets.Sheet, values: Mapping[str, Any]) -> None:
        gpu = values.get("gpu")
        identity = values.get("uuid") or values.get("bus")
        if identity and gpu is not None:
            self._index[identity] = gpu
        elif identity and (not sheet.of_processes or identity in self._index):
            gpu = self.index(identity)
        t = values["t"] if values.get("t") is not None else self.t
        if sheet.of_processes:
            self.rows.add(
                "gpu_process", line, t=t, gpu=gpu, pid=values.get("pid"), type="C", name=values.get("process"),
                used_bytes=values.get("process_bytes"), gpu_uuid=values.get("uuid"),
            )  # fmt: skip
            return
        if values.get("name"):
            self.device(line, gpu, values["name"], values.get("total_bytes"))
        if sheet.measures:
            get = values.get
            row = (line, t, gpu, get("used_bytes"), get("total_bytes"), get("gpu_util"), get("memory_util"))
            self.samples.append(row)
            self._clock(line, t, gpu, get("clock"), get("hot"), get("gpu_util"))

    def _bare_sheet(self, line: int, cells: Sequence[str], text: str) -> sheets.Sheet | None:
        """The columns of a row without header."""
        count = len(cells)
        known = self.bare.get(count)
        kinds = tuple(map(sheets.kind_of, cells))
        if known and known.allows(kinds):
            return known
        expected = self.sheet or next((sheet for sheet in self.bare.values() if sheet), None)
        if count > _CELLS:
            return None
        rows = [cells] if kinds not in self._untold else []
        for raw in self._lines[self._at + 1 : self._at + _AHEAD] if rows else ():
            other = [cell.strip() for cell in reads.decode(raw).split(",")]
            if len(other) == count and all(
                a == b or "" in (a, b) for a, b in zip(kinds, map(sheets.kind_of, other), strict=True)
            ):
                rows.append(other)
        sheet, doubt = sheets.infer(rows) if rows else (None, "")
        if doubt and doubt not in self._told and not (sheet is None and expected):
            self._told.add(doubt)
            self.rows.problem(line, doubt, text)
        if sheet is None:
            if len(self._untold) < 1000:
                self._untold.add(kinds)
            if expected:
                self.rows.problem(line, f"not {len(expected.roles)} cells as in the rows before", text)
            return None
        self.bare[count] = sheet
        return sheet

    # ---- the boxed table, -L

    def _boxed(self, line: int, text: str) -> None:
        match = _BOX_DEVICE.match(text)
        if match:
            self._box = (int(match[1]), None if reads.null(match[2]) else match[2])
            return
        if self._box is not None:
            cells = text.strip().strip("|").split("|")
            found = _BOX_MEMORY.fullmatch(cells[1]) if len(cells) >= 3 else None
            if found:
                gpu, name = self._box
                self._box = None
                util = _BOX_UTIL.match(cells[2])
                used, total = (int(found[1]) * MIB, int(found[2]) * MIB) if found[1] else (None, None)
                self.device(line, gpu, name, total)
                share = int(util[1]) / 100 if util and int(util[1]) <= 100 else None
                self.samples.append((line, self.t, gpu, used, total, share, None))
            elif not text.strip("|+-= "):
                self._box = None
            return
        if match := _BOX_MIG.match(text):
            gpu = int(match[1])
            used, total = int(match[5]) * MIB, int(match[6]) * MIB
            self.device(line, gpu, self._names.get(gpu), total, MIG, f"{match[2]}/{match[3]}/{match[4]}", used)
        elif match := _BOX_PROCESS.match(text):
            used = int(match[5][:-3]) * MIB if match[5].endswith("MiB") else None
            self.rows.add(
                "gpu_process",
                line,
                t=self.t,
                gpu=int(match[1]),
                pid=int(match[2]),
                type=match[3],
                name=match[4],
                used_bytes=used,
            )

    def _listed(self, line: int, match: re.Match[str], text: str) -> None:
        if text.startswith("GPU"):
            self._listed_gpu = int(match[1])
            self._index[match[3]] = self._listed_gpu
            self.device(line, self._listed_gpu, match[2], None)
        else:  # a slice of the card listed above it
            gpu = self._listed_gpu
            self.device(line, gpu, self._names.get(gpu) if gpu is not None else None, None, match[1], match[3])

    # ---- dmon, pmon

    def _monitored(self, line: int, text: str) -> None:
        names = self._mon
        cells = text.split(None, len(names) - 1)
        if len(cells) != len(names):
            self.rows.problem(line, f"not {len(names)} columns as in the header", text)
            return
        row = {name: cell.strip() for name, cell in zip(names, cells, strict=True)}
        t = None
        if "time" in row:
            day = row.get("date", "")
            t = parse_time(f"{day[:4]}-{day[4:6]}-{day[6:8]} {row['time']}") if len(day) == 8 else None
        else:
            t = self.t
        try:
            gpu = reads.index(row["gpu"])
            used = reads.memory(row["fb"]) if "fb" in row else None
            if "pid" in row:
                pid = reads.whole(row["pid"])
                if pid is not None:
                    kind = row.get("type")
                    self.rows.add(
                        "gpu_process", line, t=t, gpu=gpu, pid=pid, type=None if kind in (None, "-") else kind,
                        name=row.get("command"), used_bytes=used,
                    )  # fmt: skip
            elif {"fb", "sm", "mem"} & row.keys():
                util, busy = reads.share(row.get("sm", "-")), reads.share(row.get("mem", "-"))
                self.samples.append((line, t, gpu, used, None, util, busy))
                self._clock(line, t, gpu, reads.clock(row.get("pclk", "-")), reads.clock(row.get("gtemp", "-")), util)
        except reads.UnreadableError as problem:
            self.rows.problem(line, f"no value of a monitor column: {str(problem)[:60]}", text)

    # ---- -q

    def _queried(self, line: int, text: str) -> None:
        query = self._query
        assert query is not None
        pair = _PAIR.fullmatch(text + " " if text.endswith(":") else text)
        indent = len(text) - len(text.lstrip())
        name = (pair[2] if pair else text).strip().lower()
        if not pair and text.startswith("GPU "):
            self._new_device(text[4:].strip())
            return
        while query.sections and query.sections[-1][0] >= indent:
            query.sections.pop()
        if pair:
            self._told_value(line, name, pair[3].strip())
        else:
            self._open(name)
            query.sections.append((indent, name))

    def _xml(self, line: int, text: str) -> None:
        match = _XML.fullmatch(text)
        if not match:
            return
        if match[2] == "nvidia_smi_log" and not match[1]:
            self.finish_query()
            self._query = _Query()
        query = self._query
        if query is None:
            return
        name = match[2].replace("_", " ")
        if match[4] is not None:
            self._told_value(line, _XML_NAMES.get(name, name), match[4].strip())
        elif match[1]:
            if query.sections:
                query.sections.pop()
        elif name == "gpu" and match[3]:
            self._new_device(match[3])
        else:
            self._open(name)
            query.sections.append((0, name))

    def _new_device(self, identity: str) -> None:
        self.finish_query()
        self._query = _Query(gpu=self.index(identity))

    def _open(self, name: str) -> None:
        """A section begins; that of a slice or process ends the one before."""
        assert self._query is not None
        if name in ("mig device", "processes", "process info"):
            self._finish_slice()
            self._finish_process()

    def _told_value(self, line: int, name: str, value: str) -> None:
        query = self._query
        assert query is not None
        if name == "timestamp":
            t = reads.date(value)
            self.t = t if t is not None else self.t
            return
        section = query.sections[-1][1] if query.sections else ""
        path = {entry for _, entry in query.sections}
        try:
            if section == "fb memory usage" and name in ("total", "used"):
                target = query.slice if "mig device" in path else query.device
                target[name], target["line"] = reads.memory(value), line
            elif (
                section == "utilization"
                and name in ("gpu", "gpu util", "memory", "memory util")
                and "mig device" not in path
            ):
                query.device["memory_util" if name.startswith("memory") else "gpu_util"] = reads.share(value)
                query.device.setdefault("line", line)
            elif name in ("gpu instance id", "compute instance id") and "mig device" in path and not query.process:
                query.slice["key"], query.slice["line"] = f"{query.slice.get('key', '')}/{value[:20]}", line
            elif name == "product name":
                query.name = None if reads.null(value) else value
            elif name == "process id":
                self._finish_process()
                query.process = {"line": line, "pid": reads.whole(value)}
            elif query.process and name in ("type", "name", "used gpu memory"):
                known = (
                    value
                    if name != "used gpu memory"
                    else reads.memory(value)
                    if reads.MEMORY.fullmatch(value)
                    else None
                )
                query.process[name] = None if known == "" else known
        except reads.UnreadableError:
            self.rows.problem(line, f"no value of {name}: {value[:60]}", value)

    def _finish_slice(self) -> None:
        query = self._query
        if query and query.slice:
            slice_, query.slice = query.slice, {}
            key = slice_.get("key") or str(slice_["line"])
            self.device(slice_["line"], query.gpu, query.name, slice_.get("total"), MIG, key, slice_.get("used"))

    def _finish_process(self) -> None:
        query = self._query
        if query and query.process:
            process, query.process = query.process, {}
            self.rows.add(
                "gpu_process", process["line"], t=self.t, gpu=query.gpu, pid=process["pid"], type=process.get("type"),
                name=process.get("name"), used_bytes=process.get("used gpu memory"),
            )  # fmt: skip

    def finish_query(self) -> None:
        """A device of a `-q` listing is complete."""
        query = self._query
        if query is None:
            return
        self._finish_slice()
        self._finish_process()
        device, query.device = query.device, {}
        if device:
            used, total = device.get("used"), device.get("total")
            self.device(device["line"], query.gpu, query.name, total)
            self.samples.append(
                (device["line"], self.t, query.gpu, used, total, device.get("gpu_util"), device.get("memory_util"))
            )

    # ---- the fast way

    def _fast(self, data: bytes, first_line: int) -> list[Batch] | None:
        """Samples of a chunk of rows of one query, with blocks, repeated headers and broken rows between them.

        None where the chunk holds anything else: a line that would change what the following ones mean.
        """
        found = self._template(data)
        cut = found[1].read(data, share=0.45) if found else None  # a loop over one device: as many headers as rows
        self._shape = found if cut else None
        if found is None or cut is None or any(sheets.beyond(name, column) for name, column in cut.columns.items()):
            return None
        blocks = _BLOCKS.fill(data, cut.odd[0], cut.odd[1], cut.odd[2][None, :], tuple(side[:0] for side in cut.odd))
        broken = []
        for at, begin, end in blocks.odd_lines():
            text = reads.decode(data[begin:end])
            if text.strip() and text.strip() != found[0].header:
                if not self._only_broken(text, found[0]):
                    return None
                broken.append((at, text))
        batches = self._fast_batches(cut, blocks, first_line)
        for at, text in broken:
            earlier = blocks.columns["t"][blocks.lines < at]
            t, self.t = self.t, float(earlier[-1]) if len(earlier) else self.t
            self._at, self._lines = 0, ()
            self._csv(first_line + at, text)
            self.t = t
        if len(blocks.lines):
            self.t = float(blocks.columns["t"][-1])
        return batches

    def _only_broken(self, text: str, sheet: sheets.Sheet) -> bool:
        """Whether a line is a row that went wrong and says nothing of the rows after it."""
        cells = [cell.strip() for cell in text.split(",")]
        if len(cells) < 2 or text[0] in _OWN_LINES or sheets.header(text) or _FAILED.search(text):
            return False
        return (sheet.header != "" and len(cells) == len(sheet.roles)) or "memory" not in map(sheets.kind_of, cells)

    def _fast_batches(self, cut: Cut, blocks: Cut, first_line: int) -> list[Batch]:
        """The samples of a cut; every row has the time of its block, the first rows that of the last chunk's."""
        import numpy as np

        columns, lines = cut.columns, cut.lines
        if not len(lines):
            return []
        out = {"line": lines + first_line, "t": columns.get("t")}
        if out["t"] is None:
            before = np.searchsorted(lines, blocks.lines)
            times = np.concatenate(([0.0 if self.t is None else self.t], blocks.columns["t"]))
            out["t"] = np.repeat(times, np.diff(before, prepend=0, append=len(lines)))
            early = before[0] if len(before) else len(lines)
            if self.t is None and early:
                out["t"] = np.ma.masked_array(out["t"], mask=np.arange(len(lines)) < early)
        if "identity" in columns:
            identities = columns["identity"].tolist()
            known = {each: None if each is None else self.index(each) for each in dict.fromkeys(identities)}
            out["gpu"] = [known[each] for each in identities]
        for name, column in columns.items():
            if name == "gpu":
                out[name] = column
            elif name.endswith("_bytes"):
                out[name] = column.astype(np.int64) * MIB
            elif name.endswith("_util"):
                out[name] = column / 100
        return [Batch("gpu_sample", out)]

    def _template(self, data: bytes) -> tuple[sheets.Sheet, Template] | None:
        """The shape of the chunk's rows, as its first rows show it under columns that are known."""
        lines = [line for line in data[:4096].split(b"\n")[:-1] if b"," in line]
        if not lines:
            return None
        width = lines[0].count(b",") + 1
        sheet = self.sheet if self.sheet and len(self.sheet.roles) == width else self.bare.get(width)
        if sheet is None or not sheet.measures:
            return None
        if self._shape and self._shape[0] is sheet:
            return self._shape
        rows = [line.split(b",") for line in lines if line.count(b",") == width - 1][:16]
        fields = []
        for at, role in enumerate(sheet.roles):
            cells = [row[at] for row in rows]
            identity = role in ("uuid", "bus") and "gpu" not in sheet.roles
            if role in sheets.FAST or identity:
                ending = b"\r" if at == width - 1 and cells[0].endswith(b"\r") else b""
                made = sheets.fast_field("identity" if identity else role, at, cells, ending, not sheet.header)
                if made is None:
                    return None
                fields.append(made)
        if sum(made.name == "identity" for made in fields) > 1:
            return None
        return sheet, Template(b",", width, tuple(fields), ((b"\x1b", 0),))


KEPT = (Reader, sheets.Sheet, _Query)
"""What a reading is made of (`ingest.kept`)."""

_SHOWN = {
    "used_bytes": "memory.used",
    "total_bytes": "memory.total",
    "process_bytes": "used_gpu_memory",
    "t": "timestamp",
    "gpu": "index",
}
_XML_NAMES = {"pid": "process id", "process name": "name", "used memory": "used gpu memory"}
_OWN_LINES = "|+=#<{>["  # what lines that mean more than a row begin with
_BLOCKS = Template(b"\n", 1, (Field("stamp", "t", 0, 0, b"=== ", b" ==="),))


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """Rows of `gpu_sample`, `gpu_device` and `gpu_process`, and of `problem` for rows that could not be read."""
    yield from read_by(reading(path), chunks)


def reading(path: str) -> Reader:
    """The state of a source of which nothing was read."""
    return Reader()


# ---- recognising

_BOX_LINE = re.compile(r"[|+]")
_BANNER = re.compile(r"\| NVIDIA-SMI \d")
_WORDS = (
    b"nvidia-smi", b"nvsmi", b"nvidia_smi", b"nvml", b"device handle", b"no devices were", b"(uuid", b"mib", b"# gpu", b"#date",
    b"mib |", b"#time", b"memory.", b"utilization.", b"memory_", b"utilization_", b"gpu_uuid", b"gpu_memory",
)  # fmt: skip
_MEMORY_CELL = re.compile(r",\s*\d+ ?MiB\s*(?:,|$)")


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
    if _FAILED.match(lines[0]) and len(lines) < 4:
        return True
    if sheets.header(lines[0]) is None and sum(bool(meanings(cell.strip())) for cell in lines[0].split(",")) > 2:
        return False  # a header in somebody's own words: its rows would be told by what their cells look like
    sheet, hits, proofs = None, 0, 0
    blocks = sum(1 for line in lines if _BLOCK.fullmatch(line.strip()))
    monitor = 0
    for line in lines:
        cells = line.count(",") + 1
        if _BANNER.match(line) or _LISTED.match(line) or _BOX_DEVICE.match(line) or _BOX_PROCESS.match(line):
            hits, proofs = hits + 1, proofs + 1
        elif (found := sheets.header(line)) and not found.is_own and not proofs:
            return False  # a table of somebody's own: `forms` knows its names
        elif found and _proves(found):
            sheet, hits, proofs = found, hits + 1, proofs + 1
        elif sheet and cells == len(sheet.roles):
            hits += 1
        elif cells > 2 and _MEMORY_CELL.search(line):
            hits, proofs = hits + 1, proofs + (blocks > 0 or cells > 3)
        elif _MON_HEADER.match(line):
            monitor = len(line[1:].split())
            hits += 1
        elif monitor and (line.startswith("#") or (_MON_ROW.match(line) and len(line.split()) >= monitor)):
            hits, proofs = hits + 1, proofs + 1
        elif (
            _LISTED_MIG.match(line)
            or _BLOCK.fullmatch(line.strip())
            or reads.DATE.search(line)
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
