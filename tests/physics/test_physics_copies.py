"""What a fifth collection of published starts showed: copies whose files are listed, tables of positions, narrow KV dtypes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from oomdoc.fit import Given, Logged, Question, ask, worksheet
from oomdoc.fit.judge import judge
from oomdoc.model import Engine, Flag
from oomdoc.physics.architecture import FULL, LATENT, Cache
from oomdoc.physics.catalogue import with_files
from oomdoc.physics.interval import Interval
from oomdoc.physics.kv import (
    TURBOQUANT,
    WIDE_AT_EACH_END,
    head_bytes,
    is_kv_dtype,
    kv_bytes_per_token,
    kv_dtype,
    pair_bytes,
    stage_caches,
)
from oomdoc.physics.planning import MOVING_GRAPHS_GIB, activation_bytes, graph_bytes, non_torch_bytes
from oomdoc.physics.pool import layouts
from oomdoc.physics.rotary import rotary_bytes
from oomdoc.physics.weights import FORMATS, LOADED_OVER_COPY, weights_bytes
from oomdoc.units import GIB


def question(**flags: Any) -> Question:
    return ask(Given(**{"engine_version": "0.25.1", "gpu": "H100", **flags}))


def size_of(name: str, **flags: Any) -> Interval:
    asked = question(model=name, **flags)
    size = weights_bytes(asked.model, quantization=asked.setup.quantization)
    assert size is not None
    return size


# --- copies whose files are listed ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "loaded"),
    [
        ("unsloth/Qwen3.8-27B-NVFP4", 22.13),
        ("RedHatAI/Qwen3.8-27B-INT4", 18.5),
        ("cyankiwi/Qwen3.8-27B-AWQ-INT4", 18.91),
        ("RedHatAI/gemma-4-26B-A4B-it-NVFP4", 15.88),
    ],
)
def test_a_listed_copy_is_as_large_as_its_files(name: str, loaded: float) -> None:
    size = size_of(name)
    assert abs(size.middle / GIB / loaded - 1) < 0.05 and size.hi / size.lo < 1.15
    other = size_of(name.replace(name.partition("/")[0], "someone"))  # whose files nobody listed
    assert other.lo <= size.hi and size.lo <= other.hi and other.hi / other.lo >= size.hi / size.lo


def test_a_folder_is_the_copy_that_its_last_parts_name_and_a_width_that_is_asked_for_is_none() -> None:
    assert size_of("/models/unsloth/Qwen3.8-27B-NVFP4") == size_of("unsloth/Qwen3.8-27B-NVFP4")
    assert size_of("unsloth/Qwen3.8-27B-NVFP4", quantization="compressed-tensors") == size_of("unsloth/Qwen3.8-27B-NVFP4")  # fmt: skip
    assert size_of("unsloth/Qwen3.8-27B-NVFP4", quantization="fp8") == size_of("Qwen/Qwen3.8-27B", quantization="fp8")


def test_files_widen_nothing_that_was_counted() -> None:
    asked = question(model="unsloth/Qwen3.8-27B-NVFP4").model
    counted = weights_bytes(replace(asked, copy_bytes=()))
    size = weights_bytes(asked)
    assert counted is not None and size is not None
    assert counted.lo <= size.lo and size.hi <= counted.hi
    (files,) = asked.copy_bytes
    assert size.lo == pytest.approx(files * LOADED_OVER_COPY[0 if asked.draft_layers else 1] + rotary_bytes(asked))
    assert size.hi == pytest.approx(files * LOADED_OVER_COPY[2] + rotary_bytes(asked))


def test_two_revisions_are_a_range_of_both_and_one_that_the_count_cannot_reach_is_its_files() -> None:
    """Laguna-S-2.1: 66.97 GiB, and 92.84 from August 2026 on, with the experts of some layers in 16 bits."""
    both, wide = size_of("poolside/Laguna-S-2.1-INT4"), size_of("poolside/Laguna-S-2.1-NVFP4")
    assert 67.3 * GIB in both and 93.4 * GIB in both
    assert wide.lo > 90 * GIB and 93.4 * GIB in wide


@pytest.mark.parametrize(
    ("name", "commit", "pinned"),
    [
        ("poolside/Laguna-S-2.1-INT4", "67dbeda456e68139f281c40831f9d12049d8fc11", True),
        ("poolside/Laguna-S-2.1-INT4", "67dbeda4", True),
        ("poolside/Laguna-S-2.1-INT4@67dbeda4", None, True),
        ("/hub/models--poolside--Laguna-S-2.1-INT4/snapshots/67dbeda456e68139f281c40831f9d12049d8fc11", None, True),
        ("poolside/Laguna-S-2.1-INT4", "67db", False),  # too short to tell commits apart
        ("poolside/Laguna-S-2.1-INT4", "main", False),
        ("poolside/Laguna-S-2.1-INT4", "0123456789abcdef", False),  # a commit nobody listed
        ("poolside/Laguna-S-2.1-INT4", None, False),
    ],
)
def test_a_pinned_commit_decides_which_content_is_meant(name: str, commit: str | None, pinned: bool) -> None:
    """67.0 GiB at one commit, 92.8 on the branch two days later under the same name."""
    size = weights_bytes(question(model=name, revision=commit).model)
    assert size is not None and 67.3 * GIB in size
    assert (size.hi < 70 * GIB) is pinned


def test_a_commit_that_is_known_alone_says_nothing_of_the_others() -> None:
    """26.4 GB at one commit; what the branch holds today nobody listed."""
    pinned = size_of("unsloth/Qwen3.6-27B-NVFP4", revision="890bdef7a42feba6d83b6e17a03315c694112f2a")
    other = size_of("unsloth/Qwen3.6-27B-NVFP4")
    assert 24.5 * GIB in pinned and pinned.hi / pinned.lo < 1.15 < other.hi / other.lo


def test_a_recipe_that_leaves_linear_attention_alone() -> None:
    """A Qwen3.5 in 4-bit integers keeps its delta nets in 16 bits at least; one of Qwen3-Next, and another format, may not."""
    for name, kept in (("Qwen3.5-35B-A3B-W4A16", True), ("Qwen3-Next-80B-A3B-Instruct-W4A16", False), ("Qwen3.5-35B-A3B-AWQ", False)):  # fmt: skip
        model = question(model=name).model
        assert model.parts is not None and 0 < model.parts.linear < model.parts.attention, name
        size, narrow = weights_bytes(model), replace(model, parts=replace(model.parts, linear=0))
        least = weights_bytes(narrow)
        assert size is not None and least is not None
        assert (size.lo > least.lo) is kept, name
        assert size.hi == least.hi, name
        if kept:  # what is kept takes 2 bytes for half a byte and its scales
            assert size.lo - least.lo == pytest.approx(model.parts.linear * (2 - FORMATS["w4a16"].bytes_per_weight))
    dense = question(model="meta-llama/Llama-3.1-8B-Instruct").model.parts
    assert dense is not None and dense.linear == 0


def test_a_log_that_prints_its_commit_pins_it() -> None:
    engine = Engine(
        "e", "engine.log:1", None, "0.25.1", "poolside/Laguna-S-2.1-INT4", "V1",
        {"revision": Flag("67dbeda456e68139f281c40831f9d12049d8fc11", "given", "engine.log:3")}, None, False,
    )  # fmt: skip
    size = weights_bytes(ask(Given(gpu="GB10"), Logged(engine.model, engine)).model)
    assert size is not None and size.hi < 70 * GIB


def test_a_copy_tells_its_kv_dtype_where_its_files_do() -> None:
    """2,192,477 tokens of 76.4 GiB in 8 bits, 94,135 of 6.97 in 16: the same format's name, two configs."""
    for name, tokens, room, length, more in (
        ("unsloth/Qwen3.8-27B-NVFP4", 2_192_477, "76.4GiB", 262_144, {"speculative_config": '{"method": "mtp", "num_speculative_tokens": 3}'}),
        ("poolside/Laguna-S-2.1-NVFP4", 94_135, "6.97GiB", 65_536, {"speculative_config": '{"model": "poolside/Laguna-S-2.1-DFlash-NVFP4", "num_speculative_tokens": 15}'}),
    ):  # fmt: skip
        told = worksheet(
            question(model=name, gpu="GB10", max_model_len=length, max_num_seqs=32, available_kv=room, **more)
        )
        assert told.pool is not None and abs(told.pool.tokens.middle / tokens - 1) < 0.01, name
    silent = question(model="RedHatAI/Qwen3.8-27B-INT4")
    assert silent.model.kv_cache_scheme is None and kv_dtype(silent.model) == "bfloat16"
    told = question(model="unsloth/Qwen3.8-27B-NVFP4")
    assert any(entry.name == "KV cache dtype" and entry.origin == "catalogue" for entry in told.inputs)
    assert kv_dtype(told.model, "bfloat16") == "bfloat16"  # a flag goes before it
    plain = question(model="Qwen/Qwen3-8B").model
    assert with_files(plain, "Qwen/Qwen3-8B") is plain


def test_awq_in_groups_of_32_by_who_made_it() -> None:
    """33.94 GiB on each of two ranks (Mistral-Small-4), 15.61 of a copy under the maker's earlier name."""
    told = question(model="cyankiwi/Mistral-Small-4-119B-2603-AWQ-4bit", tensor_parallel_size=2)
    size = weights_bytes(told.model, tp=2)
    assert size is not None and abs(size.middle / GIB / 33.94 - 1) < 0.02
    earlier = size_of("cpatonn/Qwen3-30B-A3B-Thinking-2507-AWQ-4bit")
    assert abs(earlier.middle / GIB / 15.61 - 1) < 0.03
    named, folder = size_of("QuantTrio/MiniMax-M2-AWQ"), size_of("MiniMax-M2-AWQ")
    assert folder.lo == named.lo and folder.hi > 1.05 * named.hi  # nobody says whose copy the folder is
    assert size_of("/data/Qwen2.5-14B-Instruct-AWQ") == size_of("acme/Qwen2.5-14B-Instruct-AWQ")  # no experts


# --- tables of positions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "loaded"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", 14.9888),
        ("meta-llama/Meta-Llama-3-8B-Instruct", 14.9596),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", 56.9342),
        ("Qwen/Qwen3-30B-A3B", 56.88),
        ("Qwen/Qwen2.5-Coder-7B-Instruct", 14.1931),
        ("Qwen/Qwen3.5-9B", 17.66),
    ],
)
def test_tables_of_positions_are_loaded_with_the_weights(name: str, loaded: float) -> None:
    """To a tenth of a percent, which without them no count of parameters gives for all of these at once."""
    assert abs(size_of(name).lo / GIB - loaded) < 0.001 * loaded


def test_how_large_the_tables_are() -> None:
    llama = question(model="meta-llama/Llama-3.1-8B-Instruct").model
    assert rotary_bytes(llama) == 131_072 * 128 * 2
    seeing = question(model="Qwen/Qwen3-VL-Embedding-2B").model
    assert rotary_bytes(seeing) == 4 * 262_144 * 128 * 2  # a video counts more positions
    in_part = question(model="Qwen/Qwen3-Next-80B-A3B-Instruct").model
    assert rotary_bytes(in_part) == 262_144 * 64 * 2
    assert rotary_bytes(question(model="google/gemma-4-26B-A4B-it").model) == 262_144 * 256 * 2
    assert rotary_bytes(question(model="deepseek-ai/DeepSeek-V3").model) == 163_840 * 64 * 2
    assert rotary_bytes(question(model="nvidia/NVIDIA-Nemotron-3-Nano-4B-BF16").model) == 0  # knows no positions
    assert rotary_bytes(question(model="facebook/opt-13b").model) == 0  # learned them as weights
    assert rotary_bytes(replace(llama, max_position_embeddings=None)) == 0
    whole, half = weights_bytes(llama), weights_bytes(llama, tp=2)
    assert whole is not None and half is not None
    assert half.lo * 2 - whole.lo > 0.9 * rotary_bytes(llama)  # every rank has them


# --- KV dtypes -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["fp8", "fp8_e4m3", "fp8_ds_mla"])
def test_sparse_latents_in_8_bits_have_one_entry_whichever_way_they_are_asked_for(dtype: str) -> None:
    """502,016 tokens of 28.74 GiB on each of eight H20 (GLM-5.2): 78 x (656 + 132) bytes."""
    sparse = question(model="zai-org/GLM-5.2-FP8").model
    assert kv_bytes_per_token(sparse, kv_cache_dtype=dtype, version=23_000) == 78 * (656 + 132)
    assert kv_dtype(sparse, "bfloat16") == "bfloat16"
    dense = question(model="deepseek-ai/DeepSeek-V3").model
    assert kv_dtype(dense, dtype) == dtype
    other_width = replace(sparse, caches=tuple(replace(cache, latent_dim=512) for cache in sparse.caches))
    assert kv_dtype(other_width, "fp8") == "fp8"


def test_what_is_sparse() -> None:
    assert Cache(LATENT, latent_dim=576, index_dim=128).sparse and Cache(LATENT, early_index_dim=128).sparse
    assert not Cache(LATENT, latent_dim=576).sparse and not Cache(FULL, index_dim=128).sparse


def test_turboquant_to_the_logged_tokens() -> None:
    """283,392 tokens of 17.57 GiB (Qwen3-4B, 32 layers of 196 bytes a head and four of 512), and a hybrid without wide ends."""
    told = worksheet(
        question(
            model="Qwen/Qwen3-4B", engine_version="0.20.1", kv_cache_dtype="turboquant_k8v4", max_model_len=4096,
            max_num_seqs=4, enforce_eager=True, available_kv="17.57GiB",
        )
    )  # fmt: skip
    assert told.pool is not None and 283_392 in told.pool.tokens
    assert told.kv_bytes_per_token == 8 * (32 * 196 + 2 * WIDE_AT_EACH_END * 512)
    hybrid = question(model="Qwen/Qwen3.6-27B").model
    (layout,) = layouts(hybrid, kv_cache_dtype="turboquant_4bit_nc", version=20_000) or ()
    assert layout.block_tokens == 3072  # 23 x 3,072 are the 70,656 tokens of a start on one RTX 5090
    assert not any(cache.wide for stage in stage_caches(hybrid, kind="turboquant_k8v4") for cache in stage)


def test_bytes_of_turboquant() -> None:
    assert [pair_bytes(128, 128, name) for name in TURBOQUANT] == [196, 134, 118, 102]
    assert pair_bytes(96, 96, "turboquant_3bit_nc") == 78  # rounded up to even bytes
    assert head_bytes(128, "turboquant_k8v4") == 98
    assert is_kv_dtype("turboquant_4bit_nc") and not is_kv_dtype("turboquant")
    dense = question(model="Qwen/Qwen3-8B").model
    wide = [cache.wide for stage in stage_caches(dense, pp=2, kind="turboquant_k8v4") for cache in stage]
    assert wide == [True] * 2 + [False] * 32 + [True] * 2
    assert not any(cache.wide for stage in stage_caches(dense, kind="fp8") for cache in stage)


# --- planning figures ----------------------------------------------------------------------------------------------------------


def test_a_reranker_may_sample_and_an_embedding_model_does_not() -> None:
    """62.35 GiB of an RTX PRO 6000 at 0.85: the server reads scores off the next token, so its sampler was tried."""
    scoring, pooled, plain = (
        activation_bytes(question(model=name).model, batched_tokens=2048, max_num_seqs=1024, version=20_000)
        for name in ("Qwen/Qwen3-Reranker-8B", "Qwen/Qwen3-Embedding-8B", "Qwen/Qwen3-8B")
    )
    assert scoring.lo == pooled.lo < plain.lo and pooled.hi < scoring.hi == pytest.approx(plain.hi, rel=0.01)
    asked = question(
        model="Qwen/Qwen3-Reranker-8B", gpu="RTX PRO 6000 Blackwell", engine_version="any", gpu_memory_utilization=0.85, max_model_len=1024
    )  # fmt: skip
    available = judge(asked, asked.setup).available_bytes
    assert available is not None and 62.35 * GIB in available


def test_estimates_of_ranks_in_hosts_of_their_own() -> None:
    """Two GB10: 4.99 and 5.07 GiB taken off for graphs; one GB10, or two cards in one host, as elsewhere."""
    assert graph_bytes(estimated=True, tp=2, device="NVIDIA GB10").hi == MOVING_GRAPHS_GIB * GIB
    usual = graph_bytes(estimated=True)
    assert graph_bytes(estimated=True, device="NVIDIA GB10") == graph_bytes(estimated=True, tp=2, device="NVIDIA H100 80GB") == usual  # fmt: skip
    assert graph_bytes(tp=2, device="NVIDIA GB10") == graph_bytes() and graph_bytes(enforce_eager=True, estimated=True, tp=2, device="NVIDIA GB10").hi == 0  # fmt: skip
    one, two = non_torch_bytes(1, "NVIDIA GB10"), non_torch_bytes(2, "NVIDIA GB10")
    # 5.72 GiB on the second of two ranks, whose buffers of the network lie there as well; 3.2 at most on one
    assert 5.72 * GIB in two and 5.72 * GIB not in one and two.lo - one.lo == pytest.approx(0.1 * GIB)
    assert 5.07 * GIB in graph_bytes(estimated=True, tp=2, device="NVIDIA GB10")


def test_a_format_of_a_listed_copy_is_known() -> None:
    for name in ("Inferact/Qwen3.8-27B-NVFP4", "sakamakismile/Qwen3.8-27B-MTP-NVFP4", "nvidia/Qwen3.6-35B-A3B-NVFP4"):
        model = question(model=name).model
        assert model.quantization in FORMATS and model.copy_bytes, name
