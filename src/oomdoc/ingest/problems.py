"""Problems of one source: the first hundred are told, of the rest the number.

A file of the wrong kind has a problem in every line; a million such rows would say no more than a hundred.
"""

from __future__ import annotations

from collections.abc import Iterator

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Rows

PROBLEM_CAP = 100


class Capped(Rows):
    """Rows of a source of which only the first `PROBLEM_CAP` problems are kept; `close` tells how many more there were."""

    def __init__(self) -> None:
        super().__init__()
        self._problems = 0
        self._last_line = 0

    def problem(self, line: int, reason: str, text: str) -> None:
        """Note a place that ought to have been understood and was not."""
        self._problems += 1
        self._last_line = line
        if self._problems <= PROBLEM_CAP:
            super().problem(line, reason, text)

    def close(self) -> Iterator[Batch]:
        """What is left, and one row for the problems that were not kept."""
        if self._problems > PROBLEM_CAP:
            super().problem(
                self._last_line, f"{self._problems - PROBLEM_CAP} more problems of this source are not listed", ""
            )
        yield from self.take()
