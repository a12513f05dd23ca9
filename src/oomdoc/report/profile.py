"""The request profile for a person: sizes in buckets, percentiles, tokens in flight over time, long contexts.

It prints the report's `traffic` (the JSON schema describes its shape) and leaves out what the bundle did not tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from oomdoc.model import Report
from oomdoc.report.terminal import Page, ink
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
    _long_context(page, traffic.get("long_context") or {})
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
