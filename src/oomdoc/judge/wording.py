"""What the bundle talks about, as one weak witness beside the signs: a factor for each cause, learnt from labelled bundles.

Signs compute from what was understood. What nobody wrote a reader for still says something: people and tools use other words
for a probe that fires than for a card that others fill. `wording.json` holds a multinomial logistic regression on which words of a
vocabulary stand in a bundle, learnt from the labelled rounds (`make wording`, docs/method.md). Its log-odds against how common a cause is
among those rounds are added to the weights of the signs, held to `MOST`: words move a near decision and never make one by themselves.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ID = "wording"
"""The evidence id under which a report shows the factor."""
MOST = 2.5
"""Log-odds that words add or take at most, a factor of 12: with 2 to 3 first runs, left out by rounds, are ranked alike (docs/method.md)."""
FEWEST = 12
"""Known words below which a bundle says too little: a line or two have no subject."""
SHOWN = 3
"""Words that a report names."""
_SCALE = 100.0
"""Weights are written in hundredths."""


@dataclass(frozen=True)
class Wording:
    """What the words of a bundle say of one cause: log-odds `weight`, and the words that count most for (or against) it."""

    weight: float
    words: tuple[str, ...]


@dataclass(frozen=True)
class Model:
    """A multinomial logistic regression on the presence of words, scaled to one length whatever their number.

    `bias` and `usual` (the log-share among the labelled bundles) by cause, in the order of `causes`; `words` gives of each word how
    rare it is (inverse document frequency) and its weights in that order. `floor` is the least length.
    """

    bundles: int
    causes: Sequence[str]
    bias: Sequence[float]
    usual: Sequence[float]
    floor: float
    words: Mapping[str, tuple[float, Sequence[int]]]

    def weigh(self, said: Collection[str]) -> dict[str, Wording]:
        """By cause what these words say; empty where too few are known."""
        known = sorted(word for word in said if word in self.words)
        if len(known) < FEWEST:
            return {}
        length = max(self.floor, math.sqrt(sum(self.words[word][0] ** 2 for word in known)))
        parts = {word: [self.words[word][0] * each / _SCALE / length for each in self.words[word][1]] for word in known}
        scores = [bias + sum(part[at] for part in parts.values()) for at, bias in enumerate(self.bias)]
        top = max(scores)
        whole = top + math.log(sum(math.exp(score - top) for score in scores))
        told = {}
        for at, cause in enumerate(self.causes):
            odds = scores[at] - whole - self.usual[at]
            sign = 1 if odds > 0 else -1
            first = sorted(known, key=lambda word: (-sign * parts[word][at], word))[:SHOWN]
            told[cause] = Wording(
                max(-MOST, min(MOST, odds)), tuple(word for word in first if sign * parts[word][at] > 0)
            )
        return told


@functools.cache
def shipped() -> Model:
    """The model that came with the program."""
    told = json.loads(Path(__file__).with_name("wording.json").read_text(encoding="utf-8"))
    return Model(
        told["bundles"],
        told["causes"],
        told["bias"],
        told["usual"],
        told["floor"],
        {word: (rare, weights) for word, rare, *weights in told["words"]},
    )


def vocabulary() -> frozenset[str]:
    """The words that the shipped model knows."""
    return frozenset(shipped().words)
