"""LoRA slots: what `--enable-lora` allocates before any adapter is loaded.

As the layers of vllm/lora hold them: every slot of every linear layer has one matrix of `max_lora_rank` rows for what
goes in and one for what comes out, in the dtype of the model, allocated at the start. Measured with 0.26.0 on one rank:
30 slots of rank 256 beside Llama-3.1-8B took 41.36 GiB, 41.3 by the high end. With several ranks a column-wise layer shares
out only what comes out, a row-wise one only what goes in (`fully_sharded_loras` shares both; not counted); not measured.
Defaults: max_loras 1 and max_lora_rank 16.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from oomdoc.physics.architecture import Model
from oomdoc.physics.interval import Interval
from oomdoc.physics.weights import dtype_bytes

DEFAULT_SLOTS = 1
DEFAULT_RANK = 16


@dataclass(frozen=True)
class Adapters:
    """Slots that are held at once, and the rank that each has room for; `slots` 0: no adapters."""

    slots: int = 0
    rank: int = 0


NO_ADAPTERS = Adapters()


def read_adapters(flags: Mapping[str, object]) -> Adapters:
    """The slots of an engine's flags, in any spelling of a log or a command.

    >>> read_adapters({"enable_lora": "True", "max_loras": "8", "max_lora_rank": 64})
    Adapters(slots=8, rank=64)
    >>> read_adapters({"enable_lora": True}), read_adapters({"max_loras": 8}).slots
    (Adapters(slots=1, rank=16), 0)
    """
    if str(flags.get("enable_lora", "")).strip().lower() not in ("true", "1"):
        return NO_ADAPTERS
    return Adapters(_whole(flags.get("max_loras"), DEFAULT_SLOTS), _whole(flags.get("max_lora_rank"), DEFAULT_RANK))


def adapter_bytes(model: Model, adapters: Adapters, *, dtype: str = "auto", tp: int = 1) -> Interval | None:
    """Bytes of all slots on one rank; None where the layers of the model are not known, or are no plain decoder's.

    The low end counts attention and feed-forward of every layer, the high end the vocabulary's two layers as well, which
    some releases wrap and others do not. Slots of experts are not counted: None for such models.
    """
    cache = model.caches[0] if model.caches else None
    if not adapters.slots or cache is None or len(model.caches) > 1 or model.experts_per_token:
        return None
    hidden, inner = model.hidden_size, model.intermediate_size
    if not (hidden and inner and cache.kv_heads and cache.head_dim):
        return None
    queries, keys = model.heads * cache.head_dim, max(1, cache.kv_heads // tp) * cache.head_dim
    layer = (
        3 * hidden + queries / tp + 2 * keys  # Q, K and V in one
        + queries / tp + hidden  # the way out
        + 2 * hidden + 2 * inner / tp  # gate and up
        + inner / tp + hidden  # down
    )  # fmt: skip
    body = layer * model.layers
    ends = 2 * (hidden + (model.vocab_size or 0))
    each = adapters.slots * adapters.rank * dtype_bytes(model.dtype if dtype in ("auto", "") else dtype)
    return Interval(body * each, (body + ends) * each, "planning figure")


def _whole(value: object, default: int) -> int:
    text = str(value or "").strip()
    return int(text) if text.isdigit() and 0 < int(text) <= 65_536 else default
