"""The whole report in at most five lines, for a chat."""

from __future__ import annotations

from collections.abc import Sequence

from oomdoc.model import Report, Story, closest
from oomdoc.units import likelihood, percent

MOST_LINES = 5
_LINKS = 3  # of the chain: what followed the failure stands with the cost
MOST_CHARACTERS = 320  # of a line: a chat shows it without "more"


def brief(report: Report, story: Story) -> tuple[str, ...]:
    """What, where and when; why; cost; change; how sure."""
    first = report.diagnoses[0] if report.diagnoses else None
    lines = [f"{_label(report)}{story.title}"]
    if report.verdict == "no-server":
        return (*lines, f"bundle {report.bundle.name}")
    spot = [part for part in (story.where, story.when) if part]
    if report.verdict in ("diagnosed", "undecided"):
        spot.insert(0, f"ran out: {story.ran_out}")
    if spot:
        lines.append(_cut("; ".join(spot)))
    if story.chain:
        lines.append(_cut(_links([link.says for link in story.chain[:_LINKS]])))
    elif report.verdict == "undecided":
        named = [f"{item.title} ({percent(item.probability)})" for item in closest(report.diagnoses)]
        lines.append(_cut("closest: " + "; ".join(named)) if named else "nothing speaks for a cause")
    change = f"{'do' if report.verdict == 'healthy' else 'change'}: {story.change}" if story.change else ""
    if report.verdict == "undecided" and report.collect_next:
        change = f"collect: {report.collect_next[0].what}"
    if said := _fix(story.cost, change, story.replay if report.verdict != "undecided" else None):
        lines.append(_cut(said))
    model = next((engine.model for engine in reversed(report.engines) if engine.model), None)
    version = next((engine.version for engine in reversed(report.engines) if engine.version), None)
    named = [report.bundle.name, *([f"vLLM {version}"] if version else []), *([model] if model else [])]
    sure = f"{percent(first.probability)}, {likelihood(first.probability)}" if first else "no cause"
    lines.append(_cut(f"sure: {sure}; bundle {', '.join(named)}"))
    return tuple(lines[:MOST_LINES])


def _fix(cost: str | None, change: str, replay: str | None) -> str:
    """What it cost, what to change and what that gives, in whole sentences: a change is not given without its price.

    Where all is too long the later parts of the cost go first, then how soon requests begin.
    """
    costs = [f"cost: {cost}", f"cost: {cost.partition('; ')[0]}", ""] if cost else [""]
    gives = (
        [f"; by its replay {replay}", f"; by its replay {replay.rpartition(', and begin')[0] or replay}"]
        if replay and change
        else [""]
    )
    lines = [". ".join(part for part in (lost, change) if part) + given for lost in costs for given in gives]
    return next((line for line in lines if len(line) <= MOST_CHARACTERS), lines[-1])


def _links(says: Sequence[str]) -> str:
    """The chain on a line: whole links, without the longest ones where all together are too long."""
    kept = list(says)
    while len(line := "why: " + " → ".join(kept)) > MOST_CHARACTERS and len(kept) > 1:
        kept.remove(max(kept, key=len))
    return line


def _label(report: Report) -> str:
    labels = {
        "diagnosed": "",
        "healthy": "Healthy: ",
        "not-memory": "Not a memory failure: ",
        "undecided": "Undecided: ",
    }
    lost = "" if report.bundle.complete else "INCOMPLETE BUNDLE. "
    return lost + labels.get(report.verdict, "")


def _cut(line: str) -> str:
    """At most so many characters, whole words."""
    if len(line) <= MOST_CHARACTERS:
        return line
    return line[: line.rfind(" ", 0, MOST_CHARACTERS - 1)] + " …"
