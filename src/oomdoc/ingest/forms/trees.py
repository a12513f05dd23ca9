"""Records out of documents: JSON of any layout, YAML, TOML.

A record is a flat mapping of dotted names to scalars. Lists of objects are records, objects in lists of objects inherit what
stands above them; `{"columns": [...], "data": [[...]]}`, arrays by name (`{"t": [...], "used": [...]}`) and objects by
number (`{"0": {...}, "card1": {...}}`) or under names of hosts or containers are tables too. `{"value": 12, "unit": "MB"}` is one scalar.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from oomdoc.ingest.forms import grammar
from oomdoc.ingest.json_pieces import ITEM, BrokenError, Path, Piece, pieces
from oomdoc.ingest.vocabulary.words import named, taken_apart
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

_NODES_CAP = 500_000  # scalars of one document that are held; a table of them is 20,000 rows of 25 columns
_DEPTH = 24
_WHEN = named("when")
_TYPED = regex(r"(?:u?int(?:32|64)?|double|float|string|bool(?:ean)?)Value")
"""The only name in an object that says of what type its value is: `{"int64Value": "12"}`."""
_SCALAR = frozenset(("value", "unit", "localizedValue"))
_NUMBERED = regex(r"(?:gpu|card|device|cuda|nvidia)?[ _-]?\[?(\d{1,3})\]?", re.I)


class Record(NamedTuple):
    """One flat record: where it stands, what stands above it, its values, and which of them it has from above."""

    line: int
    context: str
    values: dict[str, Any]
    inherited: frozenset[str] = frozenset()


class _Placed(dict[str, Any]):
    """An object that knows in which line the first of its values stands."""

    def __init__(self, line: int) -> None:
        self.line = line


def of_json(chunks: Iterable[Chunk]) -> Iterator[Record]:
    """Records of JSON documents. Raises `json_pieces.BrokenError` where the text stops being JSON."""
    loose = _Loose()
    try:
        for piece in pieces(chunks, _is_entry):
            if piece.path and piece.path[-1] == ITEM and isinstance(piece.value, dict):
                shared = {**loose.shared(piece.path[:-1]), **_owner(piece.path[:-1])}
                yield from exploded(piece.line, _above(piece.path[:-1]), piece.value, shared)
            else:
                yield from loose.add(piece)
            if piece.path == () and isinstance(piece.value, dict):  # a line of JSON lines
                yield from exploded(piece.line, "", piece.value, {})
    except BrokenError:
        yield from loose.close()  # what stands before the break is whole
        raise
    yield from loose.close()


def _is_entry(path: Path) -> bool:
    return path[-1:] == (ITEM,)


def _above(path: Path) -> str:
    return ".".join(step for step in path if step != ITEM)


def _owner(path: Path) -> dict[str, Any]:
    """Whose the devices or processes of a list are, where they stand under the name of a host: `{"gpu-a1": {"gpus": [...]}}`."""
    for at, step in enumerate(path[:-1]):
        above = path[at - 1] if at else ""
        if _OWNER.fullmatch(step) and any(map(str.isdigit, step)) and (not above or _OWNERS.fullmatch(above)) and {"gpu", "process"} & {*taken_apart(path[at + 1]).words}:  # fmt: skip
            return {"host": step}
    return {}


class _Loose:
    """What stands in a document beside lists of objects: scalars by path, arrays by name, rows of arrays."""

    def __init__(self) -> None:
        self._scalars: dict[tuple[str, ...], tuple[int, Any]] = {}
        self._arrays: dict[tuple[str, ...], list[Any]] = {}
        self._lines: dict[tuple[str, ...], int] = {}

    def add(self, piece: Piece) -> Iterator[Record]:
        """A scalar, or an entry of a list that is no object. A key that comes again begins a new document."""
        path = piece.path
        if path[-1:] == (ITEM,):
            found = self._arrays.setdefault(path[:-1], [])
            self._lines.setdefault(path[:-1], piece.line)
            if len(found) < _NODES_CAP:
                found.append(piece.value)
            return
        if isinstance(piece.value, dict):
            return
        if path in self._scalars:
            yield from self.close()
        if len(self._scalars) < _NODES_CAP:
            self._scalars[path] = piece.line, piece.value

    def shared(self, path: Path) -> dict[str, Any]:
        """Scalars beside a list, which hold for all of its entries."""
        found: dict[str, Any] = {}
        for depth in range(len(path)):
            for name, (_, value) in self._scalars.items():
                if name[:-1] == path[:depth]:
                    found[name[-1]] = value
        return found

    def close(self) -> Iterator[Record]:
        """The records that these make."""
        scalars, self._scalars = self._scalars, {}
        arrays, self._arrays = self._arrays, {}
        if scalars:
            tree = _Placed(0)
            for path, (line, value) in scalars.items():
                at = tree
                for step in path[:-1]:
                    at = at.setdefault(step, _Placed(line))
                    if not isinstance(at, _Placed):
                        break
                else:
                    at[path[-1] if path else "value"] = value
            first = min(line for line, _ in scalars.values())
            yield from exploded(first, "", tree, {})
        groups: dict[tuple[str, ...], dict[str, list[Any]]] = {}
        for path, values in arrays.items():
            groups.setdefault(path[:-1], {})[path[-1] if path else ""] = values
        for above, columns in groups.items():
            yield from of_columns(
                min(self._lines[(*above, name)] if name else 1 for name in columns), _above(above), columns
            )
        self._lines = {}


def of_columns(line: int, context: str, columns: Mapping[str, list[Any]]) -> Iterator[Record]:
    """Rows of arrays that stand beside each other, or of a list of names beside a list of rows."""
    header = next((values for values in columns.values() if values and all(isinstance(v, str) for v in values)), None)
    rows = next((values for values in columns.values() if values and all(isinstance(v, list) for v in values)), None)
    if rows is not None:
        if header is None and all(isinstance(name, str) for name in rows[0]):
            header, rows = rows[0], rows[1:]
        for row in rows if header else ():
            if len(row) == len(header or ()):
                yield Record(line, context, {str(name): value for name, value in zip(header or (), row, strict=True) if not isinstance(value, (list, dict))})  # fmt: skip
        return
    by_length: dict[int, dict[str, list[Any]]] = {}
    for name, values in columns.items():
        by_length.setdefault(len(values), {})[name] = values
    for length, together in by_length.items():
        if length < 2 or len(together) < 2:
            continue
        for at in range(length):
            yield Record(line, context, {name: values[at] for name, values in together.items()})


def exploded(line: int, context: str, value: Mapping[str, Any], shared: Mapping[str, Any]) -> Iterator[Record]:
    """The records of an object: itself, or one for each object of the lists in it."""
    source, schema, data = value.get("_source"), value.get("schema"), value.get("data")
    if isinstance(source, dict):  # Elasticsearch: what stands around a document is the index's
        yield from exploded(line, context, source, {})
        return
    if isinstance(schema, dict) and isinstance(data, dict) and isinstance(data.get("values"), list):
        yield from _of_frame(line, context, schema.get("fields"), data["values"])
        return
    if set(value) == _TELEGRAF and isinstance(value["fields"], dict) and isinstance(value["tags"], dict):
        yield Record(line, context, _of_telegraf(value))
        return
    lists: list[tuple[str, list[Any]]] = []
    columns: dict[str, list[Any]] = {}
    flat: dict[str, Any] = dict(shared)
    _flatten(value, "", flat, lists, columns, 0)
    made = False
    for name, entries in [each for each in lists if _TAGS.fullmatch(each[0])]:
        if tags := _tags(entries):
            flat |= {key: cell for key, cell in tags.items() if key not in flat}
            lists.remove((name, entries))
    for name, entries in lists:
        for entry in entries[:_NODES_CAP]:
            if isinstance(entry, dict):
                made = True
                yield from exploded(line, f"{context}.{name}" if context else name, entry, flat)
    points = next((cells for cells in columns.values() if all(isinstance(cell, list) and len(cell) == 2 for cell in cells)), [])  # fmt: skip
    if points and any(isinstance(name, str) for name in flat.values()):  # a series: its moments and values in pairs
        unit = next((entry.get("short_name") for name, entries in lists if name == "unit" for entry in entries[:1] if isinstance(entry, dict)), None)  # fmt: skip
        for t, number in points:
            yield Record(line, context, {**flat, "time": t, "value": number, "unit": unit}, frozenset(shared))
        return
    if len(columns) > 1:
        for record in of_columns(line, context, columns):
            made = True
            yield Record(line, record.context, {**flat, **record.values}, frozenset(flat))
    keyed = _keyed(value) or _named(value)
    if keyed:
        above, entries = keyed
        scalars = {k: v for k, v in flat.items() if not k.startswith(tuple(f"{above}{key}." for key, _ in entries))}
        for key, entry in entries:
            number = _NUMBERED.fullmatch(key)
            own = {"gpu": number[1]} if number else {"host": key, "container": key}
            yield from exploded(getattr(entry, "line", line), f"{context}.{above or ('gpu' if number else '')}".strip("."), entry, {**scalars, **own})  # fmt: skip
    elif flat and (not made or len(flat) > len(shared)):
        yield Record(line, context, flat, frozenset(shared) - frozenset(_flat_names(value, flat)))


_TAGS = regex(r"(?i)(?:.*\.)?(?:tags?|labels?|dim(?:ension)?s?|attributes|metadata_?values)")


def _tags(entries: list[Any]) -> dict[str, Any]:
    """What tags say that stand as a list, each a name and a value: whose a series is.

    >>> _tags([{"Name": "gpu", "Value": "0"}, {"key": "host", "value": {"stringValue": "a-1"}}]), _tags([{"name": "x", "value": 1, "t": 2}])
    ({'gpu': '0', 'host': 'a-1'}, {})
    """
    found: dict[str, Any] = {}
    for entry in entries:
        flat: dict[str, Any] = {}
        _flatten(entry if isinstance(entry, dict) else {}, "", flat, [], {}, 0)
        low = {name.lower(): cell for name, cell in flat.items()}
        name = low.pop("name", None) or low.pop("key", None)
        if name is None or low.keys() != {"value"}:
            return {}
        found[str(name)] = low["value"]
    return found


_TELEGRAF = frozenset(("fields", "name", "tags", "timestamp"))
_ONLY_FIELD = ("gauge", "counter", "value", "untyped")


def _of_telegraf(value: Mapping[str, Any]) -> dict[str, Any]:
    """What Telegraf writes as JSON: a series where it has a single value, else the fields of a measurement."""
    fields, found = value["fields"], {**value["tags"], "time": value["timestamp"]}
    if len(fields) == 1 and (only := next(iter(fields))) in _ONLY_FIELD:
        return {**found, "metric": value["name"], "value": fields[only]}
    return {**found, "measurement": value["name"], **fields}


def _of_frame(line: int, context: str, fields: Any, columns: list[Any]) -> Iterator[Record]:
    """A frame of Grafana: names of columns, and their values as arrays."""
    if not isinstance(fields, list) or not all(isinstance(field, dict) for field in fields):
        return
    names = [str(field.get("name")) for field in fields]
    if len(names) == len(columns) and len(set(names)) == len(names) and all(isinstance(v, list) for v in columns):
        for row in zip(*columns, strict=False):
            yield Record(line, context, {name: cell for name, cell in zip(names, row, strict=True) if not isinstance(cell, (list, dict))})  # fmt: skip


def _flat_names(value: Mapping[str, Any], flat: Mapping[str, Any]) -> Iterator[str]:
    """Names that an object has itself."""
    for name in flat:
        if name in value or name.partition(".")[0] in value:
            yield name


def _keyed(value: Mapping[str, Any]) -> tuple[str, list[tuple[str, dict[str, Any]]]] | None:
    """Objects under numbers or names of devices, here or one level down: `{"gpus": {"0": {...}, "1": {...}}}`."""
    for above, inner in (("", value), *((f"{key}.", entry) for key, entry in value.items() if isinstance(entry, dict))):
        entries = [
            (key, entry) for key, entry in inner.items() if isinstance(entry, dict) and _NUMBERED.fullmatch(str(key))
        ]
        if entries:
            return above, entries
    return None


_OWNER = regex(r"[a-z][a-z\d]*(?:[-.][a-z\d]+)+|[a-z]{2,}\d{1,4}", re.I)
"""What hosts, pods and containers are called where nothing above them says what they are: by words with a dash, or a number behind one."""
_OWNERS = regex(r"(?:hosts?|nodes?|machines?|containers?|pods?|services|instances|replicas)(?:\W|_by_name)*", re.I)


def _named(value: Mapping[str, Any]) -> tuple[str, list[tuple[str, dict[str, Any]]]] | None:
    """Objects with the same names in them, each under the name of a host or a container: `{"gpu-a1": {...}, "gpu-a2": {...}}`.

    >>> [key for key, _ in (_named({"pods": {"chat": {"rss": 1, "limit": 9}, "embed": {"rss": 2, "limit": 9}}}) or ("", []))[1]]
    ['chat', 'embed']
    >>> _named({"before-wake": {"rss": 1, "limit": 9}, "after-wake": {"rss": 2, "limit": 9}}), _named({"gpu": {"used": 1, "total": 2}, "host": {"used": 1, "total": 3}})
    (None, None)
    """
    for above, inner in (("", value), *((f"{key}.", entry) for key, entry in value.items() if isinstance(entry, dict))):
        entries = [(key, entry) for key, entry in inner.items() if isinstance(entry, dict)]
        told = bool(_OWNERS.fullmatch(above))
        names = [key for key, _ in entries if (told or _OWNER.fullmatch(key)) and not _WHEN & set(grammar.pieces(key))]
        if len(names) == len(entries) > 1 and len(set.intersection(*(set(entry) for _, entry in entries))) > 1:
            return above, entries
    return None


def _flatten(
    value: Mapping[str, Any], prefix: str, flat: dict[str, Any], lists: list[tuple[str, list[Any]]], columns: dict[str, list[Any]], depth: int,
) -> None:  # fmt: skip
    for key, entry in value.items():
        name = f"{prefix}{key}"
        if isinstance(entry, dict):
            if len(entry) == 1 and _TYPED.fullmatch(only := next(iter(entry))):
                entry = {"value": entry[only]}
            if set(entry) <= _SCALAR and "value" in entry and not isinstance(entry["value"], (dict, list)):
                unit = entry.get("unit")
                flat[name] = f"{entry['value']} {unit}" if unit and entry["value"] is not None else entry["value"]
            elif depth < _DEPTH and len(flat) < 2000:
                _flatten(entry, name + ".", flat, lists, columns, depth + 1)
        elif isinstance(entry, list):
            if any(isinstance(inner, dict) for inner in entry):
                lists.append((name, entry))
            elif len(entry) > 1:
                columns[name] = entry
        elif len(flat) < 2000:
            flat[name] = entry
