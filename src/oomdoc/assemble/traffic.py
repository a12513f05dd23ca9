"""The request profile of a report: sizes, rates over time, surges, before against during the incident, and who asked.

All of it comes from the traffic views and the table of requests; nothing is guessed where a request log leaves it out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oomdoc.evidence.store import Store, quoted
from oomdoc.units import show_time

BOUNDS = (512, 2048, 8192)  # tokens where M, L and XL begin; views traffic_bucket and traffic have the same
LONG_TOKENS = BOUNDS[1]  # a long context: where the L bucket begins
DURING_S = 600.0  # what counts as "during": the ten minutes before a failure
AFTER_S = 60.0  # and so long after it: a request log has its own clock
SURGE_S = 300.0  # a surge is measured over five minutes,
SURGE_RATIO = 2.0  # from twice the average of all requests on,
SURGE_REQUESTS = 5  # and only where so many requests make it
SHOWN_GROUPS = 10  # tenants and models, the largest first
HEAVIEST = 5  # requests named one by one

_MEASURES = ("input_tokens", "output_tokens", "context_tokens", "latency_s", "ttft_s")


def profile(store: Store, incident: Mapping[str, Any] | None, bounds: Sequence[int] = BOUNDS) -> dict[str, Any]:
    """The traffic section of the report; empty where the bundle holds no requests. Times are ISO 8601.

    `bounds` are the three token counts at which the buckets M, L and XL of prompts and contexts begin.
    """
    rows = store.rows_of("SELECT * FROM traffic")
    if not rows:
        return {}
    row = rows[0]
    answered = row["failed"] + row["refused"] + row["unanswered"] + row["client_gone"]
    told: dict[str, Any] = {
        "requests": row["requests"], "failed": answered, "from_t": show_time(row["from_t"]), "to_t": show_time(row["to_t"]),
        "per_s": row["per_s"], "input_tokens": row["input_tokens"], "output_tokens": row["output_tokens"],
        "buckets": _buckets(store, tuple(bounds)), "percentiles": _percentiles(store), "peaks": {},
    }  # fmt: skip
    flight = store.rows_of("SELECT * FROM traffic_flight")
    if flight and row["from_t"] is not None:  # without a date there is no axis to put it on
        told["in_flight"] = {
            "from_t": show_time(flight[0]["t"]), "step_s": flight[0]["step_s"],
            "tokens": [step["tokens"] for step in flight], "requests": [step["requests"] for step in flight],
            "arrivals": [step["arrivals"] for step in flight], "arrived_tokens": [step["arrived_tokens"] for step in flight],
        }  # fmt: skip
        for name, column in (
            ("tokens_in_flight", "tokens"),
            ("requests_in_flight", "requests"),
            ("arrivals_per_step", "arrivals"),
        ):
            top = max(flight, key=lambda step: (step[column], -step["t"]))
            told["peaks"][name] = {"value": top[column], "t": show_time(top["t"])}
    for key, value in (
        ("surges", _surges(store)),
        ("long_context", _long_context(store, incident)),
        ("incident", _before_and_during(store, incident)),
        ("tenants", _by(store, "tenant")),
        ("models", _by(store, "model")),
        ("heaviest", _heaviest(store, incident)),
    ):
        if value:
            told[key] = value
    return told


def _buckets(store: Store, bounds: tuple[int, ...]) -> dict[str, list[dict[str, Any]]]:
    told: dict[str, list[dict[str, Any]]] = {}
    rows = store.rows_of("SELECT * FROM traffic_bucket")
    if bounds != BOUNDS:
        rows = [row for row in rows if row["measure"] == "output"] + _buckets_at(store, bounds)
    for row in rows:
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


def _buckets_at(store: Store, bounds: tuple[int, ...]) -> list[dict[str, Any]]:
    """Rows as those of view `traffic_bucket`, for prompts and contexts, at other bounds."""
    small, medium, large = (int(bound) for bound in bounds)
    rows = []
    for measure, tokens in (("input", "input_tokens"), ("context", "input_tokens + output_tokens")):
        counted = {
            row["bucket"]: row
            for row in store.rows_of(
                f"SELECT CASE WHEN n < {small} THEN 'S' WHEN n < {medium} THEN 'M' WHEN n < {large} THEN 'L' ELSE 'XL' END AS bucket, "
                f"count(*) AS requests, sum(n)::BIGINT AS tokens FROM (SELECT {tokens} AS n FROM request) WHERE n IS NOT NULL GROUP BY bucket"
            )
        }
        requests = sum(row["requests"] for row in counted.values())
        total = sum(row["tokens"] for row in counted.values())
        for name, limit in zip(("S", "M", "L", "XL"), (small, medium, large, None), strict=True):
            here = counted.get(name, {"requests": 0, "tokens": 0})
            if requests:
                rows.append(
                    {
                        "measure": measure, "bucket": name, "up_to_tokens": limit, "requests": here["requests"],
                        "share": here["requests"] / requests, "token_share": here["tokens"] / total if total else 0.0,
                    }
                )  # fmt: skip
    return rows


def _surges(store: Store) -> dict[str, Any] | None:
    """The five minutes with the longest prompts and those with the most prompt tokens, against the average.

    None for less than ten minutes of requests: there is nothing to compare with.
    """
    rows = store.rows_of(
        f"WITH span AS (SELECT min(t) AS a, max(t) AS b FROM request WHERE input_tokens IS NOT NULL) "
        f"SELECT a + floor((t - a) / {SURGE_S}) * {SURGE_S} AS t, count(*) AS requests, avg(input_tokens) AS mean, sum(input_tokens)::BIGINT AS tokens, any_value(b - a) AS lasted "
        f"FROM request, span WHERE t IS NOT NULL AND input_tokens IS NOT NULL GROUP BY floor((t - a) / {SURGE_S}), a ORDER BY 1"
    )
    if not rows or rows[0]["lasted"] < 2 * SURGE_S:
        return None
    requests, tokens = sum(row["requests"] for row in rows), sum(row["tokens"] for row in rows)
    told: dict[str, Any] = {"window_s": SURGE_S, "from_ratio": SURGE_RATIO}
    for name, average, column in (
        ("prompt_tokens", tokens / requests, "mean"),
        ("prompt_tokens_per_s", tokens / rows[0]["lasted"], "rate"),
    ):
        windows = [{**row, "rate": row["tokens"] / SURGE_S} for row in rows if row["requests"] >= SURGE_REQUESTS]
        if not windows or not average:
            continue
        top = max(windows, key=lambda row: (row[column], -row["t"]))
        ratio = top[column] / average
        told[name] = {
            "average": average, "highest": top[column], "ratio": ratio, "t": show_time(top["t"]), "requests": top["requests"],
            "surge": ratio >= SURGE_RATIO,
        }  # fmt: skip
    return told


def _before_and_during(store: Store, incident: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The same figures of the requests before the incident and of those during it; None without a time or without both."""
    if incident is None or incident["t"] is None:
        return None
    t = float(incident["t"])
    sides = {}
    for name, where in (("before", f"t < {t - DURING_S}"), ("during", f"t BETWEEN {t - DURING_S} AND {t + AFTER_S}")):
        row = store.rows_of(
            "SELECT requests, a, b, input[1] AS input_p50, input[2] AS input_p95, input_max, output[1] AS output_p50, output[2] AS output_p95, tokens, long_share "
            "FROM (SELECT count(*) AS requests, min(t) AS a, max(t) AS b, quantile_disc(input_tokens, [0.5, 0.95]) AS input, "
            "max(input_tokens) AS input_max, quantile_disc(output_tokens, [0.5, 0.95]) AS output, "
            f"sum(input_tokens)::BIGINT AS tokens, avg((input_tokens >= {LONG_TOKENS})::INT) AS long_share FROM request WHERE {where})"
        )[0]
        if not row["requests"]:
            return None
        lasted = row.pop("b") - row["a"]
        row["from_t"] = show_time(row.pop("a"))
        tokens = row.pop("tokens")
        row["lasted_s"] = lasted
        row["per_s"] = row["requests"] / lasted if lasted > 0 else None
        row["prompt_tokens_per_s"] = tokens / lasted if lasted > 0 and tokens is not None else None
        sides[name] = row
    return {"incident": incident["incident"], "t": show_time(t), "window_s": DURING_S, **sides}


def _by(store: Store, column: str) -> list[dict[str, Any]]:
    """Requests by tenant or model, the most tokens first; empty where the requests do not name two of them."""
    rows = store.rows_of(
        f"SELECT {column} AS name, count(*) AS requests, sum(input_tokens)::BIGINT AS input_tokens, sum(output_tokens)::BIGINT AS output_tokens "
        f"FROM request WHERE {column} IS NOT NULL GROUP BY {column}"
    )
    if len(rows) < 2:
        return []
    rows.sort(key=lambda row: (-((row["input_tokens"] or 0) + (row["output_tokens"] or 0)), row["name"]))
    requests = sum(row["requests"] for row in rows)
    tokens = sum((row["input_tokens"] or 0) + (row["output_tokens"] or 0) for row in rows)
    rows = rows[:SHOWN_GROUPS]
    # percentiles of those that are shown alone: of 4,000 tenants they cost five times as much as the sums
    shown = ", ".join(quoted(row["name"]) for row in rows)
    sizes = {
        row["name"]: {"input_p50": row["input_p50"], "input_p95": row["input_p95"]}
        for row in store.rows_of(
            f"SELECT name, p[1] AS input_p50, p[2] AS input_p95 FROM (SELECT {column} AS name, quantile_disc(input_tokens, [0.5, 0.95]) AS p "
            f"FROM request WHERE {column} IN ({shown}) GROUP BY {column})"
        )
    }
    return [
        {
            **row, **sizes[row["name"]], "share": row["requests"] / requests,
            "token_share": ((row["input_tokens"] or 0) + (row["output_tokens"] or 0)) / tokens if tokens else None,
        }
        for row in rows
    ]  # fmt: skip


def _heaviest(store: Store, incident: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """The requests that weighed most: context tokens x seconds (tokens alone without a latency), around the incident if there is one."""
    where = "input_tokens IS NOT NULL"
    if incident is not None and incident["t"] is not None:
        t = float(incident["t"])
        near = f"{where} AND t <= {t + AFTER_S} AND t + coalesce(latency_s, 0) >= {t - DURING_S}"
        if store.rows_of(f"SELECT 1 FROM request WHERE {near} LIMIT 1"):
            where = near
    tokens = "(input_tokens + coalesce(output_tokens, 0))"
    # the least of the heaviest first: sorting a million rows for five of them takes a second
    for weight in (f"{tokens} * latency_s", tokens):
        least = store.rows_of(f"SELECT list_min(max({weight}, {HEAVIEST})) AS least FROM request WHERE {where}")[0]
        if least["least"] is not None:
            break
    else:
        return []
    rows = store.rows_of(
        f"SELECT source || ':' || line AS ref, t, input_tokens, output_tokens, latency_s, tenant, model, {tokens} * latency_s AS token_s "
        f"FROM request WHERE {where} AND {weight} >= {least['least']!r}::DOUBLE ORDER BY {weight} DESC, source, line LIMIT {HEAVIEST}"
    )
    return [{**row, "t": show_time(row["t"])} for row in rows]


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
        f"avg((input_tokens >= {LONG_TOKENS})::INT) FILTER (t >= {t - DURING_S} AND t <= {t + AFTER_S}) AS during FROM request"
    )[0]
    if row["before"] is None or row["during"] is None:
        return None
    return {
        "from_tokens": LONG_TOKENS,
        "share_before": row["before"],
        "share_during": row["during"],
        "incident": incident["incident"],
    }
