"""What a change gives, computed: the start-up arithmetic under it, and what would have been free when it failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oomdoc.fit.judge import judge, longest
from oomdoc.ledger.message import torch_printed
from oomdoc.model import LedgerEntry, Range
from oomdoc.physics.interval import Interval, point
from oomdoc.physics.setup import FLAGS
from oomdoc.solve.guard import changed
from oomdoc.solve.situation import Situation
from oomdoc.units import show_bytes

# what these save is handed to the pool at once, or is none of the failed request's
_FREES_NOTHING = frozenset({"max_model_len", "kv_cache_dtype", "enable_chunked_prefill"})
_SIZES_A_STEP = frozenset({"max_num_batched_tokens"})
FOLLOWS = 1.0
"""Prompt logprobs: after the tensor that failed (rows x vocabulary x 4 bytes) ranks and top-k take as much again (method.md)."""


@dataclass(frozen=True)
class Prediction:
    """`values` are the fields of an action's `predicted`, `proof` the sentence; `fails`: computed, and it does not help."""

    values: Mapping[str, Any]
    proof: str = ""
    fails: bool = False


def at_start(changes: Mapping[str, Any], now: Situation) -> Prediction:
    """The engine's start-up arithmetic under the changes; empty where model or device are not known."""
    question = now.question
    sizes = {name: value for name, value in changes.items() if name in FLAGS}
    if question is None or not sizes:
        return Prediction({})
    setup = changed(question.setup, sizes)
    result = judge(question, setup)
    if result.available_bytes is None:
        return Prediction({})
    far = longest(question, setup)
    values: dict[str, Any] = {
        "starts": result.starts,
        "kv_available_bytes": spread(result.available_bytes.at_least(0)),
        "kv_pool_tokens": None if result.pool is None else spread(result.pool.tokens),
        "longest_tokens": None if far is None else spread(far),
        "outside_plan_bytes": None if result.budget is None else spread(result.budget.outside_bytes),
    }
    have = _size(result.available_bytes.at_least(0))
    length = f"{result.filled.max_model_len:,}"
    proof = ""
    if result.starts is True and result.pool is not None:
        need = show_bytes(result.pool.need_bytes)
        most = result.pool.concurrency.lo
        proof = f"start-up arithmetic: {have} for KV per GPU, one request of {length} tokens takes {need}; {most:.2f} of them fit at once"
    elif result.starts is None:
        proof = (
            f"start-up arithmetic: {have} for KV per GPU; whether it starts with {length} tokens the ranges leave open"
        )
    return Prediction(values, proof, result.starts is False)


def at_failure(changes: Mapping[str, Any], now: Situation) -> Prediction:
    """Bytes that would have been free after the failed request, by the books of its message; empty where they are not told."""
    entry = next((each for each in now.entries if each.moment == "failure" and "free_bytes" in each.intervals), None)
    asked = now.failure.get("requested_bytes")
    if entry is None or not asked or not now.on_gpu:
        return Prediction({})
    request = torch_printed(asked)
    peak = request * (1 + follows(now))
    gained = _gain(changes, peak, entry, now)
    if gained is None:
        return Prediction({})
    free = _interval(entry.intervals["free_bytes"])
    left = free + gained - peak
    proof = f"at the failure {_size(free)} were free and {_size(request)} were asked for"
    proof += f", with as much again for ranks and top-k, {_size(peak)} in all" if follows(now) else ""
    proof += f"; {_size(gained)} more "
    proof += f"leave {_size(left)}" if left.lo >= 0 else "are not enough" if left.hi < 0 else "may or may not be enough"
    return Prediction({"headroom_bytes": spread(left)}, proof, left.hi < 0)


def follows(now: Situation) -> float:
    """What the failing phase asks for after the request that failed, as a multiple of it."""
    return FOLLOWS if now.failure.get("prompt_logprobs") and now.failure.get("in_sampler") else 0.0


def _gain(changes: Mapping[str, Any], request: Interval, entry: LedgerEntry, now: Situation) -> Interval | None:
    """Bytes that the changes set free at the moment of the failure; None where a change has no such arithmetic."""
    engine = now.engine
    gained: Interval | None = None
    total = entry.intervals.get("total_bytes")
    for name, value in changes.items():
        if name in _FREES_NOTHING:
            continue
        each: Interval | None = None
        share = engine.get("gpu_memory_utilization")
        if name == "gpu_memory_utilization" and total is not None and share:
            # the pool is what utilization moves; it was made unless the failure came before
            if (
                "kv_pool_bytes" in entry.parts
                and entry.parts["kv_pool_bytes"] is None
                and now.failure.get("phase") in ("init", "load", "profile")
            ):
                return None
            each = _interval(total) * point(share - float(value), "logged")
        elif name == "kv_cache_memory_bytes" and engine.get("kv_cache_memory_bytes"):
            each = point(engine["kv_cache_memory_bytes"] - float(value), "logged")
        elif name in _SIZES_A_STEP and now.failure.get("phase") in ("forward", "profile", None):
            tokens = engine.get("max_num_batched_tokens") or now.failure.get("scheduled_tokens")
            if tokens and 0 < int(value) < tokens:
                # at least the failed request shrinks with the step; other tensors of it do as well
                each = (request * (1 - int(value) / tokens)).told("computed")
        elif name == "max_num_seqs" and now.failure.get("phase") == "sampler-warmup":
            seqs = now.failure.get("dummy_requests") or engine.get("max_num_seqs")
            if seqs and 0 < int(value) < seqs:
                each = (request * (1 - int(value) / seqs)).told("computed")
        elif name == "enforce_eager" and value is True and "cuda_graph_bytes" in entry.intervals:
            each = _interval(entry.intervals["cuda_graph_bytes"])
        if each is None:
            return None
        gained = each if gained is None else gained + each
    return gained


def spread(size: Interval) -> Range:
    """An interval as a report shows it."""
    return Range(round(size.lo, 3), round(size.hi, 3), size.origin)


def _interval(size: Range) -> Interval:
    return Interval(size.low, size.high, size.origin)


def _size(size: Interval) -> str:
    """`2.00 GiB`, or both ends where they look different."""
    low, high = show_bytes(size.lo), show_bytes(size.hi)
    return (
        low
        if low == high
        else f"{low} to {high}"
        if size.origin != "logged" or size.hi - size.lo > 1 << 26
        else show_bytes(size.middle)
    )
