"""The worksheet: one question, all answers. Every number comes from `physics` through `judge`; here they are chosen and named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from oomdoc.fit.judge import at_once, filled, judge, longest
from oomdoc.fit.question import Question
from oomdoc.fit.start import SLACK_GIB, answer_of, divides, start_of
from oomdoc.model.worksheet import (
    Alternative,
    AtOnce,
    Command,
    Input,
    Longest,
    Part,
    PoolRow,
    Template,
    Utilization,
    Worksheet,
)
from oomdoc.physics.budget import round_utilization_down, utilization_for
from oomdoc.physics.defaults import show_release
from oomdoc.physics.expect import Expected
from oomdoc.physics.interval import Interval
from oomdoc.physics.kv import stage_caches, state_bytes
from oomdoc.physics.planning import headroom_bytes
from oomdoc.physics.setup import Setup
from oomdoc.physics.weights import FORMATS, known_format
from oomdoc.units import GIB, show_bytes

__all__ = ["divides", "formats", "start_of", "worksheet"]

LOGPROBS_TOKENS = 2048
SHORT_TOKENS = 4096  # a chat turn with its history: the largest of the S and M buckets of the request profile, doubled
LONG_TOKENS = 32_768
FEWEST_SEQS = 64  # at once: below it, sequences are what a server is bought for
_ROUND_TOKENS = 1024
_RANKS = (1, 2, 4, 8)
_HIGHEST_UTILIZATION = 0.98


def worksheet(question: Question) -> Worksheet:
    """Every answer to the question."""
    setup = question.setup
    now = judge(question, setup)
    far = longest(question, setup)
    safe = None if question.pool_by_hand else _utilization(question, now)
    start, pool = start_of(question, setup, now), _pool(now)
    return Worksheet(
        model=question.name,
        architecture=question.model.name,
        device=question.device,
        ranks=setup.tensor_parallel_size * setup.pipeline_parallel_size,
        inputs=(*question.inputs, *_filled_inputs(question, now)),
        answer=answer_of(question, now, start, pool),
        start=start,
        parts=_parts(now),
        total_bytes=question.total_bytes,
        kv_bytes_per_token=now.kv_bytes_per_token,
        state_bytes_per_request=_state(question),
        pool=pool,
        longest=None if far is None else Longest(far, question.model.max_position_embeddings),
        at_once=_at_once(question),
        utilization=safe,
        alternatives=tuple(_alternatives(question, now)),
        templates=_templates(question, safe.safest) if safe else (),
        command=_command(question, safe.safest if safe else None),
        doubts=(*question.doubts, *_doubts(question, now)),
    )


# ---- inputs and the plain answers


def _filled_inputs(question: Question, now: Expected) -> Iterator[Input]:
    """What nobody stated: defaults of the release, computed and planned figures."""
    named = {entry.name for entry in question.inputs}
    for name, origin in now.filled.origins.items():
        if name == "generation":
            continue
        shown = "engine version" if name == "version" else name
        value: Any = getattr(now.filled, name)
        if name == "version":
            value = show_release(value)
        if shown not in named:
            yield Input(shown, value, origin)
    if "tensor_parallel_size" not in named:
        yield Input("tensor_parallel_size", question.setup.tensor_parallel_size, "default")
    if "kv_cache_dtype" not in named:
        yield Input("kv_cache_dtype", question.setup.kv_cache_dtype, "default")
    budget = now.budget
    if budget is None:
        return
    for title, figure in (
        ("weights", budget.weights_bytes),
        ("activations", budget.activation_bytes),
        ("outside torch", budget.non_torch_bytes),
        ("CUDA graphs", budget.graph_bytes),
    ):
        if title not in named:
            yield Input(title, figure, figure.origin)


def _parts(now: Expected) -> tuple[Part, ...]:
    parts = []
    if now.weights_bytes is not None:
        parts.append(Part("weights", now.weights_bytes))
    if now.budget is not None:
        parts.append(Part("activations", now.budget.activation_bytes))
        parts.append(Part("outside torch", now.budget.non_torch_bytes))
    if now.available_bytes is not None:
        parts.append(Part("KV pool", now.available_bytes.at_least(0)))
    if now.budget is not None:
        planned = now.budget.graphs_planned
        parts.append(Part("CUDA graphs, planned" if planned else "CUDA graphs, not planned", now.budget.graph_bytes))
        parts.append(Part("left out of the plan", now.budget.outside_bytes))
    return tuple(parts)


def _state(question: Question) -> int | None:
    """Recurrent state of one request on the fullest stage; 0 without such layers, None where its size is not known."""
    tp, pp = question.setup.tensor_parallel_size, question.setup.pipeline_parallel_size
    most = 0
    for stage in stage_caches(question.model, pp, question.setup.version):
        states = [state_bytes(cache, tp=tp) for cache in stage]
        if any(state is None for state in states):
            return None
        most = max(most, sum(state or 0 for state in states))
    return most


def _pool(now: Expected) -> PoolRow | None:
    pool = now.pool
    if pool is None:
        return None
    layout = pool.layouts[0]
    return PoolRow(
        pool.blocks,
        layout.block_tokens,
        layout.block_bytes,
        len(layout.groups),
        pool.tokens,
        pool.need_blocks,
        pool.need_bytes,
        pool.concurrency,
    )


def _at_once(question: Question) -> tuple[AtOnce, ...]:
    found = []
    for size in question.sizes:
        requests = at_once(question, question.setup, size.input_tokens + size.output_tokens)
        if requests is not None:
            found.append(AtOnce(size.name, size.input_tokens, size.output_tokens, requests))
    return tuple(found)


# ---- utilization


def _utilization(question: Question, now: Expected) -> Utilization:
    headroom, why = _headroom(question, now)
    total = question.total_bytes
    safest = max(0.01, round_utilization_down(1 - headroom.hi / total.lo))
    free = question.measured.known.free_at_start_bytes if question.measured else None
    if free is not None:
        safest = min(safest, round_utilization_down(free.lo / total.hi))
    then = judge(question, replace(question.setup, gpu_memory_utilization=safest))
    needed = None
    if now.pool is not None and now.available_bytes is not None:
        needed = utilization_for(
            now.pool.need_bytes, now.available_bytes, total, now.filled.gpu_memory_utilization
        ).at_least(0)
    tokens = then.pool.tokens if then.pool else None
    return Utilization(now.filled.gpu_memory_utilization, safest, headroom, why, then.starts, tokens, needed)


def _headroom(question: Question, now: Expected) -> tuple[Interval, str]:
    """Bytes to keep outside the plan: from this server's own figures where it has run, else the planning figure."""
    known = question.measured.known if question.measured else None
    if known is not None and known.graph_bytes is not None and now.budget is not None:
        transient = LOGPROBS_TOKENS * (question.model.vocab_size or 128_000) * 4
        others = known.other_processes_bytes or Interval(0, 0, "assumed")
        graphs = Interval(0, 0, "logged") if now.budget.graphs_planned else known.graph_bytes
        size = graphs + others + (SLACK_GIB * GIB + transient)
        planned = headroom_bytes(question.total_bytes.lo, tp=question.setup.tensor_parallel_size)
        if size.hi < planned.hi / 2:  # what was measured once is not all that can come
            size = planned / 2
            return size, f"it leaves {show_bytes(size.hi)} outside the plan, half of what one leaves before a first run"
        words = [] if now.budget.graphs_planned else [f"{show_bytes(known.graph_bytes.hi)} of CUDA graphs"]
        words += [f"{show_bytes(others.hi)} of other processes"] if others.hi else []
        words += [
            f"{show_bytes(transient)} for one prompt of {LOGPROBS_TOKENS:,} tokens with logprobs",
            f"{SLACK_GIB} GiB of slack",
        ]
        return size, "it leaves " + ", ".join(words) + " outside the plan"
    size = headroom_bytes(
        question.total_bytes.lo,
        tp=question.setup.tensor_parallel_size,
        experts=question.model.experts_per_token > 0,
    )
    return size, f"it leaves {show_bytes(size.hi)} outside the plan, absolute and not a share of the card"


# ---- what a change does


def _alternatives(question: Question, now: Expected) -> Iterator[Alternative]:
    setup = question.setup
    yield _alternative(question, "present", "as asked", {}, setup)
    tp, pp = setup.tensor_parallel_size, setup.pipeline_parallel_size
    for ranks in sorted({*_RANKS, tp, tp * 2 if tp >= 8 else tp}):
        if ranks != tp:
            flags = {"tensor_parallel_size": ranks}
            yield _alternative(question, "parallel", f"TP {ranks}", flags, replace(setup, tensor_parallel_size=ranks))
    if question.model.layers >= pp * 2:
        flags = {"pipeline_parallel_size": pp * 2}
        yield _alternative(question, "parallel", f"PP {pp * 2}", flags, replace(setup, pipeline_parallel_size=pp * 2))
    if setup.kv_cache_dtype == "auto" and question.model.kv_cache_scheme is None:
        changed = replace(setup, kv_cache_dtype="fp8")
        yield _alternative(question, "kv", "KV cache fp8", {"kv_cache_dtype": "fp8"}, changed)
    elif setup.kv_cache_dtype != "auto":
        changed = replace(setup, kv_cache_dtype="auto")
        yield _alternative(question, "kv", "KV cache auto", {"kv_cache_dtype": "auto"}, changed)
    yield from formats(question)


def formats(question: Question) -> Iterator[Alternative]:
    """What a checkpoint of 8 or 4 bits changes, as far as it is smaller than the one asked about."""
    setup = question.setup
    present = known_format(setup.quantization if setup.quantization is not None else question.model.quantization)
    for method in ("fp8", "awq"):
        if method != present and not (
            present and FORMATS[present].bytes_per_weight <= FORMATS[method].bytes_per_weight
        ):
            changed = replace(setup, quantization=method)
            yield _alternative(question, "weights", f"weights {method}", {"quantization": method}, changed)


def _alternative(question: Question, kind: str, name: str, flags: Mapping[str, Any], setup: Setup) -> Alternative:
    reason = divides(question, setup)
    if reason:
        return Alternative(kind, name, flags, False, None, None, None, None, reason)
    result = judge(question, setup)
    far = longest(question, setup)
    return Alternative(
        kind,
        name,
        flags,
        start_of(question, setup, result).starts,
        result.weights_bytes,
        result.kv_bytes_per_token,
        result.pool.tokens if result.pool else None,
        None if far is None else int(far.lo),
        _says(question, kind, setup, result),
    )


def _says(question: Question, kind: str, setup: Setup, result: Expected) -> str:
    model, tp = question.model, setup.tensor_parallel_size
    if kind == "kv" and setup.kv_cache_dtype == "auto":
        return "the dtype of the model"
    if kind == "kv":
        return "fewer bytes per token; quality and kernels to be tested"
    if kind == "weights":
        return "needs a checkpoint in this format; the KV cache stays as it is"
    if setup.pipeline_parallel_size > question.setup.pipeline_parallel_size:
        return f"on {tp * setup.pipeline_parallel_size} GPUs: layers are split, weights and KV per GPU shrink alike"
    if model.latent:
        return "TP does not divide the latent cache: every rank keeps all of it" if tp > 1 else ""
    heads = model.kv_heads
    if heads and tp > heads:
        return f"{heads} KV heads: every head stands on {tp // heads} ranks, KV per GPU shrinks no further"
    if heads and tp > 1:
        return f"KV heads are split: {heads // tp} of {heads} per GPU"
    return ""


# ---- what to start


def _round_down(tokens: float) -> int:
    return int(tokens) // _ROUND_TOKENS * _ROUND_TOKENS or int(tokens)


def _round_up(tokens: int) -> int:
    return -(-tokens // _ROUND_TOKENS) * _ROUND_TOKENS


def _templates(question: Question, safest: float) -> tuple[Template, ...]:
    if judge(question, question.setup).pool is None:
        return ()
    contexts = [size.input_tokens + size.output_tokens for size in question.sizes]
    length = filled(question, question.setup).max_model_len
    short = min(contexts) if len(contexts) > 1 else SHORT_TOKENS
    long = max(contexts) if contexts else min(length, LONG_TOKENS)
    limit = question.limit or length
    templates: list[Template] = []
    for name, context in (("short", min(short, limit)), ("long", min(long, limit))):
        if name == "long" and templates and context <= short:
            break
        templates.append(_template(question, name, context, safest, min(limit, _round_up(context))))
    return tuple(templates)


def _template(question: Question, name: str, context: int, safest: float, length: int) -> Template:
    present = filled(question, question.setup)
    batched = min(present.max_num_batched_tokens, 8192)
    utilization = min(present.gpu_memory_utilization, safest)
    setup = replace(
        question.setup, gpu_memory_utilization=utilization, max_model_len=length, max_num_batched_tokens=batched
    )
    if judge(question, setup).starts is not True and utilization < safest:
        utilization = safest
        setup = replace(setup, gpu_memory_utilization=safest)
    # smaller steps make the peak of activations smaller; below 2048 tokens prefill becomes slow
    while judge(question, setup).starts is not True and batched > 2048:
        batched = max(2048, batched // 2)
        setup = replace(setup, max_num_batched_tokens=batched)
    most = filled(question, setup).max_num_seqs
    held = at_once(question, setup, context)
    seqs = most if held is None else max(1, min(most, int(held.lo)))
    setup = replace(setup, max_num_seqs=seqs)
    result = judge(question, setup)
    flags = {
        "max_model_len": length,
        "max_num_seqs": seqs,
        "max_num_batched_tokens": batched,
        "gpu_memory_utilization": utilization,
    }
    says = f"contexts up to {context:,} tokens: the pool holds {seqs} at a time without preemption"
    if seqs == most:
        says = f"contexts up to {context:,} tokens: the pool holds more than the {seqs} of max_num_seqs"
    if result.starts is False:
        says = f"contexts up to {context:,} tokens do not fit on these ranks"
    elif result.starts is None:
        says += ", if the unknown parts are small"
    return Template(name, says, result.starts, flags)


def _command(question: Question, safest: float | None) -> Command | None:
    """The asked flags, changed as little as makes them start for sure; None where no change tried here does."""
    changed: dict[str, str] = {}
    setup = question.setup
    if divides(question, setup):
        return None
    now = judge(question, setup)
    if question.positions_sure and question.positions and now.filled.max_model_len > question.positions:
        setup = replace(setup, max_model_len=question.positions)
        changed["max_model_len"] = f"the model states {question.positions:,} positions"
        now = judge(question, setup)
    present = now.filled.gpu_memory_utilization
    if safest is None:
        pass  # the pool is set by hand: utilization has no part in it
    elif start_of(question, setup, now).check == "capture":
        setup = replace(setup, gpu_memory_utilization=safest)
        changed["gpu_memory_utilization"] = f"{present:g} leaves too little beside the plan for the CUDA graphs"
    elif "gpu_memory_utilization" not in question.stated and (present > safest or now.starts is not True):
        setup = replace(setup, gpu_memory_utilization=safest)
        changed["gpu_memory_utilization"] = f"the safest; {present:g} is the default of this release"
    result = judge(question, setup)
    if result.starts is not True:
        for trial, reasons in _repairs(question, setup) if safest is not None else ():
            if not divides(question, trial) and judge(question, trial).starts is True:
                setup = trial
                changed.update(reasons)
                result = judge(question, setup)
                break
    if result.starts is False or result.pool is None:
        return None
    flags: dict[str, Any] = {"tensor_parallel_size": setup.tensor_parallel_size}
    for name in ("pipeline_parallel_size", "decode_context_parallel_size"):
        if getattr(setup, name) != 1:
            flags[name] = getattr(setup, name)
    for name in ("dtype", "quantization", "kv_cache_dtype"):
        if getattr(setup, name) not in ("auto", None, "none") and (name in question.stated or name in changed):
            flags[name] = getattr(setup, name)
    flags["max_model_len"] = result.filled.max_model_len
    if safest is not None:
        flags["gpu_memory_utilization"] = result.filled.gpu_memory_utilization
    elif question.measured is not None and question.measured.known.available_bytes is not None:
        pool = question.measured.known.available_bytes.lo
        by_blocks = question.pool_by_hand == "num_gpu_blocks_override"
        flags[question.pool_by_hand] = int(result.pool.blocks.lo) if by_blocks else int(pool)
    if question.sizes:
        context = max(size.input_tokens + size.output_tokens for size in question.sizes)
        held = at_once(question, setup, context)
        if held is not None and 0 < held.lo < result.filled.max_num_seqs:
            flags["max_num_seqs"] = int(held.lo)
            changed["max_num_seqs"] = f"so many requests of {context:,} tokens fill the pool"
    for name in ("max_num_seqs", "max_num_batched_tokens", "block_size"):
        value = getattr(setup, name)
        if value is not None and name not in flags and (name in question.stated or name in changed):
            flags[name] = value
    if setup.enforce_eager:
        flags["enforce_eager"] = True
    return Command(question.name, flags, changed, result.starts)


def _repairs(question: Question, setup: Setup) -> Iterator[tuple[Setup, dict[str, str]]]:
    """Changes to try, the one that costs least first."""
    asked = filled(question, setup)
    safest = _utilization(question, judge(question, setup)).safest
    if asked.gpu_memory_utilization < safest:
        reason = f"{asked.gpu_memory_utilization:g} leaves too little for the KV cache"
        yield replace(setup, gpu_memory_utilization=safest), {"gpu_memory_utilization": reason}
    far = longest(question, setup)
    shorter = _round_down(far.lo) if far else 0
    if shorter >= min(2 * SHORT_TOKENS, asked.max_model_len) and shorter < asked.max_model_len:
        reason = f"{asked.max_model_len:,} tokens do not fit for sure"
        yield replace(setup, max_model_len=shorter), {"max_model_len": reason}
    if asked.max_num_batched_tokens > 2048:
        reason = f"{asked.max_num_batched_tokens:,} tokens in a step take too much room"
        yield replace(setup, max_num_batched_tokens=2048), {"max_num_batched_tokens": reason}
    for factor in (2, 4, 8):
        ranks = setup.tensor_parallel_size * factor
        reason = f"{setup.tensor_parallel_size} is not enough"
        wider = replace(setup, tensor_parallel_size=ranks)
        yield wider, {"tensor_parallel_size": reason}
        seqs = asked.max_num_seqs
        while (seqs := seqs // 2) >= FEWEST_SEQS:  # GPUs cost more than rows of a sampler that nobody fills
            fewer = (
                f"the trial of {asked.max_num_seqs:,} sequences at once takes the room of one request on {ranks} GPUs"
            )
            yield replace(wider, max_num_seqs=seqs), {"tensor_parallel_size": reason, "max_num_seqs": fewer}
    if 0 < shorter < asked.max_model_len:
        reason = f"{asked.max_model_len:,} tokens do not fit for sure"
        yield replace(setup, max_model_len=shorter), {"max_model_len": reason}


def _doubts(question: Question, now: Expected) -> Iterator[str]:
    model = question.model
    if model.hybrid and now.filled.version >= 20_000 and now.pool is not None:
        yield (
            "from 0.20 on the printed pool tokens of a hybrid model depend on max_model_len: available bytes divided by "
            "them are no cost per token"
        )
    if now.pool is None and now.available_bytes is not None:
        yield "the cache of this model has no formula here: read blocks and page sizes from the log"
    if now.filled.gpu_memory_utilization > _HIGHEST_UTILIZATION:
        yield f"utilization {now.filled.gpu_memory_utilization:g} leaves nothing for what grows after the plan"
    figures = [part for part in (now.available_bytes,) if part is not None]
    if figures and figures[0].origin in ("planning figure", "assumed"):
        yield (
            "activations, memory outside torch and graphs are planning figures: a log's line 'Available KV cache memory' "
            "(--available-kv, or --from BUNDLE) replaces them"
        )
