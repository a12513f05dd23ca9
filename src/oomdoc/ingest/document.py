"""Texts in which messages are quotations: documents, chats and threads, source code (`text_form`).

They fill no table; what they quote is counted (`source.lookalikes`), and a log that somebody pasted into a document or a chat is
read as a log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from oomdoc.evidence.tables import Batch
from oomdoc.ingest import launch, text_form
from oomdoc.ingest.base import Head, read_by
from oomdoc.ingest.texts import Quotations
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

KIND = text_form.DOCUMENT
KINDS = (text_form.DOCUMENT, text_form.CHAT, text_form.SOURCE_CODE)

_ENGINE = regex(rb"(?i)vllm|sglang|\bLLM\(|EngineArgs")


def matches(head: Head) -> bool:
    """Whether the text has one of these forms. A program that makes an engine is left to `launch`, which reads its
    settings; not one that tests others, whose settings are examples."""
    form = text_form.form_of(head)
    makes_engine = (form == text_form.SOURCE_CODE and _ENGINE.search(head.data) and not text_form.is_test(head) and launch.matches(head))  # fmt: skip
    return form is not None and not makes_engine


def kind_of(head: Head) -> str:
    """The name of the form."""
    return text_form.form_of(head) or KIND


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """The look-alikes, and the rows of logs that were pasted in."""
    yield from read_by(Quotations(pasted=True), chunks)
