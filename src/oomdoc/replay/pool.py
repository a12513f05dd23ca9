"""The KV pool that other flags would give: simple scaling of the pool that the engine printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from oomdoc.errors import UsageError
from oomdoc.replay.asked import blocks

_ONE_BYTE = ("fp8", "int8")  # KV formats of one byte a value; `auto`, bf16 and fp16 take two


@dataclass(frozen=True)
class Pool:
    """What is known of the pool of one rank; None = unknown. `available_bytes` are for KV, `total_bytes` the device's."""

    tokens: int
    block_size: int
    bytes_per_token: float | None = None
    available_bytes: float | None = None
    total_bytes: float | None = None
    utilization: float | None = None
    weights_bytes: float | None = None
    kv_dtype: str | None = None
    kv_heads: int | None = None
    tensor_parallel_size: int = 1


def pool_after(pool: Pool, changes: Mapping[str, Any]) -> Pool:
    """The pool under changed flags; UsageError where the bundle lacks what the change needs.

    utilization: available' = available + (util' - util) x total. KV dtype: one byte a value instead of two. Tensor
    parallelism: weights / TP per rank, KV heads / TP per rank and at least one. A size by hand beats them all.
    """
    for flag, value in changes.items():
        if flag == "gpu_memory_utilization":
            pool = _with_utilization(pool, float(value))
        elif flag == "kv_cache_dtype":
            pool = _with_dtype(pool, str(value))
        elif flag == "tensor_parallel_size":
            pool = _with_ranks(pool, int(value))
    if "kv_cache_memory_bytes" in changes:
        each = _known(pool.bytes_per_token, "kv_cache_memory_bytes", "the bytes of one token")
        pool = _sized(pool, float(changes["kv_cache_memory_bytes"]) / each)
    if "num_gpu_blocks_override" in changes:
        pool = replace(pool, tokens=int(changes["num_gpu_blocks_override"]) * pool.block_size)
    return pool


def _with_utilization(pool: Pool, utilization: float) -> Pool:
    flag = "gpu_memory_utilization"
    available = _known(pool.available_bytes, flag, "the bytes available for KV")
    total = _known(pool.total_bytes, flag, "the memory of the device")
    present = _known(pool.utilization, flag, "the present utilization")
    after = available + (utilization - present) * total
    if after <= 0:
        raise UsageError(
            f"gpu_memory_utilization {utilization:g} leaves nothing for KV: the engine would not start",
            "Choose a larger one",
        )
    return _sized(replace(pool, available_bytes=after, utilization=utilization), pool.tokens * after / available)


def _with_dtype(pool: Pool, dtype: str) -> Pool:
    factor = _value_bytes(dtype) / _value_bytes(pool.kv_dtype or "auto")
    each = None if pool.bytes_per_token is None else pool.bytes_per_token * factor
    return _sized(replace(pool, kv_dtype=dtype, bytes_per_token=each), pool.tokens / factor)


def _value_bytes(dtype: str) -> int:
    return 1 if dtype.lower().startswith(_ONE_BYTE) else 2


def _with_ranks(pool: Pool, ranks: int) -> Pool:
    flag = "tensor_parallel_size"
    heads = int(_known(pool.kv_heads, flag, "the number of KV heads (--model-config config.json tells it)"))
    weights = _known(pool.weights_bytes, flag, "the size of the weights")
    available = _known(pool.available_bytes, flag, "the bytes available for KV")
    before = pool.tensor_parallel_size
    each = max(1, heads // ranks) / max(1, heads // before)
    after = available + weights * (1 - before / ranks)
    if after <= 0:
        raise UsageError(f"tensor_parallel_size {ranks} leaves nothing for KV: the weights do not fit", "Choose more")
    grown = replace(
        pool, available_bytes=after, tensor_parallel_size=ranks, weights_bytes=weights * before / ranks,
        bytes_per_token=None if pool.bytes_per_token is None else pool.bytes_per_token * each,
    )  # fmt: skip
    return _sized(grown, pool.tokens * after / available / each)


def _sized(pool: Pool, tokens: float) -> Pool:
    return replace(pool, tokens=int(tokens) // pool.block_size * pool.block_size)


def _known(value: float | None, flag: str, what: str) -> float:
    if value is None or value <= 0:
        raise UsageError(
            f"what {flag} does to the pool cannot be computed, the bundle does not tell {what}",
            "Give the pool that it would have with --pool-tokens",
        )
    return value


def usable_blocks(pool: Pool, generation: str | None) -> int:
    """Blocks that requests can hold: V1 keeps one, the null block."""
    whole = blocks(pool.tokens - pool.block_size + 1, pool.block_size)
    return whole - (0 if generation == "V0" else 1)
