"""Counters of a memory group, in the layouts in which people read them, and texts that are none."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoc.ingest import group_counters, make_head
from oomdoc.intake.scan import chunks


def read(text: str | bytes, size: int = 1 << 20) -> list[dict[str, Any]]:
    data = text if isinstance(text, bytes) else text.encode()
    rows = []
    for batch in group_counters.read("any", chunks(io.BytesIO(data), size)):
        names, columns = list(batch.columns), list(batch.columns.values())
        rows += [{"table": batch.table, **dict(zip(names, row, strict=True))} for row in zip(*columns, strict=True)]
    return rows


def is_counters(text: str) -> bool:
    return group_counters.matches(make_head("any", text.encode()))


VERSION_1 = """== memory.limit_in_bytes
3000000000
== memory.max_usage_in_bytes
2999000000
== memory.usage_in_bytes
1000
== memory.failcnt
17
== memory.oom_control
oom_kill_disable 0
under_oom 0
oom_kill 2
"""


@pytest.mark.parametrize("size", [7, 40, 1 << 20])
def test_version_1_counters(size: int) -> None:
    assert is_counters(VERSION_1)
    (row,) = read(VERSION_1, size)
    wanted = ("cgroup-oom-count", 2, 3000000000, 2999000000, 12)
    assert (row["kind"], row["count"], row["limit_bytes"], row["bytes"], row["line"]) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "/sys/fs/cgroup/memory.max:max\n/sys/fs/cgroup/memory.peak:900\n/sys/fs/cgroup/memory.events:oom_kill 0\n",
        "==> memory.max <==\nmax\n==> memory.peak <==\n900\n==> memory.events <==\nlow 0\nhigh 0\nmax 3\noom 1\noom_kill 0\n",
        "$ cat /sys/fs/cgroup/memory.max\nmax\n$ cat memory.peak\n900\n# memory.events\noom 0\noom_kill 0\n",
    ],
)
def test_version_2_counters_in_several_layouts(text: str) -> None:
    assert is_counters(text)
    counts = [row for row in read(text) if row["table"] == "host_event"]
    assert all(row["limit_bytes"] is None for row in counts)
    assert [row["count"] for row in counts if row["count"] is not None] == [0]
    assert 900 in [row["bytes"] for row in counts]


def test_counters_without_a_word_on_memory_are_a_problem() -> None:
    (row,) = read("memory.swappiness\n60\n")
    assert row["table"] == "problem"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "INFO 01-05 12:00:00 [gpu_worker.py:1] memory.max is unknown\n" * 5,
        "[ 1.0] memory: usage 1kB, limit 1kB, failcnt 0\n[ 1.1] cache 5\n[ 1.2] rss 6\n",
        "a note about memory.max and what it does\nanother line of prose\n",
    ],
)
def test_other_texts_are_no_counters(text: str) -> None:
    assert not is_counters(text)


@given(st.binary(max_size=400) | st.text(max_size=300).map(str.encode))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_read_without_an_exception(data: bytes) -> None:
    group_counters.matches(make_head("any", data))
    read(data, 64)
