"""What is known without asking: which relations a query reads, what a view holds where a bundle has no evidence, and what has
to be so for a view to have no row and a question to have no answer.

Most of a bundle's tables are empty, most columns of its one-row views NULL, and to plan a query costs the same on them. All
of it is written down by `docs/generate.py`, from DuckDB's own parse of the queries, in `blank.json` and `questions.json`.
"""

from __future__ import annotations

import functools
import json
import operator
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from oomdoc.views import VIEWS


class Between(NamedTuple):
    """Stands for whatever is no less than `low` and no more than `high`: of a column of many numbers nobody counts which they are."""

    low: float
    high: float


Claim = Any
"""What has to be so, as `docs/needs.py` writes it; None: not known."""


@dataclass(frozen=True)
class Blank:
    """What a view reads, its columns with their types, its rows in a bundle without evidence (NULLs left out): one at most;
    when it has no row; and when it holds what it holds without evidence, though something of what it reads is there."""

    reads: frozenset[str]
    columns: Mapping[str, str]
    rows: Sequence[Mapping[str, Any]]
    rowless: Claim
    bare: Claim


@dataclass(frozen=True)
class Question:
    """What a question reads, which columns of views it names (None: all), and when it tells nothing."""

    reads: frozenset[str]
    columns: frozenset[str] | None
    nothing: Claim


def mark(sql: str) -> int:
    """The mark of a text, by which it is known whether what is written down is of this text (CRC-32)."""
    return zlib.crc32(sql.encode())


def written_down(name: str) -> Any:
    """What stands in a file beside this one."""
    return json.loads(Path(__file__).with_name(name).read_text("utf-8"))


def _current() -> Mapping[str, Blank]:
    told = written_down("blank.json")
    current: dict[str, Blank] = {}
    for name, view in VIEWS.items():  # in the order in which they read each other
        entry = told.get(name)
        if (
            entry
            and entry.get("mark") == mark(view.sql)
            and all(read in current for read in entry["reads"] if read in VIEWS)
        ):
            current[name] = Blank(
                frozenset(entry["reads"]), entry["columns"], entry["rows"], entry["rowless"], entry.get("bare")
            )
    return current


BLANK: Mapping[str, Blank] = _current()
"""By view. One that was changed since, and all that read it, are not in it: they are made and asked."""


@functools.cache
def _questions() -> Mapping[int, Question]:
    return {
        int(name): Question(frozenset(entry["reads"]), None if entry["columns"] is None else frozenset(entry["columns"]), entry["nothing"])
        for name, entry in written_down("questions.json").items()
    }  # fmt: skip


def question(sql: str) -> Question | None:
    """What is written down of a question; None of one that is not known, or was changed since."""
    return _questions().get(mark(sql))


def is_so(
    claim: Claim,
    empty: Callable[[str], bool],
    values: Callable[[str, str], Collection[Any] | None],
    bare: Callable[[str], bool] = lambda name: False,
) -> bool:
    """Whether a claim is so. `empty` says whether a relation has no row, `values` what stands in a column of it (None: not known),
    `bare` whether a view holds what it holds without evidence."""
    if claim is None:
        return False
    if isinstance(claim, str):
        return empty(claim)
    if isinstance(claim, dict):
        ((how, parts),) = claim.items()
        return (any if how == "any" else all)(is_so(part, empty, values, bare) for part in parts)
    if len(claim) == 1:
        return bare(claim[0])
    name, column, comparison, *value = claim
    if empty(name):
        return True
    found = values(name, column)
    return found is not None and not any(_may_pass(each, comparison, *value) for each in found)


_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _may_pass(value: Any, comparison: str, other: Any = None) -> bool:
    """Whether SQL may find the comparison true; where Python compares otherwise than SQL it may."""
    if comparison == "IS NULL" or comparison == "IS NOT NULL":
        return (value is None) == (comparison == "IS NULL")
    if value is None:
        return False
    if comparison == "LOWER IN":
        return not isinstance(value, str) or not value.isascii() or value.lower() in other
    if comparison == "IN":
        return any(_may_pass(value, "=", each) for each in other)
    if comparison == "NOT IN":
        return all(_may_pass(value, "<>", each) for each in other)
    if isinstance(value, Between):
        if comparison == "=":
            return _may_pass(value.low, "<=", other) and _may_pass(value.high, ">=", other)
        return comparison == "<>" or any(_may_pass(end, comparison, other) for end in value)
    kinds = {_kind(value), _kind(other)}
    return len(kinds) > 1 or kinds == {None} or _COMPARE[comparison](value, other)


def _kind(value: Any) -> type | None:
    """Booleans, numbers and texts compare with their like in Python as in SQL."""
    return _KINDS.get(type(value))


_KINDS: Mapping[type, type] = {bool: bool, int: float, float: float, str: str}
