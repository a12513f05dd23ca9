"""The documentation held on the code: generated pages, commands, links, examples and tutorials that run."""

from __future__ import annotations

import copy
import dataclasses
import doctest
import functools
import importlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import oomdoc
import signs
import test_rules
from grids import report_of
from oomdoc import cli, diagnose
from oomdoc.evidence.store import Store
from oomdoc.ingest.forms.cells import unit_of, value_of
from oomdoc.ingest.vocabulary import quantity_of
from oomdoc.ingest.vocabulary.words import taken_apart
from oomdoc.judge.rules import read_rule
from oomdoc.units import parse_size

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")], key=lambda path: (path.parent != ROOT, path.as_posix())
)
NAMES = [path.relative_to(ROOT).as_posix() for path in PAGES]


class Block(NamedTuple):
    """A fenced code block: its language, the file it names (empty = none), its text, and the line it begins in."""

    language: str
    file: str
    text: str
    line: int


@functools.cache
def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(name: str, language: str = "") -> list[Block]:
    found = []
    for match in re.finditer(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", read(name), re.M | re.S):
        block = Block(match[1], match[2] or "", match[3], read(name)[: match.start()].count("\n") + 1)
        if not language or block.language == language:
            found.append(block)
    return found


@functools.cache
def prose(name: str) -> str:
    """A page without its code blocks."""
    return re.sub(r"^```.*?^```$", "", read(name), flags=re.M | re.S)


@pytest.fixture(scope="module", autouse=True)
def bundles_are_read_once() -> Iterator[None]:
    """What page after page shows of the same shipped bundle with the same options is one analysis, open until the end."""
    really, kept = diagnose.analyze, dict[str, diagnose.Analysis]()

    def analyze(paths: Any, options: diagnose.Options | None = None) -> diagnose.Analysis:
        asked = dataclasses.replace(options or diagnose.Options(), progress=None)
        place = str(paths if isinstance(paths, (str, Path)) else [*map(str, paths)])
        if "sample_logs" not in place or asked.db is not None or asked.rules is not None or asked.loaded is not None:
            return really(paths, options)
        key = repr((Path.cwd(), place, asked))
        if key not in kept:
            kept[key] = really(paths, options)
        again = copy.copy(kept[key])
        vars(again)["close"] = lambda: None
        return again

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diagnose, "analyze", analyze)
        patch.setattr(oomdoc, "analyze", analyze)
        yield
    for analysis in kept.values():
        analysis.close()


@functools.cache
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("oomdoc_docs_generate", ROOT / "docs" / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    vars(module)["demo"] = lambda: report_of(Path(module.DEMO).name)
    return module


# --- generated ----------------------------------------------------------------------------------------------------------


def test_generated_pages_are_current() -> None:
    old = [path.relative_to(ROOT).as_posix() for path in generate().stale()]
    assert not old, f"{', '.join(old)} not current: run `make docs` and read the diff"


def test_the_run_in_the_readme_fits_80_columns() -> None:
    run = next(block for block in blocks("README.md", "console") if "analyze" in block.text)
    # a command to be pasted is not wrapped; it would be further down
    assert max(len(line) for line in run.text.splitlines()) <= 80


def test_what_is_public_is_documented() -> None:
    from oomdoc.evidence.tables import TABLES
    from oomdoc.views import VIEWS

    tables, rules = read("docs/tables.md"), read("docs/rules.md")
    assert all(f"### {name}\n" in tables for name in (*TABLES, *VIEWS))
    assert all(f"#### {rule.id}\n" in rules for rule in generate().all_rules())
    fields = read("docs/json.md")
    assert all(f"`{name}`" in fields for name in ("verdict", "diagnoses", "collect_next", "traffic", "coverage.unread"))


def commands() -> Iterator[str]:
    import typer.main

    def walk(command: Any, path: str) -> Iterator[str]:
        for name, inner in getattr(command, "commands", {}).items():
            yield f"{path} {name}"
            yield from walk(inner, f"{path} {name}")

    yield from walk(typer.main.get_command(cli.app), "oomdoc")


def test_every_command_is_documented() -> None:
    shown = [line.split("#")[0] for block in blocks("README.md", "sh") for line in block.text.splitlines()]
    for command in commands():
        assert f"## {command}\n" in read("docs/cli.md")
        if command != "oomdoc rules":
            assert any(f"{line} ".startswith(f"{command} ") for line in shown), f"README does not show `{command}`"


# --- links and names ----------------------------------------------------------------------------------------------------


@functools.cache
def anchors(name: str) -> set[str]:
    """The anchors that a page's headings get, as GitHub makes them."""
    found: set[str] = set()
    for match in re.finditer(r"^#+ (.+)$", prose(name), re.M):
        plain = re.sub(r"[^\w\- ]", "", re.sub(r"[`*]|\[|\]\([^)]*\)", "", match[1]).strip().lower()).replace(" ", "-")
        number = 1
        anchor = plain
        while anchor in found:
            anchor = f"{plain}-{number}"
            number += 1
        found.add(anchor)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_links_resolve(name: str) -> None:
    broken = []
    for match in re.finditer(r"\[(?:[^\]]|\][^(])*?\]\(([^)\s]+)\)", prose(name)):
        target, _, anchor = match[1].partition("#")
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        path = ((ROOT / name).parent / target).resolve() if target else ROOT / name
        if not path.exists() or (anchor and anchor not in anchors(path.relative_to(ROOT).as_posix())):
            broken.append(match[1])
    assert not broken, f"{name}: {sorted(set(broken))}"


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen: set[str] = set()
    todo = ["README.md"]
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        for target in re.findall(r"\]\(([^)#\s]+\.md)", prose(name)):
            if not target.startswith("http"):
                todo.append(((ROOT / name).parent / target).resolve().relative_to(ROOT).as_posix())
    assert set(NAMES) <= seen


_PATH = re.compile(r"`((?:src|docs|rules|tests|sample_logs)/[\w./-]+)`")


@pytest.mark.parametrize("name", NAMES)
def test_paths_that_pages_name_exist(name: str) -> None:
    gone = [path for path in _PATH.findall(prose(name)) if not (ROOT / path).exists()]
    assert not gone


def test_pages_that_the_source_names_exist() -> None:
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "src").rglob("*.sql"), *(ROOT / "rules").rglob("*.toml")]
    gone = {
        (path.relative_to(ROOT).as_posix(), page)
        for path in [*sources, ROOT / "Makefile", ROOT / "pyproject.toml"]
        for page in re.findall(r"(?<![\w/.])docs/[\w/-]+\.(?:md|py)", path.read_text(encoding="utf-8"))
        if not (ROOT / page).exists()
    }
    assert not gone


def test_the_page_on_new_releases_names_every_place_that_states_the_newest() -> None:
    from oomdoc.physics.defaults import NEWEST_READ

    major, minor, _ = NEWEST_READ.split(".")
    newest = re.compile(rf"(?<![\d.]){major}\.{minor}(?:\.0)?(?!\d)")
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "src").rglob("*.toml"), *(ROOT / "docs").glob("*.toml")]
    stating = {path.relative_to(ROOT).as_posix() for path in files if newest.search(path.read_text(encoding="utf-8"))}
    named = prose("docs/keeping-current.md").split("\n## Where")[1].split("\n## ")[0]
    assert stating == set(_PATH.findall(named))


def test_the_changelog_knows_this_version() -> None:
    assert f"## [{oomdoc.__version__}]" in read("CHANGELOG.md")


def test_the_method_names_what_the_views_and_patterns_know() -> None:
    """Phases and incident kinds of the views, landmark functions of the patterns: each has its place in docs/method.md."""
    from oomdoc.ingest.vllm_log import LANDMARKS
    from oomdoc.views import VIEWS

    method = prose("docs/method.md")
    phases = re.search(r"SELECT CASE WHEN told\.kind.*?END AS phase,", VIEWS["failure"].sql, re.S)
    assert phases
    wanted = set(re.findall(r"THEN '([\w-]+)'", phases[0])) | set(LANDMARKS)
    kinds = re.search(r"-- kind: (.*)", (ROOT / "src/oomdoc/views/04_incident.sql").read_text(encoding="utf-8"))
    assert kinds
    wanted |= set(re.findall(r"[\w-]+", kinds[1]))
    assert not {name for name in wanted if f"`{name}`" not in method}


def test_the_glossary_is_in_order() -> None:
    for part in read("docs/glossary.md").split("\n## ")[1:]:
        terms = [term.lower() for term in re.findall(r"^- \*\*([^*]+)\*\*", part, re.M)]
        assert terms == sorted(terms)


# --- examples run -------------------------------------------------------------------------------------------------------

PACKAGE = ROOT / "src" / "oomdoc"
WITH_EXAMPLES = sorted(path for path in PACKAGE.rglob("*.py") if ">>> " in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_examples_in_docstrings_run(path: Path) -> None:
    name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted and result.failed == 0


@pytest.mark.parametrize("name", [name for name in NAMES if any(not block.file for block in blocks(name, "python"))])
def test_python_in_pages_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    space: dict[str, Any] = {"__name__": "page"}
    for block in blocks(name, "python"):
        if not block.file:
            code = "\n" * block.line + block.text  # so that a failure names the page's line
            exec(compile(code, str(ROOT / name), "exec"), space)


def calls(name: str) -> list[str]:
    """The oomdoc commands of a page's shell blocks that need nothing but this checkout."""
    return [
        line
        for block in blocks(name, "sh")
        for line in block.text.splitlines()
        if line.startswith("oomdoc ") and "my-rules" not in line and "~/" not in line and "--store" not in line
    ]


RUNNABLE = ["README.md", "docs/adding-a-rule.md"]


@pytest.mark.parametrize("line", [line for name in RUNNABLE for line in calls(name)])
def test_commands_in_pages_run(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if line.startswith("oomdoc redact"):  # it writes
        (tmp_path / "sample_logs").symlink_to(ROOT / "sample_logs")
        monkeypatch.chdir(tmp_path)
    else:
        monkeypatch.chdir(ROOT)
    if line.startswith("oomdoc rules test"):
        few_rules(tmp_path, monkeypatch)
    if line.startswith("oomdoc rules count"):
        shutil.copytree(ROOT / "tests/cases/shm-exhausted-a4", tmp_path / "shm")
        line = f"oomdoc rules count {tmp_path}"
    status = cli.run(shlex.split(line, comments=True)[1:])
    told = capsys.readouterr()
    assert status == 0, told.err
    assert told.out


def few_rules(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave one shipped rule: tests/test_rules.py runs the tests of all, which takes its time."""
    (folder / "shipped" / "host").mkdir(parents=True)
    shutil.copy(ROOT / "rules/host/shm-exhausted.toml", folder / "shipped" / "host")
    monkeypatch.setattr("oomdoc.judge.rules.rules_folder", lambda: folder / "shipped")


def test_make_verbs_in_pages_exist() -> None:
    verbs = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    for name in NAMES:
        named = set(re.findall(r"`make ([a-z-]+)`", prose(name)))
        named |= {word for block in blocks(name, "sh") for word in re.findall(r"^make ([a-z-]+)", block.text, re.M)}
        assert named <= verbs, name


# --- tutorials ----------------------------------------------------------------------------------------------------------


def test_the_tutorial_rule_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "docs/adding-a-rule.md"
    block, _ = blocks(name, "toml")
    few_rules(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    file = Path(block.file)
    file.parent.mkdir(parents=True)
    file.write_text(block.text, encoding="utf-8")
    (tmp_path / "sample_logs").symlink_to(ROOT / "sample_logs")
    for line in (line for part in blocks(name, "sh") for line in part.text.splitlines() if "my-rules" in line):
        assert cli.run(shlex.split(line)[1:]) == 0, capsys.readouterr()
    told = capsys.readouterr().out
    assert "The disk is full where the engine writes" in told
    assert " 0 failed" in told

    (mistake,) = [part.text.strip() for part in blocks(name, "text")]
    wrong = re.search(r"no key '(\w+)'\. Did you mean '(\w+)'", mistake)
    assert wrong
    file.write_text(re.sub(rf"^{wrong[2]}\b", wrong[1], block.text, count=1, flags=re.M), encoding="utf-8")
    assert cli.run(["rules", "test", "my-rules"]) == 1
    assert mistake in capsys.readouterr().out


def test_the_tutorial_rule_is_fit_to_be_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever follows the page to its end meets no test but those of the two lists that it names."""
    block, cases = blocks("docs/adding-a-rule.md", "toml")
    file = tmp_path / block.file
    file.parent.mkdir(parents=True)
    file.write_text(block.text, encoding="utf-8")
    rule = read_rule(file)
    assert all(f"`{name}`" in prose("docs/adding-a-rule.md") for name in ("CATALOGUE", "RIVALS", "ENGINE_FLAGS"))
    monkeypatch.setattr(test_rules, "RIVALS", {rule.id: "shm-exhausted"})
    monkeypatch.setattr(test_rules, "CATALOGUE", {"shm-exhausted": ("host", frozenset())})
    test_rules.test_a_rule_shows_itself_and_its_closest_rival(rule)
    test_rules.test_numbers_references_and_words(rule)
    with Store() as empty:
        empty.finish()
        empty.focus(None)
        test_rules.test_every_placeholder_is_a_column(rule, empty)
        test_rules.test_queries_give_holds_and_plain_numbers(rule, empty)
        test_rules.test_advice_sets_real_flags_to_columns_or_fixed_values(rule, empty)
        test_rules.test_empty_tables_tell_nothing(rule, empty)
    of_sign = tmp_path / f"{rule.id}.toml"
    of_sign.write_text(cases.text, encoding="utf-8")
    told, sql = signs.read_cases(of_sign), signs.sql_of(rule, "no-space-left")
    desk = signs.Desk()
    desk.fill(told, signs.read_by(sql))
    assert [case.holds for case in told] == [True, False]
    assert list(desk.faults(told, sql)) == []


def test_the_tutorial_quantity_is_read_by_its_samples() -> None:
    """The page's example proves itself as those of the vocabulary do."""
    (block,) = [block for block in blocks("docs/adding-an-ingestor.md", "toml") if "not_names" in block.text]
    ((ident, entry),) = tomllib.loads(block.text).items()
    quantity = quantity_of(ident, entry)
    for name, cell, size in quantity.samples:
        words, unit, _ = taken_apart(name)
        assert " ".join(words) in [" ".join(taken_apart(each.strip())[0]) for each in quantity.strong.split(",")]
        assert value_of(quantity, cell, unit_of(quantity, unit, [cell])) == parse_size(size)


@pytest.mark.parametrize("name", ["docs/adding-an-ingestor.md", "docs/adding-a-report.md"])
def test_a_tutorial_works(name: str, tmp_path: Path) -> None:
    """Does what the page says, in a copy of the source, and compares what it says one sees."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "rules").symlink_to(ROOT / "rules")
    (tmp_path / "sample_logs").symlink_to(ROOT / "sample_logs")
    for block in blocks(name):
        if block.language == "diff":
            path = tmp_path / block.file
            lines = block.text.splitlines()
            old = "\n".join(line[1:] for line in lines if line[:1] != "+")
            new = "\n".join(line[1:] for line in lines if line[:1] != "-")
            source = path.read_text(encoding="utf-8")
            assert source.count(old) == 1, f"{block.file} is no longer as line {block.line} of the page has it"
            path.write_text(source.replace(old, new), encoding="utf-8")
        elif block.file:
            (tmp_path / block.file).write_text(block.text, encoding="utf-8")
    (session,) = blocks(name, "console")
    command, _, expected = session.text.partition("\n")
    ran = subprocess.run(
        [sys.executable, "-m", *shlex.split(command.removeprefix("$ "))],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stdout) == (0, expected), ran.stderr
