"""Tables in text, read line by line: which line is a header, which lines below it are rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from oomdoc.ingest.benchmark_sums import of_statistics
from oomdoc.ingest.forms import grammar
from oomdoc.ingest.forms import text as texts
from oomdoc.ingest.forms.believe import plan_for
from oomdoc.ingest.forms.cells import seconds_in_year
from oomdoc.ingest.forms.grammar import ELAPSED, ORDINAL, REQUESTS, TIME, Column, column_of
from oomdoc.ingest.forms.groups import Gatherer, long_form, may_turn, turned
from oomdoc.ingest.forms.own import is_of_own, own_of
from oomdoc.ingest.forms.prepare import may_quote
from oomdoc.ingest.forms.series import HEADING
from oomdoc.ingest.forms.text import Layout
from oomdoc.ingest.forms.trees import Record
from oomdoc.ingest.prompts import typed
from oomdoc.ingest.vocabulary import is_irrelevant, meanings
from oomdoc.ingest.vocabulary.words import UNITS, taken_apart
from oomdoc.regexes import regex
from oomdoc.units import parse_time

_HEADERS_TRIED = 60  # lines in which a source's first header has to be
_AHEAD = 24  # rows below a header that are looked at
_STAMP_LINE = regex(r"[^\w]*(?:\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b.{10,30}\d{4})")
_BEGINS = regex(r"\s*(?:[^\W\d]|[@%#,;|\"'+│┃║┌┏╔╭])")
_PS = regex(
    r"(?=.*\bPID\b)(?=.*\bRSS\b)(?=.*\b(?i:COMMAND|CMD|COMM)\b)[\w%+ ]+$"
)  # `notes` knows whose children they are
_REMARK = regex(r"(?<=\w)[ \t]{1,8}# .{2,200}$")
"""What somebody wrote behind a header: where its figures are from."""
_ALIKE = 3
"""Tables in a row that are cut alike, behind which none is a header: one stands behind no more than a title or two."""
_ORDERS = frozenset((ELAPSED, ORDINAL, REQUESTS, TIME))
_PROSE_WORDS = 12  # more words than that in one cell are a sentence


def _sample(layout: Layout, names: Sequence[str], lines: Sequence[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for line in lines[:_AHEAD]:
        cells = layout.cells(line)
        if cells is not None and tuple(cells) != layout.names and not _are_kinds(cells) and not texts.is_rule(line):
            rows += _by_replica(layout, cells) if layout.each else (dict(zip(names, cells, strict=True)),)
        elif rows and not texts.is_rule(line) and not _STAMP_LINE.match(line):
            break
    return rows


def header_at(lines: Sequence[str], at: int, title: str = "") -> Layout | None:
    """The layout of the table whose header is this line, if its columns are known and rows follow.

    `title` is what the source is called: what stands above the table comes first.
    """
    line = _REMARK.sub("", lines[at])
    if len(line) > 4000 or not _BEGINS.match(line) or _PS.match(line):
        return None
    best: tuple[int, int, Layout] | None = None
    below = lines[at + 1].strip() if at + 1 < len(lines) else ""
    for place, layout in enumerate(texts.layouts(line)):
        if layout.names[0] == texts.NAMELESS and _INDEX.fullmatch(below):  # pandas names its index on a line of its own
            layout = replace(layout, names=(below, *layout.names[1:]))
        elif not layout.names[0] and may_turn(
            layout.names
        ):  # columns of attempts, and nothing above the names of their rows
            layout = replace(layout, names=(texts.NAMELESS, *layout.names[1:]))
        above = _above(lines, at, layout) or title
        names = titled(layout.names, above)
        if each := _of_each(layout.names, above):
            layout = replace(layout, each=each)
            names = (layout.names[0], "replica", each)
        known = sum(bool(meanings(name)) for name in layout.names)
        named = known + sum(is_irrelevant(name) for name in layout.names)
        longish = any(name.lower() in ("value", "val", "_value") for name in layout.names)
        if (
            not longish
            and not layout.each
            and (known < 2 or named * 3 < len(layout.names))
            and not is_of_own(names)
            and not may_quote(lines[at : at + 4])
            and not may_turn(layout.names)
        ):
            continue
        rows = _sample(layout, names, lines[at + 1 : at + 1 + 3 * _AHEAD])
        if not rows:
            continue
        on_side = turned([Record(at, "", row) for row in rows])
        rows = [record.values for record in on_side] if on_side else rows
        plan = plan_for(rows)
        own = own_of(rows, plan.tables if plan is not None else frozenset())
        if plan is not None or own is not None:
            points = sum(part.points for part in plan.parts) if plan is not None else 0
            points += 2 * len(own.names) if own is not None else 0
        else:
            found = long_form(list(rows))
            points = 3 if of_statistics(rows) or (found is not None and (found.series or _pivots(rows, found))) else 0
        if points and (best is None or points > best[0]):
            best = points, -place, replace(layout, titles=names)
    return best[2] if best else None


_MARGIN = regex(r"(?i)(?:grand )?totals?|sum|max(?:imum)?|min(?:imum)?|mean|avg|average:?|median|summe|gesamt")
_INDEX = regex(r"[A-Za-z_]\w{0,39}")
_KINDS = regex(
    r"(?i)(?:str|bool|object|category|[iuf]\d\d?|int\d*|float\d*|datetime.{0,30}|id|[KMGT]?i?B|ms|s|%|C|W|-{3})?"
)


def _are_kinds(cells: Sequence[str]) -> bool:
    """Whether a row tells what its columns hold: their units, or their types as polars prints them."""
    return any(cells) and all(_KINDS.fullmatch(cell.strip("[]() ")) for cell in cells)


def _pivots(rows: Sequence[dict[str, Any]], long: Any) -> bool:
    """Whether the names of a long form make a table of ours."""
    common = {name: value for name, value in rows[0].items() if name not in (long.name, long.value, long.unit)}
    together = {str(row[long.name]): row[long.value] for row in rows}
    units = {str(row[long.name]): row[long.unit] for row in rows} if long.unit else {}
    return plan_for([{**common, **{name: f"{value} {units.get(name, '')}".strip() for name, value in together.items()}}]) is not None  # fmt: skip


def first_layout(lines: Sequence[str], title: str = "") -> Layout | None:
    """The layout of the first table near the beginning of a text that is called `title`."""
    head = [line for line in lines if line.strip()][:_HEADERS_TRIED]
    alike = _Alike()
    tried = (at for at, line in enumerate(head) if not alike.repeats(line))
    return next((found for at in tried if (found := header_at(head, at, title)) is not None), None)


class _Alike:
    """Tables that are cut as several before them were, of which none was a header: one entry of a list after the other."""

    def __init__(self) -> None:
        self._shape: tuple[int, ...] = ()
        self._times = 0

    def repeats(self, line: str) -> bool:
        """Whether this line is one more of them."""
        shape = (line.count(","), line.count(";"), line.count("|"), line.count("\t"), line.count(" "))
        self._times = self._times + 1 if shape == self._shape and line[:1] != "#" else 0
        self._shape = shape
        return self._times >= _ALIKE


class Tables:
    """Reads tables line by line; a table begins with its header and ends where lines are no rows any more."""

    def __init__(self, gatherer: Gatherer, title: str = "") -> None:
        self._gatherer = gatherer
        self._title = title
        self.layout: Layout | None = None
        self._t: str | None = None
        self._heading: str | None = None
        self._tables = 0
        self._alike = _Alike()

    def read(self, lines: Sequence[str], first_line: int) -> set[int]:
        """Read a run of lines; the places of those that belong to tables."""
        taken: set[int] = set()
        headings: dict[tuple[str, ...], dict[int, str]] = {}
        for at, line in enumerate(lines):
            if not line.strip():
                if self.layout is not None and self.layout.cut in ("  ", " "):
                    self.end()
                continue
            if self.layout is not None and typed(line) is not None:
                self.end()  # what follows is the answer to another command
            if self.layout is not None:
                cells = self.layout.cells(line)
                if cells is not None and not _is_prose(cells) and not texts.is_rule(line):
                    taken.add(at)
                    if names_time(self.layout.titles[0]) and _MARGIN.fullmatch(cells[0]):
                        continue  # what the rows above come to
                    if _are_kinds(cells):
                        titles = tuple(f"{name} [{kind}]" if name and kind.lower() in UNITS and not any(match.unit for match in meanings(name)) else name for name, kind in zip(self.layout.titles, cells, strict=True))  # fmt: skip
                        self.layout = replace(self.layout, titles=titles)
                    elif self.layout.names not in (tuple(cells), tuple(cell.strip("\"'* ") for cell in cells)):
                        self._row(first_line + at, cells)
                    continue
                if (
                    texts.is_rule(line)
                    or line.strip() == self.layout.names[0]
                    or (at - 1 in taken and _are_kinds(line.split()))
                ):
                    taken.add(at)
                    continue
            if _STAMP_LINE.match(line) and len(line) < 60:
                self._t = line if parse_time(line) is not None else self._t
                if self.layout is not None:
                    taken.add(at)
                continue
            found = None if self._alike.repeats(line) else header_at(lines, at, self._title)
            if found is not None:
                self.end()
                self.layout = found
                header = tuple(line.split())
                if header not in headings:  # once for all tables under it
                    headings[header] = _headings(lines, header, found)
                self._heading = headings[header].get(at)
                taken.add(at)
            elif self.layout is not None and self.layout.cut in ("  ", " ", "|"):
                self.end()
        return taken

    def end(self) -> None:
        """The table is over."""
        if self.layout is not None:
            self._gatherer.forget(f"#{self._tables}")
            self._tables += 1
            self.layout = None

    def _row(self, line: int, cells: Sequence[str]) -> None:
        assert self.layout is not None
        if self.layout.each:
            for of_one in _by_replica(self.layout, cells):
                self._gatherer.add(Record(line, f"#{self._tables}", of_one))
            return
        values: dict[str, Any] = {name: cell for name, cell in zip(self.layout.titles, cells, strict=True) if name}
        if self._t is not None and not any(names_time(name) for name in values):
            values["timestamp"] = self._t
        if self._heading is not None:
            values[HEADING] = self._heading
        self._gatherer.add(Record(line, f"#{self._tables}", values))


_EXPORTED = regex(r"(?i)[-_ ]data(?:[-_ ]as[-_ ]\w+)?[-_ ]\d{4}-\d\d-\d\d.{0,24}$|[-_ ]\d{8,}$")
"""Behind the name of a panel that Grafana exports as a sheet: when that was."""


_SERIES = {
    "stat.kv_used": "vllm:kv_cache_usage_perc",
    "stat.running": "vllm:num_requests_running",
    "stat.waiting": "vllm:num_requests_waiting",
}
"""The gauges of an engine by what a title says of them: a series has a label for the replica, a line of statistics has none."""


def _of_each(names: tuple[str, ...], title: str) -> str:
    """The series of an engine that a title names, where all columns but a time are called after whatever has it; "" for any other table.

    >>> _of_each(("Time", "chat-0", "chat-1"), "KV cache usage-data-2025-11-20"), _of_each(("Time", "running"), "KV cache usage"), _of_each(("Time", "a-0"), "notes")
    ('vllm:kv_cache_usage_perc', '', '')
    """
    if len(names) < 2 or not names_time(names[0]):
        return ""
    what = _EXPORTED.sub("", title).replace("_", " ").strip()
    if not 1 < len(what) <= 60:
        return ""
    each = next((_SERIES[match.quantity.id] for match in meanings(what) if match.quantity.id in _SERIES), "")
    others = (bool(name) and any(map(str.isalpha, name)) and not meanings(name) and not is_irrelevant(name) and column_of(name).role == grammar.FIGURE for name in names[1:])  # fmt: skip
    return each if each and all(others) else ""


def _by_replica(layout: Layout, cells: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The records of a row of such a table."""
    for name, cell in zip(layout.names[1:], cells[1:], strict=True):
        yield {layout.names[0]: cells[0], "replica": name, layout.each: cell}


_CLAUSES = regex(r"[,;:()]|\s[-–—]\s")
_TOLD_UNIT = regex(r"(?<![\d.])(?<![\d.] )\b[KMGT]i?B\b")  # `96 GiB` is a size, and no unit of others
_TITLED = {"host": "rss", "gpu": "gpu mem", "container": "container mem"}


def titled(names: tuple[str, ...], title: str) -> tuple[str, ...]:
    """The names of columns below a title that says what all of them hold, for those that do not say it themselves.

    >>> titled(("ts", "phase", "api_812", "hbm_used_mb_npu0"), "rss_gb")
    ('ts', 'phase', 'rss GB | api_812', 'hbm_used_mb_npu0')
    >>> titled(("hour", "router"), "VRAM [MiB] of each process, every hour"), titled(("hour", "router"), "notes of Tuesday")
    (('hour', 'gpu mem MiB | router'), ('hour', 'router'))
    >>> titled(("time", "a-0"), "container memory of the chat pods; values in GiB; limit 96 MiB"), titled(("time", "a-0"), "disk of the pods; in GiB")
    (('time', 'container mem GiB | a-0'), ('time', 'a-0'))
    """
    unit = _TOLD_UNIT.search(title)
    clauses = [clause.strip() for clause in _CLAUSES.split(title) if 1 < len(clause.strip()) <= 60]
    said = ((clause, column_of(clause if unit is None or _TOLD_UNIT.search(clause) else f"{clause} {unit[0]}")) for clause in clauses)  # fmt: skip
    what = next((one for clause, one in said if one.role == grammar.MEMORY and (not one.variant or grammar.MEMORY_WORDS & set(grammar.pieces(clause))) and one.unit not in ("", "%") and not one.state and one.gpu is None and one.resource in _TITLED), None)  # fmt: skip
    if what is None:
        return names
    kind = _TITLED[what.resource]
    own = (bool(name) and column_of(name)._replace(unit="") == Column(grammar.FIGURE) and "byte" not in name and not meanings(name) and not is_irrelevant(name) for name in names)  # fmt: skip
    told = (f"{name} {kind} {what.unit}" if taken_apart(f"{name} x").device is not None else f"{kind} {what.unit} | {name}" for name in names)  # fmt: skip
    return tuple(whole if is_own else name for name, is_own, whole in zip(names, own, told, strict=True))


_HEADING = regex(r"\s*(?:(?:[#=*>;%-]{1,6}|//+)\s*(?=\w))?(?P<said>[^|\t]{2,160}?)\s*(?:[:：]|[=#*-]{2,})?\s*$")
_CLAUSE = regex(r"\s*[,;，；、]\s*")
_DAY = regex(r"(?i)(?:(?:mon|tue|wed|thu|fri|sat|sun)\w*|day \d+|(?:on )?\d{4}-\d\d-\d\d.{0,12})")
_CAPTIONS = 4  # rows above the header of a sheet, blank ones among them
FAR = 2
"""Lines in which a heading stands above its table: a blank one, a rule or a fence between."""


def _headings(lines: Sequence[str], header: tuple[str, ...], layout: Layout) -> dict[int, str]:
    """What is said above each of the tables under a header that comes again in a text, and whose rows are in an order of their own.

    Two runs under the same header are two series: the release, the flag or the machine stands above each. A list that is printed
    again and again has its moment there, and no column of moments. What all of them say alike is left out.
    """
    if not any(names_time(name) or column_of(name).role in _ORDERS for name in layout.names):
        return {}
    said = {place: _above(lines, place, layout) for place, line in enumerate(lines) if tuple(line.split()) == header}
    if None in said.values() or len(set(said.values())) < len(said) or len(said) < 2:
        return {}
    if all(_is_day(text) for text in said.values() if text):
        return {}  # one series, told day by day
    parts = {place: _CLAUSE.split(text) for place, text in said.items() if text}
    common = set.intersection(*map(set, parts.values()))
    found = {place: ", ".join(part for part in own if part not in common) for place, own in parts.items()}
    return {place: text for place, text in found.items() if text}


def _is_day(text: str) -> bool:
    return parse_time(text) is not None or seconds_in_year(text) is not None or bool(_DAY.fullmatch(text))


def _above(lines: Sequence[str], at: int, layout: Layout) -> str | None:
    if layout.cut in (",", ";", "\t"):  # in a sheet a caption is a row of which few cells are filled
        filled = ([line] if line.startswith("# ") else [cell for cell in texts.delimited(line, layout.cut) if cell] for line in lines[max(0, at - _CAPTIONS) : at])  # fmt: skip
        if captions := [cell for cells in filled if len(cells) <= len(layout.names) // 2 for cell in cells]:
            return "; ".join(captions)
    above = [line for line in lines[max(0, at - FAR) : at] if line.strip() and not texts.is_rule(line)]
    if not above or typed(above[-1]) is not None or _STAMP_LINE.match(above[-1]) or layout.cells(above[-1]) is not None:
        return None
    found = _HEADING.match(above[-1])
    return found["said"].strip() if found and any(map(str.isalpha, found["said"])) else None


def names_time(name: str) -> bool:
    """Whether a column of this name holds moments."""
    return any(match.quantity.id == "time" for match in meanings(name))


def _is_prose(cells: Sequence[str]) -> bool:
    return any(cell.count(" ") > _PROSE_WORDS for cell in cells[:1])
