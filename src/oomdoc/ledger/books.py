"""The account of one rank: what was read becomes parts, a remainder, and sentences about what cannot both be true.

An account speaks of one moment. At a failure the allocator's message holds the books of the whole device: total, free,
others, this process, allocated, private pools, unallocated. Live tensors are then shared out: weights and pool as the
engine printed them, activations what is left. A device tool's snapshot gives what is free while the server runs; without
either only the figures of the start are known. A second account checks the first: the engine's plan, utilization x total
less weights and pool, has to leave what activations and memory outside torch take.

Pure: nothing here reads a table. Sizes are bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from oomdoc.ledger.expectation import Expectation
from oomdoc.physics.interval import Interval, point
from oomdoc.physics.planning import non_torch_bytes
from oomdoc.units import GIB, KIB, MIB, show_bytes

PARTS = (
    "other_processes_bytes",
    "non_torch_bytes",
    "weights_bytes",
    "kv_pool_bytes",
    "cuda_graph_bytes",
    "activation_bytes",
    "allocator_slack_bytes",
    "free_bytes",
)

TOLERANCE_BYTES = 64 * MIB  # free and held memory are read one after the other, and the driver keeps a little
FAR_WEIGHTS = 0.10  # loaded weights this far from the counted ones want an explanation: counts agree to 1 %
FAR_KV = 0.005  # likewise the bytes of a token: published logs agree to 0.2 %
MOST_TRANSIENT = 0.25  # share of a device: more than a step of any published log took without a picture in it
_BEFORE_WEIGHTS = ("init", "load")
_BEFORE_POOL = ("profile", "graph-profile", "kv-plan")


@dataclass(frozen=True)
class Figure:
    """One printed figure: its value, the values that its rounding allows, and its place."""

    value: float
    interval: Interval
    ref: str


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


@dataclass(frozen=True)
class Snapshot:
    """What a device tool showed while the server ran; `other_processes_bytes` None = no list of processes."""

    ref: str
    device: str
    total_bytes: Interval
    used_bytes: Interval
    other_processes_bytes: Interval | None = None


@dataclass(frozen=True)
class Rank:
    """Everything that was read about one rank. `figures` are the engine's by name, `phase` that of the failure.

    `alone`: one rank, no draft model, so that one name has one value. `pool_by_hand`: blocks were set by hand, and the
    bytes for KV are no measure of the pool.
    """

    figures: Mapping[str, tuple[Figure, ...]] = field(default_factory=dict)
    message: Message | None = None
    snapshot: Snapshot | None = None
    phase: str | None = None
    utilization: float | None = None
    alone: bool = True
    pool_by_hand: bool = False
    pool_tokens: int | None = None
    block_tokens: int | None = None
    graphs_planned: bool | None = None
    others_planned: bool = False
    expected: Expectation | None = None


@dataclass(frozen=True)
class Account:
    """The closed account. `values` are the parts as numbers, `intervals` the same (and `total_bytes`) between their bounds.

    `unexplained_bytes` is total less all parts; None where what is free is not known, since then it would be an invention.
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


def torch_printed(size: float) -> Interval:
    """The sizes that torch prints like this one: two digits of GiB, MiB or KiB, whole bytes below.

    >>> round((torch_printed(1.54 * GIB).hi - torch_printed(1.54 * GIB).lo) / GIB, 6), torch_printed(512).exact
    (0.01, True)
    """
    for unit in (GIB, MIB, KIB):
        if size >= unit:
            return Interval(size - 0.005 * unit, size + 0.005 * unit, "logged")
    return point(size, "logged")


def close(rank: Rank) -> Account:
    """The account of one rank."""
    said: list[str] = []
    weights = _largest(rank, "weights_bytes")
    pool = _pool(rank)
    graphs = _largest(rank, "graph_bytes", "graph_actual_bytes")
    total = _total(rank, said)
    _same(rank, "weights_bytes", "weights", said)
    parts: dict[str, Figure] = {}
    message = rank.message
    moment = "start"
    device = None
    for name, figure in (
        ("weights_bytes", weights),
        ("kv_pool_bytes", pool),
        ("cuda_graph_bytes", graphs),
        ("activation_bytes", _largest(rank, "activation_bytes")),
        ("non_torch_bytes", _largest(rank, "non_torch_bytes")),
    ):
        if figure is not None and not (name == "non_torch_bytes" and figure.value < 0):
            parts[name] = _not_negative(figure)
    planned = _plan(rank, total, weights, said)
    if message is not None and (message.total_bytes or message.free_bytes):
        moment, device = "failure", message.device
        _at_failure(rank, message, parts, planned, said)
    elif rank.snapshot is not None and total is not None:
        moment, device = "snapshot", rank.snapshot.device
        _in_snapshot(rank.snapshot, total, parts)
    per_token = _per_token(rank, pool, said)
    _against_expected(rank, weights, said)
    values = {name: round(parts[name].value) for name in PARTS if name in parts}
    intervals = {name: parts[name].interval for name in PARTS if name in parts}
    unexplained = None
    closes: bool | None = False if said else None
    if total is not None:
        intervals["total_bytes"] = total.interval
        if "free_bytes" in values:
            unexplained = round(total.value) - sum(values.values())
            rest = total.interval
            for name in values:
                rest = rest - intervals[name]
            whole = {"weights_bytes", "kv_pool_bytes"} <= values.keys() or rank.phase in (
                *_BEFORE_WEIGHTS,
                *_BEFORE_POOL,
            )
            # without weights or pool a remainder is no surprise, and no proof that all is told either
            if said or rest.hi < -TOLERANCE_BYTES or whole:
                closes = not said and _accounted(rest, values, rank.expected)
    refs = [message.ref if message else None, weights and weights.ref, pool and pool.ref, graphs and graphs.ref]
    return Account(
        moment, device, round(total.value) if total else None, values, intervals, unexplained, closes, tuple(said),
        tuple(dict.fromkeys(ref for ref in refs if ref)), per_token,
    )  # fmt: skip


# ---- single figures


def _largest(rank: Rank, *names: str) -> Figure | None:
    """The largest figure of these names: a rank that prints twice loaded something more."""
    found = [figure for name in names for figure in rank.figures.get(name, ())]
    return max(found, key=lambda figure: (figure.value, figure.ref)) if found else None


def _not_negative(figure: Figure) -> Figure:
    """A refused plan prints less than nothing for KV, and graphs can free more than they take: no bytes are held."""
    return figure if figure.value >= 0 else Figure(0, point(0, figure.interval.origin), figure.ref)


def _pool(rank: Rank) -> Figure | None:
    """The KV pool: bytes set by hand, else what the plan had left; blocks set by hand only by the formula of the model."""
    tokens = _largest(rank, "kv_pool_tokens")
    each = rank.expected.kv_bytes_per_token if rank.expected else None
    by_formula = None
    if each is not None and rank.pool_tokens and rank.expected and rank.expected.uniform:
        size = rank.pool_tokens * each
        by_formula = Figure(size, point(size, rank.expected.origin), tokens.ref if tokens else "")
    if rank.pool_by_hand:
        return by_formula
    by_hand = _largest(rank, "kv_cache_memory_bytes")
    if by_hand is not None:
        made = rank.pool_tokens or rank.phase not in (*_BEFORE_WEIGHTS, *_BEFORE_POOL)
        return by_hand if made else None
    figure = _largest(rank, "kv_available_bytes", "kv_reserved_bytes")
    if figure is None:
        return by_formula
    if each is not None and rank.block_tokens and figure.value > 0:
        # whole blocks only: up to one block of what is available is not used
        low = max(0.0, figure.interval.lo - each * rank.block_tokens)
        return replace(figure, interval=replace(figure.interval, lo=low))
    return figure


def _total(rank: Rank, said: list[str]) -> Figure | None:
    """The device as the engine sees it: the message of the failure, else the engine's lines, else a device tool."""
    found: list[Figure] = []
    if rank.message is not None and rank.message.total_bytes is not None:
        found.append(Figure(rank.message.total_bytes.middle, rank.message.total_bytes, rank.message.ref))
    logged = _largest(rank, "total_bytes")
    if logged is not None:
        found.append(logged)
    if rank.snapshot is not None:
        found.append(Figure(rank.snapshot.total_bytes.middle, rank.snapshot.total_bytes, rank.snapshot.ref))
    for other in found[1:]:
        # a device tool counts what the driver keeps for itself too: up to 3 % on the cards read
        if abs(other.value - found[0].value) > 0.05 * found[0].value:
            said.append(
                f"the device has {show_bytes(found[0].value)} ({found[0].ref}) and {show_bytes(other.value)} ({other.ref})"
            )
    return found[0] if found else None


def _same(rank: Rank, name: str, title: str, said: list[str]) -> None:
    """One rank that tells one thing twice has to tell the same."""
    found = rank.figures.get(name, ())
    if not rank.alone or len(found) < 2:
        return
    least, most = (pick(found, key=lambda figure: (figure.value, figure.ref)) for pick in (min, max))
    apart = most.interval.lo - least.interval.hi
    if apart > TOLERANCE_BYTES:
        said.append(f"{title}: {show_bytes(least.value)} ({least.ref}) and {show_bytes(most.value)} ({most.ref})")


# ---- the second account: the plan


def _plan(rank: Rank, total: Figure | None, weights: Figure | None, said: list[str]) -> bool:
    """Hold weights and bytes for KV against utilization x total; True where the plan closes.

    What activations and memory outside torch may take is what the log says, else the planning figures of model and flags,
    else a quarter of the device.
    """
    available = _largest(rank, "kv_available_bytes")
    if rank.utilization is None or total is None or weights is None or available is None:
        return False
    if rank.figures.get("kv_cache_memory_bytes"):
        return False  # a size by hand is no result of the plan
    budget = total.interval * point(rank.utilization, "logged")
    rest = budget - weights.interval - available.interval
    low, high = -float(TOLERANCE_BYTES), float(TOLERANCE_BYTES)
    for part in ("activation_bytes", "non_torch_bytes"):
        told = _largest(rank, part)
        if told is not None and told.value >= 0:
            rest = rest - told.interval
            continue
        planned = rank.expected.parts.get(part) if rank.expected else None
        # planning figures are ranges of judgement: half as much again is still no contradiction
        high += 1.5 * planned.hi if planned else MOST_TRANSIENT / 2 * total.value
    high = max(high, MOST_TRANSIENT * total.value if _largest(rank, "activation_bytes") is None else high)
    if rank.graphs_planned is not False:
        graphs = _largest(rank, "graph_estimate_bytes", "graph_bytes", "graph_actual_bytes")
        room = graphs.value if graphs else MOST_TRANSIENT * total.value
        high += room
        low -= room  # releases differ in which of the two figures of the graphs they have taken off
    said_before = len(said)
    terms = (
        f"weights {show_bytes(weights.value)} ({weights.ref}) and KV {show_bytes(available.value)} ({available.ref})"
    )
    share = f"{rank.utilization:.10g} of {show_bytes(total.value)}"
    if rest.hi < low:
        said.append(f"{terms} are {show_bytes(-rest.middle)} more than the plan of {share} has")
    elif rest.lo > high and not rank.others_planned:
        said.append(
            f"the plan of {share} less {terms} leaves {show_bytes(rest.middle)} for activations and memory outside torch, more "
            "than a step takes: a figure is missing or in another unit"
        )
    return len(said) == said_before


# ---- the moment of a failure


def _at_failure(rank: Rank, message: Message, parts: dict[str, Figure], planned: bool, said: list[str]) -> None:
    """Put the message's own books over the figures of the start, and share out its live tensors."""

    def put(name: str, interval: Interval | None) -> None:
        if interval is not None:
            parts[name] = Figure(max(0.0, interval.middle), interval.at_least(0), message.ref)

    parts.pop("activation_bytes", None)
    logged_peak = _largest(rank, "activation_bytes")
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
        # what capture took outside of torch is in the memory outside torch already
        put("cuda_graph_bytes", message.private_pool_bytes)
    if message.allocated_bytes is None:
        return
    live = message.allocated_bytes - (message.private_pool_bytes or point(0, "logged"))
    weights, pool = parts.get("weights_bytes"), parts.get("kv_pool_bytes")
    if rank.phase in _BEFORE_WEIGHTS:
        parts.pop("kv_pool_bytes", None)
        put("weights_bytes", live)
        return
    if weights is None:
        if rank.phase in _BEFORE_POOL or rank.phase == "kv-alloc":
            parts.pop("kv_pool_bytes", None)
        return
    if rank.phase in _BEFORE_POOL:
        parts.pop("kv_pool_bytes", None)
        _share("activation_bytes", live - weights.interval, [weights], rank, planned, logged_peak, put, message, said)
    elif rank.phase == "kv-alloc":
        rest = live - weights.interval
        if pool is not None and rest.hi >= 0 and rest.middle < pool.value:
            put("kv_pool_bytes", rest)  # so much of it had been made
        elif pool is not None:
            rest = rest - pool.interval
            _share("activation_bytes", rest, [weights, pool], rank, planned, logged_peak, put, message, said)
    elif pool is not None:
        rest = live - weights.interval - pool.interval
        _share("activation_bytes", rest, [weights, pool], rank, planned, logged_peak, put, message, said)


def _share(
    name: str, rest: Interval, taken: Sequence[Figure], rank: Rank, planned: bool, peak: Figure | None,
    put: Callable[[str, Interval], None], message: Message, said: list[str],
) -> None:  # fmt: skip
    """Live tensors that are neither weights nor pool are activations, if the figures taken off can be believed."""
    names = " and ".join(f"{show_bytes(figure.value)} ({figure.ref})" for figure in taken)
    if rest.hi < -TOLERANCE_BYTES:
        said.append(
            f"weights and pool, {names}, are {show_bytes(-rest.middle)} more than torch had allocated ({message.ref}), private "
            "pools left out"
        )
        return
    total = message.total_bytes.middle if message.total_bytes else 0.0
    most = MOST_TRANSIENT * total
    if rank.expected and name in rank.expected.parts:
        most = max(most, 1.5 * rank.expected.parts[name].hi)
    if peak is not None:
        most = max(most, 2 * peak.value)
    if planned or rest.lo <= most:
        put(name, rest)


# ---- a server that runs


def _in_snapshot(snapshot: Snapshot, total: Figure, parts: dict[str, Figure]) -> None:
    """What a device tool shows as used and as other processes' beside the figures of the start."""
    free = total.interval - snapshot.used_bytes
    if snapshot.total_bytes.middle < total.value:
        free = snapshot.total_bytes - snapshot.used_bytes
    free = free.at_least(0)
    parts["free_bytes"] = Figure(free.middle, free, snapshot.ref)
    if snapshot.other_processes_bytes is not None:
        others = snapshot.other_processes_bytes
        parts["other_processes_bytes"] = Figure(others.middle, others, snapshot.ref)


def _accounted(rest: Interval, values: Mapping[str, int], expected: Expectation | None) -> bool:
    """What is left over is nothing, or no more than the parts that nobody told are expected to take."""
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
    return rest.hi >= -TOLERANCE_BYTES and rest.lo <= high


# ---- against the model


def _per_token(rank: Rank, pool: Figure | None, said: list[str]) -> float | None:
    """Bytes of one token on this rank: pool by tokens where the pool was measured; told where the model's formula differs."""
    expected = rank.expected
    formula = expected.kv_bytes_per_token if expected else None
    tokens = rank.pool_tokens
    if rank.pool_by_hand:
        return formula
    measured = _largest(rank, "kv_cache_memory_bytes") or _largest(rank, "kv_available_bytes", "kv_reserved_bytes")
    if measured is None or not tokens or measured.value <= 0:
        return None
    if formula is not None and expected is not None and expected.uniform and rank.alone:
        low = measured.interval.lo / (tokens + (rank.block_tokens or 16))
        high = measured.interval.hi / tokens
        if low > formula * (1 + FAR_KV) or high < formula * (1 - FAR_KV):
            said.append(
                f"one token costs {show_bytes(measured.value / tokens)} by the pool ({measured.ref}) and {show_bytes(formula)} by the "
                f"formula of {expected.model}: another model, KV dtype or rank, or something else in the pool"
            )
    return measured.value / tokens


def _against_expected(rank: Rank, weights: Figure | None, said: list[str]) -> None:
    expected = rank.expected
    if weights is None or expected is None or expected.weights_bytes is None:
        return
    counted = expected.weights_bytes
    spare = FAR_WEIGHTS + (0.25 if expected.multimodal else 0.0)
    if weights.interval.lo > counted.hi * (1 + spare) or weights.interval.hi < counted.lo * (1 - FAR_WEIGHTS):
        said.append(
            f"weights are {show_bytes(weights.value)} ({weights.ref}), and {expected.model} takes {_between(counted)} per GPU as it is "
            f"set up ({expected.origin})"
        )


def _between(size: Interval) -> str:
    low, high = show_bytes(size.lo), show_bytes(size.hi)
    return low if low == high else f"{low} to {high}"
