"""A replay is a function of the engine and the traffic alone, and four fifths of what a bundle with traffic costs: one run of the
tests does each once. Workers (xdist) find those of others in the folder that they share.

Where that they are the same, or how long they take, is what is tested (`REPLAYS_ANEW = True` in the module) each is done, as all are
with `make whole`.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Sequence

import grids
from oomdoc.replay import scheduler
from oomdoc.replay.asked import Outcome, Setup, Traffic

ANEW = [grids.WHOLE]
"""Whether every replay is done, whatever was done before."""
LEAST = 50
"""Requests from which on it is worth it: examples by the thousand are small."""
_DONE: dict[str, bytes] = {}


class Once(scheduler._Run):
    """A simulation that looks first whether the same one was done before."""

    def __init__(self, setup: Setup, traffic: Traffic, sample_ps: Sequence[int]) -> None:
        super().__init__(setup, traffic, sample_ps)
        self._traffic = traffic

    def outcome(self) -> Outcome:
        if ANEW[0] or len(self.arrival) < LEAST:
            return super().outcome()
        columns = {name: list(column) for name, column in vars(self._traffic).items()}
        asked = repr((self.setup, columns, list(self.sample_ps), self.most_blocks, self.ends, self.most_off))
        key = hashlib.sha256(asked.encode()).hexdigest()
        told = _DONE.get(key) or _of_another(key)
        if told is None:
            outcome = super().outcome()
            told = pickle.dumps((outcome, self.preemptions, self.held, self.peak, self.off))
            _keep(key, told)
        # what `survives` and `nearer` look at besides
        outcome, self.preemptions, self.held, self.peak, self.off = pickle.loads(told)
        return outcome


def _of_another(key: str) -> bytes | None:
    path = grids.SHARED[0] / key if grids.SHARED else None
    return path.read_bytes() if path and path.exists() else None


def _keep(key: str, told: bytes) -> None:
    if not grids.SHARED:
        _DONE[key] = told
    else:
        begun = grids.SHARED[0] / f"{key}.{os.getpid()}"
        begun.write_bytes(told)
        begun.replace(grids.SHARED[0] / key)
