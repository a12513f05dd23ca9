"""Statistics lines read many at once, where some of them turn out to be of another shape."""

from __future__ import annotations

import pytest

from oomdoc.ingest import alike, text_log
from oomdoc.ingest.record import Clock, Record
from oomdoc.intake.scan import Chunk

LINE = (
    "INFO 12-{} 20:00:{:02} [loggers.py:118] Engine 000: Avg prompt throughput: {}.5 tokens/s, Avg generation throughput: 96.0 tokens/s, "
    "Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 3.5%, Prefix cache hit rate: 6.5%\n"
)


def test_a_date_that_does_not_exist_ends_the_shape_and_nothing_else() -> None:
    good = [LINE.format(31, second, second) for second in range(40)]
    bad = [LINE.format(32, second, second) for second in range(20)]
    pieces = ["".join(good[:3]), "".join(good[3:20]), "".join(bad), "".join(good[20:])]
    reader, line = text_log.Reader(), 1
    for piece in pieces:
        reader.chunk(Chunk(piece.encode(), line, True))
        line += piece.count("\n")
    batches = [batch for batch in reader.take() if batch.table == "engine_stat"]
    assert sorted(line for batch in batches for line in batch.columns["line"]) == list(range(1, 61))


def _kv_used(text: str) -> dict[int, float]:
    reader = text_log.Reader()
    reader.chunk(Chunk(text.encode(), 1, True))
    rows = [batch for batch in reader.take() if batch.table == "engine_stat"]
    return {
        int(line): round(float(used), 3)
        for batch in rows
        for line, used in zip(batch.columns["line"], batch.columns["kv_used"], strict=True)
        if used is not None
    }


def test_statistics_that_a_terminal_cut_are_read_whole() -> None:
    whole = LINE.format(30, 1, 1) + LINE.format(30, 2, 2)
    for place in (70, 110, 150, 195):  # within a word, a number or the figures behind `Running`
        line = LINE.format(30, 9, 9).replace("3.5%", "97.5%")
        cut = line[:place] + "\n" + line[place:]
        access = 'INFO:     10.0.0.7:40112 - "GET /metrics HTTP/1.1" 200 OK\n'
        assert _kv_used(whole + cut + access + LINE.format(30, 10, 10)) == {1: 0.035, 2: 0.035, 3: 0.975, 6: 0.035}


def test_a_statistics_line_cut_off_for_good_takes_nothing_from_the_next() -> None:
    lines = LINE.format(30, 1, 1)[:120] + "\n" + LINE.format(30, 2, 2)
    assert _kv_used(lines) == {2: 0.035}


def test_a_log_of_statistics_keeps_its_shape_from_chunk_to_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines read plainly cost twelve times as much: in a log of one shape they stay below one in a hundred."""
    plainly = 0
    read = text_log.read_record

    def counted(line: int, text: str, clock: Clock) -> Record:
        nonlocal plainly
        plainly += 1
        return read(line, text, clock)

    monkeypatch.setattr(text_log, "read_record", counted)
    reader, line = text_log.Reader(), 1
    for count in (600, *[5000] * 20):  # 128 KiB, then 1 MiB, as files are read: the first chunk teaches the shape
        reader.chunk(Chunk("".join(LINE.format(30, n % 60, n) for n in range(count)).encode(), line, True))
        line += count
    rows = sum(len(batch.columns["line"]) for batch in reader.take() if batch.table == "engine_stat")
    assert rows == line - 1
    assert plainly < rows / 100


def test_a_log_of_statistics_is_read_whole_from_its_third_chunk_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second chunk tells that such lines fill it; of one that was read whole none are left, which tells nothing."""
    reader, line, whole = text_log.Reader(), 1, []
    read = reader.alike.read

    def told(chunk: Chunk) -> object:
        whole.append(read(chunk))
        return whole[-1]

    monkeypatch.setattr(reader.alike, "read", told)
    for _ in range(6):
        reader.chunk(Chunk("".join(LINE.format(30, n % 60, n) for n in range(500)).encode(), line, True))
        line += 500
    reader.chunk(Chunk(b"nothing of that form\n" * 500, line, True))
    reader.chunk(Chunk(b"nothing of that form\n" * 500, line + 500, True))
    assert [mask is not None for mask in whole] == [False, False, True, True, True, True, False, False]
    rows = [batch for batch in reader.take() if batch.table == "engine_stat"]
    assert sorted(line for batch in rows for line in batch.columns["line"]) == list(range(1, 3001))


def test_nothing_that_waits_leaves_the_shape_alone() -> None:
    reader = text_log.Reader()
    reader.chunk(Chunk("".join(LINE.format(30, n, n) for n in range(40)).encode(), 1, True))
    reader.alike.flush()
    learned = reader.alike._template
    assert learned is not None
    reader.alike.flush()
    assert reader.alike._template is learned


def test_few_statistics_are_read_as_many_are_and_without_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [LINE.format(30, n % 60, n) for n in range(300)]
    lines[150] = lines[150].replace("Waiting: 0 reqs", "Waiting: many")
    told = []
    for worthwhile in (1, 1000):
        monkeypatch.setattr(alike, "_WORTHWHILE", worthwhile)
        reader = text_log.Reader()
        reader.chunk(Chunk("".join(lines[:5]).encode(), 1, True))  # teaches the shape
        reader.chunk(Chunk("".join(lines[5:]).encode(), 6, True))
        rows: list[dict[str, object]] = []
        arrays = 0
        for batch in reader.take():
            arrays += any(hasattr(column, "dtype") for column in batch.columns.values())
            rows += [
                {name: column[at] for name, column in batch.columns.items() if column[at] is not None}
                for at in range(batch.rows)
            ]
        told.append(sorted(rows, key=lambda row: (len(row), row["line"])))
        assert bool(arrays) == (worthwhile == 1)
    assert told[0] == told[1]
    assert len(told[0]) > 290
