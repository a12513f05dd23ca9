"""What a person sees: results on standard output, notes and progress on standard error, files that `-o` names."""

from __future__ import annotations

import contextlib
import difflib
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from oomdoc.errors import OomdocError, UsageError
from oomdoc.faults import unwritable

PIPE_WIDTH = 100  # columns where no terminal says
PROGRESS_AFTER_S = 1.0
PROGRESS_EVERY_S = 0.1
SWEEP_LOG_EVERY_S = 30.0  # where standard error is a file or a journal


def out(text: str, utf8: bool = False) -> None:
    """Write to standard output in its encoding, or as UTF-8 what machines read; a reader that left is no error."""
    if sys.stdout is None:
        raise OomdocError("standard output is closed", "Leave it open, or write to a file with -o")
    try:
        raw = getattr(sys.stdout, "buffer", None)
        if raw is None:
            sys.stdout.write(text)
        else:
            encoding = "utf-8" if utf8 else sys.stdout.encoding or "utf-8"
            sys.stdout.flush()
            raw.write(text.encode(encoding, "replace"))
        sys.stdout.flush()
    except BrokenPipeError:
        settle()
    except OSError as problem:
        settle()
        raise unwritable(problem, "to standard output") from None


def settle() -> None:
    """Empty both streams; what one of them cannot take goes nowhere, then and at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)
                stream.flush()


def note(sentence: str, quiet: bool) -> None:
    """One sentence on standard error, unless `--quiet`."""
    if not quiet:
        say(sentence)


def say(sentence: str) -> None:
    """One sentence on standard error, whatever was asked for: errors and warnings of rule files. None hears it where that is closed."""
    from oomdoc.report.words import neutral

    if sys.stderr is None:
        return
    encoding = sys.stderr.encoding or "utf-8"
    with contextlib.suppress(OSError):  # a full disk under a log is no reason to give no result
        sys.stderr.write(f"oomdoc: {neutral(sentence)}\n".encode(encoding, "replace").decode(encoding))
        sys.stderr.flush()


def write(name: str, text: str, private: bool = True) -> None:
    """Write a report to a file as UTF-8, all of it or nothing; for its owner alone where it quotes a bundle.

    Raises UsageError for a name that cannot be written, OomdocError where there is no room.
    """
    try:
        with beside(name, private) as target:
            target.write_bytes(text.encode("utf-8"))
    except OSError as problem:
        raise unwritable(problem, name) from None


@contextlib.contextmanager
def beside(name: str, private: bool = True) -> Iterator[Path]:
    """A path to write to, which takes the name's place when all is written; what is no plain file is written to itself."""
    place = Path(os.path.realpath(name))  # a link stays, and what it names is replaced
    if place.exists() and not place.is_file():
        yield place
        return
    made = place.with_name(f".oomdoc-{os.urandom(8).hex()}")
    rights = 0o600 if private else 0o666
    try:
        os.close(os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY, rights))
    except PermissionError:
        if not place.exists():
            raise
        yield place  # one may write to the file and not into its folder
        return
    try:
        yield made
        if private:
            made.chmod(rights)  # a library may have made it anew
        made.replace(place)
    finally:
        made.unlink(missing_ok=True)


def width() -> int:
    """Columns of the terminal, or of a page where there is none."""
    return shutil.get_terminal_size((PIPE_WIDTH, 24)).columns


def colored(choice: str) -> bool:
    """`--color` before NO_COLOR before FORCE_COLOR before whether a terminal reads."""
    if choice not in ("auto", "always", "never"):
        raise UsageError(f"--color {choice} is unknown", "Choose auto, always or never")
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return sys.stdout is not None and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def nearest(name: str, known: Iterable[str], otherwise: str) -> str:
    """What to do about a name that is not known: the nearest ones, or else what `otherwise` says."""
    near = difflib.get_close_matches(name, list(known), 3, 0.5)
    return (
        f"Did you mean {' or '.join(f'`{item}`' for item in near)}?" if near else otherwise[:1].upper() + otherwise[1:]
    )


class _Line:
    """A line on standard error that is overwritten as work goes on."""

    def __init__(self, quiet: bool) -> None:
        self.on = not quiet and sys.stderr is not None
        self.on_terminal = self.on and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._drawn = False

    def draw(self, text: str) -> None:
        """Put a text where the last one stood."""
        sys.stderr.write(f"\r{text}\x1b[K")
        sys.stderr.flush()
        self._drawn = True

    def clear(self) -> None:
        """Take the line away."""
        if self._drawn:
            self.draw("")
            self._drawn = False


class Progress(_Line):
    """What is being read and how much was: only for a terminal, only when it takes long."""

    def __init__(self, quiet: bool) -> None:
        super().__init__(quiet)
        self.on = self.on_terminal
        self._next = time.monotonic() + PROGRESS_AFTER_S

    def __call__(self, path: str, read_bytes: int) -> None:
        """A source was gone on with; `read_bytes` of all sources so far."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + PROGRESS_EVERY_S
        from oomdoc.report.words import neutral
        from oomdoc.units import show_bytes

        size = show_bytes(read_bytes)
        room = max(shutil.get_terminal_size().columns - len(size) - 12, 10)
        name = neutral(path)
        self.draw(f"reading {name if len(name) <= room else '…' + name[1 - room :]}  {size}")


class SweepProgress(_Line):
    """Bundles done, errors, rate and time left: drawn on a terminal, printed every half minute in a log."""

    def __init__(self, quiet: bool) -> None:
        super().__init__(quiet)
        self._begun = time.monotonic()
        self._next = self._begun + (PROGRESS_AFTER_S if self.on_terminal else SWEEP_LOG_EVERY_S)

    def __call__(self, done: int, of: int, errors: int) -> None:
        """`done` of `of` bundles are done, `errors` of them could not be read."""
        now = time.monotonic()
        if not self.on or now < self._next:
            return
        from oomdoc.units import show_seconds

        rate = done / (now - self._begun)
        told = f"{done:,} of {of:,} bundles, {rate:.1f}/s, {show_seconds((of - done) / rate)} left"
        told += f", {errors:,} could not be read" if errors else ""
        if self.on_terminal:
            self._next = now + PROGRESS_EVERY_S
            self.draw(told[: shutil.get_terminal_size().columns - 1])
        else:
            self._next = now + SWEEP_LOG_EVERY_S
            say(told)
