"""Memory as the system's own tools print it again and again: of the host `free`, `/proc/meminfo`, `vmstat`, `sar -r`, `top`, earlyoom, `tegrastats`;
of one process `smaps_rollup` and the last line of `pmap -x`.

    Mem:           503Gi       418Gi        30Gi       2.1Gi        55Gi        81Gi
    MemAvailable:   23452672 kB
    MiB Swap:      0.0 total,      0.0 free,      0.0 used.   8120.5 avail Mem
    total kB         99713752 18325108 18211220

One listing says how large a host is (`host_events`); two of one source are a series: rows of `process_memory`, resource `host-available`
(of a process its resident set, resource `host`), with the stamp or the clock that stands above or in the line, the line of text above it as the state, and their number as the step.
`vmstat` and old releases of `free` do not tell what is available: there it is what is free, and the caches that the kernel would give back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Rows, phrases
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex
from oomdoc.units import GIB, KIB, MIB, parse_size, parse_time

ANCHORS = tuple(
    anchor.encode()
    for anchor in phrases("Mem: |MemAvailable:|avail Mem|kbmemfree|swpd|mem avail:|MB (lfb|total kB|[rollup]")
)
_CAP_BYTES = 8 << 20
"""What is read of one source: a day of `sar` every second is 6 MiB, and no log of a server that is longer lists its host's memory."""
_LEAST = 2
_LINE_CAP = 400
_STATE_CAP = 120
_STAMPED = r"\[?(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d\S{0,10}[ \t]+"
"""What `ts` and its like put before each line."""
_FREE_HEAD = regex(rf"(?:{_STAMPED})?\s*(?P<names>total +used +free\b[a-z/ -]*)$")
_FREE = regex(rf"(?:{_STAMPED})?\s*Mem: +(?P<cells>[\d.]+[KMGTi]{{0,2}}B?(?: +[\d.]+[KMGTi]{{0,2}}B?){{2,6}})\s*$")
_MEMINFO = regex(rf"(?:{_STAMPED})?\s*MemAvailable: +(?P<kib>\d{{1,15}}) kB\s*$")
_TOP = regex(r".*?\b(?P<unit>[KMGT]iB) Swap\s*:.{0,80}?(?P<size>[\d.]{1,16}) avail Mem\s*$")
_EARLYOOM = regex(r".*?\bmem avail: +(?P<size>\d{1,9}) of +\d{1,9} MiB\b")
_TEGRA = regex(r".{0,60}\bRAM (?P<used>\d{1,8})/(?P<total>\d{1,8})MB \(lfb ")
"""`tegrastats` of a Jetson, whose devices share the memory of the host."""
_PMAP = regex(r"total kB +\d{1,15} +(?P<kib>\d{1,15}) +\d{1,15}\s*$")
_ROLLUP = regex(r".{0,80}\[rollup\]\s*$")
_RSS = regex(r"Rss: +(?P<kib>\d{1,15}) kB\s*$")
_CLOCK = regex(r"(?:top - )?(?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)(?P<half> [AP]M)?\b")
_TABLE_HEAD = regex(r"(?=.*\b(?:kbmemfree|swpd)\b)[\w:%/ .-]+$")
_PROMPT = regex(r"\s*(?:\S{0,60}[$#%❯>]\s|\+ )|\s*(?:free|vmstat|sar|top|cat|watch|date)\b")
_SYSSTAT = regex(
    r"Linux \S{1,80} \([^)\n]{1,80}\)\s+(?:(?P<year>\d{4})-(?P<m>\d\d)-(?P<d>\d\d)|(?P<month>\d\d)/(?P<day>\d\d)/(?P<of>\d{2}|\d{4}))\s"
)
"""The first line of `sar`: the day that its clocks are of, month first in the locale C."""
_NO_STATE = regex(r"\s*(?:[A-Z][\w()]{2,30}: +\d+(?: kB)?|Swap:|procs\b|Linux \d|[-= ]+)")


def cell_of_free(printed: str, whole: str) -> int | None:
    """Bytes of a cell of `free`; without a unit that of `-g`, `-m` or none: hosts of servers have 4 GiB to 4 TiB."""
    if len(printed) > 18 or not printed.replace(".", "", 1).isdigit():
        return parse_size(printed, binary=True)
    total = float(whole) if whole.replace(".", "", 1).isdigit() else 0.0
    return int(float(printed) * (GIB if total < 4 * KIB else MIB if total < 4 * MIB else KIB))


class Listings:
    """Gathers the listings of one source; a single one is no series."""

    def __init__(self) -> None:
        self._found: list[tuple[int, dict[str, Any]]] = []
        self._names: list[str] = []
        self._head: list[str] = []
        self._state: str | None = None
        self._t: float | None = None
        self._first: float | None = None
        self._clock: float | None = None
        self._midnight: float | None = None
        self._rollup = False
        self._seen = 0

    def chunk(self, chunk: Chunk, named: bool = True) -> None:
        """Read a chunk up to `_CAP_BYTES`; `named`: whether one of `ANCHORS` is in it, else only where a table goes on."""
        self._seen += len(chunk.data)
        if self._seen > _CAP_BYTES or not (self._names or named):
            return
        for number, line in chunk.lines(_LINE_CAP):
            self._line(number, line)

    def take(self) -> Iterator[Batch]:
        """The series."""
        rows = Rows()
        for resource in ("host-available", "host"):
            series = [(line, row) for line, row in self._found if row["resource"] == resource]
            for step, (line, row) in enumerate(series if len(series) >= _LEAST else ()):
                rows.add("process_memory", line, step=step, **row)
        self._found = []
        yield from rows.take()

    def _line(self, number: int, line: str) -> None:
        if not line.strip():
            return
        if head := _FREE_HEAD.match(line):
            self._head = head["names"].split()
            return
        if _ROLLUP.match(line):
            self._rollup = True
            return
        if day := _SYSSTAT.match(line):
            year = day["year"] or f"20{day['of'][-2:]}"
            self._midnight = parse_time(f"{year}-{day['m'] or day['month']}-{day['d'] or day['day']} 00:00:00")
            return
        resident = self._resident(line)
        size = self._size(line) if resident is None else resident
        if size is not None:
            self._moment(line)
            if self._t is None and self._midnight is not None and self._clock is not None:
                self._t = self._midnight + self._clock
            elapsed = None if self._clock is None or self._first is None or self._t is not None else self._clock - self._first  # fmt: skip
            resource = "host-available" if resident is None else "host"
            row = {"t": self._t, "elapsed_s": elapsed, "state": self._state, "bytes": size, "resource": resource}
            self._found.append((number, row))
            self._state = self._t = None
            return
        if _TABLE_HEAD.match(line):
            self._names = line.split()
            return
        if not self._moment(line) and not _PROMPT.match(line) and not _NO_STATE.match(line) and not self._names:
            self._state = line.strip(" #*:-")[:_STATE_CAP] or None

    def _resident(self, line: str) -> int | None:
        """The resident set of a process: the total of `pmap -x`, the first figure of `smaps_rollup`."""
        found = _PMAP.match(line) or (_RSS.match(line) if self._rollup else None)
        if found is None:
            return None
        self._rollup = False
        return int(found["kib"]) * KIB

    def _size(self, line: str) -> int | None:
        if found := _FREE.match(line):
            cells = found["cells"].split()
            named = dict(zip(self._head, cells, strict=False)) if self._head else {}
            if "available" in named or (not named and len(cells) == 6):
                return cell_of_free(named.get("available", cells[-1]), cells[0])
            parts = [cell_of_free(named[name], cells[0]) or 0 for name in ("free", "buffers", "cached", "buff/cache") if name in named]  # fmt: skip
            return sum(parts) if parts else None
        if found := _MEMINFO.match(line):
            return int(found["kib"]) * KIB
        if found := _TOP.match(line):
            return parse_size(f"{found['size']} {found['unit']}", binary=True)
        if found := _EARLYOOM.match(line):
            return int(found["size"]) * MIB
        if found := _TEGRA.match(line):
            return max(0, int(found["total"]) - int(found["used"])) * MIB
        return self._row(line) if self._names else None

    def _row(self, line: str) -> int | None:
        """A row of `vmstat` or `sar -r`, whose numbers are KiB; `sar` prints the time before the columns, and perhaps half of the day."""
        words = line.split()
        names = self._names
        if len(words) == len(names) + 1 and _CLOCK.match(words[0]):
            words = words[1:]  # a header without the time of its own line
        if len(words) != len(names) or words == names:
            if len(words) < len(names) // 2:
                self._names = []
            return None
        cells = {name: word for name, word in zip(names, words, strict=True) if word.isdigit()}
        if "kbavail" in cells:
            return int(cells["kbavail"]) * KIB
        wanted = ("kbmemfree", "kbbuffers", "kbcached") if "kbmemfree" in cells else ("free", "buff", "cache")
        if words[0].startswith("Average") or not all(name in cells for name in wanted):
            return None
        return sum(int(cells[name]) for name in wanted) * KIB

    def _moment(self, line: str) -> bool:
        """Take the stamp or the clock of a line; whether it has one."""
        stamp = parse_time(line[:60]) if len(line) < 80 or line[:4].isdigit() else None
        if stamp is not None:
            self._t = stamp
            return True
        clock = _CLOCK.match(line.strip())
        if clock is None:
            return False
        hour = int(clock["h"]) % 12 + (12 if clock["half"] == " PM" else 0) if clock["half"] else int(clock["h"])
        seconds = hour * 3600.0 + int(clock["m"]) * 60 + int(clock["s"])
        while self._clock is not None and seconds < self._clock - 3600:
            seconds += 86400.0
        self._clock = seconds
        self._first = seconds if self._first is None else self._first
        return True
