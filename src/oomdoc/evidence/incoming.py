"""Rows on their way into the tables: rare ones are gathered, those of large sources lie in a file of the scratch folder.

So 4 GiB of logs cost no more memory than 1 GiB.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oomdoc.evidence.database import Database, duckdb, quoted
from oomdoc.evidence.tables import LOOKALIKE, TABLES, Batch
from oomdoc.evidence.values import arrays, is_array, sane, sane_array
from oomdoc.regexes import regex
from oomdoc.units import NOMINAL_YEAR
from oomdoc.views.blank import Between

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

BUFFER_ROWS = 4_000  # rows of rare evidence that are held before one insert: single inserts cost 0.4 ms each
_NUMPY_ROWS = 500  # from here on arrays cost less than parameter binding (6 us a row)
_FIRST_NUMPY_ROWS = (
    2_000  # the same where no reader has used numpy: to import it takes 45 ms, in a process that has it nothing
)
_ROW_GROUP = (
    122_880  # rows that DuckDB keeps together: a full group is written without the detour over a transaction's rows
)
ANYTHING = object()
"""Stands for whatever is not NULL, where nobody counts what it is."""
_UNTOLD = frozenset((None, ANYTHING))
_MOST_VALUES = 300  # of a column of names, such as flags; what has more is free text or a measurement
_MOST_PARTS = 200  # sources with a table of their own; to plan a view over thousands would take longer than it saves

_NOMINAL_FROM = dt.datetime(NOMINAL_YEAR, 1, 1, tzinfo=dt.UTC).timestamp()
_YEARS_FROM = dt.datetime(NOMINAL_YEAR + 3, 1, 1, tzinfo=dt.UTC).timestamp()  # earlier stamps had no year

_ONE_BOOT_S = 120.0  # two programs tell one boot to the minute
_OF_NO_ZONE = regex(r"UTC|\bbtime\b|node_boot_time|\d{4}-\d\d-\d\d\S*Z\b")


def _whole(value: Any) -> Any:
    """What a column of whole numbers holds of a value: one with a part behind the point is rounded there."""
    return ANYTHING if isinstance(value, float) and not value.is_integer() else value


def _hold_array(held: set[Any], values: Any, kind: str) -> None:
    """Add what stands in an array to what is known of its column: of numbers the least and the most."""
    known = values
    if hasattr(values, "compressed"):
        known = values.compressed()
        if len(known) < len(values):
            held.add(None)
    # a whole number in a column of reals stays what it is, not the other way round
    if not (known.dtype.kind in "iu" or (known.dtype.kind == "f" and kind == "DOUBLE")):
        held |= _UNTOLD
    elif len(known):
        told = [each for each in held if isinstance(each, Between)]
        held.difference_update(told)
        told.append(Between(known.min().item(), known.max().item()))
        held.add(Between(min(each.low for each in told), max(each.high for each in told)))


class Incoming:
    """What comes into the evidence tables of a database, and what is known of it without asking them."""

    def __init__(self, database: Database, apart: Path | None) -> None:
        """`apart` is the file for the rows of large sources; None where the database is a file itself."""
        self._con = database.con
        self._statement = database.statement
        self._asked = database.asked
        self._apart = apart
        self.parts: dict[str, dict[str, str]] = {}
        """Table -> source -> the table that holds the rows of this source alone."""
        self._pending: dict[str, dict[str, list[Any]]] = {}
        self._pending_rows = 0
        self._bulk: dict[str, _Bulk] = {}
        self._arrays = False  # arrays came, or so many rows that they become some: numpy is there
        self._writer: ThreadPoolExecutor | None = None
        self._writing: Future[None] | None = None
        self._aside = self._con  # a connection of its own for the writer
        self.filled: set[str] = set()
        """Tables that have rows."""
        self._values: dict[tuple[str, str], set[Any]] = {}  # table and column -> what stands in it
        self._nominal: set[str] = set()
        self._latest: float | None = None

    def make_tables(self) -> None:
        """The evidence tables, without a row."""
        self._con.execute("BEGIN TRANSACTION")
        for table in TABLES.values():
            columns = ", ".join(f'"{column.name}" {column.type}' for column in table.columns)
            self._con.execute(self._statement(f'CREATE TABLE "{table.name}" ({columns})'))
        self._con.execute("COMMIT")

    def stop_writing(self) -> None:
        """End the thread that writes."""
        if self._writer is not None:
            self._writer.shutdown()
            self._aside.close()

    def forget(self) -> None:
        """Empty the tables. Not where sources have tables of their own."""
        self._pending, self._pending_rows, self._arrays = {}, 0, False
        for table in self.filled:
            self._con.execute(f'DELETE FROM main."{table}"')
        self.filled.clear()
        self._values.clear()
        self._nominal, self._latest = set(), None

    def values_of(self, table: str, column: str) -> Collection[Any]:
        """What may stand in a column of a table that has rows: the values where they are few, `Between` for many numbers, `ANYTHING` for others, None for NULL."""
        return self._values.get((table, column), _UNTOLD)

    def _tell(self, table: str, columns: Mapping[str, Any]) -> None:
        """Keep what stands in the columns of rows that are written now; one that is not there is NULL."""
        for column in TABLES[table].columns:
            if column.name in ("source", "line"):  # which every row has
                continue
            held = self._values.setdefault((table, column.name), set())
            values = columns.get(column.name, (None,))
            if ANYTHING in held:
                held |= _UNTOLD
            elif column.name == "t":  # which may get another year
                held |= _UNTOLD if is_array(values) else {None if value is None else ANYTHING for value in values}
            elif is_array(values):
                _hold_array(held, values, column.type)
            else:
                held.update(values if column.type in ("VARCHAR", "BOOLEAN", "DOUBLE") else map(_whole, values))
                if len(held) > _MOST_VALUES:
                    held |= _UNTOLD

    def load(self, source: str, batch: Batch) -> None:
        """Append a batch; rare rows are gathered as lists, columns of numpy arrays as such."""
        if batch.table == LOOKALIKE or not batch.rows:
            return
        self._note(batch.table, batch.columns.get("t"))
        if any(is_array(column) for column in batch.columns.values()):
            self._arrays = True
            ready = {name: sane_array(values) for name, values in batch.columns.items() if is_array(values)}
            lists = {name: values for name, values in batch.columns.items() if not is_array(values)}
            self._hold(batch.table, source, {**ready, **arrays(batch.table, lists)}, batch.rows)
            return
        held = self._pending.setdefault(batch.table, {name: [] for name in TABLES[batch.table].column_names})
        count = batch.rows
        for name, values in held.items():
            if name == "source":
                values.extend([source] * count)
            else:
                values.extend(batch.columns.get(name) or [None] * count)
        self._pending_rows += count
        if self._pending_rows >= BUFFER_ROWS:
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
        if is_array(times):
            known = times.compressed() if hasattr(times, "compressed") else times
        else:
            known = [t for t in times or () if t is not None]
        if not len(known):
            return
        earliest, latest = (known.min(), known.max()) if is_array(known) else (min(known), max(known))
        if latest >= _YEARS_FROM:
            self._latest = max(float(latest), self._latest or 0.0)
        if earliest < _YEARS_FROM and any(_NOMINAL_FROM <= t < _YEARS_FROM for t in known):
            self._nominal.add(table)

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
            if count >= (_NUMPY_ROWS if self._arrays else _FIRST_NUMPY_ROWS):
                self._arrays = True
                self._hold(table, None, arrays(table, columns), count)
            elif count:
                types = {column.name: column.type for column in TABLES[table].columns}
                columns = {name: sane(types[name], values, f"{table}.{name}") for name, values in columns.items()}
                self._tell(table, columns)
                used = [name for name, values in columns.items() if any(value is not None for value in values)]
                picked = ", ".join(f"unnest(${i}::{types[name]}[])" for i, name in enumerate(used, 1))
                names = ", ".join(f'"{name}"' for name in used)
                insert = self._asked(f'INSERT INTO "{table}" ({names}) SELECT {picked}')
                self._con.execute(insert, [columns[name] for name in used])

    def _hold(self, table: str, source: str | None, arrays: dict[str, Any], count: int) -> None:
        """Keep arrays until a row group is full: 0.1 to 0.2 us a row then, four times as much in pieces of 10,000 rows."""
        self._tell(table, arrays)
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
        parts = self.parts.get(table, {})
        if held.source in parts:
            return parts[held.source]
        count = sum(map(len, self.parts.values()))
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
        self.parts.setdefault(table, {})[held.source] = name
        return name

    def join_parts(self) -> None:
        """Give tables that have parts their public form: a view of everything under their name."""
        for table, parts in self.parts.items():
            self._con.execute(f'ALTER TABLE "{table}" RENAME TO "{table}_rest"')
            each = " UNION ALL ".join(
                f"SELECT {quoted(source)} AS source, * FROM {part}" for source, part in parts.items()
            )
            self._con.execute(f'CREATE VIEW "{table}" AS FROM "{table}_rest" UNION ALL {each}')

    def keep_between(self, since: float | None, until: float | None, tz: dt.tzinfo | None = None) -> None:
        """Drop rows whose time lies outside; rows without a time stay."""
        self.flush()
        self.set_years(tz)
        for name, table in TABLES.items():
            if "t" in table.column_names:
                for rows in (name, *self.parts.get(name, {}).values()):
                    self._con.execute(
                        f"DELETE FROM {rows} WHERE t < $1 OR t > $2",
                        [since if since is not None else -1e18, until if until is not None else 1e18],
                    )

    def set_years(self, tz: dt.tzinfo | None = None) -> None:
        """Move stamps of the nominal year into the year that other stamps of the bundle show; leave them if none does."""
        if self._nominal and "note" in self.filled:
            # a kernel log of which no line is an event tells the year as well
            begun = self._con.execute("SELECT max(value) FROM note WHERE topic = 'kernel-log-from'").fetchone()
            if begun and begun[0] is not None:
                self._latest = max(begun[0], self._latest or 0.0)
        latest, nominal = self._latest, sorted(self._nominal)
        if latest is None or not nominal:
            return
        self._nominal = set()
        offset = dt.datetime.fromtimestamp(latest, dt.UTC).astimezone(tz).utcoffset() if tz else None
        offset_s = offset.total_seconds() if offset else 0.0
        year = f"year(make_timestamp(({latest} * 1e6)::BIGINT))"
        # where rows with a nominal year stand: a table, and the source that it is for (None: it has a column for that)
        places = [
            (place, of) for name in nominal for place, of in ((name, None), *((part, of) for of, part in self.parts.get(name, {}).items()))
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

    def count_from_boot(self, tz: dt.tzinfo | None = None) -> None:
        """Give lines of a kernel that tells seconds since boot their time: by the boot that their own source tells, else by the one of the bundle."""
        if "host_event" not in self.filled or "note" not in self.filled:
            return
        told = self._con.execute(
            "SELECT source, value, text FROM note WHERE topic = 'boot-time' AND value > 0"
        ).fetchall()
        offset = dt.datetime.fromtimestamp(told[0][1], dt.UTC).astimezone(tz).utcoffset() if told and tz else None
        # a stamp without a zone is of the zone of the logs; seconds since 1970 are of none
        local = offset.total_seconds() if offset else 0.0
        boots: dict[str, list[float]] = {}
        for source, value, text in told:
            boots.setdefault(source, []).append(value - (0.0 if _OF_NO_ZONE.search(text or "") else local))
        every = [boot for own in boots.values() for boot in own]
        # who tells it to the minute leaves out its seconds
        one = {source: max(own) for source, own in boots.items() if max(own) - min(own) <= _ONE_BOOT_S}
        if every and max(every) - min(every) <= _ONE_BOOT_S:
            one = {"": max(every)}
        for source, booted in one.items():
            for place in ("host_event", *self.parts.get("host_event", {}).values()):
                counted = "t IS NULL AND uptime_s IS NOT NULL" + (f" AND source = {quoted(source)}" if source else "")
                last = self._con.execute(f"SELECT max(uptime_s) FROM {place} WHERE {counted}").fetchone()
                self._con.execute(f"UPDATE {place} SET t = uptime_s + {booted} WHERE {counted}")
                if last and last[0] is not None:  # often nothing else of a bundle tells the year
                    self._latest = max(booted + last[0], self._latest or 0.0)
        if one:
            self._values.setdefault(("host_event", "t"), set()).add(ANYTHING)


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
