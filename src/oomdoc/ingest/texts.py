"""What is read of a text by all who may have written in it: the patterns of all dialects, and quoted tables of the allocator.

`Texts` reads a log. `Quotations` reads a document or a chat: a log that somebody pasted into it is read, a message that it quotes
is counted as a look-alike, and so is every message in source code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from oomdoc.evidence.tables import LOOKALIKE, Batch
from oomdoc.ingest import (
    container_stats,
    host_memory,
    memory_summary,
    slurm_jobs,
    stacks,
    text_form,
    text_log,
    weight_files,
)
from oomdoc.ingest.writers import Writers
from oomdoc.intake.scan import Chunk, Words

_BESIDE: tuple[tuple[Callable[[], Any], tuple[bytes, ...]], ...] = (
    (memory_summary.Quoted, (memory_summary.RULE,)),
    (host_memory.Listings, host_memory.ANCHORS),
    (stacks.Stacks, stacks.ANCHORS),
    (weight_files.WeightFiles, weight_files.ANCHORS),
    (container_stats.Stats, container_stats.ANCHORS),
    (slurm_jobs.Jobs, slurm_jobs.ANCHORS),
)
"""Who reads a text beside the patterns, and the words without which a chunk holds nothing for them."""
_WORDS = Words(*(anchors for _, anchors in _BESIDE))


class Texts:
    """What is read of a text by all who wrote it."""

    def __init__(self) -> None:
        self._writers = Writers()
        self._texts: dict[str, Text] = {"": Text()}

    def hear(self, chunk: Chunk) -> None:
        """Read a chunk."""
        for name, piece in self._writers.split(chunk):
            self._texts.setdefault(name, Text()).chunk(piece)

    def chunk(self, chunk: Chunk) -> Iterator[Batch]:
        """Read a chunk, and hand out what has become much."""
        self.hear(chunk)
        yield from self._take(only_full=True)

    def close(self) -> Iterator[Batch]:
        """Hand out the rest."""
        yield from self._take(only_full=False)

    def _take(self, only_full: bool) -> Iterator[Batch]:
        for name, text in self._texts.items():
            for batch in text.take(only_full):
                yield batch._replace(writer=name)


class Text:
    """What is read of a text whatever its kind: the patterns of all dialects, and quoted tables of the allocator."""

    def __init__(self) -> None:
        self._reader = text_log.Reader()
        self._beside = [made() for made, _ in _BESIDE]

    def chunk(self, chunk: Chunk) -> None:
        """Read a chunk."""
        for reader, named in zip(self._beside, _WORDS.seen(chunk.data), strict=True):
            reader.chunk(chunk, named)
        self._reader.chunk(chunk)

    def take(self, only_full: bool) -> Iterator[Batch]:
        """Hand out what was read, or only what has become much."""
        if only_full:
            yield from self._reader.full()
            return
        for reader in (self._reader, *self._beside):
            yield from reader.take()


class Quotations:
    """What is read of a text in which messages are quotations; `pasted`: whether it may hold somebody's own log."""

    def __init__(self, pasted: bool) -> None:
        self._pasted = pasted
        self._logs = Texts()
        self._quotes = Text()

    def hear(self, chunk: Chunk) -> None:
        """Read a chunk."""
        quotes = chunk
        if self._pasted:
            logs, quotes = text_form.own_log(chunk)
            self._logs.hear(logs)
        self._quotes.chunk(quotes)

    def chunk(self, chunk: Chunk) -> Iterator[Batch]:
        """Read a chunk, and hand out what has become much."""
        self.hear(chunk)
        yield from self._logs._take(only_full=True)
        yield from _lookalikes(self._quotes.take(only_full=True))

    def close(self) -> Iterator[Batch]:
        """Hand out the rest."""
        yield from self._logs.close()
        yield from _lookalikes(self._quotes.take(only_full=False))


def _lookalikes(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Each line that would have given a row, once."""
    lines = sorted({line for batch in batches for line in batch.columns["line"]})
    if lines:
        yield Batch(LOOKALIKE, {"line": lines})
