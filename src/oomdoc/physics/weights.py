"""Bytes of the weights on one rank: formats, what a checkpoint leaves unquantised, what tensor parallelism does not share.

Formulas as in the engine's layers (vLLM 0.2.7 to 0.33) and the formats' papers; checked against logged "Model loading
took" figures: what is loaded is 1.000 to 1.003 times what is counted with the tables of `rotary`, up to 1.01 for formats
that repack.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from oomdoc.physics.architecture import Model, Parameters
from oomdoc.physics.interval import Interval, largest, point
from oomdoc.physics.rotary import rotary_bytes
from oomdoc.physics.speculation import Speculation

LOADED_OVER_COUNTED = (1.0, 1.01)
"""What engines report as loaded / what is counted here with the tables of `rotary`, over the logs that name model and format."""

TOWER_PARAMS = Interval(0.3e9, 0.75e9, "planning figure")
"""Parameters of a vision tower where neither a published total nor a checkpoint's size tells them (Qwen-VL, Gemma 3)."""

_MXFP4_PADS = ((256, 64), (256, 128))
"""What kernels for 4-bit float experts round hidden size and one rank's share of the expert's width up to: Triton, then Marlin
(gpt-oss-20b 13.72 for 12.8 GiB, gpt-oss-120b 64.4 to 66.0 for 60.8, and 17.22 on each of four ranks for 15.2)."""

DYNAMIC = 1.14
"""Loaded / counted at most where a 4-bit checkpoint skips modules that lose much ("dynamic" bitsandbytes)."""

ABSORBED_SINCE, FOLDED_UNTIL = 7_000, 7_003
"""Releases from which MLA keeps its up-projection a second time, and until which it kept products of it with the query and
output projections instead, which are larger (VLLM_MLA_PERFORM_MATRIX_ABSORPTION, on by default in 0.7.0 to 0.7.3)."""

LOADED_OVER_CHECKPOINT = (0.94, 1.02)
"""Loaded / size of the checkpoint's files: towers and layers for speculation may stay out; 1.02 is KAITO's planning factor."""

BY_NAME = "by its name"
_NAMED = (0.9, 1.12)  # counted / named in nine of ten text models of the catalogue: "7B" is 6.3 to 7.8 billion
_NAMED_SEEING = (0.82, 1.25)  # the same of models with a tower, which some makers count and others do not
_TOLD = (0.98, 1.02)  # a published total, rounded

LOADED_OVER_COPY = (0.93, 0.98, 1.02)
"""The same where nothing but the files' size tells what a copy left wide: at least where layers for speculation may stay out, at
least else, at most (0.94 without them, 1.00 to 1.016 with all, in seven starts that print both)."""

_VOCAB_PAD = 64  # vLLM pads the vocabulary to a multiple of this, so that ranks and kernels divide it
_DTYPE_BYTES = {"float32": 4.0, "tf32": 4.0, "float64": 8.0}


@dataclass(frozen=True)
class Format:
    """Bytes of one quantised weight with its scales and zeros; `experts_only` where the rest stays in the model's dtype,
    `vocabulary` where embedding and head are quantised too, `at_most` where the name leaves the bits open. `spares`:
    checkpoints of this format often leave attention and shared experts of MoE and hybrid models in 16 bits.
    """

    bytes_per_weight: float
    says: str
    experts_only: bool = False
    vocabulary: bool = False
    at_most: float | None = None
    spares: bool = False


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "fp8": Format(1 + 4 / 16384, "8-bit float, a 4-byte scale per 128 x 128 block at most"),
        "int8": Format(1.0, "8-bit integer, a scale per output row"),
        "awq": Format(
            0.5 + 2 / 128 + 0.5 / 128, "4 bits; a 2-byte scale and a packed 4-bit zero per 128 weights", spares=True
        ),
        "gptq": Format(
            0.5 + 2 / 128 + 0.5 / 128, "4 bits; a 2-byte scale and a packed 4-bit zero per 128 weights", spares=True
        ),
        "w4a16": Format(
            0.5 + 2 / 128, "4 bits without zeros; a 2-byte scale per 128 weights", at_most=0.5 + 2 / 32, spares=True
        ),
        "int4-experts": Format(0.5 + 2 / 32, "4-bit experts, a 2-byte scale per 32 weights", experts_only=True),
        "mxfp4": Format(0.5 + 1 / 32, "4-bit float experts, a 1-byte scale per 32 weights", experts_only=True),
        "nvfp4": Format(0.5 + 1 / 16, "4-bit float, a 1-byte scale per 16 weights", spares=True),
        "bitsandbytes": Format(
            0.5 + 0.127 / 8,
            "4 bits, a scale per 64 weights: 4 bytes, or 1 where the scales are quantised too",
            at_most=0.5 + 4 / 64,
        ),
        "4bit": Format(0.5 + 4 / 64, "4 bits in a format that the name does not tell"),
        "gguf": Format(0.606, "4 to 8 bits: the name tells no file", vocabulary=True, at_most=1.0625),
        "gguf-q2": Format(0.42, "about 3.35 bits, the mean of Q2_K's mixed tensors", vocabulary=True),
        "gguf-q3": Format(0.49, "about 3.9 bits, the mean of Q3_K_M's mixed tensors", vocabulary=True),
        "gguf-q4": Format(0.606, "about 4.85 bits, the mean of Q4_K_M's mixed tensors", vocabulary=True),
        "gguf-q5": Format(0.711, "about 5.7 bits, the mean of Q5_K_M's mixed tensors", vocabulary=True),
        "gguf-q6": Format(0.820, "6.56 bits of Q6_K", vocabulary=True),
        "gguf-q8": Format(1.0625, "8 bits, a 2-byte scale per 32 weights", vocabulary=True),
    }
)
"""Weight formats by the names that `--quantization`, a checkpoint's config or its name use."""

_SPELLINGS = {
    "awq_marlin": "awq", "gptq_marlin": "gptq", "marlin": "gptq", "modelopt": "fp8", "modelopt_fp4": "nvfp4", "fbgemm_fp8": "fp8",
    "petit_nvfp4": "nvfp4", "experts_int8": "int8", "deepspeedfp": "int8", "w8a8": "int8", "int4": "w4a16",
    "bnb": "bitsandbytes", "bitsandbytes_nf4": "bitsandbytes", "bitsandbytes_fp4": "bitsandbytes", "eetq": "int8", "w8a8_int8": "int8", "w8a8_fp8": "fp8", "ptpc_fp8": "fp8", "mxfp4_marlin": "mxfp4",
}  # fmt: skip


BY_CHECKPOINT = frozenset({
    "compressed_tensors", "quark", "auto_round", "inc", "torchao", "moe_wna16", "modelopt_mixed", "fp_quant", "humming", "deepseek_v4_fp8",
})  # fmt: skip
"""What `--quantization` takes that names a packer or one model's own method: how wide the weights are, only the checkpoint says."""

_EITHER = frozenset({"modelopt"})  # 8 or 4 bits by the same tool: 8 where the model's name does not say


def format_is_the_checkpoints(method: str, told: str | None = None) -> bool:
    """Whether a method says nothing of the width, so that the checkpoint's own format holds; `told` is what its name tells.

    >>> format_is_the_checkpoints("compressed-tensors"), format_is_the_checkpoints("modelopt", "nvfp4"), format_is_the_checkpoints("modelopt")
    (True, True, False)
    """
    text = method.lower().replace("-", "_")
    return text in BY_CHECKPOINT or (text in _EITHER and told is not None)


def known_format(name: str | None) -> str | None:
    """The key of `FORMATS` for a name as flags and configs spell it; None for none, `none`, and what is not known.

    >>> known_format("gptq_marlin"), known_format("FP8"), known_format("none"), known_format("squeezellm")
    ('gptq', 'fp8', None, None)
    """
    if not name:
        return None
    text = name.lower().replace("-", "_")
    text = _SPELLINGS.get(text, text.replace("_", "-"))
    return text if text in FORMATS else None


def dtype_bytes(dtype: str) -> float:
    """Bytes of one unquantised parameter: 2 for bfloat16, float16 (and half, auto), 4 for float32.

    >>> dtype_bytes("bfloat16"), dtype_bytes("float32"), dtype_bytes("auto")
    (2.0, 4.0, 2.0)
    """
    return _DTYPE_BYTES.get(dtype.lower(), 2.0)


def parts_of(model: Model) -> Parameters | None:
    """The model's parameters by the way they are shared out; None where not even their total is known.

    Where the family is not counted, the vocabulary and the K and V projections are computed and the rest is what
    remains of the published total (or of the checkpoint, where that is in 16 bits).
    """
    if model.parts:
        return model.parts
    vocabulary = (model.vocab_size or 0) * model.hidden_size
    total = model.params or _of_files(model, 2 * vocabulary)
    if total is None:
        return None
    kv = sum(
        model.hidden_size * cache.kv_heads * (cache.head_dim + cache.v_head_dim)
        for cache in (model.caches[index] for index in model.pattern if index >= 0)
    )
    rest = total - 2 * vocabulary - kv
    if rest < 0:
        return Parameters(0, 0, 0, 0, 0, 0, total)
    return Parameters(vocabulary, vocabulary, kv, 0, 0, 0, rest)


def _of_files(model: Model, vocabulary: int) -> int | None:
    """Parameters by the size of the checkpoint's files, whose format is that of the files and of nothing else."""
    if not model.checkpoint_bytes:
        return None
    wide = dtype_bytes(model.dtype)
    if not model.checkpoint_format:
        return round(model.checkpoint_bytes / wide)
    method = known_format(model.checkpoint_format)
    if method is None or FORMATS[method].experts_only:
        return None
    rest = model.checkpoint_bytes - vocabulary * wide
    return round(vocabulary + rest / FORMATS[method].bytes_per_weight) if rest > 0 else None


def weights_bytes(
    model: Model,
    *,
    quantization: str | None = None,
    dtype: str = "auto",
    tp: int = 1,
    pp: int = 1,
    encoder: bool = True,
    version: int | None = None,
) -> Interval | None:
    """Loaded weights of the fullest rank; None where the parameters of the model are not known.

    `quantization` None is that of the model's own checkpoint, `none` is none; `version` is the release, None the newest. Origin `catalogue` or `config`. A published
    total (not counted) widens the result by 2 % each way, a checkpoint's size as `LOADED_OVER_CHECKPOINT` says. Without
    `encoder` the tower of a multimodal model is not loaded.
    """
    stages = stage_weights(
        model, quantization=quantization, dtype=dtype, tp=tp, pp=pp, encoder=encoder, version=version
    )
    return largest(stages) if stages else None


def stage_weights(
    model: Model,
    *,
    quantization: str | None = None,
    dtype: str = "auto",
    tp: int = 1,
    pp: int = 1,
    encoder: bool = True,
    version: int | None = None,
) -> tuple[Interval, ...]:
    """The same for one rank of each pipeline stage, first stage first; empty where nothing is known.

    Divided by TP: everything but norms, routers and latent down-projections (on every rank) and K and V, which stop at
    one head per rank. Layers are taken to weigh alike. The first stage has the embedding, the last the head; a tied
    matrix stands on both. Expert parallelism at one data-parallel rank divides the experts by the same number.
    """
    origin = "config" if model.confirmed == "config" else "catalogue"
    wanted = model.quantization if quantization is None else quantization
    method = known_format(wanted)
    own = wanted == model.checkpoint_format or (method is not None and method == known_format(model.checkpoint_format))
    if wanted and method is None and wanted != "none":
        if own and model.checkpoint_bytes:
            return _of_checkpoint(model, origin, tp, pp)
        return ()
    parts = parts_of(model)
    if parts is None or (parts.total and method and FORMATS[method].experts_only and not model.parts):
        return _of_checkpoint(model, origin, tp, pp) if own and model.checkpoint_bytes else ()
    wide = dtype_bytes(model.dtype if dtype in ("auto", "") else dtype)
    ends = [
        _stage_ends(model, parts, method, wide, slim, spared, tp, pp, version)
        for slim, spared in _bytes_each(model, parts, method, wide, tp)
    ]
    tower = (_tower(model) if encoder else point(0)) * wide / tp
    least, most = (1.0, 1.0) if model.parts else _looseness(model)
    low, high = LOADED_OVER_COUNTED
    if method == "bitsandbytes" and _dynamic(model):
        high = DYNAMIC
    stages = []
    for place in range(pp):
        sizes = [end[place] for end in ends]
        each = Interval(min(sizes) * low * least, max(sizes) * high * most, origin)
        stages.append(each + tower if place == 0 and tower.hi else each)
    tables = rotary_bytes(model)
    if model.copy_bytes and (quantization is None or own or method == known_format(model.quantization)):
        stages = _by_listing(model, stages, parts, method, wide)
    elif own and model.checkpoint_bytes and model.confirmed == "config":
        stages = _by_files(model, stages, parts, method, wide)
    return tuple(each + tables for each in stages)


def _dynamic(model: Model) -> bool:
    """A 4-bit copy that skips modules which lose much: its maker names it so, and plain copies without that word."""
    return "unsloth-bnb" in model.asked.lower()


def _looseness(model: Model) -> tuple[float, float]:
    """Bounds of the true number of parameters / the one that is told, where nothing was counted."""
    if model.basis != BY_NAME:
        return _TOLD
    return _NAMED_SEEING if model.multimodal else _NAMED


def _by_files(
    model: Model, stages: list[Interval], parts: Parameters, method: str | None, wide: float
) -> list[Interval]:
    """The stages on the scale of the weight files that lie beside the config: they know what was left unquantised."""
    slim, spared = _bytes_each(model, parts, method, wide)[0]
    (whole,) = _stage_ends(model, parts, method, wide, slim, spared, 1, 1)
    scale = (model.checkpoint_bytes or 0) / (whole + _tower(model).middle * wide)
    low, high = LOADED_OVER_CHECKPOINT
    return [Interval(each.lo * scale * low, each.lo * scale * high, each.origin) for each in stages]


def _by_listing(
    model: Model, stages: list[Interval], parts: Parameters, method: str | None, wide: float
) -> list[Interval]:
    """The stages within what the listed files of this very copy can load; one of several revisions may be meant."""
    (low, high), (with_drafts, without, most) = LOADED_OVER_COUNTED, LOADED_OVER_COPY
    ends = [_stage_ends(model, parts, method, wide, *each, 1, 1)[0] for each in _bytes_each(model, parts, method, wide)]
    counted = Interval(min(ends) * low, max(ends) * high) + _tower(model) * wide
    least = with_drafts if model.draft_layers else without
    shares = []
    for size in model.copy_bytes:
        band = Interval(size * least, size * most)
        both = band.overlaps(counted)
        shares += [max(band.lo, counted.lo) if both else band.lo, min(band.hi, counted.hi) if both else band.hi]
    scales = min(shares) / counted.lo, max(shares) / counted.hi
    return [Interval(each.lo * scales[0], each.hi * scales[1], each.origin) for each in stages]


_AWQ_OF_32 = 0.5 + 2 / 32 + 0.5 / 32
_GROUPS_OF_32 = ("cyankiwi", "cpatonn")  # config.json copies of theirs of such models: group_size 32
_ALWAYS_OF_32 = "cyankiwi"
"""Of any model, as a log says of one with latents; under their earlier name 128 (Qwen3-30B-A3B)."""


_LINEAR_KEPT = ("qwen3_5",)
"""Families whose recipe for 4-bit integers of llm-compressor leaves the linear attention alone (its `qwen3_5_moe_w4a16_distributed.py`;
`qwen3_next_example.py` does not)."""


def _bytes_each(
    model: Model, parts: Parameters, method: str | None, wide: float, tp: int = 1
) -> list[tuple[float, str]]:
    """The ends of what this format may mean: bytes of a quantised weight, and what stays in 16 bits beside the usual."""
    if method is None:
        return [(wide, "")]
    found = FORMATS[method]
    each = [found.bytes_per_weight, *([found.at_most] if found.at_most else [])]
    if method == "mxfp4":
        each = [found.bytes_per_weight * _padding(model, pads, tp) for pads in _MXFP4_PADS]
    if method == "bitsandbytes" and _dynamic(model):
        each = each[-1:]  # what is skipped counts on top, and their scales are 4 bytes
    if method == "fp8" and model.maker == "meta-llama" and model.parts:
        return [(slim, "attention") for slim in each]  # their own 8-bit copies quantise feed-forward blocks alone
    if method == "fp8" and model.maker == "nvidia" and parts.entry:
        return [(slim, "entry") for slim in each]
    if model.maker == "poolside" and model.parts:  # the sizes on their cards (FP8, NVFP4, INT4) leave all but experts
        return [(slim, "shared") for slim in each]
    if found.spares and model.parts:
        mixed = parts.experts > 0 or model.recurrent or model.hybrid
        if method == "awq" and model.maker == _ALWAYS_OF_32:
            each = [_AWQ_OF_32]
        elif method == "awq" and parts.experts and not model.maker:
            each.append(_AWQ_OF_32)  # a folder's name: copies of such models come in groups of 32 or of 128
        if method == "awq" and (model.recurrent or model.hybrid):
            # such models come in groups of 32 as often as of 128
            each = [_AWQ_OF_32] if model.maker in _GROUPS_OF_32 else [*each, _AWQ_OF_32]
        if method == "nvfp4" and model.maker == "nvidia" and mixed:
            return [(slim, spared) for slim in each for spared in ("attention", "shared")]
        if model.recurrent or (parts.experts > 0 and model.hybrid):
            least = "linear" if method == "w4a16" and model.family.startswith(_LINEAR_KEPT) else ""
            return [(slim, spared) for slim in each for spared in (least, "shared")]
    return [(slim, "") for slim in each]


def _padding(model: Model, pads: tuple[int, int], tp: int) -> float:
    """Bytes of experts with their padding / without it."""
    hidden, narrow = model.hidden_size, (model.expert_size or model.intermediate_size or 0) / tp
    if not hidden or not narrow:
        return 1.0
    return -(-hidden // pads[0]) * pads[0] / hidden * (-(-narrow // pads[1]) * pads[1] / narrow)


def _stage_ends(
    model: Model, parts: Parameters, method: str | None, wide: float, slim: float, spared: str, tp: int, pp: int,
    version: int | None = None,
) -> list[float]:  # fmt: skip
    """Bytes of each stage; `spared` is "" for nothing, `attention`, `shared` for attention and shared experts, `entry` or `linear`
    for those parts of the attention.
    """
    linear = wide if method and FORMATS[method].experts_only else slim
    layers = model.layers or 1
    heads = model.kv_heads
    kv_share = max(1, heads // tp) / heads if heads else 1 / tp
    projections = wide if spared not in ("", "linear") else linear  # K, V and what stands on every rank
    kept = {"": 0, "entry": parts.entry, "linear": parts.linear}.get(
        spared, parts.attention
    )  # of the attention, in 16 bits
    shared = wide if spared == "shared" else linear
    body = (
        parts.experts * slim / tp
        + (parts.rest - parts.attention - parts.shared) / tp * linear
        + kept / tp * wide
        + (parts.kv * kv_share + parts.replicated) * projections
        + (parts.attention - kept) / tp * linear
        + parts.shared / tp * shared
        + parts.small * wide
        + _kept_twice(parts, slim if method == "fp8" else wide, wide, version) / tp
    )
    vocabulary = slim if method and FORMATS[method].vocabulary else wide
    embedding = _padded(parts.embedding, model) * vocabulary / tp
    head = _padded(parts.head, model) * vocabulary / tp
    stages = []
    for place, count in enumerate(stage_layers(layers, pp)):
        first, last = place == 0, place == pp - 1
        size = body * count / layers + (embedding if first else 0)
        if last:
            size += head or (0 if first else embedding)
        stages.append(size)
    return stages


def _kept_twice(parts: Parameters, folded: float, wide: float, version: int | None) -> float:
    """Bytes that MLA keeps beside what the checkpoint holds, on all ranks together; 8-bit products stay in 8 bits."""
    if version is not None and version < ABSORBED_SINCE:
        return 0.0
    if version is not None and version <= FOLDED_UNTIL:
        return parts.folded * folded
    return parts.absorbed * wide


def draft_bytes(model: Model, speculation: Speculation, *, dtype: str = "auto", tp: int = 1) -> Interval:
    """Weights of what drafts, on the rank that has it; nothing for n-gram lookups.

    A layer that drafts is one of the target's in 16 bits and a projection of 2 (MTP) to 3 (EAGLE) hidden states; EAGLE
    brings a vocabulary of its own of up to the target's size. A whole draft model is counted as what it is.
    """
    if speculation.draft is not None:
        return weights_bytes(speculation.draft, dtype=dtype, tp=tp) or point(0)
    parts = parts_of(model)
    if not speculation.layers or parts is None:
        return point(0)
    wide = dtype_bytes(model.dtype if dtype in ("auto", "") else dtype)
    hidden = model.hidden_size
    body = (parts.total - parts.embedding - parts.head) / (model.layers or 1)
    if speculation.method.startswith("eagle") or speculation.model:
        dense = (parts.total - parts.embedding - parts.head - parts.experts) / (model.layers or 1)
        least, most = dense + 3 * hidden**2, body + 3 * hidden**2 + 2 * parts.embedding
    else:
        least, most = body * 0.9 + 2 * hidden**2, body * 1.1 + 2 * hidden**2 + 2 * hidden**2
    layers = speculation.layers
    return Interval(min(least, most) * wide * layers / tp, max(least, most) * wide * layers / tp, "planning figure")


def _tower(model: Model) -> Interval:
    """Parameters of a multimodal model's encoder that the count of its language model leaves out."""
    if model.parts is None or not (model.multimodal or model.tower_params):
        return point(0)
    if model.tower_params is not None:
        return point(model.tower_params, "catalogue")
    if model.checkpoint_bytes and model.checkpoint_format is None:
        return point(max(0.0, model.checkpoint_bytes / dtype_bytes(model.dtype) - model.parts.total), "catalogue")
    return TOWER_PARAMS


def stage_layers(layers: int, pp: int, version: int | None = None) -> tuple[int, ...]:
    """Decoder layers of each pipeline stage: the remainder goes to the stages before the last (vLLM 0.7 on), one each.

    Until 0.6 the last stage took the whole remainder (vllm/distributed/utils.py, get_pp_indices).

    >>> stage_layers(94, 4), stage_layers(94, 4, 6003)
    ((23, 24, 24, 23), (23, 23, 23, 25))
    """
    each, left = divmod(layers, pp)
    counts = [each] * pp
    if version is not None and version < 7000:
        counts[-1] += left
    else:
        for place in range(left):
            counts[-2 - place] += 1
    return tuple(counts)


def _padded(count: int, model: Model) -> float:
    if not count or not model.vocab_size:
        return count
    return count / model.vocab_size * (-(-model.vocab_size // _VOCAB_PAD) * _VOCAB_PAD)


def _of_checkpoint(model: Model, origin: str, tp: int, pp: int) -> tuple[Interval, ...]:
    low, high = LOADED_OVER_CHECKPOINT
    each = point(model.checkpoint_bytes or 0, origin) * Interval(low, high, origin) / (tp * pp)
    return (each,) * pp


def named_size(name: str) -> float | None:
    """Parameters by a name such as `70b`, `0.6B`, `8x7B` (experts share attention: x 0.83); None where it tells none.

    A point may be written as an underscore between digits, and of `1B-7B` (active and all) the whole is meant.

    >>> named_size("acme/Chat-70B-Instruct"), named_size("8x7b"), named_size("phi-4")
    (70000000000.0, 46480000000.0, None)
    >>> named_size("acme/lm2_5-1_8b-chat"), named_size("acme/MoE-1B-7B")
    (1800000000.0, 7000000000.0)
    """
    text = re.sub(r"(?<=\d)_(?=\d+b(?![a-z0-9]))", ".", name.rpartition("/")[2], flags=re.IGNORECASE)
    if found := re.search(r"(?i)(?<![\w.])(\d+)x(\d+(?:\.\d+)?)b(?![a-z0-9])", text):
        return round(int(found[1]) * float(found[2]) * 0.83 * 1e9, -6)
    if sizes := re.findall(r"(?i)(?<![\d.a])(\d+(?:\.\d+)?)b(?![a-z0-9])", text):
        return max(float(size) for size in sizes) * 1e9
    return None
