"""Sweeps that are killed, that meet each other, and bundles that kill their worker."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from crash import contents, rounds, start
from make_fleet import write_bundle, write_fleet
from night import ask, night

from grids import WHOLE
from oomdoc.sweep import engines, work
from oomdoc.sweep.engines import Limits, Worker
from oomdoc.sweep.places import Access
from oomdoc.sweep.repair import check

FIRST = "2026-11-20"


@pytest.mark.long
def test_killed_at_random_the_store_is_that_of_an_undisturbed_sweep(tmp_path: Path) -> None:
    stores = 4 if WHOLE else 1
    killed, wrong = rounds(stores, 4, seed=5, folder=tmp_path)
    assert wrong == 0
    assert killed >= 2 * stores


@pytest.mark.long
def test_two_sweeps_at_once_leave_one_truth(tmp_path: Path) -> None:
    write_fleet(tmp_path / "fleet", 3)
    assert start(tmp_path / "alone", tmp_path / "fleet").wait() == 0
    both = [start(tmp_path / "store", tmp_path / "fleet") for _ in range(2)]
    codes = sorted(process.wait() for process in both)
    assert codes in ([0, 0], [0, 75])
    assert contents(tmp_path / "store")[0] == contents(tmp_path / "alone")[0]
    assert not check(str(tmp_path / "store"), Access()).damage


def _told(task: dict[str, Any], limits: Limits, folder: Path) -> dict[str, Any]:
    return next(engines.embedded(iter([task]), limits, 1, folder))


def _task(path: Path) -> dict[str, Any]:
    from oomdoc.sweep.ledger import Step
    from oomdoc.sweep.run import _task as made
    from oomdoc.sweep.sources import find

    (candidate,) = find([str(path)], "folder", Access(), time.time_ns())[0]
    return made(Step(candidate), None, Access())


def test_a_worker_that_dies_costs_one_bundle(tmp_path: Path) -> None:
    worker = Worker(Limits(), tmp_path / "w")
    worker.start(_task(write_bundle(tmp_path / "in", 0, 3, FIRST)))
    os.kill(worker._process.pid, signal.SIGKILL)
    engines.wait_for([worker])
    _, outcome = worker.result()
    assert (outcome["status"], outcome["why"][:26]) == ("crashed", "the worker died (SIGKILL, ")
    worker.start(_task(write_bundle(tmp_path / "in", 0, 3, FIRST)))
    engines.wait_for([worker])
    assert worker.result()[1]["status"] == "read"
    worker.stop()
    assert not (tmp_path / "w").exists()


def test_a_bundle_has_its_time(tmp_path: Path) -> None:
    outcome = _told(_task(write_bundle(tmp_path / "in", 0, 3, FIRST)), Limits(seconds=0.01), tmp_path / "w")
    assert outcome["status"] == "timeout"


def test_a_bundle_has_its_memory(tmp_path: Path) -> None:
    if not sys.platform.startswith("linux"):
        return
    outcome = _told(_task(write_bundle(tmp_path / "in", 0, 3, FIRST)), Limits(memory_bytes=90 << 20), tmp_path / "w")
    assert outcome["status"] in ("memory", "crashed", "error"), outcome


def test_failures_of_the_machine_are_tried_three_nights(tmp_path: Path) -> None:
    path = write_bundle(tmp_path / "in", 0, 3, FIRST, cause="healthy")
    write_bundle(tmp_path / "in", 1, 3, FIRST, cause="healthy")
    night(tmp_path / "s", tmp_path / "in" / "logs", FIRST)
    for day in (21, 22, 23, 24):
        told = night(tmp_path / "s", tmp_path / "in", f"2026-11-{day}", limits=Limits(seconds=0.001))
        assert [(error.bundle, error.status, error.since) for error in told.errors] == [
            (str(path), "timeout", "2026-11-21")
        ]
    attempts = ask(tmp_path / "s", "SELECT attempts FROM bundle WHERE status = 'timeout' ORDER BY night")
    assert attempts == [(1,), (2,), (3,)]


def test_a_bundle_replaced_while_it_is_read_is_read_again(tmp_path: Path, monkeypatch: Any) -> None:
    path = write_bundle(tmp_path / "in", 0, 3, FIRST, cause="shared")
    other = write_bundle(tmp_path / "other", 0, 3, FIRST, cause="healthy").read_bytes()
    task = _task(path)
    analyze = work.diagnose.analyze
    calls = []

    def replacing(intake: Any, options: Any) -> Any:
        analysis = analyze(intake, options)
        if not calls:
            path.write_bytes(other)
        calls.append(1)
        return analysis

    monkeypatch.setattr(work.diagnose, "analyze", replacing)
    outcome = work._outcome(task)
    assert (outcome["status"], len(calls)) == ("read", 2)
    assert outcome["rows"]["bundle"][0]["verdict"] == "healthy"
    assert outcome["signature"] != task["signature"]

    def always(intake: Any, options: Any) -> Any:
        analysis = analyze(intake, options)
        path.write_bytes(path.read_bytes())
        return analysis

    monkeypatch.setattr(work.diagnose, "analyze", always)
    assert work._outcome(task)["status"] == "changing"


def test_a_bundle_that_is_gone_is_told(tmp_path: Path) -> None:
    path = write_bundle(tmp_path / "in", 0, 3, FIRST)
    task = _task(path)
    path.unlink()
    assert work._outcome(task)["status"] == "gone"


def test_an_archive_cut_short_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = write_bundle(tmp_path / "in", 0, 3, FIRST, cause="demand")
    path.write_bytes(path.read_bytes()[:-40])
    night(tmp_path / "s", path, FIRST)
    assert ask(tmp_path / "s", "SELECT status, unread > 0, model IS NOT NULL FROM bundle") == [("read", True, True)]


def test_a_long_path_for_temporary_files_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server that forks workers listens on a socket there, whose path may have 107 bytes."""
    folder = tmp_path / ("t" * 120)
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    logs = tmp_path / "in"
    logs.mkdir()
    (logs / "vllm.log").write_text("INFO 11-20 20:04:40 [api_server.py:1289] vLLM API server version 0.11.0\n")
    assert night(tmp_path / "s", logs, FIRST).errors == ()
    assert ask(tmp_path / "s", "SELECT status FROM bundle") == [("read",)]
