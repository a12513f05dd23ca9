"""What is read of a text by all who may have written in it: the patterns of all dialects, and quoted tables of the allocator.

`Texts` reads a log. `Quotations` reads a document or a chat: a log that somebody pasted into it is read, a message that it quotes
is counted as a look-alike, and so is every message in source code.
"""

from __future__ import annotations

from collections.abc import Iterator

from oomdoc.evidence.tables import LOOKALIKE, Batch
from oomdoc.ingest import container_stats, host_memory, memory_summary, stacks, text_form, text_log, weight_files
from oomdoc.ingest.writers import Writers
from oomdoc.intake.scan import Chunk, Words

_WORDS = Words(
    (memory_summary.RULE,), host_memory.ANCHORS, stacks.ANCHORS, weight_files.ANCHORS, container_stats.ANCHORS
)
"""What a chunk holds where tables, listings, stacks or lists of files stand in it."""


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
        self._quoted = memory_summary.Quoted()
        self._listings = host_memory.Listings()
        self._stacks = stacks.Stacks()
        self._files = weight_files.WeightFiles()
        self._containers = container_stats.Stats()

    def chunk(self, chunk: Chunk) -> None:
        """Read a chunk."""
        table, listing, stack, files, stats = _WORDS.seen(chunk.data)
        self._quoted.chunk(chunk, table)
        self._listings.chunk(chunk, listing)
        self._stacks.chunk(chunk, stack)
        self._files.chunk(chunk, files)
        self._containers.chunk(chunk, stats)
        self._reader.chunk(chunk)

    def take(self, only_full: bool) -> Iterator[Batch]:
        """Hand out what was read, or only what has become much."""
        if only_full:
            yield from self._reader.full()
            return
        for reader in (self._reader, self._quoted, self._listings, self._stacks, self._files, self._containers):
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
