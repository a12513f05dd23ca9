"""Lists of processes and containers with their memory: `ps`, `top`, `docker stats`, `/proc/PID/status`, the collector's samples.

      PID  PPID     RSS STAT COMMAND              2026-11-19T04:00:00Z
       41     1  500000 Sl   VLLM::EngineCore     41 500000 VLLM::EngineCore

Of `ps` and of samples each process is a row of `process_memory` (resident set, KiB as `ps` prints it); a large process of the
engine whose parent is process 1 is a note `orphan-process`, for its server is gone, unless process 1 is that server, as in most
containers. Of `top` the use of the processor is taken
(`process_cpu`), what its head tells of the host's memory (notes, as of `free`), and where it was called twice or more, the resident sets, with the clock of its first line: one call alone rounds memory
and shows no course. What `docker stats` tells is `container_stats`'. Names in a list are no statements: free text
never reads one. A `kill -9 PID` typed between listings is a `host_event` (`killed-by-operator`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from oomdoc.evidence.tables import Batch
from oomdoc.ingest import container_stats
from oomdoc.ingest.base import Head, Rows
from oomdoc.ingest.prompts import typed
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex
from oomdoc.units import KIB, MIB, parse_time

KIND = "process-list"

ORPHAN_BYTES = 64 * MIB
"""What an engine's process holds at least, in its resident set, once it has imported torch; helpers of Python hold 10 to 20 MiB."""

_LINE_CAP = 2000
_TEXT = 300
_HEAD_LINES = 12
"""Lines in which the header must come: people write a line or two above a listing."""
_NAME = 120
_COMMANDS = ("COMMAND", "CMD", "COMM", "ARGS")

_PS = regex(r"^\s*(?=.*\bPID\b)(?=.*\b(?:RSS(?:\b|_KI?B\b)|RSIZE\b|PPID\b))(?=.*\b(?:COMMAND|CMD|COMM|ARGS)\b)")
_OF_COLLECTOR = regex(r"[{}\"|;,]|(?i:(?<![\w%])(?:timestamp|ts|date|datetime|collected_at|sampled_at)(?![\w%]))")
"""What no header of `ps` has: marks of JSON and of delimited tables, a column of moments."""
_OTHERS = regex(r"\s*(?!.*\bGPU)(?=.*\bPID\b)(?=.*%CPU)(?=.*\b(?:COMMAND|CMD)\b)")  # top, ps without RSS
_SAMPLE_TIME = regex(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
_SAMPLE = regex(r"\s*(?P<pid>\d{1,9}) +(?P<kib>\d{1,15}) +(?P<command>\S.*)$")
_ENGINE_PROCESS = regex(r"(?i)VLLM::|EngineCore|\bWorker_|vllm|ray::")
_MAIN_PROCESS = regex(
    r"(?i)\bvllm(?:\.exe)? serve\b|\bapi_server\b|\bvllm\.entrypoints\b|\bray start\b|\braylet\b|\bgcs_server\b"
)
"""What a service manager starts itself: its parent is process 1, and it has lost none."""
_ENDS = regex(r"(?:sudo\s+)?kill -(?:s\s?)?(?:9|KILL|SIGKILL)\s+\d")
_SERVER = regex(r"(?i)\bpython[\d.]*\b|vllm|api_server")
_RAY_TITLE = regex(r"^(ray::\w{1,100})\.\w{1,100}")  # a busy actor bears the name of its call as well
_VMRSS = regex(r"^VmRSS:\s+(?P<kib>\d{1,15}) kB")
_RULE = regex(r"[-=\s]{3,}$")  # before the sum of what `smem` lists
_STATUS = regex(r"(?:Name|Tgid|VmPeak|VmSize|Threads):\t")


def resident(text: str) -> dict[str, Any] | None:
    """The row of a line `VmRSS: 123 kB` (`/proc/PID/status`); None for any other."""
    found = _VMRSS.match(text)
    return {"resource": "host", "bytes": int(found["kib"]) * KIB} if found else None


_TOP = regex(r"^\s*(?!.*\bGPU)(?=.*\bPID\b)(?=.*%CPU)(?=.*\b(?:COMMAND|CMD|COMM|ARGS)\b)")
_TOP_BEGIN = regex(r"\s*top - (?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d) up\b")
_LISTINGS = 2
"""Fewest calls of `top` that show a course."""
_RES = regex(r"(?P<number>\d{1,12}(?:[.,]\d{1,3})?)(?P<unit>[kmgtKMGT])?$")
_LETTERS = {"": KIB, "k": KIB, "m": MIB, "g": 1024 * MIB, "t": 1024 * 1024 * MIB}
_TOP_MEMORY = regex(r"\s*(?P<unit>[KMGT])iB Mem\s*: *(?P<total>[\d.,]{1,16}) total, *(?P<free>[\d.,]{1,16}) free, *(?P<used>[\d.,]{1,16}) used\b")  # fmt: skip
_TOP_READY = regex(r"\s*(?P<unit>[KMGT])iB Swap\s*:.{0,80}?(?P<size>\d[\d.,]{0,16}) avail Mem\s*$")
_OF_TOP = {"total": "host-size", "free": "host-idle", "used": "host-in-use"}
_ATOP = regex(r"ATOP - \S{1,80}\s+(?P<day>\d{4}/\d\d/\d\d)\s+(?P<clock>\d\d:\d\d:\d\d)")
_BUSY = 0.05
"""Share of a core below which a process does nothing that matters: a list has hundreds of those."""


def _cells(header: Sequence[str], raw: str) -> dict[str, str]:
    """The cells of a row under the names of a header; a command may hold blanks, wherever its column stands."""
    at = next((at for at, name in enumerate(header) if name in _COMMANDS), len(header) - 1)
    begin = raw.split(None, at)
    end = begin.pop().rsplit(None, len(header) - at - 1) if len(begin) > at else []
    return dict(zip(header, (*begin, *map(str.strip, end)), strict=False))


def _command(cell: dict[str, str]) -> str | None:
    return next((cell[key] for key in _COMMANDS if key in cell), None)


class HostLine:
    """Memory of the host in the head of `top`, whose second line tells what is available: the notes that `free` gives."""

    def __init__(self) -> None:
        self._sizes: dict[str, float] = {}

    def notes(self, raw: str) -> list[dict[str, Any]]:
        """The notes of one line; none but for the line that completes them."""
        if found := _TOP_MEMORY.match(raw):
            self._sizes = {topic: float(_resident(found[name] + found["unit"]) or 0) for name, topic in _OF_TOP.items()}
        elif self._sizes and (found := _TOP_READY.match(raw)):
            sizes, self._sizes = self._sizes, {}
            sizes["host-ready"] = float(_resident(found["size"] + found["unit"]) or 0)
            return [{"topic": topic, "value": value, "text": raw.strip()[:_TEXT]} for topic, value in sizes.items()]
        return []


class Tops:
    """Resident sets in the calls of `top` that a text holds one below the other: rows of `process_memory`, gathered until its end."""

    def __init__(self) -> None:
        self._header: list[str] | None = None
        self._clock: float | None = None
        self._first: float | None = None
        self._found: list[tuple[int, dict[str, Any]]] = []

    def line(self, number: int, raw: str) -> None:
        """Read a line."""
        begin = _TOP_BEGIN.match(raw)
        if begin:
            clock = int(begin["h"]) * 3600.0 + int(begin["m"]) * 60 + int(begin["s"])
            while self._clock is not None and clock < self._clock:
                clock += 86_400.0
            self._clock, self._header = clock, None
            self._first = clock if self._first is None else self._first
        elif self._clock is not None and _TOP.match(raw.upper()):
            self._header = raw.upper().split()
        elif self._header and self._clock is not None and len(self._found) < _MOST_RESIDENT:
            cell = _cells(self._header, raw)
            size = _resident(cell.get("RES", ""))
            if size is not None and "COMMAND" in cell and cell.get("PID", "").isdigit():
                row = _process(cell["COMMAND"].strip(), cell["PID"], size)
                self._found.append((number, {"elapsed_s": self._clock - (self._first or 0.0), **row}))

    def rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Of each process that is in enough of the calls."""
        count: dict[str, int] = {}
        for _, row in self._found:
            count[row["name"]] = count.get(row["name"], 0) + 1
        yield from ((number, row) for number, row in self._found if count[row["name"]] >= _LISTINGS)


_MOST_RESIDENT = 20_000


class Processors:
    """The use of processors in the listings of a text (`top`, `top -H`, `ps aux`)."""

    def __init__(self) -> None:
        self._header: list[str] | None = None

    def row(self, raw: str) -> dict[str, Any] | None:
        """The row of `process_cpu` that a line makes; None for a header or any other line."""
        if _TOP.match(raw.upper()):
            self._header = raw.upper().split()
            return None
        if self._header is None or not raw.strip():
            return None
        cell = _cells(self._header, raw)
        name = _command(cell)
        try:
            share = float(cell["%CPU"].replace(",", ".")) / 100
        except (KeyError, ValueError):
            return None
        if name is None or not cell.get("PID", "").isdigit() or not _BUSY <= share <= 1024:
            return None
        return {"name": name[:_NAME], "share": share}


def is_header(raw: str) -> bool:
    """Whether a line is the header of a listing of `ps` with resident sets, and no record or table of a collector."""
    return bool(_PS.match(raw.upper())) and not _OF_COLLECTOR.search(raw) and typed(raw) is None


class Listing:
    """The listings of `ps` in a text: `rows` gives the table and the columns of each row that a line makes."""

    def __init__(self) -> None:
        self.header: list[str] | None = None
        self.serves = False  # process 1 of this listing is a server itself, and no init that takes in orphans

    def begins(self, raw: str) -> bool:
        """Whether the line is the header of a listing."""
        if not is_header(raw):
            return False
        self.header = ["RSS" if name.startswith(("RSS", "RSIZE")) else name for name in raw.upper().split()]
        self.serves = False
        return True

    def ends(self) -> None:
        """What follows is no process of the listing."""
        self.header = None

    def rows(self, raw: str) -> list[tuple[str, dict[str, Any]]]:
        """The rows of one line; none where it is no process."""
        if self.header is None:
            return []
        cell = _cells(self.header, raw)
        command = _command(cell)
        if command is None:
            return []
        if cell.get("PID") == "1":
            self.serves = bool(_SERVER.search(command))
        lost = cell.get("PPID") == "1" and not self.serves
        told = {"topic": "orphan-process", "text": raw.strip()[:_TEXT]}
        if "RSS" not in cell:  # who asks for parents looks for the engine's processes that have lost theirs
            own = lost and cell.get("PID", "").isdigit() and _is_child(raw)
            return [("note", {**told, "value": None})] if own else []
        size = _resident(cell["RSS"])
        if size is None:
            return []
        rows = [("process_memory", _process(command, cell.get("PID"), size))]
        if lost and size >= ORPHAN_BYTES and _is_child(command):
            rows.append(("note", {**told, "value": float(size)}))
        return rows


def _is_child(command: str) -> bool:
    """Whether a process is one that a server starts, and not the server itself."""
    return bool(_ENGINE_PROCESS.search(command)) and not _MAIN_PROCESS.search(command)


def _resident(printed: str) -> int | None:
    """Bytes of a resident set: KiB, or what its letter says (`atop`)."""
    found = _RES.fullmatch(printed)
    if found is None:
        return None
    return int(float(found["number"].replace(",", ".")) * _LETTERS[(found["unit"] or "").lower()])


def _process(command: str, pid: str | None, size: int) -> dict[str, Any]:
    name = _RAY_TITLE.sub(r"\1", command)[:_NAME]
    return {"name": f"{name} (pid {pid})" if pid else name, "resource": "host", "bytes": size}


def matches(head: Head) -> bool:
    """A header of a listing near the top whose next lines are no prose, the collector's samples, or a status of `/proc`."""
    if b"\x00" in head.data:
        return False
    lines = head.told
    if not lines:
        return False
    if container_stats.JSON.match(lines[0]):
        return True
    others = any(_OTHERS.match(line) or container_stats.HEADER.match(line) for line in lines[:_HEAD_LINES])
    if others and not any(map(is_header, lines)):
        return True
    if _SAMPLE_TIME.match(lines[0]) and all(_SAMPLE.match(line) or _SAMPLE_TIME.match(line) for line in lines[1:]):
        return True
    if any(_VMRSS.match(line) for line in lines):
        return len({found[0] for line in lines if (found := _STATUS.match(line))}) >= 3
    return _mostly_listed(lines)


def _mostly_listed(lines: Sequence[str]) -> bool:
    """Four of five lines are headers or processes: what else stands there says when a listing was taken."""
    if not any(map(is_header, lines[:_HEAD_LINES])):
        return False
    listing, lines = Listing(), [line for line in lines if typed(line) is None and not _RULE.match(line)]
    return 5 * sum(listing.begins(line) or bool(listing.rows(line)) for line in lines) >= 4 * len(lines)


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """The processes, in the order of the text."""
    rows = Rows()
    listing, processors, tops, host = Listing(), Processors(), Tops(), HostLine()
    at: float | None = None
    called: float | None = None  # when `atop` was
    for chunk in chunks:
        for number, raw in chunk.lines(_LINE_CAP):
            tops.line(number, raw)
            for note in host.notes(raw):
                rows.add("note", number, **note)
            if busy := processors.row(raw):
                rows.add("process_cpu", number, **busy)
            if listing.begins(raw):
                continue
            if begun := _ATOP.match(raw):
                called = parse_time(f"{begun['day'].replace('/', '-')} {begun['clock']}")
                continue
            if _SAMPLE_TIME.match(raw):
                listing.ends()
                at = parse_time(raw)
                continue
            status = resident(raw)
            if status:
                rows.add("process_memory", number, **status)
            if _ENDS.match(typed(raw) or ""):
                rows.add("host_event", number, kind="killed-by-operator", text=raw.strip()[:_TEXT])
                continue
            found = listing.rows(raw)
            sample = _SAMPLE.match(raw) if at is not None and not found else None
            if sample:
                found = [("process_memory", {"t": at, **_process(sample["command"], sample["pid"], int(sample["kib"]) * KIB)})]  # fmt: skip
            for table, row in found:
                stamped = {"t": called} if called is not None and table == "process_memory" else {}
                rows.add(table, number, **{**stamped, **row})
        if rows.count >= 20_000:
            yield from rows.take()
    for number, row in tops.rows():
        rows.add("process_memory", number, **row)
    yield from rows.take()
