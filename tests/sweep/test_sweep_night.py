"""Nights on a generated fleet: what is read, what is told, and that nothing is told twice."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from make_fleet import write_bundle
from night import BUNDLES, ask, committed, night

from oomdoc import cli, diagnose
from oomdoc.errors import BusyError, UsageError
from oomdoc.judge.rules import rules_folder
from oomdoc.sweep.dataset import Dataset
from oomdoc.sweep.locks import locked
from oomdoc.sweep.places import Access, Folder, place
from oomdoc.sweep.run import Settings, sweep

FIRST, SECOND, THIRD = "2026-11-20", "2026-11-21", "2026-11-22"

pytestmark = pytest.mark.usefixtures("here")


def test_a_fleet_is_read_once_and_told_by_cause(swept: Path) -> None:
    rows = ask(swept / "store", "SELECT status, count(*) FROM bundle GROUP BY status")
    assert rows == [("read", BUNDLES)]
    causes = dict(ask(swept / "store", "SELECT cause, count(*) FROM bundle GROUP BY cause"))
    assert {"healthy", "gpu-shared", "not-memory", "weights-exceed-gpu"} <= set(causes)
    ((host,),) = ask(swept / "store", "SELECT DISTINCT host FROM bundle WHERE name LIKE 'gpu-node-07_%'")
    assert host == "gpu-node-07"


def test_a_row_says_what_analyze_says(swept: Path) -> None:
    for key, sha256, cause, probability in ask(
        swept / "store",
        "(SELECT bundle, sha256, cause, probability FROM bundle WHERE bundle LIKE '%/archives/%' ORDER BY bundle LIMIT 1) UNION ALL "
        "(SELECT bundle, sha256, cause, probability FROM bundle WHERE bundle LIKE '%/logs/%' ORDER BY bundle LIMIT 1)",
    ):
        with diagnose.analyze(key) as analysis:
            report = analysis.report
        assert (report.bundle.sha256, report.diagnoses[0].cause, report.diagnoses[0].probability) == (
            sha256,
            cause,
            probability,
        )
        told = ask(swept / "store", f"SELECT cause, probability FROM finding WHERE bundle = '{key}' ORDER BY rank")
        assert told == [
            (item.cause, item.probability) for item in report.diagnoses if item.rank == 1 or item.probability >= 0.05
        ]


def test_unchanged_input_is_not_read_again(swept: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = committed(store)[0]
    monkeypatch.setattr("oomdoc.sweep.engines.embedded", lambda *_: pytest.fail("nothing was to be read"))
    told = night(store, swept / "fleet", SECOND)
    assert (told.counts.read, told.counts.unchanged, told.new_incidents) == (0, BUNDLES, 0)
    assert committed(store)[0] == before
    night(store, swept / "fleet", SECOND)
    assert [entry["night"] for entry in committed(store)[1]] == [FIRST, SECOND]


def test_only_what_is_new_is_read(swept: Path, store: Path, tmp_path: Path) -> None:
    new = write_bundle(tmp_path / "more", 900, 7, SECOND, cause="shared")
    told = night(store, [swept / "fleet", tmp_path / "more"], SECOND)
    assert (told.counts.found, told.counts.read, told.counts.unchanged) == (BUNDLES + 1, 1, BUNDLES)
    assert [failing.bundle for failing in told.failing] == [str(new)]
    assert ask(store, f"SELECT bundle FROM bundle WHERE night = '{SECOND}'") == [(str(new),)]


def test_touched_but_equal_is_hashed_and_not_judged(tmp_path: Path) -> None:
    path = write_bundle(tmp_path / "in", 0, 3, FIRST, cause="shared")
    folder = write_bundle(tmp_path / "in", 1, 3, FIRST, cause="pool")
    night(tmp_path / "s", tmp_path / "in", FIRST)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    os.utime(folder / "vllm.log", (1_700_000_000, 1_700_000_000))
    told = night(tmp_path / "s", tmp_path / "in", SECOND)
    assert (told.counts.read, told.counts.unchanged) == (0, 2)
    assert len(ask(tmp_path / "s", "SELECT bundle FROM seen")) == 2
    assert len(ask(tmp_path / "s", "SELECT bundle FROM incident")) == 2
    # and the new times count from here on
    night(tmp_path / "s", tmp_path / "in", THIRD)
    assert len(ask(tmp_path / "s", "SELECT bundle FROM seen")) == 2


def test_a_grown_log_keeps_its_old_incidents_and_tells_the_new_one(tmp_path: Path) -> None:
    folder = write_bundle(tmp_path / "in", 1, 3, FIRST, cause="shared")
    night(tmp_path / "s", tmp_path / "in", FIRST)
    later = write_bundle(tmp_path / "other", 1, 3, SECOND, cause="pool")
    log = folder / "vllm.log"
    log.write_text(log.read_text() + (later / "vllm.log").read_text())
    os.utime(log, (1_760_000_000, 1_760_000_000))
    told = night(tmp_path / "s", tmp_path / "in", SECOND)
    assert told.new_incidents == 1
    assert [(group.cause, group.new) for group in told.groups] == [("kv-pool-below-max-model-len", True)]
    keys = ask(tmp_path / "s", "SELECT incident_key, first_night::VARCHAR FROM latest_incident ORDER BY 2")
    assert [first for _, first in keys] == [FIRST, SECOND]
    assert len(ask(tmp_path / "s", "SELECT incident_key FROM new_incident")) == 2


def test_a_copy_is_told_once(tmp_path: Path) -> None:
    path = write_bundle(tmp_path / "in", 0, 3, FIRST, cause="shared")
    shutil.copy2(path, path.with_name("zz-copy.tar.gz"))
    told = night(tmp_path / "s", tmp_path / "in", FIRST)
    assert (told.counts.copies, told.new_incidents) == (1, 1)
    assert ask(tmp_path / "s", "SELECT name, copy_of FROM bundle WHERE status = 'copy'") == [
        ("zz-copy.tar.gz", str(path))
    ]
    assert night(tmp_path / "s", tmp_path / "in", SECOND).counts.unchanged == 2


def test_a_bundle_read_twice_in_a_night_has_one_truth(tmp_path: Path) -> None:
    folder = write_bundle(tmp_path / "in", 1, 3, FIRST, cause="shared")
    night(tmp_path / "s", tmp_path / "in", FIRST)
    shutil.copytree(write_bundle(tmp_path / "other", 1, 3, FIRST, cause="healthy"), folder, dirs_exist_ok=True)
    night(tmp_path / "s", tmp_path / "in", FIRST)
    assert ask(tmp_path / "s", "SELECT verdict FROM bundle") == [("healthy",)]
    assert ask(tmp_path / "s", "SELECT cause FROM incident") == []


def test_new_rules_judge_kept_evidence_without_reading(tmp_path: Path) -> None:
    write_bundle(tmp_path / "in", 0, 3, FIRST, cause="shared")
    write_bundle(tmp_path / "in", 1, 3, FIRST, cause="pool")
    night(tmp_path / "s", tmp_path / "in", FIRST)
    mine = tmp_path / "rules" / "scheduling"
    mine.mkdir(parents=True)
    text = (rules_folder() / "scheduling" / "gpu-shared.toml").read_text()
    (mine / "gpu-shared.toml").write_text(text.replace("title", "# my own\ntitle", 1))
    told = night(tmp_path / "s", tmp_path / "in", SECOND, rules=tmp_path / "rules")
    assert (told.counts.judged, told.counts.read, told.new_incidents) == (2, 0, 0)
    same = "SELECT bundle, cause, probability, fingerprint FROM incident WHERE night = '{}' ORDER BY bundle"
    # what these rules say of the same bundles where they are read
    assert night(tmp_path / "anew", tmp_path / "in", SECOND, rules=tmp_path / "rules").counts.read == 2
    assert ask(tmp_path / "s", same.format(SECOND)) == ask(tmp_path / "anew", same.format(SECOND))
    of_cause = same.replace("probability, ", "")
    assert ask(tmp_path / "s", of_cause.format(FIRST)) == ask(tmp_path / "s", of_cause.format(SECOND))
    assert night(tmp_path / "s", tmp_path / "in", THIRD, rules=tmp_path / "rules").counts.unchanged == 2


def test_errors_are_told_every_night_and_read_once(tmp_path: Path) -> None:
    write_bundle(tmp_path / "in", 0, 3, FIRST, cause="healthy")
    broken = tmp_path / "in" / "gpu-node-9_1.tar.gz"
    broken.write_bytes(b"")
    os.utime(broken, (1_700_000_000, 1_700_000_000))
    for date in (FIRST, SECOND):
        told = night(tmp_path / "s", tmp_path / "in", date)
        (error,) = told.errors
        assert (error.bundle, error.host, error.status, error.since) == (str(broken), "gpu-node-9", "unreadable", FIRST)
    assert len(ask(tmp_path / "s", "SELECT bundle FROM bundle WHERE status = 'unreadable'")) == 1
    broken.unlink()
    assert night(tmp_path / "s", tmp_path / "in", THIRD).errors == ()


def test_rebuild_reads_everything_and_changes_nothing(swept: Path, tmp_path: Path, here: dict[Any, Any]) -> None:
    few = sorted((swept / "fleet" / "archives").iterdir())[:3]
    night(tmp_path / "s", few, FIRST)
    before = committed(tmp_path / "s")
    here.clear()
    told = night(tmp_path / "s", few, FIRST, rebuild=True)
    assert told.counts.read == 3
    assert committed(tmp_path / "s") == before


def test_retention_forgets_nights_and_reads_nothing_anew(swept: Path, store: Path, tmp_path: Path) -> None:
    told = night(store, swept / "fleet", "2027-01-20", retention_days=30)
    assert (told.counts.read, told.counts.unchanged) == (0, BUNDLES)
    assert ask(store, "SELECT count(*) FROM incident") == [(0,)]
    assert ask(store, "SELECT count(*) FROM bundle") == [(BUNDLES,)]
    # of a bundle that is gone nothing stays
    few = sorted((swept / "fleet" / "archives").iterdir())[:2]
    night(store, few, "2027-01-21", retention_days=30)
    assert ask(store, "SELECT count(*) FROM bundle") == [(2,)]
    assert ask(store, "SELECT count(*) FROM evidence") == [(2,)]
    night(store, few, "2027-01-22")
    kept = {part["path"] for part in committed(store)[0]}
    assert {path.relative_to(store).as_posix() for path in store.rglob("*.parquet")} == kept


def test_nights_go_forward(swept: Path, store: Path) -> None:
    with pytest.raises(UsageError, match="before 2026-11-20"):
        night(store, swept / "fleet", "2026-11-19")
    with pytest.raises(UsageError, match="no date"):
        night(store, swept / "fleet", "20261121")


def test_a_second_sweep_steps_back(swept: Path, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = committed(store)
    with locked(place(str(store), Access())):
        with pytest.raises(BusyError):
            night(store, swept / "fleet", SECOND)
        assert cli.run(["sweep", str(swept / "fleet"), "--store", str(store), "--night", SECOND]) == 75
    assert "another sweep is at work" in capsys.readouterr().err
    assert committed(store) == before


def test_a_full_disk_ends_in_a_sentence_and_loses_nothing(
    swept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from oomdoc.errors import BundleError

    few = sorted((swept / "fleet" / "archives").iterdir())[:4]
    night(tmp_path / "whole", few, FIRST)
    written = Folder.write
    room = [12]

    def full(self: Folder, name: str, data: bytes) -> None:
        room[0] -= 1
        if room[0] < 0:
            raise OSError(28, "No space left on device")
        written(self, name, data)

    monkeypatch.setattr(Folder, "write", full)
    with pytest.raises(BundleError, match="No space left on device"):
        night(tmp_path / "s", few, FIRST, batch_bundles=1, jobs=1)
    assert Dataset(place(str(tmp_path / "s"), Access())).load().manifest.pending
    monkeypatch.setattr(Folder, "write", written)
    night(tmp_path / "s", few, FIRST)
    assert committed(tmp_path / "s") == committed(tmp_path / "whole")


def test_a_night_that_was_never_finished_is_finished_by_the_next(swept: Path, tmp_path: Path) -> None:
    few = sorted((swept / "fleet" / "archives").iterdir())[:3]

    class StopError(Exception):
        pass

    def stop(done: int, of: int, errors: int) -> None:
        if done == 3:
            raise StopError

    with pytest.raises(StopError):
        night(tmp_path / "s", few, FIRST, batch_bundles=1, jobs=1, progress=stop)
    assert ask(tmp_path / "s", "SELECT * FROM bundle") == []
    told = night(tmp_path / "s", few, SECOND)
    assert told.counts.read == 1
    assert ask(tmp_path / "s", "SELECT night::VARCHAR, count(*) FROM bundle GROUP BY 1 ORDER BY 1") == [
        (FIRST, 2),
        (SECOND, 1),
    ]


def test_a_folder_that_is_no_store_is_left_alone(tmp_path: Path, swept: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "manifest.json").write_text('{"name": "web app"}')
    with pytest.raises(UsageError, match="not that of a sweep"):
        night(tmp_path / "s", swept / "fleet", FIRST)
    (tmp_path / "s" / "manifest.json").write_text(json.dumps({"oomdoc_dataset": "99"}))
    with pytest.raises(UsageError, match="dataset 99"):
        night(tmp_path / "s", swept / "fleet", FIRST)
    with pytest.raises(UsageError, match="no store"):
        ask(tmp_path / "nowhere", "SELECT 1")


def test_other_readers_see_the_same(store: Path) -> None:
    """Through the manifest, as docs/sweep.md says: polars, and DuckDB on the files themselves."""
    polars = pytest.importorskip("polars")
    import pyarrow.parquet as pq

    page = (Path(__file__).parents[2] / "docs" / "sweep.md").read_text(encoding="utf-8")
    space: dict[str, Any] = {}
    exec(page.split("```python\n")[1].split("```")[0], space)
    files = space["files"](str(store), "bundle")
    told = ask(store, "SELECT count(*), count(DISTINCT cause), sum(bytes)::BIGINT FROM bundle")[0]
    frame = polars.read_parquet(files, hive_partitioning=False)
    assert (frame.height, frame["cause"].n_unique(), frame["bytes"].sum()) == told
    schema = pq.read_schema(files[0])
    assert schema.metadata[b"oomdoc_dataset"] == b"1"
    assert schema.field("verdict").metadata[b"says"].startswith(b"diagnosed")


def test_settings_that_are_wrong_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--engine slurm"):
        sweep([str(tmp_path)], Settings(str(tmp_path / "s"), engine="slurm"))
