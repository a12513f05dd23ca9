"""The morning report out of a store: what is new tonight, what came back, what stopped, and what moved with what.

Everything is asked from the committed tables, so that a night tells the same however often the sweep was interrupted.
Only bundles that were read count in shares: what new rules say of old evidence is no new observation.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from oomdoc.evidence.questions import Questions
from oomdoc.model.morning import (
    NO_FAILURE,
    ChangePoint,
    Counts,
    Failing,
    Group,
    Morning,
    Outlier,
    Quiet,
    ReadError,
    Resolved,
    Standing,
    Trend,
)
from oomdoc.physics.defaults import version_number
from oomdoc.sweep.columns import READ, TABLES
from oomdoc.sweep.dataset import Dataset
from oomdoc.sweep.statistics import best_split, fisher

WINDOW_NIGHTS = 14  # what "before" means in trends and for resolved fingerprints: two weeks hold every weekday twice
CERTAIN_FROM = 0.01  # a difference is told when chance gives it less often than this
LEAST_BUNDLES = 5  # on either side of a change point
MOST_LISTED = 200  # of hosts in a group, of values in a trend: the dataset has them all

VIEWS: Mapping[str, str] = {
    **{
        f"latest_{name}": f"SELECT t.* FROM {name} t SEMI JOIN (SELECT bundle, max(night) AS night FROM bundle GROUP BY bundle) b "
        "ON t.bundle = b.bundle AND t.night = b.night"
        for name in TABLES
        if name not in ("evidence", "seen")
    },
    "new_incident": "SELECT * FROM incident WHERE night = first_night",
}
"""Views that a store offers beside its tables: `latest_<table>` is the last word on every bundle, `new_incident` has each once."""

_MEMORY = "cause NOT IN ('healthy', 'not-memory')"


_RUNS_TEXT = ("query", "execute")  # in the names of functions of DuckDB that take SQL as text, or a table's name


class Asked(Questions):
    """The tables and views of a store, ready to be asked: the files of the tables that a query names are proven first.

    DamagedError where one of them is not what was written.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        super().__init__(dataset.tables(), VIEWS)

    def query(self, sql: str, limit: int | None = None, hint: str = "") -> tuple[list[str], list[tuple[Any, ...]]]:
        """As of any `Questions`."""
        self._prove(sql)
        return super().query(sql, limit, hint)

    def rows_of(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        """As of any `Questions`."""
        self._prove(sql)
        return super().rows_of(sql, *values)

    def _prove(self, sql: str) -> None:
        text = sql.lower()
        every = any(word in text for word in _RUNS_TEXT)
        for part in self._dataset.manifest.files:
            # names of views hold those of their tables, and all `latest_` ones ask `bundle` too
            if every or part.table in text or (part.table == "bundle" and "latest_" in text):
                self._dataset.need(part)


def questions(dataset: Dataset) -> Asked:
    """The tables and views of a store, ready to be asked."""
    return Asked(dataset)


def morning(
    dataset: Dataset,
    night: str,
    present: Iterable[str] | None,
    warnings: Sequence[str] = (),
    titles: Mapping[str, str] = MappingProxyType({}),
    pages: Mapping[str, str] = MappingProxyType({}),
) -> Morning:
    """The report of a committed night. `present` are the bundles that are there tonight; None: all that are known.

    `titles` are the causes in words, `pages` the report of each bundle as seen from the morning report.
    """
    told: Mapping[str, Any] = next((entry for entry in dataset.manifest.nights if entry["night"] == night), {})
    with questions(dataset) as ask:
        here = (
            set(present)
            if present is not None
            else {row["bundle"] for row in ask.rows_of("SELECT DISTINCT bundle FROM bundle")}
        )
        since = (dt.date.fromisoformat(night) - dt.timedelta(days=WINDOW_NIGHTS)).isoformat()
        errors = _errors(ask, here)
        previous = ask.rows_of("SELECT max(night) AS night FROM bundle WHERE night < $1::DATE", night)[0]["night"]
        return Morning(
            night=night,
            previous=previous.isoformat() if previous else None,
            oomdoc_version=str(told.get("oomdoc_version", "")),
            rules_version=str(told.get("rules_version", "")),
            counts=_counts(ask, night, len(here), len(errors)),
            groups=_groups(ask, night),
            resolved=_resolved(ask, night, since),
            trends=_trends(ask, night, since) if previous else (),
            changes=_changes(ask, night),
            outliers=_outliers(ask, night, since),
            errors=errors,
            failing=tuple(Failing(**row) for row in ask.rows_of(
                "SELECT bundle, host, verdict, cause, probability, model, version, new_failures FROM bundle "
                "WHERE night = $1::DATE AND new_failures > 0 ORDER BY bundle", night)),
            warnings=tuple(warnings),
            standing=_standing(ask, night, here, dataset.manifest.states, titles, pages),
            quiet=_quiet(ask, night, here, pages),
        )  # fmt: skip


def _counts(ask: Questions, night: str, found: int, errors: int) -> Counts:
    row = ask.rows_of(
        "SELECT count(*) AS told, count(*) FILTER (status = 'read') AS read, count(*) FILTER (status = 'judged') AS judged, "
        "count(*) FILTER (status = 'copy') AS copies, count(*) FILTER (new_failures > 0) AS failing, "
        "count(*) FILTER (verdict = 'healthy' AND status <> 'copy') AS healthy, count(*) FILTER (verdict = 'not-memory' AND status <> 'copy') AS not_memory, "
        "count(*) FILTER (verdict = 'undecided' AND status <> 'copy') AS undecided, count(*) FILTER (verdict = 'no-server' AND status <> 'copy') AS no_server, coalesce(sum(bytes) FILTER (status IN ('read', 'copy')), 0)::BIGINT AS bytes "
        "FROM bundle WHERE night = $1::DATE", night)[0]  # fmt: skip
    unchanged = max(0, found - row.pop("told"))
    return Counts(found=found, unchanged=unchanged, errors=errors, **row)


def _groups(ask: Questions, night: str) -> tuple[Group, ...]:
    """Tonight's incidents by fingerprint: new ones first, then those with most incidents. Healthy ones are no incidents."""
    rows = ask.rows_of(
        "WITH tonight AS (SELECT * FROM incident WHERE night = $1::DATE AND first_night = $1::DATE AND cause IS DISTINCT FROM 'healthy'), "
        "earlier AS (SELECT fingerprint, count(*) AS before, count(DISTINCT night) AS nights, min(night) AS first_night FROM new_incident "
        " WHERE night < $1::DATE GROUP BY fingerprint) "
        "SELECT t.fingerprint, e.fingerprint IS NULL AS new, any_value(t.cause) AS cause, any_value(t.reason) AS reason, "
        "max(t.probability) AS probability, any_value(t.model) AS model, any_value(t.version) AS version, any_value(t.flags) AS flags, "
        "count(*) AS incidents, count(DISTINCT t.bundle) AS bundles, list(DISTINCT t.host ORDER BY t.host) FILTER (t.host IS NOT NULL) AS hosts, "
        "coalesce(any_value(e.first_night), $1::DATE) AS first_night, coalesce(any_value(e.before), 0) AS before, "
        "coalesce(any_value(e.nights), 0) + 1 AS nights, "
        "first(t.bundle ORDER BY t.probability DESC NULLS LAST, t.bundle, t.incident) AS example, first(t.ref ORDER BY t.probability DESC NULLS LAST, t.bundle, t.incident) AS ref, "
        "first(t.text ORDER BY t.probability DESC NULLS LAST, t.bundle, t.incident) AS text, first(t.action ORDER BY t.probability DESC NULLS LAST, t.bundle, t.incident) AS action "
        "FROM tonight t LEFT JOIN earlier e ON e.fingerprint = t.fingerprint GROUP BY t.fingerprint, e.fingerprint", night)  # fmt: skip
    groups = [
        Group(
            **{**row, "hosts": tuple((row["hosts"] or [])[:MOST_LISTED]), "first_night": row["first_night"].isoformat()}
        )
        for row in rows
    ]
    return tuple(
        sorted(
            groups,
            key=lambda group: (
                group.cause in NO_FAILURE,
                not group.new,
                -group.incidents,
                -group.bundles,
                group.fingerprint,
            ),
        )
    )


_HURTS = ("device-oom", "host-kill", "host-alloc", "shm", "startup-check", "exit", "restart", "error", "echo", "verdict", "pressure")  # fmt: skip
"""Kinds of incidents by what they cost: a server that is gone, one that does not start, one that is slow."""
_STATES = ("new", "known", "acknowledged", "gone")


def _standing(
    ask: Questions,
    night: str,
    here: set[str],
    said: Sequence[Mapping[str, str]],
    titles: Mapping[str, str],
    pages: Mapping[str, str],
) -> tuple[Standing, ...]:
    """Every incident of the bundles that are there, one row for those alike in a bundle: new first, then by what hurts."""
    rows = ask.rows_of(
        "SELECT i.fingerprint, i.bundle, any_value(b.verdict) AS verdict, coalesce(any_value(i.host), any_value(b.host)) AS host, any_value(i.model) AS model, any_value(i.version) AS version, "
        "any_value(i.cause) AS cause, max(i.probability) AS probability, first(i.kind ORDER BY i.incident) AS event, min(i.started) AS started, min(i.first_night) AS since, "
        "first(i.ref ORDER BY i.incident) AS ref, first(i.text ORDER BY i.incident) AS text, first(i.action ORDER BY i.incident) AS action, first(i.title ORDER BY i.incident) AS title, first(i.cost ORDER BY i.incident) AS cost, count(*) AS times "
        "FROM latest_incident i JOIN latest_bundle b ON b.bundle = i.bundle WHERE i.cause IS DISTINCT FROM 'healthy' "
        "GROUP BY i.bundle, i.fingerprint"
    )  # fmt: skip
    first_seen = {
        row["fingerprint"]: row["night"]
        for row in ask.rows_of("SELECT fingerprint, min(night) AS night FROM incident GROUP BY 1")
    }
    about = {
        row["fingerprint"]: (row["cause"], row["model"])
        for row in ask.rows_of(
            "SELECT DISTINCT fingerprint, any_value(cause) AS cause, any_value(model) AS model FROM incident GROUP BY 1"
        )
    }
    states = {entry["fingerprint"]: entry for entry in said}
    cures = [
        (about.get(entry["fingerprint"], (None, None)), entry)
        for entry in said
        if entry["state"] == "gone" and entry["note"]
    ]
    made = []
    moved = _moved_to(ask, here)
    rows = [{**row, "bundle": moved.get(row["bundle"], row["bundle"])} for row in rows]
    rows = [row for row in rows if row["bundle"] in here]
    names = short_names([row["bundle"] for row in rows])
    for row in rows:
        entry = states.get(row["fingerprint"])
        fresh = first_seen[row["fingerprint"]].isoformat() == night
        state = "new" if fresh and entry is None else entry["state"] if entry else "known"
        alike = [
            other
            for (cause, model), other in cures
            if cause == row["cause"] and model == row["model"] and other is not entry
        ]
        alike = alike or [other for (cause, _), other in cures if cause == row["cause"] and other is not entry]
        since = row.pop("since").isoformat()
        if entry and state == "gone" and since > entry["night"]:
            state = "new"  # it came back after somebody had said that it was gone
        title = row.pop("title") or titles.get(row["cause"] or "", row["cause"] or "not ranked")
        made.append(Standing(
            **row, name=names[row["bundle"]], since=since, state=state, title=title, note=(entry["note"] or None) if entry else None,
            cured=alike[-1]["note"] if alike else None, page=pages.get(row["bundle"]),
        ))  # fmt: skip
    return tuple(sorted(made, key=_hurts))


def _quiet(ask: Questions, night: str, here: set[str], pages: Mapping[str, str]) -> tuple[Quiet, ...]:
    """Bundles told tonight that have no row among the incidents, in order of verdict and name."""
    rows = ask.rows_of(
        "SELECT bundle, verdict, probability, model, version FROM bundle WHERE night = $1::DATE AND verdict IS NOT NULL AND status <> 'copy' "
        "AND bundle NOT IN (SELECT bundle FROM latest_incident WHERE cause IS DISTINCT FROM 'healthy') ORDER BY verdict, bundle", night)  # fmt: skip
    rows = [row for row in rows if row["bundle"] in here]
    names = short_names([row["bundle"] for row in rows])
    return tuple(Quiet(**row, name=names[row["bundle"]], page=pages.get(row["bundle"])) for row in rows)


def _moved_to(ask: Questions, here: set[str]) -> dict[str, str]:
    """Bundle that is not there any more -> the first of its copies that is: a bundle that was moved keeps its incidents."""
    moved: dict[str, str] = {}
    for row in ask.rows_of("SELECT bundle, copy_of FROM latest_bundle WHERE copy_of IS NOT NULL ORDER BY bundle"):
        if row["bundle"] in here and row["copy_of"] not in here:
            moved.setdefault(row["copy_of"], row["bundle"])
    return moved


def short_names(bundles: Iterable[str]) -> dict[str, str]:
    """What tells the bundles of a report apart: what follows the folder that all of them are in.

    >>> short_names(["/b/night/a.tgz", "/b/c-1/pod-logs", "/b/c-2/pod-logs"])
    {'/b/night/a.tgz': 'night/a.tgz', '/b/c-1/pod-logs': 'c-1/pod-logs', '/b/c-2/pod-logs': 'c-2/pod-logs'}
    """
    parts = {bundle: bundle.split("/") for bundle in bundles}
    folders = [each[:-1] for each in parts.values()]
    shared = 0
    while folders and all(len(each) > shared and each[shared] == folders[0][shared] for each in folders):
        shared += 1
    return {bundle: "/".join(each[shared:]) for bundle, each in parts.items()}


_LOST = re.compile(r"([\d,]+) (?:of [\d,]+ )?requests? (?:failed|lost)")


def _hurts(item: Standing) -> tuple[Any, ...]:
    """How it failed, then how many requests users lost; an incident without a cause stands behind those that have one."""
    kind = _HURTS.index(item.event) if item.event in _HURTS else len(_HURTS)
    memory = item.cause not in NO_FAILURE
    lost = int(told[1].replace(",", "")) if (told := _LOST.search(item.cost or "")) else 0
    return (
        _STATES.index(item.state), not memory, kind, item.verdict == "undecided", -lost, -(item.probability or 0), item.bundle, item.fingerprint,
    )  # fmt: skip


def _resolved(ask: Questions, night: str, since: str) -> tuple[Resolved, ...]:
    rows = ask.rows_of(
        f"WITH past AS (SELECT * FROM new_incident WHERE night < $1::DATE AND night >= $2::DATE AND {_MEMORY}), "
        "back AS (SELECT DISTINCT fingerprint FROM new_incident WHERE night = $1::DATE), "
        "fresh AS (SELECT DISTINCT bundle, host, model FROM bundle WHERE night = $1::DATE AND status = 'read'), "
        "gone AS (SELECT fingerprint, any_value(cause) AS cause, any_value(model) AS model, any_value(version) AS version, "
        " count(*) AS incidents, max(night) AS last_night FROM past WHERE fingerprint NOT IN (SELECT fingerprint FROM back) GROUP BY fingerprint), "
        "places AS (SELECT DISTINCT fingerprint, bundle, host FROM past), "
        "same_place AS (SELECT fingerprint, count(DISTINCT bundle) AS read FROM ("
        " SELECT p.fingerprint, f.bundle FROM places p JOIN fresh f ON f.bundle = p.bundle UNION "
        " SELECT p.fingerprint, f.bundle FROM places p JOIN fresh f ON f.host = p.host) GROUP BY fingerprint), "
        "same_model AS (SELECT model, count(*) AS read FROM fresh WHERE model IS NOT NULL GROUP BY model) "
        "SELECT g.*, greatest(coalesce(s.read, 0), coalesce(m.read, 0)) AS told FROM gone g LEFT JOIN same_place s ON s.fingerprint = g.fingerprint "
        "LEFT JOIN same_model m ON m.model = g.model WHERE told > 0 ORDER BY g.incidents DESC, g.fingerprint", night, since)  # fmt: skip
    return tuple(
        Resolved(
            row["fingerprint"],
            row["cause"],
            row["model"],
            row["version"],
            row["incidents"],
            row["last_night"].isoformat(),
            row["told"],
        )
        for row in rows
    )


def _trends(ask: Questions, night: str, since: str) -> tuple[Trend, ...]:
    trends: list[Trend] = []
    window = "night <= $1::DATE AND night >= $2::DATE AND status = 'read'"
    totals = ask.rows_of(
        f"SELECT count(*) FILTER (night = $1::DATE) AS bundles, count(*) FILTER (night < $1::DATE) AS before_bundles FROM bundle WHERE {window}", night, since
    )[0]  # fmt: skip
    causes = ask.rows_of(
        "SELECT cause AS value, count(DISTINCT bundle) FILTER (night = $1::DATE) AS failing, "
        "count(DISTINCT bundle || night::VARCHAR) FILTER (night < $1::DATE) AS before_failing "
        f"FROM new_incident WHERE night <= $1::DATE AND night >= $2::DATE AND {_MEMORY} GROUP BY cause", night, since)  # fmt: skip
    trends += [Trend("cause", **row, **totals) for row in causes]
    for dimension in ("model", "version", "host"):
        rows = ask.rows_of(
            f"SELECT {dimension} AS value, count(*) FILTER (night = $1::DATE) AS bundles, "
            "count(*) FILTER (night = $1::DATE AND new_failures > 0) AS failing, count(*) FILTER (night < $1::DATE) AS before_bundles, "
            "count(*) FILTER (night < $1::DATE AND new_failures > 0) AS before_failing "
            f"FROM bundle WHERE {window} AND {dimension} IS NOT NULL GROUP BY {dimension} "
            f"HAVING failing > 0 OR before_failing > 0 ORDER BY failing DESC, before_failing DESC, value LIMIT {MOST_LISTED}", night, since)  # fmt: skip
        trends += [Trend(dimension, **row) for row in rows]
    order = {"cause": 0, "model": 1, "version": 2, "host": 3}
    return tuple(
        sorted(trends, key=lambda trend: (order[trend.dimension], -trend.failing, -trend.before_failing, trend.value))
    )


def _changes(ask: Questions, night: str) -> tuple[ChangePoint, ...]:
    """Where the share of failing bundles moved with the version or a flag of a model, or with time."""
    rows = ask.rows_of(
        "SELECT model, version, flags, min(night) AS first, count(*) AS bundles, count(*) FILTER (new_failures > 0) AS failing "
        "FROM bundle WHERE night <= $1::DATE AND status = 'read' AND model IS NOT NULL GROUP BY ALL", night)  # fmt: skip
    found = _moved(rows)
    series = ask.rows_of(
        "SELECT n.night, c.cause, n.bundles, coalesce(f.failing, 0) AS failing FROM (SELECT night, count(*) AS bundles FROM bundle "
        "WHERE status = 'read' AND night <= $1::DATE GROUP BY night) n "
        f"CROSS JOIN (SELECT DISTINCT cause FROM new_incident WHERE {_MEMORY}) c LEFT JOIN (SELECT night, cause, count(DISTINCT bundle) AS failing "
        "FROM new_incident GROUP BY ALL) f ON f.night = n.night AND f.cause = c.cause ORDER BY c.cause, n.night", night)  # fmt: skip
    by_cause: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in series:
        by_cause[row["cause"]].append(row)
    for cause, nights in by_cause.items():
        split = best_split([(row["failing"], row["bundles"]) for row in nights])
        if split is None or split[1] * len(by_cause) >= CERTAIN_FROM:
            continue
        first, second = nights[: split[0]], nights[split[0] :]
        found.append(
            ChangePoint("night", cause, first[-1]["night"].isoformat(), second[0]["night"].isoformat(), second[0]["night"].isoformat(),
                        _sum(first, "failing"), _sum(first, "bundles"), _sum(second, "failing"), _sum(second, "bundles"), _rounded(split[1] * len(by_cause)))
        )  # fmt: skip
    return tuple(sorted(found, key=lambda point: (point.p, point.what, point.subject, point.after)))


def _moved(rows: Sequence[Mapping[str, Any]]) -> list[ChangePoint]:
    """Neighbouring values of the version and of each flag, per model, whose shares of failing bundles differ."""
    tables: dict[tuple[str, str], dict[str, list[Any]]] = defaultdict(dict)
    for row in rows:
        flags: Mapping[str, Any] = json.loads(row["flags"]) if row["flags"] else {}
        values = {"version": row["version"], **{name: json.dumps(value) for name, value in flags.items()}}
        for what, value in values.items():
            if value is None:
                continue
            held = tables[row["model"], what].setdefault(str(value), [row["first"], 0, 0])
            held[0] = min(held[0], row["first"])
            held[1] += row["failing"]
            held[2] += row["bundles"]
    pairs = []
    for (model, what), values in tables.items():
        # in the order in which the fleet took them up; of one night, the older version first
        ordered = sorted(values, key=lambda value: (values[value][0], version_number(value) or 0, value))
        pairs += [(model, what, before, after, values[before], values[after]) for before, after in pairwise(ordered)]
    enough = [pair for pair in pairs if pair[4][2] >= LEAST_BUNDLES and pair[5][2] >= LEAST_BUNDLES]
    found = []
    for model, what, before, after, old, new in enough:
        p = fisher(new[1], new[2], old[1], old[2]) * len(enough)
        if p < CERTAIN_FROM:
            found.append(
                ChangePoint(what, model, before, after, new[0].isoformat(), old[1], old[2], new[1], new[2], _rounded(p))
            )
    return found


def _outliers(ask: Questions, night: str, since: str) -> tuple[Outlier, ...]:
    rows = ask.rows_of(
        "SELECT host, count(*) AS bundles, count(*) FILTER (new_failures > 0) AS failing FROM bundle "
        "WHERE status = 'read' AND host IS NOT NULL AND night <= $1::DATE AND night >= $2::DATE GROUP BY host ORDER BY host", night, since)  # fmt: skip
    all_bundles, all_failing = _sum(rows, "bundles"), _sum(rows, "failing")
    suspects = [row for row in rows if row["failing"] > 1]
    found = []
    for row in suspects:
        rest, rest_failing = all_bundles - row["bundles"], all_failing - row["failing"]
        p = fisher(row["failing"], row["bundles"], rest_failing, rest, more_only=True) * len(rows)
        if p < CERTAIN_FROM:
            found.append(Outlier(row["host"], row["failing"], row["bundles"], rest_failing, rest, _rounded(p)))
    return tuple(sorted(found, key=lambda outlier: (outlier.p, outlier.host)))


def _errors(ask: Questions, here: set[str]) -> tuple[ReadError, ...]:
    """Every bundle that is there and could not be read, with the first night of that state."""
    states = ", ".join(f"'{name}'" for name in READ)
    rows = ask.rows_of(
        f"WITH good AS (SELECT bundle, max(night) AS night FROM bundle WHERE status IN ({states}) GROUP BY bundle) "
        "SELECT l.bundle, l.host, l.pod, l.status, coalesce(l.why, '') AS why, (SELECT min(b.night) FROM bundle b LEFT JOIN good g ON g.bundle = b.bundle "
        f" WHERE b.bundle = l.bundle AND (g.night IS NULL OR b.night > g.night)) AS since FROM latest_bundle l WHERE l.status NOT IN ({states}) "
        "ORDER BY l.host NULLS LAST, l.bundle")  # fmt: skip
    return tuple(ReadError(**{**row, "since": row["since"].isoformat()}) for row in rows if row["bundle"] in here)


def _sum(rows: Iterable[Mapping[str, Any]], name: str) -> int:
    return sum(row[name] for row in rows)


def _rounded(p: float) -> float:
    return float(f"{min(1.0, p):.3g}")
