"""The evidence of one bundle in DuckDB: what comes in, whose it is, which of it an incident sees, one question at a time.

Tables live in memory under a limit; sources of many rows go into a file of the scratch folder (`incoming`), views are made as they
are asked (`derived`). Rule queries are data from outside: exactly one SELECT that only computes (`asking`), in a transaction that
only reads, no files, no extensions, configuration locked, bounded in time (`database`).
"""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from oomdoc.errors import UsageError
from oomdoc.evidence.asking import one_select, parsed
from oomdoc.evidence.database import STATEMENTS, Database, QueryError, connect, quoted
from oomdoc.evidence.derived import Derived
from oomdoc.evidence.incoming import BUFFER_ROWS, Incoming
from oomdoc.evidence.tables import TABLES, Batch
from oomdoc.faults import first_line
from oomdoc.physics.defaults import defaults
from oomdoc.scene import COINCIDENT, FOREIGN, UNKNOWN, Scene, bind
from oomdoc.views.blank import question

__all__ = ["LOG_TABLES", "OWN_TABLES", "QueryError", "Store", "quoted"]

OWN_TABLES = ("focus", "hidden", "relation", "life", "host_kill")
"""Tables that the store fills itself, beside those that are the same for every bundle."""

_MOST_TOLD = 100
"""Rows of an answer that is kept for whoever asks the same again."""
_FEW_ROWS = 4_000
"""Rows that come as well one by one."""
LOG_TABLES = (
    "milestone", "engine_flag", "engine_figure", "engine_stat", "preemption", "oom", "startup_check", "log_error", "frame",
    "process_exit", "crash_step", "cache_lookup",
)  # fmt: skip
"""Tables that belong to an engine start and are seen per incident."""


class Store:
    """Evidence tables and the views over them. Use as a context manager; everything in the scratch folder goes with it."""

    def __init__(self, scratch: Path | None = None, db: Path | None = None) -> None:
        """Open a store in memory (spilling to `scratch`) or, with `db`, in a new file that stays."""
        self.database = Database(scratch, db)
        self._incoming = Incoming(self.database, None if db or scratch is None else scratch / "rows.duckdb")
        self.derived = Derived(self.database, self._incoming.filled, self._incoming.values_of, at_once=db is not None)
        self.filled = self._incoming.filled
        """Tables that have rows."""
        self.values_of = self._incoming.values_of
        """What may stand in a column of one."""
        self.unanswered = self.derived.unanswered
        """Views that would have needed more memory than there is."""
        self._told: dict[str, list[dict[str, Any]]] = {}  # what `rows_of` said since something was written
        self._checked: dict[str, Any] = {}  # queries from outside, parsed
        self._trusted: frozenset[str] = frozenset()
        self._questions: frozenset[str] = frozenset()
        self._locked = False  # no setting can be changed any more
        self._own: set[str] = set()
        self.scene: Scene
        """Whose each event is: set by `finish`."""
        self._incoming.make_tables()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self, whole: bool = False) -> None:
        """Close the database.

        With `whole` everything is written to its file first, and what prevents that is raised: closing says nothing of it.
        """
        self.database.stop_watching()
        try:
            self.database.write()
            if whole:
                self.database.con.execute("CHECKPOINT")
        finally:
            self._incoming.stop_writing()
            self.database.close()

    # ---- loading

    def load(self, source: str, batch: Batch) -> None:
        """Append a batch; rare rows are gathered as lists, columns of numpy arrays as such."""
        self._incoming.load(source, batch)

    def add(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows given as mappings (rule tests, the `source` table); absent columns are NULL."""
        self._incoming.add(table, rows)

    def flush(self) -> None:
        """Write what was gathered."""
        self._told.clear()
        self._incoming.flush()

    def keep_between(self, since: float | None, until: float | None, tz: dt.tzinfo | None = None) -> None:
        """Drop rows whose time lies outside; rows without a time stay."""
        self._told.clear()
        self._incoming.keep_between(since, until, tz)

    # ---- views

    def finish(self, tz: dt.tzinfo | None = None) -> None:
        """Everything is loaded: give year-less stamps their year, work out whose each event is, lock the door.

        `tz` is the zone of the engine's own stamps, which name none; without it they count as UTC.
        """
        self.flush()
        self._incoming.count_from_boot(tz)  # before the years: it may be what tells them
        self._incoming.set_years(tz)
        self._incoming.join_parts()
        self.database.con.execute("CREATE SCHEMA seen")
        if not self._locked:
            self._prepare()
        self.derived.make("engine_start")
        self.scene = bind(self)
        self._hide_foreign()
        self._told.clear()
        self.derived.unmake("bundle", but="" if self.scene.strangers else "engine_start")
        if not self._locked:
            self.database.con.execute("SET enable_external_access = false")
            self.database.con.execute("SET lock_configuration = true")
            self._locked = True

    def _prepare(self) -> None:
        """What is the same for every bundle: how DuckDB plans, and the engine's defaults."""
        con = self.database.con
        self.database.plan_for(large=bool(self._incoming.parts))
        con.execute("CREATE TABLE engine_default (flag VARCHAR, since BIGINT, until BIGINT, value DOUBLE)")
        known = [(default.flag, default.since, default.until, default.value) for default in defaults()]
        self._fill("engine_default", known)

    def _fill(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Rows of a table of our own, all in one statement: row by row they cost 2 ms more."""
        if rows:
            picked = ", ".join(f"unnest(${place})" for place in range(1, len(rows[0]) + 1))
            columns = [list(column) for column in zip(*rows, strict=True)]
            self.database.con.execute(f"INSERT INTO {table} SELECT {picked}", columns)

    def _hide_foreign(self) -> None:
        """Views and rules see what is the server's own, or may be: `own.<table>` stands before the table of that name.

        What nobody can bind to the server is hidden as well where its own words say what became of it: a
        coincidence explains nothing that did not happen.
        """
        hidden = {table: [FOREIGN] for table in TABLES}
        if self.scene.explained:
            hidden |= {table: [FOREIGN, UNKNOWN] for table in COINCIDENT}
        rows = [(*place, bond.whose, bond.life, bond.why) for place, bond in self.scene.bonds.items()]
        self.database.con.execute(
            "CREATE TABLE main.relation (of_table VARCHAR, source VARCHAR, line UINTEGER, row BIGINT, whose VARCHAR, life VARCHAR, why VARCHAR)"
        )
        self.derived.without_rows |= {
            name
            for name, of in (("relation", rows), ("life", self.scene.server.lives), ("host_kill", self.scene.kills))
            if not of
        }
        self._fill("main.relation", rows)
        lives = [(life.id, life.work_line, life.stop_line, life.end) for life in self.scene.server.lives]
        self.database.con.execute(
            "CREATE TABLE main.life (start_id VARCHAR, work_line UINTEGER, stop_line UINTEGER, ended VARCHAR)"
        )
        self._fill("main.life", lives)
        self.database.con.execute(
            "CREATE TABLE main.host_kill (source VARCHAR, line UINTEGER, t DOUBLE, kind VARCHAR, process VARCHAR, bytes BIGINT, limit_bytes BIGINT, whose VARCHAR)"
        )
        names = ("source", "line", "t", "kind", "process", "bytes", "limit_bytes", "whose")
        self._fill("main.host_kill", [[kill[name] for name in names] for kill in self.scene.kills])
        self.database.con.execute("CREATE SCHEMA IF NOT EXISTS own")
        self._own = {place[0] for place, bond in self.scene.bonds.items() if bond.whose in hidden[place[0]]}
        for table in sorted(self._own):
            of = f"FROM main.relation WHERE of_table = '{table}' AND whose IN ({', '.join(map(quoted, hidden[table]))})"
            placed = (
                "" if table in self.parted else f"ANTI JOIN (SELECT row {of} AND row IS NOT NULL) p ON p.row = x.rowid "
            )
            self.database.con.execute(
                f"CREATE VIEW own.{table} AS SELECT x.* FROM main.{table} x {placed}"
                f"ANTI JOIN (SELECT source, line {of} AND line > 0 AND row IS NULL) r ON r.source = x.source AND r.line = x.line "
                f"ANTI JOIN (SELECT source {of} AND line = 0) w ON w.source = x.source"
            )
        if not self._locked:
            self.database.con.execute("SET search_path = 'own,main'")

    @property
    def parted(self) -> Set[str]:
        """Tables whose rows stand in several parts, one for each large source."""
        return self._incoming.parts.keys()

    def hides(self, table: str) -> bool:
        """Whether rows of a table are kept from views and rules: they are somebody else's."""
        return table in self._own

    def _shown(self, table: str) -> str:
        """The table as rules see it. A view would look for a bare name in its own schema first."""
        return f"{'own' if table in self._own else 'main'}.{table}"

    def focus(self, incident: str | None) -> None:
        """From now on see one incident: log rows of its engine start, everything else of the bundle. None = all."""
        self.database.write()
        # no temporary tables: a transaction that only reads may write to those
        self.database.con.execute("CREATE OR REPLACE TABLE main.focus AS SELECT $1::VARCHAR AS incident", [incident])
        hidden = self._hidden(incident)
        self.database.write()
        self.database.con.execute(
            "CREATE OR REPLACE TABLE main.hidden (source VARCHAR, first_line UINTEGER, last_line UINTEGER)"
        )
        self._fill("main.hidden", hidden)
        where = (
            " ANTI JOIN hidden h ON x.source = h.source AND x.line BETWEEN h.first_line AND h.last_line"
            if hidden
            else ""
        )
        for table in LOG_TABLES:
            seen = f"CREATE OR REPLACE VIEW seen.{table} AS SELECT x.* FROM {self._shown(table)} x{where}"
            self.database.con.execute(self.database.asked(seen))
        self.derived.without_rows -= {"focus", "hidden"}
        self.derived.without_rows |= {name for name, of in (("focus", incident), ("hidden", hidden)) if not of}
        self._told.clear()
        self.derived.unmake("incident")

    def _hidden(self, incident: str | None) -> list[tuple[Any, ...]]:
        """Log ranges that this incident does not see: none, and not asked for, where one life alone is shown and no line is wrapped."""
        lives = self.derived.count_of("engine_start") if incident else 0
        left_out = self.derived.count_of("wrapped") or self.derived.count_of("outlived")
        if lives < 2 and not left_out and not self.derived.plainly:
            return []
        self.derived.make_named(_HIDDEN)
        return self.database.con.execute(self.database.statement(_HIDDEN)).fetchall()

    def expect(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Put these rows in place of `expected_figure`, and make the view over them anew."""
        self.database.write()
        self.database.con.execute("DELETE FROM expected_figure")
        self.add("expected_figure", rows)
        self.flush()
        self.derived.changed()
        self._told.clear()
        self.derived.make("expectation")

    # ---- questions

    def trust(self, queries: Iterable[str], questions: Iterable[str] = ()) -> None:
        """Queries of our own, which need no check (0.13 ms each) and no transaction that only reads (0.5 ms to begin and end one,
        and views are made between them); `questions` answer nothing where a bundle has no evidence.

        A question is not asked where all that it reads is as in such a bundle: half of them in most bundles.
        """
        self._trusted, self._questions = frozenset(queries), frozenset(questions)

    def ask(self, sql: str) -> dict[str, Any] | None:
        """The single row that a rule's query gives, or None for no row. Raises QueryError for a broken query."""
        trusted = sql in self._trusted
        if sql in self._questions and (asked := question(sql)) is not None and self.derived.tells_nothing(asked):
            return None
        self.derived.make_named(sql)
        with self.database.reading(only=not trusted), self.database.bounded():
            known = STATEMENTS if trusted else self._checked
            if sql not in known:
                known[sql] = (parsed if trusted else one_select)(sql, self.database.con)
            cursor = self.database.con.execute(known[sql])
            names = [column[0] for column in cursor.description or ()]
            row = cursor.fetchone()
        return dict(zip(names, row, strict=True)) if row is not None else None

    def query(self, sql: str, limit: int | None = None) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Column names and rows for a person's query; UsageError with DuckDB's sentence where it is wrong."""
        self.derived.make_asked(sql)
        try:
            with self.database.reading(), self.database.bounded(60):
                cursor = self.database.con.execute(one_select(sql, self.database.con, clock=True))
                names = [column[0] for column in cursor.description or ()]
                rows = cursor.fetchmany(limit) if limit else cursor.fetchall()
        except QueryError as problem:
            raise UsageError(
                f"the query failed: {first_line(problem)}", "`oomdoc tables` lists tables and columns"
            ) from None
        return names, rows

    def arrow(self, sql: str) -> Any:
        """The rows of a person's SELECT as an Arrow table; UsageError where it is wrong."""
        self.derived.make_asked(sql)
        import_module("duckdb")  # the whole package teaches its connections Arrow; the inner module does without
        try:
            with self.database.reading(), self.database.bounded(60):
                text = one_select(sql, self.database.con, clock=True)
                with suppress(QueryError):
                    self.database.con.fetchall()  # what began the transaction has no rows, and is a result all the same
                found: Any = self.database.con.sql(text)  # a relation: no copy of the rows
                return (found.to_arrow_table if hasattr(found, "to_arrow_table") else found.fetch_arrow_table)()
        except QueryError as problem:
            raise UsageError(
                f"the query failed: {first_line(problem)}", "`oomdoc tables` lists tables and columns"
            ) from None

    def parquet(self, sql: str, path: Path, limit: int | None = None) -> int:
        """Write the rows of a person's SELECT to a new Parquet file and say how many; UsageError where either fails, OSError where
        the disk takes no more.

        The database of the bundle can write no files, so the rows go through a second one that knows nothing else.
        """
        self.derived.make_asked(sql)
        try:
            with (
                self.database.bounded(60),
                self.database.reading(),
                connect(config={"memory_limit": "256MB"}) as other,
            ):
                cursor = self.database.con.execute(one_select(sql, self.database.con, clock=True))
                columns = [(name.replace('"', '""'), str(kind)) for name, kind, *_ in cursor.description or ()]
                other.execute("CREATE TABLE rows (" + ", ".join(f'"{name}" {kind}' for name, kind in columns) + ")")
                picked = ", ".join(f"unnest(${i}::{kind}[])" for i, (_, kind) in enumerate(columns, 1))
                count = 0
                while rows := cursor.fetchmany(min(BUFFER_ROWS, limit - count) if limit is not None else BUFFER_ROWS):
                    other.execute(
                        f"INSERT INTO rows SELECT {picked}", [list(values) for values in zip(*rows, strict=True)]
                    )
                    count += len(rows)
                    if count == limit:
                        break
                target = str(path).replace("'", "''")
                other.execute(f"COPY rows TO '{target}' (FORMAT parquet, USE_TMP_FILE false)")
        except (QueryError, RecursionError) as problem:
            if refused := re.search(r'"errno":"(\d+)"', str(problem)):
                raise OSError(int(refused[1]), os.strerror(int(refused[1])), str(path)) from None
            raise UsageError(
                f"the query or {path} failed: {first_line(problem)}", "`oomdoc tables` lists tables and columns"
            ) from None
        return count

    def rows_of(self, sql: str) -> list[dict[str, Any]]:
        """All rows of a query of our own as mappings."""
        rows = self._told.get(sql)
        if rows is None:
            self.derived.make_named(sql)
            cursor = self.database.con.execute(self.database.asked(sql))
            names = [column[0] for column in cursor.description or ()]
            rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
            if len(rows) <= _MOST_TOLD:
                self._told[sql] = rows
        return [dict(row) for row in rows]

    def columns_of(self, sql: str) -> dict[str, Any]:
        """The columns of a query of our own whose values are numbers, as arrays of floats: NaN = NULL."""
        import numpy as np

        self.derived.make_named(sql)
        cursor = self.database.con.execute(sql)
        names = [column[0] for column in cursor.description or ()]
        rows = cursor.fetchmany(_FEW_ROWS)
        table = np.array(rows, dtype="float64").reshape(len(rows), len(names))
        first = {name: table[:, place].copy() for place, name in enumerate(names)}
        if len(rows) < _FEW_ROWS:  # masked arrays are 10 ms to import
            return first
        rest = cursor.fetchnumpy()
        return {
            name: np.concatenate([first[name], np.ma.filled(np.ma.asarray(column, dtype="float64"), np.nan)])
            for name, column in rest.items()
        }

    def empty(self) -> None:
        """Forget all rows and views: rule tests use one store many times. Not for a store with large sources."""
        con = self.database.con
        self._told.clear()
        self.database.write()
        self._incoming.forget()
        con.execute("DROP SCHEMA IF EXISTS seen CASCADE")
        for table in self._own:  # the schema stays: the search path names it
            con.execute(f"DROP VIEW own.{table}")
        for table in ("relation", "life", "host_kill"):
            con.execute(f"DROP TABLE IF EXISTS main.{table}")
        self._own = set()
        self.derived.forget()


# Log ranges that another incident, or another start of the same source, owns: invisible to the incident in focus
_HIDDEN = """
SELECT s.source, s.first_line, s.last_line FROM engine_start s, focus f LEFT JOIN incident i ON i.incident = f.incident
LEFT JOIN engine_start own ON own.start_id = i.start_id
WHERE i.start_id IS NOT NULL AND s.start_id <> i.start_id
  -- lines before the first marker may be the beginning of any life, unless they are a whole one, or another start came up between them and this one
  AND (s.marked OR (own.source = s.source AND s.complete AND s.served AND own.complete) OR (own.source = s.source AND EXISTS (FROM engine_start b WHERE b.source = s.source AND b.served AND b.first_line > s.last_line AND b.last_line < own.first_line)))
  AND (s.source = i.start_source OR s.start_id IN (SELECT start_id FROM incident WHERE start_id IS NOT NULL)
       -- a life of its own in another file: a rotated or previous log; files of one server begin within minutes of each other
       OR (s.complete AND own.t IS NOT NULL AND s.t IS NOT NULL AND abs(s.t - own.t) > 300) OR (s.complete AND own.complete))
UNION ALL
-- an excerpt of another life: it loaded and came up, where the start in question has steps of its own and never did
SELECT s.source, s.first_line, s.last_line FROM engine_start s, focus f JOIN incident i ON i.incident = f.incident JOIN engine_start own ON own.start_id = i.start_id
WHERE NOT s.marked AND s.source <> i.start_source AND s.complete AND s.served AND own.complete AND NOT own.served
UNION ALL
-- the later half of another server's rotated log: its start stands in a file of the same name
SELECT s.source, s.first_line, s.last_line FROM engine_start s, focus f JOIN incident i ON i.incident = f.incident
WHERE i.start_id IS NOT NULL AND NOT s.marked AND regexp_replace(s.source, '{rotated}', '') <> regexp_replace(i.start_source, '{rotated}', '')
  AND EXISTS (FROM engine_start o WHERE o.marked AND o.source <> s.source AND regexp_replace(o.source, '{rotated}', '') = regexp_replace(s.source, '{rotated}', ''))
UNION ALL
SELECT source, line, line FROM wrapped
UNION ALL
SELECT source, first_line, last_line FROM outlived
""".replace("{rotated}", r"(?:[.-](?:\d[\dT:_-]*|previous|log|txt|out|gz|zst|xz|bz2))+$")
