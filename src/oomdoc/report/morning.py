"""The forms of a morning report: for people (terminal, Markdown, HTML) and for machines (JSON lines, JUnit, Prometheus).

Those for people are three ways to write the same sections, so none of them knows more than another. Text of a bundle goes
through `neutral` everywhere, and nothing of it is markup.
"""

from __future__ import annotations

import datetime as dt
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from xml.sax.saxutils import escape, quoteattr

from oomdoc.model.morning import NO_FAILURE, ChangePoint, Group, Morning, Outlier, ReadError, Standing
from oomdoc.report.json import dump
from oomdoc.report.words import count, moment, neutral, percent
from oomdoc.units import show_bytes

MOST_GROUPS = 25  # shown to people per section; JSON lines have all
_WHAT = 140  # characters of the first error that say what it was
_EXCEPTION = re.compile(
    r"^(?:[\w.]*[a-z_]\.)?[A-Z]\w*(?:Error|Exception): (?=\S)"
)  # its class says less than its words
_TEXT = 160  # characters of a bundle's line that a table shows


@dataclass(frozen=True)
class Section:
    """A heading with sentences, or a table; nothing where both are empty."""

    title: str
    says: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    links: tuple[str | None, ...] = ()
    """Of each row the page that its column `bundle` leads to; empty where no column does."""


def sections(morning: Morning) -> list[Section]:
    """What a report for people says, in order."""
    counts = morning.counts
    new = [group for group in morning.groups if group.new]
    back = [group for group in morning.groups if not group.new]
    made = [
        Section("In short", tuple(_short(morning))),
        _standing(morning),
        _quiet(morning),
        Section("Could not be read", _read_errors_say(morning), ("host", "bundles", "since", "why", "example"), _read_errors(morning.errors)),
        *([] if morning.standing else [_groups("New", new), _groups("Seen before, and again", back)]),
        Section("Gone", tuple(
            f"{item.cause} ({_of(item.model, item.version)}): {count(item.incidents, 'incident')} up to {item.last_night}, none since, in {count(item.read, 'bundle')} read tonight"
            for item in morning.resolved[:MOST_GROUPS])),
        Section("What moved", tuple(_change(point) for point in morning.changes)),
        Section("Hosts that stand out", tuple(_outlier(item) for item in morning.outliers)),
        Section("Trends", (), ("", "", "tonight", "before"), tuple(
            (trend.dimension, trend.value, _share(trend.failing, trend.bundles), _share(trend.before_failing, trend.before_bundles))
            for trend in morning.trends[: 4 * MOST_GROUPS] if counts.read)),
        Section("Warnings", morning.warnings),
    ]  # fmt: skip
    return [section for section in made if section.says or section.rows]


MOST_STANDING = 200  # rows; the JSON lines have all
TRIAGE = ("state", "what", "sure", "bundle", "host", "model", "since", "what to do")


def _address(path: str) -> str:
    """A relative path as a link has it.

    >>> _address("night reports/a-1.html")
    'night%20reports/a-1.html'
    """
    return re.sub(
        r"[^\w./-]",
        lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "replace")),
        path,
        flags=re.ASCII,
    )


def _standing(morning: Morning) -> Section:
    """One row per incident of the bundles that are there: what a person reads first."""
    shown = morning.standing[:MOST_STANDING]
    rows = tuple(
        (
            item.state, _what(item), percent(item.probability) if item.probability is not None else "unknown", item.name,
            item.host or "", " ".join(part for part in (item.model, item.version and f"vLLM {item.version}") if part),
            _since(item), _advice(item),
        )
        for item in shown
    )  # fmt: skip
    more = len(morning.standing) - len(shown)
    says = (f"{count(more, 'more incident')} in the JSON lines.",) if more else ()
    return Section("Incidents", says, TRIAGE, rows, tuple(item.page for item in shown))


MOST_QUIET = 50  # rows; the JSON lines have all
_VERDICTS = {"healthy": "healthy", "no-server": "no server in it", "undecided": "undecided", "not-memory": "not memory"}


def _quiet(morning: Morning) -> Section:
    """The bundles of the night without an incident, so that each is found and its report can be opened."""
    shown = morning.quiet[:MOST_QUIET]
    rows = tuple(
        (
            _VERDICTS.get(item.verdict, item.verdict), percent(item.probability) if item.probability is not None else "",
            item.name, " ".join(part for part in (item.model, item.version and f"vLLM {item.version}") if part),
        )
        for item in shown
    )  # fmt: skip
    more = len(morning.quiet) - len(shown)
    says = (f"{count(more, 'more bundle')} in the JSON lines.",) if more else ()
    return Section(
        "Without an incident", says, ("verdict", "sure", "bundle", "model"), rows, tuple(item.page for item in shown)
    )


def _what(item: Standing) -> str:
    times = f", {item.times} times" if item.times > 1 else ""
    title = item.title
    if item.cause == "not-memory" and item.text:  # the rule's title says what it is not
        title = f"Not memory: {_cut(_EXCEPTION.sub('', item.text), _WHAT)}"
    if item.verdict == "undecided":
        title = f"Undecided; closest: {title}"
    lost = f"; {item.cost}" if item.cost else ""
    return f"{title}{times}{lost} ({item.cause or 'not ranked'}, {item.fingerprint})"


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _since(item: Standing) -> str:
    began = ""
    if item.started:
        shown = moment(item.started)
        if "year unknown" in shown:
            began = f"{_MONTHS[int(shown[:2]) - 1]} {int(shown[3:5])} {shown[6:11]}, year unknown"
        else:
            began = shown[:16].replace("T", " ")
    return f"night of {item.since}" + (f", failed {began}" if began else "")


def _advice(item: Standing) -> str:
    said = [item.action or "the bundle shows too little to name a change"]
    said += [f"note: {item.note}"] if item.note else []
    said += [f"what cured one alike: {item.cured}"] if item.cured else []
    return "; ".join(said)


def _short(morning: Morning) -> Iterable[str]:
    counts = morning.counts
    told = [f"{counts.read:,} read ({show_bytes(counts.bytes)})", f"{counts.unchanged:,} unchanged"]
    if counts.judged:
        told.append(f"{counts.judged:,} judged again by new rules")
    if counts.copies:
        told.append(f"{counts.copies:,} copies of others")
    yield f"{count(counts.found, 'bundle')}: {', '.join(told)}."
    fresh = sum(group.new and group.cause not in NO_FAILURE for group in morning.groups)
    again = " (each recurrence counted)" if any(item.times > 1 for item in morning.standing) else ""
    kinds = len({group.cause for group in morning.groups if group.cause not in NO_FAILURE})
    yield (
        f"{count(morning.new_incidents, 'new memory incident')}{again} in {count(counts.failing, 'bundle')}, of {count(kinds, 'cause')}; "
        f"{count(fresh, 'fingerprint')} never seen before."
        if morning.new_incidents
        else "No new memory incident."
    )
    if counts.healthy or counts.not_memory or counts.undecided or counts.no_server:
        none = f", {counts.no_server:,} without a server" if counts.no_server else ""
        yield f"Of those read: {counts.healthy:,} healthy, {counts.not_memory:,} failed for a reason other than memory, {counts.undecided:,} undecided{none}."
    if morning.standing:
        states = [item.state for item in morning.standing]
        counted = [
            f"{states.count(state):,} {state}" for state in ("new", "known", "acknowledged", "gone") if state in states
        ]
        yield f"{count(len(states), 'row')} below (incidents alike in a bundle share one, and other failures have theirs): {', '.join(counted)}."
    if morning.previous is None:
        yield "This is the first night of the store: there is nothing to compare with."


def _read_errors_say(morning: Morning) -> tuple[str, ...]:
    number = morning.counts.errors
    return (
        (f"Of {count(number, 'bundle')} nothing is known: {'it' if number == 1 else 'they'} could not be read.",)
        if number
        else ()
    )


def _read_errors(errors: Sequence[ReadError]) -> tuple[tuple[str, ...], ...]:
    """One row per host and kind of error; every host has its row."""
    held: dict[tuple[str, str], list[ReadError]] = {}
    for error in errors:
        held.setdefault((error.host or error.pod or "host unknown", error.status), []).append(error)
    return tuple(
        (host, f"{len(same):,}", min(error.since for error in same), f"{status}: {_cut(same[0].why)}", same[0].bundle)
        for (host, status), same in sorted(held.items())
    )


def _groups(title: str, groups: Sequence[Group]) -> Section:
    columns: tuple[str, ...] = ("cause", "sure", "incidents", "hosts", "model", "version", "what and where", "do")
    if title != "New":
        columns = (*columns, "since")
    rows: list[tuple[str, ...]] = []
    for group in groups[:MOST_GROUPS]:
        hosts = ", ".join(group.hosts[:3]) + (f" and {len(group.hosts) - 3} more" if len(group.hosts) > 3 else "")
        row = (
            group.cause or "not ranked", percent(group.probability) if group.probability is not None else "unknown",
            f"{group.incidents:,} in {count(group.bundles, 'bundle')}", hosts or "unknown", group.model or "unknown", group.version or "unknown",
            f"{group.example} {group.ref or ''} {_cut(group.text or '')}".strip(), group.action or "",
        )  # fmt: skip
        rows.append(
            row
            if title == "New"
            else (*row, f"{group.first_night}, {count(group.before, 'incident')} in {count(group.nights - 1, 'night')}")
        )
    more = len(groups) - len(rows)
    says = (f"{count(more, 'more fingerprint')} in the JSON lines.",) if more > 0 else ()
    return Section(title, says, columns, tuple(rows))


def _cut(text: str, most: int = _TEXT) -> str:
    """A text on one line, cut between words.

    >>> _cut("the driver is too old", 14), _cut("short")
    ('the driver …', 'short')
    """
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    head = line[: most - 1]
    return (head.rpartition(" ")[0] or head).rstrip() + " …"


def _of(model: str | None, version: str | None) -> str:
    return f"{model or 'model unknown'}, vLLM {version or 'unknown'}"


def _share(failing: int, bundles: int) -> str:
    return f"{failing:,} of {bundles:,} ({percent(failing / bundles)})" if bundles else "none read"


def _chance(p: float) -> str:
    return f"chance alone gives that once in {1 / p:,.0f}" if p > 1e-9 else "chance alone does not give that"


def _change(point: ChangePoint) -> str:
    moved = (
        f"since {point.what} moved from {point.before} to {point.after} on {point.since}"
        if point.what != "night"
        else f"since {point.since}"
    )
    shares = f"{_share(point.after_failing, point.after_bundles)} fail, before {_share(point.before_failing, point.before_bundles)}"
    return f"{point.subject}: {moved}, {shares}; {_chance(point.p)}."


def _outlier(item: Outlier) -> str:
    return f"{item.host}: {_share(item.failing, item.bundles)} fail, elsewhere {_share(item.rest_failing, item.rest_bundles)}; {_chance(item.p)}."


# ---- for people


def terminal(morning: Morning, *, width: int = 100, color: bool = False) -> str:
    """Plain text within a width; a table becomes one paragraph per row where it would not fit."""
    out = [f"oomdoc sweep, night of {morning.night}" + (f" (before: {morning.previous})" if morning.previous else "")]
    for section in sections(morning):
        heading = neutral(section.title)
        out += ["", f"\x1b[1m{heading}\x1b[0m" if color else heading]
        out += [
            textwrap.fill(neutral(line), width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
            for line in section.says
        ]
        out += list(_rows(section, width))
    return "\n".join(out) + "\n"


def _rows(section: Section, width: int) -> Iterable[str]:
    if not section.rows:
        return
    cells = [tuple(neutral(cell) for cell in row) for row in section.rows]
    sizes = [max(len(row[i]) for row in (section.columns, *cells)) for i in range(len(section.columns))]
    if sum(sizes) + 2 * len(sizes) <= width:
        for row in (section.columns, *cells):
            yield "  " + "  ".join(cell.ljust(size) for cell, size in zip(row, sizes, strict=True)).rstrip()
        return
    if section.columns == TRIAGE:
        for state, what, sure, bundle, host, model, since, advice in cells:
            yield _filled(f"{state:<5} {sure:>4}  {what}", width, "  ", " " * 15)
            known = [bundle, f"host {host}" if host else "", model, since]
            yield _filled("; ".join(part for part in known if part), width, " " * 15, " " * 15)
            yield _filled(f"→ {advice}", width, " " * 15, " " * 17)
        return
    for row in cells:
        parts = [f"{name} {cell}" if name else cell for name, cell in zip(section.columns, row, strict=True) if cell]
        head, *rest = parts
        yield textwrap.fill(
            head.removeprefix("cause ").removeprefix("host "), width, initial_indent="  ", subsequent_indent="    "
        )
        for part in rest:
            yield textwrap.fill(
                part,
                width,
                initial_indent="      ",
                subsequent_indent="        ",
                break_on_hyphens=False,
                break_long_words=False,
            )


def _filled(text: str, width: int, begin: str, then: str) -> str:
    return textwrap.fill(text, width, initial_indent=begin, subsequent_indent=then, break_on_hyphens=False)


def markdown(morning: Morning) -> str:
    """Markdown with pipe tables; what a bundle wrote is shown and means nothing."""
    out = [f"# oomdoc sweep, night of {morning.night}"]
    for section in sections(morning):
        out += ["", f"## {section.title}", ""]
        out += [f"- {_marked(line)}" for line in section.says]
        if section.rows:
            out += ["", "| " + " | ".join(section.columns) + " |", "|" + " --- |" * len(section.columns)]
            out += ["| " + " | ".join(_marked(cell) for cell in row) + " |" for row in section.rows]
            if any(section.links):
                at = section.columns.index("bundle")
                out += [
                    "",
                    "Reports: "
                    + ", ".join(
                        f"[{_marked(row[at])}]({_address(link)})"
                        for row, link in zip(section.rows, section.links, strict=True)
                        if link
                    ),
                ]
    return "\n".join(out) + "\n"


def _marked(text: str) -> str:
    """Text of which Markdown and the HTML in it take nothing for their own."""
    plain = " ".join(neutral(text).split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join("\\" + char if char in "\\`*_[]|#~$" else char for char in plain)


def html(morning: Morning) -> str:
    """One page that needs nothing else: no script, no picture, no network."""
    from oomdoc.report.shell import plain_page

    tone = (
        "diagnosed"
        if any(group.new and group.cause not in NO_FAILURE for group in morning.groups)
        else "undecided"
        if morning.groups or any(item.state != "gone" for item in morning.standing)
        else "healthy"
    )
    return plain_page("morning.html.j2", morning=morning, sections=sections(morning), tone=tone, quoted=_address)


# ---- for machines


def jsonl(morning: Morning) -> str:
    """One object per line, `kind` first: night, group, resolved, trend, change, outlier, error, failing (a bundle), incident, quiet (a bundle)."""
    plain = morning.to_dict()
    kinds = {
        "groups": "group", "resolved": "resolved", "trends": "trend", "changes": "change", "outliers": "outlier", "errors": "error",
        "failing": "failing", "standing": "incident", "quiet": "quiet",
    }  # fmt: skip
    head = {name: value for name, value in plain.items() if name not in kinds}
    lines = [
        {"kind": "night", **head},
        *({"kind": kind, **entry} for name, kind in kinds.items() for entry in plain[name]),
    ]
    return "".join(dump(line, compact=True) for line in lines)


def junit(morning: Morning) -> str:
    """JUnit XML: a failure per fingerprint with new memory incidents, an error per bundle that could not be read."""
    failing = [group for group in morning.groups if group.cause not in NO_FAILURE]
    cases = []
    for group in failing:
        message = f"{group.incidents} new in {group.bundles} bundles: {group.action or group.cause}"
        body = f"{group.example} {group.ref or ''}\n{group.text or ''}\nmodel {group.model}, version {group.version}, hosts {', '.join(group.hosts)}"
        name = f"{group.fingerprint} {group.model or 'model unknown'} {group.version or ''}".strip()
        cases.append(_case(f"oomdoc.{group.cause}", name, "failure", message, body))
    for error in morning.errors:
        cases.append(
            _case(
                f"oomdoc.unread.{error.status}",
                error.bundle,
                "error",
                error.why,
                f"host {error.host or 'unknown'}, since {error.since}",
            )
        )
    fine = morning.counts.found - morning.counts.failing - morning.counts.errors
    cases.append(f'  <testcase classname="oomdoc" name={quoteattr(f"{fine} bundles without a new memory incident")}/>')
    counts = f'tests="{len(cases)}" failures="{len(failing)}" errors="{len(morning.errors)}"'
    suite = f'<testsuite name="oomdoc sweep {morning.night}" timestamp="{morning.night}T00:00:00" {counts}>'
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + "\n".join([suite, *cases, "</testsuite>"]) + "\n"


def _case(group: str, name: str, outcome: str, message: str, body: str) -> str:
    return (
        f"  <testcase classname={quoteattr(group)} name={quoteattr(_xml(name))}>"
        f'<{outcome} message={quoteattr(_xml(message))} type="{outcome}">{escape(_xml(body))}</{outcome}></testcase>'
    )


def _xml(text: str) -> str:
    """Text without the two characters that XML 1.0 knows no way to write and `neutral` lets pass."""
    return neutral(text).replace("\ufffe", "<U+FFFE>").replace("\uffff", "<U+FFFF>")


def prometheus(morning: Morning) -> str:
    """Gauges for the textfile collector of the node exporter (exposition format 0.0.4)."""
    counts = morning.counts
    states = {
        "unchanged": counts.unchanged, "read": counts.read, "judged": counts.judged, "copy": counts.copies, "error": counts.errors,
    }  # fmt: skip
    causes: dict[str, int] = {}
    for group in morning.groups:
        causes[group.cause or "unknown"] = causes.get(group.cause or "unknown", 0) + group.incidents
    hosts: dict[str, int] = {}
    for error in morning.errors:
        hosts[error.host or "unknown"] = hosts.get(error.host or "unknown", 0) + 1
    midnight = int(dt.datetime.fromisoformat(morning.night).replace(tzinfo=dt.UTC).timestamp())
    out: list[str] = []

    def gauge(name: str, says: str, label: str | None, values: Mapping[str, int]) -> None:
        out.append(f"# HELP {name} {says}")
        out.append(f"# TYPE {name} gauge")
        for key in sorted(values):
            out.append(f"{name}{{{label}={_quoted(key)}}} {values[key]}" if label else f"{name} {values[key]}")

    gauge(
        "oomdoc_sweep_night_timestamp_seconds", "Midnight (UTC) of the last night that was swept.", None, {"": midnight}
    )
    gauge("oomdoc_sweep_bundles", "Bundles found, by what became of them.", "state", states)
    gauge("oomdoc_sweep_failing_bundles", "Bundles with new memory incidents.", None, {"": counts.failing})
    gauge("oomdoc_sweep_new_incidents", "Incidents first seen in this night, by cause.", "cause", causes)
    gauge(
        "oomdoc_sweep_new_fingerprints",
        "Fingerprints never seen before.",
        None,
        {"": sum(group.new and group.cause not in NO_FAILURE for group in morning.groups)},
    )
    gauge("oomdoc_sweep_read_errors", "Bundles that could not be read, by host.", "host", hosts)
    return "\n".join(out) + "\n"


def _quoted(text: str) -> str:
    plain = neutral(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{plain}"'


FORMS: Mapping[str, Callable[[Morning], str]] = MappingProxyType(
    {"terminal": terminal, "markdown": markdown, "html": html, "jsonl": jsonl, "junit": junit, "prometheus": prometheus}
)
"""Form -> function(morning) -> text that ends with a newline."""

SUFFIXES: Mapping[str, str] = MappingProxyType(
    {
        ".txt": "terminal",
        ".md": "markdown",
        ".html": "html",
        ".htm": "html",
        ".jsonl": "jsonl",
        ".xml": "junit",
        ".prom": "prometheus",
    }
)
"""File suffix -> form."""
