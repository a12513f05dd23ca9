"""Figures of memory that an engine or an allocator states: weights, the KV pool, graphs, what torch holds."""

from __future__ import annotations

from oomdoc.ingest.vocabulary.quantity import Quantity
from oomdoc.units import GIB

_MOST = 64 << 40


def _figure(name: str, strong: str, sample: tuple[tuple[str, object, object], ...], *, kind: str = "bytes", high: float = _MOST, not_names: tuple[str, ...] = ()) -> Quantity:  # fmt: skip
    return Quantity(
        f"figure.{name}", "engine_figure", f":{name}", kind, strong=strong, exact=name, high=high, samples=sample,
        not_names=not_names or (name + "_before",),
    )  # fmt: skip


QUANTITIES = (
    _figure("weights_bytes", "model weight mem, weight mem, model weight, weight size, model mem, model load mem", (("model_weights_gib", 15.5, int(15.5 * GIB)),), not_names=("weights_path",)),
    _figure("kv_available_bytes", "kv cache free mem, kv cache free, kv free mem, kv cache mem free, kv cache mem", (("available_kv_cache_memory_gib", 9.5, int(9.5 * GIB)),)),
    _figure("kv_pool_tokens", "kv cache token, kv pool token, gpu kv cache token, kv token, kv cache size token, kv cache token total, kv token total", (("kv_cache_tokens", "120,000", 120000),), kind="tokens", high=1e10, not_names=("kv_cache_dtype",)),
    _figure("num_gpu_blocks", "gpu block, kv block, gpu kv block, kv cache block", (("num_gpu_blocks", 7500, 7500),), kind="count", high=1e9, not_names=("free_blocks",)),
    _figure("activation_bytes", "peak activation mem, activation peak mem, activation mem, peak activation", (("peak_activation_gib", 1.5, int(1.5 * GIB)),)),
    _figure("graph_bytes", "gpu graph mem, graph mem, gpu graph", (("cuda_graph_memory_gib", 0.5, GIB // 2),), not_names=("graph_estimate",)),
    _figure("non_torch_bytes", "non torch mem, nontorch mem, non torch", (("non_torch_memory_gib", 0.5, GIB // 2),)),
    _figure("max_concurrency", "max concurrency, max request concurrency", (("max_concurrency", 2.5, 2.5),), kind="number", high=1e6, not_names=("max_concurrent_uploads",)),
)  # fmt: skip
