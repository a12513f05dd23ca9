"""Which table the records of a source belong to, and what each of their columns is: by name, by range, by company.

A name alone proves little: `used` and `total` stand in a hundred programs' tables. So a column is taken for a quantity only
if its cells are values that the quantity can have, and a table only if enough of its columns belong together (`ENTITIES`).
Beside columns that are another program's (ZFS, redis, a web server) weak names count for nothing.

One set of records may tell several things, a row of a collector the device and the queue: every entity that has its own
columns is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from oomdoc.ingest.access_log import API
from oomdoc.ingest.forms.cells import UnreadableError, is_number, null, number_of, unit_of, value_of
from oomdoc.ingest.request_owner import conversation_of, names_a_text, names_prompts
from oomdoc.ingest.vocabulary import Match, Quantity, apart, foreign_program, is_irrelevant, meanings, quantities
from oomdoc.regexes import regex

SAMPLE = 64
"""Records that a plan is made from."""
_FIT = 0.7  # of the cells with a value must be values of the quantity; the rest may be damaged
_STRONG, _WEAK = 3, 1
_FOREIGN_COLUMNS = 2  # one shared name may be chance
_TIME = "time"
_TENANT = "request.tenant"
_ELAPSED = "elapsed"
"""A time since a beginning that nobody states: it orders a table as a time does, and fills no column."""

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Entity:
    """What a record can tell of: the quantities it is made of, sets of which one must be there, the points it needs.

    A strong name gives three points, a weak one gives one. `marked` asks for a sign that it is about a device.
    """

    table: str
    prefixes: tuple[str, ...]
    cores: tuple[frozenset[str], ...]
    least: int
    marked: bool = False


def _cores(*texts: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(text.split()) for text in texts)


OF_HOST = ("gpu.host", "gpu.pod")
"""Whose the devices are: no sign that a table is about any."""
ENTITIES: tuple[Entity, ...] = (
    Entity("gpu_process", ("process.pid", "process.name", "process.type", "process.gpu_used", "gpu.index", "gpu.uuid", "gpu.bus", *OF_HOST), _cores("process.gpu_used process.pid", "process.gpu_used process.name"), 4, marked=True),
    Entity("gpu_sample", ("gpu.",), _cores("gpu.used", "gpu.free gpu.total", "gpu.share gpu.total", "gpu.util", "gpu.name gpu.total", "gpu.name gpu.uuid", "gpu.name gpu.index",
            "gpu.index gpu.total"), 3, marked=True),
    Entity("request", ("request.",), _cores("request.input request.output", "request.input request.cached", "request.input request.ttft", "request.input request.latency", "request.output request.latency", "request.input request.status", "request.input request.limit", "request.output request.status", "request.cached request.ttft", "request.cached request.status", "request.upstream request.status time", "request.latency request.status time"), 3),
    Entity("metric", ("metric.", "stat.replica"), (), 3),
    Entity("engine_stat", ("stat.",), _cores("stat.kv_used", "stat.blocks_used stat.blocks_total", "stat.blocks_used stat.blocks_free", "stat.running stat.waiting", "stat.waiting time", "stat.running time", "stat.hit_rate", "stat.preemptions", "stat.prompt_rate", "stat.generation_rate"), 4),
    Entity("engine_figure", ("figure.",), (), 6),
    Entity("process_memory", ("process.resident", "process.name", "process.pid", "process.state"), _cores("process.resident process.name", "process.resident process.state", "process.resident time", "process.resident process.pid"), 4),
    Entity("cluster_event", ("event.",), _cores("event.reason event.message event.object", "event.reason event.message event.type"), 3),
    Entity("container", ("life.",), _cores("life.end life.code", "life.lasted life.code", "life.id life.image", "life.restarts life.code", "life.restarts life.limit"), 3),
    Entity("scaler", ("scaler.",), _cores("scaler.replicas time", "scaler.replicas scaler.desired", "scaler.replicas scaler.maximum", "scaler.minimum scaler.maximum", "scaler.metric scaler.threshold"), 4),
    Entity("allocator_segment", ("segment.",), _cores("segment.gap segment.inactive", "segment.gap segment.total segment.active"), 5),
    Entity("allocator_stat", ("allocator.",), _cores("allocator.reserved allocator.split", "allocator.reserved allocator.retries", "allocator.reserved allocator.allocated"), 4),
    Entity("note", ("host.size", "host.cpu_periods", "host.cpu_throttled", "host.tasks", "host.tasks_limit"), _cores("host.size", "host.cpu_periods host.cpu_throttled", "host.tasks host.tasks_limit"), 3),
    Entity("note", ("fs.",), _cores("fs.mount fs.size fs.used", "fs.mount fs.size fs.free"), 4),
    Entity("host_event", ("host.group_kills",), (), 3),
)  # fmt: skip


@dataclass(frozen=True)
class Taken:
    """A column that is taken for a quantity: in which unit, of which device where its name says so, as which statistic (`told`)."""

    name: str
    quantity: Quantity
    unit: str
    strong: bool
    named_unit: str = ""
    device: int | None = None
    told: str = ""


@dataclass(frozen=True)
class Part:
    """What records tell of one entity."""

    entity: Entity
    columns: tuple[Taken, ...]
    points: int


LISTED = "a list"
"""Among the tables of a plan: its rows are the containers that there are, and nothing that somebody tried."""


@dataclass(frozen=True)
class Plan:
    """How records are read: their parts, the columns that nobody understood, and those that are another statistic of one that is read."""

    parts: tuple[Part, ...]
    unknown: tuple[str, ...]
    beside: tuple[tuple[str, Quantity], ...] = ()

    @property
    def tables(self) -> frozenset[str]:
        """The tables that are filled, and `LISTED`."""
        listed = any(taken.quantity.id == "life.id" for part in self.parts for taken in part.columns)
        return frozenset((*(part.entity.table for part in self.parts), *((LISTED,) if listed else ())))


def looks_like_card(text: str) -> bool:
    """Whether a name is that of a device and of no process.

    >>> looks_like_card("NVIDIA H100 80GB HBM3"), looks_like_card("/usr/bin/python3 -m vllm --gpu H100")
    (True, False)
    """
    return "/" not in text and "::" not in text and " -" not in text and bool(_product().search(text))


@cache
def _product() -> re.Pattern[str]:
    return regex(next(one.pattern for one in quantities() if one.id == "gpu.name"))


def plan_for(records: Sequence[Values], context: str = "", inherited: frozenset[str] = frozenset()) -> Plan | None:
    """How these records are read; None where they are no table of ours.

    `context` are the names above them in a document, `inherited` what they have from there: it completes a record and makes
    none, or a device with three processes would be three samples.
    """
    names: dict[str, list[Any]] = {}
    for record in records[:SAMPLE]:
        for name, value in record.items():
            names.setdefault(name, []).append(value)
    foreign: dict[str, int] = {}
    for name in names:
        if program := foreign_program(name):
            foreign[program] = foreign.get(program, 0) + 1
    strange = any(count >= _FOREIGN_COLUMNS for count in foreign.values()) and not any(map(_are_calls, names.values()))
    fits: dict[str, list[tuple[Match, str]]] = {name: _fitting(name, values, strange) for name, values in names.items()}
    if not any(fits.values()):
        return None
    marked = "gpu" in apart(context.replace(".", " ")).words if context else False
    parts: list[Part] = []
    used: set[str] = set()
    for _ in range(len(ENTITIES)):
        best: Part | None = None
        for entity in ENTITIES:
            if any(entity is part.entity for part in parts):
                continue
            part = _part(entity, fits, used, names, marked, inherited, bool(parts) and not entity.marked)
            if part is not None and all(_shared(c.quantity) or c.name in inherited for c in part.columns):
                continue
            if part is not None and (best is None or part.points > best.points):
                best = part
        if best is None:
            break
        parts.append(best)
        used |= {taken.name for taken in best.columns if not _shared(taken.quantity)}
    parts = [part for part in parts if part.entity.table != "request" or not (_are_sums(part, names) or _of_any_server(part, names))]  # fmt: skip
    if not parts:
        return None
    parts = [_with_conversation(part, tuple(names)) for part in parts]
    read = {taken.name for part in parts for taken in part.columns}
    parts = [_with_prompt(part, [name for name in names if name not in read], records[:SAMPLE]) for part in parts]
    known = {taken.name: taken.quantity.id for part in parts for taken in part.columns}
    beside = {name: match.quantity for name in names if name not in known for match, _ in fits[name] if match.told and match.quantity.id in known.values()}  # fmt: skip
    unknown = tuple(
        name
        for name, values in names.items()
        if name not in known
        and name not in beside
        and name not in inherited
        and not is_irrelevant(name)
        and _are_numbers(values)
    )
    return Plan(tuple(parts), unknown, tuple(beside.items()))


_COUNTED = regex(r"(?:^|[_\W])(?:requests|reqs|completed|succeeded|successful|calls|answered)(?:$|[_\W])", re.I)
"""A column that counts requests; `request` and `req_no` number them."""
_LOOKUPS = regex(r"(?:^|[_\W])(?:queries|lookups)(?:$|[_\W])", re.I)
"""What a cache counts over all who ask; a prompt is one query."""
_WINDOW = regex(r"(?:^|[_\W])(?:window|bucket|interval|period)[_\W]?(?:start|begin|from|end|to|stop)(?:$|[_\W])", re.I)
_NOT_A_COUNT = frozenset(("s", "sec", "second", "min", "per", "rate", "rps", "failed", "waiting", "running", "queued", "id", "max", "index", "size", "token", "byte", "ms", "tool", "function"))  # fmt: skip
_NO_PROMPT = 1_200_000
"""Tokens: no context is longer than a million and what it is rounded up to, so more were those of several prompts."""


def _are_sums(part: Part, names: Mapping[str, list[Any]]) -> bool:
    """Whether rows that have the columns of a request are sums over many: they count them, or have more tokens than any prompt can."""
    size = next((column.name for column in part.columns if column.quantity.id == "request.input"), None)
    return size is not None and are_sums(names, size, {column.name for column in part.columns})


def are_sums(names: Mapping[str, Sequence[Any]], size: str, taken: Collection[str] = ()) -> bool:
    """The same of columns by their names, of which `size` holds the tokens of prompts: also where each row has a begin and an end of its window."""
    if _LOOKUPS.search(size) or _mostly(names[size], lambda number: number > _NO_PROMPT):
        return True
    if sum(bool(_WINDOW.search(name)) for name in names) > 1:
        return True
    return any(
        _COUNTED.search(name) and not _NOT_A_COUNT & set(apart(name).words)
        and _mostly(values, lambda number: number > 1 and number == int(number))
        for name, values in names.items() if name not in taken
    )  # fmt: skip


_OF_A_MODEL = frozenset(f"request.{name}" for name in ("input", "output", "cached", "ttft", "limit", "upstream"))


def _of_any_server(part: Part, names: Mapping[str, list[Any]]) -> bool:
    """Whether rows tell status and duration alone, the status as a number: any server has such a log. Who calls a model and writes
    `timeout` beside its numbers keeps a sheet of his own; a proxy names the path that was called."""
    if any(column.quantity.id in _OF_A_MODEL for column in part.columns) or any(map(_are_calls, names.values())):
        return False
    statuses = [
        value for column in part.columns if column.quantity.id == "request.status" for value in names[column.name]
    ]
    return all(null(value) or is_number(value) for value in statuses)


def _are_calls(values: Sequence[Any]) -> bool:
    """Whether a column holds paths of an API that serves models."""
    paths = [value for value in values if isinstance(value, str) and "/" in value]
    return 2 * sum(bool(API.search(path)) for path in paths) > max(len(values), 1)


def _mostly(values: Sequence[Any], holds: Callable[[float], bool]) -> bool:
    numbers = [number_of(value)[0] for value in values if is_number(value)]
    return len(numbers) > 1 and 2 * sum(map(holds, numbers)) > len(numbers)


def _with_conversation(part: Part, names: Sequence[str]) -> Part:
    """Requests whose turns are numbered are the conversation's whose id stands beside them."""
    if part.entity.table != "request" or any(taken.quantity.id == _TENANT for taken in part.columns):
        return part
    name = conversation_of(names)
    if name is None or any(taken.name == name for taken in part.columns):
        return part
    whose = next(quantity for quantity in quantities() if quantity.id == _TENANT)
    return replace(part, columns=(*part.columns, Taken(name, whose, "", True)))


def _with_prompt(part: Part, names: Sequence[str], records: Sequence[Values]) -> Part:
    """Requests that were sent again and again, whose prompt is by the column that names it, whatever that is called.

    Such a column has values that come again, each with one length of prompt, and another value has another length.
    """
    taken = {column.quantity.id: column for column in part.columns}
    if part.entity.table != "request" or _TENANT in taken or not {"request.input", "request.cached"} <= taken.keys():
        return part
    size = taken["request.input"].name
    cells = {
        name: _filled(records, name, size) for name in names if not any(column.name == name for column in part.columns)
    }
    found = [
        name for name, told in cells.items() if names_prompts(told) or names_a_text(name, [value for value, _ in told])
    ]
    if not found:
        return part
    # beside a name stands what follows from it, such as its length in letters
    name = next((name for name in found if not _are_numbers([record.get(name) for record in records])), found[0])
    whose = next(quantity for quantity in quantities() if quantity.id == _TENANT)
    return replace(part, columns=(*part.columns, Taken(name, whose, "", True)))


def _filled(records: Sequence[Values], name: str, size: str) -> list[tuple[str, str]]:
    cells = [(record.get(name), record.get(size)) for record in records]
    return [(str(value), str(length)) for value, length in cells if not null(value) and not null(length)]


def _are_numbers(values: Sequence[Any]) -> bool:
    """Whether a column may hold a quantity at all: names and comments do not."""
    filled = [value for value in values if not null(value)]
    return 2 * sum(is_number(value) for value in filled) > len(filled)


def _shared(quantity: Quantity) -> bool:
    """Whether several parts may have a column of this: when, which device, which server."""
    return quantity.id in (_TIME, _ELAPSED, "gpu.index", "gpu.uuid", "gpu.bus", "stat.replica", *OF_HOST)


def _fitting(name: str, values: Sequence[Any], strange: bool) -> list[tuple[Match, str]]:
    """The quantities that a column can be, by its name and its cells, with the unit of the cells."""
    found = []
    for match in meanings(name):
        if strange and not match.strong and not match.quantity.id.startswith("fs."):
            continue
        quantity = match.quantity
        if quantity.id in ("stat.replica", "request.replica", "gpu.index") and _PLURAL.search(name) and all(is_number(value) for value in values if not null(value)):  # fmt: skip
            continue  # `replicas: 2` and `gpus: 4` count them and name none
        if _OF_THE_HOST.match(name) and quantity.id.startswith("gpu."):
            continue  # beside columns of devices they are the host's all the same
        if quantity.id == "scaler.threshold" and "current" in name.split("."):
            continue  # what a scaler sees is no threshold
        unit = unit_of(quantity, match.unit, values)
        if unit == "%" and name.lower().endswith("_perc") and _are_shares(values):
            unit = "1"  # the engine's own names end so and are shares of one
        if (
            quantity.needs_unit
            and not match.unit
            and not any(
                isinstance(value, str) and (_TIMED.search(value) if quantity.kind == "seconds" else "%" in value)
                for value in values
            )
        ):
            continue
        if _fits(quantity, values, unit, match.strong):
            found.append((match, unit))
    return found


_TIMED = regex(r"\d ?(?:[mun]?s|sec|min)\s*$")
_PLURAL = regex(r"s\W*$", re.I)
_OF_THE_HOST = regex(r"Mem(?:Free|Avail(?:able)?)\b|mem(?:ory)?\.(?:current|max|high|peak)$")
"""As `/proc/meminfo` spells what is left, and the files of a memory group."""


def _are_shares(values: Sequence[Any]) -> bool:
    numbers = [number_of(value)[0] for value in values if is_number(value)]
    return bool(numbers) and max(numbers) <= 1 and any(number != int(number) for number in numbers)


def _fits(quantity: Quantity, values: Sequence[Any], unit: str, strong: bool) -> bool:
    good = bad = 0
    for value in values:
        if null(value):
            continue
        try:
            value_of(quantity, value, unit)
            card = quantity.id == "process.name" and looks_like_card(str(value))
            good, bad = good + (not card), bad + card
        except UnreadableError:
            bad += 1
    return good >= _FIT * (good + bad) if good + bad else strong


def _part(
    entity: Entity,
    fits: Mapping[str, list[tuple[Match, str]]],
    used: set[str],
    names: Mapping[str, list[Any]],
    marked: bool,
    inherited: frozenset[str],
    company: bool = False,
) -> Part | None:
    wanted: list[tuple[tuple[bool, bool, int, int], str, Match, str]] = []
    for place, (name, matches) in enumerate(fits.items()):
        if name in used:
            continue
        for match, unit in matches:
            if match.quantity.id in (_TIME, _ELAPSED) or match.quantity.id.startswith(entity.prefixes):
                first = (name in inherited, bool(match.told), -(2 * match.strong + bool(match.unit)), place)
                wanted.append((first, name, match, unit))
    columns: dict[tuple[str, int | str | None], Taken] = {}
    taken_names: set[str] = set()
    for _, name, match, unit in sorted(wanted, key=lambda entry: entry[0]):
        key = (match.quantity.id, (match.bare or name) if entity.table == "metric" and match.quantity.id not in (_TIME, _ELAPSED) else match.device)  # fmt: skip
        if name in taken_names or key in columns:
            continue
        columns[key] = Taken(name, match.quantity, unit, match.strong, match.unit, match.device, match.told)
        taken_names.add(name)
    ids = {quantity for quantity, _ in columns}
    ids |= {_TIME} if _ELAPSED in ids else set()
    if entity.cores and not any(core <= ids for core in entity.cores):
        return None
    own = [taken for taken in columns.values() if taken.quantity.id not in (_TIME, _ELAPSED)]
    points = sum(
        _STRONG if taken.strong else _WEAK
        for taken in own
        if taken.name not in inherited and taken.quantity.id not in OF_HOST
    )
    of_servers = _of_servers(ids, columns, names) + _of_field(ids, names)
    # beside another table of ours a name is the less of a chance
    if not own or points + (_WEAK if _TIME in ids else 0) + of_servers + (company and points > 1) < entity.least:
        return None
    if entity.marked and not marked and not _about_a_device(own):
        return None
    order = list(names)
    ordered = sorted(columns.values(), key=lambda taken: order.index(taken.name))
    return Part(entity, tuple(_one_unit(ordered, names)), points)


_QUEUE_OF_EACH = frozenset(("stat.replica", "stat.running", "stat.waiting"))


def _of_servers(ids: set[str], columns: Mapping[Any, Taken], names: Mapping[str, list[Any]]) -> int:
    """What an identity adds to weak names: `pod, waiting, running` and next to nothing else is the queue of each of several servers."""
    if not ids >= _QUEUE_OF_EACH or len(names) > len(columns) + 1:
        return 0
    who = next(taken.name for taken in columns.values() if taken.quantity.id == "stat.replica")
    return _STRONG if len({str(value) for value in names[who] if not null(value)}) > 1 else 0


_AT_A_TIME = frozenset(("stat.running", "stat.waiting", _TIME))
_FIELD = frozenset(("ttft", "kv", "token", "preempt", "vram", "tpot", "itl"))


def _of_field(ids: set[str], names: Mapping[str, list[Any]]) -> int:
    """What a word of the field in another column adds to weak names: who runs and who waits over time, beside first tokens, is an engine's."""
    return _WEAK if ids >= _AT_A_TIME and any(_FIELD & set(apart(name).words) for name in names) else 0


def _about_a_device(columns: Sequence[Taken]) -> bool:
    """A word for a device in a name, its uuid, bus address or product; or so many of its columns that it is nothing else."""
    ids = {taken.quantity.id for taken in columns}
    if ids & {"gpu.uuid", "gpu.bus", "gpu.name"}:
        return True
    if any("gpu" in apart(taken.name).words or (taken.strong and ":" not in taken.quantity.column[:1]) for taken in columns if taken.quantity.id.startswith(("gpu.", "process.gpu"))):  # fmt: skip
        return True
    if {"gpu.used", "gpu.util", "gpu.clock"} <= ids and ids & {"gpu.hot", "gpu.reasons"}:
        return True  # nothing else has memory, a clock and a heat of its own
    return {"gpu.index", "gpu.used"} <= ids and bool(ids & {"gpu.total", "gpu.util", "gpu.free"})


def _one_unit(among: Iterable[Taken], names: Mapping[str, list[Any]]) -> list[Taken]:
    """Sizes without a unit stand in one unit in all columns of a table: 4 in use of 81559 are MiB both."""
    columns: list[Taken] = list(among)
    bare = [taken for taken in columns if taken.quantity.kind == "bytes" and not taken.named_unit]
    if len(bare) < 2:
        return columns
    unit = unit_of(bare[0].quantity, "", [value for taken in bare for value in names[taken.name]])
    return [replace(taken, unit=unit, named_unit="") if taken in bare else taken for taken in columns]
