"""Every pattern of every dialect: its samples give the rows that it promises, also through the scan and in envelopes."""

import io
import json
import math

import pytest

from oomdoc.ingest import text_log
from oomdoc.ingest.base import Pattern
from oomdoc.intake.scan import chunks

SAMPLES = [
    pytest.param(pattern, text, expected, id=f"{pattern.name}-{place}")
    for pattern in text_log.PATTERNS
    for place, (text, expected) in enumerate(pattern.samples)
]


def rows_of(text: str) -> list[tuple[str, dict]]:
    """All rows that the text reader finds, as mappings."""
    found = []
    for batch in text_log.read("x.log", chunks(io.BytesIO(text.encode()))):
        for place in range(batch.rows):
            found.append((batch.table, {name: values[place] for name, values in batch.columns.items()}))
    return found


def agrees(row: dict, expected: dict) -> bool:
    return all(
        math.isclose(row.get(name), value, rel_tol=1e-9)
        if isinstance(value, float) and row.get(name) is not None
        else row.get(name) == value
        for name, value in expected.items()
    )


@pytest.mark.parametrize(("pattern", "text", "expected"), SAMPLES)
def test_a_sample_gives_its_row_alone_in_a_log_and_in_an_envelope(pattern: Pattern, text: str, expected: dict) -> None:
    rows = list(pattern.rows(text))
    assert any(agrees(row, dict(expected)) for row in rows), rows
    assert any(anchor in text for anchor in pattern.anchors), "the scan would never look at it"

    timeless = {name: value for name, value in expected.items() if name != "t"}
    # an untimed line takes its neighbour's time, and in an envelope that one's
    log = f"INFO 01-05 11:59:59 [a.py:1] before\n{text}\nINFO 01-05 12:00:01 [a.py:1] after\n"
    rows = [row for table, row in rows_of(log) if table == pattern.table]
    assert any(agrees(row, timeless) and row["line"] == 2 for row in rows), rows

    record = {"log": text + "\n", "stream": "stdout", "time": "2026-11-20T20:04:51.123456789Z"}
    docker = json.dumps(record, ensure_ascii=False) + "\n"
    rows = [row for table, row in rows_of(docker) if table == pattern.table]
    assert any(agrees(row, timeless) for row in rows), rows


def test_no_sample_is_taken_by_a_second_pattern_of_the_same_table() -> None:
    doubled = [
        (pattern.name, other.name, text)
        for pattern in text_log.PATTERNS
        for text, expected in pattern.samples
        for other in text_log.PATTERNS
        if other is not pattern
        and other.table == pattern.table
        and any(agrees(row, dict(expected)) for row in other.rows(text))
    ]
    assert not doubled


def test_a_pattern_without_a_sample_is_refused() -> None:
    good = text_log.PATTERNS[0]
    with pytest.raises(ValueError, match="no sample"):
        Pattern("x", "vllm", ("abcd",), good.regex, good.table, samples=())


@pytest.mark.parametrize("anchor", ["abc", 'say "hi"', "back\\slash", "tab\there"])
def test_an_anchor_that_an_envelope_could_hide_is_refused(anchor: str) -> None:
    good = text_log.PATTERNS[0]
    with pytest.raises(ValueError, match="anchor"):
        Pattern("x", "vllm", (anchor,), good.regex, good.table, samples=good.samples)
