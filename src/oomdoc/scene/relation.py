"""The one relation between events and the server, as it is written: the bond of each row, and what is set aside, once and with its reason."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from oomdoc.scene.owner import FOREIGN, UNKNOWN, Bond

Place = tuple[str, str, int, int | None]
"""A row of evidence: table, source, line, and where it stands in the table."""

TABLES = (
    "host_event",
    "container",
    "cluster_event",
    "scaler",
    "process_exit",
    "gpu_sample",
    "gpu_process",
    "gpu_device",
    "oom",
    "frame",
    "log_error",
    "process_memory",
    "note",
    "milestone",
    "engine_flag",
    "engine_figure",
    "engine_stat",
    "preemption",
    "startup_check",
    "crash_step",
    "cache_lookup",
    "metric",
)
"""Tables whose rows have an owner; those of the engine's logs belong to a life by their place in the log, and have another
owner only where the whole source is another program's."""
COINCIDENT = ("host_event", "process_exit", "gpu_sample", "gpu_process", "gpu_device")
"""Of what nobody can bind to the server, the tables whose rows count only where the server's own words explain nothing."""


@dataclass(frozen=True)
class Aside:
    """An event that is not this server's: its place, what it says, why it does not count."""

    source: str
    line: int
    says: str
    why: str
    t: float | None


class Relation:
    """Takes down whose each event is.

    `strangers` are the sources that have an owner as a whole, with the reason; `present`: the bundle shows a server; `explained`: the
    server's own words say what became of it, so that what nobody can bind to it is a coincidence.
    """

    def __init__(self, strangers: Mapping[str, str], present: bool, explained: bool) -> None:
        self.strangers, self.present, self.explained = strangers, present, explained
        self.bonds: dict[Place, Bond] = {}
        self._asides: dict[tuple[str, int, int | None], Aside] = {}

    def of_strangers(self, filled: Collection[str]) -> None:
        """Give the sources that are about somebody else to them, each as a whole."""
        for source, why in sorted(self.strangers.items()):
            for table in TABLES:
                if table in filled:
                    self.bonds[table, source, 0, None] = Bond(FOREIGN, why)
            self._asides[source, 1, None] = Aside(source, 1, source, why, None)

    def note(
        self, table: str, row: Mapping[str, Any], bond: Bond, says: str, place: Mapping[str, Any] | None = None
    ) -> None:
        """Take down the bond of a row; where it counts for nothing it is told aside, at `place` where several lines tell one event."""
        if row["source"] in self.strangers:
            return  # the whole source has an owner
        self.bonds[table, row["source"], row["line"], row.get("row")] = bond
        at = place or row
        coincidence = bond.whose == UNKNOWN and self.explained
        if bond.whose == FOREIGN or (table in COINCIDENT and (coincidence or not self.present)):
            aside = Aside(at["source"], at["line"], says, bond.why, at.get("t"))
            self._asides.setdefault((at["source"], at["line"], None if place else row.get("row")), aside)

    def hide(self, table: str, row: Mapping[str, Any], bond: Bond) -> None:
        """Take down the bond of a row that is told aside elsewhere."""
        if row["source"] not in self.strangers:
            self.bonds[table, row["source"], row["line"], row["row"]] = bond

    def tell(self, aside: Aside) -> None:
        """Tell something aside that stands for many rows."""
        self._asides[aside.source, aside.line, None] = aside

    def asides(self) -> tuple[Aside, ...]:
        """What is set aside, by its place."""
        return tuple(sorted(self._asides.values(), key=lambda each: (each.source, each.line)))
