"""Figures of memory that an engine or an allocator states: weights, the KV pool, graphs, what torch holds."""

from __future__ import annotations

from oomdoc.ingest.vocabulary.quantity import Quantity

_MOST = 64 << 40


def _figure(name: str, strong: str, *, kind: str = "bytes", high: float = _MOST) -> Quantity:
    return Quantity(f"figure.{name}", "engine_figure", f":{name}", kind, strong=strong, exact=name, high=high)


QUANTITIES = (
    _figure("weights_bytes", "model weight mem, weight mem, model weight, weight size, model mem, model load mem"),
    _figure("kv_available_bytes", "kv cache free mem, kv cache free, kv free mem, kv cache mem free, kv cache mem"),
    _figure("kv_pool_tokens", "kv cache token, kv pool token, gpu kv cache token, kv token, kv cache size token, kv cache token total, kv token total", kind="tokens", high=1e10),
    _figure("num_gpu_blocks", "gpu block, kv block, gpu kv block, kv cache block", kind="count", high=1e9),
    _figure("activation_bytes", "peak activation mem, activation peak mem, activation mem, peak activation"),
    _figure("graph_bytes", "gpu graph mem, graph mem, gpu graph"),
    _figure("non_torch_bytes", "non torch mem, nontorch mem, non torch"),
    _figure("max_concurrency", "max concurrency, max request concurrency", kind="number", high=1e6),
)  # fmt: skip
