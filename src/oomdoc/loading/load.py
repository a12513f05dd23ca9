"""Bundle -> tables: every member is read by its ingestor into the store, and what was not read is named with the reason."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import partial
from pathlib import Path
from typing import Any

from oomdoc import ingest
from oomdoc.evidence.store import Store
from oomdoc.evidence.tables import COLUMN_READING, LOOKALIKE, Batch, source_of
from oomdoc.evidence.words import PART_BYTES, beginning_of, end_of
from oomdoc.intake.binary import binary_form
from oomdoc.intake.bundle import Intake
from oomdoc.intake.members import TAIL_BYTES, Member
from oomdoc.intake.scan import Chunk, chunks, read_ahead
from oomdoc.intake.unwrap import unwrap
from oomdoc.loading import resume
from oomdoc.loading.complete import CUT_LINE, LINE_KINDS, is_cut
from oomdoc.loading.resume import Mark, Resumed
from oomdoc.model import SourceRow, Unread
from oomdoc.physics.config import config_of_file
from oomdoc.redact import manifest
from oomdoc.units import parse_size, show_bytes

EMPTY = "empty"
"""The kind of a source that holds nothing but blanks."""
_BLANKS = b"\0 \t\r\n\v\f"

Progress = Callable[[str, int], None]


def _stream(intake: Intake, resumed: Resumed | None) -> Iterator[Member | Chunk | Mark]:
    for member in intake.members():
        yield member
        if resumed is not None and resume.may_go_on(member, 0):
            yield from resume.marked(intake, member, resumed)
        else:
            yield from unwrap(chunks(member.stream, resume.BLOCK_BYTES), partial(intake.note, member.path))


def load(
    intake: Intake, store: Store, types: Sequence[str], progress: Progress | None = None, resumed: Resumed | None = None,
    vocabulary: Set[str] = frozenset(),
) -> tuple[list[SourceRow], list[Unread]]:  # fmt: skip
    """Read every member with its ingestor into the store; what was not read is named with the reason.

    Of each source the words of the `vocabulary` are noted that stand in its beginning or its end.
    """
    sources: list[SourceRow] = []
    refused: list[Unread] = []
    passed: dict[str, list[str]] = {}
    texts = _Texts()
    readings = resume.readings(resumed) if resumed else {}
    if resumed is not None:
        intake.begins = {path: resumed.known[path].begin for path in readings}
    events = read_ahead(_stream(intake, resumed))
    current: Member | Chunk | Mark | None = next(events, None)
    while current is not None:
        member = current
        assert isinstance(member, Member)
        counted = _Counted(events, member, progress)
        if member.begin is not None and resumed is not None:
            counted.begins_with = set(resumed.known[member.path].words.split())
            batches, counted.marked = resume.from_where_it_stood(resumed, member, readings[member.path], counted)
            row: SourceRow | None = _loaded(member, resumed.known[member.path].kind, counted, store, batches)
        else:
            row = _read_member(member, counted, store, types, resumed, refused, passed, texts, vocabulary)
        for _ in counted:  # whatever the ingestor left
            pass
        if row is not None:
            # as handed out: `unwrap` may have made more or less of it
            row = dataclasses.replace(row, bytes=getattr(member.stream, "taken", counted.bytes))
            if counted.blank:
                row = dataclasses.replace(row, kind=EMPTY)
            elif (
                row.kind in LINE_KINDS
                and counted.ends_open()
                and all(entry.path != row.path for entry in intake.unread)
            ):
                refused.append(Unread(row.path, CUT_LINE.format(line=row.lines)))
            sources.append(row)
            if row.kind == manifest.KIND:  # about the copy, no evidence
                current = counted.following
                continue
            store.add(
                "source",
                [
                    {
                        "source": row.path,
                        "kind": row.kind,
                        "bytes": row.bytes,
                        "lines": row.lines,
                        "rows": row.rows,
                        "problems": row.problems,
                        "lookalikes": row.lookalikes,
                        # of a file that may grow, another night does not see the beginning
                        "names_engine": None if resume.may_go_on(member, 0) else counted.names_engine,
                        "words": counted.words(vocabulary) or None,
                    }
                ],
            )
        current = counted.following
    for language, paths in passed.items():
        more = f", and {len(paths) - 1:,} more files of it" if len(paths) > 1 else ""
        refused.append(Unread(paths[0], f"program text ({language}), no evidence{more}"))
    unread = [Unread(entry.path, entry.why) for entry in intake.unread]
    return sorted(sources, key=lambda row: row.path), sorted(
        [*unread, *refused], key=lambda entry: (entry.path, entry.why)
    )


class _Counted:
    """The chunks of one member out of the stream of all, with lines and bytes counted; `following` is what came after."""

    def __init__(
        self,
        events: Iterator[Member | Chunk | Mark],
        member: Member,
        progress: Progress | None,
    ) -> None:
        self._events, self._path, self._progress = events, member.path, progress
        self._before = member.begin.line - 1 if member.begin else 0
        self.marked: Callable[[Mark], None] | None = None
        """Called at a mark, when the chunks before it have been read."""
        self._held: Chunk | None = None
        self.following: Member | None = None
        self._ended = False
        self.bytes = 0
        self.names_engine = False
        self.blank = member.begin is None
        """Nothing but blanks and NULs so far."""
        self._last: Chunk | None = None
        self._before_last = member.begin.before if member.begin else b""
        self.begins_with: set[str] = set()
        """Words of its beginning: of one that goes on they were noted when that was read."""

    def peek(self) -> Chunk | None:
        """The first chunk, which stays in line; None for an empty member."""
        if self._held is None:
            self._held = self._next()
        return self._held

    def __iter__(self) -> Iterator[Chunk]:
        while (chunk := self.peek()) is not None:
            self._held = None
            yield chunk

    def _next(self) -> Chunk | None:
        if self._ended:
            return None
        event = next(self._events, None)
        while isinstance(event, Mark):
            if self.marked:
                self.marked(event)
            event = next(self._events, None)
        if not isinstance(event, Chunk):
            self.following, self._ended = event, True
            return None
        if self._last is None:
            self.names_engine = any(word in event.data for word in _SERVED)
            self.begins_with = self.begins_with or beginning_of(event.data)
        self.bytes += len(event.data)
        self.blank = self.blank and not event.data.strip(_BLANKS)
        if self._last is not None:
            self._before_last = self._last.data[-TAIL_BYTES:]
        self._last = event
        if self._progress:
            self._progress(self._path, self.bytes)
        return event

    def ends_open(self) -> bool:
        """Whether the last line was cut. A line without its end may be a chunk of its own: the lines before it show its form."""
        if self._last is None or self._last.data.endswith(b"\n"):
            return False
        return is_cut(self._before_last + self._last.data)

    def words(self, vocabulary: Set[str]) -> str:
        """Those of the vocabulary that stand in its beginning or its end, in order."""
        end = self._last.data if self._last is not None else b""
        if len(end) < PART_BYTES:
            end = self._before_last[-PART_BYTES:] + end
        return " ".join(sorted(vocabulary & (self.begins_with | end_of(end))))

    @property
    def lines(self) -> int:
        """Physical lines so far; a last line without newline counts."""
        if self._last is None:
            return self._before
        last = self._last
        return last.first_line - 1 + last.data.count(b"\n") + (0 if last.data.endswith(b"\n") else 1)


_SERVED = (
    b"vllm",
    b"vLLM",
    b"VLLM",
    b"sglang",
    b"SGLang",
    b"text-generation-inference",
    b"text_generation_",  # its programs in their own logs: launcher, router, server
    b"tritonserver",
    b"TensorRT-LLM",
    b"llama.cpp",
    b"llamacpp",
    b"llama-server",
    b"ollama",
    b"lmdeploy",
    b"LMDeploy",
    b"xinference",
    b"Xinference",
    b"MLServer",
    b"mlserver",
    b"modelmesh",
    b"InferenceService",
    b"embedding model",
    b"reranker",
    b"language model",
    b"safetensors",
    b".gguf",
)
"""What names an engine that serves language models, or what only such a service loads."""


@dataclasses.dataclass
class _Texts:
    """Texts that nobody knows: the first few are looked at closely, a note may be among them; a tree of thousands is none."""

    MOST = 32  # some 60 ms each
    unknown: int = 0

    @property
    def many(self) -> bool:
        """Whether there were so many that no more time is spent on them."""
        return self.unknown >= self.MOST


def _read_member(
    member: Member,
    counted: _Counted,
    store: Store,
    types: Sequence[str],
    resumed: Resumed | None,
    refused: list[Unread],
    passed: dict[str, list[str]],
    texts: _Texts,
    vocabulary: Set[str],
) -> SourceRow | None:
    first = counted.peek()
    if first is None:
        return SourceRow(member.path, EMPTY, 0, 0, 0, 0)
    head = ingest.make_head(member.path, first.data)
    form = binary_form(head.data)
    if form is not None and not ingest.reads_binary(head):
        for _ in counted:  # to its end, so that its size is known
            pass
        refused.append(Unread(member.path, f"{form} of {show_bytes(counted.bytes)}: no format that holds evidence"))
        return None
    if manifest.is_manifest(head.data):
        refused += manifest.left_out(member.path, (chunk.data for chunk in counted))
        return SourceRow(member.path, manifest.KIND, counted.bytes, counted.lines, 0, 0)
    if ingest.is_label(head):
        refused.append(Unread(member.path, "the label of a sample case, no evidence"))
        return None
    language = None if ingest.chosen(head, types) else ingest.is_program(head)
    if language is not None:
        passed.setdefault(language, []).append(member.path)
        return None
    ingestor, kind = ingest.recognise(head, types, texts.many)
    texts.unknown += kind == "text-log"
    reading = ingest.reading(ingestor, member.path) if resumed and resume.may_go_on(member, 0) else None
    if reading is None or resumed is None:
        return _loaded(member, kind, counted, store, ingest.read(ingestor, member.path, counted, texts.many))
    batches, counted.marked = resume.from_the_beginning(
        resumed, member, kind, reading, counted, " ".join(sorted(vocabulary & counted.begins_with))
    )
    return _loaded(member, kind, counted, store, batches)


def _loaded(member: Member, kind: str, counted: _Counted, store: Store, batches: Iterable[Batch]) -> SourceRow:
    """Everything that a member tells, into the store."""
    rows = problems = lookalikes = 0
    others: set[str] = set()
    for batch in batches:
        rows, problems, lookalikes = _count(batch, rows, problems, lookalikes)
        source = source_of(member.path, batch.writer)
        if batch.writer:
            others.add(source)
        store.load(source, batch)
    store.add("source", [{"source": source, "kind": kind, "bytes": 0, "lines": counted.lines, "rows": 0, "problems": 0, "lookalikes": 0} for source in sorted(others)])  # fmt: skip
    return SourceRow(member.path, kind, counted.bytes, counted.lines, rows, problems, lookalikes)


def _count(batch: Batch, rows: int, problems: int, lookalikes: int) -> tuple[int, int, int]:
    if batch.table == LOOKALIKE:
        return rows, problems, lookalikes + batch.rows
    if batch.table == "problem":
        return rows, problems + batch.rows, lookalikes
    if batch.table == COLUMN_READING:  # about the reading, no evidence
        return rows, problems, lookalikes
    return rows + batch.rows, problems, lookalikes


_CONFIG_FLAGS = {"torch_dtype": "dtype", "dtype": "dtype", "max_position_embeddings": "max_position_embeddings", "num_hidden_layers": "num_hidden_layers",
                 "num_attention_heads": "num_attention_heads", "num_key_value_heads": "num_key_value_heads", "head_dim": "head_dim", "hidden_size": "hidden_size"}  # fmt: skip


def tell(store: Store, gpu: str | None, model_config: Path | None) -> dict[str, Any] | None:
    """What the person knows and the bundle may not: the device (`--gpu`), the model's config.json (`--model-config`), given back."""
    if gpu:
        size = parse_size(gpu)
        store.add(
            "gpu_device",
            [{"source": "--gpu", "line": 1, "name": None if size else gpu, "total_bytes": size, "count": 1}],
        )
    if model_config is None:
        return None
    config = config_of_file(model_config)
    inner = config.get("text_config")  # multimodal models keep the language model's figures one level down
    text: dict[str, Any] = inner if isinstance(inner, dict) else config
    told = {flag: text[key] for key, flag in _CONFIG_FLAGS.items() if isinstance(text.get(key), (str, int))}
    method = config.get("quantization_config")
    if isinstance(method, dict) and isinstance(method.get("quant_method"), str):
        told["quantization"] = method["quant_method"]
    architectures = config.get("architectures")
    if isinstance(architectures, list) and architectures:
        told["architecture"] = architectures[0]
    store.add(
        "engine_flag",
        [
            {"source": model_config.name, "line": 1, "flag": flag, "value": str(value), "origin": "file"}
            for flag, value in told.items()
        ],
    )
    return config
