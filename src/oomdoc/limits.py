"""What a run may cost, and that nothing of it stays: time, memory, and the signals that end it.

The limits are set by the command line only; a program that imports oomdoc sets its own. `Ended` passes every `except Exception`, so
that what was opened is closed and removed on the way out, as it is for an interrupt.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from oomdoc.errors import EXIT_INPUT
from oomdoc.faults import out_of_memory
from oomdoc.units import GIB, MIB, show_bytes

TIMEOUT_S = 3600.0  # the largest bundle that the intake reads, 64 GiB, takes a third of it
MEMORY_BYTES = 4 * GIB  # a run needs 0.3 GiB of it, whatever the size of the bundle (docs/performance.md)
LEAST_BYTES = 256 * MIB
"""Below it a run of the smallest bundle (0.2 GiB) fails, and now and then a library in C ends the process without a word."""
LEAST_ADDRESSES = GIB
"""Of address space (`ulimit -v`): the smallest bundle takes 0.9 GiB, for the most part of arenas and stacks that stay empty."""
GRACE_S = 10.0  # to close and remove everything in order, before the process ends in any case
_scratch: set[str] = set()


@contextmanager
def scratch_folder(within: Path | None = None) -> Iterator[Path]:
    """A folder that only its owner can enter (mode 0700, a name nobody can foretell), removed at the end however that comes.

    It lies in the temporary folder, or in `within` where what is made there is to stay.
    """
    prefix = "oomdoc-" if within is None else ".oomdoc-"
    with tempfile.TemporaryDirectory(prefix=prefix, dir=within, ignore_cleanup_errors=True) as folder:
        _scratch.add(folder)
        try:
            yield Path(folder)
        finally:
            _scratch.discard(folder)


class Ended(BaseException):
    """The run has to end: why, as a sentence, and with which status."""

    def __init__(self, says: str, status: int) -> None:
        super().__init__(says)
        self.says = says
        self.status = status


@contextmanager
def watched() -> Iterator[None]:
    """SIGTERM and SIGHUP end the run as an interrupt does; in the main thread only, where signals arrive."""
    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before: dict[str, Any] = {}

    def end(number: int, _: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)  # a second one must not stop the tidying up
        raise Ended(f"ended by {signal.Signals(number).name}", 128 + number)

    if threading.current_thread() is threading.main_thread():
        for name in names:
            if signal.getsignal(getattr(signal, name)) is signal.SIG_DFL:  # nohup ignores SIGHUP: so do we
                before[name] = signal.signal(getattr(signal, name), end)
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)


@contextmanager
def limited(timeout_s: float | None, memory_bytes: int | None) -> Iterator[None]:
    """At most so much time, and so much memory more than the process has now; None is no limit.

    Time is kept by SIGALRM, memory by RLIMIT_DATA, so both hold on Linux and other systems that have them; elsewhere the limits
    of the intake and of the queries hold alone. Raises `Ended` where what it may have is too little to begin with.
    """
    _enough(memory_bytes)
    with _time(timeout_s), _memory(memory_bytes):
        yield


def _enough(memory_bytes: int | None) -> None:
    """Refuse limits under which libraries in C would end the process without a word, and leave its files behind."""
    if memory_bytes and memory_bytes < LEAST_BYTES:
        says = f"a run needs {show_bytes(LEAST_BYTES)} of memory, and --memory-limit allows {show_bytes(memory_bytes)}"
        raise Ended(f"{says}. Give it {LEAST_BYTES // MIB}MiB or more", EXIT_INPUT)
    try:
        import resource
    except ImportError:  # a system without such limits
        return
    for name, least, shell in (("RLIMIT_AS", LEAST_ADDRESSES, "-v"), ("RLIMIT_DATA", LEAST_BYTES, "-d")):
        allowed, _ = resource.getrlimit(getattr(resource, name))
        if allowed != resource.RLIM_INFINITY and allowed < least:
            says = f"a run needs {show_bytes(least)} of memory, and ulimit {shell} allows {show_bytes(allowed)}"
            raise Ended(f"{says}. Allow it {least // 1024} or more", EXIT_INPUT)


@contextmanager
def _time(seconds: float | None) -> Iterator[None]:
    usable = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if not seconds or not usable:
        yield
        return

    says = f"stopped after {seconds:,.0f} s, the time limit. Give it more with --timeout, or a smaller bundle"

    def over(_: int, __: FrameType | None) -> None:
        raise Ended(says, EXIT_INPUT)

    def at_last() -> None:
        for folder in list(_scratch):
            shutil.rmtree(folder, ignore_errors=True)
        os.write(2, f"oomdoc: {says}\n".encode())
        os._exit(EXIT_INPUT)

    before = signal.signal(signal.SIGALRM, over)
    # a signal waits until a library's call returns, and a list bomb in a query may not return for minutes
    last = threading.Timer(seconds + GRACE_S, at_last)
    last.daemon = True
    try:
        last.start()
        signal.setitimer(signal.ITIMER_REAL, seconds)  # inside, so that however soon it rings, the thread is called off
        yield
    finally:
        last.cancel()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _memory(size: int | None) -> Iterator[None]:
    used = _data_bytes()
    if not size or used is None:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = used + size
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft <= wanted:
        yield  # somebody allows less already
        return
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))
    try:
        yield
    except Exception as problem:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
        if not out_of_memory(problem):
            raise
        raise Ended(
            f"stopped at {show_bytes(size)} of memory, the limit. Give it more with --memory-limit, or a smaller bundle",
            EXIT_INPUT,
        ) from None
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _data_bytes() -> int | None:
    """What counts against RLIMIT_DATA now; None where the system does not tell."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    return None
