"""What model, flags and device ought to give, rank by rank, before anything of it is believed to be so.

The model is that of `--model-config`, else the catalogue's by its name, else what a config.json in the bundle describes.
All arithmetic is `physics`; here it is only asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from oomdoc.errors import OomdocError
from oomdoc.fit import Given, Logged, Question, ask
from oomdoc.model import Engine
from oomdoc.physics.catalogue import find
from oomdoc.physics.expect import expected
from oomdoc.physics.interval import Interval
from oomdoc.physics.weights import stage_weights
from oomdoc.units import GIB

LEAST_DEVICE_BYTES = GIB  # no device that serves a model is smaller: such a total is damage
_UNKNOWN_DEVICE = "80GiB"  # weights and bytes per token need no device; whatever needs one is left out then


@dataclass(frozen=True)
class Expectation:
    """Expected figures of one rank. `parts` have the names of the ledger's parts; what cannot be computed is not there.

    `uniform`: all layers have one kind of cache, so pool bytes / tokens are the bytes of a token. `kv_heads` None: the
    cache has no heads (latent) or is not known. `origin` is that of the architecture: config or catalogue.
    """

    model: str
    origin: str
    weights_bytes: Interval | None
    kv_bytes_per_token: float | None
    uniform: bool
    kv_heads: int | None
    latent: bool
    multimodal: bool = False
    pool_tokens: Interval | None = None
    parts: Mapping[str, Interval] = field(default_factory=dict)


def expectation(
    engine: Engine, total_bytes: float | None, config: Mapping[str, Any] | None, *, on_gpu: bool = True
) -> Expectation | None:
    """What this start of an engine ought to take per rank; None where its model is not known."""
    if total_bytes is not None and total_bytes < LEAST_DEVICE_BYTES:
        total_bytes = None
    question = _question(engine, total_bytes, config)
    if question is None:
        return None
    model, setup = question.model, question.setup
    try:
        result = expected(model, setup, question.total_bytes, device=question.device)
    except OomdocError:  # a dtype that nobody knows
        return None
    stages = stage_weights(
        model, quantization=setup.quantization, dtype=setup.dtype, tp=setup.tensor_parallel_size, pp=setup.pipeline_parallel_size
    )  # fmt: skip
    parts: dict[str, Interval] = {}
    if result.weights_bytes is not None and stages:
        # stages differ; a rank is one of them
        parts["weights_bytes"] = replace(result.weights_bytes, lo=min(each.lo for each in stages))
    if result.budget is not None and on_gpu and total_bytes:
        parts["activation_bytes"] = result.budget.activation_bytes
        parts["non_torch_bytes"] = result.budget.non_torch_bytes
        parts["cuda_graph_bytes"] = result.budget.graph_bytes
        if result.available_bytes is not None:
            parts["kv_pool_bytes"] = result.available_bytes.at_least(0)
    uniform = result.pool is not None and all(len(layout.groups) == 1 for layout in result.pool.layouts)
    return Expectation(
        model=model.name or question.name,
        origin="config" if model.confirmed == "config" else "catalogue",
        weights_bytes=parts.get("weights_bytes"),
        kv_bytes_per_token=result.kv_bytes_per_token,
        uniform=uniform and setup.decode_context_parallel_size == 1 and setup.pipeline_parallel_size == 1,
        kv_heads=model.kv_heads,
        latent=model.latent,
        multimodal=model.multimodal,
        pool_tokens=result.pool.tokens if result.pool and on_gpu and total_bytes else None,
        parts=parts,
    )


def _question(engine: Engine, total_bytes: float | None, config: Mapping[str, Any] | None) -> Question | None:
    known = find(engine.model) if engine.model else None
    if config is None and known is None:
        return None
    device = f"{total_bytes / GIB:.6f}GiB" if total_bytes else _UNKNOWN_DEVICE
    try:
        return ask(Given(model_config=config, gpu=device), Logged(engine.model, engine))
    except OomdocError:
        return None


def model_config(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """A config.json again out of a row of `model_file`; None where the row does not tell enough to count by.

    Only plain decoders: what a row does not keep (which layers are dense, shared experts, states) decides for the others.
    """
    if not row.get("num_hidden_layers") or not row.get("hidden_size") or not row.get("num_attention_heads"):
        return None
    if row.get("recurrent_layers") or row.get("num_experts") or row.get("kv_lora_rank") or row.get("multimodal"):
        return None
    names = {
        "model_type": "model_type", "num_hidden_layers": "num_hidden_layers", "hidden_size": "hidden_size", "intermediate_size": "intermediate_size",
        "num_attention_heads": "num_attention_heads", "num_key_value_heads": "num_key_value_heads", "head_dim": "head_dim", "vocab_size": "vocab_size",
        "max_position_embeddings": "max_position_embeddings", "sliding_window": "sliding_window", "dtype": "torch_dtype",
        "tie_word_embeddings": "tie_word_embeddings",
    }  # fmt: skip
    config = {key: row[name] for name, key in names.items() if row.get(name) is not None}
    full, sliding = row.get("full_attention_layers") or 0, row.get("sliding_layers") or 0
    if full + sliding == row["num_hidden_layers"]:
        config["layer_types"] = ["full_attention"] * full + ["sliding_attention"] * sliding
    if row.get("quant_method"):
        config["quantization_config"] = {
            "quant_method": row["quant_method"], "bits": row.get("quant_bits"), "group_size": row.get("quant_group_size"),
        }  # fmt: skip
    return config
