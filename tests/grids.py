"""What many tests ask of one thing: a part of a grid, or with OOMDOC_WHOLE all of it (`make whole`), and reports of the samples.

A grid is many inputs for one claim (each sample, each variant of noise). What is claimed of each shape, format or message by
itself is no grid and is always tried.
"""

from __future__ import annotations

import dataclasses
import fcntl
import functools
import os
import pickle
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from oomdoc.diagnose import Options, analyze
from oomdoc.model import Report

SAMPLES = Path(__file__).parents[1] / "sample_logs"
WHOLE = bool(os.environ.get("OOMDOC_WHOLE"))
SHARED: list[Path] = []
"""The folder where workers of one run leave reports for each other; conftest.py names it."""
T = TypeVar("T")


def some(items: Sequence[T], every: int) -> Sequence[T]:
    """Every so many of the items, the first among them."""
    return items if WHOLE else items[::every]


def made_once(name: str, root: Path, make: Callable[[Path], None]) -> Path:
    """A folder below the root that `make` fills; of the workers of one run the first that asks does, for all of them."""
    root = SHARED[0] if SHARED else root
    folder, done = root / name, root / f"{name}.done"
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            done.touch()
    return folder


@functools.cache
def detailed_report_of(name: str) -> Report:
    """The report of a shipped sample with the lines behind its references, analysed once in a run of the tests."""
    kept = SHARED[0] / name if SHARED else None
    if kept and kept.exists():
        report: Report = pickle.loads(kept.read_bytes())
        return report
    with analyze(SAMPLES / name, Options(details=True)) as analysis:
        report = analysis.report
    if kept:
        begun = kept.with_name(f"{name}.{os.getpid()}")
        begun.write_bytes(pickle.dumps(report))
        begun.replace(kept)
    return report


@functools.cache
def report_of(name: str) -> Report:
    """The report of a shipped sample: the detailed one without its details (test_diagnose.py: they are all the difference)."""
    return dataclasses.replace(detailed_report_of(name), excerpts=(), fix_replay=None)
