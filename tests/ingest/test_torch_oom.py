"""Allocator messages of every wording, read as a ledger."""

import io

import pytest

from oomdoc.ingest import text_log
from oomdoc.ingest.torch_oom import read_oom
from oomdoc.intake.scan import chunks
from oomdoc.units import GIB, MIB

NEW = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 394.00 MiB. GPU 2 has a total capacity of 79.00 GiB of which 100.00 MiB is free. "
    "Process 41 has 2.00 GiB memory in use. Including non-PyTorch memory, this process has 76.00 GiB memory in use. Of the allocated memory 70.00 GiB is "
    "allocated by PyTorch, with 200.00 MiB allocated in private pools (e.g., CUDA Graphs), and 512.00 MiB is reserved by PyTorch but unallocated. If reserved but"
)


def test_the_new_wording_closes_its_books() -> None:
    row = read_oom(NEW)
    assert row is not None
    assert (row["allocator"], row["device"], row["requested_bytes"], row["total_bytes"], row["free_bytes"]) == (
        "torch",
        2,
        394 * MIB,
        79 * GIB,
        100 * MIB,
    )
    assert (row["this_process_bytes"], row["other_processes"], row["other_processes_bytes"]) == (76 * GIB, 1, 2 * GIB)
    assert (row["allocated_bytes"], row["private_pool_bytes"], row["unallocated_bytes"]) == (
        70 * GIB,
        200 * MIB,
        512 * MIB,
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "RuntimeError: CUDA out of memory. Tried to allocate 160.00 MiB (GPU 0; 79.00 GiB total capacity; 70.00 GiB already allocated; 145.00 MiB free; 71.00 GiB reserved in total by PyTorch)",
            {"device": 0, "total_bytes": 79 * GIB, "allocated_bytes": 70 * GIB, "unallocated_bytes": GIB, "free_bytes": 145 * MIB},
        ),
        ("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacty of 23.00 GiB of which 1.00 GiB is free.", {"total_bytes": 23 * GIB, "free_bytes": GIB}),
        ("HIP out of memory. Tried to allocate 20.00 MiB. GPU 1 has a total capacity of 63.00 GiB of which 0 bytes is free.", {"allocator": "hip", "free_bytes": 0}),
        ("NPU out of memory. Tried to allocate 2.00 GiB (NPU 3; 60.00 GiB total capacity; 50.00 GiB already allocated; 1.00 GiB free)", {"device": 3, "allocated_bytes": 50 * GIB}),
        ("memory allocation failed with OOM on device 5 while trying to allocate 671088640 bytes (free: 513736704, total: 85095874560).",
         {"device": 5, "requested_bytes": 671088640, "free_bytes": 513736704, "total_bytes": 85095874560}),
        ("RuntimeError: CUDA error: out of memory", {"allocator": "cuda"}),
        ("RuntimeError: CUDA driver error: out of memory", {"allocator": "driver"}),
        ("Cuda failure 2 'out of memory'", {"allocator": "nccl"}),
        ("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", {"allocator": "cublas"}),
        ("Triton Error [CUDA]: out of memory", {"allocator": "triton"}),
        ("CUDA out of memory. Tried to allocate 4.00 GiB. 8.00 GiB allowed; Of the allocated memory 7.00 GiB is allocated by PyTorch", {"allowed_bytes": 8 * GIB}),
    ],
)  # fmt: skip
def test_other_wordings_and_allocators(text: str, expected: dict) -> None:
    row = read_oom(text)
    assert row is not None
    assert {name: row.get(name) for name in expected} == expected


def test_in_a_container_our_own_process_is_no_neighbour() -> None:
    row = read_oom(
        NEW.replace(
            "Process 41 has 2.00 GiB memory in use. Including non-PyTorch memory, this process has 76.00 GiB",
            "Process 1459 has 76.00 GiB",
        )
    )
    assert row is not None
    assert (row["this_process_bytes"], row["other_processes"], row["other_processes_bytes"]) == (76 * GIB, 0, 0)


def test_the_sentinel_of_wsl_is_unknown() -> None:
    row = read_oom(NEW.replace("Process 41 has 2.00 GiB", "Process 41 has 17179869184.00 GiB"))
    assert row is not None
    assert row.get("other_processes") is None


@pytest.mark.parametrize(
    "text",
    [
        "The model has a long context length (131072). This may cause OOM during the initial memory profiling phase",
        "RuntimeError: CUDA error: invalid argument",
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 200000",
        "CUDA out of memory occurred when warming up sampler with 256 dummy requests.",
        "out of memory is what I asked about",
    ],
)
def test_words_about_memory_are_no_failure(text: str) -> None:
    assert read_oom(text) is None


def ooms(log: str) -> list[dict]:
    return [
        {name: values[place] for name, values in batch.columns.items()}
        for batch in text_log.read("x", chunks(io.BytesIO(log.encode())))
        if batch.table == "oom"
        for place in range(batch.rows)
    ]


def test_a_message_without_its_figures_is_still_a_failure_of_the_allocator() -> None:
    rows = ooms(
        "ERROR 01-05 12:00:00 [a.py:1] torch.OutOfMemoryError: CUDA out of memory.\nERROR 01-05 12:00:00 [a.py:1] EngineCore failed to start.\n"
    )
    assert [(row["allocator"], row.get("requested_bytes"), row.get("total_bytes")) for row in rows] == [
        ("torch", None, None)
    ]


def test_a_wrapped_message_is_read_to_its_end() -> None:
    rows = ooms(
        "ERROR 01-05 12:00:00 [a.py:1] torch.OutOfMemoryError: CUDA out of memory.\n    Tried to allocate 136.00 MiB. GPU 0 has a total capacity of 22.00 GiB\n    of which 120.00 MiB is free.\n"
    )
    assert [(row["requested_bytes"], row["total_bytes"], row["free_bytes"]) for row in rows] == [
        (136 * MIB, 22 * GIB, 120 * MIB)
    ]


@pytest.mark.parametrize(
    "line",
    [
        f"INFO 01-05 12:00:00 [logger.py:43] Received request chat-1: prompt: 'my log says {NEW}', params: SamplingParams(n=1)",
        f"  | ERROR 01-05 12:00:00 [core.py:5] {NEW}",
        '{"prompt": "' + NEW + '", "max_tokens": 5}',
        f"(APIServer pid=3) INFO 01-05 12:00:00 [request_logger.py:65] Received request c-1: prompt: '{NEW}'",
    ],
)
def test_an_allocator_message_inside_a_prompt_is_a_lookalike(line: str) -> None:
    assert ooms(line + "\n") == []


def test_the_time_of_a_bare_traceback_is_that_of_the_record_before() -> None:
    row = ooms(
        f"INFO 01-05 12:00:00 [a.py:1] x\nINFO 01-05 12:30:00 [a.py:1] y\nTraceback (most recent call last):\n{NEW}\n"
    )[0]
    assert row["t"] is not None and row["t"] % 86400 == 12.5 * 3600


OTHER_ALLOCATORS = [
    ("torch", "[W1121 CUDACachingAllocator.cpp:512] Warning: memory mapping failed with OOM on device 1: tried to allocate 20971520 bytes (free: 12582912, total: 85094825984)", {"device": 1, "requested_bytes": 20971520, "free_bytes": 12582912, "total_bytes": 85094825984}),
    ("npu", "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 3; 60.00 GiB total capacity; 58.00 GiB already allocated; 1.00 GiB free; 58.50 GiB reserved in total by PyTorch)", {"device": 3, "requested_bytes": 2 * GIB, "total_bytes": 60 * GIB, "free_bytes": GIB, "unallocated_bytes": GIB // 2}),
    ("npu", "E39999: aclrtMalloc failed, error code is 207001, size 2147483648", {"requested_bytes": 2 * GIB}),
    ("xpu", "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 3.50 GiB. GPU 0 has a total capacity of 48.00 GiB.", {"requested_bytes": 3584 * MIB, "total_bytes": 48 * GIB}),
    ("xpu", "RuntimeError: level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)", {}),
    ("mps", "RuntimeError: MPS backend out of memory (MPS allocated: 17.00 GB, other allocations: 384.00 KB, max allowed: 18.00 GB). Tried to allocate 1.50 GB on private pool.", {"requested_bytes": 1536 * MIB, "total_bytes": 18 * GIB}),
    ("xla", "XlaRuntimeError: RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 4.50G. That was not possible. There are 1.25G free.; (0x0x0_HBM0)", {"requested_bytes": 4608 * MIB, "free_bytes": 1280 * MIB}),
    ("xla", "W1121 bfc_allocator.cc:497] Allocator (GPU_2_bfc) ran out of memory trying to allocate 4.00GiB (rounded to 4294967296)", {"requested_bytes": 4 * GIB, "device": 2}),
    ("tensorrt", "[TRT] [E] 2: [virtualMemoryBuffer.cpp::resizePhysical::154] Error Code 2: OutOfMemory (Requested size was 8589934592 bytes.)", {"requested_bytes": 8 * GIB}),
    ("ggml", "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 5120.00 MiB on device 1: cudaMalloc failed: out of memory", {"requested_bytes": 5 * GIB, "device": 1}),
    ("cupy", "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,589,934,592 bytes (allocated so far: 1,024 bytes).", {"requested_bytes": 8 * GIB}),
    ("nccl", "node-3:90:111 [0] NCCL WARN HIP failure 2 'out of memory'", {}),
    ("hpu", "FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::1610612736 (1536)MB", {"requested_bytes": 1536 * MIB}),
]  # fmt: skip


@pytest.mark.parametrize(("allocator", "text", "figures"), OTHER_ALLOCATORS)
@pytest.mark.parametrize("lead", ["", "worker-3> ", "2026-11-20 20:04:51.120 | 4711 | ", "Loading: 10%\r"])
def test_a_failure_is_known_by_any_allocators_words(allocator: str, text: str, figures: dict, lead: str) -> None:
    rows = ooms(lead + text + "\n")
    assert len(rows) == 1 and rows[0]["allocator"] == allocator
    assert {name: rows[0][name] for name in figures} == figures


@pytest.mark.parametrize(
    "text",
    [
        "[TRT] [W] Skipping tactic 0x0 due to insufficient memory on requested size of 5368709120 detected for tactic 2",
        "[TRT] [I] [MemUsageChange] Init CUDA: CPU +328, GPU +0, now: CPU 360, GPU 900 (MiB)",
        "grpc status RESOURCE_EXHAUSTED: Quota exceeded for requests per minute",
        "ggml_cuda_init: found 1 CUDA devices:",
        "ggml_cuda_host_malloc: failed to allocate 120.00 MiB of pinned memory: out of memory",
        "RuntimeError: level_zero backend failed with error: 20 (UR_RESULT_ERROR_DEVICE_LOST)",
        "aclrtMalloc is called with size 512",
    ],
)
def test_other_words_of_those_allocators_are_no_failure(text: str) -> None:
    assert ooms(text + "\n") == []


def test_a_traceback_in_one_line_with_its_breaks_spelled_out() -> None:
    rows = ooms(
        'job failed: Traceback (most recent call last):\\n  File "/a.py", line 3, in f\\n    g()\\n'
        + NEW.replace('"', "")
        + "\\n\n"
    )
    assert len(rows) == 1 and rows[0]["allocator"] == "torch" and rows[0]["text"].startswith("torch.OutOfMemoryError")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Failed to allocate resource[DeviceMemory] with info [size:1073741824]. Reason: Memory resources are exhausted.", {"allocator": "npu", "requested_bytes": GIB}),
        ("EL0004: [PID: 21168] 2026-03-28-07:22:29.827.496 Failed to allocate memory.", {"allocator": "npu"}),
        ("(1) Resource exhausted: Attempting to allocate 210.50M. That was not possible. There are 98.25M free.; (0x3x0_HBM1)", {"allocator": "xla", "requested_bytes": 421 * MIB // 2}),
        ("[TensorRT-LLM][ERROR] CUDA runtime error in ::cudaMallocAsync(ptr, n, stream): out of memory (tllmBuffers.h:112)", {"allocator": "cuda"}),
        ("RuntimeError: [metal::malloc] Attempting to allocate 38736917632 bytes which is greater than the maximum allowed buffer size of 30150672384 bytes.", {"allocator": "metal", "requested_bytes": 38736917632}),
        ("std::runtime_error: [METAL] Command buffer execution failed: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)", {"allocator": "metal"}),
        ("FATAL ERROR :: MODULE:SYNHELPER workspace Allocation of size ::12493510400 failed!", {"allocator": "hpu", "requested_bytes": 12493510400}),
        ("rocm_driver.cc:606] failed to allocate 7.35G (7889485824 bytes) from device: HIP_ERROR_OutOfMemory", {"allocator": "hip", "requested_bytes": 7889485824}),
        ("Device memory allocation of size 4294967296 failed. vk::Device::allocateMemory: ErrorOutOfDeviceMemory", {"allocator": "vulkan", "requested_bytes": 4 * GIB}),
        ("TT_FATAL: Out of Memory: Not enough space to allocate 3194625792 B DRAM buffer across 12 banks (allocated: 784847680 B)", {"allocator": "device", "requested_bytes": 3194625792}),
        ("MemoryError: cuMemAlloc failed: out of memory", {"allocator": "cuda"}),
        ("clEnqueueNDRangeKernel failed with CL_OUT_OF_DEVICE_MEMORY", {"allocator": "xpu"}),
        ("the weaver's gpu arena: unable to allocate 512 MiB", {"allocator": "device"}),  # of a runtime that nobody knows yet
    ],
)  # fmt: skip
def test_any_runtimes_words_for_a_failed_allocation(text: str, expected: dict) -> None:
    row = read_oom(text)
    assert row is not None
    assert {name: row.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    "text",
    [
        "Setting this too high may cause CUDA errors of the kind out of memory on the GPU",
        "To avoid errors such as out of memory on the device, lower the batch",
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.10GiB. The caller indicates that this is not a failure",
        "cuda graph pool: failed to allocate 512 MiB buffer, falling back to eager",
        "java.lang.OutOfMemoryError: Java heap space on a GPU node",
        "Unable to allocate 29.8 GiB for an array with shape (4000000, 1000) on a gpu box",
        "srun: error: Unable to allocate resources: Requested node configuration is not available (gpu:8)",
        "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 1, Available: 0",
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate 92426121216 bytes. (device cpu)",
        "the engine ran out of device names",
        "Failed to allocate port 8000 for gpu worker",
    ],
)  # fmt: skip
def test_no_allocation_on_a_device_failed(text: str) -> None:
    assert read_oom(text) is None
