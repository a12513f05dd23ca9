"""Readings that a person took again and again, each under the moment at which it was taken.

    === Mon 08:00 cat /proc/1904/smaps_rollup        $ date '+%b %d %R'; df -BG /dev/shm | tail -1
    Anonymous:         46065180 kB                   Mar 11 18:00
    Locked:            41943040 kB                   shm               64G  8G  56G  13% /dev/shm
    20:02:30
    7110, VLLM::EngineCore, 28220

What is read is known by its keys (the kernel's own, of `/proc/PID/smaps_rollup`, `/proc/PID/status`, `/proc/meminfo`; the columns of
`df` and `free`; the rows of `nvidia-smi --query-compute-apps=pid,name,used_memory`), the moment by its form: a date, a month and a day, a weekday with a clock, a clock, hours
since a beginning. Rows of `process_memory`: `host` (anonymous memory where it is told, else the resident set), `host-locked`, `shm`
(of `df`), `gpu` (of processes on a device); of `free` the notes `host-in-use`, `host-idle` and `host-ready` (series of it are `host_memory`'s). What a metric was at
several moments stands in one line, and is `metric_histories`'.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Rows
from oomdoc.ingest.forms.cells import DAYS_BEFORE, MONTHS
from oomdoc.ingest.host_memory import cell_of_free
from oomdoc.ingest.metric_histories import Histories
from oomdoc.ingest.vocabulary.words import TIME_UNITS
from oomdoc.regexes import regex
from oomdoc.units import KIB, MIB, parse_size, parse_time

TELLING = regex(
    rb"(?m)^[ \t]*(?:Anonymous|Rss|VmRSS|RssAnon):\s+\d|/dev/shm\s*$|/dev/shm.{0,60}used[=:]|(?i:(?:buff?|puffer|tamp(?:on)?|b\xc3\xbafer?|bufor\w*)/cach)|\d\d:\d\d[ \t]+[\d.]+[ \t]+\d\d:\d\d[ \t]|^[ \t]*\d{1,9}, [^,\n]{1,80}, \d{1,7}(?: MiB)?[ \t\r]*$|_over_time\(|\bincrease\("
)
"""Whether a text holds anything of this kind: one search for each short text."""

_LEAST = 3
"""Readings of one thing: fewer say nothing of a course."""
_DAYS = {day: at for at, day in enumerate(("mon", "tue", "wed", "thu", "fri", "sat", "sun"))}
_CLOCK = r"(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?"
_MOMENT = regex(
    r"[\W_]{0,12}(?:at |t\s?[=+]\s?|after )?(?:"
    r"(?P<full>\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d(?::\d\d)?\S{0,8})"
    rf"|(?:(?P<week>Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{{0,6}},? )?(?:(?P<month>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{{0,6}} {{1,2}}(?P<day>\d\d?),? |(?P<day2>\d\d?) (?P<month2>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{{0,6}} )?{_CLOCK}"
    r"|(?P<unit>hour|day|minute)s? (?P<count>\d{1,4}(?:\.\d)?)\b"
    r"|(?P<count2>\d{1,4}(?:\.\d)?) ?(?P<unit2>h|hours?|d|days?|min|minutes?)\b)(?=$|[\W_])",
    re.I,
)
_PID = regex(r"/proc/(\d{1,9})/|\bpid[ =:]{1,3}(\d{1,9})\b", re.I)
_KEY = regex(r"\s*(?P<key>Rss|Pss|Anonymous|Locked|VmRSS|RssAnon|VmLck):\s+(?P<kib>\d{1,15}) ?kB\s*$")
_STAMP = r"(?:(?P<full>\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d(?::\d\d)?\S{0,8})\s+)?"
_SHM = regex(
    rf"{_STAMP}(?=.*?/dev/shm\b)(?:.{{0,60}}?\bsize[=: ]{{1,2}}(?P<size2>[\d.]+[KMGT]?i?B?),?\s+used[=: ]{{1,2}}(?P<used2>[\d.]+[KMGT]?i?B?)\b|"
    r"\S{1,60}\s+(?:tmpfs\s+)?(?P<size>[\d.]+[KMGT]?i?B?)\s+(?P<used>[\d.]+[KMGT]?i?B?)\s+[\d.]+[KMGT]?i?B?\s+\d{1,3}%\s+/dev/shm\s*$)"
)
_PROCESS = regex(r"\s*(?P<pid>\d{1,9}), (?P<name>[^,]{1,80}), (?P<mib>\d{1,7})(?: MiB)?\s*$")
_FREE = regex(r"\s*(?:\S+\s+){4}(?:buff?|puffer|tamp(?:on)?|búfer?|bufor\w*)/cach\w{0,4}\s+\S+\s*$", re.I)
"""The header of `free`, in whatever tongue: four columns, buffers and cache, what is available."""
_MEM = regex(r"(?:Mem|Speicher|Memoria|Mém|Mémoire|Memória|Pamięć)[:.]{1,2}((?:\s+[\d.,]+\s?[KMGT]?i?B?){6})\s*$")
_FREE_UNIT = regex(r"\bfree\b[^|;]{0,20}?\s-(?:[a-z]*(?P<short>[bkmg])[a-z]*|-(?P<long>kibi|mebi|gibi|bytes))\b")
_UNITS = {"b": "B", "k": "KiB", "m": "MiB", "g": "GiB"}


class Readings:
    """The readings in some lines of a text."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, dict[str, Any]]] = []
        self._histories = Histories()
        self._notes: list[tuple[int, dict[str, Any]]] = []
        self._first: float | None = None
        self._last = 0.0
        self._t: float | None = None
        self._elapsed: float | None = None
        self._pid: str | None = None
        self._block: dict[str, tuple[int, int]] = {}
        self._step = 0
        self._free_unit = ""  # nobody told it
        self._below_free = False

    def read(self, lines: Sequence[str]) -> Iterator[Batch]:
        """Everything that some lines hold; the first has number 1."""
        for number, line in enumerate(lines, 1):
            if len(line) <= 600:
                self._line(number, line)
        self._close()
        rows = Rows()
        count: dict[tuple[str | None, str], int] = {}
        for _, row in self._rows:
            key = row["name"], row["resource"]
            count[key] = count.get(key, 0) + 1
        for number, row in self._rows:
            if count[row["name"], row["resource"]] >= _LEAST:
                rows.add("process_memory", number, **row)
        for number, row in self._notes:
            if row["topic"] != "shm-used" or count["/dev/shm", "shm"] < _LEAST:  # a series says it already
                rows.add("note", number, **row)
        yield from rows.take()
        yield from self._histories.take()

    def _line(self, number: int, line: str) -> None:
        key = _KEY.match(line)
        if key:
            if key["key"] in self._block:
                self._close()
            self._block[key["key"]] = number, int(key["kib"]) * KIB
            return
        shm = _SHM.match(line)
        if shm:
            size, used = (parse_size(text if text[-1:].isalpha() else text + "K", binary=True) for text in (shm["size"] or shm["size2"], shm["used"] or shm["used2"]))  # fmt: skip
            if shm["full"]:
                self._at(shm)
            if used is not None:
                self._count()
                self._add(number, "/dev/shm", "shm", used)
                self._notes.append((number, {"topic": "shm-used", "value": float(used), "text": shm[0].strip()[:120]}))
            # a row of `df` as it is tells its size by a pattern of `host_events`
            if size and (shm["full"] or shm["size2"]) and not any(row["topic"] == "shm-size" for _, row in self._notes):
                self._notes.append((number, {"topic": "shm-size", "value": float(size), "text": shm[0].strip()[:120]}))
            return
        process = _PROCESS.match(line) if self._elapsed is not None or self._t is not None else None
        if process:
            self._add(number, f"{process['name']} {process['pid']}", "gpu", int(process["mib"]) * MIB)
            return
        if self._histories.add(number, line) or self._free(number, line):
            return
        moment = _MOMENT.match(line) if len(line) < 160 else None
        if moment:
            self._close()
            self._at(moment)
        pid = _PID.search(line)
        if pid:
            self._close()
            self._pid = pid[1] or pid[2]
        unit = _FREE_UNIT.search(line)
        if unit:
            self._free_unit = _UNITS[(unit["short"] or unit["long"])[0]]

    def _at(self, moment: re.Match[str]) -> None:
        """The moment of the readings that follow."""
        self._t = self._elapsed = None
        if moment["full"]:
            self._t = parse_time(moment["full"])
            return
        count = moment["count"] or moment["count2"]
        if count:
            self._elapsed = float(count) * TIME_UNITS[(moment["unit"] or moment["unit2"])[0].lower()]
        else:
            seconds = int(moment["hour"]) * 3600.0 + int(moment["minute"]) * 60 + int(moment["second"] or 0)
            month, day = moment["month"] or moment["month2"], moment["day"] or moment["day2"]
            if month and day:
                seconds += 86400.0 * (DAYS_BEFORE[MONTHS.index(month.lower())] + int(day))
                period = 365 * 86400.0
            elif moment["week"]:
                seconds += 86400.0 * _DAYS[moment["week"].lower()]
                period = 7 * 86400.0
            else:
                period = 86400.0
            while self._first is not None and seconds < self._last - 3600:
                seconds += period  # midnight, the end of a week or of a year has passed
            self._first = seconds if self._first is None else self._first
            self._last = seconds
            self._elapsed = seconds - self._first

    def _count(self) -> None:
        """A listing of no moment has a number."""
        self._step += self._t is None and self._elapsed is None

    def _add(self, number: int, name: str | None, resource: str, size: int) -> None:
        row: dict[str, Any] = {"name": name, "resource": resource, "bytes": size}
        if self._elapsed is not None:
            row["elapsed_s"] = self._elapsed
        elif self._t is not None:
            row["t"] = self._t
        else:
            row["step"] = self._step
        self._rows.append((number, row))

    def _close(self) -> None:
        """The readings of one listing are complete."""
        block, self._block = self._block, {}
        if not block:
            return
        name = f"pid {self._pid}" if self._pid else "a process"
        self._count()
        own = next((block[key] for key in ("Anonymous", "RssAnon", "Rss", "VmRSS", "Pss") if key in block), None)
        locked = block.get("Locked") or block.get("VmLck")
        for found, resource in ((own, "host"), (locked, "host-locked")):
            if found is not None:
                self._add(found[0], name, resource, found[1])

    def _free(self, number: int, line: str) -> bool:
        """The first row of `free`: what is in use, idle, and available once files that are cached were dropped."""
        if _FREE.match(line):
            self._below_free = True
            return True
        found = _MEM.match(line) if self._below_free else None
        self._below_free = False
        if found is None:
            return False
        cells = [cell.strip() for cell in re.findall(r"[\d.]+\s?[KMGT]?i?B?", found[1].replace(",", "."))]
        bare = all(cell[-1].isdigit() for cell in cells)
        told = self._free_unit if bare else ""
        sizes = [parse_size(cell, unit=told) if told else cell_of_free(cell, cells[0]) for cell in cells]
        for place, topic in ((1, "host-in-use"), (2, "host-idle"), (5, "host-ready")):
            size = sizes[place]
            if size is not None:
                self._notes.append((number, {"topic": topic, "value": float(size), "text": found[0].strip()}))
        return True


def read(data: bytes) -> Iterator[Batch]:
    """The readings of a short text."""
    yield from Readings().read(data.decode("utf-8", "replace").split("\n"))
