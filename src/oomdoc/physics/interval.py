"""A figure that is known only between two bounds, and where it is known from.

Logs print GiB with two digits, tables give planning figures, and a calculation is worth what its weakest input is worth.
So every figure of this room is an `Interval`: what comes out is as wide as what went in, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from oomdoc.units import GIB

ORIGINS = ("given", "logged", "config", "catalogue", "default", "computed", "planning figure", "assumed")
"""Where a figure is known from, the strongest first. What is computed has the origin of its weakest input."""

_STEP_BYTES = GIB / 100  # engines print GiB with two digits


@dataclass(frozen=True)
class Interval:
    """All values from `lo` to `hi`, both included, in the unit its name says; `origin` is one of `ORIGINS`.

    >>> Interval(2.0, 3.0, "logged") + Interval(1.0, 1.0, "given")
    Interval(lo=3.0, hi=4.0, origin='logged')
    >>> 10 - Interval(2.0, 3.0, "assumed"), Interval(2, 3, "given") * -1
    (Interval(lo=7.0, hi=8.0, origin='assumed'), Interval(lo=-3, hi=-2, origin='given'))
    """

    lo: float
    hi: float
    origin: str = "computed"

    def __post_init__(self) -> None:
        if not self.lo <= self.hi:  # a NaN ends here too
            raise ValueError(f"no interval from {self.lo} to {self.hi}")
        if self.origin not in ORIGINS:
            raise ValueError(f"no origin '{self.origin}'")

    def __contains__(self, value: float) -> bool:
        return self.lo <= value <= self.hi

    def __add__(self, other: Interval | float) -> Interval:
        second = _of(other, self)
        return Interval(self.lo + second.lo, self.hi + second.hi, weakest(self, second))

    __radd__ = __add__

    def __sub__(self, other: Interval | float) -> Interval:
        second = _of(other, self)
        return Interval(self.lo - second.hi, self.hi - second.lo, weakest(self, second))

    def __rsub__(self, other: float) -> Interval:
        return _of(other, self) - self

    def __mul__(self, other: Interval | float) -> Interval:
        second = _of(other, self)
        corners = [one * two for one in (self.lo, self.hi) for two in (second.lo, second.hi)]
        return Interval(min(corners), max(corners), weakest(self, second))

    __rmul__ = __mul__

    def __truediv__(self, other: Interval | float) -> Interval:
        second = _of(other, self)
        if 0 in second:
            raise ZeroDivisionError(f"{second} holds zero")
        corners = [one / two for one in (self.lo, self.hi) for two in (second.lo, second.hi)]
        return Interval(min(corners), max(corners), weakest(self, second))

    @property
    def middle(self) -> float:
        """Half way; for a figure that must be one number."""
        return (self.lo + self.hi) / 2

    @property
    def exact(self) -> bool:
        """Both bounds are the same."""
        return self.lo == self.hi

    def overlaps(self, other: Interval) -> bool:
        """Some value lies in both."""
        return self.lo <= other.hi and other.lo <= self.hi

    def floor(self) -> Interval:
        """Both bounds rounded down to whole numbers."""
        return replace(self, lo=math.floor(self.lo), hi=math.floor(self.hi))

    def at_least(self, least: float) -> Interval:
        """No bound below `least`."""
        return replace(self, lo=max(self.lo, least), hi=max(self.hi, least))

    def told(self, origin: str) -> Interval:
        """The same bounds with another origin."""
        return replace(self, origin=origin)


def point(value: float, origin: str = "computed") -> Interval:
    """A figure that is known exactly."""
    return Interval(value, value, origin)


def printed(value_bytes: float, origin: str = "logged") -> Interval:
    """The sizes that an engine would print like this one: 0.005 GiB up and down where it is a multiple of 0.01 GiB.

    A size that is no such multiple was not rounded (a metric, a flag) and is exact.

    >>> printed(4.24 * GIB).lo / GIB, printed(4.24 * GIB).hi / GIB, printed(1_000_000).exact
    (4.235, 4.245, True)
    """
    steps = round(value_bytes / _STEP_BYTES)
    if abs(value_bytes - steps * _STEP_BYTES) > 1:  # a byte is lost where the size was kept as a whole number
        return point(value_bytes, origin)
    return Interval((steps - 0.5) * _STEP_BYTES, (steps + 0.5) * _STEP_BYTES, origin)


def weakest(*figures: Interval) -> str:
    """The origin that a result of these figures has."""
    return max((figure.origin for figure in figures), key=ORIGINS.index)


def total(figures: Iterable[Interval]) -> Interval:
    """The sum; exactly 0 for no figures."""
    result: Interval | None = None
    for figure in figures:
        result = figure if result is None else result + figure
    return result or point(0)


def smallest(figures: Iterable[Interval]) -> Interval:
    """What the least of these figures can be: the rule of the engine, where the poorest rank decides for all."""
    every = list(figures)
    return Interval(min(each.lo for each in every), min(each.hi for each in every), weakest(*every))


def largest(figures: Iterable[Interval]) -> Interval:
    """What the greatest of these figures can be."""
    every = list(figures)
    return Interval(max(each.lo for each in every), max(each.hi for each in every), weakest(*every))


def _of(value: Interval | float, like: Interval) -> Interval:
    return value if isinstance(value, Interval) else Interval(value, value, like.origin)


def hull(figures: Iterable[Interval]) -> Interval:
    """From the least to the greatest that any of these figures can be: for what is one of them and nobody knows which.

    >>> hull([Interval(1, 2), Interval(4, 5)])
    Interval(lo=1, hi=5, origin='computed')
    """
    every = list(figures)
    return Interval(min(each.lo for each in every), max(each.hi for each in every), weakest(*every))
