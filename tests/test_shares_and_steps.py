"""From text to verdict: a share that the engine names, what a step of the start takes, one card told twice, instances of several
sizes, rows of one table that are no conditions, runs by number and fears; each with a rival."""

from __future__ import annotations

from pathlib import Path

import pytest

from verdicts import first, shows


def _static(named: str, free: float = 17.8) -> str:
    return (
        "[2026-03-05 06:00:01] server_args=ServerArgs(model_path='/m/Some-70B-Instruct', tp_size=2, mem_fraction_static=0.80)\n"
        "[2026-03-05 06:00:20 TP0] Load weight begin. avail mem=93.20 GB\n"
        f"[2026-03-05 06:03:40 TP0] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem={free:.2f} GB, mem usage={93.2 - free:.2f} GB.\n"
        f"[2026-03-05 06:03:44 TP0] ValueError: the weights leave no GPU memory for the KV cache with --mem-fraction-static=0.80. {named}\n"
    )


def test_a_share_that_the_engine_names_is_the_setting(tmp_path: Path) -> None:
    said = _static("Raise it to at least 0.8342 or use more devices.")
    assert first(tmp_path, {"node.log": said})[0] == "memory-utilization-too-low"


def test_a_share_beyond_the_card_is_its_weights(tmp_path: Path) -> None:
    said = _static("Raise it to at least 0.9971 or use more devices.", free=0.9)
    assert first(tmp_path, {"node.log": said})[0] != "memory-utilization-too-low"


def _adapters(left: float, lora: bool = True) -> str:
    return (
        f"[2026-03-05 06:00:01] server_args=ServerArgs(model_path='/m/Some-32B-Instruct', tp_size=1, mem_fraction_static=0.85, enable_lora={lora}, max_loras_per_batch=8)\n"
        "[2026-03-05 06:00:20 TP0] Load weight begin. avail mem=78.60 GB\n"
        "[2026-03-05 06:02:10 TP0] Load weight end. type=Qwen2ForCausalLM, dtype=torch.bfloat16, avail mem=17.30 GB, mem usage=61.30 GB.\n"
        + (f"[2026-03-05 06:02:31 TP0] LoRA manager ready.\n[2026-03-05 06:02:31 TP0] avail mem={left:.2f} GB\n" if lora else "")
        + "[2026-03-05 06:02:33 TP0] RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n"
    )  # fmt: skip


@pytest.mark.parametrize(("left", "lora", "told"), [(8.9, True, True), (16.9, True, False), (0.0, False, False)])
def test_what_adapters_take_of_the_room_for_the_pool(tmp_path: Path, left: float, lora: bool, told: bool) -> None:
    # 0.15 x 78.6 = 11.8 GB are kept back: 5.5 are left of 17.3 without adapters
    assert (first(tmp_path, {"node.log": _adapters(left, lora)})[0] == "feature-overhead") is told


def test_ranks_that_load_one_after_the_other_took_no_step(tmp_path: Path) -> None:
    lines = _adapters(16.9).splitlines()
    both = "".join(f"{line}\n" + (line.replace("TP0]", "TP1]").replace("17.30", "5.10") + "\n" if "Load weight" in line else "") for line in lines)  # fmt: skip
    assert "TP1] Load weight end" in both
    assert first(tmp_path, {"node.log": both})[0] != "feature-overhead"


_LOADS = (
    "INFO 02-11 07:00:02 [api_server.py:977] vLLM API server version 0.8.1\n"
    "INFO 02-11 07:00:03 [api_server.py:978] args: Namespace(model='/m/Some-{billions}B', dtype='bfloat16', tensor_parallel_size={tp}, gpu_memory_utilization=0.92)\n"
    "INFO 02-11 07:00:20 [gpu_model_runner.py:1164] Starting to load model /m/Some-{billions}B...\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 448.00 MiB. GPU 0 has a total capacity of 44.40 GiB of which 201.00 MiB is free. Including non-PyTorch memory, this process has 44.19 GiB memory in use. Of the allocated memory 43.70 GiB is allocated by PyTorch, and 9.00 MiB is reserved by PyTorch but unallocated.\n"
)


@pytest.mark.parametrize(("listed", "cause"), [(4, "weights-exceed-gpu"), (8, "tp-undersharded")])
def test_devices_that_are_numbered_and_said_are_counted_once(tmp_path: Path, listed: int, cause: str) -> None:
    rows = "".join(f"{n}, NVIDIA L40S, 3 MiB, 46068 MiB\n" for n in range(listed))
    note = f"box: lab-3 ({listed}x L40S)\n\nindex, name, memory.used [MiB], memory.total [MiB]\n{rows}"
    files = {"serve.log": _LOADS.format(billions=110, tp=4), "box.txt": note}
    assert shows(tmp_path, files, "tp-undersharded", "more-devices-than-ranks") is (cause == "tp-undersharded")


def test_an_instance_of_a_node_with_several_sizes(tmp_path: Path) -> None:
    listing = (
        "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1c5a2d11-0000-4c4c-9d9d-00aa11bb22cc)\n"
        "  MIG 4g.40gb     Device  0: (UUID: MIG-2c5a2d11-0000-4c4c-9d9d-00aa11bb22cc)\n"
        "  MIG 1g.10gb     Device  1: (UUID: MIG-3c5a2d11-0000-4c4c-9d9d-00aa11bb22cc)\n"
    )
    log = _LOADS.format(billions=14, tp=1).replace("44.40", "9.75").replace("44.19", "9.55").replace("43.70", "9.31")
    assert first(tmp_path, {"serve.log": log, "devices.txt": listing})[0] == "mig-slice-too-small"


_UP = (
    "INFO 06-02 05:00:01 [api_server.py:1395] vLLM API server version 0.9.2\n"
    "INFO 06-02 05:01:00 [kv_cache_utils.py:716] GPU KV cache size: 300,000 tokens\n"
    "INFO:     Application startup complete.\n"
    "INFO 06-02 05:06:10 [loggers.py:118] Engine 000: Avg prompt throughput: 9000.0 tokens/s, Avg generation throughput: 700.0 tokens/s, Running: 12 reqs, Waiting: 0 reqs, GPU KV cache usage: 14.0%, Prefix cache hit rate: 0.1%\n"
)


def test_rows_of_two_latencies_are_no_two_conditions(tmp_path: Path) -> None:
    table = (
        "                  left     right\n"
        "Mean TTFT (ms)    480.2    491.0\n"
        "P99 TTFT (ms)     1022.9   1050.3\n"
        "Mean ITL (ms)     12.1     12.4\n"
        "Output tok/s      702      695\n"
    )
    assert first(tmp_path, {"server.log": _UP, "compare.txt": table})[0] == "healthy"


def test_one_latency_under_several_conditions_is_compared(tmp_path: Path) -> None:
    table = "TTFT p50, seconds\nMon 09:00 0.21\nMon 15:00 0.24\nTue 09:00 4.90\n"
    assert shows(tmp_path, {"server.log": _UP, "compare.txt": table}, "not-memory", "slow-beside-an-empty-pool")


def _runs(held: list[int]) -> str:
    rows = "".join(
        f"{n},load 4k x 64,{mib},{1800 if n else 0},0\n{n},pause 20 min,{mib},0,0\n" for n, mib in enumerate(held)
    )
    return "run,state,gpu0_mib,ok,failed\n" + rows


@pytest.mark.parametrize("fear", ["担心继续跑下去会 OOM。", "Wir befürchten, dass es nachts mit OOM endet."])
def test_a_rise_that_ends_is_no_leak_whatever_is_feared(tmp_path: Path, fear: str) -> None:
    held = [70110, 70702, 71020, 71098, 71102, 71102, 71102, 71102, 71102]
    told = first(tmp_path, {"server.log": _UP, "runs.csv": _runs(held), "note.txt": fear + "\n"})
    assert told[0] == "healthy"


def test_a_rise_that_goes_on_is_not_healthy(tmp_path: Path) -> None:
    held = [60110 + 1700 * n for n in range(9)]
    assert first(tmp_path, {"server.log": _UP, "runs.csv": _runs(held)})[0] != "healthy"


def _planned(torch_gib: float, asked_mib: int, graphs_gib: float, util: float = 0.75) -> str:
    return (
        "INFO 01-14 03:00:01 llm_engine.py:249] Initializing an LLM engine (v0.6.4) with config: model='/m/Some-14B', dtype=torch.bfloat16, max_seq_len=16384, tensor_parallel_size=2\n"
        f"INFO 01-14 03:00:40 worker.py:241] the current vLLM instance can use total_gpu_memory (31.50GiB) x gpu_memory_utilization ({util}) = {31.5 * util:.2f}GiB\n"
        f"INFO 01-14 03:00:40 worker.py:241] model weights take 13.80GiB; non_torch_memory takes 0.40GiB; PyTorch activation peak memory takes 1.60GiB; the rest of the memory reserved for KV Cache is {31.5 * util - 15.8:.2f}GiB.\n"
        f"INFO 01-14 03:01:30 model_runner.py:1527] Graph capturing finished in 40 secs, took {graphs_gib:.2f} GiB\n"
        "INFO:     Application startup complete.\n"
        "INFO 01-14 03:20:10 metrics.py:467] Avg prompt throughput: 900.0 tokens/s, Avg generation throughput: 33.0 tokens/s, Running: 2 reqs, Swapped: 0 reqs, Pending: 0 reqs, GPU KV cache usage: 9.0%, CPU KV cache usage: 0.0%.\n"
        f"ERROR 01-14 03:20:13 engine.py:135] OutOfMemoryError('CUDA out of memory. Tried to allocate {asked_mib}.00 MiB. GPU 0 has a total capacity of 31.50 GiB of which 120.00 MiB is free. Process 77 has 31.38 GiB memory in use. Of the allocated memory {torch_gib:.2f} GiB is allocated by PyTorch, and 60.00 MiB is reserved by PyTorch but unallocated.')\n"
        '  File "/v/vllm/model_executor/models/llama.py", line 89, in forward\n'
    )


def test_a_step_that_was_planned_for_lacks_what_graphs_took(tmp_path: Path) -> None:
    # 13.8 + 7.82 + 1.6 are planned; 22.6 and 300 MiB are less
    assert first(tmp_path, {"server.log": _planned(22.60, 300, 7.90)})[0] == "cuda-graph-overhead"


def test_a_step_that_was_planned_for_beside_a_share_too_high(tmp_path: Path) -> None:
    assert first(tmp_path, {"server.log": _planned(29.10, 300, 0.80, 0.98)})[0] == "memory-utilization-edge"


def test_a_step_beyond_the_plan_is_the_step(tmp_path: Path) -> None:
    assert first(tmp_path, {"server.log": _planned(29.90, 1200, 0.60)})[0] == "prefill-activation-spike"


_OFF = _UP.replace(
    "INFO 06-02 05:01:00",
    "INFO 06-02 05:00:20 [core.py:58] Initializing a V1 LLM engine (v0.9.2) with config: model='/m/x-8B', max_seq_len=8192, enable_prefix_caching={on}\nINFO 06-02 05:01:00",
)


@pytest.mark.parametrize(("on", "thrash"), [("False", False), ("True", True)])
def test_nothing_is_found_where_nothing_is_kept(tmp_path: Path, on: str, thrash: bool) -> None:
    said = "Every turn brings the same history along, and not a single prefix is found: the hit rate stays at 0 %.\n"
    files = {"server.log": _OFF.format(on=on).replace("hit rate: 0.1%", "hit rate: 0.0%"), "question.txt": said}
    assert shows(tmp_path, files, "prefix-cache-thrash", "hits-lost-by-statement") is thrash


def _gateway(ages: list[float]) -> str:
    return "".join(
        f'10.1.1.{n} - [02/Jun/2026:05:{10 + n}:09 +0000] "POST /v1/chat/completions HTTP/1.1" 504 562 rt={age:.3f} urt={age:.3f} ua="app/1"\n'
        for n, age in enumerate(ages)
    )


@pytest.mark.parametrize(
    ("ages", "told"), [([300.001, 300.002, 300.0, 300.003], True), ([211.4, 287.0, 305.2, 262.8], False)]
)
def test_ages_that_somebody_set(tmp_path: Path, ages: list[float], told: bool) -> None:
    assert (first(tmp_path, {"server.log": _UP, "gateway.log": _gateway(ages)})[0] == "not-memory") is told


def _boxes(neighbour: str) -> str:
    return (
        "Mon Mar 02 06:59:12 2026\n"
        "| GPU  Name                  Bus-Id          |           Memory-Usage | GPU-Util |\n"
        f"|   0  NVIDIA RTX A5000   00000000:21:00.0 |   {7003 if neighbour else 4}MiB /  24564MiB |      0% |\n"
        + (f"|    0   N/A  N/A     4471      C   {neighbour}       6990MiB |\n" if neighbour else "")
    )


@pytest.mark.parametrize(("neighbour", "told"), [("python build_index.py --cuda", True), ("", False)])
def test_a_neighbour_that_decides_the_sum(tmp_path: Path, neighbour: str, told: bool) -> None:
    log = (
        "INFO 03-02 07:00:01 [api_server.py:1043] vLLM API server version 0.8.4\n"
        "INFO 03-02 07:00:02 [api_server.py:1044] args: Namespace(model='/m/Some-7B-Instruct', gpu_memory_utilization=0.9, tensor_parallel_size=1)\n"
        "INFO 03-02 07:00:30 [gpu_model_runner.py:1347] Model loading took 14.2900 GiB and 5.40 seconds\n"
        "ERROR 03-02 07:00:50 [core.py:396] ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"
    )
    assert (first(tmp_path, {"server.log": log, "smi.txt": _boxes(neighbour)})[0] == "gpu-shared") is told


def test_a_device_of_another_host_has_another_size(tmp_path: Path) -> None:
    rows = "".join(
        f"{host},{n},{name},{total},{used}\n"
        for host, n, name, total, used in (
            ("a", 0, "NVIDIA L4", 23034, 19120),
            ("a", 1, "NVIDIA L4", 23034, 19118),
            ("b", 0, "NVIDIA L4", 23034, 19118),
            ("b", 1, "NVIDIA T4", 15360, 15102),
        )
    )
    log = _LOADS.format(billions=34, tp=4).replace("44.40", "14.58").replace("44.19", "14.38").replace("43.70", "14.02")
    listed = "host,gpu,name,memory_total_mib,memory_used_mib\n" + rows
    assert first(tmp_path, {"serve.log": log, "cards.csv": listed})[0] == "rank-imbalance"


def test_a_table_headed_by_loads(tmp_path: Path) -> None:
    table = (
        "| util | 2k/1k x 32 | 16k/1k x 8 |\n|---|---|---|\n| 0.92 | ok | dies after a minute |\n| 0.75 | ok | ok |\n"
    )
    log = (
        _UP
        + "ERROR 06-02 05:08:00 [core.py:396] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 130.00 MiB.\n"
    )
    told = first(tmp_path, {"server.log": log, "runs.md": table})
    assert told[0] == "memory-utilization-edge"


def test_numbers_of_the_model_are_no_memory(tmp_path: Path) -> None:
    said = "From the second prompt on it answers gibberish until the limit of tokens. Is the pool overwritten because the card is full?\n"
    assert first(tmp_path, {"server.log": _UP, "post.txt": said})[0] == "not-memory"


@pytest.mark.parametrize("offered", ["Clients", "Req/s"])
def test_more_load_takes_longer_on_any_server(tmp_path: Path, offered: str) -> None:
    table = f"Stage | {offered} | Out tok/s | TTFT ms mean | Errors\none | 1.0 | 90 | 28.0 | 0\nsome | 60.0 | 4100 | 47.0 | 0\nall | 480.0 | 21000 | 640.0 | 0\n"
    assert first(tmp_path, {"server.log": _UP, "sweep.txt": table})[0] == "healthy"


def test_the_same_load_and_slower_is_no_load(tmp_path: Path) -> None:
    table = "Stage | Clients | Out tok/s | TTFT ms mean | Errors\nold image | 40 | 4100 | 60.0 | 0\nnew image | 40 | 900 | 4100.0 | 0\n"
    assert shows(tmp_path, {"server.log": _UP, "sweep.txt": table}, "healthy", "users-wait")


def _profiled(peak: float, seqs: int, name: str) -> str:
    left = 10.8 - 0.3 - peak
    end = (
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"
        if left < 0
        else "INFO 04-08 10:00:50 executor_base.py:100] Maximum concurrency for 448 tokens per request: 5305.29x\nINFO:     Application startup complete.\n"
    )
    return (
        f"INFO 04-08 10:00:01 llm_engine.py:234] Initializing an LLM engine (v0.6.6) with config: model='/m/{name}', dtype=torch.float16, max_seq_len=448, tensor_parallel_size=1\n"
        "INFO 04-08 10:00:10 model_runner.py:1102] Loading model weights took 0.2500 GB\n"
        "INFO 04-08 10:00:40 worker.py:240] the current vLLM instance can use total_gpu_memory (12.00GiB) x gpu_memory_utilization (0.90) = 10.80GiB\n"
        f"INFO 04-08 10:00:40 worker.py:240] model weights take 0.25GiB; non_torch_memory takes 0.05GiB; PyTorch activation peak memory takes {peak:.2f}GiB; the rest of the memory reserved for KV Cache is {left:.2f}GiB.\n"
        + end
    )


def test_another_peak_is_no_other_neighbour(tmp_path: Path) -> None:
    told = first(
        tmp_path, {"one.log": _profiled(10.7, 512, "audio-small"), "two.log": _profiled(0.4, 16, "audio-small")}
    )
    assert told[0] != "gpu-shared"


def _capture(last: str) -> str:
    return (
        "INFO 05-04 12:00:01 api_server.py:151] vLLM API server version 0.4.2\n"
        "INFO 05-04 12:00:05 llm_engine.py:100] Initializing an LLM engine (v0.4.2) with config: model='/m/Some-70B', dtype=torch.bfloat16, tensor_parallel_size=4, enforce_eager=False\n"
        "INFO 05-04 12:02:00 distributed_gpu_executor.py:45] # GPU blocks: 6000, # CPU blocks: 3000\n"
        "INFO 05-04 12:02:04 model_runner.py:937] Capturing the model for CUDA graphs. This may lead to unexpected consequences if the model is not static.\n"
        "ERROR 05-04 12:02:30 worker_base.py:145] Traceback (most recent call last):\n"
        f'ERROR 05-04 12:02:30 worker_base.py:145]   File "/v/vllm/worker/model_runner.py", line 990, in {last}\n'
        "ERROR 05-04 12:02:30 worker_base.py:145] RuntimeError: NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details)\n"
        "host:88:88 [2] enqueue.cc:1126 NCCL WARN Cuda failure 'out of memory'\n"
    )


def test_who_asks_in_a_capture_is_not_what_fills(tmp_path: Path) -> None:
    assert first(tmp_path, {"server.log": _capture("capture_model")})[0] == "cuda-graph-overhead"


_SPLIT = (
    _UP
    + "ERROR 06-02 05:08:00 [core.py:396] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 400.00 MiB. GPU 0 has a total capacity of 23.60 GiB of which 240.00 MiB is free. Including non-PyTorch memory, this process has 23.36 GiB memory in use. Of the allocated memory 20.90 GiB is allocated by PyTorch, and 1.60 GiB is reserved by PyTorch but unallocated.\n"
)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("run 3  PYTORCH_ALLOC_CONF=expandable_segments:True   finished, twice", True),
        ("With PYTORCH_ALLOC_CONF=expandable_segments:True the same error.", False),
    ],
)
def test_what_expandable_segments_did(tmp_path: Path, said: str, told: bool) -> None:
    found = first(tmp_path, {"server.log": _SPLIT, "runs.txt": said + "\n"})
    assert (found[0] == "allocator-fragmentation" and found[1] >= 0.9) is told


def test_when_it_would_fail_is_no_failure(tmp_path: Path) -> None:
    said = "Capacity review: the card is at 92 % on a normal day. When does this go out of memory, and what do we\nchange before it does?\n"
    assert first(tmp_path, {"server.log": _UP, "ticket.txt": said})[0] == "healthy"
