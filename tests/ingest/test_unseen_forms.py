"""Forms of stores, tools and people that share no layout with what the readers were written for: what is read, and what must not be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from forms import read
from oomdoc import ingest
from oomdoc.intake.scan import Chunk

MIB, GIB = 1 << 20, 1 << 30


def rows(text: str, table: str, name: str = "any.txt") -> list[dict[str, Any]]:
    return read(name, text.encode())[1].get(table, [])


def cells(text: str, table: str, *columns: str, name: str = "any.txt") -> list[tuple[Any, ...]]:
    return [tuple(row.get(column) for column in columns) for row in rows(text, table, name)]


# ---- stores of metrics


def test_arrays_of_moments_and_values_are_a_series_of_the_device_that_their_name_tells() -> None:
    text = json.dumps({"MetricDataResults": [{"Id": "a1", "Label": "nvidia_smi_memory_used", "Timestamps": ["2026-03-04T05:00:00Z", "2026-03-04T05:01:00Z"], "Values": [40960.0, 51200.0]}]})  # fmt: skip
    assert cells(text, "gpu_sample", "t", "used_bytes") == [(1772600400.0, 40960 * MIB), (1772600460.0, 51200 * MIB)]


def test_statistics_of_a_window_are_the_value_and_tags_in_a_list_say_whose() -> None:
    series = {"metadatavalues": [{"name": {"value": "deviceid"}, "value": "3"}], "data": [{"timeStamp": "2026-03-04T05:00:00Z", "maximum": 61.0}, {"timeStamp": "2026-03-04T05:05:00Z", "maximum": 93.0}]}  # fmt: skip
    text = json.dumps({"value": [{"name": {"value": "GpuUtilizationPercentage", "localizedValue": "x"}, "unit": "Percent", "timeseries": [series]}]})  # fmt: skip
    assert cells(text, "gpu_sample", "gpu", "gpu_util") == [(3, 0.61), (3, 0.93)]


def test_a_table_of_minimum_and_maximum_without_moments_is_no_series() -> None:
    assert rows("name,minimum,maximum\nkv_cache_usage,0.1,0.9\nnum_requests_waiting,0,40\n", "engine_stat") == []


def test_otlp_metrics_of_a_device_are_read_with_their_units() -> None:
    point = {"attributes": [{"key": "hw.id", "value": {"stringValue": "1"}}], "timeUnixNano": "1772600400000000000", "asInt": "42949672960"}  # fmt: skip
    text = json.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "hw.gpu.memory.usage", "unit": "By", "sum": {"dataPoints": [point]}}]}]}]})  # fmt: skip
    assert cells(text, "gpu_sample", "t", "gpu", "used_bytes") == [(1772600400.0, 1, 40 * GIB)]


def test_a_range_of_promtool_keeps_the_labels_of_each_series() -> None:
    text = 'vllm:num_requests_waiting{pod="a"} =>\n4 @[1772600400]\n9 @[1772600460]\nvllm:num_requests_waiting{pod="b"} =>\n0 @[1772600400]\n'
    assert cells(text, "metric", "labels", "value", "t") == [
        ('pod="a"', 4.0, 1772600400.0), ('pod="a"', 9.0, 1772600460.0), ('pod="b"', 0.0, 1772600400.0),
    ]  # fmt: skip


def test_devices_below_the_names_of_hosts_are_of_several_hosts() -> None:
    hosts = {host: {"gpus": [{"index": 0, "memory_used_mib": used, "memory_total_mib": 46068}]} for host, used in (("rack-n1", 40000), ("rack-n2", 300))}  # fmt: skip
    data = json.dumps(hosts).encode()
    ingestor, _ = ingest.recognise(ingest.make_head("any.json", data))
    batches = [batch for batch in ingest.read(ingestor, "any.json", [Chunk(data, 1, True)]) if batch.table == "gpu_sample"]  # fmt: skip
    assert [(batch.writer, list(batch.columns["used_bytes"])) for batch in batches] == [
        ("", [40000 * MIB]), ("rack-n2", [300 * MIB]),
    ]  # fmt: skip


def test_what_a_scaler_sees_is_neither_its_threshold_nor_its_replicas() -> None:
    metric = {"metric": {"name": "queue"}, "target": {"averageValue": "6"}, "current": {"averageValue": "44"}}
    text = json.dumps({"minReplicas": 1, "maxReplicas": 3, "currentReplicas": 3, "metrics": [{"pods": metric}]})
    found = rows(text, "scaler")
    assert not [row for row in found if 44 in (row.get("replicas"), row.get("threshold"))]
    assert 6 in {row.get("threshold") for row in found}


# ---- tools


def test_units_below_a_header_end_no_table() -> None:
    text = "#Entity   GPUTL   MCUTL   FBUSD\nID\nGPU 0     91      40      40960\nGPU 1     0       0       300\n"
    assert cells(text, "gpu_sample", "gpu", "gpu_util", "memory_util", "used_bytes") == [
        (0, 0.91, 0.4, 40960 * MIB), (1, 0.0, 0.0, 300 * MIB),
    ]  # fmt: skip


def test_a_box_with_its_names_in_the_rule() -> None:
    text = "   ┌─gpu─┬─mem_used_mib─┬─mem_total_mib─┐\n1. │   0 │        40960 │         46068 │\n2. │   1 │          300 │         46068 │\n   └─────┴──────────────┴───────────────┘\n"
    assert cells(text, "gpu_sample", "gpu", "used_bytes") == [(0, 40960 * MIB), (1, 300 * MIB)]


def test_what_is_free_of_a_card_tells_what_is_used() -> None:
    text = "index, memory.free [MiB], memory.total [MiB]\n0, 1068 MiB, 46068 MiB\n1, 46000 MiB, 46068 MiB\n"
    assert cells(text, "gpu_sample", "gpu", "used_bytes") == [(0, 45000 * MIB), (1, 68 * MIB)]


def test_rows_of_docker_stats_between_commas() -> None:
    text = "".join(f"2026-03-04T05:0{at}:00Z,llm,{size}GiB / 32GiB,{share}%\n" for at, size, share in ((0, 11.5, 35.9), (1, 19.0, 59.4), (2, 30.5, 95.3)))  # fmt: skip
    assert cells(text, "process_memory", "name", "resource", "bytes")[-1] == ("llm", "container", int(30.5 * GIB))
    assert cells(text, "container", "name", "memory_limit_bytes") == [("llm", 32 * GIB)]


def test_what_a_container_may_hold_is_no_size_of_the_host() -> None:
    text = json.dumps([{"id": "0a1b2c3d4e5f", "name": "llm", "cpu_percent": "90%", "mem_usage": "30.1GB / 34.36GB", "netio": "1GB / 2GB", "pids": "88"}])  # fmt: skip
    assert rows(text, "note") == [] and cells(text, "container", "memory_limit_bytes") == [(32 * GIB,)]
    spread = text.replace("{", "{\n").replace(", ", ",\n")
    assert not [row for row in rows(spread, "note") if row["topic"] == "host-size"]


def test_kubectl_top_below_the_moments_at_which_it_was_asked() -> None:
    text = "2026-03-04T05:00:00Z\nPOD     NAME    CPU(cores)   MEMORY(bytes)\nllm-0   serve   900m         2000Mi\n2026-03-04T05:01:00Z\nPOD     NAME    CPU(cores)   MEMORY(bytes)\nllm-0   serve   910m         2500Mi\n"
    assert cells(text, "process_memory", "t", "name", "bytes") == [
        (1772600400.0, "serve", 2000 * MIB), (1772600460.0, "serve", 2500 * MIB),
    ]  # fmt: skip


def test_events_in_columns_of_ones_own() -> None:
    text = "AT                     TYPE      REASON      POD     N   TEXT\n2026-03-04T05:00:00Z   Warning   Unhealthy   llm-0   7   Liveness probe failed: refused\n2026-03-04T05:01:00Z   Normal    Killing     llm-0   2   Container serve failed liveness probe\n"
    assert cells(text, "cluster_event", "reason", "object", "count", "message") == [
        ("Unhealthy", "llm-0", 7, "Liveness probe failed: refused"), ("Killing", "llm-0", 2, "Container serve failed liveness probe"),
    ]  # fmt: skip


def test_a_list_of_processes_of_devices_is_no_list_of_ps() -> None:
    text = "GPU     PID      USER  GPU-MEM  %SM  %CPU  %MEM     TIME  COMMAND\n  0   7001 C    root  40.5GiB   91  99.0   8.1  1:02:03  serve-worker\n"
    assert cells(text, "gpu_process", "gpu", "pid", "used_bytes") == [(0, 7001, int(40.5 * GIB))]
    assert rows(text, "process_cpu") == []


@pytest.mark.parametrize(("total", "unit"), [("125", GIB), ("128000", MIB), ("131072000", 1024)])
def test_free_without_a_unit_is_of_a_host_that_can_be(total: str, unit: int) -> None:
    text = f"               total        used        free      shared  buff/cache   available\nMem:   {total}   60   50   1   15   64\n"
    assert ("host-ready", 64 * unit) in cells(text, "note", "topic", "value")


# ---- calls


WEB = '{{"time_local":"04/Mar/2026:05:00:0{at} +0000","remote_addr":"10.0.0.2","request":"POST {path} HTTP/1.1","status":"{status}","body_bytes_sent":"10","request_time":"{took}","upstream_addr":"10.9.0.1:8000"}}\n'  # fmt: skip


def test_a_web_servers_json_of_calls_of_a_model_is_requests_and_no_try() -> None:
    text = "".join(WEB.format(at=at, path="/v1/completions", status=status, took=took) for at, status, took in ((1, 200, "7.250"), (2, 504, "30.000")))  # fmt: skip
    assert cells(text, "request", "status", "latency_s", "replica") == [
        (200, 7.25, "10.9.0.1:8000"), (504, 30.0, "10.9.0.1:8000"),
    ]  # fmt: skip
    assert rows(text, "trial") == []
    assert rows(text.replace("/v1/completions", "/logo.png"), "request") == []


def test_a_total_is_a_time_where_its_cells_say_so() -> None:
    head, row = "in tok,out tok,TTFT,total,HTTP\n", "700,50,1.5s,{},200\n"
    assert cells(head + 2 * row.format("4.5s"), "request", "latency_s")[0] == (4.5,)
    assert cells(head + 2 * row.format("750"), "request", "latency_s")[0] == (None,)


def test_of_two_latencies_the_whole_is_the_one_that_was_taken() -> None:
    text = "timeStamp,elapsed,responseCode,Latency,URL\n1772600400000,9000,200,2500,http://llm/v1/completions\n1772600409000,9500,200,2600,http://llm/v1/completions\n"
    assert cells(text, "request", "latency_s") == [(9.0,), (9.5,)]


# ---- tables of people


def test_cards_in_columns_are_cards_and_replicas_in_columns_are_replicas() -> None:
    cards = "| | GPU 0 | GPU 1 |\n|---|---|---|\n| memory used | 40.5 GiB | 0.5 GiB |\n| utilisation | 91 % | 0 % |\n"
    assert cells(cards, "gpu_sample", "gpu", "used_bytes", "gpu_util") == [
        (0, int(40.5 * GIB), 0.91), (1, int(0.5 * GIB), 0.0),
    ]  # fmt: skip
    assert rows(cards, "trial") == []
    servers = "metric,srv-a1,srv-a2\nnum_requests_running,30,2\nnum_requests_waiting,55,0\n"
    found = cells(servers, "metric", "name", "labels", "value")
    assert ("vllm:num_requests_waiting", 'replica="srv-a1"', 55.0) in found and len(found) == 4


def test_a_benchmarks_statistics_are_one_run_and_no_tries() -> None:
    text = "Metric,avg,min,max,p99\nTime To First Token (ms),900.5,100,2000,1900\nInter Token Latency (ms),30,20,60,55\nInput Sequence Length (tokens),512,512,512,512\n"
    assert cells(text, "load_run", "ttft_s", "tpot_s", "prompt_tokens") == [(0.9005, 0.03, 512)]
    assert rows(text, "trial") == []
    flat = json.dumps({"results_ttft_s_mean": 0.9, "results_inter_token_latency_s_mean": 0.03, "num_concurrent_requests": 16})  # fmt: skip
    assert cells(flat, "load_run", "clients", "ttft_s", "tpot_s") == [(16, 0.9, 0.03)]


def test_a_share_that_starts_were_given_is_no_load_of_a_card() -> None:
    text = "no;gpu util;seqs;what happened\n1;0.94;128;OOM at warm-up\n2;0.94;32;started, served fine\n"
    assert rows(text, "gpu_sample") == []
    assert ("gpu_memory_utilization", "0.94", False) in cells(text, "trial", "flag", "value", "works")


def test_lines_as_python_prints_dictionaries() -> None:
    text = "{'time': '2026-03-04 05:00:00', 'num_running': 30, 'num_waiting': 5, 'kv_cache_usage': 0.5, 'ok': True}\n{'time': '2026-03-04 05:01:00', 'num_running': 31, 'num_waiting': 9, 'kv_cache_usage': 0.6, 'ok': None}\n"
    assert cells(text, "engine_stat", "running", "waiting") == [(30, 5), (31, 9)]


# ---- sentences


@pytest.mark.parametrize(
    ("sentence", "told"),
    [
        ("At 05:10 the KV cache was at 91 %, 30 requests were running and 12 were waiting.", [(30, 12, 0.91)]),
        ("Around noon 8 requests were queued,\nwhile KV cache usage was still 62.5%.", [(None, 8, 0.625)]),
        ("- chat: waiting queue 9, running 14, KV cache 97 % (05:10)", [(14, 9, 0.97)]),
        # a wish, a rule, a course, one figure alone
        ("We are alerted when 20 requests are waiting and KV cache usage is 95 %.", []),
        ("With a KV cache at 91 % there should be 30 requests running.", []),
        ("KV cache usage was 40 % at first and KV cache usage was 91 % later, 12 requests waiting.", []),
        ("The KV cache was at 91 % all day.", []),
    ],
)
def test_sentences_that_report_a_moment(sentence: str, told: list[tuple[Any, ...]]) -> None:
    text = f"Hello,\n\nour server is slow.\n\n{sentence}\n\nRegards\n"
    assert cells(text, "engine_stat", "running", "waiting", "kv_used") == told


# ---- panels, and what programs return


def test_a_panel_that_was_exported_is_read_by_its_name() -> None:
    """Grafana names the sheet after the panel, and its columns after the series alone."""
    text = '"Time","chat-0","chat-1"\n' + "".join(f"2026-03-04 05:{minute:02}:00,{40 + minute}%,{10 + minute}%\n" for minute in range(10, 20))  # fmt: skip
    series = rows(text, "metric", "KV cache usage-data-2026-03-04 05_20_00.csv")
    assert {row["name"] for row in series} == {"vllm:kv_cache_usage_perc"}
    assert [row["value"] for row in series if row["labels"] == 'replica="chat-1"'][:2] == [0.2, 0.21]
    assert len(series) == 20
    assert rows(text, "metric", "disk of the pods-data-2026-03-04 05_20_00.csv") == []  # nobody asks for that


@pytest.mark.parametrize(
    ("name", "cell", "status"), [("rc", 0, 200), ("rc", 1, 500), ("status", 0, 0), ("rc", 504, 504)]
)
def test_what_a_program_returns_is_no_status_of_http(name: str, cell: int, status: int) -> None:
    text = "".join(json.dumps({"ts": f"2026-03-04T05:00:{at:02}", "in": 400 + at, "out": 90 + at, "secs": 1.5, name: cell}) + "\n" for at in range(10, 30))  # fmt: skip
    assert {row["status"] for row in rows(text, "request", "results.jsonl")} == {status}


def test_what_has_memory_a_clock_and_a_heat_is_a_device() -> None:
    text = "Time (UTC),Unit,Mem used MiB,Mem total MiB,Util %,Core clock MHz,Temp C,Reason mask\n"
    text += "".join(f"2026-03-04 05:{minute:02},edge-1/a,21000,23034,93,{2000 if minute < 20 else 500},70,{0 if minute < 20 else 72}\n" for minute in range(10, 30))  # fmt: skip
    assert len(rows(text, "gpu_sample")) == 20
    clocks = [row["value"] for row in rows(text, "metric") if row["name"] == "DCGM_FI_DEV_SM_CLOCK"]
    assert clocks == [2000.0, 500.0]


@pytest.mark.parametrize(("mask", "told"), [("0x0000000000000088", True), ("0x0000000000000001", False)])
def test_a_card_is_at_work_where_its_clock_is_held_back_for_another_reason_than_rest(mask: str, told: bool) -> None:
    text = "ts,gpu,DCGM_FI_DEV_SM_CLOCK,DCGM_FI_DEV_CLOCK_THROTTLE_REASONS,DCGM_FI_DEV_FB_USED\n"
    text += "".join(f"{1763625600 + 60 * at},0,{1980 if at < 5 else 345},{'0x0' if at < 5 else mask},99812\n" for at in range(10))  # fmt: skip
    clocks = [row["value"] for row in rows(text, "metric") if row["name"] == "DCGM_FI_DEV_SM_CLOCK"]
    assert clocks == ([1980.0, 345.0] if told else [1980.0])
