"""Whose a pod, a container, a series or a told kill is, by the log's name, the question asked and what stands beside it: each beside what decides otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from verdicts import UP, first, likely, minute, shows, tables

SERVES = UP + "".join(minute(at, 4, 0, 9.0 + at % 5) for at in range(2, 40))
PODS = (
    "NAMESPACE   NAME                 READY   STATUS      RESTARTS      AGE   NODE\n"
    "desk        {pod}   1/1     Running     0             9h    node-9\n"
    "train       tokenise-8x7kq       0/1     OOMKilled   1             4h    node-9\n"
    "logging     shipper-x9k2l        1/1     Running     31 (8h ago)   90d   node-9\n"
)


def _asides(folder: Path, files: dict[str, str]) -> list[str]:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    with tables(str(folder)) as analysis:
        return [
            f"{source}:{line} {whose}"
            for source, line, whose in analysis.sql("SELECT source, line, whose FROM main.relation")[1]
        ]


def test_a_log_called_after_a_pod_shows_which_of_a_list_is_the_servers(tmp_path: Path) -> None:
    files = {"desk-bot-0.log": SERVES, "pods.txt": PODS.format(pod="desk-bot-0        ")}
    assert likely(tmp_path, files) == "healthy"


def test_an_end_of_that_pod_counts(tmp_path: Path) -> None:
    files = {"tokenise-8x7kq.log": SERVES, "pods.txt": PODS.format(pod="desk-bot-0        ")}
    assert likely(tmp_path, files) == "host-memory-exhausted"


def test_a_question_about_another_pod_gives_its_answer_to_that_pod(tmp_path: Path) -> None:
    asked = (
        "$ kubectl -n desk get pods\nNAME           READY   STATUS    RESTARTS      AGE\ndesk-bot-0     1/1     Running   0             9d\n"
        "splitter-0     1/1     Running   12 (9h ago)   31d\n"
        "$ kubectl -n desk describe pod {pod} | grep -A3 'Last State'\n    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n"
    )
    assert likely(tmp_path, {"desk-bot-0.log": SERVES, "session.txt": asked.format(pod="splitter-0")}) == "healthy"
    assert (
        likely(tmp_path, {"desk-bot-0.log": SERVES, "session.txt": asked.format(pod="desk-bot-0")})
        == "host-memory-exhausted"
    )


EVENTS = (
    "LAST SEEN     TYPE      REASON      OBJECT                    MESSAGE\n"
    "118m          Normal    Killing     pod/gen-7f9c5c6d4-9dqrs   Stopping container vllm\n"
    '113m (x12)    Warning   Unhealthy   pod/gen-7f9c5c6d4-4kx2p   Startup probe failed: Get "http://10.6.3.8:8000/health": dial tcp 10.6.3.8:8000: connect: connection refused\n'
)
LISTED = (
    "NAMESPACE   NAME                     READY   STATUS    RESTARTS      AGE    NODE\n"
    "gen         gen-7f9c5c6d4-4kx2p      1/1     Running   {restarts}    117m   c-13\n"
    "jobs        celery-low-6df8-twq9n    1/1     Running   4 (61m ago)   19d    c-13\n"
)


@pytest.mark.parametrize(("restarts", "loop"), [("0          ", False), ("3 (100m ago)", True)])
def test_probe_failures_count_with_restarts_of_the_same_pod(tmp_path: Path, restarts: str, loop: bool) -> None:
    files = {"gen-7f9c5c6d4-4kx2p.log": SERVES, "events.txt": EVENTS, "pods.txt": LISTED.format(restarts=restarts)}
    assert shows(tmp_path, files, "probe-restart-loop", "probe-failures-and-restarts") is loop


def test_a_told_crash_leaves_a_server_well_whose_pod_was_never_started_again(tmp_path: Path) -> None:
    note = "The pods crashed at night, they say. Is the next crash coming?\n"
    files = {"desk-bot-0.log": SERVES, "note.md": note}
    assert first(tmp_path, {**files, "pods.txt": PODS.format(pod="desk-bot-0        ")})[1] > 0.7


def test_without_its_pod_a_told_crash_leaves_it_open(tmp_path: Path) -> None:
    assert first(tmp_path, {"vllm.log": SERVES, "note.md": "The pods crashed at night, they say.\n"})[1] < 0.4


KILL = "[Mon Mar  2 08:20:11 2026] Memory cgroup out of memory: Killed process 4411 ({name}) total-vm:2300112kB, anon-rss:1040112kB, file-rss:0kB, shmem-rss:0kB\n"


def _kernel(name: str) -> str:
    return (
        "[Mon Mar  2 07:00:00 2026] systemd[1]: Started Daily apt activities.\n"
        f"[Mon Mar  2 08:20:11 2026] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=box,mems_allowed=0,oom_memcg=/system.slice/crawl.scope,task_memcg=/system.slice/crawl.scope,task={name},pid=4411,uid=1000\n"
        + KILL.format(name=name)
    )


def test_what_the_kernel_is_said_to_have_ended_may_be_another_programs(tmp_path: Path) -> None:
    told = "The kernel OOM-killed something on the box at twenty past eight.\n"
    assert first(tmp_path, {"vllm.log": SERVES, "ticket.txt": told, "dmesg.txt": _kernel("chromium")})[1] > 0.7
    other = tmp_path / "other"
    other.mkdir()
    assert first(other, {"vllm.log": SERVES, "ticket.txt": told})[1] < 0.4


def _sheet(own: str, other: str) -> str:
    rows = ["ts,container,rss_mib,limit_mib"]
    for at in range(60):
        stamp = f"2026-03-02T{8 + at // 30:02}:{at % 30 * 2:02}:00Z"
        rows += [f"{stamp},{own},{8000 + at % 3},49152", f"{stamp},{other},{300 + 12 * at},1024"]
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    ("own", "other", "cause"), [("q8-1", "renderer-1", "healthy"), ("renderer-1", "q8-1", "memory-leak")]
)
def test_a_series_of_another_container_is_no_growth_of_the_servers(
    tmp_path: Path, own: str, other: str, cause: str
) -> None:
    assert likely(tmp_path, {"q8.log": SERVES, "boxes.csv": _sheet(own, other)}) == cause


def _matrix(pod: str, grows: bool) -> str:
    values = [
        [1772438400 + 1800 * at, str((10 << 30) + (at * (1 << 29) if grows else at % 3 * (1 << 20)))]
        for at in range(96)
    ]
    metric = {"__name__": "container_memory_rss", "namespace": "desk", "pod": pod, "container": "vllm"}
    return json.dumps(
        {"status": "success", "data": {"resultType": "matrix", "result": [{"metric": metric, "values": values}]}}
    )


@pytest.mark.parametrize(("grows", "leak"), [(True, True), (False, False)])
def test_an_exporters_series_of_its_container_is_a_course_of_its_memory(
    tmp_path: Path, grows: bool, leak: bool
) -> None:
    files = {"desk-bot-0.log": SERVES, "range.json": _matrix("desk-bot-0", grows)}
    assert shows(tmp_path, files, "memory-leak", "climbs-without-plateau") is leak


def test_dates_without_a_clock_are_the_time_of_a_series(tmp_path: Path) -> None:
    rows = "day,requests,rss_gib\n" + "".join(
        f"2026-03-{1 + at:02},{21000 + 70 * at},{9.5 + 13 * at:.1f}\n" for at in range(9)
    )
    assert shows(tmp_path, {"vllm.log": SERVES, "days.csv": rows}, "memory-leak", "climbs-without-plateau")


def _bytes(name: str) -> str:
    rows = [f"Time,{name},cache,node_mem_available"]
    for at in range(40):
        held = 10_000_000_000 + at * 400_000_000 if at < 36 else 0
        rows.append(f"2026-03-02 08:{at:02}:00,{held},440234147,{200_000_000_000 - held}")
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize(("name", "read"), [("llm70", True), ("net_rx", False)])
def test_a_column_of_bytes_beside_the_hosts_memory_is_that_of_the_program_it_is_called_after(
    tmp_path: Path, name: str, read: bool
) -> None:
    (tmp_path / "stats.csv").write_text(_bytes(name))
    (tmp_path / "vllm.log").write_text(SERVES)
    with tables(str(tmp_path)) as analysis:
        assert (analysis.sql(f"SELECT count(*) FROM main.process_memory WHERE name = '{name}'")[1][0][0] > 0) is read


def _event(pod: str) -> dict[str, object]:
    return {"type": "Normal", "reason": "Killing", "message": "Container web failed liveness probe, will be restarted", "count": 1, "firstTimestamp": "2026-03-02T08:20:00Z", "lastTimestamp": "2026-03-02T08:20:00Z", "involvedObject": {"kind": "Pod", "namespace": "metrics", "name": pod}}  # fmt: skip


@pytest.mark.parametrize(("pod", "own"), [("tsdb-0", False), ("desk-bot-0", True)])
def test_a_list_of_events_says_whom_each_is_about(tmp_path: Path, pod: str, own: bool) -> None:
    events = json.dumps({"kind": "EventList", "items": [_event(pod)]}, indent=1)
    files = {"desk-bot-0.log": SERVES, "all.json": events, "pods.txt": PODS.format(pod="desk-bot-0        ")}
    assert (likely(tmp_path, files) == "probe-restart-loop") is own


@pytest.mark.parametrize(("scaler", "moved"), [("runner", False), ("desk-bot", True)])
def test_a_decision_is_that_of_the_scaler_that_the_event_names(tmp_path: Path, scaler: str, moved: bool) -> None:
    events = f"LAST SEEN   TYPE     REASON              OBJECT                             MESSAGE\n44m         Normal   SuccessfulRescale   horizontalpodautoscaler/{scaler}   New size: 4; reason: cpu resource utilization (percentage of request) above target\n"
    files = {"desk-bot-0.log": SERVES, "events.txt": events, "pods.txt": PODS.format(pod="desk-bot-0        ")}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with tables(str(tmp_path)) as analysis:
        assert bool(analysis.sql("SELECT count(*) FROM scaler WHERE kind = 'decision'")[1][0][0]) is moved


def test_a_client_that_cannot_reach_the_server_met_its_end_and_is_no_cause(tmp_path: Path) -> None:
    client = "2026-03-02T08:41:10Z extractor ERROR httpx.ConnectError: [Errno 111] Connection refused (vllm:8000), attempt 2/5\n"
    with_client = _first(tmp_path / "a", {"vllm.log": SERVES, "extractor.log": client})
    own = (
        SERVES
        + "ERROR 03-02 08:41:00 [core.py:700] RuntimeError: NCCL error: unhandled system error, connection reset by peer\n"
    )
    assert with_client != "not-memory"
    assert _first(tmp_path / "b", {"vllm.log": own}) == "not-memory"


def _first(folder: Path, files: dict[str, str]) -> str | None:
    folder.mkdir()
    return likely(folder, files)


@pytest.mark.parametrize(("status", "ended"), [("Exited (137) 4 minutes ago", True), ("Up 5 days", False)])
def test_a_list_of_containers_tells_how_one_ended(tmp_path: Path, status: str, ended: bool) -> None:
    listed = (
        "CONTAINER ID   IMAGE                      COMMAND                  CREATED      STATUS                       PORTS   NAMES\n"
        f'1ba3cbcdde91   vllm/vllm-openai:v0.12.0   "python3 -m vllm.ent…"   5 days ago   {status:<28}         nightly-llm-1\n'
        '74f2e5f30158   redis:7.2                  "docker-entrypoint.s…"   5 weeks ago  Up 5 weeks                           nightly-redis-1\n'
    )
    (tmp_path / "ps.txt").write_text(listed)
    (tmp_path / "vllm.log").write_text(SERVES)
    with tables(str(tmp_path)) as analysis:
        assert bool(analysis.sql("SELECT count(*) FROM main.process_exit WHERE exit_code = 137")[1][0][0]) is ended


def _mixed(pods: tuple[str, ...]) -> str:
    rows = []
    for at, line in enumerate(SERVES.splitlines()):
        labels = {"app": "q32", "container": "vllm", "namespace": "prod", "pod": pods[at % len(pods)]}
        rows.append(json.dumps({"labels": labels, "line": line, "timestamp": f"2026-03-02T08:{at:02}:36.872100Z"}))
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize("pods", [("q32-58d7c9-lm4zq",), ("q32-58d7c9-lm4zq", "q32-58d7c9-p2xwd")])
def test_an_export_of_a_workloads_lines_shows_whose_pod_a_list_is_about(tmp_path: Path, pods: tuple[str, ...]) -> None:
    listed = PODS.format(pod="q32-58d7c9-lm4zq  ")
    assert likely(tmp_path, {"loki.jsonl": _mixed(pods), "pods.txt": listed}) != "host-memory-exhausted"
