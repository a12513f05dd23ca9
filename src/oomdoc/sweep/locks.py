"""One sweep at a time on a store: the system's lock in a folder, a claim with a lease in an object store."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from oomdoc.errors import BusyError, UsageError
from oomdoc.sweep.faults import sentence, writing
from oomdoc.sweep.places import Bucket, Folder, Place
from oomdoc.sweep.record import CLAIM, LOCK

_LEASE_NS = 600 * 10**9  # a claim in an object store that nobody renewed for so long is of a dead sweep
_RENEW_S = 60.0
_TRUST_S = 300.0  # half a lease: a sweep that could not renew for so long writes no more, before others may take over

Still = Callable[[], None]
"""Raises BusyError where the lock may not be held any more."""


@contextmanager
def locked(place: Place) -> Iterator[Still]:
    """Hold the store alone; BusyError where another sweep does."""
    with _locked_folder(place) if isinstance(place, Folder) else _locked_bucket(place) as still:
        yield still


def _busy(address: str) -> BusyError:
    return BusyError(f"another sweep is at work on {address}", "Wait for it: a store is swept by one at a time")


@contextmanager
def _locked_folder(place: Folder) -> Iterator[Still]:
    """The system's own lock: it goes with the process, however that ends."""
    try:
        import fcntl
    except ImportError:
        raise UsageError("a store on this system's file system cannot be locked", "Sweep on Linux or macOS, or into an object store") from None  # fmt: skip
    place.make()
    try:
        handle = os.open(place.root / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as problem:
        raise UsageError(
            f"the store {place.root} cannot be written: {sentence(problem)}", "Choose a folder that can be written"
        ) from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise _busy(place.address) from None
        yield lambda: None
    finally:
        os.close(handle)


@contextmanager
def _locked_bucket(place: Bucket) -> Iterator[Still]:
    """A claim beside the data. Everybody writes a claim, then looks: who sees a living claim of somebody else steps back.

    Stores show a written object in every listing from then on, so of two that claim at once at least one sees the other;
    both may step back, never both go on. Ages are taken from the store's clock alone.
    """
    name = f"{LOCK}/{secrets.token_hex(8)}"
    with writing(place.address):
        place.write(name, b"")
    stop = threading.Event()
    renewed = [time.monotonic()]

    def renew() -> None:
        while not stop.wait(_RENEW_S):
            with suppress(OSError):
                began = time.monotonic()
                place.write(name, b"")
                renewed[0] = began

    def still() -> None:
        if time.monotonic() - renewed[0] > _TRUST_S:
            raise BusyError(
                f"the claim on {place.address} could not be renewed for {_TRUST_S / 60:.0f} minutes",
                "Another sweep may have begun: nothing more is written, the next one goes on",
            )

    try:
        claims = {claim: seen.modified_ns for claim, seen in place.files().items() if CLAIM.fullmatch(claim)}
        now = claims.get(name, time.time_ns())
        if any(claim != name and now - written < _LEASE_NS for claim, written in claims.items()):
            raise _busy(place.address)
        for claim in claims:
            if claim != name:
                place.delete(claim)
        keeper = threading.Thread(target=renew, name="oomdoc-lease", daemon=True)
        keeper.start()
        yield still
    finally:
        stop.set()
        with suppress(OSError):
            place.delete(name)
