"""What other servers of language models say of their settings and their memory: TensorRT-LLM, SGLang, llama.cpp, TGI, LMDeploy, xLLM.

    [TensorRT-LLM][INFO] Loaded engine size: 6681 MiB             the weights, with the engine's code
    [TensorRT-LLM][INFO] Allocate 69524783104 bytes for k/v cache.
    KV Cache is allocated. #tokens: 432000, K size: 26.37 GB, V size: 26.37 GB
    load_tensors:        CUDA0 model buffer size =  4095.05 MiB

The same quantities as of vLLM's own lines; forms as logs that people have published show them. Releases are not told apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from oomdoc.ingest.base import Pattern
from oomdoc.ingest.engine_settings import flag_rows
from oomdoc.ingest.launch import servers
from oomdoc.regexes import regex
from oomdoc.units import parse_size

BANNERS: tuple[tuple[str, re.Pattern[str], str], ...] = (
    # anchor, where the settings text begins, whose settings they are
    ("server_args=ServerArgs(", regex(r"server_args=ServerArgs\((?P<body>.*)", re.S), "sglang"),
    ("max_total_num_tokens=", regex(r"(?P<body>max_total_num_tokens=\d.*)", re.S), "sglang"),
    (
        "Args { model_id",
        regex(r"text_(?:generation_launcher|embeddings_router)\S{0,40}: .{0,80}?Args \{(?P<body>.*)", re.S),
        "tgi",
    ),
    (
        "max_batch_size=",
        regex(r"\[TRT-LLM\].{0,60}?(?P<body>\b(?:max_\w{3,20}|\w{3,20}_size)[=:] ?\d.*)", re.S),
        "trtllm",
    ),
)
"""Lines in which another server states its settings."""
_SOME = regex(r"Some\((.*)\)", re.S)
_APART = regex(r"(?<=[\w>\])])[ ;] ?(?=[a-z_]{3,40}=)")


def banner(text: str, server: str) -> Iterator[dict[str, Any]]:
    """Rows of `engine_flag` from such a line, in vLLM's names where they mean the same; Rust's `Some(4)` is 4.

    >>> [(row["flag"], row["value"]) for row in banner('model_id: "org/m", num_shard: Some(4), dtype: None }', "tgi")]
    [('model', 'org/m'), ('tensor_parallel_size', '4'), ('dtype', 'None')]
    """
    for row in flag_rows(_APART.sub(", ", text), "logged"):
        some = _SOME.fullmatch(row["value"])
        value = some[1].strip("\"'") if some else row["value"]
        if server == "tgi" and row["flag"] == "cuda_memory_fraction" and value in ("1", "1.0"):
            continue  # what every start prints that was told none: it takes what is free and plans with no share
        row["flag"], row["value"] = servers.renamed(servers.BY_NAME[server], row["flag"], value)
        yield row


_LOAD_KEYS = regex(
    r"(?P<key>#new-seq|#queue-req|(?:full |swa )?token usage|mamba usage|state usage|gen throughput \(token/s\)): (?P<value>\d{1,12}(?:\.\d{1,6})?)"
)
_HANDS_OVER = regex(r"#(?:transferring|inflight|unbootstrapped|bootstrap|prealloc)-req: ")
"""Queues that only a side which prefills and hands its blocks over has (sglang/srt/disaggregation/prefill.py): it generates nothing."""
_NUM = r"\d[\d,]{0,18}(?:\.\d{1,6})?"
_SIZE = rf"{_NUM} ?(?:bytes|[KMGT]i?B)"


_SEAT = r"(?:(?<![\w-])(?P<seat>(?:(?:DP|TP|EP|PP)\d{1,3} ?){1,4})\] )?"
"""Which rank of SGLang speaks, as its head names it: `[2027-03-02 04:05:06 TP1 PP3] `; alone, one rank is all there is."""


def _seat(match: re.Match[str]) -> dict[str, Any]:
    seat = match.groupdict().get("seat")
    return {"process": seat.strip()} if seat else {}


def _figure(name: str) -> Any:
    def convert(row: dict[str, Any], match: re.Match[str]) -> dict[str, Any] | None:
        rank = match.groupdict().get("device")
        told = {"name": name, **({"rank": int(rank)} if rank else {}), **_seat(match)}
        size = parse_size(match["value"], binary=True) if re.search(r"[A-Za-z]", match["value"]) else float(match["value"].replace(",", ""))  # fmt: skip
        return None if size is None else {**told, "value": float(size)}

    return convert


def _load(row: dict[str, Any], match: re.Match[str]) -> dict[str, Any]:
    """A line of load: what a prefill brings in runs beside what already does."""
    parts = {part["key"]: part["value"] for part in _LOAD_KEYS.finditer(match.string)}
    row["running"] = int(match["running"]) + int(parts.get("#new-seq", 0))
    if "#queue-req" in parts:
        row["waiting"] = int(parts["#queue-req"])
    used = [float(value) for key, value in parts.items() if key.endswith("token usage")]
    if used:
        row["kv_used"] = max(used)
    states = [float(value) for key, value in parts.items() if key.endswith(("mamba usage", "state usage"))]
    if states:
        row["state_used"] = max(states)
    if "gen throughput (token/s)" in parts:
        row["generation_tokens_per_s"] = float(parts["gen throughput (token/s)"])
    elif _HANDS_OVER.search(match.string):
        row["generation_tokens_per_s"] = 0.0
    return row


def _shares(row: dict[str, Any], match: re.Match[str]) -> dict[str, Any]:
    return {
        **row,
        **{name: float(match[name]) for name in ("utilization", "needed_utilization")},
        "text": match.string.strip()[:400],
    }


def _both(row: dict[str, Any], match: re.Match[str]) -> dict[str, Any] | None:
    sizes = [parse_size(match[group], binary=True) for group in ("k", "v")]
    if None in sizes:
        return None
    return {"name": "kv_available_bytes", "value": float(sum(size or 0 for size in sizes)), **_seat(match)}


def _of(name: str, dialect: str, anchor: str | tuple[str, ...], pattern: str, sample: str, value: float, label: str, convert: Any = None) -> Pattern:  # fmt: skip
    return Pattern(
        label, dialect, (anchor,) if isinstance(anchor, str) else anchor, regex(pattern), "engine_figure", ((sample, {"name": name, "value": value}),), convert=convert or _figure(name),
    )  # fmt: skip


def _serving(dialect: str, anchor: str, pattern: str, sample: str, label: str, name: str = "serving") -> Pattern:
    return Pattern(
        label, dialect, (anchor,), regex(pattern), "milestone", ((sample, {"name": name}),), const={"name": name}
    )


def _step(name: str, anchor: str, sample: str) -> Pattern:
    """A step of a start of SGLang, by the name that vLLM's has."""
    return Pattern(
        f"sglang-{name}", "sglang", (anchor,), regex(re.escape(anchor)), "milestone", ((sample, {"name": name}),), const={"name": name},
    )  # fmt: skip


PATTERNS: tuple[Pattern, ...] = (
    _step("engine-init", "Init torch distributed begin", "[2027-03-02 04:05:06 TP0] Init torch distributed begin."),
    _step("load-start", "Load weight begin", "[2027-03-02 04:05:06 TP0] Load weight begin. avail mem=78.11 GB"),
    _step("loaded", "Load weight end", "[2027-03-02 04:05:06 TP0] Load weight end. type=M, avail mem=60.00 GB, mem usage=15.00 GB."),
    _step("kv-sized", "Memory pool end", "[2027-03-02 04:05:06 TP0] Memory pool end. avail mem=7.01 GB"),
    _step("capture-start", "Capture cuda graph begin", "[2027-03-02 04:05:06 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=6.9 GB"),
    _step("captured", "Capture cuda graph end", "[2027-03-02 04:05:06 TP0] Capture cuda graph end. Time elapsed: 9.20 s. mem usage=1.10 GB. avail mem=5.8 GB."),
    _of("weights_bytes", "trtllm", "Loaded engine size", rf"Loaded engine size: (?P<value>{_SIZE})", "[TensorRT-LLM][INFO] Loaded engine size: 512 MiB", 512 << 20, "trtllm-engine-size"),
    _of("weights_bytes", "trtllm", "Total Weights Memory", rf"\bTotal Weights Memory: (?P<value>{_NUM} bytes)", "[12/18/2027-02:49:38] [TRT] [I] Total Weights Memory: 1073741824 bytes", 1 << 30, "tensorrt-weights"),
    _of("kv_available_bytes", "trtllm", "bytes for k", rf"Allocate (?P<value>{_NUM} bytes) for k/v cache", "Allocate 4096000000 bytes for k/v cache.", 4096000000, "trtllm-kv-bytes"),
    _of("kv_available_bytes", "trtllm", "for max tokens in paged KV cache", rf"Allocated (?P<value>{_SIZE}) for max tokens in paged KV cache", "[MemUsageChange] Allocated 8.00 GiB for max tokens in paged KV cache (65536).", 8 << 30, "trtllm-kv-allocated"),
    _of("kv_pool_tokens", "trtllm", "for max tokens in paged KV cache", rf"for max tokens in paged KV cache \((?P<value>{_NUM})\)", "[MemUsageChange] Allocated 8.00 GiB for max tokens in paged KV cache (65536).", 65536, "trtllm-kv-max-tokens"),
    _of("kv_pool_tokens", "trtllm", "tokens in paged KV cache", rf"Using (?P<value>{_NUM}) tokens in paged KV cache", "Using 65536 tokens in paged KV cache.", 65536, "trtllm-kv-tokens"),
    _of("weights_bytes", "sglang", "Load weight end", rf"{_SEAT}Load weight end\..{{0,300}}?\bmem usage=(?P<value>{_NUM} GB)", "Load weight end. type=M, dtype=torch.bfloat16, avail mem=60.00 GB, mem usage=15.00 GB.", 15 << 30, "sglang-weights"),
    _of("free_now_bytes", "sglang", "avail mem=", rf"(?:(?<![\w-])(?P<seat>(?:(?:DP|EP|PP)\d{{1,3}} ?){{0,3}}(?:TP(?P<device>\d{{1,3}}) ?)?(?:(?:EP|PP)\d{{1,3}} ?){{0,2}})\] .{{0,400}}?)?\bavail mem=(?P<value>{_NUM} GB)", "[2027-03-02 04:05:06] LoRA manager ready. avail mem=22.50 GB", 22.5 * (1 << 30), "sglang-free"),
    _of("kv_pool_tokens", "sglang", "Cache is allocated", rf"KV Cache is allocated\. .{{0,60}}?#tokens: (?P<value>{_NUM})", "KV Cache is allocated. #tokens: 400000, K size: 24.00 GB, V size: 24.00 GB", 400000, "sglang-kv-tokens"),
    _of("kv_available_bytes", "sglang", "Cache is allocated", rf"{_SEAT}KV Cache is allocated\. .{{0,60}}?K size: (?P<k>{_NUM} GB), V size: (?P<v>{_NUM} GB)", "KV Cache is allocated. #tokens: 400000, K size: 24.00 GB, V size: 24.00 GB", 48 << 30, "sglang-kv-bytes", _both),
    _of("kv_available_bytes", "sglang", "Cache is allocated", rf"{_SEAT}KV Cache is allocated\. .{{0,60}}?\bKV size: (?P<value>{_NUM} GB)", "[2027-03-02 04:05:06 PP3] KV Cache is allocated. #tokens: 90000, KV size: 1.50 GB", 1.5 * (1 << 30), "sglang-kv-latent"),
    _of("weights_bytes", "llama.cpp", ("model buffer size", "load_tensors: "), rf"(?:CUDA|ROCm|Vulkan|SYCL|Metal|CANN|MUSA)(?P<device>\d{{1,3}})? (?:model )?buffer size = +(?P<value>{_SIZE})", "load_tensors:        CUDA0 model buffer size =  4096.00 MiB", 4 << 30, "llamacpp-weights"),
    _of("kv_available_bytes", "llama.cpp", "KV buffer size", rf"(?:CUDA|ROCm|Vulkan|SYCL|Metal|CANN|MUSA)(?P<device>\d{{1,3}})? KV buffer size = +(?P<value>{_SIZE})", "llama_kv_cache:      CUDA0 KV buffer size =  1024.00 MiB", 1 << 30, "llamacpp-kv"),
    _of("free_at_start_bytes", "llama.cpp", "using device ", rf"\busing device (?:CUDA|ROCm|Vulkan|SYCL|Metal|CANN|MUSA)(?P<device>\d{{1,3}})? \(.{{1,200}}?\) - (?P<value>{_NUM} MiB) free", "llama_model_load_from_file_impl: using device CUDA1 (Card Y) (0000:02:00.0) - 8192 MiB free", 8 << 30, "llamacpp-free"),
    _of("activation_bytes", "llama.cpp", "compute buffer size", rf"(?:CUDA|ROCm|Vulkan|SYCL|Metal|CANN|MUSA)(?P<device>\d{{1,3}})? compute buffer size = +(?P<value>{_SIZE})", "llama_context:      CUDA1 compute buffer size =  1024.00 MiB", 1 << 30, "llamacpp-compute"),
    _of("kv_pool_tokens", "llama.cpp", " cells, ", rf"\bsize = +{_SIZE} \( *(?P<value>\d{{1,12}}) cells, ", "llama_kv_cache: size = 4096.00 MiB ( 65536 cells,  32 layers,  4/4 seqs), K (f16): 2048.00 MiB", 65536, "llamacpp-cells"),
    _of("activation_bytes", "trtllm", "execution context memory", rf"Allocated (?P<value>{_SIZE}) for execution context memory", "[MemUsageChange] Allocated 512.00 MiB for execution context memory.", 512 << 20, "trtllm-context"),
    _of("total_bytes", "trtllm", "max tokens in paged kv cache", rf"max tokens in paged kv cache: total: (?P<value>{_SIZE})", "Memory usage when calculating max tokens in paged kv cache: total: 24.00 GiB, available: 8.00 GiB", 24 << 30, "trtllm-total"),
    _of("num_gpu_blocks", "servers", ("primary pool", "num blocks", "block_count", "block count"), r"(?i)(?:blocks in kv cache primary pool|kv cache with num blocks|max(?:_| cache )?block[_ ]count|num[_ ]gpu[_ ]blocks)(?: ?[=:] ?| is )(?P<value>\d{1,12})\b", "Number of blocks in KV cache primary pool: 1024", 1024, "pool-blocks"),
    _of("block_size", "trtllm", "tokens per block", r"(?i)number of tokens per block: (?P<value>\d{1,6})\b", "[TensorRT-LLM][INFO] Number of tokens per block: 64.", 64, "trtllm-block-size"),
    _of("num_gpu_blocks", "servers", "num_pages", r"(?<![\w.-])(?:kv_)?num_pages ?[=:] ?(?P<value>\d{1,12})\b", "cache: num_pages=4099 page_size=1", 4099, "pool-pages"),
    _of("block_size", "servers", "page_size", r"(?<![\w.-])page_size ?[=:] ?(?P<value>\d{1,5})\b", "pool: page_size=16 pages=4099", 16, "page-size"),
    _of("block_size", "servers", "(block size ", r"\bblocks: \d{1,12} \(block size (?P<value>\d{1,6})\)", "# TT blocks: 1025 (block size 32), max tokens all users: 32768", 32, "pool-block-size"),
    _of("kv_available_bytes", "xllm", "max cache size", rf"(?i)\bmax cache size: (?P<value>{_SIZE})", "engine.cpp:155] Block size in bytes: 2.00 MB, max cache size: 4.00 GB, max memory utilization: 0.8", 4 << 30, "xllm-cache-size"),
    _of("kv_pool_tokens", "sglang", "max_total_num_tokens=", r"\bmax_total_num_tokens=(?P<value>\d{2,12})\b", "[2027-03-02 04:05:06 TP0] max_total_num_tokens=400000, chunked_prefill_size=8192", 400000, "sglang-max-total"),
    Pattern(
        # what a prompt finds in the radix cache of its worker, and what is computed
        "sglang-prefill", "sglang", ("#cached-token",), regex(r"Prefill batch.{0,80}?#new-token: (?P<new>\d{1,9}), #cached-token: (?P<hit_tokens>\d{1,9})"), "cache_lookup",
        (("[2027-03-02 04:05:06 TP0] Prefill batch, #new-seq: 1, #new-token: 300, #cached-token: 7200, token usage: 0.10, #running-req: 1, #queue-req: 0,", {"tier": "radix", "tokens": 7500, "hit_tokens": 7200}),
         ("Prefill batch. #new-seq: 2, #new-token: 500, #cached-token: 0, token usage: 0.01, #running-req: 0, #queue-req: 0", {"tokens": 500, "hit_tokens": 0})),
        convert=lambda row, match: {"tier": "radix", "tokens": int(match["new"]) + int(match["hit_tokens"]), "hit_tokens": int(match["hit_tokens"])},
    ),
    Pattern(
        # the load at each batch: `token usage` is the share of the pool that live requests hold
        "sglang-load", "sglang", ("#running-req",), regex(r"(?:(?:Prefill|Decode) batch\b.{0,200}?|^\s*)#running-req: (?P<running>\d{1,6})\b.*"), "engine_stat", convert=_load,
        samples=(
            ("[2027-03-02 04:05:06 TP0] Decode batch, #running-req: 4, #token: 52000, token usage: 0.13, cuda graph: True, gen throughput (token/s): 212.50, #queue-req: 3,",
             {"running": 4, "waiting": 3, "kv_used": 0.13, "generation_tokens_per_s": 212.5}),
            ("Prefill batch. #new-seq: 2, #new-token: 500, #cached-token: 0, token usage: 0.01, #running-req: 0, #queue-req: 0", {"running": 2, "waiting": 0, "kv_used": 0.01}),
            ("Prefill batch. #new-seq: 1, #new-token: 500, token usage: 0.61, #running-req: 0, #unbootstrapped-req: 7, #queue-req: 2, #transferring-req: 31", {"running": 1, "waiting": 2, "kv_used": 0.61, "generation_tokens_per_s": 0.0}),
            ("#running-req: 0, #queue-req: 9", {"running": 0, "waiting": 9, "kv_used": None}),  # as a person notes it
            ("Decode batch, #running-req: 4, #full token: 900, full token usage: 0.02, mamba num: 31, mamba usage: 0.97, #queue-req: 0", {"running": 4, "kv_used": 0.02, "state_used": 0.97}),
        ),
    ),
    Pattern(
        # what a load generator was told to ask for: the longest context of its requests, prompt and answer together
        "bench-lengths", "servers", ("input-len", "input_len", "prompt-len", "prompt_len"),
        regex(r"--(?:\w{1,20}[-_])?(?:input|prompt)[-_]len(?:gth)?[ =](?P<input>\d{1,9})\b.{0,300}?--(?:\w{1,20}[-_])?output[-_]len(?:gth)?[ =](?P<output>\d{1,9})\b"), "note",
        (("python bench.py --random-input-len 5000 --rate 2 --random-output-len 300", {"topic": "asked-context", "value": 5300}),),
        convert=lambda row, match: {"topic": "asked-context", "value": float(int(match["input"]) + int(match["output"])), "text": match.string.strip()[:300]},
    ),
    Pattern(
        # a statement of a traceback: what the engine was about to compute
        "sglang-input-logprobs", "sglang", ("input_logprobs", "input_token_logprobs", "input_top_logprobs"),
        regex(r"^\s*(?:\w{1,40}, ){0,4}input_(?:token_|top_)?logprobs\w{0,20}(?:, \w{1,40}){0,4} = [\w.]{1,80}\("), "note",
        (("    input_token_logprobs = self.compute_logprobs(rows)", {"topic": "prompt-logprobs"}),),
        const={"topic": "prompt-logprobs"}, convert=lambda row, match: {**row, "text": match.string.strip()[:300]},
    ),
    *(
        # what Ollama counts before it starts a runner, where nobody says how many layers to put on the device (-1): it takes those that fit
        Pattern(
            f"ollama-{name.replace('_', '-')}", "ollama", ("layers.requested=-1",),
            regex(rf"\blayers\.requested=-1\b.{{0,500}}?\b{re.escape(field)}=\"?\[?(?P<value>{_SIZE})"), "engine_figure",
            (('level=INFO msg="offload to cuda" layers.requested=-1 layers.model=33 layers.offload=12 layers.split="" memory.available="[9.0 GiB]" memory.required.full="20.0 GiB" '
              'memory.required.partial="8.5 GiB" memory.required.kv="4.0 GiB" memory.weights.total="11.0 GiB" memory.graph.full="5.0 GiB"', {"name": name, "value": value}),),
            convert=_figure(name),
        )
        for name, field, value in (
            ("model_needs_bytes", "memory.required.full", 20 << 30), ("model_finds_bytes", "memory.available", 9 << 30), ("model_kv_bytes", "memory.required.kv", 4 << 30),
            ("model_weights_bytes", "memory.weights.total", 11 << 30), ("model_graph_bytes", "memory.graph.full", 5 << 30),
        )
    ),
    *(
        # whether the whole model will fit, as its scheduler says before it counts layers
        _of(name, "ollama", "new model will ", rf"\bnew model will (?:not )?fit in available VRAM\b.{{0,400}}?\b{field}=\"?(?P<value>{_SIZE}|\d{{7,15}}\b)",
            'msg="new model will not fit in available VRAM, offloading partially" gpu=GPU-0 available=9663676416 required="20.0 GiB"', value, f"ollama-{field}")
        for name, field, value in (("model_needs_bytes", "required", 20 << 30), ("model_finds_bytes", "available", 9 << 30))
    ),
    *(
        # the same of llama.cpp, which then takes away what nobody has asked for by name: of the length, or of the layers
        _of(name, "llama.cpp", "projected to use ", pattern, "llama_params_fit_impl: projected to use 20480 MiB of device memory vs. 9216 MiB of free device memory", value, f"llamacpp-{field}")
        for name, field, pattern, value in (
            ("projected_needs_bytes", "projected", rf"\bprojected to use (?P<value>{_SIZE}) of device memory", 20 << 30),
            ("projected_finds_bytes", "projected-free", rf"\bprojected to use \d.{{0,60}}? vs\. (?P<value>{_SIZE}) of free device memory", 9 << 30),
        )
    ),
    *(
        # how many of its layers are on a device
        _of(name, dialect, anchor, pattern, sample, value, f"{dialect}-{name.replace('_', '-')}")
        for dialect, anchor, sample, parts in (
            ("llama.cpp", " layers to GPU", "load_tensors: offloaded 12/33 layers to GPU", (r"\boffloaded (?P<value>\d{1,4})/\d{1,4} layers to GPU", r"\boffloaded \d{1,4}/(?P<value>\d{1,4}) layers to GPU")),
            ("ollama", "layers.requested=-1", 'msg="offload to cuda" layers.requested=-1 layers.model=33 layers.offload=12 layers.split=""', (r"\blayers\.requested=-1\b.{0,60}?\blayers\.offload=(?P<value>\d{1,4})\b", r"\blayers\.requested=-1\b.{0,40}?\blayers\.model=(?P<value>\d{1,4})\b")),
        )
        for name, pattern, value in (("layers_on_device", parts[0], 12), ("layers_of_model", parts[1], 33))
    ),
    # all weights, wherever they are put
    _of("told_weights_bytes", "llama.cpp", " BPW)", rf"\b(?:file|model) size +(?:=|:) +(?P<value>{_SIZE}) \([\d.]{{1,8}} BPW\)", "print_info: file size   = 4.00 GiB (4.85 BPW) ", 4 << 30, "llamacpp-file-size"),
    Pattern(
        "ollama-slots", "ollama", ("starting llama server", "starting runner"), regex(r"\bstarting (?:llama server|runner)\b.{0,600}? --parallel (?P<value>\d{1,5})\b"), "engine_flag",
        (('level=INFO source=server.go:375 msg="starting llama server" cmd="/usr/bin/ollama runner --model /m/a --ctx-size 8192 --parallel 4 --port 41177"', {"flag": "max_num_seqs", "value": "4"}),),
        const={"flag": "max_num_seqs", "origin": "logged"},
    ),
    Pattern(
        # how far a prompt is read: the tokens that are in the cache with this batch, and their share of the prompt
        "llamacpp-prompt-progress", "llama.cpp", ("prompt processing progress",),
        regex(r"\bprompt processing progress, n_(?:tokens|past) = (?P<value>\d{1,9}),.{0,60}\bprogress = (?P<text>[01]\.\d{1,9})"), "note",
        (("slot update_slots: id  1 | task 5 | prompt processing progress, n_tokens = 6144, batch.n_tokens = 2048, progress = 0.750000", {"topic": "prompt-progress", "value": 6144.0, "text": "0.750000"}),),
        const={"topic": "prompt-progress"},
    ),
    Pattern(
        "llamacpp-kv-refused", "llama.cpp", ("buffer for kv cache",), regex(r"failed to allocate buffer for kv cache"), "startup_check",
        (("llama_kv_cache_init: failed to allocate buffer for kv cache", {"name": "kv-below-max-model-len"}),), const={"name": "kv-below-max-model-len"},
    ),
    Pattern(
        "static-pool-refused", "servers", ("ot enough memory", "o enough gpu memory", "o enough memory", "nsufficient GPU memory", "nsufficient device memory"),
        regex(r"(?i)not enough memory\b.{0,40}(?:increas|rais)\w{1,4} .{0,20}\bmem(?:ory)?[-_ ](?:fraction|util)|(?:\bno|not) enough (?:gpu |device )?memory for (?:the )?(?:kv|cache|runtime)|insufficient (?:gpu|device) memory for (?:the )?kv"),
        "startup_check", (("RuntimeError: Not enough memory. Please try increasing --mem-fraction-static.", {"name": "no-kv-blocks"}),),
        const={"name": "no-kv-blocks"}, convert=lambda row, match: {**row, "text": match.string.strip()[:400]},
    ),
    Pattern(
        # the same, and the share with which it would do
        "static-share-refused", "servers", ("o GPU memory for", "o device memory for", "o memory for", "othing for the"),
        regex(r"(?i)\b(?:no (?:gpu |device )?memory|nothing) for (?:the )?(?:kv|cache)\b.{0,80}?(?:fraction|util)[\w-]*[ =:]+(?P<utilization>0?\.\d+|1(?:\.0+)?)\b.{0,40}?\b(?:rais|increas|set)\w{0,4} .{0,30}?(?P<needed_utilization>0?\.\d+)"),
        "startup_check",
        (("ValueError: the weights leave no memory for the KV cache at mem_fraction_static=0.70: raise it to 0.7421 or more", {"name": "no-kv-blocks", "utilization": 0.7, "needed_utilization": 0.7421}),),
        const={"name": "no-kv-blocks"}, convert=_shares,
    ),
    Pattern(
        # not a cell is left for the next token of those that run
        "llamacpp-no-slot", "llama.cpp", ("find free space in the KV cache", "find a memory slot for batch"),
        regex(r"failed to find (?:free space in the KV cache|a memory slot for batch)"), "preemption",
        (("srv  update_slots: failed to find free space in the KV cache, retrying with smaller batch size, i = 0, n_batch = 8, ret = 1", {"mode": "ABORT"}), ("decode: failed to find a memory slot for batch of size 2", {"mode": "ABORT"})),
        const={"mode": "ABORT"},
    ),
    Pattern(
        # those that run lose their blocks and begin again later
        "sglang-retracted", "sglang", ("#retracted_reqs",), regex(r"(?:KV cache pool is full|[Dd]ecode out of memory)\b.{0,80}?#retracted_reqs: \d"), "preemption",
        (("KV cache pool is full. Retract requests. #retracted_reqs: 2, #new_token_ratio: 0.4110 -> 0.8120", {"mode": "RECOMPUTE"}), ("Decode out of memory happened. #retracted_reqs: 1, #new_token_ratio: 0.31 -> 0.71", {"mode": "RECOMPUTE"})),
        const={"mode": "RECOMPUTE"},
    ),
    Pattern(
        "sglang-capture", "sglang", ("avail_mem=",), regex(r"\bCapturing [^|\n]{1,80}\bavail_mem=[^|\n]{1,40}\|[^|\n]{0,60}\| (?P<text>\d{1,5}/\d{1,5})\b"), "milestone",
        (("Capturing batches (bs=64 avail_mem=5.10 GB):  40%|####      | 14/36 [00:07<00:11]", {"name": "capture-progress", "text": "14/36"}),
         ("Capturing prefill num_tokens=512 (avail_mem=0.44 GB):  46%|####6     | 27/58 [00:13<00:15]", {"text": "27/58"})),
        const={"name": "capture-progress"},
    ),
    Pattern(
        # what it asks for are tokens of the pool, and the step ends the server
        "sglang-pool-exhausted", "sglang", ("out of memory. Try to lower your batch size",), regex(r"\b(?:Prefill|Decode) out of memory\. Try to lower your batch size"), "preemption",
        (("RuntimeError: Prefill out of memory. Try to lower your batch size.", {"mode": "ABORT"}), ("Decode out of memory. Try to lower your batch size.", {"mode": "ABORT"})),
        const={"mode": "ABORT"},
    ),
    Pattern(
        # the launcher, of the scheduler of a rank that went away without a word, and of what it left with
        "sglang-scheduler-dead", "sglang", ("scheduler is dead", "] Exit code: "), regex(r"\bRank (?P<rank>\d{1,4}) scheduler is dead\b|^\[[\d: -]{19}\] Exit code: (?P<exit_code>-?\d{1,3})\s*$"), "process_exit",
        (("Rank 5 scheduler is dead. Please check if there are relevant logs.", {"name": "scheduler", "rank": 5}), ("[2027-03-02 04:05:06] Exit code: -9", {"name": "scheduler", "exit_code": -9})), const={"name": "scheduler"},
    ),
    Pattern(
        "model-length", "servers", ("model_max_len", "max_context_len", "max_ctx_len", "max_seq_length"), regex(r"(?<![\w.-])(?:model_max_len(?:gth)?|max_context_len(?:gth)?|max_ctx_len|max_seq_length) ?[=:] ?(?P<value>\d{2,9})\b"), "engine_flag",
        (("page_size=1 model_max_len=32768", {"flag": "max_model_len", "value": "32768"}),), const={"flag": "max_model_len", "origin": "logged"},
    ),
    Pattern(
        # what all sequences share; where a line below tells that of one, the last of them counts
        "llamacpp-context", "llama.cpp", ("n_ctx ", "n_ctx_seq ", "n_ctx_per_seq ", "n_ctx_slot "), regex(r"\bn_ctx(?:_seq|_per_seq|_slot)? += (?P<value>\d{2,9})\s*$"), "engine_flag",
        (("llama_context: n_ctx         = 32768", {"flag": "max_model_len", "value": "32768"}), ("llama_context: n_ctx_seq     = 8192", {"flag": "max_model_len", "value": "8192"})),
        const={"flag": "max_model_len", "origin": "logged"},
    ),
    Pattern(
        "llamacpp-slots", "llama.cpp", ("n_seq_max ", "n_slots ", "n_parallel "), regex(r"\bn_(?:seq_max|slots|parallel) += (?P<value>\d{1,5})\b"), "engine_flag",
        (("llama_context: n_seq_max     = 4", {"flag": "max_num_seqs", "value": "4"}), ("srv  init: n_slots = 2, n_ctx_slot = 8192", {"flag": "max_num_seqs", "value": "2"})),
        const={"flag": "max_num_seqs", "origin": "logged"},
    ),
    Pattern(
        # which call of the shards failed: its trial of the longest step, a prompt, or the next tokens
        "tgi-method", "tgi", ("encountered an error",), regex(r"\bMethod (?P<function>Warmup|Prefill|Decode) encountered an error"), "frame",
        (("2027-03-02T04:05:06.1Z ERROR text_generation_launcher: Method Decode encountered an error.", {"function": "decode", "file": "text_generation_server"}),
         ("ERROR text_generation_launcher: Method Warmup encountered an error.", {"function": "profile_run", "file": "text_generation_server"})),
        convert=lambda row, match: {"function": "profile_run" if match["function"] == "Warmup" else match["function"].lower(), "file": "text_generation_server"},
    ),
    _serving("sglang", "fired up and ready", r"The server is fired up and ready to roll", "The server is fired up and ready to roll!", "sglang-ready"),
    _serving("llama.cpp", "server is listening", r"server is listening on http", "main: server is listening on http://127.0.0.1:8080 - starting the main loop", "llamacpp-ready"),
    _serving("ollama", "runner started in", r"\b(?:llama )?runner started in \d[\d.]* (?:ms|s(?:econds)?)\b", 'level=INFO source=server.go:1 msg="llama runner started in 4.20 seconds"', "ollama-ready"),
    _serving("trtllm", "Beam 0]", r"^Output \[Text \d+ Beam 0\]: \S", 'Output [Text 0 Beam 0]: " Salt stays behind."', "trtllm-answered"),
    _serving("tgi", "Connected", r"\btext_generation_router\S*: .{0,80}Connected\s*$", "2027-03-02T04:05:06.1Z  INFO text_generation_router::server: router/src/server.rs:2210: Connected", "tgi-ready"),
    _serving("tgi", "Starting HTTP server", r"\btext_embeddings_router\S*: .{0,80}Starting HTTP server", "2027-03-02T04:05:06.1Z  INFO text_embeddings_router::http::server: router/src/http/server.rs:1840: Starting HTTP server: 0.0.0.0:80", "tei-ready"),
    # its launcher ends what it started: at a signal, or behind the error of a shard (launcher/src/main.rs)
    _serving("tgi", "Shutting down shards", r"\btext_generation_launcher: Shutting down shards\s*$", "2027-03-02T04:05:06.1Z  INFO text_generation_launcher: Shutting down shards", "tgi-ends", "terminated"),
)  # fmt: skip
"""Statements of other engines about weights, KV cache and service."""
