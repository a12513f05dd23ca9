"""A failure is the same whoever hands its line on: what a program says of itself, behind the heads of loggers and shippers."""

import io
import json

import pytest

from oomdoc.ingest import text_log
from oomdoc.intake.scan import chunks

MESSAGES = {  # what is said, and the table and kind that it gives
    "RuntimeError: CUDA error: an illegal memory access was encountered": ("log_error", "kernel"),
    "torch.AcceleratorError: CUDA error: device-side assert triggered": ("log_error", "kernel"),
    "CUDA error: unspecified launch failure": ("log_error", "kernel"),
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 384.00 MiB. GPU 0 has a total capacity of 23.65 GiB of which 97.00 MiB is free.": ("oom", None),
    "RuntimeError: HIP out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 23.98 GiB of which 311.00 MiB is free.": ("oom", None),
    "RuntimeError: CUDA driver error: out of memory": ("oom", None),
    "cudaMalloc failed: out of memory": ("oom", None),
    "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3353, remote process exited or there was a network error": ("log_error", "nccl"),
    "ncclInternalError: Internal check failed.": ("log_error", "nccl"),
    "OSError: [Errno 28] No space left on device: '/dev/shm/psm_6b2d1f90'": ("log_error", "shm"),
    "OSError: [Errno 12] Cannot allocate memory": ("host_event", "host-alloc-failed"),
    "std::bad_alloc": ("host_event", "host-alloc-failed"),
    "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 5.96 GiB for an array with shape (800000, 1000) and data type float64": ("host_event", "host-alloc-failed"),
    "RuntimeError: No CUDA GPUs are available": ("log_error", "driver"),
    "Failed to initialize NVML: Unknown Error": ("log_error", "driver"),
    "FileNotFoundError: [Errno 2] No such file or directory: '/models/house/config.json'": ("log_error", "missing-file"),
    "KeyError: 'a_model_type'": ("log_error", "bad-argument"),
    "ValueError: Unknown quantization method: ours": ("log_error", "bad-argument"),
    "OSError: [Errno 98] Address already in use": ("log_error", "network"),
    "RuntimeError: can't start new thread": ("log_error", "limit"),
    "OSError: [Errno 24] Too many open files": ("log_error", "limit"),
    "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.": ("startup_check", "no-kv-blocks"),
    "ValueError: Free memory on device (10.55/23.65 GiB) on startup is less than desired GPU memory utilization (0.9, 21.28 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.": ("startup_check", "free-memory"),
}  # fmt: skip

HEADS = {  # `{}` is the message, `{quoted}` the message as a JSON string
    "nothing": "{}",
    "engine": "(EngineCore_DP0 pid=77) ERROR 11-02 10:00:00 [core.py:700] {}",
    "worker": "(Worker_TP1 pid=92) ERROR 11-02 10:00:00 [multiproc_executor.py:559] {}",
    "before-v1": "ERROR 11-02 10:00:00 engine.py:366] {}",
    "rank": "[rank0]: {}",
    "ray": "(RayWorkerWrapper pid=2201, ip=10.0.0.4) ERROR 11-02 10:00:00 worker_base.py:464] {}",
    "ray-pid": "(pid=2201) {}",
    "iso-time": "2026-11-02T10:00:00.123456Z ERROR {}",
    "kubectl-prefix": "[pod/llm-0/vllm] 2026-11-02T10:00:00Z {}",
    "compose": "vllm-1  | {}",
    "journal": "Nov 02 10:00:00 node-1 vllm[881]: {}",
    "klog": "E1102 10:00:00.123456     881 server.go:77] {}",
    "root-logger": "ERROR:root:{}",
    "named-logger": "2026-11-02 10:00:00,123 - vllm.engine - ERROR - {}",
    "bars": "2026-11-02 10:00:00.123 | ERROR    | app.main:run:44 - {}",
    "brackets": "[2026-11-02 10:00:00 TP0] {}",
    "level-behind-brackets": "[2026-11-02 10:00:00] ERROR: {}",
    "colours": "\x1b[31mERROR\x1b[0m {}",
    "indented": "    {}",
    "task": "12: {}",
    "mpi": "[1,3]<stderr>:{}",
    "clock": "10:00:00 {}",
    "epoch": "1793613600.123 {}",
    "tabs": "2026-11-02T10:00:00Z\tERROR\t{}",
    "container-runtime": "2026-11-02T10:00:00.123456789Z stderr F {}",
    "json": '{{"ts":"2026-11-02T10:00:00Z","level":"error","msg":{quoted}}}',
    "docker-json": '{{"log":{quoted},"stream":"stderr","time":"2026-11-02T10:00:00Z"}}',
    "logfmt": "time=2026-11-02T10:00:00Z level=error msg={quoted}",
    "handed-on": "2026-11-02T10:00:00.123Z ERROR router::worker: worker failed: {}",
    "wrapped": "(EngineCore_DP0 pid=77) ERROR 11-02 10:00:00 [core.py:700] RuntimeError: Worker failed with error '{}', please check the stack trace above for the root cause",
}  # fmt: skip


KIND = {"log_error": "kind", "host_event": "kind", "startup_check": "name"}


@pytest.mark.parametrize("head", HEADS)
def test_a_failure_is_known_behind_the_heads_of_loggers(head: str) -> None:
    lines, places = [], {}
    for message in MESSAGES:
        lines.append("INFO 11-02 09:59:59 [loggers.py:1] a line of no interest")
        lines.append(HEADS[head].format(message, quoted=json.dumps(message)))
        places[message] = len(lines)
    found = set()
    for batch in text_log.read("x.log", chunks(io.BytesIO("\n".join(lines).encode()))):
        kinds = batch.columns.get(KIND.get(batch.table, ""), [None] * batch.rows)
        found.update((batch.table, kind, line) for kind, line in zip(kinds, batch.columns["line"], strict=True))
    lost = {
        message: sorted(str(entry) for entry in found if entry[2] == places[message])
        for message, (table, kind) in MESSAGES.items()
        if not any((t, line) == (table, places[message]) and kind in (None, k) for t, k, line in found)
    }
    assert not lost
