"""The library's door: what it shows, frames, forms, and tables kept in a file."""

from __future__ import annotations

import html
import os
import subprocess
import sys
from pathlib import Path

import pytest

import oomdoc
from oomdoc import cli
from oomdoc.diagnose import Options

ROOT = Path(__file__).parents[1]
BUNDLE = ROOT / "sample_logs" / "graph-capture-on-24gb"


def test_the_door_shows_what_is_behind_it_and_imports_nothing() -> None:
    code = "import sys, oomdoc; print(dir(oomdoc)); print([name for name in ('duckdb', 'polars', 'pyarrow', 'rich') if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.splitlines() == ["['Analysis', 'Limits', 'OomdocError', 'Options', '__version__', 'analyze']", "[]"]
    assert "polars frame" in (oomdoc.__doc__ or "") and "gives an `Analysis`" in (oomdoc.__doc__ or "")


def test_nothing_is_drawn_over_the_output_where_no_file_is_run() -> None:
    """DuckDB takes a program without a file for a person's shell, and draws a bar there once a query takes two seconds."""
    code = "from oomdoc.evidence.database import connect; print(connect().execute(\"SELECT value FROM duckdb_settings() WHERE name = 'enable_progress_bar'\").fetchall())"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.strip() == "[('false',)]"


def test_frames_and_forms_of_an_analysis() -> None:
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    with oomdoc.analyze(BUNDLE) as analysis:
        assert analysis.arrow("effect").num_rows == 0  # a view that nobody has asked yet is made for whoever asks
        arrow = analysis.arrow("oom")
        assert isinstance(arrow, pyarrow.Table) and arrow.num_rows == len(analysis.sql("FROM oom")[1])
        frame = analysis.table("SELECT source, line FROM oom")
        assert isinstance(frame, polars.DataFrame) and frame.columns == ["source", "line"]
        with pytest.raises(oomdoc.OomdocError, match="the query failed"):
            analysis.table("no_such_table")
        assert analysis.markdown().startswith("## Diagnosed: ")
        assert analysis.html().startswith("<!doctype html>")
        shown = analysis._repr_html_()
        assert shown.startswith("<iframe srcdoc=") and html.escape(analysis.html()) in shown
        assert repr(analysis) == "<oomdoc.Analysis of graph-capture-on-24gb: diagnosed, cuda-graph-overhead 0.99>"
        assert repr(analysis.report) == "<oomdoc.Report of graph-capture-on-24gb: diagnosed, cuda-graph-overhead 0.99>"


def test_an_analysis_that_nobody_closes_leaves_nothing_behind(tmp_path: Path) -> None:
    """A script that ends, or dies, without `with`: no notice of an open connection, no scratch folder."""
    code = f"import oomdoc; kept = oomdoc.analyze({str(BUNDLE)!r}); oomdoc.analyze({str(BUNDLE)!r}); print(kept.report.verdict)"
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert (ended.stdout, ended.stderr) == ("diagnosed\n", "")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with oomdoc.analyze(BUNDLE) as analysis, pytest.raises(oomdoc.OomdocError, match="needs polars"):
        analysis.table("oom")


def test_kept_tables_are_asked_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "tables.duckdb"
    with oomdoc.analyze(BUNDLE, Options(db=kept)) as analysis:
        wanted = analysis.sql("SELECT count(*) FROM oom")[1]
    assert cli.run(["sql", str(kept), "SELECT count(*) AS n FROM oom", "--format", "csv"]) == 0
    assert capsys.readouterr().out.split() == ["n", str(wanted[0][0])]
    before = kept.read_bytes()
    assert cli.run(["sql", str(kept), "DROP TABLE oom"]) == 2
    assert cli.run(["sql", str(kept), f"SELECT * FROM read_csv('{BUNDLE / 'case.toml'}')"]) == 2
    assert kept.read_bytes() == before
    assert cli.run(["sql", str(kept)]) == 2  # no prompt over it


def test_one_s_own_rules_are_tested_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["rules", "new", "disk-full", str(tmp_path / "mine")]) == 0
    assert cli.run(["rules", "test", str(tmp_path / "mine")]) == 0
    assert "of 1 rule" in capsys.readouterr().out
