"""What other servers of language models say of their memory: TensorRT-LLM, SGLang, llama.cpp, TGI.

    [TensorRT-LLM][INFO] Loaded engine size: 6681 MiB             the weights, with the engine's code
    [TensorRT-LLM][INFO] Allocate 69524783104 bytes for k/v cache.
    KV Cache is allocated. #tokens: 432000, K size: 26.37 GB, V size: 26.37 GB
    load_tensors:        CUDA0 model buffer size =  4095.05 MiB

The same quantities as of vLLM's own lines; forms as logs that people have published show them. Releases are not told apart.
"""

from __future__ import annotations

import re
from typing import Any

from oomdoc.ingest.base import Pattern, regex
from oomdoc.units import parse_size

_NUM = r"\d[\d,]{0,18}(?:\.\d{1,6})?"
_SIZE = rf"{_NUM} ?(?:bytes|[KMGT]i?B)"


def _figure(name: str) -> Any:
    def convert(row: dict[str, Any], match: re.Match[str]) -> dict[str, Any] | None:
        size = parse_size(match["value"], binary=True) if re.search(r"[A-Za-z]", match["value"]) else float(match["value"].replace(",", ""))  # fmt: skip
        return None if size is None else {"name": name, "value": float(size)}

    return convert


def _both(row: dict[str, Any], match: re.Match[str]) -> dict[str, Any] | None:
    sizes = [parse_size(match[group], binary=True) for group in ("k", "v")]
    return None if None in sizes else {"name": "kv_available_bytes", "value": float(sum(size or 0 for size in sizes))}


def _of(name: str, dialect: str, anchor: str, pattern: str, sample: str, value: float, label: str, convert: Any = None) -> Pattern:  # fmt: skip
    return Pattern(
        label, dialect, (anchor,), regex(pattern), "engine_figure", ((sample, {"name": name, "value": value}),), convert=convert or _figure(name),
    )  # fmt: skip


def _serving(dialect: str, anchor: str, pattern: str, sample: str, label: str) -> Pattern:
    return Pattern(
        label,
        dialect,
        (anchor,),
        regex(pattern),
        "milestone",
        ((sample, {"name": "serving"}),),
        const={"name": "serving"},
    )


PATTERNS: tuple[Pattern, ...] = (
    _of("weights_bytes", "trtllm", "Loaded engine size", rf"Loaded engine size: (?P<value>{_SIZE})", "[TensorRT-LLM][INFO] Loaded engine size: 512 MiB", 512 << 20, "trtllm-engine-size"),
    _of("kv_available_bytes", "trtllm", "bytes for k", rf"Allocate (?P<value>{_NUM} bytes) for k/v cache", "Allocate 4096000000 bytes for k/v cache.", 4096000000, "trtllm-kv-bytes"),
    _of("kv_available_bytes", "trtllm", "for max tokens in paged KV cache", rf"Allocated (?P<value>{_SIZE}) for max tokens in paged KV cache", "[MemUsageChange] Allocated 8.00 GiB for max tokens in paged KV cache (65536).", 8 << 30, "trtllm-kv-allocated"),
    _of("kv_pool_tokens", "trtllm", "for max tokens in paged KV cache", rf"for max tokens in paged KV cache \((?P<value>{_NUM})\)", "[MemUsageChange] Allocated 8.00 GiB for max tokens in paged KV cache (65536).", 65536, "trtllm-kv-max-tokens"),
    _of("kv_pool_tokens", "trtllm", "tokens in paged KV cache", rf"Using (?P<value>{_NUM}) tokens in paged KV cache", "Using 65536 tokens in paged KV cache.", 65536, "trtllm-kv-tokens"),
    _of("weights_bytes", "sglang", "Load weight end", rf"Load weight end\..{{0,300}}?\bmem usage=(?P<value>{_NUM} GB)", "Load weight end. type=M, dtype=torch.bfloat16, avail mem=60.00 GB, mem usage=15.00 GB.", 15 << 30, "sglang-weights"),
    _of("kv_pool_tokens", "sglang", "Cache is allocated", rf"KV Cache is allocated\. .{{0,60}}?#tokens: (?P<value>{_NUM})", "KV Cache is allocated. #tokens: 400000, K size: 24.00 GB, V size: 24.00 GB", 400000, "sglang-kv-tokens"),
    _of("kv_available_bytes", "sglang", "Cache is allocated", rf"KV Cache is allocated\. .{{0,60}}?K size: (?P<k>{_NUM} GB), V size: (?P<v>{_NUM} GB)", "KV Cache is allocated. #tokens: 400000, K size: 24.00 GB, V size: 24.00 GB", 48 << 30, "sglang-kv-bytes", _both),
    _of("weights_bytes", "llama.cpp", "model buffer size", rf"(?:CUDA|ROCm|Vulkan|SYCL|Metal)\d* model buffer size = +(?P<value>{_SIZE})", "load_tensors:        CUDA0 model buffer size =  4096.00 MiB", 4 << 30, "llamacpp-weights"),
    _of("kv_available_bytes", "llama.cpp", "KV buffer size", rf"(?:CUDA|ROCm|Vulkan|SYCL|Metal)\d* KV buffer size = +(?P<value>{_SIZE})", "llama_kv_cache:      CUDA0 KV buffer size =  1024.00 MiB", 1 << 30, "llamacpp-kv"),
    Pattern(
        # what a prompt finds in the radix cache of its worker, and what is computed
        "sglang-prefill", "sglang", ("#cached-token",), regex(r"Prefill batch.{0,80}?#new-token: (?P<new>\d{1,9}), #cached-token: (?P<hit_tokens>\d{1,9})"), "cache_lookup",
        (("[2027-03-02 04:05:06 TP0] Prefill batch, #new-seq: 1, #new-token: 300, #cached-token: 7200, token usage: 0.10, #running-req: 1, #queue-req: 0,", {"tier": "radix", "tokens": 7500, "hit_tokens": 7200}),
         ("Prefill batch. #new-seq: 2, #new-token: 500, #cached-token: 0, token usage: 0.01, #running-req: 0, #queue-req: 0", {"tokens": 500, "hit_tokens": 0})),
        convert=lambda row, match: {"tier": "radix", "tokens": int(match["new"]) + int(match["hit_tokens"]), "hit_tokens": int(match["hit_tokens"])},
    ),
    Pattern(
        "llamacpp-kv-refused", "llama.cpp", ("buffer for kv cache",), regex(r"failed to allocate buffer for kv cache"), "startup_check",
        (("llama_kv_cache_init: failed to allocate buffer for kv cache", {"name": "kv-below-max-model-len"}),), const={"name": "kv-below-max-model-len"},
    ),
    Pattern(
        "llamacpp-context", "llama.cpp", ("n_ctx   ",), regex(r"\bn_ctx += (?P<value>\d{2,9})\s*$"), "engine_flag",
        (("llama_context: n_ctx         = 32768", {"flag": "max_model_len", "value": "32768"}),), const={"flag": "max_model_len", "origin": "logged"},
    ),
    _serving("sglang", "fired up and ready", r"The server is fired up and ready to roll", "The server is fired up and ready to roll!", "sglang-ready"),
    _serving("llama.cpp", "server is listening", r"server is listening on http", "main: server is listening on http://127.0.0.1:8080 - starting the main loop", "llamacpp-ready"),
    _serving("trtllm", "Beam 0]", r"^Output \[Text \d+ Beam 0\]: \S", 'Output [Text 0 Beam 0]: " Salt stays behind."', "trtllm-answered"),
    _serving("tgi", "Connected", r"\btext_generation_router\S*: .{0,80}Connected\s*$", "2027-03-02T04:05:06.1Z  INFO text_generation_router::server: router/src/server.rs:2210: Connected", "tgi-ready"),
)  # fmt: skip
"""Statements of other engines about weights, KV cache and service."""
