"""Results of GuideLLM: every request of every group."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoc.ingest import guidellm, make_head, recognise
from oomdoc.intake.scan import chunks

T = 1_795_205_092.0


def request(**more: Any) -> dict[str, Any]:
    return {
        "request_id": "a", "request_type": "chat_completions", "prompt_tokens": 512, "output_tokens": 128, "start_time": T,
        "end_time": T + 5, "request_latency": 5.0, "time_to_first_token_ms": 1250.0, "prompt": "x", "output": "y", **more,
    }  # fmt: skip


def report(successful: Any = (), incomplete: Any = (), errored: Any = ()) -> dict[str, Any]:
    requests = {"successful": list(successful), "incomplete": list(incomplete), "errored": list(errored), "total": None}
    return {
        "metadata": {"version": 1, "guidellm_version": "0.3.0"}, "args": {"model": "acme/m-7b"},
        "benchmarks": [{"type_": "generative_benchmark", "start_time": T, "requests": requests, "metrics": {"prompt_tokens": {"mean": 512.0}}}],
    }  # fmt: skip


def read(value: Any, size: int = 1 << 20) -> dict[str, list[dict[str, Any]]]:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    tables: dict[str, list[dict[str, Any]]] = {}
    for batch in guidellm.read("any", chunks(io.BytesIO(data), size)):
        for row in zip(*batch.columns.values(), strict=True):
            told = {name: cell for name, cell in zip(batch.columns, row, strict=True) if cell is not None}
            tables.setdefault(batch.table, []).append(told)
    return tables


@pytest.mark.parametrize("size", [1 << 20, 64])
def test_requests_of_all_groups(size: int) -> None:
    value = report(
        [request()], [request(output_tokens=7, request_latency=None)], [request(output_tokens=None, error="gone")]
    )
    first, cut, failed = read(value, size)["request"]
    assert first == {
        "line": 1, "t": T, "input_tokens": 512, "output_tokens": 128, "latency_s": 5.0, "ttft_s": 1.25, "model": "acme/m-7b"}  # fmt: skip
    assert (cut["output_tokens"], cut["latency_s"]) == (7, 5.0)
    assert failed["status"] == 0
    assert "output_tokens" not in failed
    assert recognise(make_head("any", json.dumps(value, indent=2).encode()))[1] == "guidellm"


def test_newer_files_keep_times_and_counts_apart() -> None:
    newer = {
        "request_id": "a", "input_metrics": {"text_tokens": 640}, "output_metrics": {"total_tokens": 32},
        "info": {"timings": {"request_start": T, "first_iteration": T + 0.5, "request_end": T + 4}},
    }  # fmt: skip
    (row,) = read(report([newer]))["request"]
    assert (row["input_tokens"], row["output_tokens"], row["t"], row["latency_s"], row["ttft_s"]) == (
        640,
        32,
        T,
        4.0,
        0.5,
    )


def test_summaries_alone_are_a_problem() -> None:
    assert set(read(report())) == {"problem"}
    tables = read(json.dumps(report([request(), request()])).encode()[:-900])
    assert "problem" in tables


@pytest.mark.parametrize(
    "text", ['{"benchmarks": [{"name": "mmlu", "score": 0.5}]}', '{"successful": 5}', "guidellm benchmarks"]
)
def test_near_miss(text: str) -> None:
    assert not guidellm.matches(make_head("any", text.encode()))


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([*request(), "info", "input_metrics", "timings"]),
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(max_size=3)
        | st.dictionaries(st.just("timings"), st.integers()),
    ),
    st.integers(0, 200),
)
def test_any_values_never_raise(value: dict[str, Any], cut: int) -> None:
    data = json.dumps(report([value, 3, None], [value])).encode()
    read(data)
    read(data[: max(0, len(data) - cut)])
