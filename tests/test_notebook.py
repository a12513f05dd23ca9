"""The notebook of the docs runs from its first cell to its last, and shows what it says."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "docs" / "notebook.ipynb"


def values_of(cells: list[dict[str, Any]]) -> list[Any]:
    """What every cell of code shows: the value of its last line, None where that is no expression."""
    names: dict[str, Any] = {}
    shown = []
    for cell in cells:
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "<cell>", "exec"), names)
        shown.append(eval(compile(ast.Expression(last.value), "<cell>", "eval"), names) if last else None)
    return shown


def test_the_notebook_runs_and_shows_the_incident(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    polars = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(ROOT)
    book = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (book["nbformat"], book["metadata"]["kernelspec"]["name"]) == (4, "python3")
    cells = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells), "kept without outputs"
    shown = values_of(cells)
    said = capsys.readouterr().out
    assert "Live traffic needs more KV cache than the pool has" in said and "of 540 samples" in said
    assert "<iframe" in shown[1]._repr_html_()
    tables = [each for each in shown if isinstance(each, polars.DataFrame)]
    assert len(tables) == 3 and tables[1]["tenant"][0] == "casefiles"
    (replayed,) = [each for each in shown if isinstance(each, dict)]
    assert replayed["before"][0] is False and replayed["after"][0] is True
