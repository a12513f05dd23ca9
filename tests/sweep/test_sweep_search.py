"""Which bundles show a line or a quantity, by what a store has kept."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from night import night

from oomdoc.cli.entry import run
from oomdoc.errors import UsageError
from oomdoc.sweep import evidence, search
from oomdoc.sweep.places import Access

SAMPLES = Path(__file__).parents[2] / "sample_logs"
SOME = ("killed-while-loading", "weights-70b-on-one-card", "healthy-older-server", "kv-demand-long-chats")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("search")
    for name in SOME:
        shutil.copytree(SAMPLES / name, root / "fleet" / name)
    shutil.copytree(SAMPLES / "killed-while-loading", root / "fleet" / "the-same-again")
    night(root / "store", root / "fleet", "2026-11-20")
    shutil.rmtree(root / "fleet")  # what is asked is what was kept
    return root / "store"


def names(found: search.Found) -> set[str]:
    return {Path(row[0]).name for row in found.rows}


def test_a_line_is_found_in_the_bundles_that_show_it(kept: Path) -> None:
    found = search.lines(str(kept), "TRIED to allocate", Access())
    assert names(found) == {"weights-70b-on-one-card"} and (found.asked, found.shown) == (4, 1)  # a copy is told once
    places = [row[2] for row in found.rows]
    assert len(places) == len(set(places)) and all(place.startswith("compose-logs.txt:") for place in places)
    for place in places[:2]:
        line = int(place.rpartition(":")[2])
        told = (SAMPLES / "weights-70b-on-one-card" / "compose-logs.txt").read_text().splitlines()[line - 1]
        assert "Tried to allocate" in told
    assert search.lines(str(kept), "no line says this", Access()).rows == ()
    with pytest.raises(UsageError):
        search.lines(str(kept), " ", Access())


def test_a_quantity_is_asked_of_every_bundle(kept: Path) -> None:
    found = search.answers(
        str(kept), "SELECT max(kv_used) AS peak FROM engine_stat HAVING max(kv_used) > 0.95", Access()
    )
    assert found.names == ("bundle", "peak") and names(found) == {"kv-demand-long-chats"}
    views = search.answers(str(kept), "SELECT kill_limit_bytes FROM host WHERE kill_limit_bytes > 0", Access())
    assert names(views) == {"killed-while-loading"}  # views of an incident are those of the gravest, as after `analyze`
    for wrong in ("DROP TABLE oom", "SELECT * FROM read_csv('/etc/passwd')", "SELECT nope FROM oom"):
        with pytest.raises(UsageError):
            search.answers(str(kept), wrong, Access())


def test_bundles_without_kept_evidence_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "healthy-older-server", tmp_path / "fleet" / "large")
    monkeypatch.setattr(evidence, "MOST_ROWS", 1)
    night(tmp_path / "store", tmp_path / "fleet", "2026-11-20", jobs=1)
    found = search.lines(str(tmp_path / "store"), "vllm", Access())
    assert found.asked + len(found.without) == 1


def test_the_command_groups_by_bundle_and_gives_rows_to_programs(
    kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sweep", "--store", str(kept), "--find", "tried to allocate"]) == 0
    told = capsys.readouterr()
    assert "weights-70b-on-one-card  weights-exceed-gpu, " in told.out and "1 of 4 bundles show it" in told.err
    assert run(["sweep", "--store", str(kept), "--find", "tried to allocate", "--format", "jsonl", "--quiet"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows and set(rows[0]) == {"bundle", "cause", "ref", "table", "text"}
    assert run(["sweep", "--store", str(kept), "--ask", "SELECT count(*) AS n FROM oom", "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("bundle,n\n")
    assert run(["sweep", str(kept), "--store", str(kept), "--find", "x"]) == 2
    assert run(["sweep", "--store", str(kept), "--find", "x", "--format", "junit"]) == 2
