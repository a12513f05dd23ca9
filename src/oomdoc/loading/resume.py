"""Files that grow: where the reading of one can go on another day, and what it had told until there.

A file is read in blocks from fixed places, so a longer one is cut into the same chunks up to its last full block. Behind
that block stands a `Mark`; what the reader is there, and what it handed out, is kept with the hash of all bytes before it
(docs/decisions/0017-grown-logs.md). Only a sweep asks for it, and only then is `ingest.kept` imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import NamedTuple

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Reading, read_by
from oomdoc.intake.bundle import BLOCKS_FROM, Intake
from oomdoc.intake.members import Begin, Member
from oomdoc.intake.scan import CHUNK_BYTES, Chunk, chunks, newlines
from oomdoc.intake.unwrap import lasting_form, unwrap

BLOCK_BYTES = CHUNK_BYTES  # how much of a source is read at once


@dataclass(frozen=True)
class Kept:
    """A file up to a place behind one of its lines: what proves that it is the same, its reading there, what that had told.

    `form` is how its collector wrapped it (`unwrap.lasting_form`), `reading` and `told` are of `ingest.kept`; `words` are those of its
    beginning that go with causes, a space between two.
    """

    begin: Begin
    form: str
    kind: str
    reading: str
    told: bytes
    words: str = ""


@dataclass
class Resumed:
    """Files by their path in the bundle: `known` from another day, `kept` for the next one."""

    known: Mapping[str, Kept] = field(default_factory=dict)
    kept: dict[str, Kept] = field(default_factory=dict)


class Mark(NamedTuple):
    """Everything before this place was handed out, and the source can be read on from here."""

    begin: Begin
    form: str


def may_go_on(member: Member, taken: int) -> bool:
    """Whether a member is a file as it stands, in which a block ends behind these bytes."""
    return member.size is not None and not member.layers and member.size >= max(taken + BLOCK_BYTES, BLOCKS_FROM)


def marked(intake: Intake, member: Member, resumed: Resumed) -> Iterator[Chunk | Mark]:
    """The chunks of a file that may grow; behind the last that will be the same when it has grown, a mark.

    A file is read in blocks of one size whatever its length, so up to there it will be cut into the same chunks: what a
    reader makes of the end of a chunk does not matter.
    """
    begin = member.begin or Begin(0, 1, 0, "")
    passed, latest = begin.passed, Chunk(b"", begin.line, True)
    form = known = resumed.known[member.path].form if member.begin else None

    def counted() -> Iterator[Chunk]:
        nonlocal passed, latest, form
        for chunk in chunks(member.stream, BLOCK_BYTES, line=begin.line, rest=begin.rest):
            if not passed:
                form = lasting_form(chunk.data)
            passed += len(chunk.data)
            latest = chunk
            yield chunk

    assert member.size is not None
    for piece in unwrap(counted(), partial(intake.note, member.path), known):
        yield piece
        taken = intake.taken(member)
        last = (taken - BLOCKS_FROM) % BLOCK_BYTES == 0 and taken + BLOCK_BYTES > member.size
        if last and form is not None and piece.data.endswith(b"\n"):
            line = piece.first_line + newlines(piece.data)
            hashed, sha256 = intake.hashed()
            if hashed == taken and line == latest.first_line + newlines(
                latest.data
            ):  # nothing waits for its other half
                yield Mark(Begin(passed, line, taken, sha256), form)


def readings(resumed: Resumed) -> dict[str, Reading]:
    """The readings that can go on; what this program did not keep is read from its beginning."""
    from oomdoc.ingest import kept

    made = {}
    for path, known in resumed.known.items():
        with suppress(kept.NotKeptError):
            made[path] = kept.thaw(known.reading)
    return made


AtMark = Callable[[Mark], None]


def from_the_beginning(
    resumed: Resumed, member: Member, kind: str, reading: Reading, pieces: Iterable[Chunk], words: str = ""
) -> tuple[Iterator[Batch], AtMark]:
    """What a file tells that may grow, and what to call at its mark."""
    from oomdoc.ingest import kept

    told = kept.Told(member.size or 0)

    def keep(mark: Mark) -> None:
        _keep(resumed, member.path, kind, reading, told.close(), mark, words)

    return told.heard(read_by(reading, pieces)), keep


def from_where_it_stood(
    resumed: Resumed, member: Member, reading: Reading, pieces: Iterable[Chunk]
) -> tuple[Iterator[Batch], AtMark]:
    """What a file had told, then what it has told since, and what to call at its mark."""
    from oomdoc.ingest import kept

    known = resumed.known[member.path]
    if member.begin is None or not may_go_on(member, member.begin.taken):
        resumed.kept[member.path] = known  # not a block longer: the next night goes on from the same place
        return chain(kept.told(known.told), read_by(reading, pieces)), lambda mark: None
    told = kept.Told(member.size or 0, known.told)

    def keep(mark: Mark) -> None:
        _keep(resumed, member.path, known.kind, reading, told.close(), mark, known.words)

    return chain(kept.told(known.told), told.heard(read_by(reading, pieces))), keep


def _keep(resumed: Resumed, path: str, kind: str, reading: Reading, told: bytes | None, mark: Mark, words: str) -> None:
    """Note where to go on the next time, unless that is more than is kept."""
    from oomdoc.ingest import kept

    if told is not None:
        with suppress(kept.NotKeptError):
            resumed.kept[path] = Kept(mark.begin, mark.form, kind, kept.freeze(reading), told, words)
