"""Bytes that one token keeps in the KV cache of one rank, by kind of attention, dtype, version and parallelism.

Sources: vllm/v1/kv_cache_interface.py (0.8 to 0.33), vllm/worker/cache_engine.py (V0), the MLA backends' page layouts.
"""

from __future__ import annotations

import math
from dataclasses import replace

from oomdoc.errors import UsageError
from oomdoc.physics.architecture import COMPRESSED, CROSS, ENCODER, LATENT, RECURRENT, UNKNOWN, Cache, Model
from oomdoc.physics.weights import dtype_bytes, stage_layers

SHARED_INDEXER_SINCE = 24_000  # layers without an indexer of their own keep no keys: not yet in 0.23.0, in 0.25.1
LATENT_SINCE = 7000  # 0.7.0: before, MLA models kept padded keys and values like any other
_PADDED_HEAD_DIM = 256
_SPARSE_ENTRY_BYTES = 656  # fp8_ds_mla: 512 B of 8-bit latent, 16 B of scales, 128 B of 16-bit rope
_SPARSE_LATENT = 576  # the only width that the kernels of that entry take (flashmla_sparse.py)
_CONV_BYTES = 2
COMPRESSED_BYTES, INDEX_BYTES, INDEXED_RATIO = 584, 132, 4
"""DeepSeek-V4: 448 B of 8-bit latent, 128 B of 16-bit rope and 8 B of scales; a key of its indexer (layers of that ratio alone)."""

TURBOQUANT = {
    "turboquant_k8v4": (8, 4),
    "turboquant_4bit_nc": (4, 4),
    "turboquant_k3v4_nc": (3, 4),
    "turboquant_3bit_nc": (3, 3),
}
"""Bits of an element of keys and of values (vllm/model_executor/layers/quantization/turboquant/config.py, 0.20 on): a key below 8
bits has a 2-byte norm, a value a 2-byte scale and zero, and what a head keeps is rounded up to even bytes."""

WIDE_AT_EACH_END = 2
"""First and last layers that TurboQuant leaves in 16 bits, where no layer keeps a state (same file, `get_boundary_skip_layers`)."""

_ELEMENT_BYTES = {"fp8": 1.0, "fp8_e4m3": 1.0, "fp8_e5m2": 1.0, "fp8_inc": 1.0, "fp8_ds_mla": 1.0, "int8": 1.0,
                  "bfloat16": 2.0, "float16": 2.0, "half": 2.0, "float": 4.0, "float32": 4.0}  # fmt: skip


def kv_dtype(model: Model, kv_cache_dtype: str = "auto", dtype: str = "auto") -> str:
    """The KV dtype in force: of `auto` the one that the checkpoint asks for, else the dtype of the model.

    Sparse latents in 8 bits have an entry of their own, `fp8_ds_mla`, whichever way 8 bits are asked for
    (vllm/model_executor/models/config.py, DeepseekV32ForCausalLM).
    """
    asked = model.kv_cache_scheme if model.kv_cache_scheme != "auto" else None
    own = asked or (model.dtype if dtype in ("auto", "") else dtype)
    kind = own if kv_cache_dtype in ("auto", "") else kv_cache_dtype
    if kind.startswith("fp8") and any(cache.sparse and cache.latent_dim == _SPARSE_LATENT for cache in model.caches):
        return "fp8_ds_mla"
    return kind


def head_bytes(head_dim: int, dtype: str) -> float:
    """Bytes of one head's K (or V) of one token. UsageError for a dtype that is not known.

    One byte per element for 8-bit dtypes; `*_per_token_head` adds a 4-byte scale per head; `nvfp4` is half a byte and a
    1-byte scale per 16 elements.

    >>> head_bytes(128, "bfloat16"), head_bytes(128, "fp8"), head_bytes(128, "nvfp4"), head_bytes(128, "int8_per_token_head")
    (256.0, 128.0, 72.0, 132.0)
    """
    name = dtype.lower()
    if name == "nvfp4":
        return head_dim / 2 + head_dim / 16
    if name.endswith("_per_token_head"):
        return head_dim * (0.5 if name.startswith("int4") else 1.0) + 4
    if name in _ELEMENT_BYTES:
        return head_dim * _ELEMENT_BYTES[name]
    if name in TURBOQUANT:
        return pair_bytes(head_dim, head_dim, name) / 2
    raise UsageError(
        f"the KV cache dtype '{dtype}' is not known",
        "Choose auto, bfloat16, float16, fp8, nvfp4 or turboquant_k8v4 and its kind",
    )


def pair_bytes(key_dim: int, value_dim: int, dtype: str) -> float:
    """Bytes of one head's K and V of one token.

    >>> pair_bytes(128, 128, "bfloat16"), pair_bytes(128, 128, "turboquant_k8v4"), pair_bytes(256, 256, "turboquant_4bit_nc")
    (512.0, 196, 262)
    """
    bits = TURBOQUANT.get(dtype.lower())
    if bits is None:
        return head_bytes(key_dim, dtype) + head_bytes(value_dim, dtype)
    key = key_dim if bits[0] == 8 else math.ceil(key_dim * bits[0] / 8) + 2
    size = key + math.ceil(value_dim * bits[1] / 8) + 4
    return size + size % 2


def is_kv_dtype(name: str) -> bool:
    """Whether `head_bytes` knows this dtype.

    >>> is_kv_dtype("fp8"), is_kv_dtype("fp3")
    (True, False)
    """
    return name in _ELEMENT_BYTES or name in TURBOQUANT or name == "nvfp4" or name.endswith("_per_token_head")


def token_bytes(cache: Cache, dtype: str, *, tp: int = 1, version: int | None = None) -> float | None:
    """Bytes of one token in one layer on one rank; 0 for caches that do not grow with the request, None for unknown ones.

    Keys and values: max(1, kv_heads // TP) x (D_k + D_v) x b, or as `pair_bytes` says. Latent: (kv_lora_rank + qk_rope_head_dim) x b on every
    rank, once; `fp8_ds_mla` 656 B. A sparse indexer adds index_head_dim + 4 x index_head_dim / 128 (of Qwen4: 2 x
    indexer_head_dim / indexer_compress_ratio). Before 0.7:
    2 x query heads / TP x 256 x b.
    """
    if cache.kind == UNKNOWN:
        return None
    if cache.kind in (RECURRENT, CROSS, ENCODER):
        return 0.0
    if cache.kind == COMPRESSED:
        return (
            (COMPRESSED_BYTES + (INDEX_BYTES if cache.ratio == INDEXED_RATIO else 0)) / cache.ratio
            if cache.ratio
            else 0.0
        )
    if cache.kind != LATENT:
        heads = max(1, cache.kv_heads // tp)
        kept = "bfloat16" if cache.wide else dtype
        return heads * pair_bytes(cache.head_dim, cache.v_head_dim, kept) + cache.side_bytes
    if version is not None and version < LATENT_SINCE:
        padded = max(_PADDED_HEAD_DIM, cache.query_head_dim)
        return 2 * max(1, cache.query_heads // tp) * head_bytes(padded, dtype)
    entry = _SPARSE_ENTRY_BYTES if dtype == "fp8_ds_mla" else head_bytes(cache.latent_dim, dtype)
    early = version is not None and version < SHARED_INDEXER_SINCE
    dim = cache.index_dim or (cache.early_index_dim if early else 0)
    index = dim + 4 * dim / 128
    return entry + index + cache.side_bytes


def state_bytes(cache: Cache, *, tp: int = 1, draft_tokens: int = 0) -> int | None:
    """Recurrent state of one request in one layer on one rank; 0 for other kinds, None where its size is not known.

    State elements / TP in the width that the config states, convolution elements / TP in 16 bits; speculation keeps one
    more step of the convolution per draft token.
    """
    if cache.kind != RECURRENT:
        return 0
    if cache.state_elements is None:
        return None
    conv = (cache.conv_elements + draft_tokens * cache.conv_width) // tp
    return cache.state_elements // tp * cache.state_bytes_each + conv * _CONV_BYTES


def stage_caches(
    model: Model, pp: int = 1, version: int | None = None, kind: str = ""
) -> tuple[tuple[Cache, ...], ...]:
    """The caches of the layers of each pipeline stage, in the order of the layers; layers without a cache are left out.

    `kind` is the KV dtype, for some leave the layers at each end in 16 bits.
    """
    ends = WIDE_AT_EACH_END if kind.lower() in TURBOQUANT and not model.recurrent else 0
    stages, start = [], 0
    for count in stage_layers(model.layers, pp, version):
        places = range(start, start + count)
        stages.append(
            tuple(
                replace(model.caches[index], wide=True)
                if ends > place or place >= model.layers - ends
                else model.caches[index]
                for place in places
                if (index := model.pattern[place]) >= 0
            )
        )
        start += count
    return tuple(stages)


def kv_bytes_per_token(
    model: Model,
    *,
    kv_cache_dtype: str = "auto",
    dtype: str = "auto",
    tp: int = 1,
    pp: int = 1,
    dcp: int = 1,
    version: int | None = None,
    growing: bool = False,
) -> float | None:
    """Bytes per token of all attention layers of the fullest stage, per rank; None where a cache is not known.

    `growing` leaves out layers with a window, whose cache stops growing. Decode context parallelism splits the
    positions over `dcp` ranks.
    """
    kind = kv_dtype(model, kv_cache_dtype, dtype)
    most = 0.0
    of_kind: dict[int, float | None] = {}  # a hundred layers have two or three kinds of cache
    for stage in stage_caches(model, pp, version, kind):
        each = []
        for cache in stage:
            if growing and cache.window:
                continue
            if id(cache) not in of_kind:
                of_kind[id(cache)] = token_bytes(cache, kind, tp=tp, version=version)
            size = of_kind[id(cache)]
            if size is None:
                return None
            each.append(size)
        most = max(most, math.fsum(each))
    return most / dcp


def model_dtype_bytes(model: Model, dtype: str = "auto") -> float:
    """Bytes per element of activations."""
    return dtype_bytes(model.dtype if dtype in ("auto", "") else dtype)
