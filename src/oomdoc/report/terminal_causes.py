"""The causes at a terminal: how the first came to its figure, what was weighed, what to do, what was ruled out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rich.text import Text

from oomdoc.model import Action, Diagnosis, Evidence, Patch, Report
from oomdoc.report.facts import (
    PATCH_NAMES,
    STEPS_SHOWN,
    answer,
    figures,
    fix_title,
    is_tie,
    same_change,
    speaks_for,
    story_of,
    unnamed,
)  # fmt: skip
from oomdoc.report.layout import Page, ink
from oomdoc.report.words import (
    WHEN,
    count,
    factor,
    factor_of,
    likelihood,
    neutral,
    neutral_line,
    paste_lines,
    percent,
)  # fmt: skip

NOT_HELPING_SHOWN = 3

TEXT_IN_A_STEP = 160


def show_refs(refs: Sequence[str], shown: int = 3) -> str:
    """Places of evidence, the first few and how many more."""
    rest = f" and {len(refs) - shown} more" if len(refs) > shown else ""
    return ", ".join(neutral(ref) for ref in refs[:shown]) + rest


def show_causes(page: Page, report: Report, top: int) -> None:
    """The causes with their probabilities as bars, the most likely first."""
    if not report.diagnoses:
        return
    page.heading("Causes, most likely first")
    room = 10 if page.width < 100 else 20
    for item in report.diagnoses[:top]:
        full = round(item.probability * room)
        lead = ink(f"{percent(item.probability):>4} ", "bold") + ink(
            "█" * full, "red" if item.cause != "healthy" else "green"
        )
        lead += ink("░" * (room - full), "bright_black")
        name = neutral(item.cause) + (f" ({neutral(item.reason)})" if item.reason else "")
        page.flow(lead, page.prose(item.title) + ink(f"  {name}", "dim"), indent=2)
    if rest := report.diagnoses[top:]:
        most = percent(rest[0].probability)
        said = most if len(rest) == 1 else f"each {most}" if most.startswith("<") else f"{most} or less"
        page.flow(Text(), ink(f"{count(len(rest), 'further cause')}, {said}", "dim"), indent=2)


def show_steps(page: Page, report: Report) -> None:
    """The arithmetic, a line each, to exactly the figure of the first line."""
    story = story_of(report)
    if not story.steps or report.verdict == "no-server":
        return
    rest = story.steps[1:]
    start, factors = figures(story.steps)
    page.heading("How sure", f"starts at {start}; each line multiplies the odds")
    first = report.diagnoses[0]
    refs = {item.id: item for item in (*first.evidence, *first.against)}
    shown = rest if len(rest) <= STEPS_SHOWN + 1 else rest[:STEPS_SHOWN]
    for step, times in zip(shown, factors, strict=False):
        body = page.prose(_shorter(step.says))
        if (item := refs.get(step.evidence or "")) and (places := unnamed(item)):
            body += ink("  ") + ink(show_refs(places, 1), "cyan")
        page.flow(ink(times, "green" if step.factor >= 1 else "yellow"), body, indent=2, lead_width=6, gap=1)
    if len(shown) < len(rest):
        together = math.prod(step.factor for step in rest[len(shown) :])
        said = f"{count(len(rest) - len(shown), 'further line')} together; --all shows each"
        page.flow(ink(factor_of(together)), ink(said, "dim"), indent=2, lead_width=6, gap=1)
    said = f"{percent(first.probability)}, {likelihood(first.probability)}"
    page.flow(ink("=", "bold"), page.prose(said), indent=2, lead_width=6, gap=1)


def _shorter(text: str) -> str:
    """A sentence of evidence for the short form: a quoted message is cut at a word."""
    return text if len(text) <= TEXT_IN_A_STEP else text[: text.rfind(" ", 0, TEXT_IN_A_STEP)] + " …"


def _as_shown(report: Report, item: Diagnosis) -> Mapping[str, str]:
    """The factors of the arithmetic of the first cause by evidence: the same figure has the same digits in a report."""
    story = story_of(report)
    if not story.steps or item.cause != report.diagnoses[0].cause:
        return {}
    return {
        step.evidence: shown
        for step, shown in zip(story.steps[1:], figures(story.steps)[1], strict=True)
        if step.evidence
    }


def show_evidence(page: Page, report: Report, item: Diagnosis) -> None:
    """All that was weighed for a cause: for it, against it, and what nobody knows."""
    page.heading(f"All evidence for {neutral(item.title)}", neutral(item.cause))
    if item.summary:
        page.flow(Text(), page.prose(item.summary), indent=2)
    _weighed(page, item.evidence, "green", "nothing in this bundle speaks for it", _as_shown(report, item))
    if item.against:
        page.flow(Text(), ink("against it", "bold"), indent=2)
        _weighed(page, item.against, "yellow", "", _as_shown(report, item))
    asked = [each for each in item.unanswered if each.lacks]
    if asked:
        page.flow(Text(), ink("not in this bundle, and not counted", "bold"), indent=2)
    for each in asked:
        page.flow(
            ink("-", "dim"),
            page.prose(f"{each.asks} (needs {', '.join(each.lacks)})") + ink(f"  {neutral(each.id)}", "dim"),
            indent=2,
            gap=1,
        )
    if rest := len(item.unanswered) - len(asked):
        said = (
            f"{count(rest, 'further question')} of this cause do not arise in this bundle"
            if rest > 1
            else "1 further question does not arise"
        )
        page.flow(Text(), ink(f"{said}: oomdoc explain {neutral(item.cause)}", "dim"), indent=2)


def _weighed(page: Page, evidence: Sequence[Evidence], style: str, nothing: str, shown: Mapping[str, str]) -> None:
    for item in evidence:
        body = page.prose(item.says, item.refs)
        if places := unnamed(item):
            body += ink("  ") + ink(show_refs(places, 2), "cyan")
        if item.weight == 0:
            body += ink("  (the same fact as a stronger line)", "dim")
        body += ink(f"  {neutral(item.id)}", "dim")
        page.flow(ink(shown.get(item.id) or factor(item.weight), style), body, indent=2, lead_width=5, gap=1)
    if not evidence and nothing:
        page.flow(Text(), ink(nothing, "dim"), indent=2)


def show_actions(page: Page, report: Report, diagnosis: Diagnosis, everything: bool) -> None:
    """What to do: the first fix whole, others in a line, and what would not help."""
    if not diagnosis.actions:
        return
    story = story_of(report)
    best, *others = diagnosis.actions
    if report.verdict != "diagnosed" and not everything:
        return
    page.heading(fix_title(report), WHEN[best.when] if report.verdict in ("diagnosed", "undecided") else "")
    if everything:
        _flags(page, best, 2)
    for label, text in (("why", best.why), ("proof", best.proof), ("cost", best.cost), ("check", best.verify)):
        if text:
            page.flow(ink(label, "dim"), page.prose(text), indent=2, lead_width=5, gap=1)
    for patch in story.patches:
        if patch.form != "flags" and (everything or (patch.fits and patch.form != "flags")):
            _patch(page, patch)
    if diagnosis.command and everything:
        page.heading("The whole command", "what was set, with the best change")
        for line in diagnosis.command.splitlines():
            page.line(ink(f"  {neutral(line)}", "green"))
    soon = best.when != "now" and diagnosis.until_then is not None
    now = "What to do until then" if soon else "What else would help now"
    for when, title in (("now", now), ("after-load-test", "What would help after a load test")):
        staged = [action for action in others if action.when == when]
        if not everything:  # the first screen has it
            staged = [action for action in staged if action.id != diagnosis.until_then]
        if staged:
            page.heading(title)
        for action in staged:
            page.flow(ink("-"), page.prose(action.do), indent=2, gap=1)
            if not everything:
                continue
            for label, text in (("why", action.why), ("proof", action.proof), ("cost", action.cost)):
                if text:
                    page.flow(ink(label, "dim"), page.prose(text), indent=4, lead_width=5, gap=1)
            _flags(page, action, 4)
    if diagnosis.not_helping:
        page.heading("What would not help")
    for item in diagnosis.not_helping if everything else diagnosis.not_helping[:NOT_HELPING_SHOWN]:
        advised = f" (advised at {item.ref})" if item.ref else ""
        said = f"{item.what}{advised}: {item.why if everything else item.why.partition(';')[0]}"
        page.flow(ink("-"), page.prose(said, (item.ref,) if item.ref else ()), indent=2, gap=1)


def _patch(page: Page, patch: Patch) -> None:
    note = "" if patch.whole else " (join it with what is there)"
    page.flow(Text(), ink(PATCH_NAMES[patch.form] + note, "dim"), indent=2)
    for line in patch.text.splitlines():
        page.line(ink("    ") + ink(neutral_line(line), "green"))


def _flags(page: Page, action: Action, indent: int) -> None:
    lines = paste_lines(action.changes, action.was)
    longest = max((len(flag) for flag, _ in lines), default=0)
    for flag, comment in lines:
        line = ink(" " * indent) + ink(f"{flag:<{longest}}" if comment else flag, "bold green")
        page.line(line + ink(f"   {comment}" if comment else "", "dim"))


def show_rivals(page: Page, report: Report, top: int) -> None:
    """Rivals that something in the bundle keeps in play; a tie is called one."""
    kept = set(story_of(report).keeps)
    near = [item for item in report.diagnoses[1:] if item.cause in kept][: max(top, 1)]
    if report.verdict in ("healthy", "no-server") or not near:
        return
    page.heading("What else it could be", "each is judged by itself: two can be true")
    first = report.diagnoses[0]
    for item in near:
        strongest, said = answer(item)
        body = page.prose(item.title) + ink(f"  {neutral(item.cause)}", "dim")
        if is_tie(first, item):
            body += ink(
                " a tie with the first" + (", and the same change helps both" if same_change(first, item) else ""),
                "bold",
            )
        if kept_by := speaks_for(item):
            body += ink("; ") + ink(factor(kept_by.weight), "green") + ink(" ") + page.prose(kept_by.says, kept_by.refs)
        if strongest:
            body += ink("; ") + ink(factor(strongest.weight), "yellow") + ink(" ")
            body += page.prose(strongest.says, strongest.refs)
        elif said:
            body += ink(f"; {neutral(said)}")
        page.flow(ink(f"{percent(item.probability):>4}", "bold"), body, indent=2, gap=1)
