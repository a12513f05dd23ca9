"""A reading that is kept between two chunks goes on as if nothing had been."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from growing import dense
from oomdoc import ingest
from oomdoc.evidence.tables import Batch
from oomdoc.ingest import kept
from oomdoc.ingest.base import Reading
from oomdoc.intake.bundle import open_bundle
from oomdoc.intake.scan import Chunk, chunks

SAMPLES = Path(__file__).parents[1] / "sample_logs"


def plain(batch: Batch) -> Any:
    """A batch as what can be compared: values and types."""
    columns = {}
    for name, column in batch.columns.items():
        if isinstance(column, list):
            columns[name] = ["list", column]
        else:
            masked = isinstance(column, np.ma.MaskedArray)
            columns[name] = [str(column.dtype), masked, column.tolist()]
    return repr([batch.table, batch.writer, columns])


def sources() -> Iterator[tuple[str, bytes]]:
    """Every text of the shipped samples, once, and each kind that can be kept at a length that is read by columns."""
    seen = set()
    for path in sorted(SAMPLES.iterdir()):
        for member in open_bundle([path]).members():
            data = member.stream.read()
            if data not in seen and data.count(b"\n") > 8:
                seen.add(data)
                yield f"{path.name}/{member.path}", data


def straight(reading: Reading, pieces: list[Chunk]) -> list[Any]:
    """What a reading tells."""
    return [plain(batch) for piece in pieces for batch in reading.chunk(piece)] + [
        plain(batch) for batch in reading.close()
    ]


def interrupted(reading: Reading, pieces: list[Chunk]) -> list[Any]:
    """The same, kept as text after each chunk, and its batches as bytes."""
    out: list[Any] = []
    packed = b""
    for piece in pieces:
        told = kept.Told(1 << 40, packed)
        for batch in reading.chunk(piece):
            told.add(batch)
        closed = told.close()
        assert closed is not None
        packed = closed
        reading = kept.thaw(kept.freeze(reading))
    out += [plain(batch) for batch in kept.told(packed)]
    return out + [plain(batch) for batch in reading.close()]


@pytest.mark.parametrize("size", [2_000, 64 << 10, 300_000])
def test_a_reading_that_was_kept_goes_on_as_if_nothing_had_been(size: int) -> None:
    kinds = set()
    for path, data in [*sources(), *((path, data[:60_000]) for path, data in dense())] if size == 2_000 else dense():
        pieces = list(chunks(io.BytesIO(data), size))
        ingestor, kind = ingest.recognise(ingest.make_head(path, pieces[0].data))
        reading, twin = ingest.reading(ingestor, path), ingest.reading(ingestor, path)
        if reading is None or twin is None or binary(data):
            continue
        kinds.add(ingestor.KIND)
        assert interrupted(twin, pieces) == straight(reading, pieces), (path, kind)
    assert kinds == {"text-log", "request-log", "nvidia-smi", "metrics"}


def binary(data: bytes) -> bool:
    """Whether no reader would be asked."""
    return b"\0" in data[:1000]


def test_what_is_kept_makes_nothing_but_readings() -> None:
    for text in (
        '["object", 0, "os.system", {}]', '["method", ["object", 0, "ingest.record.Clock", {}], "__class__"]', '["_object", 0]', "[]", "7", "{", '["same", 3]',
        '["object", 0, "ingest.record.Clock", {}]', '["constant", "plan"]', '["array", "object", ""]',
    ):  # fmt: skip
        with pytest.raises(kept.NotKeptError):
            kept.thaw(text)
    with pytest.raises(kept.NotKeptError):
        list(kept.told(b"no frame of zstd"))


def test_what_it_does_not_know_is_not_kept() -> None:
    reading: Any = ingest.Texts()
    reading.other = object()
    with pytest.raises(kept.NotKeptError):
        kept.freeze(reading)


def test_rows_that_take_as_long_to_load_as_to_read_are_not_kept() -> None:
    rng = np.random.default_rng(1)
    for rows, kept_ in ((100, True), (100_000, False)):
        told = kept.Told(16_000)
        for _ in range(10):
            told.add(Batch("gpu_sample", {"line": rng.integers(0, 1 << 40, rows // 10)}))
        assert (told.close() is not None) == kept_
