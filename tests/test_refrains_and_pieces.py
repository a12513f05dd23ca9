"""From text to verdict: a wait without an answer, callers that leave together, memory in pieces, devices offered twice, tables of tries."""

from __future__ import annotations

from pathlib import Path

import pytest

from verdicts import likely, shows

_UP = "INFO 02-11 09:00:{at:02} [kv_cache_utils.py:900] GPU KV cache size: 210,432 tokens\n"


def _store(times: int, then: str = "") -> str:
    waits = "".join(f"INFO 02-11 09:{1 + k // 6:02}:{k % 6 * 10:02} [kv_store.py:88] Waiting for metadata store at 10.3.0.{k % 3}:2379 to accept connections\n" for k in range(times))  # fmt: skip
    return _UP.format(at=12) + waits + then


def _router(times: int, then: str = "") -> str:
    return "".join(f"2026-02-11T09:{k // 6:02}:{k % 6 * 10:02}Z WARN router.discovery: No healthy backends for model org/m-8b (attempt {k})\n" for k in range(times)) + then  # fmt: skip


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (_store(9), "not-memory"),
        (_router(14), "not-memory"),
        (_store(2), "healthy"),  # every start waits once or twice
        (_store(9, "INFO 02-11 09:04:02 [launcher.py:40] Application startup complete.\n"), "healthy"),
    ],
)
def test_a_log_that_ends_in_a_refrain(tmp_path: Path, text: str, cause: str) -> None:
    assert (likely(tmp_path, {"serve.log": text}) == "not-memory") is (cause == "not-memory")


def test_a_worker_that_ran_out_is_waited_for(tmp_path: Path) -> None:
    died = "ERROR 02-11 09:00:20 [core.py:900] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.10 GiB. GPU 0 has a total capacity of 23.64 GiB of which 210.00 MiB is free.\n"
    assert likely(tmp_path, {"serve.log": _store(9), "worker.log": died}) != "not-memory"


def _stat(at: int, running: int, waiting: int, rate: float, used: float) -> str:
    return f"INFO 06-02 21:{at // 60:02}:{at % 60:02} [loggers.py:180] Engine 000: Avg prompt throughput: 12.0 tokens/s, Avg generation throughput: {rate:.1f} tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: {used:.1f}%, Prefix cache hit rate: 4.0%\n"


def _leave(gone: int, running: int = 16, waiting: int = 0, last: float = 410.0) -> str:
    before = "".join(_stat(10 * k, running, waiting, 400.0 + 3 * (k % 4), 20 + 4 * k) for k in range(8)) + _stat(80, running, waiting, last, 55)  # fmt: skip
    left = "".join(f"INFO 06-02 21:01:24 [async_llm.py:520] Request chatcmpl-{k:04x}7a aborted.\n" for k in range(gone))
    return before + left + _stat(90, max(running - gone, 0), 0, 190.0, 21)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (_leave(9), True),
        (_leave(7, running=20), True),
        (_leave(2), False),  # one by one
        (_leave(16), False),  # all of them: whoever sent them has ended
        (_leave(9, last=60.0), False),  # the server had grown slow
        (_leave(9, waiting=11), False),  # and here others waited
    ],
)
def test_callers_that_hang_up_together(tmp_path: Path, text: str, told: bool) -> None:
    assert (likely(tmp_path, {"vllm.log": text}) == "not-memory") is told


_REFUSED = "[88123.4] NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051) returned from _memdescAllocInternal(pMemDesc) @ mem_desc.c:1359\n"
_LOADS = "INFO 06-02 10:00:01 [gpu_model_runner.py:4800] Starting to load model org/m-70b-nvfp4...\n"


def _series(sizes: list[float], name: str = "host_available_gib") -> str:
    return f"time,{name},mem_free_gib\n" + "".join(f"10:00:{3 * k:02},{size},{min(size, 0.7)}\n" for k, size in enumerate(sizes))  # fmt: skip


@pytest.mark.parametrize(
    ("text", "dry"),
    [
        (_series([88.0, 71.5, 52.0, 34.1, 17.2, 4.4]), True),
        (_series([30.0, 22.0, 15.5, 9.0, 2.8], "mem_available_gib"), True),
        (_series([88.0, 71.5, 52.0, 34.1, 33.9, 34.0]), False),  # it comes to rest with a third left
        (_series([88.0, 80.0, 74.0, 70.0, 65.0, 61.0]), False),  # a part of the host
        (_series([40.0, 39.9, 40.1, 40.0, 39.8, 40.0]), False),  # only what is free without files is near nothing
    ],
)
def test_a_host_that_runs_dry(tmp_path: Path, text: str, dry: bool) -> None:
    found = likely(tmp_path, {"host.csv": text, "dmesg.txt": _REFUSED * 2, "engine.log": _LOADS})
    assert (found == "host-memory-exhausted") is dry


@pytest.mark.parametrize(
    ("counts", "failed", "pieces"),
    [
        ("Node 0, zone   Normal 181022 150710 120455  61230  32112  19871   7120   1612    127      0      0", "compact_stall 90211\ncompact_fail 61022\n", True),
        ("Node 0, zone   Normal 381022 210710  90455  41230  22112   9871   4120    812      9      0      0", "compact_stall 711\ncompact_fail 405\n", True),
        ("Node 0, zone   Normal   1022    710    455    230    112     71    120     12    127   9120   8077", "compact_stall 90211\ncompact_fail 61022\n", False),  # large pieces are there
        ("Node 0, zone   Normal   1022    710    455    230    112     71     20      2      0      0      0", "compact_stall 90211\ncompact_fail 61022\n", False),  # and here no memory is
    ],
)  # fmt: skip
def test_free_memory_in_small_pieces(tmp_path: Path, counts: str, failed: str, pieces: bool) -> None:
    found = likely(tmp_path, {"kern.log": _REFUSED * 2, "engine.log": _LOADS, "buddyinfo.txt": counts + "\n" + failed})
    assert (found == "allocator-fragmentation") is pieces


_CUT = "2026-06-02 10:41:09.902 E driver.cc:733] failed to allocate 512.00M (536870912 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n"
_PLUGIN = "version: v1\nsharing:\n  {kind}:\n    failRequestsGreaterThanOne: true\n    resources:\n    - name: nvidia.com/gpu\n      replicas: {n}\n"
_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: plugin\ndata:\n  any: |-\n    sharing:\n      {kind}:\n        resources:\n        - name: nvidia.com/gpu\n          replicas: {n}\n"


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        (_PLUGIN.format(kind="timeSlicing", n=6), True),
        (_MAP.format(kind="mps", n=3), True),
        (_PLUGIN.format(kind="timeSlicing", n=1), False),  # offered once
        ("replicaCount: 6\nserver:\n  replicas: 6\n  port: 8000\n", False),
    ],
)
def test_a_device_that_is_offered_several_times(tmp_path: Path, text: str, shared: bool) -> None:
    files = {"plugin.yaml": text, "job.log": _CUT}
    assert shows(tmp_path, files, "gpu-shared", "two-engines-on-one-device") is shared


_TRIED = """\
| `--max-num-batched-tokens` | `--enforce-eager` | what came of it |
|---|---|---|
| 8192 | no | CUDA out of memory |
| 2048 | no | CUDA out of memory |
| 8192 | {eager} | {told} |

{beside}
"""
_DIED = "INFO 06-02 10:00:40 [gpu_model_runner.py:1300] Model loading took 14.1 GiB and 12.0 seconds\nERROR 06-02 10:01:02 [core.py:700] torch.OutOfMemoryError: CUDA out of memory. [snip]\n"


@pytest.mark.parametrize(
    ("eager", "told", "beside", "cause"),
    [
        ("yes", "serves, slowly", "Another runtime on the same GPU runs this model at twice the speed.", "cuda-graph-overhead"),
        ("yes", "starts", "llama-server works fine on the same card.", "cuda-graph-overhead"),
        ("yes", "torch.OutOfMemoryError", "", None),
        ("no", "CUDA out of memory", "Another server on the same GPU holds 9 GiB.", "gpu-shared"),
    ],
)  # fmt: skip
def test_options_as_headings(tmp_path: Path, eager: str, told: str, beside: str, cause: str | None) -> None:
    found = likely(tmp_path, {"tries.md": _TRIED.format(eager=eager, told=told, beside=beside), "run.log": _DIED})
    assert found == cause if cause else found != "cuda-graph-overhead"


def _start(util: float, weights: float, left: float) -> str:
    return (
        f"INFO 06-02 10:00:01 [utils.py:233] non-default args: {{'model': 'org/coder-30b-fp8', 'gpu_memory_utilization': {util}}}\n"
        f"INFO 06-02 10:00:40 [gpu_model_runner.py:1300] Model loading took {weights} GiB and 12.0 seconds\n"
        f"INFO 06-02 10:00:59 [gpu_worker.py:400] Available KV cache memory: {left} GiB\n"
        "ERROR 06-02 10:01:02 [core.py:700] ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"
    )


_UTILS = "model;gpu_memory_utilization;result\norg/coder-30b-fp8;{a};no room for the cache\nsame;{b};{told}\n"


@pytest.mark.parametrize(
    ("log", "tries", "weights"),
    [
        (_start(0.95, 43.2, -0.9), _UTILS.format(a=0.95, b=0.99, told="torch.OutOfMemoryError"), True),
        (_start(0.92, 21.6, -0.2), _UTILS.format(a=0.88, b=0.97, told="no memory for blocks"), True),
        (_start(0.6, 21.6, -0.2), _UTILS.format(a=0.6, b=0.9, told="starts"), False),
        (_start(0.5, 9.1, -0.4), "", False),
    ],
)
def test_nothing_left_at_any_utilization(tmp_path: Path, log: str, tries: str, weights: bool) -> None:
    files = {"serve.log": log, **({"tries.csv": tries} if tries else {})}
    assert (likely(tmp_path, files) == "weights-exceed-gpu") is weights


def _front(rise: float, owner: str) -> str:
    return f"hour,{owner}_working_set_MiB,active_requests\n" + "".join(
        f"{k / 10},{310 + rise * min(k, 50) + (k * 7) % 4:.0f},{0 if 50 <= k < 60 else 40 + k % 5}\n" for k in range(60)
    )


@pytest.mark.parametrize(
    ("text", "leak"),
    [
        (_front(9.0, "gateway"), True),
        (_front(11.0, "apiserver"), True),
        (_front(0.0, "gateway"), False),
        (_front(9.0, "prompt_prefix"), False),  # how much of the prompts is asked for again
    ],
)
def test_a_front_process_that_keeps_what_it_gained(tmp_path: Path, text: str, leak: bool) -> None:
    assert (likely(tmp_path, {"insights.csv": text}) == "memory-leak") is leak


_SIDES = "| Metric | cold | warm | cold vs warm |\n|---|---:|---:|---:|\n| P95 TTFT (s) | {a} | {b} | - |\n| KV cache usage | 31% | 33% | 1.1x |\n| Running requests | 12 | 13 | 1.1x |\n"


@pytest.mark.parametrize(("a", "b", "slow"), [("41.2", "3.9", True), ("18.0", "2.2", True), ("0.31", "0.30", False)])
def test_a_comparison_that_stands_on_its_side(tmp_path: Path, a: str, b: str, slow: bool) -> None:
    files = {"report.md": _SIDES.format(a=a, b=b)}
    assert shows(tmp_path, files, "not-memory", "slow-beside-an-empty-pool") is slow
