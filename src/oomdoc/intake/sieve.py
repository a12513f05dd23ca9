"""The coarse half of the literal search: the few places of a large chunk that can hold an anchor at all.

The automaton that finds some 300 anchors walks byte by byte, 2.1 ms a MB; the library's fast SIMD search takes 64 at most.
Here numpy looks at four bytes at every fourth byte only, 0.4 ms a MB: wherever an anchor of eight bytes or more lies, one of
those looks falls into it, so four pieces of an anchor (one for every phase) are all that has to be known, each the rarest
that its phase allows. A second look, at eight bytes, is for the one place in a hundred that is left. Shorter anchors are
few and left to the SIMD search. The automaton reads what remains: nothing is missed, the sample decides on speed alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

_STEP = 4
_LEAST = 8  # bytes of an anchor that is known here
_BITS = 18  # of a hash: a table of 256 KiB stays in the cache
_GAP = 512  # what lies nearer is one region: a region costs what 500 bytes of the automaton do
_ANY = -1  # windows of several anchors begin differently: no second look
_REGION_COST = 30  # what a region costs, in looks at a window


class Sieve:
    """Knows the anchors; `sample` is text like that to come."""

    def __init__(self, anchors: Sequence[bytes], sample: bytes) -> None:
        from ahocorasick_rs import BytesAhoCorasick, MatchKind

        self._reach = max(map(len, anchors))
        self._known = np.zeros(1 << _BITS, np.bool_)  # pieces of four bytes
        self._before = np.zeros(1 << _BITS, np.int64)  # how far before such a piece its window begins
        self._near = np.zeros(1 << _BITS, np.bool_)  # windows of eight bytes around the pieces
        pieces_seen = np.bincount(_hash4(sample, 1), minlength=1 << _BITS)
        windows_seen = np.bincount(_hash8(_eights(sample)), minlength=1 << _BITS)
        for anchor in sorted(anchors, key=len):
            if len(anchor) >= _LEAST:
                pieces, windows = _hash4(anchor, 1), _hash8(_eights(anchor))
                self._learn(
                    pieces.tolist(), pieces_seen[pieces].tolist(), windows.tolist(), windows_seen[windows].tolist()
                )
        short = [anchor for anchor in anchors if len(anchor) < _LEAST]
        self._short = BytesAhoCorasick(short, matchkind=MatchKind.LeftmostFirst) if short else None

    def _learn(self, pieces: list[int], seen: list[int], windows: list[int], windows_seen: list[int]) -> None:
        """For every phase the piece and the window that leave the least to do, and that other anchors do not use otherwise."""
        for phase in range(_STEP):
            ways = [
                (seen[at] + _REGION_COST * windows_seen[begin], at, begin)
                for at in range(phase, len(pieces), _STEP)
                for begin in range(max(0, at - _STEP), min(at + 1, len(windows)))
            ]
            free = [
                way
                for way in ways
                if not self._known[pieces[way[1]]] or self._before[pieces[way[1]]] == way[1] - way[2]
            ]
            _, at, begin = min(free or ways)
            self._before[pieces[at]] = at - begin if free else _ANY
            self._known[pieces[at]] = self._near[windows[begin]] = True

    def regions(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Begin and end of what can hold anchors, in order: no anchor is cut, and outside of them is none."""
        pieces = _hash4(data, _STEP)
        index = np.flatnonzero(self._known.take(pieces))  # a quarter faster than by brackets
        at, before = index * _STEP, self._before[pieces[index]]
        eights = _eights(data)
        start = at - before
        inner = np.clip(start, 0, len(eights) - 1)
        at = at[self._near[_hash8(eights[inner])] | (before == _ANY) | (start != inner)]
        if self._short:
            short = [begin for _, begin, _ in self._short.find_matches_as_indexes(data)]
            at = np.sort(np.concatenate((at, np.array(short, np.int64))))
        if not len(at):
            return
        apart = np.flatnonzero(np.diff(at) > max(2 * self._reach, _GAP))
        for first, last in zip(at[np.append(0, apart + 1)].tolist(), at[np.append(apart, -1)].tolist(), strict=True):
            yield max(0, first - self._reach), last + self._reach


def lines_at(data: bytes, places: list[int], done: Any = None) -> Iterator[tuple[int, int, int, int]]:
    """For every place: which one it is, newlines before it, begin and end of its line. Lines of the mask `done` are left out."""
    stops = np.flatnonzero(np.frombuffer(data, np.uint8) == 10)
    before = np.searchsorted(stops, places)
    which = np.arange(len(places)) if done is None else np.flatnonzero(~done[before])
    bounds = np.concatenate(([-1], stops, [len(data)]))
    before = before[which]
    return zip(which.tolist(), before.tolist(), (bounds[before] + 1).tolist(), bounds[before + 1].tolist(), strict=True)


def _eights(data: bytes) -> Any:
    """The eight bytes at every place as a number, without a copy."""
    return np.ndarray((len(data) - 7,), "<u8", data, 0, (1,))


def _hash8(eights: Any) -> Any:
    return (eights * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(64 - _BITS)).astype(np.int64)


def _hash4(data: bytes, step: int) -> Any:
    """A hash of the four bytes at every `step`-th place; of 64 bits, since another type makes it a dear index."""
    words = np.ndarray(((len(data) - 4) // step + 1,), "<u4", data, 0, (step,))
    return (words * np.uint32(0x9E3779B1) >> np.uint32(32 - _BITS)).astype(np.int64)
