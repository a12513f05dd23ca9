"""What was tried and what became of it, in a person's sentences.

    --max-num-seqs 32 --enforce-eager   -> starts            works: VLLM_USE_V1=0 vllm serve X --gpu-memory-utilization 0.4
    with gpu_memory_utilization 0.8 it still dies            fails: the same without VLLM_USE_V1=0
    TP=2 works, TP=1 OOM                                     torch 2.9: starts. torch 2.10: this.

A control like that is stronger than most signs: it changes one thing and sees the outcome. A sentence counts only if it names a
setting *and* an outcome; a log's own lines name outcomes with a level and a file before them and are no trials. Each try is told
with all of its settings, those of the command that it goes back to ("the same with", "first one +") included, so that two tries of
one text that differ in one setting show what decides (view `tried`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import TEXT_CAP, Rows
from oomdoc.ingest.outcome_words import outcome_of
from oomdoc.ingest.prompts import typed
from oomdoc.ingest.prose_words import plain
from oomdoc.ingest.setting_names import may_name_settings, settings_in
from oomdoc.ingest.text_form import is_log_line
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

_NOTE_BYTES = 32 << 10  # a person's note is shorter; a longer text is a log
_NOTE_LINES = 300
_LINE = 700
_LOGGED = 0.5  # of the lines are a log's own: nobody's note
_NO_TRIAL = regex(
    r"(?i)\b(?:try|consider|please|should|could|would|you can|increase|decrease|reduce|lower|if|or|may|might)\b|\b(?:INFO|WARNING|ERROR|DEBUG)\b|^\s*(?://|\*|usage:)|\?\s*$"
)
_LEAD = regex(r"(?i)^\W{0,4}(?P<word>works?|worked|working|ok(?:ay)?|good|starts?|fails?|failed|failing|broken|bad|crash(?:es|ed)?|oom|dies|died)\s*(?::|=>|->|—|–)\s+(?P<rest>.+)$")  # fmt: skip
_MARK = regex(r"\s(?:->|=>|→|—|–|#)\s|:\s+(?=\S+(?:\s\S+){0,6}\s*[.;]?$)")
_SENTENCES = regex(r"(?<=[\w)\]\"'`])[.;]\s+(?=[\w\"'`(-])|\s\|\s")
_COMMAND = regex(r"\b(?:vllm serve|python3? |docker run|-m vllm|torchrun|deepspeed)\b|\\\s*$")
_NAMES = regex(r"--[\w.-]+|\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b|[\w./-]*/[\w./-]+|\b\w+_\w+\b")
_ASIDE = regex(r"\s(?:->|=>|→|—|–|#)\s")
_PARTS = regex(r",\s+(?:but\s+|and\s+)?|\s(?:but|while|whereas)\s")
_THIS = regex(
    r"(?i)(?::|->|=>|→)\s*(?:this|see (?:below|log|above)|the (?:log|error) (?:below|above)|as (?:below|above|shown))\b"
)
_BACK = regex(r"(?i)\b(?P<which>(?:the )?(?:same|identical)(?: \w+)?|(?:the )?first(?: (?:one|line|command))?|as above|(?:the )?(?:above|previous|last)(?: (?:one|command))?|that|drop(?:ping)?|remov(?:e|ing))\b")  # fmt: skip
_CELL = regex(r"\S(?P<gap>\s{3,}|\t)(?=\S+(?: \S+)*\s*$)")
"""Before the last cell of a table set with blanks: `max_loras 1, rank 64        up`."""
_OTHER_MODEL = regex(r"(?i)\b(?P<which>smaller|larger|bigger|tiny|different|other|another) (?:model|checkpoint)\b")
"""A try with a model that is not the one in question differs in more than its settings."""
_SERVED = regex(r"(?:vllm serve|--model[= ])\s*(?P<model>[\w./:-]{3,120})")


_BAD_LEADS = ("bad", "broken", "failing")


class Tries:
    """Gathers the tries of a short text."""

    def __init__(self) -> None:
        self._rows = Rows()
        self._chunks = 0
        self._attempt = 0
        self._commands: list[dict[str, str]] = []

    def hear(self, chunk: Chunk) -> None:
        """Read the first chunk of a source, if it is a note."""
        self._chunks += 1
        if self._chunks > 1:
            self._rows = Rows()  # the source goes on: a log
            return
        if len(chunk.data) > _NOTE_BYTES or b"\x00" in chunk.data or not may_name_settings(chunk.data):
            return
        lines = chunk.data.decode("utf-8", "replace").split("\n")
        filled = [line for line in lines if line.strip()]
        if len(filled) > _NOTE_LINES or sum(map(is_log_line, filled)) > _LOGGED * len(filled):
            return
        for number, line in enumerate(lines, chunk.first_line):
            if len(line) <= _LINE and not is_log_line(line):
                self._line(number, line)

    def take(self) -> Iterator[Batch]:
        """What was read."""
        yield from self._rows.take()

    def _line(self, number: int, raw: str) -> None:
        if typed(raw) is not None and not _ASIDE.search(raw):
            return  # a command: what became of it stands in its output
        text = (plain(raw) or raw).strip()
        if not any(True for _ in settings_in(text)):
            return
        for sentence in _SENTENCES.split(text):
            if not any(True for _ in settings_in(sentence)):
                continue
            lead = _LEAD.match(sentence)
            if lead:
                works = outcome_of(lead["word"], True)
                self._try(number, lead["rest"], lead["word"].lower() not in _BAD_LEADS if works is None else works, text)  # fmt: skip
            elif not _NO_TRIAL.search(sentence):
                for part in _tried(sentence):
                    works = _outcome(part)
                    if works is not None:
                        self._try(number, part, works, text)

    def _try(self, number: int, part: str, works: bool, text: str) -> None:
        command = _before(part)
        settings = {tried.flag: tried.value or "on" for tried in settings_in(command)}
        if served := _SERVED.search(command):
            settings["model"] = served["model"]
        elif other := _OTHER_MODEL.search(command):
            settings.setdefault("model", f"a {other['which'].lower()} one")
        if not settings:
            return
        back = _BACK.search(command)
        base: dict[str, str] = {}
        if back and self._commands:
            base = self._commands[0] if "first" in back["which"].lower() else self._commands[-1]
        elif not back and len(settings) >= 2:
            self._commands.append(settings)
        together = {**{flag: value for flag, value in base.items() if flag not in settings}, **settings}
        self._attempt += 1
        for flag in [*settings, *(flag for flag in base if flag not in settings)]:  # its own first
            value = together[flag]
            if value == "off" and flag not in base and base:
                continue
            self._rows.add(
                "trial", number, experiment=0, attempt=self._attempt, flag=flag, value=value[:100], works=works, text=text[:TEXT_CAP]
            )  # fmt: skip


def _tried(sentence: str) -> Sequence[str]:
    """The parts of a sentence that name a setting and an outcome each; else the sentence."""
    parts = [part for part in _PARTS.split(sentence) if part.strip()]
    telling = [part for part in parts if any(True for _ in settings_in(part)) and _outcome(part) is not None]
    return telling if len(telling) > 1 else [sentence]


def _marks(part: str) -> Iterator[re.Match[str]]:
    """Signs behind which an outcome stands, those inside a setting left out."""
    taken = [(tried.at, tried.end) for tried in settings_in(part)]
    for mark in _MARK.finditer(part):
        if not any(at <= mark.start() < end or at < mark.end() <= end for at, end in taken):
            yield mark


def _cell(part: str) -> tuple[str, bool] | None:
    """Of a row set with blanks the settings and the outcome in its last cell; a number is a measurement, no outcome.

    >>> _cell("max_loras 1, rank 64        up"), _cell("max_num_seqs 64     0"), _cell("run 7     max_num_seqs 64 ok")
    (('max_loras 1, rank 64', True), None, None)
    """
    gap = _CELL.search(part)
    if gap is None or not any(True for _ in settings_in(part[: gap.start("gap")])):
        return None
    said = part[gap.end("gap") :].strip()
    works = None if said.isdigit() else outcome_of(said, True)
    return None if works is None else (part[: gap.start("gap")], works)


def _before(part: str) -> str:
    """The part of a sentence that names what was tried: before the mark behind which the outcome stands."""
    if cell := _cell(part):
        return cell[0]
    mark = next((mark for mark in _marks(part) if _said(part[mark.end() :]) is not None or _THIS.match(part[mark.start() :].lstrip())), None)  # fmt: skip
    return part[: mark.start()] if mark else part


def _outcome(part: str) -> bool | None:
    """What became of it: behind the settings, of a command behind a mark."""
    first = next(settings_in(part), None)
    if first is None:
        return None
    if cell := _cell(part):
        return cell[1]
    if _THIS.search(part, first.at):
        return False
    mark = next((mark for mark in _marks(part) if mark.start() > first.at and _said(part[mark.end() :]) is not None), None)  # fmt: skip
    if mark is not None:
        return _said(part[mark.end() :])
    return None if _COMMAND.search(part) else _said(part[first.at :])


def _said(text: str) -> bool | None:
    """An outcome in words: names of options, variables and paths are none."""
    return outcome_of(_NAMES.sub(" ", text))
