"""Texts as people and tools hand them on, made plain again: what was put around all of a text says nothing about it.

A metrics page behind the prefix of `kubectl logs`, a manifest in a block of YAML, a table out of a web page, an output that
some agent wrote as one string of JSON: each reader would have to know all of these. They are undone here, by content alone, in
one pass before anything reads the source:

    \\ufeff at the beginning, \\r at all ends       taken off
    `[pod/a/b] `, `name | `, `> `, blanks        taken off, where every line has the same
    {"message": "..."} a line, without a time    the message
    {"hits": ...}, {"aggregations": ...}         `queries`
    output: |                                    the block, a line each
    <pre>, <table>                               text, and a row a line between bars
    codes of a terminal, a mail's =C2=A0, ||a||b||   `pasted`
    a line of dashes below a header              a row a line between bars, where cells are blank
    1M-blocks in the header of `df`              the unit behind each number
    two panes of a screen, a bar between         the left one, below it the right one
    breaks at 80, 100, 120 ... columns           the whole line stands where its first piece stood, the others are empty
    {"output": "first\\nsecond"}                  lines of their own
    first\\nsecond in a single line               lines of their own

All but the panes, answers and the last two keep every line number. A log behind a prefix stays as it is: `ingest.record.peel` takes it off line
by line and remembers who wrote it. A form is proposed by the first 64 KiB of a source.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from oomdoc.intake.pasted import is_quoted_printable, marks, unquoted
from oomdoc.intake.queries import is_answer, lines_of
from oomdoc.intake.ruled import has_blank_cells, has_blocks, unblocked, unruled
from oomdoc.intake.scan import Chunk, whole
from oomdoc.regexes import regex

CAP_BYTES = 12 << 20  # what has to be seen whole: larger ones stay as they are
_HEAD_LINES = 400
Undo = Callable[[Iterable[Chunk]], Iterator[Chunk]]


class Handed(NamedTuple):
    """How a text was handed on: what undoes it, and whether its lines are numbered anew."""

    name: str
    undo: Undo
    renumbers: bool = False


def handed(head: bytes) -> Handed | None:
    """How a source was handed on, by its first bytes; None for a text that is plain, or anything else."""
    if head.startswith(b"\xef\xbb\xbf"):
        return Handed("mark", _without_mark)
    if b"\0" in head or not head.strip():
        return None
    if is_quoted_printable(head):
        return Handed("quoted-printable", unquoted)
    if found := marks(head):
        return Handed(found[0], _by_line(found[1]))
    begin = head.lstrip()[:1]
    if begin == b"{":
        return _of_json(head)
    if begin == b"<":
        return Handed("web-page", _of_page) if _PAGE.match(head) else None
    if b"\n" not in head.rstrip() and head.count(b"\\n") >= _LEAST_SPELLED:
        return Handed("one-line", _whole(_spelled_out), renumbers=True)
    if head.count(b"\r\n") > 0.9 * head.count(b"\n"):
        return Handed("crlf", _by_line(lambda line: line.removesuffix(b"\r")))
    if rb"\begin{tabular" in head:
        return Handed("latex", _by_line(_of_latex))
    if b"--- -" in head and has_blank_cells(head):
        return Handed("ruled", unruled)
    if has_blocks(head):
        return Handed("blocks", unblocked)
    lines = _lines(head)
    if prefix := _prefix(lines):
        return Handed("prefix", _by_line(lambda line: _cut(line, prefix)))
    if _BLOCK_HEAD.match(head) and _is_block(lines):
        return Handed("yaml-block", _of_block)
    if bar := _bar(lines):
        return Handed("panes", _whole(lambda text: _one_below_the_other(text, bar)), renumbers=True)
    if width := _width(lines):
        return Handed("width", lambda pieces: _joined(pieces, width))
    return None


def _lines(head: bytes) -> list[bytes]:
    """The lines of a head that are whole and not blank."""
    lines = head.split(b"\n")
    if len(lines) > 1 and lines[-1]:
        lines = lines[:-1]
    return [line.rstrip(b"\r") for line in lines[:_HEAD_LINES] if line.strip()]


def _by_line(change: Callable[[bytes], bytes]) -> Undo:
    def undo(pieces: Iterable[Chunk]) -> Iterator[Chunk]:
        for chunk in pieces:
            lines = chunk.data.split(b"\n")
            first = 0 if chunk.at_line_start else 1
            lines[first:] = [change(line) for line in lines[first:]]
            yield chunk._replace(data=b"\n".join(lines))

    return undo


def _whole(read: Callable[[str], str | None]) -> Undo:
    """Undo a source that is one value; as it is where it is too large, or `read` cannot."""

    def undo(pieces: Iterable[Chunk]) -> Iterator[Chunk]:
        held, rest = whole(pieces, CAP_BYTES)
        if rest is not None:
            yield from held
            yield from rest
            return
        text = read(b"".join(chunk.data for chunk in held).decode("utf-8", "replace"))
        if text is None:
            yield from held
        else:
            yield Chunk(text.encode("utf-8", "replace"), 1, True)

    return undo


def _without_mark(pieces: Iterable[Chunk]) -> Iterator[Chunk]:
    for number, chunk in enumerate(pieces):
        yield chunk if number else chunk._replace(data=chunk.data.removeprefix(b"\xef\xbb\xbf"))


# ---- a prefix

_RECORD = regex(
    rb"(?:\([\w ]+ ?(?:rank=\d+)?(?: ?pid=\d+)?[^)]{0,40}\) )?(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL)\b|\[? ?\d{4}[-/]\d\d[-/]\d\d[T ][\d:]{5,8}(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]? (?! )|"
    rb"\[ *\d{1,9}\.\d{1,9}\]|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d |\s*File \"|Traceback|<\d{1,3}>|\[rank\d"
)
"""How a line of a log begins."""
_OWN_RECORD = regex(
    rb"(?:\([^)]{1,80}\) )?(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d |llama_\w{3,40}: |(?:srv|slot) +\w{3,30}: "
)
"""How an engine's own records begin: one of them makes a log, however much of it goes on with others."""
_COLOUR = regex(rb"\x1b\[[0-9;]*m")
_PREFIXES = (
    (regex(rb"\[pod/[\w.-]+/[\w.-]+\] "), 1, False),
    (regex(rb"[A-Za-z0-9][\w.-]* +\| "), 2, False),
    (regex(rb"(?:> ?)+"), 1, False),
    (regex(rb"[ \t]{1,60}(?=\S)"), 1, True),
)
"""What stands before a line, in how many lines it has to, and whether a log may lose it: blanks tell nothing."""
_LOG_SHARE = 0.2  # of the lines of a log begin a record; the others go on with one


def _prefix(lines: list[bytes]) -> bytes:
    """What stands before all lines; b"" where there is none, or where it tells which process wrote a log."""
    for pattern, least, of_logs in _PREFIXES:
        if len(lines) < least:
            continue
        if of_logs:
            indents = [len(line) - len(line.lstrip(b" \t")) for line in lines]
            found = lines[indents.index(min(indents))][: min(indents)]
        else:
            match = pattern.match(lines[0])
            found = match[0] if match else b""
        if not found or not all(line.startswith(found) or line.rstrip() == found.rstrip() for line in lines):
            continue
        bare = [_COLOUR.sub(b"", line[len(found) :]) for line in lines]
        begun = sum(1 for line in bare if _RECORD.match(line))
        if of_logs or (begun < _LOG_SHARE * len(lines) and not any(_OWN_RECORD.match(line) for line in bare)):
            return found
    return b""


def _cut(line: bytes, prefix: bytes) -> bytes:
    if line.startswith(prefix):
        return line[len(prefix) :]
    return b"" if line.rstrip() == prefix.rstrip() else line


# ---- JSON around a text

_TEXT_KEYS = ("output", "stdout", "stderr", "log", "logs", "text", "raw", "dump", "content", "body")
_MESSAGE_KEYS = ("message", "log", "msg", "line", "textPayload")
_BESIDE = frozenset(("host", "hostname", "node", "stream", "container", "container_name", "pod", "pod_name", "namespace", "file", "path", "offset", "tag", "source", "service"))  # fmt: skip
_OF_USERS = frozenset(("prompt", "messages", "role", "model", "choices", "usage", "apiVersion", "kind"))
_TIMED = regex(rb'"(?:time|timestamp|@timestamp|ts|date)"\s*:')
_STRING_KEY = regex(rb'"(?:' + "|".join(_TEXT_KEYS).encode() + rb')"\s*:\s*"')


def _of_json(head: bytes) -> Handed | None:
    if is_answer(head):
        return Handed("answer", _whole(lines_of), renumbers=True)
    lines = _lines(head)
    found = [_message(line) for line in lines[:40]]
    if found and all(message is not None for message in found):
        begun = sum(1 for message in found if _RECORD.match((message or "").encode()) or (message or "").startswith("{"))  # fmt: skip
        return Handed("messages", _by_line(_told)) if begun < _LOG_SHARE * len(found) else None
    if _STRING_KEY.search(head) and (head.count(b"\\n") >= _LEAST_SPELLED or not _TIMED.search(head)):
        return Handed("json-string", _whole(_strings), renumbers=True)
    return None


def _message(line: bytes) -> str | None:
    """The text of a line that is an object with nothing beside it but where it comes from; None for another line."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    texts = [value[key] for key in _MESSAGE_KEYS if isinstance(value.get(key), str)]
    if len(texts) != 1 or not set(value) <= {*_MESSAGE_KEYS, *_BESIDE} or not ({*value} & _BESIDE or len(value) == 1):
        return None
    return str(texts[0])


def _told(line: bytes) -> bytes:
    message = _message(line) if line.strip() else ""
    return line if message is None else message.rstrip("\r\n").replace("\n", " ").encode("utf-8", "replace")


def _strings(text: str) -> str | None:
    """The texts of several lines in an object that holds nothing else of size."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or set(value) & _OF_USERS:
        return None
    if any(isinstance(entry, (dict, list)) for entry in value.values()):
        return None
    found = [value[key] for key in _TEXT_KEYS if isinstance(value.get(key), str) and "\n" in value[key]]
    return "\n".join(entry if entry.endswith("\n") else entry + "\n" for entry in found) if found else None


# ---- a single line

_LEAST_SPELLED = 2  # `\n` in letters: one may be a setting of some format
_SPELLED = regex(r"\\([nrt\"])")


def _spelled_out(text: str) -> str | None:
    meant = {"n": "\n", "t": "\t", "r": "", '"': '"'}
    body = text.strip()
    if body[:1] == body[-1:] == '"':
        body = body[1:-1]
    return _SPELLED.sub(lambda match: meant[match[1]], body) + "\n"


# ---- a block of YAML

_BLOCK_HEAD = regex(
    rb"(?:(?:---|#.*|(?!apiVersion|kind)[\w.-]{1,60}: [^|>\n]{0,200})?\r?\n){0,12}(?:" + "|".join(_TEXT_KEYS).encode() + rb"): [|>][-+\d]{0,2}\r?\n"
)  # fmt: skip


def _is_block(lines: list[bytes]) -> bool:
    """Whether all that follows the key stands below it."""
    at = next((at for at, line in enumerate(lines) if re.match(rb"\w+: [|>][-+\d]{0,2}$", line)), None)
    return at is not None and at + 1 < len(lines) and all(line[:1] == b" " for line in lines[at + 1 :])


def _of_block(pieces: Iterable[Chunk]) -> Iterator[Chunk]:
    indent: bytes | None = None
    for chunk in pieces:
        out = []
        for line in chunk.data.split(b"\n"):
            if indent is None and line[:1] == b" ":
                indent = line[: len(line) - len(line.lstrip(b" "))]
            out.append(_cut(line, indent) if indent else b"")  # what stands above the block tells of the collector
        yield chunk._replace(data=b"\n".join(out))


# ---- a page

_PAGE = regex(
    rb"\s*<(?:!doctype html|html|body|div|pre|table)\b|\s*<\?xml[^<>]*>\s*(?:<\?mso[^<>]*>\s*)?<Workbook\b", re.I
)


def _of_page(pieces: Iterable[Chunk]) -> Iterator[Chunk]:
    from oomdoc.intake.page import text_of_page  # the parser, which few bundles need

    yield from _whole(text_of_page)(pieces)


# ---- a table of LaTeX

_SPACES = regex(rb"\\[,;:! ]|~")  # between groups of digits, and behind an abbreviation
_STYLED = regex(rb"\\(?:textbf|textit|emph|texttt|text|mathbf)\{([^{}]*)\}")


def _of_latex(line: bytes) -> bytes:
    r"""A row of a table between bars; any other line as it is.

    >>> _of_latex(rb"\textbf{16} & 2\,911 & 51.0\% \\"), _of_latex(rb"\toprule"), _of_latex(rb"five kinds")
    (b'| 16 | 2911 | 51.0% |', b'', b'five kinds')
    """
    row = line.strip()
    if row in (rb"\toprule", rb"\midrule", rb"\bottomrule", rb"\hline"):
        return b""
    if b"&" not in row or not row.endswith(rb"\\"):
        return line
    cells = _SPACES.sub(b"", _STYLED.sub(rb"\1", row.removesuffix(rb"\\"))).replace(rb"\%", b"%").split(b"&")
    return b"| " + b" | ".join(cell.strip() for cell in cells) + b" |"


# ---- two panes

_BARS = "│┃"
_JOINTS = "├┤┝┥┠┨"  # where a pane is split once more
_OF_TABLES = frozenset("┼╋║┌└╭╰")
_LEFT_PANE = 30  # columns it has at least: what lists lines or keys before a bar has fewer
_LEAST_SPLIT, _SPLIT_SHARE = 5, 0.7  # lines with the bar, of all


def _bar(lines: list[bytes]) -> int:
    """The column of a bar that splits a screen in two, and stands in no table; 0 for a text without."""
    rows = [line.decode("utf-8", "replace") for line in lines]
    places = [at for row in rows if (at := next((at for at, letter in enumerate(row) if letter in _BARS), -1)) >= 0]
    bar = max(set(places), key=places.count, default=0)
    split = [row for row in rows if row[bar : bar + 1] in (*_BARS, *_JOINTS)]
    if bar < _LEFT_PANE or len(split) < max(_LEAST_SPLIT, _SPLIT_SHARE * len(rows)):
        return 0
    if _OF_TABLES & set("".join(rows)) or any(sum(map(row.count, _BARS)) > 1 for row in split):
        return 0
    touching = any(not row[bar - 1].isspace() for row in split)  # a line goes on up to the bar, which no cell does
    sides = [sum(bool(row[:bar].strip()) for row in split), sum(bool(row[bar + 1 :].strip()) for row in split)]
    return bar if touching and min(sides) > 1 else 0


def _one_below_the_other(text: str, bar: int) -> str:
    left: list[bytes] = []
    right: list[str] = []
    for row in text.split("\n"):
        split = row[bar : bar + 1] in (*_BARS, *_JOINTS) and len(row) > bar
        shown = row[:bar].rstrip() if split else row
        left.append((shown + " " if len(shown) == bar - 1 else shown).encode("utf-8", "replace"))
        right.append(row[bar + 1 :].strip("─━ ") if split and row[bar] in _JOINTS else row[bar + 1 :] if split else "")
    whole_lines = b"".join(chunk.data for chunk in _joined([Chunk(b"\n".join(left), 1, True)], bar))
    return whole_lines.decode("utf-8", "replace") + "\n" + "\n".join(right) + "\n"


# ---- breaks at a width

_WIDTHS = (72, 76, 78, 79, 80, 90, 99, 100, 110, 119, 120, 130, 132, 139, 140, 150, 160, 180, 200, 240, 250)
"""Widths of terminals and of forms that people set: two breaks show one of them."""
_NARROWEST, _WIDEST = 60, 300
_LEAST_BREAKS = 2
_LEAST_BREAKS_ANYWHERE = 4  # at any other width: a window that somebody drew
_LEAST_WORDS = 2  # that were cut in two
_ALIKE = 8  # characters by which two rows of a table begin alike
_WHOLE_SAMPLE = regex(rb"[A-Za-z_:][\w:]*\{[^\n]*\} [-+\w.]+( \d+)?$")  # of Prometheus' text: it ends where it ends
_MOMENT = regex(
    rb"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?\s*$"
)  # alone: what was printed then follows
_ALIGNED = 3  # cells that end below each other: rows of a table, as `free` prints them, and no line that was broken
_CELL = regex(rb"\S+(?: \S+)*(?=  |$)")
_SHAPE = bytes.maketrans(b"0123456789", b"0" * 10)
_VALUE = regex(rb"[^\s,;]+")
_DELIMITERS = 2  # between three cells: rows of one form are rows, whatever stands in them


def _width(lines: list[bytes]) -> int:
    """The column at which every longer line was broken; 0 for a text that was not."""
    longest = max((len(line.decode("utf-8", "replace")) for line in lines), default=0)
    if not _NARROWEST <= longest <= _WIDEST:
        return 0
    least = _LEAST_BREAKS if longest in _WIDTHS else _LEAST_BREAKS_ANYWHERE
    full = [at for at, line in enumerate(lines[:-1]) if len(line) == longest]
    cut = sum(1 for at in full if _is_broken(lines[at], lines[at + 1], longest))
    if cut < least or cut < 0.7 * len(full):
        return 0
    words = sum(1 for at in full if lines[at][-1:].isalnum() and lines[at + 1][:1].isalnum())
    return longest if words >= _LEAST_WORDS else 0


def _is_broken(line: bytes, following: bytes, width: int) -> bool:
    """Whether the second line goes on with the first."""
    if (
        len(line.decode("utf-8", "replace")) != width
        or line[:1] in b"|+"
        or _RECORD.match(following)
        or _MOMENT.match(following)
    ):
        return False
    if _WHOLE_SAMPLE.match(line) and _WHOLE_SAMPLE.match(following):
        return False  # the longest line of a scrape comes once in each of them, and is as long each time
    if len(_ends(line) & _ends(following)) >= _ALIGNED:
        return False
    form = _VALUE.sub(b"", line)
    if len(form.replace(b" ", b"")) >= _DELIMITERS and form == _VALUE.sub(b"", following):
        return False
    return line[:_ALIKE].translate(_SHAPE) != following[:_ALIKE].translate(_SHAPE)


def _ends(line: bytes) -> set[int]:
    """Where the cells of a line end, if it is a row whose cells are apart by gaps."""
    return {found.end() for found in _CELL.finditer(line)}


def _joined(pieces: Iterable[Chunk], width: int) -> Iterator[Chunk]:
    for chunk in pieces:
        lines = chunk.data.split(b"\n")
        at = 0
        while at < len(lines):
            end = at
            while end + 1 < len(lines) and lines[end + 1] and _is_broken(lines[end], lines[end + 1], width):
                end += 1
            if end > at:
                lines[at] = b"".join(lines[at : end + 1])
                lines[at + 1 : end + 1] = [b""] * (end - at)
            at = end + 1
        yield chunk._replace(data=b"\n".join(lines))
