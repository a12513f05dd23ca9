"""Requests in texts of something else, and in entries whose words do not tell them."""

from __future__ import annotations

import io
import json
from typing import BinaryIO, cast

import pytest

from oomdoc.ingest.request_keys import Bare
from oomdoc.ingest.request_log import one_by_one
from oomdoc.intake.scan import chunks
from oomdoc.intake.unwrap import unwrap

ENGINE = "INFO 06-07 08:09:10 [loggers.py:9] Engine 000: up\n"


def undone(text: str) -> str:
    pieces = unwrap(chunks(cast(BinaryIO, io.BytesIO(text.encode())), 1 << 20))
    return b"".join(chunk.data for chunk in pieces).decode()


@pytest.mark.parametrize(
    "line",
    [
        '2026-06-07T08:09:11Z {"msg": "slow", "prompt_tokens": 512, "completion_tokens": 7, "elapsed_ms": 9100, "status": 200}',
        '{"id": "c1", "choices": [], "usage": {"prompt_tokens": 512, "completion_tokens": 7}}',
        "2026-06-07T08:09:11Z INFO served tenant=lab prompt_tokens=512 completion_tokens=7 total_ms=9100",
    ],
)
def test_a_request_alone_in_a_log_is_one(line: str) -> None:
    (batch,) = one_by_one(f"{ENGINE}{line}\n".encode())
    assert (batch.columns["line"], batch.columns["input_tokens"], batch.columns["output_tokens"]) == ([2], [512], [7])


@pytest.mark.parametrize(
    "line",
    [
        "INFO 06-07 08:09:11 [logger.py:40] Received request c1: params: prompt_tokens=512 completion_tokens=7",
        "we had prompt_tokens=512 and then completion_tokens=7 came back to us after a very long wait in the office today",
        '{"prompt_tokens": 512, "note": "no answer is told"}',
    ],
)
def test_who_only_mentions_counts_made_no_request(line: str) -> None:
    assert not list(one_by_one(f"{ENGINE}{line}\n".encode()))


def test_what_lies_within_an_entry_beside_its_words_is_told() -> None:
    inner = {
        "http": {"status_code": 503},
        "duration": 4_200_000_000,
        "usage": {"prompt_tokens": 77, "output_tokens": 0},
    }
    entries = [
        {"id": "1", "attributes": {"timestamp": "2026-06-07T08:09:11.500Z", "message": "failed", "attributes": inner}},
        {"id": "2", "attributes": {"timestamp": "2026-06-07T08:09:10.500Z", "message": "up", "attributes": {"a": 1}}},
    ]
    first, second = undone(json.dumps(entries, indent=1)).splitlines()
    assert first.endswith("Z up") and json.loads(second.partition(" ")[2]) == {"message": "failed", **inner}


def test_a_viewers_sheet_whose_cells_have_lines_is_put_in_order() -> None:
    sheet = '"@timestamp",pod,message\n"Jun 7, 2026 @ 08:09:12.500",a,"second\ngoes on"\n"Jun 7, 2026 @ 08:09:11.000",a,first\n'
    assert undone(sheet).splitlines() == [
        "2026-06-07T08:09:11.000000Z first",
        "2026-06-07T08:09:12.500000Z second",
        "2026-06-07T08:09:12.500000Z goes on",
    ]
    plain = sheet.replace("second\ngoes on", "second")  # one step back alone is no order
    assert undone(plain) == plain


def test_durations_of_days_are_nanoseconds() -> None:
    for values, divisor in (([2_100_000_000.0], 1e9), ([2_100_000.0], 1e3), ([2.5], 1.0)):
        bare = Bare()
        bare.see(values)
        assert bare.divisor == divisor
