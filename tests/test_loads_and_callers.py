"""What a load asks of the pool, callers that leave, and what an average or a fear does not say: from text to verdict, beside a rival each."""

from __future__ import annotations

from pathlib import Path

from oomdoc.ingest.load_runs import runs
from verdicts import first, likely, shows

LOG = (
    "INFO 05-06 09:00:02 [core.py:58] Initializing a V1 LLM engine (v0.11.0) with config: model='Qwen/Qwen3-8B', dtype=torch.bfloat16\n"
    "INFO 05-06 09:00:40 [gpu_model_runner.py:2392] Model loading took 15.2683 GiB and 20.1 seconds\n"
    "INFO 05-06 09:01:02 [kv_cache_utils.py:864] GPU KV cache size: {pool:,} tokens\n"
    "INFO:     Application startup complete.\n"
)


def summary(clients: int, ttft_ms: float) -> str:
    return (
        f"$ vllm bench serve --model Qwen/Qwen3-8B --dataset-name random --random-input-len 3000 --random-output-len 200 --num-prompts 300 --max-concurrency {clients}\n"
        "============ Serving Benchmark Result ============\n"
        "Successful requests:                     300\n"
        "Total input tokens:                      900000\n"
        "Total generated tokens:                  60000\n"
        f"Mean TTFT (ms):                          {ttft_ms}\n"
        f"P99 TTFT (ms):                           {3 * ttft_ms}\n"
        "==================================================\n"
    )


def test_callers_whose_prompts_do_not_fit_together(tmp_path: Path) -> None:
    """Forty prompts of 3,000 tokens in a pool of 24,000: with eight times the pool the same times have another reason."""
    told = {"bench.txt": summary(4, 240.0) + summary(40, 9_800.0)}
    for name, _pool in (("small", 24_000), ("large", 192_000)):
        (tmp_path / name).mkdir()
    cause, sure = first(tmp_path / "small", {**told, "vllm.log": LOG.format(pool=24_000)})
    assert cause == "kv-demand-exceeds-pool" and sure > 0.8
    assert likely(tmp_path / "large", {**told, "vllm.log": LOG.format(pool=192_000)}) != "kv-demand-exceeds-pool"


def test_a_load_that_is_answered_soon_is_no_failure(tmp_path: Path) -> None:
    assert first(tmp_path, {"bench.txt": summary(4, 240.0) + summary(40, 900.0), "vllm.log": LOG.format(pool=24_000)})[0] == "healthy"  # fmt: skip


def by_turn(late_s: float, first_s: float) -> str:
    """Four and twenty sessions of five turns each."""
    rows = ["sessions,turn,mean_prompt_tokens,ttft_median_s"]
    for sessions in (4, 20):
        for turn in range(1, 6):
            many = sessions == 20
            rows.append(f"{sessions},{turn},{6_000 + 1_500 * turn},{(first_s if many else 0.9) if turn == 1 else (late_s if many else 0.15) + turn / 100}")  # fmt: skip
    return "\n".join(rows) + "\n"


def test_sessions_that_push_each_other_out(tmp_path: Path) -> None:
    """First turns take as long with many as with few, later ones ten times as long, and twenty sessions are more than the pool."""
    for name in ("thrash", "fits", "slow"):
        (tmp_path / name).mkdir()
    lost = by_turn(late_s=1.9, first_s=0.95)
    assert (
        likely(tmp_path / "thrash", {"vllm.log": LOG.format(pool=80_000), "turns.csv": lost}) == "prefix-cache-thrash"
    )
    assert likely(tmp_path / "fits", {"vllm.log": LOG.format(pool=800_000), "turns.csv": lost}) != "prefix-cache-thrash"
    every = by_turn(late_s=1.9, first_s=9.5)  # whatever slows first turns too is no eviction
    assert likely(tmp_path / "slow", {"vllm.log": LOG.format(pool=80_000), "turns.csv": every}) != "prefix-cache-thrash"


def test_options_by_their_words_and_a_server_is_no_load() -> None:
    lines = [
        "genai-perf profile -m m --synthetic-input-tokens-mean 2000 --output-tokens-mean 150 --concurrency 32 --request-count 500",
        "python -m sglang.launch_server --model-path m --max-running-requests 64 --context-length 8192",
        "vllm serve m --max-num-seqs 64 --max-num-batched-tokens 8192",
    ]
    assert [(run["line"], run["clients"], run["requests"], run["prompt_tokens"], run["output_tokens"]) for run in runs(lines)] == [(1, 32, 500, 2000, 150)]  # fmt: skip


def test_a_sweep_in_a_loop_names_its_callers_in_each_summary() -> None:
    lines = [
        "$ for c in 2 8; do vllm bench serve --random-input-len 500 --random-output-len 50 --max-concurrency $c; done"
    ]
    for clients, ttft in ((2, 110.0), (8, 120.0)):
        lines += [
            f"Maximum request concurrency:             {clients}",
            f"Mean TTFT (ms):                          {ttft}",
        ]
    assert [(run["clients"], run["prompt_tokens"], run["ttft_s"]) for run in runs(lines)] == [
        (2, 500, 0.11),
        (8, 500, 0.12),
    ]


def waves(times: int) -> str:
    lines, clock = [LOG.format(pool=64_000).rstrip()], 10
    for _ in range(times):
        for step in range(12):
            minute = clock + step
            lines.append(f"INFO 05-06 09:{minute:02}:00 [loggers.py:118] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 120.0 tokens/s, Running: 24 reqs, Waiting: 0 reqs, GPU KV cache usage: {10 + step}.0%, Prefix cache hit rate: 0.0%")  # fmt: skip
        clock += 12
        lines += [f"INFO 05-06 09:{clock:02}:00 [async_llm.py:420] Aborted request cmpl-{at}." for at in range(24)]
        clock += 1
    return "\n".join(lines) + "\n"


def test_all_callers_leave_and_come_back_and_leave_again(tmp_path: Path) -> None:
    """Once, whoever sent them has ended; twice, they run out of patience."""
    assert first(tmp_path, {"vllm.log": waves(1)})[0] == "healthy"
    cause, sure = first(tmp_path, {"vllm.log": waves(3)})
    assert cause == "not-memory" and sure > 0.7


def test_what_is_feared_or_asked_in_the_next_line_has_not_happened(tmp_path: Path) -> None:
    served = LOG.format(pool=64_000) + 'INFO:     10.0.0.9:4110 - "POST /v1/completions HTTP/1.1" 200 OK\n'
    for name, text in (
        ("fear", "We open it to the whole team on Monday.\nPlease tell us whether we have to expect an OOM with\ntwenty people on it.\n"),
        ("question", "It holds 70 GB from the start on. Where do they go, is this a memory leak or\n(one card of four is used)?\n"),
    ):  # fmt: skip
        folder = tmp_path / name
        folder.mkdir()
        assert first(folder, {"vllm.log": served, "mail.txt": text})[0] == "healthy"


def test_a_pod_that_no_node_takes(tmp_path: Path) -> None:
    """The server beside it answers; what waits for a card has no memory that failed. A pod that was placed in the end is no failure."""
    pods = "NAME                 READY   STATUS    RESTARTS   AGE\nllm-7f9c5d-abcde     1/1     Running   0          3d\nllm-5d6b7c-fghij     0/1     Pending   0          40m\n"
    events = (
        "$ kubectl describe pod llm-5d6b7c-fghij\nEvents:\n  Type     Reason            Age   From               Message\n  ----     ------            ----  ----               -------\n"
        "  Warning  FailedScheduling  39m   default-scheduler  0/3 nodes are available: 3 Insufficient nvidia.com/gpu.\n"
    )
    placed = "  Normal   Scheduled         2m    default-scheduler  Successfully assigned ai/llm-5d6b7c-fghij to n4\n"
    for name in ("waits", "placed"):
        (tmp_path / name).mkdir()
    log = LOG.format(pool=64_000)
    assert (
        first(tmp_path / "waits", {"vllm.log": log, "kubectl.txt": "$ kubectl get pods\n" + pods + events})[0]
        == "not-memory"
    )
    calm = pods.replace("0/1     Pending", "1/1     Running")
    assert (
        first(tmp_path / "placed", {"vllm.log": log, "kubectl.txt": "$ kubectl get pods\n" + calm + events + placed})[0]
        == "healthy"
    )


def test_another_release_is_no_neighbour(tmp_path: Path) -> None:
    """Of two starts with the same settings one gets a pool: under another release the release is what differs."""

    def start(day: int, version: str, left: float) -> str:
        lines = [
            f"INFO 05-{day:02} 10:00:02 [core.py:58] Initializing a V1 LLM engine (v{version}) with config: model='Qwen/Qwen3-8B', dtype=torch.bfloat16, max_seq_len=8192, tensor_parallel_size=1, gpu_memory_utilization=0.25",
            f"INFO 05-{day:02} 10:00:01 [cli_args.py:325] non-default args: {{'model': 'Qwen/Qwen3-8B', 'gpu_memory_utilization': 0.25, 'max_model_len': 8192}}",
            f"INFO 05-{day:02} 10:00:40 [gpu_model_runner.py:2392] Model loading took 15.2683 GiB and 20.1 seconds",
            f"INFO 05-{day:02} 10:01:00 [gpu_worker.py:298] Available KV cache memory: {left} GiB",
        ]
        if left > 0:
            lines += [
                f"INFO 05-{day:02} 10:01:02 [kv_cache_utils.py:864] GPU KV cache size: 14,560 tokens",
                "INFO:     Application startup complete.",
            ]
        else:
            lines += [
                "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine."
            ]
        return "\n".join(lines) + "\n"

    for name in ("same", "other"):
        (tmp_path / name).mkdir()
    same = {"a.log": start(3, "0.11.0", 2.0), "b.log": start(9, "0.11.0", -0.4)}
    assert shows(tmp_path / "same", same, "gpu-shared", "alike-start-got-a-pool")
    other = {"a.log": start(3, "0.11.0", 2.0), "b.log": start(9, "0.12.0", -0.4)}
    assert not shows(tmp_path / "other", other, "gpu-shared", "alike-start-got-a-pool")
    assert first(tmp_path / "other", other)[0] == "memory-utilization-too-low"


def test_ranks_that_cannot_talk_are_no_cost_of_ranks(tmp_path: Path) -> None:
    """One rank works and four fail: with an allocation that failed it is what ranks cost, with a collective that timed out it is the link."""
    begin = (
        "INFO 07-12 10:41:30 [core.py:58] Initializing a V1 LLM engine (v0.11.0) with config: model='Qwen/Qwen3-8B', dtype=torch.bfloat16, tensor_parallel_size=4\n"
        "(VllmWorker rank=0 pid=211) INFO 07-12 10:41:37 [pynccl.py:69] vLLM is using nccl==2.27.3\n"
    )
    link = (
        "(VllmWorker rank=0 pid=211) ERROR 07-12 10:51:40 [multiproc_executor.py:588] torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3353, unhandled system error\n"
        "(VllmWorker rank=1 pid=212) ERROR 07-12 10:51:40 [multiproc_executor.py:588] torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3353, unhandled system error\n"
    )
    note = "TP=1 works. TP=4 fails, every time.\n"
    assert first(tmp_path, {"vllm.log": begin + link, "note.txt": note})[0] == "not-memory"


def test_a_guest_on_a_card_that_another_fills_is_no_peak(tmp_path: Path) -> None:
    """The same request in a forward pass: of a program that holds next to nothing beside 70 GiB of another, and of one that fills the card itself."""
    failed = (
        "INFO 07-12 10:41:30 [core.py:58] Initializing a V1 LLM engine (v0.11.0) with config: model='Qwen/Qwen3-8B', dtype=torch.bfloat16\n"
        'ERROR 07-12 10:44:30 [core.py:710]   File "/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_model_runner.py", line 2268, in execute_model\n'
        "ERROR 07-12 10:44:30 [core.py:710] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.20 GiB. GPU 0 has a total capacity of 79.10 GiB of which 650.00 MiB is free. {others}Including non-PyTorch memory, "
        "this process has {own} memory in use. Of the allocated memory {held} is allocated by PyTorch, and 12.00 MiB is reserved by PyTorch but unallocated.\n"
    )
    for name in ("guest", "alone"):
        (tmp_path / name).mkdir()
    guest = failed.format(others="Process 4711 has 77.10 GiB memory in use. ", own="1.36 GiB", held="820.00 MiB")
    assert first(tmp_path / "guest", {"vllm.log": guest})[0] == "gpu-shared"
    assert (
        first(tmp_path / "alone", {"vllm.log": failed.format(others="", own="78.40 GiB", held="77.00 GiB")})[0]
        == "prefill-activation-spike"
    )
