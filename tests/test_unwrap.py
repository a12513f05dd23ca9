"""What a collector did to several lines at once is undone: cuts, orders, documents. Line numbers stay, or are those of `show`."""

from __future__ import annotations

import io
import json
import random
import re
from typing import BinaryIO, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoc.intake.entries import DOCUMENT_CAP_BYTES
from oomdoc.intake.scan import Chunk, chunks
from oomdoc.intake.unwrap import numbered, unwrap

STAMP = "2026-11-20T20:04:51.123456789Z"


def undone(data: bytes, size: int = 1 << 20) -> list[Chunk]:
    return list(unwrap(chunks(cast(BinaryIO, io.BytesIO(data)), size)))


def text(data: bytes, size: int = 1 << 20) -> str:
    return b"".join(chunk.data for chunk in undone(data, size)).decode()


def test_cri_pieces_are_joined_where_they_began() -> None:
    log = f"{STAMP} stdout F one\n{STAMP} stdout P tw\n{STAMP} stderr F other\n{STAMP} stdout P o is \n{STAMP} stdout F cut\n{STAMP} stdout F three\n"
    assert text(log.encode()).split("\n") == [
        f"{STAMP} stdout F one",
        f"{STAMP} stdout F two is cut",
        f"{STAMP} stderr F other",
        "",
        "",
        f"{STAMP} stdout F three",
        "",
    ]


def test_pieces_join_over_the_end_of_a_chunk() -> None:
    log = "".join(f"{STAMP} stdout {'P' if n % 5 else 'F'} piece {n};\n" for n in range(1, 400)).encode()
    assert text(log, 200) == text(log)
    assert text(log).count("\n") == log.count(b"\n")
    assert "piece 1;piece 2;piece 3;piece 4;piece 5;" in text(log)


def test_an_endless_cut_line_does_not_fill_the_memory() -> None:
    log = (f"{STAMP} stdout P " + "x" * 1000 + "\n").encode() * 9000
    pieces = undone(log)
    assert sum(chunk.data.count(b"\n") for chunk in pieces) == 9000
    assert max(len(chunk.data) for chunk in pieces) < 7 << 20


def test_docker_pieces_are_joined_and_whole_lines_untouched() -> None:
    def piece(log: str) -> str:
        return json.dumps({"log": log, "stream": "stdout", "time": STAMP}, separators=(",", ":")) + "\n"

    cut = (piece("one\n") + piece("tw") + piece("o\n") + piece("three\n")).encode()
    assert [json.loads(line)["log"] if line else "" for line in text(cut).split("\n")] == [
        "one\n",
        "two\n",
        "",
        "three\n",
        "",
    ]
    whole = (piece("one\n") + piece('say "x"\n')).encode()
    assert [chunk.data for chunk in undone(whole)] == [whole]


def test_an_agent_that_drops_newlines_cuts_nothing() -> None:
    """Fluent Bit writes the same keys without the newline: nothing is a piece there."""
    log = b"".join(b'{"log":"line %d","stream":"stdout","time":"2026-11-20T20:04:51Z"}\n' % n for n in range(5))
    assert text(log) == log.decode()


def test_journal_export_is_a_line_an_entry() -> None:
    entry = "__CURSOR=s=1\n__REALTIME_TIMESTAMP=1795205091500000\n_HOSTNAME=node 7\nSYSLOG_IDENTIFIER=vllm\n_PID=4\nMESSAGE={}\n\n"
    binary = (
        b"__REALTIME_TIMESTAMP=1795205092500000\nSYSLOG_IDENTIFIER=vllm\nMESSAGE\n"
        + (6).to_bytes(8, "little")
        + b"a\n\nb\x1b[\n\n"
    )
    log = entry.format("hello").encode() + binary + b"__REALTIME_TIMESTAMP=1795205093500000\nPRIORITY=6\n\n"
    assert text(log, 64).split("\n") == [
        "2026-11-20T20:04:51.500000Z node_7 vllm[4]: hello",
        "2026-11-20T20:04:52.500000Z host vllm: a",
        "2026-11-20T20:04:52.500000Z host vllm: ",
        "2026-11-20T20:04:52.500000Z host vllm: b\x1b[",
        "",
    ]


def test_the_last_entry_of_an_export_comes_with_those_before_it() -> None:
    """A message of two lines is two entries: both are looked at together, also at the end."""
    entry = "__REALTIME_TIMESTAMP=1795205091500000\nSYSLOG_IDENTIFIER=vllm\nMESSAGE={}\n\n"
    export = "".join(entry.format(said) for said in ("OOM on device 5", "while trying to allocate 64 bytes")).encode()
    for size in (64, len(export)):
        *_, last = unwrap(chunks(io.BytesIO(export), size))
        assert last.data.count(b"\n") == 2


def test_journal_json_numbers_are_text_again() -> None:
    rows = [
        {"__REALTIME_TIMESTAMP": "1795205091500000", "MESSAGE": "plain"},
        {"__REALTIME_TIMESTAMP": "1795205091500000", "MESSAGE": list(b"\x1b[1mred \xff")},
        {"__REALTIME_TIMESTAMP": "1795205091500000", "MESSAGE": [1, 2, 999]},
    ]
    lines = text("".join(json.dumps(row) + "\n" for row in rows).encode()).split("\n")
    assert json.loads(lines[1])["MESSAGE"] == "\x1b[1mred \ufffd"
    assert lines[2] == json.dumps(rows[2])


T = 1795205091


def entries(form: str) -> bytes:
    """Three lines of three seconds, newest first, as a tool hands them over."""
    stamps = [T + 2, T + 1, T]
    lines = ["third", 'second "x"', "first"]
    pairs = list(zip(stamps, lines, strict=True))
    if form == "loki-api":
        return json.dumps({"data": {"resultType": "streams", "result": [{"stream": {"pod": "a"}, "values": [[f"{t}000000000", line] for t, line in pairs[::2]]}, {"stream": {"pod": "b"}, "values": [[f"{t}000000000", line] for t, line in pairs[1:2]]}]}}).encode()  # fmt: skip
    if form == "loki-jsonl":
        return "".join(json.dumps({"labels": {}, "line": line, "timestamp": f"2026-11-20T20:04:{t - T + 51:02d}Z"}) + "\n" for t, line in pairs).encode()  # fmt: skip
    if form == "grafana":
        return json.dumps([{"line": line, "timestamp": f"{t}000000000"} for t, line in pairs], indent=1).encode()
    if form == "gcloud":
        return json.dumps([{"textPayload": line, "timestamp": f"2026-11-20T20:04:{t - T + 51:02d}Z"} for t, line in pairs]).encode()  # fmt: skip
    if form == "cloudwatch":
        return json.dumps({"events": [{"timestamp": t * 1000, "message": line} for t, line in pairs[::-1]]}).encode()
    if form == "filtered":
        found = [
            {"logStreamName": "box-7/[chat]", "timestamp": t * 1000, "message": line, "eventId": "1"}
            for t, line in pairs[::-1]
        ]
        searched = [{"logStreamName": "box-7", "searchedCompletely": True}]
        return json.dumps({"searchedLogStreams": searched, "nextToken": "a/b", "events": found}, indent=1).encode()
    rows = [f'2026-11-20 20:04:{t - T + 51:02d}.000,"' + line.replace('"', '""') + '"' for t, line in pairs]
    return ("@timestamp,@message\n" + "\n".join(rows)).encode()


def test_streams_of_several_pods_tell_who_wrote_a_line() -> None:
    stamp = "2026-11-20T20:04:5"
    assert text(entries("loki-api")).splitlines() == [
        f"{stamp}1.000000Z [pod/a/-] first", f'{stamp}2.000000Z [pod/b/-] second "x"', f"{stamp}3.000000Z [pod/a/-] third",
    ]  # fmt: skip


FORMS = ("loki-api", "loki-jsonl", "grafana", "gcloud", "cloudwatch", "filtered", "insights")


@pytest.mark.parametrize("form", FORMS)
def test_a_document_is_lines_oldest_first(form: str) -> None:
    lines = re.sub(r"\[pod/(?:a|b)/-\] ", "", text(entries(form))).splitlines()
    assert lines == [
        "2026-11-20T20:04:51.000000Z first",
        '2026-11-20T20:04:52.000000Z second "x"',
        "2026-11-20T20:04:53.000000Z third",
    ]


@pytest.mark.parametrize("form", FORMS)
def test_show_counts_the_lines_of_a_document_the_same_way(form: str) -> None:
    stream = numbered(cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, io.BytesIO(entries(form))))))
    shown = b""
    while block := stream.read(1 << 20):
        shown += block
    assert shown.decode() == text(entries(form))


def test_entries_of_one_moment_come_as_they_were_written() -> None:
    rows = [{"line": f"line {n}", "labels": {}, "timestamp": "2026-11-20T20:04:51Z"} for n in range(5)][::-1]
    lines = text("".join(json.dumps(row) + "\n" for row in rows).encode()).splitlines()
    assert [line[-1] for line in lines] == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize(
    "data",
    [
        b"INFO 01-05 12:00:00 [a.py:1] hello\n",
        b'[{"timestamp": "2026-11-20T20:04:51Z", "message": "hi", "prompt_tokens": 5}]',  # a request log
        b'{"items": [{"message": "pulled", "timestamp": 5}]}',
        b'{"timestamp": "2026-11-20T20:04:51Z", "message": "a line of its own"}\n{"message": "another"}\n',
        b"2026-11-20T20:04:51Z no envelope but a stamp\n",
        b"@timestamp, said the user\n",
        b"",
    ],
)
def test_other_texts_come_back_as_they_are(data: bytes) -> None:
    assert text(data) == data.decode()


def test_a_document_that_is_damaged_or_too_large_is_named_and_stays() -> None:
    told: list[str] = []
    data = entries("grafana")[:-3]
    assert b"".join(c.data for c in unwrap(chunks(cast(BinaryIO, io.BytesIO(data))), told.append)) == data
    large = entries("grafana")[:-1] + b"," + b" " * DOCUMENT_CAP_BYTES + b"{}]"
    assert b"".join(c.data for c in unwrap(chunks(cast(BinaryIO, io.BytesIO(large))), told.append)) == large
    assert len(told) == 2 and "could not be read" in told[0] and "more than 12.0 MiB" in told[1]


HEADS = (
    f"{STAMP} stdout P a\n".encode(),
    b'{"log":"a\\n","stream":"stdout"}\n',
    b"__REALTIME_TIMESTAMP=1795205091500000\nMESSAGE\n",
    b'{"__REALTIME_TIMESTAMP": "1", "MESSAGE": [1,\n',
    *(entries(form) for form in FORMS),
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.sampled_from(HEADS), st.binary(max_size=300), st.integers(1, 400), st.randoms(use_true_random=False))
def test_any_bytes_are_undone_or_left(head: bytes, tail: bytes, size: int, chance: random.Random) -> None:
    cut = chance.randrange(len(head) + 1)
    pieces = undone(head[:cut] + tail, size)
    assert all(isinstance(piece.data, bytes) and piece.first_line >= 1 for piece in pieces)


def test_a_docker_log_that_begins_with_a_piece_is_a_docker_log() -> None:
    """The first record is the beginning of a line; it is joined like any other, and nothing is taken for a text handed on."""
    stamp = '"stream":"stdout","time":"2026-11-20T20:04:51Z"'
    log = "".join(f'{{"log":"{part}",{stamp}}}\n' for part in ("one ", "line\\n", "another\\n", "a third\\n"))
    assert text(log.encode()).startswith(f'{{"log":"one line\\n",{stamp}}}\n')


def test_a_collectors_log_that_was_broken_at_a_width_is_joined_twice() -> None:
    """First what a ticket broke, then what the collector cut."""
    words = ("alpha", "beta", "gamma", "delta")
    whole = "".join(f"2026-11-20T20:04:0{at}.1Z stdout F {word} number {at} begins here and goes on for quite a while, longer than a terminal is wide{word}\n" for at, word in enumerate(words))  # fmt: skip
    cut = "2026-11-20T20:04:05.1Z stdout P begins in one pie\n2026-11-20T20:04:05.1Z stdout F ce and ends in another\n"
    broken = "".join(line[at : at + 79] + "\n" for line in (whole + cut).splitlines() for at in range(0, len(line), 79))
    lines = [line for line in text(broken.encode()).split("\n") if line]
    assert lines == [*whole.splitlines(), "2026-11-20T20:04:05.1Z stdout F begins in one piece and ends in another"]
