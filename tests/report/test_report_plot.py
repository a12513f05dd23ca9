"""Charts of a query in a terminal: every number in its place, nothing unknown drawn as zero, no width broken."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from oomdoc.cli.entry import run
from oomdoc.report.plot import HEIGHT, chart

LONG_CHATS = Path(__file__).parents[2] / "sample_logs" / "kv-demand-long-chats"
TALL = " ▁▂▃▄▅▆▇█"


def heights(text: str) -> list[int]:
    """The height of each column of an area, in eighths of a line."""
    rows = [line.partition("┤")[2] for line in text.splitlines() if "┤" in line]
    assert len(rows) == HEIGHT
    wide = max(map(len, rows))
    return [sum(TALL.index(row.ljust(wide)[place]) for row in rows) for place in range(wide)]


def test_an_area_is_as_high_as_its_numbers() -> None:
    values = [0.0, 1.0, 2.0, 4.0, 8.0]
    made = chart(["t", "waiting"], [(1795205091.0 + 60 * n, value) for n, value in enumerate(values)], 80)
    assert heights(made) == [1, 8, 16, 32, 64]
    assert "waiting" in made and "8 ┤" in made
    assert "2026-11-20T20:04:51Z" in made and "2026-11-20T20:08:51Z" in made


def test_what_is_unknown_is_blank_and_what_is_below_zero_is_below_it() -> None:
    assert heights(chart(["n", "x"], [(1, 4), (2, None), (3, 2)], 80)) == [64, 0, 32]
    made = heights(chart(["n", "x"], [(1, -4), (2, 0), (3, 4)], 80))
    assert made == [1, 32, 64]


def test_many_points_are_told_by_the_highest_of_a_cell() -> None:
    rows = [(n, 1.0 if n == 777 else 0.5) for n in range(1000)]
    made = heights(chart(["n", "x"], rows, 60))
    assert made.count(64) == 1 and set(made) == {32, 64}
    assert abs(made.index(64) / len(made) - 0.777) < 0.03


def test_names_have_bars() -> None:
    made = chart(["tenant", "n"], [("a", 100), ("b", 50), ("c", None), ("d", Decimal("0"))], 60)
    bars = {line.split()[0]: line.count("█") for line in made.splitlines()[1:5]}
    assert bars["a"] // 2 == bars["b"] > 10 and bars["c"] == bars["d"] == 0
    assert re.search(r"^c +NULL$", made, re.M)


def test_a_column_alone_is_drawn_over_its_rows_and_texts_alone_are_not_drawn() -> None:
    assert "row" not in chart(["x"], [("a",)], 60).splitlines()[0] and "no column of numbers" in chart(
        ["x"], [("a",)], 60
    )
    assert heights(chart(["x"], [(1,), (2,)], 60)) == [32, 64]
    assert chart(["x"], [], 60) == "(0 rows)\n"
    assert "2026-11-20" in chart(["time", "x"], [(dt.datetime(2026, 11, 20), 1), (dt.datetime(2026, 11, 21), 2)], 80)


_CELLS = st.one_of(st.none(), st.integers(), st.floats(), st.text(max_size=30), st.booleans())


@given(st.lists(st.tuples(_CELLS, _CELLS, _CELLS), max_size=30), st.integers(20, 160))
def test_any_rows_are_drawn_within_the_width(rows: list[tuple[object, ...]], width: int) -> None:
    made = chart(["a", "b", "c"], rows, width)
    assert made.endswith("\n") and "\x1b" not in made
    assert all(cell_len(line) <= max(width, 80) for line in made.splitlines() if "█" in line)


@pytest.mark.parametrize("form", ["chart"])
def test_the_command_draws(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT t, kv_used FROM engine_stat"
    assert run(["sql", str(LONG_CHATS), query, "--format", form, "--quiet"]) == 0
    told = capsys.readouterr().out
    assert max(heights(told)) == 64 and "(540 rows)" in told
