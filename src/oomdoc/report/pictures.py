"""The two pictures of the HTML report's first screen: the failing ranks against their plan, and the time around the failure.

They are plain shapes that the template draws, so that they need no script, print and load at once. What they show is the ledger and the
timeline of the report; nothing is computed but places on a grid.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from oomdoc.model import LedgerEntry, Report
from oomdoc.report.facts import MOMENTS, bar_size, ledger_of_failure, parts_of, plans_of_failure
from oomdoc.report.words import count, gravest, moment, neutral, percent
from oomdoc.units import GIB, NOMINAL_YEAR, parse_time, show_bytes, show_seconds

WIDE = 1000  # units of a picture's width
TALL = 100  # of a trace's height
BARS_SHOWN = 4
ROOM = 0.05  # of an axis of moments alone, on either side of them
BEFORE_S, AFTER_S = 2400.0, 1200.0  # around the failure


def ledger(report: Report) -> dict[str, Any] | None:
    """A bar per failing rank (the alike as one) and one of the plan: places and widths on `WIDE`, and a legend with figures."""
    entries = [entry for entry in ledger_of_failure(report) if entry.total_bytes]
    plans = [entry for entry in plans_of_failure(report) if entry.total_bytes]
    if not entries or (report.verdict == "not-memory" and all(entry.moment == "plan" for entry in entries)):
        return None
    whole = max(entry.total_bytes or 0 for entry in (*entries, *plans))
    bars: list[dict[str, Any]] = []
    titled = parts_of([*entries, *plans])
    for entry in (*entries, *plans):
        shapes, at = [], 0.0
        for key, title in titled:
            amount = max(entry.parts.get(key) or 0, 0)
            wide = amount / whole * WIDE
            if wide:
                shapes.append({"part": key.removesuffix("_bytes").replace("_", "-"), "title": f"{title} {show_bytes(amount)}", "x": round(at, 2), "wide": round(wide, 2)})  # fmt: skip
                at += wide
        name = "planned" if entry in plans else _rank(entry)
        last = bars[-1] if bars else None
        if last and _alike(last["shapes"], shapes) and "planned" not in (name, last["names"][0]):
            last["names"].append(name)
        else:
            bars.append({"names": [name], "shapes": shapes, "total": bar_size(entry)})
    for bar in bars:
        names = bar["names"]
        bar["name"] = names[0] if len(names) == 1 else f"{names[0]} to {names[-1].rpartition(' ')[2]}"
    legend = []
    for key, title in titled:
        sizes = [size for entry in entries if (size := entry.parts.get(key))]
        planned = [size for entry in plans if (size := entry.parts.get(key))]
        if sizes or planned:
            least, most = min(sizes or planned) / GIB, max(sizes or planned) / GIB
            figure = f"{least:.2f}" if f"{least:.2f}" == f"{most:.2f}" else f"{least:.2f} to {most:.2f}"
            legend.append(
                (key.removesuffix("_bytes").replace("_", "-"), title + ("" if sizes else ", planned"), figure)
            )
    when = MOMENTS.get(entries[0].moment or "", "")
    return {"bars": bars[:BARS_SHOWN], "more": max(len(bars) - BARS_SHOWN, 0), "legend": legend, "moment": when}


def _alike(one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]) -> bool:
    """Whether two bars look the same: the legend tells the range."""
    return [(each["part"], round(each["wide"] / 4)) for each in one] == [
        (each["part"], round(each["wide"] / 4)) for each in other
    ]


def _rank(entry: LedgerEntry) -> str:
    return f"rank {entry.rank}" if entry.rank is not None else neutral(entry.device or "GPU")[:24]


_TRACES = (("kv_used", "KV pool in use"), ("requests", "requests waiting"), ("device_memory", "memory"), ("host_memory", "memory of processes"))  # fmt: skip
_NAMES = {"failure": "failure", "evidence": "cause", "kill": "kill", "start": "start", "serving": "ready"}


def around(report: Report) -> dict[str, Any] | None:
    """Traces and marks around the failure; None where nothing has a time, or nothing but one moment has."""
    timeline = report.timeline
    begin = _time(timeline.get("from_t")) if timeline else None
    if begin is None or report.verdict == "no-server":
        return None
    step, steps = float(timeline["step_s"]), int(timeline["steps"])
    incident = gravest(report) if report.verdict != "healthy" else None
    failed = incident.started if incident else None
    low, high = begin, begin + step * steps
    if failed is not None and high - low > BEFORE_S + AFTER_S:
        low, high = max(low, failed - BEFORE_S), min(high, failed + AFTER_S)
    if high <= low:
        return None
    traces: list[dict[str, Any]] = []
    for chart, title in _TRACES:
        rows = [
            row
            for row in timeline["series"]
            if row["chart"] == chart and (chart != "requests" or row["name"] == "waiting")
        ]
        best = max(
            rows, key=lambda row: max((value for value in row["values"] if value is not None), default=0), default=None
        )
        if best is None or len(traces) == 2:
            continue
        places = [(begin + place * step, value) for place, value in enumerate(best["values"])]
        shown = [(time, value) for time, value in places if low - step <= time <= high]
        known = [value for _, value in shown if value is not None]
        if len(known) < 3 or (not any(known) and chart != "kv_used"):
            continue
        top = best["limit"] or max(known) or 1.0
        name = f"{neutral(best['name']).split(',')[0][:16]} memory" if chart == "device_memory" else title
        traces.append(
            {"name": name, "says": _says(chart, max(known), best["limit"]), **_shape(shown, low, high, top, step)}
        )
    timed = [(at, mark) for mark in timeline["marks"] if (at := _time(mark["t"])) is not None and low <= at <= high]
    if (
        not traces and timed and (apart := timed[-1][0] - timed[0][0])
    ):  # an axis of moments alone needs no more than they
        low, high = timed[0][0] - apart * ROOM, timed[-1][0] + apart * ROOM
    marks = []
    for at, mark in timed:
        clock = moment(mark["t"]).replace(" (year unknown)", "")
        marks.append({"x": round((at - low) / (high - low) * WIDE, 1), "kind": mark["kind"], "name": _NAMES.get(mark["kind"], mark["kind"]), "clock": clock[11:19] if "T" in clock else clock[6:14]})  # fmt: skip
    if not traces and len({mark["x"] for mark in marks}) < 2:
        return None  # one moment is no picture: the text says it
    return {
        "traces": traces,
        "marks": marks,
        "labels": _labels(marks),
        "wide": show_seconds(high - low),
        "from": _clock(low),
        "to": _clock(high),
    }


def _labels(marks: Sequence[Mapping[str, Any]], most: int = 6) -> list[dict[str, Any]]:
    """Marks in words, of several of a kind at a moment one; the gravest are kept where there are many."""
    grave = {"failure": 0, "kill": 1, "evidence": 2, "serving": 3, "start": 4}
    seen: dict[tuple[str, str], dict[str, Any]] = {}
    for mark in marks:
        seen.setdefault((mark["kind"], mark["clock"]), dict(mark))
    kept = sorted(seen.values(), key=lambda mark: grave.get(mark["kind"], 9))[:most]
    return sorted(kept, key=lambda mark: mark["x"])


def _shape(shown: Sequence[tuple[float, Any]], low: float, high: float, top: float, step: float) -> dict[str, str]:
    """A line with gaps where nothing is known for long, and the area below it, as paths."""
    pieces: list[list[tuple[float, float]]] = []
    known = [(time, float(value)) for time, value in shown if value is not None]
    gaps = sorted(after[0] - before[0] for before, after in itertools.pairwise(known))
    apart = max(6 * (gaps[len(gaps) // 2] if gaps else step), 4 * step)
    last = 0.0
    for time, value in known:
        place = ((time - low) / (high - low) * WIDE, TALL - min(max(value / top, 0.0), 1.0) * (TALL - 4) - 2)
        if pieces and time - last <= apart:
            pieces[-1].append(place)
        else:
            pieces.append([place])
        last = time
    line = " ".join("M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in piece) for piece in pieces)
    area = " ".join(
        f"M{piece[0][0]:.1f} {TALL} L"
        + " L".join(f"{x:.1f} {y:.1f}" for x, y in piece)
        + f" L{piece[-1][0]:.1f} {TALL} Z"
        for piece in pieces
    )
    return {"line": line, "area": area}


def _says(chart: str, highest: float, limit: float | None) -> str:
    if chart == "kv_used":
        return f"at most {percent(highest)}"
    if chart == "requests":
        return f"at most {count(highest)}"
    return f"at most {show_bytes(highest)}" + (f" of {show_bytes(limit)}" if limit else "")


def _time(text: Any) -> float | None:
    if not isinstance(text, str):
        return None
    return parse_time(f"{NOMINAL_YEAR}{text[1:]}" if text.startswith("--") else text)


def _clock(time: float) -> str:
    said = moment(float(round(time))).replace(" (year unknown)", "")
    return said[11:19] if "T" in said else said[6:14]
