"""From text to verdict: refusals without figures, caps, neighbours that came later, and what pool or host parts; each with a rival."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from verdicts import first

_BARE = 'Traceback (most recent call last):\n  File "/opt/job/serve.py", line 31, in start\nRuntimeError: CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported at some other API call.\n'
_NCCL = "[2026-03-02 07:11:09] node4:5150:5150 [0] include/alloc.h:228 NCCL WARN Cuda failure 'out of memory'\nnode4:5150:5150 [0] NCCL INFO init.cc:1501 -> 1\n"
_PINNED = 'Traceback (most recent call last):\n  File "/opt/job/cache.py", line 12, in pin_memory\nRuntimeError: CUDA error: out of memory\n'


def _card(used: int, pid: int, held: int) -> Mapping[str, str]:
    return {
        "card.csv": f"memory.used [MiB], memory.free [MiB], memory.total [MiB]\n{used} MiB, {46068 - used} MiB, 46068 MiB\n",
        "apps.csv": f"pid, process_name, used_gpu_memory [MiB]\n{pid}, python, {held} MiB\n",
    }


@pytest.mark.parametrize(
    ("text", "used", "held", "cause"),
    [
        (_BARE, 45700, 45690, "gpu-shared"),
        (_NCCL, 45800, 45790, "memory-utilization-edge"),
        (_PINNED, 690, 680, "host-memory-exhausted"),
        (_BARE, 690, 680, "host-memory-exhausted"),
    ],
)
def test_without_a_figure_the_card_decides(tmp_path: Path, text: str, used: int, held: int, cause: str) -> None:
    assert first(tmp_path, {"job.log": text, **_card(used, 5150, held)})[0] == cause


def test_an_empty_listing_of_another_moment_decides_nothing(tmp_path: Path) -> None:
    card = {"card.csv": "memory.used [MiB], memory.free [MiB], memory.total [MiB]\n4 MiB, 46064 MiB, 46068 MiB\n"}
    assert first(tmp_path, {"job.log": _BARE, **card})[1] < 0.3


_CAPPED = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked} GiB. GPU 0 has a total capacity of 47.41 GiB of which {free} GiB is free. Including non-PyTorch memory, this process has 12.90 GiB "
    "memory in use. 18.96 GiB allowed; Of the allocated memory 12.25 GiB is allocated by PyTorch, and 120.00 MiB is reserved by PyTorch but unallocated.\n"
)


@pytest.mark.parametrize(("asked", "free", "capped"), [("7.50", "34.10", True), ("9.00", "8.10", False)])
def test_a_cap_of_the_process(tmp_path: Path, asked: str, free: str, capped: bool) -> None:
    text = 'Traceback (most recent call last):\n  File "/opt/job/a.py", line 3, in load\n' + _CAPPED.format(
        asked=asked, free=free
    )
    assert (first(tmp_path, {"out.log": text})[0] == "memory-utilization-too-low") is capped


_SERVING = """INFO 05-06 10:00:00 [core.py:69] Initializing a V1 LLM engine (v0.11.0) with config: model='org/m-7b', dtype=torch.bfloat16, max_seq_len=16384, tensor_parallel_size=1
{start}INFO 05-06 10:01:30 [api_server.py:1912] Started server process [40]
INFO:     Application startup complete.
ERROR 05-06 10:09:07 [core.py:712]   File "/v/vllm/v1/worker/gpu_model_runner.py", line 2152, in execute_model
ERROR 05-06 10:09:07 [core.py:712] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 896.00 MiB. GPU 0 has a total capacity of 44.53 GiB of which 210.00 MiB is free. {others}Including non-PyTorch memory, this process has {own} GiB memory in use. Of the allocated memory {live} GiB is allocated by PyTorch, and 150.00 MiB is reserved by PyTorch but unallocated.
"""


@pytest.mark.parametrize(
    ("others", "own", "live", "cause"),
    [
        ("Process 7712 has 4.10 GiB memory in use. ", "40.20", "39.40", "gpu-shared"),
        ("", "44.30", "43.40", "prefill-activation-spike"),
    ],
)
def test_who_came_while_the_engine_ran(tmp_path: Path, others: str, own: str, live: str, cause: str) -> None:
    assert first(tmp_path, {"vllm.log": _SERVING.format(start="", others=others, own=own, live=live)})[0] == cause


_GROWS = "# npu-smi every 6 requests, the same clip\ntime,requests,used_mb\n"


@pytest.mark.parametrize(("each", "cause"), [(310, "memory-leak"), (0, "")])
def test_growth_by_the_request(tmp_path: Path, each: int, cause: str) -> None:
    rows = "".join(f"11:{i // 2:02d}:{i % 2 * 30:02d},{i * 6},{30000 + each * i + (i * 7) % 5}\n" for i in range(18))
    told = first(
        tmp_path,
        {
            "grow.csv": _GROWS + rows,
            "s.log": "INFO 12-22 11:00:01 [loggers.py:127] Engine 000: Avg prompt throughput: 90.0 tokens/s, Avg generation throughput: 9.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.1%, Prefix cache hit rate: 0.0%\n",
        },
    )
    assert (told[0] == "memory-leak") is (cause == "memory-leak")


@pytest.mark.parametrize(("lengths", "cause"), [((4900, 6100), True), ((900, 6100), False)])
def test_the_pool_parts_the_answered(tmp_path: Path, lengths: tuple[int, int], cause: bool) -> None:
    log = "othersrv 2.4 listening\ncache ready num_pages=4400 page_size=1\nlimits max_context_len=65536 slots=8\n"
    table = "id,prompt_tokens,status,seconds\n1,800,200,3\n2,3900,200,5\n3,{},request timed out,300\n4,1200,200,2\n5,{},no response,300\n6,2500,200,4\n".format(
        *lengths
    )
    assert (first(tmp_path, {"srv.log": log, "calls.csv": table})[0] == "kv-pool-below-max-model-len") is cause


_FREE = "$ free -g   # {when}\n               total        used        free      shared  buff/cache   available\nMem:             119          {used}          {free}           0          20         {left}\n"


@pytest.mark.parametrize(("used", "left", "cause"), [(116, 2, "host-memory-exhausted"), (14, 104, "healthy")])
def test_a_pool_that_is_the_hosts_memory(tmp_path: Path, used: int, left: int, cause: str) -> None:
    log = """INFO 02-03 08:00:11 [gpu_model_runner.py:5301] Model loading took 17.2 GiB memory and 61.2 seconds
INFO 02-03 08:02:40 [gpu_worker.py:520] Available KV cache memory: 84.9 GiB
INFO:     Application startup complete.
"""
    free = _FREE.format(when="before", used=8, free=90, left=110) + _FREE.format(
        when="server is up", used=used, free=1, left=left
    )
    assert first(tmp_path, {"up.log": log, "mem.txt": free})[0] == cause


@pytest.mark.parametrize(("status", "cause"), [("137", "host-memory-exhausted"), ("0", "healthy")])
def test_a_status_that_was_asked_for(tmp_path: Path, status: str, cause: str) -> None:
    log = f"""$ vllm serve org/m-120b --max-model-len 4096
(EngineCore pid=77) INFO 05-19 09:41:08 [fp8.py:188] Using a backend
$ echo $?
{status}
$ vllm serve org/m-20b --max-model-len 4096
(EngineCore pid=91) INFO 05-19 10:22:14 [gpu_model_runner.py:4820] Model loading took 13.1 GiB memory and 31.0 seconds
INFO:     Application startup complete.
"""
    assert first(tmp_path, {"shell.log": log})[0] == cause
