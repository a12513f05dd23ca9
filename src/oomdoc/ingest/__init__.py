"""One module per kind of source, and the tuple that lists them: a new ingestor is a module and a line here.

A source is recognised by its content. The dense kinds (numbers in columns) read alone; every other text is also searched
with the patterns of all dialects, since people paste logs into notes and notes into logs.
"""

from __future__ import annotations

import fnmatch
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from oomdoc.errors import UsageError
from oomdoc.evidence.tables import Batch
from oomdoc.ingest import (
    access_log,
    amd_smi,
    collection,
    configuration,
    device_hosts,
    device_screens,
    document,
    forms,
    group_counters,
    guidellm,
    kubernetes,
    launch,
    load_runs,
    memory_group,
    memory_snapshot,
    memory_stats,
    memory_summary,
    metrics,
    metrics_json,
    model_file,
    moments,
    notebook,
    notes,
    nvidia_smi,
    package_list,
    passages,
    process_list,
    program_text,
    request_body,
    request_log,
    server_answer,
    service_figures,
    serving_log,
    step_lines,
    text_form,
    text_log,
    traces,
    unit_status,
)
from oomdoc.ingest.base import HEAD_BYTES, Head, Ingestor, Reading, read_by
from oomdoc.ingest.forms import barred
from oomdoc.ingest.forms.lifted import Lifted
from oomdoc.ingest.texts import Quotations, Texts
from oomdoc.ingest.trials import Tries
from oomdoc.intake.scan import Chunk, whole
from oomdoc.regexes import regex

DENSE: tuple[Ingestor, ...] = (
    collection,
    server_answer,
    memory_snapshot,
    metrics,
    metrics_json,
    memory_summary,
    memory_stats,
    memory_group,
    device_hosts,
    nvidia_smi,
    amd_smi,
    device_screens,
    model_file,
    traces,
    guidellm,
    request_log,
)
"""Kinds of numbers in columns, and what the collector and a server say of themselves: read alone, and asked first."""
PROSE: tuple[Ingestor, ...] = (
    document, access_log, serving_log, barred, kubernetes, group_counters, package_list, process_list, request_body, launch, forms, configuration, notes,
)  # fmt: skip
"""Kinds of text with a structure of their own; but for quotations, their text is searched by patterns as well."""
_PASTED = (device_hosts.KIND, *(module.KIND for module in device_hosts.READERS))
_PASTE_CAP = 64 << 10  # a longer one is the recording of a collector
_SENTENCES = frozenset(("cluster_event", "process_exit"))
"""Tables whose rows a text also tells in sentences."""
_COMMANDS = frozenset(("engine_flag",))
"""Tables that a launch text fills whole: a command with a prompt before it would be told twice."""
_QUOTING: tuple[Ingestor, ...] = (document, configuration)
INGESTORS: tuple[Ingestor, ...] = (*DENSE, *PROSE, text_log)
_NAMES: dict[str, Ingestor] = {
    **{module.KIND: module for module in INGESTORS},
    **dict.fromkeys(document.KINDS, document),
    "vllm-log": text_log,
}
KINDS: tuple[str, ...] = tuple(_NAMES)
_QUICK = tuple(module for module in INGESTORS if module.KIND not in (launch.KIND, notes.KIND))
_NO_LAUNCH = tuple(module for module in INGESTORS if module.KIND != launch.KIND)
_QUICKEST = tuple(module for module in _QUICK if module.KIND != document.KIND)


def reads_binary(head: Head) -> bool:
    """Whether an ingestor reads this source although it is no text."""
    return memory_snapshot.is_binary(head) or launch.is_nul_separated(head)


def make_head(path: str, data: bytes) -> Head:
    """The head of a source from its first bytes."""
    return Head(path, data[:HEAD_BYTES])


def chosen(head: Head, types: Sequence[str]) -> bool:
    """Whether a person says of what kind a source is."""
    return any(fnmatch.fnmatch(head.path, entry.partition("=")[0]) for entry in types)


_FIELD_WORDS = (b"vllm", b"gpu", b"cuda", b"rocm", b"nvidia", b"hbm", b"out of memory", b"kv_cache", b"kv-cache", b"kv cache", b"kvcache", b"max_model", b"max-model", b"tensor_parallel", b"tensor-parallel", b"replica", b"token")  # fmt: skip
_SERVES = regex(
    rb"(?i)llama|sglang|\btgi\b|triton|qwen|mistral|model|infer|serv(?:e|ing)\b|tensor|shm|EngineArgs|OMP_|NCCL|KMP_"
)
"""What a command or a document of settings of a server may say that has no word of the field: without it, its limits are another program's."""
_FIELD = regex(rb"\bllm|\boom|--[a-z]+-[a-z]+")


def _of_the_field(data: bytes) -> bool:
    """Whether a text has a word of the field: letters are looked for one word at a time, ten times as fast as all of them in one search."""
    data = data.lower()
    return any(word in data for word in _FIELD_WORDS) or bool(_FIELD.search(data))


def recognise(head: Head, types: Sequence[str] = (), among_many: bool = False) -> tuple[Ingestor, str]:
    """The ingestor for a source and the name of its kind; `types` are `GLOB=KIND` overrides, the first that matches wins.

    Whether a text is a note or a command takes 10 to 100 ms: `among_many`, it is only asked of texts with a word of the field,
    and whether it is a document, where there is something in it that it may quote.
    """
    for entry in types:
        glob, _, kind = entry.partition("=")
        if fnmatch.fnmatch(head.path, glob):
            return _NAMES[kind], kind
    ingestor = next(module for module in _asked(head, among_many) if module.matches(head))
    named: Callable[[Head], str] | None = getattr(ingestor, "kind_of", None)
    return ingestor, named(head) if named else ingestor.KIND


def _asked(head: Head, among_many: bool) -> tuple[Ingestor, ...]:
    if _of_the_field(head.data):
        return INGESTORS
    if not among_many:
        return INGESTORS if _SERVES.search(head.data) else _NO_LAUNCH
    quotes = next(text_log.plan().scan.hits(Chunk(head.data, 1, True)), None)
    return _QUICK if quotes else _QUICKEST


def is_program(head: Head) -> str | None:
    """Which language a source is program text of, which is no evidence; None for all else."""
    return None if metrics.is_plain(head.data) else program_text.language(head)


_LABEL = (regex(rb'^cause\s*=\s*"[a-z-]+"', re.M), regex(rb'^category\s*=\s*"[a-z-]+"', re.M))


def is_label(head: Head) -> bool:
    """Whether this is the label of a sample case (`case.toml`): the answer must not be read as evidence."""
    return b"category" in head.data and all(pattern.search(head.data) for pattern in _LABEL)


def check_types(types: Sequence[str]) -> None:
    """Refuse a `--type` that names no kind."""
    for entry in types:
        glob, equals, kind = entry.partition("=")
        if not glob or not equals or kind not in KINDS:
            raise UsageError(f"--type {entry} is not GLOB=KIND", f"Kinds are {', '.join(KINDS)}")


_WHOLE: tuple[Ingestor, ...] = (
    *(module for module in DENSE if module.KIND not in _PASTED),
    document,
    configuration,
    access_log,
    serving_log,
    barred,
    request_body,
    package_list,
)
"""Kinds that are one thing from the first line to the last, or no evidence at all."""
_PIECES: tuple[Ingestor, ...] = tuple(
    module for module in INGESTORS if module.KIND in (
        metrics.KIND, memory_summary.KIND, memory_stats.KIND, memory_group.KIND, nvidia_smi.KIND, amd_smi.KIND, device_screens.KIND,
        kubernetes.KIND, group_counters.KIND, process_list.KIND, forms.KIND, access_log.KIND, server_answer.KIND,
    )
)  # fmt: skip
"""Kinds with a form of their own, which a few lines show."""


def read(ingestor: Ingestor, path: str, chunks: Iterable[Chunk], among_many: bool = False) -> Iterator[Batch]:
    """Everything that a source holds: by its ingestor, and what is left of a short text, by those of its passages.

    `among_many` unknown texts, one without a word of the field is searched for messages alone, and passages are only looked
    for where something of the text was read.
    """
    if ingestor in _WHOLE:
        held, rest = whole(chunks, passages.CAP_BYTES) if ingestor is document else ([], chunks)
        yield from _read(ingestor, path, itertools.chain(held, rest or ()))
        if held and rest is None and (data := _one(held)) and notebook.TELLING.search(data):
            yield from notebook.read(data)  # what cells of code have printed
        return
    held, rest = whole(chunks, passages.CAP_BYTES)
    if rest is not None:
        yield from _read(ingestor, path, itertools.chain(held, rest))
        return
    strange = among_many and ingestor.KIND == text_log.KIND and not any(_of_the_field(chunk.data) for chunk in held)
    batches = list(read_by(Texts(), held) if strange else _read(ingestor, path, held))
    yield from batches
    data = _one(held)
    if data is not None:
        if ingestor.KIND in (text_log.KIND, notes.KIND) and request_log.TELLING.search(data):
            yield from request_log.one_by_one(data)
        for telling, tell in (*_TELLING, *(() if strange else _TELLING_OF_SERVICE)):
            if telling.search(data):
                yield from tell(data)
        known = passages.lines_of(batches)
        if known or (not among_many and (data.count(b"\n") < _TEXT_LINES or _of_the_field(data))):
            by_line = ingestor.KIND in (text_log.KIND, notes.KIND)
            yield from passages.read(path, data, known, by_line, _piece)


def _one(held: Sequence[Chunk]) -> bytes | None:
    """A text that came in one chunk, or in two where it ends without a newline; None for a longer one."""
    if not held or held[0].first_line != 1 or len(held) > 2 or (len(held) == 2 and b"\n" in held[1].data):
        return None
    return b"".join(chunk.data for chunk in held)


_TELLING = tuple((module.TELLING, module.read) for module in (moments, step_lines, unit_status, notebook))
_TELLING_OF_SERVICE = (
    (service_figures.TELLING, service_figures.read), (load_runs.TELLING, load_runs.read), (load_runs.SAID, load_runs.said),
)  # fmt: skip
"""What else a short text may tell: one search each says whether it does."""
_TEXT_LINES = 60
"""A longer text of which nothing was understood, without a word of the field, is of something else."""


def _piece(head: Head) -> Ingestor | None:
    return next((module for module in _PIECES if module.matches(head)), None)


def _read(ingestor: Ingestor, path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """A source by its own ingestor and, for text, by the patterns of all dialects.

    Text may also quote tables of torch's allocator, whose rows mean nothing by themselves.
    """
    if ingestor in DENSE:
        if ingestor.KIND in _PASTED:
            yield from _with_text(ingestor, path, chunks)
            return
        yield from ingestor.read(path, chunks)
        return
    if ingestor in _QUOTING:
        yield from ingestor.read(path, chunks)
        return
    beside: list[Lifted | Tries] = []  # what listens besides
    if ingestor.KIND in (text_log.KIND, notes.KIND):
        beside.append(lifted := Lifted())
        chunks = lifted.chunks(chunks)
    if ingestor.KIND in (text_log.KIND, notes.KIND, launch.KIND):
        beside.append(tries := Tries())
        chunks = _heard(tries, chunks)  # without the tables, which are read as such
    if ingestor.KIND == text_log.KIND:
        yield from read_by(Texts(), chunks)
        for one in beside:
            yield from one.take()
        return
    pieces = iter(chunks)
    first = next(pieces, Chunk(b"", 1, True))
    launched, head = ingestor.KIND == launch.KIND, make_head(path, first.data)
    # a program that makes an engine: its settings are evidence, the messages in its statements are not
    code = launched and text_form.form_of(head) == text_form.SOURCE_CODE
    if code:
        first = first._replace(data=program_text.bare(first.data))  # what was tried with it may stand in a comment
    texts = Quotations(pasted=False) if code else Texts()
    prose = notes.Prose() if ingestor.KIND in (launch.KIND, forms.KIND) and not code else None
    # a document of settings may list what was tried with each of them
    tried = forms.Reading() if launched and not code and forms.matches(head) else None

    listed: list[Batch] = []

    def overheard() -> Iterator[Chunk]:
        for chunk in itertools.chain([first], pieces):
            texts.hear(chunk)
            if prose is not None:
                prose.chunk(chunk)
            if tried is not None:
                listed.extend(tried.chunk(chunk))
            yield chunk

    told: set[str] = set()
    for batch in ingestor.read(path, overheard()):
        told.add(batch.table)
        yield batch
    # an event's sentence stands in its record: read as a record, it is no second event
    again = told & {forms.KIND: _SENTENCES, launch.KIND: _COMMANDS}.get(ingestor.KIND, frozenset())
    yield from (batch for batch in texts.close() if batch.table not in again)
    if tried is not None:
        yield from (batch for batch in (*listed, *tried.close()) if batch.table in ("trial", "trial_figure"))
    if prose is not None:
        yield from prose.take()
    for one in beside:
        yield from one.take()


def _heard(tries: Tries, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """The chunks, heard for what somebody tried."""
    for chunk in chunks:
        tries.hear(chunk)
        yield chunk


def _with_text(ingestor: Ingestor, path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """A tool's output, and where it is short, what stands around it: people paste a whole shell session."""
    pieces = iter(chunks)
    first = next(pieces, None)
    if first is None:
        return
    second = next(pieces, None)
    texts = Texts() if second is None and len(first.data) <= _PASTE_CAP else None
    if texts is not None:
        texts.hear(first)
    yield from ingestor.read(path, itertools.chain([first], [] if second is None else [second], pieces))
    if texts is not None:
        yield from texts.close()


def reading(ingestor: Ingestor, path: str) -> Reading | None:
    """What reads a source of this kind, if it can be kept between two chunks; None where it is `read` in one go."""
    if ingestor.KIND == text_log.KIND:
        return Texts()
    made: Callable[[str], Reading] | None = getattr(ingestor, "reading", None)
    return made(path) if made else None
