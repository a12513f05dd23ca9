"""What a client met and what somebody asked or fears are no failures of the server: from text to verdict, beside what is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from verdicts import likely

SERVE = """INFO 02-11 09:02:11 api_server.py:712] vLLM API server version 0.6.6.post1
INFO 02-11 09:02:20 llm_engine.py:234] Initializing an LLM engine (v0.6.6.post1) with config: model='/data/grader-32b', max_seq_len=8192, tensor_parallel_size=2
INFO 02-11 09:03:08 distributed_gpu_executor.py:57] # GPU blocks: 1530, # CPU blocks: 2048
INFO:     Application startup complete.
"""
PRESSED = "".join(
    f"INFO 02-11 09:{5 + i:02}:12 metrics.py:467] Avg prompt throughput: 702.8 tokens/s, Avg generation throughput: {600 - 10 * i}.0 tokens/s, "
    f"Running: {40 - i} reqs, Swapped: 0 reqs, Pending: {50 + i} reqs, GPU KV cache usage: 99.{i % 9}%, CPU KV cache usage: 0.0%.\n"
    f"WARNING 02-11 09:{5 + i:02}:13 scheduler.py:1645] Sequence group cmpl-{i} is preempted by PreemptionMode.RECOMPUTE mode because there is not enough "
    f"KV cache space. total_num_cumulative_preemption={50 * i + 1}\n"
    for i in range(12)
)
CALM = "".join(
    f"INFO 02-11 09:{5 + i:02}:12 metrics.py:467] Avg prompt throughput: 702.8 tokens/s, Avg generation throughput: 300.0 tokens/s, "
    f"Running: 8 reqs, Swapped: 0 reqs, Pending: 0 reqs, GPU KV cache usage: {6 + i}.1%, CPU KV cache usage: 0.0%.\n"
    for i in range(12)
)
STOPPED = """$ python grade.py --workers 96 answers.jsonl
loaded 600 items
[09:11:20] 128/600  mean latency 218.3 s
^C
Traceback (most recent call last):
  File "grade.py", line 88, in <module>
KeyboardInterrupt
"""
FAILED = """$ python other_service.py
Traceback (most recent call last):
  File "other_service.py", line 88, in <module>
    model = load(path)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.60 GiB of which 1.00 GiB is free.
"""


def test_who_stops_his_client_is_no_second_server(tmp_path: Path) -> None:
    assert likely(tmp_path, {"serve.log": SERVE + PRESSED, "client.txt": STOPPED}) == "kv-demand-exceeds-pool"


def test_a_failure_beside_a_server_that_is_well_is_what_the_bundle_is_about(tmp_path: Path) -> None:
    assert likely(tmp_path, {"serve.log": SERVE + CALM, "other.txt": FAILED}) not in (
        "kv-demand-exceeds-pool",
        "healthy",
    )


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("Is host memory growing in there? Do we have to restart it at night? All answers arrive.", "healthy"),
        ("I am afraid that it will run out of memory once the tenants come.", "healthy"),
        ("Host memory grows by 2 GB an hour and only a restart brings it back.", "memory-leak"),
    ],
)
def test_who_asks_or_fears_has_seen_nothing(said: str, cause: str, tmp_path: Path) -> None:
    assert likely(tmp_path, {"serve.log": SERVE + CALM, "mail.txt": said + "\n"}) == cause


def test_the_number_of_a_product_counts_no_devices(tmp_path: Path) -> None:
    refused = """INFO 02-11 09:03:08 worker.py:241] the current vLLM instance can use total_gpu_memory (23.12GiB) x gpu_memory_utilization (0.60) = 13.87GiB
INFO 02-11 09:03:08 worker.py:241] model weights take 14.99GiB; non_torch_memory takes 0.10GiB; PyTorch activation peak memory takes 0.55GiB; the rest of the memory reserved for KV Cache is -1.77GiB.
ERROR 02-11 09:03:08 engine.py:366] ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.
"""
    files = {
        "serve.log": SERVE.splitlines(keepends=True)[0] + refused,
        "mail.txt": "RTX 4090 (24 GB), nothing else on it.\n",
    }
    assert likely(tmp_path, files) == "memory-utilization-too-low"
