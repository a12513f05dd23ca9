"""What a loop prints of its memory at each turn: a number that counts, and sizes that are named.

    step   3  depth 8   allocated  12.51 GiB   reserved  13.10 GiB
    [epoch 2] rss=18.4GB        Iteration 40: memory_allocated 5,120 MiB

Rows of `process_memory`: what an allocator calls allocated is memory of the device, resident memory that of the host; what is
reserved is not told apart from what it keeps for later, and peaks do not fall. Fewer than five turns in one wording are no course.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Rows
from oomdoc.regexes import regex
from oomdoc.units import parse_size

TELLING = regex(rb"(?i)(?:allocated|\brss\b|\bresident)(?:[ :=()a-z]|&nbsp;){1,12}[\d.,]+ ?[KMG](?:i?B)?\b")
"""Whether a text holds anything of this kind: one search for each short text."""

_LEAST = 5
"""Turns: fewer say nothing of a course."""
_TURN = regex(
    r"(?:\[?(?:\d{4}-\d\d-\d\d[ T])?\d\d:\d\d(?::\d\d)?[.,\d]{0,8}\]?)?\W{0,4}(?:after |end of |at )?(?P<what>steps?|iter(?:ation)?s?|epochs?|batch(?:es)?|rounds?|loops?|runs?|turns?|calls?|prompts?|requests?|traces?|generations?|updates?|it|i)\b[ #:=.\[]{0,6}(?P<number>\d{1,9})\b",
    re.I,
)
_SIZE = regex(
    r"(?<![\w.])(?:(?:torch\.)?(?:cuda\.)?(?P<live>(?:memory[_ ])?allocated|live)|(?P<host>rss|resident|vmrss))(?:[_ ](?:memory|mem|bytes|now))?[ :=(]{1,8}(?P<size>\d[\d.,]{0,15} ?[KMG](?:i?B)?)\b",
    re.I,
)
_DIGITS = regex(r"\d[\d.,]*")


def read(data: bytes) -> Iterator[Batch]:
    """The courses in a short text."""
    courses: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        turn = _TURN.match(line) if len(line) <= 400 else None
        if turn is None:
            continue
        wording = " ".join(_DIGITS.sub("#", line).split())
        for found in _SIZE.finditer(line, turn.end()):
            size = parse_size(found["size"].replace(",", ""), binary=True)
            if size is not None:
                key = (wording, "gpu" if found["live"] else "host")
                courses.setdefault(key, []).append((number, int(turn["number"]), size))
    rows = Rows()
    for (_, resource), course in courses.items():
        if len(course) >= _LEAST and all(a[1] < b[1] for a, b in itertools.pairwise(course)):
            for number, step, size in course:
                rows.add("process_memory", number, name="allocated" if resource == "gpu" else "resident", resource=resource, bytes=size, step=step)  # fmt: skip
    yield from rows.take()
