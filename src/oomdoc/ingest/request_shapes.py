"""Templates of request lines, learned from a line: dense logs are read by columns, a chunk at a time.

A shape is refused wherever columns could say something else than the plain reader does: a key with two values that count,
a value whose form the sample line does not show. What a shape does not fit stays with the plain reader. The values of
fields that mean nothing are not looked at: a line that is broken JSON there only is read as if it were whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.json_pieces import loads
from oomdoc.ingest.record import peel
from oomdoc.ingest.request_keys import DEPTH, MEANING, NO_EPOCH, Bare, Meaning, epoch, is_container, status, word
from oomdoc.intake.cells import Field, Memo, stamp
from oomdoc.intake.columns import Cut, Template
from oomdoc.regexes import regex

LEARN_CAP = 16 << 10  # longer lines hold prompts, and are read by json anyway
BARE_END = regex(r"[\s,;\"]")

_KINDS = {"input": "integer", "output": "integer", "cached": "integer", "limit": "integer", "status": "integer",
          "latency": "real", "ttft": "real", "model": "text", "tenant": "text", "replica": "text", "tenant?": "text", "replica?": "text", "start": "stamp", "stamp": "stamp", "elapsed": "real"}  # fmt: skip
_TABLE_NAMES = {"input": "input_tokens", "output": "output_tokens", "limit": "max_tokens", "cached": "cached_tokens"}
_STAMP = regex(rb"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,](\d{1,9}))?(\s?(?:Z|[+-]\d\d:?\d\d))?")
_OTHER_STAMP = regex(rb"\d\d/[A-Z][a-z]{2}/\d{4}:|\[?(?:\d{10}(?:\.\d+)?|\d{13})\b")
_PAIR = regex(rb"""([(\[{]?)([A-Za-z_@][\w.@-]*)=("[^"]*"|[^\s,;"=]*?)([)\]},;]*)""")
_WHOLE = regex(rb"[0-9]{1,15}")
_REAL = regex(rb"[0-9]{1,15}(?:\.[0-9]{1,9})?")
_JSON_KEYS = rb'\s*(?:\{\s*)?(?:"[^"\\]*"\s*:\s*(?:\{\s*)?)+'
_JSON_VALUE = rb'"[^"\\]*"|[^"\\{}\[\]\s]+|\[[^"\\\[\]{}]*\]|\{\}'
_JSON_CELL = regex(rb"(" + _JSON_KEYS + rb")(" + _JSON_VALUE + rb")([\s}]*)")


class RefusedError(Exception):
    """The line has no shape that a template can hold."""


def bare_value(text: str) -> str:
    """A value of a key=value pair without quotes and closing brackets."""
    return text.strip("\"'").rstrip(")]}")


_PAIR_TEXT = Memo(lambda text: word(bare_value(BARE_END.split(text.decode("utf-8", "replace"), maxsplit=1)[0])))
_CSV_TEXT = Memo(lambda text: word(text.strip().decode("utf-8", "replace")))
_JSON_TEXT = Memo(lambda text: word(loads(text)) if text[:1] in b'"-0123456789' else None)

TEXTS = {"pair": _PAIR_TEXT, "csv": _CSV_TEXT, "json": _JSON_TEXT}


@dataclass(frozen=True)
class Shape:
    """A template, the divisors of its durations (0 = not known), and meanings that a second key has too.

    Where the first of two is NULL the second would stand in: such chunks are left to the plain reader.
    """

    template: Template
    divisors: Mapping[str, float]
    doubled: frozenset[str] = frozenset()

    def batch(self, cut: Cut, lines: Any, bare: Bare) -> Batch | None:
        """The table's columns; `lines` are physical line numbers of the rows. None where a NULL would be filled."""
        import numpy as np

        if any(_has_null(cut.columns[name]) for name in self.doubled):
            return None
        columns: dict[str, Any] = {"line": lines}
        for name, value in cut.columns.items():
            if name in ("latency", "ttft"):
                divisor = self.divisors[name] or _settled(value, bare)
                if divisor:
                    columns[name + "_s"] = value / divisor
            elif name in ("start", "stamp"):
                columns["t"] = value if name in self._stamped() else _epochs(value)
                if self.divisors.get(name) and _has_null(columns["t"]):
                    return None  # it may count from a beginning
            elif name == "elapsed":
                if _is_epoch(value):
                    return None
                columns["elapsed_s"] = value / self.divisors["elapsed"]
            elif name.endswith("?"):  # what is said weakly counts where no other key says it
                if name[:-1] not in cut.columns:
                    columns[name[:-1]] = value
            elif name == "status" and len(value) and value.max() > 999:
                columns[name] = np.ma.masked_greater(value, 999)
            else:
                columns[_TABLE_NAMES.get(name, name)] = value
        return Batch("request", columns)

    def _stamped(self) -> set[str]:
        return {field.name for field in self.template.fields if field.kind == "stamp"}


def _has_null(value: Any) -> bool:
    import numpy as np

    if value.dtype == object:
        return any(entry is None for entry in value)
    return bool(np.any(getattr(value, "mask", False)))  # np.ma is imported by its first use, which costs 20 ms


def _settled(value: Any, bare: Bare) -> float | None:
    """The divisor of durations whose key names no unit."""
    import numpy as np

    known = np.ma.compressed(value)
    if len(known):
        bare.see([float(known.max()), *known[known != np.floor(known)][:1].tolist()])
    return bare.divisor


def _epochs(value: Any) -> Any:
    """`epoch` of a column."""
    import numpy as np

    plain, missing = np.ma.getdata(value), np.ma.getmaskarray(value)
    seconds, known = np.zeros(len(plain)), np.zeros(len(plain), np.bool_)
    for factor in (1.0, 1e3, 1e6, 1e9):
        scaled = plain / factor
        fits = ~known & (scaled >= 6.3e8) & (scaled < 7.3e9)
        seconds[fits], known = scaled[fits], known | fits
    unknown = missing | ~known
    return np.ma.masked_array(seconds, mask=unknown) if unknown.any() else seconds


def _is_epoch(value: Any) -> bool:
    """Whether one of a column's numbers is a date and not a time since its beginning."""
    import numpy as np

    known = np.ma.compressed(value)
    return len(known) > 0 and bool(known.max() >= NO_EPOCH)


def _counts_from_a_beginning(meaning: Meaning, value: bytes) -> bool:
    """Whether a moment is a number that its key gives a unit, too small for a date."""
    return (
        meaning.what in ("start", "stamp")
        and bool(meaning.divisor and _REAL.fullmatch(value))
        and float(value) < NO_EPOCH
    )


def _value_field(what: str, cell: int, prefix: bytes, value: bytes, suffix: bytes, text: Memo) -> Field:
    """The field of a value with a meaning, judged by the value that the sample line has."""
    kind = _KINDS.get(what)
    if kind == "text":
        return Field("text", what, cell, cell, prefix, suffix, decode=text)
    if kind == "stamp":
        match = _STAMP.fullmatch(value)
        if match:
            return _stamp_field(match, what, cell, cell, prefix, suffix)
        if _REAL.fullmatch(value) and epoch(float(value)) is not None:
            return Field("real", what, cell, cell, prefix, suffix)
    elif kind == "integer" and _WHOLE.fullmatch(value):
        return Field("integer", what, cell, cell, prefix, suffix)
    elif kind == "real" and _REAL.fullmatch(value):
        return Field("real", what, cell, cell, prefix, suffix)
    raise RefusedError


def _stamp_field(match: re.Match[bytes], what: str, first: int, last: int, prefix: bytes, suffix: bytes) -> Field:
    zone = match[2] or b""
    whole = stamp(match[0].decode())
    naked = stamp(match[0][: len(match[0]) - len(zone)].decode())
    if whole is None or naked is None:
        raise RefusedError
    offset_s = float(round(naked - whole))
    return Field("stamp", what, first, last, prefix, zone + suffix, len(match[1] or b""), offset_s)


# ---- key=value


def learn_pairs(line: bytes) -> Shape:
    """The shape of a key=value line; words between the pairs are free as long as they hold no `=`."""
    if b"\x1b" in line or line[:1] in b"{[>" or line.count(b'"') % 2:
        raise RefusedError
    ending = b"\r" if line.endswith(b"\r") else b""
    cells = line[: len(line) - len(ending)].split(b" ")
    fields: list[Field] = []
    divisors: dict[str, float] = {}
    first_pair, quoted = None, False
    for index, cell in enumerate(cells):
        close = ending if index == len(cells) - 1 else b""
        match = _PAIR.fullmatch(cell)
        if quoted or cell.count(b'"') == 1:  # a quoted text of several words has to stay the same
            quoted ^= cell.count(b'"') == 1
            fields.append(Field("same", "", index, index, cell + close))
        elif match:
            meaning = MEANING[match[2].decode()]
            quote = b'"' if match[3][:1] == b'"' else b""
            prefix, suffix = match[1] + match[2] + b"=" + quote, quote + match[4] + close
            value = match[3].strip(b'"')
            if not meaning:
                fields.append(Field("key", "", index, index, prefix, suffix if quote else b""))
            elif meaning.what == "status" and not _WHOLE.fullmatch(value):
                if status(value.decode("utf-8", "replace")) is not None:
                    raise RefusedError  # a word that says what became of it
                fields.append(Field("same", "", index, index, cell + close))
            elif meaning.what in divisors or meaning.what == "part":
                raise RefusedError
            else:
                divisors[meaning.what] = meaning.divisor
                fields.append(_value_field(meaning.what, index, prefix, value, suffix, _PAIR_TEXT))
        elif b"=" in cell or b'"' in cell:
            raise RefusedError
        else:
            continue
        first_pair = index if first_pair is None else first_pair
    if first_pair is None or not {"input", "output"} & divisors.keys() or {"start", "stamp"} <= divisors.keys():
        raise RefusedError
    if not {"start", "stamp"} & divisors.keys():
        fields.extend(_leading_stamp(line, cells, first_pair))
    counts = ((b"=", line.count(b"=")), (b'"', line.count(b'"')), (b"\x1b", 0))
    return Shape(Template(b" ", len(cells), tuple(fields), counts), divisors)


def _leading_stamp(line: bytes, cells: list[bytes], first_pair: int) -> Iterator[Field]:
    """The stamp before the first pair, which may reach over two or three cells."""
    starts = [sum(len(cell) + 1 for cell in cells[:index]) for index in range(len(cells))]
    head = line[: starts[first_pair]]
    match = _STAMP.search(head)
    if match is None:
        _, t, extra = peel(line.decode("utf-8", "replace"))
        if t is not None or extra or _OTHER_STAMP.search(head):
            raise RefusedError
        return
    first = max(index for index, start in enumerate(starts) if start <= match.start())
    last = max(index for index, start in enumerate(starts) if start < match.end())
    end = starts[last] + len(cells[last])
    yield _stamp_field(match, "stamp", first, last, line[starts[first] : match.start()], line[match.end() : end])


# ---- JSON


def learn_json(line: bytes) -> Shape:
    """The shape of a JSON line whose strings hold no commas."""
    value = loads(line)
    if not isinstance(value, dict) or b"\\" in line:
        raise RefusedError
    if {"input_lens", "output_lens", "resourceSpans", "attributes"} & value.keys():
        raise RefusedError
    cells = line.split(b",")
    checks: list[Field] = []
    found: dict[str, tuple[int, Field]] = {}  # by meaning: the depth of its key, its field
    divisors: dict[str, float] = {}
    doubled: set[str] = set()
    path: list[bool] = []  # of every object that is open: whether it is looked into
    opened = 0
    for index, cell in enumerate(cells):
        match = _JSON_CELL.fullmatch(cell)
        if not match:
            raise RefusedError
        prefix, text, suffix = match.groups()
        name = ""
        for token in re.findall(rb'\{|"[^"]*"', prefix):
            if token == b"{":
                path.append(not path or (all(path) and is_container(name) and len(path) <= DEPTH))
                opened += 1
            else:
                name = token[1:-1].decode("utf-8", "replace")
        meaning = MEANING[name] if all(path) else None
        checks.append(Field("key", "", index, index, prefix, suffix if b"}" in suffix else b""))
        if meaning and meaning.what == "status" and not _WHOLE.fullmatch(text):
            if status(text.strip(b'"').decode("utf-8", "replace")) is not None:
                raise RefusedError
            checks.append(Field("same", "", index, index, cell))
        elif meaning:
            if meaning.what == "part":
                raise RefusedError
            what, depth = "elapsed" if _counts_from_a_beginning(meaning, text) else meaning.what, len(path)
            if what in found:
                doubled.add(what)
                if min(depth, found[what][0]) > 1 or max(depth, found[what][0]) == 1:
                    raise RefusedError  # which of them counts is not plain to see
            if what not in found or depth < found[what][0]:
                quote = b'"' if text[:1] == b'"' and _KINDS.get(what) == "stamp" else b""
                bare = text[len(quote) : len(text) - len(quote)]
                found[what] = (depth, _value_field(what, index, prefix + quote, bare, quote + suffix, _JSON_TEXT))
                divisors[what] = meaning.divisor
        if suffix.count(b"}") > len(path):
            raise RefusedError
        del path[len(path) - suffix.count(b"}") :]
    if path or not {"input", "output"} & divisors.keys() or len({"start", "stamp", "elapsed"} & divisors.keys()) > 1:
        raise RefusedError
    used = {field.first for _, field in found.values()}
    fields = [field for field in checks if field.kind == "same" or field.first not in used]
    fields += [field for _, field in found.values()]
    counts = ((b"\\", 0), (b"{", opened), (b"}", opened))
    return Shape(Template(b",", len(cells), tuple(fields), counts), divisors, frozenset(doubled))


# ---- CSV


def learn_csv(line: bytes, delimiter: bytes, names: tuple[str, ...]) -> Shape:
    """The shape of a CSV row under its header."""
    cells = line.split(delimiter)
    if b'"' in line or len(cells) != len(names):
        raise RefusedError
    fields: list[Field] = []
    divisors: dict[str, float] = {}
    whole = any(meaning.what == "input" for name in names if (meaning := MEANING[name]))
    for index, (name, cell) in enumerate(zip(names, cells, strict=True)):
        meaning = MEANING[name]
        if meaning is None or (meaning.what == "part" and whole):
            continue
        value = cell.strip()
        at = cell.index(value)
        what = "elapsed" if _counts_from_a_beginning(meaning, value) else meaning.what
        what = "input" if what == "part" else what
        if what in divisors:
            raise RefusedError
        divisors[what] = meaning.divisor
        fields.append(_value_field(what, index, cell[:at], value, cell[at + len(value) :], _CSV_TEXT))
    if len({"start", "stamp", "elapsed"} & divisors.keys()) > 1:
        raise RefusedError
    return Shape(Template(delimiter, len(cells), tuple(fields), ((b'"', 0),)), divisors)
