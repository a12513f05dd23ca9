"""What a person named: files, named pipes and standard input, opened without following or waiting for what nobody meant."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from oomdoc.errors import BundleError
from oomdoc.intake.members import Place, safe_path
from oomdoc.intake.streams import reason

STDIN = Path("-")


class Given(NamedTuple):
    """A file to open: its path (None is standard input), and whether it was found in a folder."""

    path: Path | None
    place: Place
    found: bool

    def open(self) -> contextlib.AbstractContextManager[BinaryIO]:
        """The file, for reading; OSError where it cannot be opened, or is no file any more."""
        if self.path is None:
            # without its buffer, whose lock a reader that waits for a pipe would hold when the program ends
            return contextlib.nullcontext(cast(BinaryIO, getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)))
        if not self.found:
            return _pipe(self.path) if self.path.is_fifo() else self.path.open("rb", buffering=0)
        # since it was listed, a file may have become a link or a pipe: neither follow the one nor wait for the other
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        raw = open(os.open(self.path, flags), "rb", buffering=0)  # noqa: PTH123, SIM115 - a descriptor, closed by `with`
        if not is_regular(raw):
            raw.close()
            raise OSError("it is no regular file any more")
        return raw


WRITER_S = 10.0  # a script may open its end after ours; nobody who comes later is waited for


def _pipe(path: Path) -> BinaryIO:
    """A named pipe opened for reading once somebody writes into it; OSError where nobody does."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # without it, opening waits for a writer for ever
    until = time.monotonic() + WRITER_S
    first = b""
    try:
        while not first and time.monotonic() < until:
            try:
                first = os.read(number, 1)
            except BlockingIOError:  # somebody is there who has written nothing yet
                break
            if not first:
                time.sleep(0.02)
        else:
            if not first:
                raise OSError(f"nobody wrote into the pipe within {WRITER_S:.0f} s")
        os.set_blocking(number, True)
    except BaseException:
        os.close(number)
        raise
    return cast(BinaryIO, _Begun(open(number, "rb", buffering=0), first))  # noqa: PTH123 - closed by `with`


class _Begun(contextlib.AbstractContextManager["_Begun"]):
    """A file of which the first bytes were read already."""

    def __init__(self, raw: BinaryIO, first: bytes) -> None:
        self._raw, self._first = raw, first

    def read(self, size: int = -1) -> bytes:
        first, self._first = self._first, b""
        return first or self._raw.read(size)

    def fileno(self) -> int:
        return self._raw.fileno()

    def __exit__(self, *_: object) -> None:
        self._raw.close()


def is_regular(raw: BinaryIO) -> bool:
    """Whether an open file is one on a disk."""
    try:
        return stat.S_ISREG(os.fstat(raw.fileno()).st_mode)
    except (OSError, ValueError):  # an object without descriptor in place of standard input
        return False


def check_path(path: Path) -> None:
    """Refuse a path that cannot be opened, before anything is read."""
    if path == STDIN:
        if getattr(sys.stdin, "buffer", None) is None:
            raise BundleError("standard input is closed", "Pipe the bundle in, or name a file instead of -")
        return
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
        if kind == stat.S_IFDIR:
            os.scandir(path).close()
        elif kind == stat.S_IFREG:
            path.open("rb").close()
    except (FileNotFoundError, NotADirectoryError):
        if re.match(r"https?:/", str(path)):
            address = re.sub(r"(?<=:)/+", "//", str(path), count=1)
            raise BundleError(
                f"{address} is an address, and nothing is read over a network",
                "Pipe it in: curl -s ADDRESS | oomdoc COMMAND -",
            ) from None
        raise BundleError(f"{path} does not exist", "Check the path") from None
    except (OSError, ValueError) as problem:
        raise BundleError(f"{path} cannot be read: {reason(problem)}", "Check the path and its permissions") from None
    if kind not in (stat.S_IFDIR, stat.S_IFREG, stat.S_IFIFO):
        raise BundleError(f"{path} is a device or a socket", "Name a folder, an archive or a file")


def shortest_tails(paths: Sequence[Path]) -> list[str]:
    """For each path the shortest tail that tells it from the others: `vllm.log`, or `node1/vllm.log`."""
    whole = [
        ("stdin",) if path == STDIN else (path.resolve() if path.name in ("", "..") else path.absolute()).parts
        for path in paths
    ]
    tails = []
    for index, parts in enumerate(whole):
        others = [other for at, other in enumerate(whole) if at != index]
        count = 1
        while count < len(parts) and any(other[-count:] == parts[-count:] for other in others):
            count += 1
        tails.append(safe_path("/".join(parts[-count:])))
    return tails
