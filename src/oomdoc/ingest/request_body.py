"""The body of one API request, as somebody saved it to show what fails: what it asks for that costs memory.

{"model": "m", "prompt_logprobs": 5, "messages": [{"content": [{"type": "image_url"}]}]}
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import HEAD_BYTES, Head, Rows, beginning
from oomdoc.ingest.json_pieces import loads
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

KIND = "request-body"

_KEYS = regex(r"\"(?:messages|prompt|prompt_logprobs|echo)\"\s*:")
_MEDIA = regex(r"\"(?:type)\"\s*:\s*\"(?:image|video|audio|input_audio)\w*\"")


_QUOTED = regex(
    rb"(?i)\b(?:prompt|question|user[ _](?:input|message|text|said))s?(?: \w{1,12}){0,3}[\"']?\s?[:=] ?[\"'](?!\W*$)"
)
_CLOSED = regex(rb"[^\s,(\[{=:][\"'](?=[\s,;)\]}])")


def quotes_prompt(before: bytes) -> bool:
    """Whether what stands before a place in a line opens the quotation of a prompt, and does not close it: a user may ask about any log.

    >>> quotes_prompt(b"slot 1 | prompt text begins: 'Explain: "), quotes_prompt(b"prompt='a b', 3 tokens: "), quotes_prompt(b"prompt eval time = 4 ms, ")
    (True, False, False)
    """
    opened = _QUOTED.search(before) if b"'" in before or b'"' in before else None
    return opened is not None and _CLOSED.search(before, opened.end()) is None


def asks(text: str) -> Iterator[dict[str, Any]]:
    """The notes that a body gives; nothing where the text is none, or asks for nothing of the kind."""
    value = loads(text) if text.lstrip()[:1] == "{" and _KEYS.search(text) else None
    if not isinstance(value, dict) or not {"messages", "prompt", "prompt_logprobs", "echo"} & set(value):
        return
    for key in ("prompt_logprobs", "echo"):
        if value.get(key) not in (None, False):
            yield {"topic": "prompt-logprobs", "text": f"the request asks for {key} = {value[key]}"[:300]}
    media = len(re.findall(_MEDIA.pattern, text))
    if media:
        yield {"topic": "multimodal", "value": float(media), "text": f"the request carries {media} media parts"}


def matches(head: Head) -> bool:
    """A small JSON object that is such a body and asks for one of these."""
    return len(head.data) < HEAD_BYTES and any(True for _ in asks(head.data.decode("utf-8", "replace")))


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """The notes, on the first line: the object is one statement."""
    rows = Rows()
    for row in asks(beginning(chunks, HEAD_BYTES).decode("utf-8", "replace")):
        rows.add("note", 1, **row)
    yield from rows.take()
