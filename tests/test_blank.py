"""What is not asked because its answer is known: never less is read than the text says, never more is skipped."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

from grids import some
from oomdoc.diagnose import analyze
from oomdoc.rules import Rule, load_rules
from oomdoc.store import OWN_TABLES, Store
from oomdoc.tables import TABLES
from oomdoc.views import VIEWS
from oomdoc.views.blank import BLANK, Reads, reads

ROOT = Path(__file__).parents[1]
RULES, _ = load_rules(tests=False)
BUNDLES = [*sorted((ROOT / "sample_logs").glob("*/case.toml")), *sorted((ROOT / "tests" / "cases").glob("*/case.toml"))]
SOME = some(BUNDLES, 39)
RELATIONS = {*TABLES, *VIEWS, *OWN_TABLES, "engine_default"}


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


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_no_relation_or_column_of_a_query_is_missed(rule: Rule) -> None:
    for item in (*rule.evidence, *rule.reasons, *rule.actions):
        _nothing_missed(item.sql)


def _nothing_missed(sql: str) -> None:
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
def test_what_is_written_down_of_a_view_is_so(name: str) -> None:
    assert relations(VIEWS[name].sql) - {"engine_default"} == BLANK[name].reads


def test_views_of_empty_tables_are_made_alike_from_their_text_and_from_what_is_written_down() -> None:
    told = []
    for plainly in (True, False):
        with Store() as store:
            store.plainly = plainly
            store.finish()
            store.focus(None)
            told.append(
                {name: (store.rows_of(f"DESCRIBE main.{name}"), store.rows_of(f"FROM main.{name}")) for name in VIEWS}
            )
    assert told[0] == told[1]


@pytest.mark.parametrize("case", SOME, ids=lambda path: path.parent.name)
def test_reports_are_the_same_when_everything_is_asked(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Counter[bool]()
    told = Store._tells_nothing

    def counted(store: Store, query: Reads) -> bool:
        asked[nothing := told(store, query)] += 1
        return nothing

    with monkeypatch.context() as patch:
        patch.setattr(Store, "_tells_nothing", counted)
        with analyze(case.parent) as fewer:
            report, answers = fewer.to_dict(), fewer.answers
    assert asked[True] > 20
    monkeypatch.setattr(Store, "plainly", True)
    with analyze(case.parent) as every:
        assert every.answers == answers
        assert every.to_dict() == report
