"""What tests of sweeps share: a night in one line, and what a store holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from oomdoc.model.morning import Morning
from oomdoc.sweep.dataset import existing
from oomdoc.sweep.places import Access
from oomdoc.sweep.run import Settings, sweep
from oomdoc.sweep.trends import questions

BUNDLES = 16
"""In the fleet that is swept once for all tests (`swept`): the first so many have each kind of cause but one."""


def night(store: Path | str, paths: Path | list[Path], date: str, **settings: Any) -> Morning:
    """Sweep once."""
    given = paths if isinstance(paths, list) else [paths]
    return sweep([str(path) for path in given], Settings(str(store), night=date, **settings))


def ask(store: Path | str, sql: str, access: Access | None = None) -> list[tuple[Any, ...]]:
    """The rows of one SELECT."""
    with questions(existing(str(store), access or Access())) as asked:
        return asked.query(sql)[1]


def record(store: Path) -> dict[str, Any]:
    """The record that the pointer of a store names."""
    told: dict[str, Any] = json.loads((store / json.loads((store / "manifest.json").read_text())["record"]).read_text())
    return told


def committed(store: Path) -> tuple[Any, Any]:
    """Files and nights of the manifest. Names are hashes of contents: equal files, equal bytes."""
    manifest = record(store)
    assert manifest["pending"] == []
    return manifest["files"], manifest["nights"]
