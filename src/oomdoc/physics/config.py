"""A Hugging Face config.json becomes a `Model`; the entries of the shipped catalogue are written in the same keys.

Keys as in transformers' configuration classes and the configs of published checkpoints; what the engine makes of them
(which layers get which cache) as in vLLM's model files, releases 0.6 to 0.33.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from oomdoc.errors import UsageError
from oomdoc.physics.architecture import (
    CHUNKED,
    COMPRESSED,
    CROSS,
    ENCODER,
    FULL,
    LATENT,
    RECURRENT,
    SLIDING,
    UNKNOWN,
    Cache,
    Model,
)
from oomdoc.physics.parameters import FAMILIES, count_parameters, integer, kv_heads_of
from oomdoc.regexes import regex

Config = Mapping[str, Any]

_MOST_LAYERS = 2000  # no model is deeper; a wild number must not become a list of that length
_NO_LAYER = -1
_ENCODERS = {"bert", "roberta", "xlm-roberta", "modernbert", "nomic_bert", "new", "distilbert", "gte", "siglip", "clip"}


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
    layers = integer(text, "num_hidden_layers", "n_layer", "num_layers", "n_layers")
    hidden = integer(text, "hidden_size", "n_embd", "d_model")
    heads = integer(text, "num_attention_heads", "n_head", "n_heads")
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
    family = str(
        text.get("model_type") or config.get("model_type") or family_of_architecture(config.get("architectures"))
    )
    caches, pattern = _caches(text, family, layers, hidden, heads)
    outer = config.get("tie_word_embeddings")
    parts = count_parameters(
        text, family, _layer_names(text, layers), hidden, heads, outer if isinstance(outer, bool) else None
    )
    method, scheme = _quantization(config if isinstance(config.get("quantization_config"), dict) else text)
    return Model(
        name=name or str(config.get("_name_or_path") or ""),
        family=family,
        hidden_size=hidden,
        vocab_size=integer(text, "vocab_size", "padded_vocab_size"),
        heads=heads,
        caches=caches,
        pattern=pattern,
        max_position_embeddings=integer(
            text, "max_position_embeddings", "n_positions", "max_sequence_length", "seq_length", "max_seq_len"
        ),
        dtype=_dtype(text) or _dtype(config) or "bfloat16",
        intermediate_size=integer(text, "intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim")
        or integer(text, "moe_intermediate_size"),
        expert_size=integer(text, "moe_intermediate_size"),
        experts_per_token=integer(text, "num_experts_per_tok", "num_experts_per_token", "moe_top_k") or 0,
        parts=parts,
        params=parts.total if parts else None,
        basis="counted from the config" if parts else "unknown",
        quantization=method,
        kv_cache_scheme=scheme,
        multimodal=text is not config or "vision_config" in config,
        rope_scaled=_rope_scaled(text),
        draft_layers=integer(text, "num_nextn_predict_layers", "mtp_num_hidden_layers", "mtp_transformer_layers") or 0,
        confirmed="config",
        source="config.json",
    )


_TASK = regex(r"(?:ForCausalLM|ForConditionalGeneration|LMHeadModel|ForSequenceClassification|Model)$")


def family_of_architecture(names: Any) -> str:
    """The `model_type` that goes with the class of a model, where a config lacks it; empty where no known family has that name.

    The classes of transformers are the family's name in capitals: models/*/configuration_*.py.

    >>> family_of_architecture(["CohereForCausalLM"]), family_of_architecture(["Qwen2MoeForCausalLM"]), family_of_architecture(["OwnForCausalLM"]), family_of_architecture(None)
    ('cohere', 'qwen2_moe', '', '')
    """
    first = names[0] if isinstance(names, list) and names and isinstance(names[0], str) else ""
    folded = _TASK.sub("", first).lower()
    return next((family for family in FAMILIES if family.replace("_", "") == folded), "") if folded else ""


def _text_part(config: Config) -> Config:
    """The language model of a multimodal config; its dtype and tying may stand one level up."""
    for key in ("text_config", "llm_config", "language_config", "language_model_config"):
        inner = config.get(key)
        if isinstance(inner, dict) and integer(inner, "num_hidden_layers", "hidden_size"):
            return inner
    thinker = config.get("thinker_config")
    return _text_part(thinker) if isinstance(thinker, dict) else config


def _dtype(config: Config) -> str | None:
    name = config.get("torch_dtype") or config.get("dtype")
    if not isinstance(name, str):
        return None
    name = name.removeprefix("torch.").lower()
    name = _DTYPES.get(name, name)
    return name if name in _DTYPES.values() else None


def _rope_scaled(text: Config) -> bool:
    """Whether the positions that are stated are reached by scaling already (YaRN, llama3, longrope and the like)."""
    found = text.get("rope_scaling") or text.get("rope_parameters")
    return isinstance(found, dict) and str(found.get("rope_type") or found.get("type") or "default") != "default"


# ---- which layer keeps what


def _caches(
    text: Config, family: str, layers: int, hidden: int, heads: int
) -> tuple[tuple[Cache, ...], tuple[int, ...]]:
    """The kinds of cache and, per layer, which one it has."""
    ratios = text.get("compress_ratios")
    if family == "deepseek_v4" and isinstance(ratios, list) and len(ratios) >= layers:
        return _compressed(ratios[:layers], integer(text, "sliding_window") or 128)
    if ratios:
        return (Cache(UNKNOWN),), (0,) * layers
    if isinstance(text.get("block_configs"), list):
        return _by_blocks(text["block_configs"], heads, integer(text, "head_dim") or hidden // heads)
    if family in _ENCODERS:
        return (Cache(ENCODER),), (0,) * layers
    full = _attention(text, family, hidden, heads)
    plain = replace(full, index_dim=0, early_index_dim=full.index_dim)
    shares = text.get("indexer_types")  # GLM-5.2: most layers look where an earlier layer's indexer has looked
    names = _layer_names(text, layers)
    kinds: list[Cache] = []
    pattern: list[int] = []
    known: dict[tuple[str, bool], int] = {}  # a hundred layers are of two or three kinds
    shared_from = len(names) - (integer(text, "num_kv_shared_layers") or 0)
    for place, name in enumerate(names):
        borrowed = isinstance(shares, list) and place < len(shares) and shares[place] == "shared"
        if place >= shared_from:
            pattern.append(_NO_LAYER)
            continue
        if (name, borrowed) not in known:
            cache = _cache_of(name, text, plain if borrowed else full)
            if cache is not None and cache not in kinds:
                kinds.append(cache)
            known[name, borrowed] = _NO_LAYER if cache is None else kinds.index(cache)
        pattern.append(known[name, borrowed])
    return tuple(kinds), tuple(pattern)


def _attention(text: Config, family: str, hidden: int, heads: int) -> Cache:
    rank = integer(text, "kv_lora_rank")
    if rank:
        rope = integer(text, "qk_rope_head_dim") or 0
        query = (integer(text, "qk_nope_head_dim") or 0) + rope
        index, pooled = integer(text, "index_head_dim") or 0, integer(text, "index_kpool") or 1
        own = Cache(LATENT, latent_dim=rank + rope, query_heads=heads, query_head_dim=query)
        if pooled > 1:  # one key for so many tokens
            return replace(own, side_bytes=(index + 4 * index / 128) / pooled)
        return replace(own, index_dim=index)
    head_dim = integer(text, "head_dim", "attention_head_dim", "kv_channels") or hidden // heads
    value_dim = integer(text, "v_head_dim") or head_dim
    wide, ratio = integer(text, "indexer_head_dim"), integer(text, "indexer_compress_ratio")
    side = (
        2 * wide / ratio if wide and ratio and family.startswith("qwen4") else 0.0
    )  # one 16-bit key for so many tokens
    return Cache(FULL, kv_heads_of(text, heads), head_dim, value_dim, side_bytes=side)


def _layer_names(text: Config, layers: int) -> list[str]:
    """One of full, sliding, chunked, cross, recurrent, none per layer; two of a layer that has attention and a state space."""
    if text.get("model_type") == "falcon_h1":  # side by side in every layer
        return ["full", "recurrent"] * layers
    blocks = text.get("layers_block_type")
    if text.get("model_type") == "zamba2" and isinstance(blocks, list) and len(blocks) == layers:
        return [name for block in blocks for name in (["full"] if block in ("hybrid", "g") else []) + ["recurrent"]]
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
    every = integer(text, "full_attention_interval")
    if every:
        return ["full" if (place + 1) % every == 0 else "recurrent" for place in range(layers)]
    period, offset = integer(text, "attn_layer_period"), text.get("attn_layer_offset")
    if period and isinstance(offset, int):  # Jamba
        return ["full" if place % period == offset else "recurrent" for place in range(layers)]
    if integer(text, "attention_chunk_size"):
        return ["full" if (place + 1) % 4 == 0 else "chunked" for place in range(layers)]
    if not integer(text, "sliding_window") or text.get("use_sliding_window") is False:
        return ["full"] * layers
    step = integer(text, "sliding_window_pattern", "_sliding_window_pattern") or (
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
        heads = integer(text, "swa_num_key_value_heads") or full.kv_heads
        head_dim = integer(text, "swa_head_dim") or full.head_dim
        value_dim = integer(text, "swa_v_head_dim") or (full.v_head_dim if head_dim == full.head_dim else head_dim)
        return Cache(SLIDING, heads, head_dim, value_dim, integer(text, "sliding_window"))
    if name == "chunked":
        window = integer(text, "attention_chunk_size")
        return Cache(CHUNKED, full.kv_heads, full.head_dim, full.v_head_dim, window)
    # Gemma 4 has wider heads, and fewer, in its full layers
    wide = integer(text, "global_head_dim")
    heads = integer(text, "num_global_key_value_heads") or full.kv_heads
    return Cache(FULL, heads, wide, wide) if wide else full


def _recurrent(text: Config) -> Cache:
    """The state of a gated delta net, a Kimi delta attention or a Mamba-2 layer, elements at TP 1; other forms have an unknown size.

    Elements are as wide as the config says, else as the model's dtype. GDN: value heads x key dim x value dim, and (2 x key heads x key dim + value heads x value dim) x (kernel - 1) for
    the convolution. KDA: heads x head dim x head dim in 32 bits, and 3 x heads x head dim x (kernel - 1).
    Mamba-2: heads x head dim x state size, and (heads x head dim + 2 x groups x state size) x (kernel - 1).
    """
    delta = text.get("linear_attn_config")
    if isinstance(delta, dict):
        heads, dim = integer(delta, "num_heads"), integer(delta, "head_dim")
        kernel = integer(delta, "short_conv_kernel_size")
        if heads and dim and kernel:
            wide = 3 * heads * dim
            return Cache(
                RECURRENT,
                state_elements=heads * dim * dim,
                conv_elements=wide * (kernel - 1),
                state_bytes_each=4,
                conv_width=wide,
            )
    stated = text.get("mamba_ssm_dtype") or text.get("mamba_ssm_cache_dtype")
    each = 4 if stated == "float32" or _dtype(text) == "float32" else 2
    values, keys = integer(text, "linear_num_value_heads"), integer(text, "linear_num_key_heads")
    key_dim, value_dim = integer(text, "linear_key_head_dim"), integer(text, "linear_value_head_dim")
    kernel = integer(text, "linear_conv_kernel_dim", "conv_kernel", "mamba_d_conv")
    if values and keys and key_dim and value_dim and kernel:
        wide = 2 * keys * key_dim + values * value_dim
        return Cache(
            RECURRENT,
            state_elements=values * key_dim * value_dim,
            conv_elements=wide * (kernel - 1),
            state_bytes_each=each,
            conv_width=wide,
        )
    heads = integer(text, "mamba_num_heads", "mamba_n_heads", "n_mamba_heads")
    head_dim, state = (
        integer(text, "mamba_head_dim", "mamba_d_head", "mamba_headdim"),
        integer(text, "ssm_state_size", "mamba_d_state"),
    )
    groups = integer(text, "n_groups", "mamba_n_groups", "mamba_ngroups")
    if heads and head_dim and state and groups and kernel:
        wide = heads * head_dim + 2 * groups * state
        return Cache(
            RECURRENT,
            state_elements=heads * head_dim * state,
            conv_elements=wide * (kernel - 1),
            state_bytes_each=each,
            conv_width=wide,
        )
    return Cache(RECURRENT)


def _compressed(ratios: Sequence[Any], window: int) -> tuple[tuple[Cache, ...], tuple[int, ...]]:
    """DeepSeek-V4: each layer names how many tokens share an entry, 0 or 1 for a window alone."""
    caches = [Cache(COMPRESSED, window=window, ratio=ratio if ratio in (4, 128) else 0) for ratio in ratios]
    kinds = tuple(dict.fromkeys(caches))
    return kinds, tuple(kinds.index(cache) for cache in caches)


def _by_blocks(blocks: Sequence[Any], heads: int, head_dim: int) -> tuple[tuple[Cache, ...], tuple[int, ...]]:
    """Searched architectures (Nemotron NAS): each block names its attention, or none."""
    kinds: list[Cache] = []
    pattern: list[int] = []
    for block in blocks[:_MOST_LAYERS]:
        attention = block.get("attention") if isinstance(block, dict) else None
        group = integer(attention, "n_heads_in_group") if isinstance(attention, dict) else None
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
    bits = integer(found, "bits", "w_bit") or _bits_of_groups(found)
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
            return integer(weights, "num_bits")
    return None
