"""`oomdoc redact`: a copy that is fit to send away."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from oomdoc.cli import console, reading
from oomdoc.cli.options import Map, MaxMembers, MaxSize, Memory, Paths, Quiet, Timeout
from oomdoc.errors import EXIT_FOUND, EXIT_OK, BundleError, UsageError
from oomdoc.limits import limited

_NEVER_WRITTEN = frozenset({".rar", ".7z", ".cab", ".lz4", ".lzma"})


def redact(
    paths: Paths,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The copy: must not exist yet.", show_default=False)],
    redaction_map: Map = None,
    words: Annotated[
        list[str] | None,
        typer.Option(
            "--word", metavar="WORD", help="Replace this too, wherever it stands (repeatable): a project, a customer."
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Diagnose both and compare (default), or only copy.")
    ] = True,
    form: Annotated[str, typer.Option("--format", metavar="terminal|json", help="Form of the account.")] = "terminal",
    max_size: MaxSize = None,
    max_members: MaxMembers = None,
    timeout: Timeout = None,
    memory_limit: Memory = None,
    quiet: Quiet = False,
) -> int:
    """Write a copy that is fit to send away, with the same diagnosis.

    Prompts, completions, keys, tokens, names of users, hosts and tenants, mail, addresses and homes in paths become stand-ins:
    the same for the same name, made with a key that is not in the copy. So does every other word that is not known to be safe.
    Numbers, sizes, times, line numbers and the words of engines, drivers, kernels and clusters stay. A folder gives a folder,
    or an archive where OUT ends like one (.tar.gz, .tar.zst, .zip, ...); an archive gives the same kind of archive. What is no text is left out and named. The copy has a manifest,
    oomdoc-redaction.json: what was replaced, by kind and count. Keep the map of --map private: it translates back.

    \b
    Example:
      oomdoc redact bundle.tar.gz redacted.tar.gz
      oomdoc redact ./incident incident-redacted.tar.gz --map ~/fleet.map --word northwind

    \b
    Exit status: 0 the copy is written; 1 it is, but gives another diagnosis;
    2 wrong usage; 3 the input could not be read.
    """
    reading.form(form, ("terminal", "json"))
    from oomdoc.redact.run import Redaction
    from oomdoc.redact.run import redact as copy
    from oomdoc.report.redaction import render

    if out.suffix.lower() in _NEVER_WRITTEN:
        raise UsageError(
            f"{out} names an archive that is not written", "End it as the bundle does, or with .tar.gz or .zip"
        )
    inputs = reading.inputs(paths)
    progress = console.Progress(quiet)
    chosen = Redaction(
        redaction_map, tuple(words or ()), reading.limits(max_size, max_members), progress if progress.on else None
    )
    with limited(*reading.allowed(timeout, memory_limit)):
        try:
            manifest = copy(inputs, out, chosen)
        finally:
            progress.clear()
        differences = _compared(inputs, out, chosen.limits) if check and "-" not in inputs else None
    if form == "json":
        told = None if differences is None else not differences
        console.out(manifest.to_json(same_diagnosis=told, differences=list(differences or ())), utf8=True)
    else:
        console.out(
            render(str(out), manifest.members, manifest.replaced, manifest.renamed, manifest.left_out, differences)
        )
    return EXIT_FOUND if differences else EXIT_OK


def _compared(inputs: Sequence[str], out: Path, limits: Any) -> tuple[str, ...] | None:
    """What the diagnosis of the copy has otherwise; None where the original gives none."""
    from oomdoc import diagnose
    from oomdoc.redact.same import differences

    # by signs alone: what takes a name's place is another word, and says nothing of the evidence
    options = diagnose.Options(limits=limits, wording=False)
    try:
        with diagnose.analyze(inputs, options) as before, diagnose.analyze(out, options) as after:
            return differences(before.report, after.report)
    except BundleError:
        return None
