"""Defaults out of files and variables: who wins over whom, and what is refused in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from oomdoc import cli
from oomdoc.cli import config
from oomdoc.errors import UsageError

COMMANDS = {
    "analyze": ["top", "color", "gpu", "output", "rules"],
    "fit": ["gpu", "color", "tp"],
    "rules list": ["color", "rules"],
}


def values(environment: dict[str, str], *paths: Path) -> dict[str, dict[str, object]]:
    found = config.defaults(COMMANDS, environment, paths)
    return {command: {name: default.value for name, default in options.items()} for command, options in found.items()}


def written(folder: Path, text: str, name: str = "oomdoc.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_stronger_place_wins(tmp_path: Path) -> None:
    weak = written(tmp_path, 'top = 1\ncolor = "never"\n[fit]\ngpu = "A"\n', "weak.toml")
    strong = written(tmp_path, "top = 2\n", "strong.toml")
    assert values({}, weak, strong) == {
        "analyze": {"top": 2, "color": "never"}, "fit": {"gpu": "A", "color": "never"}, "rules list": {"color": "never"},
    }  # fmt: skip
    told = values(
        {"OOMDOC_TOP": "3", "OOMDOC_GPU": "B", "OOMDOC_FIT_GPU": "C", "OOMDOC_RULES_LIST_COLOR": "always"}, weak, strong
    )
    assert told["analyze"] == {"top": "3", "color": "never", "gpu": "B"}
    assert told["fit"]["gpu"] == "C"
    assert told["rules list"]["color"] == "always"


def test_nothing_set_is_nothing_found() -> None:
    assert values({"PATH": "/bin", "OOMDOC_UPDATE": "1"}) == {}


def test_a_commands_own_setting_wins_over_the_general_one_wherever_it_stands(tmp_path: Path) -> None:
    assert values({}, written(tmp_path, 'gpu = "general"\n[analyze]\ngpu = "own"\n'))["analyze"]["gpu"] == "own"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("clor = 3", "clor is no option that can be set. Did you mean color?"),
        ("[analyse]\ntop = 3", "no command 'analyse'. Did you mean analyze?"),
        ("[fit]\ntop = 3", "fit.top is no option"),
        ('output = "x.json"', "output is no option"),
        ("top = [1]", "top is no single value"),
        ("top = 1\ntop = 2", "cannot be read"),
        ("= 3", "cannot be read"),
        ("[rules.list]\ngpu = 1", "rules.list.gpu is no option"),
    ],
)
def test_what_nobody_knows_is_refused_with_the_place(text: str, said: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UsageError) as problem:
        values({}, path)
    assert said in str(problem.value) and str(path) in str(problem.value)


@pytest.mark.parametrize(
    ("variable", "said"),
    [("OOMDOC_CLOR", "Did you mean OOMDOC_COLOR?"), ("OOMDOC_OUTPUT", "no setting"), ("OOMDOC_FIT_TOP", "no setting")],
)
def test_variables_that_set_nothing_are_refused(variable: str, said: str) -> None:
    with pytest.raises(UsageError) as problem:
        values({variable: "1"})
    assert said in str(problem.value)


def test_bytes_that_are_no_text_are_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "oomdoc.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="cannot be read"):
        values({}, path)


def test_where_files_are_looked_for(tmp_path: Path) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    (home / ".config" / "oomdoc").mkdir(parents=True)
    here.mkdir()
    user, local = written(home / ".config" / "oomdoc", ""), written(here, "")
    assert config.files({"HOME": str(home)}, here) == [user, local]
    assert config.files({}, here) == [local]
    assert config.files({"HOME": str(home), "XDG_CONFIG_HOME": str(tmp_path)}, here) == [local]
    assert config.files({"HOME": str(home), "OOMDOC_CONFIG": ""}, here) == []
    assert config.files({"OOMDOC_CONFIG": str(user)}, here) == [user]
    with pytest.raises(UsageError, match="no such file"):
        config.files({"OOMDOC_CONFIG": str(tmp_path / "gone")}, here)


def test_a_folder_of_rules_is_meant_from_the_file_on(tmp_path: Path) -> None:
    assert values({}, written(tmp_path, 'rules = "mine"'))["analyze"]["rules"] == str(tmp_path / "mine")


# ---- the command


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    status = cli.run(list(argv))
    out, err = capsys.readouterr()
    return status, out, err


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


def test_the_command_line_wins_over_all(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written(here, '[fit]\nmodel = "Qwen3-8B"\ngpu = "H100"\n')
    assert "H100" in run(capsys, "fit")[1]
    monkeypatch.setenv("OOMDOC_FIT_GPU", "L4")
    assert "NVIDIA L4" in run(capsys, "fit")[1]
    assert "A10G" in run(capsys, "fit", "--gpu", "A10G")[1]
    monkeypatch.delenv("OOMDOC_FIT_GPU")
    status, _, err = run(capsys, "--no-config", "fit")
    assert status == 2 and "model" in err
    other = written(here, '[fit]\nmodel = "Qwen3-8B"\ngpu = "L4"\n', "other.toml")
    assert "NVIDIA L4" in run(capsys, "--config", str(other), "fit")[1]


@pytest.mark.parametrize("text", ['top = "many"', "top = true", "top = 0", 'quiet = "perhaps"'])
def test_a_value_that_does_not_fit_names_its_place(text: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(here, text)
    status, _, err = run(capsys, "tables", "--short")
    assert status == 2 and "oomdoc.toml" in err and "does not fit --" in err


def test_verbose_names_every_source(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "notes.txt").write_text("The server ran out of memory after lunch.\n", encoding="utf-8")
    status, _, err = run(capsys, "analyze", "notes.txt", "-v", "--format", "json")
    assert status == 0 and "read notes.txt as " in err
    assert "read notes.txt" not in run(capsys, "analyze", "notes.txt", "--format", "json")[2]
