"""The few statistics of a morning report: is the difference between two shares more than chance? Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from math import erfc, exp, lgamma, sqrt

_MANY = 2000  # hits in both together: the exact sum has as many terms


def fisher(hits: int, of: int, others: int, of_others: int, *, more_only: bool = False) -> float:
    """The chance of so large a difference between `hits`/`of` and `others`/`of_others` if both had the same share.

    Fisher's exact test (R. A. Fisher, 1922), two-sided by the sum of all tables no more probable than this one, or one-sided
    (`more_only`: the first share is larger). From `_MANY` hits on by the normal approximation, which is as good there and
    costs nothing. 1.0 where one side is empty.

    >>> round(fisher(3, 4, 1, 4), 3), round(fisher(8, 10, 1, 10), 4), fisher(0, 0, 3, 9)
    (0.486, 0.0055, 1.0)
    """
    if not of or not of_others:
        return 1.0
    total, marked = of + of_others, hits + others
    if min(marked, total - marked) > _MANY:
        pooled = marked / total
        z = (hits / of - others / of_others) / sqrt(pooled * (1 - pooled) * (1 / of + 1 / of_others))
        return erfc(z / sqrt(2)) / 2 if more_only else erfc(abs(z) / sqrt(2))
    low, high = max(0, marked - of_others), min(of, marked)
    whole = _log_choose(total, marked)

    def chance(count: int) -> float:
        return exp(_log_choose(of, count) + _log_choose(of_others, marked - count) - whole)

    here = chance(hits)
    if more_only:
        return min(1.0, sum(chance(count) for count in range(hits, high + 1)))
    return min(1.0, sum(p for p in map(chance, range(low, high + 1)) if p <= here * (1 + 1e-9)))


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def best_split(series: Sequence[tuple[int, int]]) -> tuple[int, float] | None:
    """Where a series of (hits, of) changed its share most: the index that the later part begins with, and its chance.

    The chance is Fisher's of the best split, times the number of splits looked at. None for a series that is too short.

    >>> best_split([(0, 20), (1, 20), (9, 20), (8, 20)])[0]
    2
    """
    found: tuple[int, float] | None = None
    for split in range(1, len(series)):
        first, second = series[:split], series[split:]
        p = fisher(
            sum(h for h, _ in second), sum(n for _, n in second), sum(h for h, _ in first), sum(n for _, n in first)
        )
        if found is None or p < found[1]:
            found = (split, p)
    return None if found is None else (found[0], min(1.0, found[1] * (len(series) - 1)))
