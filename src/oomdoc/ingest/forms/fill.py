"""Records to rows: what a plan took the columns for becomes rows of the tables, and the units of their columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from oomdoc.evidence.tables import Batch
from oomdoc.ingest import device_metrics
from oomdoc.ingest.base import TEXT_CAP
from oomdoc.ingest.forms.believe import Part, Plan, Taken
from oomdoc.ingest.forms.cells import UnreadableError, null, number_of, value_of
from oomdoc.ingest.metrics import kept_name, tell_host
from oomdoc.ingest.problems import Capped
from oomdoc.ingest.request_keys import MEANING, NO_EPOCH, WHAT, Found, Meaning, Requests, moment, put
from oomdoc.ingest.vocabulary import quantities
from oomdoc.intake.hosts import writer_of
from oomdoc.regexes import regex
from oomdoc.units import show_bytes

_DIVISORS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9, "min": 1 / 60}
_WHAT = {**WHAT, "request.model": "model", "request.first": "first", "time": "start", "elapsed": "start"}
_COUNTS = ("running", "waiting", "swapped")
_LABELS = regex(r"\{(.*)\}", re.S)
_MEMO = 4096
_METRIC_NAME = regex(r"[A-Za-z_:][\w:]{2,120}")

_MOST_HOSTS = 1000
_NO_DISK = regex(r"(?:tmpfs|shm|udev|devtmpfs|none)\b|.* /(?:dev|run|sys|proc|boot)\b")
_FULL = 0.98
"""Of /dev/shm: what is asked for next finds no room."""
_RETURNED = regex(r"(?i)(?<![a-z])(?:rc|ret(?:urn)?[ _]?code|exit(?:[ _]?(?:code|status))?)$")
"""What a program returned, of which 0 is success: no HTTP status, of which none is below 100."""
_OF_HOST = regex(r"(?i)(?:the )?(?:system|host|cpu|main)(?: memory| ram|_memory|_ram)")
"""What a record says of itself that is about the host's memory and no device's."""


class Cells(NamedTuple):
    """What one record says of one part of the plan: where it stands, and the values of the part's columns."""

    line: int
    part: Part
    values: Mapping[tuple[str, int | None], Any]
    record: Mapping[str, Any]

    @property
    def t(self) -> float | None:
        """The moment of the record."""
        return self.values.get(("time", None))

    def get(self, name: str, device: int | None = None) -> Any:
        """The value of a quantity, of a device where the columns are one for each."""
        return self.values.get((name, device))

    def of(self, taken: Taken) -> Any:
        """The value of a column."""
        return self.values.get((taken.quantity.id, taken.device))

    def columns_of(self, table: str) -> dict[str, Any]:
        """The values by the columns of the table that they fill."""
        return {taken.quantity.column: self.get(taken.quantity.id) for taken in self.part.columns if taken.quantity.table == table}  # fmt: skip

    def named(self) -> Iterator[tuple[Taken, Any]]:
        """The columns that are each a row under a name of its own, with their values."""
        return ((taken, self.of(taken)) for taken in self.part.columns if taken.quantity.column[0] == ":" and self.of(taken) is not None)  # fmt: skip


class OfHost:
    """What is known of the devices of one host, and where their rows go."""

    def __init__(self, rows: Capped) -> None:
        self.rows = rows
        self.clocks = device_metrics.Clocks()
        self.known: set[tuple[Any, ...]] = set()
        self._index: dict[str, int] = {}

    def gpu(self, one: Cells, known_only: bool = False) -> int | None:
        """The number of the device, by its place among those whose identity alone is told."""
        gpu: int | None = one.get("gpu.index")
        identity = one.get("gpu.uuid") or one.get("gpu.bus")
        if identity and gpu is not None:
            self._index[identity] = gpu
        elif identity and (not known_only or identity in self._index):
            gpu = self._index.setdefault(identity, len(self._index))
        return gpu


class Filler:
    """Rows of one source."""

    def __init__(self) -> None:
        self.rows = Capped()
        self.requests = Requests()
        self._devices = device_metrics.Devices(by_series=True)
        self._writers: dict[str, str] = {}
        self._of_host: dict[str, OfHost] = {"": OfHost(self.rows)}
        self._announced: set[tuple[str, str]] = set()
        self._last: dict[str, float] = {}
        self._hosts: set[str] = set()
        self._books = 0
        self._pod: str | None = None
        self._memos: dict[int, tuple[Taken, dict[str, Any]]] = {}  # kept with its key, so that no other gets its id

    def announce(self, line: int, plan: Plan) -> None:
        """What the columns were taken for, and which nobody understood; once for each name."""
        for part in plan.parts:
            for taken in part.columns:
                quantity = taken.quantity
                column = quantity.column.lstrip("+:")
                shown = f"{part.entity.table}.{column}" + (f" in {_shown_unit(taken.unit)}" if taken.unit not in ("", "?") and quantity.kind in ("bytes", "share", "seconds") else "")  # fmt: skip
                self.column_taken(line, taken.name, f"{shown}, {taken.told}" if taken.told else shown)
        for name, quantity in plan.beside:
            self.column_taken(
                line, name, f"another statistic of {quantity.table}.{quantity.column.lstrip('+:')}: no row"
            )
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
            values = {(taken.quantity.id, taken.device): self._value(line, taken, record.get(taken.name)) for taken in part.columns}  # fmt: skip
            _FILL[part.entity.table](self, Cells(line, part, values, record))

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

    def _host(self, one: Cells) -> OfHost:
        """The host of a record's device: that of the first is the source itself."""
        name = one.get("gpu.host") or one.get("gpu.pod")
        writer = writer_of(str(name), self._writers) if name else ""
        if writer not in self._of_host and len(self._of_host) < _MOST_HOSTS:
            self._of_host[writer] = OfHost(Capped())
        return self._of_host.get(writer) or self._of_host[""]

    def gpu_sample(self, one: Cells) -> None:
        """A sample of one device, or of all whose number stands in the names of columns."""
        if any(isinstance(cell, str) and _OF_HOST.fullmatch(cell.strip(" \"'")) for cell in one.record.values()):
            return  # a total and what is free of it, and the record says of what
        host = self._host(one)
        common = host.gpu(one)
        named = sorted({device for _, device in one.values if device is not None})
        numbers: list[int | None] = [*named] if named else [None]
        for device in numbers:

            def get(name: str, device: int | None = device) -> Any:
                value = one.get(name, device)
                return value if value is not None else one.get(name)

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
                self.rows.problem(one.line, f"more memory in use than there is: {show_bytes(used)} of {show_bytes(total)}", "")  # fmt: skip
                used = None
            util, memory_util = get("gpu.util"), get("gpu.memory_util")
            sized = (
                used is None and util is None and (one.t is None or total is None)
            )  # a size of no moment is no sample
            self._device(host, one, gpu, total, used, sized and total is not None)
            if not get("gpu.mig") and not sized:
                host.clocks.tell(
                    host.rows, one.line, one.t, gpu, get("gpu.clock"), get("gpu.hot"), util, get("gpu.reasons")
                )
                host.rows.add(
                    "gpu_sample", one.line, t=one.t, gpu=gpu, used_bytes=used, total_bytes=total,
                    gpu_util=util, memory_util=memory_util,
                )  # fmt: skip

    def _device(self, host: OfHost, one: Cells, gpu: int | None, total: int | None, used: int | None, sized: bool) -> None:  # fmt: skip
        name, profile = one.get("gpu.name"), one.get("gpu.mig")
        identity = (gpu, name, total, profile)
        if (name or profile or sized) and identity not in host.known:
            host.known.add(identity)
            host.rows.add(
                "gpu_device", one.line, gpu=gpu, name=name, total_bytes=total, mig_profile=profile, count=1,
                used_bytes=used if profile else None, bus_id=one.get("gpu.bus"), uuid=one.get("gpu.uuid"),
            )  # fmt: skip

    def gpu_process(self, one: Cells) -> None:
        """A process on a device."""
        pid = one.get("process.pid")
        if pid is None and one.get("process.name") is None:
            return
        host = self._host(one)
        host.rows.add(
            "gpu_process", one.line, t=one.t, gpu=host.gpu(one, known_only=True), pid=pid,
            type=one.get("process.type") or "C", name=one.get("process.name"),
            used_bytes=one.get("process.gpu_used"), gpu_uuid=one.get("gpu.uuid") or one.get("gpu.bus"),
        )  # fmt: skip

    # ---- processes on the host

    def process_memory(self, one: Cells) -> None:
        """The resident memory of a process."""
        size, name, pid = one.get("process.resident"), one.get("process.name"), one.get("process.pid")
        if size is None:
            return
        if pid is not None:
            name = f"{name or 'process'} (pid {pid})"
        self.rows.add(
            "process_memory", one.line, t=one.t, name=name, state=one.get("process.state"), resource="host",
            bytes=size,
        )  # fmt: skip

    # ---- the allocator

    def allocator_segment(self, one: Cells) -> None:
        """A segment of torch's allocator, as somebody wrote it out of a snapshot."""
        total, active, free = (one.get(f"segment.{name}") for name in ("total", "active", "inactive"))
        if free is None and total is not None and active is not None:
            free = total - active
        if free is None or free < 0:
            return
        self.rows.add(
            "allocator_segment", one.line, pool="default", total_bytes=total, allocated_bytes=active,
            inactive_bytes=free, largest_free_bytes=one.get("segment.gap"),
        )  # fmt: skip

    def allocator_stat(self, one: Cells) -> None:
        """The books of the allocator at one moment: a table of its own, by the number that orders them."""
        self._books += 1
        for taken, value in one.named():
            self.rows.add("allocator_stat", one.line, device=taken.device, summary=self._books, metric=taken.quantity.column[1:], current=round(value))  # fmt: skip

    # ---- the engine

    def engine_stat(self, one: Cells) -> None:
        """A moment of the engine. Preemptions that never fall are a counter, which statistics lines do not have."""
        numbered = sorted({taken.device for taken in one.part.columns if taken.device is not None})
        instances: list[int | None] = [*numbered] if numbered else [None]
        for instance in instances:
            own = {taken.quantity.column: one.of(taken) for taken in one.part.columns if taken.device in (None, instance) and taken.quantity.table == "engine_stat"}  # fmt: skip
            filled = any(one.get(taken.quantity.id, instance) is not None for taken in one.part.columns)
            if filled or instance == instances[0]:  # a replica that is not there has no row
                self._engine_stat(one.line, one.t, own)

    def _engine_stat(self, line: int, t: float | None, own: dict[str, Any]) -> None:
        row = {column: round(value) if column in _COUNTS and value is not None else value for column, value in own.items() if column[0] != "+"}  # fmt: skip
        used, total, free = (own.get(f"+blocks_{which}") for which in ("used", "total", "free"))
        total = total if total is not None or used is None or free is None else used + free
        if row.get("kv_used") is None and used is not None and total and used <= total:
            row["kv_used"] = used / total
        counted = row.pop("preemptions", None)
        if counted is not None:
            self.rows.add("metric", line, t=t, name="vllm:num_preemptions_total", value=float(counted))
        if any(value is not None for value in row.values()):
            self.rows.add("engine_stat", line, t=t, **row)

    def metric(self, one: Cells) -> None:
        """One sample for each column that is a metric; a header may hold the labels too, as Grafana writes it, and a column whose they are."""
        whose = next(
            (
                f'{taken.name}="{one.record[taken.name]}"'
                for taken in one.part.columns
                if taken.quantity.id == "stat.replica" and not null(one.record.get(taken.name))
            ),
            None,
        )
        for taken in one.part.columns:
            column = taken.quantity.column
            value = self._value(one.line, taken, one.record.get(taken.name)) if column[0] == ":" else None
            if value is not None:
                labels = _LABELS.search(taken.name)
                self.rows.add("metric", one.line, t=one.t, name=column[1:], labels=labels[1] if labels else whose, value=float(value))  # fmt: skip

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

    def engine_figure(self, one: Cells) -> None:
        """One figure for each column that is one."""
        for taken, value in one.named():
            self.rows.add("engine_figure", one.line, t=one.t, name=taken.quantity.column[1:], value=float(value))  # fmt: skip

    # ---- requests

    def request(self, one: Cells) -> None:
        """A request, units and times settled by `request_keys`."""
        found: Found = {}
        named = {taken.name for taken in one.part.columns}
        told = {_WHAT.get(taken.quantity.id) for taken in one.part.columns} & {"latency", "ttft"}
        for name, value in one.record.items():
            meaning = MEANING[name] if name not in named else None
            if meaning is not None and meaning.what not in told and not isinstance(value, (dict, list)):
                put(found, meaning, None if null(value) else value)
        for taken in one.part.columns:
            what, cell = _WHAT.get(taken.quantity.id), one.record.get(taken.name)
            if what is None or null(cell):
                continue
            known = MEANING[taken.name]
            if what == "start" and known is not None and known.what == "stamp":
                what = "stamp"
            value = one.get(taken.quantity.id)
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
                returned = what == "status" and _RETURNED.search(taken.name) and value < 100
                found[what] = (500 if value else 200) if returned else value
                found[what + "/"] = known or Meaning(what, 0.0, False)
        self.requests.add(one.line, found, None, "", known=True)

    # ---- the rest

    def cluster_event(self, one: Cells) -> None:
        """An event of a cluster."""
        row = one.columns_of("cluster_event")
        if row.get("reason"):
            self.rows.add("cluster_event", one.line, t=one.t, **row)

    def container(self, one: Cells) -> None:
        """A container of a list, by its id; or a life of one that has ended: when it began and ended or how long it lasted, its exit code and reason."""
        if one.get("life.id") is not None:  # a list of what there is
            self.rows.add("container", one.line, **{key: one.get(f"life.{name}") for key, name in (("container_id", "id"), ("image", "image"), ("name", "name"))})  # fmt: skip
            code = _ended_with(one.record)
            if code:
                self.rows.add("process_exit", one.line, name=one.get("life.name"), exit_code=code)
            return
        if one.get("life.restarts") is not None and one.get("life.begin") is None:  # a sheet of what there is
            own: dict[str, Any] = {column: round(value) if isinstance(value, float) else value for column, value in one.columns_of("container").items() if column[0] != "+"}  # fmt: skip
            if "pod" in own:
                self._pod = own["pod"] = own["pod"] or self._pod  # cells that were merged are empty below the first
            self.rows.add("container", one.line, **own)
            return
        code, lasted = one.get("life.code"), one.get("life.lasted")
        begin, end = one.get("life.begin"), one.get("life.end")
        start, stop = moment(begin) if begin is not None else one.t, moment(end)
        if code is None or (lasted is None and ((begin is None and start is None) or end is None)):
            return
        if lasted is None and start is not None and stop is not None and stop >= start:
            lasted = stop - start
        elif lasted is None:
            first, last = _clock(begin), _clock(end)
            lasted = (last - first) % 86_400 if first is not None and last is not None else None
        self.rows.add("container", one.line, last_reason=one.get("life.reason"), exit_code=int(code), ran_s=lasted, started_t=start, ended_t=stop)  # fmt: skip

    def scaler(self, one: Cells) -> None:
        """Replicas at a moment, the bounds of a scaler, or the metric and the threshold of its rule."""
        row = one.columns_of("scaler")
        if all(value is None for value in row.values()):
            return
        kind = "metric" if row.get("name") else "replicas"
        text = ", ".join(f"{taken.name}={one.record.get(taken.name)}" for taken in one.part.columns if not null(one.record.get(taken.name)))  # fmt: skip
        self.rows.add("scaler", one.line, t=one.t, kind=kind, text=text[:TEXT_CAP], **row)

    def note(self, one: Cells) -> None:
        """The memory of the host; how often a limit on processors stopped a group; its threads, and how many it may have; a file system."""
        if (mount := one.get("fs.mount")) is not None:
            self._file_system(one, mount)
        for name, topic in _COUNTED_TOPICS:
            if (value := one.get(name)) is not None:
                self.rows.add("note", one.line, topic=topic, value=float(value), text=f"{topic} {value}")
        size = one.get("host.size")
        if size and ("note", str(size)) not in self._announced:
            self._announced.add(("note", str(size)))
            self.rows.add(
                "note", one.line, topic="host-size", value=float(size), text=f"memory of the host: {show_bytes(size)}"
            )

    def _file_system(self, one: Cells, mount: str) -> None:
        text = " ".join(str(cell) for cell in one.record.values() if not null(cell))[:TEXT_CAP]
        size, used, free = (one.get(f"fs.{name}") for name in ("size", "used", "free"))
        shared = mount == "/dev/shm"
        for topic, value in (("shm-size", size), ("shm-used", used)) if shared else (("disk-free", free),):
            if value is not None and (shared or not _NO_DISK.match(f"{text} {mount}")):
                self.rows.add("note", one.line, topic=topic, value=float(value), text=text)
        if shared and size and used is not None and used >= _FULL * size:
            self.rows.add("host_event", one.line, t=one.t, kind="shm-full", bytes=used, limit_bytes=size, text=text)

    def host_event(self, one: Cells) -> None:
        """Kills that a memory group counted; none, where somebody looked and there was none."""
        count = one.get("host.group_kills")
        if count is not None and self._last.get("kills") != count:
            self._last["kills"] = count
            self.rows.add("host_event", one.line, t=one.t, kind="cgroup-oom-count", count=count, text=f"oom_kill {count}")  # fmt: skip

    # ---- out

    def take(self) -> Iterator[Batch]:
        """What was read so far."""
        yield from self.requests.take()
        for writer, host in self._of_host.items():
            yield from (batch._replace(writer=writer) for batch in host.rows.take())

    def close(self) -> Iterator[Batch]:
        """The rest."""
        self._devices.close(self.rows)
        yield from self.take()
        yield from self.requests.noted.close()
        yield from self.rows.close()


_COUNTED_TOPICS = [(one.id, one.column[1:]) for one in quantities() if one.table == "note" and one.kind == "count"]
_FILL = {
    "gpu_sample": Filler.gpu_sample, "gpu_process": Filler.gpu_process, "process_memory": Filler.process_memory,
    "engine_stat": Filler.engine_stat, "metric": Filler.metric, "engine_figure": Filler.engine_figure, "request": Filler.request,
    "cluster_event": Filler.cluster_event, "scaler": Filler.scaler, "container": Filler.container, "note": Filler.note, "host_event": Filler.host_event,
    "allocator_segment": Filler.allocator_segment, "allocator_stat": Filler.allocator_stat,
}  # fmt: skip


_CLOCK = regex(r"(?:^|[ T])(\d{1,2}):(\d\d)(?::(\d\d(?:\.\d+)?))?")


_EXITED = regex(r"(?:Exited|Restarting|Dead) \((?P<code>\d{1,3})\)(?= |$)")


def _ended_with(record: Mapping[str, Any]) -> int | None:
    """The status with which a container of a list has ended, as `docker ps` prints it: `Exited (137) 4 minutes ago`; None for one that runs."""
    found = next((match for cell in record.values() if isinstance(cell, str) and (match := _EXITED.match(cell))), None)
    return int(found["code"]) if found else None


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
    return number / _DIVISORS[unit] if not behind and 0 <= number < NO_EPOCH else None


_ALL_CLOCK = regex(r"\d{1,2}:\d\d(?::\d\d(?:\.\d{1,9})?)?")


def _shown_unit(unit: str) -> str:
    return {"1": "shares of one", "%": "percent", "B": "bytes"}.get(unit, unit)
