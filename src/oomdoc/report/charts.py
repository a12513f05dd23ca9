"""The charts of the HTML report: what each draws as columns, and the Vega-Lite specification that draws it.

One axis of time: every chart over time has the same `from` and `to`, a cursor, a range being dragged, and the marked
moments as data sets of its own, which the page's script fills alike. Colours are names of the page's style sheet
(`var(--...)`), so that dark mode and print need no second drawing. Numbers are those of the report in the units of people:
GiB, per cent, counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oomdoc.model import LedgerEntry, Report
from oomdoc.report.facts import PARTS, parts_of
from oomdoc.report.words import neutral
from oomdoc.units import GIB, NOMINAL_YEAR, parse_time, show_seconds

COLORS = 10  # --c0 to --c9 of the style sheet, reused where a chart has more series
ROOM = 0.015  # of the axis at both ends: what happens first and last is not drawn into the frame
BARS = 120  # of a chart: narrower ones are not told apart
_HEIGHT = 150


@dataclass(frozen=True)
class Series:
    """One line, area or stack: a value per moment of its chart, None where there is no reading."""

    name: str
    values: tuple[float | None, ...]
    color: str


@dataclass(frozen=True)
class Chart:
    """A chart over time. `times_ms` are the moments (epoch milliseconds, rising), `limit` a level to be held against."""

    id: str
    title: str
    says: str
    unit: str
    kind: str  # line, area, bar
    times_ms: tuple[int, ...]
    series: tuple[Series, ...]
    limit: float | None = None
    limit_says: str = ""
    digits: int = 0

    def data(self) -> dict[str, Any]:
        """What the page's script reads: the columns once, and the specification without them."""
        return {
            "id": self.id, "title": self.title, "unit": self.unit, "digits": self.digits, "times": list(self.times_ms),
            "series": [{"name": item.name, "values": list(item.values)} for item in self.series], "kind": self.kind, "spec": self.spec(),
        }  # fmt: skip

    def spec(self) -> dict[str, Any]:
        """The Vega-Lite specification; data sets `points`, `marks`, `cursor` and `drag` are named and empty."""
        color = {
            "field": "s", "type": "nominal", "legend": None,
            "scale": {"domain": [item.name for item in self.series], "range": [item.color for item in self.series]},
        }  # fmt: skip
        value = {
            "field": "v",
            "type": "quantitative",
            "title": self.unit,
            "axis": _Y_AXIS | ({"format": "~s"} if self.unit == "tokens" else {}),
        }
        if self.unit == "%":
            value["scale"] = {"domain": [0, 100]}
        elif self.limit is not None:  # room above for its words
            highest = max((item for series in self.series for item in series.values if item is not None), default=0)
            value["scale"] = {"domain": [0, max(highest, self.limit) * 1.12]}
        if self.kind == "bar":
            drawn: dict[str, Any] = {"mark": {"type": "rect", "clip": True}}
            value |= {"field": "v0"}
            encoding = {"x": _time("t"), "x2": {"field": "t1"}, "y": value, "y2": {"field": "v1"}, "color": color}
        elif self.kind == "area":
            drawn = {"mark": {"type": "area", "clip": True, "line": {"strokeWidth": 1.5}, "fillOpacity": 0.25}}
            encoding = {"x": _time("t"), "y": {**value, "stack": None}, "color": color}
        else:
            drawn = {"mark": {"type": "line", "clip": True, "strokeWidth": 1.6, "point": False}}
            encoding = {"x": _time("t"), "y": value, "color": color}
        layers = [
            {"data": {"name": "drag"}, "mark": {"type": "rect", "clip": True, "color": "var(--accent)", "opacity": 0.2}, "encoding": {"x": _time("a"), "x2": {"field": "b"}}},
            {"data": {"name": "points"}, **drawn, "encoding": encoding},
            {"data": {"name": "lone"}, "mark": {"type": "point", "filled": True, "size": 18, "clip": True}, "encoding": {"x": _time("t"), "y": value, "color": color}},
        ]  # fmt: skip
        if self.limit is not None:
            level = {"datum": self.limit, "type": "quantitative"}
            rule = {"type": "rule", "strokeDash": [6, 4], "color": "var(--muted)"}
            layers.append({"data": {"values": [{}]}, "mark": rule, "encoding": {"y": level}})
            text = {
                "type": "text",
                "text": self.limit_says,
                "align": "right",
                "baseline": "bottom",
                "dy": -2,
                "dx": -4,
                "color": "var(--text)",
                "fontSize": 11,
            }
            halo = text | {"color": "var(--page)", "stroke": "var(--page)", "strokeWidth": 3, "strokeJoin": "round"}
            for mark in (halo, text):  # readable over what is drawn below
                layers.append(
                    {"data": {"values": [{}]}, "mark": mark, "encoding": {"y": level, "x": {"value": "width"}}}
                )
        layers += _mark_layers()
        return {
            "width": "container", "height": _HEIGHT, "autosize": {"type": "fit-x", "contains": "padding"}, "background": None, "padding": {"left": 2, "right": 10, "top": 18, "bottom": 2},
            "params": [{"name": "from", "value": 0}, {"name": "to", "value": 1}],
            "datasets": {"points": [], "lone": [], "marks": [], "cursor": [], "drag": []}, "layer": layers, "config": _CONFIG,
        }  # fmt: skip


_Y_AXIS = {"minExtent": 52, "maxExtent": 52, "tickCount": 4, "titlePadding": 2}
_CONFIG = {
    "font": "system-ui, sans-serif",
    "view": {"stroke": "var(--line)"},
    "axis": {
        "labelColor": "var(--muted)", "titleColor": "var(--muted)", "gridColor": "var(--line)", "domainColor": "var(--line)", "tickColor": "var(--line)",
        "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal", "gridOpacity": 0.6,
    },
    "aria": False,
}  # fmt: skip
_MARKS = {"failure": ("var(--bad)", [1, 0]), "kill": ("var(--bad)", [3, 3]), "evidence": ("var(--warn)", [5, 3]), "start": ("var(--muted)", [2, 3]), "serving": ("var(--good)", [2, 3])}  # fmt: skip


_CLOCK = "utcFormat(datum.value, to - from < 600000 ? '%H:%M:%S' : to - from > 129600000 ? '%m-%d %H:%M' : '%H:%M')"


def _time(field: str) -> dict[str, Any]:
    return {
        "field": field, "type": "temporal", "title": None, "axis": {"grid": False, "tickCount": 6, "labelOverlap": True, "labelExpr": _CLOCK},
        "scale": {"type": "utc", "nice": False, "domainMin": {"expr": "from"}, "domainMax": {"expr": "to"}},
    }  # fmt: skip


def _mark_layers() -> list[dict[str, Any]]:
    kinds = list(_MARKS)
    color = {"field": "kind", "type": "nominal", "legend": None, "scale": {"domain": kinds, "range": [_MARKS[kind][0] for kind in kinds]}}  # fmt: skip
    dash = {"field": "kind", "type": "nominal", "legend": None, "scale": {"domain": kinds, "range": [_MARKS[kind][1] for kind in kinds]}}  # fmt: skip
    return [
        {"data": {"name": "marks"}, "mark": {"type": "rule", "clip": True, "strokeWidth": 1.5}, "encoding": {"x": _time("t"), "stroke": color, "strokeDash": dash}},
        {
            "data": {"name": "marks"}, "transform": [{"filter": "datum.label != ''"}, {"filter": "datum.t >= from && datum.t <= to"}],
            "mark": {"type": "text", "baseline": "bottom", "fontSize": 11, "fontWeight": "bold", "y": -3, "align": {"expr": "(datum.t - from) / (to - from) > 0.8 ? 'right' : 'left'"}},
            "encoding": {"x": _time("t"), "text": {"field": "label"}, "fill": color},
        },
        {"data": {"name": "cursor"}, "mark": {"type": "rule", "clip": True, "color": "var(--text)", "opacity": 0.6}, "encoding": {"x": _time("t")}},
    ]  # fmt: skip


# ---- what there is to draw


def charts(report: Report) -> list[Chart]:
    """The charts over time that the bundle has something for, in the order of the page; the replay of the fix comes last."""
    return [
        chart
        for chart in (*_over_time(report.timeline), *_flight(report), *_replayed(report.fix_replay))
        if chart.times_ms
    ]


def _over_time(timeline: Mapping[str, Any]) -> list[Chart]:
    begin = _ms(timeline.get("from_t"))
    if begin is None:
        return []
    step_ms = round(timeline["step_s"] * 1000)
    times = tuple(begin + step_ms * step for step in range(timeline["steps"]))
    made = []
    for name, title, says, unit, kind, scale, digits in (
        ("device_memory", "Device memory", "in use per GPU, the highest of each step", "GiB", "line", 1 / GIB, 2),
        ("kv_used", "KV pool", "share of the blocks that live requests hold", "%", "area", 100.0, 1),
        ("requests", "Requests", "running and waiting", "requests", "line", 1.0, 0),
        ("preemptions", "Preemptions", "", "count", "bar", 1.0, 0),
        ("arrivals", "Arrivals by prompt size", "S below 512 tokens, M below 2,048, L below 8,192, XL above", "count", "bar", 1.0, 0),
        ("host_memory", "Host memory", "of processes", "GiB", "line", 1 / GIB, 2),
    ):  # fmt: skip
        rows = [row for row in timeline.get("series", ()) if row["chart"] == name]
        if not rows:
            continue
        if name == "preemptions":
            says = neutral(rows[0]["name"])
        moments, columns = times, [tuple(row["values"]) for row in rows]
        if kind == "bar":
            moments, columns = _folded(times, columns)
            unit = f"per {show_seconds((moments[1] - moments[0]) / 1000)}" if len(moments) > 1 else unit
        limits = {row["limit"] for row in rows if row["limit"]}
        limit = max(limits) * scale if limits and name == "device_memory" else None
        made.append(
            Chart(
                name.replace("_", "-"), title, says, unit, kind, moments,
                tuple(Series(neutral(row["name"]), _scaled(values, scale, digits), f"var(--c{place % COLORS})") for place, (row, values) in enumerate(zip(rows, columns, strict=True))),
                limit, f"{limit:.2f} GiB on the device" if limit is not None else "", digits,
            )
        )  # fmt: skip
    return made


def _folded(
    times: tuple[int, ...], columns: Sequence[tuple[float | None, ...]]
) -> tuple[tuple[int, ...], list[tuple[float | None, ...]]]:
    """Counts of neighbouring steps added up, so that at most `BARS` are left; NULL where no step has a reading."""
    each = -(-len(times) // BARS)

    def summed(values: tuple[float | None, ...]) -> tuple[float | None, ...]:
        known = [[value for value in values[at : at + each] if value is not None] for at in range(0, len(values), each)]
        return tuple(sum(part) if part else None for part in known)

    return times[::each], [summed(values) for values in columns]


def _scaled(values: Iterable[float | None], scale: float, digits: int) -> tuple[float | None, ...]:
    return tuple(
        None if value is None else round(value * scale, digits) if digits else round(value * scale) for value in values
    )


def _flight(report: Report) -> list[Chart]:
    flight = report.traffic.get("in_flight") or {}
    begin = _ms(flight.get("from_t"))
    if begin is None or not flight.get("tokens"):
        return []
    times = tuple(begin + round(step * flight["step_s"] * 1000) for step in range(len(flight["tokens"])))
    pool = next((entry.kv_pool_tokens for entry in report.ledger if entry.kv_pool_tokens), None)
    return [
        Chart(
            "tokens-in-flight", "Tokens in flight", "prompt and generated tokens of the requests that had come and not gone, each counted in full", "tokens", "area", times,
            (Series("tokens in flight", tuple(flight["tokens"]), "var(--c4)"),), pool, f"the KV pool holds {pool:,} tokens" if pool else "",
        )
    ]  # fmt: skip


def _replayed(told: Mapping[str, Any] | None) -> list[Chart]:
    """Usage and waiting of the recorded flags and of the fix, on the longer of both axes."""
    if not told:
        return []
    before, after = told["before"]["series"], told["after"]["series"]
    begin = _ms(before.get("from_t"))
    if begin is None or not before["used"] or not after["used"]:
        return []
    step_s = max(before["step_s"], after["step_s"])
    steps = max(len(row["used"]) * row["step_s"] for row in (before, after)) // step_s
    times = tuple(begin + round(step * step_s * 1000) for step in range(int(steps) + 1))
    made = []
    for name, title, unit, scale, digits, key in (
        ("replay-usage", "KV pool, replayed", "%", 100.0, 1, "used"),
        ("replay-waiting", "Requests waiting, replayed", "requests", 1.0, 0, "waiting"),
    ):
        series = [
            Series("flags as they were", _on(times, begin, before, key, scale, digits), "var(--c1)"),
            Series("with the fix", _on(times, begin, after, key, scale, digits), "var(--c0)"),
        ]
        if told.get("recorded"):
            series.append(Series("recorded", _seen(times, told["recorded"], key, scale, digits), "var(--muted)"))
        made.append(
            Chart(
                name,
                title,
                "the same requests through the engine's scheduler",
                unit,
                "line",
                times,
                tuple(series),
                digits=digits,
            )
        )
    return made


def _on(
    times: Sequence[int], begin: int, row: Mapping[str, Any], key: str, scale: float, digits: int
) -> tuple[float | None, ...]:
    """A series of even steps at other moments."""
    values = row[key]
    places = [int((time - begin) / 1000 / row["step_s"]) for time in times]
    return _scaled([values[place] if place < len(values) else None for place in places], scale, digits)


def _seen(
    times: Sequence[int], row: Mapping[str, Any], key: str, scale: float, digits: int
) -> tuple[float | None, ...]:
    """Readings at any moments, put on the steps: the highest of each."""
    begin = _ms(row["from_t"]) or 0
    step_ms = times[1] - times[0] if len(times) > 1 else 1
    told: list[float | None] = [None] * len(times)
    for at_s, value in zip(row["at_s"], row[key], strict=True):
        place = int((begin + at_s * 1000 - times[0]) // step_ms)
        if value is not None and 0 <= place < len(times):
            told[place] = max(value, told[place] if told[place] is not None else value)
    return _scaled(told, scale, digits)


def marks(report: Report) -> list[dict[str, Any]]:
    """The marked moments of the axis; the page's script labels those that have room."""
    told = []
    for mark in report.timeline.get("marks", ()):
        time = _ms(mark["t"])
        if time is not None:
            told.append({"t": time, "kind": mark["kind"], "label": ""})
    return told


def span(made: Sequence[Chart], report: Report) -> tuple[int, int] | None:
    """First and last moment of all charts and marks with a little room at both ends, epoch milliseconds; None without two."""
    moments = [time for chart in made for time in (chart.times_ms[0], chart.times_ms[-1])]
    moments += [time for mark in report.timeline.get("marks", ()) if (time := _ms(mark["t"])) is not None]
    if not moments or min(moments) == max(moments):
        return None
    room = max(1000, round((max(moments) - min(moments)) * ROOM))
    return min(moments) - room, max(moments) + room


def ledger_spec(labels: Sequence[str], entries: Sequence[LedgerEntry]) -> dict[str, Any]:
    """Stacked bars, one per rank and start: GiB by part."""
    # parts of an unknown whole are no bar: the table has their figures
    drawn = [(label, entry) for label, entry in zip(labels, entries, strict=True) if entry.total_bytes]
    labels, entries = [label for label, _ in drawn], [entry for _, entry in drawn]
    rows = [
        {"rank": label, "part": title, "v": round((entry.parts.get(key) or 0) / GIB, 3), "o": place}
        for label, entry in zip(labels, entries, strict=True)
        for place, (key, title) in enumerate(parts_of(entries))
        if (entry.parts.get(key) or 0) > 0
    ]
    totals = [
        {"rank": label, "v": round(entry.total_bytes / GIB, 2)}
        for label, entry in zip(labels, entries, strict=True)
        if entry.total_bytes
    ]
    names = [title for _, title in parts_of(entries)]
    color = {"field": "part", "type": "nominal", "legend": None, "scale": {"domain": names, "range": [f"var(--p-{key.removesuffix('_bytes').replace('_', '-')})" for key, _ in PARTS]}}  # fmt: skip
    bar = {"y": {"field": "rank", "type": "nominal", "title": None, "sort": list(labels), "axis": {"labelLimit": 160}}, "x": {"field": "v", "type": "quantitative", "title": "GiB", "stack": "zero"}}  # fmt: skip
    return {
        "width": "container", "height": 34 * len(labels), "autosize": {"type": "fit-x", "contains": "padding"}, "background": None, "padding": {"left": 2, "right": 10, "top": 4, "bottom": 2},
        "layer": [
            {"data": {"values": rows}, "mark": {"type": "bar", "height": {"band": 0.75}, "stroke": "var(--page)", "strokeWidth": 1}, "encoding": {**bar, "color": color, "order": {"field": "o"}}},
            {"data": {"values": totals}, "mark": {"type": "tick", "thickness": 2, "color": "var(--text)"}, "encoding": {"y": bar["y"], "x": {"field": "v", "type": "quantitative"}}},
        ],
        "config": _CONFIG,
    }  # fmt: skip


def _ms(time: Any) -> int | None:
    """Epoch milliseconds of a report's time; a year that no log told is the nominal one."""
    if not isinstance(time, str):
        return None
    seconds = parse_time(f"{NOMINAL_YEAR}{time[1:]}" if time.startswith("--") else time)
    return None if seconds is None else round(seconds * 1000)
