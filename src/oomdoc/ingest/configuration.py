"""Configurations of other programs: YAML of alerts, charts, exporters. What words in them say happened to nobody.

Asked after all that read a configuration (`kubernetes`, `launch`); words of the engine in it are counted as look-alikes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from oomdoc.ingest.base import Head, read_by
from oomdoc.ingest.text_form import is_configuration
from oomdoc.ingest.texts import Quotations
from oomdoc.scan import Chunk
from oomdoc.tables import Batch

KIND = "configuration"
TABLES: tuple[str, ...] = ()


def matches(head: Head) -> bool:
    """YAML with levels (`text_form.is_configuration`)."""
    return is_configuration(head)


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """The look-alikes."""
    yield from read_by(Quotations(pasted=False), chunks)
