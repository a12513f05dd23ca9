"""Texts that oomdoc prints about itself and for others: collectors, versions, completion, schema."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from oomdoc.cli import console, reading
from oomdoc.cli.defaults import walk
from oomdoc.errors import EXIT_OK, UsageError


def collect(
    kubernetes: Annotated[
        bool, typer.Option("--kubernetes", help="Print a support-bundle spec of troubleshoot.sh instead of the script.")
    ] = False,
    namespace: Annotated[
        str, typer.Option("-n", "--namespace", metavar="NAME", help="Namespace of the server's pods.")
    ] = "default",
    selector: Annotated[
        str, typer.Option("-l", "--selector", metavar="LABELS", help="Labels of the server's pods.")
    ] = "app=vllm",
) -> int:
    """Print a collector whose archive `analyze` reads.

    A POSIX shell script for a host: devices in a loop, metrics, logs of containers, pods and files, kernel log, launch
    command, memory group, versions. It needs neither Python nor root, is bounded in time and size, says what it could not
    get, and leaves secrets of the environment behind. With --kubernetes a spec for `kubectl support-bundle`: pods and
    their previous logs, events, devices, metrics, and redactors. Read it before you run it; `sh collect.sh -h` lists its
    options.

    \b
    Example:
      oomdoc collect > collect.sh && sh collect.sh -d 600 -c vllm
      oomdoc collect > collect.sh && sh collect.sh -n serving -p vllm-0
      oomdoc collect --kubernetes -n serving -l app=vllm > oomdoc-support-bundle.yaml
    """
    from oomdoc import collect as texts

    console.out(texts.kubernetes(namespace, selector) if kubernetes else texts.shell(), utf8=True)
    return EXIT_OK


def version() -> int:
    """Print the versions: of oomdoc, of its rules, and of the engine releases it knows.

    \b
    Example:
      oomdoc version
    """
    import platform

    from oomdoc import __version__
    from oomdoc.judge.rules import rules_version
    from oomdoc.physics.defaults import NEWEST_READ, OLDEST_READ

    rules = reading.rule_set(None)[0]
    console.out(
        f"oomdoc  {__version__}\n"
        f"rules   {rules_version(rules)} ({len(rules)} causes)\n"
        f"engine  vLLM {OLDEST_READ} to {NEWEST_READ}\n"
        f"python  {platform.python_version()}\n"
    )
    return EXIT_OK


def completion(
    context: typer.Context,
    shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish", help="Your shell.", show_default=False)],
) -> int:
    """Print a script that completes commands and options in a shell.

    It is made from the commands of this version and edits nothing of yours: load it where your shell starts.

    \b
    Example:
      oomdoc completion bash > ~/.local/share/bash-completion/completions/oomdoc
      oomdoc completion zsh > ~/.zfunc/_oomdoc
      oomdoc completion fish > ~/.config/fish/completions/oomdoc.fish
    """
    from oomdoc.cli.completion import SHELLS, script

    if shell not in SHELLS:
        raise UsageError(f"no completion for '{shell}'", f"Choose {', '.join(SHELLS[:-1])} or {SHELLS[-1]}")
    told: dict[str, dict[str, str]] = {}
    for path, command in walk(context.find_root().command):
        inner = getattr(command, "commands", {})
        follows = {name: str(entry.help or "").strip().splitlines()[0] for name, entry in inner.items()}
        for param in command.params:
            if param.param_type_name == "option":
                follows.update(dict.fromkeys(param.opts, param.help or ""))
        told[path] = {**follows, "--help": "Show this message and exit."}
    console.out(script(shell, told, _values()), utf8=True)
    return EXIT_OK


def _values() -> dict[str, list[str]]:
    """What may follow an option, or be the argument of a command, as far as this version knows it by name."""
    from oomdoc.cli.prompt import known_tables
    from oomdoc.evidence.tables import TABLES
    from oomdoc.physics import catalogue, gpus
    from oomdoc.report import REPORTS
    from oomdoc.views import VIEWS

    causes = sorted(rule.id for rule in reading.rule_set(None)[0])
    made = {
        "explain": causes,
        "rules test": causes,
        "tables": sorted(known_tables(TABLES, VIEWS)),
        "--gpu": sorted({words[0] for _, words in gpus.gpus() if words}),
        "--model": sorted({model.name for model in catalogue.models()}),
        "--format": sorted(REPORTS),
        "--color": ["auto", "always", "never"],
        "--group-by": ["folder", "host", "pod"],
    }
    safe = re.compile(r"[\w.+/:-]+")  # a word that no shell takes apart
    return {name: [word for word in words if safe.fullmatch(word)] for name, words in made.items()}


def schema() -> int:
    """Print the JSON Schema of the report (draft 2020-12).

    It describes what `analyze --format json` writes, every field with its unit.

    \b
    Example:
      oomdoc schema > report.schema.json
    """
    from oomdoc.model.schema import text

    console.out(text(), utf8=True)
    return EXIT_OK
