"""Out-of-memory messages of every allocator, read as a ledger.

PyTorch prints its books in the message; the wording changed with torch 1.4, 1.10, 1.13, 2.1, 2.2, 2.5, 2.9 and people quote
it wrapped, cut and re-ordered. So each field is read by itself, wherever it stands, and what is not there is NULL.

Identities (torch's allocator source): reserved = allocated + unallocated; live tensors = allocated - private pools;
`free` already excludes other processes. The old wording prints `reserved in total`, from which unallocated is derived.
"""

from __future__ import annotations

import re
from typing import Any

from oomdoc.ingest.base import phrases
from oomdoc.ingest.vocabulary.quantity import read
from oomdoc.regexes import regex
from oomdoc.units import parse_size

_SIZE = (
    r"(-?(?:\d[\d,]{0,24}(?:\.\d{1,24})?|\.\d{1,24}) ?(?:bytes|[KMGT]i?B)\b)"  # bounded: a run of digits costs no time
)

# What announces an allocation failure, and which allocator it was. The first that matches decides.
_ALLOCATORS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, regex(words))
    for name, words in (
        ("torch", r"(?:CUDA|MUSA) out of memory\. ?Tried to allocate|OutOfMemoryError: (?:CUDA out of memory|Tried to allocate)"),
        ("npu", r"NPU out of memory|NPU error.{0,80}\b207018\b|aclrtMalloc(?!Host).{0,80}\b(?:207001|failed)|EL0004: .{0,80}[Aa]llocate memory|ERR00006 memory error|rtMalloc.{0,40}out of memory"),
        ("xpu", r"XPU out of memory|(?:UR|PI|ZE)_RESULT_ERROR_OUT_OF_(?:DEVICE_MEMORY|HOST_MEMORY)|PI_ERROR_OUT_OF_RESOURCES|UR_RESULT_ERROR_OUT_OF_RESOURCES|sycl::.{0,120}out of (?:device )?memory"),
        ("mps", r"MPS backend out of memory"),
        ("hpu", r"PT_DEVMEM\b.{0,80}[Aa]llocation failed|synStatus(?:=| )?\D{0,12}OutOfMemory|HPU out of memory"),
        ("xla", r"RESOURCE_EXHAUSTED: .{0,160}(?:[Oo]ut of memory|memory space hbm|allocate|to reserve [\d.]+[KMGT] )|Allocator \(\w+_bfc\) ran out of memory"
                r"|[Aa]ttempting to (?:reserve|allocate) [\d.]{1,12}[KMGT]\b.{0,40}\. That was not possible"),
        ("tensorrt", r"Error Code 2: OutOfMemory|Error Code 1: Cuda Runtime \(out of memory\)|Requested amount of GPU memory \(\d+ bytes\)|OutOfMemory \(Requested size was|\[TRT\-?L?L?M?\].{0,120}(?:[Oo]ut of memory|OutOfMemory)"),
        ("ggml", r"ggml\w*: .{0,160}(?:out of memory|failed to allocate)|cudaMalloc failed: out of memory|unable to allocate (?:CUDA|ROCm|Vulkan|SYCL|Metal)\d* buffer"),
        ("cupy", r"cupy\S*OutOfMemoryError|Out of memory allocating [\d,]+ bytes \(allocated so far"),
        ("hip", r"HIP out of memory|hipErrorOutOfMemory|HIP error: out of memory|hipMalloc failed|HSA_STATUS_ERROR_OUT_OF_RESOURCES"),
        # the first: torch's backend on cudaMallocAsync, whose books stand in lines of their own
        ("torch", r"Allocation on device \d+ would exceed allowed memory|Tried to allocate " + _SIZE + r"|memory (?:allocation|mapping|creation|reservation) failed with OOM"
                  r"|NVML_SUCCESS == r INTERNAL ASSERT FAILED.*CUDACachingAllocator"),
        ("nccl", r"(?:Cuda|Hip|HIP) failure (?:\d+ )?'out of memory'|Failed to (?:CUDA|HIP) calloc"),
        ("cublas", r"CUBLAS_STATUS_ALLOC_FAILED"),
        ("cudnn", r"CUDNN_STATUS_ALLOC_FAILED"),
        ("triton", r"Triton Error \[CUDA\]: out of memory"),
        # a server that counts its warm-up in tokens, and one that names the part of it that found no room
        ("device", r"[Nn]ot enough memory to handle \d[\d,]{0,12} (?:total |prefill |batch )?tokens|creation failed due to insufficient (?:GPU|device) memory"),
        ("driver", r"CUDA driver error: out of memory|CUDA_ERROR_OUT_OF_MEMORY|CUDA Error: out of memory at "),
        ("cuda", r"CUDA error: out of memory|cudaErrorMemoryAllocation"),
    )
)  # fmt: skip

# Any other allocator: a device is named, and an allocation of memory is said to have failed. Names are those of runtimes and
# their handles; a code such as OUT_OF_DEVICE_MEMORY names the device itself.
_DEVICES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("hip", regex(r"(?i)\bhip|rocm|\bhsa")),
    ("cuda", regex(r"(?i)cuda|\bcuMem\w*|nvinfer|\bnccl|\bcub(?:las)?\b")),
    ("hpu", regex(r"(?i)habana|synhelper|\bsyn[A-Z]|\bhpu")),
    ("npu", regex(r"(?i)\bnpu|ascend|\bacl(?:rt)?[A-Z]|DeviceMemory\]")),
    ("vulkan", regex(r"(?i)vulkan|\bvk::|\bVK_")),
    ("metal", regex(r"(?i)metal\b|\bMTL\w*|kIOGPU")),
    ("xpu", regex(r"(?i)\bxpu|sycl|level.?zero|opencl|\bCL_")),
    ("xla", regex(r"(?i)\bHBM|\btpu|RESOURCE.EXHAUSTED|\bxla")),
    ("device", regex(r"(?i)\b(?:gpu|vram|dram|device)\b|DeviceMemory")),
)
_FAILED = regex(
    r"(?:\b(?:[Ee]rror|ERROR|[Ff]ailed|[Ff]ailure|FATAL|[Ee]xception|Error \d+)\b|\w{1,40}(?:Error|_FATAL)\b).{0,200}?\b[Oo]ut [Oo]f (?:\w+ )?[Mm]emory\b"
    r"|(?:OutOf(?:Device)?Memory|(?<=[A-Z]_)OUT_OF_MEMORY|OUT_OF_DEVICE_MEMORY)(?!Error)"
    r"|\b(?:[Ee]rror|ERROR|[Ff]ail(?:ed|ure)|[Ss]tatus|[Cc]ode)\b.{0,80}?\bOUT_OF_MEMORY\b"  # alone it is the state that a batch system gives to a job whose host ran out
    r"|(?:[Ff]ailed|[Uu]nable) to allocate (?:[^,;:]{0,60}?(?:[Mm]emory|buffer|workspace|bytes)\b|[\d.]{1,12} ?[KMGT](?:i?B)?\b)"
    r"|\b[Aa]llocation of (?:size )?[^,;]{0,40}?failed|[Mm]emory allocation failed|[Nn]ot enough (?:space|memory) to allocate"
    r"|Insufficient Memory \(|[Mm]emory resources are exhausted"
    r"|[Aa]ttempting to (?:allocate|reserve) .{0,60}(?:not possible|greater than|exceed)"
)
_HEDGED = regex(
    r"(?i)\b(?:may|might|could|would|can|to (?:avoid|prevent)|avoid|prevents?|in case|unless|without|if you|when you)\b[^.;]{0,60}(?:out of memory|fail)"
    r"|not a failure|will (?:be )?retr|falling back|retrying"
)
_ON_HOST = regex(
    r"(?i)CPU ?Allocator|\b(?:host|pinned|page-locked|system|CPU) (?:memory|buffer|RAM)|array with shape|/dev/shm|\bos error 12|errno[= ]12|bad_alloc|_host_malloc|java\.|heap space"
)


def _device_of(text: str) -> str | None:
    """Whose device memory an allocation failed in, by the words of any runtime; None where none failed or it was the host's."""
    if not _FAILED.search(text) or _HEDGED.search(text) or _ON_HOST.search(text):
        return None
    return next((name for name, words in _DEVICES if words.search(text)), None)


ANCHORS: tuple[str, ...] = tuple(read("errors")["device_memory"])
"""Literals of which one stands in every such message (see `ingest.base.Pattern` for what an anchor may hold)."""

# A message that speaks about memory without being a failure of this allocation
_NOT_AN_OOM = regex(
    r"(?:srun|slurmstepd|slurmd): |[\w.+-]{1,40}\|.*\bOUT_OF_ME|"  # what Slurm says of a job is of the host
    r".*\bNVRM: |"  # an assertion in the kernel's driver is of no allocation that a program asked for, or follows from one
    r"Search for `cudaErrorMemoryAllocation'|may cause OOM|OutOfResources|AlignedAllocator"
    r"|.*(?:[Ss]kipping tactic|due to insufficient memory on requested size|pinned memory|memory for batch_|this is not a failure|memory space (?:smem|vmem|cmem|sflag)|Exceeded (?:smem|vmem|cmem|scoped vmem) capacity|RESOURCE_EXHAUSTED: (?:[Qq]uota|.{0,60}(?:grpc|message larger|rate limit)))"
)

_FIELDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("requested_bytes", regex(r"[Tt]ried to allocate " + _SIZE + r"|(?:[Tt]rying to (?:allocate|map)|[Ff]ailed to allocate|[Oo]ut of memory allocating|\ballocating|[Rr]equested size was|GPU memory \(|[Aa]llocate memory size:?) ?" + _SIZE
                              + r"|Failed to (?:CUDA|HIP) calloc (?:async )?(\d+ bytes)|buffer of size (\d+)|Requested {1,24}: ?" + _SIZE + r"|[Aa]ttempting to (?:allocate|reserve) ([\d.]{1,12}[KMGT])\b|[Aa]llocation failed for size::(\d+)|[Aa]llocation of size ?:*(\d+)|\[size:(\d+)\]|[Ff]ailed to allocate [\d.]+[KMGT] \((\d+ bytes)\)|to allocate (\d+) B\b|[Aa]ttempting to allocate (\d+ bytes)|aclrtMalloc.{0,60}size[ :=]+(\d+)|\bhbm\. Used ([\d.]{1,12}[KMGT]) of [\d.]{1,12}[KMGT] hbm")),
    ("total_bytes", regex(r"[Tt]otal (?:GPU|device) memory: " + _SIZE + r"|HBM capacity ([\d.]{1,12}[KMGT])\b|total capaci?ty (?:of |: ?)" + _SIZE + r"|" + _SIZE + r" total capacity|[Ff]ree: ?[\d.]+ ?\w*, ?total: ?(\d+)(?! ?[KMGT]i?B)|[Ff]ree: ?[\d.]+ ?\w*, ?total: ?" + _SIZE + r"|max allowed: " + _SIZE + r"|of ([\d.]{1,12}[KMGT]) hbm|limit set to: " + _SIZE + r"|Device limit {1,24}: ?" + _SIZE)),
    ("free_bytes", regex(r"[Ff]ree (?:GPU|device) memory\b[^:]{0,60}: " + _SIZE + r"|of which " + _SIZE + r" is free|; " + _SIZE + r" free\b|free: " + _SIZE + r"|\b[Ff]ree: ?(\d+)|There are ([\d.]{1,12}[KMGT]) free|Free \(according to CUDA\): ?" + _SIZE)),
    ("this_process_bytes", regex(r"this process has " + _SIZE)),
    ("allocated_bytes", regex(_SIZE + r" is allocated by PyTorch|(?<!un)allocated by PyTorch: " + _SIZE + r"|" + _SIZE + r" already allocated|Currently allocated {1,24}: ?" + _SIZE + r"|Currently allocated: {1,9}([\d.]{1,12}[KMGT])\b")),
    ("private_pool_bytes", regex(_SIZE + r" allocated in private pools")),
    ("unallocated_bytes", regex(_SIZE + r" is reserved by PyTorch but unallocated|reserved by PyTorch but unallocated: " + _SIZE)),
    ("allowed_bytes", regex(_SIZE + r" allowed;")),
    ("reserved", regex(_SIZE + r" (?:reserved in total by PyTorch|cached\))")),
)  # fmt: skip
_OTHERS = regex(r"Process(?: \d+)? has " + _SIZE + r" memory in use")
_DEVICE = regex(
    r"\bGPU (\d+)\b|\(GPU (\d+);|\bon device (\d+)|NPU (\d+)|\bGPU_(\d+)_bfc|\bCUDA(\d+) buffer|\bXPU (\d+)"
)
_COMPLETE = regex(
    r"is reserved by PyTorch but unallocated|reserved in total by PyTorch|total: \d|HBM capacity|Free GPU memory"
)
_UNIT_BEFORE = regex(r" \(([KMGT]i?B)\): ?(\d[\d.,]{0,24})")
"""`Total GPU memory (GiB): 79.1`: the unit with the name, as in the header of a table."""
_GOES_ON = phrases(
    "ried to allocate|OOM on device|would exceed allowed memory|due to insufficient|That was not possible"
)


def wants_more(text: str) -> bool:
    """Whether the books seem to go on in the next line (wrapped text)."""
    return any(words in text for words in _GOES_ON) and not _COMPLETE.search(text)


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
    allocator = next((name for name, pattern in _ALLOCATORS if pattern.search(text)), None) or _device_of(text)
    if allocator is None:
        return None
    row: dict[str, Any] = {"allocator": allocator, "text": text[:600]}
    text = _UNIT_BEFORE.sub(r": \2 \1", text)
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
