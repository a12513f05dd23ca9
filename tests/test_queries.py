"""What stores answer who ask them for logs and figures."""

from __future__ import annotations

import json
from typing import Any

import pytest

from forms import read
from oomdoc.intake.queries import lines_of

TIMES = [f"2026-05-01T07:0{m}:11.000Z" for m in range(4)]
LINES = [
    f"INFO 05-01 07:0{m}:11 [loggers.py:123] Engine 000: Avg prompt throughput: 90.0 tokens/s, Avg generation throughput: 70.0 tokens/s, "
    f"Running: {3 + m} reqs, Waiting: {m} reqs, GPU KV cache usage: {40 + m}.0%, Prefix cache hit rate: 0.0%"
    for m in range(4)
]
HITS = [
    {"_source": {"@timestamp": t, "message": line, "kubernetes": {"pod": {"name": "chat-0"}}}}
    for t, line in zip(TIMES, LINES, strict=True)
]
FIELDS = [{"fields": {"@timestamp": [t], "message": [line]}} for t, line in zip(TIMES, LINES, strict=True)]
FRAME = {
    "schema": {"fields": [{"name": "Time", "type": "time"}, {"name": "Line", "type": "string"}]},
    "data": {"values": [[1777619000000 + m * 60000 for m in range(4)], LINES]},
}


def stats(value: Any, indent: int | None) -> list[tuple[int, int, float]]:
    rows = read("answer.json", json.dumps(value, indent=indent).encode())[1].get("engine_stat", [])
    assert [row["t"] for row in rows] == sorted(row["t"] for row in rows)
    return [(row["running"], row["waiting"], round(row["kv_used"], 3)) for row in rows]


EXPECTED = [(3 + m, m, round(0.4 + m / 100, 3)) for m in range(4)]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    "value",
    [
        {"took": 3, "hits": {"total": {"value": 4}, "hits": HITS[::-1]}},
        {"rawResponse": {"hits": {"hits": HITS}}},
        {"hits": {"hits": FIELDS[::-1]}},
        {"results": {"A": {"status": 200, "frames": [FRAME]}}},
    ],
)
def test_lines_of_a_log_stand_in_their_order(value: Any, indent: int | None) -> None:
    assert stats(value, indent) == EXPECTED


BUCKETS = [
    {
        "key_as_string": t,
        "key": m,
        "doc_count": 60,
        "running": {"value": 3.0 + m},
        "waiting": {"value": float(m)},
        "kv_usage": {"value": 0.4 + m / 100},
    }
    for m, t in enumerate(TIMES)
]


@pytest.mark.parametrize(
    "value",
    [
        {"took": 9, "aggregations": {"per_minute": {"buckets": BUCKETS}}},
        {"aggregations": {"pods": {"buckets": [{"key": "chat-0", "doc_count": 9, "m": {"buckets": BUCKETS}}]}}},
        {"aggregations": {"per_minute": {"buckets": {str(m): bucket for m, bucket in enumerate(BUCKETS)}}}},
        {
            "columns": [{"name": name} for name in ("@timestamp", "running", "waiting", "kv_cache_usage")],
            "values": [[t, 3 + m, m, 0.4 + m / 100] for m, t in enumerate(TIMES)],
        },
        {
            "schema": [{"name": name} for name in ("@timestamp", "running", "waiting", "kv_cache_usage")],
            "datarows": [[t, 3 + m, m, 0.4 + m / 100] for m, t in enumerate(TIMES)],
        },
    ],
)
def test_figures_of_buckets_and_rows_are_the_engines(value: Any) -> None:
    assert stats(value, 1) == EXPECTED


def test_documents_of_requests_stay_requests() -> None:
    hits = [{"_source": {"@timestamp": t, "message": "POST /v1/completions 200", "usage": {"prompt_tokens": 70 + m, "completion_tokens": 9}}} for m, t in enumerate(TIMES)]  # fmt: skip
    rows = read("answer.json", json.dumps({"hits": {"hits": hits}}, indent=1).encode())[1]["request"]
    assert [row["input_tokens"] for row in rows] == [70, 71, 72, 73]


SEEDS = [
    {"hits": {"hits": HITS}},
    {"aggregations": {"m": {"buckets": BUCKETS}}},
    {"results": {"A": {"frames": [FRAME]}}},
    {"columns": [{"name": "t"}, {"name": "n"}], "values": [["a", 1]]},
]


def holes(value: Any) -> Any:
    """The same document with each of its parts in turn replaced by something else."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            for other in (None, 7, "x", [], {}, [None], {"a": 1}):
                copy = value.copy()
                copy[key] = other
                yield copy
            for inner in holes(value[key]):
                copy = value.copy()
                copy[key] = inner
                yield copy


@pytest.mark.parametrize("seed", SEEDS)
def test_no_document_is_an_exception(seed: Any) -> None:
    for each in holes(seed):
        lines = lines_of(json.dumps(each))
        assert lines is None or lines.endswith("\n")


@pytest.mark.parametrize("text", ['{"aggregations": {"a": {"buckets": [1, {"x"', '{"hits": {"hits": []}}', '{"columns": [{"name": 1}], "rows": [[2]]}'])  # fmt: skip
def test_what_is_cut_or_empty_stays_as_it_is(text: str) -> None:
    assert "engine_stat" not in read("answer.json", text.encode())[1]
