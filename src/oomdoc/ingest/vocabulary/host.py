"""Memory of the host: `/proc/meminfo`, the node exporter, and kills counted by a memory group."""

from __future__ import annotations

from oomdoc.ingest.vocabulary.quantity import Quantity
from oomdoc.units import GIB, KIB

QUANTITIES = (
    Quantity(
        "host.size", "note", ":host-size", "bytes",
        strong="host mem total, system mem total, host total mem, ram total, host ram, system ram, total ram, node mem total, host mem",
        exact="MemTotal=KiB, node_memory_MemTotal_bytes=B, meminfo.MemTotal=KiB, ansible_memtotal_mb=MiB",
        low=256 << 20,
        high=1 << 50,
        samples=(("MemTotal", "24684092 kB", 24684092 * KIB), ("node_memory_MemTotal_bytes", 25276510208, 25276510208), ("host_memory_total_gib", 64, 64 * GIB)),
        not_names=("MemAvailable", "SwapTotal", "memory_total"),
    ),
    Quantity(
        "host.group_kills", "host_event", ":cgroup-oom-count", "count",
        strong="",
        exact="memory.events.oom_kill, memory_events_oom_kill, container_oom_events_total, cgroup.oom_kill",
        low=1,
        high=1e9,
        counter=True,
        samples=(("container_oom_events_total", 2, 2),),
        not_names=("oom_score_adj", "oom_group_kill"),
    ),
)  # fmt: skip
