"""The arithmetic against what engines printed: bytes per token exactly, pool tokens inside the rounding, weights to 1 %."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from oomdoc.physics.catalogue import find
from oomdoc.physics.expect import Expected, Known, expected
from oomdoc.physics.interval import Interval, point, printed
from oomdoc.physics.pool import pool_tokens
from oomdoc.physics.setup import Setup
from oomdoc.physics.weights import weights_bytes
from oomdoc.units import GIB


class Row(NamedTuple):
    """One published start: name as it is asked for, ranks, release, what was printed (GiB available, pool tokens)."""

    model: str
    available_gib: float
    tokens: int
    bytes_per_token: int
    version: int = 15_001
    tp: int = 1
    pp: int = 1
    kv: str = "auto"
    block: int = 16
    max_model_len: int = 32_768


PRINTED = [
    Row("Qwen/Qwen3-8B", 19.36, 140_960, 36 * 8 * 128 * 2 * 2, 19_000),
    Row("meta-llama/Llama-3.1-8B-Instruct", 5.29, 43_296, 131_072),
    Row("THUDM/glm-4-9b-chat", 63.82, 1_673_040, 40 * 2 * 128 * 2 * 2, 19_002),
    Row("Qwen/Qwen2.5-14B-Instruct", 41.43, 226_240, 196_608, 21_000),
    Row("Qwen/Qwen3-VL-2B-Instruct", 66.89, 626_240, 114_688),
    Row("Qwen/Qwen3-Reranker-0.6B", 3.52, 32_960, 114_688),
    Row("Qwen/Qwen2-7B-Instruct", 11.15, 417_520, 28_672, tp=2),
    Row("Qwen/Qwen3-32B", 33.66, 275_760, 131_072, tp=2),
    Row("meta-llama/Llama-3.1-70B-Instruct", 32.06, 420_208, 81_920, tp=4),
    Row("llama-3.3-70b-instruct-awq", 38.71, 126_832, 327_680, 14_000),
    Row("llama-3.3-70b-instruct-awq", 20.16, 132_128, 163_840, 14_000, tp=2),
    Row("llama-3.3-70b-instruct-fp8", 5.11, 33_504, 163_840, kv="fp8"),
    Row("Qwen3-VL-235B-A22B-Instruct-FP8", 9.71, 216_656, 94 * 1 * 128 * 2 * 2, tp=8),
    Row("Qwen3-VL-235B-A22B-Instruct-FP8", 9.73, 217_104, 48_128, tp=8),
    Row("Qwen3-VL-235B-A22B-Instruct-AWQ", 22.78, 508_192, 48_128, tp=8),
    Row("GLM-4.7-NVFP4", 31.99, 729_248, 92 * 2 * 128 * 2, tp=4, kv="fp8"),
    Row("deepseek-ai/DeepSeek-V3", 41.60, 635_648, 61 * 576 * 2, tp=8, block=64),
    Row("moonshotai/Kimi-K2-Thinking", 46.80, 715_072, 70_272, tp=8, block=64),
    Row("zai-org/GLM-5-FP8", 32.11, 344_192, 78 * (1152 + 132), tp=8, block=64),
    Row("zai-org/GLM-5-FP8", 34.86, 373_696, 100_152, tp=8, block=64),
    Row("openai/gpt-oss-120b", 5.38, 78_384, 36 * 8 * 64 * 2 * 2),
    Row("Qwen/Qwen2.5-7B-Instruct", 12.80, 14_984 * 16, 57_344, 6_006),
    Row("meta-llama/Meta-Llama-3-8B", 11.12, 5_691 * 16, 131_072, 6_006),
    Row("meta-llama/Llama-3.1-8B-Instruct", 4.60, 2_356 * 16, 131_072, 6_006),
    Row("Qwen/Qwen2.5-1.5B-Instruct", 2.36, 5_519 * 16, 28_672, 6_006),
    Row("Qwen/Qwen2.5-1.5B-Instruct", 15.52, 36_332 * 16, 28_672, 6_006),
    Row("Qwen/Qwen2.5-0.5B-Instruct", 16.09, 87_853 * 16, 12_288, 7_003),
    Row("meta-llama/Llama-3.2-3B-Instruct", 2.38, 1_395 * 16, 114_688, 7_003),
    Row("Qwen/Qwen3-0.6B", 11.10, 6_495 * 16, 114_688, 8_005),
    Row("deepseek-ai/DeepSeek-V2-Lite-Chat", 35.42, 5_373 * 16, 27 * 16 * 256 * 2 * 2, 6_003),
    Row("Qwen/Qwen3-30B-A3B", 76.15, 6_654_432, 24 * 1 * 128 * 2 * 2, tp=4, pp=2),
    Row("Qwen/Qwen3-0.6B", 47.39, 443_648, 114_688, block=128),
    Row("Qwen/Qwen3-8B", 6.03, 43_888, 147_456),
]


def judged(row: Row) -> Expected:
    found = find(row.model)
    assert found is not None
    setup = Setup(
        version=row.version,
        tensor_parallel_size=row.tp,
        pipeline_parallel_size=row.pp,
        kv_cache_dtype=row.kv,
        block_size=row.block,
        max_model_len=row.max_model_len,
        max_num_batched_tokens=2048,
    )
    return expected(found.model, setup, point(80 * GIB), known=Known(available_bytes=printed(row.available_gib * GIB)))


@pytest.mark.parametrize("row", PRINTED, ids=lambda row: f"{row.model}-tp{row.tp}-{row.available_gib}")
def test_bytes_per_token_are_exact_and_tokens_lie_in_the_printed_rounding(row: Row) -> None:
    result = judged(row)
    assert result.kv_bytes_per_token == row.bytes_per_token
    assert result.pool is not None
    assert row.tokens in result.pool.tokens
    # the interval says something: it is hardly wider than two digits of GiB allow
    width = 0.01 * GIB / result.pool.layouts[0].block_bytes + 1
    assert result.pool.blocks.hi - result.pool.blocks.lo <= width


def test_a_line_of_another_rank_is_told_apart() -> None:
    """Near miss: 8.11 GiB and 178,880 tokens do not belong together, another rank had the smaller pool."""
    result = judged(Row("Qwen/Qwen3-235B-A22B-FP8", 8.11, 178_880, 48_128, tp=4))
    assert result.pool is not None
    assert 178_880 not in result.pool.tokens
    assert result.pool.tokens.lo > 178_880


# --- hybrids: state pages, groups and both formulas of the printed tokens ------------------------------------------------


class Hybrid(NamedTuple):
    model: str
    kv: str
    available_gib: float | None
    blocks: int | None
    version: int
    max_model_len: int
    block: int
    page: int
    tokens: int
    concurrency: float


HYBRIDS = [
    Hybrid("Qwen/Qwen3.5-9B", "fp8", 4.24, None, 18_001, 16_384, 1056, 1056 * 2048, 68_640, 11.91),
    Hybrid("Qwen/Qwen3.5-27B", "fp8", 6.67, 139, 18_001, 32_768, 1568, 3_211_264, 53_312, 5.15),
    Hybrid("Qwen/Qwen3.5-27B", "auto", None, 469, 28_000, 4_096, 784, 3_211_264, 160_085, 39.08),
]


@pytest.mark.parametrize("row", HYBRIDS, ids=lambda row: f"{row.model}-{row.kv}-{row.version}")
def test_hybrids_give_the_logged_block_size_tokens_and_concurrency(row: Hybrid) -> None:
    found = find(row.model)
    assert found is not None
    setup = Setup(
        version=row.version,
        kv_cache_dtype=row.kv,
        max_model_len=row.max_model_len,
        max_num_batched_tokens=2048,
        enable_prefix_caching=True,
    )
    bytes_of_pool = (
        printed(row.available_gib * GIB) if row.available_gib else point((row.blocks or 0) * row.page * 16, "logged")
    )
    result = expected(found.model, setup, point(80 * GIB), known=Known(available_bytes=bytes_of_pool))
    assert result.pool is not None
    (layout,) = result.pool.layouts
    assert (layout.block_tokens, layout.page_bytes, len(layout.groups)) == (row.block, row.page, 4)
    assert row.tokens in result.pool.tokens
    assert Interval(row.concurrency - 0.005, row.concurrency + 0.005).overlaps(result.pool.concurrency)
    if row.blocks:
        assert result.pool.blocks.exact and result.pool.blocks.lo == row.blocks
        count = int(result.pool.blocks.lo)
        assert (
            pool_tokens(
                layout,
                count,
                need=result.pool.need_blocks,
                max_model_len=row.max_model_len,
                version=row.version,
            )
            == row.tokens
        )


def test_the_state_page_is_padded_by_the_logged_share() -> None:
    found = find("Qwen/Qwen3.5-27B")
    assert found is not None
    result = expected(
        found.model,
        Setup(version=18_001, kv_cache_dtype="fp8", max_model_len=4096),
        point(80 * GIB),
        known=Known(available_bytes=point(10 * GIB)),
    )
    assert result.pool is not None
    assert round(result.pool.layouts[0].padding * 100, 2) == 0.13


def test_what_one_request_needs_is_the_figure_of_the_refusal() -> None:
    """`To serve at least one request with the max seq len (131072), 20.0 GiB KV cache is needed`."""
    result = judged(Row("llama-3.3-70b-instruct-fp8", 5.11, 0, 0, kv="fp8", max_model_len=131_072))
    assert result.pool is not None
    assert result.pool.need_bytes == 20 * GIB
    assert (result.starts, result.refusal) == (False, "length")
    assert result.lacking_bytes is not None and 20 * GIB - 5.11 * GIB in result.lacking_bytes
    latent = judged(Row("deepseek-ai/DeepSeek-V2-Lite-Chat", 1.0, 0, 0, 7_003))
    assert latent.pool is not None
    assert latent.pool.need_bytes == 32_768 * 31_104
    assert round(latent.pool.need_bytes / GIB, 2) == 0.95


# --- weights --------------------------------------------------------------------------------------------------------------

LOADED = [
    ("Qwen/Qwen3-8B", 1, 15.27),
    ("meta-llama/Llama-3.1-8B-Instruct", 1, 14.99),
    ("meta-llama/Llama-3.1-8B-Instruct", 1, 14.96),
    ("THUDM/glm-4-9b-chat", 1, 17.56),
    ("Qwen/Qwen2-7B-Instruct", 2, 7.12),
    ("Qwen/Qwen2.5-7B-Instruct", 1, 14.27),
    ("Qwen/Qwen2.5-1.5B-Instruct", 1, 2.89),
    ("Qwen/Qwen2.5-1.5B-Instruct", 1, 2.88),
    ("llama-3.3-70b-instruct-awq", 1, 37.09),
    ("llama-3.3-70b-instruct-awq", 2, 18.55),
    ("llama-3.3-70b-instruct-fp8", 1, 67.7),
    ("GLM-4.7-NVFP4", 4, 47.11),
    ("deepseek-ai/DeepSeek-V3", 8, 79.74),
    ("deepseek-ai/DeepSeek-V2-Lite-Chat", 1, 29.30),
]


@pytest.mark.parametrize(("name", "tp", "gib"), LOADED)
def test_weights_agree_with_what_was_logged_to_one_percent(name: str, tp: int, gib: float) -> None:
    found = find(name)
    assert found is not None
    size = weights_bytes(found.model, quantization=found.format, tp=tp)
    assert size is not None
    middle = size.middle / GIB
    assert abs(middle / gib - 1) <= 0.01, (middle, gib)


def test_a_checkpoint_that_pads_on_loading_is_larger_than_its_files() -> None:
    """gpt-oss-20b loads as 13.72 GiB from 12.8 GiB of files."""
    found = find("openai/gpt-oss-20b")
    assert found is not None
    size = weights_bytes(found.model)
    assert size is not None
    assert 13.72 in Interval(size.lo / GIB, size.hi / GIB)
    assert size.lo > 12.8 * GIB
    assert "padded" in found.model.notes


def test_a_model_of_70b_in_four_bits_is_more_than_half_a_byte_each() -> None:
    """Near miss: parameters x 0.5 gives 32.9 GiB, an eighth too little: the vocabulary and the scales count."""
    found = find("llama-3.3-70b-instruct-awq")
    assert found is not None and found.model.params is not None
    size = weights_bytes(found.model, quantization="awq")
    assert size is not None
    assert found.model.params * 0.5 < 0.89 * size.lo
