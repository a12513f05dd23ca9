"""A queue that the cap of sequences makes beside a pool with room: what more of them would do, on the recorded traffic.

Memory is not what ran out there, so none of its flags helps; but who waits is served by the flag that makes them wait.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from oomdoc.errors import OomdocError
from oomdoc.model import Action, Diagnosis
from oomdoc.solve.guard import guard
from oomdoc.solve.predict import at_start
from oomdoc.solve.rehearsed import ALL, FEW, MARGIN, proven
from oomdoc.solve.situation import Situation, stated

if TYPE_CHECKING:
    from oomdoc.replay import Rehearsal, Result

_MOST_SEQUENCES = 1024  # the largest default of any release
_RUNS = 5
LATE_FROM = {"not-memory": ALL, "healthy": 0.9}
"""Cause -> share of the requests in time below which it is worth a flag: a short burst is no reason to touch what is well."""


def _room(stage: Rehearsal, now: Situation, sequences: int) -> Result | None:
    """What the traffic comes to with so many sequences; None where the engine or the pool has no room for them."""
    changes = {"max_num_seqs": sequences}
    if guard(changes, now, devices=None).refused or at_start(changes, now).values.get("starts") is False:
        return None
    try:
        result = stage.run(changes)
    except OomdocError:
        return None
    return result if result.survives and result.peak_used <= 1 - MARGIN else None


def uncapped(diagnosis: Diagnosis, now: Situation) -> Diagnosis:
    """The diagnosis with the least cap under which as many are in time as under any, before its other advice; as it is where
    the replay does not show the recording, or another thing than the cap holds requests back."""
    stage = now.rehearsal
    if diagnosis.cause not in LATE_FROM or stage is None or not stage.near:
        return diagnosis
    from oomdoc.replay.run import BEYOND

    before = stage.run({})
    if not before.survives or before.in_time >= LATE_FROM[diagnosis.cause]:
        return diagnosis
    present = stage.setup.max_num_seqs
    best, most = before, present
    low, high, left = present, 0, _RUNS  # the most that was tried and has room, the least that has none
    while left > 0:
        left -= 1
        more = (low + high) // 2 if high else min(_MOST_SEQUENCES, low * 2)
        if more <= low:
            break
        result = _room(stage, now, more)
        if result is None:
            high = more  # from here on the pool decides, or the engine
            continue
        if result.in_time > best.in_time + FEW:
            best, most = result, more
        low = more
        if best.in_time >= ALL:
            break
    if most == present:
        return diagnosis
    far = f"; {most // present} times as many at once as were recorded, whose steps the recording does not tell" * (
        most > BEYOND * present
    )
    action = Action(
        "raise-the-cap", f"Raise `--max-num-seqs` from {present:,} to {most:,}",
        f"requests wait for one of {present:,} places and not for memory: {before.peak_used:.0%} of the pool is used at most{far}",
        "each request's tokens come more slowly beside more others", {"max_num_seqs": most},
        "`vllm:num_requests_waiting` is 0 for most of the time, and usage stays below 90%",
        {} if (was := stated("max_num_seqs", now)) is None else {"max_num_seqs": was}, when="after-load-test",
    )  # fmt: skip
    return dataclasses.replace(
        diagnosis, actions=(proven(action, action.changes, best, before, stage), *diagnosis.actions)
    )
