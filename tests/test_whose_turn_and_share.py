"""From text to verdict: who is idle, who waits, who carries more, what was asked for; each with a rival or an innocent case."""

from __future__ import annotations

from pathlib import Path

import pytest

from verdicts import first, shows

_STAT = (
    "(APIServer pid=9) INFO 05-02 0{hour}:{minute:02}:10 [loggers.py:248] Engine 000: Avg prompt throughput: {prompt:.1f} tokens/s, Avg generation throughput: {made:.1f} tokens/s, "
    "Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: {used:.1f}%, Prefix cache hit rate: 0.0%\n"
)


def _stats(prompt: float, made: float, running: int, used: float, lines: int = 12) -> str:
    return "".join(
        _STAT.format(hour=4, minute=at, prompt=prompt + at, made=made, running=running, waiting=0, used=used) for at in range(lines)
    )  # fmt: skip


@pytest.mark.parametrize(("prompt", "told"), [(640.0, False), (0.0, True)])
def test_a_prefill_side_is_not_idle(tmp_path: Path, prompt: float, told: bool) -> None:
    idle = "".join(
        _STAT.format(hour=4, minute=at, prompt=prompt, made=0.0, running=0, waiting=0, used=41.3) for at in range(12)
    )
    assert (first(tmp_path, {"prefill-0.log": idle})[0] == "memory-leak") is told


_WAIT = "(EngineCore_DP0 pid=44) INFO 05-02 04:{minute:02}:00 [shm_broadcast.py:501] No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are hanging.\n"


@pytest.mark.parametrize(
    ("minutes", "then", "cause"), [(6, False, "not-memory"), (2, False, "healthy"), (6, True, "healthy")]
)
def test_an_engine_that_waits_for_its_workers(tmp_path: Path, minutes: int, then: bool, cause: str) -> None:
    log = _stats(910.0, 120.0, 5, 11.0) + "".join(_WAIT.format(minute=15 + at) for at in range(minutes))
    log += (
        _STAT.format(hour=4, minute=40, prompt=800.0, made=140.0, running=6, waiting=0, used=12.0) * 3 if then else ""
    )
    assert first(tmp_path, {"engine.log": log})[0] == cause


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("[rank3]:[W502 04:13:02.1 compiler_depend.ts:57] Warning: NPU warning, error code is 507011[Error]:", True),
        ("EE9999: [PID: 77] rtStreamSynchronize execution failed, reason=aicore timeout[FUNC:Report]", True),
        ("client retried, its return code was 507 for the upload", False),
    ],
)
def test_a_device_that_gives_up_a_kernel(tmp_path: Path, line: str, told: bool) -> None:
    log = _stats(910.0, 120.0, 40, 33.0, 4) + line + "\n"
    assert (first(tmp_path, {"rank3.log": log})[0] == "not-memory") is told


_PODS = "NAME                       READY   STATUS      RESTARTS        AGE\nserve-qwen-6c9d8-x2v9k      0/1     {status}   3 (40s ago)   9m\n"
_LOADING = (
    "$ kubectl logs serve-qwen-6c9d8-x2v9k --previous --tail=3\n"
    "INFO 05-02 04:00:29 [gpu_model_runner.py:1347] Model loading took 15.2214 GiB and 9.1 seconds\n"
    "INFO 05-02 04:00:44 [kv_cache_utils.py:634] GPU KV cache size: 301,120 tokens\n"
)


@pytest.mark.parametrize(("status", "told"), [("OOMKilled", True), ("Completed", False)])
def test_a_list_of_pods_above_a_log(tmp_path: Path, status: str, told: bool) -> None:
    assert (
        first(tmp_path, {"kubectl.txt": _PODS.format(status=status) + _LOADING})[0] == "host-memory-exhausted"
    ) is told


_ASKED = """$ kubectl -n infer get pod router-5d77f-9kq2w -o json | jq '.status.containerStatuses[0].lastState, .spec.containers[0].resources.limits'
{{
  "terminated": {{
    "exitCode": {code},
    "reason": "{reason}"
  }}
}}
{{
  "memory": "512Mi"
}}
$ kubectl -n infer get pods
NAME                      READY   STATUS    RESTARTS   AGE
router-5d77f-9kq2w        0/1     {status}  9 (1m ago)  44m
vllm-llama-0              1/1     Running   0          8d
"""


@pytest.mark.parametrize(
    ("code", "reason", "status", "told"),
    [(137, "OOMKilled", "CrashLoopBackOff", True), (0, "Completed", "Running         ", False)],
)
def test_the_pod_that_was_asked_for(tmp_path: Path, code: int, reason: str, status: str, told: bool) -> None:
    text = _ASKED.format(code=code, reason=reason, status=status)
    assert (first(tmp_path, {"session.txt": text})[0] == "host-memory-exhausted") is told


def test_the_pod_that_was_asked_for_beside_a_server_that_logs(tmp_path: Path) -> None:
    text = _ASKED.format(code=137, reason="OOMKilled", status="CrashLoopBackOff")
    assert first(tmp_path, {"session.txt": text, "vllm-llama-0.log": _stats(910.0, 120.0, 5, 11.0)})[0] == "healthy"


_SPLIT = """$ llama-server -dev CUDA0,CUDA1,CUDA2 -m Foo-70B-Q4_K_M.gguf -ngl 99 -ts {split} -c 98304
load_tensors:        CUDA0 model buffer size = {a} MiB
load_tensors:        CUDA1 model buffer size = {b} MiB
load_tensors:        CUDA2 model buffer size = {c} MiB
E ggml_backend_cuda_buffer_type_alloc_buffer: allocating 6120.00 MiB on device {device}: cudaMalloc failed: out of memory
E llama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache
"""


@pytest.mark.parametrize(
    ("a", "b", "c", "device", "told"),
    [
        ("18410.20", "11200.00", "11310.50", 0, True),
        ("13640.20", "13610.00", "13590.50", 0, False),  # alike: the length does not fit
        ("18410.20", "11200.00", "11310.50", 1, False),  # the one with less
    ],
)
def test_the_device_that_carries_more(tmp_path: Path, a: str, b: str, c: str, device: int, told: bool) -> None:
    text = _SPLIT.format(split="46,27,27", a=a, b=b, c=c, device=device)
    assert shows(tmp_path, {"try.txt": text}, "rank-imbalance", "weights-differ-by-rank") is told


_RUN = "$ podman run -d --gpus '\"device={device}\"' --name {name} docker.io/vllm/vllm-openai:v0.9.0 --model org/Bar-8B --max-model-len 16384 --gpu-memory-utilization {share}\n"
_UP = "$ podman logs one | tail -1\nINFO:     Application startup complete.\n"
_REFUSED = (
    "$ podman logs two | tail -4\nINFO 05-12 09:20:41 [gpu_model_runner.py:1347] Model loading took 15.1000 GiB and 6.0 seconds\n"
    "ERROR 05-12 09:21:10 [core.py:396] EngineCore failed to start.\n"
    "ERROR 05-12 09:21:10 [core.py:396] ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"
)


@pytest.mark.parametrize(
    ("device", "share", "told"), [("0", "0.45", True), ("1", "0.45", False), ("0", "0.2", False)]
)  # on the same card and with the same plan; another card; another plan
def test_an_alike_start_that_came_up(tmp_path: Path, device: str, share: str, told: bool) -> None:
    text = (
        _RUN.format(device=0, name="one", share="0.45")
        + _UP
        + _RUN.format(device=device, name="two", share=share)
        + _REFUSED
    )
    assert shows(tmp_path, {"session.txt": text}, "gpu-shared", "alike-start-got-a-pool") is told


_BARE = (
    "$ ./start-vlm.sh\n(EngineCore pid=77) ERROR 08-30 19:40:31 [core.py:1188] EngineCore failed to start.\n"
    "(EngineCore pid=77) ERROR 08-30 19:40:31 [core.py:1188] torch.AcceleratorError: CUDA error: out of memory\n"
)


@pytest.mark.parametrize(
    ("between", "told"),
    [
        ("root@edge:~# sync; echo 1 | tee /proc/sys/vm/drop_caches\n", True),
        (
            "$ sudo sysctl -w vm.drop_caches=3\n$ ./start-vlm.sh 2>&1 | tail -1\ntorch.AcceleratorError: CUDA error: out of memory\n",
            False,
        ),
        ("$ docker stop trainer\n", False),
    ],
)
def test_cached_files_in_the_one_memory(tmp_path: Path, between: str, told: bool) -> None:
    text = _BARE + between + "$ ./start-vlm.sh 2>&1 | tail -1\nINFO:     Application startup complete.\n"
    assert (first(tmp_path, {"session.txt": text})[0] == "host-memory-exhausted") is told


@pytest.mark.parametrize(("line", "told"), [("$ sed -i 's/gpu_memory_utilization: 0.9/gpu_memory_utilization: 0.8/' a.yaml && uv run serve | tail -1", False), ("$ vllm serve m --gpu-memory-utilization 0.8   # works", True)])  # fmt: skip
def test_what_became_of_a_command_stands_in_its_output(line: str, told: bool) -> None:
    from oomdoc.ingest.trials import Tries
    from oomdoc.intake.scan import Chunk

    tries = Tries()
    tries.hear(Chunk(f"a note\n{line}\n".encode(), 1, True))
    assert any(batch.table == "trial" for batch in tries.take()) is told
