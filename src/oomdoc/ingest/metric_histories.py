"""What a metric was at several moments, as people copy it from a chart or ask for it: all in one line.

    DCGM_FI_DEV_FB_USED{gpu="3"}    02:00 77801   03:00 77801   09:00 77807
    max_over_time(vllm:num_requests_waiting[1h])  412

Memory in use of a device becomes `process_memory` with the resource `gpu`, anything else a `metric`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Rows
from oomdoc.ingest.metrics import kept_name
from oomdoc.regexes import regex
from oomdoc.units import MIB

_LEAST = 3
"""Readings of one device: fewer say nothing of a course."""
_SPREAD = regex(
    r"[>$#\s]{0,4}(?P<name>[A-Za-z_:][\w:]{4,80})(?:\{(?P<labels>[^}]{0,200})\})?\s+(?P<rest>(?:\d\d:\d\d(?::\d\d)?\s+-?[\d.]+(?:e[+-]?\d+)?\s*){3,})$"
)
_PAIR = regex(r"(\d\d):(\d\d)(?::(\d\d))?\s+(-?[\d.]+(?:e[+-]?\d+)?)")
_ASKED = regex(
    r"[>$#\s]{0,4}(?P<function>max_over_time|increase|max|sum|last_over_time)\s?\((?:\w+\()?(?P<name>[a-z_]+:?[\w:]{4,80})(?:\{(?P<labels>[^}]{0,200})\})?(?:\[\w+\])?\){1,2}\s+(?:=>?\s*)?(?P<value>-?\d[\d.]*(?:e[+-]?\d+)?)\s*$"
)
_FB = {"DCGM_FI_DEV_FB_USED": MIB, "nvidia_gpu_memory_used_bytes": 1, "amd_gpu_used_vram": MIB}
"""Memory in use of a device, as exporters name it, and its unit."""
_GPU = regex(r"\b(?:gpu|minor_number|gpu_id|device)=\"?(?:nvidia)?(\d{1,3})")


class Histories:
    """The histories in some lines of a text."""

    def __init__(self) -> None:
        self._rows = Rows()
        self._samples: list[tuple[int, str, int, float]] = []

    def take(self) -> Iterator[Batch]:
        """What was read."""
        times = Counter(name for _, name, _, _ in self._samples)
        for number, name, size, elapsed in self._samples:
            if times[name] >= _LEAST:
                self._rows.add("process_memory", number, name=name, resource="gpu", bytes=size, elapsed_s=elapsed)
        self._samples = []
        yield from self._rows.take()

    def add(self, number: int, line: str) -> bool:
        """A line, if it is of a history."""
        asked = _ASKED.match(line)
        if asked:
            known = kept_name(asked["name"])
            if known is not None and ":" in known:
                self._rows.add("metric", number, name=known, labels=asked["labels"], value=float(asked["value"]))
            return True
        spread = _SPREAD.match(line)
        if spread is None:
            return False
        known, factor = kept_name(spread["name"]), _FB.get(spread["name"])
        first: float | None = None
        days = 0.0
        last = 0.0
        for hour, minute, second, value in _PAIR.findall(spread["rest"]):
            seconds = int(hour) * 3600.0 + int(minute) * 60 + int(second or 0) + days
            if first is not None and seconds < last:
                days += 86400.0
                seconds += 86400.0
            first, last = seconds if first is None else first, seconds
            if factor is not None:
                gpu = _GPU.search(spread["labels"] or "")
                self._samples.append(
                    (number, f"GPU {gpu[1]}" if gpu else "GPU", round(float(value) * factor), seconds - first)
                )
            elif known is not None and ":" in known:
                self._rows.add("metric", number, name=known, labels=spread["labels"], value=float(value))
        return True
