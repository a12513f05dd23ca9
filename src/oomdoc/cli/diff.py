"""`oomdoc diff`: two bundles or reports, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from oomdoc.cli import console, reading
from oomdoc.cli.options import Color, Quiet, RuleFolder, Types, Zone
from oomdoc.errors import EXIT_OK, UsageError

REPORT_BYTES = 64 << 20  # a report is far smaller; larger files are bundles


def diff(
    old: Annotated[
        str,
        typer.Argument(
            metavar="OLD", help="Bundle, or a report that `analyze -o report.json` wrote.", show_default=False
        ),
    ],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The same, later or otherwise set.", show_default=False)],
    form: Annotated[
        str,
        typer.Option("--format", metavar="terminal|json|markdown|html", help="Form of what goes to standard output."),
    ] = "terminal",
    outputs: Annotated[
        list[str] | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write to FILE, .txt, .json, .md or .html, instead (repeatable)."
        ),
    ] = None,
    rules: RuleFolder = None,
    types: Types = None,
    tz: Zone = None,
    color: Color = "auto",
    quiet: Quiet = False,
) -> int:
    """Tell what changed between two bundles, and which change explains the failure.

    Versions, model, flags, where the memory is, traffic and verdict, side by side. Changes come in the order in which the
    leading cause's evidence and advice speak of them; a change that went the other way explains nothing. What a bundle
    does not state is shown as not stated. Bundles and JSON reports can be mixed.

    \b
    Example:
      oomdoc diff monday.tar.gz tuesday.tar.gz
      oomdoc diff good-report.json bundle.tar.gz -o diff.md -o diff.html
    """
    from oomdoc.report import SUFFIXES

    reading.form(form, ("terminal", "json", "markdown", "html"))
    plan = [(form, "-")] if not outputs else [reading.target(name, form, SUFFIXES) for name in outputs]
    reading.spare_inputs([old, new], [name for _, name in plan])
    colored = console.colored(color)
    if old == new == "-":
        raise UsageError("OLD and NEW are both standard input", "Give one of them as a file")
    from oomdoc.report.compare import compare

    told = compare(*(_report_of(path, quiet, types, tz, rules) for path in (old, new)))
    from oomdoc.report import diff as page

    for name, target in plan:
        if target == "-":
            console.out(page.FORMS[name](told, width=console.width(), color=colored), utf8=name != "terminal")
        else:
            console.write(target, page.FORMS[name](told, width=console.PIPE_WIDTH, color=False))
            console.note(f"wrote {target}", quiet)
    return EXIT_OK


def _report_of(path: str, quiet: bool, types: Sequence[str] | None, tz: str | None, rules: Path | None) -> Any:
    """The JSON object of a report: read where the file is one, else made from the bundle."""
    from oomdoc.report.compare import check

    if path != "-" and Path(path).is_file() and Path(path).stat().st_size <= REPORT_BYTES:
        raw = Path(path).read_bytes()
        if raw.lstrip()[:1] == b"{":
            import json

            try:
                found = json.loads(raw)
            except (ValueError, RecursionError):
                found = None  # a log of JSON lines, perhaps: the analysis tells
            if isinstance(found, dict) and "schema_version" in found and "diagnoses" in found:
                return check(found, path)
    with reading.analysis([path], quiet, types, None, None, tz, rules=rules) as analysis:
        return analysis.report.to_dict()
