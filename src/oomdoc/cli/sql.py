"""`oomdoc sql` and `oomdoc tables`: questions to the evidence, and what can be asked."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oomdoc.cli import console, reading
from oomdoc.cli.options import Bundle, Memory, Quiet, Since, Timeout, Types, Until, Zone
from oomdoc.errors import EXIT_OK, UsageError
from oomdoc.faults import unwritable

if TYPE_CHECKING:
    from oomdoc.diagnose import Analysis


def sql(
    bundle: Bundle,
    query: Annotated[
        str | None,
        typer.Argument(
            metavar="SELECT",
            help="One SELECT over the tables that `oomdoc tables` lists; without it a prompt, or what a pipe says.",
            show_default=False,
        ),
    ] = None,
    form: Annotated[
        str, typer.Option("--format", metavar="table|chart|csv|json|jsonl", help="Form of the rows.")
    ] = "table",
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write to FILE, .csv, .json, .jsonl or .parquet, instead."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="At most N rows.")] = None,
    endpoint_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Address of the object store that a sweep's store is in.")
    ] = None,
    anonymous: Annotated[bool, typer.Option("--anonymous", help="Read a public store without credentials.")] = False,
    types: Types = None,
    since: Since = None,
    until: Until = None,
    tz: Zone = None,
    timeout: Timeout = None,
    memory_limit: Memory = None,
    quiet: Quiet = False,
) -> int:
    """Answer SELECTs from the evidence tables of a bundle.

    The dialect is DuckDB's; nothing can be written and no file opened. `oomdoc tables` says what there is. Without a SELECT
    a prompt opens, with history and with completion of tables and columns (Tab); `.help` lists its commands. A pipe is
    answered statement by statement. A file that `analyze --db` has kept is asked as it is. For the store of a sweep it answers from the dataset: docs/sweep.md has its tables. JSON
    and Parquet hold texts as they are; in a table and in CSV no terminal acts on them and no spreadsheet computes them.
    A chart is drawn over the first column: bars where it names things, an area where it is a number or a time.

    \b
    Example:
      oomdoc sql bundle.tar.gz "SELECT t, kv_used, waiting FROM engine_stat ORDER BY kv_used DESC LIMIT 5"
      oomdoc sql bundle.tar.gz "SELECT t, kv_used, waiting FROM engine_stat" --format chart
      oomdoc sql bundle.tar.gz "FROM oom" --format json
      oomdoc sql bundle.tar.gz "FROM request" -o requests.parquet
      oomdoc sql bundle.tar.gz
      oomdoc sql bundle.tar.gz < questions.sql
      oomdoc sql tables.duckdb "SELECT count(*) FROM request"
    """
    reading.form(form, ("table", "chart", "csv", "json", "jsonl"))
    if query is None and bundle == "-":
        raise UsageError("standard input is the bundle, so the question has to be an argument", "Add a SELECT")
    suffix = output.suffix.lower().lstrip(".") if output else ""
    if output is not None:
        if suffix not in ("csv", "json", "jsonl", "parquet"):
            raise UsageError(
                f"-o {output} does not say which form to write", "End it with .csv, .json, .jsonl or .parquet"
            )
        if query is None:
            raise UsageError(f"-o {output} needs a SELECT", "Give it as an argument")
        reading.spare_inputs([bundle], [str(output)])
    from oomdoc.report.words import count

    if _is_store(bundle):
        if query is None or suffix == "parquet":
            raise UsageError(
                "the store of a sweep answers one SELECT as text", "Give it as an argument; copy its Parquet files"
            )
        names, rows = _ask_store(bundle, query, limit + 1 if limit else None, endpoint_url, anonymous)
        return _rows_out(names, rows, form, output, suffix, limit, quiet)
    if _is_database(bundle):
        if query is None or suffix == "parquet":
            raise UsageError(
                "kept tables answer one SELECT as text", "Give it as an argument; DuckDB itself opens the file too"
            )
        from oomdoc.diagnose import kept_tables

        with kept_tables(Path(bundle)) as kept:
            names, rows = kept.query(query, limit + 1 if limit else None, "`oomdoc tables` lists tables and columns")
        return _rows_out(names, rows, form, output, suffix, limit, quiet)
    with reading.analysis(
        [bundle], quiet, types, since, until, tz, timeout=timeout, memory_limit=memory_limit
    ) as analysis:
        if query is None:
            return _questions(analysis, form, limit, quiet)
        if output is not None and suffix == "parquet":
            try:
                with console.beside(str(output)) as target:
                    made = analysis.parquet(query, target, limit)
            except OSError as problem:
                raise unwritable(problem, str(output)) from None
            console.note(f"wrote {count(made, 'row')} to {output}", quiet)
            return EXIT_OK
        names, rows = analysis.sql(query, limit + 1 if limit else None)
    return _rows_out(names, rows, form, output, suffix, limit, quiet)


def _rows_out(
    names: list[str],
    rows: list[tuple[Any, ...]],
    form: str,
    output: Path | None,
    suffix: str,
    limit: int | None,
    quiet: bool,
) -> int:
    """Rows on standard output or in a file; one more than `limit` of them says that there are more."""
    from oomdoc.report import rows as forms
    from oomdoc.report.words import count

    shown = rows[:limit]
    writers = {"csv": forms.csv, "json": forms.json, "jsonl": forms.jsonl}
    if output is not None:
        console.write(str(output), writers[suffix](names, shown))
        console.note(f"wrote {count(len(shown), 'row')} to {output}", quiet)
    elif form == "table":
        console.out(
            forms.table(names, shown, console.width() if sys.stdout is not None and sys.stdout.isatty() else None)
        )
    elif form == "chart":
        from oomdoc.report.plot import chart

        console.out(chart(names, shown, console.width()))
    else:
        console.out(writers[form](names, shown), utf8=True)
    if len(shown) < len(rows):
        console.note(f"only the first {count(len(shown), 'row')}; --limit gives more", quiet)
    return EXIT_OK


def _questions(analysis: Analysis, form: str, limit: int | None, quiet: bool) -> int:
    """Statements of a person at the prompt, where a mistake is shown and the next statement is read, or of a pipe, where it ends the run."""
    import pydoc

    from oomdoc.cli import prompt
    from oomdoc.evidence.tables import TABLES
    from oomdoc.views import VIEWS

    known = prompt.known_tables(TABLES, VIEWS)
    if sys.stdin is None:
        raise UsageError("standard input is closed, so the question has to be an argument", "Add a SELECT")
    person = sys.stdin.isatty() and sys.stdout is not None and sys.stdout.isatty()
    session = prompt.Session(analysis.sql, known, form=form, limit=limit if limit or not person else 200)
    if not person:
        for statement in prompt.statements(sys.stdin.read()):
            if (told := session.answer(statement)) is None:
                break
            console.out(told, utf8=session.form not in ("table", "chart"))
        return EXIT_OK
    console.note(f"{analysis.report.bundle.name}: SELECT ...; or .help, Ctrl-D to leave", quiet)
    for statement in prompt.lines_of_terminal(known):
        session.width = console.width()
        try:
            told = session.answer(statement)
        except UsageError as problem:
            console.say(str(problem))
            continue
        if told is None:
            break
        prompt.paged(told, shutil.get_terminal_size().lines, pydoc.pager, console.out)
    return EXIT_OK


def _is_database(bundle: str) -> bool:
    """Whether a path is a database of DuckDB, as `--db` writes it: by its first bytes."""
    try:
        with Path(bundle).open("rb") as file:
            return file.read(12)[8:] == b"DUCK"
    except (OSError, ValueError):
        return False


def _is_store(bundle: str) -> bool:
    """Whether a path is the store of a sweep, a damaged one too: told by its files, without importing what reads it."""
    if "://" in bundle:
        return True
    try:
        if '"oomdoc_dataset"' in (Path(bundle) / "manifest.json").read_text(encoding="utf-8"):
            return True
    except (OSError, ValueError):
        pass
    return any(Path(bundle).glob("records/????????-*.json")) or any(Path(bundle).glob("bundle/day=*/*.parquet"))


def _ask_store(
    store: str, query: str, limit: int | None, endpoint_url: str | None, anonymous: bool
) -> tuple[list[str], list[tuple[Any, ...]]]:
    from oomdoc.sweep.places import Access, is_uri, need_pyarrow

    need_pyarrow()
    from oomdoc.sweep.dataset import existing
    from oomdoc.sweep.trends import questions

    if "://" in store and not is_uri(store):
        raise UsageError(
            f"{store} is in no object store that is known here", "Write s3://BUCKET/PREFIX or gs://BUCKET/PREFIX"
        )
    with questions(existing(store, Access(endpoint_url, anonymous))) as ask:
        return ask.query(query, limit, "docs/sweep.md lists tables and columns")


def tables(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One table or view.", show_default=False)] = None,
    short: Annotated[bool, typer.Option("--short", help="Names and meanings only, no columns.")] = False,
) -> int:
    """List the evidence tables and views, and what each column means.

    \b
    Example:
      oomdoc tables --short
      oomdoc tables engine_stat
    """
    from oomdoc.cli.prompt import known_tables
    from oomdoc.evidence.tables import TABLES
    from oomdoc.report.rows import catalogue
    from oomdoc.views import VIEWS

    known = known_tables(TABLES, VIEWS)
    if name is not None and name not in known:
        raise UsageError(
            f"no table or view '{name}'", console.nearest(name, known, "`oomdoc tables --short` lists them")
        )
    chosen = known if name is None else {name: known[name]}
    console.out(catalogue(chosen, columns=not short, width=console.width()))
    return EXIT_OK
