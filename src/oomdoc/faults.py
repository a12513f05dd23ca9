"""The one place that turns what the system refuses into a sentence and a status: disks, memory, descriptors, depth.

A module that knows more of its own case says it itself; what nobody caught comes here from the command line. Anything that is not
the system's refusal is a bug, and keeps its traceback.
"""

from __future__ import annotations

import errno
import os

from oomdoc.errors import BundleError, OomdocError, UsageError

_NO_ROOM = {errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EROFS, getattr(errno, "EDQUOT", errno.ENOSPC)}
_NAMES = {errno.ENAMETOOLONG, errno.ELOOP, errno.EISDIR, errno.ENOTDIR, errno.ENOENT, errno.EACCES, errno.EPERM, errno.EEXIST}  # fmt: skip
_HINTS = {
    errno.ENOSPC: "Make room, or choose another place",
    errno.EFBIG: "Allow larger files (ulimit -f), or choose another place",
    errno.EMFILE: "Allow more open files (ulimit -n)",
    errno.ENAMETOOLONG: "Choose a shorter name",
}
_MEMORY_HINT = "Give it more: --memory-limit, ulimit -v, or the limit of its container"
_MEMORY_WORDS = ("out of memory", "failed to map segment", "cannot allocate memory", "allocation failure", "can't start new thread")  # fmt: skip
_DISK_WORDS = (
    "could not write",
    "could not truncate",
    "could not fsync",
    "no space left",
    "file too large",
    "failed to offload",
)


def told(problem: BaseException) -> OomdocError | None:
    """The error for people that a failure is; None where it is a bug of ours."""
    if isinstance(problem, OomdocError):
        return problem
    if out_of_memory(problem):
        return BundleError("memory ran out", _MEMORY_HINT)
    if isinstance(problem, RecursionError):
        return BundleError("something in the input lies too deep inside other things to be read", "Leave that file out")
    if isinstance(problem, ValueError) and str(problem).startswith("embedded null"):  # by the operating system's door
        return UsageError("a name with a NUL in it is no file", "Give the name of a file")
    if isinstance(problem, ValueError) and str(problem).startswith("Exceeds the limit"):
        return UsageError("a number of thousands of digits is no figure", "Give one that a server could have")
    if isinstance(problem, OSError):
        return of_system(problem, str(problem.filename or "a file"))
    if _of_database(problem) and any(word in str(problem).lower() for word in _DISK_WORDS):
        return BundleError(f"the database could not be written: {first_line(problem)}", _HINTS[errno.ENOSPC])
    return None


def of_system(problem: OSError, name: str, doing: str = "cannot use") -> OomdocError:
    """What the system says about a file: wrong usage where the name is wrong, else what stands in the way."""
    kind = UsageError if problem.errno in _NAMES else OomdocError
    return kind(f"{doing} {name}: {reason(problem)}", _HINTS.get(problem.errno or 0, "Choose another file"))


def unwritable(problem: OSError, name: str) -> OomdocError:
    """The same about a file that was to be written."""
    if problem.errno in _NO_ROOM:
        return OomdocError(
            f"cannot write {name}: {reason(problem)}", _HINTS.get(problem.errno or 0, "Choose another place")
        )
    return of_system(problem, name, "cannot write")


def out_of_memory(problem: BaseException) -> bool:
    """Whether a failure says that there is no memory, or no room for a thread's stack."""
    if isinstance(problem, MemoryError) or (isinstance(problem, OSError) and problem.errno == errno.ENOMEM):
        return True
    database = _of_database(problem)
    if database and type(problem).__name__ == "OutOfMemoryException":
        return True
    known = database or isinstance(problem, (ImportError, RuntimeError))
    return known and any(word in str(problem).lower() for word in _MEMORY_WORDS)


def _of_database(problem: BaseException) -> bool:
    return type(problem).__module__.lstrip("_") == "duckdb"  # told without importing it


def reason(problem: OSError) -> str:
    """The system's words."""
    return os.strerror(problem.errno).lower() if problem.errno else str(problem)[:100]


def first_line(problem: BaseException) -> str:
    """The first line of what a library says."""
    return str(problem).strip().splitlines()[0][:300] if str(problem).strip() else type(problem).__name__
