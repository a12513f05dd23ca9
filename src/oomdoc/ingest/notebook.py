"""What the cells of a notebook printed: the log of an engine that somebody runs in Jupyter, Colab or Kaggle.

    "outputs": [{"name": "stderr", "output_type": "stream", "text": [
      "INFO 11-18 13:22:04 [core.py:76] Initializing a V1 LLM engine (v0.10.2) with config: ...\\n",

The file is JSON with one line of output on each of its own lines, as every editor saves it: they are read where they stand, and keep
their numbers. What the cells hold is code, and `launch` reads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import read_by
from oomdoc.ingest.forms.lifted import Lifted
from oomdoc.ingest.texts import Texts
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

TELLING = regex(rb'"nbformat"\s*:')
_SECTION = regex(rb'\s*"(source|outputs|traceback|text|text/plain|metadata|data)"\s*:')
_STRING = regex(rb'\s*("(?:[^"\\]|\\.)*"),?\s*$')


def outputs_of(data: bytes) -> bytes:
    r"""The same number of lines, blank where no output stands.

    >>> outputs_of(b'"outputs": [\n  "text": [\n  "INFO a\\n",\n  "\\u001b[31mb\\n"\n ]\n "source": [\n  "x = 1\\n"\n').split(b"\n")
    [b'', b'', b'INFO a', b'\x1b[31mb', b'', b'', b'', b'']
    """
    lines, output = [], False
    for line in data.split(b"\n"):
        section = _SECTION.match(line)
        output = section[1] in (b"text", b"traceback", b"text/plain") if section else output
        found = _STRING.match(line) if output and not section else None
        lines.append(_text(found[1]) if found else b"")
    return b"\n".join(lines)


def _text(quoted: bytes) -> bytes:
    """A string of JSON without its line end; of several lines in one the last, which names the error."""
    try:
        told = str(json.loads(quoted)).strip("\n").rsplit("\n", 1)[-1]
    except ValueError:
        return b""
    return told.encode("utf-8", "replace")


def read(data: bytes) -> Iterator[Batch]:
    """The rows of a log that the cells printed, and of the frames that they show."""
    lifted = Lifted()
    yield from read_by(Texts(), lifted.chunks([Chunk(outputs_of(data), 1, True)]))
    yield from lifted.take()
