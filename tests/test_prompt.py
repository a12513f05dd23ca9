"""The prompt of `oomdoc sql`: statements out of typed text and pipes, dot commands, answers, and rows in files that others open."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoc import cli
from oomdoc.cli import prompt
from oomdoc.errors import UsageError
from oomdoc.evidence.tables import TABLES
from oomdoc.views import VIEWS

ROOT = Path(__file__).parents[1]
BUNDLE = str(ROOT / "sample_logs" / "healthy-older-server")
KNOWN = prompt.known_tables(TABLES, VIEWS)


def ask(query: str, limit: int | None) -> tuple[list[str], list[tuple[Any, ...]]]:
    if "boom" in query:
        raise UsageError("the query failed: no boom", "Look again")
    return ["n"], [(n,) for n in range(300)][:limit]


def test_answers_stop_at_the_limit_and_say_so() -> None:
    session = prompt.Session(ask, KNOWN, limit=5)
    told = session.answer("SELECT n FROM numbers;")
    assert told is not None and told.endswith("(5 rows)\nonly the first 5; .limit 0 shows all\n")
    assert session.answer(".limit 0") == ""
    assert "(300 rows)" in (session.answer("FROM numbers") or "")


def test_forms_can_be_changed_on_the_way() -> None:
    session = prompt.Session(ask, KNOWN, limit=2)
    assert session.answer(".format csv") == ""
    assert session.answer("FROM x") == "n\n0\n1\n"
    session.answer(".format json;")
    assert json.loads(session.answer("FROM x") or "") == [{"n": 0}, {"n": 1}]


def test_commands() -> None:
    session = prompt.Session(ask, KNOWN)
    assert session.answer(".quit") is None and session.answer("  ") == ""
    assert "engine_stat" in (session.answer(".tables") or "")
    assert "kv_used" in (session.answer(".columns engine_stat") or "")
    assert all(command in prompt.HELP for command in (".tables", ".columns", ".format", ".limit", ".quit"))


@pytest.mark.parametrize(
    "wrong", [".tabels", ".columns nothing", ".format pdf", ".limit -1", ".limit ٣", ".columns", "boom"]
)
def test_mistakes_are_sentences(wrong: str) -> None:
    with pytest.raises(UsageError):
        prompt.Session(ask, KNOWN).answer(wrong)


@given(
    st.lists(
        st.sampled_from(
            ["SELECT 1", "SELECT ';' AS x", 'SELECT "a;b"', "FROM t -- no; end\n", "SELECT /* ; */ 2", "SELECT 'it''s'"]
        ),
        max_size=6,
    )
)
def test_a_text_comes_apart_into_the_statements_it_was_joined_from(parts: list[str]) -> None:
    assert list(prompt.statements(";\n".join(parts))) == [part.strip() for part in parts]


@given(st.text(alphabet="ab;'\"-/*. \n", max_size=60))
def test_any_text_comes_apart(text: str) -> None:
    for statement in prompt.statements(text):
        assert statement.strip()


def test_every_table_and_column_can_be_completed() -> None:
    told = prompt.words(KNOWN)
    assert {"engine_stat", "kv_used", "kv_pressure", "SELECT", ".tables"} <= told.keys()
    assert told["engine_stat"]


def test_history_is_its_owners_and_no_folder_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    place = prompt.history_file()
    assert place is not None and place.stat().st_mode & 0o777 == 0o600
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert prompt.history_file() is None


def test_long_answers_go_to_the_pager() -> None:
    seen: list[str] = []
    for lines in (3, 50):
        prompt.paged("x\n" * lines, 24, lambda _: seen.append("pager"), lambda _: seen.append("out"))
    assert seen == ["out", "pager"]


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo terminals")
def test_a_person_at_a_terminal(tmp_path: Path) -> None:
    import pty
    import subprocess
    import time

    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "oomdoc", "sql", BUNDLE, "-q"], stdin=child, stdout=child, stderr=child,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path), "TERM": "xterm", "PAGER": "cat"},
    )  # fmt: skip
    os.close(child)
    said = b""
    steps = [(b"oomdoc>", b"SELECT boom;\r"), (b"the query failed", b"SELECT 40 + 2 AS answer;\r"), (b"42", b".quit\r")]
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        try:
            said += os.read(parent, 4096)
        except OSError:
            break
        if b"\x1b[6n" in said:  # it asks where the cursor is
            os.write(parent, b"\x1b[1;1R")
            said = said.replace(b"\x1b[6n", b"")
        if steps and steps[0][0] in said:
            os.write(parent, steps.pop(0)[1])
            said = b"" if steps else said
    assert process.wait(30) == 0 and not steps, said[-500:]
    assert "SELECT 40 + 2" in (tmp_path / "oomdoc" / "sql_history").read_text(encoding="utf-8")


# ---- the command


def test_a_pipe_is_answered_statement_by_statement(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 1 AS a;\n.format csv\nSELECT 2 AS b;\nSELECT 3 AS c"))
    assert cli.run(["sql", BUNDLE, "-q"]) == 0
    assert capsys.readouterr().out == "a\n─\n1\n(1 row)\nb\n2\nc\n3\n"
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 1; SELECT boom; SELECT 2"))
    assert cli.run(["sql", BUNDLE, "-q", "--format", "csv"]) == 2
    told = capsys.readouterr()
    assert told.out == "1\n1\n" and "boom" in told.err


def test_rows_in_files_that_others_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT line, kv_used, source, [running, 1.5::DOUBLE] AS pair, 0.25 AS quarter, NULL::BIGINT AS nothing, kv_used > 0.3 AS high FROM engine_stat ORDER BY line"
    for suffix in ("parquet", "csv", "json", "jsonl"):
        assert cli.run(["sql", BUNDLE, query, "-q", "-o", str(tmp_path / f"o'brien.{suffix}")]) == 0
    assert capsys.readouterr().out == ""
    rows = json.loads((tmp_path / "o'brien.json").read_text(encoding="utf-8"))
    with duckdb.connect() as plain:
        place = str(tmp_path / "o'brien.parquet").replace("'", "''")
        names = [column[0] for column in plain.execute(f"SELECT * FROM '{place}'").description or ()]
        read = plain.execute(f"SELECT * FROM '{place}'").fetchall()
    assert (
        len(rows) > 100 and [dict(zip(names, row, strict=True)) for row in read] == rows and rows[0]["quarter"] == 0.25
    )
    assert len((tmp_path / "o'brien.csv").read_text(encoding="utf-8").splitlines()) == len(rows) + 1
    assert [json.loads(line) for line in (tmp_path / "o'brien.jsonl").read_text(encoding="utf-8").splitlines()] == rows


def test_parquet_keeps_to_the_limit_and_tells_what_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "x.parquet"
    assert cli.run(["sql", BUNDLE, "FROM engine_stat", "--limit", "7", "-o", str(place)]) == 0
    assert "wrote 7 rows" in capsys.readouterr().err
    for query, target in (
        ("SELECT boom", place),
        ("SELECT 1", tmp_path / "none" / "x.parquet"),
        ("DROP TABLE oom", place),
    ):
        assert cli.run(["sql", BUNDLE, query, "-q", "-o", str(target)]) == 2
        assert "Traceback" not in capsys.readouterr().err


def test_plain_duckdb_opens_what_db_keeps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "kept.duckdb"
    assert cli.run(["analyze", BUNDLE, "-q", "--db", str(place), "-o", str(tmp_path / "r.json")]) == 0
    with duckdb.connect(str(place), read_only=True) as plain:
        there = {row[0] for row in plain.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        assert there >= TABLES.keys()
        assert (plain.execute("SELECT count(*) FROM engine_stat").fetchone() or (0,))[0] > 100
