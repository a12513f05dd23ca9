"""GuideLLM's `benchmarks.json`: every request of a load test, with its tokens and times.

    {"metadata": {...}, "benchmarks": [{"config": {...}, "requests": {
      "successful": [{"request_id": "..", "prompt_tokens": 512, "output_tokens": 128, "start_time": 1795205092.0, "end_time": 1795205097.0,
                      "request_latency": 5.0, "time_to_first_token_ms": 1000.0, "first_token_time": ...}, ...],
      "incomplete": [...], "errored": [...]}}]}

Times are epoch seconds, latency is seconds, time to first token milliseconds (guidellm 0.1 to 0.3, `GenerativeBenchmark`). Newer files
keep what was measured under `info.timings` and `input_metrics`/`output_metrics`. Requests that the test cut off at its end
(`incomplete`) count as well: they held memory. Requests that failed have status 0: no answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Head
from oomdoc.ingest.json_pieces import ITEM, BrokenError, Path, mapping, pieces
from oomdoc.ingest.request_keys import MEANING, Found, Requests
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

KIND = "guidellm"

_GROUPS = ("successful", "incomplete", "errored")
_BEGIN = regex(rb'"benchmarks"\s*:\s*\[')
_MARK = regex(rb"guidellm|generative_benchmark|\"(?:successful|incomplete|errored)\"\s*:|\"requests_per_second\"", re.I)


def matches(head: Head) -> bool:
    """A document with a list of benchmarks and GuideLLM's own words."""
    return (
        head.data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{"
        and (_BEGIN.search(head.data) is not None or b'"guidellm_version"' in head.data)
        and _MARK.search(head.data) is not None
    )


def _wanted(path: Path) -> bool:
    return path[-3:-2] == ("requests",) and path[-2] in _GROUPS and path[-1] == ITEM


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """Rows of `request`."""
    requests = Requests()
    model: str | None = None
    count = 0
    try:
        for piece in pieces(chunks, _wanted):
            if _wanted(piece.path) and isinstance(piece.value, dict):
                count += 1
                requests.add(piece.line, _found(piece.value, piece.path[-2], model), None, "a request of a benchmark")
            elif piece.path[-1:] == ("model",) and isinstance(piece.value, str):
                model = piece.value
            if len(requests.rows) >= 20_000:
                yield from requests.take()
    except BrokenError as problem:
        requests.noted.problem(problem.line, f"results of GuideLLM: {problem}", "")
    if not count:
        requests.noted.problem(1, "results of GuideLLM without single requests", "")
    yield from requests.take()
    yield from requests.noted.close()


def _found(request: Mapping[str, Any], group: str, model: str | None) -> Found:
    """Values by meaning; where a count is not there the request still is one, its size unknown."""
    timings = mapping(mapping(request.get("info")).get("timings")) or mapping(
        mapping(request.get("scheduler_info")).get("request_timings")
    )
    given, made = mapping(request.get("input_metrics")), mapping(request.get("output_metrics"))
    found: Found = {
        "input": _first(request.get("prompt_tokens"), given.get("total_tokens"), given.get("text_tokens")),
        "output": _first(request.get("output_tokens"), made.get("total_tokens"), made.get("text_tokens")),
        "input/": MEANING["prompt_tokens"],
        "start": _first(request.get("start_time"), request.get("request_start_time"), timings.get("request_start")),
        "end": _first(request.get("end_time"), request.get("request_end_time"), timings.get("request_end")),
        "first": _first(
            request.get("first_token_time"), timings.get("first_iteration"), timings.get("first_token_iteration")
        ),
        "model": model,
    }
    latency, ttft = request.get("request_latency"), request.get("time_to_first_token_ms")
    if latency is not None:
        found["latency"], found["latency/"] = latency, MEANING["latency_s"]
    if ttft is not None:
        found["ttft"], found["ttft/"] = ttft, MEANING["ttft_ms"]
    if group == "errored":
        found["status"] = 0
    return {name: value for name, value in found.items() if value is not None or name in ("input", "output")}


def _first(*values: Any) -> Any:
    return next((value for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)), None)
