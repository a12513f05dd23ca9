"""Completion scripts: loaded by the shells themselves, they offer the commands and options of this version."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from oomdoc import cli
from oomdoc.cli.completion import SHELLS


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert cli.run(["completion", shell]) == 0
    return capsys.readouterr().out


def offered(text: str, *words: str) -> set[str]:
    """What bash offers for the last of these words."""
    typed = " ".join(f"'{word}'" for word in words)
    ran = subprocess.run(
        ["bash", "-c", f'{text}\nCOMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _oomdoc; printf "%s\\n" "${{COMPREPLY[@]}}"'],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ran.stderr == ""
    return set(ran.stdout.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_offers_commands_options_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bundle.tar.gz").touch()
    text = script("bash", capsys)
    assert {"analyze", "diff", "rules", "collect"} <= offered(text, "oomdoc", "")
    assert offered(text, "oomdoc", "dif") == {"diff"}
    assert {"--format", "--top", "--help"} <= offered(text, "oomdoc", "analyze", "--")
    assert offered(text, "oomdoc", "analyze", "bun") == {"bundle.tar.gz"}
    assert {"list", "matrix", "test"} <= offered(text, "oomdoc", "rules", "")
    assert "--category" in offered(text, "oomdoc", "rules", "new", "--")
    assert "--category" not in offered(text, "oomdoc", "rules", "list", "--")
    assert "--fail-on" in offered(text, "oomdoc", "bundle.tar.gz", "--")  # a bare path is analyze


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_offers_values(capsys: pytest.CaptureFixture[str]) -> None:
    text = script("bash", capsys)
    assert offered(text, "oomdoc", "explain", "kv-dem") == {"kv-demand-exceeds-pool"}
    assert offered(text, "oomdoc", "rules", "test", "gpu-sh") == {"gpu-shared"}
    assert "gpu-shared" not in offered(text, "oomdoc", "rules", "list", "")
    assert offered(text, "oomdoc", "tables", "engine_st") >= {"engine_stat", "engine_start"}
    assert offered(text, "oomdoc", "fit", "--model", "Qwen/Qwen3-8B") == {"Qwen/Qwen3-8B"}
    assert any("h100" in word.lower() for word in offered(text, "oomdoc", "fit", "--gpu", ""))
    assert "brief" in offered(text, "oomdoc", "analyze", "--format", "b")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shells_can_read_their_scripts(shell: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = script(shell, capsys)
    assert "--kubernetes" in text or "kubernetes" in text
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell} here")
    path = tmp_path / "script"
    path.write_text(text, encoding="utf-8")
    ran = subprocess.run([program, "-n", str(path)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_fish_quotes_what_it_describes(capsys: pytest.CaptureFixture[str]) -> None:
    for line in script("fish", capsys).splitlines():
        assert line.startswith("complete -c oomdoc -n '")
        assert line.replace("\\'", "").count("'") == 4


def test_another_shell_is_refused_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["completion", "csh"]) == 2
    assert "bash, zsh or fish" in capsys.readouterr().err
