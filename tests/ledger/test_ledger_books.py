"""The account of one rank: it closes on what a message says, and tells what is lost, swapped or twice there."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoc.ledger.books import Rank, Refusal, Snapshot, accounts, close
from oomdoc.ledger.closing import PARTS, Account, Figure
from oomdoc.ledger.expectation import Expectation
from oomdoc.ledger.message import Message, torch_printed
from oomdoc.physics.interval import Interval, point
from oomdoc.units import GIB, MIB


def gib(size: float, ref: str) -> tuple[Figure, ...]:
    """One figure as an engine prints it, with two digits."""
    return (Figure(size * GIB, Interval((size - 0.005) * GIB, (size + 0.005) * GIB, "logged"), ref),)


def message(**books: float) -> Message:
    """An allocator's message; sizes in GiB."""
    return Message(
        "vllm.log:90", "GPU 0", **{f"{name}_bytes": torch_printed(size * GIB) for name, size in books.items()}
    )


# 24 GiB: 14.20 of weights, 5.10 of pool, 0.40 of graphs, 1.60 of activations, 0.30 in pieces, 0.90 outside, 1.50 free
FIGURES = {"weights_bytes": gib(14.20, "vllm.log:10"), "kv_available_bytes": gib(5.10, "vllm.log:20")}
BOOKS = message(
    total=24.00,
    free=1.50,
    this_process=22.50,
    other_processes=0.0,
    allocated=21.30,
    private_pool=0.40,
    unallocated=0.30,
)
FAILED = Rank(figures=FIGURES, message=BOOKS, phase="forward", utilization=0.90)


def gibs(account: Account) -> dict[str, float]:
    return {name: round(size / GIB, 2) for name, size in account.values.items()}


def test_a_message_closes_the_books() -> None:
    account = close(FAILED)
    assert gibs(account) == {
        "other_processes_bytes": 0.0, "non_torch_bytes": 0.90, "weights_bytes": 14.20, "kv_pool_bytes": 5.10, "cuda_graph_bytes": 0.40,
        "activation_bytes": 1.60, "allocator_slack_bytes": 0.30, "free_bytes": 1.50,
    }  # fmt: skip
    assert account.moment == "failure" and account.device == "GPU 0"
    assert account.closes is True and account.contradictions == ()
    assert account.unexplained_bytes is not None and abs(account.unexplained_bytes) < 0.02 * GIB
    assert account.refs == ("vllm.log:90", "vllm.log:10", "vllm.log:20")


def test_parts_and_remainder_are_the_device_to_the_byte() -> None:
    account = close(FAILED)
    assert account.total_bytes == sum(account.values.values()) + (account.unexplained_bytes or 0)


def test_the_rounding_of_each_term_is_in_the_interval_of_what_is_subtracted() -> None:
    account = close(FAILED)
    size = account.intervals["activation_bytes"]
    # allocated, pool and weights are printed to 0.01 GiB, private pools (409.6 MiB) to 0.01 MiB
    assert size.hi - size.lo == pytest.approx(0.03 * GIB, abs=0.001 * GIB)
    assert size.lo < 1.60 * GIB < size.hi


def test_a_dropped_line_of_the_weights_is_what_stays_unexplained() -> None:
    account = close(dataclasses.replace(FAILED, figures={"kv_available_bytes": FIGURES["kv_available_bytes"]}))
    assert "weights_bytes" not in account.values and "activation_bytes" not in account.values
    assert (account.unexplained_bytes or 0) / GIB == pytest.approx(14.20 + 1.60, abs=0.03)
    assert account.closes is None  # a remainder with a part missing is no surprise


def test_a_dropped_line_of_the_pool_is_what_stays_unexplained() -> None:
    account = close(dataclasses.replace(FAILED, figures={"weights_bytes": FIGURES["weights_bytes"]}))
    assert (account.unexplained_bytes or 0) / GIB == pytest.approx(5.10 + 1.60, abs=0.03)


def test_weights_in_another_unit_contradict_the_plan_and_stay_unexplained() -> None:
    swapped = {**FIGURES, "weights_bytes": (Figure(14.20 * MIB, point(14.20 * MIB), "vllm.log:10"),)}
    account = close(dataclasses.replace(FAILED, figures=swapped))
    assert account.closes is False
    assert (account.unexplained_bytes or 0) / GIB == pytest.approx(14.20 + 1.60, abs=0.05)
    (said,) = account.contradictions
    assert "vllm.log:10" in said and "vllm.log:20" in said and "a figure is missing or in another unit" in said


def test_a_pool_in_another_unit_is_more_than_torch_had() -> None:
    swapped = {**FIGURES, "kv_available_bytes": gib(51.0, "vllm.log:20")}
    account = close(dataclasses.replace(FAILED, figures=swapped))
    assert account.closes is False and "activation_bytes" not in account.values
    assert any("than the plan" in said for said in account.contradictions)
    assert any("more than torch had allocated (vllm.log:90)" in said for said in account.contradictions)


def test_two_lines_that_differ_are_both_shown_and_not_averaged() -> None:
    twice = {**FIGURES, "weights_bytes": (*gib(14.20, "vllm.log:10"), *gib(13.10, "vllm.log:12"))}
    account = close(dataclasses.replace(FAILED, figures=twice))
    assert "weights: 13.10 GiB (vllm.log:12) and 14.20 GiB (vllm.log:10)" in account.contradictions
    assert gibs(account)["weights_bytes"] == 14.20


def test_two_lines_within_the_rounding_agree() -> None:
    twice = {**FIGURES, "weights_bytes": (*gib(14.20, "vllm.log:10"), *gib(14.21, "vllm.log:12"))}
    assert close(dataclasses.replace(FAILED, figures=twice)).contradictions == ()


def test_several_ranks_or_a_draft_model_may_print_two_sizes() -> None:
    twice = {**FIGURES, "weights_bytes": (*gib(14.20, "vllm.log:10"), *gib(1.10, "vllm.log:12"))}
    assert close(dataclasses.replace(FAILED, figures=twice, alone=False)).contradictions == ()


def test_loading_that_failed_has_no_pool_and_all_live_tensors_are_weights() -> None:
    account = close(Rank(message=dataclasses.replace(BOOKS, private_pool_bytes=None), phase="load"))
    assert gibs(account)["weights_bytes"] == 21.30
    assert "kv_pool_bytes" not in account.values and account.closes is True


def test_profiling_that_failed_has_no_pool_yet() -> None:
    books = dataclasses.replace(BOOKS, allocated_bytes=torch_printed(18.0 * GIB), private_pool_bytes=None)
    loaded = {"weights_bytes": gib(14.20, "vllm.log:10")}
    account = close(dataclasses.replace(FAILED, phase="profile", message=books, figures=loaded))
    assert gibs(account)["activation_bytes"] == pytest.approx(18.0 - 14.20)
    assert "kv_pool_bytes" not in account.values


def test_a_pool_that_failed_half_way_is_as_large_as_it_got() -> None:
    books = dataclasses.replace(BOOKS, allocated_bytes=torch_printed(17.0 * GIB), private_pool_bytes=None)
    account = close(dataclasses.replace(FAILED, phase="kv-alloc", message=books))
    assert gibs(account)["kv_pool_bytes"] == pytest.approx(17.0 - 14.20, abs=0.01)


def test_a_plan_that_closes_believes_large_activations() -> None:
    # 0.90 x 24 = 21.6 less 14.2 and 5.1 leaves 2.3 for a step and for what is outside torch: the figures are sound
    books = message(
        total=24.00,
        free=0.10,
        this_process=23.90,
        other_processes=0.0,
        allocated=23.00,
        private_pool=0.40,
        unallocated=0.10,
    )
    account = close(dataclasses.replace(FAILED, message=books))
    assert gibs(account)["activation_bytes"] == pytest.approx(3.30, abs=0.01)


def test_a_start_without_a_failure_has_no_remainder() -> None:
    account = close(Rank(figures={**FIGURES, "total_bytes": gib(24.0, "vllm.log:5")}, utilization=0.90))
    assert account.moment == "rest" and account.unexplained_bytes is None and account.closes is None


def test_a_running_server_under_a_device_tool() -> None:
    shot = Snapshot("smi.csv:4", "GPU 0", point(24.4 * GIB), point(22.0 * GIB), point(0.8 * GIB))
    account = close(Rank(figures={**FIGURES, "total_bytes": gib(24.0, "vllm.log:5")}, snapshot=shot, utilization=0.90))
    assert account.moment == "rest"
    assert gibs(account) == {
        "other_processes_bytes": 0.8,
        "weights_bytes": 14.20,
        "kv_pool_bytes": 5.10,
        "free_bytes": 2.0,
    }
    assert (account.unexplained_bytes or 0) / GIB == pytest.approx(24.0 - 2.0 - 0.8 - 14.2 - 5.1, abs=0.01)


def test_devices_of_two_sizes_contradict_each_other() -> None:
    shot = Snapshot("smi.csv:4", "GPU 0", point(48 * GIB), point(22 * GIB))
    account = close(Rank(figures={**FIGURES, "total_bytes": gib(24.0, "vllm.log:5")}, snapshot=shot))
    assert account.contradictions == ("the device has 24.00 GiB (vllm.log:5) and 48.00 GiB (smi.csv:4)",)


# ---- against the model

MODEL = Expectation(
    model="some-7b", origin="config", weights_bytes=Interval(14.1 * GIB, 14.3 * GIB, "config"), kv_bytes_per_token=131_072, uniform=True,
    kv_heads=8, latent=False,
)  # fmt: skip
TOKENS = int(5.10 * GIB / 131_072 // 16 * 16)


def test_the_model_as_counted_is_silent() -> None:
    account = close(dataclasses.replace(FAILED, expected=MODEL, pool_tokens=TOKENS, block_tokens=16))
    assert account.contradictions == ()
    assert account.kv_bytes_per_token == pytest.approx(131_072, rel=0.001)


def test_weights_far_from_the_counted_ones_are_told() -> None:
    quantised = dataclasses.replace(MODEL, weights_bytes=Interval(4.0 * GIB, 4.2 * GIB, "config"))
    account = close(dataclasses.replace(FAILED, expected=quantised, pool_tokens=TOKENS))
    assert account.contradictions[-1] == (
        "weights are 14.20 GiB (vllm.log:10), and some-7b takes 4.00 GiB to 4.20 GiB per GPU as it is set up (config)"
    )


def test_tokens_of_another_size_are_told() -> None:
    account = close(dataclasses.replace(FAILED, expected=MODEL, pool_tokens=TOKENS * 2, block_tokens=16))
    assert any(
        "one token costs 64.0 KiB by the pool (vllm.log:20) and 128.0 KiB" in said for said in account.contradictions
    )


def test_blocks_set_by_hand_make_the_pool_a_matter_of_the_formula() -> None:
    account = close(dataclasses.replace(FAILED, expected=MODEL, pool_tokens=8_192, pool_by_hand=True))
    assert account.values["kv_pool_bytes"] == 8_192 * 131_072
    assert account.kv_bytes_per_token == 131_072


def test_bytes_set_by_hand_are_exact_and_no_result_of_the_plan() -> None:
    figures = {
        "weights_bytes": FIGURES["weights_bytes"],
        "kv_cache_memory_bytes": (Figure(3 * GIB, point(3 * GIB), "vllm.log:2"),),
    }
    account = close(dataclasses.replace(FAILED, figures=figures, pool_tokens=24_576))
    assert account.values["kv_pool_bytes"] == 3 * GIB and account.intervals["kv_pool_bytes"].exact
    assert account.kv_bytes_per_token == 131_072


sizes = st.floats(0.3, 12.0)


@given(
    weights=sizes,
    pool=sizes,
    step=st.floats(0.05, 4.0),
    slack=st.floats(0.0, 3.0),
    outside=st.floats(0.3, 2.0),
    free=st.floats(0.0, 3.0),
)
def test_true_books_close_whatever_the_parts_are(
    weights: float, pool: float, step: float, slack: float, outside: float, free: float
) -> None:  # fmt: skip
    def two(size: float) -> float:
        return round(size, 2)

    allocated, reserved = weights + pool + step, weights + pool + step + slack
    total = reserved + outside + free
    books = message(
        total=two(total), free=two(free), this_process=two(reserved + outside), other_processes=0.0, allocated=two(allocated), unallocated=two(slack)
    )  # fmt: skip
    figures = {"weights_bytes": gib(two(weights), "a:1"), "kv_available_bytes": gib(two(pool), "a:2")}
    account = close(Rank(figures=figures, message=books, phase="forward"))
    assert account.contradictions == ()
    assert account.total_bytes == sum(account.values.values()) + (account.unexplained_bytes or 0)
    assert set(account.values) <= set(PARTS) and all(size >= 0 for size in account.values.values())
    if "activation_bytes" in account.values:
        assert abs(account.unexplained_bytes or 0) <= 0.06 * GIB
        assert account.closes is True


# ---- moments


def running(**more: float) -> Rank:
    figures = {
        **FIGURES, "total_bytes": gib(24.0, "vllm.log:5"), "activation_bytes": gib(1.40, "vllm.log:18"), "non_torch_bytes": gib(0.90, "vllm.log:19"),
        "graph_bytes": gib(0.60, "vllm.log:30"),
    }  # fmt: skip
    shot = Snapshot("smi.csv:4", "GPU 0", point(24.4 * GIB), point(more.get("used", 21.9) * GIB))
    return Rank(figures=figures, snapshot=shot, utilization=0.90, graphs_planned=False)


def test_the_peak_of_activations_is_not_added_to_the_free_bytes_of_an_idle_moment() -> None:
    rest, profiled, plan = accounts(running())
    assert [each.moment for each in (rest, profiled, plan)] == ["rest", "profiled", "plan"]
    assert "activation_bytes" not in rest.values and (rest.unexplained_bytes or 0) / GIB == pytest.approx(1.1, abs=0.05)
    assert gibs(profiled) == {"non_torch_bytes": 0.90, "weights_bytes": 14.20, "activation_bytes": 1.40}
    assert gibs(plan)["free_bytes"] == 2.40 and plan.closes is True  # 0.1 x 24 lie outside the plan
    assert (plan.unexplained_bytes or 0) < 0.02 * GIB


def test_parts_that_pass_the_device_are_taken_out_and_both_places_named() -> None:
    account = close(running(used=19.3))  # weights, pool, graphs and what is outside torch are 20.8 GiB
    assert account.unexplained_bytes is not None and account.unexplained_bytes >= 0
    assert account.closes is False
    (said,) = account.contradictions
    assert "vllm.log:10" in said and "smi.csv:4" in said


def test_a_plan_larger_than_the_device_is_unusual_and_leaves_no_negative_rest() -> None:
    figures = {
        "weights_bytes": gib(26.0, "vllm.log:10"),
        "total_bytes": gib(24.0, "vllm.log:5"),
        "kv_available_bytes": gib(-4.8, "vllm.log:20"),
    }
    account = close(Rank(figures=figures, utilization=0.90, phase="kv-plan"))
    assert account.moment == "plan" and account.values["kv_pool_bytes"] == 0
    assert (account.unexplained_bytes or 0) >= 0 and account.closes is False
    assert any("more than the 24.00 GiB of the device" in said for said in account.unusual)


def test_a_refusal_names_who_holds_the_device() -> None:
    refusal = Refusal("vllm.log:30", torch_printed(79.18 * GIB), torch_printed(37.86 * GIB))
    account = close(Rank(refusal=refusal, utilization=0.92))
    assert account.moment == "failure"
    assert account.values["other_processes_bytes"] / GIB == pytest.approx(41.32 - 0.45, abs=0.05)
    assert account.unexplained_bytes == 0
    assert any("held by other processes (vllm.log:30)" in said for said in account.unusual)


def test_much_memory_outside_torch_is_marked() -> None:
    books = message(
        total=24.00, free=0.10, this_process=23.90, other_processes=0.0, allocated=14.60, private_pool=0.10, unallocated=0.20
    )  # fmt: skip
    account = close(
        Rank(
            figures={"weights_bytes": gib(10.0, "vllm.log:10"), "kv_available_bytes": gib(4.2, "vllm.log:20")},
            message=books,
            phase="forward",
        )
    )
    assert account.unusual == ("9.10 GiB outside torch (vllm.log:90): up to 1.50 GiB is usual",)


def test_slots_for_adapters_are_told_apart_from_the_weights() -> None:
    figures = {**FIGURES, "weights_bytes": gib(16.80, "vllm.log:10")}
    account = close(Rank(figures=figures, expected=MODEL, features=True, pool_tokens=TOKENS, block_tokens=16))
    assert gibs(account)["weights_bytes"] == 14.20 and gibs(account)["feature_bytes"] == 2.60
    assert account.contradictions == ()


def test_a_pool_is_whole_blocks_of_the_architecture() -> None:
    account = close(dataclasses.replace(FAILED, expected=MODEL, pool_tokens=TOKENS, block_tokens=16))
    assert account.kv_bytes_per_token == 131_072
    assert account.values["kv_pool_bytes"] == TOKENS * 131_072


def test_another_kv_dtype_that_explains_the_token_is_named() -> None:
    model = dataclasses.replace(MODEL, other_tokens={65_536.0: "a KV cache of fp8", 32_768.0: "4 ranks"})
    account = close(dataclasses.replace(FAILED, expected=model, pool_tokens=TOKENS * 2, block_tokens=16))
    assert account.kv_bytes_per_token == 65_536
    assert any(said.endswith("a KV cache of fp8 would explain it") for said in account.contradictions)


@given(st.lists(st.floats(0.0, 30.0), min_size=7, max_size=7), st.floats(8.0, 80.0), st.booleans())
def test_no_books_whatever_leave_a_negative_rest(sizes: list[float], total: float, failed: bool) -> None:
    free, process, allocated, slack, weights, pool, peak = (round(size, 2) for size in sizes)
    figures = {
        "weights_bytes": gib(weights, "a:1"), "kv_available_bytes": gib(pool, "a:2"), "activation_bytes": gib(peak, "a:3"),
        "total_bytes": gib(round(total, 2), "a:4"),
    }  # fmt: skip
    books = message(
        total=round(total, 2),
        free=free,
        this_process=process,
        other_processes=0.0,
        allocated=allocated,
        unallocated=slack,
    )
    shot = Snapshot("smi.csv:4", "GPU 0", point(total * GIB), point(min(total, process) * GIB))
    for account in accounts(
        Rank(
            figures=figures,
            message=books if failed else None,
            snapshot=shot,
            phase="forward" if failed else None,
            utilization=0.9,
        )
    ):
        assert account.unexplained_bytes is None or account.unexplained_bytes >= 0
        assert all(size >= 0 for size in account.values.values())
        if account.unexplained_bytes is not None:
            assert account.total_bytes == sum(account.values.values()) + account.unexplained_bytes
