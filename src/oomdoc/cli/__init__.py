"""The command line: arguments in, one call, one report out, and the exit status of the contract; nothing else.

A module a command, named for it; `entry` puts them together and runs one. Everything heavy is imported inside the command
that needs it, so that `--help` costs a few hundredths of a second. Standard output is the result and standard error is
progress, notes and warnings.
"""

from oomdoc.cli.entry import app, run

__all__ = ["app", "run"]
