"""A Hugging Face config.json becomes a `Model`; the entries of the shipped catalogue are written in the same keys.

Keys as in transformers' configuration classes and the configs of published checkpoints; what the engine makes of them
(which layers get which cache) as in vLLM's model files, releases 0.6 to 0.33.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oomdoc.errors import UsageError
from oomdoc.physics.architecture import (
    CHUNKED,
    CROSS,
    FULL,
    LATENT,
    RECURRENT,
    SLIDING,
    UNKNOWN,
    Cache,
    Model,
    Parameters,
)

Config = Mapping[str, Any]

_MOST_LAYERS = 2000  # no model is deeper; a wild number must not become a list of that length
_NO_LAYER = -1


@dataclass(frozen=True)
class _Shape:
    """How a family's decoder layer is built, beyond what its config says: biases, norms, tying.

    `qk_norm` is `head` (one norm of head_dim for Q and one for K) or `full` (over all heads); `norms` per layer.
    """

    bias: bool = False
    qk_norm: str = ""
    norms: int = 2
    tied: bool = False


# Families that are counted exactly: gated MLP (or experts of that form) after attention, as their model files have it.
_SHAPES: Mapping[str, _Shape] = {
    "llama": _Shape(), "mistral": _Shape(), "mistral3": _Shape(), "mixtral": _Shape(), "internlm2": _Shape(), "internlm3": _Shape(),
    "phi3": _Shape(), "granite": _Shape(), "qwen2": _Shape(bias=True), "qwen3": _Shape(qk_norm="head"),
    "qwen3_moe": _Shape(qk_norm="head"), "qwen3_vl_text": _Shape(qk_norm="head"), "qwen3_vl_moe_text": _Shape(qk_norm="head"),
    "gemma": _Shape(tied=True), "gemma2": _Shape(norms=4, tied=True),
    "gemma3": _Shape(qk_norm="head", norms=4, tied=True), "gemma3_text": _Shape(qk_norm="head", norms=4, tied=True),
    "cohere": _Shape(norms=1, tied=True), "glm4_moe": _Shape(), "gpt_oss": _Shape(bias=True),
    "deepseek_v2": _Shape(), "deepseek_v3": _Shape(), "deepseek_v32": _Shape(), "kimi_k2": _Shape(),
}  # fmt: skip

# A dtype that is none of these says nothing about activations and KV: those of 8 bits belong to the weights alone.
_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "half": "float16", "fp32": "float32", "float": "float32"}


def config_of_file(path: Path) -> dict[str, Any]:
    """The JSON object of a config.json that a person names (`--model-config`); UsageError where it is none."""
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as problem:
        raise UsageError(
            f"--model-config {path} cannot be read as JSON ({problem})", "Give the model's config.json"
        ) from None
    if not isinstance(config, dict):
        raise UsageError(f"--model-config {path} is no JSON object", "Give the model's config.json")
    return config


def read_config(config: Config, name: str = "") -> Model:
    """The model that a config.json describes. UsageError where it lacks what every decoder has."""
    text = _text_part(config)
    layers = _integer(text, "num_hidden_layers", "n_layer", "num_layers", "n_layers")
    hidden = _integer(text, "hidden_size", "n_embd", "d_model")
    heads = _integer(text, "num_attention_heads", "n_head", "n_heads")
    missing = [
        key
        for key, value in (("num_hidden_layers", layers), ("hidden_size", hidden), ("num_attention_heads", heads))
        if not value
    ]
    if not layers or not hidden or not heads:
        raise UsageError(f"the model's config has no {' and no '.join(missing)}", "Give the config.json of a decoder")
    if heads > hidden:
        raise UsageError(
            f"the model's config names {heads} heads for {hidden} dimensions", "Give the config.json of a decoder"
        )
    if layers > _MOST_LAYERS:
        raise UsageError(f"the model's config names {layers} layers", "Give the config.json of a decoder")
    family = str(text.get("model_type") or config.get("model_type") or "")
    caches, pattern = _caches(text, family, layers, hidden, heads)
    parts = _count(text, family, layers, hidden, heads)
    method, scheme = _quantization(config if isinstance(config.get("quantization_config"), dict) else text)
    return Model(
        name=name or str(config.get("_name_or_path") or ""),
        family=family,
        hidden_size=hidden,
        vocab_size=_integer(text, "vocab_size", "padded_vocab_size"),
        heads=heads,
        caches=caches,
        pattern=pattern,
        max_position_embeddings=_integer(
            text, "max_position_embeddings", "n_positions", "max_sequence_length", "seq_length", "max_seq_len"
        ),
        dtype=_dtype(text) or _dtype(config) or "bfloat16",
        intermediate_size=_integer(text, "intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim")
        or _integer(text, "moe_intermediate_size"),
        experts_per_token=_integer(text, "num_experts_per_tok", "num_experts_per_token", "moe_top_k") or 0,
        parts=parts,
        params=parts.total if parts else None,
        basis="counted from the config" if parts else "unknown",
        quantization=method,
        kv_cache_scheme=scheme,
        multimodal=text is not config or "vision_config" in config,
        confirmed="config",
        source="config.json",
    )


def _text_part(config: Config) -> Config:
    """The language model of a multimodal config; its dtype and tying may stand one level up."""
    for key in ("text_config", "llm_config", "language_config", "language_model_config"):
        inner = config.get(key)
        if isinstance(inner, dict) and _integer(inner, "num_hidden_layers", "hidden_size"):
            return inner
    thinker = config.get("thinker_config")
    return _text_part(thinker) if isinstance(thinker, dict) else config


def _integer(config: Config, *keys: str) -> int | None:
    """The first of these keys that holds a whole number above 0."""
    for key in keys:
        value = config.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def _dtype(config: Config) -> str | None:
    name = config.get("torch_dtype") or config.get("dtype")
    if not isinstance(name, str):
        return None
    name = name.removeprefix("torch.").lower()
    name = _DTYPES.get(name, name)
    return name if name in _DTYPES.values() else None


# ---- which layer keeps what


def _kv_heads(text: Config, family: str, heads: int) -> int:
    attention = text.get("attn_config")
    if isinstance(attention, dict) and (found := _integer(attention, "kv_n_heads")):  # DBRX
        return found
    if text.get("multi_query_attention") is True:  # ChatGLM
        return _integer(text, "multi_query_group_num") or 1
    if text.get("multi_query") is True and not text.get("new_decoder_architecture"):  # Falcon 7B
        return 1
    return _integer(text, "num_key_value_heads", "num_kv_heads", "n_head_kv", "num_key_value_head") or heads


def _caches(
    text: Config, family: str, layers: int, hidden: int, heads: int
) -> tuple[tuple[Cache, ...], tuple[int, ...]]:
    """The kinds of cache and, per layer, which one it has."""
    if text.get("compress_ratios"):
        return (Cache(UNKNOWN),), (0,) * layers
    if isinstance(text.get("block_configs"), list):
        return _by_blocks(text["block_configs"], heads, _integer(text, "head_dim") or hidden // heads)
    full = _attention(text, family, hidden, heads)
    names = _layer_names(text, layers)
    kinds: list[Cache] = []
    pattern: list[int] = []
    shared_from = layers - (_integer(text, "num_kv_shared_layers") or 0)
    for place, name in enumerate(names):
        cache = _cache_of(name, text, full) if place < shared_from else None
        if cache is None:
            pattern.append(_NO_LAYER)
            continue
        if cache not in kinds:
            kinds.append(cache)
        pattern.append(kinds.index(cache))
    return tuple(kinds), tuple(pattern)


def _attention(text: Config, family: str, hidden: int, heads: int) -> Cache:
    rank = _integer(text, "kv_lora_rank")
    if rank:
        rope = _integer(text, "qk_rope_head_dim") or 0
        query = (_integer(text, "qk_nope_head_dim") or 0) + rope
        index = _integer(text, "index_head_dim") or 0
        return Cache(LATENT, latent_dim=rank + rope, index_dim=index, query_heads=heads, query_head_dim=query)
    head_dim = _integer(text, "head_dim", "attention_head_dim", "kv_channels") or hidden // heads
    value_dim = _integer(text, "v_head_dim") or head_dim
    return Cache(FULL, _kv_heads(text, family, heads), head_dim, value_dim)


def _layer_names(text: Config, layers: int) -> list[str]:
    """One of full, sliding, chunked, cross, recurrent, none per layer."""
    listed = text.get("layer_types")
    if isinstance(listed, list) and len(listed) == layers:
        return [_listed(str(name)) for name in listed]
    counts = text.get("layer_counts")  # the catalogue's own key: how many, where their order is not recorded
    if isinstance(counts, dict):
        names = [
            name for name, count in counts.items() for _ in range(min(count, layers) if type(count) is int else 0)
        ][:layers]
        return (names + ["none"] * layers)[:layers]
    letters = text.get("hybrid_override_pattern")  # Nemotron-H: M state space, * attention, - and E no cache
    if isinstance(letters, str) and len(letters) == layers:
        return [{"M": "recurrent", "*": "full"}.get(letter, "none") for letter in letters]
    flags = text.get("hybrid_layer_pattern")  # MiMo: 1 sliding, 0 full
    if isinstance(flags, list) and len(flags) == layers:
        return ["sliding" if flag == 1 else "full" for flag in flags]
    crossing = text.get("cross_attention_layers")
    if isinstance(crossing, list):
        return ["cross" if place in crossing else "full" for place in range(layers)]
    every = _integer(text, "full_attention_interval")
    if every:
        return ["full" if (place + 1) % every == 0 else "recurrent" for place in range(layers)]
    period, offset = _integer(text, "attn_layer_period"), text.get("attn_layer_offset")
    if period and isinstance(offset, int):  # Jamba
        return ["full" if place % period == offset else "recurrent" for place in range(layers)]
    if _integer(text, "attention_chunk_size"):
        return ["full" if (place + 1) % 4 == 0 else "chunked" for place in range(layers)]
    if not _integer(text, "sliding_window") or text.get("use_sliding_window") is False:
        return ["full"] * layers
    step = _integer(text, "sliding_window_pattern", "_sliding_window_pattern") or (
        2 if text.get("model_type") in ("gemma2", "gpt_oss") else 0
    )
    if step:
        return ["full" if (place + 1) % step == 0 else "sliding" for place in range(layers)]
    from_layer = text.get("max_window_layers")
    if text.get("use_sliding_window") is True and isinstance(from_layer, int):  # Qwen2: the upper layers only
        return ["full" if place < from_layer else "sliding" for place in range(layers)]
    return ["sliding"] * layers


def _listed(name: str) -> str:
    """A name of `layer_types` in ours."""
    for word, kind in (("full", "full"), ("sliding", "sliding"), ("chunked", "chunked"), ("linear", "recurrent"),
                       ("mamba", "recurrent"), ("recurrent", "recurrent"), ("attention", "full")):  # fmt: skip
        if word in name:
            return kind
    return "none"


def _cache_of(name: str, text: Config, full: Cache) -> Cache | None:
    if name == "none":
        return None
    if name == "unknown":
        return Cache(UNKNOWN)
    if name == "recurrent":
        return _recurrent(text)
    if name == "cross":
        return Cache(CROSS, full.kv_heads, full.head_dim, full.v_head_dim)
    if full.kind == LATENT:
        return full
    if name == "sliding":
        heads = _integer(text, "swa_num_key_value_heads") or full.kv_heads
        head_dim = _integer(text, "swa_head_dim") or full.head_dim
        value_dim = _integer(text, "swa_v_head_dim") or (full.v_head_dim if head_dim == full.head_dim else head_dim)
        return Cache(SLIDING, heads, head_dim, value_dim, _integer(text, "sliding_window"))
    if name == "chunked":
        window = _integer(text, "attention_chunk_size")
        return Cache(CHUNKED, full.kv_heads, full.head_dim, full.v_head_dim, window)
    # Gemma 4 has wider heads, and fewer, in its full layers
    wide = _integer(text, "global_head_dim")
    heads = _integer(text, "num_global_key_value_heads") or full.kv_heads
    return Cache(FULL, heads, wide, wide) if wide else full


def _recurrent(text: Config) -> Cache:
    """The state of a gated delta net or a Mamba-2 layer, elements at TP 1; other forms have an unknown size.

    GDN: value heads x key dim x value dim, and (2 x key heads x key dim + value heads x value dim) x (kernel - 1) for
    the convolution. Mamba-2: heads x head dim x state size, and (heads x head dim + 2 x groups x state size) x (kernel - 1).
    """
    values, keys = _integer(text, "linear_num_value_heads"), _integer(text, "linear_num_key_heads")
    key_dim, value_dim = _integer(text, "linear_key_head_dim"), _integer(text, "linear_value_head_dim")
    kernel = _integer(text, "linear_conv_kernel_dim", "conv_kernel", "mamba_d_conv")
    if values and keys and key_dim and value_dim and kernel:
        wide = 2 * keys * key_dim + values * value_dim
        return Cache(RECURRENT, state_elements=values * key_dim * value_dim, conv_elements=wide * (kernel - 1))
    heads = _integer(text, "mamba_num_heads", "mamba_n_heads")
    head_dim, state = (
        _integer(text, "mamba_head_dim", "mamba_d_head"),
        _integer(text, "ssm_state_size", "mamba_d_state"),
    )
    groups = _integer(text, "n_groups", "mamba_n_groups")
    if heads and head_dim and state and groups and kernel:
        wide = heads * head_dim + 2 * groups * state
        return Cache(RECURRENT, state_elements=heads * head_dim * state, conv_elements=wide * (kernel - 1))
    return Cache(RECURRENT)


def _by_blocks(blocks: Sequence[Any], heads: int, head_dim: int) -> tuple[tuple[Cache, ...], tuple[int, ...]]:
    """Searched architectures (Nemotron NAS): each block names its attention, or none."""
    kinds: list[Cache] = []
    pattern: list[int] = []
    for block in blocks[:_MOST_LAYERS]:
        attention = block.get("attention") if isinstance(block, dict) else None
        group = _integer(attention, "n_heads_in_group") if isinstance(attention, dict) else None
        if not group:
            pattern.append(_NO_LAYER)
            continue
        cache = Cache(FULL, heads // group, head_dim, head_dim)
        if cache not in kinds:
            kinds.append(cache)
        pattern.append(kinds.index(cache))
    return tuple(kinds), tuple(pattern)


# ---- quantisation


def _quantization(config: Config) -> tuple[str | None, str | None]:
    """The checkpoint's weight format (a name of `weights.FORMATS` where it can be told) and the dtype it wants for KV."""
    found = config.get("quantization_config")
    if not isinstance(found, dict):
        return None, None
    method = str(found.get("quant_method") or "").lower()
    algorithm = str(found.get("quant_algo") or "").lower()
    scheme = None
    wanted = found.get("kv_cache_scheme")
    if isinstance(wanted, dict):
        scheme = "fp8" if wanted.get("num_bits") == 8 else None
    elif str(found.get("kv_cache_quant_algo") or "").lower() in ("fp8", "nvfp4"):
        scheme = str(found["kv_cache_quant_algo"]).lower()
    return _format(method, algorithm, found), scheme


def _format(method: str, algorithm: str, found: Config) -> str | None:
    bits = _integer(found, "bits", "w_bit") or _bits_of_groups(found)
    if method in ("awq", "gptq") and bits in (4, 8):
        return f"{method}" if bits == 4 else "int8"
    if method == "fp8":
        return "fp8"
    if method == "mxfp4":
        return "mxfp4"
    if method in ("modelopt", "modelopt_fp4") and ("fp4" in algorithm or method.endswith("fp4")):
        return "nvfp4"
    if method == "modelopt" and "fp8" in algorithm:
        return "fp8"
    if method == "bitsandbytes":
        return "int8" if found.get("load_in_8bit") else "bitsandbytes"
    if method in ("compressed-tensors", "compressed_tensors"):
        if "nvfp4" in str(found.get("format")):
            return "nvfp4"
        return "w4a16" if bits == 4 else "fp8" if bits == 8 else None
    return method or None


def _bits_of_groups(found: Config) -> int | None:
    groups = found.get("config_groups")
    for group in groups.values() if isinstance(groups, dict) else ():
        weights = group.get("weights") if isinstance(group, dict) else None
        if isinstance(weights, dict):
            return _integer(weights, "num_bits")
    return None


# ---- parameters


def _count(text: Config, family: str, layers: int, hidden: int, heads: int) -> Parameters | None:
    """Parameters of a family whose layers are known; None for any other, and where a size is missing.

    Vocabulary: vocab x hidden, twice unless tied. Attention: hidden x (q + 2 kv) x head_dim + q x head_dim x hidden.
    MLP: 3 x hidden x intermediate. Experts: experts x 3 x hidden x moe_intermediate, the router experts x hidden.
    """
    shape = _SHAPES.get(family)
    vocab = _integer(text, "vocab_size", "padded_vocab_size")
    if shape is None or not vocab:
        return None
    tied = text.get("tie_word_embeddings")
    head = 0 if (tied if isinstance(tied, bool) else shape.tied) else vocab * hidden
    mla = _count_mla(text, hidden, heads) if _integer(text, "kv_lora_rank") else None
    attention = mla or _count_attention(text, family, shape, hidden, heads)
    block = _count_mlp(text, family, layers, hidden)
    if block is None:
        return None
    small, experts, dense = block
    return Parameters(
        embedding=vocab * hidden,
        head=head,
        kv=layers * attention[0],
        replicated=layers * attention[1],
        small=layers * (attention[2] + shape.norms * hidden) + hidden + small,
        experts=experts,
        rest=layers * attention[3] + dense,
        absorbed=layers * attention[4],
    )


def _count_attention(
    text: Config, family: str, shape: _Shape, hidden: int, heads: int
) -> tuple[int, int, int, int, int]:
    """(kv, replicated, small, rest, absorbed) of one layer with keys and values."""
    head_dim = _integer(text, "head_dim", "attention_head_dim", "kv_channels") or hidden // heads
    kv_heads = _kv_heads(text, family, heads)
    kv = 2 * hidden * kv_heads * head_dim
    rest = 2 * hidden * heads * head_dim
    small = 0
    if shape.bias or text.get("attention_bias") is True:
        small += (heads + 2 * kv_heads) * head_dim
    if family == "gpt_oss":
        small += hidden + heads  # the bias of the output projection, a sink per head
    norm = shape.qk_norm or ("head" if family == "glm4_moe" and text.get("use_qk_norm") is True else "")
    norm = norm or ("full" if family == "cohere" and text.get("use_qk_norm") is True else "")
    small += {"": 0, "head": 2 * head_dim, "full": (heads + kv_heads) * head_dim}[norm]
    return kv, 0, small, rest, 0


def _count_mla(text: Config, hidden: int, heads: int) -> tuple[int, int, int, int, int]:
    """The same of one layer of latent attention; `absorbed` are the halves of kv_b kept again for decoding."""
    latent = _integer(text, "kv_lora_rank") or 0
    rope = _integer(text, "qk_rope_head_dim") or 0
    nope, value = _integer(text, "qk_nope_head_dim") or 0, _integer(text, "v_head_dim") or 0
    query = _integer(text, "q_lora_rank") or 0
    down = hidden * (latent + rope) + hidden * query
    up = (query or hidden) * heads * (nope + rope)
    kv_b = latent * heads * (nope + value)
    return 0, down, latent + query, up + kv_b + heads * value * hidden, kv_b


def _count_mlp(text: Config, family: str, layers: int, hidden: int) -> tuple[int, int, int] | None:
    """(small, experts, dense) of all layers together."""
    wide = _integer(text, "intermediate_size")
    count = _integer(text, "num_experts", "num_local_experts", "n_routed_experts")
    if not count:
        return (0, 0, layers * 3 * hidden * wide) if wide else None
    narrow = _integer(text, "moe_intermediate_size") or wide
    first = min(layers, _integer(text, "first_k_dense_replace") or 0)
    if not narrow or (first and not wide) or (_integer(text, "decoder_sparse_step") or 1) != 1:
        return None
    sparse = layers - first
    small = sparse * count * hidden
    experts = sparse * count * 3 * hidden * narrow
    if family in ("deepseek_v3", "deepseek_v32", "kimi_k2"):
        small += sparse * count  # the bias that evens out the experts
    if family == "gpt_oss":
        small += sparse * (count + count * (2 * narrow + hidden))  # biases of the router and of every expert
    shared = (_integer(text, "n_shared_experts") or 0) * 3 * hidden * narrow
    return small, experts, first * 3 * hidden * (wide or 0) + sparse * shared
