"""What is told of a server from outside of its logs, at a time that a note or a description gives."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from datetime import UTC, datetime

from oomdoc.regexes import regex
from oomdoc.scene.lives import SEEN_S, Life, Server, in_year_of, long_before, zone_apart
from oomdoc.scene.lookups import rows_of
from oomdoc.scene.owner import BEFORE_S, FOREIGN, Bond, Row, of_pod
from oomdoc.scene.presence import Tables
from oomdoc.units import parse_time, show_seconds

BACK_OFF_S = 600.0
"""The kubelet waits five minutes at most before it starts a container again; pulling an image and the first line take as long."""


def life_that_ended(row: Row, server: Server) -> Life | None:
    """The life whose log breaks off in a start, of which a container's last status tells: `exit_code`, `ended_t`, `serves`. None where none is.

    By the time, of another zone's clock where none fits; where no log is of that time, the last start of the only log: the one that ended before it began alike.
    """
    if row["serves"] is False or row["exit_code"] is None or not 0 < row["exit_code"] < 128:
        return None
    broken = [life for life in server.lives if life.end == "open" and not life.served]
    ended = row["ended_t"]
    near = [
        life for life in broken
        if ended and life.end_t is not None and -BEFORE_S <= in_year_of(ended, life.end_t) - life.end_t <= SEEN_S
    ]  # fmt: skip
    # a supervisor tells UTC, and a log the time of its container: whole half hours lie between them
    near = near or [
        life for life in broken if ended and life.end_t is not None and zone_apart(in_year_of(ended, life.end_t), life)
    ]
    if near:
        return max(near, key=lambda life: life.end_t or 0.0)
    # a container that is started again and again ends as the start did that follows its last end
    again = [
        life for life in broken
        if ended and row["restarts"] and life.begin_t is not None and 0 <= life.begin_t - in_year_of(ended, life.begin_t) <= BACK_OFF_S
    ]  # fmt: skip
    if len(again) == 1:
        return again[0]
    if len(broken) < len(server.lives) or len({life.source for life in broken}) != 1:
        return None
    return broken[-1]


_ALIKE = 40
"""Characters that a message and its repetition have in common: beyond the name of an exception and a first word."""

_DAY = regex(r"[^\w]{0,4}(?P<day>\d{4}-\d\d-\d\d)(?![\dT:-])(?! ?\d\d:)")


def of_dated(row: Row, server: Server, latest: float | None) -> Bond | None:
    """A failure that a note tells, beginning with a day and no time of it: `text`. None where it may be of a day on which the server ran.

    People keep a diary: what was solved last week stands above what happens today. Of a text that names days elsewhere the `latest`
    counts, where the server came up and shows no failure: a ticket of months ago that somebody handed in beside it.
    """
    found = _DAY.match(row["text"] or "")
    up = server.came_up or _never_failed(server)
    day = parse_time(f"{found['day']} 00:00:00") if found else latest if up else None
    before = None if day is None else long_before(day, server.lives)
    return None if before is None else Bond(FOREIGN, f"told of a day {show_seconds(before)} before this server started")


_MONTHS = {
    name: at
    for at, names in enumerate((
        "January Januar Jänner janvier enero janeiro gennaio", "February Februar février febrero fevereiro febbraio", "March März mars marzo março",
        "April avril abril aprile", "May Mai mayo maio maggio", "June Juni juin junio junho giugno", "July Juli juillet julio julho luglio",
        "August août agosto", "September septembre septiembre setembro settembre", "October Oktober octobre octubre outubro ottobre",
        "November novembre noviembre novembro", "December Dezember décembre diciembre dezembro dicembre",
    ), 1)
    for name in names.split()
}  # fmt: skip
"""In English, German, French, Spanish, Portuguese and Italian, as they are written: `in May` is a month, and `may` is none."""
_IN_MONTH = regex(rf"\b(?:[Ii]n|[Ii]m|[Ee]n|[Ee]m|[Ll]ast|[Ll]etzten) (?P<month>{'|'.join(_MONTHS)})\b")
_TELLABLE_S = 300 * 86400.0
"""Logs of more time hold nearly every month."""
_SENTENCE = regex(
    r"(?:.*[.!?;]\s+)?(?P<last>[^.!?;]{10,400}?)(?=\(?[\w.]*(?:OutOfMemory|out[ _]of[ _]memory|Tried to allocate))",
    re.IGNORECASE,
)


def of_another_month(row: Row, server: Server) -> Bond | None:
    """A failure that a sentence tells of another month: `text`. None where it may be of a time that the server's own logs tell."""
    told = _SENTENCE.match(row["text"] or "")
    spans = [(life.begin_t, life.end_t) for life in server.lives if life.begin_t is not None and life.end_t is not None]
    if told is None or not spans or not any(life.begun for life in server.lives):
        return None
    begin, end = min(one for one, _ in spans), max(one for _, one in spans)
    named = _IN_MONTH.search(told["last"])
    if named is None or end - begin > _TELLABLE_S:
        return None
    month = _MONTHS[named["month"]]
    first, last = (datetime.fromtimestamp(at, UTC).month for at in (begin, end))
    covered = first <= month <= last if first <= last else month >= first or month <= last
    if covered:
        return None
    return Bond(FOREIGN, f"told of another month than those of the server's own logs ({named['month']})")


_QUOTED = regex(
    r"\W{0,8}\w+\W+\w+[^\"“„«»「『`]{0,300}[\"“„«»「『`](?=[^\"”“«»」』`]{0,200}out[ _]?of[ _]?memory)", re.IGNORECASE
)
"""Words, then a quotation that says that memory ran out, in whatever marks."""


def is_quoted(text: str | None) -> bool:
    """Whether a message stands between quotation marks, with words of a sentence before it.

    >>> is_quoted('- In May it ended with "CUDA out of memory. Tried to allocate 2 GiB".'), is_quoted("RuntimeError: CUDA out of memory")
    (True, False)
    """
    return bool(text and _QUOTED.match(text))


def of_quoted(row: Row, server: Server) -> Bond | None:
    """A message that a sentence quotes, in a text that is no log: `text`. None where it may be what became of this server.

    Who writes of an earlier failure quotes it in the middle of a sentence; what somebody met just now is pasted on lines of its own. Where the
    server's own log tells whole lives that came up and none that failed, it would hold the message if it were of one of them.
    """
    if not is_quoted(row["text"]) or not _never_failed(server):
        return None
    return Bond(FOREIGN, "quoted in a sentence, and no life that the server's own log tells met it")


_LOWERED = regex(r"(?<![\d.])(?P<old>0?\.\d{1,3})(?![\d%]).{1,60}?(?<![\d.])(?P<new>0?\.\d{1,3})(?![\d%])")
_ANSWER_LINES = 3
"""A message stands in the sentence that tells of it, or is pasted right below."""


def answered(store: Tables) -> set[tuple[str, int]]:
    """Lines on which a text tells a failure, and that its share of the device was lowered to the one in force: what failed was an earlier start.

    >>> _LOWERED.search("we went from 0.97 to 0.90 because of it").groups(), _LOWERED.search("with 0.98 (0.93 since May)").groups(), _LOWERED.search("at 0.9 of 24.5 GB")
    (('0.97', '0.90'), ('0.98', '0.93'), None)
    """
    shares = rows_of(store, "engine_flag", "DISTINCT value", "flag = 'gpu_memory_utilization' AND origin = 'logged'")
    if len(shares) != 1:
        return set()
    lines: set[tuple[str, int]] = set()
    for row in rows_of(store, "note", "source, line, text", "topic IN ('failure-told', 'oom-told')"):
        found = _LOWERED.search(row["text"] or "")
        if found and float(found["old"]) > float(found["new"]) == _share(shares[0]["value"]):
            lines |= {(row["source"], row["line"] + more) for more in range(_ANSWER_LINES)}
    return lines


def _share(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def of_answered(row: Row, server: Server, lines: Set[tuple[str, int]]) -> Bond | None:
    """A failure that is told of a start with more of the device (`lines`, see `answered`), where no start that the server's own log tells failed."""
    if (row["source"], row["line"]) not in lines or not _never_failed(server):
        return None
    return Bond(FOREIGN, "told of a start with a larger share of the device than the one in force")


def alike(text: str | None) -> str:
    """What a message and its repetition have in common; empty where it is too short to tell one message from another.

    >>> alike("Waited for 60 seconds on a worker that may compile."), alike("failed")
    ('waited for 60 seconds on a worker that m', '')
    """
    return text.lower()[:_ALIKE] if text and len(text) >= _ALIKE else ""


def said_by(logs: Set[str], store: Tables, table: str, where: str = "true") -> dict[str, str]:
    """What these logs say themselves in rows of a table: place by message, as `alike` has it; each message of a log once, however often it came."""
    rows = rows_of(store, table, "source, text, min(line) AS line", f"{where} GROUP BY source, text")
    own = ((alike(row["text"]), f"{row['source']}:{row['line']}") for row in rows if row["source"] in logs)
    return {key: ref for key, ref in own if key}  # what is too short tells no message from another


def of_outlived(row: Row, server: Server, said: Mapping[str, str]) -> Bond | None:
    """A message that a text tells and that the server's own log holds as well: `text`. None where it may be what became of this server.

    `said`: what its logs say, see `said_by`. Who asks about a warning repeats it: it is the same event, and the log tells what became of it.
    """
    key = alike(row["text"])
    if not key or key not in said or not _never_failed(server):
        return None
    return Bond(FOREIGN, f"the same message as in {said[key]}, which the server outlived")


_NAMED_POD = regex(r"(?<![\w/])pods?/(?P<pod>[a-z0-9][a-z0-9.-]{1,250}[a-z0-9])(?![\w/])")


def of_named_pod(row: Row, server: Server) -> Bond | None:
    """A failure on a line that says whose pod it was: `text`. None where it names none, or one that may be the server's.

    An event that somebody noted down has the object in it, and in brackets what became of it.
    """
    named = _NAMED_POD.search(row["text"] or "")
    bond = of_pod(named["pod"], None, server, f"told of pod {named['pod']}") if named else None
    return bond if bond is not None and bond.whose == FOREIGN else None


_OF_CLIENT = regex(
    r"(?i)\bconnect(?:ion)?(?: ?error| attempts?)?\b.{0,60}\b(?:refused|reset|closed|failed)\b|\bremote end closed connection\b|\bserver disconnected\b|\bmax retries exceeded\b|\bread timed out\b|\bread ?timeout\b"
)


def is_of_client(text: str | None) -> bool:
    """Whether a message is that of somebody who could not reach a server, or lost it.

    >>> is_of_client("ConnectError: [Errno 111] Connection refused (llm:8000)"), is_of_client("NCCL error: unhandled system error")
    (True, False)
    """
    return bool(text and _OF_CLIENT.search(text))


def _never_failed(server: Server) -> bool:
    """Whether the server's own logs tell starts, each of which came up and none of which failed; a text that holds a failure alone tells no start."""
    whole = [life for life in server.lives if life.begun]
    return bool(whole) and all(life.served and life.end not in ("failed", "killed") for life in whole)
