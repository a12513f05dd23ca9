"""Rows of a query as charts of a terminal: bars where the first column names things, an area over it where it counts or is a time."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from oomdoc.report.words import count, neutral
from oomdoc.units import show_time

HEIGHT = 8
"""Lines of an area."""
MOST_BARS = 60
_BLOCKS = " ▁▂▃▄▅▆▇█"
_EIGHTHS = " ▏▎▍▌▋▊▉"
_TIMES = ("t", "time", "moment")


def chart(names: Sequence[str], rows: Sequence[Sequence[Any]], width: int) -> str:
    """A chart for every column of numbers after the first column, which is what they are drawn over.

    A single column is drawn over the number of its row. Cells without a number stay empty: unknown is not zero.
    """
    if not rows:
        return "(0 rows)\n"
    own = len(names) == 1
    over = [float(place) for place in range(1, len(rows) + 1)] if own else [_number(row[0]) for row in rows]
    drawn = [
        place for place in range(0 if own else 1, len(names)) if any(_number(row[place]) is not None for row in rows)
    ]
    if not drawn:
        return "no column of numbers to draw: the first column is what is drawn over, the others what is drawn\n"
    blocks = []
    for place in drawn:
        values = [_number(row[place]) for row in rows]
        if all(each is not None for each in over):
            first = "row" if own else names[0]
            blocks.append(_area(names[place], first, [each for each in over if each is not None], values, width))
        else:
            blocks.append(_bars(names[place], [_label(row[0]) for row in rows], values, width))
    return "\n".join(blocks) + f"({count(len(rows), 'row')})\n"


def _area(name: str, over: str, places: Sequence[float], values: Sequence[float | None], width: int) -> str:
    """Values over places in order: the highest of each cell, from zero, or from the lowest where that is below it."""
    points = sorted((place, value) for place, value in zip(places, values, strict=True) if value is not None)
    if not points:
        return f"{neutral(name)}: no number\n"
    top, bottom = max(value for _, value in points), min(0.0, *(value for _, value in points))
    labels = [_written(top), _written(bottom)]
    room = max(map(len, labels))
    begin, end = points[0][0], points[-1][0]
    cells: list[float | None] = [None] * max(min(width - room - 2, max(len(places), 2)), 1)
    for place, value in points:
        cell = min(int((place - begin) / (end - begin) * len(cells)), len(cells) - 1) if end > begin else 0
        held = cells[cell]
        cells[cell] = value if held is None else max(held, value)
    span = top - bottom or 1.0
    lines = [f"{neutral(name)} (highest of each cell)" if len(points) > len(cells) else neutral(name)]
    for level in reversed(range(HEIGHT)):
        label = labels[0] if level == HEIGHT - 1 else labels[1] if level == 0 else ""
        drawn = ""
        for held in cells:
            eighths = 0 if held is None else max(math.ceil((held - bottom) / span * HEIGHT * 8), 1) - level * 8
            drawn += _BLOCKS[min(max(eighths, 0), 8)]
        lines.append(f"{label:>{room}} ┤{drawn.rstrip()}")
    left, right = _place(over, begin), _place(over, end)
    gap = max(len(cells) - len(left) - len(right), 1)
    lines.append(f"{'':>{room}}  {left}{' ' * gap}{right}")
    return "\n".join(lines) + "\n"


def _bars(name: str, labels: Sequence[str], values: Sequence[float | None], width: int) -> str:
    """A bar a row, as long as its number is of the largest; numbers below zero have their figure only."""
    from rich.cells import cell_len, set_cell_size

    shown = list(zip(labels, values, strict=True))[:MOST_BARS]
    room = min(max(cell_len(label) for label, _ in shown), width // 3)
    figures = ["NULL" if value is None else _written(value) for _, value in shown]
    wide = max(map(len, figures))
    top = max((value for _, value in shown if value is not None), default=0.0)
    space = max(width - room - wide - 4, 4)
    lines = [neutral(name)]
    for (label, value), figure in zip(shown, figures, strict=True):
        full = value / top * space if value is not None and value > 0 and top > 0 else 0.0
        bar = "█" * int(full) + _EIGHTHS[int(full % 1 * 8)]
        cut = label if cell_len(label) <= room else set_cell_size(label, room - 1) + "…"
        lines.append(f"{set_cell_size(cut, room)}  {figure:>{wide}}  {bar}".rstrip())
    if len(values) > len(shown):
        lines.append(f"and {count(len(values) - len(shown), 'row')} more")
    return "\n".join(lines) + "\n"


def _number(value: Any) -> float | None:
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        number = float(value)
        return number if math.isfinite(number) else None
    if isinstance(value, dt.datetime):
        return (value if value.tzinfo else value.replace(tzinfo=dt.UTC)).timestamp()
    return None


def _written(value: float) -> str:
    """A number as charts label it.

    >>> _written(12345.0), _written(0.51234), _written(-2.0)
    ('12,345', '0.5123', '-2')
    """
    return f"{value:,.0f}" if abs(value) < 1e15 and value == int(value) else f"{value:,.4g}"


def _label(value: Any) -> str:
    return "NULL" if value is None else neutral(str(value))


_SINCE = dt.datetime(2000, 1, 1, tzinfo=dt.UTC).timestamp()


def _place(over: str, value: float) -> str:
    """An end of the axis: a time where the column's name or its numbers say so."""
    if value >= _SINCE and (over in _TIMES or over.endswith(("_t", "_time"))):
        return show_time(value) or _written(value)
    return _written(value)
