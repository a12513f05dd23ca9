"""The lines behind a `path:line` that a report cites, straight from the bundle, streamed up to the last line wanted.

It knows how to open a bundle and how to count physical lines, nothing about what they say. The text is as it stands in
the bundle: whoever prints it makes it harmless first.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from oomdoc.errors import BundleError, UsageError

BLOCK_BYTES = 1 << 20
LINE_BYTES = 8_000  # of a line that was asked for; an engine's configuration line has some 5,000
CONTEXT_BYTES = 400  # of a line around it

_REF = re.compile(r"(?P<path>.+?):(?P<first>\d+)(?:-(?P<last>\d+))?")


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
    from oomdoc.bundle import open_bundle
    from oomdoc.unwrap import numbered

    wanted, first, last = parse_ref(ref)
    begin, end = max(1, first - context), last + context
    seen: list[str] = []
    alike: list[tuple[str, list[tuple[int, str]], int]] = []
    for member in open_bundle(list(paths), hashing=False).members():
        seen.append(member.path)
        if member.path == wanted:
            found, total = _take(numbered(member.stream), begin, end, first, last)
            return _excerpt(member.path, first, last, found, total)
        if member.path.endswith("/" + wanted.lstrip("/")):
            alike.append((member.path, *_take(numbered(member.stream), begin, end, first, last)))
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
    names = {path.rsplit("/", 1)[-1]: path for path in reversed(seen)}
    near += [names[name] for name in difflib.get_close_matches(wanted.rsplit("/", 1)[-1], list(names), 3, 0.7)]
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


def _take(stream: BinaryIO, begin: int, end: int, first: int, last: int) -> tuple[list[tuple[int, str]], int]:
    """Lines `begin` to `end` (1-based) with their numbers, and how many lines were passed until the reading stopped."""
    found: list[tuple[int, str]] = []
    number, held, size, open_line = 1, bytearray(), 0, False
    for block in _blocks(stream):
        newlines = block.count(b"\n")
        if number + newlines < begin:  # no line that is wanted begins here
            number += newlines
            open_line = not block.endswith(b"\n")
            continue
        at = 0
        while at < len(block):
            stop = block.find(b"\n", at)
            piece_end = len(block) if stop < 0 else stop
            if number >= begin:
                cap = LINE_BYTES if first <= number <= last else CONTEXT_BYTES
                held += block[at : min(piece_end, at + max(cap - len(held), 0))]
                size += piece_end - at
            if stop < 0:
                open_line = True
                break
            if number >= begin:
                found.append((number, _text(bytes(held), size)))
                if number == end:
                    return found, number
            held, size, open_line = bytearray(), 0, False
            number += 1
            at = stop + 1
    if open_line and number >= begin:
        found.append((number, _text(bytes(held), size)))
    return found, number - (0 if open_line else 1)


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    while block := stream.read(BLOCK_BYTES):
        yield block


def _text(data: bytes, size: int) -> str:
    text = data.decode("utf-8", "replace").rstrip("\r")
    return text + (f" … ({size - len(data):,} more bytes)" if size > len(data) else "")
