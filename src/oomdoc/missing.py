"""What a bundle lacks and would decide most: which tables are empty, and the command that fills each."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence

from oomdoc.model import CollectNext
from oomdoc.store import Store
from oomdoc.tables import TABLES
from oomdoc.views import VIEWS
from oomdoc.weigh import Finding

# What to fetch for a table that is empty: what it is, the command
_FETCH_ALL = (
    "or all of it at once, in an archive that `analyze` reads",
    "oomdoc collect > collect.sh   # then on the host: sh collect.sh -h",
)
_FETCH: Mapping[str, tuple[str, str]] = {
    "engine_figure": (
        "the server log from its very first line",
        "kubectl logs POD -c CONTAINER --previous --timestamps > vllm.log   # or: docker logs NAME &> vllm.log",
    ),
    "engine_stat": (
        "the server log of the minutes before the failure, with statistics lines",
        "kubectl logs POD --previous --timestamps --since=30m > vllm.log",
    ),
    "engine_flag": (
        "the launch command of the server",
        "kubectl get pod POD -o jsonpath='{.spec.containers[*].args}' > command.txt   # or: ps -ww -o args= -p PID",
    ),
    "oom": ("the traceback with the allocator's message", "grep -n -B60 'Tried to allocate' SERVER.log > oom.txt"),
    "log_error": ("the whole traceback, not its last lines", "kubectl logs POD --previous > vllm.log"),
    "metric": (
        "the server's metrics, twice some minutes apart",
        "curl -s http://HOST:8000/metrics > metrics-$(date -u +%Y%m%dT%H%M%SZ).prom",
    ),
    "request": (
        "the request log with token counts of the hour before",
        "the gateway's access log with input_tokens and output_tokens per request",
    ),
    "gpu_sample": ("what holds each device's memory", "nvidia-smi > nvidia-smi.txt"),
    "gpu_process": (
        "the processes on each device, from the host",
        "nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name,used_memory --format=csv > gpu-processes.csv",
    ),
    "gpu_device": ("the list of devices", "nvidia-smi -L > gpus.txt"),
    "host_event": (
        "the kernel log of the node",
        "dmesg -T > dmesg.txt   # or: journalctl -k --since '-2h' > dmesg.txt",
    ),
    "container": ("the pod's state and limits", "kubectl describe pod POD > describe-pod.txt"),
    "cluster_event": ("the events of the namespace", "kubectl get events -A --sort-by=.lastTimestamp > events.txt"),
    "scaler": ("the autoscaler's view", "kubectl describe hpa > hpa.txt"),
    "allocator_stat": (
        "the allocator's own table",
        "python -c 'import torch; print(torch.cuda.memory_summary())'   # in the server process",
    ),
    "process_memory": (
        "the server's memory over time",
        "while sleep 60; do date -u +%FT%TZ; ps -eo pid,rss,args | grep -i vllm; done > rss.txt",
    ),
    "process_exit": (
        "the exit status of the server",
        "docker inspect -f '{{.State.ExitCode}} {{.State.OOMKilled}}' NAME > exit.txt",
    ),
}


def collect_next(store: Store, findings: Sequence[Finding]) -> tuple[CollectNext, ...]:
    """The missing evidence that could move the top of the ranking most, grouped by what to fetch; at most three, and all of it."""
    empty = set(_FETCH) - store.filled
    top = sorted(findings, key=lambda finding: -finding.odds)[:5]
    moves: dict[str, dict[str, float]] = {}
    for finding in top:
        for item in finding.rule.evidence:
            if finding.answers[item.id].holds is not None:
                continue
            reach = abs(item.p_cause - item.p_other)
            for table in _tables_behind(item.sql) & empty:
                causes = moves.setdefault(table, {})
                causes[finding.rule.id] = max(causes.get(finding.rule.id, 0.0), reach)
    ordered = sorted(moves, key=lambda table: (-sum(moves[table].values()), table))
    told = [
        CollectNext(*_FETCH[table], tuple(sorted(moves[table])), round(sum(moves[table].values()), 3))
        for table in ordered[:3]
    ]
    if len(told) > 1:
        of_any = sorted({cause for item in told for cause in item.separates})
        told.append(CollectNext(*_FETCH_ALL, tuple(of_any), round(sum(item.moves for item in told), 3)))
    return tuple(told)


_WORD = re.compile(r"[a-z_]+")


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
