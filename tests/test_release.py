"""What is shipped: the same bytes for the same source, all that is needed in it, versions from one place."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from pathlib import Path

import pytest

import oomdoc
from oomdoc import cli
from oomdoc.judge.rules import load_rules, rules_version

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two builds of wheel and sdist, a second apart."""
    pytest.importorskip("hatchling")
    folders = []
    for _ in range(2):
        folder = tmp_path_factory.mktemp("dist")
        environment = {**os.environ, "SOURCE_DATE_EPOCH": "1767225600"}
        subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=ROOT, env=environment, check=True, capture_output=True)  # fmt: skip
        folders.append(folder)
        time.sleep(1.1)
    return folders[0], folders[1]


def test_two_builds_are_the_same_bytes(built: tuple[Path, Path]) -> None:
    first, second = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in built)
    assert sorted(first) == [f"oomdoc-{oomdoc.__version__}-py3-none-any.whl", f"oomdoc-{oomdoc.__version__}.tar.gz"]
    assert first == second


def test_the_wheel_holds_the_program_and_nothing_else(built: tuple[Path, Path]) -> None:
    (wheel,) = built[0].glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"oomdoc", f"oomdoc-{oomdoc.__version__}.dist-info"}
    rules = {path.relative_to(ROOT / "rules").as_posix() for path in (ROOT / "rules").rglob("*.toml")}
    assert {name.removeprefix("oomdoc/_rules/") for name in names if name.startswith("oomdoc/_rules/")} == rules
    source = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "oomdoc").rglob("*") if path.is_file() and "__pycache__" not in path.parts}  # fmt: skip
    assert source <= set(names) and "oomdoc/py.typed" in names


def test_the_sdist_can_be_built_from(built: tuple[Path, Path]) -> None:
    (sdist,) = built[0].glob("*.tar.gz")
    with tarfile.open(sdist) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    assert {"pyproject.toml", "README.md", "SECURITY.md", "LICENSE", "Makefile", "src/oomdoc/__init__.py", "packaging/airgap.sh"} <= names  # fmt: skip


def test_an_unpacked_folder_runs_without_installation(built: tuple[Path, Path], tmp_path: Path) -> None:
    """As `make airgap` lays it out, the dependencies left to this environment: the launcher finds program and rules."""
    (wheel,) = built[0].glob("*.whl")
    folder = tmp_path / "oomdoc"
    zipfile.ZipFile(wheel).extractall(folder / "lib")
    (folder / "oomdoc").write_text((ROOT / "packaging" / "launcher.py").read_text())
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ran = subprocess.run([sys.executable, str(folder / "oomdoc"), "analyze", str(ROOT / "sample_logs" / "graph-capture-on-24gb"), "--format", "json"], env=environment, cwd=tmp_path, capture_output=True, text=True)  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert '"cause": "cuda-graph-overhead"' in ran.stdout
    asked = (
        "import sys; sys.argv = ['oomdoc', '--version']; sys.path.insert(0, %r); import oomdoc; print(oomdoc.__file__)"
    )
    where = subprocess.run([sys.executable, "-c", asked % str(folder / "lib")], env=environment, capture_output=True, text=True)  # fmt: skip
    assert where.stdout.strip().startswith(str(folder))


def test_a_folder_for_another_python_says_so(tmp_path: Path) -> None:
    (tmp_path / "oomdoc").write_text((ROOT / "packaging" / "launcher.py").read_text())
    (tmp_path / "python").write_text("3.8\n")
    ran = subprocess.run([sys.executable, str(tmp_path / "oomdoc"), "--version"], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("oomdoc: this folder was packed for Python 3.8, and this is 3.")


def package(**told: object) -> dict[str, object]:
    return {"name": "jinja2", "version": "3.1", **told}


@pytest.mark.parametrize(
    ("answers", "status", "says"),
    [
        ([[package(vulns=[{"id": "X-1"}])]], 1, "jinja2 3.1: X-1"),
        ([[package(vulns=[]), package(skip_reason="no")], [package(vulns=[{"id": "X-1"}])]], 0, "1 packages asked for, 0 weaknesses known, 1 without an answer"),
        ([[package(skip_reason="not found")]], 0, "audit skipped: the service answered for none of 1 packages"),
        ([[package(vulns=[])], [package(vulns=[])]], 0, "audit skipped: the service that answered knows no weakness of"),
        ([[package(vulns=[])], [package(skip_reason="not found")]], 0, "audit skipped: the service that answered knows no weakness of"),
        ([], 0, "audit skipped: "),
    ],
)  # fmt: skip
def test_an_audit_that_nobody_answered_says_so(
    answers: list[list[dict[str, object]]], status: int, says: str, tmp_path: Path
) -> None:
    """pip-audit counts a package for which its service has no answer as one without weaknesses."""
    (tmp_path / "answers").write_text("\n".join(json.dumps({"dependencies": answer}) for answer in answers))
    (tmp_path / "pip_audit.py").write_text(
        "import sys; from pathlib import Path\n"
        f"lines = Path({str(tmp_path / 'answers')!r}).read_text().splitlines()\n"
        "probe = '--requirement' in sys.argv\n"
        "print(lines[probe] if len(lines) > probe else 'nothing')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ran = subprocess.run([sys.executable, str(ROOT / ".ci/audit")], env=environment, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (status, "")
    assert ran.stdout.startswith(says)


def test_the_version_stands_in_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/oomdoc/__init__.py"
    written = [path for path in (ROOT / "src").rglob("*.py") if re.search(rf"['\"]{re.escape(oomdoc.__version__)}['\"]", path.read_text(encoding="utf-8"))]  # fmt: skip
    assert [path.name for path in written] == ["__init__.py"]


def test_versions_of_rules_and_engine_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["version"]) == 0
    told = capsys.readouterr().out
    assert f"oomdoc  {oomdoc.__version__}\n" in told
    assert f"rules   {rules_version(load_rules()[0])} " in told
    assert re.search(r"^engine  vLLM 0\.1\.7 to 0\.\d+\.\d+$", told, re.M)


def test_asking_for_the_version_imports_nothing() -> None:
    code = "import sys; sys.argv = ['oomdoc', '--version']; from oomdoc.__main__ import main; main(); print(*sorted(name for name in sys.modules if name.startswith('oomdoc')))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["oomdoc", oomdoc.__version__, "oomdoc", "oomdoc.__main__"]


def test_the_demo_installs_what_a_user_needs_and_nothing_more() -> None:
    """`make demo` rests on the run-time dependencies; the rest comes with what developers call."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    rules = dict(re.findall(r"(?m)^(\$\(VENV\)/\w+|[a-z]+): ([^#\n]*)", text))
    assert rules["demo"].split() == ["$(VENV)/usable"]
    assert rules["test"].split()[0] == "$(VENV)/ready"
    usable, ready = (text.split(f"$(VENV)/{name}: ")[1].split("\n\n")[0] for name in ("usable", "ready"))
    assert (
        "--editable '.[dev]'\n" in ready and "touch $(VENV)/usable" in ready
    )  # what developers need holds what users need
    assert "--editable .\n" in usable and "[" not in usable.split("pip install")[1]
