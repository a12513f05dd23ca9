"""Torch's allocator: its segments, a row each, as somebody wrote them out of a snapshot, and what it holds from step to step."""

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
        "segment.active", "allocator_segment", "active_bytes", "bytes",
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
        "heap.reserved", "allocator_stat", ":reserved_bytes", "bytes",
        strong="torch reserved, reserved by torch, reserved by pytorch, pytorch reserved, cuda reserved, pool reserved, allocator reserved, memory reserved, reserved mem, reserved memory, max reserved",
        weak="reserved, pool held, cached",
        exact="reserved_gib, reserved_mib, reserved_gb, reserved_mb, reserved_bytes, torch.cuda.memory_reserved",
        high=_MOST,
        samples=(("torch_reserved_gib", "14.5", int(14.5 * GIB)), ("reserved_mib", "512", 512 * MIB)),
        not_names=("reserved blocks",),
    ),
    Quantity(
        "heap.allocated", "allocator_stat", ":allocated_bytes", "bytes",
        strong="torch allocated, allocated by torch, allocated by pytorch, pytorch allocated, cuda allocated, torch live, live tensor, live bytes, pool live, memory allocated, allocated mem, allocated memory, max allocated",
        weak="allocated, live, active, in use",
        exact="allocated_gib, allocated_mib, allocated_gb, allocated_mb, allocated_bytes, torch.cuda.memory_allocated",
        high=_MOST,
        samples=(("torch_live_gib", "9.5", int(9.5 * GIB)), ("allocated_mib", "512", 512 * MIB)),
        not_names=("allocated ports",),
    ),
)  # fmt: skip
