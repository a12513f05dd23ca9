"""Links of what ended a process from outside or was no matter of memory, and of servers that are well."""

from __future__ import annotations

import re
from collections.abc import Iterator

from oomdoc.model import Link
from oomdoc.regexes import regex
from oomdoc.story.place import driver, not_seen, sentence
from oomdoc.story.seen import Seen
from oomdoc.units import GIB, count, percent, show_bytes, show_moment, show_seconds


def from_host(seen: Seen) -> Iterator[Link]:
    """From the host's memory, or a limit within it."""
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
        at = item.values.get("t")  # the kill's own; what the engine said failed may be of another moment
        begun = f" at {show_moment(at)}" if at is not None else ""
        yield Link(
            f"the kernel ended the process{begun}{f' with {show_bytes(held)} resident' if held else ''}{far}",
            (*of, *((seen.facts.progress_ref,) if far and seen.facts.progress_ref else ())),
        )


def _share(progress: str) -> float | None:
    """`22/30` as a share."""
    k, _, n = progress.partition("/")
    return int(k) / int(n) if k.isdigit() and n.isdigit() and int(n) else None


def from_probe(seen: Seen) -> Iterator[Link]:
    """From probes that gave up."""
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


_SEGMENT = regex(r"(/dev/shm/[^\s()]+).*?(?:size |to )(\d{4,})")
"""NCCL's two messages of a segment that could not be made (`misc/shmutils.cc` of 2.1x and 2.2x)."""


def from_segment(seen: Seen) -> Iterator[Link]:
    """From a segment that shared memory had no room for."""
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


_TOO_LONG = regex(r"max_model_len \((\d+)\) is greater than the derived max_model_len \((\w+)=(\d+(?:\.\d+)?)")
"""vLLM's own check of the length asked for against the model's config.json (`vllm/config/model.py`)."""


def from_other(seen: Seen) -> Iterator[Link]:
    """From what is no matter of memory."""
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


def from_well(seen: Seen) -> Iterator[Link]:
    """Of a server that is well: what was served, and what was not seen."""
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
