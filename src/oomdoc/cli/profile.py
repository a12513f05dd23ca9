"""`oomdoc profile`: the traffic of a bundle."""

from __future__ import annotations

from typing import Annotated

import typer

from oomdoc.cli import console, reading
from oomdoc.cli.options import Color, Memory, Paths, Quiet, Since, Timeout, Types, Until, Zone
from oomdoc.errors import EXIT_OK, BundleError, UsageError


def profile(
    paths: Paths,
    form: Annotated[str, typer.Option("--format", metavar="terminal|json", help="Form of the profile.")] = "terminal",
    buckets: Annotated[
        str | None,
        typer.Option(metavar="N,N,N", help="Tokens at which the buckets M, L and XL begin; 512,2048,8192 else."),
    ] = None,
    types: Types = None,
    since: Since = None,
    until: Until = None,
    tz: Zone = None,
    timeout: Timeout = None,
    memory_limit: Memory = None,
    color: Color = "auto",
    quiet: Quiet = False,
) -> int:
    """Show the traffic: sizes, rates, surges, before and during.

    Requests are bucketed S, M, L, XL by tokens; arrivals and tokens in flight are drawn over time; surges of five minutes
    are compared with the average, the minutes of the incident against the time before. Tenants, models and the requests
    that weighed most are named where the log names them.

    \b
    Example:
      oomdoc profile requests.jsonl --buckets 1000,4000,16000
      oomdoc profile bundle.tar.gz --since 2026-11-20T18:00 --until 2026-11-20T21:00
    """
    reading.form(form, ("terminal", "json"))
    colored = console.colored(color)
    bounds = None if buckets is None else _bounds(buckets)
    with reading.analysis(
        paths, quiet, types, since, until, tz, timeout=timeout, memory_limit=memory_limit
    ) as analysis:
        report = analysis.report
        if bounds is not None and report.traffic:
            import dataclasses

            report = dataclasses.replace(report, traffic=analysis.traffic(bounds))
    if not report.traffic.get("requests"):
        raise BundleError(
            f"no requests with token counts in {report.bundle.name}",
            "Add a request log: JSON lines, CSV or key=value with prompt and output tokens",
        )
    if form == "json":
        from oomdoc.report.json import dump

        plain = report.to_dict()
        console.out(
            dump({key: plain[key] for key in ("schema_version", "oomdoc_version", "bundle", "traffic")}), utf8=True
        )
    else:
        from oomdoc.report.profile import render

        console.out(render(report, width=console.width(), color=colored))
    return EXIT_OK


def _bounds(text: str) -> list[int]:
    """The three token counts of `--buckets`, rising."""
    parts = [part.strip() for part in text.split(",")]
    bounds = [int(part) for part in parts if part.isdecimal() and part.isascii()]
    if len(parts) != 3 or len(bounds) != 3 or not 0 < bounds[0] < bounds[1] < bounds[2] < 2**31:
        raise UsageError(f"--buckets {text} is not three rising token counts", "Write 512,2048,8192")
    return bounds
