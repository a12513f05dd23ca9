"""Statistics of torch's allocator: every notation says the same, and what is no such dump is left alone."""

from __future__ import annotations

import io
import json
import pprint
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoc.ingest import make_head, memory_stats, recognise
from oomdoc.intake.scan import chunks
from oomdoc.units import GIB, MIB

FLAT: dict[str, int] = {
    "active.all.current": 912, "active.all.peak": 940, "active.all.allocated": 70_000, "active.all.freed": 69_088,
    "active_bytes.all.current": 61 * GIB, "active_bytes.all.peak": 63 * GIB,
    "allocated_bytes.all.current": 60 * GIB, "allocated_bytes.all.peak": 62 * GIB,
    "allocated_bytes.large_pool.current": 59 * GIB, "allocated_bytes.small_pool.current": GIB,
    "inactive_split_bytes.all.current": 900 * MIB, "max_split_size": -1, "num_alloc_retries": 3, "num_ooms": 2,
    "oversize_allocations.current": 0, "reserved_bytes.all.current": 66 * GIB, "reserved_bytes.all.peak": 66 * GIB,
    "reserved_bytes_by_private_pools.0_1.all.current": 5,
}  # fmt: skip


def nested() -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in FLAT.items():
        at = tree
        *path, last = key.split(".")
        for part in path:
            at = at.setdefault(part, {})
        at[last] = value
    return tree


def read(text: str | bytes, size: int = 1 << 20) -> dict[str, list[dict[str, Any]]]:
    data = text if isinstance(text, bytes) else text.encode()
    tables: dict[str, list[dict[str, Any]]] = {}
    for batch in memory_stats.read("any", chunks(io.BytesIO(data), size)):
        for row in zip(*batch.columns.values(), strict=True):
            told = {name: value for name, value in zip(batch.columns, row, strict=True) if value is not None}
            tables.setdefault(batch.table, []).append(told)
    return tables


def facts(tables: dict[str, list[dict[str, Any]]]) -> dict[str, int]:
    return {row["metric"]: row["current"] for row in tables["allocator_stat"]}


NOTATIONS = {
    "json": json.dumps(FLAT),
    "json of several lines": json.dumps(FLAT, indent=2),
    "repr": repr(FLAT),
    "pprint": pprint.pformat(FLAT),
    "ordered, 3.11": "OrderedDict([" + ", ".join(f"({key!r}, {value})" for key, value in FLAT.items()) + "])",
    "ordered, 3.12": f"OrderedDict({FLAT!r})",
    "nested": repr(nested()),
    "nested json": json.dumps(nested(), indent=1),
    "of a device": f"memory stats of device 0: {FLAT!r}",
}


@pytest.mark.parametrize("name", NOTATIONS)
def test_every_notation_says_the_same(name: str) -> None:
    tables = read(NOTATIONS[name])
    assert "problem" not in tables
    # neither peaks nor parts of a pool, nor what private pools hold, which has a table of its own in a snapshot
    assert facts(tables) == {
        "active": 912, "active_bytes": 61 * GIB, "allocated_bytes": 60 * GIB, "inactive_split_bytes": 900 * MIB,
        "max_split_size": -1, "num_alloc_retries": 3, "num_ooms": 2, "oversize_allocations": 0, "reserved_bytes": 66 * GIB,
    }  # fmt: skip
    assert {row["summary"] for row in tables["allocator_stat"]} == {1}
    assert recognise(make_head("any", NOTATIONS[name].encode()))[1] == "memory-stats"


def test_dumps_of_several_devices_are_numbered() -> None:
    lines = "\n".join(f"[rank {rank}] {json.dumps({**FLAT, 'num_ooms': rank})}" for rank in range(3))
    rows = [row for row in read(lines)["allocator_stat"] if row["metric"] == "num_ooms"]
    assert [(row["device"], row["summary"], row["current"], row["line"]) for row in rows] == [
        (0, 1, 0, 1), (1, 2, 1, 2), (2, 3, 2, 3)]  # fmt: skip
    keyed = read(json.dumps({"cuda:0": FLAT, "cuda:1": {**FLAT, "num_ooms": 7}}))["allocator_stat"]
    assert [(row["device"], row["current"]) for row in keyed if row["metric"] == "num_ooms"] == [(0, 2), (1, 7)]
    listed = read(json.dumps([FLAT, FLAT]))["allocator_stat"]
    assert {row["summary"] for row in listed} == {1, 2}
    assert all("device" not in row for row in listed)


def test_the_line_is_that_of_the_metric() -> None:
    rows = read(json.dumps(FLAT, indent=2))["allocator_stat"]
    lines = json.dumps(FLAT, indent=2).split("\n")
    assert all(f'"{row["metric"]}' in lines[row["line"] - 1] for row in rows)


@pytest.mark.parametrize(
    "text",
    [
        '{"allocated_bytes": 7, "usage": {"prompt_tokens": 3}}',
        "the key 'allocated_bytes.all.current' tells what is live",
        '{"allocated_bytes.all.current": "unknown"}',
        "INFO 11-20 20:04:51 [core.py:58] Initializing\n" * 5 + "INFO 11-20 20:04:52 [x.py:1] " + json.dumps(FLAT),
    ],
)
def test_near_miss(text: str) -> None:
    assert not memory_stats.matches(make_head("any", text.encode()))


def test_what_cannot_be_is_a_problem() -> None:
    assert "problem" in read("{}")
    tables = read('{"reserved_bytes.all.current": 99999999999999999999, "num_ooms": 1}')
    assert [row["reason"] for row in tables["problem"]] == ["no value of reserved_bytes.all.current"]
    assert facts(tables) == {"num_ooms": 1}


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_damaged_dumps_never_raise(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(sorted(NOTATIONS.values())))
    cut = data.draw(st.integers(0, len(text)))
    noise = data.draw(st.text(alphabet="{}[]():'\",0123456789.abc\n ", max_size=30))
    assert read(text[:cut] + noise + text[cut:][: data.draw(st.integers(0, 200))])
