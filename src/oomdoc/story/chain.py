"""Why, as a chain of cause and effect in the numbers of this bundle: two to four links, each with the places it rests on.

A cause has a function that says what led to the failure; how it failed and what followed are said alike for all. A link stands
only where all of its numbers are known, and the numbers of one sentence come from one observation, one entry of the ledger or one
start. Without a function, or without its numbers, the strongest observations speak.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from oomdoc.model import Link
from oomdoc.story.links import how_it_failed, what_followed
from oomdoc.story.links_device import (
    from_edge,
    from_feature,
    from_graphs,
    from_leak,
    from_pieces,
    from_sequences,
    from_shared,
    from_spike,
    from_undersharded,
    from_uneven,
    from_weights,
)
from oomdoc.story.links_life import from_host, from_other, from_probe, from_segment, from_well
from oomdoc.story.links_pool import from_demand, from_length, from_low_budget
from oomdoc.story.seen import Seen

MOST_LINKS = 4
_LEADS = 3  # links before the failure and what followed
_SAYS_THE_FAILURE = frozenset(
    {
        "healthy",
        "not-memory",
        "probe-restart-loop",
        "host-memory-exhausted",
        "allocator-fragmentation",
        "kv-demand-exceeds-pool",
    }
)
"""Causes whose own links end with the failure."""


def chain(seen: Seen) -> tuple[Link, ...]:
    """From the cause to what it did, at most four links; empty where the report names no cause."""
    if not seen.cause or seen.first is None:
        return ()
    made = list(_BY_CAUSE.get(seen.cause, _nothing)(seen))
    if not made:
        # a sentence that repeats a stronger one, or that lacks its own figure, is no link
        told = [item for item in seen.first.evidence if item.weight > 0 and "unknown" not in item.says]
        made = [Link(item.says, item.refs[:2]) for item in told[:2] or seen.first.evidence[:1]]
    made = made[:_LEADS]
    if seen.cause not in _SAYS_THE_FAILURE and (failed := how_it_failed(seen)):
        made.append(failed)
    if (after := what_followed(seen)) is not None:
        made.append(after)
    return tuple(made[:MOST_LINKS])


def _nothing(_: Seen) -> Iterator[Link]:
    return iter(())


_BY_CAUSE: dict[str, Callable[[Seen], Iterator[Link]]] = {
    "allocator-fragmentation": from_pieces, "cuda-graph-overhead": from_graphs, "feature-overhead": from_feature, "gpu-shared": from_shared, "healthy": from_well, "host-memory-exhausted": from_host,
    "kv-demand-exceeds-pool": from_demand, "kv-pool-below-max-model-len": from_length, "max-num-seqs-too-high": from_sequences, "memory-leak": from_leak, "memory-utilization-edge": from_edge,
    "memory-utilization-too-low": from_low_budget, "not-memory": from_other, "prefill-activation-spike": from_spike, "probe-restart-loop": from_probe, "rank-imbalance": from_uneven, "shm-exhausted": from_segment,
    "tp-undersharded": from_undersharded, "weights-exceed-gpu": from_weights,
}  # fmt: skip
