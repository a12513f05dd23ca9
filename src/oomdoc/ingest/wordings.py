"""Wordings that announce a known fact and that no pattern reads: a new release, a fork, a vendor's image.

Such a line is told as a `problem`, since evidence that is silently lost looks like evidence that was never there. It is no
evidence itself. Only records of the engine and exceptions count, and only where a figure or a failure is told: advice, help
texts and quoted prompts hold the same words.
"""

from __future__ import annotations

from collections.abc import Sequence

from oomdoc.ingest import torch_oom
from oomdoc.ingest.base import Pattern, phrases
from oomdoc.ingest.record import Record
from oomdoc.regexes import regex

REASON = "a known message in a wording that is new"
ANCHORS = phrases(
    "ut of memory|for KV cache|KV cache size|KV cache pool|KV cache block|KV cache memory:|Model loading took"
)
"""Literals that announce memory whatever stands around them; those of the patterns below do so as well."""
MOST = 100  # told of one source: a log in a foreign wording would repeat itself by the thousand

_TELLING = ("engine_figure", "startup_check", "engine_stat")  # tables whose lines carry figures that rules ask for
_LEAST_LETTERS = 11  # a shorter anchor stands in too many other lines
_FIGURE = regex(r"\d ?(?:[KMGT]i?B|bytes|tokens?|blocks?)\b")
_FAILURE = regex(r"\b[Oo]ut of memory\b")
_EXCEPTION = regex(r"^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception)\b")
_MEMORY_TABLES = ("oom", "startup_check", "host_event", "preemption")


def anchors_of(patterns: Sequence[Pattern]) -> frozenset[str]:
    """The anchors whose hit announces a figure or a failure."""
    own = {anchor for pattern in patterns if pattern.dialect == "vllm" and pattern.table in _TELLING for anchor in pattern.anchors if len(anchor) >= _LEAST_LETTERS}  # fmt: skip
    return frozenset({*ANCHORS, *own})


def is_new(record: Record, text: str, patterns: Sequence[Pattern]) -> bool:
    """Whether a line with such an anchor, which its own patterns did not take, is read by no pattern at all."""
    if _FAILURE.search(text):
        if record.level not in ("ERROR", "CRITICAL") and not _EXCEPTION.match(text):
            return False
        return not torch_oom.read_oom(text) and not any(_tells_memory(pattern, text) for pattern in patterns)
    if not record.headed or record.level == "DEBUG" or not _FIGURE.search(text):
        return False
    return not any(pattern.regex.search(text) for pattern in patterns)


def _tells_memory(pattern: Pattern, text: str) -> bool:
    if pattern.table in _MEMORY_TABLES:
        return pattern.regex.search(text) is not None
    return pattern.table == "log_error" and any(
        row.get("kind") in ("memory", "host-memory", "shm") for row in pattern.rows(text)
    )
