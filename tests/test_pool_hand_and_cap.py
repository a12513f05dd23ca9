"""From text to verdict: a pool that does not fit, a process ended by hand, a queue at a cap; each with near misses."""

from __future__ import annotations

from pathlib import Path

import pytest

from verdicts import first as first_of
from verdicts import shows

_POOL = """\
INFO 04-03 09:12:41 [gpu_worker.py:270] Available KV cache memory: 41.20 GiB
ERROR 04-03 09:12:44 [core.py:610] EngineCore failed to start.
ERROR 04-03 09:12:44 [core.py:610]   File "/opt/vllm/v1/worker/gpu_model_runner.py", line 2210, in _allocate_kv_cache_tensors
ERROR 04-03 09:12:44 [core.py:610] torch.OutOfMemoryError: {told}
"""


@pytest.mark.parametrize(
    ("message", "edge"),
    [
        ("CUDA out of memory. Tried to allocate 1.84 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.21 GiB is free. Including non-PyTorch memory, this process has 77.90 GiB memory in use. Of the allocated memory 76.60 GiB is allocated by PyTorch, and 310.00 MiB is reserved by PyTorch but unallocated.", True),
        ("HIP out of memory. Tried to allocate 920.00 MiB. GPU 0 has a total capacity of 47.98 GiB of which 340.00 MiB is free. Of the allocated memory 46.02 GiB is allocated by PyTorch, and 120.00 MiB is reserved by PyTorch but unallocated.", True),
        ("CUDA out of memory. Tried to allocate 1.84 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.21 GiB is free. Process 511 has 14.70 GiB memory in use. Including non-PyTorch memory, this process has 63.20 GiB memory in use. Of the allocated memory 62.00 GiB is allocated by PyTorch, and 210.00 MiB is reserved by PyTorch but unallocated.", False),
    ],
)  # fmt: skip
def test_a_piece_of_the_pool_fails(tmp_path: Path, message: str, edge: bool) -> None:
    assert (first_of(tmp_path, {"serve.log": _POOL.format(told=message)})[0] == "memory-utilization-edge") is edge


_DIES = """\
INFO 05-06 14:00:01 [launcher.py:30] Application startup complete.
(APIServer) INFO 05-06 14:03:10 [loggers.py:200] Engine 000: Avg prompt throughput: 90.0 tokens/s, Avg generation throughput: 40.0 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 4.0%, Prefix cache hit rate: 0.0%
ERROR 05-06 14:03:15 [core_client.py:600] Engine core process EngineCore_DP0 died unexpectedly.
"""
_SHELL = "# ps -eo pid,ppid,rss,args\n    PID    PPID     RSS COMMAND\n{first}\n    211 {parent} 5120000 VLLM::EngineCore\n# {command}\n"


@pytest.mark.parametrize(
    ("first", "parent", "command", "told"),
    [
        ("      1       0  910000 python3 -m vllm.entrypoints.openai.api_server", 1, "kill -9 211", True),
        ("    190      12  910000 python3 /usr/bin/vllm serve m", 190, "kill -s KILL 211", True),
        ("      1       0    9000 /sbin/init", 1, "kill -9 211", False),
        ("      1       0  910000 python3 -m vllm.entrypoints.openai.api_server", 1, "kill -9 999", False),
    ],
)
def test_a_process_that_somebody_ends(tmp_path: Path, first: str, parent: int, command: str, told: bool) -> None:
    shell = _SHELL.format(first=first, parent=parent, command=command)
    assert (first_of(tmp_path, {"serve.log": _DIES, "shell.txt": shell})[0] == "not-memory") is told


@pytest.mark.parametrize(("running", "waiting", "told"), [((4, 12, 12, 9, 12, 12, 7, 12), (0, 3, 5, 0, 2, 6, 0, 4), True), ((2, 16, 16, 16, 11, 16, 16, 5), (0, 1, 2, 7, 0, 3, 2, 0), True), ((4, 12, 9, 9, 7, 12, 7, 12), (0, 0, 0, 0, 1, 0, 0, 0), False)])  # fmt: skip
def test_a_queue_at_a_cap(tmp_path: Path, running: tuple[int, ...], waiting: tuple[int, ...], told: bool) -> None:
    rows = "".join(f"{at},{run},{wait},{run / 40:.3f}\n" for at, (run, wait) in enumerate(zip(running, waiting, strict=True)))  # fmt: skip
    files = {"steps.csv": "step,running,waiting,kv_usage\n" + rows}
    assert shows(tmp_path, files, "not-memory", "queue-at-a-cap") is told
