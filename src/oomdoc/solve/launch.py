"""The whole launch command: what was set, with the changes."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

from oomdoc.model import Engine
from oomdoc.solve.guard import spelled

# what a log states beside the arguments, and what has a place of its own in the command
_NO_ARGUMENTS = frozenset(
    {
        "model", "model_tag", "version", "architecture", "device", "device_config", "platform", "attention_backend", "graph_memory_profiling",
        "max_position_embeddings", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim", "hidden_size", "subparser",
        "dispatch_function", "config", "api_server_count", "headless",
    }
)  # fmt: skip
# releases before 0.8.3 log every argument with its default: these say nothing
_DEFAULTS: Mapping[str, Any] = {
    "swap_space": 4, "uvicorn_log_level": "info", "port": 8000, "host": "0.0.0.0", "max_seq_len_to_capture": 8192, "tensor_parallel_size": 1,
    "pipeline_parallel_size": 1, "allowed_origins": "['*']", "allowed_methods": "['*']", "allowed_headers": "['*']", "block_size": 16,
    "cpu_offload_gb": 0, "seed": 0, "max_logprobs": 20, "response_role": "assistant", "max_loras": 1, "max_lora_rank": 16, "num_lookahead_slots": 0,
    "num_scheduler_steps": 1, "max_num_partial_prefills": 1, "max_long_partial_prefills": 1, "multi_step_stream_outputs": True, "allow_credentials": False,
}  # fmt: skip
_STATED = ("logged", "command")
_SERVE_SINCE = 5_004  # 0.5.4: `vllm serve`; before it the module of the server


def command(start: Engine | None, version: int | None, changes: Mapping[str, Any]) -> str | None:
    r"""The command of this start with other flags, one flag a line, ready to paste; None where the model is not told.

    Arguments that a log hides (keys, tokens) are left out: they cannot be known.
    """
    if start is None or not start.model or "HIDDEN" in start.model:
        return None
    flags: dict[str, Any] = {
        name: flag.value
        for name, flag in start.flags.items()
        if flag.origin in _STATED and name not in _NO_ARGUMENTS and flag.value is not None and not _hidden(flag.value)
    }
    if "uvicorn_log_level" in flags or "allow_credentials" in flags:
        flags = {
            name: value
            for name, value in flags.items()
            if value is not False and value not in ("auto", "") and _DEFAULTS.get(name) != value
        }
    environment = {name: value for name, value in {**flags, **changes}.items() if name.isupper()}
    arguments = {
        name: value for name, value in {**flags, **changes}.items() if not name.isupper() and value is not None
    }
    lines = [f"{name}={shlex.quote(str(value))}" for name, value in sorted(environment.items())]
    serve = (
        "vllm serve"
        if version is None or version >= _SERVE_SINCE
        else "python -m vllm.entrypoints.openai.api_server --model"
    )
    lines.append(f"{serve} {shlex.quote(start.model)}")
    lines += [argument(name, value) for name, value in arguments.items()]
    return " \\\n  ".join(lines)


def argument(name: str, value: Any) -> str:
    """One argument as it is typed.

    >>> argument("max_num_seqs", 11), argument("enforce_eager", True), argument("enable_prefix_caching", False)
    ('--max-num-seqs 11', '--enforce-eager', '--no-enable-prefix-caching')
    >>> argument("served_model_name", "['chat', 'chat-v2']"), argument("gpu_memory_utilization", 0.9)
    ('--served-model-name chat chat-v2', '--gpu-memory-utilization 0.9')
    """
    flag = spelled(name)
    if value is True:
        return flag
    if value is False:
        return "--no-" + flag[2:]
    if isinstance(value, float):
        return f"{flag} {value:.10g}"
    if isinstance(value, (dict, list)):
        return f"{flag} {shlex.quote(json.dumps(value))}"
    text = str(value)
    if re.fullmatch(r"\[(?:'[^']*'(?:, )?)+\]", text):
        words = re.findall("'([^']*)'", text)
        return f"{flag} {' '.join(shlex.quote(word) for word in words)}"
    return f"{flag} {shlex.quote(text)}"


def _hidden(value: Any) -> bool:
    return isinstance(value, str) and "HIDDEN" in value
