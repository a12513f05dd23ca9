"""torch's allocator: its segments, a row each, as somebody wrote them out of a snapshot; and its books over time, a row for each moment."""

from __future__ import annotations

from oomdoc.ingest.vocabulary.quantity import Quantity
from oomdoc.units import GIB, MIB

_MOST = 64 << 40

QUANTITIES = (
    Quantity(
        "segment.gap", "allocator_segment", "largest_free_bytes", "bytes",
        strong="largest inactive block, largest free block, largest gap, largest hole, largest free piece, largest inactive, biggest hole, biggest gap, biggest free block, max gap, max free block, largest unused block",
        weak="largest free, max free, largest, biggest",
        high=_MOST,
        samples=(("largest_inactive_block_MiB", "236", 236 * MIB), ("largest free block", "743 MiB", 743 * MIB)),
        not_names=("largest request", "max memory"),
    ),
    Quantity(
        "segment.total", "allocator_segment", "total_bytes", "bytes",
        strong="segment size, segment bytes",
        weak="total, size, reserved, total size",
        high=_MOST,
        samples=(("segment_size", "2 GiB", 2 * GIB), ("total_MiB", "1280", 1280 * MIB)),
        not_names=("batch size",),
    ),
    Quantity(
        "segment.active", "allocator_segment", "allocated_bytes", "bytes",
        strong="active bytes",
        weak="active, allocated, in use, used, live",
        high=_MOST,
        samples=(("active_MiB", "954", 954 * MIB),),
        not_names=("active requests",),
    ),
    Quantity(
        "segment.inactive", "allocator_segment", "inactive_bytes", "bytes",
        strong="inactive, inactive bytes, inactive split, free inside, free in segment",
        weak="free, unused, holes, gaps, idle",
        high=_MOST,
        samples=(("inactive_MiB", "326", 326 * MIB), ("free_inside", "1 GiB", GIB)),
        not_names=("free ports",),
    ),
    Quantity(
        "allocator.allocated", "allocator_stat", ":allocated_bytes", "bytes",
        strong="allocated bytes, live bytes, mem allocated, live mem, torch allocated, allocated live, allocated by torch, allocated by pytorch, pytorch allocated, cuda allocated, torch live, live tensor, pool live, memory allocated, allocated mem, allocated memory, max allocated",
        weak="allocated, live, active, in use",
        exact="allocated_gib, allocated_mib, allocated_gb, allocated_mb, allocated_bytes, torch.cuda.memory_allocated",
        high=_MOST,
        samples=(("allocated_GiB", "58.1", round(58.1 * GIB)), ("live_bytes", 1024, 1024), ("torch_live_gib", "9.5", int(9.5 * GIB))),
        not_names=("allocated port",),
    ),
    Quantity(
        "allocator.reserved", "allocator_stat", ":reserved_bytes", "bytes",
        strong="reserved bytes, mem reserved, torch reserved, cached by torch, reserved by torch, reserved by pytorch, pytorch reserved, cuda reserved, pool reserved, allocator reserved, memory reserved, reserved mem, reserved memory, max reserved",
        weak="reserved, pool held, cached",
        exact="reserved_gib, reserved_mib, reserved_gb, reserved_mb, reserved_bytes, torch.cuda.memory_reserved",
        high=_MOST,
        samples=(("reserved_GiB", "70.02", round(70.02 * GIB)), ("reserviert_MiB", "512", 512 * MIB), ("torch_reserved_gib", "14.5", int(14.5 * GIB))),
        not_names=("reserved words",),
    ),
    Quantity(
        "allocator.split", "allocator_stat", ":inactive_split_bytes", "bytes",
        strong="inactive split, inactive split bytes, split inactive bytes, inactive in split",
        weak="holes, unallocated, reserved unallocated",
        high=_MOST,
        samples=(("inactive_split_GiB", "18.1", round(18.1 * GIB)), ("inaktiv_geteilt_MiB", "700", 700 * MIB)),
        not_names=("splits",),
    ),
    Quantity(
        "allocator.gap", "allocator_stat", ":largest_free_bytes", "bytes",
        strong="largest inactive block, largest free block, largest gap, largest hole, largest free piece, biggest hole, biggest free block, max free block, largest unused block",
        high=_MOST,
        samples=(("largest_free_block_MiB", "604", 604 * MIB), ("groesster_freier_block_MiB", "604", 604 * MIB)),
        not_names=("largest request",),
    ),
    Quantity(
        "allocator.retries", "allocator_stat", ":num_alloc_retries", "count",
        strong="alloc retries, alloc retry, retries alloc, allocation retries, cache flush, cache flushes",
        weak="retries",
        high=1e12,
        samples=(("alloc_retries", "411", 411), ("num_alloc_retries", 2, 2)),
        not_names=("http retries",),
    ),
    Quantity(
        "allocator.ooms", "allocator_stat", ":num_ooms", "count",
        strong="num ooms, alloc ooms, oom count",
        weak="ooms, oom",
        high=1e9,
        samples=(("num_ooms", "3", 3), ("oom_count", 3, 3)),
        not_names=("oom_score",),
    ),
)  # fmt: skip
