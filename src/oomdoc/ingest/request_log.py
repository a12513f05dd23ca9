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
times that count from the start of a recording stay unknown. Cached tokens are part of the prompt tokens, save in the form
`input_tokens` beside `cache_read_input_tokens`, where both are added up.

Lines of one shape go through a template, learned from one of them (`request_shapes`); every other line through json or a
regular expression. Text of prompts is never searched.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Head, read_by
from oomdoc.ingest.benchmark_sums import sums
from oomdoc.ingest.record import ANSI, HEAD, Clock, peel
from oomdoc.ingest.request_keys import (
    MEANING,
    Bare,
    Found,
    Requests,
    collect,
    conversation_of,
    epoch,
    moment,
    number,
    put,
)
from oomdoc.ingest.request_shapes import (
    LEARN_CAP,
    RefusedError,
    Shape,
    bare_value,
    learn_csv,
    learn_json,
    learn_pairs,
    loads,
)
from oomdoc.ingest.vocabulary import is_irrelevant
from oomdoc.intake.cells import is_null, stamp
from oomdoc.intake.columns import WORTHWHILE_BYTES
from oomdoc.intake.scan import Chunk

KIND = "request-log"
TABLES = ("request", "metric", "note", "problem")

_DOCUMENT_CAP = 32 << 20  # a benchmark's JSON of several lines, or of one very long line, is read whole up to here
_LINE_CAP = 64 << 10  # key=value pairs stand before any text of prompts
_SHAPES = 4  # shapes that one chunk may have

# ---- lines: key=value text and JSON

_KV = re.compile(r"""(?<![^\s,;|(\[{])([A-Za-z_@][\w.@-]*)=("[^"]*"|[^\s,;"]*)""")
_EPOCH_HEAD = re.compile(r"\[?(\d{10}(?:\.\d+)?|\d{13})\b")
_TEXT_KEYS = ("log", "message", "msg", "MESSAGE", "line", "textPayload")


_CALL = re.compile(
    r"\s*(?:<think>.{0,4000}</think>\s*)?(<tool_call>|\[TOOL_CALLS\]|<\|python_tag\|>|<function=|<\|tool_calls?_(?:section_)?begin\|>|<tool_calls>|```(?:json)?\s*\{\s*\"name\"|\{\s*\"name\"\s*:\s*\"\w{1,64}\"\s*,\s*\"(?:arguments|parameters)\")",
    re.S,
)
"""How models of several families begin the call of a tool: a server with the right parser takes it out of the text."""


def unread_call(value: Mapping[str, Any]) -> str | None:
    """The beginning of a tool call that stands in the text of a chat answer, whose list of calls is empty; None for any other.

    >>> unread_call({"choices": [{"message": {"content": '[TOOL_CALLS][{"name": "f"}]', "tool_calls": []}, "finish_reason": "stop"}]})
    'the text of an answer is a tool call ([TOOL_CALLS]), and its list of calls is empty'
    >>> unread_call({"choices": [{"message": {"content": "Done.", "tool_calls": []}}]})
    """
    choices = value.get("choices")
    for choice in choices[:8] if isinstance(choices, list) else ():
        message = choice.get("message") if isinstance(choice, dict) else None
        if isinstance(message, dict) and isinstance(message.get("content"), str) and not message.get("tool_calls"):
            call = _CALL.match(message["content"])
            if call:
                return f"the text of an answer is a tool call ({call[1][:30].strip()}), and its list of calls is empty"
    return None


class _Lines:
    """The plain reader of lines: any line, any order, any envelope."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._clock = Clock()

    def line(self, number_: int, raw: bytes) -> None:
        """Read one physical line."""
        body = raw.strip()
        if body[:1] in (b"{", b"["):
            value = loads(body)
            if value is not None:
                self.value(number_, value, None, body)
            elif body[:1] == b"{":
                self._requests.noted.problem(number_, "no valid JSON", body[:400].decode("utf-8", "replace"))
            else:
                self._text(number_, body, None)
        elif b"=" in body or b"{" in body:
            self._text(number_, body, None)

    def value(self, line: int, value: Any, t: float | None, body: bytes) -> None:
        """A JSON value: requests, a benchmark, spans, or an envelope around one of them."""
        if isinstance(value, list):
            for entry in value:
                if isinstance(entry, dict):
                    self.value(line, entry, t, body)
            return
        if not isinstance(value, dict):
            return
        found = collect(value, {})
        if unread := unread_call(value):
            self._requests.noted.add("note", line, topic="call-left-in-text", text=unread)
        if "input" in found or "output" in found:
            self._requests.add(line, found, t, body)
        elif isinstance(value.get("input_lens"), list) or isinstance(value.get("output_lens"), list):
            self._bench(line, value)
            self._summary(line, value)
        elif isinstance(value.get("completed"), int) and ("num_prompts" in value or "total_input_tokens" in value):
            self._summary(line, value)
        elif isinstance(value.get("resourceSpans"), list):
            for span in _spans(value):
                self.value(line, span, t, body)
        else:
            text = next((value[key] for key in _TEXT_KEYS if isinstance(value.get(key), str)), None)
            if text is not None:
                outer = moment(found.get("start", found.get("stamp")))
                self._text(line, text.strip().encode("utf-8", "replace"), outer if outer is not None else t)

    def _text(self, line: int, body: bytes, t: float | None) -> None:
        brace = body.find(b"{", 0, 200)
        if brace >= 0 and body.endswith(b"}"):
            value = loads(body[brace:])
            if isinstance(value, dict):
                outer = stamp(body[:brace].decode("utf-8", "replace"))
                self.value(line, value, outer if outer is not None else t, body)
                return
        text = body[:_LINE_CAP].decode("utf-8", "replace")
        if "\x1b" in text:
            text = ANSI.sub("", text)
        found: Found = {}
        for name, value in _KV.findall(text):
            meaning = MEANING[name]
            if meaning is not None:
                put(found, meaning, bare_value(value))
        if "input" not in found and "output" not in found:
            return
        if moment(found.get("start", found.get("stamp"))) is None:
            own = self._head_time(text)
            t = own if own is not None else t
        self._requests.add(line, found, t, text)

    def _head_time(self, text: str) -> float | None:
        """The stamp before the first pair."""
        first = _KV.search(text)
        head = text[: first.start()] if first else text
        t = moment(head) if head else None
        if t is None and (match := _EPOCH_HEAD.match(head)):
            t = epoch(float(match[1]))
        if t is None and head[:1].isalpha():
            _, t, extra = peel(text)
            if t is None and "stamp" in extra and extra["stamp"][0]:
                t = self._clock.at(*extra["stamp"])
        return t

    def _summary(self, line: int, value: Mapping[str, Any]) -> None:
        """What a serving benchmark sums up: requests answered and failed, and the mean time to the first token."""
        for name, figure in sums(value):
            self._requests.noted.add("metric", line, name=name, labels=None, value=figure)

    def _bench(self, line: int, value: Mapping[str, Any]) -> None:
        """vLLM's serving benchmark: parallel arrays, one request an index; times without a unit are seconds."""
        given, made, first, steps, starts = (
            entry if isinstance(entry := value.get(name), list) else []
            for name in ("input_lens", "output_lens", "ttfts", "itls", "start_times")
        )
        # start_times are of a monotonic clock; the file's date is the end of the run
        begun = [number(entry)[0] for entry in starts]
        known = [entry for entry in begun if entry is not None]
        date = value.get("date")
        parts = re.fullmatch(r"(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)", date) if isinstance(date, str) else None
        ended = stamp("{}-{}-{} {}:{}:{}".format(*parts.groups())) if parts else None
        lasted = number(value.get("duration"))[0]
        zero = ended - lasted - min(known) if ended is not None and lasted is not None and known else None
        ms = MEANING["latency_s"], MEANING["ttft_s"]
        for index in range(max(len(given), len(made))):
            ttft = number(_at(first, index))[0]
            gaps = _at(steps, index)
            rest = sum(number(gap)[0] or 0.0 for gap in gaps) if isinstance(gaps, list) else None
            found: Found = {"input": _at(given, index), "output": _at(made, index), "model": value.get("model_id")}
            found["input/"] = MEANING["input_len"]
            if ttft is not None:
                found["ttft"], found["ttft/"] = ttft, ms[1]
                if rest is not None:
                    found["latency"], found["latency/"] = ttft + rest, ms[0]
            at = _at(begun, index)
            self._requests.add(line, found, zero + at if zero is not None and at is not None else None, "input_lens")


def _at(values: Sequence[Any], index: int) -> Any:
    return values[index] if index < len(values) else None


def _spans(value: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Spans of an OTLP document."""
    for resource in value["resourceSpans"]:
        for scope in resource.get("scopeSpans") or () if isinstance(resource, dict) else ():
            for span in scope.get("spans") or () if isinstance(scope, dict) else ():
                if isinstance(span, dict):
                    yield span


# ---- CSV


@dataclass(frozen=True)
class _Sheet:
    """The header of a CSV log: its delimiter, and the name of each column."""

    delimiter: str
    names: tuple[str, ...]
    header: bytes


def _conversed(names: tuple[str, ...], meant: set[str]) -> tuple[str, ...]:
    """The names of the columns, that of the conversation's id under a name that says so."""
    whose = None if "tenant" in meant else conversation_of(names)
    return tuple("conversation_id" if name == whose else name for name in names)


def _sheet(line: bytes) -> _Sheet | None:
    """The header that a line is, if it names input and output tokens."""
    text = line[:8192].decode("utf-8", "replace").strip().lstrip("\ufeff")
    if text[:1] in "{[":  # a document that names its columns is no header
        return None
    for delimiter in (",", ";", "\t"):
        names = tuple(name.strip().strip('"') for name in text.split(delimiter))
        meant = {meaning.what for name in names if (meaning := MEANING[name])}
        if len(names) > 1 and {"input", "output"} <= meant:
            return _Sheet(delimiter, _conversed(names, meant), line.strip())
    return None


def _csv_row(sheet: _Sheet, requests: Requests, line: int, raw: bytes) -> None:
    text = raw.decode("utf-8", "replace").strip("\r\n")
    if not text.strip() or raw.strip() == sheet.header:
        return
    try:
        cells = next(csv.reader([text], delimiter=sheet.delimiter)) if '"' in text else text.split(sheet.delimiter)
    except (csv.Error, StopIteration):
        cells = []
    if len(cells) != len(sheet.names):
        requests.noted.problem(line, f"not {len(sheet.names)} cells as in the header", text)
        return
    found: Found = {}
    for name, cell in zip(sheet.names, cells, strict=True):
        meaning = MEANING[name]
        if meaning is not None:
            value = cell.strip()
            put(found, meaning, None if is_null(value.encode("utf-8", "replace")) else value)
    requests.add(line, found, None, text)


# ---- the source


class Reader:
    """The state of one source: its CSV header, the shapes that fitted, its requests so far; a document as it grows."""

    def __init__(self) -> None:
        self.requests = Requests()
        self.lines = _Lines(self.requests)
        self.sheet: _Sheet | None = None
        self.shapes: list[Shape] = []
        self.begun = False
        self.document = False
        self.held: list[bytes] = []
        self.held_bytes, self.held_line = 0, 1

    def chunk(self, chunk: Chunk) -> Iterator[Batch]:
        """Everything that a chunk holds; of a document nothing before its end."""
        if not self.begun and not self.document and chunk.data.strip() and _opens_document(chunk.data):
            self.document, self.held_line = True, chunk.first_line
        if self.document:
            self.held_bytes += len(chunk.data)
            if self.held_bytes <= _DOCUMENT_CAP:
                self.held.append(chunk.data)
            return
        data, first_line = chunk.whole()
        if data:
            yield from self._lines(data, first_line)

    def close(self) -> Iterator[Batch]:
        """What the end of the source completes."""
        if self.held_bytes > _DOCUMENT_CAP:
            why = f"a JSON document of {self.held_bytes} bytes is longer than is read"
            self.requests.noted.problem(self.held_line, why, "")
        elif self.document:
            yield from self._document(b"".join(self.held), self.held_line)
        yield from self.requests.noted.close()

    def _lines(self, data: bytes, first_line: int) -> Iterator[Batch]:
        """Everything that a run of whole lines holds."""
        if not self.begun and data.strip():
            self.begun = True
            lead = len(data) - len(data.lstrip())
            begin = data.rfind(b"\n", 0, lead) + 1
            stop = data.find(b"\n", lead) + 1 or len(data)
            self.sheet = _sheet(data[begin:stop])
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
            _csv_row(self.sheet, self.requests, line, raw)
        else:
            self.lines.line(line, raw)

    def _dense(self, data: bytes, first_line: int) -> Iterator[Batch]:
        """One shape after the other, each over the lines that those before left; what is left in the end, plainly."""
        numbers: list[int] | None = None  # physical line numbers of the lines in `data`, once some are gone
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


_NEXT_OBJECT = re.compile(r"[\s,]*\{")

KEPT = (Reader, _Lines, _Sheet, Requests, Bare, Shape)
"""What a reading is made of (`ingest.kept`)."""


_DOCUMENT = re.compile(rb'\s*(?:\[\s*(\{|\Z)|\{\s*(?:"|\Z))')


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

_SERVER_LINE = re.compile(r"(?:\([^)]*\) )*" + HEAD.pattern)
_BENCH = re.compile(rb'"(?:input_lens|output_lens)"\s*:\s*\[|"total_input_tokens"\s*:|"num_prompts"\s*:\s*\d')
_WORDS = (b"token", b"len", b"eval_count", b"evalcount")  # one of them is in every name of a count
_SHARE = 0.3  # of the lines are requests


_CLOCKS = re.compile(rb"(?:^|[,;\t])\"?\d\d:\d\d:\d\d(?:\.\d+)?\"?(?:$|[,;\t\r])")


def matches(head: Head) -> bool:
    """Request lines are three of ten lines, or there is a CSV header, or a benchmark's arrays."""
    raw = [line for line in head.data.split(b"\n")[:400] if line.strip()]
    text = head.data.lower()
    if not raw or not any(word in text for word in _WORDS):
        return False
    sheet = _sheet(raw[0])
    if sheet and len(raw) > 1 and _CLOCKS.search(raw[1]):
        return False  # clocks without a date are settled between columns, which `forms` does
    if sheet:
        requests = Requests()
        for number_, line in enumerate(raw[1:20], 1):
            _csv_row(sheet, requests, number_, line)
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
    pairs = _KV.findall(line)
    counts = {meaning.what for name, value in pairs if value[:1].isdigit() and (meaning := MEANING[name])}
    if not {"input", "output"} <= counts:
        return False
    words = [word for word in _KV.sub(" ", line).split() if len(word) > 1 and word.isalpha() and word.islower()]
    return len(words) <= len(pairs) + 2


def _is_request(value: Mapping[str, Any]) -> bool:
    if isinstance(value.get("resourceSpans"), list):
        return any(_is_request(span) for span in _spans(value))
    return {"input", "output"} <= collect(value, {}).keys()


def _is_json_line(line: bytes) -> bool:
    """A request as a JSON line, bare or in an envelope."""
    brace = line.find(b"{", 0, 200)
    value = loads(line[brace:].strip()) if brace >= 0 else None
    if not isinstance(value, dict):
        return False
    if _is_request(value):
        return True
    text = next((value[key] for key in _TEXT_KEYS if isinstance(value.get(key), str)), "")
    inner = loads(text)
    return _is_request(inner) if isinstance(inner, dict) else _is_pairs(text)
