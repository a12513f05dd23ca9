"""Faults of the places where things lie: which ones pass, how long they are waited for, and the sentence when they stay.

An object store resets connections, cuts answers and says "slow down" on any night. Each of its operations is repeated with
growing waits; what a person can mend (rights, names, a full disk) is said at once.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from oomdoc.errors import BundleError

T = TypeVar("T")

MOST_TRIES = 8
FIRST_WAIT_S = 0.5
MOST_WAIT_S = 15.0
"""Waits of 0.5, 1, 2, 4, 8, 15 and 15 s, each drawn up to half below: 25 to 45 s in all. S3 asks for exponential waits after
503 and is through with making room for a prefix within a minute ("Best practices design patterns", Amazon S3 user guide)."""
LOOK_AGAIN_S = 1.0
"""Between the two readings that have to agree before a store is called damaged."""

# what asking again does not change: rights, names and arguments, in the words of the clients of S3 and Google's store
_LASTING = re.compile(
    r"ACCESS_DENIED|NO_SUCH_|INVALID_|SIGNATURE_DOES_NOT_MATCH|UNRECOGNIZED_CLIENT|MISSING_AUTHENTICATION|EXPIRED|"
    r"PERMISSION_DENIED|UNAUTHENTICATED|NOT_FOUND|FAILED_PRECONDITION|HTTP status (?:301|307|400|401|403|404|405|411|412|416)\b",
    re.I,
)
_PASSING = (ConnectionError, TimeoutError)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def passing(problem: BaseException) -> bool:
    """Whether an error may be gone the next time: connections, timeouts, and what an object store does not explain.

    >>> passing(OSError("AWS Error SLOW_DOWN during PutObject operation")), passing(OSError(28, "No space left on device"))
    (True, False)
    """
    if isinstance(problem, _PASSING):
        return True
    # pyarrow gives an object store's errors without a number; those of the system have one
    return type(problem) is OSError and problem.errno is None and not _LASTING.search(str(problem))


def patiently(call: Callable[[], T]) -> T:
    """What the call gives, repeated while its errors are passing ones; the last error when they stay."""
    from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential, wait_random

    half = FIRST_WAIT_S / 2
    tries = Retrying(
        retry=retry_if_exception(passing),
        stop=stop_after_attempt(MOST_TRIES),
        wait=wait_exponential(multiplier=FIRST_WAIT_S, max=MOST_WAIT_S) + wait_random(-half, 0),
        reraise=True,
    )
    return tries(call)


def sentence(problem: BaseException) -> str:
    """An error of pyarrow or the system in one short line."""
    text = " ".join((getattr(problem, "strerror", None) or str(problem) or type(problem).__name__).split())
    return text[:300].rstrip(".")


@contextmanager
def writing(address: str) -> Iterator[None]:
    """Turns what goes wrong while a store is written into one sentence."""
    try:
        yield
    except OSError as problem:
        room = "make room and " if problem.errno in _FULL else ""
        raise BundleError(
            f"the store {address} cannot be written: {sentence(problem)}",
            f"What was committed before is whole; {room}sweep again, it goes on from there",
        ) from None
