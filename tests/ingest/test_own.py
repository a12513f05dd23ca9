"""Tables that people keep: names taken apart, memory over time, experiments, memory groups; each with words and numbers of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import forms as again
from oomdoc.ingest import make_head, memory_group
from oomdoc.ingest.forms.grammar import column_of, pieces
from oomdoc.ingest.setting_names import may_name_settings, of_header, settings_in
from oomdoc.ingest.trials import Tries
from oomdoc.intake.scan import Chunk
from oomdoc.units import GIB, MIB


def rows(text: str, table: str) -> list[dict[str, Any]]:
    """Rows of one table, without the columns that are NULL."""
    _, found = again.read("evidence.txt", text.encode())
    return [{k: v for k, v in row.items() if v is not None} for row in found.get(table, [])]


def of_lines(lines: list[str]) -> list[tuple[int, str, str, bool]]:
    """Number of the try, setting, value and outcome of all tries in some lines."""
    tries = Tries()
    tries.hear(Chunk("\n".join(lines).encode(), 1, True))
    told = [batch.columns for batch in tries.take()]
    return [
        row
        for each in told
        for row in zip(*(each[name] for name in ("attempt", "flag", "value", "works")), strict=True)
    ]


# ---- names


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("pss_mib_spec_off", {"role": "memory", "resource": "host", "unit": "MiB", "variant": "spec off"}),
        ("RSS (GiB) v0.19.1", {"role": "memory", "resource": "host", "unit": "GiB", "variant": "v 0.19.1"}),
        ("rank3_uss_gb", {"role": "memory", "resource": "host", "unit": "GB", "who": "rank 3"}),
        ("cuda7_gib", {"role": "memory", "resource": "gpu", "unit": "GiB", "gpu": 7}),
        ("node_mem_free_gib", {"role": "memory", "resource": "host-available"}),
        ("swap_mib", {"role": "memory", "resource": "swap"}),
        ("page_cache_gib", {"role": "memory", "resource": "page-cache"}),
        ("pod_memory_mib", {"role": "memory", "resource": "container"}),
        ("while asleep (MiB)", {"role": "memory", "state": "asleep"}),
        ("asleep MiB per card", {"role": "memory", "resource": "gpu", "state": "asleep"}),
        ("host_total_gib", {"role": "total", "resource": "host"}),
        ("uptime_h", {"role": "elapsed", "seconds": 3600.0}),
        ("seconds", {"role": "elapsed", "seconds": 1.0}),
        ("elapsed_min", {"role": "elapsed", "seconds": 60.0}),
        ("round", {"role": "ordinal"}),
        ("reqs_done", {"role": "requests"}),
        ("clients", {"role": "running"}),
        ("verdict", {"role": "outcome"}),
        ("kv_gib", {"role": "figure"}),
        ("e2e_p50_ms", {"role": "figure"}),
        ("weights_gib", {"role": "figure"}),
    ],
)
def test_a_name_is_taken_apart(name: str, told: dict[str, Any]) -> None:
    column = column_of(name)._asdict()
    assert {key: column[key] for key in told} == told


def test_words_keep_their_order_and_releases_stay_whole() -> None:
    assert pieces("workerRssGiB_1_2_3") == ["worker", "rss", "gib", "1_2_3"]


@pytest.mark.parametrize(
    ("name", "flag"),
    [("TP", "tensor_parallel_size"), ("max seqs", "max_num_seqs"), ("--enable-lora", "enable_lora"), ("NCCL_CUMEM_ENABLE", "NCCL_CUMEM_ENABLE"), ("image tag", "version"), ("temperature", None), ("tokens", None)],
)  # fmt: skip
def test_a_header_names_a_setting(name: str, flag: str | None) -> None:
    assert of_header(name) == flag


def test_settings_of_a_sentence_with_their_values() -> None:
    found = {tried.flag: tried.value for tried in settings_in("vllm 0.14.1, TP=4 --max-num-seqs 48, without --enable-lora, NCCL_P2P_DISABLE=1")}  # fmt: skip
    assert found == {"version": "0.14.1", "tensor_parallel_size": "4", "max_num_seqs": "48", "enable_lora": "off", "NCCL_P2P_DISABLE": "1"}  # fmt: skip


@pytest.mark.parametrize("text", ["TP=2 works", "with util 0.8 it dies", "vllm 0.9.2", "torch 2.9 starts", "without eager mode", "ipc host", "swap space 16", "Prefix caching off", "HIP_VISIBLE_DEVICES=0", "max num seqs 4"])  # fmt: skip
def test_the_quick_search_passes_over_no_setting(text: str) -> None:
    assert list(settings_in(text)) and may_name_settings(text.encode())


def test_the_quick_search_passes_over_no_setting_of_the_samples() -> None:
    samples = Path(__file__).parents[2] / "sample_logs"
    lines = {line for path in samples.rglob("*") if path.suffix in (".log", ".md", ".txt", ".sh", ".yaml") for line in path.read_bytes().split(b"\n")[:2000] if len(line) < 700}  # fmt: skip
    named = [line for line in lines if any(True for _ in settings_in(line.decode("utf-8", "replace")))]
    assert len(named) > 100 and all(map(may_name_settings, named))
    assert not may_name_settings(b"entry 4 of the list 9, as it was found")


# ---- series


def test_columns_that_differ_in_a_variant_are_series_of_one_quantity() -> None:
    text = "hour;pss_gb_spec_on;pss_gb_spec_off;reqs_done\n" + "".join(f"{h};{7 + h / 2};7.1;{h * 900}\n" for h in range(8))  # fmt: skip
    found = rows(text, "process_memory")
    assert len(found) == 16 and {row["variant"] for row in found} == {"spec on", "spec off"}
    assert {key: found[2][key] for key in ("resource", "bytes", "elapsed_s", "requests")} == {"resource": "host", "bytes": 7_500_000_000, "elapsed_s": 3600.0, "requests": 900.0}  # fmt: skip


def test_devices_in_columns_with_their_load() -> None:
    text = "at,card0_gib,card1_gib,running\n2026-03-01 01:00,70.1,70.2,9\n2026-03-01 02:00,70.6,70.7,0\n"
    found = rows(text, "process_memory")
    assert [(row["name"], row["resource"], row["running"]) for row in found] == [("GPU 0", "gpu", 9.0), ("GPU 1", "gpu", 9.0), ("GPU 0", "gpu", 0.0), ("GPU 1", "gpu", 0.0)]  # fmt: skip
    assert found[2]["t"] - found[0]["t"] == 3600.0


def test_clocks_without_a_date_go_on_after_midnight() -> None:
    text = "clock,slot,used_mib,total_mib\n" + "".join(f"{h % 24:02}:30,2,9100,9728\n" for h in range(22, 28))
    assert [row["elapsed_s"] for row in rows(text, "process_memory")] == [3600.0 * n for n in range(6)]


def test_states_as_columns_and_releases_as_rows() -> None:
    text = "| release | awake MiB/GPU | after POST /sleep?level=2 MiB/GPU |\n|---|---:|---:|\n| 0.17.1 | 41200 | 39100 |\n| 0.16.0 | 41180 | 1460 |\n"  # fmt: skip
    found = rows(text, "process_memory")
    assert [(row["variant"], row["state"], row["bytes"] // MIB) for row in found] == [("0.17.1", "awake", 41200), ("0.17.1", "after sleep", 39100), ("0.16.0", "awake", 41180), ("0.16.0", "after sleep", 1460)]  # fmt: skip


def test_what_the_host_has_left_by_phase() -> None:
    text = "t_s,phase,ram_available_gib,swap_used_mib\n0,idle,120.5,0\n40,load,70.0,0\n60,profile,9.5,800\n"
    found = rows(text, "process_memory")
    assert [(row["resource"], row["state"]) for row in found[-2:]] == [("host-available", "profile"), ("swap", "profile")]  # fmt: skip
    assert found[-2]["bytes"] == int(9.5 * GIB)


@pytest.mark.parametrize(
    "text",
    [
        "index,name,memory.used [MiB]\n0,NVIDIA L4,20000\n1,NVIDIA L4,20010\n",  # a list of devices
        "disk,used_gib,free_gib\nsda,100,20\nsdb,50,70\n",
        "request,prompt_tokens,output_tokens\n1,900,20\n2,1000,30\n",
        "file,size_mib\na.bin,5000\nb.bin,5000\n",
    ],
)
def test_near_misses_are_no_series(text: str) -> None:
    assert not rows(text, "process_memory")


# ---- experiments


def test_a_bisection_gives_a_try_for_each_row() -> None:
    text = "release,lora,verdict\n0.12.0,on,serves\n0.13.0,on,killed\n0.13.0,off,serves\n"
    found = rows(text, "trial")
    assert [(row["attempt"], row["flag"], row["value"], row["works"]) for row in found] == [
        (1, "version", "0.12.0", True), (1, "enable_lora", "on", True), (2, "version", "0.13.0", False), (2, "enable_lora", "on", False),
        (3, "version", "0.13.0", True), (3, "enable_lora", "off", True),
    ]  # fmt: skip


def test_figures_of_a_sweep_and_their_conditions() -> None:
    text = "cpu_cache_gb,pass,reused_tokens,asked_tokens,ttft_p95_ms\n20,1,0,900000,5200\n20,2,4000,900000,5100\n90,1,0,900000,5300\n90,2,870000,900000,310\n"  # fmt: skip
    figures = rows(text, "trial_figure")
    assert [(row["quantity"], row["value"]) for row in figures if row["attempt"] == 4] == [("hit_tokens", 870000.0), ("asked_tokens", 900000.0), ("ttft_s", 0.31)]  # fmt: skip
    assert {row["flag"] for row in rows(text, "trial")} == {"max_local_cpu_size", "@pass"}


def test_json_entries_are_tries_too() -> None:
    text = '[{"policy":"fifo","hit_tokens":1000,"total_tokens":9000},\n {"policy":"arc","hit_tokens":8000,"total_tokens":9000}]\n'
    assert [(row["flag"], row["value"]) for row in rows(text, "trial")] == [("cache_policy", "fifo"), ("cache_policy", "arc")]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "model,prompt_tokens,output_tokens,status\nm,900,20,200\nm,1000,30,200\n",  # requests
        "time,util,mem_used_mib\n2026-03-01 01:00:00,97,70000\n2026-03-01 02:00:00,96,70000\n",  # a device over time
        "pod,image,ready,status\na,x:1,1/1,Running\nb,x:1,1/1,Running\n",
    ],
)
def test_near_misses_are_no_experiment(text: str) -> None:
    assert not rows(text, "trial")


def test_turns_are_requests_without_generated_tokens() -> None:
    found = rows("turn,prompt_tok,cached_tok,ttft_ms\n1,8000,0,4100\n2,9100,7900,400\n", "request")
    assert [(row["input_tokens"], row["cached_tokens"], row["ttft_s"]) for row in found] == [(8000, 0, 4.1), (9100, 7900, 0.4)]  # fmt: skip


# ---- sentences


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["PP=2 starts fine, PP=4 runs out of memory"], [(1, "pipeline_parallel_size", "2", True), (2, "pipeline_parallel_size", "4", False)]),
        (["torch 2.7: works. torch 2.8: this."], [(1, "torch", "2.7", True), (2, "torch", "2.8", False)]),
        (["on an A40. Works: the same without --enable-lora. Fails: --enable-lora"], [(1, "enable_lora", "off", True), (2, "enable_lora", "on", False)]),
        (["works: VLLM_X_Y=0 vllm serve org/m --max-num-seqs 9", "fails: the same without VLLM_X_Y=0"],
         [(1, "VLLM_X_Y", "0", True), (1, "max_num_seqs", "9", True), (1, "model", "org/m", True), (2, "VLLM_X_Y", "off", False), (2, "max_num_seqs", "9", False), (2, "model", "org/m", False)]),
        (["vllm serve org/m --max-model-len 900   # dies", "first one + --enforce-eager -> starts"],
         [(1, "max_model_len", "900", False), (1, "model", "org/m", False), (2, "enforce_eager", "on", True), (2, "max_model_len", "900", True), (2, "model", "org/m", True)]),
        (["vllm serve org/m --served-model-name runs --max-model-len 900"], []),
        (["please try --max-num-seqs 8, it works for others"], []),
        (["INFO 11-20 20:04:51 [x.py:1] --max-num-seqs 8 works"], []),
    ],
)  # fmt: skip
def test_tries_in_sentences(lines: list[str], told: list[tuple[int, str, str, bool]]) -> None:
    assert sorted(of_lines(lines)) == sorted(told)


@pytest.mark.parametrize(
    "line",
    [
        '<134>1 2026-11-20T10:00:01Z host app 123 ID47 [origin ip="10.0.0.1" x="2"] server started',
        '<134>1 - host app - - [origin software="vllm" swVersion="0.9.2"] health check ok',
        "<134>Nov 20 10:00:01 host TP=2 started",
        "<134>2026-11-20T10:00:01Z host app TP=2 works",
    ],
)
def test_a_line_of_syslog_is_no_try(line: str) -> None:
    """What an envelope says of its sender is no setting that somebody varied."""
    assert of_lines([line]) == []
    assert of_lines(["vllm 0.9.2 works"])  # as a person's sentence it is one


# ---- memory groups

V1 = "cache 51234000000\nrss 3100000000\nshmem 34000000\nmapped_file 5\npgfault 9\nhierarchical_memory_limit 60000000000\n"
V2 = "anon 3100000000\nfile 51234000000\nkernel_stack 5\nshmem 34000000\nfile_mapped 9\n"


@pytest.mark.parametrize("text", [V1, V2])
def test_a_memory_group_tells_its_own_memory_from_cached_files(text: str) -> None:
    found = {row["resource"]: row["bytes"] for row in rows(text, "process_memory")}
    assert (found["host"], found["page-cache"]) == (3134000000, 51200000000)
    assert found.get("host-limit") == (60000000000 if text is V1 else None)


def test_two_listings_are_two_samples_and_other_counters_none() -> None:
    assert [row["step"] for row in rows(V2 + V2, "process_memory") if row["resource"] == "host"] == [0, 1]
    assert not memory_group.matches(make_head("any", b"cache 1\nrss 2\nrequests 3\nlatency 4\nusers 5\nqueue 6\n"))


# ---- several settings in a cell, a log's statement in a cell


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tp2pp4", {"tensor_parallel_size": "2", "pipeline_parallel_size": "4"}),
        ("PP=16 TP=12", {"pipeline_parallel_size": "16", "tensor_parallel_size": "12"}),
        ("dp8_tp1", {"data_parallel_size": "8", "tensor_parallel_size": "1"}),
        ("http2 200, dpp3, mtp4", {}),
    ],
)
def test_layouts_without_a_blank_between_their_parts(text: str, expected: dict[str, str]) -> None:
    assert {tried.flag: tried.value for tried in settings_in(text)} == expected


def test_a_statement_of_a_log_in_a_cell_is_the_figure_of_that_row() -> None:
    text = "| setup | seen in the log |\n|---|---|\n| tp8pp2 | `GPU KV cache size: 91,216 tokens` |\n| tp4pp4 | `GPU KV cache size: 140,032 tokens` |\n"
    assert [(row["quantity"], row["value"]) for row in rows(text, "trial_figure")] == [("kv_tokens", 91216.0), ("kv_tokens", 140032.0)]  # fmt: skip
    assert [(row["flag"], row["value"]) for row in rows(text, "trial") if row["attempt"] == 1] == [("tensor_parallel_size", "8"), ("pipeline_parallel_size", "2")]  # fmt: skip
    memory = (
        "config | measured\nTP=2 | Available KV cache memory: 3.50 GiB\nTP=4 | Available KV cache memory: 21.00 GiB\n"
    )
    assert [(row["quantity"], row["value"] / GIB) for row in rows(memory, "trial_figure")] == [("kv_bytes", 3.5), ("kv_bytes", 21.0)]  # fmt: skip


def test_a_line_of_the_log_in_a_table_of_tries_is_no_condition() -> None:
    """The last line follows from what became of the try: two that differ in it still differ in one setting alone."""
    tries = "\n".join(
        f"{n},{0.95 if n < 5 else 0.85},{'failed' if n < 5 else 'serving'},"
        + (
            "RESOURCE_EXHAUSTED: reserving 5.02G at the bottom of memory was not possible"
            if n < 5
            else "Application startup complete here"
        )
        for n in range(1, 9)
    )
    found = {row["flag"] for row in rows(f"start,gpu_memory_utilization,result,final line\n{tries}\n", "trial")}
    assert found == {"gpu_memory_utilization"}


def test_the_id_beside_numbered_turns_is_whose_they_are() -> None:
    text = "ts,call_id,turn,prompt_tokens,cached_tokens,output_tokens\n" + "".join(
        f"08:00:{n:02},call-{n % 3},{n // 3 + 1},{900 + n},{800 + n},40\n" for n in range(12)
    )
    assert {row["tenant"] for row in rows(text, "request")} == {"call-0", "call-1", "call-2"}


def test_the_column_that_names_a_prompt_is_the_one_whose_values_come_again_with_its_length() -> None:
    text = "lap,scroll,colour,prompt_tokens,cached_tokens,ttft_s\n" + "".join(
        f"{n // 4},{'abcd'[n % 4]}{n % 4},{'red' if n % 2 else 'blue'},{9000 + 37 * (n % 4)},512,{3 + n / 10}\n"
        for n in range(12)
    )
    assert {row["tenant"] for row in rows(text, "request")} == {"a0", "b1", "c2", "d3"}


def test_a_column_with_prompts_of_several_lengths_or_the_prompt_itself_names_none() -> None:
    text = "lap,scroll,question,prompt_tokens,cached_tokens,ttft_s\n" + "".join(
        f"{n // 4},{'abcd'[n % 4]},what is in {n % 4},{9000 + 37 * (n % 4) + 60 * (n // 8)},512,{3 + n / 10}\n"
        for n in range(12)
    )
    assert {row.get("tenant") for row in rows(text, "request")} == {None}
    asked_else = text.replace("lap,scroll", "lap,sheet").replace("9060", "9005").replace("9097", "9042").replace("9134", "9079").replace("9171", "9116")  # fmt: skip
    assert {row["tenant"] for row in rows(asked_else, "request")} == {"a", "b", "c", "d"}, (
        "a text with another question"
    )
    steady = "what,question,prompt_tokens,cached_tokens\n" + "".join(
        f"same,what is in {n % 4},{9000 + 37 * (n % 4)},512\n" for n in range(12)
    )
    assert {row.get("tenant") for row in rows(steady, "request")} == {None}


def test_a_comment_above_a_sheet_says_what_its_columns_hold() -> None:
    head = "# ps rss of the unit, MiB, sampled by a hook\ntime,tokens_in,part_a,part_b\n"
    body = "".join(f"06:{at:02},1,{1000 + at},{700 + at}\n" for at in range(4))
    found = rows(head + body, "process_memory")
    assert {row["name"] for row in found} >= {"part_a", "part_b"} and {row["resource"] for row in found} == {"host"}
