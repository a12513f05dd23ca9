"""`torch.cuda.memory._dump_snapshot`: every segment and block of the allocator, and the trace of what it did.

    {"segments": [{"device": 0, "address": 139..., "total_size": 2097152, "segment_pool_id": (0, 0), "is_expandable": False,
                   "blocks": [{"size": 1048576, "state": "active_allocated", "frames": [{"filename", "line", "name"}, ...]}]}],
     "device_traces": [[{"action": "oom", "size": 67108864, "device_free": 1048576, "time_us": 1795205091000000, "frames": [...]}]],
     "allocator_settings": {...}}                       (torch 2.0 to 2.13; 1.13 kept frames in `history`)

A dump is a pickle, seldom JSON. `PlainPickle` unpickles nothing: it knows the two dozen opcodes of dictionaries, lists, tuples,
texts and numbers, and refuses the file at any other, so that nothing can be called, imported or built. It holds neither
the blocks nor the trace: each is added up when it is complete and dropped. Limits on operations, depth, held objects and text bound
time and memory; a dump beyond them is told as a problem, and what was added up before stands.

Tables: `allocator_segment` (what segments hold), `allocator_block` (live bytes by the line of code that asked for them),
`allocator_trace` (the peak, the last failures), and besides `allocator_stat` and `oom` as other sources fill them. What a trace
counts is moved so that its end agrees with the segments: then allocated and reserved bytes are exact at each event.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from oomdoc.ingest.base import Head, Rows
from oomdoc.ingest.json_pieces import ITEM, BrokenError, pieces
from oomdoc.scan import Chunk
from oomdoc.tables import Batch

KIND = "memory-snapshot"
TABLES = ("allocator_segment", "allocator_block", "allocator_trace", "allocator_stat", "oom", "frame", "problem")

MAGIC = re.compile(rb"\x80[\x02-\x05]")
_SITES = 100  # call sites of a device that are told one by one
_SITES_HELD = 10_000
_STACK_FRAMES = 24  # enough to reach from a kernel's caller to the step of the engine
_OOMS = 20  # last failures of a device that are told
_SIZE_CAP = 1 << 50
_DEVICES = 64  # of one process
_STATES = ("active_allocated", "active_awaiting_free", "active_pending_free", "inactive")
_SUMS = 200_000  # call sites of all devices and states
_STACK_CAP = 20_000  # values between two marks; pickle writes lists in batches of 1,000
_TEXT_OVERHEAD = 64  # bytes of an object besides its text
_YEARS_US = (6.3e14, 7.3e15)


class StrangeError(ValueError):
    """The pickle holds something else than plain data; a part of a sentence."""


class LimitError(ValueError):
    """The pickle holds more than is read; a part of a sentence."""


class CutError(ValueError):
    """The pickle ends before its end."""


# ---- call sites


class Site:
    """One way into the allocator: the line of code that asked, and the Python frames above it, innermost first."""

    __slots__ = ("frames", "name")
    name: str | None
    frames: str | None

    def __init__(self, name: str | None, frames: str | None) -> None:
        self.name = name
        self.frames = frames


class _Sites:
    """Call sites by their text; the same for all of one place, so that a million traces hold a few hundred."""

    def __init__(self) -> None:
        self.unknown = Site(None, None)
        self._known: dict[str, Site] = {}
        self._lines: dict[str, Site] = {}
        self._same: dict[tuple[int, ...], Site] = {}
        self._texts: dict[
            int, tuple[Any, str | None]
        ] = {}  # of a frame object, which is held so that its id stays its own

    def of(self, frames: Any) -> Site:
        """The site of a list of frames as torch gives them; `unknown` where it is empty or something else."""
        if isinstance(frames, Site):
            return frames
        if not isinstance(frames, list) or not frames:
            return self.unknown
        same = tuple(map(id, frames[:200]))  # frames are shared: most lists are those of an earlier allocation
        site = self._same.get(same)
        if site is None:
            held = len(self._texts)
            site = self._named([text for frame in frames[:200] if (text := self._text(frame))])
            if len(self._same) < _SITES_HELD and held < 4 * _SITES_HELD - 200:  # else an id could be used again
                self._same[same] = site
        return site

    def _named(self, texts: list[str]) -> Site:
        own = [text for text in texts if not text.startswith("torch/")]
        named = (own or texts)[:_STACK_FRAMES]
        if not named:
            return self.unknown
        key = " < ".join(named)
        site = self._known.get(key)
        if site is None and len(self._known) < _SITES_HELD:
            site = self._known[key] = Site(named[0], key)
        elif site is None:  # stacks without end: the innermost line is what they have in common
            site = self._lines.get(named[0])
            if site is None:
                site = Site(named[0], None)
                if len(self._lines) < _SITES_HELD:
                    self._lines[named[0]] = site
        return site

    def _text(self, frame: Any) -> str | None:
        """`vllm/attention/layer.py:212 forward`; None for what is no Python frame."""
        held = self._texts.get(id(frame))
        if held is None:
            text = None
            if isinstance(frame, dict):
                file, name, line = frame.get("filename"), frame.get("name"), frame.get("line")
                if isinstance(file, str) and file.endswith(".py"):
                    short = re.split(r"(?:site|dist)-packages/", file)[-1]
                    short = "/".join(short.rsplit("/", 5)[-5:])
                    text = f"{short}:{line if isinstance(line, int) else '?'} {name if isinstance(name, str) else '?'}"[
                        :200
                    ]
            held = frame, text
            if len(self._texts) < 4 * _SITES_HELD:
                self._texts[id(frame)] = held
        return held[1]


# ---- what is added up


@dataclass
class _Pool:
    """Segments of one device that are alike, added up."""

    segments: int = 0
    blocks: int = 0
    total: int = 0
    allocated: int = 0
    active: int = 0
    inactive: int = 0
    split: int = 0
    largest_free: int = 0
    free_segments: int = 0


@dataclass
class _Failure:
    """An event of the trace, with what the trace had counted by then."""

    nth: int
    t: float | None
    size: int | None
    free: int | None
    allocated: int
    reserved: int
    site: Site


@dataclass
class _Trace:
    """The trace of one device so far."""

    entries: int = 0
    allocated: int = 0
    reserved: int = 0
    first_t: float | None = None
    last_t: float | None = None
    peak: _Failure | None = None
    peak_reserved: int = 0
    ooms: int = 0
    failures: list[_Failure] = field(default_factory=list)


class Sums:
    """Segments, blocks and trace entries, each added up as it comes."""

    def __init__(self) -> None:
        self.sites = _Sites()
        self.pools: dict[tuple[int, str, str, bool], _Pool] = {}
        self.blocks: dict[tuple[int, str, str], dict[Site, list[int]]] = {}
        self.traces: dict[int, _Trace] = {}
        self._summed = 0

    def block(self, block: Any) -> tuple[int, str, Site]:
        """Size, state and call site of a block."""
        if not isinstance(block, dict):
            return 0, "", self.sites.unknown
        size, state = _size(block.get("size")) or 0, block.get("state")
        frames = block.get("frames")
        if frames is None:
            history = block.get("history")  # torch 1.13
            if isinstance(history, list) and history and isinstance(history[0], dict):
                frames = history[0].get("frames")
        return size, state if state in _STATES else "", self.sites.of(frames)

    def segment(self, segment: Any, blocks: Iterable[tuple[int, str, Site]]) -> None:
        """A segment with its blocks in order."""
        if not isinstance(segment, dict):
            return
        device = segment.get("device")
        device = device if isinstance(device, int) and 0 <= device < _DEVICES else -1
        pool_id = segment.get("segment_pool_id")
        private = isinstance(pool_id, (tuple, list)) and any(pool_id)
        kind = segment.get("segment_type")
        pool = self.pools.setdefault(
            (
                device,
                "private" if private else "default",
                kind if kind in ("small", "large") else "",
                segment.get("is_expandable") is True,
            ),
            _Pool(),
        )
        total = _size(segment.get("total_size")) or 0
        pool.segments += 1
        pool.total += total
        free = [0]
        live = 0
        for size, state, site in blocks:
            pool.blocks += 1
            if state == "inactive":
                free.append(size)
                continue
            live += 1
            pool.active += size
            pool.allocated += size if state == "active_allocated" else 0
            kinds = self.blocks.setdefault((device, "private" if private else "default", state), {})
            sums = kinds.get(site)
            if sums is None:
                if self._summed >= _SUMS:
                    site = self.sites.unknown
                self._summed += 1
                sums = kinds.setdefault(site, [0, 0, 0])
            sums[0] += 1
            sums[1] += size
            sums[2] = max(sums[2], size)
        pool.inactive += sum(free)
        pool.largest_free = max(pool.largest_free, *free)
        pool.split += sum(free) if live else 0
        pool.free_segments += not live

    def event(self, device: int, entry: Any) -> None:
        """An entry of the trace of a device."""
        if not isinstance(entry, dict):
            return
        trace = self.traces.setdefault(device, _Trace())
        action, size = entry.get("action"), _size(entry.get("size"))
        time_us = entry.get("time_us")
        t = time_us / 1e6 if isinstance(time_us, (int, float)) and _YEARS_US[0] <= time_us < _YEARS_US[1] else None
        trace.entries += 1
        if t is not None:
            trace.first_t = t if trace.first_t is None else trace.first_t
            trace.last_t = t
        if action == "alloc":
            trace.allocated += size or 0
            if trace.peak is None or trace.allocated > trace.peak.allocated:
                trace.peak = self._failure(trace, t, size, entry)
        elif action == "free_requested":
            trace.allocated -= size or 0
        elif action in ("segment_alloc", "segment_map"):
            trace.reserved += size or 0
            trace.peak_reserved = max(trace.peak_reserved, trace.reserved)
        elif action in ("segment_free", "segment_unmap"):
            trace.reserved -= size or 0
        elif action == "oom":
            trace.ooms += 1
            trace.failures = [*trace.failures[1 - _OOMS :], self._failure(trace, t, size, entry)]

    def _failure(self, trace: _Trace, t: float | None, size: int | None, entry: Mapping[str, Any]) -> _Failure:
        free = _size(entry.get("device_free"))
        site = self.sites.of(entry.get("frames"))
        return _Failure(trace.entries, t, size, free, trace.allocated, trace.reserved, site)

    # ---- rows

    def tell(self, rows: Rows) -> None:
        """Everything that was added up, as rows; sums that no device can hold are told as one problem instead."""
        sizes = [abs(pool.total) + abs(pool.active) + abs(pool.inactive) for pool in self.pools.values()]
        sizes += [
            abs(failure.allocated) + abs(failure.reserved) + abs(trace.allocated) + abs(trace.reserved)
            for trace in self.traces.values()
            for failure in (*trace.failures, trace.peak)
            if failure is not None
        ]
        if sum(sizes) >= _SIZE_CAP * 16:
            rows.problem(1, "a memory snapshot of sizes that no device has", "")
            return
        devices = sorted({key[0] for key in self.pools} | set(self.traces))
        for device in devices:
            self._tell_segments(rows, device)
        for device in devices:
            self._tell_blocks(rows, device)
        for device in devices:
            self._tell_device(rows, device)

    def _tell_segments(self, rows: Rows, device: int) -> None:
        for (owner, pool, kind, expandable), sums in sorted(self.pools.items()):
            if owner == device:
                rows.add(
                    "allocator_segment", 1, device=_known(device), pool=pool, segment_type=kind or None, expandable=expandable,
                    segments=sums.segments, blocks=sums.blocks, total_bytes=sums.total, allocated_bytes=sums.allocated,
                    active_bytes=sums.active, inactive_bytes=sums.inactive, inactive_split_bytes=sums.split,
                    largest_free_bytes=sums.largest_free, free_segments=sums.free_segments,
                )  # fmt: skip

    def _tell_blocks(self, rows: Rows, device: int) -> None:
        for (owner, pool, state), sites in sorted(self.blocks.items()):
            if owner != device:
                continue
            ranked = sorted(sites.items(), key=lambda entry: (-entry[1][1], entry[0].frames or ""))
            for site, (count, size, largest) in ranked[:_SITES]:
                rows.add(
                    "allocator_block", 1, device=_known(device), pool=pool, state=state or None, site=site.name, frames=site.frames,
                    sites=1, blocks=count, bytes=size, largest_bytes=largest,
                )  # fmt: skip
            rest = [sums for _, sums in ranked[_SITES:]]
            if rest:
                rows.add(
                    "allocator_block", 1, device=_known(device), pool=pool, state=state or None, site="(all other sites)",
                    sites=len(rest), blocks=sum(sums[0] for sums in rest), bytes=sum(sums[1] for sums in rest),
                    largest_bytes=max(sums[2] for sums in rest),
                )  # fmt: skip

    def _tell_device(self, rows: Rows, device: int) -> None:
        pools = {key[1:]: sums for key, sums in self.pools.items() if key[0] == device}
        trace = self.traces.get(device)
        stat = {
            "allocated_bytes": sum(sums.allocated for sums in pools.values()),
            "active_bytes": sum(sums.active for sums in pools.values()),
            "reserved_bytes": sum(sums.total for sums in pools.values()),
            # torch counts no split bytes of expandable segments: their holes can be unmapped
            "inactive_split_bytes": sum(sums.split for (_, _, expandable), sums in pools.items() if not expandable),
            "segment": sum(sums.segments for sums in pools.values()),
        }
        moved = {"allocated": 0, "reserved": 0}
        if trace is not None and pools:
            moved["allocated"] = stat["allocated_bytes"] - trace.allocated
            moved["reserved"] = stat["reserved_bytes"] - trace.reserved
        if pools:
            peaks = {}
            if trace is not None and trace.peak is not None:
                peaks["allocated_bytes"] = max(trace.peak.allocated + moved["allocated"], stat["allocated_bytes"])
                peaks["reserved_bytes"] = max(trace.peak_reserved + moved["reserved"], stat["reserved_bytes"])
            for metric, value in stat.items():
                rows.add(
                    "allocator_stat", 1, device=_known(device), summary=1, metric=metric, pool="all", current=value,
                    peak=peaks.get(metric),
                )  # fmt: skip
            if trace is not None:
                rows.add(
                    "allocator_stat",
                    1,
                    device=_known(device),
                    summary=1,
                    metric="num_ooms",
                    pool="all",
                    current=trace.ooms,
                )
        if trace is None or not trace.entries:
            return
        events = [("oom", failure) for failure in trace.failures]
        if trace.peak is not None:
            events.append(("peak", trace.peak))
        end = _Failure(trace.entries, trace.last_t, None, None, trace.allocated, trace.reserved, self.sites.unknown)
        events.append(("end", end))
        for event, failure in sorted(events, key=lambda entry: (entry[1].nth, entry[0] == "end")):
            told = self._at(failure, moved, trace, pools)
            rows.add(
                "allocator_trace", 1, device=_known(device), t=failure.t, event=event, nth=failure.nth, bytes=failure.size,
                free_bytes=failure.free, site=failure.site.name, frames=failure.site.frames, **told,
            )  # fmt: skip
        if trace.failures:
            self._tell_failure(rows, device, trace, moved, pools)

    def _at(
        self, failure: _Failure, moved: Mapping[str, int], trace: _Trace, pools: Mapping[Any, _Pool]
    ) -> dict[str, int | None]:
        """What the device held at an event; the holes only where nothing changed since, for the segments are those of the end."""
        if not pools:
            return {}
        same = (failure.allocated, failure.reserved) == (trace.allocated, trace.reserved)
        own = [sums for (pool, _, _), sums in pools.items() if pool == "default"]
        return {
            "allocated_bytes": failure.allocated + moved["allocated"],
            "reserved_bytes": failure.reserved + moved["reserved"],
            "largest_free_bytes": max((sums.largest_free for sums in own), default=0) if same else None,
            "private_free_bytes": sum(sums.inactive for (pool, _, _), sums in pools.items() if pool == "private")
            if same
            else None,
        }

    def _tell_failure(
        self, rows: Rows, device: int, trace: _Trace, moved: Mapping[str, int], pools: Mapping[Any, _Pool]
    ) -> None:
        """The last failure as the allocator's own message would tell it."""
        failure = trace.failures[-1]
        told = self._at(failure, moved, trace, pools)
        allocated, reserved, private = (
            told.get(name) for name in ("allocated_bytes", "reserved_bytes", "private_free_bytes")
        )
        text = (
            f"memory snapshot: the trace ends with {trace.ooms} failures"
            if trace.ooms > 1
            else "memory snapshot: out of memory"
        )
        rows.add(
            "oom", 1, t=failure.t, allocator="torch", device=_known(device), requested_bytes=failure.size,
            free_bytes=failure.free,
            allocated_bytes=None if allocated is None or private is None else allocated + private,
            private_pool_bytes=private,
            unallocated_bytes=None if allocated is None or reserved is None or private is None else reserved - allocated - private,
            text=f"{text}, asked by {failure.site.name}" if failure.site.name else text,
        )  # fmt: skip
        if failure.site.frames:
            for frame in failure.site.frames.split(" < "):
                place, _, function = frame.rpartition(" ")
                rows.add("frame", 1, t=failure.t, function=function, file=place.rpartition(":")[0])


def _known(device: int) -> int | None:
    return device if device >= 0 else None


def _size(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _SIZE_CAP:
        return None
    return value


# ---- the pickle


class _Dict(dict[Any, Any]):
    """A dictionary that knows its place in the memo."""

    __slots__ = ("at",)
    at: int


class _List(list[Any]):
    """A list that knows its place in the memo, and what it is for: segments, blocks, devices, trace (with its device)."""

    __slots__ = ("at", "device", "role")
    at: int
    device: int
    role: str


_ROLES = {"segments": "segments", "device_traces": "devices", "blocks": "blocks"}
_GONE = object()
_RUN = re.compile(rb"(?:j.{4})+", re.S)


class PlainPickle:
    """Reads a pickle of plain data from chunks and adds up segments, blocks and trace entries as they are complete.

    `operations`, `held` (objects in memory), `memo` and `text_bytes` are the limits; beyond them `LimitError`. `StrangeError` at any
    opcode that could name, call or build something, and where opcodes do not fit. `CutError` where the data end early.
    """

    def __init__(
        self,
        chunks: Iterable[Chunk],
        sums: Sums,
        operations: int = 80_000_000,
        held: int = 1_000_000,
        memo: int = 12_000_000,
        text_bytes: int = 96 << 20,
        depth: int = 40,
    ) -> None:
        self._chunks = iter(chunks)
        self._sums = sums
        self._left, self._held, self._memo_cap, self._text_left, self._depth = operations, held, memo, text_bytes, depth
        self._data = b""
        self._at = 0
        self._memo: list[Any] = []
        self._stack: list[Any] = []
        self._marks: list[list[Any]] = []
        self._devices = 0
        self._tuples: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self._codes: dict[int, Callable[[], None]] = {
            0x28: self._mark, 0x5D: self._list, 0x7D: self._dict, 0x29: lambda: self._push(()), 0x85: lambda: self._tuple(1),
            0x86: lambda: self._tuple(2), 0x87: lambda: self._tuple(3), 0x74: self._tuple_of_mark, 0x73: self._set_item,
            0x75: self._set_items, 0x61: self._append, 0x65: self._appends, 0x4E: lambda: self._push(None),
            0x88: lambda: self._push(True), 0x89: lambda: self._push(False), 0x4A: lambda: self._push(self._number("<i", 4)),
            0x4B: lambda: self._push(self._take(1)[0]), 0x4D: lambda: self._push(self._number("<H", 2)),
            0x8A: lambda: self._long(self._take(1)[0]), 0x47: lambda: self._push(self._number(">d", 8)),
            0x8C: lambda: self._text(self._take(1)[0]), 0x58: lambda: self._text(self._number("<I", 4)),
            0x94: lambda: self._memoize(len(self._memo)), 0x71: lambda: self._memoize(self._take(1)[0]),
            0x72: lambda: self._memoize(self._number("<I", 4)), 0x68: lambda: self._push(self._get(self._take(1)[0])),
            0x6A: self._gets, 0x80: lambda: self._protocol(self._take(1)[0]), 0x95: lambda: self._ignore(self._take(8)),
        }  # fmt: skip

    def run(self) -> None:
        """The whole pickle."""
        codes = self._codes
        while True:
            if self._at >= len(self._data):
                self._fill(1)
            code = self._data[self._at]
            self._at += 1
            self._left -= 1
            if self._left < 0:
                raise LimitError("more operations than are read")
            if code == 0x2E:  # the end
                return
            run = codes.get(code)
            if run is None:
                raise StrangeError(f"opcode 0x{code:02x} is none of plain data")
            try:
                run()
            except (IndexError, TypeError, KeyError, AttributeError) as problem:
                raise StrangeError("its opcodes do not fit together") from problem

    # ---- bytes

    def _fill(self, count: int) -> None:
        parts, have = [self._data[self._at :]], len(self._data) - self._at
        while have < count:
            chunk = next(self._chunks, None)
            if chunk is None:
                raise CutError
            parts.append(chunk.data)
            have += len(chunk.data)
        self._data, self._at = b"".join(parts), 0

    def _take(self, count: int) -> bytes:
        if len(self._data) - self._at < count:
            self._fill(count)
        self._at += count
        return self._data[self._at - count : self._at]

    def _number(self, form: str, count: int) -> Any:
        return struct.unpack(form, self._take(count))[0]

    # ---- values

    def _push(self, value: Any) -> None:
        self._stack.append(value)
        self._full()

    def _full(self) -> None:
        if len(self._stack) > _STACK_CAP:
            raise StrangeError("too many values at once")

    def _ignore(self, _: bytes) -> None:
        """The length of a frame, which says nothing that the opcodes do not."""

    def _protocol(self, number: int) -> None:
        if number > 5:
            raise StrangeError(f"protocol {number}")

    def _long(self, count: int) -> None:
        if count > 16:
            raise StrangeError("a number of more than 128 bits")
        self._push(int.from_bytes(self._take(count), "little", signed=True))

    def _text(self, count: int) -> None:
        self._text_left -= count + _TEXT_OVERHEAD
        if count > 1 << 20 or self._text_left < 0:
            raise LimitError("more text than is read")
        self._push(self._take(count).decode("utf-8", "replace"))

    def _keep(self, count: int) -> None:
        self._held -= count
        if self._held < 0:
            raise LimitError("more objects than are held")

    # ---- the memo

    def _memoize(self, at: int) -> None:
        memo, value = self._memo, self._stack[-1]
        if not isinstance(value, (str, tuple, _Dict, _List)):
            raise TypeError
        if at == len(memo):
            if at >= self._memo_cap:
                raise LimitError("more objects than are read")
            memo.append(value)
        else:
            memo[at] = value
        if isinstance(value, (_Dict, _List)):
            value.at = at

    def _get(self, at: int) -> Any:
        value = self._memo[at]
        if value is _GONE:
            raise StrangeError("an entry stands in two places")
        return value

    def _gets(self) -> None:
        """A frame list is a run of references, most of what a dump holds: all of a run at once."""
        self._at -= 1
        if len(self._data) - self._at < 5:
            self._fill(5)
        run = _RUN.match(self._data, self._at)
        assert run is not None  # the opcode and its four bytes are there
        memo = self._memo
        values = [memo[at] for (at,) in struct.iter_unpack("<xI", run[0])]
        if any(value is _GONE for value in values):
            raise StrangeError("an entry stands in two places")
        self._stack.extend(values)
        self._full()
        self._left -= len(values) - 1
        self._at = run.end()

    # ---- containers

    def _mark(self) -> None:
        if len(self._marks) >= self._depth:
            raise StrangeError("nested too deep")
        self._marks.append(self._stack)
        self._stack = []

    def _of_mark(self) -> list[Any]:
        values, self._stack = self._stack, self._marks.pop()
        return values

    def _dict(self) -> None:
        value = _Dict()
        value.at = -1
        self._push(value)

    def _list(self) -> None:
        value = _List()
        value.at, value.device = -1, -1
        before = self._stack[-1] if self._stack else self._marks[-1][-1] if self._marks and self._marks[-1] else None
        value.role = _ROLES.get(before, "") if isinstance(before, str) else ""
        if isinstance(before, _List) and before.role in ("devices", "trace") and self._devices < _DEVICES:
            value.role, value.device = "trace", self._devices
            self._devices += 1
        self._push(value)

    def _tuple(self, count: int) -> None:
        values = self._stack[-count:]
        if len(values) < count:
            raise IndexError
        self._stack[-count:] = [self._made(tuple(values))]

    def _tuple_of_mark(self) -> None:
        self._push(self._made(tuple(self._of_mark())))

    def _made(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The tuple, or the equal one that is held: each entry has a pool's id, and there are few pools."""
        if all(type(value) is int for value in values):
            known = self._tuples.get(values)
            if known is not None:
                return known
            if len(self._tuples) < 10_000:
                self._tuples[values] = values
        self._keep(len(values) + 1)
        return values

    def _set_item(self) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        self._set(self._stack[-1], key, value)

    def _set_items(self) -> None:
        values = self._of_mark()
        target = self._stack[-1]
        if len(values) % 2:
            raise IndexError
        for key, value in zip(islice(values, 0, None, 2), islice(values, 1, None, 2), strict=True):
            self._set(target, key, value)

    def _set(self, target: Any, key: Any, value: Any) -> None:
        if not isinstance(target, _Dict) or not isinstance(key, (str, int)):
            raise TypeError
        if key == "frames" and isinstance(value, _List):
            site = self._sums.sites.of(value)
            if value.at >= 0:
                self._memo[value.at] = site
            self._held += len(value)
            value = site
        self._keep(1)
        target[key] = value

    def _append(self) -> None:
        value = self._stack.pop()
        self._add(self._stack[-1], [value])

    def _appends(self) -> None:
        values = self._of_mark()
        self._add(self._stack[-1], values)

    def _add(self, target: Any, values: list[Any]) -> None:
        if not isinstance(target, _List):
            raise TypeError
        if target.role == "trace":
            for value in values:
                self._sums.event(target.device, value)
                self._forget(value)
        elif target.role == "segments":
            for value in values:
                blocks = value.get("blocks") if isinstance(value, _Dict) else None
                self._sums.segment(value, blocks if isinstance(blocks, _List) and blocks.role == "blocks" else ())
                self._held += len(blocks) if isinstance(blocks, _List) else 0
                self._forget(value)
        elif target.role == "blocks":
            self._keep(len(values))
            for value in values:
                target.append(self._sums.block(value))
                self._forget(value)
        elif target.role != "devices":
            self._keep(len(values))
            target.extend(values)

    def _forget(self, value: Any) -> None:
        """An entry that was added up: out of the memo, its objects no longer held."""
        if isinstance(value, _Dict):
            self._held += len(value)
            for inner in value.values():
                if isinstance(inner, (_Dict, _List)) and inner.at >= 0:
                    self._memo[inner.at] = _GONE
        if isinstance(value, (_Dict, _List)) and value.at >= 0:
            self._memo[value.at] = _GONE


# ---- the ingestor

_BEGINS = re.compile(
    MAGIC.pattern + rb"(?:\x95.{8})?\}(?:\x94|q.)?\(?(?:\x8c.|X.\0\0\0)(?:segments|device_traces)(?:\x94|q|\]|\()", re.S
)


def is_binary(head: Head) -> bool:
    """Whether this is a pickle that begins as a snapshot does: its first key is `segments` or `device_traces`."""
    return bool(_BEGINS.match(head.data))


_JSON = re.compile(rb'\s*\{\s*"(?:segments|device_traces)"\s*:\s*\[')


def matches(head: Head) -> bool:
    """A snapshot as a pickle or as JSON."""
    return is_binary(head) or bool(
        _JSON.match(head.data) and re.search(rb'"(?:total_size|blocks|device_traces|action)"\s*:', head.data)
    )


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """Rows of the allocator's tables, added up; one problem for a file that is not plain."""
    rows = Rows()
    drawn = iter(chunks)
    first = next(drawn, None)
    if first is not None:
        feed = chain([first], drawn)
        sums = _from_pickle(rows, feed) if MAGIC.match(first.data) else _from_json(rows, feed)
        sums.tell(rows)
    if not rows.count:
        rows.problem(1, "a memory snapshot without segments or traces", "")
    yield from rows.take()


def _from_pickle(rows: Rows, chunks: Iterable[Chunk]) -> Sums:
    sums = Sums()
    try:
        PlainPickle(chunks, sums).run()
    except StrangeError as problem:
        rows.problem(1, f"not a plain memory snapshot: {problem}; nothing of it was run", "")
        return Sums()
    except LimitError as problem:
        rows.problem(1, f"a memory snapshot with {problem}: what comes before is added up", "")
    except CutError:
        rows.problem(1, "a memory snapshot that is cut: what comes before is added up", "")
    return sums


def _from_json(rows: Rows, chunks: Iterable[Chunk]) -> Sums:
    sums = Sums()
    whole = {("segments", ITEM), ("device_traces", ITEM, ITEM)}
    try:
        for piece in pieces(chunks, lambda path: path in whole):
            if piece.path == ("segments", ITEM) and isinstance(piece.value, dict):
                blocks = piece.value.get("blocks")
                sums.segment(piece.value, map(sums.block, blocks if isinstance(blocks, list) else ()))
            elif piece.path == ("device_traces", ITEM, ITEM) and piece.places[0] < _DEVICES:
                sums.event(piece.places[0], piece.value)
    except BrokenError as problem:
        rows.problem(problem.line, f"a memory snapshot: {problem}", "")
    return sums
