"""Cases of single queries: a few values in, one answer out, on either side of each threshold and guard.

A rule's own tests begin at evidence and end at a probability; a view's at evidence and end at a row. A case stands between: of what
the query reads it gives only what matters, and says what the query makes of it.

    tests/sign_cases/rules/<cause>.toml       tests/sign_cases/views/<view>.toml

    [[pool-pinned]]                           [[fate]]
    given.kv_pressure = {share_pinned = 0.2}  given.outcome = [{outcome = "died", ref = "a:9"}]
    holds = true                              gives = {outcome = "died"}

`given.<relation>` is a row or a list of rows; what is left out is NULL. A course of rows is one with `each`, the columns that differ
(`{source = "a", line = 1, each = {t = [0, 60], bytes = [5, 7]}}`: two rows; where a line is told, it is the first's and the others follow). A view that always has a row (engine, failure, ...) has
the one of an empty bundle, changed where something is given. `holds` is true, false or "unknown"; `gives` are columns of the first
row ("NULL" for NULL), a list of such for all its rows, or "no row". `seen.x` and `x` are the same rows here. Actions and sub-reasons
of a rule have cases like its signs; where an action has numbers of its own to give, a case may say `gives` beside `holds`.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import tomli

from grids import WHOLE
from oomdoc.evidence.store import OWN_TABLES, Store
from oomdoc.evidence.tables import TABLES
from oomdoc.judge.rules import Rule
from oomdoc.views import VIEWS
from oomdoc.views.blank import BLANK

FOLDER = Path(__file__).with_name("sign_cases")
UNKNOWN = "unknown"
NO_ROW = "no row"
DEFAULTS = "engine_default"
"""The engine's defaults by version, which no bundle holds."""
Row = Mapping[str, Any]
Node = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """What a query reads, and what it is to answer: `holds` (True, False, None) of a sign, `gives` of a view (None: no row)."""

    query: str
    place: str
    given: Mapping[str, Sequence[Row]]
    holds: bool | None = None
    gives: Row | Sequence[Row] | None = None
    of_view: bool = False


def read_cases(path: Path) -> tuple[Case, ...]:
    """The cases of the signs of a rule, out of any file."""
    return tuple(_cases(path, of_view=False))


def _cases(path: Path, of_view: bool) -> Iterator[Case]:
    raw = tomli.loads(path.read_text("utf-8"))
    for query, entries in raw.items():
        for number, entry in enumerate(entries, 1):
            place = f"{path.stem}:{query}:{number}"
            assert entry.keys() <= {"why", "given", "gives"} | (set() if of_view else {"holds"}), place
            given = {
                name: [row for told in (rows if isinstance(rows, list) else [rows]) for row in _course(told)]
                for name, rows in entry.get("given", {}).items()
            }
            if of_view:
                gives = entry["gives"]
                yield Case(query, place, given, gives=None if gives == NO_ROW else gives, of_view=True)
            else:
                assert entry["holds"] in (True, False, UNKNOWN), place
                yield Case(query, place, given, holds=None if entry["holds"] == UNKNOWN else entry["holds"], gives=entry.get("gives"))  # fmt: skip


def _course(told: Row) -> Iterator[Row]:
    """The rows that one stands for: itself, or those of its `each`."""
    if not isinstance(told.get("each"), Mapping):
        yield told
        return
    same = {key: value for key, value in told.items() if key != "each"}
    for place, values in enumerate(zip(*told["each"].values(), strict=True)):
        line = {"line": same["line"] + place} if "line" in same else {}
        yield {
            **same,
            **line,
            **{key: value for key, value in zip(told["each"], values, strict=True) if value != "NULL"},
        }


@functools.cache
def of_rule(cause: str) -> tuple[Case, ...]:
    """The cases of a rule's signs."""
    path = FOLDER / "rules" / f"{cause}.toml"
    return tuple(_cases(path, of_view=False)) if path.exists() else ()


@functools.cache
def of_view(view: str) -> tuple[Case, ...]:
    """The cases of a view."""
    path = FOLDER / "views" / f"{view}.toml"
    return tuple(_cases(path, of_view=True)) if path.exists() else ()


class Desk:
    """A database for many cases at once, since to plan a query costs a hundred times what it then reads.

    Every relation is a table with a column more, the case that a row is of. A query is planned once for all cases: as it stands, in a
    lateral join with their numbers, each relation in it being the rows of one case (`laid_out`). `alone` asks it of one case as it is.
    """

    def __init__(self) -> None:
        self._con = duckdb.connect()
        self._con.execute(
            "SET threads = 1; SET TimeZone = 'UTC'; CREATE SCHEMA seen; CREATE SCHEMA of_cases; SET VARIABLE case_ = -1"
        )
        self.columns: dict[str, dict[str, str]] = {}
        with Store() as store:
            store.derived.plainly = True
            store.finish()
            store.focus(None)
            for name in (*TABLES, *OWN_TABLES, DEFAULTS, *VIEWS):
                self.columns[name] = {row["column_name"]: row["column_type"] for row in store.rows_of(f"DESCRIBE main.{name}")}  # fmt: skip
        for name, columns in self.columns.items():
            typed = ", ".join(f'"{key}" {kind}' for key, kind in columns.items())
            self._con.execute(f"CREATE TABLE of_cases.{name} (case_ INTEGER, {typed})")
            self._con.execute(f"CREATE VIEW {name} AS SELECT * EXCLUDE (case_) FROM of_cases.{name} WHERE case_ = getvariable('case_')")  # fmt: skip
            self._con.execute(f"CREATE VIEW seen.{name} AS FROM main.{name}")
        self._filled: frozenset[str] = frozenset()
        self._number: dict[str, int] = {}

    def fill(self, cases: Sequence[Case], read: frozenset[str]) -> None:
        """Put these cases in place of others: of what their queries read (`read`) the rows that each gives, or those of an empty bundle."""
        for name in self._filled:
            self._con.execute(f"DELETE FROM of_cases.{name}")
        self._filled = read | {name for case in cases for name in case.given}
        self._number = {case.place: number for number, case in enumerate(cases)}
        for name in sorted(self._filled):
            assert name in self.columns, [case.place for case in cases if name in case.given]
            blank = BLANK[name].rows if name in BLANK else ()
            rows = []
            for number, case in enumerate(cases):
                for row in case.given.get(name, ()):
                    assert row.keys() <= self.columns[name].keys(), (case.place, name, sorted(row.keys() - self.columns[name].keys()))  # fmt: skip
                    rows.append({"case_": number, **(blank[0] if blank else {}), **row})
                if name not in case.given:
                    rows += [{"case_": number, **row} for row in blank]
            self._insert(name, rows)

    def _insert(self, name: str, rows: Sequence[Row]) -> None:
        """All rows of a relation in one statement, whatever they leave out. Text is what every type can be made of."""
        columns = {"case_": "INTEGER", **self.columns[name]}
        used = [key for key in columns if any(key in row for row in rows)]
        if rows:
            picked = ", ".join(f"CAST({'json' if columns[key].endswith(']') else ''}(unnest(${place}::VARCHAR[])) AS {columns[key]})" for place, key in enumerate(used, 1))  # fmt: skip
            names = ", ".join(f'"{key}"' for key in used)
            self._con.execute(f"INSERT INTO of_cases.{name} ({names}) SELECT {picked}", [[_text(row.get(key)) for row in rows] for key in used])  # fmt: skip

    def together(self, cases: Sequence[Case], sql: str) -> list[list[dict[str, Any]]]:
        """The rows of a query over each of these cases, in any order."""
        numbers = ", ".join(f"({self._number[case.place]})" for case in cases)
        told: dict[int, list[dict[str, Any]]] = {self._number[case.place]: [] for case in cases}
        of_one = laid_out(sql, frozenset(self.columns))
        for row in self._rows(f"SELECT cases_.*, q_.* FROM (VALUES {numbers}) cases_(case_), LATERAL ({of_one}) q_"):
            told[row.pop("case_")].append(row)
        return [told[self._number[case.place]] for case in cases]

    def alone(self, case: Case, sql: str) -> list[dict[str, Any]]:
        """The rows of a query as it stands over one of the cases."""
        self._con.execute(f"SET VARIABLE case_ = {self._number[case.place]}")
        try:
            return self._rows(sql)
        finally:
            self._con.execute("SET VARIABLE case_ = -1")

    def _rows(self, sql: str) -> list[dict[str, Any]]:
        cursor = self._con.execute(sql)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def faults(self, cases: Sequence[Case], sql: str) -> Iterator[str]:
        """What a query answers otherwise than these cases say, of those that the desk is filled with; nothing where it answers so.

        Where several rows come their order may matter, which a join does not keep; and a fault is to be one of the query as it stands.
        Such cases are asked alone, with `make whole` all are.
        """
        ordered = any(part["type"] == "ORDER_MODIFIER" for part in parsed(sql)["statements"][0]["node"]["modifiers"])
        for case, rows in zip(cases, self.together(cases, sql), strict=True):
            by_order = len(rows) > 1 and (ordered or not isinstance(case.gives, list))
            again = by_order or WHOLE or _fault(case, rows, ordered)
            if fault := _fault(case, self.alone(case, sql) if again else rows, ordered):
                yield fault


def _fault(case: Case, rows: Sequence[Row], ordered: bool) -> str:
    """What these rows say otherwise than the case; a query without an order promises none."""
    if not case.of_view:
        row = rows[0] if rows else None
        holds = None if row is None or row["holds"] is None else bool(row["holds"])
        if holds is not case.holds:
            return f"{case.place}: holds is {holds}, not {case.holds}"
        return _differs(case, row, case.gives) if row is not None and isinstance(case.gives, Mapping) else ""
    given = [] if case.gives is None else [case.gives] if isinstance(case.gives, Mapping) else case.gives
    if len(rows) != len(given) and not (isinstance(case.gives, Mapping) and rows):
        return f"{case.place}: {rows}"
    left = list(rows)
    for gives in given:
        place = 0 if ordered else next((place for place, row in enumerate(left) if not _differs(case, row, gives)), 0)
        if fault := _differs(case, left.pop(place), gives):
            return fault
    return ""


def _text(value: Any) -> str | None:
    return (
        None
        if value is None or value == "NULL"
        else json.dumps(value)
        if isinstance(value, (dict, list))
        else str(value)
    )


def parsed(sql: str) -> Node:
    """The syntax tree of a SELECT, as DuckDB gives it."""
    tree: Node = json.loads(duckdb.execute("SELECT json_serialize_sql(?)", [sql]).fetchone()[0])  # type: ignore[index]
    assert not tree["error"], (sql, tree)
    return tree


def written(tree: Node) -> str:
    """The SELECT of a syntax tree."""
    return str(duckdb.execute("SELECT json_deserialize_sql(?)", [json.dumps(tree)]).fetchone()[0])  # type: ignore[index]


def laid_out(sql: str, relations: frozenset[str], apart: frozenset[str] = frozenset()) -> str:
    """The query with each relation in it being the rows of the case `cases_.case_`, to stand in a lateral join.

    `apart` are names with a schema (`seen.oom`) whose rows are others than those of the bare name; they stand in `of_cases.seen_oom`.
    """
    tree = parsed(sql)
    _lay_out(tree, relations, apart, frozenset())
    return written(tree)


@functools.cache
def _rows_of_a_case(table: str, alias: str) -> str:
    """The rows of one case as the syntax tree of a subquery, as text: each place gets a tree of its own."""
    rows = parsed(
        f"SELECT * FROM (SELECT * EXCLUDE (case_) FROM of_cases.{table} WHERE case_ = cases_.case_) AS {alias}"
    )
    return json.dumps(rows["statements"][0]["node"]["from_table"])


def _lay_out(node: Any, relations: frozenset[str], apart: frozenset[str], hidden: frozenset[str]) -> None:
    """`hidden` are names that a WITH around has given to something of its own, from the next of its queries on."""
    if isinstance(node, list):
        for child in node:
            _lay_out(child, relations, apart, hidden)
    elif isinstance(node, dict):
        for entry in (node.get("cte_map") or {}).get("map", ()):
            _lay_out(entry["value"], relations, apart, hidden)
            hidden |= {entry["key"]}
        if node.get("type") == "BASE_TABLE" and node["table_name"] in relations - (
            hidden if not node["schema_name"] else frozenset()
        ):
            name, schema, alias = node["table_name"], node["schema_name"], node["alias"] or node["table_name"]
            table = f"{schema}_{name}" if f"{schema}.{name}" in apart else name
            instead = {**json.loads(_rows_of_a_case(table, alias)), "column_name_alias": node["column_name_alias"]}
            node.clear()
            node.update(instead)
            return
        for key, child in node.items():
            if key != "cte_map":
                _lay_out(child, relations, apart, hidden)


def _differs(case: Case, row: Row, gives: Row) -> str:
    """The first column that is not as a case gives it."""
    for key, value in gives.items():
        told = row[key]
        near = isinstance(value, float) and isinstance(told, (int, float, Decimal)) and abs(float(told) - value) <= 1e-9 * max(1.0, abs(value))  # fmt: skip
        if not (told is None if value == "NULL" else told == value or near):
            return f"{case.place}: {key} is {told}, not {value}"
    return ""


def sql_of(rule: Rule, sign: str) -> str:
    """The query of a rule's sign, action or sub-reason."""
    return next(item.sql for item in (*rule.evidence, *rule.actions, *rule.reasons) if item.id == sign)


@functools.cache
def read_by(sql: str) -> frozenset[str]:
    """What a query names of what a case can give."""
    row = duckdb.execute("SELECT json_serialize_sql($1)", [sql]).fetchone()
    named = set(re.findall(r'"table_name":"(\w+)"', row[0] if row else ""))
    return frozenset(named & {*TABLES, *VIEWS, *OWN_TABLES, DEFAULTS})
