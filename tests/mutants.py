"""Mutation testing of rules and views: which thresholds and guards can be broken without a focused test noticing.

    python tests/mutants.py [CAUSE|VIEW...] [--advice] [--list] [--least 0.85] [--sample 40 --seed 1]

Each query of a piece of evidence and of a view is parsed by DuckDB itself, changed in one place, and written back:

    a number that is compared   half of it and twice it (0: the comparison with it always true; up to 3: one more, one less)
    a part of AND, of OR        left out
    NOT                         left out

With `--advice` the queries of actions and sub-reasons too. The query's cases (`signs.py`) and, of a rule, the tests that it carries are
run with the changed query in its place; a mutant that none of them notices has survived. Tests of other files may notice it, late and
with no word of the place: what is meant is the focused test. `--sample` breaks so many places only, drawn over all that is named.
"""

from __future__ import annotations

import argparse
import copy
import functools
import itertools
import random
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

import signs
from oomdoc.evidence.store import QueryError, Store
from oomdoc.judge.rule_tests import faults_of, filled
from oomdoc.judge.rules import Rule, load_rules
from oomdoc.judge.weigh import Ask
from oomdoc.views import VIEWS, View
from signs import Node, parsed, written

_COMPARED = ("COMPARE_GREATERTHANOREQUALTO", "COMPARE_LESSTHANOREQUALTO", "COMPARE_GREATERTHAN", "COMPARE_LESSTHAN", "COMPARE_BETWEEN")  # fmt: skip
_JOINED = ("CONJUNCTION_AND", "CONJUNCTION_OR")
_BROKEN = (*_COMPARED, *_JOINED, "OPERATOR_NOT")
_SMALL = 3
_UNITS = ("1024", "1048576", "1073741824", "1073741824.0")


@dataclass(frozen=True)
class Mutant:
    """One query changed in one place: whose, what was changed, and the query."""

    cause: str
    evidence: str
    change: str
    sql: str


def _nodes(node: Any) -> Iterator[Node]:
    if isinstance(node, dict):
        yield node
        for child in node.values():
            yield from _nodes(child)
    elif isinstance(node, list):
        for child in node:
            yield from _nodes(child)


def _numbers(node: Node) -> list[Node]:
    """The numeric constants of one side of a comparison: itself, or factors and terms of it; none below a subquery or a filter."""
    if node.get("class") == "CONSTANT":
        return [node] if "text" in node.get("literal", {}) and node["literal"]["kind"] not in ("BOOLEAN", "NULL_LITERAL", "STRING") else []  # fmt: skip
    if node.get("class") == "FUNCTION" and node.get("function_name") in ("*", "+", "-", "/", "greatest", "least"):
        children = [item["expression"] for item in node["arguments"]] if "arguments" in node else node["children"]
        return [number for child in children for number in _numbers(child)]
    return []


def _sides(node: Node) -> list[Node]:
    if node["type"] == "COMPARE_BETWEEN":
        return [node["input"], node["lower"], node["upper"]]
    return [node["left"], node["right"]]


def mutants_of(cause: str, evidence: str, sql: str) -> Iterator[Mutant]:
    """Every query that is this one with one place changed."""
    tree = parsed(sql)
    for node in list(_nodes(tree)):
        if node.get("type") not in _BROKEN:
            continue
        before, shown = dict(node), _shown(node)
        for change, instead in _changes(node):
            node.clear()
            node.update(instead)
            if "alias" in before:
                node["alias"] = before["alias"]
            yield Mutant(cause, evidence, change.replace("@", shown), written(tree))
            node.clear()
            node.update(before)


def _changes(node: Node) -> Iterator[tuple[str, Node]]:
    """What can be broken in one expression: what it is (`@` stands for the expression), and what stands in its place."""
    kind = node.get("type")
    if kind in _COMPARED:
        for number in (one for side in _sides(node) for one in _numbers(side)):
            literal = number["literal"]
            text = str(literal["text"])
            if text in _UNITS:
                continue
            value = float(text)
            if value == 0:
                yield "@ always true", {"class": "CONSTANT", "type": "VALUE_CONSTANT", "alias": "", "query_location": 0, "query_location_length": 0, "literal": {"kind": "BOOLEAN", "text": "true"}}  # fmt: skip
                continue
            whole = literal["kind"] == "INTEGER"
            for other in (value + 1, value - 1) if whole and abs(value) <= _SMALL else (value * 2, value / 2):
                literal["text"] = f"{other:.0f}" if whole else repr(other)
                yield f"@ with {literal['text']}", dict(node)
            literal["text"] = text
    elif kind in _JOINED:
        for place, child in enumerate(node["children"]):
            rest = node["children"][:place] + node["children"][place + 1 :]
            yield f"@ without {_shown(child)}", {**node, "children": rest} if len(rest) > 1 else rest[0]
    elif kind == "OPERATOR_NOT":
        yield "@ without its NOT", node["children"][0]


def _shown(node: Node) -> str:
    """An expression as SQL, short."""
    tree = parsed("SELECT 1")
    tree["statements"][0]["node"]["select_list"] = [{**copy.deepcopy(node), "alias": ""}]
    return written(tree).removeprefix("SELECT ")[:140]


def of_rule(rule: Rule, advice: bool = False) -> list[Mutant]:
    """The mutants of a rule's evidence; `advice`: of its actions and sub-reasons too."""
    asked = (*rule.evidence, *rule.actions, *rule.reasons) if advice else rule.evidence
    return [mutant for item in asked for mutant in mutants_of(rule.id, item.id, item.sql)]


def of_view(view: View) -> list[Mutant]:
    """The mutants of a view."""
    return list(mutants_of("", view.name, view.sql))


def survivors(
    rule: Rule, desk: signs.Desk, advice: bool = False, drawn: Collection[Mutant] | None = None
) -> tuple[int, list[Mutant]]:
    """How many mutants of a rule were tried, and those that no case of its signs and no test of its own notices.

    `advice`: of its actions and sub-reasons too; `drawn`: those among these only."""
    asked = (*rule.evidence, *rule.actions, *rule.reasons) if advice else rule.evidence
    left = [mutant for mutant in of_rule(rule, advice) if drawn is None or mutant in drawn]
    every = len(left)
    query_of = {item.id: item.sql for item in asked}
    for name, cases in itertools.groupby(
        sorted(signs.of_rule(rule.id), key=lambda case: case.query), lambda case: case.query
    ):
        if name in query_of:
            left = _left(left, list(cases), query_of[name], desk, lambda mutant, name=name: mutant.evidence == name)  # type: ignore[misc]
    with Store() as store:
        for test in rule.tests:
            if not left:
                break
            filled(store, rule, test, also=[mutant.sql for mutant in left])
            known: dict[str, Mapping[str, Any] | None] = {}

            def ask(sql: str, known: dict[str, Mapping[str, Any] | None] = known) -> Mapping[str, Any] | None:
                if sql not in known:
                    known[sql] = store.ask(sql)
                return known[sql]

            assert not faults_of(rule, test, ask), (rule.id, test["name"])

            def faults(sql: str, mutant: Mutant, test: Mapping[str, Any] = test, ask: Ask = ask) -> str:
                place = query_of[mutant.evidence]
                return faults_of(rule, test, lambda asked: ask(sql if asked == place else asked))

            left = [mutant for mutant in left if not _noticed(lambda sql, mutant=mutant: faults(sql, mutant), mutant.sql)]  # type: ignore[misc]  # fmt: skip
    return every, left


def survivors_of_view(
    view: View, desk: signs.Desk, drawn: Collection[Mutant] | None = None
) -> tuple[int, list[Mutant]]:
    """The same for a view and its cases."""
    left = [mutant for mutant in of_view(view) if drawn is None or mutant in drawn]
    return len(left), _left(left, list(signs.of_view(view.name)), view.sql, desk, lambda mutant: True)


def _left(mutants: Sequence[Mutant], cases: Sequence[signs.Case], sql: str, desk: signs.Desk, of_query: Callable[[Mutant], bool]) -> list[Mutant]:  # fmt: skip
    """The mutants but those of this query that its cases notice."""
    if cases:
        desk.fill(cases, signs.read_by(sql))
        assert not (faults := list(desk.faults(cases, sql))), faults
    return [
        one
        for one in mutants
        if not (cases and of_query(one) and _noticed(lambda asked: next(desk.faults(cases, asked), ""), one.sql))
    ]


def _noticed(fault: Callable[[str], object], sql: str) -> bool:
    try:
        return bool(fault(sql))
    except (QueryError, duckdb.Error):
        return True


def main() -> int:
    """The share of mutants noticed, query by query; with `--list` what survived."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("name", nargs="*", help="causes and views to look at; all of them where none is named")
    parser.add_argument("--advice", action="store_true", help="break the queries of actions and sub-reasons too")
    parser.add_argument("--list", action="store_true", help="print each survivor")
    parser.add_argument("--least", type=float, default=0.0, help="exit with 1 below this share noticed")
    parser.add_argument("--sample", type=int, help="break so many places only, drawn by chance")
    parser.add_argument("--seed", type=int, default=1, help="which drawing")
    chosen = parser.parse_args()
    desk = signs.Desk()
    rules = [rule for rule in load_rules()[0] if not chosen.name or rule.id in chosen.name]
    views = [view for view in VIEWS.values() if not chosen.name or view.name in chosen.name]
    drawn: frozenset[Mutant] | None = None
    if chosen.sample is not None:
        places = [
            *(one for rule in rules for one in of_rule(rule, chosen.advice)),
            *(one for view in views for one in of_view(view)),
        ]
        drawn = frozenset(random.Random(chosen.seed).sample(places, chosen.sample))
        owners = {mutant.cause or mutant.evidence for mutant in drawn}
        rules, views = [one for one in rules if one.id in owners], [one for one in views if one.name in owners]
    jobs: list[tuple[str, Callable[[], tuple[int, list[Mutant]]]]] = [
        *((rule.id, functools.partial(survivors, rule, desk, chosen.advice, drawn)) for rule in rules),
        *((view.name, functools.partial(survivors_of_view, view, desk, drawn)) for view in views),
    ]
    total = alive = 0
    for name, job in jobs:
        every, left = job()
        total, alive = total + every, alive + len(left)
        print(f"{name:32} {every - len(left):4} of {every:4} noticed", flush=True)
        for mutant in left if chosen.list else ():
            print(f"    {mutant.evidence}: {mutant.change}")
    share = 1 - alive / max(1, total)
    print(f"{'all':32} {total - alive:4} of {total:4} noticed: {share:.3f}")
    return int(share < chosen.least)


if __name__ == "__main__":
    sys.exit(main())
