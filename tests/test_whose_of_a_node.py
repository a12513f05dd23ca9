"""What a node tells of others beside its server: whom the kernel ends, whose log runs out of memory, what was solved days ago.

Each relation stands beside a bundle that differs from it in what decides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from test_ends_told_outside import OPEN, inspected, put
from test_whose_event import bonds, serving
from verdicts import tables

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 79.18 GiB of which 61.38 MiB is free."


def global_kill(name: str, group: str = "/system.slice/plot.service", stamp: str = "Tue Nov 24 09:00:28 2026") -> str:
    """The kernel ends the largest process because the whole host is full."""
    return "".join(
        f"[{stamp}] {text}\n"
        for text in (
            "rsyslogd invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0",
            f"oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg={group},task={name},pid=8812,uid=0",
            f"Out of memory: Killed process 8812 ({name}) total-vm:90000000kB, anon-rss:30000000kB, file-rss:61904kB, shmem-rss:0kB, UID:0",
        )
    )


@pytest.mark.parametrize(("name", "own", "beside"), [("plotter", False, True), ("VLLM::EngineCore", True, False)], ids=["another program", "the server"])  # fmt: skip
def test_whom_the_kernel_ends_on_a_full_host(name: str, own: bool, beside: bool, tmp_path: Path) -> None:
    """Who is not ended goes on: another one's end for a full host is no end of the server's."""
    files = {"aurora.log": OPEN, "dmesg.txt": global_kill(name, "/aurora.slice")}
    with tables(put(tmp_path, files)) as analysis:
        ((ended, others),) = analysis.sql("SELECT oom_kills > 0, beside_kills > 0 FROM host")[1]
        kinds = {row[0] for row in analysis.sql("SELECT kind FROM incident")[1]}
    assert (ended, others, "host-kill" in kinds) == (own, beside, own)


@pytest.mark.parametrize("contained", [True, False], ids=["in a container", "nobody says where it runs"])
def test_a_persons_session_beside_a_server(contained: bool, tmp_path: Path) -> None:
    """Whoever is logged in is not the container's server, whatever the interpreter is called."""
    text = json.dumps([{**inspected("aurora", 1), "Id": "9a21c0d17e21" + "ab" * 26}])
    files = {"aurora.log": OPEN, "dmesg.txt": global_kill("python3", "/user.slice/user-1000.slice/session-4.scope")}
    found = bonds(tmp_path, files | ({"inspect.json": text} if contained else {}))
    assert (found["dmesg.txt:3"][0] == "foreign") is contained


@pytest.mark.parametrize(("name", "whose"), [("llama-server", "foreign"), ("VLLM::Worker_TP", "own")])
def test_a_server_of_another_make(name: str, whose: str, tmp_path: Path) -> None:
    """It serves a language model as well, and is not this one."""
    found = bonds(tmp_path, {"aurora.log": OPEN, "dmesg.txt": global_kill(name, "/x.slice").replace("Out of memory:", "Memory cgroup out of memory:")})  # fmt: skip
    assert found["dmesg.txt:3"][0] == whose


@pytest.mark.parametrize(
    ("line", "apart"),
    [
        (f"2026-11-24T09:13:29Z {OOM}", True),
        (f"2026-11-24 09:13:29 - ERROR {OOM}", True),
        (OOM, False),
        (f"(EngineCore_DP0 pid=9) ERROR 11-24 09:13:29 [core.py:708] {OOM}", False),
        (f"2026-11-24T09:13:29Z the vllm worker says {OOM}", False),
    ],
    ids=["with a time", "as Python logs", "pasted", "an engine's record", "the engine's name"],
)
def test_a_log_that_runs_out_of_memory_beside_the_servers(line: str, apart: bool, tmp_path: Path) -> None:
    """A program that says nothing of an engine, in lines with times of their own, is another one."""
    other = f"2026-11-24T09:13:01Z layout worker 2.3 begins\n{line}\n2026-11-24T09:13:30Z ended with 1\n"
    found = bonds(tmp_path, {"aurora.log": serving(), "layout.log": other}, "oom")
    assert (found.get("layout.log:0", ("", ""))[0] == "foreign") is apart


FLAGS = "(APIServer pid=7) INFO 11-{day} 09:00:02 [api_server.py:1360] non-default args: {{'model': 'org/aurora-7b', 'gpu_memory_utilization': {share}}}\n"


@pytest.mark.parametrize(
    ("day", "share", "apart"),
    [(12, 0.88, True), (12, 0.97, False), (24, 0.88, False)],
    ids=["days later with another share", "days later as before", "the same day"],
)
def test_a_crash_that_somebody_mended(day: int, share: float, apart: bool, tmp_path: Path) -> None:
    """Who has changed what it ran out with is not asked about that again; with the same settings it may die as before."""
    crash = serving(f"(EngineCore_DP0 pid=41) ERROR 11-24 09:20:04 [core.py:708] {OOM}\n")
    old = crash.replace("11-24", f"11-{day}").replace("INFO 11", FLAGS.format(day=day, share=0.97).replace("INFO 11", "INFO 1%") + "(APIServer pid=7) INFO 11", 1).replace("INFO 1%", "INFO 11")  # fmt: skip
    new = serving().replace(" 09:", " 15:").replace("INFO 11", "(APIServer pid=7) INFO 11", 0)
    new = FLAGS.format(day=24, share=share).replace(" 09:", " 15:") + new
    head, _, rest = new.partition("\n")
    first, _, tail = rest.partition("\n")
    found = bonds(tmp_path, {"aurora.log.1": old, "aurora.log": "\n".join((first, head, tail))}, "oom")
    assert (found.get("aurora.log.1:0", ("", ""))[0] == "foreign") is apart


SHARD = "(Worker_TP0 pid=260) INFO 11-24 09:03:00 [weights.py:1] Loading safetensors checkpoint shards:  22% Completed | 2/9 [00:14<05:52,  7.20s/it]\n"


@pytest.mark.parametrize("goes_on", [True, False], ids=["it loads on for minutes", "nothing follows"])
def test_a_device_error_while_a_start_loads(goes_on: bool, tmp_path: Path) -> None:
    """A start that goes on for minutes has survived what the driver reported."""
    log = OPEN + (SHARD if goes_on else "")
    kernel = "[Tue Nov 24 09:00:30 2026] NVRM: Xid (PCI:0000:ab:00): 94, pid=51200, name=python3, Contained: SM (0x1)\n"
    found = bonds(tmp_path, {"aurora.log": log, "dmesg.txt": kernel})
    assert (found["dmesg.txt:1"][0] == "foreign") is goes_on


@pytest.mark.parametrize(("finished", "whose"), [("09:00:06", "own"), ("08:30:00", "foreign")], ids=["as it was killed", "long before"])  # fmt: skip
def test_a_kill_before_the_log_that_was_kept(finished: str, whose: str, tmp_path: Path) -> None:
    """The log is of the life that runs now; the container tells when the one before it ended, and the group is its own."""
    uid = "0a1b2c3d-1111-4222-8333-444455556666"
    pod = {"kind": "Pod", "metadata": {"name": "aurora-0", "namespace": "ai", "uid": uid}, "spec": {"containers": [{"name": "s", "image": "vllm/vllm-openai:v0.13.0"}]}, "status": {"containerStatuses": [{"name": "s", "restartCount": 2, "state": {"running": {"startedAt": "2026-11-24T09:02:00Z"}}, "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": f"2026-11-24T{finished}Z"}}}]}}  # fmt: skip
    group = f"/kubepods.slice/kubepods-pod{uid.replace('-', '_')}.slice/cri-containerd-{'4988c84f' * 8}.scope"
    kernel = global_kill("VLLM::Worker_TP", group, "Tue Nov 24 09:00:00 2026").replace("Out of memory:", "Memory cgroup out of memory:")  # fmt: skip
    log = OPEN.replace("09:00", "09:02")
    found = bonds(tmp_path, {"aurora.log": log, "pod.json": json.dumps(pod), "dmesg.txt": kernel})
    assert found["dmesg.txt:3"][0] == whose


SACCT = """JobID|JobName|State|ExitCode|ReqMem
{other}|assembly|OUT_OF_MEMORY|0:125|64G
448127|aurora|{state}|0:0|240G
"""


@pytest.mark.parametrize(("other", "state", "whose"), [("448119", "RUNNING", "foreign"), ("448127", "RUNNING", "own")], ids=["another job", "the server's"])  # fmt: skip
def test_a_batch_job_by_its_number(other: str, state: str, whose: str, tmp_path: Path) -> None:
    """The log is named after its job; a list of jobs tells of each by its number, and none of them is a device's allocator."""
    files = {"slurm-448127.out": serving(), "sacct.txt": SACCT.format(other=other, state=state)}
    assert bonds(tmp_path, files)["sacct.txt:2"][0] == whose
    with tables(tmp_path) as analysis:
        assert analysis.sql("SELECT count(*) FROM main.oom")[1][0][0] == 0


@pytest.mark.parametrize(
    ("step", "whose"), [("448119", "foreign"), ("448127", "own")], ids=["another job", "the server's"]
)
def test_a_batch_job_by_its_memory_group(step: str, whose: str, tmp_path: Path) -> None:
    """The kernel names the group of the job; the process may have any name."""
    kernel = global_kill("python3", f"/slurm/uid_41877/job_{step}/step_0").replace("Out of memory:", "Memory cgroup out of memory:")  # fmt: skip
    found = bonds(tmp_path, {"slurm-448127.out": OPEN, "dmesg.txt": kernel})
    assert found["dmesg.txt:3"][0] == whose


def shipped(text: str, pod: str, ahead_h: int = 0) -> str:
    """A log as a collector keeps it: a pod beside each line, its own clock before it."""
    lines = []
    for line in text.splitlines():
        day, hour = line.split(" INFO ")[1][:11].split(" ")[0], int(line.split(" INFO ")[1][6:8])
        stamp = f"2026-{day}T{hour + ahead_h:02}{line.split(' INFO ')[1][8:14]}.040Z"
        lines.append(json.dumps({"timestamp": stamp, "pod": pod, "message": line}))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(("pod", "whose"), [("aurora-7d9f4c6b8d-q2x5m", "own"), ("embedder-5c8d9f7b66-zz81p", "foreign")], ids=["its own", "a model server beside it"])  # fmt: skip
def test_a_collector_names_the_pod_of_a_log(pod: str, whose: str, tmp_path: Path) -> None:
    """A list of pods tells restarts of each; those of the other one are none of the server's."""
    pods = f"NAME                         READY   STATUS             RESTARTS        AGE\n{pod}    0/1     CrashLoopBackOff   9 (3m ago)      6h\n"
    files = {"engine.jsonl": shipped(serving(), "aurora-7d9f4c6b8d-q2x5m"), "pods.txt": pods}
    found = bonds(tmp_path, files, "container")
    assert (found["pods.txt:2"][0] == "foreign") is (whose == "foreign")


@pytest.mark.parametrize(("ahead_h", "told"), [(6, 21600.0), (0, None)])
def test_a_collectors_clock_beside_the_engines(ahead_h: int, told: float | None, tmp_path: Path) -> None:
    """What else is taken on the host is in the zone of the engine's own stamps."""
    put(tmp_path, {"engine.jsonl": shipped(OPEN, "aurora-0", ahead_h)})
    with tables(tmp_path) as analysis:
        rows = analysis.sql("SELECT value FROM main.note WHERE topic = 'log-zone'")[1]
    assert [row[0] for row in rows] == ([told] if told else [])


@pytest.mark.parametrize(
    ("day", "ends", "apart"),
    [("2026-05-30", "", True), ("2026-11-24", "", False), ("2026-05-30", f"(EngineCore_DP0 pid=41) ERROR 11-24 09:20:04 [core.py:708] {OOM}\n", False)],
    ids=["months before", "the same day", "the server fails today"],
)  # fmt: skip
def test_a_ticket_of_long_ago(day: str, ends: str, apart: bool, tmp_path: Path) -> None:
    """A text that names its day elsewhere than before the message, beside a server that came up and shows no failure."""
    ticket = f"=== RIVER-312 (closed {day}) ===\nSymptom: {OOM}\nSolved by a smaller share.\n"
    found = bonds(tmp_path, {"aurora.log": serving(ends), "ticket.txt": ticket}, "oom")
    assert (found.get("ticket.txt:2", ("", ""))[0] == "foreign") is apart
