"""What a scaler of another kind is asked for, and tables that count its workers: from text to verdict, with a rival each."""

from __future__ import annotations

from pathlib import Path

import pytest

from oomdoc.diagnose import analyze
from verdicts import likely

UP = (
    "INFO 03-02 08:00:02 [core.py:58] Initializing a V1 LLM engine (v0.12.0) with config: model='Qwen/Qwen3-8B', dtype=torch.bfloat16\n"
    "INFO 03-02 08:00:40 [gpu_model_runner.py:2392] Model loading took 15.2672 GiB and 9.1 seconds\n"
    "INFO 03-02 08:01:02 [kv_cache_utils.py:864] GPU KV cache size: 390,000 tokens\n"
    "INFO:     Application startup complete.\n"
)


def minute(at: int, running: int, waiting: int, used: float) -> str:
    return (
        f"INFO 03-02 08:{at:02}:10 [loggers.py:123] Engine 000: Avg prompt throughput: 900.0 tokens/s, Avg generation throughput: 700.0 tokens/s, "
        f"Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: {used}%, Prefix cache hit rate: 0.0%\n"
    )


@pytest.mark.parametrize(("waiting", "cause"), [(400, "autoscaling-blind"), (0, "healthy")])
def test_nothing_asks_ray_for_a_place(tmp_path: Path, waiting: int, cause: str) -> None:
    """A scaler that adds nodes for tasks without a place sees no request that waits in an engine; beside no queue that is as it should be."""
    log = UP + "".join(minute(at, 128, waiting + 30 * at if waiting else 0, 61.0 + at % 7) for at in range(10, 22))
    status = "======== Autoscaler status: 2026-03-02 08:20:01.1 ========\nTotal Usage:\n 8.0/8.0 GPU\nTotal Demands:\n (no resource demands)\n"
    assert likely(tmp_path, {"vllm.log": log, "monitor.log": status}) == cause


def test_a_table_of_workers_counts_replicas_and_no_memory_of_processes(tmp_path: Path) -> None:
    (tmp_path / "get.txt").write_text(
        "NAME           DESIRED WORKERS   AVAILABLE WORKERS   CPUS   MEMORY   GPUS   STATUS   AGE\n"
        "rag-cluster    5                 3                   48     420Gi    5      ready    9d\n"
    )
    with analyze(tmp_path) as analysis:
        assert analysis.sql("SELECT desired, replicas FROM scaler")[1] == [(5, 3)]
        assert analysis.sql("SELECT count(*) FROM gpu_process")[1] == [(0,)]
