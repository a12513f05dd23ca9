"""Title, what ran out, where and when, in a few words each."""

from __future__ import annotations

import re

from oomdoc.model import Incident
from oomdoc.regexes import regex
from oomdoc.story.seen import Seen
from oomdoc.units import NOMINAL_YEAR, count, parse_time, percent, show_bytes, show_moment, show_seconds

_RAN_OUT = {
    "device-oom": "memory of the GPU",
    "startup-check": "memory of the GPU, by the engine's own check",
    "host-kill": "memory of the host",
    "host-alloc": "memory of the host",
    "shm": "shared memory (/dev/shm)",
    "pressure": "the KV cache pool",
}
_PHASES = {
    "init": "while the engine started", "load": "while weights were loaded", "profile": "while the engine measured itself", "kv-plan": "while the KV pool was planned",
    "graph-profile": "while CUDA graphs were measured", "kv-alloc": "while the KV pool was allocated", "sampler-warmup": "while the sampler warmed up",
    "capture": "while CUDA graphs were captured", "warmup": "while the engine warmed up", "forward": "while serving",
}  # fmt: skip
# What runs out where the cause itself says it; the kind of the incident is asked first only where the cause leaves it open.
_BY_CAUSE = {
    "probe-restart-loop": "nothing: a probe ended the server before it was ready",
    "autoscaling-blind": "capacity: no replica was added while requests waited",
    "prefix-cache-thrash": "room in the prefix cache, not memory",
    "shm-exhausted": "shared memory (/dev/shm)",
    "host-memory-exhausted": "memory of the host",
    "kv-demand-exceeds-pool": "the KV cache pool",
    "kv-pool-below-max-model-len": "the KV cache pool: one longest request does not fit",
    "memory-utilization-too-low": "the budget for the KV cache, not the GPU",
    "memory-leak": "memory that grew and was not released",
}
_PROBED = {
    "a-path-that-is-answered": "nothing: the probe asks a path that the server answers with an error",
    "probe-apart-from-the-load": "nothing: a probe ended a server that was at work",
}
"""What a probe did, by the advice for it."""
_GREW = {"gpu": "GPU", "host": "host"}
_BY_CATEGORY = {
    "weights": "memory of the GPU",
    "kv-cache": "the KV cache pool",
    "host": "memory of the host",
    "parallelism": "memory of the GPU",
    "parameters": "memory of the GPU",
    "allocator": "memory of the GPU",
    "scheduling": "memory of the GPU",
}


CAUGHT = frozenset({"load", "sampler-warmup", "capture", "warmup", "profile"})
"""Phases in which a message of the engine's own wraps an allocation that failed: no check by arithmetic."""


STARTING = CAUGHT | {"init", "kv-plan", "graph-profile", "kv-alloc"}
"""Phases before the server serves: what fails in one of them is a start, also where a cut log does not say what became of it."""


def ran_out(seen: Seen) -> str:
    """Which memory ran out and when in the server's life."""
    report, incident = seen.report, seen.incident
    if report.verdict in ("healthy", "not-memory"):
        return "nothing"
    if report.verdict == "no-server":
        return "nothing of a server's"
    what = _RAN_OUT.get(incident.kind) if incident else None
    if incident and incident.kind == "startup-check" and on_host(seen):
        what = "memory of the host, by the engine's own check"
    elif incident and incident.kind == "startup-check" and incident.phase in CAUGHT:
        what = "memory of the GPU"
    pressed = incident and incident.kind in ("device-oom", "pressure") and seen.cause != "probe-restart-loop"
    if report.verdict == "diagnosed" and seen.first and not pressed:
        what = _BY_CAUSE.get(seen.first.cause, what)
        if seen.first.cause == "probe-restart-loop":
            what = next((said for name, said in _PROBED.items() if seen.action(name)), what)
        if seen.first.cause == "memory-leak" and seen.facts.grew in _GREW:
            what = f"memory of the {_GREW[seen.facts.grew]}, which grew and was not released"
        if what is None:
            what = _BY_CATEGORY.get(seen.first.category)
    if what is None:
        return "the bundle does not say"
    if on_host(seen):
        what = what.replace("the GPU", "the host")
    phase = _PHASES.get(incident.phase or "") if incident and not what.startswith("nothing") else None
    return f"{what}, {phase}" if phase else what


def where(seen: Seen) -> str | None:
    """Which rank and device, or which container; None where the bundle does not say."""
    incident = seen.incident
    if incident is None:
        return None
    said = []
    text = incident.first_failure.text if incident.first_failure else ""
    on_host = incident.kind in ("host-kill", "host-alloc", "shm", "restart")
    if not on_host and (named := _device(seen, text)):
        said.append(named)
    box = seen.facts.container
    if box and (on_host or not said):
        if box.get("name"):
            said.append(f"container {box['name']}" + (f" of pod {box['pod']}" if box.get("pod") else ""))
        if box.get("node"):
            said.append(f"node {box['node']}")
    if incident.kind == "host-kill" and seen.facts.progress:
        k, _, n = seen.facts.progress.partition("/")
        if k.isdigit() and n.isdigit() and int(n):
            said.append(f"at {percent(int(k) / int(n))} of the shards")
    return ", ".join(said) or None


def _device(seen: Seen, text: str) -> str | None:
    """The failing device as the failure names it, with its rank where the ledger ties them; every rank where all are alike."""
    number = re.search(r"\b(?:GPU|cuda:|device )\s?(\d{1,3})\b", text)
    failing = [entry for entry in seen.books if entry.moment == "failure"]
    if number:
        name = f"GPU {int(number[1])}"
        ranks = [entry.rank for entry in failing if entry.device == name and entry.rank is not None]
        sizes = {entry.total_bytes for entry in failing or seen.books if entry.total_bytes}
        said = f"{name} (rank {ranks[0]})" if ranks else name
        if seen.ranks > 1:
            said += f" of {seen.ranks}"
        return said + (f", {show_bytes(max(sizes))}" if len(sizes) == 1 else "")
    shown = failing or [entry for entry in seen.books if entry.rank is not None]
    ranks = sorted({entry.rank for entry in shown if entry.rank is not None})
    poor = seen.book("failure") or seen.book("plan") if seen.cause in ("rank-imbalance", "gpu-shared") else None
    if poor and poor.rank is not None and seen.ranks > 1:
        cards = seen.facts.visible
        card = f" (GPU {cards[poor.rank]} of the host, by `CUDA_VISIBLE_DEVICES`)" if len(cards) == seen.ranks else ""
        return f"rank {poor.rank} of {seen.ranks}{card}"
    if failing and len(ranks) == 1 and seen.ranks > 1:
        return f"rank {ranks[0]} of {seen.ranks}"
    if len(ranks) > 1 and len(ranks) == seen.ranks:
        return f"all {len(ranks)} ranks ({ranks[0]} to {ranks[-1]})"
    if len(failing) == 1 and failing[0].device:
        return failing[0].device
    if seen.ranks == 1 and on_host(seen):
        return "the host: this is the CPU backend"
    return "the only GPU" if seen.ranks == 1 and seen.engine and seen.cause not in _NO_DEVICE else None


HOST = "host node"
"""What the ledger calls the device of the CPU backend (`ledger.readings`)."""
_NO_DEVICE = frozenset(
    {"not-memory", "healthy", "probe-restart-loop", "autoscaling-blind", "host-memory-exhausted", "shm-exhausted", ""}
)


def when(seen: Seen) -> str | None:
    """The moment of the failure, how long the start had lived, and since when it happens."""
    incident = seen.incident
    if incident is None:
        return _queued(seen) if seen.cause == "autoscaling-blind" else None
    first = min((each for each in seen.alike if each.started is not None), key=_began, default=incident)
    moment = incident if len(seen.alike) < 2 else first
    said = []
    box = seen.facts.container
    if moment.started is not None:
        said.append(show_moment(moment.started))
    elif box.get("restarts") and box.get("ended_t"):
        said.append(f"{count(box['restarts'], 'time')}, the last at {show_moment(box['ended_t'])}")
    engine = next((each for each in seen.report.engines if each.id == moment.engine), None)
    if moment.started is not None and engine and engine.started is not None:
        lived = moment.started - engine.started
        if 1 <= lived < 400 * 86_400:
            said.append(f"{show_seconds(lived)} after the start")
    if len(seen.alike) > 1:
        last = max((each for each in seen.alike if each.started is not None), key=_began, default=incident)
        until = f", the last at {show_moment(last.started)}" if last.started is not None and last is not first else ""
        said.append(f"{len(seen.alike)} times alike{until}")
    if incident.kind == "pressure" and (lasted := _lasted(seen, incident)):
        said.append(lasted)
    return ", ".join(said) or None


FULL = 0.95
"""Share of the pool from which on a reading counts as full (`pool-pinned` of the rules)."""


def _lasted(seen: Seen, incident: Incident) -> str | None:
    """Until when the pool was seen full."""
    timeline = seen.report.timeline
    begin = parse_time(_dated(str(timeline.get("from_t") or "")))
    used = next((row["values"] for row in timeline.get("series", ()) if row["chart"] == "kv_used"), None)
    if begin is None or not used or incident.started is None:
        return None
    full = [place for place, value in enumerate(used) if value is not None and value >= FULL]
    if not full:
        return None
    last = begin + (full[-1] + 1) * timeline["step_s"]
    if last <= incident.started:
        return None
    return f"full again and again for {show_seconds(last - incident.started)}, until {show_moment(float(round(last)))}"


def _queued(seen: Seen) -> str | None:
    """From when to when the longest queue of the timeline stood, its hours without a waiting request left out."""
    timeline = seen.report.timeline
    begin = parse_time(_dated(str(timeline.get("from_t") or "")))
    waiting = next(
        (
            row["values"]
            for row in timeline.get("series", ())
            if row["chart"] == "requests" and row["name"] == "waiting"
        ),
        None,
    )
    known = [(place, value) for place, value in enumerate(waiting or ()) if value is not None]
    if begin is None or not known or max(value for _, value in known) <= 0:
        return None
    at = max(range(len(known)), key=lambda i: known[i][1])
    first = last = at
    while first > 0 and known[first - 1][1] > 0:
        first -= 1
    while last + 1 < len(known) and known[last + 1][1] > 0:
        last += 1
    step = timeline["step_s"]
    since, until = (float(round(begin + known[i][0] * step)) for i in (first, last))
    return f"requests waited from {show_moment(since)} to {show_moment(until)}, {show_seconds(until - since)}"


def _dated(time: str) -> str:
    return f"{NOMINAL_YEAR}{time[1:]}" if time.startswith("--") else time


def _began(incident: Incident) -> float:
    return incident.started or 0.0


_OLD_DRIVER = regex(r"(?i)driver on your system is too old \(found version (\d{4,5})\)")
_DRIVER_NAMED = regex(r"(?i)driver(?: version)?[ :]+(\d{3}\.\d{1,3}(?:\.\d{1,3})?)")


def title(seen: Seen) -> str:
    """The verdict as a sentence about this bundle; the driver's version where the driver is the failure."""
    report, first = seen.report, seen.first
    if report.verdict == "no-server":
        return "Nothing in this bundle shows an LLM server"
    if first is None:
        return "Nothing in this bundle speaks about memory, for or against"
    if report.verdict == "undecided":
        return "The evidence does not single out one cause"
    if first.cause == "not-memory":
        return _other_failure(seen) or first.title
    if first.cause == "healthy" and (near := [item.says for item in report.watch if item.near]):
        return f"Nothing failed; to be watched: {near[0]}"
    if first.cause == "healthy" and len(not_seen(seen)) > 1:
        return "What this bundle shows has no failure in it, and it shows little"
    if seen.evidence("host-node-refused"):
        return "The engine asks for more host memory than is free"
    if on_host(seen) and (said := _ON_HOST.get(first.cause)):
        return said
    return next((said for name, said in _FEATURES.items() if seen.evidence(name)), first.title)


_FEATURES = {
    "draft-model-on": "A draft model takes the room that a step needs",
    "adapters-on": "LoRA adapters take the room that a step needs",
    "multimodal-reserve": "The reserve for images takes the room that a step needs",
}
"""The feature that takes the room, by the observation that names it."""


def not_seen(seen: Seen) -> list[str]:
    """What a verdict that nothing is wrong has not looked at, for it is not in the bundle."""
    charts = {row["chart"] for row in seen.report.timeline.get("series", ())}
    watched = {item.id for item in (seen.first.evidence if seen.first else ())}
    lacking = []
    if not seen.traffic and "requests-failed" not in watched:
        lacking.append("how requests were answered")
    if not charts & {"kv_used", "requests"} and "pool-has-room" not in watched:
        lacking.append("how full the KV pool was and who waited")
    if not charts & {"device_memory", "host_memory"} and not seen.report.ledger:
        lacking.append("how much memory was in use")
    return lacking


_ON_HOST = {
    "host-memory-exhausted": "Host memory ran out",
    "memory-utilization-too-low": "The budget is smaller than weights and peak, while the host has room",
    "weights-exceed-gpu": "The weights do not fit the memory of the host",
}
"""Titles of causes where the device of the engine is the host."""


def on_host(seen: Seen) -> bool:
    """Whether the engine computes on the processor, so that its device is the host."""
    return "cpu" in str(seen.flag("device_config")).lower() or any(entry.device == HOST for entry in seen.books)


def device_word(seen: Seen) -> str:
    """What the engine's memory is memory of."""
    return "the host" if on_host(seen) else "the GPU"


_SIGNAL = regex(r"\b(SIGSEGV|SIGILL|SIGFPE|SIGABRT|[Ss]egmentation fault)\b")


_BETWEEN_RANKS = regex(r"(?i)nccl|gloo|process ?group|all_?(?:reduce|gather)|torch\.distributed|tcpstore")


def _other_failure(seen: Seen) -> str | None:
    text = seen.incident.first_failure.text if seen.incident and seen.incident.first_failure else ""
    if signal := _SIGNAL.search(text):
        return f"A process of the server crashed ({signal[1]})"
    if found := driver(text):
        return f"The NVIDIA driver is too old: it supports CUDA {found}, and this image needs a newer one"
    if seen.first and seen.first.reason == "network-or-nccl" and text and not _BETWEEN_RANKS.search(text):
        return sentence(text, 90)
    if seen.first and seen.first.reason:
        kind = _REASONS.get(seen.first.reason, seen.first.reason.replace("-", " "))
        named = _DRIVER_NAMED.search(text) if "driver" in seen.first.reason else None
        return kind[:1].upper() + kind[1:] + (f", driver {named[1]}" if named else "")
    return sentence(text, 90) if text else None


def sentence(text: str, most: int = 160) -> str:
    """The first sentence of a line, whole words only.

    >>> sentence("it broke. And then more", 12), sentence("one two three four", 10)
    ('it broke.', 'one two …')
    """
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    cut = line[:most]
    end = max(cut.rfind(". "), cut.rfind("; "))
    return cut[: end + 1] if end > most // 3 else cut[: cut.rfind(" ")] + " …"


def change(seen: Seen) -> str | None:
    """The first action, once, in a sentence; None where the report stands behind no cause."""
    first = seen.first
    if first is None or not first.actions or seen.report.verdict == "undecided":
        return None
    text = seen.incident.first_failure.text if seen.incident and seen.incident.first_failure else ""
    if first.cause == "not-memory" and (found := driver(text)):
        return f"Update the driver of the host to one that supports the CUDA of the image, or run an image made for CUDA {found}"
    return first.actions[0].do


def replay(seen: Seen) -> str | None:
    """How soon users are served with that change, by the replay of the recorded traffic, beside what the same replay gives without it."""
    if change(seen) is None or seen.first is None:
        return None
    told = seen.first.actions[0].predicted
    after, before = told.get("p95_latency_s"), told.get("p95_latency_before_s")
    if after is None or before is None:
        return None
    times = f": {after / before:.1f} times as long" if before > 0 and after > before * 1.05 else ""
    said = f"95% of the requests are done within {show_seconds(after)} ({show_seconds(before)} now{times})"
    served, serves = told.get("in_time_before"), told.get("in_time")
    if times and served is not None and serves is not None and serves > served:  # why it is advised all the same
        said = f"{percent(serves)} of the requests are in time ({percent(served)} now); {said.replace(' of the requests', '', 1)}"
    wait, waited = told.get("p95_wait_s"), told.get("p95_wait_before_s")
    if wait is not None and waited is not None:
        said += f", and begin within {show_seconds(wait)} ({show_seconds(waited)} now)"
    return said


_REASONS = {
    "driver-or-hardware": "the driver or the hardware failed",
    "bad-argument": "the server was started with an argument that it refuses",
    "missing-file": "a file is missing",
    "network-or-nccl": "the network, or NCCL between the GPUs, failed",
    "client": "requests failed for reasons of their own",
}


def driver(text: str) -> str | None:
    """The CUDA version of a driver that torch calls too old.

    >>> driver("The NVIDIA driver on your system is too old (found version 12040)."), driver("out of memory")
    ('12.4', None)
    """
    found = _OLD_DRIVER.search(text)
    return f"{int(found[1]) // 1000}.{int(found[1]) % 1000 // 10}" if found else None
