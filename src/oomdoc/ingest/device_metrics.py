"""Samples of devices out of metrics: what DCGM's exporter and its like tell becomes `gpu_sample`, as nvidia-smi would fill it.

    DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-5a..",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",Hostname="n1",pod=""} 71234
    DCGM_FI_DEV_FB_USED{gpu="0",...,GPU_I_ID="7",GPU_I_PROFILE="1g.10gb"} 5120          (a MIG instance)
    nvidia_smi_memory_used_bytes{uuid="5a.."} 7.4e+10 · gpu_memory_used_bytes{gpu="0"} 6.8e+10

DCGM counts MiB and percent; total is used + free + reserved where no `FB_TOTAL` is exported. Values near 2**63 mean blank. Other
exporters count bytes and shares. Devices of several hosts are numbered on, in the order in which they appear. Names are those of
DCGM's field list (dcgm_fields.h), of nvidia_gpu_exporter and of prometheus_nvidia_gpu_exporter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from oomdoc.ingest.base import Rows
from oomdoc.ingest.vocabulary.quantity import read
from oomdoc.regexes import regex

LABEL = regex(r'([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"')
_SIZE_CAP = 1 << 50
_MOMENTS = 100_000  # held at once

_FIELDS: dict[str, tuple[str, float]] = read("names")["device_series"]
XID = "DCGM_FI_DEV_XID_ERRORS"
NAMES = frozenset((*_FIELDS, XID))
"""Series that tell of a device."""

Sample = tuple[int, float | None, str, str | None, float]
"""Line, time, name, label text, value, as in table `metric`."""


@dataclass
class _Moment:
    """What one device or instance showed at one time."""

    line: int
    values: dict[str, float] = field(default_factory=dict)


class Devices:
    """Turns samples of series into samples of devices; one for a source.

    With `by_series` the samples come series by series instead of scrape by scrape: moments are held until the end.
    """

    def __init__(self, by_series: bool = False) -> None:
        self._by_series = by_series
        self._moments: dict[tuple[float | None, int, str, str], _Moment] = {}
        self._models: dict[int, str] = {}
        self._t: float | None = None
        self._numbers: dict[tuple[str, str], int] = {}
        self._taken: set[int] = set()
        self._labels: dict[str, dict[str, str]] = {}
        self._told: set[tuple[int, str | None]] = set()
        self._xids: dict[int, float] = {}

    def add(self, samples: Iterable[Sample], rows: Rows) -> None:
        """Samples of devices, to `rows` when they are complete; series of one device and time are one row, at the first line."""
        for line, t, name, text, value in samples:
            if (t != self._t and not self._by_series) or len(self._moments) >= _MOMENTS:
                self.close(rows)
            self._t = t
            labels = self._read(text or "")
            gpu = self._number(labels)
            if gpu is None:
                continue
            if model := labels.get("modelName") or labels.get("name"):
                self._models[gpu] = model
            if name == XID:
                self._xid(rows, line, t, gpu, value, labels)
                continue
            what, factor = _FIELDS[name]
            profile = labels.get("GPU_I_PROFILE", "")
            instance = f"{profile} {labels.get('GPU_I_ID', '')}" if profile else ""
            key = (t, gpu, instance, profile)
            moment = self._moments.setdefault(key, _Moment(line))
            if what in moment.values and t is None:  # the next scrape of a file without times
                self._tell(rows, key, moment)
                moment = self._moments[key] = _Moment(line)
            if 0 <= value * factor < _SIZE_CAP:
                moment.values.setdefault(what, value * factor)

    def close(self, rows: Rows) -> None:
        """What is complete now, in the order of time where series came one by one."""
        moments, self._moments = self._moments, {}
        ordered = sorted(moments.items(), key=lambda entry: entry[0][0] or 0.0) if self._by_series else moments.items()
        for key, moment in ordered:
            self._tell(rows, key, moment)

    def _read(self, text: str) -> dict[str, str]:
        labels = self._labels.get(text)
        if labels is None:
            if len(self._labels) > 10_000:
                self._labels.clear()
            labels = self._labels[text] = dict(LABEL.findall(text))
        return labels

    def _number(self, labels: dict[str, str]) -> int | None:
        host = labels.get("Hostname") or labels.get("instance") or labels.get("node") or ""
        own = next(
            (labels[name] for name in ("gpu", "gpu_id", "index", "minor_number", "UUID", "uuid") if labels.get(name)),
            None,
        )
        if own is None:
            return None
        number = self._numbers.get((host, own))
        if number is None:
            wanted = int(own) if own.isascii() and own.isdigit() and len(own) < 4 else 0
            number = wanted if wanted not in self._taken else max(self._taken) + 1
            if len(self._taken) >= 10_000:
                return None
            self._numbers[host, own] = number
            self._taken.add(number)
        return number

    def _tell(self, rows: Rows, key: tuple[float | None, int, str, str], moment: _Moment) -> None:
        t, gpu, instance, profile = key
        model = self._models.get(gpu)
        get = moment.values.get
        used, total, free = get("used"), get("total"), get("free")
        if total is None and used is not None and free is not None:
            total = used + free + (get("reserved") or 0.0)
        whole = None if total is None else int(total)
        held = None if used is None else int(used)
        if instance:
            if (gpu, instance) not in self._told:
                self._told.add((gpu, instance))
                rows.add(
                    "gpu_device", moment.line, gpu=gpu, name=model, total_bytes=whole, mig_profile=profile, count=1,
                    used_bytes=held,
                )  # fmt: skip
            return
        if model and (gpu, None) not in self._told:
            self._told.add((gpu, None))
            rows.add("gpu_device", moment.line, gpu=gpu, name=model, total_bytes=whole, count=1)
        if held is not None or whole is not None or get("util") is not None:
            rows.add(
                "gpu_sample", moment.line, t=t, gpu=gpu, used_bytes=held, total_bytes=whole, gpu_util=_share(get("util")),
                memory_util=_share(get("copy")),
            )  # fmt: skip

    def _xid(self, rows: Rows, line: int, t: float | None, gpu: int, value: float, labels: dict[str, str]) -> None:
        """The exporter repeats the last Xid for ever: told where it changes."""
        if 0 < value < 1000 and self._xids.get(gpu) != value:
            code = int(value)
            text = f"{XID} of device {gpu} is {code}"
            pod = next((labels[name] for name in ("exported_pod", "pod", "pod_name") if labels.get(name)), None)
            rows.add(
                "host_event", line, t=t, kind="xid", count=code, text=text, process=pod,
                device=labels.get("pci_bus_id"),
            )  # fmt: skip
        self._xids[gpu] = value


_AT_WORK = 0.5  # share of time with a kernel running: an idle device lowers its clock by itself
_IDLE = 1  # nvmlClocksEventReasonGpuIdle: the bit of a device with nothing to do (nvml.h)
REASONS = "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"
_CLOCK_STEP = 0.2  # a smaller change is boost


class Clocks:
    """The clock of each device that is at work, where it changed: recordings have it in every line."""

    def __init__(self) -> None:
        self._last: dict[int | None, float] = {}  # that became a row

    def tell(
        self, rows: Rows, line: int, t: float | None, gpu: int | None, clock: float | None, hot: float | None, util: float | None, reasons: str | None = None,
    ) -> None:  # fmt: skip
        """What a sample says of it, to `rows`; `reasons`: the mask of what holds the clock back, as printed."""
        last = self._last.get(gpu)
        mask = None if reasons is None else int(reasons, 16) if reasons.startswith("0x") else int(float(reasons))
        at_work = not mask & _IDLE if util is None and mask is not None else (util or 0.0) >= _AT_WORK
        if clock is None or not at_work or (last is not None and abs(clock - last) <= _CLOCK_STEP * last):
            return
        self._last[gpu] = clock
        labels = None if gpu is None else f'gpu="{gpu}"'
        for name, value in (("DCGM_FI_DEV_SM_CLOCK", clock), ("DCGM_FI_DEV_GPU_TEMP", hot), (REASONS, mask)):
            if value is not None:
                rows.add("metric", line, t=t, name=name, labels=labels, value=float(value))


KEPT = (Devices, _Moment, Clocks)
"""What a reading is made of (`ingest.kept`)."""


def _share(value: float | None) -> float | None:
    return value if value is not None and value <= 1.0 else None
