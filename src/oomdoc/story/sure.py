"""How sure: the steps that lead to exactly the figure shown, how often such a verdict was right, and what keeps a rival."""

from __future__ import annotations

import math

from oomdoc.model import FINEST, Diagnosis, Step, TrackRecord
from oomdoc.story import record as kept
from oomdoc.story.seen import Seen
from oomdoc.units import percent

SAME = 5e-4
"""Weights and probabilities of a report are rounded to four digits; what is nearer than this is the same figure."""
KEPT_FROM = 0.1
"""Below this a rival needs evidence that speaks for it to be mentioned; at its prior it is no rival."""


def steps(seen: Seen) -> tuple[Step, ...]:
    """From how common the cause is to its probability: one step an observation that counts, then rivals and limits."""
    first = seen.first
    if first is None:
        return ()
    odds = _odds(first.prior)
    made = [Step("how common this cause is among incidents", odds, first.prior)]
    for item in (*first.evidence, *first.against):
        if item.weight:
            odds *= math.exp(item.weight)
            made.append(Step(item.says, math.exp(item.weight), odds / (1 + odds), item.id))
    reached = odds / (1 + odds)
    shown = first.probability
    if abs(reached - shown) > SAME:
        made.append(Step(_rest(seen, first, reached), _odds(shown) / odds, shown))
    return tuple(made)


def _rest(seen: Seen, first: Diagnosis, reached: float) -> str:
    """Why the figure is not what the lines give by themselves."""
    rival = next((item for item in seen.report.diagnoses if item.cause != first.cause), None)
    nearest = (
        f"; the nearest ({rival.cause}) is at {percent(rival.own_probability)} by its own evidence" if rival else ""
    )
    if first.probability > reached:
        return f"every other cause explains this bundle worse{nearest}"
    if not seen.report.bundle.complete and first.cause == "healthy":
        return f"the bundle is incomplete, and the failure may stand in what is missing: at most {percent(first.probability)}"
    if first.probability < FINEST:
        return f"other causes have their share{nearest}"
    return f"the rules are not finer than that: nothing is stated above {percent(first.probability)}"


def _odds(p: float) -> float:
    p = min(max(p, 1e-9), 1 - 1e-9)
    return p / (1 - p)


def track_record(seen: Seen) -> TrackRecord | None:
    """How many verdicts of this range were right on reports never seen before; None without a verdict."""
    if seen.first is None or seen.report.verdict in ("no-server", "undecided"):
        return None
    right, of = kept.like(seen.first.probability)
    side = (
        f"at {percent(kept.SURE_FROM)} or more"
        if seen.first.probability >= kept.SURE_FROM
        else f"below {percent(kept.SURE_FROM)}"
    )
    return TrackRecord(f"of {of:,} verdicts {side} on reports never seen before, {right:,} were right", right, of)


def keeps(seen: Seen) -> tuple[str, ...]:
    """Rivals that something in this bundle speaks for, as far as they are near: the others stand at how common they are."""
    if seen.first is None:
        return ()
    return tuple(
        item.cause
        for item in seen.report.diagnoses[1:]
        if item.probability >= KEPT_FROM and any(reading.weight > 0 for reading in item.evidence)
    )
