"""A reading that stops and goes on another day: what it remembers and what it has told, as bytes.

`freeze` writes the attributes of a reading (`base.Reading`) and of everything it holds as JSON, `thaw` makes the reading again:
from there on it does exactly what it would have done. Only classes of the list below are made, without calling them, and
whatever else a reading may hold refuses to be kept: what comes out of a store that others can write to runs no code.
`Told` holds the batches as they were handed out, so that a store is filled in the same order as by reading.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import io
import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MethodType
from typing import Any

from oomdoc.evidence.tables import LOOKALIKE, TABLES, Batch
from oomdoc.ingest import (
    alike,
    base,
    container_stats,
    device_metrics,
    host_memory,
    memory_summary,
    metrics,
    nvidia_smi,
    problems,
    record,
    request_log,
    request_shapes,
    slurm_jobs,
    stacks,
    text_log,
    texts,
    weight_files,
    writers,
)
from oomdoc.ingest.nvidia_smi.sheet import IDENTITY
from oomdoc.intake.cells import CELL_TEXT, Field, Memo
from oomdoc.intake.columns import Template

_LEVEL = 3  # of zstd
_CLASSES: Mapping[str, type] = {
    f"{made.__module__.removeprefix('oomdoc.')}.{made.__name__}": made
    for made in (
        Field, Template, base.Rows, problems.Capped, record.Clock, texts.Texts, texts.Text, writers.Writers, text_log.Reader,
        alike.Alike, host_memory.Listings, stacks.Stacks, container_stats.Stats, slurm_jobs.Jobs, weight_files.WeightFiles, weight_files.Files, *memory_summary.KEPT, metrics.Scrapes, *device_metrics.KEPT, *nvidia_smi.KEPT, *request_log.KEPT,
    )
}  # fmt: skip
_NAMES = {made: name for name, made in _CLASSES.items()}
_METHODS = ("_plain", "_time")  # of those classes, which others hold


class NotKeptError(Exception):
    """A reading holds something that cannot be kept, or what was kept is none of this program's."""


@functools.cache
def _constants() -> Mapping[str, Any]:
    """What readings hold and never change, by name."""
    return {
        "plan": text_log.plan(),
        **{f"pattern {pattern.name}": pattern for pattern in text_log.PATTERNS},
        "cell text": CELL_TEXT,
        "identity": IDENTITY,
        **{f"request {name}": memo for name, memo in request_shapes.TEXTS.items()},
    }


@functools.cache
def _constant_names() -> Mapping[int, str]:
    return {id(value): name for name, value in _constants().items()}


def freeze(reading: base.Reading) -> str:
    """A reading between two chunks as JSON. NotKeptError where it holds what this does not know."""
    return json.dumps(_Freezer().value(reading), ensure_ascii=True, separators=(",", ":"))


def thaw(text: str) -> base.Reading:
    """The reading that `freeze` wrote. NotKeptError where the text is none of that kind."""
    try:
        made: base.Reading = _Thawer().value(json.loads(text))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as problem:
        raise NotKeptError(f"{type(problem).__name__}: {problem}") from None
    if type(made) not in (texts.Texts, metrics.Scrapes, nvidia_smi.Reader, request_log.Reader):
        raise NotKeptError("no reading")
    return made


class _Freezer:
    """Plain values are themselves in JSON; all others a list that begins with their kind. Objects have numbers: two may hold
    the same one, or each other."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def value(self, value: Any) -> Any:
        """What stands for a value."""
        if value is None or type(value) in (bool, int, float, str):
            return value
        if name := _constant_names().get(id(value)):
            return ["constant", name]
        form = _FORMS.get(type(value))
        if form is not None:
            # sets in one order: what is kept is the same bytes whoever read
            return [form, *map(self.value, sorted(value, key=repr) if "set" in form else value)]
        if type(value) is dict:
            return ["dict", *([self.value(key), self.value(entry)] for key, entry in value.items())]
        if type(value) is bytes:
            return ["bytes", base64.b64encode(value).decode()]
        if type(value) is Batch:
            return ["batch", value.table, self.value(dict(value.columns)), value.writer]
        if type(value) is MethodType and value.__name__ in _METHODS:
            return ["method", self.value(value.__self__), value.__name__]
        if type(value) is Memo:
            return ["memo", self.value(value.decode)]
        if type(value) in _NAMES:
            return self._object(value)
        if type(value).__module__.split(".")[0] == "numpy":
            return self._array(value)
        raise NotKeptError(f"a {type(value).__qualname__}")

    def _object(self, value: Any) -> Any:
        number = self._numbers.get(id(value))
        if number is not None:
            return ["same", number]
        self._numbers[id(value)] = number = len(self._numbers)
        attributes = {name: self.value(entry) for name, entry in _attributes(value).items()}
        return ["object", number, _NAMES[type(value)], attributes]

    def _array(self, value: Any) -> Any:
        import numpy as np

        if isinstance(value, np.ma.MaskedArray):
            return ["masked", self._array(np.ma.getdata(value)), self._array(np.ma.getmaskarray(value))]
        if not isinstance(value, np.ndarray) or value.ndim != 1:
            raise NotKeptError(f"a {type(value).__qualname__}")
        if value.dtype == object:
            return ["texts", *map(self.value, value.tolist())]
        return ["array", _type_of(value), base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()]


_FORMS: Mapping[type, str] = {list: "list", tuple: "tuple", set: "set", frozenset: "frozenset"}
_MAKES: Mapping[str, Callable[[Any], Any]] = {form: kind for kind, form in _FORMS.items()}
_TYPES = ("bool", "int32", "int64", "uint8", "uint32", "uint64", "float64")


def _type_of(array: Any) -> str:
    """The name of an array's type, as this machine lays it out."""
    if array.dtype.name not in _TYPES or not array.dtype.isnative:
        raise NotKeptError(f"an array of {array.dtype}")
    return str(array.dtype.name)


def _attributes(value: Any) -> dict[str, Any]:
    """All attributes; of a dataclass its fields, since what is computed from them may lie beside them."""
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return dict(vars(value))


class _Thawer:
    def __init__(self) -> None:
        self._objects: dict[int, Any] = {}

    def value(self, told: Any) -> Any:
        """The value that something stands for."""
        if not isinstance(told, list):
            return told
        kind, *parts = told
        if kind in _MAKES:
            return _MAKES[kind](map(self.value, parts))
        if kind == "dict":
            return {self.value(key): self.value(entry) for key, entry in parts}
        return _THAWS[kind](self, *parts)

    def _object(self, number: int, name: str, attributes: Mapping[str, Any]) -> Any:
        kind = _CLASSES[name]
        made: Any = object.__new__(kind)
        self._objects[number] = made
        for attribute, entry in attributes.items():
            object.__setattr__(made, attribute, self.value(entry))
        return made

    def _masked(self, data: Any, mask: Any) -> Any:
        import numpy as np

        return np.ma.masked_array(self.value(data), mask=self.value(mask))

    def _texts(self, *values: Any) -> Any:
        import numpy as np

        made = np.empty(len(values), object)
        made[:] = [self.value(value) for value in values]
        return made

    def _array(self, name: str, text: str) -> Any:
        import numpy as np

        return np.frombuffer(base64.b64decode(text), _TYPES[_TYPES.index(name)]).copy()


_THAWS: Mapping[str, Callable[..., Any]] = {
    "object": _Thawer._object,
    "same": lambda thawer, number: thawer._objects[number],
    "constant": lambda thawer, name: _constants()[name],
    "bytes": lambda thawer, text: base64.b64decode(text),
    "batch": lambda thawer, table, columns, writer: Batch(table, thawer.value(columns), writer),
    "method": lambda thawer, owner, name: getattr(thawer.value(owner), _METHODS[_METHODS.index(name)]),
    "memo": lambda thawer, decode: Memo(thawer.value(decode)),
    "masked": _Thawer._masked,
    "array": _Thawer._array,
    "texts": _Thawer._texts,
}
"""What each kind is made by; an unknown one is a KeyError."""


# ---- what was told


WORTH = 16
"""Rows that take more than this part of a source are not kept: numbers in columns are read nearly as fast as they are loaded."""


class Told:
    """Batches in the order in which a reading handed them out, packed as they come.

    Each is a line of JSON with what its columns are, and then the bytes of its arrays, those of equal rank in a number side by
    side: neighbours are alike in their high bytes, and pack to a fraction. `size_bytes` is the source's length.
    """

    def __init__(self, size_bytes: int, packed: bytes = b"") -> None:
        self._parts = [packed]
        self._most = size_bytes // WORTH
        self._size = len(packed)
        self._packer: Any = None
        self.whole = True

    def heard(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The same batches, each kept when it has been handed on."""
        for batch in batches:
            yield batch
            self.add(batch)

    def add(self, batch: Batch) -> None:
        """Keep one more; where they have become too many, or cannot be written, none."""
        if not self.whole:
            return
        try:
            self._take(_written(batch))
        except (NotKeptError, TypeError, ValueError):
            self.whole = False
        if self._size > self._most:
            self.whole = False
        if not self.whole:
            self._parts, self._packer = [], None

    def _take(self, pieces: Iterator[bytes]) -> None:
        import zstandard

        if self._packer is None:
            self._packer = zstandard.ZstdCompressor(level=_LEVEL).compressobj()
        for piece in pieces:
            packed = self._packer.compress(piece)
            if packed:
                self._parts.append(packed)
                self._size += len(packed)

    def close(self) -> bytes | None:
        """The packed batches, None where they are not all there; what comes after is not kept."""
        if self.whole and self._packer is not None:
            self._parts.append(self._packer.flush())
        packed = b"".join(self._parts) if self.whole else None
        self.whole, self._parts, self._packer = False, [], None
        return packed


def told(packed: bytes) -> Iterator[Batch]:
    """The batches that were kept. NotKeptError where the bytes are none of that kind."""
    import zstandard

    reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
    try:
        with io.BufferedReader(reader, 1 << 18) as stream:
            while size := stream.read(4):
                yield _read(stream, struct.unpack("<I", size)[0])
    except (zstandard.ZstdError, ValueError, TypeError, KeyError, struct.error) as problem:
        raise NotKeptError(f"{type(problem).__name__}: {problem}") from None


def _written(batch: Batch) -> Iterator[bytes]:
    import numpy as np

    columns: list[Any] = []
    arrays: list[Any] = []
    for name, column in batch.columns.items():
        if isinstance(column, list):
            columns.append([name, "list", column])
        elif column.dtype == object:
            columns.append([name, "objects", column.tolist()])
        else:
            masked = isinstance(column, np.ma.MaskedArray)
            data = np.ma.getdata(column) if masked else column
            columns.append([name, "masked" if masked else "array", _type_of(data)])
            arrays += [data, np.ma.getmaskarray(column)] if masked else [data]
    meta = json.dumps([batch.table, batch.writer, batch.rows, columns], ensure_ascii=True, default=_scalar).encode()
    yield struct.pack("<I", len(meta)) + meta
    for array in arrays:
        data = np.ascontiguousarray(array)
        yield np.ascontiguousarray(data.view(np.uint8).reshape(len(data), -1).T).tobytes()


def _scalar(value: Any) -> Any:
    """A number of numpy's in a list, as Python's."""
    return value.item()


def _read(stream: Any, size: int) -> Batch:
    import numpy as np

    table, writer, rows, columns = json.loads(stream.read(size))
    if table not in TABLES and table != LOOKALIKE:
        raise KeyError(table)

    def array(name: str) -> Any:
        kind = np.dtype(_TYPES[_TYPES.index(name)])
        data = np.frombuffer(stream.read(rows * kind.itemsize), np.uint8).reshape(kind.itemsize, rows)
        return np.ascontiguousarray(data.T).view(kind).reshape(rows)

    made: dict[str, Any] = {}
    for name, form, value in columns:
        if form == "list":
            made[name] = value
        elif form == "objects":
            made[name] = np.empty(rows, object)
            made[name][:] = value
        elif form == "array":
            made[name] = array(value)
        else:
            data = array(value)
            made[name] = np.ma.masked_array(data, mask=array("bool"))
    return Batch(table, made, writer)
