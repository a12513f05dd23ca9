"""`oomdoc doctor`: a report as a list of checks, each passed, warned of or failed, in the terms of the evidence tables.

What the bundle does not tell has no check: silence is not health. For a live server the bundle is one scrape of its metrics.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from oomdoc.model import Report
from oomdoc.report.facts import story_of
from oomdoc.report.json import dump
from oomdoc.report.layout import Page, ink
from oomdoc.report.words import count, incomplete, percent

FAILED_SHARE = 0.01
"""Requests that fail from here on are a failure, not noise: one in a hundred is what a usual service level allows."""
_LIVES = {
    "served": ("pass", "the server came up and served"),
    "starting": ("warn", "the server is still starting"),
    "refused": ("fail", "the server refused to start"),
    "died": ("fail", "the server died"),
    "ended": ("warn", "the server was ended from outside"),
    "degraded": ("warn", "the server serves, and not as it should"),
    "stuck": ("fail", "the server stands still"),
    "grew": ("warn", "the memory of the server grows"),
}
_COLOURS = {"pass": "green", "warn": "bold yellow", "fail": "bold red"}


@dataclass(frozen=True)
class Check:
    """One check: `state` is pass, warn or fail; `refs` are `path:line`."""

    id: str
    state: str
    says: str
    refs: tuple[str, ...] = ()


def checks(report: Report) -> tuple[Check, ...]:
    """What is told, failed ones first."""
    order = ("fail", "warn", "pass")
    return tuple(sorted(_checks(report), key=lambda check: order.index(check.state)))


def _checks(report: Report) -> Iterator[Check]:
    if lost := incomplete(report):
        yield Check("whole", "warn", f"the bundle is incomplete: {lost}")
    first = report.diagnoses[0] if report.diagnoses else None
    if report.verdict == "no-server":
        yield Check("server", "fail", "nothing here shows an LLM server")
        return
    life = _LIVES.get(report.engines[-1].outcome) if report.engines else None
    if life:
        ref = report.engines[-1].outcome_ref
        yield Check("server", *life, (ref,) if ref else ())
    if first:
        said = f"{story_of(report).title} ({percent(first.probability)}, {first.cause})"
        refs = tuple(ref for link in story_of(report).chain for ref in link.refs[:1])[:2]
        if report.verdict == "healthy":
            yield Check("memory", "pass", said, refs)
        elif report.verdict == "undecided":
            yield Check("memory", "warn", f"no cause stands out; closest: {first.title} ({percent(first.probability)})")  # fmt: skip
        else:
            yield Check("memory" if report.verdict == "diagnosed" else "failure", "fail", said, refs)
    requests, failed = report.traffic.get("requests"), report.traffic.get("failed")
    if requests and failed is not None:
        state = "pass" if not failed else "fail" if failed / requests >= FAILED_SHARE else "warn"
        yield Check("requests", state, f"{count(failed)} of {count(requests, 'request')} failed")
    for item in report.watch:
        yield Check(item.id, "warn" if item.near else "pass", item.says, item.refs)
    for said in dict.fromkeys(said for entry in report.ledger for said in entry.contradictions):
        yield Check("ledger", "warn", said)


def render(report: Report, *, width: int = 100, color: bool = False) -> str:
    """A line a check."""
    page = Page(width, color)
    made = checks(report)
    for check in made:
        body = page.prose(check.says) + (ink(f"  {', '.join(check.refs)}", "cyan") if check.refs else ink(""))
        page.flow(ink(check.state.upper(), _COLOURS[check.state]), ink(f"{check.id}: ", "bold") + body, lead_width=4)
    states = [check.state for check in made]
    said = ", ".join(
        f"{states.count(state)} {word}"
        for state, word in (("fail", "failed"), ("warn", "warned of"), ("pass", "passed"))
        if state in states
    )
    page.line(ink(f"{count(len(made), 'check')}: {said or 'nothing here can be checked'}"))
    return page.text()


def render_json(report: Report) -> str:
    """The checks as JSON: a list of {id, state, says, refs}."""
    return dump([{**asdict(check), "refs": list(check.refs)} for check in checks(report)])
