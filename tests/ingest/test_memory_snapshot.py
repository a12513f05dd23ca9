"""Snapshots of torch's allocator: what is added up, that nothing of a pickle can run, and that hostile ones end soon."""

from __future__ import annotations

import io
import json
import pickle
import struct
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oomdoc
from oomdoc.ingest import make_head, memory_snapshot, reads_binary
from oomdoc.ingest.plain_pickle import LimitError, PlainPickle
from oomdoc.ingest.snapshot_sums import Sums
from oomdoc.intake.scan import chunks
from oomdoc.units import MIB

Tables = dict[str, list[dict[str, Any]]]


def read(data: bytes, size: int = 1 << 20) -> Tables:
    """All rows by table, without their NULLs."""
    tables: Tables = {}
    for batch in memory_snapshot.read("any", chunks(io.BytesIO(data), size)):
        for row in zip(*batch.columns.values(), strict=True):
            told = {name: value for name, value in zip(batch.columns, row, strict=True) if value is not None}
            tables.setdefault(batch.table, []).append(told)
    return tables


def frame(file: str, line: int, name: str) -> dict[str, Any]:
    return {"filename": file, "line": line, "name": name}


KERNEL = frame("??", 0, "at::empty")
LINEAR = frame("/opt/env/site-packages/vllm/layers/linear.py", 88, "apply")
CALL = frame("/opt/env/site-packages/torch/nn/modules/module.py", 1751, "_call_impl")
STEP = frame("/opt/env/site-packages/vllm/worker/model_runner.py", 1204, "execute_model")
LOAD = frame("/opt/env/site-packages/vllm/model_loader/loader.py", 31, "load_weights")


def block(size: int, state: str = "active_allocated", frames: Any = ()) -> dict[str, Any]:
    return {"address": 4096, "size": size, "requested_size": size, "state": state, "frames": list(frames)}


def segment(*blocks: dict[str, Any], device: int = 0, pool: tuple[int, int] = (0, 0), **more: Any) -> dict[str, Any]:
    total = sum(one["size"] for one in blocks)
    return {
        "device": device, "address": 140_000_000_000_000, "total_size": total, "stream": 0, "segment_type": "large",
        "segment_pool_id": pool, "is_expandable": False, "blocks": list(blocks), **more,
    }  # fmt: skip


T = 1_795_205_091_000_000


def event(action: str, size: int, at: int, frames: Any = (), **more: Any) -> dict[str, Any]:
    return {
        "action": action, "addr": 140_000_000_000_000, "size": size, "stream": 0, "time_us": T + at, "frames": list(frames), **more,
    }  # fmt: skip


def snapshot() -> dict[str, Any]:
    """Weights of 60 MiB, a graph pool, two holes of 12 and 4 MiB, and a failure of 20 MiB with 6 MiB free on the device."""
    weights = [KERNEL, LOAD]
    step = [KERNEL, LINEAR, CALL, STEP]
    return {
        "segments": [
            segment(block(40 * MIB, frames=weights), block(12 * MIB, "inactive"), block(20 * MIB, frames=weights)),
            segment(block(8 * MIB, frames=step), block(4 * MIB, "inactive"), block(2 * MIB, "active_awaiting_free", step)),
            segment(block(3 * MIB), block(1 * MIB, "inactive"), pool=(1, 0)),
            segment(block(2 * MIB, "inactive"), is_expandable=True),
        ],
        "device_traces": [
            [
                event("segment_alloc", 14 * MIB, 1),
                event("alloc", 50 * MIB, 2, step),
                event("free_requested", 50 * MIB, 3, step),
                event("free_completed", 50 * MIB, 4, step),
                event("alloc", 8 * MIB, 5, step),
                event("oom", 20 * MIB, 6, step, device_free=6 * MIB),
            ],
            [],
        ],
        "allocator_settings": {"expandable_segments": False, "roundup_power2_divisions": {"64": 0}},
    }  # fmt: skip


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("size", [1 << 20, 7])
def test_segments_blocks_and_trace_are_added_up(protocol: int, size: int) -> None:
    tables = read(pickle.dumps(snapshot(), protocol), size)
    assert "problem" not in tables
    own, private = tables["allocator_segment"]
    assert own == {
        "line": 1, "device": 0, "pool": "default", "total_bytes": 88 * MIB, "allocated_bytes": 68 * MIB,
        "inactive_bytes": 18 * MIB, "largest_free_bytes": 12 * MIB,
    }  # fmt: skip
    assert (private["pool"], private["inactive_bytes"]) == ("private", MIB)

    sites = [(row["pool"], row.get("site"), row["blocks"], row["bytes"]) for row in tables["allocator_block"]]
    assert sites == [
        ("default", "vllm/model_loader/loader.py:31 load_weights", 2, 60 * MIB),
        ("default", "vllm/layers/linear.py:88 apply", 2, 10 * MIB),
        ("private", None, 1, 3 * MIB),
    ]


def test_a_failure_of_the_trace_has_the_gaps_of_the_segments() -> None:
    (failed,) = read(pickle.dumps(snapshot()))["allocator_trace"]
    assert failed == {"line": 1, "device": 0, "nth": 6, "bytes": 20 * MIB, "largest_free_bytes": 12 * MIB}


def test_the_last_failure_is_told_as_the_allocator_tells_it() -> None:
    tables = read(pickle.dumps(snapshot()))
    (oom,) = tables["oom"]
    assert (oom["requested_bytes"], oom["free_bytes"], oom["t"]) == (20 * MIB, 6 * MIB, 1_795_205_091.000006)
    # as in the message: allocated contains what private pools hold, unallocated does not
    assert oom["allocated_bytes"] == 72 * MIB
    assert oom["private_pool_bytes"] == MIB
    assert oom["unallocated_bytes"] == 20 * MIB
    assert [row["function"] for row in tables["frame"]] == ["apply", "execute_model"]
    stats = {row["metric"]: row for row in tables["allocator_stat"]}
    assert stats["reserved_bytes"]["current"] == 92 * MIB
    assert stats["inactive_split_bytes"]["current"] == 17 * MIB
    assert stats["num_ooms"]["current"] == 1
    assert stats["allocated_bytes"]["current"] == 71 * MIB  # the three pools


def test_holes_are_unknown_where_the_pool_changed_after_the_failure() -> None:
    dump = snapshot()
    dump["device_traces"][0].append(event("free_requested", 5 * MIB, 9))
    tables = read(pickle.dumps(dump))
    assert "largest_free_bytes" not in tables["allocator_trace"][0]
    assert "unallocated_bytes" not in tables["oom"][0]


def test_near_miss_a_snapshot_without_a_failure() -> None:
    dump = snapshot()
    dump["device_traces"] = [[entry for entry in dump["device_traces"][0] if entry["action"] != "oom"]]
    tables = read(pickle.dumps(dump))
    assert "oom" not in tables
    assert "allocator_trace" not in tables


def test_traces_belong_to_their_device() -> None:
    dump = snapshot()
    dump["segments"].append(segment(block(6 * MIB), device=2))
    dump["device_traces"] = [[], [], [event("oom", 7 * MIB, 1)]]
    rows = read(pickle.dumps(dump))["allocator_trace"]
    assert [(row["device"], row["bytes"]) for row in rows] == [(2, 7 * MIB)]
    assert read(json.dumps(dump).encode())["allocator_trace"] == rows


def test_json_says_the_same() -> None:
    for indent in (None, 1):
        data = json.dumps(snapshot(), indent=indent).encode()
        assert memory_snapshot.matches(make_head("any", data))
        assert read(data, 100) == read(pickle.dumps(snapshot()))


def test_frames_of_older_versions_stand_in_the_history() -> None:
    old = segment({"size": MIB, "state": "active_allocated", "history": [{"addr": 1, "frames": [KERNEL, STEP]}]})
    (row,) = read(pickle.dumps({"segments": [old], "device_traces": []}))["allocator_block"]
    assert row["site"].endswith("execute_model")


def test_of_many_sites_the_largest_are_told() -> None:
    blocks = [block(512 * (number + 1), frames=[frame(f"/a/m{number}.py", 1, "f")]) for number in range(130)]
    rows = read(pickle.dumps({"segments": [segment(*blocks)], "device_traces": []}))["allocator_block"]
    assert [row["bytes"] for row in rows] == sorted((one["size"] for one in blocks), reverse=True)[:100]


# ---- nothing runs


class _Bomb:
    def __reduce__(self) -> Any:
        return print, ("this must never be printed",)


class _Built:
    def __init__(self) -> None:
        self.x = 1


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("evil", [_Bomb(), _Built(), print, b"bytes", {1, 2}, bytearray(b"x")])
def test_anything_but_plain_data_is_refused(evil: Any, protocol: int, capsys: pytest.CaptureFixture[str]) -> None:
    dump = snapshot()
    dump["device_traces"][0].append({"action": "oom", "size": 1, "frames": evil})
    if evil == b"bytes" and protocol == 2:
        pytest.skip("protocol 2 writes bytes as a call, which the next protocols show")
    tables = read(pickle.dumps(dump, protocol))
    assert set(tables) == {"problem"}
    assert "not a plain memory snapshot" in tables["problem"][0]["reason"]
    assert capsys.readouterr().out == ""


def test_a_pickle_of_something_else_is_not_taken() -> None:
    for protocol in (2, 3, 4, 5):
        assert reads_binary(make_head("any", pickle.dumps(snapshot(), protocol)))
        assert reads_binary(make_head("any", pickle.dumps({"segments": []}, protocol)))
    for other in ({"state_dict": {}}, [1, 2], {"a": "segments of text"}, _Built()):
        assert not reads_binary(make_head("any", pickle.dumps(other, 4)))
    assert not memory_snapshot.matches(make_head("any", b'{"segments": [{"text": "a story", "start": 0.0}]}'))


def test_a_cut_dump_is_added_up_to_the_cut() -> None:
    data = pickle.dumps(snapshot())
    cut = read(data[:-40])
    assert cut["problem"][0]["reason"].startswith("a memory snapshot that is cut")
    assert cut["allocator_segment"] == read(data)["allocator_segment"]
    assert "problem" in read(data[:60])


BOMBS = {
    "numbers": b"\x80\x04}\x8c\x08segments](" + b"K\x01" * 400_000,
    "lists": b"\x80\x04}\x8c\x08segments]" + b"(]\x94" * 400_000,
    "tuples": b"\x80\x04}\x8c\x08segments]\x8c\x01a" + b"\x85" * 400_000 + b".",
    "texts": b"\x80\x04}\x8c\x08segments](" + b"\x8c\x01a\x94" * 400_000,
    "long text": b"\x80\x04}\x8c\x08segments]X\xff\xff\xff\x7fabc",
    "long number": b"\x80\x04}\x8c\x08segments]\x8a\xff" + b"\xff" * 255,
    "itself": b"\x80\x04}\x94(\x8c\x08segments]\x94h\x01ah\x00h\x00su.",
    "no value": b"\x80\x04}\x8c\x08segmentsu.",
    "memo far away": b"\x80\x04}\x8c\x08segments]r\xff\xff\xff\x7f.",
    "unhashable": b"\x80\x04}\x8c\x08segments}](K\x01es.",
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_hostile_pickles_end_within_bounds(name: str) -> None:
    tracemalloc.start()
    try:
        tables = read(BOMBS[name])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "problem" in tables
    assert peak < 200 * MIB


@pytest.mark.parametrize("limit", ["operations", "held", "memo", "text_bytes"])
def test_each_limit_ends_the_reading(limit: str) -> None:
    data = pickle.dumps(snapshot())
    PlainPickle(chunks(io.BytesIO(data)), Sums()).run()
    with pytest.raises(LimitError):
        PlainPickle(chunks(io.BytesIO(data)), Sums(), **{limit: 20}).run()


def test_sizes_that_no_device_has_are_no_rows() -> None:
    dump = {"segments": [segment(block((1 << 50) - 1)) for _ in range(40)], "device_traces": []}
    assert [row["reason"] for row in read(pickle.dumps(dump))["problem"]] == [
        "a memory snapshot of sizes that no device has"
    ]
    assert "problem" not in read(pickle.dumps({"segments": [segment(block(1 << 60))], "device_traces": []}))


def test_memory_does_not_grow_with_the_trace() -> None:
    def peak(count: int) -> int:
        step = [KERNEL, LINEAR, CALL, STEP]
        events = [*(event("alloc", 512, at, [*step]) for at in range(count - 1)), event("oom", 512, count)]
        dump = {"segments": [], "device_traces": [events]}
        data = pickle.dumps(dump)
        del dump
        tracemalloc.start()
        tables = read(data, 1 << 16)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert tables["allocator_trace"][-1]["nth"] == count
        return used

    assert peak(9_000) < peak(1_000) + MIB


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_damaged_dumps_never_raise(data: st.DataObject) -> None:
    whole = bytearray(pickle.dumps(snapshot(), data.draw(st.sampled_from([2, 4]))))
    for _ in range(data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(2, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(10, len(whole)))
    tables = read(bytes(whole[:cut]), data.draw(st.sampled_from([5, 1000])))
    assert tables  # rows or a problem, never nothing


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_behind_the_magic_never_raise(tail: bytes) -> None:
    assert read(b"\x80\x04}\x94(\x8c\x08segments\x94]\x94(" + tail)


def test_a_bundle_with_a_dump_is_read(tmp_path: Any) -> None:
    (tmp_path / "oom.pickle").write_bytes(pickle.dumps(snapshot()))
    (tmp_path / "model.pickle").write_bytes(pickle.dumps({"weights": [struct.pack("<d", 1.5)]}, 4))
    (tmp_path / "vllm.log").write_text("INFO 11-20 20:04:51 [core.py:58] Initializing a V1 LLM engine (v0.11.0)\n")
    with oomdoc.analyze(tmp_path) as analysis:
        report = analysis.to_dict()
        _, rows = analysis.sql("SELECT kind, requested_bytes FROM failure")
    kinds = {source["path"].rpartition("/")[2]: source["kind"] for source in report["coverage"]["sources"]}
    assert kinds["oom.pickle"] == "memory-snapshot"
    assert [entry["path"].rpartition("/")[2] for entry in report["coverage"]["unread"]] == ["model.pickle"]
    assert rows == [("device-oom", 20 * MIB)]
