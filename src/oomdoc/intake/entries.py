"""Entries of a log out of the documents and streams that collectors put them in: one a line, oldest first.

Documents are held whole, so those beyond `DOCUMENT_CAP_BYTES` (of lines: `LINES_CAP_BYTES`) stay as they are, and `note` is told.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, cast

from oomdoc.intake.cells import month_first
from oomdoc.intake.scan import Chunk, chunks, whole
from oomdoc.regexes import regex
from oomdoc.units import epoch_of, parse_time, show_bytes

DOCUMENT_CAP_BYTES = 12 << 20  # hostile JSON takes 25 times its size; Grafana stops at 5,000 lines, Loki's API too
LINES_CAP_BYTES = 64 << 20  # `logcli -o jsonl`, CloudWatch Insights (10,000 lines)
_FRACTION = regex(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)[.,](\d{1,9})\d*(.*)")
_MESSAGE_KEYS = ("line", "message", "textPayload", "log", "@message", "_raw")
_TIME_KEYS = ("timestamp", "time", "@timestamp", "ts", "date", "_time")
Note = Callable[[str], None]


# ---- `journalctl -o export`

_PIECES_CAP_BYTES = 4 << 20  # of one line that was cut: what `scan` holds of a line at most


def journal_export(pieces: Iterable[Chunk], note: Note) -> Iterator[Chunk]:
    """`journalctl -o export`: fields a line each, an empty line after an entry; binary fields have a length of eight bytes."""
    rest, line, waiting = b"", 1, b""
    for chunk in pieces:
        rest += chunk.data
        end = rest.rfind(b"\n\n__") + 2  # an empty line inside a message begins no entry
        if end < 2 and len(rest) < _PIECES_CAP_BYTES:
            continue
        ready, rest = (rest[:end], rest[end:]) if end >= 2 else (rest, b"")
        if waiting:
            yield Chunk(waiting, line, True)
            line += waiting.count(b"\n")
        waiting = _exported(ready)
    last = waiting + (_exported(rest) if rest else b"")
    if last:  # together: the last entry may be what a message before it goes on with
        yield Chunk(last, line, True)


def _exported(data: bytes) -> bytes:
    out: list[bytes] = []
    at = 0
    fields: dict[bytes, bytes] = {}
    while at < len(data):
        stop = data.find(b"\n", at)
        stop = len(data) if stop < 0 else stop
        line = data[at:stop]
        name, equals, value = line.partition(b"=")
        if not equals and line.isupper() and stop + 9 <= len(data):
            size = int.from_bytes(data[stop + 1 : stop + 9], "little")
            if size <= len(data) - stop - 9:
                value = data[stop + 9 : stop + 9 + size]
                stop += 9 + size
        if line:
            fields[name] = value
        else:
            out.append(_entry(fields))
            fields = {}
        at = stop + 1
    out.append(_entry(fields))
    return b"".join(out)


def _entry(fields: dict[bytes, bytes]) -> bytes:
    """An entry as `-o short-iso` would print it, each line of its message with the head; empty where it has none."""
    stamp, message = fields.get(b"__REALTIME_TIMESTAMP", b""), fields.get(b"MESSAGE")
    if message is None or not stamp.isdigit() or len(stamp) > 18:
        return b""
    who = fields.get(b"SYSLOG_IDENTIFIER") or fields.get(b"_COMM") or b"unknown"
    pid = fields.get(b"_PID") or fields.get(b"SYSLOG_PID")
    head = b"%s %s %s%s: " % (
        _iso(int(stamp) / 1e6).encode(),
        fields.get(b"_HOSTNAME", b"host").replace(b" ", b"_"),
        who.replace(b" ", b"_"),
        b"[%s]" % pid if pid else b"",
    )
    return b"".join(head + part + b"\n" for part in message.split(b"\n"))


def _iso(t: float) -> str:
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=round(t * 1e6))
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond:06d}Z"


# ---- documents: lines of their own, oldest first

Entries = Iterator[tuple[int | None, str]]
"""Nanoseconds since 1970 and text: as seconds in a float, lines within 200 ns of each other would be of one moment."""


def document(
    read: Callable[[bytes], Entries], newest_first: bool = False, cap: int = DOCUMENT_CAP_BYTES
) -> Callable[[Iterable[Chunk], Note], Iterator[Chunk]]:
    """Undo a document with the entries that `read` finds in it; as it is where it is too large, damaged or without any.

    `newest_first` is the tool's default, for documents of a single moment.
    """

    def undo(pieces: Iterable[Chunk], note: Note) -> Iterator[Chunk]:
        first, rest = whole(pieces, cap)
        if rest is not None:
            note(f"one document of more than {show_bytes(cap)}: its lines were read as they stand, in its own order")
            yield from first
            yield from rest
            return
        lines = _ordered(read, newest_first, b"".join(chunk.data for chunk in first))
        if not lines:
            note("looks like a document of log entries and could not be read as one: its lines were read as they stand")
        yield from chunks(cast(BinaryIO, io.BytesIO(lines))) if lines else first

    return undo


def _ordered(read: Callable[[bytes], Entries], newest_first: bool, data: bytes) -> bytes:
    try:
        entries = list(read(data))
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError, MemoryError, csv.Error):
        return b""
    known = [t for t, _ in entries if t is not None]
    if known and (known[0] > known[-1] or (newest_first and known[0] == known[-1])):
        entries.reverse()  # before sorting, so that entries of one moment come as they were written
    last = 0
    timed = []
    for t, text in entries:
        last = t if t is not None else last
        timed.append((last, t, text))
    timed.sort(key=lambda entry: entry[0])
    out = []
    for _, t, text in timed:
        stamp = _iso(t / 1e9) + " " if t is not None else ""
        out += [f"{stamp}{part}\n" for part in text.rstrip("\r\n").split("\n")]
    return "".join(out).encode("utf-8", "replace")


def loki_lines(data: bytes) -> Entries:
    """`logcli query -o jsonl`, or entries that lie within an object of each line (Datadog's `attributes`, Elasticsearch's `_source`, Splunk's `result`)."""
    for line in data.decode("utf-8", "replace").split("\n"):
        if line.strip():
            yield from _one(json.loads(line))


def loki(data: bytes) -> Entries:
    """The answer of Loki's query API: streams with values [nanoseconds, line]."""
    value = json.loads(data)
    inner = value.get("data", value)
    streams = inner.get("result") or inner.get("streams") or []
    for stream in streams:
        for entry in stream["values"]:
            if isinstance(entry[1], str):
                yield _nanoseconds(entry[0]), _by_pod(stream.get("stream") or stream.get("labels"), entry[1])


def _by_pod(labels: Any, text: str) -> str:
    """The text with its pod before each line, as `kubectl logs --prefix` would print it: streams of several pods are mixed."""
    pod = labels.get("pod") if isinstance(labels, dict) else None
    if not isinstance(pod, str) or not re.fullmatch(r"[\w.-]{1,253}", pod):
        return text
    container = labels.get("container")
    inner = container if isinstance(container, str) and re.fullmatch(r"[\w.-]{1,63}", container) else "-"
    return "\n".join(f"[pod/{pod}/{inner}] {part}" for part in text.rstrip("\r\n").split("\n"))


def listed_entries(data: bytes) -> Entries:
    """An array of entries (Grafana, `gcloud logging read`), or one under `events` (`aws logs`)."""
    value = json.loads(data)
    rows = value.get("events", []) if isinstance(value, dict) else value
    if any("token" in key for row in rows[:1] for key in row):
        return  # a request log
    for row in rows:
        yield from _one(row)


_WITHIN = ("attributes", "_source", "result", "content")
_POD_TAG = regex(r"(?:pod_name|kube_pod|pod):(?P<pod>[\w.-]{1,253})$")


def _labels_of(row: dict[str, Any]) -> Any:
    """Labels that name the pod: as they are, out of a list of tags, or of what a shipper adds."""
    tags = row.get("tags") or row.get("ddtags")
    listed = tags.split(",") if isinstance(tags, str) else tags if isinstance(tags, list) else ()
    pod = next((found["pod"] for tag in listed if isinstance(tag, str) and (found := _POD_TAG.match(tag))), None)
    if pod is None and isinstance(shipped := row.get("kubernetes"), dict):
        inner = shipped.get("pod")
        pod = shipped.get("pod_name") or (inner.get("name") if isinstance(inner, dict) else None)
    return {"pod": pod} if pod else row.get("labels")


_COUNTED = regex(r"_tokens\": ?\d")


def _one(row: dict[str, Any]) -> Entries:
    if not any(isinstance(row.get(key), str) for key in _MESSAGE_KEYS):
        row = next((row[key] for key in _WITHIN if isinstance(row.get(key), dict)), row)
    text = next((row[key] for key in _MESSAGE_KEYS if isinstance(row.get(key), str)), None)
    inner: dict[str, Any] = next((row[key] for key in _WITHIN if isinstance(row.get(key), dict)), {})
    if text is not None and _COUNTED.search(json.dumps(inner)):
        text = json.dumps({"message": text, **inner}, ensure_ascii=False)  # what a gateway tells of a request
    if text is not None:
        stamps = (_nanoseconds(row[key]) for key in _TIME_KEYS if key in row)
        yield next((stamp for stamp in stamps if stamp is not None), None), _by_pod(_labels_of(row), text)


def _nanoseconds(value: Any) -> int | None:
    """Exact nanoseconds since 1970 of a number in any unit or of ISO 8601; None for anything else.

    >>> _nanoseconds("Nov 20, 2026 @ 20:04:51.500")
    1795205091500000000
    >>> _nanoseconds("1795205091500000123"), _nanoseconds("2026-11-20T20:04:51.500000123Z"), _nanoseconds(1795205091.5)
    (1795205091500000123, 1795205091500000123, 1795205091500000000)
    """
    seconds = epoch_of(value)
    if seconds is not None:
        if isinstance(value, float) or not str(value).isdigit():
            return round(seconds * 1e9)
        number = int(value)
        while number < 10**18:  # seconds, milli- or microseconds
            number *= 1000
        return number
    if not isinstance(value, str):
        return None
    parts = _FRACTION.fullmatch(value.strip())
    whole = parse_time(parts[1] + parts[3]) if parts else None
    if parts and whole is not None:
        return round(whole) * 10**9 + int(parts[2].ljust(9, "0"))
    if named := month_first(value):
        return _nanoseconds(named)
    moment = parse_time(value)
    return None if moment is None else round(moment * 1e9)


_SHEET_TIMES = frozenset(("time", "date", "timestamp", "@timestamp", "ts", "datetime"))
_SHEET_PODS = frozenset(
    ("pod", "pod_name", "podname", "kubernetes.pod.name", "kubernetes_pod_name", "resource.labels.pod_name")
)
_SHEET_TEXTS = frozenset(("line", "message", "@message", "log", "msg", "textpayload", "body", "content"))
_FALLS = 3  # moments that go back
_TURNED = 20  # of as many steps back one may go on: lines of two pods, or of one burst, that a shipper handed over late


def sheet(data: bytes) -> Entries:
    """The sheet that a log viewer or CloudWatch Insights exports: a column of moments, a column of lines, and labels."""
    rows = csv.reader(io.StringIO(data.decode("utf-8-sig", "replace"), newline=""))
    head = [name.strip().lower() for name in next(rows, [])]
    when = next((at for at, name in enumerate(head) if name in _SHEET_TIMES), None)
    text = next((at for at, name in enumerate(head) if name in _SHEET_TEXTS), None)
    if when is None or text is None or any("token" in name or name == "reason" for name in head):
        return  # the last two are a request log and a cluster's events
    of = next((at for at, name in enumerate(head) if name in _SHEET_PODS), None)
    told = [row for row in rows if len(row) > max(when, text)]
    several = of is not None and len({row[of] for row in told if len(row) > of}) > 1
    for row in told:
        labels = {"pod": row[of]} if several and of is not None and len(row) > of else None
        yield _nanoseconds(row[when]), _by_pod(labels, row[text])


def is_sheet_to_order(head: bytes) -> bool:
    """Whether the whole rows of a head are of a log viewer's sheet whose moments go back, all but a few, or whose lines are of several pods; another is read as it stands."""
    whole_rows = head[: head.rfind(b"\n") + 1]
    try:
        found = list(sheet(whole_rows))
    except csv.Error:
        return False
    if any(text.startswith("[pod/") for _, text in found):
        return True
    times = [t for t, _ in found if t is not None]
    steps = [after - before for before, after in itertools.pairwise(times)]
    falls, rises = sum(step < 0 for step in steps), sum(step > 0 for step in steps)
    broken = 0 < len(times) < whole_rows.count(b"\n") - 1  # a cell of several lines: no reader of lines finds its row
    return falls >= (1 if broken else _FALLS) and falls >= _TURNED * rises
