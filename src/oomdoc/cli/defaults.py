"""Defaults of options out of files and variables, put where the commands look for theirs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from oomdoc.errors import UsageError


def configured(argv: list[str]) -> tuple[list[str], dict[str, str]]:
    """The arguments without `--config FILE` and `--no-config` in front, and the environment as they make it."""
    environment = dict(os.environ)
    rest = list(argv)
    while rest and (rest[0] in ("--config", "--no-config") or rest[0].startswith("--config=")):
        word = rest.pop(0)
        if word == "--config" and not rest:
            raise UsageError("--config needs a file", "Write --config FILE before the command")
        environment["OOMDOC_CONFIG"] = "" if word == "--no-config" else word.partition("=")[2] or rest.pop(0)
    return rest or ["--help"], environment


def default_map(every: Callable[[], Any], environment: dict[str, str]) -> dict[str, Any]:
    """What files and variables set, in the form in which commands take their defaults; empty where nothing is set.

    `every` builds all commands: not before something is set.
    """
    from oomdoc.cli import config

    paths = config.files(environment, Path.cwd())
    if not paths and not any(name.startswith("OOMDOC_") and name not in config.OTHER_VARIABLES for name in environment):
        return {}
    root = every()
    options = {path: _options(command) for path, command in walk(root) if path}
    found = config.defaults(options, environment, paths)
    made: dict[str, Any] = {}
    context = root.make_context("oomdoc", [], resilient_parsing=True)
    for path, values in found.items():
        place = made
        for word in path.split():
            place = place.setdefault(word, {})
        for name, (value, where) in values.items():
            option = options[path][name]
            try:
                if isinstance(value, bool) and not option.is_flag:
                    raise ValueError
                option.process_value(context, [value] if option.multiple else value)
            except Exception:
                raise UsageError(f"{where} = {value!r} does not fit --{name}", option.help or "") from None
            place[option.name] = [value] if option.multiple else value
    return made


def walk(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every command by its path below `oomdoc`."""
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from walk(inner, f"{path} {name}".strip())


def _options(command: Any) -> dict[str, Any]:
    """Options of a command by their long name without the hyphens."""
    return {
        max(param.opts, key=len).lstrip("-"): param for param in command.params if param.param_type_name == "option"
    }
