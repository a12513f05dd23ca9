"""Request lines of TGI and SGLang."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoc.ingest import make_head, read, recognise, serving_log
from oomdoc.intake.scan import chunks

TGI = (
    "2026-11-20T20:04:51.250000Z  INFO generate{parameters=GenerateParameters { best_of: None, max_new_tokens: Some(100) } "
    'total_time="1.25s" validation_time="300µs" queue_time="50µs" inference_time="985.66ms" time_per_token="49.283ms" seed="None"}: '
    "text_generation_router::server: router/src/server.rs:322: Success"
)
TGI_JSON = json.dumps({
    "timestamp": "2026-11-20T20:04:51.250000Z", "level": "INFO", "message": "Success", "target": "text_generation_router::server",
    "span": {"name": "generate", "parameters": "GenerateParameters { max_new_tokens: Some(100) }", "total_time": "1.25s",
             "queue_time": "50µs", "inference_time": "985.66ms", "time_per_token": "49.283ms"},
})  # fmt: skip
SGLANG = (
    "[2026-11-20 20:04:51] Finish: obj=GenerateReqInput(rid='a', text=\"say 'meta_info': {'prompt_tokens': 1}\"), "
    "out={'text': 'x', 'meta_info': {'id': 'a', 'finish_reason': {'type': 'stop'}, 'prompt_tokens': 7420, 'completion_tokens': 312, "
    "'cached_tokens': 64, 'e2e_latency': 8.5}}"
)


def rows(text: str, size: int = 1 << 20) -> list[dict[str, Any]]:
    found = []
    for batch in serving_log.read("any", chunks(io.BytesIO(text.encode()), size)):
        assert batch.table == "request"
        for row in zip(*batch.columns.values(), strict=True):
            found.append({name: cell for name, cell in zip(batch.columns, row, strict=True) if cell is not None})
    return found


@pytest.mark.parametrize("line", [TGI, TGI_JSON])
def test_tgi(line: str) -> None:
    text = f"{line}\n{line}\n"
    expected = {"t": 1_795_205_090.0, "output_tokens": 20, "max_tokens": 100, "latency_s": 1.25, "ttft_s": 0.049333}
    assert rows(text) == [{"line": 1, **expected}, {"line": 2, **expected}]
    assert recognise(make_head("any", text.encode()))[1] == "serving-log"


def test_tgi_tells_what_it_turned_away() -> None:
    refused = json.dumps({"timestamp": "2026-11-20T20:04:55.250000Z", "level": "ERROR", "message": "Model is overloaded", "target": "text_generation_router::infer"})  # fmt: skip
    assert rows(f"{TGI_JSON}\n{refused}\n")[1] == {"line": 2, "t": 1_795_205_095.25, "output_tokens": 0, "status": 429}


def test_sglang_counts_what_its_last_meta_info_says() -> None:
    (row,) = rows(SGLANG + "\n")
    assert row == {
        "line": 1, "t": 1_795_205_082.5, "input_tokens": 7420, "output_tokens": 312, "cached_tokens": 64, "latency_s": 8.5}  # fmt: skip
    long = SGLANG.replace("'text': 'x'", f"'text': '{'y' * 200_000}'")
    assert rows(long) == rows(SGLANG)


def test_other_lines_are_left_to_the_patterns() -> None:
    text = f"{TGI}\nINFO shard started\n{SGLANG}\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.00 GiB is free.\n"
    head = make_head("any", text.encode())
    ingestor, kind = recognise(head)
    tables = {batch.table for batch in read(ingestor, "any", chunks(io.BytesIO(text.encode())))}
    assert kind == "serving-log"
    assert {"request", "oom"} <= tables


@pytest.mark.parametrize(
    "line",
    [
        TGI.replace("Success", "Failed"),
        TGI.replace('inference_time="985.66ms" ', ""),
        TGI.replace("49.283ms", "0ns"),
        'note: time_per_token="49.283ms" is what it printed: Success',
        SGLANG.replace("meta_info", "meta"),
        "the log says Finish: obj= and no more",
    ],
)
def test_near_miss(line: str) -> None:
    assert rows(line) == []
    assert not serving_log.matches(make_head("any", line.encode()))


@settings(max_examples=80, deadline=None)
@given(st.sampled_from([TGI, TGI_JSON, SGLANG]), st.integers(0, 400), st.text(max_size=20), st.integers(5, 500))
def test_damaged_lines_never_raise(line: str, at: int, noise: str, size: int) -> None:
    text = line[:at] + noise + line[at + len(noise) :]
    serving_log.matches(make_head("any", text.encode("utf-8", "replace")))
    for _ in serving_log.read("any", chunks(io.BytesIO(text.encode("utf-8", "replace")), size)):
        pass
