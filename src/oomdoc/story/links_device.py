"""Links of causes that lie in the memory of a device, beside its pool."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoc.model import Link
from oomdoc.story.links import planned, sum_of_books
from oomdoc.story.place import device_word
from oomdoc.story.seen import Seen
from oomdoc.units import count, percent, show_bytes, show_moment


def from_edge(seen: Seen) -> Iterator[Link]:
    """From a share of the device that leaves too little beside it."""
    yield from planned(seen)
    if held := sum_of_books(seen.book("failure")):
        yield held


def from_shared(seen: Seen) -> Iterator[Link]:
    """From other processes on the device."""
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


def from_weights(seen: Seen) -> Iterator[Link]:
    """From weights that no plan of this device holds."""
    item = seen.evidence("expected-size-exceeds-device")
    if item and {"expected", "total"} <= set(item.values):
        now = item.values
        made = ""
        if now.get("files"):
            made = f": {now['files'] / 1e9:.3g} GB of files"
        elif now.get("params") and now.get("bytes_per_param"):
            made = f": {now['params'] / 1e9:.3g} billion parameters x {now['bytes_per_param']:g} bytes"
        if made and seen.ranks > 1:
            made += f" / {count(seen.ranks, 'rank')}"
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


def from_undersharded(seen: Seen) -> Iterator[Link]:
    """From devices that stand idle beside a full one."""
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


def from_spike(seen: Seen) -> Iterator[Link]:
    """From the work of one step."""
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
    if held := sum_of_books(seen.book("failure")):
        yield held
    room = seen.evidence("pool-had-room")
    if room and "kv_used" in room.values:
        yield Link(
            f"the KV pool was {percent(room.values['kv_used'])} in use and is no part of it: its bytes are taken at the start",
            room.refs[:1],
        )


def from_graphs(seen: Seen) -> Iterator[Link]:
    """From captured graphs."""
    yield from planned(seen)
    item = seen.item("graphs", "left") or seen.item("pools", "requested", "free") or seen.item("estimate", "share")
    if item:
        yield Link(item.says, item.refs[:1])
    if held := sum_of_books(seen.book("failure")):
        yield held


def from_feature(seen: Seen) -> Iterator[Link]:
    """From adapters, drafts and other features, in the words of the strongest sign."""
    for item in (seen.first.evidence if seen.first else ())[:1]:
        yield Link(item.says, item.refs[:1])
    if held := sum_of_books(seen.book("failure")):
        yield held


def from_sequences(seen: Seen) -> Iterator[Link]:
    """From the sequences that a start is sized for."""
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
    if held := sum_of_books(seen.book("failure")):
        yield held


def from_pieces(seen: Seen) -> Iterator[Link]:
    """From memory that is free in pieces."""
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


def from_leak(seen: Seen) -> Iterator[Link]:
    """From memory that grew."""
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


def from_uneven(seen: Seen) -> Iterator[Link]:
    """From ranks that hold more than others."""
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
