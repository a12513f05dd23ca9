"""Readings in words: lines of one wording, each under a moment, a count or a label, with quantities one behind the other.

    21:16:50  GPU use 100 %  VRAM 23.41 / 23.98 GiB  power 121 W        a person's note, a loop's print
    [eval] 01:02:02 task 82/14042  server mem 74.2 GiB  MemAvailable 39.1 GiB
    step 1000   allocated 52.10   reserved 53.04
    request 96: 200, 2.8 s, prompt 751 tokens, answer 268 tokens
    15:10:05  97 %, 75110 MiB                                           what `nvidia-smi --format=csv,noheader` prints
    07:50  web-3   213.9%  41.2GiB / 96GiB  42.9%                       a row of `docker stats`

They are a table whose header stands in every row, without the signs that `statements` asks for. What the names mean, the vocabulary and
the grammar of names decide, as for any other table; a line of a log is its reader's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from oomdoc.ingest import container_stats
from oomdoc.ingest.forms.believe import plan_for
from oomdoc.ingest.forms.groups import OfLines
from oomdoc.ingest.forms.own import own_of
from oomdoc.ingest.forms.series import Series
from oomdoc.ingest.forms.trees import Record
from oomdoc.ingest.text_form import is_log_line
from oomdoc.regexes import regex

_LEAST = 3
"""Lines of one wording: fewer are a remark and no series."""
_MOST_LINES = 4000  # a longer text was written by a program, and nobody copied it out
_HEAD = 120  # characters within which a level stands
_LINE_CAP = 300
_MOST_WORDS = 60  # of a line: a longer one is a sentence
_NUMBER = r"-?\d{1,18}(?:,\d{3}){0,5}(?:\.\d{1,9})?"
_UNIT = r"%|[KMGT]i?B|bytes|kB|ms|us|s|sec|seconds|tokens?|tok/s|tokens/s|t/s|MHz|W|C"
_STAMP = regex(
    r"(?P<t>(?:\d{4}-\d\d-\d\d[T ]|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? )?\d\d:\d\d(?::\d\d(?:[.,]\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?)(?=\s|[,;:|\])]|$)"
)
_TAG = regex(r"\s*(?:[\[(][\w .:-]{1,24}[\])]\s*){0,2}")
_PART = regex(
    rf"(?P<name>[A-Za-z_](?:[\w./-]|%(?=\s))*(?: [A-Za-z_][\w./-]*){{0,3}}?)(?:\s{{0,2}}[:=]\s{{0,3}}|\s{{1,6}})"
    rf"(?P<value>{_NUMBER})(?:\s?(?P<between>{_UNIT})?\s?/\s?(?P<whole>{_NUMBER}))?(?:\s?(?P<unit>{_UNIT}))?(?![\w.%:/-]*\w)"
)
_BARE = regex(rf"(?<![\w.:/=-])(?P<value>{_NUMBER})\s?(?P<unit>%|[KMGT]i?B|ms|s)?(?:\s?/\s?(?P<whole>{_NUMBER})\s?(?P<wunit>[KMGT]i?B))?(?![\w.%:/-]*\w)")  # fmt: skip
_BYTES = regex(r"(?:[KMGT]i?|k)B|bytes")
_STATUS = regex(r"[1-5]\d\d")
_PROMPTS = frozenset(("prompt tokens", "prompt", "input tokens", "input", "in tokens", "in_tokens", "prompt_tokens"))
_TIME, _WHAT = "time", "what"


def record_of(line: str) -> dict[str, Any]:
    """What a line says, by name; {} for a line that says nothing in this form.

    >>> record_of("21:16:50  GPU busy 100 %  VRAM 23.41 / 23.98 GiB")
    {'time': '21:16:50', 'GPU busy': '100 %', 'VRAM used': '23.41 GiB', 'VRAM total': '23.98 GiB'}
    >>> record_of("request 96: 200, 2.8 s, prompt 751 tokens, answer 268 tokens")
    {'request': '96', 'prompt tokens': '751', 'answer tokens': '268', 'status': '200', 'latency': '2.8 s'}
    >>> record_of("15:10:05  97 %, 75110 MiB")
    {'time': '15:10:05', 'utilization.gpu': '97 %', 'memory.used': '75110 MiB'}
    """
    text = line.strip()
    if not text or len(text) > _LINE_CAP or text.count(" ") > _MOST_WORDS:
        return {}
    begin = _TAG.match(text)
    at = begin.end() if begin else 0
    found: dict[str, Any] = {}
    if stamp := _STAMP.match(text, at):
        found[_TIME] = stamp["t"]
        at = stamp.end()
    text = text[at:]
    if cells := _of_tools(text):
        return {**found, **cells} if found or len(cells) > 2 else {}
    parts = list(_PART.finditer(text))
    if not parts:
        return {}
    label = re.sub(r"\s{2,}", " ", text[: parts[0].start()]).strip(" :;,|-")
    if label and len(label) <= 60 and not _BARE.search(label):
        found[_WHAT] = label
    for part in parts:
        name, unit = part["name"].strip(), part["unit"] or ""
        if unit in ("token", "tokens"):
            name, unit = name if "tok" in name else f"{name} tokens", ""
        value = f"{part['value']} {unit}".strip()
        if part["whole"] is None:
            found.setdefault(name, value)
        elif _BYTES.fullmatch(unit):
            plain = re.sub(r"(?i)\s*\bus(?:ed|age|e)\b", "", name)
            found.setdefault(f"{plain} used", f"{part['value']} {part['between'] or unit}")
            found.setdefault(f"{plain} total", f"{part['whole']} {unit}")
        else:
            found.setdefault(name, part["value"])  # done of so many
    if _PROMPTS & found.keys():
        _add_bare(found, text, parts)
    return found


def _add_bare(found: dict[str, Any], text: str, parts: Sequence[re.Match[str]]) -> None:
    """Of a request's line what has no name: a status, and how long it took."""
    inside = [part.span() for part in parts]
    for bare in _BARE.finditer(text):
        if any(begin <= bare.start() < end for begin, end in inside):
            continue
        if bare["unit"] in ("s", "ms"):
            found.setdefault("latency", f"{bare['value']} {bare['unit']}")
        elif bare["unit"] is None and _STATUS.fullmatch(bare["value"]):
            found.setdefault("status", bare["value"])


_CELLS_OF_A_CARD = regex(r"\s*(?P<util>\d{1,3}) %, (?P<used>\d{1,7}) MiB")


def _of_tools(text: str) -> dict[str, Any]:
    """Cells without names: of `nvidia-smi` without its header, of `docker stats`."""
    if card := _CELLS_OF_A_CARD.fullmatch(text):
        return {"utilization.gpu": f"{card['util']} %", "memory.used": f"{card['used']} MiB"}
    if one := container_stats.ROW.match(text):
        return {"container": one["name"], "container memory used": one["used"], "container memory limit": one["limit"]}
    return {}


def _sized(series: Series, records: Sequence[dict[str, Any]]) -> bool:
    """Whether the memory of a series is told in bytes: `keys resident 92` is a count."""
    cells = [str(record.get(name, "")) for name, column, _ in series.memory if not column.unit for record in records]
    return all(_BYTES.search(cell) or "%" in cell for cell in cells if cell)


_IN_A_ROW = frozenset(("turn", "question", "request", "call", "q", "step", "status", _WHAT))


"""Conditions that only say that rows came one after the other: turns of a conversation are none."""


class Worded(OfLines):
    """Reads the readings of a short text."""

    def read(self, lines: Sequence[str], first_line: int, taken: set[int]) -> set[int]:
        """Read a run of lines but those in `taken`; the places of those that were understood."""
        if len(lines) > _MOST_LINES:
            return set()
        wordings: dict[tuple[str, ...], list[tuple[int, dict[str, Any]]]] = {}
        for at, line in enumerate(lines):
            if (
                at in taken
                or not 8 <= len(line) <= _LINE_CAP
                or _LOGGED.search(line, 0, _HEAD)
                or line.lstrip()[:1] in ("#", "|", "{", "<", "$")
                or is_log_line(line)
            ):
                continue
            values = record_of(line)
            if len(values) >= 2:
                wordings.setdefault(tuple(values), []).append((at, values))
        found: set[int] = set()
        for number, rows in enumerate(rows for rows in wordings.values() if len(rows) >= _LEAST):
            records = [values for _, values in rows]
            plan = plan_for(records)
            tables = plan.tables if plan is not None else frozenset[str]()
            if plan is not None and not tables <= _TABLES:
                continue
            own = own_of(records, tables)
            if own is not None and own.series is not None and not _sized(own.series, records):
                continue
            if own is not None and own.experiment is not None and {name.lower() for name in own.experiment.conditions} <= _IN_A_ROW:  # fmt: skip
                measured = {name for name, _, _ in own.experiment.figures} | {own.experiment.outcome}
                measured -= {name for name, _, _ in own.series.memory} if own.series is not None else set()
                records = [{name: cell for name, cell in record.items() if name not in measured} for record in records]
                rows = [(at, record) for (at, _), record in zip(rows, records, strict=True)]
                own = own_of(records, tables)
            if plan is None and own is None:
                continue
            if (
                "request" in tables
                and plan is not None
                and not _ANSWERED & {column.quantity.id for part in plan.parts for column in part.columns}
            ):
                continue  # `in 8192 out 1024 conc 4`: what somebody asked a load generator for
            for at, values in rows:
                self._gatherer.add(Record(first_line + at, f"#worded{number}", values))
                found.add(at)
        return found


_ANSWERED = frozenset(("request.status", "request.latency", "request.ttft", "request.cached"))
_LOGGED = regex(
    r"\b(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|Avg (?:prompt|generation) throughput)\b|^\s*\[\s*\d+\.\d{3,}\]|^\s*\[\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d|\bkernel: "
)
"""A line with a level, or with a stamp of the kernel, is a log's; the statistics of the engine have a reader."""
_TABLES = frozenset(("engine_stat", "gpu_sample", "process_memory", "request"))
