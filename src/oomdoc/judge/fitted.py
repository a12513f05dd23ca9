"""Weights of signs fitted all at once: what first runs make of signs that overlap.

Counted one by one, two signs that hold together say the same thing twice. `fitted.json` holds what each sign weighs, so that together
they tell best which cause 2,500 bundles had that nobody had read (`make weights`, docs/method.md): a multinomial regression in which each
weight is pulled towards the counted one and none changes sides. Rules that are not shipped keep what they say themselves.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SHARPNESS = 0.85  # of the share among rivals with these weights: on 644 first runs that the fit had not seen the stated probability is off by 0.045 (docs/method.md)


@dataclass(frozen=True)
class Fitted:
    """By cause and sign the log-odds that it adds where it holds, and where it does not.

    None: fewer than five first runs answered so, and the counted weight stands.
    """

    bundles: int
    weights: Mapping[str, Mapping[str, tuple[float | None, float | None]]]

    def weight(self, cause: str, sign: str, holds: bool, counted: float) -> float:
        """What an answer adds to the log-odds of a cause."""
        told = self.weights.get(cause, {}).get(sign, (None, None))[0 if holds else 1]
        return counted if told is None else told


@functools.cache
def shipped() -> Fitted:
    """The weights that came with the program."""
    told = json.loads(Path(__file__).with_name("fitted.json").read_text(encoding="utf-8"))
    weights = {
        cause: {sign: (each[0], each[1]) for sign, each in signs.items()} for cause, signs in told["weights"].items()
    }
    return Fitted(told["bundles"], weights)
