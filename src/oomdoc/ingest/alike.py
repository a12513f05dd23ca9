"""Lines alike: many read at once, by a template that is learned from one that the plain reader has read.

Statistics lines come by the thousand, and the plain way (head, patterns, conversions) costs 80 us a line, this one 3. Most
logs have one shape of them, so the shape is learned: in a line that a pattern has read, one number after the other is
replaced, and the pattern tells which column changed. Nothing here knows the wording of any version. Lines of another shape
go back to the plain reader, and so do those of another month, since `Clock` has to see the year turn.
"""

from __future__ import annotations

import datetime as dt
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Any

from oomdoc.evidence.tables import TABLES
from oomdoc.ingest.base import Pattern, Rows
from oomdoc.ingest.record import Clock, Record
from oomdoc.intake.cells import Field, Memo
from oomdoc.intake.columns import Template
from oomdoc.intake.scan import Chunk, Hit
from oomdoc.regexes import regex

_TOGETHER = 2000  # lines read at once: numpy's price per call is spread over them
_WORTHWHILE = 1000  # fewer lines of a source are cut plainly, for 10 ms: to import numpy takes 45
_TRIES = 8  # shapes tried per source, so that a log without any costs nothing
_LONGEST = 1000
_STAMP = regex(r"(?:^|(?<= ))(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?= )")
_NUMBER = regex(r"([^0-9.]*)([0-9]+(?:\.[0-9]+)?)([^0-9]*)")

_TYPES = {(table.name, column.name): column.type for table in TABLES.values() for column in table.columns}

Plain = Callable[[Chunk, Clock], None]


class Alike:
    """The lines of one anchor in one source: their shape, once it is known, and those that wait to be read.

    `plain` reads a chunk of one line that has another shape after all.
    """

    def __init__(self, anchor: int, pattern: Pattern, clock: Clock, rows: Rows, plain: Plain) -> None:
        self.anchor, self._pattern, self._clock, self._rows, self._plain = anchor, pattern, clock, rows, plain
        self._template: Template | None = None
        self._stamp_at, self._month = 0, b""
        self._ending = b""  # a line that ends otherwise was cut: what follows it is not seen here
        self._year_clock = clock
        self._divisors: dict[str, int] = {}
        self._who: dict[str, Any] = {}
        self._tries = 0
        self._dense = False  # the chunk before was full of such lines
        self._whole = False  # this chunk is read whole
        self._many = False  # this source has so many of them that numpy reads them
        self._lines: list[int] = []
        self._texts: list[bytes] = []
        self._seen: tuple[list[int], list[float]] = [], []  # lines and times of those that were read last

    def read(self, chunk: Chunk) -> Any:
        """Where the chunk before was full of such lines, read this one whole: a mask of the lines that are done, else None."""
        self._whole = False
        if not self._dense or self._template is None or not chunk.at_line_start:
            return None
        import numpy as np

        self._many = True
        self.flush()
        if self._template is None:  # those that waited had another shape after all
            self._dense = False
            return None
        cut = self._template.read(chunk.data, 0.5)
        if cut is None or not self._emit(cut.lines + chunk.first_line, cut.columns):
            return None
        self._whole = True
        done = np.zeros(len(cut.lines) + len(cut.odd[0]) + 1, np.bool_)
        done[cut.lines] = True
        return done

    def pick(self, chunk: Chunk, hits: Iterable[Hit]) -> list[Hit]:
        """Take such lines out of the hits; the hits of all other lines are left."""
        hits = list(hits)
        if self._template is None:
            return hits
        if self._clock.year != self._year_clock.year:
            self.flush()
            self._template, self._tries = None, 0
            return hits
        left: list[Hit] = []
        size = 0
        for place, hit in enumerate(hits):
            whole = chunk.at_line_start or hit.begin
            if (
                hit.anchor == self.anchor
                and whole
                and alone(hits, place)
                and chunk.data.endswith(self._ending, hit.begin, hit.end)
                and chunk.data.startswith(self._month, hit.begin + self._stamp_at)
            ):
                self._lines.append(hit.line)
                self._texts.append(chunk.data[hit.begin : hit.end])
                size += hit.end - hit.begin
            else:
                left.append(hit)
        # of a chunk that was read whole few are left to be picked
        self._dense = self._whole or 2 * size > len(chunk.data)
        if len(self._lines) >= _TOGETHER:
            self.flush()
        return left

    def flush(self) -> None:
        """Read the lines that wait."""
        lines, texts = self._lines, self._texts
        if not texts:  # nothing waits: the shape stays
            return
        self._lines, self._texts = [], []
        self._many = self._many or len(texts) >= _WORTHWHILE
        assert self._template is not None  # lines wait for a shape that is known
        cut = (self._template.read if self._many else self._template.read_plain)(b"\n".join(texts), 0.5)
        if cut is not None and self._emit([lines[row] for row in _listed(cut.lines)], cut.columns):
            odd: Iterable[int] = _listed(cut.odd[0])
        else:
            odd = range(len(lines))
            self._template = None  # perhaps the next line teaches a better one
        for row in odd:
            self._plain(Chunk(texts[row], lines[row], True), self._year_clock)

    def time_before(self, line: int) -> tuple[int, float] | None:
        """Line and time of the last such line before a line; None where there is none."""
        place = bisect_left(self._lines, line) - 1
        if place >= 0:
            time = self._time(self._texts[place][self._stamp_at :][:14])
            return (self._lines[place], time) if time is not None else None
        lines, times = self._seen
        place = bisect_left(lines, line) - 1
        return (lines[place], times[place]) if place >= 0 else None

    def _emit(self, lines: Any, columns: dict[str, Any]) -> bool:
        """Hand on the rows of a cut; False where a time or a number is not what the plain reader would make of it."""
        if not self._many:
            return self._emit_plain(lines, columns)
        import numpy as np

        times = columns["t"].tolist()
        if None in times or any(hasattr(column, "mask") for column in columns.values()):
            return False
        whole: dict[str, Any] = {"line": np.asarray(lines), "t": np.array(times, np.float64)}
        for name, divisor in self._divisors.items():
            whole[name] = columns[name] / divisor if divisor != 1 else columns[name]
        for name, value in self._who.items():
            whole[name] = np.full(len(times), value, object if isinstance(value, str) else np.int64)
        self._rows.add_columns(self._pattern.table, whole)
        self._seen = whole["line"].tolist(), times
        return True

    def _emit_plain(self, lines: list[int], columns: dict[str, Any]) -> bool:
        """The same with lists."""
        if any(None in column for column in columns.values()):
            return False
        whole: dict[str, Any] = {"line": lines, "t": columns["t"]}
        for name, divisor in self._divisors.items():
            whole[name] = [value / divisor for value in columns[name]] if divisor != 1 else columns[name]
        for name, value in self._who.items():
            whole[name] = [value] * len(lines)
        self._rows.add_columns(self._pattern.table, whole)
        self._seen = lines, columns["t"]
        return True

    def _time(self, text: bytes) -> float | None:
        match = _STAMP.match(text.decode("latin-1") + " ")
        return self._year_clock.at(*map(int, match.groups())) if match and text.startswith(self._month) else None

    # ---- learning

    def learn(self, line: bytes, record: Record) -> None:
        """Take the shape of a line that the plain reader has read, if it is simple enough."""
        if (
            self._template is not None
            or self._tries >= _TRIES
            or len(line) > _LONGEST
            or not line.isascii()
            or b"\r" in line
        ):
            return
        self._tries += 1
        whole, message = line.decode("ascii"), record.text
        stamp = _STAMP.search(whole, 0, max(0, len(whole) - len(message)))
        plain = list(self._pattern.rows(message))
        if stamp is None or not whole.endswith(message) or len(plain) != 1:
            return
        self._stamp_at, self._month, self._divisors = stamp.start(), stamp[1].encode() + b"-", {}
        self._year_clock = Clock()
        self._year_clock.outer(dt.datetime(self._clock.year, 7, 1, tzinfo=dt.UTC).timestamp())
        fields: list[Field] = []
        at = cell = 0
        for cell, text in enumerate(whole.split(" ")):
            offset = at - len(whole) + len(message)
            number = _NUMBER.fullmatch(text) if offset >= 0 else None
            if at == stamp.start():
                fields.append(Field("text", "t", cell, cell + 1, decode=Memo(self._time)))
            elif at != stamp.start(3) and (
                number is None or not self._number(fields, cell, number, message, offset, plain[0])
            ):
                _same(fields, cell, text)
            at += len(text) + 1
        template = Template(b" ", cell + 1, tuple(fields))
        cut = template.read_plain(line, 0.5)
        found = {name: cut.columns[name][0] / divisor for name, divisor in self._divisors.items()} if cut else None
        if found == plain[0]:
            self._template, self._ending = template, line[-1:]
            self._who = {name: value for name, value in record.who().items() if name != "t" and value is not None}

    def _number(
        self, fields: list[Field], cell: int, number: re.Match[str], message: str, offset: int, plain: dict[str, Any]
    ) -> bool:
        """Ask the pattern which column a number fills, by another number in its place; False for a part of the wording."""
        value = 7.5 if "." in number[2] else 8 if int(number[2]) == 7 else 7
        rows = list(
            self._pattern.rows(message[: offset + number.start(2)] + str(value) + message[offset + number.end(2) :])
        )
        if len(rows) != 1 or rows[0].keys() != plain.keys():
            return False
        changed = [name for name in plain if rows[0][name] != plain[name]]
        if len(changed) > 1:
            return False
        kind, name = "real", f"{cell}"  # a figure that no column is for
        for name in changed:
            kind = "integer" if _TYPES[self._pattern.table, name] == "INTEGER" else "real"
            self._divisors[name] = 100 if rows[0][name] == value / 100 else 1
        fields.append(Field(kind, name, cell, cell, number[1].encode(), number[3].encode()))  # type: ignore[arg-type]
        return True


def _listed(column: Any) -> list[int]:
    return column if isinstance(column, list) else column.tolist()


def alone(hits: list[Hit], place: int) -> bool:
    """Whether the line of a hit has no other."""
    line = hits[place].line
    return (place == 0 or hits[place - 1].line != line) and (place + 1 == len(hits) or hits[place + 1].line != line)


def _same(fields: list[Field], cell: int, text: str) -> None:
    """A cell that is the same in all lines; neighbours become one field."""
    before = fields[-1] if fields else None
    if before and before.kind == "same" and before.last == cell - 1:
        fields[-1] = Field("same", "", before.first, cell, before.prefix + b" " + text.encode())
    else:
        fields.append(Field("same", "", cell, cell, text.encode()))
