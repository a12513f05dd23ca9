"""Host memory and device errors as the kernel, Ray, Slurm, NCCL and the C library tell them; memory-group counters.

Two things live here. `PATTERNS` are single lines that fill `host_event` in any text, because dmesg, journal, container
and engine output are glued together in real bundles. The reader of KIND `cgroup` takes `cat` output of a memory group
(v1 and v2), in which a name and its value stand in different lines.

    [ 4038.131905] Memory cgroup out of memory: Killed process 23603 (python) total-vm:454kB, anon-rss:190kB, ...
    == memory.limit_in_bytes                        memory.events:oom_kill 1
    2831155200

What is *not* told here on purpose: an exit code 137 by itself (a probe or an operator can be its cause), a full disk, a
broadcast-block notice. A notice that only lists "killed by the OOM killer" among its guesses is a weak `worker-died`.
One kill may give two or three rows (constraint, victim, usage): the victim's pid tells them apart.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import TEXT_CAP, Head, Pattern, Rows, Sample, regex
from oomdoc.ingest.xid import meaning
from oomdoc.intake.scan import Chunk
from oomdoc.units import GIB, KIB, MIB, parse_size, parse_time

KIND = "cgroup"
TABLES: tuple[str, ...] = ("host_event", "problem")

UNLIMITED = 1 << 60  # the kernel prints page-rounded 2**63 for "no limit"

KINDS: dict[str, str] = {
    "cgroup-oom-kill": "the kernel killed a process for a memory group's limit (the container's)",
    "cgroup-usage": "usage and limit of that group, as the kernel dumps them with a kill",
    "node-oom-kill": "the kernel or an oom daemon killed a process because the whole machine was full",
    "oom-kill": "the kernel's oom-killer worked; the line does not say for which limit",
    "cgroup-oom-count": "counters of a memory group: kills so far (0 is told too), limit, highest usage",
    "ray-memory-kill": "Ray's memory monitor ended a worker",
    "slurm-oom-kill": "the batch system reports a kill for host memory",
    "worker-died": "a worker is gone and the notice only lists possible causes: weak",
    "bus-error": "SIGBUS, the usual end of a write into a full /dev/shm",
    "segfault": "SIGSEGV",
    "shm-full": "an allocation in /dev/shm failed for want of space, or it is 100 % full",
    "pinned-alloc-failed": "page-locked host memory could not be had",
    "host-alloc-failed": "malloc, mmap or a CPU tensor failed",
    "swap-space": "the engine refused its own swap space (bytes) as too large for the host (limit_bytes)",
    "xid": "a device error of NVIDIA's driver, its code in `count`",
    "reboot": "the machine was rebooted",
    "process-limit": "an address-space limit on a process",
    "killed-by-operator": "a person or script sent the kill",
}
"""Every kind of `host_event` that this module and `notes` give, and what it says."""

FACTS: dict[str, str] = {
    "shm-size": "how large /dev/shm is, bytes",
    "disk-free": "what is free in a file system on a disk, bytes",
    "shm-file": "a file that the server makes in /dev/shm, bytes",
    "host-size": "physical memory of the machine, bytes",
    "container-limit": "a memory limit given to a container or unit, bytes",
    "swap-space": "the engine warns that its own swap space (bytes) is large for the host",
    "cpu-pool-default": "the KV pool of the CPU backend has its default size, bytes",
    "page-cache-dropped": "somebody had the kernel give up the page cache of the host",
    "stop-asked": "somebody, or a schedule, asked the supervisor to stop a unit, a container or all replicas",
    "ended-orderly": "a supervisor says that what it was asked to stop ended without an error",
    "pinned-alloc": "page-locked host memory is asked for: if `CUDA error: invalid argument` follows, that failed",
}
"""Topics of `note` rows that this module and `launch` give: sizes and circumstances, no failures."""

_MONTHS = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
    )
}
_HUMAN = regex(r"\s*\[[A-Z][a-z]{2} ([A-Z][a-z]{2}) +(\d{1,2}) (\d\d):(\d\d):(\d\d) (\d{4})\]")
_UPTIME = regex(r"\s*\[ *(\d{1,9}\.\d{1,9})\]")
_SIZE = r"(?:\d[\d,]{0,24}(?:\.\d{1,24})?|\.\d{1,24}) ?(?:[kKMGT]i?B?|bytes|B)?"

Row = dict[str, Any]
Convert = Callable[[Row, re.Match[str]], Row | None]


def boot_free_time(text: str) -> float | None:
    """Epoch seconds of a `dmesg -T` stamp at the head of a line; None for seconds since boot, which have no date.

    >>> boot_free_time("[Thu Nov 19 04:00:01 2026] x"), boot_free_time("[ 4038.131905] x")
    (1795060801.0, None)
    """
    found = _HUMAN.match(text)
    if not found or found[1] not in _MONTHS:
        return None
    day, hour, minute, second, year = (int(found[group]) for group in (2, 3, 4, 5, 6))
    try:
        return dt.datetime(year, _MONTHS[found[1]], day, hour, minute, second, tzinfo=dt.UTC).timestamp()
    except ValueError:
        return None


def _bytes(printed: str) -> int | None:
    size = parse_size(printed, binary=True)
    return None if size is None or size >= UNLIMITED else size


def _told(kind: str, row: Row, match: re.Match[str]) -> Row:
    """The row finished: groups `size…` and `limit…` become bytes, the head of the line `text`, its date `t`."""
    for column, prefix in (("bytes", "size"), ("limit_bytes", "limit")):
        for group in [name for name in row if name.startswith(prefix) and name != column]:
            row[column] = _bytes(row.pop(group))
    for group in [name for name in row if name.startswith("process") and name != "process"]:
        row["process"] = row.pop(group) or row.get("process")
    row["kind"] = kind
    stamp = boot_free_time(match.string)
    if stamp is not None:
        row["t"] = stamp
    elif since_boot := _UPTIME.match(match.string):
        row["uptime_s"] = float(since_boot[1])
    row["text"] = match.string.strip()[:TEXT_CAP]
    if kind == "xid":
        row["meaning"] = meaning(row.get("count"))
    return row


def _event(kind: str, unless: str | None = None) -> Convert:
    """A converter to an event of one kind; None where `unless` is found in the line."""
    other = regex(unless) if unless else None

    def convert(row: Row, match: re.Match[str]) -> Row | None:
        return None if other and other.search(match.string) else _told(kind, row, match)

    return convert


def _fact(topic: str) -> Convert:
    """A converter to a `note` of one topic; a group `size…` or `limit…` is its value in bytes."""

    def convert(row: Row, match: re.Match[str]) -> Row | None:
        printed = [text for name, text in match.groupdict().items() if text and name.startswith(("size", "limit"))]
        value = _bytes(printed[0]) if printed else None
        return {"topic": topic, "value": value, "text": match.string.strip()[:300]}

    return convert


def _pattern(
    name: str,
    dialect: str,
    anchors: tuple[str, ...],
    shapes: tuple[str, ...],
    convert: Convert,
    *samples: Sample,
    table: str = "host_event",
    versions: str = "",
) -> Pattern:
    return Pattern(name, dialect, anchors, regex("|".join(shapes)), table, samples, convert=convert, versions=versions)


def _victim(row: Row, match: re.Match[str]) -> Row | None:
    rest, scope, named = row.pop("rest"), row.pop("scope", None), row.pop("oom", None)
    if not named and "total-vm" not in rest:
        return None  # somebody else's "Killed process"
    resident = re.search(r"anon-rss:(\d+ ?kB)", rest)
    if resident:
        row["bytes"] = _bytes(resident[1])
    return _told("cgroup-oom-kill" if scope else "node-oom-kill" if named else "oom-kill", row, match)


def _constraint(row: Row, match: re.Match[str]) -> Row | None:
    return _told("cgroup-oom-kill" if row.pop("constraint") == "MEMCG" else "node-oom-kill", row, match)


def _ray_node(row: Row, match: re.Match[str]) -> Row | None:
    about = row.pop("about", "")
    for column, shape in (("process", r"\bname=([^,)]{1,200})"), ("pid", r"\bpid=(\d{1,9})\b")):
        found = re.search(shape, about)
        if found:
            row[column] = int(found[1]) if column == "pid" else found[1]
    return _told("ray-memory-kill", row, match)


def _ray_kill(row: Row, match: re.Match[str]) -> Row | None:
    if "Memory on the node" in match.string or row.get("count") == 0:
        return None  # the first is read with its figures by another pattern, the second tells of a crash without a kill
    return _told("ray-memory-kill", row, match)


def _ray_lost(row: Row, match: re.Match[str]) -> Row | None:
    if re.search(r"running low on memory|memory pressure|NODE_OUT_OF_MEMORY", match.string):
        return None
    pid = re.search(r"Worker PID: (\d{1,9})\b", match.string)
    if pid:
        row["pid"] = int(pid[1])
    return _told("worker-died", row, match)


def _process_limit(row: Row, match: re.Match[str]) -> Row | None:
    """An address-space limit: plain numbers are bytes, the shell's `ulimit -v` counts KiB."""
    kib = row.pop("kib", None)
    if kib:
        row["limit"] = f"{kib} kB"
    process = re.search(r"--pid[ =](\d{1,9})\b", match.string)
    if process:
        row["pid"] = int(process[1])
    row = _told("process-limit", row, match)
    stamp = parse_time(match.string)
    if stamp is not None:
        row["t"] = stamp
    return row if row.get("limit_bytes") is not None else None


def _disk(row: Row, match: re.Match[str]) -> Row | None:
    """A line of `df` for /dev/shm, full; numbers without a unit are KiB."""
    row = {"size": _kib(match["used"]), "limit": _kib(match["all"])}
    return _told("shm-full", row, match) if int(match["share"]) >= 100 else None


def _disk_size(row: Row, match: re.Match[str]) -> Row | None:
    return {"topic": "shm-size", "value": _bytes(_kib(match["all"])), "text": match.string.strip()[:300]}


def _disk_free(row: Row, match: re.Match[str]) -> Row | None:
    return {"topic": "disk-free", "value": _bytes(_kib(match["free"])), "text": match.string.strip()[:300]}


def _kib(printed: str) -> str:
    if printed.isdigit() and int(printed) >= GIB and int(printed) % (64 * MIB) == 0:
        return (
            f"{printed} B"  # of `df -B1`: a terabyte of /dev/shm is half of the memory of a host, and no round figure
        )
    return printed if printed[-1].isalpha() else f"{printed} kB"


def _host_size(row: Row, match: re.Match[str]) -> Row | None:
    if match["node"]:
        return None
    return {"topic": "host-size", "value": int(match["kib"][:15]) * KIB, "text": match.string.strip()[:300]}


def _free(row: Row, match: re.Match[str]) -> Row | None:
    """The total of `free`. Without a unit it is that of `-g`, `-m` or none: hosts of servers have 4 GiB to 4 TiB."""
    printed = match["size"].replace(",", ".")
    if printed.isdigit():
        number = int(printed)
        unit = GIB if number < 4 * KIB else MIB if number < 4 * MIB else KIB
        value: int | None = number * unit
    else:
        value = parse_size(printed, binary=True)
    return {"topic": "host-size", "value": value, "text": match.string.strip()[:300]} if value else None


def _cpu_pool(row: Row, match: re.Match[str]) -> Row | None:
    return {"topic": "cpu-pool-default", "value": int(match["size"]) << 30, "text": match.string.strip()[:300]}


def _blocks(row: Row, match: re.Match[str]) -> Row | None:
    counts = match["counts"].split() if match["counts"] else re.findall(r"(\d+)\*", match["blocks"])
    return {"topic": "free-blocks", "text": " ".join(counts)}


def _compactions(row: Row, match: re.Match[str]) -> Row | None:
    return {"topic": "compaction", "text": match["text"], "value": float(match["value"])}


def _no_memory(row: Row, match: re.Match[str]) -> Row | None:
    return {"kind": "memory", "text": match.string.strip()[:TEXT_CAP]}


# Names that only objects in /dev/shm have; a full disk says the same words about other paths
_SHM_NAME = (
    r"(?:dev/shm\b|\bpsm_[0-9a-f]{4,}|\btorch_\d+_\d+|\bnccl-\w{4,}|\bsem\.mp-|"
    r"[Ss]hared[ _-]memory (?:segment|object|block|region|file|pool|arena|ring|buffer)|\bSharedMemory\(|\bshm_\w+|"
    r"NCCL WARN [^\n]{0,200}posix_fallocate)"
)
# "Cannot allocate memory" of a network card's registration limit, of a device, or in a line of source
_NOT_HOST = (
    r"\bibv_|\bmlx\d|RDMA|rdma|[Ii]nfini[Bb]and|DefaultCPUAllocator|cudaErrorMemoryAllocation|CUDA error|\bcuMem\w+ failed"
    rf"|^\s*(?:raise|except|if|#|>>>|//|catch)\b|{_SHM_NAME}"
)
_DF = (
    r"^\s*(?:tmpfs|shm)\s+(?P<all>[\d.]+[KMGTP]?i?)\s+(?P<used>[\d.]+[KMGTP]?i?)\s+[\d.]+[KMGTP]?i?"
    r"\s+(?P<share>\d{1,3})%\s+/dev/shm\s*$"
)
_DF_DISK = (
    r"^\s*(?!tmpfs|shm|udev|devtmpfs|none|run|Filesystem)[\w./:@-]+\s+[\d.]+[KMGTP]?i?\s+[\d.]+[KMGTP]?i?\s+(?P<free>[\d.]+[KMGTP]?i?)"
    r"\s+\d{1,3}%\s+/(?!dev\b|run\b|sys\b|proc\b|boot\b)\S*\s*$"
)
_NOT_SPACE = r"No such file|Permission denied|invalid argument|File exists|Operation not permitted"
_EXIT = r"\bexit(?:ed)?[ _-]?(?:code|status|with)\W{0,3}(?:code|status)?\W{0,3}(?<![\d.])(?:135|(?<=\D)-7)(?![\d.])"

_OOM_KILLER: tuple[Pattern, ...] = (
    _pattern(
        "kernel-oom-victim",
        "kernel",
        ("Killed process", "Kill process"),
        (
            r"(?:(?P<scope>Memory cgroup )?(?P<oom>[Oo]ut of memory(?: \([^)]*\))?): )?"
            r"Kill(?:ed)? process (?P<pid>\d+),? (?:UID \d+,? )?\((?P<process>[^)]*)\)(?P<rest>.*)",
        ),
        _victim,
        (
            "[ 91.1] Memory cgroup out of memory: Killed process 4711 (VLLM::Worker) total-vm:9000kB, "
            "anon-rss:2048kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:48kB oom_score_adj:0",
            {"kind": "cgroup-oom-kill", "pid": 4711, "process": "VLLM::Worker", "bytes": 2048 * KIB, "t": None},
        ),
        (
            "[Thu Nov 19 04:00:01 2026] Out of memory: Killed process 88 (python3) total-vm:9kB, anon-rss:4kB",
            {"kind": "node-oom-kill", "pid": 88, "bytes": 4096, "t": 1795060801.0},
        ),
        (
            "Out of memory: Kill process 88 (python3) score 903 or sacrifice child",
            {"kind": "node-oom-kill", "process": "python3"},
        ),
        ("Killed process 88 (python3) total-vm:9kB, anon-rss:4kB", {"kind": "oom-kill", "bytes": 4096}),
    ),
    _pattern(
        "kernel-oom-constraint",
        "kernel",
        ("oom-kill:constraint",),
        (
            r"oom-kill:constraint=CONSTRAINT_(?P<constraint>\w+)(?:.{0,2000}?\btask_memcg=(?P<memory_group>[^,]{1,500}))?"
            r".{0,2000}?\btask=(?P<process>[^,]*),pid=(?P<pid>\d+)",
        ),
        _constraint,
        (
            "oom-kill:constraint=CONSTRAINT_MEMCG,cpuset=/,oom_memcg=/a,task_memcg=/a,task=python,pid=12,uid=0",
            {"kind": "cgroup-oom-kill", "pid": 12, "process": "python", "memory_group": "/a"},
        ),
        ("oom-kill:constraint=CONSTRAINT_NONE,...,task=a::b,pid=13,uid=0", {"kind": "node-oom-kill", "pid": 13}),
    ),
    _pattern(
        "kernel-cgroup-usage",
        "kernel",
        ("memory: usage", "as a result of limit of"),
        (
            r"(?<![\w+])memory: usage (?P<size>\d+ ?kB), limit (?P<limit>\d+ ?kB), failcnt \d+",
            r"Tasks? in (?P<memory_group>\S+) killed as a result of limit of",
        ),
        _event("cgroup-usage"),
        (
            "[ 91.1] memory: usage 2048kB, limit 2048kB, failcnt 17",
            {"kind": "cgroup-usage", "bytes": 2048 * KIB, "limit_bytes": 2048 * KIB, "pid": None},
        ),
        (
            "Task in /docker/ab killed as a result of limit of /docker/ab",
            {"kind": "cgroup-usage", "memory_group": "/docker/ab"},
        ),
    ),
    _pattern(
        "kernel-oom-invoked",
        "kernel",
        ("invoked oom-killer", "oom_reaper: reaped"),
        (r"\binvoked oom-killer: ", r"oom_reaper: reaped process (?P<pid>\d+) \((?P<process>[^)]*)\)"),
        _event("oom-kill"),
        ("python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0", {"kind": "oom-kill", "process": None}),
        ("oom_reaper: reaped process 31 (VLLM::Worker), now anon-rss:0kB", {"pid": 31, "process": "VLLM::Worker"}),
    ),
    _pattern(
        "kubelet-system-oom",
        "kubelet",
        ("System OOM encountered",),
        (r"System OOM encountered, victim process: (?P<process>[^,]+), pid: (?P<pid>\d+)",),
        _event("node-oom-kill"),
        ("System OOM encountered, victim process: python3, pid: 77", {"pid": 77, "process": "python3"}),
    ),
    _pattern(
        "oom-daemon",
        "systemd",
        ("systemd-oomd", "being more than", "sending SIG", "killed by the OOM killer", "with result"),
        (
            r"(?:systemd-oomd\S* |^)Killed /\S*?(?P<process2>[^/\s]+?)(?:\.(?:scope|service|slice))? due to memory (?:used|pressure)",
            r"systemd-oomd\S* Killed ",
            r"sending SIG(?:TERM|KILL) to process (?P<pid>\d+) uid \d+ \"(?P<process>[^\"]+)\": .{0,200}VmRSS",
            r"(?:(?P<process3>[\w@\\.-]{1,80})\.(?:service|scope): )?A process(?:es)? of this unit (?:has|have) been killed by the OOM killer",
            r"process(?:es)? of this unit (?:has|have) been killed by the OOM killer",
            r"(?:(?P<process4>[\w@\\.-]{1,80})\.(?:service|scope): )?Failed with result 'oom-kill'",
        ),
        _event("node-oom-kill"),
        (
            "vllm.service: A process of this unit has been killed by the OOM killer.",
            {"kind": "node-oom-kill", "process": "vllm"},
        ),
        (
            "Killed /user.slice/a.scope due to memory used (60) / total (62) and swap used being more than 90.00%",
            {"kind": "node-oom-kill", "process": "a"},
        ),
        (
            'sending SIGTERM to process 12 uid 0 "python3": oom_score 900, VmRSS 2000 MiB',
            {"pid": 12, "process": "python3"},
        ),
    ),
    _pattern(
        "docker-oom",
        "docker",
        ("OOMKilled", "TaskOOM", "container oom"),
        (r"OOMKilled\"? ?[:=] ?\"?true\b", r"\bTaskOOM event", r"\bcontainer oom [0-9a-f]{12}"),
        _event("cgroup-oom-kill"),
        ('            "OOMKilled": true,', {"kind": "cgroup-oom-kill"}),
        ("container oom 0123456789abcdef (image=a, name=b)", {"kind": "cgroup-oom-kill"}),
    ),
    _pattern(
        "batch-oom",
        "slurm",
        (
            "oom_kill event",
            "oom-kill event",
            "OOM Killed",
            "memory limit",
            "Out Of Memory",
            "OUT_OF_ME",
            "TERM_MEMLIMIT",
            "job killed: mem",
        ),
        (
            r"Detected (?P<count>\d+) oom[_-]kill event",
            r"slurmstepd: error: (?!Detected).{0,200}(?:memory limit|OOM Killed)",
            r"srun: error: .{0,200}: Out Of Memory",
            r"\bOUT_OF_ME(?:MORY|\+)",
            r"\bTERM_MEMLIMIT\b",
            r"\bPBS: job killed: mem ",
        ),
        _event("slurm-oom-kill"),
        (
            "slurmstepd: error: Detected 2 oom_kill events in StepId=7.0. Some of the step tasks have been OOM Killed.",
            {"kind": "slurm-oom-kill", "count": 2},
        ),
        ("srun: error: node1: task 0: Out Of Memory", {"kind": "slurm-oom-kill", "count": None}),
        ("slurmstepd: error: Exceeded job memory limit at some point.", {"kind": "slurm-oom-kill"}),
    ),
)

_RAY: tuple[Pattern, ...] = (
    _pattern(
        "ray-node-memory",
        "ray",
        ("Memory on the node", "Node memory usage above"),
        (
            rf"Memory on the node(?P<about>.{{0,800}}?)\bwas (?P<size>{_SIZE}) ?/ ?(?P<limit>{_SIZE})",
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
    _pattern(
        "ray-memory-kill",
        "ray",
        (
            "memory pressure",
            "running low on memory",
            "exceptions.OutOfMemoryError",
            "NODE_OUT_OF_MEMORY",
            "OOM kill reason",
            "to free up memory",
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
        (
            "2 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons",
            {"kind": "ray-memory-kill", "count": 2},
        ),
        (
            " actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: 11d4",
            {"kind": "ray-memory-kill", "count": None},
        ),
        (
            "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
            {"kind": "ray-memory-kill", "count": None},
        ),
    ),
    _pattern(
        "ray-worker-lost",
        "ray",
        ("unexpected system error", "exit type: SYSTEM_ERROR", "connection error code"),
        (
            r"died or was killed while executing a task by an unexpected system error",
            r"exit type: SYSTEM_ERROR",
            r"unexpectedly exits with a connection error code",
        ),
        _ray_lost,
        (
            "A worker died or was killed while executing a task by an unexpected system error. Worker PID: 31 ...",
            {"kind": "worker-died", "pid": 31},
        ),
        ("Worker exit type: SYSTEM_ERROR Worker exit detail: ...", {"kind": "worker-died", "pid": None}),
    ),
)

_SIGNALS: tuple[Pattern, ...] = (
    _pattern(
        "bus-error",
        "libc",
        ("SIGBUS", "Bus error", "bus error", "exit code", "exit status", "exited with", "exitcode"),
        (
            r"\*\*\* SIGBUS",
            r"(?:received|killed by|terminated by|[Ss]ignal:?|with) \(?SIGBUS\b",
            r"Fatal Python error: Bus error",
            r"[Ss]ignal: Bus error",
            r"(?:^|: |\d +)Bus error(?: +\(core dumped\)|\s*$)",
            r"Unexpected bus error encountered in worker",
            _EXIT,
        ),
        _event("bus-error"),
        ("(RayWorker pid=41) *** SIGBUS received at time=1 on cpu 2 ***", {"kind": "bus-error"}),
        ("Fatal Python error: Bus error", {"kind": "bus-error"}),
        ("run.sh: line 3:    12 Bus error               (core dumped) vllm serve m", {"kind": "bus-error"}),
        ("ERROR: Unexpected bus error encountered in worker. This might be caused by", {"kind": "bus-error"}),
        ("Worker VllmWorkerProcess pid 991 died, exit code: -7", {"kind": "bus-error"}),
        ("engine-1 exited with code 135", {"kind": "bus-error"}),
    ),
    _pattern(
        "segfault",
        "libc",
        ("SIGSEGV", "Segmentation fault", "segfault at", "Segfault encountered", "Caught signal"),
        (
            r"\*\*\* SIGSEGV received",
            r"Caught signal 11\b",
            r"Fatal Python error: Segmentation fault",
            r"(?:^|: |\d +)Segmentation fault(?: +\(core dumped\)|\s*$)",
            r"(?P<process>[^\s\[]{1,64})\[(?P<pid>\d{1,9})\]: segfault at ",
            r"Segfault encountered",
            r"(?:killed|terminated) by (?:signal:? )?(?:SIGSEGV|Segmentation fault)",
        ),
        _event("segfault"),
        ("*** SIGSEGV received at time=1 on cpu 2 ***", {"kind": "segfault"}),
        ("[decode-1:77  :0:91] Caught signal 11 (Segmentation fault: invalid permissions)", {"kind": "segfault"}),
        (
            "[ 4.2] python3[77]: segfault at 10 ip 00007f sp 00007f error 4 in libcuda.so[7f+1]",
            {"kind": "segfault", "pid": 77, "process": "python3"},
        ),
    ),
)

_SHARED_MEMORY: tuple[Pattern, ...] = (
    _pattern(
        "shm-insufficient",
        "shm",
        ("Insufficient space in", "exceeds memory available in", "Please check that"),
        (
            rf"Insufficient space in \S*shm\S*[^:\n]*: (?P<size>{_SIZE}) required, (?P<limit>{_SIZE}) free",
            r"memory request exceeds memory available in /dev/shm"
            r"(?:\. The request is for (?P<size2>\d+) bytes, and the amount available is (?P<limit2>\d+) bytes)?",
            r"Not enough memory to write total of (?P<size3>\d+) bytes\. Please check that /dev/shm",
        ),
        _event("shm-full"),
        (
            "RuntimeError: Insufficient space in /dev/shm for shared-memory allocation: 128 MiB required, 16 MiB free.",
            {"kind": "shm-full", "bytes": 128 << 20, "limit_bytes": 16 << 20},
        ),
        (
            "System memory request exceeds memory available in /dev/shm. The request is for 9000 bytes, and the "
            "amount available is 8000 bytes.",
            {"kind": "shm-full", "bytes": 9000, "limit_bytes": 8000},
        ),
    ),
    _pattern(
        "shm-no-space",
        "shm",
        (
            "No space left on device",
            "failed to extend",
            "shared memory segment",
            "shared memory object",
            "shared memory(shm)",
        ),
        (
            rf"No space left on device(?=[^\n]{{0,400}}?{_SHM_NAME})",
            rf"{_SHM_NAME}[^\n]{{0,400}}?No space left on device",
            r"failed to extend /dev/shm/\S+ to (?P<size>\d+) bytes",
            r"Error while creating shared memory segment \S* ?\(size (?P<size2>\d+)\)",
            r"unable to (?:allocate|open|mmap|resize) shared memory ?(?:\(shm\)|object)[^\n]{0,200}\((?:28|12|11)\)",
            # posix_fallocate returns its error and leaves errno alone: torch prints the errno of nothing
            r"unable to allocate shared memory ?\(shm\) for file [^\n]{0,200}: Success \(0\)",
        ),
        _event("shm-full", unless=_NOT_SPACE),
        ("OSError: [Errno 28] No space left on device: '/psm_0a1b2c3d'", {"kind": "shm-full"}),
        (
            "RuntimeError: unable to allocate shared memory(shm) for file </torch_71_99_0>: Success (0)",
            {"kind": "shm-full"},
        ),
        (
            "unable to open shared memory object </torch_11_22> in read-write mode: No space left on device (28)",
            {"kind": "shm-full"},
        ),
        (
            "misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-Ab12Cd to 33030532 bytes",
            {"kind": "shm-full", "bytes": 33030532},
        ),
        (
            "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Ab12Cd (size 9637888)",
            {"kind": "shm-full", "bytes": 9637888},
        ),
        ("shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device", {"kind": "shm-full"}),
        (
            "E0314 05:11:23.7 1 x.cc:69] \"Failed to increase the shared memory pool size for key 'r_3' to 64 bytes. Error: No space left on device\"",
            {"kind": "shm-full"},
        ),
    ),
    _pattern(
        "shm-df-full",
        "host",
        ("tmpfs ", "shm  "),
        (_DF,),
        _disk,
        (
            "shm              64M   64M     0 100% /dev/shm",
            {"kind": "shm-full", "bytes": 64 << 20, "limit_bytes": 64 << 20},
        ),
    ),
    _pattern(
        "shm-df",
        "host",
        ("tmpfs ", "shm  "),
        (_DF,),
        _disk_size,
        ("tmpfs               8192     0      8192   0% /dev/shm", {"topic": "shm-size", "value": 8 << 20}),
        table="note",
    ),
    _pattern(
        "disk-df",
        "host",
        ("overlay ", "nvme", "mapper", "xvda", "sda1", "sda2", "sdb1", "vda1", "vdb1", "md0 "),
        (_DF_DISK,),
        _disk_free,
        ("overlay         900G  800G   96G  90% /", {"topic": "disk-free", "value": 96 << 30}),
        table="note",
    ),
    _pattern(
        "shm-file",
        "host",
        ("mmap file", "mapped file", "shared file", "memory file", "shm file"),
        (rf"(?:mmap|mapped|shared|memory|shm) file[^\n]{{0,60}}/dev/shm/\S+\s*\(?(?:size[:= ]*)?(?P<size>{_SIZE})",),
        _fact("shm-file"),
        ("Created mmap file /dev/shm/offload_3a.mmap (8.00 GiB)", {"topic": "shm-file", "value": 8 << 30}),
        table="note",
    ),
    _pattern(
        "shm-stated",
        "host",
        ("shm type tmpfs", "shm bytes", "shm total", "shm size", "shm: size", "object store is using", "shm  "),
        (
            rf"/dev/shm type tmpfs \([^)]*\bsize=(?P<limit>{_SIZE})",
            rf"/dev/shm (?:bytes )?(?:total |size )?(?:size|total)?[:= ]+(?P<limit2>{_SIZE})(?![\d.%])",
            r"object store is using \S+ instead of /dev/shm because /dev/shm has only (?P<limit3>\d+) bytes available",
            r"^shm {2,}(?P<limit4>\d[\d.]*[KMGT])\s*$",  # a row of df, cut
        ),
        _fact("shm-size"),
        ("shm on /dev/shm type tmpfs (rw,nosuid,size=65536k)", {"topic": "shm-size", "value": 64 << 20}),
        ("shm              64M", {"topic": "shm-size", "value": 64 << 20}),
        ("# /dev/shm bytes total=4096000 free=4095000", {"topic": "shm-size", "value": 4096000}),
        (
            "The object store is using /tmp instead of /dev/shm because /dev/shm has only 67108864 bytes available.",
            {"topic": "shm-size", "value": 64 << 20},
        ),
        table="note",
    ),
)

_ALLOCATIONS: tuple[Pattern, ...] = (
    _pattern(
        "pinned-alloc-failed",
        "cuda",
        (
            "pinned",
            "pin_memory",
            "HostAlloc",
            "HostRegister",
            "HostMalloc",
            "MallocHost",
            "num_cpu_blocks",
            "register ptr",
            "nable to pin",
            "ailed to pin",
        ),
        (
            r"(?:[Pp]inned (?:host )?(?:memory|pool)|pin_memory|cudaHost(?:Alloc|Register)|num_cpu_blocks)"
            r"(?:[^\n]{0,2000}?CUDA error: (?:invalid argument|out of memory)"
            rf"|\W{{1,3}}failed|[^\n]{{0,60}}needs ~?(?P<size>{_SIZE}) but only (?P<limit>{_SIZE}) of RAM)",
            rf"(?:[Ff]ailed|[Uu]nable) to allocate (?P<size2>{_SIZE}) (?:of )?(?:pinned|page-locked) memory",
            r"_allocate_kv_cache\(\s*self\.num_cpu_blocks",  # a frame of the CPU half of the cache
            # any runtime's call for page-locked memory
            r"\b(?:cuda|hip|cuMem|acl\w{0,3}|rt)(?:Host(?:Alloc|Register|Malloc)|MallocHost)\w{0,20}(?:\(\))?:? (?:has )?failed\b(?:[^\n]{0,40}?\b(?:size[:= ]{1,3}|for )(?P<size3>\d{4,15}\b))?",
            r"\bregister (?:host )?ptr failed|\b(?:[Uu]nable|[Ff]ailed) to pin (?:host |CPU )?memory",
        ),
        _event("pinned-alloc-failed"),
        (
            "ggml_cuda_host_malloc: failed to allocate 2048.00 MiB of pinned memory: out of memory",
            {"kind": "pinned-alloc-failed", "bytes": 2 << 30},
        ),
        (
            "pinned host pool needs ~96 GiB but only 60 GiB of RAM is available.",
            {"kind": "pinned-alloc-failed", "bytes": 96 << 30, "limit_bytes": 60 << 30},
        ),
        (
            "torch.zeros(shape, pin_memory=True) RuntimeError: CUDA error: invalid argument",
            {"kind": "pinned-alloc-failed", "bytes": None},
        ),
        ("hipHostRegister failed, size=5368709120", {"kind": "pinned-alloc-failed", "bytes": 5 << 30}),
    ),
    _pattern(
        "pinned-alloc",
        "cuda",
        ("pinned memory", "pin_memory"),
        # the second: a line of a program, as a stack prints it
        (
            r"CPU cache blocks, pinned memory(?![^\n]{0,2000}CUDA error)",
            r"(?:^|[\s,(])pin_memory=(?!False|\"|')[\w.]+(?:\(\))?[,)](?![^\n]{0,2000}CUDA error)|\)\.pin_memory\(\)\s*$",
        ),
        _fact("pinned-alloc"),
        ("    size, dtype=torch.uint8, device='cpu', pin_memory=is_pin_memory_available())", {"topic": "pinned-alloc"}),
        ("    host = torch.empty(shape, dtype=dtype).pin_memory()", {"topic": "pinned-alloc"}),
        ("CPU cache blocks, pinned memory, alloc_shape=(2, 100, 16, 2, 64)", {"topic": "pinned-alloc", "value": None}),
        table="note",
    ),
    _pattern(
        "cpu-allocator",
        "torch",
        ("DefaultCPUAllocator",),
        (r"DefaultCPUAllocator: (?:can.t allocate|not enough) memory: you tried to allocate (?P<size>\d+) bytes",),
        _event("host-alloc-failed"),
        (
            "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
            "allocate 90000 bytes. Error code 12 (Cannot allocate memory)",
            {"kind": "host-alloc-failed", "bytes": 90000},
        ),
    ),
    _pattern(
        "host-alloc-failed",
        "libc",
        (
            "std::bad_alloc",
            "Cannot allocate memory",
            "MemoryError",
            "memory allocation of",
            "host memory",
            "CPU memory",
        ),
        (
            r"\bstd::bad_alloc\b",
            r"Cannot allocate memory",
            r"(?<![A-Za-z])_?(?:Array)?MemoryError"
            rf"(?:: Unable to allocate (?P<size>{_SIZE}) for an array|:|$)",
            r"memory allocation of (?P<size2>\d+) bytes failed",
            rf"(?:[Ff]ailed|[Uu]nable) to allocate (?P<size3>{_SIZE}) (?:of )?"
            r"(?:pinned |page-locked )?(?:host|CPU) memory",
        ),
        _event("host-alloc-failed", unless=_NOT_HOST),
        ("terminate called after throwing an instance of 'std::bad_alloc'", {"kind": "host-alloc-failed"}),
        ("OSError: [Errno 12] Cannot allocate memory", {"kind": "host-alloc-failed"}),
        ("_ArrayMemoryError: Unable to allocate 1.50 GiB for an array with shape (1, 2)", {"bytes": 3 << 29}),
        ("memory allocation of 4096 bytes failed", {"bytes": 4096}),
        ("MemoryError", {"kind": "host-alloc-failed", "bytes": None}),
    ),
    _pattern(
        "swap-space",
        "vllm",
        ("Too large swap space",),
        (rf"Too large swap space\. (?P<size>{_SIZE}) out of the (?P<limit>{_SIZE}) total CPU memory",),
        _event("swap-space"),
        (
            "ValueError: Too large swap space. 36.00 GiB out of the 48.00 GiB total CPU memory is allocated for it",
            {"kind": "swap-space", "bytes": 36 << 30, "limit_bytes": 48 << 30},
        ),
        versions="0.1.7 – 0.17.1",
    ),
    _pattern(
        "swap-space-warning",
        "vllm",
        ("too large swap space",),
        (rf"Possibly too large swap space\. (?P<size>{_SIZE}) out of the {_SIZE} total CPU memory",),
        _fact("swap-space"),
        (
            "Possibly too large swap space. 24.00 GiB out of the 48.00 GiB total CPU memory is allocated for the swap",
            {"topic": "swap-space", "value": 24 << 30},
        ),
        versions="0.1.7 – 0.17.1",
        table="note",
    ),
    _pattern(
        "cpu-pool-default",
        "vllm",
        ("VLLM_CPU_KVCACHE_SPACE",),
        (r"VLLM_CPU_KVCACHE_SPACE \(Gi?B\) for CPU backend is not set, using (?P<size>\d{1,4}) by default",),
        _cpu_pool,
        (
            "Environment variable VLLM_CPU_KVCACHE_SPACE (GiB) for CPU backend is not set, using 4 by default.",
            {"topic": "cpu-pool-default", "value": 4 << 30},
        ),
        versions="0.4.1 →",
        table="note",
    ),
    _pattern(
        # counts of free blocks by order, as the kernel lists them by itself or at a failure; `views/64_free_pieces.sql` weighs them
        "free-blocks",
        "kernel",
        ("zone ", "*4kB"),
        (
            r"^Node \d{1,3}, zone +(?:Normal|Movable) +(?P<counts>\d{1,9}(?: +\d{1,9}){8,14})(?!\d)",
            r"^Node \d{1,3} (?:Normal|Movable): (?P<blocks>\d{1,9}\*4kB .{20,300}?) = \d",
        ),
        _blocks,
        (
            "Node 0, zone   Normal  41022  5871  455  230  112  71  20  12  7  0  0",
            {"topic": "free-blocks", "text": "41022 5871 455 230 112 71 20 12 7 0 0"},
        ),
        (
            "Node 1 Normal: 9011*4kB (UME) 803*8kB (UE) 70*16kB 1*32kB 0*64kB 0*128kB 0*256kB 0*512kB 0*1024kB 0*2048kB 0*4096kB = 43620kB",
            {"topic": "free-blocks", "text": "9011 803 70 1 0 0 0 0 0 0 0"},
        ),
        table="note",
    ),
    _pattern(
        # /proc/vmstat
        "compactions",
        "kernel",
        ("compact_fail ", "compact_stall "),
        (r"^(?P<text>compact_(?:fail|stall)) +(?P<value>\d{1,15})\b",),
        _compactions,
        ("compact_fail 1350022", {"topic": "compaction", "text": "compact_fail", "value": 1350022.0}),
        table="note",
    ),
    _pattern(
        "driver-no-memory",
        "kernel",
        ("NV_ERR_NO_MEMORY",),
        (r"NVRM: .{0,300}NV_ERR_NO_MEMORY",),
        _no_memory,
        ("NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x51)", {"kind": "memory"}),
        table="log_error",
    ),
)

_MACHINE: tuple[Pattern, ...] = (
    _pattern(
        "xid",
        "xid",
        ("NVRM: Xid",),
        (
            r"NVRM: Xid \((?:PCI:)?(?P<device>[^)]*)\): (?P<count>\d+)(?:, pid='?(?:(?P<pid>\d+)|[^',]*)'?)?"
            r"(?:, name=(?P<process>[^,]+))?",
        ),
        _event("xid"),
        (
            "[ 9.1] NVRM: Xid (PCI:0000:41:00): 31, pid=797, name=python3, Ch 0000000a, intr 10000000. MMU Fault",
            {
                "kind": "xid",
                "count": 31,
                "pid": 797,
                "process": "python3",
                "meaning": "a kernel touched an address that is not mapped (MMU fault): a fault of the program, seldom of the driver",
            },
        ),
        (
            "NVRM: Xid (PCI:0000:65:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            {"count": 79, "pid": None, "device": "0000:65:00"},
        ),
    ),
    _pattern(
        "reboot",
        "systemd",
        ("reboot", "powering down", "systemd-shutdown"),
        (
            r"reboot: Restarting system",
            r"System is (?:rebooting|powering down)",
            r"system will (?:reboot|power off) now",
            r"has been rebooted, boot id",
            r"^reboot\s+system boot",
            r"systemd-shutdown\[1\]",
        ),
        _event("reboot"),
        ("systemd-logind[611]: System is rebooting.", {"kind": "reboot"}),
        ("Node node-b has been rebooted, boot id: 0a1b", {"kind": "reboot"}),
    ),
    _pattern(
        "process-limit",
        "host",
        ("prlimit", "ulimit"),
        (
            r"\bprlimit\b[^\n]{0,200}?--as[= ](?P<limit>\d+)"
            r"(?:[^\n]*?virtual size[^:\n]{0,60}: (?P<size>\d+ bytes))?",
            r"\bulimit (?:-[SH]+ )?-[SH]*v (?P<kib>\d+)",
        ),
        _process_limit,
        (
            "prlimit --pid 44 --as=3000000000   # at 2026-11-19T04:00:01Z, virtual size before: 2900000000 bytes",
            {
                "kind": "process-limit",
                "pid": 44,
                "limit_bytes": 3000000000,
                "bytes": 2900000000,
                "t": 1795060801.0,
            },
        ),
        ("ulimit -v 4194304", {"kind": "process-limit", "limit_bytes": 4 << 30}),
    ),
    _pattern(
        "process-limit-table",
        "host",
        ("Max address space", "virtual memory ", "address space limit"),
        (
            r"^\s*Max address space\s+(?P<limit>\d+)\s",
            r"^\s*virtual memory\s+\(kbytes, -v\)\s+(?P<kib>\d+)",
            r"^\s*AS\s+address space limit\s+(?P<limit2>\d+)\s",
        ),
        _process_limit,
        (
            "Max address space         3000000000           unlimited            bytes",
            {"kind": "process-limit", "limit_bytes": 3000000000},
        ),
        ("virtual memory              (kbytes, -v) 2048", {"limit_bytes": 2 << 20}),
    ),
    _pattern(
        "host-memory",
        "host",
        ("MemTotal",),
        (r"(?P<node>Node \d+ )?MemTotal\w*[:=]\s*(?P<kib>\d+)(?: ?kB)?",),
        _host_size,
        ("MemTotal:       24684092 kB", {"topic": "host-size", "value": 24684092 * KIB}),
        table="note",
    ),
    _pattern(
        "page-cache-dropped",
        "host",
        ("drop_caches",),
        (r"\becho [123]\b.{0,20}(?:>|\btee\b) ?(?:-a )?/proc/sys/vm/drop_caches|\bvm\.drop_caches ?= ?[123]\b",),
        lambda row, match: {"topic": "page-cache-dropped", "text": match.string.strip()[:300]},
        ("$ sudo sysctl vm.drop_caches=3", {"topic": "page-cache-dropped"}),
        ("root@n4:~# echo 1 | tee /proc/sys/vm/drop_caches", {"topic": "page-cache-dropped"}),
        table="note",
    ),
    _pattern(
        "stop-asked",
        "supervisor",
        ("systemctl", " stop ", "replicas=0", "systemd[1]: Stopping"),
        (
            r"(?:COMMAND=\S{0,40}/|^\s*(?:\S{0,60} ?[$#%] |[\d*,/ -]{9,40}(?:root )?)?(?:sudo )?)systemctl (?:--user )?stop \S",
            r"(?:COMMAND=\S{0,40}/|^\s*(?:\S{0,60} ?[$#%] |[\d*,/ -]{9,40}(?:root )?)?(?:sudo )?)(?:docker|podman|nerdctl)(?: compose)? stop\b",
            r"^\s*(?:\S{0,60} ?[$#%] |[\d*,/ -]{9,40}(?:root )?)?(?:kubectl|oc|k) (?:-n \S+ )?scale\b.{0,120}--replicas=0\b",
            r"^(?:.{0,60}systemd\[1\]: )?Stopping \S{0,30}(?:llm|inference|engine)\S{0,30}\.service\b",
        ),
        lambda row, match: {"topic": "stop-asked", "text": match.string.strip()[:300]},
        (
            "sudo[77]: ana : TTY=pts/1 ; PWD=/root ; USER=root ; COMMAND=/usr/bin/systemctl stop llm.service",
            {"topic": "stop-asked"},
        ),
        ("$ docker compose stop vllm", {"topic": "stop-asked"}),
        ("0 20 * * 5 kubectl -n ai scale deploy/llm --replicas=0", {"topic": "stop-asked"}),
        ("systemd[1]: Stopping vllm.service - vLLM server...", {"topic": "stop-asked"}),
        table="note",
    ),
    _pattern(
        "ended-orderly",
        "supervisor",
        ("Deactivated successfully", "Result=success", "shutdown complete"),
        (
            r"^(?:.{0,60}systemd\[1\]: )?\S{0,30}(?:llm|inference|engine)\S{0,30}\.service: Deactivated successfully",
            r"^\s*Result=success\s*$",
            r"^(?:INFO:\s+)?Application shutdown complete",
        ),
        lambda row, match: {"topic": "ended-orderly", "text": match.string.strip()[:300]},
        ("systemd[1]: vllm.service: Deactivated successfully.", {"topic": "ended-orderly"}),
        ("Result=success", {"topic": "ended-orderly"}),
        ("INFO:     Application shutdown complete.", {"topic": "ended-orderly"}),
        table="note",
    ),
    _pattern(
        "host-memory-free",
        "host",
        ("Mem:  ", "Speicher:  ", "Memoria:  "),
        (
            r"^(?:Mem|Speicher|Memoria): {2,}(?P<size>\d{1,12}(?:[.,]\d+)?(?:[KMGT]i?)?) {2,}[\d.,]+(?:[KMGT]i?|B)? {2,}[\d.,]+(?:[KMGT]i?|B)?(?: {2,}|\s*$)",
        ),
        _free,
        (
            "Mem:           125Gi        66Gi        21Gi       0.4Gi        37Gi        58Gi",
            {"topic": "host-size", "value": 125 * GIB},
        ),
        ("Speicher:       62Gi        41Gi       3,1Gi       0,4Gi        18Gi        20Gi", {"value": 62 * GIB}),
        ("Mem:            105           3          39           0          63         101", {"value": 105 * GIB}),
        ("Mem:          64216       41022        1200         104       21993       22412", {"value": 64216 * MIB}),
        ("Mem:       65757184    42006528     1228800      106496    22521856    22949888", {"value": 65757184 * KIB}),
        table="note",
    ),
)

PATTERNS: tuple[Pattern, ...] = (*_OOM_KILLER, *_RAY, *_SIGNALS, *_SHARED_MEMORY, *_ALLOCATIONS, *_MACHINE)
"""Statements about host memory, shared memory and device errors; `KINDS` and `FACTS` say what each means."""


# ---- memory-group files

_NAME = r"(?P<path>[^\s:=<>]{0,300}?)(?P<name>memory(?:\.memsw|\.kmem|\.swap)?\.[a-z_.]+)"
_HEADING = regex(rf"^\W{{0,40}}(?:(?:sudo )?cat )?{_NAME}\W*$")
_PAIR = regex(rf"^\W{{0,40}}{_NAME}\s*[:=]?\s*(?P<value>-?\d+|max)\s*$")
_NESTED = regex(rf"^\W{{0,40}}{_NAME}\s*[:=]\s*(?P<key>[a-z_]+)[ =:]+(?P<value>\d+)\s*$")
_SEVERAL = regex(rf"{_NAME}(?:\s*[:=]\s*|\s+)(?P<value>\d+\b|max\b|(?:[a-z_]+[ =:]+\d+\b[\s,;]*)+)[\s,;]*")
_KEY_AND_COUNT = regex(r"([a-z_]+)[ =:]+(\d+)")
_VALUE = regex(r"^\s*(-?\d+|max)\s*$")
_KEYED = regex(r"^\s*([a-z_]+)[ =:]+(\d+)\s*$")
_LIMITS = ("memory.limit_in_bytes", "memory.max")
_PEAKS = ("memory.max_usage_in_bytes", "memory.peak")
_USAGES = ("memory.usage_in_bytes", "memory.current")
_EVENT_KEYS = frozenset(
    ("oom_kill", "oom", "oom_kill_disable", "under_oom", "oom_group_kill", "low", "high", "max", "sock_throttled")
)


def matches(head: Head) -> bool:
    """Counter files of a memory group: nearly every line is a name, a value, or a name with its value."""
    if b"memory." not in head.data and b"oom_kill" not in head.data:
        return False
    lines = [line for line in head.lines if line.strip()]
    if len(lines) < 2:
        return False
    named = keyed = plain = 0
    for line in lines:
        if _HEADING.match(line) or _PAIR.match(line) or _NESTED.match(line) or _several(line):
            named += 1
        elif found := _KEYED.match(line):
            keyed += 1
            named += found[1] == "oom_kill"
        elif _VALUE.match(line):
            plain += 1
    return named > 0 and named + keyed + plain >= 0.8 * len(lines)


class _Group:
    """What is known of one memory group: plain values, and the keys of its event file."""

    def __init__(self) -> None:
        self.values: dict[str, tuple[str, int]] = {}
        self.kills: tuple[int, int] | None = None  # count, line

    def row(self, group: str) -> tuple[int, dict[str, Any]] | None:
        """The line and row of this group; None where it says nothing of limits or kills. `group` is its path, or empty."""
        limit, peak, usage, fails = (self._first(names) for names in (_LIMITS, _PEAKS, _USAGES, ("memory.failcnt",)))
        if self.kills is None and limit is None and fails is None and peak is None:
            return None
        places = [found[1] for found in (self.kills, limit, peak, usage, fails) if found]
        told = (("oom_kill", self.kills), ("failcnt", fails), ("limit", limit), ("peak", peak), ("usage", usage))
        highest = peak or usage
        return places[0], {
            "kind": "cgroup-oom-count",
            "count": self.kills[0] if self.kills else None,
            "limit_bytes": limit[0] if limit and limit[0] < UNLIMITED else None,
            "bytes": highest[0] if highest else None,
            "memory_group": group.partition("#")[0].rstrip("/") or None,
            "text": ", ".join(f"{name} {found[0]}" for name, found in told if found),
        }

    def _first(self, names: tuple[str, ...]) -> tuple[int, int] | None:
        for name in names:
            printed, line = self.values.get(name, ("", 0))
            if printed.lstrip("-").isdigit() and not printed.startswith("-"):
                return int(printed[:30]), line
        return None


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """One `cgroup-oom-count` row per memory group: kills, limit, highest usage; NULL limit = none set."""
    rows, groups = Rows(), dict[str, _Group]()
    where, name = "", ""
    first_line = 0
    for line, text in (found for chunk in chunks for found in chunk.lines(400)):
        first_line = first_line or line
        found = _NESTED.match(text) or _PAIR.match(text) or _HEADING.match(text)
        if not found and (several := _several(text)):
            for place, each, count in several:
                _note(groups.setdefault(place, _Group()), each, count, line)
            where, name = several[-1][0], ""
        elif found:
            where, name = found["path"], found["name"]
            parts = found.groupdict()
            if parts.get("value") is None:
                if name in groups.get(where, _Group()).values:  # the same file again: another group without a path
                    where = f"{where}#{line}"
                continue
            _note(groups.setdefault(where, _Group()), parts.get("key") or name, parts["value"], line)
        elif value := _VALUE.match(text):
            if name:
                _note(groups.setdefault(where, _Group()), name, value[1], line)
                name = ""
        elif (pair := _KEYED.match(text)) and pair[1] in _EVENT_KEYS:
            _note(groups.setdefault(where, _Group()), pair[1], pair[2], line)
    for place, group in groups.items():
        told = group.row(place)
        if told:
            rows.add("host_event", told[0], **told[1])
    if not rows.count and first_line:
        rows.problem(first_line, "counters of a memory group without a limit, a peak or a kill", path)
    yield from rows.take()


def _several(text: str) -> list[tuple[str, str, str]]:
    """Path, name and value of each counter on a line that holds nothing but several of them; [] for another line.

    >>> _several("memory.events: low 0 oom_kill 2")
    [('', 'low', '0'), ('', 'oom_kill', '2')]
    """
    at = 0
    found: list[tuple[str, str, str]] = []
    text = text.strip(" \t,;")
    while at < len(text):
        match = _SEVERAL.match(text, at)
        if match is None:
            return []
        if match["value"][0].isalpha() and match["value"] != "max":
            found += [(match["path"], pair[1], pair[2]) for pair in _KEY_AND_COUNT.finditer(match["value"])]
        else:
            found.append((match["path"], match["name"], match["value"]))
        at = match.end()
    return found if len(found) > 1 else []


def _note(group: _Group, name: str, value: str, line: int) -> None:
    if name == "oom_kill":
        group.kills = (int(value[:18]), line)
    elif name not in _EVENT_KEYS:
        group.values.setdefault(name, (value, line))
