"""The report for a person at a terminal: the verdict and what to do first, then what backs it, then what is missing.

Good at 80 and at 160 columns, without colour and in a pipe: colour repeats what a word or a glyph already says. Text of
the bundle goes through `words.neutral` and into rich `Text` objects, never through markup. Lines that are there to be
pasted (flags, commands) are not wrapped. Deterministic: the report, the width and the colour decide every byte.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from oomdoc.model import Action, Coverage, Diagnosis, Engine, Evidence, Incident, LedgerEntry, Report
from oomdoc.report.facts import (
    EVIDENCE_SHOWN,
    KINDS,
    MOMENTS,
    PARTS,
    RIVAL_SHARE,
    answer,
    computed,
    contradictions,
    engine_line,
    headline,
    ledger_of_failure,
    missing_parts,
    plans_of_failure,
    pool,
    traffic_line,
    unnamed,
    unusual,
)  # fmt: skip
from oomdoc.report.layout import Page, ink
from oomdoc.report.words import (
    QUOTING,
    WHEN,
    cells,
    cost,
    count,
    factor,
    gravest,
    incomplete,
    likelihood,
    moment,
    neutral,
    paste_lines,
    percent,
    ran_out,
    trace,
    until_then,
)  # fmt: skip
from oomdoc.units import GIB, NOMINAL_YEAR, parse_time, show_bytes, show_seconds

UNKNOWN_SHOWN = 6
NOT_HELPING_SHOWN = 3
TEXT_SHOWN = 480

# Glyph and colour of the parts of the ledger
GLYPHS = {
    "weights_bytes": ("█", "blue"),
    "feature_bytes": ("+", "blue"),
    "kv_pool_bytes": ("▓", "green"),
    "cuda_graph_bytes": ("▒", "magenta"),
    "activation_bytes": ("░", "yellow"),
    "non_torch_bytes": ("#", "cyan"),
    "other_processes_bytes": ("x", "red"),
    "allocator_slack_bytes": ("~", "bright_yellow"),
    "unexplained_bytes": ("?", "bright_red"),
    "free_bytes": ("·", "bright_black"),
}


def render(report: Report, *, top: int = 3, width: int = 100, color: bool = False, **_: Any) -> str:
    """The whole report as text; `top` is how many causes, rivals and incidents are shown."""
    page = Page(width, color)
    incident = gravest(report)
    first = report.diagnoses[0] if report.diagnoses else None
    _verdict(page, report, first)
    _ledger(page, report)
    if incident:
        _first_failure(page, incident)
    _timeline(page, report.timeline)
    _causes(page, report, top)
    told = 2 if report.verdict == "undecided" else 1
    for diagnosis in report.diagnoses[:told]:
        _evidence(page, diagnosis)
    if first:
        _actions(page, first, report.verdict)
        _rivals(page, report.diagnoses[told:], top)
    _other_incidents(page, report.incidents, incident, top)
    _engines(page, report.engines)
    _traffic(page, report.traffic)
    if report.verdict == "healthy":  # elsewhere the causes say it with their weights
        _watch(page, report)
    _set_aside(page, report)
    _collect(page, report, top)
    _coverage(page, report.coverage)
    _warnings(page, report.warnings)
    _more(page, report, first, incident)
    return page.text()


def _verdict(page: Page, report: Report, first: Diagnosis | None) -> None:
    style = {"diagnosed": "bold red", "healthy": "bold green"}.get(report.verdict, "bold yellow")
    chance = f" ({percent(first.probability)})" if first else ""
    advice = first.actions[0].do if first and first.actions else ""
    if report.verdict == "diagnosed" and first:
        label = f"{likelihood(first.probability).upper()}{chance}"
        what = first.title
    elif report.verdict == "healthy" and first:
        label = f"HEALTHY{chance}"
        what = first.title
        advice = advice or "Nothing has to be done"
    elif report.verdict == "not-memory" and first:
        label = f"NOT A MEMORY FAILURE{chance}"
        what = first.title + (f": {first.reason.replace('-', ' ')}" if first.reason else "")
    elif report.verdict == "no-server":
        label, what = "NO SERVER", headline(report)
        advice = "Hand over the server's log, its metrics, or what its supervisor says of it"
    else:
        label = "UNDECIDED"
        named = [f"{item.title} ({percent(item.probability)})" for item in report.diagnoses[:2]]
        what = f"{headline(report)}; closest: {'; '.join(named)}" if named else headline(report)
        advice = f"Collect more and analyse again: {report.collect_next[0].what}" if report.collect_next else ""
    rows = [(label, style, page.prose(what, style="bold"))]
    if lost := incomplete(report):
        page.flow(ink("BUNDLE IS INCOMPLETE", "bold red"), page.prose(lost), lead_width=len("BUNDLE IS INCOMPLETE"))
    if report.verdict == "diagnosed" or (report.verdict == "undecided" and first):
        rows.append(("What ran out", "bold", ink(ran_out(report))))
    if advice:
        rows.append(("What to do", "bold", page.prose(advice)))
    if first and first.actions and report.verdict == "diagnosed" and first.actions[0].when != "now":
        rows[-1][2].append(f" ({WHEN[first.actions[0].when]})")
        if stopgap := until_then(first):
            rows.append(("Until then", "bold", page.prose(stopgap.do)))
    rows.append(("Bundle", "bold", _bundle_line(report)))
    lead_width = min(max(len(label) for label, _, _ in rows), 26)
    for label, look, body in rows:
        page.flow(ink(label, look), body, lead_width=lead_width)


def _bundle_line(report: Report) -> Text:
    said = [neutral(report.bundle.name)]
    if report.engines:
        last = report.engines[-1]
        said += [f"vLLM {neutral(last.version)}"] if last.version else []
        said += [neutral(last.model)] if last.model else []
        shards = last.flags.get("tensor_parallel_size")
        said += [f"TP {neutral(str(shards.value))}"] if shards else []
    return ink(", ".join(said))


def _ledger(page: Page, report: Report) -> None:
    starts = list(dict.fromkeys(entry.engine for entry in report.ledger))
    entries = ledger_of_failure(report)
    if not entries:
        return
    start = entries[0].engine
    name = f"engine {neutral(start)}, " if start and len(starts) > 1 else ""
    moment_of = MOMENTS.get(entries[0].moment or "", "")
    page.heading("Where the memory is", f"{name}GiB per GPU" + (f", {moment_of}" if moment_of else ""))
    every, shown = entries, [entry for entry in entries if entry.total_bytes]
    plans = [entry for entry in plans_of_failure(report) if entry.total_bytes]
    _bars(page, shown, plans)
    for entry in every:
        if not entry.total_bytes:  # parts of an unknown whole are no bar
            sizes = [f"{title} {size / GIB:.2f}" for key, title in PARTS if (size := entry.parts.get(key)) is not None]
            page.line(ink(f"  {_device(entry)}: {', '.join(sizes)}; the size of the device is not known"))
    page.items(_legend(shown, plans))
    for said in contradictions(every):
        page.flow(ink("does not add up:", "yellow"), page.prose(said), indent=2, gap=1)
    for said in unusual(every):
        page.flow(ink("unusual:", "yellow"), page.prose(said), indent=2, gap=1)
    notes = [("not known", missing_parts(every)), ("computed, not logged", computed(every))]
    for words, names in notes:
        if names:
            page.flow(Text(), ink(f"{words}: " + ", ".join(names), "dim"), indent=2)
    _pool(page, every)
    if len(starts) > 1:
        page.flow(
            Text(), ink(f"{count(len(starts), 'engine start')} in all; --format json has the others", "dim"), indent=2
        )


def _bars(page: Page, entries: Sequence[LedgerEntry], plans: Sequence[LedgerEntry]) -> None:
    """A bar per rank, and one of what had been planned."""
    if not entries:
        return
    count_of = len(entries)
    entries = [*entries, *plans]
    labels = [_device(entry) for entry in entries[:count_of]] + ["planned" for _ in plans]
    totals = [f"{(entry.total_bytes or 0) / GIB:.2f} GiB" for entry in entries]
    label_width = max(map(len, labels)) + (len(str(count_of)) + 1 if count_of > 1 else 0)
    room = page.width - 2 - label_width - 2 - 1 - max(map(len, totals))
    whole = max(entry.total_bytes or 0 for entry in entries)
    shares = [cells([float(entry.parts.get(key) or 0) for key, _ in PARTS], room, whole) for entry in entries]
    groups: list[list[int]] = []  # neighbours whose bars look the same share one; the legend tells the range
    for index in range(len(entries)):
        if (
            groups
            and index < count_of
            and (shares[groups[-1][0]], totals[groups[-1][0]]) == (shares[index], totals[index])
        ):
            groups[-1].append(index)
        else:
            groups.append([index])
    for group in groups:
        label = labels[group[0]] + (f"–{labels[group[-1]].split()[-1]}" if len(group) > 1 else "")
        bar = Text()
        for (key, _), size in zip(PARTS, shares[group[0]], strict=True):
            glyph, style = GLYPHS[key]
            bar.append(glyph * size, style)
        bar.append(" " * (room - bar.cell_len))
        page.line(ink(f"  {label:<{label_width}}  ") + bar + ink(f" {totals[group[0]]}"))


def _device(entry: LedgerEntry) -> str:
    return f"rank {entry.rank}" if entry.rank is not None else neutral(entry.device or "GPU")[:24]


def _legend(entries: Sequence[LedgerEntry], plans: Sequence[LedgerEntry] = ()) -> Iterable[Text]:
    """Glyph, name and size of each part; of one that only the plan has the planned size."""
    for key, title in PARTS:
        glyph, style = GLYPHS[key]
        sizes = [size for entry in entries if (size := entry.parts.get(key)) is not None]
        if not any(sizes):
            sizes = [size for entry in plans if (size := entry.parts.get(key)) is not None]
            title += " planned"
        if not any(sizes):
            continue
        low, high = f"{min(sizes) / GIB:.2f}", f"{max(sizes) / GIB:.2f}"
        yield ink(glyph, style) + ink(f" {title} ") + ink(low if low == high else f"{low} to {high}", "bold")


def _pool(page: Page, entries: Sequence[LedgerEntry]) -> None:
    said = pool(entries)
    refs = list(dict.fromkeys(ref for entry in entries for ref in entry.refs))
    said += [f"from {_refs(refs)}"] if refs else []
    page.flow(Text(), page.prose("; ".join(said), refs, style="dim"), indent=2)


def _first_failure(page: Page, incident: Incident) -> None:
    about = [KINDS.get(incident.kind, incident.kind)] + ([f"phase {incident.phase}"] if incident.phase else [])
    page.heading("What failed first", neutral(", ".join(about)))
    failure = incident.first_failure
    if failure is None:
        page.flow(Text(), ink("no line of this bundle says it"), indent=2)
    else:
        page.flow(Text(), ink(neutral(failure.ref), "cyan") + ink(f"  {moment(failure.time)}", "bold"), indent=2)
        text = neutral(failure.text)
        page.flow(Text(), ink(text[:TEXT_SHOWN] + ("…" if len(text) > TEXT_SHOWN else "")), indent=2)
    if told := cost(incident.impact):
        page.flow(Text(), ink(f"it cost: {told}"), indent=2)
    if incident.cascade:
        page.flow(Text(), ink(f"what followed from it: {_refs(incident.cascade)}", "dim"), indent=2)


# Charts worth a line of blocks: what it is called, and how its highest value is written.
TRACES: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("kv_used", "KV pool in use", percent), ("requests", "requests waiting", count), ("preemptions", "preemptions", count),
    ("device_memory", "device memory", show_bytes), ("host_memory", "host memory", show_bytes),
)  # fmt: skip
LETTERS = {"start": "S", "serving": "R", "evidence": "C", "failure": "F", "kill": "K"}
MARKED = {"S": "start", "R": "ready", "C": "cause", "F": "failure", "K": "kill"}


def _timeline(page: Page, timeline: Mapping[str, Any]) -> None:
    """Readings over time as lines of blocks over the marked moments."""
    begin = parse_time(_dated(timeline["from_t"])) if timeline else None
    if begin is None:
        return
    drawn = []
    for chart, title, written in TRACES:
        rows = [
            row
            for row in timeline["series"]
            if row["chart"] == chart and (chart != "requests" or row["name"] == "waiting")
        ]
        highest = [max((value for value in row["values"] if value is not None), default=0) for row in rows]
        if rows and (any(highest) or chart == "kv_used"):
            best = max(range(len(rows)), key=lambda place: highest[place])  # of several devices the fullest
            limit = rows[best]["limit"] or highest[best]
            name, told = title, written(highest[best])
            if chart == "device_memory":
                name = f"{neutral(rows[best]['name']).split(',')[0][:12]} memory"
                told += f" of {written(limit)}" if rows[best]["limit"] and page.width >= 80 else ""
            drawn.append((name, rows[best]["values"], limit, told))
    marks = [(parse_time(_dated(mark["t"])), mark) for mark in timeline["marks"]]
    if not drawn or not marks:
        return
    step_s, steps = timeline["step_s"], timeline["steps"]
    page.heading("What happened when", f"{show_seconds(step_s * steps)} from {moment(timeline['from_t'])}")
    label_width = max(cell_len(name) for name, *_ in drawn)
    room = min(page.width - 2 - label_width - 2 - 2 - max(len(told) for *_, told in drawn), steps)
    for name, values, limit, told in drawn:
        page.line(
            ink(f"  {name}{' ' * (label_width - cell_len(name))}  ")
            + ink(trace(values, room, limit), "blue")
            + ink(f"  {told}")
        )
    row = [" "] * room
    for time, mark in sorted(marks, key=lambda entry: list(LETTERS).index(entry[1]["kind"])):
        if time is not None:
            row[min(max(int((time - begin) / step_s / steps * room), 0), room - 1)] = LETTERS[mark["kind"]]
    used = [letter for letter in MARKED if letter in row]
    page.line(ink(" " * (label_width + 4)) + ink("".join(row).rstrip(), "bold red"))
    page.flow(Text(), ink(", ".join(f"{letter} {MARKED[letter]}" for letter in used), "dim"), indent=label_width + 4)


def _dated(time: str) -> str:
    """A time whose year no log told, in a year of its own."""
    return f"{NOMINAL_YEAR}{time[1:]}" if time.startswith("--") else time


def _refs(refs: Sequence[str], shown: int = 3) -> str:
    rest = f" and {len(refs) - shown} more" if len(refs) > shown else ""
    return ", ".join(neutral(ref) for ref in refs[:shown]) + rest


def _causes(page: Page, report: Report, top: int) -> None:
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
        most = percent(rest[0].probability) + (" or less" if len(rest) > 1 else "")
        page.flow(Text(), ink(f"{count(len(rest), 'further cause')}, {most}", "dim"), indent=2)


def _evidence(page: Page, item: Diagnosis) -> None:
    page.heading(f"Why {neutral(item.cause)}", f"starts at {percent(item.prior)}; each line multiplies the odds")
    if item.summary:
        page.flow(Text(), page.prose(item.summary), indent=2)
    _weighed(page, item.evidence, "green", "nothing in this bundle speaks for it")
    if item.against:
        page.flow(Text(), ink("against it", "bold"), indent=2)
        _weighed(page, item.against, "yellow", "")
    if item.unknown:
        names = ", ".join(neutral(name) for name in item.unknown[:UNKNOWN_SHOWN])
        names += f" and {len(item.unknown) - UNKNOWN_SHOWN} more" if len(item.unknown) > UNKNOWN_SHOWN else ""
        page.flow(ink("not in this bundle:", "dim"), ink(names, "dim"), indent=2, gap=1)


def _weighed(page: Page, evidence: Sequence[Evidence], style: str, nothing: str) -> None:
    for item in evidence[:EVIDENCE_SHOWN]:
        body = page.prose(item.says, item.refs)
        if places := unnamed(item):
            body += ink("  ") + ink(_refs(places, 2), "cyan")
        if item.weight == 0:
            body += ink("  (the same fact as a stronger line)", "dim")
        page.flow(ink(factor(item.weight), style), body, indent=2, lead_width=5, gap=1)
    if len(evidence) > EVIDENCE_SHOWN:
        page.flow(Text(), ink(f"and {len(evidence) - EVIDENCE_SHOWN} weaker; --format json has all", "dim"), indent=8)
    if not evidence and nothing:
        page.flow(Text(), ink(nothing, "dim"), indent=2)


def _actions(page: Page, diagnosis: Diagnosis, verdict: str) -> None:
    if not diagnosis.actions:
        return
    best, *others = diagnosis.actions
    if verdict in ("diagnosed", "undecided"):
        page.heading("The fix", WHEN[best.when] + ("; flags to paste" if best.changes else ""))
    else:
        page.heading("What to do")
    _flags(page, best, 2)
    for label, text in (
        ("do", "" if best.changes else best.do),
        ("why", best.why),
        ("proof", best.proof),
        ("cost", best.cost),
        ("check", best.verify),
    ):
        if text:
            page.flow(ink(label, "dim"), page.prose(text), indent=2, lead_width=5, gap=1)
    if diagnosis.command:
        page.heading("The whole command", "what was set, with the best change")
        for line in diagnosis.command.splitlines():
            page.line(ink(f"  {neutral(line)}", "green"))
    now = "What else would help now" if best.when == "now" else "What to do until then"
    for when, title in (("now", now), ("after-load-test", "What would help after a load test")):
        staged = [action for action in others if action.when == when]
        if staged:
            page.heading(title)
        for action in staged:
            page.flow(ink("-"), page.prose(action.do), indent=2, gap=1)
            for label, text in (("why", action.why), ("proof", action.proof), ("cost", action.cost)):
                if text:
                    page.flow(ink(label, "dim"), page.prose(text), indent=4, lead_width=5, gap=1)
            _flags(page, action, 4)
    if diagnosis.not_helping:
        page.heading("What would not help")
    for item in diagnosis.not_helping[:NOT_HELPING_SHOWN]:
        advised = f" (advised at {item.ref})" if item.ref else ""
        page.flow(
            ink("-"), page.prose(f"{item.what}{advised}: {item.why}", (item.ref,) if item.ref else ()), indent=2, gap=1
        )


def _flags(page: Page, action: Action, indent: int) -> None:
    lines = paste_lines(action.changes, action.was)
    longest = max((len(flag) for flag, _ in lines), default=0)
    for flag, comment in lines:
        line = ink(" " * indent) + ink(f"{flag:<{longest}}" if comment else flag, "bold green")
        page.line(line + ink(f"   {comment}" if comment else "", "dim"))


def _rivals(page: Page, rivals: Sequence[Diagnosis], top: int) -> None:
    near = [item for item in rivals if item.probability > RIVAL_SHARE][: max(top, 1)]
    if not near:
        return
    page.heading("Why not the others")
    for item in near:
        name = ink(neutral(item.cause), "bold") + ink(": ")
        strongest, said = answer(item)
        body = ink(neutral(said))
        if strongest:
            body = ink(factor(strongest.weight), "yellow") + ink(" ") + page.prose(strongest.says, strongest.refs)
        page.flow(ink(f"{percent(item.probability):>4}"), name + body, indent=2, gap=1)


def _other_incidents(page: Page, incidents: Sequence[Incident], shown: Incident | None, top: int) -> None:
    others = [incident for incident in incidents if incident is not shown]
    if not others:
        return
    page.heading("Other incidents", f"{count(len(incidents), 'incident')} in this bundle, the gravest is told above")
    for incident in others[:top]:
        cause = incident.diagnoses[0] if incident.diagnoses else None
        told = f"; {neutral(cause.cause)} {percent(cause.probability)}" if cause else ""
        at = f" at {neutral(incident.first_failure.ref)}" if incident.first_failure else ""
        kind = neutral(KINDS.get(incident.kind, incident.kind))
        page.flow(ink(neutral(incident.id)), ink(f"{moment(incident.started)}: {kind}{at}{told}"), indent=2)
    if len(others) > top:
        page.flow(Text(), ink(f"and {len(others) - top} more", "dim"), indent=2)


def _engines(page: Page, engines: Sequence[Engine], shown: int = 4) -> None:
    if not engines:
        return
    page.heading("Engine" if len(engines) == 1 else f"Engine starts ({len(engines)})")
    for engine in engines[-shown:]:
        lead = ink(moment(engine.started)) if engine.started is not None else ink(neutral(engine.ref), "cyan")
        page.flow(lead, ink(neutral(engine_line(engine))), indent=2)
    if len(engines) > shown:
        page.flow(Text(), ink(f"and {len(engines) - shown} earlier", "dim"), indent=2)


def _traffic(page: Page, traffic: Mapping[str, Any]) -> None:
    if said := traffic_line(traffic):
        page.heading("Traffic")
        page.flow(Text(), ink(said), indent=2)


def _watch(page: Page, report: Report) -> None:
    if not report.watch:
        return
    page.heading("Watch", "what came near failing; docs/monitoring has the alerts")
    for item in report.watch:
        lead = ink("near", "bold yellow") if item.near else ink("room", "green")
        page.flow(lead, page.prose(f"{item.says}  {' '.join(item.refs)}".rstrip(), item.refs), indent=2)


def _collect(page: Page, report: Report, top: int) -> None:
    if not report.collect_next:
        return
    page.heading("To be surer, collect")
    wanted = report.collect_next[: max(top, 1)]
    wanted += tuple(item for item in report.collect_next[-1:] if item not in wanted)  # the one that fetches all of it
    for number, item in enumerate(wanted, 1):
        causes = ", ".join(map(neutral, item.separates[:3])) + (", ..." if len(item.separates) > 3 else "")
        aside = ink(f"  (bears on {causes})" if causes else "", "dim")
        page.flow(ink(f"{number}."), page.prose(item.what) + aside, indent=2, gap=1)
        if item.command:
            page.line(ink("     ") + ink(neutral(item.command), "bold"))


def _coverage(page: Page, coverage: Coverage) -> None:
    sources = coverage.sources
    page.heading("What was read")
    lines, rows = sum(item.lines for item in sources), sum(item.rows for item in sources)
    size = show_bytes(sum(item.bytes for item in sources))
    said = [f"{count(len(sources), 'source')}, {size}, {count(lines, 'line')}: {count(rows, 'row')} of evidence"]
    if bad := [item for item in sources if item.problems]:
        said.append("not understood: " + ", ".join(f"{item.path} {count(item.problems, 'place')}" for item in bad[:3]))
    if alike := sum(item.lookalikes for item in sources if item.kind not in QUOTING):
        said.append(f"{count(alike, 'log-like line')} inside prompts and echoes refused")
    if quoting := [item for item in sources if item.kind in QUOTING and item.lookalikes]:
        where = ", ".join(f"{item.path} ({item.kind})" for item in quoting[:3]) + (", ..." if len(quoting) > 3 else "")
        said.append(
            f"{count(sum(item.lookalikes for item in quoting), 'message')} only quoted, in {where}: no evidence"
        )
    page.flow(Text(), ink(neutral("; ".join(said))), indent=2)
    if coverage.unread:
        named = [f"{item.path} ({item.why})" for item in coverage.unread[:3]]
        more = f" and {len(coverage.unread) - 3} more" if len(coverage.unread) > 3 else ""
        page.flow(ink("not read:", "yellow"), ink(neutral(", ".join(named) + more)), indent=2, gap=1)


def _set_aside(page: Page, report: Report) -> None:
    """What was seen and is not this server's: readers want to know that it was seen."""
    if not report.set_aside:
        return
    page.heading("Seen and set aside (not this server's)")
    for item in report.set_aside:
        page.flow(Text("-"), ink(neutral(f"{item.why}  {' '.join(item.refs)}")), indent=2, gap=1)


def _warnings(page: Page, warnings: Sequence[str]) -> None:
    if not warnings:
        return
    page.heading("Mind")
    for warning in warnings:
        page.flow(ink("!", "bold yellow"), page.prose(warning), indent=2, gap=1)


def _more(page: Page, report: Report, first: Diagnosis | None, incident: Incident | None) -> None:
    said = [f"oomdoc {neutral(report.oomdoc_version)}, rules {neutral(report.rules_version)}"]
    if first:
        said.append(f"oomdoc explain {neutral(first.cause)}")
        failure = incident.first_failure if incident else None
        if ref := failure.ref if failure else next((ref for item in first.evidence for ref in item.refs), None):
            said.append(f"oomdoc show {shlex.quote(neutral(report.bundle.name))} {shlex.quote(neutral(ref))}")
    page.line(Text())
    for piece in said:
        page.line(ink(piece, "dim"))
