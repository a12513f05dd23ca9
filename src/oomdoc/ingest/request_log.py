"""Request logs: token counts, times and outcomes of single requests, whoever wrote them.

Shapes (each may stand in docker, CRI or kubectl envelopes):
    2026-11-20 20:04:51.120 INFO gw id=r1 model=qwen input_tokens=7420 output_tokens=312 latency_ms=8123 status=200
    {"ts": "2026-11-20T20:04:51Z", "response": {"usage": {"prompt_tokens": 7420, "completion_tokens": 312}}}
    timestamp,prompt_tokens,completion_tokens       (CSV with a header; `;` and tabs too)
    {"duration": 10.0, ..., "input_lens": [512, 80], "output_lens": [128, 20], ...}     (vLLM's serving benchmark)
`request_keys` lists the synonyms. A line without token counts gives no row, and never takes over those of the line before.

Units: a suffix of the key or of the value rules (`_ms`, `1.2s`); durations without any are read as milliseconds where the
first chunk shows 1000 or more, as seconds where it shows fractions below, else they stay unknown. `t` is the arrival: a
start time, else an end time less the latency, else the line's own stamp. Epoch numbers are s, ms, us or ns by their size;
times that count from the start of a recording are kept as such (`elapsed_s`) where the key names their unit, else they stay
unknown. Cached tokens are part of the prompt tokens, save in the form `input_tokens` beside `cache_read_input_tokens`, where
both are added up.

Lines of one shape go through a template, learned from one of them (`request_shapes`); every other line through json or a
regular expression. Text of prompts is never searched.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Head, read_by
from oomdoc.ingest.json_pieces import loads
from oomdoc.ingest.record import HEAD
from oomdoc.ingest.request_keys import MEANING, Bare, Requests, are_requests, collect
from oomdoc.ingest.request_lines import ASKS, PAIR, TEXT_KEYS, Lines
from oomdoc.ingest.request_shapes import LEARN_CAP, RefusedError, Shape, learn_csv, learn_json, learn_pairs
from oomdoc.ingest.request_sheet import Sheet, add_row, has_named_prompts, header_of, of_sums
from oomdoc.ingest.vocabulary import is_irrelevant
from oomdoc.intake.columns import WORTHWHILE_BYTES
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

KIND = "request-log"

_DOCUMENT_CAP = 32 << 20  # a benchmark's JSON of several lines, or of one very long line, is read whole up to here
_SHAPES = 4  # shapes that one chunk may have


# ---- the source


class Reader:
    """The state of one source: its CSV header, the shapes that fitted, its requests so far; a document as it grows."""

    def __init__(self) -> None:
        self.requests = Requests()
        self.lines = Lines(self.requests)
        self.sheet: Sheet | None = None
        self.shapes: list[Shape] = []
        self.begun = False
        self.document = False
        self.document_pieces: list[bytes] = []
        self.document_bytes, self.document_line = 0, 1

    def chunk(self, chunk: Chunk) -> Iterator[Batch]:
        """Everything that a chunk holds; of a document nothing before its end."""
        if not self.begun and not self.document and chunk.data.strip() and _opens_document(chunk.data):
            self.document, self.document_line = True, chunk.first_line
        if self.document:
            self.document_bytes += len(chunk.data)
            if self.document_bytes <= _DOCUMENT_CAP:
                self.document_pieces.append(chunk.data)
            return
        data, first_line = chunk.whole()
        if data:
            yield from self._lines(data, first_line)

    def close(self) -> Iterator[Batch]:
        """What the end of the source completes."""
        if self.document_bytes > _DOCUMENT_CAP:
            why = f"a JSON document of {self.document_bytes} bytes is longer than is read"
            self.requests.noted.problem(self.document_line, why, "")
        elif self.document:
            yield from self._document(b"".join(self.document_pieces), self.document_line)
        yield from self.requests.noted.close()

    def _lines(self, data: bytes, first_line: int) -> Iterator[Batch]:
        """Everything that a run of whole lines holds."""
        if not self.begun and data.strip():
            self.begun = True
            lead = len(data) - len(data.lstrip())
            begin = data.rfind(b"\n", 0, lead) + 1
            stop = data.find(b"\n", lead) + 1 or len(data)
            self.sheet = header_of(data[begin:stop])
            if self.sheet:
                self._tell_unknown(first_line + data.count(b"\n", 0, begin))
                first_line += data.count(b"\n", 0, stop)
                data = data[stop:]
        if len(data) >= WORTHWHILE_BYTES:
            yield from self._dense(data, first_line)
        else:
            for at, raw in enumerate(data.split(b"\n"), first_line):
                self.line(at, raw)
        yield from self.requests.take()

    def _tell_unknown(self, line: int) -> None:
        """Columns of a table of requests that nobody understood: what they hold is missing from every row."""
        assert self.sheet is not None
        for name in self.sheet.names:
            if MEANING[name] is None and name and not is_irrelevant(name):
                self.requests.noted.problem(
                    line, f"a column of unknown meaning in a table of request: {name[:60]}", name
                )

    def line(self, line: int, raw: bytes) -> None:
        """One line, the plain way."""
        if self.sheet:
            add_row(self.sheet, self.requests, line, raw)
        else:
            self.lines.line(line, raw)

    def _dense(self, data: bytes, first_line: int) -> Iterator[Batch]:
        """One shape after the other, each over the lines that those before left; what is left in the end, plainly."""
        numbers: list[int] | None = None  # physical line numbers of the lines in `data`, once some are gone
        if ASKS.search(data):
            rest = []
            for number_, raw in enumerate(data.split(b"\n"), first_line):
                if ASKS.search(raw):
                    self.line(number_, raw)
                else:
                    rest.append((number_, raw))
            numbers, data = [number_ for number_, _ in rest], b"\n".join([raw for _, raw in rest])
        for _ in range(_SHAPES):
            fit = self._fit(data, first_line, numbers) if len(data) >= WORTHWHILE_BYTES else None
            if fit is None:
                break
            batch, odd = fit
            yield batch
            numbers = [first_line + at if numbers is None else numbers[at] for at, _, _ in odd]
            data = b"\n".join([data[begin:end] for _, begin, end in odd])
        for number_, raw in zip(count(first_line) if numbers is None else numbers, data.split(b"\n"), strict=False):
            self.line(number_, raw)

    def _fit(
        self, data: bytes, first_line: int, numbers: list[int] | None
    ) -> tuple[Batch, list[tuple[int, int, int]]] | None:
        """The rows of the first shape that at least a fifth of the lines have, and the lines that have another."""
        for shape in self._candidates(data):
            cut = shape.template.read(data, share=0.2)
            if cut is None:
                continue
            lines = cut.lines + first_line if numbers is None else [numbers[at] for at in cut.lines.tolist()]
            batch = shape.batch(cut, lines, self.requests.bare)
            if batch is not None:
                self.shapes = [shape, *(other for other in self.shapes if other != shape)][:_SHAPES]
                return batch, list(cut.odd_lines())
        return None

    def _candidates(self, data: bytes) -> Iterator[Shape]:
        """Shapes worth trying: those that fitted before, then those of three lines of the chunk."""
        yield from list(self.shapes)
        tried = list(self.shapes)
        for place in (0, len(data) // 2, len(data) // 4):
            begin = data.find(b"\n", place) + 1 if place else 0
            end = data.find(b"\n", begin)
            line = data[begin : end if end >= 0 else len(data)]
            try:
                shape = self._learn(line) if len(line) <= LEARN_CAP else None
            except RefusedError:
                continue
            if shape is not None and shape not in tried:
                tried.append(shape)
                yield shape

    def _learn(self, line: bytes) -> Shape:
        if self.sheet:
            return learn_csv(line, self.sheet.delimiter.encode(), self.sheet.names)
        return learn_json(line) if line[:1] == b"{" else learn_pairs(line)

    def _document(self, data: bytes, first_line: int) -> Iterator[Batch]:
        """A JSON document of several lines, or of one that is longer than a chunk."""
        value = loads(data)
        if value is None and (entries := _before_the_cut(data)):
            self.lines.value(first_line, entries, None, data[:400])
            self.requests.noted.problem(
                first_line, "a document that ends early", data[-200:].decode("utf-8", "replace")
            )
        elif value is None:
            text = data[:400].decode("utf-8", "replace")
            self.requests.noted.problem(first_line, "no valid JSON document", text)
        else:
            self.lines.value(first_line, value, None, data[:400])
        yield from self.requests.take()


def _before_the_cut(data: bytes) -> list[Any]:
    """The objects of a list that are whole; [] for what is no list of objects."""
    text = data.decode("utf-8", "replace")
    decoder, found = json.JSONDecoder(), []
    at = text.find("[") + 1
    while at and (start := _NEXT_OBJECT.match(text, at)):
        try:
            value, at = decoder.raw_decode(text, start.end() - 1)
        except (ValueError, RecursionError):
            break
        found.append(value)
    return found


_NEXT_OBJECT = regex(r"[\s,]*\{")

KEPT = (Reader, Lines, Sheet, Requests, Bare, Shape)
"""What a reading is made of (`ingest.kept`)."""


_DOCUMENT = regex(rb'\s*(?:\[\s*(\{|\Z)|\{\s*(?:"|\Z))')


def _opens_document(data: bytes) -> bool:
    """Whether the source begins with a JSON value that its first line does not close."""
    begin = _DOCUMENT.match(data)
    if not begin:
        return False
    first, _, rest = data.lstrip().partition(b"\n")
    if loads(first) is not None:
        return False
    return begin[1] is not None or rest.lstrip()[:1] != b"{"


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """Rows of `request`, and of `problem` for lines that ought to have been requests."""
    yield from read_by(reading(path), chunks)


def reading(path: str) -> Reader:
    """The state of a source of which nothing was read."""
    return Reader()


# ---- recognising

_SERVER_LINE = regex(r"(?:\([^)]*\) )*" + HEAD.pattern)
_BENCH = regex(rb'"(?:input_lens|output_lens)"\s*:\s*\[|"total_input_tokens"\s*:|"num_prompts"\s*:\s*\d')
_WORDS = (b"token", b"len", b"eval_count", b"evalcount")  # one of them is in every name of a count
_SHARE = 0.3  # of the lines are requests


_CLOCKS = regex(rb"(?:^|[,;\t])\"?\d\d:\d\d:\d\d(?:\.\d+)?\"?(?:$|[,;\t\r])")


def matches(head: Head) -> bool:
    """Request lines are three of ten lines, or there is a CSV header, or a benchmark's arrays."""
    raw = [line for line in head.data.split(b"\n")[:400] if line.strip()]
    text = head.data.lower()
    if not raw or not any(word in text for word in _WORDS):
        return False
    sheet = header_of(raw[0])
    if sheet and len(raw) > 1 and _CLOCKS.search(raw[1]):
        return False  # clocks without a date are settled between columns, which `forms` does
    if sheet and (has_named_prompts(sheet, raw[1:65]) or of_sums(sheet, raw[1:65])):
        return False  # columns are known by their cells in `forms`
    if sheet:
        requests = Requests()
        for number_, line in enumerate(raw[1:20], 1):
            add_row(sheet, requests, number_, line)
        return len(raw) == 1 or any(isinstance(tokens, int) for row in requests.rows for tokens in row[2:4])
    begin = head.data.lstrip()[:1]
    if begin == b"{" and _BENCH.search(head.data):
        return True
    lines = [line for line in head.lines if line.strip()]
    if sum(map(_is_record, lines)) > len(lines) // 10:
        return False
    pairs = sum(map(_is_pairs, lines[:100]))
    if pairs:
        return pairs >= _SHARE * len(lines[:100])
    # the raw lines: a request's own `message` would be taken for an envelope
    whole = (raw[:-1] if len(head.data) >= 64 << 10 and len(raw) > 1 else raw)[:100]
    hits = sum(1 for line in whole if b"{" in line and _is_json_line(line))
    if hits or begin not in (b"{", b"["):
        return hits > 0 and hits >= _SHARE * len(whole)
    value = _first(head.data.decode("utf-8", "replace").lstrip())
    return isinstance(value, dict) and _is_request(value)


TELLING = regex(rb"(?i)(?:prompt|input|completion)_?tokens\\?[\"=]|(?<!\w)(?:prompt|in)=\d")


def one_by_one(data: bytes) -> Iterator[Batch]:
    """Requests that stand alone in a text of something else: a gateway's record in a server's log, an answer in a session."""
    requests = Requests()
    reader = Lines(requests)
    for number_, raw in enumerate(data.split(b"\n"), 1):
        text = raw.decode("utf-8", "replace")
        if TELLING.search(raw) and not _is_record(text) and (_is_json_line(raw) or _is_pairs(text)):
            reader.line(number_, raw)
    yield from requests.take()


def _first(text: str) -> Any:
    """The first value of a JSON document that may be cut: the document itself, or the first entry of its list."""
    try:
        return json.JSONDecoder().raw_decode(text[1:].lstrip() if text[0] == "[" else text)[0]
    except (ValueError, RecursionError):
        return None


def _is_record(line: str) -> bool:
    """Whether a line is the server's own, which may quote anything."""
    found = _SERVER_LINE.match(line)
    return found is not None and found["src"] is not None and found["mon"] is not None


def _is_pairs(line: str) -> bool:
    """Whether a line logs a request in key=value form, and does not only mention one in a sentence."""
    pairs = PAIR.findall(line)
    counts = {meaning.what for name, value in pairs if value[:1].isdigit() and (meaning := MEANING[name])}
    if not are_requests(counts):
        return False
    words = [word for word in PAIR.sub(" ", line).split() if len(word) > 1 and word.isalpha() and word.islower()]
    return len(words) <= len(pairs) + 2


def _is_request(value: Mapping[str, Any]) -> bool:
    return are_requests(collect(value, {}))


def _is_json_line(line: bytes) -> bool:
    """A request as a JSON line, bare or in an envelope."""
    brace = line.find(b"{", 0, 200)
    value = loads(line[brace:].strip()) if brace >= 0 else None
    if not isinstance(value, dict):
        return False
    if _is_request(value):
        return True
    text = next((value[key] for key in TEXT_KEYS if isinstance(value.get(key), str)), "")
    inner = loads(text)
    return _is_request(inner) if isinstance(inner, dict) else _is_pairs(text)
