"""How long a step of the engine takes, from the recording itself: tokens, latencies and throughput.

The model has three numbers: a step lasts `step_s`, plus `sequence_s` for each request that decodes in it, plus
`prompt_token_s` for each prompt token. They are fitted by least squares with none below zero, since a step that takes
negative time would fit well and mean nothing. Pure functions of arrays; times are seconds.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

FEWEST = 12  # observations that a fit of three numbers needs
LEAST_OUTPUT = 8  # tokens: a shorter generation says nothing about the length of a step
MOST_FITTED = 50_000  # requests that a fit looks at, evenly chosen: more do not move it

_Array = Any  # numpy arrays of float64


@dataclass(frozen=True)
class Speed:
    """Seconds of a step. `low` and `high` are the quartiles of observed / fitted duration; None = assumed, not fitted."""

    step_s: float
    sequence_s: float
    prompt_token_s: float
    origin: str
    samples: int = 0
    low: float | None = None
    high: float | None = None


ASSUMED = Speed(0.025, 0.0, 0.0001, "assumed: 40 steps a second and 10,000 prompt tokens a second")
"""Where the recording tells nothing: the order of a large model on its usual number of cards."""


def from_requests(begin: _Array, first: _Array, end: _Array, inputs: _Array, outputs: _Array) -> Speed | None:
    """Fit to requests: arrival, first token and end (seconds), prompt tokens computed, tokens generated.

    A generation of n tokens lasts n - 1 steps; in that time everybody generated w tokens, and q prompt tokens of others
    were computed: end - first = step x (n - 1) + sequence x w + prompt_token x q. A request that found nobody waiting adds
    first - begin = step x 1.5 + prompt_token x inputs. None where there are too few.
    """
    usable = (outputs >= LEAST_OUTPUT) & (end > first) & (first >= begin)
    if usable.sum() < FEWEST:
        return None
    begin, first, end, inputs, outputs = (column[usable] for column in (begin, first, end, inputs, outputs))
    lasted = end - first
    generated = _generated(first, end, outputs)
    by_first = np.argsort(first, kind="stable")
    prompts = np.concatenate([[0.0], np.cumsum(inputs[by_first])])

    def prompts_until(moments: _Array) -> _Array:
        return prompts[np.searchsorted(first[by_first], moments, side="right")]

    decode = np.column_stack(
        [outputs - 1, generated(end) - generated(first), prompts_until(end) - prompts_until(first)]
    )
    # nobody else stands between arrival and first token when it arrives
    in_line = np.searchsorted(np.sort(begin), begin, side="left") - np.searchsorted(np.sort(first), begin, side="right")
    alone = (in_line == 0) & (first > begin)
    prompt = None
    if alone.sum() >= FEWEST:
        prefill = np.column_stack([np.ones(alone.sum()), inputs[alone]])
        found, _ = _fitted(prefill, (first - begin)[alone])
        prompt = float(found[1]) if found is not None else None
    origin = f"fitted to first token and end of {len(lasted):,} requests"
    if prompt is None:
        found, kept = _fitted(decode, lasted)
        return None if found is None else _speed(found, decode, lasted, origin)
    rest = lasted - prompt * decode[:, 2]
    own = rest > 0
    found, _ = _fitted(decode[own, :2], rest[own])
    return None if found is None else _speed(np.append(found, prompt), decode, lasted, origin)


def from_statistics(
    t: _Array, prompt_tokens_per_s: _Array, generation_tokens_per_s: _Array, running: _Array
) -> Speed | None:
    """Fit to statistics lines, in order of time: in a second in which the engine never rests there are generation / running steps.

    So 1 = step x generation / running + sequence x generation + prompt_token x prompt tokens. None where there are too few.
    """
    if len(t) < FEWEST:
        return None
    gap = np.diff(t)
    interval = np.median(gap)
    before, after = running[:-1], running[1:]
    busy = (gap > 0) & (gap <= 1.5 * interval) & (before > 0) & (after > 0) & (generation_tokens_per_s[1:] > 0)
    if busy.sum() < FEWEST:
        return None
    generated, mean = generation_tokens_per_s[1:][busy], ((before + after) / 2)[busy]
    rows = np.column_stack([generated / mean, generated, prompt_tokens_per_s[1:][busy]])
    seconds = np.ones(len(rows))
    found, _ = _fitted(rows, seconds)
    return None if found is None else _speed(found, rows, seconds, f"fitted to {len(rows):,} statistics lines")


def _generated(first: _Array, end: _Array, outputs: _Array) -> Any:
    """Tokens that all requests generated until a moment, each at an even pace."""
    pace = outputs / (end - first)
    moments = np.concatenate([first, end])
    change = np.concatenate([pace, -pace])
    order = np.argsort(moments, kind="stable")
    moments, rate = moments[order], np.cumsum(change[order])
    total = np.concatenate([[0.0], np.cumsum(rate[:-1] * np.diff(moments))])
    return lambda wanted: np.interp(wanted, moments, total)


def _fitted(rows: _Array, seconds: _Array) -> tuple[_Array | None, _Array]:
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
            return None, kept
        solution = _not_negative(rows[kept] / root[kept, None], root[kept])
        miss = (rows @ solution - seconds) / root
        spread = np.median(np.abs(miss - np.median(miss)))
        kept = np.abs(miss - np.median(miss)) <= 3 * 1.4826 * spread + 1e-9
    return (solution if solution.any() else None), kept


def _speed(solution: _Array, rows: _Array, seconds: _Array, origin: str) -> Speed | None:
    fitted = rows @ solution
    if not (fitted > 0).all():
        return None
    low, high = np.quantile(seconds / fitted, [0.25, 0.75])
    step, sequence, prompt = (float(value) for value in solution)
    return Speed(step, sequence, prompt, origin, len(rows), float(low), float(high))


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


def best(speeds: Sequence[Speed | None]) -> Speed:
    """The first that there is, else the assumption."""
    return next((speed for speed in speeds if speed is not None), ASSUMED)
