"""Whose pool, whose sheet, whose scrape: of a prefill and a decode side, of containers beside the server's, of a batch job's steps.

Each relation stands beside a bundle that differs from it in what decides.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from test_ends_told_outside import OPEN, put
from verdicts import UP, analysed, likely, shows, tables


def steps(prompt: float, answer: float, used: float, count: int = 8) -> str:
    """Lines of an engine that is idle at each of them: tokens a second in and out, and the share of its pool in use."""
    return "".join(
        f"INFO 03-02 08:{minute:02}:10 [loggers.py:123] Engine 000: Avg prompt throughput: {prompt if minute % 2 else 0.0} tokens/s, "
        f"Avg generation throughput: {answer} tokens/s, Running: 0 reqs, Waiting: 0 reqs, GPU KV cache usage: {used}%, Prefix cache hit rate: 0.0%\n"
        for minute in range(10, 10 + count)
    )


@pytest.mark.parametrize(("answer", "theirs"), [(0.2, True), (40.0, False)], ids=["prefills", "answers"])
def test_what_a_prefill_side_holds_waits_to_be_fetched(answer: float, theirs: bool, tmp_path: Path) -> None:
    """Blocks that nobody runs for are a remnant of an engine that answers, and the work of one that prefills."""
    files = {"engine.log": UP + steps(900.0, answer, 12.0)}
    assert shows(tmp_path, files, "memory-leak", "kv-held-at-idle") is not theirs


@pytest.mark.parametrize(("answer", "roomy"), [(0.2, False), (40.0, True)], ids=["prefills", "answers"])
def test_the_room_of_a_prefill_side_is_none_of_the_other_sides(answer: float, roomy: bool, tmp_path: Path) -> None:
    files = {"engine.log": UP + steps(900.0, answer, 2.0)}
    assert shows(tmp_path, files, "kv-demand-exceeds-pool", "pool-had-room") is roomy


def sheet(name: str) -> str:
    """Memory of two containers over four hours: the server's stays, the other one's grows to its limit."""
    rows = "".join(
        f"{9 + hour}:{minute:02},stack-chat-1,6500,128811\n{9 + hour}:{minute:02},{name},{3000 + 60 * hour * 12 + minute},8192\n"
        for hour in range(4)
        for minute in range(0, 60, 5)
    )
    return "time,container,mem_usage_mib,mem_limit_mib\n" + rows


PS = (
    "CONTAINER ID   IMAGE                         COMMAND                CREATED       STATUS       PORTS     NAMES\n"
    'd25dfb4601bc   vllm/vllm-openai:v0.12.0      "python3 -m vllm.en…"  3 hours ago   Up 3 hours             stack-chat-1\n'
    '72e2d3827d15   elasticsearch:8.15.0          "/bin/tini -- /usr…"   9 days ago    Up 4 seconds           stack-es-1\n'
)


@pytest.mark.parametrize(("name", "grows"), [("stack-es-1", False), ("stack-loader-1", True)], ids=["listed beside it", "listed nowhere"])  # fmt: skip
def test_what_another_container_gains_is_no_leak_of_the_server(name: str, grows: bool, tmp_path: Path) -> None:
    files = {"chat.log": UP, "stats.csv": sheet(name), "ps.txt": PS}
    assert shows(tmp_path, files, "memory-leak", "climbs-without-plateau") is grows


EVENTS = """LAST SEEN   TYPE      REASON             OBJECT                                  MESSAGE
58m         Warning   Unhealthy          pod/{pod}             Liveness probe failed: HTTP probe failed with statuscode: 502
58m         Normal    Killing            pod/{pod}             Container web failed liveness probe, will be restarted
"""
SCRAPE = "".join(
    f'{name}{{engine="0",model_name="faq",namespace="s",pod="faq-8b-6c7d5f8b9-4xq2m"}} {value}\n'
    for name, value in (("vllm:num_requests_running", 24), ("vllm:num_requests_waiting", 139), ("vllm:kv_cache_usage_perc", 0.4))
)  # fmt: skip


@pytest.mark.parametrize(("pod", "own"), [("faq-web-5f7d9c8b6-2jz8w", False), ("faq-8b-6c7d5f8b9-r9t7k", True)], ids=["another workload", "its own"])  # fmt: skip
def test_the_pod_whose_scrape_holds_an_engines_series_is_the_servers(pod: str, own: bool, tmp_path: Path) -> None:
    """No log and no description tells which pods are the server's; its own counters do."""
    found = likely(tmp_path, {"events.txt": EVENTS.format(pod=pod), "scrape.prom": SCRAPE})
    assert (found == "probe-restart-loop") is own


UNIT = "".join(
    f"Mar 02 08:{minute:02}:02 n4 systemd[1]: Started vllm-chat.service - chat.\n"
    f"Mar 02 08:{minute:02}:26 n4 systemd[1]: vllm-chat.service: Main process exited, code=exited, status=1/FAILURE\n"
    for minute in (20, 21, 22)
)


@pytest.mark.parametrize(("until", "apart"), [(40, True), (21, False)], ids=["answers on", "ends with it"])
def test_a_server_that_answers_on_is_not_the_one_that_ends(until: int, apart: bool, tmp_path: Path) -> None:
    busy = "".join(
        f"INFO 03-02 08:{minute:02}:10 [loggers.py:123] Engine 000: Avg prompt throughput: 90.0 tokens/s, Avg generation throughput: 70.0 tokens/s, "
        "Running: 2 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%, Prefix cache hit rate: 0.0%\n"
        for minute in range(5, until)
    )
    with analysed(put(tmp_path, {"reranker.log": UP + busy, "journal.txt": UNIT})) as analysis:
        aside = [each.why for each in analysis.report.set_aside if "reranker.log" in "".join(each.refs) or "reranker.log" in each.says]  # fmt: skip
    assert any("answered on while" in why for why in aside) is apart


SACCT = """JobID           JobName    State              ExitCode  Start                End                  ReqMem   MaxRSS      NTasks
--------------- ---------- ------------------ --------- -------------------- -------------------- -------- ----------- ------
884127.batch    batch      COMPLETED          0:0       2026-03-02T08:00:00  2026-03-02T16:00:00           1204312K    1
884127.0        vllm       COMPLETED          0:0       2026-03-02T08:00:00  2026-03-02T16:00:00           78120044K   1
884127.3        annotate   COMPLETED          0:0       2026-03-02T12:00:00  2026-03-02T16:00:00           {last}K    1
"""


def test_steps_of_a_job_are_programs_of_their_own(tmp_path: Path) -> None:
    """The most that each step held is no course of one of them."""
    with tables(put(tmp_path, {"engine.log": UP, "sacct.txt": SACCT.format(last=99_210_480)})) as analysis:
        names = {row[0] for row in analysis.sql("SELECT DISTINCT name FROM main.process_memory")[1]}
    assert len(names) == 3
    assert not shows(tmp_path, {}, "memory-leak", "same-state-holds-more")


REFUSED = '{{"time": "2026-03-02T08:{minute:02}:{second:02}.5Z", "status": {status}, "elapsed_ms": 60, "error": "max_tokens is too large"}}\n'
ANSWERED = '{{"time": "2026-03-02T08:{minute:02}:{second:02}.1Z", "status": 200, "elapsed_ms": 900, "usage": {{"prompt_tokens": 800, "completion_tokens": 90}}}}\n'


@pytest.mark.parametrize("refused", [0, 1], ids=["all answered", "half refused"])
def test_requests_that_were_refused_are_requests(refused: int, tmp_path: Path) -> None:
    """They have a status and a duration and nobody counts their tokens: left out, all of the rest were answered."""
    rows = "".join(
        ANSWERED.format(minute=minute, second=second) + REFUSED.format(minute=minute, second=second, status=400) * refused
        for minute in range(10, 20)
        for second in range(0, 60, 10)
    )  # fmt: skip
    found = shows(tmp_path, {"engine.log": UP + steps(90.0, 70.0, 1.0), "calls.jsonl": rows}, "not-memory", "clients-gave-up")  # fmt: skip
    assert found is bool(refused)
    with tables(str(tmp_path)) as analysis:
        assert analysis.sql("SELECT count(*) FROM request")[1][0][0] == 60 * (1 + refused)


def began(second: int) -> str:
    """The lines of a start that breaks off while it loads."""
    at = f"11-24 09:{second // 60:02}:{second % 60:02}"
    return (
        f"(APIServer pid=1) INFO {at} [api_server.py:1839] vLLM API server version 0.11.2\n"
        f"(EngineCore_DP0 pid=17) INFO {at} [core.py:77] Initializing a V1 LLM engine (v0.11.2) with config: model='org/aurora-7b', dtype=torch.bfloat16\n"
        f"(EngineCore_DP0 pid=17) INFO {at} [gpu_model_runner.py:2602] Starting to load model org/aurora-7b...\n"
    )


def sister(until: int) -> str:
    """A server of the same model on another machine, up since the day before; its last line of work is of this minute past nine."""
    busy = "".join(
        f"INFO 11-24 {8 + minute // 60:02}:{minute % 60:02}:10 [loggers.py:123] Engine 000: Avg prompt throughput: 90.0 tokens/s, Avg generation throughput: 70.0 tokens/s, "
        "Running: 2 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%, Prefix cache hit rate: 0.0%\n"
        for minute in range(0, 60 + until, 5)
    )
    return UP.replace("03-02 08:", "11-23 08:").replace("Qwen/Qwen3-8B", "org/aurora-7b") + busy


def set_aside(folder: Path, files: dict[str, str]) -> list[str]:
    with analysed(put(folder, files)) as analysis:
        return [each.why for each in analysis.report.set_aside]


@pytest.mark.parametrize(
    ("starts", "until", "apart"),
    [((600, 650, 700), 40, True), ((600,), 40, False), ((600, 650, 700), 5, False)],
    ids=["starts again and again beside it", "one start may be cut", "it ends before them"],
)
def test_a_sister_that_serves_is_not_the_server_that_does_not_come_up(
    starts: tuple[int, ...], until: int, apart: bool, tmp_path: Path
) -> None:
    found = set_aside(tmp_path, {"box-7.log": "".join(map(began, starts)), "box-5.log": sister(until)})
    assert any("did not come up" in why for why in found) is apart


POD = """apiVersion: v1
kind: Pod
metadata: {{name: course-0, namespace: k}}
spec:
  containers:
  - name: vllm
    image: vllm/vllm-openai:v0.11.2
    args: ["--model", "org/aurora-7b"]
    resources: {{limits: {{nvidia.com/gpu: "1"}}}}
status:
  phase: Running
  containerStatuses:
  - name: vllm
    ready: false
    restartCount: {restarts}
    lastState: {{terminated: {{exitCode: {code}, reason: Error, startedAt: "2026-11-24T09:10:00Z", finishedAt: "2026-11-24T09:10:46Z"}}}}
    state: {{waiting: {{reason: CrashLoopBackOff}}}}
"""


@pytest.mark.parametrize(
    ("log", "restarts", "code", "apart"),
    [
        ("research-0.log", 19, 1, True),
        ("research-0.log", 1, 1, False),
        ("research-0.log", 19, 137, False),
        ("course-0.log", 19, 1, False),
    ],
    ids=["another pod's", "one end", "ended from outside", "the pod's own"],
)
def test_a_log_that_goes_on_is_not_the_containers_that_ends(
    log: str, restarts: int, code: int, apart: bool, tmp_path: Path
) -> None:
    found = set_aside(tmp_path, {log: sister(40), "pod.yaml": POD.format(restarts=restarts, code=code)})
    assert any("course-0 ended again and again" in why for why in found) is apart


@pytest.mark.parametrize(("day", "counts"), [("Nov 21", False), ("Nov 24", True)], ids=["days before", "in its time"])
def test_a_line_of_a_kernel_log_that_somebody_wrote_down_has_its_time(day: str, counts: bool, tmp_path: Path) -> None:
    """A program that was ended for a full host days before this server began explains nothing of it."""
    facts = f"journalctl -k: {day} 09:00:28 n4 kernel: Out of memory: Killed process 99120 (rsync) total-vm:9000kB, anon-rss:4000kB\n"
    with tables(put(tmp_path, {"aurora.log": OPEN, "facts.txt": facts})) as analysis:
        ((kills, beside),) = analysis.sql("SELECT oom_kills, beside_kills FROM host")[1]
    assert (kills + beside > 0) is counts
