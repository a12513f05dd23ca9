"""Planning figures: what no formula gives before the server has run once, as ranges and never as points.

Activations, memory outside torch and CUDA graphs depend on release, attention backend, compilation and driver. The
ranges below hold the figures that public logs and calibrations tell; `origin` is always `planning figure`.
"""

from __future__ import annotations

from dataclasses import replace

from oomdoc.physics.architecture import LATENT, Model
from oomdoc.physics.defaults import runner_rule
from oomdoc.physics.gpus import unified_memory
from oomdoc.physics.interval import Interval
from oomdoc.physics.kv import model_dtype_bytes
from oomdoc.regexes import regex
from oomdoc.units import GIB, MIB

ORIGIN = "planning figure"


LEAN_SAMPLER_SINCE = 17_000  # the source of 0.16.0 still sorts all logits, that of 0.17 filters them in place
SAMPLER_BYTES = Interval(36, 41, ORIGIN)
LEAN_SAMPLER_BYTES = Interval(14.5, 17, ORIGIN)
FUSED_SAMPLER_BYTES = 10
FUSED_SAMPLER_SINCE, FUSED_SAMPLER_UNTIL = 8_000, 11_999
"""Bytes per (sequence x vocabulary entry) while the engine tries its sampler: sorts and copies of 32-bit logits. Old: 5.6 GiB
at 1,024 x 152k (0.10, 0.11), 1.4 at 256 x 152k (0.6.6, 0.9.2, 0.13), 0.53 at 128 x 128k. New: 0.63 and 0.54 GiB with all
else at 256 x 152k and 256 x 128k (0.17.1); 1.9 to 3.9 GiB at 1,024 x 128k to 256k (0.19). Where FlashInfer is installed the
first V1 releases let it sample without a sort: 0.45 to 0.53 GiB with all else at 256 x 152k (three starts of 0.10.1), so
that before the lean one either may be found and no flag tells which."""

FORWARD = (1.2, 1.9)
"""Peak of the forward pass / its three largest tensors: 1.4 to 1.8 in six starts with few sequences (0.10 to 0.26)."""

SECOND_GRAPHS_SINCE = 29_000
"""Release from which the second model runner captures its largest graphs on trial and takes the estimate off; before, its
`profile_cudagraph_memory` returns 0 (vllm/v1/worker/gpu/model_runner.py)."""

SECOND_ENCODER_SINCE = 27_000
"""Release from which the second runner tries an encoder in its profile."""

SECOND_FORWARD = (1.3, 1.6)
"""Peak of its profile / the three largest tensors of the forward pass: 1.36 to 1.52 at 8,192 to 32,768 tokens (Llama-3.1-8B,
Qwen2.5-7B and 32B, Qwen3-4B on an H100, 0.26.0); no sampler is tried. A first start with an empty compile cache adds 0.22 GiB."""
_SECOND_REST_GIB = 0.25
SECOND_SAMPLER = (
    (22_000, Interval(6, 8, ORIGIN)),
    (26_000, Interval(2, 2.6, ORIGIN)),
    (29_000, Interval(2, 14, ORIGIN)),
    (33_000, Interval(6, 14, ORIGIN)),
)
"""Bytes per (sequence x vocabulary entry) of the second runner's trial, from which release on: logits in the model's 16 bits and,
where the sampler always works on one (until 0.25), a copy in 32; the newest row's trial sets every parameter, which takes the copy
and up to two more (vllm/v1/worker/gpu/model_runner.py, `_dummy_sampler_run`, and sample/sampler.py). From 0.29 on a start told
0.44 GiB at 256 x 152k, four times what its forward pass takes with 2,048 tokens: what takes it is not known, so that both ends are kept."""

ENCODER_BYTES = Interval(0.0, 1.6 * GIB, ORIGIN)
"""What the trial of a vision or audio encoder adds with up to 8,192 tokens in a step, in proportion above; nothing where the flags allow no such item."""

SPARSE_WORKSPACE = (40 * 132, 5 * 576 * 2)
"""Bytes per token of `max_model_len` that sparse latent attention sets aside for long prompts (vllm/v1/attention/backends/mla,
0.14 to 0.30: 40 indexer keys, or 5 latents in 16 bits where the cache has 8); experts may use the same room for theirs."""

BOUNDED_ENCODER_SINCE = 10_000
EARLY_ENCODER_BYTES = Interval(0.2 * GIB, 16 * GIB, ORIGIN)
"""The same before 0.10, whose trial takes the largest item that the processor allows: 4.1 to 15.7 GiB logged."""


def activation_bytes(
    model: Model,
    *,
    batched_tokens: int,
    max_num_seqs: int,
    tp: int = 1,
    dtype: str = "auto",
    version: int | None = None,
    encoder: bool = True,
    runner: str = "V1",
    max_model_len: int = 0,
) -> Interval:
    """Peak of activations in torch while the engine profiles itself with `batched_tokens` dummy tokens.

    The larger of two peaks that do not coincide. Forward pass: `FORWARD` times its three largest tensors, hidden states n
    x hidden x 3 and the MLP n x 2 x intermediate / TP (experts: n x top_k x (hidden + 2 x intermediate / TP)). Sampler:
    max_num_seqs x vocabulary x `SAMPLER_BYTES`, which depends on the release and not on the model. Linear in the tokens,
    so for far more of them than 8192 it is an upper bound. Prompt logprobs come on top. The second model runner
    (`runner` V2) profiles the forward pass alone.
    """
    floor = batched_tokens * _widest_bytes(model, tp, dtype)
    rows = 0 if model.pooled else max_num_seqs * (model.vocab_size or 128_000)
    fewest = 0 if model.scoring else rows
    if runner == "V2":
        plain = not (model.experts_per_token or model.recurrent or model.multimodal)
        low, high = SECOND_FORWARD if plain else FORWARD  # measured of plain decoders alone
        rest = _SECOND_REST_GIB * GIB
        each = next(
            (size for since, size in reversed(SECOND_SAMPLER) if version is None or version >= since),
            SECOND_SAMPLER[0][1],
        )
        encoder = encoder and (version is None or version >= SECOND_ENCODER_SINCE)
    else:
        (low, high), each, rest = FORWARD, LEAN_SAMPLER_BYTES, 0.1 * GIB
        if version is not None and version < LEAN_SAMPLER_SINCE:
            fused = FUSED_SAMPLER_SINCE <= version <= FUSED_SAMPLER_UNTIL
            each = replace(SAMPLER_BYTES, lo=FUSED_SAMPLER_BYTES) if fused else SAMPLER_BYTES
    peak = Interval(max(low * floor, fewest * each.lo), max(high * floor, rows * each.hi + 0.35 * floor) + rest, ORIGIN)
    if grows_with_length(model):
        least, most = SPARSE_WORKSPACE
        peak = Interval(max(peak.lo, least * max_model_len), peak.hi + most * max_model_len, ORIGIN)
    if not (model.multimodal and encoder):
        return peak
    if version is not None and version < BOUNDED_ENCODER_SINCE:
        return peak + EARLY_ENCODER_BYTES
    return peak + replace(ENCODER_BYTES, hi=ENCODER_BYTES.hi * max(1.0, batched_tokens / 8192))


def step_token_bytes(model: Model, *, tp: int = 1, dtype: str = "auto") -> Interval:
    """What one more token of a step adds to the peak of the forward pass; without the sampler, an encoder and what is there once."""
    low, high = FORWARD
    each = _widest_bytes(model, tp, dtype)
    return Interval(low * each, high * each, ORIGIN)


def _widest_bytes(model: Model, tp: int, dtype: str) -> float:
    """The three largest tensors of the forward pass, bytes per token."""
    element = model_dtype_bytes(model, dtype)
    wide = model.intermediate_size or 4 * model.hidden_size
    hidden = model.hidden_size * element * 3
    if model.experts_per_token:
        narrow = model.expert_size or wide
        return hidden + model.experts_per_token * (model.hidden_size + 2 * narrow / tp) * element
    return hidden + 2 * wide / tp * element


def grows_with_length(model: Model) -> bool:
    """Whether the profile's peak depends on `max_model_len`: sparse latent attention sets room aside for the longest prompts."""
    return any(cache.kind == LATENT and (cache.index_dim or cache.side_bytes) for cache in model.caches)


def runner_of(
    model: Model, version: int, stated: str | None = None, *, quantised: bool = False, drafts: str = ""
) -> str:
    """The model runner, V1 or V2: what a log or a variable states, else the default of the release for such a model.

    `quantised` is whether the weights are, `drafts` the method of speculation, if any.
    """
    if stated in ("V1", "V2"):
        return stated
    rule = runner_rule(version)
    if rule is None or drafts in rule.without or (quantised and not rule.quantised):
        return "V1"
    if rule.every:
        return "V2"
    if model.pooled:
        return "V1"
    dense = rule.dense and not (model.experts_per_token or model.recurrent)
    return "V2" if dense or model.family in rule.families else "V1"


def graphs_estimated(runner: str, version: int) -> bool:
    """Whether this runner estimates its graphs in a release that takes such an estimate off."""
    return runner == "V1" or version >= SECOND_GRAPHS_SINCE


KEPT_BYTES = Interval(0, 0.15 * GIB, ORIGIN)
"""What the device lacks after profiling besides weights and what is outside torch, in releases that take off what the device lacks:
tensors that runner and layers keep (buffers of the batch, tables of positions, workspaces of kernels) and pieces that the
allocator cannot give back (vllm/utils/mem_utils.py, `total_consumed`, 0.27 on). Earlier releases count the tensors in the peak."""

CONTEXT_BYTES = Interval(0.2 * GIB, 0.6 * GIB, ORIGIN)
"""A process's CUDA context and loaded kernels, by card and driver; about 0.5 GiB on an H100."""


def non_torch_bytes(tp: int = 1, device: str = "", *, context: bool = False) -> Interval:
    """CUDA context, loaded kernels, cuBLAS; with several ranks the buffers of NCCL and of the custom all-reduce.

    One rank up to 0.3 GiB: what is outside torch beyond the engine's own first look, 0.01 to 0.28 in nineteen logs that print
    it (0.6.4 to 0.26), 0.46 and 0.53 in two of AMD's cards. Several: 0.1 to 0.6 on cards without NVLink (0.09 to 0.22 on four 24 GB cards, 0.36 on four L40), 0.1 to 2.4 with it. Memory that the host shares
    (GB10) moves by a few GiB with the page cache: 0.2 to 3.2 GiB were lacking there, and 5.72 on the second of two that talk over a network. `context`: the release counts all
    that is outside torch, its own CUDA context among it (0.35 GiB logged by 0.6.4 on a card without a neighbour).
    """
    if context:
        return non_torch_bytes(tp, device) + CONTEXT_BYTES
    if unified_memory(device):
        shared = Interval(0.2 * GIB, 3.2 * GIB, ORIGIN)
        if tp == 1:
            return shared
        return shared + Interval(0.1 * GIB, 2.6 * GIB, ORIGIN)  # such ranks stand in hosts of their own
    if tp == 1:
        return Interval(0, (0.6 if _AMD.search(device) else 0.3) * GIB, ORIGIN)
    return (
        Interval(0.1 * GIB, 0.6 * GIB, ORIGIN)
        if _WITHOUT_NVLINK.search(device)
        else Interval(0.1 * GIB, 2.4 * GIB, ORIGIN)
    )


RANKS_APART = 0.02
"""What the poorest rank may have less for KV than the first, as a share of that: in 23 of 29 starts of several ranks (0.12 on) the
blocks are those of the printed bytes, in six they are fewer, by 0.2 to 1.8 % in the four that were looked at."""


def poorest_rank(printed_bytes: Interval) -> Interval:
    """What the rank with the least has for KV where the first one's line says so much."""
    return replace(printed_bytes, lo=printed_bytes.lo - RANKS_APART * max(0.0, printed_bytes.lo))


ONE_RANK_PRINTS_SINCE = 12_000


def one_rank_prints(version: int | None) -> bool:
    """Whether "Available KV cache memory" is printed by the first rank of a node alone (`info_once`, vllm/v1/worker/gpu_worker.py)."""
    return version is None or version >= ONE_RANK_PRINTS_SINCE


def beside_weights(device: str) -> Interval:
    """What "Model loading took" holds on this device beside the weights.

    On AMD's cards the engine counts what the device lacks afterwards and not torch's tensors (platforms/rocm.py), so that
    kernels and the rounding of the allocator are in it: 0.07 and 0.15 GiB in two starts. Nothing on others.
    """
    return Interval(0.02 * GIB, 0.2 * GIB, ORIGIN) if _AMD.search(device) else Interval(0, 0, ORIGIN)


SPREAD_SCALES = 2 / 128
"""Bytes of a weight more where 8-bit floats run on a card without kernels for them: the scale of a block of 128 x 128 becomes one in 16
bits per 128 weights of each column (marlin_utils_fp8.py: 14.46 GiB loaded for 14.14 to 14.28 on two Quadro RTX 6000)."""


def without_fp8(device: str) -> bool:
    """Whether this card has no arithmetic of 8-bit floats (NVIDIA before Ada and Hopper), so that Marlin's kernels widen them.

    >>> without_fp8("NVIDIA A100 80GB"), without_fp8("NVIDIA RTX A5000"), without_fp8("NVIDIA RTX 6000 Ada"), without_fp8("NVIDIA L40S")
    (True, True, False, False)
    """
    return _WITHOUT_FP8.search(device) is not None


_WITHOUT_FP8 = regex(
    r"(?i)\ba(?:2|10g?|16|30|40|100|800)\b|\brtx a\d{4}\b|rtx [23]0\d0|quadro|titan|orin|\b(?:v100s?|p100|p40|t4)\b"
)
_AMD = regex(r"(?i)\bamd\b|instinct|radeon|\bmi\d{2,3}x?\b|\brx[ -]?\d{4}")
_WITHOUT_NVLINK = regex(r"(?i)geforce|rtx|l40|l20|\bl4\b|\ba10g?\b|\bt4\b|arc")


MOVING_GRAPHS_GIB = 5.2
"""The most that an estimate of graphs was by several ranks whose hosts share their memory (4.99 of a start on two GB10, and on two
others 0.042 of the device: 0.80 that were worth 0.758): it is the free memory before and after, which buffers of the network and the host's page cache move as well. One rank: as elsewhere."""


def graph_bytes(
    *, enforce_eager: bool = False, max_num_seqs: int = 256, draft_tokens: int = 0, estimated: bool = False, tp: int = 1, device: str = ""
) -> Interval:  # fmt: skip
    """CUDA graphs that are captured after profiling: 0.03 to 2.5 GiB logged for dense models; nothing when eager.

    Fewer tokens in a step mean fewer sizes to capture: the upper end shrinks below 64. A sequence that drafts has its `draft_tokens`
    and one more in each step (0.74 and 0.88 GiB were estimated of 32 sequences with 3 and 15). `estimated` is what a release
    takes off beforehand: -0.1 to 1.0 GiB in all but four of thirty logs (0.20 to 0.26).
    """
    if enforce_eager:
        return Interval(0, 0, "given")
    share = min(1.0, max(0.2, max_num_seqs * (1 + draft_tokens) / 64))
    if estimated and tp > 1 and unified_memory(device):
        return Interval(30 * MIB, MOVING_GRAPHS_GIB * GIB, ORIGIN)
    return Interval(30 * MIB, (1.0 if estimated else 2.5) * GIB * share, ORIGIN)


def headroom_bytes(total_bytes: float, *, tp: int = 1, experts: bool = False) -> Interval:
    """Bytes to leave outside the plan where nothing about this server is known yet.

    Absolute, not a share of the card: what grows behind the plan's back (graphs that were not planned, kernels loaded
    late, workspaces, neighbours) does not grow with the card. 1.5 GiB below 20 GiB, 2 at 24, 3 to 4 at 40 to 48, 5 to 6
    from 80 on; half a GiB more for several ranks or experts. A proposal by judgement, not a measurement.
    """
    total_gib = total_bytes / GIB
    for most, low, high in ((20, 1.5, 1.5), (32, 2.0, 2.0), (60, 3.0, 4.0), (float("inf"), 5.0, 6.0)):
        if total_gib < most:
            more = 0.5 * ((tp > 1) + experts)
            return Interval((low + more) * GIB, (high + more) * GIB, ORIGIN)
    raise AssertionError("the last class has no end")
