"""Single queries on either side of their thresholds, and the tool that breaks them on purpose."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import mutants
import signs
from oomdoc.judge.rules import Rule, load_rules, rules_folder
from oomdoc.views import VIEWS, thresholds

RULES: dict[str, Rule] = {rule.id: rule for rule in load_rules()[0]}
CASES = [(RULES[cause], case) for cause in RULES for case in signs.of_rule(cause)]
CASES_OF_VIEWS = [case for view in VIEWS for case in signs.of_view(view)]
VIEW_FILES = Path(signs.__file__).parents[1] / "src/oomdoc/views"


@pytest.fixture(scope="module")
def desk() -> Iterator[signs.Desk]:
    yield signs.Desk()


@pytest.mark.parametrize("cause", sorted({rule.id for rule, _ in CASES}))
def test_a_sign_answers_as_its_cases_say(cause: str, desk: signs.Desk) -> None:
    cases = {}
    for case in signs.of_rule(cause):
        cases.setdefault(signs.sql_of(RULES[cause], case.query), []).append(case)
    desk.fill(signs.of_rule(cause), frozenset().union(*map(signs.read_by, cases)))
    faults = []
    for sql, of_query in cases.items():
        assert not (unread := _unread(of_query, sql)), unread
        faults += desk.faults(of_query, sql)
    assert not faults


@pytest.mark.parametrize("view", sorted({case.query for case in CASES_OF_VIEWS}))
def test_a_view_gives_what_its_cases_say(view: str, desk: signs.Desk) -> None:
    cases, sql = signs.of_view(view), VIEWS[view].sql
    assert not (unread := _unread(cases, sql)), unread
    desk.fill(cases, signs.read_by(sql))
    assert not list(desk.faults(cases, sql))


def _unread(cases: Sequence[signs.Case], sql: str) -> list[str]:
    """What cases give that the query does not read."""
    return [f"{case.place}: {name}" for case in cases for name in case.given.keys() - signs.read_by(sql)]


@pytest.mark.parametrize("view", ["engine_start", "kv_pressure", "memory_trend"])
def test_many_cases_at_once_are_answered_as_one_alone(view: str, desk: signs.Desk) -> None:
    """Whatever a case expects: `faults` asks those alone that are answered otherwise, not those that are answered rightly by chance."""
    cases, sql = signs.of_view(view)[:12], VIEWS[view].sql
    desk.fill(cases, signs.read_by(sql))
    together = desk.together(cases, sql)
    alone = [desk.alone(case, sql) for case in cases]
    assert [sorted(map(str, rows)) for rows in together] == [sorted(map(str, rows)) for rows in alone]
    assert any(together)


def test_a_case_that_is_answered_otherwise_is_named(desk: signs.Desk) -> None:
    cases = signs.of_view("kv_pressure")
    wrong = [
        dataclasses.replace(case, gives={"samples": 77}) if number == 3 else case for number, case in enumerate(cases)
    ]
    desk.fill(wrong, signs.read_by(VIEWS["kv_pressure"].sql))
    (fault,) = desk.faults(wrong, VIEWS["kv_pressure"].sql)
    assert fault.startswith(f"{cases[3].place}: samples is ")


def test_every_file_of_cases_is_of_a_query() -> None:
    assert {path.stem for path in signs.FOLDER.glob("rules/*.toml")} <= RULES.keys()
    assert {path.stem for path in signs.FOLDER.glob("views/*.toml")} <= VIEWS.keys()


def test_every_shared_threshold_is_named_by_a_view_or_two_rules_and_every_own_one_by_its_rule() -> None:
    texts = {path: path.read_text("utf-8") for path in (*rules_folder().glob("**/*.toml"), *VIEW_FILES.glob("*.sql"))}
    for name in thresholds.SHARED:  # a view has no other place for its own
        named = [path for path, text in texts.items() if re.search(rf"\${name}\b", text)]
        assert len(named) >= 2 or any(path.suffix == ".sql" for path in named), name
    for rule in RULES.values():
        for name in rule.thresholds:
            assert name not in thresholds.SHARED, (rule.id, name)
            assert re.search(rf"\${name}\b", texts[rule.path]), (rule.id, name)


@pytest.mark.parametrize(
    ("sql", "changes"),
    [
        ("SELECT used > 0.9 AS holds FROM t", {"(used > 0.9) with 1.8", "(used > 0.9) with 0.45"}),
        ("SELECT n >= 2 AS holds FROM t", {"(n >= 2) with 3", "(n >= 2) with 1"}),
        ("SELECT n > 0 AS holds FROM t", {"(n > 0) always true"}),
        ("SELECT a AND b AS holds FROM t", {"(a AND b) without a", "(a AND b) without b"}),
        ("SELECT NOT a AS holds FROM t", {"(NOT a) without its NOT"}),
        ("SELECT a = 'x' AS holds FROM t", set()),
        ("SELECT a > 2 * 1073741824 AS holds FROM t", {"(a > (2 * 1073741824)) with 3", "(a > (2 * 1073741824)) with 1"}),
    ],
)  # fmt: skip
def test_a_query_is_broken_in_one_place_at_a_time(sql: str, changes: set[str]) -> None:
    made = list(mutants.mutants_of("cause", "sign", sql))
    assert {mutant.change for mutant in made} == changes
    assert len({mutant.sql for mutant in made} | {signs.written(signs.parsed(sql))}) == len(made) + 1


def test_a_broken_threshold_is_noticed_by_its_cases(desk: signs.Desk) -> None:
    rule = RULES["prefix-cache-thrash"]
    sign = next(item for item in rule.evidence if item.id == "hits-collapse")
    every, left = mutants.survivors(dataclasses.replace(rule, evidence=(sign,), tests=()), desk)
    assert every > 3
    assert not [mutant for mutant in left if "0.1 *" in mutant.change]
