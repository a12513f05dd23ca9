"""Tables whose columns are told by a line of dashes below the header, and by nothing else: Slurm, PowerShell, SQLite, SQL*Plus.

    JobID           JobName      State     MaxRSS     ReqMem
    ------------ ---------- ---------- ---------- ----------
    48211         llm-serve OUT_OF_ME+                   64G

Where a cell is blank, nobody can say by the gaps which one it is. Such a table becomes one between bars, line by line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

_RULE = regex(rb"[ \t]{0,8}-{2,200}(?:[ \t]{1,4}-{2,200}){3,60}[ \t]*\r?")


def _columns(rule: bytes) -> list[tuple[int, int]]:
    """Where each column of a line of dashes begins and ends; the last goes on."""
    begins = [at for at in range(len(rule)) if rule[at : at + 1] == b"-" and rule[at - 1 : at] != b"-"]
    return list(zip(begins, [*(begin - 1 for begin in begins[1:]), 1 << 20], strict=True))


def _cells(line: bytes, columns: list[tuple[int, int]]) -> list[bytes] | None:
    """The cells of a row; None for a line in which a word stands across two columns."""
    if any(line[end : end + 1].strip() for _, end in columns):
        return None
    return [line[begin:end].strip() for begin, end in columns]


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
