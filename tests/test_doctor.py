"""`oomdoc doctor`: pass, warn and fail, of a bundle and of one scrape of a live server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oomdoc import cli

SAMPLES = Path(__file__).parents[1] / "sample_logs"


def doctor(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str]:
    status = cli.run(["doctor", *argv])
    return status, capsys.readouterr().out


def test_a_healthy_bundle_passes_and_says_what_came_near(capsys: pytest.CaptureFixture[str]) -> None:
    status, out = doctor(capsys, str(SAMPLES / "healthy-full-device"))
    assert status == 0
    assert "PASS  server: the server came up and served" in out
    assert "PASS  requests: 0 of 1,554 requests failed" in out
    assert "FAIL" not in out


def test_a_failure_fails_with_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    status, out = doctor(capsys, str(SAMPLES / "kv-demand-long-chats"), "--format", "json")
    made = {item["id"]: item for item in json.loads(out)}
    assert status == 1
    assert made["memory"]["state"] == "fail" and "kv-demand-exceeds-pool" in made["memory"]["says"]
    assert made["memory"]["refs"] and made["pool-usage"]["state"] == "warn"
    assert [item["state"] for item in json.loads(out)] == sorted(
        (item["state"] for item in json.loads(out)), key=("fail", "warn", "pass").index
    )


def test_a_scrape_of_a_live_server_is_checked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    scrape = (SAMPLES / "kv-demand-long-chats" / "metrics-20261118T135537Z.prom").read_text()
    (tmp_path / "metrics.prom").write_text(scrape)
    _, out = doctor(capsys, str(tmp_path / "metrics.prom"))
    assert "pool-usage" in out and "check" in out.splitlines()[-1]


def test_what_tells_nothing_does_not_pass(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("the printer on the second floor is out of paper\n" * 20)
    assert "PASS" not in doctor(capsys, str(tmp_path / "notes.txt"))[1]
