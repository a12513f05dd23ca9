"""Short free text that people put beside logs: hardware, workloads, observations, series of memory, exit codes.

    GPUs: 8 x RTX A6000                                   EngineCore, RSS after round 5: 18.08 GB
    vllm 0.15.2, two instances on one card                state,nvidia_smi_process_mib
    short prompts work; this is after a long one          asleep after boot,412

A statement becomes a row of the table that its matter has: `gpu_device` (`hardware`), `engine_flag` (origin `file`,
`engine_facts`), `process_memory` (`memory_series`, `process_list`), `process_exit`, `metric`; everything else that bears on a cause
is a `note` of a topic (`topics`). What nothing here knows is passed over, since prose is no format.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from oomdoc.evidence.tables import Batch
from oomdoc.ingest import launch
from oomdoc.ingest.base import HEAD_BYTES, TEXT_CAP, Head, Rows
from oomdoc.ingest.engine_facts import facts
from oomdoc.ingest.hardware import HOST_RAM, MIG, Devices, occupied
from oomdoc.ingest.memory_series import MEASURED, point, points, whose
from oomdoc.ingest.process_list import Listing, resident
from oomdoc.ingest.prompts import typed
from oomdoc.ingest.prose_words import LINE_CAP, plain
from oomdoc.ingest.record import HEAD, peel
from oomdoc.ingest.text_form import is_log_line
from oomdoc.ingest.topics import topics_of
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex
from oomdoc.units import parse_size

KIND = "notes"

_TEXT = 300  # characters of a sentence that are kept
_FIRST_LINES = 200  # within these a note says something that is understood; a person's note is shorter than that

_EXIT = regex(
    r"\b(?:exit(?:ed)? with exit|exit(?:ed)?|return)[ _-]?(?:code|status)?\b(?: (?:of|from) (?:the )?(?P<name>[^:=\n]{1,60}?))?"
    r"\s*(?:[:=]\s*|\bwith (?:code |status )?|\b(?:is|was) |(?<=exit code) )(?P<code>-?\d{1,3})(?![\d.]|\s*(?:%|ms|s\b))",
    re.I,
)
_SIGKILL = regex(r"\W{0,3}SIGKILL", re.I)
_EXIT_WORD = regex(r"\bexit|\breturn ?code", re.I)
_OPERATOR = regex(
    # who "was killed" did not do it
    r"\b(?:operator|admin(?:istrator)?|somebody|someone|colleague|manually|by hand)\b(?:(?!\b(?:was|were|been|got|being)\b)[^.;]){0,40}\bkill(?:ed|s)?\b"
    r"|\bkill(?:ed)?\b[^.;]{0,40}\b(?:by hand|manually|by (?:an|the) (?:operator|admin\w*))\b"
    r"|(?:^|[\s$#])p?kill -(?:s\s?)?(?:9|KILL|SIGKILL)\b",
    re.I,
)
_UNIFIED = regex(r"\bGB10\b|\bgfx115\d\b")  # a device whose memory is the host's
_LISTS = regex(r"\bps\s")
"""A command that lists processes again, perhaps without a header."""
_DELTA = regex(
    r"^(?P<name>(?:vllm|lmcache|process|python):[\w:]+|vllm:\w+)(?P<labels>\{[^}]*\})?\s*[:=]?\s*(?:delta|Δ)?\s*"
    r"(?:(?P<value>[+-]\d[\d,]*(?:\.\d+)?)|(?P<before>\d[\d,]*(?:\.\d+)?)\s*(?:->|→|to)\s*(?P<after>\d[\d,]*(?:\.\d+)?))\s*$"
)


_WRAPPED = 60
"""Characters: a line of prose that an editor has wrapped is longer."""
_BEGINS = regex(r"\s*(?:[-*+#>|$\[(=•]|\d)")
"""A line that begins a point of a list, a table or a command goes on with nothing."""
_ENDS = ".!?:;|)\"'。！？"


class _Reader:
    """Reads a note line by line."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.devices = Devices()
        self.listing = Listing()
        self.subject: str | None = None
        self.told: set[tuple[str, str]] = set()
        self._begun = ""
        """The last words of a line of prose whose sentence goes on in the next line."""

    def line(self, number: int, raw: str) -> None:
        """One physical line."""
        text = plain(raw)
        begun, self._begun = ("" if _BEGINS.match(raw) else self._begun), ""
        if not text:
            self.listing.ends()
            return
        command = typed(raw)  # it asks, and does not say that anything was found: `$ dmesg | grep oom`
        if command is not None and not _LISTS.search(command):
            self.listing.ends()  # what another command prints is another table
        if self._table(number, text, raw):
            return
        if is_log_line(raw):
            return
        delta = _DELTA.match(text)
        samples = list(occupied(text))
        if delta:
            self._delta(number, delta)
        elif samples:
            for sample in samples:
                self.rows.add("gpu_sample", number, **sample)
        elif self.devices.line(number, text):
            self._state(number, text, topics=bool(MIG.search(text) or _UNIFIED.search(text)) or "," in text)
        else:
            self._state(number, text, topics=command is None, begun=begun)
            if len(text) >= _WRAPPED and text[-1] not in _ENDS:
                self._begun = text[text.rfind(". ", 0, -1) + 1 :][-_WRAPPED:].strip()

    def end(self) -> None:
        """The end of the text: devices are complete now."""
        for number, row in self.devices.rows:
            self.rows.add("gpu_device", number, **row)

    def _table(self, number: int, text: str, raw: str) -> bool:
        """Lines of `ps` output; tables of another form are passages (`passages`)."""
        found_in_list = self.listing.rows(raw)
        for table, row in found_in_list:
            self.rows.add(table, number, **row)
        if found_in_list or self.listing.begins(raw):
            return True
        status = resident(text)
        if status:
            self.rows.add("process_memory", number, **status)
        return status is not None

    def _delta(self, number: int, match: re.Match[str]) -> None:
        """The change of a counter between two scrapes."""

        def number_of(part: str) -> float:
            return float(match[part].replace(",", ""))

        value = number_of("value") if match["value"] else number_of("after") - number_of("before")
        self.rows.add("metric", number, name=match["name"], labels="delta", value=value)

    def _state(self, number: int, text: str, topics: bool, begun: str = "") -> None:
        """A line of prose: exits, memory, engine facts, topics; `begun` is what the line before has of its sentence."""
        exited = _EXIT.search(text) if _EXIT_WORD.search(text) else None
        if exited:
            name = re.sub(r"\s*\bprocess\b\s*$", "", exited["name"] or "").strip() or None
            killed = exited["code"] in ("137", "-9") and _SIGKILL.match(text, exited.end())
            self.rows.add("process_exit", number, name=name, exit_code=-9 if killed else int(exited["code"]))
        if _OPERATOR.search(text):
            self.rows.add("host_event", number, kind="killed-by-operator", text=text[:TEXT_CAP])
        sample = point(text, self.subject)
        if sample:
            self.rows.add("process_memory", number, **sample)
            self.subject = sample["resource"] or self.subject
            return
        several = list(points(text))
        for one in several:
            self.rows.add("process_memory", number, **one)
        subject = MEASURED.search(text)
        if subject and len(text) < 120:
            self.subject = whose(subject) or self.subject
        ram = HOST_RAM.search(text)
        if ram:
            self._note(number, "host-size", parse_size(ram["size"] or ram["beside"], binary=True), text)
        for flag, value in facts(text):
            self.rows.add("engine_flag", number, flag=flag, value=launch.shown(flag, value), origin="file")
        if topics:
            for topic, number_told in topics_of(text[:LINE_CAP], begun):
                self._note(number, topic, number_told, text)

    def _note(self, line: int, topic: str, value: float | None, text: str) -> None:
        told = text.strip()[:_TEXT]
        if (topic, told) not in self.told:
            self.told.add((topic, told))
            self.rows.add("note", line, topic=topic, value=value, text=told)


def matches(head: Head) -> bool:
    """A small text with statements that are understood and hardly a log line."""
    if b"\x00" in head.data:
        return False
    text = head.data.decode("utf-8", "replace")
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines or len(head.data) >= HEAD_BYTES or text.lstrip()[:1] in ("{", "["):
        return False
    logged = sum(is_log_line(line) or is_log_line(peel(line)[0]) for line in lines)
    if logged * 5 > len(lines) or any((record := HEAD.match(line)) and record["src"] for line in lines):
        return False
    rows = Rows()
    reader = _Reader(rows)
    for number, line in enumerate(lines[:_FIRST_LINES], 1):
        reader.line(number, line)
        if rows.count or reader.devices.rows:
            return True
    return False


_PROSE = regex(
    r"^(?!\s*(?:[-$#|/{}\[\]\\]|\w+\s*[=:(]|docker |vllm serve|python|export |kubectl ))(?=.*(?:\b[A-Za-z']+,? ){3}[A-Za-z']+)"
)


class Prose:
    """Topics of sentences that stand in a text of another kind: what people write around a command."""

    def __init__(self) -> None:
        self.rows = Rows()
        self.reader = _Reader(self.rows)

    def chunk(self, chunk: Chunk) -> None:
        """Read one chunk; commands, settings and records are passed over."""
        if chunk.first_line > 400:
            return
        for number, line in enumerate(chunk.data[:HEAD_BYTES].split(b"\n"), chunk.first_line):
            text = line[:LINE_CAP].decode("utf-8", "replace")
            if _PROSE.match(text) and not is_log_line(text):
                sentence = plain(text)
                self.reader.devices.line(number, sentence)
                for flag, value in facts(sentence):
                    self.rows.add("engine_flag", number, flag=flag, value=launch.shown(flag, value), origin="file")
                for topic, told in topics_of(sentence):
                    self.reader._note(number, topic, told, text)

    def take(self) -> Iterator[Batch]:
        """What was read."""
        self.reader.end()
        yield from self.rows.take()


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """Rows of every table that free text can fill, in the order of the text."""
    rows = Rows()
    reader = _Reader(rows)
    for chunk in chunks:
        for number, text in chunk.lines(LINE_CAP):
            reader.line(number, text)
        if rows.count >= 20_000:
            yield from rows.take()
    reader.end()
    yield from rows.take()
