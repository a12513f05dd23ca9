"""What a snapshot of torch's allocator holds, added up: segments, live blocks by call site, the events of its trace that matter.

Whoever reads a snapshot hands over its blocks, segments and trace entries one by one, as plain values; none is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from oomdoc.ingest.base import Rows

DEVICES = 64  # of one process
_SITES = 100  # call sites of a device that are told one by one
_SITES_HELD = 10_000
_STACK_FRAMES = 24  # enough to reach from a kernel's caller to the step of the engine
_OOMS = 20  # last failures of a device that are told
_SIZE_CAP = 1 << 50
_STATES = ("active_allocated", "active_awaiting_free", "active_pending_free", "inactive")
_SUMS = 200_000  # call sites of all devices and states
_YEARS_US = (6.3e14, 7.3e15)


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
        device = device if isinstance(device, int) and 0 <= device < DEVICES else -1
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
