"""From text to verdict: whose the memory is that is missing; each with a rival or an innocent case."""

from __future__ import annotations

from pathlib import Path

import pytest

from verdicts import first, likely, shows

_FORWARD = '(EngineCore_DP0 pid=31) ERROR 04-02 10:00:0{second} [core.py:712]   File "/v/vllm/v1/worker/gpu_model_runner.py", line 2152, in execute_model\n'
_OOM = (
    "(EngineCore_DP0 pid=31) ERROR 04-02 10:00:07 [core.py:712] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. GPU 0 has a total capacity of {total} GiB "
    "of which {free} is free. Including non-PyTorch memory, this process has {own} GiB memory in use. Of the allocated memory {live} GiB is allocated by PyTorch, and {idle} is reserved by PyTorch but unallocated.\n"
)


def _serving(**sizes: str) -> str:
    return _FORWARD.format(second=7) + _OOM.format(**sizes)


@pytest.mark.parametrize(
    ("asked", "idle", "live", "cause"),
    [
        ("2.75 GiB", "4.90 GiB", "33.10", "allocator-fragmentation"),
        ("1.10 GiB", "3.20 GiB", "34.80", "allocator-fragmentation"),
        ("2.75 GiB", "310.00 MiB", "37.60", "prefill-activation-spike"),
    ],
)
def test_a_reserve_in_pieces_on_a_full_card(tmp_path: Path, asked: str, idle: str, live: str, cause: str) -> None:
    text = _serving(asked=asked, total="39.38", free="190.00 MiB", own="39.19", live=live, idle=idle)
    assert first(tmp_path, {"serve.log": text})[0] == cause


@pytest.mark.parametrize(
    ("own", "live", "cause"),
    [
        ("15.22", "14.60", "gpu-shared"),
        ("18.01", "17.20", "gpu-shared"),
        ("23.49", "22.90", "prefill-activation-spike"),
    ],
)
def test_bytes_that_nobody_names(tmp_path: Path, own: str, live: str, cause: str) -> None:
    text = _serving(asked="700.00 MiB", total="23.64", free="112.00 MiB", own=own, live=live, idle="90.00 MiB")
    assert first(tmp_path, {"serve.log": text})[0] == cause


_LOAD = """INFO 08-04 15:22:18 [core.py:69] Initializing a V1 LLM engine (v0.9.2) with config: model='{model}', dtype=torch.bfloat16, max_seq_len=4096, tensor_parallel_size=1, quantization=None
INFO 08-04 15:22:20 [gpu_model_runner.py:1770] Starting to load model {model}...
ERROR 08-04 15:22:23 [core.py:586]   File "/v/vllm/model_executor/layers/linear.py", line 201, in create_weights
ERROR 08-04 15:22:23 [core.py:586] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 112.00 MiB. GPU 0 has a total capacity of {total} GiB of which 41.00 MiB is free. Of the allocated memory {live} GiB is allocated by PyTorch, and 9.00 MiB is reserved by PyTorch but unallocated.
"""


@pytest.mark.parametrize(
    ("listed", "model", "total", "live", "cause"),
    [
        ("GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1)\n  MIG 2g.10gb     Device  0: (UUID: MIG-2)\n", "mistralai/Mistral-7B-v0.3", "9.75", "9.40", "mig-slice-too-small"),
        ("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n  MIG 1g.20gb     Device  0: (UUID: MIG-2)\n", "Qwen/Qwen3-14B", "19.62", "19.10", "mig-slice-too-small"),
        ("GPU 0: Tesla T4 (UUID: GPU-1)\n", "Qwen/Qwen3-14B", "14.56", "14.20", "weights-exceed-gpu"),
    ],
)  # fmt: skip
def test_an_instance_and_the_card_that_it_is_cut_from(
    tmp_path: Path, listed: str, model: str, total: str, live: str, cause: str
) -> None:
    files = {"smi.txt": "$ nvidia-smi -L\n" + listed, "start.log": _LOAD.format(model=model, total=total, live=live)}
    assert first(tmp_path, files)[0] == cause


_NODE = """- metadata:
    name: {name}
    labels:
      nvidia.com/gpu.count: "4"
      nvidia.com/gpu.memory: "{memory}"
      nvidia.com/gpu.product: {product}
  status:
    allocatable: {{cpu: "60", memory: 900Gi, nvidia.com/gpu: "4"}}
"""
_PODS = """NAME            READY   STATUS             RESTARTS        AGE   IP           NODE
summary-7d-aa   1/1     Running            0               4d    10.8.0.4     {good}
summary-7d-bb   0/1     CrashLoopBackOff   9 (50s ago)     31m   10.8.1.7     {bad}
"""
_HALF = """INFO 02-18 11:20:33 [gpu_model_runner.py:3761] Starting to load model google/gemma-3-12b-it...
Loading safetensors checkpoint shards:  40% Completed | 2/5 [00:02<00:04,  1.46s/it]
RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
"""


@pytest.mark.parametrize(
    ("bad", "product", "memory", "told"),
    [
        ("gpu-b", "NVIDIA-A100-SXM4-40GB-MIG-3g.20gb", "20096", True),
        ("gpu-b", "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "9984", True),
        ("gpu-a", "NVIDIA-A100-SXM4-40GB-MIG-3g.20gb", "20096", False),
        ("gpu-b", "NVIDIA-A100-SXM4-40GB", "40960", False),
    ],
)
def test_replicas_on_two_kinds_of_nodes(tmp_path: Path, bad: str, product: str, memory: str, told: bool) -> None:
    nodes = _NODE.format(name="gpu-a", product="NVIDIA-A100-SXM4-80GB", memory="81920") + _NODE.format(name="gpu-b", product=product, memory=memory)  # fmt: skip
    pods = _PODS.format(good="gpu-a", bad=bad)
    cause, probability = first(tmp_path, {"nodes.yaml": nodes, "pods.txt": pods, "bb-previous.log": _HALF})
    assert (cause == "mig-slice-too-small" and probability > 0.5) is told


_COMPOSE = """{a}-1  | INFO 05-14 09:00:03 [core.py:58] Initializing a V1 LLM engine (v0.8.4) with config: model='org/a', dtype=torch.bfloat16, max_seq_len=8192, tensor_parallel_size=1
{b}-1  | INFO 05-14 09:00:03 [core.py:58] Initializing a V1 LLM engine (v0.8.4) with config: model='org/b', dtype=torch.bfloat16, max_seq_len={length}, tensor_parallel_size=1
{a}-1  | INFO 05-14 09:00:21 [gpu_model_runner.py:1329] Model loading took {wa} GiB and 4.9 seconds
{b}-1  | INFO 05-14 09:00:22 [gpu_model_runner.py:1329] Model loading took {wb} GiB and 5.2 seconds
{a}-1  | ERROR 05-14 09:00:58 [core.py:396] ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.
{b}-1  | INFO 05-14 09:01:04 [kv_cache_utils.py:634] GPU KV cache size: 61,200 tokens
{b}-1  | INFO:     Application startup complete.
"""


@pytest.mark.parametrize(
    ("wa", "wb", "length", "told"),
    [("11.4100", "11.4100", "8192", True), ("7.5122", "7.5300", "8192", True), ("15.9000", "3.1000", "8192", False), ("11.4100", "11.4100", "1024", False)],
)  # fmt: skip
def test_a_start_alike_that_got_a_pool(tmp_path: Path, wa: str, wb: str, length: str, told: bool) -> None:
    text = _COMPOSE.format(a="mail", b="tickets", wa=wa, wb=wb, length=length)
    yaml = "services:\n" + "".join(f"  {name}:\n    image: vllm/vllm-openai:v0.8.4\n    command: --model org/{name} --gpu-memory-utilization 0.45 --max-model-len 8192\n" for name in ("mail", "tickets"))  # fmt: skip
    assert (first(tmp_path, {"up.log": text, "docker-compose.yml": yaml})[0] == "gpu-shared") is told


def test_the_next_start_of_a_log_is_another_life(tmp_path: Path) -> None:
    text = """INFO 09-02 07:03:31 [gpu_model_runner.py:1892] Model loading took 8.1 GiB and 15.2 seconds
ERROR 09-02 07:03:58 [core.py:632] AssertionError: Error in memory profiling. Initial free memory 20.11 GiB, current free memory 26.40 GiB. This happens when other processes sharing the same container release GPU memory while vLLM is profiling during initialization.
INFO 09-02 07:05:20 [gpu_model_runner.py:1892] Model loading took 8.1 GiB and 14.9 seconds
INFO:     Application startup complete.
"""
    assert first(tmp_path, {"fail.log": text})[0] == "gpu-shared"
    assert first(tmp_path, {"fail.log": "".join(text.splitlines(keepends=True)[2:])})[0] == "healthy"


def _listing(guests: int, everywhere: bool = False) -> str:
    rows = ["Thu Mar 19 11:02:14 2026", "| NVIDIA-SMI 570.133.20             Driver Version: 570.133.20     CUDA Version: 12.8     |"]  # fmt: skip
    rows += [f"|   {gpu}  NVIDIA A100-SXM4-80GB  |  {70210 + guests * 430}MiB /  81920MiB |     97%      Default |" for gpu in range(4)]  # fmt: skip
    rows += ["| Processes:                                                                              |"]
    for gpu in range(4):
        for rank in range(4):
            if rank == gpu or (rank <= guests and (gpu == 0 or everywhere)):
                held = 70110 if rank == gpu else 430
                rows.append(f"|    {gpu}   N/A  N/A      {910 + rank}      C   VLLM::Worker_TP{rank}                   {held}MiB |")  # fmt: skip
    return "\n".join(rows) + "\n"


_DEATH = "(Worker_TP0 pid={pid}) ERROR 03-1{day} 22:41:09 [multiproc_executor.py:852] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 256.00 MiB. GPU 0 has a total capacity of 79.25 GiB of which 201.06 MiB is free.\n"


@pytest.mark.parametrize(("guests", "everywhere", "told"), [(3, False, True), (4, False, True), (0, False, False), (3, True, False)])  # fmt: skip
def test_ranks_that_are_guests_on_one_device(tmp_path: Path, guests: int, everywhere: bool, told: bool) -> None:
    log = "".join(_DEATH.format(pid=410 + day, day=day) for day in range(1 if not told else 3))
    cause, probability = first(tmp_path, {"deaths.txt": log, "nvidia-smi.txt": _listing(guests, everywhere)})
    assert (cause == "rank-imbalance" and probability > 0.5) is told


_SMI = "timestamp, index, name, memory.used [MiB], memory.total [MiB]\n"


@pytest.mark.parametrize(
    ("used", "told"), [((41900, 38100, 38140, 38120), True), ((38200, 38100, 38140, 38120), False), ((41900, 41100, 38140, 38120), False)]
)  # fmt: skip
def test_one_device_above_what_all_plan_with(tmp_path: Path, used: tuple[int, ...], told: bool) -> None:
    rows = "".join(f"2026/05/19 22:41:38.10{gpu}, {gpu}, NVIDIA L40S, {held} MiB, 46068 MiB\n" for gpu, held in enumerate(used))  # fmt: skip
    serve = "$ vllm serve /models/m --tensor-parallel-size 4 --gpu-memory-utilization 0.82\n"
    assert (first(tmp_path, {"smi.csv": _SMI + rows, "serve.txt": serve})[0] == "rank-imbalance") is told


@pytest.mark.parametrize(("middle", "cause"), [("serves", "not-memory"), ("nothing", "other")])
def test_a_failure_that_a_later_start_got_over(tmp_path: Path, middle: str, cause: str) -> None:
    begin = "ERROR 05-19 17:40:12 [core.py:396] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.10 GiB. GPU 0 has a total capacity of 23.60 GiB of which 0.9 GiB is free.\n"
    up = "INFO 05-19 17:44:30 [api_server.py:1043] vLLM API server version 0.8.5\nINFO 05-19 17:46:02 [kv_cache_utils.py:634] GPU KV cache size: 94,112 tokens\n"
    ran = "INFO 05-20 10:57:58 [loggers.py:111] Engine 000: Avg prompt throughput: 301.9 tokens/s, Avg generation throughput: 120.4 tokens/s, Running: 4 reqs, Waiting: 0 reqs, GPU KV cache usage: 6.1%, Prefix cache hit rate: 40.1%\n"
    last = "INFO 05-20 11:02:04 [api_server.py:1043] vLLM API server version 0.8.5\nFileNotFoundError: [Errno 2] No such file or directory: '/models/m/config.json'\n"
    text = begin + (up + ran if middle == "serves" else "") + last
    assert (first(tmp_path, {"service.log": text})[0] == "not-memory") is (cause == "not-memory")


@pytest.mark.parametrize(
    ("header", "largest", "told"),
    [
        ("segment;size;allocated;inactive;largest free block", 512, True),
        ("no,reserved MiB,active MiB,free inside MiB,biggest gap MiB", 300, True),
        ("segment;size;allocated;inactive;largest free block", 3000, False),
    ],
)
def test_a_list_of_segments(tmp_path: Path, header: str, largest: int, told: bool) -> None:
    cut = ";" if ";" in header else ","
    unit = " MiB" if cut == ";" else ""
    rows = "".join(cut.join((f"{number}", *(f"{size}{unit}" for size in (4096, 3584 - 512, 1024, largest - number)))) + "\n" for number in range(6))  # fmt: skip
    trace = "trace of device 0\n  oom  size=2147483648  device_free=104857600\n"
    files = {"segments.csv": header + "\n" + rows, "trace.txt": trace}
    assert shows(tmp_path, files, "allocator-fragmentation", "no-gap-was-large-enough") is told


@pytest.mark.parametrize(("used", "told"), [(702, True), (1210, True), (61002, False)])
def test_more_ranks_that_wait_with_empty_devices(tmp_path: Path, used: int, told: bool) -> None:
    notes = "image: vllm/vllm-openai, two cards\n--tensor-parallel-size 1: serves\n--tensor-parallel-size 2: hangs, nothing more for half an hour\n"
    rows = "".join(f"2026/05/19 22:41:38.10{gpu}, {gpu}, NVIDIA A100-SXM4-80GB, {used} MiB, 81920 MiB\n" for gpu in range(2))  # fmt: skip
    files = {"notes.txt": notes, "smi.csv": _SMI + rows}
    assert (likely(tmp_path, files) == "not-memory") is told


@pytest.mark.parametrize(("each", "told"), [("24", True), ("13", True), ("4", False)])
def test_offload_of_all_ranks_against_what_was_available(tmp_path: Path, each: str, told: bool) -> None:
    log = f"""(APIServer pid=20) INFO 05-19 22:40:01 [utils.py:341] non-default args: {{'model': '/data/m', 'tensor_parallel_size': 8, 'cpu_offload_gb': {each}.0}}
(Worker_TP0 pid=21) INFO 05-19 22:40:19 [weight_utils.py:611] Filesystem type for checkpoints: ext4. Checkpoint size: 131.00 GiB. Available RAM: 101.30 GiB.
(Worker_TP0 pid=21) INFO 05-19 22:40:20 [gpu_model_runner.py:4710] Starting to load model /data/m...
(EngineCore pid=20) ERROR 05-19 22:41:47 [multiproc_executor.py:296] Worker proc VllmWorker-2 died unexpectedly (exit code: -9), shutting down executor.
"""
    cause, probability = first(tmp_path, {"serve.log": log})
    assert (cause == "host-memory-exhausted" and probability > 0.85) is told


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('E0314 05:11:23.771840 1 model.cc:692] "Failed to initialize stub: unable to grow the shared memory pool for key \'r_9\' to 33554432 bytes: No space left on device"', True),
        ("2026-03-14 05:11:23 ERROR ipc: could not create shared-memory ring of 128 MiB: [Errno 28] No space left on device", True),
        ('E0314 05:11:23.771840 1 model.cc:692] "Failed to write the model archive to /repo/tmp: No space left on device"', False),
    ],
)  # fmt: skip
def test_a_pool_in_shared_memory_cannot_grow(tmp_path: Path, line: str, told: bool) -> None:
    text = 'I0314 05:11:20.118402 1 model_lifecycle.cc:472] "loading: vllm:1"\n' + line + "\n"
    cause, _ = first(tmp_path, {"triton.log": text, "df.txt": "$ df -B1 /dev/shm | tail -1\nshm 2147483648 2080374784 67108864  97% /dev/shm\n"})  # fmt: skip
    assert (cause == "shm-exhausted") is told


_EXPORTER = """DCGM_FI_DEV_FB_USED{{gpu="1",Hostname="n4",pci_bus_id="00000000:21:00.0",pod="chat-0"}} 41000
DCGM_FI_DEV_XID_ERRORS{{gpu="{gpu}",Hostname="n4",pci_bus_id="00000000:{bus}:00.0",pod="{pod}"}} {code}
vllm:num_requests_running{{engine="0",model_name="m"}} 3.0
vllm:num_requests_waiting{{engine="0",model_name="m"}} 0.0
vllm:request_success_total{{engine="0",finished_reason="stop",model_name="m"}} 120331
"""


@pytest.mark.parametrize(("pod", "gpu", "bus", "told"), [("jupyter-anna", "3", "61", False), ("finetune-17", "0", "07", False), ("chat-0", "1", "21", True)])  # fmt: skip
def test_an_xid_of_another_pods_device(tmp_path: Path, pod: str, gpu: str, bus: str, told: bool) -> None:
    files = {"exporter.prom": _EXPORTER.format(pod=pod, gpu=gpu, bus=bus, code=43), "start.log": "(EngineCore_DP0 pid=66) INFO 12-18 05:01:09 [gpu_model_runner.py:4480] Graph capturing finished in 12 secs, took 0.35 GiB\n"}  # fmt: skip
    assert (first(tmp_path, files)[0] == "not-memory") is told
