"""What model, flags and device ought to give, rank by rank, before anything of it is believed to be so.

The model is that of `--model-config`, else the catalogue's by its name, else what a config.json in the bundle describes.
All arithmetic is `physics`; here it is only asked.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from oomdoc.errors import OomdocError
from oomdoc.fit import Given, Logged, Question, ask
from oomdoc.ledger.tokens import only_value
from oomdoc.model import Engine
from oomdoc.physics.architecture import CHUNKED, FULL, SLIDING, Model
from oomdoc.physics.catalogue import find, states_positions
from oomdoc.physics.config import read_config
from oomdoc.physics.expect import expected, feature_bytes
from oomdoc.physics.identify import identify
from oomdoc.physics.interval import Interval
from oomdoc.physics.kv import kv_bytes_per_token
from oomdoc.physics.planning import step_token_bytes
from oomdoc.physics.setup import Setup
from oomdoc.physics.weights import stage_weights, weights_bytes
from oomdoc.units import GIB

RANKS = (1, 2, 4, 8, 16)  # numbers of ranks that are asked about where nobody says
LEAST_DEVICE_BYTES = GIB  # no device that serves a model is smaller: such a total is damage
WITH_TABLES = 1.0025
"""Counted with the tables of positions / loaded without them, at most: Llama-3.1-8B is 14.99 GiB in some logs and 14.96 in others."""
_MUCH_WIDER = 3  # times as wide a range of weights is that much less evidence for its model
_UNKNOWN_DEVICE = "80GiB"  # weights and bytes per token need no device; whatever needs one is left out then


@dataclass(frozen=True)
class Expectation:
    """Expected figures of one rank. `parts` have the names of the ledger's parts; what cannot be computed is not there.

    `uniform`: all layers have one kind of cache, so pool bytes / tokens are the bytes of a token. `kv_heads` None: the
    cache has no heads (latent) or is not known. `origin` is that of the architecture: config or catalogue. `other_tokens`
    are the bytes of a token under another KV dtype or number of ranks, with the words for that. In `parts`
    the weights are those of the model itself, `feature_bytes` what a draft model and the slots of adapters take.
    """

    model: str
    origin: str
    weights_bytes: Interval | None
    kv_bytes_per_token: float | None
    uniform: bool
    kv_heads: int | None
    latent: bool
    multimodal: bool = False
    vocab_size: int | None = None
    positions: int | None = None
    """Tokens of the longest context that the checkpoint itself states; None where only a relative's are known."""
    step_token_bytes: Interval | None = None
    """What one more token of a step adds to the peak of the forward pass; without an encoder, which does not go by these tokens."""
    pool_tokens: Interval | None = None
    other_tokens: Mapping[float, str] = field(default_factory=dict)
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
        model, quantization=setup.quantization, dtype=setup.dtype, tp=setup.tensor_parallel_size, pp=setup.pipeline_parallel_size,
        version=setup.version,
    )  # fmt: skip
    parts: dict[str, Interval] = {}
    if result.weights_bytes is not None and stages:
        # stages differ; a rank is one of them
        features = feature_bytes(model, setup)
        least = min(each.lo for each in stages)
        most = max(least, result.weights_bytes.hi - (features.hi if features else 0))
        parts["weights_bytes"] = replace(result.weights_bytes, lo=least, hi=most)
        if features is not None:
            parts["feature_bytes"] = features
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
        vocab_size=model.vocab_size,
        positions=model.max_position_embeddings if states_positions(model, question.name) else None,
        step_token_bytes=step_token_bytes(model, tp=setup.tensor_parallel_size, dtype=setup.dtype),
        pool_tokens=result.pool.tokens if result.pool and on_gpu and total_bytes else None,
        other_tokens=_other_tokens(model, setup, result.kv_bytes_per_token),
        parts=parts,
    )


def _other_tokens(model: Model, setup: Setup, present: float | None) -> dict[float, str]:
    """Bytes of a token under the other common KV dtype, and on other numbers of ranks; without the present value."""
    found: dict[float, str] = {}
    ranks = setup.tensor_parallel_size
    settings = [("fp8", ranks, "a KV cache of fp8"), ("bfloat16", ranks, "a KV cache of 16 bits")]
    settings += [("", tp, f"{tp} ranks") for tp in RANKS if tp != ranks]
    for dtype, tp, words in settings:
        each = kv_bytes_per_token(
            model, kv_cache_dtype=dtype or setup.kv_cache_dtype, dtype=setup.dtype, tp=tp, pp=setup.pipeline_parallel_size, version=setup.version
        )  # fmt: skip
        if each and each != present:
            found.setdefault(each, words)
    return found


def ranks_that_fit(
    engine: Engine, config: Mapping[str, Any] | None, fits: Callable[[Interval, float], bool]
) -> int | None:  # fmt: skip
    """The one number of ranks under which weights and bytes of a token of this model fit; None where none or several do."""
    question = _question(engine, None, config)
    if question is None:
        return None
    model, setup = question.model, question.setup
    found = []
    for tp in RANKS:
        stages = stage_weights(model, quantization=setup.quantization, dtype=setup.dtype, tp=tp, version=setup.version)
        each = kv_bytes_per_token(
            model, kv_cache_dtype=setup.kv_cache_dtype, dtype=setup.dtype, tp=tp, version=setup.version
        )
        if stages and each and fits(stages[0], each):
            found.append(tp)
    return found[0] if len(found) == 1 else None


@functools.lru_cache(64)  # the starts of one server have the same figures
def token_by_weights(
    weights: Interval, token: Interval | None, version: int | None, longest: int | None, encoder: bool | None = None
) -> tuple[float, str] | None:
    """Bytes of a token that every known model of these weights (and, where it was measured, this token) has; one rank.

    None where no model of the catalogue loads so many bytes, where those that do differ, or where a request longer than
    their positions was allowed. A longest request of exactly a model's positions is that model's default: it goes before
    others, and so does a model whose weights are counted before one whose range merely holds them. `encoder`: whether the
    log budgets an encoder's cache, which the engine does for every model that has one; such models then go before others, or
    after them; None where its lines cannot tell. With the bytes the name of one of them.
    """
    # a load may be printed without the tables of positions, which what is counted here holds
    weights = replace(weights, hi=weights.hi * WITH_TABLES)
    found = [
        candidate
        for candidate in identify(weights=weights, kv_per_token=token, version=version, most=50, published=True)
        if candidate.weights_off == 0.0
        and not candidate.misfits
        and (candidate.model.max_position_embeddings or 0) >= (longest or 0)
    ]
    if not found:
        return None
    found = [item for item in found if encoder in (None, item.model.multimodal)] or found
    found = [item for item in found if item.model.max_position_embeddings == longest] or found
    # a model whose weights are only known as a wide range fits many logs: beside one that is counted it says little
    widths = [_width(item.model) for item in found]
    found = [item for item, width in zip(found, widths, strict=True) if width <= _MUCH_WIDER * min(widths)]
    each = {kv_bytes_per_token(item.model, kv_cache_dtype=item.kv_cache_dtype, version=version) for item in found}
    value = only_value([*each])
    return None if value is None else (value, found[0].model.name)


def _width(model: Model) -> float:
    """Width of the model's computed weights as a share of them; infinite where they are not computed."""
    size = weights_bytes(model)
    return math.inf if size is None else size.hi / size.lo - 1


def _question(engine: Engine, total_bytes: float | None, config: Mapping[str, Any] | None) -> Question | None:
    known = find(engine.model) if engine.model else None
    if config is None and known is None:
        return None
    device = f"{total_bytes / GIB:.6f}GiB" if total_bytes else _UNKNOWN_DEVICE
    try:
        return ask(Given(model_config=config, gpu=device), Logged(engine.model, engine))
    except OomdocError:
        return None


def model_config(text: str | None) -> dict[str, Any] | None:
    """The config.json of a bundle (`model_file`); None where it is none, or of no plain decoder.

    Of layers with experts, latent attention or states, and beside an encoder, a count by the config alone is too far from what the
    engine takes.
    """
    try:
        config = json.loads(text or "")
        model = read_config(config)
    except (ValueError, RecursionError, OomdocError):
        return None
    plain = {cache.kind for cache in model.caches} <= {FULL, SLIDING, CHUNKED}
    return config if plain and not model.multimodal and not model.expert_size and not model.experts_per_token else None
