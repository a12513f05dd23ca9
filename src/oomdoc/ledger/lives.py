"""Whose rows are whose: the lives of engines that a bundle shows, and the figures, messages and checks of each alone.

A life is one start of an engine with everything that its log tells of it. A rotated log has its later half in another file:
the lines before the first start there belong to the last start of the file that is next in age. What stands in no log
of an engine (a scrape, a config) belongs to the life in focus. Copies of one log are one life.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from oomdoc.evidence.store import Store
from oomdoc.model import Engine
from oomdoc.regexes import regex

MOST_LIVES = 20  # starts whose ledger is told; a restart loop has hundreds that are alike
_PACKED = regex(r"\.(?:gz|zst|xz|bz2)$")
_AGED = regex(r"[.-](\d{1,3}|\d{8}(?:[T_-]?\d{4,6})?)$")
_MODEL_LABEL = r'model_name="([^"]+)"'


@dataclass(frozen=True)
class Life:
    """One start of an engine. `ranges` are its lines: (source, first, last). `focused`: the report speaks of it first.

    `id` is None where the bundle holds figures and no log of an engine. `marked`: its log shows how it began. `complete`:
    it tells a whole life, as in `engine_start`.
    """

    id: str | None
    engine: Engine | None
    ranges: tuple[tuple[str, int, int], ...]
    focused: bool
    served: bool = False
    milestone: str | None = None
    started: float | None = None
    marked: bool = False
    complete: bool = False

    def holds(self, row: Mapping[str, Any]) -> bool:
        """The row stands in the lines of this life."""
        return _inside(row, self.ranges)


def rotation_of(source: str) -> tuple[str, int]:
    """The name of a log without what rotation appends, and its age: 0 the newest; dated ones are older the earlier they are.

    >>> rotation_of("pod/vllm.log"), rotation_of("pod/vllm.log.2.gz"), rotation_of("vllm.log-20260102") < rotation_of("vllm.log-20260101")
    (('pod/vllm.log', 0), ('pod/vllm.log', 2), True)
    """
    name = _PACKED.sub("", source)
    match = _AGED.search(name)
    if match is None:
        return name, 0
    digits = re.sub(r"\D", "", match[1])
    return name[: match.start()], int(digits) if len(digits) <= 3 else 10**15 - int(digits.ljust(14, "0"))


def lives(store: Store, engines: Sequence[Engine]) -> tuple[Life, ...]:
    """The life in focus first (the last one where no incident is), then the others in their order, at most `MOST_LIVES`."""
    by_id = {engine.id: engine for engine in engines}
    rows = store.rows_of(
        "SELECT start_id, source, marked, first_line, last_line, t, served, last_milestone, complete FROM engine_start ORDER BY source, first_line"
    )
    joined = _tails(rows)
    focus = store.rows_of("SELECT i.start_id FROM incident i, focus f WHERE i.incident = f.incident")
    wanted = focus[0]["start_id"] if focus else None
    named = {
        row["start_id"] for row in store.rows_of("SELECT DISTINCT start_id FROM incident WHERE start_id IS NOT NULL")
    }
    made: list[Life] = []
    for row in rows:
        if row["start_id"] in joined:
            continue  # told with the start that it continues
        tail = next((each for each in rows if joined.get(each["start_id"]) == row["start_id"]), None)
        parts = [row, tail] if tail else [row]
        ids = [part["start_id"] for part in reversed(parts)]
        made.append(
            Life(
                next((start for start in ids if start in named), ids[0]),
                _engine([by_id[part["start_id"]] for part in parts if part["start_id"] in by_id]),
                tuple((part["source"], part["first_line"], part["last_line"]) for part in parts),
                wanted is not None and wanted in ids,
                any(part["served"] for part in parts),
                parts[-1]["last_milestone"] or row["last_milestone"],
                row["t"],
                bool(row["marked"]),
                any(part["complete"] for part in parts),
            )
        )
    if not made:
        return (Life(None, engines[-1] if engines else None, (), True),)
    if not any(life.focused for life in made):
        # nothing of an engine failed: the report is about the last start that tells anything
        last = max(range(len(made)), key=lambda at: (made[at].complete, made[at].started or 0.0, at))
        made[last] = replace(made[last], focused=True)
    model = _model_beside(store)
    every = [_named(life, model) for life in sorted(made, key=lambda life: not life.focused)]
    return tuple(life for life in every if life.focused or life.complete)[:MOST_LIVES]


def _tails(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Lines before the first start of a rotated log -> the start that they continue."""
    logs: dict[str, dict[int, list[Mapping[str, Any]]]] = {}
    for row in rows:
        base, age = rotation_of(row["source"])
        logs.setdefault(base, {}).setdefault(age, []).append(row)
    found = {}
    for ages in logs.values():
        order = sorted(ages)
        for newer, older in itertools.pairwise(order):
            tail, head = ages[newer][0], ages[older][-1]
            if not tail["marked"] and head["marked"] and tail["source"] != head["source"]:
                found[tail["start_id"]] = head["start_id"]
    return found


def _engine(parts: Sequence[Engine]) -> Engine | None:
    """The engine of a life whose log lies in two files: what either half tells."""
    if not parts:
        return None
    first, last = parts[0], parts[-1]
    return replace(
        last, version=first.version or last.version, model=first.model or last.model, generation=first.generation or last.generation,
        flags={**last.flags, **first.flags}, started=first.started or last.started, failed=first.failed or last.failed,
    )  # fmt: skip


def _model_beside(store: Store) -> str | None:
    """The one model that requests or scrapes name; None where they name none or several."""
    found = {
        row["model"] for row in store.rows_of("SELECT DISTINCT model FROM request WHERE model IS NOT NULL LIMIT 3")
    } | {
        row["model"]
        for row in store.rows_of(
            f"SELECT DISTINCT regexp_extract(labels, '{_MODEL_LABEL}', 1) AS model FROM (SELECT labels FROM metric WHERE labels LIKE '%model_name=%' LIMIT 200)"
        )
        if row["model"]
    }
    return found.pop() if len(found) == 1 else None


def _named(life: Life, model: str | None) -> Life:
    if model is None or life.engine is None or life.engine.model or not life.focused:
        return life
    return replace(life, engine=replace(life.engine, model=model))


class Rows:
    """The rows of one table, handed out by life."""

    def __init__(self, store: Store, query: str) -> None:
        """`query` selects from a table FROM main.x, with the columns source and line."""
        self.every = store.rows_of(query)
        self.hidden = [(row["source"], row["first_line"], row["last_line"]) for row in store.rows_of("FROM hidden")]
        self.starts = [
            (row["source"], row["first_line"], row["last_line"], row["marked"] or row["complete"])
            for row in store.rows_of("SELECT source, first_line, last_line, marked, complete FROM engine_start")
        ]

    def of(self, life: Life) -> list[dict[str, Any]]:
        """The rows of this life; for the one in focus also those that are of no other start."""
        own = {source for source, _, _ in life.ranges}
        others = [
            (source, first, last) for source, first, last, whole in self.starts
            if (source, first, last) not in life.ranges and (whole or source in own)
        ]  # fmt: skip
        taken = [*self.hidden, *others]
        return [row for row in self.every if _inside(row, life.ranges) or (life.focused and not _inside(row, taken))]


def _inside(row: Mapping[str, Any], ranges: Sequence[tuple[str, int, int]]) -> bool:
    return any(row["source"] == source and first <= row["line"] <= last for source, first, last in ranges)
