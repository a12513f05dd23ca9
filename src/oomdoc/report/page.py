"""A cause's own page for `oomdoc explain`, and the table of causes for `oomdoc rules list`.

Reports do not know rules: `rule` is anything with the fields of `oomdoc.judge.rules.Rule`.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable
from typing import Any

from rich.text import Text

from oomdoc.report.layout import Page, ink
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
            ink("of a group only the strongest line counts; what a bundle does not show counts nothing", "dim"),
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


MATRIX_FORMS = ("table", "markdown", "csv")
_SIGNS, _AGAINST, _STEPS = 3, 2, 2


def matrix(rules: Iterable[Any], form: str = "table", *, width: int = 100, color: bool = False) -> str:
    """The root-cause matrix: each cause with its strongest signs, what speaks against it, and what to do."""
    ordered = sorted(rules, key=lambda rule: (rule.category, rule.id))
    rows = [(rule.category, rule.id, rule.title, [*_signs(rule), _steps(rule)]) for rule in ordered]
    heads = ("category", "cause", "what is true", "signs", "against", "what to do")
    if form == "csv":
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(heads)
        writer.writerows([*row[:3], *("; ".join(cell) for cell in row[3])] for row in rows)
        return out.getvalue()
    if form == "markdown":
        lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
        for category, cause, title, cells in rows:
            told = [category, f"`{cause}`", title, *("<br>".join(cell) for cell in cells)]
            lines.append("| " + " | ".join(text.replace("|", "\\|").replace("\n", " ") for text in told) + " |")
        return "\n".join(lines) + "\n"
    page = Page(width, color)
    last = None
    for category, cause, title, sides in rows:
        if category != last:
            last = category
            page.heading(neutral(category))
        page.flow(Text(), ink(neutral(cause), "cyan") + ink("  ") + page.prose(title), indent=2)
        for label, side, style in zip(("sign", "against", "do"), sides, ("green", "yellow", "bold"), strict=True):
            for line in side:
                page.flow(ink(f"{label:>7}", style), page.prose(line), indent=4, gap=1)
    return page.text()


def _signs(rule: Any) -> tuple[list[str], list[str]]:
    """The observations that move the odds most, for the cause and against it, each with its factor."""
    told: tuple[list[str], list[str]] = [], []
    for item in sorted(rule.evidence, key=lambda item: -abs(math.log(item.p_cause / item.p_other))):
        side = told[0] if item.p_cause > item.p_other else told[1]
        side.append(f"{factors(item.p_cause, item.p_other)[0]} {neutral(blank_placeholders(item.says))}")
    return told[0][:_SIGNS], told[1][:_AGAINST]


def _steps(rule: Any) -> list[str]:
    return [neutral(blank_placeholders(action.do)) for action in rule.actions[:_STEPS]]


def factors(p_cause: float, p_other: float) -> tuple[str, str]:
    """What an observation does to the odds when it holds and when it does not.

    >>> factors(0.93, 0.06)
    ('×15', '÷13')
    """
    return factor(math.log(p_cause / p_other)), factor(math.log((1 - p_cause) / (1 - p_other)))
