"""The prompt of `oomdoc sql`: statements and dot commands in, text out; completion and history where a terminal reads.

`Session` is pure but for `ask`, and is what pipes and tests use. prompt_toolkit is imported for a terminal only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from oomdoc.errors import UsageError
from oomdoc.report import rows as forms

FORMS = ("table", "chart", "csv", "json", "jsonl")
HELP = """\
  SELECT ...;           ask; a statement ends with ; or with an empty line
  .tables               the tables and views
  .columns NAME         what the columns of one mean
  .format FORM          table, chart, csv, json or jsonl
  .limit N              show at most N rows; 0 = all
  .help                 this
  .quit                 leave (Ctrl-D too)
"""
KEYWORDS = (
    "SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "LIMIT", "HAVING", "JOIN", "USING", "COUNT", "AVG", "MIN", "MAX", "SUM",
    "DISTINCT", "DESC", "BETWEEN", "LIKE", "IS NULL", "IS NOT NULL", "CASE", "WHEN", "THEN", "END", "WITH", "quantile_cont",
)  # fmt: skip

Ask = Callable[[str, int | None], tuple[list[str], list[tuple[Any, ...]]]]


class Session:
    """One sitting: how rows are shown, and the answers. `known` are tables with their columns and meanings."""

    def __init__(
        self,
        ask: Ask,
        known: Mapping[str, forms.Described],
        *,
        form: str = "table",
        limit: int | None = 200,
        width: int | None = None,
    ) -> None:
        self._ask, self._known = ask, known
        self.form, self.limit, self.width = form, limit, width

    def answer(self, statement: str) -> str | None:
        """What to print for a statement or a dot command; None = leave. UsageError where it is wrong."""
        statement = statement.strip().rstrip(";").strip()
        if not statement:
            return ""
        return self._command(*statement.split()) if statement.startswith(".") else self._select(statement)

    def _select(self, query: str) -> str:
        names, rows = self._ask(query, self.limit + 1 if self.limit else None)
        shown = rows[: self.limit] if self.limit else rows
        if self.form == "chart":
            from oomdoc.report.plot import chart

            return chart(names, shown, self.width or 100)
        if self.form != "table":
            return {"csv": forms.csv, "json": forms.json, "jsonl": forms.jsonl}[self.form](names, shown)
        text = forms.table(names, shown, self.width)
        return text if len(shown) == len(rows) else text + f"only the first {len(shown):,}; .limit 0 shows all\n"

    def _command(self, name: str, *words: str) -> str | None:
        if name in (".quit", ".exit", ".q"):
            return None
        if name == ".help":
            return HELP
        if name == ".tables":
            return forms.catalogue(self._known, columns=False, width=self.width or 100)
        if name in (".columns", ".schema") and len(words) == 1:
            if words[0] not in self._known:
                raise UsageError(f"no table or view '{words[0]}'", "`.tables` lists them")
            return forms.catalogue({words[0]: self._known[words[0]]}, columns=True, width=self.width or 100)
        if name == ".format" and len(words) == 1 and words[0] in FORMS:
            self.form = words[0]
            return ""
        if name == ".limit" and len(words) == 1 and words[0].isascii() and words[0].isdecimal() and len(words[0]) < 10:
            self.limit = int(words[0]) or None
            return ""
        raise UsageError(f"'{' '.join((name, *words))}' is no command of this prompt", "`.help` lists them")


_PIECE = re.compile(r"'(?:[^']|'')*'?|\"(?:[^\"]|\"\")*\"?|--[^\n]*|/\*.*?(?:\*/|\Z)|;|[^;'\"/-]+|.", re.S)


def statements(text: str) -> Iterator[str]:
    """The statements of a text: ended by `;` outside of quotes and comments; a line that begins with a dot is one by itself.

    >>> list(statements("SELECT ';' AS x; .format csv\\nFROM oom -- a; b\\n"))
    ["SELECT ';' AS x", '.format csv', 'FROM oom -- a; b']
    """
    held = ""
    rest = text
    while rest:
        if not held.strip() and rest.lstrip().startswith("."):
            line, _, rest = rest.lstrip().partition("\n")
            yield line.strip()
            held = ""
            continue
        match = _PIECE.match(rest)
        assert match is not None  # the last alternative takes any character
        rest = rest[match.end() :]
        if match[0] == ";":
            if held.strip():
                yield held.strip()
            held = ""
        else:
            held += match[0]
    if held.strip():
        yield held.strip()


def complete(line: str) -> bool:
    """Whether what was typed so far is to be answered: a dot command, or a statement that `;` ends.

    >>> complete(".tables"), complete("SELECT 1;"), complete("SELECT ';"), complete("SELECT 1")
    (True, True, False, False)
    """
    bare = re.sub(r"'(?:[^']|'')*('|\Z)|--[^\n]*", "", line).rstrip()
    return line.lstrip().startswith(".") or bare.endswith(";")


def words(known: Mapping[str, forms.Described]) -> dict[str, str]:
    """What can be completed and what stands beside it: tables, columns, keywords, commands."""
    told = dict.fromkeys(KEYWORDS, "")
    for name, entry in known.items():
        for column, _, says in entry.columns:
            told.setdefault(column, says[:60])
        told[name] = entry.says[:60]
    return {**told, **dict.fromkeys((".tables", ".columns", ".format", ".limit", ".help", ".quit"), "command")}


def history_file() -> Path | None:
    """Where statements are remembered, by the XDG base directories; None where no folder can be made. Only its owner reads it."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")  # noqa: PTH111, PTH118
    place = Path(base) / "oomdoc" / "sql_history"
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        place.touch(mode=0o600)
    except OSError:
        return None
    return place


def lines_of_terminal(known: Mapping[str, forms.Described]) -> Iterable[str]:
    """Statements that a person types, with completion and history; ends with Ctrl-D. Ctrl-C drops what was typed."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.history import FileHistory, History, InMemoryHistory

    told = words(known)
    place = history_file()
    history: History = FileHistory(str(place)) if place else InMemoryHistory()
    completer = WordCompleter(list(told), meta_dict=told, ignore_case=True, pattern=re.compile(r"\.?\w*"))
    session: PromptSession[str] = PromptSession(history=history, completer=completer, complete_while_typing=False)
    held = ""
    while True:
        try:
            line = session.prompt("oomdoc> " if not held else "   ...> ")
        except EOFError:
            return
        except KeyboardInterrupt:
            held = ""
            continue
        ended = not line.strip()
        held = f"{held}\n{line}" if held else line
        if held.strip() and (ended or complete(held)):
            yield held
            held = ""


def paged(text: str, rows: int, tall: Callable[[str], None], short: Callable[[str], None]) -> None:
    """Give text to the pager (`tall`) where it is higher than the terminal, else print it (`short`)."""
    (tall if text.count("\n") >= rows else short)(text)


def known_tables(tables: Mapping[str, Any], views: Mapping[str, Any]) -> dict[str, forms.Described]:
    """Tables and views as the catalogue describes them: name -> what it is, what a row is, its columns."""
    known = {
        table.name: forms.Described(
            "table", table.says, [(column.name, column.type, column.says) for column in table.columns]
        )
        for table in tables.values()
    }
    for view in views.values():
        columns: Sequence[tuple[str, str, str]] = [(column, "", says) for column, says in view.columns.items()]
        known[view.name] = forms.Described(f"view per {view.scope}", view.says, columns)
    return known
