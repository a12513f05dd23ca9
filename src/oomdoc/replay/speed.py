"""How long a step of the engine takes, from the recording itself: tokens, latencies and throughput.

A step lasts `step_s`, plus `sequence_s` for each request that decodes in it, plus `context_s` for each token of their
contexts (attention reads them), plus `prompt_token_s` x n + `prompt_pair_s` x n^2 for a prompt of n tokens. The numbers are
fitted by least squares with none below zero, since a step that takes negative time would fit well and mean nothing. Pure
functions of arrays; times are seconds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

FEWEST = 12  # observations that a fit of three numbers needs
LEAST_OUTPUT = 8  # tokens: a shorter generation says nothing about the length of a step
AT_ONCE = 0.1  # of the usual time per token: the client got its answer in one piece, its "first token" is the last
MOST_FITTED = 50_000  # requests that a fit looks at, evenly chosen: more do not move it

_Array = Any  # numpy arrays of float64


@dataclass(frozen=True)
class Speed:
    """Seconds of a step. `low` and `high` are the quartiles of observed / fitted duration; None = assumed, not fitted."""

    step_s: float
    sequence_s: float
    context_s: float
    prompt_token_s: float
    prompt_pair_s: float
    origin: str
    samples: int = 0
    low: float | None = None
    high: float | None = None
    factor: float = 1.0  # by which the fit was slowed down so that requests end when they did

    def times(self, factor: float) -> Speed:
        """The same, slower by the factor."""
        return replace(
            self, step_s=self.step_s * factor, sequence_s=self.sequence_s * factor, context_s=self.context_s * factor,
            prompt_token_s=self.prompt_token_s * factor, prompt_pair_s=self.prompt_pair_s * factor, factor=self.factor * factor,
        )  # fmt: skip


ASSUMED = Speed(0.025, 0.0, 0.0, 0.0001, 0.0, "assumed: 40 steps a second and 10,000 prompt tokens a second")
"""Where the recording tells nothing: the order of a large model on its usual number of cards."""


def from_requests(begin: _Array, first: _Array, end: _Array, inputs: _Array, outputs: _Array) -> Speed | None:
    """Fit to requests: arrival, first token and end (seconds), prompt tokens computed, tokens generated.

    Prompts first, from requests that found nobody waiting: first - begin = constant + prompt_token x n + prompt_pair x n^2.
    A generation of n tokens lasts n - 1 steps; in that time everybody generated w tokens in contexts of x tokens, and other
    prompts were computed: end - first = step x (n - 1) + sequence x w + context x x + prompts. None where there are too few.
    """
    usable = (outputs >= LEAST_OUTPUT) & (end > first) & (first >= begin)
    if usable.sum() < FEWEST:
        return None
    pace = (end - first) / np.maximum(outputs - 1, 1)
    usable &= pace > AT_ONCE * quantile(pace[usable], 0.75)
    if usable.sum() < FEWEST:
        return None
    begin, first, end, inputs, outputs = (column[usable] for column in (begin, first, end, inputs, outputs))
    lasted = end - first
    prompt = _prompts(begin, first, inputs)
    by_first = np.argsort(first, kind="stable")

    def prompts_in(amounts: _Array) -> _Array:
        total = np.concatenate([[0.0], np.cumsum(amounts[by_first])])
        until_end = np.searchsorted(first[by_first], end, side="right")
        return total[until_end] - total[np.searchsorted(first[by_first], first, side="right")]

    generated = _spread(first, end, outputs)
    contexts = _spread(first, end, outputs * (inputs + outputs / 2))
    decode = np.column_stack(
        [outputs - 1, generated(end) - generated(first), contexts(end) - contexts(first), prompts_in(inputs)]
    )
    origin = f"fitted to first token and end of {len(lasted):,} requests"
    if prompt is None:
        found = _fitted(decode, lasted)
        return None if found is None else _speed(np.append(found, 0.0), _paired(decode), lasted, origin)
    decode = np.column_stack([decode, prompts_in(inputs**2)])
    rest = lasted - decode[:, 3:] @ prompt
    own = rest > 0
    found = _fitted(decode[own, :3], rest[own])
    return None if found is None else _speed(np.concatenate([found, prompt]), decode, lasted, origin)


def _prompts(begin: _Array, first: _Array, inputs: _Array) -> _Array | None:
    """Seconds per prompt token and per square of prompt tokens; None where too few requests had nobody before them."""
    in_line = np.searchsorted(np.sort(begin), begin, side="left") - np.searchsorted(np.sort(first), begin, side="right")
    alone = (in_line == 0) & (first > begin)
    length = inputs[alone]
    found = _fitted(np.column_stack([np.ones(len(length)), length, length**2]), (first - begin)[alone])
    return None if found is None else found[1:]


def _paired(rows: _Array) -> _Array:
    return np.column_stack([rows, np.zeros(len(rows))])


def from_statistics(
    t: _Array, prompt_tokens_per_s: _Array, generation_tokens_per_s: _Array, running: _Array
) -> Speed | None:
    """Fit to statistics lines, in order of time: in a second in which the engine never rests there are generation / running steps.

    So 1 = step x generation / running + sequence x generation + prompt_token x prompt tokens. None where there are too few.
    """
    if len(t) < FEWEST:
        return None
    gap = np.diff(t)
    interval = median(gap)
    before, after = running[:-1], running[1:]
    busy = (gap > 0) & (gap <= 1.5 * interval) & (before > 0) & (after > 0) & (generation_tokens_per_s[1:] > 0)
    if busy.sum() < FEWEST:
        return None
    generated, mean = generation_tokens_per_s[1:][busy], ((before + after) / 2)[busy]
    rows = np.column_stack([generated / mean, generated, np.zeros(len(mean)), prompt_tokens_per_s[1:][busy]])
    seconds = np.ones(len(rows))
    found = _fitted(rows, seconds)
    origin = f"fitted to {len(rows):,} statistics lines"
    return None if found is None else _speed(np.append(found, 0.0), _paired(rows), seconds, origin)


def _spread(first: _Array, end: _Array, amounts: _Array) -> Callable[[_Array], _Array]:
    """What all requests did until a moment, each its amount at an even pace from its first token to its end."""
    pace = amounts / (end - first)
    moments = np.concatenate([first, end])
    change = np.concatenate([pace, -pace])
    order = np.argsort(moments, kind="stable")
    moments, rate = moments[order], np.cumsum(change[order])
    total = np.concatenate([[0.0], np.cumsum(rate[:-1] * np.diff(moments))])
    return lambda wanted: np.interp(wanted, moments, total)


def _fitted(rows: _Array, seconds: _Array) -> _Array | None:
    """Least squares, three times without the worst: a request that was preempted waited, it did not compute.

    Errors count against the square root of the duration, as those of a sum of steps do.
    """
    if len(rows) > MOST_FITTED:
        picked = np.linspace(0, len(rows) - 1, MOST_FITTED).astype(int)
        rows, seconds = rows[picked], seconds[picked]
    kept = np.ones(len(rows), dtype=bool)
    root = np.sqrt(seconds)
    for _ in range(4):
        if kept.sum() < FEWEST:
            return None
        solution = _not_negative(rows[kept] / root[kept, None], root[kept])
        miss = (rows @ solution - seconds) / root
        spread = median(np.abs(miss - median(miss)))
        kept = np.abs(miss - median(miss)) <= 3 * 1.4826 * spread + 1e-9
    return solution if solution.any() else None


def _speed(solution: _Array, rows: _Array, seconds: _Array, origin: str) -> Speed | None:
    fitted = rows @ solution
    if not (fitted > 0).all():
        return None
    low, high = (quantile(seconds / fitted, share) for share in (0.25, 0.75))
    # four digits: no fit is better, and the last bits of linear algebra differ between machines
    step, sequence, context, prompt, pair = (float(f"{value:.4g}") for value in solution)
    return Speed(step, sequence, context, prompt, pair, origin, len(rows), round(float(low), 4), round(float(high), 4))


def _not_negative(rows: _Array, wanted: _Array) -> _Array:
    """Least squares with no number below zero: of all choices of columns, the best one that has none."""
    best, error = np.zeros(rows.shape[1]), float(wanted @ wanted)
    scale = np.abs(rows).max(axis=0)
    for count in range(1, rows.shape[1] + 1):
        for columns in itertools.combinations(range(rows.shape[1]), count):
            picked = list(columns)
            if not scale[picked].all():
                continue
            part, *_ = np.linalg.lstsq(rows[:, picked] / scale[picked], wanted, rcond=None)
            left = rows[:, picked] @ (part / scale[picked]) - wanted
            if (part >= 0).all() and float(left @ left) < error:
                best, error = np.zeros(rows.shape[1]), float(left @ left)
                best[picked] = part / scale[picked]
    return best


def quantile(values: Sequence[int] | _Array, share: float) -> float:
    """As `numpy.quantile`, to the last bit; that one imports masked arrays, which nobody else needs (10 ms)."""
    ordered = np.sort(np.asarray(values))
    if np.isnan(ordered[-1]):
        return math.nan
    place = (len(ordered) - 1) * share
    part = place - math.floor(place)
    below, above = ordered[math.floor(place)], ordered[min(math.floor(place) + 1, len(ordered) - 1)]
    apart = above - below
    return float(below + apart * part if part < 0.5 else above - apart * (1 - part))


def median(values: Sequence[int] | _Array) -> float:
    """As `numpy.median`, for the same reason."""
    ordered = np.sort(np.asarray(values))
    middle = len(ordered) // 2
    if not len(ordered) or np.isnan(ordered[-1]):
        return math.nan
    return float(ordered[middle]) if len(ordered) % 2 else (float(ordered[middle - 1]) + float(ordered[middle])) / 2
