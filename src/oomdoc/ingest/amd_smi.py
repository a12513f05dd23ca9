"""AMD's tools: what `rocm-smi` and `amd-smi` print for people. Their tables, CSV and JSON are read by their form (`forms`).

    GPU[0]          : VRAM Total Memory (B): 206141652992          (rocm-smi --showmeminfo vram)
    GPU[0]          : VRAM Total Used Memory (B): 284164096
    GPU: 0                                                         (amd-smi metric --mem-usage, static --vram, list)
        MEM_USAGE:
            TOTAL_VRAM: 196592 MB
    PID     PROCESS NAME    GPU(s)  VRAM USED       SDMA USED       CU OCCUPANCY         (rocm-smi --showpids)

`MB` and `GB` are 2**20 and 2**30. GTT and visible VRAM are other things than VRAM and left out. No tool prints a time; a date line above a
block counts. The used line also contains the word Total, so that labels are taken whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Head
from oomdoc.ingest.problems import Capped
from oomdoc.ingest.record import peel
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex
from oomdoc.units import parse_size, parse_time

KIND = "amd-smi"

_SIZE_CAP = 1 << 50
_DEVICE = regex(r"GPU\[(?P<gpu>\d{1,3})\]\s*:\s*(?P<label>[^:]{1,80}?)\s*:\s*(?P<value>\S.*)")
_GPU = regex(r"GPU:\s*(\d{1,3})\s*")
_PAIR = regex(r"(\s*)([A-Z][\w ()%/.-]{0,60}?):(?:\s+(\S.*))?")
_STAMPED = regex(r"[\W\d]*\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d.{0,40}")
_PIDS = regex(r"PID\s+PROCESS NAME\s+GPU\(s\)\s+VRAM USED\s.*")
_PID_ROW = regex(r"(?P<pid>\d{1,10})\s+(?P<name>\S.*?)\s+(?P<gpus>\d{1,3})\s+(?P<used>\d{1,16})\s+\d+\s+\S+")

_LABELS: Mapping[str, str] = {
    "vram total memory (b)": "total", "vram total used memory (b)": "used", "gpu use (%)": "util",
    "total_vram": "total", "used_vram": "used", "vram_total": "total", "vram_used": "used", "gfx_activity": "util", "gfx_util": "util",
    "gfx%": "util", "gfx": "util", "umc_activity": "memory", "gpu memory read/write activity (%)": "memory",
    "card series": "name", "card model": "name", "market_name": "name", "product_name": "name", "device name": "name",
    "size": "total", "vram_size": "total",
}  # fmt: skip
_STRONG = ("used", "total")
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
    """The state of one source."""

    def __init__(self) -> None:
        self.rows = Capped()
        self.t: float | None = None
        self.pids = False
        self._found: dict[int, dict[str, Any]] = {}
        self._sections: list[tuple[int, str]] = []
        self._process: dict[str, Any] = {}
        self._gpu: int | None = None
        self._named: set[int] = set()

    def line(self, number: int, text: str) -> None:
        """One line."""
        line = text.strip()
        if not line or not line.strip("=- "):
            self.pids = self.pids and bool(line)
            return
        if match := _DEVICE.fullmatch(line):
            self._put(number, int(match["gpu"]), match["label"], match["value"])
        elif match := _GPU.fullmatch(line):
            self._end_process()
            self._gpu, self._sections = int(match[1]), []
        elif _PIDS.fullmatch(line):
            self.pids = True
        elif self.pids and (match := _PID_ROW.fullmatch(line)):
            used = int(match["used"])
            self.rows.add(
                "gpu_process", number, t=self.t, pid=int(match["pid"]), name=match["name"], type="C", used_bytes=used
            )
        elif _STAMPED.fullmatch(line):
            self.flush()
            self.t = parse_time(line)
        elif self._gpu is not None and (match := _PAIR.fullmatch(text.rstrip())):
            self._pair(number, len(match[1]), match[2].strip(), match[3])

    def _pair(self, number: int, indent: int, name: str, value: str | None) -> None:
        while self._sections and self._sections[-1][0] >= indent:
            self._sections.pop()
        if value is None:
            if name.upper().startswith("PROCESS"):
                self._end_process()
                self._process = {"line": number} if name.upper() == "PROCESS_INFO" else self._process
            self._sections.append((indent, name.upper()))
            return
        path = [entry for _, entry in self._sections]
        assert self._gpu is not None
        if any(entry.startswith("PROCESS") for entry in path):
            self._of_process(number, name.upper(), value)
        elif name.upper() == "SIZE" and "VRAM" not in path:
            return
        else:
            self._put(number, self._gpu, name, value)

    def _of_process(self, number: int, name: str, value: str) -> None:
        process = self._process
        if name == "NAME" and "name" in process:
            self._end_process()
            process = self._process
        process.setdefault("line", number)
        if name == "NAME":
            process["name"] = None if value == "N/A" else value
        elif name == "PID" and value.isdigit() and len(value) < 11:
            process["pid"] = int(value)
        elif name in ("VRAM_MEM", "MEM_USAGE", "MEM"):
            process.setdefault("used_bytes", _bytes(value))

    def _end_process(self) -> None:
        process, self._process = self._process, {}
        if "pid" in process:
            line = process.pop("line")
            self.rows.add("gpu_process", line, t=self.t, gpu=self._gpu, type="C", **process)

    def _put(self, number: int, gpu: int, label: str, value: str) -> None:
        what = _LABELS.get(label.strip().lower())
        if what is None or value.strip() in ("N/A", ""):
            return
        found = self._found.setdefault(gpu, {"line": number})
        if what in found and what != "name":  # the same again: the next block
            self._tell(gpu)
            found = self._found[gpu] = {"line": number}
        if what == "name":
            found.setdefault("name", value.strip()[:200])
        elif what in _STRONG:
            found[what] = _bytes(value, label)
            if found[what] is None:
                self.rows.problem(number, f"no size of {label.strip()}", value)
        else:
            found[what] = _share(value)

    def _tell(self, gpu: int) -> None:
        found = self._found.pop(gpu, None)
        if not found:
            return
        get = found.get
        if get("name") and gpu not in self._named:
            self._named.add(gpu)
            self.rows.add("gpu_device", found["line"], gpu=gpu, name=get("name"), total_bytes=get("total"), count=1)
        elif get("used") is None and get("total") is not None:
            self.rows.add("gpu_device", found["line"], gpu=gpu, total_bytes=get("total"), count=1)
        if get("used") is not None or get("util") is not None:
            self.rows.add(
                "gpu_sample", found["line"], t=self.t, gpu=gpu, used_bytes=get("used"), total_bytes=get("total"),
                gpu_util=get("util"), memory_util=get("memory"),
            )  # fmt: skip

    def flush(self) -> None:
        """Everything about the devices so far is complete."""
        self._end_process()
        for gpu in sorted(self._found):
            self._tell(gpu)


def _bytes(text: str, label: str = "") -> int | None:
    """Bytes of a size; without a unit rocm-smi's labels name it, and amd-smi counts MB."""
    size = parse_size(text.strip(), binary=True, unit="B" if "(b)" in label.lower() else "MB")
    return size if size is not None and 0 <= size < _SIZE_CAP else None


def _share(text: str) -> float | None:
    match = re.fullmatch(r"(\d{1,3}(?:\.\d+)?)\s*%?", text.strip())
    return float(match[1]) / 100 if match and float(match[1]) <= 100 else None


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """Rows of `gpu_sample`, `gpu_device`, `gpu_process`, and of `problem`."""
    reader = _Reader()
    for chunk in chunks:
        for number, text in chunk.lines(2000):
            reader.line(number, peel(text)[0])
        yield from reader.rows.take()
    reader.flush()
    yield from reader.rows.close()
