"""What would not help with a cause, and why: advice that engine and torch print by themselves, and what people try first.

The engine prints the same advice whatever the cause was; torch prints its hint in every message. Each entry says what it
would do here. The arithmetic behind the reasons is in docs/method.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from oomdoc.model import NotHelping
from oomdoc.regexes import regex
from oomdoc.solve.situation import Situation
from oomdoc.units import show_bytes


@dataclass(frozen=True)
class Advice:
    """One piece of advice: what it says, how logs word it (None: nobody prints it), and for which causes it is wrong.

    `always` tells it for those causes even where no log gives it.
    """

    what: str
    wording: re.Pattern[str] | None
    wrong: Mapping[str, str]
    always: frozenset[str] = frozenset()


_FILLS_THE_PLAN = (
    "the pool takes whatever the plan has left, so it is as large as before and the same is free outside it"
)
_NO_PART = "the bytes that ran out are not the device's"

ADVICE = (
    Advice(
        "raise `--gpu-memory-utilization`",
        regex(r"(?i)(?:increas\w*|rais\w*)\s+(?:the\s+)?[`'\"]?gpu[_ ]memory[_ ]utilization"),
        {
            "weights-exceed-gpu": "the weights alone take the device: there is nothing left to hand out",
            "gpu-shared": "what another process holds is not to be had, whatever share is asked for",
            "memory-utilization-edge": "it takes away what ran out: the bytes outside the plan",
            "prefill-activation-spike": "it makes the pool larger and leaves less for the peak that failed",
            "cuda-graph-overhead": "graphs are captured outside the pool: a larger pool leaves them less",
            "max-num-seqs-too-high": "the warm-up needs room beside the pool, and a larger share gives it to the pool",
            "feature-overhead": "the feature stands outside the plan: a larger share leaves it less",
            "tp-undersharded": "one device is full whatever share of it is planned; the others idle",
            "mig-slice-too-small": "the whole slice is too small",
            "host-memory-exhausted": _NO_PART,
        },
        frozenset({"memory-utilization-edge", "weights-exceed-gpu", "gpu-shared"}),
    ),
    Advice(
        "lower `--gpu-memory-utilization`",
        regex(r"(?i)(?:decreas\w*|lower\w*|reduc\w*)\s+(?:[`'\"]?max_num_seqs[`'\"]?\s+or\s+)?[`'\"]?gpu[_ ]memory[_ ]utilization"),
        {
            "kv-pool-below-max-model-len": "it makes the pool smaller, and the pool is what is too small",
            "kv-demand-exceeds-pool": "it makes the pool smaller, and the pool is what is full; nothing outside it ran out",
            "memory-utilization-too-low": "the budget is too small already",
            "weights-exceed-gpu": "the plan shrinks, the weights do not",
            "tp-undersharded": "the plan shrinks, the weights do not",
            "host-memory-exhausted": _NO_PART,
        },
        frozenset({"kv-pool-below-max-model-len", "kv-demand-exceeds-pool"}),
    ),
    Advice(
        "set `expandable_segments:True`",
        regex(r"expandable_segments"),
        {
            "memory-utilization-edge": "",
            "prefill-activation-spike": "",
            "cuda-graph-overhead": "",
            "max-num-seqs-too-high": "",
            "feature-overhead": "",
            "gpu-shared": "",
            "weights-exceed-gpu": "",
            "tp-undersharded": "",
            "mig-slice-too-small": "",
            "rank-imbalance": "",
            "kv-pool-below-max-model-len": "no allocation failed: the engine's arithmetic refused",
        },
    ),
    Advice(
        "raise `--max-num-seqs`",
        regex(r"(?i)(?:increas\w*|rais\w*)\s+[`'\"]?max_num_seqs"),
        {
            "kv-demand-exceeds-pool": "more requests at once is what fills the pool",
            "max-num-seqs-too-high": "it is what did not fit",
            "cuda-graph-overhead": "more and larger graphs are captured",
            "memory-utilization-edge": "it adds rows of logits, nothing else",
        },
    ),
    Advice(
        "a shorter `--max-model-len`",
        regex(r"(?i)(?:decreas\w*|lower\w*|reduc\w*)\s+[`'\"]?max_model_len"),
        {
            "memory-utilization-edge": _FILLS_THE_PLAN,
            "prefill-activation-spike": f"the step is bounded by `--max-num-batched-tokens`; {_FILLS_THE_PLAN}",
            "cuda-graph-overhead": _FILLS_THE_PLAN,
            "max-num-seqs-too-high": "the warm-up has rows for sequences, not for their length",
            "memory-utilization-too-low": "not one block fits, so no length does",
            "weights-exceed-gpu": "the weights are loaded before any length matters",
        },
        frozenset({"memory-utilization-edge", "weights-exceed-gpu"}),
    ),
    Advice(
        "`--kv-cache-dtype fp8`",
        None,
        {
            "memory-utilization-edge": "the pool keeps its bytes and stores more tokens in them: nothing becomes free",
            "prefill-activation-spike": "the pool keeps its bytes and stores more tokens in them: nothing becomes free",
            "cuda-graph-overhead": "the pool keeps its bytes and stores more tokens in them: nothing becomes free",
        },
        frozenset({"memory-utilization-edge", "prefill-activation-spike", "cuda-graph-overhead"}),
    ),
    Advice(
        "a larger `--swap-space`",
        regex(r"(?i)swap[_ ]space"),
        {"kv-demand-exceeds-pool": "V1 does not swap, and V0 copies what it swaps over the bus instead of computing it once more"},
    ),
    Advice(
        "restarting the server",
        None,
        {
            "kv-demand-exceeds-pool": "the same traffic fills the same pool again, and the prefix cache is lost",
            "memory-utilization-edge": "the same plan leaves the same bytes",
        },
        frozenset({"kv-demand-exceeds-pool"}),
    ),
)  # fmt: skip


_OF_THE_DEVICE = frozenset({"memory-utilization-edge"})
"""Causes whose reasons above speak of a device's plan: the CPU backend has none, it takes its share of the host or refuses."""


def not_helping(cause: str, now: Situation) -> Iterator[NotHelping]:
    """What would not help with this cause, that of the log first."""
    told: list[NotHelping] = []
    for advice in ADVICE:
        if cause not in advice.wrong or (not now.on_gpu and cause in _OF_THE_DEVICE):
            continue
        why = advice.wrong[cause] or _pieces(now)
        if not why:
            continue
        given = next((line.ref for line in now.advised if advice.wording and advice.wording.search(line.text)), None)
        if given is not None or cause in advice.always:
            told.append(NotHelping(advice.what, why, given))
    yield from sorted(told, key=lambda each: each.ref is None)


def _pieces(now: Situation) -> str:
    """Why pieces are not the matter: reserved but unallocated and free together would not hold the request; "" where they would."""
    unallocated, asked, free = (
        now.failure.get(name) for name in ("unallocated_bytes", "requested_bytes", "free_bytes")
    )
    if unallocated is None or asked is None:
        return "torch prints this in every message; nothing here says that pieces were the matter"
    if unallocated + (free or 0) >= asked:
        return ""
    return (
        f"torch prints this in every message: {show_bytes(unallocated)} in pieces and {show_bytes(free or 0)} free do not make "
        f"{show_bytes(asked)}"
    )
