"""Columns out of dense chunks: lines of one shape are cut by their delimiters and read a column at a time.

A `Template` says what such lines look like: how many cells, which bytes stand around a value, what kind it is. `read` takes
a whole chunk through numpy; lines of another shape are handed back as `odd`, for a plain reader. `read_plain` is the same by
the obvious way, line by line: the twin that the tests hold `read` against. This module knows bytes and numbers only, nothing
of GPUs or requests.

Figures that chose the design (one core, 1 MiB chunks, 17,000 lines of nvidia-smi CSV, microseconds a column): five digits
by a matrix of single bytes 144, by 64-bit words and three multiplies 149; two digits 99 and 157; one digit 46 and 151.
So the digits are taken byte by byte: no faster way was found, and this one knows neither alignment nor byte order.
numpy is imported by the first use, since that costs 60 ms: sources below `WORTHWHILE_BYTES` never come here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from oomdoc.intake.cells import INTEGER_DIGITS, NULLS, REAL_CHARS, TEXT_BYTES, Field, Memo, minute_of, value_plain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Mask = NDArray[np.bool_]

WORTHWHILE_BYTES = 64 << 10  # a smaller chunk is read plainly before numpy is even imported


class Cut(NamedTuple):
    """What a template took from a chunk.

    `lines` holds the 0-based line of every row; `columns` their values, of `lines`' length; `odd` (line, begin, end) of
    every line that is no row, as three columns.
    """

    lines: Any
    columns: dict[str, Any]
    odd: tuple[Any, ...]

    def odd_lines(self) -> Iterator[tuple[int, int, int]]:
        """Line, begin and end of every line that is no row."""
        yield from zip(*(map(int, c) if isinstance(c, list) else c.tolist() for c in self.odd), strict=True)


@dataclass(frozen=True)
class Template:
    """The shape of a line: `cells` cells between single bytes `delimiter`, and the fields in them.

    `counts` are bytes that every row must hold exactly so often (a backslash never, say): a line that does not is odd.
    Where that is not "never", prefixes and suffixes must prove at least so many, so that a sum over all lines can judge.
    """

    delimiter: bytes
    cells: int
    fields: tuple[Field, ...]
    counts: tuple[tuple[bytes, int], ...] = ()

    def read(self, data: bytes, share: float = 0.7) -> Cut | None:
        """Rows, columns and odd lines of a chunk; None where fewer than `share` of its lines have this shape."""
        _keep_pages()
        grid = self._grid(data, share) if data else None
        if grid is None:
            return None
        lines, begins, ends, odd = grid
        cut = self.fill(data, lines, begins, ends, odd)
        return cut if len(cut.lines) >= share * (len(lines) + len(odd[0])) else None

    def _grid(self, data: bytes, share: float) -> tuple[Ints, Ints, Ints, tuple[Any, ...]] | None:
        """Lines of the right number of cells, where they begin, where their cells end (one row a cell), the other lines."""
        import numpy as np

        buf = np.frombuffer(data, np.uint8)
        is_end = buf == 10
        count = int(np.count_nonzero(is_end))
        at = np.flatnonzero(is_end if self.cells == 1 else (buf == self.delimiter[0]) | is_end)
        if data[-1] != 10:  # the end of the chunk ends a line as well
            count, at = count + 1, np.append(at, len(data))
        begins = np.zeros(count, np.int64)
        if len(at) == count * self.cells and _all_newlines(buf, at[self.cells - 1 :: self.cells]):
            # contiguous, since strided columns cost four times as much in every step that follows
            ends = np.ascontiguousarray(at.reshape(count, self.cells).T)
            begins[1:] = ends[-1, :-1] + 1
            return np.arange(count), begins, ends, (at[:0], at[:0], at[:0])
        closing = buf.take(at, mode="clip") == 10
        closing[-1] = True
        closes = np.flatnonzero(closing)  # index in `at` of every line's end
        regular = np.diff(closes, prepend=-1) == self.cells
        if np.count_nonzero(regular) < share * count:
            return None
        line_end = at.take(closes)
        begins[1:] = line_end[:-1] + 1
        ends = at.take(closes[regular] + np.arange(1 - self.cells, 1)[:, None])
        others = ~regular
        return (
            np.flatnonzero(regular),
            begins[regular],
            ends,
            (np.flatnonzero(others), begins[others], line_end[others]),
        )

    def fill(self, data: bytes, lines: Ints, begins: Ints, ends: Ints, odd: tuple[Any, ...]) -> Cut:
        """Columns of lines that are known to have `cells` cells; `ends` is a matrix, one row a cell."""
        import numpy as np

        chunk = _Chunk(data)
        good = chunk.with_counts(self.counts, begins, ends[-1]) if len(lines) else np.ones(0, np.bool_)
        columns: dict[str, Any] = {}
        for field in self.fields:
            begin = begins if field.first == 0 else ends[field.first - 1] + 1
            end = ends[field.last]
            if field.kind == "same":
                good &= (end - begin) == len(field.prefix)
            value = chunk.value(field, begin, end, good)
            if value is not None:
                columns[field.name] = value
        if not good.all():
            bad = ~good
            extra = (lines[bad], begins[bad], ends[-1, bad])
            both = [np.concatenate(sides) for sides in zip(odd, extra, strict=True)]
            order = np.argsort(both[0])
            odd = tuple(side[order] for side in both)
            lines = lines[good]
            columns = {name: value[..., good] for name, value in columns.items()}
        return Cut(lines, columns, odd)

    def read_plain(self, data: bytes, share: float = 0.7) -> Cut | None:
        """The same by the obvious way, with lists and None: the twin of `read`."""
        lines: list[int] = []
        columns: dict[str, list[Any]] = {field.name: [] for field in self.fields if field.kind not in ("key", "same")}
        odd: tuple[list[int], list[int], list[int]] = ([], [], [])
        pieces = data.split(b"\n")
        if pieces[-1] == b"":
            pieces.pop()
        offset = 0
        for number, piece in enumerate(pieces):
            values = self._line_plain(piece)
            if values is None:
                for column, entry in zip(odd, (number, offset, offset + len(piece)), strict=True):
                    column.append(entry)
            else:
                lines.append(number)
                for name, value in values.items():
                    columns[name].append(value)
            offset += len(piece) + 1
        return Cut(lines, columns, odd) if pieces and len(lines) >= share * len(pieces) else None

    def _line_plain(self, line: bytes) -> dict[str, Any] | None:
        cells = line.split(self.delimiter)
        if len(cells) != self.cells or any(line.count(byte) != times for byte, times in self.counts):
            return None
        values: dict[str, Any] = {}
        for field in self.fields:
            cell = self.delimiter.join(cells[field.first : field.last + 1])
            if field.kind == "same":
                if cell != field.prefix:
                    return None
                continue
            if not cell.startswith(field.prefix):
                return None
            if field.kind == "key":
                if not cell.endswith(field.suffix):
                    return None
                continue
            rest = cell[len(field.prefix) :]
            bare = rest[: len(rest) - len(field.suffix)] if rest.endswith(field.suffix) else None
            if field.kind in ("integer", "real") and (rest in NULLS or bare in NULLS):
                values[field.name] = None
                continue
            known, values[field.name] = (False, None) if bare is None else value_plain(field, bare)
            if not known:
                return None
        return values


class _Chunk:
    """One chunk as numpy sees it. Every method works on rows: arrays of begins and ends that ascend."""

    def __init__(self, data: bytes) -> None:
        import numpy as np

        self._np = np
        self._data = data
        self._buf = np.frombuffer(data, np.uint8)

    def value(self, field: Field, begin: Ints, end: Ints, good: Mask) -> Any:
        """The field's column; rows in which it has another form are taken out of `good` in place."""
        if field.kind == "integer" and (same := self.constant(field, begin, end)) is not None:
            return same
        if field.prefix:
            good &= self.literal(begin, field.prefix)
            begin = begin + len(field.prefix)
        suffixed = None
        if field.suffix:
            full, end = end, end - len(field.suffix)
            suffixed = self.literal(end, field.suffix)
        if field.kind in ("key", "same", "text", "stamp"):
            if suffixed is not None:
                good &= suffixed
            if field.kind == "text":
                return self.texts(begin, end, good, field.decode)
            return self.stamps(begin, end, good, field) if field.kind == "stamp" else None
        value, bad = (self.integers if field.kind == "integer" else self.reals)(begin, end)
        if suffixed is not None:
            bad |= ~suffixed
        bad &= good
        if not bad.any():
            return value
        rows = self._np.flatnonzero(bad)
        null = self.nulls(begin[rows], end[rows])
        if suffixed is not None:
            null &= suffixed[rows]
            null |= self.nulls(begin[rows], full[rows])
        good[rows[~null]] = False
        mask = self._np.zeros(len(good), self._np.bool_)
        mask[rows[null]] = True
        value[mask] = 0
        return self._np.ma.masked_array(value, mask=mask) if null.any() else value

    def constant(self, field: Field, begin: Ints, end: Ints) -> Any:
        """The column of a cell that all rows share, such as a card's total: half the price of reading it."""
        cell = self._data[begin[0] : end[0]] if len(begin) > 64 else b""
        text = cell[len(field.prefix) : len(cell) - len(field.suffix)]
        # few digits are read as fast as they are compared
        if len(text) < 4 or cell != field.prefix + text + field.suffix or cell != self._data[begin[-1] : end[-1]]:
            return None
        known, value = value_plain(field, text)
        if not known or not (end - begin == len(cell)).all() or not self.literal(begin, cell).all():
            return None
        return self._np.full(len(begin), value, self._np.int64)

    def windows(self, at: Ints, width: int) -> Any:
        """`width` bytes of every row from `at` on, as void scalars; zeros beyond the ends of the chunk."""
        np = self._np
        data, limit = self._data, len(self._data) - width
        if limit < 0:
            data, limit = data.ljust(width, b"\0"), 0
        view = np.ndarray((limit + 1,), f"V{width}", data, 0, (1,))
        if not len(at) or (at[0] >= 0 and at[-1] <= limit):
            return view[at]
        # the last row of a chunk may reach over its end, the first before its begin
        found = view[np.clip(at, 0, limit)]
        for row in np.flatnonzero((at < 0) | (at > limit)).tolist():
            place = int(at[row])
            piece = b"\0" * -place + data[: place + width] if place < 0 else data[place : place + width]
            found[row] = np.void(piece[:width].ljust(width, b"\0"))
        return found

    def literal(self, at: Ints, text: bytes) -> Any:
        """Rows that hold `text` at `at`. One gather of 24 bytes costs what a gather of two does."""
        np = self._np
        if len(text) <= 3 and len(at) and at[0] >= 0 and at[-1] + len(text) <= len(self._data):
            same = self._buf.take(at) == text[0]
            for place in range(1, len(text)):
                same &= self._buf.take(at + place) == text[place]
            return same
        found = self.windows(at, len(text))
        if found.tobytes() == text * len(at):  # nearly always, and a third of the price
            return np.ones(len(at), np.bool_)
        return found == np.void(text)

    def digits(self, begin: Ints, end: Ints, width: int) -> tuple[Any, Any]:
        """The last `width` bytes before `end` less 48, a matrix of one row a place, and which of them lie in the cell."""
        np = self._np
        place = np.arange(width, 0, -1)[:, None]
        # a place before the chunk wraps to its end: it lies outside of the cell, so its byte does not count
        found = self._buf.take(end - place, mode="wrap")
        found -= 48
        return found, np.minimum(end - begin, 255).astype(np.uint8) >= place.astype(np.uint8)

    def integers(self, begin: Ints, end: Ints) -> tuple[Any, Any]:
        """Values of digit runs, and the rows that are none (empty, too long, another byte)."""
        np = self._np
        length = end - begin
        longest = int(length.max()) if len(length) else 0
        bad = (length < 1) | (length > INTEGER_DIGITS) if longest > INTEGER_DIGITS else length < 1
        if longest < 1:
            return np.zeros(len(length), np.int64), bad
        digit, inside = self.digits(begin, np.maximum(end, begin), min(longest, INTEGER_DIGITS))
        digit *= inside
        bad |= digit.max(0) > 9
        return _joined(digit), bad

    def reals(self, begin: Ints, end: Ints) -> tuple[Any, Any]:
        """Values of digit runs with or without a fraction, rounded as `float` does, and the rows that are none."""
        np = self._np
        length = end - begin
        longest = int(length.max()) if len(length) else 0
        if longest < 1:
            return np.zeros(len(length)), length < 1
        digit, inside = self.digits(begin, np.maximum(end, begin), min(longest, REAL_CHARS))
        point = (digit == 254) & inside  # a full stop less 48
        if not point.any():
            digit *= inside
            value = _joined(digit)
            return value.astype(np.float64), (length < 1) | (length > REAL_CHARS) | (digit.max(0) > 9) | (
                value >= 1 << 53
            )
        digit *= inside & ~point
        behind = np.arange(len(digit) - 1, -1, -1, dtype=np.uint8)[:, None]
        places = (point * behind).max(0)  # digits behind the point
        points = np.count_nonzero(point, 0)
        bad = (length < 1) | (length > REAL_CHARS) | (digit.max(0) > 9) | (points > 1)
        bad |= (points == 1) & ((places == 0) | (places == length - 1))
        value = digit[0].astype(np.int64)
        for row, skip in zip(digit[1:], point[1:], strict=True):
            value *= np.where(skip, 1, 10)
            value += row
        bad |= value >= 1 << 53
        return value / np.array([10.0**n for n in range(REAL_CHARS + 1)]).take(places), bad

    def stamps(self, begin: Ints, end: Ints, good: Mask, field: Field) -> Any:
        """Epoch seconds. Rows of one minute share its parsing: only where the first 16 bytes change is one parsed."""
        np = self._np
        width = 19 + (field.fraction + 1 if field.fraction else 0)
        good &= (end - begin) == width
        if not len(begin):
            return np.zeros(0)
        text = self.windows(begin, 16)
        words = text.view(np.uint64).reshape(-1, 2)
        starts = np.flatnonzero((words[1:, 0] != words[:-1, 0]) | (words[1:, 1] != words[:-1, 1])) + 1
        starts = np.concatenate(([0], starts))
        minutes = [minute_of(text[row].tobytes().decode("latin-1")) for row in starts.tolist()]
        runs = np.diff(starts, append=len(begin))
        value = np.repeat(np.array([minute or 0 for minute in minutes], np.float64), runs)
        if None in minutes:
            good &= ~np.repeat(np.array([minute is None for minute in minutes]), runs)
        tail = self._buf.take(begin + np.arange(16, width)[:, None], mode="clip")
        good &= tail[0] == ord(":")
        tail -= 48
        second = tail[1] * 10 + tail[2]
        good &= (tail[1] <= 5) & (tail[2] <= 9)
        value += second
        if field.fraction:
            good &= ((tail[3] == 254) | (tail[3] == 252)) & (tail[4:].max(0) <= 9)  # full stop or comma, less 48
            value += _joined(tail[4:]) / 10.0**field.fraction
        return value - field.offset_s if field.offset_s else value

    def texts(self, begin: Ints, end: Ints, good: Mask, decode: Memo) -> Any:
        """Decoded texts, an object array; every distinct one is decoded once."""
        np = self._np
        length = end - begin
        good &= (length >= 0) & (length <= TEXT_BYTES) & ((length < 1) | (self._buf.take(end - 1, mode="wrap") != 0))
        width = int(min(max(length.max(initial=1), 1), TEXT_BYTES) + 7) // 8 * 8
        words = self.windows(begin, width).view(np.uint64).reshape(-1, width // 8)
        keep = np.frombuffer(b"".join(b"\xff" * n + b"\0" * (8 - n) for n in range(9)), np.uint64)
        for word in range(width // 8):
            words[:, word] &= keep.take(length - 8 * word, mode="clip")
        return decode.column(words)

    def nulls(self, begin: Ints, end: Ints) -> Any:
        """Rows whose cell spells "unknown"."""
        np = self._np
        length = end - begin
        found = np.zeros(len(begin), np.bool_)
        for spelling in NULLS:
            same = length == len(spelling)
            if spelling and same.any():
                same &= self.literal(begin, spelling)
            found |= same
            if found.all():
                break
        return found

    def with_counts(self, counts: tuple[tuple[bytes, int], ...], begins: Ints, ends: Ints) -> Any:
        """Rows that hold each byte as often as said."""
        np = self._np
        good = np.ones(len(begins), np.bool_)
        for byte, times in counts:
            if byte not in self._data:
                if times:
                    good[:] = False
                continue
            hit = self._buf == byte[0]
            # the whole chunk first, a quick sum: lines are looked at one by one only where it does not come out right
            if len(begins) * times != np.count_nonzero(hit) or not times:
                at = np.flatnonzero(hit)
                good &= (np.searchsorted(at, ends) - np.searchsorted(at, begins)) == times
        return good


@lru_cache(maxsize=1)
def _keep_pages() -> None:
    """Give one large block back, once: glibc keeps free what is smaller than the largest block ever freed.

    Without it the temporary arrays of every chunk are given back and faulted in again: 30 % of the time of a column.
    """
    import numpy as np

    np.empty(16 << 20, np.uint8)


def _joined(digit: Any) -> Any:
    """Integers of a matrix of digits, one row a place. Two places at a time as long as they fit into a byte."""
    import numpy as np

    odd = len(digit) % 2
    pairs = digit[odd::2] * 10 + digit[odd + 1 :: 2]
    value = (
        digit[0].astype(np.int32 if len(digit) <= 9 else np.int64)
        if odd
        else np.zeros(digit.shape[1], np.int32 if len(digit) <= 9 else np.int64)
    )
    for pair in pairs:
        value *= 100
        value += pair
    return value


def _all_newlines(buf: Any, at: Any) -> bool:
    """Whether all of these places are newlines; one behind the end counts as one."""
    if len(at) and at[-1] == len(buf):
        at = at[:-1]
    return bool((buf.take(at) == 10).all())
