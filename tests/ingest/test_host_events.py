"""Host memory and device errors in single lines, and the lines that only sound like them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoc.evidence.tables import TABLES
from oomdoc.ingest import host_events
from oomdoc.ingest.base import Pattern

SAMPLES = [(pattern, text, want) for pattern in host_events.PATTERNS for text, want in pattern.samples]
NAMES = [f"{pattern.name}-{number}" for number, (pattern, _, _) in enumerate(SAMPLES)]


def kinds(text: str) -> list[str]:
    """Kinds and topics that the patterns tell of a line."""
    found = []
    for pattern in host_events.PATTERNS:
        if any(anchor in text for anchor in pattern.anchors):
            found += [row.get("kind") or row["topic"] for row in pattern.rows(text)]
    return found


@pytest.mark.parametrize(("pattern", "text", "want"), SAMPLES, ids=NAMES)
def test_every_sample_gives_its_row(pattern: Pattern, text: str, want: dict[str, Any]) -> None:
    assert any(anchor in text for anchor in pattern.anchors)
    row = next(iter(pattern.rows(text)))
    assert {name: row.get(name) for name in want} == want
    assert set(row) <= set(TABLES[pattern.table].column_names)


@pytest.mark.parametrize(("pattern", "text", "want"), SAMPLES, ids=NAMES)
def test_no_sample_is_told_twice_in_one_table(pattern: Pattern, text: str, want: dict[str, Any]) -> None:
    others = [other for other in host_events.PATTERNS if other is not pattern and other.table == pattern.table]
    assert [other.name for other in others if list(other.rows(text))] == []


def test_every_kind_is_explained() -> None:
    given_kinds = {row["kind"] for pattern in host_events.PATTERNS for text, _ in pattern.samples for row in pattern.rows(text)
            if pattern.table == "host_event"}  # fmt: skip
    assert given_kinds <= set(host_events.KINDS)


@pytest.mark.parametrize(
    "line",
    [
        "exit code 137",
        "Process 12 exited with code 137",
        "OSError: [Errno 28] No space left on device: '/srv/.cache/engine/compile/ab12'",
        "tar: /data/model.bin: Cannot write: No space left on device",
        "NCCL WARN Error while attaching to shared memory segment /dev/shm/nccl- (size 0), error: No such file",
        "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-ab12cd (size 100), error: Permission denied",
        "No available shared memory broadcast block found in 60 seconds.",
        "There appear to be 1 leaked shared_memory objects to clean up at shutdown",
        "NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "std::bad_alloc: out_of_memory: CUDA error at: pool.cpp: cudaErrorMemoryAllocation",
        "    raise MemoryError(size)",
        "0 Workers (tasks / actors) killed due to memory pressure (OOM), 1 Workers crashed due to other reasons",
        "pcieport 0000:00:01.0: PCIe Bus Error: severity=Corrected, type=Physical Layer",
        '            "OOMKilled": false,',
        "memory+swap: usage 2048kB, limit 9007199254740988kB, failcnt 0",
        "Killed process 7 by request of the user",
        "Node 0 MemTotal:        8874196 kB",
        "users often write out of memory into a prompt",
        "slot exit in 135 s",
        "pcieport 0000:40:01.1: pciehp: Slot(9): Link Down",
        "infiniband mlx5_2: port 1 state change DOWN -> INIT",
        "bnxt_en 0000:02:00.0 eth5: NIC Link is Up, 25000 Mbps full duplex",
    ],
)
def test_near_misses_are_no_events(line: str) -> None:
    assert kinds(line) == []


def test_an_unlimited_group_has_no_limit() -> None:
    pattern = next(one for one in host_events.PATTERNS if one.name == "kernel-cgroup-usage")
    row = next(iter(pattern.rows("memory: usage 100kB, limit 9007199254740988kB, failcnt 0")))
    assert row["limit_bytes"] is None and row["bytes"] == 102400


def test_a_list_of_guesses_is_weak_and_an_explicit_reason_is_not() -> None:
    guess = "The actor died unexpectedly. Worker exit type: SYSTEM_ERROR (1) the process is killed by the OOM killer"
    assert kinds(guess) == ["worker-died"]
    reason = "Worker exit type: SYSTEM_ERROR Task was killed due to the node running low on memory."
    assert kinds(reason) == ["ray-memory-kill"]


def test_possible_swap_space_is_a_fact_and_a_refusal_is_an_event() -> None:
    tail = "large swap space. 9.00 GiB out of the 10.00 GiB total CPU memory is allocated for the swap space."
    assert kinds("WARNING Possibly too " + tail) == ["swap-space"]
    event = next(one for one in host_events.PATTERNS if one.name == "swap-space")
    assert list(event.rows("Possibly too " + tail)) == [] and len(list(event.rows("ValueError: Too " + tail))) == 1


@given(st.binary(max_size=400) | st.text(max_size=300).map(str.encode))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_read_without_an_exception(data: bytes) -> None:
    kinds(data.decode("utf-8", "replace"))
