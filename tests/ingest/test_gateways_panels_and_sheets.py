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


# ---- printed frames


def test_a_frame_names_its_index_on_a_line_of_its_own() -> None:
    text = """In [3]: df.groupby("timestamp").max()
Out[3]:
                     mem_used_mib   gpu_util  running  waiting    kv_usage
timestamp
2026-02-05 08:30:00       61204.0  88.250000       64        0    0.412300
2026-02-05 08:31:00       61206.0  91.500000       71        5    0.566100
...                           ...        ...      ...      ...         ...
2026-02-05 09:10:00           NaN        NaN        0        0    0.000000

[41 rows x 5 columns]
"""
    found = tables(text)
    assert [(row["t"], row["used_bytes"]) for row in found["gpu_sample"]] == [(1770280200.0, 61204 << 20), (1770280260.0, 61206 << 20)]  # fmt: skip
    assert [(row["running"], row["waiting"]) for row in found["engine_stat"]] == [(64, 0), (71, 5), (0, 0)]


def test_polars_prints_types_below_the_names() -> None:
    text = """>>> s
┌─────┬──────────────────┬─────────┬──────────┐
│ gpu ┆ process          ┆ pid     ┆ vram_gib │
│ --- ┆ ---              ┆ ---     ┆ ---      │
│ i64 ┆ str              ┆ i64     ┆ f64      │
╞═════╪══════════════════╪═════════╪══════════╡
│ 1   ┆ VLLM::Worker_TP1 ┆ 4711    ┆ 40.5     │
│ 0   ┆ python           ┆ 4712    ┆ null     │
└─────┴──────────────────┴─────────┴──────────┘
"""
    found = tables(text)
    assert [(row["gpu"], row["name"], row.get("used_bytes")) for row in found["gpu_process"]] == [(1, "VLLM::Worker_TP1", round(40.5 * (1 << 30))), (0, "python", None)]  # fmt: skip
    assert "problem" not in found


def test_units_stand_in_a_row_of_their_own() -> None:
    text = "gpu,memory used,utilization,temperature\n,GiB,%,C\n0,70.5,98,61\n1,0.25,0,34\n"
    found = tables(text)["gpu_sample"]
    assert [row["used_bytes"] for row in found] == [round(70.5 * (1 << 30)), 1 << 28]
    dmon = """#Entity   TMPTR      GPUTL      FBTTL      FBFRE      FBUSD
ID        C                     MB         MB         MB
GPU 0     61         99         40960      960        40000
GPU 3     34         0          40960      40960      N/A
"""
    found = tables(dmon)["gpu_sample"]
    assert [(row["gpu"], row["used_bytes"]) for row in found] == [(0, 40000 << 20), (3, 0)]


def test_a_notebook_shows_a_frame() -> None:
    shown = [
        "       request_id  prompt_tok  gen_tok  ttft_ms  total_ms  code\n",
        "17  r-1 98304 2048 91240 188310 200\n",
    ]
    shown[1:] = ["17         r-1       98304     2048    91240    188310   200\n", "18         r-2        1850      402    33180     41022   504"]  # fmt: skip
    cell = {"cell_type": "code", "source": ["x.head(2)"], "metadata": {}, "outputs": [{"data": {"text/plain": shown}, "output_type": "execute_result"}]}  # fmt: skip
    book = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    found = tables(json.dumps(book, indent=1), "slow.ipynb")["request"]
    assert [(row["input_tokens"], row["latency_s"], row["status"]) for row in found] == [(98304, 188.31, 200), (1850, 41.022, 504)]  # fmt: skip
    cell["outputs"], cell["source"] = [], shown  # what a cell of code quotes is no evidence
    assert "request" not in tables(json.dumps(book, indent=1), "slow.ipynb")


# ---- people's sheets


def test_captions_above_a_sheet_tell_quantity_and_unit() -> None:
    rows = "08:30:00,70112,3\n08:30:30,71934,3\n08:31:00,73902,3\nmax,73902,3\n"
    cards = "node a-7 (two H100) - memory used per card in MiB (total 81559 each),,\n5 February,,\n,,\ntime,GPU0,GPU1\n"
    found = tables(cards + rows)
    assert [(row["gpu"], row["used_bytes"]) for row in found["gpu_sample"]] == [(0, 70112 << 20), (1, 3 << 20), (0, 71934 << 20), (1, 3 << 20), (0, 73902 << 20), (1, 3 << 20)]  # fmt: skip
    heat = cards.replace("memory used per card in MiB (total 81559 each)", "power per card in W (limit 700 each)")
    assert not {"gpu_sample", "process_memory"} & tables(heat + rows).keys()


def test_captions_of_pods_and_a_decimal_comma() -> None:
    sheet = (
        "Arbeitsspeicher der Pods;;;\nQuelle: Rancher; Werte in GiB;;\n\nDatum;Uhrzeit;chat-7b9c-2x;chat-7b9c-f8\n"
        "16.02.2026;08:00;31,5;30,25\n16.02.2026;20:00;38,75;39,5\n17.02.2026;08:00;47,25;46,75\nZuwachs;;15,75;16,5\n"
    )
    found = tables(sheet)["process_memory"]
    assert [(row["name"], row["bytes"]) for row in found[:2]] == [("chat-7b9c-2x", round(31.5 * (1 << 30))), ("chat-7b9c-f8", round(30.25 * (1 << 30)))]  # fmt: skip
    assert [row["elapsed_s"] for row in found] == [0.0, 0.0, 43200.0, 43200.0, 86400.0, 86400.0]
    disk = sheet.replace("Arbeitsspeicher", "Plattenplatz")
    assert "process_memory" not in tables(disk)


def test_groups_of_digits_apart_by_narrow_blanks() -> None:
    sheet = "Heure\tProcessus\tPID\tRSS (Mo)\n14:00:00\tengine\t8812\t18\u202f420\n14:30:00\tengine\t8812\t155\u00a0020\n15:00:00\tengine\t8812\t197\u202f312\n"
    assert {row["bytes"] for row in tables(sheet)["process_memory"]} == {18_420_000_000, 155_020_000_000, 197_312_000_000}  # fmt: skip


def test_a_sheet_of_containers_with_merged_cells() -> None:
    head = "Zone\tPod\tContainer\tRestarts\tLast exit\tReason\tMem limit\n"
    found = tables(head + "a\tchat-0\tvllm\t11\t137\tOOMKilled\t64Gi\n\t\tproxy\t0\t\t\t128Mi\n\tchat-1\tvllm\t2\t1\tError\t64Gi\n")  # fmt: skip
    assert [(row["pod"], row["name"], row["restarts"], row.get("exit_code"), row["memory_limit_bytes"]) for row in found["container"]] == [
        ("chat-0", "vllm", 11, 137, 64 << 30), ("chat-0", "proxy", 0, None, 128 << 20), ("chat-1", "vllm", 2, 1, 64 << 30),
    ]  # fmt: skip
    units = "unit\tstate\trestarts\tcpu\nnginx\tactive\t3\t1.5\npostgres\tactive\t0\t7.5\n"
    assert "container" not in tables(units)


def test_latencies_without_a_unit_have_one_writer() -> None:
    sheet = "rate,done,failed,ttft,tpot\n1,100,0,61.2,14.5\n8,100,0,190,28.5\n16,90,10,2900,51.0\n"
    found = [row["value"] for row in tables(sheet)["trial_figure"] if row.get("quantity") in ("ttft_s", "tpot_s")]
    assert found == [0.0612, 0.0145, 0.19, 0.0285, 2.9, 0.051]
    seconds = sheet.replace("2900", "29.5").replace("190", "1.9").replace("61.2", "0.6")
    assert [row["value"] for row in tables(seconds)["trial_figure"] if row.get("quantity") == "ttft_s"] == [0.6, 1.9, 29.5]  # fmt: skip


# ---- documents around a table


def test_a_table_of_latex() -> None:
    text = (
        "\\begin{table}[t]\n\\caption{Qwen on one card}\n\\begin{tabular}{lrrr}\n\\toprule\nRate (req/s) & Done & Failed & TTFT (ms) \\\\\n"
        "\\midrule\n1 & 1\\,000 & 0 & 61.5 \\\\\n\\textbf{32} & 612 & \\textbf{388} & 19\\,870 \\\\\n\\bottomrule\n\\end{tabular}\n\\end{table}\n"
    )
    found = [(row["quantity"], row["value"]) for row in tables(text)["trial_figure"] if "quantity" in row]
    assert found == [("answered", 1000), ("failed", 0), ("ttft_s", 0.0615), ("answered", 612), ("failed", 388), ("ttft_s", 19.87)]  # fmt: skip
    heat = text.replace("TTFT (ms)", "Power (W)").replace("Failed", "Idle")
    assert "trial_figure" not in tables(heat)


def test_a_workbook_saved_as_xml() -> None:
    rows = [("Attempt", "max_model_len", "Result"), ("1", "131072", "failed: out of memory"), ("2", "32768", "started")]
    cells = ["<Row>" + "".join(f'<Cell><Data ss:Type="String">{cell}</Data></Cell>' for cell in row) + "</Row>\n" for row in rows]  # fmt: skip
    book = '<?xml version="1.0"?>\n<?mso-application progid="Excel.Sheet"?>\n<Workbook xmlns="urn:x">\n<Worksheet ss:Name="a"><Table>\n{}</Table></Worksheet>\n</Workbook>\n'
    found = tables(book.format("".join(cells)))["trial"]
    assert [(row["flag"], row["value"], row["works"]) for row in found] == [("max_model_len", "131072", False), ("max_model_len", "32768", True)]  # fmt: skip
    assert "trial" not in tables(book.replace("Workbook", "Catalogue").format("".join(cells)))


# ---- benchmarks and other tongues


def test_percentiles_head_columns() -> None:
    sheet = "Type,Name,Request Count,Failure Count,Median Response Time,Min Response Time,50%,95%\nPOST,/v1/completions,200,7,2400.0,12.5,2400,9000\nPOST,/v1/embeddings,100,0,40.0,11.0,40,90\n"
    found = [(row["quantity"], row["value"]) for row in tables(sheet)["trial_figure"] if "quantity" in row]
    assert found[:3] == [("failed", 7.0), ("latency_s", 2.4), ("latency_s", 0.0125)]
    power = "Type,Name,Sample Count,Median Power,50%,95%\ncard,a,200,2400.0,2400,9000\ncard,b,100,40.0,40,90\n"
    assert "trial_figure" not in tables(power)


def test_cards_in_a_chinese_table() -> None:
    text = "| 卡号 | 已用显存 | 总显存 | 算力利用率 | 温度 |\n|--|--|--|--|--|\n| 0 | 30.5 GiB | 40 GiB | 98% | 61 |\n| 3 | 0.5 GiB | 40 GiB | 0% | 33 |\n"
    found = tables(text)["gpu_sample"]
    assert [(row["gpu"], row["used_bytes"], row["gpu_util"]) for row in found] == [(0, round(30.5 * (1 << 30)), 0.98), (3, 1 << 29, 0.0)]  # fmt: skip
    assert {row["total_bytes"] for row in found} == {40 << 30}


def test_units_that_change_within_a_column() -> None:
    sheet = "time,client_mem,net_sent\n08:30,512 MiB,1 GiB\n08:40,1.5 GiB,2 GiB\n08:50,2 GiB,512 MiB\n"
    found = tables(sheet)["process_memory"]
    assert [row["bytes"] for row in found] == [512 << 20, 3 << 29, 2 << 30]
