"""What a running server of 0.32 really writes, and what a naive reader makes of it. Words and numbers are our own."""

import io
from typing import Any

import pytest

from oomdoc import ingest
from oomdoc.evidence.store import Store
from oomdoc.ingest import text_log
from oomdoc.ingest.log_errors import error_kind
from oomdoc.intake.scan import chunks
from oomdoc.units import GIB

CORE = "(EngineCore pid=77) INFO 11-20 20:14:05 [core.py:1] "
API = "(APIServer pid=70) {} 11-20 20:14:05 [launcher.py:1] "


def read(text: str) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for batch in text_log.read("x.log", chunks(io.BytesIO(text.encode()))):
        for place in range(batch.rows):
            found.append((batch.table, {name: values[place] for name, values in batch.columns.items()}))
    return found


def table(text: str, name: str) -> list[dict[str, Any]]:
    return [row for found, row in read(text) if found == name]


def asked(files: dict[str, str], query: str) -> list[tuple[Any, ...]]:
    store = Store()
    for path, text in files.items():
        data = text.encode()
        reader, kind = ingest.recognise(ingest.make_head(path, data))
        for batch in ingest.read(reader, path, chunks(io.BytesIO(data))):
            store.load(path, batch)
        store.add("source", [{"source": path, "kind": kind, "bytes": len(data), "lines": data.count(b"\n"), "rows": 1, "problems": 0, "lookalikes": 0}])  # fmt: skip
    store.finish()
    store.focus(None)
    try:
        return store.query(query)[1]
    finally:
        store.close()


STAT = "Engine 000: Avg prompt throughput: {} tokens/s, Avg generation throughput: 50.5 tokens/s, Running: 6 reqs, Waiting: {} reqs, CPU KV cache usage: {}%{}"  # fmt: skip


def test_preemptions_that_are_not_printed_are_unknown_not_zero() -> None:
    rows = table(CORE + STAT.format("0.0", 21, "100.0", ", Prefix cache hit rate: 0.0%") + "\n", "engine_stat")
    assert (rows[0]["preemptions"], rows[0]["kv_used"], rows[0]["waiting"]) == (None, 1.0, 21)


def test_a_hit_rate_that_is_not_printed_is_unknown() -> None:
    rows = table(CORE + STAT.format("9.5", 0, "12.5", "") + "\n", "engine_stat")
    assert (rows[0]["prefix_hit_rate"], rows[0]["kv_used"]) == (None, 0.125)


SCRAPE = """\
# TYPE vllm:num_preemptions counter
vllm:num_preemptions_total{{engine="0",model_name="m"}} {n}
# TYPE vllm:num_preemptions_created gauge
vllm:num_preemptions_created{{engine="0",model_name="m"}} 1.79521e+09
# TYPE vllm:request_num_preemptions histogram
vllm:request_num_preemptions_sum{{engine="0",model_name="m"}} 900.0
vllm:request_num_preemptions_count{{engine="0",model_name="m"}} 800.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{{engine="0",model_name="m"}} 0.8125
"""


def test_a_creation_time_is_no_count_and_a_share_is_no_percentage() -> None:
    files = {f"metrics-20261120T20{minute}00Z.prom": SCRAPE.format(n=n) for minute, n in ((14, 40.0), (16, 57.0))}
    preemptions, peak = asked(files, "SELECT preemptions, peak FROM kv_pressure")[0]
    assert (preemptions, peak) == (57, 0.8125)


def test_the_pool_stands_in_one_line_with_another_device() -> None:
    rows = table(CORE + "CPU KV cache size: 49,152 tokens, Maximum concurrency for 4,096 tokens per request: 12.00x\n", "engine_figure")  # fmt: skip
    assert {row["name"]: row["value"] for row in rows} == {"kv_pool_tokens": 49152, "max_concurrency": 12.0, "concurrency_tokens": 4096}  # fmt: skip


def test_the_denominator_is_what_the_engine_saw() -> None:
    rows = table(CORE + "Auto set (2.50/12.50) GiB for KV cache on node 0.\n", "engine_figure")
    assert {row["name"]: row["value"] for row in rows} == {"kv_reserved_bytes": 2.5 * GIB, "total_bytes": 12.5 * GIB}


def test_figures_rounded_away_leave_the_tokens() -> None:
    line = "ValueError: To serve at least one request with the model's max seq len (4096), (0.0 GiB KV cache is needed, which is larger than the available KV cache memory (0.0 GiB). Based on the available memory, the estimated maximum model length is 1792. Try"  # fmt: skip
    row = table(line + "\n", "startup_check")[0]
    assert (row["max_model_len"], row["estimated_max_model_len"], row["needed_bytes"]) == (4096, 1792, 0)


def test_sizes_of_the_arguments_are_bytes() -> None:
    rows = table(CORE + "non-default args: {'model_tag': '/m', 'kv_cache_memory_bytes': 50331648}\n", "engine_flag")
    assert {row["flag"]: row["value"] for row in rows} == {"model": "/m", "kv_cache_memory_bytes": "50331648"}


def test_a_negative_request_is_read() -> None:
    line = "ValueError: Available memory on node 0 (6.50/8.50 GiB) on kv cache allocation is less than requested memory for kv (-0.25/0.50 GiB)."  # fmt: skip
    row = table(line + "\n", "startup_check")[0]
    assert (row["wanted_bytes"], row["available_bytes"]) == (-GIB // 4, GIB // 2)


@pytest.mark.parametrize(("said", "code"), [(" (exit code: 0)", 0), (" (exit code: None)", None), (" (exit code: -9)", -9), ("", None)])  # fmt: skip
def test_only_a_signal_is_a_kill(said: str, code: int | None) -> None:
    line = API.format("ERROR") + f"Worker proc VllmWorker-0 died unexpectedly{said}, shutting down executor.\n"
    assert [row.get("exit_code") for row in table(line, "process_exit")] == [code]
    grades = asked({"vllm.log": line}, "SELECT max(grade) FROM failure_event WHERE kind = 'exit'")
    assert grades == [(2 if code == -9 else 0,)]


CLEAN = "".join(
    API.format(level) + text + "\n"
    for level, text in (
        ("INFO", "Shutting down"),
        ("WARNING", "Termination timeout, force killing remaining processes count=1"),
        ("INFO", "send sigterm to process EngineCore"),
        ("INFO", "Parent process exited, terminating worker queues"),
        ("WARNING", "Found ulimit of 1024; with it the server can fail with OSError: [Errno 24] Too many open files. Raise it"),
        ("INFO", "Memory allocations will be strictly bound to these NUMA nodes: 0"),
    )
) + "/opt/python3/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: There appear to be 1 leaked shared_memory objects to clean up at shutdown\n"  # fmt: skip


def test_a_clean_shutdown_is_no_failure() -> None:
    start = CORE + "Using max model len 4096\nINFO:     Application startup complete.\n" + CORE + STAT.format("9.5", 0, "12.5", "") + "\n"  # fmt: skip
    assert asked({"vllm.log": start + CLEAN}, "SELECT kind, text FROM incident") == []
    assert list(table(CLEAN, "host_event")) == []


@pytest.mark.parametrize(
    ("exception", "text", "kind"),
    [
        ("QueueOverflowError", "the queue holds 32 requests already", "echo"),
        ("RuntimeError", "Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}", "echo"),
        ("Exception", "WorkerProc initialization failed due to an exception in a background process. See stack trace for root cause.", "echo"),
        ("vllm.v1.engine.exceptions.EngineDeadError", "EngineCore encountered an issue. See stack trace (above) for the root cause.", "echo"),
        ("huggingface_hub.errors.HFValidationError", "Repo id must be in the form 'repo_name' or 'namespace/repo_name'", "missing-file"),
        ("pydantic_core._pydantic_core.ValidationError", "invalid literal for int() with base 10: '0.5'", "bad-argument"),
        ("ValueError", "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens", "client"),
        ("ValueError", "HiSparse pinned host pool needs ~96 GiB but only 40 GiB of RAM is available.", "host-memory"),
        ("RuntimeError", "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 99000000 bytes.", "host-memory"),
    ],
)  # fmt: skip
def test_what_an_exception_is_about(exception: str, text: str, kind: str) -> None:
    assert error_kind(exception, text) == kind


def test_the_first_error_is_the_cause_not_the_most_frequent() -> None:
    one = API.format("ERROR") + "RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 99000000 bytes.\n"  # fmt: skip
    dead = API.format("ERROR") + "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.\n"  # fmt: skip
    kinds = asked(
        {"vllm.log": CORE + "Using max model len 4096\n" + one + dead * 400}, "SELECT kind, line FROM incident"
    )
    assert kinds == [("host-alloc", 2)]


def test_a_stale_engine_in_a_process_list_is_told() -> None:
    listed = "    PID    PPID     RSS COMMAND\n   4711       1  499712 VLLM::EngineCore\n   4800    4700   88000 python3 -m http.server\n"  # fmt: skip
    assert asked({"ps-after.txt": listed}, "SELECT topic, value FROM note") == [("orphan-process", 499712 * 1024.0)]


def test_requests_in_the_log_are_no_evidence() -> None:
    text = "(APIServer pid=7) INFO 11-20 20:14:05 [request_logger.py:65] Received request cmpl-1-0: params: SamplingParams(n=1, max_tokens=99), lora_request: None.\n"  # fmt: skip
    assert read(text) == []


def test_json_logging_stands_beside_plain_lines() -> None:
    record = '{"asctime": "2026-11-20 20:46:31,815", "levelname": "INFO", "name": "vllm.core", "process": 77, "filename": "core.py", "lineno": 9, "message": "GPU KV cache size: 49,152 tokens", "vllm_process_name": "EngineCore"}\n'  # fmt: skip
    bar = "Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:02<00:02,  2.1s/it]\n"
    warning = "[W1120 20:13:20.490000000 utils.cpp:68] Warning: a notice\n"
    rows = read(bar + record + warning)
    assert [(name, row["line"], row.get("process")) for name, row in rows if name != "milestone"] == [("engine_figure", 2, "EngineCore")]  # fmt: skip
    assert sorted(row["name"] for name, row in rows if name == "milestone") == ["kv-sized", "load-progress"]


def test_a_validation_error_is_told_with_what_is_wrong() -> None:
    text = (
        "pydantic_core.ValidationError: 1 validation error for ModelConfig\n"
        "  Value error, the checkpoint has model type `orca`, which nobody knows. [type=value_error]\n"
        "    For further information see elsewhere\n"
    )
    (row,) = table(text, "log_error")
    assert row["text"] == "the checkpoint has model type `orca`, which nobody knows."
    (row,) = table("ValueError: bad value of a thing\n  and a line of something else\n", "log_error")
    assert row["text"] == "bad value of a thing"


def test_a_segment_struck_out_twice_is_no_lack_of_shared_memory() -> None:
    assert error_kind("KeyError", "'/psm_0a1b2c3d'") == "echo"
    assert error_kind("OSError", "[Errno 28] No space left on device: '/psm_0a1b2c3d'") == "shm"


def test_an_exit_status_of_0_beside_the_log_is_no_failure() -> None:
    log = API.format("INFO") + "Application startup complete.\nINFO:     Application startup complete.\n"
    beside = {"exit.txt": "exit code of the API server process: 0\n"}
    assert asked({"vllm.log": log, **beside}, "SELECT count(*) FROM failure_event") == [(0,)]


def test_a_worker_that_dies_with_an_unknown_status_is_a_failure_only_where_no_error_is_told() -> None:
    up = "INFO:     Application startup complete.\n" + CORE + "Engine 000: Avg prompt throughput: 9.0 tokens/s, Avg generation throughput: 9.0 tokens/s, Running: 2 reqs, Waiting: 0 reqs, CPU KV cache usage: 4.3%\n"  # fmt: skip
    died = CORE.replace("INFO", "ERROR") + "Worker proc VllmWorker-0 died unexpectedly (exit code: None), shutting down executor.\n"  # fmt: skip
    grades = "SELECT grade FROM failure_event WHERE kind = 'exit'"
    assert asked({"vllm.log": up + died}, grades) == [(2,)]
    assert asked({"vllm.log": up + "RuntimeError: CUDA error: an illegal memory access was encountered\n" + died}, grades) == [(0,)]  # fmt: skip
