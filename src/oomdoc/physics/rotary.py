"""Tables of positions: sines and cosines that rotary attention looks up, on the device beside the weights."""

from __future__ import annotations

from oomdoc.physics.architecture import Model
from oomdoc.regexes import regex

_TURNED = (
    ("qwen3_next", 0.25), ("qwen3_5", 0.25), ("qwen4", 0.25), ("glm4", 0.5), ("chatglm", 0.5), ("minimax_m", 0.5), ("mimo_v2", 1 / 3),
    ("stablelm", 0.25), ("gpt_neox", 0.25), ("gptj", 0.25), ("gpt2", 0.0), ("gpt_bigcode", 0.0), ("opt", 0.0), ("whisper", 0.0),
    ("bloom", 0.0), ("mpt", 0.0),
)  # fmt: skip
"""Share of a head that is turned by its position, by the family's first letters (`partial_rotary_factor`, `rotary_dim` and
`rotary_pct` of their configs; none where positions are learned, and so weights, or a slope on the scores); all of it elsewhere."""

_SEEN_POSITIONS = 4
"""How many times its positions a model that sees has in its tables, for a video counts more of them
(vllm/model_executor/layers/rotary_embedding/mrope.py)."""

_LATENT_TURNED = 64  # `qk_rope_head_dim` of every config with latents that was read
_IN_THREE_WAYS = regex(r"qwen\d(_\d)?_(vl|omni)|qwen3_5|qwen4")  # their positions have three parts: time, height, width


def rotary_bytes(model: Model) -> float:
    """Tables of sines and cosines on every rank, which no checkpoint holds and "Model loading took" counts.

    Positions x turned dimensions x 2 bytes (vllm/model_executor/layers/rotary_embedding): 0.031 GiB of Llama-3.1-8B (14.958
    counted, 14.989 logged), 0.25 of Qwen3-VL-Embedding-2B (3.205 and 3.455). Of heads of two widths the narrower ones, for
    the others turn in part (Gemma 4). Nothing where the positions are not known, and of state-space hybrids, whose
    attention knows no positions.
    """
    turned = model.family.startswith("qwen") or not model.recurrent
    positions = (model.max_position_embeddings or 0) if turned else 0
    heads = [cache.head_dim for cache in model.caches if cache.head_dim]
    width = min(heads, default=_LATENT_TURNED if model.latent else 0)
    share = next((part for family, part in _TURNED if model.family.startswith(family)), 1.0)
    times = _SEEN_POSITIONS if model.multimodal and _IN_THREE_WAYS.match(model.family) else 1
    return positions * times * width * share * 2
