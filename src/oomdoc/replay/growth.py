"""Which running requests begin a block in which step."""

from __future__ import annotations


class Growth:
    """The requests that decode, by the step, modulo the tokens of a block, in which they begin a block."""

    def __init__(self, block_size: int) -> None:
        self._size = block_size
        self._counts = [0] * block_size
        self._who: list[set[int]] = [set() for _ in range(block_size)]

    def begin(self, place: int, base: int) -> None:
        """A request decodes from now on, which has computed `base + step` tokens in any step."""
        self._counts[-base % self._size] += 1
        self._who[-base % self._size].add(place)

    def end(self, place: int, base: int) -> None:
        """It does no longer."""
        self._counts[-base % self._size] -= 1
        self._who[-base % self._size].remove(place)

    def who(self, step: int) -> set[int]:
        """Those that begin a block in this step."""
        return self._who[step % self._size]

    def blocks(self, step: int, count: int, running: int) -> int:
        """Blocks that the running requests, so many, begin within so many steps."""
        size, counts = self._size, self._counts
        cycles, rest = divmod(count, size)
        begin = step % size
        grown = cycles * running
        if begin + rest <= size:
            return grown + sum(counts[begin : begin + rest])
        return grown + sum(counts[begin:]) + sum(counts[: begin + rest - size])

    def steps_within(self, step: int, free: int, running: int) -> int:
        """Most steps that need no more than so many blocks."""
        size, counts = self._size, self._counts
        cycles = free // running
        count, left = cycles * size, free - cycles * running
        while counts[(step + count) % size] <= left:
            left -= counts[(step + count) % size]
            count += 1
        return count
