"""The atlas of the engine's shapes is whole: every one has its releases, and is read into a table or skipped with a reason."""

import functools
import io
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from oomdoc.evidence.tables import LOOKALIKE, TABLES
from oomdoc.ingest import text_log
from oomdoc.ingest.base import Pattern
from oomdoc.ingest.wordings import REASON
from oomdoc.intake.scan import chunks

ROOT = Path(__file__).parents[2]
LISTED = tomllib.loads((ROOT / "docs" / "engine-atlas.toml").read_text(encoding="utf-8"))
OWN = [pattern for pattern in text_log.PATTERNS if pattern.dialect == "vllm"]
_RELEASE = r"0\.\d+\.\d+(?:\.\d+|\.post\d+)?"
RANGE = re.compile(rf"{_RELEASE}(?: →| – {_RELEASE})?")
HEAD = "INFO 01-05 12:00:00 [x.py:1] "


def read(text: str) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for batch in text_log.read("x.log", chunks(io.BytesIO(text.encode()))):
        for place in range(batch.rows):
            found.append((batch.table, {name: values[place] for name, values in batch.columns.items()}))
    return found


@functools.cache
def numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", release))


@pytest.mark.parametrize("pattern", OWN, ids=lambda pattern: pattern.name)
def test_a_pattern_of_the_engine_names_its_releases(pattern: Pattern) -> None:
    assert RANGE.fullmatch(pattern.versions), pattern.versions
    first, _, last = pattern.versions.partition(" – ")
    assert not last or numbers(first) < numbers(last)


def test_only_the_engine_has_releases() -> None:
    assert [pattern.name for pattern in text_log.PATTERNS if pattern.versions and pattern.dialect != "vllm"] == []


@pytest.mark.parametrize("entry", LISTED["elsewhere"], ids=lambda entry: entry["shape"])
def test_what_is_read_elsewhere_fills_its_table(entry: dict[str, str]) -> None:
    assert RANGE.fullmatch(entry["versions"]) and entry["table"] in TABLES and entry["by"]
    if entry["sample"]:
        tables = [table for table, _ in read(entry["sample"] + "\n")]
        assert entry["table"] in tables
        assert "problem" not in tables


@pytest.mark.parametrize("entry", LISTED["skipped"], ids=lambda entry: entry["shape"])
def test_what_is_skipped_has_a_reason_and_leaves_nothing(entry: dict[str, str]) -> None:
    assert RANGE.fullmatch(entry["versions"]) and len(entry["reason"]) > 8
    sample = entry["sample"] if entry["sample"].startswith(("INFO", "[")) else HEAD + entry["sample"]
    assert [row for row in read(sample + "\n") if row[0] != LOOKALIKE] == []


def test_no_shape_stands_twice() -> None:
    shapes = [entry["shape"] for entry in (*LISTED["elsewhere"], *LISTED["skipped"])]
    assert len(set(shapes)) == len(shapes)


# ---- wordings that are new


@pytest.mark.parametrize(
    "line",
    [
        "INFO 01-05 12:00:00 [a.py:1] Available KV cache memory: 9.1 gigabytes, that is 4096 blocks",
        "INFO 01-05 12:00:00 [a.py:1] GPU KV cache size: 4096 pages of 2 MiB",
        "INFO 01-05 12:00:00 [a.py:1] Reserved 30.5 GiB for KV cache on every rank",
        "INFO 01-05 12:00:00 [a.py:1] Model loading took 14.9 gibibytes (15260 MiB) and 3 seconds",
        "(Worker_TP0 pid=7) ERROR 01-05 12:00:00 [a.py:1] The accelerator is out of memory: 512 pages wanted",
        "vendor.errors.AcceleratorError: the arena ran out of memory while it grew",
        "ERROR 01-05 12:00:00 [a.py:1] Estimated CUDA graph memory exceeds 3.5 GiB",
    ],
)
def test_a_known_message_in_a_new_wording_is_told(line: str) -> None:
    rows = read(f"INFO 01-05 11:59:59 [a.py:1] before\n{line}\n")
    problems = [row for table, row in rows if table == "problem"]
    assert [(row["line"], row["reason"]) for row in problems] == [(2, REASON)]


@pytest.mark.parametrize(
    "line",
    [
        "INFO 01-05 12:00:00 [a.py:1] If you run out of memory, lower --max-num-seqs.",
        "WARNING 01-05 12:00:00 [a.py:1] This may cause out of memory errors with 80 GiB devices.",
        "INFO 01-05 12:00:00 [a.py:1] Using fp8 for KV cache",
        "please free some space for KV cache, at least 4 GiB",
        '{"prompt": "ERROR 01-05 12:00:00 [a.py:1] out of memory, 4 GiB"}',
        "Received request a: prompt: 'ERROR 01-05 12:00:00 [a.py:1] out of memory for KV cache 5 GiB', params: SamplingParams(n=1)",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.50 GiB.",
        "ERROR 01-05 12:00:00 [a.py:1] ValueError: Out of memory! No free blocks are available.",
        "ERROR 01-05 12:00:00 [a.py:1] RuntimeError: CUDA out of memory occurred when warming up sampler with 8 dummy requests.",
        "DEBUG 01-05 12:00:00 [a.py:1] Reserved 30.5 GiB for KV cache on every rank",
        "[ 91.1] Out of memory: Killed process 88 (python3) total-vm:9kB, anon-rss:4kB",
        "INFO 01-05 12:00:00 [a.py:1] GPU KV cache size: 473,440 tokens, Maximum concurrency for 32,768 tokens per request: 14.45x",
    ],
)
def test_advice_prompts_and_known_lines_are_no_new_wording(line: str) -> None:
    assert [row for table, row in read(line + "\n") if table == "problem"] == []


def test_a_log_in_a_foreign_wording_is_told_a_hundred_times_at_most() -> None:
    line = "INFO 01-05 12:00:00 [a.py:1] Reserved {} GiB for KV cache on every rank\n"
    rows = read("".join(line.format(number) for number in range(300)))
    assert sum(table == "problem" for table, _ in rows) == 100
