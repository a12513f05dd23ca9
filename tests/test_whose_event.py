"""Whose an event is where several tell of it, where no clock can be compared, and where its time is another day: the bond and its reason.

Each relation stands beside a bundle that differs from it in what decides."""

from __future__ import annotations

from pathlib import Path

import pytest

import oomdoc
from verdicts import tables

BOOTED = "(APIServer pid=7) INFO 11-24 09:02:00 [launcher.py:46] Application startup complete.\n"
OWN_ERROR = (
    "(APIServer pid=7) ERROR 11-24 09:20:04 [core.py:708] ValueError: the head of the model must be divisible by 3\n"
)
KILLED = "(APIServer pid=7) ERROR 11-24 09:20:04 [executor.py:118] Worker proc VllmWorker-0 died with exit code -9, shutting down.\n"


def start(day: int = 24, hour: int = 9, model: str = "org/aurora-7b") -> str:
    """The first lines of a start."""
    return (
        f"(APIServer pid=7) INFO 11-{day} {hour:02}:00:00 [api_server.py:1351] vLLM API server version 0.13.0\n"
        f"(EngineCore_DP0 pid=41) INFO 11-{day} {hour:02}:00:05 [core.py:93] Initializing a V1 LLM engine (v0.13.0) with config: model='{model}'\n"
    )


def serving(last: str = "") -> str:
    """A server that came up at nine and served until twenty past."""
    stats = "".join(
        f"(APIServer pid=7) INFO 11-24 09:{minute:02}:10 [loggers.py:248] Engine 000: Avg prompt throughput: 80.0 tokens/s, Avg generation throughput: "
        "190.0 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 18.0%, Prefix cache hit rate: 9.0%\n"
        for minute in range(3, 20)
    )
    return start() + BOOTED + stats + last


def kill(stamp: str, name: str, group: str, pid: int = 5512) -> str:
    """One kill at the limit of a memory group, as the kernel prints it."""
    return "".join(
        f"[{stamp}] {text}\n"
        for text in (
            f"{name} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=900",
            "memory: usage 62914560kB, limit 62914560kB, failcnt 71",
            f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a,mems_allowed=0,oom_memcg={group},task_memcg={group},task={name},pid={pid},uid=0",
            f"Memory cgroup out of memory: Killed process {pid} ({name}) total-vm:99000000kB, anon-rss:61000000kB, file-rss:0kB, shmem-rss:0kB",
        )
    )


def bonds(folder: Path, files: dict[str, str], table: str = "host_event") -> dict[str, tuple[str, str]]:
    """Whose each row of a table is, by its place, with the reason; a whole source is at its line 0."""
    for name, text in files.items():
        (folder / name).write_text(text)
    with tables(folder) as analysis:
        told = analysis.sql(f"SELECT source, line, whose, why FROM main.relation WHERE of_table = '{table}'")[1]
    return {f"{source}:{line}": (whose, why) for source, line, whose, why in told}


OWN_UID, OTHER_UID = "0a1b2c3d-1111-4222-8333-444455556666", "5e5e5e5e-2222-4333-8444-777788889999"
POD = '{"kind":"Pod","metadata":{"name":"aurora-0","namespace":"ai","uid":"%s"},"spec":{"containers":[{"name":"s","image":"vllm/vllm-openai:v0.13.0"}]}}'
EVENT = (
    "LAST SEEN   TYPE      REASON        OBJECT      MESSAGE\n"
    "4m          Warning   OOMKilling    node/n7     Memory cgroup out of memory: Killed process {pid} (python3) total-vm:99000000kB, anon-rss:61000000kB, file-rss:0kB, shmem-rss:0kB\n"
)


@pytest.mark.parametrize(
    ("uid", "pid", "whose", "why"),
    [
        (OTHER_UID, 5512, "foreign", "memory group of another container"),
        (OWN_UID, 5512, "own", ""),
        (OTHER_UID, 5513, "unknown", "cannot be compared"),
    ],
    ids=["another pod's", "its own pod's", "another process"],
)
def test_an_event_and_the_kernels_lines_tell_of_one_kill(
    uid: str, pid: int, whose: str, why: str, tmp_path: Path
) -> None:
    """The event names no memory group; the kernel's lines of the same process do, and it is theirs."""
    told = {
        "vllm.log": serving(),
        "pod.json": POD % OWN_UID,
        "events.txt": EVENT.format(pid=pid),
        "dmesg.txt": kill("Tue Nov 24 09:20:01 2026", "python3", f"/kubepods/burstable/pod{uid}/{'7b' * 32}"),
    }
    bond = bonds(tmp_path, told)["events.txt:2"]
    assert bond[0] == whose and why in bond[1]


@pytest.mark.parametrize(
    ("log", "name", "whose"),
    [
        pytest.param(start() + OWN_ERROR, "python3", "unknown", id="its log ends with an error of its own"),
        pytest.param(start(), "python3", "own", id="its log just ends"),
        pytest.param(start() + KILLED, "python3", "own", id="its log tells of a kill"),
        pytest.param(start() + OWN_ERROR, "VLLM::EngineCor", "own", id="the victim is an engine by its name"),
    ],
)
def test_a_kill_without_a_time_beside_an_error_of_its_own(log: str, name: str, whose: str, tmp_path: Path) -> None:
    told = {"vllm.log": log, "dmesg.txt": kill("81640.220000", name, "/box")}
    bond = bonds(tmp_path, told)["dmesg.txt:4"]
    assert bond[0] == whose
    assert ("ends with an error of its own" in bond[1]) is (whose == "unknown")


@pytest.mark.parametrize(
    ("beside", "name", "whose"),
    [
        ({"vllm.log": serving()}, "text-embeddings", "foreign"),
        ({"vllm.log": serving()}, "whisper-server", "foreign"),
        ({"vllm.log": serving()}, "chat-llm-worker", "own"),
        ({}, "text-embeddings", "own"),
    ],
)
def test_a_server_of_embeddings_beside_one_of_language(
    beside: dict[str, str], name: str, whose: str, tmp_path: Path
) -> None:
    """Where a log shows a language model's server, a kill of the one beside it is its own; without a log it may be the one that is asked about."""
    told = {**beside, "dmesg.txt": kill("Tue Nov 24 09:20:01 2026", name, "/box")}
    assert bonds(tmp_path, told)["dmesg.txt:4"][0] == whose


PROBED = (
    "LAST SEEN   TYPE      REASON      OBJECT            MESSAGE\n"
    "4m          Warning   Unhealthy   pod/{name}        Liveness probe failed: connection refused\n"
)


@pytest.mark.parametrize(
    ("log", "name", "whose"),
    [
        (serving(), "reranker-0", "foreign"),
        (serving(), "aurora-0", "own"),
        (serving(OWN_ERROR), "reranker-0", "own"),
        (serving().replace("aurora-7b", "a-7b"), "reranker-0", "own"),
    ],
    ids=["it shows no end", "a word of its own name", "it failed", "its own name has no word"],
)
def test_an_event_of_another_model_server(log: str, name: str, whose: str, tmp_path: Path) -> None:
    bond = bonds(tmp_path, {"vllm.log": log, "events.txt": PROBED.format(name=name)}, "cluster_event")["events.txt:2"]
    assert bond[0] == whose
    assert ("shows no end" in bond[1]) is (whose == "foreign")


LISTED = (
    "CONTAINER ID   IMAGE                      COMMAND     CREATED       STATUS       PORTS      NAMES\n"
    "9ad04c7be113   vllm/vllm-openai:v0.13.0   \"python3\"   2 hours ago   Up 2 hours   8000/tcp   aurora\n"
    "5f0c2e9ab417   house/tiles:3              \"python3\"   3 days ago    Up 3 days    9000/tcp   tiles\n"
)  # fmt: skip


@pytest.mark.parametrize(
    ("container", "listed", "whose"),
    [("5f0c2e9ab417", LISTED, "foreign"), ("9ad04c7be113", LISTED, "own"), ("5f0c2e9ab417", "", "own")],
    ids=["another container of the list", "its own", "nobody tells its id"],
)
def test_a_list_of_containers_tells_their_ids(container: str, listed: str, whose: str, tmp_path: Path) -> None:
    told = {
        "vllm.log": serving(),
        "dmesg.txt": kill("Tue Nov 24 09:20:01 2026", "python3", f"/system.slice/docker-{container}{'0' * 52}.scope"),
    }
    if listed:
        told["docker-ps.txt"] = listed
    assert bonds(tmp_path, told)["dmesg.txt:4"][0] == whose


def failed_at(day: int, hour: int, came_up: bool = False) -> str:
    """A start of the same model that ended with an error within its first minute."""
    up = BOOTED.replace("11-24 09:02:00", f"11-{day} {hour:02}:00:20") if came_up else ""
    return start(day, hour) + up + OWN_ERROR.replace("11-24 09:20:04", f"11-{day} {hour:02}:00:40")


def came_up_at(day: int, hour: int) -> str:
    """A start half an hour later that came up."""
    return start(day, hour).replace(f"{hour:02}:00", f"{hour:02}:30") + BOOTED.replace(
        "11-24 09:02", f"11-{day} {hour:02}:31"
    )


@pytest.mark.parametrize(
    ("old", "new", "apart"),
    [
        pytest.param(failed_at(23, 20), serving(), True, id="thirteen hours before one that came up"),
        pytest.param(failed_at(23, 22), serving(), False, id="eleven hours before it"),
        pytest.param(failed_at(23, 20, came_up=True), serving(), False, id="it had served"),
        pytest.param(failed_at(23, 20), serving(OWN_ERROR), False, id="the later one failed as well"),
        pytest.param(failed_at(23, 20), start(), False, id="the later one never came up"),
        pytest.param(failed_at(23, 20).replace("aurora", "heron"), serving(), False, id="it was of another model"),
        pytest.param(
            (failed_at(23, 20) + came_up_at(23, 20)).replace("aurora", "heron"),
            serving(),
            True,
            id="another model's, whose own log goes on to a server",
        ),
    ],
)
def test_a_start_of_another_day_that_was_got_over(old: str, new: str, apart: bool, tmp_path: Path) -> None:
    bond = bonds(tmp_path, {"first.log": old, "vllm.log": new}, "log_error").get("first.log:0")
    assert (bond is not None) is apart
    if bond:
        assert bond[0] == "foreign" and "before the server of vllm.log came up" in bond[1]


DESCRIBED = """Name:             {pod}
Namespace:        ai
Containers:
  s:
    Image:         vllm/vllm-openai:v0.13.0
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       Error
      Exit Code:    1
      Started:      Mon, 23 Nov 2026 19:00:00 +0000
      Finished:     Mon, 23 Nov 2026 {hour}:00:00 +0000
    Restart Count:  4
"""


@pytest.mark.parametrize(
    ("pod", "hour", "log", "whose"),
    [
        pytest.param("aurora-0", 20, serving(), "foreign", id="thirteen hours before"),
        pytest.param("aurora-0", 22, serving(), "own", id="eleven hours before"),
        pytest.param("vllm", 20, serving(), "own", id="the log is that pod's"),
        pytest.param("aurora-0", 20, serving(OWN_ERROR), "own", id="the server failed too"),
    ],
)
def test_a_container_that_ended_another_day(pod: str, hour: int, log: str, whose: str, tmp_path: Path) -> None:
    told = bonds(tmp_path, {"vllm.log": log, "describe.txt": DESCRIBED.format(pod=pod, hour=hour)}, "container")
    assert {each[0] for each in told.values()} == {whose}


def segfaults(*pids: int) -> str:
    return "".join(
        f"[{812 + at}.004100] python3[{pid}]: segfault at 10 ip 00007f2a1c0d4e21 sp 00007ffd0a11b2c0 error 4 in libc.so.6[7f2a1c000000+195000]\n"
        for at, pid in enumerate(pids)
    )


@pytest.mark.parametrize(
    ("pids", "whose"),
    [((4411, 4602), "foreign"), ((4411,), "unknown"), ((4411, 4411), "unknown")],
    ids=["two programs", "one", "one, told twice"],
)
def test_several_programs_that_fault_at_no_time(pids: tuple[int, ...], whose: str, tmp_path: Path) -> None:
    told = bonds(tmp_path, {"vllm.log": serving(KILLED), "dmesg.txt": segfaults(*pids)})
    assert {each[0] for place, each in told.items() if place.startswith("dmesg")} == {whose}


ASKED = "Nov 24 09:20:00 n7 sudo[77]: ana : TTY=pts/1 ; PWD=/root ; USER=root ; COMMAND=/usr/bin/systemctl {} vllm.service\n"
SAID = "Nov 24 09:20:01 n7 systemd[1]: {}\n"
CHATTER = "Nov 24 09:20:0{} n7 sshd[902]: Connection closed by 10.4.0.9 port 40112\n"


def exited(how: str = "code=killed, status=9/KILL") -> str:
    return f"Nov 24 09:21:30 n7 systemd[1]: vllm.service: Main process exited, {how}\n"


@pytest.mark.parametrize(
    ("journal", "whose"),
    [
        pytest.param(ASKED.format("stop") + exited(), "foreign", id="stop"),
        pytest.param(ASKED.format("restart") + SAID.format("Stopping vllm.service - a chat server...") + exited(), "foreign", id="restart"),
        pytest.param(SAID.format("chat.service: State 'stop-sigterm' timed out. Killing.") + exited(), "foreign", id="it did not end in its time"),
        pytest.param(ASKED.format("restart") + SAID.format("Stopping vllm.service - a chat server...") + SAID.format("Started vllm.service - a chat server.") + exited(), "unknown", id="it had begun anew"),
        pytest.param(ASKED.format("stop") + exited("code=killed, status=15/TERM"), "foreign", id="the polite signal"),
        pytest.param(ASKED.format("status") + exited(), "unknown", id="somebody only looked"),
        pytest.param(exited(), "unknown", id="nobody asked"),
        pytest.param(exited() + ASKED.format("stop"), "unknown", id="asked behind it"),
        pytest.param(ASKED.format("stop") + "".join(CHATTER.format(n % 10) for n in range(40)) + exited(), "unknown", id="long before it"),
        pytest.param(ASKED.format("stop") + exited("code=exited, status=1/FAILURE"), "own", id="a status of its own"),
    ],
)  # fmt: skip
def test_a_process_that_somebody_had_stopped(journal: str, whose: str, tmp_path: Path) -> None:
    told = bonds(tmp_path, {"vllm.log": serving(), "unit.txt": journal}, "process_exit")
    assert {each[0] for place, each in told.items() if place.startswith("unit")} == {whose}


def trainer(script: str) -> str:
    return (
        "step 410 of 9000\n"
        "Traceback (most recent call last):\n"
        f'  File "{script}", line 88, in <module>\n'
        "    out = net(batch)\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 39.49 GiB of which 211.00 MiB is free.\n"
    )


@pytest.mark.parametrize(
    ("script", "apart"),
    [
        ("/srv/ft/train.py", True),
        ("/srv/ft/sft_train.py", True),
        ("/srv/ft/train_lora.py", True),
        ("/srv/ft/constrain.py", False),
        ("/srv/ft/trainable.py", False),
    ],
)
def test_the_log_of_a_script_that_trains(script: str, apart: bool, tmp_path: Path) -> None:
    bond = bonds(tmp_path, {"vllm.log": serving(), "stderr.txt": trainer(script)}, "oom").get("stderr.txt:0")
    assert (bond == ("foreign", "a training job's log")) is apart


LOADING = "Loading safetensors checkpoint shards:  50% Completed | 2/4 [00:06<00:06,  3.1s/it]Killed\n"


@pytest.mark.parametrize(
    ("group", "whose"),
    [
        pytest.param("/user.slice/user-1000.slice/user@1000.service/app.slice/term-88.scope", "own", id="what a person started"),
        pytest.param("/user.slice/user-1000.slice/user@1000.service/app.slice/render.service", "foreign", id="a unit of that person's"),
        pytest.param("/system.slice/render.service", "foreign", id="a unit of the system's"),
        pytest.param("/system.slice/vllm.service", "own", id="a unit that serves"),
    ],
)  # fmt: skip
def test_the_memory_group_of_a_person_names_no_program(group: str, whose: str, tmp_path: Path) -> None:
    told = bonds(tmp_path, {"vllm.log": LOADING, "dmesg.txt": kill("812.004100", "python", group)})
    assert {each[0] for place, each in told.items() if place.startswith("dmesg")} == {whose}


FAILED = (
    OWN_ERROR.replace("ValueError: the head of the model must be divisible by 3", "torch.OutOfMemoryError: CUDA out of memory.")
    + "(APIServer pid=7) INFO 11-24 09:20:05 [launcher.py:90] Application shutdown complete.\n"
)  # fmt: skip


@pytest.mark.parametrize(
    ("words", "whose"),
    [
        pytest.param("", "own", id="the log breaks off"),
        pytest.param(FAILED.replace("09:20:0", "13:00:1"), "unknown", id="it says what failed"),
    ],
)
def test_what_one_life_says_explains_no_other(words: str, whose: str, tmp_path: Path) -> None:
    log = serving(FAILED) + start(hour=13) + words
    group = "/kubepods.slice/kubepods-pod77.slice/cri-containerd-9e.scope"
    told = bonds(tmp_path, {"vllm.log": log, "dmesg.txt": kill("Mon Nov 24 13:00:12 2025", "python3", group)})
    assert {each[0] for place, each in told.items() if place.startswith("dmesg")} == {whose}


def test_a_kill_is_told_at_its_own_time(tmp_path: Path) -> None:
    group = "/kubepods.slice/kubepods-pod77.slice/cri-containerd-9e.scope"
    failed = OWN_ERROR + "(APIServer pid=7) INFO 11-24 09:20:05 [launcher.py:90] Application shutdown complete.\n"
    (tmp_path / "vllm.log").write_text(serving(failed) + start(hour=13))
    (tmp_path / "dmesg.txt").write_text(kill("Mon Nov 24 13:00:12 2025", "python3", group))
    with oomdoc.analyze(tmp_path, oomdoc.Options(wording=False)) as analysis:
        story = analysis.report.story
    assert story is not None
    (ended,) = [link.says for link in story.chain if "the kernel ended the process" in link.says]
    assert "13:00:12" in ended and "09:20" not in ended
