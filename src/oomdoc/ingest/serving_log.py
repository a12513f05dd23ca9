"""Logs of other servers that name their requests: TGI's router and SGLang with `--log-requests`.

    2026-11-20T20:04:51.123Z  INFO generate{parameters=GenerateParameters { .., max_new_tokens: Some(100), .. } total_time="1.25s"
      validation_time="300µs" queue_time="50µs" inference_time="985.66ms" time_per_token="49.283ms" seed="None"}: ...: Success
    {"timestamp": "..", "message": "Success", "span": {"name": "generate", "total_time": "1.25s", ...}}
    [2026-11-20 20:04:51] Finish: obj=GenerateReqInput(..), out={'text': '..', 'meta_info': {.., 'prompt_tokens': 7420,
      'completion_tokens': 312, 'cached_tokens': 0, 'e2e_latency': 8.5}}

TGI prints no counts: the generated tokens are inference time / time per token, which gives the whole number exactly; the prompt's
stay unknown. Its first token comes when the queue is over and a token is made. What its router turns away (`Model is overloaded`) is a request with status 429. The stamp of both is the end of the request. In SGLang's line the last `meta_info` counts, for prompts and answers before it
may hold anything. Other statements of these logs are found by the patterns of all dialects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Head
from oomdoc.ingest.json_pieces import loads
from oomdoc.ingest.record import peel
from oomdoc.ingest.request_keys import MEANING, Found, Requests, number, put
from oomdoc.intake.cells import stamp
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

KIND = "serving-log"

_LINE_CAP = 64 << 10
_TGI = regex(
    r"\b(?:generate|generate_stream|compat_generate|chat_completions|completions)\{.{0,8000}?\btime_per_token=\"[^\"]*\".{0,200}?\}: .*\bSuccess\s*$"
)
_TGI_FIELD = regex(r"\b(total_time|queue_time|inference_time|time_per_token)=\"([^\"]{1,40})\"")
_TURNED_AWAY = regex(r"\bERROR\b.{0,2000}\bModel is overloaded\b")
_STAMPED = regex(r"\"timestamp\": ?\"(?P<stamp>[^\"]{10,40})\"")
_LIMIT = regex(r"\bmax_new_tokens: (?:Some\()?(\d{1,9})")
_SGLANG = regex(r"\bFinish: obj=")
_META = regex(r"'(prompt_tokens|completion_tokens|cached_tokens|e2e_latency)': (\d{1,12}(?:\.\d{1,12})?)[,}]")


def matches(head: Head) -> bool:
    """A fifth of the lines, and at least one, is a request of these servers."""
    if b"time_per_token" not in head.data and b"Finish: obj=" not in head.data:
        return False
    lines = [line for line in head.data.decode("utf-8", "replace").split("\n")[:400] if line.strip()]
    return 5 * sum(1 for line in lines if _found(line)) >= len(lines) > 0


def _found(raw: str) -> Found | None:
    """A request by meaning, if the line tells of one."""
    line = raw[:_LINE_CAP] if "Finish: obj=" not in raw[:400] else raw[:200] + raw[-2000:]
    text, outer, _ = peel(line) if line.lstrip()[:1] != "{" else (line, None, None)
    end = outer if outer is not None else stamp(text[:80])
    if _TGI.search(text):
        return _tgi(dict(_TGI_FIELD.findall(text)), text, end)
    if _TURNED_AWAY.search(text):
        at = _STAMPED.search(text)
        return {"status": 429, "output": 0, "end": stamp(at["stamp"]) if at else end}
    if text.lstrip()[:1] == "{" and '"time_per_token"' in text:
        value = loads(text)
        span = value.get("span") if isinstance(value, dict) else None
        if isinstance(span, dict) and str(value.get("message", "")).endswith("Success"):
            fields = {name: str(cell) for name, cell in span.items()}
            return _tgi(fields, str(span.get("parameters", "")), stamp(str(value.get("timestamp", ""))[:80]))
        return None
    if _SGLANG.search(text):
        return _sglang(text, end)
    return None


def _tgi(fields: Mapping[str, str], text: str, end: float | None) -> Found | None:
    spent, each = _seconds(fields.get("inference_time")), _seconds(fields.get("time_per_token"))
    if not spent or not each:
        return None
    found: Found = {"output": round(spent / each), "end": end}
    limit = _LIMIT.search(text)
    if limit:
        found["limit"] = int(limit[1])
    total, queued = _seconds(fields.get("total_time")), _seconds(fields.get("queue_time"))
    if total is not None:
        found["latency"], found["latency/"] = total, MEANING["latency_s"]
    if queued is not None:
        found["ttft"], found["ttft/"] = queued + each, MEANING["ttft_s"]
    return found


def _sglang(text: str, end: float | None) -> Found | None:
    at = text.rfind("'meta_info': {")
    if at < 0:
        return None
    found: Found = {"end": end}
    for name, value in _META.findall(text, at):
        meaning = MEANING[name] if name != "e2e_latency" else MEANING["latency_s"]
        if meaning is not None:
            put(found, meaning, float(value))
    return found if "input" in found or "output" in found else None


def _seconds(text: Any) -> float | None:
    """Seconds of `985.66ms`, as Rust prints a duration."""
    value, divisor = number(text)
    return value / divisor if value is not None and divisor else None


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """Rows of `request`; other lines are left to the patterns."""
    requests = Requests()
    for chunk in chunks:
        for at, raw in enumerate(chunk.data.split(b"\n"), chunk.first_line):
            if b"time_per_token" not in raw and b"Finish: obj=" not in raw and b"Model is overloaded" not in raw:
                continue
            if at == chunk.first_line and not chunk.at_line_start:
                continue
            found = _found(raw.decode("utf-8", "replace"))
            if found is not None:
                end, latency = found.pop("end", None), found.get("latency")
                t = end - latency if end is not None and latency is not None else end
                requests.add(at, found, t, "a request of another server")
        yield from requests.take()
    yield from requests.noted.close()
