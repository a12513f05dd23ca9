"""Mutation testing of Python: which places of physics, ledger and weighing can be broken without a focused test noticing.

    python tests/code_mutants.py [FILE...] [--changed REF] [--seconds N] [--list] [--least 0.85]

mutmut breaks each function in every place it knows (operators, numbers, conditions, arguments) and runs the tests that call it; queries of
rules and views are broken by `mutants.py`. It works in a copy: it writes into its working folder. With `--changed` only files that differ
from REF, or from where its branch began, are broken; with `--seconds` it stops then, and tells of what it has tried so far.
`docs/decisions/0027-mutants-of-code.md` says why this tool.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = {
    "src/oomdoc/judge/weigh.py": ["tests/test_weigh.py"],
    "src/oomdoc/physics": ["tests/physics"],
    "src/oomdoc/ledger": ["tests/ledger"],
}
"""What is broken, and the tests that are to notice it: a tree or a file, its tests."""
COPIED = ("rules", "tests", "docs", "sample_logs", "README.md", "CHANGELOG.md")
KILLED, SURVIVED, UNCALLED = {1, 3}, {0}, {5, 33}
"""Exit codes of pytest that mutmut keeps for each mutant; the last: no test calls it."""


def files(named: Sequence[str], changed: str | None) -> list[str]:
    """The modules to break, by path from the root."""
    every = [path.relative_to(ROOT).as_posix() for place in TESTS for path in sorted([ROOT / place] if place.endswith(".py") else (ROOT / place).glob("*.py"))]  # fmt: skip
    if named:
        every = [path for path in every if any(name in path for name in named)]
    if changed:
        differ = subprocess.run(
            ["git", "diff", "--name-only", "--merge-base", changed], cwd=ROOT, capture_output=True, text=True
        )
        if differ.returncode:
            raise SystemExit(f"git knows no {changed}: {differ.stderr.strip()}")
        every = [path for path in every if path in differ.stdout.split()]
    return every


def settings(broken: Sequence[str]) -> str:
    """The section of mutmut for these modules."""
    tests = [
        test for place, of_place in TESTS.items() if any(path.startswith(place) for path in broken) for test in of_place
    ]
    keys = {
        "source_paths": ["src/oomdoc/"],
        "only_mutate": list(broken),
        "pytest_add_cli_args_test_selection": tests,
        "also_copy": list(COPIED),
    }
    return "\n[tool.mutmut]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())


def run(folder: Path, broken: Sequence[str], seconds: float | None) -> None:
    """Copy what is needed into the folder and let mutmut run there."""
    for name in ("src", *COPIED, "pyproject.toml"):
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(path, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".hypothesis"))
        else:
            shutil.copy(path, folder / name)
    with (folder / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write(settings(broken))
    argv = [sys.executable, "-m", "mutmut", "run", "--max-children", str(os.cpu_count() or 1)]
    log = folder / "mutmut.log"
    with (
        log.open("wb") as output,
        subprocess.Popen(argv, cwd=folder, stdout=output, stderr=output, start_new_session=True) as ran,
    ):
        try:
            ran.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(ran.pid, signal.SIGKILL)
    if ran.returncode not in (0, -signal.SIGKILL):
        raise SystemExit(f"mutmut failed:\n{log.read_text(encoding='utf-8', errors='replace')[-2000:]}")


def results(folder: Path, path: str) -> dict[str, int | None]:
    """The exit code for each mutant of a module; None where it was not tried."""
    kept = folder / "mutants" / f"{path}.meta"
    told: dict[str, int | None] = (
        json.loads(kept.read_text(encoding="utf-8"))["exit_code_by_key"] if kept.exists() else {}
    )
    return told


def shown(folder: Path, name: str) -> str:
    """What a mutant changes: the lines that go and come."""
    told = subprocess.run(
        [sys.executable, "-m", "mutmut", "show", name], cwd=folder, capture_output=True, text=True
    ).stdout
    return "\n".join(
        f"    {line}" for line in told.splitlines() if line[:1] in ("+", "-") and line[:3] not in ("+++", "---")
    )


def main() -> int:
    """The share of mutants noticed, module by module; with `--list` what survived."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument(
        "file", nargs="*", help="parts of the paths of modules to break; all of them where none is named"
    )
    parser.add_argument("--changed", metavar="REF", help="only modules that differ from where the branch left REF")
    parser.add_argument("--seconds", type=float, help="stop then, with what was tried")
    parser.add_argument("--list", action="store_true", help="print each survivor")
    parser.add_argument("--least", type=float, default=0.0, help="exit with 1 below this share noticed")
    chosen = parser.parse_args()
    broken = files(chosen.file, chosen.changed)
    if not broken:
        print("no module of physics, ledger or weighing to break")
        return 0
    killed = alive = untried = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        run(folder, broken, chosen.seconds)
        for path in broken:
            codes = results(folder, path)
            survived = [name for name, code in codes.items() if code in SURVIVED | UNCALLED]
            noticed = sum(code is not None for code in codes.values()) - len(survived)
            killed, alive, untried = (
                killed + noticed,
                alive + len(survived),
                untried + sum(code is None for code in codes.values()),
            )
            print(f"{path:40} {noticed:4} of {noticed + len(survived):4} noticed", flush=True)
            for name in survived if chosen.list else ():
                print(
                    f"  {name.rsplit('.', 1)[-1]}{' (no test calls it)' if codes[name] in UNCALLED else ''}\n{shown(folder, name)}"
                )
    share = killed / max(1, killed + alive)
    print(
        f"{'all':40} {killed:4} of {killed + alive:4} noticed: {share:.3f}"
        + (f"; {untried} not tried" if untried else "")
    )
    return int(share < chosen.least)


if __name__ == "__main__":
    sys.exit(main())
