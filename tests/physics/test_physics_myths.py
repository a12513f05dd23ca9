"""Figures and rules in circulation that are wrong, each held against what is computed here."""

from __future__ import annotations

from typing import Any

import pytest

from oomdoc.physics.catalogue import find
from oomdoc.physics.expect import Known, expected
from oomdoc.physics.gpus import find_gpu
from oomdoc.physics.interval import point
from oomdoc.physics.kv import kv_bytes_per_token
from oomdoc.physics.pool import layouts
from oomdoc.physics.rotary import rotary_bytes
from oomdoc.physics.setup import Setup
from oomdoc.physics.weights import weights_bytes
from oomdoc.units import GIB


def model(name: str) -> Any:
    found = find(name)
    assert found is not None
    return found.model


@pytest.mark.parametrize(
    ("name", "truth", "told"),
    [
        ("meta-llama/Llama-3.1-70B-Instruct", 327_680, 2_621_440),  # counts 64 query heads instead of 8 KV heads
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", 131_072, 2_000_000),
        ("meta-llama/Llama-2-13b-hf", 819_200, 1_000_000),
        ("meta-llama/Meta-Llama-3-8B", 131_072, 524_288),  # true of Llama 2 only
        ("meta-llama/Llama-2-7b-hf", 524_288, 131_072),
    ],
)
def test_bytes_per_token_count_kv_heads(name: str, truth: int, told: int) -> None:
    assert kv_bytes_per_token(model(name)) == truth != told


def test_eighty_thousand_tokens_of_a_70b_are_25_gib_and_not_200() -> None:
    llama = model("meta-llama/Llama-3.1-70B-Instruct")
    assert (kv_bytes_per_token(llama) or 0) * 8192 * 10 == 25 * GIB
    assert (kv_bytes_per_token(llama, tp=4) or 0) * 8192 * 10 == 6.25 * GIB


def test_tensor_parallelism_divides_the_cache_down_to_one_head() -> None:
    llama, qwen = model("meta-llama/Llama-3.1-70B-Instruct"), model("Qwen/Qwen3-235B-A22B")
    assert [kv_bytes_per_token(llama, tp=tp) for tp in (1, 2, 4, 8, 16)] == [327_680, 163_840, 81_920, 40_960, 40_960]
    assert [kv_bytes_per_token(qwen, tp=tp) for tp in (4, 8)] == [48_128, 48_128]


def test_latents_are_not_divided_at_all() -> None:
    assert [kv_bytes_per_token(model("deepseek-ai/DeepSeek-V3"), tp=tp) for tp in (1, 8)] == [70_272, 70_272]


def test_lower_utilization_shrinks_the_pool() -> None:
    sizes = []
    for utilization in (0.85, 0.9, 0.95):
        result = expected(
            model("Qwen/Qwen3-8B"), Setup(version=11_000, gpu_memory_utilization=utilization), point(40 * GIB)
        )
        assert result.pool is not None
        sizes.append((result.pool.tokens.lo, result.pool.tokens.hi))
    assert sizes == sorted(sizes)
    assert sizes[0][0] < sizes[1][0] < sizes[2][0]


def test_gb_are_no_gib() -> None:
    llama = model("meta-llama/Llama-3.1-70B-Instruct")
    size = weights_bytes(llama)
    assert size is not None
    assert round(llama.params * 2 / 1e9, 1) == 141.1
    assert round(llama.params * 2 / GIB, 1) == 131.4
    assert size.lo == llama.params * 2 + rotary_bytes(llama)
    assert find_gpu("H100").total_bytes.hi < 80 * GIB  # an "80 GB" card is not 80 GiB
    assert find_gpu("80GB").total_bytes.hi < find_gpu("H100").total_bytes.lo


def test_a_72b_on_four_80_gb_cards_starts() -> None:
    result = expected(
        model("Qwen/Qwen2-72B-Instruct"),
        Setup(version=6_006, tensor_parallel_size=4, max_model_len=32_768),
        find_gpu("A100-80GB").total_bytes,
    )
    assert result.starts is True
    assert result.weights_bytes is not None and round(result.weights_bytes.lo / GIB, 1) == 33.9


def test_block_size_changes_the_rounding_and_not_the_capacity() -> None:
    pools = []
    for size in (16, 32, 128):
        result = expected(
            model("Qwen/Qwen3-8B"),
            Setup(version=11_000, block_size=size),
            point(40 * GIB),
            known=Known(available_bytes=point(10 * GIB)),
        )
        assert result.pool is not None
        pools.append(result.pool.tokens.lo)
    assert max(pools) - min(pools) < 128


def test_length_and_sequences_do_not_make_the_pool() -> None:
    """They bound scheduling: the pool of a V1 engine is the same whatever max_model_len is."""
    held = {
        expected(
            model("Qwen/Qwen3-8B"),
            Setup(version=11_000, max_model_len=length, max_num_seqs=seqs),
            point(40 * GIB),
            known=Known(available_bytes=point(10 * GIB)),
        ).pool.blocks.lo  # type: ignore[union-attr]
        for length in (2048, 8192)
        for seqs in (8, 256)
    }
    assert len(held) == 1


def test_any_block_serves_any_request() -> None:
    """No contiguity: capacity is a count of blocks, and a sequence wastes less than one of them."""
    (layout,) = layouts(model("meta-llama/Llama-3.1-8B-Instruct")) or ()
    assert layout.block_bytes == 16 * 131_072
    assert layout.block_bytes * 15 // 16 == 1_966_080  # 17 tokens: the second block is fifteen sixteenths empty


def test_four_bits_are_no_half_byte() -> None:
    llama = model("meta-llama/Llama-3.3-70B-Instruct")
    size = weights_bytes(llama, quantization="awq")
    assert size is not None and size.lo > llama.params * 0.5 * 1.12


def test_the_planned_pool_of_the_70b_on_four_h100_holds_the_published_one() -> None:
    """32.06 GiB and 420,208 tokens per GPU were logged."""
    result = expected(
        model("meta-llama/Llama-3.1-70B-Instruct"),
        Setup(version=11_000, tensor_parallel_size=4),
        find_gpu("H100").total_bytes,
        device="H100",
    )
    assert result.pool is not None and result.available_bytes is not None
    assert 32.06 * GIB in result.available_bytes
    assert 420_208 in result.pool.tokens
