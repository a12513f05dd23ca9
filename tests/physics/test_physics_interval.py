"""Intervals: what goes in comes out as wide, printed figures keep their rounding, origins only get weaker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoc.physics.interval import ORIGINS, Interval, largest, point, printed, smallest, total, weakest
from oomdoc.units import GIB

NUMBERS = st.floats(-1e9, 1e9, allow_nan=False).map(lambda value: round(value, 3))


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    ends = sorted((draw(NUMBERS), draw(NUMBERS)))
    return Interval(ends[0], ends[1], draw(st.sampled_from(ORIGINS)))


@st.composite
def members(draw: st.DrawFn) -> tuple[Interval, float]:
    interval = draw(intervals())
    share = draw(st.floats(0, 1))
    return interval, min(max(interval.lo + share * (interval.hi - interval.lo), interval.lo), interval.hi)


@given(members(), members())
def test_the_result_of_members_is_a_member_of_the_result(
    one: tuple[Interval, float], two: tuple[Interval, float]
) -> None:
    (a, x), (b, y) = one, two
    slack = 1e-6 * (abs(x) + abs(y) + abs(x * y) + 1)
    for result, value in ((a + b, x + y), (a - b, x - y), (a * b, x * y)):
        assert result.lo - slack <= value <= result.hi + slack
    if 0 not in b:
        result = a / b
        assert result.lo - 1e-6 * (abs(x / y) + 1) <= x / y <= result.hi + 1e-6 * (abs(x / y) + 1)


@given(intervals(), intervals())
def test_origins_only_get_weaker(a: Interval, b: Interval) -> None:
    assert ORIGINS.index((a + b).origin) == max(ORIGINS.index(a.origin), ORIGINS.index(b.origin))
    assert weakest(a, b) == (a * b).origin == (a - b).origin
    assert (a + 1).origin == a.origin == (2 * a).origin


@given(st.integers(-10_000, 50_000))
def test_a_printed_size_holds_every_size_that_prints_so(hundredths: int) -> None:
    size = round(hundredths / 100 * GIB)
    interval = printed(size)
    assert size in interval
    assert f"{interval.lo / GIB + 1e-9:.2f}" == f"{interval.hi / GIB - 1e-9:.2f}" or hundredths == 0
    assert interval.hi - interval.lo == pytest.approx(0.01 * GIB)


def test_a_size_that_no_engine_would_print_is_exact() -> None:
    assert printed(1_234_567_890).exact
    assert point(7, "given").exact and point(7, "given").middle == 7


@given(st.lists(intervals(), min_size=1, max_size=5))
def test_the_poorest_and_the_fullest(figures: list[Interval]) -> None:
    assert smallest(figures).lo == min(each.lo for each in figures)
    assert smallest(figures).hi == min(each.hi for each in figures)
    assert largest(figures).hi == max(each.hi for each in figures)
    assert total([]) == point(0)


def test_what_is_no_interval_is_refused() -> None:
    with pytest.raises(ValueError, match="no interval"):
        Interval(2, 1)
    with pytest.raises(ValueError, match="no interval"):
        Interval(float("nan"), 1)
    with pytest.raises(ValueError, match="no origin"):
        Interval(1, 2, "hearsay")
    with pytest.raises(ZeroDivisionError):
        point(1) / Interval(-1, 1)
