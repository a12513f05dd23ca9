"""What the first lines of a text show about all of it: whose log a collector says it is, in which zone it was written, since when it tells."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

from oomdoc.ingest.base import TEXT_CAP
from oomdoc.ingest.host_events.rows import boot_free_time
from oomdoc.ingest.record import HEAD, TAG, Clock, decode, peel, read_record, utc
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex
from oomdoc.units import parse_time

KERNEL_LINE = regex(r"\[ *\d+\.\d{3,6}\]|\[[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d \d{4}\]|.{0,60}\bkernel: ")
"""How lines of a kernel begin: seconds since boot, the stamp of `dmesg -T`, a journal that names the kernel."""
_KERNEL_HEAD = 12  # lines at the beginning that show whose log it is
_TOLD_DAYS = regex(rb"(?<![\w-])20\d\d-\d\d-\d\d(?![\w-])")
_TICKET_LINES = 60
"""A ticket, a mail or a diary is shorter than a log."""
_PODS = 4  # replicas whose lines one export mixes; a whole namespace has more
_ENVELOPES = 40  # lines at the beginning that show what collected them


def facts_of(chunk: Chunk) -> Iterator[dict[str, Any]]:
    """Rows of `note`, without their place, that the first chunk of a text gives: `kernel-log-from`, `told-day`, `log-of-pod`, `log-zone`."""
    lines = [
        decode(line[:TEXT_CAP]) for line in chunk.data[: _ENVELOPES * TEXT_CAP].split(b"\n", _ENVELOPES)[:_ENVELOPES]
    ]
    yield from _kernel_begins([line for line in lines[:_KERNEL_HEAD] if line.strip()])
    days = _TOLD_DAYS.findall(chunk.data) if b"emory" in chunk.data and chunk.data.count(b"\n") <= _TICKET_LINES else []
    if days and not any(HEAD.search(line) for line in lines):
        day = parse_time(f"{max(days).decode()} 00:00:00")
        if day is not None:
            yield {"topic": "told-day", "value": day, "text": max(days).decode()}
    lines += [decode(line[:TEXT_CAP]) for line in chunk.data[-4 * TEXT_CAP :].split(b"\n")[1:]]
    whose = {of_pod(line) for line in lines if line.strip()}
    if None not in whose and len(whose) <= _PODS:
        yield from ({"topic": "log-of-pod", "text": pod} for pod in sorted(pod for pod in whose if pod))
    # the engine stamps in the zone of its container, a collector in UTC: what else is taken on the host is in the former
    # every record of the engine names the file that wrote it: of a text without one no line is unwrapped
    ahead = {zone for line in lines if (zone := zone_ahead(line)) is not None} if b".py:" in chunk.data else set()
    if len(ahead) == 1 and (offset := ahead.pop()):
        yield {"topic": "log-zone", "value": offset, "text": "a collector's clock less the engine's own"}


def _kernel_begins(lines: list[str]) -> Iterator[dict[str, Any]]:
    """The moment from which a kernel log tells: of what was before it tells nothing."""
    if sum(1 for line in lines if KERNEL_LINE.match(line)) * 2 <= len(lines):
        return
    for line in lines:
        t = boot_free_time(line) or read_record(1, line, Clock()).t
        if t is not None:
            yield {"topic": "kernel-log-from", "value": t, "text": line[:TEXT_CAP]}
            return


_OF_POD = regex(r"(?:\d{4}-\d\d-\d\d[T ][\d:.]{8,18}\S{0,6} )?\[pod/(?P<pod>[\w.-]+)/[\w.-]+\] ")
_POD_KEY = regex(
    r"\"(?:pod|pod_name|k8s_pod_name|kubernetes\.pod_name|kubernetes_pod_name)\": ?\"(?P<pod>[a-z0-9][a-z0-9.-]{1,250})\""
)


def of_pod(line: str) -> str | None:
    """The pod that a collector names beside a line; None where it names none.

    >>> of_pod('{"ts": "x", "pod": "llm-0", "message": "hi"}'), of_pod("[pod/llm-0/vllm] hi"), of_pod("hi")
    ('llm-0', 'llm-0', None)
    """
    found = _OF_POD.match(line) or (_POD_KEY.search(line) if line[:1] == "{" else None)
    return found["pod"] if found else None


_QUARTER_S = 900.0
_DELAY_S = 60.0
"""A collector stamps what it has just read: some seconds after it was written."""


def zone_ahead(line: str) -> float | None:
    """Seconds by which a collector's stamp is ahead of the engine's own in one line, in whole quarters of an hour; None without both.

    >>> zone_ahead("2026-03-03T14:03:08.04Z INFO 03-03 08:03:08 [core.py:805] hi"), zone_ahead("2026-03-03T14:03:08Z hi")
    (21600.0, None)
    """
    if line[:1] in ("", " ", "(") or HEAD.match(line):
        return None  # nothing stands before the engine's own words
    text, outer, _ = peel(line)
    for _ in range(4):
        tag = TAG.match(text)
        if tag is None:
            break
        text = text[tag.end() :]
    head = HEAD.match(text)
    if outer is None or head is None or not head["mon"]:
        return None
    year = dt.datetime.fromtimestamp(outer, dt.UTC).year
    own = utc(year, *(int(head[name]) for name in ("mon", "day", "h", "m", "s")))
    if own is None:
        return None
    apart = round((outer - own) / _QUARTER_S) * _QUARTER_S
    return apart if abs(outer - own - apart) <= _DELAY_S else None
