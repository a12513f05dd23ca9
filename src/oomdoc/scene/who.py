"""Who the server of the bundle is: its lives out of the logs, what containers and limits say of it, and whether its own words explain it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from oomdoc.regexes import regex
from oomdoc.scene.lives import LIVES_SQL, Life, Server, life_of, server_of
from oomdoc.scene.lookups import box_of, rows_of
from oomdoc.scene.places import ENGINE, pod_in_path, workload_of
from oomdoc.scene.presence import Tables
from oomdoc.scene.strangers import Others

_LISTED = regex(r"(?P<command>.*) \(pid (?P<pid>\d{1,9})\)$")
"""A process of a list, as `process_memory` names it."""


def lives_of(store: Tables) -> list[Life]:
    """The lives that logs show, each at the place of its log; an envelope, a collector or its file's name may tell the pod that a path of the cluster's does not."""
    lives = [life_of(row) for row in store.rows_of(LIVES_SQL)]
    told: dict[str, list[str]] = {}
    for row in rows_of(store, "note", "source, line, text", "topic = 'log-of-pod'"):
        told.setdefault(row["source"], []).append(row["text"])
    # an export may mix the lines of replicas: any of them says which workload it is
    pods = {source: min(names) for source, names in told.items() if len({workload_of(name) for name in names}) == 1}
    if any(not life.place.pod and life.source not in pods for life in lives):
        listed = {row["pod"] for row in rows_of(store, "container", "DISTINCT pod", "pod IS NOT NULL")}
        events = rows_of(store, "cluster_event", "DISTINCT object", "object ILIKE 'pod/%'")
        listed |= {row["object"].partition("/")[2] for row in events}
        pods = {**{life.source: pod for life in lives if (pod := pod_in_path(life.source, listed))}, **pods}
    return [
        replace(life, place=replace(life.place, pod=pods[life.source])) if life.source in pods and not life.place.pod else life
        for life in lives
    ]  # fmt: skip


def who_serves(store: Tables, lives: Sequence[Life], known: Others) -> Server:
    """The server, without the lives and containers of sources that are somebody else's."""
    columns = (
        "source, line, pod, name, namespace, pod_uid, container_id, node, image, serves, gpus, state, started_t, "
        "reason, last_reason, exit_code, memory_limit_bytes, ended_t, ran_s"
    )
    server = server_of(
        [life for life in lives if life.source not in known.strangers],
        [row for row in rows_of(store, "container", columns) if row["source"] not in known.strangers],
        known.kin,
    )
    server.is_vllm = bool(
        rows_of(store, "milestone", "DISTINCT source", "name = 'engine-init' AND regexp_matches(text, '^V\\d ')")
    )
    if not any(life.pids for life in server.lives):
        listed = rows_of(store, "process_memory", "DISTINCT name", "name LIKE '%(pid %'")
        named = [found for row in listed if (found := _LISTED.search(row["name"]))]
        server.listed_pids |= {int(found["pid"]) for found in named if ENGINE.search(found["command"])}
    if not server.pods:
        _add_measured(store, server, known)
    _add_named(store, server, known)
    limits = rows_of(store, "note", "source, line, value", "topic = 'container-limit'")
    server.memory_limits |= {
        int(row["value"]) for row in limits if row["value"] and row["source"] not in known.strangers
    }
    told = rows_of(store, "note", "source, line, value", "topic = 'told-limit'")
    server.told_limits |= {int(row["value"]) for row in told if row["value"]}
    return server


_OWN_SERIES = "regexp_matches(name, '^(?:vllm|sglang|tgi|trtllm)[:_]') AND labels LIKE '%pod=%'"
"""Series that only an engine exposes, with the pod that was scraped."""


def _add_measured(store: Tables, server: Server, known: Others) -> None:
    """The pods whose scrapes hold an engine's own series, where no log and no description tells any: of one workload, or it is not told which."""
    rows = rows_of(store, "metric", "DISTINCT source, labels", _OWN_SERIES)
    boxes = {box_of(row["labels"]) for row in rows if row["source"] not in known.strangers}
    pods = {pod for _, pod, _ in boxes if pod}
    if len({workload_of(pod) for pod in pods}) == 1:
        server.pods |= pods
        server.namespaces |= {namespace for namespace, _, _ in boxes if namespace}


_PART_OF_SERVICE = regex(r"-(?:predictor(?:-default)?|deployment|decode|prefill|vllm|server)$")
"""What KServe and its like put behind the name of a service for the part that computes."""
_SERVED = regex(r"\bmodel_name=\"(?P<name>[^\"/]{3,80})\"")


def _add_named(store: Tables, server: Server, known: Others) -> None:
    """The pods that are called as the model is by those who ask for it: of one workload, or it is not told which.

    Where nothing else tells any they are the server's; of several workloads that serve, as their images tell, they are the one that is asked.
    """
    if server.pods and len({workload_of(pod) for pod in server.pods}) == 1:
        return
    labels = rows_of(store, "metric", "DISTINCT source, labels", "name LIKE 'vllm:%' AND labels LIKE '%model_name=%'")
    flags = rows_of(store, "engine_flag", "DISTINCT source, value", "flag = 'served_model_name'")
    told = {found["name"] for row in labels if row["source"] not in known.strangers and (found := _SERVED.search(row["labels"]))}  # fmt: skip
    told |= {row["value"].strip("[]'\" ") for row in flags if row["value"] and row["source"] not in known.strangers}
    listed = rows_of(store, "container", "DISTINCT source, pod, namespace", "pod IS NOT NULL")
    own = [
        row
        for row in listed
        if row["source"] not in known.strangers and _PART_OF_SERVICE.sub("", workload_of(row["pod"])) in told
    ]
    named = {row["pod"] for row in own}
    seen = {workload_of(life.place.pod) for life in server.lives if life.place.pod}
    if len({workload_of(pod) for pod in named}) == 1 and not seen - set(map(workload_of, named)):
        server.pods = named
        server.namespaces |= {row["namespace"] for row in own if row["namespace"]}


_EXPLAINING = ("memory", "shm", "driver", "hardware", "bad-argument", "missing-file", "network", "kernel", "limit")
"""Kinds of errors that are a cause. A wrapper, a peer that is gone, a hang or a client's error follows from something else."""


def explains_itself(store: Tables, server: Server, apart: Mapping[str, str]) -> bool:
    """Whether the server's own words say what became of it.

    It came up and nothing failed, or it names a cause, or no life is seen and its counters run on. What happened to somebody who
    cannot be named explains nothing then.
    """
    if server.came_up:
        return True
    causes = ("oom", "true"), ("startup_check", "true"), ("log_error", f"kind IN {_EXPLAINING}")
    if any(
        row["source"] not in apart for table, where in causes for row in rows_of(store, table, "DISTINCT source", where)
    ):
        return True
    counters = ("engine_stat", "metric", "request") if not server.lives else ()
    return any(row["source"] not in apart for table in counters for row in rows_of(store, table, "DISTINCT source"))
