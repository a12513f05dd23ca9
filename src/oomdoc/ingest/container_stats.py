"""What `docker stats`, `podman stats` and `crictl stats` (which knows no limits) print: the memory of each container beside its limit, once or again and again.

    2026-03-02T04:00:00Z                                        the moment, above the rows or before each of them
    CONTAINER ID   NAME   CPU %     MEM USAGE / LIMIT     MEM %     NET I/O ...
    3b7e40c1d5aa   chat   118.42%   41.2GiB / 64GiB       64.4%     18GB / 5.9GB ...
    {"Name":"chat","MemUsage":"41.2GiB / 64GiB","CPUPerc":"118.42%", ...}

Of a container that was looked at three times or more each look is a row of `process_memory` (resource `container`: of the page cache only
what was not used lately is left out): by its moment, else by the number of the look. One look shows no course,
and what a container holds at one moment says nothing without it. Every container whose limit is its own is a row of `container`: where it
has none docker prints the size of the host, which no limit is, for a host never has a whole number of GiB.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Rows
from oomdoc.ingest.prompts import typed
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex
from oomdoc.units import GIB, MIB, parse_size, parse_time

ANCHORS = (b"MEM USAGE", b'"MemUsage"', b'"mem_usage"', b"INODES", b"iB / ")
_CAP_BYTES = 8 << 20
"""What is read of one source: a day of ten containers every ten seconds."""
LEAST = 3
"""Looks at one container: fewer show no course."""
_SIZE = r"[\d.]{1,9} ?[kKMGT]?i?B"
_STAMP = r"(?:\[?(?P<stamp>\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?[^\s,;]{0,12})\]?[ \t,;]+)?"
HEADER = regex(
    rf"\s*{_STAMP}(?:CONTAINER(?: ID)?\s+NAMES?|ID\s+NAME|CONTAINER|NAMES?)\s+(?:CPU %\s+)?(?:MEM USAGE ?/ ?LIMIT(?:\s+MEM %)?|MEM\s+DISK)"
)
ROW = regex(
    rf"[\s,;]*{_STAMP}(?:[0-9a-f]{{12,64}}[\s,;]+)?(?P<name>[A-Za-z0-9][\w.-]{{0,120}})(?:[\s,;]+[\d.]{{1,9}}%?)?[\s,;]+(?P<used>{_SIZE})(?: ?/ ?(?P<limit>{_SIZE})(?:[\s,;]+[\d.]{{1,6}}%)?)?(?:[\s,;]|$)"
)
JSON = regex(r"\s*\[?\{(?=.*\"(?:MemUsage|mem_usage)\")(?=.*\"(?:Name|name)\").*\}\]?\s*$")
_ASKED = regex(r"\b(?:date|sleep|stats)\b")
_LINE_CAP = 1000
_MOMENT = regex(r"[-=#>\s]{0,12}(?P<stamp>\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?\S{0,12})[-=#:\s]{0,12}$")
_SHOWN = 5e-4
"""Share by which a limit may be off as podman prints it: four digits of decimal units (68.72GB for 64 GiB)."""
_TELLABLE = 100 * GIB
"""Up to this size four digits tell a whole number of GiB from the size of a host."""


def _own_limit(printed: str) -> int | None:
    """The bytes of a limit that somebody set: a whole number of GiB or of 64 MiB; None for the size of a host.

    >>> _own_limit("64GiB") == 64 * GIB, _own_limit("68.72GB") == 64 * GIB, _own_limit("62.7GiB"), _own_limit("512MiB") == 512 * MIB
    (True, True, None, True)
    >>> _own_limit("251GiB"), _own_limit("251.6GiB")
    (None, None)
    """
    size = parse_size(printed.replace(" ", ""))
    if not size or size > _TELLABLE or ("." in printed and "i" in printed):
        return None
    step = GIB if size > 8 * GIB else 64 * MIB
    whole = round(size / step) * step
    return whole if whole and abs(size - whole) <= _SHOWN * size else None


class Stats:
    """Gathers the looks of one text."""

    def __init__(self) -> None:
        self._seen: dict[str, list[tuple[int, float | None, int]]] = {}
        self._limits: dict[str, tuple[int, int]] = {}
        self._t: float | None = None
        self._begun = False
        self._read = 0

    def chunk(self, chunk: Chunk, named: bool) -> None:
        """Read a chunk up to `_CAP_BYTES` in which one of `ANCHORS` stands (`named`)."""
        self._read += len(chunk.data)
        if named and self._read <= _CAP_BYTES:
            for number, raw in chunk.lines(_LINE_CAP):
                self._line(number, raw)

    def take(self) -> Iterator[Batch]:
        """The rows."""
        rows = Rows()
        for name, (number, limit) in self._limits.items():
            rows.add("container", number, name=name, memory_limit_bytes=limit)
        for name, looks in self._seen.items():
            if len(looks) >= LEAST:
                timed = all(t is not None for _, t, _ in looks)
                for step, (number, t, used) in enumerate(looks, 1):
                    when = {"t": t} if timed else {"step": step}
                    rows.add("process_memory", number, name=name, resource="container", bytes=used, **when)
        self._seen, self._limits = {}, {}
        yield from rows.take()

    def _line(self, number: int, raw: str) -> None:
        raw = raw.replace("|", " ") if raw.lstrip()[:1] == "|" else raw  # as Markdown has it
        if found := ROW.match(raw):
            if self._begun or (found["stamp"] and found["limit"] and "%" in raw):
                self._take(number, found["name"], found["used"], found["limit"], found["stamp"])
        elif moment := _MOMENT.match(raw):
            self._t = parse_time(moment["stamp"])
        elif HEADER.match(raw):
            self._begun = True
        elif JSON.match(raw):
            self._object(number, raw)
        elif typed(raw) and not _ASKED.search(raw):
            self._t, self._begun = None, False

    def _object(self, number: int, raw: str) -> None:
        try:
            told = json.loads(raw)
        except ValueError:
            return
        for one in told if isinstance(told, list) else [told]:
            used, _, limit = str(one.get("MemUsage") or one.get("mem_usage")).partition(" / ")
            self._take(number, str(one.get("Name") or one.get("name"))[:120], used, limit, None)

    def _take(self, number: int, name: str, used: str, limit: str | None, stamp: str | None) -> None:
        held = parse_size(used.replace(" ", ""))
        if held is None:
            return
        self._seen.setdefault(name, []).append((number, parse_time(stamp) if stamp else self._t, int(held)))
        if limit and (own := _own_limit(limit)) is not None:
            self._limits.setdefault(name, (number, own))
