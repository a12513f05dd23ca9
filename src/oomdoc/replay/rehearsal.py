"""Several settings in a row on one recording: what the solver asks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from oomdoc.evidence.store import Store
from oomdoc.replay.asked import Outcome, Setup, Traffic
from oomdoc.replay.pool import Pool, pool_after
from oomdoc.replay.recording import Recording, recording
from oomdoc.replay.run import changed_setup, pool_of, scaled_speed, setup_of
from oomdoc.replay.scheduler import simulate, survives
from oomdoc.replay.speed import quantile
from oomdoc.replay.traffic import MOST_SCALED, PICO, picoseconds, traffic_of, with_hits

BEGINS_WITHIN_S = 10.0
"""A request that has not begun by then is late: ten seconds are about as long as a person's attention stays with an answer that
does not come (J. Nielsen, Usability Engineering, 1993, chapter 5)."""
TOKEN_S = 0.2
"""Seconds that an output token may take: the limit of MLPerf Inference's server scenario for a 70B chat model, and about as
fast as people read."""

FAR = 0.15
"""Share of the pool by which a replay is off on average from which it proves nothing: replays of real recordings were 0.002 to
0.08 off, and those above 0.15 lacked requests or had blocks that no request held."""
MOST_LOST = 0.2
"""Share of the requests that cannot be replayed from which the rest is another traffic."""

_PART_SCALED = 1_000  # requests run for each factor of the speed, where a rehearsal runs a part of the requests only


@dataclass(frozen=True)
class Result:
    """What a run of the recorded traffic came to; shares of the pool 0..1, seconds."""

    survives: bool
    peak_used: float
    preemptions: int
    impossible: int
    p95_wait_s: float
    p95_latency_s: float  # from arrival to the last token
    pool_tokens: int
    in_time: float = 0.0  # share of the requests that are done in time, 0..1


def in_time(outcome: Outcome, traffic: Traffic) -> float:
    """Share of the requests that begin within `BEGINS_WITHIN_S` and are done so long after, `TOKEN_S` for each output token.

    What never runs is late. An absolute measure: it does not move with the flags that are tried, as a share of what the
    server could do would.
    """
    late, each = round(BEGINS_WITHIN_S * PICO), round(TOKEN_S * PICO)
    rows = zip(outcome.arrival_ps, outcome.first_ps, outcome.finish_ps, traffic.output_tokens, strict=True)
    done = sum(
        first is not None and end is not None and first - came <= late and end - came <= late + tokens * each
        for came, first, end, tokens in rows
    )
    return done / len(traffic)


@dataclass(frozen=True)
class Rehearsal:
    """A recording made ready once, to be run with one setting after the other. `requests` are run each time.

    `of` are all requests that the bundle has with a time: more than `most` are run in part, those around the incident.
    """

    told: Recording
    pool: Pool
    setup: Setup
    traffic: Traffic
    requests: int
    of: int
    error: str = ""
    """How far the replay of the recorded flags is from what was recorded, as the end of a sentence."""
    near: bool = True
    """The replay of the recorded flags is near enough to the recording for a proof; also where nothing was recorded."""
    unchanged: Outcome | None = None
    """What the traffic came to with the recorded flags, where that was run already."""

    @property
    def per_minute(self) -> float:
        """Requests that came per minute, on average over those that are run."""
        span = (self.traffic.arrival_ps[-1] - self.traffic.arrival_ps[0]) / PICO if len(self.traffic) > 1 else 0.0
        return len(self.traffic) / span * 60 if span > 0 else 0.0

    def part(self, share: float) -> Result:
        """The recorded flags under an evenly taken share of the requests, 0..1."""
        kept = [nth for nth in range(len(self.traffic)) if math.floor((nth + 1) * share) > math.floor(nth * share)] or [
            0
        ]
        some = Traffic(
            **{
                name: [column[nth] for nth in kept] if len(column) else column
                for name, column in vars(self.traffic).items()
            }
        )
        # a gateway that lets a part in decides when they come, not the callers
        return self._result(self.setup, self.pool, simulate(replace(self.setup, callers=0), some), some)

    def run(self, changes: Mapping[str, Any]) -> Result:
        """The traffic under changed flags; UsageError where the bundle does not tell what a change does to the pool."""
        setup, pool = self._under(changes)
        known = self.unchanged if setup == self.setup else None
        return self._result(setup, pool, known or simulate(setup, self.traffic))

    def holds(self, changes: Mapping[str, Any], most_used: float) -> Result | None:
        """The same; None, and sooner, where it does not survive or uses more than this share of the pool."""
        setup, pool = self._under(changes)
        outcome = survives(setup, self.traffic, int(most_used * setup.usable_blocks) + 1)
        result = None if outcome is None else self._result(setup, pool, outcome)
        return result if result is not None and result.peak_used <= most_used else None

    def _under(self, changes: Mapping[str, Any]) -> tuple[Setup, Pool]:
        pool = pool_after(self.pool, changes)
        return changed_setup(self.setup, changes, pool, self.told.engine.get("generation")), pool

    def _result(self, setup: Setup, pool: Pool, outcome: Outcome, traffic: Traffic | None = None) -> Result:
        waits = outcome.waits()
        lasted = [
            end - begin for end, begin in zip(outcome.finish_ps, outcome.arrival_ps, strict=True) if end is not None
        ]
        return Result(
            not (outcome.preemptions or outcome.impossible or outcome.held_ps), outcome.peak_blocks / setup.usable_blocks, outcome.preemptions,
            len(outcome.impossible), quantile(waits, 0.95) / PICO if waits else 0.0,
            quantile(lasted, 0.95) / PICO if lasted else 0.0, pool.tokens, in_time(outcome, traffic or self.traffic),
        )  # fmt: skip


def rehearse(store: Store, around: float | None, most: int) -> Rehearsal:
    """Make the recording of the incident in focus ready: at most so many requests, those nearest to `around`.

    BundleError where there are no requests or no pool.
    """
    told = recording(store, None, most=most, around=around, focused=True)
    pool = pool_of(told, None, [])
    traffic, begin = traffic_of(told, 0, 1)
    setup = setup_of(told, pool, [])
    traffic, _ = with_hits(told, setup, traffic, begin)
    of = store.rows_of("SELECT count(t) AS n FROM request")[0]["n"]
    scaled = MOST_SCALED if of <= most else _PART_SCALED
    seen = [] if told.observed is None else sorted({*picoseconds(told.observed.t - begin)})
    speed, outcome = scaled_speed(told, setup, traffic, begin, scaled, seen)
    told = replace(told, speed=speed)
    setup = setup_of(told, pool, [])
    outcome = outcome or simulate(setup, traffic, seen)
    error, near = _against_recording(told, setup, outcome, begin)
    return Rehearsal(told, pool, setup, traffic, len(traffic), of, error, near, outcome)


def _against_recording(told: Recording, setup: Setup, outcome: Outcome, begin: float) -> tuple[str, bool]:
    """The replay of the recorded flags against the recording, beside every use of it, and whether it is near enough for a proof."""
    observed = told.observed
    if observed is None:
        return " (nothing was recorded that this replay could be checked against)", True
    seen = picoseconds(observed.t - begin)
    states = {sample.t_ps: sample.used_blocks / setup.usable_blocks for sample in outcome.samples}
    inside = [
        (states[moment], used)
        for moment, used in zip(seen, observed.used.tolist(), strict=True)
        if 0 <= moment <= outcome.end_ps
    ]
    if not inside:
        return " (nothing was recorded in the time of these requests that this replay could be checked against)", True
    off = sum(abs(replayed - used) for replayed, used in inside) / len(inside)
    counted = (
        ""
        if observed.preemptions is None
        else f", with {outcome.preemptions:,} preemptions for {observed.preemptions:,} counted"
    )
    lost = told.left_out / (told.left_out + len(told.arrival))
    lacks = f"; {lost:.0%} of the requests lack a size or a time and are not in it" if lost > MOST_LOST else ""
    near = off <= FAR and lost <= MOST_LOST
    return f" (this replay is {off:.0%} of the pool off the recorded usage on average{counted}{lacks})", near
