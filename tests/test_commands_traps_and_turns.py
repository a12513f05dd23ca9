"""From text to verdict: commands that a launcher logs or that set their own environment, faults that are no page faults, rows of
runs set with blanks, stacks of another engine, and turns whose cost their time tells; each with a rival."""

from __future__ import annotations

from pathlib import Path

import pytest

from verdicts import first, shows

_REFUSED = (
    "2026-04-02 11:00:01,204 - runner - INFO - cmd: vllm serve /m/Some-VL-8B --port 31000{share}\n"
    "INFO 04-02 11:00:14 [core.py:77] Initializing a V1 LLM engine (v0.10.1) with config: model='/m/Some-VL-8B', dtype=torch.bfloat16, max_seq_len=24576, tensor_parallel_size=1\n"
    "INFO 04-02 11:00:31 [gpu_model_runner.py:1932] Model loading took 15.7204 GiB and 11.203 seconds\n"
    "ERROR 04-02 11:00:52 [core.py:700] ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"
)
_CAME_UP = (
    "INFO 04-02 12:10:14 [core.py:77] Initializing a V1 LLM engine (v0.10.1) with config: model='/m/Some-VL-8B', dtype=torch.bfloat16, max_seq_len=24576, tensor_parallel_size=1\n"
    "INFO 04-02 12:10:30 [gpu_model_runner.py:1932] Model loading took 15.7204 GiB and 10.870 seconds\n"
    "INFO 04-02 12:10:51 [kv_cache_utils.py:829] GPU KV cache size: 58,016 tokens\n"
    "INFO:     Application startup complete.\n"
)
_ALONE = "name, memory.used [MiB], memory.total [MiB]\nNVIDIA GeForce RTX 3090, 3 MiB, 24576 MiB\n"


def test_a_share_that_one_start_tells_makes_no_pair(tmp_path: Path) -> None:
    # nobody knows with which share the second start came up: no neighbour follows from the two
    bundle = {
        "first.log": _REFUSED.format(share=" --gpu-memory-utilization 0.76"),
        "second.log": _CAME_UP,
        "smi.csv": _ALONE,
    }
    assert first(tmp_path, bundle)[0] == "memory-utilization-too-low"


def test_the_same_share_of_both_makes_a_pair(tmp_path: Path) -> None:
    command = _REFUSED.split("\n")[0].format(share=" --gpu-memory-utilization 0.90") + "\n"
    bundle = {
        "first.log": _REFUSED.format(share=" --gpu-memory-utilization 0.90"),
        "second.log": command.replace("11:00:01", "12:10:01") + _CAME_UP,
    }
    assert shows(tmp_path, bundle, "gpu-shared", "alike-start-got-a-pool")


_SMALL = (
    "INFO 07-19 08:00:02 [api_server.py:1043] vLLM API server version 0.8.4\n"
    "INFO 07-19 08:00:13 [core.py:58] Initializing a V1 LLM engine (v0.8.4) with config: model='/m/Some-7B', dtype=torch.bfloat16, max_seq_len=8192, tensor_parallel_size=1\n"
    "INFO 07-19 08:00:25 [gpu_model_runner.py:1347] Model loading took 14.2103 GiB and 6.310 seconds\n"
    "ERROR 07-19 08:00:49 [core.py:396] ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"
)


@pytest.mark.parametrize(("device", "told"), [(1, True), (2, False)])
def test_on_which_device_a_command_puts_the_server(tmp_path: Path, device: int, told: bool) -> None:
    listed = (
        "Sat Jul 19 07:58:11 2025\n"
        "| GPU  Name                  Bus-Id          |           Memory-Usage | GPU-Util  Compute M. |\n"
        "|   0  NVIDIA GeForce RTX 3090   00000000:01:00.0 |      1MiB /  24576MiB |      0%      Default |\n"
        "|   1  NVIDIA GeForce RTX 3090   00000000:24:00.0 |   6930MiB /  24576MiB |      0%      Default |\n"
        "|   2  NVIDIA GeForce RTX 3090   00000000:41:00.0 |      1MiB /  24576MiB |      0%      Default |\n"
        "| Processes:                                                                              |\n"
        "|    1   N/A  N/A      9120      C   python embed.py                             6920MiB |\n"
    )
    note = (
        f"# start.sh\nCUDA_VISIBLE_DEVICES={device} vllm serve /m/Some-7B --port 8000 --max-model-len 8192 --gpu-memory-utilization 0.9\n"
        "yesterday it was\nINFO 07-18 08:00:52 [kv_cache_utils.py:634] GPU KV cache size: 91,504 tokens\n"
    )
    assert (first(tmp_path, {"serve.log": _SMALL, "smi.txt": listed, "start.txt": note})[0] == "gpu-shared") is told


_VANISHED = (
    "INFO 10-08 15:00:40 api_server.py:528] vLLM API server version 0.6.4\n"
    "INFO 10-08 15:01:02 model_runner.py:1072] Loading model weights took 15.1201 GB\n"
    "INFO 10-08 15:01:06 gpu_executor.py:122] # GPU blocks: 21011, # CPU blocks: 2048\n"
    "INFO:     Uvicorn running on http://0.0.0.0:18200 (Press CTRL+C to quit)\n"
    "ERROR 10-08 15:20:11 client.py:250] RuntimeError('Engine process (pid 91) died.')\n"
)


@pytest.mark.parametrize("fault", ["trap divide error", "trap invalid opcode", "general protection fault"])
def test_a_fault_of_the_processor_is_no_memory(tmp_path: Path, fault: str) -> None:
    kernel = f"[Wed Oct  8 15:20:08 2025] traps: python3[40221] {fault} ip:7f10aa sp:7ffd01 error:0 in libfast.so.2[7f1000+99]\n"
    assert first(tmp_path, {"serve.log": _VANISHED, "dmesg.txt": kernel})[0] == "not-memory"


def test_a_worker_that_vanished_without_a_word_of_the_kernel_is_undecided(tmp_path: Path) -> None:
    kernel = "[Wed Oct  8 15:20:08 2025] docker0: port 2(veth1) entered disabled state\n"
    assert first(tmp_path, {"serve.log": _VANISHED, "dmesg.txt": kernel})[1] < 0.5


def _adapters(call: str, table: str = "") -> dict[str, str]:
    log = (
        "[TensorRT-LLM] TensorRT LLM version: 1.2.0\n"
        "[06/11/2026-09:30:17] [TRT-LLM] [I] Using LLM with PyTorch backend\n"
        "rank 0 [06/11/2026-09:31:40] [TRT-LLM] [RANK 0] [I] Use 61.12 GB for model weights.\n"
        "rank 0 [06/11/2026-09:32:22] [TRT-LLM] [RANK 0] [E] Failed to initialize executor on rank 0: [TensorRT-LLM][ERROR] CUDA runtime error in ::cudaMallocAsync(ptr, n, pool, stream): out of memory\n"
        "1       0x7f0a5c1e tensorrt_llm::common::throwRuntimeError(char const*, int) + 77\n"
        f"2       0x7f0a5e1c {call}(tensorrt_llm::runtime::BufferManager const&) + 434\n"
    )
    return {"serve.log": log, **({"runs.md": table} if table else {})}


def test_a_stack_that_makes_room_for_adapters(tmp_path: Path) -> None:
    assert (
        first(tmp_path, _adapters("tensorrt_llm::runtime::LoraCache::LoraCachePageManager::initialize"))[0]
        == "feature-overhead"
    )


def test_a_stack_that_makes_something_else(tmp_path: Path) -> None:
    assert first(tmp_path, _adapters("tensorrt_llm::runtime::DecodingState::setup"))[0] != "feature-overhead"


def test_runs_set_with_blanks_show_what_decides(tmp_path: Path) -> None:
    runs = "run                                 result\n-------------------------------     -----------------\n+ tuned, max_loras 6, rank 32       dies while it starts\n+ tuned, max_loras 1, rank 32       up\n"
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    alone = first(tmp_path / "a", _adapters("tensorrt_llm::runtime::LoraCache::LoraCachePageManager::initialize"))
    told = first(tmp_path / "b", _adapters("tensorrt_llm::runtime::LoraCache::LoraCachePageManager::initialize", runs))
    assert told[0] == "feature-overhead" and told[1] > alone[1]


def _turns(late_s: float, gap_s: int = 90) -> str:
    """One person's turns alone, then among four others: a first prompt takes 12 ms a token."""
    rows, at = ["t_s,user,turn,prompt_tokens,ttft_s"], 0

    def add(user: str, turn: int, tokens: int, ttft_s: float) -> None:
        nonlocal at
        rows.append(f"{at},{user},{turn},{tokens},{ttft_s:.1f}")
        at += gap_s

    add("kim", 1, 2500, 30.0)
    for turn in range(2, 5):
        add("kim", turn, 2400 + 150 * turn, 2.2)
    for turn in range(1, 5):
        for number, user in enumerate(("lou", "mo", "nat", "ola")):
            tokens = 2100 + 130 * number + 150 * turn
            add(user, turn, tokens, tokens * 0.012 if turn == 1 else late_s or 2.2)
        add("kim", 4 + turn, 3000 + 150 * turn, late_s or 2.2)
    return "\n".join(rows) + "\n"


_ROOM = (
    "INFO 12-03 08:00:19 api_server.py:585] vLLM API server version 0.6.4.post1\n"
    "INFO 12-03 08:02:58 model_runner.py:1077] Loading model weights took 40.0210 GB\n"
    "INFO 12-03 08:03:41 gpu_executor.py:113] # GPU blocks: 470, # CPU blocks: 819\n"
    "INFO 12-03 08:03:41 gpu_executor.py:117] Maximum concurrency for 4096 tokens per request: 1.84x\n"
    "INFO:     Application startup complete.\n"
)


def test_turns_as_dear_as_first_prompts_were_evicted(tmp_path: Path) -> None:
    assert first(tmp_path, {"turns.csv": _turns(late_s=38.0), "vllm.log": _ROOM})[0] == "prefix-cache-thrash"


def test_turns_that_stay_cheap_are_found(tmp_path: Path) -> None:
    assert first(tmp_path, {"turns.csv": _turns(late_s=0.0), "vllm.log": _ROOM})[0] != "prefix-cache-thrash"


def test_turns_side_by_side_wait_for_each_other(tmp_path: Path) -> None:
    assert first(tmp_path, {"turns.csv": _turns(late_s=38.0, gap_s=20), "vllm.log": _ROOM})[0] != "prefix-cache-thrash"
