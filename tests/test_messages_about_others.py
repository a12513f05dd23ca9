"""Messages that name memory for another failure, or another failure for memory: from text to verdict, with a rival each."""

from __future__ import annotations

import json
from pathlib import Path

from verdicts import first, likely, shows

CHAIN = (
    '2026-03-02T08:00:01.104418Z  INFO text_generation_launcher: Args {{ model_id: "TheBloke/CodeLlama-7B-GPTQ", quantize: Some(Gptq), cuda_memory_fraction: 1.0 }}\n'
    "2026-03-02T08:00:31.370466Z ERROR text_generation_launcher: Method Warmup encountered an error.\n"
    "Traceback (most recent call last):\n"
    '  File "/opt/conda/lib/python3.9/site-packages/text_generation_server/models/flash_causal_lm.py", line 672, in warmup\n    _, batch = self.generate_token(batch)\n'
    "{first}\n\n"
    "The above exception was the direct cause of the following exception:\n\n"
    "Traceback (most recent call last):\n"
    '  File "/opt/conda/lib/python3.9/site-packages/text_generation_server/server.py", line 72, in Warmup\n    max_supported_total_tokens = self.model.warmup(batch)\n'
    "RuntimeError: Not enough memory to handle 8192 prefill tokens. You need to decrease `--max-batch-prefill-tokens`\n"
    "2026-03-02T08:00:31.413794Z ERROR text_generation_launcher: Webserver Crashed\n"
)


OOM = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 14.58 GiB total capacity; 12.90 GiB already allocated; 1.02 GiB free; 13.20 GiB reserved in total by PyTorch)"


def test_a_sentence_about_memory_is_a_guess_where_another_failure_raised_it(tmp_path: Path) -> None:
    """A server wraps whatever fails in its warm-up into the same words."""
    for name in ("linker", "allocator"):
        (tmp_path / name).mkdir()
    linker = "subprocess.CalledProcessError: Command '['/usr/bin/gcc', '/tmp/k.c', '-lcuda']' returned non-zero exit status 1."
    assert likely(tmp_path / "linker", {"pod.log": CHAIN.format(first=linker)}) == "not-memory"
    assert likely(tmp_path / "allocator", {"pod.log": CHAIN.format(first=OOM)}) != "not-memory"


def test_structured_messages_are_read_as_plain_ones(tmp_path: Path) -> None:
    """The same start as lines of text and as tracing-subscriber's JSON: one verdict."""
    args = 'Args { model_id: "meta-llama/Llama-2-13b-hf", quantize: None, num_shard: Some(1) }'
    stack = (
        'Error when initializing model\nTraceback (most recent call last):\n  File "/opt/conda/lib/python3.9/site-packages/text_generation_server/utils/weights.py", line 85, in get_sharded\n'
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 136.00 MiB (GPU 0; 22.20 GiB total capacity; 21.21 GiB already allocated; 31.12 MiB free; 21.22 GiB reserved in total by PyTorch)"
    )
    stamp = "2026-03-02T08:00:0{}.118203Z"
    plain = "".join(f"{stamp.format(i)} {level} text_generation_launcher: {text}\n" for i, (level, text) in enumerate([("INFO", args), ("ERROR", stack)]))  # fmt: skip
    rust = "".join(
        json.dumps({"timestamp": stamp.format(i), "level": level, "fields": {"message": text}, "target": "text_generation_launcher"}) + "\n"
        for i, (level, text) in enumerate([("INFO", args), ("ERROR", stack)])
    )  # fmt: skip
    for name in ("plain", "rust"):
        (tmp_path / name).mkdir()
    assert first(tmp_path / "plain", {"tgi.log": plain}) == first(tmp_path / "rust", {"tgi.jsonl": rust})
    assert likely(tmp_path / "rust") == "weights-exceed-gpu"


def test_a_board_without_nvml_asserts_for_another_reason(tmp_path: Path) -> None:
    """The same assertion of torch: on an instance of a card, and where the driver of a Tegra board said how much it could not give."""
    log = (
        "INFO 03-02 08:00:02 [core.py:58] Initializing a V1 LLM engine (v0.14.0) with config: model='/models/Qwen2.5-VL-3B', dtype=torch.float16\n"
        "INFO 03-02 08:00:40 [gpu_model_runner.py:3905] Model loading took 3.11 GiB memory and 9.1 seconds\n"
        "{nvmap}"
        "ERROR 03-02 08:00:50 [core.py:936] Traceback (most recent call last):\n"
        'ERROR 03-02 08:00:50 [core.py:936]   File "/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_model_runner.py", line 4741, in profile_run\n'
        'ERROR 03-02 08:00:50 [core.py:936]   File "/opt/venv/lib/python3.12/site-packages/vllm/model_executor/models/qwen2_5_vl.py", line 1672, in _process_image_input\n'
        'ERROR 03-02 08:00:50 [core.py:936] RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "/opt/pytorch/c10/cuda/CUDACachingAllocator.cpp":1131, please report a bug to PyTorch.\n'
    )
    for name in ("slice", "board"):
        (tmp_path / name).mkdir()
    assert shows(tmp_path / "slice", {"vllm.log": log.format(nvmap="")}, "mig-slice-too-small", "nvml-assert")
    told = "NvMapMemAllocInternalTagged: 1610612736 error 12\nNvMapMemHandleAlloc: error 0\n"
    board = {"vllm.log": log.format(nvmap=told)}
    assert not shows(tmp_path / "board", board, "mig-slice-too-small", "nvml-assert")
    assert likely(tmp_path / "board", board) == "prefill-activation-spike"
