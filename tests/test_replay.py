"""The replay: the fast scheduler against its plain twin, what must hold of any traffic, the fit, the pool, the command."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

import oomdoc
import replays
from oomdoc.cli import run
from oomdoc.errors import BundleError, UsageError
from oomdoc.replay.asked import Setup, Traffic, blocks
from oomdoc.replay.free_blocks import FreeBlocks
from oomdoc.replay.plain import simulate_plain
from oomdoc.replay.pool import Pool, pool_after, usable_blocks
from oomdoc.replay.recording import Observed, Recording, _alignment
from oomdoc.replay.run import _beyond, caches_prefixes, read_changes
from oomdoc.replay.scheduler import _Run, nearer, simulate, survives
from oomdoc.replay.speed import ASSUMED, from_requests, from_statistics, median, quantile
from oomdoc.replay.traffic import PICO, callers_of, with_hits
from oomdoc.report.replay import render
from snapshot import check

ROOT = Path(__file__).parents[1]
LONG_CHATS = ROOT / "sample_logs" / "kv-demand-long-chats"


# ---- the scheduler against its twin


@st.composite
def setups(draw: Callable[..., Any]) -> Setup:
    chunked = draw(st.booleans())
    return Setup(
        usable_blocks=draw(st.integers(2, 30)), block_size=draw(st.sampled_from([1, 2, 4, 16])), max_num_seqs=draw(st.integers(1, 6)),
        max_num_batched_tokens=draw(st.integers(6, 40)), max_model_len=draw(st.sampled_from([None, 50])), step_ps=draw(st.integers(1, 50)),
        sequence_ps=draw(st.integers(0, 5)), context_ps=draw(st.integers(0, 2)), prompt_token_ps=draw(st.integers(0, 5)),
        prompt_pair_ps=draw(st.integers(0, 1)), watermark_blocks=draw(st.integers(0, 2)), chunked_prefill=chunked,
        prefill_first=not chunked and draw(st.booleans()), whole_prompt_must_fit=draw(st.booleans()), prefix_caching=draw(st.booleans()),
        policy=draw(st.sampled_from(["fcfs", "priority"])), callers=draw(st.sampled_from([0, 0, 1, 2, 5])),
    )  # fmt: skip


@st.composite
def traffics(draw: Callable[..., Any]) -> Traffic:
    count = draw(st.integers(1, 14))

    def column(low: int, high: int) -> list[int]:
        return draw(st.lists(st.integers(low, high), min_size=count, max_size=count))

    shared = {"group": column(-1, 2), "prefix_tokens": column(0, 20)} if draw(st.booleans()) else {}
    cached = {"cached_tokens": column(0, 20)} if draw(st.booleans()) else {}
    return Traffic(sorted(column(0, 1500)), column(1, 40), column(1, 40), priority=column(0, 2), **shared, **cached)


MOMENTS = list(range(-5, 6000, 173))


@settings(max_examples=300, deadline=None)
@given(setups(), traffics())
def test_jumping_to_events_says_what_stepping_says(setup: Setup, traffic: Traffic) -> None:
    assert simulate(setup, traffic, MOMENTS) == simulate_plain(
        setup, traffic, MOMENTS
    )  # which asserts one holder a block


@settings(max_examples=200, deadline=None)
@given(setups(), traffics(), st.integers(1, 30))
def test_a_run_that_is_cut_short_decides_what_the_whole_one_does(setup: Setup, traffic: Traffic, most: int) -> None:
    whole = simulate(setup, traffic)
    lost = whole.preemptions or whole.impossible or whole.held_ps or whole.peak_blocks > most
    assert survives(setup, traffic, most) == (None if lost else whole)


@settings(max_examples=200, deadline=None)
@given(setups(), traffics(), st.lists(st.none() | st.integers(0, 3000), min_size=14, max_size=14), st.integers(0, 9000))
def test_a_run_that_ends_too_far_from_what_was_recorded_is_given_up(
    setup: Setup, traffic: Traffic, ends: list[int | None], most: int
) -> None:
    whole = simulate(setup, traffic, MOMENTS)
    pairs = zip(whole.finish_ps, ends[: len(traffic)], strict=True)
    off = sum(abs(moment - end) for moment, end in pairs if moment is not None and end is not None)
    assert nearer(setup, traffic, MOMENTS, ends, most) == (None if off > most else whole)


@settings(deadline=None)
@given(
    st.lists(st.floats(-1e9, 1e9) | st.just(float("nan")), min_size=1, max_size=40)
    | st.lists(st.integers(0, 1 << 60), min_size=1, max_size=40),
    st.sampled_from([0.0, 0.25, 0.5, 0.75, 0.95, 1.0]),
)
def test_a_quantile_is_that_of_numpy(values: list[float] | list[int], share: float) -> None:
    assert np.array_equal(quantile(values, share), np.quantile(values, share), equal_nan=True)
    assert np.array_equal(median(values), np.median(values), equal_nan=True)


@settings(max_examples=50, deadline=None)
@given(setups(), traffics(), st.integers(1, 30))
def test_a_replay_that_tests_do_once_is_that_replay(setup: Setup, traffic: Traffic, most: int) -> None:
    """What the tests of other things are told of a traffic that was replayed before (`replays`)."""

    def told() -> list[Any]:
        return [simulate(setup, traffic), simulate(setup, traffic, MOMENTS), *(survives(setup, traffic, least) for least in (most, most + 1))]  # fmt: skip

    anew = told()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replays, "ANEW", [False])
        patch.setattr(replays, "LEAST", 0)
        assert told() == anew
        patch.setattr(replays.Once.__mro__[1], "outcome", None)  # nothing is replayed a second time
        assert told() == anew


@settings(max_examples=150, deadline=None)
@given(setups(), traffics())
def test_what_holds_of_any_traffic(setup: Setup, traffic: Traffic) -> None:
    outcome = simulate(setup, traffic, MOMENTS)
    ran = [place for place in range(len(traffic)) if place not in outcome.impossible]
    assert 0 <= outcome.peak_blocks <= setup.usable_blocks
    assert all(0 <= sample.used_blocks <= setup.usable_blocks for sample in outcome.samples)
    assert all(sample.running <= setup.max_num_seqs for sample in outcome.samples)
    for place in ran:  # everybody who can run does, after its arrival, and to its end
        first, end = outcome.first_ps[place], outcome.finish_ps[place]
        assert first is not None and end is not None
        assert outcome.arrival_ps[place] <= first < end <= outcome.end_ps
        assert setup.callers or outcome.arrival_ps[place] == traffic.arrival_ps[place]
    assert all(outcome.first_ps[place] is None for place in outcome.impossible)
    if outcome.preemptions:
        assert outcome.preemption_ps is not None
    else:
        assert outcome.recomputed_tokens == 0


@settings(max_examples=100, deadline=None)
@given(setups(), traffics())
def test_tokens_are_conserved_without_a_cache(setup: Setup, traffic: Traffic) -> None:
    bare = Setup(**{**vars(setup), "prefix_caching": False, "max_model_len": None})
    outcome = simulate(bare, traffic)
    ran = [place for place in range(len(traffic)) if place not in outcome.impossible]
    needed = sum(traffic.input_tokens[place] + traffic.output_tokens[place] - 1 for place in ran)
    assert outcome.computed_tokens == needed + outcome.recomputed_tokens


def test_who_waits_for_blocks_is_asked_again_only_when_somebody_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last is preempted and finds ever fewer of its blocks; when the second leaves it is asked again, and waits for the first."""
    engine = bare(usable_blocks=140, max_num_batched_tokens=160, whole_prompt_must_fit=False)
    three = Traffic([0, 0, 0], [16, 4, 400], [500, 136, 100])
    single = []
    whole = _Run._one_step
    monkeypatch.setattr(_Run, "_one_step", lambda run: single.append(run.steps) or whole(run))
    outcome = simulate(engine, three)
    assert outcome == simulate_plain(engine, three)
    assert outcome.preemptions == 1 and outcome.held_ps and outcome.steps > 500
    assert len(single) < 40


# ---- what a person can redo by hand


def bare(**other: Any) -> Setup:
    return Setup(**{"usable_blocks": 10, "block_size": 4, "max_num_seqs": 8, "max_num_batched_tokens": 64, "step_ps": 10, "prompt_token_ps": 0, **other})  # fmt: skip


def test_one_request_by_hand() -> None:
    outcome = simulate(bare(prompt_token_ps=2), Traffic([5], [7], [3]))
    # 7 prompt tokens and the first token in 10 + 14, then two steps of 10; 9 tokens computed in 3 blocks
    assert (outcome.first_ps, outcome.finish_ps, outcome.steps) == ([5], [5 + 24 + 20], 3)
    assert (outcome.peak_blocks, outcome.computed_tokens) == (3, 9)


def test_the_last_come_is_preempted_and_computed_again() -> None:
    # two prompts of 8 tokens hold 4 of 5 blocks; in the next step both begin a block and one is left
    outcome = simulate(bare(usable_blocks=5, prefix_caching=False), Traffic([0, 0], [8, 8], [8, 2]))
    assert outcome.preemptions == 1
    assert outcome.preemption_ps == 10
    assert outcome.recomputed_tokens == 8
    first, second = outcome.finish_ps
    assert first == 80  # the first is not held up
    assert second is not None and second > first


def test_with_the_cache_a_preempted_request_finds_what_nobody_took() -> None:
    traffic = Traffic([0, 0], [8, 8], [2, 2])
    lost = simulate(bare(usable_blocks=5, prefix_caching=False), traffic).recomputed_tokens
    assert simulate(bare(usable_blocks=5), traffic).recomputed_tokens < lost


@pytest.mark.parametrize(
    ("change", "preempted"), [({}, True), ({"max_num_seqs": 1}, False), ({"usable_blocks": 8}, False)]
)
def test_a_fix_removes_the_episode(change: dict[str, int], preempted: bool) -> None:
    outcome = simulate(bare(**{"usable_blocks": 5, **change}), Traffic([0, 0], [8, 8], [8, 8]))
    assert bool(outcome.preemptions) is preempted


def test_requests_that_can_never_run_are_named() -> None:
    traffic = Traffic([0, 0, 0], [41, 30, 8], [1, 20, 4])
    assert simulate(bare(), traffic).impossible == (0, 1)  # 11 and 13 of 10 blocks
    assert simulate(bare(max_model_len=41), traffic).impossible == (0,)  # the second is cut at 41 tokens: 10 blocks


def test_a_shared_prefix_is_held_once() -> None:
    alone = simulate(bare(), Traffic([0, 0], [16, 16], [4, 4])).peak_blocks
    shared = simulate(bare(), Traffic([0, 0], [16, 16], [4, 4], group=[0, 0], prefix_tokens=[12, 12])).peak_blocks
    assert (alone, shared) == (10, 7)


def test_v0_keeps_its_watermark_free_and_prefills_alone() -> None:
    traffic = Traffic([0, 15], [16, 16], [20, 4])
    v0 = simulate(bare(usable_blocks=9, watermark_blocks=1, chunked_prefill=False, prefill_first=True), traffic)
    v1 = simulate(bare(usable_blocks=9), traffic)
    assert v0.first_ps[1] is not None and v1.first_ps[1] == 20
    assert v0.first_ps[1] > v1.first_ps[1]


def test_free_blocks_lose_the_end_of_a_run_first() -> None:
    free = FreeBlocks(2)
    free.take(2)
    free.put(7, 5)
    free.take(2)
    assert (free.held(7), free.count) == (3, 3)
    free.reuse(7, 2)
    assert (free.held(7), free.count) == (0, 1)


# ---- how long a step takes


def test_the_fit_finds_the_speed_that_made_the_recording() -> None:
    chosen = np.random.default_rng(7)
    count = 400
    arrival = np.sort(chosen.uniform(0, 300, count))
    inputs, outputs = chosen.integers(50, 3000, count), chosen.integers(20, 400, count)
    second = 10**12
    made = Setup(100_000, 16, 64, 4096, None, round(0.02 * second), round(0.0005 * second), 0, round(0.0001 * second))
    outcome = simulate(made, Traffic((arrival * second).astype(int).tolist(), inputs.tolist(), outputs.tolist()))
    end = np.array(outcome.finish_ps, dtype=float) / second
    # the first token comes with the end of the last prefill step; a client sees it there
    first = end - _decode_seconds(outcome.first_ps, inputs, second)(end)
    speed = from_requests(arrival, first, end, inputs.astype(float), outputs.astype(float))
    assert speed is not None
    assert speed.prompt_token_s == pytest.approx(0.0001, rel=0.3)
    typical = speed.step_s + 10 * speed.sequence_s + 10 * 1500 * speed.context_s
    assert typical == pytest.approx(0.02 + 10 * 0.0005, rel=0.15)
    assert speed.low is not None and speed.high is not None and 0.8 < speed.low <= speed.high < 1.2


def _decode_seconds(first_ps: Any, inputs: Any, second: int) -> Callable[[Any], Any]:
    began = np.array(first_ps, dtype=float) / second + 0.02 + 0.0001 * inputs
    return lambda end: np.maximum(end - began, 1e-3)


def test_statistics_lines_alone_tell_the_speed_of_a_busy_engine() -> None:
    running = np.array([4, 8, 12, 16, 20, 10, 6, 14, 18, 9, 5, 11, 17, 13, 7] * 4, dtype=float)
    mean = np.concatenate([[running[0]], (running[1:] + running[:-1]) / 2])
    steps = 1 / (0.03 + 0.001 * mean)
    speed = from_statistics(np.arange(len(running)) * 10.0, np.zeros(len(running)), steps * mean, running)
    assert speed is not None
    assert (speed.step_s, speed.sequence_s) == pytest.approx((0.03, 0.001), rel=0.05)


def test_too_few_observations_are_no_fit() -> None:
    few = np.ones(3)
    assert from_requests(few, few * 2, few * 3, few, few * 20) is None
    assert from_statistics(few, few, few, few) is None


@pytest.mark.parametrize(("stamped", "offset"), [("arrival", 0.0), ("completion", 0.0), ("arrival", 7200.0)])
def test_what_a_stamp_means_is_told_by_the_statistics(stamped: str, offset: float) -> None:
    chosen = np.random.default_rng(3)
    arrival = np.sort(chosen.uniform(0, 900, 300))
    latency = chosen.uniform(30, 60, 300)
    t = np.arange(0.5, 1000, 10)
    running = np.array([((arrival <= moment) & (arrival + latency > moment)).sum() for moment in t], dtype=float)
    seen = Observed(t + 1e6, running / 100, running, running * 0, 10.0, "statistics lines", None)
    told = arrival + 1e6 + (latency if stamped == "completion" else 0) - offset
    assert _alignment(told, latency, seen) == (stamped, offset, True)


def test_without_statistics_nothing_decides() -> None:
    assert _alignment(np.arange(5.0), np.ones(5), None) == ("arrival", 0.0, False)


# ---- the pool under other flags

GIB = 2**30
KNOWN = Pool(100_000, 16, 100_000.0, 100_000.0 * 100_000, 80.0 * GIB, 0.9, 16.0 * GIB, "auto", 8, 2)


@pytest.mark.parametrize(
    ("changes", "tokens"),
    [
        ({"gpu_memory_utilization": 0.95}, int(100_000 * (1e10 + 0.05 * 80 * GIB) / 1e10) // 16 * 16),
        ({"kv_cache_dtype": "fp8"}, 200_000),
        ({"kv_cache_dtype": "fp8_e4m3", "num_gpu_blocks_override": 500}, 8_000),
        ({"kv_cache_memory_bytes": 2_000_000_000}, 20_000),
        ({"tensor_parallel_size": 4}, int(100_000 * 2 * (1e10 + 8 * GIB) / 1e10) // 16 * 16),
        ({"tensor_parallel_size": 16}, int(100_000 * 4 * (1e10 + 14 * GIB) / 1e10) // 16 * 16),
        ({"max_num_seqs": 4}, 100_000),
    ],
)
def test_the_pool_after_a_change(changes: dict[str, Any], tokens: int) -> None:
    assert pool_after(KNOWN, changes).tokens == pytest.approx(tokens, abs=16)


def test_beyond_the_kv_heads_ranks_hold_copies() -> None:
    # 8 heads: 16 ranks hold one each, as 8 do
    each = [pool_after(KNOWN, {"tensor_parallel_size": ranks}).bytes_per_token for ranks in (4, 8, 16)]
    assert each == [50_000.0, 25_000.0, 25_000.0]


@pytest.mark.parametrize(
    "changes", [{"gpu_memory_utilization": 0.95}, {"kv_cache_memory_bytes": 10**9}, {"tensor_parallel_size": 4}]
)
def test_what_the_bundle_does_not_tell_is_not_guessed(changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="does not tell"):
        pool_after(Pool(100_000, 16), changes)


def test_too_little_utilization_would_not_start() -> None:
    with pytest.raises(UsageError, match="would not start"):
        pool_after(KNOWN, {"gpu_memory_utilization": 0.5})


def test_v1_keeps_a_null_block() -> None:
    pool = Pool(1600, 16)
    assert (usable_blocks(pool, "V1"), usable_blocks(pool, None), usable_blocks(pool, "V0")) == (99, 99, 100)


def test_values_of_set_are_read_once_and_checked() -> None:
    assert read_changes({"max_num_seqs": "1,024", "enable_prefix_caching": "False", "kv_cache_memory_bytes": "2GiB", "gpu_memory_utilization": "0.93"}) == {
        "max_num_seqs": 1024, "enable_prefix_caching": False, "kv_cache_memory_bytes": 2 * GIB, "gpu_memory_utilization": 0.93,
    }  # fmt: skip
    for name, value in (("max_num_seqs", "0"), ("gpu_memory_utilization", "1.2"), ("enable_prefix_caching", "maybe"), ("kv_cache_memory_bytes", "much")):  # fmt: skip
        with pytest.raises(UsageError, match="is no value"):
            read_changes({name: value})


# ---- hits that only the server's counters tell

CACHED = Setup(
    usable_blocks=159, block_size=128, max_num_seqs=64, max_num_batched_tokens=2048, step_ps=2 * PICO // 1000
)


def recorded(prefix_tokens: int, groups: int, hit_share: float) -> tuple[Recording, Traffic]:
    """A recording of requests that share so many beginnings, and the traffic without a word of it."""
    rng = np.random.default_rng(7)
    count = 150
    arrival = np.sort(rng.uniform(0, 8, count))
    arrival[0] = 0.0
    inputs = rng.integers(1600, 2000, count)
    outputs = rng.integers(100, 700, count)
    bare = Traffic([round(moment * PICO) for moment in arrival], inputs.tolist(), outputs.tolist())
    shared = {"group": rng.integers(0, groups, count).tolist(), "prefix_tokens": [prefix_tokens] * count}
    truth = bare if not prefix_tokens else Traffic(bare.arrival_ps, bare.input_tokens, bare.output_tokens, **shared)
    moments = [second * PICO for second in range(40)]
    seen = simulate(CACHED, truth, moments).samples
    # a full pool is a saw-tooth: at any moment two runs of one server differ by some percent
    used = np.array([sample.used_blocks / CACHED.usable_blocks for sample in seen]) - np.abs(
        rng.normal(0, 0.08, len(seen))
    )
    observed = Observed(
        np.array([sample.t_ps / PICO for sample in seen]), used.clip(0), np.array([float(sample.running) for sample in seen]),
        np.array([float(sample.waiting) for sample in seen]), 2.0, "statistics lines", None,
    )  # fmt: skip
    told = Recording(
        arrival, arrival + np.nan, inputs, outputs, np.zeros(count), observed, ASSUMED, {}, {}, 128, 1, 0, "arrival", True, 0.0, (), hit_share,
    )  # fmt: skip
    return told, bare


def test_hits_of_the_counters_are_as_many_prefixes_as_let_so_many_run() -> None:
    """A pool that is full with and without shared blocks: only how many run at once tells, and then preemptions agree."""
    told, bare = recorded(1536, 4, 0.82)
    found, words = with_hits(told, CACHED, bare, 0.0)
    assert (found.prefix_tokens[0], len({*found.group})) == (1536, 4) and "as 4 prefixes of 1,536 tokens" in words
    assert simulate(CACHED, bare).preemptions < simulate(CACHED, found).preemptions / 2


def test_hits_that_show_in_nothing_that_was_recorded_are_not_assumed() -> None:
    told, bare = recorded(0, 1, 0.82)
    assert with_hits(told, CACHED, bare, 0.0) == (bare, "")


@pytest.mark.parametrize(
    ("engine", "hit_share", "cached", "keeps"),
    [
        ({}, None, 0, True),  # nothing tells the release: a V1 engine, which keeps them
        ({"generation": "V0"}, None, 0, False),
        ({"generation": "V0"}, 0.3, 0, True),
        ({"generation": "V0"}, None, 512, True),
        ({"prefix_caching": False, "generation": "V1"}, 0.3, 512, False),
    ],
)
def test_what_was_found_tells_that_prefixes_are_kept(
    engine: dict[str, Any], hit_share: float | None, cached: int, keeps: bool
) -> None:
    told, _ = recorded(0, 1, 0.0)
    told = replace(told, engine=engine, hit_share=hit_share, cached_tokens=told.cached_tokens + cached)
    assert caches_prefixes(told) is keeps


# ---- callers that wait for their answers


def asked_by(callers: int, count: int = 120) -> tuple[Recording, Traffic]:
    """So many callers at a pool that holds far fewer, as a recording; and the requests."""
    rng = np.random.default_rng(11)
    asked = Traffic([nth * PICO // 100 for nth in range(count)], rng.integers(300, 900, count).tolist(), rng.integers(100, 700, count).tolist())  # fmt: skip
    seen = simulate(replace(CACHED, callers=callers), asked)
    end = np.array([(moment or 0) / PICO for moment in seen.finish_ps])
    arrival = np.array([moment / PICO for moment in seen.arrival_ps])
    rows = np.array(asked.input_tokens), np.array(asked.output_tokens), np.zeros(count)
    return Recording(arrival, end, *rows, None, ASSUMED, {}, {}, 128, 1, 0, "arrival", True, 0.0, ()), replace(asked, arrival_ps=seen.arrival_ps)  # fmt: skip


def test_callers_that_wait_for_their_answer_are_counted() -> None:
    told, _ = asked_by(24)
    assert callers_of(told) == 24
    rounded = replace(told, arrival=np.sort(told.arrival.round(3)), end=told.end.round(3))
    assert callers_of(rounded) == 24
    assert callers_of(replace(told, left_out=3)) == 0  # nobody knows who sent what is missing
    assert callers_of(replace(told, end=told.end + np.nan)) == 0


def test_requests_that_come_by_themselves_have_no_callers() -> None:
    told, _ = asked_by(24)
    rng = np.random.default_rng(3)
    assert callers_of(replace(told, arrival=np.sort(rng.uniform(0, told.end.max(), len(told.arrival))))) == 0
    every = np.arange(120.0)
    assert (
        callers_of(replace(told, arrival=every, end=every + 0.5)) == 0
    )  # one after the other, each half a second late
    assert callers_of(replace(told, arrival=every * 0, end=every)) == 0  # all at once


def test_a_slower_server_is_asked_by_no_more_callers_than_there_are() -> None:
    """Sent when they were recorded, the requests would pile up before callers have their answers."""
    told, asked = asked_by(24)
    wide = replace(CACHED, usable_blocks=10 * CACHED.usable_blocks, step_ps=4 * CACHED.step_ps, callers=callers_of(told))  # fmt: skip
    moments = [second * PICO // 4 for second in range(400)]
    waits, comes = (simulate(each, asked, moments) for each in (wide, replace(wide, callers=0)))
    assert max(sample.running for sample in waits.samples) <= 24 < max(sample.running for sample in comes.samples)
    assert waits.peak_blocks < comes.peak_blocks
    assert sum(end is not None for end in waits.finish_ps) == len(asked)


# ---- a whole bundle


@pytest.fixture(scope="module")
def long_chats() -> dict[str, Any]:
    with oomdoc.analyze(LONG_CHATS) as analysis:
        return {
            name: analysis.replay(changes) for name, changes in (("as it was", {}), ("fewer", {"max_num_seqs": "8"}))
        }


def test_the_recorded_episode_comes_back(long_chats: dict[str, Any]) -> None:
    told = long_chats["as it was"]
    assert told["error"]["usage_mean_abs"] <= 0.05
    assert abs(told["error"]["full_difference_s"]) <= 2 * told["error"]["interval_s"]
    assert told["traffic"]["time_is"] == "completion"  # the gateway writes a line when the answer is complete
    assert not told["before"]["survives"] and told["before"]["preemptions"] > 100
    assert told["after"] is None


def test_fewer_sequences_remove_it(long_chats: dict[str, Any]) -> None:
    told = long_chats["fewer"]
    assert told["before"] == long_chats["as it was"]["before"]
    assert told["after"]["survives"] and told["after"]["preemptions"] == 0
    assert told["after"]["longest_wait_s"] > told["before"]["longest_wait_s"]  # what it costs
    assert told["settings"] == [{"flag": "max_num_seqs", "value": 8, "was": told["engine"]["max_num_seqs"]}]


def test_a_change_that_survives_by_making_people_wait_says_so(long_chats: dict[str, Any]) -> None:
    told = long_chats["fewer"]
    said = " ".join(render("x", told).split())
    assert told["after"]["p95_wait_s"] > 10 * told["before"]["p95_wait_s"]
    assert "it survives" in said and "but requests wait longer" in said
    quick = {**told, "after": {**told["after"], "p95_wait_s": 0.0}}
    assert "wait longer" not in render("x", quick)


@pytest.mark.parametrize(("running", "said"), [(30, False), (31, True)])
def test_steps_that_nobody_has_measured_are_said_to_be_extended(running: int, said: bool) -> None:
    told = SimpleNamespace(observed=SimpleNamespace(running=np.array([3.0, np.nan, 15.0])))
    words = _beyond({"series": {"running": [2, running, 7]}}, told)  # type: ignore[arg-type]
    assert [sentence.split(":")[0] for sentence in words] == (
        [f"how long a step of {running} requests lasts"] if said else []
    )
    assert not said or "at most 15 at once" in words[0]
    assert _beyond(None, told) == []  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def again() -> Iterator[oomdoc.Analysis]:
    """The same bundle analysed another time, and replayed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replays, "ANEW", [True])
        with oomdoc.analyze(LONG_CHATS) as analysis:
            yield analysis


def test_same_bundle_same_replay(long_chats: dict[str, Any], again: oomdoc.Analysis) -> None:
    assert again.replay({}) == long_chats["as it was"]


def test_an_argument_left_to_the_engine_is_not_its_answer(tmp_path: Path) -> None:
    """0.8.5 logs `enable_chunked_prefill=None` among its arguments and what it made of it in its config: prompts longer than a step run."""
    folder = log(tmp_path)
    (folder / "vllm.log").write_text(
        "INFO 11-20 19:59:58 [api_server.py:1044] args: Namespace(model='m', max_num_batched_tokens=512, max_num_seqs=None, enable_chunked_prefill=None)\n"
        + (folder / "vllm.log").read_text().replace("v0.11.0) with config: model='m'", "v0.8.5) with config: model='m', chunked_prefill_enabled=True")
    )  # fmt: skip
    with oomdoc.analyze(folder) as analysis:
        told = analysis.replay({})
    assert told["engine"]["chunked_prefill"] and told["before"]["impossible"] == 0


def log(tmp_path: Path, *, requests: bool = True, pool: bool = True) -> Path:
    """A small bundle: a V1 server's head, a request every second."""
    lines = ["INFO 11-20 20:00:00 [core.py:58] Initializing a V1 LLM engine (v0.11.0) with config: model='m'"]
    if pool:
        lines.append("INFO 11-20 20:00:09 [kv_cache_utils.py:1087] GPU KV cache size: 4,096 tokens")
    (tmp_path / "vllm.log").write_text("\n".join(lines) + "\n")
    if requests:
        rows = [
            {"timestamp": f"2026-11-20T20:01:{second:02}Z", "input_tokens": 600, "output_tokens": 200, "ttft_s": 0.1, "latency_s": 6.0, "status": 200}
            for second in range(40)
        ]  # fmt: skip
        (tmp_path / "requests.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def test_the_command_prints_both_and_the_json_is_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = log(tmp_path)
    assert run(["replay", str(folder), "--set", "max-num-seqs=2", "-q"]) == 0
    text = capsys.readouterr().out
    assert "With --max-num-seqs 2" in text and "Side by side" in text
    assert "\x1b" not in text
    assert run(["replay", str(folder), "--set", "max_num_seqs=2", "--format", "json", "-q"]) == 0
    told = json.loads(capsys.readouterr().out)["replay"]
    assert told["engine_after"]["max_num_seqs"] == 2
    assert told["error"] is None and told["recorded"] is None
    assert any("nothing to check the replay against" in sentence for sentence in told["unknown"])
    assert any("max_num_seqs 256" in sentence for sentence in told["assumptions"])
    for outcome in (told["before"], told["after"]):
        series = outcome["series"]
        assert len(series["used"]) == len(series["running"]) == len(series["waiting"]) <= 240
        assert max(series["used"]) <= outcome["peak_used"] <= 1


def test_a_larger_pool_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", str(log(tmp_path)), "--pool-tokens", "64000", "--format", "json", "-q"]) == 0
    told = json.loads(capsys.readouterr().out)["replay"]
    assert (told["engine"]["pool_tokens"], told["engine_after"]["pool_tokens"]) == (4096, 64000)
    assert told["after"]["peak_used"] < told["before"]["peak_used"]


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["--set", "max_num_seq=4"], 2, "Did you mean `max_num_seqs`"),
        (["--set", "max_num_seqs"], 2, "lacks a part"),
        (["--set", "max_num_seqs=few"], 2, "is no value"),
        (["--set", "max_num_batched_tokens=16"], 2, "the engine refuses that"),
        (["--set", "gpu_memory_utilization=0.95"], 2, "--pool-tokens"),
        (["--format", "html"], 2, "Choose terminal or json"),
        (["--pool-tokens", "16"], 2, "would not start"),
    ],
)
def test_wrong_usage_is_one_sentence(
    arguments: list[str], status: int, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["replay", str(log(tmp_path)), *arguments]) == status
    said = capsys.readouterr().err
    assert sentence in said and "Traceback" not in said


@pytest.mark.parametrize(
    ("have", "sentence"),
    [({"requests": False}, "no requests to replay"), ({"pool": False}, "how many tokens the KV pool stores")],
)
def test_what_is_missing_is_named(
    have: dict[str, bool], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["replay", str(log(tmp_path, **have))]) == BundleError.exit_code
    assert sentence in capsys.readouterr().err


def test_blocks_round_up() -> None:
    assert [blocks(tokens, 16) for tokens in (0, 1, 16, 17)] == [0, 1, 1, 2]


def test_whole_replay_as_accepted_snapshot(again: oomdoc.Analysis) -> None:
    told = again.replay({"max_num_seqs": "8"})
    for width in (80, 160):
        text = render(LONG_CHATS.name, told, width=width)
        check(Path(__file__).parent / "snapshots" / "golden" / f"kv-demand-long-chats.replay-{width}.txt", text)
        assert all(cell_len(line) <= width for line in text.splitlines())
