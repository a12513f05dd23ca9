"""Memory of the host: `/proc/meminfo`, the node exporter, and kills counted by a memory group."""

from __future__ import annotations

from oomdoc.ingest.vocabulary.quantity import Quantity

QUANTITIES = (
    Quantity(
        "host.size", "note", ":host-size", "bytes",
        strong="host mem total, system mem total, host total mem, ram total, host ram, system ram, total ram, node mem total, host mem",
        exact="MemTotal=KiB, node_memory_MemTotal_bytes=B, meminfo.MemTotal=KiB, ansible_memtotal_mb=MiB",
        low=256 << 20,
        high=1 << 50,
    ),
    Quantity(
        "host.cpu_periods", "note", ":cpu-periods", "count",
        strong="nr periods, cfs periods, cpu periods",
        high=1e12, counter=True,
    ),
    Quantity(
        "host.cpu_throttled", "note", ":cpu-throttled", "count",
        strong="nr throttled, cfs throttled, throttled periods, cfs throttled periods",
        high=1e12, counter=True,
    ),
    Quantity(
        "host.group_kills", "host_event", ":cgroup-oom-count", "count",
        exact="memory.events.oom_kill, memory_events_oom_kill, container_oom_events_total, cgroup.oom_kill",
        low=1,
        high=1e9,
        counter=True,
    ),
)  # fmt: skip
