"""What an engine counts of itself: its own metric names, of all versions and in both spellings, and the words for the same.

A metric's name fills table `metric` under the name that the engine exposes; words of people fill `engine_stat`.
"""

from __future__ import annotations

from oomdoc.ingest.vocabulary.exporters import OTHERS
from oomdoc.ingest.vocabulary.quantity import Quantity

_MOST = 1e6


def _metric(name: str, others: str = "", *, high: float = float("inf"), counter: bool = False) -> Quantity:
    """A metric of the engine: its names with `vllm:` and `vllm_`, and those without a prefix."""
    bare = name.removeprefix("vllm:")
    share = high == 1.0
    foreign = [each for each, same in OTHERS.items() if same == name]
    names = [name, f"vllm_{bare}", bare, *(others.split(", ") if others else ()), *foreign]
    return Quantity(
        f"metric.{bare}", "metric", f":{name}", "share" if share else "number",
        exact=", ".join(f"{entry}=1" if share else entry for entry in names), unit="1" if share else "",
        high=high, counter=counter,
    )  # fmt: skip


QUANTITIES = (
    _metric("vllm:num_requests_running", high=_MOST),
    _metric("vllm:num_requests_waiting", high=_MOST),
    _metric("vllm:num_requests_swapped", high=_MOST),
    _metric("vllm:kv_cache_usage_perc", high=1.0),
    _metric("vllm:gpu_cache_usage_perc", high=1.0),
    _metric("vllm:cpu_cache_usage_perc", high=1.0),
    _metric("vllm:num_preemptions_total", "vllm:num_preemptions, preemptions_total", counter=True),
    _metric("vllm:prefix_cache_queries_total", "vllm:prefix_cache_queries", counter=True),
    _metric("vllm:prefix_cache_hits_total", "vllm:prefix_cache_hits", counter=True),
    _metric("vllm:gpu_prefix_cache_queries_total", counter=True),
    _metric("vllm:gpu_prefix_cache_hits_total", counter=True),
    _metric("vllm:gpu_prefix_cache_hit_rate", high=1.0),
    _metric("vllm:prompt_tokens_total", counter=True),
    _metric("vllm:generation_tokens_total", counter=True),
    _metric("vllm:request_success_total", "requests_done, requests_completed, completed_requests, requests_finished, finished_requests, requests_served, total_completed, done_total", counter=True),
    _metric("vllm:avg_prompt_throughput_toks_per_s"),
    _metric("vllm:avg_generation_throughput_toks_per_s"),
    Quantity(
        "metric.resident", "metric", ":process_resident_memory_bytes", "bytes", exact="process_resident_memory_bytes=B",
    ),
    Quantity(
        "stat.replica", "engine_stat", "process", "text",
        weak="pod, replica, worker, instance, endpoint, backend, server, engine, node, host, hostname, target, upstream, rank, pod name, worker id, endpoint name, replica id",
        pattern=r"^[\w.:/@\[\]-]{1,100}$",
    ),
    Quantity(
        "stat.running", "engine_stat", "running", "count",
        strong="running request, request running, running seq, running batch, concurrent request, concurrency, request in flight, running count, running request count, client connection, client conn, connected client, open connection",
        weak="running, active, batch size, inflight, in flight",
        high=_MOST,
    ),
    Quantity(
        "stat.waiting", "engine_stat", "waiting", "count",
        strong="waiting request, waiting depth, waiting size, waiting len, waiting token, request waiting, waiting backlog, backlog, waiting count, wait count, waiting request count, waiting total, waiting request total",
        weak="waiting, queued",
        exact="queue_depth, queue_len, queue_length, queue_size",
        high=_MOST,
    ),
    Quantity(
        "stat.swapped", "engine_stat", "swapped", "count",
        strong="swapped request, request swapped",
        weak="swapped",
        high=_MOST,
    ),
    Quantity(
        "stat.kv_used", "engine_stat", "kv_used", "share",
        strong="kv cache used, kv used, kv cache util, kv util, gpu kv cache used, kv cache, kv, kv pool used, kv block used, gpu cache used, gpu kv used, token used, kv cache full, kv occupancy, kv cache occupancy, kv pool util, kv fill, kv full, kv cache fill, kv block used pct, gpu block used pct, kv used max, kv cache used max, kv used peak, kv cache used peak",
        weak="cache used, pool used, cache util, block used pct",
        high=1.0,
    ),
    Quantity(
        "stat.blocks_used", "engine_stat", "+blocks_used", "count",
        strong="used kv cache block, kv block used, kv cache block used, used kv block, used gpu block, gpu block used, kv cache used block, alloc kv block, kv used block",
        exact="used_num_blocks, usedNumBlocks",
        high=1e9,
    ),
    Quantity(
        "stat.blocks_total", "engine_stat", "+blocks_total", "count",
        strong="max kv cache block, kv block total, kv cache block total, total kv block, kv block max, max kv block, kv cache block max, kv total block",
        exact="max_num_blocks, maxNumBlocks",
        high=1e9,
    ),
    Quantity(
        "stat.blocks_free", "engine_stat", "+blocks_free", "count",
        strong="free kv cache block, kv block free, kv cache block free, free kv block, free gpu block, gpu block free",
        exact="free_num_blocks, freeNumBlocks",
        high=1e9,
    ),
    Quantity(
        "stat.hit_rate", "engine_stat", "prefix_hit_rate", "share",
        strong="prefix cache hit rate, prefix hit rate, gpu prefix hit rate, gpu prefix hit pct, cache hit rate, prefix cache hit ratio, prefix cache hit pct, cache hit ratio, cache hit pct, prefix hit pct, prefix hit ratio",
        weak="hit rate, hit ratio",
        high=1.0,
    ),
    Quantity(
        "stat.preemptions", "engine_stat", "preemptions", "count",
        strong="preempt, preempt request, request preempt, preempt count",
        high=1e9, counter=True,
    ),
    Quantity(
        "stat.prompt_rate", "engine_stat", "prompt_tokens_per_s", "number",
        strong="prompt token rate, prompt rate",
        high=1e8,
    ),
    Quantity(
        "stat.generation_rate", "engine_stat", "generation_tokens_per_s", "number",
        strong="output token rate, output rate",
        high=1e8,
    ),
)  # fmt: skip
