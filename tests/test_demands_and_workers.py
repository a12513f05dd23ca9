"""What a cluster says of its scalers, workers, pods and nodes: from text to verdict, with a rival each."""

from __future__ import annotations

from pathlib import Path

import pytest

from verdicts import UP, likely, minute, tables


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
    with tables(tmp_path) as analysis:
        assert analysis.sql("SELECT desired, replicas FROM scaler")[1] == [(5, 3)]
        assert analysis.sql("SELECT count(*) FROM gpu_process")[1] == [(0,)]


@pytest.mark.parametrize(("times", "cause"), [(2900, "not-memory"), (12, "healthy")])
def test_a_pod_that_runs_and_is_never_ready_does_not_serve(tmp_path: Path, times: int, cause: str) -> None:
    """Flat memory and a container that runs are no sign of health where nobody is answered for hours."""
    pod = (
        "Name:             chat-worker-7\nContainers:\n  vllm:\n    State:          Running\n      Started:      Sun, 01 Mar 2026 08:12:30 +0000\n"
        "    Restart Count:  0\n    Limits:         memory: 64Gi, nvidia.com/gpu: 1\nEvents:\n  Type     Reason     Age                      From     Message\n"
        f"  ----     ------     ----                     ----     -------\n  Warning  Unhealthy  1m2s (x{times} over 8h3m)  kubelet  Readiness probe failed: context deadline exceeded\n"
    )
    rows = "".join(f"{at:02}:00,40110,46068,27.{at % 3}\n" for at in range(1, 9))
    assert (
        likely(
            tmp_path, {"describe.txt": pod, "memory.csv": "time,gpu_used_mib,gpu_total_mib,working_set_gib\n" + rows}
        )
        == cause
    )


@pytest.mark.parametrize("head", ["", "serverless worker 0.4, one L40S, at most two of them\n"])
def test_an_environment_below_a_remark_is_one(tmp_path: Path, head: str) -> None:
    text = (
        head
        + "MODEL_NAME=Qwen/Qwen3-32B-AWQ\nQUANTIZATION=awq\nMAX_MODEL_LENGTH=2048\nGPU_MEMORY_UTILIZATION=0.98\nENFORCE_EAGER=1\n"
    )
    (tmp_path / "endpoint.txt").write_text(text)
    with tables(tmp_path) as analysis:
        told = analysis.sql(
            "SELECT flag, value FROM engine_flag WHERE flag IN ('gpu_memory_utilization', 'max_model_len') ORDER BY flag"
        )[1]
        assert told == [("gpu_memory_utilization", "0.98"), ("max_model_len", "2048")]


def test_labels_of_a_node_in_json_s_spelling(tmp_path: Path) -> None:
    (tmp_path / "node.txt").write_text(
        "$ kubectl get node gpu-3 -o json | jq '.metadata.labels' | grep nvidia\n"
        '  "nvidia.com/gpu.memory": "19968",\n  "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-2g.20gb",\n'
        "$ kubectl describe node gpu-3 | grep -A2 Allocatable\nAllocatable:\n  cpu:                23660m\n  nvidia.com/gpu:     3\n"
    )
    with tables(tmp_path) as analysis:
        assert ("2g.20gb", 19968 << 20) in analysis.sql("SELECT mig_profile, total_bytes FROM gpu_device")[1]
