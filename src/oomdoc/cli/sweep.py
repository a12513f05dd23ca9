"""`oomdoc sweep`: a fleet, every night."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oomdoc.cli import console, reading
from oomdoc.cli.options import Color, Quiet, RuleFolder
from oomdoc.errors import EXIT_FOUND, EXIT_INPUT, EXIT_OK, UsageError
from oomdoc.units import show_bytes

if TYPE_CHECKING:
    from oomdoc.sweep.repair import Health

_MOST_LISTED = 20  # of files that are left alone


def sweep(
    store: Annotated[
        str,
        typer.Option(
            metavar="DIR|URI", help="The dataset: made in a folder that is empty or not there.", show_default=False
        ),
    ],
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH|URI...", help="Folders, globs, archives, s3://BUCKET/PREFIX, gs://...", show_default=False
        ),
    ] = None,
    group_by: Annotated[
        str, typer.Option(metavar="folder|host|pod", help="What of a log tree is one bundle; an archive always is one.")
    ] = "folder",
    engine: Annotated[str, typer.Option(metavar="embedded|ray", help="Who runs the work.")] = "embedded",
    jobs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Bundles at the same time; else one per core.")
    ] = None,
    time_limit: Annotated[float, typer.Option(min=1, metavar="SECONDS", help="For one bundle.")] = 600,
    memory: Annotated[str, typer.Option(metavar="SIZE", help="For one worker.")] = "1GiB",
    night: Annotated[str | None, typer.Option(metavar="DATE", help="The night's date; else today in UTC.")] = None,
    retention: Annotated[
        int | None, typer.Option(min=1, metavar="DAYS", help="Forget nights that are older; else none is forgotten.")
    ] = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Read every bundle again, changed or not.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Sweep nothing: read the whole store, and say whether it is as written.")
    ] = False,
    repair: Annotated[
        bool, typer.Option("--repair", help="Sweep nothing: mend a damaged store, and say what cannot be mended.")
    ] = False,
    reports: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write the report of every bundle that is read as a page into DIR, and link it."
        ),
    ] = None,
    mark: Annotated[
        str | None,
        typer.Option(
            metavar="FINGERPRINT=STATE",
            help="Sweep nothing: say that an incident is acknowledged, gone, or known again (the report shows fingerprints).",
        ),
    ] = None,
    note: Annotated[
        str, typer.Option(metavar="TEXT", help="With --mark: a word on it; of gone ones, what cured it.")
    ] = "",
    find: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Sweep nothing: which bundles show a line with TEXT, by the evidence kept."),
    ] = None,
    ask: Annotated[
        str | None,
        typer.Option(
            metavar="SELECT",
            help="Sweep nothing: what a SELECT answers for each bundle (`oomdoc tables` lists tables).",
        ),
    ] = None,
    endpoint_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Address of an object store that is not the cloud's own.")
    ] = None,
    anonymous: Annotated[bool, typer.Option("--anonymous", help="Read public buckets without credentials.")] = False,
    rules: RuleFolder = None,
    form: Annotated[
        str,
        typer.Option(
            "--format", metavar="FORM", help="On standard output: terminal, markdown, html, jsonl, junit or prometheus."
        ),
    ] = "terminal",
    outputs: Annotated[
        list[str] | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the report to FILE as well: .txt, .md, .html, .jsonl, .xml (JUnit), .prom (repeatable).",
        ),
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(
            metavar="new|P",
            help="Exit with 1 for a new incident with a memory cause, or for one at least this probable (0 to 1).",
        ),
    ] = None,
    color: Color = "auto",
    quiet: Quiet = False,
) -> int:
    """Diagnose a fleet every night: read what is new, report what is new.

    Every archive is a bundle; log trees are cut into bundles by folder (the first one on the way down that holds files),
    host or pod. What is unchanged is not read again, new rules judge kept evidence, and the dataset of Parquet files answers
    `oomdoc sql STORE`. Killed at any moment, the next sweep goes on. Object stores are reached with the usual credentials.
    A store is made in an empty folder only, removes no file but its own, and hashes what it reads: a damaged one is not used
    until `--repair` has mended it.

    \b
    Example:
      oomdoc sweep /var/bundles --store ./fleet
      oomdoc sweep '/logs/*/vllm*.log' --group-by host --store ./fleet -o morning.html -o oomdoc.prom
      oomdoc sweep s3://support/bundles --store s3://support/oomdoc --retention 90 --fail-on new
      oomdoc sweep /var/bundles --store ./fleet -o night/morning.html --reports night/reports
      oomdoc sweep --store ./fleet --mark 4f1c09=gone --note "driver 550 rolled out"
      oomdoc sweep --store ./fleet --find "NCCL error"
      oomdoc sweep --store ./fleet --ask "SELECT max(kv_used) AS peak FROM engine_stat HAVING peak > 0.95"
      oomdoc sweep --check --store ./fleet
      oomdoc sql ./fleet "SELECT cause, count(*) AS n FROM new_incident GROUP BY cause ORDER BY n DESC"

    \b
    Exit status: 0 the sweep was made; 1 with --fail-on; 2 wrong usage; 3 nothing
    could be read or written, or the store is damaged; 75 another sweep is at work
    on the store.
    """
    if mark is not None:
        return _marked(store, paths or [], mark, note, endpoint_url, anonymous)
    if find is not None or ask is not None:
        return _searched(store, paths or [], find, ask, form, endpoint_url, anonymous, quiet)
    if check or repair:
        return _looked_over(store, paths or [], check, repair, endpoint_url, anonymous)
    if not paths:
        raise UsageError("no bundles are named", "Write folders, archives or s3://BUCKET/PREFIX before --store")
    from oomdoc.report.morning import FORMS, SUFFIXES, terminal

    reading.form(form, FORMS)
    least = _sweep_bar(fail_on)
    colored = console.colored(color)
    targets = [(reading.form_of_file(name, SUFFIXES), name) for name in outputs or ()]
    from oomdoc.units import parse_size

    size = parse_size(memory)
    if not size or size < 256 << 20:
        raise UsageError(
            f"--memory '{memory}' is no size that a worker can live in", "Write 1GiB, and not less than 256MiB"
        )
    from oomdoc.sweep.places import Access, need_pyarrow

    need_pyarrow()
    from oomdoc.sweep import run as sweeping
    from oomdoc.sweep.engines import Limits

    progress = console.SweepProgress(quiet)
    chosen = sweeping.Settings(
        store=store, group_by=group_by, engine=engine, jobs=jobs, limits=Limits(time_limit, size), night=night, retention_days=retention,
        rebuild=rebuild, rules=rules, access=Access(endpoint_url, anonymous), progress=progress, reports=reports,
    )  # fmt: skip
    try:
        morning = sweeping.sweep(paths, chosen)
    finally:
        progress.clear()
    for name, target in targets:
        console.write(target, FORMS[name](morning), private=False)  # other programs read it: metrics, CI
        console.note(f"wrote {target}", quiet)
    text = terminal(morning, width=console.width(), color=colored) if form == "terminal" else FORMS[form](morning)
    console.out(text, utf8=form != "terminal")
    if least is None:
        return EXIT_OK
    reached = (
        morning.new_incidents > 0
        if least == "new"
        else any(group.cause != "healthy" and (group.probability or 0) >= float(least) for group in morning.groups)
    )
    return EXIT_FOUND if reached else EXIT_OK


def _marked(store: str, paths: list[str], mark: str, note: str, endpoint_url: str | None, anonymous: bool) -> int:
    """`--mark`: keep what a person says of an incident."""
    if paths:
        raise UsageError("--mark stands alone", "Write `oomdoc sweep --store DIR --mark FINGERPRINT=acknowledged`")
    fingerprint, _, state = mark.partition("=")
    from oomdoc.sweep.places import Access, need_pyarrow

    need_pyarrow()
    from oomdoc.sweep import states

    whole = states.mark(store, fingerprint, state or "acknowledged", note, Access(endpoint_url, anonymous))
    console.out(f"{whole}: {state or 'acknowledged'}" + (f" ({note})" if note else "") + "\n")
    return EXIT_OK


def _searched(
    store: str, paths: list[str], find: str | None, query: str | None, form: str,
    endpoint_url: str | None, anonymous: bool, quiet: bool,
) -> int:  # fmt: skip
    """`--find` and `--ask`: rows of the kept evidence, with the bundle in front."""
    if paths or (find is not None and query is not None):
        raise UsageError("--find and --ask stand alone", "Write `oomdoc sweep --store DIR --find TEXT`")
    reading.form(form, ("terminal", "csv", "json", "jsonl"))
    from oomdoc.sweep.places import Access, need_pyarrow

    need_pyarrow()
    from oomdoc.report import rows as forms
    from oomdoc.report.words import count
    from oomdoc.sweep import search

    access = Access(endpoint_url, anonymous)
    found = search.lines(store, find, access) if find is not None else search.answers(store, query or "", access)
    writers = {"csv": forms.csv, "json": forms.json, "jsonl": forms.jsonl}
    if form == "terminal" and find is not None:
        from oomdoc.report.found import render

        console.out(render(found.rows, console.width()))
    elif form == "terminal":
        console.out(forms.table(found.names, found.rows, console.width()))
    else:
        console.out(writers[form](found.names, found.rows), utf8=True)
    without = (
        f"; {count(len(found.without), 'bundle')} could not be asked, no evidence is kept of them"
        if found.without
        else ""
    )
    console.note(f"{found.shown} of {count(found.asked, 'bundle')} show it{without}", quiet)
    for bundle in found.without[:_MOST_LISTED]:
        console.note(f"  not asked: {bundle}", quiet)
    return EXIT_OK


def _looked_over(
    store: str, paths: list[str], check: bool, repair: bool, endpoint_url: str | None, anonymous: bool
) -> int:
    """`--check` and `--repair`: what was found on standard output; 3 where the store is damaged still."""
    if paths or (check and repair):
        raise UsageError("--check and --repair stand alone", "Write `oomdoc sweep --check --store DIR`")
    from oomdoc.sweep.places import Access, need_pyarrow

    need_pyarrow()
    from oomdoc.sweep import repair as mending

    health = (mending.repair if repair else mending.check)(store, Access(endpoint_url, anonymous))
    console.out("\n".join(_health_lines(health, repair)) + "\n")
    return EXIT_INPUT if health.damage and not repair else EXIT_OK


def _health_lines(health: Health, repaired: bool) -> list[str]:
    """What a person reads of a store."""
    state = "whole" if not health.damage and not health.mended else "mended" if repaired else "damaged"
    lines = [
        f"{health.address}: {state}. {health.files} files, {health.nights} nights, {health.rows} rows, "
        f"{show_bytes(health.bytes)}; generation {health.generation} of the record"
    ]
    for title, found in (
        ("damage", health.damage),
        ("mended", health.mended),
        ("lost, unless put back from a backup and mended again", health.lost),
        ("left over and not used; may be removed by hand", health.left_over),
        ("not the store's, and left alone", health.foreign),
    ):
        shown = found if title in ("damage", "mended") else found[:_MOST_LISTED]
        lines += [f"  {title}: {entry}" for entry in shown]
        if len(found) > len(shown):
            lines.append(f"  {title}: {len(found) - len(shown)} more")
    return lines


def _sweep_bar(given: str | None) -> str | float | None:
    """`--fail-on` of a sweep: `new`, a probability, or None."""
    if given is None or given == "new":
        return given
    try:
        bar = float(given)
    except ValueError:
        bar = -1.0
    if not 0 <= bar <= 1:
        raise UsageError(f"--fail-on {given} is neither `new` nor a probability", "Write new, or a number such as 0.8")
    return bar
