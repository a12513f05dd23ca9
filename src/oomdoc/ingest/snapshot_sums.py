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
_SUMS = 200_000  # call sites of all devices and pools
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

    total: int = 0
    allocated: int = 0
    inactive: int = 0
    split: int = 0
    largest_free: int = 0


@dataclass
class _Failure:
    """A failure of the trace, with what the trace had counted by then."""

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
    ooms: int = 0
    failures: list[_Failure] = field(default_factory=list)


class Sums:
    """Segments, blocks and trace entries, each added up as it comes."""

    def __init__(self) -> None:
        self.sites = _Sites()
        self.pools: dict[tuple[int, str], _Pool] = {}
        self.blocks: dict[tuple[int, str], dict[Site, list[int]]] = {}
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
        whose = device, "private" if isinstance(pool_id, (tuple, list)) and any(pool_id) else "default"
        pool = self.pools.setdefault(whose, _Pool())
        sites = self.blocks.setdefault(whose, {})
        pool.total += _size(segment.get("total_size")) or 0
        free = [0]
        live = 0
        for size, state, site in blocks:
            if state == "inactive":
                free.append(size)
                continue
            live += 1
            pool.allocated += size if state == "active_allocated" else 0
            sums = sites.get(site)
            if sums is None:
                if self._summed >= _SUMS:
                    site = self.sites.unknown
                self._summed += 1
                sums = sites.setdefault(site, [0, 0, 0])
            sums[0] += 1
            sums[1] += size
            sums[2] = max(sums[2], size)
        pool.inactive += sum(free)
        pool.largest_free = max(pool.largest_free, *free)
        if (
            live and segment.get("is_expandable") is not True
        ):  # whose holes can be unmapped: torch counts no split bytes of it
            pool.split += sum(free)

    def event(self, device: int, entry: Any) -> None:
        """An entry of the trace of a device."""
        if not isinstance(entry, dict):
            return
        trace = self.traces.setdefault(device, _Trace())
        action, size = entry.get("action"), _size(entry.get("size"))
        trace.entries += 1
        if action == "alloc":
            trace.allocated += size or 0
        elif action == "free_requested":
            trace.allocated -= size or 0
        elif action in ("segment_alloc", "segment_map"):
            trace.reserved += size or 0
        elif action in ("segment_free", "segment_unmap"):
            trace.reserved -= size or 0
        elif action == "oom":
            trace.ooms += 1
            trace.failures = [*trace.failures[1 - _OOMS :], self._failure(trace, size, entry)]

    def _failure(self, trace: _Trace, size: int | None, entry: Mapping[str, Any]) -> _Failure:
        time_us = entry.get("time_us")
        t = time_us / 1e6 if isinstance(time_us, (int, float)) and _YEARS_US[0] <= time_us < _YEARS_US[1] else None
        free = _size(entry.get("device_free"))
        site = self.sites.of(entry.get("frames"))
        return _Failure(trace.entries, t, size, free, trace.allocated, trace.reserved, site)

    # ---- rows

    def tell(self, rows: Rows) -> None:
        """Everything that was added up, as rows; sums that no device can hold are told as one problem instead."""
        sizes = [pool.total + pool.allocated + pool.inactive for pool in self.pools.values()]
        for trace in self.traces.values():
            sizes += [abs(one.allocated) + abs(one.reserved) for one in trace.failures]
            sizes.append(abs(trace.allocated) + abs(trace.reserved))
        if sum(sizes) >= _SIZE_CAP * 16:
            rows.problem(1, "a memory snapshot of sizes that no device has", "")
            return
        for (device, pool), sums in sorted(self.pools.items()):
            rows.add(
                "allocator_segment", 1, device=_known(device), pool=pool, total_bytes=sums.total,
                allocated_bytes=sums.allocated, inactive_bytes=sums.inactive, largest_free_bytes=sums.largest_free,
            )  # fmt: skip
        for (_, pool), sites in sorted(self.blocks.items()):
            ranked = sorted(sites.items(), key=lambda entry: (-entry[1][1], entry[0].frames or ""))
            for site, (count, size, largest) in ranked[:_SITES]:
                rows.add(
                    "allocator_block", 1, pool=pool, site=site.name, blocks=count, bytes=size, largest_bytes=largest
                )
        for device in sorted({key[0] for key in self.pools} | set(self.traces)):
            self._tell_device(rows, device)

    def _tell_device(self, rows: Rows, device: int) -> None:
        pools = {key[1]: sums for key, sums in self.pools.items() if key[0] == device}
        trace = self.traces.get(device, _Trace())
        stat = {
            "allocated_bytes": sum(sums.allocated for sums in pools.values()),
            "reserved_bytes": sum(sums.total for sums in pools.values()),
            "inactive_split_bytes": sum(sums.split for sums in pools.values()),
        }
        if device in self.traces:
            stat["num_ooms"] = trace.ooms
        for metric, value in stat.items() if pools else ():
            rows.add("allocator_stat", 1, device=_known(device), summary=1, metric=metric, current=value)
        for failure in trace.failures:
            gap = pools.get("default", _Pool()).largest_free if pools and _is_last(failure, trace) else None
            rows.add(
                "allocator_trace", 1, device=_known(device), nth=failure.nth, bytes=failure.size, largest_free_bytes=gap
            )
        if trace.failures:
            self._tell_failure(rows, device, trace, pools)

    def _tell_failure(self, rows: Rows, device: int, trace: _Trace, pools: Mapping[str, _Pool]) -> None:
        """The last failure as the allocator's own message would tell it; the holes only where nothing changed since."""
        failure = trace.failures[-1]
        told: dict[str, int] = {}
        if pools and _is_last(failure, trace):
            private = pools.get("private", _Pool()).inactive
            allocated = sum(sums.allocated for sums in pools.values()) + private
            reserved = sum(sums.total for sums in pools.values())
            told = {
                "allocated_bytes": allocated,
                "private_pool_bytes": private,
                "unallocated_bytes": reserved - allocated,
            }
        what = f"the trace ends with {trace.ooms} failures" if trace.ooms > 1 else "out of memory"
        asker = f", asked by {failure.site.name}" if failure.site.name else ""
        rows.add(
            "oom", 1, t=failure.t, allocator="torch", device=_known(device), requested_bytes=failure.size,
            free_bytes=failure.free, text=f"memory snapshot: {what}{asker}", **told,
        )  # fmt: skip
        if failure.site.frames:
            for frame in failure.site.frames.split(" < "):
                place, _, function = frame.rpartition(" ")
                rows.add("frame", 1, t=failure.t, function=function, file=place.rpartition(":")[0])


def _is_last(failure: _Failure, trace: _Trace) -> bool:
    """Whether nothing changed after a failure, so that the segments, which are those of the end, are those of that moment."""
    return (failure.allocated, failure.reserved) == (trace.allocated, trace.reserved)


def _known(device: int) -> int | None:
    return device if device >= 0 else None


def _size(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _SIZE_CAP:
        return None
    return value
