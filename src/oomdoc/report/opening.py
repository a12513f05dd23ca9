"""The first screen of the terminal form: the answers of the story, each beside its question."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from oomdoc.model import Report, Story, closest
from oomdoc.report.facts import in_short, story_of, tie
from oomdoc.report.layout import Page, ink
from oomdoc.report.words import WHEN, flag, incomplete, likelihood, neutral, percent, uncollected, until_then

LABEL_WIDTH = 15


def label(report: Report) -> tuple[str, str]:
    """The verdict in capitals with its probability, and the colour that repeats it."""
    first = report.diagnoses[0] if report.diagnoses else None
    chance = f" ({percent(first.probability)})" if first else ""
    if report.verdict == "diagnosed" and first:
        return f"{likelihood(first.probability).upper()}{chance}", "bold red"
    if report.verdict == "healthy":
        return f"HEALTHY{chance}", "bold green"
    if report.verdict == "not-memory":
        return f"NOT A MEMORY FAILURE{chance}", "bold yellow"
    return ("NO SERVER" if report.verdict == "no-server" else "UNDECIDED"), "bold yellow"


def opening(page: Page, report: Report) -> None:
    """What, where, when, why, who, cost, how sure, what to change: a line each, as far as the bundle says it."""
    story = story_of(report)
    if lost := incomplete(report):
        page.flow(ink("BUNDLE IS INCOMPLETE", "bold red"), page.prose(lost), lead_width=len("BUNDLE IS INCOMPLETE"))
    words, style = label(report)
    page.flow(ink(words, style), page.prose(story.title, style="bold"))
    for question, body in _answers(page, report, story):
        page.flow(ink(question, "bold"), body, lead_width=LABEL_WIDTH, gap=1)


def _answers(page: Page, report: Report, story: Story) -> Iterator[tuple[str, Text]]:
    first = report.diagnoses[0] if report.diagnoses else None
    if lacks := uncollected(report):
        yield "Not collected", page.prose(lacks)
    if report.verdict in ("diagnosed", "undecided") and first:
        yield "What ran out", page.prose(story.ran_out)
    if story.where:
        yield "Where", page.prose(story.where)
    if story.when:
        yield "When", page.prose(story.when)
    for place, link in enumerate(story.chain):
        body = page.prose(link.says)
        if link.refs:
            body += ink("  ") + ink(", ".join(neutral(ref) for ref in link.refs[:1]), "cyan")
        yield ("Why" if place == 0 else f"{'→':>{LABEL_WIDTH}}"), body
    if report.verdict == "undecided":
        for place, item in enumerate(closest(report.diagnoses)):
            yield (
                ("Closest" if place == 0 else ""),
                page.prose(f"{percent(item.probability)} {item.title}") + ink(f"  {neutral(item.cause)}", "dim"),
            )
    if story.who:
        yield "Who", page.prose(story.who)
    if story.cost:
        yield "What it cost", page.prose(story.cost)
    if story.steps:
        yield (
            "How sure",
            page.prose(
                "; ".join(
                    part for part in (in_short(story.steps), tie(report), story.record and story.record.says) if part
                )
            ),
        )
    yield from _change(page, report, story)
    yield "Bundle", _bundle(report)


def _change(page: Page, report: Report, story: Story) -> Iterator[tuple[str, Text]]:
    first = report.diagnoses[0] if report.diagnoses else None
    action = first.actions[0] if first and first.actions else None
    if report.verdict == "no-server":
        yield "What to do", page.prose("Hand over the server's log, its metrics, or what its supervisor says of it")
    elif report.verdict == "undecided":
        if report.collect_next:
            yield "What to do", page.prose(f"Collect more and analyse again: {report.collect_next[0].what}")
    elif report.verdict == "healthy":
        yield "What to do", page.prose(story.change or "Nothing has to be done")
    elif story.change and action:
        when = f" ({WHEN[action.when]})" if action.when != "now" else ""
        yield "What to change", page.prose(story.change) + ink(when)
        for name, value in action.changes.items():
            pasted = flag(name, value)
            if pasted not in story.change:
                yield " " * LABEL_WIDTH, ink(pasted, "bold green")
        if story.replay:
            yield "By its replay", page.prose(story.replay)
        if first and (stopgap := until_then(first)):
            yield "Until then", page.prose(stopgap.do)
    else:
        yield "What to change", ink("the bundle shows too little to name a change")


def _bundle(report: Report) -> Text:
    said = [neutral(report.bundle.name)]
    if report.engines:
        last = report.engines[-1]
        said += [f"vLLM {neutral(last.version)}"] if last.version else []
        said += [neutral(last.model)] if last.model else []
        shards = last.flags.get("tensor_parallel_size")
        said += [f"TP {neutral(str(shards.value))}"] if shards else []
    return ink(", ".join(said))
