"""Copies, panels, clocks and hours: what was asked for against what is loaded, whose a panel and a gauge are, what ends starts of one length,
and of which hours a reading is. Each relation stands beside a bundle that differs from it in what decides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import oomdoc
from verdicts import SIGNS, UP, analysed, likely, minute

TRT = (
    "[TensorRT-LLM][INFO] MPI size: 1, rank: 0\n"
    "[TensorRT-LLM][INFO] Loaded engine size: 9000 MiB\n"
    "{pool}"
    "[TensorRT-LLM][INFO] Loaded engine size: 9000 MiB\n"
    "[TensorRT-LLM][ERROR] 1: [defaultAllocator.cpp::allocate::20] Error Code 1: Cuda Runtime (out of memory)\n"
    "[TensorRT-LLM][WARNING] Requested amount of GPU memory ({asked} bytes) could not be allocated. There may not be enough free memory for allocation to succeed.\n"
    "[TensorRT-LLM][ERROR] 2: [engine.cpp::deserializeEngine::1] Error Code 2: Internal Error (Assertion failed. )\n"
)
POOL = "[TensorRT-LLM][INFO] Allocate 2147483648 bytes for k/v cache.\n"


@pytest.mark.parametrize(
    ("pool", "asked", "cause"),
    [
        (POOL, 9000 << 20, "gpu-shared"),  # the weights once more, beside a copy that has its pool
        ("", 9000 << 20, "weights-exceed-gpu"),  # the weights, and nothing before them
    ],
)
def test_what_is_asked_for_is_as_large_as_the_weights(pool: str, asked: int, cause: str, tmp_path: Path) -> None:
    assert likely(tmp_path, triton__log=TRT.format(pool=pool, asked=asked)) == cause


def start(clock: str, step: str) -> str:
    """A start that goes as far as a step, and is not heard of again."""
    head = f"INFO 03-02 08:{clock}"
    steps = [
        f"{head}:00 [api_server.py:1351] vLLM API server version 0.12.0\n",
        f"{head}:05 [core.py:58] Initializing a V1 LLM engine (v0.12.0) with config: model='org/wren-9b', dtype=torch.bfloat16\n",
        f"{head}:40 [gpu_model_runner.py:2392] Model loading took 17.2000 GiB and 29.1 seconds\n",
        f"{head}:50 [kv_cache_utils.py:864] GPU KV cache size: 120,000 tokens\n",
        f"{head}:52 [gpu_model_runner.py:3100] Capturing CUDA graphs (decode, FULL):  10%|#         | 3/35 [00:01<00:15,  2.1it/s]\n",
    ]
    return "".join(steps[: {"loaded": 3, "sized": 4, "capture": 5}[step]])


PROBES = [
    {"Start": f"2027-03-02T08:0{at}:30Z", "End": f"2027-03-02T08:0{at}:31Z", "ExitCode": 1, "Output": "refused"}
    for at in (6, 7, 8)
]
UNHEALTHY = {
    "Name": "/llm",
    "State": {"Status": "running", "Health": {"Status": "unhealthy", "FailingStreak": 4, "Log": PROBES}},
}


@pytest.mark.parametrize(
    ("steps", "cause"),
    [
        (("capture", "sized", "capture", "loaded"), "probe-restart-loop"),
        (("capture", "capture", "capture", "loaded"), None),  # whatever ends it at one step may be its own
    ],
)
def test_starts_of_one_length_that_end_at_several_steps(
    steps: tuple[str, ...], cause: str | None, tmp_path: Path
) -> None:
    log = "".join(start(f"{2 * at:02}", step) for at, step in enumerate(steps))
    (tmp_path / "inspect.json").write_text(json.dumps([UNHEALTHY]))
    (tmp_path / "llm.log").write_text(log)
    with analysed(tmp_path, SIGNS) as analysis:
        alike = analysis.sql("SELECT alike FROM timed_life")[1]
        best = analysis.report.diagnoses[0]
    assert (alike == [(True,)]) == (cause is not None)
    if cause:
        assert best.cause == cause


REFUSED = (
    "INFO 03-02 09:00:02 [core.py:58] Initializing a V1 LLM engine (v0.12.0) with config: model='Qwen/Qwen3-8B', dtype=torch.bfloat16, max_seq_len=131072\n"
    "INFO 03-02 09:00:40 [gpu_model_runner.py:2392] Model loading took 15.2672 GiB and 9.1 seconds\n"
    "INFO 03-02 09:01:00 [gpu_worker.py:298] Available KV cache memory: 17.01 GiB\n"
    "ValueError: To serve at least one request with the models's max seq len (131072), (18.0 GiB KV cache is needed, which is larger than the available "
    "KV cache memory (17.01 GiB). Based on the available memory, the estimated maximum model length is 123856. Try increasing "
    "`gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.\n"
)
PANEL = "time,vllm:num_requests_running,vllm:kv_cache_usage_perc\n" + "".join(
    f"2027-03-02T09:{at:02}:00Z,{3 + at % 3},0.2{at % 10}\n" for at in range(20)
)


def test_a_panel_of_those_that_serve_is_no_start_that_came_up(tmp_path: Path) -> None:
    files = {"canary.log": REFUSED, "stable.log": UP + "".join(minute(at, 3, 0, 20.0) for at in range(3, 30))}
    assert likely(tmp_path, {**files, "panel.csv": PANEL}) == "kv-pool-below-max-model-len"


FREE = "llama_model_load_from_file_impl: using device CUDA{0} (NVIDIA GeForce RTX {1}) - {2} MiB free\n"
SPLIT = (
    "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 15000.00 MiB on device 0: cudaMalloc failed: out of memory\n"
    "alloc_tensor_range: failed to allocate CUDA0 buffer of size 15728640000\n"
    "llama_model_load: error loading model: unable to allocate CUDA0 buffer\n"
)
SMI = "index, name, memory.total [MiB], memory.used [MiB], memory.free [MiB]\n0, NVIDIA GeForce RTX {0}, {1} MiB, 200 MiB, {2} MiB\n1, NVIDIA GeForce RTX 3090, 24576 MiB, 200 MiB, 24000 MiB\n"


@pytest.mark.parametrize(
    ("name", "total", "free", "holds"),
    [
        ("4070", 12282, 11696, True),  # the smaller card is asked for what the larger one would hold
        ("3090", 24576, 11696, False),  # cards of one size: somebody else is on the first
    ],
)
def test_a_share_that_the_larger_card_would_hold(name: str, total: int, free: int, holds: bool, tmp_path: Path) -> None:
    (tmp_path / "llama.log").write_text(FREE.format(0, name, free) + FREE.format(1, "3090", 23741) + SPLIT)
    (tmp_path / "smi.csv").write_text(SMI.format(name, total, free))
    with analysed(tmp_path, SIGNS) as analysis:
        assert analysis.answers["rank-imbalance"]["asked-of-the-smaller-card"] is (True if holds else None)


PLAN = (
    'time=2027-03-02T18:22:10.004Z level=INFO source=memory.go:309 msg="offload to cuda" layers.requested={asked} layers.model=33 layers.offload=15 '
    'layers.split="" memory.available="[19.4 GiB]" memory.required.full="28.9 GiB" memory.required.partial="18.6 GiB" memory.required.kv="{kv} GiB" '
    'memory.required.allocations="[18.6 GiB]" memory.weights.total="{weights} GiB" memory.graph.full="8.3 GiB"\n'
    'time=2027-03-02T18:22:10.007Z level=INFO source=server.go:375 msg="starting llama server" cmd="/usr/bin/ollama runner --model /m/sha256-6a '
    '--ctx-size 131072 --batch-size 512 --n-gpu-layers 15 --parallel {slots} --port 41177"\n'
)


@pytest.mark.parametrize(
    ("asked", "slots", "kv", "weights", "cause"),
    [
        (-1, 64, 16.0, 4.3, "max-num-seqs-too-high"),
        (-1, 1, 0.6, 20.4, "weights-exceed-gpu"),
        (15, 64, 16.0, 4.3, None),  # somebody asked for as many layers
    ],
)
def test_layers_that_go_to_the_host(
    asked: int, slots: int, kv: float, weights: float, cause: str | None, tmp_path: Path
) -> None:
    assert likely(tmp_path, ollama__log=PLAN.format(asked=asked, slots=slots, kv=kv, weights=weights)) == cause


NGINX = '2027/03/02 08:20:10 [error] 7#7: *9 upstream timed out (110: Connection timed out) while reading response header from upstream, request: "POST /v1/chat/completions HTTP/1.1"\n'


@pytest.mark.parametrize(("waiting", "used", "cause"), [(0, 20.0, "not-memory"), (40, 99.0, "kv-demand-exceeds-pool")])
def test_a_proxy_whose_patience_ended(waiting: int, used: float, cause: str, tmp_path: Path) -> None:
    log = UP + "".join(minute(at, 3, waiting, used) for at in range(3, 30))
    assert likely(tmp_path, vllm__log=log, error__log=NGINX) == cause
    with analysed(tmp_path, SIGNS) as analysis:
        assert analysis.answers["not-memory"]["a-proxy-gave-up"] is (True if not waiting else None)


@pytest.mark.parametrize(("days", "outlived"), [(3, True), (0, False)])
def test_a_start_that_the_next_one_has_outlived(days: int, outlived: bool, tmp_path: Path) -> None:
    later = UP.replace("03-02 08:0", f"03-{2 + days:02} 10:0") + "".join(
        minute(at, 3, 0, 20.0).replace("03-02 08:", f"03-{2 + days:02} 10:") for at in range(3, 30)
    )
    (tmp_path / "vllm.log").write_text(REFUSED + later)
    with oomdoc.analyze(tmp_path, SIGNS) as analysis:
        report = analysis.report
    assert (report.verdict == "healthy") is outlived
    assert any(each.says == "a start that failed" for each in report.set_aside) is outlived


LUSTRE = "[Tue Mar  2 13:30:{0:02} 2027] LustreError: 11-0: scratch-OST0001-osc: operation ost_read to node 10.9.0.1@o2ib failed: rc = -107\n"


def test_a_message_of_the_kernel_is_no_exception_of_a_program(tmp_path: Path) -> None:
    log = UP + "".join(minute(at, 3, 0, 20.0) for at in range(3, 30))
    dmesg = "".join(f"[Tue Mar  2 13:29:{at:02} 2027] nfs: server nas OK\n" for at in range(9)) + LUSTRE.format(7)
    assert likely(tmp_path, vllm__log=log, dmesg__txt=dmesg) == "healthy"
