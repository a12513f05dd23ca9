"""One moment added up: parts within their intervals, a remainder that is never negative, what is unusual about it.

Printed figures round, so their sum may pass the device by some of that: values then move inside their intervals until
they add up. Where no choice of values does, two sources contradict each other: both are named, and the parts that are not
of this moment's own source are taken out instead of being added to it.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass

from oomdoc.ledger.expectation import Expectation
from oomdoc.physics.interval import Interval
from oomdoc.physics.planning import non_torch_bytes
from oomdoc.units import GIB, MIB, show_bytes

PARTS = (
    "other_processes_bytes",
    "non_torch_bytes",
    "weights_bytes",
    "feature_bytes",
    "kv_pool_bytes",
    "cuda_graph_bytes",
    "activation_bytes",
    "allocator_slack_bytes",
    "free_bytes",
)
NAMES = {
    "other_processes_bytes": "held by other processes",
    "non_torch_bytes": "outside torch",
    "weights_bytes": "of weights",
    "feature_bytes": "of adapters or a draft model",
    "kv_pool_bytes": "of KV pool",
    "cuda_graph_bytes": "of CUDA graphs",
    "activation_bytes": "of activations",
    "allocator_slack_bytes": "reserved and not allocated",
    "free_bytes": "free",
}

TOLERANCE_BYTES = 64 * MIB  # free and held memory are read one after the other, and the driver keeps a little
UNUSUAL_FACTOR = 1.5  # planning figures are ranges of judgement: half as much again is still within them
UNUSUAL_BYTES = 0.5 * GIB  # less than that above its range never decided a case
_MOST_OUTSIDE = 1.5 * GIB  # what one process holds outside torch on the cards read, collectives included


@dataclass(frozen=True)
class Figure:
    """One figure: its value, the values that its rounding or its source allows, and its place ("": computed)."""

    value: float
    interval: Interval
    ref: str


@dataclass(frozen=True)
class Account:
    """The closed account. `values` are the parts as numbers, `intervals` the same (and `total_bytes`) between their bounds.

    `unexplained_bytes` is total less all parts, never negative; None where what is free is not known, since then it would
    be an invention. `unusual` are sentences about parts that are larger than such a server's usually are.
    """

    moment: str
    device: str | None
    total_bytes: int | None
    values: Mapping[str, int]
    intervals: Mapping[str, Interval]
    unexplained_bytes: int | None
    closes: bool | None
    contradictions: tuple[str, ...]
    refs: tuple[str, ...]
    kv_bytes_per_token: float | None
    unusual: tuple[str, ...] = ()


def add_up(
    moment: str, device: str | None, total: Figure | None, given: Mapping[str, Figure], said: Sequence[str], expected: Expectation | None,
    per_token: float | None, *, whole: bool, short: float = 0.0, own: Sequence[str] = (),
) -> Account:  # fmt: skip
    """The account of these parts. `own` are those of the moment's own source: where two exclude each other they stay.

    `whole`: the large parts are known, so that a remainder says something. `short` is by how much the engine's own plan is
    overdrawn.
    """
    parts: MutableMapping[str, Figure] = dict(given)
    found = list(said)
    unusual = [*_unusual(moment, parts, expected)]
    if short > 0:
        unusual.append(f"{show_bytes(short)} less than nothing is left for KV ({parts['kv_pool_bytes'].ref})")
    overdrawn = 0.0
    if total is not None and moment == "plan":
        overdrawn = sum(figure.interval.lo for figure in parts.values()) - total.interval.hi
        if overdrawn > TOLERANCE_BYTES:
            unusual.append(
                f"the plan wants {show_bytes(overdrawn)} more than the {show_bytes(total.value)} of the device"
            )
            parts.pop("free_bytes", None)  # nothing is left outside of such a plan, and no choice of values adds up
    elif total is not None:
        _make_room(moment, total, parts, found, own)
    values = {name: round(parts[name].value) for name in PARTS if name in parts}
    intervals = {name: parts[name].interval for name in PARTS if name in parts}
    unexplained = None
    closes: bool | None = False if found or overdrawn > TOLERANCE_BYTES else None
    if total is not None:
        intervals["total_bytes"] = total.interval
        if "free_bytes" in values:
            unexplained = _fitted(round(total.value), values, intervals)
            rest = total.interval
            for name in values:
                rest = rest - intervals[name]
            if found or whole:
                most = _untold(values, expected)
                closes = not found and rest.hi >= -TOLERANCE_BYTES and rest.lo <= most
                if whole and moment != "plan" and rest.lo > most + UNUSUAL_BYTES:
                    unusual.append(
                        f"{show_bytes(rest.lo)} in use that no line tells of; up to {show_bytes(most)} is usual"
                    )
    refs = [
        parts[name].ref
        for name in ("free_bytes", "weights_bytes", "kv_pool_bytes", "cuda_graph_bytes")
        if name in parts
    ]
    return Account(
        moment, device, round(total.value) if total else None, values, intervals, unexplained, closes, tuple(found),
        tuple(dict.fromkeys(ref for ref in refs if ref)), per_token, tuple(unusual),
    )  # fmt: skip


def _make_room(
    moment: str, total: Figure, parts: MutableMapping[str, Figure], said: list[str], own: Sequence[str]
) -> None:
    """Take out what is more than the device has beside the moment's own figures, largest first, and say so."""

    def beyond() -> float:
        return sum(figure.interval.lo for figure in parts.values()) - total.interval.hi

    if beyond() <= TOLERANCE_BYTES:
        return
    told = " and ".join(
        f"{show_bytes(figure.value)} {NAMES[name]} ({figure.ref or 'computed'})"
        for name, figure in sorted(parts.items(), key=lambda item: -item[1].value)[:3]
    )
    if not said:
        said.append(
            f"at the moment '{moment}' {told} are more than the {show_bytes(total.value)} of the device ({total.ref})"
        )
    for name in sorted(set(parts) - set(own), key=lambda name: -parts[name].value):
        del parts[name]
        if beyond() <= TOLERANCE_BYTES:
            return
    for name in sorted(parts, key=lambda name: -parts[name].value):
        if beyond() <= TOLERANCE_BYTES:
            return
        del parts[name]


def _fitted(total: int, values: dict[str, int], intervals: Mapping[str, Interval]) -> int:
    """What is left over; where the values pass the total, the widest move down inside their intervals until nothing does."""
    over = sum(values.values()) - total
    by_width = sorted(values, key=lambda name: (intervals[name].lo - intervals[name].hi, name))
    for name in by_width:
        if over <= 0:
            break
        give = min(over, values[name] - max(0, round(intervals[name].lo)))
        if give > 0:
            values[name] -= give
            over -= give
    for name in ("free_bytes", *by_width):  # what is free and what is held are read one after the other
        if over <= 0:
            break
        give = min(over, values[name])
        values[name] -= give
        over -= give
    return total - sum(values.values())


def _untold(values: Mapping[str, int], expected: Expectation | None) -> float:
    """The most that the parts which nobody told are expected to take."""
    high = float(TOLERANCE_BYTES)
    for name in ("non_torch_bytes", "activation_bytes", "cuda_graph_bytes"):
        if name in values:
            continue
        if expected is not None and name in expected.parts:
            high += expected.parts[name].hi
        elif name == "non_torch_bytes":
            high += non_torch_bytes(2).hi
    if "allocator_slack_bytes" not in values and expected is not None and "activation_bytes" in expected.parts:
        high += expected.parts["activation_bytes"].hi  # what profiling freed stays reserved
    return high


def _unusual(moment: str, parts: Mapping[str, Figure], expected: Expectation | None) -> tuple[str, ...]:
    """Parts well above what such a server's take, each with what is usual; nothing about parts that are plans themselves."""
    found = []
    for name in ("non_torch_bytes", "cuda_graph_bytes", "activation_bytes", "other_processes_bytes"):
        figure = parts.get(name)
        if figure is None or moment == "plan" or not figure.ref:
            continue
        usual = expected.parts.get(name) if expected else None
        if name == "other_processes_bytes":
            usual = Interval(0, 0, "assumed")
        elif usual is None and name == "non_torch_bytes":
            usual = Interval(0, _MOST_OUTSIDE, "planning figure")
        if usual is not None and figure.interval.lo > UNUSUAL_FACTOR * usual.hi + UNUSUAL_BYTES:
            most = f"up to {show_bytes(usual.hi)} is usual" if usual.hi else "a server has its device alone by plan"
            found.append(f"{show_bytes(figure.value)} {NAMES[name]} ({figure.ref}): {most}")
    return tuple(found)
