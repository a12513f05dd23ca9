"""A small generated fleet and the store of its first night, made once for all tests of sweeps."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "fleet"))

pytest.importorskip("pyarrow", reason="sweeps need pyarrow: pip install 'oomdoc[sweep]'")

from make_fleet import write_fleet
from night import BUNDLES

from oomdoc.sweep.run import Settings, sweep

NIGHT = "2026-11-20"


@pytest.fixture(scope="session")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `fleet` and `store`; tests take copies and never write into it."""
    root = tmp_path_factory.mktemp("sweep")
    write_fleet(root / "fleet", BUNDLES)
    sweep([str(root / "fleet")], Settings(str(root / "store"), night=NIGHT))
    return root


@pytest.fixture
def store(swept: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy of the store of the first night."""
    shutil.copytree(swept / "store", tmp_path / "store")
    yield tmp_path / "store"
