"""Words of innocent evidence: messages that people quote, and the lines that other programs write. Data for `noise.py`.

All names, addresses, paths and numbers are made up; the forms are those of the programs named.
"""

from __future__ import annotations

QUOTES: tuple[str, ...] = (
    "ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in KV cache (25408). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.",
    "ValueError: To serve at least one request with the model's max seq len (65536), (8.0 GiB KV cache is needed, which is larger than the available KV cache memory (3.21 GiB). Based on the available memory, the estimated maximum model length is 26288. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.",
    "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
    "ValueError: Free memory on device (11.92/23.53 GiB) on startup is less than desired GPU memory utilization (0.9, 21.18 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 224.00 MiB. GPU 0 has a total capacity of 23.53 GiB of which 101.12 MiB is free. Including non-PyTorch memory, this process has 23.41 GiB memory in use. Of the allocated memory 22.61 GiB is allocated by PyTorch, and 318.40 MiB is reserved by PyTorch but unallocated.",
    "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine.",
    "Memory cgroup out of memory: Killed process 48211 (VLLM::EngineCore) total-vm:98214412kB, anon-rss:62911040kB, file-rss:120044kB, shmem-rss:10240kB, UID:0 pgtables:140212kB oom_score_adj:968",
    "WARNING 03-11 09:14:22 [scheduler.py:1021] Sequence group 118 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space. This can affect the end-to-end performance. total_num_cumulative_preemption=51",
    "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_0': 1}",
    "Liveness probe failed: Get \"http://198.51.100.77:8000/health\": dial tcp 198.51.100.77:8000: connect: connection refused",
    "Back-off restarting failed container server in pod llm-0_serving(6f0c)",
    "No available shared memory broadcast block found in 60 second.",
    "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
    "RuntimeError: Worker failed with error 'CUDA error: out of memory', please check the stack trace above for the root cause",
    "AssertionError: Error in memory profiling. Initial free memory 40.12 GiB, current free memory 61.90 GiB. This happens when other processes sharing the same container release GPU memory while vLLM is profiling during initialization.",
    "INFO 03-11 09:20:02 [loggers.py:118] Engine 000: Avg prompt throughput: 8123.4 tokens/s, Avg generation throughput: 12.1 tokens/s, Running: 31 reqs, Waiting: 212 reqs, GPU KV cache usage: 99.8%, Prefix cache hit rate: 0.0%",
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 6.00 GiB. GPU 1 has a total capacity of 79.11 GiB of which 5.20 GiB is free.",
    "Last State: Terminated  Reason: OOMKilled  Exit Code: 137",
    "INFO 03-11 09:13:40 [gpu_worker.py:298] Available KV cache memory: -1.84 GiB",
)  # fmt: skip
"""Messages as a runbook, a chat or a thread quotes them: each of another cause."""

ADVICE: tuple[str, ...] = (
    "Raise `--gpu-memory-utilization` in steps of 0.02 and restart.",
    "Lower `--max-model-len` to what your users send; most need 16k at most.",
    "Set `--max-num-seqs 64` if the sampler fails at start.",
    "Check `nvidia-smi` for a process that should not be there and ask its owner.",
    "Give the pod a larger memory limit when the kernel kills a worker.",
    "Mount a larger `/dev/shm`, 10 GiB are usual with four ranks.",
    "Raise `failureThreshold` of the startup probe so that loading has 30 minutes.",
    "Try `--enforce-eager` to see whether graph capture is the reason.",
    "Split the model over two cards with `--tensor-parallel-size 2`.",
    "Set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` when reserved memory is much larger than allocated.",
)

VICTIMS: tuple[str, ...] = ("promtail", "java", "node", "fluent-bit", "grafana-server", "python3", "mysqld", "chrome", "jupyter-lab", "otelcol", "redis-server", "gunicorn", "celery", "prometheus")  # fmt: skip

OLD_LIFE = """\
{api}INFO {t0} [api_server.py:1896] vLLM API server version {version}
{api}INFO {t0} [utils.py:233] non-default args: {{'model_tag': '{model}', 'model': '{model}', 'max_model_len': 131072, 'gpu_memory_utilization': 0.6}}
{api}INFO {t1} [model.py:1510] Using max model len 131072
{api}INFO {t1} [scheduler.py:205] Chunked prefill is enabled with max_num_batched_tokens=8192.
{core}INFO {t2} [core.py:77] Initializing a V1 LLM engine (v{version}) with config: model='{model}', speculative_config=None, tokenizer='{model}', dtype=torch.bfloat16, max_seq_len=131072, tensor_parallel_size=1, pipeline_parallel_size=1
{core}INFO {t2} [gpu_model_runner.py:2602] Starting to load model {model}...
{core}INFO {t3} [gpu_model_runner.py:2653] Model loading took 9.1260 GiB and 21.442107 seconds
{core}INFO {t4} [gpu_worker.py:298] Available KV cache memory: 2.11 GiB
{core}ERROR {t4} [core.py:708] EngineCore failed to start.
{core}ERROR {t4} [core.py:708] Traceback (most recent call last):
{core}ERROR {t4} [core.py:708]   File "/usr/local/lib/python3.12/dist-packages/vllm/v1/engine/core.py", line 699, in run_engine_core
{core}ERROR {t4} [core.py:708]     engine_core = EngineCoreProc(*args, **kwargs)
{core}ERROR {t4} [core.py:708]   File "/usr/local/lib/python3.12/dist-packages/vllm/v1/core/kv_cache_utils.py", line 716, in check_enough_kv_cache_memory
{core}ERROR {t4} [core.py:708]     raise ValueError(
{core}ERROR {t4} [core.py:708] ValueError: To serve at least one request with the model's max seq len (131072), (16.0 GiB KV cache is needed, which is larger than the available KV cache memory (2.11 GiB). Based on the available memory, the estimated maximum model length is 17248. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.
{api}RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{'EngineCore_DP0': 1}}
"""
"""A start that the engine refused, whole: what an operator mended days before the server of the bundle was started."""

GATED_START = """\
INFO {t0} [api_server.py:1896] vLLM API server version {version}
INFO {t0} [utils.py:233] non-default args: {{'model_tag': '{model}', 'model': '{model}', 'port': 8017}}
Traceback (most recent call last):
  File "/usr/local/lib/python3.12/dist-packages/huggingface_hub/utils/_http.py", line 407, in hf_raise_for_status
    response.raise_for_status()
requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://huggingface.co/{model}/resolve/main/config.json
OSError: You are trying to access a gated repo. Make sure to have access to it at https://huggingface.co/{model}.
"""
"""A start of another model that failed for want of a licence."""

ENGINE_SOURCE = '''\
# SPDX-License-Identifier: Apache-2.0
"""Checks of the memory that a worker finds at start."""

import gc
import torch

from engine.logger import init_logger

logger = init_logger(__name__)


class Worker:
    def init_device(self):
        self.init_snapshot = MemorySnapshot()
        self.requested_memory = self.init_snapshot.total_memory * self.cache_config.gpu_memory_utilization
        if self.init_snapshot.free_memory < self.requested_memory:
            gib = lambda b: round(b / 2**30, 2)
            raise ValueError(
                f"Free memory on device ({gib(self.init_snapshot.free_memory)}/{gib(self.init_snapshot.total_memory)} GiB) on startup is less than desired GPU memory utilization "
                f"({self.cache_config.gpu_memory_utilization}, {gib(self.requested_memory)} GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.")

    def determine_available_memory(self):
        # 0.9 of the card, less weights and the peak of the dummy run
        with memory_profiling(self.init_snapshot, weights_memory=self.model_runner.model_memory_usage) as result:
            self.model_runner.profile_run()
        if self.init_snapshot.free_memory <= result.free:
            raise AssertionError("Error in memory profiling. Initial free memory 20.12 GiB, current free memory 31.90 GiB. This happens when other processes sharing the same container release GPU memory")
        available = self.requested_memory - result.non_kv_cache_memory
        logger.info("Available KV cache memory: %.2f GiB", available / 2**30)
        return int(available)

    def check_enough(self, available, needed, max_model_len):
        if available <= 0:
            raise ValueError("No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.")
        if needed > available:
            raise ValueError(
                f"To serve at least one request with the model's max seq len ({max_model_len}), ({needed/2**30:.2f} GiB KV cache is needed, which is larger than the available KV cache memory")

    def warm_up(self, max_num_reqs):
        try:
            self.model_runner._dummy_sampler_run(hidden_states=self.last)
        except torch.cuda.OutOfMemoryError as e:
            raise RuntimeError(
                f"CUDA out of memory occurred when warming up sampler with {max_num_reqs} dummy requests. Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine.") from e
        logger.warning("No available shared memory broadcast block found in %s second.", 60)
        logger.warning(
            "Sequence group %s is preempted by %s mode because there is not enough KV cache space. "
            "This can affect the end-to-end performance. total_num_cumulative_preemption=%d", 0, "PreemptionMode.RECOMPUTE", 1)
'''
"""A module as the engine's own source tree holds it: every message of it is a text in a statement."""
