"""What a bundle lacks and would decide most: which tables are empty, and the command that fills each."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence

from oomdoc.evidence.store import Store
from oomdoc.evidence.tables import TABLES
from oomdoc.judge.weigh import ACTION_FROM, Finding, weight_of
from oomdoc.model import CollectNext, Diagnosis, Unanswered
from oomdoc.regexes import regex
from oomdoc.views import VIEWS

MOST_SHOWN = 2
SETTLED_FROM = 0.9
"""A first cause at or above this by its own evidence is not moved by one more source, and the fix stands."""

IN_PLAY_FROM = 0.05
"""Beside a decided first place a rival below this is not worth another source."""

# What to fetch for a table that is empty: what it is, the command where Kubernetes runs the server, and elsewhere. Each works on a
# server that is dead or does not start: it asks logs, kernel and cluster, never the process.
_FETCH: Mapping[str, tuple[str, str, str]] = {
    "engine_figure": (
        "the server log from its very first line",
        "kubectl logs POD -c CONTAINER --previous --timestamps > vllm.log",
        "docker logs NAME > vllm.log 2>&1   # or: journalctl -u UNIT > vllm.log",
    ),
    "engine_stat": (
        "the server log of the half hour before the failure",
        "kubectl logs POD -c CONTAINER --previous --timestamps > vllm.log",
        "docker logs NAME > vllm.log 2>&1   # or: journalctl -u UNIT > vllm.log",
    ),
    "engine_flag": (
        "the launch command of the server",
        "kubectl get pod POD -o yaml > pod.yaml",
        "docker inspect NAME > container.json   # or: systemctl cat UNIT > unit.txt",
    ),
    "log_error": (
        "the whole traceback, not its last lines",
        "kubectl logs POD -c CONTAINER --previous > vllm.log",
        "docker logs NAME > vllm.log 2>&1",
    ),
    "metric": (
        "the metrics that Prometheus kept of the half hour before",
        "curl -s 'http://PROMETHEUS:9090/api/v1/query_range?query={__name__=~\"vllm:.*\"}&start=FROM&end=TO&step=15s' > metrics.json",
        "curl -s 'http://PROMETHEUS:9090/api/v1/query_range?query={__name__=~\"vllm:.*\"}&start=FROM&end=TO&step=15s' > metrics.json",
    ),
    "request": (
        "the requests of the hour before with their token counts",
        "kubectl logs deploy/GATEWAY --since=2h > requests.log",
        "cp /var/log/GATEWAY/access.log requests.log",
    ),
    "gpu_sample": (
        "what takes each GPU's memory now",
        "kubectl debug node/NODE -it --image=nvidia/cuda:12.4.1-base-ubuntu22.04 -- nvidia-smi > nvidia-smi.txt",
        "nvidia-smi > nvidia-smi.txt",
    ),
    "gpu_process": (
        "the processes on each GPU, seen from the host",
        "nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name,used_memory --format=csv > gpu-processes.csv   # on the node",
        "nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name,used_memory --format=csv > gpu-processes.csv",
    ),
    "gpu_device": ("the list of GPUs", "nvidia-smi -L > gpus.txt   # on the node", "nvidia-smi -L > gpus.txt"),
    "host_event": (
        "the kernel log of the node",
        "journalctl -k --since '-2h' > dmesg.txt   # on the node",
        "dmesg -T > dmesg.txt   # or: journalctl -k --since '-2h' > dmesg.txt",
    ),
    "container": (
        "the state and the limits of the container",
        "kubectl describe pod POD > describe-pod.txt",
        "docker inspect NAME > container.json",
    ),
    "cluster_event": ("the events of the namespace", "kubectl get events -A --sort-by=.lastTimestamp > events.txt", ""),
    "scaler": ("the autoscaler's view", "kubectl describe hpa > hpa.txt", ""),
    "process_memory": (
        "the server's memory over time",
        "while sleep 60; do date -u +%FT%TZ; ps -eo pid,rss,args | grep -i vllm; done > rss.txt   # on the node, from the next start on",
        "while sleep 60; do date -u +%FT%TZ; ps -eo pid,rss,args | grep -i vllm; done > rss.txt   # from the next start on",
    ),
    "process_exit": (
        "the exit status of the server",
        "kubectl describe pod POD > describe-pod.txt",
        "docker inspect -f '{{.State.ExitCode}} {{.State.OOMKilled}}' NAME > exit.txt",
    ),
}
_OUTCOME = "outcome-fits"  # asked of every table that tells of a life: no source of its own
_NEEDS_SERVING = frozenset({"metric", "request", "engine_stat", "scaler"})
"""What a server that never served has none of."""
_SHOWN_BY: Mapping[str, frozenset[str]] = {"gpu_sample": frozenset({"gpu_device"})}
"""What one source shows of another: a table of nvidia-smi lists the GPUs too."""
_IN_THE_LOG = frozenset({"engine_figure", "engine_stat", "log_error", "engine_flag"})
"""What a server's log says by itself: where the log is there from its start, it has none of it."""
_LIMITS = ("raise-the-limit-that-is-not-told",)


def collect_next(
    store: Store, findings: Sequence[Finding], ranked: Sequence[Diagnosis] = ()
) -> tuple[CollectNext, ...]:
    """What could change the first place or the fix, and how to fetch it after the fact; at most two, none where all is settled.

    A source can change the first place if a rival with all of its questions answered in its favour, and the leader with all of
    its own against it, would change places.
    """
    if not findings:
        return ()
    order = sorted(findings, key=lambda finding: -finding.odds)
    if ranked:
        places = {item.cause: place for place, item in enumerate(ranked)}
        order.sort(key=lambda finding: places.get(finding.rule.id, len(places)))
    leader, *others = order
    first = ranked[0] if ranked else None
    settled = first is not None and (first.own_probability >= SETTLED_FROM or first.probability >= SETTLED_FROM)
    near = {item.cause: item.probability for item in ranked}
    decided = first is not None and first.probability >= 0.5
    moves: dict[str, dict[str, float]] = {}
    if not settled:
        missing = _fetchable(store)
        for table in missing:
            lead = leader.odds - _reach(leader, table, for_it=False)
            for rival in others[:4]:
                if decided and near.get(rival.rule.id, 0.0) < IN_PLAY_FROM:
                    continue
                gain = _reach(rival, table, for_it=True)
                if gain > 0 and rival.odds + gain > lead:
                    moves.setdefault(table, {})[rival.rule.id] = gain
            own = _reach(leader, table, for_it=True)
            if own > 0 and table in moves:
                moves[table][leader.rule.id] = own
    ordered = sorted(moves, key=lambda table: (-sum(moves[table].values()), table))
    told, said = [], set()
    for table in ordered:
        if any(table in _SHOWN_BY.get(other, ()) for other in ordered):
            continue
        what, command = _how(store, table)
        if first is not None and first.cause == "healthy":
            what = what.replace("half hour before the failure", "time in question").replace(
                "the half hour before", "the time in question"
            )
        if command and command not in said:
            said.add(command)
            told.append(CollectNext(what, command, tuple(sorted(moves[table])), round(sum(moves[table].values()), 3)))
    fix = _for_the_fix(store, first)
    return (*fix, *(item for item in told if item.command not in {each.command for each in fix}))[:MOST_SHOWN]


def _for_the_fix(store: Store, first: Diagnosis | None) -> tuple[CollectNext, ...]:
    """The one source whose absence leaves the first action without its number."""
    action = first.actions[0] if first and first.actions else None
    if first is None or action is None or first.cause in ("healthy", "not-memory"):
        return ()
    if action.id in _LIMITS and "container" not in store.filled:
        return (CollectNext(*_how(store, "container"), (first.cause,), 0.0),)
    if "does not tell" in f"{action.do} {action.why}" and "engine_flag" not in store.filled:
        return (CollectNext(*_how(store, "engine_flag"), (first.cause,), 0.0),)
    return ()


def _how(store: Store, table: str) -> tuple[str, str]:
    """What to fetch and the command that can fetch it where this server runs."""
    what, cluster, host = _FETCH[table]
    on_cluster = bool({"container", "cluster_event"} & store.filled) or not host
    return what, cluster if on_cluster else host


def _fetchable(store: Store) -> frozenset[str]:
    """Tables that are empty and that somebody could still fill."""
    lacking = set(_FETCH) - store.filled
    started = "engine_start" in VIEWS and bool(store.rows_of("SELECT 1 FROM engine_start WHERE marked LIMIT 1"))
    if started:
        lacking -= _IN_THE_LOG
        served = store.rows_of("SELECT 1 FROM milestone WHERE name IN ('serving', 'engine-ready') LIMIT 1")
        if not served:
            lacking -= _NEEDS_SERVING
    # an allocator or the engine spoke, or printed that less than nothing is left for KV: how the container ended is no question
    if {"oom", "startup_check"} & store.filled or _nothing_left(store):
        lacking -= {"container", "process_exit", "cluster_event", "scaler", "host_event"}
    if "cluster_event" in lacking and not {"container"} & store.filled:
        lacking -= {"cluster_event", "scaler"}
    if _on_processor(store):
        lacking -= {"gpu_sample", "gpu_process", "gpu_device"}
    return frozenset(lacking)


def _on_processor(store: Store) -> bool:
    """The engine says that it computes on the processor: no GPU has anything to say of it."""
    return "engine_flag" in store.filled and bool(
        store.rows_of(
            "SELECT 1 FROM engine_flag WHERE flag IN ('device', 'platform', 'device_config') AND value ILIKE '%cpu%' LIMIT 1"
        )
    )


def _nothing_left(store: Store) -> bool:
    """The engine's own figure says that no byte is left for KV."""
    return "engine_figure" in store.filled and bool(
        store.rows_of("SELECT 1 FROM engine_figure WHERE name = 'kv_available_bytes' AND value <= 0 LIMIT 1")
    )


def _reach(finding: Finding, table: str, *, for_it: bool) -> float:
    """How far the log-odds could move if this table were there: of a group only the strongest question."""
    groups: dict[str, float] = {}
    for item in finding.rule.evidence:
        if item.id == _OUTCOME or finding.answers[item.id].holds is not None or table not in _tables_behind(item.sql):
            continue
        weights = (weight_of(item, True), weight_of(item, False))
        best = max(*weights, 0.0) if for_it else -min(*weights, 0.0)
        name = item.group or item.id
        groups[name] = max(groups.get(name, 0.0), best)
    return sum(groups.values())


# What a view rests on first: (what to name, tables any of which answers). The other tables behind it add details.
_FIRST: Mapping[str, tuple[str, frozenset[str]]] = {
    "engine": ("engine_flag", frozenset({"engine_flag", "engine_figure", "milestone"})),
    "failure": ("log_error", frozenset({"milestone", "log_error", "oom", "startup_check"})),
    "host": ("host_event", frozenset({"host_event", "container", "process_exit"})),
    "kv_pressure": ("engine_stat", frozenset({"engine_stat", "metric"})),
    "prefix_cache": ("metric", frozenset({"metric", "engine_stat"})),
    "cache_contrast": ("metric", frozenset({"metric"})),
    "cached_turn": ("request", frozenset({"request"})),
    "device": ("gpu_sample", frozenset({"gpu_sample", "gpu_process", "gpu_device"})),
    "workload": ("container", frozenset({"container", "cluster_event"})),
    "traffic": ("request", frozenset({"request"})),
    "traffic_flight": ("request", frozenset({"request"})),
    "memory_trend": ("process_memory", frozenset({"process_memory", "memory_reading", "gpu_sample"})),
    "scaling": ("scaler", frozenset({"scaler"})),
    "rank": ("engine_figure", frozenset({"engine_figure", "milestone"})),
    "model": ("engine_flag", frozenset({"engine_flag", "milestone"})),
}


_ASKED = regex(r"(?i)\b(?:from|join)\s+([a-z_]+)")


def _lacks(store: Store, sql: str) -> tuple[str, ...]:
    """What would have to be in the bundle for a question to be asked at all; empty where all of it is there."""
    words = set(_ASKED.findall(sql))
    wanted = {name for view, (name, any_of) in _FIRST.items() if view in words and not any_of & store.filled}
    wanted |= (words & _FETCH.keys()) - store.filled - (_IN_THE_LOG if "milestone" in store.filled else frozenset())
    return tuple(sorted({_FETCH[name][0] for name in wanted}))


def unanswered(store: Store, findings: Sequence[Finding], ranked: Sequence[Diagnosis]) -> tuple[Diagnosis, ...]:
    """The ranking with the unanswered questions of the leading causes in words: those that lack a source, and those that do not arise."""
    known = {finding.rule.id: finding for finding in findings}
    told = []
    for item in ranked:
        finding = known.get(item.cause)
        if finding is None or item.probability < ACTION_FROM:
            told.append(item)
            continue
        asked = {rule.id: rule for rule in finding.rule.evidence}
        told.append(
            dataclasses.replace(
                item,
                unanswered=tuple(
                    Unanswered(name, _blank(asked[name].says), _lacks(store, asked[name].sql))
                    for name in item.unknown
                    if name in asked and name != _OUTCOME
                ),
            )
        )
    return tuple(told)


_PLACEHOLDER = regex(r"\{(\w+)[^{}]*\}")


def _blank(sentence: str) -> str:
    """A rule's sentence before any bundle: `{share:.0%}` reads `<share>`."""
    return _PLACEHOLDER.sub(r"<\1>", sentence)


_WORD = regex(r"[a-z_]+")


def _tables_behind(sql: str) -> frozenset[str]:
    """Base tables that a query reads, followed through the views."""
    names = set(_WORD.findall(sql))
    return frozenset(names & TABLES.keys()).union(*(_tables_of_view(name) for name in names & VIEWS.keys()))


@functools.cache
def _tables_of_view(name: str) -> frozenset[str]:
    # a view asks views before it only, but its name may stand in a text or a column of its own
    earlier = list(VIEWS)[: list(VIEWS).index(name)]
    names = set(_WORD.findall(VIEWS[name].sql))
    return frozenset(names & TABLES.keys()).union(*(_tables_of_view(other) for other in names & set(earlier)))
