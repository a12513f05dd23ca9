"""Chunks and hits: the fast ways hold against the obvious ones."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoc.ingest import container_stats, host_memory, memory_summary, slurm_jobs, stacks, weight_files
from oomdoc.ingest.texts import _WORDS
from oomdoc.intake.scan import Chunk, LiteralScan, Words, chunks, read_ahead

TEXT = st.lists(st.sampled_from([b"abc", b"ab", b"x", b"\n", b"\r", b"KV", b" ", b"\xff"]), max_size=60).map(b"".join)


@given(TEXT, st.integers(1, 9), st.integers(2, 20))
def test_chunks_lose_nothing_and_number_their_lines(text: bytes, size: int, cap: int) -> None:
    seen, line = b"", 1
    for chunk in chunks(io.BytesIO(text), size, cap):
        assert chunk.first_line == line
        assert chunk.at_line_start == (not seen or seen.endswith(b"\n"))
        line += chunk.data.count(b"\n")
        seen += chunk.data
    assert seen == text


def test_a_line_longer_than_the_cap_goes_on_in_pieces() -> None:
    pieces = list(chunks(io.BytesIO(b"x" * 50 + b"\nnext\n"), 10, 20))
    assert [piece.at_line_start for piece in pieces] == [True, False, False]
    assert [piece.first_line for piece in pieces] == [1, 1, 1]
    assert b"".join(piece.data for piece in pieces).endswith(b"next\n")


@settings(max_examples=200)
@given(TEXT)
def test_hits_equal_their_plain_twin(text: bytes) -> None:
    scan = LiteralScan([b"abc", b"ab", b"KV"])
    chunk = Chunk(text, 7, True)
    assert list(scan.hits(chunk)) == list(scan.hits_plain(chunk))


@pytest.mark.parametrize("before", [0, 100 << 10])
@given(text=TEXT)
def test_words_are_seen_in_short_and_long_texts(before: int, text: bytes) -> None:
    data = b"." * before + text
    assert Words((b"abc", b"KV"), (b"x\xff",)).seen(data) == [b"abc" in data or b"KV" in data, b"x\xff" in data]


def test_what_stands_in_a_log_is_seen_for_each_that_reads_it() -> None:
    groups = (
        (memory_summary.RULE,),
        host_memory.ANCHORS,
        stacks.ANCHORS,
        weight_files.ANCHORS,
        container_stats.ANCHORS,
        slurm_jobs.ANCHORS,
    )
    for group in groups:
        for word in group:
            assert _WORDS.seen(b"." * 100_000 + word) == [group is each for each in groups]
    assert _WORDS.seen(b"avail Memost recent call first" + b"." * 100_000) == [False, True, True, False, False, False]
    assert _WORDS.seen(b"." * 100_000) == [False] * 6


def test_read_ahead_keeps_order_and_passes_errors_on() -> None:
    assert list(read_ahead(range(100), depth=3)) == list(range(100))

    def broken():
        yield 1
        raise OSError("gone")

    items = read_ahead(broken())
    assert next(items) == 1
    with pytest.raises(OSError, match="gone"):
        next(items)


def test_leaving_read_ahead_early_stops_its_producer() -> None:
    ended = []

    def endless():
        try:
            while True:
                yield 1
        finally:
            ended.append(True)

    items = read_ahead(endless(), depth=1)
    next(items)
    items.close()
    import gc

    gc.collect()
    assert ended
