"""Statistics lines read many at once, where some of them turn out to be of another shape."""

from __future__ import annotations

from oomdoc.ingest import text_log
from oomdoc.scan import Chunk

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
