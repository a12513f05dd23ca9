"""What users see, as people write it down: one latency under several conditions, in a sentence or below a title.

    TTFT median: 10 agents (Monday) 0.11 s ; 40 agents (today) 0.92 s       a sentence: each value with the words before it
    rate(sum)/rate(count) of vllm:inter_token_latency_seconds, 5m           a title, and below it
    14:00 0.0150                                                            a condition and a value in each line
    14:25 0.0437

Each value is a try without settings (`trial`, `trial_figure`): its condition is the setting `@said`. Two statistics of one
condition (p50 and p99) are no comparison, a limit or a timeout is no measure, and a line of a log is its reader's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from oomdoc.ingest.base import TEXT_CAP
from oomdoc.ingest.forms import grammar
from oomdoc.ingest.forms.groups import OfLines
from oomdoc.ingest.text_form import is_log_line
from oomdoc.regexes import regex

_NAME = regex(
    r"(?i)\b(?:ttft|ttfb|time to (?:the )?first (?:token|byte)|first[- ]token(?: latency| time)?|tpot|itl|inter[-_ ]token[-_ ]latency(?:_seconds|_ms)?|time per (?:output )?token|"
    r"(?:e2e |request |response )?latency|response times?)\b"
)
_VALUE = regex(r"(?<![\w.:/-])(\d{1,6}(?:\.\d{1,6})?)(?:\s?(ms|s|sec|secs|seconds)\b|(?=\s*(?:->|→|to)\s*\d{1,6}(?:\.\d{1,6})?\s?(?:ms|s|sec|secs|seconds)\b))")  # fmt: skip
_STATISTIC = regex(r"(?i)\b(?:p\d\d|p9\d(?:\.\d)?|max|min|mean|median|avg|average)\b")
_WISH = regex(r"(?i)\b(?:timeout|limit|target|slo|sla|threshold|budget|goal|expect\w*|should|must|within|after|every|ago|for)\b")  # fmt: skip
_ROW = regex(r"(?P<label>\S.{0,60}?)[\s:;,=|](?P<value>\d{1,6}(?:\.\d{1,6})?)\s?(?P<unit>ms|s)?")
_LINE_CAP = 400
_LEAST = 3  # lines below a title: fewer are a remark
_MOST = 200


class Spoken(OfLines):
    """Reads the latencies of a short text."""

    def read(self, lines: Sequence[str], first_line: int, taken: set[int]) -> None:
        """Read a run of lines, but those in `taken`, which others read."""
        for at, line in enumerate(lines):
            if at in taken or len(line) > _LINE_CAP:
                continue
            name = _NAME.search(line)
            if name is None or is_log_line(line):
                continue
            quantity = grammar.service(name[0])[0]
            values = _said(line, name.end())
            if len(values) < 2:
                values = []
                unit = grammar.service(name[0] + " " + " ".join(grammar.pieces(line[name.end() :])[:4]))[1] or "s"
                for below in range(at + 1, min(len(lines), at + 1 + _MOST)):
                    row = _ROW.fullmatch(lines[below].strip())
                    # a row that names a latency of its own is no condition of the one above: both are rows of one table
                    if below in taken or row is None or is_log_line(lines[below]) or _NAME.search(row["label"]):
                        break
                    values.append(
                        (below, row["label"].strip(" :;,=|"), grammar.seconds_of(row["value"], row["unit"] or unit))
                    )
                if len(values) < _LEAST:
                    continue
            else:
                values = [(at, label, seconds) for _, label, seconds in values]
            self._add(quantity, name[0], values, lines, first_line)

    def _add(self, quantity: str, name: str, values: Sequence[tuple[int, str, float | None]], lines: Sequence[str], first_line: int) -> None:  # fmt: skip
        experiment = self._gatherer.new_experiment()
        for at, label, seconds in values:
            attempt = self._gatherer.new_attempt()
            rows = self._gatherer.filler.rows
            rows.add("trial", first_line + at, experiment=experiment, attempt=attempt, flag="@said", value=label[:100] or name[:100], works=None, text=lines[at].strip()[:TEXT_CAP])  # fmt: skip
            if seconds is not None:
                rows.add("trial_figure", first_line + at, experiment=experiment, attempt=attempt, name="_".join(grammar.pieces(name))[:100], quantity=quantity, value=seconds)  # fmt: skip


def _said(line: str, begin: int) -> list[tuple[int, str, float | None]]:
    """The values of one latency in a sentence with the words before each; [] where they are statistics of one condition."""
    found: list[tuple[int, str, float | None]] = []
    end = begin
    last = ""
    matches = list(_VALUE.finditer(line, begin))
    units = [match[2] for match in matches if match[2]]
    for match in matches:
        label = line[end : match.start()]
        other = _NAME.search(label)
        if (other and found) or _WISH.search(label):
            break
        last = match[2] or (units[0] if units else "s")
        if found and _STATISTIC.search(label):
            return []
        shown = re.sub(r"^[\s,;:=>|/-]+|[\s,;:=(|-]+$", "", _STATISTIC.sub(" ", label) if not found else label)
        found.append((match.start(), shown, grammar.seconds_of(match[1], last)))
        end = match.end()
    return found
