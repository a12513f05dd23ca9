"""The views over the evidence, each made when somebody asks it, and what is known of them without asking."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import Any

from oomdoc.evidence.database import Database, duckdb, literal
from oomdoc.evidence.tables import TABLES
from oomdoc.regexes import regex
from oomdoc.views import VIEWS
from oomdoc.views.blank import BLANK, Claim, Question, is_so
from oomdoc.views.parts import shortened

_LISTS_TABLES = regex(r"(?i)duckdb_|information_schema|pg_catalog|pragma|sqlite_master|summar")

_FEW_ROWS = 16
"""Rows of a view that are looked at in Python: to ask DuckDB whether one of them passes costs as much as to fetch them."""


class Derived:
    """The views of one database. Views and questions that nothing can come of are neither made nor asked."""

    plainly = False
    """Make every view and ask every question, whatever is known of them: the answers are the same."""

    def __init__(
        self, database: Database, filled: Set[str], values_of: Callable[[str, str], Collection[Any]], at_once: bool
    ) -> None:
        """`filled` are the names of the tables that have rows, as time goes by, `values_of` says what may stand in a column of one;
        `at_once`: every view is made, for whoever opens the file later."""
        self._database = database
        self._filled = filled
        self._values_of = values_of
        self.at_once = at_once
        self._unmade: set[str] = set()  # views that nobody has asked yet
        self.unanswered: list[str] = []
        """Views that would have needed more memory than there is: they are as in a bundle without evidence."""
        self._as_blank: dict[str, bool] = {}  # view -> it holds what it holds without evidence
        self._counts: dict[str, int] = {}  # view that was made -> its rows
        self._rows: dict[str, list[Mapping[str, Any]]] = {}  # view of few rows -> these rows
        self.without_rows: set[str] = set()
        """Of the tables that the store fills itself, those without a row."""

    def forget(self) -> None:
        """No view is made, and nothing is known of any."""
        self.without_rows.clear()
        for known in (self._as_blank, self._counts, self._rows):  # of the rows that are gone
            known.clear()
        self._unmade = set()

    def changed(self) -> None:
        """Rows came in after views were made: what was taken to be as without evidence may not be."""
        self._as_blank.clear()

    def unmake(self, scope: str, but: str = "") -> None:
        """Views of this scope are to be made anew: when somebody asks them, since to plan one costs 1 to 20 ms."""
        again = {view.name for view in VIEWS.values() if view.scope == scope and view.name != but}
        self._unmade |= again
        self._as_blank.clear()
        for name in again:
            self._counts.pop(name, None)
            self._rows.pop(name, None)
        if self.at_once or self.plainly:
            self.make_all()

    def make(self, name: str) -> None:
        """Make a view, and before it those that it reads; where its rows are known without planning it, only a table of them."""
        self._unmade.discard(name)
        self._counts.pop(name, None)
        self._rows.pop(name, None)
        text = VIEWS[name].sql
        known = not self.plainly and (self._is_as_blank(name) or self._is_rowless(name))
        if not known and not self.plainly:
            # of a view that nothing is written down of, all that come before it: it can read no others
            before = BLANK[name].reads if name in BLANK else itertools.takewhile(lambda other: other != name, VIEWS)
            unmade = [other for other in before if other in self._unmade]
            for other in unmade:
                if other in self._unmade and not self._is_as_blank(other):
                    self.make(other)
            known = self._is_as_blank(name)  # by what stands in them
            if not known:
                text = shortened(name, self._is_so)
                for other in unmade:  # those that are as without evidence, where it still names them
                    if other in self._unmade and other in text:
                        self.make(other)
        self._database.write()
        try:
            if not known and text != VIEWS[name].sql:
                statement = self._database.passing(made_of(name, text))
            else:
                statement = self._database.statement(_blank_table(name) if known else made_of(name))
            made = self._database.con.execute(statement)
        except duckdb.OutOfMemoryException:
            if known or name not in BLANK:
                raise
            # what a view holds side by side cannot be spilled; one answer less is better than none at all
            self.unanswered.append(name)
            known, made = True, self._database.con.execute(self._database.statement(_blank_table(name)))
        self._counts[name] = len(BLANK[name].rows) if known else made.fetchall()[0][0]
        if known or not self._counts[name]:
            self._rows[name] = list(BLANK[name].rows) if known else []
        # what was not known of the views that read it may be known now
        self._as_blank = {other: True for other, so in self._as_blank.items() if so}

    def count_of(self, name: str) -> int:
        """How many rows a view has, which is made to know it."""
        if name in self._unmade and not self._comes_empty(name):
            self.make(name)
        return self._counts[name] if name in self._counts else len(BLANK[name].rows)

    def make_named(self, sql: str) -> None:
        """Make the views whose names stand in a query, whatever they mean there."""
        if self._unmade:
            text = sql.lower()
            for name in [name for name in VIEWS if name in self._unmade and name in text]:
                if name in self._unmade:
                    self.make(name)

    def make_asked(self, sql: str) -> None:
        """Make what a person's query may mean: who asks for the tables there are, all."""
        if _LISTS_TABLES.search(sql):
            self.make_all()
        self.make_named(sql)

    def make_all(self) -> None:
        """Make every view."""
        for name in VIEWS:
            if name in self._unmade:
                self.make(name)

    def tells_nothing(self, asked: Question) -> bool:
        """Whether a question has no answer, or all that it reads is as in a bundle without evidence."""
        if self.plainly:
            return False
        return (
            is_so(asked.nothing, self._is_empty, self._values_known)
            or is_so(asked.nothing, self._comes_empty, self._values_made)
            or (bool(asked.reads) and all(self._is_blank(name, asked) for name in asked.reads))
        )

    def _is_so(self, claim: Claim) -> bool:
        """Whether a claim is so, as things stand."""
        return is_so(claim, self._is_empty, self._values_known, self._is_as_blank)

    def _is_rowless(self, name: str) -> bool:
        """Whether a view that has no row without evidence has none in this bundle; views before it are made to know it."""
        return (
            name in BLANK and not BLANK[name].rows and is_so(BLANK[name].rowless, self._comes_empty, self._values_made)
        )

    def _is_empty(self, name: str) -> bool:
        """Whether a relation is known to have no row, as things stand."""
        if name in TABLES:
            return name not in self._filled
        if name not in VIEWS:
            return name in self.without_rows
        return self._counts[name] == 0 if name in self._counts else self._is_as_blank(name) and not BLANK[name].rows

    def _comes_empty(self, name: str) -> bool:
        """The same; a view of which it is not known is made."""
        if name in VIEWS and name in self._unmade and not self._is_as_blank(name):
            self.make(name)
        return self._is_empty(name)

    def _rows_known(self, name: str) -> Sequence[Mapping[str, Any]] | None:
        """The rows of a view that has few, as far as they are known."""
        if name not in self._counts:
            return BLANK[name].rows if self._is_as_blank(name) else None
        if self._counts[name] > _FEW_ROWS:
            return None
        if name not in self._rows:
            cursor = self._database.con.execute(self._database.statement(f"SELECT * FROM main.{name}"))
            names = [column[0] for column in cursor.description or ()]
            self._rows[name] = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        return self._rows[name]

    def _values_known(self, name: str, column: str) -> Collection[Any] | None:
        """What stands in a column, as far as it is known."""
        if name in TABLES:
            return self._values_of(name, column)
        rows = self._rows_known(name)
        return None if rows is None else [row.get(column) for row in rows]

    def _values_made(self, name: str, column: str) -> Collection[Any] | None:
        self._comes_empty(name)
        return self._values_known(name, column)

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
                    and (self._counts.get(name) == 0 or is_so(known.rowless, self._is_empty, self._values_known))
                )
                or all(self._is_as_blank(read) if read in VIEWS else self._is_empty(read) for read in known.reads)
                or self._is_so(known.bare)
            )
        return self._as_blank[name]


def made_of(name: str, text: str = "") -> str:
    """The statement that makes a view a table of its rows, which this text gives as well as its own."""
    return f"CREATE OR REPLACE TABLE main.{name} AS {text or VIEWS[name].sql}"


@functools.cache
def _blank_table(name: str) -> str:
    """The same view where nothing that it reads has rows: its rows are known, and to plan it costs ten times as much."""
    known = BLANK[name]
    if not known.rows:
        columns = ", ".join(f'"{column}" {kind}' for column, kind in known.columns.items())
        return f"CREATE OR REPLACE TABLE main.{name} ({columns})"
    values = ", ".join(
        f'{literal(known.rows[0].get(column))}::{kind} AS "{column}"' for column, kind in known.columns.items()
    )
    return f"CREATE OR REPLACE TABLE main.{name} AS SELECT {values}"
