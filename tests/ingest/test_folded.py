"""Names with a statistic or a window: one name for the quantity, and one place that knows what its statistics are."""

from __future__ import annotations

from typing import Any

import pytest

import forms as again
from oomdoc.ingest.metrics import kept_name
from oomdoc.ingest.vocabulary import meanings, quantities
from oomdoc.ingest.vocabulary.folded import Folded, booked
from oomdoc.units import GIB


def rows(text: str, table: str) -> list[dict[str, Any]]:
    _, found = again.read("evidence.csv", text.encode())
    return [{k: v for k, v in row.items() if v is not None} for row in found.get(table, [])]


@pytest.mark.parametrize(
    ("name", "quantity", "told"),
    [
        ("kv_usage_p95_5m", "stat.kv_used", "p95 over 5m"),
        ("kvUsageAvg5m", "stat.kv_used", "avg over 5m"),
        ("KV cache usage (max)", "stat.kv_used", "max"),
        ("kv usage % (5m avg)", "stat.kv_used", "avg over 5m"),
        ("avg_kv_cache_usage", "stat.kv_used", "avg"),
        ("running.max", "stat.running", "max"),
        ("requests_running_1h_avg", "stat.running", "avg over 1h"),
        ("waiting_mean", "stat.waiting", "avg"),
        ("queue depth, last 5 min", "stat.waiting", "over 5min"),
        ("waiting at the end", "stat.waiting", "last"),
        ("5m median waiting", "stat.waiting", "median over 5m"),
        ("gpu_mem_used_max_mib", "gpu.used", "max"),
        ("gpu3_mem_used_avg_5m_mib", "gpu.used", "avg over 5m"),
        ("gpu_util_p95_1h", "gpu.util", "p95 over 1h"),
        ("gpu_mem_free_min", "gpu.free", "min"),
        ("prefix_cache_hit_rate_5m", "stat.hit_rate", "over 5m"),
        ("generation_tokens_per_s_5m", "stat.generation_rate", "over 5m"),
        ("vllm:num_requests_waiting_max_5m", "metric.num_requests_waiting", "max over 5m"),
        ("instance:vllm_num_requests_waiting:max_over_time5m", "metric.num_requests_waiting", "max over 5m"),
        ("job:vllm_kv_cache_usage_perc:p95_5m", "metric.kv_cache_usage_perc", "p95 over 5m"),
        ("max_over_time(vllm:num_requests_waiting[5m])", "metric.num_requests_waiting", "max over 5m"),
        ('avg by (pod) (vllm:kv_cache_usage_perc{job="x"})', "metric.kv_cache_usage_perc", "avg"),
        ("sum(vllm:num_preemptions_total) by (pod)", "metric.num_preemptions_total", "sum"),
        ("num_preemptions_total (total)", "metric.num_preemptions_total", "sum"),
        ("sum(rate(vllm:generation_tokens_total[1m]))", "stat.generation_rate", "rate over 1m"),
        ("irate(vllm:prompt_tokens_total[5m])", "stat.prompt_rate", "rate over 5m"),
        ("vllm:generation_tokens_total:rate5m", "stat.generation_rate", "rate over 5m"),
    ],
)
def test_a_statistic_is_taken_off(name: str, quantity: str, told: str) -> None:
    assert (quantity, told) in [(match.quantity.id, match.told) for match in meanings(name)]


@pytest.mark.parametrize(
    "name",
    [
        "kv_usage_min_5m", "kv_usage_sum", "gpu_mem_free_max", "gpu_mem_used_min", "sum(DCGM_FI_DEV_FB_USED)",  # no reading of that gauge
        "preemptions_5m", "rate(vllm:num_preemptions_total[5m])", "increase(vllm:num_preemptions_total[1h])", "avg_preemptions",  # no counter
        "latency_p95_5m", "ttft_avg", "avg_input_tokens", "prompt_tokens_p50",  # no request
        "max_running_requests", "min_waiting", "max_num_seqs",  # limits
        "queue_time_avg", "time_avg", "waiting_time_p95", "kv_cache_dtype_5m", "swap_used_max",
    ],
)  # fmt: skip
def test_what_is_no_reading_is_not_booked(name: str) -> None:
    assert not [match for match in meanings(name) if match.told]


def test_series_whose_own_names_end_so_stay_themselves() -> None:
    for name in ("vllm:time_to_first_token_seconds_sum", "vllm:request_prompt_tokens_sum"):
        assert [(match.quantity.column, match.told) for match in meanings(name)] == [(f":{name}", "")]
    assert meanings("max concurrency")[0].quantity.id == "figure.max_concurrency"


def test_every_quantity_has_an_answer_to_every_statistic() -> None:
    for quantity in quantities():
        for how in ("avg", "median", "p99", "max", "min", "last", "sum", "rate", "growth", ""):
            found = booked(quantity, Folded("x", how, "5m", False))
            assert found in ("", quantity.id) or (quantity.counter and how == "rate")
            assert not (quantity.kind in ("text", "moment", "seconds") and found)


HEADER = "time,kv_usage_max_5m,kv_usage_avg_5m,running_5m_avg,waiting_p95_5m,preemptions_5m\n"
TABLE = HEADER + "".join(f"2026-11-20T20:0{at}:00Z,0.9{at},0.5{at},12.4,{at},{at}\n" for at in range(5))


def test_a_table_of_statistics_is_a_table_of_the_engine() -> None:
    found = rows(TABLE, "engine_stat")
    assert [(row["kv_used"], row["running"], row["waiting"]) for row in found[:2]] == [(0.9, 12, 0), (0.91, 12, 1)]
    told = {row["name"]: row["taken_for"] for row in rows(TABLE, "column_reading")}
    assert told["kv_usage_max_5m"] == "engine_stat.kv_used in shares of one, max over 5m"
    assert told["kv_usage_avg_5m"] == "another statistic of engine_stat.kv_used: no row"
    assert [row["text"] for row in rows(TABLE, "problem")] == ["preemptions_5m"]
    assert rows(TABLE, "metric") == []  # what was preempted within a window is no counter


def test_the_plain_column_comes_before_its_statistics() -> None:
    text = "time,kv_usage_max_5m,kv_usage,running,waiting\n" + "".join(
        f"2026-11-20T20:0{at}:00Z,0.99,0.4{at},3,1\n" for at in range(4)
    )
    assert [row["kv_used"] for row in rows(text, "engine_stat")] == [0.4, 0.41, 0.42, 0.43]


def test_a_rate_of_a_counter_is_the_rate() -> None:
    header = 'Time,rate(vllm:generation_tokens_total{pod="a"}[5m]),vllm:num_requests_running:max,max_over_time(vllm:num_requests_running[5m])'
    text = header + "\n" + "".join(f"2026-11-20T20:0{at}:00Z,31{at}.5,7,9\n" for at in range(4))
    assert [row["generation_tokens_per_s"] for row in rows(text, "engine_stat")] == [310.5, 311.5, 312.5, 313.5]
    assert [(row["name"], row["value"]) for row in rows(text, "metric")] == [
        ("vllm:num_requests_running", 7.0)
    ] * 4  # one of two


def test_sizes_of_devices_over_a_window() -> None:
    text = "time,gpu,gpu_mem_used_max_gib,gpu_mem_total_gib\n" + "".join(
        f"2026-11-20T20:0{at}:00Z,0,7{at}.5,80\n" for at in range(4)
    )
    assert [row["used_bytes"] for row in rows(text, "gpu_sample")] == [int((70.5 + at) * GIB) for at in range(4)]


def test_names_of_recording_rules_in_a_scrape() -> None:
    assert kept_name("vllm:num_requests_waiting:avg5m") == "vllm:num_requests_waiting"
    for name in ("vllm:num_preemptions_total:rate5m", "vllm:request_queue_time_seconds:p90"):
        assert kept_name(name) == name


def test_a_statistic_of_a_series_that_is_not_listed() -> None:
    (match,) = meanings('sum(vllm:some_new_gauge{pod="a"}) by (pod)')
    assert (match.quantity.column, match.told) == (":vllm:some_new_gauge", "sum")
    assert [one.quantity.id for one in meanings("max_kv_cache_usage")] == ["stat.kv_used"]
