"""What is known without asking: which relations a query reads, and what each view holds where a bundle has no evidence.

Most of a bundle's tables are empty, and to plan a query costs the same on empty tables. Of views it is written down, of
queries read off their text: never less than what DuckDB reads (held by a test over all shipped queries), sometimes more.
"""

from __future__ import annotations

import functools
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oomdoc.views import VIEWS


@dataclass(frozen=True)
class Blank:
    """What a view reads, its columns with their types, and its rows in a bundle without evidence (NULLs left out): one at most."""

    reads: frozenset[str]
    columns: Mapping[str, str]
    rows: Sequence[Mapping[str, Any]]


def mark(sql: str) -> int:
    """The mark of a view's text, by which it is known whether what is written down is of this text (CRC-32)."""
    return zlib.crc32(sql.encode())


def _written_down() -> Mapping[str, Blank]:
    told = json.loads(Path(__file__).with_name("blank.json").read_text("utf-8"))
    current: dict[str, Blank] = {}
    for name, view in VIEWS.items():  # in the order in which they read each other
        entry = told.get(name)
        if (
            entry
            and entry.get("mark") == mark(view.sql)
            and all(read in current for read in entry["reads"] if read in VIEWS)
        ):
            current[name] = Blank(frozenset(entry["reads"]), entry["columns"], entry["rows"])
    return current


BLANK: Mapping[str, Blank] = _written_down()
"""By view; `docs/generate.py` writes the file. A view that was changed since, and all that read it, are not in it: they are asked."""


@dataclass(frozen=True)
class Reads:
    """Names that stand where a query names what it reads; all its words, columns among them; whether it takes all columns."""

    relations: frozenset[str]
    words: frozenset[str]
    all_columns: bool


_COMMENT = re.compile(r"--[^\n]*")
_WORD = re.compile(r"[a-z_][a-z0-9_]*")
_FROM = re.compile(r"\b(?:from|join)\s+\(*(?:[a-z]+\.)?([a-z_]+)")
_LISTED = re.compile(r",\s*(?:[a-z]+\.)?([a-z_]+)")  # `FROM engine, failure`; also the columns of a SELECT
_ALL = re.compile(r"^\s*from\b|(?:\bselect|\bdistinct|,|\.)\s*\*|\bcolumns\s*\(|\bnatural\b")
_COLUMNS = {"source"}  # so often a column after a comma, and never a relation there


@functools.cache
def reads(sql: str) -> Reads:
    """What a query reads.

    >>> sorted(reads("SELECT f.ooms FROM failure f, seen.oom WHERE x IN (SELECT line FROM host)").relations)
    ['failure', 'host', 'oom']
    """
    text = _COMMENT.sub("", sql).lower()
    return Reads(
        frozenset(_FROM.findall(text)) | (frozenset(_LISTED.findall(text)) - _COLUMNS),
        frozenset(_WORD.findall(text)),
        _ALL.search(text) is not None,
    )
