"""What the collector of `oomdoc collect` could not have, as it writes it down itself: `missing.txt`.

    oomdoc collect: what could not be had, and how to get it
    kernel log: neither dmesg nor journalctl may be read: run as root, or ask for 'dmesg -T' of the node

No evidence of a failure: it says why evidence is absent, so that a report can say so and how to get it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Head, Rows
from oomdoc.intake.scan import Chunk

KIND = "collection"

HEADLINE = "oomdoc collect: what could not be had, and how to get it"
_LINE_CAP = 1000
_MOST = 200


def matches(head: Head) -> bool:
    """The collector's own first line."""
    return head.data.startswith(HEADLINE.encode())


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """One row a line after the first: what, and why together with what to do."""
    rows = Rows()
    for chunk in chunks:
        for number, text in chunk.lines(_LINE_CAP):
            what, colon, why = text.partition(": ")
            if number > 1 and colon and why.strip() and rows.count < _MOST:
                rows.add("uncollected", number, what=what.strip(), why=why.strip())
    yield from rows.take()
