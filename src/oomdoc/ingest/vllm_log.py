"""What vLLM itself writes, 0.1.7 to 0.33.0: settings, milestones, memory figures, statistics, refusals, deaths.

Shapes were read from the sources of the engine's releases; docs/decisions/0004-patterns.md says how versions are told
apart (by wording, never by file name or line number, which move every release). Labels lie in old versions: what 0.4.0 to
0.8.0 call `GB` is 2**30, so every pattern here reads binary. The scan over the text is `text_log`'s; this module is data.

Sample of the three record layouts:
    INFO 01-05 12:00:00 model_runner.py:415] Loading model weights took 14.9888 GB             (to 0.7.3)
    INFO 01-05 12:00:00 [gpu_model_runner.py:1801] Model loading took 14.9889 GiB and 3.2 seconds  (0.8.0 to 0.30.0)
    (EngineCore pid=77) INFO 01-05 12:00:00 [gpu_worker.py:440] Available KV cache memory: 9.1 GiB  (0.31.0 on)
"""

from __future__ import annotations

import re
from typing import Any

from oomdoc.ingest.base import Convert, Pattern, Sample, interval, proved
from oomdoc.ingest.vocabulary.quantity import read
from oomdoc.regexes import regex
from oomdoc.units import GIB

_NUM = r"-?(?:\d[\d,]{0,24}(?:\.\d{1,24})?|\.\d{1,24})"  # bounded and in one way only: a run of digits costs no time


def _figure(name: str, factor: float = 1.0) -> Convert:
    """A converter for `engine_figure`: group `value` times `factor`, with the interval that its decimals allow."""

    def convert(row: dict[str, Any], match: re.Match[str]) -> dict[str, Any]:
        printed = match["value"].replace(",", "")
        value = float(printed)
        low, high = interval(value, printed, factor) if "." in printed else (None, None)
        return {"name": name, "value": value * factor, "low": low, "high": high}

    return convert


def _vllm(name: str, versions: str, anchor: str | tuple[str, ...], pattern: str, table: str, *samples: Sample, dialect: str = "vllm", **more: Any) -> Pattern:  # fmt: skip
    """A pattern of a line of the engine's, or of what stands around it, found by one literal or by one of several."""
    anchors = (anchor,) if isinstance(anchor, str) else anchor
    return Pattern(name, dialect, anchors, regex(pattern), table, samples, versions=versions, **more)


def _gib(
    name: str,
    versions: str,
    pattern: str,
    anchor: str | tuple[str, ...],
    sample: str,
    value: float,
    *more: tuple[str, float],
) -> Pattern:
    """A pattern for one memory figure printed in units of 2**30.

    The same figure is printed in several dialects: a prefix `v0_`, `v0_results_`, `breakdown_`, `profiled_`, `snapshot_` or `cpu_` names the pattern, not the figure.
    """
    figure = re.sub(r"^(?:v0_results|v0|breakdown|profiled|snapshot|cpu)_", "", name)
    samples = ((text, {"name": figure, "value": number}) for text, number in ((sample, value), *more))
    label = "figure-" + name.removesuffix("_bytes").replace("_", "-")
    return _vllm(label, versions, anchor, pattern, "engine_figure", *samples, convert=_figure(figure, GIB))


def _count(name: str, versions: str, pattern: str, anchor: str, sample: str, value: float, label: str = "") -> Pattern:
    """A pattern for one plain number."""
    told = (sample, {"name": name, "value": value})
    label = "figure-" + (label or name.replace("_", "-"))
    return _vllm(label, versions, anchor, pattern, "engine_figure", told, convert=_figure(name))


def _milestone(
    name: str, versions: str, anchor: str | tuple[str, ...], pattern: str, sample: str, text: str | None = None, label: str = ""
) -> Pattern:  # fmt: skip
    """A pattern for a step of the server's life; group `text` is its detail."""
    told = (sample, {"name": name, "text": text})
    return _vllm(label or f"milestone-{name}", versions, anchor, pattern, "milestone", told, const={"name": name})


def _flag(
    flag: str,
    versions: str,
    name: str,
    anchor: str | tuple[str, ...],
    pattern: str,
    sample: str,
    value: str,
    fixed: str = "",
    origin: str = "config",
) -> Pattern:
    """A pattern for one setting that a line of its own tells; `fixed` is the value where the line itself is the whole news."""

    def convert(row: dict[str, Any], match: re.Match[str]) -> dict[str, Any]:
        return {"flag": flag, "origin": origin, "value": fixed or _SAID.get(match["value"], match["value"])}

    told = (sample, {"flag": flag, "value": _SAID.get(value, value), "origin": origin})
    return _vllm(name, versions, anchor, pattern, "engine_flag", told, convert=convert)


def _refusal(
    name: str, versions: str, anchor: str | tuple[str, ...], pattern: str, *samples: Sample | str,
    check: str = "", convert: Convert | None = None, unit: str = "", **fixed: str,
) -> Pattern:  # fmt: skip
    """A pattern for a refusal by the engine's own arithmetic; `check` names it where several wordings, or a pattern of another name, tell it."""
    const = {"name": check or name, **fixed}
    shown = proved(const, samples)
    return _vllm(name, versions, anchor, pattern, "startup_check", *shown, const=const, convert=convert or _check, unit=unit)  # fmt: skip


def _note(topic: str, versions: str, anchor: str | tuple[str, ...], pattern: str, *samples: Sample | str, dialect: str = "vllm") -> Pattern:  # fmt: skip
    """A pattern for a note of the topic that it is called after."""
    const = {"topic": topic}
    return _vllm(topic, versions, anchor, pattern, "note", *proved(const, samples), dialect=dialect, const=const)


# how a state is worded and how a flag says it
_SAID = {
    "enabled": "True", "disabled": "False", "is enabled": "True", "is disabled": "False", "will be enabled": "False",
}  # fmt: skip


_STAT_KEYS = regex(
    r"(?P<key>Swapped|Pending|Waiting|Preemptions|(?:[A-Z]{1,8} )?KV cache usage|External prefix cache hit rate"
    r"|MM cache hit rate|Prefix cache hit rate): (?P<value>[\d.]+?)(?=%| reqs|,|\.?$)"
)


_STAT_COUNTS = {"Waiting": "waiting", "Pending": "waiting", "Swapped": "swapped", "Preemptions": "preemptions"}


def _stat(row: dict[str, Any], match: re.Match[str]) -> dict[str, Any]:
    """Finish a statistics row: the optional parts by key, never by position."""
    for part in _STAT_KEYS.finditer(match["rest"]):
        key, value = part["key"], float(part["value"])
        if key in _STAT_COUNTS:
            row[_STAT_COUNTS[key]] = int(value)
        elif key.endswith("KV cache usage"):
            row.setdefault("kv_used", value / 100)  # the first: what is swapped out stands behind it
        elif key == "Prefix cache hit rate":
            row["prefix_hit_rate"] = value / 100
    del row["rest"]
    return row


def _prefix_rate(row: dict[str, Any], match: re.Match[str]) -> dict[str, Any] | None:
    return None if row["prefix_hit_rate"] < 0 else row


def _check(row: dict[str, Any], match: re.Match[str]) -> dict[str, Any]:
    row["text"] = match.string.strip()[:400]
    return row


def _profiling(row: dict[str, Any], match: re.Match[str]) -> dict[str, Any]:
    row = _check(row, match)
    for name, group, unit in (("free_bytes", "a", "ua"), ("wanted_bytes", "b", "ub")):
        if match[group]:
            row[name] = round(float(match[group]) * (GIB if match[unit] else 1))
        row.pop(group, None)
        row.pop(unit, None)
    row.pop("what", None)
    return row


def _step(row: dict[str, Any], match: re.Match[str]) -> dict[str, Any]:
    text = match.string
    prompts = [int(size) for size in re.findall(r"prompt_token_ids_len=(\d+)", text)]
    return {
        "scheduled_tokens": int(match["scheduled_tokens"]),
        "largest_prompt_tokens": max(prompts) if prompts else None,
        "prompt_logprobs": bool(re.search(r"prompt_logprobs=\d", text)),
    }


_V064 = (
    "Memory profiling results: total_gpu_memory=39.50GiB initial_memory_usage=0.50GiB peak_torch_memory=24.00GiB memory_usage_post_profile=0.75GiB "
    "non_torch_memory=0.25GiB kv_cache_size=11.00GiB gpu_memory_utilization=0.90"
)
_LOADED = ("Model loading took", "Loading model weights took")

_SHELL_ENDS = {"Killed": -9, "Aborted": -6, "Segmentation fault": -11, "Bus error": -7}
"""What a shell calls the signal that ended a job."""


def _cut(message: str, least: int = 20) -> str:
    """An expression for a message that ends in the middle, behind as much of it as no other message begins with.

    >>> [bool(re.search(_cut("ValueError: Free memory on device"), text)) for text in ("ValueError: Free memory on de", "ValueError: Free", "ValueError: Free memory on disk")]
    [True, False, False]
    """
    tail = ""
    for letter in reversed(message[least:]):
        tail = f"(?:{re.escape(letter)}{tail})?"
    return rf"{re.escape(message[:least])}{tail}[.\u2026]{{0,3}}\s*$"


PATTERNS: tuple[Pattern, ...] = (
    # an entry of a snapshot's trace that somebody wrote out: action, size, what the device had left
    Pattern(
        "trace-oom", "torch", ("device_free",),
        regex(r"(?i)\boom\b[^\n]{0,60}?\bsize[\"']?\s*[=:]\s*(?P<requested_bytes>\d{5,15})\b[^\n]{0,120}?\bdevice_free[\"']?\s*[=:]\s*(?P<free_bytes>\d{1,15})\b"),
        "oom",
        (
            ("  oom            size=1879048192   device_free=664797184", {"requested_bytes": 1879048192, "free_bytes": 664797184, "allocator": "torch"}),
            ("action: oom, size: 536870912, device_free: 20971520", {"requested_bytes": 536870912, "free_bytes": 20971520}),
        ),
        const={"allocator": "torch"},
        convert=lambda row, match: {**row, "text": match[0][:200]},
    ),
    # the driver of Tegra boards (Jetson), which have no NVML: what was asked of the memory that host and device share; 12 is ENOMEM
    Pattern(
        "tegra-alloc", "torch", ("NvMapMemAllocInternalTagged",),
        regex(r"NvMapMemAllocInternalTagged: (?P<requested_bytes>\d{4,15}) error 12\b"),
        "oom",
        (("NvMapMemAllocInternalTagged: 805306368 error 12", {"requested_bytes": 805306368, "allocator": "tegra"}),),
        const={"allocator": "tegra"},
        convert=lambda row, match: {**row, "text": match[0]},
    ),
    # ---- a server's life
    Pattern(
        "server-version", "vllm", ("server version ",), regex(r"vLLM (?:API )?server version (?P<text>[^\s,]+)"),
        "milestone", const={"name": "server-version"}, versions="0.4.0.post1 →", samples=(
            ("vLLM API server version 0.9.1", {"name": "server-version", "text": "0.9.1"}),
            ("vLLM server version 0.32.0, serving model /models/a", {"name": "server-version", "text": "0.32.0"}),
        ),
    ),
    Pattern(
        "banner-version", "vllm", ("version 0.", "  version "), regex(r"(?:█  |^)version (?P<text>\d[^\s,]*)(?=\s*$)"),
        "milestone", const={"name": "server-version"}, versions="0.15.1 →", samples=(
            ("  █▄█▀ █     █     █     █  version 0.16.0", {"name": "server-version", "text": "0.16.0"}),
            ("version 0.24.0", {"name": "server-version", "text": "0.24.0"}),  # the art was not copied
        ),
    ),
    # where the settings were cut away, the art is all that names the model
    _flag("model", "0.15.1 →", "banner-model", "  model  ", r"█ {1,3}model {2,4}(?P<value>\S{1,300})(?=\s*$)",
          "  █▄█▀ █     █     █     █  model   /models/Aurora-9B", "/models/Aurora-9B"),
    Pattern(
        "engine-init", "vllm", ("LLM engine",),
        regex(r"Initializing an? (?:(?P<generation>V[01]) )?LLM engine (?:\(v(?P<version>[^)]+)\) )?with config: (?P<config>.*)", re.S),
        "milestone", const={"name": "engine-init"},
        convert=lambda row, match: {"name": "engine-init", "text": " ".join(x for x in (match["generation"], match["version"]) if x) or None},
        versions="0.1.7 →", samples=(
            ("Initializing a V1 LLM engine (v0.11.0) with config: model='m', dtype=torch.bfloat16", {"name": "engine-init", "text": "V1 0.11.0"}),
            ("Initializing an LLM engine with config: model='m'", {"name": "engine-init", "text": None}),
        ),
    ),
    _milestone("server-process", "0.1.7 →", "Started server process", r"Started server process \[(?P<text>\d+)\]",
               "INFO:     Started server process [4127]", "4127"),
    _milestone("load-start", "0.5.4 →", "Starting to load model", r"Starting to load model (?P<text>.*?)(?:\.\.\.)?$",
               "Starting to load model /models/qwen...", "/models/qwen"),
    _milestone("load-progress", "0.5.0.post1 →", "checkpoint shards:", r"checkpoint shards:\s+\d+% Completed \| (?P<text>\d+/\d+)",
               "Loading safetensors checkpoint shards:  25% Completed | 1/4 [00:02<00:06,  2.1s/it]", "1/4"),
    _milestone("load-draft", "0.8.5 →", "Loading drafter model", r"Loading drafter model(?P<text>.*)",
               "Loading drafter model...", "..."),
    _milestone("load-draft", "0.16.0 →", "load draft model", r"Starting to load draft model(?P<text>.*)", "Starting to load draft model /models/draft...", " /models/draft...",
               label="milestone-load-draft-v2"),
    _milestone("weights-read", "0.8.0 →", "Loading weights took", r"Loading weights took (?P<text>[\d.]+) seconds",
               "Loading weights took 19.44 seconds", "19.44"),
    _milestone("loaded", "0.4.0.post1 →", _LOADED, r"(?:Loading model weights|Model loading) took (?P<text>[\d.]+ G)",
               "Model loading took 33.9833 GiB and 21.104523 seconds", "33.9833 G"),
    _milestone("image-profile", "0.6.2 – 0.10.2", "profile run for multi-modal", r"Starting profile run for multi-modal models", "Starting profile run for multi-modal models."),
    _milestone("load-draft", "0.4.0 – 0.8.4", "Configuring SpecDecodeWorker", r"Configuring SpecDecodeWorker with proposer=(?P<text>[^\s]{1,80})",
               "Configuring SpecDecodeWorker with proposer=<class-of-the-proposer>", "<class-of-the-proposer>", "spec-decode-worker"),
    _milestone("serving", "0.1.7 →", "Processed prompts:", r"(?P<text>Processed prompts): +[1-9]?\d%", "Processed prompts:  38%|###8  | 382/1000 [04:12<05:40,  1.81it/s]", "Processed prompts", "offline-progress"),
    _milestone("profiled", "0.6.4.post1 – 0.10.2", "Memory profiling", r"Memory profiling (?P<text>takes|results)", "Memory profiling takes 1.07 seconds", "takes"),
    _milestone("kv-available", "0.9.2 →", "KV cache memory", r"Available KV cache memory: (?P<text>-?[\d.]+ GiB)",
               "Available KV cache memory: 36.12 GiB", "36.12 GiB"),
    _milestone("kv-sized", "0.8.0 →", "cache size: ", r"KV cache size: (?P<text>[\d,]+) tokens", "GPU KV cache size: 473,440 tokens", "473,440"),
    _milestone("kv-blocks", "0.1.7 – 0.11.0", " blocks: ", r"# \w+ blocks: (?P<text>\d+)", "# GPU blocks: 2356, # CPU blocks: 2048", "2356"),
    _milestone("capture-start", "0.2.7 – 0.10.2", "Capturing ", r"Capturing (?:the model for CUDA graphs|cudagraphs for decoding)(?P<text>)",
               "Capturing cudagraphs for decoding. This may lead to unexpected consequences", ""),
    _milestone("capture-start", "0.2.7 – 0.6.3.post1", "CUDA graphs can take", r"CUDA graphs can take additional (?P<text>\S+ GiB)", "CUDA graphs can take additional 1~3 GiB memory per GPU.", "1~3 GiB",
               label="milestone-capture-notice"),
    _milestone("capture-progress", "0.6.0 →", "[Warmup][Graph", r"\[Warmup\]\[Graph/\w+\]\s?\[(?P<text>\d+/\d+)\]",
               "[Warmup][Graph/decode][12/90] batch_size:8 query_len:1 num_blocks:512 free_mem:9.41 GiB", "12/90", label="hpu-capture-progress"),
    _milestone("capture-progress", "0.6.6.post1 →", "Capturing CUDA graph", r"Capturing CUDA graph(?: shapes|s(?: \([^)]*\))?):\s+\d+%\|[^|]*\| (?P<text>\d+/\d+)",
               "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):   3%|▎         | 2/67 [00:01<00:40,  1.6it/s]", "2/67"),
    _milestone("captured", "0.2.7 →", "capturing finished", r"(?<!Encoder )[Gg]raph capturing finished in (?P<text>\d+) secs",
               "Graph capturing finished in 24 secs, took 0.85 GiB", "24"),
    _milestone("compiled", "0.8.0 →", "Compiling a graph for ", r"Compiling a graph for .{1,60}? takes (?P<text>[\d.]+) s",
               "Compiling a graph for dynamic shape takes 31.07 s", "31.07"),
    _milestone("compile-cached", "0.8.0 →", "Directly load the compiled graph", r"Directly load the compiled graph\(s\) for (?P<text>.{1,60}?) from the cache",
               "Directly load the compiled graph(s) for dynamic shape from the cache, took 3.214 s", "dynamic shape"),
    _milestone("engine-ready", "0.6.5 →", "init engine", r"init engine \([^)]*\) took (?P<text>[\d.]+)",
               "init engine (profile, create kv cache, warmup model) took 61.02 seconds", "61.02"),
    _milestone("serving", "0.1.7 →", "startup complete", r"Application startup complete(?P<text>)\.", "INFO:     Application startup complete.", ""),
    _milestone("serving", "0.1.0 →", "Uvicorn running on", r"Uvicorn running on (?P<text>\S+)", "INFO:     Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)",
               "http://0.0.0.0:8000", label="milestone-listening"),
    # the offline class has no server: prompts that came back answered are its service
    _milestone("serving", "0.1.0 →", "Processed prompts", r"Processed prompts: 100%\|[^|]*\|\s*(?P<text>[1-9]\d*)/", "Processed prompts: 100%|██████████| 240/240 [00:20<00:00, 12.0it/s, est. speed input: 5100.00 toks/s]",
               "240", label="milestone-prompts-done"),
    _milestone("shutdown", "0.1.7 →", "Shutting down", r"^(?:INFO:\s+)?Shutting down(?P<text>)$", "INFO:     Shutting down", ""),
    _milestone("terminated", "0.6.6.post1 →", "KeyboardInterrupt: ter", r"KeyboardInterrupt: (?P<text>terminated)", "KeyboardInterrupt: terminated", "terminated"),
    _milestone("v0-fallback", "0.8.0 – 0.10.2", "Falling back to V0", r"(?P<text>.{0,80})Falling back to V0", "X is not supported by the V1 Engine. Falling back to V0.",
               "X is not supported by the V1 Engine. "),
    _milestone("sleeping", "0.11.2 →", "fall asleep", r"took (?P<text>[\d.]+) seconds to fall asleep", "It took 2.02 seconds to fall asleep.", "2.02"),
    _milestone("eager", "0.8.0 →", "Cudagraph is disabled", r"Cudagraph is disabled(?P<text>)", "Cudagraph is disabled under eager mode", ""),
    _milestone("lora", "0.6.3.post1 →", " LoRA adapter", r"(?P<text>Loaded new LoRA adapter[^.]{0,60})",
               "Loaded new LoRA adapter: name 'a', path '/x'", "Loaded new LoRA adapter: name 'a', path '/x'"),
    # ---- settings (the flags themselves are read by text_log through SETTINGS below)
    _flag("max_model_len", "0.9.2 →", "max-model-len", "Using max model len", r"Using max model len (?P<value>\d+)", "Using max model len 8192", "8192"),
    _flag("max_num_batched_tokens", "0.5.4 →", "chunked-prefill", "max_num_batched_tokens=", r"Chunked prefill is enabled with max_num_batched_tokens=(?P<value>\d+)",
          "Chunked prefill is enabled with max_num_batched_tokens=2048.", "2048"),
    _flag("max_model_len", "0.9.0.1 – 0.11.0", "default-length", "max-model-len is not specified", r"--max-model-len is not specified.* default length (?P<value>\d+)",
          "--max-model-len is not specified, it's currently using model's default length 131072", "131072", origin="default"),
    _flag("architecture", "0.10.2 →", "architecture", "Resolved architecture", r"Resolved architecture: (?P<value>\w+)", "Resolved architecture: LlamaForCausalLM", "LlamaForCausalLM"),
    _flag("kv_cache_dtype", "0.3.3 – 0.19.1", "kv-dtype", "data type to store kv cache", r"Using (?P<value>\w+) data type to store kv cache",
          "Using fp8 data type to store kv cache. It reduces", "fp8"),
    _flag("max_model_len", "0.14.1 →", "auto-fit", "Auto-fit max_model_len", r"Auto-fit max_model_len: reduced from \d+ to (?P<value>\d+)",
          "Auto-fit max_model_len: reduced from 131072 to 30000 to fit", "30000"),
    _flag("max_model_len", "0.5.4 – 0.10.2", "long-context", "has a long context length", r"has a long context length \((?P<value>\d+)\)\. This may cause ?OOM",
          "The model has a long context length (131072). This may causeOOM during the initial memory profiling phase", "131072"),
    _flag("enable_chunked_prefill", "0.4.3 – 0.10.2", "chunked-prefill-on", "hunked prefill is enabled", r"Chunked prefill is enabled(?: \(EXPERIMENTAL\)| by default)(?P<value>)",
          "Chunked prefill is enabled by default for models with max_model_len > 32K.", "True", fixed="True"),
    _flag("max_num_batched_tokens", "0.6.5 →", "batched-tokens-default", "max_num_batched_tokens to", r"(?:Setting|Defaulting) max_num_batched_tokens to (?P<value>\d+)",
          "Setting max_num_batched_tokens to 8192 for LLM_CLASS usage context.", "8192", origin="default"),
    _flag("max_num_batched_tokens", "0.33.0 →", "batched-tokens-raised", "Raising max_num_batched", r"Raising max_num_batched_tokens from \d+ to (?P<value>\d+)",
          "Raising max_num_batched_tokens from 2048 to 4096 to accommodate one item", "4096"),
    _flag("platform", "0.7.3 – 0.11.0", "platform", "detected platform", r"Automatically detected platform:? (?P<value>\w+)", "Automatically detected platform cuda.", "cuda"),
    _flag("attention_backend", "0.4.0.post1 →", "attention-backend", (" backend on V1 engine", " backend out of potential", " attention backend"),
          r"Using (?P<value>[A-Za-z_]\w*(?: [A-Z]\w*)?)(?: attention)? backend\b", "Using FLASH_ATTN attention backend out of potential backends: ['FLASH_ATTN']", "FLASH_ATTN"),
    _flag("model_runner", "0.16.0 →", "model-runner", "Model Runner", r"Using (?P<value>V\d) Model Runner", "Using V2 Model Runner", "V2"),
    _flag("async_scheduling", "0.14.1 – 0.25.1", "async-scheduling", "synchronous scheduling is", r"Asynchronous scheduling is (?P<value>enabled|disabled)",
          "Asynchronous scheduling is enabled.", "enabled"),
    _flag("graph_memory_profiling", "0.18.1 →", "graph-profiling", "graph memory profiling", r"CUDA graph memory profiling (?P<value>will be enabled|is enabled|is disabled)",
          "CUDA graph memory profiling is enabled (default since v0.21.0). The current", "is enabled"),
    _flag("skip_mm_profiling", "0.10.2 →", "encoder-not-profiled", "profiling for multimodal encoder", r"Skipping memory profiling for multimodal encoder(?P<value>)",
          "Skipping memory profiling for multimodal encoder and encoder cache.", "True", fixed="True"),
    # ---- memory figures
    _gib("v0_results_total_bytes", "0.6.4.post1", rf"profiling results: total_gpu_memory=(?P<value>{_NUM})GiB", "Memory profiling", _V064, 39.5 * GIB),
    _gib("v0_results_initial_used_bytes", "0.6.4.post1", rf"profiling results: .*?initial_memory_usage=(?P<value>{_NUM})GiB", "Memory profiling", _V064, 0.5 * GIB),
    _gib("v0_results_non_torch_bytes", "0.6.4.post1", rf"profiling results: .*?non_torch_memory=(?P<value>{_NUM})GiB", "Memory profiling", _V064, 0.25 * GIB),
    _gib("v0_results_kv_available_bytes", "0.6.4.post1", rf"profiling results: .*?kv_cache_size=(?P<value>{_NUM})GiB", "Memory profiling", _V064, 11.0 * GIB),
    _count("rank", "0.8.5 →", r"rank (?P<value>\d{1,5}) in world size \d{1,5} is assigned as DP rank", " is assigned as DP rank",
           "rank 6 in world size 8 is assigned as DP rank 0, PP rank 3, TP rank 0, EP rank 0", 6.0),
    _count("gpu_memory_utilization", "0.6.4.post1", r"profiling results: .*?gpu_memory_utilization=(?P<value>[\d.]+)", "Memory profiling", _V064, 0.9, "v0-results-utilization"),
    _gib("free_bytes", "0.9.2 →", rf"Initial free memory:? (?P<value>{_NUM}) GiB(?:;|,? reserved| \()", "Initial free memory",
         "Initial free memory 78.6 GiB, reserved 40.0 GiB memory for KV Cache", 78.6 * GIB, ("Initial free memory: 78.5 GiB; Requested memory: 0.9 (util), 71.1 GiB", 78.5 * GIB)),
    _count("kv_reserved_bytes", "0.27.1 →", r"Applying persisted startup plan \(.{0,200}?\): kv_cache_memory_bytes=(?P<value>\d+)", "persisted startup plan",
           "Applying persisted startup plan (/c/plan.json): kv_cache_memory_bytes=42949672960 (40.0 GiB), recorded free-memory baseline 78 GiB", 42949672960, "startup-plan"),
    _count("kv_size_factor", "0.10.2 – 0.19.1", r"KV cache size by the \w+_world_size (?P<value>\d+)", "Multiplying the GPU KV cache", "Multiplying the GPU KV cache size by the dcp_world_size 4.", 4),
    _gib("weights_bytes", "0.4.0.post1 →", rf"(?:Loading model weights|Model loading) took (?P<value>{_NUM}) (?:GB|GiB)", _LOADED,
         "Model loading took 33.9833 GiB and 21.104523 seconds", 33.9833 * GIB, ("Loading model weights took 14.9888 GB", 14.9888 * GIB)),
    _gib("kv_available_bytes", "0.9.2 →", rf"Available KV cache memory: (?P<value>{_NUM}) GiB", "KV cache memory",
         "Available KV cache memory: -3.86 GiB", -3.86 * GIB),
    _gib("graph_bytes", "0.6.4.post1 →", rf"(?<!Encoder )[Gg]raph capturing finished in \d+ secs?, took (?P<value>{_NUM}) GiB", "capturing finished",
         "Graph capturing finished in 24 secs, took 0.85 GiB", 0.85 * GIB),
    # the first two: nothing asks for them, but without them their lines would be news
    _gib("encoder_graph_bytes", "0.31.0 →", rf"Encoder graph capturing finished in \d+ secs?, took (?P<value>{_NUM}) GiB", "Encoder graph",
         "Encoder graph capturing finished in 3 secs, took 0.20 GiB (4 graphs)", 0.20 * GIB),
    _gib("multimodal_reserve_bytes", "0.25.1 →", rf"Reserving (?P<value>{_NUM}) GiB of GPU memory for frontend", "memory for frontend",
         "Reserving 1.5 GiB of GPU memory for frontend multimodal decoding (x); KV cache memory reduced to 9 GiB.", 1.5 * GIB),
    _gib("graph_estimate_bytes", "0.18.1 →", rf"Estimated CUDA graph memory: (?P<value>{_NUM}) GiB total", "CUDA graph memory",
         "Estimated CUDA graph memory: -0.90 GiB total", -0.90 * GIB),
    _gib("graph_actual_bytes", "0.18.1 →", rf"CUDA graph pool memory: (?P<value>{_NUM}) GiB \(actual\)", "graph pool memory",
         "CUDA graph pool memory: 2.44 GiB (actual), 2.35 GiB (estimated), difference: 0.09 GiB (3.7%)", 2.44 * GIB),
    _gib("v0_total_bytes", "0.6.5 – 0.10.2", rf"total_gpu_memory \((?P<value>{_NUM})GiB\)", "total_gpu_memory",
         "the current vLLM instance can use total_gpu_memory (39.50GiB) x gpu_memory_utilization (0.90) = 35.55GiB", 39.50 * GIB),
    _gib("v0_budget_bytes", "0.6.5 – 0.10.2", rf"gpu_memory_utilization \([\d.]+\) = (?P<value>{_NUM})GiB", "total_gpu_memory",
         "the current vLLM instance can use total_gpu_memory (39.50GiB) x gpu_memory_utilization (0.90) = 35.55GiB", 35.55 * GIB),
    _gib("v0_weights_bytes", "0.6.5 – 0.10.2", rf"model weights take (?P<value>{_NUM})GiB", "model weights take",
         "model weights take 14.96GiB; non_torch_memory takes 0.10GiB; PyTorch activation peak memory takes 9.37GiB;", 14.96 * GIB),
    _gib("non_torch_bytes", "0.6.5 – 0.10.2", rf"non_torch_memory takes (?P<value>{_NUM})GiB", "model weights take",
         "model weights take 14.96GiB; non_torch_memory takes 0.10GiB; PyTorch activation", 0.10 * GIB),
    _gib("profiled_activation_bytes", "0.9.0 →", rf"torch peak memory increase: (?P<value>{_NUM})GiB", "torch peak memory increase",
         "Memory profiling takes 7.10 seconds. Total non KV cache memory: 21.03GiB; torch peak memory increase: 4.21GiB; non-torch forward increase memory: 0.31GiB; weights memory: 16.51GiB.", 4.21 * GIB),
    _gib("profiled_non_torch_bytes", "0.9.0 →", rf"non-torch forward increase memory: (?P<value>{_NUM})GiB", "torch peak memory increase",
         "torch peak memory increase: 4.21GiB; non-torch forward increase memory: 0.31GiB; weights memory: 16.51GiB.", 0.31 * GIB),
    _gib("snapshot_total_bytes", "0.9.0 →", rf"torch_peak={_NUM}GiB, free_memory={_NUM}GiB, total_memory=(?P<value>{_NUM})GiB", "total_memory=",
         "worker init memory snapshot: torch_peak=0.0GiB, free_memory=78.61GiB, total_memory=79.18GiB, cuda_memory=0.57GiB, torch_memory=0.0GiB", 79.18 * GIB),
    _gib("activation_bytes", "0.6.5 – 0.10.2", rf"activation peak memory takes (?P<value>{_NUM})GiB", "model weights take",
         "model weights take 1.0GiB; PyTorch activation peak memory takes 9.37GiB; the rest", 9.37 * GIB),
    _gib("v0_kv_available_bytes", "0.6.5 – 0.10.2", rf"reserved for KV Cache is (?P<value>{_NUM})GiB", "model weights take",
         "model weights take 1.0GiB; the rest of the memory reserved for KV Cache is 11.12GiB.", 11.12 * GIB),
    _gib("breakdown_free_bytes", "0.10.2 →", rf"Free memory on device(?: \S+)? \((?P<value>{_NUM})/{_NUM} GiB\) on startup\.", "Desired GPU memory utilization",
         "Free memory on device (78.6/79.2 GiB) on startup. Desired GPU memory utilization is (0.92, 72.9 GiB).", 78.6 * GIB),
    _gib("breakdown_total_bytes", "0.10.2 →", rf"Free memory on device(?: \S+)? \({_NUM}/(?P<value>{_NUM}) GiB\) on startup\.", "Desired GPU memory utilization",
         "Free memory on device (78.6/79.2 GiB) on startup. Desired GPU memory utilization is (0.92, 72.9 GiB).", 79.2 * GIB),
    _gib("breakdown_budget_bytes", "0.10.2 →", rf"Desired GPU memory utilization is \([\d.]+, (?P<value>{_NUM}) GiB\)", "Desired GPU memory utilization",
         "Desired GPU memory utilization is (0.92, 72.9 GiB). Actual usage is", 72.9 * GIB),
    _gib("breakdown_weights_bytes", "0.10.2 – 0.25.1", rf"Actual usage is (?P<value>{_NUM}) GiB for weight", "Actual usage is",
         "Actual usage is 15.3 GiB for weight, 1.4 GiB for peak activation, 0.2 GiB for non-torch memory, and 0.7 GiB for CUDAGraph memory", 15.3 * GIB),
    _gib("breakdown_activation_bytes", "0.10.2 →", rf"(?P<value>{_NUM}) GiB for peak activation", "Actual usage is",
         "Actual usage is 15.3 GiB for weight, 1.4 GiB for peak activation,", 1.4 * GIB),
    _gib("breakdown_non_torch_bytes", "0.10.2 – 0.25.1", rf"(?P<value>{_NUM}) GiB for non-torch memory", "Actual usage is",
         "Actual usage is 15.3 GiB for weight, 1.4 GiB for peak activation, 0.2 GiB for non-torch memory", 0.2 * GIB),
    _gib("breakdown_graph_bytes", "0.10.2 →", rf"(?P<value>{_NUM}) GiB for CUDAGraph memory", "Actual usage is",
         "Actual usage is 15.3 GiB for weight, and 0.7 GiB for CUDAGraph memory", 0.7 * GIB),
    _gib("kv_reserved_bytes", "0.10.2 →", rf"reserved (?P<value>{_NUM}) ?GiB memory for KV Cache as specified", "memory for KV Cache as specified",
         "Initial free memory 78.6 GiB, reserved 40.0 GiB memory for KV Cache as specified by kv_cache_memory_bytes config", 40.0 * GIB),
    _gib("cpu_kv_reserved_bytes", "0.14.1 →", rf"(?:Explicitly|Auto) set \((?P<value>{_NUM})/{_NUM}\) GiB for KV cache", "GiB for KV cache",
         "Explicitly set (0.06/8.46) GiB for KV cache on node 0.", 0.06 * GIB),
    _gib("cpu_total_bytes", "0.14.1 →", rf"(?:Explicitly|Auto) set \({_NUM}/(?P<value>{_NUM})\) GiB for KV cache", "GiB for KV cache",
         "Auto set (2.41/12.46) GiB for KV cache on node 0.", 12.46 * GIB),
    _gib("checkpoint_bytes", "0.20.2 →", rf"Checkpoint size: (?P<value>{_NUM}) GiB", "Checkpoint size:", "Checkpoint size: 61.1 GiB. Available RAM: 180.0 GiB.", 61.1 * GIB),
    _gib("host_available_bytes", "0.20.2 →", rf"Available RAM: (?P<value>{_NUM}) GiB", "Checkpoint size:", "Checkpoint size: 61.1 GiB. Available RAM: 180.0 GiB.", 180.0 * GIB),
    _gib("sleep_freed_bytes", "0.7.3 →", rf"Sleep mode freed (?P<value>{_NUM}) GiB", "Sleep mode freed",
         "Sleep mode freed 46.35 GiB memory, 26.10 GiB memory is still in use.", 46.35 * GIB),
    _gib("asleep_used_bytes", "0.7.3 →", rf"freed {_NUM} GiB memory, (?P<value>{_NUM}) GiB memory is still in use", "Sleep mode freed",
         "Sleep mode freed 46.35 GiB memory, 26.10 GiB memory is still in use.", 26.10 * GIB),
    _count("gpu_memory_utilization", "0.6.5 – 0.10.2", r"gpu_memory_utilization \((?P<value>[\d.]+)\)", "total_gpu_memory",
           "can use total_gpu_memory (39.50GiB) x gpu_memory_utilization (0.90) = 35.55GiB", 0.9, "v0-utilization"),
    _count("gpu_memory_utilization", "0.10.2 →", r"Desired GPU memory utilization is \((?P<value>[\d.]+),", "Desired GPU memory utilization",
           "Desired GPU memory utilization is (0.92, 72.9 GiB).", 0.92, "breakdown-utilization"),
    _count("gpu_memory_utilization", "0.20.2 →", r"current --gpu-memory-utilization=(?P<value>[\d.]+) is equivalent", "gpu-memory-utilization=",
           "The current --gpu-memory-utilization=0.9200 is equivalent to --gpu-memory-utilization=0.9010 without", 0.92, "graph-notice-utilization"),
    _count("utilization_without_graphs", "0.20.2 →", r"is equivalent to --gpu-memory-utilization=(?P<value>[\d.]+)", "gpu-memory-utilization=",
           "The current --gpu-memory-utilization=0.9200 is equivalent to --gpu-memory-utilization=0.9010 without", 0.901),
    _count("kv_pool_tokens", "0.8.0 →", r"KV cache size: (?P<value>[\d,]+) tokens", "cache size: ", "GPU KV cache size: 473,440 tokens", 473440),
    _count("max_concurrency", "0.6.3.post1 →", r"Maximum concurrency for [\d,]+ tokens per request: (?P<value>[\d.]+)x", "Maximum concurrency",
           "Maximum concurrency for 32,768 tokens per request: 14.45x", 14.45),
    _count("concurrency_tokens", "0.6.3.post1 →", r"Maximum concurrency for (?P<value>[\d,]+) tokens", "Maximum concurrency",
           "Maximum concurrency for 32,768 tokens per request: 14.45x", 32768),
    _count("num_gpu_blocks", "0.1.7 – 0.11.0", r"# (?!CPU)[A-Za-z]+ blocks: (?P<value>\d+)", " blocks: ", "# cuda blocks: 2356, # CPU blocks: 2048", 2356),
    _count("num_gpu_blocks", "0.9.0.1 →", r"num_gpu_blocks is: (?P<value>\d+)", "num_gpu_blocks is", "vllm cache_config_info with initialization after num_gpu_blocks is: 9999",
           9999, "cache-config-blocks"),
    _count("num_gpu_blocks", "0.4.3 →", r"with num_gpu_blocks_override=(?P<value>\d+)", "num_gpu_blocks_override=", "Overriding num_gpu_blocks=2048 with num_gpu_blocks_override=96",
           96, "blocks-override"),
    _count("blocks_with_room", "0.4.3 →", r"Overriding num_gpu_blocks=(?P<value>\d+) with", "num_gpu_blocks_override=", "Overriding num_gpu_blocks=2048 with num_gpu_blocks_override=96",
           2048, "blocks-with-room"),
    _count("block_size", "0.10.0 →", r"Setting attention block size to (?P<value>\d+) tokens", "attention block size", "Setting attention block size to 784 tokens to ensure", 784),
    _count("encoder_budget_tokens", "0.7.3 →", r"Encoder cache will be initialized with a budget of (?P<value>\d+) tokens", "Encoder cache",
           "Encoder cache will be initialized with a budget of 16384 tokens, and profiled with 1 image items", 16384),
    # ---- running
    Pattern(
        "stats", "vllm", ("Avg prompt throughput",),
        regex(
            r"(?:Engine (?P<engine>\d{1,6}): |\d{1,6} Engines Aggregated: )?Avg prompt throughput: (?P<prompt_tokens_per_s>[\d.]+) tokens/s, "
            r"Avg generation throughput: (?P<generation_tokens_per_s>[\d.]+) tokens/s, (?:(?!Running)[^,]{1,40}, ){0,4}Running: (?P<running>\d+) reqs, (?P<rest>.*)"
        ),
        "engine_stat", convert=_stat, versions="0.1.7 →", samples=(
            ("Engine 000: Avg prompt throughput: 1345.7 tokens/s, Avg generation throughput: 96.0 tokens/s, Running: 9 reqs, Waiting: 23 reqs, "
             "Deferred: 2 reqs, KV fetch: 1 waiting to start, 0 in progress, 2 completed waiting, CPU KV cache usage: 99.5%, Prefix cache hit rate: 6.5%",
             {"engine": 0, "running": 9, "waiting": 23, "kv_used": 0.995, "prefix_hit_rate": 0.065, "prompt_tokens_per_s": 1345.7}),
            ("Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 720.5 tokens/s, Running: 2 reqs, Swapped: 1 reqs, Pending: 98 reqs, "
             "GPU KV cache usage: 73.8%, CPU KV cache usage: 1.0%.",
             {"running": 2, "swapped": 1, "waiting": 98, "kv_used": 0.738}),
            ("Avg prompt throughput: 211.0 tokens/s, Avg generation throughput: 88.5 tokens/s, Max iteration time: 412.3 ms, Avg time/tok:160.1 ms, Running: 21 reqs, "
             "Swapped: 0 reqs, Pending: 40 reqs, GPU KV cache usage: 97.5%, CPU KV cache usage: 0.0%",
             {"running": 21, "waiting": 40, "kv_used": 0.975}),
        ),
    ),
    Pattern(
        # 0.1.0 to 0.1.3 count one throughput, and forks shorten the line: the counts are the same
        "stats-short", "vllm", ("Throughput: ",),
        regex(r"\bThroughput: [\d.]+ \w+/s, (?:(?!Running)[^,]{1,40}, ){0,4}Running: (?P<running>\d+) reqs, (?P<rest>.*)"),
        "engine_stat", convert=_stat, versions="0.1.0 – 0.1.3", samples=(
            ("Throughput: 7.4 requests/s, Running: 3 reqs, Swapped: 0 reqs, Pending: 1 reqs, GPU KV cache usage: 4.2%, CPU KV cache usage: 0.0%",
             {"running": 3, "swapped": 0, "waiting": 1, "kv_used": 0.042}),
        ),
    ),
    Pattern(
        "prefix-rate-v0", "vllm", ("cache hit rate: GPU",), regex(r"Prefix cache hit rate: GPU: (?P<prefix_hit_rate_pct>-?[\d.]+)%"), "engine_stat",
        convert=_prefix_rate, versions="0.5.5 – 0.10.2", samples=(("Prefix cache hit rate: GPU: 12.50%, CPU: 0.00%", {"prefix_hit_rate": 0.125}),),
    ),
    Pattern(
        "preempted", "vllm", ("is preempted by",),
        regex(r"Sequence group \S+ is preempted by (?:PreemptionMode\.)?(?P<mode>\w+) mode(?:.*total_num_cumulative_preemption=(?P<cumulative>\d+))?"),
        "preemption", versions="0.4.3 – 0.10.2", samples=(
            ("Sequence group 341 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space. total_num_cumulative_preemption=101",
             {"mode": "RECOMPUTE", "cumulative": 101}),
        ),
    ),
    # ---- refusals by the engine's own arithmetic; of one that a terminal or a shipper cut the beginning tells which it was
    _refusal("no-kv-blocks-cut", "0.1.7 →", ("Error: No avail",), _cut("ValueError: No available memory for the cache blocks"),
             ("ValueError: No available mem", {}), check="no-kv-blocks"),
    _refusal("free-memory-cut", "0.9.2 →", ("Error: Free mem",), _cut("ValueError: Free memory on device "), ("ValueError: Free memory on dev", {}), check="free-memory"),
    _refusal("below-max-model-len-cut", "0.2.0 →", ("Error: To serve at",),
             _cut("ValueError: To serve at least one request with the ") + rf"|max seq len \((?P<max_model_len>\d+)\), \(?(?P<needed_bytes>{_NUM} (?:GB|GiB))(?: K| KV[ cacheisnd]{{0,15}})?\s*$",
             ("ValueError: To serve at least on", {}),
             ("ValueError: To serve at least one request with the model's max seq len (65536), (12.00 GiB KV cac", {"max_model_len": 65536, "needed_bytes": 12 * GIB}),
             check="kv-below-max-model-len"),
    _refusal(
        "no-kv-blocks", "0.1.7 →", ("memory for the cache blocks", "memory for KV cache", "frontend multimodal GPU decoding reserves"),
        rf"No available memory for the cache blocks|\b[Nn]ot enough (?:\w+ )?memory for KV cache|frontend multimodal GPU decoding reserves (?P<wanted_bytes>{_NUM} GiB) .{{0,200}}?but only (?P<available_bytes>{_NUM} GiB) is available for the KV cache",
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
        "ValueError: Paged attention: not enough Metal memory for KV cache. metal_limit=27.91GB, fraction=0.90, usable_metal=25.12GB, model_memory=22.40GB",  # the plugin for Apple's devices
        ("ValueError: frontend multimodal GPU decoding reserves 3.5 GiB (1.5 GiB raw-frame budget, 2.0 GiB decoder cache budget), but only 2.25 GiB is available for the KV cache. Reduce",
         {"wanted_bytes": 3.5 * GIB, "available_bytes": 2.25 * GIB}),
    ),
    _refusal(
        "kv-needed", "0.7.3 →", "KV cache is needed",
        rf"max seq len \((?P<max_model_len>\d+)\), \(?(?:(?P<needed_bytes>{_NUM} (?:GB|GiB))|\[?\.\.\.\]?) KV cache is needed"
        rf"(?:, which is larger than the available KV cache memory \((?P<available_bytes>{_NUM} (?:GB|GiB))\)(?:.*?estimated maximum model length is (?P<estimated_max_model_len>\d+))?"
        # cut by a pager or a card of an issue: the refusal is told, what was there is not
        r"|(?:,[a-z ]{0,18})?(?:\.{3}|…)?\s*$)",
        ("ValueError: To serve at least one request with the models's max seq len (65536), (4.50 GiB KV cache is needed, which is larger than the available "
         "KV cache memory (1.50 GiB). Based on the available memory, the estimated maximum model length is 21845. Try",
         {"max_model_len": 65536, "needed_bytes": int(4.5 * GIB), "available_bytes": int(1.5 * GIB), "estimated_max_model_len": 21845}),
        ("To serve at least one request with the models's max seq len (32768), (8.00 GB KV cache is needed, which is larger than the available KV cache memory (2.00 GB).",
         {"needed_bytes": 8 * GIB, "available_bytes": 2 * GIB}),
        ("To serve at least one request with the models's max seq len (32768), [...] KV cache is needed, which is larger than the available KV cache memory (2.00 GiB).",
         {"max_model_len": 32768, "available_bytes": 2 * GIB}),  # as people shorten it
        ("To serve at least one request with the model's max seq len (131072), 12.5 GiB KV cache is needed, which is larger than the available KV cache memory (10.25 GiB). "
         "Based on the available memory, the estimated maximum model length is 107472.",
         {"max_model_len": 131072, "needed_bytes": int(12.5 * GIB), "available_bytes": int(10.25 * GIB), "estimated_max_model_len": 107472}),
        ("To serve at least one request with the model's max seq len (40960), (5.00 GiB KV cache is needed, which is lar...", {"max_model_len": 40960, "needed_bytes": 5 * GIB, "available_bytes": None}),
        check="kv-below-max-model-len",
    ),
    _refusal(
        "seq-len-larger", "0.2.7 – 0.10.2", "that can be stored in KV cache",
        r"max seq len \((?P<max_model_len>\d+)\) is larger than the maximum number of tokens that can be stored in KV cache \((?P<pool_tokens>\d+)\)",
        ("The model's max seq len (32768) is larger than the maximum number of tokens that can be stored in KV cache (7344). Try",
         {"max_model_len": 32768, "pool_tokens": 7344}),
        check="kv-below-max-model-len",
    ),
    _refusal("no-autofit", "0.14.1 →", "Cannot auto-fit", r"Cannot auto-fit max_model_len",
             "Cannot auto-fit max_model_len: not enough GPU memory available to serve even a single token."),
    _refusal(
        "free-below-budget", "0.9.2 →", "on startup is less than",
        rf"(?P<what>Free memory on device|Available memory on node)[^(]*\((?P<free_bytes>{_NUM})/(?P<total_bytes>{_NUM}) GiB\) on startup is less than desired "
        rf"(?:GPU|CPU) memory utilization \((?P<utilization>[\d.]+), (?P<wanted_bytes>{_NUM}) GiB\)",
        ("ValueError: Free memory on device cuda:0 (22.50/79.25 GiB) on startup is less than desired GPU memory utilization (0.8, 63.40 GiB). Decrease",
         {"free_bytes": int(22.5 * GIB), "total_bytes": int(79.25 * GIB), "utilization": 0.8, "device_kind": "gpu"}),
        ("Available memory on node 0 (1.25/2.50 GiB) on startup is less than desired CPU memory utilization (0.8, 2.00 GiB).",
         {"free_bytes": int(1.25 * GIB), "wanted_bytes": 2 * GIB, "device_kind": "cpu"}),
        check="free-memory", unit="GiB",
        convert=lambda row, match: _check({**{k: v for k, v in row.items() if k != "what"}, "device_kind": "gpu" if "device" in match["what"] else "cpu"}, match),
    ),
    _refusal(
        "cpu-kv-refused", "0.14.1 →", "on kv cache allocation is less",
        rf"Available memory on node \d+ \((?P<free_bytes>{_NUM})/(?P<total_bytes>{_NUM}) GiB\) on kv cache allocation is less than requested memory for kv "
        rf"\((?P<wanted_bytes>{_NUM})(?:/(?P<available_bytes>{_NUM}))? GiB\)",
        ("Available memory on node 0 (6.75/8.50 GiB) on kv cache allocation is less than requested memory for kv (40.0 GiB). Decrease --kv-cache-memory-bytes",
         {"free_bytes": int(6.75 * GIB), "wanted_bytes": 40 * GIB}),
        ("Available memory on node 0 (6.75/8.50 GiB) on kv cache allocation is less than requested memory for kv (-0.25/0.50 GiB).",
         {"wanted_bytes": -GIB // 4, "available_bytes": GIB // 2}),
        check="kv-request-exceeds-host", unit="GiB", device_kind="cpu",
    ),
    _refusal(
        "profiling-interference", "0.4.0.post1 →", "Error in memory profiling",
        r"Error in memory profiling\.?(?: Initial (?P<what>free|used) memory (?P<a>\d+(?:\.\d+)?)(?P<ua> GiB)?, current(?:ly used| free) memory (?P<b>\d+(?:\.\d+)?)(?P<ub> GiB)?)?",
        ("AssertionError: Error in memory profiling. Initial free memory 60.5 GiB, current free memory 61.5 GiB. This happens when other processes",
         {"free_bytes": int(60.5 * GIB), "wanted_bytes": int(61.5 * GIB)}),
        ("Error in memory profiling. Initial free memory 15000, current free memory 16000", {"free_bytes": 15000, "wanted_bytes": 16000}),
        convert=_profiling,
    ),
    _refusal("warmup", "0.8.0 →", "when warming up", r"out of memory occurred when warming up (?:sampler|pooler)[^.]*? with (?P<dummy_requests>\d+) dummy requests",
             ("RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering", {"dummy_requests": 1024})),
    _refusal("mamba-blocks", "0.20.2 →", "available Mamba cache blocks", r"max_num_seqs \((?P<dummy_requests>\d+)\) exceeds available Mamba cache blocks \((?P<pool_tokens>\d+)\)",
             ("max_num_seqs (1024) exceeds available Mamba cache blocks (410). lower max_num_seqs", {"dummy_requests": 1024, "pool_tokens": 410})),
    _refusal(
        "externally-held", "0.32.0 →", ("Externally held weights", "after excluding external process"),
        r"Externally held weights on device|budget after excluding external process's weights",
        "ValueError: Externally held weights on device cuda:0 exceed the desired GPU memory utilization",
        check="external-weights", device_kind="gpu",
    ),
    _refusal("load-oom", "0.13.0 →", "not enough GPU memory", r"Failed to load model - not enough GPU memory", "Failed to load model - not enough GPU memory. Try lowering"),
    _refusal("swap-too-large", "0.1.7 – 0.17.1", "Too large swap space", rf"Too large swap space\. (?P<wanted_bytes>{_NUM} GiB) out of the (?P<total_bytes>{_NUM} GiB) total CPU",
             ("ValueError: Too large swap space. 48.00 GiB out of the 62.00 GiB total CPU memory is allocated for the swap space.", {"wanted_bytes": 48 * GIB}), check="swap-space"),
    Pattern(
        "pool-exhausted-v0", "vllm", ("lack of CPU swap space", "No free blocks are available", "enough kv cache blocks to run", "capacity of block_manager"),
        regex(r"(?:lack of CPU swap space|No free blocks are available|not enough kv cache blocks to run|exceeds the capacity of block_manager)"), "preemption",
        const={"mode": "ABORT"}, versions="0.1.7 – 0.10.2", samples=(
            ("RuntimeError: Aborted due to the lack of CPU swap space. Please increase the swap space to avoid this error.", {"mode": "ABORT"}),
            ("ValueError: Out of memory! No free blocks are available.", {"mode": "ABORT"}),
            ("Input prompt (30000 tokens) + lookahead slots (0) is too long and exceeds the capacity of block_manager", {"mode": "ABORT"}),
        ),
    ),
    # ---- death
    Pattern(
        "worker-died", "vllm", (" died unexpectedly", " died, exit code", " died with exit code"),
        regex(
            r"(?:Worker (?:proc )?|Engine core proc(?:ess)? |RayWorkerProc |Process )(?P<name>\S+)(?: pid \d+| \(PID: \d+\))? died(?: unexpectedly)?"
            r"(?:(?:,| with)? ?\(?exit code:? (?P<exit_code>-?\d+)\)?)?"
        ),
        "process_exit", versions="0.4.3 →", samples=(
            ("Worker proc VllmWorker-0 died unexpectedly (exit code: -9), shutting down executor.", {"name": "VllmWorker-0", "exit_code": -9}),
            ("Worker VllmWorkerProcess pid 991 died, exit code: -7", {"name": "VllmWorkerProcess", "exit_code": -7}),
            ("Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.", {"name": "EngineCore_DP0"}),
        ),
    ),
    Pattern(
        "engine-process-died", "vllm", ("Engine process (pid",), regex(r"Engine process \(pid (?P<pid>\d+)\) died"), "process_exit",
        convert=lambda row, match: {"name": f"engine {match['pid']}"}, versions="0.6.4.post1 – 0.10.2", samples=(("RuntimeError: Engine process (pid 77) died.", {"name": "engine 77"}),),
    ),
    Pattern(
        "shell-killed", "shell", (" Killed  ", " Aborted  ", " Segmentation fault  ", " Bus error  "),
        regex(r"line \d+: +(?P<pid>\d+) (?P<end>Killed|Aborted|Segmentation fault|Bus error) +(?:\(core dumped\) +)?(?P<name>\S+)"), "process_exit",
        convert=lambda row, match: {"exit_code": _SHELL_ENDS[match["end"]], "name": match["name"]}, samples=(
            ("run.sh: line 5: 12345 Killed                  python -m vllm.entrypoints.openai.api_server", {"exit_code": -9, "name": "python"}),
            ("run.sh: line 12:  4411 Aborted                 (core dumped) vllm serve org/m", {"exit_code": -6, "name": "vllm"}),
        ),
    ),
    Pattern(
        # what starts processes and waits for them: Open MPI, Triton's Python backend, TGI's launcher
        "ended-by-signal", "launcher", ("exited on signal", "exited with signal", "shutdown with signal"),
        regex(r"(?:process (?P<name>rank \d+) with PID \d+.{0,200}?exited on|(?P<name2>Stub process) '?\S+ .{0,80}?exited with|(?P<name3>Shard process) was signaled to shutdown with) signal (?P<signal>\d{1,2})\b"), "process_exit",
        convert=lambda row, match: {"exit_code": -int(match["signal"]), "name": match["name"] or match["name2"] or match["name3"]}, samples=(
            ("mpirun noticed that process rank 2 with PID 0 on node gpu-7 exited on signal 9 (Killed).", {"exit_code": -9, "name": "rank 2"}),
            ("Stub process 'model_0' is not healthy. exited with signal 9", {"exit_code": -9, "name": "Stub process"}),
            ("Shard process was signaled to shutdown with signal 9 rank=0", {"exit_code": -9, "name": "Shard process"}),
        ),
    ),
    Pattern(
        "torchrun-failed", "torch", ("(exitcode: ",), regex(r"failed \(exitcode: (?P<exit_code>-?\d{1,3})\) (?P<name>local_rank: \d+)"), "process_exit",
        samples=(("api.py:874] failed (exitcode: -9) local_rank: 2 (pid: 4412) of binary: /usr/bin/python3", {"exit_code": -9, "name": "local_rank: 2"}),),
    ),
    Pattern(
        "task-killed", "slurm", ("srun: error: ",), regex(r"srun: error: [\w.-]+: (?P<name>tasks? [\d,-]+): Killed"), "process_exit",
        convert=lambda row, match: {"exit_code": -9, "name": match["name"]}, samples=(("srun: error: gpu-7: tasks 0-3: Killed", {"exit_code": -9, "name": "tasks 0-3"}),),
    ),
    Pattern(
        "shell-killed-alone", "shell", ("Killed",), regex(r"(?:^\s*(?:\[\d+\][+-]?\s+)?|(?:it/s|s/it)\]\s*)Killed(?:: 9)?\s*$"), "process_exit", const={"exit_code": -9},
        samples=(("Killed", {"exit_code": -9}), ("[1]+  Killed", {"exit_code": -9}), ("Loading shards:  75%|###4 | 3/4 [00:08<00:02,  2.83s/it]Killed", {"exit_code": -9})),
    ),
    Pattern(
        "mig-slice", "nvidia", ("MIG ",), regex(r"(?:^|\s)MIG (?P<mig_profile>\dg\.\d{1,3}gb(?:\+me|\+gfx|-me)?)\s+Device\s+(?P<gpu>\d{1,2}):"), "gpu_device",
        convert=lambda row, match: {"mig_profile": match["mig_profile"], "count": 1}, samples=(
            ("  MIG 2g.24gb     Device  0: (UUID: MIG-5c1e)", {"mig_profile": "2g.24gb"}),
        ),
    ),
    # calls of the API that let go of the memory and take it again; `wake up` is also what the engine itself logs
    _note("sleep-called", "0.8.0 →", ("sleep?level", "sleep HTTP"), r"POST /sleep\b[^\"]{0,60}\"?\s+(?P<value>2\d\d)\b", ('10.0.9.9:52110 - "POST /sleep?level=1 HTTP/1.1" 200 OK', {"value": 200.0})),
    _note(
        "wake-called", "0.8.0 →", ("wake_up HTTP", "wake_up?tags", "seconds to wake up"), r"POST /wake_up\b[^\"]{0,60}\"?\s+(?P<value>2\d\d)\b|seconds to wake up",
        ('10.0.9.9:40233 - "POST /wake_up HTTP/1.1" 200 OK', {"value": 200.0}),
        "It took 2.911820 seconds to wake up tags {'weights', 'kv_cache'}.",
    ),
    # the front end says so every ten seconds while the engine's process starts
    _note(
        "waiting-for-engine", "0.9.0 →", ("core engine proc", "Waiting for output from"),
        r"Waiting for (?P<text>\d{1,4} local, \d{1,4} remote core engine proc\(s\) to (?:start|connect)|output from \w*Engine)",
        "Waiting for 1 local, 0 remote core engine proc(s) to start.",
        "Waiting for output from MQLLMEngine.",
    ),
    # a part that waits for another says what for, again and again; `views/62_refrain.sql` asks whether anything followed
    _note(
        "waits-for", "", ("aiting for ", "aiting until ", "o endpoints", "o instances", "o available ", "o healthy ", "o workers", "o backends", "ot ready yet", "ot yet ready", "not reachable"),
        r"(?P<text>\b[Ww]aiting (?:for (?!\d{1,4} local, |output from \w*Engine)|until ).{3,120}"
        r"|\b[Nn]o (?:(?:available|healthy|active|ready|registered|live|matching) )?(?:endpoint|instance|worker|backend|replica|upstream|peer|node|server)s?\b.{0,120}"
        r"|[\w./:-]{2,60} (?:is |are )?(?:not ready yet|not yet ready|not reachable)\b.{0,80})",
        "Waiting for creating a placement group of specs for 70 seconds. specs=[{}]",
        ("WARN aggregator: No endpoints found matching subject worker.load", {"text": "No endpoints found matching subject worker.load"}),
        "store.internal:2379 is not reachable, trying again in 5 s",
        dialect="any",
    ),
    # nginx: who stands in front of the API waited as long as it was told to
    _note(
        "proxy-timeout", "", "upstream timed out", r"\bupstream timed out\b.{0,400}?/(?:v[123]/|generate\b|chat/|api/(?:chat|generate)\b|invocations\b)",
        '2027/03/02 04:05:06 [error] 7#7: *9 upstream timed out (110: Connection timed out) while reading response header from upstream, request: "POST /v1/completions HTTP/1.1"',
        dialect="proxy",
    ),
    # blocks of a cache on their way from one server to another: the transport gave up, or the transfer ended in an error
    _note(
        "transfer-failed", "0.9.0 →", ("Transport retry count exceeded", "transfer failed", "NIXL_ERR_"),
        r"Transport retry count exceeded|\b(?:NIXL|Mooncake|RDMA|KV(?: cache)?) transfer failed\b|\bNIXL_ERR_(?:REMOTE_DISCONNECT|BACKEND|CANCELED)\b",
        "ERROR 03-02 08:01:02 [nixl_connector.py:1] NIXL transfer failed for request cmpl-1 with state ERR.",
        "ib_mlx5_log.c:179  UCX  ERROR Transport retry count exceeded on mlx5_2:1/RoCE",
    ),
    # the front end says so when a caller hangs up
    _note(
        "aborted-request", "0.1.3 →", ("borted request", "aborted."), r"\b[Aa]borted request(?:\(s\))? (?P<text>[\w.-]{4,80}?)\.?$|^Request [\w.-]{4,80} aborted\.$",
        ("Aborted request 504b74ba4a0fe75d.", {"text": "504b74ba4a0fe75d"}),
        "Request chatcmpl-8a1f aborted.",
    ),
    Pattern(
        "lmcache-lookup", "lmcache", ("LMCache hit tokens",), regex(r"Total tokens (?P<tokens>\d{1,10}), LMCache hit tokens: (?P<hit_tokens>\d{1,10})"), "cache_lookup",
        const={"tier": "lmcache"}, samples=(
            ("LMCache INFO: Reqid: chatcmpl-77aa, Total tokens 12040, LMCache hit tokens: 11776, need to load: 512", {"tokens": 12040, "hit_tokens": 11776, "tier": "lmcache"}),
        ),
    ),
    Pattern(
        # every rank makes its own
        "host-cache-made", "lmcache", ("LMCacheEngine", "LocalCPUBackend", "pinned "),
        regex(r"(?:Creating|Initiali[sz](?:ing|ed)|Allocat(?:ing|ed)|Reserv(?:ing|ed)) .{0,40}(?:LMCacheEngine|LocalCPUBackend|pinned (?:host |CPU )?(?:memory )?(?:pool|cache|buffer))"),
        "milestone", const={"name": "host-cache-made"}, samples=(
            ("LMCache INFO: Creating LMCacheEngine instance engine-a (cache_engine.py:783)", {"name": "host-cache-made"}),
            ("INFO Allocating 64 GiB of pinned host memory pool", {"name": "host-cache-made"}),
        ),
    ),
    Pattern(
        # its settings line as LMCache logs it, its YAML file, or its environment; a sentence about the setting is none of them
        "lmcache-pool", "lmcache", ("max_local_cpu_size", "LMCACHE_MAX_LOCAL_CPU_SIZE"),
        regex(r"(?:'max_local_cpu_size': '?|^\s*(?:export\s+|-\s+)?(?:max_local_cpu_size|LMCACHE_MAX_LOCAL_CPU_SIZE)\s*[:=]\s*[\"']?)(?P<value>\d{1,6}(?:\.\d{1,3})?)(?=\s*(?:GB)?['\"]?\s*(?:[,}#].*)?$)"),
        "engine_flag", const={"flag": "max_local_cpu_size", "origin": "file"}, samples=(
            ("LMCache INFO: LMCache Configuration: {'chunk_size': 256, 'local_cpu': True, 'max_local_cpu_size': '80.0 GB', 'local_disk': None}", {"value": "80.0"}),
            ("max_local_cpu_size: 60", {"value": "60"}),
            ("export LMCACHE_MAX_LOCAL_CPU_SIZE=40", {"value": "40"}),
        ),
    ),
    Pattern(
        "failed-core", "vllm", ("Failed core proc",), regex(r"'(?P<name>[\w]+)': (?P<exit_code>-\d+)"), "process_exit", repeat=True,
        versions="0.9.0.1 →", samples=(("RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_0': -9}", {"name": "EngineCore_0", "exit_code": -9}),),
    ),
    Pattern(
        "crash-step", "vllm", ("Dumping scheduler output",), regex(r"Dumping scheduler output.*?total_num_scheduled_tokens=(?P<scheduled_tokens>\d+)", re.S),
        "crash_step", convert=_step, versions="0.9.2 →", samples=(
            ("Dumping scheduler output for model execution: SchedulerOutput(scheduled_new_reqs=[NewRequestData(req_id=a,prompt_token_ids_len=3500,"
             "sampling_params=SamplingParams(prompt_logprobs=1),num_computed_tokens=0)], total_num_scheduled_tokens=3500, num_x=1)",
             {"scheduled_tokens": 3500, "largest_prompt_tokens": 3500, "prompt_logprobs": True}),
        ),
    ),
    Pattern(
        "crash-stats", "vllm", ("Dumping scheduler stats",),
        regex(r"SchedulerStats\(num_running_reqs=(?P<running>\d+), num_waiting_reqs=(?P<waiting>\d+).*?kv_cache_usage=(?P<kv_used>[\d.e-]+)"),
        "crash_step", versions="0.9.2 →", samples=(
            ("Dumping scheduler stats: SchedulerStats(num_running_reqs=6, num_waiting_reqs=2, step_counter=0, kv_cache_usage=0.0449, prefix",
             {"running": 6, "waiting": 2, "kv_used": 0.0449}),
        ),
    ),
)  # fmt: skip


# Functions that tell the phase when milestones are cut off; docs/method.md lists them by phase (views/failure.sql reads `frame`).
REFUSAL_OPENINGS = ("To serve at least one request with", "model's max seq len (", "Free memory on device")
"""How the engine's long refusals begin: where such a line says no more, the rest stands in the lines below it."""

LANDMARKS: tuple[str, ...] = tuple(read("lists")["landmarks"].split())
