"""The solver: the actions of the leading cause checked, computed, proven, completed, and put in order."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from oomdoc.errors import OomdocError
from oomdoc.fit import Question
from oomdoc.fit import solve as solve_flag
from oomdoc.fit.judge import filled, judge
from oomdoc.fit.sheet import FEWEST_SEQS, divides, worksheet
from oomdoc.model import Action, Diagnosis, NotHelping
from oomdoc.model.worksheet import Solved
from oomdoc.physics.budget import round_utilization_up
from oomdoc.physics.defaults import default_of
from oomdoc.solve.advice import not_helping
from oomdoc.solve.capped import uncapped
from oomdoc.solve.guard import changed, guard, spelled
from oomdoc.solve.launch import argument, command
from oomdoc.solve.predict import Prediction, at_failure, at_start
from oomdoc.solve.rehearsed import later, more_in_time, on_traffic, refilled, rehearsed, scaled, slower, slower_by
from oomdoc.solve.situation import Situation, stated
from oomdoc.solve.sizes import ROOM_BYTES, formats_that_fit, host_need, solved_number
from oomdoc.units import count, show_bytes

_LAYOUT = frozenset({"tensor_parallel_size", "pipeline_parallel_size", "quantization", "dtype"})
SHORTEST = 1024  # tokens: a server for less is none
_SAYS_HOW_MANY = frozenset({"more-replicas"})
_MORE_POOL = frozenset(
    {
        "kv_cache_memory_bytes",
        "gpu_memory_utilization",
        "tensor_parallel_size",
        "VLLM_CPU_KVCACHE_SPACE",
        "num_gpu_blocks_override",
    }
)
_NO_FLAG_HELPS = frozenset(
    {"healthy", "not-memory", "probe-restart-loop", "autoscaling-blind", "memory-leak", "shm-exhausted"}
)


def solve(diagnosis: Diagnosis, now: Situation) -> Diagnosis:
    """The leading diagnosis with its actions checked and completed, what would not help, and the command."""
    if diagnosis.cause == "autoscaling-blind" and diagnosis.actions:
        first, *others = diagnosis.actions
        diagnosis = dataclasses.replace(diagnosis, actions=(scaled(first, now), *others))
    if diagnosis.cause in _NO_FLAG_HELPS:
        made = uncapped(diagnosis, now)
        return _staged(diagnosis, now) if made is diagnosis else _with_command(_staged(made, now), now)
    refused: list[NotHelping] = []
    actions: list[Action] = []
    seen = now.device.get("devices")
    for action in diagnosis.actions:
        actions += _checked(action, now, refused, seen)
    actions = [each for action in actions for each in (action, *solved_number(action, now))]
    if diagnosis.cause == "host-memory-exhausted":
        actions = host_need(actions, now)
    if diagnosis.cause == "weights-exceed-gpu":
        actions = formats_that_fit(actions, now)
    for action in (*_more(diagnosis, now), *_by_books(diagnosis, now)):
        if not any(_same(action, other) for other in actions):
            actions += _checked(action, now, refused, None)
    if diagnosis.cause == "kv-demand-exceeds-pool":
        actions = rehearsed(actions, now)
        # what says by how much stands for the rule's general advice
        if any(action.id in _SAYS_HOW_MANY or _MORE_POOL & action.changes.keys() for action in actions):
            actions = [action for action in actions if action.id != "more-pool"]
    actions = [refilled(action, now) for action in actions]
    # what users feel comes first: requests done in time, how soon they are, then how much of the pool is left
    most = max((_in_time(action) for action in actions), default=0.0)
    actions.sort(key=lambda action: _place(action, most))
    kept = [action for action in actions if not _refuted(action) and not slower(action)]
    if kept:
        said: set[tuple[tuple[str, ...], str]] = (
            set()
        )  # of two values of a flag with one outcome the first stands for both
        for action in actions:
            why = action.proof or action.why if _refuted(action) else slower_by(action) if slower(action) else ""
            if why and (key := (tuple(action.changes), why)) not in said:
                said.add(key)
                refused.append(NotHelping(f"{action.do}, alone" if _refuted(action) else action.do, why))
        actions = kept
    actions = on_traffic([_with_tokens(action, now) for action in actions], now)
    completed = dataclasses.replace(
        diagnosis, actions=tuple(actions), not_helping=tuple(dict.fromkeys((*refused, *not_helping(diagnosis.cause, now))))
    )  # fmt: skip
    return _with_command(_staged(completed, now), now)


def _with_command(diagnosis: Diagnosis, now: Situation) -> Diagnosis:
    """The whole command of the fix; where that is none of flags, of what is to be done until then."""
    spoken = [item for item in diagnosis.actions[:1] if item.changes]
    spoken += [item for item in diagnosis.actions if item.id == diagnosis.until_then and item.changes]
    if not spoken or _refuted(spoken[0]):
        return dataclasses.replace(diagnosis, command=None)
    return dataclasses.replace(
        diagnosis, command=command(now.start, now.engine.get("version_number"), spoken[0].changes)
    )


def _buys(action: Action, now: Situation) -> bool:
    """The change asks for more devices than the bundle shows."""
    devices = now.device.get("devices")
    ranks = action.changes.get("tensor_parallel_size")
    return bool(devices and ranks and int(ranks) * int(now.engine.get("pipeline_parallel_size") or 1) > devices)


def _staged(diagnosis: Diagnosis, now: Situation) -> Diagnosis:
    """Says what to do now where the best change waits for a load test: of what is not refuted, what is soonest done."""
    first = diagnosis.actions[0] if diagnosis.actions else None
    if first is None or first.when == "now":
        return diagnosis
    ready = [
        item for item in diagnosis.actions
        if item.when == "now" and item.predicted.get("survives") is not False and not slower(item) and not _buys(item, now)
    ]  # fmt: skip
    best = min(
        ready,
        key=lambda item: (-round(_in_time(item), 2), item.predicted.get("p95_latency_s", float("inf"))),
        default=None,
    )
    return diagnosis if best is None else dataclasses.replace(diagnosis, until_then=best.id)


def _same(one: Action, other: Action) -> bool:
    return bool(one.changes) and one.changes.keys() == other.changes.keys()


def _refuted(action: Action) -> bool:
    """Computed, and it does not help: the start is refused still, or the failed request fails again."""
    predicted = action.predicted
    headroom = predicted.get("headroom_bytes")
    return (
        predicted.get("starts") is False
        or (predicted.get("survives") is False and not more_in_time(action))
        or (headroom is not None and headroom.high < 0)
    )


# ---- the rules' own actions


ENOUGH = 0.9
"""Share of what the best advice has done in time from which flags go before machines: hardware for less is no first advice."""


def _in_time(action: Action) -> float:
    """Share of all recorded requests that are done in time by its replay; those that are turned away are not."""
    told = action.predicted
    return float(told.get("in_time") or 0.0) * float(1.0 if told.get("served") is None else told["served"])


def _place(action: Action, most: float) -> tuple[int, bool, bool, bool, float, float, float]:
    """Refuted last, worse before it; what is done sooner before what is done later and only begins sooner; what is proven on
    the recorded traffic before what is not; of that what serves nearly as many in time as the best does (`most`), and of
    these flags before machines.

    Among these the requests done in time decide, then the time in which 95 % are done, then the pool that is left.
    """
    grade = 3 if _refuted(action) else 2 if slower(action) else int(later(action) and not more_in_time(action))
    after = action.predicted.get("p95_latency_s")
    if after is None or action.predicted.get("survives") is None:
        return grade, True, False, False, 0.0, 0.0, 0.0
    served = _in_time(action)
    return (
        grade,
        False,
        served < ENOUGH * most,
        not action.changes,
        -round(served, 2),
        float(after),
        float(action.predicted.get("peak_used") or 0.0),
    )


def _checked(action: Action, now: Situation, refused: list[NotHelping], devices: int | None) -> list[Action]:
    """The action within the engine's constraints, with what it gives; nothing where the engine would not take it."""
    if not action.changes:
        return [action]
    guarded = guard(action.changes, now, devices=devices)
    if guarded.refused:
        flags = ", ".join(f"`{spelled(name)}`" for name in action.changes)
        refused.append(NotHelping(f"another {flags}", guarded.refused))
        return []
    changes, altered = dict(guarded.changes), [*guarded.altered]
    prediction = _predicted(changes, now)
    far = prediction.values.get("longest_tokens")
    present = now.engine.get("max_model_len")
    if prediction.values.get("starts") is False and far is not None and present and "max_model_len" not in changes:
        length = int(far.low) // 16 * 16
        if SHORTEST <= length < present:
            # what helps against the failure leaves too little for the longest request: both flags together do
            changes["max_model_len"] = length
            altered.append(f"one request of {present:,} tokens would not fit any more, {length:,} would")
            prediction = _predicted(changes, now)
    do, why = action.do, action.why
    for name, value in changes.items():
        old = action.changes.get(name)
        if old is not None and old != value:
            do = do.replace(f"{spelled(name)} {old}", f"{spelled(name)} {value}")
    extra = [f"`{argument(name, value)}`" for name, value in changes.items() if name not in action.changes]
    do += f", with {' and '.join(extra)}" if extra else ""
    why += f" ({'; '.join(altered)})" if altered else ""
    was = dict(action.was)
    for name in changes:
        if name not in was and (value := stated(name, now)) is not None:
            was[name] = value
    return [
        dataclasses.replace(
            action, do=do, why=why, changes=changes, was=was, predicted=prediction.values, proof=prediction.proof
        )
    ]


def _predicted(changes: Mapping[str, Any], now: Situation) -> Prediction:
    """Both computations: what was missing at the failure, and the arithmetic of the next start.

    Where an allocation failed only its books prove that it would not again, unless the layout of the model changes.
    """
    books, start = at_failure(changes, now), at_start(changes, now)
    values = {**start.values, **books.values}
    length = now.failure.get("estimated_len") or now.failure.get("pool_tokens")
    if set(changes) == {"max_model_len"} and length and changes["max_model_len"] <= length:
        values = {**values, "starts": True} if values else values
        return Prediction(values, f"the engine's own message: the pool would hold {int(length):,} tokens")
    failed = any(entry.moment == "failure" for entry in now.entries)
    proof = books.proof or ("" if failed and not _LAYOUT & changes.keys() else start.proof)
    return Prediction(values, proof)


# ---- what the rules cannot compute


def _more(diagnosis: Diagnosis, now: Situation) -> Iterator[Action]:
    """Changes that the start-up arithmetic finds where the rules' own have none that holds."""
    question = now.question
    if question is None:
        return
    made = {flag for action in diagnosis.actions for flag in action.changes}
    result = judge(question, question.setup)
    present = filled(question, question.setup)
    if diagnosis.cause in ("kv-pool-below-max-model-len", "memory-utilization-too-low") and now.on_gpu:
        if "max_model_len" not in made and diagnosis.cause == "kv-pool-below-max-model-len":
            solved = solve_flag(question, "max_model_len")
            if solved.value and solved.value < present.max_model_len:
                length = int(solved.value)
                yield Action(
                    "longest-that-fits", f"Set `--max-model-len {length}`", f"{solved.says}; {present.max_model_len:,} were asked",
                    "longer prompts are refused with HTTP 400", {"max_model_len": length}, "`Maximum concurrency` prints 1.0x or more at start",
                )  # fmt: skip
        if "gpu_memory_utilization" not in made:
            safe = worksheet(question).utilization
            if safe is not None and safe.starts is True and safe.safest > present.gpu_memory_utilization:
                yield Action(
                    "safest-utilization", f"Raise `--gpu-memory-utilization` from {present.gpu_memory_utilization:g} to {safe.safest:g}", safe.why,
                    "less of the device is left for others", {"gpu_memory_utilization": safe.safest}, "`Available KV cache memory` is positive",
                )  # fmt: skip
    if (
        diagnosis.cause in ("weights-exceed-gpu", "tp-undersharded", "kv-pool-below-max-model-len")
        and result.starts is not True
    ):
        devices = now.device.get("devices")
        try:
            wider = solve_flag(question, "tensor_parallel_size")
        except OomdocError:
            return
        ranks, says, changes = wider.value, wider.says, {}
        if fewer := _fewer(question, wider):
            changes, ranks = fewer, fewer["tensor_parallel_size"]
            says = f"the fewest ranks that start, with {fewer['max_num_seqs']:,} sequences at once instead of {present.max_num_seqs:,}, whose trial may take the room of one request"
            says += f"; {int(wider.value)} such GPUs start without that" if wider.value else ""
        if ranks and int(ranks) > question.setup.tensor_parallel_size and "tensor_parallel_size" not in made:
            more = "" if devices and devices >= ranks else "; the bundle does not show so many GPUs"
            changes = {"tensor_parallel_size": int(ranks), **changes}
            if not divides(question, changed(question.setup, changes)):
                with_it = "".join(f", with `{argument(name, value)}`" for name, value in [*changes.items()][1:])
                yield Action(
                    "fewest-gpus", f"Spread the model over {int(ranks)} such GPUs: `--tensor-parallel-size {int(ranks)}`{with_it}", f"{says}{more}",
                    f"{int(ranks)} GPUs; collectives cost some latency", changes, "`Model loading took` per rank shrinks by that factor",
                )  # fmt: skip


def _fewer(question: Question, wider: Solved) -> dict[str, int]:
    """Fewer ranks than start for sure as it is, with the most sequences that make them sure; {} where there are none.

    GPUs cost more than rows of a sampler that nobody fills: what starts on fewer of them with half the sequences goes first.
    """
    ranks, most = wider.at_best, filled(question, question.setup).max_num_seqs
    if not ranks or (wider.value and ranks >= wider.value) or ranks <= question.setup.tensor_parallel_size:
        return {}
    while (most := most // 2) >= FEWEST_SEQS:
        changes = {"tensor_parallel_size": int(ranks), "max_num_seqs": most}
        if judge(question, changed(question.setup, changes)).starts is True:
            return changes
    return {}


def _with_tokens(action: Action, now: Situation) -> Action:
    """What less pool means to users: the tokens that it still stores, beside the most that were ever in use."""
    pool = now.engine.get("kv_pool_tokens")
    left = action.predicted.get("kv_pool_tokens")
    if not _LESS_POOL & action.changes.keys() or not pool or left is None or left.high >= pool:
        return action
    most = count(left.low) if left.low == left.high else f"{count(left.low)} to {count(left.high)}"
    said = f"{most} of {count(pool, 'token')} remain in the pool"
    used = now.pressure.get("peak")
    if used:
        said += f", of which the busiest moment recorded took {count(round(used * pool))}"
    return dataclasses.replace(action, cost=f"{action.cost}: {said}" if action.cost else said)


_USUAL_SHARE = 0.9
_LESS_POOL = frozenset({"gpu_memory_utilization", "kv_cache_memory_bytes"})
_OF_A_FEATURE = frozenset(
    {"max_lora_rank", "max_loras"}
)  # makes a feature smaller, by what nobody computes: utilization stays an answer
_BEFORE_THE_POOL = frozenset({"init", "load", "profile", "kv-plan", "graph-profile"})
_OUTSIDE_THE_PLAN = frozenset(
    {
        "memory-utilization-edge",
        "prefill-activation-spike",
        "cuda-graph-overhead",
        "feature-overhead",
        "max-num-seqs-too-high",
    }
)


def _by_books(diagnosis: Diagnosis, now: Situation) -> Iterator[Action]:
    """By how much utilization has to come down, where the bundle does not tell what it is: the books alone say that."""
    failure = now.failure
    total, free, asked = (failure.get(name) for name in ("total_bytes", "free_bytes", "requested_bytes"))
    if diagnosis.cause not in _OUTSIDE_THE_PLAN or not now.on_gpu or not total or not asked or free is None:
        return
    if free > 1.1 * asked:
        return  # it failed with room for it: more room would not have helped
    if failure.get("phase") in _BEFORE_THE_POOL or asked >= total:
        return  # no pool was there to be made smaller, or no device of this size holds the request
    if any(action.changes.keys() - _OF_A_FEATURE for action in diagnosis.actions) or now.engine.get(
        "kv_cache_memory_bytes"
    ):
        return
    step = round_utilization_up((max(0, asked - free) + ROOM_BYTES) / total)
    version = now.engine.get("version_number")
    usual = default_of("gpu_memory_utilization", version or 0) or _USUAL_SHARE
    whose = "the default of this release" if version else "the default before 0.20"
    yield Action(
        "lower-by", f"Lower `--gpu-memory-utilization` by {step:g}: to {round(usual - step, 3):g} where the command does not set it ({usual:g} is {whose})",
        f"{show_bytes(asked)} were asked for with {show_bytes(free)} free; {step:g} x {show_bytes(total)} = {show_bytes(step * total)} more stay outside the pool",
        f"{show_bytes(step * total)} less KV pool per GPU", {}, "memory.free in nvidia-smi under load stays above 1 GiB",
    )  # fmt: skip
