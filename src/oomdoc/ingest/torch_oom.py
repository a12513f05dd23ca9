"""Out-of-memory messages of every allocator, read as a ledger.

PyTorch prints its books in the message; the wording changed with torch 1.4, 1.10, 1.13, 2.1, 2.2, 2.5, 2.9 and people quote
it wrapped, cut and re-ordered. So each field is read by itself, wherever it stands, and what is not there is NULL.

Identities (torch's allocator source): reserved = allocated + unallocated; live tensors = allocated - private pools;
`free` already excludes other processes. The old wording prints `reserved in total`, from which unallocated is derived.
"""

from __future__ import annotations

import re
from typing import Any

from oomdoc.ingest.base import regex
from oomdoc.units import parse_size

_SIZE = (
    r"(-?(?:\d[\d,]{0,24}(?:\.\d{1,24})?|\.\d{1,24}) ?(?:bytes|[KMGT]i?B)\b)"  # bounded: a run of digits costs no time
)

# What announces an allocation failure, and which allocator it was. The first that matches decides.
_ALLOCATORS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "torch",
        regex(
            r"(?:CUDA|NPU|MUSA) out of memory\. ?Tried to allocate|OutOfMemoryError: (?:CUDA out of memory|Tried to allocate)"
        ),
    ),
    ("hip", regex(r"HIP out of memory|hipErrorOutOfMemory|HIP error: out of memory")),
    ("torch", regex(r"Tried to allocate " + _SIZE)),
    ("torch", regex(r"memory allocation failed with OOM on device")),
    ("torch", regex(r"NVML_SUCCESS == r INTERNAL ASSERT FAILED.*CUDACachingAllocator")),
    ("nccl", regex(r"Cuda failure (?:\d+ )?'out of memory'|Failed to CUDA calloc")),
    ("cublas", regex(r"CUBLAS_STATUS_ALLOC_FAILED")),
    ("cudnn", regex(r"CUDNN_STATUS_ALLOC_FAILED")),
    ("triton", regex(r"Triton Error \[CUDA\]: out of memory")),
    ("driver", regex(r"CUDA driver error: out of memory|CUDA_ERROR_OUT_OF_MEMORY|CUDA Error: out of memory at ")),
    ("cuda", regex(r"CUDA error: out of memory|cudaErrorMemoryAllocation")),
)

ANCHORS = (
    "Tried to allocate", "OutOfMemoryError: CUDA out of memory", "HIP out of memory", "hipErrorOutOfMemory", "HIP error: out of memory", "failed with OOM on device",
    "NVML_SUCCESS == r", "Cuda failure", "Failed to CUDA calloc", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED",
    "Triton Error [CUDA]", "CUDA driver error: out of", "CUDA_ERROR_OUT_OF_MEMORY", "CUDA error: out of memory", "CUDA Error: out of memory",
)  # fmt: skip
"""Literals of which one stands in every such message (see `ingest.base.Pattern` for what an anchor may hold)."""

# A message that speaks about memory without being a failure of this allocation
_NOT_AN_OOM = regex(r"Search for `cudaErrorMemoryAllocation'|may cause OOM|OutOfResources|AlignedAllocator")

_FIELDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("requested_bytes", regex(r"[Tt]ried to allocate " + _SIZE + r"|trying to allocate (\d+ bytes)|Failed to CUDA calloc (?:async )?(\d+ bytes)")),
    ("total_bytes", regex(r"total capaci?ty (?:of |: ?)" + _SIZE + r"|" + _SIZE + r" total capacity|free: \d+, total: (\d+)")),
    ("free_bytes", regex(r"of which " + _SIZE + r" is free|; " + _SIZE + r" free\b|free: " + _SIZE + r"|\(free: (\d+)")),
    ("this_process_bytes", regex(r"this process has " + _SIZE)),
    ("allocated_bytes", regex(_SIZE + r" is allocated by PyTorch|(?<!un)allocated by PyTorch: " + _SIZE + r"|" + _SIZE + r" already allocated")),
    ("private_pool_bytes", regex(_SIZE + r" allocated in private pools")),
    ("unallocated_bytes", regex(_SIZE + r" is reserved by PyTorch but unallocated|reserved by PyTorch but unallocated: " + _SIZE)),
    ("allowed_bytes", regex(_SIZE + r" allowed;")),
    ("reserved", regex(_SIZE + r" (?:reserved in total by PyTorch|cached\))")),
)  # fmt: skip
_OTHERS = regex(r"Process(?: \d+)? has " + _SIZE + r" memory in use")
_DEVICE = regex(r"\bGPU (\d+)\b|\(GPU (\d+);|OOM on device (\d+)|NPU (\d+)")
_COMPLETE = regex(r"is reserved by PyTorch but unallocated|reserved in total by PyTorch|total: \d")


def wants_more(text: str) -> bool:
    """Whether the books seem to go on in the next line (wrapped text)."""
    return ("ried to allocate" in text or "OOM on device" in text) and not _COMPLETE.search(text)


def is_cut(text: str) -> bool:
    """Whether the message ends before its books: they are lost, or stand in the next line."""
    return text.rstrip().endswith("CUDA out of memory.")


def read_oom(text: str) -> dict[str, Any] | None:
    """The row of table `oom` for a message; None where it is no allocation failure.

    >>> row = read_oom("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of "
    ... "79.00 GiB of which 1.00 GiB is free. Process 7 has 4.00 GiB memory in use. Process 9 has 74.00 GiB memory in use. "
    ... "Of the allocated memory 70.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.")
    >>> row["device"], row["other_processes"], row["other_processes_bytes"] // 2**30, row["this_process_bytes"] // 2**30
    (1, 1, 4, 74)
    """
    if _NOT_AN_OOM.match(text):
        return None
    allocator = next((name for name, pattern in _ALLOCATORS if pattern.search(text)), None)
    if allocator is None:
        return None
    row: dict[str, Any] = {"allocator": allocator, "text": text[:600]}
    for name, pattern in _FIELDS:
        match = pattern.search(text)
        if match:
            row[name] = parse_size(next(group for group in match.groups() if group is not None), binary=True)
    device = _DEVICE.search(text)
    if device:
        row["device"] = int(next(group for group in device.groups() if group is not None))
    reserved = row.pop("reserved", None)
    if reserved is not None and row.get("unallocated_bytes") is None and row.get("allocated_bytes") is not None:
        row["unallocated_bytes"] = max(0, reserved - row["allocated_bytes"])
    if not row.get("this_process_bytes"):
        row["this_process_bytes"] = None  # "0 bytes" is what NVML says when it cannot tell
    _tell_others(row, [parse_size(match[1]) for match in _OTHERS.finditer(text)])
    return row


def _tell_others(row: dict[str, Any], others: list[int | None]) -> None:
    """Fill the foreign processes: in a container our own process appears under a host pid as `Process N`."""
    if any(size is None for size in others):
        return  # the sentinel of WSL and Windows: nothing is known per process
    sizes = sorted((size for size in others if size is not None), reverse=True)
    if row["this_process_bytes"] is None and sizes:
        own = (row.get("allocated_bytes") or 0) + (row.get("unallocated_bytes") or 0)
        if row.get("allocated_bytes") is None:
            row["this_process_bytes"] = sizes.pop(0)
        elif sizes[0] >= own:  # ours is the smallest that holds what torch has: a neighbour may well be larger
            row["this_process_bytes"] = sizes.pop(sum(size >= own for size in sizes) - 1)
    if sizes or row["this_process_bytes"] is not None:
        row["other_processes"] = len(sizes)
        row["other_processes_bytes"] = sum(sizes)
