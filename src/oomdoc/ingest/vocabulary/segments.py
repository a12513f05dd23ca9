"""Segments of torch's allocator, a row each: what somebody wrote out of a memory snapshot."""

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
)  # fmt: skip
