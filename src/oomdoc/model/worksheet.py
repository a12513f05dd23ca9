"""What a capacity worksheet holds: frozen dataclasses, every figure as an interval with its origin, and their JSON form.

Made by `fit`, printed by `report.fit`; neither knows the other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oomdoc.physics.interval import Interval

WORKSHEET_VERSION = "1"


@dataclass(frozen=True)
class Input:
    """One thing the worksheet was made from: `origin` is one of `physics.interval.ORIGINS`, `note` says the rest."""

    name: str
    value: Any
    origin: str
    note: str = ""


@dataclass(frozen=True)
class Part:
    """One part of a rank's memory."""

    name: str
    size_bytes: Interval


@dataclass(frozen=True)
class Start:
    """The engine's start-up check. `starts` None: the intervals leave it open. `check`: the one that refuses or might.

    Checks: `division` (heads and ranks), `positions` (more than the model states), `weights`, `free-memory`, `no-blocks`, `length`, and beyond the engine's own
    `capture` (the graphs logged hardly fit outside the plan). `lacking_bytes` per rank; None where nothing lacks. `chance`: how
    likely it starts, 0 to 1, of the memory's check; None where that says nothing (names and positions decide, or nothing is known).
    """

    starts: bool | None
    check: str | None
    lacking_bytes: Interval | None
    says: str
    chance: float | None = None


@dataclass(frozen=True)
class PoolRow:
    """The block pool of the poorest rank. `tokens` as the engine prints them, `concurrency` in requests of max_model_len.

    `need_blocks` and `need_bytes`: one request of max_model_len, per rank.
    """

    blocks: Interval
    block_tokens: int
    block_bytes: int
    groups: int
    tokens: Interval
    need_blocks: int
    need_bytes: int
    concurrency: Interval


@dataclass(frozen=True)
class Longest:
    """The largest max_model_len that starts: for sure (`lo`) and at best (`hi`); `model_limit` is what the model states."""

    tokens: Interval
    model_limit: int | None


@dataclass(frozen=True)
class AtOnce:
    """How many requests of a size the pool holds at once without preemption."""

    name: str
    input_tokens: int
    output_tokens: int
    requests: Interval

    @property
    def tokens(self) -> int:
        """Context at its end."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True)
class Utilization:
    """gpu_memory_utilization: present, safest (keeps `headroom_bytes` outside the plan), and what max_model_len needs.

    `needed` may be above 1 (not to be had); None where the model's cache cannot be computed. `starts` and `tokens` hold
    at the safest value.
    """

    now: float
    safest: float
    headroom_bytes: Interval
    why: str
    starts: bool | None
    tokens: Interval | None
    needed: Interval | None


@dataclass(frozen=True)
class Alternative:
    """What one change does, everything else left alone. `kind`: `present`, `parallel`, `kv`, `weights`. None is unknown."""

    kind: str
    name: str
    flags: Mapping[str, Any]
    starts: bool | None
    weights_bytes: Interval | None
    kv_bytes_per_token: float | None
    tokens: Interval | None
    longest_tokens: int | None
    says: str


@dataclass(frozen=True)
class Template:
    """Safe parameters for a pool of servers of one kind of traffic."""

    name: str
    says: str
    starts: bool | None
    flags: Mapping[str, Any]


@dataclass(frozen=True)
class Command:
    """What to start: the model, its flags, and what was changed of what was asked (flag -> reason)."""

    model: str
    flags: Mapping[str, Any]
    changed: Mapping[str, str]
    starts: bool | None


@dataclass(frozen=True)
class Worksheet:
    """The whole answer. `kv_bytes_per_token` is per rank; `parts` are those of the fullest rank.

    `ranks` is TP x PP; `device` is empty where only a size is known. `answer` is the verdict in a few words. `utilization`
    is None where the pool is set by hand, for then it sizes nothing.
    """

    model: str
    architecture: str
    device: str
    ranks: int
    inputs: tuple[Input, ...]
    answer: str
    start: Start
    parts: tuple[Part, ...]
    total_bytes: Interval
    kv_bytes_per_token: float | None
    state_bytes_per_request: int | None
    pool: PoolRow | None
    longest: Longest | None
    at_once: tuple[AtOnce, ...]
    utilization: Utilization | None
    alternatives: tuple[Alternative, ...]
    templates: tuple[Template, ...]
    command: Command | None
    doubts: tuple[str, ...]
    worksheet_version: str = WORKSHEET_VERSION

    def to_dict(self) -> dict[str, Any]:
        """The JSON object: intervals as {lo, hi, origin}, sizes in bytes."""
        plain: dict[str, Any] = _plain(self)
        return {"worksheet_version": plain.pop("worksheet_version"), **plain}


@dataclass(frozen=True)
class Cell:
    """One setup of a matrix: `starts` None is open; `tokens` are those of the pool for sure, None where it is not known."""

    gpu: str
    quantization: str
    tensor_parallel_size: int
    starts: bool | None
    tokens: int | None
    says: str


@dataclass(frozen=True)
class Matrix:
    """Which devices, ranks and weight formats start with the flags that were asked, everything else left alone."""

    model: str
    max_model_len: int
    cells: tuple[Cell, ...]

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return {"worksheet_version": WORKSHEET_VERSION, **dataclasses.asdict(self)}


@dataclass(frozen=True)
class Solved:
    """The largest (for parallel sizes: smallest) value of a flag that fits for sure; None where none does.

    `at_best` is the value with every unknown at its kinder end.
    """

    flag: str
    value: float | None
    at_best: float | None
    says: str

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        return {"worksheet_version": WORKSHEET_VERSION, **dataclasses.asdict(self)}


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return int(value) if value.is_integer() else round(value, 6)
    return value
