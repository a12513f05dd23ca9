"""Whose an end is under supervisors other than Kubernetes: steps of Slurm, tasks of Nomad and ECS, units of systemd, services of compose.

Each relation stands beside a bundle that differs from it in what decides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from test_whose_event import KILLED, bonds, kill, serving, start
from verdicts import tables

STEP = "/system.slice/slurmstepd.scope/job_90817/step_{step}/user/task_0"
TOLD = "slurmstepd: error: Detected 1 oom_kill event in StepId=90817.{step}. Some of the step tasks have been OOM Killed.\n"


def asked(folder: Path, files: dict[str, str], query: str) -> list[tuple[Any, ...]]:
    """What a query gives of a bundle."""
    for name, text in files.items():
        (folder / name).write_text(text)
    with tables(folder) as analysis:
        return analysis.sql(query)[1]


@pytest.mark.parametrize(
    ("log", "step", "whose"),
    [
        ("slurm-90817.step0.out", 4, "foreign"),
        ("slurm-90817.step4.out", 4, "own"),
        ("slurm-90817.out", 4, "own"),
    ],
    ids=["another step", "its own step", "the log tells no step"],
)
def test_a_kill_in_another_step_of_the_job_is_not_the_servers(log: str, step: int, whose: str, tmp_path: Path) -> None:
    files = {
        log: serving(KILLED if whose == "own" else ""),
        "slurm.err": TOLD.format(step=step),
        "dmesg.txt": kill("Tue Nov 24 09:20:01 2026", "python3", STEP.format(step=step)),
    }
    found = bonds(tmp_path, files)
    assert found["dmesg.txt:4"][0] == whose
    assert found["slurm.err:1"][0] == whose


def test_a_statement_of_slurm_is_no_line_of_a_kill_that_the_kernel_tells_below(tmp_path: Path) -> None:
    """The kill below is a week older; what Slurm says above is of today."""
    files = {
        "slurm-90817.step4.out": serving(KILLED),
        "session.txt": TOLD.format(step=4) + kill("Tue Nov 17 01:00:00 2026", "python3", STEP.format(step=1)),
    }
    found = bonds(tmp_path, files)
    assert (found["session.txt:1"][0], found["session.txt:5"][0]) == ("own", "foreign")


SACCT = """\
JobID          JobName        State  ExitCode     Elapsed   Timelimit     MaxRSS     ReqMem
------------ --------- ------------ --------- ----------- ----------- ---------- ----------
{rows}
"""


@pytest.mark.parametrize(
    ("elapsed", "state", "told"),
    [
        ("1-12:00:41", "FAILED", True),
        ("1-12:02:00", "FAILED", True),
        ("1-12:02:01", "FAILED", False),
        ("1-11:59:59", "FAILED", False),
        ("1-11:59:59", "TIMEOUT", True),
    ],
)
def test_a_job_that_ran_for_as_long_as_it_might(elapsed: str, state: str, told: bool, tmp_path: Path) -> None:
    row = f"{'66120':12} {'chat':>9} {state:>12} {'0:0':>9} {elapsed:>11} {'1-12:00:00':>11} {'':>10} {'90G':>10}"
    files = {"chat_66120.out": serving(), "sacct.txt": SACCT.format(rows=row)}
    rows = asked(tmp_path, files, "SELECT text FROM note WHERE topic = 'time-limit-reached'")
    assert rows == ([("job 66120 ran for as long as it might",)] if told else [])
    (outcome,) = asked(tmp_path, files, "SELECT outcome FROM memory.outcome ORDER BY first_line DESC LIMIT 1")
    assert outcome == (("ended",) if told else ("served",))


def test_the_time_of_another_job_ends_nothing_of_the_server(tmp_path: Path) -> None:
    row = f"{'66121':12} {'train':>9} {'TIMEOUT':>12} {'0:0':>9} {'1-12:00:03':>11} {'1-12:00:00':>11} {'':>10} {'90G':>10}"
    own = f"{'66120':12} {'chat':>9} {'RUNNING':>12} {'0:0':>9} {'0-10:00:00':>11} {'1-12:00:00':>11} {'':>10} {'90G':>10}"
    files = {"chat_66120.out": serving(), "chat_66121.txt": "x\n", "sacct.txt": SACCT.format(rows=f"{row}\n{own}")}
    (outcome,) = asked(tmp_path, files, "SELECT outcome FROM memory.outcome ORDER BY first_line DESC LIMIT 1")
    assert outcome == ("served",)


def test_the_status_of_the_servers_own_job_is_its_end(tmp_path: Path) -> None:
    lines = [
        f"{'66120':12} {'aurora':>9} {'FAILED':>12} {'3:0':>9} {'0-00:20:30':>11} {'1-12:00:00':>11} {'':>10} {'90G':>10}",
        f"{'66177':12} {'aurora':>9} {'FAILED':>12} {'4:0':>9} {'0-00:20:30':>11} {'1-12:00:00':>11} {'':>10} {'90G':>10}",
    ]
    files = {"serve_66120.out": serving(), "sacct.txt": SACCT.format(rows="\n".join(lines))}
    found = bonds(tmp_path, files, "process_exit")
    assert [found[f"sacct.txt:{line}"][0] for line in (3, 4)] == ["own", "foreign"]


def test_words_that_moved_are_of_the_column_that_they_cover_most_of(tmp_path: Path) -> None:
    """A name was replaced by a shorter one, and all behind it stands two places to the left; a sentence below the table is no row."""
    table = (
        "JobID           JobName      State     MaxRSS     ReqMem\n"
        "------------ ---------- ---------- ---------- ----------\n"
        "70011             chat     FAILED                 48G\n"
        "(70011 was mine, wrong port)\n"
    )
    rows = asked(tmp_path, {"sacct.txt": table}, "SELECT text FROM note WHERE topic = 'container-limit'")
    assert rows == [("job 70011: asked for 48G",)]


TASK = """\
$ nomad alloc status 5e0a77b1
Task "{name}" (driver: docker) is "running"
Task Resources:
CPU          Memory            Disk     Addresses
900/12000    40 GiB/60 GiB     300 MiB

{devices}Task Events:
Started At     = 2026-11-24T09:21:10Z
Finished At    = N/A
Total Restarts = {times}
Last Restart   = 2026-11-24T09:20:40Z

Recent Events:
Time                  Type        Description
2026-11-24T09:21:10Z  Started     Task started by client
{end}
"""
GPU = "Device Stats\nnvidia/gpu/NVIDIA L4[GPU-1]  9 / 24 MiB\n\n"


def test_tasks_of_an_allocation_are_containers_each_with_its_last_end(tmp_path: Path) -> None:
    killed = '2026-11-24T09:20:40Z  Terminated  Exit Code: 137, Exit Message: "OOM Killed"'
    failed = '2026-11-24T09:20:40Z  Terminated  Exit Code: 3, Exit Message: "...", OOM Killed: false'
    text = TASK.format(name="ship-logs", devices="", times=4, end=killed) + TASK.format(name="api", devices=GPU, times=1, end=failed)  # fmt: skip
    files = {"engine.log": serving(), "nomad.txt": text}
    rows = asked(
        tmp_path,
        files,
        "SELECT name, last_reason, exit_code, restarts, memory_limit_bytes, gpus FROM main.container ORDER BY line",
    )
    assert rows == [
        ("ship-logs", "OOMKilled", 137, 4, 60 << 30, None),
        ("api", "Error", 3, 1, 60 << 30, 1),
    ]
    found = bonds(tmp_path, files, "container")
    assert [found[f"nomad.txt:{line}"][0] for (line,) in asked(tmp_path, files, "SELECT line FROM main.container ORDER BY line")] == ["foreign", "own"]  # fmt: skip


@pytest.mark.parametrize(
    ("task", "name", "whose"),
    [
        ("relay", "otelcol", "foreign"),
        ("relay", "python3", "foreign"),
        ("api", "python3", "own"),
    ],
)
def test_a_kill_in_the_memory_group_of_another_task(task: str, name: str, whose: str, tmp_path: Path) -> None:
    text = TASK.format(name="relay", devices="", times=0, end="") + TASK.format(
        name="api", devices=GPU, times=0, end=""
    )
    group = f"/nomad.slice/share.slice/5e0a77b1-55d0-1f3c-8e08-0c7be2a4d9f1.{task}.scope"
    files = {
        "engine.log": start() if whose == "own" else serving(),
        "nomad.txt": text,
        "dmesg.txt": kill("Tue Nov 24 09:00:09 2026", name, group),
    }
    assert bonds(tmp_path, files)["dmesg.txt:4"][0] == whose


def test_a_definition_tells_the_limit_of_a_task_that_is_described_without_one(tmp_path: Path) -> None:
    definition = {
        "family": "pictures",
        "containerDefinitions": [
            {"name": "engine", "image": "vllm/vllm-openai:v0.13.0", "memory": 30720, "command": ["--model", "org/aurora-vl", "--max-model-len", "8192"], "resourceRequirements": [{"type": "GPU", "value": "1"}]},
            {"name": "shipper", "memory": 256},
        ],
    }  # fmt: skip
    task = {
        "taskArn": "arn:aws:ecs:x:0:task/prod/71",
        "lastStatus": "STOPPED",
        "startedAt": "2026-11-24T09:00:00Z",
        "stoppingAt": "2026-11-24T09:20:01Z",
        "containers": [{"name": "engine", "exitCode": 137}, {"name": "shipper", "exitCode": 0}],
    }
    files = {
        "engine.log": serving(),
        "definition.json": json.dumps(definition, indent=1),
        "tasks.json": json.dumps({"tasks": [task]}, indent=1),
    }
    rows = asked(tmp_path, files, "SELECT name, memory_limit_bytes, gpus, serves FROM main.container WHERE source = 'definition.json' ORDER BY line")  # fmt: skip
    assert rows == [("engine", 30 << 30, 1, True), ("shipper", 256 << 20, None, None)]
    assert asked(tmp_path, files, "SELECT value FROM main.engine_flag WHERE flag = 'max_model_len'") == [("8192",)]
    told = asked(tmp_path, files, "SELECT c.name, r.whose FROM main.container c JOIN main.relation r ON r.of_table = 'container' AND r.source = c.source AND r.row = c.rowid WHERE c.source = 'tasks.json'")  # fmt: skip
    assert told == [("engine", "own"), ("shipper", "unknown")]


@pytest.mark.parametrize(
    ("told", "whose"), [("80Gi", "foreign"), ("60Gi", "own"), ("40Gi", "own")], ids=["smaller", "the same", "larger"]
)
def test_a_kill_at_a_smaller_limit_than_any_that_people_tell(told: str, whose: str, tmp_path: Path) -> None:
    """The group's limit is 60 GiB. A pod's group holds the sum of its containers, and may be larger than what is told of one."""
    files = {
        "engine.log": start(),
        "ticket.txt": f"The chat pod (tp2, memory limit {told}) was gone at nine, its log just stops.\n",
        "dmesg.txt": kill("Tue Nov 24 09:00:09 2026", "python3", "/box"),
    }
    assert bonds(tmp_path, files)["dmesg.txt:4"][0] == whose


@pytest.mark.parametrize(
    ("words", "whose"),
    [
        ("went from 0.96 to 0.91 after it", "foreign"),
        ("with 0.96 (0.91 since October)", "foreign"),
        ("went from 0.88 to 0.91 before it", ""),
        ("went from 0.96 to 0.93 after it", ""),
    ],
    ids=["lowered", "in brackets", "raised", "to another share than the one in force"],
)
def test_a_failure_of_a_start_with_a_larger_share_of_the_device(words: str, whose: str, tmp_path: Path) -> None:
    settings = "(APIServer pid=7) INFO 11-24 09:00:01 [utils.py:253] non-default args: {'model': 'org/aurora-7b', 'gpu_memory_utilization': 0.91}\n"
    message = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 310.00 MiB. GPU 0 has a total capacity of 79.25 GiB of which 211.44 MiB is free."
    files = {
        "engine.log": serving().replace("\n", "\n" + settings, 1),
        "ticket.txt": f"Hello,\n\nusers complain that answers are slow at noon.\n\nThe old release died in the first week with this, we {words}:\n    {message}\n\nWhat shall we do?\n",
    }
    assert bonds(tmp_path, files, "oom").get("ticket.txt:6", ("", ""))[0] == whose


LLAMA = (
    "{name} | llama_kv_cache:      CUDA0 KV buffer size =  2048.00 MiB\n"
    "{name} | main: server is listening on http://0.0.0.0:8080 - starting the main loop\n"
    + "{name} | slot launch_slot_: id  0 | task 48 | processing task\n"
    * 30
)
RAN_OUT = "{name} | torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 310.00 MiB. GPU 0 has a total capacity of 23.54 GiB of which 211.44 MiB is free.\n"


@pytest.mark.parametrize(("name", "sources"), [("grader-1  ", {"all.log[grader-1]"}), ("llama-1   ", {"all.log"})])
def test_a_program_beside_the_server_in_one_log_of_compose(name: str, sources: set[str], tmp_path: Path) -> None:
    files = {"all.log": LLAMA.format(name="llama-1   ") + RAN_OUT.format(name=name)}
    assert {row[0] for row in asked(tmp_path, files, "SELECT source FROM main.oom")} == sources
    assert asked(tmp_path, files, "SELECT ooms FROM memory.failure") == [(int("all.log" in sources),)]


def test_the_scaler_of_another_job_is_not_the_servers(tmp_path: Path) -> None:
    line = "[INFO] policy_eval.worker: {what}: policy_id=1 from={old} to={new} target=nomad-target Job={job} Group=g\n"
    text = line.format(what="target is within limits, nothing to do", old=1, new=1, job="assist22")
    text += line.format(what="scaling target", old=1, new=4, job="rerank")
    files = {"vllm_assist22.log": serving(), "scaler.log": text}
    assert [whose for whose, _ in bonds(tmp_path, files, "scaler").values()] == ["own", "foreign"]


def test_a_process_that_a_unit_left_behind_holds_the_device(tmp_path: Path) -> None:
    journal = "Nov 24 08:00:00 n7 systemd[1]: aurora.service: Unit process 4471 (VLLM::Worker_TP) remains running after unit stopped.\n"
    smi = "gpu_uuid, pid, process_name, used_gpu_memory [MiB]\nGPU-94de84de-41c5-6421-fc36-f27c5283d36d, 4471, VLLM::Worker_TP1, 61044 MiB\n"
    rows = asked(tmp_path, {"engine.log": start(), "journal.txt": journal, "smi.csv": smi}, "SELECT orphan FROM memory.topic")  # fmt: skip
    assert rows == [(True,)]


def test_a_sheet_of_lives_whose_first_column_only_counts_them(tmp_path: Path) -> None:
    sheet = "n,started_at,finished_at,exit_code,reason\n" + "".join(
        f"{nth},2026-11-24T0{nth}:00:00Z,2026-11-24T0{nth}:16:4{nth}Z,137,Error\n" for nth in range(4)
    )
    rows = asked(tmp_path, {"lives.csv": sheet}, "SELECT ran_s, exit_code, last_reason FROM main.container ORDER BY line")  # fmt: skip
    assert rows == [(1000.0 + nth, 137, "Error") for nth in range(4)]
