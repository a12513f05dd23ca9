"""Memory of the host that could not be had, page-locked or not, and what the kernel says of free pieces."""

from __future__ import annotations

import re

from oomdoc.ingest.base import TEXT_CAP, Pattern, Row, pattern, phrases
from oomdoc.ingest.host_events.rows import SIZE, event, fact
from oomdoc.ingest.host_events.shared_memory import SHM_NAME


def _blocks(row: Row, match: re.Match[str]) -> Row | None:
    counts = match["counts"].split() if match["counts"] else re.findall(r"(\d+)\*", match["blocks"])
    return {"topic": "free-blocks", "text": " ".join(counts)}


def _compactions(row: Row, match: re.Match[str]) -> Row | None:
    return {"topic": "compaction", "text": match["text"], "value": float(match["value"])}


def _no_memory(row: Row, match: re.Match[str]) -> Row | None:
    return {"kind": "memory", "text": match.string.strip()[:TEXT_CAP]}


# "Cannot allocate memory" of a network card's registration limit, of a device, or in a line of source
_NOT_HOST = (
    r"\bibv_|\bmlx\d|RDMA|rdma|[Ii]nfini[Bb]and|DefaultCPUAllocator|cudaErrorMemoryAllocation|CUDA error|\bcuMem\w+ failed"
    rf"|^\s*(?:raise|except|if|#|>>>|//|catch)\b|{SHM_NAME}"
)
PATTERNS: tuple[Pattern, ...] = (
    pattern(
        "pinned-alloc-failed", "cuda",
        phrases(
            "pinned|pin_memory|HostAlloc|HostRegister|HostMalloc|MallocHost|num_cpu_blocks|register ptr|"
            "nable to pin|ailed to pin"
        ),
        (
            r"(?:[Pp]inned (?:host )?(?:memory|pool)|pin_memory|cudaHost(?:Alloc|Register)|num_cpu_blocks)"
            r"(?:[^\n]{0,2000}?CUDA error: (?:invalid argument|out of memory)"
            rf"|\W{{1,3}}failed|[^\n]{{0,60}}needs ~?(?P<size>{SIZE}) but only (?P<limit>{SIZE}) of RAM)",
            rf"(?:[Ff]ailed|[Uu]nable) to allocate (?P<size2>{SIZE}) (?:of )?(?:pinned|page-locked) memory",
            r"_allocate_kv_cache\(\s*self\.num_cpu_blocks",  # a frame of the CPU half of the cache
            # any runtime's call for page-locked memory
            r"\b(?:cuda|hip|cuMem|acl\w{0,3}|rt)(?:Host(?:Alloc|Register|Malloc)|MallocHost)\w{0,20}(?:\(\))?:? (?:has )?failed\b(?:[^\n]{0,40}?\b(?:size[:= ]{1,3}|for )(?P<size3>\d{4,15}\b))?",
            r"\bregister (?:host )?ptr failed|\b(?:[Uu]nable|[Ff]ailed) to pin (?:host |CPU )?memory",
        ),
        event("pinned-alloc-failed"),
        ("ggml_cuda_host_malloc: failed to allocate 2048.00 MiB of pinned memory: out of memory", {"bytes": 2 << 30}),
        ("pinned host pool needs ~96 GiB but only 60 GiB of RAM is available.", {"bytes": 96 << 30, "limit_bytes": 60 << 30}),
        ("torch.zeros(shape, pin_memory=True) RuntimeError: CUDA error: invalid argument", {"bytes": None}),
        ("hipHostRegister failed, size=5368709120", {"bytes": 5 << 30}),
    ),
    pattern(
        "pinned-alloc", "cuda", ("pinned memory", "pin_memory", "cpu_memory(", "host_memory(", "cpu_buffer(", "host_buffer("),
        # the others: a line of a program, as a stack prints it
        (
            r"CPU cache blocks, pinned memory(?![^\n]{0,2000}CUDA error)",
            r"(?:^|[\s,(])pin_memory=(?!False|\"|')[\w.]+(?:\(\))?[,)](?![^\n]{0,2000}CUDA error)|\)\.pin_memory\(\)\s*$",
            r"(?:^|[\s=.])_?alloc(?:ate)?_(?:pinned_)?(?:cpu|host)_(?:memory|buffer)\((?![^\n]{0,2000}CUDA error)",
        ),
        fact("pinned-alloc"),
        "    self.staging = alloc_host_buffer(total_bytes)",
        "    size, dtype=torch.uint8, device='cpu', pin_memory=is_pin_memory_available())",
        "    host = torch.empty(shape, dtype=dtype).pin_memory()",
        ("CPU cache blocks, pinned memory, alloc_shape=(2, 100, 16, 2, 64)", {"value": None}),
    ),
    pattern(
        "cpu-allocator", "torch", ("DefaultCPUAllocator",),
        (r"DefaultCPUAllocator: (?:can.t allocate|not enough) memory: you tried to allocate (?P<size>\d+) bytes",),
        event("host-alloc-failed"),
        (
            "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
            "allocate 90000 bytes. Error code 12 (Cannot allocate memory)",
            {"bytes": 90000},
        ),
    ),
    pattern(
        "host-alloc-failed", "libc",
        phrases(
            "std::bad_alloc|Cannot allocate memory|MemoryError|memory allocation of|host memory|CPU memory|"
            "system memory|host RAM"
        ),
        (
            r"\bstd::bad_alloc\b",
            r"Cannot allocate memory",
            r"(?<![A-Za-z])_?(?:Array)?MemoryError"
            rf"(?:: Unable to allocate (?P<size>{SIZE}) for an array|:|$)",
            r"memory allocation of (?P<size2>\d+) bytes failed",
            rf"(?:[Ff]ailed|[Uu]nable) to allocate (?P<size3>{SIZE}) (?:of )?"
            r"(?:pinned |page-locked )?(?:host|CPU) memory",
            # of a pool that is to lie there: what is asked for stands behind it
            r"(?:[Nn]ot enough|[Ii]nsufficient) (?:free |available )?(?:host|CPU|system) (?:memory|RAM)\b"
            rf"(?:[^\n]{{0,60}}?\b(?:[Rr]equest\w*|[Nn]eed\w*|[Rr]equir\w*|[Aa]sk\w* for) (?P<size4>{SIZE}))?",
        ),
        event("host-alloc-failed", unless=_NOT_HOST),
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "OSError: [Errno 12] Cannot allocate memory",
        ("_ArrayMemoryError: Unable to allocate 1.50 GiB for an array with shape (1, 2)", {"bytes": 3 << 29}),
        ("memory allocation of 4096 bytes failed", {"bytes": 4096}),
        ("MemoryError", {"bytes": None}),
        ("ValueError: Not enough host memory for the pool: requesting 24.00 GiB, 9.10 GiB are free", {"bytes": 24 << 30}),
        ("RuntimeError: insufficient system memory", {"bytes": None}),
    ),
    pattern(
        "swap-space", "vllm", ("Too large swap space",),
        (rf"Too large swap space\. (?P<size>{SIZE}) out of the (?P<limit>{SIZE}) total CPU memory",),
        event("swap-space"),
        ("ValueError: Too large swap space. 36.00 GiB out of the 48.00 GiB total CPU memory is allocated for it", {"bytes": 36 << 30, "limit_bytes": 48 << 30}),
        versions="0.1.7 – 0.17.1",
    ),
    pattern(
        "swap-space-warning", "vllm", ("too large swap space",),
        (rf"Possibly too large swap space\. (?P<size>{SIZE}) out of the {SIZE} total CPU memory",),
        fact("swap-space"),
        ("Possibly too large swap space. 24.00 GiB out of the 48.00 GiB total CPU memory is allocated for the swap", {"value": 24 << 30}),
        versions="0.1.7 – 0.17.1",
    ),
    pattern(
        "cpu-pool-default", "vllm", ("VLLM_CPU_KVCACHE_SPACE",),
        (r"VLLM_CPU_KVCACHE_SPACE \(Gi?B\) for CPU backend is not set, using (?P<size>\d{1,4}) by default",),
        fact("cpu-pool-default", lambda match: int(match["size"]) << 30),
        ("Environment variable VLLM_CPU_KVCACHE_SPACE (GiB) for CPU backend is not set, using 4 by default.", {"value": 4 << 30}),
        versions="0.4.1 →",
    ),
    pattern(
        # counts of free blocks by order, as the kernel lists them by itself or at a failure; `views/64_free_pieces.sql` weighs them
        "free-blocks", "kernel", ("zone ", "*4kB"),
        (
            r"^Node \d{1,3}, zone +(?:Normal|Movable) +(?P<counts>\d{1,9}(?: +\d{1,9}){8,14})(?!\d)",
            r"^Node \d{1,3} (?:Normal|Movable): (?P<blocks>\d{1,9}\*4kB .{20,300}?) = \d",
        ),
        _blocks,
        ("Node 0, zone   Normal  41022  5871  455  230  112  71  20  12  7  0  0", {"topic": "free-blocks", "text": "41022 5871 455 230 112 71 20 12 7 0 0"}),
        (
            "Node 1 Normal: 9011*4kB (UME) 803*8kB (UE) 70*16kB 1*32kB 0*64kB 0*128kB 0*256kB 0*512kB 0*1024kB 0*2048kB 0*4096kB = 43620kB",
            {"topic": "free-blocks", "text": "9011 803 70 1 0 0 0 0 0 0 0"},
        ),
        table="note",
    ),
    pattern(
        # /proc/vmstat
        "compactions", "kernel", ("compact_fail ", "compact_stall "),
        (r"^(?P<text>compact_(?:fail|stall)) +(?P<value>\d{1,15})\b",),
        _compactions,
        ("compact_fail 1350022", {"topic": "compaction", "text": "compact_fail", "value": 1350022.0}),
        table="note",
    ),
    pattern(
        "driver-no-memory", "kernel", ("NV_ERR_NO_MEMORY",),
        (r"NVRM: .{0,300}NV_ERR_NO_MEMORY",),
        _no_memory,
        ("NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x51)", {"kind": "memory"}),
        table="log_error",
    ),
)  # fmt: skip
