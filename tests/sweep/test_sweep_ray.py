"""Ray runs the same work: a cluster of this machine starts by itself, and the store is the same byte for byte."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from make_fleet import write_fleet
from night import committed, night

pytest.importorskip("ray", reason="the Ray engine needs Ray: pip install 'oomdoc[ray]'")

FIRST = "2026-11-20"
SOURCE = Path(__file__).parents[2] / "src"


def test_both_engines_write_the_same_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")]))
    write_fleet(tmp_path / "fleet", 6)
    (tmp_path / "fleet" / "archives" / "broken.tar.gz").write_bytes(b"\x1f\x8b")
    os.utime(tmp_path / "fleet" / "archives" / "broken.tar.gz", (1_700_000_000, 1_700_000_000))
    first = night(tmp_path / "embedded", tmp_path / "fleet", FIRST)
    second = night(tmp_path / "ray", tmp_path / "fleet", FIRST, engine="ray", jobs=2)
    assert first.counts.errors == 1
    assert second == first
    assert committed(tmp_path / "ray") == committed(tmp_path / "embedded")
