"""What a serving benchmark sums up, as vLLM's and SGLang's `bench serve` print it and write it as JSON: answered, failed, first token.

    Successful requests:                     960
    {"completed": 960, "num_prompts": 1000, "mean_ttft_ms": 391.5, ...}

Each is a row of `metric` under a name of its own (`bench:completed`, `bench:failed`, `bench:mean_ttft_ms`): a client's count, and no
counter of the server's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from oomdoc.ingest.base import Pattern
from oomdoc.regexes import regex


def sums(value: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Name and figure of each sum in a benchmark's JSON; what neither answers nor fails of the prompts counts as failed.

    >>> list(sums({"completed": 960, "num_prompts": 1000}))
    [('bench:completed', 960.0), ('bench:failed', 40.0)]
    """
    done, asked, failed = (value.get(name) for name in ("completed", "num_prompts", "failed"))
    if not isinstance(failed, int) and isinstance(asked, int) and isinstance(done, int):
        failed = max(0, asked - done)
    for name, figure in (("completed", done), ("failed", failed), ("mean_ttft_ms", value.get("mean_ttft_ms"))):
        if isinstance(figure, (int, float)) and not isinstance(figure, bool):
            yield f"bench:{name}", float(figure)


def _printed(name: str, words: str) -> Pattern:
    return Pattern(
        f"bench-{name}", "benchmark", (words,), regex(rf"\b{words}: +(?P<value>\d{{1,9}})\b"), "metric",
        ((f"{words}:                      960", {"name": f"bench:{name}", "value": 960.0}),),
        convert=lambda row, match: {"name": f"bench:{name}", "labels": None, "value": float(match["value"])},
    )  # fmt: skip


_ALL = Pattern(
    "bench-all", "benchmark", ("errors", "failed", "failures"),
    regex(r"(?i)\b(?:finished|completed|done|succeeded|answered|ok)\b[ :=]{1,3}(?P<value>\d{1,9}) ?(?:/|of) ?(?P=value)\b[^\n]{0,60}?\b(?:errors?|failed|failures)[ :=]{1,3}0\b"),
    "metric",
    (("finished 24576/24576  errors 0  retries 0  wall 42m58s", {"name": "bench:completed", "value": 24576.0}),),
    convert=lambda row, match: {"name": "bench:completed", "labels": None, "value": float(match["value"])},
)  # fmt: skip
"""What a client's harness says in one line when all was answered; part of it would be a job that is still going on."""

PATTERNS: tuple[Pattern, ...] = (_printed("completed", "Successful requests"), _printed("failed", "Failed requests"), _ALL)  # fmt: skip
"""Sums as they are printed."""
