"""Links of causes that lie in the KV pool: its size, and what is asked of it."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoc.model import Link
from oomdoc.story.impact import pool_tokens
from oomdoc.story.place import device_word
from oomdoc.story.seen import Seen
from oomdoc.units import count, percent, show_bytes, show_moment


def from_demand(seen: Seen) -> Iterator[Link]:
    """From more tokens than the pool holds."""
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


def from_length(seen: Seen) -> Iterator[Link]:
    """From a length that the pool cannot hold once."""
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


def from_low_budget(seen: Seen) -> Iterator[Link]:
    """From a share of the device that leaves no pool."""
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
