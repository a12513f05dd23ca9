"""A pickle of plain data, read without unpickling: the two dozen opcodes of dictionaries, lists, tuples, texts and numbers.

`PlainPickle` holds neither the blocks of a snapshot nor its trace: each entry is added up when it is complete and dropped. Any other
opcode ends the reading. Nothing can be called, imported or built: there is no code that could.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from oomdoc.ingest.snapshot_sums import DEVICES, Sums
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

_STACK_CAP = 20_000  # values between two marks; pickle writes lists in batches of 1,000
_TEXT_OVERHEAD = 64  # bytes of an object besides its text


class StrangeError(ValueError):
    """The pickle holds something else than plain data; a part of a sentence."""


class LimitError(ValueError):
    """The pickle holds more than is read; a part of a sentence."""


class CutError(ValueError):
    """The pickle ends before its end."""


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
_RUN = regex(rb"(?:j.{4})+", re.S)


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
            0x6A: self._gets, 0x80: lambda: self._protocol(self._take(1)[0]), 0x95: self._frame,
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

    def _frame(self) -> None:
        self._take(8)  # its length, which says nothing that the opcodes do not

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
        if isinstance(before, _List) and before.role in ("devices", "trace") and self._devices < DEVICES:
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
