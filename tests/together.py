"""Tests of rules asked together, since to plan the views behind one test costs a hundred times what they then read.

What comes in, whose each event is and what an incident sees are worked out for each test alone, by a store as in an analysis. From
there on every view is made once for all tests, and every query asked once, in a lateral join as cases of signs are (`signs.Desk`).
A rule is weighed by its answers as ever.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from oomdoc.evidence.store import LOG_TABLES, OWN_TABLES, Store
from oomdoc.evidence.tables import TABLES
from oomdoc.judge import rule_tests
from oomdoc.judge.rules import Rule
from oomdoc.judge.weigh import diagnose, weigh
from oomdoc.model import Diagnosis
from oomdoc.views import VIEWS
from signs import DEFAULTS, Desk, laid_out

Test = tuple[Rule, Mapping[str, Any]]
Rows = list[dict[str, Any]]

_SEEN = tuple(f"seen.{name}" for name in LOG_TABLES)
_WHOLE = tuple(f"main.{name}" for name in TABLES)  # beside the bare name, which is what is the server's own
_APART = frozenset({*_SEEN, *_WHOLE})
_MADE = ("engine_start", "incident")
"""Views that a store makes before anything is asked."""


def queries(rule: Rule) -> Iterator[str]:
    """All that a rule may ask."""
    for item in (*rule.evidence, *rule.reasons, *rule.actions):
        yield item.sql


class Together(Desk):
    """The views and the answers of many tests of rules, by their numbers in `tests`."""

    def __init__(self, tests: Sequence[Test], one_in: int) -> None:
        """Of so many tests one is weighed as ever besides."""
        super().__init__()
        self.alone: dict[int, Diagnosis] = {}
        """What the rule of a test says when a store holds the rows of this test."""
        for name in _APART:
            self._con.execute(f"CREATE TABLE of_cases.{_table(name)} AS FROM of_cases.{name.split('.')[1]} LIMIT 0")
        self._bring_in(tests, one_in)
        for view in VIEWS.values():
            if view.name not in _MADE:
                self._con.execute(f"INSERT INTO of_cases.{view.name} {self._over(view.sql, range(len(tests)))}")
        of_rule: dict[str, list[int]] = defaultdict(list)
        for number, (rule, _) in enumerate(tests):
            of_rule[rule.id].append(number)
        self._answers: dict[tuple[int, str], Rows] = defaultdict(list)
        for rule in {rule.id: rule for rule, _ in tests}.values():
            for sql in queries(rule):
                for row in self._rows(self._over(sql, of_rule[rule.id])):
                    self._answers[row.pop("case_"), sql].append(row)

    def ask(self, number: int, sql: str) -> dict[str, Any] | None:
        """The first row that a query gives in a test, or None for no row."""
        rows = self._answers.get((number, sql))
        return rows[0] if rows else None

    def has_choice(self, number: int, sql: str) -> bool:
        """Whether there are several rows that differ, of which another may be the first where the query is asked alone."""
        rows = self._answers.get((number, sql), [])
        return any(row != rows[0] for row in rows[1:])

    def _bring_in(self, tests: Sequence[Test], one_in: int) -> None:
        """What a store shows of each test before its views are made."""
        rows: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
        with Store() as store:
            for number, (rule, test) in enumerate(tests):
                rule_tests.filled(store, rule, test)
                for name, found in _shown_by(store):
                    rows[_table(name)] += [(number, *row) for row in found]
                if number % one_in == 0:
                    self.alone[number] = diagnose(weigh(rule, store.ask), store.ask)
        for table in sorted(rows):
            if columns := list(zip(*rows[table], strict=True)):
                kinds = ["INTEGER", *self.columns[table.removeprefix("seen_").removeprefix("main_")].values()]
                picked = ", ".join(f"unnest(${place}::{kind}[])" for place, kind in enumerate(kinds, 1))
                self._con.execute(f"INSERT INTO of_cases.{table} SELECT {picked}", [list(column) for column in columns])

    def _over(self, sql: str, numbers: Sequence[int]) -> str:
        """The query over each of these tests, the number of the test before its columns."""
        of_one = laid_out(sql, frozenset(self.columns), _APART)
        return f"SELECT cases_.*, q_.* FROM (SELECT unnest({list(numbers)})::INTEGER AS case_) cases_, LATERAL ({of_one}) q_"


def _shown_by(store: Store) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    """What rules and views are shown of a store, relation by relation, but for those known to have no row: a statement costs 1 ms."""

    def of(name: str) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = store.database.con.execute(f"FROM {name}").fetchall()
        return found

    for name in (DEFAULTS, *(name for name in OWN_TABLES if name not in store.derived.without_rows)):
        yield name, of(name)
    for name in _MADE:
        if store.derived.count_of(name):
            yield name, of(name)
    whole = "hidden" in store.derived.without_rows
    for name in store.filled:
        yield name, (own := of(name))
        if f"main.{name}" in _APART:
            yield f"main.{name}", of(f"main.{name}") if store.hides(name) else own
        if f"seen.{name}" in _APART:
            yield f"seen.{name}", own if whole else of(f"seen.{name}")


def _table(name: str) -> str:
    return name.replace(".", "_")
