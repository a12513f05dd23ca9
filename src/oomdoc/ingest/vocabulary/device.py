"""Devices: their memory, how busy they are, and who they are. Names of nvidia-smi, DCGM, exporters, collectors, gpustat, nvtop, AMD."""

from __future__ import annotations

from oomdoc.ingest.vocabulary.quantity import Quantity
from oomdoc.units import GIB, MIB

PRODUCT = (
    r"(?i)NVIDIA|Tesla|GeForce|Quadro|\bGRID\b|\b[RG]TX\b|\b[ABHLV]\d{2,3}S?\b|\bGH?B?\d{2,3}\b|\bMI\d{2,3}X?A?\b|Instinct|Radeon|"
    r"Gaudi|Ascend|\bT4\b|\bP100\b|Jetson|Blackwell|Hopper|gfx\d"
)
"""What a product's name has in it: a text with it is a device and no process."""
UUID = r"^(?:GPU|MIG)-[0-9a-fA-F-]{4,}"
BUS = r"^(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9a-fA-F]$"
_MOST = 4 << 40  # 4 TiB: more is no memory of a device

QUANTITIES = (
    Quantity(
        "gpu.index", "gpu_sample", "gpu", "index",
        strong="gpu, gpu index, gpu id, gpu minor, gpu ordinal, local rank gpu",
        weak="index, id, minor, rank, local rank, gpus, slot",
        exact="gpu.index, device_id, minor_number, gpu_idx, gpuid",
        high=1023,
        samples=(("index", "0", 0), ("GPU", "cuda:3", 3), ("device", 7, 7), ("gpu_id", "GPU 2", 2)),
        not_names=("gpu_count", "request id", "gpu model", "cpu"),
    ),
    Quantity(
        "gpu.uuid", "gpu_sample", "+uuid", "text",
        strong="gpu uuid, uuid",
        weak="gpu id, id, gpu",
        pattern=UUID,
        samples=(("gpu_uuid", "GPU-5a1b2c3d-0000-1111-2222-333344445555", "GPU-5a1b2c3d-0000-1111-2222-333344445555"),),
        not_names=("container_uuid",),
    ),
    Quantity(
        "gpu.bus", "gpu_sample", "+bus", "text",
        strong="pci bus id, bus id, gpu pci bus id, bdf, pci, gpu bus id, pci address, pci bus",
        exact="pci.bus_id, pci_bus_id, gpu_bus_id, busid",
        pattern=BUS,
        samples=(("pci.bus_id", "00000000:65:00.0", "00000000:65:00.0"),),
        not_names=("bus width",),
    ),
    Quantity(
        "gpu.name", "gpu_device", "name", "text",
        strong="gpu name, product name, gpu product, gpu model, gpu type, card series, card model, product, gpu model name, market name, gpu product name, accelerator type, adapter name",
        weak="name, model, model name, gpu, type, product type, gpu desc, adapter, sku",
        exact="modelName",
        pattern=PRODUCT,
        samples=(("name", "NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3"), ("Card series", "AMD Instinct MI300X", "AMD Instinct MI300X")),
        not_names=("served_model_id",),
    ),
    Quantity(
        "gpu.used", "gpu_sample", "used_bytes", "bytes",
        strong="gpu mem used, vram used, fb used, gpu mem used size, total gpu mem used, fb mem used, allocated gpu mem, gpu mem allocated, gpu ram used, dedicated mem used, gpu ram allocated",
        weak="mem used, used, mem, gpu mem, gpu used, vram, fb, mem allocated, fb mem, used mib",
        exact="DCGM_FI_DEV_FB_USED=MiB, dcgm_fb_used=MiB, nvidia_smi_memory_used_bytes=B, nvidia_gpu_memory_used_bytes=B, gpu_memory_used_bytes=B, nvml_memory_used, gpuMemoryUsed, VRAM Total Used Memory (B)=B, fb_memory_usage.used, memory_usage.used, mem_usage.used_vram, used_vram, vram_used",
        high=_MOST,
        samples=(
            ("memory.used [MiB]", "76012 MiB", 76012 * MIB), ("fb_used", "76012", 76012 * MIB), ("mem_used_mib", 76012, 76012 * MIB),
            ("gpuMemUsedGiB", 74.5, int(74.5 * GIB)), ("DCGM_FI_DEV_FB_USED", 70000, 70000 * MIB), ("VRAM used (MB)", "1,024", 1024 * MIB),
        ),
        not_names=("memory.used.peak", "gpu_mem_used_min_1h", "host_mem_used", "used_percent", "cpu memory", "swap used"),
    ),
    Quantity(
        "gpu.total", "gpu_sample", "total_bytes", "bytes",
        strong="gpu mem total, vram total, fb total, total gpu mem, gpu mem max, gpu total mem size, gpu mem size, vram size, gpu ram total, gpu ram size",
        weak="mem total, total, mem max, mem cap, gpu ram, mem size, gpu total, size",
        exact="DCGM_FI_DEV_FB_TOTAL=MiB, nvidia_smi_memory_total_bytes=B, nvidia_gpu_memory_total_bytes=B, gpu_memory_total_bytes=B, VRAM Total Memory (B)=B, fb_memory_usage.total, memory_usage.total, mem_usage.total_vram, total_vram, vram_total",
        low=512 * MIB,
        high=_MOST,
        samples=(("memory.total [MiB]", "81559 MiB", 81559 * MIB), ("gpu_mem_total_gb", "80", 80 * GIB), ("memTotal", 81559, 81559 * MIB)),
        not_names=("total_tokens", "disk total"),
    ),
    Quantity(
        "gpu.free", "gpu_sample", "+free", "bytes",
        strong="gpu mem free, vram free, fb free, free gpu mem",
        weak="mem free, free, gpu free",
        exact="DCGM_FI_DEV_FB_FREE=MiB, dcgm_fb_free=MiB, fb_memory_usage.free, memory_usage.free, mem_usage.free_vram, free_vram",
        high=_MOST,
        samples=(("memory.free [MiB]", "5547 MiB", 5547 * MIB), ("vram_free", 5547, 5547 * MIB)),
        not_names=("disk free", "free blocks"),
    ),
    Quantity(
        "gpu.reserved", "gpu_sample", "+reserved", "bytes",
        strong="gpu mem reserved, fb reserved, mem reserved",
        exact="DCGM_FI_DEV_FB_RESERVED=MiB, fb_memory_usage.reserved, memory.reserved",
        high=_MOST,
        samples=(("memory.reserved [MiB]", "551 MiB", 551 * MIB),),
        not_names=("reserved by torch",),
    ),
    Quantity(
        "gpu.share", "gpu_sample", "+share", "share",
        strong="gpu mem used, vram used, fb used, gpu mem used ratio",
        weak="mem used, gpu mem, vram, mem",
        exact="GPU memory use (%)=%, GPU Memory Allocated (VRAM%)=%",
        high=1.0,
        needs_unit=True,
        samples=(("gpu_mem_used_pct", "93", 0.93), ("vram %", "50 %", 0.5)),
        not_names=("swap used pct",),
    ),
    Quantity(
        "gpu.util", "gpu_sample", "gpu_util", "share",
        strong="gpu util, util gpu, gpu core util, sm util, gfx util, gpu pct, gfx pct, gpu used pct, compute util, core util, gpu duty cycle, gpu compute util, gpu active pct",
        weak="util, sm, gfx, gpu core, compute",
        exact="utilization.gpu, DCGM_FI_DEV_GPU_UTIL=%, dcgm_gpu_utilization=%, gpu use (%)=%, gfx_activity=%, gpu_load, gpu_usage, nvidia_smi_utilization_gpu_ratio=1",
        unit="%",
        high=1.0,
        samples=(("utilization.gpu [%]", "93 %", 0.93), ("gpu_util", 61, 0.61), ("GPU-Util", "97%", 0.97), ("gpu_util_ratio", 0.5, 0.5)),
        not_names=("cpu util", "utilization.encoder"),
    ),
    Quantity(
        "gpu.memory_util", "gpu_sample", "memory_util", "share",
        strong="mem util, gpu mem util, mem copy util, mem controller util, mem bandwidth util, mem bw util, umc util, dram util, membw util, mem bandwidth used pct",
        exact="utilization.memory, DCGM_FI_DEV_MEM_COPY_UTIL=%, umc_activity=%, mem_copy_util=%, nvidia_smi_utilization_memory_ratio=1, GPU Memory Read/Write Activity (%)=%",
        unit="%",
        high=1.0,
        samples=(("utilization.memory [%]", "40 %", 0.4), ("mem_util", 40, 0.4)),
        not_names=("mem_util_cpu",),
    ),
    Quantity(
        "gpu.mig", "gpu_device", "mig_profile", "text",
        strong="mig profile, gpu profile, mig, gpu i profile",
        exact="GPU_I_PROFILE, mig.profile",
        pattern=r"^(?:MIG )?\d+g\.\d+gb",
        samples=(("mig_profile", "1g.10gb", "1g.10gb"),),
        not_names=("mig.mode.current",),
    ),
)  # fmt: skip
