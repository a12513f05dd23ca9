"""What the tables tell of each rank of each engine start, handed to `books.close`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oomdoc.ledger.books import PARTS, Account, Figure, Message, Rank, Snapshot, close, torch_printed
from oomdoc.ledger.expectation import Expectation, expectation
from oomdoc.model import Engine, LedgerEntry, Range
from oomdoc.physics.defaults import budget_rule, default_max_num_batched_tokens, version_number
from oomdoc.physics.expect import flag_value
from oomdoc.physics.interval import Interval, point
from oomdoc.store import Store
from oomdoc.units import GIB, MIB

MOST_STARTS = 20  # starts whose ledger is told; a restart loop has hundreds that are alike
# from 0.11.1 on only local rank 0 prints its figures, and they hold for its silent siblings
_ONE_RANK_TELLS = 11_001
_NAME_DECIDES_FROM = 60 * GIB
_NAMES = (
    "weights_bytes", "kv_available_bytes", "kv_reserved_bytes", "graph_bytes", "graph_actual_bytes", "graph_estimate_bytes", "activation_bytes",
    "non_torch_bytes", "total_bytes", "kv_pool_tokens", "num_gpu_blocks", "block_size",
)  # fmt: skip
_BOOKS = (
    "total_bytes", "free_bytes", "this_process_bytes", "other_processes_bytes", "allocated_bytes", "private_pool_bytes", "unallocated_bytes",
)  # fmt: skip


def ledger(store: Store, engines: Sequence[Engine], config: Mapping[str, Any] | None) -> tuple[LedgerEntry, ...]:
    """The ledger of the start in focus, then of the other starts that the focus hides, in their order.

    `config` is the model's config.json, where a person or the bundle gives one.
    """
    focus = store.rows_of("SELECT i.start_id FROM incident i, focus f WHERE i.incident = f.incident")
    seen = focus[0]["start_id"] if focus else None
    by_id = {engine.id: engine for engine in engines}
    engine = by_id.get(seen) if seen else engines[-1] if engines else None
    entries = _start(store, seen, engine, config, _FOCUSED, True)
    hidden = store.rows_of(
        "SELECT DISTINCT s.start_id, s.source, s.first_line, s.last_line FROM engine_start s JOIN hidden h ON h.source = s.source AND h.first_line = s.first_line "
        f"WHERE s.complete ORDER BY s.source, s.first_line LIMIT {MOST_STARTS}"
    )
    for row in hidden:
        place = f"WHERE source = {_quoted(row['source'])} AND line BETWEEN {int(row['first_line'])} AND {int(row['last_line'])}"
        where = {name: f"main.{name} {place}" for name in ("engine_figure", "oom")}
        entries += _start(store, row["start_id"], by_id.get(row["start_id"]), config, where, False)
    return tuple(entries)


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


_FOCUSED = {"engine_figure": "seen.engine_figure", "oom": "seen.oom"}


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _start(
    store: Store, start: str | None, engine: Engine | None, config: Mapping[str, Any] | None, where: Mapping[str, str], focused: bool
) -> list[LedgerEntry]:  # fmt: skip
    figures = _figures(store, where["engine_figure"])
    messages = _messages(store, where["oom"])
    told_apart = sorted({rank for rank in (*figures, *messages) if rank is not None})
    ranks: list[int | None] = [*told_apart] or [None]
    facts = (store.rows_of("SELECT * FROM engine") or [{}])[0] if focused else {}
    phase = (store.rows_of("SELECT phase FROM failure") or [{"phase": None}])[0]["phase"] if focused else None
    flags = {name: flag.value for name, flag in engine.flags.items()} if engine else {}
    shared = figures.get(None, {})
    speaking = next(
        (figures[rank] for rank in ranks if rank is not None and "weights_bytes" in figures.get(rank, {})), {}
    )
    version = facts.get("version_number") or (version_number(engine.version) if engine and engine.version else None)
    silent = speaking if (version or _ONE_RANK_TELLS) >= _ONE_RANK_TELLS else {}
    every = {name: told for each in (silent, shared) for name, told in each.items()}
    on_gpu = facts.get("platform", "gpu") == "gpu"
    fallback = _device_total(store) if on_gpu else None
    failed = bool(messages) or bool(engine and engine.failed)
    snapshots = _snapshots(store, every, len(ranks)) if focused and not failed and on_gpu else {}
    total = _any_total(messages, every, facts) or (fallback[0] if fallback else None)
    told = expectation(engine, total, config, on_gpu=on_gpu) if engine else None
    tokens, block = _pool_facts(every, facts)
    by_hand = flag_value("block_size", flags.get("num_gpu_blocks_override")) is not None
    if facts.get("kv_cache_memory_bytes") and not by_hand:
        each = Figure(
            facts["kv_cache_memory_bytes"], _exact_or_printed(facts["kv_cache_memory_bytes"]), _flag_ref(engine, facts)
        )
        every = {**every, "kv_cache_memory_bytes": (each,)}
    rule = budget_rule(version, engine.generation or "") if version and engine else None
    entries = []
    for rank in ranks:
        own = {**every, **(figures.get(rank, {}) if rank is not None else {})}
        message = messages.get(rank) or (messages.get(None) if len(ranks) == 1 else None)
        if "total_bytes" not in own and message is None and not snapshots and fallback and fallback[1]:
            own["total_bytes"] = (Figure(fallback[0], point(fallback[0], "logged"), fallback[1]),)
        if "total_bytes" not in own and message is None and facts.get("total_bytes"):
            own["total_bytes"] = (
                Figure(facts["total_bytes"], torch_printed(facts["total_bytes"]), facts.get("start_ref") or ""),
            )
        account = close(
            Rank(
                figures=own, message=message, snapshot=snapshots.get(rank), phase=phase,
                utilization=facts.get("gpu_memory_utilization") or _share(flags.get("gpu_memory_utilization")),
                alone=len(ranks) == 1 and (facts.get("world_size") or 1) == 1 and not facts.get("speculative") and not facts.get("lora"),
                pool_by_hand=by_hand, pool_tokens=tokens, block_tokens=block,
                graphs_planned="graphs" in rule.also if rule else None, others_planned="others" in rule.also if rule else False, expected=told,
            )
        )  # fmt: skip
        if account.values:
            entries.append(_entry(start, rank, account, told, tokens, on_gpu))
    return entries


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
    )  # fmt: skip


def _range(size: Interval) -> Range:
    return Range(round(size.lo), round(size.hi), size.origin)


def _share(value: object) -> float | None:
    share = flag_value("gpu_memory_utilization", value)
    return share if isinstance(share, float) else None


def _exact_or_printed(size: float) -> Interval:
    return point(size, "logged") if size == int(size) else torch_printed(size)


def _flag_ref(engine: Engine | None, facts: Mapping[str, Any]) -> str:
    for name in ("kv_cache_memory_bytes", "kv_cache_memory"):
        if engine and name in engine.flags and engine.flags[name].ref:
            return engine.flags[name].ref or ""
    return facts.get("start_ref") or ""


# ---- tables


def _figures(store: Store, where: str) -> dict[int | None, dict[str, tuple[Figure, ...]]]:
    """Figures by rank and name, in the order of their lines; rank None holds for all."""
    names = ", ".join(_quoted(name) for name in _NAMES)
    joint = "AND" if "WHERE" in where else "WHERE"
    found: dict[int | None, dict[str, tuple[Figure, ...]]] = {}
    for row in store.rows_of(
        f"SELECT DISTINCT rank, name, value, low, high, source, line FROM {where} {joint} name IN ({names}) AND value IS NOT NULL ORDER BY source, line, name, value"
    ):
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


def _messages(store: Store, where: str) -> dict[int | None, Message]:
    """The first message of each rank that tells of its device."""
    joint = "AND" if "WHERE" in where else "WHERE"
    found: dict[int | None, Message] = {}
    for row in store.rows_of(
        f"SELECT rank, device, {', '.join(_BOOKS)}, source || ':' || line AS ref FROM {where} {joint} (total_bytes IS NOT NULL OR free_bytes IS NOT NULL) ORDER BY line, source"
    ):
        books = {name: torch_printed(row[name]) if row[name] is not None else None for name in _BOOKS}
        device = None if row["device"] is None else f"GPU {row['device']}"
        found.setdefault(row["rank"], Message(row["ref"], device, **books))
    return found


def _snapshots(store: Store, figures: Mapping[str, tuple[Figure, ...]], ranks: int) -> dict[int | None, Snapshot]:
    """The last sample of each device, where it shows the server at work: at least weights and pool are in use."""
    rows = store.rows_of(
        "SELECT gpu, max_by(used_bytes, source) AS used, max(total_bytes) AS total, max(source || ':' || last_line) AS ref FROM device_series "
        "WHERE used_bytes IS NOT NULL AND total_bytes IS NOT NULL AND gpu IS NOT NULL GROUP BY gpu ORDER BY gpu"
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


def _device_total(store: Store) -> tuple[float, str | None] | None:
    row = (store.rows_of("SELECT total_bytes, devices_ref FROM device") or [{}])[0]
    return (float(row["total_bytes"]), row["devices_ref"]) if row.get("total_bytes") else None


def _any_total(
    messages: Mapping[int | None, Message], every: Mapping[str, tuple[Figure, ...]], facts: Mapping[str, Any]
) -> float | None:  # fmt: skip
    totals = [message.total_bytes.middle for message in messages.values() if message.total_bytes is not None]
    totals += [figure.value for figure in every.get("total_bytes", ())]
    return min(totals) if totals else facts.get("total_bytes")


def _pool_facts(every: Mapping[str, tuple[Figure, ...]], facts: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """(tokens of the pool, tokens of a block): of the view `engine` where it speaks of this start, else of its own figures."""
    sizes = [figure.value for figure in every.get("block_size", ())]
    block = int(max(sizes)) if sizes else None
    if facts:
        return facts.get("kv_pool_tokens"), block
    tokens = [figure.value for figure in every.get("kv_pool_tokens", ())]
    blocks = [figure.value for figure in every.get("num_gpu_blocks", ())]
    if tokens:
        return int(min(tokens)), block
    return (int(min(blocks)) * (block or 16), block) if blocks else (None, block)
