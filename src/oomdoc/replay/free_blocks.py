"""The free blocks of the pool, and whose content they still have."""

from __future__ import annotations

from collections import deque

from oomdoc.replay.asked import ANYBODY


class FreeBlocks:
    """The free blocks in the order in which they are taken, as runs of one owner: (owner, count).

    A block that is freed keeps its content until it is taken for another: the cache of V1. Of a run the last blocks are
    taken first, so that what remains is the beginning of its owner's tokens.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._runs: deque[list[int]] = deque([[ANYBODY, count]])
        self._owned: dict[int, list[int]] = {}

    def take(self, count: int) -> None:
        """Take so many blocks for new content, the longest unused first."""
        self.count -= count
        runs = self._runs
        while count:
            head = runs[0]
            if head[1] > count:
                head[1] -= count
                return
            count -= head[1]
            runs.popleft()
            if head[0] != ANYBODY and self._owned.get(head[0]) is head:
                del self._owned[head[0]]

    def put(self, owner: int, count: int) -> None:
        """Free blocks; an owner of its own has no run here yet."""
        if not count:
            return
        self.count += count
        if owner == ANYBODY and self._runs and self._runs[-1][0] == ANYBODY:
            self._runs[-1][1] += count
            return
        run = [owner, count]
        self._runs.append(run)
        if owner != ANYBODY:
            self._owned[owner] = run

    def held(self, owner: int) -> int:
        """Blocks of the owner that still have their content."""
        run = self._owned.get(owner)
        return run[1] if run else 0

    def reuse(self, owner: int, count: int) -> None:
        """Take the first blocks of the owner with their content; what is left of its run is anybody's."""
        run = self._owned.pop(owner, None)
        if run is not None:
            self.count -= count
            run[0] = ANYBODY
            run[1] -= count
