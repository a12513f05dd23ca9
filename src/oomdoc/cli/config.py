"""Defaults of options that a person sets once: `oomdoc.toml` and variables `OOMDOC_...`.

    top = 5                      # every command that has the option
    color = "never"
    [fit]                        # one command; rules has tables of its own, [rules.list]
    gpu = "H100"

What stands on the command line wins, then OOMDOC_FIT_GPU, OOMDOC_GPU, `oomdoc.toml` in the working folder, the same in
the user's configuration folder. Options that say what is read, where is written or how a script is answered cannot be set.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from oomdoc.errors import UsageError

NAME = "oomdoc.toml"
MOST_BYTES = 1 << 20
NEVER = frozenset(
    (
        "output",
        "db",
        "fail-on",
        "since",
        "until",
        "write",
        "set",
        "from",
        "help",
        "version",
        "config",
        "no-config",
        "solve",
        "buckets",
    )
)
"""Options that no configuration sets."""
OTHER_VARIABLES = frozenset(
    (
        "OOMDOC_CONFIG",
        "OOMDOC_UPDATE",
        "OOMDOC_FUZZ",
        "OOMDOC_METAMORPHIC",
        "OOMDOC_WHOLE",
        "OOMDOC_PLANTED",
        "OOMDOC_KILLS",
    )
)
"""Variables of that form which are no defaults: the file to read, and three of this project's own tests."""


class Default(NamedTuple):
    """A value and where it was set: `oomdoc.toml: fit.gpu`, `OOMDOC_GPU`."""

    value: Any
    place: str


def files(environment: Mapping[str, str], folder: Path) -> list[Path]:
    """Configuration files that are there, the weakest first. `OOMDOC_CONFIG` names one that replaces both; empty = none."""
    chosen = environment.get("OOMDOC_CONFIG")
    if chosen is not None:
        if chosen and not Path(chosen).is_file():
            raise UsageError(
                f"OOMDOC_CONFIG names {chosen}, and there is no such file", "Correct it, or leave it empty"
            )
        return [Path(chosen)] if chosen else []
    home, base = environment.get("HOME"), environment.get("XDG_CONFIG_HOME")
    user = Path(base) if base else Path(home) / ".config" if home else None
    places = ([user / "oomdoc" / NAME] if user else []) + [folder / NAME]
    return [path for path in places if path.is_file()]


def defaults(
    commands: Mapping[str, Iterable[str]], environment: Mapping[str, str], paths: Iterable[Path]
) -> dict[str, dict[str, Default]]:
    """Per command (`analyze`, `rules list`) the options with a default, by their long names without hyphens in front.

    `commands` says which options each has. UsageError, with the file and the nearest valid name, for what nobody knows.
    """
    settable = {path: frozenset(options) - NEVER for path, options in commands.items()}
    told: dict[str, dict[str, Default]] = {path: {} for path in settable}
    for path in paths:
        _file(told, settable, path)
    _variables(told, settable, environment)
    return {path: options for path, options in told.items() if options}


def _file(told: dict[str, dict[str, Default]], settable: Mapping[str, frozenset[str]], path: Path) -> None:
    import tomllib

    try:
        if path.stat().st_size > MOST_BYTES:
            raise UsageError(f"{path} is larger than 1 MiB", "A configuration holds some lines")
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as problem:
        raise UsageError(
            f"{path} cannot be read: {' '.join(str(problem).split())}", "It is TOML: name = value"
        ) from None
    tables = dict(_tables(document, ""))
    for command in tables:
        if command and not any(known == command or known.startswith(f"{command} ") for known in settable):
            raise UsageError(f"{path}: no command '{command}'", _near(command, settable))
    for command, values in sorted(tables.items()):  # a general setting first, so that a command's own one wins
        scope = [command] if command else list(settable)
        for raw, value in values.items():
            option = raw.replace("_", "-")
            having = [name for name in scope if option in settable.get(name, ())]
            place = f"{path}: {command.replace(' ', '.') + '.' if command else ''}{raw}"
            if not having:
                known = settable.get(command, frozenset()) if command else frozenset().union(*settable.values())
                raise UsageError(f"{place} is no option that can be set", _near(option, known))
            if isinstance(value, (dict, list)) or not isinstance(value, (str, int, float, bool)):
                raise UsageError(f"{place} is no single value", "Write a text, a number, true or false")
            if option == "rules" and isinstance(value, str):  # where the file lies, not where one stands
                value = str(path.parent / Path(value).expanduser())
            for name in having:
                told[name][option] = Default(value, place)


def _tables(table: Mapping[str, Any], path: str) -> Iterable[tuple[str, dict[str, Any]]]:
    yield path, {name: value for name, value in table.items() if not isinstance(value, dict)}
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _tables(value, f"{path} {name}".strip())


def _variables(
    told: dict[str, dict[str, Default]], settable: Mapping[str, frozenset[str]], environment: Mapping[str, str]
) -> None:
    general = {_variable(option): option for options in settable.values() for option in options}
    own = {
        _variable(f"{command} {option}"): (command, option)
        for command, options in settable.items()
        for option in options
    }
    for variable in sorted(environment):
        if variable in general:
            for command, options in settable.items():
                if general[variable] in options:
                    told[command][general[variable]] = Default(environment[variable], variable)
        elif variable.startswith("OOMDOC_") and variable not in own and variable not in OTHER_VARIABLES:
            raise UsageError(f"{variable} is no setting", _near(variable, [*general, *own]))
    for variable, (command, option) in own.items():  # after the general ones
        if variable in environment and variable not in general:
            told[command][option] = Default(environment[variable], variable)


def _variable(name: str) -> str:
    return "OOMDOC_" + name.replace("-", "_").replace(" ", "_").upper()


def _near(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), 1, 0.5)
    return f"Did you mean {near[0]}?" if near else "`oomdoc COMMAND --help` lists the options"
