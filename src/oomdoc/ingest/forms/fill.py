"""Records to rows: what a plan took the columns for becomes rows of the tables, and the units of their columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from oomdoc.evidence.tables import Batch
from oomdoc.ingest import device_metrics
from oomdoc.ingest.base import TEXT_CAP
from oomdoc.ingest.forms.believe import Part, Plan, Taken
from oomdoc.ingest.forms.cells import UnreadableError, null, number_of, value_of
from oomdoc.ingest.metrics import kept_name, tell_host
from oomdoc.ingest.problems import Capped
from oomdoc.ingest.request_keys import MEANING, Found, Meaning, Requests, moment, put
from oomdoc.regexes import regex
from oomdoc.units import show_bytes

_DIVISORS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9, "min": 1 / 60}
_WHAT = {
    "request.input": "input", "request.output": "output", "request.cached": "cached", "request.limit": "limit",
    "request.latency": "latency", "request.upstream": "latency", "request.ttft": "ttft", "request.status": "status", "request.model": "model",
    "request.tenant": "tenant", "request.replica": "replica", "request.end": "end", "request.first": "first",
    "time": "start", "elapsed": "start",
}  # fmt: skip
_LABELS = regex(r"\{(.*)\}", re.S)
_MEMO = 4096
_METRIC_NAME = regex(r"[A-Za-z_:][\w:]{2,120}")

_OF_HOST = regex(r"(?i)(?:the )?(?:system|host|cpu|main)(?: memory| ram|_memory|_ram)")
"""What a record says of itself that is about the host's memory and no device's."""


class Filler:
    """Rows of one source."""

    def __init__(self) -> None:
        self.rows = Capped()
        self.requests = Requests()
        self._devices = device_metrics.Devices(by_series=True)
        self._index: dict[str, int] = {}
        self._known: set[tuple[Any, ...]] = set()
        self._announced: set[tuple[str, str]] = set()
        self._last: dict[str, float] = {}
        self._hosts: set[str] = set()
        self._books = 0
        self._memos: dict[int, tuple[Taken, dict[str, Any]]] = {}  # kept with its key, so that no other gets its id

    def announce(self, line: int, plan: Plan) -> None:
        """What the columns were taken for, and which nobody understood; once for each name."""
        for part in plan.parts:
            for taken in part.columns:
                quantity = taken.quantity
                column = quantity.column.lstrip("+:")
                shown = f"{part.entity.table}.{column}" + (f" in {_shown_unit(taken.unit)}" if taken.unit not in ("", "?") and quantity.kind in ("bytes", "share", "seconds") else "")  # fmt: skip
                self.column_taken(line, taken.name, shown)
        for name in plan.unknown:
            tables = " and ".join(part.entity.table for part in plan.parts)
            if ("", name) not in self._announced:
                self._announced.add(("", name))
                self.rows.problem(line, f"a column of unknown meaning in a table of {tables}: {name[:60]}", name)

    def column_taken(self, line: int, name: str, taken_for: str) -> None:
        """One column and what it was taken for."""
        if (taken_for, name) not in self._announced and len(self._announced) < 1000:
            self._announced.add((taken_for, name))
            self.rows.add("column_reading", line, name=name[:100], taken_for=taken_for)

    def record(self, line: int, plan: Plan, record: Mapping[str, Any]) -> None:
        """The rows of one record."""
        for part in plan.parts:
            values = {}
            for taken in part.columns:
                values[taken.quantity.id, taken.device] = self._value(line, taken, record.get(taken.name))
            _FILL[part.entity.table](self, line, part, values, record)

    def _value(self, line: int, taken: Taken, cell: Any) -> Any:
        """The value of a cell; texts that were seen cost one look, since most columns repeat theirs."""
        if type(cell) is not str:
            return self._read(line, taken, cell)
        _, memo = self._memos.get(id(taken)) or self._memos.setdefault(id(taken), (taken, {}))
        if cell in memo:
            return memo[cell]
        if len(memo) >= _MEMO:
            memo.clear()
        value = memo[cell] = self._read(line, taken, cell)
        return value

    def _read(self, line: int, taken: Taken, cell: Any) -> Any:
        try:
            return value_of(taken.quantity, cell, taken.unit)
        except UnreadableError:
            self.rows.problem(line, f"no value of {taken.quantity.id}: {str(cell)[:60]}", f"{taken.name}={cell}")
            return None

    # ---- devices

    def _gpu(self, values: Mapping[tuple[str, int | None], Any], known_only: bool = False) -> int | None:
        gpu = values.get(("gpu.index", None))
        identity = values.get(("gpu.uuid", None)) or values.get(("gpu.bus", None))
        if identity and gpu is not None:
            self._index[identity] = gpu
        elif identity and (not known_only or identity in self._index):
            gpu = self._index.setdefault(identity, len(self._index))
        return gpu

    def gpu_sample(
        self, line: int, part: Part, values: Mapping[tuple[str, int | None], Any], record: Mapping[str, Any]
    ) -> None:
        """A sample of one device, or of all whose number stands in the names of columns."""
        if any(isinstance(cell, str) and _OF_HOST.fullmatch(cell.strip(" \"'")) for cell in record.values()):
            return  # a total and what is free of it, and the record says of what
        common = self._gpu(values)
        named = sorted({device for _, device in values if device is not None})
        numbers: list[int | None] = [*named] if named else [None]
        for device in numbers:

            def get(name: str, device: int | None = device) -> Any:
                value = values.get((name, device))
                return value if value is not None or device is None else values.get((name, None))

            used, total, free = get("gpu.used"), get("gpu.total"), get("gpu.free")
            if total is None and used is not None and free is not None:
                total = used + free + (get("gpu.reserved") or 0)
            if used is None and total is not None:
                if get("gpu.share") is not None:
                    used = round(get("gpu.share") * total)
                elif free is not None and free <= total:
                    used = total - free - (get("gpu.reserved") or 0)
            gpu = device if device is not None else common
            if used is not None and total is not None and used > total:
                self.rows.problem(
                    line, f"more memory in use than there is: {show_bytes(used)} of {show_bytes(total)}", ""
                )
                used = None
            self._device(line, gpu, get("gpu.name"), total, get("gpu.mig"), used)
            if get("gpu.mig"):
                continue
            util, memory_util = get("gpu.util"), get("gpu.memory_util")
            if any(value is not None for value in (used, total, util)):
                self.rows.add(
                    "gpu_sample", line, t=values.get(("time", None)), gpu=gpu, used_bytes=used, total_bytes=total,
                    gpu_util=util, memory_util=memory_util,
                )  # fmt: skip

    def _device(self, line: int, gpu: int | None, name: str | None, total: int | None, profile: str | None, used: int | None) -> None:  # fmt: skip
        identity = (gpu, name, total, profile)
        if (name or profile) and identity not in self._known:
            self._known.add(identity)
            self.rows.add(
                "gpu_device", line, gpu=gpu, name=name, total_bytes=total, mig_profile=profile, count=1,
                used_bytes=used if profile else None,
            )  # fmt: skip

    def gpu_process(
        self, line: int, part: Part, values: Mapping[tuple[str, int | None], Any], _: Mapping[str, Any]
    ) -> None:
        """A process on a device."""
        get = values.get
        pid = get(("process.pid", None))
        if pid is None and get(("process.name", None)) is None:
            return
        self.rows.add(
            "gpu_process", line, t=get(("time", None)), gpu=self._gpu(values, known_only=True), pid=pid,
            type=get(("process.type", None)) or "C", name=get(("process.name", None)),
            used_bytes=get(("process.gpu_used", None)), gpu_uuid=get(("gpu.uuid", None)),
        )  # fmt: skip

    # ---- processes on the host

    def process_memory(
        self, line: int, part: Part, values: Mapping[tuple[str, int | None], Any], _: Mapping[str, Any]
    ) -> None:
        """The resident memory of a process."""
        get = values.get
        size, name, pid = get(("process.resident", None)), get(("process.name", None)), get(("process.pid", None))
        if size is None:
            return
        if pid is not None:
            name = f"{name or 'process'} (pid {pid})"
        self.rows.add(
            "process_memory", line, t=get(("time", None)), name=name, state=get(("process.state", None)), resource="host",
            bytes=size,
        )  # fmt: skip

    # ---- the allocator

    def allocator_segment(
        self, line: int, part: Part, values: Mapping[tuple[str, int | None], Any], _: Mapping[str, Any]
    ) -> None:
        """A segment of torch's allocator, as somebody wrote it out of a snapshot."""
        get = values.get
        total, active, free = (get((f"segment.{name}", None)) for name in ("total", "active", "inactive"))
        if free is None and total is not None and active is not None:
            free = total - active
        if free is None or free < 0:
            return
        self.rows.add(
            "allocator_segment", line, pool="default", segments=1, total_bytes=total, allocated_bytes=active,
            active_bytes=active, inactive_bytes=free, inactive_split_bytes=free if active else 0,
            largest_free_bytes=get(("segment.gap", None)),
        )  # fmt: skip

    def allocator_stat(
        self, line: int, part: Part, values: Mapping[tuple[str, int | None], Any], _: Mapping[str, Any]
    ) -> None:
        """The books of the allocator at one moment: a table of its own, by the number that orders them."""
        self._books += 1
        for taken in part.columns:
            value = values.get((taken.quantity.id, taken.device))
            if taken.quantity.column[0] == ":" and value is not None:
                self.rows.add("allocator_stat", line, device=taken.device, summary=self._books, metric=taken.quantity.column[1:], pool="all", current=round(value))  # fmt: skip

    # ---- the engine

    def engine_stat(
        self, line: int, part: Part, values: Mapping[tuple[str, int | None], Any], _: Mapping[str, Any]
    ) -> None:
        """A moment of the engine. Preemptions that never fall are a counter, which statistics lines do not have."""
        numbered = sorted({taken.device for taken in part.columns if taken.device is not None})
        instances: list[int | None] = [*numbered] if numbered else [None]
        for instance in instances:
            own = {
                taken.quantity.column: values.get((taken.quantity.id, taken.device))
                for taken in part.columns
                if taken.device in (None, instance) and taken.quantity.table == "engine_stat"
            }
            filled = any(values.get((taken.quantity.id, instance)) is not None for taken in part.columns)
            if filled or instance == instances[0]:  # a replica that is not there has no row
                self._engine_stat(line, values.get(("time", None)), own)

    def _engine_stat(self, line: int, t: float | None, own: dict[str, Any]) -> None:
        row = {column: value for column, value in own.items() if column[0] != "+"}
        used, total, free = (own.get(f"+blocks_{which}") for which in ("used", "total", "free"))
        total = total if total is not None or used is None or free is None else used + free
        if row.get("kv_used") is None and used is not None and total and used <= total:
            row["kv_used"] = used / total
        counted = row.pop("preemptions", None)
        if counted is not None:
            self.rows.add("metric", line, t=t, name="vllm:num_preemptions_total", value=float(counted))
        if any(value is not None for value in row.values()):
            self.rows.add("engine_stat", line, t=t, **row)

    def metric(
        self, line: int, part: Part, values: Mapping[tuple[str, int | None], Any], record: Mapping[str, Any]
    ) -> None:
        """One sample for each column that is a metric; a header may hold the labels too, as Grafana writes it."""
        t = values.get(("time", None))
        for taken in part.columns:
            column = taken.quantity.column
            value = self._value(line, taken, record.get(taken.name)) if column[0] == ":" else None
            if value is not None:
                labels = _LABELS.search(taken.name)
                self.rows.add(
                    "metric", line, t=t, name=column[1:], labels=labels[1] if labels else None, value=float(value)
                )

    def series(self, line: int, t: float | None, name: str, labels: str | None, value: Any) -> bool:
        """A sample of a series under its own name; False where it is none that matters."""
        kept = kept_name(name) if _METRIC_NAME.fullmatch(name) else None
        if kept is None or null(value):
            return False
        try:
            number = number_of(value)[0]
        except UnreadableError:
            return False
        self.rows.add("metric", line, t=t, name=kept, labels=labels, value=number)
        tell_host(self.rows, self._hosts, line, kept, number)
        if kept in device_metrics.NAMES:
            self._devices.add([(line, t, kept, labels, number)], self.rows)
        return True

    def engine_figure(
        self, line: int, part: Part, values: Mapping[tuple[str, int | None], Any], _: Mapping[str, Any]
    ) -> None:
        """One figure for each column that is one."""
        for taken in part.columns:
            value = values.get((taken.quantity.id, taken.device))
            if taken.quantity.column[0] == ":" and value is not None:
                self.rows.add("engine_figure", line, t=values.get(("time", None)), name=taken.quantity.column[1:], value=float(value))  # fmt: skip

    # ---- requests

    def request(
        self, line: int, part: Part, values: Mapping[tuple[str, int | None], Any], record: Mapping[str, Any]
    ) -> None:
        """A request, units and times settled by `request_keys`."""
        found: Found = {}
        named = {taken.name for taken in part.columns}
        for name, value in record.items():
            meaning = MEANING[name] if name not in named else None
            if meaning is not None and not isinstance(value, (dict, list)):
                put(found, meaning, None if null(value) else value)
        for taken in part.columns:
            what, cell = _WHAT.get(taken.quantity.id), record.get(taken.name)
            if what is None or null(cell):
                continue
            known = MEANING[taken.name]
            if what == "start" and known is not None and known.what == "stamp":
                what = "stamp"
            value = values.get((taken.quantity.id, None))
            if what in ("latency", "ttft"):
                put(found, Meaning(what, _DIVISORS.get(taken.named_unit, 0.0), False), cell)
            elif what in ("start", "stamp", "end", "first"):
                clock = _since(cell, taken.named_unit) if value is None or taken.quantity.id == "elapsed" else None
                if clock is not None:
                    found.setdefault(f"{'start' if what == 'stamp' else what}_clock", clock)
                    continue
                found.setdefault(what, value)
                found.setdefault(what + "/", Meaning(what, 0.0, False))
            elif value is not None:
                found[what] = value
                found[what + "/"] = known or Meaning(what, 0.0, False)
        self.requests.add(line, found, None, "", known=True)

    # ---- the rest

    def cluster_event(
        self, line: int, part: Part, values: Mapping[tuple[str, int | None], Any], _: Mapping[str, Any]
    ) -> None:
        """An event of a cluster."""
        row = {
            taken.quantity.column: values.get((taken.quantity.id, None))
            for taken in part.columns
            if taken.quantity.table == "cluster_event"
        }
        if row.get("reason"):
            self.rows.add("cluster_event", line, t=values.get(("time", None)), **row)

    def container(
        self, line: int, part: Part, values: Mapping[tuple[str, int | None], Any], _: Mapping[str, Any]
    ) -> None:
        """A life of a container that has ended: when it began and ended or how long it lasted, its exit code and reason."""
        get = values.get
        code, lasted = get(("life.code", None)), get(("life.lasted", None))
        begin, end = get(("life.begin", None)), get(("life.end", None))
        if code is None or (lasted is None and (begin is None or end is None)):
            return
        start, stop = moment(begin), moment(end)
        if lasted is None and start is not None and stop is not None and stop >= start:
            lasted = stop - start
        elif lasted is None:
            first, last = _clock(begin), _clock(end)
            lasted = (last - first) % 86_400 if first is not None and last is not None else None
        self.rows.add("container", line, last_reason=get(("life.reason", None)), exit_code=int(code), ran_s=lasted, started_t=start, ended_t=stop)  # fmt: skip

    def scaler(
        self, line: int, part: Part, values: Mapping[tuple[str, int | None], Any], record: Mapping[str, Any]
    ) -> None:
        """Replicas at a moment, the bounds of a scaler, or the metric and the threshold of its rule."""
        row = {taken.quantity.column: values.get((taken.quantity.id, None)) for taken in part.columns if taken.quantity.table == "scaler"}  # fmt: skip
        if all(value is None for value in row.values()):
            return
        kind = "metric" if row.get("name") else "replicas"
        text = ", ".join(f"{taken.name}={record.get(taken.name)}" for taken in part.columns if not null(record.get(taken.name)))  # fmt: skip
        self.rows.add("scaler", line, t=values.get(("time", None)), kind=kind, text=text[:TEXT_CAP], **row)

    def note(self, line: int, part: Part, values: Mapping[tuple[str, int | None], Any], _: Mapping[str, Any]) -> None:
        """The memory of the host."""
        size = values.get(("host.size", None))
        if size and ("note", str(size)) not in self._announced:
            self._announced.add(("note", str(size)))
            self.rows.add(
                "note", line, topic="host-size", value=float(size), text=f"memory of the host: {show_bytes(size)}"
            )

    def host_event(
        self, line: int, part: Part, values: Mapping[tuple[str, int | None], Any], _: Mapping[str, Any]
    ) -> None:
        """Kills that a memory group counted."""
        count = values.get(("host.group_kills", None))
        if count and self._last.get("kills") != count:
            self._last["kills"] = count
            self.rows.add("host_event", line, t=values.get(("time", None)), kind="cgroup-oom-count", count=count, text=f"oom_kill {count}")  # fmt: skip

    # ---- out

    def take(self) -> Iterator[Batch]:
        """What was read so far."""
        yield from self.requests.take()
        yield from self.rows.take()

    def close(self) -> Iterator[Batch]:
        """The rest."""
        self._devices.close(self.rows)
        yield from self.requests.take()
        yield from self.requests.noted.close()
        yield from self.rows.close()


_FILL = {
    "gpu_sample": Filler.gpu_sample, "gpu_process": Filler.gpu_process, "process_memory": Filler.process_memory,
    "engine_stat": Filler.engine_stat, "metric": Filler.metric, "engine_figure": Filler.engine_figure, "request": Filler.request,
    "cluster_event": Filler.cluster_event, "scaler": Filler.scaler, "container": Filler.container, "note": Filler.note, "host_event": Filler.host_event,
    "allocator_segment": Filler.allocator_segment, "allocator_stat": Filler.allocator_stat,
}  # fmt: skip


_CLOCK = regex(r"(?:^|[ T])(\d{1,2}):(\d\d)(?::(\d\d(?:\.\d+)?))?")


def _clock(text: Any) -> float | None:
    """Seconds since midnight of a time of day, with or without a date before it."""
    found = _CLOCK.search(str(text))
    return int(found[1]) * 3600.0 + int(found[2]) * 60 + float(found[3] or 0) if found else None


def _since(cell: Any, unit: str) -> float | None:
    """Seconds of a clock without a date, or of a number whose column names its unit; None for another cell.

    >>> _since("14:00:02.29", ""), _since("95.8", "s"), _since("95.8", ""), _since("2026-11-20T20:04:51Z", "s")
    (50402.29, 95.8, None, None)
    """
    text = str(cell).strip()
    if _ALL_CLOCK.fullmatch(text):
        return _clock(text)
    if unit not in _DIVISORS:
        return None
    try:
        number, behind = number_of(cell)
    except UnreadableError:
        return None
    return number / _DIVISORS[unit] if not behind and 0 <= number < _NO_EPOCH else None


_ALL_CLOCK = regex(r"\d{1,2}:\d\d(?::\d\d(?:\.\d{1,9})?)?")
_NO_EPOCH = 1e8


def _shown_unit(unit: str) -> str:
    return {"1": "shares of one", "%": "percent", "B": "bytes"}.get(unit, unit)
