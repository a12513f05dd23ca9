"""Tables and documents of any form: what comes back of the samples written anew, real tools' outputs, and what is left alone."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import forms as again
from oomdoc import ingest
from oomdoc.ingest.forms import yaml_text
from oomdoc.ingest.forms.believe import looks_like_card, plan_for
from oomdoc.intake.scan import Chunk, chunks
from oomdoc.units import GIB, KIB, MIB

SAMPLES = Path(__file__).parents[2] / "sample_logs"
SOURCES = [
    "edge-097-chat-server/gpu.csv", "one-of-four-cards/gpu-samples.csv", "healthy-full-device/gpu-memory.log",
    "second-tenant-on-card-one/node/nvidia-smi.txt", "edge-097-chat-server/requests.csv", "healthy-full-device/requests.jsonl",
    "kv-demand-long-chats/requests.log", "prompt-logprobs-spike/gateway.jsonl", "kv-demand-long-chats/vllm.log",
    "healthy-full-device/metrics-20261124T090219Z.prom", "startup-probe-too-short/events.txt",
]  # fmt: skip


def tables(text: str | bytes, name: str = "evidence.txt") -> dict[str, list[dict[str, Any]]]:
    """Rows by table, without the columns that are NULL."""
    _, found = again.read(name, text.encode() if isinstance(text, str) else text)
    return {table: [{k: v for k, v in row.items() if v is not None and k != "line"} for row in rows] for table, rows in found.items()}  # fmt: skip


# ---- the samples in other forms


@pytest.mark.parametrize("source", SOURCES)
def test_what_a_sample_tells_is_read_again_in_every_form(source: str) -> None:
    cells: Counter[str] = Counter()
    back: Counter[str] = Counter()
    for table, form, one in again.tried(source, (SAMPLES / source).read_bytes(), ways=2):
        assert not one.misread, (table, form, one.misread)
        cells.update({table: one.cells, f"{table} {form}": one.cells})
        back.update({table: one.back, f"{table} {form}": one.back})
    assert cells
    for name in cells:
        least = 0.95 if " " not in name else 0.8
        if name.endswith(" aligned") and name.startswith("cluster_event"):
            least = 0.3  # kubectl's own form, read by its own reader, which wants kubectl's own columns
        elif name == "cluster_event":
            least = 0.9
        assert back[name] >= least * cells[name], f"{name}: {back[name]} of {cells[name]}"


def test_the_measure_sees_what_is_lost() -> None:
    source = again.Source("gpu_sample", [{"t": 1795205091.0, "gpu": at, "name": None, "used_bytes": (70 + at) * GIB, "total_bytes": 80 * GIB, "gpu_util": 0.5, "memory_util": None} for at in range(4)])  # fmt: skip
    text = "ts,gpu,mem_used_mib,mem_total_mib\n" + "".join(
        f"1795205091,{at},{(70 + at) * 1024},81920\n" for at in range(4)
    )
    assert again.score(source, ["t", "gpu", "used_bytes", "total_bytes"], text)[:2] == (16, 16)
    assert (
        again.score(source, ["t", "gpu", "used_bytes", "total_bytes"], text.replace("mem_used_mib", "blob")).back == 12
    )
    assert again.score(source, ["used_bytes"], "nothing of it\n").back == 0


# ---- outputs of tools that have no reader of their own

GPUSTAT = {
    "hostname": "node-3", "query_time": "2026-11-20T20:04:51.120000",
    "gpus": [{"index": 0, "uuid": "GPU-10fb0fbd-2696", "name": "NVIDIA A100-SXM4-80GB", "temperature.gpu": 56, "utilization.gpu": 97, "memory.used": 78012, "memory.total": 81920,
              "processes": [{"username": "svc", "command": "VLLM::EngineCore", "gpu_memory_usage": 77990, "pid": 4711}, {"username": "x", "command": "python3", "gpu_memory_usage": 12, "pid": 4800}]}],
}  # fmt: skip


def test_a_device_with_processes_is_one_sample_and_its_processes() -> None:
    found = tables(json.dumps(GPUSTAT, indent=2))
    assert found["gpu_sample"] == [{"t": 1795205091.12, "gpu": 0, "used_bytes": 78012 * MIB, "total_bytes": 81920 * MIB, "gpu_util": 0.97}]  # fmt: skip
    assert [(row["pid"], row["name"], row["used_bytes"], row["gpu"]) for row in found["gpu_process"]] == [(4711, "VLLM::EngineCore", 77990 * MIB, 0), (4800, "python3", 12 * MIB, 0)]  # fmt: skip
    assert found["gpu_device"][0]["name"] == "NVIDIA A100-SXM4-80GB"


def test_series_as_columns_with_their_labels() -> None:
    head = '"Time","vllm:kv_cache_usage_perc{engine=""0"", model_name=""m""}","vllm:kv_cache_usage_perc{engine=""1"", model_name=""m""}"\n'
    rows = tables(head + "2026-11-20 20:04:51,0.42,0.5\n2026-11-20 20:05:06,0.97,0.6\n")["metric"]
    assert [(row["labels"][:10], row["value"]) for row in rows] == [('engine="0"', 0.42), ('engine="1"', 0.5), ('engine="0"', 0.97), ('engine="1"', 0.6)]  # fmt: skip
    assert {row["name"] for row in rows} == {"vllm:kv_cache_usage_perc"} and rows[0]["t"] == 1795205091.0


def test_influx_lines() -> None:
    line = "nvidia_smi,index=0,name=NVIDIA\\ H100 memory_used=76012i,memory_total=81559i,utilization_gpu=93i 1795205091000000000\n"
    assert tables(line + line.replace("index=0", "index=1"))["gpu_sample"][1] == {"t": 1795205091.0, "gpu": 1, "used_bytes": 76012 * MIB, "total_bytes": 81559 * MIB, "gpu_util": 0.93}  # fmt: skip


def test_a_long_form_without_a_time_keeps_its_order() -> None:
    found = tables("metric,value\nkv_usage,0.5\nqueue_depth,3\nkv_usage,0.6\nqueue_depth,4\n")["engine_stat"]
    assert found == [{"kv_used": 0.5, "waiting": 3}, {"kv_used": 0.6, "waiting": 4}]


def test_columns_of_several_devices() -> None:
    text = "time,gpu0_mem_used_mib,gpu1_mem_used_mib,gpu0_util_pct\n2026-11-20T20:04:51Z,70000,70010,97\n2026-11-20T20:05:51Z,70001,70011,98\n"
    rows = tables(text)["gpu_sample"]
    assert [(row["gpu"], row["used_bytes"] // MIB) for row in rows] == [(0, 70000), (1, 70010), (0, 70001), (1, 70011)]


def test_a_status_tells_of_the_engine_and_of_the_device() -> None:
    found = tables(
        "engine:\n  kv_cache_usage: 0.97\n  running: 14\n  waiting: 31\ngpu:\n  memory_used: 76012 MiB\n  memory_total: 81559 MiB\n"
    )
    assert found["engine_stat"] == [{"running": 14, "waiting": 31, "kv_used": 0.97}]
    assert found["gpu_sample"] == [{"used_bytes": 76012 * MIB, "total_bytes": 81559 * MIB}]


def test_yaml_that_is_cut_gives_what_stands_before_the_cut() -> None:
    whole = "host: a\ngpus:\n" + "".join(
        f"  - index: {at}\n    memory_used: {7000 + at} MiB\n    memory_total: 81559 MiB\n" for at in range(4)
    )
    assert [row["gpu"] for row in tables(whole)["gpu_sample"]] == [0, 1, 2, 3]
    cut = whole[: whole.index("  - index: 3")] + '  - index: 3\n    memory_used: "700'
    assert [(row["gpu"], row["used_bytes"] // MIB) for row in tables(cut)["gpu_sample"]][:3] == [
        (0, 7000),
        (1, 7001),
        (2, 7002),
    ]


def test_toml_and_blocks_of_pairs() -> None:
    toml = '[[gpu]]\nindex = 0\nname = "NVIDIA H100"\nmemory_used = "76012 MiB"\nmemory_total = "81559 MiB"\n'
    blocks = "GPU 0:\n  Memory used: 76012 MiB\n  Memory total: 81559 MiB\n\nGPU 1:\n  Memory used: 12 MiB\n  Memory total: 81559 MiB\n"
    assert tables(toml)["gpu_sample"] == [{"gpu": 0, "used_bytes": 76012 * MIB, "total_bytes": 81559 * MIB}]
    assert [row["gpu"] for row in tables(blocks)["gpu_sample"]] == [0, 1]


def test_memory_of_the_host() -> None:
    for text in ('{"MemTotal": "527433516 kB", "MemFree": "2033516 kB"}', "# TYPE node_memory_MemTotal_bytes gauge\nnode_memory_MemTotal_bytes 540091920384\n"):  # fmt: skip
        assert [(row["topic"], row["value"]) for row in tables(text)["note"]] == [("host-size", 527433516 * KIB)]


def test_resident_memory_of_processes() -> None:
    entries = [{"timestamp": 1795205091 + 60 * at, "pid": 4711, "name": "VLLM::EngineCore", "memory_info": {"rss": 19327352832 + at}} for at in range(2)]  # fmt: skip
    assert [(row["name"], row["bytes"], row["resource"]) for row in tables(json.dumps(entries))["process_memory"]] == [
        ("VLLM::EngineCore (pid 4711)", 19327352832, "host"), ("VLLM::EngineCore (pid 4711)", 19327352833, "host"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name", ["in_tok", "n_prompt", "usage.prompt_tokens", "input_len", "promptTokens", "response.usage.prompt_tokens"]
)
@pytest.mark.parametrize("other", ["out_tok", "generated", "usage.completion_tokens", "new_tokens"])
def test_no_name_of_a_token_column_drops_a_log(name: str, other: str) -> None:
    entry = {"ts": "2026-11-20T20:04:51Z", "model": "m", name: 7420, other: 512, "took_s": 8.25, "http_code": 200}
    rows = tables("".join(json.dumps(entry) + "\n" for _ in range(3)))["request"]
    assert rows == [{"t": 1795205091.0, "input_tokens": 7420, "output_tokens": 512, "latency_s": 8.25, "status": 200, "model": "m"}] * 3  # fmt: skip


# ---- cards are no processes, and other programs' tables are theirs

QUERY = "timestamp{0} index{0} name{0} memory.used [MiB]{0} memory.total [MiB]{0} utilization.gpu [%]\n2026/11/20 20:04:51.120{0} 0{0} NVIDIA H100 80GB HBM3{0} 76012 MiB{0} 81559 MiB{0} 93 %\n"


@pytest.mark.parametrize("delimiter", [";", "\t", "|", " |"])
def test_cards_behind_another_delimiter_are_no_processes(delimiter: str) -> None:
    found = tables(QUERY.format(delimiter))
    assert not {"process_memory", "gpu_process"} & set(found)
    assert found["gpu_sample"] == [{"t": 1795205091.12, "gpu": 0, "used_bytes": 76012 * MIB, "total_bytes": 81559 * MIB, "gpu_util": 0.93}]  # fmt: skip


def test_a_table_of_cards_in_the_middle_of_prose() -> None:
    text = "The server died twice this week, each time after a long prompt.\n\n| GPU | Name | Memory-Usage |\n|---|---|---|\n| 0 | NVIDIA A100-SXM4-80GB | 79000 MiB |\n\nOnly a restart brings the memory back, and nobody touched the settings in between.\n" + "It was fine before the update of the driver.\n" * 6  # fmt: skip
    found = tables(text)
    assert "process_memory" not in found and found["gpu_sample"] == [{"gpu": 0, "used_bytes": 79000 * MIB}]
    assert any(row["topic"] == "restart-cures" for row in found["note"])


def test_names_that_look_like_cards() -> None:
    assert looks_like_card("Tesla T4") and looks_like_card("AMD Instinct MI300X") and looks_like_card("H200")
    assert (
        not looks_like_card("VLLM::EngineCore")
        and not looks_like_card("/opt/venv/bin/python3")
        and not looks_like_card("ray::Worker")
    )


OTHERS = {
    "zfs": "time,hits,misses,used,total,free\n2026-11-20T20:04:51Z,100,3,512,81559,400\n2026-11-20T20:05:51Z,100,3,512,81559,400\n",
    "pools": "time,index,used,total,load,arcsz,l2hits\n2026-11-20T20:04:51Z,0,512,81559,4,12,3\n2026-11-20T20:05:51Z,1,612,81559,5,12,3\n",
    "arcstat": "    time  hits  miss  hit%  l2hits  used  total  arcsz\n11:00:00   100     3    97       3   512  81559    12G\n",
    "redis": "# Memory\nused_memory:1073741824\nused_memory_human:1.00G\nused_memory_rss:1173741824\nmaxmemory:2147483648\nkeyspace_hits:100\nevicted_keys:4\n",
    "redis-json": json.dumps({"redis_version": "7.2", "used_memory": 1073741824, "used_memory_rss": 1173741824, "maxmemory": 2147483648, "keyspace_hits": 4}),
    "access": '{"time":"2026-11-20T20:04:51Z","remote_addr":"10.0.0.1","request":"GET /health","status":200,"body_bytes_sent":12,"request_time":0.001}\n' * 3,
    "df": "Filesystem      Size  Used Avail Use% Mounted on\n/dev/nvme0n1p1  880G  512G  368G  59% /\n",
    "free": "               total        used        free      shared  buff/cache   available\nMem:          515652      498000        2000         300       15652       12000\n",
    "training": "epoch,step,loss,lr,tokens,gpu_mem\n1,100,2.3,0.0001,4096,70000\n1,200,2.2,0.0001,4096,70000\n",
    "people": "name,age,city\nAda,36,London\nAlan,41,Wilmslow\n",
    "queue": "queue,messages_ready,messages_unacknowledged,consumers\nemail,3,4,1\npdf,0,0,1\n",
    "prices": '[{"name": "small", "total": 12, "used": 4}, {"name": "large", "total": 90, "used": 41}]',
    "java": "time,heap_used,heap_max,gc_count\n2026-11-20T20:04:51Z,512,2048,4\n2026-11-20T20:05:51Z,612,2048,5\n",
}  # fmt: skip
MEASURES = {
    "gpu_sample",
    "gpu_process",
    "process_memory",
    "request",
    "metric",
    "engine_stat",
    "engine_figure",
    "cluster_event",
    "gpu_device",
}


@pytest.mark.parametrize("program", OTHERS)
def test_a_table_of_another_program_is_not_taken(program: str) -> None:
    assert not MEASURES & set(tables(OTHERS[program]))


def test_a_name_without_a_plausible_value_is_not_taken() -> None:
    assert plan_for([{"gpu": "0", "gpu_mem_used": "many", "gpu_mem_total": "more"}]) is None
    assert plan_for([{"ts": 1795205091, "prompt_tokens": "hello there", "completion_tokens": "hi"}]) is None
    assert plan_for([{"ts": 1795205091, "prompt_tokens": "12", "completion_tokens": "4"}]) is not None


# ---- what was not understood is told


def test_a_column_of_unknown_meaning_is_a_problem() -> None:
    found = tables(
        "ts,gpu,mem_used_mib,mem_total_mib,wobble,temp_c\n1795205091,0,70000,81559,4,50\n1795205151,0,70000,81559,5,51\n"
    )
    assert [row["reason"] for row in found["problem"]] == [
        "a column of unknown meaning in a table of gpu_sample: wobble"
    ]


@pytest.mark.parametrize("name", ["mem_used_mib", "fb_used", "vram used (MiB)", "memUsedMiB"])
def test_a_renamed_column_of_nvidia_smi_is_no_null(name: str) -> None:
    text = QUERY.format(",").replace("memory.used [MiB]", name)
    assert tables(text)["gpu_sample"][0]["used_bytes"] == 76012 * MIB


def test_a_column_of_a_request_log_that_nobody_knows_is_told() -> None:
    found = tables("ts,prompt_tokens,completion_tokens,wobble,request_id\n1795205091,12,4,7,a\n")
    assert [row["text"] for row in found["problem"]] == ["wobble"] and len(found["request"]) == 1


def test_what_a_column_was_taken_for() -> None:
    found = tables("ts;gpu;mem_used_mib;mem_total_mib\n1795205091;0;70000;81559\n")
    assert [(row["name"], row["taken_for"]) for row in found["column_reading"]] == [
        ("ts", "gpu_sample.t"), ("gpu", "gpu_sample.gpu"), ("mem_used_mib", "gpu_sample.used_bytes in MiB"), ("mem_total_mib", "gpu_sample.total_bytes in MiB"),
    ]  # fmt: skip


def test_more_in_use_than_there_is_is_a_problem() -> None:
    found = tables("ts,gpu,mem_used_mib,mem_total_mib\n1795205091,0,90000,81559\n1795205091,1,70000,81559\n")
    assert "used_bytes" not in found["gpu_sample"][0] and found["gpu_sample"][1]["used_bytes"] == 70000 * MIB
    assert "more memory in use than there is" in found["problem"][0]["reason"]


# ---- hostile documents


def test_yaml_is_parsed_and_never_made() -> None:
    record = next(yaml_text.records("a: !!python/object/apply:os.system ['true']\nb: 3\n"))
    assert record.values["b"] == "3"
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))
    assert sum(len(record.values) for record in yaml_text.records(bomb)) < 500_000
    list(yaml_text.records("a: " + "[" * 600 + "]" * 600))
    with pytest.raises(yaml_text.NotYamlError, match="long"):
        list(yaml_text.records("a: 1\n" * 200_000))
    assert tables(bomb + "gpu: {memory_used: 3}\n").get("gpu_sample") is None


@pytest.mark.parametrize(
    "text",
    [
        "{" * 5000,
        "[" * 5000,
        '{"gpus": [' * 400,
        '{"a": "' + "x" * 100_000,
        "|" * 50_000 + "\n",
        "a,b\n" * 5,
        ",".join("c" * 3 for _ in range(9000)) + "\n",
    ],
)
def test_nonsense_raises_nothing(text: str) -> None:
    tables(text)


def test_a_document_that_ends_early_gives_what_it_has() -> None:
    whole = json.dumps(
        [{"ts": 1795205091 + at, "gpu": 0, "mem_used_mib": 70000 + at, "mem_total_mib": 81559} for at in range(50)]
    )
    found = tables(whole[:-400])
    assert len(found["gpu_sample"]) > 35 and "ends early" in found["problem"][0]["reason"]


def test_lines_are_those_of_the_source() -> None:
    text = "# from the node\n\nts;gpu;mem_used_mib;mem_total_mib\n1795205091;0;70000;81559\n1795205151;0;70001;81559\n"
    _, found = again.read("x", text.encode())
    assert [row["line"] for row in found["gpu_sample"]] == [4, 5]
    _, found = again.read("x", json.dumps([{"ts": 1795205091, "gpu": at, "mem_used_mib": 7000, "mem_total_mib": 81559} for at in range(3)], indent=0).replace("{\n", "{").encode())  # fmt: skip
    assert len({row["line"] for row in found["gpu_sample"]}) == 3


def test_chunks_do_not_change_what_is_read() -> None:
    text = (
        "ts;gpu;mem_used_mib;mem_total_mib\n"
        + "".join(f"{1795205091 + at};{at % 4};{70000 + at};81559\n" for at in range(3000))
    ).encode()
    ingestor, kind = ingest.recognise(ingest.make_head("x", text))
    assert kind == "table"
    counts = {
        size: sum(
            batch.rows
            for batch in ingest.read(ingestor, "x", chunks(io.BytesIO(text), size))
            if batch.table == "gpu_sample"
        )
        for size in (1 << 12, 1 << 20)
    }
    assert counts == {1 << 12: 3000, 1 << 20: 3000}


def test_logs_and_prose_are_no_tables() -> None:
    for text in (
        "INFO 11-20 20:04:51 [a.py:1] memory used, total, free\n" * 20,
        "Used memory, total memory and GPU utilization went up.\nThen it died, as it does.\n" * 5,
        "name: demo\nservices:\n  - a\n  - b\nversion: 3\n",
    ):
        head = ingest.make_head("x", text.encode())
        assert ingest.recognise(head)[1] != "table"
        assert not MEASURES & {batch.table for batch in ingest.read(ingest.recognise(head)[0], "x", [Chunk(text.encode(), 1, True)])} - {"request"}  # fmt: skip


def test_the_kinds_are_listed_once() -> None:
    assert len(set(ingest.KINDS)) == len(ingest.KINDS) and "table" in ingest.KINDS
    assert re.fullmatch(r"[a-z-]+", "table")


def rows_of(path: str, text: str, table: str) -> list[dict[str, Any]]:
    """The rows that a text gives for a table."""
    data = text.encode()
    ingestor, _ = ingest.recognise(ingest.make_head(path, data))
    found: list[dict[str, Any]] = []
    for batch in ingest.read(ingestor, path, chunks(io.BytesIO(data))):
        if batch.table == table:
            columns = batch.columns
            found += [{name: values[at] for name, values in columns.items()} for at in range(batch.rows)]
    return found


STATED = "".join(f"I20270302 10:0{minute}:00.5 604 sched.cc:7] running: {minute}, waiting: 0, kv cache utilization: {10 + minute}.5%, steps: 9\n" for minute in range(5))  # fmt: skip


def test_statements_that_come_again_are_a_table() -> None:
    """Three lines of one form are; two are a remark."""
    rows = rows_of("node.log", "boot\n" * 20 + STATED, "engine_stat")
    assert [row["running"] for row in rows] == [0, 1, 2, 3, 4]
    assert rows[2]["kv_used"] == pytest.approx(0.125) and rows[2]["t"] is not None
    assert rows_of("node.log", "boot\n" * 20 + "\n".join(STATED.split("\n")[:2]), "engine_stat") == []


def test_statements_in_json_behind_a_head_tell_blocks_in_use_and_in_all() -> None:
    """A log of 300 KB of them is no prose: it is read line by line."""
    line = 'I0514 21:01:40.02 160 state.cc:813] {"Active Request Count":1,"Used KV cache blocks":20,"Max KV cache blocks":160,"Pad":"%s"}\n'
    rows = rows_of("triton.log", "".join(line % ("x" * 900) for _ in range(320)), "engine_stat")
    assert len(rows) == 320
    assert rows[0]["kv_used"] == pytest.approx(0.125) and rows[0]["running"] == 1


def test_columns_of_several_replicas_are_rows_of_their_own() -> None:
    """`kv_pod2` is the usage of the second; a replica that is not there has no row."""
    text = "time,kv_pod1,kv_pod2,waiting_total,replicas_ready\n2027-03-02T10:00:00Z,0.7,,4,1\n2027-03-02T10:01:00Z,0.4,0.3,0,2\n2027-03-02T10:02:00Z,0.4,0.2,0,2\n"
    rows = rows_of("timeline.csv", text, "engine_stat")
    assert [row["kv_used"] for row in rows] == [0.7, 0.4, 0.3, 0.4, 0.2]
    assert [row["replicas"] for row in rows_of("timeline.csv", text, "scaler")] == [1, 2, 2]


def test_a_rule_in_two_columns_tells_bounds_and_threshold() -> None:
    """`min/max   1 / 4` are two figures."""
    rows = rows_of(
        "rule.txt",
        "metric name   vllm_num_requests_waiting\nthreshold     5\nmin/max       1 / 4\ncooldown      60 s\n",
        "scaler",
    )
    assert [(row["name"], row["threshold"], row["minimum"], row["maximum"]) for row in rows] == [("vllm_num_requests_waiting", 5.0, 1, 4)]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "kept"),
    [("sglang:num_queue_reqs", "vllm:num_requests_waiting"), ("llamacpp:requests_processing", "vllm:num_requests_running"), ("tgi_queue_size", "vllm:num_requests_waiting")],
)  # fmt: skip
def test_metrics_of_other_exporters_are_the_same_quantities(name: str, kept: str) -> None:
    """In a scrape, and as the header of a table."""
    scrape = f'# HELP vllm:x y\n# TYPE vllm:x gauge\nvllm:x 1\n{name}{{model="m"}} 7\n'
    assert [row["value"] for row in rows_of("m.prom", scrape, "metric") if row["name"] == kept] == [7.0]
    table = f"time,{name}\n2027-03-02T10:00:00Z,7\n2027-03-02T10:01:00Z,8\n"
    assert [row["value"] for row in rows_of("m.csv", table, "metric") if row["name"] == kept] == [7.0, 8.0]


def test_columns_that_share_a_space_between_bars_are_two() -> None:
    text = (
        "+-------------------+---------------+----------------------------------------------------+\n"
        "| NPU     Chip      | Process id    | Process name             | Process memory(MB)      |\n"
        "+===================+===============+====================================================+\n"
        "| 0       0         | 669096        | VLLMWorker_TP            | 55124                   |\n"
        "| 1       0         | 669109        | VLLMWorker_TP            | 107                     |\n"
        "+-------------------+---------------+----------------------------------------------------+\n"
    )
    _, found = again.read("npu-smi.txt", text.encode())
    assert [(row["gpu"], row["pid"], row["name"], row["used_bytes"]) for row in found["gpu_process"]] == [
        (0, 669096, "VLLMWorker_TP", 55124 * MIB),
        (1, 669109, "VLLMWorker_TP", 107 * MIB),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pod,waiting,running\nserve-0,31,6\nserve-1,0,2\n", [("serve-0", 31, 6), ("serve-1", 0, 2)]),
        ("| worker | queue | active |\n|---|---|---|\n| a | 9 | 4 |\n| b | 1 | 4 |\n", [("a", 9, 4), ("b", 1, 4)]),
        ("endpoint      pending  in_flight\n10.0.0.1:80   12       7\n10.0.0.2:80   0        1\n", [("10.0.0.1:80", 12, 7), ("10.0.0.2:80", 0, 1)]),
    ],
)  # fmt: skip
def test_the_queue_of_each_of_several_servers(text: str, expected: list[tuple[str, int, int]]) -> None:
    found = tables(text).get("engine_stat", [])
    assert [(row["process"], row["waiting"], row["running"]) for row in found] == expected


@pytest.mark.parametrize(
    "text",
    [
        "server,cl_active,cl_waiting,sv_active,sv_idle,sv_used,maxwait\ndb1,4,2,3,1,0,0\ndb2,1,0,3,1,0,0\n",
        "worker,queue,active\ncelery@a,default,4\ncelery@b,mail,2\n",
        "pod,waiting,running\nsame,3,1\nsame,4,1\n",
    ],
)
def test_pools_of_other_programs_are_no_servers_of_ours(text: str) -> None:
    assert tables(text).get("engine_stat", []) == []


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Queue state: replica=r-{}, pending_requests={}", ("waiting", [4, 9, 15])),
        ("Pool utilization snapshot - replica=r-{}, queueDepth={}", ("waiting", [4, 9, 15])),
        ("KV cache stats: instance=r-{}, usage=0.{}", ("kv_used", [0.4, 0.9, 0.15])),
    ],
)
def test_pairs_inside_of_a_logger_s_messages(message: str, expected: tuple[str, list[float]]) -> None:
    values = (4, 9, 15)
    text = "".join(f'{{"ts":"2027-01-02T03:0{at}:00Z","level":"info","msg":"{message.format(at, value)}"}}\n' for at, value in enumerate(values))  # fmt: skip
    rows = tables(text).get("engine_stat", [])
    assert [row[expected[0]] for row in rows] == expected[1]
    assert [row["process"] for row in rows] == ["r-0", "r-1", "r-2"]


def test_a_process_s_status_again_and_again_is_one_series() -> None:
    text = "".join(f"t={60 * at}s  VmRSS: {5_000_000 + 900_000 * at} kB  VmData: 77 kB\n" for at in range(4))
    rows = tables(text).get("process_memory", [])
    assert [(row["elapsed_s"], row["bytes"]) for row in rows] == [(60.0 * at, (5_000_000 + 900_000 * at) * 1024) for at in range(4)]  # fmt: skip


# ---- moments without a year, objects by name, file systems


def test_a_month_a_day_and_a_clock_count_in_the_nominal_year() -> None:
    rows = tables("time,running,waiting,kv_usage\n06-08 02:30,12,0,0.41\n06-08 02:31,14,1,0.61\n06-08 03,18,3,0.99\n")
    assert [row["t"] - rows["engine_stat"][0]["t"] for row in rows["engine_stat"]] == [0.0, 60.0, 1800.0]


@pytest.mark.parametrize("clock", ["02:3{n}", "8/6 02:3{n}", "08.06 02:3{n}"], ids=["no day", "a slash", "a point"])
def test_a_clock_whose_day_nobody_tells_is_no_moment(clock: str) -> None:
    text = "time,running,waiting,kv_usage\n" + "".join(f"{clock.format(n=n)},12,{n},0.4{n}\n" for n in range(3))
    assert all("t" not in row for row in tables(text)["engine_stat"])


def test_an_order_without_a_clock_is_known() -> None:
    rows = tables("step,running,waiting,kv_usage\n1,12,0,0.41\n2,14,1,0.61\n3,18,3,0.99\n")
    assert len(rows["engine_stat"]) == 3
    assert "problem" not in rows


def test_objects_under_the_names_of_hosts_are_devices_of_each() -> None:
    value = {f"gpu-a{n}": {"gpu_mem_used_mib": 40_000 + n, "gpu_mem_total_mib": 81_559} for n in (1, 2)}
    _, found = again.read("m.json", json.dumps(value).encode())
    assert sorted(row["used_bytes"] for row in found["gpu_sample"]) == [40_001 * MIB, 40_002 * MIB]


def test_objects_under_the_names_of_states_are_no_hosts() -> None:
    value = {name: {"mem_used_mib": 40_000, "mem_total_mib": 81_559} for name in ("before-sleep", "after-sleep")}
    rows = tables(json.dumps(value), "m.json")
    assert not any("sleep" in str(row.get("taken_for")) for row in rows.get("column_reading", []))
    assert len(rows.get("gpu_sample", [])) <= 1


def test_a_table_of_mounts_in_kibibytes() -> None:
    rows = tables("filesystem,mount,size_1k,used_1k,avail_1k\ntmpfs,/dev/shm,65536,65500,36\n/dev/sda1,/,1024000,924000,100000\n")  # fmt: skip
    told = {row["topic"]: row["value"] for row in rows["note"]}
    assert told == {"shm-size": 64 * MIB, "shm-used": 65_500 * KIB, "disk-free": 100_000 * KIB}
    assert rows["host_event"][0]["limit_bytes"] == 64 * MIB
    context = tables("run,vram_1k,vram_8k\na,40.1,41.2\nb,40.3,41.9\n")
    assert "shm-size" not in {row["topic"] for row in context.get("note", [])}, "a context of so many tokens is no unit"
