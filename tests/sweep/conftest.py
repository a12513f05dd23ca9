"""A small generated fleet and the store of its first night, made once for all tests of sweeps."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "fleet"))

pytest.importorskip("pyarrow", reason="sweeps need pyarrow: pip install 'oomdoc[sweep]'")

from make_fleet import write_fleet
from night import BUNDLES

from grids import made_once
from oomdoc import diagnose
from oomdoc.intake.bundle import Intake
from oomdoc.judge.rules import rules_version
from oomdoc.model import Report
from oomdoc.sweep import engines, evidence, work
from oomdoc.sweep.run import Settings, sweep

NIGHT = "2026-11-20"


@pytest.fixture(scope="session")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `fleet` and `store`; tests take copies and never write into it."""

    def make(root: Path) -> None:
        write_fleet(root / "fleet", BUNDLES)
        sweep([str(root / "fleet")], Settings(str(root / "store"), night=NIGHT))

    return made_once("swept", tmp_path_factory.getbasetemp(), make)


@pytest.fixture
def store(swept: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy of the store of the first night."""
    shutil.copytree(swept / "store", tmp_path / "store")
    yield tmp_path / "store"


class Analysed(NamedTuple):
    """What a worker takes out of an analysis."""

    report: Report
    packed: bytes | None


_ANALYSED: dict[tuple[object, ...], Analysed] = {}


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[object, ...], Analysed]:
    """Workers in this process, and equal bundles analysed once in it: for what is asked of stores, states and places.

    What a worker is, is asked where this is not used. Where reading anew is the point, what was kept is forgotten first.
    """
    return _sweep_here(monkeypatch)


@pytest.fixture(scope="module")
def all_here() -> Iterator[None]:
    """The same for all of a module, whose fixtures sweep."""
    with pytest.MonkeyPatch.context() as patch:
        _sweep_here(patch)
        yield


def _sweep_here(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[object, ...], Analysed]:

    def in_this_process(tasks: Iterator[dict[str, Any]], *_: object) -> Iterator[dict[str, Any]]:
        for task in tasks:
            yield json.loads(work.run(json.dumps(task).encode()))

    @contextmanager
    def once(intake: Intake, options: diagnose.Options) -> Iterator[Analysed]:
        assert options.loaded is not None
        files = [(name, hashlib.file_digest(path.open("rb"), "sha256").digest()) for path, name in intake.taken_in()]
        goes_on = options.resumed is not None and bool(options.resumed.known)
        key = (intake.name, *files, *intake.unread, rules_version(options.loaded[0]), goes_on)
        if goes_on or key not in _ANALYSED:
            with diagnose.analyze(intake, options) as analysis:
                _ANALYSED[key] = Analysed(analysis.report, evidence.pack(analysis))
        told = _ANALYSED[key]
        if options.resumed is not None and options.resumed.kept:
            del _ANALYSED[key]  # a second reading would have to keep as much
        yield told

    monkeypatch.setattr(engines, "embedded", in_this_process)
    monkeypatch.setattr(work, "diagnose", SimpleNamespace(analyze=once, Options=diagnose.Options))
    monkeypatch.setattr(work, "evidence", SimpleNamespace(judge=evidence.judge, pack=lambda analysed: analysed.packed))
    return _ANALYSED
