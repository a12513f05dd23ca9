"""What a loop prints of its memory at each turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from oomdoc.ingest import make_head, read, recognise, step_lines
from oomdoc.intake.scan import Chunk
from verdicts import likely


def _read(text: str) -> list[tuple[int, str, str, int, int]]:
    found = []
    for batch in step_lines.read(text.encode()) if step_lines.TELLING.search(text.encode()) else ():
        columns = batch.columns
        found += list(zip(columns["line"], columns["name"], columns["resource"], columns["bytes"], columns["step"], strict=True))  # fmt: skip
    return found


@pytest.mark.parametrize(
    ("line", "resource"),
    [
        ("step {n}: allocated {s}.50 GiB, reserved 40.00 GiB", "gpu"),
        ("[epoch {n}] loss=0.41 rss={s}.50GiB", "host"),
        ("Iteration {n}  memory_allocated: {s}.50 GiB  max_memory_allocated: 31.00 GiB", "gpu"),
        (">> after batch {n} of 90   resident {s}.50 GiB", "host"),
        ("run {n}   torch.cuda.memory_allocated = {s}.50 GiB", "gpu"),
        ("10:0{n}:00 step={n} prompts=256 load=0.41s  rss={s}.50G", "host"),
        ("[2027-02-03 10:0{n}:00] step {n} resident {s}.50G", "host"),
    ],
)
def test_turns_and_sizes(line: str, resource: str) -> None:
    text = "\n".join(line.format(n=n, s=3 * n) for n in range(1, 6))
    assert _read(text) == [
        (n, "allocated" if resource == "gpu" else "resident", resource, int((3 * n + 0.5) * 2**30), n)
        for n in range(1, 6)
    ]


@pytest.mark.parametrize(
    "lines",
    [
        [f"step {n}: allocated {n}.50 GiB" for n in range(1, 5)],  # four are no course
        [f"step {n % 3}: allocated {n}.50 GiB" for n in range(1, 9)],  # the number does not count
        [f"step {n}: reserved {n}.50 GiB" for n in range(1, 9)],  # kept for later
        [f"step {n}: max_memory_allocated {n}.50 GiB" for n in range(1, 9)],  # a peak never falls
        [f"step {n}: allocated {n} pages" for n in range(1, 9)],
        [f"we ran step {n} and it had allocated {n}.50 GiB" for n in range(1, 9)],  # prose
        [
            f"{word} {n}: allocated {n}.50 GiB"
            for n, word in enumerate(("step", "batch", "run", "call", "turn", "loop"))
        ],  # no two alike
    ],
)
def test_near_misses(lines: list[str]) -> None:
    assert _read("\n".join(lines)) == []


def test_a_log_keeps_its_kind_and_a_course_stands_in_it() -> None:
    data = "\n".join(f"step {n}: allocated {n}.50 GiB" for n in range(1, 9)).encode()
    ingestor, _ = recognise(make_head("x.txt", data))
    assert (
        sum(batch.rows for batch in read(ingestor, "x.txt", [Chunk(data, 1, True)]) if batch.table == "process_memory")
        == 8
    )


OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 96.00 MiB. GPU 0 has a total capacity of 23.64 GiB of which 41.00 MiB is free. "
    "Including non-PyTorch memory, this process has 23.60 GiB memory in use. Of the allocated memory 22.90 GiB is allocated by PyTorch, and 210.00 MiB "
    "is reserved by PyTorch but unallocated.\n"
)


@pytest.mark.parametrize(("gain", "cause"), [(1.9, "memory-leak"), (0.0, None)])
def test_from_text_to_verdict(gain: float, cause: str | None, tmp_path: Path) -> None:
    text = "".join(f"round {n:2d} done   allocated {2.2 + gain * n:.2f} GiB\n" for n in range(1, 11)) + OOM
    found = likely(tmp_path, {"session.txt": text})
    assert found == cause if cause else found != "memory-leak"
