"""Long sources of each kind whose reading can go on, as they grow on a server: stamps that pass New Year, failures and restarts,
several writers, lines that a collector cut."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator


def dense() -> Iterator[tuple[str, bytes]]:
    """Long sources of each kind that is read by columns."""
    rng = random.Random(5)
    stamp = "2026-11-20T20:{:02}:{:02}Z".format
    yield (
        "requests.log",
        "".join(
            f"{stamp(at // 60 % 60, at % 60)} INFO gw id=r{at} model=m{at % 3} input_tokens={rng.randrange(9000)} output_tokens={rng.randrange(900)}"
            f" latency_ms={rng.randrange(9000)} status=200\n" + ("a word\n" if at % 701 == 0 else "")
            for at in range(6000)
        ).encode(),
    )
    yield "requests.jsonl", "".join(
        json.dumps({"ts": stamp(at // 60 % 60, at % 60), "usage": {"prompt_tokens": at % 977, "completion_tokens": None if at % 50 == 0 else 5}}) + "\n"
        for at in range(6000)
    ).encode()  # fmt: skip
    yield (
        "smi.csv",
        b"timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB]\n"
        + "".join(
            f"2026/11/20 20:{at // 120 % 60:02}:{at // 2 % 60:02}.120, {at % 2}, {at % 100} %, {70000 + at} MiB, 81559 MiB\n"
            for at in range(8000)
        ).encode(),
    )
    yield (
        "vllm.log",
        (
            "INFO 11-20 20:00:00 [api_server.py:1] vLLM API server version 0.11.0\n"
            + "".join(
                f"INFO 12-31 2{at // 3600 % 4}:{at // 60 % 60:02}:{at % 60:02} [loggers.py:118] Engine 000: Avg prompt throughput: {at}.5 tokens/s, Avg generation "
                f"throughput: 96.0 tokens/s, Running: {at % 9} reqs, Waiting: 0 reqs, GPU KV cache usage: {at % 100}.5%, Prefix cache hit rate: 6.5%\n"
                + (
                    f"(EngineCore pid=7) ERROR 01-01 00:00:01 [core.py:1] ValueError: thing {at}\n"
                    if at % 997 == 996
                    else ""
                )
                for at in range(5000)
            )
        ).encode(),
    )
    yield (
        "metrics.txt",
        "".join(
            f"# 2026-11-20T20:{at // 60:02}:{at % 60:02}Z\n# TYPE vllm:kv_cache_usage_perc gauge\n"
            f'vllm:kv_cache_usage_perc{{engine="0",model_name="m"}} 0.{at}\nvllm:num_requests_running{{engine="0"}} {at % 7}\n'
            f'DCGM_FI_DEV_FB_USED{{gpu="0",UUID="GPU-5a",modelName="NVIDIA H100 80GB HBM3"}} {70000 + at}\n'
            f'DCGM_FI_DEV_FB_FREE{{gpu="0",UUID="GPU-5a",modelName="NVIDIA H100 80GB HBM3"}} 500\nvllm:broken x y z\n'
            for at in range(900)
        ).encode(),
    )
    yield (
        "writers.log",
        "".join(
            f"[pod/llm-{at % 2}/main] INFO 11-20 20:{at // 60 % 60:02}:{at % 60:02} [loggers.py:118] Engine 000: Avg prompt throughput: {at}.5 tokens/s, Avg generation "
            f"throughput: 96.0 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 5.5%, Prefix cache hit rate: 6.5%\n"
            for at in range(3000)
        ).encode(),
    )


def wrapped() -> Iterator[tuple[str, bytes]]:
    """A server that fails and starts again, bare and as collectors keep it, long lines in pieces."""
    lines = list(_server())
    yield "server.log", "".join(f"{line}\n" for line in lines).encode()
    cri, docker = [], []
    for at, line in enumerate(lines):
        stamp = f"2026-12-31T23:{at // 60 % 60:02}:{at % 60:02}.123456789Z"
        stream = "stderr" if at % 3 else "stdout"
        if at % 37 == 0:
            cri += [f"{stamp} {stream} P {line[:20]}", f"{stamp} stdout F other", f"{stamp} {stream} F {line[20:]}"]
        else:
            cri.append(f"{stamp} {stream} F {line}")
        parts = [line[:30], line[30:] + "\n"] if at % 41 == 0 else [line + "\n"]
        docker += [json.dumps({"log": part, "stream": stream, "time": stamp}, separators=(",", ":")) for part in parts]
    yield "cri.log", "".join(f"{line}\n" for line in cri).encode()
    yield "docker.log", "".join(f"{line}\n" for line in docker).encode()


def _server() -> Iterator[str]:
    for start in range(8):
        month = "12-31" if start < 5 else "01-01"
        head = f"(EngineCore pid={70 + start}) INFO {month} 20:{start:02}"
        yield f"INFO {month} 20:{start:02}:00 [api_server.py:1772] vLLM API server version 0.11.0"
        yield f"{head}:01 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='m{start}', dtype=torch.bfloat16, max_seq_len=32768"
        yield f"{head}:02 [gpu_model_runner.py:2602] Starting to load model /models/m{start}..."
        yield f"{head}:09 [gpu_model_runner.py:2653] Model loading took 14.9889 GiB and 6.2 seconds"
        yield f"{head}:12 [gpu_worker.py:298] Available KV cache memory: {36 - start}.12 GiB"
        yield f"{head}:12 [kv_cache_utils.py:1087] GPU KV cache size: {473440 - start} tokens"
        yield f"INFO {month} 20:{start:02}:20 [launcher.py:42] Application startup complete."
        for at in range(700):
            at_s = f"{month} {21 if at > 599 else 20}:{at // 10 % 60:02}:{at % 10 * 6:02}"
            yield (
                f"INFO {at_s} [loggers.py:127] Engine 000: Avg prompt throughput: {at * 3}.5 tokens/s, Avg generation throughput: 96.0 tokens/s, "
                f"Running: {at % 9} reqs, Waiting: {at % 5} reqs, GPU KV cache usage: {at % 100}.0%, Prefix cache hit rate: 6.5%"
            )
            if at % 90 == 7:
                yield f'INFO:     10.0.0.{at % 200}:5000 - "POST /v1/chat/completions HTTP/1.1" 200 OK'
                yield f"INFO {at_s} [logger.py:40] Received request r{at}: prompt: 'CUDA out of memory. Tried to allocate 2.00 GiB', params: x"
        yield f"(EngineCore pid={70 + start}) ERROR {month} 21:59:01 [core.py:710] EngineCore encountered a fatal error."
        yield f"(EngineCore pid={70 + start}) ERROR {month} 21:59:01 [core.py:710] Traceback (most recent call last):"
        yield f'(EngineCore pid={70 + start}) ERROR {month} 21:59:01 [core.py:710]   File "/w/gpu_model_runner.py", line 2310, in execute_model'
        yield (
            f"(EngineCore pid={70 + start}) ERROR {month} 21:59:01 [core.py:710] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate "
            f"{start + 2}.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.20 GiB is free. Process 1 has 77.90 GiB memory in use."
        )
        yield "Traceback (most recent call last):"
        yield '  File "/w/v1/engine/core_client.py", line 500, in output_handler'
        yield "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause."
        yield "|" + "=" * 75 + "|"
        yield "|                  PyTorch CUDA memory summary, device ID 0                 |"
        yield "|" + "-" * 75 + "|"
        yield "|            CUDA OOMs: 1            |        cudaMalloc retries: 2         |"
        yield "|" + "=" * 75 + "|"
        yield "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |"
        yield "|" + "-" * 75 + "|"
        yield "| Allocated memory      |  71680 MiB |  73728 MiB |    900 GiB |    830 GiB |"
        yield "|       from large pool |  70963 MiB |  72990 MiB |    891 GiB |    821 GiB |"
        yield "|" + "=" * 75 + "|"
