"""Tables, pairs and statements inside of prose, taken out of it before it is read as prose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.forms.groups import Gatherer
from oomdoc.ingest.forms.pairs import Pairs
from oomdoc.ingest.forms.reported import Reported
from oomdoc.ingest.forms.spoken import Spoken
from oomdoc.ingest.forms.statements import Statements
from oomdoc.ingest.forms.tables import Tables
from oomdoc.ingest.forms.worded import Worded
from oomdoc.ingest.metrics import answered, asked_in, pasted
from oomdoc.intake.scan import Chunk

_LIFT_CAP = 256 << 10  # a longer text is a log, and its tables are those of tools, which have readers


class Lifted:
    """Takes tables and blocks of pairs out of a short text: their lines are blank in what is handed on."""

    def __init__(self) -> None:
        self._gatherer = Gatherer()

    def chunks(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """The chunks, without the lines that were read here: those of a source that is one short chunk."""
        given = iter(chunks)
        first = next(given, None)
        if first is None:
            return
        second = next(given, None)  # a source that goes on is a log, and may be read on another day: never cut
        if second is None and len(first.data) <= _LIFT_CAP and b"\x00" not in first.data:
            first = self._lifted(first)
        yield first
        if second is not None:
            yield second
        yield from given

    def take(self) -> Iterator[Batch]:
        """What was read."""
        self._gatherer.flush()
        yield from self._gatherer.filler.close()

    def _samples(self, lines: Sequence[str], first_line: int, taken: set[int]) -> set[int]:
        """Samples of an exporter that somebody pasted, a few of a scrape: `vllm:num_requests_running{..} 256`."""
        found: set[int] = set()
        asked: str | None = None
        for at, line in enumerate(lines):
            answer = answered(line, asked)
            if answer is not None and self._gatherer.filler.series(first_line + at, answer[3], *answer[:3]):
                found.add(at)
                continue
            if line.strip():
                asked = asked_in(line)  # what stands below another query is its answer
            sample = pasted(line) if at not in taken and ":" in line else None
            if sample is not None and self._gatherer.filler.series(first_line + at, None, *sample):
                found.add(at)
        return found

    def _lifted(self, chunk: Chunk) -> Chunk:
        lines = chunk.data.decode("utf-8", "replace").split("\n")
        reader = Tables(self._gatherer)
        taken = reader.read(lines, chunk.first_line)
        reader.end()
        left = ["" if at in taken else line for at, line in enumerate(lines)]
        taken |= Pairs(self._gatherer).read(left, chunk.first_line)
        taken |= self._samples(lines, chunk.first_line, taken)
        stated = Statements(self._gatherer).read(
            lines, chunk.first_line, taken
        )  # left in place: a log's line may tell more
        Worded(self._gatherer).read(lines, chunk.first_line, taken | stated)  # likewise
        Spoken(self._gatherer).read(lines, chunk.first_line, taken)  # likewise
        Reported(self._gatherer).read(lines, chunk.first_line, taken | stated)  # likewise
        if not taken:
            return chunk
        raw = chunk.data.split(b"\n")
        return chunk._replace(data=b"\n".join(b"" if at in taken else line for at, line in enumerate(raw)))
