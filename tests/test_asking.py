"""What a query of a stranger may do: ask. Forged rules, and every function that DuckDB has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from oomdoc.diagnose import Options, analyze
from oomdoc.errors import UsageError
from oomdoc.evidence.asking import TABLE_FUNCTIONS, one_select
from oomdoc.evidence.store import Store
from oomdoc.judge.rules import load_rules, shipped_queries

BUNDLE = Path(__file__).parents[1] / "sample_logs" / "kv-demand-long-chats"
DELETE = "WITH x AS (DEL'||'ETE FROM kv_pressure RETURNING 1) SELECT * FROM x"
FORGED: tuple[str, ...] = (
    # SQL that a function runs, on a connection of its own
    f"SELECT count(*) >= 0 AS holds FROM (SELECT * FROM json_execute_serialized_sql(json_serialize_sql('{DELETE}')))",
    f"SELECT count(*) >= 0 AS holds FROM json_execute_serialized_sql(json_serialize_sql('{DELETE}'))",
    f"SELECT true AS holds WHERE EXISTS (FROM JSON_Execute_Serialized_SQL(json_serialize_sql('{DELETE}')))",
    f"SELECT holds FROM (SELECT true AS holds) t, LATERAL (FROM json_execute_serialized_sql(json_serialize_sql('{DELETE}')))",
    f"SELECT true AS holds FROM system.main.\"json_execute_serialized_sql\"(json_serialize_sql('{DELETE}'))",
    f"WITH q AS MATERIALIZED (SELECT json_serialize_sql('{DELETE}') AS s) SELECT s IS NOT NULL AS holds FROM q",
    "SELECT json_deserialize_sql(json_serialize_sql('SELECT 1')) IS NOT NULL AS holds",
    "SELECT json_serialize_plan('SELECT 1') IS NOT NULL AS holds",
    f"SELECT count(*) >= 0 AS holds FROM query('{DELETE}')",
    "SELECT count(*) >= 0 AS holds FROM query('FROM query(''FROM oom'')')",
    "SELECT count(*) >= 0 AS holds FROM query_table(['oom', 'kv_pressure'])",
    "PRAGMA json_execute_serialized_sql('{}')",
    # statements that are no SELECT, and a SELECT that writes
    "WITH x AS (DELETE FROM kv_pressure RETURNING 1) SELECT true AS holds FROM x",
    "WITH x AS (DELETE FROM focus RETURNING 1) SELECT true AS holds FROM x",
    "WITH x AS (UPDATE focus SET incident = NULL RETURNING 1) SELECT true AS holds FROM x",
    "WITH x AS (INSERT INTO hidden SELECT source, 0, 99999 FROM source RETURNING 1) SELECT true AS holds FROM x",
    "WITH x AS (INSERT INTO oom (source, line) VALUES ('x', 1) RETURNING 1) SELECT true AS holds FROM x",
    "SELECT true AS holds; DELETE FROM kv_pressure",
    "CREATE MACRO seen.failure() AS TABLE SELECT 1",
    "CREATE OR REPLACE TEMP MACRO count(x) AS 0",
    "CREATE OR REPLACE TEMP VIEW kv_pressure AS SELECT 1",
    "CREATE TEMP TABLE kv_pressure AS SELECT 1",
    "PREPARE p AS DELETE FROM kv_pressure",
    "EXECUTE p",
    "CALL checkpoint()",
    "EXPLAIN ANALYZE DELETE FROM kv_pressure",
    # pragmas, settings, variables, files, secrets
    "PRAGMA enable_profiling",
    "PRAGMA disable_optimizer",
    "SET VARIABLE v = 'DELETE FROM kv_pressure'",
    "SELECT getvariable('v') IS NULL AS holds",
    "SELECT current_setting('threads') = '1' AS holds",
    "SET lock_configuration = false",
    "RESET memory_limit",
    "ATTACH ':memory:' AS other",
    "DETACH apart",
    "USE seen",
    "COPY kv_pressure TO 'HERE/leak.csv'",
    "COPY (SELECT 1) TO 'HERE/leak.parquet'",
    "EXPORT DATABASE 'HERE/leak'",
    "LOAD 'HERE/leak.duckdb_extension'",
    "CREATE SECRET leak (TYPE http)",
    "SELECT count(*) >= 0 AS holds FROM duckdb_secrets()",
    "SELECT count(*) >= 0 AS holds FROM which_secret('s3://x', 's3')",
    "SELECT count(*) >= 0 AS holds FROM read_text('HERE/*')",
    "SELECT count(*) >= 0 AS holds FROM glob('/**')",
    "SELECT count(*) >= 0 AS holds FROM read_duckdb('HERE/x.duckdb')",
    # a state of the program, and answers that are others tomorrow
    "SELECT count(*) >= 0 AS holds FROM enable_profiling()",
    "SELECT count(*) >= 0 AS holds FROM enable_logging()",
    "SELECT count(*) >= 0 AS holds FROM checkpoint()",
    "SELECT write_log('leak') IS NULL AS holds",
    "SELECT 'leak'.write_log() IS NULL AS holds",
    "SELECT setseed(0.5) IS NULL AS holds",
    "SELECT nextval('s') > 0 AS holds",
    "SELECT random() < 0.5 AS holds",
    "SELECT now() > '2020-01-01'::TIMESTAMPTZ AS holds",
    "SELECT sleep_ms(1) IS NULL AS holds",
)
RULE = """id = "forged-{number}"
title = "forged"
summary = "forged"
prior = 0.01
[[evidence]]
id = "forged"
says = "forged"
sql = '''{sql}'''
p_cause = 0.9
p_other = 0.1
"""


def test_forged_rules_change_nothing_and_are_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "rules" / "none"
    folder.mkdir(parents=True)
    (tmp_path / "here").mkdir()
    for number, sql in enumerate(FORGED):
        text = RULE.format(number=number, sql=sql.replace("HERE", str(tmp_path / "here")))
        (folder / f"forged-{number}.toml").write_text(text, encoding="utf-8")
    with analyze(BUNDLE, Options()) as plain:
        wanted, tables = plain.to_dict(), contents(plain._store)
    with analyze(BUNDLE, Options(rules=tmp_path / "rules")) as forged:
        told, after = forged.to_dict(), contents(forged._store)
    assert after == tables
    ours = [{**item, "rank": 0} for item in told["diagnoses"] if not item["cause"].startswith("forged")]
    assert ours == [{**item, "rank": 0} for item in wanted["diagnoses"]]
    assert told["verdict"] == wanted["verdict"]
    unnamed = [sql for number, sql in enumerate(FORGED) if not any(f"forged-{number}.toml:" in warning and "counts as unknown" in warning for warning in told["warnings"])]  # fmt: skip
    assert unnamed == []
    assert list((tmp_path / "here").iterdir()) == []
    assert capfd.readouterr().out == "", "profiling prints"


def read(store: Store, sql: str) -> list[dict[str, Any]]:
    """What a statement answers now: the store gives an answer again until it has written something itself."""
    cursor = store.database.con.execute(sql)
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def contents(store: Store) -> str:
    """Every row of every table, and every setting of the database."""
    store.derived.make_all()  # which otherwise happens as they are asked
    tables = read(store, "SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal ORDER BY 1, 2")
    rows = {f'{row["schema_name"]}.{row["table_name"]}': read(store, f'SELECT * FROM {row["schema_name"]}."{row["table_name"]}"') for row in tables}  # fmt: skip
    rows["settings"] = read(store, "SELECT name, value FROM duckdb_settings() WHERE name NOT LIKE '%director%' ORDER BY 1")  # fmt: skip
    rows["views"] = read(store, "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal ORDER BY 1, 2")
    rows["log"] = read(store, "SELECT count(*) AS n FROM duckdb_logs")
    return json.dumps(rows, default=str)


def opened(scratch: Path) -> Store:
    store = Store(scratch)
    store.add("oom", [{"source": "v.log", "line": 3}])
    store.finish()
    store.focus(None)
    return store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "scratch") as alone:
        yield alone


@pytest.fixture(scope="module")
def asked_only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """One for all tests that look at a single answer."""
    with opened(tmp_path_factory.mktemp("asked") / "scratch") as shared:
        yield shared


ARGUMENTS = {"VARCHAR": "'oom'", "BIGINT": "1", "INTEGER": "1", "DOUBLE": "0.5", "BOOLEAN": "true", "UBIGINT": "1", "POINTER": "NULL", "JSON": "json_serialize_sql('FROM oom')"}  # fmt: skip


def calls(store: Store, kinds: str) -> Iterator[tuple[str, str]]:
    """Every function of these kinds, with its name, called with something that fits its parameters."""
    asked = (
        f"SELECT function_name, parameter_types FROM duckdb_functions() WHERE function_type IN ({kinds}) ORDER BY ALL"
    )
    for row in store.rows_of(asked):
        types = [str(kind) for kind in row["parameter_types"]]
        given = ", ".join(ARGUMENTS.get(kind, "['oom']" if kind.endswith("[]") else f"NULL::{kind}" if kind.isupper() and kind not in ("ANY", "TABLE", "NULL") else "'oom'") for kind in types)  # fmt: skip
        yield row["function_name"], given


def test_no_table_function_of_duckdb_changes_anything(store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    before = contents(store)
    answered, seen = set(), set()
    tried = list(calls(store, "'table', 'table_macro', 'pragma'"))
    for begin in range(0, len(tried), 25):  # to look at everything costs more than to ask
        some = tried[begin : begin + 25]
        for name, given in some:
            for sql in (f'SELECT * FROM "{name}"({given})', f'SELECT true FROM oom, "{name}"({given})'):
                seen.add(name)
                try:
                    store.ask(sql)
                    store.query(sql)
                    answered.add(name)
                except (duckdb.Error, UsageError):
                    pass
        assert contents(store) == before, [name for name, _ in some]
    assert len(seen) > 100
    assert answered <= TABLE_FUNCTIONS
    assert {"range", "repeat", "duckdb_tables"} <= answered, "what a query may read from, it can"
    assert capfd.readouterr().out == ""


def test_the_walk_would_see_a_change(store: Store) -> None:
    before = contents(store)
    store.database.con.execute("FROM json_execute_serialized_sql(json_serialize_sql('WITH x AS (DELETE FROM oom RETURNING 1) FROM x'))").fetchall()  # fmt: skip
    assert contents(store) != before
    before = contents(store)
    store.database.con.execute("WITH x AS (DELETE FROM focus RETURNING 1) FROM x").fetchall()
    assert contents(store) != before


def test_no_function_with_an_effect_is_called(store: Store) -> None:
    asked = (
        "SELECT DISTINCT function_name AS name FROM duckdb_functions() WHERE has_side_effects OR stability = 'VOLATILE'"
    )
    volatile = {row["name"] for row in store.rows_of(asked)}
    assert {"nextval", "setval", "setseed", "write_log", "random"} <= volatile
    for name, given in calls(store, "'scalar', 'macro'"):
        if name in volatile:
            with pytest.raises(duckdb.Error):
                store.ask(f'SELECT "{name}"({given})')
            with pytest.raises(UsageError):
                store.query(f'SELECT "{name}"({given})')


def test_a_person_may_ask_for_the_time(asked_only: Store) -> None:
    assert asked_only.query("SELECT now() > '2020-01-01'::TIMESTAMPTZ")[1] == [(True,)]


@pytest.mark.parametrize("asked", ["now()", "today()", "age(TIMESTAMP '2026-01-02 03:04:05')"])
def test_a_rule_may_not_ask_for_the_time(asked: str, asked_only: Store) -> None:
    with pytest.raises(duckdb.Error, match="may not call"):
        one_select(f"SELECT {asked} AS holds", asked_only.database.con)
    one_select(f"SELECT {asked} AS holds", asked_only.database.con, clock=True)


@pytest.mark.parametrize("asked", ["1 + 2 - 3", "date_part('hour', TIMESTAMP '2026-01-02 03:04:05')", "date_trunc('day', to_timestamp(t))"])  # fmt: skip
def test_what_computes_with_times_is_no_clock(asked: str, asked_only: Store) -> None:
    """Whatever a release of DuckDB says of those of its signatures that read a zone."""
    one_select(f"SELECT {asked} AS holds FROM oom", asked_only.database.con)


@pytest.mark.parametrize("sql", ["DESCRIBE oom", "SUMMARIZE oom", "FROM oom", "SELECT * FROM duckdb_tables()", "SELECT replace(source, 'v', 'delete from oom; drop') FROM oom"])  # fmt: skip
def test_what_asks_is_answered(sql: str, asked_only: Store) -> None:
    assert asked_only.query(sql)[1]


def test_every_shipped_query_would_pass_the_check(asked_only: Store) -> None:
    rules, _ = load_rules(tests=False)
    queries = list(dict.fromkeys(shipped_queries(rules)))
    assert len(queries) > 200
    for sql in queries:
        one_select(sql, asked_only.database.con)


def test_only_shipped_rules_are_trusted(tmp_path: Path) -> None:
    folder = tmp_path / "none"
    folder.mkdir()
    (folder / "forged-1.toml").write_text(RULE.format(number=1, sql="SELECT 1 AS holds"), encoding="utf-8")
    rules: Any = load_rules(tmp_path, tests=False)[0]
    assert "SELECT 1 AS holds" not in set(shipped_queries(rules))


def test_a_question_that_failed_does_not_stop_the_next(store: Store) -> None:
    with pytest.raises(duckdb.Error):
        store.ask("SELECT no_such FROM oom")
    assert store.ask("SELECT line FROM oom") == {"line": 3}
    store.focus(None)
    assert store.ask("SELECT line FROM oom") == {"line": 3}
