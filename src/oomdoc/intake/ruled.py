"""Tables that their header, or what stands below it, tells how to read: between bars, and with the units in their cells.

    JobID           JobName      State     MaxRSS     ReqMem
    ------------ ---------- ---------- ---------- ----------
    48211         llm-serve OUT_OF_ME+                   64G

A line of dashes below the header (Slurm, PowerShell, SQLite, SQL*Plus) tells the columns: where a cell is blank, nobody can say by the
gaps which one it is. Such a table becomes one between bars, line by line.

    Filesystem     1M-blocks  Used Available Use% Mounted on         Filesystem     Size  Used Available Use% Mounted on
    shm                   64     3        61   5% /dev/shm           shm                   64M     3M        61M   5% /dev/shm

`df` tells the unit of bare numbers in its header.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

_RULE = regex(rb"[ \t]{0,8}-{2,200}(?:[ \t]{1,4}-{2,200}){3,60}[ \t]*\r?")


def _columns(rule: bytes) -> list[tuple[int, int]]:
    """Where each column of a line of dashes begins and ends; the last goes on."""
    begins = [at for at in range(len(rule)) if rule[at : at + 1] == b"-" and rule[at - 1 : at] != b"-"]
    return list(zip(begins, [*(begin - 1 for begin in begins[1:]), 1 << 20], strict=True))


_WORD = regex(rb"\S+")


def _cells(line: bytes, columns: list[tuple[int, int]]) -> list[bytes] | None:
    """The cells of a row; None for a line that is none.

    Who replaces a name by a shorter one moves all that stands behind it: where a word stands across two columns each word is of the
    one that it covers most of, and no two are of one.
    """
    if not any(line[end : end + 1].strip() for _, end in columns):
        return [line[begin:end].strip() for begin, end in columns]
    cells, last = [b""] * len(columns), -1
    for word in _WORD.finditer(line):
        shared = [min(end, word.end()) - max(begin, word.start()) for begin, end in columns]
        at = max(range(len(columns)), key=shared.__getitem__)
        if at <= last or 2 * shared[at] <= len(word[0]):
            return None
        cells[at], last = word[0], at
    return cells


def _barred(lines: list[bytes]) -> Iterator[tuple[int, bytes, bool]]:
    """The places of lines of such tables, between bars, and whether a cell in the midst of a row is blank."""
    for at, line in enumerate(lines):
        if not 0 < at < len(lines) - 1 or not _RULE.fullmatch(line):
            continue
        columns = _columns(line)
        for place in range(at - 1, len(lines)):
            cells = None if place == at else _cells(lines[place].replace(b"|", b"/"), columns)
            if place != at and (cells is None or not any(cells) or (place > at and _RULE.fullmatch(lines[place]))):
                break
            row = cells if cells is not None else [b"---"] * len(columns)
            yield place, b"|".join(row), place > at and not all(row[:-1])


def has_blank_cells(head: bytes) -> bool:
    """Whether a text has such a table with a cell that is blank.

    >>> has_blank_cells(b"a   b   c   d\\n--- --- --- ---\\n1       3   4\\n"), has_blank_cells(b"a   b   c   d\\n--- --- --- ---\\n1   2   3\\n")
    (True, False)
    """
    return any(blank for _, _, blank in _barred(head.split(b"\n")))


def unruled(pieces: Iterable[Chunk]) -> Iterator[Chunk]:
    """The tables of a text between bars; all other lines, and where they stand, as they are."""
    for chunk in pieces:
        lines = chunk.data.split(b"\n")
        for place, row, _ in list(_barred(lines)):
            lines[place] = row
        yield chunk._replace(data=b"\n".join(lines))


_BLOCKS = regex(rb"\b1(?P<unit>[MG]|048576)-(?:blo\w{2,5}|Bl\xc3\xb6cke)")
_SIZED = regex(rb"(?P<name>.*\S)(?P<sizes>(?:\s+\d{1,15}){3})(?P<rest>\s+(?:\d{1,3}%|-)\s+/.*)", re.S)
_ENDS = regex(rb"(?<=\d)(?=\s|$)")


def has_blocks(head: bytes) -> bool:
    """Whether `df` lists file systems in blocks of a MiB or of a GiB.

    >>> has_blocks(b"Filesystem     1M-blocks  Used Available Use% Mounted on"), has_blocks(b"Filesystem     1K-blocks  Used")
    (True, False)
    """
    return _BLOCKS.search(head) is not None


def unblocked(pieces: Iterable[Chunk]) -> Iterator[Chunk]:
    """The rows of such lists with their unit behind each number; all other lines as they are."""
    unit = b""
    for chunk in pieces:
        lines = chunk.data.split(b"\n")
        for place, line in enumerate(lines):
            if head := _BLOCKS.search(line):
                told = head["unit"]
                unit = told if told in b"MG" else b"M"
                lines[place] = line[: head.start()] + b"Size".rjust(head.end() - head.start()) + line[head.end() :]
            elif unit and (row := _SIZED.fullmatch(line)):
                lines[place] = row["name"] + _ENDS.sub(unit, row["sizes"]) + row["rest"]
            elif line.strip():
                unit = b""
        yield chunk._replace(data=b"\n".join(lines))
