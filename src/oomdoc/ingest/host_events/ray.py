"""Workers that Ray's memory monitor ended, and those that are gone without a reason that Ray knows."""

from __future__ import annotations

import re

from oomdoc.ingest.base import Pattern, Row, pattern, phrases
from oomdoc.ingest.host_events.rows import SIZE, host_event


def _ray_node(row: Row, match: re.Match[str]) -> Row | None:
    about = row.pop("about", "")
    for column, shape in (("process", r"\bname=([^,)]{1,200})"), ("pid", r"\bpid=(\d{1,9})\b")):
        found = re.search(shape, about)
        if found:
            row[column] = int(found[1]) if column == "pid" else found[1]
    return host_event("ray-memory-kill", row, match)


def _ray_kill(row: Row, match: re.Match[str]) -> Row | None:
    if "Memory on the node" in match.string or row.get("count") == 0:
        return None  # the first is read with its figures by another pattern, the second tells of a crash without a kill
    return host_event("ray-memory-kill", row, match)


def _ray_lost(row: Row, match: re.Match[str]) -> Row | None:
    if re.search(r"running low on memory|memory pressure|NODE_OUT_OF_MEMORY", match.string):
        return None
    pid = re.search(r"Worker PID: (\d{1,9})\b", match.string)
    if pid:
        row["pid"] = int(pid[1])
    return host_event("worker-died", row, match)


PATTERNS: tuple[Pattern, ...] = (
    pattern(
        "ray-node-memory", "ray", ("Memory on the node", "Node memory usage above"),
        (
            rf"Memory on the node(?P<about>.{{0,800}}?)\bwas (?P<size>{SIZE}) ?/ ?(?P<limit>{SIZE})",
            r"Node memory usage above threshold, used: (?P<size2>\d+),.{0,100}?total(?: bytes)?: (?P<limit2>\d+)",
        ),
        _ray_node,
        (
            "Memory on the node (IP: 192.0.2.9, ID: 0a) where the task (actor ID: 0b, name=Worker.run, pid=558, "
            "memory used=11.50GB) was running was 12.50GB / 13.00GB (0.961538), which exceeds the memory usage "
            "threshold of 0.95. Ray killed this worker (ID: 0c)",
            {
                "kind": "ray-memory-kill",
                "pid": 558,
                "process": "Worker.run",
                "bytes": 25 << 29,
                "limit_bytes": 13 << 30,
            },
        ),
        (
            "1 worker(s) were killed due to the node running low on memory. Memory on the node (IP: 192.0.2.9) was "
            "60.00GB / 62.00GB (0.967742)",
            {"bytes": 60 << 30, "limit_bytes": 62 << 30, "pid": None},
        ),
        (
            "memory_monitor.cc:71: Node memory usage above threshold, used: 2500, threshold_bytes: 2400, "
            "total bytes: 2600, threshold fraction: 0.95",
            {"bytes": 2500, "limit_bytes": 2600},
        ),
    ),
    pattern(
        "ray-memory-kill", "ray",
        phrases(
            "memory pressure|running low on memory|exceptions.OutOfMemoryError|NODE_OUT_OF_MEMORY|"
            "OOM kill reason|to free up memory"
        ),
        (
            r"(?<!\d)(?P<count>\d{1,6}) Workers? \(tasks / actors\) killed due to memory pressure",
            r"^ ?actors\) killed due to memory pressure",  # the second half of it, wrapped by a terminal
            r"killed due to the node running low on memory",
            r"ray\.exceptions\.OutOfMemoryError",
            r"NODE_OUT_OF_MEMORY",
            r"OOM kill reason:",
            r"Killing worker with .{0,60}to free up memory",
        ),
        _ray_kill,
        ("2 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons", {"kind": "ray-memory-kill", "count": 2}),
        (" actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: 11d4", {"kind": "ray-memory-kill", "count": None}),
        ("ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.", {"kind": "ray-memory-kill", "count": None}),
    ),
    pattern(
        "ray-worker-lost", "ray", ("unexpected system error", "exit type: SYSTEM_ERROR", "connection error code"),
        (
            r"died or was killed while executing a task by an unexpected system error",
            r"exit type: SYSTEM_ERROR",
            r"unexpectedly exits with a connection error code",
        ),
        _ray_lost,
        ("A worker died or was killed while executing a task by an unexpected system error. Worker PID: 31 ...", {"kind": "worker-died", "pid": 31}),
        ("Worker exit type: SYSTEM_ERROR Worker exit detail: ...", {"kind": "worker-died", "pid": None}),
    ),
)  # fmt: skip
