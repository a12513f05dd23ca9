"""Tables -> report: incidents weighed one by one, ledger, engines, traffic, coverage, and what to collect next.

Everything a report says is asked from the store here and put into the dataclasses of `model`; nothing is printed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oomdoc import __version__
from oomdoc.assemble.timeline import timeline
from oomdoc.assemble.traffic import profile
from oomdoc.assemble.watch import watch
from oomdoc.evidence.store import QueryError, Store, quoted
from oomdoc.evidence.tables import WRITER_SUFFIX, path_of
from oomdoc.intake.bundle import Intake
from oomdoc.judge import fitted as fitted_weights
from oomdoc.judge.missing import collect_next, unanswered
from oomdoc.judge.rules import Rule, place_of, rules_version, shipped_queries, shipped_questions, shipped_rules
from oomdoc.judge.weigh import Finding, rank, weigh
from oomdoc.judge.wording import Wording, heard, shipped
from oomdoc.ledger import default_step, expectation, ledger, model_config
from oomdoc.loading.complete import judged, missing
from oomdoc.model import (
    Bundle,
    Coverage,
    Diagnosis,
    Engine,
    FirstFailure,
    Flag,
    Impact,
    Incident,
    LedgerEntry,
    Report,
    SetAside,
    SourceRow,
    Uncollected,
    Unread,
    Watch,
)
from oomdoc.physics.defaults import version_number
from oomdoc.regexes import regex
from oomdoc.solve import situation, solve
from oomdoc.story import Facts, told
from oomdoc.story.facts import gather
from oomdoc.units import count, show_seconds

DECIDED_FROM = 0.5  # a first place below this is a guess: the verdict is `undecided`
MOST_INCIDENTS = 20  # shown in a report; the rest is counted in a warning
DIAGNOSED_INCIDENTS = 5  # so many kinds of incident get a ranking, the gravest first; others only their first failure


def assemble(
    intake: Intake, store: Store, rules: list[Rule], sources: list[SourceRow], unread: list[Unread], faults: list[str],
    config: Mapping[str, Any] | None = None, learnt: bool = True,
) -> tuple[Report, list[Finding]]:  # fmt: skip
    """The report of a loaded store: every incident weighed, the ledger and engines told, what was read and what is missing.

    `config` is the model's config.json, where a person hands it over. With `learnt` the shipped rules weigh as was fitted to first runs.
    The findings beside the report are those of the gravest incident.
    """
    store.trust(shipped_queries(rules), shipped_questions(rules))
    fitted = {rule.id: fitted_weights.shipped() for rule in shipped_rules(rules)} if learnt else {}
    engines = _engines(store)
    config = config or _config_in_bundle(store)
    rows = store.rows_of("SELECT * FROM incident")
    found, copies = _without_copies(rows, sources)
    # starts that failed in a copy alone are the copy's: one server is listed once
    again = {row["start_id"] for row in rows} - {row["start_id"] for row in found}
    traffic = profile(store, found[0] if found else None)
    warnings = [f"rule left out: {fault}" for fault in faults]
    incidents: list[Incident] = []
    diagnoses: tuple[Diagnosis, ...] = ()
    findings: list[Finding] = []
    books: tuple[LedgerEntry, ...] = ()
    watched: tuple[Watch, ...] = ()
    facts = Facts()
    alike: dict[str, tuple[tuple[Diagnosis, ...], str | None]] = {}
    shown: list[dict[str, Any] | None] = [*found[:MOST_INCIDENTS]] or [None]
    if not store.scene.present:
        shown = []
    for place, row in enumerate(shown):
        ranked: tuple[Diagnosis, ...] = ()
        phase = None
        likeness = _likeness(row)
        if likeness in alike:
            ranked, phase = alike[likeness]
        elif len(alike) < DIAGNOSED_INCIDENTS:
            store.focus(row["incident"] if row else None)
            _expect(store, engines, row["start_id"] if row else None, config)
            ask = _careful(store, rules, warnings)
            said = _wording(store) if place == 0 else {}
            weighed = [weigh(rule, ask, said.get(rule.id), fitted.get(rule.id)) for rule in rules]
            ranked = rank(weighed, ask)
            phase = (store.rows_of("SELECT phase FROM failure") or [{"phase": None}])[0]["phase"]
            if place == 0:
                books = ledger(store, engines, config)
                if ranked:
                    now = situation(store, engines, books, row, traffic.get("percentiles"), config)
                    ranked = (solve(ranked[0], now), *ranked[1:])
                ranked = unanswered(store, weighed, ranked)
                diagnoses, findings = ranked, weighed
                watched = watch(store, traffic)
                facts = gather(
                    store,
                    (row["start_id"] if row else None) or (engines[-1].id if engines else None),
                    _model(engines, row),
                )
            else:
                known = {entry.engine for entry in books}
                books += tuple(entry for entry in ledger(store, engines, config) if entry.engine not in known)
            alike[likeness] = ranked, phase
        if row:
            incidents.append(_incident(store, row, phase, ranked))
    warnings += [f"{refs[0]} shows the same failure as {', '.join(refs[1:])}: one incident" for refs in copies.values()]
    if len(found) > MOST_INCIDENTS:
        warnings.append(f"{len(found) - MOST_INCIDENTS} more incidents were found and are not shown")
    warnings += _warnings(store, sources)
    warnings += [
        f"the view {name} would have needed more memory than there is: what it says is unknown"
        for name in store.unanswered
    ]
    engines = tuple(engine for engine in engines if engine.id not in again)
    books = tuple(entry for entry in books if entry.engine not in again)
    report = Report(
        oomdoc_version=__version__, rules_version=rules_version(rules), bundle=Bundle(intake.name, intake.digest, intake.bytes, intake.files),
        verdict=_verdict(diagnoses, sources) if store.scene.present else "no-server", diagnoses=diagnoses, incidents=tuple(sorted(incidents, key=_order)), ledger=books, engines=engines, traffic=traffic,
        coverage=Coverage(tuple(sources), tuple(unread), _uncollected(store)), collect_next=collect_next(store, findings, diagnoses), warnings=tuple(dict.fromkeys(warnings)), watch=watched,
        timeline=timeline(store, found[0] if found else None, _proof(diagnoses)), set_aside=_set_aside(store),
    )  # fmt: skip
    return told(judged(report, missing(store, unread)), facts), findings


_QUOTING = ("document", "source-code", "chat", "package-list")
"""Kinds of sources that speak of servers in general, or of others."""

# What the scene gives to somebody else, or cannot bind to the server, as a whole or row by row to the last, speaks of him
_SPEAKS_OF_OTHERS = """
SELECT r.source FROM main.relation r JOIN main.source s USING (source)
WHERE r.whose IN ('foreign', 'unknown')
GROUP BY r.source, s.rows
HAVING bool_or(r.line = 0) OR (s.rows > 0 AND count(DISTINCT (r.of_table, r.line)) >= s.rows)"""


def _wording(store: Store) -> dict[str, Wording]:
    """What the words of the bundle say of each cause: of the gravest incident, which is what a bundle is about.

    Where nothing was read out of any source and none names an engine (NULL: more of it may), they are words of something else.
    """
    rows = store.rows_of("SELECT source, kind, words, rows > 0 OR names_engine IS DISTINCT FROM false AS tells FROM main.source WHERE words IS NOT NULL")  # fmt: skip
    if not any(row["tells"] for row in rows):
        return {}
    others = {row["source"] for row in store.rows_of(_SPEAKS_OF_OTHERS)}
    said: set[str] = set()
    for row in rows:
        if row["source"] not in others and row["kind"] not in _QUOTING:
            said |= heard(row["kind"], row["words"].split())
    return shipped().weigh(said)


def _uncollected(store: Store) -> tuple[Uncollected, ...]:
    """What the collector could not have."""
    if "uncollected" not in store.filled:
        return ()
    rows = store.rows_of("SELECT what, why, source || ':' || line AS ref FROM uncollected ORDER BY source, line")
    return tuple(Uncollected(**row) for row in rows)


def _model(engines: Sequence[Engine], row: Mapping[str, Any] | None) -> str | None:
    """The model of the start that an incident belongs to, else of the last one that names its model."""
    own = [engine for engine in engines if row and engine.id == row["start_id"]]
    return next((engine.model for engine in (*own, *reversed(engines)) if engine.model), None)


MOST_ASIDE = 12  # reasons that are shown; the rest of a long kernel log says nothing new
MOST_REFS = 4
ASIDE_CHARACTERS = 120


def _set_aside(store: Store) -> tuple[SetAside, ...]:
    """Events that are not this server's, one entry a reason, the first of each telling what it was."""
    by_why: dict[str, list[Any]] = {}
    for event in store.scene.asides:
        by_why.setdefault(event.why, []).append(event)
    told = [
        SetAside(
            _head(each[0].says.strip()), tuple(f"{one.source}:{one.line}" for one in each if one.line)[:MOST_REFS], why
        )
        for why, each in by_why.items()
    ]
    return (*_outlived(store), *told)[:MOST_ASIDE]


def _outlived(store: Store) -> tuple[SetAside, ...]:
    """Starts that failed, and that a later one has got over long since."""
    if not store.derived.count_of("outlived"):
        return ()
    rows = store.rows_of("SELECT source, line, hours FROM outlived ORDER BY source, line")
    return tuple(
        SetAside("a start that failed", (f"{row['source']}:{row['line']}",), f"a later one came up, and worked {show_seconds(row['hours'] * 3600)} after it")
        for row in rows
    )  # fmt: skip


def _head(text: str) -> str:
    """The beginning of what an event says: a line of the kernel fills a screen, and its place stands beside it."""
    return text if len(text) <= ASIDE_CHARACTERS else f"{text[:ASIDE_CHARACTERS].rstrip()} ..."


def _proof(diagnoses: Sequence[Diagnosis]) -> list[tuple[str, str]]:
    """What speaks for the first cause, strongest first: the first reference of each observation, and its sentence."""
    first = [item for item in diagnoses[0].evidence if item.refs] if diagnoses else []
    return [(item.refs[0], item.says) for item in first if diagnoses[0].cause != "healthy"]


def _order(incident: Incident) -> tuple[bool, float, str, int]:
    """First failure first: by time where it is known, else by place."""
    source, _, line = (incident.first_failure.ref if incident.first_failure else ":0").rpartition(":")
    return incident.started is None, incident.started or 0.0, source, int(line)


_PROCESS = regex(r"\bProcess (\d{2,}) has\b")
_EXCEPTION = regex(r"^(?:[\w.]+: )+(?=CUDA|HIP|XPU|NPU)")


COMPARED_INCIDENTS = 200  # of a log with thousands of them the rest is not shown, and each with each would cost seconds


def _without_copies(
    rows: Sequence[dict[str, Any]], sources: Sequence[SourceRow] = ()
) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    """Incidents without those that another file shows as well, and the places of each that has such copies.

    A copy of a log, or its rotated half, repeats the message of one process in its words and at its time; a crash loop
    gives each start a process of its own. A message without a process is that of a copy where both files are of one size
    and it stands on the same line of both. The graver row is kept, which is the timed one where only one has a time.
    """
    sizes = {row.path: (row.bytes, row.lines) for row in sources}
    kept: list[dict[str, Any]] = []
    copies: dict[str, list[str]] = {}
    for row in rows:
        compared = kept if len(kept) < COMPARED_INCIDENTS else ()
        first = next((other for other in compared if _is_copy(other, row, sizes)), None)
        if first is None:
            kept.append(row)
        else:
            copies.setdefault(first["ref"], [first["ref"]]).append(row["ref"])
    return kept, copies


def _is_copy(one: Mapping[str, Any], other: Mapping[str, Any], sizes: Mapping[str, tuple[int, int]]) -> bool:
    if one["kind"] != other["kind"] or one["source"] == other["source"]:
        return False
    words = [_EXCEPTION.sub("", row["text"] or "") for row in (one, other)]
    if not _same_words(*words):
        return False
    if one["t"] is not None and other["t"] is not None and abs(one["t"] - other["t"]) >= 1:
        return False
    whole = sizes.get(one["source"])
    if one["line"] == other["line"] and one["t"] == other["t"] and whole and whole == sizes.get(other["source"]):
        return True
    return _PROCESS.search(words[1]) is not None


def _same_words(one: str, other: str) -> bool:
    """Whether two messages say the same as far as both were kept: long ones are cut."""
    shared = min(len(one), len(other))
    return bool(shared) and one[:shared] == other[:shared]


def _likeness(row: Mapping[str, Any] | None) -> str:
    """What makes two incidents recurrences of one: the same kind of failure in the same words, numbers aside."""
    return "" if row is None else f"{row['kind']} {re.sub('[0-9]+', '#', (row['text'] or '')[:120])}"


def _sentence(problem: Exception) -> str:
    """DuckDB's complaint and its nearest valid name, without the drawing of the query."""
    return " ".join(line.strip() for line in str(problem).split("\n\nLINE")[0].splitlines())[:300]


def _careful(store: Store, rules: Sequence[Rule], warnings: list[str]) -> Callable[[str], Mapping[str, Any] | None]:
    """`ask` that answers each query once, and turns a broken query into `unknown` and a warning."""
    known: dict[str, Mapping[str, Any] | None] = {}

    def ask(sql: str) -> Mapping[str, Any] | None:
        if sql not in known:
            try:
                known[sql] = store.ask(sql)
            except QueryError as problem:
                warnings.append(f"{place_of(rules, sql)}: the query failed and counts as unknown: {_sentence(problem)}")
                known[sql] = None
        return known[sql]

    return ask


def _verdict(diagnoses: Sequence[Diagnosis], sources: Sequence[SourceRow]) -> str:
    if not diagnoses or diagnoses[0].probability < DECIDED_FROM or not any(row.rows for row in sources):
        return "undecided"
    return diagnoses[0].cause if diagnoses[0].cause in ("healthy", "not-memory") else "diagnosed"


def _incident(store: Store, row: Mapping[str, Any], phase: str | None, ranked: tuple[Diagnosis, ...]) -> Incident:
    cascade: list[str] = []
    if row["start_id"] is not None:
        cascade = [entry["ref"] for entry in store.rows_of(
            f"SELECT DISTINCT source || ':' || line AS ref, source, line FROM failure_event WHERE start_id = {quoted(row['start_id'])} "
            f"AND (source <> {quoted(row['source'])} OR line > {int(row['line'])}) ORDER BY source, line LIMIT 20")]  # fmt: skip
    first = (
        FirstFailure(row["ref"], row["t"], (row["text"] or "")[:400])
        if row["text"]
        else FirstFailure(row["ref"], row["t"], "usage of the KV pool reaches its limit")
    )
    impact = _impact(store, row)
    return Incident(
        row["incident"], row["kind"], phase, row["t"], row["start_id"], first, tuple(cascade), ranked, impact
    )


_LOST_S = 600.0  # after a failure with no return in the bundle: later errors may have other reasons


def _impact(store: Store, row: Mapping[str, Any]) -> Impact:
    """Seconds without service, starts and lost requests after a failure; preemptions of an episode of pressure.

    Only what times can tell: nothing for a failure without one.
    """
    preemptions = None
    if row["kind"] == "pressure":
        told = store.rows_of("SELECT preemptions FROM kv_pressure")
        preemptions = int(told[0]["preemptions"]) if told and told[0]["preemptions"] is not None else None
    if row["t"] is None:
        return Impact(preemptions=preemptions)
    t = float(row["t"])
    down_s = back_ref = None
    restarts = None
    if row["start_id"] is not None and row["kind"] != "pressure":
        # another engine in the same file did not come back: it was never gone (`ingest.writers`)
        source = str(row["start_id"]).rpartition("#")[0]
        own = (
            f"(source = {quoted(source)} OR regexp_replace(source, '{WRITER_SUFFIX}', '') <> {quoted(path_of(source))})"
        )
        back = store.rows_of(
            "SELECT t, source || ':' || line AS ref FROM milestone WHERE name IN ('serving', 'engine-ready') "
            f"AND t > {t} AND {own} ORDER BY t, source, line LIMIT 1"
        )
        if back:
            down_s, back_ref = float(back[0]["t"]) - t, back[0]["ref"]
        begun = store.rows_of(
            f"SELECT count(*) FILTER (t > {t}) AS n, count(t) AS timed FROM engine_start WHERE marked AND {own}"
        )[0]
        restarts = begun["n"] if begun["timed"] else None
    until = t + (down_s if down_s is not None else _LOST_S)
    lost = store.rows_of(
        f"SELECT count(*) FILTER (status >= 500 OR status = 0) AS n, count(status) AS told FROM request WHERE t BETWEEN {t - 60} AND {until}"
    )[0]
    return Impact(down_s, back_ref, restarts, lost["n"] if lost["told"] else None, preemptions)


def _config_in_bundle(store: Store) -> dict[str, Any] | None:
    """The config.json of the model's folder, where the bundle holds one that can be counted by."""
    if "model_file" not in store.filled:
        return None
    rows = store.rows_of("SELECT config FROM model_file WHERE file = 'config' ORDER BY source, line LIMIT 1")
    return model_config(rows[0]["config"]) if rows else None


def _expect(store: Store, engines: Sequence[Engine], start: str | None, config: Mapping[str, Any] | None) -> None:
    """Fill `expected_figure` for the start in focus before the rules are asked."""
    engine = next((each for each in engines if each.id == start), engines[-1] if engines and start is None else None)
    told = expectation(engine, None, config) if engine else None
    figures: dict[str, tuple[float, float, str]] = {}
    if told is not None:
        sizes = {**told.parts, "step_token_bytes": told.step_token_bytes}
        figures = {name: (size.lo, size.hi, size.origin) for name, size in sizes.items() if size is not None}
        exact = {
            "kv_bytes_per_token": told.kv_bytes_per_token,
            "kv_heads": told.kv_heads,
            "latent": int(told.latent),
            "multimodal": int(told.multimodal),
            "vocab_size": told.vocab_size,
            "positions": told.positions,
        }
        figures |= {name: (value, value, told.origin) for name, value in exact.items() if value is not None}
    batched = default_step(store, engine)
    if batched is not None:
        figures["max_num_batched_tokens"] = (batched, batched, "default")
    store.expect(
        [
            {"source": "expected", "line": 0, "name": name, "low": low, "high": high, "origin": origin, "model": told.model if told else None}
            for name, (low, high, origin) in figures.items()
        ]
    )  # fmt: skip


def _engines(store: Store) -> tuple[Engine, ...]:
    starts = store.rows_of(
        "SELECT s.*, s.start_id IN (SELECT start_id FROM incident WHERE gravity >= 20) AS failed, o.outcome, o.ref AS outcome_ref "
        "FROM engine_start s LEFT JOIN outcome o USING (start_id) ORDER BY source, s.first_line"
    )
    flags = store.rows_of(
        "SELECT s.start_id, f.flag, f.value, f.origin, f.source || ':' || f.line AS ref FROM (SELECT source, line, flag, value, origin FROM engine_flag "
        "UNION ALL SELECT source, line, 'gpu_memory_utilization', value::VARCHAR, 'logged' FROM engine_figure WHERE name = 'gpu_memory_utilization') f JOIN engine_start s ON s.source = f.source AND f.line BETWEEN s.first_line AND s.last_line "
        "QUALIFY row_number() OVER (PARTITION BY s.start_id, f.flag ORDER BY CASE f.origin WHEN 'logged' THEN 1 WHEN 'config' THEN 2 ELSE 3 END, f.line) = 1 ORDER BY s.start_id, f.flag"
    )
    by_start: dict[str, dict[str, Flag]] = {}
    for row in flags:
        by_start.setdefault(row["start_id"], {})[row["flag"]] = Flag(_typed(row["value"]), row["origin"], row["ref"])
    loose = store.rows_of(
        "SELECT flag, value, origin, source || ':' || line AS ref FROM engine_flag WHERE source NOT IN (SELECT source FROM engine_start) AND origin IN ('command', 'file') "
        "QUALIFY row_number() OVER (PARTITION BY flag ORDER BY source, line DESC) = 1 ORDER BY flag"
    )
    engines = []
    for row in starts:
        known = by_start.get(row["start_id"], {})
        for entry in loose:  # a launch command beside the log speaks for every start of it
            known.setdefault(entry["flag"], Flag(_typed(entry["value"]), entry["origin"], entry["ref"]))
        model = known.get("model")
        version = row["version"] or (str(known["version"].value) if "version" in known else None)
        engines.append(
            Engine(
                row["start_id"],
                f"{row['source']}:{max(1, row['first_line'])}",
                row["t"],
                version,
                str(model.value) if model else None,
                _generation(version),
                dict(sorted(known.items())),
                row["last_milestone"],
                bool(row["failed"]),
                row["outcome"] or "not-told",
                row["outcome_ref"],
            )
        )
    return tuple(engines)


def _generation(version: str | None) -> str | None:
    number = version_number(version) if version else None
    if number is None:
        return None
    return "V0" if number < 8_000 else "V1" if number >= 11_000 else None


def _typed(value: str | None) -> Any:
    if value is None or value == "None":
        return None
    if value in ("True", "False"):
        return value == "True"
    if re.fullmatch(r"-?\d{1,15}", value):
        return int(value)
    if re.fullmatch(r"-?\d*\.\d+", value):
        return float(value)
    return value


def _warnings(store: Store, sources: Sequence[SourceRow]) -> list[str]:
    told = []
    problems = sum(row.problems for row in sources)
    if problems:
        told.append(
            f"what looks like a known message could not be read in {count(problems, 'place')}: see table problem"
        )
    if store.rows_of("SELECT 1 FROM engine_flag WHERE value LIKE '%***HIDDEN***%' LIMIT 1"):
        told.append("some settings are redacted, which is not the same as unset")
    if store.rows_of("SELECT 1 FROM milestone WHERE t < 1009843200 LIMIT 1"):
        told.append("log times carry no year and nothing in the bundle tells it: times are shown without a year")
    told += _clocks(store)
    return told


_QUARTER_S = 900  # zones differ by quarters of an hour
_NEAR_S = 90  # how long after the kill the engine may notice that its worker is gone

# The kernel's kill and the engine's statement that a worker ended by signal 9, the pair that lies nearest together
_KILL_SEEN_TWICE = """
SELECT e.t - h.t AS apart, h.source || ':' || h.line AS host_ref, e.source || ':' || e.line AS log_ref
FROM host_event h, process_exit e
WHERE h.kind IN ('cgroup-oom-kill', 'node-oom-kill', 'oom-kill') AND e.exit_code = -9 AND h.t > 1009843200 AND e.t > 1009843200
ORDER BY abs(e.t - h.t), host_ref, log_ref LIMIT 1
"""


def _clocks(store: Store) -> list[str]:
    """A warning where one kill is told by two sources at times that differ as time zones do."""
    for row in store.rows_of(_KILL_SEEN_TWICE):
        apart = row["apart"]
        steps = round(apart / _QUARTER_S)
        if steps and abs(steps) <= 56 and abs(apart - steps * _QUARTER_S) <= _NEAR_S:
            hours = f"{abs(steps) / 4:g} h"
            side = "later" if steps > 0 else "earlier"
            return [
                f"the kill in {row['host_ref']} is told {hours} {side} in {row['log_ref']}: their clocks are of different "
                "zones, and times between them do not compare; --tz gives the zone of logs that name none"
            ]
    return []
