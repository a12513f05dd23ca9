"""The account of one rank at one moment: what was read becomes parts, a remainder, and sentences about what cannot both be true.

Parts belong to moments, and parts of two moments are never added: the peak of activations is gone when the server rests,
the pool is not there while it profiles itself. `closing.py` adds up one moment; here stands which figures a moment has:

- loaded: weights, and what was loaded with them;
- profiled: the same with the peak of activations, before the pool is made;
- plan: what utilization grants, and what the engine's formula has left for KV;
- rest: weights, pool and graphs of a server that is up, beside what a device tool shows;
- failure: the books of an allocator's message, or of the check that refused the start.

Pure: nothing here reads a table. Sizes are bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from oomdoc.ledger.closing import TOLERANCE_BYTES, Account, Figure, add_up
from oomdoc.ledger.expectation import Expectation
from oomdoc.ledger.message import Message, at_failure, share_moves
from oomdoc.ledger.tokens import Token, agrees, measured_token, token_bytes
from oomdoc.physics.interval import Interval, point
from oomdoc.units import show_bytes

FAR_WEIGHTS = 0.10  # loaded weights this far from the counted ones want an explanation: counts agree to 1 %
MOST_TRANSIENT = 0.25  # share of a device: more than a step of any published log took without a picture in it
OWN_CONTEXT = Interval(
    0.2 * (1 << 30), 0.7 * (1 << 30), "planning figure"
)  # CUDA context of a rank that checks what is free
BEFORE_WEIGHTS = ("init", "load")
BEFORE_POOL = ("profile", "graph-profile", "kv-plan")


@dataclass(frozen=True)
class Snapshot:
    """What a device tool showed while the server ran; `other_processes_bytes` None = no list of processes."""

    ref: str
    device: str
    total_bytes: Interval
    used_bytes: Interval
    other_processes_bytes: Interval | None = None


@dataclass(frozen=True)
class Refusal:
    """The engine's check that found too little free: `free_bytes` of `total_bytes` before anything was loaded.

    `own`: what was taken is the start's own, since its cards hold next to nothing at rest.
    """

    ref: str
    total_bytes: Interval
    free_bytes: Interval
    own: bool = False


@dataclass(frozen=True)
class Rank:
    """Everything that was read about one rank. `figures` are the engine's by name, `phase` that of the failure.

    `alone`: one rank, no draft model, so that one name has one value. `pool_by_hand`: blocks were set by hand, and the
    bytes for KV are no measure of the pool. `features`: LoRA slots or a draft model are loaded with the weights.
    `served`: the server came up. `no_blocks`: the engine refused since nothing was left for KV.
    """

    figures: Mapping[str, tuple[Figure, ...]] = field(default_factory=dict)
    message: Message | None = None
    refusal: Refusal | None = None
    snapshot: Snapshot | None = None
    phase: str | None = None
    utilization: float | None = None
    alone: bool = True
    pool_by_hand: bool = False
    pool_tokens: int | None = None
    block_tokens: int | None = None
    graphs_planned: bool | None = None
    others_planned: bool = False
    features: bool = False
    served: bool = False
    no_blocks: bool = False
    expected: Expectation | None = None


def close(rank: Rank) -> Account:
    """The account of the last moment that is known of this rank."""
    return accounts(rank)[0]


def accounts(rank: Rank) -> tuple[Account, ...]:
    """The accounts of this rank, that of the last moment first, then the earlier ones in their order."""
    said: list[str] = []
    books = _Books(rank, said)
    found = []
    if (profiled := books.profiled()) is not None:
        found.append(profiled)
    if (plan := books.plan()) is not None:
        found.append(plan)
    last = books.failure() or books.rest() or (None if found else books.loaded())
    if last is not None:
        found.append(last)
    if len(found) > 1:  # a plan of an unknown whole is worth telling only where it is the last that is known
        found = [*(each for each in found[:-1] if each.moment != "plan" or each.total_bytes is not None), found[-1]]
    return (found[-1], *found[:-1])


class _Books:
    """The figures of one rank, sorted out once for all its moments."""

    def __init__(self, rank: Rank, said: list[str]) -> None:
        self.rank = rank
        self.total = _total(rank, said)
        _same(rank, "weights_bytes", "weights", said)
        loaded = _largest(rank, "weights_bytes")
        self.available = _largest(rank, "kv_available_bytes", "kv_reserved_bytes")
        self.token = _token(rank, self.available)
        self.pool = _pool(rank, self.token)
        self.weights, self.features = _with_features(rank, loaded)
        self.believed = self._plan_holds(said)
        if self.token is not None and self.token.said:
            said.append(self.token.said)
        _against_expected(rank, self.weights, said)
        self.said = said

    def _parts(self, *names: str) -> dict[str, Figure]:
        every = {
            "weights_bytes": self.weights,
            "feature_bytes": self.features,
            "kv_pool_bytes": self.pool,
            "cuda_graph_bytes": _largest(self.rank, "graph_bytes", "graph_actual_bytes"),
            "activation_bytes": _largest(self.rank, "activation_bytes"),
            "non_torch_bytes": _largest(self.rank, "non_torch_bytes"),
        }
        found = {name: figure for name, figure in every.items() if figure is not None and name in names}
        if "non_torch_bytes" in found and found["non_torch_bytes"].value < 0:
            del found["non_torch_bytes"]
        return {name: not_negative(figure) for name, figure in found.items()}

    def _account(
        self, moment: str, parts: dict[str, Figure], device: str | None = None, *, own: tuple[str, ...] = ()
    ) -> Account:
        return add_up(
            moment, device, self.total, parts, self.said, self.rank.expected, self.token.bytes if self.token else None,
            short=-self.available.value if moment == "plan" and self.available is not None else 0.0,
            whole={"weights_bytes", "kv_pool_bytes"} <= parts.keys() or self.rank.phase in (*BEFORE_WEIGHTS, *BEFORE_POOL), own=own,
        )  # fmt: skip

    # ---- moments

    def loaded(self) -> Account:
        """Weights and what came with them: all that is known of a start that got no further, or nothing at all.

        Weights that no line told are still a plan.
        """
        moment = "plan" if self.weights is not None and not self.weights.ref else "loaded"
        return self._account(moment, self._parts("weights_bytes", "feature_bytes"))

    def profiled(self) -> Account | None:
        """The trial run: weights and the peak of activations. None where the engine prints no peak."""
        parts = self._parts("weights_bytes", "feature_bytes", "activation_bytes", "non_torch_bytes")
        if "activation_bytes" not in parts or "weights_bytes" not in parts:
            return None
        return self._account("profiled", parts)

    def plan(self) -> Account | None:
        """Utilization x total shared out; free is what the plan leaves outside. None where nothing tells of a pool.

        What the engine did not print is what model, flags and release give, as wide as that is. A start that printed its bytes
        for KV leaves activations and memory outside torch as one remainder.
        """
        rank, total = self.rank, self.total
        if rank.pool_by_hand:
            return None
        if rank.figures.get("kv_cache_memory_bytes"):
            return None  # a size by hand is no result of the plan
        parts = self._parts("weights_bytes", "feature_bytes", "activation_bytes", "non_torch_bytes")
        if "weights_bytes" not in parts and rank.expected is not None and rank.expected.weights_bytes is not None:
            parts["weights_bytes"] = Figure(rank.expected.weights_bytes.middle, rank.expected.weights_bytes, "")
        if self.available is not None:
            parts["kv_pool_bytes"] = not_negative(self.available)
        elif rank.pool_tokens == 0 or rank.no_blocks:
            parts["kv_pool_bytes"] = Figure(0, point(0, "logged"), "")  # the engine said that nothing is left
        elif rank.expected is not None and "kv_pool_bytes" in rank.expected.parts:
            for name in ("activation_bytes", "non_torch_bytes", "kv_pool_bytes"):
                if name in rank.expected.parts:
                    size = rank.expected.parts[name]
                    parts.setdefault(name, Figure(size.middle, size, ""))
        else:
            return None
        if total is None or rank.utilization is None:
            return self._account("plan", parts)
        outside = total.interval * point(1 - rank.utilization, "logged")
        if self.available is not None and self.available.value < 0:
            outside = (outside + self.available.interval).at_least(0)  # the plan is overdrawn by that much
        graphs = self._planned_graphs()
        held = sum(figure.interval.lo for figure in parts.values()) + outside.lo
        # some releases print a peak of activations that has the graphs in it already
        if graphs is not None and (not graphs.ref or held + graphs.interval.lo <= total.interval.hi + TOLERANCE_BYTES):
            parts["cuda_graph_bytes"] = not_negative(graphs)
        parts["free_bytes"] = Figure(outside.middle, outside, total.ref)
        return self._account("plan", parts)

    def _planned_graphs(self) -> Figure | None:
        """What the release takes off for graphs before it makes the pool; None where it takes off nothing, or nobody knows."""
        if not self.rank.graphs_planned:
            return None
        estimate = _largest(self.rank, "graph_estimate_bytes")
        if estimate is not None:
            return estimate
        size = self.rank.expected.parts.get("cuda_graph_bytes") if self.rank.expected else None
        return None if size is None else Figure(size.middle, size, "")

    def rest(self) -> Account | None:
        """A server that is up: what stays for good, beside what a device tool shows; None where no pool was made."""
        rank = self.rank
        if self.pool is None or (self.available is not None and self.available.value <= 0):
            return None
        if rank.phase in (*BEFORE_WEIGHTS, *BEFORE_POOL):
            return None
        parts = self._parts("weights_bytes", "feature_bytes", "kv_pool_bytes", "cuda_graph_bytes", "non_torch_bytes")
        shot = rank.snapshot
        if shot is None or self.total is None:
            return self._account("rest", parts)
        total = self.total.interval if self.total.value <= shot.total_bytes.middle else shot.total_bytes
        # the two tools differ in what the driver keeps for itself, which is neither free nor used
        free = (total - shot.used_bytes).at_least(0)
        parts["free_bytes"] = Figure(free.middle, free, shot.ref)
        if shot.other_processes_bytes is not None:
            others = shot.other_processes_bytes
            parts["other_processes_bytes"] = Figure(others.middle, others, shot.ref)
        return self._account("rest", parts, shot.device, own=("free_bytes", "other_processes_bytes"))

    def failure(self) -> Account | None:
        """The books of the message, or of the refusal; None where nothing failed that tells of its device."""
        rank = self.rank
        if rank.message is not None and (rank.message.total_bytes or rank.message.free_bytes):
            parts = self._parts(
                "weights_bytes", "feature_bytes", "kv_pool_bytes", "cuda_graph_bytes", "non_torch_bytes"
            )
            peak = _largest(rank, "activation_bytes")
            most = MOST_TRANSIENT * (self.total.value if self.total else 0)
            if rank.expected and "activation_bytes" in rank.expected.parts:
                most = max(most, 1.5 * rank.expected.parts["activation_bytes"].hi)
            if peak is not None:
                most = max(most, 2 * peak.value)
            own = at_failure(rank.message, parts, rank.phase, share_moves(most, self.believed), self.said)
            return self._account("failure", parts, rank.message.device, own=own)
        if rank.refusal is not None:
            refused = rank.refusal
            held = refused.total_bytes - refused.free_bytes
            parts = {"free_bytes": Figure(refused.free_bytes.middle, refused.free_bytes, refused.ref)}
            if refused.own:
                parts["non_torch_bytes"] = Figure(held.middle, held, refused.ref)
            else:
                others = (held - OWN_CONTEXT).at_least(0)
                parts["other_processes_bytes"] = Figure(others.middle, others, refused.ref)
                parts["non_torch_bytes"] = Figure(min(held.middle, OWN_CONTEXT.middle), OWN_CONTEXT, refused.ref)
            return self._account("failure", parts, own=tuple(parts))
        return None

    # ---- the plan as a check of the figures

    def _plan_holds(self, said: list[str]) -> bool:
        """Hold weights and bytes for KV against utilization x total; True where the plan closes.

        What activations and memory outside torch may take is what the log says, else the planning figures of model and
        flags, else a quarter of the device.
        """
        rank, total, weights = self.rank, self.total, self.weights
        available = _largest(rank, "kv_available_bytes")
        if rank.utilization is None or total is None or weights is None or available is None:
            return False
        if rank.figures.get("kv_cache_memory_bytes"):
            return False  # a size by hand is no result of the plan
        budget = total.interval * point(rank.utilization, "logged")
        rest = budget - weights.interval - available.interval
        if self.features is not None:
            rest = rest - self.features.interval
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
        terms = f"weights {show_bytes(weights.value)} ({weights.ref}) and KV {show_bytes(available.value)} ({available.ref})"
        share = f"{rank.utilization:.10g} of {show_bytes(total.value)}"
        if rest.hi < low:
            said.append(f"{terms} are {show_bytes(-rest.middle)} more than the plan of {share} has")
        elif rest.lo > high and not rank.others_planned:
            said.append(
                f"the plan of {share} less {terms} leaves {show_bytes(rest.middle)} for activations and memory outside torch, more "
                "than a step takes: a figure is missing or in another unit"
            )
        return len(said) == said_before


# ---- single figures


def _largest(rank: Rank, *names: str) -> Figure | None:
    """The largest figure of these names: a rank that prints twice loaded something more."""
    found = [figure for name in names for figure in rank.figures.get(name, ())]
    return max(found, key=lambda figure: (figure.value, figure.ref)) if found else None


def not_negative(figure: Figure) -> Figure:
    """A refused plan prints less than nothing for KV, and graphs can free more than they take: no bytes are held."""
    return figure if figure.value >= 0 else Figure(0, point(0, figure.interval.origin), figure.ref)


def _with_features(rank: Rank, loaded: Figure | None) -> tuple[Figure | None, Figure | None]:
    """(weights, what was loaded with them): the engine prints one figure for both.

    Where slots for adapters or a draft model are configured and the model's own weights are counted, they are told apart.
    Where the line of the weights is missing, the count of model and format stands in its place.
    """
    counted = rank.expected.weights_bytes if rank.expected else None
    if counted is None or rank.expected is None or rank.expected.multimodal:
        return loaded, None
    if loaded is None:
        loading_done = (
            rank.served
            or rank.pool_tokens
            or {"kv_available_bytes", "graph_bytes", "num_gpu_blocks"} & set(rank.figures)
        )
        failed_before = rank.message is not None and (rank.phase in BEFORE_WEIGHTS or not loading_done)
        narrow = counted.hi <= counted.lo * (1 + FAR_WEIGHTS)
        return (Figure(counted.middle, counted, "") if narrow and not failed_before else None), None
    more = loaded.interval - counted
    if not rank.features or more.lo <= TOLERANCE_BYTES:
        return loaded, None
    return Figure(counted.middle, counted, loaded.ref), Figure(more.middle, more.at_least(0), loaded.ref)


def _token(rank: Rank, available: Figure | None) -> Token | None:
    """Bytes of one token: the formula's where there is one, held against the pool by its tokens."""
    told, tokens = rank.expected, rank.pool_tokens
    formula = told.kv_bytes_per_token if told else None
    origin = told.origin if told else "logged"
    by_hand = _largest(rank, "kv_cache_memory_bytes")
    pool = by_hand or available
    seen = None
    if not rank.pool_by_hand and pool is not None and pool.value > 0 and tokens:
        lo = max(1.0, pool.interval.lo)
        each = measured_token(replace(pool.interval, lo=lo), tokens, rank.block_tokens or 16)
        if told is None or (told.uniform and rank.alone) or (formula is not None and agrees(formula, each)):
            seen = each, pool.ref
    return token_bytes(formula, origin, told.model if told else "", seen, told.other_tokens if told else None)


def _pool(rank: Rank, token: Token | None) -> Figure | None:
    """The KV pool: whole blocks by the formula where that and the printed bytes agree, else the printed bytes.

    Bytes set by hand are as stated; blocks set by hand are only known by the formula.
    """
    tokens = _largest(rank, "kv_pool_tokens")
    ref = tokens.ref if tokens else ""
    whole = None
    uniform = rank.expected is not None and rank.expected.uniform
    if token is not None and token.origin != "logged" and rank.pool_tokens and uniform:
        size = rank.pool_tokens * token.bytes
        whole = Figure(size, point(size, token.origin), ref)
    if rank.pool_by_hand:
        return whole
    by_hand = _largest(rank, "kv_cache_memory_bytes")
    if by_hand is not None:
        made = rank.pool_tokens or rank.phase not in (*BEFORE_WEIGHTS, *BEFORE_POOL)
        return by_hand if made else None
    printed = _largest(rank, "kv_available_bytes", "kv_reserved_bytes")
    if printed is None or whole is None or token is None or printed.value <= 0:
        return printed or whole
    block = token.bytes * (rank.block_tokens or 16)
    # one block of what is available may stay unused, and the poorest rank decides for all
    low = printed.interval.lo - block
    if low <= whole.value <= printed.interval.hi or (not rank.alone and whole.value <= printed.interval.hi):
        return replace(whole, ref=printed.ref)
    return replace(printed, interval=replace(printed.interval, lo=max(0.0, low)))


def _total(rank: Rank, said: list[str]) -> Figure | None:
    """The device as the engine sees it: the message of the failure, else the engine's lines, else a device tool."""
    found: list[Figure] = []
    for books in (rank.message, rank.refusal):
        if books is not None and books.total_bytes is not None:
            found.append(Figure(books.total_bytes.middle, books.total_bytes, books.ref))
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


def _against_expected(rank: Rank, weights: Figure | None, said: list[str]) -> None:
    expected = rank.expected
    if weights is None or expected is None or expected.weights_bytes is None or not weights.ref:
        return
    counted = expected.weights_bytes
    spare = FAR_WEIGHTS + (0.25 if expected.multimodal else 0.0)
    if weights.interval.lo > counted.hi * (1 + spare) or weights.interval.hi < counted.lo * (1 - FAR_WEIGHTS):
        said.append(
            f"weights are {show_bytes(weights.value)} ({weights.ref}), and {expected.model} takes {between(counted)} per GPU as it is "
            f"set up ({expected.origin})"
        )


def between(size: Interval) -> str:
    """An interval in words: one size where both ends print alike."""
    low, high = show_bytes(size.lo), show_bytes(size.hi)
    return low if low == high else f"{low} to {high}"
