"""What links of every chain are made of: how it failed, what followed, the books as a sum, the plan."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoc.model import LedgerEntry, Link
from oomdoc.regexes import regex
from oomdoc.story.place import CAUGHT, STARTING
from oomdoc.story.seen import Seen
from oomdoc.units import GIB, count, parse_size, show_bytes, show_moment, show_seconds

_ASKED = regex(r"Tried to allocate ([\d.]+ [KMG]iB)")

_FREE = regex(r"of which ([\d.]+ [KMG]iB) is free")

_START = regex(r"failed to start|initialization failed")


def how_it_failed(seen: Seen) -> Link | None:
    """The failure itself: what was asked for or what became of the process, and when; None where nothing says so."""
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


def what_followed(seen: Seen) -> Link | None:
    """What the failure led to: other starts, lost requests, time without service; None where nothing is known of it."""
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


_NAMES = {
    "weights_bytes": "weights", "feature_bytes": "adapters and drafts", "kv_pool_bytes": "KV pool", "cuda_graph_bytes": "CUDA graphs", "activation_bytes": "activations",
    "non_torch_bytes": "outside torch", "other_processes_bytes": "other processes", "allocator_slack_bytes": "allocator slack", "unexplained_bytes": "unexplained",
}  # fmt: skip


def in_gib(size: float) -> str:
    """A size in GiB, without the unit."""
    return f"{size / GIB:.2f}"


def sum_of_books(entry: LedgerEntry | None) -> Link | None:
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
    held = " + ".join(f"{name} {in_gib(size)}" for name, size in parts)
    return Link(f"{held}, and {show_bytes(free)} free of {show_bytes(entry.total_bytes)}", entry.refs[:2])


def planned(seen: Seen) -> Iterator[Link]:
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
