"""Processes: what each holds on a device, and its resident memory on the host."""

from __future__ import annotations

from oomdoc.ingest.vocabulary.quantity import Quantity
from oomdoc.units import KIB

_MOST = 64 << 40

QUANTITIES = (
    Quantity(
        "process.pid", "gpu_process", "pid", "number",
        strong="pid, process id, host pid, process pid, procid",
        high=2**31,
    ),
    Quantity(
        "process.name", "gpu_process", "name", "text",
        strong="process name, command, process command, program, executable, exe, app name",
        weak="process, name, app, application, comm, container, pod, service, worker",
    ),
    Quantity(
        "process.type", "gpu_process", "type", "text",
        strong="process type",
        weak="type, kind, ctx",
        pattern=r"^(?:C|G|C\+G|M\+C)$",
    ),
    Quantity(
        "process.gpu_used", "gpu_process", "used_bytes", "bytes",
        strong="used gpu mem, process gpu mem, gpu mem used, process gpu mem used, gpu process mem, process vram used, gpu mem, vram, vram used",
        weak="mem used, mem, used, fb, process mem, fb used",
        exact="used_gpu_memory, used_memory, gpu_memory_usage, fb_mem, used_gpu_memory_mib=MiB, gpuMemoryUsage",
        high=_MOST,
    ),
    Quantity(
        "process.resident", "process_memory", "bytes", "bytes",
        strong="resident, resident mem, resident size, process resident mem, mem resident, resident set size, pss, uss, resident set, process resident, physical mem, working set, working set size, process physical mem, mem working set, phys footprint, physical footprint, mem footprint, process footprint",
        weak="res, mem",
        exact="VmRSS=KiB, rss_anon, rss_kb=KiB, RssAnon=KiB",
        unit="",
        low=4 * KIB,
        high=_MOST,
    ),
    Quantity(
        "process.state", "process_memory", "state", "text",
        strong="server state, phase",
        weak="state, step, round, label, event, when, situation, moment, note, iteration, cycle",
    ),
)  # fmt: skip
