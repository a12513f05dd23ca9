"""Whose complaint, in which figure, measured where: from text to verdict, each beside its near miss."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from verdicts import likely

STATS = "(APIServer pid=1) INFO 05-02 10:02:{s:02} [loggers.py:259] Engine 000: Avg prompt throughput: {p} tokens/s, Avg generation throughput: {g} tokens/s, Running: {r} reqs, Waiting: 0 reqs, GPU KV cache usage: {k}%, Prefix cache hit rate: 0.0%\n"
BUSY = STATS.format(s=3, p=210.0, g=88.0, r=4, k=21.0) + STATS.format(s=13, p=190.0, g=91.0, r=5, k=22.4)


def _promise(p95: str, answered: str) -> dict[str, str]:
    rows = "".join(f"2026-02-0{d + 1}T09:0{k}:00Z,{64 if k in (1, 2) else 30 + k},{7 if k == 1 else 0},{0.4 + k / 50}\n" for d in range(3) for k in range(6))  # fmt: skip
    return {
        "queue.csv": "time,running,waiting,kv_usage\n" + rows,
        "report.txt": f"alert: queue not empty\nSLO p95 1500 ms; p50 240 ms, p95 {p95}\n88,010 requests, {answered} with 200\n",
    }


def _allocator(leaks: bool) -> dict[str, str]:
    rows = "".join(f"2026-05-0{k + 1}T06:00:00Z,{30100 + (900 * k if leaks else k % 3)},{33000 + 950 * k},{600 + (10 * k if leaks else 930 * k)},{k * k}\n" for k in range(8))  # fmt: skip
    return {
        "books.csv": "time,allocated_MiB,reserved_MiB,inactive_split_MiB,num_alloc_retries\n" + rows,
        "error.txt": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 900.00 MiB. GPU 0 has a total capacity of 44.40 GiB of which 610.00 MiB is free.\n",
    }


def _proxy(preempted: int) -> dict[str, str]:
    rows = "".join(f"2026-01-05T10:{k // 6:02}:{k % 6 * 10:02}Z,{0 if k % 8 == 3 else 3000 + 70 * k},{502 if k % 8 == 3 else 200}\n" for k in range(48))  # fmt: skip
    return {
        "haproxy.csv": "time,backend_response_time_ms,status\n" + rows,
        "engine.txt": f"vllm:request_success_total +42\nvllm:num_preemptions_total +{preempted}\n",
    }


def _first_words(engine_sum: float) -> dict[str, str]:
    return {
        "figures.txt": f"users: median time to first token 9 s\nover 20 minutes `vllm:time_to_first_token_seconds_sum` +{engine_sum}, `_count` +1200; kv_cache_usage_perc at most 0.11\n"
    }


def _points(empties: bool) -> dict[str, str]:
    kv = [{"t": 60 * k, "v": k / 20} for k in range(14)] + [
        {"t": 60 * k, "v": 0.0 if empties else 0.65} for k in (14, 15, 16)
    ]
    running = [{"t": 60 * k, "v": int(0 < k < 14)} for k in range(17)]
    waiting = [{"t": 60 * k, "v": 0} for k in range(17)]
    series = [{"name": n, "points": p} for n, p in (("kv_usage", kv), ("running", running), ("waiting", waiting))]
    return {"panel.json": json.dumps({"panel": "pool", "unit": "percentunit", "series": series})}


def _answer(content: str, calls: list[dict[str, str]]) -> dict[str, str]:
    choice = {"index": 0, "message": {"role": "assistant", "content": content, "tool_calls": calls}, "finish_reason": "stop"}  # fmt: skip
    usage = {"prompt_tokens": 300, "completion_tokens": 25, "total_tokens": 325}
    return {"reply.json": json.dumps({"id": "chatcmpl-1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}), "vllm.log": BUSY}  # fmt: skip


def _throttled(count: int) -> dict[str, str]:
    return {
        "pod.txt": f"$ cat /sys/fs/cgroup/cpu.stat\nnr_periods 4000\nnr_throttled 100\n$ cat /sys/fs/cgroup/cpu.stat\nnr_periods 9000\nnr_throttled {100 + count}\n",
        "note.txt": "the vLLM server compiles for minutes at the first request, KV cache usage 4 %\n",
    }


def _link(speed: int) -> dict[str, str]:
    return {
        "load.log": "(Worker pid=9) Loading safetensors checkpoint shards:  25% Completed | 4/16 [00:16<00:48,  4.01s/it]\n",
        "net.txt": f"$ ethtool eth2 | grep Speed\n\tSpeed: {speed}Mb/s\n$ dd if=/models/m/model-00003.safetensors of=/dev/null bs=8M count=400\n3355443200 bytes (3.4 GB, 3.1 GiB) copied, 2.9 s, 1.2 GB/s\n",
    }


def _tasks(reason: str, of_box: str) -> dict[str, str]:
    tasks = [
        {
            "taskArn": f"arn:aws:ecs:x:0:task/prod/{k}",
            "group": "service:chat",
            "startedAt": f"2026-04-22T0{k}:00:00Z",
            "stoppingAt": f"2026-04-22T0{k}:05:0{k}Z",
            "stoppedReason": reason,
            "containers": [{"name": "engine", "exitCode": 137, **({"reason": of_box} if of_box else {})}],
        }
        for k in (1, 2, 3)
    ]
    log = "(APIServer pid=1) INFO 04-22 03:00:10 [api_server.py:1310] vLLM server version 0.16.0, serving model org/m\n"
    return {"tasks.json": json.dumps({"tasks": tasks}), "engine.log": log}


def _replicas(other: int) -> dict[str, str]:
    one = 'vllm:num_requests_running{{engine="0"}} {r}\nvllm:num_requests_waiting{{engine="0"}} {w}\nvllm:kv_cache_usage_perc{{engine="0"}} {k}\nvllm:request_success_total{{engine="0"}} {d}\n'
    return {
        "scrapes.txt": "# http://eng-1:8000/metrics\n"
        + one.format(r=32, w=40, k=0.21, d=50200)
        + "# http://eng-2:8000/metrics\n"
        + one.format(r=1, w=0, k=0.01, d=other)
    }


def _starts(estimate: float) -> dict[str, str]:
    def start(pid: int, day: int, left: float, guess: float) -> str:
        head = f"(EngineCore pid={pid}) INFO 06-{day:02} 08:"
        return (
            f"{head}00:08 [gpu_model_runner.py:4350] Model loading took 20.11 GiB memory and 24.02 seconds\n"
            f"{head}00:44 [gpu_model_runner.py:5170] Estimated CUDA graph memory: {guess} GiB total\n"
            f"{head}00:44 [gpu_worker.py:436] Available KV cache memory: {left} GiB\n"
        )

    return {
        "both.log": start(70, 1, 1.2, 1.7)
        + "(EngineCore pid=70) INFO 06-01 08:00:45 [kv_cache_utils.py:1316] GPU KV cache size: 9,216 tokens\n"
        "(EngineCore pid=70) INFO 06-01 08:01:20 [gpu_model_runner.py:5246] Graph capturing finished in 29 secs, took 0.41 GiB\n"
        "(APIServer pid=1) INFO:     Application startup complete.\n"
        + start(71, 2, -0.52, estimate)
        + "(EngineCore pid=71) ERROR 06-02 08:00:45 [core.py:1090] ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n",
        "args.txt": "vllm serve org/m-20b --gpu-memory-utilization 0.9\nGPU: NVIDIA L4 24GB\n",
    }


def _stopped(before: str) -> dict[str, str]:
    return {
        "unit.log": BUSY
        + before
        + "Jun 07 22:00:01 box sudo[71]:   eva : TTY=pts/0 ; PWD=/home/eva ; USER=root ; COMMAND=/usr/bin/systemctl stop llm.service\n"
        "Jun 07 22:00:01 box systemd[1]: Stopping llm.service - model server...\nJun 07 22:00:04 box systemd[1]: llm.service: Deactivated successfully.\n",
        "mail.txt": "it crashed on Sunday night, out of memory I guess\n",
    }


OOM = "(EngineCore pid=260) ERROR 06-07 21:59:58 [core.py:844] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 96.00 MiB. GPU 0 has a total capacity of 23.65 GiB of which 40.00 MiB is free.\n"


def _slept(behind: str) -> dict[str, str]:
    return {
        "night.log": 'INFO:     10.1.0.2:400 - "POST /sleep?level=1 HTTP/1.1" 200 OK\n'
        "(EngineCore_DP0 pid=9) INFO 03-18 20:00:04 [gpu_worker.py:180] Sleep mode freed 18.70 GiB memory, 1.61 GiB memory is still in use.\n"
        'INFO:     10.1.0.2:404 - "POST /wake_up HTTP/1.1" 200 OK\n'
        "(APIServer pid=3) INFO 03-19 07:00:03 [abstract.py:324] It took 1.9 seconds to wake up tags {'weights', 'kv_cache'}.\n"
        + behind
    }


@pytest.mark.parametrize(
    ("files", "cause"),
    [
        (_promise("910 ms", "88,010"), "healthy"),
        (_allocator(leaks=False), "allocator-fragmentation"),
        (_proxy(0), "not-memory"),
        (_first_words(180), "not-memory"),
        (_points(empties=True), "healthy"),
        (_answer('[TOOL_CALLS][{"name": "find", "arguments": {}}]', []), "not-memory"),
        (_throttled(4600), "not-memory"),
        (_link(10000), "not-memory"),
        (_tasks("Task failed container health checks", ""), "probe-restart-loop"),
        (_replicas(310), "not-memory"),
        (_starts(1.72), "cuda-graph-overhead"),
        (_stopped(""), "healthy"),
        (_slept('INFO:     10.1.0.7:91 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'), "healthy"),
    ],
    ids=["promise", "holes", "proxy", "client", "one-request", "call", "throttled", "link", "tasks", "replicas", "graphs", "stopped", "slept"],
)  # fmt: skip
def test_what_a_complaint_is_about(tmp_path: Path, files: dict[str, str], cause: str) -> None:
    assert likely(tmp_path, files) == cause


@pytest.mark.parametrize(
    ("files", "cause"),
    [
        (_promise("4100 ms", "71,002"), "healthy"),
        (_allocator(leaks=True), "allocator-fragmentation"),
        (_proxy(900), "not-memory"),
        (_first_words(9600), "not-memory"),
        (_points(empties=False), "healthy"),
        (_answer("The order was sent.", []), "not-memory"),
        (_throttled(90), "not-memory"),
        (_link(100000), "not-memory"),
        (_tasks("Essential container in task exited", "OutOfMemoryError: Container killed due to memory usage"), "probe-restart-loop"),
        (_replicas(48800), "not-memory"),
        (_starts(0.4), "cuda-graph-overhead"),
        (_stopped(OOM), "healthy"),
        (_slept(OOM), "healthy"),
    ],
    ids=["broken", "leak", "preempted", "engine-slow", "kept", "plain-answer", "seldom", "wide-link", "oom-killed", "even", "small-estimate", "oom-before", "oom-behind"],
)  # fmt: skip
def test_near_misses(tmp_path: Path, files: dict[str, str], cause: str) -> None:
    assert likely(tmp_path, files) != cause
