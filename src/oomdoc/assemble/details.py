"""A report with what people look up beside it: the lines behind its references, and its fix replayed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from oomdoc.errors import BundleError, UsageError
from oomdoc.evidence.store import Store
from oomdoc.model import Excerpt, ExcerptLine, Report

MOST_REFS = 80  # references whose lines travel with a report
MOST_TEXT = 600  # characters of a line
MOST_REPLAYED = 20_000  # requests: beyond, a replay of the fix costs more than the analysis
MOST_COLUMNS = 360  # of the recorded usage beside a replay


def detailed(report: Report, paths: str | Path | Sequence[str | Path], store: Store) -> Report:
    """The report with the lines behind its references and the replay of its fix, as far as the bundle can be read again."""
    from oomdoc.assemble.show import excerpts

    given = [paths] if isinstance(paths, (str, Path)) else list(paths)
    warnings = list(report.warnings)
    found = {}
    if "-" in given:
        warnings.append("the lines behind the references are left out: standard input cannot be read twice")
    else:
        found = excerpts(given, _cited(report))
    told = tuple(
        Excerpt(ref, entry.first, entry.last, tuple(ExcerptLine(line, text[:MOST_TEXT]) for line, text in entry.lines))
        for ref, entry in found.items()
    )
    return dataclasses.replace(report, excerpts=told, fix_replay=_fix_replay(report, store), warnings=tuple(warnings))


def _cited(report: Report) -> list[str]:
    """The references that a reader will want to see, the gravest first."""
    refs = [incident.first_failure.ref for incident in report.incidents if incident.first_failure]
    for diagnosis in report.diagnoses[:4]:
        refs += [ref for item in (*diagnosis.evidence, *diagnosis.against) for ref in item.refs[:3]]
    refs += [ref for incident in report.incidents for ref in incident.cascade[:4]]
    refs += [mark["ref"] for mark in report.timeline.get("marks", ())]
    refs += [ref for entry in report.ledger[:1] for ref in entry.refs]
    return list(dict.fromkeys(refs))[:MOST_REFS]


def _fix_replay(report: Report, store: Store) -> dict[str, Any] | None:
    """The recorded traffic with the first fix that a replay understands; None without one, or without enough to replay."""
    from oomdoc.replay import FLAGS, replay

    actions = report.diagnoses[0].actions if report.verdict == "diagnosed" else ()
    action = next((item for item in actions if item.changes and set(item.changes) <= set(FLAGS)), None)
    requests = report.traffic.get("requests") or 0
    if action is None or not 0 < requests <= MOST_REPLAYED:
        return None
    gravest = store.rows_of("SELECT incident FROM incident LIMIT 1")
    try:
        told = replay(
            store,
            gravest[0]["incident"] if gravest else None,
            {name: str(value) for name, value in action.changes.items()},
        )
    except (BundleError, UsageError):  # no pool, no times: nothing to replay
        return None
    if told["after"] is None:
        return None
    recorded = told["recorded"]
    return {
        "action": action.id, "settings": told["settings"], "requests": told["traffic"]["requests"], "left_out": told["traffic"]["left_out"],
        "before": _without(told["before"], "at_recorded"), "after": _without(told["after"], "at_recorded"),
        "recorded": _thinned(recorded["series"]) if recorded else None,
        "usage_mean_abs_error": told["error"]["usage_mean_abs"] if told["error"] else None,
        "assumptions": told["assumptions"], "unknown": told["unknown"],
    }  # fmt: skip


def _without(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}


def _thinned(series: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of at most `MOST_COLUMNS` values: the highest of neighbours, at the time of the first of them."""
    each = -(-len(series["at_s"]) // MOST_COLUMNS) or 1
    places = range(0, len(series["at_s"]), each)
    told: dict[str, Any] = {"from_t": series["from_t"], "at_s": [series["at_s"][place] for place in places]}
    for name in ("used", "running", "waiting"):
        known = [[value for value in series[name][place : place + each] if value is not None] for place in places]
        told[name] = [max(values, default=None) for values in known]
    return told
