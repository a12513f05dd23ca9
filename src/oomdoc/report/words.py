"""How reports word what is uncertain, write flags to paste, and make text from a bundle harmless.

Evidence is text that somebody else wrote: it may hold colour codes, cursor movements, line breaks or marks that turn
the writing direction. Nothing from a bundle reaches a terminal except through `neutral`. Pure functions, no rich.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from oomdoc.model import Action, Diagnosis, Impact, Incident, Report
from oomdoc.regexes import regex
from oomdoc.units import count as count
from oomdoc.units import factor as factor
from oomdoc.units import likelihood as likelihood
from oomdoc.units import percent as percent
from oomdoc.units import show_moment, show_seconds

_COLOUR = regex(r"\x1b\[[0-9;:]*m")
_UNSAFE = regex(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
QUOTING = frozenset({"document", "chat", "source-code", "configuration"})
"""Kinds of sources in which a message is a quotation (`ingest.text_form`): what they quote happened to nobody here."""
_PLACEHOLDER = regex(r"\{(\w+)[^{}]*\}")


def neutral(text: str) -> str:
    r"""One line that no terminal acts on: colours dropped, blanks collapsed, every other control made visible.

    C0 controls become their pictures, C1 controls, direction marks, invisible characters and half surrogates their code
    point.

    >>> neutral("\x1b[31mred\x1b[0m\tand\nblue"), neutral("a\x1b]0;title\x07"), neutral("abc\u202ecba")
    ('red and blue', 'a␛]0;title␇', 'abc<U+202E>cba')
    """
    return neutral_line(re.sub(r"\s+", " ", text)).strip()


def neutral_line(text: str) -> str:
    r"""The same for a line whose blanks matter: tabs become four spaces, nothing is collapsed.

    >>> neutral_line("  a\tb\r")
    '  a    b␍'
    """
    return _UNSAFE.sub(_visible, _COLOUR.sub("", text).replace("\t", "    "))


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"<U+{code:04X}>"


UNCOLLECTED_SHOWN = 2
_WEIGHTIEST = (
    "collection",
    "server process",
    "output of process",
    "kernel log",
    "nvidia-smi",
    "memory group",
    "environment of process",
)
"""What a diagnosis lacks most, by how the collector begins its line: the log, then the kernel's word, then the devices."""


def uncollected(report: Report) -> str | None:
    """What the collector could not have and how to get it, the first of them; None where it had all, or nothing is known of it."""
    lacks = report.coverage.uncollected
    if not lacks:
        return None
    ranks = {begin: rank for rank, begin in enumerate(_WEIGHTIEST)}
    ordered = sorted(
        lacks, key=lambda item: next((rank for begin, rank in ranks.items() if item.what.startswith(begin)), len(ranks))
    )
    said = "; ".join(f"{item.what} ({item.why})" for item in ordered[:UNCOLLECTED_SHOWN])
    names = ", ".join(item.what for item in ordered[UNCOLLECTED_SHOWN:])
    return said + (f"; also {names}" if names else "")


def flag(name: str, value: Any) -> str:
    r"""An engine setting as it is pasted into a command line, quoted for a shell; capitals are environment variables.

    >>> flag("max_num_seqs", 25), flag("enforce_eager", True), flag("enable_prefix_caching", False)
    ('--max-num-seqs 25', '--enforce-eager', '--no-enable-prefix-caching')
    >>> flag("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"), flag("hf_overrides", {"a": 1})
    ('PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True', '--hf-overrides \'{"a": 1}\'')
    """
    name = neutral(name)
    if name.isupper():
        return f"{name}={shlex.quote(_value(value))}"
    option = "--" + name.lstrip("-").replace("_", "-")
    if value is True:
        return option
    if value is False:
        return "--no-" + option[2:]
    if value is None:
        return f"(leave out {option})"
    return f"{option} {shlex.quote(_value(value))}"


def factor_of(odds: float) -> str:
    """A factor of the odds as it is written.

    >>> factor_of(15.2), factor_of(0.5)
    ('×15', '÷2.0')
    """
    return factor(math.log(odds)) if odds > 0 else "="


def paste_lines(changes: Mapping[str, Any], was: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The flags of an action with a comment that tells the present value where it is known."""
    return [
        (flag(name, value), f"# was {neutral(_value(was[name]))}" if was.get(name) is not None else "")
        for name, value in changes.items()
    ]


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.10g}"
    return neutral(value if isinstance(value, str) else json.dumps(value, default=str))


def moment(time: float | str | None) -> str:
    """A time for people (`units.show_moment`), harmless where it is a bundle's text.

    >>> moment("2026-11-20T20:04:51Z"), moment(None)
    ('2026-11-20T20:04:51Z', 'time unknown')
    """
    return neutral(show_moment(time))


def cells(amounts: Sequence[float], width: int, whole: float) -> list[int]:
    """Cells of a stacked bar of `width` for amounts of `whole`: by largest remainder, at least one for any amount.

    >>> cells([34.0, 36.0, 0.1, 9.9], 40, 80.0), cells([150.0], 10, 80.0)
    ([17, 18, 1, 4], [10])
    """
    whole = max(whole, sum(amount for amount in amounts if amount > 0))
    if whole <= 0 or width <= 0:
        return [0] * len(amounts)
    exact = [max(amount, 0.0) / whole * width for amount in amounts]
    counts = [max(int(share), 1 if share > 0 else 0) for share in exact]
    goal = round(sum(exact))
    while sum(counts) < goal:
        counts[max(range(len(exact)), key=lambda i: exact[i] - counts[i])] += 1
    while sum(counts) > max(goal, sum(1 for share in exact if share > 0)):
        candidates = [i for i in range(len(counts)) if counts[i] > 1]
        counts[min(candidates, key=lambda i: exact[i] - counts[i])] -= 1
    return counts


def spark(values: Sequence[float], width: int) -> str:
    """A line of blocks for a series of amounts >= 0; more values than cells are told by the highest of each cell.

    >>> spark([0, 1, 2, 4, 8], 5), spark([1, 8, 2, 4], 2)
    (' ▁▂▄█', '█▄')
    """
    top = max(values, default=0.0)
    if top <= 0 or width <= 0:
        return ""
    count = min(width, len(values))
    tall = [
        max(values[i * len(values) // count : max((i + 1) * len(values) // count, i * len(values) // count + 1)])
        for i in range(count)
    ]
    return "".join(" ▁▂▃▄▅▆▇█"[math.ceil(value / top * 8)] for value in tall)


def trace(values: Sequence[float | None], width: int, top: float) -> str:
    """A series as blocks from the lowest (zero) to the full one (`top`); the highest of each cell, blank where nothing is known.

    >>> trace([0, None, None, 4, 8], 5, 8), trace([1, 8, None, None], 2, 8)
    ('▁  ▄█', '█ ')
    """
    count = max(min(width, len(values)), 1)
    told = ""
    for cell in range(count):
        begin, end = (
            cell * len(values) // count,
            max((cell + 1) * len(values) // count, cell * len(values) // count + 1),
        )
        known = [value for value in values[begin:end] if value is not None]
        full = min(max(known) / top, 1.0) if known and top > 0 else 0.0
        told += "▁▂▃▄▅▆▇█"[max(math.ceil(full * 8) - 1, 0)] if known else " "
    return told


def blank_placeholders(sentence: str) -> str:
    """A rule's sentence before any bundle: `{share:.0%}` reads `<share>`."""
    return _PLACEHOLDER.sub(r"<\1>", sentence)


def gravest(report: Report) -> Incident | None:
    """The incident whose ranking is the report's own."""
    for incident in report.incidents:
        if incident.diagnoses == report.diagnoses:
            return incident
    return report.incidents[0] if report.incidents else None


WHEN = {"now": "now", "after-load-test": "after a load test"}


def until_then(item: Diagnosis) -> Action | None:
    """What to do now, where the first action waits for a load test."""
    return next((action for action in item.actions if action.id == item.until_then), None)


def cost(impact: Impact) -> str:
    """What an incident cost, in words; empty where nothing is known."""
    said = []
    if impact.down_s is not None:
        said.append(f"{show_seconds(impact.down_s)} without service (back at {neutral(impact.back_ref or '')})")
    if impact.restarts:
        said.append(count(impact.restarts, "start") + " after it")
    if impact.requests_lost:
        said.append(count(impact.requests_lost, "request") + " lost")
    if impact.preemptions:
        said.append(count(impact.preemptions, "preemption"))
    return ", ".join(said)


def changes(action: Action) -> list[tuple[str, str, str, str]]:
    """Per flag of an action: its name, the old value, the new one, and what is pasted; empty old value = not known."""
    told = []
    for name, value in action.changes.items():
        was = action.was.get(name)
        shown = neutral(name) if name.isupper() else "--" + neutral(name).lstrip("-").replace("_", "-")
        told.append(
            (
                shown,
                "" if was is None else _value(was),
                "(leave out)" if value is None else _value(value),
                flag(name, value),
            )
        )
    return told


def incomplete(report: Report) -> str:
    """What a bundle lacks, as one sentence; "" where it is whole."""
    if report.bundle.complete:
        return ""
    first, *more = report.bundle.missing
    rest = f" (and {count(len(more), 'more gap')})" if more else ""
    return f"{first.where}: {first.what}{rest}"
