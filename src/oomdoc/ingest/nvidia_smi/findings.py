"""What every form of nvidia-smi's output adds to: samples and other rows of one source, the moment at hand, its devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oomdoc.evidence.tables import TABLES as ALL_TABLES
from oomdoc.evidence.tables import Batch
from oomdoc.ingest.device_metrics import Clocks
from oomdoc.ingest.problems import Capped

_SAMPLE_COLUMNS = ALL_TABLES["gpu_sample"].column_names[1:]
MIG = "MIG"


class Findings:
    """The rows of one source, and what its forms tell each other."""

    def __init__(self) -> None:
        self.rows = Capped()
        self.samples: list[tuple[Any, ...]] = []
        self.t: float | None = None
        self.names: dict[int, str] = {}
        self.indices: dict[str, int] = {}  # device index by uuid or bus id
        self._listed: set[tuple[Any, ...]] = set()
        self._clocks = Clocks()

    def device(
        self, line: int, gpu: int | None, name: str | None, total: int | None, profile: str | None = None, key: str = "",
        used: int | None = None, bus_id: str | None = None, uuid: str | None = None,
    ) -> None:  # fmt: skip
        """One `gpu_device` row for each device or slice of the source, as it is printed first."""
        if gpu is not None and name is not None:
            self.names[gpu] = name
        identity = (gpu, name, total, profile, key)
        if identity not in self._listed:
            self._listed.add(identity)
            self.rows.add(
                "gpu_device", line, gpu=gpu, name=name, total_bytes=total, mig_profile=profile, count=1, used_bytes=used,
                bus_id=bus_id, uuid=uuid,
            )  # fmt: skip

    def process(
        self, line: int, t: float | None, gpu: int | None, pid: int | None, kind: str | None, name: str | None,
        used: int | None, uuid: str | None = None,
    ) -> None:  # fmt: skip
        """A process on a device."""
        self.rows.add("gpu_process", line, t=t, gpu=gpu, pid=pid, type=kind, name=name, used_bytes=used, gpu_uuid=uuid)

    def dated(self, t: float | None) -> None:
        """A moment that was told, if it was one: what follows is of it."""
        self.t = self.t if t is None else t

    def index(self, identity: str) -> int:
        """The index of a device by its uuid or bus id: what the source said of it, else the order of appearance."""
        return self.indices.setdefault(identity, len(self.indices))

    def clock(
        self, line: int, t: float | None, gpu: int | None, clock: int | None, hot: int | None, util: float | None
    ) -> None:
        """The clock of a device that is at work."""
        self._clocks.tell(self.rows, line, t, gpu, clock, hot, util)

    def take(self) -> Iterator[Batch]:
        """What was read line by line."""
        samples, self.samples = self.samples, []
        if samples:
            yield Batch(
                "gpu_sample",
                {name: list(column) for name, column in zip(_SAMPLE_COLUMNS, zip(*samples, strict=True), strict=True)},
            )
        yield from self.rows.take()
