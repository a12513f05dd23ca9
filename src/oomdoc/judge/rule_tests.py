"""Runs the tests that rule files carry: given rows of evidence tables, the answers, probability and advice expected.

The same machine as in a real analysis (tables, views, queries, weighing), on a few hand-written rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from oomdoc.evidence.store import QueryError, Store
from oomdoc.judge.rules import Rule, shipped_queries, shipped_questions
from oomdoc.judge.weigh import Ask, diagnose, weigh


def run(rules: Iterable[Rule], tell: Callable[[str, int, int], None] | None = None) -> list[tuple[str, str, bool, str]]:
    """Every test of every rule: rule id, test name, whether it passed, and what was wrong (empty when it passed).

    `tell(rule, done, of)` is called before each.
    """
    every = [(rule, test) for rule in rules for test in rule.tests]
    told = []
    with Store() as store:
        for done, (rule, test) in enumerate(every):
            if tell:
                tell(rule.id, done, len(every))
            detail = run_one(rule, test, store)
            told.append((rule.id, str(test["name"]), not detail, detail))
    return told


def run_one(rule: Rule, test: Mapping[str, Any], store: Store) -> str:
    """What is wrong with a rule on one test, as a sentence; empty where everything is as expected."""
    try:
        filled(store, rule, test)
        return faults_of(rule, test, store.ask)
    except QueryError as problem:
        return f"a query failed: {str(problem).splitlines()[0]}"


def filled(store: Store, rule: Rule, test: Mapping[str, Any], also: Iterable[str] = ()) -> None:
    """The store with the rows of a test and nothing else, its first incident in focus; `also` are queries to trust as the rule's own.

    The store is emptied before: to open one for each test costs a third of it.
    """
    store.empty()
    for table, rows in test.get("given", {}).items():
        store.add(table, _numbered(rows))
    store.finish()
    store.trust([*shipped_queries([rule]), *also], shipped_questions([rule]))
    incidents = store.rows_of("SELECT incident FROM incident LIMIT 1")
    store.focus(incidents[0]["incident"] if incidents else None)


def faults_of(rule: Rule, test: Mapping[str, Any], ask: Ask) -> str:
    """What a rule answers otherwise than a test expects, as a sentence; empty where everything is as expected."""
    finding = weigh(rule, ask)
    diagnosis = diagnose(finding, ask)
    faults = []
    expect = test["expect"]
    for key, wanted in (("holds", True), ("fails", False), ("unknown", None)):
        for name in expect.get(key, ()):
            told = finding.answers[name].holds
            if told is not wanted:
                faults.append(f"{name} should be {_word(wanted)} and is {_word(told)}")
    if "probability" in expect:
        low, high = expect["probability"]
        if not low <= diagnosis.probability <= high:
            faults.append(f"probability {diagnosis.probability:.3f} is not within {low} to {high}")
    if "reason" in expect and (diagnosis.reason or "") != expect["reason"]:
        faults.append(f"reason {diagnosis.reason} is not {expect['reason']}")
    if "action" in expect:
        faults += _advice(expect["action"], diagnosis.actions)
    return "; ".join(faults)


def _numbered(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows with a source and a line of their own where the test leaves them out."""
    return [{"source": "given", "line": place, **row} for place, row in enumerate(rows, 1)]


def _advice(wanted: Mapping[str, Any], actions: Iterable[Any]) -> list[str]:
    made = next((action for action in actions if action.id == wanted["id"]), None)
    if made is None:
        return [f"action {wanted['id']} was not given"]
    told = {**made.values, **made.changes}  # a change that is no flag is told by its figures
    return [
        f"action {wanted['id']}: {name} is {told.get(name)}, not {value}"
        for name, value in wanted.items()
        if name != "id" and told.get(name) != value
    ]


def _word(holds: bool | None) -> str:
    return "unknown" if holds is None else "true" if holds else "false"
