"""What a query from outside may be: one SELECT that computes, and calls nothing that runs SQL, reads files or changes a state.

Told by DuckDB's own parse of the query, never by words of its text: what a text spells, a function can put together. The store
asks in a transaction that only reads as well; this is for what leaves that transaction. `json_execute_serialized_sql` runs on a
connection of its own, and profiling, logging and checkpoints are no writing to the transaction.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb
else:
    try:
        import _duckdb as duckdb  # as the store does
    except ImportError:
        import duckdb

QUERY_CHARACTERS = 100_000  # parsing alone takes long, before anything can be interrupted

TABLE_FUNCTIONS = frozenset(
    {
        "duckdb_columns", "duckdb_functions", "duckdb_keywords", "duckdb_tables", "duckdb_types", "duckdb_views", "generate_series",
        "histogram", "histogram_values", "json_each", "json_tree", "pragma_show", "pragma_table_info", "range", "repeat", "repeat_row",
        "summary", "unnest",
    }
)  # fmt: skip
"""Functions that a query may read from: they compute, or tell what tables and functions there are. A release of DuckDB brings
new ones, so what is not named here is refused."""

_SPEAKS_SQL = frozenset({"json_deserialize_sql", "json_serialize_plan", "json_serialize_sql"})
_TELLS_OF_THE_RUN = frozenset({"current_setting", "getvariable", "getenv"})  # not of the evidence
_COUNTS_FROM_TODAY = frozenset({"age"})  # with one argument; its signatures do not say so


def one_select(sql: str, connection: Any, *, clock: bool = False) -> Any:
    """The parsed query if it is exactly one SELECT that only computes; raises `duckdb.InvalidInputException` otherwise.

    With `clock` it may ask for the time of the run: a person may, a rule may not, since its answer would be another tomorrow.
    """
    if len(sql) > QUERY_CHARACTERS:
        raise duckdb.InvalidInputException(f"a query of more than {QUERY_CHARACTERS:,} characters")
    statement = parsed(sql, connection)
    try:
        tree = json.loads(connection.execute("SELECT json_serialize_sql($1)", [sql]).fetchone()[0])
        tables, functions = _called(tree)
    except RecursionError:
        raise duckdb.InvalidInputException("a query of too many expressions inside each other") from None
    if tree.get("error"):
        raise duckdb.InvalidInputException(f"a query that cannot be checked: {tree.get('error_message')}")
    refused = [name for name in tables if name not in TABLE_FUNCTIONS]
    if not refused and functions:
        refused = sorted(functions & (_SPEAKS_SQL | _TELLS_OF_THE_RUN)) or _changing(functions, connection, clock)
    if refused:
        raise duckdb.InvalidInputException(f"a query may not call {refused[0]}: it may only compute, from the tables")
    return statement


def parsed(sql: str, connection: Any) -> Any:
    """The parsed query if it is exactly one SELECT, for queries of our own."""
    statements = connection.extract_statements(sql)  # duckdb.extract_statements would open a second database, 15 ms
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise duckdb.InvalidInputException("exactly one SELECT is allowed")
    return statements[0]


def _called(tree: Any) -> tuple[list[str], set[str]]:
    """Names of the functions that a parsed query reads from, and of all that it calls."""
    tables: list[str] = []
    functions: set[str] = set()
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, dict):
            if node.get("type") == "TABLE_FUNCTION":
                tables.append(str(node["function"].get("function_name", "a function")).lower())
            if "function_name" in node:
                functions.add(str(node["function_name"]).lower())
            waiting += node.values()
    return tables, functions


def _changing(functions: set[str], connection: Any, clock: bool) -> list[str]:
    """Those of the functions that DuckDB says have effects, or another answer every time."""
    if clock not in _EFFECTS:
        _EFFECTS[clock] = frozenset(name for (name,) in connection.execute(_WITH_EFFECTS, [clock]).fetchall())
    return sorted(functions & (_EFFECTS[clock] if clock else _EFFECTS[clock] | _COUNTS_FROM_TODAY))


_EFFECTS: dict[bool, frozenset[str]] = {}
"""What `_WITH_EFFECTS` gives, asked once in a process (5 ms): it tells of DuckDB's own functions alone, macros have no stability."""

# One with several signatures asks for the time only where all of them do: since DuckDB 2.0.1 `+` and `date_part` are said to hold
# within a query where they take a time with a zone, since they read the zone that was set.
_WITH_EFFECTS = """
SELECT function_name
FROM duckdb_functions()
WHERE stability IS NOT NULL
GROUP BY function_name
HAVING bool_or(stability = 'VOLATILE') OR (NOT $1 AND bool_and(stability = 'CONSISTENT_WITHIN_QUERY'))
"""
