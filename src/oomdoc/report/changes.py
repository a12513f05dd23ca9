"""What two reports can differ in: settings and figures, which way each gets worse, and a change as the comparison tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Side:
    """One of the two reports: what was looked at and what it said. `cause` is the leading one, None without any.

    `became` is what became of the engine start that is compared (`engines[].outcome` of the report), None where no start is shown.
    """

    name: str
    sha256: str
    verdict: str
    cause: str | None
    title: str | None
    probability: float | None
    oomdoc_version: str
    rules_version: str
    became: str | None = None


@dataclass(frozen=True)
class Change:
    """Something that differs. `before` and `after` are None where not stated (`stated` says which sides state it).

    `area` is version, model, flag, device, ledger or traffic. `factor` is after / before of numbers above zero.
    `relevance` has no unit: 0 = the report says nothing that bears on it. `because` are the reasons, strongest first.
    `set_by_people` tells settings, models, devices and traffic from figures that follow from them.
    """

    area: str
    name: str
    before: Any
    after: Any
    stated: tuple[bool, bool]
    factor: float | None
    set_by_people: bool
    relevance: float
    because: tuple[str, ...]


@dataclass(frozen=True)
class Sign:
    """A piece of evidence of the cause in question, in one report only."""

    id: str
    says: str
    weight: float
    refs: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """What changed. `outcome` is failed, recovered, same-cause, other-cause, healthy or unclear.

    `judged` is the side whose leading cause the changes are held against: new, old, or None where nothing failed.
    `changes` are ordered by relevance; `explained_by` are the names of those that people set and that explain the
    failure (or, where it is gone, the recovery), best first. `incomparable` names what makes the two hard to compare.
    """

    old: Side
    new: Side
    outcome: str
    judged: str | None
    cause: str | None
    changes: tuple[Change, ...]
    explained_by: tuple[str, ...]
    evidence_new: tuple[Sign, ...]
    evidence_gone: tuple[Sign, ...]
    incomparable: tuple[str, ...]


@dataclass(frozen=True)
class Figure:
    """A measured figure: where it stands, which direction is worse (+1 up, -1 down, 0 either), words that speak of it."""

    area: str
    worse: int
    words: str
    set_by_people: bool = False


FIGURES: Mapping[str, Figure] = {
    "total_bytes": Figure("device", -1, r"\bdevices?\b|\bcards?\b|total|capacity", True),
    "other_processes_bytes": Figure("ledger", 1, r"other process|another process|foreign|neighbou?r|tenant|shared", True),
    "weights_bytes": Figure("ledger", 1, r"\bweights?\b|model load"),
    "kv_pool_bytes": Figure("ledger", -1, r"\bpool\b|\bblocks\b"),
    "cuda_graph_bytes": Figure("ledger", 1, r"\bgraphs?\b"),
    "activation_bytes": Figure("ledger", 1, r"activation|prefill|profiling"),
    "non_torch_bytes": Figure("ledger", 1, r"non[- ]torch|outside torch|nccl"),
    "allocator_slack_bytes": Figure("ledger", 1, r"fragment|reserved|slack|unallocated"),
    "free_bytes": Figure("ledger", -1, r"\bfree\b|headroom"),
    "kv_pool_tokens": Figure("ledger", -1, r"\bpool\b|\bblocks\b"),
    "kv_bytes_per_token": Figure("ledger", 1, r"per token|\bpool\b"),
    "requests_per_s": Figure("traffic", 1, r"preempt|waiting|queue|arriv|\bload\b|traffic|concurren", True),
    "input_p95_tokens": Figure("traffic", 1, r"prompt|prefill|context|per request|\bpool\b|preempt", True),
    "output_p95_tokens": Figure("traffic", 1, r"output|context|per request|\bpool\b|preempt", True),
    "context_p95_tokens": Figure("traffic", 1, r"context|per request|\bpool\b|preempt", True),
    "context_max_tokens": Figure("traffic", 1, r"context|prefill|longest", True),
    "long_context_share": Figure("traffic", 1, r"long|context|prefill|\bpool\b", True),
    "tokens_in_flight_max": Figure("traffic", 1, r"in flight|\bpool\b|preempt|demand"),
    "requests_in_flight_max": Figure("traffic", 1, r"in flight|waiting|running|concurren|preempt"),
    "failed_share": Figure("traffic", 1, r"reject|refus|failed requests"),
}  # fmt: skip
"""Figures that are compared, in the unit of their name; requests_per_s is a rate, shares are 0..1."""

# Flag -> which direction is worse (0: depends on the cause), and the figures above that it moves.
FLAGS: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "max_num_seqs": (1, ("requests_in_flight_max", "tokens_in_flight_max", "cuda_graph_bytes")),
    "max_model_len": (1, ("context_max_tokens", "context_p95_tokens")),
    "max_num_batched_tokens": (1, ("activation_bytes",)),
    "gpu_memory_utilization": (0, ("kv_pool_tokens", "kv_pool_bytes", "free_bytes")),
    "kv_cache_memory_bytes": (0, ("kv_pool_tokens", "kv_pool_bytes", "free_bytes")),
    "num_gpu_blocks_override": (0, ("kv_pool_tokens", "kv_pool_bytes")),
    "kv_cache_dtype": (0, ("kv_bytes_per_token", "kv_pool_tokens")),
    "tensor_parallel_size": (-1, ("weights_bytes", "kv_pool_tokens")),
    "pipeline_parallel_size": (-1, ("weights_bytes", "kv_pool_tokens")),
    "quantization": (0, ("weights_bytes",)),
    "dtype": (0, ("weights_bytes", "kv_bytes_per_token")),
    "enforce_eager": (0, ("cuda_graph_bytes",)),
    "enable_prefix_caching": (0, ()),
    "enable_chunked_prefill": (0, ("activation_bytes",)),
}

ALWAYS = {"model": 1.5, "version": 0.5}  # a new model or release changes weights, formulas and defaults by itself

MOVES = {"model": ("weights_bytes", "kv_bytes_per_token"), "version": ()}
