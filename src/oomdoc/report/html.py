"""The report as one HTML file that opens from disk: no network, no other file, and nothing in it that a bundle could run.

Texts of a bundle go through `words.neutral` and the template's escaping; the page's script only ever writes text nodes.
A Content-Security-Policy names the page's two scripts and its style sheet by hash and forbids everything else, so that a
mistake here would still not run. The charts are drawn by Vega-Lite with its expression interpreter (no `eval`); see
docs/decisions/0012-html-report.md. Deterministic: the report decides every byte.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

import jinja2
from markupsafe import Markup

from oomdoc.model import Diagnosis, Incident, LedgerEntry, Report, closest, last_moments
from oomdoc.report import charts, pictures
from oomdoc.report.facts import (
    KINDS,
    MOMENTS,
    PATCH_NAMES,
    SETTINGS,
    answer,
    computed,
    contradictions,
    ended,
    figures,
    fix_title,
    in_short,
    is_tie,
    missing_parts,
    parts_of,
    per_gpu,
    plans_of_failure,
    same_change,
    story_of,
    tie,
    unusual,
)
from oomdoc.report.shell import asset, environment, policy
from oomdoc.report.words import (
    WHEN,
    changes,
    cost,
    count,
    flag,
    gravest,
    incomplete,
    likelihood,
    moment,
    neutral,
    neutral_line,
    uncollected,
    until_then,
)
from oomdoc.units import GIB, show_bytes, show_seconds

RIVALS = 6  # told with their evidence; the rest is counted
INCIDENTS = 12
_TRAFFIC: Mapping[str, Any] = {"requests": 0, "failed": None, "long_context": {}, "buckets": {}, "percentiles": {}}
AROUND_MS = 20 * 60_000  # what "around the failure" zooms to, each way


def render(report: Report, **_: Any) -> str:
    """The whole page. Everything it shows stands in the JSON report of the same run as well."""
    made = charts.charts(report)
    span = charts.span(made, report)
    drawn = made if span else []
    shown = gravest(report)
    start = shown.engine if shown else None
    ledger = [entry for entry in last_moments(report.ledger) if any(entry.parts.values())]
    ledger += plans_of_failure(report)
    ledger.sort(key=lambda entry: entry.engine != start)  # that of the failure first
    labels = _labels(ledger)
    drawable = any(entry.total_bytes for entry in ledger)
    data = {
        "charts": [chart.data() for chart in drawn], "from": span[0] if span else 0, "to": span[1] if span else 1,
        "marks": charts.marks(report) if span else [], "ledger": charts.ledger_spec(labels, ledger) if drawable else None,
        "failure": _failed_at(report), "around": AROUND_MS,
    }  # fmt: skip
    script, vega, style = asset("report.js"), asset("vega.js") if drawn or drawable else "", asset("report.css")
    first = report.diagnoses[0] if report.diagnoses else None
    story = story_of(report)
    rivals = [item for item in report.diagnoses[1:] if item.cause in story.keeps]
    page = _environment().get_template("report.html.j2")
    return page.render(
        report=report, story=story, weights={item.id: item for item in (*first.evidence, *first.against)} if first else {}, brief=[neutral(line) for line in story.brief], books=pictures.ledger(report), around=pictures.around(report), lost=incomplete(report), lacks=uncollected(report), level=tie(report), first=first, incident=shown, rivals=rivals[:RIVALS], rest=max(len(report.diagnoses) - 1 - len(rivals[:RIVALS]), 0),
        others=[item for item in report.incidents if item is not shown][:INCIDENTS], incidents=len(report.incidents),
        drawn=[chart for chart in drawn if not chart.id.startswith("replay")], replayed=[chart for chart in drawn if chart.id.startswith("replay")],
        ledger=_books(labels, ledger), excerpts={item.ref: item for item in report.excerpts}, verdict=_verdict(report, first), engines=_engines(report),
        patch_names=PATCH_NAMES, failed=report.verdict in ("diagnosed", "undecided"), fix_title=fix_title(report), whens=WHEN, cost=cost(shown.impact) if shown else "", watch=report.watch if report.verdict == "healthy" else (),
        marks=report.timeline.get("marks", ()), traffic={**_TRAFFIC, **report.traffic},
        data=Markup(_json(data)), script=Markup(script), vega=Markup(vega), style=Markup(style), policy=policy([text for text in (vega, script) if text], style),
    )  # fmt: skip


def _json(data: Any) -> str:
    """JSON that cannot end the element it stands in, nor start a comment."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@functools.cache
def _environment() -> jinja2.Environment:
    made = environment().overlay()
    made.filters = dict(made.filters)
    made.filters.update(
        line=neutral_line, likelihood=likelihood, moment=moment,
        count=count, answer=answer, size=show_bytes, seconds=show_seconds, changes=changes, kind=lambda kind: KINDS.get(kind, kind), cell=cell, paste=_paste,
        number=_number, ended=ended, written=figures, short=in_short, block=lambda text: "\n".join(neutral_line(line) for line in text.splitlines()), is_tie=is_tie, same_change=same_change, lines=lambda text: "\n".join(neutral(line) for line in text.splitlines()),
    )  # fmt: skip
    return made


def cell(text: Any) -> str:
    """Text of a table's cell: what a spreadsheet would take for a formula begins with an apostrophe.

    >>> cell("=1+1"), cell("-5"), cell("pods/a.log")
    ("'=1+1", "'-5", 'pods/a.log')
    """
    clean = neutral(str(text))
    return "'" + clean if clean[:1] in ("=", "+", "-", "@") and not isinstance(text, (int, float)) else clean


def _number(value: Any) -> str:
    """A figure of the traffic for a table."""
    if value is None:
        return "unknown"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def _paste(values: Mapping[str, Any]) -> str:
    """Settings as one line to paste, variables of the environment first."""
    names = sorted(values, key=lambda name: not name.isupper())
    return " ".join(flag(name, values[name]) for name in names if values[name] is not None)


def _verdict(report: Report, first: Diagnosis | None) -> dict[str, Any]:
    """The answers of the first screen."""
    label = {
        "diagnosed": "Diagnosed",
        "healthy": "Healthy",
        "not-memory": "Not a memory failure",
        "undecided": "Undecided",
        "no-server": "No server",
    }
    return {
        "label": label.get(report.verdict, report.verdict), "title": story_of(report).title,
        "closest": closest(report.diagnoses) if report.verdict == "undecided" else (),
        "action": first.actions[0] if first and first.actions and report.verdict != "undecided" else None,
        "until_then": until_then(first) if first and report.verdict == "diagnosed" else None,
    }  # fmt: skip


def _failed_at(report: Report) -> int | None:
    """Epoch milliseconds of the gravest incident, for the zoom."""
    shown: Incident | None = gravest(report)
    return None if shown is None or shown.started is None else round(shown.started * 1000)


def _labels(entries: Sequence[LedgerEntry]) -> list[str]:
    """A name per bar that no other has."""
    starts = list(dict.fromkeys(entry.engine for entry in entries))
    told: list[str] = []
    for entry in entries:
        name = f"rank {entry.rank}" if entry.rank is not None else neutral(entry.device or "GPU")[:24]
        if entry.moment:
            name += f", {MOMENTS[entry.moment]}"
        if len(starts) > 1:
            name += f", start {starts.index(entry.engine) + 1}"
        told.append(name if name not in told else f"{name} ({len(told) + 1})")
    return told


def _books(labels: Sequence[str], entries: Sequence[LedgerEntry]) -> dict[str, Any] | None:
    """The ledger as a table in GiB: a column per bar, a row per part that any bar knows."""
    if not entries:
        return None

    def figure(size: int | None) -> str:
        return "unknown" if size is None else f"{size / GIB:.2f}"

    rows = []
    for key, name in parts_of(entries):
        sizes = [entry.parts.get(key) for entry in entries]
        if any(sizes):
            rows.append((key.removesuffix("_bytes").replace("_", "-"), name, [figure(size) for size in sizes]))
    return {
        "drawn": any(entry.total_bytes for entry in entries), "labels": labels, "rows": rows, "totals": [figure(entry.total_bytes) for entry in entries], "missing": missing_parts(entries), "each": per_gpu(entries),
        "pool_tokens": next((entry.kv_pool_tokens for entry in entries if entry.kv_pool_tokens), None),
        "token_bytes": next((entry.kv_bytes_per_token for entry in entries if entry.kv_bytes_per_token), None),
        "refs": list(dict.fromkeys(ref for entry in entries for ref in entry.refs))[:8],
        "contradictions": contradictions(entries), "unusual": unusual(entries), "computed": computed(entries),
    }  # fmt: skip


def _engines(report: Report, most: int = 4) -> list[dict[str, Any]]:
    """The last starts, each with the settings worth a look first and the others behind them."""
    known = [name for name, _ in SETTINGS]
    told = []
    for engine in report.engines[-most:]:
        names = sorted(engine.flags, key=lambda name: (known.index(name) if name in known else len(known), name))
        told.append(
            {
                "engine": engine,
                "flags": [(name, engine.flags[name]) for name in names if engine.flags[name].value is not None],
            }
        )
    return told
