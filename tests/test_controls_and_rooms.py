"""What a told symptom is worth beside a figure of the same thing, and what was left beside the plan: from text to verdict, with a rival each."""

from __future__ import annotations

from pathlib import Path

import pytest

from oomdoc import diagnose
from verdicts import SIGNS, first, likely, shows

UP = (
    "INFO 07-11 08:00:02 [core.py:58] Initializing a V1 LLM engine (v0.12.0) with config: model='Qwen/Qwen3-14B', dtype=torch.bfloat16\n"
    "INFO 07-11 08:00:40 [gpu_model_runner.py:2392] Model loading took 27.5192 GiB and 20.1 seconds\n"
    "INFO 07-11 08:01:02 [kv_cache_utils.py:864] GPU KV cache size: 210,000 tokens\n"
    "INFO:     Application startup complete.\n"
)


def minute(at: int, running: int, waiting: int, used: float) -> str:
    return (
        f"INFO 07-11 08:{at:02}:10 [loggers.py:123] Engine 000: Avg prompt throughput: 900.0 tokens/s, Avg generation throughput: 700.0 tokens/s, "
        f"Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: {used}%, Prefix cache hit rate: 0.0%\n"
    )


def test_replicas_that_had_nothing_to_follow(tmp_path: Path) -> None:
    """The same complaint, beside a queue and beside none."""
    note = "We sent 24 requests for the demo and the autoscaler does not scale. Is its signal stale?\n"
    for name in ("idle", "queue"):
        (tmp_path / name).mkdir()
    idle = UP + "".join(minute(at, 24, 0, 6.5) for at in range(10, 16))
    queue = UP + "".join(minute(at, 64, 40 + 9 * at, 97.0) for at in range(10, 16))
    assert likely(tmp_path / "idle", {"vllm.log": idle, "note.txt": note}) == "healthy"
    assert likely(tmp_path / "queue", {"vllm.log": queue, "note.txt": note}) != "healthy"


@pytest.mark.parametrize(
    "note",
    [
        "hit rate is 0.0 % although prefix caching is on, but the load test takes another page each time\n",
        "# the body: one prompt of 40 tokens, 128 to write\n",
    ],
)
def test_what_comes_once_or_is_not_looked_up_is_no_lost_prefix(tmp_path: Path, note: str) -> None:
    log = UP + "".join(minute(at, 4, 0, 5.0) for at in range(10, 16))
    if "body" in note:
        log = log.replace(", Prefix cache hit rate: 0.0%", "")
    assert likely(tmp_path, {"vllm.log": log, "note.txt": note}) == "healthy"


def walked(pages: int, found: int) -> dict[str, str]:
    """Pages of 7,000 tokens, each asked for twice in the same order, four at a time."""
    asked = 2 * pages * 7_000
    return {
        "vllm.log": UP + "".join(minute(at, 4, 0, 13.4) for at in range(10, 16)),
        "run.txt": (
            f"$ python twice_over_qa.py --num-documents {pages} --document-length 7000 --output-len 60 --max-inflight-requests 4\n"
            "First round mean TTFT: 1.90s\nSecond round mean TTFT: 1.91s\n"
        ),
        "metrics.prom": f"vllm:prefix_cache_queries_total {asked}\nvllm:prefix_cache_hits_total {found}\n",
    }


def test_a_set_that_is_walked_twice_through_a_smaller_pool(tmp_path: Path) -> None:
    """44 pages are more than 210,000 tokens, 24 are less; and a cache that finds half of what comes keeps it."""
    for name in ("larger", "smaller", "found"):
        (tmp_path / name).mkdir()
    cause, sure = first(tmp_path / "larger", walked(44, 600))
    assert cause == "prefix-cache-thrash" and sure > 0.8
    assert likely(tmp_path / "smaller", walked(24, 600)) != "prefix-cache-thrash"
    assert likely(tmp_path / "found", walked(44, 300_000)) != "prefix-cache-thrash"


def started(errno: str) -> str:
    return (
        "(EngineCore pid=70) INFO 07-11 08:00:02 [core.py:58] Initializing a V1 LLM engine (v0.12.0) with config: model='Qwen/Qwen3-14B', tensor_parallel_size=2\n"
        "(Worker pid=81) ERROR 07-11 08:00:21 [multiproc_executor.py:592] Traceback (most recent call last):\n"
        '(Worker pid=81) ERROR 07-11 08:00:21 [multiproc_executor.py:592]   File "/usr/lib/python3.12/multiprocessing/shared_memory.py", line 104, in __init__\n'
        f"(Worker pid=81) ERROR 07-11 08:00:21 [multiproc_executor.py:592] {errno}: '/psm_93aa01ce'\n"
        "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}\n"
    )


def test_a_name_that_is_missing_is_no_want_of_room(tmp_path: Path) -> None:
    for name in ("missing", "full"):
        (tmp_path / name).mkdir()
    assert likely(tmp_path / "missing", {"vllm.log": started("FileNotFoundError: [Errno 2] No such file or directory")}) == "not-memory"  # fmt: skip
    assert likely(tmp_path / "full", {"vllm.log": started("OSError: [Errno 28] No space left on device")}) == "shm-exhausted"  # fmt: skip


def capture(planned: bool) -> str:
    """A capture that fails with 0.96 of 47.4 GiB in the plan, 2.9 GiB of graphs expected, in the plan or beside it."""
    left_out = "" if planned else (
        "(EngineCore pid=70) WARNING 07-11 08:01:01 [gpu_worker.py:455] CUDA graph memory profiling is disabled (VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0). "
        "Without it, CUDA graph memory is not accounted for during KV cache allocation, which may require lowering --gpu-memory-utilization to avoid OOM.\n"
    )  # fmt: skip
    return (
        "(APIServer pid=1) INFO 07-11 08:00:00 [utils.py:233] non-default args: {'model': 'Qwen/Qwen3-14B', 'gpu_memory_utilization': 0.96, "
        "'speculative_config': {'method': 'ngram', 'num_speculative_tokens': 3}}\n"
        "(EngineCore pid=70) INFO 07-11 08:00:02 [core.py:107] Initializing a V1 LLM engine (v0.22.0) with config: model='Qwen/Qwen3-14B', dtype=torch.bfloat16\n"
        "(EngineCore pid=70) INFO 07-11 08:00:40 [gpu_model_runner.py:4840] Model loading took 27.52 GiB memory and 20.1 seconds\n"
        "(EngineCore pid=70) INFO 07-11 08:01:00 [gpu_model_runner.py:6042] Estimated CUDA graph memory: 2.90 GiB total\n"
        f"{left_out}"
        "(EngineCore pid=70) INFO 07-11 08:01:02 [gpu_worker.py:440] Available KV cache memory: 16.10 GiB\n"
        "(EngineCore pid=70) Capturing CUDA graphs (decode, FULL):  40%|####      | 14/35 [00:04<00:06,  3.4it/s]\n"
        "(EngineCore pid=70) ERROR 07-11 08:01:12 [core.py:1136] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total capacity of "
        "47.40 GiB of which 21.31 MiB is free. Including non-PyTorch memory, this process has 47.36 GiB memory in use. Of the allocated memory 45.80 GiB is allocated by "
        "PyTorch, with 1.10 GiB allocated in private pools (e.g., CUDA Graphs), and 210.11 MiB is reserved by PyTorch but unallocated.\n"
    )


def test_graphs_that_the_plan_was_told_to_leave_out(tmp_path: Path) -> None:
    """A trial without the feature, told in one sentence, is one fact; and what the plan leaves out can be worked out."""
    note = "Two of us looked. Without --speculative-config the same command comes up at 0.9.\n"
    for name in ("beside", "planned"):
        (tmp_path / name).mkdir()
    cause, sure = first(tmp_path / "beside", {"vllm.log": capture(planned=False), "note.txt": note})
    assert cause == "cuda-graph-overhead" and sure > 0.8
    planned = {"vllm.log": capture(planned=True), "note.txt": note}
    assert first(tmp_path / "planned", planned)[1] < sure - 0.05
    assert not shows(tmp_path / "planned", planned, "cuda-graph-overhead", "graphs-larger-than-headroom")
    assert shows(tmp_path / "planned", planned, "feature-overhead", "works-without-it")


def forward(share: float, pool_gib: float, smi_mib: int) -> dict[str, str]:
    """A launch of Triton that finds no memory, and the card a minute before it."""
    at = "08:05:11"
    return {
        "server.log": (
            f"(APIServer pid=1) INFO 07-11 08:00:00 [utils.py:233] non-default args: {{'model': 'Qwen/Qwen3-14B-AWQ', 'gpu_memory_utilization': {share}}}\n"
            "(EngineCore pid=70) INFO 07-11 08:00:02 [core.py:58] Initializing a V1 LLM engine (v0.17.0) with config: model='Qwen/Qwen3-14B-AWQ', dtype=torch.float16\n"
            "(EngineCore pid=70) INFO 07-11 08:00:40 [gpu_model_runner.py:4338] Model loading took 9.40 GiB memory and 20.1 seconds\n"
            f"(EngineCore pid=70) INFO 07-11 08:01:02 [gpu_worker.py:424] Available KV cache memory: {pool_gib} GiB\n"
            "(EngineCore pid=70) INFO 07-11 08:01:22 [gpu_model_runner.py:5246] Graph capturing finished in 12 secs, took 0.40 GiB\n"
            "INFO:     Application startup complete.\n"
            f"(EngineCore pid=70) ERROR 07-11 {at} [core.py:1106] Traceback (most recent call last):\n"
            f'(EngineCore pid=70) ERROR 07-11 {at} [core.py:1106]   File "/usr/lib/python3.12/site-packages/vllm/v1/worker/gpu_model_runner.py", line 3484, in execute_model\n'
            f"(EngineCore pid=70) ERROR 07-11 {at} [core.py:1106]     model_output = self._model_forward(\n"
            f"(EngineCore pid=70) ERROR 07-11 {at} [core.py:1106] RuntimeError: Triton Error [CUDA]: out of memory\n"
        ),
        "smi.csv": (
            "timestamp, index, name, memory.used [MiB], memory.total [MiB]\n"
            f"2026/07/11 08:04:00.000, 0, NVIDIA GeForce RTX 4090, {smi_mib} MiB, 24564 MiB\n"
            "\npid, process_name, used_gpu_memory [MiB]\n"
            f"41107, VLLM::EngineCore, {smi_mib - 120} MiB\n"
        ),
    }


def test_a_launch_that_finds_no_memory_on_a_card_that_its_own_plan_fills(tmp_path: Path) -> None:
    """The process that holds it has another number outside the container; beside 21 GiB of weights and pool there is no room for a second."""
    for name in ("full", "room"):
        (tmp_path / name).mkdir()
    cause, sure = first(tmp_path / "full", forward(0.95, 11.9, 24_100))
    assert cause == "memory-utilization-edge" and sure > 0.9
    assert likely(tmp_path / "room", forward(0.5, 1.2, 12_000)) != "memory-utilization-edge"


def soak(lives: int, gain_mib: int) -> str:
    """A sheet of a server that is started anew: in each life eight points a quarter of an hour apart."""
    rows = ["time,active_requests,vram_used_mib,restarts"]
    for life in range(lives):
        for point in range(8):
            at = 15 * (8 * life + point)
            idle = point in (4, 5)
            held = 14_200 + gain_mib * (point if point < 4 else 4 if idle else point - 1)
            rows.append(f"2026-07-11T{at // 60:02}:{at % 60:02}:00Z,{0 if idle else 3},{held},{2 + life}")
    return "\n".join(rows) + "\n"


def test_each_life_of_a_sheet_is_a_series_of_its_own(tmp_path: Path) -> None:
    """What falls where restarts are counted gave nothing back; without growth in a life there is none."""
    for name in ("grows", "level"):
        (tmp_path / name).mkdir()
    note = "Pages at the same rhythm each day, then the pod is replaced.\n"
    assert likely(tmp_path / "grows", {"soak.csv": soak(3, 700), "vllm.log": UP, "note.md": note}) == "memory-leak"
    assert likely(tmp_path / "level", {"soak.csv": soak(3, 0), "vllm.log": UP, "note.md": note}) != "memory-leak"


def dead_and_refused(later: int) -> str:
    """A server that serves, dies of a fault of the card, and a start by process `later` that finds the card held."""
    return (
        "(EngineCore pid=61) INFO 07-11 08:00:02 [core.py:58] Initializing a V1 LLM engine (v0.22.0) with config: model='Qwen/Qwen3-14B', dtype=torch.bfloat16\n"
        "(EngineCore pid=61) INFO 07-11 08:00:40 [gpu_model_runner.py:4893] Model loading took 9.40 GiB memory and 20.1 seconds\n"
        "(EngineCore pid=61) INFO 07-11 08:01:02 [gpu_worker.py:468] Available KV cache memory: 3.10 GiB\n"
        "(APIServer pid=50) INFO:     Application startup complete.\n"
        "(EngineCore pid=61) ERROR 07-11 09:40:12 [core.py:1188] EngineCore encountered a fatal error.\n"
        "(EngineCore pid=61) ERROR 07-11 09:40:12 [core.py:1188] torch.AcceleratorError: CUDA error: unspecified launch failure\n"
        f"(EngineCore pid={later}) ERROR 07-11 09:42:40 [core.py:1162] EngineCore failed to start.\n"
        f"(EngineCore pid={later}) ERROR 07-11 09:42:40 [core.py:1162] ValueError: Free memory on device cuda:0 (0.90/15.47 GiB) on startup is less than desired GPU "
        "memory utilization (0.9, 13.92 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.\n"
    )


def test_a_start_that_is_refused_behind_a_death_explains_it_in_no_place(tmp_path: Path) -> None:
    """Neither the verdict nor the account of the first start is made of what the second one found."""
    (tmp_path / "vllm.log").write_text(dead_and_refused(later=907))
    with diagnose.analyze(str(tmp_path), SIGNS) as analysis:
        report = analysis.report
    assert report.diagnoses[0].cause == "not-memory"
    assert "vllm.log:8" not in str(report.ledger)
    (tmp_path / "vllm.log").write_text("\n".join(dead_and_refused(later=907).splitlines()[6:]) + "\n")
    with diagnose.analyze(str(tmp_path), SIGNS) as analysis:  # the refusal alone is told as what it is
        report = analysis.report
    assert report.diagnoses[0].cause == "gpu-shared" and "vllm.log:2" in str(report.ledger)
