"""What stands before or beside a server, what a batch system and a collector tell of it, and messages of a device that it cannot be on: each beside what decides otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from verdicts import UP, likely, minute, shows, tables

SERVES = UP + "".join(minute(at, 4, 0, 9.0 + at % 5) for at in range(2, 40))


def _pod(name: str) -> str:
    return (
        f"Name:         {name}\nNamespace:    prod\nNode:         ip-10/10.6.1.2\nContainers:\n  {name.split('-5f')[0]}:\n    Image:          images/{name.split('-5f')[0]}:1.2\n    State:          Running\n"
        "    Last State:     Terminated\n      Reason:       Error\n      Exit Code:    137\n    Restart Count:  9\n"
        "    Liveness:       http-get http://:4000/health/liveliness delay=5s timeout=1s period=10s #success=1 #failure=3\n"
        "Events:\n  Type     Reason     Age                 From     Message\n  ----     ------     ----                ----     -------\n"
        "  Warning  Unhealthy  3m (x27 over 2h)    kubelet  Liveness probe failed: context deadline exceeded\n"
        f"  Normal   Killing    3m (x9 over 2h)     kubelet  Container {name.split('-5f')[0]} failed liveness probe, will be restarted\n"
    )


@pytest.mark.parametrize(("name", "loop"), [("litellm-5f7d9c8b66-q2xkt", True), ("report-api-5f7d9c8b66-q2xkt", False)])
def test_a_gateway_of_the_server_is_one_service_with_it(tmp_path: Path, name: str, loop: bool) -> None:
    listed = f"NAMESPACE   NAME                          READY   STATUS    RESTARTS     AGE\nprod        desk-bot-0                    1/1     Running   0            3d\nprod        {name}   1/1     Running   9 (3m ago)   2h\n"
    files = {"desk-bot-0.log": SERVES, "describe.txt": _pod(name), "pods.txt": listed}
    assert (likely(tmp_path, files) == "probe-restart-loop") is loop


def _helper(first: str, second: str) -> str:
    box = "  {name}:\n    Image:          {image}\n    State:          Running\n    Last State:     Terminated\n      Reason:       {reason}\n      Exit Code:    {code}\n    Restart Count:  4\n"
    return "Name:         desk-bot-0\nNamespace:    prod\nNode:         ip-10/10.6.1.2\nContainers:\n" + "".join(
        box.format(name=name, image=image, reason=reason, code=code)
        for name, image, reason, code in (("vllm", "vllm/vllm-openai:v0.12.0", first, 1), ("log-tail", "fluent/fluent-bit:3", second, 137))
    )  # fmt: skip


@pytest.mark.parametrize(("first", "second", "host"), [("Error", "OOMKilled", False), ("OOMKilled", "Error", True)])
def test_a_helper_in_the_servers_pod_is_not_the_server(tmp_path: Path, first: str, second: str, host: bool) -> None:
    files = {"desk-bot-0.log": SERVES, "describe.txt": _helper(first, second)}
    assert shows(tmp_path, files, "host-memory-exhausted", "oomkilled") is host


@pytest.mark.parametrize(("total", "own"), [("19.50", False), ("79.15", True)])
def test_a_message_of_a_device_that_is_smaller_than_what_the_server_holds_is_another_programs(
    tmp_path: Path, total: str, own: bool
) -> None:
    log = UP.replace(
        "INFO 03-02 08:01:02",
        "INFO 03-02 08:01:01 [gpu_worker.py:298] Available KV cache memory: 18.95 GiB\nINFO 03-02 08:01:02",
    ) + "".join(minute(at, 4, 0, 9.0) for at in range(2, 40))
    message = (
        "[I 2000-03-02 08:30:08.114 ServerApp] Kernel started: f6cca7de\nTraceback (most recent call last):\n"
        '  File "/tmp/cell_31.py", line 14, in <module>\n    loss.backward()\n'
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 0 has a total capacity of {total} GiB of which 767.06 MiB is free. Including non-PyTorch memory, this process has 18.71 GiB memory in use. Of the allocated memory 17.62 GiB is allocated by PyTorch, and 512.00 MiB is reserved by PyTorch but unallocated.\n"
    )
    files = {"llama.log": log, "notebook.log": message}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with tables(str(tmp_path)) as analysis:
        assert (analysis.sql("SELECT count(*) FROM seen.oom")[1][0][0] > 0) is own


JOB = (
    "JobId=884120 JobName=llm-serve\n   JobState=FAILED Reason={reason} Dependency=(null)\n   Requeue=0 Restarts=0 BatchFlag=1 Reboot=0 ExitCode={code}\n"
    "   TRES=cpu=48,mem=240G,node=1,gres/gpu=4\n   MinMemoryNode={limit}\n   StdOut=/home/u3/slurm-884120.out\n"
)
SWAP = (
    "INFO 03-02 08:00:01 api_server.py:527] args: Namespace(model='meta-llama/Llama-3.3-70B-Instruct', tensor_parallel_size=4, swap_space=64)\n"
    "INFO 03-02 08:00:02 llm_engine.py:234] Initializing an LLM engine (v0.6.6) with config: model='meta-llama/Llama-3.3-70B-Instruct', dtype=torch.bfloat16, tensor_parallel_size=4, swap_space=64\n"
    "INFO 03-02 08:03:40 model_runner.py:1116] Loading model weights took 32.8892 GB\n"
    "INFO 03-02 08:04:02 distributed_gpu_executor.py:57] # GPU blocks: 28000, # CPU blocks: 52428\n"
)


@pytest.mark.parametrize(("limit", "beyond"), [("240G", True), ("900G", False)])
def test_a_jobs_own_limit_is_what_settings_times_ranks_are_held_against(
    tmp_path: Path, limit: str, beyond: bool
) -> None:
    files = {"slurm-884120.out": SWAP, "job.txt": JOB.format(reason="RaisedSignal:9(Killed)", code="0:9", limit=limit)}
    assert shows(tmp_path, files, "host-memory-exhausted", "settings-exceed-the-host") is beyond


def _filled(after: int, full: float) -> str:
    rows = ["timestamp,container,working_set_bytes,memory_limit_bytes"]
    limit = 85_899_345_920
    for life in range(3):
        for at in range(18):
            held = int(limit * full * (at + 1) / 18)
            rows.append(f"2026-03-02T08:{life * 10 + at // 6:02}:{at % 6 * 10:02}Z,vllm,{held},{limit}")
        rows.append(f"2026-03-02T08:{life * 10 + 3:02}:00Z,vllm,{after},{limit}")
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    ("after", "full", "ended"),
    [(35_648_228_556, 0.999, True), (70_000_000_000, 0.999, False), (35_648_228_556, 0.90, False)],
)
def test_a_worker_that_is_gone_at_the_limit_was_ended_there(
    tmp_path: Path, after: int, full: float, ended: bool
) -> None:
    box = _helper("Error", "Completed").replace(
        "    Restart Count:  4\n", "    Restart Count:  4\n    Limits:\n      memory:  80Gi\n", 1
    )
    files = {"desk-bot-0.log": SERVES, "describe.txt": box, "memory.csv": _filled(after, full)}
    assert shows(tmp_path, files, "host-memory-exhausted", "filled-its-limit-and-was-gone") is ended


def _within(key: str, stamp: str, text: str) -> str:
    rows = [
        {"id": f"{at:024x}", key: {stamp: f"2026-03-02T08:{at:02}:01.000Z", "service": "desk", text: line, "tags": ["pod_name:desk-bot-0", "kube_namespace:gen"]}}
        for at, line in enumerate(SERVES.splitlines())
    ]  # fmt: skip
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in reversed(rows))


@pytest.mark.parametrize(
    ("key", "stamp", "text"),
    [("attributes", "timestamp", "message"), ("_source", "@timestamp", "message"), ("result", "_time", "_raw")],
)
def test_entries_within_an_object_of_each_line_are_a_log(tmp_path: Path, key: str, stamp: str, text: str) -> None:
    (tmp_path / "export.jsonl").write_text(_within(key, stamp, text))
    with tables(str(tmp_path)) as analysis:
        assert analysis.sql("SELECT count(*) FROM main.engine_stat")[1][0][0] == 38
        assert analysis.sql("SELECT served FROM engine_start")[1] == [(True,)]
        assert ("log-of-pod", "desk-bot-0") in analysis.sql("SELECT topic, text FROM main.note")[1]
