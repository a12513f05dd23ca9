"""What servers other than vLLM say of a failure, of their settings and of their memory, read as the same quantities."""

import io

import pytest

from oomdoc.ingest import text_log
from oomdoc.ingest.torch_oom import read_oom
from oomdoc.intake.scan import chunks
from oomdoc.units import GIB, MIB


def rows_of(text: str) -> list[tuple[str, dict]]:
    """All rows that the text reader finds."""
    found = []
    for batch in text_log.read("x.log", chunks(io.BytesIO(text.encode()))):
        for place in range(batch.rows):
            found.append((batch.table, {name: values[place] for name, values in batch.columns.items()}))
    return found


def of_table(text: str, table: str) -> list[dict]:
    return [row for name, row in rows_of(text) if name == table]


# ---- an allocation that failed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Failed to initialize executor on rank 3: Executor creation failed due to insufficient GPU memory. Total GPU memory (GiB): 40.00 Free GPU memory before component creation attempt (GiB): 0.50",
         {"allocator": "device", "total_bytes": 40 * GIB, "free_bytes": GIB // 2}),
        ("Server error: Not enough memory to handle 90000 total tokens with 2048 prefill tokens. You need to decrease `--max-batch-total-tokens`", {"allocator": "device"}),
        ("Error: Warmup(Generation(\"Not enough memory to handle 6000 prefill tokens. You need to decrease `--max-batch-prefill-tokens`\"))", {"allocator": "device"}),
        ("XlaRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 40.00G of 31.00G hbm. Exceeded hbm capacity by 9.00G.",
         {"allocator": "xla", "requested_bytes": 40 * GIB, "total_bytes": 31 * GIB}),
        ("Attempting to reserve 3.00G at the bottom of memory. That was not possible. There are 1.00G free, 0B reserved, and 1.00G reservable.; HBM capacity 8.00G: Currently allocated: 6.00G ( 6442450944 bytes)",
         {"allocator": "xla", "requested_bytes": 3 * GIB, "free_bytes": GIB, "total_bytes": 8 * GIB, "allocated_bytes": 6 * GIB}),
        ("ERR00100 PTA call acl api failed. NPU out of memory. Tried to allocate 512.00 MiB (NPU 2; 29.00 GiB total capacity; 27.00 GiB already allocated; 100.00 MiB free)",
         {"allocator": "npu", "device": 2, "requested_bytes": 512 * MIB, "free_bytes": 100 * MIB}),
    ],
)  # fmt: skip
def test_an_allocation_that_failed_in_any_runtime(text: str, expected: dict) -> None:
    row = read_oom(text)
    assert row is not None
    assert {name: row.get(name) for name in expected} == expected


def test_figures_that_stand_in_the_lines_below_belong_to_the_failure() -> None:
    log = (
        "[05/02/2027-03:04:05] [TRT-LLM] [RANK 0] [E] Executor creation failed due to insufficient GPU memory.\n\n"
        "The following component could not be created: KV cache\nTotal GPU memory (GiB): 94.00\n"
        "Free GPU memory before component creation attempt (GiB): 2.00\n"
    )
    (row,) = of_table(log, "oom")
    assert (row["line"], row["total_bytes"], row["free_bytes"]) == (1, 94 * GIB, 2 * GIB)
    xla = "RuntimeError: Resource exhausted: From /job:tpu_worker/task:0:\nAttempting to reserve 5.00G at the bottom of memory. That was not possible. There are 4.00G free, 0B reserved.;\nHBM capacity 16.00G:\n"
    (row,) = of_table(xla, "oom")
    assert (row["line"], row["requested_bytes"], row["total_bytes"]) == (2, 5 * GIB, 16 * GIB)
    assert [error["kind"] for error in of_table(xla, "log_error")] == ["memory"]


@pytest.mark.parametrize(
    "text",
    [
        "hint: not enough memory to handle your request on this laptop",
        "Model parallel creation failed due to insufficient replicas",
        "Attempting to reserve a table for three. That was not possible.",
        "aclrtMallocHost failed, size=1024",
    ],
)
def test_what_is_no_failure_of_a_device(text: str) -> None:
    assert read_oom(text) is None


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("aclrtHostRegister failed, size=2147483648, errcode 207001", 2 << 30),
        ("hipHostMalloc failed: size 4294967296 bytes", 4 << 30),
        ("cuMemHostRegister() failed for 8589934592 bytes: invalid argument", 8 << 30),
        ("RuntimeError: register ptr failed", None),
        ("RuntimeError: Unable to pin host memory with error code: -1", None),
    ],
)
def test_host_memory_that_could_not_be_pinned_in_any_runtime(text: str, size: int | None) -> None:
    assert [(row["kind"], row["bytes"]) for row in of_table(text, "host_event")] == [("pinned-alloc-failed", size)]


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
        "RuntimeError: Not enough memory, please raise the mem_fraction of the static pool.",
        "[E] Insufficient GPU memory for KV cache: 0 blocks",
        "RuntimeError: No enough gpu memory for kv cache.",
    ],
)
def test_a_pool_without_room_refuses_the_start(text: str) -> None:
    assert [row["name"] for row in of_table(text, "startup_check")] == ["no-kv-blocks"]


# ---- settings and figures


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[2027-01-02 03:04:05] server_args=ServerArgs(model_path='/w/m', context_length=24576, mem_fraction_static=0.77, max_running_requests=20, tp_size=4, disable_radix_cache=True, page_size=1)",
         {"model": "/w/m", "max_model_len": "24576", "gpu_memory_utilization": "0.77", "max_num_seqs": "20", "tensor_parallel_size": "4", "enable_prefix_caching": "False"}),
        ("[2027-01-02 03:05:05 TP0] max_total_num_tokens=88000, chunked_prefill_size=4096, max_running_requests=20, context_len=24576",
         {"max_num_batched_tokens": "4096", "max_num_seqs": "20", "max_model_len": "24576"}),
        ('2027-01-02T03:04:05.1Z  INFO text_generation_launcher: Args { model_id: "org/m", num_shard: Some(2), quantize: Some(Awq), max_total_tokens: 6000, cuda_memory_fraction: 0.8 }',
         {"model": "org/m", "tensor_parallel_size": "2", "quantization": "Awq", "max_model_len": "6000", "gpu_memory_utilization": "0.8"}),
        ("[01/02/2027-03:04:05] [TRT-LLM] [I] max_batch_size=40 max_seq_len=10240 capacity_scheduler_policy=x", {"max_num_seqs": "40", "max_model_len": "10240"}),
        ("[TRT-LLM] [I] max_seq_len=9000, max_num_tokens=4096, max_batch_size=24", {"max_num_seqs": "24", "max_model_len": "9000", "max_num_batched_tokens": "4096"}),
        ("llama_context: n_seq_max     = 3\nllama_context: n_ctx         = 30000\nllama_context: n_ctx_seq     = 10000", {"max_num_seqs": "3", "max_model_len": "10000"}),
    ],
)  # fmt: skip
def test_settings_that_a_server_states_when_it_starts(text: str, expected: dict[str, str]) -> None:
    found = {row["flag"]: row["value"] for row in of_table(text, "engine_flag")}
    assert {name: found.get(name) for name in expected} == expected


def test_buffers_of_each_device_belong_to_that_device() -> None:
    log = "load_tensors:        CUDA0 model buffer size =  3072.00 MiB\nllama_kv_cache:      CUDA1 KV buffer size =  1024.00 MiB\nllama_context:      ROCm3 compute buffer size =   512.00 MiB\nllama_context:  CUDA_Host compute buffer size =    64.00 MiB\n"
    assert [(row["name"], row["rank"], row["value"]) for row in of_table(log, "engine_figure")] == [
        ("weights_bytes", 0, 3 * GIB),
        ("kv_available_bytes", 1, GIB),
        ("activation_bytes", 3, 512 * MIB),
    ]


@pytest.mark.parametrize("text", ["user prompt: max_batch_size=4 is a good value", "the article says max_block_count matters", "decoder: Allocated seats for runtime buffers"])  # fmt: skip
def test_prose_with_such_words_gives_nothing(text: str) -> None:
    assert [table for table, _ in rows_of(text) if table in ("engine_flag", "engine_figure")] == []
