"""Request logs: every shape, what keys mean, units, and that the fast way reads as the plain one does."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoc.ingest import make_head, request_log
from oomdoc.intake.scan import chunks
from oomdoc.units import parse_time

Tables = dict[str, list[dict[str, Any]]]


def read(text: str | bytes, size: int = 1 << 20) -> Tables:
    """All rows by table, without their NULLs, in the order of lines."""
    data = text if isinstance(text, bytes) else text.encode()
    tables: Tables = {}
    for batch in request_log.read("any", chunks(io.BytesIO(data), size)):
        columns = [column.tolist() if isinstance(column, np.ndarray) else column for column in batch.columns.values()]
        rows = (dict(zip(batch.columns, row, strict=True)) for row in zip(*columns, strict=True))
        tables.setdefault(batch.table, []).extend(
            {name: value for name, value in row.items() if value is not None} for row in rows
        )
    for rows_ in tables.values():
        rows_.sort(key=lambda row: row["line"])
    return tables


def one(text: str) -> dict[str, Any]:
    """The only row of a line, without its line number."""
    tables = read(text)
    assert "problem" not in tables
    (row,) = tables["request"]
    assert row.pop("line") == 1
    return row


def is_log(text: str) -> bool:
    return request_log.matches(make_head("any", text.encode()))


def t(text: str) -> float:
    seconds = parse_time(text)
    assert seconds is not None
    return seconds


PAIRS = "2026-11-20 20:04:51.120 INFO gw request_id=r-1 model=acme/m-7b client=10.1.2.3 status=200 input_tokens=7420 output_tokens=312 latency_ms=8123 ttft_ms=512 finish=stop"


# ---- key=value


def test_pairs() -> None:
    assert one(PAIRS) == {
        "t": t("2026-11-20 20:04:51.120"), "input_tokens": 7420, "output_tokens": 312, "latency_s": 8.123, "ttft_s": 0.512,
        "status": 200, "model": "acme/m-7b", "tenant": "10.1.2.3",
    }  # fmt: skip


def test_a_line_without_counts_takes_none_from_the_line_before() -> None:
    tables = read(
        "input_tokens=1 output_tokens=2\nstatus=200 latency_ms=5\noutput_tokens=3\ninput_tokens= output_tokens=-\n"
    )
    assert tables["request"] == [
        {"line": 1, "input_tokens": 1, "output_tokens": 2}, {"line": 3, "output_tokens": 3}, {"line": 4},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("2026-11-20T20:04:51Z ", "2026-11-20 20:04:51"),
        ("2026-11-20T20:04:51.5+01:00 ", "2026-11-20 19:04:51.5"),
        ("[2026-11-20 20:04:51,500] WARN ", "2026-11-20 20:04:51.5"),
        ("ts=2026-11-20T20:04:51Z level=info ", "2026-11-20 20:04:51"),
        ('time="2026-11-20T20:04:51Z" msg="request done, all of it" ', "2026-11-20 20:04:51"),
        ("start_time=1795205091 ", "2026-11-20 20:04:51"),
        ("start_time=1795205091500 timestamp=2026-11-20T21:00:00Z ", "2026-11-20 20:04:51.5"),
        ("1795205091.5 ", "2026-11-20 20:04:51.5"),
        ('10.0.0.1 - - [20/Nov/2026:20:04:51 +0100] "POST /v1/x HTTP/1.1" ', "2026-11-20 19:04:51"),
        ("Nov 20 20:04:51 host gw[12]: ", "2000-11-20 20:04:51"),
        ("[pod/gw-1/app] 2026-11-20T20:04:51Z ", "2026-11-20 20:04:51"),
        ("20:04:51 ", None),
        ("ts=12.5 ", None),
        ("", None),
    ],
)
def test_times_of_pairs(head: str, expected: str | None) -> None:
    row = one(head + "input_tokens=5 output_tokens=6")
    assert row.get("t") == (None if expected is None else t(expected))


@pytest.mark.parametrize(
    ("keys", "latency"),
    [
        ("latency_ms=1500", 1.5), ("latency_s=1.5", 1.5), ("duration=1.5s", 1.5), ("duration=900ms", 0.9), ("latencyMs=1500", 1.5),
        ("elapsed_us=1500", 0.0015), ("total_time_ns=1500", 1.5e-6), ("e2e_latency_seconds=2", 2.0), ("latency=8123", 8.123),
        ("latency=0.75", 0.75), ("latency=12", None), ("latency=fast", None), ("gen_ai.latency.e2e=3", 3.0),
        ("start_time=1795205091 end_time=1795205093", 2.0),
    ],
)  # fmt: skip
def test_durations(keys: str, latency: float | None) -> None:
    assert one(f"input_tokens=5 output_tokens=6 {keys}").get("latency_s") == latency


@pytest.mark.parametrize(
    ("column", "latency"),
    [("upstream_ms", 1.2), ("gateway_total_ms", 1.2), ("upstream", None), ("warm_up_ms", None)],
)
def test_what_a_gateway_took(column: str, latency: float | None) -> None:
    """A weak name with the unit of a time is one, beside the counts of a request; without it it may be an address."""
    tables = read(f"start_time,prompt_tokens,completion_tokens,{column}\n2026-10-06T08:00:00Z,100,20,1200\n")
    assert tables["request"][0].get("latency_s") == latency


def test_the_unit_of_bare_durations_is_one_for_a_source() -> None:
    rows = read("in_tokens=1 latency=0.5\nin_tokens=1 latency=3\n")["request"]
    assert [row["latency_s"] for row in rows] == [0.5, 3.0]
    rows = read("in_tokens=1 latency=850.5\nin_tokens=1 latency=3000\n")["request"]
    assert [row["latency_s"] for row in rows] == [0.8505, 3.0]


def test_an_end_less_the_latency_is_the_arrival() -> None:
    row = one("2026-11-20T20:05:00Z end_time=2026-11-20T20:04:51Z latency_ms=1500 input_tokens=5 output_tokens=6")
    assert row["t"] == t("2026-11-20 20:04:49.5")


@pytest.mark.parametrize("value", ["abc", "5x", "-1", "1" * 16, "1e3"])
def test_counts_that_are_none_are_problems(value: str) -> None:
    tables = read(f"input_tokens={value} output_tokens=5\n")
    assert tables["request"] == [{"line": 1, "output_tokens": 5}]
    assert tables["problem"][0]["reason"] == "input tokens are not a number"


def test_pairs_among_punctuation_and_colour() -> None:
    assert one("done (input_tokens=5, output_tokens=6); model='a b'")["output_tokens"] == 6
    assert one("\x1b[32mINFO\x1b[0m \x1b[36minput_tokens\x1b[0m=5 output_tokens=\x1b[35m6\x1b[0m") == {
        "input_tokens": 5,
        "output_tokens": 6,
    }
    assert "request" not in read('msg="the user wrote input_tokens=5 output_tokens=6" level=info\n')
    assert "request" not in read("max_input_tokens=5 x.output_tokens_total=6\n")


# ---- JSON


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"usage": {"prompt_tokens": 5, "completion_tokens": 6, "total_tokens": 11}}, {}),
        ({"response": {"usage": {"prompt_tokens": 5, "completion_tokens": 6}, "model": "m"}, "status_code": 200}, {"status": 200, "model": "m"}),
        ({"custom_id": "1", "response": {"status_code": 200, "body": {"usage": {"prompt_tokens": 5, "completion_tokens": 6}}}}, {"status": 200}),
        ({"response_body": {"usage": {"input_tokens": 5, "output_tokens": 6, "input_tokens_details": {"cached_tokens": 4}}}}, {"cached_tokens": 4}),
        ({"data": {"usage": {"prompt_tokens": 5, "completion_tokens": 6, "prompt_tokens_details": {"cached_tokens": 2}}}}, {"cached_tokens": 2}),
        ({"promptTokens": 5, "completionTokens": 6, "maxTokens": 99}, {"max_tokens": 99}),
        ({"gen_ai.usage.input_tokens": 5, "gen_ai.usage.output_tokens": 6, "gen_ai.request.model": "m"}, {"model": "m"}),
        ({"llm_input_token": "5", "llm_output_token": "6", "user": 17}, {"tenant": "17"}),
        ({"PROMPT-LEN": 5.0, "output_len": 6, "status": "success"}, {"status": 200}),
        ({"prompt_len": 5, "output_len": 6, "status": "Timed out"}, {"status": 504}),
        ({"prompt_len": 5, "output_len": 6, "status": "pending"}, {}),
        ({"prompt_eval_count": 5, "eval_count": 6, "model": None}, {}),
        ({"meta_info": {"prompt_tokens": 5, "completion_tokens": 6, "e2e_latency": 1.5}}, {"latency_s": 1.5}),
        ({"prompt": "input_tokens=9", "messages": [{"input_tokens": 9}], "input_tokens": 5, "output_tokens": 6}, {}),
        ({"input_tokens": None, "prompt_tokens": 5, "output_tokens": 6, "status": "503 Service Unavailable"}, {"status": 503}),
        ({"startTime": 1795205091.5, "endTime": 1795205093.5, "completionStartTime": 1795205092.0, "prompt_tokens": 5, "completion_tokens": 6},
         {"t": 1795205091.5, "latency_s": 2.0, "ttft_s": 0.5}),
        ({"created": 1795205091, "usage": {"prompt_tokens": 5, "completion_tokens": 6}}, {"t": 1795205091.0}),
        ({"timestamp": 27482, "input_length": 5, "output_length": 6}, {}),
        ({"ts": 1795205091500000000, "input_tokens": 5, "output_tokens": 6, "ttft": "120ms"}, {"t": 1795205091.5, "ttft_s": 0.12}),
    ],
)  # fmt: skip
def test_json(value: dict[str, Any], expected: dict[str, Any]) -> None:
    assert one(json.dumps(value)) == {"input_tokens": 5, "output_tokens": 6, **expected}


def test_cached_tokens_are_added_only_where_they_stand_apart() -> None:
    apart = {
        "usage": {
            "input_tokens": 5,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 20,
            "output_tokens": 6,
        }
    }
    assert one(json.dumps(apart)) == {"input_tokens": 125, "output_tokens": 6, "cached_tokens": 100}
    within = {"usage": {"prompt_tokens": 125, "cache_read_input_tokens": 100, "completion_tokens": 6}}
    assert one(json.dumps(within)) == {"input_tokens": 125, "output_tokens": 6, "cached_tokens": 100}


@pytest.mark.parametrize(
    "line",
    [
        '{"log":"input_tokens=5 output_tokens=6\\n","stream":"stdout","time":"2026-11-20T20:04:51Z"}',
        '{"log":"{\\"input_tokens\\": 5, \\"output_tokens\\": 6, \\"msg\\": \\"done\\"}\\n","time":"2026-11-20T20:04:51Z"}',
        '2026-11-20T20:04:51.000000000Z stdout F {"input_tokens": 5, "output_tokens": 6, "message": "request done"}',
        '[pod/gw/app] 2026-11-20T20:04:51Z {"input_tokens": 5, "output_tokens": 6}',
        "gw-1  | 2026-11-20T20:04:51Z input_tokens=5 output_tokens=6",
    ],
)
def test_envelopes(line: str) -> None:
    assert one(line) == {"t": t("2026-11-20 20:04:51"), "input_tokens": 5, "output_tokens": 6}
    assert is_log((line + "\n") * 3)


def test_broken_json_is_a_problem() -> None:
    tables = read('{"input_tokens": 5, "output_tokens": 6}\n{"input_tokens": 5, "outp\nwords\n\n{"a": 1}\n')
    assert [row["line"] for row in tables["request"]] == [1]
    assert [row["line"] for row in tables["problem"]] == [2]
    many = read('{"input_tokens": 1}\n' + "{x\n" * 300)["problem"]
    assert len(many) == 101


def test_a_document_of_several_lines() -> None:
    rows = [{"prompt_tokens": 5, "completion_tokens": 6}, {"prompt_tokens": 7, "completion_tokens": 8}]
    for text in (json.dumps(rows), json.dumps(rows, indent=2), json.dumps({"data": rows[0]}, indent=1)):
        found = read(text, size=16)["request"]
        assert [row["input_tokens"] for row in found] == [5, 7][: len(found)]
        assert is_log(text)
    assert is_log(json.dumps(rows * 2000, indent=2))
    assert read('{\n"a": 1,\n')["problem"][0]["reason"] == "no valid JSON document"


def test_a_serving_benchmark() -> None:
    value = {
        "date": "20261120-200451", "model_id": "acme/m-7b", "duration": 10.0, "completed": 2, "total_input_tokens": 12,
        "request_throughput": 0.2, "input_lens": [5, 7], "output_lens": [6, 8], "ttfts": [0.25, 0.5], "itls": [[0.25, 0.5], []],
        "start_times": [1000.0, 1004.0], "generated_texts": ["a", "b"], "errors": ["", ""],
    }  # fmt: skip
    tables = read(json.dumps(value))
    assert tables["request"] == [
        {
            "line": 1,
            "t": t("2026-11-20 20:04:41"),
            "input_tokens": 5,
            "output_tokens": 6,
            "latency_s": 1.0,
            "ttft_s": 0.25,
            "model": "acme/m-7b",
        },
        {
            "line": 1,
            "t": t("2026-11-20 20:04:45"),
            "input_tokens": 7,
            "output_tokens": 8,
            "latency_s": 0.5,
            "ttft_s": 0.5,
            "model": "acme/m-7b",
        },
    ]
    assert is_log(json.dumps(value))
    assert read(json.dumps({**value, "input_lens": None, "output_lens": [6]}))["request"][0].get("input_tokens") is None


# ---- CSV


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv(delimiter: str) -> None:
    lines = [
        "TIMESTAMP,ContextTokens,GeneratedTokens,status",
        "2026-11-20 20:04:51.12,5,6,200",
        "",
        "2026-11-20 20:04:52,,7.0,",
        "1,2,3",
    ]
    tables = read("\n".join(lines).replace(",", delimiter))
    assert tables["request"] == [
        {"line": 2, "t": t("2026-11-20 20:04:51.12"), "input_tokens": 5, "output_tokens": 6, "status": 200},
        {"line": 4, "t": t("2026-11-20 20:04:52"), "output_tokens": 7},
    ]
    assert [row["line"] for row in tables["problem"]] == [5]
    assert is_log("\n".join(lines[:2]).replace(",", delimiter))


def test_csv_with_quotes_and_repeated_headers() -> None:
    text = 'id,prompt_tokens,completion_tokens,model\r\n"a,b",5,6,"m, 7b"\r\nid,prompt_tokens,completion_tokens,model\r\nc,7,8,m\r\n'
    assert read(text)["request"] == [
        {"line": 2, "input_tokens": 5, "output_tokens": 6, "model": "m, 7b"},
        {"line": 4, "input_tokens": 7, "output_tokens": 8, "model": "m"},
    ]


@pytest.mark.parametrize(
    ("name", "cells", "elapsed"),
    [
        ("t_s", ("0.0", "12.5"), (0.0, 12.5)),
        ("time_ms", ("500", "900500"), (0.5, 900.5)),
        ("arrival_offset_s", ("3", "4"), (3.0, 4.0)),
        ("request_time", ("0.251", "3.1"), (None, None)),  # a proxy's duration
        ("timestamp", ("3", "4"), (None, None)),  # seconds or milliseconds
    ],
)
def test_a_time_since_the_beginning_needs_a_unit(name: str, cells: tuple[str, ...], elapsed: tuple[float, ...]) -> None:
    text = f"{name},prompt_tokens,completion_tokens\n" + "".join(f"{cell},5,6\n" for cell in cells)
    rows = read(text)["request"]
    assert [row.get("elapsed_s") for row in rows] == list(elapsed)
    assert not any("t" in row for row in rows)
    dated = f"{name},prompt_tokens,completion_tokens\n1795205091.5,5,6\n"
    assert [(row.get("t"), row.get("elapsed_s")) for row in read(dated)["request"]] == [(1795205091.5, None)]


@pytest.mark.parametrize(
    ("header", "row", "size"),
    [
        ("system_tokens,user_tokens,prompt_tokens,output_tokens", "561,88,649,121", 649),
        ("prompt_tokens,system_tokens,user_tokens,output_tokens", "649,561,88,121", 649),
        ("system_tokens,user_tokens,output_tokens", "561,88,121", 649),
        ("user_tokens,output_tokens", "88,121", 88),
        ("system_tokens,user_tokens,output_tokens", "561,,121", 561),
    ],
)
def test_parts_of_a_prompt_are_no_prompt_beside_the_whole(header: str, row: str, size: int) -> None:
    text = f"{header}\n{row}\n"
    assert [request["input_tokens"] for request in read(text)["request"]] == [size]
    assert is_log(text)


# ---- chunks and long lines


def test_a_line_longer_than_the_cap_is_skipped_to_its_end() -> None:
    first = "input_tokens=1 output_tokens=2\n"
    long = '{"input_tokens": 3, "output_tokens": 4, "prompt": "' + "x" * (5 << 20) + '"}\n'
    tables = read(first + long + first)
    assert [row["line"] for row in tables["request"]] == [1, 3]
    assert [row["line"] for row in tables["problem"]] == [2]


def test_a_long_prompt_does_no_harm() -> None:
    line = json.dumps({"prompt": 'output_tokens=9, "x" ' * 20_000, "input_tokens": 3, "output_tokens": 4})
    assert read(line + "\n" + line)["request"] == [{"line": at, "input_tokens": 3, "output_tokens": 4} for at in (1, 2)]


# ---- the fast way


def both_ways(text: str | bytes, size: int, patch: pytest.MonkeyPatch) -> Tables:
    """The rows, after a look that both ways give them."""
    with patch.context() as context:
        context.setattr(request_log, "WORTHWHILE_BYTES", 1)
        fast = read(text, size)
        context.setattr(request_log, "WORTHWHILE_BYTES", 1 << 60)
        assert fast == read(text, size)
    return fast


def stamp(at: int) -> str:
    return f"2026-11-20 {20 + at // 36000:02}:{at // 600 % 60:02}:{at // 10 % 60:02}.{at % 10}{at % 7}5"


def pairs(
    count: int,
    form: str = "{t} INFO gw id=r-{at} model=m-{m} client=10.0.0.{c} status={s} input_tokens={i} output_tokens={o} latency_ms={l} ttft_ms={f} end=stop",
) -> str:
    lines = [
        form.format(
            t=stamp(at),
            at=at,
            m=at // 50,
            c=at % 23,
            s=503 if at % 50 == 9 else 200,
            i=at * 37 % 32768,
            o=at % 2049,
            l=at * 11 + 1,
            f=at % 300 / 4,
        )
        for at in range(count)
    ]
    return "\n".join(lines) + "\n"


JSON = '{{"ts": "{t}Z", "level": "info", "id": "r-{at}", "model": "m-{m}", "tenant": "team-{c}", "status": {s}, "input_tokens": {i}, "output_tokens": {o}, "latency_ms": {l}.5, "ttft_ms": {f}, "stream": true}}'
NESTED = '{{"created": 17952{i:05}, "response": {{"model": "m-{m}", "usage": {{"prompt_tokens": {i}, "completion_tokens": {o}, "total_tokens": 7}}}}, "model": "x{c}", "status_code": {s}}}'


@pytest.mark.parametrize("size", [1 << 20, 4000])
@pytest.mark.parametrize(
    "text",
    [
        pairs(300),
        pairs(300).rstrip("\n"),
        pairs(300).replace("\n", "\r\n"),
        pairs(100) + "words of a start\n" + pairs(30, "{t} WARN gw retry input_tokens={i}") + pairs(100),
        pairs(100).replace("input_tokens=7", "input_tokens=-"),
        pairs(100).replace("status=503", "status=timeout"),
        pairs(100).replace("status=503", "status=5030"),
        pairs(100).replace("output_tokens=3", "output_tokens=1234567890"),
        pairs(100).replace("output_tokens=3", "output_tokens=12345678901234567"),
        pairs(100).replace("output_tokens=3", 'output_tokens="3"'),
        pairs(100).replace("id=r-1", 'id="r 1'),
        pairs(100).replace("id=r-1", "id=r=="),
        pairs(100).replace("ttft_ms=2", "ttft_ms=2e1"),
        pairs(100).replace("client=10.0.0.5", "client=" + "long" * 40),
        pairs(100).replace("INFO gw", "INFO 2026-11-20T20:04:51Z"),
        pairs(100, '{t} level=info msg="request done" prompt_tokens={i} completion_tokens={o} latency={l}'),
        pairs(100, "ts={t}Z input_tokens={i} output_tokens={o}").replace("2026-11-20 ", "2026-11-20T"),
        pairs(100, "[{t},] (input_tokens={i}, output_tokens={o}, model={m})"),
        pairs(100, "x={at} input_tokens={i} output_tokens={o} duration={f}"),
        pairs(100, "{t} input_tokens={i} output_tokens={o} duration={l}ms"),
        pairs(100, "{t} prompt_tokens={i} input_tokens={i} output_tokens={o}"),
        pairs(300, JSON),
        pairs(300, JSON).replace("\n", "\r\n").replace("11-20 ", "11-20T"),
        pairs(100, JSON).replace('"ttft_ms": 2', '"ttft_ms": null, "x": 2'),
        pairs(100, JSON).replace('"ttft_ms": 1.0', '"ttft_ms": null'),
        pairs(100, JSON).replace('"team-3"', "null").replace('"team-4"', "17").replace('"team-5"', '"a \\" b"'),
        pairs(100, JSON).replace('"r-7"', '"}{"').replace('"r-8"', "{}"),
        pairs(100, JSON).replace('"status": 503', '"status": "oops"'),
        pairs(100, JSON).replace('"input_tokens": 3', '"input_tokens": 3e0'),
        pairs(100, JSON).replace('"level"', '"model"'),
        pairs(300, NESTED),
        pairs(100, NESTED).replace('"x3"', "null"),
        pairs(100, NESTED).replace('"usage": {', '"other": {"n": 1}, "usage": {'),
        pairs(100, '{{"usage": null, "input_tokens": {i}, "output_tokens": {o}}}').replace(
            "null", '{"prompt_tokens": 5}'
        ),
        pairs(100, '{{"input_tokens": {i}, "output_tokens": {o}, "prompt": "a, b {at}"}}'),
        "t;input_tokens;output_tokens;model\n" + pairs(100, "{t};{i};{o};m{m}"),
        "time,input_tokens,output_tokens,latency_s\r\n"
        + pairs(100, "{t},{i},{o},{f}").replace("\n", "\r\n")
        + "x,y\r\n",
        "time,input_tokens,output_tokens,latency_s\n" + pairs(100, "17952050{at:02}.5,{i},,{f}").replace("latency", ""),
        "t_s,prompt_tokens,completion_tokens,latency_s\n" + pairs(100, "{f},{i},{o},{l}"),
        "t_s,prompt_tokens,completion_tokens\n" + pairs(100, "{f},{i},{o}").replace("\n3.0,", "\n1795205000.5,"),
        "time_ms,prompt_tokens,completion_tokens\n"
        + pairs(100, "17952050{at:02}500,{i},{o}").replace("\n1795205007500,", "\n12,"),
        "time_ms,prompt_tokens,completion_tokens\n"
        + pairs(100, "17952050{at:02}500,{i},{o}").replace("\n1795205007500,", "\n,"),
        pairs(100, '{{"arrival_offset_ms": {l}, "prompt_tokens": {i}, "completion_tokens": {o}}}'),
        pairs(100, '{{"arrival_ms": {l}, "ts": "{t}Z", "prompt_tokens": {i}, "completion_tokens": {o}}}'),
        "t_s,system_tokens,user_tokens,prompt_tokens,completion_tokens\n" + pairs(100, "{f},{m},{l},{i},{o}"),
        "t_s,system_tokens,user_tokens,completion_tokens\n" + pairs(100, "{f},{m},{l},{o}"),
        "t_s,user_tokens,completion_tokens\n" + pairs(100, "{f},{l},{o}"),
        pairs(100, '{{"system_tokens": {m}, "user_tokens": {l}, "completion_tokens": {o}}}'),
        pairs(100, "{t} INFO user_tokens={i} output_tokens={o}"),
        pairs(100, "{t} INFO t_s={f} input_tokens={i} output_tokens={o}"),
        pairs(100, "INFO t_s={f} input_tokens={i} output_tokens={o}"),
    ],
)
def test_the_fast_way_reads_alike(text: str, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        assert len(both_ways(text, size, patch)["request"]) >= 90


@pytest.mark.parametrize("form", [None, JSON, NESTED, "{t},{i},{o},{l}"])
def test_the_fast_way_is_taken(form: str | None) -> None:
    text = pairs(2000, form) if form else pairs(1500)
    if form and form.startswith("{t}"):
        text = "time,input_tokens,output_tokens,latency_ms\n" + text * 2
    assert len(text) > request_log.WORTHWHILE_BYTES
    batches = list(request_log.read("any", chunks(io.BytesIO(text.encode()))))
    assert all(isinstance(batch.columns["line"], np.ndarray) for batch in batches)


ANY_LINE = st.one_of(
    st.sampled_from([*pairs(20).splitlines(), *pairs(9, JSON).splitlines(), *pairs(9, NESTED).splitlines()]),
    st.text('{}[]":, =input_tokens0123456789\\\n', max_size=60),
    st.lists(st.sampled_from(["input_tokens=5", "output_tokens=x", "model=a,b", 'a="b c"', "(ttft=1s)", "status=99", "2026-11-20 20:04:51", "="]), max_size=9).map(" ".join),
    st.dictionaries(
        st.sampled_from(["input_tokens", "output_tokens", "usage", "model", "status", "latency", "ts", "user"]),
        st.one_of(st.none(), st.integers(), st.floats(), st.booleans(), st.text(max_size=5), st.dictionaries(st.sampled_from(["prompt_tokens", "model"]), st.integers(0, 99))),
    ).map(json.dumps),
)  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(ANY_LINE, st.integers(1, 6)), max_size=12), st.integers(20, 3000))
def test_any_lines_read_alike(lines: list[tuple[str, int]], size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        both_ways("\n".join(line for line, times in lines for _ in range(times)), size, patch)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.one_of(ANY_LINE.map(str.encode), st.binary(max_size=60))), st.integers(1, 2000))
def test_any_bytes(lines: list[bytes], size: int) -> None:
    data = b"\n".join(lines)
    tables = read(data, size)
    assert all(1 <= row["line"] <= data.count(b"\n") + 1 for rows in tables.values() for row in rows)
    assert all(
        0 <= row.get(name, 0) < 1 << 63
        for row in tables.get("request", [])
        for name in ("input_tokens", "output_tokens", "status")
    )
    request_log.matches(make_head("any", data))


# ---- recognising


@pytest.mark.parametrize(
    "text",
    [pairs(5), pairs(5, JSON), pairs(5, NESTED), PAIRS, "2026-11-20T20:04:51Z req done input_tokens=5 output_tokens=6\n",
     "started\nlistening on 8000\n" + pairs(3), "input_tokens,output_tokens\n5,6\n"],
)  # fmt: skip
def test_recognised(text: str) -> None:
    assert is_log(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "INFO 11-20 20:04:51 [logger.py:43] Received request r-1: prompt: 'input_tokens=9 output_tokens=1', params: x=1\n"
        * 9,
        "(APIServer pid=7) INFO 11-20 20:04:51 [logger.py:43] grep input_tokens=9 output_tokens=1 please\n" * 9,
        "It failed for input_tokens=7420 output_tokens=312 although the pool was half empty, so we looked at the rest.\n",
        "The gateway logs input_tokens and output_tokens of each request.\nPrompt tokens, completion tokens: see below.\n",
        "[ 12.5] Memory cgroup out of memory: Killed process 77 (python) total-vm:1kB, anon-rss:2kB\n",
        "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: vllm\n    args: [--max-model-len=8192]\n",
        "Name: vllm-0\nLabels: app=vllm\nNode: gpu-1\nContainers:\n  vllm:\n    Limits: nvidia.com/gpu: 1\n",
        '{"asctime": "2026-11-20 20:46:31,815", "levelname": "INFO", "message": "Received request r-1: params: SamplingParams(max_tokens=5)"}\n'
        * 5,
        '{"kind": "Pod", "metadata": {"name": "x"}, "status": {"phase": "Running"}}\n',
        '{"architectures": ["LlamaForCausalLM"], "max_position_embeddings": 32768}\n',
        "timestamp, index, memory.used [MiB]\n2026/11/20 20:04:51.1, 0, 5 MiB\n",
        "vllm serve acme/m-7b --max-num-seqs=64 --max-model-len=8192\n",
    ],
)
def test_not_recognised(text: str) -> None:
    assert not is_log(text)


@pytest.mark.parametrize("status", [400, 429, 500, 599])
@pytest.mark.parametrize(
    "line",
    ['{{"time": "2026-03-17T07:19:28Z", "status": {}, "elapsed_ms": 47, "error": "too long"}}', "2026-03-17T07:19:28Z INFO gw status={} elapsed_ms=47"],
    ids=["JSON", "pairs"],
)  # fmt: skip
def test_a_request_without_an_answer_has_a_status_and_a_duration_alone(line: str, status: int) -> None:
    """Nobody counts the tokens of what was refused; left out, the rest of the log looks as if all had been answered."""
    answered = '{"time": "2026-03-17T07:19:27Z", "status": 200, "elapsed_ms": 900, "usage": {"prompt_tokens": 10, "completion_tokens": 4}}\n'
    rows = read(answered + line.format(status) + "\n")["request"]
    assert [row["status"] for row in rows] == [200, status]
    assert rows[1]["latency_s"] == 0.047 and "input_tokens" not in rows[1]


@pytest.mark.parametrize(
    "line", ['{{"status": {}, "elapsed_ms": 2, "path": "/health"}}', '{{"status": 404, "path": "/x"}}']
)
def test_what_was_answered_without_tokens_is_no_request(line: str) -> None:
    answered = '{"time": "2026-03-17T07:19:27Z", "status": 200, "elapsed_ms": 900, "usage": {"prompt_tokens": 10, "completion_tokens": 4}}\n'
    assert [row["status"] for row in read(answered + line.format(200) + "\n")["request"]] == [200]
