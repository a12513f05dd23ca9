"""Tables and documents of any form: what a column is, is known by the vocabulary and not by who wrote it.

    ts;gpu;mem_used_mib;mem_total_mib                          a table behind any delimiter
    | GPU | Memory-Usage | GPU-Util |                           Markdown, boxes, psql
    time      running  waiting  kv_usage                        aligned columns
    [{"gpu": 0, "memory": {"used": "76012 MiB"}}, ...]          JSON in any layout, JSON lines
    gpus: [{index: 0, used: 76012 MiB}]                         YAML
    metric,value,t                                              a row for each value
    nvidia_smi,index=0 memory_used=76012i 1795205091000000000   Influx's lines

Forms are told by their first lines, which costs next to nothing for a text that is none. `believe` decides what the columns
are, `fill` makes the rows. A column of a table of ours that nobody understood is a problem; what each other column was taken
for is told in table `column_reading`. `Lifted` takes tables out of prose, before it is read as prose.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import HEAD_BYTES, Head, read_by
from oomdoc.ingest.forms import text as texts
from oomdoc.ingest.forms.believe import plan_for
from oomdoc.ingest.forms.groups import Gatherer, long_form, may_turn, turned
from oomdoc.ingest.forms.own import is_of_own, own_of
from oomdoc.ingest.forms.prepare import may_quote
from oomdoc.ingest.forms.spoken import Spoken
from oomdoc.ingest.forms.statements import TITLE, Statements, of_message, stated, with_moment
from oomdoc.ingest.forms.text import Layout
from oomdoc.ingest.forms.trees import Record, exploded, of_json
from oomdoc.ingest.json_pieces import BrokenError
from oomdoc.ingest.metrics import answered, asked_in, pasted
from oomdoc.ingest.prompts import typed
from oomdoc.ingest.vocabulary import is_irrelevant, meanings
from oomdoc.intake.scan import Chunk
from oomdoc.units import parse_time

KIND = "table"
TABLES = (
    "gpu_sample", "gpu_device", "gpu_process", "process_memory", "request", "metric", "engine_stat", "engine_figure",
    "cluster_event", "scaler", "note", "host_event", "allocator_segment", "allocator_stat", "trial", "trial_figure", "column_reading", "problem",
)  # fmt: skip

_DOCUMENT_CAP = 32 << 20
_HEADERS_TRIED = 60  # lines in which a source's first header has to be
_AHEAD = 24  # rows below a header that are looked at
_LEAST_ROWS_SHARE = 0.5
_STAMP_LINE = re.compile(
    r"[^\w]*(?:\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b.{10,30}\d{4})"
)
_YAML_LINE = re.compile(
    r"\s*(?:- )?(?:[\w.@/() %-]{1,60}|\"[^\"]{1,80}\"|'[^']{1,80}'):(?:\s|$)|\s*- |---|\s*#|\s*[\]}]"
)
_BEGINS = re.compile(r"\s*[A-Za-z_@%#|\"'+│┃║┌┏╔╭]")
_PS = re.compile(
    r"(?=.*\bPID\b)(?=.*\bRSS\b)(?=.*\b(?:COMMAND|CMD|COMM)\b)[\w%+ ]+$"
)  # `notes` knows whose children they are
_ALIKE = 3
"""Lines in a row that are cut alike, behind which none is a header: one stands behind no more than a title or two."""
_PROSE_WORDS = 12  # more words than that in one cell are a sentence


# ---- tables in text


def _sample(layout: Layout, lines: Sequence[str]) -> list[dict[str, Any]]:
    rows = []
    for line in lines[:_AHEAD]:
        cells = layout.cells(line)
        if cells is not None and tuple(cells) != layout.names:
            rows.append(dict(zip(layout.names, cells, strict=True)))
        elif rows and not texts.is_rule(line) and not _STAMP_LINE.match(line):
            break
    return rows


def header_at(lines: Sequence[str], at: int) -> Layout | None:
    """The layout of the table whose header is this line, if its columns are known and rows follow."""
    line = lines[at]
    if len(line) > 4000 or not _BEGINS.match(line):
        return None
    best: tuple[int, int, Layout] | None = None
    if _PS.match(line):
        return None
    for place, layout in enumerate(texts.layouts(line)):
        known = sum(bool(meanings(name)) for name in layout.names)
        named = known + sum(is_irrelevant(name) for name in layout.names)
        longish = any(name.lower() in ("value", "val", "_value") for name in layout.names)
        if (
            not longish
            and (known < 2 or named * 3 < len(layout.names))
            and not is_of_own(layout.names)
            and not may_quote(lines[at : at + 4])
            and not may_turn(layout.names)
        ):
            continue
        rows = _sample(layout, lines[at + 1 : at + 1 + 3 * _AHEAD])
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
            points = 3 if found is not None and (found.series or _pivots(rows, found)) else 0
        if points and (best is None or points > best[0]):
            best = points, -place, layout
    return best[2] if best else None


def _pivots(rows: Sequence[dict[str, Any]], long: Any) -> bool:
    """Whether the names of a long form make a table of ours."""
    common = {name: value for name, value in rows[0].items() if name not in (long.name, long.value, long.unit)}
    together = {str(row[long.name]): row[long.value] for row in rows}
    units = {str(row[long.name]): row[long.unit] for row in rows} if long.unit else {}
    return plan_for([{**common, **{name: f"{value} {units.get(name, '')}".strip() for name, value in together.items()}}]) is not None  # fmt: skip


class _Alike:
    """Lines that are cut as several before them were, of which none was a header: one entry of a list after the other."""

    def __init__(self) -> None:
        self._shape: tuple[int, ...] = ()
        self._times = 0

    def repeats(self, line: str) -> bool:
        """Whether this line is one more of them."""
        shape = (line.count(","), line.count(";"), line.count("|"), line.count("\t"), line.count(" "))
        self._times = self._times + 1 if shape == self._shape else 0
        self._shape = shape
        return self._times >= _ALIKE


class Lines:
    """Reads tables line by line; a table begins with its header and ends where lines are no rows any more."""

    def __init__(self, gatherer: Gatherer) -> None:
        self._gatherer = gatherer
        self.layout: Layout | None = None
        self._t: str | None = None
        self._tables = 0
        self._alike = _Alike()

    def read(self, lines: Sequence[str], first_line: int) -> set[int]:
        """Read a run of lines; the places of those that belong to tables."""
        taken: set[int] = set()
        for at, line in enumerate(lines):
            if not line.strip():
                if self.layout is not None and self.layout.cut in ("  ", " "):
                    self.end()
                continue
            if self.layout is not None and typed(line) is not None:
                self.end()  # what follows is the answer to another command
            if self.layout is not None:
                cells = self.layout.cells(line)
                if cells is not None and not _is_prose(cells):
                    taken.add(at)
                    if tuple(cells) != self.layout.names and not _same_header(cells, self.layout.names):
                        self._row(first_line + at, cells)
                    continue
                if texts.is_rule(line):
                    taken.add(at)
                    continue
            if _STAMP_LINE.match(line) and len(line) < 60:
                self._t = line if parse_time(line) is not None else self._t
                if self.layout is not None:
                    taken.add(at)
                continue
            found = None if self._alike.repeats(line) else header_at(lines, at)
            if found is not None:
                self.end()
                self.layout = found
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
        values: dict[str, Any] = {name: cell for name, cell in zip(self.layout.names, cells, strict=True) if name}
        if self._t is not None and not any(_is_time(name) for name in values):
            values["timestamp"] = self._t
        self._gatherer.add(Record(line, f"#{self._tables}", values))


def _is_time(name: str) -> bool:
    return any(match.quantity.id == "time" for match in meanings(name))


def _is_prose(cells: Sequence[str]) -> bool:
    return any(cell.count(" ") > _PROSE_WORDS for cell in cells[:1])


def _same_header(cells: Sequence[str], names: Sequence[str]) -> bool:
    return [cell.strip("\"'* ") for cell in cells] == list(names)


# ---- pairs in text


class Pairs:
    """Reads `key: value` lines: a record ends where a key comes again, at a blank line, or at a heading."""

    def __init__(self, gatherer: Gatherer) -> None:
        self._gatherer = gatherer

    def read(self, lines: Sequence[str], first_line: int) -> set[int]:
        """Read a run of lines; the places of those whose names were understood."""
        blocks: list[tuple[dict[str, Any], dict[str, int]]] = []
        values: dict[str, Any] = {}
        places: dict[str, int] = {}
        about: dict[str, Any] = {}
        expanded = False

        def close() -> None:
            nonlocal values, places
            if len(values) > 1:
                blocks.append(({**about, **values}, places))
            values, places = {}, {}

        for at, line in enumerate(lines):
            named = texts.section(line) if line.strip() else None
            if not line.strip() or named is not None:
                close()
                expanded = line.startswith("-[ RECORD ")
                found = re.search(r"(gpu|device|card|process|pid)\D{0,3}(\d{1,7})", named or "", re.I)
                about = {found[1].lower(): found[2]} if found else about if named is None else {}
                continue
            pair = texts.record_line(line) if expanded else texts.pair_line(line)
            if pair is None:
                continue
            name, value = pair
            if name in values:
                close()
            if value is not None:
                for one, cell in _halves(name, value):
                    values[one], places[one] = cell, at
        close()
        taken: set[int] = set()
        together: dict[tuple[str, ...], list[tuple[dict[str, Any], dict[str, int]]]] = {}
        for block in blocks:
            together.setdefault(tuple(block[0]), []).append(block)
        for number, entries in enumerate(together.values()):
            plan = plan_for([values for values, _ in entries])
            if plan is None:
                continue
            known = {column.name for part in plan.parts for column in part.columns}
            for values, places in entries:
                first = first_line + min(places.values())
                self._gatherer.add(Record(first, f"#pairs{number}", {name: values[name] for name in values if name in known or name not in plan.unknown}))  # fmt: skip
                taken |= {place for name, place in places.items() if name in known}
        return taken


def _halves(name: str, value: str) -> list[tuple[str, str]]:
    """`min/max: 1 / 4` as two pairs; another pair as it is."""
    names, cells = name.split("/"), value.split("/")
    if 1 < len(names) == len(cells) and all(cell.strip() for cell in (*names, *cells)):
        return [(one.strip(), cell.strip()) for one, cell in zip(names, cells, strict=True)]
    return [(name, value)]


# ---- which form


def _loads(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


_LEAD = 160


def _object(line: str) -> dict[str, Any] | None:
    """The object that a line is, or that stands behind the stamp and the names of a logger; None for another line."""
    at = line.find("{", 0, _LEAD)
    value = _loads(line[at:]) if at >= 0 and line.rstrip()[-1:] == "}" else None
    if not isinstance(value, dict):
        return None
    value = of_message(value)
    return with_moment(value, line[:at]) if at and not any(_is_time(name) for name in value) else value


def _titled(value: dict[str, Any]) -> str:
    """Where the records of an object belong: those of one kind of message together."""
    title = value.get(TITLE)
    return f"#{title}" if isinstance(title, str) else ""


def _whole_lines(head: Head) -> list[str]:
    lines = head.data.decode("utf-8", "replace").split("\n")
    return lines[:-1] if len(head.data) >= HEAD_BYTES and len(lines) > 1 else lines


def _try(records: Iterable[Record]) -> Gatherer:
    gatherer = Gatherer()
    try:
        for count, record in enumerate(records):
            gatherer.add(record)
            if count > 400:
                break
    except (BrokenError, ValueError):
        pass
    gatherer.flush()
    return gatherer


def form_of(head: Head) -> str:
    """`json`, `json-lines`, `influx`, `pairs`, `statements`, `yaml`, `table`, or "" for none of them."""
    lines = _whole_lines(head)
    filled = [line for line in lines if line.strip()][:200]
    if not filled:
        return ""
    begin = filled[0].lstrip("\ufeff \t")[:1]
    if begin in ("{", "["):
        values = [_loads(line) for line in filled[:20]]
        if begin == "{" and sum(isinstance(value, dict) for value in values) > 0.7 * len(values) and len(values) > 1:
            told = [of_message(value) for value in values if isinstance(value, dict)]
            found = _try(record for value in told for record in exploded(1, _titled(value), value, {}))
            return "json-lines" if 2 * found.understood >= len(values) else ""
        chunk = Chunk(head.data, 1, True)
        return "json" if _try(of_json(iter((chunk,)))).understood else ""
    objects = [entry for line in filled[:20] if (entry := _object(line)) is not None]
    if len(objects) > 1 and len(objects) > 0.7 * len(filled[:20]):
        tries = _try(record for value in objects for record in exploded(1, _titled(value), value, {}))
        return "json-lines" if 2 * tries.understood >= len(objects) else ""
    if sum(texts.influx(line) is not None for line in filled[:50]) > 0.7 * len(filled[:50]):
        found = _try(Record(1, "", record) for line in filled if (record := texts.influx(line)))
        return "influx" if found.understood else ""
    if _tables_fill(lines):
        return "table"
    if sum(len(texts.pairs(line)) > 1 for line in filled[:50]) > 0.7 * len(filled[:50]):
        found = _try(Record(1, "", texts.pairs(line)) for line in filled)
        return "pairs" if found.understood else ""
    if sum(len(dict(stated(line))) > 1 for line in filled[:50]) > 0.7 * len(filled[:50]):
        found = _try(_statement(1, line) for line in filled)
        return "statements" if 2 * found.understood >= len(filled) else ""
    nested = any(
        line[:1] in " -" for line in filled
    )  # flat pairs may come again and again, which YAML forbids: `Pairs`
    if nested and sum(_YAML_LINE.match(line) is not None for line in filled) > 0.8 * len(filled):
        return "yaml" if _yaml_tells(head, lines) else ""
    return ""


def _statement(number: int, line: str) -> Record:
    values = dict(stated(line))
    return Record(number, "#" + "/".join(values)[:400], with_moment(values, line))


def first_layout(lines: Sequence[str]) -> Layout | None:
    """The layout of the first table near the beginning of a text."""
    head = [line for line in lines if line.strip()][:_HEADERS_TRIED]
    alike = _Alike()
    tried = (at for at, line in enumerate(head) if not alike.repeats(line))
    return next((found for at in tried if (found := header_at(head, at)) is not None), None)


def _tables_fill(lines: Sequence[str]) -> bool:
    """Whether tables are at least half of the text."""
    if first_layout(lines) is None:
        return False
    some = list(lines[:400])
    taken = Lines(Gatherer()).read(some, 1)
    return len(taken) >= _LEAST_ROWS_SHARE * sum(1 for line in some if line.strip())


def _yaml_tells(head: Head, lines: Sequence[str]) -> bool:
    if not any(
        meanings(match[1])
        for line in lines
        if (match := re.match(r"\s*(?:- )?[\"']?([\w.@ :]{2,60}?)[\"']?:(?:\s|$)", line))
    ):
        return False
    from oomdoc.ingest.forms import yaml_text

    try:
        return _try(yaml_text.records("\n".join(lines))).understood > 0
    except yaml_text.NotYamlError:
        return False


def matches(head: Head) -> bool:
    """A form whose columns are known."""
    return b"\x00" not in head.data and bool(form_of(head))


def is_of_users(head: Head) -> bool:
    """Whether the records are requests, whose texts are what users sent and no evidence."""
    reading = Reading()
    for _ in reading.chunk(Chunk(head.data, 1, True)):
        pass
    return any(batch.table == "request" for batch in reading.close())


# ---- the source


class Reading:
    """The state of one source."""

    def __init__(self) -> None:
        self.gatherer = Gatherer()
        self._lines = Lines(self.gatherer)
        self._form: str | None = None
        self._held: list[Chunk] = []
        self._size = 0

    def chunk(self, chunk: Chunk) -> Iterator[Batch]:
        """Everything that a chunk holds; of a document nothing before its end."""
        if self._form is None:
            if not chunk.data.strip():
                return
            self._form = form_of(Head("", chunk.data[:HEAD_BYTES])) or "table"
        if self._form in ("json", "yaml"):
            self._size += len(chunk.data)
            if self._size <= _DOCUMENT_CAP:
                self._held.append(chunk)
            return
        data, first_line = chunk.whole()
        lines = data.decode("utf-8", "replace").split("\n")
        if self._form == "table":
            self._lines.read(lines, first_line)
        else:
            self._by_line(lines, first_line)
        yield from self.gatherer.filler.take()

    def close(self) -> Iterator[Batch]:
        """The rest: the source ends here."""
        filler = self.gatherer.filler
        if self._size > _DOCUMENT_CAP:
            filler.rows.problem(1, f"a document of {self._size} bytes is longer than is read", "")
        elif self._form == "json":
            try:
                for record in of_json(iter(self._held)):
                    self.gatherer.add(record)
            except BrokenError as problem:
                filler.rows.problem(problem.line, f"a document that ends early: {problem}", "")
        elif self._form == "yaml":
            from oomdoc.ingest.forms import yaml_text

            try:
                text = b"".join(chunk.data for chunk in self._held).decode("utf-8", "replace")
                for record in yaml_text.records(text):
                    self.gatherer.add(record)
            except yaml_text.NotYamlError as problem:
                filler.rows.problem(1, f"no YAML that can be read: {problem}", "")
        self._lines.end()
        self.gatherer.flush()
        yield from filler.close()

    def _by_line(self, lines: Sequence[str], first_line: int) -> None:
        for number, line in enumerate(lines, first_line):
            if not line.strip():
                continue
            if self._form == "json-lines":
                value = _object(line)
                if value is not None:
                    for record in exploded(number, _titled(value), value, {}):
                        self.gatherer.add(record)
                else:
                    self.gatherer.filler.rows.problem(number, "no valid JSON", line[:400])
                continue
            if self._form == "statements":
                self.gatherer.add(_statement(number, line))
                continue
            found = texts.influx(line) if self._form == "influx" else texts.pairs(line)
            if found:
                self.gatherer.add(Record(number, "", dict(found)))


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """Rows of every table that the vocabulary knows."""
    yield from read_by(Reading(), chunks)


# ---- tables inside of prose

_LIFT_CAP = 256 << 10  # a longer text is a log, and its tables are those of tools, which have readers


class Lifted:
    """Takes tables and blocks of pairs out of a short text: their lines are blank in what is handed on."""

    def __init__(self) -> None:
        self._gatherer = Gatherer()

    def chunks(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """The chunks, without the lines that were read here: those of a source that is one short chunk."""
        given = iter(chunks)
        first = next(given, None)
        if first is None:
            return
        second = next(given, None)  # a source that goes on is a log, and may be read on another day: never cut
        if second is None and len(first.data) <= _LIFT_CAP and b"\x00" not in first.data:
            first = self._lifted(first)
        yield first
        if second is not None:
            yield second
        yield from given

    def take(self) -> Iterator[Batch]:
        """What was read."""
        self._gatherer.flush()
        yield from self._gatherer.filler.close()

    def _samples(self, lines: Sequence[str], first_line: int, taken: set[int]) -> set[int]:
        """Samples of an exporter that somebody pasted, a few of a scrape: `vllm:num_requests_running{..} 256`."""
        found: set[int] = set()
        asked: str | None = None
        for at, line in enumerate(lines):
            answer = answered(line, asked)
            if answer is not None and self._gatherer.filler.series(first_line + at, answer[3], *answer[:3]):
                found.add(at)
                continue
            asked = asked_in(line) or asked
            sample = pasted(line) if at not in taken and ":" in line else None
            if sample is not None and self._gatherer.filler.series(first_line + at, None, *sample):
                found.add(at)
        return found

    def _lifted(self, chunk: Chunk) -> Chunk:
        lines = chunk.data.decode("utf-8", "replace").split("\n")
        reader = Lines(self._gatherer)
        taken = reader.read(lines, chunk.first_line)
        reader.end()
        left = ["" if at in taken else line for at, line in enumerate(lines)]
        taken |= Pairs(self._gatherer).read(left, chunk.first_line)
        taken |= self._samples(lines, chunk.first_line, taken)
        Statements(self._gatherer).read(lines, chunk.first_line, taken)  # left in place: a log's line may tell more
        Spoken(self._gatherer).read(lines, chunk.first_line, taken)  # likewise
        if not taken:
            return chunk
        raw = chunk.data.split(b"\n")
        return chunk._replace(data=b"\n".join(b"" if at in taken else line for at, line in enumerate(raw)))
