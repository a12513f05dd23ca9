"""The lines behind a `path:line` that a report cites, straight from the bundle, streamed up to the last line wanted.

It knows how to open a bundle and how to count physical lines, nothing about what they say. The text is as it stands in
the bundle: whoever prints it makes it harmless first.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from oomdoc.errors import BundleError, UsageError
from oomdoc.evidence.tables import path_of
from oomdoc.regexes import regex

BLOCK_BYTES = 1 << 20
LINE_BYTES = 8_000  # of a line that was asked for; an engine's configuration line has some 5,000
CONTEXT_BYTES = 400  # of a line around it

MOST_LINES = 12  # of one reference in a report
MASK = "***"
# `name: value`, `name=value`, `--name value`; figures, None and the like are no secrets
_NAMED_SECRET = regex(
    r"""(?P<head>(?:--[\w-]{0,40}?|\b(?:\w{0,40}_)?)(?:api[_-]?key|secret(?:[_-]key)?|passw(?:or)?d|credentials?|token|authorization)"""
    r"""(?:["']?\s{0,3}[:=]\s{0,3}["']?|(?<=-key)\s{1,3}|(?<=token)\s{1,3}(?=[A-Z0-9_-]{16})))"""
    r"""(?!(?:[\d.]+|None|null|True|False|Bearer)\b)[^\s"',;)}\]]{4,400}""",
    re.I,
)
_BARE_SECRET = regex(r"\b(?:hf_|sk-|ghp_|glpat-|AKIA|xox[bp]-)[A-Za-z0-9_-]{10,200}|(?<=Bearer )[\w.~+/=-]{8,2000}")

_REF = regex(r"(?P<path>.+?):(?P<first>\d+)(?:-(?P<last>\d+))?")


class Excerpt(NamedTuple):
    """Lines of one source: its full path, the first and last line asked for, and (number, text) with the context."""

    path: str
    first: int
    last: int
    lines: tuple[tuple[int, str], ...]


def parse_ref(ref: str) -> tuple[str, int, int]:
    """Path, first and last line of `path:line` or `path:first-last`; UsageError for anything else.

    >>> parse_ref("pods/a.log:812"), parse_ref("a:b.log:3-9")
    (('pods/a.log', 812, 812), ('a:b.log', 3, 9))
    """
    match = _REF.fullmatch(ref)
    if not match or int(match["first"]) < 1 or int(match["last"] or match["first"]) < int(match["first"]):
        raise UsageError(f"'{ref}' is no place in a source", "Write path:line or path:first-last, as reports cite it")
    first = int(match["first"])
    return match["path"], first, int(match["last"] or first)


def lines(paths: Sequence[str | Path], ref: str, context: int = 3) -> Excerpt:
    """The lines of `ref` with `context` lines before and after; a path may leave out its first folders if it is unique.

    UsageError where no source has that name (the nearest ones are named) or the source ends before; BundleError where
    the bundle cannot be read.
    """
    from oomdoc.intake.bundle import open_bundle
    from oomdoc.intake.unwrap import numbered

    wanted, first, last = parse_ref(ref)
    names = {wanted, path_of(wanted)}  # a file of that name goes before a writer's part of another
    part: tuple[list[tuple[int, str]], int] | None = None
    begin, end = max(1, first - context), last + context
    seen: list[str] = []
    alike: list[tuple[str, list[tuple[int, str]], int]] = []
    for member in open_bundle(list(paths), hashing=False).members():
        seen.append(member.path)
        if member.path in names:
            taken = _take(numbered(member.stream), [(begin, end)], range(first, last + 1))
            if member.path == wanted:
                return _excerpt(member.path, first, last, *taken)
            part = taken
        elif member.path.endswith(tuple("/" + name.lstrip("/") for name in names)):
            taken = _take(numbered(member.stream), [(begin, end)], range(first, last + 1))
            alike.append((member.path, *taken))
    if part:
        return _excerpt(path_of(wanted), first, last, *part)
    if len(alike) == 1:
        path, found, total = alike[0]
        return _excerpt(path, first, last, found, total)
    if alike:
        raise UsageError(
            f"several sources end with '{wanted}'", f"Name one in full: {_some([path for path, _, _ in alike])}"
        )
    if not seen:
        raise BundleError(
            f"nothing readable in {', '.join(map(str, paths))}", "Give the bundle that the report was made from"
        )
    near = difflib.get_close_matches(wanted, seen, 3, 0.5)
    last_parts = {path.rsplit("/", 1)[-1]: path for path in reversed(seen)}
    near += [
        last_parts[name] for name in difflib.get_close_matches(wanted.rsplit("/", 1)[-1], list(last_parts), 3, 0.7)
    ]
    hint = f"The nearest are {_some(list(dict.fromkeys(near)))}" if near else f"It holds {_some(seen)}"
    raise UsageError(f"no source '{wanted}' in this bundle", hint)


def _some(names: Sequence[str], shown: int = 5) -> str:
    rest = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(f"'{name}'" for name in names[:shown]) + rest


def _excerpt(path: str, first: int, last: int, found: list[tuple[int, str]], total: int) -> Excerpt:
    if not any(first <= number <= last for number, _ in found):
        has = "1 line" if total == 1 else f"{total:,} lines"
        raise UsageError(f"{path} has {has}, there is no line {first:,}", "Was the report made from another bundle?")
    return Excerpt(path, first, last, tuple(found))


def excerpts(paths: Sequence[str | Path], refs: Iterable[str], context: int = 2) -> dict[str, Excerpt]:
    """The lines of many references in one pass, with secrets masked; a reference that names no line has none.

    They travel with reports, which are sent on: what looks like a key or a password is replaced by `MASK`.
    """
    from oomdoc.intake.bundle import open_bundle
    from oomdoc.intake.unwrap import numbered

    places: dict[str, list[tuple[str, int, int]]] = {}
    for ref in dict.fromkeys(refs):
        if match := _REF.fullmatch(ref):
            first = int(match["first"])
            places.setdefault(match["path"], []).append((ref, first, int(match["last"] or first)))
    told: dict[str, Excerpt] = {}
    for member in open_bundle(list(paths), hashing=False).members() if places else ():
        parts = [path for path in places if path != member.path and path_of(path) == member.path]
        wanted = [place for source in parts for place in places[source]] + places.pop(member.path, [])
        if wanted:
            spans = _joined((max(1, first - context), last + context) for _, first, last in wanted)
            asked = {line for _, first, last in wanted for line in range(first, min(last, first + MOST_LINES) + 1)}
            found, _ = _take(numbered(member.stream), spans, asked)
            for ref, first, last in wanted:
                near = [(line, mask(text)) for line, text in found if first - context <= line <= last + context]
                # a file of that name goes before a writer's part of another, wherever it stands in the bundle
                own = ref.startswith(f"{member.path}:")
                if any(first <= line <= last for line, _ in near) and (own or ref not in told):
                    told[ref] = Excerpt(member.path, first, last, tuple(near[: MOST_LINES + context]))
        if not places:
            break
    return told


def mask(text: str) -> str:
    """The text with the values of keys, passwords and tokens replaced; counts of tokens stay.

    >>> mask("--api-key s3cr3t-value --max-tokens 16"), mask("'hf_token': 'hf_abcdefghijkl', 'n': 3"), mask("first_token=0.31 s")
    ('--api-key *** --max-tokens 16', "'hf_token': '***', 'n': 3", 'first_token=0.31 s')
    """
    return _NAMED_SECRET.sub(lambda match: match["head"] + MASK, _BARE_SECRET.sub(MASK, text))


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same lines as ranges that do not meet, in order."""
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((begin, end))
    return joined


def _take(
    stream: BinaryIO, spans: Sequence[tuple[int, int]], asked: Container[int]
) -> tuple[list[tuple[int, str]], int]:
    """The lines of `spans` (1-based, in order, apart) with their numbers, and how many lines were passed until the reading stopped.

    Lines that are `asked` for keep more of their text than those around them.
    """
    found: list[tuple[int, str]] = []
    rest = list(spans)
    number, held, size, open_line = 1, bytearray(), 0, False
    for block in _blocks(stream):
        newlines = block.count(b"\n")
        if number + newlines < rest[0][0]:  # no line that is wanted begins here
            number += newlines
            open_line = not block.endswith(b"\n")
            continue
        at = 0
        while at < len(block):
            stop = block.find(b"\n", at)
            piece_end = len(block) if stop < 0 else stop
            if number >= rest[0][0]:
                cap = LINE_BYTES if number in asked else CONTEXT_BYTES
                held += block[at : min(piece_end, at + max(cap - len(held), 0))]
                size += piece_end - at
            if stop < 0:
                open_line = True
                break
            if number >= rest[0][0]:
                found.append((number, _text(bytes(held), size)))
                if number == rest[0][1]:
                    rest.pop(0)
                    if not rest:
                        return found, number
            held, size, open_line = bytearray(), 0, False
            number += 1
            at = stop + 1
    if open_line and number >= rest[0][0]:
        found.append((number, _text(bytes(held), size)))
    return found, number - (0 if open_line else 1)


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    while block := stream.read(BLOCK_BYTES):
        yield block


def _text(data: bytes, size: int) -> str:
    text = data.decode("utf-8", "replace").rstrip("\r")
    return text + (f" … ({size - len(data):,} more bytes)" if size > len(data) else "")
