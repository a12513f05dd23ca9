"""A replay for a person: recorded, replayed and changed usage above one another, the figures side by side, the doubts.

It prints what `oomdoc.replay` gives as plain data (docs/json.md) and computes nothing but columns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from oomdoc.report.layout import Page, ink
from oomdoc.report.words import count, flag, moment, neutral, percent
from oomdoc.units import show_seconds

LABEL = 11  # columns of a row's name before its sparkline
NAME, COLUMN = 30, 16  # columns of the table


def render(name: str, told: Mapping[str, Any], *, width: int = 100, color: bool = False, **_: Any) -> str:
    """The replay of the bundle of that name as text."""
    page = Page(width, color)
    traffic, before, after = told["traffic"], told["before"], told["after"]
    page.flow(ink("Replay", "bold"), ink(neutral(name)))
    page.flow(
        Text(),
        ink(f"{count(traffic['requests'], 'request')}, {moment(traffic['from_t'])} to {moment(traffic['to_t'])}"),
    )
    page.flow(Text(), _verdict("With the recorded flags", before))
    if after is not None:
        changed = " ".join(flag(item["flag"], item["value"]) for item in told["settings"]) or "another pool"
        page.flow(Text(), _verdict(f"With {changed}", after, before))
    _series(page, told)
    _table(page, told)
    _trust(page, told)
    return page.text()


def _verdict(which: str, outcome: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> Text:
    felt = _felt(outcome, before)
    if outcome["survives"]:
        said = f"{which} it survives: at most {percent(outcome['peak_used'])} of the pool is used"
        return ink(f"{said}, but {felt}." if felt else f"{said}.", "yellow" if felt else "green")
    why = [felt] if felt else []
    if outcome["impossible"]:
        why.append(f"{count(outcome['impossible'], 'request')} can never run")
    if outcome["preemptions"]:
        why.append(
            f"{count(outcome['preemptions'], 'preemption')}, {count(outcome['recomputed_tokens'], 'token')} computed again"
        )
    if outcome["held_by_pool_s"]:
        why.append(f"requests waited for blocks for {show_seconds(outcome['held_by_pool_s'])}")
    return ink(f"{which} it does not survive: {'; '.join(why)}.", "red")


_LONGER, _LONGER_S = 1.1, 1.0
"""From here on, as a factor and beyond so many seconds, a wait is said to be longer: below it one would read the replay's own error."""


def _felt(outcome: Mapping[str, Any], before: Mapping[str, Any] | None) -> str:
    """How much longer requests wait with the change; "" where they do not."""
    if before is None:
        return ""
    old, new = before["p95_wait_s"], outcome["p95_wait_s"]
    if new <= _LONGER * old + _LONGER_S:
        return ""
    times = f", {new / old:.1f} times as long" if old > _LONGER_S else ""
    return f"requests wait longer: 95% of them begin within {show_seconds(new)}, {show_seconds(old)} before{times}"


def _series(page: Page, told: Mapping[str, Any]) -> None:
    recorded, before, after = told["recorded"], told["before"], told["after"]
    spans = [outcome["lasted_s"] for outcome in (before, after) if outcome]
    begin = min(0.0, recorded["series"]["at_s"][0]) if recorded else 0.0
    end = max([*spans, recorded["series"]["at_s"][-1] if recorded else 0.0])
    room = max(page.width - LABEL - 4, 10)
    for key, title in (("used", "KV usage"), ("running", "Running"), ("waiting", "Waiting")):
        rows = []
        if recorded:
            rows.append(("recorded", recorded["series"]["at_s"], recorded["series"][key]))
        for label, outcome in (("replayed", before), ("changed", after)):
            if outcome:
                series = outcome["series"]
                rows.append((label, [series["step_s"] * place for place in range(len(series[key]))], series[key]))
        top = 1.0 if key == "used" else max((value or 0 for _, _, values in rows for value in values), default=0)
        said = "share of the pool" if key == "used" else f"at most {count(top)}"
        page.heading(title, said)
        for label, times, values in rows:
            drawn = _drawn(_columns(times, values, begin, end, room), top)
            page.line(ink(f"  {label:<{LABEL}}", "dim") + ink(drawn, "blue"))
    each = (end - begin) / room
    page.flow(Text(), ink(f"one column is {show_seconds(each)}, the highest value of it is drawn", "dim"), indent=2)


def _columns(
    times: Sequence[float], values: Sequence[float | None], begin: float, end: float, count: int
) -> list[float | None]:
    """The highest value of each column of time; a column without one keeps the value before it while the series goes on."""
    columns: list[float | None] = [None] * count
    for t, value in zip(times, values, strict=True):
        place = min(count - 1, int((t - begin) / max(end - begin, 1e-9) * count))
        if value is not None:
            columns[place] = max(value, columns[place] or 0.0)
    filled = [place for place, value in enumerate(columns) if value is not None]
    for place in range(filled[0], filled[-1]) if filled else ():
        if columns[place + 1] is None:
            columns[place + 1] = columns[place]
    return columns


def _drawn(columns: Sequence[float | None], top: float) -> str:
    if top <= 0:
        return ""
    return "".join(
        " " if value is None else " ▁▂▃▄▅▆▇█"[min(8, math.ceil(value / top * 8))] for value in columns
    ).rstrip()


# ---- figures


def _table(page: Page, told: Mapping[str, Any]) -> None:
    before, after, recorded = told["before"], told["after"], told["recorded"]
    engines = told["engine"], told["engine_after"]
    rows: list[tuple[str, str, str, str]] = []

    def row(name: str, seen: str, of: Any) -> None:
        rows.append((name, seen, of(before, engines[0]), of(after, engines[1]) if after else ""))

    row("survives", "", lambda outcome, _: "yes" if outcome["survives"] else "no")
    row("pool, tokens", "", lambda _, engine: count(engine["pool_tokens"]))
    row("requests at once, at most", "", lambda _, engine: count(engine["max_num_seqs"]))
    row(
        "peak usage",
        percent(recorded["peak_used"]) if recorded else "",
        lambda outcome, _: percent(outcome["peak_used"]),
    )
    row(
        "preemptions",
        count(recorded["preemptions"]) if recorded else "",
        lambda outcome, _: count(outcome["preemptions"]),
    )
    row("tokens computed again", "", lambda outcome, _: count(outcome["recomputed_tokens"]))
    row("waiting for blocks", "", lambda outcome, _: show_seconds(outcome["held_by_pool_s"]))
    row("longest wait of a request", "", lambda outcome, _: show_seconds(outcome["longest_wait_s"]))
    row("95% wait at most", "", lambda outcome, _: show_seconds(outcome["p95_wait_s"]))
    row("first full pool", "", lambda outcome, _: _clock(outcome["first_full_t"]))
    row("first preemption", "", lambda outcome, _: _clock(outcome["first_preemption_t"]))
    row("can never run", "", lambda outcome, _: count(outcome["impossible"]))
    row("all done after", "", lambda outcome, _: show_seconds(outcome["lasted_s"]))
    page.heading("Side by side")
    heads = ("recorded", "replayed", "changed" if after else "")
    page.line(ink(f"  {'':<{NAME}}" + "".join(f"{head:>{COLUMN}}" for head in heads).rstrip(), "dim"))
    for name, *cells in rows:
        page.line(ink(f"  {name:<{NAME}}" + "".join(f"{cell:>{COLUMN}}" for cell in cells).rstrip()))


def _clock(time: str | None) -> str:
    """The time of day of a moment; the day stands at the top."""
    return "never" if time is None else neutral(time).partition("T")[2].split(".")[0].rstrip("Z")


# ---- doubts


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _trust(page: Page, told: Mapping[str, Any]) -> None:
    error, speed, traffic = told["error"], told["speed"], told["traffic"]
    page.heading("How far to trust it")
    said = []
    if error:
        said.append(
            f"Replayed with the recorded flags, usage is off by {error['usage_mean_abs']:.1%} of the pool on average over "
            f"{count(error['samples'], 'sample')} ({told['recorded']['origin']}, one every {show_seconds(error['interval_s'])})."
        )
        late = error["pressure_difference_s"]
        if late is not None:
            when = (
                "at the same sample" if not late else f"{show_seconds(abs(late))} {'later' if late > 0 else 'earlier'}"
            )
            said.append(
                f"Pressure (a full pool, or a queue at 85% of it) begins {when} than recorded."
                if late
                else f"Pressure (a full pool, or a queue at 85% of it) begins {when} as recorded."
            )
        elif error["pressure_recorded_t"] or error["pressure_replayed_t"]:
            where = "recording" if error["pressure_recorded_t"] else "replay"
            said.append(f"Pressure (a full pool, or a queue at 85% of it) shows in the {where} only.")
    parts = [
        f"a step lasts {_figure(speed['step_s'] * 1e3)} ms",
        f"{_figure(speed['per_sequence_s'] * 1e3)} ms more for each request",
    ]
    if speed["per_context_token_s"]:
        parts.append(f"{_figure(speed['per_context_token_s'] * 1e9)} ns for each token of its context")
    prompt_s = 1000 * speed["per_prompt_token_s"] + 1000**2 * speed["per_prompt_pair_s"]
    parts.append(f"{_figure(prompt_s * 1e3)} ms for a prompt of 1,000 tokens")
    spread = ""
    if speed["low"] is not None:
        spread = f"; half of what was observed lies within {speed['low']:.2f} to {speed['high']:.2f} of the fit"
    said.append(f"Speed, {neutral(speed['origin'])}: {', '.join(parts)}{spread}.")
    if traffic["time_is"] == "completion":
        said.append("The request log stamps completion; arrivals are latency earlier.")
    if traffic["offset_s"]:
        said.append(
            f"The clock of the request log was moved by {traffic['offset_s'] / 3600:+g} h to that of the server."
        )
    for sentence in said:
        page.flow(Text(), ink(sentence), indent=2)
    for title, sentences in (("Assumed", told["assumptions"]), ("Unknown", told["unknown"])):
        for sentence in sentences:
            page.flow(ink(f"  {title}:", "dim"), ink(neutral(sentence)), indent=2)
