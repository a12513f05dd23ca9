"""The block pool: layers in groups, bytes in blocks, blocks in tokens and requests.

Sources: vllm/v1/core/kv_cache_utils.py and single_type_kv_cache_manager.py (0.9.2 to 0.33), vllm/worker/worker.py (V0).
Whole numbers are computed exactly as the engine does, so that a logged "Available KV cache memory" gives the logged
blocks; a printed size is an interval, and so is what follows from it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from oomdoc.physics.architecture import (
    CHUNKED,
    COMPRESSED,
    CROSS,
    ENCODER,
    FULL,
    LATENT,
    RECURRENT,
    SLIDING,
    Cache,
    Model,
)
from oomdoc.physics.interval import Interval
from oomdoc.physics.kv import (
    COMPRESSED_BYTES,
    INDEX_BYTES,
    INDEXED_RATIO,
    kv_dtype,
    stage_caches,
    state_bytes,
    token_bytes,
)

HYBRID_SINCE = 9_002  # 0.9.2: one pool for groups of layers; before, every layer counts as full attention
BLOCKS_LINE_UNTIL = 20_000  # _report_kv_cache_config of 0.20.0 prints blocks // groups x block tokens, that of 0.20.1 concurrency x max_model_len
DEFAULT_BLOCK_TOKENS = 16


@dataclass(frozen=True)
class Group:
    """Layers that take their blocks together: `layers` real ones of one cache, `block_tokens` tokens in a block.

    `share` is the bytes of one of its blocks / those of the first group, where groups differ (DeepSeek-V4).
    """

    cache: Cache
    layers: int
    block_tokens: int
    share: float = 1.0


@dataclass(frozen=True)
class Layout:
    """How one stage's layers share the pool.

    A block is `page_bytes` in each of `tensors` layers. Uniform models have one group of all layers. `padding` is the
    share by which a recurrent state was padded to an attention page. `checked_bytes` is what the start-up check counts for a
    block of any group, where that differs from a block's bytes.
    """

    groups: tuple[Group, ...]
    tensors: int
    page_bytes: int
    block_tokens: int
    padding: float = 0.0
    checked_bytes: int | None = None

    @property
    def block_bytes(self) -> int:
        """Bytes of one block on this rank."""
        return self.page_bytes * self.tensors


def layouts(
    model: Model,
    *,
    kv_cache_dtype: str = "auto",
    dtype: str = "auto",
    tp: int = 1,
    pp: int = 1,
    version: int | None = None,
    block_tokens: int | None = None,
    hybrid_manager: bool = True,
    draft: Sequence[Cache] = (),
    draft_tokens: int = 0,
    every_state: bool = False,
) -> tuple[Layout, ...] | None:
    """The layout of each pipeline stage; None where a cache of the model is not known, or its pages do not divide.

    `draft` are the caches of layers for speculation, which stand on the last stage; `draft_tokens` are proposed per step.
    `every_state`: a recurrent state is kept at every block, whose tokens are then whole chunks of the state-space kernel.
    """
    kind = kv_dtype(model, kv_cache_dtype, dtype)
    hybrid = hybrid_manager and (version is None or version >= HYBRID_SINCE)
    found = []
    stages = stage_caches(model, pp, version, kind)
    for place, stage in enumerate(stages):
        own = (*stage, *draft) if place == len(stages) - 1 else stage
        tokens = block_tokens or default_block_tokens(model, version)
        layout = _layout(own, kind, tp, version, tokens, hybrid, draft_tokens, _chunk(model) if every_state else 1)
        if layout is None:
            return None
        found.append(layout)
    return tuple(found)


def default_block_tokens(model: Model, version: int | None = None) -> int:
    """16; 64 where the engine keeps latents (FlashMLA's page on the cards that serve such models), 256 where it compresses them."""
    if any(cache.kind == COMPRESSED for cache in model.caches):
        return 256
    return 64 if model.latent and (version is None or version >= 7000) else DEFAULT_BLOCK_TOKENS


def _layout(
    stage: Sequence[Cache],
    kind: str,
    tp: int,
    version: int | None,
    block_tokens: int,
    hybrid: bool,
    draft_tokens: int = 0,
    chunk: int = 1,
) -> Layout | None:
    own = [cache for cache in stage if cache.kind not in (CROSS, ENCODER)]
    if own and all(cache.kind == COMPRESSED for cache in own):
        return _compressed_layout(own, block_tokens)
    sizes = {cache: token_bytes(cache, kind, tp=tp, version=version) for cache in dict.fromkeys(own)}
    if not own or any(size is None or (size <= 0 and cache.kind != RECURRENT) for cache, size in sizes.items()):
        return None
    recurrent = [cache for cache in own if cache.kind == RECURRENT]
    attention = [cache for cache in own if cache.kind != RECURRENT]
    if recurrent and (not attention or not hybrid):
        return None
    if not recurrent and (not hybrid or len({cache.kind for cache in own}) == 1):
        page = sum((sizes[cache] or 0) for cache in own)
        first = own[0] if hybrid or own[0].kind == LATENT else replace(own[0], kind=FULL, window=None)
        return Layout((Group(first, len(own), block_tokens),), 1, round(page * block_tokens), block_tokens)
    padding = 0.0
    if recurrent:
        states = [state_bytes(cache, tp=tp, draft_tokens=draft_tokens) for cache in recurrent]
        if any(state is None for state in states):
            return None
        state = max(state or 0 for state in states)
        per_token = max(sizes[cache] or 0 for cache in attention)
        # the attention page grows, in steps of the tokens that its kernel takes, until a state fits into it
        step = _STEP
        if any(cache.kind == LATENT for cache in attention):
            step = _POOLED_STEP if any(cache.side_bytes for cache in attention) else _LATENT_STEP
        step = math.lcm(step, chunk)
        block_tokens = max(block_tokens, math.ceil(state / per_token / step) * step)
        padding = per_token * block_tokens / state - 1
    page = max((sizes[cache] or 0) for cache in attention) * block_tokens
    groups = _groups(own, sizes, page, block_tokens)
    if groups is None:
        return None
    tensors = max(group.layers for group in groups)
    return Layout(tuple(groups), tensors, round(page), min(group.block_tokens for group in groups), padding)


_STEP, _LATENT_STEP, _POOLED_STEP = 16, 64, 128
_CHUNKS = {
    "nemotron_h": 128,
    "jamba": 2048,
    "mamba": 256,
}  # `chunk_size` of their configs; without one the engine takes 2,048


def _chunk(model: Model) -> int:
    """Tokens that the kernel of a state-space layer takes at once."""
    return next((size for family, size in _CHUNKS.items() if model.family.startswith(family)), 256)


_PAGE = 576  # FlashMLA wants pages that this divides
_WINDOW_BLOCK = 64  # tokens in a block of the windows, so that its page is that of compressed entries of 256 tokens
_STATE_BLOCKS = {4: (4, 8), 128: (8, 128)}  # ratio -> tokens in a block of the compressor's state, and its window


def _compressed_layout(own: Sequence[Cache], block_tokens: int) -> Layout:
    """DeepSeek-V4 (vllm/v1/core/kv_cache_utils.py and models/deepseek_v4, 0.23): five groups of unlike pages.

    The first has the compressed entries of all layers and the indexer's keys; windows are split so that no group has more
    layers than wastes least; compressors keep the last tokens uncompressed, in pages padded to those of the entries. The
    pool holds for each kind of page as many layers as the largest group has; the start-up check counts every block as if
    it had that many of every kind, concurrency counts what each group really takes.
    """
    count = {ratio: sum(cache.ratio == ratio for cache in own) for ratio in (4, 128)}
    entries = {ratio: _aligned(block_tokens // ratio * COMPRESSED_BYTES) for ratio in count}
    index = _aligned(block_tokens // INDEXED_RATIO * INDEX_BYTES)
    wide = max(entries[4], _aligned(_WINDOW_BLOCK * COMPRESSED_BYTES))
    first = count[4] * (entries[4] + index) + count[128] * entries[128]
    least = max(count.values())
    sizes = [least, len(own), *(each for each in count.values() if each)]
    together = min(range(least, max(sizes) + 1), key=lambda size: (sum(-each % size for each in sizes), -size))
    window = own[0].window or 1
    groups = [Group(Cache(FULL), least, block_tokens)]
    parts = -(-len(own) // together)
    for place in range(parts):
        layers = len(own[place::parts])
        groups.append(Group(Cache(SLIDING, window=window), layers, _WINDOW_BLOCK, layers * wide / first))
    for ratio, (tokens, kept) in _STATE_BLOCKS.items():
        if count[ratio]:
            size = count[ratio] * (wide + (index if ratio == INDEXED_RATIO else 0))
            groups.append(Group(Cache(SLIDING, window=kept), count[ratio], tokens, size / first))
    most = max(group.layers for group in groups)
    widest = max(count[4], count[128], *(group.layers for group in groups[1:]))
    block = widest * wide + count[4] * index + count[128] * entries[128]
    return Layout(tuple(groups), 1, block, block_tokens, 0.0, most * (wide + index + entries[128]))


def _aligned(size: int) -> int:
    return -(-size // _PAGE) * _PAGE


def _groups(
    own: Sequence[Cache], sizes: dict[Cache, float | None], page: float, block_tokens: int
) -> list[Group] | None:
    """Groups of equal size: that of the smallest kind, or of the largest where that is less than 1.5 times as large."""
    counts: dict[Cache, int] = {}
    for cache in own:
        counts[cache] = counts.get(cache, 0) + 1
    least, most = min(counts.values()), max(counts.values())
    size = most if most < 1.5 * least else least
    groups = []
    for cache, count in counts.items():
        tokens = block_tokens
        if cache.kind != RECURRENT:
            # a narrower layer takes more tokens into a page of the same bytes
            ratio = page / ((sizes[cache] or 0) * block_tokens)
            if not math.isclose(ratio, round(ratio)):
                return None
            tokens = block_tokens * round(ratio)
        full, left = divmod(count, size)
        number = full + (1 if left else 0)
        # layers are dealt out evenly; the last group is filled up with padding
        groups += [Group(cache, size, tokens) for _ in range(number)]
    return groups


def request_blocks(
    layout: Layout,
    tokens: int,
    *,
    batched_tokens: int,
    prefix_caching: bool = True,
    every_state: bool = False,
    draft_tokens: int = 0,
    checked: bool = False,
) -> int:
    """Blocks that one request of so many tokens holds, over all groups.

    Full: ceil(n / block). Sliding: ceil(min(window - 1 + batched, n) / block) + 1. Chunked: ceil(min(chunk + batched, n)
    / block). Recurrent: 1, and 2 with prefix caching (a copy at the last block boundary), or one at each block where
    `every_state` is kept, and one per draft token.
    `checked`: as the start-up check counts them.
    """
    need = 0.0
    for group in layout.groups:
        window = group.cache.window or tokens
        if group.cache.kind == RECURRENT:
            count = _ceil(tokens, group.block_tokens) if every_state else 2 if prefix_caching else 1
            count += draft_tokens
        elif group.cache.kind == SLIDING:
            count = _ceil(min(window - 1 + batched_tokens, tokens), group.block_tokens) + 1
        elif group.cache.kind == CHUNKED:
            count = _ceil(min(window + batched_tokens, tokens), group.block_tokens)
        else:
            count = _ceil(tokens, group.block_tokens)
        need += count * (layout.checked_bytes / layout.block_bytes if checked and layout.checked_bytes else group.share)
    return math.ceil(need)


def _ceil(tokens: int, block_tokens: int) -> int:
    return -(-tokens // block_tokens)


def blocks(layout: Layout, available_bytes: Interval) -> Interval:
    """Blocks of the pool on this rank: floor(available / block bytes); none below zero."""
    return (available_bytes / layout.block_bytes).floor().at_least(0)


def pool_tokens(
    layout: Layout,
    block_count: int,
    *,
    need: int,
    max_model_len: int,
    version: int | None = None,
    dcp: int = 1,
    prefix_caching: bool = True,
) -> int:
    """The tokens that the engine prints for so many blocks; `need` is what a request of `max_model_len` takes.

    Until 0.20.0: blocks // groups x block tokens x DCP; from 0.20.1 on int(blocks / need x max_model_len), where need and
    length speak of all ranks already. Without `prefix_caching` the block of a recurrent state is said to hold `max_model_len` tokens, and the least of the groups counts.
    """
    if version is None or version > BLOCKS_LINE_UNTIL:
        return int(block_count / need * max_model_len) if need else 0
    each = layout.block_tokens
    if not prefix_caching and any(group.cache.kind == RECURRENT for group in layout.groups):
        each = min(each, max_model_len)
    return block_count // len(layout.groups) * each * dcp


def longest_request(
    layout: Layout,
    block_count: int,
    *,
    batched_tokens: int,
    prefix_caching: bool = True,
    every_state: bool = False,
    draft_tokens: int = 0,
    most: int = 1 << 24,
) -> int:
    """Tokens of the longest request that so many blocks hold; 0 where not even one token fits. At most `most`."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        need = request_blocks(
            layout,
            middle,
            batched_tokens=batched_tokens,
            prefix_caching=prefix_caching,
            every_state=every_state,
            draft_tokens=draft_tokens,
            checked=True,
        )
        if need <= block_count:
            low = middle
        else:
            high = middle - 1
    return low
