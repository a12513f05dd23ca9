"""Changes proven on the recorded traffic, what it takes to serve an overload, and which advice that leaves standing.

The measure is what users feel: how many requests are done in time (`replay.rehearsal.in_time`), then how soon 95 % of them are,
then the pool that is left. A change that its own replay shows worse is no fix, however calm the pool is; where one flag
alone does not do, several are tried together; where no flag serves the traffic, the share of it that one server serves
says how much to turn away or how many servers to run.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any

from oomdoc.errors import OomdocError
from oomdoc.fit.sheet import worksheet
from oomdoc.model import Action
from oomdoc.solve.guard import guard, spelled
from oomdoc.solve.launch import argument
from oomdoc.solve.predict import at_start
from oomdoc.solve.situation import MOST_REQUESTS, MOST_RUN, Situation, stated
from oomdoc.units import GIB, show_seconds

if TYPE_CHECKING:
    from oomdoc.replay import Rehearsal, Result

MARGIN = 0.10  # share of the pool that a proven fix leaves free at its peak
SLOWER, SLOWER_S = 1.05, 1.0  # so many times as long, and a second: below that the replay cannot tell two runs apart
SOONER, MOST_FOR_SOONER = (
    0.5,
    1.5,
)  # half the wait for the first step is worth half as much again to the last token, no more
MOST_REPLICAS = 16
IN_TIME = "begun within 10 s, then 5 tokens a second"
FEW = 0.01  # share of the requests: a difference below it is none that a replay can tell
ALL = 0.99  # share of the requests in time from which nothing more is tried
MOST_REPLAYED = 4  # pieces of advice that size the pool where something else ran out
_SIZES_POOL = frozenset(
    {
        "gpu_memory_utilization",
        "kv_cache_memory_bytes",
        "num_gpu_blocks_override",
        "kv_cache_dtype",
        "max_model_len",
        "VLLM_CPU_KVCACHE_SPACE",
    }
)
_NO_PRESSURE = "the replay of the recorded flags shows no pressure, so it proves nothing about others"
_BESIDE = "max_model_len"  # what a change brings along where one request would not fit any more (`solver._checked`)
_MOST_TOGETHER = 3  # flags that one piece of advice changes
_SHARE_STEPS = 5  # halvings of the share that is served: to 3 %
_HEAVY = 0.3  # share of the tokens from which one sender is worth a name
_HEAVIER = 1.5  # and so many times its share of the requests


def more_in_time(action: Action) -> bool:
    """Its own replay has more requests done in time than the recorded flags have."""
    return _gain(action) > FEW


def _gain(action: Action) -> float:
    """Share of the requests by which more are done in time than with the recorded flags; 0 where nothing was replayed."""
    after, before = action.predicted.get("in_time"), action.predicted.get("in_time_before")
    return 0.0 if after is None or before is None else float(after) - float(before)


def later(action: Action) -> bool:
    """Its own replay shows that 95 % of the requests are done later than with the recorded flags."""
    after, before = action.predicted.get("p95_latency_s"), action.predicted.get("p95_latency_before_s")
    return after is not None and before is not None and bool(after > SLOWER * before + SLOWER_S)


def slower(action: Action) -> bool:
    """Users are worse off by its own replay: fewer requests are done in time, or as many, but later and not begun so much sooner
    that it may pay."""
    if abs(_gain(action)) > FEW:
        return _gain(action) < 0
    if not later(action):
        return False
    told = action.predicted
    wait, waited = told.get("p95_wait_s"), told.get("p95_wait_before_s")
    sooner = wait is not None and waited is not None and waited > 0 and wait <= SOONER * waited
    return not (sooner and told["p95_latency_s"] <= MOST_FOR_SOONER * told["p95_latency_before_s"])


def slower_by(action: Action) -> str:
    """By how much, in words."""
    if abs(_gain(action)) > FEW:
        told = action.predicted
        return f"{told['in_time']:.0%} of the requests are done in time by its replay, {told['in_time_before']:.0%} with the recorded flags ({IN_TIME})"
    after, before = action.predicted["p95_latency_s"], action.predicted["p95_latency_before_s"]
    times = f"{after / before:.1f} times as long" if before else "longer"
    return f"requests take {times} by its replay: 95% are done within {show_seconds(after)}, {show_seconds(before)} with the recorded flags"


def rehearsed(actions: list[Action], now: Situation) -> list[Action]:
    """Every change that sizes the pool or the batch, proven on the recorded traffic; the mildest cap that helps; the overload."""
    stage = now.rehearsal
    if stage is None:
        return actions
    from oomdoc.replay import FLAGS as REPLAYED

    left = max(6, MOST_RUN // max(1, stage.requests))
    before = stage.run({})
    if before.survives:
        return [_says(action, _NO_PRESSURE) for action in actions]
    told: list[Action] = []
    known: dict[str, Result | None] = {}
    for action in actions:
        flags = {name: value for name, value in _replayed(action.changes).items() if name in REPLAYED}
        if not flags or len(flags) < len(action.changes):
            told.append(action)
            continue
        result = _run(stage, flags)
        known[_key(flags)] = result
        left -= 1
        told.append(action if result is None else proven(action, flags, result, before, stage))
    together = _together(stage, now, told, before, known, max(6, left // 2))
    if together is not None:
        told.insert(0, together)
    least = _least(stage, now, told, before, known, left)
    if least is not None:
        place = next((i for i, action in enumerate(told) if "max_num_seqs" in action.changes), None)
        if place is None:
            told.insert(0, least)
        elif told[place].changes != least.changes:
            told.insert(place + 1, least)
    return [*told, *_overload(stage, now, before)]


def on_traffic(actions: list[Action], now: Situation) -> list[Action]:
    """Every change of the pool or of the longest request says what the recorded traffic does with it, or that none is there.

    Where another thing than the pool ran out this ranks nothing: a smaller pool that makes requests wait may be the price of a
    server that lives. What was replayed already stays as it is.
    """
    asked = [item for item in actions if _SIZES_POOL & item.changes.keys() and "survives" not in item.predicted]
    if not asked:
        return actions
    stage, told, before, left = now.rehearsal, [], None, MOST_REPLAYED
    for action in actions:
        if action not in asked or _NO_PRESSURE in action.proof:
            told.append(action)
            continue
        if stage is None:
            why = "the log does not say how large the pool was" if now.percentiles else "the bundle has no request log"
            none = "" if action.proof else "none: "
            told.append(_adds(action, f"{none}no traffic to replay it on, since {why}"))
            continue
        left -= 1
        before = before or stage.run({})
        result = _run(stage, _replayed(action.changes)) if left >= 0 else None
        said = f"on the recorded traffic it {_effect(result, before)}{stage.error}" if result else ""
        told.append(_adds(action, said and f"{_hint(stage)}{said}"))
    return told


def _adds(action: Action, said: str) -> Action:
    proof = "; ".join(part for part in (action.proof, said) if part)
    return dataclasses.replace(action, proof=proof)


def _replayed(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Changes as the replay takes them: the pool of the CPU backend is a variable in GiB."""
    return {
        ("kv_cache_memory_bytes" if name == "VLLM_CPU_KVCACHE_SPACE" else name): (
            int(float(value) * GIB) if name == "VLLM_CPU_KVCACHE_SPACE" else value
        )
        for name, value in changes.items()
    }


def _levers(now: Situation, told: list[Action]) -> dict[str, tuple[Any, str, str]]:
    """Flag -> (value, cost, when) of what may be changed beside something else: the advice's own flags, and the safest utilization."""
    from oomdoc.replay import FLAGS as REPLAYED

    found: dict[str, tuple[Any, str, str]] = {}
    for action in told:
        # a shorter longest request is what one flag alone asks for so that the engine starts; beside others it may not
        own = {name: value for name, value in action.changes.items() if len(action.changes) == 1 or name != _BESIDE}
        if len(own) == 1 and {*own} <= REPLAYED.keys() and "survives" in action.predicted:
            ((name, value),) = own.items()
            found.setdefault(name, (value, action.cost, action.when))
    present = now.engine.get("gpu_memory_utilization")
    question = now.question
    if question is not None and present and "gpu_memory_utilization" not in found:
        try:
            safe = worksheet(question).utilization
        except OomdocError:
            safe = None
        if safe is not None and safe.starts is True and safe.safest > present:
            found["gpu_memory_utilization"] = (safe.safest, "less of the device is left for others", "now")
    return found


def _together(
    stage: Rehearsal, now: Situation, told: list[Action], before: Result, ran: dict[str, Result | None], left: int
) -> Action | None:
    """The flags that serve most requests in time together, each added where it helps most; None where one alone does as well.

    Two at once where none alone helps: one of them may not start without the other.
    """
    levers = _levers(now, told)
    made: dict[str, Any] = {}
    best, alone = before, before
    while len(made) < _MOST_TOGETHER and best.in_time < ALL and left > 0:
        others = [name for name in levers if name not in made]
        options: list[tuple[Result, dict[str, Any]]] = []
        for added in (*combinations(others, 1), *(combinations(others, 2) if not made else ())):
            if len(added) == 2 and any(result.in_time > best.in_time + FEW for result, _ in options):
                break
            changes = {**made, **{name: levers[name][0] for name in added}}
            if left <= 0 or guard(changes, now, devices=None).refused:
                continue
            if at_start(changes, now).values.get("starts") is False:
                continue
            if _key(changes) not in ran:
                ran[_key(changes)] = _run(stage, changes)
                left -= 1
            result = ran[_key(changes)]
            if result is not None:
                options.append((result, changes))
        found = max(options, key=lambda each: (each[0].in_time, -each[0].preemptions), default=None)
        if found is None or found[0].in_time <= best.in_time + FEW:
            break
        best, made = found
        alone = best if len(made) == 1 else alone
    if len(made) < 2 and not (made and {*made} == {"gpu_memory_utilization"}):
        return None
    flags = [f"`{argument(name, value)}`" for name, value in made.items()]
    together = len(made) > 1
    action = Action(
        "flags-together" if together else "safest-pool",
        f"Set {' and '.join(flags)}{' together' if together else ''}",
        (f"none of them alone has more of the recorded requests done in time than the {before.in_time:.0%} of the recorded flags, together {best.in_time:.0%}"
         if alone is before else f"alone {flags[0]} has {alone.in_time:.0%} of the recorded requests done in time, together {best.in_time:.0%}") if together
        else f"the largest share that leaves room for what the plan does not count has {best.in_time:.0%} of the recorded requests done in time",
        "; ".join(dict.fromkeys(levers[name][1] for name in made)),
        made,
        "`vllm:num_preemptions_total` and the time to the first token under the same load",
        {name: was for name in made if (was := stated(name, now)) is not None},
        when="after-load-test" if any(levers[name][2] != "now" for name in made) else "now",
    )  # fmt: skip
    return proven(action, made, best, before, stage)


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
    action = Action(
        "least-change", f"Lower `--max-num-seqs` to {low}", "the largest number with which the recorded traffic leaves "
        f"{MARGIN:.0%} of the pool free", "requests beyond it wait in the queue instead of being preempted and computed twice",
        {"max_num_seqs": low}, "`vllm:num_preemptions_total` stops rising under the same load",
        {} if (was := stated("max_num_seqs", now)) is None else {"max_num_seqs": was},
    )  # fmt: skip
    return proven(action, action.changes, best, before, stage)


def _overload(stage: Rehearsal, now: Situation, before: Result) -> list[Action]:
    """How much of the recorded traffic one such server serves, and how many servers serve all of it; nothing where one does."""
    low, high, best = 0.0, 1.0, None
    for _ in range(_SHARE_STEPS):
        share = (low + high) / 2
        result = stage.part(share)
        if result.survives and result.peak_used <= 1 - MARGIN:
            low, best = share, result
        else:
            high = share
    if best is None:
        return []
    rate = stage.per_minute * low
    heavy = _heaviest(now)
    outcome = _outcome(best, before)
    shed = Action(
        "admit-less",
        f"Admit at most {_rate(rate)} of this mix at the gateway, and refuse or delay the rest" + (f"; begin with {heavy}" if heavy else ""),
        f"{_rate(stage.per_minute)} came around the incident; the pool serves {low:.0%} of them with {MARGIN:.0%} of it free",
        "clients beyond that rate have to try again later", {}, "`vllm:num_preemptions_total` stops rising and the queue is empty",
        predicted={**_figures(best, before, stage), "served": low}, proof=f"{_hint(stage)}replayed with {low:.0%} of the recorded requests, evenly taken, it {outcome}{stage.error}",
    )  # fmt: skip
    found = [shed]
    count, one = _fewest(stage, max(2, math.ceil(1 / low)), MOST_REPLICAS)
    if one is not None:
        found.append(
            Action(
                "more-replicas",
                f"Run {count} such servers behind one address, each {'with GPUs' if now.on_gpu else 'on a node'} of its own",
                f"one of them serves {low:.0%} of what came around the incident",
                f"{count} times the {'GPUs' if now.on_gpu else 'nodes'}",
                {},
                "usage stays below 90% in the busiest five minutes",
                predicted=_figures(one, before, stage),
                proof=_shared(count, one, before, stage),
                when="after-load-test",
            )
        )
    return found


def scaled(action: Action, now: Situation) -> Action:
    """Advice that lets a scaler start servers, with the number of them that the recorded traffic asks for; as it is where nothing tells."""
    stage = now.rehearsal
    if stage is None or action.changes:
        return action
    before = stage.run({})
    if before.in_time >= ALL:
        return action
    most = action.values.get("maximum")
    # where it is a cap that makes the queue, each server's pool has room from the start, and only who is in time tells
    least = ALL if before.survives else 0.0
    count, result = _fewest(stage, 2, int(most) if most and most >= 2 else MOST_REPLICAS, in_time=least)
    if result is None:
        return action
    return dataclasses.replace(
        action,
        why=f"{action.why}; {count} such servers hold what came around the incident by its replay",
        predicted={**action.predicted, **_figures(result, before, stage)},
        proof=_shared(count, result, before, stage),
    )


def refilled(action: Action, now: Situation) -> Action:
    """Advice that is no flag and gives the pool back what was taken of it (`pool_after`, tokens), on the recorded traffic."""
    stage, tokens = now.rehearsal, action.values.get("pool_after")
    if action.changes or stage is None or not tokens:
        return action
    before = stage.run({})
    result = None if before.survives else _run(stage, {"num_gpu_blocks_override": int(tokens) // stage.pool.block_size})
    if result is None:
        return action
    said = f"{_hint(stage)}replayed with {int(tokens):,} tokens of pool, the recorded traffic {_outcome(result, before)}{stage.error}"
    return dataclasses.replace(
        action, predicted={**action.predicted, **_figures(result, before, stage)}, proof=_adds(action, said).proof
    )


def _fewest(stage: Rehearsal, least: int, most: int, *, in_time: float = 0.0) -> tuple[int, Result | None]:
    """The fewest servers of which each holds its part of the traffic, leaves the margin and has so many in time, with what one came to;
    None where none does."""
    for count in range(least, most + 1):
        result = stage.part(1 / count)
        if result.survives and result.peak_used <= 1 - MARGIN and result.in_time >= in_time:
            return count, result
    return most, None


def _shared(count: int, result: Result, before: Result, stage: Rehearsal) -> str:
    return f"{_hint(stage)}replayed with one request of {count} for each, one {_outcome(result, before)}{stage.error}"


def _rate(per_minute: float) -> str:
    """Requests in a unit that has digits before the point.

    >>> _rate(90.0), _rate(0.25)
    ('90 requests a minute', '15 requests an hour')
    """
    return f"{per_minute:.0f} requests a minute" if per_minute >= 2 else f"{per_minute * 60:.0f} requests an hour"


def _heaviest(now: Situation) -> str:
    """The sender whose tokens are far above its share of the requests, in words; "" where there is none or nobody is named."""
    rows = now.store.rows_of(
        "SELECT tenant, count(*) / sum(count(*)) OVER () AS requests, sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)) / nullif(sum(sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0))) OVER (), 0) AS tokens "
        "FROM request WHERE tenant IS NOT NULL GROUP BY tenant ORDER BY tokens DESC NULLS LAST, tenant LIMIT 1"
    )
    for row in rows:
        if (
            row["tokens"]
            and row["tokens"] >= _HEAVY
            and row["tokens"] >= _HEAVIER * row["requests"]
            and row["requests"] < 1
        ):
            return f"`{row['tenant']}`, who sends {row['requests']:.0%} of the requests and {row['tokens']:.0%} of the tokens"
    return ""


def _outcome(result: Result, before: Result) -> str:
    outcome = "no preemptions" if not result.preemptions else f"{result.preemptions:,} preemptions"
    if result.impossible:
        outcome += f", and {result.impossible:,} requests that the pool can never hold"
    times = ""
    if before.p95_latency_s and result.p95_latency_s > SLOWER * before.p95_latency_s + SLOWER_S:
        times = f", {result.p95_latency_s / before.p95_latency_s:.1f} times as long"
    return (
        f"peaks at {result.peak_used:.0%} of the pool with {outcome}, against {before.preemptions:,} with the recorded flags; "
        f"95% of the requests are done within {show_seconds(result.p95_latency_s)}, {show_seconds(before.p95_latency_s)} before{times}, "
        f"and begin within {show_seconds(result.p95_wait_s)}, {show_seconds(before.p95_wait_s)} before; "
        f"{result.in_time:.0%} are in time ({IN_TIME}), {before.in_time:.0%} before"
    )


def _effect(result: Result, before: Result) -> str:
    """The same in fewer words where nobody would notice the change."""
    if result.preemptions or before.preemptions or result.impossible or before.impossible:
        return _outcome(result, before)
    if (
        abs(result.p95_latency_s - before.p95_latency_s) > SLOWER_S
        or abs(result.p95_wait_s - before.p95_wait_s) > SLOWER_S
    ):
        return _outcome(result, before)
    return (
        f"peaks at {result.peak_used:.0%} of the pool, {before.peak_used:.0%} before, with no preemptions, and 95% of the requests are done "
        f"as soon as before (within {show_seconds(result.p95_latency_s)})"
    )


def _figures(result: Result, before: Result, stage: Rehearsal) -> dict[str, Any]:
    return {
        "survives": result.survives, "peak_used": result.peak_used, "preemptions": result.preemptions,
        "preemptions_before": before.preemptions, "p95_wait_s": result.p95_wait_s, "p95_wait_before_s": before.p95_wait_s,
        "p95_latency_s": result.p95_latency_s, "p95_latency_before_s": before.p95_latency_s, "requests": stage.requests,
        "in_time": result.in_time, "in_time_before": before.in_time,
    }  # fmt: skip


def proven(action: Action, changes: Mapping[str, Any], result: Result, before: Result, stage: Rehearsal) -> Action:
    """The action with what the recorded traffic came to under its changes."""
    flags = " ".join(f"{spelled(name)} {value}" for name, value in changes.items())
    part = (
        f" ({stage.requests:,} of {stage.of:,} requests, those around the incident)" if stage.of > MOST_REQUESTS else ""
    )
    proof = f"{_hint(stage)}replayed with {flags}, the recorded traffic{part} {_outcome(result, before)}{stage.error}"
    return dataclasses.replace(action, predicted={**action.predicted, **_figures(result, before, stage)}, proof=proof)


def _hint(stage: Rehearsal) -> str:
    """Says at the beginning of a proof that it is none, where the replay of the recorded flags is far from the recording."""
    return "" if stage.near else "a hint and no proof, since the recorded flags do not show the recording: "


def _says(action: Action, proof: str) -> Action:
    return action if action.proof or not action.changes else dataclasses.replace(action, proof=proof)
