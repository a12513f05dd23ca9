"""Layouts of gateways, of monitoring exports, of printed frames and of people's sheets: what is read of each, and a near miss that is not."""

from __future__ import annotations

import json
from typing import Any

import pytest

import forms as again
from oomdoc.ingest import access_log
from oomdoc.intake.scan import Chunk


def tables(text: str | bytes, name: str = "evidence.txt") -> dict[str, list[dict[str, Any]]]:
    """Rows by table, without the columns that are NULL."""
    _, found = again.read(name, text.encode() if isinstance(text, str) else text)
    return {table: [{k: v for k, v in row.items() if v is not None and k != "line"} for row in rows] for table, rows in found.items()}  # fmt: skip


def calls(text: str) -> list[dict[str, Any]]:
    found = []
    for batch in access_log.read("any", [Chunk(text.encode(), 1, True)]):
        names = list(batch.columns)
        found += [dict(zip(names, row, strict=True)) for row in zip(*batch.columns.values(), strict=True)]
    return found


# ---- gateways


def test_envoy_says_why_between_status_and_bytes() -> None:
    line = '[2026-02-05T08:30:10.500Z] "POST {} HTTP/1.1" {} - "{}" 512 24 {} 14 "10.0.0.3" "httpx" "id" "llm" "10.0.0.9:8000" in|80|| default\n'
    log = line.format("/v1/completions", "200 - via_upstream", "-", 1500)
    log += line.format("/v1/completions", "0 DC downstream_remote_disconnect", "-", 30001)
    log += line.format("/v1/chat/completions", "503 UF upstream_reset{connection_failure,refused}", "refused:_111", 4)
    log += line.format("/cart", "200 - via_upstream", "-", 9)
    assert [(row["status"], row["latency_s"]) for row in calls(log)] == [
        (200, 1.5),
        (0, pytest.approx(30.001)),
        (503, 0.004),
    ]


def test_haproxy_tells_five_times_and_a_status() -> None:
    line = 'Feb  5 08:31:10 lb haproxy[7]: 10.1.0.8:4000 [05/Feb/2026:08:30:10.250] front pool/{} {} 77 - - sH-- 9/9/8/4/0 0/0 "POST {} HTTP/1.1"\n'
    log = line.format("a", "0/12/1/300/2500 200", "/v1/completions")
    log += line.format("<NOSRV>", "0/30000/-1/-1/30000 503", "/v1/completions")
    log += line.format("a", "0/12/1/-1/41000 -1", "/v1/completions")
    log += line.format("a", "0/12/1/300/2500 200", "/static/logo.png")
    found = calls(log)
    assert [(row["status"], row["latency_s"], row["t"]) for row in found] == [
        (200, 2.5, 1770280210.25),
        (503, 30.0, 1770280210.25),
        (0, 41.0, 1770280210.25),
    ]
    assert {row["tenant"] for row in found} == {"10.1.0.8"}


def test_durations_in_nanoseconds_and_numbers_in_groups() -> None:
    record = {"DownstreamStatus": 200, "OriginStatus": 200, "Overhead": 90_000, "RequestPath": "/v1/completions"}
    lines = [
        json.dumps({**record, "Duration": took, "StartUTC": f"2026-02-05T08:30:1{at}.5Z"})
        for at, took in enumerate((1_250_000_000, 60_000_000_000, 3_000_000, 2_000_000_000))
    ]
    found = tables("\n".join(lines))["request"]
    assert [row["latency_s"] for row in found] == [1.25, 60.0, 0.003, 2.0]
    assert found[0]["t"] == 1770280210.5
    # the same numbers of a web shop are nobody's requests
    assert "request" not in tables("\n".join(lines).replace("/v1/completions", "/cart"))
    sheet = '"@timestamp","prompt_tokens","completion_tokens","http.response.status_code","event.duration"\n'
    sheet += '"Feb 5, 2026 @ 08:30:10.250","12,004",310,200,"4,000,000,000"\n"Feb 5, 2026 @ 08:30:11.000"," - "," - ",503,"31,000,000"\n'
    assert tables(sheet)["request"] == [
        {"t": 1770280210.25, "input_tokens": 12004, "output_tokens": 310, "latency_s": 4.0, "status": 200},
        {"t": 1770280211.0, "latency_s": 0.031, "status": 503},
    ]


def test_a_gateway_names_its_times_under_one_object() -> None:
    record = {"request": {"uri": "/v1/chat/completions", "size": 9}, "response": {"status": 200}, "consumer": {"username": "app"}}  # fmt: skip
    lines = [
        json.dumps({**record, "latencies": {"request": took, "proxy": -1, "kong": 3}, "started_at": 1770280210000 + at})
        for at, took in enumerate((6211, 88104, 60022))
    ]
    assert [row["latency_s"] for row in tables("\n".join(lines))["request"]] == [6.211, 88.104, 60.022]


# ---- monitoring


def test_a_legend_in_a_cell_holds_the_labels_of_its_series() -> None:
    sheet = '"Time","Metric","Value"\n' + "".join(
        f'{1770280200000 + at},"vllm:num_requests_waiting{{pod=""a-{at}""}}",{at + 3}\n' for at in range(3)
    )
    found = tables(sheet)["metric"]
    assert [(row["labels"], row["value"]) for row in found] == [('pod="a-0"', 3.0), ('pod="a-1"', 4.0), ('pod="a-2"', 5.0)]  # fmt: skip


def test_an_answer_of_promtool_says_whose_it_is_in_its_labels() -> None:
    text = """$ promtool query instant http://p '{__name__=~"vllm:kv_cache_usage_perc|vllm:num.*"}'
{__name__="vllm:num_requests_running", pod="a"} => 9 @[1770280200.5]
{__name__="up", pod="a"} => 1 @[1770280200.5]
"""
    assert [(row["name"], row["value"]) for row in tables(text)["metric"]] == [("vllm:num_requests_running", 9.0)]


def test_series_with_pairs_of_moment_and_value() -> None:
    points = [[1770280200000.0, 1024.0], [1770280260000.0, 2048.0], [1770280320000.0, None]]
    unit = [{"family": "bytes", "short_name": "MiB"}, None]
    series = [
        {"metric": "dcgm.framebuffer.used", "scope": f"gpu:{gpu},host:a", "unit": unit, "pointlist": points}
        for gpu in (0, 3)
    ]
    waits = {"metric": "vllm.num_requests.waiting", "scope": "pod_name:a-0", "unit": None, "pointlist": [[1770280200000.0, 7.0], [1770280260000.0, 8.0]]}  # fmt: skip
    found = tables(json.dumps({"status": "ok", "series": [*series, waits]}, indent=1))
    assert [(row["gpu"], row.get("used_bytes")) for row in found["gpu_sample"]] == [(0, 1 << 30), (0, 2 << 30), (3, 1 << 30), (3, 2 << 30)]  # fmt: skip
    assert [(row["t"], row["value"]) for row in found["metric"]] == [(1770280200.0, 7.0), (1770280260.0, 8.0)]
    assert "gpu_process" not in found  # a pod that waits holds no memory of the cards beside it
    others = [{"metric": "disk.used", "scope": "host:a", "unit": unit, "pointlist": points}]
    assert not {"gpu_sample", "process_memory", "metric"} & tables(json.dumps({"series": others}, indent=1)).keys()


def test_arrays_of_times_and_values_under_a_legend() -> None:
    times = ["2026-02-05T08:30:00+00:00", "2026-02-05T08:25:00+00:00"]
    found = tables(json.dumps({"MetricDataResults": [
        {"Id": "m1", "Label": "i-07 2 nvidia_smi_memory_used", "Timestamps": times, "Values": [3000.0, 2000.0]},
        {"Id": "m2", "Label": "i-07 disk_used", "Timestamps": times, "Values": [3.0, 2.0]},
    ]}, indent=1))  # fmt: skip
    assert found["gpu_sample"] == [
        {"t": 1770280200.0, "gpu": 2, "used_bytes": 3000 << 20},
        {"t": 1770279900.0, "gpu": 2, "used_bytes": 2000 << 20},
    ]


def test_typed_values_of_a_store() -> None:
    def one(name: str, value: dict[str, Any]) -> dict[str, Any]:
        return {"metric": {"type": name}, "resource": {"type": "k8s_container", "labels": {"pod_name": "a"}}, "points": [
            {"interval": {"endTime": f"2026-02-05T08:3{minute}:00Z"}, "value": value} for minute in (1, 0)]}  # fmt: skip

    found = tables(json.dumps({"timeSeries": [
        one("kubernetes.io/container/memory/used_bytes", {"int64Value": "2147483648"}),
        one("prometheus.googleapis.com/vllm:kv_cache_usage_perc/gauge", {"doubleValue": 0.5}),
        one("kubernetes.io/container/ephemeral_storage/used_bytes", {"int64Value": "999"}),
    ]}, indent=1))  # fmt: skip
    assert [(row["t"], row["bytes"]) for row in found["process_memory"]] == [(1770280260.0, 2 << 30), (1770280200.0, 2 << 30)]  # fmt: skip
    assert [(row["name"], row["value"]) for row in found["metric"]] == [("vllm:kv_cache_usage_perc", 0.5)] * 2


def test_an_annotated_csv_has_a_field_a_row() -> None:
    head = "#datatype,string,long,dateTime:RFC3339,double,string,string,string\n#group,false,false,false,false,true,true,true\n#default,_result,,,,,,\n"
    row = ",,{},2026-02-05T08:30:00Z,{},{},{},{}\n"
    smi = head + ",result,table,_time,_value,_field,_measurement,index\n"
    smi += row.format(0, 4096, "memory_used", "nvidia_smi", 1) + row.format(1, 8192, "memory_total", "nvidia_smi", 1) + row.format(2, 40, "utilization_gpu", "nvidia_smi", 1)  # fmt: skip
    assert tables(smi)["gpu_sample"] == [{"t": 1770280200.0, "gpu": 1, "used_bytes": 4 << 30, "total_bytes": 8 << 30, "gpu_util": 0.4}]  # fmt: skip
    disk = head + ",result,table,_time,_value,_field,_measurement,path\n"
    disk += row.format(0, 4096, "inodes_used", "disk", "/") + row.format(1, 8192, "inodes_total", "disk", "/")
    assert not {"gpu_sample", "process_memory", "metric"} & tables(disk).keys()
