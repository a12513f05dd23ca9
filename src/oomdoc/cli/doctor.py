"""`oomdoc doctor`: pass, warn or fail."""

from __future__ import annotations

from typing import Annotated

import typer

from oomdoc.cli import console, reading
from oomdoc.cli.options import Color, Memory, Paths, Quiet, Timeout, Types
from oomdoc.errors import EXIT_FOUND, EXIT_OK


def doctor(
    paths: Paths,
    form: Annotated[str, typer.Option("--format", metavar="terminal|json", help="Form of the checks.")] = "terminal",
    types: Types = None,
    timeout: Timeout = None,
    memory_limit: Memory = None,
    color: Color = "auto",
    quiet: Quiet = False,
) -> int:
    """Check a server or a bundle: pass, warn or fail for each thing that it shows.

    A live server is checked through its metrics: pipe them in, twice some minutes apart in a folder say more than once. The
    thresholds are those of the alerts in docs/monitoring. What is not there has no check. Exit status 1 when one fails.

    \b
    Example:
      curl -s http://127.0.0.1:8000/metrics | oomdoc doctor -
      oomdoc doctor bundle.tar.gz
      oomdoc doctor bundle.tar.gz --format json
    """
    from oomdoc.report import doctor as forms

    reading.form(form, ("terminal", "json"))
    colored = console.colored(color)
    with reading.analysis(
        paths, quiet, types, None, None, None, timeout=timeout, memory_limit=memory_limit
    ) as analysis:
        report = analysis.report
    if form == "json":
        console.out(forms.render_json(report), utf8=True)
    else:
        console.out(forms.render(report, width=console.width(), color=colored))
    return EXIT_FOUND if any(check.state == "fail" for check in forms.checks(report)) else EXIT_OK
