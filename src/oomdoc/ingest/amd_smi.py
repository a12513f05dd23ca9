"""AMD's tools: `rocm-smi` and `amd-smi` as text, CSV and JSON.

    GPU[0]          : VRAM Total Memory (B): 206141652992          (rocm-smi --showmeminfo vram)
    GPU[0]          : VRAM Total Used Memory (B): 284164096
    device,VRAM Total Memory (B),VRAM Total Used Memory (B)        (--csv)
    {"card0": {"VRAM Total Memory (B)": "206141652992", "GPU use (%)": "97", ...}}       (--json)
    GPU: 0                                                         (amd-smi metric --mem-usage, static --vram, list)
        MEM_USAGE:
            TOTAL_VRAM: 196592 MB
    GPU  POWER  ...  VRAM_USED  VRAM_TOTAL                         (amd-smi monitor --vram-usage)
    [{"gpu": 0, "mem_usage": {"total_vram": {"value": 196592, "unit": "MB"}, ...}}]      (--json)
    PID     PROCESS NAME    GPU(s)  VRAM USED       SDMA USED       CU OCCUPANCY         (rocm-smi --showpids)

`MB` and `GB` are 2**20 and 2**30. GTT and visible VRAM are other things than VRAM and left out. No tool prints a time; a date line above a
block counts. The used line also contains the word Total, so that labels are taken whole.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Head
from oomdoc.ingest.problems import Capped
from oomdoc.ingest.record import peel
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex
from oomdoc.units import parse_size, parse_time

KIND = "amd-smi"
TABLES = ("gpu_sample", "gpu_device", "gpu_process", "problem")

_CAP_BYTES = 8 << 20  # of JSON; a host of eight devices prints 100 KB
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
    "size": "total", "vram_size": "total", "vram_usage": "vram",
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
    if head.data.lstrip()[:1] in (b"{", b"["):
        return bool(_JSON.search(head.data))
    found = 0
    for at, line in enumerate(lines):
        block = _GPU.fullmatch(line) and any(_AMD_KEY.match(other) for other in lines[at + 1 : at + 12])
        if block or _DEVICE.fullmatch(line) or _PIDS.fullmatch(line) or _header(line):
            found += 2
    return found > 0 and 10 * found >= sum(
        1 for line in lines if not re.fullmatch(r"[=\-\s]*(?:[\w :-]{0,60})[=\-\s]*", line)
    )


_JSON = regex(
    rb'"card\d+"\s*:\s*\{[^{}]*"(?:VRAM Total|GPU use|Card [Ss]eries)|"(?:total_vram|used_vram|mem_usage)"\s*:\s*\{|"market_name"\s*:\s*"AMD'
)
_AMD_KEY = regex(
    r"(?:MEM_USAGE|TOTAL_VRAM|USED_VRAM|VRAM|MARKET_NAME|ASIC|USAGE|GFX_ACTIVITY|BDF|HIP_ID|HIP_UUID|PROCESS_INFO)\b"
)


class _Reader:
    """The state of one source."""

    def __init__(self) -> None:
        self.rows = Capped()
        self.t: float | None = None
        self.header: dict[int, str] = {}
        self.width = 0
        self.by_spaces = False
        self.pids = False
        self._order: list[int] = []
        self._found: dict[int, dict[str, Any]] = {}
        self._sections: list[tuple[int, str]] = []
        self._process: dict[str, Any] = {}
        self._gpu: int | None = None
        self._named: set[int] = set()

    # ---- lines

    def line(self, number: int, text: str) -> None:
        """One line of text or CSV."""
        line = text.strip()
        if not line or not line.strip("=- "):
            self.pids = self.pids and bool(line)
            return
        header = _header(line)
        if header:
            self.flush()
            self.by_spaces = "," not in line
            self.header, self.width = header, len(_cells(line, self.by_spaces))
        elif match := _DEVICE.fullmatch(line):
            self._put(number, int(match["gpu"]), match["label"], match["value"])
        elif match := _GPU.fullmatch(line):
            self._end_process()
            self._gpu, self._sections, self.header = int(match[1]), [], {}
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
        elif self.header:
            self._row(number, line)
        elif self._gpu is not None and (match := _PAIR.fullmatch(text.rstrip())):
            self._pair(number, len(match[1]), match[2].strip(), match[3])

    def _row(self, number: int, line: str) -> None:
        cells = _cells(line, self.by_spaces)
        device = re.fullmatch(r"(?:card|GPU)?\s*(\d{1,3})", cells[0]) if cells else None
        if device is None:
            if not self.by_spaces:
                self.rows.problem(number, "a row of the devices' table", line)
            return
        if len(cells) != self.width:
            self.rows.problem(number, f"not {self.width} cells as in the header", line)
            return
        for at, name in self.header.items():
            self._put(number, int(device[1]), name, cells[at])

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

    # ---- JSON

    def json(self, value: Any, lines: Mapping[int, int]) -> None:
        """A document of either tool."""
        if isinstance(value, dict):
            cards = {
                key: entry
                for key, entry in value.items()
                if re.fullmatch(r"card\d{1,3}", key) and isinstance(entry, dict)
            }
            if cards:
                for key, entry in cards.items():
                    for label, text in entry.items():
                        if isinstance(text, (str, int, float)):
                            self._put(lines.get(int(key[4:]), 1), int(key[4:]), label, str(text))
                return
            inner = next((value[key] for key in ("gpu_data", "gpus") if isinstance(value.get(key), list)), [value])
        else:
            inner = value if isinstance(value, list) else []
        for entry in inner:
            if isinstance(entry, dict) and isinstance(entry.get("gpu"), int) and 0 <= entry["gpu"] < 1000:
                self._nested(lines.get(entry["gpu"], 1), entry["gpu"], entry, (), 0)

    def _nested(self, line: int, gpu: int, entry: Mapping[str, Any], path: tuple[str, ...], depth: int) -> None:
        for key, value in entry.items():
            if isinstance(value, dict) and "value" in value:
                unit = value.get("unit")
                value = f"{value['value']} {unit}" if isinstance(unit, str) else str(value["value"])
            if isinstance(value, dict) and depth < 6:
                self._nested(line, gpu, value, (*path, key), depth + 1)
            elif isinstance(value, list) and key.startswith("process"):
                for one in value:
                    self._json_process(line, gpu, one)
            elif (
                isinstance(value, (str, int, float)) and (key != "size" or "vram" in path) and key not in ("gpu", "gfx")
            ):
                self._put(line, gpu, key, str(value))

    def _json_process(self, line: int, gpu: int, one: Any) -> None:
        info = one.get("process_info", one) if isinstance(one, dict) else None
        if not isinstance(info, dict):
            return
        pid, name, usage = info.get("pid"), info.get("name"), info.get("memory_usage")
        used = usage.get("vram_mem") if isinstance(usage, dict) else info.get("mem_usage", info.get("mem"))
        if isinstance(used, dict):
            used = f"{used.get('value')} {used.get('unit') or ''}"
        if isinstance(pid, int) and 0 <= pid < 1 << 40:
            self.rows.add(
                "gpu_process", line, t=self.t, gpu=gpu, pid=pid, name=name if isinstance(name, str) and name != "N/A" else None,
                type="C", used_bytes=_bytes(str(used)),
            )  # fmt: skip

    # ---- values

    def _put(self, number: int, gpu: int, label: str, value: str) -> None:
        what = _LABELS.get(label.strip().lower())
        if what is None or value.strip() in ("N/A", ""):
            return
        found = self._found.setdefault(gpu, {"line": number})
        if what == "vram":  # `0.3/192.0 GB` of newer monitors
            used, slash, total = value.partition("/")
            unit = re.sub(r"[\d.\s]", "", total)
            found["used"], found["total"] = _bytes(f"{used} {unit}"), _bytes(total)
            if not slash or found["total"] is None:
                self.rows.problem(number, "no sizes of VRAM", value)
            return
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


def _cells(line: str, by_spaces: bool) -> Sequence[str]:
    if by_spaces:
        return re.sub(r"(?<=[\d.]) +(?=[MG]i?B\b|W\b|MHz\b|C\b|%|°)|(?<=\d/) +", "", line).split()
    try:
        return [cell.strip() for cell in next(csv.reader([line]))]
    except (csv.Error, StopIteration):
        return []


def _header(line: str) -> dict[int, str] | None:
    """Column and label of what matters, for a header of either tool; None for any other line."""
    if not re.match(r"(?:device|gpu|GPU)\b\s*[, ]", line) or re.search(r"[\[{]", line):
        return None
    cells = _cells(line, "," not in line)
    found = {at: cell.lower() for at, cell in enumerate(cells) if at and cell.lower() in _LABELS}
    meant = {_LABELS[cell] for cell in found.values()}
    return found if {"used", "total"} <= meant or "vram" in meant else None


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
    parts: list[bytes] = []
    held, document = 0, None
    for chunk in chunks:
        if document is None and chunk.data.strip():
            document = chunk.data.lstrip()[:1] in (b"{", b"[")
        if document:
            held += len(chunk.data)
            if held <= _CAP_BYTES:
                parts.append(chunk.data)
            continue
        for number, text in chunk.lines(2000):
            reader.line(number, peel(text)[0])
        yield from reader.rows.take()
    if document:
        _document(reader, b"".join(parts), held)
    reader.flush()
    yield from reader.rows.close()


def _document(reader: _Reader, data: bytes, held: int) -> None:
    text = data.decode("utf-8", "replace").lstrip("\ufeff")
    lines: dict[int, int] = {}
    for found in re.finditer(r'"card(\d{1,3})"\s*:|"gpu"\s*:\s*(\d{1,3})', text):
        lines.setdefault(int(found[1] or found[2]), text.count("\n", 0, found.start()) + 1)
    try:
        reader.json(json.loads(text), lines)
    except (ValueError, RecursionError):
        why = "a document of more than 8 MiB" if held > _CAP_BYTES else "a JSON document of AMD's tools"
        reader.rows.problem(1, why, text)
