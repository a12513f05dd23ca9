"""Statements in prose and logs: lines that name several quantities with their values, again and again.

    scheduler.cpp:301] running: 0, waiting: 0, kv cache utilization: 12.0%, prefix cache blocks: 492
    I0514 21:01:40.02 160 state.cc:813] {"Active Request Count":1,"Used KV cache blocks":20,"Max KV cache blocks":157}

They are a table whose header stands in every row. What the names mean, the vocabulary decides, as for any other table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from oomdoc.ingest.forms.believe import plan_for
from oomdoc.ingest.forms.groups import OfLines
from oomdoc.ingest.forms.text import pairs
from oomdoc.ingest.forms.trees import Record
from oomdoc.ingest.json_pieces import loads
from oomdoc.ingest.vocabulary import meanings
from oomdoc.intake.cells import stamp
from oomdoc.regexes import regex

_PAIR = regex(
    r"(?P<name>[A-Za-z_#][\w #./%()-]{0,48}?)\s?[:=]\s{0,3}(?P<value>-?\d{1,18}(?:,\d{3}){0,5}(?:\.\d{1,9})?\s?(?:%|[kKMGT]i?B|ms|s)?)(?=[\s,;|)\]}]|$)"
)
_VALUE = regex(r"[:=]\s{0,3}-?\d")
"""What every pair has, and most lines of prose have not."""
_GLOG = regex(r"[IWEF](\d{4})(\d\d)(\d\d) (\d\d:\d\d:\d\d)")
_LINE_CAP = 2000
_LEAST = 3
"""Lines of one form: fewer are a remark and no series."""
_TABLES = frozenset(("engine_stat", "metric", "gpu_sample", "process_memory"))
_OF_A_SERVER = regex(r"(?i)running|waiting|queue|active|usage|util|kv|cache|token|gpu|vram|preempt|rss|block|req")
"""A word of some quantity that a statement is kept for: most texts have none and cost one search."""
_OWN = ("Avg prompt throughput", "Avg generation throughput")
"""Statistics of the engine itself, which have a reader."""


class Statements(OfLines):
    """Reads the statements of a short text."""

    def read(self, lines: Sequence[str], first_line: int, taken: set[int]) -> set[int]:
        """Read a run of lines; the places of those that were understood."""
        if len(lines) < _LEAST:
            return set()
        forms: dict[tuple[str, ...], list[tuple[int, dict[str, Any]]]] = {}
        for at, line in enumerate(lines):
            if at in taken or len(line) < 8 or line.startswith(("#", "|")) or not _OF_A_SERVER.search(line):
                continue
            values = dict(stated(line))
            if len(values) >= 2:
                forms.setdefault(tuple(values), []).append((at, values))
        found: set[int] = set()
        for number, (names, rows) in enumerate(forms.items()):
            known_names = [meanings(name) for name in names if meanings(name)]
            if (
                len(rows) < _LEAST
                or len(known_names) < 2
                or not any(match.strong for each in known_names for match in each)
            ):
                continue
            plan = plan_for([values for _, values in rows])
            if plan is None or not plan.tables <= _TABLES:
                continue
            known = {column.name for part in plan.parts for column in part.columns}
            for at, values in rows:
                understood = {name: value for name, value in values.items() if name in known}
                self._gatherer.add(Record(first_line + at, f"#statement{number}", with_moment(understood, lines[at])))
                found.add(at)
        return found


def stated(line: str) -> Iterator[tuple[str, Any]]:
    """Names and values of a line: of the JSON object in it, or of its pairs.

    >>> dict(stated("step 7] running: 3, kv cache utilization: 12.5%"))
    {'running': '3', 'kv cache utilization': '12.5%'}
    """
    if any(word in line for word in _OWN):
        return
    line = line[:_LINE_CAP]
    begin = line.find('{"')
    if begin >= 0 and line.rstrip().endswith("}"):
        value = loads(line[begin:])
        if isinstance(value, Mapping):
            yield from ((str(name), each) for name, each in value.items() if isinstance(each, (int, float)) and not isinstance(each, bool))  # fmt: skip
            return
    for match in _PAIR.finditer(line) if _VALUE.search(line) else ():
        yield match["name"].strip(" #()-"), match["value"].strip()


def with_moment(values: dict[str, Any], line: str) -> dict[str, Any]:
    """The values of a line with the stamp before them, epoch seconds; without one where there is none, or none with a year."""
    glog = _GLOG.match(line)
    moment = stamp(f"{glog[1]}-{glog[2]}-{glog[3]}T{glog[4]}Z" if glog else line[:80])
    return values if moment is None else {"timestamp": moment, **values}


TITLE = "message_title"
"""The name under which `of_message` keeps what a message calls itself."""
_MESSAGES = ("msg", "message", "event", "log", "text")
_TITLE = regex(r"(?P<title>[A-Za-z][\w /-]{2,40}?)\s?(?::|,|\s[-–—])\s")
_OF_METRICS = regex(r"(?i)\s*\b(?:metrics?|stats?|statistics|status|collected|snapshot)\b")


def of_message(value: dict[str, Any]) -> dict[str, Any]:
    """A record of a logger whose message holds pairs, with these as fields of their own; any other record as it is.

    A name that says little alone stands with what the message calls itself.

    >>> of_message({"ts": 1, "msg": "KV cache metric: pod=a-1, usage=0.5"})
    {'ts': 1, 'message_title': 'KV cache', 'KV cache usage': '0.5', 'pod': 'a-1'}
    """
    name = next((name for name in _MESSAGES if isinstance(value.get(name), str)), "")
    text = value[name] if name else ""
    found: dict[str, Any] = {**dict(stated(text)), **pairs(text)} if "=" in text or ": " in text else {}
    if not found or len(text) > _LINE_CAP:
        return value
    title = match["title"] if (match := _TITLE.match(text)) else ""
    title = _OF_METRICS.sub("", title).strip()
    fields = {}
    for each, cell in found.items():
        whole = f"{title} {each}"
        known = any(match.strong for match in meanings(each)) or not any(match.strong for match in meanings(whole))
        fields[each if known else whole] = cell
    return {**{key: cell for key, cell in value.items() if key != name}, TITLE: title, **{key: cell for key, cell in fields.items() if key not in value}}  # fmt: skip
