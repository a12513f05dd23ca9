"""Read-only questions over tables that were written elsewhere: the store of sweeps, a kept database."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from oomdoc.errors import BundleError, UsageError
from oomdoc.evidence.asking import one_select
from oomdoc.evidence.database import QueryError, Watchdog, connect
from oomdoc.faults import first_line


class Questions:
    """Read-only questions over tables that lie elsewhere (pyarrow datasets): a sweep's store, for its report and for a person.

    `views` are SQL over the tables, made in order. Nothing can be written and no file opened by a query.
    """

    def __init__(self, tables: Mapping[str, Any], views: Mapping[str, str]) -> None:
        import_module("duckdb")  # the whole package teaches its connections Arrow; the inner module does without
        config: dict[str, Any] = {"threads": 2, "memory_limit": "1GB", "autoinstall_known_extensions": False}
        self._con = connect(config=config)
        for name, table in tables.items():
            self._con.register(name, table)
        for name, query in views.items():
            self._con.execute(f"CREATE VIEW {name} AS {query}")
        self._con.execute("SET enable_external_access = false")
        self._con.execute("SET lock_configuration = true")
        self._watchdog = Watchdog(self._con)

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
        except QueryError as problem:
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
            self._con = connect(str(path), config, read_only=True)
        except QueryError as problem:
            raise BundleError(
                f"{path} cannot be opened: {first_line(problem)}", "Name a file that --db has written"
            ) from None
        self._con.execute("SET enable_external_access = false")
        self._con.execute("SET lock_configuration = true")
        self._watchdog = Watchdog(self._con)
