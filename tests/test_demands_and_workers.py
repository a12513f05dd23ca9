"""What a scaler of another kind is asked for, and tables that count its workers: from text to verdict, with a rival each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oomdoc.diagnose import analyze
from verdicts import first, likely

UP = (
    "INFO 03-02 08:00:02 [core.py:58] Initializing a V1 LLM engine (v0.12.0) with config: model='Qwen/Qwen3-8B', dtype=torch.bfloat16\n"
    "INFO 03-02 08:00:40 [gpu_model_runner.py:2392] Model loading took 15.2672 GiB and 9.1 seconds\n"
    "INFO 03-02 08:01:02 [kv_cache_utils.py:864] GPU KV cache size: 390,000 tokens\n"
    "INFO:     Application startup complete.\n"
)


def minute(at: int, running: int, waiting: int, used: float) -> str:
    return (
        f"INFO 03-02 08:{at:02}:10 [loggers.py:123] Engine 000: Avg prompt throughput: 900.0 tokens/s, Avg generation throughput: 700.0 tokens/s, "
        f"Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: {used}%, Prefix cache hit rate: 0.0%\n"
    )


@pytest.mark.parametrize(("waiting", "cause"), [(400, "autoscaling-blind"), (0, "healthy")])
def test_nothing_asks_ray_for_a_place(tmp_path: Path, waiting: int, cause: str) -> None:
    """A scaler that adds nodes for tasks without a place sees no request that waits in an engine; beside no queue that is as it should be."""
    log = UP + "".join(minute(at, 128, waiting + 30 * at if waiting else 0, 61.0 + at % 7) for at in range(10, 22))
    status = "======== Autoscaler status: 2026-03-02 08:20:01.1 ========\nTotal Usage:\n 8.0/8.0 GPU\nTotal Demands:\n (no resource demands)\n"
    assert likely(tmp_path, {"vllm.log": log, "monitor.log": status}) == cause


def test_a_table_of_workers_counts_replicas_and_no_memory_of_processes(tmp_path: Path) -> None:
    (tmp_path / "get.txt").write_text(
        "NAME           DESIRED WORKERS   AVAILABLE WORKERS   CPUS   MEMORY   GPUS   STATUS   AGE\n"
        "rag-cluster    5                 3                   48     420Gi    5      ready    9d\n"
    )
    with analyze(tmp_path) as analysis:
        assert analysis.sql("SELECT desired, replicas FROM scaler")[1] == [(5, 3)]
        assert analysis.sql("SELECT count(*) FROM gpu_process")[1] == [(0,)]


@pytest.mark.parametrize(("step", "cause"), [(260, "memory-leak"), (0, "healthy")])
def test_a_device_without_an_index_has_a_course(tmp_path: Path, step: int, cause: str) -> None:
    """The only card of the host, of which no column says that it is number 0."""
    rows = "".join(f"2026-03-02 {hour:02}:00,{15_000 + step * hour},23028,{390 + hour % 5}\n" for hour in range(24))
    log = UP.replace("390,000", "21,000") + "".join(minute(at, 2, 0, 20.0 + at % 5) for at in range(10, 16))
    table = "time,gpu_used_mib,gpu_total_mib,requests_last_hour\n" + rows
    letter = "Every hour the same 400 questions; nothing else is on the card.\n"
    assert likely(tmp_path, {"vllm.log": log, "hourly.csv": table, "letter.txt": letter}) == cause


TOLD = (
    "(EngineCore_DP0 pid=812) ERROR 03-02 08:30:31 [worker.py:166] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 96.00 MiB. GPU 0 has a total capacity of 44.39 GiB "
    "of which 61.06 MiB is free. Including non-PyTorch memory, this process has 2.10 GiB memory in use. Process {other} has 42.23 GiB memory in use. Of the allocated memory "
    "1.61 GiB is allocated by PyTorch, and 40.00 MiB is reserved by PyTorch but unallocated.\n"
)


@pytest.mark.parametrize(("other", "cause"), [(700, "memory-leak"), (9124, "gpu-shared")])
def test_a_stage_of_the_same_server_is_no_neighbour(tmp_path: Path, other: int, cause: str) -> None:
    """A message names a process that holds the card: one that writes into this very log, or one of somebody else."""
    log = (
        UP.replace("INFO 03-02", "(EngineCore_DP0 pid=700) [Stage-0] INFO 03-02")
        + "".join(minute(at, 2, 0, 12.0 + at % 5) for at in range(10, 30))
        + TOLD.format(other=other)
    )
    grows = 0 if other == 9124 else 230
    rows = "".join(f"08:{at:02}:00,{39_000 + grows * (at - 10)},{2 + at % 3}\n" for at in range(10, 30))
    files = {"server.log": log, "stage0.csv": "time_utc,gpu0_used_mib,stage0_running\n" + rows}
    assert likely(tmp_path, files) == cause


@pytest.mark.parametrize(("used", "cause"), [(100.0, "kv-demand-exceeds-pool"), (31.0, "not-memory")])
def test_what_filled_the_pool_alone_never_comes_back(tmp_path: Path, used: float, cause: str) -> None:
    """One conversation grows until it is put back and has no room in the empty pool; another engine just stops with room left."""
    log = UP.replace("390,000", "3,840") + "".join(minute(at, 1, 0, used * at / 30) for at in range(10, 31))
    log += "".join(minute(at, 0, 1, 0.0).replace("900.0", "0.0").replace("700.0", "0.0") for at in range(31, 50))
    assert likely(tmp_path, {"vllm.log": log, "note.txt": "After that nobody gets an answer any more.\n"}) == cause


REFUSED = (
    "(Worker_TP{rank} pid={pid}) ERROR 03-02 08:00:41 [multiproc_executor.py:871] ValueError: Free memory on device cuda:{rank} ({free}/139.80 GiB) on startup is less than desired "
    "GPU memory utilization (0.98, 137.00 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.\n"
)


@pytest.mark.parametrize(("rest", "free", "cause"), [(3, "136.10", "memory-utilization-edge"), (3, "91.20", "gpu-shared"), (3700, "136.10", "gpu-shared")])  # fmt: skip
def test_contexts_of_the_start_itself_are_no_neighbours(tmp_path: Path, rest: int, free: str, cause: str) -> None:
    """Little is taken on cards that are empty at rest; much is taken; or what is taken is there at rest, too."""
    log = UP.splitlines(keepends=True)[0].replace(
        "dtype=", "tensor_parallel_size=4, gpu_memory_utilization=0.98, dtype="
    )
    log += "".join(REFUSED.format(rank=rank, pid=400 + rank, free=free) for rank in range(4))
    smi = "index, name, memory.total [MiB], memory.used [MiB]\n" + "".join(f"{i}, NVIDIA H200, 143771 MiB, {rest} MiB\n" for i in range(4))  # fmt: skip
    assert likely(tmp_path, {"vllm.log": log, "smi.csv": smi}) == cause
    with analyze(tmp_path) as analysis:
        books = [entry.parts for entry in analysis.report.ledger if entry.moment == "failure"]
        # the account says whose it is as the verdict does
        assert books and all(
            (each.get("other_processes_bytes") is None) is (cause == "memory-utilization-edge") for each in books
        )


@pytest.mark.parametrize(("cards", "cause"), [(1, "gpu-shared"), (2, "memory-utilization-too-low")])
def test_engines_that_measure_at_once_count_each_other(tmp_path: Path, cards: int, cause: str) -> None:
    """Two engines begin in the same second: on one card each is charged with the other, on two cards the share is too small."""
    log = ""
    for line in (
        "INFO 03-02 08:00:{s:02} llm_engine.py:184] Initializing an LLM engine (v0.5.4) with config: model='/m/phi-2', dtype=torch.float16\n",
        "INFO 03-02 08:00:2{s} model_runner.py:890] Loading model weights took 5.1920 GB\n",
    ):
        log += line.format(s=3) + line.format(s=4)
    log += "    llm = LLM(model='/m/phi-2', gpu_memory_utilization=0.35)\n"
    log += "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"
    smi = "index, name, memory.total [MiB], memory.used [MiB]\n" + "".join(f"{i}, NVIDIA L4, 23034 MiB, 11 MiB\n" for i in range(cards))  # fmt: skip
    assert likely(tmp_path, {"workers.log": log, "smi.csv": smi}) == cause


@pytest.mark.parametrize(("busy", "spins"), [(100, True), (0, False)])
def test_ranks_without_weights_that_are_busy_wait_for_each_other(tmp_path: Path, busy: int, spins: bool) -> None:
    log = (
        "INFO 03-02 08:00:02 [core.py:58] Initializing a V1 LLM engine (v0.12.0) with config: model='Qwen/Qwen3-32B', tensor_parallel_size=2, dtype=torch.bfloat16\n"
        "INFO 03-02 08:00:09 [pynccl.py:103] vLLM is using nccl==2.27.5\n"
    )
    smi = "index, name, memory.total [MiB], memory.used [MiB], utilization.gpu [%]\n" + "".join(f"{i}, NVIDIA L40S, 46068 MiB, 590 MiB, {busy} %\n" for i in range(2))  # fmt: skip
    assert (likely(tmp_path, {"vllm.log": log, "smi.csv": smi}) == "not-memory") is spins


CHAIN = (
    '2026-03-02T08:00:01.104418Z  INFO text_generation_launcher: Args {{ model_id: "TheBloke/CodeLlama-7B-GPTQ", quantize: Some(Gptq), cuda_memory_fraction: 1.0 }}\n'
    "2026-03-02T08:00:31.370466Z ERROR text_generation_launcher: Method Warmup encountered an error.\n"
    "Traceback (most recent call last):\n"
    '  File "/opt/conda/lib/python3.9/site-packages/text_generation_server/models/flash_causal_lm.py", line 672, in warmup\n    _, batch = self.generate_token(batch)\n'
    "{first}\n\n"
    "The above exception was the direct cause of the following exception:\n\n"
    "Traceback (most recent call last):\n"
    '  File "/opt/conda/lib/python3.9/site-packages/text_generation_server/server.py", line 72, in Warmup\n    max_supported_total_tokens = self.model.warmup(batch)\n'
    "RuntimeError: Not enough memory to handle 8192 prefill tokens. You need to decrease `--max-batch-prefill-tokens`\n"
    "2026-03-02T08:00:31.413794Z ERROR text_generation_launcher: Webserver Crashed\n"
)
OOM = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 14.58 GiB total capacity; 12.90 GiB already allocated; 1.02 GiB free; 13.20 GiB reserved in total by PyTorch)"


def test_a_sentence_about_memory_is_a_guess_where_another_failure_raised_it(tmp_path: Path) -> None:
    """A server wraps whatever fails in its warm-up into the same words."""
    for name in ("linker", "allocator"):
        (tmp_path / name).mkdir()
    linker = "subprocess.CalledProcessError: Command '['/usr/bin/gcc', '/tmp/k.c', '-lcuda']' returned non-zero exit status 1."
    assert likely(tmp_path / "linker", {"pod.log": CHAIN.format(first=linker)}) == "not-memory"
    assert likely(tmp_path / "allocator", {"pod.log": CHAIN.format(first=OOM)}) != "not-memory"


def test_structured_messages_are_read_as_plain_ones(tmp_path: Path) -> None:
    """The same start as lines of text and as tracing-subscriber's JSON: one verdict."""
    args = 'Args { model_id: "meta-llama/Llama-2-13b-hf", quantize: None, num_shard: Some(1) }'
    stack = (
        'Error when initializing model\nTraceback (most recent call last):\n  File "/opt/conda/lib/python3.9/site-packages/text_generation_server/utils/weights.py", line 85, in get_sharded\n'
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 136.00 MiB (GPU 0; 22.20 GiB total capacity; 21.21 GiB already allocated; 31.12 MiB free; 21.22 GiB reserved in total by PyTorch)"
    )
    stamp = "2026-03-02T08:00:0{}.118203Z"
    plain = "".join(f"{stamp.format(i)} {level} text_generation_launcher: {text}\n" for i, (level, text) in enumerate([("INFO", args), ("ERROR", stack)]))  # fmt: skip
    rust = "".join(
        json.dumps({"timestamp": stamp.format(i), "level": level, "fields": {"message": text}, "target": "text_generation_launcher"}) + "\n"
        for i, (level, text) in enumerate([("INFO", args), ("ERROR", stack)])
    )  # fmt: skip
    for name in ("plain", "rust"):
        (tmp_path / name).mkdir()
    assert first(tmp_path / "plain", {"tgi.log": plain}) == first(tmp_path / "rust", {"tgi.jsonl": rust})
    assert likely(tmp_path / "rust") == "weights-exceed-gpu"


def test_what_a_tier_finds_is_not_the_pool_s(tmp_path: Path) -> None:
    """Blocks are evicted a few seconds after their last use; a cache on the host finds a part of them and hides nothing of it."""
    scrape = (
        "# HELP at 08:{at:02}:00\n"
        'vllm:num_requests_running{{engine="0"}} 24\nvllm:num_requests_waiting{{engine="0"}} 4\nvllm:kv_cache_usage_perc{{engine="0"}} 0.7\n'
        'vllm:prefix_cache_queries_total{{engine="0"}} {asked}\nvllm:prefix_cache_hits_total{{engine="0"}} {own}\n'
        'vllm:external_prefix_cache_queries_total{{engine="0"}} {asked}\nvllm:external_prefix_cache_hits_total{{engine="0"}} {tier}\n'
        'vllm:kv_block_idle_before_evict_seconds_sum{{engine="0"}} {idle}\nvllm:kv_block_idle_before_evict_seconds_count{{engine="0"}} {gone}\n'
        'vllm:kv_block_reuse_gap_seconds_count{{engine="0"}} {again}\n'
    )
    first_one = scrape.format(at=10, asked=9_000_000, own=150_000, tier=3_000_000, idle=20_000, gone=5_000, again=300)
    second = scrape.format(at=15, asked=15_000_000, own=240_000, tier=5_400_000, idle=44_000, gone=13_000, again=380)
    log = UP + "".join(minute(at, 24, 4, 70.0) for at in range(10, 16))
    assert (
        likely(tmp_path, {"vllm.log": log, "metrics-0810.prom": first_one, "metrics-0815.prom": second})
        == "prefix-cache-thrash"
    )


def test_a_board_without_nvml_asserts_for_another_reason(tmp_path: Path) -> None:
    """The same assertion of torch: on an instance of a card, and where the driver of a Tegra board said how much it could not give."""
    log = (
        "INFO 03-02 08:00:02 [core.py:58] Initializing a V1 LLM engine (v0.14.0) with config: model='/models/Qwen2.5-VL-3B', dtype=torch.float16\n"
        "INFO 03-02 08:00:40 [gpu_model_runner.py:3905] Model loading took 3.11 GiB memory and 9.1 seconds\n"
        "{nvmap}"
        "ERROR 03-02 08:00:50 [core.py:936] Traceback (most recent call last):\n"
        'ERROR 03-02 08:00:50 [core.py:936]   File "/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_model_runner.py", line 4741, in profile_run\n'
        'ERROR 03-02 08:00:50 [core.py:936]   File "/opt/venv/lib/python3.12/site-packages/vllm/model_executor/models/qwen2_5_vl.py", line 1672, in _process_image_input\n'
        'ERROR 03-02 08:00:50 [core.py:936] RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "/opt/pytorch/c10/cuda/CUDACachingAllocator.cpp":1131, please report a bug to PyTorch.\n'
    )
    for name in ("slice", "board"):
        (tmp_path / name).mkdir()
    assert likely(tmp_path / "slice", {"vllm.log": log.format(nvmap="")}) == "mig-slice-too-small"
    told = "NvMapMemAllocInternalTagged: 1610612736 error 12\nNvMapMemHandleAlloc: error 0\n"
    assert likely(tmp_path / "board", {"vllm.log": log.format(nvmap=told)}) == "prefill-activation-spike"


@pytest.mark.parametrize(("times", "cause"), [(2900, "not-memory"), (12, "healthy")])
def test_a_pod_that_runs_and_is_never_ready_does_not_serve(tmp_path: Path, times: int, cause: str) -> None:
    """Flat memory and a container that runs are no sign of health where nobody is answered for hours."""
    pod = (
        "Name:             chat-worker-7\nContainers:\n  vllm:\n    State:          Running\n      Started:      Sun, 01 Mar 2026 08:12:30 +0000\n"
        "    Restart Count:  0\n    Limits:         memory: 64Gi, nvidia.com/gpu: 1\nEvents:\n  Type     Reason     Age                      From     Message\n"
        f"  ----     ------     ----                     ----     -------\n  Warning  Unhealthy  1m2s (x{times} over 8h3m)  kubelet  Readiness probe failed: context deadline exceeded\n"
    )
    rows = "".join(f"{at:02}:00,40110,46068,27.{at % 3}\n" for at in range(1, 9))
    assert (
        likely(
            tmp_path, {"describe.txt": pod, "memory.csv": "time,gpu_used_mib,gpu_total_mib,working_set_gib\n" + rows}
        )
        == cause
    )


@pytest.mark.parametrize("head", ["", "serverless worker 0.4, one L40S, at most two of them\n"])
def test_an_environment_below_a_remark_is_one(tmp_path: Path, head: str) -> None:
    text = (
        head
        + "MODEL_NAME=Qwen/Qwen3-32B-AWQ\nQUANTIZATION=awq\nMAX_MODEL_LENGTH=2048\nGPU_MEMORY_UTILIZATION=0.98\nENFORCE_EAGER=1\n"
    )
    (tmp_path / "endpoint.txt").write_text(text)
    with analyze(tmp_path) as analysis:
        told = analysis.sql(
            "SELECT flag, value FROM engine_flag WHERE flag IN ('gpu_memory_utilization', 'max_model_len') ORDER BY flag"
        )[1]
        assert told == [("gpu_memory_utilization", "0.98"), ("max_model_len", "2048")]


def test_labels_of_a_node_in_json_s_spelling(tmp_path: Path) -> None:
    (tmp_path / "node.txt").write_text(
        "$ kubectl get node gpu-3 -o json | jq '.metadata.labels' | grep nvidia\n"
        '  "nvidia.com/gpu.memory": "19968",\n  "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-2g.20gb",\n'
        "$ kubectl describe node gpu-3 | grep -A2 Allocatable\nAllocatable:\n  cpu:                23660m\n  nvidia.com/gpu:     3\n"
    )
    with analyze(tmp_path) as analysis:
        assert ("2g.20gb", 19968 << 20) in analysis.sql("SELECT mig_profile, total_bytes FROM gpu_device")[1]


def test_sessions_whose_turns_never_find_their_history(tmp_path: Path) -> None:
    """A sheet of turns in which what the cards found is counted: nothing of what was sent before, or most of it."""
    log = UP + "".join(minute(at, 18, 0, 55.0 + at % 6) for at in range(10, 16))
    head = "session,turn,pod,prompt_tok,gpu_hit_tok,ttft_s\n"
    rows = [(s, t, (s + t) % 3, 20_000 + 4_000 * t) for s in range(3) for t in range(1, 8)]
    for name, found in (("lost", lambda size: 0), ("kept", lambda size: size - 4_000)):
        (tmp_path / name).mkdir()
        sheet = head + "".join(f"s-{s},{t},pod-{pod},{size},{found(size) if t > 1 else 0},{6.1 if name == 'lost' or t == 1 else 0.6}\n" for s, t, pod, size in rows)  # fmt: skip
        (tmp_path / name / "turns.csv").write_text(sheet)
    assert likely(tmp_path / "lost", {"vllm.log": log}) == "prefix-cache-thrash"
    assert likely(tmp_path / "kept", {"vllm.log": log}) == "healthy"
