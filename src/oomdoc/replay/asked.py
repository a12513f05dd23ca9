"""What a replay is asked and what it answers: the engine, the traffic, the outcome; and the sums that every way of running it shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

NEVER = 1 << 100  # picoseconds: a request that nobody has sent yet
FULL = 0.99  # share of the pool at which it counts as full: the first crossing
ANYBODY = -1  # owner of free blocks whose content nobody will ask for again


@dataclass(frozen=True)
class Setup:
    """The engine that a traffic is given to. Blocks are those of one KV group; durations are picoseconds.

    A step lasts `step_ps`, plus `sequence_ps` for each request that decodes in it, `context_ps` for each token that those
    have computed before, `prompt_token_ps` for each prompt token, and `prompt_pair_ps` x n^2 for a prompt of n tokens, of which
    a chunk bears its part. `watermark_blocks` are kept free when a request is admitted beside others (V0: 1 % of the pool).
    """

    usable_blocks: int  # without the null block that V1 keeps
    block_size: int  # tokens
    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int | None = None  # tokens; None = not checked
    step_ps: int = 25_000_000_000
    sequence_ps: int = 0
    context_ps: int = 0
    prompt_token_ps: int = 100_000_000
    prompt_pair_ps: int = 0
    watermark_blocks: int = 0
    chunked_prefill: bool = True
    prefill_first: bool = False  # V0 without chunked prefill: a step either prefills or decodes
    whole_prompt_must_fit: bool = True  # V0, and V1 in later releases; early V1 asks for the first chunk alone
    prefix_caching: bool = True
    policy: str = "fcfs"  # or "priority"
    callers: int = (
        0  # who each send their next request when one is done, the first as recorded; 0 = requests come when they came
    )


@dataclass(frozen=True)
class Traffic:
    """Requests in order of arrival, as columns of one length.

    `cached_tokens` are prompt tokens that the prefix cache served whatever the pool; they cost no time and do take blocks.
    Requests with the same `group` >= 0 share their first `prefix_tokens`, whose life in the cache is simulated; -1 = no
    known prefix. A smaller `priority` goes first, and counts only under that policy.
    """

    arrival_ps: Sequence[int]
    input_tokens: Sequence[int]
    output_tokens: Sequence[int]  # at least 1
    cached_tokens: Sequence[int] = ()
    group: Sequence[int] = ()
    prefix_tokens: Sequence[int] = ()
    priority: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.arrival_ps)


@dataclass(frozen=True)
class Sample:
    """State after the last step that ended by `t_ps`, those who finished gone: what the engine's statistics line tells."""

    t_ps: int
    used_blocks: int
    running: int
    waiting: int


@dataclass(frozen=True)
class Outcome:
    """What became of a traffic. Times are picoseconds, None where it never happened.

    `first_ps` and `finish_ps` are per request, None for one that could never run (`impossible`: longer than the pool or than
    max_model_len). `held_ps` is the time in which the next request in line was refused for lack of blocks.
    """

    end_ps: int
    steps: int
    peak_blocks: int
    preemptions: int
    recomputed_tokens: int
    computed_tokens: int
    held_ps: int
    full_ps: int | None
    waiting_ps: int | None
    preemption_ps: int | None
    impossible: tuple[int, ...]
    first_ps: Sequence[int | None] = field(repr=False)
    finish_ps: Sequence[int | None] = field(repr=False)
    samples: tuple[Sample, ...] = field(repr=False)
    arrival_ps: Sequence[int] = field(repr=False)

    def waits(self) -> list[int]:
        """Picoseconds from arrival to the first step, of all that ran, in order of arrival."""
        return [first - came for came, first in zip(self.arrival_ps, self.first_ps, strict=True) if first is not None]


def blocks(tokens: int, block_size: int) -> int:
    """Blocks that hold so many tokens.

    >>> blocks(16, 16), blocks(17, 16), blocks(0, 16)
    (1, 2, 0)
    """
    return -(-tokens // block_size)


def full_from(usable_blocks: int) -> int:
    """Fewest used blocks that count as a full pool."""
    return max(1, -(-usable_blocks * round(FULL * 100) // 100))


def lengths(setup: Setup, traffic: Traffic) -> tuple[list[int], tuple[int, ...]]:
    """Tokens that each request generates (cut at max_model_len), and the requests that can never run."""
    limit = setup.max_model_len
    outputs = []
    impossible = []
    for place, (asked, told) in enumerate(zip(traffic.input_tokens, traffic.output_tokens, strict=True)):
        output = told if limit is None else min(told, limit - asked)
        outputs.append(output)
        too_wide = not setup.chunked_prefill and asked > setup.max_num_batched_tokens
        if output < 1 or too_wide or blocks(asked + output - 1, setup.block_size) > setup.usable_blocks:
            impossible.append(place)
    return outputs, tuple(impossible)


def prefix_blocks(setup: Setup, traffic: Traffic) -> list[int]:
    """Whole blocks of each request that it shares with its group; of a group, what all its prompts reach beyond."""
    groups = traffic.group or [ANYBODY] * len(traffic)
    if not setup.prefix_caching or not traffic.prefix_tokens:
        return [0] * len(groups)
    least: dict[int, int] = {}
    for group, tokens, prompt in zip(groups, traffic.prefix_tokens, traffic.input_tokens, strict=True):
        if group >= 0:
            shared = min(tokens, prompt - 1) // setup.block_size
            least[group] = min(shared, least.get(group, shared))
    return [max(0, least[group]) if group >= 0 else 0 for group in groups]
