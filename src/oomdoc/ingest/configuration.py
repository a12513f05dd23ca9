"""Configurations of other programs: YAML of alerts, charts, exporters. What words in them say happened to nobody.

Asked after all that read a configuration (`kubernetes`, `launch`); words of the engine in it are counted as look-alikes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Head, Rows, read_by
from oomdoc.ingest.text_form import is_configuration
from oomdoc.ingest.texts import Quotations
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

KIND = "configuration"
_SHARING = regex(rb"(?i)^\s*(?:- )?[\"']?(?:timeSlicing|time-slicing|mps)[\"']?\s*:\s*(?:#.*)?$")
_TIMES = regex(rb"^\s*(?:- )?[\"']?replicas[\"']?\s*:\s*(?P<n>\d{1,4})\s*(?:#.*)?$")
_BELOW = 8  # lines between the kind of sharing and the number: a list of resources with a name each


def matches(head: Head) -> bool:
    """YAML with levels (`text_form.is_configuration`)."""
    return is_configuration(head)


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """The look-alikes, and how often a device plugin offers each device."""
    kept = list(chunks)
    yield from read_by(Quotations(pasted=False), kept)
    rows = Rows()
    for chunk in kept:
        offered(rows, chunk)
    yield from rows.take()


def offered(rows: Rows, chunk: Chunk) -> None:
    """A device plugin that offers each device to several: by slices of time, or through MPS without limits of its own.

    A row of `note`, topic several-engines, value how often; one that offers it once shares nothing.
    """
    begun = 0
    for number, line in enumerate(chunk.data.split(b"\n"), chunk.first_line):
        if _SHARING.match(line):
            begun = number
        elif begun and (found := _TIMES.match(line)) and number - begun <= _BELOW:
            begun = 0
            if int(found["n"]) > 1:
                text = f"each device is offered {int(found['n'])} times: {line.decode('utf-8', 'replace').strip()}"
                rows.add("note", number, topic="several-engines", value=float(found["n"]), text=text)
