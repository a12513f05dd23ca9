"""The engine's start-up check of a setup in words, and the answer to it in one line."""

from __future__ import annotations

import math

from oomdoc.fit.question import Question
from oomdoc.model.worksheet import PoolRow, Start
from oomdoc.physics.expect import Expected
from oomdoc.physics.interval import Interval
from oomdoc.physics.setup import Setup
from oomdoc.units import GIB, show_bytes

SLACK_GIB = 0.3  # what a device needs besides everything that is counted


def start_of(question: Question, setup: Setup, now: Expected) -> Start:
    """The start-up check of a setup in words, and whether graphs that were logged fit beside the plan."""
    if reason := divides(question, setup):
        return Start(False, "division", None, reason)
    if reason := too_long(question, now.filled.max_model_len):
        if question.positions_sure:
            return Start(False, "positions", None, reason)
        if now.starts is True:
            return Start(None, "positions", None, reason)
    if now.starts is True and now.budget is not None:
        graphs, outside = now.budget.graph_bytes, now.budget.outside_bytes
        over = graphs + now.budget.other_processes_bytes + SLACK_GIB * GIB - outside
        if graphs.origin == "logged" and not now.budget.graphs_planned and over.hi > 0:
            return Start(
                None,
                "capture",
                over,
                f"the pool fits, but CUDA graphs take {sizes_text(graphs)} behind the plan, which leaves {sizes_text(outside)}: capturing "
                "them may run out of memory",
            )
    need = show_bytes(now.pool.need_bytes) if now.pool else ""
    length = f"{now.filled.max_model_len:,}"
    have = sizes_text(now.available_bytes.at_least(0)) if now.available_bytes else ""
    lacking = sizes_text(now.lacking_bytes.at_least(0)) if now.lacking_bytes else ""
    if now.starts is True:
        if now.pool is None:
            return Start(True, None, None, f"nothing is kept between tokens; {have} are left beside the weights")
        says = f"one request of {length} tokens needs {need} of KV cache per GPU, {have} are available"
    elif now.available_bytes is None:
        says = "the weights of this model are not known, so nothing can be said about what is left for KV"
    elif now.refusal is None:
        says = f"{have} are left for KV per GPU; what a request takes of it cannot be computed for this model"
    else:
        certain = now.starts is False
        says = {
            "weights": f"the weights alone take {sizes_text(now.weights_bytes)} per GPU and the device has "
            f"{sizes_text(now.budget.total_bytes if now.budget else None)}",
            "free-memory": f"the engine wants {sizes_text(now.budget.requested_bytes if now.budget else None)} free at start; "
            f"{lacking} {'are' if certain else 'may be'} lacking",
            "no-blocks": f"weights, activations and CUDA context take the whole budget: {lacking} {'are' if certain else 'may be'} "
            "lacking before there is room for one block",
            "length": f"one request of {length} tokens needs {need} of KV cache per GPU, {have} are available; "
            f"{lacking} {'are' if certain else 'may be'} lacking",
        }[now.refusal]
    if now.starts is None and now.chance is not None:
        says += f"; {likelihood(now.chance)}"
    return Start(now.starts, now.refusal, now.lacking_bytes, says, now.chance)


LIKELY = 0.8
"""From this chance on an open check is called likely: four of five such among the published starts that may be read were right."""


def likelihood(chance: float) -> str:
    """A chance in words, never surer than the ranges behind it.

    >>> likelihood(0.97), likelihood(0.55), likelihood(0.02)
    ('it likely starts (9 in 10)', 'open (6 in 10 that it starts)', 'it likely does not start (9 in 10)')
    """
    side = max(chance, 1 - chance)
    tenths = f"{min(9, math.floor(side * 10 + 0.5))} in 10"
    if side < LIKELY:
        return f"open ({math.floor(chance * 10 + 0.5)} in 10 that it starts)"
    return f"it likely {'starts' if chance > 0.5 else 'does not start'} ({tenths})"


YARN_FAMILIES = ("qwen2", "qwen3", "llama", "mistral", "deepseek", "glm", "internlm", "granite")


def too_long(question: Question, length: int) -> str:
    """Why the engine refuses a length that the model does not state, and what allows it; empty where it does not."""
    stated = question.positions
    if stated is None or length <= stated:
        return ""
    says = f"the model states {stated:,} positions and the engine refuses max_model_len {length:,}"
    if not question.positions_sure:
        says = f"a relative of this model states {stated:,} positions: if it does too, the engine refuses max_model_len {length:,}"
    model = question.model
    if model.family.startswith(YARN_FAMILIES) and not model.rope_scaled:
        # Qwen3 is trained on 32,768 of the 40,960 it states
        trained = min(stated, 32_768) if model.family.startswith(("qwen2", "qwen3")) else stated
        factor = math.ceil(length / trained)
        scale = f'{{"rope_type": "yarn", "factor": {factor}.0, "original_max_position_embeddings": {trained}}}'
        name = "rope_parameters" if (question.setup.version or 1 << 30) >= ROPE_PARAMETERS_SINCE else "rope_scaling"
        says += f"; scaled positions lift it: --hf-overrides '{{\"{name}\": {scale}}}'"
    return says + "; VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 only silences the check"


ROPE_PARAMETERS_SINCE = 13_000  # from there on with transformers that spell it so


def answer_of(question: Question, now: Expected, start: Start, pool: PoolRow | None) -> str:
    """The answer in one line, without the setup it is for."""
    if start.starts is False:
        return "DOES NOT FIT"
    if start.starts is None:
        if start.check == "capture":
            return "STARTS BUT MAY FAIL WHILE CAPTURING GRAPHS"
        sure = start.chance is not None and max(start.chance, 1 - start.chance) >= LIKELY
        return "MAY FIT" if not sure else "LIKELY FITS" if (start.chance or 0) > 0.5 else "LIKELY DOES NOT FIT"
    if question.model.confirmed == "name":
        return "STARTS BUT THIS IS AN ESTIMATE FROM THE NAME"
    if pool is not None and pool.concurrency.hi < 2 and now.filled.max_num_seqs > 1:
        return "STARTS BUT HOLDS ONE LONG REQUEST AT A TIME"
    return "FITS"


def sizes_text(size: Interval | None) -> str:
    """`31.98 to 32.00 GiB`, or one figure where both ends look alike."""
    if size is None:
        return "unknown"
    low, high = show_bytes(size.lo), show_bytes(size.hi)
    if low == high:
        return low
    return (
        f"{low.removesuffix(' GiB')} to {high}" if low.endswith("GiB") and high.endswith("GiB") else f"{low} to {high}"
    )


def divides(question: Question, setup: Setup) -> str:
    """Why the engine refuses this division of the model; empty where it does not."""
    model, tp, pp = question.model, setup.tensor_parallel_size, setup.pipeline_parallel_size
    if model.confirmed == "name":  # heads of a guessed model are guesses too
        return ""
    if model.heads % tp:
        return f"{model.heads} attention heads do not divide by {tp}"
    heads = {cache.kv_heads for cache in model.caches if cache.kv_heads}
    for count in sorted(heads):
        if count % tp and tp % count:
            return f"{count} KV heads and {tp} ranks do not divide"
    if pp > model.layers:
        return f"{model.layers} layers do not fill {pp} stages"
    return ""
