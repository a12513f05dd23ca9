"""What happened when: the series and moments of a bundle on one grid of time, made small enough to be drawn and sent.

Everything comes from tables that carry times; a step without a reading is NULL, and nothing is drawn between. A grid has
at most `STEPS` steps, whatever the bundle holds, and each step tells the highest reading in it (counts: their sum).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oomdoc.evidence.store import Store
from oomdoc.units import show_time

STEPS = 360  # columns that a chart of a page's width can show
AFTERWARDS_S = 1.0  # what tells of a cause later than the last failure is a reading taken afterwards, not its moment
BEFORE_S = 86_400.0  # a day before the failure (or before the last evidence) is looked at,
AFTER_S = 21_600.0  # and a quarter of a day after it
MOST_DEVICES = 16
MOST_PROCESSES = 4
MOST_MARKS = 40
MOST_PROVEN = 8  # references of the first cause whose moments are marked
BOUNDS = (512, 2048, 8192)  # prompt tokens where M, L and XL begin, as in the request profile

_TIMED = ("engine_stat", "gpu_sample", "request", "metric", "milestone", "preemption", "process_memory")
_PROVING = (
    "engine_stat", "gpu_sample", "metric", "milestone", "preemption", "oom", "startup_check", "log_error", "crash_step", "process_exit", "host_event",
    "cluster_event", "engine_figure", "process_memory",
)  # fmt: skip
_FAILURES = {
    "device-oom": "out of memory on the device", "startup-check": "refused at start", "host-kill": "killed by the host", "host-alloc": "out of host memory",
    "shm": "out of shared memory", "error": "error", "exit": "process ended", "echo": "consequence of a failure", "pressure": "KV pool at its limit",
    "restart": "restarted",
}  # fmt: skip


def timeline(store: Store, incident: Mapping[str, Any] | None, proof: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
    """Series and marks as plain data (docs/json.md); empty where nothing in the bundle carries a time.

    `proof` are (reference, sentence) of what speaks for the first cause. Times are ISO 8601, sizes bytes, shares 0..1.
    """
    window = _window(store, incident)
    if window is None:
        return {}
    begin, end = window
    step_s = max(1.0, -(-(end - begin) // STEPS))
    grid = _Grid(store, begin, step_s, int((end - begin) // step_s) + 1)
    series = [*_devices(grid), *_pool(grid), *_preemptions(grid), *_requests(grid), *_host(grid)]
    marks = _marks(store, begin, end, proof)
    if not series and not marks:
        return {}
    return {"from_t": show_time(begin), "step_s": step_s, "steps": grid.steps, "series": series, "marks": marks}


def _window(store: Store, incident: Mapping[str, Any] | None) -> tuple[float, float] | None:
    """First and last moment of the evidence, cut to what lies around the failure: clocks of other sources may be years off."""
    tables = [name for name in _TIMED if name in store.filled]
    if not tables:
        return None
    centre = None if incident is None else incident["t"]
    if centre is None:
        ends = " UNION ALL ".join(f"SELECT max(t) AS t FROM {name}" for name in tables)
        centre = store.rows_of(f"SELECT max(t) AS t FROM ({ends})")[0]["t"]
    if centre is None:
        return None
    low, high = float(centre) - BEFORE_S, float(centre) + AFTER_S
    ends = " UNION ALL ".join(
        f"SELECT min(t) AS a, max(t) AS b FROM {name} WHERE t BETWEEN {low} AND {high}" for name in tables
    )
    row = store.rows_of(f"SELECT min(a) AS a, max(b) AS b FROM ({ends})")[0]
    if row["a"] is None:
        return None
    return min(row["a"], float(centre)), max(row["b"], float(centre))


class _Grid:
    """Even steps of time, and readings put on them."""

    def __init__(self, store: Store, begin: float, step_s: float, steps: int) -> None:
        self.store, self.begin, self.step_s, self.steps = store, begin, step_s, steps

    def columns(
        self, sql: str, names: Sequence[str], fold: str = "max", keys: Sequence[str] = ("key",)
    ) -> dict[Any, dict[str, list[Any]]]:
        """Per key the named columns as one value per step, NULL where there is none; `sql` gives `keys`, `t` and the columns.

        Several keys together are a tuple: to make a text of them for every row would double the price.
        """
        until = self.begin + self.step_s * self.steps
        asked = ", ".join(f"{fold}({name}) AS {name}" for name in names)
        rows = self.store.rows_of(
            f"SELECT {', '.join(keys)}, floor((t - {self.begin}) / {self.step_s})::INTEGER AS step, {asked} FROM ({sql}) "
            f"WHERE t >= {self.begin} AND t < {until} GROUP BY ALL"
        )
        told: dict[Any, dict[str, list[Any]]] = {}
        for row in rows:
            key = row[keys[0]] if len(keys) == 1 else tuple(row[name] for name in keys)
            columns = told.get(key)
            if columns is None:
                columns = told[key] = {name: [None] * self.steps for name in names}
            for name in names:
                columns[name][row["step"]] = row[name]
        return told


def _series(chart: str, name: str, unit: str, values: list[Any], limit: float | None = None) -> list[dict[str, Any]]:
    """One series, or none where every step is NULL."""
    if all(value is None for value in values):
        return []
    rounded = [round(value, 4) if isinstance(value, float) else value for value in values]
    return [{"chart": chart, "name": name, "unit": unit, "limit": limit, "values": rounded}]


def _devices(grid: _Grid) -> list[dict[str, Any]]:
    if "gpu_sample" not in grid.store.filled:
        return []
    found = grid.columns(
        "SELECT gpu, source, t, used_bytes AS used, total_bytes AS total FROM gpu_sample WHERE used_bytes IS NOT NULL AND gpu IS NOT NULL",
        ("used", "total"),
        keys=("gpu", "source"),
    )
    keys = sorted(found)[:MOST_DEVICES]
    indexes = [index for index, _ in keys]
    told = []
    for key in keys:
        index, source = key
        name = f"GPU {index}" + (f", {source}" if indexes.count(index) > 1 else "")
        total = max((value for value in found[key]["total"] if value is not None), default=None)
        told += _series("device_memory", name, "bytes", found[key]["used"], total)
    return told


def _pool(grid: _Grid) -> list[dict[str, Any]]:
    """Usage, running and waiting out of statistics lines, or out of metrics where there are hardly any lines."""
    names = ("used", "running", "waiting")
    lines = "SELECT 1 AS key, t, kv_used AS used, running, waiting FROM engine_stat WHERE kv_used IS NOT NULL"
    found = grid.columns(lines, names).get(1)
    if found is None or sum(value is not None for value in found["used"]) < 3:
        gauges = (
            "SELECT 1 AS key, t, CASE WHEN name IN ('vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc') AND value BETWEEN 0 AND 1 THEN value END AS used, "
            "CASE WHEN name = 'vllm:num_requests_running' THEN value END AS running, CASE WHEN name = 'vllm:num_requests_waiting' THEN value END AS waiting "
            "FROM metric WHERE labels IS DISTINCT FROM 'delta'"
        )
        found = grid.columns(gauges, names).get(1, found)
    if found is None:
        return []
    return [
        *_series("kv_used", "KV pool in use", "share", found["used"], 1.0),
        *_series("requests", "running", "requests", found["running"]),
        *_series("requests", "waiting", "requests", found["waiting"]),
    ]


def _preemptions(grid: _Grid) -> list[dict[str, Any]]:
    """Preemptions per step: counted by statistics lines, else the growth of the counter, else the warnings (which are rate-limited)."""
    counted = "SELECT 1 AS key, t, preemptions AS n FROM engine_stat WHERE preemptions IS NOT NULL"
    grown = (
        "SELECT 1 AS key, t, CASE WHEN grown < 0 THEN 0 ELSE grown END AS n FROM (SELECT t, value - lag(value) OVER (PARTITION BY name, labels ORDER BY t, line) AS grown FROM metric "
        "WHERE t IS NOT NULL AND name IN ('vllm:num_preemptions_total', 'vllm:num_preemptions') AND labels IS DISTINCT FROM 'delta')"
    )
    warned = "SELECT 1 AS key, t, 1 AS n FROM preemption WHERE t IS NOT NULL"
    for name, sql in (("preemptions", counted), ("preemptions since the scrape before", grown), ("warnings", warned)):
        found = grid.columns(sql, ("n",), "sum").get(1)
        if found is not None and any(value is not None for value in found["n"]):
            values = [None if value is None else int(value) for value in found["n"]]
            return _series("preemptions", name, "preemptions", values)
    return []


def _requests(grid: _Grid) -> list[dict[str, Any]]:
    """Arrivals per step by the size class of their prompt; a step without any is zero within the time that the log covers."""
    if "request" not in grid.store.filled:
        return []
    small, medium, large = BOUNDS
    found = grid.columns(
        f"SELECT CASE WHEN input_tokens < {small} THEN 0 WHEN input_tokens < {medium} THEN 1 WHEN input_tokens < {large} THEN 2 ELSE 3 END AS key, t, 1 AS n "
        "FROM request WHERE t IS NOT NULL AND input_tokens IS NOT NULL",
        ("n",),
        "sum",
    )
    seen = [step for columns in found.values() for step, n in enumerate(columns["n"]) if n is not None]
    told = []
    for key, name in enumerate(("S", "M", "L", "XL")):
        if key in found:
            values = [
                int(n) if n is not None else 0 if min(seen) <= step <= max(seen) else None
                for step, n in enumerate(found[key]["n"])
            ]
            told += _series("arrivals", name, "requests", values)
    return told


def _host(grid: _Grid) -> list[dict[str, Any]]:
    if "process_memory" not in grid.store.filled:
        return []
    found = grid.columns(
        "SELECT coalesce(name, 'process') AS key, t, bytes AS used FROM process_memory WHERE resource = 'host'",
        ("used",),
    )
    highest = {
        key: max((value for value in columns["used"] if value is not None), default=0) for key, columns in found.items()
    }
    keys = sorted(found, key=lambda key: (-highest[key], key))[:MOST_PROCESSES]
    return [entry for key in keys for entry in _series("host_memory", str(key), "bytes", found[key]["used"])]


# ---- moments


def _marks(store: Store, begin: float, end: float, proof: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """Starts, failures, kills and the proof of the first cause, by time."""
    marks: list[tuple[float, int, str, str, str]] = []
    for row in store.rows_of(
        "SELECT t, source || ':' || greatest(first_line, 1) AS ref, version FROM engine_start WHERE marked AND t IS NOT NULL"
    ):
        marks.append(
            (row["t"], 0, "start", "engine start" + (f", vLLM {row['version']}" if row["version"] else ""), row["ref"])
        )
    for row in store.rows_of(
        "SELECT t, source || ':' || line AS ref FROM milestone WHERE name = 'serving' AND t IS NOT NULL "
        "QUALIFY row_number() OVER (PARTITION BY source, t ORDER BY line) = 1"
    ):
        marks.append((row["t"], 1, "serving", "serving", row["ref"]))
    failed = store.rows_of("SELECT t, kind, ref FROM incident WHERE t IS NOT NULL")
    last = max((row["t"] for row in failed), default=None)
    for ref, says, t in _moments(store, proof):
        if last is None or t <= last + AFTERWARDS_S:
            marks.append((t, 2, "evidence", says, ref))
    for row in failed:
        marks.append((row["t"], 3, "failure", _FAILURES.get(row["kind"], row["kind"]), row["ref"]))
    for row in store.rows_of(
        "SELECT t, kind, source || ':' || line AS ref FROM host_event WHERE t IS NOT NULL AND kind LIKE '%kill%' AND source || ':' || line NOT IN (SELECT ref FROM incident)"
    ):
        marks.append((row["t"], 4, "kill", row["kind"].replace("-", " "), row["ref"]))
    inside = sorted(mark for mark in marks if begin <= mark[0] <= end)
    kept = sorted(sorted(inside, key=lambda mark: -mark[1])[:MOST_MARKS])  # of too many the starts go first
    return [{"t": show_time(t), "kind": kind, "says": says, "ref": ref} for t, _, kind, says, ref in kept]


def _moments(store: Store, proof: Sequence[tuple[str, str]]) -> list[tuple[str, str, float]]:
    """(reference, sentence, time) of the references whose lines carry a time."""
    places = []
    for ref, says in dict(reversed(proof[:MOST_PROVEN])).items():
        source, _, line = ref.rpartition(":")
        if source and line.isdecimal() and len(line) < 10:
            places.append((ref, says, source, int(line)))
    tables = [name for name in _PROVING if name in store.filled]
    if not places or not tables:
        return []
    lines = ", ".join(str(line) for line in sorted({line for *_, line in places}))
    asked = " UNION ALL ".join(
        f"SELECT source, line, t FROM {name} WHERE t IS NOT NULL AND line IN ({lines})" for name in tables
    )
    rows = store.rows_of(f"SELECT source, line, min(t) AS t FROM ({asked}) GROUP BY ALL")
    times = {(row["source"], row["line"]): row["t"] for row in rows}
    return [(ref, says, times[source, line]) for ref, says, source, line in places if (source, line) in times]
