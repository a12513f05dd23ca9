"""Whose memory stands on a card: the server's own course, its stages, its start, a neighbour: from text to verdict, with a rival each."""

from __future__ import annotations

from pathlib import Path

import pytest

from oomdoc.diagnose import analyze
from verdicts import UP, likely, minute


@pytest.mark.parametrize(("step", "cause"), [(260, "memory-leak"), (0, "healthy")])
def test_a_device_without_an_index_has_a_course(tmp_path: Path, step: int, cause: str) -> None:
    """The only card of the host, of which no column says that it is number 0."""
    rows = "".join(f"2026-03-02 {hour:02}:00,{15_000 + step * hour},23028,{390 + hour % 5}\n" for hour in range(24))
    log = UP.replace("390,000", "21,000") + "".join(minute(at, 2, 0, 20.0 + at % 5) for at in range(10, 16))
    table = "time,gpu_used_mib,gpu_total_mib,requests_last_hour\n" + rows
    letter = "Every hour the same 400 questions; nothing else is on the card.\n"
    assert likely(tmp_path, {"vllm.log": log, "hourly.csv": table, "letter.txt": letter}) == cause


TOLD = (
    "(EngineCore_DP0 pid=812) ERROR 03-02 08:30:31 [worker.py:166] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 96.00 MiB. GPU 0 has a total capacity of 44.39 GiB "
    "of which 61.06 MiB is free. Including non-PyTorch memory, this process has 2.10 GiB memory in use. Process {other} has 42.23 GiB memory in use. Of the allocated memory "
    "1.61 GiB is allocated by PyTorch, and 40.00 MiB is reserved by PyTorch but unallocated.\n"
)


@pytest.mark.parametrize(("other", "cause"), [(700, "memory-leak"), (9124, "gpu-shared")])
def test_a_stage_of_the_same_server_is_no_neighbour(tmp_path: Path, other: int, cause: str) -> None:
    """A message names a process that holds the card: one that writes into this very log, or one of somebody else."""
    log = (
        UP.replace("INFO 03-02", "(EngineCore_DP0 pid=700) [Stage-0] INFO 03-02")
        + "".join(minute(at, 2, 0, 12.0 + at % 5) for at in range(10, 30))
        + TOLD.format(other=other)
    )
    grows = 0 if other == 9124 else 230
    rows = "".join(f"08:{at:02}:00,{39_000 + grows * (at - 10)},{2 + at % 3}\n" for at in range(10, 30))
    files = {"server.log": log, "stage0.csv": "time_utc,gpu0_used_mib,stage0_running\n" + rows}
    assert likely(tmp_path, files) == cause


REFUSED = (
    "(Worker_TP{rank} pid={pid}) ERROR 03-02 08:00:41 [multiproc_executor.py:871] ValueError: Free memory on device cuda:{rank} ({free}/139.80 GiB) on startup is less than desired "
    "GPU memory utilization (0.98, 137.00 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.\n"
)


@pytest.mark.parametrize(("rest", "free", "cause"), [(3, "136.10", "memory-utilization-edge"), (3, "91.20", "gpu-shared"), (3700, "136.10", "gpu-shared")])  # fmt: skip
def test_contexts_of_the_start_itself_are_no_neighbours(tmp_path: Path, rest: int, free: str, cause: str) -> None:
    """Little is taken on cards that are empty at rest; much is taken; or what is taken is there at rest, too."""
    log = UP.splitlines(keepends=True)[0].replace(
        "dtype=", "tensor_parallel_size=4, gpu_memory_utilization=0.98, dtype="
    )
    log += "".join(REFUSED.format(rank=rank, pid=400 + rank, free=free) for rank in range(4))
    smi = "index, name, memory.total [MiB], memory.used [MiB]\n" + "".join(f"{i}, NVIDIA H200, 143771 MiB, {rest} MiB\n" for i in range(4))  # fmt: skip
    assert likely(tmp_path, {"vllm.log": log, "smi.csv": smi}) == cause
    with analyze(tmp_path) as analysis:
        books = [entry.parts for entry in analysis.report.ledger if entry.moment == "failure"]
        # the account says whose it is as the verdict does
        assert books and all(
            (each.get("other_processes_bytes") is None) is (cause == "memory-utilization-edge") for each in books
        )


@pytest.mark.parametrize(("cards", "cause"), [(1, "gpu-shared"), (2, "memory-utilization-too-low")])
def test_engines_that_measure_at_once_count_each_other(tmp_path: Path, cards: int, cause: str) -> None:
    """Two engines begin in the same second: on one card each is charged with the other, on two cards the share is too small."""
    log = ""
    for line in (
        "INFO 03-02 08:00:{s:02} llm_engine.py:184] Initializing an LLM engine (v0.5.4) with config: model='/m/phi-2', dtype=torch.float16\n",
        "INFO 03-02 08:00:2{s} model_runner.py:890] Loading model weights took 5.1920 GB\n",
    ):
        log += line.format(s=3) + line.format(s=4)
    log += "    llm = LLM(model='/m/phi-2', gpu_memory_utilization=0.35)\n"
    log += "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"
    smi = "index, name, memory.total [MiB], memory.used [MiB]\n" + "".join(f"{i}, NVIDIA L4, 23034 MiB, 11 MiB\n" for i in range(cards))  # fmt: skip
    assert likely(tmp_path, {"workers.log": log, "smi.csv": smi}) == cause


@pytest.mark.parametrize(("busy", "spins"), [(100, True), (0, False)])
def test_ranks_without_weights_that_are_busy_wait_for_each_other(tmp_path: Path, busy: int, spins: bool) -> None:
    log = (
        "INFO 03-02 08:00:02 [core.py:58] Initializing a V1 LLM engine (v0.12.0) with config: model='Qwen/Qwen3-32B', tensor_parallel_size=2, dtype=torch.bfloat16\n"
        "INFO 03-02 08:00:09 [pynccl.py:103] vLLM is using nccl==2.27.5\n"
    )
    smi = "index, name, memory.total [MiB], memory.used [MiB], utilization.gpu [%]\n" + "".join(f"{i}, NVIDIA L40S, 46068 MiB, 590 MiB, {busy} %\n" for i in range(2))  # fmt: skip
    assert (likely(tmp_path, {"vllm.log": log, "smi.csv": smi}) == "not-memory") is spins
