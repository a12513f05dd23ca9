"""Columns of nvidia-smi's CSV queries: told by a header, or by units and values; and their form for the fast reader."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from oomdoc.ingest.nvidia_smi import cells as reads
from oomdoc.ingest.vocabulary import is_irrelevant, meanings
from oomdoc.ingest.vocabulary.quantity import read
from oomdoc.ingest.vocabulary.words import taken_apart
from oomdoc.intake.cells import Field, Memo, is_null
from oomdoc.regexes import regex

_ROLES: Mapping[str, str] = read("names")["columns_of_smi"]
_NAMES = {**{role: name for name, role in [*_ROLES.items()][::-1]}, "process_bytes": "used_gpu_memory"}
_STRONG = {"gpu_util", "memory_util", "used_bytes", "total_bytes", "free", "process_bytes"}
_HEADER_CELL = regex(r"([A-Za-z][\w.]*)(?: ?\[([^\]]*)\])?")
_CELL_KINDS = (
    ("stamp", regex(r"\d{4}[/-]\d\d[/-]\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?")),
    ("memory", regex(r"\d+ ?MiB")),
    ("percent", regex(r"\d+ ?%")),
    ("other", regex(r"\d+(?:\.\d+)? ?(?:W|MHz|C)|\d+\.\d+|0x[0-9a-fA-F]+|P\d\d?|Enabled|Disabled|Active|Not Active")),
    ("whole", regex(r"\d+")),
    ("uuid", regex(r"(?:GPU|MIG)-[0-9a-fA-F-]{8,}(?:/\d+)*")),
    ("bus", regex(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d")),
)
_ASKED = regex(r"\bnvidia-smi\b[^|;]*?--query-(?:gpu|compute-apps)[= ]([\w.,]+)")
_PRODUCT = regex(r"NVIDIA|Tesla|GeForce|Quadro|GRID|RTX|GTX")


@dataclass(frozen=True)
class Sheet:
    """The columns of a CSV query: the role of each cell ("" = of no use here), and its header, if it has one."""

    roles: tuple[str, ...]
    header: str = ""
    kinds: tuple[str, ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the header, as printed."""
        return tuple(name.strip() for name in self.header.split(",")) if self.header else ()

    @cached_property
    def unknown(self) -> tuple[str, ...]:
        """Columns that are neither used nor known to be of no use here."""
        return tuple(
            name for name, role in zip(self.names, self.roles, strict=False) if not role and not is_irrelevant(name)
        )

    @cached_property
    def is_own(self) -> bool:
        """Whether the header can be nvidia-smi's: sizes in its unit, and no quantity under a name that it does not use."""
        for name, role in zip(self.names, self.roles, strict=False):
            unit = taken_apart(name).unit
            if (role and unit not in ("", "MiB", "MB", "%")) or (not role and meanings(name)):
                return False
        return True

    @cached_property
    def of_processes(self) -> bool:
        """Rows are processes, not devices."""
        return "pid" in self.roles

    @cached_property
    def measures(self) -> bool:
        """Rows hold memory or utilization of a device."""
        return bool(_STRONG & set(self.roles)) and not self.of_processes

    @cached_property
    def used(self) -> tuple[tuple[int, str, Callable[[str], Any]], ...]:
        """Place, role and reader of the cells that matter."""
        return tuple((at, role, READ[role]) for at, role in enumerate(self.roles) if role in READ)

    def allows(self, kinds: Sequence[str]) -> bool:
        """Whether cells of these kinds can be a row of these columns, which were told by their kinds."""
        return all(kinds[at] in ("", self.kinds[at]) for at, role, _ in self.used if role in FAST)


def shown(role: str) -> str:
    """What nvidia-smi calls a column of this role."""
    return _NAMES.get(role, role)


def header(text: str) -> Sheet | None:
    """The columns that a header names; None for a line that is no header of a query."""
    names = []
    for cell in text.split(","):
        match = _HEADER_CELL.fullmatch(cell.strip())
        if not match:
            return None
        names.append(re.sub(r"\.(?:mib|mb)$", "", match[1].lower().replace("_", ".")))
    roles = [_ROLES.get(name, "") for name in names]
    if "pid" in roles:  # in a list of processes `name` is theirs
        roles = ["process" if name == "name" else role for name, role in zip(names, roles, strict=True)]
    known = set(roles) - {""}
    strong = known & _STRONG or {"gpu", "name"} <= known or {"name", "uuid"} <= known or {"pid", "process"} <= known
    twice = any(roles.count(role) > 1 for role in known)
    return Sheet(tuple(roles), text.strip()) if strong and len(names) > 1 and not twice else None


def asked(text: str) -> Sheet | None:
    """The columns of a query without header, which the command above its rows asked for; None where none names its devices or moments.

    >>> asked("# nvidia-smi --query-gpu=timestamp,index,memory.used,memory.total --format=csv,noheader -l 5").roles
    ('t', 'gpu', 'used_bytes', 'total_bytes')
    >>> asked("# every hour: nvidia-smi --query-gpu=timestamp,memory.used --format=csv,noheader").roles  # of the one card
    ('t', 'used_bytes')
    """
    found = _ASKED.search(text) if "noheader" in text else None
    sheet = header(found[1]) if found else None
    return sheet if sheet and (sheet.of_processes or {"gpu", "uuid", "bus", "t"} & set(sheet.roles)) else None


@lru_cache(maxsize=4096)
def kind_of(cell: str) -> str:
    """What a cell looks like: stamp, memory, percent, whole, ..., or "" where it is a NULL."""
    if reads.null(cell) or (cell[:1] == "[" and cell[-1:] == "]"):
        return ""
    return next((name for name, pattern in _CELL_KINDS if pattern.fullmatch(cell)), "text")


def infer(rows: Sequence[Sequence[str]]) -> tuple[Sheet | None, str]:
    """The columns of rows without header, and what could not be told ("" = everything could)."""
    kinds = []
    for column in zip(*rows, strict=True):
        found = {kind for kind in map(kind_of, column) if kind}
        kinds.append(found.pop() if len(found) == 1 else "text" if found else "")
    roles = [{"stamp": "t", "uuid": "uuid", "bus": "bus"}.get(kind, "") for kind in kinds]
    wholes = [at for at, kind in enumerate(kinds) if kind == "whole"]
    percents = [at for at, kind in enumerate(kinds) if kind == "percent"]
    memories = [at for at, kind in enumerate(kinds) if kind == "memory"]
    texts = [at for at, kind in enumerate(kinds) if kind == "text"]
    if not memories:
        return None, "columns cannot be told without header and units"
    if any(roles.count(role) > 1 for role in ("t", "uuid", "bus")):
        return None, "columns cannot be told: two of one kind"
    names = [row[texts[0]] for row in rows] if texts else []
    products = bool(names) and all(_PRODUCT.search(name) for name in names)
    if wholes and texts and len(memories) == 1 and not percents and not products:
        roles[wholes[0]], roles[texts[0]], roles[memories[0]] = "pid", "process", "process_bytes"
        return Sheet(tuple(roles), "", tuple(kinds)), ""
    if wholes and all(int(row[wholes[0]]) < 128 for row in rows if row[wholes[0]].isdigit()):
        roles[wholes[0]] = "gpu"
    if products:
        roles[texts[0]] = "name"
    for at, role in zip(percents, ("gpu_util", "memory_util"), strict=False):
        roles[at] = role if len(percents) <= 2 else ""
    sizes = [[size if (size := _size(row[at])) is not None else 0 for row in rows] for at in memories]
    if len(memories) == 1:
        if len(set(sizes[0])) == 1:
            return None, "one size without header: used or total memory?"
        roles[memories[0]] = "used_bytes"
    else:
        largest = [at for at, size in zip(memories, sizes, strict=True) if all(a <= b for other in sizes for a, b in zip(other, size, strict=True))]  # fmt: skip
        if not largest:
            return None, "columns cannot be told: no size is the largest in every row"
        total = largest[-1]
        roles[total] = "total_bytes"
        if len(memories) > 2:
            return Sheet(tuple(roles), "", tuple(kinds)), "used and free memory cannot be told apart without header"
        roles[next(at for at in memories if at != total)] = "used_bytes"
    return Sheet(tuple(roles), "", tuple(kinds)), ""


def _size(text: str) -> int | None:
    try:
        return reads.memory(text)
    except reads.UnreadableError:
        return None


READ: Mapping[str, Callable[[str], Any]] = {
    "t": reads.stamp_of, "gpu": reads.index, "name": reads.name_of, "uuid": reads.name_of, "bus": reads.name_of, "gpu_util": reads.share, "memory_util": reads.share,
    "used_bytes": reads.memory, "total_bytes": reads.memory, "free": reads.memory, "reserved": reads.memory, "clock": reads.clock, "hot": reads.clock, "pid": reads.whole, "process": str, "process_bytes": reads.memory,
}  # fmt: skip
FAST = {"t", "gpu", "gpu_util", "memory_util", "used_bytes", "total_bytes"}
IDENTITY = Memo(lambda text: None if is_null(text.strip()) else text.strip().decode("utf-8", "replace"))
_FAST_STAMP = regex(rb"\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d(?:[.,](\d{1,9}))?")
_FAST_CELL = regex(rb"(\s*)\d+( MiB| %|)")


def beyond(name: str, column: Any) -> bool:
    """Whether a column holds numbers that no device has: those rows are problems, told by the plain reader."""
    cap = reads.INDEX_CAP - 1 if name == "gpu" else reads.MIB_CAP if name.endswith("_bytes") else 100
    return name not in ("t", "identity") and len(column) > 0 and bool(column.max() > cap)


def fast_field(role: str, at: int, cells: Sequence[bytes], ending: bytes, bare: bool) -> Field | None:
    """A template's field for a column, as its first cells show it; None where they have a form of another kind.

    Columns that were told by their units (`bare`) have to keep them.
    """
    texts = [cell[: len(cell) - len(ending)] for cell in cells if cell.endswith(ending)]
    if not texts:
        return None
    lead = texts[0][: len(texts[0]) - len(texts[0].lstrip())]
    if role == "identity":
        return Field("text", role, at, at, lead, ending, decode=IDENTITY)
    if role == "t":
        match = _FAST_STAMP.fullmatch(texts[0], len(lead))
        return Field("stamp", "t", at, at, lead, ending, len(match[1] or b"")) if match else None
    for text in texts:
        match = _FAST_CELL.fullmatch(text)
        if match:
            unit = b" MiB" if role.endswith("_bytes") else b" %" if role.endswith("_util") else b""
            if match[2] != unit and (match[2] or bare):
                return None
            return Field("integer", role, at, at, match[1], match[2] + ending)
    return Field("integer", role, at, at, lead, ending) if all(is_null(text.strip()) for text in texts) else None
