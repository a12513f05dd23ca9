"""Spans of OpenTelemetry and Jaeger: a request each, once, whatever the document is wrapped in."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoc.ingest import make_head, recognise, traces
from oomdoc.intake.scan import chunks

NS = 1_795_205_091_000_000_000


def attribute(key: str, value: Any) -> dict[str, Any]:
    kind = {int: "intValue", float: "doubleValue", bool: "boolValue"}.get(type(value), "stringValue")
    return {"key": key, "value": {kind: str(value) if kind == "intValue" else value}}


def span(trace: str, given_tokens: int = 7420, made: int = 312, **more: Any) -> dict[str, Any]:
    told = {
        "gen_ai.response.model": "acme/m-7b", "gen_ai.request.id": "cmpl-1", "gen_ai.request.max_tokens": 512,
        "gen_ai.usage.prompt_tokens": given_tokens, "gen_ai.usage.completion_tokens": made,
        "gen_ai.latency.time_in_queue": 0.25, "gen_ai.latency.time_to_first_token": 1.5, "gen_ai.latency.e2e": 8.5, **more,
    }  # fmt: skip
    return {
        "traceId": trace, "spanId": "01", "name": "llm_request", "startTimeUnixNano": str(NS), "endTimeUnixNano": str(NS + 8_500_000_000),
        "attributes": [attribute(key, value) for key, value in told.items()], "status": {},
    }  # fmt: skip


def document(*spans: dict[str, Any], top: str = "resourceSpans", scope: str = "scopeSpans") -> dict[str, Any]:
    return {
        top: [
            {
                "resource": {"attributes": [attribute("service.name", "chat")]},
                scope: [{"scope": {}, "spans": list(spans)}],
            }
        ]
    }


def read(value: Any, size: int = 1 << 20) -> dict[str, list[dict[str, Any]]]:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    tables: dict[str, list[dict[str, Any]]] = {}
    for batch in traces.read("any", chunks(io.BytesIO(data), size)):
        for row in zip(*batch.columns.values(), strict=True):
            told = {name: cell for name, cell in zip(batch.columns, row, strict=True) if cell is not None}
            tables.setdefault(batch.table, []).append(told)
    return tables


ROW = {
    "line": 1, "t": 1_795_205_091.0, "input_tokens": 7420, "output_tokens": 312, "max_tokens": 512, "latency_s": 8.5, "ttft_s": 1.5,
    "model": "acme/m-7b",
}  # fmt: skip


@pytest.mark.parametrize("size", [1 << 20, 40])
def test_spans_of_the_engine(size: int) -> None:
    other = {"traceId": "a", "name": "GET /health", "startTimeUnixNano": str(NS), "attributes": []}
    assert read(document(other, span("a")), size) == {"request": [ROW]}
    assert read(document(span("a"), top="batches"), size) == {"request": [ROW]}
    assert read(document(span("a"), scope="instrumentationLibrarySpans"), size) == {"request": [ROW]}


def test_lines_and_documents() -> None:
    lines = "\n".join(json.dumps(document(span(trace))) for trace in "abc").encode()
    assert [row["line"] for row in read(lines)["request"]] == [1, 2, 3]
    spread = json.dumps(document(span("a"), span("b")), indent=2)
    found = read(spread.encode())["request"]
    begins = [at for at, line in enumerate(spread.split("\n"), 1) if '"traceId"' in line]
    assert [row["line"] + 1 for row in found] == begins
    for data in (lines, spread.encode()):
        assert recognise(make_head("any", data))[1] == "traces"


def test_a_caller_and_the_engine_tell_of_one_request() -> None:
    caller = span("a")
    caller["attributes"] = [
        attribute("gen_ai.usage.input_tokens", 7420), attribute("gen_ai.usage.output_tokens", 312),
        attribute("gen_ai.operation.name", "chat"), attribute("http.response.status_code", 200),
    ]  # fmt: skip
    assert len(read(document(span("a"), caller))["request"]) == 1
    assert len(read(document(span("a"), span("b")))["request"]) == 2
    assert len(read(document(span("a"), span("a", made=5)))["request"]) == 2
    (row,) = read(document(caller))["request"]
    assert (row["status"], row["input_tokens"], row["latency_s"]) == (200, 7420, 8.5)


def test_jaeger_counts_microseconds() -> None:
    jaeger = {"data": [{"traceID": "a", "spans": [{
        "traceID": "a", "operationName": "llm_request", "startTime": NS // 1000, "duration": 8_500_000,
        "tags": [{"key": "gen_ai.usage.prompt_tokens", "type": "int64", "value": 7420},
                 {"key": "gen_ai.usage.completion_tokens", "type": "int64", "value": 312}],
    }]}]}  # fmt: skip
    assert recognise(make_head("any", json.dumps(jaeger).encode()))[1] == "traces"
    assert read(jaeger)["request"] == [
        {"line": 1, "t": 1_795_205_091.0, "input_tokens": 7420, "output_tokens": 312, "latency_s": 8.5}]  # fmt: skip


def test_what_is_not_told_is_null_and_not_zero() -> None:
    bare = {"name": "x", "attributes": [attribute("gen_ai.usage.input_tokens", 5)], "startTimeUnixNano": "0"}
    assert read(document(bare)) == {"request": [{"line": 1, "input_tokens": 5}]}
    wrong = {
        "name": "x",
        "attributes": [attribute("gen_ai.usage.input_tokens", "many"), attribute("gen_ai.usage.output_tokens", 3)],
    }
    tables = read(document(wrong))
    assert tables["request"] == [{"line": 1, "output_tokens": 3}]
    assert tables["problem"][0]["reason"] == "input tokens are not a number"


def test_cut_and_empty_exports_are_problems() -> None:
    data = json.dumps(document(span("a"), span("b"))).encode()
    tables = read(data[:-300])
    assert len(tables["request"]) == 1
    assert "problem" in tables
    assert "problem" in read({"resourceSpans": []})


@pytest.mark.parametrize(
    "text",
    [
        '{"batches": 3, "loss": 0.1}',
        '{"usage": {"prompt_tokens": 5}}',
        "spans resourceSpans [",
        '{"data": [{"traceID": "x"}]}',
    ],
)
def test_near_miss(text: str) -> None:
    assert not traces.matches(make_head("any", text.encode()))


@settings(max_examples=80, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["attributes", "tags", "key", "value", "intValue", "traceId", "startTime", "duration", "name"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=10,
    ),
    st.integers(0, 30),
)
def test_any_span_never_raises(value: Any, cut: int) -> None:
    data = json.dumps(
        document(value, {"attributes": value}, {"attributes": [{"key": "gen_ai.usage.input_tokens", "value": value}]})
    ).encode()
    read(data)
    read(data[: max(0, len(data) - cut)])
