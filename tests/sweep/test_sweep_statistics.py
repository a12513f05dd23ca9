"""Shares compared: against whole-number arithmetic, and on series with and without a change."""

from __future__ import annotations

from math import comb, isclose

from hypothesis import given
from hypothesis import strategies as st

from oomdoc.sweep.statistics import best_split, fisher


def exact(hits: int, of: int, others: int, of_others: int) -> float:
    """The two-sided test in whole numbers: the plain twin."""
    total, marked = of + of_others, hits + others
    ways = {
        count: comb(of, count) * comb(of_others, marked - count)
        for count in range(max(0, marked - of_others), min(of, marked) + 1)
    }
    return sum(way for way in ways.values() if way <= ways[hits]) / comb(total, marked)


@st.composite
def tables(draw: st.DrawFn) -> tuple[int, int, int, int]:
    of, of_others = draw(st.integers(1, 60)), draw(st.integers(1, 60))
    return draw(st.integers(0, of)), of, draw(st.integers(0, of_others)), of_others


@given(tables())
def test_fisher_is_the_whole_number_arithmetic(table: tuple[int, int, int, int]) -> None:
    assert isclose(fisher(*table), exact(*table), rel_tol=1e-6)
    hits, of, others, of_others = table
    assert isclose(fisher(others, of_others, hits, of), fisher(*table), rel_tol=1e-9)


def test_fisher_on_a_textbook_table() -> None:
    # Fisher's lady: all four of four told right
    assert isclose(fisher(4, 4, 0, 4, more_only=True), 1 / 70)


def test_many_and_few_agree_where_they_meet() -> None:
    exactly, nearly = fisher(1040, 9000, 950, 9000), fisher(1055, 9000, 964, 9000)
    assert isclose(exactly, nearly, rel_tol=0.15) and 0.01 < nearly < 0.05
    assert isclose(fisher(1055, 9000, 964, 9000, more_only=True), nearly / 2)


def test_large_tables_stay_finite() -> None:
    assert fisher(300_000, 1_000_000, 100_000, 1_000_000) == 0.0
    assert fisher(100_000, 1_000_000, 100_000, 1_000_000) > 0.9


@given(st.lists(st.integers(1, 40), min_size=2, max_size=8))
def test_an_even_series_has_no_split_that_means_anything(sizes: list[int]) -> None:
    split = best_split([(0, size) for size in sizes])
    assert split is not None and split[1] == 1.0


def test_a_step_is_found_where_it_is() -> None:
    split = best_split([(1, 30), (0, 28), (1, 31), (14, 30), (12, 29)])
    assert split is not None
    assert split[0] == 3 and split[1] < 1e-6
    assert best_split([(3, 9)]) is None
