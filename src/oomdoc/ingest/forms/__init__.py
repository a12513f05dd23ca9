"""Tables and documents of any form: what a column is, is known by the vocabulary and not by who wrote it.

    ts;gpu;mem_used_mib;mem_total_mib                          a table behind any delimiter
    | GPU | Memory-Usage | GPU-Util |                           Markdown, boxes, psql
    time      running  waiting  kv_usage                        aligned columns
    [{"gpu": 0, "memory": {"used": "76012 MiB"}}, ...]          JSON in any layout, JSON lines
    gpus: [{index: 0, used: 76012 MiB}]                         YAML
    metric,value,t                                              a row for each value
    nvidia_smi,index=0 memory_used=76012i 1795205091000000000   Influx's lines

A form is recognised by its first lines, which costs next to nothing for a text that is none. `believe` decides what the columns
are, `fill` makes the rows; `tables` and `pairs` find them in text. A column of a table of ours that nobody understood is a problem; what each other column was taken
for stands in table `column_reading`. `lifted` takes tables out of prose, before it is read as prose.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import HEAD_BYTES, Head, read_by
from oomdoc.ingest.forms import text as texts
from oomdoc.ingest.forms.groups import Gatherer
from oomdoc.ingest.forms.statements import TITLE, of_message, stated, with_moment
from oomdoc.ingest.forms.tables import Tables, first_layout, names_time
from oomdoc.ingest.forms.trees import Record, exploded, of_json
from oomdoc.ingest.json_pieces import BrokenError, loads
from oomdoc.ingest.openings import KERNEL_LINE
from oomdoc.ingest.text_form import TOML_ENTRY
from oomdoc.ingest.vocabulary import meanings
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

KIND = "table"

_DOCUMENT_CAP = 32 << 20
_LEAST_ROWS_SHARE = 0.5
_YAML_LINE = regex(r"\s*(?:- )?(?:[\w.@/() %-]{1,60}|\"[^\"]{1,80}\"|'[^']{1,80}'):(?:\s|$)|\s*- |---|\s*#|\s*[\]}]")


# ---- which form


_LEAD = 160


def _object(line: str) -> dict[str, Any] | None:
    """The object that a line is, or that stands behind the stamp and the names of a logger; None for another line."""
    at = line.find("{", 0, _LEAD)
    value = loads(line[at:]) if at >= 0 and line.rstrip()[-1:] == "}" else None
    if not isinstance(value, dict):
        return None
    value = of_message(value)
    return with_moment(value, line[:at]) if at and not any(names_time(name) for name in value) else value


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
    if _most(lambda line: KERNEL_LINE.match(line) is not None, filled[:50]):
        return ""  # the pairs of its audit are of programs
    begin = filled[0].lstrip("\ufeff \t")[:1]
    if begin in ("{", "["):
        values = [loads(line) for line in filled[:20]]
        if begin == "{" and sum(isinstance(value, dict) for value in values) > 0.7 * len(values) and len(values) > 1:
            objects = [of_message(value) for value in values if isinstance(value, dict)]
            found = _try(record for value in objects for record in exploded(1, _titled(value), value, {}))
            return "json-lines" if 2 * found.understood >= len(values) else ""
        chunk = Chunk(head.data, 1, True)
        return "json" if _try(of_json(iter((chunk,)))).understood else ""
    objects = [entry for line in filled[:20] if (entry := _object(line)) is not None]
    if len(objects) > 1 and len(objects) > 0.7 * len(filled[:20]):
        tries = _try(record for value in objects for record in exploded(1, _titled(value), value, {}))
        return "json-lines" if 2 * tries.understood >= len(objects) else ""
    if _most(lambda line: texts.influx(line) is not None, filled[:50]):
        found = _try(Record(1, "", record) for line in filled if (record := texts.influx(line)))
        return "influx" if found.understood else ""
    if _tables_fill(lines, title_of(head.path)):
        return "table"
    if _most(lambda line: len(texts.pairs(line)) > 1, filled[:50]):
        found = _try(Record(1, "", texts.pairs(line)) for line in filled)
        return "pairs" if found.understood else ""
    if _most(lambda line: len(dict(stated(line))) > 1, filled[:50]):
        found = _try(_statement(1, line) for line in filled)
        return "statements" if 2 * found.understood >= len(filled) else ""
    if TOML_ENTRY.search(head.data.decode("utf-8", "replace")):
        return "yaml" if _yaml_tells(lines, of_entries=True) else ""
    nested = any(
        line[:1] in " -" for line in filled
    )  # flat pairs may come again and again, which YAML forbids: `Pairs`
    if nested and sum(_YAML_LINE.match(line) is not None for line in filled) > 0.8 * len(filled):
        return "yaml" if _yaml_tells(lines) else ""
    return ""


def _most(is_so: Callable[[str], bool], lines: Sequence[str]) -> bool:
    """Whether it is so of more than seven tenths of the lines; nobody looks at the rest once it cannot be."""
    left = len(lines) - 0.7 * len(lines)
    for line in lines:
        if not is_so(line):
            left -= 1
            if left <= 0:
                return False
    return bool(lines)


def _statement(number: int, line: str) -> Record:
    values = dict(stated(line))
    return Record(number, "#" + "/".join(values)[:400], with_moment(values, line))


def title_of(path: str) -> str:
    """What a source is called, without its folder and its ending: it may say what all columns of a table hold."""
    return path.rpartition("/")[2].partition(".")[0]


def _tables_fill(lines: Sequence[str], title: str) -> bool:
    """Whether tables are at least half of the text."""
    if first_layout(lines, title) is None:
        return False
    some = list(lines[:400])
    taken = Tables(Gatherer(), title).read(some, 1)
    return len(taken) >= _LEAST_ROWS_SHARE * sum(1 for line in some if line.strip())


def _yaml_tells(lines: Sequence[str], of_entries: bool = False) -> bool:
    if not of_entries and not any(
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


# ---- the source


class Reading:
    """The state of one source."""

    def __init__(self, path: str = "") -> None:
        self._path = path
        self.gatherer = Gatherer()
        self._lines = Tables(self.gatherer, title_of(path))
        self._form: str | None = None
        self._pieces: list[Chunk] = []
        self._size = 0

    def chunk(self, chunk: Chunk) -> Iterator[Batch]:
        """Everything that a chunk holds; of a document nothing before its end."""
        if self._form is None:
            if not chunk.data.strip():
                return
            self._form = form_of(Head(self._path, chunk.data[:HEAD_BYTES])) or "table"
        if self._form in ("json", "yaml"):
            self._size += len(chunk.data)
            if self._size <= _DOCUMENT_CAP:
                self._pieces.append(chunk)
            return
        data, first_line = chunk.whole()
        lines = data.removesuffix(b"\n").decode("utf-8", "replace").split("\n")  # no blank line between two chunks
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
                for record in of_json(iter(self._pieces)):
                    self.gatherer.add(record)
            except BrokenError as problem:
                filler.rows.problem(problem.line, f"a document that ends early: {problem}", "")
        elif self._form == "yaml":
            from oomdoc.ingest.forms import yaml_text

            try:
                text = b"".join(chunk.data for chunk in self._pieces).decode("utf-8", "replace")
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
    yield from read_by(Reading(path), chunks)
