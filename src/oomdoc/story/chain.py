"""Why, as a chain of cause and effect in the numbers of this bundle: two to four links, each with the places it rests on.

A cause has a function that says what led to the failure; how it failed and what followed are said alike for all. A link stands
only where all of its numbers are known, and the numbers of one sentence come from one observation, one entry of the ledger or one
start. Without a function, or without its numbers, the strongest observations speak.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from oomdoc.model import LedgerEntry, Link
from oomdoc.story.impact import pool_tokens
from oomdoc.story.place import CAUGHT, STARTING, device_word, driver, not_seen, sentence
from oomdoc.story.seen import Seen
from oomdoc.units import GIB, count, parse_size, percent, show_bytes, show_moment, show_seconds

MOST_LINKS = 4
_LEADS = 3  # links before the failure and what followed
_SAYS_THE_FAILURE = frozenset(
    {
        "healthy",
        "not-memory",
        "probe-restart-loop",
        "host-memory-exhausted",
        "allocator-fragmentation",
        "kv-demand-exceeds-pool",
    }
)
"""Causes whose own links end with the failure."""


def chain(seen: Seen) -> tuple[Link, ...]:
    """From the cause to what it did, at most four links; empty where the report names no cause."""
    if not seen.cause or seen.first is None:
        return ()
    made = list(_BY_CAUSE.get(seen.cause, _nothing)(seen))
    if not made:
        # a sentence that repeats a stronger one, or that lacks its own figure, is no link
        told = [item for item in seen.first.evidence if item.weight > 0 and "unknown" not in item.says]
        made = [Link(item.says, item.refs[:2]) for item in told[:2] or seen.first.evidence[:1]]
    made = made[:_LEADS]
    if seen.cause not in _SAYS_THE_FAILURE and (failed := _failed(seen)):
        made.append(failed)
    if (after := _after(seen)) is not None:
        made.append(after)
    return tuple(made[:MOST_LINKS])


def _nothing(_: Seen) -> Iterator[Link]:
    return iter(())


# ---- how it failed, and what followed

_ASKED = re.compile(r"Tried to allocate ([\d.]+ [KMG]iB)")
_FREE = re.compile(r"of which ([\d.]+ [KMG]iB) is free")


_START = re.compile(r"failed to start|initialization failed")


def _failed(seen: Seen) -> Link | None:
    incident = seen.incident
    failure = incident.first_failure if incident else None
    if incident is None or failure is None:
        return None
    at = f" at {show_moment(failure.time)}" if failure.time is not None else ""
    asked, free = _ASKED.search(failure.text), _FREE.search(failure.text)
    if asked:
        room = f" with {_size(free[1])} free" if free else ""
        said = f"{_size(asked[1])} were asked for{room}, and the allocation failed{at}"
    else:
        words = {
            "host-kill": "the kernel ended the process",
            "host-alloc": "an allocation of host memory failed",
            "shm": "shared memory ran out",
            "startup-check": "the start failed" if incident.phase in CAUGHT else "the engine refused to start",
            "pressure": "the pool is full",
            "restart": "the container was restarted",
            "exit": "a process ended",
        }.get(incident.kind)
        if words is None and seen.engine is not None:
            died = "the start failed" if _START.search(failure.text) else "the server failed"
            words = {"refused": "the start failed", "died": died}.get(seen.engine.outcome or "")
        if words is None and incident.phase in STARTING:
            words = "the start failed"
        if words is None:
            return None
        said = words + (f" {at.strip().replace('at ', 'from ', 1)} on" if incident.kind == "pressure" and at else at)
    return Link(said, (failure.ref,))


def _size(text: str) -> str:
    """A size of a message as reports write sizes."""
    size = parse_size(text)
    return text if size is None else show_bytes(size)


def _after(seen: Seen) -> Link | None:
    incident = seen.incident
    if incident is None:
        return None
    impact, said, refs = incident.impact, [], []
    if len(seen.alike) > 1:
        said.append(f"{len(seen.alike)} starts ended the same way")
        refs = [each.first_failure.ref for each in seen.alike[1:3] if each.first_failure]
    elif impact.restarts:
        said.append(f"{count(impact.restarts, 'start')} followed")
    elif seen.facts.container.get("restarts") and incident.kind == "host-kill":
        said.append(f"the container was restarted {count(seen.facts.container['restarts'], 'time')}")
        refs = [seen.facts.container["ref"]]
    if impact.requests_lost:
        said.append(f"{count(impact.requests_lost, 'request')} failed")
    if impact.preemptions:
        said.append(f"{count(impact.preemptions, 'preemption')}, whose tokens were computed again")
    if impact.down_s is not None:
        said.append(f"no service for {show_seconds(impact.down_s)}")
        refs += [impact.back_ref] if impact.back_ref else []
    return Link("; ".join(said), tuple(refs)) if said else None


# ---- what led to it, cause by cause

_NAMES = {
    "weights_bytes": "weights", "feature_bytes": "adapters and drafts", "kv_pool_bytes": "KV pool", "cuda_graph_bytes": "CUDA graphs", "activation_bytes": "activations",
    "non_torch_bytes": "outside torch", "other_processes_bytes": "other processes", "allocator_slack_bytes": "allocator slack", "unexplained_bytes": "unexplained",
}  # fmt: skip


def _gib(size: float) -> str:
    return f"{size / GIB:.2f}"


def _sum(entry: LedgerEntry | None) -> Link | None:
    """The books of the failure as one sum."""
    if entry is None or not entry.total_bytes or entry.parts.get("free_bytes") is None:
        return None
    names = dict(_NAMES)
    if entry.parts.get("weights_bytes") is None and entry.parts.get("kv_pool_bytes") is None:
        names["unexplained_bytes"] = "weights, KV pool and what else torch has, not told apart"
    parts = [(name, size) for key, name in names.items() if (size := entry.parts.get(key)) and size / GIB >= 0.005]
    if len(parts) < 2:
        return None
    free = entry.parts["free_bytes"] or 0
    held = " + ".join(f"{name} {_gib(size)}" for name, size in parts)
    return Link(f"{held}, and {show_bytes(free)} free of {show_bytes(entry.total_bytes)}", entry.refs[:2])


def _plan(seen: Seen) -> Iterator[Link]:
    """What utilization grants of the device, and what it leaves."""
    entry, util = seen.book("failure") or seen.book("plan") or seen.book("rest"), seen.number("gpu_memory_utilization")
    if util is None or entry is None or not entry.total_bytes:
        return
    granted = util * entry.total_bytes
    yield Link(
        f"`--gpu-memory-utilization {util:g}` x {show_bytes(entry.total_bytes)} = {show_bytes(granted)} for the plan, "
        f"{show_bytes(entry.total_bytes - granted)} for all else",
        seen.flag_ref("gpu_memory_utilization") or entry.refs[:1],
    )


def _edge(seen: Seen) -> Iterator[Link]:
    yield from _plan(seen)
    if held := _sum(seen.book("failure")):
        yield held


def _host(seen: Seen) -> Iterator[Link]:
    offload, item = seen.number("cpu_offload_gb"), seen.evidence("killed-for-host-memory")
    limit = item.values.get("limit") if item else seen.facts.container.get("memory_limit_bytes")
    of = item.refs[:1] if item else ()
    if offload:
        taken = offload * seen.ranks * GIB
        met = ""
        if limit:
            near = "all of" if abs(taken - limit) < 0.01 * limit else "more than" if taken > limit else "of"
            met = f", {near} the container's limit of {show_bytes(limit)}"
        yield Link(
            f"`--cpu-offload-gb {offload:g}` x {count(seen.ranks, 'rank')} = {show_bytes(taken)} of host memory{met}",
            (*seen.flag_ref("cpu_offload_gb"), *of),
        )
    raise_it = seen.action("raise-the-limit")
    if raise_it and " = " in raise_it.why and (" + " in raise_it.why):
        yield Link(raise_it.why, of)
    elif item and limit and not offload:
        yield Link(f"the limit of host memory is {show_bytes(limit)}", of)
    if item:
        held = item.values.get("bytes")
        far = ""
        if seen.facts.progress and (share := _share(seen.facts.progress)) is not None:
            far = f", at {percent(share)} of the shards ({seen.facts.progress})"
        at = seen.incident.started if seen.incident else None
        begun = f" at {show_moment(at)}" if at is not None else ""
        yield Link(
            f"the kernel ended the process{begun}{f' with {show_bytes(held)} resident' if held else ''}{far}",
            (*of, *((seen.facts.progress_ref,) if far and seen.facts.progress_ref else ())),
        )


def _share(progress: str) -> float | None:
    """`22/30` as a share."""
    k, _, n = progress.partition("/")
    return int(k) / int(n) if k.isdigit() and n.isdigit() and int(n) else None


def _demand(seen: Seen) -> Iterator[Link]:
    traffic, pool = seen.traffic, pool_tokens(seen)
    told = traffic.get("incident") or {}
    before, during = told.get("before") or {}, told.get("during") or {}
    if before.get("prompt_tokens_per_s") and during.get("prompt_tokens_per_s"):
        ratio = during["prompt_tokens_per_s"] / before["prompt_tokens_per_s"]
        if ratio >= 1.2:
            longer = ""
            if before.get("input_p95") and during.get("input_p95") and during["input_p95"] > 1.2 * before["input_p95"]:
                longer = (
                    f", 95% of them up to {count(during['input_p95'])} tokens long, {count(before['input_p95'])} before"
                )
            yield Link(
                f"prompts brought {count(during['prompt_tokens_per_s'])} tokens a second, {count(before['prompt_tokens_per_s'])} before ({ratio:.1f} times){longer}"
            )
    peak = ((traffic.get("peaks") or {}).get("tokens_in_flight") or {}).get("value")
    books = seen.book("rest") or seen.book("plan")
    if peak and pool and peak > pool:
        yield Link(
            f"up to {count(peak)} tokens were in flight, each request counted in full; the pool stores {count(pool)}",
            books.refs[:1] if books else (),
        )
    full = seen.evidence("pool-pinned")
    queue = seen.evidence("queue-at-full-pool")
    said = []
    at = seen.incident.started if seen.incident else None
    if full and {"share", "samples"} <= set(full.values):
        said.append(f"95% full or more in {percent(full.values['share'])} of {count(full.values['samples'], 'sample')}")
    if queue and queue.values.get("waiting"):
        said.append(f"up to {count(queue.values['waiting'], 'request')} waiting")
    shown = full or queue
    if said and shown:
        since = f" from {show_moment(at)} on" if at is not None else ""
        yield Link(f"the pool is full{since}: {', '.join(said)}", shown.refs[:1])
    counted = seen.evidence("preempting")
    if counted and not (seen.incident and seen.incident.impact.preemptions):
        yield Link(counted.says, counted.refs[:1])


def _length(seen: Seen) -> Iterator[Link]:
    length = seen.number("max_model_len")
    entry = seen.book("plan") or seen.book("profiled")
    item = seen.evidence("engine-refused-the-length")
    asked = (item.values.get("check_len") if item else None) or length
    nobody = seen.evidence("length-nobody-asked-for")
    if asked:
        own = "the model's own length, which no flag sets" if nobody else "as it was set"
        each = entry.kv_bytes_per_token if entry else None
        needs = f": x {show_bytes(each)} a token = {show_bytes(asked * each)} for one such request" if each else ""
        yield Link(
            f"`--max-model-len {asked:.0f}` ({own}){needs}",
            (nobody.refs[:1] if nobody else ()) or seen.flag_ref("max_model_len"),
        )
    pool, room = pool_tokens(seen), entry.parts.get("kv_pool_bytes") if entry else None
    if item and item.values.get("pool_tokens"):
        pool = int(item.values["pool_tokens"])
    if pool or room is not None:
        has = [show_bytes(room)] if room is not None else []
        has += [count(pool, "token")] if pool else []
        yield Link(
            f"what is left for KV on {'the poorest rank' if seen.ranks > 1 else device_word(seen)} is {' = '.join(has)}",
            item.refs[:1] if item else (),
        )


def _low_budget(seen: Seen) -> Iterator[Link]:
    entry, util = seen.book("plan") or seen.book("profiled"), seen.number("gpu_memory_utilization")
    if entry and entry.total_bytes and util is not None:
        granted = util * entry.total_bytes
        weights = entry.parts.get("weights_bytes")
        takes = f"; the weights alone take {show_bytes(weights)}" if weights and weights > 0.3 * granted else ""
        yield Link(
            f"`--gpu-memory-utilization {util:g}` x {show_bytes(entry.total_bytes)} = {show_bytes(granted)} for everything{takes}",
            seen.flag_ref("gpu_memory_utilization"),
        )
    item = seen.evidence("nothing-left-for-kv", "negative-budget-on-host")
    if item and "available" in item.values:
        known = entry and entry.total_bytes and util is not None
        what = "that" if known else f"`--gpu-memory-utilization {util:g}`" if util is not None else "the budget"
        yield Link(f"{what} leaves {show_bytes(item.values['available'])} for the KV pool", item.refs[:1])


def _shared(seen: Seen) -> Iterator[Link]:
    item = seen.item("free", "total", "wanted", "taken")
    if item:
        now = item.values
        on = seen.book("failure")
        name = f" of rank {on.rank}" if on and on.rank is not None and seen.ranks > 1 else ""
        parts = on.parts if on else {}
        others, own = parts.get("other_processes_bytes"), parts.get("non_torch_bytes")
        whose = ""
        if others and own and abs(others + own - now["taken"]) < 0.02 * now["total"]:
            whose = f": {show_bytes(others)} by others, {show_bytes(own)} by the context of its own process"
        yield Link(
            f"before the engine loaded anything, {show_bytes(now['taken'])} of the {show_bytes(now['total'])}{name} were taken already{whose}",
            item.refs[:1],
        )
        yield Link(
            f"the engine asks for {show_bytes(now['wanted'])} (its share of all of {device_word(seen)}), {show_bytes(now['free'])} were free",
            item.refs[:1],
        )
        return
    for other in (seen.item("n", "other"), seen.item("used", "total"), seen.item("taken")):
        if other:
            yield Link(other.says, other.refs[:1])
            return


def _weights(seen: Seen) -> Iterator[Link]:
    item = seen.evidence("expected-size-exceeds-device")
    if item and {"expected", "total"} <= set(item.values):
        now = item.values
        made = ""
        if now.get("params") and now.get("bytes_per_param"):
            made = f": {now['params'] / 1e9:.3g} billion parameters x {now['bytes_per_param']:g} bytes"
            made += f" / {count(seen.ranks, 'rank')}" if seen.ranks > 1 else ""
        yield Link(
            f"the weights need {show_bytes(now['expected'])} on {device_word(seen).replace('the GPU', 'each GPU')}{made}; {device_word(seen)} has {show_bytes(now['total'])}",
            item.refs[:1],
        )
    budget = seen.evidence("weights-take-the-budget")
    if budget and {"weights", "budget"} <= set(budget.values):
        yield Link(
            f"the weights take {show_bytes(budget.values['weights'])} of a budget of {show_bytes(budget.values['budget'])}",
            budget.refs[:1],
        )
    live = seen.item("live_bytes", "total_bytes")
    if live:
        now = live.values
        yield Link(
            f"loading stopped with {show_bytes(now['live_bytes'])} of {show_bytes(now['total_bytes'])} taken",
            live.refs[:1],
        )


def _undersharded(seen: Seen) -> Iterator[Link]:
    item = seen.evidence("more-devices-than-ranks")
    plan = seen.book("plan")
    weights = plan.parts.get("weights_bytes") if plan else None
    if item and {"devices", "world_size"} <= set(item.values):
        now = item.values
        size = f" ({show_bytes(weights)} of weights)" if weights else ""
        yield Link(
            f"{count(now['devices'])} GPUs are there, and the whole model{size} goes to {count(now['world_size'])} of them",
            item.refs[:1],
        )
    idle, live = seen.evidence("idle-devices"), seen.item("live", "total")
    if live:
        beside = f"; {count(idle.values['idle'], 'GPU')} beside it idle" if idle and idle.values.get("idle") else ""
        yield Link(
            f"{show_bytes(live.values['live'])} of {show_bytes(live.values['total'])} were taken on that one{beside}",
            live.refs[:1],
        )
    elif idle:
        yield Link(idle.says, idle.refs[:1])


def _spike(seen: Seen) -> Iterator[Link]:
    step, one, logprobs = seen.item("tokens"), seen.item("requested"), seen.evidence("prompt-logprobs-asked")
    words = seen.facts.vocabulary
    tokens = step.values["tokens"] if step else seen.number("max_num_batched_tokens")
    if logprobs and one and tokens and words and abs(tokens * words * 4 / one.values["requested"] - 1) < 0.02:
        yield Link(
            f"prompt logprobs: {count(tokens)} tokens of the step x {count(words)} words of the vocabulary x 4 bytes = {show_bytes(tokens * words * 4)} in one piece",
            logprobs.refs[:1],
        )
    elif step:
        yield Link(step.says, step.refs[:1])
    if held := _sum(seen.book("failure")):
        yield held
    room = seen.evidence("pool-had-room")
    if room and "kv_used" in room.values:
        yield Link(
            f"the KV pool was {percent(room.values['kv_used'])} in use and is no part of it: its bytes are taken at the start",
            room.refs[:1],
        )


def _graphs(seen: Seen) -> Iterator[Link]:
    yield from _plan(seen)
    item = seen.item("graphs", "left") or seen.item("pools", "requested", "free") or seen.item("estimate", "share")
    if item:
        yield Link(item.says, item.refs[:1])
    if held := _sum(seen.book("failure")):
        yield held


def _feature(seen: Seen) -> Iterator[Link]:
    for item in (seen.first.evidence if seen.first else ())[:1]:
        yield Link(item.says, item.refs[:1])
    if held := _sum(seen.book("failure")):
        yield held


def _sequences(seen: Seen) -> Iterator[Link]:
    item = seen.evidence("request-fits-sequences")
    seqs = seen.number("max_num_seqs")
    if item and {"requested", "seqs"} <= set(item.values):
        now, words = item.values, seen.facts.vocabulary
        each = now["requested"] / now["seqs"]
        row = ""
        if words and (size := round(each / words)) and abs(each / words - size) < 0.05 * size and size in (2, 4, 8, 12):
            row = f" x {count(words)} words of the vocabulary x {size} bytes"
        yield Link(
            f"`--max-num-seqs {now['seqs']:.0f}`{row} = {show_bytes(now['requested'])} for the sampler, before anyone is served",
            item.refs[:1] or seen.flag_ref("max_num_seqs"),
        )
    elif seqs:
        yield Link(f"`--max-num-seqs {seqs:.0f}`: the warm-up runs that many at once", seen.flag_ref("max_num_seqs"))
    if held := _sum(seen.book("failure")):
        yield held


def _pieces(seen: Seen) -> Iterator[Link]:
    holes, reserve = seen.item("split"), seen.item("unallocated", "requested", "free") or seen.item("unallocated")
    if holes:
        share = f", {percent(holes.values['share'])} of what torch reserved" if "share" in holes.values else ""
        yield Link(
            f"{show_bytes(holes.values['split'])} lie in pieces between live tensors{share}",
            holes.refs[:1],
        )
    if reserve:
        now = reserve.values
        asked = f", and {show_bytes(now['requested'])} in one piece were not to be had" if "requested" in now else ""
        free = f" beside {show_bytes(now['free'])} free" if "free" in now else ""
        at = seen.incident.started if seen.incident else None
        asked += f" at {show_moment(at)}" if asked and at is not None else ""
        yield Link(
            f"{show_bytes(now['unallocated'])} were reserved but unallocated{free}{asked}",
            reserve.refs[:1],
        )


def _probe(seen: Seen) -> Iterator[Link]:
    box = seen.facts.container
    ref = (box["ref"],) if box.get("ref") else ()
    if busy := seen.action("probe-apart-from-the-load"):
        yield from _probe_at_work(seen, busy.why.partition(":")[0], ref)
        return
    rule = re.search(
        r"delay=(\d+)s.*?period=(\d+)s.*?#failure=(\d+)", str(box.get("startup") or box.get("liveness") or "")
    )
    if rule:
        delay, period, failures = (int(each) for each in rule.groups())
        which = "startup" if box.get("startup") else "liveness"
        yield Link(
            f"the {which} probe waits {delay} s + {count(failures, 'failure')} x {period} s = {show_seconds(delay + failures * period)}",
            ref,
        )
    if seen.facts.ended_by and not rule:
        yield Link(sentence(seen.facts.ended_by), (seen.facts.ended_ref,) if seen.facts.ended_ref else ())
    ran = box.get("ran_s")
    lived = [each for each in seen.facts.lived_s if each >= 1]
    reached, places = _reached(seen)
    if ran or lived or reached:
        said = f"the server was ended after {show_seconds(ran)}" if ran else ""
        if not said and lived and not reached:
            span = sorted({show_seconds(each) for each in (min(lived), max(lived))}, key=len)
            said = f"the log shows {' to '.join(span)} of life a start"
        yield Link(
            "; ".join(part for part in (said, reached) if part), (*ref[:1], *places) if ran or not places else places
        )
    yield from _ended_by_probes(seen)


def _probe_at_work(seen: Seen, work: str, ref: tuple[str, ...]) -> Iterator[Link]:
    """A server that had come up: what it was doing, what the probe allows, and how often it was ended; how long it lived says nothing."""
    rule = re.search(r"timeout=(\d+)s period=(\d+)s.*?#failure=(\d+)", str(seen.facts.container.get("liveness") or ""))
    failed = seen.evidence("probe-failures-and-restarts", "restarts-behind-failed-probes")
    yield Link(work, failed.refs[:1] if failed else ())
    if rule:
        timeout, period, misses = (int(each) for each in rule.groups())
        row = "a single miss" if misses == 1 else f"{misses} misses in a row, {period} s apart"
        yield Link(f"the liveness probe gives each answer {timeout} s and ends the server after {row}", ref)
    elif seen.facts.ended_by:
        yield Link(sentence(seen.facts.ended_by), (seen.facts.ended_ref,) if seen.facts.ended_ref else ())
    yield from _ended_by_probes(seen)


def _ended_by_probes(seen: Seen) -> Iterator[Link]:
    item = seen.evidence("probe-failures-and-restarts")
    if item:
        yield Link(item.says, item.refs[:1])
    elif seen.first:
        yield from (Link(each.says, each.refs[:1]) for each in seen.first.evidence[:1])


_REACHED = {
    "server-version": "had only printed its version", "engine-init": "had begun to set up the engine", "load-start": "had begun to load weights",
    "weights-read": "had read all weights", "loaded": "had loaded all weights", "profiled": "had measured its peak", "kv-available": "had measured the room for KV",
    "kv-sized": "had sized the KV pool", "capture-start": "had begun to capture graphs", "capture-progress": "was capturing graphs", "captured": "had captured its graphs",
}  # fmt: skip
"""How far a start came, by the name of its last step; one that was ready is none that a probe ended while it loaded."""


def _reached(seen: Seen) -> tuple[str, tuple[str, ...]]:
    """How far loading came, in shards where the start in focus counts them and is not through, else by the last step of the furthest start."""
    far, best = seen.facts.progress, seen.facts.furthest
    if far and (share := _share(far)) is not None and (share < 1 or best is None or best.step not in _REACHED):
        return f"loading had come to {far} shards", (seen.facts.progress_ref,) if seen.facts.progress_ref else ()
    if best is None or best.step not in _REACHED:
        return "", ()
    whose = "the start" if best.starts == 1 else "the start that came furthest"
    after = f" {show_seconds(best.after_s)} after its first line" if best.after_s else ""
    return f"{whose} {_REACHED[best.step]}{after}, and was not ready", (best.ref,)


def _leak(seen: Seen) -> Iterator[Link]:
    grown = seen.item("first", "last")
    if grown and len(seen.facts.states) == 2 and (begin := seen.facts.states[0]).bytes > 0:
        end = seen.facts.states[1]
        yield Link(f"{begin.state}: {begin.name} took {show_bytes(begin.bytes)}", (begin.ref,))
        yield Link(
            f"{end.state}: {show_bytes(begin.bytes)} + {show_bytes(end.bytes - begin.bytes)} = {show_bytes(end.bytes)}, "
            f"{end.bytes / begin.bytes:.1f} times as much",
            (end.ref,),
        )
        grown = None
    for item in (grown, seen.item("kv_used"), seen.item("freed")):
        if item:
            now = item.values
            if {"first", "last"} <= set(now) and now["last"] > now["first"]:
                yield Link(f"{item.says}: {show_bytes(now['last'] - now['first'])} more", item.refs[:2])
            else:
                yield Link(item.says, item.refs[:2])


def _uneven(seen: Seen) -> Iterator[Link]:
    told = seen.item("low", "high")
    plans = [entry for entry in seen.books if entry.moment == "plan" and entry.parts.get("kv_pool_bytes") is not None]
    ranks = {entry.rank: entry.parts["kv_pool_bytes"] or 0 for entry in plans if entry.rank is not None}
    if told and told.values["low"] < 0:  # less than nothing: a pool of no bytes does not say by how much
        low, high = told.values["low"], told.values["high"]
        without = [rank for rank, size in ranks.items() if size == 0]
        whose = f"rank {without[0]}" if len(without) == 1 else "the poorest rank"
        yield Link(
            f"left for KV: {show_bytes(low)} on {whose}, {show_bytes(high)} on the richest: {show_bytes(high)} + {show_bytes(-low)} = "
            f"{show_bytes(high - low)} more are taken on {whose}, and every rank gets what it has",
            told.refs[:1],
        )
        return
    if len(ranks) > 1 and min(ranks.values()) != max(ranks.values()):
        said = ", ".join(f"rank {rank} {show_bytes(size)}" for rank, size in sorted(ranks.items())[:8])
        poor = min(ranks, key=lambda rank: ranks[rank])
        refs = tuple(ref for entry in plans if entry.rank == poor for ref in entry.refs[:1])
        yield Link(f"left for KV: {said}; every rank gets what rank {poor} has", refs)
    for item in (
        seen.item("low", "high"),
        seen.item("small", "large"),
        seen.item("other", "n"),
        seen.item("live", "least"),
    ):
        if item and not (ranks and "low" in item.values and len(set(ranks.values())) > 1):
            yield Link(item.says, item.refs[:1])


_SEGMENT = re.compile(r"(/dev/shm/[^\s()]+).*?(?:size |to )(\d{4,})")
"""NCCL's two messages of a segment that could not be made (`misc/shmutils.cc` of 2.1x and 2.2x)."""


def _segment(seen: Seen) -> Iterator[Link]:
    item = seen.evidence("shared-memory-too-small")
    mount = seen.evidence("segment-in-a-default-mount")
    text = seen.incident.first_failure.text if seen.incident and seen.incident.first_failure else ""
    if found := _SEGMENT.search(item.says if item else text):
        yield Link(
            f"NCCL asked for a segment of {show_bytes(int(found[2]))} (`{found[1]}`), and /dev/shm had no room for it",
            item.refs[:1] if item else (),
        )
    elif mount and item:  # what the other one quotes is a line of `df`
        yield Link(mount.says, mount.refs[:1])


_TOO_LONG = re.compile(r"max_model_len \((\d+)\) is greater than the derived max_model_len \((\w+)=(\d+(?:\.\d+)?)")
"""vLLM's own check of the length asked for against the model's config.json (`vllm/config/model.py`)."""


def _other(seen: Seen) -> Iterator[Link]:
    failure = seen.incident.first_failure if seen.incident else None
    if failure is None:
        return
    if found := driver(failure.text):
        yield Link(
            f"the host's driver supports CUDA {found}, torch in this image was made for a newer one", (failure.ref,)
        )
        yield Link("torch refuses the GPU before anything is loaded: no memory setting plays a part", (failure.ref,))
        return
    at = f"{show_moment(failure.time)}: " if failure.time is not None else ""
    if asked := _TOO_LONG.search(failure.text):
        asks, has = int(asked[1]), float(asked[3])
        times = f"{asks / has:.2g} times the" if has > 0 else "more than the"
        yield Link(
            f"`--max-model-len {asks}` asks for {count(asks)} tokens, {times} {count(has)} that the model's own configuration allows (`{asked[2]}`)",
            seen.flag_ref("max_model_len")[:1] or (failure.ref,),
        )
        yield Link(
            f"the engine refused to start{at and ' at ' + at[:-2]}: no memory setting plays a part", (failure.ref,)
        )
        return
    yield Link(f"first of all, {at}{sentence(failure.text)}", (failure.ref,))
    for item in seen.first.evidence if seen.first else ():
        if item.id != "other-error-first":
            yield Link(item.says, item.refs[:1])


def _well(seen: Seen) -> Iterator[Link]:
    room = seen.evidence("pool-has-room")
    answered = seen.evidence("requests-failed")
    served = seen.evidence("served-without-failure", "served-by-other-signs", "pool-made-and-no-failure")
    for item in (served, answered, room):
        if item:
            yield Link(item.says, item.refs[:1])
    *most, last = not_seen(seen) or [""]
    if most:  # one of them is missing nearly always
        read = seen.report.coverage.sources
        lines = count(sum(source.lines for source in read), "line")
        yield Link(
            f"that is all: {lines} of {count(len(read), 'source')} were read, and they do not say {', '.join(most)} or {last}"
        )


_BY_CAUSE: dict[str, Callable[[Seen], Iterator[Link]]] = {
    "allocator-fragmentation": _pieces, "cuda-graph-overhead": _graphs, "feature-overhead": _feature, "gpu-shared": _shared, "healthy": _well, "host-memory-exhausted": _host,
    "kv-demand-exceeds-pool": _demand, "kv-pool-below-max-model-len": _length, "max-num-seqs-too-high": _sequences, "memory-leak": _leak, "memory-utilization-edge": _edge,
    "memory-utilization-too-low": _low_budget, "not-memory": _other, "prefill-activation-spike": _spike, "probe-restart-loop": _probe, "rank-imbalance": _uneven, "shm-exhausted": _segment,
    "tp-undersharded": _undersharded, "weights-exceed-gpu": _weights,
}  # fmt: skip
