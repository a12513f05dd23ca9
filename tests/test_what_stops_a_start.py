"""What stops a start, and what wakes too late: threads that nobody may make, a mount that is nearly full, a neighbour where the
release has no check for one, weights that fit elsewhere, pieces that would not have done, a sleeper whose place is taken. From
text to verdict, with a rival each."""

from __future__ import annotations

from pathlib import Path

import pytest

from verdicts import UP, likely

LOADING = (
    "INFO 03-02 09:00:01 [api_server.py:1896] vLLM API server version {version}\n"
    "INFO 03-02 09:00:09 [core.py:77] Initializing a V1 LLM engine (v{version}) with config: model='org/chat-14B', dtype=torch.bfloat16\n"
    "INFO 03-02 09:00:14 [gpu_model_runner.py:1329] Starting to load model org/chat-14B...\n"
)
REFUSED = "E0302 09:00:15.118204 4471 thd.cc:157]                           pthread_create failed: Resource temporarily unavailable\n"
EMPTY_HOST = (
    "Traceback (most recent call last):\n"
    '  File "/opt/serve/start.py", line 12, in <module>\n'
    "    pool = pinned(16 << 30)\n"
    "OSError: [Errno 12] Cannot allocate memory\n"
)


@pytest.mark.parametrize(
    ("more", "cause"),
    [
        pytest.param("", "not-memory", id="a limit of the user"),
        pytest.param(EMPTY_HOST, "host-memory-exhausted", id="the host has nothing left for a stack either"),
    ],
)
def test_a_thread_that_cannot_be_made(more: str, cause: str, tmp_path: Path) -> None:
    assert likely(tmp_path, server__log=LOADING.format(version="0.11.0") + REFUSED + more) == cause


def dead(share: int) -> str:
    used = 128 * share // 100
    return (
        "$ docker exec chat df -h /dev/shm\n"
        "Filesystem      Size  Used Avail Use% Mounted on\n"
        f"shm             128M  {used}M  {128 - used}M  {share}% /dev/shm\n"
    )


GONE = "(APIServer pid=7) ERROR 03-02 09:20:00 [utils.py:355] RuntimeError: Process EngineCore_DP2 (PID: 31) died with exit code None\n"


@pytest.mark.parametrize(
    ("share", "full"), [pytest.param(99, True, id="nearly full"), pytest.param(61, False, id="a third of it is left")]
)
def test_a_mount_that_is_nearly_full_beside_a_silent_death(share: int, full: bool, tmp_path: Path) -> None:
    assert (likely(tmp_path, server__log=UP + GONE, inside__txt=dead(share)) == "shm-exhausted") is full


POOL = (
    "INFO 03-01 09:00:24 [gpu_model_runner.py:1347] Model loading took 27.5916 GiB and 9.4 seconds\n"
    "INFO 03-01 09:00:44 [kv_cache_utils.py:634] GPU KV cache size: 61,920 tokens\n"
    "INFO:     Application startup complete.\n"
)
NO_BLOCKS = (
    "INFO 03-02 09:00:24 [gpu_model_runner.py:1347] Model loading took 27.5916 GiB and 9.4 seconds\n"
    "ERROR 03-02 09:00:44 [core.py:396] ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"
)
SEEN = (
    "$ nvidia-smi -L\n"
    "GPU 0: NVIDIA L40S (UUID: GPU-1b7e5c02-9a4d-5f10-8e33-c27d0a46f9b1)\n"
    "$ nvidia-smi pmon -s um -c 2\n"
    "# gpu         pid   type     sm    mem    enc    dec    jpg    ofa     fb   ccpm    command\n"
    "# Idx           #    C/G      %      %      %      %      %      %     MB     MB    name\n"
    "    0       {pid}     C       3      1      -      -      -      -  14541      0    {name}\n"
    "    0       {pid}     C       0      0      -      -      -      -  14541      0    {name}\n"
)


@pytest.mark.parametrize(
    ("seen", "shared"),
    [
        pytest.param(SEEN, True, id="a speech server holds a third of the card"),
        pytest.param("", False, id="nobody else is seen, and no other start got more"),
    ],
)
def test_a_neighbour_where_the_release_has_no_check(seen: str, shared: bool, tmp_path: Path) -> None:
    """A release that takes what others hold off its budget refuses for want of blocks."""
    files = {"today.log": LOADING.format(version="0.8.5") + NO_BLOCKS}
    if seen:
        files["yesterday.log"] = LOADING.format(version="0.8.5").replace("03-02", "03-01") + POOL
        files["host.txt"] = seen.format(pid=918204, name="speech_server")
    assert (likely(tmp_path, files) == "gpu-shared") is shared


def slept(last: str) -> str:
    return UP + (
        "(EngineCore pid=31) INFO 03-02 09:30:00 [gpu_worker.py:196] Sleep mode freed 64.72 GiB memory, 1.33 GiB memory is still in use.\n"
        f"{last}"
        "(EngineCore pid=31) CUDA Error: out of memory at /build/csrc/cumem_allocator.cpp:139\n"
    )


WORK = "(APIServer pid=7) INFO 03-02 09:31:00 [loggers.py:236] Engine 000: Avg prompt throughput: 911.2 tokens/s, Avg generation throughput: 288.1 tokens/s, Running: 8 reqs, Waiting: 0 reqs, GPU KV cache usage: 21.4%, Prefix cache hit rate: 3.1%\n"


@pytest.mark.parametrize(
    ("between", "shared"),
    [pytest.param("", True, id="it was still asleep"), pytest.param(WORK, False, id="it worked again in between")],
)
def test_who_sleeps_and_finds_its_place_taken(between: str, shared: bool, tmp_path: Path) -> None:
    assert (likely(tmp_path, server__log=slept(between)) == "gpu-shared") is shared


def load_failed() -> str:
    return LOADING.format(version="0.8.5").replace("chat-14B", "chat-30B-A3B-GPTQ") + (
        '  File "/opt/vllm/model_executor/model_loader/loader.py", line 131, in load_model\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 31.36 GiB of which 43.75 MiB is free. "
        "Including non-PyTorch memory, this process has 31.31 GiB memory in use. Of the allocated memory 27.45 GiB is allocated by PyTorch, "
        "and 2.93 GiB is reserved by PyTorch but unallocated.\n"
    )


def test_pieces_that_would_not_have_done(tmp_path: Path) -> None:
    """A format of 4 bits is 16 GiB; with 27 in and more to come the three that lie idle are no reason."""
    assert likely(tmp_path, {"server.log": load_failed()}) == "weights-exceed-gpu"


HEADS = (
    "2026-03-02 09:20:00,118 - serving.engine - ERROR - {}",
    "ERROR:root:{}",
    "[1,3]<stderr>:{}",
    'time=2026-03-02T09:20:00Z level=error msg="{}"',
    "2026-03-02T09:20:00.118Z ERROR gateway::pool: worker 3 failed: {}",
    "(Worker_TP1 pid=44) [rank1]:[E302 09:20:00.1 ProcessGroupNCCL.cpp:2093] [PG ID 2 Rank 1] Process group watchdog thread terminated with exception: {}",
    "    {}",
)


@pytest.mark.parametrize("head", HEADS)
def test_a_fault_is_known_whoever_hands_it_on(head: str, tmp_path: Path) -> None:
    fault = "CUDA error: an illegal memory access was encountered"
    said = head.format(fault if "watchdog" in head else f"RuntimeError: {fault}")
    assert likely(tmp_path, server__log=UP + said + "\n" + GONE) == "not-memory"


def first_step(tokens: int, live: float, asked: str, function: str) -> str:
    """A start of a model of experts whose first step fails: 27 GiB of weights, `live` GiB in all."""
    core = "(EngineCore_DP0 pid=88) "
    frames = (
        ('  File "/opt/vllm/v1/worker/gpu_model_runner.py", line 4120, in profile_run'),
        ('  File "/opt/vllm/model_executor/layers/fused_moe/layer.py", line 1701, in forward_impl'),
        (f'  File "/opt/house/experts.py", line 210, in {function}'),
    )
    return (
        f"(APIServer pid=7) INFO 03-02 09:00:01 [api_server.py:1896] vLLM API server version 0.14.0\n(APIServer pid=7) INFO 03-02 09:00:02 [utils.py:233] non-default args: {{'model': 'mistralai/Mixtral-8x7B-Instruct-v0.1', 'max_model_len': 8192, 'max_num_batched_tokens': {tokens}, 'quantization': 'awq_marlin'}}\n"
        + core
        + "INFO 03-02 09:00:09 [core.py:77] Initializing a V1 LLM engine (v0.14.0) with config: model='mistralai/Mixtral-8x7B-Instruct-v0.1', dtype=torch.float16, quantization=awq_marlin, tensor_parallel_size=1\n"
        + core
        + "INFO 03-02 09:00:40 [gpu_model_runner.py:3210] Model loading took 22.79 GiB memory and 24.1 seconds\n"
        + core
        + "ERROR 03-02 09:00:58 [core.py:843] Traceback (most recent call last):\n"
        + "".join(f"{core}ERROR 03-02 09:00:58 [core.py:843] {frame}\n" for frame in frames)
        + core
        + f"ERROR 03-02 09:00:58 [core.py:843] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. GPU 0 has a total capacity of 39.49 GiB of which 93.00 MiB is free. Including non-PyTorch memory, this process has 39.39 GiB memory in use. Of the allocated memory {live} GiB is allocated by PyTorch, and 81.50 MiB is reserved by PyTorch but unallocated.\n"
    )


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        pytest.param(
            first_step(1024, 38.6, "448.00 MiB", "second_layout"), "weights-exceed-gpu", id="a thousand tokens"
        ),
        pytest.param(
            first_step(131_072, 38.6, "7.00 GiB", "apply"), "prefill-activation-spike", id="a hundred thousand"
        ),
    ],
)
def test_what_a_first_step_cannot_hold_are_weights_again(log: str, cause: str, tmp_path: Path) -> None:
    assert likely(tmp_path, server__log=log) == cause
