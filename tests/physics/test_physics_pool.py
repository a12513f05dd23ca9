"""Blocks, groups, shares of ranks and the budget by release."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from oomdoc.errors import UsageError
from oomdoc.physics.budget import plan_budget, round_utilization_up, utilization_for
from oomdoc.physics.catalogue import find, models
from oomdoc.physics.defaults import (
    budget_rule,
    default_max_num_batched_tokens,
    default_max_num_seqs,
    default_of,
    generation_of,
)
from oomdoc.physics.expect import Known, expected
from oomdoc.physics.gpus import find_gpu, gpus
from oomdoc.physics.identify import identify
from oomdoc.physics.interval import Interval, point, printed
from oomdoc.physics.kv import kv_bytes_per_token, token_bytes
from oomdoc.physics.planning import activation_bytes, graph_bytes, headroom_bytes, non_torch_bytes, step_token_bytes
from oomdoc.physics.pool import blocks, layouts, longest_request, pool_tokens, request_blocks
from oomdoc.physics.setup import Setup
from oomdoc.physics.weights import named_size, stage_layers, stage_weights, weights_bytes
from oomdoc.units import GIB


def model(name: str) -> Any:
    found = find(name)
    assert found is not None, name
    return found.model


def layout(name: str, **options: Any) -> Any:
    found = layouts(model(name), **options)
    assert found is not None
    return found[0]


# --- groups ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "groups", "tensors"),
    [
        ("openai/gpt-oss-120b", 2, 18),
        ("google/gemma-3-27b-it", 7, 10),  # 52 sliding layers fill five groups of ten and a part of a sixth
        ("Qwen/Qwen3.5-9B", 4, 8),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", 4, 12),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 5, 6),
    ],
)
def test_layers_are_dealt_into_groups_of_equal_size(name: str, groups: int, tensors: int) -> None:
    found = layout(name)
    assert (len(found.groups), found.tensors) == (groups, tensors)


def test_uniform_models_have_one_group_and_older_engines_only_such() -> None:
    assert len(layout("Qwen/Qwen3-8B").groups) == 1
    old = layout("openai/gpt-oss-120b", version=9_001)
    assert len(old.groups) == 1
    assert old.block_bytes == 16 * 73_728
    off = layout("openai/gpt-oss-120b", hybrid_manager=False)
    assert off.block_bytes == old.block_bytes
    assert request_blocks(off, 4096, batched_tokens=2048) == 4096 // 16  # nothing slides when the manager is off


def test_narrow_layers_take_more_tokens_into_a_page_of_the_same_bytes() -> None:
    found = layout("google/gemma-4-26B-A4B-it")
    wide = {group.cache.kind: group.block_tokens for group in found.groups}
    assert wide == {"sliding": 16, "full": 32}


def test_a_sliding_layer_needs_its_window_and_one_chunk() -> None:
    found = layout("openai/gpt-oss-120b")
    short = request_blocks(found, 1000, batched_tokens=2048)
    assert short == 63 + (63 + 1)
    long = request_blocks(found, 100_000, batched_tokens=2048)
    assert long == 6250 + (-(-(127 + 2048) // 16) + 1)


def test_a_recurrent_state_costs_one_block_or_two_with_prefix_caching() -> None:
    found = layout("Qwen/Qwen3.5-9B")
    without = request_blocks(found, 1, batched_tokens=2048, prefix_caching=False)
    assert (without, request_blocks(found, 1, batched_tokens=2048)) == (1 + 3, 1 + 6)


@given(st.sampled_from([entry.name for entry in models()]), st.integers(0, 5000), st.sampled_from([512, 2048, 8192]))
def test_the_longest_request_is_the_last_that_fits(name: str, count: int, batched: int) -> None:
    found = layouts(model(name))
    if found is None:
        return
    tokens = longest_request(found[0], count, batched_tokens=batched)
    if tokens:
        assert request_blocks(found[0], tokens, batched_tokens=batched) <= count
    if tokens < 1 << 24:
        assert request_blocks(found[0], tokens + 1, batched_tokens=batched) > count


@given(st.floats(0, 200).map(lambda gib: round(gib * GIB)), st.sampled_from([8_005, 9_002, 19_001]))
def test_a_uniform_pool_is_floor_division_and_never_more_than_there_is(size: int, version: int) -> None:
    found = layout("Qwen/Qwen3-8B", version=version)
    count = int(blocks(found, point(size)).lo)
    tokens = pool_tokens(found, count, need=1, max_model_len=16, version=version)
    assert tokens == size // (147_456 * 16) * 16
    assert tokens * 147_456 <= size


def test_a_negative_budget_has_no_blocks() -> None:
    assert blocks(layout("Qwen/Qwen3-8B"), point(-5 * GIB)) == Interval(0, 0, "computed")


# --- ranks ----------------------------------------------------------------------------------------------------------------


@given(st.sampled_from([entry.name for entry in models()]), st.sampled_from([1, 2, 4, 8, 16, 32]))
def test_more_ranks_never_make_a_token_dearer_and_never_below_one_head(name: str, tp: int) -> None:
    found = model(name)
    assume(all(cache.kv_heads % tp == 0 or tp % cache.kv_heads == 0 for cache in found.caches if cache.kv_heads))
    one, many = kv_bytes_per_token(found), kv_bytes_per_token(found, tp=tp)
    if one is None or many is None:
        assert one is many
        return
    assert one / tp <= many <= one
    if found.latent:
        assert many == one
    if all(cache.kv_heads == 1 for cache in found.caches if cache.kv_heads):
        assert many == one


def test_heads_are_replicated_and_not_divided_below_one() -> None:
    wide = model("Qwen/Qwen3-235B-A22B")
    assert kv_bytes_per_token(wide, tp=4) == kv_bytes_per_token(wide, tp=8) == 48_128


def test_context_parallelism_divides_positions() -> None:
    kimi = model("moonshotai/Kimi-K2-Instruct")
    assert kv_bytes_per_token(kimi, tp=8, dcp=8) == 70_272 / 8
    alone, split = (
        expected(
            kimi,
            Setup(version=15_001, tensor_parallel_size=8, decode_context_parallel_size=dcp, max_model_len=4096),
            point(140 * GIB),
            known=Known(available_bytes=printed(46.8 * GIB)),
        )
        for dcp in (1, 8)
    )
    assert alone.pool and split.pool
    assert split.pool.tokens.lo == 8 * alone.pool.tokens.lo
    assert 5_721_088 in split.pool.tokens


def test_stages_take_whole_layers() -> None:
    assert stage_layers(94, 4) == (23, 24, 24, 23)
    assert sum(stage_layers(61, 8)) == 61
    assert max(stage_layers(61, 8)) - min(stage_layers(61, 8)) == 1


def test_weights_of_ranks_add_up_but_for_what_stands_on_each() -> None:
    found = model("Qwen/Qwen3-235B-A22B")
    whole, eighth = weights_bytes(found), weights_bytes(found, tp=8)
    assert whole and eighth
    assert whole.lo / 8 < eighth.lo < whole.lo / 8 * 1.02  # K and V of four heads stand on two ranks each
    latent = model("deepseek-ai/DeepSeek-V3")
    one, many = weights_bytes(latent), weights_bytes(latent, tp=16)
    assert one and many and many.lo > one.lo / 16 + 0.5 * GIB  # the down-projections stand on every rank


def test_the_first_stage_has_the_embedding_and_the_last_the_head() -> None:
    first, middle, _, last = stage_weights(model("meta-llama/Llama-3.1-70B-Instruct"), pp=4)
    assert first.lo - middle.lo == pytest.approx(128_256 * 8192 * 2)
    assert last.lo - middle.lo == pytest.approx(128_256 * 8192 * 2)


# --- dtypes and versions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        ("auto", 4096),
        ("fp8", 2048),
        ("fp8_e5m2", 2048),
        ("nvfp4", 1152),
        ("int8_per_token_head", 2 * 8 * 132),
        ("float32", 8192),
    ],
)
def test_kv_dtypes(dtype: str, size: float) -> None:
    llama = model("meta-llama/Llama-3.1-8B-Instruct")
    assert kv_bytes_per_token(llama, kv_cache_dtype=dtype) == size * 32


def test_latents_by_version_and_dtype() -> None:
    lite, sparse = model("deepseek-ai/DeepSeek-V2-Lite-Chat"), model("deepseek-ai/DeepSeek-V3.2")
    assert kv_bytes_per_token(lite, version=6_003) == 442_368
    assert kv_bytes_per_token(lite, version=7_000) == 31_104
    assert token_bytes(sparse.caches[0], "fp8_ds_mla") == 656 + 132
    assert token_bytes(sparse.caches[0], "bfloat16") == 1152 + 132


def test_an_unknown_kv_dtype_is_one_sentence() -> None:
    with pytest.raises(UsageError, match="KV cache dtype 'fp3'"):
        kv_bytes_per_token(model("Qwen/Qwen3-8B"), kv_cache_dtype="fp3")


@pytest.mark.parametrize(
    ("version", "also", "free_checked"),
    [
        (2_007, ("others",), False),
        (6_003, (), False),
        (6_006, (), False),
        (8_005, ("others",), False),
        (9_002, (), True),
        (19_001, (), True),
        (20_002, ("graphs",), True),
        (33_000, ("graphs", "slack"), True),
    ],
)
def test_the_budget_rule_of_each_generation(version: int, also: tuple[str, ...], free_checked: bool) -> None:
    rule = budget_rule(version)
    assert (rule.also, rule.free_at_start_checked) == (also, free_checked)
    assert rule.generation == generation_of(version)


def test_defaults_by_release_and_device() -> None:
    h100, a100, l4 = (80 * GIB, "H100"), (80 * GIB, "NVIDIA A100-SXM4-80GB"), (22 * GIB, "L4")
    assert [default_max_num_seqs(9_002, *device) for device in (h100, a100, l4)] == [1024, 256, 256]
    assert [default_max_num_seqs(7_003, *device) for device in (h100, l4)] == [256, 256]
    assert default_max_num_batched_tokens(10_000, h100[0], 4096, "H100") == 8192
    assert default_max_num_batched_tokens(30_000, 180 * GIB, 4096, "B200") == 16_384
    assert default_max_num_batched_tokens(6_006, 24 * GIB, 8192) == 8192
    assert default_max_num_batched_tokens(6_006, 24 * GIB, 131_072) == 2048
    assert (default_of("gpu_memory_utilization", 19_001), default_of("gpu_memory_utilization", 20_000)) == (0.9, 0.92)
    assert default_of("no_such_flag", 20_000) is None


def test_the_four_terms_of_v0_close_to_the_cent() -> None:
    """Llama-3-8B on 39.50 GiB at 0.90: 14.96 + 0.10 + 9.37 leave 11.12."""
    budget = plan_budget(
        printed(39.5 * GIB),
        0.9,
        weights_bytes=printed(14.96 * GIB),
        activation_bytes=printed(9.37 * GIB),
        non_torch_bytes=printed(0.10 * GIB),
        graph_bytes=graph_bytes(),
        version=6_006,
    )
    assert printed(11.12 * GIB).overlaps(budget.available_bytes)
    assert budget.available_bytes.hi - budget.available_bytes.lo < 0.04 * GIB
    assert not budget.graphs_planned


def test_graphs_are_beside_the_plan_before_0_20_and_in_it_from_then_on() -> None:
    """Qwen3-8B on a 40 GB A100, 0.19: 2.44 GiB of graphs lifted the process above its budget."""
    parts: dict[str, Any] = {
        "weights_bytes": printed(15.27 * GIB),
        "activation_bytes": point(0.5 * GIB),
        "non_torch_bytes": point(0.41 * GIB),
        "graph_bytes": printed(2.44 * GIB),
    }
    before = plan_budget(printed(39.49 * GIB), 0.9, version=19_000, **parts)
    after = plan_budget(printed(39.49 * GIB), 0.9, version=20_002, **parts)
    assert printed(19.36 * GIB).overlaps(before.available_bytes)
    assert 2.44 * GIB in before.available_bytes - after.available_bytes
    # what the log itself says: 0.9000 -> 0.9596 keeps the pool with 2.35 GiB of graphs in the plan
    needed = utilization_for(19.36 * GIB, printed(19.36 * GIB) - 2.35 * GIB, printed(39.49 * GIB), 0.9)
    assert 0.9596 in Interval(needed.lo - 1e-4, needed.hi + 1e-4)


def test_neighbours_count_only_where_the_release_counts_them() -> None:
    parts: dict[str, Any] = {
        "weights_bytes": point(15 * GIB), "activation_bytes": point(GIB), "non_torch_bytes": point(0),
        "graph_bytes": point(0), "other_processes_bytes": point(4 * GIB),
    }  # fmt: skip
    early = plan_budget(point(40 * GIB), 0.9, version=8_005, **parts)
    later = plan_budget(point(40 * GIB), 0.9, version=9_002, **parts)
    assert later.available_bytes.lo - early.available_bytes.lo == 4 * GIB


@given(st.floats(1, 60), st.floats(0.5, 0.95), st.floats(0.01, 60))
def test_the_reverse_of_the_budget_is_its_inverse(available: float, utilization: float, needed: float) -> None:
    total, have = point(80 * GIB), point(available * GIB)
    wanted = utilization_for(needed * GIB, have, total, utilization)
    again = (
        have.lo + (wanted.lo - utilization) * total.lo
    )  # what the engine has for KV: utilization x total less the rest
    assert again == pytest.approx(needed * GIB, rel=1e-6, abs=1024)
    assert round_utilization_up(wanted.hi) >= wanted.hi - 1e-7


def test_a_device_that_is_not_free_enough_refuses_before_loading() -> None:
    result = expected(
        model("Qwen/Qwen3-8B"),
        Setup(version=11_000, max_model_len=4096),
        point(80 * GIB),
        known=Known(free_at_start_bytes=point(60 * GIB)),
    )
    assert (result.starts, result.refusal) == (False, "free-memory")
    older = expected(
        model("Qwen/Qwen3-8B"),
        Setup(version=6_006, max_model_len=4096),
        point(80 * GIB),
        known=Known(free_at_start_bytes=point(60 * GIB)),
    )
    assert older.starts is True  # V0 did not look


def test_the_whole_start_is_refused_by_the_first_check_that_fails() -> None:
    def told(name: str, total: float, **flags: Any) -> tuple[bool | None, str | None]:
        result = expected(model(name), Setup(version=11_000, **flags), point(total * GIB))
        return result.starts, result.refusal

    assert told("meta-llama/Llama-3.1-70B-Instruct", 79.1) == (False, "weights")
    assert told("Qwen/Qwen3-8B", 16.0) == (False, "no-blocks")
    assert told("meta-llama/Llama-3.1-8B-Instruct", 22.0, max_model_len=131_072) == (False, "length")
    assert told("meta-llama/Llama-3.1-8B-Instruct", 22.0, max_model_len=4096) == (True, None)
    assert told("Zyphra/Zamba2-7B", 80.0)[0] is not True  # no formula, so no promise


# --- planning figures ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "tp", "gib"),
    [("meta-llama/Llama-3.1-8B-Instruct", 1, 1.9), ("Qwen/Qwen2.5-7B-Instruct", 1, 2.3), ("Qwen/Qwen3-8B", 1, 2.2),
     ("Qwen/Qwen3-30B-A3B", 1, 2.7), ("google/gemma-3-12b-it", 1, 3.8), ("microsoft/phi-4", 1, 1.5)],
)  # fmt: skip
def test_planned_activations_hold_the_measured_peaks(name: str, tp: int, gib: float) -> None:
    """Peaks of a public calibration on H100, 8192 tokens and 1024 sequences."""
    planned = activation_bytes(model(name), batched_tokens=8192, max_num_seqs=1024, tp=tp)
    assert gib * GIB in planned
    assert planned.origin == "planning figure"


@given(st.integers(1, 100_000), st.integers(1, 4096), st.sampled_from([1, 2, 4, 8]))
def test_planning_figures_are_ranges_and_never_points(batched: int, seqs: int, tp: int) -> None:
    planned = activation_bytes(model("Qwen/Qwen3-8B"), batched_tokens=batched, max_num_seqs=seqs, tp=tp)
    for figure in (planned, non_torch_bytes(tp), graph_bytes(max_num_seqs=seqs)):
        assert not figure.exact and figure.lo >= 0 and figure.origin == "planning figure"
    more = activation_bytes(model("Qwen/Qwen3-8B"), batched_tokens=batched + 1, max_num_seqs=seqs, tp=tp)
    assert more.lo >= planned.lo and more.hi > planned.hi


@pytest.mark.parametrize("name", ["Qwen/Qwen3-8B", "Qwen/Qwen3-30B-A3B", "google/gemma-3-12b-it"])
def test_a_token_of_a_step_is_what_one_more_adds(name: str) -> None:
    some, more = (activation_bytes(model(name), batched_tokens=n, max_num_seqs=0, encoder=False) for n in (4096, 12288))
    each = step_token_bytes(model(name))
    assert (more.hi - some.hi) / 8192 == pytest.approx(each.hi) and (more.lo - some.lo) / 8192 == pytest.approx(each.lo)


def test_headroom_is_absolute() -> None:
    sizes = [headroom_bytes(gib * GIB).hi / GIB for gib in (15, 24, 44, 79, 140)]
    assert sizes == [1.5, 2.0, 4.0, 6.0, 6.0]
    assert headroom_bytes(79 * GIB, tp=4, experts=True).hi == 7 * GIB


# --- devices, names, identification ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("H100", "NVIDIA H100 80GB"),
        ("NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB"),
        ("h200", "NVIDIA H200"),
        ("GH200", "NVIDIA GH200 96GB"),
        ("A100-SXM4-40GB", "NVIDIA A100 40GB"),
        ("A100-80GB", "NVIDIA A100 80GB"),
        ("A10", "NVIDIA A10"),
        ("A10G", "NVIDIA A10G"),
        ("L4", "NVIDIA L4"),
        ("L40S", "NVIDIA L40S"),
        ("Tesla V100-SXM2-16GB", "NVIDIA Tesla V100 16GB"),
        ("RTX 4090", "NVIDIA GeForce RTX 4090"),
        ("rtx-a6000", "NVIDIA RTX A6000"),
    ],
)
def test_devices_by_name(text: str, name: str) -> None:
    assert find_gpu(text).name == name


def test_devices_by_size_say_what_they_say() -> None:
    assert find_gpu("80GiB").total_bytes == point(80 * GIB, "given")
    assert find_gpu("24").total_bytes.lo == 24 * GIB
    assert find_gpu("80GB").total_bytes.lo == 80e9  # 74.5 GiB: GB is 10^9
    for gpu, _ in gpus():
        assert 7 * GIB < gpu.total_bytes.lo <= gpu.total_bytes.hi < 300 * GIB
    for wrong in ("H10000", "-80GiB", "", "0", "banana"):
        with pytest.raises(UsageError, match="no device"):
            find_gpu(wrong)


def test_two_figures_name_their_model() -> None:
    first, *rest = identify(weights=printed(15.27 * GIB), kv_per_token=Interval(147_400, 147_530))
    assert first.model.name == "Qwen/Qwen3-8B"
    assert len(first.fits) == 2 and not first.misfits
    # others share its bytes per token, but none agrees better in both
    assert all(candidate.misfits or (candidate.weights_off or 0) >= (first.weights_off or 0) for candidate in rest)


def test_a_quantised_model_is_recognised_by_both() -> None:
    found = identify(weights=printed(37.09 * GIB), kv_per_token=Interval(327_500, 327_900))
    formats = {candidate.model.name: candidate.quantization for candidate in found if not candidate.misfits}
    assert formats["meta-llama/Llama-3.3-70B-Instruct"] == "awq"
    assert len(formats) > 1  # others agree as well: the list is no verdict


def test_figures_of_no_model_give_no_answer() -> None:
    assert identify() == ()
    assert identify(kv_per_token=Interval(12_345.1, 12_345.2)) == ()
    assert identify(weights=point(0.001 * GIB)) == ()


@pytest.mark.parametrize(
    ("name", "size"),
    [("acme-7B-chat", 7e9), ("x/0.6b", 0.6e9), ("mix-8x7b", 46.48e9), ("model-a3b", None), ("v2", None)],
)
def test_sizes_in_names(name: str, size: float | None) -> None:
    assert named_size(name) == size


def test_graphs_of_a_server_that_drafts_are_those_of_its_tokens() -> None:
    """Eight sequences that each draft seven tokens are 64 tokens in a step, as 64 sequences are without."""
    drafting = graph_bytes(max_num_seqs=8, draft_tokens=7, estimated=True)
    assert drafting == graph_bytes(max_num_seqs=64, estimated=True)
    assert drafting.hi > graph_bytes(max_num_seqs=8, estimated=True).hi
    assert graph_bytes(enforce_eager=True, draft_tokens=7).hi == 0
