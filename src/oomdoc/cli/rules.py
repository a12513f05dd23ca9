"""`oomdoc explain` and `oomdoc rules`: what the rule set holds, its tests and its counts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oomdoc.cli import console, reading
from oomdoc.cli.options import Color, Quiet, RuleFolder
from oomdoc.errors import EXIT_FOUND, EXIT_OK, UsageError
from oomdoc.limits import MEMORY_BYTES, TIMEOUT_S, limited

if TYPE_CHECKING:
    from oomdoc.judge.rules import Rule


def explain(
    cause: Annotated[
        str,
        typer.Argument(
            metavar="CAUSE", help="A cause id, as reports and `oomdoc rules list` name it.", show_default=False
        ),
    ],
    rules: RuleFolder = None,
    color: Color = "auto",
) -> int:
    """Print a cause's page: meaning, evidence, actions, references.

    \b
    Example:
      oomdoc explain kv-demand-exceeds-pool
    """
    from oomdoc.report.page import render

    known = {rule.id: rule for rule in reading.rule_set(rules)[0]}
    if cause not in known:
        raise UsageError(f"no cause '{cause}'", console.nearest(cause, known, "`oomdoc rules list` names them all"))
    console.out(render(known[cause], width=console.width(), color=console.colored(color)))
    return EXIT_OK


def rules_list(rules: RuleFolder = None, color: Color = "auto") -> int:
    """List every cause by category with its prior and how much evidence it weighs.

    \b
    Example:
      oomdoc rules list
    """
    from oomdoc.report.page import table

    console.out(table(reading.rule_set(rules)[0], width=console.width(), color=console.colored(color)))
    return EXIT_OK


def rules_matrix(
    rules: RuleFolder = None,
    form: Annotated[str, typer.Option("--format", metavar="table|markdown|csv", help="How to print it.")] = "table",
    color: Color = "auto",
) -> int:
    """Print the root-cause matrix: causes by their strongest signs, what speaks against, what to do.

    \b
    Example:
      oomdoc rules matrix
      oomdoc rules matrix --format markdown > matrix.md
    """
    from oomdoc.report.page import MATRIX_FORMS, matrix

    reading.form(form, MATRIX_FORMS)
    console.out(matrix(reading.rule_set(rules)[0], form, width=console.width(), color=console.colored(color)))
    return EXIT_OK


def rules_new(
    cause: Annotated[str, typer.Argument(metavar="CAUSE", help="Id of the cause: words with hyphens.")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Your folder of rules.")] = Path("my-rules"),
    category: Annotated[str, typer.Option("--category", metavar="NAME", help="Row of the root-cause matrix.")] = "host",
) -> int:
    """Write a rule file to begin from: one piece of evidence, one action and a test that passes.

    \b
    Example:
      oomdoc rules new disk-full ./my-rules --category host
      oomdoc rules test ./my-rules
    """
    from oomdoc.judge.scaffold import new_rule

    path = new_rule(cause, category, folder)
    console.out(f"{path} written. Edit it, then: oomdoc rules test {folder}\n")
    return EXIT_OK


def rules_test(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="CAUSE|DIR|FILE",
            help="A cause's id, a folder of your rules or one of its files; else the built-in rules.",
            show_default=False,
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="The built-in rules as well as those of DIR.")] = False,
    quiet: Quiet = False,
) -> int:
    """Run the tests that rule files carry: of one cause, of your own rules, or of all built-in ones; exit status 1 when one fails.

    \b
    Example:
      oomdoc rules test kv-demand-exceeds-pool
      oomdoc rules test ./my-rules
      oomdoc rules test ./my-rules/host/disk-full.toml
      oomdoc rules test ./my-rules --all
    """
    from oomdoc.judge.rule_tests import run as run_tests
    from oomdoc.report.words import count, neutral

    chosen, faults = _chosen(what, everything)
    progress = console.Progress(quiet)

    def tell(rule: str, done: int, of: int) -> None:
        progress.draw(f"{rule}: test {done + 1} of {of}")

    with limited(TIMEOUT_S, MEMORY_BYTES):
        results = run_tests(chosen, tell if progress.on else None)
    progress.clear()
    failed = [result for result in results if not result[2]]
    for fault in faults:
        console.out(f"BROKEN {neutral(fault)}\n")
    for rule_id, name, _, detail in failed:
        console.out(f"FAILED {neutral(rule_id)}: {neutral(name)}\n")
        console.out("".join(f"    {neutral(line)}\n" for line in str(detail).splitlines()))
    done = f"{len(results) - len(failed)} passed, {len(failed)} failed" + (
        f", {count(len(faults), 'broken file')}" if faults else ""
    )
    console.out(f"{count(len(results), 'test')} of {count(len(chosen), 'rule')}: {done}\n")
    return EXIT_FOUND if failed or faults else EXIT_OK


def _chosen(what: str | None, everything: bool) -> tuple[list[Rule], list[str]]:
    """The rules that are to be tested, and the faults of broken files among them."""
    path = Path(what) if what is not None else None
    if path is None or path.is_dir():
        rules, faults = reading.rule_set(path, told=True)
        own = path.resolve() if path and not everything else None
        return [rule for rule in rules if own is None or own in rule.path.resolve().parents], faults
    if path.is_file():  # DIR/<category>/<cause-id>.toml
        rules, faults = reading.rule_set(path.resolve().parent.parent, told=True)
        chosen = [rule for rule in rules if everything or rule.path.resolve() == path.resolve()]
        return chosen, [fault for fault in faults if everything or path.name in fault]
    rules, _ = reading.rule_set(None, told=True)
    known = {rule.id: rule for rule in rules}
    if what not in known:
        raise UsageError(
            f"no cause and no rule folder '{what}'",
            console.nearest(
                str(what), known, "`oomdoc rules list` names the causes; a folder has <category>/<cause-id>.toml files"
            ),
        )
    return [known[str(what)]], []


def rules_count(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Folders of labelled bundles: each has a case.toml.")
    ],
    write: Annotated[bool, typer.Option("--write", help="Write the counted numbers into the rule files.")] = False,
    record: Annotated[
        bool, typer.Option("--record", help="Keep what is answered in each folder, as the first run of a round.")
    ] = False,
    first_runs: Annotated[
        bool, typer.Option("--first-runs", help="Count what was kept by --record; nothing is analysed.")
    ] = False,
    rules: RuleFolder = None,
    quiet: Quiet = False,
) -> int:
    """Count on labelled bundles how often each piece of evidence is found, and how good the ranking is.

    A labelled bundle is a folder with a case.toml that says cause = "..." (and perhaps also = [...]). Every
    figure leaves out the bundle that is judged, and of first runs its whole round. With --write the numbers go
    into the rule files; what people judged stays beside them and weighs as much as 60 bundles.

    Rules that were mended for a bundle prove nothing on it. A round of new bundles is labelled, run once with
    --record, and counted with --first-runs whatever is mended afterwards.

    \b
    Example:
      oomdoc rules count tests/cases sample_logs
      oomdoc rules count ~/incidents/2026-11 --record
      oomdoc rules count ~/incidents --first-runs --write
      oomdoc rules count ~/incidents --rules ./my-rules --write
    """
    from oomdoc.report import figures
    from oomdoc.sweep import counting

    chosen = reading.rule_set(rules)[0]
    progress = console.Progress(quiet)
    tell = (lambda name: progress(name, 0)) if progress.on else (lambda name: None)
    if record and first_runs:
        raise UsageError("--record and --first-runs exclude each other", "Record a round first, count it then")
    if record:
        counting.record(folders, chosen, rules, tell)
        first_runs = True
    cases, counted = counting.run(folders, chosen, rules, tell, first_runs)
    progress.clear()
    left_out = counting.left_out(cases, chosen)
    now = [counting.ranking(case, chosen) for case in cases]
    made = [counting.figures(cases, chosen, told) for told in (now, left_out)]
    console.out(figures.render(made[0], made[1], counting.best_sharpness(cases, chosen, left_out)))
    if write:
        for rule in counted:
            counting.write(rule)
    return EXIT_OK
