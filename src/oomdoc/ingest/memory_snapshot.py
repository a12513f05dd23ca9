"""`torch.cuda.memory._dump_snapshot`: every segment and block of the allocator, and the trace of what it did.

    {"segments": [{"device": 0, "address": 139..., "total_size": 2097152, "segment_pool_id": (0, 0), "is_expandable": False,
                   "blocks": [{"size": 1048576, "state": "active_allocated", "frames": [{"filename", "line", "name"}, ...]}]}],
     "device_traces": [[{"action": "oom", "size": 67108864, "device_free": 1048576, "time_us": 1795205091000000, "frames": [...]}]],
     "allocator_settings": {...}}                       (torch 2.0 to 2.13; 1.13 kept frames in `history`)

A dump is a pickle, seldom JSON. `PlainPickle` unpickles nothing: it knows the two dozen opcodes of dictionaries, lists, tuples,
texts and numbers, and refuses the file at any other, so that nothing can be called, imported or built. It holds neither
the blocks nor the trace: each is added up when it is complete and dropped. Limits on operations, depth, held objects and text bound
time and memory; a dump beyond them is told as a problem, and what was added up before stands.

Tables: `allocator_segment` (what segments hold), `allocator_block` (live bytes by the line of code that asked for them),
`allocator_trace` (the peak, the last failures), and besides `allocator_stat` and `oom` as other sources fill them. What a trace
counts is moved so that its end agrees with the segments: then allocated and reserved bytes are exact at each event.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Head, Rows
from oomdoc.ingest.json_pieces import ITEM, BrokenError, pieces
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

if TYPE_CHECKING:
    from oomdoc.ingest.snapshot_sums import Sums

KIND = "memory-snapshot"

MAGIC = regex(rb"\x80[\x02-\x05]")

_BEGINS = regex(
    MAGIC.pattern + rb"(?:\x95.{8})?\}(?:\x94|q.)?\(?(?:\x8c.|X.\0\0\0)(?:segments|device_traces)(?:\x94|q|\]|\()", re.S
)


def is_binary(head: Head) -> bool:
    """Whether this is a pickle that begins as a snapshot does: its first key is `segments` or `device_traces`."""
    return bool(_BEGINS.match(head.data))


_JSON = regex(rb'\s*\{\s*"(?:segments|device_traces)"\s*:\s*\[')


def matches(head: Head) -> bool:
    """A snapshot as a pickle or as JSON."""
    return is_binary(head) or bool(
        _JSON.match(head.data) and re.search(rb'"(?:total_size|blocks|device_traces|action)"\s*:', head.data)
    )


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """Rows of the allocator's tables, added up; one problem for a file that is not plain."""
    rows = Rows()
    drawn = iter(chunks)
    first = next(drawn, None)
    if first is not None:
        feed = chain([first], drawn)
        sums = _from_pickle(rows, feed) if MAGIC.match(first.data) else _from_json(rows, feed)
        sums.tell(rows)
    if not rows.count:
        rows.problem(1, "a memory snapshot without segments or traces", "")
    yield from rows.take()


def _from_pickle(rows: Rows, chunks: Iterable[Chunk]) -> Sums:
    # here, since few bundles hold a snapshot and every run would pay for the import
    from oomdoc.ingest.plain_pickle import CutError, LimitError, PlainPickle, StrangeError
    from oomdoc.ingest.snapshot_sums import Sums

    sums = Sums()
    try:
        PlainPickle(chunks, sums).run()
    except StrangeError as problem:
        rows.problem(1, f"not a plain memory snapshot: {problem}; nothing of it was run", "")
        return Sums()
    except LimitError as problem:
        rows.problem(1, f"a memory snapshot with {problem}: what comes before is added up", "")
    except CutError:
        rows.problem(1, "a memory snapshot that is cut: what comes before is added up", "")
    return sums


def _from_json(rows: Rows, chunks: Iterable[Chunk]) -> Sums:
    from oomdoc.ingest.snapshot_sums import DEVICES, Sums

    sums = Sums()
    whole = {("segments", ITEM), ("device_traces", ITEM, ITEM)}
    try:
        for piece in pieces(chunks, lambda path: path in whole):
            if piece.path == ("segments", ITEM) and isinstance(piece.value, dict):
                blocks = piece.value.get("blocks")
                sums.segment(piece.value, map(sums.block, blocks if isinstance(blocks, list) else ()))
            elif piece.path == ("device_traces", ITEM, ITEM) and piece.places[0] < DEVICES:
                sums.event(piece.places[0], piece.value)
    except BrokenError as problem:
        rows.problem(problem.line, f"a memory snapshot: {problem}", "")
    return sums
