"""What a serving benchmark sums up, as vLLM's and SGLang's `bench serve` print it and write it as JSON: answered, failed, first token.

    Successful requests:                     960
    {"completed": 960, "num_prompts": 1000, "mean_ttft_ms": 391.5, ...}

Each is a row of `metric` under a name of its own (`bench:completed`, `bench:failed`, `bench:mean_ttft_ms`): a client's count, and no
counter of the server's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from oomdoc.ingest.base import Pattern
from oomdoc.ingest.forms import grammar
from oomdoc.ingest.forms.cells import number_or_none
from oomdoc.ingest.vocabulary.words import TIME_UNITS, word_set
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


_STATISTIC = regex(
    r"(?i)(?:avg|average|mean|median|min(?:imum)?|max(?:imum)?|p\d\d(?:\.?\d{1,2})?|std(?:dev|_dev)?|count|unit)"
)
_MEAN = regex(r"(?:results_)?(?P<name>\w+)_(?:mean|avg)")
_MIDDLE = ("avg", "mean", "average", "median", "p50")
_NO_LENGTH = word_set("throughput rate per second s mismatch error diff std goodput")


def of_statistics(records: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """What a sheet says of a run that has a row for each figure and a column for each statistic of it, as columns of `load_run`.

    >>> of_statistics([{"Metric": "Time To First Token (ms)", "avg": "1,820.4", "p99": "5120"}, {"Metric": "Input Sequence Length", "avg": 4096, "p99": 4096}])
    {'ttft_s': 1.8204, 'prompt_tokens': 4096.0}
    >>> of_statistics([{"request_latency.unit": "ms", "request_latency.avg": 900, "request_latency.p99": 1400}])
    {'latency_s': 0.9}
    """
    given, flat = records[0] if len(records) == 1 else {}, list[dict[str, Any]]()
    if given:  # as JSON: objects of statistics, each under the name of its figure
        parts = [(name.rpartition("."), value) for name, value in given.items() if "." in name]
        rows: dict[str, dict[str, Any]] = {}
        for (above, _, last), value in parts:
            rows.setdefault(above, {"": above})[last] = value
        flat = [{"": named["name"], "mean": value} for name, value in given.items() if (named := _MEAN.fullmatch(name))]  # fmt: skip
        objects = [row for row in rows.values() if sum(map(bool, map(_STATISTIC.fullmatch, row))) > 2]
        records, flat = objects or flat, [] if objects else flat
    names = [*dict.fromkeys(name for record in records for name in record)]
    middle = next((name for name in names if name.lower() in _MIDDLE), None)
    if middle is None or sum(map(bool, map(_STATISTIC.fullmatch, names[1:]))) < (1 if flat else 2):
        return {}
    at_once = {value for name, value in given.items() if {"concurrent", "concurrency"} & {*grammar.pieces(name)} and isinstance(value, int)}  # fmt: skip
    found: dict[str, float] = {"clients": float(at_once.pop())} if len(at_once) == 1 else {}
    for record in records:
        name = f"{record.get(names[0])} {next((record[each] for each in names if each.lower() == 'unit' and each in record), '')}"
        value = number_or_none(record.get(middle))
        quantity, unit = grammar.service(name)
        among = {*grammar.pieces(name)}
        side = "prompt_tokens" if among & {"input", "prompt"} else "output_tokens" if among & {"output", "osl"} else ""
        if value is None:
            continue
        if quantity:
            found.setdefault(quantity, round(value * TIME_UNITS[unit], 9))
        elif side and among & {"sequence", "length", "tokens", "token"} and not among & _NO_LENGTH:
            found.setdefault(side, value)
    return found if len(found) > bool(flat) and found.keys() & {"ttft_s", "tpot_s", "latency_s"} else {}


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
