"""Planning figures: what no formula gives before the server has run once, as ranges and never as points.

Activations, memory outside torch and CUDA graphs depend on release, attention backend, compilation and driver. The
ranges below hold the figures that public logs and calibrations tell; `origin` is always `planning figure`.
"""

from __future__ import annotations

from oomdoc.physics.architecture import Model
from oomdoc.physics.interval import Interval
from oomdoc.physics.kv import model_dtype_bytes
from oomdoc.units import GIB, MIB

ORIGIN = "planning figure"


def activation_bytes(
    model: Model, *, batched_tokens: int, max_num_seqs: int, tp: int = 1, dtype: str = "auto"
) -> Interval:
    """Peak of activations in torch while the engine profiles itself with `batched_tokens` dummy tokens.

    Floor, the three largest terms: hidden states n x hidden x 3; the MLP n x 2 x intermediate / TP (experts: n x top_k x
    (hidden + 2 x intermediate / TP)); logits in 16 and 32 bits, max_num_seqs x vocab x 6 bytes. The range is 0.7 x floor
    to 2 x floor + 0.5 GiB: inside it lie the peaks published for 0.10 to 0.19 (0.85 to 3.9 GiB at 2048 to 8192 tokens).
    Linear in the tokens, so for far more of them than 8192 it is an upper bound. Prompt logprobs come on top.
    """
    element = model_dtype_bytes(model, dtype)
    wide = model.intermediate_size or 4 * model.hidden_size
    hidden = batched_tokens * model.hidden_size * element * 3
    if model.experts_per_token:
        mlp = batched_tokens * model.experts_per_token * (model.hidden_size + 2 * wide / tp) * element
    else:
        mlp = batched_tokens * 2 * wide / tp * element
    logits = max_num_seqs * (model.vocab_size or 128_000) * (element + 4)
    floor = hidden + mlp + logits
    return Interval(0.7 * floor, 2 * floor + 0.5 * GIB, ORIGIN)


def non_torch_bytes(tp: int = 1) -> Interval:
    """CUDA context, loaded kernels, cuBLAS; with several ranks the buffers of NCCL and of the custom all-reduce.

    One rank 0.05 to 0.6 GiB (the lower end where the engine measured after the context existed), several 0.3 to 3 GiB.
    """
    return Interval(0.05 * GIB, 0.6 * GIB, ORIGIN) if tp == 1 else Interval(0.3 * GIB, 3 * GIB, ORIGIN)


def graph_bytes(*, enforce_eager: bool = False, max_num_seqs: int = 256) -> Interval:
    """CUDA graphs that are captured after profiling: 0.03 to 2.5 GiB logged for dense models; nothing when eager.

    Fewer sequences mean fewer sizes to capture: the upper end shrinks below 64 sequences.
    """
    if enforce_eager:
        return Interval(0, 0, "given")
    return Interval(30 * MIB, 2.5 * GIB * min(1.0, max(0.2, max_num_seqs / 64)), ORIGIN)


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
