"""How much of a grid a run tries: a part of it, spread over the whole, or with OOMDOC_WHOLE all (`make whole`).

A grid is many inputs for one claim (each sample, each variant of noise). What is claimed of each shape, format or message by
itself is no grid and is always tried.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import oomdoc
from oomdoc.model import Report

SAMPLES = Path(__file__).parents[1] / "sample_logs"
WHOLE = bool(os.environ.get("OOMDOC_WHOLE"))
T = TypeVar("T")


def some(items: Sequence[T], every: int) -> Sequence[T]:
    """Every so many of the items, the first among them."""
    return items if WHOLE else items[::every]


@functools.cache
def report_of(name: str) -> Report:
    """The report of a shipped sample, analysed once in a process."""
    with oomdoc.analyze(SAMPLES / name) as analysis:
        return analysis.report
