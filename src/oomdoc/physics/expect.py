"""What a model, its flags and a device ought to give: parts, budget, pool and the engine's own start-up check.

The one door for those who compare or plan: `expected(model, setup, total_bytes)` fills in the defaults of the release,
computes every part of one rank as an interval, and prefers a figure that was measured (`Known`) to its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from oomdoc.physics.adapters import adapter_bytes
from oomdoc.physics.architecture import FULL, LATENT, Cache, Model
from oomdoc.physics.budget import Budget, over_releases, plan_budget
from oomdoc.physics.defaults import budget_rule, release_weights
from oomdoc.physics.interval import Interval, hull, smallest
from oomdoc.physics.kv import kv_bytes_per_token
from oomdoc.physics.planning import (
    KEPT_BYTES,
    SPREAD_SCALES,
    activation_bytes,
    beside_weights,
    graph_bytes,
    graphs_estimated,
    non_torch_bytes,
    runner_of,
    without_fp8,
)
from oomdoc.physics.pool import (
    Layout,
    blocks,
    layouts,
    pool_tokens,
    request_blocks,
)
from oomdoc.physics.setup import Filled, Setup, fill, one_by_one
from oomdoc.physics.speculation import Speculation
from oomdoc.physics.weights import draft_bytes, stage_weights

IN_FLIGHT_SINCE = 26_000
_BESIDE_THE_SCHEDULER = frozenset({"ngram", "[ngram]", "suffix", "medusa", "mlp_speculator"})


@dataclass(frozen=True)
class Known:
    """Figures of one rank that were measured or logged; None = not known, it is computed or planned.

    `available_bytes` is the engine's "Available KV cache memory" of the poorest rank.
    """

    weights_bytes: Interval | None = None
    activation_bytes: Interval | None = None
    non_torch_bytes: Interval | None = None
    graph_bytes: Interval | None = None
    available_bytes: Interval | None = None
    other_processes_bytes: Interval | None = None
    free_at_start_bytes: Interval | None = None


@dataclass(frozen=True)
class Pool:
    """The block pool of the poorest rank. `need_blocks` is what one request of max_model_len takes.

    `tokens` is what the engine prints, `concurrency` how many requests of max_model_len it holds.
    """

    layouts: tuple[Layout, ...]
    blocks: Interval
    need_blocks: int
    need_bytes: int
    tokens: Interval
    concurrency: Interval


@dataclass(frozen=True)
class Expected:
    """Expected parts of one rank. None is unknown: the model has no countable weights, or a cache nobody can compute.

    `starts` is the engine's own check: True, False, or None where the intervals leave it open. `refusal` says which
    check refuses: `weights` (more than the device), `free-memory`, `no-blocks` (nothing is left for KV), `length` (one
    request of max_model_len does not fit); `lacking_bytes` is how much more that check wants. `chance` is how likely it starts where
    that is left open, from 0 to 1; None where nothing can be said of it.
    """

    setup: Setup
    filled: Filled
    weights_bytes: Interval | None
    kv_bytes_per_token: float | None
    budget: Budget | None
    available_bytes: Interval | None
    pool: Pool | None
    starts: bool | None
    refusal: str | None
    lacking_bytes: Interval | None
    chance: float | None = None


def expected(
    model: Model, setup: Setup, total_bytes: Interval, *, device: str = "", known: Known | None = None
) -> Expected:
    """Parts, budget, pool and start-up check of one rank of the fullest stage.

    `total_bytes` is what cudaMemGetInfo calls the device's total; `device` its name, where defaults depend on it. Where several
    releases may be meant, intervals hold what each of them gives, and the check is decided where all agree.
    """
    each = [_expected(model, one, total_bytes, device, known or Known()) for one in one_by_one(setup)]
    return each[0] if len(each) == 1 else _over(setup, each)


def _over(setup: Setup, each: list[Expected]) -> Expected:
    """What several releases may give: the newest's plan, with intervals that hold all."""
    newest = each[-1]
    starts = {one.starts for one in each}
    pools = [one.pool for one in each if one.pool]
    pool = newest.pool
    if pool is not None:
        pool = replace(
            pool,
            blocks=hull([one.blocks for one in pools]),
            need_blocks=max(one.need_blocks for one in pools),
            need_bytes=max(one.need_bytes for one in pools),
            tokens=hull([one.tokens for one in pools]),
            concurrency=hull([one.concurrency for one in pools]),
        )
    budgets = [one.budget for one in each if one.budget]
    refusing = next((one for one in reversed(each) if one.starts is not True), newest)
    lacking = [one.lacking_bytes for one in each if one.lacking_bytes and one.refusal == refusing.refusal]
    weights = [one.weights_bytes for one in each if one.weights_bytes]
    available = [one.available_bytes for one in each if one.available_bytes]
    return replace(
        newest,
        setup=setup,
        weights_bytes=hull(weights) if weights else None,
        budget=over_releases(budgets) if budgets else None,
        available_bytes=hull(available) if available else None,
        pool=pool,
        starts=starts.pop() if len(starts) == 1 else None,
        refusal=refusing.refusal,
        lacking_bytes=hull(lacking) if lacking else None,
        chance=_mean([one.chance for one in each], release_weights(setup.releases)),
    )


def _mean(chances: list[float | None], weights: tuple[float, ...]) -> float | None:
    """Each release as likely as the next; None where one of them says nothing."""
    known = [each * weight for each, weight in zip(chances, weights, strict=True) if each is not None]
    return sum(known) / sum(weights) if len(known) == len(chances) else None


def _expected(model: Model, setup: Setup, total_bytes: Interval, device: str, known: Known) -> Expected:
    filled = fill(model, setup, total_bytes, device)
    tp, pp = setup.tensor_parallel_size, setup.pipeline_parallel_size
    weights = (known.weights_bytes,) * pp if known.weights_bytes else _loaded(model, setup, filled.version, device)
    per_token = kv_bytes_per_token(
        model,
        kv_cache_dtype=setup.kv_cache_dtype,
        dtype=setup.dtype,
        tp=tp,
        pp=pp,
        dcp=setup.decode_context_parallel_size,
        version=filled.version,
    )
    budgets = [_budget(model, setup, filled, total_bytes, each, known, device) for each in weights]
    budget = min(budgets, key=lambda each: each.available_bytes.lo) if budgets else None
    available = [known.available_bytes] * pp if known.available_bytes else [each.available_bytes for each in budgets]
    pool = _pool(model, setup, filled, available) if available else None
    least = smallest(available) if available else None
    starts, refusal, lacking = _check(budget, least, pool, known, total_bytes)
    if model.confirmed == "name" and refusal == "length":
        starts = None  # a guessed cache refuses nothing
    if model.encoder and available and refusal is None:
        starts = True  # nothing is kept between tokens, so no check of a pool follows
    heaviest = max(weights, key=lambda each: each.hi) if weights else None
    chance: float | None = None if starts is None else float(starts)
    if starts is None and least is not None and pool is not None and model.confirmed != "name":
        chance = _chance(
            least, None if known.available_bytes or budget is None else budget.spread_bytes, pool.need_bytes
        )
    return Expected(setup, filled, heaviest, per_token, budget, least, pool, starts, refusal, lacking, chance)


def _chance(available: Interval, spread: float | None, need: float) -> float:
    """How likely so many bytes are there: a bell of this spread around the middle, or anywhere alike between the ends.

    >>> round(_chance(Interval(6.0, 14.0), 2.0, 8.0), 2), round(_chance(Interval(6.0, 14.0), None, 8.0), 2)
    (0.84, 0.75)
    """
    if not spread:
        width = available.hi - available.lo
        return float(available.lo >= need) if not width else min(1.0, max(0.0, (available.hi - need) / width))
    return 0.5 * (1 + math.erf((available.middle - need) / (spread * math.sqrt(2))))


def _loaded(model: Model, setup: Setup, version: int, device: str) -> tuple[Interval, ...]:
    """Weights of each stage, with the slots of adapters on each and what drafts on the last."""
    tp, pp = setup.tensor_parallel_size, setup.pipeline_parallel_size
    stages = stage_weights(
        model,
        quantization=setup.quantization,
        dtype=setup.dtype,
        tp=tp,
        pp=pp,
        encoder=not setup.language_model_only,
        version=version,
    )
    if not stages:
        return stages
    if without_fp8(device) and _format(model, setup) == "fp8":
        stages = tuple(replace(each, hi=each.hi * (1 + SPREAD_SCALES)) for each in stages)
    beside = beside_weights(device)
    stages = tuple(each + beside for each in stages) if beside.hi else stages
    slots = adapter_bytes(model, setup.adapters, dtype=setup.dtype, tp=tp)
    if slots is not None:
        stages = tuple(each + slots * (1 / len(stages)) for each in stages)
    if not setup.speculation.tokens:
        return stages
    return (*stages[:-1], stages[-1] + draft_bytes(model, setup.speculation, dtype=setup.dtype, tp=tp))


def feature_bytes(model: Model, setup: Setup) -> Interval | None:
    """What a draft and the slots of adapters add to the weights of one rank (the last, which has the draft); None where
    nothing of the kind is set or its size is not known.
    """
    tp = setup.tensor_parallel_size
    draft = draft_bytes(model, setup.speculation, dtype=setup.dtype, tp=tp) if setup.speculation.tokens else None
    slots = adapter_bytes(model, setup.adapters, dtype=setup.dtype, tp=tp)
    if slots is not None:
        slots = slots * (1 / setup.pipeline_parallel_size)
    found = [each for each in (draft, slots) if each is not None and each.hi > 0]
    return found[0] + (found[1] if len(found) > 1 else 0) if found else None


def _budget(
    model: Model,
    setup: Setup,
    filled: Filled,
    total_bytes: Interval,
    weights: Interval,
    known: Known,
    device: str,
) -> Budget:
    tp = setup.tensor_parallel_size
    runner = runner_by(model, setup, filled.version)
    activation = known.activation_bytes or activation_bytes(
        model,
        batched_tokens=filled.max_num_batched_tokens,
        max_num_seqs=filled.max_num_seqs,
        tp=tp,
        dtype=setup.dtype,
        version=filled.version,
        encoder=not setup.language_model_only,
        runner=runner,
        max_model_len=filled.max_model_len,
    )
    counted = budget_rule(filled.version, filled.generation).also
    estimated = graphs_estimated(runner, filled.version)
    planned = "graphs" in counted and estimated
    graphs = known.graph_bytes or graph_bytes(
        enforce_eager=setup.enforce_eager,
        max_num_seqs=filled.max_num_seqs,
        draft_tokens=setup.speculation.tokens,
        estimated=planned,
        tp=tp * setup.pipeline_parallel_size,
        device=device,
    )
    return plan_budget(
        total_bytes,
        filled.gpu_memory_utilization,
        weights_bytes=weights,
        activation_bytes=activation,
        non_torch_bytes=known.non_torch_bytes
        or non_torch_bytes(tp * setup.pipeline_parallel_size, device, context="others" in counted),
        graph_bytes=graphs,
        version=filled.version,
        generation=filled.generation,
        other_processes_bytes=known.other_processes_bytes,
        slack_bytes=KEPT_BYTES,
        graphs_estimated=estimated,
    )


def _format(model: Model, setup: Setup) -> str | None:
    """The format of the weights: what a flag asks for, else the checkpoint's own."""
    return setup.quantization if setup.quantization is not None else model.quantization


def runner_by(model: Model, setup: Setup, version: int) -> str:
    """The model runner of this setup in a release."""
    return runner_of(
        model,
        version,
        setup.model_runner,
        quantised=_format(model, setup) not in (None, "none"),
        drafts=setup.speculation.method if setup.speculation.tokens else "",
    )


def stage_layouts(model: Model, setup: Setup, filled: Filled) -> tuple[Layout, ...] | None:
    """The layout of the pool on each stage; None where a cache of the model cannot be computed."""
    return layouts(
        model,
        kv_cache_dtype=setup.kv_cache_dtype,
        dtype=setup.dtype,
        tp=setup.tensor_parallel_size,
        pp=setup.pipeline_parallel_size,
        version=filled.version if filled.generation == "V1" else min(filled.version, 9_001),
        block_tokens=filled.block_size,
        hybrid_manager=not setup.disable_hybrid_kv_cache_manager,
        draft=draft_caches(model, setup.speculation),
        draft_tokens=setup.speculation.tokens,
        every_state=filled.states == "all",
    )


def draft_caches(model: Model, speculation: Speculation) -> tuple[Cache, ...]:
    """The caches of the layers that draft: those of the target's full layers, for a draft layer is built like one."""
    kinds = [cache for cache in model.caches if cache.kind in (FULL, LATENT)] or [
        cache for cache in model.caches if cache.head_dim
    ]
    if speculation.draft is not None:
        return tuple(speculation.draft.caches[index] for index in speculation.draft.pattern if index >= 0)
    return (kinds[0],) * speculation.layers if kinds else ()


def in_flight_tokens(model: Model, setup: Setup, filled: Filled) -> int:
    """Tokens that may be scheduled and not yet settled, for which layers with a window keep blocks.

    One step until 0.25. From 0.26 on as many as run at once (`max_in_flight_tokens` of the engine's config): two, for steps
    are scheduled ahead; one where pooling or a way of drafting does not allow that; with several stages one each, and one
    more on the second model runner.
    """
    stages = setup.pipeline_parallel_size
    steps = 1
    if filled.version >= IN_FLIGHT_SINCE:
        ahead = not model.pooled and setup.speculation.method not in _BESIDE_THE_SCHEDULER
        second = runner_by(model, setup, filled.version) == "V2"
        steps = stages + 1 if ahead and (second or stages == 1) else stages
    return steps * filled.max_num_batched_tokens


def request_need(
    layout: Layout, model: Model, setup: Setup, filled: Filled, tokens: int, *, checked: bool = False
) -> int:
    """Blocks of one request of so many tokens; context parallelism spreads its positions over the ranks. `checked`: as the
    start-up check counts them.
    """
    dcp = setup.decode_context_parallel_size
    return request_blocks(
        layout,
        -(-tokens // dcp),
        batched_tokens=in_flight_tokens(model, setup, filled),
        prefix_caching=filled.enable_prefix_caching,
        every_state=filled.states == "all",
        draft_tokens=setup.speculation.tokens,
        checked=checked,
    )


def _pool(model: Model, setup: Setup, filled: Filled, available: list[Interval]) -> Pool | None:
    found = stage_layouts(model, setup, filled)
    if found is None:
        return None
    held = [blocks(layout, each) for layout, each in zip(found, available, strict=True)]
    if model.confirmed == "name":  # a guessed cache may be half or twice what is computed
        held = [replace(each, lo=each.lo // 2, hi=each.hi * 2) for each in held]
    need = [request_need(layout, model, setup, filled, filled.max_model_len) for layout in found]
    most = max(need)
    checked = [request_need(layout, model, setup, filled, filled.max_model_len, checked=True) for layout in found]
    # the engine takes the fewest blocks of all ranks for every rank
    count = smallest(held)
    layout = found[need.index(most)]
    dcp = setup.decode_context_parallel_size

    release = filled.version if filled.generation == "V1" else 0

    def tokens(block_count: float) -> int:
        return pool_tokens(
            layout,
            int(block_count),
            need=most,
            max_model_len=filled.max_model_len,
            version=release,
            dcp=dcp,
            prefix_caching=filled.enable_prefix_caching,
        )

    return Pool(
        found,
        count,
        max(checked),
        max(each * layout.block_bytes for each, layout in zip(checked, found, strict=True)),
        Interval(tokens(count.lo), tokens(count.hi), count.origin),
        Interval(count.lo / most, count.hi / most, count.origin),
    )


def _check(
    budget: Budget | None, available: Interval | None, pool: Pool | None, known: Known, total_bytes: Interval
) -> tuple[bool | None, str | None, Interval | None]:
    """(starts, which check refuses, what it lacks). The first check that certainly or possibly refuses is told."""
    if available is None:
        return None, None, None
    doubt: tuple[bool | None, str | None, Interval | None] | None = None
    checks: list[tuple[str, Interval]] = []
    if budget is not None and not known.available_bytes:
        checks.append(("weights", budget.weights_bytes - total_bytes))
        free = known.free_at_start_bytes
        if free is not None and budget.rule.free_at_start_checked:
            checks.append(("free-memory", budget.requested_bytes - free))
    block = pool.layouts[0].block_bytes if pool else 1
    checks.append(("no-blocks", block - available))
    for name, lacking in checks:
        if lacking.lo > 0:
            return False, name, lacking
        if lacking.hi > 0:
            doubt = doubt or (None, name, lacking)
    if pool is None:
        return doubt or (None, None, None)
    if pool.need_blocks > pool.blocks.hi:
        return False, "length", pool.need_bytes - available
    if pool.need_blocks > pool.blocks.lo:
        return doubt or (None, "length", pool.need_bytes - available)
    return doubt or (True, None, None)
