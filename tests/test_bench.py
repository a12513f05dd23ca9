"""The benchmark's bundle: the same every time, and read as it was written. Seconds are left to `make bench`."""

import json
import sys
from importlib import import_module
from pathlib import Path

import pytest

SIZE = 8 << 20

sys.path.insert(0, str(Path(__file__).with_name("bench")))
differences, make = import_module("bench").differences, import_module("make_bundle").make
sys.path.pop(0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("bundle")
    make(place, SIZE)
    return place


def test_the_evidence_is_what_was_written_and_look_alikes_are_refused(folder: Path) -> None:
    assert differences(folder) == []


def test_the_bundle_holds_what_it_is_for(folder: Path) -> None:
    truth = json.loads((folder / "truth.json").read_text())
    assert all(truth[name][0] > 0 for name in truth)
    logs = b"".join(path.read_bytes() for path in sorted(folder.glob("bundle/server/*.log")))
    assert logs.count(b"OutOfMemoryError") > truth["ooms"][0]
    assert logs.count(b"Avg prompt throughput") > truth["stats"][0]
    assert sum(path.stat().st_size for path in folder.rglob("bundle/**/*.*")) == pytest.approx(SIZE, rel=0.05)


def test_the_same_seed_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    make(tmp_path, SIZE)
    for name in ("bundle.tar.gz", "truth.json"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()
