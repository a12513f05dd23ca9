"""The shipped bundles and their diagnoses: the label comes first, the report is valid, the same bytes come twice.

Healthy bundles count as much as the failures: they hold the alarming words of real logs. Three whole reports are kept
as snapshots; `OOMDOC_UPDATE=1` writes them anew.
"""

from __future__ import annotations

import functools
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import jsonschema
import pytest

from grids import report_of
from oomdoc import cli
from oomdoc.model import schema
from oomdoc.report.json import dump
from oomdoc.units import GIB, parse_size
from snapshot import check

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "sample_logs"
SNAPSHOTS = Path(__file__).parent / "snapshots" / "golden"
NAMES = sorted(path.parent.name for path in SAMPLES.glob("*/case.toml"))
WHOLE = ("kv-demand-long-chats", "utilization-left-at-035", "healthy-full-device")
VERDICTS = {"healthy": "healthy", "not-memory": "not-memory"}
VALIDATOR = jsonschema.Draft202012Validator(schema.load())


class Run(NamedTuple):
    """What `oomdoc analyze` gave: exit status, the page on a terminal of 80 columns, the JSON text and its object."""

    status: int
    page: str
    text: str
    report: dict[str, Any]


@contextmanager
def _columns(width: int) -> Iterator[None]:
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(width)
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def analyze(folder: Path, scratch: Path, *options: str) -> Run:
    """Run the command in this process."""
    target = scratch / "report.json"
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    argv = ["analyze", str(folder), "-o", "-", "-o", str(target), "--color", "never", "--quiet", *options]
    with _columns(80), redirect_stdout(out):
        status = cli.run(argv)
    out.seek(0)
    text = target.read_text(encoding="utf-8")
    return Run(status, out.read(), text, json.loads(text))


@pytest.fixture(scope="session")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The run of a sample by its name; each is analysed once."""
    return functools.cache(lambda name: analyze(SAMPLES / name, tmp_path_factory.mktemp("golden")))


@functools.cache
def report(name: str) -> dict[str, Any]:
    """What the command writes as JSON of a sample (`test_whole_report_as_accepted_snapshot`), without starting it."""
    return json.loads(dump(report_of(name).to_dict()))


@functools.cache
def label(name: str) -> dict[str, Any]:
    return tomllib.loads((SAMPLES / name / "case.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_the_labelled_cause_is_first(name: str) -> None:
    ranked = [(item["cause"], item["probability"]) for item in report(name)["diagnoses"][:3]]
    assert ranked[0][0] == label(name)["cause"], ranked
    assert ranked[0][1] >= 0.5, ranked
    assert report(name)["verdict"] == VERDICTS.get(label(name)["cause"], "diagnosed")


@pytest.mark.parametrize("name", NAMES)
def test_the_json_keeps_to_the_schema(name: str) -> None:
    errors = VALIDATOR.iter_errors(report(name))
    assert [f"{list(error.path)}: {error.message}"[:300] for error in errors] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_label_is_no_evidence(name: str) -> None:
    read = [row for row in report(name)["coverage"]["sources"] if row["path"].endswith("case.toml")]
    assert [row for row in read if row["rows"] or row["problems"]] == []


@pytest.mark.parametrize("name", [name for name in NAMES if label(name)["cause"] == "healthy"])
def test_healthy_stays_healthy(name: str) -> None:
    assert [item["first_failure"]["text"] for item in report(name)["incidents"]] == []
    assert [item["cause"] for item in report(name)["diagnoses"] if item["probability"] >= 0.5] == ["healthy"]


def test_a_healthy_bundle_passes_a_gate_that_a_failed_one_does_not(tmp_path: Path) -> None:
    assert analyze(SAMPLES / "healthy-older-server", tmp_path, "--fail-on", "0.5").status == 0
    assert analyze(SAMPLES / "utilization-left-at-035", tmp_path, "--fail-on", "0.5").status == 1


@pytest.mark.parametrize("name", WHOLE[1:])
def test_twice_gives_the_same_bytes(name: str, told: Any, tmp_path: Path) -> None:
    again = analyze(SAMPLES / name, tmp_path)
    assert (again.text, again.page) == (told(name).text, told(name).page)


def test_another_process_gives_the_same_bytes(told: Any) -> None:
    """Hash seeds, time zones and languages differ between processes; reports do not."""
    env = {**os.environ, "PYTHONHASHSEED": "4711", "TZ": "Asia/Kathmandu", "LC_ALL": "C"}
    argv = [sys.executable, "-m", "oomdoc", "analyze", str(SAMPLES / WHOLE[0]), "--format", "json", "--quiet"]
    out = subprocess.run(argv, env=env, capture_output=True, check=True, timeout=600).stdout
    assert out.decode() == told(WHOLE[0]).text


@pytest.mark.parametrize("name", WHOLE)
def test_whole_report_as_accepted_snapshot(name: str, told: Any) -> None:
    run = told(name)
    assert run.status == 0
    assert run.report == report(name)
    check(SNAPSHOTS / f"{name}.terminal-80.txt", run.page)
    versions = ("oomdoc_version", "rules_version")  # every edit of any rule changes them
    plain = {key: "..." if key in versions else value for key, value in run.report.items()}
    check(SNAPSHOTS / f"{name}.json", dump(plain))


# ---- the samples themselves


@functools.cache
def _generator() -> ModuleType:
    sys.path.insert(0, str(SAMPLES))
    try:
        spec = importlib.util.spec_from_file_location("make_samples", SAMPLES / "make_samples.py")
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(SAMPLES))
    return module


def _tree(root: Path) -> dict[str, bytes]:
    unpacked = _generator().unpacked
    files = (path for path in sorted(root.glob("*/**/*")) if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(root).as_posix(): unpacked(path.read_bytes()) for path in files}


def test_the_samples_are_what_the_script_writes(tmp_path: Path) -> None:
    _generator().write(tmp_path)
    fresh, shipped = _tree(tmp_path), _tree(SAMPLES)
    assert sorted(fresh) == sorted(shipped)
    assert [path for path in fresh if fresh[path] != shipped[path]] == []
    assert _generator().write(tmp_path) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_label_is_whole(name: str) -> None:
    case = label(name)
    assert case["id"] == name
    assert (ROOT / "rules" / case["category"] / f"{case['cause']}.toml").is_file()
    assert all(list((ROOT / "rules").glob(f"*/{cause}.toml")) for cause in case["also"])
    assert (case["origin"], case["licence"]) == ("made for this project", "Apache-2.0")
    assert case["title"] and case["why"] and case["hard"]
    files = {path.relative_to(SAMPLES / name).as_posix() for path in (SAMPLES / name).rglob("*") if path.is_file()}
    assert files == {*case["files"], "case.toml"}


def test_the_samples_are_small_and_name_nobody() -> None:
    sizes = {name: sum(path.stat().st_size for path in (SAMPLES / name).rglob("*") if path.is_file()) for name in NAMES}
    assert max(sizes.values()) < 1.5 * 2**20
    assert sum(sizes.values()) < 6 * 2**20
    address = re.compile(
        rb"(?<![\w.:])(?!192\.0\.2\.|198\.51\.100\.|127\.0\.0\.1|0\.0\.0\.0)(?:\d{1,3}\.){3}\d{1,3}(?![\w.])"
    )
    private = re.compile(rb"/home/|@[a-z]+\.[a-z]{2,3}\b|hf_[A-Za-z]{8}|sk-[A-Za-z0-9]{8}")
    for path, data in _tree(SAMPLES).items():
        assert address.findall(data) == [], path
        assert private.findall(data) == [], path


BOOKS = re.compile(
    r"Tried to allocate ([\d.]+ [MG]iB)\. GPU \d has a total capacity of ([\d.]+ GiB) of which ([\d.]+ [MG]iB) is free\. "
    r"(?:Including non-PyTorch memory, this process|Process \d+) has ([\d.]+ GiB) memory in use\. "
    r"Of the allocated memory ([\d.]+ GiB) .*?and ([\d.]+ [MG]iB) is reserved by PyTorch but unallocated"
)


def test_the_books_of_every_allocator_message_close() -> None:
    found = 0
    for path, data in _tree(SAMPLES).items():
        for match in BOOKS.finditer(data.decode(errors="replace")):
            sizes = [parse_size(text, binary=True) for text in match.groups()]
            request, total, free, own, allocated, unallocated = (float(size or 0) for size in sizes)
            assert abs(total - free - own) < 0.02 * GIB, (path, match[0])
            assert 0.4 * GIB < own - allocated - unallocated < 1.6 * GIB, (path, match[0])  # context, graphs, NCCL
            assert free < request, (path, match[0])
            found += 1
    assert found >= 16


def test_every_row_of_the_matrix_has_a_sample() -> None:
    rows = {path.name for path in (ROOT / "rules").iterdir() if path.is_dir()}
    assert {label(name)["category"] for name in NAMES} == rows
