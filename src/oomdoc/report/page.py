"""A cause's own page for `oomdoc explain`, and the table of causes for `oomdoc rules list`.

Reports do not know rules: `rule` is anything with the fields of `oomdoc.rules.Rule`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from rich.text import Text

from oomdoc.report.terminal import Page, ink
from oomdoc.report.words import blank_placeholders, count, factor, neutral, percent


def render(rule: Any, *, width: int = 100, color: bool = False) -> str:
    """The page of one cause: what it means, what speaks for and against it, what to do, what backs it."""
    page = Page(width, color)
    page.flow(ink(neutral(rule.id), "bold"), ink(f"{neutral(rule.category)}, {percent(rule.prior)} of cases", "dim"))
    page.flow(Text(), page.prose(rule.title, style="bold"))
    page.flow(Text(), page.prose(rule.summary))
    page.heading("Evidence", "what it does to the odds when it is so / when it is not")
    for item in rule.evidence:
        so, not_so = factors(item.p_cause, item.p_other)
        style = "green" if item.p_cause > item.p_other else "yellow"
        lead = ink(f"{so:>6}", style) + ink(f" {not_so:>6}", "dim")
        body = page.prose(blank_placeholders(item.says)) + ink(f"  {neutral(item.id)}", "dim")
        if item.group:
            body += ink(f", group {neutral(item.group)}", "dim")
        page.flow(lead, body, indent=0)
    if any(item.group for item in rule.evidence):
        page.flow(
            Text(),
            ink("of a group only the strongest line counts; what a bundle cannot tell counts nothing", "dim"),
            indent=2,
        )
    if rule.reasons:
        page.heading("Sub-reasons")
    for reason in rule.reasons:
        page.flow(ink(neutral(reason.id)), page.prose(blank_placeholders(reason.says)), indent=2)
    if rule.actions:
        page.heading("Actions")
    for action in rule.actions:
        page.flow(
            ink("-"),
            page.prose(blank_placeholders(action.do)) + ink(f"  {neutral(action.id)}", "dim"),
            indent=2,
            gap=1,
        )
        sets = ", ".join(f"`--{neutral(name).replace('_', '-')}`" for name in action.changes)
        for label, text in (("why", action.why), ("cost", action.cost), ("check", action.verify), ("sets", sets)):
            if text:
                page.flow(ink(label, "dim"), page.prose(blank_placeholders(text)), indent=4, lead_width=5, gap=1)
    if rule.references:
        page.heading("References")
    for reference in rule.references:
        page.line(ink(f"  {neutral(reference['url'])}", "cyan"))
        page.flow(Text(), page.prose(reference["backs"]), indent=4)
    page.heading("Source", count(len(rule.tests), "test of its own", "tests of its own"))
    page.line(ink(f"  {neutral(str(rule.path))}"))
    return page.text()


def table(rules: Iterable[Any], *, width: int = 100, color: bool = False) -> str:
    """Every cause by category: id, prior, how much evidence, title."""
    page = Page(width, color)
    ordered = sorted(rules, key=lambda rule: (rule.category, rule.id))
    room = max((len(neutral(rule.id)) for rule in ordered), default=0)
    page.line(ink(f"  {'cause':<{room}}  prior  evidence  what is true", "dim"))
    category = None
    for rule in ordered:
        if rule.category != category:
            category = rule.category
            page.heading(neutral(category))
        lead = ink(f"{neutral(rule.id):<{room}}", "cyan") + ink(f"  {percent(rule.prior):>5}  {len(rule.evidence):>8}")
        page.flow(lead, page.prose(rule.title), indent=2)
    page.line(Text())
    page.line(ink(count(len(ordered), "cause")))
    return page.text()


def factors(p_cause: float, p_other: float) -> tuple[str, str]:
    """What an observation does to the odds when it holds and when it does not.

    >>> factors(0.93, 0.06)
    ('×15', '÷13')
    """
    return factor(math.log(p_cause / p_other)), factor(math.log((1 - p_cause) / (1 - p_other)))
