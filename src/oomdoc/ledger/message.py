"""The books of an allocator's message, and how its live tensors are shared out among weights, pool and activations."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from dataclasses import dataclass

from oomdoc.ledger.closing import TOLERANCE_BYTES, Figure
from oomdoc.physics.interval import Interval, point
from oomdoc.units import GIB, KIB, MIB, show_bytes

_BEFORE_WEIGHTS = ("init", "load")
_BEFORE_POOL = ("profile", "graph-profile", "kv-plan")

LEAST_WEIGHTS = 0.1  # share of the live tensors: weights below that are in another unit

Believes = Callable[[Interval], bool]
"""Whether so many live bytes can be activations, beside the weights and pool that were taken off."""


@dataclass(frozen=True)
class Message:
    """The books of an allocator's message; None = its wording does not say."""

    ref: str
    device: str | None = None
    total_bytes: Interval | None = None
    free_bytes: Interval | None = None
    this_process_bytes: Interval | None = None
    other_processes_bytes: Interval | None = None
    allocated_bytes: Interval | None = None
    private_pool_bytes: Interval | None = None
    unallocated_bytes: Interval | None = None


def torch_printed(size: float) -> Interval:
    """The sizes that torch prints like this one: two digits of GiB, MiB or KiB, whole bytes below.

    >>> torch_printed(1.54 * GIB).lo < 1.536 * GIB < 1.544 * GIB < torch_printed(1.54 * GIB).hi, torch_printed(512).exact
    (True, True)
    """
    for unit in (GIB, MIB, KIB):
        if size >= unit:
            return Interval(size - 0.005 * unit, size + 0.005 * unit, "logged")
    return point(size, "logged")


def share_moves(most: float, believed: bool) -> Believes:
    """Live tensors up to `most` bytes are activations; any number where the plan shows that weights and pool are sound."""
    return lambda rest: believed or rest.lo <= most


def at_failure(
    message: Message, parts: MutableMapping[str, Figure], phase: str | None, believes: Believes, said: list[str]
) -> tuple[str, ...]:
    """Put the message's own books over the figures of the start, share out its live tensors, and name what it told itself.

    Parts that cannot stand beside the message's are taken out: what capture took outside of torch is in the process's
    memory outside torch, and a pool that was not made yet is none.
    """
    own: list[str] = []

    def put(name: str, interval: Interval | None) -> None:
        if interval is not None:
            parts[name] = Figure(max(0.0, interval.middle), interval.at_least(0), message.ref)
            own.append(name)

    parts.pop("activation_bytes", None)
    put("free_bytes", message.free_bytes)
    put("other_processes_bytes", message.other_processes_bytes)
    put("allocator_slack_bytes", message.unallocated_bytes)
    if message.allocated_bytes is not None and message.unallocated_bytes is not None and message.this_process_bytes:
        outside = message.this_process_bytes - message.allocated_bytes - message.unallocated_bytes
        if outside.hi < -TOLERANCE_BYTES:
            said.append(
                f"torch has reserved {show_bytes(-outside.middle)} more than its process holds, by one message ({message.ref})"
            )
        parts.pop("non_torch_bytes", None)
        if outside.hi >= 0:
            put("non_torch_bytes", outside)
    if message.private_pool_bytes is not None:
        put("cuda_graph_bytes", message.private_pool_bytes)
    elif message.allocated_bytes is not None:
        parts.pop("cuda_graph_bytes", None)  # in the live tensors and outside torch, and nobody says how much of each
    if message.allocated_bytes is None:
        return tuple(own)
    live = message.allocated_bytes - (message.private_pool_bytes or point(0, "logged"))
    weights, features, pool = (parts.get(name) for name in ("weights_bytes", "feature_bytes", "kv_pool_bytes"))
    if phase in _BEFORE_WEIGHTS:
        for name in ("kv_pool_bytes", "feature_bytes"):
            parts.pop(name, None)
        put("weights_bytes", live)
        return tuple(own)
    taken = [figure for figure in (weights, features) if figure is not None]
    if weights is None:
        if phase in _BEFORE_POOL or phase == "kv-alloc":
            parts.pop("kv_pool_bytes", None)
        return tuple(own)
    rest = live
    for figure in taken:
        rest = rest - figure.interval
    if phase in _BEFORE_POOL:
        parts.pop("kv_pool_bytes", None)
    elif phase == "kv-alloc" and pool is not None and rest.hi >= 0 and rest.middle < pool.value:
        put("kv_pool_bytes", rest)  # so much of it had been made
        return tuple(own)
    elif pool is not None:
        rest, taken = rest - pool.interval, [*taken, pool]
    else:
        return tuple(own)
    if rest.hi < -TOLERANCE_BYTES:
        names = " and ".join(f"{show_bytes(figure.value)} ({figure.ref or 'by the model'})" for figure in taken)
        said.append(
            f"weights and pool, {names}, are {show_bytes(-rest.middle)} more than torch had allocated ({message.ref}), private "
            "pools left out"
        )
    elif believes(rest) or (phase in _BEFORE_POOL and weights.value >= LEAST_WEIGHTS * live.hi):
        # before the pool is made there is nothing else, however large the images of a trial run are
        put("activation_bytes", rest)
    return tuple(own)
