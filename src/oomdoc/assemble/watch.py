"""What came near failing, in healthy bundles too: each measured quantity against the threshold that an alert would have.

The thresholds are those of docs/monitoring/alerts.yaml where it has an alert for the same. A quantity that the bundle does
not tell gives no line: silence is not health.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from oomdoc.evidence.store import Store
from oomdoc.model import Watch
from oomdoc.units import GIB, show_bytes

HEADROOM_BYTES = 1 * GIB  # a rare long step, NCCL's buffers or a second context take some hundred MiB
POOL_SHARE = 0.8
QUEUED_SHARE = 0.05  # of the samples: a queue that stands for moments is a queue at work
CONCURRENCY_SHARE = 0.8
STANDING_SHARE = 0.5  # samples with a queue beside room in the pool: below it a queue comes and goes with arrivals
CONTEXT_SHARE = 0.9
SLACK_SHARE = 0.2  # reserved but not allocated, of what torch reserved


def watch(store: Store, traffic: Mapping[str, Any]) -> tuple[Watch, ...]:
    """The quantities that the bundle tells, near ones first; `traffic` is the report's traffic section."""
    told = [*_device(store), *_pool(store), *_load(store), *_contexts(store), *_surge(traffic), *_allocator(store)]
    return tuple(sorted(told, key=lambda item: not item.near))


def _device(store: Store) -> Iterable[Watch]:
    row = _row(
        store,
        "SELECT source, gpu, peak_bytes, total_bytes - peak_bytes AS free FROM device_series "
        "WHERE total_bytes IS NOT NULL AND peak_bytes IS NOT NULL ORDER BY free, source, gpu LIMIT 1",
    )
    if row:
        free, source = row["free"], row["source"].replace("'", "''")
        peak = f"SELECT min(line) AS line FROM gpu_sample WHERE source = '{source}' AND used_bytes = {int(row['peak_bytes'])}"
        refs = tuple(f"{row['source']}:{found['line']}" for found in store.rows_of(peak) if found["line"] is not None)
        said = f"{show_bytes(free)} were left on the fullest device at its fullest"
        yield Watch(
            "device-headroom", said, float(free), float(HEADROOM_BYTES), "bytes", free < HEADROOM_BYTES, refs, "DeviceHeadroomSmall"
        )  # fmt: skip


def _pool(store: Store) -> Iterable[Watch]:
    row = _row(
        store, "SELECT peak, peak_ref, samples, queued, waiting_max, preemptions, preemption_ref FROM kv_pressure"
    )
    if not row:
        return
    if row["peak"] is not None:
        said = f"the KV pool was {row['peak']:.1%} full at most"
        yield Watch(
            "pool-usage",
            said,
            row["peak"],
            POOL_SHARE,
            "share",
            row["peak"] >= POOL_SHARE,
            _refs(row["peak_ref"]),
            "KvPoolNearlyFull",
        )
    if row["samples"] and row["waiting_max"] is not None:
        share = row["queued"] / row["samples"]
        said = f"requests waited in {share:.0%} of {row['samples']:,} {'sample' if row['samples'] == 1 else 'samples'}, {row['waiting_max']:,.0f} at most"
        yield Watch(
            "queue",
            said,
            share,
            QUEUED_SHARE,
            "share",
            share >= (QUEUED_SHARE if row["peak"] is None or row["peak"] >= POOL_SHARE else STANDING_SHARE),
            _refs(row["peak_ref"]),
            "QueueAtAFullPool",
        )
    if row["preemptions"] is not None:
        said = f"{row['preemptions']:,} preemptions were counted"
        yield Watch(
            "preemptions",
            said,
            float(row["preemptions"]),
            1.0,
            "count",
            row["preemptions"] > 0,
            _refs(row["preemption_ref"]),
            "Preempting",
        )


def _load(store: Store) -> Iterable[Watch]:
    row = _row(
        store,
        "SELECT k.running_max, e.max_num_seqs, k.peak_ref FROM kv_pressure k, engine e WHERE k.running_max IS NOT NULL AND e.max_num_seqs > 0",
    )
    if row:
        share = row["running_max"] / row["max_num_seqs"]
        said = f"{row['running_max']:,.0f} of {row['max_num_seqs']:,} sequences (max_num_seqs) ran at once at most"
        yield Watch(
            "concurrency",
            said,
            share,
            CONCURRENCY_SHARE,
            "share",
            share >= CONCURRENCY_SHARE,
            _refs(row["peak_ref"]),
            None,
        )


def _contexts(store: Store) -> Iterable[Watch]:
    row = _row(
        store, "SELECT t.context_max, e.max_model_len FROM traffic t, engine e WHERE t.context_max IS NOT NULL AND e.max_model_len > 0"
    )  # fmt: skip
    if row:
        share = row["context_max"] / row["max_model_len"]
        longest = f"SELECT source || ':' || line AS ref FROM request WHERE input_tokens + output_tokens = {int(row['context_max'])} ORDER BY source, line LIMIT 1"
        refs = tuple(found["ref"] for found in store.rows_of(longest))
        said = f"the longest context had {row['context_max']:,.0f} of {row['max_model_len']:,} tokens (max_model_len)"
        yield Watch("longest-context", said, share, CONTEXT_SHARE, "share", share >= CONTEXT_SHARE, refs, None)


def _surge(traffic: Mapping[str, Any]) -> Iterable[Watch]:
    surges = traffic.get("surges") or {}
    if told := surges.get("prompt_tokens"):
        said = f"prompts were {told['ratio']:.1f} times as long as on average in the five minutes from {told['t']}"
        yield Watch(
            "context-surge", said, told["ratio"], surges["from_ratio"], "ratio", told["surge"], (), "ContextSurge"
        )


def _allocator(store: Store) -> Iterable[Watch]:
    row = _row(
        store,
        "SELECT cached_bytes, reserved_bytes, ref FROM allocator WHERE cached_bytes IS NOT NULL AND reserved_bytes > 0",
    )
    if row:
        share = row["cached_bytes"] / row["reserved_bytes"]
        said = f"torch held {show_bytes(row['cached_bytes'])} that nothing used, {share:.0%} of what it had reserved"
        yield Watch("allocator-slack", said, share, SLACK_SHARE, "share", share >= SLACK_SHARE, _refs(row["ref"]), None)


def _row(store: Store, sql: str) -> dict[str, Any] | None:
    return next(iter(store.rows_of(sql)), None)


def _refs(ref: str | None) -> tuple[str, ...]:
    return (ref,) if ref else ()
