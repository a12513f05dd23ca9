"""Records out of text: tables cut by a delimiter, by bars (Markdown, boxes, psql), or by columns; `key: value` and `key=value`.

A `Layout` says how a line of a table is cut into cells. `layouts` proposes them for a line that might be a header, `cells`
cuts a row by one. A proposal costs little and proves nothing: the vocabulary decides (`believe`).
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from oomdoc.regexes import regex

_BOXES = str.maketrans({"│": "|", "┃": "|", "║": "|", "┆": "|", "╎": "|", "¦": "|"})
_RULE = regex(r"^[\s|+\-=:_─━═┼╪┿╋├┤┬┴┌┐└┘╞╡╒╕╘╛╔╗╚╝╠╣╦╩╬┏┓┗┛┠┨┯┷┳┻╇╈┡┩]{3,}$")
_IN_RULE = regex(r"\s*[┌┏╭]─*[^─┬┌┐]+─*(?:[┬┳].*)?[┐┓╮]\s*$")
"""Names of columns that stand in the line which draws the box: `┌─gpu─┬─used─┐`."""
_AS_ROW = str.maketrans({**dict.fromkeys("─━", " "), **dict.fromkeys("┬┳┌┏╭┐┓╮", "|")})
_NUMBERED = regex(r"\s*\d{1,7}\.\s*(?=\|)")  # a row's number before its box
_GAPS = regex(r"\s{2,}|\t")
_CELL = regex(r"\S+(?: \S+)*")
_HEADER_CELL = regex(
    r"\d{1,3}(?:\.\d{1,3})?%$|[\"']?(?:--)?(?:[^\W\d]|[_@%#])(?:[\w .,:/%@()\[\]\-#?=+&>~'’]{0,60}|[\w:]{3,100}\{.{0,400}\}|\w{2,40}(?: ?by ?\(.{1,100}\))? ?\(.{3,400}\))[\"']?$"
)
_LINE_CAP = 16 << 10
MOST_COLUMNS = 400


@dataclass(frozen=True)
class Layout:
    """How a line is cut: by a delimiter, by bars (`|`), by gaps of blanks; the names of the columns.

    `titles` are the names with what a title says of all of them; () until somebody looked for one.
    """

    cut: str  # a delimiter, "|", "  " for gaps, " " for single blanks
    names: tuple[str, ...]
    spans: tuple[tuple[int, int], ...] = ()
    inner: tuple[int, ...] = ()
    """Between bars: how many columns, apart by gaps, share each space (`| NPU     Chip | Process id |`); () = one each."""
    titles: tuple[str, ...] = ()
    each: str = ""
    """What every column but the first, a time, holds, where the columns are named after replicas: the title of a panel, and of the sheet that it exports."""

    def cells(self, line: str) -> list[str] | None:
        """The cells of a row; None for a line that is no row of this table."""
        line = line[:_LINE_CAP].rstrip("\r\n")
        if self.cut == "|":
            line = _NUMBERED.sub("", line.translate(_BOXES))
            if line.count("|") < len(self.names) - 1 or _RULE.match(line):
                return None
            quoted = '"' in line and line.lstrip()[:1] != "|"
            cells = delimited(line, "|") if quoted else _barred(line)
            if self.inner:
                cells = _within(cells, self.inner)
        elif self.cut == "  ":
            return self._by_columns(line)
        elif self.cut == " ":
            # a day and a clock under one name
            line = _DAY_AND_CLOCK.sub("T", line) if _DAY_ALONE.match(" ".join(self.names[:2])) else line
            cells = line.split(None, len(self.names) - 1)
            if self.spans and len(words := line.split()) == len(self.names) + 1 and words[0].isdigit():
                cells = words[1:]  # a printed data frame, as in `_by_columns`
            if cells and _TWO_FIGURES.match(cells[-1]):
                return None  # its columns are apart by more than a blank
        else:
            cells = delimited(line, self.cut)
        return cells if len(cells) == len(self.names) else None

    def _by_columns(self, line: str) -> list[str] | None:
        cells = _GAPS.split(line.strip())
        if self.names[0] == NAMELESS and cells[0].isdigit():
            return None  # a printed data frame: its rows are numbered, which names nothing
        if len(cells) == len(self.names):
            return cells
        if len(cells) == len(self.names) + 1 and cells[0].isdigit():
            return cells[1:]  # the rows of a printed data frame are numbered, and no header stands above their numbers
        if not line.strip() or len(cells) > len(self.names) or _RULE.match(line):
            words = line.split()
            return words if len(words) == len(self.names) else None
        found = [""] * len(self.names)
        for match in _CELL.finditer(line.expandtabs()):  # fewer than columns: some are empty
            place = max(range(len(self.spans)), key=lambda at: _overlap(self.spans[at], match.span()))
            if found[place]:
                return None
            found[place] = match[0]
        return found if len(cells) * 2 >= len(self.names) else None


_DAY_ALONE = regex(r"(?i)(?:date|time|timestamp|ts|datetime|when) (?!(?:time|clock|hour|utc)\b)")
_DAY_AND_CLOCK = regex(r"(?<=^\d{4}-\d\d-\d\d) (?=\d\d:\d\d(?::\d\d|\s))")
_TWO_FIGURES = regex(r"[\d.,]+ ?[\w/%]{0,6}\s{2,}[\d.,]+(?: ?[\w/%]{1,6})?\s*$")


def _overlap(span: tuple[int, int], other: tuple[int, int]) -> float:
    common = min(span[1], other[1]) - max(span[0], other[0])
    return float(common) if common > 0 else common / 1000


def _barred(line: str) -> list[str]:
    return [_plain(cell) for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


def _within(cells: Sequence[str], inner: Sequence[int]) -> list[str]:
    """Cells that share a space between bars, each by itself; [] for a row that is cut otherwise."""
    if len(cells) != len(inner):
        return []
    apart = [_GAPS.split(cell) if count > 1 else [cell] for cell, count in zip(cells, inner, strict=True)]
    even = all(len(parts) == count for parts, count in zip(apart, inner, strict=True))
    return [cell for parts in apart for cell in parts] if even else []


def _plain(cell: str) -> str:
    return cell.strip().strip("*`").strip()


def delimited(line: str, delimiter: str) -> list[str]:
    """The cells of a line between delimiters; [] for one whose quotes do not close."""
    if '"' in line:
        try:
            return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))]
        except (csv.Error, StopIteration):
            return []
    return [cell.strip() for cell in line.split(delimiter)]


def is_rule(line: str) -> bool:
    """Whether a line only draws: `|---|---|`, `+-----+`."""
    return bool(_RULE.match(line.translate(_BOXES)))


def layouts(line: str) -> Iterator[Layout]:
    """Ways in which a line can be the header of a table."""
    text = line[:_LINE_CAP].lstrip("\ufeff").rstrip("\r\n")
    # a comment says what prints the rows, and behind a colon their names
    text = (
        re.sub(r"^#+\s*(?:[^:|,;\t]{3,100}:\s+(?=(?:\S+\s+){3}))?(?=[A-Za-z])", "", text)
        if text.startswith("#")
        else text
    )
    plain = text.translate(_AS_ROW if _IN_RULE.match(text) else _BOXES)
    for cut in ("|", "\t", ",", ";"):
        if cut in (plain if cut == "|" else text):
            if cut != "|":
                names = _legends([_plain(cell).strip("\"'") for cell in delimited(text, cut)])
            elif any(map(_GAPS.search, names := _barred(plain))):
                apart = [_GAPS.split(cell) for cell in names]
                if _named(inner := [name for cell in apart for name in cell]):
                    yield Layout(cut, _unlike(inner), inner=tuple(map(len, apart)))
            if _named(names, cut == "|"):
                yield Layout(cut, _unlike(names))
    stripped = text.strip()
    if _GAPS.search(stripped):
        spans = [(match.start(), match.end()) for match in _CELL.finditer(text.expandtabs())]
        names = [_plain(match[0]) for match in _CELL.finditer(text.expandtabs())]
        if len(names) > 2 and _REMARK.fullmatch(names[-1]):
            spans, names = spans[:-1], names[:-1]
        if _named(names):
            yield Layout("  ", _unlike(names), tuple(spans))
            if spans[0][0] >= _INDENT:
                yield Layout("  ", (NAMELESS, *_unlike(names)), ((0, spans[0][0]), *spans))
    if " " in stripped and "," not in stripped and "|" not in stripped:
        names = stripped.split()
        if _named(names) and len(names) <= 24:
            yield Layout(" ", _unlike(names), ((0, len(text) - len(text.lstrip())),) if text[:1].isspace() else ())


_LEGEND = regex(
    r"(?P<name>[^{}]*?)\s*\{(?:__name__ ?= ?\"?(?P<series>[\w:]{3,100})\"?(?:, ?)?)?(?P<labels>(?:[A-Za-z_]\w* ?= ?[^{}]*|[\w.:/-]{1,80})?)\}"
)


def _legends(names: Sequence[str]) -> list[str]:
    """Names of columns as a panel exports them, without the labels of their series where the names tell them apart.

    >>> _legends(["Time", 'running {instance="a:8000"}', '{__name__="vllm:num_requests_waiting", job="x"}'])
    ['Time', 'running', 'vllm:num_requests_waiting{job="x"}']
    >>> _legends(["Time", "running {chat}", "queued {chat}"])
    ['Time', 'running', 'queued']
    >>> _legends(["Time", 'running {pod="a"}', 'running {pod="b"}'])
    ['Time', 'running {pod="a"}', 'running {pod="b"}']
    """
    found = []
    for name in names:
        match = _LEGEND.fullmatch(name) if name.endswith("}") else None
        if match and match["series"] and not match["name"]:
            name = f"{match['series']}{{{match['labels']}}}" if match["labels"] else match["series"]
        elif match and match["labels"] and " " in name[: len(match["name"]) + 1]:
            name = match["name"]
        found.append(name)
    return _of_one(found if len(set(found)) == len(set(names)) else list(names))


_INSTANCE = regex(r"(?P<who>[A-Za-z][A-Za-z_]{1,30}(?:[-_][A-Za-z]{1,30}){0,3}[-_]?\d{1,4}) (?P<rest>\S.{1,60})")
_DEVICE = regex(r"(?i)(?:gpu|cuda|hip|npu|device|card|rank|core|cpu)s?[-_]?\d{1,4}")
_QUEUE = regex(r"(?i)\b(?:running|waiting|queued|pending|preemptions?|kv)\b")


def _of_one(names: list[str]) -> list[str]:
    """Names of columns of which several begin with an engine's name: those of the one that tells most, without it.

    >>> _of_one(["time", "decode-0 running", "decode-0 waiting", "prefill-0 running"])
    ['time', 'running', 'waiting', 'prefill-0 running']
    >>> _of_one(["time", "GPU0 running", "GPU0 waiting"]), _of_one(["time", "web-1 rss", "web-1 mem"])
    (['time', 'GPU0 running', 'GPU0 waiting'], ['time', 'web-1 rss', 'web-1 mem'])
    """
    parts = {
        name: match for name in names if (match := _INSTANCE.fullmatch(name)) and not _DEVICE.fullmatch(match["who"])
    }
    if len(parts) < 2:
        return names
    counts = Counter(match["who"] for match in parts.values())
    who, count = counts.most_common(1)[0]
    short = [parts[name]["rest"] if name in parts and parts[name]["who"] == who else name for name in names]
    told = sum(bool(_QUEUE.search(match["rest"])) for match in parts.values() if match["who"] == who)
    return short if count >= 2 and told and len(set(short)) == len(set(names)) else names


def _named(names: Sequence[str], barred: bool = False) -> bool:
    filled = [name for name in names if name]
    return (
        2 <= len(names) <= MOST_COLUMNS
        and len(filled) >= len(names) - 1
        and all(
            (_HEADER_CELL.match(name) or (barred and at > 0 and _LOAD_CELL.match(name)))
            and len(_BARE_NUMBER.findall(name)) < _NUMBERS
            for at, name in enumerate(filled)
        )
    )


NAMELESS = "what"
"""The name of a first column above which nothing stands: it says what each row is."""
_INDENT = 4  # blanks before the first name of a header whose rows begin with what they are
_REMARK = regex(r"\([^()]{3,80}\)")
"""Behind the names of the columns, what all rows are of: `(node-2, 46068 MiB)`."""
_LOAD_CELL = regex(r"\d+(?:\.\d+)?[kK]?(?: ?(?:/|x|×|in|out|->|@) ?\d+(?:\.\d+)?[kK]?)+(?: ?(?:x|×|@) ?\d+)?$|[^ -~]$")
"""A load that heads a column between bars: `8k/1k x 32`, `4096 in`; or a sign, as `pm2` has one for restarts."""
_BARE_NUMBER = regex(r"(?<!\S)\d+(?!\S)")
_NUMBERS = 3  # `zone Normal 41022 58710 40455`: a row of figures heads no column


def _unlike(names: Sequence[str]) -> tuple[str, ...]:
    """Names of columns, each once."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} {seen[name]}?")
    return tuple(found)


# ---- pairs

_PAIR_LINE = regex(
    r"\s*(?:[-*•] +)?[\"']?(?P<name>[A-Za-z_@][\w .,/%@()\[\]:#-]{0,60}?)[\"']?(?:\s*(?:[:=]|\t)\s*|\s{2,})(?P<value>\S.{0,400}?)?\s*,?\s*$"
)
_PAIRS = regex(
    r"""(?<![\w.])([A-Za-z_@][\w.@:\[\]/%-]{0,60})=("[^"]*"|'[^']*'|[^\s,;"']*(?: (?:[KMGT]i?B|ms|s|%)(?![\w]))?)"""
)
_INFLUX = regex(
    r"^([A-Za-z_][\w:.\-]*)((?:,[\w.\-]+=(?:[^,= \\]|\\.)+)*) ((?:[\w.:\-]+=(?:\"[^\"]*\"|[^, ]+),?)+)(?: (\d{10,19}))?$"
)
_SECTION = regex(
    r"\s*(?:\[\[?(?P<a>[\w .:-]{1,40})\]\]?|(?P<b>(?:gpu|device|card|process|request|rank)s?[ #:]*\d{1,7})\s*:?|#+ (?P<c>.{1,60})|-\[ RECORD \d{1,9} \][-+]*|-{3,}|={3,}.*)\s*$",
    re.I,
)


def influx(line: str) -> dict[str, str] | None:
    """A line of Influx's protocol as a record: the measurement, tags, fields, time."""
    match = _INFLUX.match(line.strip())
    if not match:
        return None
    found: dict[str, str] = {}
    for pair in filter(None, match[2].split(",")):
        name, _, value = pair.partition("=")
        found[name] = value.replace("\\ ", " ").replace("\\,", ",")
    fields = re.findall(r'([\w.:\-]+)=("[^"]*"|[^, ]+)', match[3])
    for name, value in fields:
        bare = value.strip('"')
        found[name] = bare[:-1] if re.fullmatch(r"-?\d+[iu]", bare) else bare
    if len(fields) == 1 and fields[0][0] in ("value", "gauge", "counter", "untyped"):
        found["metric"], found["value"] = match[1], found.pop(fields[0][0])
    else:
        found["measurement"] = match[1]
    if match[4]:
        found["time"] = match[4]
    return found


def pairs(line: str) -> dict[str, str]:
    """The `key=value` pairs of a line, and a stamp before them."""
    found: dict[str, str] = {}
    first = None
    for match in _PAIRS.finditer(line[:_LINE_CAP]):
        first = match.start() if first is None else first
        found.setdefault(match[1], match[2].strip("\"'"))
    if first and len(found) > 1:
        stamp = re.match(r"[\[(]?(\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)", line)
        if stamp:
            found.setdefault("timestamp", stamp[1])
    return found


def pair_line(line: str) -> tuple[str, str | None] | None:
    """Name and value of a line `key: value` or `key = value`; None for another line."""
    match = _PAIR_LINE.match(line[:1000])
    if not match:
        return None
    value: str | None = match["value"]
    if value and value[0] == value[-1] == '"' and "\\" in value:
        value = value.replace('\\"', '"')
    return match["name"].strip(), value.strip("\"'") if value else None


_RECORD_LINE = regex(r"(?P<name>[A-Za-z_@].{0,99}?) +\|(?: (?P<value>.*))?$")


def record_line(line: str) -> tuple[str, str | None] | None:
    """Name and value of a line of psql's expanded form, `name | value`; None for another line."""
    match = _RECORD_LINE.match(line[:1000])
    return (match["name"], (match["value"] or "").strip() or None) if match else None


def section(line: str) -> str | None:
    """What a line that begins a block calls it; None for another line."""
    match = _SECTION.match(line)
    if not match:
        return None
    return (match["a"] or match["b"] or match["c"] or "").strip()
