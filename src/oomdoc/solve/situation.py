"""What is known of the engine in focus when a fix is looked for: views, settings, books, and the question for `fit`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from oomdoc.errors import OomdocError
from oomdoc.evidence.store import Store
from oomdoc.fit import Given, Logged, Question, ask
from oomdoc.ledger import LEAST_DEVICE_BYTES
from oomdoc.model import Engine, LedgerEntry
from oomdoc.units import GIB

if TYPE_CHECKING:
    from oomdoc.replay import Rehearsal

MOST_REQUESTS = 3_000  # run again at once, those around the incident: about 0.05 s a run
MOST_RUN = 60_000  # requests run in all for one report
_REPLAYED = (
    "SELECT t FROM request WHERE t IS NOT NULL AND input_tokens > 0 AND (output_tokens > 0 OR max_tokens > 0) LIMIT 1"
)
"""What a replay needs at least."""


@dataclass(frozen=True)
class Advised:
    """A line of a log that advises something."""

    text: str
    ref: str


@dataclass(frozen=True)
class Situation:
    """The engine in focus. `engine`, `failure`, `device` and `pressure` are the rows of those views, {} = no row.

    `started` is the moment of the incident, epoch seconds; `entries` are the ledger's of this start.
    """

    store: Store
    engine: Mapping[str, Any]
    failure: Mapping[str, Any]
    device: Mapping[str, Any]
    pressure: Mapping[str, Any]
    start: Engine | None
    entries: tuple[LedgerEntry, ...]
    percentiles: Mapping[str, Mapping[str, float]] | None
    config: Mapping[str, Any] | None
    started: float | None
    advised: tuple[Advised, ...]

    @property
    def on_gpu(self) -> bool:
        """Flags mean device memory; on the CPU backend they mean the host's."""
        return bool(self.engine.get("platform", "gpu") == "gpu")

    @cached_property
    def question(self) -> Question | None:
        """The question of this engine for `fit`; None where model or device are not known."""
        if self.start is None or not self.on_gpu:
            return None
        known = [entry.total_bytes for entry in self.entries if entry.total_bytes]
        if known and min(known) < LEAST_DEVICE_BYTES:
            return None
        total = self.device.get("total_bytes") if not known else None
        if total and total < LEAST_DEVICE_BYTES:
            return None
        available = self.failure.get("available_bytes")
        if not available or available <= 0 or any(entry.parts.get("kv_pool_bytes") for entry in self.entries):
            available = None  # else the refusal itself is the only line that tells it
        given = Given(
            model_config=self.config, gpu=f"{total / GIB:.6f}GiB" if total else None,
            available_kv=f"{available / GIB:.10f}GiB" if available else None,
        )  # fmt: skip
        try:
            return ask(given, Logged(self.start.model, self.start, self.entries, self.percentiles))
        except OomdocError:
            return None

    @cached_property
    def rehearsal(self) -> Rehearsal | None:
        """The recorded traffic, ready to be run again; None where there is none, or no pool."""
        if not self.engine.get("kv_pool_tokens"):
            return None
        if "request" not in self.store.filled or not self.store.rows_of(_REPLAYED):
            return None  # told before numpy is imported, which takes a tenth of a small run
        from oomdoc.replay import rehearse

        try:
            stage = rehearse(self.store, self.started, MOST_REQUESTS)
        except OomdocError:
            return None
        if stage.pool.total_bytes is not None or self.question is None or not self.question.total_bytes.lo:
            return stage
        # no line of the engine tells its device: the least that the product or a device tool says
        return replace(stage, pool=replace(stage.pool, total_bytes=self.question.total_bytes.lo))


def situation(
    store: Store, engines: Sequence[Engine], ledger: Sequence[LedgerEntry], incident: Mapping[str, Any] | None,
    percentiles: Mapping[str, Mapping[str, float]] | None, config: Mapping[str, Any] | None,
) -> Situation:  # fmt: skip
    """The situation of the incident in focus; the store is in focus on it."""

    def one(view: str) -> Mapping[str, Any]:
        return (store.rows_of(f"SELECT * FROM {view}") or [{}])[0]

    start_id = incident["start_id"] if incident else None
    if start_id is None and ledger:
        start_id = ledger[0].engine  # nothing of an engine failed: the start that the ledger speaks of first
    start = next((each for each in engines if each.id == start_id), engines[-1] if engines else None)
    advised = store.rows_of(
        "SELECT text, source || ':' || line AS ref FROM (SELECT text, source, line FROM seen.startup_check UNION ALL SELECT text, source, line FROM seen.oom "
        "UNION ALL SELECT text, source, line FROM seen.log_error) WHERE text IS NOT NULL ORDER BY source, line LIMIT 200"
    )
    return Situation(
        store, one("engine"), one("failure"), one("device"), one("kv_pressure"), start,
        tuple(entry for entry in ledger if entry.engine in (start_id, None)), percentiles, config,
        incident["t"] if incident else None, tuple(Advised(row["text"], row["ref"]) for row in advised),
    )  # fmt: skip


def stated(name: str, now: Situation) -> Any:
    """What a log or command states of a flag; a default of the release is no present value that anybody set."""
    flag = now.start.flags.get(name) if now.start else None
    return flag.value if flag is not None and flag.origin in ("logged", "command", "config") else None
