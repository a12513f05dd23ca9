"""Single queries on either side of their thresholds, and the tool that breaks them on purpose."""

from __future__ import annotations

import re
from collections.abc import Iterator
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
    faults = []
    for case in signs.of_rule(cause):
        sql = signs.sql_of(RULES[cause], case.query)
        assert case.given.keys() <= signs.read_by(sql), f"{case.place}: the query reads {sorted(signs.read_by(sql))}"
        desk.fill(case)
        faults.append(desk.fault(case, sql))
    assert not [fault for fault in faults if fault]


@pytest.mark.parametrize("view", sorted({case.query for case in CASES_OF_VIEWS}))
def test_a_view_gives_what_its_cases_say(view: str, desk: signs.Desk) -> None:
    faults = []
    for case in signs.of_view(view):
        assert case.given.keys() <= signs.read_by(VIEWS[view].sql), f"{case.place}: the view reads {sorted(signs.read_by(VIEWS[view].sql))}"  # fmt: skip
        desk.fill(case)
        faults.append(desk.fault(case, VIEWS[view].sql))
    assert not [fault for fault in faults if fault]


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
    assert len({mutant.sql for mutant in made} | {mutants.written(mutants.parsed(sql))}) == len(made) + 1


def test_a_broken_threshold_is_noticed_by_its_cases(desk: signs.Desk) -> None:
    _, left = mutants.survivors(RULES["prefix-cache-thrash"], desk)
    assert not [mutant for mutant in left if mutant.evidence == "hits-collapse" and "0.1 *" in mutant.change]
