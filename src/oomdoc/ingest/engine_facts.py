"""Engine settings that a sentence states as given: "vllm: 0.9.2", "TP=8 and max_num_seqs=64"; what somebody tried is none."""

from __future__ import annotations

import re
from collections.abc import Iterator

from oomdoc.ingest import launch
from oomdoc.ingest.prose_words import FAILS, WORKS
from oomdoc.regexes import regex

_VERSION = regex(
    r"(?:^|[,;(]\s*|\bversion[:=]?\s*)vllm(?:[ _-]?version)?\s*(?:[:=]{1,2}|\s)\s*v?"
    r"(?P<version>\d+\.\d+(?:\.\w+)*[\w.+-]*)",
    re.I,
)
_MODEL = regex(
    r"^(?:base |served )?models?(?:[ _-]?(?:name|id|path))?\s*[:=]\s*(?P<model>[\w.-]+(?:/[\w.-]+)*)\s*(?:$|[,;(])",
    re.I,
)
_PARALLEL = regex(r"(?<![\w-])(?P<kind>TP|PP|DP)\s?(?:=|:|size)?\s?(?P<size>\d{1,3})\b")
_PAIR = regex(r"(?<![\w-])(?P<flag>[a-z][a-z_]{4,})\s?[=:]\s?(?P<value>-?[\w.]+)")
_OPTIONS = regex(
    r"^(?:command|args|arguments|flags|options|started with|launched with|run with|engine args)\b\s*:?\s*(?P<rest>.*)",
    re.I,
)
_TRIED = regex(rf"{WORKS}|{FAILS}|\b(?:instead|raised|lowered|tried|trying|if|would|should|could|helps?)\b", re.I)
_NAMED = regex(
    r"(?<!-)\b(?P<flag>gpu[-_ ]memory[-_ ]utili[sz]ation|max[-_]model[-_]len|max[-_]num[-_]seqs|max[-_]num[-_]batched[-_]tokens)"
    r" (?:of |is |at |was )?(?P<value>0?\.\d+|\d{1,7})(?![\w.]*\w)",
    re.I,
)
_PARALLEL_FLAGS = {"TP": "tensor_parallel_size", "PP": "pipeline_parallel_size", "DP": "data_parallel_size"}


def facts(text: str) -> Iterator[tuple[str, str]]:
    """Engine settings that a line states as given; what somebody tried or proposes is none."""
    tried = bool(_TRIED.search(text))
    version = _VERSION.search(text)
    if version and not tried:
        yield "version", version["version"].rstrip(".,;-")
    model = _MODEL.match(text)
    if model and (not model["model"].islower() or "/" in model["model"] or re.search(r"\d", model["model"])):
        yield "model", model["model"]
    if tried:
        return
    sizes = {(found["kind"], found["size"]) for found in _PARALLEL.finditer(text)}
    for kind, size in sorted(sizes):
        if sum(kind == other for other, _ in sizes) == 1:  # a line that compares several states none
            yield _PARALLEL_FLAGS[kind], size
    named = {
        (found["flag"].lower().replace("-", "_").replace(" ", "_"), found["value"]) for found in _NAMED.finditer(text)
    }
    for flag, value in sorted(named):
        if sum(flag == other for other, _ in named) == 1:
            yield flag.replace("utilisation", "utilization"), value
    options = _OPTIONS.match(text)
    if options or text.startswith(("--", "vllm serve")):
        yield from launch.flags_of(options["rest"] if options else text)
        return
    for pair in _PAIR.finditer(text):
        if pair["flag"] in launch.ENGINE_FLAGS:
            yield pair["flag"], pair["value"].rstrip(".")
