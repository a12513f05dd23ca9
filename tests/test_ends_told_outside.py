"""How a server ended, where its own log breaks off: by its container's status, its unit's, a kernel's words, the memory it filled.

Each relation stands beside a bundle that differs from it in what decides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import oomdoc
from test_whose_event import bonds, kill, serving, start
from verdicts import analysed, tables

LOADING = (
    "(EngineCore_DP0 pid=41) INFO 11-24 09:00:20 [gpu_model_runner.py:2602] Starting to load model org/aurora-7b...\n"
)
OPEN = start() + LOADING
"""A log that breaks off while it loads."""


def put(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def outcomes(folder: Path, files: dict[str, str]) -> list[str]:
    """What became of each life that a log shows."""
    with oomdoc.analyze(put(folder, files)) as analysis:
        return [engine.outcome for engine in analysis.report.engines if engine.id.startswith("aurora")]


def inspected(name: str, code: int, killed: bool = False, **more: Any) -> dict[str, Any]:
    """A container as `docker inspect` prints it."""
    image = "vllm/vllm-openai:v0.13.0" if name.startswith("aurora") else "redis:7"
    return {"Name": f"/{name}", "State": {"Status": "restarting", "OOMKilled": killed, "ExitCode": code, **more}, "RestartCount": 3, "HostConfig": {"Memory": 0}, "Config": {"Image": image}}  # fmt: skip


@pytest.mark.parametrize("indent", [None, 1], ids=["on one line", "on many lines"])
def test_containers_of_one_line_have_owners_of_their_own(indent: int | None, tmp_path: Path) -> None:
    """The neighbour's row is set aside, and the server's is not lost with it."""
    text = json.dumps([inspected("aurora", 1), inspected("cache", 137, killed=True)], indent=indent)
    with analysed(put(tmp_path, {"aurora.log": OPEN, "inspect.json": text})) as analysis:
        own = analysis.sql("SELECT name, exit_code, last_reason FROM container")[1]
        aside = [each.why for each in analysis.report.set_aside]
    assert [tuple(row) for row in own] == [("aurora", 1, "Error")]
    assert any("container cache is not the one that serves" in why for why in aside)


@pytest.mark.parametrize(("code", "outcome"), [(1, "died"), (127, "died"), (137, "ended"), (0, "starting")], ids=str)
def test_the_status_of_a_container_is_the_end_of_its_start(code: int, outcome: str, tmp_path: Path) -> None:
    """Below 128 it is the program's own; a signal came from outside; and 0 is no failure."""
    text = json.dumps([inspected("aurora", code)])
    assert outcomes(tmp_path, {"aurora.log": OPEN, "inspect.json": text}) == [outcome]


def test_an_end_that_another_life_met_is_none_of_one_that_served(tmp_path: Path) -> None:
    """The status is of the start whose log ends just before it."""
    text = json.dumps([inspected("aurora", 1, FinishedAt="2026-11-24T09:00:30Z")])
    before = serving().replace("11-24", "11-23")
    files = {"aurora-23.log": before, "aurora-24.log": OPEN, "inspect.json": text}
    assert outcomes(tmp_path, files) == ["served", "died"]


@pytest.mark.parametrize(("status", "mine"), [("1", True), ("0", False)], ids=["of its own", "none"])
@pytest.mark.parametrize("unit", ["vllm-aurora", "backup"])
def test_a_unit_that_the_service_manager_describes(unit: str, status: str, mine: bool, tmp_path: Path) -> None:
    """The line that tells the status does not name the unit; the head of its description does."""
    text = (
        f"× {unit}.service - a unit\n     Loaded: loaded (/etc/systemd/system/{unit}.service; enabled)\n"
        f"     Active: failed (Result: exit-code) since Tue 2026-11-24 09:00:40 UTC; 41s ago\n   Main PID: 41233 (code=exited, status={status}/FAILURE)\n"
    )
    assert outcomes(tmp_path, {"aurora.log": OPEN, "status.txt": text}) == ["died" if mine and unit != "backup" else "starting"]  # fmt: skip


PS = """CONTAINER ID   IMAGE                      STATUS                          NAMES
9a21c0d17e21   {image}   {status}   {name}
77fe12aa0cc1   redis:7                    Restarting (137) 2 minutes ago  cache
"""


def test_a_bare_status_is_of_the_container_on_its_line(tmp_path: Path) -> None:
    """`docker ps` names the container at the other end of the line."""
    text = PS.format(image="vllm/vllm-openai:v0.13.0", status="Restarting (1) 21 seconds ago", name="aurora")
    found = bonds(tmp_path, {"aurora.log": OPEN, "ps.txt": text}, "process_exit")
    assert found["ps.txt:3"][0] == "foreign"
    assert found["ps.txt:2"][0] != "foreign"


@pytest.mark.parametrize(("code", "whose"), [(137, "foreign"), (1, "own")], ids=["by a signal", "by itself"])
def test_a_fault_of_some_interpreter_beside_the_servers_status(code: int, whose: str, tmp_path: Path) -> None:
    """Who is ended by SIGKILL did not end by a fault; a worker that did leaves its server a status of its own."""
    kernel = "[Tue Nov 24 09:00:25 2026] python3[7511]: segfault at 18 ip 00007f31aad72d49 sp 00007ffd11d72d49 error 4 in libc.so.6\n"
    found = bonds(tmp_path, {"aurora.log": OPEN, "dmesg.txt": kernel, "inspect.json": json.dumps([inspected("aurora", code)])})  # fmt: skip
    assert found["dmesg.txt:1"][0] == whose


@pytest.mark.parametrize(
    ("head", "whose"),
    [("2026-11-16 (solved)", "foreign"), ("2026-11-24 this morning", None), ("last week", None)],
    ids=["a week before", "the same day", "no day"],
)
def test_what_a_diary_tells_of_another_day(head: str, whose: str | None, tmp_path: Path) -> None:
    """A failure that was solved last week stands above what happens today."""
    note = f"{head}: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 270.00 MiB. GPU 0 has a total capacity of 44.43 GiB of which 101.31 MiB is free.\n"
    found = bonds(tmp_path, {"aurora.log": OPEN, "notes.txt": note}, "oom")
    assert found.get("notes.txt:1", (None, ""))[0] == whose


@pytest.mark.parametrize(
    ("seconds", "whose"), [(37, "own"), (400, "foreign")], ids=["half a minute behind its last line", "minutes later"]
)
def test_its_own_memory_group_by_a_clock_of_another_zone(seconds: int, whose: str, tmp_path: Path) -> None:
    """The group is the server's container; the kernel's clock is two hours behind."""
    at = 7 * 3600 + 20 + seconds
    stamp = f"Tue Nov 24 {at // 3600:02}:{at // 60 % 60:02}:{at % 60:02} 2026"
    text = PS.format(image="vllm/vllm-openai:v0.13.0", status="Exited (1) 4 minutes ago", name="aurora")
    found = bonds(tmp_path, {"aurora.log": OPEN, "ps.txt": text, "kern.log": kill(stamp, "python3", "/docker/9a21c0d17e21" + "ab" * 26)})  # fmt: skip
    assert {whose_it_is for place, (whose_it_is, _) in found.items() if place.startswith("kern")} == {whose}


def test_measured_of_a_pod_beside_a_model_server(tmp_path: Path) -> None:
    """An exporter tells of all containers of a node; those of another workload are no evidence about the server."""
    text = "".join(
        f'container_memory_working_set_bytes{{namespace="ai",pod="{pod}-7d9f-x2x8q",container="main"}} 9000000000\n'
        for pod in ("aurora-llm", "cache-warmer")
    )
    found = bonds(tmp_path, {"aurora.log": OPEN, "cadvisor.prom": text}, "metric")
    assert list(found) == ["cadvisor.prom:2"]
    assert found["cadvisor.prom:2"][0] == "foreign"


@pytest.mark.parametrize("begins", ["09:10:00", "08:00:00"], ids=["after its end", "before it began"])
def test_a_kernel_log_that_begins_later_is_no_witness(begins: str, tmp_path: Path) -> None:
    """No kill stands in it; of an end before its first line it could not tell."""
    kernel = "".join(f"[Tue Nov 24 {begins} 2026] cni0: port {n}(veth{n}) entered forwarding state\n" for n in range(9))
    with tables(put(tmp_path, {"aurora.log": OPEN, "dmesg.txt": kernel})) as analysis:
        assert analysis.sql("SELECT kernel_log FROM host")[1][0][0] is (begins < "09:00")


WAITS = "(EngineCore_DP0 pid=41) INFO 11-24 09:01:{second:02} [shm_broadcast.py:690] No available shared memory broadcast block found in 60 seconds.\n"
SHARDS = "(Worker_TP0 pid=260) Loading safetensors checkpoint shards:  {percent}% Completed | {n}/9 [00:14<05:52,  7.20s/it]\n"


@pytest.mark.parametrize("goes_on", [True, False], ids=["the load goes on", "nothing follows"])
def test_a_notice_of_waiting_is_over_with_the_next_step(goes_on: bool, tmp_path: Path) -> None:
    """Workers that load for minutes let the engine wait, and say nothing is wrong by that."""
    log = OPEN + WAITS.format(second=20) + (SHARDS.format(percent=22, n=2) if goes_on else "")
    with tables(put(tmp_path, {"aurora.log": log})) as analysis:
        told = analysis.sql("SELECT grade FROM failure_event")[1]
    assert [row[0] for row in told] == ([0] if goes_on else [1])


GONE = "(EngineCore_DP0 pid=41) ERROR 11-24 09:02:00 [multiproc_executor.py:246] Worker proc VllmWorker-1 died unexpectedly, shutting down executor.\n"


@pytest.mark.parametrize("speaks", [True, False], ids=["workers write to this log", "only the engine does"])
def test_a_worker_that_is_gone_in_a_start(speaks: bool, tmp_path: Path) -> None:
    """Where its fellows write to the same log its own error would stand there; elsewhere it may only lack it."""
    log = OPEN + (SHARDS.format(percent=22, n=2) if speaks else "") + GONE
    with tables(put(tmp_path, {"aurora.log": log})) as analysis:
        assert analysis.sql("SELECT silent_deaths FROM host")[1][0][0] == int(speaks)


@pytest.mark.parametrize(
    ("limit", "resource"), [("mem_limit_bytes", "host"), ("mem_seen_bytes", None)], ids=["a limit", "something else"]
)
def test_memory_beside_a_limit_is_a_containers(limit: str, resource: str | None, tmp_path: Path) -> None:
    """A device has a size, a container has a limit."""
    rows = "".join(f"24/11/2026 09:{minute:02}:00;aurora;{minute * 10**9};107374182400\n" for minute in range(1, 9))
    text = f"timestamp;name;mem_usage_bytes;{limit}\n{rows}"
    with tables(put(tmp_path, {"aurora.log": OPEN, "stats.csv": text})) as analysis:
        told = {row[0] for row in analysis.sql("SELECT resource FROM process_memory")[1]}
    assert told == {resource}
