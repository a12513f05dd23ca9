"""The engine's own constraints on a set of changes: a flag that its release refuses or ignores is no advice.

Sources: vllm/engine/arg_utils.py, vllm/config and vllm/v1/worker of the releases named beside each flag.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oomdoc.fit.sheet import divides
from oomdoc.physics.setup import FLAGS, Setup, flag_value
from oomdoc.solve.situation import Situation

# First and last release (version numbers) that take a flag, where advice could meet one that does not
SINCE: Mapping[str, int] = {
    "enable_chunked_prefill": 4_001, "enable_prefix_caching": 3_004, "kv_cache_dtype": 3_000, "num_gpu_blocks_override": 4_001,
    "kv_cache_memory_bytes": 10_002, "cudagraph_capture_sizes": 11_001, "max_num_batched_tokens": 1_007, "enforce_eager": 2_002,
    "decode_context_parallel_size": 10_002, "pipeline_parallel_size": 5_001,
}  # fmt: skip
UNTIL: Mapping[str, int] = {"swap_space": 17_999}
_OF_THE_PLAN = frozenset({"gpu_memory_utilization"})


@dataclass(frozen=True)
class Guarded:
    """Changes as the engine takes them, what was altered about them, and why they cannot be taken at all (or "")."""

    changes: Mapping[str, Any]
    altered: tuple[str, ...] = ()
    refused: str = ""


def guard(changes: Mapping[str, Any], now: Situation, *, devices: int | None) -> Guarded:
    """The changes within the engine's constraints; `devices` are the GPUs that ranks may take, None = any number."""
    made = dict(changes)
    altered: list[str] = []
    version = now.engine.get("version_number")
    for name in made:
        if version is not None and (version < SINCE.get(name, 0) or version > UNTIL.get(name, version)):
            return Guarded(made, refused=f"release {now.engine.get('version')} has no {spelled(name)}")
    if _OF_THE_PLAN & made.keys() and now.engine.get("kv_cache_memory_bytes") and now.on_gpu:
        return Guarded(made, refused="the pool is set by hand (--kv-cache-memory-bytes): utilization does not size it")
    if _OF_THE_PLAN & made.keys() and now.engine.get("num_gpu_blocks_override") and now.on_gpu:
        return Guarded(
            made, refused="the blocks are set by hand (--num-gpu-blocks-override): utilization does not size the pool"
        )
    if "tensor_parallel_size" in made:
        refused = _divided(made, altered, now, devices)
        if refused:
            return Guarded(made, refused=refused)
    if "max_num_batched_tokens" in made:
        _steps(made, altered, now)
    return Guarded(made, tuple(altered))


def _divided(made: dict[str, Any], altered: list[str], now: Situation, devices: int | None) -> str:
    """The largest number of ranks up to the one advised that divides the heads and has its GPUs beside the stages."""
    present = int(now.engine.get("tensor_parallel_size") or 1)
    stages = int(now.engine.get("pipeline_parallel_size") or 1)
    asked = int(made["tensor_parallel_size"])
    if devices and asked * stages > devices:
        asked = int(devices) // stages
    question = now.question
    reason = ""
    for ranks in range(asked, present, -1):
        setup = None if question is None else changed(question.setup, {"tensor_parallel_size": ranks})
        told = "" if question is None or setup is None else divides(question, setup)
        if not told and (question is not None or ranks & (ranks - 1) == 0):
            if ranks != made["tensor_parallel_size"]:
                altered.append(f"{ranks} ranks: {reason or f'{devices} GPUs in {stages} stages'}")
            made["tensor_parallel_size"] = ranks
            return ""
        reason = reason or told
    return reason or f"{devices} GPUs hold no more than {present} x {stages} ranks"


def _steps(made: dict[str, Any], altered: list[str], now: Situation) -> None:
    """A step smaller than the longest prompt needs chunked prefill, which V0 does not do by itself; seqs may not exceed it."""
    tokens = int(made["max_num_batched_tokens"])
    length = now.engine.get("max_model_len")
    flags = now.start.flags if now.start else {}
    chunked = "enable_chunked_prefill" in flags and str(flags["enable_chunked_prefill"].value).lower() in ("true", "1")
    if now.engine.get("generation") == "V0" and not chunked and (length is None or tokens < length):
        made["enable_chunked_prefill"] = True
        altered.append("V0 refuses a step smaller than max_model_len without chunked prefill")
    sequences = made.get("max_num_seqs") or now.engine.get("max_num_seqs")
    if sequences and tokens < int(sequences):
        made["max_num_batched_tokens"] = int(sequences)
        altered.append(f"a step holds at least one token of each of max_num_seqs {sequences}")


def changed(setup: Setup, changes: Mapping[str, Any]) -> Setup:
    """The setup with those of the changes that size memory."""
    values = {name: flag_value(name, value) for name, value in changes.items() if name in FLAGS}
    return dataclasses.replace(setup, **{name: value for name, value in values.items() if value is not None})  # type: ignore[arg-type]


def spelled(name: str) -> str:
    """A flag as it is typed.

    >>> spelled("max_num_seqs")
    '--max-num-seqs'
    """
    return name if name.isupper() else "--" + name.replace("_", "-")
