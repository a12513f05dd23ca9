"""What free text is asked for: topics, as data. Each is a few shapes of words, with what speaks against them.

Texts are read by words of the field, with an eye on negation ("no LoRA", "does not grow"). The shapes stand in `vocabulary/topics.toml`.
Words alone match anything: each topic has samples and near misses, sentences that nearly say it, in `topics.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from oomdoc.ingest.prose_words import COUNT, FAILS, NUMBERS, SIZE, WORKS
from oomdoc.ingest.vocabulary.quantity import read
from oomdoc.regexes import regex
from oomdoc.units import GIB, parse_size


@dataclass(frozen=True)
class Topic:
    """A topic of free text: what says it (`shape`), and what in the clause speaks against it (`unless`).

    `deniable`: whether a "no" before the words, or an "off" behind them, takes them back.
    """

    name: str
    says: str
    shape: re.Pattern[str]
    unless: re.Pattern[str] | None = None
    deniable: bool = True


_WORD = regex(r"\{([A-Z]{3,})\}")
_GIVEN = read("topics")
_WORDS = {"WORKS": WORKS, "FAILS": FAILS, "SIZE": SIZE, "COUNT": COUNT, **_GIVEN["words"]}


def _shape(text: str) -> re.Pattern[str]:
    """A shape with the words that stand in braces in it."""
    return regex(_WORD.sub(lambda word: _WORDS[word[1]], text), re.I)


TOPICS = tuple(
    Topic(name, told["says"], _shape("|".join(told["shapes"])), _shape(told["unless"]) if "unless" in told else None, told.get("deniable", True))
    for name, told in _GIVEN.items() if name != "words"
)  # fmt: skip
"""Every topic that free text is searched for."""

_DENIED = regex(
    r"(?:\b(?:no|not|without|never|neither|nor|non|excluding|except|disabled?|free of|instead of)|n't)"
    r"\W+(?:\w+\W+){0,2}$|\b(?:nothing|nobody|none(?: of \w+)?) (?:(?:has|have|had|ever|else|yet) ){0,2}$",
    re.I,
)
_OFF = regex(
    r"\W{0,4}?(?:is |are |was |were )?\W{0,4}?"
    r"(?:no\b(?! matter)|none\b|off\b|disabled|false|not\b|n/a|null|unused|(?<=> |→ )nothing\b(?=\s*(?:$|[;.,)]))|[:=]\s?0\b(?!\.))",
    re.I,
)
_ASKED = regex(
    r"(?:^|[.!?;:]\s|\bor\s(?=did\b|does\b|has\b|was\b|is\b))\W*(?:(?:and|so|but|or|now|then)\W+)?(?:is|are|was|were|does|do|did|has|have|can|could|should|would|will|might|may)\b(?!n't)[^.!?;]*$",
    re.I,
)
"""A question that yes or no answers, up to the words at hand: who asks whether something grows has not seen it."""
_INVERTED = regex(
    r"(?:^|[,.!?;:(]\s|\b(?:and|or|so|but)\s)\W*(?:is|are|was|were|does|do|did|has|have)\s(?:it|this|that|there|these|those|they|we|i)\b[^,.!?;]{0,40}$",
    re.I,
)
"""The same by the order of its words: its question mark may stand in the next line of the paragraph, or nowhere."""
_FEARED = regex(
    r"(?<!why )(?<!how )\b(?:will|would|might|could(?! not)|may(?! \d)|(?:is|are|be) going to|afraid|worr(?:y|ied)|fear(?:s|ed)?|whether|(?<!not )(?<!n't )(?<!never )expect|risk(?:s|ing)?|avoid(?:s|ing)?|prevent(?:s|ing)?|(?:when|how soon|at what point) (?:do|does)"
    r"|befürchten?|fürchten?|angst|crain(?:s|dre|t)|peur|miedo|tem(?:o|emos)|medo|receio|боюсь|боимся|опаса(?:юсь|емся))\b[^.!?;]{0,40}$"
    r"|(?:担心|擔心|担忧|害怕|生怕|恐怕|可能会|迟早会|会不会|心配|恐れ|걱정)[^。！？；.!?;]{0,20}$",
    re.I,
)
"""What may come, and has not."""
_EVERY = regex(r"\b(?:every|each|always|whenever)\b", re.I)  # what will happen every evening does
_HAPPENED = ("failure-told", "grows", "long-prompt")
_TO_ITS_END = regex(r"[^.!?;]*\?")
_STEP = regex(rf"(?:\+|\bby |\babout )\s?({SIZE})\s?(?:per|every|each|an?|/)\s?\w", re.I)
_MULTIPLE = regex(r"(?P<number>\d[\d,.]*)\s?(?P<k>k?)", re.I)


_FEATURES = ("prompt-logprobs", "lora", "draft-model", "multimodal")
_OFF_CURES = next(topic.shape for topic in TOPICS if topic.name == "off-cures")


def topics_of(text: str, begun: str = "") -> Iterator[tuple[str, float | None]]:
    """Topics of one line or sentence with their numbers: tokens, bytes, counts, shares, as each topic says.

    `begun` is what of the sentence stands in the line before: it denies and asks as well, and its own topics are told there.

    >>> list(topics_of("Fails with a 16k token prompt; --enforce-eager starts fine; no LoRA."))
    [('long-prompt', 16000.0), ('eager-cures', None)]
    >>> list(topics_of("OOM and no restart", begun="it ran for a day without")), list(topics_of("OOM and no restart"))
    ([], [('failure-told', None)])
    """
    start = len(begun) + 1 if begun else 0
    text = f"{begun} {text}" if begun else text
    for topic in TOPICS:
        for match in topic.shape.finditer(text, start):
            end = text.find(";", match.end())
            clause = text[text.rfind(";", 0, match.start()) + 1 : end if end >= 0 else len(text)]
            if topic.unless and topic.unless.search(clause):
                continue
            denied = _DENIED.search(text[: match.start()][-40:]) or _OFF.match(text[match.end() :])
            # what is off where it works was on where it failed
            if topic.deniable and denied and not (topic.name in _FEATURES and _OFF_CURES.search(clause)):
                continue
            before = text[: match.start()]
            if topic.deniable and _ASKED.search(before[-200:]) and _TO_ITS_END.match(text[match.end() :]):
                continue
            # up to the first word of the match, or to its last one, which may be what is asked for
            if topic.name in _HAPPENED and any(
                _INVERTED.search(upto[-80:]) for upto in (before, before + match[0].rstrip().rpartition(" ")[0] + " ")
            ):
                continue
            if topic.name in _HAPPENED and _FEARED.search(before[-60:]) and not _EVERY.search(clause):
                continue
            caught = match.groupdict()
            if caught.get("few") and int(caught["many"] or caught["many2"]) <= int(caught["few"]):
                continue
            value = _number(topic.name, match)
            if topic.name == "long-prompt" and value is not None and value < 4000:
                continue
            yield topic.name, value
            break


def _number(topic: str, match: re.Match[str]) -> float | None:
    """The number that a topic's shape caught."""
    caught = next(filter(None, match.groupdict().values()), None)
    if caught is None and topic == "grows" and (step := _STEP.search(match.string, match.start())):
        caught = step[1]
    if caught is None:
        return None
    if topic in ("grows", "shm"):
        return parse_size(caught)
    if topic == "spilled":
        return float(caught.replace(",", ".")) * GIB
    if caught.lower() in NUMBERS:
        return float(NUMBERS[caught.lower()])
    multiple = _MULTIPLE.fullmatch(caught.strip())
    if not multiple:
        return None
    try:
        return float(multiple["number"].rstrip(".,").replace(",", "")) * (1000 if multiple["k"] else 1)
    except ValueError:
        return None
