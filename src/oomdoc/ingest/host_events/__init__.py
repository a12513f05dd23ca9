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
from oomdoc.ingest.vocabulary.quantity import read

KINDS: dict[str, str] = read("errors")["host_events"]
"""Every kind of `host_event` that this module and `notes` give, and what it says."""

PATTERNS: tuple[Pattern, ...] = (
    *kills.PATTERNS, *ray.PATTERNS, *kills.SIGNALS, *shared_memory.PATTERNS, *allocations.PATTERNS, *machine.PATTERNS,
)  # fmt: skip
"""Statements about host memory, shared memory and device errors; `KINDS` says what each means."""
