"""A store that can be trusted: what is foreign stays, what is damaged is noticed, what can be mended is mended."""

from __future__ import annotations

import errno
import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from crash import rounds
from make_fleet import write_bundle
from night import BUNDLES, ask, committed, night, record

from grids import made_once, some
from oomdoc import cli
from oomdoc.errors import BundleError, BusyError, DamagedError, UsageError
from oomdoc.sweep import faults
from oomdoc.sweep.dataset import Dataset, existing
from oomdoc.sweep.locks import locked
from oomdoc.sweep.places import Access, Folder, place, temporary
from oomdoc.sweep.record import KEPT_GENERATIONS
from oomdoc.sweep.repair import check, repair
from oomdoc.sweep.trends import questions

FIRST, SECOND, THIRD = "2026-11-20", "2026-11-21", "2026-11-22"
TABLES = ("bundle", "finding", "incident", "ledger", "engine", "coverage", "evidence")


pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "LOOK_AGAIN_S", 0.0)


@pytest.fixture(scope="session")
def two_nights(swept: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`store` of the fleet with a bundle more in the second night; tests take copies."""

    def make(root: Path) -> None:
        shutil.copytree(swept / "store", root / "store")
        write_bundle(root / "more", 900, 7, SECOND, cause="shared")
        night(root / "store", [swept / "fleet", root / "more"], SECOND)

    return made_once("two-nights", tmp_path_factory.getbasetemp(), make)


@pytest.fixture
def old(two_nights: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy of a store of two nights, times of its files as they were."""
    shutil.copytree(two_nights / "store", tmp_path / "old")
    yield tmp_path / "old"


def everything(store: Path) -> dict[str, Any]:
    """All rows of all tables, as night and a hash: what differs is shown in short."""
    with questions(existing(str(store), Access())) as asked:
        every = {name: asked.query(f"SELECT * FROM {name}")[1] for name in TABLES}
    return {
        name: sorted((row[0].isoformat(), hashlib.sha256(repr(row).encode()).hexdigest()[:8]) for row in rows)
        for name, rows in every.items()
    }


def parquet(folder: Path) -> dict[str, str]:
    """The data files, and hashes of their bytes."""
    return {
        name: hashlib.sha256(data).hexdigest()[:8] for name, data in files(folder).items() if name.endswith(".parquet")
    }


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def a_file(store: Path, table: str, date: str = FIRST) -> Path:
    return next((store / table / f"day={date}").glob("*.parquet"))


# ---- what is foreign


@pytest.mark.parametrize(
    "name",
    [
        "evidence/important.txt",
        "bundle/photo.jpg",
        "bundle/day=2026-11-20/notes.parquet",
        "report.html",
        "records/todo.json",
        ".hidden",
    ],
)
def test_a_folder_that_holds_anything_else_is_refused_and_untouched(tmp_path: Path, swept: Path, name: str) -> None:
    folder = tmp_path / "mine"
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_text("x")
    before = files(folder)
    with pytest.raises(UsageError, match=f"no store of a sweep, and not empty: it holds {name}"):
        night(folder, swept / "fleet", FIRST)
    assert files(folder) == before
    assert cli.run(["sweep", str(swept / "fleet"), "--store", str(folder)]) == 2


def test_foreign_files_in_a_store_outlive_every_sweep(tmp_path: Path, swept: Path, store: Path) -> None:
    foreign = {
        "evidence/important.txt": b"1",
        "bundle/day=2026-11-20/copy of the table.parquet": b"2",
        "bundle/day=2026-11-20/0123456789abcdef0123.parquet": b"of the right shape, and named by no record",
        ".writing-letter": b"3",
        "records/notes.json": b"4",
        "lock.txt": b"5",
    }
    for name, data in foreign.items():
        (store / name).parent.mkdir(parents=True, exist_ok=True)
        (store / name).write_bytes(data)
    few = sorted((swept / "fleet" / "archives").iterdir())[:3]
    night(store, few, SECOND, rebuild=True)
    night(store, few, "2027-02-20", retention_days=3)
    night(store, few, "2027-02-21", retention_days=3)
    there = files(store)
    assert {name: there.get(name) for name in foreign} == foreign
    health = check(str(store), Access())
    assert not health.damage
    assert set(health.foreign) | set(health.left_over) == set(foreign)


def test_a_link_into_somebody_elses_folder_is_not_followed(tmp_path: Path, swept: Path) -> None:
    (tmp_path / "mine" / "evidence").mkdir(parents=True)
    (tmp_path / "mine" / "evidence" / "a.txt").write_text("x")
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "evidence").symlink_to(tmp_path / "mine" / "evidence")
    with pytest.raises(UsageError, match="it holds evidence"):
        night(tmp_path / "s", swept / "fleet", FIRST)
    assert (tmp_path / "mine" / "evidence" / "a.txt").read_text() == "x"


def test_a_store_is_made_in_an_empty_folder_and_asking_makes_none(tmp_path: Path, swept: Path) -> None:
    few = sorted((swept / "fleet" / "archives").iterdir())[:1]
    (tmp_path / "empty" / "lost+found").mkdir(parents=True)
    assert night(tmp_path / "empty", few, FIRST).counts.read == 1
    with pytest.raises(UsageError, match="no store"):
        ask(tmp_path / "nowhere", "SELECT 1")
    assert not (tmp_path / "nowhere").exists()


def test_a_record_cannot_name_files_outside_of_the_store(tmp_path: Path, store: Path) -> None:
    (tmp_path / "outside.parquet").write_text("x")
    told = record(store)
    for path in ("../outside.parquet", "evidence/important.txt", "/etc/passwd"):
        first_form = {**told, "retired": [path]}
        (store / "manifest.json").write_text(json.dumps(first_form))
        with pytest.raises(DamagedError, match="no file of a store"):
            night(store, tmp_path, SECOND)
    assert (tmp_path / "outside.parquet").exists()


# ---- a record that is lost or damaged


def lose(store: Path) -> None:
    (store / "manifest.json").unlink()


def empty(store: Path) -> None:
    (store / "manifest.json").write_bytes(b"")


def cut(store: Path) -> None:
    path = store / "manifest.json"
    path.write_bytes(path.read_bytes()[:30])


def binary(store: Path) -> None:
    (store / "manifest.json").write_bytes(os.urandom(500))


def newest_cut(store: Path) -> None:
    path = store / json.loads((store / "manifest.json").read_text())["record"]
    path.write_bytes(path.read_bytes()[:-100])


def newest_lost(store: Path) -> None:
    (store / json.loads((store / "manifest.json").read_text())["record"]).unlink()


def all_lost(store: Path) -> None:
    lose(store)
    shutil.rmtree(store / "records")


@pytest.mark.parametrize("harm", [lose, empty, cut, binary, newest_cut, newest_lost, all_lost])
def test_a_damaged_record_is_refused_and_mended_without_loss(
    old: Path, swept: Path, harm: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    before, rows = committed(old), everything(old)
    harm(old)
    data = parquet(old)
    assert cli.run(["sweep", str(swept / "fleet"), "--store", str(old), "--night", THIRD]) == 3
    error = capsys.readouterr().err
    assert "is damaged" in error and "--repair" in error and error.count("\n") == 1
    assert cli.run(["sql", str(old), "SELECT 1"]) == 3
    assert cli.run(["sweep", "--check", "--store", str(old)]) == 3
    assert parquet(old) == data, "nothing is removed"
    assert cli.run(["sweep", "--repair", "--store", str(old)]) == 0
    assert "mended: the record" in capsys.readouterr().out
    assert everything(old) == rows
    assert committed(old)[0] == before[0]
    if harm in (lose, empty, cut, binary):  # else how many bundles the second night found is not known any more
        assert committed(old)[1] == before[1]
    assert cli.run(["sweep", "--check", "--store", str(old)]) == 0
    told = night(old, swept / "fleet", THIRD)
    assert (told.counts.read, told.counts.unchanged, told.previous) == (0, BUNDLES, SECOND)


def test_a_record_made_from_files_takes_the_later_word_on_a_bundle(swept: Path, tmp_path: Path) -> None:
    """All files lie there, those that a second sweep of the night replaced too."""
    folder = write_bundle(tmp_path / "in", 1, 3, FIRST, cause="shared")
    write_bundle(tmp_path / "in", 2, 3, FIRST, cause="pool")
    store = tmp_path / "s"
    night(store, tmp_path / "in", FIRST)
    kept = {name: (data, (store / name).stat().st_mtime_ns) for name, data in files(store).items()}
    shutil.copytree(write_bundle(tmp_path / "other", 1, 3, FIRST, cause="healthy"), folder, dirs_exist_ok=True)
    night(store, tmp_path / "in", FIRST)
    night(store, tmp_path / "in", SECOND)
    rows = everything(store)
    assert ("healthy",) in ask(store, "SELECT verdict FROM bundle")
    for name, (data, written) in kept.items():
        if name.endswith(".parquet") and not (store / name).exists():
            (store / name).write_bytes(data)
            os.utime(store / name, ns=(written, written))
    all_lost(store)
    health = repair(str(store), Access())
    assert not health.lost
    assert everything(store) == rows
    assert [entry["night"] for entry in record(store)["nights"]] == [FIRST]


# ---- files that are damaged


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def missing(path: Path) -> None:
    path.unlink()


def anothers(path: Path) -> None:
    path.write_bytes(a_file(path.parents[2], "coverage").read_bytes())


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-50])


HARMED = list(itertools.product(("bundle", "incident", "evidence"), (flipped, emptied, missing, anothers, truncated)))


@pytest.mark.parametrize(("table", "harm"), some(HARMED, 2))
def test_a_damaged_file_is_noticed_and_costs_its_rows_alone(
    old: Path, swept: Path, harm: Callable[[Path], None], table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = everything(old)
    path = a_file(old, table)
    whole = path.read_bytes()
    harm(path)
    name = path.relative_to(old).as_posix()
    with pytest.raises(DamagedError, match="is damaged"):
        ask(old, f"SELECT * FROM {table}")
    assert ask(old, "SELECT count(*) FROM coverage") == [(len(rows["coverage"]),)], "what is whole can be asked"
    assert cli.run(["sql", str(old), f"SELECT * FROM {table}"]) == 3
    assert cli.run(["sweep", "--check", "--store", str(old)]) == 3
    assert name in capsys.readouterr().out
    # a size shows at the sweep's start, content when it is read
    if harm is not flipped or table == "bundle":
        with pytest.raises(DamagedError, match="is damaged"):
            night(old, swept / "fleet", THIRD)
    damaged = files(old).get(name)
    assert cli.run(["sweep", "--repair", "--store", str(old)]) == 0
    said = capsys.readouterr().out
    assert f"damage: {name}" in said
    assert (f"lost, unless put back from a backup and mended again: {name}" in said) == (table != "evidence")
    after = everything(old)
    assert {other: after[other] for other in TABLES if other != table} == {other: rows[other] for other in TABLES if other != table}  # fmt: skip
    assert after[table] == [row for row in rows[table] if row[0] != FIRST]
    assert files(old).get(name) == damaged, "nothing is removed"
    assert cli.run(["sweep", "--check", "--store", str(old)]) == 0
    if table != "evidence":
        path.write_bytes(whole)
        assert repair(str(old), Access()).lost == []
        assert everything(old) == rows
    assert night(old, swept / "fleet", THIRD).new_incidents == 0


def test_lost_ledger_rows_are_read_again_and_old_incidents_stay_old(tmp_path: Path) -> None:
    write_bundle(tmp_path / "in", 1, 3, FIRST, cause="shared")
    assert night(tmp_path / "s", tmp_path / "in", FIRST).new_incidents == 1
    a_file(tmp_path / "s", "bundle").unlink()
    repair(str(tmp_path / "s"), Access())
    told = night(tmp_path / "s", tmp_path / "in", SECOND)
    assert (told.counts.read, told.new_incidents) == (1, 0)


def test_files_in_each_others_place_go_back(old: Path) -> None:
    before, rows = parquet(old), everything(old)
    one, other = a_file(old, "incident"), a_file(old, "finding")
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    health = repair(str(old), Access())
    assert len(health.mended) == 2 and not health.lost
    assert everything(old) == rows
    assert parquet(old) == before


def test_one_bad_reading_is_no_damage(old: Path, swept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = Folder.digest
    seen: set[str] = set()

    def first_wrong(self: Folder, name: str) -> str | None:
        if name not in seen:
            seen.add(name)
            return "0" * 64
        return digest(self, name)

    monkeypatch.setattr(Folder, "digest", first_wrong)
    assert night(old, swept / "fleet", THIRD).counts.unchanged == BUNDLES
    assert seen


def test_what_cannot_be_read_is_not_called_damaged(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Folder, name: str) -> str | None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Folder, "digest", refused)
    before = record(old)
    for call in (lambda: ask(old, "SELECT * FROM bundle"), lambda: check(str(old), Access()), lambda: repair(str(old), Access())):  # fmt: skip
        with pytest.raises(BundleError, match="cannot be read: Permission denied") as caught:
            call()
        assert not isinstance(caught.value, DamagedError)
    assert record(old) == before


# ---- generations, and stores of the first oomdoc


def test_generations_are_kept_for_a_while(tmp_path: Path) -> None:
    dataset = Dataset(place(str(tmp_path / "s"), Access())).load()
    dataset.prepare()
    for number in range(KEPT_GENERATIONS + 5):
        dataset.batch(FIRST, {"bundle": [{"night": FIRST, "bundle": f"/b/{number}"}]})
    dataset.prepare()
    numbers = sorted(int(path.name[:8]) for path in (tmp_path / "s" / "records").glob("0*.json"))
    assert numbers == list(range(7, KEPT_GENERATIONS + 7))


def test_a_store_of_the_first_form_is_taken_over_with_a_sentence(old: Path, swept: Path, two_nights: Path) -> None:
    told = record(old)
    first_form = {name: told[name] for name in ("oomdoc_dataset", "files", "nights", "pending", "retired")}
    shutil.rmtree(old / "records")
    (old / "manifest.json").write_text(json.dumps(first_form, indent=1))
    rows = everything(old)
    assert not check(str(old), Access()).damage
    morning = night(old, [swept / "fleet", two_nights / "more"], THIRD)
    assert [warning for warning in morning.warnings if "earlier oomdoc" in warning]
    assert (morning.counts.unchanged, morning.previous) == (17, SECOND)
    assert everything(old) == rows
    assert record(old)["files"] == told["files"]
    assert not night(old, [swept / "fleet", two_nights / "more"], THIRD).warnings


def test_a_first_night_killed_before_its_pointer_leaves_a_new_store(tmp_path: Path, swept: Path) -> None:
    few = sorted((swept / "fleet" / "archives").iterdir())[:1]
    dataset = Dataset(place(str(tmp_path / "s"), Access())).load()
    dataset.prepare()
    (tmp_path / "s" / "manifest.json").rename(tmp_path / "s" / temporary("manifest.json"))
    assert night(tmp_path / "s", few, FIRST).counts.read == 1
    assert not (tmp_path / "s" / temporary("manifest.json")).exists()


# ---- kills, two at once, full disks


def test_what_a_killed_run_left_is_removed_by_its_own_note(tmp_path: Path) -> None:
    store = tmp_path / "s"
    dataset = Dataset(place(str(store), Access())).load()
    dataset.prepare()
    dataset.batch(FIRST, {"bundle": [{"night": FIRST, "bundle": "/b/1"}]})
    kept = set(files(store))
    part = dataset.add("bundle", FIRST, dataset.read(dataset.manifest.parts[0]).slice(0, 0))
    (store / temporary(part.path)).write_bytes(b"half")
    assert (store / part.path).exists()
    again = Dataset(place(str(store), Access())).load()
    again.prepare()
    assert set(files(store)) == kept


def test_a_record_put_back_to_an_older_one_removes_nothing_that_came_after(tmp_path: Path) -> None:
    store = tmp_path / "s"
    dataset = Dataset(place(str(store), Access())).load()
    dataset.prepare()
    older = (store / "manifest.json").read_bytes()
    for number in range(2):
        dataset.batch(FIRST, {"bundle": [{"night": FIRST, "bundle": f"/b/{number}"}]})
    data = parquet(store)
    (store / "manifest.json").write_bytes(older)
    Dataset(place(str(store), Access())).load().prepare()
    assert parquet(store) == data
    assert len(check(str(store), Access()).left_over) == 2


@pytest.mark.skipif(not os.environ.get("OOMDOC_KILLS"), reason="ten minutes: OOMDOC_KILLS=50 says how many")
def test_many_kills_at_random_moments(tmp_path: Path) -> None:
    wanted = int(os.environ["OOMDOC_KILLS"])
    killed = wrong = seed = 0
    while killed < wanted:
        seed += 1
        folder = tmp_path / str(seed)
        folder.mkdir()
        kills, differ = rounds(4, 6, seed, folder)
        killed, wrong = killed + kills, wrong + differ
        shutil.rmtree(folder)
    assert wrong == 0, f"{wrong} stores differ after {killed} kills"


def test_a_writer_that_another_one_overtook_steps_back(store: Path) -> None:
    """As after a lock that did not keep them apart: a lease that ran out while a process slept."""
    slow = Dataset(place(str(store), Access())).load()
    fast = Dataset(place(str(store), Access())).load()
    fast.batch(SECOND, {"bundle": [{"night": SECOND, "bundle": "/b/fast"}]})
    after = record(store)
    with pytest.raises(BusyError, match="another sweep has written"):
        slow.batch(SECOND, {"bundle": [{"night": SECOND, "bundle": "/b/slow"}]})
    assert record(store) == after


def test_a_store_at_work_is_not_mended(old: Path) -> None:
    with locked(place(str(old), Access())), pytest.raises(BusyError):
        repair(str(old), Access())


def test_a_disk_that_is_really_full_costs_nothing_that_was_committed(old: Path, swept: Path, tmp_path: Path) -> None:
    """A limit on a file's size stands for the disk: the system refuses the write itself."""
    write_bundle(tmp_path / "in", 1, 3, THIRD, cause="shared")
    before, rows = committed(old), everything(old)
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000)); from oomdoc.__main__ import main; main()"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, "sweep", str(tmp_path / "in"), "--store", str(old), "--night", THIRD, "--jobs", "1", "-q"],
        capture_output=True, text=True, env={**os.environ, "TMPDIR": str(tmp_path)}, timeout=600,
    )  # fmt: skip
    assert ran.returncode == 3 and "cannot be written" in ran.stderr and "make room" in ran.stderr, ran
    assert committed(old) == before
    assert everything(old) == rows
    assert night(old, tmp_path / "in", THIRD).counts.read == 1
    assert not check(str(old), Access()).damage
    assert not check(str(old), Access()).left_over


def test_check_and_repair_stand_alone(old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["sweep", str(tmp_path), "--store", str(old), "--check"]) == 2
    assert cli.run(["sweep", "--store", str(old)]) == 2
    assert "no bundles are named" in capsys.readouterr().err
    for flag in ("--check", "--repair"):
        assert cli.run(["sweep", flag, "--store", str(tmp_path / "nowhere")]) == 2
    assert not (tmp_path / "nowhere").exists()
    before = files(old)
    assert cli.run(["sweep", "--check", "--store", str(old)]) == 0
    assert "whole. " in capsys.readouterr().out
    assert files(old) == before, "--check writes nothing"
