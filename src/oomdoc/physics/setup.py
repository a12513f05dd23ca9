"""The flags that size memory, as a log or a command states them, and what a release makes of those that nobody states."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from oomdoc.physics.adapters import NO_ADAPTERS, Adapters, read_adapters
from oomdoc.physics.architecture import Model
from oomdoc.physics.defaults import (
    NEWEST_READ,
    default_max_num_batched_tokens,
    default_max_num_seqs,
    default_of,
    generation_of,
    version_number,
)
from oomdoc.physics.interval import Interval
from oomdoc.physics.kv import is_kv_dtype
from oomdoc.physics.pool import default_block_tokens
from oomdoc.physics.speculation import NONE, Speculation, read_speculation, stated_speculation
from oomdoc.physics.weights import known_format

PREFIX_CACHING_OF_HYBRIDS_SINCE = 28_000
_ITEM_TOKENS = {"gemma4_text": 2496}  # a step holds one whole item where attention over images goes both ways
_CAPPED_BY_LENGTH_SINCE = 11_002  # 0.11.2: a step is never larger than max_num_seqs x max_model_len


@dataclass(frozen=True)
class Setup:
    """The flags that size memory. None: not given, the default of the release holds.

    `version` is a `version_number`; None = unknown, the newest release that was read is assumed. `releases` are all whose rules
    may hold where none is named exactly (`defaults.releases_meant`): what is expected then holds each. `quantization` None is
    what the checkpoint has, `none` is none. `speculation` is what drafts tokens ahead, `adapters` the LoRA slots, if any;
    `model_runner` V1 or V2 where a log or a variable says.
    """

    version: int | None = None
    generation: str | None = None
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    decode_context_parallel_size: int = 1
    gpu_memory_utilization: float | None = None
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    block_size: int | None = None
    dtype: str = "auto"
    quantization: str | None = None
    kv_cache_dtype: str = "auto"
    enforce_eager: bool = False
    enable_prefix_caching: bool | None = None
    disable_hybrid_kv_cache_manager: bool = False
    language_model_only: bool = False
    speculation: Speculation = NONE
    adapters: Adapters = NO_ADAPTERS
    model_runner: str | None = None
    releases: tuple[int, ...] = ()


@dataclass(frozen=True)
class Filled:
    """A setup with every default filled in, and the origin of what was filled: `default`, `config`, `catalogue`, `assumed`.

    `states` says how the recurrent states of cached prefixes are kept: `all`, `align`, or empty (`pool.request_blocks`).
    """

    version: int
    generation: str
    gpu_memory_utilization: float
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    block_size: int
    origins: Mapping[str, str]
    enable_prefix_caching: bool = True
    states: str = ""


_WORDS = frozenset({"dtype", "kv_cache_dtype", "quantization"})
_SWITCHES = frozenset(
    {"enforce_eager", "enable_prefix_caching", "disable_hybrid_kv_cache_manager", "language_model_only"}
)
DTYPES = ("auto", "bfloat16", "float16", "half", "float32", "float")
"""What the engine takes as a dtype of the model."""

FLAGS = tuple(
    item.name
    for item in fields(Setup)
    if item.name not in ("version", "generation", "speculation", "adapters", "model_runner", "releases")
)
"""The flags of a setup, as the engine spells them with underscores."""


def flag_value(name: str, value: object) -> object:
    """A flag's value as a setup takes it, from a log or a command (text or typed); None for what cannot be meant.

    >>> flag_value("max_model_len", "32768"), flag_value("max_model_len", -1), flag_value("kv_cache_dtype", "fp3")
    (32768, None, None)
    >>> flag_value("gpu_memory_utilization", "0.9"), flag_value("enforce_eager", "True"), flag_value("dtype", "torch.half")
    (0.9, True, 'half')
    """
    if value is None:
        return None
    text = str(value).strip()
    if name in _SWITCHES:
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower())
    if name == "quantization":
        return known_format(text)
    if name in _WORDS:
        text = text.removeprefix("torch.")
        return text if text == "auto" or (text in DTYPES if name == "dtype" else is_kv_dtype(text)) else None
    if name == "gpu_memory_utilization":
        share = float(text) if re.fullmatch(r"\d*\.?\d+", text) else 0.0
        return share if 0 < share <= 1 else None
    return int(text) if re.fullmatch(r"[1-9]\d{0,9}", text) else None


def setup_of(flags: Mapping[str, object], version: str | None = None, generation: str | None = None) -> Setup:
    """The setup of an engine's flags as a log or a command states them; what cannot be meant is left to the defaults."""
    known = {name: flag_value(name, flags.get(name)) for name in FLAGS}
    return replace(
        Setup(version=version_number(version) if version else None),
        generation=generation if generation in ("V0", "V1") else None,
        speculation=read_speculation(stated_speculation(flags)),
        adapters=read_adapters(flags),
        model_runner=runner_stated(flags),
        **{name: value for name, value in known.items() if value is not None},  # type: ignore[arg-type]
    )


def runner_stated(flags: Mapping[str, object]) -> str | None:
    """The model runner, V1 or V2, as the log's line or the variable says; None where neither does.

    >>> runner_stated({"model_runner": "V2"}), runner_stated({"VLLM_USE_V2_MODEL_RUNNER": "0"}), runner_stated({})
    ('V2', 'V1', None)
    """
    said = str(flags.get("model_runner") or "").strip().upper()
    variable = str(flags.get("VLLM_USE_V2_MODEL_RUNNER") or "").strip().lower()
    return said if said in ("V1", "V2") else {"1": "V2", "true": "V2", "0": "V1", "false": "V1"}.get(variable)


def fill(model: Model, setup: Setup, total_bytes: Interval, device: str = "") -> Filled:
    """The setup with the defaults of its release."""
    origins: dict[str, str] = {}
    version = setup.releases[-1] if setup.releases else setup.version
    by_default = "assumed" if version is None or len(setup.releases) > 1 else "default"
    if version is None:
        version = version_number(NEWEST_READ) or 0
    if by_default == "assumed":
        origins["version"] = "assumed"
    generation = setup.generation
    if generation is None:
        generation = generation_of(version)
        origins["generation"] = by_default
    utilization = setup.gpu_memory_utilization
    if utilization is None:
        utilization = default_of("gpu_memory_utilization", version) or 0.9
        origins["gpu_memory_utilization"] = by_default
    length = setup.max_model_len
    if length is None:
        length = model.max_position_embeddings or 4096
        origins["max_model_len"] = (
            "assumed" if not model.max_position_embeddings else "config" if model.confirmed == "config" else "catalogue"
        )
    total = total_bytes.middle
    seqs = setup.max_num_seqs
    if seqs is None:
        seqs = default_max_num_seqs(version, total, device, generation)
        origins["max_num_seqs"] = by_default
    batched = setup.max_num_batched_tokens
    if batched is None:
        batched = default_max_num_batched_tokens(version, total, length, device, generation)
        if generation == "V1" and version >= _CAPPED_BY_LENGTH_SINCE:
            batched = min(batched, seqs * length)
        if generation == "V1" and model.multimodal and not setup.language_model_only:
            batched = max(batched, _ITEM_TOKENS.get(model.family, 0))
        origins["max_num_batched_tokens"] = by_default
    block = setup.block_size
    if block is None:
        block = default_block_tokens(model, version)
        origins["block_size"] = by_default
    caching = setup.enable_prefix_caching
    if caching is None:
        # for hybrids the engine turned it off by itself until 0.27, and later where tokens are drafted
        without = version < PREFIX_CACHING_OF_HYBRIDS_SINCE or setup.speculation.tokens > 0
        caching = generation == "V1" and not (model.recurrent and without)
    states = ""
    if model.recurrent:
        states = _states_kept(model, version, setup, caching)
        caching = bool(states)
    return Filled(version, generation, utilization, length, seqs, batched, block, origins, caching, states)


STATES_CACHED_SINCE, STATES_COPIED_SINCE, STATES_COPIED_ALONE_SINCE = 12_000, 15_000, 28_000
"""Releases from which a hybrid's prefixes can be cached at all (0.11 turns it off), by copies of the last state (`align`, in 0.16.0
and not in 0.14.1), and no longer by a state at every block unless a flag asks for that (vllm/model_executor/models/config.py, MambaModelConfig)."""

_STATE_AT_EVERY_BLOCK = ("nemotron_h", "jamba", "mamba", "zamba2", "granitemoehybrid", "falcon_h1", "bamba")


def _states_kept(model: Model, version: int, setup: Setup, caching: bool) -> str:
    """How prefixes of a model with recurrent states are cached: `all` keeps one at every block, `align` the last one's copy; empty: not."""
    if not caching or version < STATES_CACHED_SINCE:
        return ""
    every = model.family.startswith(_STATE_AT_EVERY_BLOCK)  # those whose kernels give the states of all blocks
    if every and version < STATES_COPIED_ALONE_SINCE:
        drafting = setup.speculation.tokens > 0 and 20_000 <= version < 21_000
        return "align" if drafting else "all"
    return "align" if version >= STATES_COPIED_SINCE else ""


def one_by_one(setup: Setup) -> tuple[Setup, ...]:
    """The setup under each release that may be meant, oldest first."""
    if not setup.releases:
        return (setup,)
    return tuple(replace(setup, version=release, releases=()) for release in setup.releases)
