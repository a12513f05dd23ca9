"""The boxed table, `-L`, and the columns of dmon and pmon."""

from __future__ import annotations

from oomdoc.ingest.nvidia_smi import cells as reads
from oomdoc.ingest.nvidia_smi.findings import MIG, Findings
from oomdoc.regexes import regex
from oomdoc.units import MIB, parse_time

BOX_DEVICE = regex(
    r"\|\s+(\d{1,4})\s+(\S.*?)\s+(\S+)\s*\|\s*([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)\s+\S+\s*\|"
)
BOX_SHORT = regex(
    r"\|\s+(?P<gpu>\d{1,4})\s+(?P<name>[A-Za-z]\S*(?: \S+)*?)(?:\s+(?:On|Off))?(?:\s*\|?\s*(?P<bus>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)(?:\s+(?:On|Off))?)?"
    r"\s*\|\s*(?P<used>\d{1,9})MiB\s*/\s*(?P<total>\d{1,9})MiB\s*\|(?:\s*(?P<util>\d{1,3})%)?"
)
"""A device on one line: the two of the box, shortened by whoever pasted them."""
_BOX_MEMORY = regex(r"\s*(?:(\d{1,9})MiB\s*/\s*(\d{1,9})MiB|(Not Supported|N/A|ERR!|Unknown Error|.*N/A.*))\s*")
_BOX_UTIL = regex(r"\s*(\d{1,3})%")
BOX_MIG = regex(r"\|\s*(\d{1,4})\s+(\d+|N/A)\s+(\d+|N/A)\s+(\d+)\s*\|\s*(\d{1,9})MiB\s*/\s*(\d{1,9})MiB\s*\|")
BOX_PROCESS = regex(
    r"\|\s+(\d{1,4})\s+(?:(?:N/A|\d+)\s+(?:N/A|\d+)\s+)?(\d{1,15})\s+(C\+G|M\+C|C|G)\s+(\S.*?)\s+(\d{1,9}MiB|N/A|Not Supported)\s*\|"
)
LISTED = regex(r"GPU (\d{1,4}): (\S.*?) \(UUID: ([^)\s]+)\)")
LISTED_MIG = regex(r"\s+MIG (\S+)\s+Device\s+(\d+): \(UUID: ([^)\s]+)\)")
MONITOR_HEADER = regex(r"#\s*(?:Date\s+)?(?:Time\s+)?gpu\s")
MONITOR_ROW = regex(r"\s*(?:\d{8}\s+)?(?:(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d\S{0,20}\s+)?\d+\s")
_STAMPED = regex(r"\s*(?P<stamp>(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)\s+(?=\d)")
"""What a shell put before each row of a monitor whose header knows nothing of it: `nvidia-smi dmon | while read -r l; do ...`."""
FAILED = regex(
    r"NVIDIA-SMI has failed|Failed to initialize NVML|Unable to determine the device handle|No devices were found"
)


class Boxes:
    """The boxed table: a device takes two lines."""

    def __init__(self, found: Findings) -> None:
        self._found = found
        self._box: tuple[int, str | None, str] | None = None

    def add(self, line: int, text: str) -> None:
        """A line of it."""
        if short := BOX_SHORT.match(text):
            self._box = None
            sizes = int(short["used"]) * MIB, int(short["total"]) * MIB
            self._device(line, int(short["gpu"]), short["name"], *sizes, short["util"], short["bus"])
            return
        match = BOX_DEVICE.match(text)
        if match:
            self._box = (int(match[1]), None if reads.null(match[2]) else match[2], match[4])
            return
        if self._box is not None:
            cells = text.strip().strip("|").split("|")
            found = _BOX_MEMORY.fullmatch(cells[1]) if len(cells) >= 3 else None
            if found:
                gpu, name, bus_id = self._box
                self._box = None
                util = _BOX_UTIL.match(cells[2])
                used, total = (int(found[1]) * MIB, int(found[2]) * MIB) if found[1] else (None, None)
                self._device(line, gpu, name, used, total, util[1] if util else None, bus_id)
            elif not text.strip("|+-= "):
                self._box = None
            return
        if match := BOX_MIG.match(text):
            gpu = int(match[1])
            used, total = int(match[5]) * MIB, int(match[6]) * MIB
            self._found.device(
                line, gpu, self._found.names.get(gpu), total, MIG, f"{match[2]}/{match[3]}/{match[4]}", used
            )
        elif match := BOX_PROCESS.match(text):
            used = int(match[5][:-3]) * MIB if match[5].endswith("MiB") else None
            self._found.process(line, self._found.t, int(match[1]), int(match[2]), match[3], match[4], used)

    def _device(
        self, line: int, gpu: int, name: str | None, used: int | None, total: int | None, util: str | None, bus_id: str | None,
    ) -> None:  # fmt: skip
        self._found.device(line, gpu, name, total, bus_id=bus_id)
        share = int(util) / 100 if util and int(util) <= 100 else None
        self._found.samples.append((line, self._found.t, gpu, used, total, share, None))


class Listing:
    """`-L`: cards, and below each its slices."""

    def __init__(self, found: Findings) -> None:
        self._found = found
        self._gpu: int | None = None

    def add(self, line: int, text: str) -> bool:
        """A line, if it is one of a listing."""
        match = LISTED.match(text) or LISTED_MIG.match(text)
        if match is None:
            return False
        if text.startswith("GPU"):
            self._gpu = int(match[1])
            self._found.indices[match[3]] = self._gpu
            self._found.device(line, self._gpu, match[2], None, uuid=match[3])
        else:  # a slice of the card listed above it
            gpu = self._gpu
            self._found.device(
                line, gpu, self._found.names.get(gpu) if gpu is not None else None, None, match[1], match[3]
            )
        return True


class Monitor:
    """dmon and pmon: a header that names the columns, then rows of numbers."""

    def __init__(self, found: Findings) -> None:
        self._found = found
        self._names: list[str] = []

    def header(self, text: str) -> None:
        """Take the columns of a line, if it names them."""
        if MONITOR_HEADER.match(text):
            self._names = text[1:].lower().split()

    def is_row(self, text: str) -> bool:
        """Whether a line can be a row below such a header."""
        return bool(self._names) and MONITOR_ROW.match(text) is not None

    def add(self, line: int, text: str) -> None:
        """A row."""
        names, t = self._names, None
        if "time" not in names and (stamped := _STAMPED.match(text)):
            text, t = text[stamped.end() :], parse_time(stamped["stamp"])
        cells = text.split(None, len(names) - 1)
        if len(cells) != len(names):
            self._found.rows.problem(line, f"not {len(names)} columns as in the header", text)
            return
        row = {name: cell.strip() for name, cell in zip(names, cells, strict=True)}
        if "time" in row:
            day = row.get("date", "")
            t = parse_time(f"{day[:4]}-{day[4:6]}-{day[6:8]} {row['time']}") if len(day) == 8 else None
        elif t is None:
            t = self._found.t
        try:
            gpu = reads.index(row["gpu"])
            used = reads.memory(row["fb"]) if "fb" in row else None
            if "pid" in row:
                pid = reads.whole(row["pid"])
                if pid is not None:
                    kind = row.get("type")
                    self._found.process(line, t, gpu, pid, None if kind == "-" else kind, row.get("command"), used)
            elif {"fb", "sm", "mem"} & row.keys():
                util, busy = reads.share(row.get("sm", "-")), reads.share(row.get("mem", "-"))
                self._found.samples.append((line, t, gpu, used, None, util, busy))
                self._found.clock(
                    line, t, gpu, reads.clock(row.get("pclk", "-")), reads.clock(row.get("gtemp", "-")), util
                )
        except reads.UnreadableError as problem:
            self._found.rows.problem(line, f"no value of a monitor column: {str(problem)[:60]}", text)
