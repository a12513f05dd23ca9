"""Host memory and device errors as the kernel, Ray, Slurm, NCCL and the C library tell them, in single lines of any text.

dmesg, journal, container and engine output are glued together in real bundles, so `PATTERNS` are looked for everywhere.

    [ 4038.131905] Memory cgroup out of memory: Killed process 23603 (python) total-vm:454kB, anon-rss:190kB, ...

What is *not* told here on purpose: an exit code 137 by itself (a probe or an operator can be its cause), a full disk, a
broadcast-block notice. A notice that only lists "killed by the OOM killer" among its guesses is a weak `worker-died`.
One kill may give two or three rows (constraint, victim, usage): the victim's pid tells them apart.
"""

from __future__ import annotations

from oomdoc.ingest.base import Pattern
from oomdoc.ingest.host_events import allocations, kills, machine, ray, shared_memory

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

PATTERNS: tuple[Pattern, ...] = (
    *kills.PATTERNS, *ray.PATTERNS, *kills.SIGNALS, *shared_memory.PATTERNS, *allocations.PATTERNS, *machine.PATTERNS,
)  # fmt: skip
"""Statements about host memory, shared memory and device errors; `KINDS` says what each means."""
