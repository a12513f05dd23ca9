"""Whether a bundle is whole: what was cut off, where, and what that leaves of a verdict.

The end is what a cut takes, and the end is where a server fails: of a life whose end is missing nobody can say that nothing failed.
Three things show a cut: an archive or a member that ends too early (the intake says so), a log that ends in the middle of a line
(told by the form of its records), and a log that falls silent while other sources of the same server show it at work.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from oomdoc.evidence.store import Store
from oomdoc.ingest import text_log
from oomdoc.ingest.record import HEAD, peel
from oomdoc.intake.members import TAIL_BYTES
from oomdoc.model import Diagnosis, Missing, Report, Unread
from oomdoc.units import show_seconds, show_time

HEALTHY_AT_MOST = 0.5
"""Of a cut bundle: the part that is there says nothing about the part that is not."""

SILENT_S = 120.0
"""From here on a log is missing its end: a busy engine prints a line every 10 s (VLLM_LOG_STATS_INTERVAL), so a dozen are gone, and
clocks of client and server, buffers and a scrape interval of a minute are allowed for."""
_RHYTHM = 6  # lines of statistics that make a rhythm: a minute of them
_ZONE_S, _ZONE_NEAR_S = 900.0, 90.0  # zones differ by quarters of an hour: such a gap may be two clocks

LINE_KINDS = frozenset(
    {"text-log", "vllm-log", "serving-log", "request-log", "metrics", "kernel-log", "nvidia-smi", "cgroup"}
)
"""Kinds that are written line by line, so that a last line without its end was cut."""
CUT_LINE = "truncated: it ends in the middle of line {line:,}"
_LEAST_WORDS = 4  # fewer are alike by chance
_LEAST_ALIKE = 3  # records that show where a form of fewer words goes on

_PLACES = 10
_CUT = ("truncated", "damaged", "read error")
_LEFT = "the rest"


def was_cut(why: str) -> bool:
    """Whether a note of the intake says that content was lost, rather than that something is no evidence.

    >>> was_cut("truncated: ended after 3 of 9 bytes"), was_cut("PNG image of 2 KiB: no format that holds evidence")
    (True, False)
    """
    return why.startswith(_CUT) or (_LEFT in why and "not read" in why)


def missing(store: Store, unread: Iterable[Unread]) -> tuple[Missing, ...]:
    """What was cut off, and where; empty for a bundle that is whole as far as it can tell."""
    places: dict[str, dict[str, None]] = {}
    for entry in unread:
        if was_cut(entry.why):
            places.setdefault(entry.why, {})[entry.path] = None
    cut = [lost for what, where in places.items() for lost in _summed(what, list(where))]
    return (*cut, *_fell_silent(store))


def _summed(what: str, where: list[str]) -> Iterable[Missing]:
    """One entry a place; beyond a few, which a limit may leave by the thousand, one for all the others."""
    more = len(where) - _PLACES
    yield from (Missing(what, place) for place in where[: _PLACES if more > 1 else None])
    if more > 1:
        yield Missing(f"{what} (and {more - 1:,} more files)", where[_PLACES])


def judged(report: Report, lost: tuple[Missing, ...]) -> Report:
    """The report of a bundle that lacks this: never healthy, since the failure may stand in what is missing."""
    if not lost:
        return report
    incidents = tuple(replace(item, diagnoses=_capped(item.diagnoses)) for item in report.incidents)
    return replace(
        report,
        bundle=replace(report.bundle, complete=False, missing=lost),
        verdict="undecided" if report.verdict == "healthy" else report.verdict,
        diagnoses=_capped(report.diagnoses),
        incidents=incidents,
    )


def _capped(diagnoses: Sequence[Diagnosis]) -> tuple[Diagnosis, ...]:
    """The ranking with health at its most."""
    capped = [
        replace(item, probability=min(item.probability, HEALTHY_AT_MOST), own_probability=min(item.own_probability, HEALTHY_AT_MOST))
        if item.cause == "healthy"
        else item
        for item in diagnoses
    ]  # fmt: skip
    capped.sort(key=lambda item: -item.probability)
    return tuple(replace(item, rank=place) for place, item in enumerate(capped, 1))


# ---- a log that falls silent

_WORK = f"""
WITH stat AS (  -- logs with a rhythm, and the work they show
  SELECT e.source, min(e.t) FILTER (e.running > 0 OR e.generation_tokens_per_s > 0) AS first_work, count(*) AS n
  FROM engine_stat e JOIN source s ON s.source = e.source WHERE s.kind IN ('vllm-log', 'text-log') AND e.t IS NOT NULL GROUP BY 1
), ends AS (  -- the last thing that any log of an engine says
  SELECT arg_max(source, t) AS source, max(t) AS last_t, arg_max(line, t) AS line, bool_or(fails) AS failed FROM (
    SELECT source, line, t, false AS fails FROM engine_stat UNION ALL SELECT source, line, t, name IN ('shutdown', 'shutting-down', 'exit') FROM milestone
    UNION ALL SELECT source, line, t, kind NOT IN ('client', 'bad-argument') FROM log_error UNION ALL SELECT source, line, t, true FROM oom
    UNION ALL SELECT source, line, t, true FROM process_exit UNION ALL SELECT source, line, t, false FROM preemption
  ) WHERE t IS NOT NULL AND source IN (SELECT source FROM stat)
), work AS (  -- the server at work, as others saw it: not t + latency_s, since many logs give the time of the answer
  SELECT source, t, line FROM request WHERE t IS NOT NULL AND (status BETWEEN 200 AND 299 OR (status IS NULL AND output_tokens > 0))
  UNION ALL SELECT source, t, line FROM metric WHERE t IS NOT NULL AND name LIKE 'vllm:num_requests_running%' AND value > 0
), others AS (SELECT source, min(t) AS first_t, max(t) AS last_t FROM work GROUP BY source)
SELECT ends.source, ends.line, ends.last_t, ends.failed, stat.first_work, others.source AS other, others.first_t AS other_first, others.last_t AS other_last
FROM ends JOIN stat ON stat.source = ends.source AND stat.n >= {_RHYTHM}, others
WHERE others.last_t > ends.last_t + {SILENT_S} AND others.first_t < ends.last_t - {SILENT_S}
ORDER BY others.last_t DESC, others.source
"""


def _fell_silent(store: Store) -> Iterable[Missing]:
    """A log with a rhythm that ends while requests are answered or metrics show them running; one, the latest, is enough."""
    if "engine_stat" not in store.filled or not {"request", "metric"} & store.filled:
        return
    for row in store.rows_of(_WORK):
        gap = row["other_last"] - row["last_t"]
        begin = abs(row["other_first"] - (row["first_work"] or row["other_first"] - _ZONE_S))
        two_clocks = abs(gap - _ZONE_S * round(gap / _ZONE_S)) < _ZONE_NEAR_S and begin > SILENT_S
        if row["failed"] or two_clocks:
            continue
        until = show_time(row["other_last"])
        what = f"the last {show_seconds(gap)} are missing: {row['other']} shows the server at work until {until}"
        yield Missing(what, f"{row['source']}:{row['line']}")
        return


# ---- a line that was cut


def is_cut(tail: bytes) -> bool:
    """Whether the last line of these bytes, which end a source, lacks its end.

    A line without its newline may be whole: it was cut if other lines of its form go on where it ends, if it is JSON that does not
    close, a row with fewer cells than those before, or a record with a bracket or a quote left open or a word broken off.
    """
    lines = tail[-TAIL_BYTES:].decode("utf-8", "replace").split("\n")
    last = lines.pop()
    if not any(letter.isalnum() for letter in last) or len(last) > TAIL_BYTES // 4:
        return False  # blanks, or the brackets that end a document
    if last.lstrip()[:1] == "{":
        try:
            json.loads(last)
        except (ValueError, RecursionError):
            return True
        return False
    before = [line.rstrip("\r") for line in lines if line.strip()]
    cells = {line.count(",") for line in before[-3:]}
    if len(before) >= 2 and len(cells) == 1 and max(cells) >= 2 and last.count(",") < max(cells):
        return True
    text = peel(last)[0]
    headed = HEAD.search(text) is not None or 'File "' in text
    if not before and not headed:
        return False  # the only line: a name or a command, not a log
    goes_on = _goes_on(last, before)
    if goes_on is None:
        goes_on = _goes_on(text, _samples())
    if goes_on is not None:
        return goes_on
    return headed and (_is_open(text) or _breaks_off(text, before))


def _goes_on(last: str, forms: Iterable[str]) -> bool | None:
    """Whether a line is the beginning of a form that others have whole; False where one ends as it ends, None for a form of its own."""
    words = last.split()
    if not words:
        return None
    known, tip = [_form(word) for word in words[:-1]], words[-1]
    short = len(words) < _LEAST_WORDS
    longer = 0
    for line in forms:
        other = line.split()
        if len(other) < len(words) or [_form(word) for word in other[: len(known)]] != known:
            continue
        there = other[len(known)]
        if len(other) == len(words) and _form(there) == _form(tip) and (_form(there) != "#" or _ends_alike(tip, there)):
            return False
        goes_on = _form(there) == _form(tip) or there.startswith(tip) or _form(there) == "#"
        longer += goes_on and (not short or HEAD.search(line) is not None)
    return True if longer >= (_LEAST_ALIKE if short else 1) else None


def _ends_alike(one: str, other: str) -> bool:
    """Whether two words with figures end in the same kind of sign: `3.5%` and `12.0%`, not `3.` and `12.0%`."""
    return one[-1:] == other[-1:] or (
        one[-1:].isalnum() and other[-1:].isalnum() and one.count(".") == other.count(".")
    )


def _form(word: str) -> str:
    """A word as its form has it: one with a figure may be any."""
    return "#" if any(letter.isdigit() for letter in word) else word


def _is_open(text: str) -> bool:
    """Whether brackets or quotes are left open."""
    return (
        any(text.count(opening) > text.count(closing) for opening, closing in ("()", "[]", "{}"))
        or text.count('"') % 2 == 1
    )


def _breaks_off(text: str, before: Sequence[str]) -> bool:
    """Whether the last word is none, but the beginning of one that the log or a known message has."""
    tip = text.split()[-1] if text.split() else ""
    if not tip.isalpha():
        return False
    words = {word.strip(".,:;()[]'\"") for line in (*before, *_samples()) for word in line.split()}
    return tip not in words and any(word.startswith(tip) for word in words)


def _samples() -> Iterable[str]:
    """The messages that are known, whole."""
    return (str(line) for pattern in text_log.PATTERNS for line, _ in pattern.samples)
