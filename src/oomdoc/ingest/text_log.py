"""Any text log: one byte search for every anchor of every dialect, then only the hit lines are decoded and read.

Real files glue outputs together (engine, kernel, Ray, kubelet), so the patterns of all dialects look at all text. A hit counts
only where the line is a record or a bare traceback: log-like words inside a request echo or a quoted prompt are
*look-alikes*; they are counted and refused. Frames, settings and allocator messages that no single regular expression can
read have their own readers here.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from oomdoc.evidence.tables import LOOKALIKE, Batch
from oomdoc.evidence.tables import TABLES as ALL_TABLES
from oomdoc.ingest import (
    benchmark_sums,
    engine_settings,
    host_events,
    kubernetes_lines,
    launch,
    log_errors,
    openings,
    other_engines,
    scaler_lines,
    torch_oom,
    vllm_log,
    wordings,
)
from oomdoc.ingest.alike import Alike, alone
from oomdoc.ingest.base import TEXT_CAP, Head, Pattern, Rows, check_patterns
from oomdoc.ingest.program_text import SHOWN_CODE
from oomdoc.ingest.record import HEAD, Clock, Record, decode, peel, read_record
from oomdoc.ingest.request_body import quotes_prompt
from oomdoc.ingest.text_form import is_log_line
from oomdoc.intake.scan import Chunk, Hit, LiteralScan
from oomdoc.regexes import regex

KIND = "text-log"
PATTERNS: tuple[Pattern, ...] = (
    *vllm_log.PATTERNS,
    *other_engines.PATTERNS,
    *benchmark_sums.PATTERNS,
    *log_errors.PATTERNS,
    *host_events.PATTERNS,
    *kubernetes_lines.PATTERNS,
    *scaler_lines.PATTERNS,
)
check_patterns(PATTERNS)

FLUSH_ROWS = 20_000  # rows held before they are handed on: a few MB
_SHM_LINES = 60  # a traceback of this length may stand between a file made in /dev/shm and what became of it
_FOLLOW_LINES = 6  # how far a wrapped allocator message may reach
_STATUS = "echo $?"
_TYPED = "of the typed command"
_TYPED_STATUS = regex(r"(?:\S{0,60} ?[$#%>❯] |\+ )echo \$\?\s*")
_ALONE = regex(rb"\r?\n(\d{1,3})\s*(?:\n|$)")
"""A shell's prompt asked for the status of the command before, and the line that answers."""
_COMMAND_LINES = 60  # the longest command that is typed over several lines
_DETAIL_LINES = 2  # how far the first entry of a list below a message may reach

_ECHO = regex(
    r"(?:\(\S+ pid=\d+\) )?(?:Received request \S+|Request \S+ (?:details|JSON body)|Generated response|Added request|async_llm|POST /|GET /)"
)
_DATA_LINE = regex(r"\s*\|\s|\s*[{\[]\s*\"")
# a message that only announces itself: what is wrong stands in the lines below it
_OPENING = regex(r"\d+ validation errors? for \w+$|:\s*$")
_FRAME = regex(r"File \"?(?P<file>[^\",\n]{1,300})\"?, line \d+, in (?P<function>[\w<>.]+)")
_NATIVE = regex(r"\s*\d{1,3}\s+0x[0-9a-f]{4,16} (?P<function>tensorrt_llm::[\w:~<>]{1,200})\(")
"""A frame of TensorRT-LLM's own stack: `3  0x7f0d tensorrt_llm::runtime::Name::call(...) + 434`, behind its error."""
_LANDMARK = regex(r"\b(" + "|".join(vllm_log.LANDMARKS) + r")\b")
_VLLM_RECORD = regex(HEAD.pattern)
_VLLM_WORDS = regex(r"vllm|KV cache|est\. speed input|torch\.|CUDA|EngineCore|Traceback \(most recent", re.I)
_FREQUENT = "Avg prompt throughput"  # the anchor whose lines come by the thousand
_WHOLE_STATS = regex(r"Running: \d+ reqs, .*usage: [\d.]+%")
_BACKWARD = 4096  # how far back the time of an untimed line is looked for
_LAST_STAMP = regex(rb"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d ")

_REFUSALS = tuple(pattern for pattern in PATTERNS if pattern.table == "startup_check" and pattern.dialect == "vllm")
_FRAME_ANCHORS = (", line ", "tensorrt_llm::", *vllm_log.LANDMARKS)


@dataclass(frozen=True)
class _Plan:
    """What to do on each anchor: the patterns to try, and whether frames, settings, an allocator message or a new wording may stand there."""

    scan: LiteralScan
    patterns: tuple[tuple[Pattern, ...], ...]
    frame: tuple[bool, ...]
    setting: tuple[
        tuple[tuple[re.Pattern[str], str, str], ...], ...
    ]  # of the engine (an origin) or of another server (its name)
    oom: tuple[bool, ...]
    telling: tuple[tuple[str, ...], ...]
    opens: tuple[bool, ...]
    command: tuple[bool, ...]
    status: tuple[bool, ...]


@functools.cache
def plan() -> _Plan:
    """What to do on each anchor, made once."""
    by_anchor: dict[str, list[Pattern]] = {}
    for pattern in PATTERNS:
        for anchor in pattern.anchors:
            by_anchor.setdefault(anchor, []).append(pattern)
    others = (
        *torch_oom.ANCHORS,
        *_FRAME_ANCHORS,
        *(anchor for anchor, _, _ in (*engine_settings.SETTINGS, *other_engines.BANNERS)),
        *wordings.ANCHORS,
        *vllm_log.REFUSAL_OPENINGS,
        *launch.ECHO_ANCHORS,
        _STATUS,
    )
    # of two anchors that begin at one place the search reports the first of the list, and it goes on behind a hit: put the
    # longer first, and let an anchor do the work of every anchor that lies inside it or begins in it
    anchors = sorted({*by_anchor, *others}, key=lambda anchor: (-len(anchor), anchor))
    inside = _hidden(anchors)

    def any_of(names: Iterable[str]) -> tuple[bool, ...]:
        return tuple(not wanted.isdisjoint(group) for wanted in (frozenset(names),) for group in inside)

    settings = {anchor: (expression, origin, "") for anchor, expression, origin in engine_settings.SETTINGS}
    settings |= {anchor: (expression, "logged", server) for anchor, expression, server in other_engines.BANNERS}
    telling = wordings.anchors_of(PATTERNS)
    return _Plan(
        LiteralScan([anchor.encode() for anchor in anchors]),
        tuple(tuple(dict.fromkeys(p for inner in group for p in by_anchor.get(inner, ()))) for group in inside),
        any_of(_FRAME_ANCHORS),
        tuple(tuple(settings[inner] for inner in group if inner in settings) for group in inside),
        any_of(torch_oom.ANCHORS),
        tuple(tuple(inner for inner in group if inner in telling) for group in inside),
        any_of(vllm_log.REFUSAL_OPENINGS),
        any_of(launch.ECHO_ANCHORS),
        any_of((_STATUS,)),
    )


def _hidden(anchors: Sequence[str]) -> list[list[str]]:
    """For each anchor those of which its hit can hide one: they lie in it, or its end is the beginning of them.

    Looked up by their first two letters: to compare all pairs cost 0.2 s, a third of what a small bundle takes.
    """
    beginning: dict[str, list[int]] = {}
    for place, anchor in enumerate(anchors):
        beginning.setdefault(anchor[:2], []).append(place)
    found = []
    for outer in anchors:
        tails = [outer[at:] for at in range(len(outer) - 1)]
        near = {(place, tail) for tail in tails for place in beginning.get(tail[:2], ())}
        found.append([anchors[place] for place in sorted({p for p, tail in near if tail.startswith(anchors[p]) or anchors[p].startswith(tail)})])  # fmt: skip
    return found


def matches(head: Head) -> bool:
    """Any text: the last of the kinds to be asked."""
    return True


def has_engine_records(head: Head) -> bool:
    """Whether the head holds records of the engine, so that nobody takes a log for a note or a command."""
    return any(found["src"] for line in head.lines[:200] if (found := _VLLM_RECORD.search(line)))


def kind_of(head: Head) -> str:
    """`vllm-log`, `kernel-log` or `text-log`, no difference in reading. The product's name alone makes no log: a line that has words
    of the engine must be a record, a part of a traceback, or a message that a pattern knows."""
    of_kernel = sum(bool(openings.KERNEL_LINE.match(line)) for line in head.lines)
    if 2 * of_kernel > sum(bool(line.strip()) for line in head.lines):
        return "kernel-log"
    if has_engine_records(head) or any(_VLLM_WORDS.search(line) and _is_message(line) for line in head.told):
        return "vllm-log"
    return KIND


def _is_message(line: str) -> bool:
    if is_log_line(line) or is_log_line(peel(line[:TEXT_CAP])[0]):
        return True
    return any(
        any(anchor in line for anchor in pattern.anchors) and any(True for _ in pattern.rows(line))
        for pattern in vllm_log.PATTERNS
    )


class Reader:
    """The state of one source: its clock, the record in hand, the rows collected."""

    def __init__(self) -> None:
        self.plan = plan()
        self.clock = Clock()
        self.rows = Rows()
        self.last_t: float | None = None
        self.last_line = 0
        self.strange = 0  # lines in a wording that is new
        self.shm_line = 0  # the last line that makes a file in /dev/shm
        self.rank: int | None = None  # of a worker that writes without a prefix: what it said that it is
        self.begun = False
        anchor = self.plan.scan.anchors.index(_FREQUENT.encode())
        self.alike = Alike(anchor, self.plan.patterns[anchor][0], self.clock, self.rows, self._plain)

    def chunk(self, chunk: Chunk) -> None:
        """Read one chunk."""
        if not self.begun:
            self.begun = True
            for row in openings.facts_of(chunk):
                self.rows.add("note", chunk.first_line, **row)
        self._read(chunk, self.alike.pick(chunk, self.plan.scan.hits(chunk, self.alike.read(chunk))), self.clock)

    def full(self) -> Iterator[Batch]:
        """Hand out what was read so far if it is much."""
        if self.rows.count >= FLUSH_ROWS:
            yield from self.rows.take()

    def take(self) -> Iterator[Batch]:
        """Hand out everything that was read so far."""
        self.alike.flush()
        yield from self.rows.take()

    def _plain(self, chunk: Chunk, clock: Clock) -> None:
        self._read(chunk, list(self.plan.scan.hits(chunk)), clock)

    def _read(self, chunk: Chunk, hits: list[Hit], clock: Clock) -> None:
        data = chunk.data
        at_begin, at_end = -1, -1
        record: Record | None = None
        refused = False
        pieces: list[tuple[str, set[str]]] = []
        skip_first = not chunk.at_line_start
        for place, hit in enumerate(hits):
            if skip_first and hit.begin == 0:
                continue  # the middle of a line longer than the cap: its head has been read
            if not at_begin <= hit.at < at_end:
                at_begin, at_end = _piece(data, hit)
                record = read_record(hit.line, decode(data[at_begin:at_end]), clock)
                refused = _is_echo(data, at_begin, hit.at, record)
                # JSON logging keeps a whole traceback in one record: each of its lines is read by itself
                pieces = [(text, set()) for text in _lines_of(record.text)]
                if refused:
                    self.rows.add(LOOKALIKE, hit.line)
                elif record.t is not None:
                    self.last_t, self.last_line = record.t, hit.line
                    if (
                        hit.anchor == self.alike.anchor
                        and (at_begin, at_end) == (hit.begin, hit.end)
                        and alone(hits, place)
                    ):
                        self.alike.learn(data[at_begin:at_end], record)
            if refused or record is None:
                continue
            for text, done in pieces:
                if len(pieces) == 1 or self.plan.scan.anchors[hit.anchor].decode() in text:
                    self._apply(chunk, hit, record, text, at_begin, at_end, done)

    def _wrapped(self, chunk: Chunk, record: Record, text: str, begin: int, end: int) -> bool:
        """A refusal that a terminal cut, within a word or between two; one that is whole is found by an anchor of its own."""
        if any(row for pattern in _REFUSALS for row in pattern.rows(text)):
            return False
        for joint in ("", " "):
            whole = _with_following(chunk.data, end, text, joint)
            for pattern in _REFUSALS:
                rows = list(pattern.rows(whole))
                for row in rows:
                    self._add(pattern.table, chunk, record, begin, row)
                if rows:
                    return True
        return False

    def _latest(self, line: int) -> float | None:
        """The time of the last record with a hit before a line."""
        alike = self.alike.time_before(line)
        return alike[1] if alike and alike[0] > self.last_line else self.last_t

    def _apply(self, chunk: Chunk, hit: Hit, record: Record, text: str, begin: int, end: int, done: set[str]) -> None:
        plan, anchor = self.plan, hit.anchor
        found = False
        if anchor == self.alike.anchor and not _WHOLE_STATS.search(text):
            text = _whole_stats(chunk.data, end, text)
        for pattern in plan.patterns[anchor]:
            if pattern.name in done:
                found = True
                continue
            if "?" + pattern.name in done:
                continue  # tried on this text: a line may hold an anchor a hundred thousand times
            done.add("?" + pattern.name)
            for row in pattern.rows(text):
                if (
                    pattern.table == "log_error"
                    and _OPENING.search(str(row["text"]))
                    and text.endswith(str(row["text"]))
                ):
                    row["text"] = log_errors.what_is_wrong(_with_detail(chunk.data, end, str(row["text"])))
                    if row["kind"] == "other":
                        row["kind"] = log_errors.error_kind(row.get("exception"), row["text"])
                self._add(pattern.table, chunk, record, begin, row)
                done.add(pattern.name)
                found = True
        if not found and plan.opens[anchor] and "opens" not in done:
            done.add("opens")
            found = self._wrapped(chunk, record, text, begin, end)
        for expression, origin, server in plan.setting[anchor]:
            body = expression.search(text) if not done & {"settings", "?" + expression.pattern} else None
            done.add("?" + expression.pattern)
            if body:
                done.add("settings")
                found = True
                self._settings(record, body["body"], origin, server)
        if plan.oom[anchor] and not done & {"oom", "?oom"}:
            done.add("?oom")
            message = text
            if torch_oom.wants_more(message):
                message = _with_following(chunk.data, end, message)
            goes_on = (
                torch_oom.is_cut(message) and b"ried to allocate" in chunk.data[end : end + 400].lstrip(b"\n")[:200]
            )
            row_or_none = None if goes_on else torch_oom.read_oom(message)  # the next line tells more of the same
            if row_or_none:
                done.add("oom")
                found = True
                self._add("oom", chunk, record, begin, row_or_none)
        if plan.command[anchor] and "command" not in done:
            done.add("command")
            found = self._command(chunk, record, text, end) or found
        if plan.status[anchor] and "status" not in done:
            done.add("status")
            told = _TYPED_STATUS.fullmatch(text) and _ALONE.match(chunk.data, end)
            if told and int(told[1]):
                self.rows.add("process_exit", record.line + 1, name=_TYPED, exit_code=int(told[1]), t=self.last_t)
        if plan.frame[anchor] and "frame" not in done:
            done.add("frame")
            self._frames(record, text)
        if plan.telling[anchor] and not found and "problem" not in done and self.strange < wordings.MOST:
            done.add("problem")
            if any(word in text for word in plan.telling[anchor]) and wordings.is_new(record, text, PATTERNS):
                self.strange += 1
                self.rows.problem(record.line, wordings.REASON, text)

    def _add(self, table: str, chunk: Chunk, record: Record, begin: int, row: dict[str, object]) -> None:
        if record.t is None:
            record.t = self._time_before(chunk, record.line, begin)
        names = _COLUMNS[table]
        for name, value in record.who().items():
            if name in names and row.get(name) is None:
                row[name] = value
        if record.process is None and record.rank is None and "rank" in names:
            self.rank = int(str(row["value"]).partition(".")[0]) if row.get("name") == "rank" else self.rank
            row["rank"] = self.rank if row.get("rank") is None else row["rank"]
        if table == "note" and row.get("topic") == "shm-file":
            self.shm_line = record.line
        if table == "log_error":
            row.setdefault("level", record.level)
            if self.shm_line and record.line - self.shm_line <= _SHM_LINES and "No space left on device" in str(row.get("text")) and "/" not in str(row.get("text")):  # fmt: skip
                row["kind"] = "shm"
        elif table == "preemption" and record.repeat > 1 and row.get("cumulative") is None:
            row["cumulative"] = record.repeat
        self.rows.add(table, record.line, **row)

    def _time_before(self, chunk: Chunk, line: int, begin: int) -> float | None:
        """The time of the nearest record before an untimed line: bare tracebacks carry none."""
        window = chunk.data[max(0, begin - _BACKWARD) : begin]
        stamps = _LAST_STAMP.findall(window)
        if not stamps:
            return self._latest(line)
        head = HEAD.match(stamps[-1].decode())
        if head is None:
            return self._latest(line)
        return self.clock.at(*(int(head[name]) for name in ("mon", "day", "h", "m", "s")))

    def _settings(self, record: Record, body: str, origin: str, server: str) -> None:
        count = 0
        for row in other_engines.banner(body, server) if server else engine_settings.flag_rows(body, origin):
            self.rows.add("engine_flag", record.line, **row, **record.who())
            count += 1
        if not count and body.strip(" })"):
            self.rows.problem(record.line, "a settings line without one readable setting", body)

    def _command(self, chunk: Chunk, record: Record, text: str, end: int) -> bool:
        """The settings of a command that somebody typed above its log."""
        if text.endswith("\\"):
            text = _continued(chunk.data, end, text)
        settings = launch.launched(text) or ([] if record.headed else launch.typed(text))
        for flag, value in settings:
            self.rows.add("engine_flag", record.line, flag=flag, value=value, origin="command", t=record.t)
        return bool(settings)

    def _frames(self, record: Record, text: str) -> None:
        seen = set()
        for frame in _FRAME.finditer(text):
            seen.add(frame["function"])
            self.rows.add("frame", record.line, function=frame["function"], file=frame["file"], **record.who())
        if native := _NATIVE.match(text):
            self.rows.add("frame", record.line, function=native["function"], **record.who())
        for function in _LANDMARK.findall(text):
            if function not in seen and ("line" in text or "(" in text or record.level == "ERROR"):
                seen.add(function)
                self.rows.add("frame", record.line, function=function, **record.who())


_COLUMNS = {name: frozenset(table.column_names) for name, table in ALL_TABLES.items()}


def _lines_of(text: str) -> list[str]:
    """The lines of a record; a traceback may stand in one line, its line breaks spelled out."""
    if "\\n" in text and "Traceback (most recent call" in text:
        text = text.replace("\\n", "\n")
    return text.split("\n")


def _piece(data: bytes, hit: Hit) -> tuple[int, int]:
    """Bounds of the text that holds the hit: a physical line, or what stands between carriage returns in it."""
    begin = data.rfind(b"\r", hit.begin, hit.at) + 1
    end = data.find(b"\r", hit.at, hit.end)
    return (begin or hit.begin), (end if end >= 0 else hit.end)


def _is_echo(data: bytes, begin: int, at: int, record: Record) -> bool:
    """Whether the hit stands in text that says nothing of now: what a request asks, an access line, a data line, code shown around an error."""
    listed = _DATA_LINE.match(record.text) and _DATA_LINE.match(decode(data[begin : begin + 40]))
    shown = (listed or SHOWN_CODE.match(record.text)) and not record.headed
    return bool(shown or _ECHO.match(record.text)) or quotes_prompt(data[begin:at])


def _whole_stats(data: bytes, end: int, text: str) -> str:
    """A statistics line that a terminal cut, within a word or between two; the text itself where nothing completes it."""
    for joint in ("", " "):
        whole = _with_following(data, end, text, joint)
        if _WHOLE_STATS.search(whole):
            return whole
    return text


def _with_following(data: bytes, end: int, message: str, joint: str = " ") -> str:
    """The message and the lines after it up to the next record: people paste these texts wrapped."""
    parts, at = [message], end + 1
    for _ in range(_FOLLOW_LINES):
        while data.startswith(b"\n", at):  # where `unwrap` joined pieces, empty lines keep the numbers
            at += 1
        if at >= len(data):
            break
        stop = data.find(b"\n", at)
        stop = stop if stop >= 0 else len(data)
        record = read_record(0, decode(data[at : min(stop, at + 2000)]), Clock())
        if record.level == "INFO" or "ried to allocate" in record.text:
            break
        parts.append(record.text.strip())
        at = stop + 1
    return joint.join(parts)


def _continued(data: bytes, end: int, command: str) -> str:
    """A command with the lines that it goes on in, each behind a backslash."""
    at = end + 1
    for _ in range(_COMMAND_LINES):
        stop = data.find(b"\n", at)
        stop = stop if stop >= 0 else len(data)
        following = decode(data[at:stop]).rstrip("\r")
        command = command[:-1] + " " + following.strip()
        at = stop + 1
        if not following.endswith("\\") or at >= len(data):
            break
    return command


def _with_detail(data: bytes, end: int, message: str) -> str:
    """A message that ends where its list begins, with the list's first entry: a field's name, then what is wrong with it."""
    told = message.rstrip()
    at = end + 1
    for _ in range(_DETAIL_LINES):
        stop = data.find(b"\n", at)
        if stop < 0:
            break
        record = read_record(0, decode(data[at : min(stop, at + 2000)]), Clock())
        if not record.text.strip() or record.text.startswith("Traceback"):
            break
        told += " " + record.text.strip()
        at = stop + 1
        if record.text[:1] in " \t(":
            break
    return told[:400]


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """Rows of every table that the patterns of all dialects find in a text."""
    reader = Reader()
    for chunk in chunks:
        reader.chunk(chunk)
        yield from reader.full()
    yield from reader.take()


__all__ = ["KIND", "PATTERNS", "TEXT_CAP", "Reader", "has_engine_records", "kind_of", "matches", "read"]
