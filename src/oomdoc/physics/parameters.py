"""Parameters of a decoder, counted from its config.json by how they are shared out and what quantising leaves alone.

Formulas are those of the families' model files; the totals are the published ones to the unit for plain families and to
a percent where a config leaves small tensors unsaid (`tests/physics/test_physics_catalogue.py` holds both).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oomdoc.physics.architecture import Parameters

Config = Mapping[str, Any]


@dataclass(frozen=True)
class _Shape:
    """How a family's decoder layer is built, beyond what its config says: biases, norms, tying.

    `qk_norm` is `head` (one norm of head_dim for Q and one for K) or `full` (over all heads); `norms` per layer;
    `matrices` of a feed-forward block or an expert: 3 with a gate, 2 without.
    """

    bias: bool = False
    qk_norm: str = ""
    norms: int = 2
    tied: bool = False
    matrices: int = 3


_PLAIN, _BIAS, _NORMED = _Shape(), _Shape(bias=True), _Shape(qk_norm="head")
_GEMMA = _Shape(qk_norm="head", norms=4, tied=True)

# Families that are counted: attention of any kind known here, then a feed-forward block or experts.
_SHAPES: Mapping[str, _Shape] = {
    "llama": _PLAIN, "mistral": _PLAIN, "mistral3": _PLAIN, "ministral3": _PLAIN, "mixtral": _PLAIN, "internlm2": _PLAIN,
    "internlm3": _PLAIN, "phi3": _PLAIN, "granite": _PLAIN, "granitemoe": _PLAIN, "llama4_text": _PLAIN, "seed_oss": _BIAS,
    "smollm3": _PLAIN, "exaone": _PLAIN, "aquila": _PLAIN, "ernie4_5": _PLAIN, "ernie4_5_moe": _PLAIN, "apertus": _Shape(qk_norm="head", matrices=2),
    "qwen2": _BIAS, "qwen2_moe": _BIAS, "qwen2_vl": _BIAS, "qwen2_5_vl": _BIAS, "qwen2_5_vl_text": _BIAS, "qwen2_vl_text": _BIAS,
    "qwen3": _NORMED, "qwen3_moe": _NORMED, "qwen3_vl_text": _NORMED, "qwen3_vl_moe_text": _NORMED,
    "qwen3_next": _NORMED, "qwen3_5": _NORMED, "qwen3_5_text": _NORMED, "qwen3_5_moe": _NORMED, "qwen3_5_moe_text": _NORMED, "qwen4_exp": _NORMED, "qwen4_exp_text": _NORMED,
    "olmo2": _Shape(qk_norm="full"), "olmo3": _Shape(qk_norm="full"), "olmoe": _Shape(qk_norm="full"), "hunyuan_v1_dense": _NORMED,
    "gemma": _Shape(tied=True), "gemma2": _Shape(norms=4, tied=True), "gemma3": _GEMMA, "gemma3_text": _GEMMA, "gemma4_text": _GEMMA,
    "cohere": _Shape(norms=1, tied=True), "cohere2": _Shape(norms=1, tied=True), "glm4": _Shape(norms=4),
    "glm4_moe": _PLAIN, "solar_open": _PLAIN, "glm4v_moe_text": _PLAIN, "gpt_oss": _BIAS, "minimax_m2": _Shape(qk_norm="full"),
    "mimo": _BIAS, "mimo_v2_flash": _PLAIN, "mimo_v2": _PLAIN, "step3p7": _NORMED, "step3p5": _NORMED,
    "starcoder2": _Shape(bias=True, matrices=2, tied=True), "nemotron_h": _Shape(norms=1, matrices=2), "nemotron": _Shape(matrices=2),
    "granitemoehybrid": _PLAIN, "bailing_moe": _PLAIN, "bailing_moe_v2": _NORMED, "dots1": _NORMED,
    "deepseek_v2": _PLAIN, "deepseek_v3": _PLAIN, "deepseek_v32": _PLAIN, "kimi_k2": _PLAIN, "glm_moe_dsa": _PLAIN,
    "minimax_m3": _NORMED, "mistral_large_3": _PLAIN, "longcat_flash": _PLAIN, "laguna": _NORMED,
}  # fmt: skip

_GATED = ("qwen3_next", "qwen4_exp")  # a gate as wide as the queries, whether or not the config says so
_ROUTER_BIAS = {"deepseek_v3", "deepseek_v32", "kimi_k2", "glm_moe_dsa", "minimax_m2", "nemotron_h"}
FAMILIES = tuple(_SHAPES)
"""Values of `model_type` whose layers are known."""


@dataclass
class _Sums:
    """Running counts; `attention` and `shared` are parts of `rest`, `linear` is one of `attention`."""

    kv: int = 0
    replicated: int = 0
    small: int = 0
    experts: int = 0
    rest: int = 0
    absorbed: int = 0
    attention: int = 0
    shared: int = 0
    folded: int = 0
    entry: int = 0
    linear: int = 0


def integer(config: Config, *keys: str) -> int | None:
    """The first of these keys that holds a whole number above 0."""
    for key in keys:
        value = config.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def kv_heads_of(text: Config, heads: int) -> int:
    """KV heads of the full attention layers, by whichever key a family names them."""
    attention = text.get("attn_config")
    if isinstance(attention, dict) and (found := integer(attention, "kv_n_heads")):  # DBRX
        return found
    if text.get("multi_query_attention") is True:  # ChatGLM
        return integer(text, "multi_query_group_num") or 1
    if text.get("multi_query") is True and not text.get("new_decoder_architecture"):  # Falcon 7B
        return 1
    return integer(text, "num_key_value_heads", "num_kv_heads", "n_head_kv", "num_key_value_head") or heads


def count_parameters(
    text: Config, family: str, names: Sequence[str], hidden: int, heads: int, tied: bool | None = None
) -> Parameters | None:
    """Parameters of a family whose layers are known; None for any other, and where a size is missing.

    `names` are the kinds of the layers (`full`, `sliding`, `recurrent`, ...). Vocabulary: vocab x hidden, twice unless
    tied. Attention: hidden x (q + 2 kv) x head_dim + q x head_dim x hidden. Feed-forward: 3 x hidden x intermediate (2
    without a gate). Experts: count x 3 x hidden x moe_intermediate, the router count x hidden.
    """
    shape = _SHAPES.get(family)
    vocab = integer(text, "vocab_size", "padded_vocab_size")
    if shape is None or not vocab:
        return None
    own = text.get("tie_word_embeddings")
    is_tied = own if isinstance(own, bool) else tied if tied is not None else shape.tied
    sums = _Sums(small=hidden)
    letters = text.get("hybrid_override_pattern") if family == "nemotron_h" else None
    if family == "nemotron_h" and not (isinstance(letters, str) and len(letters) == len(names)):
        return None
    alike: dict[object, list[int]] = {}  # a hundred layers are of two or three kinds: each is counted once
    for place, kind in enumerate(letters or zip(names, _sparse(text, len(names)), strict=True)):
        alike.setdefault(kind, []).append(place)
    for places in alike.values():
        place = places[0]
        layer = _Sums(small=shape.norms * hidden)
        if letters is not None:
            known = _nemotron(layer, text, shape, letters[place], hidden, heads)
        else:
            known = _mixer(layer, text, family, shape, names[place], hidden, heads) and _feed_forward(
                layer, text, family, shape, place, hidden
            )
        if not known:
            return None
        layer.small += _streams(text, hidden)
        for part, count in vars(layer).items():
            setattr(sums, part, getattr(sums, part) + count * len(places))
    return Parameters(
        embedding=vocab * hidden,
        head=0 if is_tied else vocab * hidden,
        kv=sums.kv,
        replicated=sums.replicated,
        small=sums.small,
        experts=sums.experts,
        rest=sums.rest,
        absorbed=sums.absorbed,
        attention=sums.attention,
        shared=sums.shared,
        folded=sums.folded,
        linear=sums.linear,
        entry=_entry(text, letters, shape, hidden, heads) if letters else 0,
    )


def _entry(text: Config, letters: str, shape: _Shape, hidden: int, heads: int) -> int:
    """Parameters of the attention blocks of a Nemotron-H and of as many state-space blocks."""
    pair = _Sums()
    known = [_nemotron(pair, text, shape, letter, hidden, heads) for letter in "M*"]
    return letters.count("*") * pair.attention if all(known) else 0


def _streams(text: Config, hidden: int) -> int:
    """What mixes several residual streams before and after both blocks of a layer (Qwen4's hyper-connections)."""
    count, rank = integer(text, "hc_count"), integer(text, "hc_lowrank")
    return 2 * count * hidden * (2 * rank + count + 1) if count and rank else 0


# ---- attention and what stands in its place


def _mixer(sums: _Sums, text: Config, family: str, shape: _Shape, name: str, hidden: int, heads: int) -> bool:
    if name == "recurrent":
        return _delta_net(sums, text, hidden) or _mamba(sums, text, hidden)
    if name == "none":
        return True
    if name == "cross":
        return False
    if integer(text, "kv_lora_rank"):
        _latent(sums, text, hidden, heads)
        return True
    _attention(sums, text, family, shape, name, hidden, heads)
    return True


def _attention(sums: _Sums, text: Config, family: str, shape: _Shape, name: str, hidden: int, heads: int) -> None:
    head_dim = integer(text, "head_dim", "attention_head_dim", "kv_channels") or hidden // heads
    kv_heads = kv_heads_of(text, heads)
    values = 1
    if name == "full" and (wide := integer(text, "global_head_dim")):  # Gemma 4: fewer and wider heads, K stands for V
        head_dim, kv_heads = wide, integer(text, "num_global_key_value_heads") or kv_heads
        values = 0 if text.get("attention_k_eq_v") is True else 1
    if name == "sliding":
        kv_heads = integer(text, "swa_num_key_value_heads") or kv_heads
    value_dim = integer(text, "v_head_dim") or head_dim
    sums.kv += hidden * kv_heads * (head_dim + values * value_dim)
    queries = heads * head_dim * (2 if text.get("attn_output_gate") is True or family.startswith(_GATED) else 1)
    own = hidden * (queries + heads * value_dim)
    sums.rest += own
    sums.attention += own
    if shape.bias or text.get("attention_bias") is True:
        sums.small += queries + kv_heads * (head_dim + value_dim)
    if family == "gpt_oss":
        sums.small += hidden + heads  # the bias of the output projection, a sink per head
    norm = shape.qk_norm or ("head" if family == "glm4_moe" and text.get("use_qk_norm") is True else "")
    norm = norm or ("full" if family == "cohere" and text.get("use_qk_norm") is True else "")
    sums.small += {"": 0, "head": 2 * head_dim, "full": (heads + kv_heads) * head_dim}[norm]


def _latent(sums: _Sums, text: Config, hidden: int, heads: int) -> None:
    """MLA; `absorbed` are the halves of kv_b kept again for decoding, `folded` their products with the projections beside
    them and the rope part of the queries. A sparse indexer stands on every rank.
    """
    latent = integer(text, "kv_lora_rank") or 0
    rope = integer(text, "qk_rope_head_dim") or 0
    nope, value = integer(text, "qk_nope_head_dim") or 0, integer(text, "v_head_dim") or 0
    query = integer(text, "q_lora_rank") or 0
    sums.replicated += hidden * (latent + rope) + hidden * query
    sums.small += latent + query
    kv_b = latent * heads * (nope + value)
    own = (query or hidden) * heads * (nope + rope) + kv_b + heads * value * hidden
    sums.rest += own
    sums.attention += own
    sums.absorbed += kv_b
    sums.folded += heads * ((query or hidden) * (latent + rope) + latent * hidden)


def _delta_net(sums: _Sums, text: Config, hidden: int) -> bool:
    """Gated delta net: Q, K, V and gate in one projection, two gates per value head, a convolution, the way out."""
    values, keys = integer(text, "linear_num_value_heads"), integer(text, "linear_num_key_heads")
    key_dim, value_dim = integer(text, "linear_key_head_dim"), integer(text, "linear_value_head_dim")
    kernel = integer(text, "linear_conv_kernel_dim")
    if not (values and keys and key_dim and value_dim and kernel):
        return False
    wide_keys, wide_values = keys * key_dim, values * value_dim
    own = hidden * (2 * wide_keys + 2 * wide_values + 2 * values) + wide_values * hidden
    sums.rest += own
    sums.attention += own
    sums.linear += own
    sums.small += (2 * wide_keys + wide_values) * kernel + 2 * values + value_dim
    return True


def _mamba(sums: _Sums, text: Config, hidden: int) -> bool:
    """Mamba-2."""
    heads = integer(text, "mamba_num_heads", "mamba_n_heads")
    head_dim, state = integer(text, "mamba_head_dim", "mamba_d_head"), integer(text, "ssm_state_size", "mamba_d_state")
    groups, kernel = integer(text, "n_groups", "mamba_n_groups"), integer(text, "conv_kernel", "mamba_d_conv")
    if not (heads and head_dim and state and groups and kernel):
        return False
    inner, wide = heads * head_dim, heads * head_dim + 2 * groups * state
    own = hidden * (inner + wide + heads) + inner * hidden
    sums.rest += own
    sums.attention += own
    sums.small += wide * (kernel + 1) + 3 * heads + inner
    return True


def _nemotron(sums: _Sums, text: Config, shape: _Shape, letter: str, hidden: int, heads: int) -> bool:
    """One layer of Nemotron-H holds one block: M state space, * attention, - feed-forward, E experts."""
    if letter == "M":
        return _mamba(sums, text, hidden)
    if letter == "*":
        _attention(sums, text, "nemotron_h", shape, "full", hidden, heads)
        return True
    if letter == "-":
        wide = integer(text, "intermediate_size")
        sums.rest += shape.matrices * hidden * (wide or 0)
        return bool(wide)
    count, narrow = integer(text, "n_routed_experts"), integer(text, "moe_intermediate_size")
    if letter != "E" or not (count and narrow):
        return False
    latent = integer(text, "moe_latent_size") or 0  # experts work in a narrower space, with a way in and a way out
    sums.experts += count * shape.matrices * (latent or hidden) * narrow
    shared = (integer(text, "n_shared_experts") or 0) * shape.matrices * hidden * (
        integer(text, "moe_shared_expert_intermediate_size") or narrow
    ) + 2 * hidden * latent
    sums.rest += shared
    sums.shared += shared
    sums.small += count * hidden + count
    return True


# ---- feed-forward blocks and experts


def _feed_forward(sums: _Sums, text: Config, family: str, shape: _Shape, place: int, hidden: int) -> bool:
    wide = integer(text, "intermediate_size")
    count = integer(text, "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
    sparse = bool(count) and _is_sparse(text, place)
    if not sparse or family == "gemma4_text":  # Gemma 4 has a dense block beside its experts
        dense = integer(text, "intermediate_size_mlp", "dense_intermediate_size") or wide
        if not dense:
            return False
        sums.rest += shape.matrices * hidden * dense
        if not sparse:
            return True
        sums.small += 3 * hidden
    narrow = integer(text, "moe_intermediate_size") or wide
    if not count or not narrow:
        return False
    sums.small += count * hidden
    sums.experts += count * shape.matrices * hidden * narrow
    if family in _ROUTER_BIAS:
        sums.small += count  # the bias that evens out the experts
    if family == "gpt_oss":
        sums.small += count + count * (2 * narrow + hidden)  # biases of the router and of every expert
    shared = (
        (integer(text, "n_shared_experts", "num_shared_experts", "moe_num_shared_experts") or 0) * 3 * hidden * narrow
    )
    if own := integer(text, "shared_expert_intermediate_size", "share_expert_dim", "shared_intermediate_size"):
        shared = 3 * hidden * own
        sums.small += hidden if family.startswith("qwen") else 0  # the gate of the shared expert
    if family == "llama4_text":
        shared = 3 * hidden * narrow
    sums.rest += shared
    sums.shared += shared
    return True


def _is_sparse(text: Config, place: int) -> bool:
    """Whether this layer has experts; families place their dense layers in different ways."""
    return _sparse(text, place + 1)[place]


def _sparse(text: Config, count: int) -> list[bool]:
    """The same of so many layers."""
    dense = integer(text, "first_k_dense_replace", "moe_layer_start_index") or 0
    step = integer(text, "interleave_moe_layer_step", "decoder_sparse_step") or 1
    sparse = [place >= dense and (place + 1) % step == 0 for place in range(count)]
    every, listed = text.get("moe_layer_freq"), text.get("mlp_layer_types")
    if isinstance(every, list):
        sparse[: len(every)] = [bool(each) for each in every[:count]]
    if isinstance(listed, list):
        sparse[: len(listed)] = [str(each) == "sparse" for each in listed[:count]]
    return sparse
