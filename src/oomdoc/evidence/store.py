"""The only module that opens DuckDB: loads tables, makes views, asks one question at a time.

Tables live in memory under a limit; sources of many rows go into a file of the scratch folder, so that 4 GiB of logs cost no
more memory than 1 GiB.
Rule queries are data from outside: exactly one SELECT that only computes (`asking`), in a transaction that only reads, no files, no
extensions, configuration locked, bounded in time.
"""

from __future__ import annotations

import datetime as dt
import functools
import itertools
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oomdoc.errors import BundleError, UsageError
from oomdoc.evidence.asking import one_select, parsed
from oomdoc.evidence.tables import LOOKALIKE, TABLES, Batch
from oomdoc.faults import first_line, out_of_memory
from oomdoc.physics.defaults import defaults
from oomdoc.scene import COINCIDENT, FOREIGN, UNKNOWN, Scene, bind
from oomdoc.units import NOMINAL_YEAR
from oomdoc.views import VIEWS
from oomdoc.views.blank import BLANK, Question, is_so, question

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    import duckdb
else:
    try:
        import _duckdb as duckdb  # the package around it is 50 ms of data frames and expressions that nobody here uses
    except ImportError:
        import duckdb

QueryError = duckdb.Error
"""What a broken query raises."""

MEMORY_LIMIT = "128MB"  # with it the process stays below 320 MiB at 1 and 4 GiB of logs (docs/performance.md)
QUERY_SECONDS = 10.0  # a rule's query answers in milliseconds; longer is a runaway join
_BUFFER_ROWS = 4_000  # rows of rare evidence that are held before one insert: single inserts cost 0.4 ms each
_NUMPY_ROWS = 500  # from here on importing numpy costs less than parameter binding
_ROW_GROUP = (
    122_880  # rows that DuckDB keeps together: a full group is written without the detour over a transaction's rows
)
_MOST_PARTS = 200  # sources with a table of their own; to plan a view over thousands would take longer than it saves

_OPTIMIZERS = ("filter_pushdown", "unused_columns", "join_filter_pushdown", "build_side_probe_side")
"""What DuckDB optimizes. Views and rules ask tables of a few rows: planning is most of their cost, and most optimizers only
plan (a quarter of it). These four are cheap, and keep what reads millions of rows from reading more than it needs."""

_LARGE_OPTIMIZERS = ("statistics_propagation",)
_LARGE_GROUPS = 16
"""The same where a source has a table of its own: known ranges let groups be counted in an array of up to 2^16 places, a third
off the views of requests and samples. For small tables that would only be more planning."""

_NOMINAL_FROM = dt.datetime(NOMINAL_YEAR, 1, 1, tzinfo=dt.UTC).timestamp()
_YEARS_FROM = dt.datetime(NOMINAL_YEAR + 3, 1, 1, tzinfo=dt.UTC).timestamp()  # earlier stamps had no year

OWN_TABLES = ("focus", "hidden", "relation", "life", "host_kill")
"""Tables that the store fills itself, beside those that are the same for every bundle."""

_LISTS_TABLES = re.compile(r"(?i)duckdb_|information_schema|pg_catalog|pragma|sqlite_master|summar")

LOG_TABLES = (
    "milestone", "engine_flag", "engine_figure", "engine_stat", "preemption", "oom", "startup_check", "log_error", "frame",
    "process_exit", "crash_step", "cache_lookup",
)  # fmt: skip
"""Tables that belong to an engine start and are seen per incident."""


_STATEMENTS: dict[str, Any] = {}
"""Views and queries of our own, parsed: a third of their price on a few rows. A statement serves every connection."""


class Store:
    """Evidence tables and the views over them. Use as a context manager; everything in the scratch folder goes with it."""

    plainly = False
    """Make every view and ask every question, whatever is known of them: the answers are the same."""

    def __init__(self, scratch: Path | None = None, db: Path | None = None) -> None:
        """Open a store in memory (spilling to `scratch`) or, with `db`, in a new file that stays."""
        config: dict[str, Any] = {"threads": 1, "memory_limit": MEMORY_LIMIT, "autoinstall_known_extensions": False}
        if db is None:
            # a checkpoint in memory only compresses: 1.2 s of CPU at 1 GiB, where spilling instead costs 0.4 s
            config["checkpoint_threshold"] = "1TB"
        if scratch is not None:
            config["temp_directory"] = str(scratch)
        elif db is None:
            config["enable_external_access"] = False  # no numpy arrays either: rule tests need neither
        if db is not None and db.exists():
            raise UsageError(f"{db} exists already", "Name a new file, or remove this one first")
        try:
            self._con = duckdb.connect(str(db) if db else ":memory:", config=config)
        except duckdb.Error as problem:
            if db is None or out_of_memory(problem):
                raise
            raise UsageError(
                f"cannot write the database {db}: {first_line(problem)}", "Choose a path that can be written"
            ) from None
        self._kept = db is not None
        self._apart = None if db or scratch is None else scratch / "rows.duckdb"
        self._parts: dict[
            str, dict[str, str]
        ] = {}  # table -> source -> the table that holds the rows of this source alone
        self._pending: dict[str, dict[str, list[Any]]] = {}
        self._pending_rows = 0
        self._bulk: dict[str, _Bulk] = {}
        self._writer: ThreadPoolExecutor | None = None
        self._writing: Future[None] | None = None
        self._aside = self._con  # a connection of its own for the writer
        self._checked: dict[str, Any] = {}  # queries from outside, parsed
        self._trusted: frozenset[str] = frozenset()
        self._questions: frozenset[str] = frozenset()
        self._unmade: set[str] = set()  # views that nobody has asked yet
        self.unanswered: list[
            str
        ] = []  # views that would have needed more memory than there is: they are as in a bundle without evidence
        self._as_blank: dict[str, bool] = {}  # view -> it holds what it holds without evidence
        self._counts: dict[str, int] = {}  # view that was made -> its rows
        self._rows: dict[str, list[dict[str, Any]]] = {}  # view of one row -> that row
        self._without_rows: set[str] = set()  # of OWN_TABLES
        self._reads_only = False  # a transaction that only reads is open
        self._locked = False  # no setting can be changed any more
        self._watchdog = _Watchdog(self._con)
        self.filled: set[str] = set()
        """Tables that have rows."""
        self._nominal: set[str] = set()
        self._latest: float | None = None
        self._own: set[str] = set()
        self.scene: Scene
        """Whose each event is: set by `finish`."""
        self._con.execute("BEGIN TRANSACTION")
        for table in TABLES.values():
            columns = ", ".join(f'"{column.name}" {column.type}' for column in table.columns)
            self._con.execute(self._statement(f'CREATE TABLE "{table.name}" ({columns})'))
        self._con.execute("COMMIT")

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self, whole: bool = False) -> None:
        """Close the database (an open connection at exit prints leak notices).

        With `whole` everything is written to its file first, and what prevents that is raised: closing says nothing of it.
        """
        self._watchdog.stop()
        try:
            self._write()
            if whole:
                self._con.execute("CHECKPOINT")
        finally:
            if self._writer is not None:
                self._writer.shutdown()
                self._aside.close()
            self._con.close()

    # ---- loading

    def load(self, source: str, batch: Batch) -> None:
        """Append a batch; rare rows are gathered as lists, columns of numpy arrays as such."""
        if batch.table == LOOKALIKE or not batch.rows:
            return
        self._note(batch.table, batch.columns.get("t"))
        if any(_is_array(column) for column in batch.columns.values()):
            arrays = {name: _sane_array(values) for name, values in batch.columns.items() if _is_array(values)}
            lists = {name: values for name, values in batch.columns.items() if not _is_array(values)}
            self._hold(batch.table, source, {**arrays, **_arrays(batch.table, lists)}, batch.rows)
            return
        held = self._pending.setdefault(batch.table, {name: [] for name in TABLES[batch.table].column_names})
        count = batch.rows
        for name, values in held.items():
            if name == "source":
                values.extend([source] * count)
            else:
                values.extend(batch.columns.get(name) or [None] * count)
        self._pending_rows += count
        if self._pending_rows >= _BUFFER_ROWS:
            self._write_pending()

    def add(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows given as mappings (rule tests, the `source` table); absent columns are NULL."""
        names = TABLES[table].column_names
        held = self._pending.setdefault(table, {name: [] for name in names})
        if rows:
            self._note(table, [row.get("t") for row in rows])
        for row in rows:
            for name in names:
                held[name].append(row.get(name))
        self._pending_rows += len(rows)

    def _note(self, table: str, times: Any) -> None:
        """Remember what the rows tell: which tables have any, which have stamps without a year, the latest stamp with one.

        To ask the tables at the end would cost 1 ms a table, and 0.1 s where there are millions of rows.
        """
        self.filled.add(table)
        if _is_array(times):
            known = times.compressed() if hasattr(times, "compressed") else times
        else:
            known = [t for t in times or () if t is not None]
        if not len(known):
            return
        earliest, latest = (known.min(), known.max()) if _is_array(known) else (min(known), max(known))
        if latest >= _YEARS_FROM:
            self._latest = max(float(latest), self._latest or 0.0)
        if earliest < _YEARS_FROM and any(_NOMINAL_FROM <= t < _YEARS_FROM for t in known):
            self._nominal.add(table)

    def _write(self) -> None:
        """Something of our own is to be written: the transaction of questions ends."""
        if self._reads_only:
            self._reads_only = False
            self._con.execute("ROLLBACK")

    def flush(self) -> None:
        """Write what was gathered."""
        self._write_pending()
        for table in list(self._bulk):
            self._write_bulk(table)
        self._settle()

    def _write_pending(self) -> None:
        pending, self._pending, self._pending_rows = self._pending, {}, 0
        for table, columns in pending.items():
            count = len(next(iter(columns.values())))
            if count >= _NUMPY_ROWS:
                self._hold(table, None, _arrays(table, columns), count)
            elif count:
                types = {column.name: column.type for column in TABLES[table].columns}
                columns = {name: _sane(types[name], values, f"{table}.{name}") for name, values in columns.items()}
                used = [name for name, values in columns.items() if any(value is not None for value in values)]
                picked = ", ".join(f"unnest(${i}::{types[name]}[])" for i, name in enumerate(used, 1))
                names = ", ".join(f'"{name}"' for name in used)
                self._con.execute(f'INSERT INTO "{table}" ({names}) SELECT {picked}', [columns[name] for name in used])

    def _hold(self, table: str, source: str | None, arrays: dict[str, Any], count: int) -> None:
        """Keep arrays until a row group is full: 0.1 to 0.2 us a row then, four times as much in pieces of 10,000 rows."""
        held = self._bulk.get(table)
        if held and (held.source != source or held.parts[0].keys() != arrays.keys()):
            self._write_bulk(table)
            held = None
        if held is None:
            held = self._bulk[table] = _Bulk(source)
        held.parts.append(arrays)
        held.rows += count
        if held.rows >= _ROW_GROUP:
            self._write_bulk(table)

    def _write_bulk(self, table: str) -> None:
        held = self._bulk.pop(table)
        part = self._part(table, held)
        if part is None or self._writer is None:
            _insert(self._con, table, held.source, held.parts)
        else:
            self._settle()
            self._writing = self._writer.submit(_insert, self._aside, part, None, held.parts)

    def _settle(self) -> None:
        """Wait until the rows that a thread writes are in; raises what went wrong there."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def _part(self, table: str, held: _Bulk) -> str | None:
        """The table for the rows of one large source, without the column that is the same in all; None for a small source.

        It lies in a file, where DuckDB compresses as it writes. At 1 GiB that costs 0.25 s of CPU, and 0.65 s less than rows
        in memory do, which spill; the column of sources would cost another 0.2 s.
        """
        parts = self._parts.get(table, {})
        if held.source in parts:
            return parts[held.source]
        count = sum(map(len, self._parts.values()))
        if held.source is None or held.rows < _ROW_GROUP or count >= _MOST_PARTS:
            return None
        if self._writer is None:
            from concurrent.futures import ThreadPoolExecutor

            # a seventh of the time of a large bundle, for which DuckDB needs no GIL
            self._writer = ThreadPoolExecutor(1, "oomdoc-writer")
            self._aside = self._con.cursor()
            if self._apart:
                # the file goes with the run: to tidy it up when it is closed would cost 0.65 s at 1 GiB
                self._con.execute("PRAGMA disable_checkpoint_on_shutdown")
                self._con.execute(f"ATTACH {quoted(str(self._apart))} AS apart")
            else:
                self._con.execute("CREATE SCHEMA apart")
        name = f"apart.{table}_{count + 1}"
        columns = ", ".join(f'"{column.name}" {column.type}' for column in TABLES[table].columns[1:])
        self._con.execute(f"CREATE TABLE {name} ({columns})")
        self._parts.setdefault(table, {})[held.source] = name
        return name

    def _join_parts(self) -> None:
        """Give tables that have parts their public form: a view of everything under their name."""
        for table, parts in self._parts.items():
            self._con.execute(f'ALTER TABLE "{table}" RENAME TO "{table}_rest"')
            each = " UNION ALL ".join(
                f"SELECT {quoted(source)} AS source, * FROM {part}" for source, part in parts.items()
            )
            self._con.execute(f'CREATE VIEW "{table}" AS FROM "{table}_rest" UNION ALL {each}')

    def keep_between(self, since: float | None, until: float | None, tz: dt.tzinfo | None = None) -> None:
        """Drop rows whose time lies outside; rows without a time stay."""
        self.flush()
        self._set_years(tz)
        for name, table in TABLES.items():
            if "t" in table.column_names:
                for rows in (name, *self._parts.get(name, {}).values()):
                    self._con.execute(
                        f"DELETE FROM {rows} WHERE t < $1 OR t > $2",
                        [since if since is not None else -1e18, until if until is not None else 1e18],
                    )

    # ---- views

    def finish(self, tz: dt.tzinfo | None = None) -> None:
        """Everything is loaded: give year-less stamps their year, work out whose each event is, lock the door.

        `tz` is the zone of the engine's own stamps, which name none; without it they count as UTC.
        """
        self.flush()
        self._set_years(tz)
        self._join_parts()
        self._con.execute("CREATE SCHEMA seen")
        if not self._locked:
            self._prepare()
        self._make("engine_start")
        self.scene = bind(self)
        self._hide_foreign()
        self._unmake("bundle", but="" if self.scene.strangers else "engine_start")
        if not self._locked:
            self._con.execute("SET enable_external_access = false")
            self._con.execute("SET lock_configuration = true")
            self._locked = True

    def _prepare(self) -> None:
        """What is the same for every bundle: how DuckDB plans, and the engine's defaults."""
        optimizers = [row[0] for row in self._con.execute("SELECT name FROM duckdb_optimizers()").fetchall()]
        kept = (*_OPTIMIZERS, *_LARGE_OPTIMIZERS) if self._parts else _OPTIMIZERS
        self._con.execute(f"SET disabled_optimizers = '{','.join(name for name in optimizers if name not in kept)}'")
        if self._parts:
            self._con.execute(f"SET perfect_ht_threshold = {_LARGE_GROUPS}")
        self._con.execute("CREATE TABLE engine_default (flag VARCHAR, since BIGINT, until BIGINT, value DOUBLE)")
        known = [(default.flag, default.since, default.until, default.value) for default in defaults()]
        self._con.executemany("INSERT INTO engine_default VALUES (?, ?, ?, ?)", known)

    def _hide_foreign(self) -> None:
        """Views and rules see what is the server's own, or may be: `own.<table>` stands before the table of that name.

        What nobody can bind to the server is hidden as well where its own words say what became of it: a
        coincidence explains nothing that did not happen.
        """
        hidden = {table: [FOREIGN] for table in TABLES}
        if self.scene.explained:
            hidden |= {table: [FOREIGN, UNKNOWN] for table in COINCIDENT}
        rows = [(*place, bond.whose, bond.life, bond.why) for place, bond in self.scene.bonds.items()]
        self._con.execute(
            "CREATE TABLE main.relation (of_table VARCHAR, source VARCHAR, line UINTEGER, whose VARCHAR, life VARCHAR, why VARCHAR)"
        )
        self._without_rows |= {
            name
            for name, of in (("relation", rows), ("life", self.scene.server.lives), ("host_kill", self.scene.kills))
            if not of
        }
        if rows:
            columns = ", ".join(f"unnest(${place})" for place in range(1, 7))
            self._con.execute(
                f"INSERT INTO main.relation SELECT {columns}", [list(column) for column in zip(*rows, strict=True)]
            )
        lives = [(life.id, life.work_line, life.stop_line, life.end) for life in self.scene.server.lives]
        self._con.execute(
            "CREATE TABLE main.life (start_id VARCHAR, work_line UINTEGER, stop_line UINTEGER, ended VARCHAR)"
        )
        if lives:
            self._con.executemany("INSERT INTO main.life VALUES (?, ?, ?, ?)", lives)
        self._con.execute(
            "CREATE TABLE main.host_kill (source VARCHAR, line UINTEGER, t DOUBLE, kind VARCHAR, process VARCHAR, bytes BIGINT, limit_bytes BIGINT)"
        )
        names = ("source", "line", "t", "kind", "process", "bytes", "limit_bytes")
        if kills := [[kill[name] for name in names] for kill in self.scene.kills]:
            self._con.executemany("INSERT INTO main.host_kill VALUES (?, ?, ?, ?, ?, ?, ?)", kills)
        self._con.execute("CREATE SCHEMA IF NOT EXISTS own")
        self._own = {place[0] for place, bond in self.scene.bonds.items() if bond.whose in hidden[place[0]]}
        for table in sorted(self._own):
            of = f"FROM main.relation WHERE of_table = '{table}' AND whose IN ({', '.join(map(quoted, hidden[table]))})"
            self._con.execute(
                f"CREATE VIEW own.{table} AS SELECT x.* FROM main.{table} x "
                f"ANTI JOIN (SELECT source, line {of} AND line > 0) r ON r.source = x.source AND r.line = x.line "
                f"ANTI JOIN (SELECT source {of} AND line = 0) w ON w.source = x.source"
            )
        if not self._locked:
            self._con.execute("SET search_path = 'own,main'")

    def _shown(self, table: str) -> str:
        """The table as rules see it. A view would look for a bare name in its own schema first."""
        return f"{'own' if table in self._own else 'main'}.{table}"

    def focus(self, incident: str | None) -> None:
        """From now on see one incident: log rows of its engine start, everything else of the bundle. None = all."""
        self._make_named(_HIDDEN)
        self._write()
        # no temporary tables: a transaction that only reads may write to those
        self._con.execute("CREATE OR REPLACE TABLE main.focus AS SELECT $1::VARCHAR AS incident", [incident])
        hidden = self._con.execute(_HIDDEN).fetchall()
        self._con.execute(
            "CREATE OR REPLACE TABLE main.hidden (source VARCHAR, first_line UINTEGER, last_line UINTEGER)"
        )
        if hidden:
            self._con.executemany("INSERT INTO main.hidden VALUES (?, ?, ?)", hidden)
        where = (
            " ANTI JOIN hidden h ON x.source = h.source AND x.line BETWEEN h.first_line AND h.last_line"
            if hidden
            else ""
        )
        for table in LOG_TABLES:
            self._con.execute(f"CREATE OR REPLACE VIEW seen.{table} AS SELECT x.* FROM {self._shown(table)} x{where}")
        self._without_rows -= {"focus", "hidden"}
        self._without_rows |= {name for name, of in (("focus", incident), ("hidden", hidden)) if not of}
        self._unmake("incident")

    def expect(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Put these rows in place of `expected_figure`, and make the view over them anew."""
        self._write()
        self._con.execute("DELETE FROM expected_figure")
        self.add("expected_figure", rows)
        self._write_pending()
        self._as_blank.clear()
        self._make("expectation")

    def _unmake(self, scope: str, but: str = "") -> None:
        """Views of this scope are to be made anew: when somebody asks them, since to plan one costs 1 to 20 ms."""
        again = {view.name for view in VIEWS.values() if view.scope == scope and view.name != but}
        self._unmade |= again
        self._as_blank.clear()
        for name in again:
            self._counts.pop(name, None)
            self._rows.pop(name, None)
        if self._kept or self.plainly:
            self._make_all()

    def _make(self, name: str) -> None:
        """Make a view, and before it those that it reads; where its rows are known without planning it, only a table of them."""
        self._unmade.discard(name)
        self._counts.pop(name, None)
        self._rows.pop(name, None)
        known = not self.plainly and (self._is_as_blank(name) or self._is_rowless(name))
        if not known and not self.plainly:
            # of a view that nothing is written down of, all that come before it: it can read no others
            before = BLANK[name].reads if name in BLANK else itertools.takewhile(lambda other: other != name, VIEWS)
            for other in [other for other in before if other in self._unmade]:
                self._make(other)
        self._write()
        try:
            made = self._con.execute(self._statement(_blank_table(name) if known else _made_of(name)))
        except duckdb.OutOfMemoryException:
            if known or name not in BLANK:
                raise
            # what a view holds side by side cannot be spilled; one answer less is better than none at all
            self.unanswered.append(name)
            known, made = True, self._con.execute(self._statement(_blank_table(name)))
        self._counts[name] = len(BLANK[name].rows) if known else made.fetchall()[0][0]
        # what was not known of the views that read it may be known now
        self._as_blank = {other: True for other, so in self._as_blank.items() if so}

    def _statement(self, sql: str) -> Any:
        """A statement whose text is the same for every bundle, parsed once in a process."""
        if sql not in _STATEMENTS:
            _STATEMENTS[sql] = self._con.extract_statements(sql)[0]
        return _STATEMENTS[sql]

    def _make_named(self, sql: str) -> None:
        """Make the views whose names stand in a query, whatever they mean there."""
        if self._unmade:
            text = sql.lower()
            for name in [name for name in VIEWS if name in self._unmade and name in text]:
                if name in self._unmade:
                    self._make(name)

    def _make_asked(self, sql: str) -> None:
        """Make what a person's query may mean: who asks for the tables there are, all."""
        if _LISTS_TABLES.search(sql):
            self._make_all()
        self._make_named(sql)

    def _make_all(self) -> None:
        for name in VIEWS:
            if name in self._unmade:
                self._make(name)

    def _tells_nothing(self, asked: Question) -> bool:
        """Whether a question has no answer, or all that it reads is as in a bundle without evidence."""
        if self.plainly:
            return False
        return (
            is_so(asked.nothing, self._is_empty, self._rows_known)
            or is_so(asked.nothing, self._comes_empty, self._rows_made)
            or (bool(asked.reads) and all(self._is_blank(name, asked) for name in asked.reads))
        )

    def _is_rowless(self, name: str) -> bool:
        """Whether a view that has no row without evidence has none in this bundle; views before it are made to know it."""
        return name in BLANK and not BLANK[name].rows and is_so(BLANK[name].rowless, self._comes_empty, self._rows_made)

    def _is_empty(self, name: str) -> bool:
        """Whether a relation is known to have no row, as things stand."""
        if name in TABLES:
            return name not in self.filled
        if name not in VIEWS:
            return name in self._without_rows
        return self._counts[name] == 0 if name in self._counts else self._is_as_blank(name) and not BLANK[name].rows

    def _comes_empty(self, name: str) -> bool:
        """The same; a view of which it is not known is made."""
        if name in VIEWS and name in self._unmade and not self._is_as_blank(name):
            self._make(name)
        return self._is_empty(name)

    def _rows_known(self, name: str) -> Sequence[Mapping[str, Any]] | None:
        """The rows of a view that has one at most, as far as they are known."""
        if name not in self._counts:
            return BLANK[name].rows if self._is_as_blank(name) else None
        if self._counts[name] > 1:
            return None
        if name not in self._rows:
            cursor = self._con.execute(self._statement(f"SELECT * FROM main.{name}"))
            names = [column[0] for column in cursor.description or ()]
            self._rows[name] = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        return self._rows[name]

    def _rows_made(self, name: str) -> Sequence[Mapping[str, Any]] | None:
        self._comes_empty(name)
        return self._rows_known(name)

    def _is_blank(self, name: str, asked: Question) -> bool:
        """Whether a relation holds what it holds without evidence, in the columns that the question names."""
        if name not in VIEWS:
            return self._is_empty(name)
        if name not in BLANK:
            return False
        blank, rows = BLANK[name].rows, self._rows_made(name)
        if rows is None or len(rows) != len(blank):
            return False
        return not rows or all(
            value == blank[0].get(column)
            for column, value in rows[0].items()
            if asked.columns is None or column in asked.columns
        )

    def _is_as_blank(self, name: str) -> bool:
        """Whether a view holds what it holds without evidence: all that it reads does, or it has no row either way."""
        if name not in self._as_blank:
            known = BLANK.get(name)
            self._as_blank[name] = known is not None and (
                (
                    not known.rows
                    and (self._counts.get(name) == 0 or is_so(known.rowless, self._is_empty, self._rows_known))
                )
                or all(self._is_as_blank(read) if read in VIEWS else self._is_empty(read) for read in known.reads)
            )
        return self._as_blank[name]

    def _set_years(self, tz: dt.tzinfo | None = None) -> None:
        """Move stamps of the nominal year into the year that other stamps of the bundle show; leave them if none does."""
        latest, nominal = self._latest, sorted(self._nominal)
        if latest is None or not nominal:
            return
        self._nominal = set()
        offset = dt.datetime.fromtimestamp(latest, dt.UTC).astimezone(tz).utcoffset() if tz else None
        offset_s = offset.total_seconds() if offset else 0.0
        year = f"year(make_timestamp(({latest} * 1e6)::BIGINT))"
        # where rows with a nominal year stand: a table, and the source that it is for (None: it has a column for that)
        places = [
            (place, of) for name in nominal for place, of in ((name, None), *((part, of) for of, part in self._parts.get(name, {}).items()))
        ]  # fmt: skip
        # per source the newest nominal year is the bundle's year; an older one lies before a New Year
        spans = " UNION ALL ".join(
            f"SELECT {'source' if of is None else quoted(of)} AS source, max(t) AS t FROM {place} WHERE t < {_YEARS_FROM} GROUP BY ALL"
            for place, of in places
        )
        behind: dict[int, list[str]] = {}
        for source, years in self._con.execute(
            f"SELECT source, {year} - max(year(make_timestamp((t * 1e6)::BIGINT))) FROM ({spans}) WHERE t IS NOT NULL GROUP BY source"
        ).fetchall():
            behind.setdefault(years, []).append(source)
        for place, of in places:
            for years, sources in behind.items():
                if of is not None and of not in sources:
                    continue
                # nearly always all are as far behind: a join of sources would double the price
                own = f"AND source IN ({', '.join(map(quoted, sources))})" if of is None and len(behind) > 1 else ""
                self._con.execute(
                    f"UPDATE {place} SET t = epoch(make_timestamp((t * 1e6)::BIGINT) + to_years({years}::INTEGER)) - {offset_s} WHERE t < {_YEARS_FROM} {own}"
                )

    # ---- questions

    def trust(self, queries: Iterable[str], questions: Iterable[str] = ()) -> None:
        """Queries of our own, which need no check (0.13 ms each); `questions` answer nothing where a bundle has no evidence.

        A question is not asked where all that it reads is as in such a bundle: half of them in most bundles.
        """
        self._trusted, self._questions = frozenset(queries), frozenset(questions)

    def ask(self, sql: str) -> dict[str, Any] | None:
        """The single row that a rule's query gives, or None for no row. Raises QueryError for a broken query."""
        trusted = sql in self._trusted
        if sql in self._questions and (asked := question(sql)) is not None and self._tells_nothing(asked):
            return None
        self._make_named(sql)
        with self._bounded(), self._reading():
            known = _STATEMENTS if trusted else self._checked
            if sql not in known:
                known[sql] = (parsed if trusted else one_select)(sql, self._con)
            cursor = self._con.execute(known[sql])
            names = [column[0] for column in cursor.description or ()]
            row = cursor.fetchone()
        return dict(zip(names, row, strict=True)) if row is not None else None

    def query(self, sql: str, limit: int | None = None) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Column names and rows for a person's query; UsageError with DuckDB's sentence where it is wrong."""
        self._make_asked(sql)
        try:
            with self._bounded(60), self._reading():
                cursor = self._con.execute(one_select(sql, self._con, clock=True))
                names = [column[0] for column in cursor.description or ()]
                rows = cursor.fetchmany(limit) if limit else cursor.fetchall()
        except duckdb.Error as problem:
            raise UsageError(
                f"the query failed: {first_line(problem)}", "`oomdoc tables` lists tables and columns"
            ) from None
        return names, rows

    def arrow(self, sql: str) -> Any:
        """The rows of a person's SELECT as an Arrow table; UsageError where it is wrong."""
        self._make_asked(sql)
        import_module("duckdb")  # the whole package teaches its connections Arrow; the inner module does without
        try:
            with self._bounded(60), self._reading():
                text = one_select(sql, self._con, clock=True)
                with suppress(duckdb.Error):
                    self._con.fetchall()  # what began the transaction has no rows, and is a result all the same
                found: Any = self._con.sql(text)  # a relation: no copy of the rows
                return (found.to_arrow_table if hasattr(found, "to_arrow_table") else found.fetch_arrow_table)()
        except duckdb.Error as problem:
            raise UsageError(
                f"the query failed: {first_line(problem)}", "`oomdoc tables` lists tables and columns"
            ) from None

    def parquet(self, sql: str, path: Path, limit: int | None = None) -> int:
        """Write the rows of a person's SELECT to a new Parquet file and say how many; UsageError where either fails, OSError where
        the disk takes no more.

        The database of the bundle can write no files, so the rows go through a second one that knows nothing else.
        """
        self._make_asked(sql)
        try:
            with self._bounded(60), self._reading(), duckdb.connect(config={"memory_limit": "256MB"}) as other:
                cursor = self._con.execute(one_select(sql, self._con, clock=True))
                columns = [(name.replace('"', '""'), str(kind)) for name, kind, *_ in cursor.description or ()]
                other.execute("CREATE TABLE rows (" + ", ".join(f'"{name}" {kind}' for name, kind in columns) + ")")
                picked = ", ".join(f"unnest(${i}::{kind}[])" for i, (_, kind) in enumerate(columns, 1))
                count = 0
                while rows := cursor.fetchmany(min(_BUFFER_ROWS, limit - count) if limit is not None else _BUFFER_ROWS):
                    other.execute(
                        f"INSERT INTO rows SELECT {picked}", [list(values) for values in zip(*rows, strict=True)]
                    )
                    count += len(rows)
                    if count == limit:
                        break
                target = str(path).replace("'", "''")
                other.execute(f"COPY rows TO '{target}' (FORMAT parquet, USE_TMP_FILE false)")
        except (duckdb.Error, RecursionError) as problem:
            if refused := re.search(r'"errno":"(\d+)"', str(problem)):
                raise OSError(int(refused[1]), os.strerror(int(refused[1])), str(path)) from None
            raise UsageError(
                f"the query or {path} failed: {first_line(problem)}", "`oomdoc tables` lists tables and columns"
            ) from None
        return count

    def rows_of(self, sql: str) -> list[dict[str, Any]]:
        """All rows of a query of our own as mappings."""
        self._make_named(sql)
        cursor = self._con.execute(sql)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def columns_of(self, sql: str) -> dict[str, Any]:
        """The columns of a query of our own whose values are numbers, as arrays of floats: NaN = NULL."""
        import numpy as np

        self._make_named(sql)
        columns = self._con.execute(sql).fetchnumpy()
        return {name: np.ma.filled(np.ma.asarray(column, dtype="float64"), np.nan) for name, column in columns.items()}

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Nothing is written: `WITH x AS (DELETE ... RETURNING *) SELECT` is a SELECT to the parser.

        One transaction serves all questions until something of our own is written (0.5 ms to begin and end it, five times a
        question); one that failed is over.
        """
        if not self._reads_only:
            self._con.execute("BEGIN TRANSACTION READ ONLY")
            self._reads_only = True
        try:
            yield
        except BaseException:
            self._write()
            raise

    @contextmanager
    def _bounded(self, seconds: float = QUERY_SECONDS) -> Iterator[None]:
        self._watchdog.begin(seconds)
        try:
            yield
        finally:
            self._watchdog.end()

    def empty(self) -> None:
        """Forget all rows and views: rule tests use one store many times. Not for a store with large sources."""
        self._write()
        self._pending, self._pending_rows = {}, 0
        for table in self.filled:
            self._con.execute(f'DELETE FROM "{table}"')
        self._con.execute("DROP SCHEMA IF EXISTS seen CASCADE")
        for table in self._own:  # the schema stays: the search path names it
            self._con.execute(f"DROP VIEW own.{table}")
        for table in ("relation", "life", "host_kill"):
            self._con.execute(f"DROP TABLE IF EXISTS main.{table}")
        self.filled, self._nominal, self._latest, self._own = set(), set(), None, set()
        self._without_rows.clear()
        for known in (self._as_blank, self._counts, self._rows):  # of the rows that are gone
            known.clear()
        self._unmade = set()


class Questions:
    """Read-only questions over tables that lie elsewhere (pyarrow datasets): a sweep's store, for its report and for a person.

    `views` are SQL over the tables, made in order. Nothing can be written and no file opened by a query.
    """

    def __init__(self, tables: Mapping[str, Any], views: Mapping[str, str]) -> None:
        import duckdb  # the whole package: its inner module, which this one does with, reads no Arrow

        config: dict[str, Any] = {"threads": 2, "memory_limit": "1GB", "autoinstall_known_extensions": False}
        self._con = duckdb.connect(":memory:", config=config)
        for name, table in tables.items():
            self._con.register(name, table)
        for name, query in views.items():
            self._con.execute(f"CREATE VIEW {name} AS {query}")
        self._con.execute("SET enable_external_access = false")
        self._con.execute("SET lock_configuration = true")
        self._watchdog = _Watchdog(self._con)

    def __enter__(self) -> Questions:
        return self

    def __exit__(self, *_: object) -> None:
        self._watchdog.stop()
        self._con.close()

    def query(self, sql: str, limit: int | None = None, hint: str = "") -> tuple[list[str], list[tuple[Any, ...]]]:
        """Column names and rows for a person's query; UsageError with DuckDB's sentence where it is wrong."""
        self._watchdog.begin(600)
        try:
            self._con.execute("BEGIN TRANSACTION READ ONLY")
            try:
                cursor = self._con.execute(one_select(sql, self._con, clock=True))
                names = [column[0] for column in cursor.description or ()]
                return names, cursor.fetchmany(limit) if limit else cursor.fetchall()
            finally:
                self._con.execute("ROLLBACK")
        except duckdb.Error as problem:
            raise UsageError(f"the query failed: {first_line(problem)}", hint) from None
        finally:
            self._watchdog.end()

    def rows_of(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        """All rows of a query of our own as mappings."""
        cursor = self._con.execute(sql, list(values))
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


class KeptTables(Questions):
    """The same over the tables that `--db` has kept in a file of DuckDB, opened for reading alone."""

    def __init__(self, path: Path) -> None:
        config: dict[str, Any] = {"threads": 2, "memory_limit": "1GB", "autoinstall_known_extensions": False}
        try:
            self._con = duckdb.connect(str(path), read_only=True, config=config)
        except duckdb.Error as problem:
            raise BundleError(
                f"{path} cannot be opened: {first_line(problem)}", "Name a file that --db has written"
            ) from None
        self._con.execute("SET enable_external_access = false")
        self._con.execute("SET lock_configuration = true")
        self._watchdog = _Watchdog(self._con)


@dataclass
class _Bulk:
    """Arrays for one table that wait; `source` is None where they hold it themselves."""

    source: str | None
    parts: list[dict[str, Any]] = field(default_factory=list)
    rows: int = 0


def _insert(connection: duckdb.DuckDBPyConnection, table: str, source: str | None, parts: list[dict[str, Any]]) -> None:
    """Append arrays to a table; `source` fills the column of that name unless None."""
    import numpy as np

    columns = {name: [part[name] for part in parts] for name in parts[0]}
    whole = [
        # np.ma is imported by its first use, which costs 20 ms
        (np.ma if any(hasattr(part, "mask") for part in parts) else np).concatenate(parts)
        for parts in columns.values()
    ]
    names = ", ".join(f'"{name}"' for name in columns)
    incoming = {f"c{i}": values for i, values in enumerate(whole)}  # noqa: F841 - the query finds it by its name
    if source is None:
        connection.execute(f"INSERT INTO {table} ({names}) SELECT * FROM incoming")
    else:
        connection.execute(f"INSERT INTO {table} (source, {names}) SELECT $1, * FROM incoming", [source])


class _Watchdog:
    """Interrupts a query that runs too long. One sleeping thread for all: starting a timer per query costs as much as a query."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._deadline: float | None = None
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, seconds: float) -> None:
        """A query begins that may take this long."""
        self._deadline = time.monotonic() + seconds
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="oomdoc-watchdog", daemon=True)
            self._thread.start()

    def end(self) -> None:
        """The query is done."""
        self._deadline = None

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(0.25):
            deadline = self._deadline
            if deadline is not None and time.monotonic() > deadline:
                self._connection.interrupt()


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
""".replace("{rotated}", r"(?:[.-](?:\d[\dT:_-]*|previous|log|txt|out|gz|zst|xz|bz2))+$")


def _made_of(name: str) -> str:
    return f"CREATE OR REPLACE TABLE main.{name} AS {VIEWS[name].sql}"


@functools.cache
def _blank_table(name: str) -> str:
    """The same view where nothing that it reads has rows: its rows are known, and to plan it costs ten times as much."""
    known = BLANK[name]
    if not known.rows:
        columns = ", ".join(f'"{column}" {kind}' for column, kind in known.columns.items())
        return f"CREATE OR REPLACE TABLE main.{name} ({columns})"
    values = ", ".join(
        f'{_literal(known.rows[0].get(column))}::{kind} AS "{column}"' for column, kind in known.columns.items()
    )
    return f"CREATE OR REPLACE TABLE main.{name} AS SELECT {values}"


def _literal(value: Any) -> str:
    return "NULL" if value is None else quoted(value) if isinstance(value, str) else str(value)


def quoted(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


_NUMPY_TYPES: dict[str, Any] = {
    "VARCHAR": object,
    "DOUBLE": "float64",
    "BOOLEAN": "bool",
    "UINTEGER": "uint32",
    "INTEGER": "int32",
    "BIGINT": "int64",
    "UBIGINT": "uint64",
}


_MOST: dict[str, float] = {
    "INTEGER": 2**31 - 1,
    "UINTEGER": 2**32 - 1,
    "BIGINT": 2**53,
    "UBIGINT": 2**53,
    "DOUBLE": 1e18,
}
"""What a figure may be: an exabyte or a quintillion of anything is a forged or damaged one, and would overflow sums and products."""


_READ_AGAIN = ("engine_flag.value", "milestone.text")  # texts out of which views read numbers: settings, versions
_ENDLESS = re.compile(r"[-+]?[\d_]{16,}(?:\.\d*)?$|[-+]?\d+(?:\.\d*)?[eE]\+?\d{2,}$|v?\d+\.[\d.]*\d{7}")


def _sane(kind: str, values: Sequence[Any], column: str) -> list[Any]:
    """The values with NULL for figures that cannot be: infinite, without a number, or too large for their column."""
    if column in _READ_AGAIN:
        return [None if value and len(value) > 4 and _ENDLESS.match(value) else value for value in values]
    most = _MOST.get(kind)
    if most is None:
        return list(values)
    least = 0 if kind.startswith("U") else -most
    return [value if value is None or isinstance(value, str) or least <= value <= most else None for value in values]


def _sane_array(values: Any) -> Any:
    """The same for an array: floats alone can hold what no column takes."""
    if values.dtype.kind != "f" or not values.size:
        return values
    import numpy as np

    with np.errstate(invalid="ignore"):
        wild = ~(np.abs(np.asarray(values)) <= _MOST["DOUBLE"])
    return np.ma.masked_array(values, mask=np.ma.getmaskarray(values) | wild) if wild.any() else values


def _is_array(column: Any) -> bool:
    return type(column).__module__.startswith("numpy")


def _arrays(table: str, columns: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Lists with None to numpy arrays (masked where NULL), by the column's type; all-NULL columns are left out."""
    import numpy as np

    types = {column.name: column.type for column in TABLES[table].columns}
    arrays = {}
    for name, values in columns.items():
        kind = _NUMPY_TYPES[types[name]]
        values = _sane(types[name], values, f"{table}.{name}")
        missing = [value is None for value in values]
        if all(missing):
            continue
        if kind is object:
            array = np.empty(len(values), dtype=object)
            array[:] = values
            arrays[name] = array
        elif any(missing):
            arrays[name] = np.ma.masked_array(
                np.array([0 if value is None else value for value in values], dtype=kind), mask=missing
            )
        else:
            arrays[name] = np.array(values, dtype=kind)
    return arrays
