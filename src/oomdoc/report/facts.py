"""What the forms of a report say alike, before each lays it out: names, choices and sentences, all of them plain text.

Nothing here is made harmless: a form does that, each in the way of its language.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from oomdoc.model import Diagnosis, Engine, Evidence, LedgerEntry, Report, Step, Story, last_moments
from oomdoc.report.words import count, factor_of, gravest, percent
from oomdoc.units import GIB, parse_size, show_bytes, written

CONTRADICTIONS_SHOWN = 3

# Part of the ledger and what it is called; the order is that of bars and tables.
PARTS = (
    ("weights_bytes", "weights"),
    ("feature_bytes", "adapters, draft"),
    ("kv_pool_bytes", "KV pool"),
    ("cuda_graph_bytes", "CUDA graphs"),
    ("activation_bytes", "activations"),
    ("non_torch_bytes", "outside torch"),
    ("other_processes_bytes", "other processes"),
    ("allocator_slack_bytes", "allocator slack"),
    ("unexplained_bytes", "unexplained"),
    ("free_bytes", "free"),
)
_NOT_TOLD_APART = "weights, pool and more, not told apart"


def parts_of(entries: Sequence[LedgerEntry]) -> tuple[tuple[str, str], ...]:
    """`PARTS` with what nobody told apart called by what it is made of: where neither weights nor pool are known, they are most of it."""
    if any(entry.parts.get(key) is not None for entry in entries for key in ("weights_bytes", "kv_pool_bytes")):
        return PARTS
    return tuple((key, _NOT_TOLD_APART if key == "unexplained_bytes" else title) for key, title in PARTS)


# Engine settings worth a place on the engine's line, and their short names.
SETTINGS = (
    ("tensor_parallel_size", "TP"),
    ("pipeline_parallel_size", "PP"),
    ("data_parallel_size", "DP"),
    ("quantization", "quantization"),
    ("dtype", "dtype"),
    ("kv_cache_dtype", "kv-cache-dtype"),
    ("max_model_len", "max-model-len"),
    ("max_num_seqs", "max-num-seqs"),
    ("max_num_batched_tokens", "max-num-batched-tokens"),
    ("gpu_memory_utilization", "utilization"),
    ("kv_cache_memory_bytes", "kv-cache-memory-bytes"),
    ("enforce_eager", "enforce-eager"),
)
PATCH_NAMES = {
    "flags": "flags",
    "environment": "environment",
    "kubernetes": "Kubernetes patch",
    "helm": "values of vLLM's production stack (Helm)",
    "compose": "compose.yaml",
}
KINDS = {
    "device-oom": "out of memory on the device",
    "startup-check": "refused by the engine's own start-up check",
    "host-kill": "killed by the host",
    "host-alloc": "out of host memory",
    "shm": "out of shared memory",
    "error": "an error",
    "exit": "a process ended",
    "echo": "the consequence of something the bundle does not show",
    "pressure": "memory pressure",
    "restart": "a restart",
}


def headline(report: Report) -> str:
    """The verdict as a sentence: the leading cause's title, or that there is none."""
    if report.verdict == "no-server":
        return "Nothing in this bundle shows an LLM server"
    if not report.diagnoses:
        return "Nothing in this bundle speaks about memory, for or against"
    return "The evidence does not single out one cause" if report.verdict == "undecided" else report.diagnoses[0].title


def story_of(report: Report) -> Story:
    """The report's story; of a report that was put together without one, its headline alone."""
    return report.story or Story(
        headline(report), "the bundle does not say", None, None, (), None, None, (), None, None, (), (), ()
    )


MOMENTS = {
    "plan": "as planned",
    "loaded": "weights loaded",
    "profiled": "at the profiling peak",
    "rest": "at rest",
    "failure": "at the failure",
}
"""Moments of the ledger, as a report names them."""


def ledger_of_failure(report: Report) -> list[LedgerEntry]:
    """The ranks of the start that failed, or of the one that the report speaks of, each at its last known moment."""
    return [entry for entry in last_moments(_of_start(report)) if any(entry.parts.values()) or entry.unusual]


def plans_of_failure(report: Report) -> list[LedgerEntry]:
    """What the engine had planned for the ranks that failed while they held something else; one of those that are alike."""
    failed = {entry.rank for entry in ledger_of_failure(report) if entry.moment == "failure"}
    plans = [entry for entry in _of_start(report) if entry.moment == "plan" and entry.rank in failed]
    return [each for at, each in enumerate(plans) if all(each.parts != other.parts for other in plans[:at])]


_OVER = 1.005
"""Times the device's size from which on a bar is larger than the device, and not rounded."""


def bar_size(entry: LedgerEntry) -> str:
    """What stands beside a bar: the device's size, as a bound where a plan comes to more than the device has."""
    total = entry.total_bytes or 0
    taken = sum(size for size in entry.parts.values() if size is not None and size > 0)
    over = "> " if entry.moment == "plan" and taken > _OVER * total else ""
    return f"{over}{total / GIB:.2f} GiB"


def _of_start(report: Report) -> list[LedgerEntry]:
    incident = gravest(report)
    starts = [entry.engine for entry in report.ledger]
    start = incident.engine if incident and incident.engine in starts else starts[0] if starts else None
    return [entry for entry in report.ledger if entry.engine == start]


def missing_parts(entries: Sequence[LedgerEntry]) -> list[str]:
    """Names of the parts that no rank knows."""
    return [
        title
        for key, title in PARTS
        if key not in ("unexplained_bytes", "feature_bytes") and all(entry.parts.get(key) is None for entry in entries)
    ]


def unusual(entries: Sequence[LedgerEntry]) -> list[str]:
    """What is larger than such a server's usually is, each sentence once."""
    return list(dict.fromkeys(said for entry in entries for said in entry.unusual))[:CONTRADICTIONS_SHOWN]


def computed(entries: Sequence[LedgerEntry]) -> list[str]:
    """Names of the parts that no line told and that stand there by the model or by planning figures."""
    return [title for key, title in PARTS if any(_computed(entry, key) for entry in entries)]


def _computed(entry: LedgerEntry, key: str) -> bool:
    origin = entry.intervals[key].origin if entry.parts.get(key) and key in entry.intervals else ""
    return origin == "planning figure" or (key == "weights_bytes" and origin in ("catalogue", "config"))


def contradictions(entries: Sequence[LedgerEntry]) -> list[str]:
    """What does not add up, each sentence once."""
    return list(dict.fromkeys(said for entry in entries for said in entry.contradictions))[:CONTRADICTIONS_SHOWN]


def pool(entries: Sequence[LedgerEntry]) -> list[str]:
    """What the KV pool stores and what a token costs, as far as a rank knows."""
    said = []
    if tokens := next((entry.kv_pool_tokens for entry in entries if entry.kv_pool_tokens), None):
        said.append(f"the KV pool stores {count(tokens, 'token')}")
    if each := next((entry.kv_bytes_per_token for entry in entries if entry.kv_bytes_per_token), None):
        said.append(f"one token takes {show_bytes(each)}{per_gpu(entries)}")
    return said


def per_gpu(entries: Sequence[LedgerEntry]) -> str:
    """` per GPU`, but for an engine of the CPU backend, whose memory is that of the host."""
    return "" if entries and all(entry.device == "host node" for entry in entries) else " per GPU"


def unnamed(item: Evidence) -> list[str]:
    """References that its sentence does not hold already."""
    return [ref for ref in item.refs if ref not in item.says]


def answer(rival: Diagnosis) -> tuple[Evidence | None, str]:
    """What speaks against a rival most; without any, a sentence that says so."""
    if rival.against:
        return min(rival.against, key=lambda reading: reading.weight), ""
    return None, "nothing speaks against it"


def speaks_for(rival: Diagnosis) -> Evidence | None:
    """What keeps a rival in play: the strongest observation for it."""
    return max(rival.evidence, key=lambda reading: reading.weight, default=None)


def fix_title(report: Report) -> str:
    """What the advice of the first cause is called: a report that stands behind no cause has no fix."""
    return {"diagnosed": "The fix", "undecided": "What the closest cause would call for"}.get(
        report.verdict, "What to do"
    )


STEPS_SHOWN = 6


def figures(steps: Sequence[Step]) -> tuple[str, tuple[str, ...]]:
    """Where the arithmetic starts and each factor, with as many digits as it takes to come to the figure at its end."""
    begin, *rest = steps
    return written(begin.probability, [step.factor for step in rest], steps[-1].probability)


def in_short(steps: Sequence[Step]) -> str:
    """The arithmetic on a line: where it starts, each factor, where it ends.

    >>> in_short([Step("", 0.111, 0.1), Step("", 20.0, 0.69, "a"), Step("", 0.5, 0.53, "b")])
    '10% before any evidence, ×20, ÷2.0 = 53%'
    """
    rest = steps[1:]
    start, factors = figures(steps)
    shown = [each for each in factors[:STEPS_SHOWN] if each != "="]
    more = ""
    if len(rest) > STEPS_SHOWN:
        together = math.prod(step.factor for step in rest[STEPS_SHOWN:])
        more = f", {factor_of(together)} by {count(len(rest) - STEPS_SHOWN, 'weaker line')}"
    said = f"{start} before any evidence"
    return (
        said + "".join(f", {each}" for each in shown) + more + (f" = {percent(steps[-1].probability)}" if rest else "")
    )


TIE = 1.5
"""Odds of the first to those of a rival: below this nobody would bet on the order."""


def is_tie(first: Diagnosis, rival: Diagnosis) -> bool:
    """Whether two causes stand so near each other that their order says nothing."""
    odds = [item.probability / max(1 - item.probability, 1e-9) for item in (first, rival)]
    return odds[1] > 0 and odds[0] / odds[1] < TIE


def same_change(first: Diagnosis, rival: Diagnosis) -> bool:
    """Whether the first actions of two causes change the same setting."""
    if not first.actions or not rival.actions:
        return False
    settings = [set(item.actions[0].changes) for item in (first, rival)]
    every = {name for action in rival.actions for name in action.changes}
    return bool(settings[0]) and settings[0] <= (settings[1] | every)


def tie(report: Report) -> str | None:
    """What a reader of the first screen must know of a rival that stands level; None where none does."""
    if not report.diagnoses or report.verdict != "diagnosed":
        return None
    first, keeps = report.diagnoses[0], story_of(report).keeps
    rival = next((item for item in report.diagnoses[1:] if item.cause in keeps and is_tie(first, item)), None)
    if rival is None:
        return None
    both = "the same change helps both" if same_change(first, rival) else "collect more before you rely on the order"
    return f'a tie with "{rival.title}" ({rival.cause}, {percent(rival.probability)}): {both}'


_OUTCOMES = {
    "refused": "refused to start",
    "died": "died",
    "ended": "was ended from outside",
    "degraded": "served, and not all that was asked",
    "stuck": "got stuck",
    "grew": "served while its memory grew",
    "served": "served",
    "starting": "was starting still",
}
"""What became of a life, in words (`Engine.outcome`)."""


def _setting(name: str, value: Any) -> str:
    """A setting as people say it: sizes in GiB, whatever a log writes.

    >>> _setting("kv_cache_memory_bytes", 67108864), _setting("max_num_seqs", "256")
    ('64.0 MiB', '256')
    """
    size = parse_size(str(value), binary=True) if name.endswith("_bytes") else None
    return str(value) if size is None else show_bytes(size)


def engine_line(engine: Engine) -> str:
    """Version, model, the settings that bear on memory, and how the start ended."""
    said = [f"vLLM {engine.version or 'of unknown version'}" + (f" {engine.generation}" if engine.generation else "")]
    said += [engine.model] if engine.model else []
    for name, short in SETTINGS:
        if (flag := engine.flags.get(name)) and flag.value not in (None, False, "auto", "None", "False"):
            said.append(f"{short} {_setting(name, flag.value)}" + (" (default)" if flag.origin == "default" else ""))
    return ", ".join((*said, ended(engine)))


def ended(engine: Engine) -> str:
    """What became of a start, and the last step of it that a log shows."""
    state = _OUTCOMES.get(engine.outcome) or ("failed" if engine.failed else "how it ended is unknown")
    return f"{state}, last seen: {engine.last_milestone}" if engine.last_milestone else state


def traffic_line(traffic: Mapping[str, Any]) -> str:
    """Requests, their sizes, the peak in flight and how long contexts grew; empty without requests."""
    if not traffic.get("requests"):
        return ""
    said = [count(traffic["requests"], "request")]
    if traffic.get("failed"):
        said[0] += f" ({count(traffic['failed'])} failed)"
    percentiles = traffic.get("percentiles") or {}
    for key, title in (("input_tokens", "input"), ("output_tokens", "output")):
        if row := percentiles.get(key):
            said.append(
                f"{title} tokens "
                + ", ".join(f"{name} {count(row[name])}" for name in ("p50", "p95", "max") if name in row)
            )
    peak = (traffic.get("peaks") or {}).get("tokens_in_flight") or {}
    said += [f"at most {count(peak['value'])} tokens in flight"] if peak.get("value") else []
    longer = traffic.get("long_context") or {}
    if longer.get("share_before") is not None and longer.get("share_during") is not None:
        said.append(f"long contexts {percent(longer['share_before'])} before, {percent(longer['share_during'])} during")
    return "; ".join(said)
