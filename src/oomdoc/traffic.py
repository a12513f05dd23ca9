"""The request profile of a report: buckets, percentiles, peaks and the share of long contexts, from the traffic views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oomdoc.store import Store
from oomdoc.units import show_time

LONG_TOKENS = 2048  # where the L bucket begins
DURING_S = 600.0  # what counts as "during": the ten minutes before a failure

_MEASURES = ("input_tokens", "output_tokens", "context_tokens", "latency_s", "ttft_s")


def profile(store: Store, incident: Mapping[str, Any] | None) -> dict[str, Any]:
    """The traffic section of the report; empty where the bundle holds no requests. Times are ISO 8601."""
    rows = store.rows_of("SELECT * FROM traffic")
    if not rows:
        return {}
    row = rows[0]
    answered = row["failed"] + row["refused"] + row["unanswered"] + row["client_gone"]
    told: dict[str, Any] = {
        "requests": row["requests"], "failed": answered, "from_t": show_time(row["from_t"]), "to_t": show_time(row["to_t"]),
        "per_s": row["per_s"], "input_tokens": row["input_tokens"], "output_tokens": row["output_tokens"],
        "buckets": _buckets(store), "percentiles": _percentiles(store), "peaks": {},
    }  # fmt: skip
    flight = store.rows_of("SELECT * FROM traffic_flight")
    if flight:
        told["in_flight"] = {
            "from_t": show_time(flight[0]["t"]), "step_s": flight[0]["step_s"],
            "tokens": [step["tokens"] for step in flight], "requests": [step["requests"] for step in flight],
        }  # fmt: skip
        for name, column in (
            ("tokens_in_flight", "tokens"),
            ("requests_in_flight", "requests"),
            ("arrivals_per_step", "arrivals"),
        ):
            top = max(flight, key=lambda step: (step[column], -step["t"]))
            told["peaks"][name] = {"value": top[column], "t": show_time(top["t"])}
    share = _long_context(store, incident)
    if share:
        told["long_context"] = share
    return told


def _buckets(store: Store) -> dict[str, list[dict[str, Any]]]:
    told: dict[str, list[dict[str, Any]]] = {}
    for row in store.rows_of("SELECT * FROM traffic_bucket"):
        told.setdefault(row["measure"], []).append(
            {
                "name": row["bucket"],
                "up_to_tokens": row["up_to_tokens"],
                "requests": row["requests"],
                "share": row["share"],
                "token_share": row["token_share"],
            }
        )
    return told


def _percentiles(store: Store) -> dict[str, dict[str, Any]]:
    rows = {row["measure"]: row for row in store.rows_of("SELECT * FROM request_size")}
    told = {}
    for name in _MEASURES:
        if name in rows:
            number = int if name.endswith("_tokens") else float
            told[name] = {key: number(rows[name][key]) for key in ("p50", "p90", "p95", "p99")}
            told[name]["max"] = number(rows[name]["largest"])
    return told


def _long_context(store: Store, incident: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if incident is None or incident["t"] is None:
        return None
    t = float(incident["t"])
    row = store.rows_of(
        f"SELECT avg((input_tokens >= {LONG_TOKENS})::INT) FILTER (t < {t - DURING_S}) AS before, "
        f"avg((input_tokens >= {LONG_TOKENS})::INT) FILTER (t >= {t - DURING_S} AND t <= {t + 60}) AS during FROM request"
    )[0]
    if row["before"] is None or row["during"] is None:
        return None
    return {
        "from_tokens": LONG_TOKENS,
        "share_before": row["before"],
        "share_during": row["during"],
        "incident": incident["incident"],
    }
