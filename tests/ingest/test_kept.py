"""A reading that is kept between two chunks goes on as if nothing had been."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oomdoc import ingest
from oomdoc.bundle import open_bundle
from oomdoc.ingest import kept
from oomdoc.ingest.base import Reading
from oomdoc.scan import Chunk, chunks
from oomdoc.tables import Batch

SAMPLES = Path(__file__).parents[2] / "sample_logs"


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


def dense() -> Iterator[tuple[str, bytes]]:
    """Long sources of each kind that is read by columns."""
    rng = random.Random(5)
    stamp = "2026-11-20T20:{:02}:{:02}Z".format
    yield (
        "requests.log",
        "".join(
            f"{stamp(at // 60 % 60, at % 60)} INFO gw id=r{at} model=m{at % 3} input_tokens={rng.randrange(9000)} output_tokens={rng.randrange(900)}"
            f" latency_ms={rng.randrange(9000)} status=200\n" + ("a word\n" if at % 701 == 0 else "")
            for at in range(6000)
        ).encode(),
    )
    yield "requests.jsonl", "".join(
        json.dumps({"ts": stamp(at // 60 % 60, at % 60), "usage": {"prompt_tokens": at % 977, "completion_tokens": None if at % 50 == 0 else 5}}) + "\n"
        for at in range(6000)
    ).encode()  # fmt: skip
    yield (
        "smi.csv",
        b"timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB]\n"
        + "".join(
            f"2026/11/20 20:{at // 120 % 60:02}:{at // 2 % 60:02}.120, {at % 2}, {at % 100} %, {70000 + at} MiB, 81559 MiB\n"
            for at in range(8000)
        ).encode(),
    )
    yield (
        "vllm.log",
        (
            "INFO 11-20 20:00:00 [api_server.py:1] vLLM API server version 0.11.0\n"
            + "".join(
                f"INFO 12-31 2{at // 3600 % 4}:{at // 60 % 60:02}:{at % 60:02} [loggers.py:118] Engine 000: Avg prompt throughput: {at}.5 tokens/s, Avg generation "
                f"throughput: 96.0 tokens/s, Running: {at % 9} reqs, Waiting: 0 reqs, GPU KV cache usage: {at % 100}.5%, Prefix cache hit rate: 6.5%\n"
                + (
                    f"(EngineCore pid=7) ERROR 01-01 00:00:01 [core.py:1] ValueError: thing {at}\n"
                    if at % 997 == 996
                    else ""
                )
                for at in range(5000)
            )
        ).encode(),
    )
    yield (
        "metrics.txt",
        "".join(
            f"# 2026-11-20T20:{at // 60:02}:{at % 60:02}Z\n# TYPE vllm:kv_cache_usage_perc gauge\n"
            f'vllm:kv_cache_usage_perc{{engine="0",model_name="m"}} 0.{at}\nvllm:num_requests_running{{engine="0"}} {at % 7}\n'
            f'DCGM_FI_DEV_FB_USED{{gpu="0",UUID="GPU-5a",modelName="NVIDIA H100 80GB HBM3"}} {70000 + at}\n'
            f'DCGM_FI_DEV_FB_FREE{{gpu="0",UUID="GPU-5a",modelName="NVIDIA H100 80GB HBM3"}} 500\nvllm:broken x y z\n'
            for at in range(900)
        ).encode(),
    )
    yield (
        "writers.log",
        "".join(
            f"[pod/llm-{at % 2}/main] INFO 11-20 20:{at // 60 % 60:02}:{at % 60:02} [loggers.py:118] Engine 000: Avg prompt throughput: {at}.5 tokens/s, Avg generation "
            f"throughput: 96.0 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 5.5%, Prefix cache hit rate: 6.5%\n"
            for at in range(3000)
        ).encode(),
    )


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
        told = kept.Told(packed)
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


def test_too_many_batches_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept.Told, "MOST_BYTES", 1000)
    told = kept.Told()
    rng = np.random.default_rng(1)
    for _ in range(100):
        told.add(Batch("gpu_sample", {"line": rng.integers(0, 1 << 40, 5000)}))
    assert told.close() is None
