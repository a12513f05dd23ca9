"""The connection to DuckDB: statements parsed once, questions that only read, and an end to those that run too long.

No other module opens DuckDB.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oomdoc.errors import UsageError
from oomdoc.faults import first_line, out_of_memory

if TYPE_CHECKING:
    import duckdb
else:
    try:
        import _duckdb as duckdb  # the package around it is 50 ms of data frames and expressions that nobody here uses
    except ImportError:
        import duckdb

__all__ = ["STATEMENTS", "Database", "QueryError", "Watchdog", "connect", "duckdb", "literal", "quoted"]

QueryError = duckdb.Error
"""What a broken query raises."""

MEMORY_LIMIT = "128MB"  # with it the process stays below 320 MiB at 1 and 4 GiB of logs (docs/performance.md)
QUERY_SECONDS = 10.0  # a rule's query answers in milliseconds; longer is a runaway join

_OPTIMIZERS = ("filter_pushdown", "unused_columns", "join_filter_pushdown", "build_side_probe_side")
"""What DuckDB optimizes. Views and rules ask tables of a few rows: planning is most of their cost, and most optimizers only
plan (a quarter of it). These four are cheap, and keep what reads millions of rows from reading more than it needs."""

_LARGE_OPTIMIZERS = ("statistics_propagation", "cte_inlining")
_LARGE_GROUPS = 16
"""The same where a source has a table of its own: known ranges let groups be counted in an array of up to 2^16 places, a third
off the views of requests and samples; and a part of a query that is written before it is read where it is used, as it comes out of
the table, not row by row with the name of its source in each (a join of a million rows with it: 260 ms, 7 without). For small
tables that would only be more planning."""

STATEMENTS: dict[str, Any] = {}
"""Views and queries of our own, parsed: a third of their price on a few rows. A statement serves every connection."""

_PASSING: dict[str, Any] = {}
"""Views without the parts that a bundle has nothing for, parsed, the latest last."""
_ASKED: dict[str, Any] = {}
"""What else is said to many databases in the same words, parsed, the latest last."""
_MOST_PASSING = 200  # of five bundles or more; one takes 25 times its text, 70 KiB


def connect(
    file: str = ":memory:", config: Mapping[str, Any] | None = None, read_only: bool = False
) -> duckdb.DuckDBPyConnection:
    """A connection to a database in memory or in a file: the one place where DuckDB is opened."""
    connection = duckdb.connect(file, read_only=read_only, config=dict(config or {}))
    # where no file is run (a shell, a notebook, `python -c`) it would draw a bar over standard output after two seconds
    connection.execute("SET enable_progress_bar = false")
    return connection


class Database:
    """One connection, on which either something of our own is written or questions only read."""

    def __init__(self, scratch: Path | None, file: Path | None) -> None:
        """A database in memory (spilling to `scratch`) or in the new `file`."""
        config: dict[str, Any] = {"threads": 1, "memory_limit": MEMORY_LIMIT, "autoinstall_known_extensions": False}
        if file is None:
            # a checkpoint in memory only compresses: 1.2 s of CPU at 1 GiB, where spilling instead costs 0.4 s
            config["checkpoint_threshold"] = "1TB"
        if scratch is not None:
            config["temp_directory"] = str(scratch)
        elif file is None:
            config["enable_external_access"] = False  # no numpy arrays either: rule tests need neither
        if file is not None and file.exists():
            raise UsageError(f"{file} exists already", "Name a new file, or remove this one first")
        try:
            self.con = connect(str(file) if file else ":memory:", config)
        except duckdb.Error as problem:
            if file is None or out_of_memory(problem):
                raise
            raise UsageError(
                f"cannot write the database {file}: {first_line(problem)}", "Choose a path that can be written"
            ) from None
        self._reads_only = False  # a transaction that only reads is open
        self._watchdog = Watchdog(self.con)

    def close(self) -> None:
        """End the connection (an open one at exit prints leak notices)."""
        self.con.close()

    def stop_watching(self) -> None:
        """No question will be asked any more."""
        self._watchdog.stop()

    def statement(self, sql: str) -> Any:
        """A statement whose text is the same for every bundle, parsed once in a process."""
        if sql not in STATEMENTS:
            STATEMENTS[sql] = self.con.extract_statements(sql)[0]
        return STATEMENTS[sql]

    def passing(self, sql: str) -> Any:
        """A statement whose text is the same for bundles that are alike: the latest of them stay parsed."""
        return self._latest(_PASSING, sql)

    def asked(self, sql: str) -> Any:
        """The same of all else, half of which has a place of the bundle in its text: that pushes no view out."""
        return self._latest(_ASKED, sql)

    def _latest(self, known: dict[str, Any], sql: str) -> Any:
        statement = known.pop(sql, None) or self.con.extract_statements(sql)[0]
        known[sql] = statement
        if len(known) > _MOST_PASSING:
            del known[next(iter(known))]
        return statement

    def plan_for(self, large: bool) -> None:
        """How DuckDB plans: for tables of a few rows, or for some with a table of their own."""
        optimizers = [row[0] for row in self.con.execute("SELECT name FROM duckdb_optimizers()").fetchall()]
        kept = (*_OPTIMIZERS, *_LARGE_OPTIMIZERS) if large else _OPTIMIZERS
        self.con.execute(f"SET disabled_optimizers = '{','.join(name for name in optimizers if name not in kept)}'")
        if large:
            self.con.execute(f"SET perfect_ht_threshold = {_LARGE_GROUPS}")

    def write(self) -> None:
        """Something of our own is to be written: the transaction of questions ends."""
        if self._reads_only:
            self._reads_only = False
            self._roll_back()

    def _roll_back(self) -> None:
        """End the transaction. The interrupt of a question that took too long may come late, and end this instead: it is done again then."""
        for left in reversed(range(_ROLLBACKS)):
            try:
                self.con.execute("ROLLBACK")
                return
            except duckdb.InterruptException:
                if not left:
                    raise
            except duckdb.TransactionException:  # none is open: the one before had done it
                return

    @contextmanager
    def reading(self, only: bool = True) -> Iterator[None]:
        """With `only` nothing is written: `WITH x AS (DELETE ... RETURNING *) SELECT` is a SELECT to the parser.

        One transaction serves all questions until something of our own is written (0.5 ms to begin and end it, five times a
        question); one that failed is over. `bounded` stands inside of it: what ends a transaction is no question.
        """
        if only and not self._reads_only:
            self.con.execute("BEGIN TRANSACTION READ ONLY")
            self._reads_only = True
        try:
            yield
        except BaseException:
            self.write()
            raise

    @contextmanager
    def bounded(self, seconds: float = QUERY_SECONDS) -> Iterator[None]:
        """A question is being asked, which ends after so many seconds."""
        self._watchdog.begin(seconds)
        try:
            yield
        finally:
            self._watchdog.end()


_ROLLBACKS = 4  # one interrupt may be under way when a question ends; the others are for a machine that stands still


class Watchdog:
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


def literal(value: Any) -> str:
    """A value as SQL writes it."""
    return "NULL" if value is None else quoted(value) if isinstance(value, str) else str(value)


def quoted(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"
