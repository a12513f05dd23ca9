"""What an earlier life left on the card, what a text repeats of the server's own log, and what a pool did not end: each beside what decides otherwise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import duckdb
import pytest

from oomdoc.scene import told
from oomdoc.scene.presence import Tables
from verdicts import UP, first, likely, minute, shows, tables

SERVES = UP + "".join(minute(at, 4, 0, 9.0 + at % 5) for at in range(2, 40))
WAIT = "No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are hanging or doing some time-consuming work"


def test_a_warning_that_a_text_repeats_from_a_log_that_goes_on_is_no_failure(tmp_path: Path) -> None:
    head, rest = SERVES.split("INFO 03-02 08:01:02", 1)
    log = (
        f"{head}(EngineCore_0 pid=211) WARNING 03-02 08:00:58 [shm_broadcast.py:466] {WAIT}\nINFO 03-02 08:01:02{rest}"
    )
    told = f"Notiz zur Übergabe\n\nBeim Start stand zweimal da:\n{WAIT}.\nIst der gemeinsame Speicher zu klein?\n"
    assert likely(tmp_path, {"vllm.log": log, "notiz.md": told}) == "healthy"


def test_the_same_message_counts_beside_a_log_that_does_not_hold_it(tmp_path: Path) -> None:
    told = f"Gestern Nacht:\n{WAIT}.\nSeitdem keine Antwort mehr.\n"
    assert likely(tmp_path, {"vllm.log": SERVES, "notiz.md": told}) != "healthy"


class _Table:
    """A table of messages, as the scene asks for its rows."""

    filled = frozenset({"log_error"})
    parted: frozenset[str] = frozenset()

    def __init__(self, rows: list[tuple[str, int, str]]) -> None:
        self._con = duckdb.connect()
        self._con.execute("CREATE TABLE main.log_error (source VARCHAR, line INTEGER, text VARCHAR)")
        self._con.executemany("INSERT INTO log_error VALUES (?, ?, ?)", rows)

    def rows_of(self, sql: str) -> list[dict[str, Any]]:
        rows = self._con.execute(sql)
        names = [column[0] for column in rows.description or ()]
        return [dict(zip(names, row, strict=True)) for row in rows.fetchall()]


def test_a_message_of_two_words_is_repeated_by_nobody() -> None:
    store = _Table([("vllm.log", 7, "it failed"), ("vllm.log", 12, WAIT), ("vllm.log", 9, WAIT), ("note.md", 3, WAIT.upper() + "!")])  # fmt: skip
    said = told.said_by({"vllm.log"}, cast(Tables, store), "log_error")
    assert said == {told.alike(WAIT): "vllm.log:9"}
    assert told.alike("it failed") not in said


@pytest.mark.parametrize(
    ("word", "failed"), [("un état OUT_OF_MEMORY", False), ("torch.OutOfMemoryError: CUDA out of memory", True)]
)
def test_the_state_of_a_batch_job_in_a_mail_is_no_allocators_message(tmp_path: Path, word: str, failed: bool) -> None:
    mail = f"Bonjour,\n\nun collègue a eu {word} à 6h52 sur la même machine, et le GPU 2 est plein.\n"
    with tables(_written(tmp_path, {"mail.txt": mail, "vllm.log": SERVES})) as analysis:
        assert (analysis.sql("SELECT count(*) FROM main.oom")[1][0][0] > 0) is failed


def _written(folder: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        (folder / name).write_text(text)
    return str(folder)


FULL = UP + "".join(minute(at, 40, 60, 97.5) for at in range(2, 30))
CONNECTOR = (
    "(EngineCore_0 pid=211) ERROR 03-02 08:31:02 [core.py:867] EngineCore encountered a fatal error.\n"
    "(EngineCore_0 pid=211) ERROR 03-02 08:31:02 [core.py:867] Traceback (most recent call last):\n"
    '(EngineCore_0 pid=211) ERROR 03-02 08:31:02 [core.py:867]   File "/opt/kv/connector.py", line 88, in request_finished\n'
    "(EngineCore_0 pid=211) ERROR 03-02 08:31:02 [core.py:867] AssertionError: the store of this worker is closed\n"
)
PREEMPTED = "WARNING 03-02 08:20:10 [scheduler.py:1057] Sequence group 41 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space. total_num_cumulative_preemption=51\n"


def test_a_full_pool_does_not_raise_the_error_that_ended_the_engine(tmp_path: Path) -> None:
    assert likely(tmp_path, {"vllm.log": FULL + CONNECTOR}) == "not-memory"


def test_a_full_pool_that_only_makes_wait_is_the_cause(tmp_path: Path) -> None:
    assert likely(tmp_path, {"vllm.log": FULL}) == "kv-demand-exceeds-pool"


def test_preemptions_before_the_error_keep_the_pool_in_question(tmp_path: Path) -> None:
    log = FULL + PREEMPTED + CONNECTOR
    assert not shows(tmp_path, {"vllm.log": log}, "kv-demand-exceeds-pool", "ended-by-another-error")
    assert shows(tmp_path, {"vllm.log": log}, "not-memory", "pool-was-full")


def _runner(swapped: bool) -> str:
    """A runner whose pages go out to swap as fast as it takes new ones, or one that takes none."""
    rows = ["time,requests_served,VmRSS_MiB,VmSwap_MiB"]
    for at in range(48):
        grown = 150 * at if swapped else 0
        rows.append(
            f"2026-03-02 {8 + at // 12:02}:{at % 12 * 5:02},{20 * at},{420 + 17 * (at % 4)},{grown + 3 * (at % 2)}"
        )
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize(("swapped", "cause"), [(True, "memory-leak"), (False, "healthy")])
def test_what_is_swapped_out_is_held_as_what_is_resident(tmp_path: Path, swapped: bool, cause: str) -> None:
    files = {"runner.csv": _runner(swapped), "note.md": "llama-server with one small model on a workstation.\n"}
    assert first(tmp_path, files)[0] == cause


def _audit(signal: str) -> dict[str, str]:
    log = (
        UP
        + "".join(minute(at, 4, 0, 9.0) for at in range(2, 20))
        + "ERROR 03-02 08:20:03 [multiproc_executor.py:154] Worker proc VllmWorker-1 died unexpectedly, shutting down executor.\n"
    )
    record = f'type=ANOM_ABEND msg=audit(1772439602.100:812): auid=4294967295 uid=0 gid=0 ses=4294967295 pid=5121 comm="python3" exe="/usr/bin/python3.12" sig={signal} res=1\n'
    sizes = "Filesystem     1M-blocks  Used Available Use% Mounted on\nshm                   64    60         4  94% /dev/shm\n"
    return {"vllm.log": log, "audit.txt": record, "df.txt": sizes}


@pytest.mark.parametrize(("signal", "full"), [("7", True), ("SIGBUS", True), ("6", False)])
def test_a_bus_error_stands_in_the_audit_log_alone(tmp_path: Path, signal: str, full: bool) -> None:
    assert (likely(tmp_path, _audit(signal)) == "shm-exhausted") is full


def _group(metric: str) -> str:
    """What a cloud says of a group of machines and its only policy."""
    return json.dumps(
        {
            "AutoScalingGroups": [{"AutoScalingGroupName": "chat", "MinSize": 2, "MaxSize": 6, "DesiredCapacity": 2}],
            "ScalingPolicies": [
                {
                    "PolicyName": "follow",
                    "PolicyType": "TargetTrackingScaling",
                    "TargetTrackingConfiguration": {
                        "PredefinedMetricSpecification": {"PredefinedMetricType": metric},
                        "TargetValue": 50.0,
                    },
                }
            ],
        },
        indent=1,
    )


@pytest.mark.parametrize(("metric", "blind"), [("ASGAverageCPUUtilization", True), ("ALBRequestCountPerTarget", False)])
def test_a_group_of_machines_follows_the_metric_of_its_policy(tmp_path: Path, metric: str, blind: bool) -> None:
    queue = UP + "".join(minute(at, 48, 20 + 4 * at, 44.0 + at % 7) for at in range(2, 40))
    files = {"i-1.vllm.log": queue, "asg.json": _group(metric)}
    assert shows(tmp_path, files, "autoscaling-blind", "metric-is-no-saturation") is blind


def _left(listed_at: str, pid: int) -> dict[str, str]:
    """A unit whose front end was ended and started anew, and a list of the device's processes."""
    head = "Mar 02 {} box vllm[{}]: (EngineCore_DP0 pid={}) INFO 03-02 {} [core.py:58] Initializing a V1 LLM engine (v0.12.0) with config: model='Qwen/Qwen3-8B', dtype=torch.bfloat16\n"
    api = (
        "Mar 02 {} box vllm[{}]: (APIServer pid={}) INFO 03-02 {} [api_server.py:594] vLLM API server version 0.12.0\n"
    )
    journal = (
        api.format("08:00:00", 700, 700, "08:00:00")
        + head.format("08:00:05", 700, 744, "08:00:05")
        + "".join("Mar 02 08:01:40 box vllm[700]: " + line for line in UP.splitlines(keepends=True)[1:])
        + "".join(
            f"Mar 02 08:{at:02}:10 box vllm[700]: (APIServer pid=700) {minute(at, 2, 0, 4.0)}" for at in range(2, 30)
        )
        + "Mar 02 09:00:02 box systemd[1]: Stopped chat.service.\nMar 02 09:00:03 box systemd[1]: Started chat.service.\n"
        + api.format("09:00:09", 912, 912, "09:00:09")
        + head.format("09:00:14", 912, 955, "09:00:14")
        + "Mar 02 09:00:31 box systemd[1]: chat.service: Main process exited, code=exited, status=1/FAILURE\n"
        + "Mar 02 09:00:31 box systemd[1]: chat.service: Failed with result 'exit-code'.\n"
    )
    apps = f"timestamp, gpu_bus_id, pid, process_name, used_gpu_memory [MiB]\n2026/03/02 {listed_at}.100, 00000000:41:00.0, {pid}, VLLM::EngineCore, 43655 MiB\n"
    return {"journal.log": journal, "apps.csv": apps}


def test_what_the_life_before_left_on_the_card_is_in_the_way_of_the_next(tmp_path: Path) -> None:
    assert first(tmp_path, _left("09:05:00", 744))[0] == "gpu-shared"


@pytest.mark.parametrize(("listed_at", "pid"), [("08:30:00", 744), ("09:00:20", 955)])
def test_a_process_that_was_listed_in_its_own_life_is_nobodys_leftover(
    tmp_path: Path, listed_at: str, pid: int
) -> None:
    assert not shows(tmp_path, _left(listed_at, pid), "gpu-shared", "earlier-life-still-holds")
