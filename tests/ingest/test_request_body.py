"""The body of one API request: what it asks for that costs memory."""

from __future__ import annotations

import io
from typing import Any

from oomdoc.ingest import make_head, request_body
from oomdoc.intake.scan import chunks


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
