"""Lines alike: read many at once, by a template that is learned from one that the plain reader has read.

Statistics lines come by the thousand, and the plain way (head, patterns, conversions) costs 80 us a line. Most logs have
one shape of them, so the shape is learned: in a line that a pattern has read, one number after the other is replaced, and the
pattern tells which column changed. Nothing here knows the wording of any version. Lines of another shape, or of another
month (`Clock` has to see the year turn), stay with the plain reader; the tests compare the two.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from typing import Any

from oomdoc.columns import Field, Memo, Template
from oomdoc.ingest.base import Pattern, Rows
from oomdoc.ingest.record import Clock, Record
from oomdoc.scan import Chunk, Hit
from oomdoc.tables import TABLES

_WORTHWHILE = 32  # lines of a chunk; fewer are read plainly before numpy is imported
_TRIES = 8  # shapes tried per source, so that a log without any costs nothing
_LONGEST = 1000
_STAMP = re.compile(r"(?:^|(?<= ))(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?= )")
_NUMBER = re.compile(r"([^0-9.]*)([0-9]+(?:\.[0-9]+)?)([^0-9]*)")


class Alike:
    """The lines of one anchor in one source: their shape, once it is known, and when the latest of them was written."""

    def __init__(self, anchor: int, pattern: Pattern, clock: Clock, rows: Rows) -> None:
        self.anchor, self._pattern, self._clock, self._rows = anchor, pattern, clock, rows
        self._template: Template | None = None
        self._divisors: dict[str, int] = {}
        self._who: dict[str, Any] = {}
        self._year = clock.year
        self._tries = 0
        self._dense = False
        self._lines: list[int] = []
        self._times: list[float] = []

    def read(self, chunk: Chunk) -> Any:
        """Where the chunk before was full of such lines, read this one whole: a mask of the lines that are done."""
        self._lines, self._times = [], []
        if not self._dense or self._template is None or not chunk.at_line_start:
            return None
        import numpy as np

        cut = self._template.read(chunk.data, 0.5)
        self._dense = cut is not None and self._emit(cut.lines + chunk.first_line, cut.columns)
        if cut is None or not self._dense:
            return None
        done = np.zeros(len(cut.lines) + len(cut.odd[0]), np.bool_)
        done[cut.lines] = True
        return done

    def pick(self, chunk: Chunk, hits: Iterable[Hit]) -> list[Hit]:
        """Read such lines among the hits; the hits of all other lines are left."""
        hits = list(hits)
        if self._template is None:
            return hits
        mine = [hit for hit in hits if hit.anchor == self.anchor]
        if len(mine) < _WORTHWHILE:
            return hits
        text = b"\n".join([chunk.data[hit.begin : hit.end] for hit in mine])
        self._dense = 2 * len(text) > len(chunk.data)
        cut = self._template.read(text, 0.5)
        if cut is None or not self._emit([mine[row].line for row in cut.lines.tolist()], cut.columns):
            self._template = None  # perhaps the next line teaches a better one
            return hits
        done = {mine[row].line for row in cut.lines.tolist()}
        return [hit for hit in hits if hit.line not in done]

    def time_before(self, line: int) -> tuple[int, float] | None:
        """Line and time of the last of the chunk's lines alike before a line."""
        place = bisect_left(self._lines, line) - 1
        return (self._lines[place], self._times[place]) if place >= 0 else None

    def _emit(self, lines: Any, columns: dict[str, Any]) -> bool:
        """Hand on the rows of a cut; False where a time or a number is not what the plain reader would make of it."""
        import numpy as np

        times = columns.pop("t").tolist()
        if None in times or self._clock.year != self._year or any(map(np.ma.isMaskedArray, columns.values())):
            return False
        whole: dict[str, Any] = {"line": np.asarray(lines), "t": np.array(times, np.float64)}
        for name, divisor in self._divisors.items():
            whole[name] = columns[name] / divisor if divisor != 1 else columns[name]
        for name, value in self._who.items():
            whole[name] = np.full(len(times), value, object if isinstance(value, str) else np.int64)
        self._rows.add_columns(self._pattern.table, whole)
        self._lines, self._times = whole["line"].tolist(), times
        return True

    # ---- learning

    def learn(self, line: bytes, record: Record) -> None:
        """Take the shape of a line that the plain reader has read, if it is simple enough."""
        if self._template is not None or self._tries >= _TRIES or len(line) > _LONGEST or not line.isascii():
            return
        self._tries += 1
        whole, message = line.decode("ascii"), record.text
        stamp = _STAMP.search(whole, 0, max(0, len(whole) - len(message)))
        plain = list(self._pattern.rows(message))
        if stamp is None or not whole.endswith(message) or len(plain) != 1 or whole.count("\r"):
            return
        fields: list[Field] = []
        self._divisors = {}
        at = 0
        for cell, text in enumerate(whole.split(" ")):
            offset = at - len(whole) + len(message)
            number = _NUMBER.fullmatch(text) if offset >= 0 else None
            if at == stamp.start():
                fields.append(Field("text", "t", cell, cell + 1, decode=Memo(self._time(stamp[1]))))
            elif at == stamp.start(3):
                pass
            elif number is None or not self._number(fields, cell, number, message, offset, plain[0]):
                _same(fields, cell, text)
            at += len(text) + 1
        template = Template(b" ", cell + 1, tuple(fields))
        cut = template.read(line, 0.5)
        found = {name: cut.columns[name][0] / divisor for name, divisor in self._divisors.items()} if cut else None
        told = {name: value for name, value in plain[0].items() if name in self._divisors}
        if found == told and set(plain[0]) == set(told):
            self._template, self._year = template, self._clock.year
            self._who = {name: value for name, value in record.who().items() if name != "t" and value is not None}

    def _number(self, fields: list[Field], cell: int, number: re.Match[str], message: str, offset: int, plain: dict[str, Any]) -> bool:
        """Ask the pattern which column a number fills, by another number in its place; False for a part of the wording."""
        value = 7.5 if "." in number[2] else 8 if int(number[2]) == 7 else 7
        rows = list(self._pattern.rows(message[: offset + number.start(2)] + str(value) + message[offset + number.end(2) :]))
        changed = [name for name in plain if not rows or rows[0].get(name) != plain[name]]
        if len(rows) != 1 or len(changed) > 1 or rows[0].keys() != plain.keys():
            return False
        prefix, suffix = number[1].encode(), number[3].encode()
        if not changed:  # a figure that no column is for
            fields.append(Field("real", f"{cell}", cell, cell, prefix, suffix))
            return True
        types = {column.name: column.type for column in TABLES[self._pattern.table].columns}
        name = changed[0]
        fields.append(Field("integer" if types[name] == "INTEGER" else "real", name, cell, cell, prefix, suffix))
        self._divisors[name] = 100 if rows[0][name] == value / 100 else 1
        return bool(rows[0][name] == value / self._divisors[name])

    def _time(self, month: str) -> Any:
        def time(text: bytes) -> float | None:
            match = _STAMP.match(text.decode("latin-1") + " ")
            if match is None or match[1] != month:
                return None
            return self._clock.at(*map(int, match.groups()))

        return time


def _same(fields: list[Field], cell: int, text: str) -> None:
    """A cell that is the same in all lines; neighbours become one field."""
    before = fields[-1] if fields else None
    if before and before.kind == "same" and before.last == cell - 1:
        fields[-1] = Field("same", "", before.first, cell, before.prefix + b" " + text.encode())
    else:
        fields.append(Field("same", "", cell, cell, text.encode()))
