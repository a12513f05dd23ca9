"""What the story asks the tables beside the report: how far loading came, the container that failed, the size of the vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from oomdoc.physics import catalogue


class Asks(Protocol):
    """What is needed of a store."""

    filled: Any

    def rows_of(self, sql: str) -> list[dict[str, Any]]:
        """The rows that one SELECT gives."""


@dataclass(frozen=True)
class Facts:
    """Figures of the bundle that the report has no place for. Empty is unknown.

    `progress` is `k/n` of the shards that were read by the start in focus, `container` its row where there is one,
    `vocabulary` the tokens that the model knows, `lived_s` how long the log of each start is.
    """

    progress: str | None = None
    progress_ref: str | None = None
    container: Mapping[str, Any] = field(default_factory=dict)
    vocabulary: int | None = None
    lived_s: tuple[float, ...] = ()
    ended_by: str | None = None  # what a supervisor said when it ended the server
    ended_ref: str | None = None
    host: str | None = None


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
            "SELECT *, source || ':' || line AS ref FROM container ORDER BY serves DESC NULLS LAST, restarts DESC NULLS LAST, source, line LIMIT 1"
        )
        if "container" in store.filled
        else []
    )
    lived: list[dict[str, Any]] = []
    if "milestone" in store.filled:
        lived = store.rows_of(
            "SELECT max(m.t) - min(m.t) AS s FROM engine_start e JOIN milestone m ON m.source = e.source AND m.line BETWEEN e.first_line AND e.last_line "
            "WHERE m.t IS NOT NULL GROUP BY e.start_id, e.source, e.first_line ORDER BY e.source, e.first_line"
        )
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
        lived_s=tuple(row["s"] for row in lived if row["s"]),
        ended_by=ended[0]["message"] if ended else None,
        ended_ref=ended[0]["ref"] if ended else None,
        host=container[0]["node"] if container else None,
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
