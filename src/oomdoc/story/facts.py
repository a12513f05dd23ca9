"""What the story asks the tables beside the report: how far loading came, the container that failed, the size of the vocabulary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from oomdoc.physics import catalogue


class Asks(Protocol):
    """What is needed of a store."""

    filled: Any

    def rows_of(self, sql: str) -> list[dict[str, Any]]:
        """The rows that one SELECT gives."""


@dataclass(frozen=True)
class Furthest:
    """The last step of the start that came furthest: its name, its detail, seconds after that start's first step (None = unknown), and of how many starts."""

    step: str
    text: str | None
    after_s: float | None
    ref: str
    starts: int


@dataclass(frozen=True)
class State:
    """One reading of a process in a state that the reading names."""

    name: str
    state: str
    bytes: int
    ref: str


@dataclass(frozen=True)
class Facts:
    """Figures of the bundle that the report has no place for. Empty is unknown.

    `progress` is `k/n` of the shards that were read by the start in focus, `container` its row where there is one,
    `vocabulary` the tokens that the model knows, `lived_s` how long the steps of each start span, `furthest` the start that came
    furthest, `states` the first and the last reading of a process that grew between two states of the same kind, `visible` the GPUs of
    `CUDA_VISIBLE_DEVICES`, in its order: that of the ranks, `cluster` whether an object of Kubernetes is named, `lost` what a text
    says of lost requests: how many (None = without a number), and where.
    """

    progress: str | None = None
    progress_ref: str | None = None
    container: Mapping[str, Any] = field(default_factory=dict)
    vocabulary: int | None = None
    lived_s: tuple[float, ...] = ()
    ended_by: str | None = None  # what a supervisor said when it ended the server
    ended_ref: str | None = None
    host: str | None = None
    furthest: Furthest | None = None
    states: tuple[State, ...] = ()
    visible: tuple[int, ...] = ()
    cluster: bool = False
    lost: tuple[int | None, str] | None = None
    scaler: Mapping[str, Any] = field(
        default_factory=dict
    )  # what an autoscaler follows and may set (`scaling`, `scaler_course`)
    grew: str | None = None  # host or gpu: whose memory a recorded series shows to grow


def gather(store: Asks, start: str | None, model: str | None) -> Facts:
    """The facts of the start in focus."""
    progress: list[dict[str, Any]] = []
    if start is not None and "milestone" in store.filled:
        progress = store.rows_of(
            "SELECT m.text, m.source || ':' || m.line AS ref FROM milestone m JOIN engine_start s ON s.source = m.source "
            "AND m.line BETWEEN s.first_line AND s.last_line "
            f"WHERE m.name = 'load-progress' AND s.start_id = {_quoted(start)} "
            "ORDER BY try_cast(split_part(m.text, '/', 1) AS INTEGER) DESC NULLS LAST, m.source, m.line LIMIT 1"
        )
    container = (
        store.rows_of(
            "SELECT *, source || ':' || line AS ref FROM container ORDER BY coalesce(reason = 'PodInitializing', false), serves DESC NULLS LAST, restarts DESC NULLS LAST, source, line LIMIT 1"
        )
        if "container" in store.filled
        else []
    )
    lives = store.rows_of(_LIVES) if "milestone" in store.filled else []
    ended: list[dict[str, Any]] = []
    if "cluster_event" in store.filled:
        ended = store.rows_of(
            "SELECT message, source || ':' || line AS ref FROM cluster_event WHERE reason = 'Killing' AND message IS NOT NULL ORDER BY source, line LIMIT 1"
        )
    found = catalogue.find(model) if model else None
    return Facts(
        progress=progress[0]["text"] if progress else None,
        progress_ref=progress[0]["ref"] if progress else None,
        container=container[0] if container else {},
        vocabulary=found.model.vocab_size if found else None,
        lived_s=tuple(row["s"] for row in lives if row["s"]),
        ended_by=ended[0]["message"] if ended else None,
        ended_ref=ended[0]["ref"] if ended else None,
        host=container[0]["node"] if container else None,
        furthest=_furthest(lives),
        states=_states(store),
        visible=_visible(store),
        cluster=_cluster(store),
        lost=_lost(store),
        scaler=_scaler(store),
        grew=_grew(store),
    )


def _cluster(store: Asks) -> bool:
    """Whether an object of Kubernetes is named: a supervisor that plays the kubelet has events and no objects."""
    named = {"container": "pod", "cluster_event": "coalesce(object, namespace)", "scaler": "name", "described": "name"}
    return any(
        store.rows_of(f"SELECT 1 FROM {table} WHERE {name} IS NOT NULL LIMIT 1")
        for table, name in named.items()
        if table in store.filled
    )


def _scaler(store: Asks) -> Mapping[str, Any]:
    if "scaler" not in store.filled:
        return {}
    rows = store.rows_of(
        "SELECT s.made_by, s.workload, s.minimum, s.maximum, s.replicas, s.threshold, s.queue, c.asked, c.exposed, "
        "(SELECT min(name) FROM scaler WHERE kind = 'metric' AND contains(name, c.asked)) AS rule FROM scaling s LEFT JOIN scaler_course c ON true"
    )
    return rows[0] if rows else {}


def _lost(store: Asks) -> tuple[int | None, str] | None:
    """Requests that a text says were lost; of two such texts the one with more."""
    if "note" not in store.filled:
        return None
    rows = store.rows_of(
        "SELECT value, source || ':' || line AS ref FROM note WHERE topic = 'requests-lost' ORDER BY value DESC NULLS LAST, source, line LIMIT 1"
    )
    return (None if rows[0]["value"] is None else int(rows[0]["value"]), rows[0]["ref"]) if rows else None


def _grew(store: Asks) -> str | None:
    """Whose memory grew in the readings of processes; None without any."""
    if "process_memory" not in store.filled:
        return None
    rows = store.rows_of("SELECT resource FROM memory_trend WHERE resource IS NOT NULL")
    return str(rows[0]["resource"]) if rows else None


def _visible(store: Asks) -> tuple[int, ...]:
    """The GPUs that every launch of the bundle names alike, by their numbers; empty where they differ or have other names."""
    if "engine_flag" not in store.filled:
        return ()
    rows = store.rows_of(
        "SELECT DISTINCT value FROM engine_flag WHERE flag = 'CUDA_VISIBLE_DEVICES' AND value IS NOT NULL"
    )
    names = str(rows[0]["value"]).split(",") if len(rows) == 1 else []
    return tuple(int(name) for name in names) if all(name.strip().isdigit() for name in names) else ()


# A start that is ended before it states more than its version is one of its own here, though incidents count it with the next.
_LIVES = """
WITH life AS (
  SELECT e.source, e.first_line, m.line, m.t, m.name, m.text,
         sum(CASE WHEN m.name = 'server-version' THEN 1 ELSE 0 END) OVER (PARTITION BY e.source, e.first_line ORDER BY m.line) AS part
  FROM engine_start e JOIN milestone m ON m.source = e.source AND m.line BETWEEN e.first_line AND e.last_line)
SELECT max(t) - min(t) AS s, list({'name': name, 'text': text, 't': t, 'ref': source || ':' || line} ORDER BY line) AS steps
FROM life GROUP BY source, first_line, part ORDER BY source, first_line, part"""

STEPS = (
    "server-version", "engine-init", "load-start", "load-progress", "weights-read", "loaded", "profiled", "kv-available", "kv-sized",
    "capture-start", "capture-progress", "captured", "engine-ready", "serving",
)  # fmt: skip
"""Steps of a start, in their order."""


def _furthest(lives: Sequence[Mapping[str, Any]]) -> Furthest | None:
    """The furthest step of all starts; of two starts that came as far, the first."""
    best: tuple[int, Mapping[str, Any], Mapping[str, Any]] | None = None
    for life in lives:
        for step in life["steps"]:
            place = STEPS.index(step["name"]) if step["name"] in STEPS else -1
            if place >= 0 and (best is None or place > best[0] or (place == best[0] and life is best[1])):
                best = place, life, step
    if best is None:
        return None
    _, life, step = best
    began = next((each["t"] for each in life["steps"] if each["t"] is not None), None)
    after = step["t"] - began if step["t"] is not None and began is not None else None
    return Furthest(step["name"], step["text"], after, step["ref"], len(lives))


def _states(store: Asks) -> tuple[State, ...]:
    """The first and the last reading of a growth between two states of the same kind; empty without one."""
    if "process_memory" not in store.filled:
        return ()
    rows = store.rows_of(
        "SELECT CASE WHEN coalesce(p.name, 'server') IN ('server', 'process') THEN 'the ' || coalesce(p.name, 'server') ELSE p.name END AS name, p.state, p.bytes, p.source || ':' || p.line AS ref, p.bytes = t.last_bytes AS last FROM memory_trend t JOIN process_memory p "
        "ON p.name IS NOT DISTINCT FROM t.name AND p.bytes IN (t.first_bytes, t.last_bytes) WHERE t.stepped AND p.state IS NOT NULL ORDER BY p.source, p.line"
    )
    first = next((row for row in rows if not row["last"]), None)
    last = next((row for row in reversed(rows) if row["last"]), None)
    if first is None or last is None:
        return ()
    return tuple(State(row["name"], row["state"], row["bytes"], row["ref"]) for row in (first, last))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
