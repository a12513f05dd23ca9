"""What the engine's arguments are called, which variables count, and one setting of a text."""

from __future__ import annotations

import re
from typing import NamedTuple

from oomdoc.ingest.vocabulary.quantity import read
from oomdoc.ingest.vocabulary.words import named
from oomdoc.regexes import regex

_VALUE_CAP = 2000
SHORT_OPTIONS: dict[str, str] = {
    "tp": "tensor_parallel_size", "pp": "pipeline_parallel_size", "dp": "data_parallel_size",
    "dpl": "data_parallel_size_local", "dpn": "data_parallel_rank", "dpr": "data_parallel_start_rank",
    "dpa": "data_parallel_address", "dpp": "data_parallel_rpc_port", "dpb": "data_parallel_backend",
    "dcp": "decode_context_parallel_size", "pcp": "prefill_context_parallel_size", "ep": "enable_expert_parallel",
    "asc": "api_server_count", "spec-draft-tp": "speculative_draft_tensor_parallel_size", "cc": "compilation_config",
    "q": "quantization", "O": "compilation_config",
}  # fmt: skip
"""vLLM's short options (`engine/arg_utils.py`, `entrypoints/cli` of 0.2 to 0.33)."""
RENAMED = {
    "model_tag": "model", "model_path": "model", "model_name_or_path": "model", "model_url": "model",
    "tensor_parallel": "tensor_parallel_size", "pipeline_parallel": "pipeline_parallel_size",
    "max_seq_len": "max_model_len", "gpu_memory_utilisation": "gpu_memory_utilization",
}  # fmt: skip
ENGINE_FLAGS: frozenset[str] = frozenset(read("servers")["engine_flags"].split())
"""Engine arguments that no other program uses for something else: one of them marks a text as vLLM's."""
COMMON_FLAGS = frozenset(
    ("model", "dtype", "seed", "tokenizer", "revision", "device", "task", "runner", "download_dir", "max_tokens")
)
"""Engine arguments whose names are everybody's: believed only beside one of `ENGINE_FLAGS`."""
SWITCHES = named("switches")
LISTS = frozenset(
    ("served_model_name", "lora_modules", "cudagraph_capture_sizes", "cuda_graph_sizes", "ignore_patterns")
)
SWITCH_PREFIX = ("enable_", "disable_", "use_", "no_", "return_")
TRUTH = regex(r"(?:true|false|yes|no|on|off|0|1)", re.I)
ENVIRONMENT = regex(
    r"(?:VLLM|CUDA|PYTORCH|TORCH|NCCL|RAY|NVIDIA|HIP|ROCR|HSA|ASCEND|LMCACHE|MALLOC|FLASHINFER|SGLANG|GPU|TPU|OMNI)_[A-Z0-9_]+"
    r"|OMP_NUM_THREADS|LD_PRELOAD|RAYON_NUM_THREADS"
)
"""Variables that bear on memory or devices; others are left alone."""
_SECRET = regex(r"api_?key|token$|secret|passw|credential", re.I)
VARIABLE_FLAGS = {
    "TP": "tensor_parallel_size", "TP_SIZE": "tensor_parallel_size", "PP": "pipeline_parallel_size",
    "DP": "data_parallel_size", "MODEL": "model", "MODEL_NAME": "model", "MODEL_ID": "model",
    "GPU_MEM_UTIL": "gpu_memory_utilization", "GPU_UTIL": "gpu_memory_utilization",
    "GPU_MEMORY_UTILIZATION": "gpu_memory_utilization", "MAX_LEN": "max_model_len",
    "MAX_MODEL_LENGTH": "max_model_len",
}  # fmt: skip
"""Variables of launch scripts that are named for an engine argument; they come before the environment's own."""
_VERSION = regex(r"vllm[\w./-]*:v?(\d+\.\d+(?:\.\d+)?[\w.+-]*)")


class Setting(NamedTuple):
    """One setting found in a text; `line` counts from 1, `engine` numbers the command it belongs to, from 0."""

    line: int
    flag: str
    value: str
    origin: str
    engine: int = 0


def image_version(image: str) -> str | None:
    """The engine's version in a container image's tag; None where the tag names none.

    >>> image_version("vllm/vllm-openai:v0.9.1"), image_version("vllm/vllm-openai:latest")
    ('0.9.1', None)
    """
    found = _VERSION.search(image)
    return found[1] if found else None


def is_environment(name: str) -> bool:
    """Whether a variable's name is one that bears on memory, devices or the engine."""
    return bool(ENVIRONMENT.fullmatch(name))


def shown(flag: str, value: str) -> str:
    """A value fit to be shown: secrets masked, length bounded."""
    return "***" if _SECRET.search(flag) else value[:_VALUE_CAP]
