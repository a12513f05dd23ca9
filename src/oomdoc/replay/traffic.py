"""The recorded requests as the scheduler takes them, and what the prefix cache is known to have found for them."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np

from oomdoc.replay.asked import Setup, Traffic
from oomdoc.replay.recording import Observed, Recording
from oomdoc.replay.scheduler import simulate
from oomdoc.replay.speed import FEWEST, median

PICO = 1_000_000_000_000
MOST_SCALED = 3_000  # requests run for each factor
CLEARLY_NEARER = (
    0.02  # share of the pool by which a reading of the counters has to bring the replay nearer to the recording
)
MISSED = (1.0, 1.1)  # so many times as long as what was found on average: nobody missed, or one lookup of eleven did
PREFIXES = (1, 2, 4, 8, 16)  # so many different prefixes the hits of counters are tried as
_SAME_MOMENT_S = 0.005  # stamps are rounded
_NEARLY_ALL = 0.9
_PAUSE = 0.05  # share of a request's time that a caller may take until it asks again
LEAST_HITS = 0.05  # share of prompt tokens found in the cache from which it changes what a replay shows


def traffic_of(told: Recording, prefix_tokens: int, groups: int) -> tuple[Traffic, float]:
    """The requests as the scheduler takes them, and when the first came, epoch seconds."""
    begin = float(told.arrival[0])
    count = len(told.arrival)
    shared: dict[str, Any] = {}
    if prefix_tokens > 0:
        shared = {"group": [place % groups for place in range(count)], "prefix_tokens": [prefix_tokens] * count}
        for place, length in enumerate(told.input_tokens):
            if length <= prefix_tokens:  # shorter than the prefix: it cannot be one of them
                shared["group"][place] = -1
    elif told.cached_tokens.any():
        shared = {"cached_tokens": told.cached_tokens.astype(int).tolist()}
    return Traffic(
        picoseconds(told.arrival - begin), told.input_tokens.astype(int).tolist(),
        told.output_tokens.astype(int).tolist(), **shared,
    ), begin  # fmt: skip


def with_hits(told: Recording, setup: Setup, traffic: Traffic, begin: float) -> tuple[Traffic, str]:
    """The traffic with what the server's counters say of the prefix cache, where the requests do not tell it, and the words.

    Counters tell how much was found, not by whom: a prefix that all share, several that parts of them share, or a beginning of
    each request's own. Which of them is taken, if any, is decided by the recorded usage and by how many ran at once: who
    shares blocks leaves room for others, so a full pool alone cannot tell them apart. Without a recording nothing is assumed.
    """
    share, observed = told.hit_share, told.observed
    if not share or share < LEAST_HITS or observed is None or not setup.prefix_caching or traffic.cached_tokens:
        return traffic, ""
    found = f"{share:.0%} of the looked-up prompt tokens were found in the prefix cache, by the server's counters"
    least = share * float(told.input_tokens.mean()) / setup.block_size
    options = [(traffic, "")]
    # the cache finds whole blocks, and who comes first or after an eviction finds none: a prefix is that long at least
    for common, groups in itertools.product((math.ceil(least * more) * setup.block_size for more in MISSED), PREFIXES):
        if groups == 1 or groups * FEWEST <= len(traffic):
            whose = "one prefix of {:,} tokens that all requests share" if groups == 1 else f"{groups} prefixes of {{:,}} tokens that each a part of the requests share"  # fmt: skip
            options.append((traffic_of(told, common, groups)[0], f"{found}: as {whose.format(common)}"))
    own = replace(told, cached_tokens=np.floor(told.input_tokens * share))
    options.append((traffic_of(own, 0, 1)[0], f"{found}: as a beginning of each request's own"))
    off = [_state_off(setup, traffic, begin, observed)]
    if off[0] < CLEARLY_NEARER:
        return options[0]  # none can be so much nearer
    off += [_state_off(setup, option[0], begin, observed) for option in options[1:]]
    best = off.index(min(off))
    return options[best] if off[0] - off[best] >= CLEARLY_NEARER else options[0]


def _state_off(setup: Setup, traffic: Traffic, begin: float, observed: Observed) -> float:
    """Mean distance of the replayed from the recorded usage, and of those that run as shares of the most that ever ran, over the first requests."""
    count = min(len(traffic), MOST_SCALED)
    some = Traffic(**{name: column[:count] for name, column in vars(traffic).items()})
    seen = [row for row in zip(picoseconds(observed.t - begin), observed.used.tolist(), observed.running.tolist(), strict=True) if 0 <= row[0] <= some.arrival_ps[-1]]  # fmt: skip
    if not seen:
        return 0.0
    outcome = simulate(setup, some, sorted({moment for moment, _, _ in seen}))
    states = {sample.t_ps: sample for sample in outcome.samples}
    used = sum(abs(states[moment].used_blocks / setup.usable_blocks - told) for moment, told, _ in seen)
    at_once = [(states[moment].running, told) for moment, _, told in seen if not math.isnan(told)]
    most = max((told for _, told in at_once), default=0.0)
    running = sum(abs(replayed - told) for replayed, told in at_once) / most if most else 0.0
    return float((used + running) / len(seen))


def callers_of(told: Recording) -> int:
    """How many callers there were, where each waits for its answer before it asks again; 0 where that cannot be said.

    Then each arrival but the first ones brings the requests in flight to the same number, right after another is done. Where
    requests are missing from the recording nothing is said.
    """
    begin, end = told.arrival, np.sort(told.end)
    if told.left_out or np.isnan(end).any() or len(begin) <= FEWEST:
        return 0
    done = np.searchsorted(end, begin + _SAME_MOMENT_S, side="right")
    in_flight = np.arange(1, len(begin) + 1) - done
    callers = int(np.bincount(in_flight).argmax())
    later = slice(callers, None)
    if len(begin) < callers + FEWEST or (in_flight[later] == callers).mean() < _NEARLY_ALL:
        return 0
    paused = begin[later] - end[np.maximum(done[later] - 1, 0)]
    return callers if median(paused) <= _PAUSE * median(told.end - begin) else 0


def picoseconds(seconds: Any) -> list[int]:
    """Whole picoseconds; Python's integers, since a year of them does not fit into 64 bits."""
    return [round(moment * PICO) for moment in seconds.tolist()]
