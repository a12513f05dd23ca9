"""What can go wrong, as one sentence for the person: what, where, and what to do now.

The bottom of the house: everything may import this, it imports nothing. `cli` alone catches these errors; anything
else that escapes is a bug and keeps its traceback. Bad *data* is no error: it becomes a row of the `problem` table.
"""

from __future__ import annotations

EXIT_OK = 0
EXIT_FOUND = 1  # only with --fail-on
EXIT_USAGE = 2
EXIT_INPUT = 3
EXIT_BUSY = 75  # EX_TEMPFAIL of sysexits.h: try again later
EXIT_INTERRUPTED = 130


class OomdocError(Exception):
    """A failure that a person can mend: `message` says what and where, `hint` what to do now."""

    exit_code = EXIT_INPUT

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}. {self.hint}" if self.hint else self.message


class BundleError(OomdocError):
    """The input could not be read, or held nothing that can be analysed."""


class UsageError(OomdocError):
    """The command was called wrongly."""

    exit_code = EXIT_USAGE


class BusyError(OomdocError):
    """Somebody else is at work on the same store: nothing was done, and later it can be."""

    exit_code = EXIT_BUSY


class DamagedError(BundleError):
    """A store of sweeps is not as it was written: nothing is built on it until it is mended."""


class RuleError(OomdocError):
    """A rule file is broken; the message begins with `path:line` where the line is known."""

    exit_code = EXIT_USAGE
