"""A share that is paged out, who grows on a card of several, a watcher that ends what only waits, a prompt that fills the pool before it is
counted, and a step that leaves no pool: from text to verdict, with a rival each."""

from __future__ import annotations

from pathlib import Path

import pytest

from verdicts import UP, likely, minute

MIB_OF_A_GIB = 1024


def sweep(rates: tuple[float, float]) -> str:
    rows = "".join(f"{share},96,{rate:.0f},0\n" for share, rate in zip(("0.78", "0.88"), rates, strict=True))
    return "gpu_memory_utilization,concurrent,out_tok_s,errors\n" + rows


@pytest.mark.parametrize(
    ("rates", "cause"),
    [
        pytest.param((2900.0, 610.0), "memory-utilization-edge", id="the larger share is served from somewhere slower"),
        pytest.param((2900.0, 3050.0), "healthy", id="it serves as much, and a little more"),
    ],
)
def test_a_larger_share_that_serves_less(rates: tuple[float, float], cause: str, tmp_path: Path) -> None:
    assert likely(tmp_path, server__log=UP + minute(20, 90, 0, 31), sweep__csv=sweep(rates)) == cause


def loop(gain: int) -> str:
    """A session in which the processes of a card are listed every four minutes."""
    blocks = (
        f"{9 + at // 15:02}:{at % 15 * 4:02}:00\n4410, VLLM::EngineCore, {24_000 + at * gain}\n4471, ocr/reader, 6200\n"
        for at in range(40)
    )
    return "# while true; do date +%T; nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv,noheader,nounits; sleep 240; done\n" + "".join(blocks)  # fmt: skip


def refused(others: float) -> str:
    return (
        "2026-03-02 11:41:07 reader[4471] ERROR page 88 failed\n"
        "Traceback (most recent call last):\n"
        '  File "/srv/ocr/reader.py", line 51, in page\n'
        "    out = self.net(image)\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 128.00 MiB. GPU 0 has a total capacity of 39.38 GiB of which 61.00 MiB is free. "
        f"Process 4410 has {others} GiB memory in use. Process 4471 has 6.05 GiB memory in use. Of the allocated memory 5.40 GiB is allocated by PyTorch, "
        "and 102.10 MiB is reserved by PyTorch but unallocated.\n"
    )


@pytest.mark.parametrize(
    ("gain", "cause"),
    [
        pytest.param(250, "memory-leak", id="the server grew until nobody had room"),
        pytest.param(0, "gpu-shared", id="it holds what it always held"),
    ],
)
def test_who_grows_on_a_card_of_several(gain: int, cause: str, tmp_path: Path) -> None:
    held = (24_000 + 39 * gain) / MIB_OF_A_GIB if gain else 33.2
    assert likely(tmp_path, server__log=UP, procs__txt=loop(gain), reader__log=refused(round(held, 2))) == cause


def watched(ends: bool) -> str:
    lines = ["Mar 02 08:30:00 box keeper[77]: probe ok 0.4s"]
    for at in (31, 36, 41):
        lines += [
            f"Mar 02 08:{at}:{second} box keeper[77]: probe FAIL timeout after 8s ({nth}/3)"
            for nth, second in enumerate(("00", "20", "40"), 1)
        ]
        lines.append(
            f"Mar 02 08:{at}:41 box keeper[77]: 3 failures in a row: "
            + ("podman restart chat" if ends else "mail to the desk")
        )
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("ends", "cause"), [pytest.param(True, "probe-restart-loop", id="it ends what only waits"), (False, None)]
)
def test_a_watcher_of_ones_own(ends: bool, cause: str | None, tmp_path: Path) -> None:
    found = likely(
        tmp_path, server__log=UP + "".join(minute(at, 64, 3, 30) for at in range(25, 31)), keeper__log=watched(ends)
    )
    assert found == cause or (cause is None and found != "probe-restart-loop")


def stalled(used: tuple[float, ...]) -> str:
    lines = (
        f"INFO 03-02 08:{20 + at}:10 [loggers.py:123] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, "
        f"Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: {share}%, Prefix cache hit rate: 0.0%\n"
        for at, share in enumerate(used)
    )
    return UP + minute(19, 2, 0, 3) + "".join(lines) + minute(40, 1, 0, used[-1] + 2) + minute(41, 1, 0, used[-1] + 2)


@pytest.mark.parametrize(
    ("used", "cause"),
    [
        pytest.param((8.0, 17.0, 26.0, 35.0, 44.0), "healthy", id="its blocks are taken: a long prompt is computed"),
        pytest.param((44.0, 44.0, 44.0, 44.0, 44.0), "not-memory", id="nothing moves: it waits for something else"),
    ],
)
def test_a_prompt_that_is_counted_at_its_end(used: tuple[float, ...], cause: str, tmp_path: Path) -> None:
    assert likely(tmp_path, server__log=stalled(used)) == cause


def planned(peak: float, left: float) -> str:
    return (
        "INFO 03-02 08:00:02 [core.py:108] Initializing a V1 LLM engine (v0.24.0) with config: model='/m/reader-70b', dtype=torch.bfloat16\n"
        "DEBUG 03-02 08:00:09 [gpu_worker.py:301] worker init memory snapshot: torch_peak=0.0GiB, free_memory=78.70GiB, total_memory=79.18GiB, cuda_memory=0.48GiB\n"
        "INFO 03-02 08:01:30 [gpu_model_runner.py:5022] Model loading took 51.20 GiB memory and 60.1 seconds\n"
        f"DEBUG 03-02 08:02:30 [gpu_worker.py:559] Memory profiling takes 20.10 seconds. Total non KV cache memory: {51.9 + peak:.2f}GiB; "
        f"torch peak memory increase: {peak}GiB; non-torch forward increase memory: 0.70GiB; weights memory: 51.20GiB.\n"
        f"INFO 03-02 08:02:30 [gpu_worker.py:560] Available KV cache memory: {left} GiB\n"
        "ERROR 03-02 08:02:31 [core.py:1247] ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"
    )


def test_a_step_that_leaves_no_pool(tmp_path: Path) -> None:
    assert likely(tmp_path, server__log=planned(22.4, -1.45)) == "prefill-activation-spike"


def test_a_step_of_ordinary_size_beside_no_pool(tmp_path: Path) -> None:
    text = planned(2.4, -1.45).replace("51.20 GiB memory", "70.60 GiB memory").replace("51.20GiB", "70.60GiB")
    assert likely(tmp_path, server__log=text) != "prefill-activation-spike"
