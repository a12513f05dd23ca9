"""Devices: their memory, how busy they are, and who they are. Names of nvidia-smi, DCGM, exporters, collectors, gpustat, nvtop, AMD."""

from __future__ import annotations

from oomdoc.ingest.vocabulary.quantity import Quantity
from oomdoc.units import MIB

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
    ),
    Quantity("gpu.uuid", "gpu_sample", "+uuid", "text", strong="gpu uuid, uuid", weak="gpu id, id, gpu", pattern=UUID),
    Quantity(
        "gpu.bus", "gpu_sample", "+bus", "text",
        strong="pci bus id, bus id, gpu pci bus id, bdf, pci, gpu bus id, pci address, pci bus",
        exact="pci.bus_id, pci_bus_id, gpu_bus_id, busid",
        pattern=BUS,
    ),
    Quantity(
        "gpu.name", "gpu_device", "name", "text",
        strong="gpu name, product name, gpu product, gpu model, gpu type, card series, card model, product, gpu model name, market name, gpu product name, accelerator type, adapter name",
        weak="name, model, model name, gpu, type, product type, gpu desc, adapter, sku",
        exact="modelName",
        pattern=PRODUCT,
    ),
    Quantity(
        "gpu.used", "gpu_sample", "used_bytes", "bytes",
        strong="gpu mem used, vram used, fb used, gpu mem used size, total gpu mem used, fb mem used, allocated gpu mem, gpu mem allocated, gpu ram used, dedicated mem used, gpu ram allocated",
        weak="mem used, used, mem, gpu mem, gpu used, vram, fb, mem allocated, fb mem, used mib",
        exact="DCGM_FI_DEV_FB_USED=MiB, dcgm_fb_used=MiB, nvidia_smi_memory_used_bytes=B, nvidia_gpu_memory_used_bytes=B, gpu_memory_used_bytes=B, nvml_memory_used, gpuMemoryUsed, VRAM Total Used Memory (B)=B, fb_memory_usage.used, memory_usage.used, mem_usage.used_vram, used_vram, vram_used",
        high=_MOST,
    ),
    Quantity(
        "gpu.total", "gpu_sample", "total_bytes", "bytes",
        strong="gpu mem total, vram total, fb total, total gpu mem, gpu mem max, gpu total mem size, gpu mem size, vram size, gpu ram total, gpu ram size",
        weak="mem total, total, mem max, mem cap, gpu ram, mem size, gpu total, size",
        exact="DCGM_FI_DEV_FB_TOTAL=MiB, nvidia_smi_memory_total_bytes=B, nvidia_gpu_memory_total_bytes=B, gpu_memory_total_bytes=B, VRAM Total Memory (B)=B, fb_memory_usage.total, memory_usage.total, mem_usage.total_vram, total_vram, vram_total",
        low=512 * MIB,
        high=_MOST,
    ),
    Quantity(
        "gpu.free", "gpu_sample", "+free", "bytes",
        strong="gpu mem free, vram free, fb free, free gpu mem",
        weak="mem free, free, gpu free",
        exact="DCGM_FI_DEV_FB_FREE=MiB, dcgm_fb_free=MiB, fb_memory_usage.free, memory_usage.free, mem_usage.free_vram, free_vram",
        high=_MOST,
    ),
    Quantity(
        "gpu.reserved", "gpu_sample", "+reserved", "bytes",
        strong="gpu mem reserved, fb reserved, mem reserved",
        exact="DCGM_FI_DEV_FB_RESERVED=MiB, fb_memory_usage.reserved, memory.reserved",
        high=_MOST,
    ),
    Quantity(
        "gpu.share", "gpu_sample", "+share", "share",
        strong="gpu mem used, vram used, fb used, gpu mem used ratio",
        weak="mem used, gpu mem, vram, mem",
        exact="GPU memory use (%)=%, GPU Memory Allocated (VRAM%)=%",
        high=1.0,
        needs_unit=True,
    ),
    Quantity(
        "gpu.util", "gpu_sample", "gpu_util", "share",
        strong="gpu util, util gpu, gpu core util, sm util, gfx util, gpu pct, gfx pct, gpu used pct, compute util, core util, gpu duty cycle, gpu compute util, gpu active pct",
        weak="util, sm, gfx, gpu core, compute",
        exact="utilization.gpu, DCGM_FI_DEV_GPU_UTIL=%, dcgm_gpu_utilization=%, gpu use (%)=%, gfx_activity=%, gpu_load, gpu_usage, nvidia_smi_utilization_gpu_ratio=1",
        unit="%",
        high=1.0,
    ),
    Quantity(
        "gpu.memory_util", "gpu_sample", "memory_util", "share",
        strong="mem util, gpu mem util, mem copy util, mem controller util, mem bandwidth util, mem bw util, umc util, dram util, membw util, mem bandwidth used pct",
        exact="utilization.memory, DCGM_FI_DEV_MEM_COPY_UTIL=%, umc_activity=%, mem_copy_util=%, nvidia_smi_utilization_memory_ratio=1, GPU Memory Read/Write Activity (%)=%",
        unit="%",
        high=1.0,
    ),
    Quantity(
        "gpu.mig", "gpu_device", "mig_profile", "text",
        strong="mig profile, gpu profile, mig, gpu i profile",
        exact="GPU_I_PROFILE, mig.profile",
        pattern=r"^(?:MIG )?\d+g\.\d+gb",
    ),
)  # fmt: skip
