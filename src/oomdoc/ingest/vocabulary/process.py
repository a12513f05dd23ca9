"""Processes: what each holds on a device, and its resident memory on the host."""

from __future__ import annotations

from oomdoc.ingest.vocabulary.quantity import Quantity
from oomdoc.units import GIB, KIB, MIB

_MOST = 64 << 40

QUANTITIES = (
    Quantity(
        "process.pid", "gpu_process", "pid", "number",
        strong="pid, process id, host pid, process pid, procid",
        high=2**31,
        samples=(("pid", "4711", 4711), ("PID", 4711, 4711)),
        not_names=("ppid", "id"),
    ),
    Quantity(
        "process.name", "gpu_process", "name", "text",
        strong="process name, command, process command, program, executable, exe, app name",
        weak="process, name, app, application, comm, container, pod, service, worker",
        samples=(("process_name", "VLLM::EngineCore", "VLLM::EngineCore"), ("COMMAND", "python3", "python3")),
        not_names=("user",),
    ),
    Quantity(
        "process.type", "gpu_process", "type", "text",
        strong="process type",
        weak="type, kind, ctx",
        pattern=r"^(?:C|G|C\+G|M\+C)$",
        samples=(("type", "C", "C"),),
        not_names=("event type",),
    ),
    Quantity(
        "process.gpu_used", "gpu_process", "used_bytes", "bytes",
        strong="used gpu mem, process gpu mem, gpu mem used, process gpu mem used, gpu process mem, process vram used, gpu mem, vram, vram used",
        weak="mem used, mem, used, fb, process mem, fb used",
        exact="used_gpu_memory, used_memory, gpu_memory_usage, fb_mem, used_gpu_memory_mib=MiB, gpuMemoryUsage",
        high=_MOST,
        samples=(("used_gpu_memory [MiB]", "74012 MiB", 74012 * MIB), ("vram_mib", 74012, 74012 * MIB), ("GPU Memory Usage", "76 GiB", 76 * GIB)),
        not_names=("total_memory", "memory limit", "used_gpu_memory_pct"),
    ),
    Quantity(
        "process.resident", "process_memory", "bytes", "bytes",
        strong="resident, resident mem, resident size, process resident mem, mem resident, resident set size, pss, uss, resident set, process resident, physical mem, working set, working set size, process physical mem, mem working set",
        weak="res, mem",
        exact="VmRSS=KiB, rss_anon, rss_kb=KiB, RssAnon=KiB",
        unit="",
        low=4 * KIB,
        high=_MOST,
        samples=(("rss_mib", 18000, 18000 * MIB), ("RSS", "18.0 GiB", 18 * GIB), ("rss_bytes", 19327352832, 19327352832)),
        not_names=("vsz", "rss_limit", "shared"),
    ),
    Quantity(
        "process.state", "process_memory", "state", "text",
        strong="server state, phase",
        weak="state, step, round, label, event, when, situation, moment, note, iteration, cycle",
        samples=(("state", "after round 3", "after round 3"),),
        not_names=("pstate",),
    ),
)  # fmt: skip
