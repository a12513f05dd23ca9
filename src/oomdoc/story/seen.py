"""A finished report as the story's parts ask it: the leading cause, its numbers, flags of the failing start, its ledger."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oomdoc.model import Diagnosis, Engine, Evidence, Incident, LedgerEntry, Report
from oomdoc.story.facts import Facts


@dataclass(frozen=True)
class Seen:
    """A report and the facts beside it; every answer is None or empty where the bundle does not say it."""

    report: Report
    facts: Facts

    @functools.cached_property
    def first(self) -> Diagnosis | None:
        """The leading cause."""
        return self.report.diagnoses[0] if self.report.diagnoses else None

    @property
    def cause(self) -> str:
        """The leading cause's id where the report stands behind it, else empty."""
        return self.first.cause if self.first and self.report.verdict != "undecided" else ""

    @functools.cached_property
    def incident(self) -> Incident | None:
        """The incident whose ranking is the report's own."""
        if self.report.verdict in ("healthy", "no-server"):
            return None
        for incident in self.report.incidents:
            if incident.diagnoses == self.report.diagnoses:
                return incident
        return self.report.incidents[0] if self.report.incidents else None

    @functools.cached_property
    def alike(self) -> tuple[Incident, ...]:
        """Incidents of the same kind and cause as the gravest, itself among them, in the order of time."""
        shown = self.incident
        if shown is None:
            return ()
        return tuple(
            each
            for each in self.report.incidents
            if each.kind == shown.kind
            and each.diagnoses[:1]
            and shown.diagnoses[:1]
            and each.diagnoses[0].cause == shown.diagnoses[0].cause
        )

    @functools.cached_property
    def engine(self) -> Engine | None:
        """The start that the incident belongs to, else the last one."""
        engines = self.report.engines
        if self.incident and (own := [each for each in engines if each.id == self.incident.engine]):
            return own[0]
        return engines[-1] if engines else None

    def flag(self, name: str) -> Any:
        """The value of an engine setting of that start."""
        found = self.engine.flags.get(name) if self.engine else None
        return found.value if found else None

    def number(self, name: str) -> float | None:
        """The value of a setting, where it is a number."""
        value = self.flag(name)
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    def flag_ref(self, name: str) -> tuple[str, ...]:
        """Where a setting is known from."""
        found = self.engine.flags.get(name) if self.engine else None
        return (found.ref,) if found and found.ref else ()

    def item(self, *names: str) -> Evidence | None:
        """The first observation for the leading cause that has all of these numbers: they belong together."""
        for item in self.first.evidence if self.first else ():
            if all(name in item.values for name in names):
                return item
        return None

    def evidence(self, *ids: str) -> Evidence | None:
        """The first observation for the leading cause of these ids."""
        found = {item.id: item for item in (self.first.evidence if self.first else ())}
        return next((found[name] for name in ids if name in found), None)

    def action(self, *ids: str) -> Any:
        """The first action of the leading cause of these ids."""
        found = {item.id: item for item in (self.first.actions if self.first else ())}
        return next((found[name] for name in ids if name in found), None)

    @functools.cached_property
    def books(self) -> tuple[LedgerEntry, ...]:
        """Ledger entries of the failing start."""
        starts = [entry.engine for entry in self.report.ledger]
        own = self.incident.engine if self.incident else None
        start = own if own in starts else starts[0] if starts else None
        return tuple(entry for entry in self.report.ledger if entry.engine == start)

    def book(self, moment: str, rank: int | None = None) -> LedgerEntry | None:
        """The entry of a moment: of that rank, else of the poorest one (least free, then least pool)."""
        own = [entry for entry in self.books if entry.moment == moment]
        ranked = [entry for entry in own if rank is not None and entry.rank == rank] or own
        return min(ranked, key=_room) if ranked else None

    @property
    def ranks(self) -> int:
        """Ranks of the engine as its flags or its ledger say: tensor x pipeline parallel; 1 where nothing is told."""
        sizes = [self.number("tensor_parallel_size") or 1, self.number("pipeline_parallel_size") or 1]
        return max(int(sizes[0] * sizes[1]), len({entry.rank for entry in self.books if entry.rank is not None}), 1)

    @functools.cached_property
    def traffic(self) -> Mapping[str, Any]:
        """The request profile; empty without requests."""
        return self.report.traffic if self.report.traffic.get("requests") else {}


def _room(entry: LedgerEntry) -> tuple[float, float, int]:
    free, pool = entry.parts.get("free_bytes"), entry.parts.get("kv_pool_bytes")
    return (
        free if free is not None else float("inf"),
        pool if pool is not None else float("inf"),
        entry.rank or 0,
    )
