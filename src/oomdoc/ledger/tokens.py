"""Bytes of KV cache that one token takes on a rank: what the architecture allows, chosen by what was measured.

Pool bytes by pool tokens are two printed figures, off by up to a part in a hundred; the true number is layers x heads x
head size x element size, whole bytes that only a few settings give. So the formula's value is the answer wherever the
measurement allows it; where it does not, the same model under another KV dtype or number of ranks may explain it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from oomdoc.physics.interval import Interval
from oomdoc.units import show_bytes

_ROUNDER_THAN_CHANCE = 8  # times the width of the bounds
FAR_KV = 0.005  # a measured token this far from the formula's is another geometry: published logs agree to 0.2 %


@dataclass(frozen=True)
class Token:
    """`bytes` of one token on one rank, known from `origin`; `said`: the contradiction between two sources, or ""."""

    bytes: float
    origin: str
    said: str = ""


def token_bytes(
    formula: float | None, origin: str, model: str, measured: tuple[Interval, str] | None, others: Mapping[float, str] | None = None
) -> Token | None:  # fmt: skip
    """Bytes of one token; None where neither formula nor measurement tells them.

    `measured` is the pool by its tokens between the bounds that printing leaves, and where it stands; None where it says
    nothing about one token (several groups of layers). `others` are values that the same model has under other settings,
    each with the words for the setting.

    >>> seen = Interval(131_040.0, 131_100.0, "logged"), "vllm.log:20"
    >>> token_bytes(131_072, "catalogue", "m", seen).bytes, token_bytes(None, "", "", seen).bytes
    (131072, 131072)
    """
    if measured is None:
        return None if formula is None else Token(formula, origin)
    seen, ref = measured
    if formula is None:
        return Token(_snapped(seen), seen.origin)
    if agrees(formula, seen):
        return Token(formula, origin)
    fitting = [(value, words) for value, words in (others or {}).items() if agrees(value, seen)]
    said = f"one token costs {show_bytes(seen.middle)} by the pool ({ref}) and {show_bytes(formula)} by the formula of {model}: "
    if len({value for value, _ in fitting}) == 1:
        value, words = fitting[0]
        return Token(value, origin, said + f"{words} would explain it")
    return Token(_snapped(seen), seen.origin, said + "another model, KV dtype or rank, or something else in the pool")


def agrees(value: float, seen: Interval) -> bool:
    """The measurement allows this value."""
    return seen.lo <= value * (1 + FAR_KV) and value * (1 - FAR_KV) <= seen.hi


def measured_token(pool: Interval, tokens: int, block_tokens: int) -> Interval:
    """The pool by its tokens: less than one block of what is available stays unused.

    >>> measured_token(Interval(1600.0, 1600.0, "logged"), 16, 16)
    Interval(lo=50.0, hi=100.0, origin='logged')
    """
    return Interval(pool.lo / (tokens + block_tokens), pool.hi / tokens, pool.origin)


def only_value(values: Sequence[float | None]) -> float | None:
    """The one value that all of them have; None where they differ, or where one is not known."""
    return values[0] if values and len(set(values)) == 1 else None


def _snapped(seen: Interval) -> float:
    """The roundest number between the bounds, or the middle where none is rounder than chance would have it.

    K and V, heads, head size and element size are powers of two in nearly all models, only the number of layers is not: the
    bytes of a token are a multiple of a large power of two. Between the bounds lies one multiple of it, and by chance one
    in eight times at most.

    >>> _snapped(Interval(131_044.0, 131_101.0)), _snapped(Interval(57_320.0, 57_350.0)), _snapped(Interval(70_200.0, 70_300.0))
    (131072, 57344, 70250.0)
    """
    step = 1 << 30
    while step >= _ROUNDER_THAN_CHANCE * max(1.0, seen.hi - seen.lo):
        first = -int(-seen.lo // step) * step
        if 0 < first <= seen.hi:
            return first
        step //= 2
    return seen.middle
