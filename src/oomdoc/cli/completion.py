"""Completion scripts for bash, zsh and fish, made from the tree of commands: nothing is started at a press of Tab.

`commands` maps the path of a command below `oomdoc` (empty for the program itself) to what may follow it: names of
commands and options, each with the first sentence of its help.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

SHELLS = ("bash", "zsh", "fish")


def script(
    shell: str,
    commands: Mapping[str, Mapping[str, str]],
    values: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> str:
    """The script for one of `SHELLS`; `values` are the words that may follow an option or be the argument of a command."""
    return _fish(commands, values) if shell == "fish" else _bash(commands, values, zsh=shell == "zsh")


def _bash(commands: Mapping[str, Mapping[str, str]], values: Mapping[str, Sequence[str]], zsh: bool) -> str:
    """Values of an option stand alone; those of a command stand beside its options."""
    options = "\n".join(
        f'    "{name}") COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$word")); return ;;'
        for name, words in values.items()
        if name.startswith("-")
    )
    own = "\n".join(
        f'    "{name}") words="$words {" ".join(words)}" ;;'
        for name, words in values.items()
        if not name.startswith("-")
    )
    groups = sorted({path.rpartition(" ")[0] for path in commands if " " in path})
    cases = "\n".join(f'    "{path}") words="{" ".join(told)}" ;;' for path, told in commands.items())
    inner = "|".join(groups) or "-"
    body = f"""\
_oomdoc() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" path="" words="" place
  for ((place = 1; place < COMP_CWORD; place++)); do
    case "$path" in
      ""|{inner}) case "${{COMP_WORDS[place]}}" in -*) ;; *) path="${{path:+$path }}${{COMP_WORDS[place]}}" ;; esac ;;
    esac
  done
  case "$path" in
{cases}
    *) words="{" ".join(commands.get("analyze", {}))}" ;;
  esac
  case "${{COMP_WORDS[COMP_CWORD-1]}}" in
{options}
  esac
  case "$path" in
{own}
  esac
  COMPREPLY=()
  case "$word" in -*) ;; *) [ -n "$path" ] && COMPREPLY=($(compgen -f -- "$word")) ;; esac
  COMPREPLY+=($(compgen -W "$words" -- "$word"))
}}
complete -o filenames -F _oomdoc oomdoc
"""
    return "#compdef oomdoc\nautoload -U +X bashcompinit && bashcompinit\n" + body if zsh else body


def _fish(commands: Mapping[str, Mapping[str, str]], values: Mapping[str, Sequence[str]]) -> str:
    lines = []
    for name, words in values.items():
        if not name.startswith("-"):
            when = " ; and ".join(f"__fish_seen_subcommand_from {word}" for word in name.split())
            lines.append(f"complete -c oomdoc -n '{when}' -f -a \"{' '.join(words)}\" -d '{name}'")
    for path, told in commands.items():
        seen = path.split()
        when = " ; and ".join(f"__fish_seen_subcommand_from {word}" for word in seen) or "__fish_use_subcommand"
        for word, says in told.items():
            said = says.replace("\\", "\\\\").replace("'", "\\'")
            if word in values and word.startswith("--"):
                entry = f'-l {word[2:]} -x -a "{" ".join(values[word])}"'
            elif word.startswith("--"):
                entry = f"-l {word[2:]}"
            elif word.startswith("-"):
                entry = f"-s {word[1:]}"
            else:
                entry = f"-a {word}"
            lines.append(f"complete -c oomdoc -n '{when}' {entry} -d '{said}'")
    return "\n".join(lines) + "\n"
