"""What was tried and what became of it: a setting and an outcome in one line of a person's text.

    --max-num-seqs 32 --enforce-eager   -> starts            same command with swap_space: 4 comes up and serves
    with gpu_memory_utilization 0.8 it still dies            TP=2 works, TP=1 OOM

A control like that is stronger than most signs: it changes one thing and sees the outcome. A line counts only if it names a
setting of the engine *and* an outcome; a log's own lines name outcomes with a level and a file before them and are no trials.
"""

from __future__ import annotations

import re
from typing import Any

from oomdoc.ingest.base import TEXT_CAP, Pattern, regex

Row = dict[str, Any]

FLAGS: dict[str, str] = {
    "max[-_]num[-_]seqs": "max_num_seqs",
    "max[-_]num[-_]batched[-_]tokens": "max_num_batched_tokens",
    "max[-_]model[-_]len(?:gth)?": "max_model_len",
    "gpu[-_]memory[-_]utili[sz]ation": "gpu_memory_utilization",
    "enforce[-_]eager|eager mode": "enforce_eager",
    "tensor[-_]parallel[-_]size|(?<![A-Za-z])TP(?= ?=? ?\\d)": "tensor_parallel_size",
    "limit[-_]mm[-_]per[-_]prompt": "limit_mm_per_prompt",
    "swap[-_]space": "swap_space",
    "cpu[-_]offload[-_]gb": "cpu_offload_gb",
    "max_local_cpu_size": "max_local_cpu_size",
    "shm[-_]size|--ipc[ =]host|/dev/shm": "shm_size",
}
"""How people write a setting, and its name."""

_SETTING = regex(
    "(?:--)?(?:"
    + "|".join(f"(?P<f{place}>{shape})" for place, shape in enumerate(FLAGS))
    + r")[\"'`]?(?:\s*(?:=|:|to|at|of|is)?\s*)(?P<value>\d[\d.,]*\s?[kKMGT]?(?:i?B)?\b|[Tt]rue|[Ff]alse)?"
)
_GOOD = regex(
    r"(?i)(?<!not )\b(?:works?|worked|starts?(?: fine| up)?$|starts\b|started fine|comes? up|came up|serves|fine|ok|passes|succeeds|"
    r"fix(?:es|ed) it|cures?|solve[sd]|no (?:oom|crash|error)s?|loads\b|runs (?:fine|ok|well))\b"
)
_BAD = regex(
    r"(?i)\b(?:oom\b|out of memory|crash\w*|dies|died|fails?|failed|killed|hangs?|does not (?:start|work|help)|doesn't|no (?:change|difference))"
)
_OUTCOME = r"(?i:\b(?:works?|worked|starts?|started|comes? up|came up|serves|fine|ok|passes|succeeds|fix|cures?|solve|no (?:oom|crash|error)|loads|runs|oom|out of memory|crash|dies|died|fail|killed|hangs?|does(?:n't| not)|no (?:change|difference)))"
_NO_TRIAL = regex(
    r"(?i)\b(?:try|consider|please|should|could|would|you can|increase|decrease|reduce|lower|if|or)\b|\b(?:INFO|WARNING|ERROR|DEBUG)\b|^\s*(?:#|//|\*|usage:)|\?\s*$"
)


def _trial(row: Row, match: re.Match[str]) -> Row | None:
    """A trial; None where the line names no outcome, or gives advice."""
    text = match.string.strip()
    if len(text) > 300 or _NO_TRIAL.search(text):
        return None
    found = _SETTING.search(text)
    if not found:
        return None
    flag = next(name for place, name in enumerate(FLAGS.values()) if found[f"f{place}"])
    after = text[found.end() :]
    good, bad = _GOOD.search(after), _BAD.search(after)
    if not good and not bad:
        return None
    works = good is not None and (bad is None or good.start() < bad.start())
    value = (found["value"] or "").strip() or ("true" if flag == "enforce_eager" else None)
    return {"flag": flag, "value": value, "works": works, "text": text[:TEXT_CAP]}


PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "trial",
        "prose",
        (
            "num-seqs", "num_seqs", "batched-tokens", "batched_tokens", "max-model-len", "max_model_len", "memory-utilization", "memory_utilization",
            "enforce-eager", "enforce_eager", "eager mode", "tensor-parallel-size", "tensor_parallel_size", "limit-mm-per", "limit_mm_per",
            "swap-space", "swap_space", "cpu-offload-gb", "cpu_offload_gb", "max_local_cpu_size", "shm-size", "shm_size", "ipc=host", "ipc host",
        ),
        regex(rf"^(?P<text>.{{0,200}}?(?:{'|'.join(FLAGS)}).{{0,160}}?{_OUTCOME}.{{0,160}})$"),
        "trial",
        (
            ("the first one + --max-num-seqs 16 --enforce-eager        -> starts", {"flag": "max_num_seqs", "value": "16", "works": True}),
            ("the same with swap_space: 2 comes up and serves", {"flag": "swap_space", "value": "2", "works": True}),
            ("--gpu-memory-utilization 0.85: still out of memory", {"flag": "gpu_memory_utilization", "value": "0.85", "works": False}),
        ),
        convert=_trial,
    ),
)  # fmt: skip
"""Trials in a person's text."""
