"""AMD's tools: what `rocm-smi` and `amd-smi` print for people. Their tables, CSV and JSON are read by their form (`forms`).

    GPU[0]          : VRAM Total Memory (B): 206141652992          (rocm-smi --showmeminfo vram)
    GPU[0]          : VRAM Total Used Memory (B): 284164096
    GPU: 0                                                         (amd-smi metric --mem-usage, static --vram, list)
        MEM_USAGE:
            TOTAL_VRAM: 196592 MB
    PID     PROCESS NAME    GPU(s)  VRAM USED       SDMA USED       CU OCCUPANCY         (rocm-smi --showpids)

Here the lines of a device become a record; what its names mean is the vocabulary's, as of their JSON. No tool prints a time; a date line
above a block counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Head
from oomdoc.ingest.forms.groups import Gatherer
from oomdoc.ingest.forms.trees import Record
from oomdoc.ingest.record import peel
from oomdoc.ingest.vocabulary import is_irrelevant
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex
from oomdoc.units import parse_time

KIND = "amd-smi"

_DEVICE = regex(r"GPU\[(?P<gpu>\d{1,3})\]\s*:\s*(?P<label>[^:]{1,80}?)\s*:\s*(?P<value>\S.*)")
_GPU = regex(r"GPU:\s*(\d{1,3})\s*")
_PAIR = regex(r"(\s*)([A-Z][\w ()%/.-]{0,60}?):(?:\s+(\S.*))?")
_STAMPED = regex(r"[\W\d]*\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d.{0,40}")
_PIDS = regex(r"PID\s+PROCESS NAME\s+GPU\(s\)\s+VRAM USED\s.*")
_PID_ROW = regex(r"(?P<pid>\d{1,10})\s+(?P<name>\S.*?)\s+(?P<gpus>\d{1,3})\s+(?P<used>\d{1,16})\s+\d+\s+\S+")
_WORDS = (b"VRAM", b"vram", b"GPU use", b"market_name", b"MARKET_NAME", b"PROCESS_INFO")  # rules out nearly all files


def matches(head: Head) -> bool:
    """Labels that only these tools print, with a device and a value."""
    if not any(word in head.data for word in _WORDS):
        return False
    lines = [line.strip() for line in head.lines if line.strip()]
    if not lines:
        return False
    found = 0
    for at, line in enumerate(lines):
        block = _GPU.fullmatch(line) and any(_AMD_KEY.match(other) for other in lines[at + 1 : at + 12])
        if block or _DEVICE.fullmatch(line) or _PIDS.fullmatch(line):
            found += 2
    return found > 0 and 10 * found >= sum(
        1 for line in lines if not re.fullmatch(r"[=\-\s]*(?:[\w :-]{0,60})[=\-\s]*", line)
    )


_AMD_KEY = regex(
    r"(?:MEM_USAGE|TOTAL_VRAM|USED_VRAM|VRAM|MARKET_NAME|ASIC|USAGE|GFX_ACTIVITY|BDF|HIP_ID|HIP_UUID|PROCESS_INFO)\b"
)


class _Reader:
    """The state of one source: the records at hand, each with its line and what its lines said."""

    def __init__(self) -> None:
        self.gatherer = Gatherer()
        self._t: float | None = None
        self._pids = False
        self._devices: dict[int, tuple[int, dict[str, Any]]] = {}
        self._process: tuple[int, dict[str, Any]] | None = None
        self._sections: list[tuple[int, str]] = []
        self._gpu: int | None = None

    def line(self, number: int, text: str) -> None:
        """One line."""
        line = text.strip()
        if not line or not line.strip("=- "):
            self._pids = self._pids and bool(line)
        elif match := _DEVICE.fullmatch(line):
            self._put(number, int(match["gpu"]), match["label"], match["value"])
        elif match := _GPU.fullmatch(line):
            self._end_process()
            self._gpu, self._sections = int(match[1]), []
        elif _PIDS.fullmatch(line):
            self._pids = True
        elif self._pids and (match := _PID_ROW.fullmatch(line)):
            self._record(
                number, "pids", {"pid": match["pid"], "process name": match["name"], "vram used (B)": match["used"]}
            )
        elif _STAMPED.fullmatch(line):
            self.flush()
            self._t = parse_time(line)
        elif self._gpu is not None and (match := _PAIR.fullmatch(text.rstrip())):
            self._pair(number, self._gpu, len(match[1]), match[2].strip(), match[3])

    def _pair(self, number: int, gpu: int, indent: int, name: str, value: str | None) -> None:
        while self._sections and self._sections[-1][0] >= indent:
            self._sections.pop()
        if value is None:
            if name == "PROCESS_INFO":
                self._end_process()
                self._process = number, {"gpu": gpu}
            self._sections.append((indent, name))
            return
        path = [entry for _, entry in self._sections]
        if self._process is not None and "PROCESS_INFO" in path:
            self._process[1]["process_info." + ".".join((*path[path.index("PROCESS_INFO") + 1 :], name)).lower()] = (
                value
            )
        else:
            self._put(number, gpu, ".".join((*path, name)).lower(), value)

    def _put(self, number: int, gpu: int, label: str, value: str) -> None:
        if is_irrelevant(label):
            return
        if label in self._devices.get(gpu, (0, {}))[1]:  # the same again: the next block
            self._end_device(gpu)
        self._devices.setdefault(gpu, (number, {"gpu": gpu}))[1][label] = value

    def _end_device(self, gpu: int) -> None:
        self._record(self._devices[gpu][0], "gpu", self._devices.pop(gpu)[1])

    def _end_process(self) -> None:
        if self._process is not None:
            self._record(self._process[0], "gpu.process", self._process[1])
        self._process = None

    def _record(self, number: int, context: str, values: dict[str, Any]) -> None:
        self.gatherer.add(Record(number, context, values if self._t is None else {"timestamp": self._t, **values}))

    def flush(self) -> None:
        """Everything about the devices so far is complete."""
        self._end_process()
        for gpu in sorted(self._devices):
            self._end_device(gpu)


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """Rows of `gpu_sample`, `gpu_device`, `gpu_process`, and of `problem`."""
    reader = _Reader()
    for chunk in chunks:
        for number, text in chunk.lines(2000):
            reader.line(number, peel(text)[0])
        yield from reader.gatherer.filler.take()
    reader.flush()
    reader.gatherer.flush()
    yield from reader.gatherer.filler.close()
