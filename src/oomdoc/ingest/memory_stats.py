"""What `torch.cuda.memory_stats()` returns, printed or dumped: flat keys, nested dicts, JSON or Python's own notation.

    {"allocated_bytes.all.current": 75161927680, "allocated_bytes.all.peak": 77309411328, "num_ooms": 1, ...}
    OrderedDict([('active.all.allocated', 812340), ('active.all.current', 1204), ...])
    {'allocated_bytes': {'all': {'current': 75161927680, ...}}}                (memory_stats_as_nested_dict)

A source may hold several, one for each device or moment: they are numbered as tables of `memory_summary` are, in whose table
they go. Keys are `<metric>.<pool>.<kind>` (torch/cuda/memory.py, 1.4 to 2.13): told is `current` of the pool `all`, and scalars such as
`num_ooms`, which have no more.
`{}` is a process that never touched the device. Text around a dump (`rank 3: {...}`) is allowed; its device is the number
that follows `device`, `cuda:`, `gpu` or `rank` in the line in which it begins, else unknown. Nothing is evaluated: keys and integers are
found in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Head, beginning
from oomdoc.ingest.problems import Capped
from oomdoc.ingest.vocabulary.words import named
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

KIND = "memory-stats"

METRICS = named("allocator_metrics")
SCALARS = named("allocator_scalars")
_LARGEST = 1 << 62
_CAP_BYTES = 32 << 20  # a dump has 8 KB

_ENTRY = regex(
    r"(?P<open>\{)|(?P<close>\})"
    r"|\(?(?:[\"'](?P<key>[\w:.]{1,120})[\"']|(?P<number>\d{1,3}))\s*[:,]\s*(?:(?P<value>-?\d{1,20})(?![\w.])|(?:OrderedDict\()?(?P<inner>\{))"
    r"|(?P<start>OrderedDict\(\s*\[)|(?P<end>\]\s*\))"
)
_FLAT = regex(
    r"[\"'](?:allocated_bytes|active_bytes|reserved_bytes)\.(?:all|large_pool|small_pool)\.(?:current|peak)[\"']\s*[:,]\s*\d"
)
_NESTED = regex(
    r"[\"'](?:allocated_bytes|active_bytes|reserved_bytes)[\"']\s*[:,]\s*\{\s*[\"'](?:all|large_pool|small_pool)[\"']\s*[:,]\s*\{"
)
_NAMED_DEVICE = regex(r"(?:cuda:?|gpu:?)?(\d{1,3})")
_DEVICE = regex(r"(?:\bdevice\W{0,4}|\bcuda:|\b(?:gpu|rank)\W{0,4})(\d{1,3})\b", re.I)


def matches(head: Head) -> bool:
    """Keys of the statistics with a number behind them, in a text that is not a log which quotes them."""
    if not any(name in head.data for name in (b"allocated_bytes", b"active_bytes", b"reserved_bytes")):
        return False
    text = head.data.decode("utf-8", "replace")
    if not (_FLAT.search(text) or _NESTED.search(text)):
        return False
    lines = [line.strip() for line in head.lines if line.strip()]
    foreign = sum(
        1 for line in lines if not re.match(r"[\[{(}\])'\",]|OrderedDict|[^{]{0,80}(?:\{|OrderedDict\()", line)
    )
    return foreign * 4 <= len(lines)


class _Dumps:
    """The state of one source: which dump and where in it the next key belongs."""

    def __init__(self) -> None:
        self.rows = Capped()
        self.number = 0
        self.device: int | None = None
        self._path: list[str] = []
        self._depth: list[int] = []
        self._open = 0
        self._found: dict[str, tuple[int, int]] = {}

    def text(self, text: str) -> None:
        """Everything that a text holds."""
        line, counted = 1, 0
        for found in _ENTRY.finditer(text):
            line += text.count("\n", counted, found.start())
            counted = found.start()
            key = found["key"] or found["number"]
            if key is None:
                self._bracket(found, text)
            elif found["value"] is not None:
                self._value(line, tuple(".".join((*self._path, key)).split(".")), int(found["value"]))
            else:
                self._open += 1
                self._path.append(key)
                self._depth.append(self._open)
                if device := _NAMED_DEVICE.fullmatch(key):  # of a mapping of all devices
                    self.close()
                    self.device = int(device[1])
        self.close()

    def _bracket(self, found: re.Match[str], text: str) -> None:
        if found["open"] or found["start"]:
            if not self._open:
                self.close()
                begin = text.rfind("\n", 0, found.start()) + 1
                device = _DEVICE.search(text[max(begin, found.start() - 200) : found.start()])
                self.device = int(device[1]) if device else None
            self._open += 1
        elif self._open:
            if self._depth and self._depth[-1] == self._open:
                self._depth.pop()
                self._path.pop()
            self._open -= 1

    def _value(self, line: int, path: tuple[str, ...], value: int) -> None:
        path = path[-3:] if len(path) > 3 else path[1:] if _NAMED_DEVICE.fullmatch(path[0]) else path
        is_metric = path[1:] in (("current",), ("all", "current")) and path[0] in METRICS
        if not is_metric and not (len(path) == 1 and path[0] in SCALARS):
            return
        if abs(value) >= _LARGEST:
            self.rows.problem(line, f"no value of {'.'.join(path)}", str(value))
            return
        if path[0] in self._found:  # the same key again: the next dump, whatever brackets stand between
            self.close()
        self._found[path[0]] = line, value

    def close(self) -> None:
        """The dump at hand is complete."""
        if not self._found:
            return
        self.number += 1
        for metric, (line, value) in self._found.items():
            self.rows.add("allocator_stat", line, device=self.device, summary=self.number, metric=metric, current=value)
        self._found = {}


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """Rows of `allocator_stat`."""
    dumps, data = _Dumps(), beginning(chunks, _CAP_BYTES + 1)
    dumps.text(data[:_CAP_BYTES].decode("utf-8", "replace"))
    if len(data) > _CAP_BYTES:
        dumps.rows.problem(1, "statistics of more than 32 MiB: only their beginning was read", "")
    if not dumps.number:
        dumps.rows.problem(1, "statistics of torch's allocator without one that is known", "")
    yield from dumps.rows.close()
