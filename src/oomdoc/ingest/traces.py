"""Traces of requests: OpenTelemetry's JSON (OTLP, as collectors write it to files), Tempo's and Jaeger's answers.

    {"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "llm_request", "traceId": "..", "startTimeUnixNano": "1795205091000000000",
      "attributes": [{"key": "gen_ai.usage.prompt_tokens", "value": {"intValue": "7420"}}, ...]}]}]}]}
    {"batches": [...]}                                                                 (Tempo)
    {"data": [{"spans": [{"traceID": "..", "startTime": 1795205091000000, "duration": 8500000, "tags": [{"key", "value"}]}]}]}  (Jaeger)

A span with token counts is a request, by vLLM's attributes (vllm/tracing: `gen_ai.usage.prompt_tokens`, `gen_ai.latency.*` in seconds) or
by those of OpenTelemetry's conventions (`gen_ai.usage.input_tokens`). Times of OTLP are nanoseconds as text, of Jaeger microseconds.
A caller's span and the engine's own tell of one request twice: of spans with the same trace and the same counts the first stands.
Documents of any size and lines of documents are read span by span.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Head
from oomdoc.ingest.json_pieces import ITEM, BrokenError, pieces
from oomdoc.ingest.request_keys import MEANING, Found, Requests, put
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

KIND = "traces"

_FLUSH_ROWS = 20_000
_SEEN = 500_000
_OTLP = regex(rb'"(?:resourceSpans|batches)"\s*:\s*\[|"(?:scopeSpans|instrumentationLibrarySpans)"\s*:\s*\[\s*\{')
_JAEGER = regex(
    rb'"traceID"\s*:\s*"[^"]*"[^\[]{0,200}(?:"spans"\s*:\s*\[|"operationName"\s*:)|"operationName"\s*:.{0,4000}?"tags"\s*:\s*\[',
    re.S,
)
_MODELS = ("gen_ai.request.model", "gen_ai.response.model")


def matches(head: Head) -> bool:
    """JSON with spans of OTLP or Jaeger."""
    begin = head.data.lstrip(b"\xef\xbb\xbf \t\r\n")
    if begin[:1] not in (b"{", b"["):
        return False
    found = _OTLP.search(head.data)
    return bool(
        (found and (b"pans" in head.data[found.end() :] or b'"resource"' in head.data)) or _JAEGER.search(head.data)
    )


class _Spans:
    """Requests out of spans; `told` counts the spans."""

    def __init__(self) -> None:
        self.requests = Requests()
        self.told = 0
        self._seen: set[tuple[str, Any, Any]] = set()

    def span(self, line: int, span: Any) -> None:
        """One span of OTLP or Jaeger."""
        if not isinstance(span, dict):
            return
        self.told += 1
        pairs = span.get("attributes") if isinstance(span.get("attributes"), list) else span.get("tags")
        attributes = _attributes(pairs if isinstance(pairs, list) else [])
        found: Found = {}
        for name, value in attributes.items():
            meaning = MEANING[name]
            if meaning is not None and meaning.what not in ("start", "stamp", "end", "status"):
                put(found, meaning, value)
        if "input" not in found and "output" not in found:
            return
        for name in ("http.response.status_code", "http.status_code"):
            if name in attributes:
                put(found, MEANING["status"], attributes[name])  # type: ignore[arg-type]
        found["model"] = next((attributes[name] for name in _MODELS if attributes.get(name)), found.get("model"))
        found["start"] = span.get("startTimeUnixNano", span.get("start_time_unix_nano", span.get("startTime")))
        found["end"] = span.get("endTimeUnixNano", span.get("end_time_unix_nano"))
        if "duration" in span and "latency" not in found:  # of Jaeger
            found["latency"], found["latency/"] = span["duration"], MEANING["latency_us"]
        trace = str(span.get("traceId") or span.get("traceID") or "")
        key = (trace, str(found.get("input")), str(found.get("output")))
        if trace and key in self._seen:
            return
        if len(self._seen) < _SEEN:
            self._seen.add(key)
        self.requests.add(line, found, None, str(span.get("name") or span.get("operationName") or "span")[:200])


def _attributes(pairs: Iterable[Any]) -> dict[str, Any]:
    """Attributes by name; OTLP wraps a value in its type, and writes 64-bit numbers as text."""
    found = {}
    for pair in pairs:
        if isinstance(pair, dict) and isinstance(pair.get("key"), str):
            value = pair.get("value")
            if isinstance(value, dict):
                value = next(iter(value.values()), None)
            if isinstance(value, (str, int, float, bool)):
                found[pair["key"]] = value
    return found


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """Rows of `request`."""
    spans = _Spans()
    try:
        for piece in pieces(chunks, lambda way: way[-2:] == ("spans", ITEM) or len(way) > 40):
            if piece.path[-2:] == ("spans", ITEM):
                spans.span(piece.line, piece.value)
                if len(spans.requests.rows) >= _FLUSH_ROWS:
                    yield from spans.requests.take()
    except BrokenError as problem:
        spans.requests.noted.problem(problem.line, f"a trace: {problem}", "")
    if not spans.told:
        spans.requests.noted.problem(1, "a trace without a span", "")
    yield from spans.requests.take()
    yield from spans.requests.noted.close()
