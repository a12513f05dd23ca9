"""Who ended a server where its own log says nothing: a probe that only its counter or its budget tells of, an order of the cluster; and whose
failure it is that another log tells of.

Each relation stands beside a bundle that differs from it in what decides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from test_ends_told_outside import OPEN
from test_whose_event import bonds, kill, serving, start
from verdicts import first, shows

SLOW = "probe-restart-loop"
POD = """\
Name:         aurora-6d7f8b9c5-k2m4p
Namespace:    desk
Status:       Running
Containers:
  engine:
    Image:          vllm/vllm-openai:v0.13.0
    State:          Running
      Started:      Tue, 24 Nov 2026 09:21:00 +0000
    Last State:     Terminated
      Reason:       Error
      Exit Code:    137
      Started:      Tue, 24 Nov 2026 08:59:50 +0000
      Finished:     Tue, 24 Nov 2026 09:20:40 +0000
    Restart Count:  9
    Limits:
      memory:          48Gi
      nvidia.com/gpu:  1
    Liveness:       http-get http://:8000/health delay=60s timeout=2s period=10s #success=1 #failure=4
Events:            <none>
"""


def counted(pod: str, failed: int, kind: str = "Liveness") -> str:
    """The kubelet's counter of one probe."""
    about = f'container="engine",namespace="desk",pod="{pod}",probe_type="{kind}"'
    return f'prober_probe_total{{{about},result="failed"}} {failed}\nprober_probe_total{{{about},result="successful"}} 2200\n'


@pytest.mark.parametrize(
    ("pod", "failed", "kind", "holds"),
    [
        ("aurora-6d7f8b9c5-k2m4p", 36, "Liveness", True),
        ("aurora-6d7f8b9c5-k2m4p", 35, "Liveness", False),  # nine ends of four in a row took one more
        ("aurora-6d7f8b9c5-k2m4p", 80, "Readiness", False),
        ("billing-api-0", 80, "Liveness", False),
    ],
    ids=["enough for its restarts", "too few", "of readiness", "another pod's"],
)
def test_the_kubelet_counts_what_events_no_longer_tell(pod: str, failed: int, kind: str, holds: bool, tmp_path: Path) -> None:  # fmt: skip
    extract = "# TYPE prober_probe_total counter\n" + counted(pod, failed, kind)
    assert shows(tmp_path, {"aurora.log": serving(), "pod.txt": POD, "kubelet.prom": extract}, SLOW, "probe-failures-and-restarts") is holds  # fmt: skip


def again(every: int, times: int = 4) -> str:
    """A log of starts that all get to the same step, one so many seconds after the other."""
    text = ""
    for turn in range(times):
        minute, second = divmod(every * turn, 60)
        text += OPEN.replace(" 09:00:0", f" 09:{minute:02}:{second // 10}").replace(
            " 09:00:20", f" 09:{minute:02}:{second // 10}9"
        )
    return text


def docker(retries: int, **check: object) -> str:
    """What `docker inspect` prints of a container whose health is asked for each 10 s, from a minute on."""
    asked = {"Test": ["CMD", "curl", "-f", "localhost"], "Interval": 10 * 10**9, "StartPeriod": 60 * 10**9, "Retries": retries, **check}  # fmt: skip
    return json.dumps([{"Name": "/aurora", "RestartCount": 0, "State": {"Status": "running", "OOMKilled": False}, "HostConfig": {"Memory": 0}, "Config": {"Image": "vllm/vllm-openai:v0.13.0", "Healthcheck": asked}}])  # fmt: skip


def compose(retries: int, start_period: str = "1m") -> str:
    """The same of a compose file."""
    return (
        "services:\n  aurora:\n    image: vllm/vllm-openai:v0.13.0\n    command: --model org/aurora-7b --max-model-len 8192\n    healthcheck:\n"
        f'      test: ["CMD", "curl", "-f", "localhost"]\n      interval: 10s\n      start_period: {start_period}\n      retries: {retries}\n'
    )


@pytest.mark.parametrize(
    ("files", "holds"),
    [
        ({"inspect.json": docker(4)}, True),
        ({"inspect.json": docker(30)}, False),
        ({"inspect.json": docker(4, Test=["NONE"])}, False),
        ({"inspect.json": docker(4, Interval=0)}, False),  # 30 s where nothing is set: 60 + 4 x 30
        ({"compose.yaml": compose(4)}, True),
        ({"compose.yaml": compose(4, "20m")}, False),
        ({"compose.yaml": compose(30)}, False),
    ],
    ids=["docker", "a longer budget", "switched off", "at its usual pace", "compose", "a longer grace", "more tries"],
)
def test_starts_that_last_as_long_as_a_health_check_allows(files: dict[str, str], holds: bool, tmp_path: Path) -> None:
    """A minute, four questions of 10 s, and some seconds to stop: 110 s from one start to the next."""
    assert shows(tmp_path, {"aurora.log": again(110), **files}, SLOW, "life-is-the-probes-budget") is holds


KUBELET = 'Nov 24 09:21:{at} n-3 kubelet[77]: I1124 09:21:{at}.502213    77 kubelet.go:2441] "SyncLoop DELETE" source="api" pods=["desk/{pod}"]\n'
PENDING = """\
apiVersion: v1
kind: Pod
metadata:
  name: aurora-0
  namespace: desk
spec:
  containers:
  - name: engine
    image: vllm/vllm-openai:v0.13.0
status:
  phase: {phase}
  conditions:
  - type: PodScheduled
    status: "{placed}"
    reason: {reason}
    message: '0/7 nodes are available: 2 node(s) were unschedulable, 5 Insufficient nvidia.com/gpu.'
"""
WAITS = PENDING.format(phase="Pending", placed="False", reason="Unschedulable")
DIED = "What we saw: aurora died at 09:21 and callers got 503 for half an hour.\n"


@pytest.mark.parametrize(
    ("told", "holds"),
    [
        (KUBELET.format(at="05", pod="aurora-0"), True),
        (KUBELET.format(at="05", pod="search-0"), False),
        ("evicting pod desk/aurora-0\n", True),
        ("evicting pod desk/search-0\n", False),
    ],
    ids=["kubelet", "another pod", "drain", "a drain of others"],
)
def test_a_pod_that_the_cluster_was_asked_to_remove(told: str, holds: bool, tmp_path: Path) -> None:
    files = {"aurora.log": serving(), "pod.yaml": WAITS, "journal.txt": told, "ticket.txt": DIED}
    assert shows(tmp_path, files, "not-memory", "removed-by-order") is holds


@pytest.mark.parametrize(
    ("text", "holds"),
    [(WAITS, True), (PENDING.format(phase="Running", placed="True", reason="Placed"), False)],
    ids=["waits", "placed"],
)
def test_a_pod_says_in_its_status_that_no_node_takes_it(text: str, holds: bool, tmp_path: Path) -> None:
    assert shows(tmp_path, {"aurora.log": serving(), "pod.yaml": text}, "not-memory", "no-node-takes-the-pod") is holds


TOO_LONG = "(EngineCore_DP0 pid=41) ERROR 11-{day} 09:00:31 [core.py:708] ValueError: To serve at least one request with the models's max seq len (131072), (24.0 GiB KV cache is needed, which is larger than the available KV cache memory (6.12 GiB). Based on the available memory, the estimated maximum model length is 33424.\n"
MISSING = "(EngineCore_DP0 pid=41) ERROR 11-24 09:04:31 [core.py:708] OSError: [Errno 28] No space left on device\n"


@pytest.mark.parametrize(
    ("model", "day", "apart"),
    [("org/borealis-32b", 3, True), ("org/borealis-32b", 24, False), ("org/aurora-7b", 3, False)],
    ids=["another model on another day", "on the same day", "the same model"],
)
def test_a_refusal_of_another_model_on_another_day(model: str, day: int, apart: bool, tmp_path: Path) -> None:
    """Both failed: the later one is asked about. Tries of one day, and of one model, belong together."""
    old = start(model=model).replace("11-24", f"11-{day:02}") + TOO_LONG.format(day=f"{day:02}")
    found = bonds(tmp_path, {"aurora.log": OPEN + MISSING, "older.log": old.replace(" 09:00", " 08:00")}, "startup_check")  # fmt: skip
    assert (found.get("older.log:0", ("", ""))[0] == "foreign") is apart
    assert "aurora.log:0" not in found


@pytest.mark.parametrize(
    ("name", "apart"),
    [("serve.4711.out", True), ("serve.4730.out", False), ("batch.4711.out", False)],
    ids=["the run before", "a later run", "another script"],
)
def test_an_argument_is_refused_and_a_later_run_comes_up(name: str, apart: bool, tmp_path: Path) -> None:
    refused = (
        '  File "/venv/lib/python3.12/site-packages/vllm/config.py", line 1592, in _verify\n'
        "ValueError: User-specified max_model_len (65536) is greater than the derived max_model_len (max_position_embeddings=32768 or model_max_length=None in model's config.json).\n"
    )
    found = bonds(tmp_path, {"serve.4720.out": serving(), name: refused}, "log_error")
    assert (found.get(f"{name}:0", ("", ""))[0] == "foreign") is apart


@pytest.mark.parametrize(("job", "whose"), [(4720, "own"), (4721, "foreign")], ids=["its own", "the next job"])
def test_the_log_of_a_job_bears_its_number(job: int, whose: str, tmp_path: Path) -> None:
    text = kill("Tue Nov 24 09:19:30 2026", "python", f"/slurm/uid_1000/job_{job}/step_batch/task_0")
    found = bonds(tmp_path, {"serve.4720.out": serving(), "dmesg.txt": text})
    assert {bond for bond, _ in found.values()} == {whose}


LISTED = "NAME                      READY   STATUS      RESTARTS   AGE\n{own}   1/1     Running     0          9d\nlora-trials-8rzkq         0/1     OOMKilled   0          3h\n"


@pytest.mark.parametrize(("own", "whose"), [("aurora-0               ", "foreign"), ("billing-0              ", "own")])
def test_of_pods_that_are_called_like_model_servers_the_one_with_its_own_name(own: str, whose: str, tmp_path: Path) -> None:  # fmt: skip
    """A pod that is only named as the trade names things is the server's where no other one bears the name of its model."""
    found = bonds(tmp_path, {"log.txt": serving(), "pods.txt": LISTED.format(own=own)}, "container")
    assert found["pods.txt:3"][0] == whose


def test_others_alarms_beside_a_server_that_is_well(tmp_path: Path) -> None:
    cause, sure = first(tmp_path, {"log.txt": serving(), "pods.txt": LISTED.format(own="aurora-0               ")})
    assert cause == "healthy" and sure > 0.3
