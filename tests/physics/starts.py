"""Published starts of real servers (`starts.toml`) asked of the calculator as their users would, and how far it is off."""

from __future__ import annotations

import hashlib
import statistics
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from oomdoc.fit import Given, Question, ask, worksheet
from oomdoc.fit.judge import judge
from oomdoc.model.worksheet import Worksheet
from oomdoc.physics.defaults import ANY_RELEASE
from oomdoc.physics.interval import Interval
from oomdoc.physics.setup import one_by_one
from oomdoc.units import GIB

WITHIN_WEIGHTS = 0.05
WITHIN_TOKENS = 0.01
_UNKNOWN_DEVICE = "80GiB"  # what is asked of such a row does not depend on the device


@dataclass(frozen=True)
class Figures:
    """Shares over the rows that state the figure; `count` rows each. None where no row does."""

    rows: int
    refused: int
    weights: tuple[int, int]
    tokens: tuple[int, int]
    starts: tuple[int, int, int]
    leaning: tuple[int, int]
    pool_error: float | None
    pool_holds: tuple[int, int]
    pool_width: float | None

    def __str__(self) -> str:
        right, wrong, left_open = self.starts
        error = "-" if self.pool_error is None else f"{self.pool_error:.1%}"
        width = "-" if self.pool_width is None else f"{self.pool_width:.1%}"
        return (
            f"{self.rows} rows, {self.refused} not computed; weights within 5 %: {self.weights[0]} of {self.weights[1]}; "
            f"tokens of the logged bytes within 1 %: {self.tokens[0]} of {self.tokens[1]}; starts or not: {right} right, "
            f"{wrong} wrong, {left_open} open, of which the likelier side is right in {self.leaning[0]} of {self.leaning[1]}; pool by flags alone: median error {error}, inside {self.pool_holds[0]} of "
            f"{self.pool_holds[1]}, median width {width}"
        )


def rows(aside: bool | None = None) -> list[dict[str, Any]]:
    """Every row, or those kept aside, or the others."""
    read = tomllib.loads(Path(__file__).with_name("starts.toml").read_text(encoding="utf-8"))["start"]
    return [row for row in read if aside is None or kept_aside(row) is aside]


def kept_aside(row: dict[str, Any]) -> bool:
    digest = hashlib.sha256(f"{row['url']}#{row['line']}".encode()).hexdigest()
    return int(digest[-1], 16) % 2 == 1


def asked(row: dict[str, Any], **more: Any) -> Question:
    """The row's flags as a question; `more` over them."""
    flags = {
        "model": row["model"], "gpu": row.get("gpu", _UNKNOWN_DEVICE), "engine_version": row.get("engine", ANY_RELEASE),
        "tensor_parallel_size": row["tp"], "pipeline_parallel_size": row.get("pp"), "max_model_len": row["max_model_len"],
        "gpu_memory_utilization": row.get("utilization"), "max_num_seqs": row.get("max_num_seqs"),
        "max_num_batched_tokens": row.get("max_num_batched_tokens"), "dtype": row.get("dtype"), "quantization": row.get("quantization"),
        "kv_cache_dtype": row.get("kv_cache_dtype"), "enforce_eager": row.get("enforce_eager"),
        "enable_prefix_caching": row.get("enable_prefix_caching"), "language_model_only": row.get("language_model_only"),
        "speculative_config": row.get("speculative_config"), "revision": row.get("revision"),
    }  # fmt: skip
    return ask(Given(**{**flags, **more}))


def answered(row: dict[str, Any]) -> bool:
    """Whether the question is taken at all; a figure of a row that is refused is missed by everything."""
    try:
        asked(row)
    except Exception:  # whatever it is, the row got no answer
        return False
    return True


def off(interval: Interval, seen: float) -> float:
    """Distance of the middle from what was seen, as a share of it."""
    return abs(interval.middle - seen) / abs(seen)


def weights_off(row: dict[str, Any]) -> float | None:
    """How far the weights are off; None where the row states none, infinity where nothing is computed."""
    if "weights_gib" not in row:
        return None
    if not answered(row):
        return float("inf")
    question = asked(row)
    size = judge(question, question.setup).weights_bytes
    return float("inf") if size is None else off(size, row["weights_gib"] * GIB)


def tokens_off(row: dict[str, Any]) -> float | None:
    """How far the printed tokens are from those of the logged available bytes; the interval's nearest end counts.

    Where the release is not named exactly, what one of its rules gives: the room between two rules is no answer.
    """
    if row.get("available_gib", 0) <= 0 or "tokens" not in row:
        return None
    if not answered(row):
        return float("inf")
    question = asked(row, available_kv=f"{row['available_gib']}GiB")
    distances = [float("inf")]
    for setup in one_by_one(question.setup):
        pool = judge(replace(question, measured=replace(question.measured, setup=setup)), setup).pool
        if pool is not None:
            nearest = min(max(row["tokens"], pool.tokens.lo), pool.tokens.hi)
            distances.append(abs(nearest - row["tokens"]) / row["tokens"])
    return min(distances)


def sheet(row: dict[str, Any], **more: Any) -> Worksheet:
    return worksheet(asked(row, **more))


def pools(some: Sequence[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], Interval]]:
    """Rows whose device is named, with the pool that flags alone give; rows without a pool say nothing of its size."""
    for row in some:
        if row.get("available_gib", 0) > 0 and row.get("gpu"):
            question = asked(row)
            available = judge(question, question.setup).available_bytes
            if available is not None:
                yield row, available


def measure(some: Sequence[dict[str, Any]]) -> Figures:
    refused = sum(not answered(row) for row in some)
    weights = [each for row in some if (each := weights_off(row)) is not None]
    tokens = [each for row in some if (each := tokens_off(row)) is not None]
    judged = [
        (row["started"], sheet(row).start if answered(row) else None)
        for row in some
        if row.get("gpu") and "started" in row
    ]
    verdicts = [(seen, told.starts if told else None) for seen, told in judged]
    leaning = [(seen, told.chance) for seen, told in judged if told and told.starts is None and told.chance is not None]
    found = list(pools([row for row in some if answered(row)]))
    return Figures(
        len(some),
        refused,
        (sum(each <= WITHIN_WEIGHTS for each in weights), len(weights)),
        (sum(each <= WITHIN_TOKENS for each in tokens), len(tokens)),
        (
            sum(seen is told for seen, told in verdicts),
            sum(told is not None and seen is not told for seen, told in verdicts),
            sum(told is None for _, told in verdicts),
        ),
        (sum(seen is (chance > 0.5) for seen, chance in leaning), len(leaning)),
        statistics.median(off(each, row["available_gib"] * GIB) for row, each in found) if found else None,
        (sum(row["available_gib"] * GIB in each for row, each in found), len(found)),
        statistics.median((each.hi - each.lo) / (row["available_gib"] * GIB) for row, each in found) if found else None,
    )


def main() -> None:
    """Print the figures of the open half, row by row what is off; with `--aside` those kept aside, figures alone.

    `--set N` takes the rows of one collection, both halves of it.
    """
    aside = "--aside" in sys.argv
    some = rows(aside)
    if "--set" in sys.argv:
        some = [row for row in rows() if row.get("collection") == int(sys.argv[sys.argv.index("--set") + 1])]
    print(measure(some))
    if aside and "--rows" not in sys.argv:
        return
    for row in some:
        if not answered(row):
            print(f"{row['model'][:44]:44} not taken")
            continue
        parts = [f"{row['model'][:44]:44} {row.get('engine', ''):12.12} {row.get('gpu', ''):10.10} tp{row['tp']}"]
        weights, tokens = weights_off(row), tokens_off(row)
        if weights is not None and weights > WITHIN_WEIGHTS:
            question = asked(row)
            size = judge(question, question.setup).weights_bytes
            parts.append(
                f"weights {row['weights_gib']} told {size and (round(size.lo / GIB, 2), round(size.hi / GIB, 2))}"
            )
        if tokens is not None and tokens > WITHIN_TOKENS:
            pool = sheet(row, available_kv=f"{row['available_gib']}GiB").pool
            parts.append(
                f"tokens {row['tokens']:,} told {pool and (int(pool.tokens.lo), int(pool.tokens.hi), pool.block_tokens, pool.groups, pool.need_blocks)}"
            )
        if row.get("gpu"):
            told = sheet(row).start
            if told.starts is not row.get("started", told.starts):
                parts.append(f"started {row['started']} told {told.starts} {told.check} {told.chance}")
            for _, each in pools([row]):
                inside = row["available_gib"] * GIB in each
                parts.append(
                    f"pool {row['available_gib']} told {each.lo / GIB:.2f} {each.hi / GIB:.2f}{'' if inside else ' OUTSIDE'}"
                )
        print(" | ".join(parts))


if __name__ == "__main__":
    main()
