"""`analyze --explain-coverage` accounts for every member; limits that a person sets are kept and told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import oomdoc
from oomdoc import cli

LOG = "INFO 01-05 12:00:00 [config.py:1] Using max model len 4096\nINFO 01-05 12:00:01 [a.py:1] Reserved 4 GiB for KV cache somehow\n"  # fmt: skip


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    root = tmp_path / "bundle"
    root.mkdir()
    (root / "vllm.log").write_text(LOG)
    (root / "empty.txt").write_text("")
    (root / "core").write_bytes(b"\x7fELF" + bytes(2000))
    (root / "link").symlink_to(root / "vllm.log")
    (root / "journal.export").write_text("__REALTIME_TIMESTAMP=1795205091500000\nMESSAGE=hello\n\n" * 3)
    return root


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    status = cli.run(["analyze", *argv, "--color", "never"])
    told = capsys.readouterr()
    return status, told.out, told.err


def test_every_member_is_accounted_for(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, str(bundle), "--explain-coverage")
    assert status == 0
    log = out[out.index("  vllm.log") :]
    assert f"read as vllm-log: {len(LOG)} bytes, 2 lines" in log
    assert "1 row: engine_flag 1" in log
    assert "1 problem: a known message in a wording that is new, first in line 2" in log
    assert "read as empty: 0 bytes, 0 lines" in out
    assert re.search(r"  core\n +ELF program or core dump of 2\.0 KiB: no format that holds evidence", out)
    assert re.search(r"  link\n +symbolic link, not followed", out)


def test_messages_that_a_document_quotes_are_set_aside_and_said(
    bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quote = "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`."
    (bundle / "RUNBOOK.md").write_text(f"# Runbook\n\nIf you see a line like this:\n\n```\n{quote}\n```\n\nyou can restart it.\n")  # fmt: skip
    _, out, _ = run(capsys, str(bundle), "--explain-coverage")
    document = out[out.index("  RUNBOOK.md") :]
    assert "read as document: " in document and "1 line with a message that is only quoted: no evidence" in document
    assert "read it with --type 'RUNBOOK.md=text-log'" in document
    _, out, _ = run(capsys, str(bundle), "--explain-coverage", "--type", "RUNBOOK.md=text-log")
    assert "startup_check 1" in out[out.index("  RUNBOOK.md") :]
    _, out, _ = run(capsys, str(bundle))
    assert "1 message only quoted, in RUNBOOK.md (document): no evidence" in re.sub(r"\s+", " ", out)


def test_bytes_are_those_of_the_file_whatever_became_of_them(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, str(bundle), "--explain-coverage")
    size = (bundle / "journal.export").stat().st_size
    assert f"{size} bytes, 3 lines" in out
    total = size + len(LOG)
    assert f"3 sources read with {total:,} bytes" in out


def test_the_account_goes_with_a_report_in_a_file(bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    target = tmp_path / "report.json"
    status, out, _ = run(capsys, str(bundle), "--explain-coverage", "-o", str(target))
    assert status == 0 and out.startswith("Coverage of bundle") and target.stat().st_size > 100


def test_the_account_is_for_people(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, str(bundle), "--explain-coverage", "--format", "json")
    assert status == 2 and "--explain-coverage" in err


def test_limits_are_kept_and_told(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, str(bundle), "--explain-coverage", "--max-members", "2")
    assert "more than 2 files in all: the rest was not read" in out
    _, out, _ = run(capsys, str(bundle), "--explain-coverage", "--max-size", "100B")
    assert "in all: the rest was not read" in out


@pytest.mark.parametrize("size", ["many", "-5GiB", "0"])
def test_a_size_that_is_none_is_refused(bundle: Path, size: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, str(bundle), "--max-size", size)
    assert status == 2 and "is no size" in err


KILL = "[Thu Nov 19 {hour:02d}:00:01 2026] Memory cgroup out of memory: Killed process 4711 (VLLM::Worker) total-vm:9000kB, anon-rss:2048kB\n"
DIED = "(APIServer pid=70) ERROR 11-19 12:00:03 [core.py:1] Worker proc VllmWorker-0 died unexpectedly (exit code: -9), shutting down executor.\n"


@pytest.mark.parametrize(("hour", "said"), [(12, False), (10, True), (17, True)])
def test_one_kill_at_two_times_tells_of_two_zones(hour: int, said: bool, tmp_path: Path) -> None:
    (tmp_path / "dmesg.txt").write_text(KILL.format(hour=hour))
    (tmp_path / "vllm.log").write_text(DIED)
    with oomdoc.analyze(tmp_path) as analysis:
        told = [warning for warning in analysis.report.warnings if "different zones" in warning]
    assert bool(told) is said
    assert not said or f"{abs(12 - hour)} h {'later' if hour < 12 else 'earlier'} in vllm.log:1" in told[0]
