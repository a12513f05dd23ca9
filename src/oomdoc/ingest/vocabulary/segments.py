"""torch's allocator: its segments, a row each, as somebody wrote them out of a snapshot; and its books over time, a row for each moment."""

from __future__ import annotations

from oomdoc.ingest.vocabulary.quantity import Quantity

_MOST = 64 << 40

QUANTITIES = (
    Quantity(
        "segment.gap", "allocator_segment", "largest_free_bytes", "bytes",
        strong="largest inactive block, largest free block, largest gap, largest hole, largest free piece, largest inactive, biggest hole, biggest gap, biggest free block, max gap, max free block, largest unused block",
        weak="largest free, max free, largest, biggest",
        high=_MOST,
    ),
    Quantity(
        "segment.total", "allocator_segment", "total_bytes", "bytes",
        strong="segment size, segment bytes",
        weak="total, size, reserved, total size",
        high=_MOST,
    ),
    Quantity(
        "segment.active", "allocator_segment", "allocated_bytes", "bytes",
        strong="active bytes",
        weak="active, allocated, in use, used, live",
        high=_MOST,
    ),
    Quantity(
        "segment.inactive", "allocator_segment", "inactive_bytes", "bytes",
        strong="inactive, inactive bytes, inactive split, free inside, free in segment",
        weak="free, unused, holes, gaps, idle",
        high=_MOST,
    ),
    Quantity(
        "allocator.allocated", "allocator_stat", ":allocated_bytes", "bytes",
        strong="allocated bytes, live bytes, mem allocated, live mem, torch allocated, allocated live, allocated by torch, allocated by pytorch, pytorch allocated, cuda allocated, torch live, live tensor, pool live, memory allocated, allocated mem, allocated memory, max allocated",
        weak="allocated, live, active, in use",
        exact="allocated_gib, allocated_mib, allocated_gb, allocated_mb, allocated_bytes, torch.cuda.memory_allocated",
        high=_MOST,
    ),
    Quantity(
        "allocator.reserved", "allocator_stat", ":reserved_bytes", "bytes",
        strong="reserved bytes, mem reserved, torch reserved, cached by torch, reserved by torch, reserved by pytorch, pytorch reserved, cuda reserved, pool reserved, allocator reserved, memory reserved, reserved mem, reserved memory, max reserved",
        weak="reserved, pool held, cached",
        exact="reserved_gib, reserved_mib, reserved_gb, reserved_mb, reserved_bytes, torch.cuda.memory_reserved",
        high=_MOST,
    ),
    Quantity(
        "allocator.split", "allocator_stat", ":inactive_split_bytes", "bytes",
        strong="inactive split, inactive split bytes, split inactive bytes, inactive in split",
        weak="holes, unallocated, reserved unallocated",
        high=_MOST,
    ),
    Quantity(
        "allocator.gap", "allocator_stat", ":largest_free_bytes", "bytes",
        strong="largest inactive block, largest free block, largest gap, largest hole, largest free piece, biggest hole, biggest free block, max free block, largest unused block",
        high=_MOST,
    ),
    Quantity(
        "allocator.retries", "allocator_stat", ":num_alloc_retries", "count",
        strong="alloc retries, alloc retry, retries alloc, allocation retries, cache flush, cache flushes",
        weak="retries",
        high=1e12,
    ),
    Quantity(
        "allocator.ooms", "allocator_stat", ":num_ooms", "count",
        strong="num ooms, alloc ooms, oom count",
        weak="ooms, oom",
        high=1e9,
    ),
)  # fmt: skip
