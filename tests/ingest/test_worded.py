"""Readings in words, tables without a header above their first column, outcomes under conditions: forms that carry no names of tools."""

from __future__ import annotations

from typing import Any

import pytest

import forms


def read(text: str, name: str = "evidence.txt") -> dict[str, list[dict[str, Any]]]:
    return forms.read(name, text.encode())[1]


def cells(text: str, table: str, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row.get(column) for column in columns) for row in read(text).get(table, ())]


GIB = 1 << 30


def test_lines_of_one_wording_under_their_clock_are_samples_of_a_device() -> None:
    text = "loop on the desk machine\n" + "".join(
        f"07:{at}:10  GPU use {at} %  VRAM {at / 2} / 48.0 GiB  power 90 W\n" for at in range(20, 25)
    )
    found = cells(text, "gpu_sample", "gpu_util", "used_bytes", "total_bytes")
    assert found == [(at / 100, int(at / 2 * GIB), 48 * GIB) for at in range(20, 25)]


def test_a_size_behind_its_name_is_a_course_of_memory() -> None:
    text = "".join(f"[eval] 0{at}:00:00 arc tasks {at}/900  MemAvailable {60 - at}.0 GiB\n" for at in range(1, 6))
    found = cells(text, "process_memory", "resource", "bytes", "elapsed_s")
    assert found == [("host-available", (60 - at) * GIB, (at - 1) * 3600.0) for at in range(1, 6)]


def test_status_and_duration_of_a_request_need_no_name() -> None:
    text = "".join(f"call {at}: 200, {at}.5 s, prompt {at}00 tokens, answer {at}0 tokens\n" for at in range(1, 5))
    found = cells(text, "request", "input_tokens", "output_tokens", "status", "latency_s")
    assert found == [(at * 100, at * 10, 200, at + 0.5) for at in range(1, 5)]


def test_turns_in_a_row_are_no_conditions_and_rounds_of_a_load_are() -> None:
    assert not read("".join(f"lease {chr(96 + at)}   first token {at}.25 s\n" for at in range(1, 6))).get("trial")
    said = "soak of the new box\none caller, five turns\nnothing else runs\nno errors\n"
    turns = read(said + "".join(f"turn {at}/9: status=200 ttft={at}60ms vram=4{at}434MiB\n" for at in range(1, 6)))
    assert not turns.get("trial")
    assert [row["bytes"] for row in turns["process_memory"]] == [(40434 + at * 1000) << 20 for at in range(1, 6)]
    text = "".join(f"round {at}   users {at}0   mean TTFT {at}.25 s\n" for at in range(1, 6))
    assert [row["value"] for row in read(text)["trial_figure"] if row["quantity"] == "ttft_s"] == [
        at + 0.25 for at in range(1, 6)
    ]


@pytest.mark.parametrize(
    ("line", "table", "columns", "expected"),
    [
        ("1{at}:00:05  {at}7 %, 4{at}110 MiB", "gpu_sample", ("gpu_util", "used_bytes"), lambda at: ((at * 10 + 7) / 100, (40110 + at * 1000) << 20)),
        ("1{at}:30  web-{at}  113.5%  {at}.5GiB / 64GiB  9.1%  jobs=0", "process_memory", ("name", "resource", "bytes"), lambda at: (f"web-{at}", "container", int((at + 0.5) * GIB))),
    ],
)  # fmt: skip
def test_cells_of_tools_without_their_header(line: str, table: str, columns: tuple[str, ...], expected: Any) -> None:
    text = "".join(line.format(at=at) + "\n" for at in range(1, 5))
    assert cells(text, table, *columns) == [expected(at) for at in range(1, 5)]


@pytest.mark.parametrize(
    "line",
    [
        "1{at}:00:05  hall {at}7 %, 4{at}110 lux",  # another program's readings
        "shelf {at}: 200, 2.8 s, prompt delivery {at}51 parcels",
        "2026-03-0{at} 10:00:00 INFO saved {at} GiB to disk, memory 3.{at} GiB",  # a log's line has its reader
        "1{at}:00  keys resident 9{at}  evicted {at}",  # a count is no memory
        "[Tue Feb 17 21:0{at}:41 2026] Memory cgroup out of memory: Killed process 91{at} (python3) anon-rss:3168732{at}kB, file-rss:16408{at}kB",
        "[ 61{at}.220144] slab 9{at} MB  anon-rss {at} GB",
        "in {at}192 out 1024 conc 4",  # asked of a load generator, and no request
    ],
)
def test_readings_of_other_things_are_none(line: str) -> None:
    found = read("".join(line.format(at=at) + "\n" for at in range(1, 6)))
    assert not {"gpu_sample", "process_memory", "request", "engine_stat", "trial"} & {name for name, rows in found.items() if rows}  # fmt: skip


def test_two_lines_are_a_remark() -> None:
    assert not read("10:00  VRAM 3.0 / 8.0 GiB\n10:05  VRAM 3.1 / 8.0 GiB\n").get("gpu_sample")


# ---- tables


def test_a_first_column_without_a_name_says_what_each_row_is() -> None:
    text = "            mean first token   prompt tokens   prefix_cache_hits\nplain       0.41 s             90,112          0\nshared      0.09 s             90,112          81,920\n"
    found = read(text)
    assert [row["value"] for row in found["trial"] if row["flag"] == "@what"] == ["plain", "shared"]
    assert [row["value"] for row in found["trial_figure"] if row["quantity"] == "hit_tokens"] == [0.0, 81920.0]


def test_a_remark_behind_the_header_is_no_column() -> None:
    text = "time   fb_used_MiB      (node-9, A40 46068)\n08:00  11002\n09:00  12004\n10:00  13006\n"
    assert cells(text, "process_memory", "bytes") == [(number << 20,) for number in (11002, 12004, 13006)]


def test_outcomes_under_loads_are_tries() -> None:
    text = "| batch | limit | result |\n|---|---|---|\n| 8 | 64 GiB | ok |\n| 24 | 64 GiB | gone after 2 h |\n| 24 | 96 GiB | ok |\n"
    found = read(text)["trial"]
    assert [(row["flag"], row["value"], row["works"]) for row in found if row["flag"] == "@batch"] == [("@batch", "8", True), ("@batch", "24", False), ("@batch", "24", True)]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "| compiler | pages | result |\n|---|---|---|\n| gcc | 3 | ok |\n| clang | 4 | failed |\n",
        "| limit | result |\n|---|---|\n| none | ok |\n| soft | failed |\n",  # no amount
        "| batch | result |\n|---|---|\n| 8 | ok |\n| 16 | ok |\n",  # nothing failed
    ],
)
def test_outcomes_of_other_things_are_none(text: str) -> None:
    assert not read(text).get("trial")


def test_work_that_is_done_orders_a_course() -> None:
    text = "images_done,rss_gib_v1,rss_gib_v2\n0,8.0,8.5\n50,9.0,12.5\n100,9.5,17.0\n"
    found = cells(text, "process_memory", "requests", "variant", "bytes")
    assert (100.0, "v 2", 17 * GIB) in found and len(found) == 6


def test_requests_in_german() -> None:
    text = "Eingang;Mandant;Token_ein;Token_aus;Dauer_s;HTTP\n" + "".join(
        f"10:0{at}:00.10;bau;{at}100;{at}0;{at}.5;200\n" for at in range(1, 5)
    )
    found = cells(text, "request", "tenant", "input_tokens", "output_tokens", "latency_s", "status")
    assert found == [("bau", at * 1000 + 100, at * 10, at + 0.5, 200) for at in range(1, 5)]


# ---- screens and listings


def test_npu_smi_and_nvtop() -> None:
    npu = "| 3     910B3               | OK            | 88.1        41                0    / 0             |\n| 0                         | 0000:41:00.0  | 12          0    / 0          30112/ 65536         |\n+------+\n| 3       0                 | 8812          | python3                  | 28811                   |\n"
    found = read(npu)
    assert [(row["gpu"], row["used_bytes"] >> 20, row["total_bytes"] >> 20, row["gpu_util"]) for row in found["gpu_sample"]] == [(3, 30112, 65536, 0.12)]  # fmt: skip
    assert [(row["pid"], row["used_bytes"] >> 20) for row in found["gpu_process"]] == [(8812, 28811)]
    top = " Device 2 [NVIDIA A40] PCIe GEN 4@16x  TEMP 40C  POW  70 / 300 W\n GPU[||||      17%] MEM[||||||||      31.5Gi/45.0Gi]\n"
    assert cells(top, "gpu_sample", "gpu", "gpu_util", "used_bytes") == [(2, 0.17, int(31.5 * GIB))]


def test_a_box_on_one_line_is_read_with_its_use_and_beside_prose() -> None:
    text = (
        "an hour later, nobody asks:\n|   1  Tesla V100-SXM2-16GB  | 15100MiB / 16384MiB |   3%  |\nsame error again\n"
    )
    assert cells(text, "gpu_sample", "gpu", "used_bytes", "gpu_util") == [(1, 15100 << 20, 0.03)]


def test_rows_of_slices_need_no_frame() -> None:
    text = "|  0    7   0   0  |             113MiB /  9728MiB    | 14      0 |  1   0    0    0    0 |\n|  0    8   0   1  |            9001MiB /  9728MiB    | 14      0 |  1   0    0    0    0 |\n"
    assert cells(text, "gpu_device", "gpu", "used_bytes") == [(0, 113 << 20), (0, 9001 << 20)]


def test_atop_and_tegrastats() -> None:
    atop = "ATOP - box-1     2026/02/03  11:20:00     ----------------     10m0s elapsed\n\n    PID    TID  VSIZE   RSIZE  VGROW  RGROW  MEM  CMD\n   7001      -  30.2G   5.50G     0K   119M   3%  VLLM::ApiServe\n   7004      -  31.4G   912M      0K   139M   3%  python3\n   7009      -  31.4G   1.00G     0K   139M   3%  python3\n"
    found = cells(atop, "process_memory", "name", "bytes", "t")
    assert found[0] == ("VLLM::ApiServe (pid 7001)", int(5.5 * GIB), 1770117600.0) and found[1][1] == 912 << 20
    tegra = "".join(
        f"02-03-2026 11:20:0{at} RAM {at}000/30000MB (lfb 2x2MB) SWAP 1/9MB (cached 0MB) CPU [4%,2%]\n"
        for at in range(1, 4)
    )
    assert cells(tegra, "process_memory", "resource", "bytes") == [("host-available", (30000 - at * 1000) << 20) for at in range(1, 4)]  # fmt: skip


# ---- objects of the cluster


def test_a_resource_of_an_extension_has_containers_in_all_but_name() -> None:
    text = "apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService\nmetadata: {name: chat, namespace: ml}\nspec:\n  predictor:\n    model:\n      modelFormat: {name: huggingface}\n      args: [--max-model-len=3072, --tensor-parallel-size=2]\n      resources:\n        limits: {memory: 48Gi, nvidia.com/gpu: '2'}\n"
    assert cells(text, "container", "pod", "memory_limit_bytes", "gpus", "serves") == [("chat", 48 * GIB, 2, True)]
    assert set(cells(text, "engine_flag", "flag", "value")) == {
        ("max_model_len", "3072"),
        ("tensor_parallel_size", "2"),
    }


def test_keys_of_a_resource_are_settings() -> None:
    text = "apiVersion: example.ai/v1\nkind: ModelRuntime\nmetadata: {name: a}\nspec:\n  model: {modelURL: org/some-7b, maxModelLen: 9000}\n  parallelism: {tensor: 4}\n  engineConfig: {gpuMemoryUtilization: 0.8}\n"
    assert set(cells(text, "engine_flag", "flag", "value")) == {("model", "org/some-7b"), ("max_model_len", "9000"), ("tensor_parallel_size", "4"), ("gpu_memory_utilization", "0.8")}  # fmt: skip


def test_a_resource_of_another_program_has_none() -> None:
    text = "apiVersion: networking.example.io/v1\nkind: VirtualService\nmetadata: {name: a}\nspec:\n  hosts: [shop]\n  http: [{route: [{destination: {host: shop, port: {number: 80}}}]}]\n"
    found = read(text)
    assert not found.get("container") and not found.get("engine_flag")


@pytest.mark.parametrize(
    "text",
    [
        "        livenessProbe:\n          httpGet: {path: /health, port: 9000}\n          periodSeconds: 7\n          failureThreshold: 2\n",
        "livenessProbe: {httpGet: {path: /health, port: 9000}, periodSeconds: 7, failureThreshold: 2}   # one second each\n",
        "          readinessProbe: {httpGet: {path: /ready, port: 9000}}\n          livenessProbe: {httpGet: {path: /health, port: 9000}, periodSeconds: 7, failureThreshold: 2}\n",
    ],
)
def test_a_probe_needs_no_container_around_it(text: str) -> None:
    assert cells(text, "container", "liveness") == [("http-get http://:9000/health delay=0s timeout=1s period=7s #success=1 #failure=2",)]  # fmt: skip


@pytest.mark.parametrize("form", ["json-lines", "aligned", "hits", "markdown", "yaml"])
def test_a_collector_that_names_its_columns_as_ps_does_keeps_its_moments(form: str) -> None:
    import reshaped

    rows: list[list[Any]] = [
        [f"2026-11-23T16:1{at}:22Z", str(700 + at), "python3", str(90_000 + at)] for at in range(6)
    ]
    text = reshaped.SHEET_FORMS[form](["timestamp", "pid", "comm", "rss_kb"], rows)
    found = cells(text, "process_memory", "name", "bytes")
    assert found == [(f"python3 (pid {700 + at})", (90_000 + at) * 1024) for at in range(6)]
    assert all(row["t"] is not None for row in read(text)["process_memory"])
