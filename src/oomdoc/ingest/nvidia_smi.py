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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from oomdoc.columns import WORTHWHILE_BYTES, Cut, Field, Memo, Template, is_null, stamp
from oomdoc.ingest.base import Head, from_line_start, read_by
from oomdoc.ingest.problems import Capped
from oomdoc.ingest.record import peel
from oomdoc.scan import Chunk
from oomdoc.tables import TABLES as ALL_TABLES
from oomdoc.tables import Batch
from oomdoc.units import MIB, parse_time

KIND = "nvidia-smi"
TABLES = ("gpu_sample", "gpu_device", "gpu_process", "problem")

_SAMPLE_COLUMNS = ALL_TABLES["gpu_sample"].column_names[1:]
_MIB_CAP = 10**9  # a pebibyte: more is no memory of a device
_INDEX_CAP = 10**4
_WIDE = 256  # characters of a line of the boxed table or of -q that are looked at; drivers print up to 120
_CELLS = 64  # more is no row of a query
_AHEAD = 64  # rows that are looked at to tell columns without header
MIG = "MIG"
_DIGITS = "0123456789"

# ---- times

_DAYS = "Mon|Tue|Wed|Thu|Fri|Sat|Sun"
_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_DATE = re.compile(
    rf"(?:{_DAYS})\s+({_MONTHS})\s+(\d{{1,2}})\s+(\d\d):(\d\d:\d\d)(?: ([AP])M)?(?: [A-Z][A-Za-z]{{1,4}})?\s+(\d{{4}})"
)
_BLOCK = re.compile(r"=== (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) ===")


def _date(text: str) -> float | None:
    """Epoch seconds of `Tue Nov 18 10:00:00 2026` or of an ISO stamp anywhere in the text."""
    match = _DATE.search(text)
    if not match:
        return parse_time(text)
    month = _MONTHS.split("|").index(match[1]) + 1
    hour = int(match[3]) % 12 + 12 * (match[5] == "P") if match[5] else int(match[3])
    return parse_time(f"{match[6]}-{month:02}-{int(match[2]):02} {hour:02}:{match[4]}")


# ---- values

_MEMORY = re.compile(r"(\d{1,15})(?:\.\d+)?\s?(MiB|MB|GiB|GB|KiB|KB)?", re.I)
_PERCENT = re.compile(r"(\d{1,15})\s?%?")
_FACTOR = {"k": 1 / 1024, "m": 1, "g": 1024}


class _UnreadableError(ValueError):
    """A cell that should be a number and is none."""


def _decode(line: bytes) -> str:
    """The text of a line, as far as any row of a query goes."""
    return line[:8192].decode("utf-8", "replace").rstrip("\r")


def _null(text: str) -> bool:
    return is_null(text.encode("utf-8", "replace"))


@lru_cache(maxsize=4096)  # cells repeat: half of the time of a row
def _memory(text: str) -> int | None:
    """Bytes of `76012 MiB`, `76012` or a NULL."""
    if _null(text):
        return None
    match = _MEMORY.fullmatch(text)
    size = int(match[1]) * _FACTOR[(match[2] or "M")[0].lower()] if match else _MIB_CAP + 1
    if size > _MIB_CAP:
        raise _UnreadableError(text)
    return int(size * MIB)


@lru_cache(maxsize=4096)
def _share(text: str) -> float | None:
    """The share that `93 %` or `93` is."""
    if _null(text):
        return None
    match = _PERCENT.fullmatch(text)
    if not match or int(match[1]) > 100:
        raise _UnreadableError(text)
    return int(match[1]) / 100


@lru_cache(maxsize=4096)
def _whole(text: str) -> int | None:
    if _null(text):
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise _UnreadableError(text)
    return int(text)


# ---- CSV

_ROLES: Mapping[str, str] = {
    "timestamp": "t", "index": "gpu", "gpu.index": "gpu", "name": "name", "gpu.name": "name", "uuid": "uuid", "gpu.uuid": "uuid",
    "pci.bus.id": "bus", "gpu.bus.id": "bus", "utilization.gpu": "gpu_util", "utilization.memory": "memory_util",
    "memory.used": "used_bytes", "memory.total": "total_bytes", "memory.free": "free", "memory.reserved": "reserved",
    "pid": "pid", "process.name": "process", "used.gpu.memory": "process_bytes", "used.memory": "process_bytes",
}  # fmt: skip
_STRONG = {"gpu_util", "memory_util", "used_bytes", "total_bytes", "free", "process_bytes"}
_HEADER_CELL = re.compile(r"([A-Za-z][\w.]*)(?: ?\[([^\]]*)\])?")
_CELL_KINDS = (
    ("stamp", re.compile(r"\d{4}[/-]\d\d[/-]\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?")),
    ("memory", re.compile(r"\d+ ?MiB")),
    ("percent", re.compile(r"\d+ ?%")),
    (
        "other",
        re.compile(r"\d+(?:\.\d+)? ?(?:W|MHz|C)|\d+\.\d+|0x[0-9a-fA-F]+|P\d\d?|Enabled|Disabled|Active|Not Active"),
    ),
    ("whole", re.compile(r"\d+")),
    ("uuid", re.compile(r"(?:GPU|MIG)-[0-9a-fA-F-]{8,}(?:/\d+)*")),
    ("bus", re.compile(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d")),
)
_PRODUCT = re.compile(r"NVIDIA|Tesla|GeForce|Quadro|GRID|RTX|GTX")


@dataclass(frozen=True)
class _Sheet:
    """The columns of a CSV query: the role of each cell ("" = of no use here), and its header, if it has one."""

    roles: tuple[str, ...]
    header: str = ""
    kinds: tuple[str, ...] = ()

    @cached_property
    def of_processes(self) -> bool:
        """Rows are processes, not devices."""
        return "pid" in self.roles

    @cached_property
    def measures(self) -> bool:
        """Rows hold memory or utilization of a device."""
        return bool(_STRONG & set(self.roles)) and not self.of_processes

    @cached_property
    def used(self) -> tuple[tuple[int, str, Callable[[str], Any]], ...]:
        """Place, role and reader of the cells that matter."""
        return tuple((at, role, _READ[role]) for at, role in enumerate(self.roles) if role in _READ)

    def allows(self, kinds: Sequence[str]) -> bool:
        """Whether cells of these kinds can be a row of these columns, which were told by their kinds."""
        return all(kinds[at] in ("", self.kinds[at]) for at, role, _ in self.used if role in _FAST)


def _header(text: str) -> _Sheet | None:
    """The columns that a header names; None for a line that is no header of a query."""
    names = []
    for cell in text.split(","):
        match = _HEADER_CELL.fullmatch(cell.strip())
        if not match:
            return None
        names.append(re.sub(r"\.(?:mib|mb)$", "", match[1].lower().replace("_", ".")))
    roles = [_ROLES.get(name, "") for name in names]
    if "pid" in roles:  # in a list of processes `name` is theirs
        roles = ["process" if name == "name" else role for name, role in zip(names, roles, strict=True)]
    known = set(roles) - {""}
    strong = known & _STRONG or {"gpu", "name"} <= known or {"name", "uuid"} <= known or {"pid", "process"} <= known
    twice = any(roles.count(role) > 1 for role in known)
    return _Sheet(tuple(roles), text.strip()) if strong and len(names) > 1 and not twice else None


@lru_cache(maxsize=4096)
def _kind(cell: str) -> str:
    if _null(cell) or (cell[:1] == "[" and cell[-1:] == "]"):
        return ""
    return next((name for name, pattern in _CELL_KINDS if pattern.fullmatch(cell)), "text")


def _infer(rows: Sequence[Sequence[str]]) -> tuple[_Sheet | None, str]:
    """The columns of rows without header, and what could not be told ("" = everything could)."""
    kinds = []
    for column in zip(*rows, strict=True):
        seen = {kind for kind in map(_kind, column) if kind}
        kinds.append(seen.pop() if len(seen) == 1 else "text" if seen else "")
    roles = [{"stamp": "t", "uuid": "uuid", "bus": "bus"}.get(kind, "") for kind in kinds]
    wholes = [at for at, kind in enumerate(kinds) if kind == "whole"]
    percents = [at for at, kind in enumerate(kinds) if kind == "percent"]
    memories = [at for at, kind in enumerate(kinds) if kind == "memory"]
    texts = [at for at, kind in enumerate(kinds) if kind == "text"]
    if not memories:
        return None, "columns cannot be told without header and units"
    if any(roles.count(role) > 1 for role in ("t", "uuid", "bus")):
        return None, "columns cannot be told: two of one kind"
    names = [row[texts[0]] for row in rows] if texts else []
    products = bool(names) and all(_PRODUCT.search(name) for name in names)
    if wholes and texts and len(memories) == 1 and not percents and not products:
        roles[wholes[0]], roles[texts[0]], roles[memories[0]] = "pid", "process", "process_bytes"
        return _Sheet(tuple(roles), "", tuple(kinds)), ""
    if wholes and all(int(row[wholes[0]]) < 128 for row in rows if row[wholes[0]].isdigit()):
        roles[wholes[0]] = "gpu"
    if products:
        roles[texts[0]] = "name"
    for at, role in zip(percents, ("gpu_util", "memory_util"), strict=False):
        roles[at] = role if len(percents) <= 2 else ""
    sizes = [[size if (size := _size(row[at])) is not None else 0 for row in rows] for at in memories]
    if len(memories) == 1:
        if len(set(sizes[0])) == 1:
            return None, "one size without header: used or total memory?"
        roles[memories[0]] = "used_bytes"
    else:
        largest = [
            at
            for at, size in zip(memories, sizes, strict=True)
            if all(a <= b for other in sizes for a, b in zip(other, size, strict=True))
        ]
        if not largest:
            return None, "columns cannot be told: no size is the largest in every row"
        total = largest[-1]
        roles[total] = "total_bytes"
        if len(memories) > 2:
            return _Sheet(tuple(roles), "", tuple(kinds)), "used and free memory cannot be told apart without header"
        roles[next(at for at in memories if at != total)] = "used_bytes"
    return _Sheet(tuple(roles), "", tuple(kinds)), ""


def _size(text: str) -> int | None:
    try:
        return _memory(text)
    except _UnreadableError:
        return None


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
        self.sheet: _Sheet | None = None
        self.bare: dict[int, _Sheet | None] = {}  # columns without header, by their number
        self._told: set[str] = set()
        self._untold: set[tuple[str, ...]] = set()  # kinds of cells of which no columns could be made
        self._known: set[tuple[Any, ...]] = set()
        self._names: dict[int, str] = {}
        self._index: dict[str, int] = {}  # device index by uuid or bus id
        self._box: tuple[int, str | None] | None = None
        self._listed_gpu: int | None = None
        self._query: _Query | None = None
        self._mon: list[str] = []
        self._lines: Sequence[bytes] = ()
        self._at = 0
        self._shape: tuple[_Sheet, Template] | None = None  # what fitted the last chunk

    # ---- a chunk

    def chunk(self, chunk: Chunk) -> Iterator[Batch]:
        """Everything that a chunk holds."""
        data, first_line = from_line_start(chunk)
        if len(data) >= WORTHWHILE_BYTES and self._query is None:
            lead = 0
            for _ in range(_AHEAD):  # the header, the rows that tell the columns and name the devices: plainly
                lead = data.find(b"\n", lead) + 1 or len(data)
            head, rest = (b"", data) if self.sheet or self.bare else (data[:lead], data[lead:])
            if head:
                self._plain(head, first_line, data.split(b"\n", _AHEAD)[:_AHEAD])
            quick = self._fast(rest, first_line + head.count(b"\n"))
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
                    self._line(first_line + at, _decode(piece) or " ")
                continue
            text = _decode(raw)
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
            t = _date(text) if len(text) < 200 else None
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
        sheet = None if text[0] in _DIGITS else _header(text)
        if sheet:
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
            except _UnreadableError:
                values[role] = None
                self.rows.problem(line, f"no value of {_SHOWN.get(role, role)}: {cells[at][:60]}", text)
        self._csv_row(line, sheet, values)

    def _csv_row(self, line: int, sheet: _Sheet, values: Mapping[str, Any]) -> None:
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

    def _bare_sheet(self, line: int, cells: Sequence[str], text: str) -> _Sheet | None:
        """The columns of a row without header."""
        count = len(cells)
        known = self.bare.get(count)
        kinds = tuple(map(_kind, cells))
        if known and known.allows(kinds):
            return known
        expected = self.sheet or next((sheet for sheet in self.bare.values() if sheet), None)
        if count > _CELLS:
            return None
        rows = [cells] if kinds not in self._untold else []
        for raw in self._lines[self._at + 1 : self._at + _AHEAD] if rows else ():
            other = [cell.strip() for cell in _decode(raw).split(",")]
            if len(other) == count and all(
                a == b or "" in (a, b) for a, b in zip(kinds, map(_kind, other), strict=True)
            ):
                rows.append(other)
        sheet, doubt = _infer(rows) if rows else (None, "")
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
            self._box = (int(match[1]), None if _null(match[2]) else match[2])
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
            gpu = _index(row["gpu"])
            used = _memory(row["fb"]) if "fb" in row else None
            if "pid" in row:
                pid = _whole(row["pid"])
                if pid is not None:
                    kind = row.get("type")
                    self.rows.add(
                        "gpu_process", line, t=t, gpu=gpu, pid=pid, type=None if kind in (None, "-") else kind,
                        name=row.get("command"), used_bytes=used,
                    )  # fmt: skip
            elif {"fb", "sm", "mem"} & row.keys():
                util, busy = _share(row.get("sm", "-")), _share(row.get("mem", "-"))
                self.samples.append((line, t, gpu, used, None, util, busy))
        except _UnreadableError as problem:
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
            t = _date(value)
            self.t = t if t is not None else self.t
            return
        section = query.sections[-1][1] if query.sections else ""
        path = {entry for _, entry in query.sections}
        try:
            if section == "fb memory usage" and name in ("total", "used"):
                target = query.slice if "mig device" in path else query.device
                target[name], target["line"] = _memory(value), line
            elif (
                section == "utilization"
                and name in ("gpu", "gpu util", "memory", "memory util")
                and "mig device" not in path
            ):
                query.device["memory_util" if name.startswith("memory") else "gpu_util"] = _share(value)
                query.device.setdefault("line", line)
            elif name in ("gpu instance id", "compute instance id") and "mig device" in path and not query.process:
                query.slice["key"], query.slice["line"] = f"{query.slice.get('key', '')}/{value[:20]}", line
            elif name == "product name":
                query.name = None if _null(value) else value
            elif name == "process id":
                self._finish_process()
                query.process = {"line": line, "pid": _whole(value)}
            elif query.process and name in ("type", "name", "used gpu memory"):
                known = value if name != "used gpu memory" else _memory(value) if _MEMORY.fullmatch(value) else None
                query.process[name] = None if known == "" else known
        except _UnreadableError:
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
        if found is None or cut is None or any(_beyond(name, column) for name, column in cut.columns.items()):
            return None
        blocks = _BLOCKS.fill(data, cut.odd[0], cut.odd[1], cut.odd[2][None, :], tuple(side[:0] for side in cut.odd))
        broken = []
        for at, begin, end in blocks.odd_lines():
            text = _decode(data[begin:end])
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

    def _only_broken(self, text: str, sheet: _Sheet) -> bool:
        """Whether a line is a row that went wrong and says nothing of the rows after it."""
        cells = [cell.strip() for cell in text.split(",")]
        if len(cells) < 2 or text[0] in _OWN_LINES or _header(text) or _FAILED.search(text):
            return False
        return (sheet.header != "" and len(cells) == len(sheet.roles)) or "memory" not in map(_kind, cells)

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

    def _template(self, data: bytes) -> tuple[_Sheet, Template] | None:
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
            if role in _FAST or identity:
                ending = b"\r" if at == width - 1 and cells[0].endswith(b"\r") else b""
                made = _fast_field("identity" if identity else role, at, cells, ending, not sheet.header)
                if made is None:
                    return None
                fields.append(made)
        if sum(made.name == "identity" for made in fields) > 1:
            return None
        return sheet, Template(b",", width, tuple(fields), ((b"\x1b", 0),))


KEPT = (Reader, _Sheet, _Query)
"""What a reading is made of (`ingest.kept`)."""


def _index(text: str) -> int | None:
    value = _whole(text)
    if value is not None and value >= _INDEX_CAP:
        raise _UnreadableError(text)
    return value


def _stamp(text: str) -> float | None:
    if _null(text):
        return None
    t = stamp(text)
    if t is None:
        raise _UnreadableError(text)
    return t


def _name(text: str) -> str | None:
    return None if _null(text) else text


_READ: Mapping[str, Callable[[str], Any]] = {
    "t": _stamp, "gpu": _index, "name": _name, "uuid": _name, "bus": _name, "gpu_util": _share, "memory_util": _share,
    "used_bytes": _memory, "total_bytes": _memory, "pid": _whole, "process": str, "process_bytes": _memory,
}  # fmt: skip
_SHOWN = {
    "used_bytes": "memory.used",
    "total_bytes": "memory.total",
    "process_bytes": "used_gpu_memory",
    "t": "timestamp",
    "gpu": "index",
}
_XML_NAMES = {"pid": "process id", "process name": "name", "used memory": "used gpu memory"}
_FAST = {"t", "gpu", "gpu_util", "memory_util", "used_bytes", "total_bytes"}
IDENTITY = Memo(lambda text: None if is_null(text.strip()) else text.strip().decode("utf-8", "replace"))
_FAST_STAMP = re.compile(rb"\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d(?:[.,](\d{1,9}))?")
_FAST_CELL = re.compile(rb"(\s*)\d+( MiB| %|)")
_OWN_LINES = "|+=#<{>["  # what lines that mean more than a row begin with
_BLOCKS = Template(b"\n", 1, (Field("stamp", "t", 0, 0, b"=== ", b" ==="),))


def _beyond(name: str, column: Any) -> bool:
    """Whether a column holds numbers that no device has: those rows are problems, told by the plain reader."""
    cap = _INDEX_CAP - 1 if name == "gpu" else _MIB_CAP if name.endswith("_bytes") else 100
    return name not in ("t", "identity") and len(column) > 0 and bool(column.max() > cap)


def _fast_field(role: str, at: int, cells: Sequence[bytes], ending: bytes, bare: bool) -> Field | None:
    """A template's field for a column, as its first cells show it; None where they have a form of another kind.

    Columns that were told by their units (`bare`) have to keep them.
    """
    texts = [cell[: len(cell) - len(ending)] for cell in cells if cell.endswith(ending)]
    if not texts:
        return None
    lead = texts[0][: len(texts[0]) - len(texts[0].lstrip())]
    if role == "identity":
        return Field("text", role, at, at, lead, ending, decode=IDENTITY)
    if role == "t":
        match = _FAST_STAMP.fullmatch(texts[0], len(lead))
        return Field("stamp", "t", at, at, lead, ending, len(match[1] or b"")) if match else None
    for text in texts:
        match = _FAST_CELL.fullmatch(text)
        if match:
            unit = b" MiB" if role.endswith("_bytes") else b" %" if role.endswith("_util") else b""
            if match[2] != unit and (match[2] or bare):
                return None
            return Field("integer", role, at, at, match[1], match[2] + ending)
    return Field("integer", role, at, at, lead, ending) if all(is_null(text.strip()) for text in texts) else None


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
    b"#time", b"memory.", b"utilization.", b"memory_", b"utilization_", b"gpu_uuid", b"gpu_memory",
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
    sheet, hits, proofs = None, 0, 0
    blocks = sum(1 for line in lines if _BLOCK.fullmatch(line.strip()))
    monitor = 0
    for line in lines:
        cells = line.count(",") + 1
        if _BANNER.match(line) or _LISTED.match(line) or _BOX_DEVICE.match(line):
            hits, proofs = hits + 1, proofs + 1
        elif (found := _header(line)) and _proves(found):
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
            or _DATE.search(line)
            or (proofs and _BOX_LINE.match(line))
        ):
            hits += 1
    return proofs > 0 and hits >= 0.5 * len(lines)


def _proves(sheet: _Sheet) -> bool:
    """Whether a header can only be nvidia-smi's: a dotted or bracketed name, not words that any table has."""
    text = sheet.header.lower()
    return any(
        name in text for name in ("memory.", "utilization.", "used_gpu_memory", "used_memory", "gpu_uuid", "[mib]")
    )
