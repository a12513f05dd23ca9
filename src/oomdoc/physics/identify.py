"""Which models a log could be about, where it names none: by loaded weights and by KV bytes per token.

Two figures rarely single out one model: fine-tunes share both. So the answer is a ranked list that says for each
candidate what agrees and what does not; an empty list is an answer too.
"""

from __future__ import annotations

from dataclasses import dataclass

from oomdoc.physics.architecture import Model
from oomdoc.physics.catalogue import loading, models
from oomdoc.physics.interval import Interval
from oomdoc.physics.kv import kv_bytes_per_token
from oomdoc.physics.weights import FORMATS, weights_bytes
from oomdoc.units import show_bytes

WEIGHTS_TOLERANCE = 0.02
KV_TOLERANCE = 0.002  # uniform models agree to 0.2 % with available / tokens; more is another geometry
_KV_DTYPES = ("auto", "fp8")


@dataclass(frozen=True)
class Candidate:
    """A model and format that could explain the figures.

    `weights_off` and `kv_off` are relative distances (0 = inside the interval), None where that figure was not given or
    not computable; `fits` names what agrees, `misfits` what does not, in words.
    """

    model: Model
    quantization: str | None
    kv_cache_dtype: str
    weights_off: float | None
    kv_off: float | None
    fits: tuple[str, ...]
    misfits: tuple[str, ...]


def identify(
    *,
    weights: Interval | None = None,
    kv_per_token: Interval | None = None,
    tp: int = 1,
    pp: int = 1,
    version: int | None = None,
    most: int = 10,
    published: bool = False,
) -> tuple[Candidate, ...]:
    """One candidate per model, its likeliest format, for loaded bytes and KV bytes per token of one rank, best first; nothing that fits in no respect.

    A candidate must agree with each figure that is given and computable; those that agree with one of two come after
    those that agree with both. Ties go to the closer weights, then to the plainer format, then to the name. With
    `published` only models whose own checkpoint loads these weights on one rank, in its format: a hundredth of the work.
    """
    if weights is None and kv_per_token is None:
        return ()
    found = []
    for model in loading(weights) if published and weights is not None else models():
        formats = [None] if weights is None or published else [None, "none", *_formats(model)]
        tokens = {
            kv_dtype: kv_bytes_per_token(model, kv_cache_dtype=kv_dtype, tp=tp, pp=pp, version=version)
            for kv_dtype in (_KV_DTYPES if kv_per_token is not None else ())
        }
        fitting = []
        for quantization in formats:
            loaded = None if weights is None else weights_bytes(model, quantization=quantization, tp=tp, pp=pp)
            for kv_dtype, per_token in (tokens or {"auto": None}).items():
                candidate = _judge(model, quantization, kv_dtype, weights, loaded, kv_per_token, per_token)
                if candidate is not None:
                    fitting.append(candidate)
        if fitting:
            found.append(min(fitting, key=_order))
    return tuple(sorted(found, key=_order))[:most]


def _formats(model: Model) -> list[str]:
    experts = model.parts is not None and model.parts.experts > 0
    return [name for name, known in FORMATS.items() if experts or not known.experts_only]


def _judge(
    model: Model,
    quantization: str | None,
    kv_dtype: str,
    weights: Interval | None,
    loaded: Interval | None,
    kv_per_token: Interval | None,
    per_token: float | None,
) -> Candidate | None:
    """The candidate if it agrees in some respect: `loaded` and `per_token` are its own figures, beside those to explain."""
    weights_off = kv_off = None
    if weights is not None:
        if loaded is None:
            return None
        weights_off = _distance(loaded, weights)
    if kv_per_token is not None and per_token:
        kv_off = _distance(Interval(per_token, per_token), kv_per_token)
    fits: list[str] = []
    misfits: list[str] = []
    if (weights_off is None or weights_off > WEIGHTS_TOLERANCE) and (kv_off is None or kv_off > KV_TOLERANCE):
        return None
    if loaded is not None and weights_off is not None:
        (fits if weights_off <= WEIGHTS_TOLERANCE else misfits).append(
            f"weights {show_bytes(loaded.middle)} per rank, {weights_off:.1%} off"
        )
    if per_token and kv_off is not None:
        (fits if kv_off <= KV_TOLERANCE else misfits).append(
            f"KV {per_token:,.0f} bytes per token ({kv_dtype}), {kv_off:.2%} off"
        )
    return Candidate(model, quantization, kv_dtype, weights_off, kv_off, tuple(fits), tuple(misfits))


def _distance(expected: Interval, seen: Interval) -> float:
    if expected.overlaps(seen):
        return 0.0
    gap = expected.lo - seen.hi if expected.lo > seen.hi else seen.lo - expected.hi
    return abs(gap) / max(abs(seen.middle), 1.0)


def _order(candidate: Candidate) -> tuple[int, int, float, float, bool, str, str]:
    return (
        len(candidate.misfits),
        -len(candidate.fits),
        candidate.kv_off or 0.0,
        round(candidate.weights_off or 0.0, 4),
        candidate.quantization not in (None, "none") or candidate.kv_cache_dtype != "auto",
        candidate.model.name,
        candidate.quantization or "",
    )
