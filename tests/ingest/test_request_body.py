"""The body of one API request: what it asks for that costs memory."""

from __future__ import annotations

import io
from typing import Any

from oomdoc import ingest
from oomdoc.evidence.tables import LOOKALIKE
from oomdoc.ingest import make_head, request_body, text_log
from oomdoc.intake.scan import Chunk, chunks


def read(text: str, size: int = 1 << 20) -> dict[str, list[dict[str, Any]]]:
    tables: dict[str, list[dict[str, Any]]] = {}
    for batch in request_body.read("any", chunks(io.BytesIO(text.encode()), size)):
        names, columns = list(batch.columns), list(batch.columns.values())
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        tables.setdefault(batch.table, []).extend(rows)
    return tables


def matches(text: str) -> bool:
    return request_body.matches(make_head("any", text.encode()))


def test_the_body_of_a_request() -> None:
    text = '{"model": "m", "prompt_logprobs": 5, "messages": [{"content": [{"type": "image_url"}, {"type": "image_url"}]}]}'
    assert matches(text)
    rows = read(text, 16)["note"]
    assert [(row["topic"], row["value"]) for row in rows] == [("prompt-logprobs", None), ("multimodal", 2.0)]
    assert not matches('{"model": "m", "prompt": "hello", "max_tokens": 5}')


PROMPT = "slot update_slots: id  1 | task 2 | prompt text begins: 'Explain this: {said}'\n"
SAID = "CUDA error: out of memory, failed to allocate 4096.00 MiB"


def test_what_a_prompt_quotes_is_no_failure_of_the_server() -> None:
    told = {table for batch in ingest.read(text_log, "a.log", [Chunk(PROMPT.format(said=SAID).encode(), 1, True)]) for table in [batch.table]}  # fmt: skip
    assert told == {LOOKALIKE}


def test_a_failure_behind_a_prompt_that_is_closed_is_one() -> None:
    line = "prompt='a b', 30 tokens: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    told = {batch.table for batch in ingest.read(text_log, "a.log", [Chunk(line.encode(), 1, True)])}
    assert "oom" in told
