"""In work: the memory-summary reader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from oomdoc.ingest.base import Head
from oomdoc.scan import Chunk
from oomdoc.tables import Batch

KIND = "memory-summary"
TABLES = ("allocator_stat", "problem")


def matches(head: Head) -> bool:
    """Nothing yet."""
    return False


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """Nothing yet."""
    yield from ()
