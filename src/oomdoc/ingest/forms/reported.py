"""Sentences that report a moment of an engine: how many requests ran and waited, how full its cache was.

    At 14:05 the KV cache was at 97 %, 58 requests were running and 41 were waiting.

Two figures at least of one moment; a figure that a sentence tells twice (from 3 to 41) and a sentence that wishes, limits or supposes tell
none. The wordings are data (`said.toml`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from oomdoc.ingest.forms.groups import OfLines
from oomdoc.ingest.forms.trees import Record
from oomdoc.ingest.text_form import is_log_line
from oomdoc.ingest.vocabulary.quantity import read
from oomdoc.regexes import regex

_SAID = {name: regex(pattern, re.I) for name, pattern in read("said")["figures"].items()}
_SUPPOSED = regex(read("said")["supposed"], re.I)
_CLOCK = regex(r"(?:\d{4}-\d\d-\d\d[T ])?\b\d\d:\d\d(?::\d\d)?\b")
_END = regex(r"(?<=[.!?;])\s+(?=[A-Z0-9(*-])|\n\s*\n|\n(?=\s*[-*•#|>])")
_MOST = 400  # letters of a sentence
_LEAST = 2  # figures of one moment


class Reported(OfLines):
    """Reads the sentences of a short text."""

    def read(self, lines: Sequence[str], first_line: int, taken: set[int]) -> None:
        """Read a run of lines, but those in `taken`, which others read."""
        text = "\n".join("" if at in taken or is_log_line(line) else line for at, line in enumerate(lines))
        at = 0
        for sentence in _END.split(text) if _SAID["KV cache usage"].search(text) else ():
            begin = text.index(sentence, at)
            at = begin + len(sentence)
            plain = " ".join(sentence.split())
            if len(plain) > _MOST or _SUPPOSED.search(plain):
                continue
            told = {name: [next(filter(None, found)) for found in map(re.Match.groups, pattern.finditer(plain))] for name, pattern in _SAID.items()}  # fmt: skip
            values = {name: each[0] for name, each in told.items() if len(each) == 1}
            if len(values) >= _LEAST and not any(len(each) > 1 for each in told.values()):
                clocks = _CLOCK.findall(plain)
                values |= {"time": clocks[0]} if len(clocks) == 1 else {}
                self._gatherer.add(Record(first_line + text.count("\n", 0, begin), "#reported", values))
