"""In work: the metrics reader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from oomdoc.ingest.base import Head
from oomdoc.scan import Chunk
from oomdoc.tables import Batch

KIND = "metrics"
TABLES = ("metric", "engine_flag", "engine_figure", "problem")


def matches(head: Head) -> bool:
    """Nothing yet."""
    return False


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """Nothing yet."""
    yield from ()
