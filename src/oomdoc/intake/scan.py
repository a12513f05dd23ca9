"""The hot path's one door: chunks of bytes in, hits and columns out.

A log is never split into lines as a whole. `chunks` cuts a stream at the last newline of about 1 MiB; `LiteralScan` finds
every anchor in a chunk with one Aho-Corasick pass and gives the line of each hit; only those lines are decoded and
parsed. docs/performance.md holds the figures that chose this design. Each fast function has a plain twin
(`*_plain`) that the tests hold it against.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeVar

if TYPE_CHECKING:
    from oomdoc.intake.sieve import Sieve

CHUNK_BYTES = 1 << 20  # 512 KiB to 2 MiB measured best for numpy paths, 256 KiB to 1 MiB for search
LINE_CAP_BYTES = 4 << 20  # a longer line goes on in pieces, so that one line without newline cannot fill the memory

_SIMD_ANCHORS = 64  # what the library's own SIMD search takes: it needs no sieve
_SIEVE_FROM = 8 << 20  # bytes searched before the sieve, which costs 20 ms to make, begins to pay
_SIEVE_LEAST = 64 << 10
_SIEVE_SAMPLE = 512 << 10  # bytes that show it what text is like: each costs it 30 bytes for a moment
_WORDS_FROM = 64 << 10  # bytes; to make a search takes longer than to do without one in less

JOIN_S = 2.0  # a producer that waits for a pipe may wait for ever; it is a daemon and goes with the process

T = TypeVar("T")


class Chunk(NamedTuple):
    """A run of whole lines, or a piece of one very long line.

    `first_line` is the 1-based number of the line in which `data` begins. `at_line_start` is False for the second and
    later pieces of a line longer than `LINE_CAP_BYTES`: what such a piece begins with is the middle of a line.
    """

    data: bytes
    first_line: int
    at_line_start: bool

    def whole(self) -> tuple[bytes, int]:
        """Data and number of its first line without the middle of a long line that it begins with: for dense sources."""
        if self.at_line_start:
            return self.data, self.first_line
        cut = self.data.find(b"\n") + 1
        return (self.data[cut:] if cut else b""), self.first_line + 1

    def lines(self, cap: int) -> Iterator[tuple[int, str]]:
        """Numbered lines that are not blank, as text of what their first `cap` bytes hold; a long line is told once."""
        for number, line in enumerate(self.data.split(b"\n"), self.first_line):
            if line.strip() and (number > self.first_line or self.at_line_start):
                yield number, line[:cap].decode("utf-8", "replace").rstrip("\r")


def whole(pieces: Iterable[Chunk], cap: int) -> tuple[list[Chunk], Iterator[Chunk] | None]:
    """A source that is one document: all of its chunks and None; of one longer than `cap` bytes the chunks up to there, and the rest."""
    held: list[Chunk] = []
    size = 0
    stream = iter(pieces)
    for chunk in stream:
        held.append(chunk)
        size += len(chunk.data)
        if size > cap:
            return held, stream
    return held, None


def chunks(
    stream: BinaryIO, size: int = CHUNK_BYTES, cap: int = LINE_CAP_BYTES, line: int = 1, rest: bytes = b""
) -> Iterator[Chunk]:
    """Cut a stream into chunks that end with a newline (the last one may not); linear in time whatever the lines.

    A stream that begins behind a newline of a source goes on with `line`, the number of that line; `rest` is what was read
    of it before.
    """
    fresh, held = True, len(rest)
    parts: list[bytes | memoryview] = [rest] if rest else []
    while block := stream.read(size):
        cut = block.rfind(b"\n") + 1
        if cut:
            if parts or cut < len(block):
                parts.append(memoryview(block)[:cut])  # so that the bytes are copied once
            data = b"".join(parts) if parts else block
            yield Chunk(data, line, fresh)
            line += newlines(data)
            fresh = True
            parts, held = [block[cut:]] if cut < len(block) else [], len(block) - cut
        else:
            parts.append(block)
            held += len(block)
            if held >= cap:
                yield Chunk(b"".join(parts), line, fresh)
                parts, held, fresh = [], 0, False
    if parts:
        yield Chunk(b"".join(parts), line, fresh)


def newlines(data: bytes) -> int:
    """How many newlines there are. numpy counts 1 MiB in 0.1 ms, `bytes.count` in 0.3 ms; small sources do without it."""
    if len(data) < CHUNK_BYTES // 2:
        return data.count(b"\n")
    import numpy as np

    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == 10))


def read_ahead(items: Iterable[T], depth: int = 6) -> Iterator[T]:
    """The same items, produced in a thread that runs at most `depth` ahead (decompression releases the GIL).

    An exception of the producer is raised here; leaving the loop early stops the producer.
    """
    line: queue.Queue[tuple[bool, object]] = queue.Queue(depth)
    stopped = threading.Event()

    def put(entry: tuple[bool, object]) -> bool:
        while not stopped.is_set():
            try:
                line.put(entry, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def produce() -> None:
        try:
            for item in items:
                if not put((True, item)):
                    return
            put((False, None))
        except BaseException as problem:
            put((False, problem))

    worker = threading.Thread(target=produce, name="oomdoc-reader", daemon=True)
    worker.start()
    try:
        while True:
            more, item = line.get()
            if not more:
                if isinstance(item, BaseException):
                    raise item
                return
            yield item  # type: ignore[misc]
    finally:
        stopped.set()
        worker.join(JOIN_S)


class Hit(NamedTuple):
    """An anchor found: its index, where it begins in the chunk, and the physical line it stands in.

    `begin` and `end` bound that line without its newline.
    """

    anchor: int
    at: int
    begin: int
    end: int
    line: int


class Words:
    """Which of a few groups of words a text holds. Mostly it holds none, which one SIMD search tells in 0.1 ms a MiB; `in` may take
    0.3 ms for one word."""

    def __init__(self, *groups: Sequence[bytes]) -> None:
        self._groups = groups
        self._search: Any = None

    def seen(self, data: bytes) -> list[bool]:
        """For each group whether a word of it is there."""
        if len(data) >= _WORDS_FROM:
            if self._search is None:
                from ahocorasick_rs import BytesAhoCorasick, MatchKind

                words = [word for group in self._groups for word in group]
                self._search = BytesAhoCorasick(words, matchkind=MatchKind.LeftmostFirst).find_matches_as_indexes
            if not self._search(data):
                return [False] * len(self._groups)
        return [any(word in data for word in group) for group in self._groups]


class LiteralScan:
    """Finds many literals in one pass; of several that begin at one place the first in the list wins."""

    def __init__(self, anchors: Sequence[bytes]) -> None:
        from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind

        self.anchors = tuple(anchors)
        # LeftmostFirst switches on the SIMD prefilter of the crate for up to 64 literals; for more a DFA is 2.7 times as
        # fast as what the crate chooses by itself
        self._search = BytesAhoCorasick(
            list(anchors), matchkind=MatchKind.LeftmostFirst, implementation=Implementation.DFA
        )
        self._searched = 0
        self._sieve: Sieve | None = None

    def hits(self, chunk: Chunk, done: Any = None) -> Iterator[Hit]:
        """Every hit of the chunk in order, each with its line; `done` is a numpy mask of lines to leave out, or None."""
        data, line, counted = chunk.data, chunk.first_line, 0
        self._searched += len(data)
        if done is not None or (
            self._searched > _SIEVE_FROM and len(data) > _SIEVE_LEAST and len(self.anchors) > _SIMD_ANCHORS
        ):
            yield from self._hits_sieved(chunk, done)
            return
        begin = end = -1
        for anchor, at, _ in self._search.find_matches_as_indexes(data):
            if at >= end:
                line += data.count(b"\n", counted, at)
                counted = at
                begin = data.rfind(b"\n", 0, at) + 1
                end = data.find(b"\n", at)
                if end < 0:
                    end = len(data)
            yield Hit(anchor, at, begin, end, line)

    def _hits_sieved(self, chunk: Chunk, done: Any) -> Iterator[Hit]:
        """The same, two to three times as fast for long texts: the sieve rules out most of the chunk first."""
        from oomdoc.intake.sieve import Sieve, lines_at

        data = chunk.data
        if self._sieve is None:
            self._sieve = Sieve(self.anchors, data[:_SIEVE_SAMPLE])
        search = self._search.find_matches_as_indexes
        # a chunk of which much is done is full of hits: the sieve would only cost
        regions = self._sieve.regions(data) if done is None else [(0, len(data))]
        found = [(anchor, low + at) for low, high in regions for anchor, at, _ in search(data[low:high])]
        for place, line, begin, end in lines_at(data, [at for _, at in found], done):
            yield Hit(*found[place], begin, end, chunk.first_line + line)

    def hits_plain(self, chunk: Chunk) -> Iterator[Hit]:
        """The same by the obvious way: every line, every anchor. The twin that tests compare `hits` with."""
        offset, line = 0, chunk.first_line
        for text in chunk.data.split(b"\n"):
            at = 0
            while at < len(text):
                found = [(text.find(anchor, at), index) for index, anchor in enumerate(self.anchors)]
                found = [(place, index) for place, index in found if place >= 0]
                if not found:
                    break
                place, index = min(found)
                yield Hit(index, offset + place, offset, offset + len(text), line)
                at = place + len(self.anchors[index])
            offset += len(text) + 1
            line += 1
