"""The request profile for a person: sizes, percentiles, what came and was in flight over time, surges, before and during.

It prints the report's `traffic` (the JSON schema describes its shape) and leaves out what the bundle did not tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from oomdoc.model import Report
from oomdoc.report.layout import Page, ink
from oomdoc.report.words import count, moment, neutral, percent, spark
from oomdoc.units import parse_time, show_seconds

MEASURES = (
    ("input_tokens", "input tokens"),
    ("output_tokens", "output tokens"),
    ("context_tokens", "context tokens"),
    ("latency_s", "latency, s"),
    ("ttft_s", "first token, s"),
)
STEPS = ("p50", "p90", "p95", "p99", "max")


def render(report: Report, *, width: int = 100, color: bool = False, **_: Any) -> str:
    """The traffic of a report as text."""
    page = Page(width, color)
    traffic = report.traffic
    _head(page, report.bundle.name, traffic)
    buckets = traffic.get("buckets") or {}
    for side, title in (("input", "Input tokens"), ("output", "Output tokens"), ("context", "Input and output tokens")):
        if rows := buckets.get(side):
            _buckets(page, title, rows)
    _percentiles(page, traffic.get("percentiles") or {})
    _in_flight(page, traffic, next((entry.kv_pool_tokens for entry in report.ledger if entry.kv_pool_tokens), None))
    _arrivals(page, traffic.get("in_flight") or {})
    _surges(page, traffic.get("surges") or {})
    _long_context(page, traffic.get("long_context") or {})
    _incident(page, traffic.get("incident") or {})
    for key, title in (("tenants", "By tenant"), ("models", "By model")):
        _groups(page, title, traffic.get(key) or ())
    _heaviest(page, traffic.get("heaviest") or (), bool(traffic.get("incident")))
    return page.text()


def _head(page: Page, name: str, traffic: Mapping[str, Any]) -> None:
    said = [count(traffic.get("requests"), "request")]
    if traffic.get("failed") is not None:
        said.append(f"{count(traffic['failed'])} failed")
    begin, end = traffic.get("from_t"), traffic.get("to_t")
    if begin and end:
        said.append(f"{moment(begin)} to {moment(end)}")
        first, last = _epoch(begin), _epoch(end)
        if first is not None and last is not None:
            said[-1] += f" ({show_seconds(last - first)})"
    page.flow(ink("Request profile", "bold"), ink(neutral(name)))
    page.flow(Text(), ink(", ".join(said)))


def _epoch(time: float | str) -> float | None:
    return parse_time(time) if isinstance(time, str) else time


def _buckets(page: Page, title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    page.heading(title, "share of requests, share of tokens")
    room = max(page.width - 50, 10)
    for row in rows:
        limit = row.get("up_to_tokens")
        reach = f"up to {limit:,}" if limit is not None else "above"
        share, tokens = row.get("share") or 0.0, row.get("token_share")
        line = ink(f"  {neutral(str(row.get('name', ''))):<3}") + ink(f"{reach:<13}", "dim")
        line += ink(f"{count(row.get('requests')):>11}  {percent(share):>4}  ")
        line += ink(f"{percent(tokens) if tokens is not None else '':>4}", "dim") + ink("  ")
        line += ink("█" * round(share * room), "blue")
        page.line(line)


def _percentiles(page: Page, percentiles: Mapping[str, Mapping[str, Any]]) -> None:
    known = [(title, percentiles[key]) for key, title in MEASURES if percentiles.get(key)]
    if not known:
        return
    page.heading("Percentiles")
    page.line(ink(f"  {'':<15}" + "".join(f"{step:>10}" for step in STEPS), "dim"))
    for title, row in known:
        page.line(ink(f"  {title:<15}" + "".join(f"{_figure(row.get(step), title):>10}" for step in STEPS)))


def _figure(value: float | None, title: str) -> str:
    if value is None:
        return "-"
    return f"{value:,.2f}" if title.endswith(", s") else f"{value:,.0f}"


def _in_flight(page: Page, traffic: Mapping[str, Any], pool: int | None) -> None:
    series = traffic.get("in_flight") or {}
    peaks = traffic.get("peaks") or {}
    for key, title in (("tokens", "Tokens in flight"), ("requests", "Requests in flight")):
        values = series.get(key) or ()
        peak = peaks.get(f"{key}_in_flight") or {}
        if not values and not peak:
            continue
        said = []
        if peak.get("value") is not None:
            at = f" at {moment(peak['t'])}" if peak.get("t") else ""
            said.append(f"at most {count(peak['value'])}{at}")
        if pool and key == "tokens":
            said.append(f"the KV pool holds {count(pool)}")
        page.heading(title, "; ".join(said))
        if values:
            drawn = spark(values, page.width - 2)
            page.line(ink("  ") + ink(drawn, "blue"))
            if series.get("step_s"):
                each = f"one column is {show_seconds(series['step_s'] * len(values) / max(len(drawn), 1))}"
                start = f", from {moment(series['from_t'])}" if series.get("from_t") else ""
                page.flow(Text(), ink(each + start, "dim"), indent=2)


def _long_context(page: Page, longer: Mapping[str, Any]) -> None:
    if longer.get("share_before") is None and longer.get("share_during") is None:
        return
    least = f"above {count(longer['from_tokens'])} tokens" if longer.get("from_tokens") else ""
    page.heading("Long contexts", least)
    before, during = percent(longer.get("share_before")), percent(longer.get("share_during"))
    which = f" {neutral(str(longer['incident']))}" if longer.get("incident") else ""
    page.flow(Text(), ink(f"{before} of the requests before the incident{which}, {during} during it"), indent=2)


def _arrivals(page: Page, series: Mapping[str, Any]) -> None:
    step = series.get("step_s")
    for key, title, unit in (
        ("arrivals", "Requests arriving", "a second"),
        ("arrived_tokens", "Prompt tokens arriving", "a second"),
    ):
        values = series.get(key) or ()
        if not values or not step:
            continue
        drawn = spark(values, page.width - 2)
        page.heading(title, f"at most {_rate(max(values) / step)} {unit} over {show_seconds(step)}")
        page.line(ink("  ") + ink(drawn, "blue"))


def _rate(value: float | None) -> str:
    if value is None:
        return "unknown"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _surges(page: Page, surges: Mapping[str, Any]) -> None:
    known = [
        (title, surges[key])
        for key, title in (("prompt_tokens", "mean prompt, tokens"), ("prompt_tokens_per_s", "prompt tokens a second"))
        if surges.get(key)
    ]
    if not known:
        return
    page.heading("Surges", f"highest {show_seconds(surges.get('window_s'))} against the average")
    for title, row in known:
        figures = f"{_rate(row.get('highest')):>8} against {_rate(row.get('average')):>7}  ×{row.get('ratio') or 0:.1f}"
        body = ink(figures) + ink("  surge" if row.get("surge") else "", "red")
        page.flow(ink(f"  {title:<24}"), body + ink(f"  from {moment(row['t'])}" if row.get("t") else "", "dim"))


SIDES = (
    ("requests", "requests"), ("per_s", "requests a second"), ("prompt_tokens_per_s", "prompt tokens a second"), ("input_p50", "prompt, median"),
    ("input_p95", "prompt, p95"), ("input_max", "prompt, longest"), ("output_p50", "generation, median"), ("output_p95", "generation, p95"),
)  # fmt: skip


def _incident(page: Page, incident: Mapping[str, Any]) -> None:
    before, during = incident.get("before") or {}, incident.get("during") or {}
    if not before or not during:
        return
    which = f"incident {neutral(str(incident['incident']))}, " if incident.get("incident") else ""
    page.heading(
        "Before and during", f"{which}{show_seconds(incident.get('window_s'))} up to {moment(incident.get('t'))}"
    )
    page.line(ink(f"  {'':<24}{'before':>12}{'during':>12}", "dim"))
    for key, title in SIDES:
        here, there = before.get(key), during.get(key)
        if here is None and there is None:
            continue
        ratio = f"  ×{there / here:.1f}" if here and there is not None and key != "requests" else ""
        page.line(ink(f"  {title:<24}{_side(here):>12}{_side(there):>12}") + ink(ratio, "dim"))


def _side(value: float | None) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else _rate(value)


def _groups(page: Page, title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    if not rows:
        return
    page.heading(title, "requests, share of requests, share of tokens, prompt p50 and p95")
    room = max(12, min(32, page.width - 56))
    for row in rows:
        name = neutral(str(row.get("name")))
        name = name if len(name) <= room else name[: room - 1] + "…"
        tokens = row.get("token_share")
        page.line(
            ink(f"  {name:<{room}}{count(row.get('requests')):>11}{percent(row.get('share')):>7}")
            + ink(
                f"{percent(tokens) if tokens is not None else '':>7}{_side(row.get('input_p50')):>11}{_side(row.get('input_p95')):>11}"
            )
        )


def _heaviest(page: Page, rows: Sequence[Mapping[str, Any]], around: bool) -> None:
    if not rows:
        return
    page.heading("Heaviest requests", ("around the incident, " if around else "") + "context tokens × seconds")
    for row in rows:
        tokens = (
            f"{count(row.get('input_tokens'))} + {count(row['output_tokens'])} tokens"
            if row.get("output_tokens") is not None
            else f"{count(row.get('input_tokens'))} prompt tokens"
        )
        lasted = f" in {show_seconds(row['latency_s'])}" if row.get("latency_s") is not None else ""
        who = f", {neutral(str(row['tenant']))}" if row.get("tenant") else ""
        page.flow(ink(f"  {neutral(str(row.get('ref')))}", "dim"), ink(f"{tokens}{lasted}{who}"))
