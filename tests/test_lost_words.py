"""Failures whose words are lost, and words that are somebody else's: from text to verdict, each beside what decides otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from test_whose_event import bonds
from verdicts import UP, likely, minute

_ARGS = "INFO 04-07 10:{m:02}:02 api_server.py:335] vLLM API server version 0.7.3\nINFO 04-07 10:{m:02}:10 llm_engine.py:234] Initializing a V0 LLM engine (v0.7.3) with config: model='/srv/mistral-12b', dtype=torch.{dtype}, max_seq_len=8192\nINFO 04-07 10:{m:02}:13 model_runner.py:189] Starting to load model /srv/mistral-12b...\n"  # fmt: skip
_CALLS = 'Process SpawnProcess-1:\nTraceback (most recent call last):\n  File "/opt/v/multiprocessing/process.py", line 314, in _bootstrap\n    self.run()\n  File "/opt/v/vllm/engine/multiprocessing/engine.py", line 400, in run_mp_engine\n    raise e\n'
_CARD = "Tue Apr  7 09:59:58 2026\nGPU 0: NVIDIA A40\n|   0  NVIDIA A40                     On  | 00000000:3B:00.0 Off |                    0 |\n|  0%   51C    P0             112W / 300W |      4MiB / 46068MiB |      0%      Default |\n"


@pytest.mark.parametrize(("dtype", "cause"), [("float32", "weights-exceed-gpu"), ("bfloat16", None)])
def test_calls_of_a_traceback_without_its_error_end_a_start(tmp_path: Path, dtype: str, cause: str | None) -> None:
    """What it failed of is computed: twelve billion parameters of four bytes each are more than the card has; of two they are not."""
    log = _ARGS.format(m=1, dtype=dtype) + _CALLS + "[... 40 lines dropped ...]\n" + _ARGS.format(m=2, dtype=dtype)
    assert likely(tmp_path, unit__journal=log, smi__txt=_CARD) == cause


_NOTEBOOK = (
    "INFO 06-30 10:22:04 llm_engine.py:70] Initializing an LLM engine with config: model='org/m-7b', dtype=torch.float16, max_seq_len=4096\n"
    "INFO 06-30 10:23:31 llm_engine.py:275] # GPU blocks: 200, # CPU blocks: 512\n---------------------------------------------------------------------------\n"
    "ValueError                                Traceback (most recent call last)\n"
    '    281         if num_gpu_blocks <= 0:\n    282             raise ValueError("No available memory for the cache blocks. "\n--> 292             raise ValueError(\n\n{said}\n'
)


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("ValueError: The model's max seq len (4096) is larger than the maximum number of tokens that can be stored in KV cache (3200). Try", "kv-pool-below-max-model-len"),
        ("ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`", "memory-utilization-too-low"),
    ],
)  # fmt: skip
def test_code_that_is_shown_around_an_error_says_nothing(tmp_path: Path, said: str, cause: str) -> None:
    assert likely(tmp_path, cell__txt=_NOTEBOOK.format(said=said)) == cause


def _offline(prompts: int) -> str:
    return (
        UP.replace("INFO:     Application startup complete.\n", "")
        + "Processed prompts:   0%|          | 0/9 [00:00<?, ?it/s]\nWARNING 03-02 08:05:37 scheduler.py:1481] Sequence group 182 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space. total_num_cumulative_preemption=1\n"
        f"Processed prompts: 100%|██████████| {prompts}/{prompts} [20:54<00:00,  9.59it/s, est. speed input: 15218.54 toks/s, output: 2338.43 toks/s]\n"
    )


@pytest.mark.parametrize(("prompts", "cause"), [(9000, "healthy"), (240, "kv-demand-exceeds-pool")])
def test_one_preemption_of_thousands_is_no_shortage(tmp_path: Path, prompts: int, cause: str) -> None:
    """A first warning may stand for fifty: of 9,000 prompts they are a rarity, of 240 a fifth."""
    assert likely(tmp_path, eval__log=_offline(prompts)) == cause


def _usage(length: int) -> str:
    pool = UP.replace("model='Qwen/Qwen3-8B'", f"model='Qwen/Qwen3-8B', max_seq_len={length}")
    pool += f"INFO 03-02 08:01:03 [kv_cache_utils.py:868] Maximum concurrency for {length:,} tokens per request: {390000 / length:.2f}x\n"
    return (
        pool
        + "".join(minute(2 + k, 2, 0, 20.0 + 8 * k) for k in range(9))
        + "".join(minute(12 + k, 6, 9, 99.0) for k in range(6))
    )


@pytest.mark.parametrize(("length", "cause"), [(20000, "memory-leak"), (390000, "kv-demand-exceeds-pool")])
def test_blocks_beyond_what_those_under_way_can_hold(tmp_path: Path, length: int, cause: str) -> None:
    """Two requests of 20,000 tokens cannot hold four fifths of a pool of 390,000; two of any length can."""
    assert likely(tmp_path, vllm__log=_usage(length)) == cause


_SHOWN = "Id={unit}.service\nExecMainCode={code}\nExecMainStatus={status}\nMemoryMax=103079215104\nExecStart={{ path=/opt/run.sh ; argv[]=/opt/run.sh {arguments} }}\n"
_SWAP = "INFO 06-26 09:20:00 api_server.py:1225] args: Namespace(host=None, model='/srv/yi-34b', tensor_parallel_size=2, swap_space={gib})\nINFO 06-26 09:20:05 llm_engine.py:98] Initializing an LLM engine (v0.5.1) with config: model='/srv/yi-34b', tensor_parallel_size=2\nINFO 06-26 09:21:24 distributed_gpu_executor.py:980] # GPU blocks: 19494, # CPU blocks: 34952\n"  # fmt: skip


@pytest.mark.parametrize(
    ("gib", "code", "status", "arguments", "cause"),
    [
        (64, 2, 9, "--tensor-parallel-size 2", "host-memory-exhausted"),
        (4, 2, 9, "--tensor-parallel-size 2", "not-memory"),
        (64, 2, 9, "--serial /dev/ttyS0", None),
    ],
)
def test_settings_times_ranks_against_a_units_limit(tmp_path: Path, gib: int, code: int, status: int, arguments: str, cause: str | None) -> None:  # fmt: skip
    shown = _SHOWN.format(unit="yi", code=code, status=status, arguments=arguments)
    kernel = "".join(
        f"[{5200623 + 60 * k}.444326] mlx5_core 0000:c1:00.0: Port module event: module 7, Cable plugged\n"
        for k in range(9)
    )
    assert likely(tmp_path, show__txt=shown, yi__journal=_SWAP.format(gib=gib), dmesg__txt=kernel) == cause


def _killed(rows: str, name: str) -> dict[str, str]:
    listing = "NAMESPACE   NAME          READY   STATUS      RESTARTS   AGE\nchat        aurora-0      1/1     Running     0          34m\nrl          rollout-3     0/1     OOMKilled   2          51m\n"
    served = "".join(f"[pod/aurora-0/vllm] {line}\n" for line in (UP + minute(5, 3, 0, 9.0)).splitlines())
    return {"pods.txt": listing, "aurora-0.log": served, name: rows}


@pytest.mark.parametrize(("name", "cause"), [("rollout-3-previous.log", "healthy"), ("aurora-0-previous.log", "other")])
def test_a_log_that_bears_another_pods_name(tmp_path: Path, name: str, cause: str) -> None:
    full = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.46 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.02 GiB is free.\nKilled\n"
    told = likely(tmp_path, _killed(full, name))
    assert (told == "healthy") == (cause == "healthy")


_TWO = (
    "INFO 08-18 18:00:20 api_server.py:420] vLLM API server version 0.5.0\nINFO 08-18 18:00:25 llm_engine.py:161] Initializing an LLM engine (v0.5.0) with config: model='google/gemma-7b-it', tensor_parallel_size=2\n"
    "INFO 08-18 18:01:10 model_runner.py:160] Loading model weights took 8.1 GB\nINFO:     Application startup complete.\nINFO 08-18 18:22:00 metrics.py:341] Avg prompt throughput: 90.0 tokens/s, Avg generation throughput: 60.0 tokens/s, Running: 2 reqs, Swapped: 0 reqs, Pending: 0 reqs, GPU KV cache usage: 3.0%, CPU KV cache usage: 0.0%.\n"
)
_XID = "Aug 18 23:47:13 node7 kernel: NVRM: Xid (PCI:0000:a1:00): 48, pid=8844, name=python3, DBE (double bit error) detected on FBPA 3, partition 1\n"
_PS = "USER   PID  PPID  %MEM    RSS  STARTED  COMMAND\nllm   8790     1   1.9 4980112  Sun18:00 /opt/v/bin/python3 -m vllm.entrypoints.openai.api_server --model google/gemma-7b-it\nllm   {pid}  8790   1.6 4210040  Sun18:00 /opt/v/bin/python3 -c from multiprocessing.spawn (VllmWorkerProcess)\n"


@pytest.mark.parametrize(("files", "whose"), [({"ps.txt": _PS.format(pid=8844)}, "own"), ({}, "foreign")])
def test_a_fault_long_after_the_last_line_that_tells_a_time(tmp_path: Path, files: dict[str, str], whose: str) -> None:
    """It is the server's where a list of processes names the one that met it."""
    told = bonds(tmp_path, {"serve.log.1": _TWO, "kern.log": _XID, **files})
    assert told["kern.log:1"][0] == whose


_RAY = "{t}(RayWorkerWrapper pid=51000) WARNING 06-18 11:20:19 [ray_utils.py:10] 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: 8bd1, IP: 10.60.1.12) over the last time period.\n"


@pytest.mark.parametrize(("minute_", "whose"), [(29, "foreign"), (21, "own")])
def test_ray_tells_of_a_lost_worker_at_once(tmp_path: Path, minute_: int, whose: str) -> None:
    log = (
        "INFO 06-18 11:20:10 [api_server.py:1890] vLLM API server version 0.9.0\n(EngineCore_0 pid=387) INFO 06-18 11:20:15 [core.py:70] Initializing a V1 LLM engine (v0.9.0) with config: model='org/aurora-72b', tensor_parallel_size=8\n"
        + _RAY.format(t="")
        + f"(EngineCore_0 pid=387) ERROR 06-18 11:{minute_}:20 [core.py:400] RuntimeError: NCCL error: remote process exited or there was a network error\n"
    )
    told = bonds(tmp_path, {"driver.log": log})
    assert told["driver.log:3"][0] == whose


_LORA = (
    "(APIServer pid=1) INFO 02-17 10:14:59 [api_server.py:1351] vLLM API server version 0.15.1\n"
    "(APIServer pid=1) INFO 02-17 10:15:00 [utils.py:233] non-default args: {{'model': 'mistralai/Mistral-Nemo-Instruct-2407', 'enable_lora': True, 'max_loras': {slots}, 'max_lora_rank': 256, 'max_model_len': 8192}}\n"
    "(EngineCore_DP0 pid=41) INFO 02-17 10:15:09 [core.py:93] Initializing a V1 LLM engine (v0.15.1) with config: model='mistralai/Mistral-Nemo-Instruct-2407', dtype=torch.bfloat16, max_seq_len=8192, tensor_parallel_size=1\n"
    "(EngineCore_DP0 pid=41) INFO 02-17 10:15:12 [gpu_model_runner.py:3000] Starting to load model mistralai/Mistral-Nemo-Instruct-2407...\n"
    "(EngineCore_DP0 pid=41) INFO 02-17 10:15:40 [gpu_model_runner.py:3100] Model loading took {loaded} GiB and 28.1 seconds\n"
    "(EngineCore_DP0 pid=41) INFO 02-17 10:15:57 [gpu_worker.py:366] Available KV cache memory: {left} GiB\n"
)
_GONE = "2026-02-17 10:14:58,101 INFO spawned: 'dialect' with pid 4100\n2026-02-17 10:15:50,771 INFO exited: thumbnailer (terminated by SIGKILL; not expected)\n2026-02-17 10:15:58,440 INFO exited: {name} (exit status 1; not expected)\n"


@pytest.mark.parametrize(
    ("slots", "loaded", "left", "name", "cause"),
    [
        (12, 43.21, -2.13, "dialect", "feature-overhead"),
        (12, 43.21, -2.13, "thumbnail", None),
        (2, 26.21, 14.9, "dialect", None),
    ],
    ids=["less than nothing is left", "another program ended", "enough is left"],
)  # fmt: skip
def test_room_of_less_than_nothing_is_a_refusal(tmp_path: Path, slots: int, loaded: float, left: float, name: str, cause: str | None) -> None:  # fmt: skip
    """The log ends before the engine says so, and its supervisor tells how it ended."""
    card = "timestamp, index, name, memory.total [MiB], memory.used [MiB]\n2026/02/17 10:14:00.113, 0, NVIDIA L40S, 49140 MiB, 4 MiB\n"
    log = _LORA.format(slots=slots, loaded=loaded, left=left)
    told = likely(tmp_path, {"dialect.log": log, "supervisor.log": _GONE.format(name=name), "gpu.csv": card})
    assert (told == "feature-overhead") == (cause is not None)


_LOADING = (
    "INFO 01-20 09:40:02 [api_server.py:100] vLLM API server version 0.11.0\nINFO 01-20 09:40:09 [core.py:93] Initializing a V1 LLM engine (v0.11.0) with config: model='org/aurora-70b', tensor_parallel_size=4\n"
    "INFO 01-20 09:40:12 [gpu_model_runner.py:90] Starting to load model org/aurora-70b...\nLoading safetensors checkpoint shards:  55% Completed | 10/17 [04:40<03:20, 28.00s/it]\n"
)


def _described(seconds: int, code: int) -> str:
    return (
        "Name:         aurora-0\nNamespace:    ai\nContainers:\n  server:\n    Image:          vllm/vllm-openai:v0.11.0\n    State:          Running\n      Started:      Tue, 20 Jan 2026 09:45:40 +0000\n"
        f"    Last State:     Terminated\n      Reason:       Error\n      Exit Code:    {code}\n      Started:      Tue, 20 Jan 2026 09:40:00 +0000\n      Finished:     Tue, 20 Jan 2026 09:4{seconds // 60}:{seconds % 60:02} +0000\n"
        "    Restart Count:  4\n    Limits:\n      memory:  256Gi\n      nvidia.com/gpu:  4\n    Startup:        http-get http://:8000/health delay=0s timeout=3s period=10s #success=1 #failure=30\n"
    )


_OTHERS_KILL = (
    "[Tue Jan 20 09:43:00 2026] embed-server invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=900\n[Tue Jan 20 09:43:00 2026] memory: usage 8388608kB, limit 8388608kB, failcnt 71\n"
    "[Tue Jan 20 09:43:00 2026] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a,mems_allowed=0,oom_memcg=/kubepods/x,task_memcg=/kubepods/x,task=embed-server,pid=977,uid=0\n"
    "[Tue Jan 20 09:43:00 2026] Memory cgroup out of memory: Killed process 977 (embed-server) total-vm:9900000kB, anon-rss:8100000kB, file-rss:0kB, shmem-rss:0kB\n"
)


@pytest.mark.parametrize(
    ("seconds", "code", "cause"), [(331, 137, "probe-restart-loop"), (90, 137, None), (331, 1, None)]
)
def test_a_life_as_long_as_its_probe_allows(tmp_path: Path, seconds: int, code: int, cause: str | None) -> None:
    """The kubelet's events are gone; a kill in the group of a program that only sounds like a model server's has another limit."""
    told = likely(tmp_path, describe__txt=_described(seconds, code), aurora__log=_LOADING, dmesg__txt=_OTHERS_KILL)
    assert (told == "probe-restart-loop") == (cause is not None)
    assert told != "host-memory-exhausted"
