"""What a run may cost and leave behind: time, memory, scratch folders, signals, and no network at all."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import duckdb
import pytest

from grids import WHOLE
from oomdoc.evidence.store import Store
from oomdoc.judge.weigh import say
from oomdoc.limits import Ended, limited, scratch_folder, watched

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "sample_logs" / "graph-capture-on-24gb"


def start(
    *argv: str, scratch: Path, code: str = "", stdin: int = subprocess.DEVNULL, site: Path | None = None
) -> subprocess.Popen[str]:
    """The program in a process of its own, `code` before it, its temporary files below `scratch`, modules of `site` first."""
    program = f"{code}\nimport sys\nfrom oomdoc.cli import run\nsys.exit(run({list(argv)!r}))"
    path = f"{site}{os.pathsep}{ROOT / 'src'}" if site else str(ROOT / "src")
    environment = {**os.environ, "TMPDIR": str(scratch), "PYTHONPATH": path}
    return subprocess.Popen([sys.executable, "-c", program], env=environment, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=_usual_signals)  # fmt: skip


def _usual_signals() -> None:
    """As a shell starts a program in the foreground: under nohup, or in the background of a script, some are ignored."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def wait_for(path: Path, seconds: float = 60) -> list[Path]:
    """What appears in a folder."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := list(path.glob("oomdoc-*")):
            return found
        time.sleep(0.05)
    raise AssertionError("no scratch folder appeared")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_run_that_is_ended_leaves_nothing_behind(number: int, tmp_path: Path) -> None:
    running = start("analyze", "-", scratch=tmp_path, stdin=subprocess.PIPE)
    (folder,) = wait_for(tmp_path)
    assert folder.stat().st_mode & 0o777 == 0o700
    time.sleep(0.5)
    running.send_signal(number)
    assert running.wait(60) == (130 if number == signal.SIGINT else 128 + number)
    assert running.stderr is not None
    assert running.stderr.read().startswith("oomdoc: ")
    assert list(tmp_path.iterdir()) == []


def test_a_run_ends_at_its_time(tmp_path: Path) -> None:
    """Standard input never ends."""
    running = start("analyze", "-", "--timeout", "1", scratch=tmp_path, stdin=subprocess.PIPE)
    assert running.wait(90) == 3
    assert running.stderr is not None
    assert "stopped after 1 s, the time limit" in running.stderr.read()
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_hears_no_signal_ends_all_the_same(tmp_path: Path) -> None:
    code = "import signal, oomdoc.limits as limits; limits.GRACE_S = 1.0; signal.setitimer = lambda *given: None"
    running = start("analyze", "-", "--timeout", "1", scratch=tmp_path, code=code, stdin=subprocess.PIPE)
    assert running.wait(90) == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs RLIMIT_DATA of Linux")
def test_a_run_ends_at_its_memory(tmp_path: Path) -> None:
    code = "import oomdoc.diagnose as d\ndef greedy(*given):\n    held = [bytearray(1 << 20) for _ in range(2000)]\n    raise SystemExit(9)\nd.analyze = greedy"
    running = start("analyze", str(SAMPLE), "--memory-limit", "300MiB", scratch=tmp_path, code=code)
    assert running.wait(90) == 3
    assert running.stderr is not None
    assert "of memory, the limit" in running.stderr.read()


def test_a_sample_needs_far_less_than_the_limit(tmp_path: Path) -> None:
    running = start("analyze", str(SAMPLE), "--memory-limit", "600MiB", scratch=tmp_path)
    out, told = running.communicate(timeout=600)
    assert running.returncode == 0, told
    assert "cuda-graph-overhead" in out


def test_limits_are_lifted_afterwards() -> None:
    resource = pytest.importorskip("resource")
    before = (
        resource.getrlimit(resource.RLIMIT_DATA),
        signal.getsignal(signal.SIGALRM),
        signal.getsignal(signal.SIGTERM),
    )
    with watched(), limited(50, 1 << 30):
        assert resource.getrlimit(resource.RLIMIT_DATA) != before[0] or before[0][0] != resource.RLIM_INFINITY
    assert before == (resource.getrlimit(resource.RLIMIT_DATA), signal.getsignal(signal.SIGALRM), signal.getsignal(signal.SIGTERM))  # fmt: skip
    for seconds in (0.0001, 0.2):
        with pytest.raises(Ended), limited(seconds, None):
            time.sleep(5)
    assert not [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer) and not thread.finished.is_set()]  # fmt: skip


def test_scratch_folders_have_names_that_nobody_foretells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with scratch_folder() as one, scratch_folder() as two:
        assert one.name != two.name and len(one.name) >= len("oomdoc-") + 8
        assert {path.stat().st_mode & 0o777 for path in (one, two)} == {0o700}
    assert list(tmp_path.iterdir()) == []


# ---- no network

_NO_SOCKETS = """
import sys
def deny(event, arguments):
    if event.startswith("socket.") and getattr(arguments[0], "family", 0) == 1 or event == "socket.__new__" and arguments[1] == 1:
        return  # AF_UNIX: within the machine, by which a sweep talks to its workers
    if event.startswith(("socket.", "urllib.", "http.", "ftplib.", "smtplib.", "subprocess.", "os.system", "os.exec", "os.posix_spawn")):
        print("TOUCHED", event, arguments, file=sys.stderr)
        raise PermissionError(event)
sys.addaudithook(deny)
"""


COMMANDS: Mapping[str, tuple[str, ...]] = {
    "analyze": ("analyze", str(SAMPLE), "-o", "OUT/a.html", "-o", "OUT/a.md", "-o", "OUT/a.json", "--db", "OUT/a.duckdb"),
    "analyze --redact": ("analyze", str(SAMPLE), "--redact", "--rules", str(ROOT / "rules")),
    "redact": ("redact", str(SAMPLE), "OUT/copy", "--map", "OUT/map"),
    "profile": ("profile", str(ROOT / "sample_logs/prompt-logprobs-spike")),
    "replay": ("replay", str(ROOT / "sample_logs/prompt-logprobs-spike"), "--set", "max_num_seqs=8"),
    "fit": ("fit", "--model", "Qwen/Qwen3-32B", "--gpu", "H100", "--tp", "2"),
    "diff": ("diff", str(ROOT / "tests/cases/healthy-b5"), str(SAMPLE)),
    "sweep": ("sweep", str(SAMPLE), "--store", "OUT/store"),
    "sql": ("sql", str(SAMPLE), "SELECT count(*) FROM oom"),
    "tables": ("tables",),
    "show": ("show", str(SAMPLE), "vllm.log:5"),
    "explain": ("explain", "kv-demand-exceeds-pool"),
    "doctor": ("doctor", str(ROOT / "tests" / "cases" / "healthy-b5")),
    "collect": ("collect",),
    "version": ("version",),
    "completion": ("completion", "bash"),
    "schema": ("schema",),
    "rules": ("rules", "list"),
    "rules test": ("rules", "test", "OUT/rules"),
    "rules new": ("rules", "new", "disk-full", "OUT/new"),
    "rules count": ("rules", "count", str(ROOT / "tests/cases/shm-exhausted-a4")),
}  # fmt: skip


def test_a_socket_would_be_seen(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(_NO_SOCKETS)
    running = start("version", scratch=tmp_path, site=tmp_path, code="import socket; socket.socket()")
    assert "TOUCHED" in running.communicate(timeout=60)[1] and running.returncode


def test_every_command_is_tried_without_sockets() -> None:
    from oomdoc.cli import app

    names = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    names |= {group.name for group in app.registered_groups if group.name}
    assert names <= {argv[0] for argv in COMMANDS.values()}


_EACH = """
import json, sys
from oomdoc.cli import run
for name, argv in json.loads(sys.stdin.read()).items():
    print("RUNNING", name, file=sys.stderr)
    if status := run(argv):
        sys.exit(f"{name} ended with {status}")
"""


@pytest.mark.long
def test_no_socket_is_ever_made(tmp_path: Path) -> None:
    """One process runs every command after the other: each alone would prove the same, and start twenty times."""
    (tmp_path / "scratch").mkdir()
    (tmp_path / "rules" / "kv-cache").mkdir(parents=True)
    shutil.copy(ROOT / "rules/kv-cache/kv-demand-exceeds-pool.toml", tmp_path / "rules" / "kv-cache")
    # `rules test` asks the store 400 times what `analyze` asks it once
    given = {name: [part.replace("OUT", str(tmp_path)) if part.startswith("OUT/") else part for part in argv] for name, argv in COMMANDS.items() if WHOLE or name != "rules test"}  # fmt: skip
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(_NO_SOCKETS)  # so that it holds in the workers of a sweep, too
    environment = {**os.environ, "TMPDIR": str(tmp_path / "scratch"), "PYTHONPATH": f"{tmp_path / 'site'}{os.pathsep}{ROOT / 'src'}"}  # fmt: skip
    ran = subprocess.run([sys.executable, "-c", _EACH], input=json.dumps(given), env=environment, capture_output=True, text=True, timeout=1800)  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert "TOUCHED" not in ran.stderr, ran.stderr[-3000:]
    assert ran.stderr.count("RUNNING") == len(given)
    assert list((tmp_path / "scratch").iterdir()) == []


def test_it_runs_where_there_is_no_network(tmp_path: Path) -> None:
    """In a network namespace of its own even a library in C reaches nobody."""
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode:
        pytest.skip("no network namespaces here")
    command = ["unshare", "-rn", sys.executable, "-m", "oomdoc", "analyze", str(SAMPLE)]
    ran = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


# ---- what a query of somebody else's rule may do

READS: tuple[str, ...] = (
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_csv_auto('/etc/passwd')",
    "SELECT * FROM read_parquet('/etc/passwd')",
    "SELECT * FROM read_json('/etc/passwd')",
    "SELECT * FROM read_json_objects('/etc/passwd')",
    "SELECT * FROM read_ndjson('/etc/passwd')",
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "SELECT * FROM parquet_metadata('/etc/passwd')",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM 'https://example.com/x.csv'",
    "SELECT * FROM read_csv('s3://bucket/x')",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM query('SELECT * FROM read_text(''/etc/passwd'')')",
    "SELECT getenv('HOME')",
    "COPY oom TO '/tmp/x'",
    "COPY oom FROM '/etc/passwd'",
    "ATTACH '/tmp/x.duckdb'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '/tmp/x.duckdb_extension'",
    "CALL load_aws_credentials()",
    "PRAGMA database_list",
    "PRAGMA enable_external_access",
    "SET enable_external_access = true",
    "RESET enable_external_access",
    "EXPORT DATABASE '/tmp/x'",
    "IMPORT DATABASE '/tmp/x'",
    "CREATE TABLE x AS SELECT 1",
    "CREATE SECRET s (TYPE s3)",
    "EXPLAIN ANALYZE SELECT 1",
    "WITH x AS (DELETE FROM oom RETURNING *) SELECT * FROM x",
    "WITH x AS (dElEtE/**/FROM oom RETURNING *) SELECT * FROM x",
    "WITH x AS (UPDATE oom SET line = 9 RETURNING *) SELECT * FROM x",
    "WITH x AS (INSERT INTO oom (line) VALUES (7) RETURNING *) SELECT * FROM x",
    "WITH x AS (MERGE INTO oom USING oom o ON false WHEN NOT MATCHED THEN INSERT (line) VALUES (1) RETURNING *) SELECT * FROM x",
    "SELECT 1" + " " * 200_000,
)


def test_a_rule_reads_no_file_and_writes_nothing(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.add("oom", [{"source": "v.log", "line": 3}])
        store.finish()
        for sql in READS:
            with pytest.raises(duckdb.Error):
                store.ask(sql)
                pytest.fail(f"answered: {sql[:100]}")
            assert store.rows_of("SELECT source, line FROM oom") == [{"source": "v.log", "line": 3}], sql[:100]
            assert store.ask("SELECT count(*) AS n FROM oom") == {"n": 1}, "and the next question is answered"


def test_a_question_that_names_such_a_word_is_answered(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.add("oom", [{"source": "update.log", "line": 3}])
        store.finish()
        assert store.ask("SELECT replace(source, 'update', 'delete') AS s FROM oom") == {"s": "delete.log"}
        assert store.query("SELECT line FROM oom WHERE source LIKE 'update%'")[1] == [(3,)]


BOMBS: Mapping[str, str] = {
    "recursion": "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT max(n) FROM r",
    "a recursion that grows": "WITH RECURSIVE r(n, s) AS (SELECT 1, 'x' UNION ALL SELECT n + 1, s || s FROM r) SELECT max(length(s)) FROM r",
    "a join": "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b",
    "a text": "SELECT length(repeat('x', 100000000000))",
    "a padded text": "SELECT rpad('x', 2000000000, 'y')",
    "a printed width": "SELECT printf('%1000000000d', 1)",
    "a list": "SELECT list_sort(range(1000000000))",
    "a list of all": "SELECT list(range) FROM range(10000000000)",
    "lists unnested": "SELECT unnest(range(1000000000)) ORDER BY 1 DESC LIMIT 1",
    "a window": "SELECT array_agg(x) OVER () FROM (SELECT unnest(range(100000000)) AS x)",
    "texts put together": "SELECT string_agg(repeat('x', 1000000), '') FROM range(100000)",
    "replacing": "SELECT regexp_replace(repeat('a', 10000000), 'a', repeat('b', 10000), 'g')",
    "brackets": "SELECT " + "(" * 5000 + "1" + ")" * 5000,
    "a sum without end": "SELECT " + "+".join(["1"] * 40_000),
    "sleep": "SELECT sleep_ms(1000000)",
}

_BOMB = """
import json, sys, time, resource, duckdb
from pathlib import Path
import oomdoc.evidence.store as store
from oomdoc.limits import limited, scratch_folder
with limited(1500, 1 << 30), scratch_folder() as folder, store.Store(folder) as opened:
    opened.finish()
    watchdog = opened.database._watchdog
    watchdog.begin = lambda seconds, begin=type(watchdog).begin: begin(watchdog, 0.4)
    for name, sql in json.loads(sys.stdin.read()).items():
        try:
            opened.ask(sql)
            print("ANSWERED", name)
        except (duckdb.Error, MemoryError) as problem:
            pass
        assert opened.ask("SELECT 1 AS n") == {"n": 1}
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs RLIMIT_DATA of Linux")
def test_a_bomb_in_a_rule_ends_within_time_and_memory(tmp_path: Path) -> None:
    """All in one process and one store, as in an analysis with such rules: what one holds is given back before the next."""
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT / "src")}
    ran = subprocess.run([sys.executable, "-c", _BOMB], input=json.dumps(dict(BOMBS)), env=environment, capture_output=True, text=True, timeout=1800)  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "ANSWERED" not in ran.stdout
    assert int(ran.stdout.split()[-1]) < 1500, "MiB"
    assert list(tmp_path.iterdir()) == []


def test_a_sentence_of_a_rule_is_no_bomb() -> None:
    assert len(say("{n:1000000000} {n:>20}", {"n": 3})) < 60


def test_a_rule_folder_with_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    from oomdoc.judge.rules import load_rules

    (tmp_path / "host").mkdir()
    os.mkfifo(tmp_path / "host" / "waits.toml")
    (tmp_path / "host" / "large.toml").write_bytes(b"# " + b"x" * (2 << 20))
    _, faults = load_rules(tmp_path)
    assert [fault.split(": ")[1].split(".")[0] for fault in sorted(faults)] == ["is larger than 1,048,576 bytes", "is no plain file"]  # fmt: skip
