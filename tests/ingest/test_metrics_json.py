"""Metrics as JSON: answers of the query API and Grafana's frames say what the text of a scrape says."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forms
import oomdoc
from oomdoc.ingest import make_head, metrics_json, recognise
from oomdoc.intake.scan import chunks

T = 1_795_205_091


def read(value: Any, size: int = 1 << 20) -> dict[str, list[dict[str, Any]]]:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    tables: dict[str, list[dict[str, Any]]] = {}
    for batch in metrics_json.read("any", chunks(io.BytesIO(data), size)):
        for row in zip(*batch.columns.values(), strict=True):
            tables.setdefault(batch.table, []).append(dict(zip(batch.columns, row, strict=True)))
    return tables


def series(name: str | None, values: list[float], start: int = T, **labels: str) -> dict[str, Any]:
    metric = {**({"__name__": name} if name else {}), **labels}
    return {"metric": metric, "values": [[start + 15 * at, str(value)] for at, value in enumerate(values)]}


def answer(*found: dict[str, Any]) -> dict[str, Any]:
    return {"status": "success", "data": {"resultType": "matrix", "result": list(found)}}


USAGE = series("vllm:kv_cache_usage_perc", [0.4, 0.97], engine="0", model_name='a "b"')
INSTANT = {"metric": {"__name__": "vllm:num_requests_waiting"}, "value": [T + 0.5, "12"]}


def told(tables: dict[str, list[dict[str, Any]]]) -> list[tuple[Any, ...]]:
    return [(row["name"], row["t"], row["labels"], row["value"]) for row in tables["metric"]]


EXPECTED = [
    ("vllm:kv_cache_usage_perc", float(T), 'engine="0",model_name="a \\"b\\""', 0.4),
    ("vllm:kv_cache_usage_perc", float(T + 15), 'engine="0",model_name="a \\"b\\""', 0.97),
    ("vllm:num_requests_waiting", T + 0.5, None, 12.0),
]


@pytest.mark.parametrize(
    "value",
    [
        answer(USAGE, INSTANT),
        [USAGE, INSTANT],
        [answer(USAGE), answer(INSTANT)],
        {"kv": answer(USAGE), "waiting": answer(INSTANT)},
        (json.dumps(answer(USAGE)) + "\n" + json.dumps(answer(INSTANT)) + "\n").encode(),
        json.dumps(answer(USAGE, INSTANT), indent=2).encode(),
    ],
)
@pytest.mark.parametrize("size", [1 << 20, 50])
def test_answers_in_every_wrapping(value: Any, size: int) -> None:
    assert told(read(value, size)) == EXPECTED
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    assert recognise(make_head("any", data))[1] == "metrics-json"


def test_what_says_nothing_is_left_out() -> None:
    noise = [
        series("vllm:request_prompt_tokens_bucket", [1.0], le="8"), series("vllm:num_preemptions_created", [1.79e9]),
        series("up", [1.0]), series("vllm:num_requests_running", [float("nan")]), series("nvidia_smi_fan_speed_ratio", [0.3]),
    ]  # fmt: skip
    tables = read(answer(*noise, INSTANT))
    assert told(tables) == EXPECTED[2:]
    assert "problem" not in tables


def test_an_expression_without_a_name_is_a_problem() -> None:
    tables = read(answer(series(None, [3.0], engine="0")))
    assert "metric" not in tables
    assert tables["problem"][0]["reason"].startswith("a series without a name")
    failed = read(
        {
            "status": "error",
            "errorType": "timeout",
            "error": "query timed out",
            "data": {"resultType": "matrix", "result": []},
        }
    )
    assert failed["problem"][0]["text"] == "query timed out"


def test_the_cache_configuration_and_devices() -> None:
    config = series("vllm:cache_config_info", [1.0, 1.0], num_gpu_blocks="1408", block_size="16", num_cpu_blocks="None")
    used = series("DCGM_FI_DEV_FB_USED", [70_000.0, 80_000.0], gpu="0", modelName="NVIDIA L40S")
    free = series("DCGM_FI_DEV_FB_FREE", [11_000.0, 1_000.0], gpu="0", modelName="NVIDIA L40S")
    tables = read(answer(config, used, free))
    assert {(row["flag"], row["value"]) for row in tables["engine_flag"]} == {
        ("num_gpu_blocks", "1408"),
        ("block_size", "16"),
    }
    samples = [(row["t"], row["used_bytes"] >> 20, row["total_bytes"] >> 20) for row in tables["gpu_sample"]]
    assert samples == [(T, 70_000, 81_000), (T + 15, 80_000, 81_000)]
    assert [row["name"] for row in tables["gpu_device"]] == ["NVIDIA L40S"]


def test_frames_of_grafana() -> None:
    def frame(field: dict[str, Any], values: list[Any]) -> dict[str, Any]:
        return {
            "schema": {"fields": [{"name": "Time", "type": "time"}, field]},
            "data": {"values": [[T * 1000, (T + 15) * 1000], values]},
        }

    labelled = frame({"name": "Value", "labels": {"__name__": "vllm:kv_cache_usage_perc", "engine": "0"}}, [0.5, None])
    shown = frame(
        {
            "name": "Value",
            "config": {"displayNameFromDS": 'vllm:num_requests_running{engine="0"}'},
            "labels": {"engine": "0"},
        },
        [3, 4],
    )
    nameless = frame({"name": "Value", "config": {"displayNameFromDS": "KV usage"}}, [1, 2])
    value = {"results": {"A": {"status": 200, "frames": [labelled, shown]}, "B": {"frames": [nameless]}}}
    tables = read(value)
    assert told(tables) == [
        ("vllm:kv_cache_usage_perc", float(T), 'engine="0"', 0.5),
        ("vllm:num_requests_running", float(T), 'engine="0"', 3.0),
        ("vllm:num_requests_running", float(T + 15), 'engine="0"', 4.0),
    ]
    assert [row["text"] for row in tables["problem"]] == ["KV usage"]
    assert metrics_json.matches(make_head("any", json.dumps(value).encode()))


@pytest.mark.parametrize(
    "text", ['{"result": [1], "resultType": "table"}', '{"metric": {"name": "x"}}', "vllm:kv_cache_usage_perc 0.4"]
)
def test_near_miss(text: str) -> None:
    assert not metrics_json.matches(make_head("any", text.encode()))


def test_an_export_of_pressure_is_diagnosed_like_a_scrape(tmp_path: Any) -> None:
    full = series("vllm:kv_cache_usage_perc", [0.5, 0.97, 0.99, 0.99, 1.0, 1.0], engine="0")
    waiting = series("vllm:num_requests_waiting", [0, 9, 20, 31, 40, 44], engine="0")
    preempted = series("vllm:num_preemptions_total", [0, 3, 9, 20, 44, 61], engine="0")
    (tmp_path / "export.json").write_text(json.dumps(answer(full, waiting, preempted)))
    with oomdoc.analyze(tmp_path) as analysis:
        _, rows = analysis.sql("SELECT samples, peak, waiting_max, preemptions FROM kv_pressure")
        report = analysis.to_dict()
    assert rows == [(6, 1.0, 44, 61)]
    assert report["diagnoses"][0]["cause"] == "kv-demand-exceeds-pool"


def test_a_cut_export_keeps_what_came_before() -> None:
    data = json.dumps(answer(USAGE, INSTANT)).encode()
    tables = read(data[: data.index(b"waiting")])
    assert told(tables) == EXPECTED[:2]
    assert "problem" in tables


@settings(max_examples=80, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("vllm:x"),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["metric", "values", "value", "__name__", "schema", "data", "fields", "labels"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    ),
    st.integers(0, 30),
)
def test_any_values_under_these_keys_never_raise(value: Any, cut: int) -> None:
    data = json.dumps({"data": {"resultType": "matrix", "result": [value]}, "frames": [value]}).encode()
    read(data)
    read(data[: max(0, len(data) - cut)])


SERIES = '{"metric": {"pod": "a-0"}, "values": [[1795205091, "3"], [1795205106, "4"]]}'


@pytest.mark.parametrize(
    "text",
    [
        '{"vllm:num_requests_waiting": {"status": "success", "data": {"resultType": "matrix", "result": [%s]}}}',
        '{"status": "success", "queries": {"vllm:num_requests_waiting": [%s]}}',
        '{"answers": [{"query": "sum by (pod) (vllm:num_requests_waiting)", "data": {"resultType": "matrix", "result": [%s]}}]}',
        '{"answers": [{"data": {"resultType": "matrix", "result": [%s]}, "query": "vllm:num_requests_waiting{pod=~\\"a.*\\"}"}]}',
    ],
    ids=["the key", "the key of a list", "the query above", "the query below"],
)
def test_a_series_without_a_name_is_what_was_asked_for(text: str) -> None:
    found = forms.read("answer.json", (text % SERIES).encode())[1]
    assert [(row["name"], row["value"]) for row in found["metric"]] == [("vllm:num_requests_waiting", 3.0), ("vllm:num_requests_waiting", 4.0)]  # fmt: skip


@pytest.mark.parametrize("query", ["rate(vllm:num_preemptions_total[5m])", "vllm:num_requests_waiting > 3", "p95 of the latency"])  # fmt: skip
def test_a_query_that_computes_names_no_series(query: str) -> None:
    text = json.dumps({"answers": [{"query": query, "data": {"resultType": "matrix", "result": [json.loads(SERIES)]}}]})
    assert "metric" not in forms.read("answer.json", text.encode())[1]


def test_the_query_of_one_answer_says_nothing_of_the_next() -> None:
    one = {"query": "vllm:num_requests_waiting", "data": {"resultType": "matrix", "result": [json.loads(SERIES)]}}
    other = {"data": {"resultType": "matrix", "result": [json.loads(SERIES)]}}
    assert len(forms.read("a.json", json.dumps({"answers": [one, other]}).encode())[1]["metric"]) == 2
