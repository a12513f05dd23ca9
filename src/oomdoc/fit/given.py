"""What a person states and what a log states, before either is believed: flags and their plain errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from oomdoc.errors import UsageError
from oomdoc.model import Engine, LedgerEntry
from oomdoc.physics.defaults import is_version
from oomdoc.physics.kv import head_bytes
from oomdoc.physics.setup import DTYPES
from oomdoc.physics.weights import FORMATS, format_is_the_checkpoints, known_format

_MOST_RANKS = 1024


@dataclass(frozen=True)
class Given:
    """What a person states on the command line; None = not stated.

    `model_config` is the parsed config.json, `weight_bytes` the size of the weight files beside it.
    """

    model: str | None = None
    model_config: Mapping[str, Any] | None = None
    weight_bytes: int | None = None
    params: str | None = None
    gpu: str | None = None
    engine_version: str | None = None
    revision: str | None = None
    tensor_parallel_size: int | None = None
    pipeline_parallel_size: int | None = None
    decode_context_parallel_size: int | None = None
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    gpu_memory_utilization: float | None = None
    kv_cache_dtype: str | None = None
    quantization: str | None = None
    dtype: str | None = None
    block_size: int | None = None
    enforce_eager: bool | None = None
    enable_prefix_caching: bool | None = None
    disable_hybrid_kv_cache_manager: bool | None = None
    language_model_only: bool | None = None
    speculative_config: str | None = None
    kv_cache_memory_bytes: str | None = None
    num_gpu_blocks_override: int | None = None
    hf_overrides: str | None = None
    available_kv: str | None = None
    input_tokens: str | None = None
    output_tokens: str | None = None


@dataclass(frozen=True)
class Logged:
    """What a log or report tells of one engine start: its model's name, settings, ledger and percentiles of the requests."""

    model: str | None = None
    engine: Engine | None = None
    entries: tuple[LedgerEntry, ...] = ()
    percentiles: Mapping[str, Mapping[str, float]] | None = None


def flag_of(logged: Logged, name: str) -> tuple[Any, str, str]:
    """(value, origin, place) of a logged flag; (None, "", "") where the log is silent."""
    flag = logged.engine.flags.get(name) if logged.engine else None
    if flag is None or flag.value is None:
        return None, "", ""
    return flag.value, "default" if flag.origin == "default" else "logged", flag.ref or ""


def check(given: Given) -> None:
    """UsageError for a flag whose value cannot be meant, in one sentence."""
    for item in fields(given):
        value = getattr(given, item.name)
        flag = "--" + item.name.replace("_", "-")
        if isinstance(value, int) and not isinstance(value, bool) and value < 1:
            raise UsageError(f"{flag} {value} is less than 1", "Give a whole number from 1 on")
        if item.name.endswith("_parallel_size") and value is not None and value > _MOST_RANKS:
            raise UsageError(f"{flag} {value} is more ranks than any server has", f"Give at most {_MOST_RANKS}")
    if given.gpu_memory_utilization is not None and not 0 < given.gpu_memory_utilization <= 1:
        raise UsageError(
            f"--gpu-memory-utilization {given.gpu_memory_utilization:g} is no share of the device",
            "Give a number above 0 and up to 1, such as 0.9",
        )
    if given.engine_version is not None and not is_version(given.engine_version):
        raise UsageError(f"--engine-version '{given.engine_version}' is no version", "Write it like 0.11.2, or any")
    method = given.quantization
    if method not in (None, "none") and known_format(method) is None and not format_is_the_checkpoints(method):
        raise UsageError(f"--quantization '{given.quantization}' is not known", f"Choose none, {', '.join(FORMATS)}")
    if given.dtype is not None and given.dtype not in DTYPES:
        raise UsageError(f"--dtype '{given.dtype}' is not known", f"Choose {', '.join(DTYPES)}")
    if given.params is not None and parameters_of(given.params) is None:
        raise UsageError(f"--params '{given.params}' is no number of parameters", "Write it like 8B or 0.6B")
    if given.kv_cache_dtype not in (None, "auto"):
        head_bytes(128, given.kv_cache_dtype)  # says itself what it does not know


def parameters_of(text: str) -> float | None:
    """Parameters of `8B`, `600M` or a plain number.

    >>> parameters_of("8B"), parameters_of("600m"), parameters_of("big")
    (8000000000.0, 600000000.0, None)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?(?:e\d+)?)\s*([KMBT]?)\s*", text, re.I)
    if not found:
        return None
    size = float(found[1]) * {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}[found[2].upper()]
    return size if 1e6 <= size <= 1e14 else None


def parse_tokens(flag: str, text: str | None) -> int | None:
    """Tokens of `131072`, `128k` (x 1,000 as the engine reads a small letter) or `128K` (x 1,024); None for None.

    >>> parse_tokens("--max-model-len", "128k"), parse_tokens("--max-model-len", "128K"), parse_tokens("", "32,768")
    (128000, 131072, 32768)
    """
    if text is None:
        return None
    found = re.fullmatch(r"\s*(\d[\d,_]*(?:\.\d+)?)\s*([kKmMgG]?)\s*", text)
    number = float(found[1].replace(",", "").replace("_", "")) if found else 0.0
    if found:
        number *= {"": 1, "k": 10**3, "K": 2**10, "m": 10**6, "M": 2**20, "g": 10**9, "G": 2**30}[found[2]]
    if not found or not 1 <= number <= 1 << 40:
        raise UsageError(
            f"{flag} '{text}' is no number of tokens", "Write it like 131072, 128k (128,000) or 128K (131,072)"
        )
    return int(number)


def parse_sizes(flag: str, text: str | None) -> dict[str, int]:
    """Tokens by name of `1200`, or of `p50=1200,p95=8000`; empty for None.

    >>> parse_sizes("--input-tokens", "p50=1200,p95=8,000")
    {'p50': 1200, 'p95': 8000}
    >>> parse_sizes("--input-tokens", "1200")
    {'request': 1200}
    """
    if text is None:
        return {}
    bare = re.fullmatch(r"\s*(\d[\d,_]*)\s*", text)
    if bare:
        return {"request": _number(bare[1])}
    pairs = re.findall(r"([A-Za-z]\w*)\s*=\s*(\d[\d_]*(?:,\d{3})*)", text)
    rest = re.sub(r"([A-Za-z]\w*)\s*=\s*(\d[\d_]*(?:,\d{3})*)", "", text).replace(",", "").strip()
    if not pairs or rest:
        raise UsageError(f"{flag} '{text}' is no size", "Write tokens, such as 1200, or p50=1200,p95=8000")
    return {name.lower(): _number(tokens) for name, tokens in pairs}


def _number(text: str) -> int:
    return int(text.replace(",", "").replace("_", ""))
