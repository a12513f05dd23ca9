"""What is shipped: the same bytes for the same source, all that is needed in it, versions from one place."""

from __future__ import annotations

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
from oomdoc.rules import load_rules, rules_version

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
