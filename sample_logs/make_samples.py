"""Writes the sample bundles beside this file, the same bytes every time: `make samples`.

Each function below is one case: what happened, the label, the files. Sizes and rates are chosen, everything else follows
(`parts.py` holds the writers and the scheduler, `boot.py` how a server starts and dies). Addresses are those set aside for
documentation, names are invented. A compressed file is left alone where it already holds the same content, since two
builds of zlib may pack the same bytes differently.
"""

from __future__ import annotations

import datetime as dt
import gzip
import io
import json
import random
import sys
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from boot import BUSY, CAPTURE, INIT, LAYER, LOAD, PLAN, Plan, arguments, boot, die_at_start, die_in_service, step_dump
from parts import (
    GIB,
    MIB,
    Ask,
    Card,
    Course,
    Server,
    arrivals,
    config_text,
    exposition,
    live_log,
    memory_summary,
    oom_text,
    serve,
    smi_table,
    stat_line_v0,
    traceback,
)

HERE = Path(__file__).parent
LICENCE = 'origin = "made for this project"\nlicence = "Apache-2.0"'


@dataclass(frozen=True)
class Case:
    """A bundle: its label and its files (text, or bytes for what is compressed)."""

    title: str
    category: str
    cause: str
    also: tuple[str, ...]
    why: str
    hard: str
    version: str
    gpu: str
    model: str
    files: Mapping[str, str | bytes]

    def label(self, name: str) -> str:
        """The text of case.toml."""
        lines = [
            f"id = {json.dumps(name)}", f"title = {json.dumps(self.title)}", f"category = {json.dumps(self.category)}", f"cause = {json.dumps(self.cause)}",
            f"also = {json.dumps(list(self.also))}", f"why = {json.dumps(self.why)}", f"hard = {json.dumps(self.hard)}", LICENCE, f"vllm_version = {json.dumps(self.version)}",
            f"gpu = {json.dumps(self.gpu)}", f"model = {json.dumps(self.model)}", f"files = {json.dumps(sorted(self.files))}",
        ]  # fmt: skip
        return "\n".join(lines) + "\n"


CASES: dict[str, Callable[[], Case]] = {}


def case(make: Callable[[], Case]) -> Callable[[], Case]:
    """Enter a case under its function's name with dashes."""
    CASES[make.__name__.replace("_", "-")] = make
    return make


# ---- small helpers


def epoch(moment: dt.datetime) -> float:
    """Seconds since 1970 of a UTC time without zone."""
    return moment.replace(tzinfo=dt.UTC).timestamp()


def iso(start: dt.datetime, seconds: float) -> str:
    """A UTC stamp with milliseconds."""
    return (start + dt.timedelta(seconds=seconds)).isoformat(timespec="milliseconds") + "Z"


def pick(rng: random.Random, *bands: tuple[float, int, int]) -> int:
    """A whole number from one of several bands (weight, low, high)."""
    at = rng.random() * sum(band[0] for band in bands)
    for weight, low, high in bands:
        at -= weight
        if at < 0:
            return low + int(rng.random() * (high - low))
    return bands[-1][1]


def traffic(
    rng: random.Random,
    begin: float,
    end: float,
    per_s: float,
    tenant: str,
    prompt: tuple[tuple[float, int, int], ...],
    output: tuple[tuple[float, int, int], ...],
    cached: float = 0.0,
    patience: float = 600.0,
) -> list[Ask]:
    """Requests of one tenant over a stretch of time."""
    return [
        Ask(
            t,
            tenant,
            pick(rng, *prompt),
            pick(rng, *output),
            cached * (0.6 + 0.8 * rng.random()) if cached else 0.0,
            patience,
        )
        for t in arrivals(rng, begin, end, per_s)
    ]


def named(asks: list[Ask], prefix: str) -> list[Ask]:
    """In order of arrival, with ids."""
    asks.sort(key=lambda ask: ask.t)
    for nth, ask in enumerate(asks, 1):
        ask.id = f"{prefix}{nth:05d}"
    return asks


def chat_speed(single: float, crowd: float) -> Callable[[int], float]:
    """Decode speed of one sequence: `single` alone, falling as more run beside it."""
    return lambda running: single / (1 + running / crowd)


def stamped(text: str, start: dt.datetime) -> str:
    """What `kubectl logs --timestamps` gives: before every physical line the collector's own stamp, which follows the record's."""
    out, now = [], start
    for nth, line in enumerate(text.split("\n")[:-1]):
        now += dt.timedelta(microseconds=180 + nth * 31 % 400)
        for word in line.split(" ")[:6]:
            if len(word) == 8 and word[2] == word[5] == ":" and word.replace(":", "").isdigit():
                hour, minute, second = (int(part) for part in word.split(":"))
                now = max(now, now.replace(hour=hour, minute=minute, second=second, microsecond=0))
        out.append(f"{now.isoformat(timespec='microseconds')}{nth * 37 % 1000:03d}Z {line}\n")
    return "".join(out)


def compose(text: str, name: str) -> str:
    """What `docker compose logs` gives."""
    return "".join(f"{name}  | {line}\n" for line in text.split("\n")[:-1])


def loop(
    start: dt.datetime, rows: Callable[[float], list[tuple[int, int, int, int]]], seconds: float, step: float
) -> str:
    """A snapshot loop around nvidia-smi: `=== date ===`, then index, utilizations, used and total per device."""
    out, at = [], 0.0
    while at <= seconds:
        out.append(f"=== {start + dt.timedelta(seconds=at):%Y-%m-%d %H:%M:%S} ===\n")
        out += [
            f"{index}, {util} %, {memory} %, {used} MiB, {total} MiB\n"
            for index, (util, memory, used, total) in enumerate(rows(at))
        ]
        at += step
    return "".join(out)


def pack(files: Mapping[str, str], folder: str) -> bytes:
    """A `.tar.gz` of text files with fixed owners and times."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(files):
            data = files[name].encode()
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mtime, entry.mode = len(data), 1_767_225_600, 0o644
            tar.addfile(entry, io.BytesIO(data))
    return gzip.compress(raw.getvalue(), 9, mtime=0)


# ---- cases: the KV cache


@case
def kv_demand_long_chats() -> Case:
    """Four L40S serve a 70B; at lunch a tenant begins to send whole case files, and the pool fills."""
    rng = random.Random(411)
    server = Server("0.18.1", "2026-11-18 12:31:07", tp=4, pid=1)
    plan = Plan(
        "/models/llama-3.3-70b-instruct-fp8-dynamic",
        44.39,
        0.9,
        16.97,
        1.18,
        1.42,
        81_920,
        32_768,
        graphs=0.52,
        estimate=0.61,
        files=15,
        load_s=94,
    )
    args = {
        "model_tag": plan.model, "host": "0.0.0.0", "model": plan.model, "max_model_len": 32768, "served_model_name": ["assistant-70b"], "tensor_parallel_size": 4,
        "enable_prompt_tokens_details": True,
    }  # fmt: skip
    server.say(
        "api",
        "/usr/local/lib/python3.12/dist-packages/transformers/utils/hub.py:110: FutureWarning: Using `TRANSFORMERS_CACHE` is deprecated and will be removed in v5 of Transformers. Use `HF_HOME` instead.\n  warnings.warn(",
    )
    ready = boot(server, plan, args, quantization="compressed-tensors", served="assistant-70b", warm=True)
    chat = ((0.62, 180, 900), (0.3, 900, 3200), (0.08, 3200, 7600))
    answer = ((0.5, 60, 260), (0.4, 260, 620), (0.1, 620, 1100))
    files = ((0.3, 9000, 15000), (0.5, 15000, 24000), (0.2, 24000, 30500))
    essay = ((0.6, 500, 1100), (0.4, 1100, 2000))
    asks = traffic(rng, 5, 5400, 0.24, "helpdesk", chat, answer, 0.45, 180)
    asks += traffic(rng, 20, 5400, 0.05, "intranet", chat, answer, 0.3, 180)
    asks += traffic(rng, 60, 2300, 0.006, "casefiles", files, essay, 0.35, 420)
    asks += traffic(rng, 2300, 3100, 0.05, "casefiles", files, essay, 0.35, 420)
    asks += traffic(rng, 3100, 3900, 0.088, "casefiles", files, essay, 0.35, 420)
    asks += traffic(rng, 3900, 5400, 0.115, "casefiles", files, essay, 0.35, 420)
    named(asks, "req-9c")
    blocks = plan.blocks(server.v) - 1
    course = serve(asks, blocks=blocks, until=5400, prefill=4300, decode=chat_speed(24, 16), seqs=256)
    begin = ready + 2
    live_log(server, course, begin, place="loggers.py:259", refuse=(1711.3, 4102.8))
    origin = server.start + dt.timedelta(seconds=begin)
    rows = []
    for ask in sorted(course.done, key=lambda ask: ask.end or 0):
        assert ask.end is not None
        first = f"{(ask.first - ask.t) * 1000:.0f}" if ask.first is not None else "-"
        rows.append(
            f"{iso(origin, ask.end)} level=info component=gateway msg=completed request_id={ask.id} tenant={ask.tenant} model=assistant-70b input_tokens={ask.prompt} "
            f"output_tokens={ask.made} ttft_ms={first} latency_ms={(ask.end - ask.t) * 1000:.0f} status={ask.status}\n"
            if ask.first is not None
            else f"{iso(origin, ask.end)} level=warn component=gateway msg=client_gone request_id={ask.id} tenant={ask.tenant} model=assistant-70b input_tokens={ask.prompt} "
            f"output_tokens=0 latency_ms={(ask.end - ask.t) * 1000:.0f} status=499\n"
        )

    def devices(at: float) -> list[tuple[int, int, int, int]]:
        busy = next((stat.running for stat in course.stats if stat.t >= at - ready), 0)
        return [
            (
                0 if not busy else 88 + (int(at) // 30 * 7 + 3 * card) % 12,
                31 + (int(at) // 30 * 5 + card) % 17 if busy else 0,
                42_391 + 2 * (card % 2) - 14 * (card == 3),
                46_068,
            )
            for card in range(4)
        ]

    scrapes = {}
    for minute in (15, 45, 58, 70, 82, 89):
        t = minute * 60.0
        at = origin + dt.timedelta(seconds=t)
        scrapes[f"metrics-{at:%Y%m%dT%H%M%SZ}.prom"] = exposition(
            course, t, model="assistant-70b", blocks=blocks, block=16, utilization=0.9, max_len=32768, started=epoch(server.start), tokens=plan.tokens(server.v))  # fmt: skip
    return Case(
        "Whole case files are pasted into chats at noon, and a pool of 267,000 tokens fills", "kv-cache", "kv-demand-exceeds-pool", (),
        f"The pool is full from {origin + dt.timedelta(seconds=next(stat.t for stat in course.stats if stat.used > 0.97)):%H:%M} on, up to {max(stat.waiting for stat in course.stats)} requests wait, "
        f"{course.stats[-1].preemptions} preemptions are counted in the scrapes; the share of long prompts rose first. Device memory is flat all day.",
        "this version never prints preemptions, the devices look full before and after, and short requests suffer most",
        server.version, "4x L40S 48GB", plan.model,
        {
            "vllm.log": server.text(), "requests.log": "".join(rows), "gpu-memory.log": loop(server.start + dt.timedelta(seconds=ready), devices, 5400, 30), **scrapes,
            "command.txt": "docker run --gpus all --ipc=host -p 8000:8000 -v /srv/models:/models:ro vllm/vllm-openai:v0.18.1 \\\n  /models/llama-3.3-70b-instruct-fp8-dynamic --tensor-parallel-size 4 \\\n"
            "  --max-model-len 32768 --served-model-name assistant-70b --enable-prompt-tokens-details\n",
        },
    )  # fmt: skip


@case
def kv_pool_default_length() -> Case:
    """An 8B on an A10G ran with a length of 16k for weeks; the new unit file lost the flag."""
    rng = random.Random(52)
    model = "meta-llama/Llama-3.1-8B-Instruct"
    total, weights, non_torch = 22.07, 14.9888, 0.07
    budget = total * 0.9

    def start(server: Server, max_len: int, given: bool, peak: float, at: float) -> tuple[int, float]:
        server.go(at)
        args: dict[str, object] = {
            "host": "0.0.0.0",
            "model": model,
            "gpu_memory_utilization": 0.9,
            "served_model_name": ["llama"],
        }
        if given:
            args["max_model_len"] = max_len
        arguments(server, args)
        server.go(at + 9)
        server.log(
            "api",
            "config.py:510",
            "This model supports multiple tasks: {'generate', 'classify', 'reward', 'embed', 'score'}. Defaulting to 'generate'.",
        )
        if max_len > 32768:
            server.log(
                "api",
                "arg_utils.py:969",
                "Chunked prefill is enabled by default for models with max_model_len > 32K. Currently, chunked prefill might not work with some features or models. If you encounter any issues, please disable chunked prefill by setting --enable-chunked-prefill=False.",
                "WARNING",
            )
            server.log("api", "config.py:1310", "Chunked prefill is enabled with max_num_batched_tokens=2048.")
        server.log("api", "llm_engine.py:234", config_text(server, model, max_len, served="llama", caching=False))
        server.go(at + 12)
        server.log("api", "selector.py:120", "Using Flash Attention backend.")
        server.log("api", "model_runner.py:1094", f"Starting to load model {model}...")
        server.go(at + 13)
        server.log("api", "weight_utils.py:251", "Using model weights format ['*.safetensors']")
        server.shards("api", 4, 9.6)
        server.say("api", "")
        server.go(at + 24)
        server.log("api", "model_runner.py:1099", f"Loading model weights took {weights:.4f} GB")
        server.go(at + 26)
        kv = budget - weights - non_torch - peak
        server.log("api", "worker.py:241", (
            f"Memory profiling takes {1.31 if max_len > 32768 else 5.62} seconds\nthe current vLLM instance can use total_gpu_memory ({total:.2f}GiB) x gpu_memory_utilization (0.90) = {budget:.2f}GiB\n"
            f"model weights take {weights:.2f}GiB; non_torch_memory takes {non_torch:.2f}GiB; PyTorch activation peak memory takes {peak:.2f}GiB; the rest of the memory reserved for KV Cache is {kv:.2f}GiB."))  # fmt: skip
        blocks = int(kv * GIB / (131_072 * 16))
        server.log("api", "gpu_executor.py:76", f"# GPU blocks: {blocks}, # CPU blocks: 2048")
        server.log(
            "api",
            "gpu_executor.py:80",
            f"Maximum concurrency for {max_len} tokens per request: {blocks * 16 / max_len:.2f}x",
        )
        return blocks, at + 28

    old = Server("0.6.6.post1", "2025-02-10 06:12:44", v0=True, pid=812)
    blocks, t = start(old, 16384, True, 1.23, 0)
    old.go(t + 3)
    old.log(
        "api",
        "model_runner.py:1415",
        "Capturing cudagraphs for decoding. This may lead to unexpected consequences if the model is not static. To run the model in eager mode, set 'enforce_eager=True' or use '--enforce-eager' in the CLI. If out-of-memory error occurs during cudagraph capture, consider decreasing `gpu_memory_utilization` or switching to eager mode. You can also reduce the `max_num_seqs` as needed to decrease memory usage.",
    )
    old.bar("api", "Capturing CUDA graph shapes", [0, 4, 9, 17, 26, 35], 35, 2.1)
    old.go(t + 20)
    old.log("api", "model_runner.py:1535", "Graph capturing finished in 17 secs, took 0.26 GiB")
    old.log("api", "llm_engine.py:431", "init engine (profile, create kv cache, warmup model) took 25.83 seconds")
    old.go(t + 22)
    old.uvicorn("Started server process [812]")
    old.uvicorn("Waiting for application startup.")
    old.uvicorn("Application startup complete.")
    old.uvicorn("Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)")
    questions = (
        "My training run stops with RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total capacity; 21.11 GiB already allocated; 1.02 GiB free; 21.62 GiB reserved in total by PyTorch). What can I do?",
        "Summarise the minutes below in five points.\\n\\n1. Budget. 2. Parking. 3. Summer party.",
        "Write a function that adds two numbers, with tests.",
        "Translate into French: The invoice is due on the first of the month.",
        "kubectl says OOMKilled and exit code 137 for my notebook pod, how do I find out which process it was?",
    )
    asks = named(traffic(rng, 10, 2400, 0.11, "web", ((0.8, 60, 700), (0.2, 700, 5200)), ((1, 40, 500),)), "chatcmpl-")
    course = serve(asks, blocks=blocks, until=2400, prefill=5200, decode=chat_speed(33, 40), interval=10)
    begin = t + 24
    events: list[tuple[float, Callable[[], None]]] = [
        (stat.t, lambda stat=stat: old.log("api", "metrics.py:455", stat_line_v0(stat)))
        for stat in course.stats
        if stat.running or stat.generation
    ]  # type: ignore[misc]
    for nth, ask in enumerate(asks):
        said = f"<|begin_of_text|><|start_header_id|>user<|end_header_id|>\\n\\n{questions[nth % 5]}<|eot_id|><|start_header_id|>assistant<|end_header_id|>\\n\\n"
        events.append((ask.t, lambda ask=ask, said=said: old.log("api", "logger.py:37", (  # type: ignore[misc]
            f"Received request {ask.id}: prompt: '{said}', params: SamplingParams(n=1, presence_penalty=0.0, frequency_penalty=0.0, repetition_penalty=1.0, temperature=0.7, top_p=1.0, top_k=-1, min_p=0.0, seed=None, stop=[], "
            f"stop_token_ids=[], bad_words=[], include_stop_str_in_output=False, ignore_eos=False, max_tokens={ask.output}, min_tokens=0, logprobs=None, prompt_logprobs=None, skip_special_tokens=True, "
            "spaces_between_special_tokens=True, truncate_prompt_tokens=None, guided_decoding=None), prompt_token_ids: None, lora_request: None, prompt_adapter_request: None."))))  # fmt: skip
        events.append((ask.t + 0.01, lambda ask=ask: old.log("api", "engine.py:267", f"Added request {ask.id}.")))  # type: ignore[misc]
        if ask.end is not None:
            events.append((ask.end, lambda: old.access("192.0.2.31:40112", "/v1/chat/completions", 200)))
    for at, write in sorted(events, key=lambda event: event[0]):
        old.go(begin + at)
        write()
    old.go(begin + 2460)
    old.uvicorn("Shutting down")
    old.uvicorn("Waiting for application shutdown.")
    old.uvicorn("Application shutdown complete.")
    old.uvicorn("Finished server process [812]")

    new = Server("0.6.6.post1", "2025-02-11 07:02:19", v0=True, pid=994)
    frames = (
        (
            "vllm/engine/multiprocessing/engine.py",
            366,
            "run_mp_engine",
            "engine = MQLLMEngine.from_engine_args(engine_args=engine_args,",
        ),
        ("vllm/engine/multiprocessing/engine.py", 119, "from_engine_args", "return cls(ipc_path=ipc_path,"),
        ("vllm/engine/multiprocessing/engine.py", 71, "__init__", "self.engine = LLMEngine(*args, **kwargs)"),
        ("vllm/engine/llm_engine.py", 276, "__init__", "self._initialize_kv_caches()"),
        (
            "vllm/engine/llm_engine.py",
            429,
            "_initialize_kv_caches",
            "self.model_executor.initialize_cache(num_gpu_blocks, num_cpu_blocks)",
        ),
        (
            "vllm/executor/gpu_executor.py",
            83,
            "initialize_cache",
            "self.driver_worker.initialize_cache(num_gpu_blocks, num_cpu_blocks)",
        ),
        ("vllm/worker/worker.py", 279, "initialize_cache", "raise_if_cache_size_invalid(num_gpu_blocks,"),
        ("vllm/worker/worker.py", 533, "raise_if_cache_size_invalid", "raise ValueError("),
    )
    for attempt in range(3):
        blocks, t = start(new, 131_072, False, 0.53, attempt * 52.0)
        last = f"The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in KV cache ({blocks * 16}). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."
        new.go(t + 1)
        new.error("api", "engine.py:366", last, traceback(frames, "ValueError: " + last))
        new.say(
            "api",
            "Process SpawnProcess-1:\n"
            + traceback(
                (("vllm/engine/multiprocessing/engine.py", 368, "run_mp_engine", "raise e"), *frames),
                "ValueError: " + last,
            ),
        )
        new.go(t + 3)
        api = (
            (
                "vllm/entrypoints/openai/api_server.py",
                740,
                "run_server",
                "async with build_async_engine_client(args) as engine_client:",
            ),
            (
                "vllm/entrypoints/openai/api_server.py",
                223,
                "build_async_engine_client_from_engine_args",
                "raise RuntimeError(",
            ),
        )
        new.say(
            "api", traceback(api, "RuntimeError: Engine process failed to start. See stack trace for the root cause.")
        )
    return Case(
        "The length flag got lost when the service file was rewritten", "kv-cache", "kv-pool-below-max-model-len", (),
        f"131,072 tokens are the model's own length; {blocks * 16:,} fit. The day before, with 16,384, the same card served.",
        "a healthy day stands in the rotated log with prompts that quote memory errors; the four-term line closes to the cent; three restarts repeat one failure",
        "0.6.6.post1", "A10G 24GB", model,
        {"logs/api.log": new.text(), "logs/api.log.1.gz": gzip.compress(old.text().encode(), 9, mtime=0),
         "llama.service": "[Service]\nEnvironment=HF_HOME=/srv/hf\nExecStart=/opt/vllm/bin/vllm serve meta-llama/Llama-3.1-8B-Instruct --host 0.0.0.0 --gpu-memory-utilization 0.9 --served-model-name llama\nRestart=always\nRestartSec=5\n"},
    )  # fmt: skip


# ---- weights


@case
def weights_70b_on_one_card() -> Case:
    """Seventy billion parameters in bfloat16 and one card of 80 GB."""
    server = Server("0.10.2", "2026-03-04 09:40:12", pid=1)
    plan = Plan("meta-llama/Llama-3.3-70B-Instruct", 79.11, 0.95, 131.4, 2, 0.3, 327_680, 8192, files=30)
    args = {"model_tag": plan.model, "model": plan.model, "max_model_len": 8192, "gpu_memory_utilization": 0.95}
    context = 0.52 * GIB
    # vocabulary, then per layer qkv, o, gate and up, down: 160 + 128 + 896 + 448 MiB
    room, used, layer = plan.total * GIB - context, 128_256 * 8192 * 2.0, (160 + 128 + 896 + 448) * MIB
    layers = int((room - used) // layer)
    used += layers * layer + layers * 2 * 8192 * 2
    want = 160 * MIB
    free = room - used - 1.6 * MIB
    assert 0 < free < want
    last = "torch.OutOfMemoryError: " + oom_text(want, plan.total * GIB, free, used, 1.6 * MIB)
    frames = (
        *LOAD,
        (
            "vllm/model_executor/models/llama.py",
            569,
            "__init__",
            "self.model = self._init_model(vllm_config=vllm_config,",
        ),
        (
            "vllm/model_executor/models/llama.py",
            368,
            "__init__",
            "self.start_layer, self.end_layer, self.layers = make_layers(",
        ),
        (
            "vllm/model_executor/models/utils.py",
            642,
            "make_layers",
            'maybe_offload_to_cpu(layer_fn(prefix=f"{prefix}.{idx}"))',
        ),
        ("vllm/model_executor/models/llama.py", 261, "__init__", "self.self_attn = LlamaAttention("),
        ("vllm/model_executor/models/llama.py", 163, "__init__", "self.qkv_proj = QKVParallelLinear("),
        ("vllm/model_executor/layers/linear.py", 908, "__init__", "super().__init__(input_size=input_size,"),
        *LAYER,
    )
    for attempt in range(3):
        t = boot(server, plan, args, upto="load", loaded=0.0, at=attempt * 75.0, tokens_per_step=8192)
        server.go(t + 6)
        die_at_start(server, frames, last)
    return Case(
        "A 70B in bfloat16 on the one H100 of a small host", "weights", "weights-exceed-gpu", (),
        "70.6 billion parameters x 2 bytes are 131 GiB; the card has 79. The allocator gives up in layer 49 of 80, before a single shard is read.",
        "the shard bar stands at 0 %, since memory runs out while the empty layers are built; three restarts, colour codes, and the last line names another error",
        server.version, "H100 80GB", plan.model,
        {"compose-logs.txt": compose(server.text(), "llm-api-1"),
         "nvidia-smi.txt": smi_table("Wed Mar  4 09:43:58 2026", "NVIDIA H100 80GB HBM3", [Card(4, 81_559, watts=71, cap=700)]),
         "docker-compose.yml": "services:\n  llm-api:\n    image: vllm/vllm-openai:v0.10.2\n    restart: always\n    ipc: host\n    command: --model meta-llama/Llama-3.3-70B-Instruct --max-model-len 8192 --gpu-memory-utilization 0.95\n    ports: [\"8000:8000\"]\n    deploy:\n      resources:\n        reservations:\n          devices:\n            - driver: nvidia\n              count: 1\n              capabilities: [gpu]\n"},
    )  # fmt: skip


# ---- parameters


@case
def edge_097_chat_server() -> Case:
    """A 14B on an A100 of 40 GB at 0.97: an ordinary step of the afternoon finds 62 MiB."""
    rng = random.Random(97)
    server = Server("0.11.0", "2025-11-06 13:02:51", pid=1)
    plan = Plan(
        "Qwen/Qwen2.5-14B-Instruct", 39.49, 0.97, 27.5681, 1.42, 0.25, 196_608, 16_384, graphs=0.84, files=8, load_s=31
    )
    args = {
        "model_tag": plan.model,
        "model": plan.model,
        "max_model_len": 16384,
        "gpu_memory_utilization": 0.97,
        "enable_auto_tool_choice": True,
        "tool_call_parser": "hermes",
    }
    ready = boot(server, plan, args)
    asks = traffic(
        rng,
        4,
        4300,
        0.34,
        "chat",
        ((0.55, 150, 1100), (0.35, 1100, 3000), (0.1, 3000, 7000)),
        ((0.7, 80, 400), (0.3, 400, 900)),
        0.4,
    )
    named(asks, "cmpl-7e")
    blocks = plan.blocks(server.v) - 1
    course = serve(asks, blocks=blocks, until=4200, prefill=6800, decode=chat_speed(30, 16))
    begin = ready + 1
    live_log(server, course, begin, place="loggers.py:127", until=4192)
    stat = course.stats[-1]
    free = 62.56 * MIB
    private, scratch, slack = 0.60 * GIB, 1.14 * GIB, 241.72 * MIB
    held = (plan.weights + plan.available(server.v)) * GIB + private + scratch
    last = "torch.OutOfMemoryError: " + oom_text(84 * MIB, plan.total * GIB, free, held, slack, private=private)
    frames = (
        *BUSY,
        ("vllm/v1/worker/gpu_model_runner.py", 2280, "execute_model", "model_output = self.model("),
        ("vllm/compilation/cuda_graph.py", 121, "__call__", "return self.runnable(*args, **kwargs)"),
        (
            "vllm/model_executor/models/qwen2.py",
            490,
            "forward",
            "hidden_states = self.model(input_ids, positions, intermediate_tensors,",
        ),
        ("vllm/compilation/decorators.py", 310, "__call__", "model_output = self.forward(*args, **kwargs)"),
        (
            "vllm/compilation/cuda_piecewise_backend.py",
            90,
            "__call__",
            "return self.compiled_graph_for_general_shape(*args)",
        ),
        ("torch/_inductor/output_code.py", 584, "__call__", "return self.current_callable(inputs)"),
    )
    server.go(begin + 4196.3)
    step_dump(
        server, plan, new=[("chatcmpl-7e00921", 1571, "prompt_logprobs=None")], cached=[(f"chatcmpl-7e00{900 + k}", 700 + 391 * k) for k in range(min(22, stat.running))],
        scheduled=1571 + min(22, stat.running), running=stat.running + 1, waiting=0, used=round(stat.used, 10))  # fmt: skip
    die_in_service(server, frames, last, stat.running)
    origin = server.start + dt.timedelta(seconds=begin)
    table = ["timestamp,request_id,model,prompt_tokens,completion_tokens,latency_ms,status"]
    for ask in sorted((*course.done, *course.live), key=lambda ask: ask.t):
        if ask.end is not None and ask.end < 4196:
            table.append(
                f"{iso(origin, ask.t)},{ask.id},qwen2.5-14b,{ask.prompt},{ask.made},{(ask.end - ask.t) * 1000:.0f},200"
            )
        elif ask.t < 4196:
            table.append(f"{iso(origin, ask.t)},{ask.id},qwen2.5-14b,{ask.prompt},,{(4196.7 - ask.t) * 1000:.0f},500")
    used = int((plan.total * GIB - free) / MIB) + 447
    return Case(
        "A chat server at 0.97 falls over in an ordinary step", "parameters", "memory-utilization-edge", ("prefill-activation-spike",),
        "84 MiB fail with 62 MiB free on a 40 GB card that was planned to 97 %; graphs and libraries took the 1.2 GiB outside the plan. The step is smaller than the one profiled, the pool is far from full.",
        "the failure comes after seventy minutes of quiet service, in a prefill; the message advises against fragmentation as it always does; two dozen echoes follow",
        server.version, "A100 40GB", plan.model,
        {"vllm.log": server.text(), "requests.csv": "\n".join(table) + "\n",
         "gpu.csv": "timestamp, index, name, memory.used [MiB], memory.total [MiB], utilization.gpu [%]\n" + "".join(
             f"{server.start + dt.timedelta(seconds=begin + 60 * k):%Y/%m/%d %H:%M:%S}.{417 + k % 9}, 0, NVIDIA A100-SXM4-40GB, {min(used, used - 388 + 96 * min(k, 4) + k // 20)} MiB, 40960 MiB, {71 + 5 * k % 28} %\n" for k in range(69))},
    )  # fmt: skip


@case
def prompt_logprobs_spike() -> Case:
    """An evaluation job asks for the probabilities of its own prompt on a chat server."""
    rng = random.Random(1212)
    server = Server("0.12.0", "2026-01-14 08:20:33", pid=1)
    plan = Plan("Qwen/Qwen3-14B", 79.25, 0.9, 27.5157, 1.96, 0.27, 163_840, 32_768, graphs=0.9, files=8, load_s=27)
    args = {
        "model_tag": plan.model,
        "model": plan.model,
        "max_model_len": 32768,
        "max_num_batched_tokens": 8192,
        "enable_prefix_caching": True,
    }
    ready = boot(server, plan, args, tokens_per_step=8192, warm=True)
    asks = traffic(rng, 3, 1500, 0.5, "chat", ((0.7, 120, 900), (0.3, 900, 4000)), ((1, 60, 500),), 0.5)
    named(asks, "chat-")
    blocks = plan.blocks(server.v) - 1
    course = serve(asks, blocks=blocks, until=1510, prefill=9000, decode=chat_speed(52, 40))
    begin = ready + 1
    live_log(server, course, begin, place="loggers.py:248", until=1503)
    stat = course.stats[-1]
    rows, vocabulary = 8192 - stat.running, 151_936
    half, whole = rows * vocabulary * 2.0, rows * vocabulary * 4.0
    private, hidden, slack = 0.62 * GIB, 0.16 * GIB, 318.4 * MIB
    held = (plan.weights + plan.available(server.v)) * GIB + private + hidden + half + whole
    free = plan.total * GIB - held - slack - 0.57 * GIB
    assert 0 < free < whole
    last = "torch.OutOfMemoryError: " + oom_text(
        -(-whole // (2 * MIB)) * 2 * MIB,
        plan.total * GIB,
        free,
        held,
        slack,
        private=private,
        own_pid=2_714_403,
        modern=True,
    )
    frames = (
        *BUSY[:-1],
        (
            "vllm/v1/worker/gpu_worker.py",
            561,
            "sample_tokens",
            "return self.model_runner.sample_tokens(grammar_output)",
        ),
        ("vllm/v1/worker/gpu_model_runner.py", 3113, "sample_tokens", ") = self._bookkeeping_sync("),
        (
            "vllm/v1/worker/gpu_model_runner.py",
            2588,
            "_bookkeeping_sync",
            "prompt_logprobs_dict = self._get_prompt_logprobs_dict(",
        ),
        (
            "vllm/v1/worker/gpu_model_runner.py",
            3812,
            "_get_prompt_logprobs_dict",
            "logprobs = self.sampler.compute_logprobs(logits)",
        ),
        (
            "vllm/v1/sample/sampler.py",
            226,
            "compute_logprobs",
            "return logits.log_softmax(dim=-1, dtype=torch.float32)",
        ),
    )
    server.go(begin + 1506.2)
    step_dump(
        server, plan, new=[("cmpl-eval-b7c1-0", 12_418, "prompt_logprobs=1")], cached=[(f"chatcmpl-{k:03x}f", 400 + 217 * k) for k in range(stat.running)],
        scheduled=8192, running=stat.running + 1, waiting=0, used=round(stat.used + 8192 / 16 / blocks, 10))  # fmt: skip
    die_in_service(server, frames, last, stat.running)
    origin = server.start + dt.timedelta(seconds=begin)
    lines = []
    for ask in sorted((*course.done, *course.live), key=lambda ask: ask.t):
        if ask.t > 1506:
            continue
        answered = ask.end is not None and ask.end < 1506
        lines.append(json.dumps({
            "ts": iso(origin, ask.t), "id": ask.id, "route": "/v1/chat/completions", "model": "qwen3-14b", "max_tokens": ask.output, "latency_ms": round(((ask.end or 1506.6) - ask.t) * 1000),
            "status": 200 if answered else 500, "usage": {"prompt_tokens": ask.prompt, "completion_tokens": ask.made, "total_tokens": ask.prompt + ask.made, "prompt_tokens_details": {"cached_tokens": ask.hit}} if answered else None}))  # fmt: skip
    lines.append(
        json.dumps(
            {
                "ts": iso(origin, 1504.9),
                "id": "eval-b7c1",
                "route": "/v1/completions",
                "model": "qwen3-14b",
                "max_tokens": 1,
                "prompt_logprobs": 1,
                "latency_ms": 1840,
                "status": 500,
                "usage": None,
            }
        )
    )
    return Case(
        "An evaluation job asks for prompt probabilities", "parameters", "prefill-activation-spike", ("memory-utilization-edge",),
        f"{size_of(whole)} fail, which is {rows:,} tokens x {vocabulary:,} entries x 4 bytes; the pool is nearly empty, and no profile covers this.",
        "the own process appears under a host pid, as another one would; seven GiB were free a moment before; the request never reached the request log's usual shape",
        server.version, "A100 80GB", plan.model, {"vllm.log": server.text(), "gateway.jsonl": "\n".join(lines) + "\n"},
    )  # fmt: skip


def size_of(amount: float) -> str:
    """A size for a sentence."""
    return f"{amount / GIB:.2f} GiB"


@case
def graph_capture_on_24gb() -> Case:
    """A workstation card at 0.92: the pool is there, the graphs find no room."""
    server = Server("0.11.0", "2026-05-22 19:11:40", pid=4102)
    plan = Plan("Qwen/Qwen3-8B", 23.53, 0.92, 15.2683, 1.40, 0.05, 147_456, 32_768, files=5, load_s=12)
    args = {"model_tag": plan.model, "model": plan.model, "max_model_len": 32768, "gpu_memory_utilization": 0.92}
    t = boot(server, plan, args, upto="capture", captured=(67, 23))
    free, private, slack = 14.44 * MIB, 1.79 * GIB, 51.3 * MIB
    held = (plan.weights + plan.available(server.v)) * GIB + private + 18 * MIB
    last = "torch.OutOfMemoryError: " + oom_text(20 * MIB, plan.total * GIB, free, held, slack, private=private)
    frames = (
        *CAPTURE,
        (
            "vllm/model_executor/models/qwen3.py",
            321,
            "forward",
            "hidden_states = self.model(input_ids, positions, intermediate_tensors,",
        ),
        (
            "vllm/model_executor/layers/logits_processor.py",
            60,
            "forward",
            "logits = self._get_logits(hidden_states, lm_head, embedding_bias)",
        ),
    )
    server.go(t)
    die_at_start(server, frames, last)
    server.say("api", "vllm-qwen.service: Main process exited, code=exited, status=1/FAILURE")
    return Case(
        "The last graphs of a start do not fit", "parameters", "cuda-graph-overhead", ("memory-utilization-edge",),
        "The pool is allocated, the first kind of graphs is captured, the second stops at 23 of 35 with 14 MiB free: 1.9 GiB outside the plan were not enough. Eager mode would have come up.",
        "the error is glued to a progress bar; weights, pool and length are fine; 20 MiB is what torch asks for anything between 1 and 10",
        server.version, "RTX 4090 24GB", plan.model,
        {"vllm.log": server.text(), "nvidia-smi.txt": smi_table("Fri May 22 19:14:02 2026", "NVIDIA GeForce RTX 4090", [Card(11, 24_564, watts=22, cap=450)], "560.35.05", "12.6")},
    )  # fmt: skip


@case
def sampler_warmup_1024() -> Case:
    """1,024 sequences on two small cards: the rehearsal of the sampler does not fit."""
    server = Server("0.8.5", "2025-06-03 10:08:25", tp=2, pid=210)
    plan = Plan(
        "Qwen/Qwen2.5-14B-Instruct", 22.05, 0.9, 13.9205, 1.06, 0.62, 98_304, 8192, graphs=0.55, files=8, load_s=22
    )
    args = {
        "model": plan.model,
        "tensor_parallel_size": 2,
        "max_model_len": 8192,
        "max_num_seqs": 1024,
        "gpu_memory_utilization": 0.9,
        "model_tag": plan.model,
    }
    t = boot(server, plan, args, tokens_per_step=2048, upto="capture")
    for rank in (0, 1):
        server.log(
            f"w{rank}", "gpu_model_runner.py:1686", f"Graph capturing finished in 26 secs, took {plan.graphs:.2f} GiB"
        )
    logits = 1024 * 152_064 * 4.0
    held = (plan.weights + plan.available(server.v)) * GIB + 0.31 * GIB + logits * 2 + 0.05 * GIB
    slack, non_torch = 27.9 * MIB, 1.31 * GIB
    frames = (
        ("vllm/v1/executor/multiproc_executor.py", 376, "worker_busy_loop", "output = func(*args, **kwargs)"),
        ("vllm/v1/worker/gpu_worker.py", 247, "compile_or_warm_up_model", "self.model_runner._dummy_sampler_run("),
        ("torch/utils/_contextlib.py", 116, "decorate_context", "return func(*args, **kwargs)"),
    )
    inner = (
        (
            "vllm/v1/worker/gpu_model_runner.py",
            1506,
            "_dummy_sampler_run",
            "sampler_output = self.sampler(logits=logits,",
        ),
        ("vllm/v1/sample/sampler.py", 49, "forward", "sampled = self.sample(logits, sampling_metadata)"),
        (
            "vllm/v1/sample/ops/topk_topp_sampler.py",
            169,
            "apply_top_k_top_p",
            "logits_sort, logits_idx = logits.sort(dim=-1, descending=False)",
        ),
    )
    words = "CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine."
    server.go(t + 2)
    for rank in (0, 1):
        free = plan.total * GIB - held - slack - non_torch - rank * 6 * MIB
        want = -(-logits * 2 // (2 * MIB)) * 2 * MIB
        assert 0 < free < want
        text = traceback(
            (*frames, *inner),
            "torch.OutOfMemoryError: "
            + oom_text(want, plan.total * GIB, free, held, slack, private=0.31 * GIB, device=rank),
        )
        text += "\n\nThe above exception was the direct cause of the following exception:\n\n" + traceback(
            (*frames, ("vllm/v1/worker/gpu_model_runner.py", 1510, "_dummy_sampler_run", "raise RuntimeError(")), "RuntimeError: " + words)  # fmt: skip
        server.error(f"w{rank}", "multiproc_executor.py:470", "WorkerProc hit an exception.", text)
    core = (
        *INIT,
        ("vllm/v1/engine/core.py", 71, "__init__", "self._initialize_kv_caches(vllm_config)"),
        ("vllm/v1/executor/multiproc_executor.py", 215, "collective_rpc", "result = get_response(w, dequeue_timeout)"),
    )
    die_at_start(
        server,
        core,
        f"RuntimeError: Worker failed with error '{words}', please check the stack trace above for the root cause",
    )
    return Case(
        "Somebody raised the number of sequences to 1,024 on two L4", "parameters", "max-num-seqs-too-high", ("memory-utilization-edge",),
        "The sampler is warmed up with 1,024 rows of 152,064 logits: two copies of 594 MiB are there, the sort asks for 1.16 GiB more. Loading, profile, pool and graphs went well.",
        "two ranks fail at one moment, each twice; the wrapper repeats the words once more; the engine names two remedies of which one is right",
        server.version, "2x L4 24GB", plan.model,
        {"vllm.log": server.text(), "start.sh": "#!/bin/sh\nexport VLLM_USE_V1=1\nexec vllm serve Qwen/Qwen2.5-14B-Instruct --tensor-parallel-size 2 --max-model-len 8192 --max-num-seqs 1024\n"},
    )  # fmt: skip


@case
def utilization_left_at_035() -> Case:
    """A figure from a notebook with two models on one card came along into production."""
    server = Server("0.31.0", "2026-08-19 15:27:05", pid=1, as_json=True)
    plan = Plan(
        "mistralai/Mistral-Small-3.2-24B-Instruct",
        79.18,
        0.35,
        43.91,
        1.87,
        0.31,
        163_840,
        32_768,
        estimate=0.71,
        files=10,
        load_s=38,
    )
    args = {"model_tag": plan.model, "model": plan.model, "max_model_len": 32768, "gpu_memory_utilization": 0.35}
    t = boot(server, plan, args, upto="plan", tokens_per_step=8192)
    server.go(t)
    last = "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine. See https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details."
    die_at_start(server, PLAN, last, core_proc="{'EngineCore': 1}")
    return Case(
        "A notebook's share of the card went into production", "parameters", "memory-utilization-too-low", (),
        f"0.35 x 79.18 GiB are 27.7 GiB, the weights alone take 43.9; {plan.available(server.v):.1f} GiB are left for KV, while half of the card is empty.",
        "the engine's own advice is right for once; records are JSON while the progress bars are not",
        server.version, "H100 80GB", plan.model,
        {"server.jsonl": server.text(), "nvidia-smi.txt": smi_table("Wed Aug 19 15:31:30 2026", "NVIDIA H100 80GB HBM3", [Card(1, 81_559, watts=69, cap=700)], "575.57.08", "12.9")},
    )  # fmt: skip


# ---- parallelism


@case
def one_of_four_cards() -> Case:
    """Four A100 of 40 GB in the host, a 32B on the first."""
    server = Server("0.16.0", "2026-04-09 11:55:18", pid=1)
    plan = Plan("Qwen/Qwen3-32B", 39.49, 0.9, 61.03, 2.0, 0.3, 262_144, 16_384, files=17)
    args = {
        "model_tag": plan.model,
        "model": plan.model,
        "max_model_len": 16384,
        "enable_auto_tool_choice": True,
        "tool_call_parser": "hermes",
    }
    t = boot(server, plan, args, upto="load", loaded=0.0)
    context = 0.47 * GIB
    # vocabulary, then per layer qkv, o, gate and up, down: 100 + 80 + 500 + 250 MiB
    room, used, layer = plan.total * GIB - context, 151_936 * 5120 * 2.0, (100 + 80 + 500 + 250) * MIB
    layers = int((room - used) // layer)
    used += layers * layer + (100 + 80) * MIB
    free = room - used - 2.9 * MIB
    want = 500 * MIB
    assert 0 < free < want
    message = oom_text(want, plan.total * GIB, free, used, 2.9 * MIB, modern=True)
    server.go(t + 5)
    server.log("core", "gpu_model_runner.py:4818", (
        "Failed to load model - not enough GPU memory. Try lowering --gpu-memory-utilization to free memory for weights, increasing --tensor-parallel-size, or using --quantization. "
        f"See https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more tips. (original error: {message})"), "ERROR")  # fmt: skip
    frames = (
        *LOAD,
        (
            "vllm/model_executor/models/qwen3.py",
            285,
            "__init__",
            'self.model = Qwen3Model(vllm_config=vllm_config, prefix=maybe_prefix(prefix, "model"))',
        ),
        (
            "vllm/model_executor/models/utils.py",
            667,
            "make_layers",
            'maybe_offload_to_cpu(layer_fn(prefix=f"{prefix}.{idx}"))',
        ),
        ("vllm/model_executor/models/qwen3.py", 199, "__init__", "self.mlp = Qwen3MLP("),
        ("vllm/model_executor/models/qwen2.py", 85, "__init__", "self.gate_up_proj = MergedColumnParallelLinear("),
        *LAYER,
    )
    die_at_start(server, frames, "torch.OutOfMemoryError: " + message)
    fill = [0, 0, 0, 0, 511, 1290, 18_744, 40_291, 40_291, 7, 4]
    rows = ["timestamp, index, name, memory.used [MiB], memory.total [MiB], utilization.gpu [%]"]
    for k, used_mib in enumerate(fill):
        at = server.start + dt.timedelta(seconds=5 * k)
        rows += [
            f"{at:%Y/%m/%d %H:%M:%S}.{211 + 3 * k + card}, {card}, NVIDIA A100-SXM4-40GB, {used_mib + 4 if card == 0 else 4} MiB, 40960 MiB, {37 if card == 0 and 5 < k < 9 else 0} %"
            for card in range(4)
        ]
    return Case(
        "A 32B is put on the first of four cards", "parallelism", "tp-undersharded", ("weights-exceed-gpu",),
        "61 GiB of parameters on a 40 GB card, while three of the same kind hold 4 MiB each: spread over four ranks it is 15 GiB apiece.",
        "the same message as with one card alone; only the device samples tell that three more are there; at the last sample all four are empty again",
        server.version, "4x A100 40GB", plan.model,
        {"vllm.log": server.text(), "gpu-samples.csv": "\n".join(rows) + "\n", "run.sh": "#!/bin/sh\ndocker run --rm --gpus all --ipc=host -p 8000:8000 -v /data/hf:/srv/.cache/huggingface \\\n  vllm/vllm-openai:v0.16.0 --model Qwen/Qwen3-32B --max-model-len 16384 --enable-auto-tool-choice --tool-call-parser hermes\n"},
    )  # fmt: skip


# ---- scheduling


@case
def second_tenant_on_card_one() -> Case:
    """A job of the night shift still sits on one of the two cards when the server is rolled out."""
    first = Server("0.31.0", "2026-09-02 17:40:09", tp=2, pid=1)
    plan = Plan(
        "Qwen/Qwen3-32B",
        79.18,
        0.92,
        30.59,
        1.94,
        1.33,
        131_072,
        40_960,
        graphs=0.72,
        estimate=0.81,
        files=17,
        load_s=46,
    )
    args = {"model_tag": plan.model, "model": plan.model, "tensor_parallel_size": 2, "max_model_len": 40960}
    ready = boot(first, plan, args, tokens_per_step=8192, free=(78.66, 78.66))
    rng = random.Random(31)
    asks = named(traffic(rng, 5, 700, 0.2, "batch", ((1, 300, 2600),), ((1, 100, 400),), 0.2), "r")
    course = serve(asks, blocks=plan.blocks(first.v) - 1, until=760, prefill=9000, decode=chat_speed(48, 50))
    live_log(first, course, ready + 1, place="loggers.py:335", until=760)
    first.go(ready + 764)
    first.log("api", "launcher.py:304", "[shutdown] API server: shutting down FastAPI HTTP server")
    first.uvicorn("Shutting down")
    first.uvicorn("Waiting for application shutdown.")
    first.uvicorn("Application shutdown complete.")
    second = Server("0.31.0", "2026-09-03 06:02:31", tp=2, pid=1)
    for attempt in range(2):
        t = boot(second, plan, args, at=attempt * 41.0, upto="config", tokens_per_step=8192)
        second.go(t + 8)
        for rank in (0, 1):
            second.log(
                f"w{rank}",
                "parallel_state.py:1906",
                f"world_size=2 rank={rank} local_rank={rank} distributed_init_method=tcp://127.0.0.1:51{attempt}77 backend=nccl",
            )
        second.log("w0", "pynccl.py:111", "vLLM is using nccl==2.28.9")
        second.go(t + 11)
        last = (
            f"ValueError: Free memory on device cuda:1 ({37.86 - 0.01 * attempt:.2f}/79.18 GiB) on startup is less than desired GPU memory utilization (0.92, 72.85 GiB). "
            "Decrease GPU memory utilization or reduce GPU memory used by other processes."
        )
        frames = (
            ("vllm/v1/executor/multiproc_executor.py", 870, "worker_main", "worker = WorkerProc(*args, **kwargs)"),
            ("vllm/v1/executor/multiproc_executor.py", 655, "__init__", "self.worker.init_device()"),
            ("vllm/v1/worker/worker_base.py", 322, "init_device", "self.worker.init_device()"),
            (
                "vllm/v1/worker/gpu_worker.py",
                301,
                "init_device",
                "self.requested_memory = request_memory(init_snapshot, self.cache_config)",
            ),
            ("vllm/v1/worker/utils.py", 412, "request_memory", "raise ValueError("),
        )
        second.error("w1", "multiproc_executor.py:899", "WorkerProc failed to start.", traceback(frames, last))
        second.log("w0", "multiproc_executor.py:843", "Parent process exited, terminating worker queues")
        core = (
            *INIT,
            (
                "vllm/v1/executor/multiproc_executor.py",
                178,
                "_init_executor",
                "self.workers = WorkerProc.wait_for_ready(unready_workers)",
            ),
        )
        die_at_start(
            second,
            core,
            "Exception: WorkerProc initialization failed due to an exception in a background process. See stack trace for root cause.",
            core_proc="{'EngineCore': 1}",
        )
    kept = stamped(first.text(), first.start)
    log = stamped(second.text(), second.start)
    cards = [
        Card(4, 81_559, watts=70, cap=700),
        Card(41_808, 81_559, 63, ((2_190_447, "/opt/night/venv/bin/finetune-runner", 41_796),), 389, 700, 58),
    ]
    return Case(
        "A night job still holds 40 GiB of the second card", "scheduling", "gpu-shared", (),
        "37.9 of 79.2 GiB are free on the second card before anything is loaded; nvidia-smi names a fine-tuning job with 41,796 MiB. The evening before, the same flags served.",
        "a healthy start stands before it; only one rank complains; every line carries a second clock; the last error of the file says nothing of memory",
        "0.31.0", "2x H100 80GB", plan.model,
        {"pod-logs/server-previous.log": kept, "pod-logs/server.log": log, "node/nvidia-smi.txt": smi_table("Thu Sep  3 06:05:12 2026", "NVIDIA H100 80GB HBM3", cards, "575.57.08", "12.9")},
    )  # fmt: skip


@case
def startup_probe_too_short() -> Case:
    """Weights come from a slow share, the liveness probe gives the server three minutes."""
    plan = Plan("/models/qwen3-32b", 79.18, 0.92, 61.03, 2, 0.4, 262_144, 32_768, files=17, load_s=420)
    args = {
        "model_tag": plan.model,
        "model": plan.model,
        "host": "0.0.0.0",
        "max_model_len": 32768,
        "served_model_name": ["qwen3-32b"],
    }
    lives = []
    for life, begun in enumerate(("07:58:02", "08:01:25", "08:04:59", "08:09:04")):
        server = Server("0.20.2", f"2026-07-14 {begun}", pid=1)
        t = boot(
            server,
            plan,
            args,
            upto="load",
            loaded=(0.31, 0.36, 0.36, 0.31)[life],
            tokens_per_step=8192,
            served="qwen3-32b",
        )
        if life < 3:
            server.go(t)
            server.say("api", "")
        lives.append(server.text())
    pod = "qwen3-32b-7c9f6d5b8-x2lqk"
    prefixed = ["".join(f"[pod/{pod}/server] {line}\n" for line in text.split("\n")[:-1]) for text in lives]
    describe = f"""Name:             {pod}
Namespace:        inference
Priority:         0
Service Account:  default
Node:             gpu-node-07/192.0.2.107
Start Time:       Tue, 14 Jul 2026 07:57:40 +0000
Labels:           app=qwen3-32b
                  pod-template-hash=7c9f6d5b8
Status:           Running
IP:               198.51.100.23
Controlled By:    ReplicaSet/qwen3-32b-7c9f6d5b8
Containers:
  server:
    Container ID:  containerd://5b1e0c6c0d7be6f0a94d1a5c0d57f8a4b9a0a7ff0e8c1de0b6a4b1a1c2d3e4f5
    Image:         vllm/vllm-openai:v0.20.2
    Port:          8000/TCP
    Host Port:     0/TCP
    Args:
      /models/qwen3-32b
      --host=0.0.0.0
      --max-model-len=32768
      --served-model-name=qwen3-32b
    State:          Running
      Started:      Tue, 14 Jul 2026 08:09:01 +0000
    Last State:     Terminated
      Reason:       Error
      Exit Code:    137
      Started:      Tue, 14 Jul 2026 08:04:56 +0000
      Finished:     Tue, 14 Jul 2026 08:08:29 +0000
    Ready:          False
    Restart Count:  3
    Limits:
      cpu:             16
      memory:          160Gi
      nvidia.com/gpu:  1
    Requests:
      cpu:             8
      memory:          96Gi
      nvidia.com/gpu:  1
    Liveness:       http-get http://:8000/health delay=60s timeout=1s period=10s #success=1 #failure=12
    Readiness:      http-get http://:8000/health delay=30s timeout=1s period=5s #success=1 #failure=3
    Environment:
      HF_HUB_OFFLINE:  1
    Mounts:
      /dev/shm from dshm (rw)
      /models from weights (ro)
Conditions:
  Type                        Status
  PodReadyToStartContainers   True
  Initialized                 True
  Ready                       False
  ContainersReady             False
  PodScheduled                True
Volumes:
  weights:
    Type:       PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)
    ClaimName:  model-store
    ReadOnly:   true
  dshm:
    Type:        EmptyDir (a temporary directory that shares a pod's lifetime)
    Medium:      Memory
    SizeLimit:   16Gi
QoS Class:                   Burstable
Node-Selectors:              nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3
Tolerations:                 nvidia.com/gpu:NoSchedule op=Exists
Events:
  Type     Reason     Age                    From               Message
  ----     ------     ----                   ----               -------
  Normal   Scheduled  12m                    default-scheduler  Successfully assigned inference/{pod} to gpu-node-07
  Normal   Pulled     12m                    kubelet            Successfully pulled image "vllm/vllm-openai:v0.20.2" in 1.204s (1.204s including waiting). Image size: 9874112345 bytes.
  Normal   Created    57s (x4 over 12m)      kubelet            Created container: server
  Normal   Started    57s (x4 over 12m)      kubelet            Started container server
  Warning  Unhealthy  2m30s (x39 over 10m)   kubelet            Liveness probe failed: Get "http://198.51.100.23:8000/health": dial tcp 198.51.100.23:8000: connect: connection refused
  Normal   Killing    2m (x3 over 9m)        kubelet            Container server failed liveness probe, will be restarted
  Warning  Unhealthy  7s (x131 over 11m)     kubelet            Readiness probe failed: Get "http://198.51.100.23:8000/health": dial tcp 198.51.100.23:8000: connect: connection refused
"""
    events = f"""LAST SEEN   TYPE      REASON      OBJECT                              MESSAGE
12m         Normal    Scheduled   pod/{pod}       Successfully assigned inference/{pod} to gpu-node-07
57s         Normal    Started     pod/{pod}       Started container server
2m30s       Warning   Unhealthy   pod/{pod}       Liveness probe failed: Get "http://198.51.100.23:8000/health": dial tcp 198.51.100.23:8000: connect: connection refused
2m          Normal    Killing     pod/{pod}       Container server failed liveness probe, will be restarted
7s          Warning   Unhealthy   pod/{pod}       Readiness probe failed: Get "http://198.51.100.23:8000/health": dial tcp 198.51.100.23:8000: connect: connection refused
12m         Normal    ScalingReplicaSet   deployment/qwen3-32b      Scaled up replica set qwen3-32b-7c9f6d5b8 to 1
"""
    return Case(
        "The probe is over before the weights are read", "scheduling", "probe-restart-loop", (),
        "Four starts, none with an error of its own: each ends after some 200 seconds at a third of the shards, which is 60 s delay + 12 x 10 s + 30 s of grace. Loading would take seven minutes.",
        "exit code 137 and a limit of memory in the same page invite another answer; the logs simply stop",
        "0.20.2", "H100 80GB", plan.model,
        {"describe-pod.txt": describe, "events.txt": events, "logs/server.log": prefixed[3], "logs/server.previous.log": prefixed[2], "logs/archive/server.2.log": prefixed[1], "logs/archive/server.1.log": prefixed[0]},
    )  # fmt: skip


# ---- allocator and host


@case
def pieces_of_seven_gib() -> Case:
    """A workstation server with prompts of every size: seven GiB are reserved and none of it in one piece."""
    rng = random.Random(77)
    server = Server("0.9.2", "2025-08-27 09:33:48", pid=5120)
    plan = Plan(
        "Qwen/Qwen2.5-14B-Instruct", 47.53, 0.8, 27.5681, 3.31, 0.13, 196_608, 32_768, graphs=0, files=8, load_s=19
    )
    args = {
        "model": plan.model,
        "max_model_len": 32768,
        "gpu_memory_utilization": 0.8,
        "max_num_batched_tokens": 32768,
        "enforce_eager": True,
        "enable_lora": False,
    }
    ready = boot(server, plan, args, tokens_per_step=32768, eager=True)
    asks = traffic(
        rng, 6, 2600, 0.06, "notebook", ((0.4, 200, 2000), (0.4, 2000, 9000), (0.2, 9000, 27000)), ((1, 50, 350),), 0.1
    )
    named(asks, "cmpl-")
    blocks = plan.blocks(server.v) - 1
    course = serve(asks, blocks=blocks, until=2600, prefill=7000, decode=chat_speed(38, 25), chunk=32768)
    begin = ready + 1
    live_log(server, course, begin, place="loggers.py:118", until=2590, health=0, scrape=0)
    stat = course.stats[-1]
    pool = plan.available(server.v) * GIB
    slack, free, want = 7.58 * GIB, 1.02 * GIB, 1.71 * GIB
    held = plan.total * GIB - free - slack - 0.49 * GIB
    work = held - plan.weights * GIB - pool
    assert work > 0
    last = "torch.OutOfMemoryError: " + oom_text(want, plan.total * GIB, free, held, slack)
    frames = (
        *BUSY,
        ("vllm/v1/worker/gpu_model_runner.py", 1376, "execute_model", "model_output = self.model("),
        (
            "vllm/model_executor/models/qwen2.py",
            481,
            "forward",
            "hidden_states = self.model(input_ids, positions, intermediate_tensors,",
        ),
        ("vllm/model_executor/models/qwen2.py", 256, "forward", "hidden_states = self.mlp(hidden_states)"),
        ("vllm/model_executor/models/qwen2.py", 104, "forward", "gate_up, _ = self.gate_up_proj(x)"),
        (
            "vllm/model_executor/layers/utils.py",
            85,
            "default_unquantized_gemm",
            "return torch.nn.functional.linear(x, weight, bias)",
        ),
    )
    server.go(begin + 2592.8)
    step_dump(
        server, plan, new=[("cmpl-nb-0412-0", 26_913, "prompt_logprobs=None")], cached=[(f"cmpl-{k:05d}", 900 + 811 * k) for k in range(stat.running)],
        scheduled=32_768 - 3, running=stat.running + 1, waiting=0, used=round(stat.used, 10))  # fmt: skip
    die_in_service(server, frames, last, max(2, stat.running))
    reserved = int(held + slack)
    split = int(7.49 * GIB)

    def row(current: int, peak: int, total: int) -> tuple[int, int, int, int]:
        return current, peak, total, total - current

    def pools(current: int, peak: int, total: int, small: float) -> list[tuple[int, int, int, int]]:
        lo = (int(current * small), int(peak * small), int(total * small))
        return [row(current, peak, total), row(current - lo[0], peak - lo[1], total - lo[2]), row(*lo)]

    table = memory_summary(
        [
            ("Allocated memory", pools(int(held), int(held + 1.4 * GIB), int(4120 * GIB), 0.0011)),
            ("Active memory", pools(int(held), int(held + 1.4 * GIB), int(4120 * GIB), 0.0011)),
            ("Requested memory", pools(int(held * 0.998), int(held * 0.998 + 1.4 * GIB), int(4109 * GIB), 0.0011)),
            ("GPU reserved memory", pools(reserved, reserved + 12 * MIB, int(52.4 * GIB), 0.0013)),
            ("Non-releasable memory", pools(split, int(8.02 * GIB), int(3011 * GIB), 0.0009)),
            ("Allocations", pools(1214, 1377, 1_913_204, 0.71)),
            ("Active allocs", pools(1214, 1377, 1_913_204, 0.71)),
            ("GPU reserved segments", pools(402, 431, 466, 0.12)),
            ("Non-releasable allocs", pools(391, 418, 611_093, 0.06)),
            ("Oversize allocations", [row(0, 0, 0)]),
            ("Oversize GPU segments", [row(0, 0, 0)]),
        ],
        1,
        34,
    )
    return Case(
        "Prompts of every size cut the reserve to pieces", "allocator", "allocator-fragmentation", ("prefill-activation-spike",),
        "1.71 GiB fail while torch holds 7.58 GiB in reserve and 1.02 GiB are free; 7.49 GiB of it are remainders of split segments in 402 pieces, and 34 flushes did not help.",
        "the step is a long prefill too, and a fifth of the card was left free by design: the bytes were there",
        server.version, "RTX A6000 48GB", plan.model,
        {"vllm.log": server.text(), "memory-summary.txt": "# from the excepthook of the worker\n" + table},
    )  # fmt: skip


@case
def killed_while_loading() -> Case:
    """Offloaded weights need host memory, and the pod has a limit."""
    server = Server("0.14.1", "2026-02-17 21:04:36", tp=2, pid=1)
    plan = Plan("meta-llama/Llama-3.3-70B-Instruct", 44.39, 0.92, 33.8, 1.6, 1.4, 163_840, 8192, files=30, load_s=300)
    args = {
        "model_tag": plan.model,
        "model": plan.model,
        "tensor_parallel_size": 2,
        "max_model_len": 8192,
        "gpu_memory_utilization": 0.92,
        "cpu_offload_gb": 32.0,
    }
    t = boot(server, plan, args, upto="load", loaded=0.74, tokens_per_step=2048)
    server.go(t)
    log = server.text()
    pod = "llama-70b-5f7d9c4f6b-hk8zt"
    uid = "pod7a1d5a0e_33c1_4d0c_9f0a_2b6f0f2b9d11"
    limit = 64 << 20  # KiB
    group = f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-{uid}.slice"

    def victim(pid: int, name: str, anon: int, file: int, shmem: int) -> str:
        return f"Memory cgroup out of memory: Killed process {pid} ({name}) total-vm:{anon * 2 + 61_204_480}kB, anon-rss:{anon}kB, file-rss:{file}kB, shmem-rss:{shmem}kB, UID:0 pgtables:{anon // 480}kB oom_score_adj:872"

    rows = [
        "VLLM::Worker_TP invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=872",
        "CPU: 37 PID: 914377 Comm: VLLM::Worker_TP Tainted: P           OE      6.8.0-52-generic #53-Ubuntu",
        "Call Trace:",
        " dump_stack_lvl+0x76/0xa0",
        " oom_kill_process+0x118/0x280",
        " mem_cgroup_out_of_memory+0xf5/0x120",
        f"memory: usage {limit}kB, limit {limit}kB, failcnt 41877",
        "swap: usage 0kB, limit 0kB, failcnt 0",
        f"Memory cgroup stats for {group}:",
        "anon 66931822592",
        "file 1412808704",
        "shmem 322961408",
        "[  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name",
        "[ 913802]     0 913802  4411207   271904   243116    28788         0  3604480        0           872 vllm",
        "[ 914205]     0 914205  4570012   341077   309220    31857         0  4096000        0           872 VLLM::EngineCor",
        "[ 914376]     0 914376 31744201  7984412  7921830    41022     21560 66170880        0           872 VLLM::Worker_TP",
        "[ 914377]     0 914377 31740877  7979006  7917004    40702     21300 66129920        0           872 VLLM::Worker_TP",
        f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=cri-containerd-91c2.scope,mems_allowed=0-1,oom_memcg={group},task_memcg={group}/cri-containerd-91c2.scope,task=VLLM::Worker_TP,pid=914376,uid=0",
        victim(914_376, "VLLM::Worker_TP", 7_921_830 * 4, 41_022 * 4, 21_560 * 4),
        f"Tasks in {group}/cri-containerd-91c2.scope are going to be killed due to memory.oom.group set",
        victim(913_802, "vllm", 243_116 * 4, 28_788 * 4, 0),
        victim(914_205, "VLLM::EngineCor", 309_220 * 4, 31_857 * 4, 0),
        victim(914_377, "VLLM::Worker_TP", 7_917_004 * 4, 40_702 * 4, 21_300 * 4),
        "oom_reaper: reaped process 914376 (VLLM::Worker_TP), now anon-rss:0kB, file-rss:118016kB, shmem-rss:86240kB",
    ]
    quiet = [
        "[Tue Feb 17 20:31:12 2026] nvidia-nvswitch: Probing device 0000:05:00.0, Vendor Id = 0x10de, Device Id = 0x22a3, Class = 0x68000\n",
        "[Tue Feb 17 20:31:13 2026] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build\n",
        "[Tue Feb 17 20:58:40 2026] cni0: port 7(veth5f0d3c1a) entered forwarding state\n",
        "[Tue Feb 17 21:04:30 2026] cni0: port 9(veth88e1b7c0) entered forwarding state\n",
    ]
    when = server.start + dt.timedelta(seconds=t + 3)
    dmesg = "".join(quiet) + "".join(f"[{when:%a %b %d %H:%M:%S %Y}] {row}\n" for row in rows)
    describe = f"""Name:             {pod}
Namespace:        chat
Node:             gpu-node-03/192.0.2.103
Start Time:       Tue, 17 Feb 2026 21:04:12 +0000
Status:           Running
Containers:
  vllm:
    Image:          vllm/vllm-openai:v0.14.1
    Args:
      meta-llama/Llama-3.3-70B-Instruct
      --tensor-parallel-size=2
      --max-model-len=8192
      --gpu-memory-utilization=0.92
      --cpu-offload-gb=32
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Started:      Tue, 17 Feb 2026 21:04:34 +0000
      Finished:     {when:%a, %d %b %Y %H:%M:%S} +0000
    Ready:          False
    Restart Count:  2
    Limits:
      memory:          64Gi
      nvidia.com/gpu:  2
    Requests:
      memory:          64Gi
      nvidia.com/gpu:  2
    Liveness:   http-get http://:8000/health delay=900s timeout=5s period=20s #success=1 #failure=3
    Environment:  <none>
    Mounts:
      /dev/shm from dshm (rw)
Volumes:
  dshm:
    Type:       EmptyDir (a temporary directory that shares a pod's lifetime)
    Medium:     Memory
    SizeLimit:  8Gi
Events:
  Type     Reason   Age                  From     Message
  ----     ------   ----                 ----     -------
  Normal   Pulled   2m (x3 over 15m)     kubelet  Container image "vllm/vllm-openai:v0.14.1" already present on machine
  Normal   Started  2m (x3 over 15m)     kubelet  Started container vllm
  Warning  BackOff  12s (x7 over 9m)     kubelet  Back-off restarting failed container vllm in pod {pod}_chat
"""
    return Case(
        "The weights that do not fit the cards are put into a pod of 64 GiB", "host", "host-memory-exhausted", (),
        "Two ranks offload 32 GiB each to host memory inside a limit of 64 GiB: the kernel ends the group at 74 % of the shards with 63.8 GiB of anonymous memory. The devices are half empty.",
        "the server's log ends in a progress bar without a word of error; the flag in question is spelt like a cure",
        server.version, "2x L40S 48GB", plan.model, {"vllm-previous.log": log, "describe-pod.txt": describe, "node/dmesg-T.txt": dmesg},
    )  # fmt: skip


# ---- nothing wrong with memory


@case
def healthy_full_device() -> Case:
    """A device at 96 per cent all day, a log full of alarming words, and nothing the matter."""
    rng = random.Random(33)
    server = Server("0.33.0", "2026-11-24 08:11:02", pid=1)
    plan = Plan(
        "Qwen/Qwen3-30B-A3B-Instruct-2507-FP8",
        79.18,
        0.94,
        29.06,
        2.41,
        0.36,
        98_304,
        131_072,
        graphs=0.94,
        estimate=0.99,
        files=7,
        load_s=22,
    )
    args = {
        "model_tag": plan.model,
        "model": plan.model,
        "gpu_memory_utilization": 0.94,
        "max_model_len": 131072,
        "enable_prefix_caching": True,
        "served_model_name": ["qwen3"],
    }
    server.say(
        "api",
        "W1124 08:11:00.412000 1 torch/utils/cpp_extension.py:2425] TORCH_CUDA_ARCH_LIST is not set, all archs for visible cards are included for compilation.",
    )
    server.log(
        "api",
        "system_utils.py:255",
        "Found ulimit of 65536 and failed to automatically increase with error current limit exceeds maximum limit. This can cause fd limit errors like `OSError: [Errno 24] Too many open files`. Consider increasing with ulimit -n",
        "WARNING",
    )
    server.log(
        "api",
        "plugins/__init__.py:44",
        "Failed to load plugin lora_filesystem_resolver: No module named 'custom_resolver'. This may cause errors later if the plugin is needed.",
        "WARNING",
    )
    ready = boot(server, plan, args, tokens_per_step=8192, quantization="fp8", served="qwen3", warm=True, free=(78.66,))
    server.go(ready - 1)
    server.log(
        "core",
        "torch_utils.py:295",
        "Reducing Torch threads from 48 to 1 for serving. Set OMP_NUM_THREADS in the external environment to override.",
    )
    server.log(
        "w0",
        "fused_moe.py:1090",
        "Using default MoE config. Performance might be sub-optimal! Config file not found at /usr/local/lib/python3.12/dist-packages/vllm/model_executor/layers/fused_moe/configs/E=128,N=768,device_name=NVIDIA_H100_80GB_HBM3,dtype=fp8_w8a8.json",
        "WARNING",
    )
    asks = traffic(
        rng,
        4,
        3500,
        0.42,
        "app",
        ((0.5, 150, 1200), (0.35, 1200, 6000), (0.15, 6000, 22_000)),
        ((0.8, 60, 500), (0.2, 500, 1600)),
        0.55,
    )
    asks += traffic(rng, 1400, 2200, 0.11, "review", ((1, 30_000, 90_000),), ((1, 600, 1400),), 0.3)
    named(asks, "a")
    blocks = plan.blocks(server.v) - 1
    course = serve(asks, blocks=blocks, until=3590, prefill=21_000, decode=chat_speed(82, 45))
    begin = ready + 1
    live_log(server, course, begin, place="loggers.py:340", until=3590, refuse=(822.0, 2417.5, 2430.1))
    server.go(begin + 3594)
    server.log("core", "core.py:1466", "[shutdown] EngineCore: shutdown initiated (SIGTERM)")
    server.log("api", "launcher.py:262", "[shutdown] API server: send sigterm to process EngineCore")
    server.go(begin + 3596)
    server.log("core", "core.py:1499", "[shutdown] EngineCore: exiting busy loop")
    server.log("api", "system_utils.py:225", "[shutdown] force killing remaining processes count=1", "WARNING")
    server.log("api", "core_client.py:777", "[shutdown] MPClient: complete")
    server.error("api", "async_llm.py:906", "AsyncLLM output_handler failed.", traceback(
        (("vllm/v1/engine/async_llm.py", 849, "output_handler", "outputs = await engine_core.get_output_async()"), ("vllm/v1/engine/core_client.py", 1235, "get_output_async", "raise self._format_exception(outputs) from None")),
        "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause."))  # fmt: skip
    server.uvicorn("Shutting down")
    server.uvicorn("Waiting for application shutdown.")
    server.uvicorn("Application shutdown complete.")
    server.say(
        "api",
        "/usr/lib/python3.12/multiprocessing/resource_tracker.py:279: UserWarning: resource_tracker: There appear to be 1 leaked shared_memory objects to clean up at shutdown\n  warnings.warn('resource_tracker: There appear to be %d '",
    )
    origin = server.start + dt.timedelta(seconds=begin)
    rows = [
        json.dumps({"timestamp": iso(origin, ask.t), "request_id": ask.id, "model": "qwen3", "tenant": ask.tenant, "input_tokens": ask.prompt, "output_tokens": ask.made,
                    "cached_tokens": ask.hit, "ttft_s": round((ask.first or 0) - ask.t, 3), "latency_s": round((ask.end or 0) - ask.t, 3), "status": 200})
        for ask in sorted(course.done, key=lambda ask: ask.t)
    ]  # fmt: skip
    at = origin + dt.timedelta(seconds=3000)
    return Case(
        "A card at 96 per cent for an hour", "none", "healthy", (),
        f"The pool peaks at {max(stat.used for stat in course.stats):.0%}, nothing waits for it, nothing is preempted, every request is answered. The device is full by design.",
        "plugin failures, file limits, sub-optimal kernels, a forced end and an EngineDeadError stand in the log; a clean stop looks like a crash",
        server.version, "H100 80GB", plan.model,
        {"vllm.log": server.text(), "requests.jsonl": "\n".join(rows) + "\n",
         "gpu-memory.log": loop(server.start + dt.timedelta(seconds=ready), lambda at: [(61 + int(at) // 60 * 7 % 30, 40 + int(at) // 60 * 3 % 20, 78_211 + (int(at) > 1500) * 34, 81_559)], 3540, 60),
         f"metrics-{at:%Y%m%dT%H%M%SZ}.prom": exposition(course, 3000, model="qwen3", blocks=blocks, block=16, utilization=0.94, max_len=131072, started=epoch(server.start), tokens=plan.tokens(server.v))},
    )  # fmt: skip


@case
def healthy_older_server() -> Case:
    """An older engine with warnings that sound like trouble, on an ordinary evening."""
    rng = random.Random(63)
    server = Server("0.6.3.post1", "2024-12-12 18:02:14", v0=True, tp=2, pid=337)
    model, total, weights, peak, per_token = "mistralai/Mistral-Nemo-Instruct-2407", 23.65, 11.4421, 0.88, 81_920
    args = {
        "model": model,
        "tensor_parallel_size": 2,
        "max_model_len": 65536,
        "swap_space": 16,
        "served_model_name": ["nemo"],
        "enable_prefix_caching": True,
        "enable_chunked_prefill": True,
    }
    arguments(server, args)
    server.go(6)
    server.log(
        "api",
        "arg_utils.py:1019",
        "The model has a long context length (65536). This may cause OOM errors during the initial memory profiling phase, or result in low performance due to small KV cache space. Consider setting --max-model-len to a smaller value.",
        "WARNING",
    )
    server.log("api", "config.py:1021", "Chunked prefill is enabled with max_num_batched_tokens=512.")
    server.log(
        "api",
        "config.py:904",
        "Possibly too large swap space. 32.00 GiB out of the 62.52 GiB total CPU memory is allocated for the swap space.",
        "WARNING",
    )
    server.log("api", "llm_engine.py:237", config_text(server, model, 65536, served="nemo"))
    server.log(
        "api",
        "multiproc_gpu_executor.py:53",
        "Reducing Torch parallelism from 16 threads to 1 to avoid unnecessary CPU contention. Set OMP_NUM_THREADS in the external environment to tune this value as needed.",
        "WARNING",
    )
    server.go(11)
    server.log("w1", "multiproc_worker_utils.py:215", "Worker ready; awaiting tasks")
    for role in ("w0", "w1"):
        server.log(role, "utils.py:1008", "Found nccl from library libnccl.so.2")
        server.log(role, "pynccl.py:63", "vLLM is using nccl==2.20.5")
        server.log(
            role,
            "custom_all_reduce.py:134",
            "Custom allreduce is disabled because your platform lacks GPU P2P capability or P2P test failed. To silence this warning, specify disable_custom_all_reduce=True explicitly.",
            "WARNING",
        )
        server.log(role, "model_runner.py:1060", f"Starting to load model {model}...")
    server.shards("w0", 5, 14)
    server.go(27)
    for role in ("w0", "w1"):
        server.log(role, "model_runner.py:1071", f"Loading model weights took {weights:.4f} GB")
    kv = total * 0.9 - weights - peak - 0.41
    blocks = int(kv * GIB / (per_token * 16))
    server.go(31)
    server.log(
        "w0", "distributed_gpu_executor.py:57", f"# GPU blocks: {blocks}, # CPU blocks: {16 * GIB // (per_token * 16)}"
    )
    server.log(
        "w0",
        "distributed_gpu_executor.py:61",
        f"Maximum concurrency for 65536 tokens per request: {blocks * 16 / 65536:.2f}x",
    )
    for role in ("w0", "w1"):
        server.log(
            role,
            "model_runner.py:1402",
            "Capturing the model for CUDA graphs. This may lead to unexpected consequences if the model is not static. To run the model in eager mode, set 'enforce_eager=True' or use '--enforce-eager' in the CLI.",
        )
        server.log(
            role,
            "model_runner.py:1406",
            "CUDA graphs can take additional 1~3 GiB memory per GPU. If you are running out of memory, consider decreasing `gpu_memory_utilization` or enforcing eager mode. You can also reduce the `max_num_seqs` as needed to decrease memory usage.",
        )
    server.go(49)
    for role in ("w0", "w1"):
        server.log(role, "model_runner.py:1530", "Graph capturing finished in 18 secs.")
    server.go(51)
    server.uvicorn(f"Started server process [{server.pids['api']}]")
    server.uvicorn("Waiting for application startup.")
    server.uvicorn("Application startup complete.")
    asks = named(traffic(rng, 5, 1900, 0.31, "forum", ((0.7, 80, 900), (0.3, 900, 12_000)), ((1, 60, 600),)), "cmpl-")
    course: Course = serve(asks, blocks=blocks, until=1920, prefill=3300, decode=chat_speed(31, 30), chunk=512)
    events: list[tuple[float, Callable[[], None]]] = []
    for stat in course.stats:
        if stat.running or stat.generation:
            events.append((stat.t, lambda stat=stat: server.log("api", "metrics.py:349", stat_line_v0(stat))))  # type: ignore[misc]
            events.append(
                (
                    stat.t,
                    lambda stat=stat: server.log(
                        "api",
                        "metrics.py:365",
                        f"Prefix cache hit rate: GPU: {stat.hit_rate * 100 + 11.2:.2f}%, CPU: 0.00%",
                    ),
                )
            )  # type: ignore[misc]
    for nth, ask in enumerate(asks):
        topic = (
            "Explain what 'RuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB' means for a beginner.",
            "Draft a polite reminder.",
            "Continue: No available memory for the cache blocks, said the old computer,",
        )[nth % 3]
        events.append((ask.t, lambda ask=ask, topic=topic, nth=nth: server.log("api", "logger.py:37", (  # type: ignore[misc]
            f"Received request {ask.id}-0: prompt: {topic!r}, params: SamplingParams(n=1, presence_penalty=0.0, frequency_penalty=0.0, repetition_penalty=1.0, temperature=0.8, top_p=0.95, top_k=-1, min_p=0.0, seed=None, stop=[], "
            f"max_tokens={ask.output}, min_tokens=0, logprobs=None, prompt_logprobs=None, skip_special_tokens=True), prompt_token_ids: [{', '.join(str(1 + (k * 7919 + nth) % 131_072) for k in range(12))}], lora_request: None, prompt_adapter_request: None."))))  # fmt: skip
        if ask.end is not None:
            events.append((ask.end, lambda: server.access("192.0.2.8:51010", "/v1/completions", 200)))
    for at, write in sorted(events, key=lambda event: event[0]):
        server.go(54 + at)
        write()
    server.go(54 + 1990)
    server.uvicorn("Shutting down")
    server.log("api", "launcher.py:57", "Gracefully stopping http server")
    server.uvicorn("Waiting for application shutdown.")
    server.uvicorn("Application shutdown complete.")
    return Case(
        "An ordinary evening of an older engine", "none", "healthy", (),
        f"The pool peaks at {max(stat.used for stat in course.stats):.0%}, nothing waits, the end is a stop by hand. Every mention of missing memory is a notice or somebody's prompt.",
        "the log warns of OOM, of large swap space and of 1 to 3 GiB more; one prompt in three quotes a memory error; ranks share one name",
        server.version, "2x RTX 3090 24GB", model, {"vllm.log": server.text()},
    )  # fmt: skip


@case
def driver_too_old_for_image() -> Case:
    """The image moved to a newer CUDA, the host did not."""
    server = Server("0.21.0", "2026-06-11 05:30:44", pid=1)
    args = {
        "model_tag": "Qwen/Qwen3-8B",
        "model": "Qwen/Qwen3-8B",
        "gpu_memory_utilization": 0.95,
        "max_model_len": 32768,
    }
    warning = (
        "/usr/local/lib/python3.12/dist-packages/torch/cuda/__init__.py:182: UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 12040). Please update your GPU driver by downloading "
        "and installing a new version from the URL: http://www.nvidia.com/Download/index.aspx Alternatively, go to: https://pytorch.org to install a PyTorch version that has been compiled with your version of the CUDA driver. "
        "(Triggered internally at /pytorch/c10/cuda/CUDAFunctions.cpp:119.)\n  return torch._C._cuda_getDeviceCount() > 0"
    )
    for attempt in range(3):
        server.go(attempt * 31.0)
        server.say("api", warning)
        server.go(attempt * 31.0 + 3)
        arguments(server, args)
        server.go(attempt * 31.0 + 8)
        server.log("api", "model.py:611", "Resolved architecture: Qwen3ForCausalLM")
        server.log("api", "model.py:1688", "Using max model len 32768")
        server.go(attempt * 31.0 + 14)
        server.log("core", "core.py:97", config_text(server, "Qwen/Qwen3-8B", 32768))
        server.go(attempt * 31.0 + 17)
        last = "RuntimeError: The NVIDIA driver on your system is too old (found version 12040). Please update your GPU driver by downloading and installing a new version from the URL: http://www.nvidia.com/Download/index.aspx Alternatively, go to: https://pytorch.org to install a PyTorch version that has been compiled with your version of the CUDA driver."
        frames = (
            *INIT,
            ("vllm/v1/executor/uniproc_executor.py", 48, "_init_executor", "self.driver_worker.init_device()"),
            ("vllm/v1/worker/gpu_worker.py", 265, "init_device", "current_platform.set_device(self.device)"),
            ("vllm/platforms/cuda.py", 141, "set_device", "torch.cuda.set_device(device)"),
            ("torch/cuda/__init__.py", 417, "_lazy_init", "torch._C._cuda_init()"),
        )
        die_at_start(server, frames, last, core_proc="{'EngineCore': 1}")
    files = {
        "vllm.log": server.text(),
        "nvidia-smi.txt": smi_table(
            "Thu Jun 11 05:33:10 2026", "NVIDIA L40S", [Card(1, 46_068, watts=33, cap=350)], "550.54.15", "12.4"
        ),
        "docker-inspect-state.txt": "exited 1 false\n",
        "notes.txt": "Worked until last night's image update (v0.17.1 -> v0.21.0). Is 0.95 too much for the new version?\n",
    }
    return Case(
        "A new image on an old driver", "none", "not-memory", (),
        "The driver speaks CUDA 12.4 and the image wants more: the first call to the device fails, nothing was ever allocated. The report suspects the utilization.",
        "the bundle is an archive; a person asks about memory; three restarts end in the wrapper's words",
        "0.21.0", "L40S 48GB", "Qwen/Qwen3-8B", {"support-bundle.tar.gz": pack(files, "support-bundle-20260611")},
    )  # fmt: skip


@case
def illegal_access_in_decode() -> Case:
    """A kernel writes where it must not, on a card that is 93 per cent full."""
    rng = random.Random(13)
    server = Server("0.15.1", "2026-02-26 14:45:51", pid=1)
    plan = Plan("Qwen/Qwen3-8B", 44.39, 0.92, 15.27, 1.31, 0.24, 147_456, 40_960, graphs=0.61, files=5, load_s=9)
    args = {
        "model_tag": plan.model,
        "model": plan.model,
        "gpu_memory_utilization": 0.92,
        "max_model_len": 40960,
        "kv_cache_dtype": "auto",
    }
    ready = boot(server, plan, args, warm=True)
    asks = named(traffic(rng, 4, 1300, 0.4, "chat", ((0.7, 100, 900), (0.3, 900, 5000)), ((1, 60, 600),), 0.4), "c")
    course = serve(asks, blocks=plan.blocks(server.v) - 1, until=1260, prefill=8000, decode=chat_speed(46, 40))
    begin = ready + 1
    live_log(server, course, begin, place="loggers.py:257", until=1254)
    stat = course.stats[-1]
    server.go(begin + 1257.2)
    last = (
        "torch.AcceleratorError: CUDA error: an illegal memory access was encountered\nSearch for `cudaErrorIllegalAddress' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information.\n"
        "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
        "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
    )
    frames = (*BUSY, ("vllm/v1/worker/gpu_model_runner.py", 3266, "execute_model", "self.transfer_event.synchronize()"))
    step_dump(
        server,
        plan,
        new=[],
        cached=[(f"chatcmpl-{k:02x}a", 310 + 173 * k) for k in range(stat.running)],
        scheduled=stat.running,
        running=stat.running,
        waiting=0,
        used=round(stat.used, 10),
    )
    server.error("core", "core.py:948", "EngineCore encountered a fatal error.", traceback(frames, last))
    server.say(
        "core",
        "[rank0]:[E226 15:08:04.771902311 ProcessGroupNCCL.cpp:2057] [PG ID 2 PG GUID 3 Rank 0] Process group watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered",
    )
    server.now += 0.5
    server.error("api", "async_llm.py:689", "AsyncLLM output_handler failed.", traceback(
        (("vllm/v1/engine/async_llm.py", 640, "output_handler", "outputs = await engine_core.get_output_async()"),), "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause."))  # fmt: skip
    for k in range(stat.running):
        server.access(f"192.0.2.{20 + k % 5}:{42000 + 41 * k}", "/v1/chat/completions", 500)
    server.uvicorn("Shutting down")
    server.uvicorn("Application shutdown complete.")
    when = server.moment
    dmesg = (
        f"[{when - dt.timedelta(hours=5):%a %b %d %H:%M:%S %Y}] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.124.06\n"
        f"[{when - dt.timedelta(seconds=1):%a %b %d %H:%M:%S %Y}] NVRM: Xid (PCI:0000:17:00): 31, pid=18833, name=VLLM::EngineCor, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC1 GPCCLIENT_T1_2 faulted @ 0x7f3a_5c000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE\n"
        f"[{when:%a %b %d %H:%M:%S %Y}] NVRM: Xid (PCI:0000:17:00): 43, pid=18833, name=VLLM::EngineCor, Ch 00000008\n"
    )
    return Case(
        "A kernel writes out of bounds on a well-filled card", "none", "not-memory", (),
        "An illegal memory access in decode, with Xid 31 and 43 in the kernel log; no allocation failed, the pool is a tenth full, the device as full as planned.",
        "the error speaks of memory and the card is full; the dump of the failing step stands before it; requests end as they do after an OOM",
        server.version, "L40S 48GB", plan.model,
        {"vllm.log": server.text(), "dmesg.txt": dmesg, "nvidia-smi.csv": "index, name, memory.used [MiB], memory.total [MiB]\n0, NVIDIA L40S, 42377 MiB, 46068 MiB\n"},
    )  # fmt: skip


# ---- writing


def unpacked(data: bytes) -> bytes:
    """What a file holds, whatever packed it."""
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def write(root: Path, names: list[str] | None = None) -> list[str]:
    """Write the cases below a folder; gives the paths that changed."""
    changed = []
    for name, make in CASES.items():
        if names and name not in names:
            continue
        made = make()
        files: dict[str, str | bytes] = {**made.files, "case.toml": made.label(name)}
        folder = root / name
        for path, content in sorted(files.items()):
            data = content.encode() if isinstance(content, str) else content
            target = folder / path
            if target.is_file() and unpacked(target.read_bytes()) == unpacked(data):
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            changed.append(f"{name}/{path}")
        for old in sorted(folder.rglob("*")) if folder.is_dir() else ():
            if old.is_file() and old.relative_to(folder).as_posix() not in files:
                old.unlink()
                changed.append(f"{name}/{old.relative_to(folder).as_posix()} (removed)")
    return changed


if __name__ == "__main__":
    for path in write(HERE, sys.argv[1:]):
        print(path)
