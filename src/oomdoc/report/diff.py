"""What changed between two bundles, for a terminal, as Markdown, as one HTML page without scripts (`shell`), and as JSON.

All forms print one `compare.Comparison`; text of the bundles passes `words.neutral` and the escaping of the form.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from rich.text import Text

from oomdoc.report.changes import Change, Comparison, Side
from oomdoc.report.compare import name_known
from oomdoc.report.json import dump, plain
from oomdoc.report.layout import Page, ink
from oomdoc.report.words import count, factor, neutral, percent
from oomdoc.units import show_bytes

OUTCOMES = {
    "failed": "It was healthy and has failed",
    "recovered": "The failure is gone",
    "same-cause": "The same cause still leads",
    "other-cause": "Another cause leads now",
    "healthy": "Both are healthy",
    "unclear": "One of the two is undecided",
}
_FAILED = {
    "ended": "It was healthy and has been ended from outside",
    "refused": "It was healthy and does not start",
    "stuck": "It was healthy and stands still",
    "degraded": "It was healthy and serves worse",
}
"""The same where the failing server did not fail by itself, or not altogether: by what became of it."""
AREAS = {
    "version": "Versions", "model": "Model", "flag": "Flags", "device": "Device", "ledger": "Where the memory is",
    "traffic": "Traffic",
}  # fmt: skip
OTHER_FLAGS_SHOWN = 6
VALUE_WIDTH = 48


def headline(told: Comparison) -> str:
    """The outcome in a sentence."""
    became = _FAILED.get(told.new.became or "") if told.outcome == "failed" else None
    return became or OUTCOMES[told.outcome]


def render(told: Comparison, *, width: int = 100, color: bool = False, **_: Any) -> str:
    """The comparison for a person at a terminal: outcome, what explains it, then every change by area."""
    page = Page(width, color)
    style = {"failed": "bold red", "recovered": "bold green", "healthy": "bold green"}.get(told.outcome, "bold yellow")
    page.flow(ink(headline(told), style), Text())
    for name, side in (("old", told.old), ("new", told.new)):
        page.flow(ink(name, "bold"), ink(neutral(_side(side))), lead_width=3)
    if told.judged:
        page.heading(
            "What explains it", f"compared with {neutral(told.cause or '')}, the leading cause of the {told.judged} one"
        )
        shown = explaining(told)
        for number, change in enumerate(shown, 1):
            page.flow(ink(f"{number}."), ink(_sentence(change), "bold"), indent=2, gap=1)
            for reason in change.because[:2]:
                page.flow(Text(), page.prose(reason), indent=5)
        if not shown:
            page.flow(Text(), ink("nothing that changed in what both bundles show bears on that cause"), indent=2)
    for area, title in AREAS.items():
        rows, others = _rows(told, area)
        if not rows and not others:
            continue
        page.heading(title)
        _table(page, rows)
        if others:
            named = ", ".join(neutral(change.name) for change in others[:OTHER_FLAGS_SHOWN])
            rest = f" and {len(others) - OTHER_FLAGS_SHOWN} more" if len(others) > OTHER_FLAGS_SHOWN else ""
            page.flow(ink("also different:", "dim"), ink(named + rest, "dim"), indent=2, gap=1)
    if not told.changes:
        page.heading("Changes")
        page.flow(Text(), ink("no version, model, flag, memory or traffic figure that both have differs"), indent=2)
    for title, signs in (("Evidence that is new", told.evidence_new), ("Evidence that is gone", told.evidence_gone)):
        if signs and told.judged:
            page.heading(title, f"for {neutral(told.cause or '')}")
            for sign in signs:
                page.flow(
                    ink(f"{factor(sign.weight):>4}"),
                    page.prose(f"{sign.says}  {' '.join(sign.refs[:2])}", sign.refs),
                    indent=2,
                )
    if told.incomparable:
        page.heading("Mind")
        for sentence in told.incomparable:
            page.flow(ink("!", "bold yellow"), page.prose(sentence), indent=2, gap=1)
    return page.text()


def explaining(told: Comparison) -> list[Change]:
    """The changes that explain the outcome, best first, three at most."""
    by_name = {change.name: change for change in told.changes}
    return [by_name[name] for name in told.explained_by[:3]]


def markdown(told: Comparison, **_: Any) -> str:
    """The same as Markdown, for a ticket."""
    out = [f"# {headline(told)}", "", "| | bundle | verdict |", "| --- | --- | --- |"]
    out += [
        f"| {name} | {_cell(side.name)} | {_cell(_verdict(side))} |"
        for name, side in (("old", told.old), ("new", told.new))
    ]
    if told.judged:
        out += ["", "## What explains it", ""]
        shown = explaining(told)
        for number, change in enumerate(shown, 1):
            out.append(
                f"{number}. **{_cell(_sentence(change))}**"
                + "".join(f"<br>{_cell(reason)}" for reason in change.because[:2])
            )
        if not shown:
            out.append(f"Nothing that changed in what both bundles show bears on `{_cell(told.cause or '')}`.")
    for area, title in AREAS.items():
        rows = [change for change in told.changes if change.area == area]
        if rows:
            out += ["", f"## {title}", "", "| what | old | new | |", "| --- | --- | --- | --- |"]
            out += [f"| {' | '.join(map(_cell, _columns(change)))} |" for change in rows]
    for title, signs in (("Evidence that is new", told.evidence_new), ("Evidence that is gone", told.evidence_gone)):
        if signs and told.judged:
            out += ["", f"## {title}", ""]
            out += [
                f"- {factor(sign.weight)} {_cell(sign.says)} {' '.join('`' + _cell(ref) + '`' for ref in sign.refs[:2])}".rstrip()
                for sign in signs
            ]
    if told.incomparable:
        out += ["", "## Mind", "", *(f"- {_cell(sentence)}" for sentence in told.incomparable)]
    return "\n".join(out) + "\n"


def html(told: Comparison, **_: Any) -> str:
    """The same as one page in the style of the report: no scripts, nothing fetched."""
    from oomdoc.report.shell import plain_page

    areas = []
    for area, title in AREAS.items():
        rows, others = _rows(told, area)
        if rows or others:
            areas.append((title, [_columns(change) for change in rows], [_columns(change) for change in others]))
    return plain_page(
        "diff.html.j2", told=told, outcome=headline(told), areas=areas,
        tone={"failed": "diagnosed", "recovered": "healthy", "healthy": "healthy"}.get(told.outcome, "undecided"),
        sides=[("Old", told.old, _verdict(told.old)), ("New", told.new, _verdict(told.new))],
        explaining=[(_sentence(change), change.because[:2]) for change in explaining(told)],
    )  # fmt: skip


def render_json(told: Comparison, **_: Any) -> str:
    """The comparison as one JSON object; a value that one side does not state is null, and `stated` says so."""
    return dump({"schema_version": "1", **plain(dataclasses.asdict(told))})


FORMS = {"terminal": render, "json": render_json, "markdown": markdown, "html": html}
"""Form -> function(comparison, **options) -> text."""


def _side(side: Side) -> str:
    return f"{side.name}: {_verdict(side)}"


def _verdict(side: Side) -> str:
    if side.verdict == "undecided" or side.cause is None:
        return "undecided" + (f", closest {side.cause} ({percent(side.probability)})" if side.cause else "")
    return f"{side.cause} ({percent(side.probability)})"


def _rows(told: Comparison, area: str) -> tuple[list[Change], list[Change]]:
    """The changes of an area worth a line, and the flags that have nothing to do with memory or the cause."""
    rows = [change for change in told.changes if change.area == area]
    others = [change for change in rows if name_known(change) and not change.relevance]
    return [change for change in rows if change not in others], others


def _table(page: Page, rows: Sequence[Change]) -> None:
    cells = [_columns(change) for change in rows]
    sizes = [min(max((len(row[i]) for row in cells), default=0), VALUE_WIDTH) for i in range(3)]
    for row in cells:
        if sum(sizes) + 20 > page.width:
            page.flow(ink(row[0], "bold"), ink(f"{row[1]} → {row[2]}  {row[3]}".rstrip()), indent=2)
        else:
            page.line(
                ink(f"  {row[0]:<{sizes[0]}}  ", "bold")
                + ink(f"{row[1]:>{sizes[1]}} → {row[2]:<{sizes[2]}}  {row[3]}".rstrip())
            )


def _columns(change: Change) -> tuple[str, str, str, str]:
    name = (
        f"--{change.name.replace('_', '-')}"
        if change.area == "flag"
        else change.name.removesuffix("_bytes").replace("_", " ")
    )
    values = [
        shown(change.name, value) if known else "not stated"
        for value, known in zip((change.before, change.after), change.stated, strict=True)
    ]
    ratio = f"×{change.factor:.2f}" if change.factor is not None and change.area not in ("version", "model") else ""
    return neutral(name), values[0], values[1], ratio


def _sentence(change: Change) -> str:
    name, before, after, ratio = _columns(change)
    return f"{name}: {before} → {after}" + (f" ({ratio})" if ratio else "")


def shown(name: str, value: Any) -> str:
    """A value in the unit that its name tells.

    >>> shown("free_bytes", 2**30), shown("long_context_share", 0.25), shown("context_p95_tokens", 9000.0), shown("dtype", None)
    ('1.00 GiB', '25%', '9,000', 'none')
    """
    if value is None:
        return "none"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if name.endswith("_bytes") or name == "kv_bytes_per_token":
            return show_bytes(value)
        if name.endswith("_share"):
            return percent(value)
        if name.endswith("_per_s"):
            return f"{value:.3g}/s"
        return count(value) if float(value).is_integer() else f"{value:.6g}"
    text = neutral(str(value))
    return text if len(text) <= VALUE_WIDTH else text[: VALUE_WIDTH - 1] + "…"


def _cell(text: str) -> str:
    """Text of a bundle inside Markdown: one line, nothing of it markup or HTML."""
    safe = neutral(text).replace("&", "&amp;").replace("<", "&lt;").replace("\\", "\\\\")
    for mark in "|*_`[]~":
        safe = safe.replace(mark, "\\" + mark)
    return safe
