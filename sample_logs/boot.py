"""How a vLLM server starts and dies, in the wording of its version: milestones, memory lines, stacks, echoes.

Shapes by version follow the engine's releases; `Plan` is the arithmetic behind the memory lines (budget = utilization x
total; pool = budget - weights - activation peak - non-torch, less the graph estimate from 0.20 on; tokens = whole blocks).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from parts import GIB, Frame, Server, banner, config_text, routes, traceback


@dataclass(frozen=True)
class Plan:
    """The memory plan of one rank; sizes in GiB, `per_token` in bytes of KV per token and rank."""

    model: str
    total: float
    utilization: float
    weights: float
    peak: float
    non_torch: float
    per_token: int
    max_len: int
    graphs: float = 0.5
    estimate: float = 0.0
    block: int = 16
    files: int = 8  # checkpoint shards
    load_s: float = 40.0

    @property
    def budget(self) -> float:
        """Utilization x total."""
        return self.utilization * self.total

    def available(self, version: int) -> float:
        """What is left for KV."""
        return self.budget - self.weights - self.peak - self.non_torch - (self.estimate if version >= 20_000 else 0.0)

    def blocks(self, version: int) -> int:
        """Whole blocks in it."""
        return max(0, int(self.available(version) * GIB / (self.per_token * self.block)))

    def tokens(self, version: int) -> int:
        """The figure that the version prints for the pool."""
        blocks = self.blocks(version)
        if version < 20_000:
            return blocks * self.block
        return int(blocks / -(-self.max_len // self.block) * self.max_len)


def decimals(server: Server, value: float) -> str:
    """A size in GiB: two decimals up to 0.13.0, at most two later."""
    return f"{value:.2f}" if server.v < 14_000 else f"{round(value, 2)}"


ARCHITECTURES = {
    "Llama": "LlamaForCausalLM",
    "Qwen2.5": "Qwen2ForCausalLM",
    "Qwen3": "Qwen3ForCausalLM",
    "Mistral": "MistralForCausalLM",
}


def arguments(server: Server, args: dict[str, object]) -> None:
    """Version and settings as the API server prints them."""
    model = str(args.get("model", ""))
    if server.v >= 15_001:
        banner(server, model)
        server.log("api", "utils.py:238" if server.v < 31_000 else "api_utils.py:286", f"non-default args: {args!r}")
    elif server.v >= 9_000:
        server.log("api", "api_server.py:1839", f"vLLM API server version {server.version}")
        server.log("api", "utils.py:233", f"non-default args: {args!r}")
    else:
        known: dict[str, object] = {
            "host": None, "port": 8000, "uvicorn_log_level": "info", "allow_credentials": False, "allowed_origins": ["*"], "api_key": None, "chat_template": None,
            "model": model, "tokenizer": None, "skip_tokenizer_init": False, "revision": None, "trust_remote_code": False, "dtype": "auto", "kv_cache_dtype": "auto",
            "max_model_len": None, "pipeline_parallel_size": 1, "tensor_parallel_size": 1, "block_size": None, "swap_space": 4, "cpu_offload_gb": 0,
            "gpu_memory_utilization": 0.9, "max_num_batched_tokens": None, "max_num_seqs": None if server.v >= 6_005 else 256, "quantization": None, "enforce_eager": False,
            "max_seq_len_to_capture": 8192, "enable_prefix_caching": None if server.v >= 6_005 else False, "enable_lora": False, "served_model_name": None,
            "disable_log_stats": False, "disable_log_requests": False, "max_log_len": None,
        }  # fmt: skip
        known.update(args)
        server.log("api", "api_server.py:712", f"vLLM API server version {server.version}")
        server.log(
            "api",
            "api_server.py:713",
            "args: Namespace(" + ", ".join(f"{key}={value!r}" for key, value in known.items()) + ")",
        )


def boot(
    server: Server, plan: Plan, args: dict[str, object], *, upto: str = "ready", at: float = 0.0, tokens_per_step: int = 2048, quantization: str | None = None,
    warm: bool = False, eager: bool = False, loaded: float = 1.0, served: str | None = None, captured: tuple[int, int] | None = None, free: Sequence[float] = (),
) -> float:  # fmt: skip
    """Write a V1 start up to a milestone (`args`, `config`, `load`, `loaded`, `kv`, `capture`, `ready`); gives the seconds it took.

    `loaded` is the share of shards read when `upto` is `load`; `captured` the graphs done of each kind when it is
    `capture`; `warm` says that the compile cache was there; `free` is free memory per rank at the start.
    """
    v, t = server.v, at
    ranks = range(server.tp)
    server.go(t)
    arguments(server, args)
    if upto == "args":
        return t
    t += 7
    server.go(t)
    if v >= 10_002:
        family = next((name for key, name in ARCHITECTURES.items() if key in plan.model), "LlamaForCausalLM")
        server.log("api", "model.py:547", f"Resolved architecture: {family}")
    if v >= 9_002:
        server.log("api", "model.py:1510", f"Using max model len {plan.max_len}")
    server.log("api", "scheduler.py:205", f"Chunked prefill is enabled with max_num_batched_tokens={tokens_per_step}.")
    if 14_001 <= v <= 25_001:
        server.log("api", "vllm.py:630", "Asynchronous scheduling is enabled.")
    t += 6
    server.go(t)
    if v >= 10_002:
        server.log("core", "core.py:648", "Waiting for init message from front-end.")
    server.log("core", "core.py:77", config_text(
        server, plan.model, plan.max_len, quantization=quantization, eager=eager, served=served, graph_top=512))  # fmt: skip
    if upto == "config":
        return t
    if server.tp > 1:
        server.log("core", "multiproc_worker_utils.py:307" if v < 9_000 else "multiproc_executor.py:153", (
            "Reducing Torch parallelism from 48 threads to 1 to avoid unnecessary CPU contention. Set OMP_NUM_THREADS in the external environment to tune this value as needed."
            if v < 15_000 else f"DP group leader: node_rank=0, node_rank_within_dp=0, master_addr=127.0.0.1, mq_connect_ip=192.0.2.61 (local), world_size={server.tp}, local_world_size={server.tp}"))  # fmt: skip
    t += 5
    server.go(t)
    for rank in ranks:
        server.say(
            f"w{rank}",
            f"[Gloo] Rank {rank} is connected to {server.tp - 1} peer ranks. Expected number of connected peer ranks is : {server.tp - 1}",
        )
    for rank in ranks:
        if server.tp > 1:
            server.log(f"w{rank}", "pynccl.py:103", "vLLM is using nccl==2.27.3")
            why = (
                "it's not supported on more than two PCIe-only GPUs"
                if server.tp > 2
                else "your platform lacks GPU P2P capability or P2P test failed"
            )
            if plan.total < 60:  # cards without NVLink
                server.log(
                    f"w{rank}",
                    "custom_all_reduce.py:144",
                    f"Custom allreduce is disabled because {why}. To silence this warning, specify disable_custom_all_reduce=True explicitly.",
                    "WARNING",
                )
        server.log(
            f"w{rank}",
            "parallel_state.py:1208",
            f"rank {rank} in world size {server.tp} is assigned as DP rank 0, PP rank 0, TP rank {rank}, EP rank {rank}",
        )
    t += 2
    server.go(t)
    lead = ranks if v <= 11_000 else range(1)
    for rank in lead:
        server.log(f"w{rank}", "gpu_model_runner.py:2602", f"Starting to load model {plan.model}...")
    for rank in lead:
        server.log(
            f"w{rank}",
            "cuda.py:366",
            "Using Flash Attention backend on V1 engine."
            if v < 15_000
            else "Using FLASH_ATTN attention backend out of potential backends: ['FLASH_ATTN', 'FLASHINFER', 'TRITON_ATTN', 'FLEX_ATTENTION'].",
        )
    if v >= 20_002:
        server.log(
            "w0",
            "weight_utils.py:1108",
            f"Filesystem type for checkpoints: NFS4. Checkpoint size: {plan.weights * server.tp * 1.001:.2f} GiB. Available RAM: 371.42 GiB.",
        )
    if upto == "load":
        server.shards("w0", plan.files, plan.load_s, upto=int(plan.files * loaded))
        return t + plan.load_s * loaded
    server.shards("w0", plan.files, plan.load_s)
    server.say("w0", "")
    t += plan.load_s
    server.go(t)
    for rank in lead:
        took = plan.load_s + 0.031 * rank
        server.log(f"w{rank}", "default_loader.py:268", f"Loading weights took {took:.2f} seconds")
    for rank in lead:
        took = plan.load_s + 1.207 + 0.031 * rank
        if v <= 8_000:
            text = f"Model loading took {plan.weights:.4f} GB and {took:.6f} seconds"
        elif v <= 11_000:
            text = f"Model loading took {plan.weights:.4f} GiB and {took:.6f} seconds"
        else:
            text = (
                f"Model loading took {plan.weights:.4f} GiB memory and {took:.6f} seconds"
                if v < 14_000
                else f"Model loading took {round(plan.weights, 2)} GiB memory and {took:.6f} seconds"
            )
        server.log(f"w{rank}", "gpu_model_runner.py:2653", text)
    if upto == "loaded":
        return t
    t += 9 if warm else 34
    server.go(t)
    for rank in lead:
        cache = (
            "/srv/.cache/vllm/torch_compile_cache/"
            + f"{(number_of(plan.model) * 2654435761) % (1 << 40):010x}/rank_{rank}_0/backbone"
        )
        if not eager:
            server.log(f"w{rank}", "backends.py:548", f"Using cache directory: {cache} for vLLM's torch.compile")
            server.log(f"w{rank}", "backends.py:559", f"Dynamo bytecode transform time: {6.9 + 0.1 * rank:.2f} s")
            server.log(f"w{rank}", "backends.py:161" if warm else "backends.py:215", (
                f"Directly load the compiled graph(s) for dynamic shape from the cache, took {4.11 + 0.08 * rank:.3f} s" if warm
                else f"Compiling a graph for dynamic shape takes {27.4 + 0.3 * rank:.2f} s"))  # fmt: skip
            server.log(
                f"w{rank}", "monitor.py:34", f"torch.compile takes {11.1 if warm else 34.3 + 0.3 * rank:.2f} s in total"
            )
    t += 6
    server.go(t)
    if v >= 18_001 and not eager:
        server.log("core", "kv_cache_utils.py:829", "Overriding num_gpu_blocks=0 with num_gpu_blocks_override=512")
        for rank in ranks:
            server.log(
                f"w{rank}",
                "gpu_model_runner.py:5876",
                "Profiling CUDA graph memory: PIECEWISE=51 (largest=512), FULL=35 (largest=256)",
            )
        t += 4
        server.go(t)
        for rank in ranks:
            server.log(
                f"w{rank}", "gpu_model_runner.py:5955", f"Estimated CUDA graph memory: {plan.estimate:.2f} GiB total"
            )
    available = plan.available(v)
    if v >= 9_002:
        for rank in lead:
            server.log(f"w{rank}", "gpu_worker.py:298", f"Available KV cache memory: {decimals(server, available)} GiB")
    if 18_001 <= v <= 19_001 and not eager:
        more = round(plan.utilization + round(plan.estimate / plan.total, 4), 4)
        server.log("w0", "gpu_worker.py:470", (
            "In v0.19, CUDA graph memory profiling will be enabled by default (VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=1), which more accurately accounts for CUDA graph memory during KV cache "
            f"allocation. To try it now, set VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=1 and increase --gpu-memory-utilization from {plan.utilization:.4f} to {more:.4f} to maintain the same effective KV cache size."))  # fmt: skip
    elif v >= 20_000 and not eager:
        less = plan.utilization - plan.estimate / plan.total
        server.log("w0", "gpu_worker.py:481", (
            f"CUDA graph memory profiling is enabled (default since v0.21.0). The current --gpu-memory-utilization={plan.utilization:.4f} is equivalent to --gpu-memory-utilization={less:.4f} "
            f"without CUDA graph memory profiling. To maintain the same effective KV cache size as before, increase --gpu-memory-utilization to {min(1.0, plan.utilization + plan.estimate / plan.total):.4f}."))  # fmt: skip
    if upto == "plan":
        return t
    tokens = plan.tokens(v)
    crowd = tokens / plan.max_len
    for _ in ranks if v <= 11_000 else range(1):
        if v >= 28_000:
            server.log(
                "core",
                "kv_cache_utils.py:2327",
                f"GPU KV cache size: {tokens:,} tokens, Maximum concurrency for {plan.max_len:,} tokens per request: {crowd:.2f}x",
            )
        else:
            server.log("core", "kv_cache_utils.py:864", f"GPU KV cache size: {tokens:,} tokens")
            server.log(
                "core",
                "kv_cache_utils.py:868",
                f"Maximum concurrency for {plan.max_len:,} tokens per request: {crowd:.2f}x",
            )
    if upto == "kv":
        return t
    many, few = (51, 35) if v >= 11_001 else (67, 35)
    one, two = captured if captured is not None else (many, few)
    if not eager:
        t += 1
        server.go(t)
        if v >= 10_002:
            server.bar(
                "w0",
                "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE)",
                _steps(one),
                many,
                11.3,
                closed=one == many,
            )
            if one == many:
                server.bar("w0", "Capturing CUDA graphs (decode, FULL)", _steps(two), few, 9.4, closed=two == few)
        else:
            server.bar("w0", "Capturing CUDA graph shapes", _steps(one), many, 2.6, closed=one == many)
        t += 9 if v >= 10_002 else 26
        server.go(t)
    if upto == "capture":
        return t
    if not eager:
        for rank in lead:
            server.log(
                f"w{rank}",
                "gpu_model_runner.py:3440",
                f"Graph capturing finished in {9 if v >= 10_002 else 26} secs, took {plan.graphs:.2f} GiB",
            )
        if v >= 18_001:
            gap = abs(plan.graphs - plan.estimate)
            for rank in ranks:
                server.log(
                    f"w{rank}",
                    "gpu_worker.py:617",
                    f"CUDA graph pool memory: {plan.graphs:.2f} GiB (actual), {plan.estimate:.2f} GiB (estimated), difference: {gap:.2f} GiB ({gap / plan.graphs * 100:.1f}%).",
                )
        if v >= 27_001:
            for rank in ranks:
                spare = free[rank] if free else plan.total - 0.52
                server.log(f"w{rank}", "gpu_worker.py:702", (
                    f"Free memory on device ({spare:.2f}/{plan.total:.2f} GiB) on startup. Desired GPU memory utilization is ({plan.utilization}, {plan.budget:.2f} GiB). "
                    f"Actual usage is {plan.weights + plan.non_torch:.2f} GiB for consumed memory (weights + non-torch), {plan.peak + plan.estimate:.2f} GiB for peak activation, and {plan.graphs:.2f} GiB for CUDAGraph memory. "
                    f"Replace gpu_memory_utilization config with `--kv-cache-memory={int(available * GIB)}` to fit into requested memory, or `--kv-cache-memory={int((available + plan.total - plan.budget - 1.1) * GIB)}` "
                    f"to fully utilize gpu memory. Current kv cache memory in use is {round(available, 2)} GiB."))  # fmt: skip
    t += 2
    server.go(t)
    took = t - at - 20 - plan.load_s
    server.log(
        "core",
        "core.py:218",
        f"init engine (profile, create kv cache, warmup model) took {took:.2f} {'seconds' if v < 20_000 else 's'}",
    )
    t += 3
    server.go(t)
    routes(server, "launcher.py:36")
    return t


def number_of(text: str) -> int:
    """A fixed number for a name."""
    total = 7
    for letter in text:
        total = (total * 131 + ord(letter)) % (1 << 31)
    return total


def _steps(done: int) -> list[int]:
    """Which repaints of a bar the file holds: not every one."""
    return sorted({0, *range(2, done, 3), done})


# ---- stacks

_CORE = "vllm/v1/engine/core.py"
INIT: tuple[Frame, ...] = (
    (_CORE, 699, "run_engine_core", "engine_core = EngineCoreProc(*args, **kwargs)"),
    (_CORE, 498, "__init__", "super().__init__(vllm_config, executor_class, log_stats,"),
)
_SINGLE: tuple[Frame, ...] = (
    (
        "vllm/executor/uniproc_executor.py",
        83,
        "collective_rpc",
        "answer = run_method(self.driver_worker, method, args, kwargs)",
    ),
    ("vllm/utils/__init__.py", 3122, "run_method", "return func(*args, **kwargs)"),
)
LOAD: tuple[Frame, ...] = (
    *INIT,
    (_CORE, 83, "__init__", "self.model_executor = executor_class(vllm_config)"),
    ("vllm/executor/executor_base.py", 54, "__init__", "self._init_executor()"),
    ("vllm/executor/uniproc_executor.py", 55, "_init_executor", 'self.collective_rpc("load_model")'),
    *_SINGLE,
    ("vllm/v1/worker/gpu_worker.py", 213, "load_model", "self.model_runner.load_model(eep_scale_up=eep_scale_up)"),
    ("vllm/v1/worker/gpu_model_runner.py", 2635, "load_model", "self.model = model_loader.load_model("),
    (
        "vllm/model_executor/model_loader/base_loader.py",
        45,
        "load_model",
        "model = initialize_model(vllm_config=vllm_config,",
    ),
    (
        "vllm/model_executor/model_loader/utils.py",
        63,
        "initialize_model",
        "return model_class(vllm_config=vllm_config, prefix=prefix)",
    ),
)
_LINEAR = "vllm/model_executor/layers/linear.py"
LAYER: tuple[Frame, ...] = (
    (_LINEAR, 466, "__init__", "self.quant_method.create_weights("),
    (_LINEAR, 206, "create_weights", "weight = Parameter(torch.empty(sum(output_partition_sizes),"),
    ("torch/utils/_device.py", 103, "__torch_function__", "return func(*args, **kwargs)"),
)
CAPTURE: tuple[Frame, ...] = (
    *INIT,
    (_CORE, 92, "__init__", "self._initialize_kv_caches(vllm_config)"),
    (_CORE, 207, "_initialize_kv_caches", "self.model_executor.initialize_from_config(kv_cache_configs)"),
    ("vllm/v1/executor/abstract.py", 75, "initialize_from_config", 'self.collective_rpc("compile_or_warm_up_model")'),
    *_SINGLE,
    (
        "vllm/v1/worker/gpu_worker.py",
        334,
        "compile_or_warm_up_model",
        "cuda_graph_memory_bytes = self.model_runner.capture_model()",
    ),
    ("vllm/v1/worker/gpu_model_runner.py", 3427, "capture_model", "self._capture_cudagraphs("),
    ("vllm/v1/worker/gpu_model_runner.py", 3502, "_capture_cudagraphs", "self._dummy_run(num_tokens,"),
    ("vllm/compilation/cuda_graph.py", 184, "__call__", "output = self.runnable(*args, **kwargs)"),
)
PLAN: tuple[Frame, ...] = (
    *INIT,
    (_CORE, 92, "__init__", "self._initialize_kv_caches(vllm_config)"),
    (_CORE, 199, "_initialize_kv_caches", "get_kv_cache_config(vllm_config, kv_cache_spec_one_worker,"),
    (
        "vllm/v1/core/kv_cache_utils.py",
        1110,
        "get_kv_cache_config",
        "check_enough_kv_cache_memory(vllm_config, kv_cache_spec, available_memory)",
    ),
)
BUSY: tuple[Frame, ...] = (
    (_CORE, 710, "run_engine_core", "engine_core.run_busy_loop()"),
    (_CORE, 737, "run_busy_loop", "self._process_engine_step()"),
    (_CORE, 764, "_process_engine_step", "outputs, model_executed = self.step_fn()"),
    (_CORE, 292, "step", "model_output = self.execute_model_with_error_logging("),
    (_CORE, 278, "execute_model_with_error_logging", "raise err"),
    (_CORE, 269, "execute_model_with_error_logging", "return model_fn(scheduler_output)"),
    ("vllm/v1/executor/abstract.py", 103, "execute_model", 'output = self.collective_rpc("execute_model",'),
    *_SINGLE,
    (
        "vllm/v1/worker/gpu_worker.py",
        447,
        "execute_model",
        "output = self.model_runner.execute_model(scheduler_output,",
    ),
)
_API: tuple[Frame, ...] = (
    (
        "vllm/entrypoints/openai/api_server.py",
        1850,
        "run_server",
        "await run_server_worker(listen_address, sock, args, **uvicorn_kwargs)",
    ),
    ("vllm/entrypoints/openai/api_server.py", 1870, "run_server_worker", "async with build_async_engine_client("),
    ("vllm/v1/engine/async_llm.py", 134, "__init__", "self.engine_core = EngineCoreClient.make_async_mp_client("),
    ("vllm/v1/engine/core_client.py", 102, "make_async_mp_client", "return AsyncMPClient(*client_args)"),
    ("vllm/v1/engine/utils.py", 729, "launch_core_engines", "wait_for_engine_startup("),
    (
        "vllm/v1/engine/utils.py",
        782,
        "wait_for_engine_startup",
        'raise RuntimeError("Engine core initialization failed. "',
    ),
)


def die_at_start(
    server: Server, frames: Sequence[Frame], last: str, *, core_proc: str = "{}", before: str = ""
) -> None:
    """A start that fails in the engine core: the record, the bare traceback of the process, and the API server's echo."""
    server.error(
        "core",
        "core.py:708",
        "EngineCore failed to start.",
        (before + "\n" if before else "") + traceback(frames, last),
    )
    server.say(
        "core",
        f"Process {'EngineCore' if server.v >= 18_001 else 'EngineCore_DP0' if server.v >= 10_002 else 'EngineCore_0'}:",
    )
    outer: tuple[Frame, ...] = (
        ("../../../lib/python3.12/multiprocessing/process.py", 314, "_bootstrap", "self.run()"),
        ("../../../lib/python3.12/multiprocessing/process.py", 108, "run", "self._target(*self._args, **self._kwargs)"),
        (_CORE, 712, "run_engine_core", "raise e"),
    )
    server.say("core", traceback((*outer, *frames), last))
    server.now += 1.0
    stamp = server.moment.strftime("%m%d %H:%M:%S")
    server.say(
        "core",
        f"[rank0]:[W{stamp}.381927364 ProcessGroupNCCL.cpp:1538] Warning: WARNING: destroy_process_group() was not called before program exit, which can leak resources. For more info, please see https://pytorch.org/docs/stable/distributed.html#shutdown (function operator())",
    )
    server.now += 2.0
    server.say(
        "api",
        traceback(
            _API,
            f"RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {core_proc}",
        ),
    )


def step_dump(
    server: Server,
    plan: Plan,
    *,
    new: Sequence[tuple[str, int, str]],
    cached: Sequence[tuple[str, int]],
    scheduled: int,
    running: int,
    waiting: int,
    used: float,
) -> None:
    """The scheduler's dump of the step that failed: new requests (id, prompt tokens, extra sampling), cached ones (id, tokens so far)."""
    fresh = ", ".join(
        f"NewRequestData(req_id={name},prompt_token_ids_len={tokens},mm_features=[],sampling_params=SamplingParams(n=1, presence_penalty=0.0, frequency_penalty=0.0, repetition_penalty=1.0, "
        f"temperature=0.0, top_p=1.0, top_k=0, min_p=0.0, seed=None, stop=[], max_tokens=64, min_tokens=0, logprobs=None, {extra}, skip_special_tokens=True, truncate_prompt_tokens=None, "
        f"structured_outputs=None, extra_args=None),block_ids=([{', '.join(str(1200 + 3 * k) for k in range(4))}, 2048],),num_computed_tokens=0,lora_request=None,prompt_embeds_shape=None)"
        for name, tokens, extra in new
    )
    ids, have = [name for name, _ in cached], [tokens for _, tokens in cached]
    parts = {**{name: tokens for name, tokens, _ in new}, **dict.fromkeys(ids, 1)}
    server.log(
        "core",
        "dump_input.py:69",
        "Dumping input data for V1 LLM engine " + config_text(server, plan.model, plan.max_len).partition("engine ")[2],
        "ERROR",
    )
    server.log("core", "dump_input.py:76", (
        f"Dumping scheduler output for model execution: SchedulerOutput(scheduled_new_reqs=[{fresh}], scheduled_cached_reqs=CachedRequestData(req_ids={ids!r}, resumed_from_preemption=[{', '.join('False' for _ in ids)}], "
        f"new_token_ids=[], new_block_ids=[{', '.join('None' for _ in ids)}], num_computed_tokens={have!r}), num_scheduled_tokens={parts!r}, total_num_scheduled_tokens={scheduled}, scheduled_spec_decode_tokens={{}}, "
        "scheduled_encoder_inputs={}, num_common_prefix_blocks=[0], finished_req_ids=[], free_encoder_mm_hashes=[], structured_output_request_ids={}, grammar_bitmask=null, kv_connector_metadata=null)"), "ERROR")  # fmt: skip
    server.log("core", "dump_input.py:79", (
        f"Dumping scheduler stats: SchedulerStats(num_running_reqs={running}, num_waiting_reqs={waiting}, step_counter=0, current_wave=0, kv_cache_usage={used!r}, "
        "prefix_cache_stats=PrefixCacheStats(reset=False, requests=0, queries=0, hits=0), spec_decoding_stats=None, num_corrupted_reqs=0)"), "ERROR")  # fmt: skip


_HANDLER: tuple[Frame, ...] = (
    ("vllm/v1/engine/async_llm.py", 458, "output_handler", "outputs = await engine_core.get_output_async()"),
    ("vllm/v1/engine/core_client.py", 846, "get_output_async", "raise self._format_exception(outputs) from None"),
)
_DEAD = "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause."
_VICTIM: tuple[Frame, ...] = (
    (
        "vllm/entrypoints/openai/serving_chat.py",
        574,
        "chat_completion_stream_generator",
        "async for res in result_generator:",
    ),
    ("vllm/v1/engine/async_llm.py", 387, "generate", "out = q.get_nowait() or await q.get()"),
    ("vllm/v1/engine/output_processor.py", 59, "get", "raise output"),
)


def die_in_service(server: Server, frames: Sequence[Frame], last: str, victims: int) -> None:
    """A death while serving: the record of the engine core, and the echoes that each request in flight leaves."""
    server.error("core", "core.py:710", "EngineCore encountered a fatal error.", traceback(frames, last))
    server.now += 0.4
    server.error("api", "async_llm.py:480", "AsyncLLM output_handler failed.", traceback(_HANDLER, _DEAD))
    for victim in range(victims):
        if victim % 4 == 0:
            server.error(
                "api",
                "serving_chat.py:932",
                "Error in chat completion stream generator.",
                traceback((*_VICTIM, *_HANDLER), _DEAD),
            )
        else:
            server.access(f"192.0.2.{20 + victim % 5}:{41000 + 37 * victim}", "/v1/chat/completions", 500)
    server.now += 1.1
    server.uvicorn("Shutting down")
    server.uvicorn("Waiting for application shutdown.")
    server.uvicorn("Application shutdown complete.")
    server.uvicorn(f"Finished server process [{server.pids['api']}]")


def smaller(plan: Plan, **changes: float) -> Plan:
    """The same plan with other figures."""
    return replace(plan, **changes)  # type: ignore[arg-type]
