"""Counters of a memory group, as somebody read them with `cat`: a row of `host_event` with its kills, limit and highest usage.

Of both versions of control groups; a name and its value may stand in different lines. `memory.stat` is `memory_group`'s.

    == memory.limit_in_bytes                        memory.events:oom_kill 1
    2831155200
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Head, Rows
from oomdoc.ingest.host_events.rows import UNLIMITED
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

KIND = "cgroup"
_NAME = r"(?P<path>[^\s:=<>]{0,300}?)(?P<name>memory(?:\.memsw|\.kmem|\.swap)?\.[a-z_.]+)"
_HEADING = regex(rf"^\W{{0,40}}(?:(?:sudo )?cat )?{_NAME}\W*$")
_PAIR = regex(rf"^\W{{0,40}}{_NAME}\s*[:=]?\s*(?P<value>-?\d+|max)\s*$")
_NESTED = regex(rf"^\W{{0,40}}{_NAME}\s*[:=]\s*(?P<key>[a-z_]+)[ =:]+(?P<value>\d+)\s*$")
_SEVERAL = regex(rf"{_NAME}(?:\s*[:=]\s*|\s+)(?P<value>\d+\b|max\b|(?:[a-z_]+[ =:]+\d+\b[\s,;]*)+)[\s,;]*")
_KEY_AND_COUNT = regex(r"([a-z_]+)[ =:]+(\d+)")
_VALUE = regex(r"^\s*(-?\d+|max)\s*$")
_BESIDE = regex(r"^\W{0,9}(?:[\dT -]{8,11})?\d\d:\d\d(?::\d\d)?Z?\W{0,9}$|^\s*(?:pids|cpu|io)\.[a-z.]+ \d+\s*$")
_KEYED = regex(r"^\s*([a-z_]+)[ =:]+(\d+)\s*$")
_LIMITS = ("memory.limit_in_bytes", "memory.max")
_PEAKS = ("memory.max_usage_in_bytes", "memory.peak")
_USAGES = ("memory.usage_in_bytes", "memory.current")
_EVENT_KEYS = frozenset(
    ["oom_kill", "oom", "oom_kill_disable", "under_oom", "oom_group_kill", "low", "high", "max", "sock_throttled"]
)


def matches(head: Head) -> bool:
    """Counter files of a memory group: nearly every line is a name, a value, or a name with its value; moments and counters of other groups stand between them."""
    if b"memory." not in head.data and b"oom_kill" not in head.data:
        return False
    lines = [line for line in head.lines if line.strip() and not _BESIDE.match(line)]
    if len(lines) < 2:
        return False
    named = keyed = plain = 0
    for line in lines:
        if _HEADING.match(line) or _PAIR.match(line) or _NESTED.match(line) or _several(line):
            named += 1
        elif found := _KEYED.match(line):
            keyed += 1
            named += found[1] == "oom_kill"
        elif _VALUE.match(line):
            plain += 1
    return named > 0 and named + keyed + plain >= 0.8 * len(lines)


class _Group:
    """What is known of one memory group: plain values, and the keys of its event file."""

    def __init__(self) -> None:
        self.values: dict[str, tuple[str, int]] = {}
        self.kills: tuple[int, int] | None = None  # count, line

    def row(self, group: str) -> tuple[int, dict[str, Any]] | None:
        """The line and row of this group; None where it says nothing of limits or kills. `group` is its path, or empty."""
        limit, peak, usage, fails = (self._first(names) for names in (_LIMITS, _PEAKS, _USAGES, ("memory.failcnt",)))
        if self.kills is None and limit is None and fails is None and peak is None:
            return None
        places = [found[1] for found in (self.kills, limit, peak, usage, fails) if found]
        counters = (("oom_kill", self.kills), ("failcnt", fails), ("limit", limit), ("peak", peak), ("usage", usage))
        highest = peak or usage
        return places[0], {
            "kind": "cgroup-oom-count",
            "count": self.kills[0] if self.kills else None,
            "limit_bytes": limit[0] if limit and limit[0] < UNLIMITED else None,
            "bytes": highest[0] if highest else None,
            "memory_group": group.partition("#")[0].rstrip("/") or None,
            "text": ", ".join(f"{name} {found[0]}" for name, found in counters if found),
        }

    def _first(self, names: tuple[str, ...]) -> tuple[int, int] | None:
        for name in names:
            printed, line = self.values.get(name, ("", 0))
            if printed.lstrip("-").isdigit() and not printed.startswith("-"):
                return int(printed[:30]), line
        return None


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """One `cgroup-oom-count` row per memory group: kills, limit, highest usage; NULL limit = none set."""
    rows, groups = Rows(), dict[str, _Group]()
    where, name = "", ""
    first_line = 0
    for line, text in (found for chunk in chunks for found in chunk.lines(400)):
        first_line = first_line or line
        found = _NESTED.match(text) or _PAIR.match(text) or _HEADING.match(text)
        if not found and (several := _several(text)):
            for place, each, count in several:
                _note(groups.setdefault(place, _Group()), each, count, line)
            where, name = several[-1][0], ""
        elif found:
            where, name = found["path"], found["name"]
            parts = found.groupdict()
            if parts.get("value") is None:
                if name in groups.get(where, _Group()).values:  # the same file again: another group without a path
                    where = f"{where}#{line}"
                continue
            _note(groups.setdefault(where, _Group()), parts.get("key") or name, parts["value"], line)
        elif value := _VALUE.match(text):
            if name:
                _note(groups.setdefault(where, _Group()), name, value[1], line)
                name = ""
        elif (pair := _KEYED.match(text)) and pair[1] in _EVENT_KEYS:
            _note(groups.setdefault(where, _Group()), pair[1], pair[2], line)
    for place, group in groups.items():
        line_and_row = group.row(place)
        if line_and_row:
            rows.add("host_event", line_and_row[0], **line_and_row[1])
    if not rows.count and first_line:
        rows.problem(first_line, "counters of a memory group without a limit, a peak or a kill", path)
    yield from rows.take()


def _several(text: str) -> list[tuple[str, str, str]]:
    """Path, name and value of each counter on a line that holds nothing but several of them; [] for another line.

    >>> _several("memory.events: low 0 oom_kill 2")
    [('', 'low', '0'), ('', 'oom_kill', '2')]
    """
    at = 0
    found: list[tuple[str, str, str]] = []
    text = text.strip(" \t,;")
    while at < len(text):
        match = _SEVERAL.match(text, at)
        if match is None:
            return []
        if match["value"][0].isalpha() and match["value"] != "max":
            found += [(match["path"], pair[1], pair[2]) for pair in _KEY_AND_COUNT.finditer(match["value"])]
        else:
            found.append((match["path"], match["name"], match["value"]))
        at = match.end()
    return found if len(found) > 1 else []


def _note(group: _Group, name: str, value: str, line: int) -> None:
    if name == "oom_kill":
        group.kills = (int(value[:18]), line)
    elif name not in _EVENT_KEYS:
        group.values.setdefault(name, (value, line))
