"""Every evidence table: its columns, their types, units and meaning. The contract between ingestors, views and rules.

Each table begins with `source` (path inside the bundle) and `line` (1-based physical line), so that every number in a
report can be traced. NULL means *unknown*, never zero. `_bytes` are bytes, `_s` seconds, `t` is epoch seconds in UTC as
far as the log tells its zone; fractions are 0..1 and named for what they are a share of. This module knows names and
types only: no SQL, no parsing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from oomdoc.regexes import regex


@dataclass(frozen=True)
class Column:
    """One column: DuckDB type and what a value means (units, range, what NULL says)."""

    name: str
    type: str
    says: str


@dataclass(frozen=True)
class Table:
    """One table: a row per what (`says`), and its columns in order."""

    name: str
    says: str
    columns: tuple[Column, ...]

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names in order, `source` and `line` first."""
        return tuple(column.name for column in self.columns)


_PLACE = (
    Column("source", "VARCHAR", "path inside the bundle"),
    Column("line", "UINTEGER", "1-based physical line in that source"),
)
_WHO = (
    Column("t", "DOUBLE", "epoch seconds; NULL where the line and its neighbours carry no time"),
    Column("process", "VARCHAR", "process tag as printed (EngineCore_DP0, Worker_TP1, ...); NULL without a tag"),
    Column("pid", "BIGINT", "process id of the tag"),
    Column("rank", "INTEGER", "worker rank as far as the tag tells (TP rank, else V1 `rank=`)"),
)


def _table(name: str, says: str, *columns: Column, who: bool = False) -> Table:
    return Table(name, says, (*_PLACE, *(_WHO if who else ()), *columns))


_ALL = (
    Table(
        "source",
        "one row per file, member or stream that was read",
        (
            Column("source", "VARCHAR", "path inside the bundle"),
            Column("kind", "VARCHAR", "kind of evidence, by content (see `oomdoc tables`)"),
            Column("bytes", "UBIGINT", "bytes after decompression"),
            Column("lines", "UBIGINT", "physical lines"),
            Column("rows", "UBIGINT", "rows of evidence found"),
            Column("problems", "UBIGINT", "places that should have been understood and were not"),
            Column("lookalikes", "UBIGINT", "log-like text inside prompts and echoes that was refused as evidence"),
            Column(
                "names_engine",
                "BOOLEAN",
                "its beginning names an engine that serves LLMs, or what such a service loads; NULL = a file that may grow, where rows say more",
            ),
            Column(
                "words",
                "VARCHAR",
                "words of its beginning and its end that go with causes, in order, a space between two; NULL = none",
            ),
        ),
    ),
    _table(
        "problem",
        "one row per place that ought to have been understood and was not",
        Column("reason", "VARCHAR", "what was expected"),
        Column("text", "VARCHAR", "head of the text, at most 200 characters"),
    ),
    _table(
        "uncollected",
        "one row per thing that the collector of `oomdoc collect` could not have",
        Column("what", "VARCHAR", "what it is, e.g. kernel log"),
        Column("why", "VARCHAR", "why not, and how to get it"),
    ),
    _table(
        "milestone",
        "one row per step of a server's life that the log states",
        Column(
            "name",
            "VARCHAR",
            "server-version, engine-init, load-start, load-progress, loaded, profiled, kv-available, "
            "kv-sized, capture-start, captured, engine-ready, serving, shutdown, server-process, ...",
        ),
        Column("text", "VARCHAR", "its detail: the version, the model, `k/n` of a progress bar"),
        who=True,
    ),
    _table(
        "engine_flag",
        "one row per engine setting seen, in vLLM's own names with underscores",
        Column("flag", "VARCHAR", "e.g. max_model_len, gpu_memory_utilization, tensor_parallel_size, model, version"),
        Column("value", "VARCHAR", "as text, Python spelling"),
        Column(
            "origin", "VARCHAR", "logged (args line), config (engine-config line), command, environment, metrics, file"
        ),
        who=True,
    ),
    _table(
        "engine_figure",
        "one row per memory or capacity figure the engine printed, per rank where the line tells",
        Column(
            "name",
            "VARCHAR",
            "weights_bytes, kv_available_bytes, kv_pool_tokens, max_concurrency, graph_bytes, "
            "graph_estimate_bytes, activation_bytes, non_torch_bytes, non_kv_bytes, budget_bytes, total_bytes, "
            "free_at_start_bytes, requested_bytes, gpu_memory_utilization, num_gpu_blocks, block_size, "
            "kv_reserved_bytes, encoder_budget_tokens, max_num_batched_tokens, "
            "free_now_bytes (of the device, behind a step of the start), rank (which a worker says that it is), ...",
        ),
        Column("value", "DOUBLE", "in the unit that the name ends with; may be negative where the engine prints so"),
        Column("low", "DOUBLE", "smallest value the printed rounding allows; NULL = exact"),
        Column("high", "DOUBLE", "largest value the printed rounding allows; NULL = exact"),
        who=True,
    ),
    _table(
        "expected_figure",
        "one row per figure that model, flags and device ought to give, for the start in focus; computed, not read",
        Column(
            "name",
            "VARCHAR",
            "weights_bytes and kv_bytes_per_token per rank, feature_bytes (draft model and LoRA slots), kv_heads, vocab_size, latent (1 = every rank keeps the whole cache), multimodal (1 = it has an encoder), "
            "step_token_bytes (what one more token of a step adds to its peak), max_num_batched_tokens (the default of the release on such a device), positions (the longest context that the checkpoint states)",
        ),
        Column("low", "DOUBLE", "the least that it can be, in the unit that the name tells"),
        Column("high", "DOUBLE", "the most that it can be, likewise"),
        Column(
            "origin", "VARCHAR", "the weakest thing that it was computed from: config, catalogue, planning figure, ..."
        ),
        Column("model", "VARCHAR", "the architecture that it was computed for"),
    ),
    _table(
        "engine_stat",
        "one row per periodic statistics line of an engine",
        Column("engine", "INTEGER", "engine index; NULL for V0 and for aggregated lines"),
        Column("prompt_tokens_per_s", "DOUBLE", "tokens per second: average prompt throughput of the interval"),
        Column("generation_tokens_per_s", "DOUBLE", "tokens per second: average generation throughput of the interval"),
        Column("running", "INTEGER", "requests running"),
        Column("waiting", "INTEGER", "requests waiting (V0: Pending)"),
        Column("swapped", "INTEGER", "requests swapped out (V0)"),
        Column("kv_used", "DOUBLE", "share of KV blocks held by live requests, 0..1"),
        Column(
            "state_used",
            "DOUBLE",
            "share of the slots for recurrent states that requests and the prefix cache hold, 0..1; NULL = the model has none, or not printed",
        ),
        Column("prefix_hit_rate", "DOUBLE", "prefix-cache hit rate over the last requests, 0..1; NULL = not printed"),
        Column("preemptions", "INTEGER", "preemptions of the interval; NULL = not printed, which is not zero"),
        who=True,
    ),
    _table(
        "cache_lookup",
        "one row per request that a cache tier outside the engine's pool was asked for",
        Column("tier", "VARCHAR", "lmcache; radix (SGLang's own cache of prefixes in the pool)"),
        Column("tokens", "BIGINT", "tokens of the request"),
        Column("hit_tokens", "BIGINT", "of them found in the tier or in the pool before it"),
        who=True,
    ),
    _table(
        "preemption",
        "one row per preemption warning (V0; rate-limited, so use the counter)",
        Column("mode", "VARCHAR", "RECOMPUTE, SWAP, or ABORT where a request ends for lack of blocks"),
        Column("cumulative", "BIGINT", "preemptions so far in this scheduler"),
        who=True,
    ),
    _table(
        "oom",
        "one row per out-of-memory message of an allocator; NULL = the wording does not say",
        Column(
            "allocator",
            "VARCHAR",
            "torch, cuda, driver, cublas, cudnn, nccl, triton, hip, npu, xpu, hpu, mps, metal, vulkan, xla, tensorrt, ggml, cupy; device = a runtime that is not known by name",
        ),
        Column("device", "INTEGER", "index as torch prints it (after CUDA_VISIBLE_DEVICES)"),
        Column("requested_bytes", "BIGINT", "the failed request, rounded by the allocator"),
        Column("total_bytes", "BIGINT", "device capacity"),
        Column("free_bytes", "BIGINT", "free on the device"),
        Column("this_process_bytes", "BIGINT", "held by the failing process, non-torch included"),
        Column("other_processes_bytes", "BIGINT", "held by other processes that are truly others"),
        Column("other_processes", "INTEGER", "how many other processes the message names"),
        Column("allocated_bytes", "BIGINT", "allocated by torch, private pools included"),
        Column("private_pool_bytes", "BIGINT", "of it in private pools (CUDA graphs)"),
        Column("unallocated_bytes", "BIGINT", "reserved by torch but unallocated"),
        Column("allowed_bytes", "BIGINT", "per-process cap, where one is set"),
        Column("text", "VARCHAR", "head of the message"),
        who=True,
    ),
    _table(
        "startup_check",
        "one row per refusal by the engine's own start-up arithmetic",
        Column(
            "name",
            "VARCHAR",
            "no-kv-blocks, kv-below-max-model-len, free-memory, profiling-interference, warmup, "
            "mamba-blocks, load-oom, no-autofit, kv-request-exceeds-host, external-weights, shm-space, swap-space",
        ),
        Column("max_model_len", "BIGINT", "tokens of one longest request"),
        Column("needed_bytes", "BIGINT", "KV bytes that one longest request needs"),
        Column("available_bytes", "BIGINT", "KV bytes available"),
        Column("pool_tokens", "BIGINT", "tokens that the pool would store"),
        Column("estimated_max_model_len", "BIGINT", "the engine's own estimate of what fits"),
        Column("free_bytes", "BIGINT", "free on the device or host node"),
        Column("total_bytes", "BIGINT", "its total"),
        Column("utilization", "DOUBLE", "gpu_memory_utilization in the message, 0..1"),
        Column(
            "needed_utilization", "DOUBLE", "the least gpu_memory_utilization that would do, as the message says, 0..1"
        ),
        Column("wanted_bytes", "BIGINT", "utilization x total, or the request that was refused"),
        Column("dummy_requests", "INTEGER", "sequences of the sampler or pooler warm-up"),
        Column("device_kind", "VARCHAR", "gpu, cpu, shm"),
        Column("text", "VARCHAR", "head of the message"),
        who=True,
    ),
    _table(
        "log_error",
        "one row per exception or fatal line in a log",
        Column("level", "VARCHAR", "ERROR, CRITICAL, ...; NULL for a bare traceback"),
        Column(
            "exception",
            "VARCHAR",
            "class name, e.g. ValueError, torch.OutOfMemoryError; NULL = fatal message without one",
        ),
        Column(
            "kind",
            "VARCHAR",
            "echo (wrapper or consequence), memory, host-memory, shm, driver, hardware, nccl, "
            "bad-argument, missing-file, network, kernel, client, hang, other",
        ),
        Column("text", "VARCHAR", "head of the message, at most 400 characters"),
        who=True,
    ),
    _table(
        "frame",
        "one row per stack frame of a traceback that the log holds",
        Column("function", "VARCHAR", "function name"),
        Column("file", "VARCHAR", "file path as printed"),
        who=True,
    ),
    _table(
        "process_exit",
        "one row per statement that a process ended",
        Column("name", "VARCHAR", "process name as printed"),
        Column("exit_code", "INTEGER", "negative = signal, as Python prints it; NULL = not told"),
        who=True,
    ),
    _table(
        "crash_step",
        "one row per crash dump of the scheduler: what the failing step held",
        Column("scheduled_tokens", "BIGINT", "total_num_scheduled_tokens of the step"),
        Column("largest_prompt_tokens", "BIGINT", "longest new prompt in the step"),
        Column("running", "INTEGER", "requests running"),
        Column("waiting", "INTEGER", "requests waiting"),
        Column("kv_used", "DOUBLE", "share of the pool in use, 0..1"),
        Column("prompt_logprobs", "BOOLEAN", "a request of the step asked for prompt logprobs"),
        who=True,
    ),
    _table(
        "request",
        "one row per request with token counts",
        Column("t", "DOUBLE", "arrival (or the only time the log has), epoch seconds"),
        Column("input_tokens", "BIGINT", "prompt tokens; NULL = unknown"),
        Column("output_tokens", "BIGINT", "generated tokens; NULL = unknown"),
        Column("max_tokens", "BIGINT", "asked limit of generated tokens"),
        Column("cached_tokens", "BIGINT", "prompt tokens served from the prefix cache"),
        Column("latency_s", "DOUBLE", "end to end"),
        Column("ttft_s", "DOUBLE", "time to first token"),
        Column("status", "INTEGER", "HTTP status; 0 = no answer; NULL = unknown"),
        Column("model", "VARCHAR", "model name"),
        Column(
            "tenant",
            "VARCHAR",
            "whose it is: tenant, user, client, conversation, or the prefix that it shares with others",
        ),
        Column("replica", "VARCHAR", "the server, device or worker that it was sent to, where several take turns"),
        Column(
            "elapsed_s",
            "DOUBLE",
            "arrival in seconds since midnight, or since a beginning that nobody tells; NULL where `t` is known or neither is",
        ),
    ),
    _table(
        "gpu_sample",
        "one row per device and moment, from nvidia-smi",
        Column("t", "DOUBLE", "epoch seconds; NULL = a snapshot without time"),
        Column("gpu", "INTEGER", "nvidia-smi index"),
        Column("used_bytes", "BIGINT", "memory in use on the device"),
        Column("total_bytes", "BIGINT", "usable frame buffer"),
        Column("gpu_util", "DOUBLE", "share of time with a kernel running, 0..1"),
        Column("memory_util", "DOUBLE", "memory bandwidth activity, 0..1: not occupancy"),
    ),
    _table(
        "gpu_device",
        "one row per device (or MIG instance) that the bundle describes",
        Column("gpu", "INTEGER", "index; NULL where only a name is told"),
        Column("name", "VARCHAR", "product name"),
        Column("total_bytes", "BIGINT", "memory"),
        Column("mig_profile", "VARCHAR", "MIG profile such as 1g.10gb; NULL = a whole card"),
        Column("count", "INTEGER", "how many such devices the line states, at least 1"),
        Column("used_bytes", "BIGINT", "memory in use on a MIG instance; NULL for cards, whose use is in gpu_sample"),
        Column("bus_id", "VARCHAR", "address on the PCI bus as printed, e.g. 00000000:0B:00.0; NULL = not told"),
        Column("uuid", "VARCHAR", "e.g. GPU-0a1b2c3d-...; NULL = not told"),
    ),
    _table(
        "gpu_process",
        "one row per process that nvidia-smi shows on a device",
        Column("t", "DOUBLE", "epoch seconds"),
        Column("gpu", "INTEGER", "device index"),
        Column("pid", "BIGINT", "process id, perhaps of another namespace"),
        Column("type", "VARCHAR", "C compute, G graphics, M+C MPS"),
        Column("name", "VARCHAR", "process name, may be cut"),
        Column("used_bytes", "BIGINT", "device memory of that process"),
        Column("gpu_uuid", "VARCHAR", "uuid or bus address of the device, where rows name no index"),
    ),
    _table(
        "allocator_stat",
        "one row per metric of a torch.cuda.memory_summary() table, of memory_stats(), or of a snapshot's segments",
        Column("device", "INTEGER", "torch device index"),
        Column("summary", "INTEGER", "number of the table within its source, from 1"),
        Column(
            "metric",
            "VARCHAR",
            "allocated_bytes, active_bytes, requested_bytes, reserved_bytes, inactive_split_bytes, "
            "allocation, active, segment, inactive_split, oversize_allocations, oversize_segments, num_ooms, num_alloc_retries, ...",
        ),
        Column("current", "BIGINT", "now: bytes, or a count, as the metric's name says; the floor of the printed unit"),
    ),
    _table(
        "allocator_segment",
        "one row per device and pool of a memory snapshot, all its segments together",
        Column("device", "INTEGER", "torch device index"),
        Column("pool", "VARCHAR", "default, or private (CUDA graphs, MemPool)"),
        Column("total_bytes", "BIGINT", "reserved from the device"),
        Column("allocated_bytes", "BIGINT", "in live tensors"),
        Column("inactive_bytes", "BIGINT", "free inside of segments"),
        Column("largest_free_bytes", "BIGINT", "largest free block: no larger request fits without a new segment"),
    ),
    _table(
        "allocator_block",
        "one row per pool and call site of a memory snapshot: live blocks added up, largest sites first",
        Column("pool", "VARCHAR", "default or private"),
        Column("site", "VARCHAR", "innermost line of Python outside of torch; NULL = no frames were recorded"),
        Column("blocks", "BIGINT", "how many blocks"),
        Column("bytes", "BIGINT", "their size"),
        Column("largest_bytes", "BIGINT", "the largest of them"),
    ),
    _table(
        "allocator_trace",
        "one row per failure in a memory snapshot's trace, the last twenty",
        Column("device", "INTEGER", "torch device index"),
        Column("nth", "BIGINT", "number of the entry in the trace, from 1"),
        Column("bytes", "BIGINT", "size of the request"),
        Column(
            "largest_free_bytes",
            "BIGINT",
            "largest free block of the default pool; NULL = the pool changed after the event",
        ),
    ),
    _table(
        "model_file",
        "one row per file of a model's folder; NULL = the file does not say",
        Column("file", "VARCHAR", "config, generation, weights-index, quantization, adapter, listing"),
        Column("folder", "VARCHAR", "folder that was listed; NULL = not told"),
        Column("config", "VARCHAR", "a config.json as JSON text; NULL = another file, or one of more than 64 KiB"),
        Column(
            "total_bytes",
            "BIGINT",
            "size of all tensors (weights index), or of all files of a set that is whole (listing)",
        ),
        Column(
            "absent", "BIGINT", "parts of a set that are not there, or empty; NULL = a list that was cut does not tell"
        ),
        Column("lora_rank", "BIGINT", "rank of an adapter"),
    ),
    _table(
        "metric",
        "one row per sample of a Prometheus series that matters for memory (histogram buckets are left out)",
        Column("t", "DOUBLE", "scrape time from the file name, a stamp in the file, or the sample; NULL = unknown"),
        Column("name", "VARCHAR", "as exposed, e.g. vllm:num_preemptions_total"),
        Column("labels", "VARCHAR", "the label text between the braces"),
        Column("value", "DOUBLE", "sample value, in the unit that the metric's name tells"),
    ),
    _table(
        "host_event",
        "one row per statement of the kernel, container runtime or Ray about host memory, shared memory, a device error or a lost link",
        Column("t", "DOUBLE", "epoch seconds; NULL = only seconds since boot"),
        Column(
            "kind",
            "VARCHAR",
            "cgroup-oom-kill, node-oom-kill, cgroup-oom-count, ray-memory-kill, slurm-oom-kill, "
            "bus-error, shm-full, host-alloc-failed, pinned-alloc-failed, segfault, xid, link-down, reboot, killed-by-operator",
        ),
        Column("process", "VARCHAR", "victim's name"),
        Column("pid", "BIGINT", "victim's pid"),
        Column("bytes", "BIGINT", "size that the line names: resident set, usage, failed request"),
        Column("limit_bytes", "BIGINT", "limit that the line names"),
        Column("count", "BIGINT", "how often, where the line counts; Xid code for kind xid"),
        Column("text", "VARCHAR", "head of the line"),
        Column("memory_group", "VARCHAR", "memory group of the victim or of the counters, as printed"),
        Column("device", "VARCHAR", "PCI address of the device that an Xid names; network interface that is down"),
        Column("uptime_s", "DOUBLE", "seconds since boot, where the line has no date"),
    ),
    _table(
        "container",
        "one row per container state that Kubernetes describes",
        Column("pod", "VARCHAR", "pod name"),
        Column("name", "VARCHAR", "container name"),
        Column("state", "VARCHAR", "current state: Running, Waiting, Terminated"),
        Column("reason", "VARCHAR", "reason of the current state"),
        Column("last_reason", "VARCHAR", "reason of the last termination: OOMKilled, Error, Completed, ..."),
        Column("exit_code", "INTEGER", "exit code of the last termination"),
        Column("restarts", "INTEGER", "restart count"),
        Column("ran_s", "DOUBLE", "seconds that the last life lasted"),
        Column("memory_limit_bytes", "BIGINT", "container memory limit"),
        Column("gpus", "INTEGER", "nvidia.com/gpu limit"),
        Column("mig_profile", "VARCHAR", "MIG resource in the limits"),
        Column("liveness", "VARCHAR", "liveness probe as printed"),
        Column("startup", "VARCHAR", "startup probe as printed"),
        Column("namespace", "VARCHAR", "namespace of the pod"),
        Column("node", "VARCHAR", "node that runs the pod"),
        Column("image", "VARCHAR", "image as printed"),
        Column("container_id", "VARCHAR", "id of the container, without the runtime before it"),
        Column("pod_uid", "VARCHAR", "uid of the pod"),
        Column("serves", "BOOLEAN", "its image or command is an LLM server; NULL = neither is told"),
        Column("started_t", "DOUBLE", "epoch seconds: begin of the current life, or of the last one if none runs"),
        Column("ended_t", "DOUBLE", "epoch seconds: end of the last life"),
    ),
    _table(
        "cluster_event",
        "one row per Kubernetes event",
        Column("t", "DOUBLE", "epoch seconds; NULL = only an age"),
        Column("age_s", "DOUBLE", "age at the time of collection"),
        Column("type", "VARCHAR", "Normal or Warning"),
        Column("reason", "VARCHAR", "Unhealthy, Killing, BackOff, OOMKilling, Evicted, FailedScheduling, ..."),
        Column("object", "VARCHAR", "what it is about"),
        Column("count", "INTEGER", "how often"),
        Column("message", "VARCHAR", "message, at most 400 characters"),
        Column("namespace", "VARCHAR", "namespace of what it is about"),
    ),
    _table(
        "described",
        "one row per object whose description begins here: what follows in the source, up to the next one, is about it",
        Column("kind", "VARCHAR", "node, pod, scaler, or unit of a service manager"),
        Column("name", "VARCHAR", "name of the object"),
        Column("namespace", "VARCHAR", "its namespace; NULL = none told"),
        Column("target", "VARCHAR", "workload that a scaler scales; NULL = another kind"),
        Column("gpus", "BIGINT", "devices that a node's capacity lists, 0 where it lists none; NULL = another kind"),
    ),
    _table(
        "scaler",
        "one row per statement about an autoscaler: its metric, condition or decision",
        Column("t", "DOUBLE", "epoch seconds"),
        Column("kind", "VARCHAR", "metric, condition, replicas, decision, blind"),
        Column("name", "VARCHAR", "metric or condition name"),
        Column("status", "VARCHAR", "condition status, or current/target as printed"),
        Column("text", "VARCHAR", "head of the line"),
        Column("target", "VARCHAR", "workload that it scales"),
        Column("namespace", "VARCHAR", "namespace of the scaler"),
        Column("value", "DOUBLE", "what the followed metric was, in its own unit; NULL = not told"),
        Column("threshold", "DOUBLE", "the value from which it adds replicas, in the same unit; NULL = not told"),
        Column("replicas", "BIGINT", "replicas there were; NULL = not told"),
        Column("ready", "BIGINT", "replicas that answer already, where told beside those there are; NULL = not told"),
        Column("desired", "BIGINT", "replicas it asked for; NULL = not told"),
        Column("minimum", "BIGINT", "fewest replicas it may set; NULL = not told"),
        Column("maximum", "BIGINT", "most replicas it may set; NULL = not told"),
    ),
    _table(
        "process_cpu",
        "one row per process or thread of a listing that tells how much of a processor it uses",
        Column("name", "VARCHAR", "its command, as far as the listing shows it"),
        Column(
            "share",
            "DOUBLE",
            "1 = one core the whole time; of `ps` over its whole life, of `top` over the last seconds",
        ),
    ),
    _table(
        "process_memory",
        "one row per sample of memory that a process, a container or a host holds, outside nvidia-smi tables",
        Column("t", "DOUBLE", "epoch seconds"),
        Column("name", "VARCHAR", "process or label"),
        Column("state", "VARCHAR", "what the server was doing: idle, after round 3, asleep, ..."),
        Column(
            "resource",
            "VARCHAR",
            "host (a process's own), host-locked (of it what is pinned), gpu, container (page cache included), page-cache, swap, "
            "shm (files of shared memory), host-used and host-available (of the whole node), host-limit; NULL = not told",
        ),
        Column("bytes", "BIGINT", "memory held; of host-available what is left; NULL where only a share is told"),
        Column("share", "DOUBLE", "the same as a share of the whole, 0 to 1, where only that is told"),
        Column(
            "elapsed_s", "DOUBLE", "seconds since a beginning that nobody tells; NULL where `t` is known or neither is"
        ),
        Column("step", "BIGINT", "place in an order without time: a round, a turn, requests done"),
        Column("running", "DOUBLE", "load at that moment: requests running, clients, requests a second"),
        Column("requests", "DOUBLE", "requests done, since the beginning or since the sample before"),
        Column(
            "variant", "VARCHAR", "what distinguishes this series from others of the same table: a setting, a release"
        ),
    ),
    _table(
        "note",
        "one row per statement in free text (notes, issue text, workload descriptions) that bears on a cause",
        Column(
            "topic",
            "VARCHAR",
            "prompt-logprobs, long-prompt, multimodal, lora, draft-model, eager-cures, repeated-prefix, "
            "no-hits, grows, restart-cures, shm, transient, ...",
        ),
        Column("value", "DOUBLE", "number in the statement, if any"),
        Column("text", "VARCHAR", "the sentence, at most 300 characters"),
    ),
    _table(
        "trial",
        "one row per setting of a try that a person made: a sentence that names settings and what became of it, a row of a table of them",
        Column(
            "flag",
            "VARCHAR",
            "setting, in vLLM's own name with underscores; `@...` is a condition of the try (a round, a load)",
        ),
        Column("value", "VARCHAR", "value as written; `off` = left out; NULL = none"),
        Column(
            "works",
            "BOOLEAN",
            "it started or served with it; false = it failed all the same; NULL = only figures are told",
        ),
        Column("text", "VARCHAR", "the line, at most 400 characters"),
        Column("experiment", "INTEGER", "tries of one number and source can be compared; NULL = a line by itself"),
        Column("attempt", "INTEGER", "number of the try in its source: rows of one number are its settings"),
    ),
    _table(
        "trial_figure",
        "one row per figure that a try gave",
        Column("experiment", "INTEGER", "as in `trial`"),
        Column("attempt", "INTEGER", "as in `trial`"),
        Column("name", "VARCHAR", "the column's words"),
        Column(
            "quantity",
            "VARCHAR",
            "kv_tokens, kv_bytes, kv_blocks, hit_tokens, asked_tokens, hit_rate, preemptions, ttft_s, tpot_s (time per further token), latency_s, failed (requests), host_bytes, gpu_bytes; NULL = another",
        ),
        Column("value", "DOUBLE", "in the unit of its name: tokens, bytes, seconds, shares"),
    ),
    _table(
        "load_run",
        "one row per run of a load generator: what its command asked for, and what it printed",
        Column("run", "INTEGER", "number of the run in its source"),
        Column("clients", "BIGINT", "requests under way at a time, as asked for; NULL = no bound is told"),
        Column("users", "BIGINT", "who come back with what they sent before: users, conversations, documents"),
        Column("rate_per_s", "DOUBLE", "requests sent a second; NULL = as fast as they are answered, or not told"),
        Column("requests", "BIGINT", "requests to be sent in all"),
        Column("done", "BIGINT", "requests answered"),
        Column("prompt_tokens", "BIGINT", "tokens of a prompt, as counted, else as asked for; NULL = not told"),
        Column("shared_tokens", "BIGINT", "of them alike in all prompts"),
        Column("output_tokens", "BIGINT", "tokens of an answer"),
        Column("ttft_s", "DOUBLE", "mean or median time to the first token, seconds"),
        Column("tpot_s", "DOUBLE", "the same per further token"),
        Column("latency_s", "DOUBLE", "the same of a whole request"),
        Column("text", "VARCHAR", "the command or heading, at most 300 characters"),
    ),
    _table(
        "column_reading",
        "one row per column, key or name that was taken for a quantity by the vocabulary",
        Column("name", "VARCHAR", "the name as written"),
        Column("taken_for", "VARCHAR", "table and column that it fills, and the unit"),
    ),
)

TABLES: Mapping[str, Table] = MappingProxyType({table.name: table for table in _ALL})
"""All evidence tables by name, in the order in which `oomdoc tables` shows them."""

COLUMN_READING = "column_reading"  # about the reading: its rows are no evidence, and not counted as such
LOOKALIKE = "lookalike"  # a pseudo-table: rows are counted in `source.lookalikes` and not stored


class Batch(NamedTuple):
    """Columns for one table, all of one length; `line` is always there, columns left out are NULL.

    A column is a list of Python values (None = NULL), a numpy array, or a numpy masked array (masked = NULL).
    `writer` names one of several engines that wrote into one source (`ingest.writers`), "" = its only or first one.
    """

    table: str
    columns: Mapping[str, Any]
    writer: str = ""

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.columns["line"])


WRITER_SUFFIX = r"\[[\w.-]+\]$"
"""What names the writer at the end of a source, for expressions of Python and of SQL alike."""
_OF_WRITER = regex(f"(.+){WRITER_SUFFIX}", re.S)


def source_of(path: str, writer: str) -> str:
    """The name of a writer's part of a source.

    >>> source_of("all.log", "llm-1"), source_of("all.log", "")
    ('all.log[llm-1]', 'all.log')
    """
    return f"{path}[{writer}]" if writer else path


def path_of(source: str) -> str:
    """The source in which a writer's part stands.

    >>> path_of("all.log[llm-1]"), path_of("all.log")
    ('all.log', 'all.log')
    """
    found = _OF_WRITER.fullmatch(source)
    return found[1] if found else source
