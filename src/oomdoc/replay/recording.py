"""The recording in a bundle as the replay needs it: requests in order of arrival, the usage that was seen, the engine.

A request log stamps its lines on arrival or on completion, and its clock may be that of another zone. Where the server
wrote statistics, both are told by what fits them best: requests in flight against running + waiting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oomdoc.errors import BundleError
from oomdoc.evidence.store import Store
from oomdoc.replay.speed import ASSUMED, Speed, from_requests, from_statistics, median

_ZONES = [1800.0 * half for half in range(-28, 29)]  # offsets of zones lie within 14 hours, on half hours
_Array = Any


@dataclass(frozen=True)
class Observed:
    """Usage as the server told it, in order of time: shares 0..1 of the pool, requests; NaN = not told."""

    t: _Array
    used: _Array
    running: _Array
    waiting: _Array
    interval_s: float
    origin: str
    preemptions: int | None


@dataclass(frozen=True)
class Recording:
    """Requests in order of arrival (epoch seconds), and what else the bundle tells. Arrays are of one length."""

    arrival: _Array
    end: _Array  # epoch seconds; NaN = unknown
    input_tokens: _Array
    output_tokens: _Array
    cached_tokens: _Array
    observed: Observed | None
    speed: Speed
    engine: Mapping[str, Any]
    flags: Mapping[str, str]
    block_size: int | None
    starts: int  # of the engine that the logs show
    left_out: int
    time_is: str  # arrival or completion: what the stamp of a request means
    time_known: bool  # the statistics decided it
    offset_s: float  # added to the stamps of the requests
    assumptions: tuple[str, ...]
    hit_share: float | None = (
        None  # of the looked-up prompt tokens found in the prefix cache, by the server's counters, 0..1
    )


def recording(
    store: Store, incident: str | None, *, most: int | None = None, around: float | None = None, focused: bool = False
) -> Recording:  # fmt: skip
    """What a focused bundle recorded; BundleError where it holds no requests that could be run again.

    `most` takes so many requests only, those nearest to the moment `around` (epoch seconds), without one the last.
    `focused` says that the incident is in focus already.
    """
    if not focused:
        store.focus(incident)
    names = "t, input_tokens, output_tokens, max_tokens, cached_tokens, latency_s, ttft_s, status"
    rows = "request" if most is None else _nearest(store, names, most, around)
    columns = store.columns_of(f"SELECT {names} FROM {rows} ORDER BY source, line")
    if not len(columns["t"]):
        raise BundleError(
            "no requests to replay in this bundle",
            "Add a request log: JSON lines, CSV or key=value with time, prompt and output tokens",
        )
    assumptions: list[str] = []
    output = columns["output_tokens"]
    asked = columns["max_tokens"]
    unknown = np.isnan(output) & ~np.isnan(asked) & ~(columns["status"] >= 400)
    if unknown.any():
        output = np.where(unknown, asked, output)
        assumptions.append(f"{int(unknown.sum()):,} requests without output tokens generate all of their max_tokens")
    usable = ~np.isnan(columns["t"]) & (columns["input_tokens"] > 0) & (output > 0)
    if not usable.any():
        raise BundleError(
            "the requests of this bundle cannot be replayed: none has a time, prompt tokens and output tokens",
            "Add a request log that tells all three",
        )
    left_out = int((~usable).sum())
    t, inputs, outputs = columns["t"][usable], columns["input_tokens"][usable], output[usable]
    latency, ttft = columns["latency_s"][usable], columns["ttft_s"][usable]
    cached = np.nan_to_num(np.minimum(columns["cached_tokens"][usable], inputs))
    observed = _observed(store)
    time_is, offset, known = _alignment(t, latency, observed)
    arrival = t + offset - (latency_or_zero(latency) if time_is == "completion" else 0.0)
    if not known and not np.isnan(latency).all():
        assumptions.append("the time of a request is its arrival: no statistics of the server to check it against")
    timed = ~np.isnan(latency) & ~np.isnan(ttft)
    speed = (
        from_requests(arrival[timed], (arrival + ttft)[timed], (arrival + latency)[timed], (inputs - cached)[timed], outputs[timed])
        or _from_lines(store)
        or _from_latency(arrival, latency, inputs, outputs)
        or ASSUMED
    )  # fmt: skip
    order = np.argsort(arrival, kind="stable")
    engine = (store.rows_of("SELECT * FROM engine") or [{}])[0]
    sizes = store.rows_of("SELECT max(value) AS size FROM seen.engine_figure WHERE name = 'block_size'")
    hits = store.rows_of("SELECT hit_rate, queries FROM prefix_cache")
    starts = store.rows_of("SELECT count(*) AS n FROM engine_start WHERE marked")[0]["n"]
    flags = {
        row["flag"]: row["value"]
        for row in store.rows_of(
            "SELECT flag, arg_max(value, CASE origin WHEN 'logged' THEN 3 WHEN 'config' THEN 2 ELSE 1 END) AS value FROM seen.engine_flag "
            "WHERE lower(value) NOT IN ('none', 'null', '') GROUP BY flag"  # an argument left to the engine: its config tells what it took
        )
    }
    return Recording(
        arrival[order], (arrival + latency)[order], inputs[order], outputs[order], cached[order], observed, speed, engine, flags,
        int(sizes[0]["size"]) if sizes and sizes[0]["size"] else None, starts, left_out, time_is, known, offset, tuple(assumptions),
        hits[0]["hit_rate"] if hits and hits[0]["queries"] else None,
    )  # fmt: skip


def _nearest(store: Store, names: str, most: int, around: float | None) -> str:
    """A query for the `most` requests nearest to a moment, or the last.

    How far off they lie is told by their times alone: to sort whole rows, a bundle of a million costs ten times as much.
    """
    off = "-t" if around is None else f"abs(t - {around!r})"
    apart = store.columns_of(f"SELECT {off} AS apart FROM request WHERE t IS NOT NULL")["apart"]
    if len(apart) <= most:
        return "(SELECT * FROM request WHERE t IS NOT NULL)"
    farthest = float(np.partition(apart, most - 1)[most - 1])
    return f"(SELECT source, line, {names} FROM request WHERE {off} <= {farthest!r} ORDER BY {off}, source, line LIMIT {most})"


def latency_or_zero(latency: _Array) -> _Array:
    """Latencies with 0 where none is told."""
    return np.nan_to_num(latency)


def _observed(store: Store) -> Observed | None:
    """Statistics lines of the engine in focus, else its metrics; None where neither tells usage at known times."""
    told = store.columns_of(
        "SELECT t, avg(kv_used) AS used, sum(running) AS running, sum(waiting) AS waiting FROM seen.engine_stat "
        "WHERE t IS NOT NULL AND kv_used IS NOT NULL GROUP BY t ORDER BY t"
    )
    origin = "statistics lines"
    if len(told["t"]) < 3:
        told = store.columns_of(
            "SELECT t, max(value) FILTER (name IN ('vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc')) AS used, "
            "max(value) FILTER (name = 'vllm:num_requests_running') AS running, "
            "max(value) FILTER (name = 'vllm:num_requests_waiting') AS waiting FROM metric "
            "WHERE t IS NOT NULL GROUP BY t HAVING used BETWEEN 0 AND 1 ORDER BY t"
        )
        origin = "metrics"
    if len(told["t"]) < 3:
        return None
    t = told["t"]
    if (t == np.floor(t)).all():
        t = t + 0.5  # the log cuts off the fraction of its seconds
    counted = store.rows_of("SELECT preemptions FROM kv_pressure")
    return Observed(
        t, told["used"], told["running"], told["waiting"], median(np.diff(t)), origin,
        counted[0]["preemptions"] if counted else None,
    )  # fmt: skip


def _alignment(t: _Array, latency: _Array, observed: Observed | None) -> tuple[str, float, bool]:
    """What the stamps mean, what has to be added to them, and whether the statistics decided."""
    timed = ~np.isnan(latency)
    if observed is None or not timed.any():
        return "arrival", 0.0, False
    present = np.nan_to_num(observed.running) + np.nan_to_num(observed.waiting)
    if not present.any():
        return "arrival", 0.0, False
    seen_from, seen_to = observed.t[0], observed.t[-1]
    overlaps = t.max() >= seen_from and t.min() <= seen_to
    candidates = []
    for offset in [0.0] if overlaps else _ZONES:
        for time_is, begin, end in (
            ("arrival", t[timed], (t + latency)[timed]),
            ("completion", (t - latency)[timed], t[timed]),
        ):
            came = np.searchsorted(np.sort(begin), observed.t - offset, side="right")
            gone = np.searchsorted(np.sort(end), observed.t - offset, side="right")
            candidates.append((float(np.abs(came - gone - present).mean()), abs(offset), offset, time_is))
    _, _, offset, time_is = min(candidates)
    return time_is, offset, True


def _from_lines(store: Store) -> Speed | None:
    told = store.columns_of(
        "SELECT t, prompt_tokens_per_s, generation_tokens_per_s, running FROM seen.engine_stat WHERE t IS NOT NULL "
        "AND prompt_tokens_per_s IS NOT NULL AND generation_tokens_per_s IS NOT NULL AND running IS NOT NULL "
        "AND coalesce(engine, 0) = (SELECT min(coalesce(engine, 0)) FROM seen.engine_stat) ORDER BY source, line"
    )
    return from_statistics(told["t"], told["prompt_tokens_per_s"], told["generation_tokens_per_s"], told["running"])


def _from_latency(arrival: _Array, latency: _Array, inputs: _Array, outputs: _Array) -> Speed | None:
    """Latency alone holds waiting too: only a rough guide, from the faster half of the requests."""
    timed = ~np.isnan(latency) & (latency > 0)
    if not timed.any():
        return None
    pace = latency[timed] / outputs[timed]
    fast = pace <= median(pace)
    begin, end = arrival[timed][fast], (arrival + latency)[timed][fast]
    found = from_requests(begin, begin, end, inputs[timed][fast], outputs[timed][fast])
    if found is None:
        return None
    origin = f"fitted to the latency of the faster half of {int(timed.sum()):,} requests (no first-token times)"
    return replace(found, origin=origin)
