"""Memory of processes over time, as people put it in words; a table of it is read by its form (`forms`).

EngineCore, RSS idle: 3.50 GB         about 25.0 GiB still in use after sleep
EngineCore, RSS after round 5: 18.08 GB
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from oomdoc.ingest.prose_words import SIZE
from oomdoc.regexes import regex
from oomdoc.units import parse_size

MEASURED = regex(
    r"\b(?:(?P<gpu>nvidia[-_ ]smi|gpu[- ]memory|vram|device memory|gpu)|"
    r"(?P<host>rss|resident(?: set| memory)?(?: size)?|host memory|ram|vmrss|pss))\b"
    r"(?: (?:used|usage|in use|process(?:es)?|of the \w+))*"
    r"|\b(?P<any>memory(?: used| usage| in use)?|mem)\b",
    re.I,
)
_POINT = regex(
    rf"^(?P<label>[^:=]{{2,160}}?)\s{{0,20}}(?:[:=]|\s(?:is|was)\s|\t|\s{{2,20}})\s{{0,20}}(?P<size>{SIZE})\s{{0,20}}(?:[,;(].*)?\.?$"
)
_KEPT = regex(
    rf"^(?:(?P<label>[^:=]{{2,80}}?)\s{{0,20}}[:=,]\s{{0,20}})?(?:about |around |roughly |~ ?|ca\.? )?(?P<size>{SIZE})(?: of (?:memory|vram|ram))?(?: (?:is|are|was|were))?(?: still)? "
    r"(?:in use|held|kept|left|allocated|occupied|resident|used|remain(?:s|ing)?)(?: on the (?:gpu|device|card))? (?P<state>(?:after|while|during|when|once) [^,;.:=]{2,40})\.?$",
    re.I,
)
_STATE = regex(
    r"\b(?:after|before|idle|asleep|sleep(?:ing)?|awake|round|start(?:ed|up)?|boot|hours?|days?|min(?:ute)?s?|wake|"
    r"load(?:ed|ing)?|step|cycle|iteration|epoch|requests?|at rest|baseline|begin(?:ning)?|end|peak|t ?=|during|"
    r"initial|final|warm-?up|\d+ ?[hdms])\b",
    re.I,
)
_CAPACITY = regex(
    r"\b(?:total|limit|capacity|all cards|per card|available|required|needed|weights?|model size|disk|swap|budget|free|"
    r"kv cache|reserved|request|installed)\b",
    re.I,
)


def whose(measured: re.Match[str]) -> str | None:
    """Whose memory a text names: `gpu`, `host`; None where it does not say."""
    return "gpu" if measured["gpu"] else "host" if measured["host"] else None


def point(text: str, subject: str | None) -> dict[str, Any] | None:
    """A sample of a process's memory in words: who, in what state, how much.

    "step 3: about 25.0 GiB still in use after sleep" is one: the state stands behind the size, the label is its place.
    """
    kept = _KEPT.match(text)
    if kept and not _CAPACITY.search(text):
        asleep = re.search(r"\bsleep|\basleep", kept["state"], re.I)
        return {"name": None, "state": kept["state"], "resource": subject or ("gpu" if asleep else None), "bytes": parse_size(kept["size"])}  # fmt: skip
    match = _POINT.match(text)
    if not match or "+" in match["label"][-2:]:
        return None
    label = match["label"].strip(" ,-*")
    measured = MEASURED.search(label)
    if _CAPACITY.search(label) or (measured is None and subject is None):
        return None
    resource = subject
    before, after = label, ""
    if measured:
        resource = whose(measured) or subject
        before, after = label[: measured.start()].strip(" ,(-"), label[measured.end() :].strip(" ,-:")
    state, name = after or None, before or None
    if state is None and before and _STATE.search(before):
        state, name = before, None
    elif measured is None:
        state, name = label, None
    if state is None or not _STATE.search(state):
        return None
    return {"name": name, "state": state, "resource": resource, "bytes": parse_size(match["size"])}


_TWICE = regex(
    rf"(?P<size>{SIZE}) (?P<state>(?:idle|at|after|before|when|while|asleep|on|in)\b[^,;.]{{0,60}}|\w+ at idle)", re.I
)


def points(text: str) -> Iterator[dict[str, Any]]:
    """Several samples in one sentence: "3.1 GB idle, 7.9 GB after a day"."""
    found = list(_TWICE.finditer(text))
    measured = MEASURED.search(text)
    if len(found) < 2 or not measured or _CAPACITY.search(text):
        return
    for match in found:
        yield {"state": match["state"].strip(), "resource": whose(measured), "bytes": parse_size(match["size"])}
