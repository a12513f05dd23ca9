"""What two starts, the seconds before an end, a table of all sequences and a last reading show by themselves: each beside numbers that decide otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from verdicts import UP, first, likely, minute, shows

SERVES = UP + "".join(minute(at, 4, 0, 9.0 + at % 5) for at in range(2, 40))
REFUSED = "ERROR 03-02 08:04:03 [core.py:700] ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"


def _start(settings: str, loaded: float, left: float, up: bool, model: str = "Qwen/Qwen2.5-7B-Instruct") -> str:
    """A start of a model with these settings, what it loaded and what was left for KV."""
    head = (
        "INFO 03-02 08:00:00 [api_server.py:594] vLLM API server version 0.12.0\n"
        f"INFO 03-02 08:00:01 [utils.py:328] non-default args: {{'model': '{model}', 'gpu_memory_utilization': 0.9, 'max_model_len': 8192, 'tensor_parallel_size': 1{settings}}}\n"
        f"INFO 03-02 08:00:02 [core.py:58] Initializing a V1 LLM engine (v0.12.0) with config: model='{model}', dtype=torch.bfloat16, tensor_parallel_size=1, pipeline_parallel_size=1\n"
        f"INFO 03-02 08:03:40 [gpu_model_runner.py:2392] Model loading took {loaded:.4f} GiB and 20.1 seconds\n"
        f"INFO 03-02 08:04:02 [gpu_worker.py:298] Available KV cache memory: {left:.2f} GiB\n"
    )
    if not up:
        return head + REFUSED
    return head + "INFO 03-02 08:04:05 [kv_cache_utils.py:864] GPU KV cache size: 84,000 tokens\nINFO:     Application startup complete.\n" + "".join(minute(at, 4, 0, 9.0) for at in range(6, 20))  # fmt: skip


def test_one_setting_differs_from_a_start_that_came_up(tmp_path: Path) -> None:
    files = {
        "new.log": _start(", 'max_num_seqs': 1024", 14.27, -0.31, up=False),
        "old.log": _start(", 'max_num_seqs': 64", 14.27, 4.49, up=True),
    }
    assert likely(tmp_path, files) == "max-num-seqs-too-high"


def test_a_start_that_came_up_under_a_queue_is_a_control_as_well(tmp_path: Path) -> None:
    busy = _start(", 'max_num_seqs': 64", 14.27, 4.49, up=True) + "".join(
        minute(at, 64, 30, 97.0) for at in range(20, 45)
    )
    files = {"new.log": _start(", 'max_num_seqs': 1024", 14.27, -0.31, up=False), "old.log": busy}
    assert likely(tmp_path, files) == "max-num-seqs-too-high"


def test_two_settings_that_differ_decide_nothing(tmp_path: Path) -> None:
    old = _start(", 'max_num_seqs': 64, 'max_num_batched_tokens': 2048", 14.27, 4.49, up=True)
    files = {
        "new.log": _start(", 'max_num_seqs': 1024, 'max_num_batched_tokens': 16384", 14.27, -0.31, up=False),
        "old.log": old,
    }
    assert not shows(tmp_path, files, "memory-utilization-too-low", "another-setting-decides")


ADAPTERS = ", 'enable_lora': True, 'max_loras': 4, 'max_lora_rank': 256"


@pytest.mark.parametrize(("plain", "decides"), [(10.78, True), (-0.4, False)])
def test_the_same_model_without_its_adapters_had_the_room(tmp_path: Path, plain: float, decides: bool) -> None:
    new = _start(ADAPTERS, 35.73, -1.4, up=False, model="Qwen/Qwen2.5-14B-Instruct")
    old = _start("", 27.53, plain, up=plain > 0, model="Qwen/Qwen2.5-14B-Instruct")
    assert (
        shows(tmp_path, {"new.log": new, "old.log": old}, "feature-overhead", "another-start-without-it-had-the-room")
        is decides
    )


def _dmon(ends: int, rise: int, at_work: int = 40) -> str:
    """A device by the second: a level, a rise before each end, nothing, and the level again; without a rise at the end it comes in the middle."""
    lines = [
        "#Date       Time        gpu     fb   bar1     sm    mem",
        "#YYYYMMDD   HH:MM:SS    Idx     MB     MB      %      %",
    ]
    level = [42740] * at_work
    moments = []
    for _ in range(ends):
        moments += [*level, *([42740 + rise] * 2), 1900, *([4] * 8)]
    for at, used in enumerate([*moments, *level]):
        lines.append(
            f" 20260302   {9 + at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}      0  {used}      5     40     34"
        )
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(("ends", "rise", "spike"), [(3, 2006, True), (3, 100, False), (1, 2006, False)])
def test_a_device_that_rises_before_each_end_had_no_room_for_what_came(
    tmp_path: Path, ends: int, rise: int, spike: bool
) -> None:
    files = {"vllm.log": SERVES, "dmon.txt": _dmon(ends, rise)}
    assert shows(tmp_path, files, "prefill-activation-spike", "rises-before-each-end") is spike


def test_a_rise_that_is_outlived_says_nothing_of_the_end(tmp_path: Path) -> None:
    text = _dmon(3, 2006).split("\n")
    text[12] = text[12].replace("  42740  ", "  44746  ")
    assert not shows(
        tmp_path, {"vllm.log": SERVES, "dmon.txt": "\n".join(text)}, "prefill-activation-spike", "rises-before-each-end"
    )


def _pools(others: int) -> dict[str, str]:
    """Two replicas of one model, of which one got 192,080 tokens less, and who is on the card beside it."""

    def log(tokens: int, busy: bool) -> str:
        text = _start("", 27.52, 12.0, up=True, model="Qwen/Qwen3-14B").replace("84,000 tokens", f"{tokens:,} tokens")
        return text + ("".join(minute(at, 40, 60, 98.0) for at in range(20, 50)) if busy else "")

    apps = f"gpu_uuid, pid, process_name, used_gpu_memory [MiB]\nGPU-cde1ab1a-d30c-904b-9321-b8c2bd83a1a1, 3110, /usr/bin/python3, 43807 MiB\nGPU-cde1ab1a-d30c-904b-9321-b8c2bd83a1a1, 2877, /opt/conda/bin/python, {others} MiB\nGPU-7de35c2c-f51e-39ad-d7f2-fa2118e82722, 2650, python, 61022 MiB\n"
    return {"assist-0.log": log(266_928, False), "assist-2.log": log(74_848, True), "apps.csv": apps}


@pytest.mark.parametrize(("others", "cause"), [(29_998, "gpu-shared"), (3_000, "kv-demand-exceeds-pool")])
def test_a_pool_lacks_just_what_another_process_holds(tmp_path: Path, others: int, cause: str) -> None:
    assert first(tmp_path, _pools(others))[0] == cause


LADDER = "(EngineCore_0 pid=412) INFO 03-02 08:05:{at:02} [hpu_model_runner.py:4492] [Warmup][Graph/decode][{at}/118] batch_size:1 query_len:1 num_blocks:304 free_mem:{free:.2f} GiB\n"
WARMED = (
    '(EngineCore_0 pid=412) ERROR 03-02 08:06:50 [core.py:935]   File "/opt/vllm/v1/worker/hpu_worker.py", line 352, in compile_or_warm_up_model\n'
    "(EngineCore_0 pid=412) ERROR 03-02 08:06:50 [core.py:935]     self.model_runner.warmup_model()\n"
    "(EngineCore_0 pid=412) ERROR 03-02 08:06:50 [core.py:935] RuntimeError: [Rank:0] FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::402653184 (384)MB\n"
)


@pytest.mark.parametrize(("ladder", "graphs"), [(True, True), (False, False)])
def test_graphs_that_were_counted_last_are_what_the_warm_up_captured(
    tmp_path: Path, ladder: bool, graphs: bool
) -> None:
    log = UP.replace("INFO:     Application startup complete.\n", "") + ("".join(LADDER.format(at=at, free=17 - at / 4) for at in range(1, 60)) if ladder else "") + WARMED  # fmt: skip
    assert (first(tmp_path, {"vllm.log": log})[0] == "cuda-graph-overhead") is graphs


def _prom(idle_s: float, gap_s: float) -> str:
    return (
        "vllm:prefix_cache_queries_total 2.0e+06\nvllm:prefix_cache_hits_total 9.6e+05\n"
        f"vllm:kv_block_idle_before_evict_seconds_count 5600\nvllm:kv_block_idle_before_evict_seconds_sum {5600 * idle_s}\n"
        f"vllm:kv_block_reuse_gap_seconds_count 5300\nvllm:kv_block_reuse_gap_seconds_sum {5300 * gap_s}\n"
    )


@pytest.mark.parametrize(("idle_s", "late"), [(20.0, True), (400.0, False)])
def test_blocks_that_are_evicted_about_when_they_would_be_used_again(tmp_path: Path, idle_s: float, late: bool) -> None:
    files = {"vllm.log": SERVES, "metrics.prom": _prom(idle_s, 14.0)}
    assert shows(tmp_path, files, "prefix-cache-thrash", "evicted-when-it-would-be-used") is late


def _top(ready: float) -> str:
    return (
        "top - 08:27:31 up  2:11,  2 users,  load average: 61.20, 44.87, 21.03\nTasks: 171 total,   9 running, 162 sleeping,   0 stopped,   0 zombie\n"
        "%Cpu(s):  2.1 us, 96.3 sy,  0.0 ni,  0.2 id,  1.2 wa,  0.1 hi,  0.1 si,  0.0 st\n"
        f"MiB Mem :   7629.3 total,     88.4 free,   {7500 - ready:.1f} used,    129.3 buff/cache\nMiB Swap:      0.0 total,      0.0 free,      0.0 used.   {ready} avail Mem\n\n"
        "    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND\n     57 root      20   0       0      0      0 R  99.7   0.0   6:02.11 kswapd0\n"
        "  20117 root      20   0   41.2g   5.3g   6012 R  98.2  71.4   5:44.90 python3\n"
    )


@pytest.mark.parametrize(("ready", "cause"), [(21.7, "host-memory-exhausted"), (900.0, "healthy")])
def test_a_host_with_nothing_left_is_exhausted_whoever_is_ended(tmp_path: Path, ready: float, cause: str) -> None:
    assert likely(tmp_path, {"vllm.log": SERVES, "top.txt": _top(ready)}) == cause


def _stopped(found: str) -> dict[str, str]:
    cut = SERVES.rstrip("\n")[:-40]
    pods = f'{{"items": [{{"metadata": {{"namespace": "llm", "name": "q72-0"}}, "status": {{"containerStatuses": [{{"name": "vllm", "restartCount": 1, "lastState": {{"terminated": {{"exitCode": 255, "reason": "Unknown", "startedAt": "2000-02-28T03:41:17Z", "finishedAt": "{found}"}}}}, "state": {{"running": {{"startedAt": "2000-03-02T09:49:07Z"}}}}}}]}}}}]}}'
    return {"q72-0.log": cut, "pods.json": pods}


@pytest.mark.parametrize(("found", "down"), [("2000-03-02T08:48:09Z", True), ("2000-03-02T12:48:09Z", False)])
def test_a_log_that_breaks_off_with_its_machine(tmp_path: Path, found: str, down: bool) -> None:
    assert shows(tmp_path, _stopped(found), "not-memory", "went-down-with-its-machine") is down


@pytest.mark.parametrize(("running", "cap", "holds"), [(16, 16, True), (11, 16, False)])
def test_as_many_run_as_may_and_the_pool_is_empty(tmp_path: Path, running: int, cap: int, holds: bool) -> None:
    log = _start(f", 'max_num_seqs': {cap}", 14.27, 4.49, up=True) + "".join(
        minute(at, running, 8 + at % 30, 22.0) for at in range(20, 59)
    )
    assert shows(tmp_path, {"vllm.log": log}, "not-memory", "as-many-run-as-may") is holds


def test_a_scaler_makes_the_same_queue_its_own(tmp_path: Path) -> None:
    log = _start(", 'max_num_seqs': 16", 14.27, 4.49, up=True) + "".join(
        minute(at, 16, 8 + at % 30, 22.0) for at in range(20, 59)
    )
    hpa = "NAME   REFERENCE         TARGETS   MINPODS   MAXPODS   REPLICAS   AGE\nvllm   Deployment/vllm   12%/60%   1         5         1          22m\n"
    assert not shows(tmp_path, {"vllm.log": log, "hpa.txt": hpa}, "not-memory", "as-many-run-as-may")


@pytest.mark.parametrize(
    ("told", "edge"),
    [('Task Manager shows 5.4 GB "shared GPU memory"', True), ('Task Manager shows 0.3 GB "shared GPU memory"', False)],
)
def test_memory_that_the_driver_moved_to_the_host_was_more_than_the_card_has(
    tmp_path: Path, told: str, edge: bool
) -> None:
    note = f"vLLM in WSL2 on one card, one user. Within twenty requests {told}, and 85 tok/s become 8. Nothing fails.\n"
    assert (likely(tmp_path, {"vllm.log": SERVES, "post.md": note}) == "memory-utilization-edge") is edge


NCCL = (
    "box:321:933 [3] include/alloc.h:231 NCCL WARN Cuda failure 2 'out of memory'\n"
    '(EngineCore_0 pid=321) ERROR 03-02 08:41:02 [core.py:867]   File "/opt/vllm/v1/worker/gpu_model_runner.py", line 2210, in execute_model\n'
    "(EngineCore_0 pid=321) ERROR 03-02 08:41:02 [core.py:867] RuntimeError: NCCL error: unhandled cuda error\n"
)


def test_buffers_between_ranks_are_no_activations(tmp_path: Path) -> None:
    assert first(tmp_path, {"vllm.log": SERVES + NCCL})[0] == "memory-utilization-edge"


@pytest.mark.parametrize(
    ("line", "device"),
    [
        ("[Mon Mar  2 08:20:11 2026] NVRM: GPU 0000:61:00.0: nvAssertOkFailedNoLog: Assertion failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051) returned from memdescAlloc @ mem_desc.c:1359", False),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.40 GiB. GPU 0 has a total capacity of 79.15 GiB of which 310.00 MiB is free.", True),
    ],
)  # fmt: skip
def test_an_assertion_of_the_kernels_driver_is_no_allocators_message(tmp_path: Path, line: str, device: bool) -> None:
    from oomdoc.ingest.torch_oom import read_oom

    assert (read_oom(line) is not None) is device


def _oom(requested: str, free: str, unallocated: str) -> str:
    return (
        SERVES
        + f"ERROR 03-02 08:41:00 [core.py:700] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {requested}. GPU 0 has a total capacity of 79.15 GiB of which {free} is free. Process 41 has 77.90 GiB memory in use. Of the allocated memory 70.20 GiB is allocated by PyTorch, and {unallocated} is reserved by PyTorch but unallocated.\n"
    )


@pytest.mark.parametrize(
    ("requested", "free", "unallocated", "sign"),
    [
        ("1.90 GiB", "1.10 GiB", "4.60 GiB", "substantial-reserve"),
        ("2.40 GiB", "1.10 GiB", "1.90 GiB", "room-in-two-parts"),
        ("380.00 MiB", "200.00 MiB", "900.00 MiB", None),
    ],
)
def test_a_reserve_counts_where_it_would_have_held_the_request_and_is_no_usual_one(
    tmp_path: Path, requested: str, free: str, unallocated: str, sign: str | None
) -> None:
    files = {"vllm.log": _oom(requested, free, unallocated)}
    for number, each in enumerate(("substantial-reserve", "room-in-two-parts")):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert shows(folder, files, "allocator-fragmentation", each) is (each == sign)


def _stage(requested: str) -> str:
    return (
        "INFO 03-02 08:00:01 [utils.py:328] non-default args: {'model': 'deepseek-ai/DeepSeek-R1', 'tensor_parallel_size': 8, 'pipeline_parallel_size': 4, 'max_num_seqs': 4096}\n"
        "INFO 03-02 08:00:02 [core.py:58] Initializing a V1 LLM engine (v0.12.0) with config: model='deepseek-ai/DeepSeek-R1', dtype=torch.bfloat16, tensor_parallel_size=8, pipeline_parallel_size=4\n"
        "(Worker_PP3 pid=412) INFO 03-02 08:03:40 [gpu_model_runner.py:2392] Model loading took 20.6417 GiB and 90.1 seconds\n"
        '(Worker_PP3 pid=412) ERROR 03-02 08:05:02 [core.py:867]   File "/opt/vllm/v1/worker/gpu_model_runner.py", line 2210, in profile_run\n'
        '(Worker_PP3 pid=412) ERROR 03-02 08:05:02 [core.py:867]   File "/opt/vllm/v1/worker/gpu_model_runner.py", line 2310, in _dummy_sampler_run\n'
        f"(Worker_PP3 pid=412) ERROR 03-02 08:05:02 [core.py:867] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {requested}. GPU 0 has a total capacity of 44.53 GiB of which 3.27 GiB is free. Process 412 has 41.25 GiB memory in use. Of the allocated memory 39.87 GiB is allocated by PyTorch, and 120.00 MiB is reserved by PyTorch but unallocated.\n"
    )


@pytest.mark.parametrize(("requested", "imbalance"), [("3.95 GiB", False), ("3.40 GiB", True)])
def test_a_row_of_the_vocabulary_for_each_sequence_is_no_fault_of_the_last_stage(
    tmp_path: Path, requested: str, imbalance: bool
) -> None:
    assert shows(tmp_path, {"vllm.log": _stage(requested)}, "rank-imbalance", "last-stage-fails") is imbalance
