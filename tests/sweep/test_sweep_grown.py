"""Logs that grow are read on from where they stood, and tell what reading them whole tells."""

from __future__ import annotations

import base64
import gzip
import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from crash import DRIVER, contents
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from night import ask, night

from grids import WHOLE
from growing import dense, wrapped
from oomdoc.evidence.store import Store
from oomdoc.evidence.tables import TABLES
from oomdoc.ingest import kept
from oomdoc.intake.bundle import DEFAULT_LIMITS, Intake
from oomdoc.intake.members import Begin
from oomdoc.intake.scan import Chunk, chunks
from oomdoc.limits import scratch_folder
from oomdoc.loading import load as loading
from oomdoc.loading import resume
from oomdoc.loading.load import load
from oomdoc.sweep import grown, ledger, work
from oomdoc.sweep.dataset import existing
from oomdoc.sweep.places import Access
from oomdoc.sweep.sources import look

FIRST, SECOND, THIRD = "2026-11-20", "2026-11-21", "2026-11-22"
BLOCK = 128 << 10
SOURCES = {name: data for name, data in (*dense(), *wrapped()) if len(data) > 3 * BLOCK}


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read in the smallest blocks there are, and rows of all kinds are kept, so that small ones can go on."""
    monkeypatch.setattr(resume, "BLOCK_BYTES", BLOCK)
    monkeypatch.setattr(kept, "WORTH", 1)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """Bytes that readers were given, summed over all files under `bytes`."""
    counted = {"bytes": 0}

    def counting(*given: Any, **named: Any) -> Iterator[Chunk]:
        for chunk in chunks(*given, **named):
            counted["bytes"] += len(chunk.data)
            yield chunk

    monkeypatch.setattr(loading, "chunks", counting)
    monkeypatch.setattr(resume, "chunks", counting)
    yield counted


def told(folder: Path, resumed: resume.Resumed | None) -> tuple[Any, Any, Any]:
    """All that a report is made of: the sources, all tables of a folder's files, rows in their order, and its hash and bytes."""
    intake = Intake(folder.name, DEFAULT_LIMITS)
    for path in sorted(folder.iterdir()):
        intake.add_found(path, path.name)
    with scratch_folder() as scratch:
        store = Store(scratch)
        read = load(intake, store, (), None, resumed)
        store.finish(None)
        rows = {name: store.rows_of(f"FROM main.{name}") for name in TABLES}
        store.close()
    return read, rows, (intake.digest, intake.bytes)


def again(each: dict[str, resume.Kept]) -> resume.Resumed:
    """What the next night has of what this one kept."""
    return resume.Resumed(grown.known((path, grown.pack(one)) for path, one in each.items()))


@pytest.mark.usefixtures("blocks")
@settings(max_examples=12 if WHOLE else 3, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_cut_anywhere_and_read_on_a_log_tells_what_the_whole_tells(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("tree")
    names = data.draw(st.lists(st.sampled_from(sorted(SOURCES)), min_size=1, max_size=2, unique=True))
    # mostly from where something is kept, and now and then where a block ends
    place = {
        name: st.integers(2 * BLOCK, len(SOURCES[name])) | st.sampled_from(range(2 * BLOCK, len(SOURCES[name]) + 1, BLOCK)) | st.integers(1, len(SOURCES[name]))
        for name in names
    }  # fmt: skip
    ends = {name: sorted(data.draw(st.tuples(place[name], place[name]))) for name in names}
    resumed = resume.Resumed()
    for night_ in (0, 1, None):
        for name in names:
            (folder / name).write_bytes(SOURCES[name][: None if night_ is None else ends[name][night_]])
        resumed = again(resumed.kept)
        assert told(folder, resumed) == told(folder, None), (ends, night_)
    assert {name for name in names if len(SOURCES[name]) > 3 * BLOCK} == set(resumed.kept)


@pytest.mark.usefixtures("blocks")
def test_a_line_that_is_cut_where_a_block_ends_is_told_again(tmp_path: Path) -> None:
    name = "cri.log"
    path = tmp_path / name
    for end in (2 * BLOCK, 2 * BLOCK + 3):
        path.write_bytes(SOURCES[name][:end])
        first = again({})
        before = told(tmp_path, first)
        assert set(first.kept) == {name} and any(entry.why.startswith("truncated") for entry in before[0][1])
        assert told(tmp_path, again(first.kept)) == before


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("name", sorted(SOURCES))
def test_old_bytes_are_not_read_again(tmp_path: Path, parsed: dict[str, int], name: str) -> None:
    data = SOURCES[name]
    first = resume.Resumed()
    (tmp_path / name).write_bytes(data[: len(data) * 9 // 10])
    told(tmp_path, first)
    assert parsed["bytes"] == len(data) * 9 // 10
    parsed["bytes"] = 0
    (tmp_path / name).write_bytes(data)
    told(tmp_path, again(first.kept))
    begin = first.kept[name].begin
    assert parsed["bytes"] == len(data) - begin.passed
    assert len(data) * 9 // 10 - begin.taken < BLOCK
    # a file that did not grow is gone on with as well, for the sake of its neighbours
    parsed["bytes"] = 0
    (tmp_path / name).write_bytes(data[: begin.taken])
    third = again(first.kept)
    assert told(tmp_path, third)[2][1] == begin.taken
    assert parsed["bytes"] == begin.taken - begin.passed
    assert third.kept == first.kept


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda data: data[: 2 * BLOCK + 77],
    "rotated": lambda data: data[len(data) // 2 :],
    "another first byte": lambda data: b"#" + data[1:],
    "another byte in the middle": lambda data: data[:BLOCK] + b"#" + data[BLOCK + 1 :],
    "another last byte of what was read": lambda data: data[: 3 * BLOCK - 1] + b"#" + data[3 * BLOCK :],
    "a line more at the front": lambda data: b"one more line\n" + data,
}


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("change", sorted(CHANGES))
def test_what_is_not_the_same_is_read_whole(tmp_path: Path, parsed: dict[str, int], change: str) -> None:
    data = SOURCES["server.log"]
    first = resume.Resumed()
    (tmp_path / "server.log").write_bytes(data[: 3 * BLOCK + 100])
    told(tmp_path, first)
    assert first.kept["server.log"].begin.taken == 3 * BLOCK
    changed = CHANGES[change](data)
    (tmp_path / "server.log").write_bytes(changed)
    parsed["bytes"] = 0
    then = told(tmp_path, again(first.kept))
    assert parsed["bytes"] == len(changed)
    assert then == told(tmp_path, None)


@pytest.mark.usefixtures("blocks")
def test_what_cannot_go_on_is_not_kept(tmp_path: Path) -> None:
    data = SOURCES["server.log"]
    (tmp_path / "packed.log.gz").write_bytes(gzip.compress(data))
    (tmp_path / "wide.log").write_bytes(data.decode().encode("utf-16"))
    (tmp_path / "short.log").write_bytes(data[: BLOCK - 1])
    (tmp_path / "long-line.log").write_bytes(data[: 2 * BLOCK] + b"x" * BLOCK * 3)
    resumed = resume.Resumed()
    told(tmp_path, resumed)
    assert set(resumed.kept) == set()


@pytest.mark.usefixtures("blocks")
def test_a_reading_that_another_program_kept_is_not_used(tmp_path: Path, parsed: dict[str, int]) -> None:
    (tmp_path / "server.log").write_bytes(SOURCES["server.log"])
    whole = told(tmp_path, None)
    for text in ("", "{}", '["object", 0, "ingest.Texts", {}]', '["object", 0, "os.system", {}]'):
        parsed["bytes"] = 0
        each = resume.Kept(Begin(9, 2, BLOCK, "x" * 64), "", "vllm-log", text, b"")
        assert told(tmp_path, again({"server.log": each})) == whole
        assert parsed["bytes"] == len(SOURCES["server.log"])
    assert grown.unpack(b"") is None
    assert grown.unpack(b"\x04\0\0\0oops") is None


@pytest.mark.usefixtures("blocks")
def test_kept_rows_that_are_damaged_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "in" / "requests.log"
    path.parent.mkdir()
    path.write_bytes(SOURCES["requests.log"])
    task = {"bundle": "b", "name": "in", "base": str(path.parent), "alone": False, "files": [list(look(str(path)))], "signature": "", "settled": True,
            "expect": None, "rules": None}  # fmt: skip
    first = json.loads(work.run(json.dumps(task).encode()))
    (row,) = first["rows"]["grown"]
    assert json.loads(work.run(json.dumps({**task, "grown": [[row["source"], row["state"]]]}).encode())) == first
    state = base64.b64decode(row["state"])
    cut = base64.b64encode(state[:-500]).decode()
    assert json.loads(work.run(json.dumps({**task, "grown": [[row["source"], cut]]}).encode())) == first


def test_what_would_be_too_large_is_not_kept() -> None:
    rng = random.Random(3)
    each = {
        f"{place}.log": resume.Kept(Begin(size, 5, size, "x"), "", "vllm-log", "[]", rng.randbytes(rows))
        for place, (size, rows) in enumerate(((90 << 20, 10 << 20), (80 << 20, 8 << 20), (9 << 20, 1000)))
    }
    rows = grown.rows(each)
    assert [row["source"] for row in rows] == ["0.log", "2.log"], "16 MiB a bundle, the largest files first"
    assert all(grown.unpack(row["state"]) == each[row["source"]] for row in rows)


# ---- nights

SHOWN = {
    "bundle": "* EXCLUDE (night, signature, settled, new_failures)", "incident": "* EXCLUDE (night, first_night)", "evidence": "bundle, sha256, md5(tables)",
    **dict.fromkeys(("finding", "ledger", "engine", "traffic", "coverage", "grown"), "* EXCLUDE (night)"),
}  # fmt: skip


def latest(store: Path, date: str) -> dict[str, Any]:
    """What a night told, without when."""
    return {
        name: ask(store, f"SELECT {columns} FROM {name} WHERE night = '{date}' ORDER BY ALL")
        for name, columns in SHOWN.items()
        if name != "grown"
    }


def grow(folder: Path, sources: dict[str, bytes], share: float) -> None:
    """Write a tree's files up to a share of their length."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in sources.items():
        (folder / name).write_bytes(data[: int(len(data) * share)])


@pytest.mark.usefixtures("blocks", "here")
def test_nights_over_a_growing_tree_tell_what_fresh_ones_tell(tmp_path: Path) -> None:
    sources = {name: SOURCES[name] for name in ("smi.csv", "vllm.log")}  # of a full pool, each night would search a fix
    for date, share in ((FIRST, 0.6), (SECOND, 0.61), (THIRD, 1.0)):
        grow(tmp_path / "in" / "gpu-node-1", sources, share)
        night(tmp_path / "s", tmp_path / "in", date)
        if date != FIRST:
            night(tmp_path / f"fresh-{date}", tmp_path / "in", date)
            assert latest(tmp_path / "s", date) == latest(tmp_path / f"fresh-{date}", date)
        # of the latest content alone, one row a file
        rows = ask(tmp_path / "s", "SELECT night::VARCHAR, source, bytes FROM grown ORDER BY source")
        assert [(when, source) for when, source, _ in rows] == [(date, name) for name in sources]
        assert all(bytes_ % BLOCK == 0 for _, _, bytes_ in rows)
    dataset = existing(str(tmp_path / "s"), Access())
    assert len(ledger.kept_for(dataset, "grown", "another")) == 0, "another version reads again"
    assert night(tmp_path / "s", tmp_path / "in", THIRD, rebuild=True).counts.read == 1


def test_killed_while_it_reads_on_the_next_sweep_goes_on(tmp_path: Path) -> None:
    sources = {"vllm.log": SOURCES["vllm.log"] * 2}  # in blocks of the usual length: 60 % of it goes on
    trees = [tmp_path / "in" / f"gpu-node-{number}" for number in range(2)]
    for number, tree in enumerate(trees):
        grow(tree, sources, 0.6 + number / 50)  # not copies of each other
    night(tmp_path / "before", tmp_path / "in", FIRST)
    assert ask(tmp_path / "before", "SELECT count(*) FROM grown") == [(2,)]
    for number, tree in enumerate(trees):
        grow(tree, sources, 0.8 + number / 10)
    time.sleep(2.1)  # settled, whoever looks

    def start(store: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, str(DRIVER), str(store), SECOND, "embedded", str(tmp_path / "in")])

    shutil.copytree(tmp_path / "before", tmp_path / "whole")
    assert start(tmp_path / "whole").wait() == 0
    rng = random.Random(11)
    for number in range(4 if WHOLE else 1):
        store = tmp_path / f"killed-{number}"
        shutil.copytree(tmp_path / "before", store)
        process = start(store)
        time.sleep(rng.uniform(0.2, 4))
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert start(store).wait() == 0
        assert contents(store) == contents(tmp_path / "whole")
