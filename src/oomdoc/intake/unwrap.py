"""Lines that a collector cut, turned round or put into one document become lines of a log again.

`ingest.record.peel` takes off what stands before a line. What concerns several lines is undone here, on the chunks of a
source before anything reads them, told by content alone:

    CRI `P` lines and docker's 16 KiB pieces    the whole line stands where its first piece stood, the others are empty
    `journalctl -o json`, bytes as numbers      text again
    `journalctl -o export`                      one entry a line, as `-o short-iso` prints it
    Loki, Grafana, CloudWatch, Cloud Logging    one entry a line, oldest first
    a sheet of a log viewer, newest line first  the same
    UTF-16                                      UTF-8
    what people put around a text               see `handed`

The first two keep every line number. The others have lines of their own, and `oomdoc show` counts the same way (`numbered`).
`entries` reads the documents.
"""

from __future__ import annotations

import codecs
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, NamedTuple, cast

from oomdoc.intake.entries import (
    LINES_CAP_BYTES,
    Note,
    document,
    is_sheet_to_order,
    journal_export,
    listed_entries,
    loki,
    loki_lines,
    sheet,
)
from oomdoc.intake.handed import Handed, handed
from oomdoc.intake.scan import Chunk, chunks
from oomdoc.regexes import regex

HEAD_BYTES = 64 << 10
_PIECES_CAP_BYTES = 4 << 20  # of one line that was cut: what `scan` holds of a line at most

_CRI = regex(rb"(?P<stamp>\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)) (?P<stream>stdout|stderr) (?P<tag>[FP])(?: |$)")
_CRI_PARTIAL = regex(rb" std(?:out|err) P ")
_DOCKER_HEAD = regex(rb'\{"log": ?"(?:[^"\\\n]|\\.)*", ?"stream": ?"std')
_DOCKER_END = regex(rb'\\n", ?"stream": ?"std')
_DOCKER_PARTIAL = regex(rb'(?<!\\n)", ?"stream": ?"std(?:out|err)"')
_DOCKER = regex(rb'\{"log": ?"(?P<log>(?:[^"\\]|\\.)*)"(?P<rest>, ?"stream": ?"(?P<stream>\w+)".*)', re.S)
_EXPORT_HEAD = regex(rb"\A(?:[A-Z_][A-Z0-9_]*=[^\n]*\n){0,40}?__REALTIME_TIMESTAMP=\d+\n")
_BYTES = regex(rb'"MESSAGE"\s*:\s*\[\s*\d')
_LOKI_LINE = regex(rb'\{(?=[^\n]*"labels":)(?=[^\n]*"line": ?")[^\n]*"timestamp": ?"')
_INSIGHTS = regex(rb"\A(?:\xef\xbb\xbf)?\"?@timestamp\"?,(?:\"?@?\w+\"?,)*\"?@message\"?")
_SHEET = regex(
    rb"\A(?:\xef\xbb\xbf)?(?=[^\n]{0,400}\b(?:line|message|log|msg|textPayload|body|content)\b)[^\n,]{1,40},[^\n]{1,400}\n",
    re.I,
)


def _silent(why: str) -> None:
    pass


class _Form(NamedTuple):
    """How a source is wrapped: what undoes it, and whether its lines are numbered anew."""

    name: str
    undo: Callable[[Iterable[Chunk], Note], Iterator[Chunk]]
    renumbers: bool = False


def unwrap(pieces: Iterable[Chunk], note: Note = _silent, form: str | None = None) -> Iterator[Chunk]:
    """The chunks of a source with its collector's cuts and documents undone; most sources come back as they are.

    `note` is told why a document could not be undone. `form` is how the source is wrapped, where `lasting_form` told it of
    its beginning and these pieces are a later part.
    """
    if form is not None:
        yield from _LASTING[form].undo(pieces, note) if form else pieces
        return
    stream = iter(pieces)
    first = next(stream, None)
    if first is None:
        return
    yield from _unwrapped(first, stream, note)


def lasting_form(head: bytes) -> str | None:
    """How a source is wrapped by its first bytes, if any run of its lines can be undone by itself and keeps its numbers.

    "" for one that is not wrapped, None for one that has to be read from its beginning.
    """
    form = _form(head[:HEAD_BYTES])
    return "" if form is None else form.name if form.name in _LASTING else None


def _unwrapped(first: Chunk, stream: Iterator[Chunk], note: Note) -> Iterator[Chunk]:
    held, size = [first], len(first.data)
    while size < HEAD_BYTES and (more := next(stream, None)) is not None:  # before a long line a chunk may be short
        held.append(more)
        size += len(more.data)
    form = _form(b"".join(chunk.data for chunk in held)[:HEAD_BYTES] if len(held) > 1 else first.data[:HEAD_BYTES])
    pieces = itertools.chain(held, stream)
    if form is None:
        yield from pieces
    else:
        yield from form.undo(pieces, note)


def numbered(stream: BinaryIO) -> BinaryIO:
    """A source as its lines are counted in references: itself, or, where `unwrap` numbers anew, what that gives."""
    head = stream.peek(HEAD_BYTES) if hasattr(stream, "peek") else b""
    form = _form(head[:HEAD_BYTES])
    if form is None or not form.renumbers:
        return stream
    return cast(BinaryIO, _Undone(form.undo(chunks(stream), _silent)))


class _Undone:
    """Chunks as a stream to read from."""

    def __init__(self, pieces: Iterator[Chunk]) -> None:
        self._pieces = pieces

    def read(self, size: int = -1) -> bytes:
        """The next piece, whatever its size; b"" at the end."""
        return next((piece.data for piece in self._pieces if piece.data), b"")


def _form(head: bytes) -> _Form | None:
    if head.startswith(_UTF16) or (b"\0" in head and _halves(head)):
        return _Form("utf-16", _decoded, renumbers=True)
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    form = None
    if start.isdigit() and b"\n" in head.rstrip():
        form = _cri(head) if _CRI.match(head) else None
    elif start == b"_" and _EXPORT_HEAD.match(head):
        form = _Form("journal-export", journal_export, renumbers=True)
    elif start in b"{[" and start:
        form = _json_form(head, start)
    elif start in b'@"' and _INSIGHTS.match(head):
        form = _Form("cloudwatch-insights", document(sheet, True, LINES_CAP_BYTES), renumbers=True)
    elif _SHEET.match(head) and is_sheet_to_order(head):
        form = _Form("sheet", document(sheet, True, LINES_CAP_BYTES), renumbers=True)
    return form or _handed(head)


def _cri(head: bytes) -> _Form:
    """A collector's log, whose lines somebody may have broken at a width afterwards: these are joined first."""
    lasting, broken = _LASTING["cri"], handed(head)
    if broken is None or broken.name != "width":
        return lasting

    def undo(pieces: Iterable[Chunk], note: Note) -> Iterator[Chunk]:
        yield from lasting.undo(broken.undo(pieces), note)

    return _Form(f"{broken.name}+{lasting.name}", undo)


_LAYERS = 4  # a sheet in a mail of a page of a console: deeper ones were never seen, and each costs a look at the head


def _handed(head: bytes) -> _Form | None:
    """How people handed a text on, several ways one in the other: a page's table behind a prefix."""
    layers: list[Handed] = []
    while len(layers) < _LAYERS and (found := handed(head)):
        layers.append(found)
        inner = b"".join(chunk.data for chunk in found.undo(iter((Chunk(head, 1, True),))))
        if inner == head:
            break  # a document of which only the beginning is here
        head = inner
    if not layers:
        return None

    def undo(pieces: Iterable[Chunk], note: Note) -> Iterator[Chunk]:
        for layer in layers:
            pieces = layer.undo(pieces)
        yield from pieces

    return _Form("+".join(layer.name for layer in layers), undo, any(layer.renumbers for layer in layers))


def _json_form(head: bytes, start: bytes) -> _Form | None:
    # some agents drop the newline at each end: without one anywhere nothing says which records are pieces
    if start == b"{" and _DOCKER_HEAD.match(head.lstrip()) and _DOCKER_END.search(head):
        return _LASTING["docker"]
    if start == b"{" and b'"__REALTIME_TIMESTAMP"' in head and b'"MESSAGE"' in head:
        return _LASTING["journal-json"]
    if start == b"{" and (_LOKI_LINE.match(head) or _WITHIN.match(head)):
        return _Form("loki-lines", document(loki_lines, True, LINES_CAP_BYTES), renumbers=True)
    if start == b"{" and b'"values"' in head and (b'"streams"' in head or b'"stream"' in head):
        return _Form("loki", document(loki, newest_first=True), renumbers=True)
    if start == b"{" and _CLOUDWATCH.match(head) and b'"message"' in head:
        return _Form("cloudwatch", document(listed_entries), renumbers=True)
    keys = rb'"(?:line|textPayload|message|log)"\s*:\s*"'
    if start == b"[" and re.search(keys, head) and re.search(rb'"(?:timestamp|time|@timestamp|ts)"\s*:', head):
        return _Form("entries", document(listed_entries), renumbers=True)
    return None


_CLOUDWATCH = regex(
    rb'\s*\{\s*(?:"(?:searchedLogStreams|nextForwardToken|nextBackwardToken|nextToken)"\s*:\s*(?:\[[^\[\]]{0,4000}\]|"[^"]{0,400}")\s*,\s*){0,4}"events"\s*:\s*\['
)
"""`aws logs get-log-events` and `filter-log-events`: members of an object have no order."""
_WITHIN = regex(
    rb'\s*\{[^{}\n]{0,400}"(?:attributes|_source|result|content)"\s*:\s*\{(?=[^\n]*"(?:@?timestamp|_time|time)"\s*:)[^\n]*"(?:message|log|line|_raw)"\s*:\s*"[^\n]*\}\s*\n\s*\{'
)
"""Two lines at least whose entry lies within an object: exports of Datadog, Elasticsearch and Splunk."""


_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def _halves(head: bytes) -> str:
    """The byte order of UTF-16 without a mark: every other byte of ASCII text is NUL; "" for anything else."""
    even, odd = head[::2].count(0), head[1::2].count(0)
    if max(even, odd) < 0.35 * len(head) or min(even, odd) > 0.02 * len(head):
        return ""
    return "utf-16-le" if odd > even else "utf-16-be"


def _decoded(pieces: Iterable[Chunk], note: Note) -> Iterator[Chunk]:
    """UTF-16 (what PowerShell writes with `>`) as UTF-8; half a character at the end of a chunk waits for its other half."""
    decoder: codecs.IncrementalDecoder | None = None
    line, begun = 1, True
    for chunk in pieces:
        if decoder is None:
            marked = chunk.data.startswith(_UTF16)
            name = "utf-16" if marked else _halves(chunk.data[:HEAD_BYTES]) or "utf-16-le"
            decoder = codecs.getincrementaldecoder(name)("replace")
        data = decoder.decode(chunk.data).encode("utf-8", "replace")
        if data:
            yield Chunk(data, line, begun)
            line += data.count(b"\n")
            begun = data.endswith(b"\n")


# ---- line numbers stay


def _join_cri(pieces: Iterable[Chunk], note: Note) -> Iterator[Chunk]:
    def piece(line: bytes) -> tuple[bytes, bytes, bytes, bool] | None:
        found = _CRI.match(line)
        return (
            (found["stream"], line[: found.start("tag")] + b"F ", line[found.end() :], found["tag"] == b"P")
            if found
            else None
        )

    return _joined(pieces, _CRI_PARTIAL, piece, lambda head, body: head + body)


def _join_docker(pieces: Iterable[Chunk], note: Note) -> Iterator[Chunk]:
    def piece(line: bytes) -> tuple[bytes, bytes, bytes, bool] | None:
        found = _DOCKER.match(line)
        return (found["stream"], found["rest"], found["log"], not found["log"].endswith(rb"\n")) if found else None

    return _joined(pieces, _DOCKER_PARTIAL, piece, lambda rest, body: b'{"log":"' + body + b'"' + rest)


def _joined(
    pieces: Iterable[Chunk],
    partial: re.Pattern[bytes],
    piece: Callable[[bytes], tuple[bytes, bytes, bytes, bool] | None],
    whole: Callable[[bytes, bytes], bytes],
) -> Iterator[Chunk]:
    """Pieces of one stream (stdout, stderr) joined on the line of the first; chunks without any pass untouched.

    What a chunk ends within is held back with the lines behind it, so that no line is missed, up to `_PIECES_CAP_BYTES`.
    """
    held: list[bytes] = []
    held_line, held_bytes = 0, 0
    for chunk in pieces:
        if not held and not partial.search(chunk.data):
            yield chunk
            continue
        if not held:
            held_line = chunk.first_line
        held.append(chunk.data)
        held_bytes += len(chunk.data)
        data, open_ = _join(b"".join(held) if len(held) > 1 else chunk.data, piece, whole)
        if not open_ or held_bytes > _PIECES_CAP_BYTES:
            yield Chunk(data, held_line, chunk.at_line_start or len(held) > 1)
            held, held_bytes = [], 0
    if held:
        yield Chunk(_join(b"".join(held), piece, whole)[0], held_line, True)


def _join(
    data: bytes,
    piece: Callable[[bytes], tuple[bytes, bytes, bytes, bool] | None],
    whole: Callable[[bytes, bytes], bytes],
) -> tuple[bytes, bool]:
    """The text with its pieces joined, and whether a line is still open at its end."""
    lines = data.split(b"\n")
    began: dict[bytes, tuple[int, bytes, list[bytes]]] = {}
    for place, line in enumerate(lines):
        found = piece(line)
        if found is None:
            continue
        stream, head, body, partial = found
        if stream in began:
            began[stream][2].append(body)
            lines[place] = b""
            if not partial:
                at, first, bodies = began.pop(stream)
                lines[at] = whole(first, b"".join(bodies))
        elif partial:
            began[stream] = (place, head, [body])
    for at, first, bodies in began.values():
        lines[at] = whole(first, b"".join(bodies))
    return b"\n".join(lines), bool(began)


def _numbers(pieces: Iterable[Chunk], note: Note) -> Iterator[Chunk]:
    """journald writes what is no printable text as an array of bytes: colours, carriage returns."""
    for chunk in pieces:
        if not _BYTES.search(chunk.data):
            yield chunk
            continue
        lines = chunk.data.split(b"\n")
        yield chunk._replace(data=b"\n".join(_as_text(line) if _BYTES.search(line) else line for line in lines))


def _as_text(line: bytes) -> bytes:
    try:
        value = json.loads(line)
        message = bytes(value["MESSAGE"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return line
    value["MESSAGE"] = message.decode("utf-8", "replace")
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


_LASTING = {
    form.name: form
    for form in (_Form("cri", _join_cri), _Form("docker", _join_docker), _Form("journal-json", _numbers))
}
