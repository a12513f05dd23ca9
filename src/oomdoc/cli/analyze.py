"""`oomdoc analyze`: one bundle, the ranked causes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oomdoc.cli import console, reading
from oomdoc.cli.options import (
    Color,
    Map,
    MaxMembers,
    MaxSize,
    Memory,
    Paths,
    Quiet,
    RuleFolder,
    Since,
    Timeout,
    Types,
    Until,
    Zone,
)
from oomdoc.errors import EXIT_FOUND, EXIT_OK, UsageError

if TYPE_CHECKING:
    from oomdoc.diagnose import Analysis
    from oomdoc.model import Report


def analyze(
    paths: Paths,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="terminal|brief|markdown|html|json",
            help="Form of what goes to standard output; brief is five lines for a chat.",
        ),
    ] = "terminal",
    everything: Annotated[
        bool,
        typer.Option("--all", help="All of it in the terminal form: every piece of evidence, action, patch and start."),
    ] = False,
    outputs: Annotated[
        list[str] | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write to FILE, .txt, .json, .md or .html, instead (repeatable; - is standard output).",
        ),
    ] = None,
    top: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many causes the terminal form shows; the JSON has all.")
    ] = 3,
    fail_on: Annotated[
        float | None,
        typer.Option(
            metavar="P", help="Exit with 1 when a cause other than `healthy` is at least this probable (0 to 1)."
        ),
    ] = None,
    db: Annotated[
        Path | None, typer.Option(metavar="FILE.duckdb", help="Keep the evidence tables in this new file.")
    ] = None,
    rules: RuleFolder = None,
    model_config: Annotated[
        Path | None, typer.Option(metavar="CONFIG.json", help="The model's config.json, if the bundle lacks it.")
    ] = None,
    gpu: Annotated[
        str | None, typer.Option(metavar="NAME|SIZE", help="The GPU, if the bundle does not show it: H100, or 80GiB.")
    ] = None,
    types: Types = None,
    since: Since = None,
    until: Until = None,
    tz: Zone = None,
    max_size: MaxSize = None,
    max_members: MaxMembers = None,
    timeout: Timeout = None,
    memory_limit: Memory = None,
    redact: Annotated[
        bool,
        typer.Option("--redact", help="Report on a redacted copy: names, addresses, secrets, prompts as stand-ins."),
    ] = False,
    redaction_map: Map = None,
    explain_coverage: Annotated[
        bool,
        typer.Option(
            "--explain-coverage",
            help="Account for every member instead: read as what, lines, rows, problems, or why not.",
        ),
    ] = False,
    details: Annotated[
        bool,
        typer.Option(
            "--details",
            help="Add log lines behind the references and the fix replayed to the JSON; HTML always has them.",
        ),
    ] = False,
    color: Color = "auto",
    quiet: Quiet = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Name each source and what it was read as on standard error.")
    ] = False,
) -> int:
    """Rank the causes of a memory failure, with proof and fix.

    The report says the verdict, where the memory is, what failed first, the evidence by path:line, and the fix.
    Several PATHs are read as one bundle. The same bundle and rules give the same report, byte for byte.

    \b
    Example:
      oomdoc analyze bundle.tar.gz
      oomdoc analyze vllm.log requests.jsonl nvidia-smi.csv --gpu H100
      oomdoc analyze bundle.tar.gz -o report.html -o report.json --fail-on 0.8
      kubectl logs vllm-0 --previous | oomdoc analyze - --format json
      oomdoc analyze bundle.tar.gz --all
      oomdoc analyze bundle.tar.gz --format brief
      oomdoc analyze bundle.tar.gz --explain-coverage --max-size 8GiB
      oomdoc analyze bundle.tar.gz --redact -o report.json
    """
    from oomdoc.report import REPORTS, SUFFIXES

    if fail_on is not None and not 0 <= fail_on <= 1:
        raise UsageError(f"--fail-on {fail_on:g} is no probability", "Give a number from 0 to 1, such as 0.8")
    colored = console.colored(color)
    reading.form(form, REPORTS)
    plan = [(form, "-")] if not outputs else [reading.target(name, form, SUFFIXES) for name in outputs]
    reading.spare_inputs(paths, [*(name for _, name in plan), *([str(db)] if db else [])])
    if explain_coverage and form != "terminal":
        raise UsageError(
            "--explain-coverage is for people", f"The {form} report has the same under `coverage`: leave one out"
        )
    options: dict[str, Any] = {"rules": rules, "db": db, "model_config": reading.existing(model_config), "gpu": gpu}
    if max_size is not None or max_members is not None:
        options["limits"] = reading.limits(max_size, max_members)
    options |= {"timeout": timeout, "memory_limit": memory_limit, "redact": redact, "redaction_map": redaction_map}
    if redaction_map is not None and not redact:
        raise UsageError("--map is for --redact", "Add --redact, or leave it out")
    options["details"] = details or any(name == "html" for name, _ in plan)
    with reading.analysis(paths, quiet, types, since, until, tz, **options) as analysis:
        report = analysis.report
        account = _account(analysis) if explain_coverage else ""
    for sentence in _read(report) if verbose else ():
        console.note(sentence, quiet)
    if explain_coverage:
        console.out(account)
        plan = [entry for entry in plan if entry[1] != "-"]

    for name, target in plan:
        if target == "-":
            text = REPORTS[name](report, top=top, width=console.width(), color=colored, everything=everything)
            console.out(text, utf8=name != "terminal")
        else:
            console.write(
                target, REPORTS[name](report, top=top, width=console.PIPE_WIDTH, color=False, everything=True)
            )
            console.note(f"wrote {target}", quiet)
    if ("terminal", "-") not in plan:
        for warning in report.warnings:
            console.note(f"warning: {warning}", quiet)
    return EXIT_FOUND if fail_on is not None and _reached(report, fail_on) else EXIT_OK


def _read(report: Report) -> Iterator[str]:
    """What `--verbose` shows: each source with what became of it, and what was left unread."""
    from oomdoc.report.words import count

    for item in report.coverage.sources:
        yield f"read {item.path} as {item.kind}: {count(item.lines, 'line')}, {count(item.rows, 'row')} of evidence, {count(item.problems, 'problem')}"
    for left in report.coverage.unread:
        yield f"not read: {left.path} ({left.why})"


def _account(analysis: Analysis) -> str:
    """The account of every source: what was read of it into which table, and what could not be read."""
    from oomdoc.evidence.tables import TABLES
    from oomdoc.report.coverage import Problem, render

    names = [name for name in TABLES if name != "source"]
    query = " UNION ALL ".join(
        f"SELECT source, '{name}' AS name, count(*) AS n FROM {name} GROUP BY ALL" for name in names
    )
    filled: dict[str, list[tuple[str, int]]] = {}
    for source, name, rows in analysis.sql(f"{query} ORDER BY 1, 3 DESC, 2")[1]:
        filled.setdefault(source, []).append((name, rows))
    problems: dict[str, list[Problem]] = {}
    asked = "SELECT source, reason, count(*), min(line) FROM problem GROUP BY ALL ORDER BY 1, 3 DESC, 4"
    for source, reason, places, line in analysis.sql(asked)[1]:
        problems.setdefault(source, []).append(Problem(reason, places, line))
    columns: dict[str, list[tuple[str, str]]] = {}
    for source, name, taken_for in analysis.sql("SELECT source, name, taken_for FROM column_reading ORDER BY rowid")[1]:
        columns.setdefault(source, []).append((name, taken_for))
    return render(analysis.report, filled, problems, columns)


def _reached(report: Report, probability: float) -> bool:
    every = [report.diagnoses, *(incident.diagnoses for incident in report.incidents)]
    return any(
        item.cause != "healthy" and round(item.probability, 6) >= probability
        for diagnoses in every
        for item in diagnoses
    )
