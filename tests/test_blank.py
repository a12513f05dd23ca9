"""What is not asked because its answer is known: never less is read than the text says, never more is skipped."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

from oomdoc.diagnose import Options, analyze
from oomdoc.rules import load_rules
from oomdoc.store import _OWN_TABLES, Store
from oomdoc.tables import TABLES
from oomdoc.views import VIEWS
from oomdoc.views.blank import BLANK, reads, reads_of_view

ROOT = Path(__file__).parents[1]
RULES, _ = load_rules(tests=False)
QUERIES = [
    (f"{rule.id}/{item.id}", item.sql) for rule in RULES for item in (*rule.evidence, *rule.reasons, *rule.actions)
]
EVIDENCE = {item.sql for rule in RULES for item in rule.evidence}
BUNDLES = [*sorted((ROOT / "sample_logs").glob("*/case.toml")), *sorted((ROOT / "tests" / "cases").glob("*/case.toml"))]
SOME = BUNDLES if os.environ.get("OOMDOC_FUZZ") else BUNDLES[::9]
RELATIONS = {*TABLES, *VIEWS, *_OWN_TABLES, "engine_default"}


def nodes(tree: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(tree, Mapping):
        yield tree
    for inner in tree.values() if isinstance(tree, Mapping) else tree if isinstance(tree, list) else ():
        yield from nodes(inner)


def parsed(sql: str) -> list[Mapping[str, Any]]:
    row = duckdb.execute("SELECT json_serialize_sql($1)", [sql]).fetchone()
    assert row is not None
    return list(nodes(json.loads(row[0])))


def relations(sql: str) -> set[str]:
    return {node["table_name"] for node in parsed(sql) if node.get("type") == "BASE_TABLE"} & RELATIONS


@pytest.mark.parametrize(("name", "sql"), QUERIES, ids=[name for name, _ in QUERIES])
def test_no_relation_or_column_of_a_query_is_missed(name: str, sql: str) -> None:
    assert relations(sql) <= reads(sql).relations
    tree = parsed(sql)
    if not reads(sql).all_columns:
        names = {node["table_name"] for node in tree if node.get("type") == "BASE_TABLE"}
        aliases = {node["alias"] for node in tree if node.get("type") == "BASE_TABLE" and node.get("alias")}
        columns = [node["column_names"] for node in tree if node.get("class") == "COLUMN_REF"]
        assert {each[-1].lower() for each in columns} <= reads(sql).words
        own = {
            name
            for read in relations(sql)
            for name in (VIEWS[read].columns if read in VIEWS else TABLES[read].column_names if read in TABLES else ())
        }
        assert not {each[0] for each in columns if len(each) == 1} & (aliases | names) - own, "a row taken whole"


@pytest.mark.parametrize("name", VIEWS)
def test_no_relation_of_a_view_is_missed(name: str) -> None:
    assert relations(VIEWS[name].sql) <= reads_of_view(name)


def test_a_view_of_empty_tables_is_what_is_written_down() -> None:
    with Store() as store:
        store.finish()
        store.focus(None)
        for name in VIEWS:
            told = store.rows_of(f"SELECT * FROM main.{name}")
            assert [{key: value for key, value in row.items() if value is not None} for row in told] == BLANK[name]


@pytest.mark.parametrize("case", SOME, ids=lambda path: path.parent.name)
def test_what_is_not_asked_would_not_have_answered(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    real = Store._tells_nothing

    def tells_nothing(store: Store, query: Any) -> bool:
        if real(store, query):
            told.append("")
            return False  # ask all the same
        told.append("asked")
        return False

    ask = Store.ask

    def checked(store: Store, sql: str) -> Any:
        count = len(told)
        row = ask(store, sql)
        if told[count:] == [""]:
            holds = (row or {}).get("holds")
            assert holds is None if sql in EVIDENCE else not holds, sql
        return row

    monkeypatch.setattr(Store, "_tells_nothing", tells_nothing)
    monkeypatch.setattr(Store, "ask", checked)
    with analyze(case.parent, Options()) as asked:
        report = asked.to_dict()
    monkeypatch.undo()
    with analyze(case.parent, Options()) as fewer:
        assert fewer.to_dict() == report
    assert told.count("") > 20
