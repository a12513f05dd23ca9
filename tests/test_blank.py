"""What is not asked because its answer is known: never less is read than the text says, never more is skipped."""

from __future__ import annotations

import importlib.util
import json
import random
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from grids import some
from oomdoc.diagnose import analyze
from oomdoc.evidence.derived import Derived
from oomdoc.evidence.incoming import ANYTHING
from oomdoc.evidence.store import OWN_TABLES, Store
from oomdoc.evidence.tables import TABLES, Batch
from oomdoc.judge.rules import Rule, load_rules, shipped_questions
from oomdoc.views import VIEWS
from oomdoc.views.blank import BLANK, Between, Question, is_so, question
from oomdoc.views.parts import parts_of, shortened
from verdicts import SIGNS

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
def test_what_is_written_down_of_a_question_is_so(rule: Rule) -> None:
    for item in (*rule.evidence, *rule.reasons):
        known = question(item.sql)
        assert known is not None, f"{rule.id} {item.id}: run `make pages`"
        assert relations(item.sql) == known.reads | (relations(item.sql) & {"engine_default"})
        _no_column_missed(item.sql, known)


def _no_column_missed(sql: str, known: Question) -> None:
    tree = parsed(sql)
    if known.columns is not None:
        names = {node["table_name"] for node in tree if node.get("type") == "BASE_TABLE"}
        aliases = {node["alias"] for node in tree if node.get("type") == "BASE_TABLE" and node.get("alias")}
        columns = [node["column_names"] for node in tree if node.get("class") == "COLUMN_REF"]
        own = {name for read in known.reads if read in VIEWS for name in VIEWS[read].columns}
        assert {each[-1].lower() for each in columns} & own <= known.columns
        assert not {each[0] for each in columns if len(each) == 1} & (aliases | names) - own, "a row taken whole"


@pytest.mark.parametrize("name", VIEWS)
def test_what_is_written_down_of_a_view_is_so(name: str) -> None:
    assert name in BLANK, (
        f"{name}: run `make pages`; or it reads, or calls something of its own like, a view that comes after it"
    )
    assert relations(VIEWS[name].sql) - {"engine_default"} == BLANK[name].reads


def test_views_of_empty_tables_are_made_alike_from_their_text_and_from_what_is_written_down() -> None:
    told = []
    for plainly in (True, False):
        with Store() as store:
            store.derived.plainly = plainly
            store.finish()
            store.focus(None)
            told.append(
                {name: (store.rows_of(f"DESCRIBE main.{name}"), store.rows_of(f"FROM main.{name}")) for name in VIEWS}
            )
    assert told[0] == told[1]


@pytest.mark.parametrize("case", SOME, ids=lambda path: path.parent.name)
def test_reports_are_the_same_when_everything_is_asked(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Counter[bool]()
    told = Derived.tells_nothing

    def counted(store: Store, query: Question) -> bool:
        asked[nothing := told(store, query)] += 1
        return nothing

    with monkeypatch.context() as patch:
        patch.setattr(Derived, "tells_nothing", counted)
        with analyze(case.parent) as fewer:
            report, answers = fewer.to_dict(), fewer.answers
    assert asked[True] > 20
    monkeypatch.setattr(Derived, "plainly", True)
    with analyze(case.parent) as every:
        assert every.answers == answers
        assert every.to_dict() == report


@pytest.mark.parametrize("case", SOME[::3], ids=lambda path: path.parent.name)
def test_views_that_were_not_planned_hold_what_their_text_gives(case: Path) -> None:
    with analyze(case.parent) as analysis:
        store = analysis._store
        for name in VIEWS:
            store.derived.make_named(name)
        bare = [name for name in VIEWS if store.rows_of(f"FROM main.{name}") == _bare_rows(name)]
        assert len(bare) > 20
        for name in bare:
            assert store.rows_of(VIEWS[name].sql) == _bare_rows(name), name


def _bare_rows(name: str) -> list[dict[str, Any]]:
    return [{column: row.get(column) for column in BLANK[name].columns} for row in BLANK[name].rows]


@pytest.mark.parametrize("case", SOME[::3], ids=lambda path: path.parent.name)
def test_what_stands_in_the_tables_is_known_when_it_comes_in(case: Path) -> None:
    with analyze(case.parent) as analysis:
        store = analysis._store
        for table in sorted(store.filled):
            for column in TABLES[table].column_names:
                known = store.values_of(table, column)
                for row in store.rows_of(f'SELECT DISTINCT "{column}" AS value FROM main.{table}'):
                    assert row["value"] in known or (row["value"] is not None and _is_told(known, row["value"])), (
                        table,
                        column,
                    )


def _is_told(known: Collection[Any], value: Any) -> bool:
    return ANYTHING in known or any(isinstance(each, Between) and each.low <= value <= each.high for each in known)


def test_of_columns_of_numbers_the_least_and_the_most_are_told(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        rows = np.arange(5000)
        used = np.ma.masked_less(rows * 1024, 4096)
        store.load(
            "a",
            Batch(
                "gpu_sample",
                {"line": rows, "t": rows * 1.0, "gpu": rows % 8, "used_bytes": used, "gpu_util": rows / 5000},
            ),
        )
        store.load(
            "a", Batch("gpu_sample", {"line": rows, "gpu": rows % 4 + 6, "used_bytes": rows, "gpu_util": rows * np.nan})
        )
        store.flush()
        assert store.values_of("gpu_sample", "gpu") == {Between(0, 9)}
        assert store.values_of("gpu_sample", "used_bytes") == {Between(0, 4999 * 1024), None}
        assert store.values_of("gpu_sample", "gpu_util") == {Between(0.0, 4999 / 5000), None}
        assert store.values_of("gpu_sample", "total_bytes") == {None}
        assert ANYTHING in store.values_of("gpu_sample", "t")  # which may get another year
        store.load("a", Batch("gpu_sample", {"line": rows, "gpu": rows / 2}))  # DuckDB rounds them
        store.flush()
        assert ANYTHING in store.values_of("gpu_sample", "gpu")


def test_what_stands_in_a_column_is_told_as_far_as_it_is_few(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.add("milestone", [{"source": "a", "line": 1, "name": "serving", "rank": 3}])
        store.add("milestone", [{"source": "a", "line": 2, "name": None, "rank": 4}])
        store.flush()
        assert store.values_of("milestone", "name") == {"serving", None}
        assert store.values_of("milestone", "rank") == {3, 4}
        assert store.values_of("milestone", "pid") == {None}
        store.add("milestone", [{"source": "a", "line": line, "name": f"step {line}"} for line in range(400)])
        store.flush()
        assert {None, ANYTHING} <= set(store.values_of("milestone", "name"))
        store.add("milestone", [{"source": "a", "line": line, "name": "many", "t": float(line)} for line in range(600)])
        store.flush()
        assert {None, ANYTHING} <= set(store.values_of("milestone", "t"))
        store.empty()
        store.add("milestone", [{"source": "a", "line": 1, "name": "serving"}])
        store.flush()
        assert store.values_of("milestone", "name") == {"serving"}


# ---- what `docs/needs.py` reads off a query


def needs() -> Any:
    spec = importlib.util.spec_from_file_location("needs", ROOT / "docs" / "needs.py")
    assert spec is not None and spec.loader is not None
    sys.modules["needs"] = module = importlib.util.module_from_spec(spec)  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    return module


COLUMNS = {"a": ["k", "n"], "b": ["k"], "v": ["k", "n", "yes"], "w": ["n", "m"]}
AT = [
    ("FROM a", "a"),
    ("FROM seen.a", "a"),
    ("WITH a AS (FROM b) FROM a", "b"),
    ("WITH a AS (FROM b) FROM main.a", "a"),
    ("FROM a, b", {"any": ["a", "b"]}),
    ("FROM a LEFT JOIN b USING (k)", "a"),
    ("FROM a RIGHT JOIN b USING (k)", "b"),
    ("FROM a FULL JOIN b USING (k)", {"all": ["a", "b"]}),
    ("FROM a ANTI JOIN b USING (k)", "a"),
    ("FROM a SEMI JOIN b USING (k)", {"any": ["a", "b"]}),
    ("FROM a POSITIONAL JOIN b", {"all": ["a", "b"]}),
    ("FROM a, unnest([1])", "a"),
    ("FROM a UNION ALL SELECT 1, 2", None),
    ("FROM a INTERSECT FROM v", {"any": ["a", "v"]}),
    ("FROM a EXCEPT FROM v", "a"),
    ("WITH RECURSIVE r AS (SELECT k FROM a UNION ALL SELECT r.k FROM r, b) FROM r", "a"),
    ("SELECT max(k) FROM a", None),
    ("SELECT max(k) OVER () FROM a", "a"),
    ("SELECT n, max(k) FROM a GROUP BY n", "a"),
    ("SELECT n, max(k) FROM a GROUP BY ALL", "a"),
    ("SELECT 1, max(k) FROM a GROUP BY ALL", None),
    ("SELECT n, max(k) FROM a GROUP BY CUBE (n)", None),
    ("SELECT max(k) FROM a HAVING count(*) > 0", "a"),
    ("SELECT max(k) FROM a HAVING count(*) >= 0", None),
    ("SELECT max(k) AS n FROM a HAVING n > 0", None),
    ("SELECT 1 WHERE EXISTS (FROM a)", "a"),
    ("SELECT 1 WHERE NOT EXISTS (FROM a)", None),
    ("SELECT 1 WHERE 1 IN (SELECT k FROM a) OR EXISTS (FROM b)", {"all": ["a", "b"]}),
    ("SELECT 1 WHERE (SELECT max(k) FROM a) > 3", "a"),
    ("FROM v WHERE n > 3", ["v", "n", ">", 3]),
    ("FROM v WHERE 3 > v.n", ["v", "n", "<", 3]),
    ("FROM v WHERE NOT n > 3", ["v", "n", "<=", 3]),
    ("FROM v WHERE yes", ["v", "yes", "=", True]),
    ("FROM v WHERE NOT coalesce(yes, false)", {"all": [["v", "yes", "=", False], ["v", "yes", "IS NULL"]]}),
    ("FROM v WHERE n IN (1, 2) AND k IS NULL", {"any": [["v", "k", "IS NULL"], ["v", "n", "IN", [1, 2]]]}),
    ("FROM v WHERE n + k > 3", {"any": [["v", "k", "IS NOT NULL"], ["v", "n", "IS NOT NULL"]]}),
    ("FROM v WHERE n IS NOT DISTINCT FROM 3", "v"),
    ("FROM a LEFT JOIN v USING (k) WHERE v.n IS NULL", "a"),
    ("FROM a LEFT JOIN v USING (k) WHERE v.n = 1", {"any": ["a", ["v", "n", "=", 1]]}),
    ("SELECT 1 FROM (SELECT n AS x FROM v) WHERE x = 1", ["v", "n", "=", 1]),
    ("SELECT 1 FROM (SELECT n AS x FROM v) s, unnest([1]) u(x) WHERE s.x = 1", ["v", "n", "=", 1]),
    ("SELECT 1 FROM v, w WHERE n = 1", {"any": ["v", "w"]}),  # which of both nobody said
    ("SELECT 1 FROM (SELECT * REPLACE (1 AS n) FROM v) WHERE n = 1", "v"),
    ("SELECT 1 FROM (SELECT k, n FROM v UNION ALL SELECT n, m FROM w) WHERE n IS NOT NULL", {"all": [["v", "n", "IS NOT NULL"], ["w", "m", "IS NOT NULL"]]}),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "wanted"), AT, ids=[sql for sql, _ in AT])
def test_when_a_query_has_no_row(sql: str, wanted: Any) -> None:
    assert needs().rowless(sql, COLUMNS, {name: COLUMNS[name] for name in ("v", "w")}) == wanted


@pytest.mark.parametrize(
    ("holds", "wanted"),
    [
        ("CASE WHEN n > 3 THEN true END", ["v", "n", ">", 3]),
        ("CASE WHEN n > 3 THEN true ELSE k > 1 END", {"all": [["v", "k", "IS NOT NULL"], ["v", "n", ">", 3]]}),
        ("n > 3", ["v", "n", "IS NOT NULL"]),
        ("coalesce(n, 0) > 3", "v"),
        ("n IS NULL", "v"),
        ("count(*) > 0", None),
        ("CASE WHEN count(*) > 0 THEN true END", "v"),
        ("CASE WHEN count(n) FILTER (yes) > 0 THEN true END", {"any": [["v", "n", "IS NOT NULL"], ["v", "yes", "=", True]]}),
        ("max(n) > 3", ["v", "n", "IS NOT NULL"]),
    ],
)  # fmt: skip
def test_when_a_question_tells_nothing(holds: str, wanted: Any) -> None:
    assert needs().answerless(f"SELECT {holds} AS holds FROM v", COLUMNS, {"v": COLUMNS["v"]}) == wanted


BARE = [
    ("SELECT max(n) FROM v", ["v"]),  # a view that has a row even then
    ("SELECT max(m) FROM w", "w"),
    ("SELECT max(k) FROM a WHERE n > 3", ["a", "n", ">", 3]),
    ("SELECT max(k), (SELECT count(*) FROM b) FROM a WHERE n > 3", {"all": [["a", "n", ">", 3], "b"]}),
    ("SELECT k FROM a WHERE EXISTS (FROM b)", {"any": ["a", "b"]}),
    ("SELECT NOT EXISTS (FROM b) FROM (SELECT 1)", "b"),
    ("SELECT k FROM a UNION ALL SELECT k FROM b", {"all": ["a", "b"]}),
    ("WITH c AS (SELECT count(*) AS n FROM a WHERE k = 1) SELECT n FROM c", ["a", "k", "=", 1]),
    ("FROM (SELECT 1) LEFT JOIN a ON true", "a"),
    ("SELECT x FROM (SELECT k FROM a) s(x) LEFT JOIN b ON b.k = s.x", "a"),
    ("SELECT max(x) FROM (SELECT 1), (SELECT k FROM a) s(x)", "a"),
    ("SELECT 1 FROM (SELECT 1) JOIN a ON EXISTS (FROM b)", {"any": ["a", "b"]}),
    ("SELECT count(*) FROM unnest((SELECT list(k) FROM a))", "a"),
    ("SELECT count(*) FROM v WHERE n IS NULL", ["v"]),  # the row that it has even then may pass
    ("WITH RECURSIVE r AS (SELECT k FROM a UNION ALL SELECT r.k FROM r, b) SELECT count(*) FROM r", "a"),
]


@pytest.mark.parametrize(("sql", "wanted"), BARE, ids=[sql for sql, _ in BARE])
def test_when_a_query_gives_what_it_gives_without_evidence(sql: str, wanted: Any) -> None:
    told = {"a": COLUMNS["a"], "v": COLUMNS["v"]}
    assert needs().as_bare(sql, COLUMNS, told, {"v"}) == wanted


@pytest.mark.parametrize(
    ("claim", "so"),
    [
        (["v", "n", ">", 3], True),
        (["v", "n", ">", 2.5], False),
        (["v", "n", "=", "3"], False),  # SQL may cast one to the other
        (["v", "n", "=", True], False),
        (["v", "n", "NOT IN", [3]], True),
        (["v", "k", "IS NOT NULL"], True),
        (["v", "k", "<>", 3], True),
        (["v", "k", "IS NULL"], False),
        (["w", "n", "IS NULL"], False),
        (["v", "name", "LOWER IN", ["swap_space"]], False),
        (["v", "name", "LOWER IN", ["dtype"]], True),
        (["bare"], True),
        (["v"], False),
        ({"all": ["e", {"any": ["v", ["v", "n", "<", 3]]}]}, True),
        ({"all": []}, True),
        (["v", "many", ">", 9], True),
        (["v", "many", ">", 8.5], False),
        (["v", "many", ">=", 9], False),
        (["v", "many", "<", 2], True),
        (["v", "many", "<=", 2], False),
        (["v", "many", "=", 1], True),
        (["v", "many", "=", 5], False),
        (["v", "many", "=", "5"], False),
        (["v", "many", "<>", 5], False),
        (["v", "many", "IN", [0, 1, 10]], True),
        (["v", "many", "IN", [0, 3]], False),
        (["v", "many", "NOT IN", [2, 9]], False),
        (["v", "many", "IS NULL"], True),
        (["v", "many", "IS NOT NULL"], False),
        (None, False),
    ],
)
def test_whether_a_claim_is_so(claim: Any, so: bool) -> None:
    values = {("v", "n"): [3], ("v", "k"): [None], ("v", "name"): ["SWAP_SPACE", None], ("v", "many"): [Between(2, 9)]}
    known = is_so(claim, lambda name: name == "e", lambda name, column: values.get((name, column)), "bare".__eq__)
    assert known == so


# ---- rows that nobody would think of

QUESTIONS = list(shipped_questions(RULES))
EVIDENCE = [item.sql for rule in RULES for item in rule.evidence]
REASONS = [reason.sql for rule in RULES for reason in rule.reasons]
WORDS = ["", "a", "error", "cuda", "vllm:num_requests_waiting", "max_model_len", "0.9", "torch"]


def _any_value(kind: str, dice: random.Random) -> Any:
    if dice.random() < 0.3:
        return None
    if kind == "VARCHAR":
        return dice.choice(WORDS)
    if kind == "BOOLEAN":
        return dice.random() < 0.5
    return dice.choice([0, 0.5, 1, 2, 3] if kind == "DOUBLE" else [0, 1, 2, 3, 1 << 20])


def _any_bundle(dice: random.Random) -> dict[str, list[dict[str, Any]]]:
    """Some rows in some tables: few and many of each."""
    share = dice.choice([0.1, 0.5, 0.9])
    rows: dict[str, list[dict[str, Any]]] = {"source": [{"source": "vllm.log", "kind": "vllm-log", "rows": 3}]}
    for name, table in TABLES.items():
        if name in ("source", "expected_figure") or dice.random() > share:
            continue
        rows[name] = [
            {
                column.name: "vllm.log" if column.name == "source" else line if column.name == "line" else _any_value(column.type, dice)
                for column in table.columns
            }
            for line in range(1, dice.choice([1, 3]) + 1)
        ]  # fmt: skip
    return rows


def _asked(rows: Mapping[str, list[dict[str, Any]]], plainly: bool) -> tuple[list[Any], dict[str, list[str]]]:
    with Store() as store:
        store.derived.plainly = plainly
        for table, each in rows.items():
            store.add(table, each)
        store.finish()
        found = store.rows_of("SELECT incident FROM incident")
        store.focus(found[0]["incident"] if found else None)
        store.trust(QUESTIONS, QUESTIONS)
        answers = [(store.ask(sql) or {}).get("holds") for sql in EVIDENCE]
        answers += [bool((store.ask(sql) or {}).get("holds")) for sql in REASONS]  # FALSE is no reason, as NULL is none
        return answers, {name: sorted(map(repr, store.rows_of(f"FROM main.{name}"))) for name in VIEWS}


@pytest.mark.parametrize("seed", some(range(12), 4))
def test_answers_and_views_of_any_rows_are_the_same(seed: int) -> None:
    rows = _any_bundle(random.Random(seed))
    every, views = _asked(rows, True)
    fewer, same = _asked(rows, False)
    assert [sql for sql, one, other in zip(EVIDENCE + REASONS, every, fewer, strict=True) if one != other] == []
    assert [name for name in VIEWS if views[name] != same[name]] == []


def test_every_view_is_written_down() -> None:
    """One that reads a view made after it is not: so is a common table expression of such a view's name, which is then taken for it."""
    assert [name for name in VIEWS if name not in BLANK] == []


# ---- parts of views


def _give(store: Store, sql: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    return store.rows_of(f"DESCRIBE {sql}"), store.rows_of(sql)


def test_what_is_written_down_of_parts_is_of_the_views_there_are() -> None:
    told = {name: parts_of(name) for name in VIEWS if parts_of(name)}
    assert len(told) > 60
    for name, every in told.items():
        sql = VIEWS[name].sql
        assert sql[: every[0].at].split() in (["WITH"], ["WITH", "RECURSIVE"]), name
        for part in every:
            assert sql.startswith(part.name, part.at) and sql[part.begin - 1] == "(" and sql[part.end] == ")"
            assert part.text is None or part.bare is not None


def test_without_evidence_views_give_the_same_without_any_of_their_parts() -> None:
    with Store() as store:
        store.derived.plainly = True
        store.finish()
        store.focus(None)
        for name in VIEWS:
            whole = _give(store, VIEWS[name].sql)
            for part in parts_of(name):
                if part.text is not None:
                    claimed = part.bare
                    shorter = shortened(name, lambda claim, claimed=claimed: claim == claimed)
                    assert shorter != VIEWS[name].sql and _give(store, shorter) == whole, f"{name} {part.name}"
            assert _give(store, shortened(name, lambda claim: True)) == whole, name


@pytest.mark.parametrize("case", SOME[1::3], ids=lambda path: path.parent.name)
def test_views_without_those_parts_that_a_bundle_has_nothing_for_give_the_same(case: Path) -> None:
    with analyze(case.parent) as analysis:
        store = analysis._store
        store.derived.make_all()
        fewer = 0
        for name in VIEWS:
            shorter = shortened(name, store.derived._is_so)
            if shorter != VIEWS[name].sql:
                fewer += 1
                assert _give(store, shorter) == _give(store, VIEWS[name].sql), name
        assert fewer > 30


def test_a_part_that_has_rows_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the claims say decides: with all of them taken for so a bundle's failure is lost."""
    case = ROOT / "sample_logs" / "graph-capture-on-24gb"
    with analyze(case, SIGNS) as analysis:
        assert analysis.report.diagnoses[0].cause == "cuda-graph-overhead"
    monkeypatch.setattr(Derived, "_is_so", lambda self, claim: True)
    with analyze(case, SIGNS) as analysis:
        assert analysis.report.diagnoses[0].cause != "cuda-graph-overhead"
