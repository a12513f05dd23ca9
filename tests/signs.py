"""Cases of single queries: a few values in, one answer out, on either side of each threshold and guard.

A rule's own tests begin at evidence and end at a probability; a view's at evidence and end at a row. A case stands between: of what
the query reads it gives only what matters, and says what the query makes of it.

    tests/sign_cases/rules/<cause>.toml       tests/sign_cases/views/<view>.toml

    [[pool-pinned]]                           [[fate]]
    given.kv_pressure = {share_pinned = 0.2}  given.outcome = [{outcome = "died", ref = "a:9"}]
    holds = true                              gives = {outcome = "died"}

`given.<relation>` is a row or a list of rows; what is left out is NULL. A view that always has a row (engine, failure, ...) has
the one of an empty bundle, changed where something is given. `holds` is true, false or "unknown"; `gives` are columns of the first
row ("NULL" for NULL), a list of such for all its rows, or "no row". `seen.x` and `x` are the same rows here. Actions and sub-reasons
of a rule have cases like its signs; where an action has numbers of its own to give, a case may say `gives` beside `holds`.
"""

from __future__ import annotations

import functools
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

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


@dataclass(frozen=True)
class Case:
    """What a query reads, and what it is to answer: `holds` (True, False, None) of a sign, `gives` of a view (None: no row)."""

    query: str
    place: str
    given: Mapping[str, Sequence[Row]]
    holds: bool | None = None
    gives: Row | Sequence[Row] | None = None
    of_view: bool = False


def _cases(path: Path, of_view: bool) -> Iterator[Case]:
    raw = tomllib.loads(path.read_text("utf-8"))
    for query, entries in raw.items():
        for number, entry in enumerate(entries, 1):
            place = f"{path.stem}:{query}:{number}"
            assert entry.keys() <= {"why", "given", "gives"} | (set() if of_view else {"holds"}), place
            given = {name: rows if isinstance(rows, list) else [rows] for name, rows in entry.get("given", {}).items()}
            if of_view:
                gives = entry["gives"]
                yield Case(query, place, given, gives=None if gives == NO_ROW else gives, of_view=True)
            else:
                assert entry["holds"] in (True, False, UNKNOWN), place
                yield Case(query, place, given, holds=None if entry["holds"] == UNKNOWN else entry["holds"], gives=entry.get("gives"))  # fmt: skip


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
    """A database in which every relation is a plain table, to be filled for one case."""

    def __init__(self) -> None:
        self._con = duckdb.connect()
        self._con.execute("SET threads = 1; CREATE SCHEMA seen; SET TimeZone = 'UTC'")
        self._statements: dict[str, Any] = {}
        self.columns: dict[str, dict[str, str]] = {}
        with Store() as store:
            store.derived.plainly = True
            store.finish()
            store.focus(None)
            for name in (*TABLES, *OWN_TABLES, DEFAULTS, *VIEWS):
                self.columns[name] = {row["column_name"]: row["column_type"] for row in store.rows_of(f"DESCRIBE main.{name}")}  # fmt: skip
        for name, columns in self.columns.items():
            typed = ", ".join(f'"{key}" {kind}' for key, kind in columns.items())
            self._con.execute(f"CREATE TABLE {name} ({typed})")
            self._con.execute(f"CREATE VIEW seen.{name} AS FROM main.{name}")
            if name in BLANK:
                self._fill(name, BLANK[name].rows)
        self._touched: set[str] = set()

    def fill(self, case: Case) -> None:
        """Empty what the last case filled, and put this one's rows in."""
        for name in self._touched:
            self._run(f"DELETE FROM {name}")
            if name in BLANK:
                self._fill(name, BLANK[name].rows)
        self._touched = set(case.given)
        for name, rows in case.given.items():
            assert name in self.columns, (case.place, name)
            blank = BLANK[name].rows if name in BLANK else ()
            self._run(f"DELETE FROM {name}")
            self._fill(name, [{**(blank[0] if blank else {}), **row} for row in rows], case.place)

    def _fill(self, name: str, rows: Sequence[Row], place: str = "") -> None:
        for row in rows:
            assert row.keys() <= self.columns[name].keys(), (place, name, sorted(row.keys() - self.columns[name].keys()))  # fmt: skip
            kept = {key: value for key, value in row.items() if value != "NULL"}
            marks = ", ".join(f"CAST(? AS {self.columns[name][key]})" if not isinstance(value, (dict, list)) else f"CAST(json(?) AS {self.columns[name][key]})" for key, value in kept.items())  # fmt: skip
            if not kept:
                self._run(f"INSERT INTO {name} ({next(iter(self.columns[name]))}) VALUES (NULL)")
                continue
            names = ", ".join(f'"{key}"' for key in kept)
            self._run(
                f"INSERT INTO {name} ({names}) VALUES ({marks})",
                [json.dumps(value) if isinstance(value, (dict, list)) else value for value in kept.values()],
            )

    def _run(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Execute a statement, whose text is parsed once: that is a third of its price on a few rows."""
        if sql not in self._statements:
            (self._statements[sql],) = self._con.extract_statements(sql)
        return self._con.execute(self._statements[sql], values)

    def ask(self, sql: str) -> dict[str, Any] | None:
        """The first row of a query."""
        return next(iter(self.rows(sql)), None)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """The rows of a query."""
        cursor = self._run(sql)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def fault(self, case: Case, sql: str) -> str:
        """What a query answers otherwise than its case says; empty where it answers so. Fill the desk first."""
        if not case.of_view:
            row = self.ask(sql)
            holds = None if row is None or row["holds"] is None else bool(row["holds"])
            if holds is not case.holds:
                return f"{case.place}: holds is {holds}, not {case.holds}"
            return _differs(case, row, case.gives) if row is not None and isinstance(case.gives, Mapping) else ""
        rows = self.rows(sql)
        given = [] if case.gives is None else [case.gives] if isinstance(case.gives, Mapping) else case.gives
        if len(rows) != len(given) and not (isinstance(case.gives, Mapping) and rows):
            return f"{case.place}: {rows}"
        for row, gives in zip(rows, given, strict=False):
            if fault := _differs(case, row, gives):
                return fault
        return ""


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


def read_by(sql: str) -> frozenset[str]:
    """What a query names of what a case can give."""
    row = duckdb.execute("SELECT json_serialize_sql($1)", [sql]).fetchone()
    named = set(re.findall(r'"table_name":"(\w+)"', row[0] if row else ""))
    return frozenset(named & {*TABLES, *VIEWS, *OWN_TABLES, DEFAULTS})
