"""Full disks, closed streams, small limits, odd names: one sentence, the status of the contract, and nothing half done.

What needs limits, streams or a place of its own is a process of its own, as a person or a script starts one.
"""

from __future__ import annotations

import errno
import io
import json
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import duckdb
import pytest

from grids import some
from oomdoc import cli, faults
from oomdoc.cli import console
from oomdoc.errors import OomdocError, RuleError, UsageError
from oomdoc.judge.rules import load_rules, read_rule

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "sample_logs" / "graph-capture-on-24gb"
SMALL = ROOT / "tests" / "cases" / "shm-exhausted-a4" / "vllm.log"
"""A few lines, for what is asked of a run and not of a report: a third of the time."""


def oomdoc(*argv: str | Path, scratch: Path, before: Callable[[], Any] | None = None, **options: Any) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """One run, its temporary files below `scratch`, `before` called in the child."""
    environment = {**os.environ, "TMPDIR": str(scratch), "PYTHONPATH": str(ROOT / "src")} | options.pop("env", {})
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run([sys.executable, "-m", "oomdoc", *map(str, argv)], env=environment, text=True, preexec_fn=before, timeout=600, **options)  # fmt: skip


def here(*argv: str | Path, file_bytes: int | None = None) -> subprocess.CompletedProcess[str]:
    """The same in this process: for what needs no stream or place of its own. No file may grow beyond `file_bytes`."""
    out, err = io.StringIO(), io.StringIO()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with redirect_stdout(out), redirect_stderr(err):
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, before if file_bytes is None else (file_bytes, before[1]))
            status = cli.run([*map(str, argv)])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    return subprocess.CompletedProcess(argv, status, out.getvalue(), err.getvalue())


def one_sentence(ran: subprocess.CompletedProcess[str], status: int, part: str) -> None:
    assert (ran.returncode, ran.stderr.count("\n")) == (status, 1), ran.stderr
    assert ran.stderr.startswith("oomdoc: ") and part in ran.stderr


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files, of this process too."""
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    return tmp_path / "scratch"


# ---- streams


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("argv", [["analyze", str(SMALL)], ["analyze", str(SMALL), "--format", "json"], ["--version"], ["--help"], ["schema"], ["sql", str(SAMPLE), "FROM oom"]])  # fmt: skip
def test_a_full_disk_on_standard_output(argv: list[str], scratch: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        ran = oomdoc(*argv, scratch=scratch, stdout=full)
    one_sentence(ran, 3, "no space left")
    assert list(scratch.iterdir()) == []


def test_a_full_disk_on_standard_error_is_no_fault(scratch: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        ran = oomdoc(SMALL, "-v", scratch=scratch, stderr=full)
    assert ran.returncode == 0 and "shm-exhausted" in ran.stdout


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a run prints of the sample when nothing is wrong."""
    return oomdoc(SMALL, scratch=tmp_path_factory.mktemp("whole")).stdout


def close(*numbers: int) -> Callable[[], None]:
    return lambda: [os.close(number) for number in numbers] and None


def test_closed_standard_output(scratch: Path, tmp_path: Path) -> None:
    one_sentence(oomdoc(SMALL, scratch=scratch, before=close(1)), 3, "standard output is closed")
    ran = oomdoc(SMALL, "-o", tmp_path / "r.json", scratch=scratch, before=close(1))
    assert ran.returncode == 0, ran.stderr
    assert json.loads((tmp_path / "r.json").read_text())["verdict"] == "diagnosed"


@pytest.mark.parametrize("numbers", [(2,), (0, 2), (0,)])
def test_closed_standard_error_changes_nothing(
    numbers: tuple[int, ...], whole: str, scratch: Path, tmp_path: Path
) -> None:
    """What is opened later gets no number of a standard stream: a database would be written to as standard error."""
    ran = oomdoc(SMALL, "--db", tmp_path / "x.duckdb", scratch=scratch, before=close(*numbers))
    assert (ran.returncode, ran.stdout) == (0, whole)
    with duckdb.connect(str(tmp_path / "x.duckdb"), read_only=True) as kept:
        assert kept.execute("SELECT count(*) > 0 FROM log_error").fetchall() == [(True,)]
    assert oomdoc("no-such", scratch=scratch, before=close(*numbers)).returncode == 3


def test_all_streams_closed(scratch: Path) -> None:
    assert oomdoc(SMALL, scratch=scratch, before=close(0, 1, 2)).returncode == 3
    one_sentence(oomdoc("-", scratch=scratch, before=close(0)), 3, "standard input is closed")
    one_sentence(oomdoc("sql", SAMPLE, scratch=scratch, before=close(0)), 2, "standard input is closed")


# ---- files that are written


def small_files(size: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.parametrize(("name", "there"), [("r.json", False), ("r.html", True), ("r.md", False)])
@pytest.mark.usefixtures("scratch")
def test_a_report_is_whole_or_not_there(name: str, there: bool, tmp_path: Path) -> None:
    target = tmp_path / name
    if there:
        target.write_text("of yesterday")
    one_sentence(here(SMALL, "-o", target, file_bytes=1024), 3, f"cannot write {target}")
    assert not there or target.read_text() == "of yesterday"
    assert {path.name for path in tmp_path.iterdir()} == {"scratch"} | ({name} if there else set())


def test_a_database_is_whole_or_not_there(scratch: Path, tmp_path: Path) -> None:
    ran = here(SMALL, "--db", tmp_path / "x.duckdb", file_bytes=100_000)
    one_sentence(ran, 3, "could not be written")
    (tmp_path / "bad.log").write_text("\n")
    assert here(tmp_path / "bad.log", "--db", tmp_path / "x.duckdb").returncode == 3
    assert [path.name for path in tmp_path.iterdir() if "duckdb" in path.name or "oomdoc" in path.name] == []
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("argv", "size"),
    [
        (["diff", str(SMALL), str(SMALL), "-o", "out.html"], 4096),
        (["sql", str(SAMPLE), "FROM milestone", "-o", "out.csv"], 256),
        (["sql", str(SAMPLE), "FROM milestone", "-o", "out.parquet"], 256),
        (["redact", str(SAMPLE), "out"], 256),
        (["redact", str(SAMPLE / "vllm.log"), "out.log", "--map", "out.map"], 256),
        (["rules", "new", "disk-full", "out"], 256),
        (["sweep", str(SAMPLE), "--store", "store", "--reports", "out"], 40_000),
    ],
    ids=lambda value: value[0] + value[-1] if isinstance(value, list) else "",
)
def test_whatever_is_written_is_whole_or_not_there(
    argv: list[str], size: int, scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every other output option: one sentence, the status of the contract, and no file of which a part is there."""
    there = tmp_path / "there"
    there.mkdir()
    if argv[0] == "sweep":  # whose workers keep their limits
        ran = oomdoc(*argv, scratch=scratch, before=small_files(size), cwd=there)
    else:
        monkeypatch.chdir(there)
        ran = here(*argv, file_bytes=size)
    told = [line for line in ran.stderr.splitlines() if not line.startswith("oomdoc: warning")]
    assert ran.returncode == 3 and len(told) == 1 and "file too large" in told[0].lower(), ran.stderr
    assert [path for path in there.rglob("*") if path.is_file() and "store" not in path.parts] == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("name", ["r.txt", "r.json", "r.html", "r.md"])
def test_an_output_on_a_full_device(name: str, scratch: Path, tmp_path: Path) -> None:
    (tmp_path / name).symlink_to("/dev/full")
    one_sentence(here(SMALL, "-o", tmp_path / name), 3, f"cannot write {tmp_path / name}")
    if name == "r.md":  # one function writes them all
        ran = oomdoc("sweep", SMALL, "--store", tmp_path / "store", "-o", tmp_path / name, scratch=scratch)
        one_sentence(ran, 3, f"cannot write {tmp_path / name}")


def test_what_quotes_the_bundle_is_for_its_owner_alone(tmp_path: Path) -> None:
    names = ["r.json", "r.html", "r.md", "r.txt"]
    (tmp_path / "r.md").write_text("before")
    (tmp_path / "r.md").chmod(0o644)
    targets = [word for name in names for word in ("-o", tmp_path / name)]
    umask = os.umask(0)
    try:
        for argv in (
            [SMALL, *targets, "--db", tmp_path / "x.duckdb"],
            ["sql", SAMPLE, "FROM milestone", "-o", tmp_path / "m.parquet"],
        ):
            ran = here(*argv)
            assert ran.returncode == 0, ran.stderr
    finally:
        os.umask(umask)
    rights = {name: (tmp_path / name).stat().st_mode & 0o777 for name in [*names, "x.duckdb", "m.parquet"]}
    assert set(rights.values()) == {0o600}, rights


def test_a_kept_database_answers_where_it_was_put(tmp_path: Path) -> None:
    assert here(SAMPLE, "--db", tmp_path / "x.duckdb").returncode == 0
    with duckdb.connect(str(tmp_path / "x.duckdb"), read_only=True) as kept:
        assert kept.execute("SELECT count(*) FROM seen.oom").fetchall() == kept.execute("SELECT count(*) FROM oom").fetchall()  # fmt: skip


def test_links_devices_and_closed_folders_are_written_as_before(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    console.write(str(tmp_path / "link.txt"), "new")
    assert (tmp_path / "link.txt").is_symlink() and (tmp_path / "real.txt").read_text() == "new"
    console.write(os.devnull, "gone")
    assert Path(os.devnull).is_char_device()
    console.write(str(tmp_path / "shared.prom"), "x 1\n", private=False)
    umask = os.umask(0)
    os.umask(umask)
    assert (tmp_path / "shared.prom").stat().st_mode & 0o777 == 0o666 & ~umask


def test_no_report_is_written_over_a_part_of_the_input(tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.mkdir()
    for name in ("vllm.log", "notes.txt", "rows.json"):
        (given / name).write_bytes(SMALL.read_bytes())
    (tmp_path / "alias").symlink_to(given)
    for name in ("given/notes.txt", "alias/rows.json"):
        ran = here(given, "-o", tmp_path / name)
        one_sentence(ran, 2, "is part of the input")
    for _ in range(2):  # a report of our own may be written anew
        ran = here(given, "-o", given / "r.json", "-o", given / "r.html")
        assert ran.returncode == 0, ran.stderr


# ---- names and places


def test_a_deleted_working_folder(scratch: Path, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()

    def leave() -> None:
        os.chdir(tmp_path / "gone")
        (tmp_path / "gone").rmdir()

    one_sentence(oomdoc(SMALL, scratch=scratch, before=leave), 3, "the working folder cannot be used")


def test_names_that_are_too_long(tmp_path: Path) -> None:
    long = "a" * 300
    one_sentence(here(long), 3, "name too long")
    for options in (["-o", f"{long}.json"], ["--db", tmp_path / f"{long}.duckdb"], ["--rules", long], ["--model-config", long]):  # fmt: skip
        one_sentence(here(SAMPLE, *options), 2, "name too long")


@pytest.mark.parametrize("without", [["HOME"], ["HOME", "LANG", "PATH"]])
def test_no_home_and_other_locales_change_nothing(without: Sequence[str], scratch: Path) -> None:
    def bare() -> None:
        os.umask(0o077)

    environment = {"LC_ALL": "C", "TERM": "dumb"}
    kept = {name: value for name, value in os.environ.items() if name not in without}
    command = [sys.executable, "-m", "oomdoc", str(SAMPLE), "--format", "json"]
    ran = subprocess.run(command, env={**kept, **environment, "PYTHONPATH": str(ROOT / "src"), "TMPDIR": str(scratch)}, capture_output=True, preexec_fn=bare)  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["diagnoses"][0]["cause"] == "cuda-graph-overhead"


# ---- memory


@pytest.mark.parametrize("limit", ["32MiB", "1KiB", "1", "255MiB"])
def test_a_memory_limit_that_is_too_small_names_the_least(limit: str, scratch: Path) -> None:
    one_sentence(here(SMALL, "--memory-limit", limit), 3, "256MiB or more")
    assert list(scratch.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="limits of Linux")
@pytest.mark.parametrize("size", [400_000, 250_000, 800_000])
def test_little_address_space_is_one_sentence(size: int, scratch: Path) -> None:
    ran = oomdoc(SMALL, scratch=scratch, before=lambda: resource.setrlimit(resource.RLIMIT_AS, (size << 10, size << 10)))  # fmt: skip
    one_sentence(ran, 3, "memory")
    assert list(scratch.iterdir()) == []


def test_what_libraries_say_of_memory_is_known() -> None:
    for problem in (MemoryError(), OSError(errno.ENOMEM, "x"), duckdb.OutOfMemoryException("x"), RuntimeError("can't start new thread"), ImportError("x.so: failed to map segment from shared object")):  # fmt: skip
        told = faults.told(problem)
        assert told is not None and told.exit_code == 3 and "memory" in str(told)
    for problem in (ZeroDivisionError(), ValueError("x"), RuntimeError("x"), duckdb.BinderException("x"), ImportError("no")):  # fmt: skip
        assert faults.told(problem) is None, "a bug keeps its traceback"
    for problem, status in ((OSError(errno.ENOSPC, "x"), 3), (OSError(errno.EMFILE, "x", "y"), 3), (OSError(errno.ENAMETOOLONG, "x", "y"), 2), (RecursionError(), 3), (duckdb.IOException("Could not write file"), 3)):  # fmt: skip
        refused = faults.told(problem)
        assert isinstance(refused, OomdocError) and refused.exit_code == status
        assert str(refused).count("\n") == 0


# ---- what is read

RULES = {
    "brackets": "a = " + "[" * 50_000,
    "tables": "a = " + "{a=" * 50_000,
    "a dotted key": ".".join(f"a{n}" for n in range(8000)) + " = 1",
    "a dotted heading": "[" + ".".join(f'"a{n}"' for n in range(50_000)) + "]",
    "a dotted key in a table": "x = {" + " . ".join(f"a{n}" for n in range(50_000)) + " = 1}",
    "words without an end": "a" * 1_000_000,
    "quotes without an end": '"' * 1_000_000,
    "headings": "".join(f"[a{n}.b]\n" for n in range(60_000)),
    "a number of 5,000 digits": "prior = " + "9" * 5000,
    "an infinite number": "prior = inf",
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_file_that_is_a_bomb_is_left_out_and_named(name: str, tmp_path: Path) -> None:
    path = tmp_path / "none" / "bomb.toml"
    path.parent.mkdir()
    path.write_text(RULES[name], encoding="utf-8")
    began = time.process_time()
    rules, named = load_rules(tmp_path, tests=False)
    assert time.process_time() - began < 10
    assert len(rules) > 20 and len(named) == 1 and named[0].startswith(f"{path}:")


@pytest.mark.parametrize("line", ["unseen = inf", "unseen = nan", f"unseen = 1{'0' * 400}", "prior = 5e-324", "prior = 0.9999999999999999", "prior_counted = [inf, 1]", "prior_counted = 7"])  # fmt: skip
def test_a_rule_of_impossible_numbers_is_refused(line: str, tmp_path: Path) -> None:
    text = (ROOT / "rules/host/shm-exhausted.toml").read_text(encoding="utf-8")
    key = line.split(" ")[0]
    head, _, evidence = text.partition("[[evidence]]")
    head = "\n".join(old for old in head.splitlines() if old.split("=")[0].strip() != key)
    path = tmp_path / "host" / "shm-exhausted.toml"
    path.parent.mkdir()
    path.write_text(f"{head}\n{line}\n\n[[evidence]]{evidence}", encoding="utf-8")
    with pytest.raises(RuleError, match=key):
        read_rule(path)


@pytest.mark.parametrize("text", ['{"a":' * 1000 + "1" + "}" * 1000, "[" * 100_000, '{"num_hidden_layers": ' + "9" * 5000 + "}", "", "[]"])  # fmt: skip
def test_a_model_config_that_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text)
    for argv in (["analyze", SAMPLE], ["fit", "--gpu", "H100"]):
        one_sentence(here(*argv, "--model-config", tmp_path / "config.json"), 2, "config.json")


def packed(names: dict[str, bytes]) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for name, data in names.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return raw.getvalue()


@pytest.mark.parametrize("what", ["no member", "an empty member", "blank lines", "nothing but NULs", "blanks and a picture"])  # fmt: skip
def test_a_bundle_with_nothing_in_it(what: str, tmp_path: Path) -> None:
    members = {"no member": {}, "an empty member": {"a.log": b""}, "blank lines": {"a.log": b"\n \n\t\r\n" * 5000, "b.log": b"\n"}, "nothing but NULs": {"a.log": bytes(300_000)}, "blanks and a picture": {"a.log": b"\n", "b.png": b"\x89PNG\r\n" + bytes(100)}}  # fmt: skip
    (tmp_path / "x.tgz").write_bytes(packed(members[what]))
    one_sentence(here(tmp_path / "x.tgz"), 3, "x.tgz")


def test_a_usage_error_of_the_system_stays_one() -> None:
    assert isinstance(faults.unwritable(IsADirectoryError(errno.EISDIR, "x"), "d"), UsageError)
    assert not isinstance(faults.unwritable(OSError(errno.ENOSPC, "x"), "d"), UsageError)


ODD = ("", "0", "-1", "nan", "inf", "-inf", "1e400", "9" * 5000, "٣", "½", "a\x00b", "\n", "\udcff", "/", "/dev/full", "x" * 5000, "[]", "=", "[=vllm-log", "2026-13-45", "+99:99", "1PiB")  # fmt: skip
OPTIONS = {
    "analyze no-such": ("--format", "-o", "--top", "--fail-on", "--db", "--rules", "--model-config", "--gpu", "--type", "--since", "--until", "--tz", "--max-size", "--max-members", "--timeout", "--memory-limit", "--color", "--map"),
    "profile no-such": ("--buckets", "--format", "--since", "--tz"),
    "replay no-such": ("--set", "--format"),
    "sql no-such SELECT": ("--format", "-o", "--limit"),
    "fit --model Qwen/Qwen3-8B --gpu H100": ("--tp", "--max-model-len", "--gpu-memory-utilization", "--input-tokens", "--model-config", "--dtype", "--solve"),
}  # fmt: skip


@pytest.mark.parametrize("command", OPTIONS)
def test_odd_values_of_options_are_one_sentence(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for place, option in enumerate(OPTIONS[command]):
        for value in some([*ODD[place % 6 :], *ODD[: place % 6]], 6):
            status = cli.run([*command.split(), option, value])
            err = capsys.readouterr().err
            assert status in ((0, 2, 3) if command.startswith("fit") else (2, 3)), (option, value[:20], err[-500:])
            assert "Traceback" not in err and err.count("\n") <= 1, (option, value[:20], err[-500:])
