"""One flag solved for: the largest value that starts for sure, everything else left alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from oomdoc.errors import UsageError
from oomdoc.fit.judge import at_once, filled, judge, longest
from oomdoc.fit.question import Question
from oomdoc.fit.sheet import worksheet
from oomdoc.fit.start import divides, too_long
from oomdoc.model.worksheet import Solved
from oomdoc.physics.expect import Expected
from oomdoc.physics.setup import Setup

_MOST_SEQS = 1 << 16
_MOST_BATCHED = 1 << 17
_RANKS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 32, 64)


def solve(question: Question, flag: str) -> Solved:
    """The answer for one flag, spelled with dashes or underscores. UsageError for a flag that is not solved for."""
    name = flag.lstrip("-").replace("-", "_")
    if name not in SOLVABLE:
        raise UsageError(f"--solve {flag} is not solved for", f"Choose {', '.join(SOLVABLE)}")
    length = filled(question, question.setup).max_model_len
    if name != "max_model_len" and question.positions_sure and (reason := too_long(question, length)):
        return Solved(name, None, None, reason)
    return SOLVABLE[name](question)


def _max_model_len(question: Question) -> Solved:
    far = longest(question, question.setup)
    if far is None:
        return Solved("max_model_len", None, None, "the cache of this model cannot be computed")
    limit = question.limit
    says = f"memory allows {far.lo:,.0f} tokens for sure and {far.hi:,.0f} at best"
    if limit and far.lo > limit:
        says += f"; the model itself stops at {limit:,}"
    return Solved("max_model_len", _none(min(far.lo, limit or far.lo)), _none(min(far.hi, limit or far.hi)), says)


def _max_num_seqs(question: Question) -> Solved:
    """Sequences that the pool holds at once at the largest size asked for, else at max_model_len."""
    contexts = [size.input_tokens + size.output_tokens for size in question.sizes]
    tokens = max(contexts) if contexts else filled(question, question.setup).max_model_len

    def fits(seqs: int, sure: bool) -> bool:
        # more sequences also cost rows of logits, so each number is judged by itself
        setup = replace(question.setup, max_num_seqs=seqs)
        held = at_once(question, setup, tokens)
        starts = judge(question, setup).starts
        if held is None:
            return False
        return starts is True and held.lo >= seqs if sure else starts is not False and held.hi >= seqs

    sure = _largest(_MOST_SEQS, lambda seqs: fits(seqs, True))
    best = _largest(_MOST_SEQS, lambda seqs: fits(seqs, False))
    says = f"requests of {tokens:,} tokens that the pool holds at once without preemption"
    return Solved("max_num_seqs", _none(sure), _none(best), says)


def _max_num_batched_tokens(question: Question) -> Solved:
    def starts(tokens: int) -> Expected:
        return judge(question, replace(question.setup, max_num_batched_tokens=tokens))

    sure = _largest(_MOST_BATCHED, lambda tokens: starts(tokens).starts is True)
    best = _largest(_MOST_BATCHED, lambda tokens: starts(tokens).starts is not False)
    says = "tokens of one step whose activations leave room for one request of max_model_len; an upper bound"
    return Solved("max_num_batched_tokens", _none(sure), _none(best), says)


def _gpu_memory_utilization(question: Question) -> Solved:
    sheet = worksheet(question).utilization
    if sheet is None:
        return Solved(
            "gpu_memory_utilization",
            None,
            None,
            f"the pool is set by {question.pool_by_hand}: utilization does not size it",
        )
    value = sheet.safest if sheet.starts is True else None
    best = sheet.safest if sheet.starts is not False else None
    needed = "" if sheet.needed is None else f"; max_model_len needs {sheet.needed.hi:.3f}"
    return Solved("gpu_memory_utilization", value, best, f"{sheet.why}{needed}")


def _tensor_parallel_size(question: Question) -> Solved:
    found: list[int | None] = []
    for sure in (True, False):
        found.append(next((ranks for ranks in _RANKS if _holds(question, _wider(question, ranks), sure)), None))
    return Solved("tensor_parallel_size", found[0], found[1], "the fewest ranks that start; it divides the heads")


def _wider(question: Question, ranks: int) -> Setup:
    return replace(question.setup, tensor_parallel_size=ranks)


def _holds(question: Question, setup: Setup, sure: bool) -> bool:
    if divides(question, setup):
        return False
    starts = judge(question, setup).starts
    return starts is True or (starts is None and not sure)


def _largest(most: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `most` that fits, where every smaller one fits too; 0 where not even 1 does."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _none(value: float) -> float | None:
    return int(value) or None


SOLVABLE: Mapping[str, Callable[[Question], Solved]] = MappingProxyType(
    {
        "max_model_len": _max_model_len,
        "max_num_seqs": _max_num_seqs,
        "max_num_batched_tokens": _max_num_batched_tokens,
        "gpu_memory_utilization": _gpu_memory_utilization,
        "tensor_parallel_size": _tensor_parallel_size,
    }
)
"""Flag -> its solver."""
