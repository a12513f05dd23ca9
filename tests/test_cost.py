"""What is no log costs little: trees of programs, holes of terabytes, pipes nobody writes into, archives of unknown kinds."""

from __future__ import annotations

import cProfile
import io
import os
import tarfile
import threading
import time
import zipfile
from pathlib import Path

import pytest

import oomdoc
from oomdoc import ingest
from oomdoc.errors import BundleError
from oomdoc.ingest.base import Head
from oomdoc.ingest.program_text import language
from oomdoc.intake import given, streams
from oomdoc.intake.binary import binary_form
from oomdoc.intake.bundle import open_bundle
from oomdoc.loading.load import _Texts
from oomdoc.model import Unread

REPLAYS_ANEW = True

SAMPLE = Path(__file__).parents[1] / "sample_logs" / "graph-capture-on-24gb"
LOG = (SAMPLE / "vllm.log").read_bytes()
PYTHON = b'"""A part of something."""\n\nimport os\nfrom typing import Any\n\n\ndef part(value: Any) -> str:\n    return f"{value} ran out of GPU memory"\n'

# ---- trees of programs


def tree(root: Path) -> dict[str, bytes]:
    files = {"vllm.log": LOG, "app/main.py": PYTHON, "app/__pycache__/main.pyc": b"\xa7\r\r\n", "node_modules/a/index.js": b"x", "web/node_modules/b/index.js": b"x", ".git/HEAD": b"ref: main\n", ".git/logs/HEAD": b"0 1\n"}  # fmt: skip
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return files


def packed(files: dict[str, bytes], form: str) -> bytes:
    raw = io.BytesIO()
    if form == "zip":
        with zipfile.ZipFile(raw, "w") as archive:
            for name, data in files.items():
                archive.writestr(name, data)
        return raw.getvalue()
    with tarfile.open(fileobj=raw, mode="w:gz") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return raw.getvalue()


@pytest.mark.parametrize("form", ["folder", "tgz", "zip"])
def test_folders_of_programs_are_passed_over_and_summed(form: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    files = tree(root)
    if form != "folder":
        (tmp_path / f"x.{form}").write_bytes(packed(files, form))
    with oomdoc.analyze(root if form == "folder" else tmp_path / f"x.{form}") as analysis:
        report = analysis.report
    assert [row.path for row in report.coverage.sources] == ["vllm.log"]
    assert set(report.coverage.unread) == {
        Unread(".git", ".git: a folder of programs, not looked into"),
        Unread("app/__pycache__", "__pycache__: a folder of programs, not looked into"),
        Unread("app/main.py", "program text (Python), no evidence"),
        Unread("node_modules", "node_modules: a folder of programs, not looked into, and 1 more of that name"),
    }
    assert report.diagnoses[0].cause == "cuda-graph-overhead" and report.bundle.complete


def test_what_nobody_knows_costs_a_small_part_of_what_is_looked_at_closely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Texts, "MOST", 6)  # a close look is long enough for a few to be measured

    def unknown(number: int) -> str:
        return "".join(f"entry {line} of the list {number}, as it was found\n" for line in range(300))

    def calls(root: Path) -> int:
        """How often a function was called, of Python and of C: seconds would be those of whatever else runs here."""
        profile = cProfile.Profile(builtins=True)
        with profile, oomdoc.analyze(root) as analysis:
            assert analysis.report.diagnoses[0].cause == "cuda-graph-overhead"
        return sum(entry.callcount for entry in profile.getstats())

    roots = {name: tmp_path / name for name in ("log", "few", "many", "programs")}
    for name, texts, programs in (("log", 0, 0), ("few", _Texts.MOST, 0), ("many", 10 * _Texts.MOST, 0), ("programs", 0, 500)):  # fmt: skip
        roots[name].mkdir()
        (roots[name] / "vllm.log").write_bytes(LOG)
        for number in range(texts):
            (roots[name] / f"t{number:04}.txt").write_text(unknown(number))
        for number in range(programs):
            (roots[name] / f"m{number:04}.py").write_bytes(PYTHON * 40)
    calls(roots["few"])  # what is made once: expressions, tables
    log, few, many, programs = (calls(root) for root in roots.values())
    closely, quickly = (few - log) / _Texts.MOST, (many - few) / (9 * _Texts.MOST)
    # measured: 0.24 and 0.004 of it, where a close look is 93,000 calls
    assert quickly < closely / 3, (closely, quickly)
    assert (programs - log) / 500 < closely / 100, (closely, programs, log)


def test_programs_without_number_are_said_in_a_line(tmp_path: Path) -> None:
    for number in range(500):
        (tmp_path / f"m{number:04}.py").write_bytes(PYTHON * 40)
    (tmp_path / "vllm.log").write_bytes(LOG)
    with oomdoc.analyze(tmp_path) as analysis:
        report = analysis.report
    assert report.coverage.unread == (Unread("m0000.py", "program text (Python), no evidence, and 499 more files of it"),)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (PYTHON, "Python"),
        (b"/* licence */\n#ifndef X\n#define X\n#include <a.h>\n", "C or C++"),
        (b"'use strict'\nconst a = require('a')\n", "JavaScript"),
        (b"package main\n\nimport (\n)\nfunc main() {\n", "Go"),
        (b"use std::io;\nfn main() {\n", "Rust"),
        (b"package a.b;\n\nimport java.util.List;\npublic class A {\n", "Java"),
        (b"<!DOCTYPE html>\n<html>\n<head>\n", "a page of the web"),
        (b"from vllm import LLM\nimport os\nllm = LLM(model='m', max_model_len=4096)\n", None),
        (b"import os\nimport sys\nos.execvp('vllm', ['vllm serve'])\n", None),
        (LOG[:60_000], None),
        (b'Traceback (most recent call last):\n  File "x.py", line 1\nimport os\nimport sys\n', None),
        (b"2026-11-20 20:04:51 start\nimport os\nimport sys\n", None),
        (b"#!/bin/bash\nexport A=1\nif true; then\n  exec server --port 80\nfi\n", None),
        (b"model: m\nmax-model-len: 4096\n", None),
        (b"We import from many places. def is a word.\n", None),
        (b"", None),
    ],
)
def test_program_text_is_told_by_its_first_bytes(text: bytes, wanted: str | None) -> None:
    assert language(Head("x", text)) == wanted


def test_no_sample_is_program_text() -> None:
    for path in SAMPLE.parent.glob("*/**/*"):
        if path.is_file():
            assert ingest.is_program(ingest.make_head(path.name, path.read_bytes())) is None, path


def test_a_person_decides_what_a_file_is(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_bytes(PYTHON)
    (tmp_path / "vllm.log").write_bytes(LOG)
    from oomdoc.diagnose import Options

    with oomdoc.analyze(tmp_path, Options(types=("x.py=text-log",))) as analysis:
        assert [row.path for row in analysis.report.coverage.sources] == ["vllm.log", "x.py"]


def test_a_note_among_many_texts_is_read_all_the_same(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / f"a{number:03}.txt").write_text("nothing of note here\n" * 5)
    (tmp_path / "z-note.txt").write_text(
        "The GPU is an A100 80GB. It fails with CUDA out of memory with a 16k token prompt.\n"
    )
    (tmp_path / "vllm.log").write_bytes(LOG)
    with oomdoc.analyze(tmp_path) as analysis:
        kinds = {row.path: row.kind for row in analysis.report.coverage.sources}
    assert kinds["z-note.txt"] == "notes"


# ---- runs of NUL, pipes


def sparse(path: Path, size: int, then: bytes = b"") -> Path:
    with path.open("wb") as file:
        file.truncate(size)
        file.seek(size)
        file.write(then)
    if path.stat().st_blocks * 512 > 1 << 20:
        pytest.skip("this file system has no holes")
    return path


def test_a_terabyte_of_nothing_ends_at_once(tmp_path: Path) -> None:
    path = sparse(tmp_path / "x.log", 1 << 40)
    began = time.process_time()
    with pytest.raises(BundleError, match="nothing but blank lines"):
        oomdoc.analyze(path)
    assert time.process_time() - began < 20


def test_a_log_behind_a_hole_is_read(tmp_path: Path) -> None:
    """A writer that goes on where it was, after the file was truncated under it."""
    path = sparse(tmp_path / "vllm.log", 200 << 30, LOG)
    with oomdoc.analyze(path) as analysis:
        assert analysis.report.diagnoses[0].cause == "cuda-graph-overhead"
        assert analysis.report.bundle.complete


def test_endless_nuls_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be jumped in, such as a device behind a pipe, is read for a second."""
    monkeypatch.setattr(streams, "_HOLE_FROM", 1 << 20)
    monkeypatch.setattr(streams, "_NULS_CAP", 8 << 20)

    class Zero(io.RawIOBase):
        given = 0

        def read(self, size: int = -1) -> bytes:
            self.given += size
            return bytes(size)

    raw, notes = Zero(), []
    source = streams.Source(raw, "zero", lambda label, why: notes.append((label, why)))  # type: ignore[arg-type]
    source.drain()
    assert raw.given < 16 << 20
    assert notes == [("zero", "nothing but NUL bytes for 8 MiB: the rest was not read")]


def test_short_runs_of_nuls_are_nothing_special(tmp_path: Path) -> None:
    data = LOG + bytes(3 << 20) + LOG
    (tmp_path / "vllm.log").write_bytes(data)
    given = open_bundle([tmp_path / "vllm.log"])
    assert b"".join(member.stream.read() for member in given.members()) == data


def test_a_pipe_that_nobody_writes_into_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(given, "WRITER_S", 0.2)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BundleError, match="nobody wrote into the pipe"):
        oomdoc.analyze(tmp_path / "pipe")


def test_a_writer_who_comes_later_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    def write() -> None:
        time.sleep(0.5)
        with (tmp_path / "pipe").open("wb") as pipe:
            time.sleep(0.5)
            pipe.write(LOG)

    writer = threading.Thread(target=write)
    writer.start()
    with oomdoc.analyze(tmp_path / "pipe") as analysis:
        assert analysis.report.diagnoses[0].cause == "cuda-graph-overhead"
        assert analysis.report.bundle.bytes == len(LOG)
    writer.join()


# ---- forms that are not opened

REFUSED = {
    ".iso": bytes(32_769) + b"CD001\x01" + bytes(2_000),
    ".deb": b"!<arch>\ndebian-binary   1410122664  0     0     100644  4         `\n2.0\n",
    ".cpio": b"070701000000010000" + b"0" * 200,
    ".lz": b"LZIP\x01\x0c" + bytes(range(200)),
    ".lzma": b"\x5d\0\0\x80\0" + bytes(range(200)),
    ".age": b"age-encryption.org/v1\n-> X25519 abc\n--- def\n" + bytes(range(200)),
    "armored.age": b"-----BEGIN AGE ENCRYPTED FILE-----\nYWdl\n",
    ".pgp": b"-----BEGIN PGP MESSAGE-----\n\nhQ\n",
    ".enc": b"Salted__" + bytes(range(200)),
    ".rpm": b"\xed\xab\xee\xdb\x03\0" + bytes(100),
    ".cab": b"MSCF\0\0\0\0" + bytes(100),
    ".sqfs": b"hsqs" + bytes(100),
    ".7z": b"7z\xbc\xaf\x27\x1c" + bytes(100),
}


@pytest.mark.parametrize("suffix", REFUSED)
def test_what_is_not_opened_is_named(suffix: str, tmp_path: Path) -> None:
    form = binary_form(REFUSED[suffix])
    assert form is not None and ("first" in form), form
    (tmp_path / f"x{suffix}").write_bytes(REFUSED[suffix])
    with pytest.raises(BundleError, match="first"):
        oomdoc.analyze(tmp_path / f"x{suffix}")
