"""The parts of a short text that the reader of the whole did not understand: each is read as if it had been handed in alone.

People paste one thing below another: a list of pods, then what `kubectl get ... -o jsonpath` printed, then three counters of a
memory group. Whoever recognises the whole by its first lines reads his own part and passes over the rest.

    NAME      READY  STATUS             RESTARTS         the reader of the whole: kubectl
    engine-0  0/1    CrashLoopBackOff   6
    $ cat /sys/fs/cgroup/memory.events                   a passage: counters of a memory group
    oom_kill 3
    ts;gpu;mem_used_mib                                  a passage: a table
    09:14:00;0;71012

A passage ends where a command was typed, at a fence, a heading or a blank line. One of which a line was read is known; of prose,
which is read line by line, the other lines are a passage still. Only kinds with a form of their own are asked: prose, documents and logs have
been heard with the whole. What a passage gives that is no row of evidence is dropped, since nobody said that it is of that kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from oomdoc.evidence.tables import COLUMN_READING, LOOKALIKE, Batch
from oomdoc.ingest.answers import Answers
from oomdoc.ingest.base import Head, Ingestor
from oomdoc.ingest.forms.tables import FAR
from oomdoc.ingest.prompts import typed
from oomdoc.ingest.text_form import is_log_line
from oomdoc.intake.hosts import owners, writer_of
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

CAP_BYTES = 64 << 10
"""A longer text is no collection of pieces that a person pasted."""
_MOST = 40
"""Passages of one text that are looked at: each costs some milliseconds."""
_FENCE = regex(r"\s{0,3}(?:```|~~~)")
_HEADING = regex(
    # `nvidia-smi dmon` and `pmon` begin the names and units of their columns like a heading
    r"\s*(?:#{1,6} (?!(?:gpu|Idx|Date|Time)\s)\S|={2,}|-{3,}|\*{3,}|==> .* <==|[=#*-]{2,} .{1,80} [=#*-]{2,}\s*$|\[[a-z][\w ./-]{1,40}\]\s*$)"
)
_BARS = ("|", "+", "│")
_ABOUT = frozenset((COLUMN_READING, LOOKALIKE, "problem"))
"""Tables that say something of the reading and nothing of the server."""


@dataclass(frozen=True)
class Passage:
    """Lines of a text that belong together; `first_line` is the number of the first."""

    first_line: int
    lines: tuple[str, ...]

    @property
    def data(self) -> bytes:
        """As a source of its own."""
        return "\n".join(self.lines).encode("utf-8", "replace") + b"\n"


def passages(lines: Sequence[str], known: set[int], by_line: bool = True) -> Iterator[Passage]:
    """The passages of a text whose first line has number 1, without those of a log.

    Lines in `known` end a passage; where the text was not read `by_line`, a passage with one of them is known as a whole.

    >>> [(p.first_line, p.lines) for p in passages(["a b", "$ cat x", "1", "", "2"], {1})]
    [(3, ('1',)), (5, ('2',))]
    """
    held: list[str] = []
    begin = 0
    told = among_bars = False
    for number, line in enumerate([*lines, ""], 1):
        ends = (not line.strip() or (by_line and number in known) or typed(line) is not None or bool(_FENCE.match(line) or _HEADING.match(line)) or is_log_line(line))  # fmt: skip
        barred = line.lstrip()[:1] in _BARS
        if held and not ends and barred != among_bars:  # a screen between lines of prose
            if not told:
                yield Passage(begin, tuple(held))
            held, begin, told = [], 0, False
        among_bars = barred
        if not ends:
            begin = begin or number
            told = told or number in known
            held.append(line)
        else:
            if held and not told:
                yield Passage(begin, tuple(held))
            held, begin, told = [], 0, False


def lines_of(batches: Iterable[Batch]) -> set[int]:
    """The lines that rows of evidence name.

    The bare word that somebody was `OOMKilled` names nobody: the table or the object that it stands in says who, and is read still.
    """
    return {int(line) for batch in batches if batch.table not in _ABOUT for line, bare in zip(batch.columns["line"], _bare(batch), strict=True) if not bare}  # fmt: skip


def _bare(batch: Batch) -> Sequence[bool]:
    """Of each row whether it is such a word."""
    lines = len(batch.columns["line"])
    reasons, objects = batch.columns.get("reason"), batch.columns.get("object")
    if batch.table != "cluster_event" or reasons is None:
        return [False] * lines
    return [
        reason == "OOMKilled" and not about for reason, about in zip(reasons, objects or [None] * lines, strict=True)
    ]


def together(lines: Sequence[str], found: Sequence[Passage]) -> Iterator[Passage]:
    """The passages, those that begin with the same line as one: a table of each run, told apart by what stands above each.

    >>> text = ["# old", "h m", "0 9", "", "# new", "h m", "0 8"]
    >>> [(p.first_line, p.lines) for p in together(text, [Passage(2, ("h m", "0 9")), Passage(6, ("h m", "0 8"))])]
    [(1, ('# old', 'h m', '0 9', '', '# new', 'h m', '0 8'))]
    """
    headed: dict[str, list[Passage]] = {}
    for passage in found:
        headed.setdefault(passage.lines[0].strip(), []).append(passage)
    for parts in headed.values():
        if len(parts) == 1:
            yield parts[0]
            continue
        kept: dict[int, str] = {}
        for part in parts:
            above = (number for number in range(part.first_line - 1, max(0, part.first_line - 1 - FAR), -1))
            heading = next((number for number in above if lines[number - 1].strip()), None)
            if heading is not None and typed(lines[heading - 1]) is None:
                kept.setdefault(heading, lines[heading - 1])
            kept.update(enumerate(part.lines, part.first_line))
        first = min(kept)
        yield Passage(first, tuple(kept.get(number, "") for number in range(first, max(kept) + 1)))


_STANDS_IN = regex(r"--?(?P<flag>[A-Za-z][\w-]{2,60})[ =](?P<name>[A-Z]|<\w{1,30}>|\$\{?\w{1,30}\}?)(?=\s|$)")
_CELL = regex(r"(?<![^|\s,;])(?P<name>[A-Z]|<\w{1,30}>|\$\{?\w{1,30}\}?)(?![^|\s,;])")


def _named(header: str, meant: Mapping[str, str]) -> str:
    """A header with the flag in place of the letter that stood for its value in a command.

    >>> _named("| N | result |", {"N": "max-num-seqs"})
    '| max-num-seqs | result |'
    """
    return _CELL.sub(lambda match: meant.get(match["name"], match["name"]), header)


Choose = Callable[[Head], Ingestor | None]


def read(path: str, data: bytes, known: set[int], by_line: bool, choose: Choose) -> Iterator[Batch]:
    """What the passages of a text hold, and what typed commands were answered; `choose` names the reader of a passage."""
    lines = data.decode("utf-8", "replace").split("\n")
    answers = Answers(lines, known)
    yield from answers.read()
    known = known | answers.read_lines
    meant = {match["name"]: match["flag"] for line in lines for match in _STANDS_IN.finditer(line)}
    whose, hosts = owners(lines), dict[str, str]()
    for passage in together(lines, list(islice(passages(lines, known, by_line), _MOST))):
        if meant:
            passage = Passage(passage.first_line, (_named(passage.lines[0], meant), *passage.lines[1:]))
        for batch in _passage(path, passage, choose):
            host = whose[passage.first_line - 1] if batch.table.startswith("gpu_") else ""
            yield batch._replace(writer=writer_of(host, hosts)) if host else batch


def _passage(path: str, passage: Passage, choose: Choose) -> Iterator[Batch]:
    data = passage.data
    if not _TELLING.search(data):
        return
    ingestor = choose(Head(path, data))
    if ingestor is None:
        return
    placed = b"\n" * (passage.first_line - 1) + data  # readers of documents count lines themselves
    for batch in ingestor.read(path, [Chunk(placed, 1, True)]):
        if batch.table not in _ABOUT:
            yield batch


_TELLING = regex(rb"\d")
"""Evidence has a figure somewhere; a passage of words alone is prose."""
