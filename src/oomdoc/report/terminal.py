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

from oomdoc.model import Coverage, Diagnosis, Engine, Incident, LedgerEntry, Report
from oomdoc.report.facts import (
    KINDS,
    MOMENTS,
    PARTS,
    bar_size,
    computed,
    contradictions,
    engine_line,
    ledger_of_failure,
    missing_parts,
    parts_of,
    per_gpu,
    plans_of_failure,
    pool,
    traffic_line,
    unusual,
)  # fmt: skip
from oomdoc.report.layout import Page, ink
from oomdoc.report.opening import opening
from oomdoc.report.terminal_causes import show_actions, show_causes, show_evidence, show_refs, show_rivals, show_steps
from oomdoc.report.words import (
    QUOTING,
    cells,
    cost,
    count,
    gravest,
    moment,
    neutral,
    percent,
    trace,
)  # fmt: skip
from oomdoc.units import GIB, NOMINAL_YEAR, parse_time, show_bytes, show_seconds

ASIDE_SHOWN = 2
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


def render(
    report: Report, *, top: int = 3, width: int = 100, color: bool = False, everything: bool = False, **_: Any
) -> str:
    """The report as text: two screens, or with `everything` all that a terminal can show; `top` is how many causes, rivals and incidents."""
    page = Page(width, color)
    incident = gravest(report)
    first = report.diagnoses[0] if report.diagnoses else None
    opening(page, report)
    _ledger(page, report, everything)
    _timeline(page, report.timeline)
    if first:
        show_steps(page, report)
        show_actions(page, report, first, everything)
    if report.verdict == "healthy":  # elsewhere the causes say it with their weights
        _watch(page, report)
    if everything:
        if incident:
            _first_failure(page, incident)
        show_causes(page, report, top)
        for diagnosis in report.diagnoses[: 2 if report.verdict == "undecided" else 1]:
            show_evidence(page, report, diagnosis)
    show_rivals(page, report, top)
    _other_incidents(page, report.incidents, incident, top, everything)
    _set_aside(page, report, everything)
    _collect(page, report)
    if everything:
        _engines(page, report.engines)
        _traffic(page, report.traffic)
    _coverage(page, report.coverage, everything)
    _warnings(page, report.warnings)
    _more(page, report, first, incident, everything)
    return page.text()


def _ledger(page: Page, report: Report, everything: bool) -> None:
    starts = list(dict.fromkeys(entry.engine for entry in report.ledger))
    entries = ledger_of_failure(report)
    if not entries:
        return
    start = entries[0].engine
    name = f"engine {neutral(start)}, " if start and len(starts) > 1 else ""
    moment_of = MOMENTS.get(entries[0].moment or "", "")
    every, shown = entries, [entry for entry in entries if entry.total_bytes]
    plans = [entry for entry in plans_of_failure(report) if entry.total_bytes]
    planned = all(entry.moment == "plan" for entry in shown)
    if not everything and (not shown or (planned and report.verdict == "not-memory")):
        return  # a size beside nothing is no picture, and a plan that nothing came of explains nothing
    page.heading("Where the memory is", f"{name}GiB{per_gpu(entries)}" + (f", {moment_of}" if moment_of else ""))
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
    if not everything:
        return
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
    totals = [bar_size(entry) for entry in entries]
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
    for key, title in parts_of([*entries, *plans]):
        glyph, style = GLYPHS[key]
        sizes = [size for entry in entries if (size := entry.parts.get(key)) is not None]
        if not any(sizes):
            sizes = [size for entry in plans if (size := entry.parts.get(key)) is not None]
            title += " planned"
        if not any(sizes):
            continue
        low, high = f"{min(sizes) / GIB:.2f}", f"{max(sizes) / GIB:.2f}"
        if low.lstrip("-") == high.lstrip("-") == "0.00":
            continue  # a few MiB, which no bar shows
        yield ink(glyph, style) + ink(f" {title} ") + ink(low if low == high else f"{low} to {high}", "bold")


def _pool(page: Page, entries: Sequence[LedgerEntry]) -> None:
    said = pool(entries)
    refs = list(dict.fromkeys(ref for entry in entries for ref in entry.refs))
    said += [f"from {show_refs(refs)}"] if refs else []
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
        page.flow(Text(), ink(f"what followed from it: {show_refs(incident.cascade)}", "dim"), indent=2)


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


def _other_incidents(
    page: Page, incidents: Sequence[Incident], shown: Incident | None, top: int, everything: bool
) -> None:
    """Incidents of another cause; repetitions of the gravest are counted in its own line."""
    others = [incident for incident in incidents if incident is not shown]
    if not everything:
        own = shown.diagnoses[0].cause if shown and shown.diagnoses else None
        others = [each for each in others if each.diagnoses and each.diagnoses[0].cause != own]
    if not others:
        return
    page.heading("Other incidents", f"{count(len(incidents), 'incident')} in this bundle, the gravest is above")
    for incident in others if everything else others[:top]:
        cause = incident.diagnoses[0] if incident.diagnoses else None
        said = f"; {percent(cause.probability)} {neutral(cause.title)} ({neutral(cause.cause)})" if cause else ""
        at = f" at {neutral(incident.first_failure.ref)}" if incident.first_failure else ""
        kind = neutral(KINDS.get(incident.kind, incident.kind))
        page.flow(ink(neutral(incident.id)), ink(f"{moment(incident.started)}: {kind}{at}{said}"), indent=2)
    if not everything and len(others) > top:
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


def _collect(page: Page, report: Report) -> None:
    """What could change the first place or the fix; nothing where all is settled."""
    if not report.collect_next:
        return
    page.heading("To be surer, collect")
    for number, item in enumerate(report.collect_next, 1):
        page.flow(ink(f"{number}."), page.prose(item.what), indent=2, gap=1)
        if item.command:
            page.line(ink("     ") + ink(neutral(item.command), "bold"))


def _coverage(page: Page, coverage: Coverage, everything: bool) -> None:
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
    if everything:
        for gap in coverage.uncollected:
            page.flow(ink("not collected:", "yellow"), page.prose(f"{gap.what}: {gap.why}  {gap.ref}"), indent=2, gap=1)


def _set_aside(page: Page, report: Report, everything: bool) -> None:
    """What was seen and is not this server's: readers want to know that it was seen."""
    if not report.set_aside:
        return
    page.heading("Seen and set aside", "not this server's, and why")
    shown = report.set_aside if everything else report.set_aside[:ASIDE_SHOWN]
    for item in shown:
        said = " ".join((item.why, *item.refs[:2]))
        # a line that was cut says less than its reason
        cut = item.says.endswith("...") and not everything
        page.flow(Text("-"), ink(neutral(said if cut else f"{said}: {item.says}")), indent=2, gap=1)
    if more := len(report.set_aside) - len(shown):
        page.flow(Text(), ink(f"and {more} more; --all shows them", "dim"), indent=2)


def _warnings(page: Page, warnings: Sequence[str]) -> None:
    if not warnings:
        return
    page.heading("Mind")
    for warning in warnings:
        page.flow(ink("!", "bold yellow"), page.prose(warning), indent=2, gap=1)


def _more(page: Page, report: Report, first: Diagnosis | None, incident: Incident | None, everything: bool) -> None:
    said = [f"oomdoc {neutral(report.oomdoc_version)}, rules {neutral(report.rules_version)}"]
    if first:
        said.append(f"oomdoc explain {neutral(first.cause)}")
        failure = incident.first_failure if incident else None
        if ref := failure.ref if failure else next((ref for item in first.evidence for ref in item.refs), None):
            said.append(f"oomdoc show {shlex.quote(neutral(report.bundle.name))} {shlex.quote(neutral(ref))}")
    if not everything and report.verdict != "no-server":
        said.append(
            "oomdoc --all shows all evidence, every action, patches, engines and traffic; -o report.html has the charts"
        )
    page.line(Text())
    for piece in said:
        page.flow(Text(), ink(piece, "dim")) if piece.startswith("oomdoc --all") else page.line(ink(piece, "dim"))
