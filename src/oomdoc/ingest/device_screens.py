"""Screens of other tools that show devices: `npu-smi info` (Ascend), `gpustat`, `nvtop` as it is copied out of a terminal.

    | 1     910B2               | OK            | 91.7    47      0    / 0             |      a device takes two lines;
    | 0                         | 0000:01:00.0  | 0       0    / 0     59804/ 65536    |      memory of it in MB, at the end
     Device 1 [NVIDIA A40] PCIe GEN 4@16x  TEMP 33C  POW  43 / 300 W
     GPU[||            4%] MEM[|||||||||||       31.4Gi/44.9Gi]

    [0] NVIDIA A40 | 43'C, 30 %, 91 % | 40210 / 46068 MB | ann:VLLM::Worker/4711(39800M)       `gpustat`: MB are 2**20
    | 1       0                 | 1327          | python             | 56455                |

MB of npu-smi are 2**20.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Head, Rows
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex
from oomdoc.units import MIB, parse_size

KIND = "device-screen"

_LINE_CAP = 400
_NAMED = regex(r"\|\s*(?P<gpu>\d{1,4})\s+(?P<name>[A-Z]?\w{3,20})\s*\|\s*(?:OK|Warning|Alarm|Critical|UNKNOWN)\s*\|")
_MEMORY = regex(
    r"\|\s*(?P<chip>\d{1,4})(?:\s+\d{1,4})?\s*\|\s*[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d\s*\|\s*(?P<busy>\d{1,3})\s.*?(?P<used>\d{1,7})\s*/\s*(?P<total>\d{3,7})\s*\|\s*$"
)
_PROCESS = regex(
    r"\|\s*(?P<gpu>\d{1,4})\s+\d{1,4}\s*\|\s*(?P<pid>\d{1,9})\s*\|\s*(?P<name>\S(?:[^|]*\S)?)\s*\|\s*(?P<used>\d{1,7})\s*\|\s*$"
)
_LISTED = regex(
    r"\s*\[(?P<gpu>\d{1,3})\] (?P<name>[^|]{3,60}?)\s*\|(?:[^|]*\s(?P<busy>\d{1,3}) %)?[^|%]*\|\s*(?P<used>\d{1,7})\s*/\s*(?P<total>\d{3,7})\s*MB\b(?P<users>.*)"
)
_USER = regex(r"(?:[\w.-]{1,40}:)?(?P<name>[^\s(|/:][^\s(|/]{0,80})(?:/(?P<pid>\d{1,9}))?\((?P<used>\d{1,7})M\)")
_OF_SCREEN = regex(r"\s*(?:[|+]|\[\d{1,3}\] |Device \d|GPU\[|PID\b|\d+ )")
_DEVICE = regex(r"\s*Device (?P<gpu>\d{1,3}) \[(?P<name>[^\]]{3,60})\]")
_BARS = regex(
    r"\s*GPU\[[|\s]*(?:(?P<busy>\d{1,3})%)?\s*\]\s*MEM\[[|\s]*(?P<used>[\d.]{1,8}[KMGT]i?B?)/(?P<total>[\d.]{1,8}[KMGT]i?B?)\s*\]"
)


def matches(head: Head) -> bool:
    """A line that tells the memory of a device, and a screen around it: in a shell session it is one of several passages."""
    if b"/" not in head.data or not (b"MEM[" in head.data or b"|" in head.data):
        return False
    lines = [line for line in head.lines[:200] if line.strip()]
    if not any(_MEMORY.match(line) or _BARS.match(line) or _LISTED.match(line) for line in lines):
        return False
    return 2 * sum(bool(_OF_SCREEN.match(line)) for line in lines) >= len(lines)


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """A sample for each device shown; one without its first line has the place that it has in the list."""
    rows = Rows()
    gpu: int | None = None
    name: str | None = None
    for chunk in chunks:
        for number, line in chunk.lines(_LINE_CAP):
            listed = _LISTED.match(line)
            if begun := listed or _NAMED.match(line) or _DEVICE.match(line):
                gpu, name = int(begun["gpu"]), begun["name"]
                if listed is None:
                    continue
                for user in _USER.finditer(listed["users"]):
                    rows.add("gpu_process", number, gpu=gpu, pid=int(user["pid"] or 0) or None, name=user["name"], type="C", used_bytes=int(user["used"]) * MIB)  # fmt: skip
            figures = listed or _MEMORY.match(line) or _BARS.match(line)
            if figures is None:
                if one := _PROCESS.match(line):
                    rows.add("gpu_process", number, gpu=int(one["gpu"]), pid=int(one["pid"]), name=one["name"], type="C", used_bytes=int(one["used"]) * MIB)  # fmt: skip
                continue
            used, total = (_size(figures[key]) for key in ("used", "total"))
            busy = int(figures["busy"]) / 100 if figures["busy"] and int(figures["busy"]) <= 100 else None
            if total:
                rows.add("gpu_sample", number, gpu=gpu, used_bytes=used, total_bytes=total, gpu_util=busy)
            if name is not None and total:
                rows.add("gpu_device", number, gpu=gpu, name=name, total_bytes=total, count=1)
            gpu = name = None
    yield from rows.take()


def _size(printed: str) -> int | None:
    return int(printed) * MIB if printed.isdigit() else parse_size(printed, binary=True)
