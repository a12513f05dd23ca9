"""One physical line to one record: outer envelopes off, process tag read, time made whole.

Collectors put things in front of a log line: docker JSON, CRI, `kubectl --timestamps`, `[pod/...]`, compose `name |`,
journald, Loki, Ray, `srun -l`, Markdown quotes, ANSI colour. The same line in any of them gives the same record. The
engine's own head comes in three layouts (0.1.7 to 0.7.3, 0.8.0 to 0.30.0, 0.31.0 on) and as JSON logging.

Engine stamps have no year and no zone. `Clock` gives them the year of an outer stamp where there is one, else they
count in `NOMINAL_YEAR` until the bundle's year is known (`store` shifts them); December to January is stepped over.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import Any

from oomdoc.ingest.json_pieces import loads
from oomdoc.intake.cells import MONTHS
from oomdoc.regexes import regex
from oomdoc.units import NOMINAL_YEAR, epoch_of, parse_time

_LINE_CAP = 64 << 10  # evidence stands at the head of a line; crash dumps reach megabytes

ANSI = regex(r"(?:\x1b|\^\[|#033)\[[0-9;]*[A-Za-z]|(?<!u001b)\[(?:\d{1,2};)*\d{1,2}m(?=[\s(A-Z\[]|$)|\x00")
HEAD = regex(
    r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) "
    r"(?:(?P<mon>\d\d)-(?P<day>\d\d) (?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d) |\.\.\. ?)?"
    r"(?:\[?(?P<src>[\w./-]+\.py)(?::(?P<no>\d+))?\] ?)?"
)
_GLOG_HEAD = r"[IWEF]\d{4}(?:\d{4})? \d\d:\d\d:\d\d\.\d"
BRACKETED = rf"(?:\[[\w :./,-]{{1,60}}\] ?){{0,3}}\[(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL|[IWEF])\]|{_GLOG_HEAD}"
"""How records of other servers begin: `[TM][INFO]`, `[05/02/2027-03:04:05] [TRT-LLM] [RANK 1] [E]`, glog's `I20270109 12:20:01.1`."""
TAG = regex(
    r"\((?P<name>[A-Za-z][\w.:-]*(?: [A-Za-z]\w*)*?)(?:,? rank=(?P<rank>\d{1,9}))?(?:,? pid=(?P<pid>\d{1,9}))?(?:, ip=[\w.:]+)?\) ?"
)
TORCH_RANK = regex(r"\[rank(\d{1,9})\]: ?")
WORKER_RANK = regex(r"_TP(\d{1,9})")
V1_WORKER = regex(r"VllmWorker-(\d{1,9})$")
RAY_REPEAT = regex(r" \[repeated (\d{1,9})x across cluster\]")
_CRI = regex(r"(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)) (?:stdout|stderr) [FP] ?(.*)", re.S)
_STAMPED = regex(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)\s+(.*)", re.S)
_LOKI = regex(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+) \| (.*)", re.S)
_POD = regex(r"\[pod/([\w.-]+/[\w.-]+)\] ?(.*)", re.S)
_STERN = regex(
    r"([a-z][a-z0-9.]*(?:-[a-z0-9.]+)+) ([a-z][a-z0-9-]*) (?=\([A-Za-z]\w* ?(?:rank=|pid=|\))|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):? |Traceback \(|  File \"|[\w.]{1,60}(?:Error|Exception): |\{\"|\d{4}-\d\d-\d\d[T ])(.*)",
    re.S,
)
"""What `stern` puts before each line: pod and container."""
_COMPOSE = regex(r"(?:\d\d:\d\d:\d\d )?((?:\d{1,4}\|)?[A-Za-z][\w.@-]*)\s+\| (.*)", re.S)
"""Of compose, of a service of Docker Swarm, of pm2 and of foreman."""
_INSIDE = regex(
    r"(?:[\w\])}|:>›'\"-][|:>›'\"]?\s{1,4}|(?<!it/s)(?<!s/it)\])(?=\((?:APIServer|ApiServer|EngineCore|Worker|VllmWorker|ProcManager)\w*(?:,? rank=\d{1,5})?,? pid=\d{1,9}\) |"
    r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./-]{1,80}\.py(?::\d{1,6})?\])"
)
"""Where a record of the engine begins behind words that nobody knows: what a collector of logs puts first has no end of forms."""
_DATED = regex(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?")
_PREFIX_CAP = 200
_JOURNAL = regex(
    r"(?:(?:[A-Z][a-z]{2} )?(?P<day>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?) [A-Z]{1,5}|(?P<epoch>\d{10}\.\d{1,6})|\[ *\d{1,9}\.\d{1,6}\]) [\w.-]{1,80} [\w./@()-]{1,80}\[\d{1,9}\]: ?(?P<text>.*)",
    re.S,
)
"""Journald's `short-full`, `short-unix` and `short-monotonic`."""
_GREPPED = regex(r"[\w./-]{1,120}\.(?:log|txt|out)[:-]\d{1,8}[:-](.*)", re.S)
_SYSLOG = regex(
    r"([A-Z][a-z]{2}) +(\d{1,2}) (\d\d):(\d\d):(\d\d)(?:\.\d+)? (?:\S+ [\w./@:-]+(?:\[\d+\])?: ?(?!\[pod/))?(.*)", re.S
)
_IDENT = regex(r"[\w.:-]+ (?:[\w./@()-]+\[\d+\]|kernel): ?(.*)", re.S)  # what journald puts after an ISO stamp
_RFC5424 = regex(
    r"<\d{1,3}>1 (\S+) \S+ \S+ \S+ \S+ (?:-|(?:\[\w[^\]\s]*(?: [^\s=\]]+=\"(?:[^\"\\]|\\.)*\")*\])+) ?\ufeff?(.*)", re.S
)
_PRIORITY = regex(r"<\d{1,3}>(?=[A-Z][a-z]{2} |\d{4}-)")
_LOGGED = regex(r"\[?(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)(?=[\s\]])")
"""How other programs' records begin: Python's own `2027-03-02 04:05:06,789 - ERROR`, Ray's `[2027-03-02 04:05:06,789 E 901 901]`."""
_LABELS = regex(r"\{(?:[a-z]\w*=\"(?:[^\"\\]|\\.)*\"(?:, ?|(?=\})))+\} ?(.*)", re.S)  # `logcli` without -o
_GITLAB = regex(r"\d\d[OE][+ ](.*)", re.S)
_FLUENTD = regex(r"[\w.-]+\t(\{.*)", re.S)
# model servers that run the engine in a worker of their own: DJL Serving, TorchServe
_WORKER = regex(
    r"(?:\[(?:DEBUG|INFO|WARN|ERROR) ?\] |(?:DEBUG|INFO|WARN|ERROR) +(?:PyProcess )?)W-\d{1,6}-[\w.-]{1,100}(?:: ?| MODEL_LOG - )(.*)",
    re.S,
)
_GLOG = regex(_GLOG_HEAD + r"\d{0,8} +\d{1,10} [\w./-]{1,80}:\d{1,6}\] " r"(?:[^\n]{1,160}?: (?=(?:\w+\.){0,6}\w{1,60}(?:Error|Exception): ))?(.*)", re.S)  # fmt: skip
"""Triton and other servers in C++ that hold the engine: what failed in its Python is quoted behind their own words."""
_SRUN = regex(r"\d{1,4}: (.*)", re.S)
_MESSAGE_KEYS = ("message", "log", "msg", "MESSAGE", "line", "textPayload", "body", "Body", "@message", "Log", "Log_s", "LogMessage")  # fmt: skip
_NESTED_KEYS = ("jsonPayload", "fields", "_source")
"""Where a structured message is kept one level down: Cloud Logging, and tracing-subscriber of servers written in Rust (TGI, routers)."""
_TIME_KEYS = ("time", "timestamp", "@timestamp", "asctime", "ts", "eventTime", "date", "TimeStamp", "TimeGenerated")


@dataclass(slots=True)
class Record:
    """A line after peeling. `text` is the message; `headed` says that a vLLM record head was found.

    `t` is epoch seconds or None; `repeat` the weight of a Ray-deduplicated line (1 = printed once).
    """

    line: int
    text: str
    t: float | None = None
    process: str | None = None
    pid: int | None = None
    rank: int | None = None
    level: str | None = None
    headed: bool = False
    repeat: int = 1

    def who(self) -> dict[str, Any]:
        """The columns that say when and which process."""
        return {"t": self.t, "process": self.process, "pid": self.pid, "rank": self.rank}


def utc(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0) -> float | None:
    """Epoch seconds of a moment of UTC; None for one that does not exist."""
    try:
        return dt.datetime(year, month, day, hour, minute, second, tzinfo=dt.UTC).timestamp()
    except ValueError:
        return None


class Clock:
    """Makes the engine's year-less stamps into epoch seconds that never run backwards over New Year."""

    def __init__(self) -> None:
        self._outer_year: int | None = None
        self._month = 0
        self._step = 0

    def outer(self, t: float | None) -> float | None:
        """Learn the year from an envelope's stamp."""
        if t is not None:
            self._outer_year = dt.datetime.fromtimestamp(t, dt.UTC).year
        return t

    @property
    def year(self) -> int:
        """The year that the next stamp without one gets."""
        return self._outer_year if self._outer_year is not None else NOMINAL_YEAR + self._step

    def at(self, month: int, day: int, hour: int, minute: int, second: int) -> float | None:
        """Epoch seconds of a year-less stamp; None for a date that does not exist."""
        if self._outer_year is None and month == 1 and self._month == 12:
            self._step += 1
        self._month = month
        midnight = utc(self.year, month, day)
        return None if midnight is None else midnight + hour * 3600 + minute * 60 + second


def peel(line: str) -> tuple[str, float | None, dict[str, Any]]:
    """The text inside the envelopes, the outermost stamp's epoch seconds, and what JSON logging says of the process.

    >>> peel("2026-11-20T20:04:51Z stdout F INFO 11-20 20:04:51 [a.py:1] hi")[0]
    'INFO 11-20 20:04:51 [a.py:1] hi'
    """
    t: float | None = None
    extra: dict[str, Any] = {}
    text = line.rstrip("\r\n")
    stamped = False  # the layer before was an ISO stamp
    for _ in range(6):
        first = text[:1]
        if first != "{" and (
            "[" in text or "\x00" in text
        ):  # JSON may hold a colour with its ESC in letters: undone first
            text = ANSI.sub("", text)
            first = text[:1]
        if first == "{":
            inner = _json(text)
            if inner is None:
                match = _LABELS.match(text) if stamped else None
                if match:
                    text = match[1]
                    continue
                break
            text, stamp, more = inner
            extra.update(more)
            t = t if t is not None else stamp
            continue
        match = _JOURNAL.match(text) if "]: " in text[:_PREFIX_CAP] else None
        if match:
            told = parse_time(match["day"]) if match["day"] else float(match["epoch"]) if match["epoch"] else None
            t = t if t is not None else told
            text = match["text"]
            continue
        match = _WORKER.match(text) if "W-" in text[:40] else _GLOG.match(text) if text[1:5].isdigit() else None
        if match:
            text = match[1]
            continue
        if first.isdigit():
            if (
                text[4:5] == "-"
            ):  # letters are looked at before expressions are tried: 400 lines of every source come here
                match = _CRI.match(text) or _STAMPED.match(text) or _LOKI.match(text)
            if match:
                t = t if t is not None else parse_time(match[1])
                text = match[2]
                stamped = True
                continue
            match = _SRUN.match(text) or (_GITLAB.match(text) if stamped else None)
            if match:
                text = match[1]
                continue
        elif first == "[":
            match = _POD.match(text)
            if match:
                extra.setdefault("instance", match[1])
                text = match[2]
                continue
        elif first == ">":
            text = text[1:].lstrip(" ")
            continue
        elif first == "<":
            match = _RFC5424.match(text)
            if match:
                t = t if t is not None else parse_time(match[1])
                text = match[2]
                continue
            match = _PRIORITY.match(text)
            if match:
                text = text[match.end() :]
                continue
        elif first.isalpha():
            match = _IDENT.match(text) or _FLUENTD.match(text) if stamped else None
            if match:
                text = match[1]
                stamped = False
                continue
            match = _SYSLOG.match(text) if text[3:4] == " " else None
            if match:
                extra.setdefault("stamp", (MONTHS.get(match[1], 0), *(int(match[i]) for i in range(2, 6))))
                text = match[6]
                continue
            match = _GREPPED.match(text) if ":" in text[:_PREFIX_CAP] else None
            if match:
                text = match[1]
                continue
            match = _STERN.match(text) if "-" in text[:64] else None
            if match:
                extra.setdefault("instance", f"{match[1]}/{match[2]}")
                text = match[3]
                continue
        begin = text[:_PREFIX_CAP]
        match = _COMPOSE.match(begin) if "| " in begin and first.isalnum() else None
        if match and match[1] not in ("GPU", "NVIDIA-SMI"):
            extra.setdefault("instance", match[1])
            text = text[match.start(2) :]
            continue
        # a line that begins with blanks or a bar is quoted; one with a head or a tag begins with its record
        if first not in " \t|(" and ("pid=" in begin or ".py" in begin) and not HEAD.match(text):
            match = _INSIDE.search(begin)
            if match:
                dated = _DATED.search(text, 0, match.end()) if t is None else None
                t = parse_time(dated[0]) if dated else t
                text = text[match.end() :]
        break
    return text, t, extra


def _json(text: str) -> tuple[str, float | None, dict[str, Any]] | None:
    value = loads(text)
    if not isinstance(value, dict):
        return None
    for key in _NESTED_KEYS:
        if isinstance(value.get(key), dict):
            value = {**value, **value[key]}
    message = next((value[key] for key in _MESSAGE_KEYS if isinstance(value.get(key), str)), None)
    if message is None:
        return None
    stamp: float | None = None
    for key in _TIME_KEYS:
        found = value.get(key)
        stamp = epoch_of(found)
        if stamp is None and isinstance(found, str):
            stamp = parse_time(found)
        if stamp is not None:
            break
    micros = value.get("__REALTIME_TIMESTAMP")
    if stamp is None and isinstance(micros, str) and micros.isdigit():
        stamp = int(micros) / 1e6
    if isinstance(value.get("fields"), dict) and isinstance(value.get("target"), str):
        message = f"{value['target']}: {message}"  # as the same program's plain lines begin
    extra: dict[str, Any] = {}
    level = value.get("levelname") or value.get("level") or value.get("severity")
    if isinstance(level, str):
        extra["level"] = level.upper()
    process = value.get("vllm_process_name") or value.get("processName")
    if isinstance(process, str):
        extra["process"] = process
    if isinstance(value.get("process"), int):
        extra["pid"] = value["process"]
    if "levelname" in value:
        extra["headed"] = True
    for key in ("exc_info", "exc_text"):
        if isinstance(value.get(key), str):
            message += "\n" + value[key]
    return message.rstrip("\n"), stamp, extra


def decode(line: bytes) -> str:
    """Text of a physical line: its head only where it is very long; invalid bytes become replacement characters."""
    return line[:_LINE_CAP].decode("utf-8", "replace")


def read_record(line: int, raw: str, clock: Clock) -> Record:
    """Peel a line and read its head."""
    match = HEAD.match(raw)
    extra: dict[str, Any] = {}
    if match and match["mon"]:  # the common case: nothing in front
        text, t = raw.rstrip("\r\n"), None
    else:
        text, t, extra = peel(raw)
        if t is None and raw[:1] in "[123456789" and (logged := _LOGGED.match(raw)):
            t = parse_time(logged[1])  # of another program's record, whose words stay as they are
    clock.outer(t)
    record = Record(line, text, t)
    at = _tags(record, text)
    head = _head(text, at)
    if head is None and at:
        inner_text, stamp, more = peel(text[at:])
        if inner_text != text[at:]:  # Ray's prefix stands before another collector's
            text, t, extra = inner_text, t if t is not None else clock.outer(stamp), {**more, **extra}
            record.text, record.t = text, t
            at = _tags(record, text)
            head = _head(text, at)
    if record.process and record.rank is None:
        found = WORKER_RANK.search(record.process) or V1_WORKER.search(record.process)
        if found:
            record.rank = int(found[1])
    if head is None and at == 0:
        inner = _EMBEDDED.match(text)
        if inner:  # another program's logger passes the engine's record on
            record.headed, record.level, at = True, inner["level"], inner.end()
    if head:
        record.headed = True
        record.level = head["level"]
        if head["mon"]:
            stamp = clock.at(*(int(head[name]) for name in ("mon", "day", "h", "m", "s")))
            record.t = t if t is not None else stamp
        at = head.end()
    if "process" in extra and record.process is None:
        record.process = extra["process"]
        found = WORKER_RANK.search(extra["process"]) or V1_WORKER.search(extra["process"])
        record.rank = int(found[1]) if found else None
    if record.pid is None:
        record.pid = extra.get("pid")
    if record.level is None:
        record.level = extra.get("level")
    record.headed = record.headed or extra.get("headed", False)
    if record.t is None and "stamp" in extra and extra["stamp"][0]:
        record.t = clock.at(*extra["stamp"])
    record.text = text[at:] if at else text
    repeat = RAY_REPEAT.search(record.text, max(0, len(record.text) - 60))
    if repeat:
        record.repeat = int(repeat[1])
        record.text = record.text[: repeat.start()]
    return record


def _tags(record: Record, text: str) -> int:
    """Read the process tags that a line begins with into the record; where they end."""
    at = 0
    for _ in range(4):
        tag = TAG.match(text, at)
        if tag and (
            tag["pid"] or tag["rank"] or tag["name"].startswith(("Worker", "EngineCore", "APIServer", "raylet"))
        ):
            record.process = tag["name"]
            if tag["pid"]:
                record.pid = int(tag["pid"])
            if tag["rank"]:
                record.rank = int(tag["rank"])
            at = tag.end()
            continue
        ranked = TORCH_RANK.match(text, at)
        if ranked:
            record.rank = int(ranked[1])
            at = ranked.end()
            continue
        break
    return at


def _head(text: str, at: int) -> re.Match[str] | None:
    """The engine's record head at a place, or behind the progress bar that is glued in front of it; a bare level is none."""
    head = HEAD.match(text, at)
    if head and (head["mon"] or head["src"] or head.end() > at + len(head["level"]) + 1):
        return head
    return _GLUED.search(text) if at == 0 else None


_EMBEDDED = regex(r"(?P<level>DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL)\b[^\"'{]{1,120}?\b[\w./-]+\.py:\d+\] ")
_GLUED = regex(r"(?:it/s\]|s/it\])\s*(?:\([^)]*\)\s*)?" + HEAD.pattern)
