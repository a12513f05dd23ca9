"""The solver: the actions of the leading cause checked, computed, proven, completed, and put in order."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from oomdoc.errors import OomdocError
from oomdoc.fit import solve as solve_flag
from oomdoc.fit.judge import filled, judge
from oomdoc.fit.sheet import divides, worksheet
from oomdoc.model import Action, Diagnosis, NotHelping
from oomdoc.physics.budget import round_utilization_up
from oomdoc.solve.advice import not_helping
from oomdoc.solve.guard import changed, guard, spelled
from oomdoc.solve.launch import argument, command
from oomdoc.solve.predict import Prediction, at_failure, at_start
from oomdoc.solve.situation import MOST_REQUESTS, MOST_RUN, Situation
from oomdoc.units import MIB, show_bytes, show_seconds

if TYPE_CHECKING:
    from oomdoc.replay import Rehearsal, Result

_LAYOUT = frozenset({"tensor_parallel_size", "pipeline_parallel_size", "quantization", "dtype"})
SHORTEST = 1024  # tokens: a server for less is none
SLOWER, SLOWER_S = 2.0, 10.0  # so many times as slow, and so many seconds, is a price that asks for another way first
ROOM_BYTES = 512 * MIB  # beside what was missing: steps of the same kind differ by that much
MARGIN = 0.10  # share of the pool that a proven fix leaves free at its peak
_NO_FLAG_HELPS = frozenset(
    {"healthy", "not-memory", "probe-restart-loop", "autoscaling-blind", "memory-leak", "shm-exhausted"}
)


def solve(diagnosis: Diagnosis, now: Situation) -> Diagnosis:
    """The leading diagnosis with its actions checked and completed, what would not help, and the command."""
    if diagnosis.cause in _NO_FLAG_HELPS:
        return _staged(diagnosis)
    refused: list[NotHelping] = []
    actions: list[Action] = []
    seen = now.device.get("devices")
    for action in diagnosis.actions:
        actions += _checked(action, now, refused, seen)
    for action in (*_more(diagnosis, now), *_by_books(diagnosis, now)):
        if not any(_same(action, other) for other in actions):
            actions += _checked(action, now, refused, None)
    if diagnosis.cause == "kv-demand-exceeds-pool":
        actions = _rehearsed(actions, now)
    # what makes everybody wait much longer comes after what does not, what is refuted last
    actions.sort(key=_place)
    kept = [action for action in actions if not _refuted(action)]
    if kept:
        refused += [NotHelping(f"{action.do}, alone", action.proof or action.why) for action in actions[len(kept) :]]
        actions = kept
    best = next((action for action in actions if action.changes and not _refuted(action)), None)
    version = now.engine.get("version_number")
    completed = dataclasses.replace(
        diagnosis,
        actions=tuple(actions),
        not_helping=tuple(dict.fromkeys((*refused, *not_helping(diagnosis.cause, now)))),
        command=command(now.start, version, best.changes) if best else None,
    )
    return _staged(completed)


def _staged(diagnosis: Diagnosis) -> Diagnosis:
    """Says what to do now where the best change waits for a load test: of what is not refuted, what is soonest done."""
    first = diagnosis.actions[0] if diagnosis.actions else None
    if first is None or first.when == "now":
        return diagnosis
    ready = [item for item in diagnosis.actions if item.when == "now" and item.predicted.get("survives") is not False]
    best = min(ready, key=lambda item: item.predicted.get("p95_latency_s", float("inf")), default=None)
    return diagnosis if best is None else dataclasses.replace(diagnosis, until_then=best.id)


def _same(one: Action, other: Action) -> bool:
    return bool(one.changes) and one.changes.keys() == other.changes.keys()


def _refuted(action: Action) -> bool:
    """Computed, and it does not help: the start is refused still, or the failed request fails again."""
    predicted = action.predicted
    headroom = predicted.get("headroom_bytes")
    return (
        predicted.get("starts") is False
        or predicted.get("survives") is False
        or (headroom is not None and headroom.high < 0)
    )


# ---- the rules' own actions


def _place(action: Action) -> int:
    if _refuted(action):
        return 2
    after, before = action.predicted.get("p95_latency_s"), action.predicted.get("p95_latency_before_s")
    return int(after is not None and before is not None and after > SLOWER * before + SLOWER_S)


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
        if name not in was and (value := _present(name, now)) is not None:
            was[name] = value
    return [
        dataclasses.replace(
            action, do=do, why=why, changes=changes, was=was, predicted=prediction.values, proof=prediction.proof
        )
    ]


def _present(name: str, now: Situation) -> Any:
    """What a log or command states; a default of the release is no present value that anybody set."""
    flag = now.start.flags.get(name) if now.start else None
    return flag.value if flag is not None and flag.origin in ("logged", "command", "config") else None


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
        ranks = wider.value
        if ranks and int(ranks) > question.setup.tensor_parallel_size and "tensor_parallel_size" not in made:
            more = "" if devices and devices >= ranks else "; the bundle does not show so many GPUs"
            setup = changed(question.setup, {"tensor_parallel_size": int(ranks)})
            if not divides(question, setup):
                yield Action(
                    "fewest-gpus", f"Spread the model over {int(ranks)} such GPUs: `--tensor-parallel-size {int(ranks)}`", f"{wider.says}{more}",
                    f"{int(ranks)} GPUs; collectives cost some latency", {"tensor_parallel_size": int(ranks)}, "`Model loading took` per rank shrinks by that factor",
                )  # fmt: skip


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
    if any(action.changes for action in diagnosis.actions) or now.engine.get("kv_cache_memory_bytes"):
        return
    step = round_utilization_up((max(0, asked - free) + ROOM_BYTES) / total)
    yield Action(
        "lower-by", f"Lower `--gpu-memory-utilization` by {step:g} from what it is (the bundle does not tell it)",
        f"{show_bytes(asked)} were asked for with {show_bytes(free)} free; {step:g} x {show_bytes(total)} = {show_bytes(step * total)} more stay outside the pool",
        f"{show_bytes(step * total)} less KV pool per GPU", {}, "memory.free in nvidia-smi under load stays above 1 GiB",
    )  # fmt: skip


# ---- the recorded traffic


def _rehearsed(actions: list[Action], now: Situation) -> list[Action]:
    """Every change that sizes the pool or the batch, proven on the recorded traffic; and the least lowering of max_num_seqs."""
    stage = now.rehearsal
    if stage is None:
        return actions
    from oomdoc.replay import FLAGS as REPLAYED

    left = max(6, MOST_RUN // max(1, stage.requests))
    before = stage.run({})
    if before.survives:
        return [
            _says(action, "the replay of the recorded flags shows no pressure, so it proves nothing about others")
            for action in actions
        ]
    told: list[Action] = []
    known: dict[str, Result | None] = {}
    for action in actions:
        flags = {name: value for name, value in action.changes.items() if name in REPLAYED}
        if not flags or len(flags) < len(action.changes):
            told.append(action)
            continue
        result = _run(stage, flags)
        known[_key(flags)] = result
        left -= 1
        told.append(action if result is None else _proven(action, flags, result, before, stage))
    least = _least(stage, now, told, before, known, left)
    if least is not None:
        place = next((i for i, action in enumerate(told) if "max_num_seqs" in action.changes), None)
        if place is None:
            told.insert(0, least)
        elif _refuted(told[place]):
            told[place] = least
        elif told[place].changes != least.changes:
            told.insert(place + 1, least)
    return told


def _run(stage: Rehearsal, changes: Mapping[str, Any]) -> Result | None:
    try:
        return stage.run(changes)
    except OomdocError:
        return None


def _key(changes: Mapping[str, Any]) -> str:
    return repr(sorted(changes.items()))


def _holding(stage: Rehearsal, changes: Mapping[str, Any], ran: Mapping[str, Result | None]) -> Result | None:
    """What the changes came to where they hold and leave the margin."""
    if _key(changes) in ran:
        result = ran[_key(changes)]
        return result if result is not None and result.survives and result.peak_used <= 1 - MARGIN else None
    try:
        return stage.holds(changes, 1 - MARGIN)
    except OomdocError:
        return None


def _least(
    stage: Rehearsal, now: Situation, told: list[Action], before: Result, ran: Mapping[str, Result | None], left: int
) -> Action | None:
    """The largest max_num_seqs with which nobody is preempted and the peak leaves the margin; None where not even 1 does.

    `ran` are the settings that were run already, with what they came to.
    """
    high = min(stage.setup.max_num_seqs, int(now.pressure.get("running_max") or stage.setup.max_num_seqs) * 2)
    known = [int(action.changes["max_num_seqs"]) for action in told if "max_num_seqs" in action.changes]
    low, best = 0, None
    guess = known[0] if known else high // 2
    while low < high and left > 0:
        middle = guess if low < guess <= high else (low + high + 1) // 2
        guess = 0
        result = _holding(stage, {"max_num_seqs": middle}, ran)
        left -= 1
        if result is not None:
            low, best = middle, result
        else:
            high = middle - 1
    if best is None:
        return None
    per_replica = low
    action = Action(
        "least-change", f"Lower `--max-num-seqs` to {per_replica}", "the largest number with which the recorded traffic leaves "
        f"{MARGIN:.0%} of the pool free", "requests beyond it wait in the queue instead of being preempted and computed twice",
        {"max_num_seqs": per_replica}, "`vllm:num_preemptions_total` stands still under the same load",
        {} if (was := _present("max_num_seqs", now)) is None else {"max_num_seqs": was},
    )  # fmt: skip
    return _proven(action, action.changes, best, before, stage)


def _proven(action: Action, changes: Mapping[str, Any], result: Result, before: Result, stage: Rehearsal) -> Action:
    flags = " ".join(f"{spelled(name)} {value}" for name, value in changes.items())
    part = (
        f" ({stage.requests:,} of {stage.of:,} requests, those around the incident)" if stage.of > MOST_REQUESTS else ""
    )
    outcome = "no preemptions" if not result.preemptions else f"{result.preemptions:,} preemptions"
    if result.impossible:
        outcome += f", and {result.impossible:,} requests that the pool can never hold"
    proof = (
        f"replayed with {flags}, the recorded traffic{part} peaks at {result.peak_used:.0%} of the pool with {outcome}, against "
        f"{before.preemptions:,} with the recorded flags; 95 % of the requests are done within {show_seconds(result.p95_latency_s)}, "
        f"{show_seconds(before.p95_latency_s)} before"
    )
    predicted = {
        **action.predicted, "survives": result.survives, "peak_used": result.peak_used, "preemptions": result.preemptions,
        "preemptions_before": before.preemptions, "p95_wait_s": result.p95_wait_s, "p95_wait_before_s": before.p95_wait_s,
        "p95_latency_s": result.p95_latency_s, "p95_latency_before_s": before.p95_latency_s, "requests": stage.requests,
    }  # fmt: skip
    return dataclasses.replace(action, predicted=predicted, proof=proof)


def _says(action: Action, proof: str) -> Action:
    return action if action.proof or not action.changes else dataclasses.replace(action, proof=proof)
