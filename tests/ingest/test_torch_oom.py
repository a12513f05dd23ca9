"""Allocator messages of every wording, read as a ledger."""

import io

import pytest

from oomdoc.ingest import text_log
from oomdoc.ingest.torch_oom import read_oom
from oomdoc.scan import chunks
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
