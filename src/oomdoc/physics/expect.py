"""What a model, its flags and a device ought to give: parts, budget, pool and the engine's own start-up check.

The one door for those who compare or plan: `expected(model, setup, total_bytes)` fills in the defaults of the release,
computes every part of one rank as an interval, and prefers a figure that was measured (`Known`) to its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from oomdoc.physics.adapters import NO_ADAPTERS, Adapters, adapter_bytes, read_adapters
from oomdoc.physics.architecture import FULL, LATENT, Cache, Model
from oomdoc.physics.budget import Budget, over_releases, plan_budget
from oomdoc.physics.defaults import (
    NEWEST_READ,
    budget_rule,
    default_max_num_batched_tokens,
    default_max_num_seqs,
    default_of,
    generation_of,
    version_number,
)
from oomdoc.physics.interval import Interval, hull, smallest
from oomdoc.physics.kv import is_kv_dtype, kv_bytes_per_token
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
    default_block_tokens,
    layouts,
    pool_tokens,
    request_blocks,
)
from oomdoc.physics.speculation import NONE, Speculation, read_speculation, stated_speculation
from oomdoc.physics.weights import draft_bytes, known_format, stage_weights

PREFIX_CACHING_OF_HYBRIDS_SINCE = 28_000
_ITEM_TOKENS = {"gemma4_text": 2496}  # a step holds one whole item where attention over images goes both ways
IN_FLIGHT_SINCE = 26_000
_BESIDE_THE_SCHEDULER = frozenset({"ngram", "[ngram]", "suffix", "medusa", "mlp_speculator"})
_CAPPED_BY_LENGTH_SINCE = 11_002  # 0.11.2: a step is never larger than max_num_seqs x max_model_len


@dataclass(frozen=True)
class Setup:
    """The flags that size memory. None: not given, the default of the release holds.

    `version` is a `version_number`; None = unknown, the newest release that was read is assumed. `releases` are all whose rules
    may hold where none is named exactly (`defaults.releases_meant`): what is expected then holds each. `quantization` None is
    what the checkpoint has, `none` is none. `speculation` is what drafts tokens ahead, `adapters` the LoRA slots, if any;
    `model_runner` V1 or V2 where a log or a variable says.
    """

    version: int | None = None
    generation: str | None = None
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    decode_context_parallel_size: int = 1
    gpu_memory_utilization: float | None = None
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    block_size: int | None = None
    dtype: str = "auto"
    quantization: str | None = None
    kv_cache_dtype: str = "auto"
    enforce_eager: bool = False
    enable_prefix_caching: bool | None = None
    disable_hybrid_kv_cache_manager: bool = False
    language_model_only: bool = False
    speculation: Speculation = NONE
    adapters: Adapters = NO_ADAPTERS
    model_runner: str | None = None
    releases: tuple[int, ...] = ()


@dataclass(frozen=True)
class Filled:
    """A setup with every default filled in, and the origin of what was filled: `default`, `config`, `catalogue`, `assumed`.

    `states` says how the recurrent states of cached prefixes are kept: `all`, `align`, or empty (`pool.request_blocks`).
    """

    version: int
    generation: str
    gpu_memory_utilization: float
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    block_size: int
    origins: Mapping[str, str]
    enable_prefix_caching: bool = True
    states: str = ""


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
    request of max_model_len does not fit); `lacking_bytes` is how much more that check wants.
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


_WORDS = frozenset({"dtype", "kv_cache_dtype", "quantization"})
_SWITCHES = frozenset(
    {"enforce_eager", "enable_prefix_caching", "disable_hybrid_kv_cache_manager", "language_model_only"}
)
DTYPES = ("auto", "bfloat16", "float16", "half", "float32", "float")
"""What the engine takes as a dtype of the model."""

FLAGS = tuple(
    item.name
    for item in fields(Setup)
    if item.name not in ("version", "generation", "speculation", "adapters", "model_runner", "releases")
)
"""The flags of a setup, as the engine spells them with underscores."""


def flag_value(name: str, value: object) -> object:
    """A flag's value as a setup takes it, from a log or a command (text or typed); None for what cannot be meant.

    >>> flag_value("max_model_len", "32768"), flag_value("max_model_len", -1), flag_value("kv_cache_dtype", "fp3")
    (32768, None, None)
    >>> flag_value("gpu_memory_utilization", "0.9"), flag_value("enforce_eager", "True"), flag_value("dtype", "torch.half")
    (0.9, True, 'half')
    """
    if value is None:
        return None
    text = str(value).strip()
    if name in _SWITCHES:
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower())
    if name == "quantization":
        return known_format(text)
    if name in _WORDS:
        text = text.removeprefix("torch.")
        return text if text == "auto" or (text in DTYPES if name == "dtype" else is_kv_dtype(text)) else None
    if name == "gpu_memory_utilization":
        share = float(text) if re.fullmatch(r"\d*\.?\d+", text) else 0.0
        return share if 0 < share <= 1 else None
    return int(text) if re.fullmatch(r"[1-9]\d{0,9}", text) else None


def setup_of(flags: Mapping[str, object], version: str | None = None, generation: str | None = None) -> Setup:
    """The setup of an engine's flags as a log or a command states them; what cannot be meant is left to the defaults."""
    known = {name: flag_value(name, flags.get(name)) for name in FLAGS}
    return replace(
        Setup(version=version_number(version) if version else None),
        generation=generation if generation in ("V0", "V1") else None,
        speculation=read_speculation(stated_speculation(flags)),
        adapters=read_adapters(flags),
        model_runner=runner_stated(flags),
        **{name: value for name, value in known.items() if value is not None},  # type: ignore[arg-type]
    )


def runner_stated(flags: Mapping[str, object]) -> str | None:
    """The model runner, V1 or V2, as the log's line or the variable says; None where neither does.

    >>> runner_stated({"model_runner": "V2"}), runner_stated({"VLLM_USE_V2_MODEL_RUNNER": "0"}), runner_stated({})
    ('V2', 'V1', None)
    """
    said = str(flags.get("model_runner") or "").strip().upper()
    variable = str(flags.get("VLLM_USE_V2_MODEL_RUNNER") or "").strip().lower()
    return said if said in ("V1", "V2") else {"1": "V2", "true": "V2", "0": "V1", "false": "V1"}.get(variable)


def fill(model: Model, setup: Setup, total_bytes: Interval, device: str = "") -> Filled:
    """The setup with the defaults of its release."""
    origins: dict[str, str] = {}
    version = setup.releases[-1] if setup.releases else setup.version
    by_default = "assumed" if version is None or len(setup.releases) > 1 else "default"
    if version is None:
        version = version_number(NEWEST_READ) or 0
    if by_default == "assumed":
        origins["version"] = "assumed"
    generation = setup.generation
    if generation is None:
        generation = generation_of(version)
        origins["generation"] = by_default
    utilization = setup.gpu_memory_utilization
    if utilization is None:
        utilization = default_of("gpu_memory_utilization", version) or 0.9
        origins["gpu_memory_utilization"] = by_default
    length = setup.max_model_len
    if length is None:
        length = model.max_position_embeddings or 4096
        origins["max_model_len"] = (
            "assumed" if not model.max_position_embeddings else "config" if model.confirmed == "config" else "catalogue"
        )
    total = total_bytes.middle
    seqs = setup.max_num_seqs
    if seqs is None:
        seqs = default_max_num_seqs(version, total, device, generation)
        origins["max_num_seqs"] = by_default
    batched = setup.max_num_batched_tokens
    if batched is None:
        batched = default_max_num_batched_tokens(version, total, length, device, generation)
        if generation == "V1" and version >= _CAPPED_BY_LENGTH_SINCE:
            batched = min(batched, seqs * length)
        if generation == "V1" and model.multimodal and not setup.language_model_only:
            batched = max(batched, _ITEM_TOKENS.get(model.family, 0))
        origins["max_num_batched_tokens"] = by_default
    block = setup.block_size
    if block is None:
        block = default_block_tokens(model, version)
        origins["block_size"] = by_default
    caching = setup.enable_prefix_caching
    if caching is None:
        # for hybrids the engine turned it off by itself until 0.27, and later where tokens are drafted
        without = version < PREFIX_CACHING_OF_HYBRIDS_SINCE or setup.speculation.tokens > 0
        caching = generation == "V1" and not (model.recurrent and without)
    states = ""
    if model.recurrent:
        states = _states_kept(model, version, setup, caching)
        caching = bool(states)
    return Filled(version, generation, utilization, length, seqs, batched, block, origins, caching, states)


STATES_CACHED_SINCE, STATES_COPIED_SINCE, STATES_COPIED_ALONE_SINCE = 12_000, 15_000, 28_000
"""Releases from which a hybrid's prefixes can be cached at all (0.11 turns it off), by copies of the last state (`align`, in 0.16.0
and not in 0.14.1), and no longer by a state at every block unless a flag asks for that (vllm/model_executor/models/config.py, MambaModelConfig)."""

_STATE_AT_EVERY_BLOCK = ("nemotron_h", "jamba", "mamba", "zamba2", "granitemoehybrid", "falcon_h1", "bamba")


def _states_kept(model: Model, version: int, setup: Setup, caching: bool) -> str:
    """How prefixes of a model with recurrent states are cached: `all` keeps one at every block, `align` the last one's copy; empty: not."""
    if not caching or version < STATES_CACHED_SINCE:
        return ""
    every = model.family.startswith(_STATE_AT_EVERY_BLOCK)  # those whose kernels give the states of all blocks
    if every and version < STATES_COPIED_ALONE_SINCE:
        drafting = setup.speculation.tokens > 0 and 20_000 <= version < 21_000
        return "align" if drafting else "all"
    return "align" if version >= STATES_COPIED_SINCE else ""


def expected(
    model: Model, setup: Setup, total_bytes: Interval, *, device: str = "", known: Known | None = None
) -> Expected:
    """Parts, budget, pool and start-up check of one rank of the fullest stage.

    `total_bytes` is what cudaMemGetInfo calls the device's total; `device` its name, where defaults depend on it. Where several
    releases may be meant, intervals hold what each of them gives, and the check is decided where all agree.
    """
    each = [_expected(model, one, total_bytes, device, known or Known()) for one in one_by_one(setup)]
    return each[0] if len(each) == 1 else _over(setup, each)


def one_by_one(setup: Setup) -> tuple[Setup, ...]:
    """The setup under each release that may be meant, oldest first."""
    if not setup.releases:
        return (setup,)
    return tuple(replace(setup, version=release, releases=()) for release in setup.releases)


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
    )


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
    return Expected(setup, filled, heaviest, per_token, budget, least, pool, starts, refusal, lacking)


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
        enforce_eager=setup.enforce_eager, max_num_seqs=filled.max_num_seqs, estimated=planned
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
