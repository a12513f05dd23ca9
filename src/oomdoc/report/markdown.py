"""The report for a ticket or a chat, in the Markdown of GitHub: verdict, proof, fix, rivals, what to collect, coverage.

Texts of a bundle stay text: they go through `words.neutral`, and everything that Markdown or HTML would act on is escaped
(`plain`), also mentions of people and numbers of issues. What is code stands in fences that it cannot close (`fenced`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from oomdoc.model import Diagnosis, Evidence, Report, closest
from oomdoc.report.facts import (
    KINDS,
    MOMENTS,
    PATCH_NAMES,
    answer,
    computed,
    contradictions,
    engine_line,
    figures,
    fix_title,
    is_tie,
    ledger_of_failure,
    parts_of,
    plans_of_failure,
    pool,
    same_change,
    speaks_for,
    story_of,
    tie,
    traffic_line,
    unnamed,
    unusual,
)  # fmt: skip
from oomdoc.report.words import (
    WHEN,
    changes,
    cost,
    count,
    factor,
    flag,
    gravest,
    incomplete,
    likelihood,
    moment,
    neutral,
    neutral_line,
    percent,
    uncollected,
    until_then,
)
from oomdoc.units import GIB, show_seconds

UNREAD_SHOWN = 10
RANKS_SHOWN = 8
ENGINES_SHOWN = 4
MARKS_SHOWN = 12

_SPECIAL = re.compile(r"[\\`*_\[\]<>|~&$]")
_LEADING = re.compile(r"^(?:[-+=#:]|\d+[.)](?=\s|$))")  # a list, a heading, a table's rule
_JOINER = "&#8203;"  # a zero-width space: breaks a mention or a link, shows nothing


def render(report: Report, *, top: int = 3, **_: Any) -> str:
    """The report as Markdown; `top` is how many rivals are told."""
    first = report.diagnoses[0] if report.diagnoses else None
    lost = incomplete(report)
    lines = [f"**Bundle is incomplete**: {plain(lost)}", ""] if lost else []
    lines += _head(report, first)
    if first:
        lines += _evidence(report, first)
    lines += _failure(report)
    lines += _ledger(report)
    if first and first.actions:
        lines += _fix(report, first)
        lines += _replay(report)
        lines += _refused(first)
    lines += _rivals(report, top)
    lines += _moments(report)
    lines += _engines(report) + _traffic(report)
    lines += _watch(report) if report.verdict == "healthy" else []
    lines += _set_aside(report) + _collect(report)
    lines += _coverage(report)
    return "\n".join(lines).rstrip("\n") + "\n"


# ---- what makes text harmless


def plain(text: Any) -> str:
    r"""Text that Markdown shows as it is: nothing is a link, a tag, a mention, an issue, a list or a formula.

    >>> plain("a|b <script> @team #12 www.x.org"), plain("1. *x*\n`y`"), plain("- 0.18.1 (10%)")
    ('a\\|b \\<script\\> @&#8203;team #&#8203;12 www&#8203;.x.org', '1\\. \\*x\\* \\`y\\`', '\\- 0.18.1 (10%)')
    """
    clean = _SPECIAL.sub(r"\\\g<0>", neutral(str(text)))
    clean = _LEADING.sub(lambda match: match[0][:-1] + "\\" + match[0][-1], clean)
    clean = re.sub(r"([@#])(?=\w)", rf"\1{_JOINER}", clean)  # a backslash keeps neither a mention nor an issue away
    clean = re.sub(r"(?i)\b(GH)-(?=\d)", rf"\1{_JOINER}-", clean)
    clean = re.sub(r"(?i)\b(https?|ftp|mailto|xmpp):", rf"\1{_JOINER}:", clean)
    return re.sub(r"(?i)\b(www)\.", rf"\1{_JOINER}.", clean)


def code(text: Any) -> str:
    """A code span that its own text cannot close.

    >>> code("vllm.log:3"), code("a`b|c")
    ('`vllm.log:3`', "`a'b¦c`")
    """
    clean = neutral(str(text)).replace("`", "'").replace("|", "¦")  # a table splits at a bar even inside of code
    return f"`{clean}`" if clean else ""


def prose(text: str) -> str:
    """A sentence of a rule: its `code` stays code, all else is plain."""
    pieces = re.split(r"`([^`]+)`", neutral(text))
    return "".join(code(piece) if place % 2 else _kept(piece) for place, piece in enumerate(pieces))


def _kept(text: str) -> str:
    """`plain` with the blanks at both ends, which `neutral` takes away."""
    if not text.strip():
        return text
    return text[: len(text) - len(text.lstrip())] + plain(text) + text[len(text.rstrip()) :]


def fenced(lines: Iterable[str], language: str = "") -> list[str]:
    """A block of code whose fence is longer than any run of backticks in it."""
    body = [neutral(line) for line in lines]
    runs = [len(run) for line in body for run in re.findall("`+", line)]
    fence = "`" * max(3, *(size + 1 for size in runs), 3)
    return [fence + language, *body, fence]


def fenced_as_is(lines: Iterable[str], language: str = "") -> list[str]:
    """The same for lines whose indent matters."""
    body = [neutral_line(line) for line in lines]
    runs = [len(run) for line in body for run in re.findall("`+", line)]
    fence = "`" * max(3, *(size + 1 for size in runs), 3)
    return [fence + language, *body, fence]


# ---- the parts


def _head(report: Report, first: Diagnosis | None) -> list[str]:
    verdict = {
        "diagnosed": "Diagnosed",
        "healthy": "Healthy",
        "not-memory": "Not a memory failure",
        "no-server": "No server",
    }.get(report.verdict, "Undecided")
    story = story_of(report)
    lines = [f"## {verdict}: {prose(story.title)}", "", "| | |", "| --- | --- |"]
    if lacks := uncollected(report):
        lines.append(f"| **Not collected** | {prose(lacks)} |")
    if report.verdict in ("diagnosed", "undecided"):
        lines.append(f"| **What ran out** | {prose(story.ran_out)} |")
    for name, text in (("Where", story.where), ("When", story.when), ("Who", story.who), ("What it cost", story.cost)):
        lines += [f"| **{name}** | {prose(text)} |"] if text else []
    if report.verdict == "undecided":
        named = [f"{prose(item.title)} ({plain(percent(item.probability))})" for item in closest(report.diagnoses)]
        lines += [f"| **Closest** | {'; '.join(named)} |"] if named else []
        if first:
            lines.append(f"| **How sure** | {plain(percent(first.probability))}, {likelihood(first.probability)} |")
        if report.collect_next:
            lines.append(f"| **What to do** | collect more and analyse again: {prose(report.collect_next[0].what)} |")
    elif first:
        counted = f"; {prose(level)}" if (level := tie(report)) else ""
        counted += f"; {plain(story.record.says)}" if story.record else ""
        lines.append(
            f"| **How sure** | {plain(percent(first.probability))}, {likelihood(first.probability)}{counted} |"
        )
        if story.change:
            stopgap = until_then(first)
            after = "" if first.actions[0].when == "now" else f" ({WHEN[first.actions[0].when]})"
            asked = "What to do" if report.verdict == "healthy" else "What to change"
            lines.append(f"| **{asked}** | {prose(story.change)}{after} |")
            if story.replay:
                lines.append(f"| **By its replay** | {prose(story.replay)} |")
            if stopgap:
                lines.append(f"| **Until then** | {prose(stopgap.do)} |")
    said = [code(report.bundle.name)]
    if report.engines:
        last = report.engines[-1]
        said += [f"vLLM {plain(last.version)}"] if last.version else []
        said += [code(last.model)] if last.model else []
    lines += [f"| **Bundle** | {', '.join(said)} |", ""]
    if story.chain:
        lines += ["### Why", ""]
        for number, link in enumerate(story.chain, 1):
            places = ", ".join(code(ref) for ref in link.refs[:2])
            lines.append(f"{number}. {prose(link.says)}" + (f" ({places})" if places else ""))
        lines.append("")
    return lines


def _evidence(report: Report, item: Diagnosis) -> list[str]:
    """The arithmetic to the figure of the first table; then what could not be asked."""
    story = story_of(report)
    if not story.steps:
        return []
    start, factors = figures(story.steps)
    known = {each.id: each for each in (*item.evidence, *item.against)}
    lines = [
        "### How sure",
        "",
        f"{code(item.cause)} ({prose(item.title)}) is the cause of {plain(start)} of incidents before any evidence; each line multiplies the odds.",
        "",
    ]
    for step, times in zip(story.steps[1:], factors, strict=True):
        found = known.get(step.evidence or "")
        places = [code(ref) for ref in unnamed(found)[:3]] if found else []
        lines.append(f"- **{plain(times)}** {prose(step.says)}" + (f" ({', '.join(places)})" if places else ""))
    lines += [f"- **= {plain(percent(item.probability))}**, {likelihood(item.probability)}", ""]
    same = [each for each in item.evidence if each.weight == 0]
    if same:
        lines += ["The same facts as stronger lines, not counted twice:", "", *_weighed(same), ""]
    for lacks, title in (
        (True, "Not in this bundle, and not counted"),
        (False, "Does not arise here, and is not counted"),
    ):
        asked = [each for each in item.unanswered if bool(each.lacks) is lacks]
        if asked:
            lines += [f"<details><summary>{title}</summary>", ""]
            for each in asked:
                need = f", needs {prose(', '.join(each.lacks))}" if each.lacks else ""
                lines.append(f"- {prose(each.asks)} ({code(each.id)}{need})")
            lines += ["", "</details>", ""]
    return lines


def _weighed(items: Sequence[Evidence]) -> list[str]:
    lines = []
    for item in items:
        places = [code(ref) for ref in unnamed(item)[:3]]
        same = " (the same fact as a stronger line)" if item.weight == 0 else ""
        lines.append(
            f"- **{plain(factor(item.weight))}** {prose(item.says)}{same}"
            + (f" ({', '.join(places)})" if places else "")
        )
    return lines


def _failure(report: Report) -> list[str]:
    incident = gravest(report)
    if incident is None or incident.first_failure is None:
        return []
    failure = incident.first_failure
    kind = plain(KINDS.get(incident.kind, incident.kind))
    lines = [
        "### What failed first",
        "",
        f"{code(failure.ref)}, {plain(moment(failure.time))}: {kind}",
        "",
        *fenced([failure.text[:480]], "text"),
        "",
    ]
    if told := cost(incident.impact):
        lines += [f"It cost: {plain(told)}.", ""]
    if incident.cascade:
        rest = f" and {len(incident.cascade) - 4} more" if len(incident.cascade) > 4 else ""
        lines += ["What followed from it: " + ", ".join(code(ref) for ref in incident.cascade[:4]) + rest + ".", ""]
    return lines


def _ledger(report: Report) -> list[str]:
    entries = ledger_of_failure(report)
    if not entries:
        return []
    shown = entries[:RANKS_SHOWN]
    heads = [f"rank {entry.rank}" if entry.rank is not None else plain(entry.device or "GPU") for entry in shown]
    heads = [
        f"{head}, {MOMENTS[entry.moment]}" if entry.moment else head for head, entry in zip(heads, shown, strict=True)
    ]
    plans = plans_of_failure(report)[: RANKS_SHOWN - len(shown)]
    heads += [MOMENTS["plan"] for _ in plans]
    ranks = len(shown)
    shown = [*shown, *plans]
    lines = ["### Where the memory is", "", "| GiB | " + " | ".join(heads) + " |", "| --- |" + " ---: |" * len(heads)]
    for key, name in parts_of(shown):
        if any(entry.parts.get(key) for entry in shown):
            lines.append(f"| {name} | " + " | ".join(_gib(entry.parts.get(key)) for entry in shown) + " |")
    lines.append("| **device** | " + " | ".join(_gib(entry.total_bytes) for entry in shown) + " |")
    lines.append("")
    for told in contradictions(entries):
        lines += [f"Does not add up: {prose(told)}", ""]
    for told in unusual(entries):
        lines += [f"Unusual: {prose(told)}", ""]
    if names := computed(entries):
        lines += [f"Computed, not logged: {', '.join(names)}.", ""]
    said = pool(entries)
    if len(entries) > ranks:
        said.append(f"{len(entries) - ranks} more ranks are in the JSON report")
    text = "; ".join(said)
    return [*lines, text[:1].upper() + text[1:] + ".", ""] if said else lines


def _gib(size: int | None) -> str:
    return "unknown" if size is None else f"{size / GIB:.2f}"


LANGUAGES = {"flags": "sh", "environment": "sh"}


def _patches(report: Report) -> list[str]:
    """The first change as it is pasted where servers are deployed; the form that this bundle shows stands open."""
    lines = []
    for patch in story_of(report).patches:
        if patch.form == "flags":
            continue
        name = PATCH_NAMES[patch.form] + ("" if patch.whole else ", to be joined with what is there")
        block = fenced_as_is(patch.text.splitlines(), LANGUAGES.get(patch.form, "yaml"))
        if patch.fits:
            lines += [f"{name}:", "", *block, ""]
        else:
            lines += [f"<details><summary>{name}</summary>", "", *block, "", "</details>", ""]
    return lines


def _fix(report: Report, item: Diagnosis) -> list[str]:
    failed = report.verdict in ("diagnosed", "undecided")
    lines = [f"### {fix_title(report)}", ""]
    for number, action in enumerate(item.actions, 1):
        lines += [f"{number}. " + (f"**{WHEN[action.when]}:** " if failed else "") + prose(action.do), ""]
        if action.changes:
            lines += ["   " + line for line in fenced([_changed(*row) for row in changes(action)], "sh")]
            lines.append("")
        told = (("why", action.why), ("proof", action.proof), ("cost", action.cost), ("check", action.verify))
        lines += [f"   - {label}: {prose(text)}" for label, text in told if text]
        lines.append("")
        if number == 1:
            lines += _patches(report)
    if item.command:
        lines += ["The whole command, with the first change:", "", *fenced(item.command.splitlines(), "sh"), ""]
    return lines


def _refused(item: Diagnosis) -> list[str]:
    if not item.not_helping:
        return []
    lines = ["### What would not help", ""]
    for refused in item.not_helping:
        advised = f" (advised at {code(refused.ref)})" if refused.ref else ""
        lines.append(f"- {prose(refused.what)}{advised}: {prose(refused.why)}")
    return [*lines, ""]


def _watch(report: Report) -> list[str]:
    if not report.watch:
        return []
    lines = ["### Watch", ""]
    for item in report.watch:
        places = f" ({', '.join(code(ref) for ref in item.refs)})" if item.refs else ""
        lines.append(f"- {'**near failing:**' if item.near else 'room:'} {prose(item.says)}{places}")
    return [*lines, ""]


def _changed(_name: str, old: str, _new: str, paste: str) -> str:
    return paste + (f"   # was {old}" if old else "")


def _replay(report: Report) -> list[str]:
    told = report.fix_replay
    if not told:
        return []
    before, after = told["before"], told["after"]
    rows = [
        ("survives", *("yes" if side["survives"] else "no" for side in (before, after))),
        ("most of the pool in use", *(plain(percent(side["peak_used"])) for side in (before, after))),
        ("preemptions", *(count(side["preemptions"]) for side in (before, after))),
        ("wait, 95th percentile", *(show_seconds(side["p95_wait_s"]) for side in (before, after))),
    ]
    settings = " ".join(flag(item["flag"], item["value"]) for item in told["settings"])
    lines = [
        f"The recorded {count(told['requests'], 'request')} run again with {code(settings)}:",
        "",
        "| replay | flags as they were | with that change |",
        "| --- | ---: | ---: |",
    ]
    return [*lines, *(f"| {name} | {here} | {there} |" for name, here, there in rows), ""]


def _rivals(report: Report, top: int) -> list[str]:
    """Rivals that something in the bundle keeps in play."""
    kept = set(story_of(report).keeps)
    near = [item for item in report.diagnoses[1:] if item.cause in kept][:top]
    if not near or report.verdict in ("healthy", "no-server"):
        return []
    first = report.diagnoses[0]
    lines = ["### What else it could be", ""]
    for item in near:
        worst, said = answer(item)
        why = f"**{plain(factor(worst.weight))}** {prose(worst.says)}" if worst else plain(said)
        if kept_by := speaks_for(item):
            why = f"**{plain(factor(kept_by.weight))}** {prose(kept_by.says)}; {why}"
        tie = ""
        if is_tie(first, item):
            tie = ", a tie with the first" + (", and the same change helps both" if same_change(first, item) else "")
        lines.append(f"- {plain(percent(item.probability))} {prose(item.title)} ({code(item.cause)}){tie}: {why}")
    return [*lines, ""]


def _engines(report: Report) -> list[str]:
    if not report.engines:
        return []
    starts = len(report.engines)
    lines = ["### Engine" if starts == 1 else f"### Engine starts ({starts})", ""]
    for engine in report.engines[-ENGINES_SHOWN:]:
        begun = plain(moment(engine.started)) if engine.started is not None else code(engine.ref)
        lines.append(f"- {begun}: {plain(engine_line(engine))}")
    if starts > ENGINES_SHOWN:
        lines.append(f"- and {starts - ENGINES_SHOWN} earlier")
    return [*lines, ""]


def _traffic(report: Report) -> list[str]:
    said = traffic_line(report.traffic)
    return ["### Traffic", "", plain(said) + ".", ""] if said else []


def _moments(report: Report) -> list[str]:
    marks = report.timeline.get("marks") or ()
    if len(marks) < 2:
        return []
    lines = ["### What happened when", "", "| time | what | where |", "| --- | --- | --- |"]
    lines += [
        f"| {plain(moment(mark['t']))} | {prose(mark['says'])} | {code(mark['ref'])} |" for mark in marks[:MARKS_SHOWN]
    ]
    if len(marks) > MARKS_SHOWN:
        lines.append(f"| | and {len(marks) - MARKS_SHOWN} more | |")
    return [*lines, ""]


def _set_aside(report: Report) -> list[str]:
    if not report.set_aside:
        return []
    said = [
        f"- {plain(item.why)} {' '.join(code(ref) for ref in item.refs)}".rstrip() + f": {plain(item.says)}"
        for item in report.set_aside
    ]
    return ["### Seen and set aside", "", "Not this server's, and why:", "", *said, ""]


def _collect(report: Report) -> list[str]:
    if not report.collect_next:
        return []
    lines = ["### To be surer, collect", ""]
    for number, item in enumerate(report.collect_next, 1):
        lines += [f"{number}. {prose(item.what)}", ""]
        lines += ["   " + line for line in fenced([item.command], "sh")] if item.command else []
        lines.append("")
    return lines


def _coverage(report: Report) -> list[str]:
    sources = report.coverage.sources
    said = f"{count(len(sources), 'source')}, {count(sum(item.lines for item in sources), 'line')}, {count(sum(item.rows for item in sources), 'row')} of evidence"
    lines = ["<details><summary>What was read</summary>", "", said + ".", ""]
    if sources:
        lines += ["| source | kind | rows | not understood |", "| --- | --- | ---: | ---: |"]
        lines += [
            f"| {code(item.path)} | {plain(item.kind)} | {count(item.rows)} | {count(item.problems)} |"
            for item in sources[:40]
        ]
        lines.append("")
    for row in report.coverage.unread[:UNREAD_SHOWN]:
        lines.append(f"- not read: {code(row.path)}: {plain(row.why)}")
    if len(report.coverage.unread) > UNREAD_SHOWN:
        lines.append(f"- and {len(report.coverage.unread) - UNREAD_SHOWN} more not read")
    lines += [
        f"- not collected: {plain(item.what)}: {prose(item.why)} ({code(item.ref)})"
        for item in report.coverage.uncollected
    ]
    lines += ["", "</details>", ""]
    if report.warnings:
        lines += ["Mind:", "", *(f"- {prose(text)}" for text in report.warnings), ""]
    return [*lines, f"oomdoc {plain(report.oomdoc_version)}, rules {plain(report.rules_version)}"]
