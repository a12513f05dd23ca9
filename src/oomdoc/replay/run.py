"""From a bundle to a replay: the recorded flags first, checked against the recording, then the changed ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oomdoc.errors import BundleError, UsageError
from oomdoc.evidence.store import Store
from oomdoc.physics.defaults import (
    NEWEST_READ,
    server_max_num_batched_tokens,
    server_max_num_seqs,
    version_number,
)
from oomdoc.replay.asked import FULL, Outcome, Sample, Setup, Traffic
from oomdoc.replay.pool import Pool, pool_after, usable_blocks
from oomdoc.replay.recording import Observed, Recording, recording
from oomdoc.replay.scheduler import nearer, simulate
from oomdoc.replay.speed import FEWEST, Speed, quantile
from oomdoc.replay.traffic import MOST_SCALED, PICO, callers_of, picoseconds, traffic_of, with_hits
from oomdoc.units import parse_size, show_time

FACTORS = tuple(0.8 + 0.025 * nth for nth in range(19))  # 0.8 to 1.25
_COARSE = 4  # every fourth factor first, then those between the best and its neighbours: 9 runs instead of 19
_ROUNDED = 1e-6  # share by which sums of picoseconds and of seconds may differ
BEYOND = (
    2  # times as many requests at once as recorded from which the length of a step is no longer measured but extended
)
COLUMNS = 240  # steps of a series in the result
LONGEST = 20  # times as long as the arrivals: so far the series of a replay reaches
PRESSED = 0.85  # share of the pool from which a queue is its fault, as in view kv_pressure
V0_WATERMARK = 0.01  # share of the blocks that V0 keeps free on admission (vllm/core/block_manager.py)
WHOLE_PROMPT_FROM = (
    20_000  # 0.20.0; early V1 admits when the first chunk fits, releases read since ask for the whole prompt
)


@dataclass(frozen=True)
class Flag:
    """A flag that `--set` takes: what its value is, and what it changes."""

    kind: str  # int, share, size, bool, text
    says: str


FLAGS: Mapping[str, Flag] = {
    "max_num_seqs": Flag("int", "requests that run at once"),
    "max_num_batched_tokens": Flag("int", "tokens of one step"),
    "max_model_len": Flag("int", "tokens of the longest request"),
    "enable_prefix_caching": Flag("bool", "whether blocks keep their content for others"),
    "enable_chunked_prefill": Flag("bool", "whether a prompt may be computed in several steps"),
    "gpu_memory_utilization": Flag("share", "the pool"),
    "kv_cache_dtype": Flag("text", "the pool"),
    "tensor_parallel_size": Flag("int", "the pool"),
    "kv_cache_memory_bytes": Flag("size", "the pool"),
    "num_gpu_blocks_override": Flag("int", "the pool"),
}
_OF_THE_POOL = frozenset(name for name, flag in FLAGS.items() if flag.says == "the pool")


def read_changes(settings: Mapping[str, str]) -> dict[str, Any]:
    """Typed values of `--set FLAG=VALUE`; UsageError for an unknown flag or a value that is none."""
    return {name: _value(name, text) for name, text in settings.items()}


def _value(name: str, text: str) -> Any:
    kind = FLAGS[name].kind
    if kind == "int" and text.strip().replace(",", "").isdecimal() and int(text.replace(",", "")) > 0:
        return int(text.replace(",", ""))
    if kind == "bool" and text.strip().lower() in ("true", "false", "1", "0"):
        return text.strip().lower() in ("true", "1")
    if kind == "text" and text.strip():
        return text.strip()
    if kind == "size" and (parse_size(text, binary=True) or 0) > 0:
        return parse_size(text, binary=True)
    if kind == "share":
        try:
            share = float(text)
        except ValueError:
            share = 0.0
        if 0 < share <= 1:
            return share
    wanted = {"int": "a whole number above 0", "bool": "true or false", "text": "a name", "size": "a size such as 16GiB", "share": "a number from 0 to 1"}  # fmt: skip
    raise UsageError(f"--set {name}={text} is no value for it", f"Give {wanted[kind]}")


def replay(
    store: Store,
    incident: str | None,
    settings: Mapping[str, str],
    *,
    pool_tokens: int | None = None,
    prefix_tokens: int = 0,
    prefix_groups: int = 1,
) -> dict[str, Any]:
    """The replay of a loaded bundle as plain data (docs/json.md): times are ISO 8601, sizes tokens, shares 0..1, None = unknown.

    `pool_tokens` is the pool after the change, where a person knows it. `prefix_tokens` at the beginning of every prompt are
    shared, by `prefix_groups` groups in turn.
    """
    changes = read_changes(settings)
    told = recording(store, incident)
    assumptions, unknown = list(told.assumptions), _unknown(told, prefix_tokens)
    pool = pool_of(told, pool_tokens, assumptions)
    traffic, begin = traffic_of(told, prefix_tokens, prefix_groups)
    if not prefix_tokens:
        traffic, words = with_hits(told, setup_of(told, pool, []), traffic, begin)
        assumptions += [words] if words else []
        unknown = [said for said in unknown if not words or not said.startswith("shared prefixes")]
    told = replace(told, speed=scaled_speed(told, setup_of(told, pool, []), traffic, begin)[0])
    setup = setup_of(told, pool, assumptions)
    after_pool = pool_after(pool, changes) if told.engine.get("kv_pool_tokens") else pool
    if pool_tokens is not None:
        after_pool = replace(after_pool, tokens=pool_tokens)
    after = changed_setup(setup, changes, after_pool, told.engine.get("generation"))
    before = _run(setup, traffic, begin, told)
    changed = _run(after, traffic, begin, told) if changes or pool_tokens else None
    if told.starts > 1:
        assumptions.append(
            f"one engine runs throughout: the log shows {told.starts} starts, and the replay goes on over them"
        )
    if (told.engine.get("data_parallel_size") or 1) > 1:
        assumptions.append("the replicas of the engine count as one with the sum of their pools")
    unknown += _beyond(changed, told)
    return {
        "settings": [{"flag": name, "value": value, "was": _was(name, told, setup, pool)} for name, value in changes.items()],
        "traffic": {
            "requests": len(traffic), "left_out": told.left_out, "time_is": told.time_is, "time_checked": told.time_known,
            "offset_s": told.offset_s, "from_t": show_time(begin), "to_t": show_time(float(told.arrival[-1])),
        },
        "engine": _engine(setup, pool),
        "engine_after": _engine(after, after_pool) if changed else None,
        "speed": _speed(told.speed),
        "recorded": _recorded(told.observed, begin),
        "error": _error(before, told.observed),
        "before": before,
        "after": changed,
        "assumptions": assumptions,
        "unknown": unknown,
    }  # fmt: skip


# ---- what is run


def pool_of(told: Recording, pool_tokens: int | None, assumptions: list[str]) -> Pool:
    """The pool that was recorded; BundleError where nobody tells its tokens. What is assumed is added to `assumptions`."""
    engine = told.engine
    tokens = engine.get("kv_pool_tokens") or pool_tokens
    if not tokens:
        raise BundleError(
            "the bundle does not tell how many tokens the KV pool stores",
            "Add the server log from its start, or give the size with --pool-tokens",
        )
    if told.block_size is None:
        assumptions.append("a block holds 16 tokens, the engine's default on GPUs")
    size = told.block_size or 16
    if tokens < 2 * size:
        raise UsageError(f"a pool of {tokens} tokens is less than two blocks of {size}", "Give a larger --pool-tokens")
    by_hand = engine.get("kv_cache_memory_bytes")
    each = engine.get("kv_bytes_per_token")
    if by_hand and not engine.get("num_gpu_blocks_override"):
        each = by_hand / tokens
    heads = told.flags.get("num_key_value_heads", "")
    return Pool(
        int(tokens) * int(engine.get("data_parallel_size") or 1), size, each, engine.get("kv_available_bytes"), engine.get("total_bytes"), engine.get("gpu_memory_utilization"),
        engine.get("weights_bytes"), engine.get("kv_cache_dtype"), int(heads) if heads.isdecimal() else None, int(engine.get("tensor_parallel_size") or 1),
    )  # fmt: skip


def setup_of(told: Recording, pool: Pool, assumptions: list[str]) -> Setup:
    """The recorded flags, and the defaults of release and platform for those that the bundle does not tell."""
    engine, flags = told.engine, told.flags
    generation = engine.get("generation")
    if generation is None:
        assumptions.append("the engine is a V1 engine: its version is not told")
    chunked = flags.get("enable_chunked_prefill", "False" if generation == "V0" else "True").lower() in ("true", "1")
    replicas = int(engine.get("data_parallel_size") or 1)
    longest = engine.get("max_model_len")
    version = engine.get("version_number") or version_number(NEWEST_READ) or 0
    where = (version, engine.get("total_bytes"), engine.get("platform") or "gpu", generation or "")
    seqs = engine.get("max_num_seqs")
    if not seqs:
        seqs = server_max_num_seqs(*where)
        assumptions.append(f"max_num_seqs {seqs}: the default for such a device, the bundle does not tell it")
    batched = engine.get("max_num_batched_tokens")
    if not batched:
        batched = server_max_num_batched_tokens(*where, longest)
        if not chunked:
            batched = max(batched, longest or 0)
        assumptions.append(
            f"max_num_batched_tokens {batched}: the default for such a device, the bundle does not tell it"
        )
    callers = callers_of(told)
    if callers:
        assumptions.append(
            f"{callers:,} callers that each wait for their answer: a request is sent when another is done, as recorded"
        )
    usable = usable_blocks(pool, generation)
    return _with_speed(Setup(
        usable_blocks=usable, block_size=pool.block_size, max_num_seqs=int(seqs) * replicas, max_num_batched_tokens=max(int(batched), int(seqs)) * replicas,
        max_model_len=int(longest) if longest else None,
        watermark_blocks=int(usable * V0_WATERMARK) if generation == "V0" else 0, chunked_prefill=chunked, prefill_first=generation == "V0" and not chunked,
        whole_prompt_must_fit=generation == "V0" or (engine.get("version_number") or 0) >= WHOLE_PROMPT_FROM,
        prefix_caching=caches_prefixes(told), policy="priority" if flags.get("scheduling_policy") == "priority" else "fcfs",
        callers=callers,
    ), told.speed)  # fmt: skip


def caches_prefixes(told: Recording) -> bool:
    """Whether blocks keep their content for others: what a flag or the release says; where neither is told, a V1 engine does, and any
    engine whose counters or answers tell of tokens that were found.
    """
    stated = told.engine.get("prefix_caching")
    if stated is not None:
        return bool(stated)
    return told.engine.get("generation") != "V0" or bool(told.hit_share) or bool((told.cached_tokens > 0).any())


def changed_setup(setup: Setup, changes: Mapping[str, Any], pool: Pool, generation: str | None) -> Setup:
    """The setup under changed flags; UsageError for what the engine refuses."""
    usable = usable_blocks(pool, generation)
    if usable < 1:
        raise UsageError(
            f"a pool of {pool.tokens} tokens holds no request: the engine would not start", "Make it larger"
        )
    seqs = changes.get("max_num_seqs", setup.max_num_seqs)
    batched = changes.get("max_num_batched_tokens", setup.max_num_batched_tokens)
    if batched < seqs:
        raise UsageError(
            f"max_num_batched_tokens {batched} is less than max_num_seqs {seqs}: the engine refuses that",
            "Change both",
        )
    return replace(
        setup, usable_blocks=usable, max_num_seqs=seqs, max_num_batched_tokens=batched,
        max_model_len=changes.get("max_model_len", setup.max_model_len),
        prefix_caching=changes.get("enable_prefix_caching", setup.prefix_caching),
        chunked_prefill=changes.get("enable_chunked_prefill", setup.chunked_prefill),
        prefill_first=generation == "V0" and not changes.get("enable_chunked_prefill", setup.chunked_prefill),
        watermark_blocks=int(usable * V0_WATERMARK) if generation == "V0" else 0,
    )  # fmt: skip


def scaled_speed(
    told: Recording,
    setup: Setup,
    traffic: Traffic,
    begin: float,
    most: int = MOST_SCALED,
    sample_ps: Sequence[int] = (),
) -> tuple[Speed, Outcome | None]:
    """The fitted speed times the factor with which the replayed requests end most nearly when the recorded ones did.

    Usage plays no part in it: the error against the recorded usage stays a test. What the whole traffic came to with it, at the
    moments of `sample_ps`, comes too, where it was run.
    """
    count = min(len(traffic), most)
    ended = told.end[:count]
    timed = ~np.isnan(ended)
    if told.speed.low is None or timed.sum() < FEWEST:
        return told.speed, None
    some = Traffic(**{name: column[:count] for name, column in vars(traffic).items()})
    ends = [round((end - begin) * PICO) if known else None for end, known in zip(ended.tolist(), timed, strict=True)]
    ran: dict[int, Outcome] = {}

    def miss(nth: int, least: float) -> float:
        most = least * int(timed.sum()) * (1 + _ROUNDED) * PICO + PICO
        outcome = nearer(_with_speed(setup, told.speed.times(FACTORS[nth])), some, sample_ps, ends, most)
        if outcome is None:
            return math.inf  # further off than the least, whatever comes after
        ran[nth] = outcome
        replayed = np.array([np.nan if moment is None else begin + moment / PICO for moment in outcome.finish_ps])
        off = np.abs(replayed - ended)
        return float(np.nanmean(off)) if not np.isnan(off).all() else math.inf

    tried: dict[int, tuple[float, float]] = {}
    step, wanted = _COARSE, range(0, len(FACTORS), _COARSE)
    while step:
        for nth in sorted(wanted, key=lambda nth: abs(FACTORS[nth] - 1)):  # the likeliest first: others may end sooner
            if nth not in tried:
                least = min((off for off, _ in tried.values()), default=math.inf)
                tried[nth] = (miss(nth, least), abs(FACTORS[nth] - 1))
        best = min(tried, key=lambda nth: tried[nth])
        step //= 2
        wanted = range(max(0, best - step), min(len(FACTORS), best + step + 1), max(1, step))
    return told.speed.times(FACTORS[best]), ran[best] if count == len(traffic) else None


def _with_speed(setup: Setup, speed: Speed) -> Setup:
    return replace(
        setup, step_ps=max(1, round(speed.step_s * PICO)), sequence_ps=round(speed.sequence_s * PICO),
        context_ps=round(speed.context_s * PICO), prompt_token_ps=round(speed.prompt_token_s * PICO),
        prompt_pair_ps=round(speed.prompt_pair_s * PICO),
    )  # fmt: skip


def _unknown(told: Recording, prefix_tokens: int) -> list[str]:
    unknown = []
    if told.left_out:
        unknown.append(f"{told.left_out:,} requests lack a time, prompt tokens or output tokens and are left out")
    if told.observed is None:
        unknown.append(
            "usage over time: no statistics lines and too few metrics, so nothing to check the replay against"
        )
    if caches_prefixes(told) and not prefix_tokens:
        if told.cached_tokens.any():
            unknown.append(
                "who shares a prefix with whom: cached tokens cost no time, and every request counts its own blocks"
            )
        else:
            unknown.append(
                "shared prefixes: the requests do not tell cached tokens, so none is counted (--prefix-tokens)"
            )
    if told.engine.get("speculative"):
        unknown.append(
            "how many tokens a draft model gains a step: a step generates one, as long as it took on average"
        )
    if told.flags.get("scheduling_policy") == "priority":
        unknown.append("the priorities of the requests: all count alike")
    if not callers_of(told):
        unknown.append(
            "how clients would behave otherwise: requests arrive when they did, also those that waited for an answer"
        )
    return unknown


def _beyond(changed: dict[str, Any] | None, told: Recording) -> list[str]:
    """Says where the changed engine runs far more requests at once than the recording shows, whose steps nobody has measured."""
    if changed is None or told.observed is None or np.isnan(told.observed.running).all():
        return []
    most, seen = max(changed["series"]["running"], default=0), int(np.nanmax(told.observed.running))
    if not seen or most <= BEYOND * seen:
        return []
    return [
        f"how long a step of {most:,} requests lasts: the recording shows at most {seen:,} at once, so the time of larger steps, "
        "and with it the peak, is extended from there and may be off by a half"
    ]


# ---- what comes out


def _run(setup: Setup, traffic: Traffic, begin: float, told: Recording) -> dict[str, Any]:
    observed = told.observed
    seen = [] if observed is None else picoseconds(observed.t - begin)
    # even moments far beyond the last arrival: when the last request ends, only the run itself tells
    step = max(PICO, -(-max(traffic.arrival_ps[-1], 1) // COLUMNS))
    even = [step * place for place in range(LONGEST * COLUMNS)]
    outcome = simulate(setup, traffic, sorted({*seen, *even}))
    states = {sample.t_ps: sample for sample in outcome.samples}
    series = [states[moment] for moment in even if moment <= outcome.end_ps]
    return {
        **_outcome(setup, outcome, begin),
        "series": {"from_t": show_time(begin), **_series(setup, series, step)},
        "at_recorded": _state(setup, [states[moment] for moment in seen]) if seen else None,
    }


def _outcome(setup: Setup, outcome: Outcome, begin: float) -> dict[str, Any]:
    def at(moment: int | None) -> str | None:
        return None if moment is None else show_time(begin + moment / PICO)

    waits = outcome.waits()
    peak = outcome.peak_blocks / setup.usable_blocks
    return {
        "survives": not (outcome.preemptions or outcome.impossible or outcome.held_ps),
        "peak_used": peak, "margin": 1 - peak, "preemptions": outcome.preemptions,
        "recomputed_tokens": outcome.recomputed_tokens, "computed_tokens": outcome.computed_tokens,
        "first_full_t": at(outcome.full_ps), "first_waiting_t": at(outcome.waiting_ps), "first_preemption_t": at(outcome.preemption_ps),
        "longest_wait_s": max(waits, default=0) / PICO, "p95_wait_s": quantile(waits, 0.95) / PICO if waits else 0.0,
        "held_by_pool_s": outcome.held_ps / PICO, "impossible": len(outcome.impossible), "end_t": at(outcome.end_ps), "lasted_s": outcome.end_ps / PICO,
    }  # fmt: skip


def _series(setup: Setup, samples: list[Sample], step: int) -> dict[str, Any]:
    """At most `COLUMNS` columns, each the highest of its samples."""
    each = -(-len(samples) // COLUMNS)
    columns = [samples[place : place + each] for place in range(0, len(samples), each)]
    return {
        "step_s": step * each / PICO,
        "used": [max(sample.used_blocks for sample in column) / setup.usable_blocks for column in columns],
        "running": [max(sample.running for sample in column) for column in columns],
        "waiting": [max(sample.waiting for sample in column) for column in columns],
    }


def _state(setup: Setup, samples: list[Sample]) -> dict[str, Any]:
    return {
        "used": [sample.used_blocks / setup.usable_blocks for sample in samples],
        "running": [sample.running for sample in samples],
        "waiting": [sample.waiting for sample in samples],
    }


def _error(before: dict[str, Any], observed: Observed | None) -> dict[str, Any] | None:
    """How far the replay of the unchanged flags is from what was recorded, at the very moments of the recording.

    Pressure begins with the first sample in which the pool is full, or in which somebody waits while most of it is used.
    """
    if observed is None:
        return None
    used, waiting = np.array(before["at_recorded"]["used"]), np.array(before["at_recorded"]["waiting"])
    told: dict[str, Any] = {
        "usage_mean_abs": float(np.abs(used - observed.used).mean()),
        "samples": len(used),
        "interval_s": observed.interval_s,
    }
    for name, replayed, seen in (
        ("full", used >= FULL, observed.used >= FULL),
        ("pressure", _pressed(used, waiting), _pressed(observed.used, observed.waiting)),
    ):
        here, there = _first(observed.t, replayed), _first(observed.t, seen)
        told[f"{name}_recorded_t"], told[f"{name}_replayed_t"] = show_time(there), show_time(here)
        told[f"{name}_difference_s"] = None if here is None or there is None else here - there
    return told


def _pressed(used: Any, waiting: Any) -> Any:
    return (used >= FULL) | ((used >= PRESSED) & (waiting > 0))


def _first(t: Any, holds: Any) -> float | None:
    found = np.flatnonzero(holds)
    return float(t[found[0]]) if len(found) else None


def _recorded(observed: Observed | None, begin: float) -> dict[str, Any] | None:
    if observed is None:
        return None
    return {
        "origin": observed.origin, "samples": len(observed.t), "interval_s": observed.interval_s, "from_t": show_time(float(observed.t[0])),
        "to_t": show_time(float(observed.t[-1])), "peak_used": float(observed.used.max()), "preemptions": observed.preemptions,
        "waiting_max": None if np.isnan(observed.waiting).all() else int(np.nanmax(observed.waiting)),
        "running_max": None if np.isnan(observed.running).all() else int(np.nanmax(observed.running)),
        "series": {"from_t": show_time(begin), "at_s": [round(float(t) - begin, 3) for t in observed.t], "used": observed.used.tolist(),
                   "running": _whole(observed.running), "waiting": _whole(observed.waiting)},
    }  # fmt: skip


def _whole(values: Any) -> list[int | None]:
    return [None if np.isnan(value) else int(value) for value in values]


def _engine(setup: Setup, pool: Pool) -> dict[str, Any]:
    return {
        "pool_tokens": pool.tokens, "block_size": pool.block_size, "usable_blocks": setup.usable_blocks, "max_num_seqs": setup.max_num_seqs,
        "max_num_batched_tokens": setup.max_num_batched_tokens, "max_model_len": setup.max_model_len, "prefix_caching": setup.prefix_caching,
        "chunked_prefill": setup.chunked_prefill, "policy": setup.policy,
    }  # fmt: skip


def _speed(speed: Speed) -> dict[str, Any]:
    return {
        "step_s": speed.step_s, "per_sequence_s": speed.sequence_s, "per_context_token_s": speed.context_s,
        "per_prompt_token_s": speed.prompt_token_s, "per_prompt_pair_s": speed.prompt_pair_s, "origin": speed.origin, "factor": speed.factor,
        "samples": speed.samples, "low": speed.low, "high": speed.high,
    }  # fmt: skip


def _was(name: str, told: Recording, setup: Setup, pool: Pool) -> Any:
    known = {
        "max_num_seqs": setup.max_num_seqs, "max_num_batched_tokens": setup.max_num_batched_tokens, "max_model_len": setup.max_model_len,
        "enable_prefix_caching": setup.prefix_caching, "enable_chunked_prefill": setup.chunked_prefill, "gpu_memory_utilization": pool.utilization,
        "kv_cache_dtype": pool.kv_dtype, "tensor_parallel_size": pool.tensor_parallel_size,
    }  # fmt: skip
    return known.get(name, told.engine.get(name))
