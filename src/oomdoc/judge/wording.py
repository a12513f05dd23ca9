"""What the bundle talks about, as one weak witness beside the signs: a factor for each cause, learnt from labelled bundles.

Signs compute from what was understood. What nobody wrote a reader for still says something: people and tools use other words
for a probe that fires than for a card that others fill. `wording.json` holds a multinomial logistic regression on which words of a
vocabulary stand in a bundle, learnt from the labelled rounds (`make wording`, docs/method.md). Its log-odds against how common a cause is
among those rounds are added to the weights of the signs, held to `MOST`: words move a near decision; of
588 first runs in which words were heard none was told at 0.9 or more where no sign of the leading cause held.
"""

from __future__ import annotations

import functools
import heapq
import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ID = "wording"
"""The evidence id under which a report shows the factor."""
MOST = 2.0
"""Log-odds that words add or take at most, a factor of 7.4. Of 1.5 to 3, on 658 bundles that no word was learnt from, 2.5 and 3 rank three and six more
right than 2, and make two and four more of the wrong ones sure (docs/method.md)."""
FEWEST = 12
"""Known words below which a bundle says too little: judged; a line or two have no subject, and one labelled bundle in fifty has fewer than 18."""
NOTES = "notes"
"""The kind of a source that people wrote: what they say is a word of its own beside what a program prints."""
SAID = "said:"
"""Before a word that a person says."""
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
    """A multinomial logistic regression on the presence of words.

    `bias` and `usual` (the log-share among the labelled bundles) by cause, in the order of `causes`; `words` gives of each word its
    weights in that order, in hundredths of log-odds.
    """

    bundles: int
    causes: Sequence[str]
    bias: Sequence[float]
    usual: Sequence[float]
    words: Mapping[str, Sequence[int]]

    def weigh(self, said: Collection[str]) -> dict[str, Wording]:
        """By cause what these words say; empty where too few are known."""
        known = sorted(word for word in said if word in self.words)
        if len(known) < FEWEST:
            return {}
        parts = [self.words[word] for word in known]
        scores = [bias + sum(part) / _SCALE for bias, part in zip(self.bias, zip(*parts, strict=True), strict=True)]
        top = max(scores)
        whole = top + math.log(sum(math.exp(score - top) for score in scores))
        return {
            cause: self._wording(scores[at] - whole - self.usual[at], at, known) for at, cause in enumerate(self.causes)
        }

    def _wording(self, odds: float, at: int, known: Sequence[str]) -> Wording:
        sign = 1 if odds > 0 else -1
        first = heapq.nsmallest(SHOWN, known, key=lambda word: (-sign * self.words[word][at], word))
        shown = dict.fromkeys(word.removeprefix(SAID) for word in first if sign * self.words[word][at] > 0)
        return Wording(max(-MOST, min(MOST, odds)), tuple(shown))


@functools.cache
def shipped() -> Model:
    """The model that came with the program."""
    told = json.loads(Path(__file__).with_name("wording.json").read_text(encoding="utf-8"))
    return Model(
        told["bundles"],
        told["causes"],
        told["bias"],
        told["usual"],
        {word: weights for word, *weights in told["words"]},
    )


@functools.cache
def vocabulary() -> frozenset[str]:
    """The words that the shipped model knows, whoever says them."""
    return frozenset(word.removeprefix(SAID) for word in shipped().words)


def heard(kind: str, words: Iterable[str]) -> set[str]:
    """The words of one source as the model knows them: what a person says stands beside the word itself.

    >>> sorted(heard("notes", ["probe"])), sorted(heard("vllm-log", ["probe"]))
    (['probe', 'said:probe'], ['probe'])
    """
    told = set(words)
    return told | {SAID + word for word in told} if kind == NOTES else told
