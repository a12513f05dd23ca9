"""What the tables tell of each rank of each engine start, handed to `books.accounts`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from oomdoc.errors import UsageError
from oomdoc.evidence.store import Store
from oomdoc.ledger.books import BEFORE_POOL, BEFORE_WEIGHTS, Rank, Refusal, Snapshot, accounts
from oomdoc.ledger.closing import PARTS, Account, Figure
from oomdoc.ledger.expectation import Expectation, expectation, ranks_that_fit, token_by_weights
from oomdoc.ledger.lives import Life, Rows, lives
from oomdoc.ledger.message import Message, torch_printed
from oomdoc.ledger.tokens import measured_token
from oomdoc.model import Engine, Flag, LedgerEntry, Range
from oomdoc.physics.defaults import budget_rule, default_max_num_batched_tokens, default_of, version_number
from oomdoc.physics.gpus import find_gpu
from oomdoc.physics.interval import Interval, point
from oomdoc.physics.setup import flag_value
from oomdoc.units import GIB, MIB

# from 0.11.1 on only local rank 0 prints its figures, and they hold for its silent siblings
_ONE_RANK_TELLS = 11_001
_NAME_DECIDES_FROM = 60 * GIB
_DRIVER_KEEPS = 0.03  # share by which a device tool's total passes what the engine sees, on the cards read
_OF_ITS_DEVICE = frozenset(
    {"kv_available_bytes", "total_bytes", "non_torch_bytes", "graph_bytes", "graph_actual_bytes"}
)
_LOADED_OVER_COUNTED = 1.003  # what plain formats load beyond the count, in published logs
_NAMES = (
    "weights_bytes", "kv_available_bytes", "kv_reserved_bytes", "graph_bytes", "graph_actual_bytes", "graph_estimate_bytes", "activation_bytes",
    "non_torch_bytes", "total_bytes", "kv_pool_tokens", "num_gpu_blocks", "block_size", "gpu_memory_utilization", "concurrency_tokens", "encoder_budget_tokens",
)  # fmt: skip
_BOOKS = (
    "total_bytes", "free_bytes", "this_process_bytes", "other_processes_bytes", "allocated_bytes", "private_pool_bytes", "unallocated_bytes",
)  # fmt: skip
_PROGRESS = frozenset({"kv-available", "kv-sized", "kv-blocks", "engine-ready", "serving", "shutdown"})
_WARM_UPS = frozenset({"sampler-warmup", "warmup"})
_PLAN_CHECKS = frozenset({"no-kv-blocks", "kv-below-max-model-len", "mamba-blocks", "no-autofit"})


def ledger(store: Store, engines: Sequence[Engine], config: Mapping[str, Any] | None) -> tuple[LedgerEntry, ...]:
    """The ledger of the start in focus, then of the other starts, in their order.

    Of each rank first the last moment that is known, then, for the start in focus, its earlier ones. `config` is the
    model's config.json, where a person or the bundle gives one.
    """
    names = ", ".join(_quoted(name) for name in _NAMES)
    figures = Rows(
        store,
        f"SELECT DISTINCT rank, name, value, low, high, source, line FROM main.engine_figure WHERE name IN ({names}) AND value IS NOT NULL ORDER BY source, line, name, value",
    )
    messages = Rows(
        store,
        f"SELECT rank, device, {', '.join(_BOOKS)}, source, line FROM main.oom WHERE total_bytes IS NOT NULL OR free_bytes IS NOT NULL ORDER BY line, source",
    )
    checks = Rows(
        store,
        # what stopped the next start is no refusal of this one
        """SELECT rank, name, total_bytes, free_bytes, utilization, max_model_len, device_kind, source, line FROM main.startup_check
        ANTI JOIN next_refusal USING (source, line) ORDER BY source, line""",
    )
    told: list[LedgerEntry] = []
    seen: set[tuple[Any, ...]] = set()
    for life in lives(store, engines):
        rows = figures.of(life)
        alike = (
            life.started,
            *((row["rank"], row["name"], row["value"], row["line"]) for row in rows if life.holds(row)),
        )
        if alike in seen:
            continue  # a copy of a log
        seen.add(alike)
        told += _start(store, life, rows, messages.of(life), checks.of(life), config)
    return tuple(told)


def default_step(store: Store, engine: Engine | None) -> int | None:
    """max_num_batched_tokens of the release in focus on its device, where nobody states it; None where either is not known."""
    facts = (store.rows_of("SELECT * FROM engine") or [{}])[0]
    device = (store.rows_of("SELECT name, total_bytes FROM device") or [{}])[0]
    total = facts.get("total_bytes") or device.get("total_bytes")
    if engine is None or not facts.get("version_number") or not total or facts.get("platform") != "gpu":
        return None
    if not device.get("name") and total >= _NAME_DECIDES_FROM:
        return None  # an A100 has another default than other cards of its size
    return default_max_num_batched_tokens(
        facts["version_number"],
        total,
        facts.get("max_model_len"),
        device.get("name") or "",
        facts.get("generation") or "",
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _start(
    store: Store, life: Life, rows: Sequence[Mapping[str, Any]], oom: Sequence[Mapping[str, Any]], checks: Sequence[Mapping[str, Any]],
    config: Mapping[str, Any] | None,
) -> list[LedgerEntry]:  # fmt: skip
    figures = _figures(rows)
    own_contexts = life.focused and bool(store.rows_of("SELECT ref FROM own_at_start"))
    messages, refusals = _messages(oom), _refusals(checks, own_contexts)
    engine = life.engine
    flags = {name: flag.value for name, flag in engine.flags.items()} if engine else {}
    version = version_number(engine.version) if engine and engine.version else None
    on_gpu = _on_gpu(store, life, flags, checks)
    phase = _phase(store, life, figures, checks)
    world = _count(flags.get("tensor_parallel_size"), 1) * _count(flags.get("pipeline_parallel_size"), 1)
    told_apart = sorted({rank for rank in (*figures, *messages, *refusals) if rank is not None})
    shared = figures.get(None, {})
    speaking = next(
        (figures[rank] for rank in told_apart if "weights_bytes" in figures.get(rank, {})),
        next((figures[rank] for rank in told_apart if figures.get(rank)), {}),
    )
    silent = speaking if (version or _ONE_RANK_TELLS) >= _ONE_RANK_TELLS else {}
    every = {name: found for each in (silent, shared) for name, found in each.items()}
    devices, fallback = _devices(store) if on_gpu else ({}, None)
    total = _any_total(messages, refusals, every) or (fallback.value if fallback else None)
    tokens, block = _pool_facts(every)
    by_hand = flag_value("block_size", flags.get("num_gpu_blocks_override")) is not None
    hand_bytes = next((flags[name] for name in ("kv_cache_memory_bytes", "kv_cache_memory") if flags.get(name)), None)
    if isinstance(hand_bytes, (int, float)) and not by_hand:
        size = float(hand_bytes)
        each = Figure(size, _exact_or_printed(size), _flag_ref(engine, "kv_cache_memory_bytes", "kv_cache_memory"))
        every = {**every, "kv_cache_memory_bytes": (each,)}
    if engine is not None and "tensor_parallel_size" not in flags and on_gpu:
        engine, solved = _with_ranks(engine, config, messages, every, tokens, phase)
        if solved == 1 and world == 1 and len(told_apart) > 1 and told_apart == [*range(len(told_apart))]:
            solved = len(told_apart)  # workers that the log tells apart share one model
            engine = _of_ranks(engine, solved)
        world = max(world, solved)
    told = expectation(engine, total, config, on_gpu=on_gpu) if engine else None
    if told is None and world == 1 and len(told_apart) < 2:
        told = _by_weights(every, figures, tokens, block, version)
    failed = bool(messages or refusals) or bool(engine and engine.failed)
    snapshots = (
        _snapshots(store, every, max(world, len(told_apart), 1)) if life.focused and not failed and on_gpu else {}
    )
    ranks: list[int | None] = [*told_apart] or [None]
    sizes = [device.value for device in devices.values()]
    unlike = len(sizes) == world and max(sizes) > 1.05 * min(sizes)
    if len(snapshots) > len(ranks) or (unlike and world > len(ranks) and [*devices] == [*range(world)]):
        ranks = [*range(world)]  # a rank that prints nothing has a device of its own
    utilization = _share(flags.get("gpu_memory_utilization")) or _printed_share(every, checks)
    if utilization is None and version:
        utilization = default_of("gpu_memory_utilization", version)
    rule = budget_rule(version, engine.generation or "") if version and engine else None
    alone = (
        len(ranks) == 1
        and world == 1
        and not _featured(flags, "speculative_config", "speculative_model")
        and not _featured(flags, "enable_lora")
    )
    kept: list[LedgerEntry] = []
    earlier: list[LedgerEntry] = []
    spoken = devices.get(told_apart[0]) if told_apart else None
    for rank in ranks:
        own = {**every, **(figures.get(rank, {}) if rank is not None else {})}
        device = devices.get(rank, fallback) if rank is not None and len(devices) == world else fallback
        if (
            unlike
            and device
            and spoken
            and rank not in figures
            and abs(device.value - spoken.value) > 0.05 * spoken.value
        ):
            own = {name: found for name, found in own.items() if name not in _OF_ITS_DEVICE}
        message = messages.get(rank) or (messages.get(None) if len(ranks) == 1 else None)
        refusal = refusals.get(rank) or (refusals.get(None) if len(ranks) == 1 else None)
        if "total_bytes" not in own and message is None and refusal is None and device:
            own["total_bytes"] = (device,)
        if unlike and engine is not None and device:
            told = expectation(engine, device.value, config)
        found = accounts(
            Rank(
                figures=own, message=message, refusal=refusal, snapshot=snapshots.get(rank), phase=phase,
                utilization=utilization if on_gpu else None, alone=alone, pool_by_hand=by_hand, pool_tokens=tokens, block_tokens=block,
                graphs_planned="graphs" in rule.also if rule else None, others_planned="others" in rule.also if rule else False,
                features=_featured(flags, "enable_lora", "speculative_config", "speculative_model"), served=life.served, no_blocks=any(row["name"] == "no-kv-blocks" for row in checks), expected=told,
            )
        )  # fmt: skip
        entries = [_entry(life.id, rank, account, told, tokens, on_gpu) for account in found if account.values]
        kept += entries[:1]
        earlier += entries[1:] if life.focused else []
    return [*kept, *earlier]


def _entry(
    start: str | None, rank: int | None, account: Account, told: Expectation | None, tokens: int | None, on_gpu: bool
) -> LedgerEntry:  # fmt: skip
    expected: dict[str, Range] = {}
    if told is not None:
        expected = {name: _range(size) for name, size in told.parts.items()}
        if told.kv_bytes_per_token is not None:
            expected["kv_bytes_per_token"] = Range(told.kv_bytes_per_token, told.kv_bytes_per_token, told.origin)
        if told.pool_tokens is not None:
            expected["kv_pool_tokens"] = _range(told.pool_tokens)
    parts: dict[str, int | None] = {name: account.values.get(name) for name in PARTS}
    parts["unexplained_bytes"] = account.unexplained_bytes
    return LedgerEntry(
        start, rank, account.device or (None if on_gpu else "host node"), account.total_bytes, parts, account.kv_bytes_per_token, tokens,
        account.refs, account.moment, {name: _range(size) for name, size in account.intervals.items()}, expected, account.closes, account.contradictions,
        account.unusual,
    )  # fmt: skip


def _range(size: Interval) -> Range:
    return Range(round(size.lo), round(size.hi), size.origin)


def _share(value: object) -> float | None:
    share = flag_value("gpu_memory_utilization", value)
    return share if isinstance(share, float) else None


def _printed_share(every: Mapping[str, tuple[Figure, ...]], checks: Sequence[Mapping[str, Any]]) -> float | None:
    printed = [figure.value for figure in every.get("gpu_memory_utilization", ())]
    printed += [row["utilization"] for row in checks if row["utilization"]]
    return printed[0] if printed else None


def _count(value: object, default: int) -> int:
    count = flag_value("block_size", value)
    return count if isinstance(count, int) else default


def _featured(flags: Mapping[str, Any], *names: str) -> bool:
    return any(flags.get(name) not in (None, False, "", "None", "False", "{}", 0) for name in names)


def _exact_or_printed(size: float) -> Interval:
    return point(size, "logged") if size == int(size) else torch_printed(size)


def _flag_ref(engine: Engine | None, *names: str) -> str:
    for name in names:
        if engine and name in engine.flags and engine.flags[name].ref:
            return engine.flags[name].ref or ""
    return engine.ref if engine else ""


def _on_gpu(store: Store, life: Life, flags: Mapping[str, Any], checks: Sequence[Mapping[str, Any]]) -> bool:
    if any("cpu" in str(flags.get(name, "")).lower() for name in ("device", "platform", "device_config")):
        return False
    if any(row["device_kind"] == "cpu" for row in checks):
        return False
    facts = store.rows_of("SELECT platform FROM engine") if life.focused else []
    return not facts or facts[0]["platform"] == "gpu"


def _phase(
    store: Store, life: Life, figures: Mapping[int | None, Mapping[str, tuple[Figure, ...]]], checks: Sequence[Mapping[str, Any]]
) -> str | None:  # fmt: skip
    """Where the life in focus failed; of the others how far their figures came. None: a pool was made, or nothing is known.

    A warm-up is run twice, before the pool is made and after: which one it was is told by the figures of the pool.
    """
    names = {name for each in figures.values() for name in each}
    available = [figure.value for each in figures.values() for figure in each.get("kv_available_bytes", ())]
    if min(available, default=1.0) <= 0:
        return "kv-plan"  # the poorest rank decides for all
    planned = bool(names & {"kv_available_bytes", "kv_reserved_bytes", "kv_pool_tokens"})
    if life.focused:
        rows = store.rows_of("SELECT phase FROM failure")
        found = rows[0]["phase"] if rows else None
        if found in _WARM_UPS and not planned and life.marked and "weights_bytes" in names and not life.served:
            return BEFORE_POOL[0]
        if found:
            return str(found)
    if any(row["name"] in _PLAN_CHECKS for row in checks):
        return "kv-plan"
    if life.served or planned or not names or life.milestone in _PROGRESS:
        return None
    return BEFORE_POOL[0] if "weights_bytes" in names else BEFORE_WEIGHTS[1] if life.milestone == "load-start" else None


# ---- what nobody states


def _with_ranks(
    engine: Engine, config: Mapping[str, Any] | None, messages: Mapping[int | None, Message], every: Mapping[str, tuple[Figure, ...]],
    tokens: int | None, phase: str | None,
) -> tuple[Engine, int]:  # fmt: skip
    """The engine with the only number of ranks under which its model fits what was printed; as it is where that is not one."""
    weights = max((figure.value for figure in every.get("weights_bytes", ())), default=None)
    live = next((message for message in messages.values() if message.allocated_bytes is not None), None)
    if (weights is None and live is None) or phase in BEFORE_WEIGHTS:
        return engine, 1

    def fits(size: Interval, each: float) -> bool:
        if weights is not None and not 0.97 * size.lo <= weights <= 1.03 * size.hi:
            return False
        if live is None or live.allocated_bytes is None or not tokens or live.total_bytes is None:
            return weights is not None
        rest = live.allocated_bytes - (live.private_pool_bytes or 0) - size - tokens * each
        return rest.hi >= 0 and rest.lo <= 0.25 * live.total_bytes.middle  # a step takes no more (books.MOST_TRANSIENT)

    if weights is None and not tokens:
        return engine, 1
    ranks = ranks_that_fit(engine, config, fits)
    if ranks is None or ranks == 1:
        return engine, 1
    return _of_ranks(engine, ranks), ranks


def _of_ranks(engine: Engine, ranks: int) -> Engine:
    """The engine with a number of ranks that no flag tells."""
    return replace(engine, flags={**engine.flags, "tensor_parallel_size": Flag(ranks, "figure", None)})


def _by_weights(
    every: Mapping[str, tuple[Figure, ...]], figures: Mapping[int | None, Mapping[str, tuple[Figure, ...]]], tokens: int | None,
    block: int | None, version: int | None,
) -> Expectation | None:  # fmt: skip
    """What all models that load so many bytes agree on, where no line names the model."""
    known = {**every, **next((found for rank, found in figures.items() if rank is not None), {})}
    weights = max(known.get("weights_bytes", ()), key=lambda figure: figure.value, default=None)
    if weights is None or weights.value < MIB:
        return None
    size = Interval(weights.interval.lo / _LOADED_OVER_COUNTED, weights.interval.hi, "logged")
    pool = max(known.get("kv_available_bytes", ()), key=lambda figure: figure.value, default=None)
    seen = None
    if pool is not None and pool.interval.lo > 0 and tokens:
        seen = measured_token(pool.interval, tokens, block or 16)
    lengths = [figure.value for figure in known.get("concurrency_tokens", ())]
    # V1 says so before its pool wherever it tries an encoder, and the pool's tokens are V1's line
    encoder = True if "encoder_budget_tokens" in known else False if "kv_pool_tokens" in known else None
    found = token_by_weights(size, seen, version, int(max(lengths)) if lengths else None, encoder)
    if found is None:
        return None
    each, name = found
    return Expectation(f"models like {name}", "assumed", None, each, True, None, False)


# ---- tables


def _figures(rows: Sequence[Mapping[str, Any]]) -> dict[int | None, dict[str, tuple[Figure, ...]]]:
    """Figures by rank and name, in the order of their lines; rank None holds for all."""
    found: dict[int | None, dict[str, tuple[Figure, ...]]] = {}
    for row in rows:
        low, high = row["low"], row["high"]
        interval = (
            Interval(low, high, "logged")
            if low is not None and high is not None and low <= high
            else point(row["value"], "logged")
        )
        figure = Figure(row["value"], interval, f"{row['source']}:{row['line']}")
        of_rank = found.setdefault(row["rank"], {})
        of_rank[row["name"]] = (*of_rank.get(row["name"], ()), figure)
    return found


def _messages(rows: Sequence[Mapping[str, Any]]) -> dict[int | None, Message]:
    """The first message of each rank that tells of its device."""
    found: dict[int | None, Message] = {}
    for row in rows:
        books = {name: torch_printed(row[name]) if row[name] is not None else None for name in _BOOKS}
        device = None if row["device"] is None else f"GPU {row['device']}"
        found.setdefault(row["rank"], Message(f"{row['source']}:{row['line']}", device, **books))
    return found


def _refusals(rows: Sequence[Mapping[str, Any]], own: bool) -> dict[int | None, Refusal]:
    """The first refusal of each rank that found too little free before it loaded anything; `own`: what was taken is the start's own."""
    found: dict[int | None, Refusal] = {}
    for row in rows:
        if (
            row["name"] == "free-memory"
            and row["total_bytes"]
            and row["free_bytes"]
            and row["device_kind"] in (None, "gpu")
        ):
            total, free = torch_printed(row["total_bytes"]), torch_printed(row["free_bytes"])
            if free.lo <= total.hi:
                found.setdefault(row["rank"], Refusal(f"{row['source']}:{row['line']}", total, free, own))
    return found


def _snapshots(store: Store, figures: Mapping[str, tuple[Figure, ...]], ranks: int) -> dict[int | None, Snapshot]:
    """The last sample of each device, where it shows the server at work: at least weights and pool are in use."""
    rows = store.rows_of(
        "SELECT gpu, max_by(used_bytes, source) AS used, max(total_bytes) AS total, max(source || ':' || last_line) AS ref FROM device_series "
        "WHERE used_bytes IS NOT NULL AND total_bytes IS NOT NULL AND gpu IS NOT NULL GROUP BY host, gpu ORDER BY gpu"
    )
    least = sum(
        max((figure.value for figure in figures.get(name, ())), default=0.0)
        for name in ("weights_bytes", "kv_available_bytes")
    )
    busy = [row for row in rows if least > 0 and row["used"] >= least]
    if len(busy) != ranks:
        return {}
    others = {row["gpu"]: row for row in store.rows_of(
        "SELECT gpu, coalesce(sum(used_bytes) FILTER (NOT regexp_matches(coalesce(name, ''), '(?i)^$|^-$|vllm|python|ray::|not found|n/a')), 0) AS used FROM "
        "(SELECT *, max(coalesce(t, 0)) OVER (PARTITION BY gpu) AS latest FROM gpu_process WHERE gpu IS NOT NULL) WHERE coalesce(t, 0) = latest GROUP BY gpu")}  # fmt: skip
    found: dict[int | None, Snapshot] = {}
    for place, row in enumerate(busy):
        mine = others.get(row["gpu"])
        found[place if ranks > 1 else None] = Snapshot(
            row["ref"], f"GPU {row['gpu']}", _whole_mib(row["total"]), _whole_mib(row["used"]), None if mine is None else _whole_mib(mine["used"])
        )  # fmt: skip
    return found


def _whole_mib(size: float) -> Interval:
    """Device tools print whole MiB."""
    return Interval(max(0.0, size - MIB / 2), size + MIB / 2, "logged") if size else point(0, "logged")


def _devices(store: Store) -> tuple[dict[int, Figure], Figure | None]:
    """(device index -> its memory, the smallest device), as the engine sees memory.

    A device tool counts what the driver keeps for itself; where the product is known its usable size is taken.
    """
    row = (store.rows_of("SELECT name, total_bytes, devices_ref FROM device") or [{}])[0]
    if not row.get("total_bytes"):
        return {}, None
    try:
        usable = find_gpu(row["name"]).total_bytes if row.get("name") else None
    except UsageError:
        usable = None

    def seen(size: float, ref: str | None) -> Figure:
        if usable is not None and size * (1 - _DRIVER_KEEPS) <= usable.lo and usable.hi <= size:
            return Figure(usable.middle, usable, ref or "")
        return Figure(size, point(size, "logged"), ref or "")

    each = {
        int(found["gpu"]): seen(found["total"], found["ref"])
        for found in store.rows_of(
            "SELECT gpu, max(total_bytes) AS total, max(source || ':' || last_line) AS ref FROM device_series "
            "WHERE total_bytes IS NOT NULL AND gpu IS NOT NULL GROUP BY gpu ORDER BY gpu"
        )
    }
    return each, seen(row["total_bytes"], row["devices_ref"])


def _any_total(
    messages: Mapping[int | None, Message], refusals: Mapping[int | None, Refusal], every: Mapping[str, tuple[Figure, ...]]
) -> float | None:  # fmt: skip
    totals = [message.total_bytes.middle for message in messages.values() if message.total_bytes is not None]
    totals += [refusal.total_bytes.middle for refusal in refusals.values()]
    totals += [figure.value for figure in every.get("total_bytes", ())]
    return min(totals) if totals else None


def _pool_facts(every: Mapping[str, tuple[Figure, ...]]) -> tuple[int | None, int | None]:
    """(tokens of the pool, tokens of a block) as this start printed them; the poorest rank decides.

    A start that has nothing for KV prints the blocks of its trial run, which are no pool.
    """
    sizes = [figure.value for figure in every.get("block_size", ())]
    block = int(max(sizes)) if sizes else None
    tokens = [figure.value for figure in every.get("kv_pool_tokens", ())]
    if tokens:
        return int(min(tokens)), block
    blocks = [figure.value for figure in every.get("num_gpu_blocks", ())]
    available = [figure.value for figure in every.get("kv_available_bytes", ())]
    if not blocks or (available and min(available) <= 0):
        return None, block
    return int(min(blocks)) * (block or 16), block
