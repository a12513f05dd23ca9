"""What `sacct` and `seff` tell of jobs and their steps: what memory was asked for, the most that a step held, and how a job ended.

    48211|llm-serve|OUT_OF_MEMORY|0:125||64G               JobID, JobName, State, ExitCode, MaxRSS, ReqMem
    48211.batch|batch|OUT_OF_MEMORY|0:125|67031412K|
    Memory Utilized: 63.92 GB                              of the job that is named above it
    Memory Efficiency: 99.88% of 64.00 GB

Columns are found by their names; `intake.ruled` has put those of the fixed width between bars. `ExitCode` is status and signal, and 0:125 is
Slurm's own for a job that ran out of memory, which a row of its own tells (`host_events`). Of a job and its steps one end is told, that of
the job where it has one. A job that ran for as long as it might is a note: who ended it was the clock. `ReqMem` with a `c` behind it is meant per core, and of no job.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Rows
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex
from oomdoc.units import parse_size

ANCHORS = (b"JobID", b"Memory Utilized: ")
_OF_SEFF = regex(
    r"Job ID: (?P<job>\d{1,10})\b|Memory Utilized: (?P<held>[\d.]{1,12} ?[KMGT]B)|Memory Efficiency: [\d.]{1,9}% of (?P<asked>[\d.]{1,12} ?[KMGT]B)"
)
_ENDED = regex(r"(?P<status>\d{1,3}):(?P<signal>\d{1,3})")
_ASKED = regex(r"(?P<size>\d[\d.]{0,12}[KMGT])n?")
_LASTED = regex(r"(?:(?P<days>\d{1,3})-)?(?P<hours>\d\d):(?P<minutes>\d\d):(?P<seconds>\d\d)")
_OVER_S = 120
"""Slurm looks at its clocks once in a minute, and a node answers within another."""
_OWN = 125


def _seconds(text: str) -> int:
    """The length of a job as Slurm writes it, 0 for what is none."""
    found = _LASTED.fullmatch(text)
    return sum(int(found[name] or 0) * unit for name, unit in (("days", 86400), ("hours", 3600), ("minutes", 60), ("seconds", 1))) if found else 0  # fmt: skip


class Jobs:
    """Gathers the jobs of one text."""

    def __init__(self) -> None:
        self._header: list[str] = []
        self._limits: dict[str, tuple[int, str]] = {}
        self._ends: dict[str, tuple[int, str, int]] = {}
        self._held: list[tuple[int, dict[str, Any]]] = []
        self._names: dict[str, str] = {}
        self._timed: dict[str, int] = {}
        self._job = ""

    def chunk(self, chunk: Chunk, named: bool) -> None:
        """Read a chunk in which a header stands (`named`), or that goes on with a table."""
        if named or self._header:
            for number, raw in chunk.lines(1000):
                self._efficiency(number, raw)
                self._row(number, [cell.strip() for cell in raw.strip().strip("|").split("|")], raw)

    def _row(self, number: int, cells: list[str], raw: str) -> None:
        if "JobID" in cells:
            self._header = cells
        cell = dict(zip(self._header, cells, strict=False))
        job, _, step = cell.get("JobID", "").partition(".")
        if len(cells) < len(self._header) - 1 or not job[:1].isdigit():
            return
        name = self._names.setdefault(job, cell.get("JobName") or job)
        if (held := _ASKED.fullmatch(cell.get("MaxRSS", ""))) and (size := parse_size(held["size"], binary=True)):
            whose = f"{name} (step {step})" if step else name
            self._held.append((number, {"name": whose, "state": cell.get("State"), "bytes": size}))
        if asked := _ASKED.fullmatch(cell.get("ReqMem", "")):
            self._limits.setdefault(job, (number, asked["size"]))
        asked_s, ran_s = _seconds(cell.get("Timelimit", "")), _seconds(cell.get("Elapsed", ""))
        if cell.get("State") == "TIMEOUT" or 0 < asked_s <= ran_s <= asked_s + _OVER_S:
            self._timed.setdefault(job, number)
        ended = _ENDED.fullmatch(cell.get("ExitCode", ""))
        signal = int(ended["signal"]) if ended else 0
        if ended and signal != _OWN and (code := -signal or int(ended["status"])):
            self._ends.setdefault(job, (number, name, code))

    def _efficiency(self, number: int, raw: str) -> None:
        """A line of `seff`, whose units are of 1024."""
        found = _OF_SEFF.match(raw)
        if found is None:
            return
        self._job = found["job"] or self._job
        if found["held"]:
            self._held.append(
                (number, {"name": f"job {self._job}".strip(), "bytes": parse_size(found["held"], binary=True)})
            )
        elif found["asked"]:
            self._limits.setdefault(self._job, (number, found["asked"]))

    def take(self) -> Iterator[Batch]:
        """The rows."""
        rows = Rows()
        for job, (number, size) in self._limits.items():
            rows.add("note", number, topic="container-limit", value=float(parse_size(size, binary=True) or 0), text=f"job {job}: asked for {size}")  # fmt: skip
        for job, number in self._timed.items():
            rows.add("note", number, topic="time-limit-reached", text=f"job {job} ran for as long as it might")
        for number, name, code in self._ends.values():
            rows.add("process_exit", number, name=name, exit_code=code)
        for number, row in self._held:
            rows.add("process_memory", number, resource="host", variant="max", **row)
        self._limits, self._ends, self._held, self._timed = {}, {}, [], {}
        yield from rows.take()
