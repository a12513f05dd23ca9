"""Tables behind bars, tabs and semicolons, and events as JSON, asked before the readers of tools' own outputs.

No tool that has a reader of its own writes such tables, but their words stand in them: a table of events copied into
Markdown is no output of kubectl.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from oomdoc.evidence.tables import Batch
from oomdoc.ingest import forms
from oomdoc.ingest.base import HEAD_BYTES, Head
from oomdoc.ingest.forms.tables import first_layout
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

KIND = forms.KIND
_CUTS = ("|", "\t", ";")
_EVENTS = regex(rb'"reason"', re.I)
_OBJECT = regex(rb'"apiVersion"|"involvedObject"\s*:\s*\{')
"""What the cluster's own objects have: an event says whom it is about in an object of its own."""


def matches(head: Head) -> bool:
    """A table of ours that is at least half of the text, and cut by one of these."""
    if head.data.lstrip()[:1] in (b"{", b"["):
        return _EVENTS.search(head.data) is not None and _OBJECT.search(head.data) is None and bool(forms.form_of(head))
    if b"\x00" in head.data or not any(cut.encode() in head.data for cut in _CUTS):
        return False
    lines = head.data.decode("utf-8", "replace").split("\n")
    if len(lines) > 1 and len(head.data) >= HEAD_BYTES:
        lines.pop()
    first = first_layout(lines)
    return first is not None and first.cut in _CUTS and forms.form_of(head) == "table"


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """Rows of every table that the vocabulary knows."""
    yield from forms.read(path, chunks)
