"""Memory of processes over time, as people and small scripts keep it: a CSV, columns, a table of Markdown, or words.

    state,nvidia_smi_process_mib          EngineCore, RSS idle: 3.50 GB
    asleep after boot,412                 EngineCore, RSS after round 5: 18.08 GB

The header says which column is what; `Sheet` reads lines of such a table wherever it stands, `point` and `points` what is said in words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Head, Rows
from oomdoc.ingest.process_list import is_header
from oomdoc.ingest.prose_words import LINE_CAP, SIZE
from oomdoc.ingest.vocabulary.words import in_english
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex
from oomdoc.units import parse_size, parse_time

KIND = "memory-series"
TABLES: tuple[str, ...] = ("process_memory",)

MEASURED = regex(
    r"\b(?:(?P<gpu>nvidia[-_ ]smi|gpu[- ]memory|vram|device memory|gpu)|"
    r"(?P<host>rss|resident(?: set| memory)?(?: size)?|host memory|ram|vmrss|pss))\b"
    r"(?: (?:used|usage|in use|process(?:es)?|of the \w+))*"
    r"|\b(?P<any>memory(?: used| usage| in use)?|mem)\b",
    re.I,
)
_POINT = regex(
    rf"^(?P<label>[^:=]{{2,160}}?)\s{{0,20}}(?:[:=]|\s(?:is|was)\s|\t|\s{{2,20}})\s{{0,20}}(?P<size>{SIZE})\s{{0,20}}(?:[,;(].*)?\.?$"
)
_KEPT = regex(
    rf"^(?:(?P<label>[^:=]{{2,80}}?)\s{{0,20}}[:=,]\s{{0,20}})?(?:about |around |roughly |~ ?|ca\.? )?(?P<size>{SIZE})(?: of (?:memory|vram|ram))?(?: (?:is|are|was|were))?(?: still)? "
    r"(?:in use|held|kept|left|allocated|occupied|resident|used|remain(?:s|ing)?)(?: on the (?:gpu|device|card))? (?P<state>(?:after|while|during|when|once) [^,;.:=]{2,40})\.?$",
    re.I,
)
_STATE = regex(
    r"\b(?:after|before|idle|asleep|sleep(?:ing)?|awake|round|start(?:ed|up)?|boot|hours?|days?|min(?:ute)?s?|wake|"
    r"load(?:ed|ing)?|step|cycle|iteration|epoch|requests?|at rest|baseline|begin(?:ning)?|end|peak|t ?=|during|"
    r"initial|final|warm-?up|\d+ ?[hdms])\b",
    re.I,
)
_CAPACITY = regex(
    r"\b(?:total|limit|capacity|all cards|per card|available|required|needed|weights?|model size|disk|swap|budget|free|"
    r"kv cache|reserved|request|installed)\b",
    re.I,
)


def point(text: str, subject: str | None) -> dict[str, Any] | None:
    """A sample of a process's memory in words: who, in what state, how much.

    "step 3: about 25.0 GiB still in use after sleep" is one: the state stands behind the size, the label is its place.
    """
    kept = _KEPT.match(text)
    if kept and not _CAPACITY.search(text):
        asleep = re.search(r"\bsleep|\basleep", kept["state"], re.I)
        return {
            "name": None,
            "state": kept["state"],
            "resource": subject or ("gpu" if asleep else None),
            "bytes": parse_size(kept["size"]),
        }
    match = _POINT.match(text)
    if not match or "+" in match["label"][-2:]:
        return None
    label = match["label"].strip(" ,-*")
    measured = MEASURED.search(label)
    if _CAPACITY.search(label) or (measured is None and subject is None):
        return None
    resource = subject
    before, after = label, ""
    if measured:
        resource = "gpu" if measured["gpu"] else "host" if measured["host"] else subject
        before, after = label[: measured.start()].strip(" ,(-"), label[measured.end() :].strip(" ,-:")
    state, name = after or None, before or None
    if state is None and before and _STATE.search(before):
        state, name = before, None
    elif measured is None:
        state, name = label, None
    if state is None or not _STATE.search(state):
        return None
    return {"name": name, "state": state, "resource": resource, "bytes": parse_size(match["size"])}


_TWICE = regex(
    rf"(?P<size>{SIZE}) (?P<state>(?:idle|at|after|before|when|while|asleep|on|in)\b[^,;.]{{0,60}}|\w+ at idle)", re.I
)


def points(text: str) -> Iterator[dict[str, Any]]:
    """Several samples in one sentence: "3.1 GB idle, 7.9 GB after a day"."""
    found = list(_TWICE.finditer(text))
    measured = MEASURED.search(text)
    if len(found) < 2 or not measured or _CAPACITY.search(text):
        return
    resource = "gpu" if measured["gpu"] else "host" if measured["host"] else None
    for match in found:
        yield {"state": match["state"].strip(), "resource": resource, "bytes": parse_size(match["size"])}


_MEMORY_COLUMN = regex(
    r"(?:rss|resident|vmrss|pss|vram|nvidia_?smi|used|usage|mem(?:ory)?|process|gpu|cuda|device)\w*?"
    r"[ _(\[]*(?P<unit>bytes|b|kib|mib|gib|kb|mb|gb)[\])]?$"
    r"|^(?:rss|vmrss|pss|uss|vram|memory|mem|mem_used|memory_used|used_memory)$",
    re.I,
)
_NOT_COLUMN = regex(
    r"total|limit|capacity|free|shared|avail|vsz|virt|cache|util|percent|%|swap|requested|input|output", re.I
)
_TIME_COLUMN = regex(
    r"^(?:timestamp|time|t|ts|date|datetime|at|when|time_utc|epoch(?:_s)?|unix|elapsed\w*|hours?|minutes?|seconds?)\b",
    re.I,
)
_STATE_COLUMN = regex(
    r"^(?:state|phase|label|event|stage|step|round|when|note|situation|moment|iteration|cycle)s?$", re.I
)
_NAME_COLUMN = regex(r"^(?:name|process|proc|command|comm|cmd|process_name|container|pod|service)$", re.I)
_UNITS = {"b": "B", "bytes": "B"}


class Sheet:
    """A CSV or column text with memory of processes: which column is what."""

    def __init__(self, header: Sequence[str], split: re.Pattern[str] | None) -> None:
        self.split = split
        names = [in_english(name.strip().strip("\"'")) for name in header]
        self.width = len(names)
        self.memory: list[tuple[int, str, str, str | None]] = []  # index, column, unit, resource
        self.time = self.state = self.name = self.pid = -1
        self.time_name = ""
        for index, name in enumerate(names):
            found = _MEMORY_COLUMN.search(name)
            if found and not _NOT_COLUMN.search(name):
                gpu = re.search(r"gpu|smi|vram|device|cuda", name, re.I)
                host = re.search(r"rss|resident|host|ram\b|pss|uss", name, re.I)
                resource = "gpu" if gpu else "host" if host else None
                self.memory.append((index, name, (found["unit"] or "").lower(), resource))
            elif self.time < 0 and _TIME_COLUMN.match(name):
                self.time, self.time_name = index, name
            elif self.state < 0 and _STATE_COLUMN.match(name):
                self.state = index
            elif self.name < 0 and _NAME_COLUMN.match(name):
                self.name = index
            elif name.lower() == "pid":
                self.pid = index

    @property
    def useful(self) -> bool:
        """Whether this is a series: a memory column beside a time, a state or a process."""
        return bool(self.memory) and max(self.time, self.state, self.name) >= 0

    def _age(self, cells: Sequence[str]) -> str | None:
        """A time that is no date (`3h`, hour 2) is the state."""
        if self.time < 0 or not cells[self.time] or _moment(cells[self.time]) is not None:
            return None
        number = re.fullmatch(r"[\d.]+|\d+:\d\d(?::\d\d)?", cells[self.time])
        return f"{self.time_name} {cells[self.time]}" if number else cells[self.time]

    def rows(self, text: str) -> Iterator[dict[str, Any]]:
        """Samples of one line; none where it does not fit."""
        cells = [cell.strip().strip("\"'") for cell in _cells(text, self.split)]
        if len(cells) < self.width:
            return
        name = cells[self.name] if self.name >= 0 else None
        if self.pid >= 0:
            name = f"{name or 'process'} (pid {cells[self.pid]})"
        for index, column, unit, resource in self.memory:
            printed = cells[index]
            size = parse_size(printed, unit=_UNITS.get(unit, unit)) if re.fullmatch(r"[\d.,]+\s?\w*", printed) else None
            if size is None:
                continue
            yield {
                "t": _moment(cells[self.time]) if self.time >= 0 else None,
                "name": name or (column if len(self.memory) > 1 else None),
                "state": cells[self.state] or None if self.state >= 0 else self._age(cells),
                "resource": resource,
                "bytes": size,
            }


def _moment(text: str) -> float | None:
    stamp = parse_time(text)
    if stamp is None and re.fullmatch(r"1[0-9]{9}(?:\.\d+)?", text):
        return float(text)
    return stamp


_SPLITS: tuple[re.Pattern[str], ...] = tuple(regex(shape) for shape in (r",", r";", r"\t", r"\s*\|\s*", r"\s{2,}"))


def _cells(text: str, split: re.Pattern[str] | None) -> list[str]:
    return split.split(text.strip().strip("|")) if split else text.split()


def sheet_of(text: str) -> Sheet | None:
    """The layout that a header line announces; None where it is no header of a memory series."""
    if len(text) > 1000 or is_header(text) or not re.search(r"rss|mem|vram|smi|resident|pss|used|_[mg]i?b", text, re.I):
        return None
    for split in _SPLITS:
        cells = split.split(text.strip().strip("|"))
        if len(cells) >= 2 and all(
            re.fullmatch(r"\s*[\"']?[A-Za-z][\w .()\[\]/%-]{0,40}[\"']?\s*", cell) for cell in cells
        ):
            sheet = Sheet(cells, split)
            if sheet.useful:
                return sheet
    return None


def matches(head: Head) -> bool:
    """A header within the first three lines, and half of the next twenty lines fit it."""
    if b"\x00" in head.data:
        return False
    lines = [line for line in head.data.decode("utf-8", "replace").split("\n") if line.strip()]
    sheet = next((found for line in lines[:3] if (found := sheet_of(line))), None)
    if sheet is None:
        return False
    fit = [line for line in lines[1:20] if any(True for _ in sheet.rows(line))]
    return 2 * len(fit) >= len(lines[1:20]) > 0


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """The samples, in the order of the text."""
    rows = Rows()
    sheet: Sheet | None = None
    for chunk in chunks:
        for number, text in chunk.lines(LINE_CAP):
            found = [] if sheet is None else list(sheet.rows(text))
            for row in found:
                rows.add("process_memory", number, **row)
            if not found:
                sheet = sheet_of(text) or sheet
        if rows.count >= 20_000:
            yield from rows.take()
    yield from rows.take()
