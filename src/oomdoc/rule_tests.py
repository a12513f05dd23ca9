"""Runs the tests that rule files carry: given rows of evidence tables, the answers, probability and advice expected.

The same machine as in a real analysis (tables, views, queries, weighing), on a few hand-written rows.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from oomdoc.rules import Rule, shipped_queries, shipped_questions
from oomdoc.store import QueryError, Store
from oomdoc.weigh import Ask, diagnose, weigh


MOST_WORKERS = 8  # a store takes some 150 MB
TESTS_A_WORKER = 20  # below this a process of its own takes longer to begin than to work
_STORE: Store | None = None


def run(rules: Iterable[Rule], tell: Callable[[str, int, int], None] | None = None) -> list[tuple[str, str, bool, str]]:
    """Every test of every rule: rule id, test name, whether it passed, and what was wrong (empty when it passed).

    `tell(rule, done, of)` is called before each, with several workers behind each rule. A worker is a process with one store: views
    are made anew for each test, 0.2 to 0.3 s of a processor.
    """
    chosen = [rule for rule in rules if rule.tests]
    of = sum(len(rule.tests) for rule in chosen)
    workers = min(MOST_WORKERS, os.cpu_count() or 1, of // TESTS_A_WORKER)
    told: list[tuple[str, str, bool, str]] = []
    if workers < 2:
        with Store() as store:
            for rule in chosen:
                for test in rule.tests:
                    if tell:
                        tell(rule.id, len(told), of)
                    told.append(_told(rule, test, store))
        return told
    # rules are handed over whole, and the largest first: the last one to end is a small one
    largest = sorted(chosen, key=lambda rule: -len(rule.tests))
    by_rule: dict[str, list[tuple[str, str, bool, str]]] = {}
    done = 0
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        running = {pool.submit(_of_rule, rule): rule for rule in largest}
        for finished in as_completed(running):
            rule = running[finished]
            by_rule[rule.id] = finished.result()
            done += len(rule.tests)
            if tell:
                tell(rule.id, done - 1, of)
    return [row for rule in chosen for row in by_rule[rule.id]]


def _of_rule(rule: Rule) -> list[tuple[str, str, bool, str]]:
    """The tests of one rule, in the store that this process has for all of its rules."""
    global _STORE
    if _STORE is None:
        _STORE = Store()
    return [_told(rule, test, _STORE) for test in rule.tests]


def _told(rule: Rule, test: Mapping[str, Any], store: Store) -> tuple[str, str, bool, str]:
    detail = run_one(rule, test, store)
    return rule.id, str(test["name"]), not detail, detail


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
    return [
        f"action {wanted['id']}: {flag} is {made.changes.get(flag)}, not {value}"
        for flag, value in wanted.items()
        if flag != "id" and made.changes.get(flag) != value
    ]


def _word(holds: bool | None) -> str:
    return "unknown" if holds is None else "true" if holds else "false"
