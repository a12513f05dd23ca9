"""The vocabulary: every quantity proves itself by samples, and names that are near misses miss."""

from __future__ import annotations

import pytest

from oomdoc.ingest.forms.cells import unit_of, value_of
from oomdoc.ingest.vocabulary import Quantity, foreign_program, is_irrelevant, meanings, quantities, quantity_of
from oomdoc.ingest.vocabulary.words import taken_apart
from oomdoc.units import GIB, MIB, parse_size

ALL = quantities()


def test_every_quantity_has_an_id_of_its_own() -> None:
    assert len({quantity.id for quantity in ALL}) == len(ALL) > 60


@pytest.mark.parametrize("quantity", ALL, ids=lambda quantity: quantity.id)
def test_samples_are_read_and_near_misses_are_not(quantity: Quantity) -> None:
    for name, cell, value in quantity.samples:
        if quantity.kind == "bytes" and isinstance(value, str):
            value = parse_size(value, binary=True)
        match = next((match for match in meanings(name) if match.quantity is quantity), None)
        assert match is not None, name
        assert value_of(quantity, cell, unit_of(quantity, match.unit, [cell])) == pytest.approx(value), name
    for name in quantity.not_names:
        assert quantity not in [match.quantity for match in meanings(name)], name


@pytest.mark.parametrize("left_out", ["samples", "not_names"])
def test_a_quantity_without_proof_is_refused(left_out: str) -> None:
    entry = {
        "fills": "gpu_sample.gpu",
        "kind": "index",
        "strong": "board",
        "samples": [["board", "1", 1]],
        "not_names": ["aboard"],
    }
    assert quantity_of("board", entry).samples == (("board", "1", 1),)
    with pytest.raises(ValueError, match="no samples"):
        quantity_of("board", {**entry, left_out: []})


def test_a_quantity_of_an_unknown_column_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown column"):
        Quantity("x", "gpu_sample", "height", "index", strong="x")


@pytest.mark.parametrize(
    "name",
    ["memory.used [MiB]", "memory_used_mib", "memUsedMiB", "Mem Used (MiB)", "used_memory_mib", "MEMORY USED [MB]", "memused_mib"],
)  # fmt: skip
def test_one_name_in_many_spellings(name: str) -> None:
    words, unit, _ = taken_apart(name)
    assert words == ("mem", "used") and unit in ("MiB", "MB")


@pytest.mark.parametrize(
    "name",
    ["memory.used.peak", "temperature.gpu", "total_tokens", "cpu_util", "used_percent", "p99_ttft_ms", "queue_time_ms", "bar1_memory_usage.used",
     "swap_used", "disk_total", "epp_queue_depth", "max_model_len", "prompt_id", "completion_id", "request_id"],
)  # fmt: skip
def test_a_name_with_a_word_more_is_another_thing(name: str) -> None:
    assert not [match for match in meanings(name) if match.strong]


def test_the_number_of_a_device_may_stand_in_the_name() -> None:
    match = meanings("gpu3_mem_used_mib")[0]
    assert (match.quantity.id, match.device, match.unit) == ("gpu.used", 3, "MiB")


def test_any_series_of_the_engine_is_one() -> None:
    (match,) = meanings('vllm_request_queue_time_seconds_sum{engine="0"}')
    assert match.quantity.column == ":vllm:request_queue_time_seconds_sum"


@pytest.mark.parametrize(
    ("values", "unit"), [([74.5, 4], "GiB"), ([40434, 81559], "MiB"), ([79704358912], "B"), (["40434 MiB"], "")]
)
def test_sizes_without_a_unit_are_told_by_their_size(values: list[object], unit: str) -> None:
    used = next(quantity for quantity in ALL if quantity.id == "gpu.used")
    assert unit_of(used, "", values) == unit


def test_mb_of_a_device_is_binary_and_mb_of_a_process_is_not() -> None:
    by_id = {quantity.id: quantity for quantity in ALL}
    assert value_of(by_id["gpu.used"], "1024 MB", "") == GIB
    assert value_of(by_id["process.resident"], "1024 MB", "") == 1024 * 10**6
    assert value_of(by_id["process.resident"], "1024 MiB", "") == 1024 * MIB


def test_what_bears_on_no_memory_is_known_as_such() -> None:
    assert all(map(is_irrelevant, ("temperature.gpu", "power.draw [W]", "pstate", "request_id", "clocks.sm")))
    assert not is_irrelevant("mem_used") and not is_irrelevant("weird")
    assert foreign_program("keyspace_hits") == "redis" and not foreign_program("memory.used")
