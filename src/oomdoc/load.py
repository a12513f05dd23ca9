"""Bundle -> tables: every member is read by its ingestor into the store, and what was not read is named with the reason.

A file that may grow can be gone on with on another day (`Resumed`): what it told is loaded again, and only what came since is read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from oomdoc import ingest
from oomdoc.bundle import BLOCKS_FROM, Begin, Intake, Member, binary_form
from oomdoc.ingest import kept
from oomdoc.ingest.base import Reading, read_by
from oomdoc.model import SourceRow, Unread
from oomdoc.physics.config import config_of_file
from oomdoc.redact import manifest
from oomdoc.scan import CHUNK_BYTES, Chunk, chunks, newlines, read_ahead
from oomdoc.store import Store
from oomdoc.tables import LOOKALIKE, Batch, source_of
from oomdoc.units import parse_size, show_bytes
from oomdoc.unwrap import lasting_form, unwrap


@dataclass(frozen=True)
class Kept:
    """A file up to a place behind one of its lines: what proves that it is the same, its reading there, what that had told.

    `form` is how its collector wrapped it (`unwrap.lasting_form`), `reading` and `told` are of `ingest.kept`.
    """

    begin: Begin
    form: str
    kind: str
    reading: str
    told: bytes


@dataclass
class Resumed:
    """Files by their path in the bundle: `known` from another day, `kept` for the next one."""

    known: Mapping[str, Kept] = field(default_factory=dict)
    kept: dict[str, Kept] = field(default_factory=dict)


Progress = Callable[[str, int], None]

_BLOCK_BYTES = CHUNK_BYTES  # how much of a source is read at once


class _Mark(NamedTuple):
    """Everything before this place was handed out, and the source can be read on from here."""

    begin: Begin
    form: str


def _stream(intake: Intake, resumed: Resumed | None) -> Iterator[Member | Chunk | _Mark]:
    for member in intake.members():
        yield member
        if resumed is not None and _may_go_on(member, 0):
            yield from _marked(intake, member, resumed)
        else:
            yield from unwrap(chunks(member.stream, _BLOCK_BYTES), partial(intake.note, member.path))


def _may_go_on(member: Member, taken: int) -> bool:
    """Whether a member is a file as it stands, in which a block ends behind these bytes."""
    return member.size is not None and not member.layers and member.size >= max(taken + _BLOCK_BYTES, BLOCKS_FROM)


def _marked(intake: Intake, member: Member, resumed: Resumed) -> Iterator[Chunk | _Mark]:
    """The chunks of a file that may grow; behind the last that will be the same when it has grown, a mark.

    A file is read in blocks of one size whatever its length, so up to there it will be cut into the same chunks: what a
    reader makes of the end of a chunk does not matter.
    """
    begin = member.begin or Begin(0, 1, 0, "")
    passed, latest = begin.passed, Chunk(b"", begin.line, True)
    form = known = resumed.known[member.path].form if member.begin else None

    def counted() -> Iterator[Chunk]:
        nonlocal passed, latest, form
        for chunk in chunks(member.stream, _BLOCK_BYTES, line=begin.line, rest=begin.rest):
            if not passed:
                form = lasting_form(chunk.data)
            passed += len(chunk.data)
            latest = chunk
            yield chunk

    assert member.size is not None
    for piece in unwrap(counted(), partial(intake.note, member.path), known):
        yield piece
        taken = intake.taken(member)
        last = (taken - BLOCKS_FROM) % _BLOCK_BYTES == 0 and taken + _BLOCK_BYTES > member.size
        if last and form is not None and piece.data.endswith(b"\n"):
            line = piece.first_line + newlines(piece.data)
            hashed, sha256 = intake.hashed()
            if hashed == taken and line == latest.first_line + newlines(
                latest.data
            ):  # nothing waits for its other half
                yield _Mark(Begin(passed, line, taken, sha256), form)


def load(
    intake: Intake, store: Store, types: Sequence[str], progress: Progress | None = None, resumed: Resumed | None = None
) -> tuple[list[SourceRow], list[Unread]]:
    """Read every member with its ingestor into the store; what was not read is named with the reason."""
    sources: list[SourceRow] = []
    refused: list[Unread] = []
    readings = _readings(resumed)
    if resumed is not None:
        intake.begins = {path: resumed.known[path].begin for path in readings}
    events = read_ahead(_stream(intake, resumed))
    current: Member | Chunk | _Mark | None = next(events, None)
    while current is not None:
        member = current
        assert isinstance(member, Member)
        counted = _Counted(events, member, progress)
        if member.begin is not None and resumed is not None:
            row: SourceRow | None = _read_on(member, counted, store, resumed, readings[member.path])
        else:
            row = _read_member(member, counted, store, types, resumed, refused)
        for _ in counted:  # whatever the ingestor left
            pass
        if row is not None:
            # as handed out: `unwrap` may have made more or less of it
            row = dataclasses.replace(row, bytes=getattr(member.stream, "taken", counted.bytes))
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
                    }
                ],
            )
        current = counted.following
    unread = [Unread(entry.path, entry.why) for entry in intake.unread]
    return sorted(sources, key=lambda row: row.path), sorted(
        [*unread, *refused], key=lambda entry: (entry.path, entry.why)
    )


class _Counted:
    """The chunks of one member out of the stream of all, with lines and bytes counted; `following` is what came after."""

    def __init__(
        self,
        events: Iterator[Member | Chunk | _Mark],
        member: Member,
        progress: Progress | None,
    ) -> None:
        self._events, self._path, self._progress = events, member.path, progress
        self._before = member.begin.line - 1 if member.begin else 0
        self.marked: Callable[[_Mark], None] | None = None
        """Called at a mark, when the chunks before it have been read."""
        self._held: Chunk | None = None
        self.following: Member | None = None
        self._ended = False
        self.bytes = 0
        self._last: Chunk | None = None

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
        while isinstance(event, _Mark):
            if self.marked:
                self.marked(event)
            event = next(self._events, None)
        if not isinstance(event, Chunk):
            self.following, self._ended = event, True
            return None
        self.bytes += len(event.data)
        self._last = event
        if self._progress:
            self._progress(self._path, self.bytes)
        return event

    @property
    def lines(self) -> int:
        """Physical lines so far; a last line without newline counts."""
        if self._last is None:
            return self._before
        last = self._last
        return last.first_line - 1 + last.data.count(b"\n") + (0 if last.data.endswith(b"\n") else 1)


def _read_member(
    member: Member,
    counted: _Counted,
    store: Store,
    types: Sequence[str],
    resumed: Resumed | None,
    refused: list[Unread],
) -> SourceRow | None:
    first = counted.peek()
    if first is None:
        return SourceRow(member.path, "empty", 0, 0, 0, 0)
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
    ingestor, kind = ingest.recognise(head, types)
    reading = ingest.reading(ingestor, member.path) if resumed and _may_go_on(member, 0) else None
    if reading is None or resumed is None:
        return _loaded(member, kind, counted, store, ingest.read(ingestor, member.path, counted))
    told = kept.Told(member.size or 0)
    counted.marked = partial(_keep, resumed, member.path, kind, reading, told)
    return _loaded(member, kind, counted, store, told.heard(read_by(reading, counted)))


def _readings(resumed: Resumed | None) -> dict[str, Reading]:
    """The readings that can go on; what this program did not keep is read from its beginning."""
    made = {}
    for path, known in resumed.known.items() if resumed else ():
        with suppress(kept.NotKeptError):
            made[path] = kept.thaw(known.reading)
    return made


def _keep(resumed: Resumed, path: str, kind: str, reading: Reading, told: kept.Told, mark: _Mark) -> None:
    """Note where to go on the next time, unless that is more than is kept."""
    packed = told.close()
    if packed is not None:
        with suppress(kept.NotKeptError):
            resumed.kept[path] = Kept(mark.begin, mark.form, kind, kept.freeze(reading), packed)


def _read_on(member: Member, counted: _Counted, store: Store, resumed: Resumed, reading: Reading) -> SourceRow:
    """Load what a file had told before, and read what came since."""
    assert member.begin is not None
    known = resumed.known[member.path]
    batches = chain(kept.told(known.told), read_by(reading, counted))
    if _may_go_on(member, member.begin.taken):
        told = kept.Told(member.size or 0, known.told)
        counted.marked = partial(_keep, resumed, member.path, known.kind, reading, told)
        batches = chain(kept.told(known.told), told.heard(read_by(reading, counted)))
    else:
        resumed.kept[member.path] = known
    return _loaded(member, known.kind, counted, store, batches)


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
