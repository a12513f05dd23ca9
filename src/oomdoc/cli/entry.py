"""The commands together, and one run of one of them: the exit status of the contract, errors as sentences."""

from __future__ import annotations

import difflib
import functools
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from oomdoc.cli import (
    about,
    analyze,
    console,
    diff,
    doctor,
    fit,
    profile,
    redact,
    replay,
    rules,
    show,
    sql,
    sweep,
)
from oomdoc.cli.defaults import configured, default_map
from oomdoc.errors import EXIT_INTERRUPTED, EXIT_OK, OomdocError, UsageError
from oomdoc.faults import reason, told
from oomdoc.limits import Ended, watched

EXIT_BUG = 70  # EX_SOFTWARE of sysexits.h


def _version(wanted: bool) -> None:
    if wanted:
        from oomdoc import __version__

        console.out(f"oomdoc {__version__}\n")
        raise typer.Exit


def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Take defaults of options from FILE, not from oomdoc.toml here and in ~/.config."
        ),
    ] = None,
    no_config: Annotated[bool, typer.Option("--no-config", help="Take defaults from no file.")] = False,
) -> None:
    """Says why an LLM server (vLLM) ran out of memory.

    Ranked causes, the lines that prove them, and the flags that would have prevented it. It reads a support bundle (logs,
    request logs, nvidia-smi, Kubernetes and kernel output in any archive or folder),
    needs no network and no GPU, and changes nothing. A bare `oomdoc PATH` is `oomdoc analyze PATH`.

    \b
    Example:
      oomdoc bundle.tar.gz
      oomdoc show bundle.tar.gz pods/vllm-0/vllm.log:812
      oomdoc explain kv-demand-exceeds-pool

    Defaults of options can be set: in oomdoc.toml of the working folder or of ~/.config/oomdoc (top = 5, or gpu = "H100"
    under [fit]), and as OOMDOC_TOP or OOMDOC_FIT_GPU. The command line wins over variables, these over files.

    \b
    Exit status:
      0    the analysis was made, whatever it found
      1    with --fail-on P, a cause other than `healthy` reached P;
           with `rules test`, a test failed; with `doctor`, a check
      2    wrong usage
      3    the input could not be read or has nothing that can be analysed
      70   a bug in oomdoc; the traceback says where
      75   `sweep`: another sweep is at work on the store
      130  interrupted
    """


def _app() -> typer.Typer:
    """`oomdoc` without a command."""
    made = typer.Typer(
        name="oomdoc",
        rich_markup_mode=None,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    made.callback()(root)
    return made


app = _app()


rules_app = typer.Typer(
    rich_markup_mode=None,
    help="""List, test, write and count the rule set: one cause per file.

    \b
    Example:
      oomdoc rules list
      oomdoc rules new disk-full ./my-rules
      oomdoc rules test ./my-rules
    """,
)

rules_app.command("list")(rules.rules_list)
rules_app.command("matrix")(rules.rules_matrix)
rules_app.command("new")(rules.rules_new)
rules_app.command("test")(rules.rules_test)
rules_app.command("count")(rules.rules_count)

_COMMANDS = (  # in the order in which `--help` lists them
    analyze.analyze,
    doctor.doctor,
    profile.profile,
    replay.replay,
    fit.fit,
    diff.diff,
    sweep.sweep,
    sql.sql,
    sql.tables,
    show.show,
    rules.explain,
    about.collect,
    redact.redact,
    about.version,
    about.completion,
    about.schema,
)
for command in _COMMANDS:
    app.command()(command)
app.add_typer(rules_app, name="rules")
_NAMES = [*(command.__name__ for command in _COMMANDS), "rules"]


@functools.cache
def _every() -> Any:
    return typer.main.get_command(app)


@functools.cache
def _built(name: str) -> Any:
    """The commands ready to run, once in a process; where one is asked for that alone: to build all is a thirtieth of a small run."""
    asked = [command for command in _COMMANDS if command.__name__ == name and command is not about.completion]  # of all
    if not asked:
        return _every()
    alone = _app()
    alone.command()(asked[0])
    return typer.main.get_command(alone)


def run(argv: list[str]) -> int:
    """Run one command; the exit status of the contract. Errors for people become one sentence on standard error."""
    usage_error: type[Exception] = typer.BadParameter.__mro__[2]  # ClickException, wherever this typer keeps it
    try:
        if not argv:
            if sys.stderr is not None:
                root = _every()
                sys.stderr.write(root.get_help(root.make_context("oomdoc", [], resilient_parsing=True)) + "\n")
            return UsageError.exit_code
        _there()
        argv, environment = configured(argv)
        chosen = default_map(_every, environment)
        argv = _with_command(argv, _NAMES)
        with watched():
            status = _built(argv[0]).main(args=argv, prog_name="oomdoc", standalone_mode=False, default_map=chosen)
        if status == EXIT_INTERRUPTED:
            raise KeyboardInterrupt
        return int(status or EXIT_OK)
    except OomdocError as problem:
        console.say(str(problem))
        return problem.exit_code
    except usage_error as problem:
        console.say(_usage_sentence(problem))
        return UsageError.exit_code
    except Ended as end:
        console.say(end.says)
        return end.status
    except (KeyboardInterrupt, typer.Abort):
        console.say("interrupted")
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # a help text whose reader left
        return EXIT_OK
    except Exception as problem:  # not 1, which means that --fail-on found something
        refused = told(problem)
        if refused is not None:
            console.say(str(refused))
            return refused.exit_code
        import traceback

        traceback.print_exc()
        console.say("this is a bug. Please report it with the lines above")
        return EXIT_BUG
    finally:
        console.settle()


def _there() -> None:
    """Refuse a working folder that somebody deleted: no relative path means anything in it."""
    try:
        os.getcwd()  # noqa: PTH109 - the question itself
    except OSError as problem:
        raise OomdocError(f"the working folder cannot be used: {reason(problem)}", "Go to one that is there") from None


def _with_command(argv: list[str], commands: list[str]) -> list[str]:
    """A bare `oomdoc PATH` means `oomdoc analyze PATH`; a mistyped command is named, not looked for as a file."""
    first = argv[0]
    if first in commands or first in ("-h", "--help", "--version"):
        return argv
    near = difflib.get_close_matches(first, commands, 1, 0.7)
    if near and not Path(first).exists():
        raise UsageError(f"'{first}' is neither a command nor a file here", f"Did you mean `oomdoc {near[0]}`?")
    return ["analyze", *argv]


def _usage_sentence(problem: Exception) -> str:
    said = problem.format_message() if hasattr(problem, "format_message") else str(problem)
    context = getattr(problem, "ctx", None)
    path = context.command_path if context else "oomdoc"
    said = said.strip().rstrip(".")
    return f"{said[:1].lower()}{said[1:]}{'' if said.endswith('?') else '.'} `{path} --help` says more"
