"""Whether two reports say the same of a bundle and its redacted copy: verdict, causes, probabilities, evidence, advice.

Both are to be made by signs alone (`Options.wording`): stand-ins are other words than the names in whose place they stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from oomdoc.model import Diagnosis, Report

SHOWN = 12


def differences(before: Report, after: Report) -> tuple[str, ...]:
    """What differs, as sentences; empty where the copy tells the same. Names and paths are not compared."""
    told = list(_differences(before, after))
    return (*told[:SHOWN], f"and {len(told) - SHOWN} more") if len(told) > SHOWN else tuple(told)


def _differences(before: Report, after: Report) -> Iterator[str]:
    if before.verdict != after.verdict:
        yield f"the verdict is {after.verdict}, was {before.verdict}"
    yield from _ranking("the ranking", before.diagnoses, after.diagnoses)
    if len(before.incidents) != len(after.incidents):
        yield f"{len(after.incidents)} incidents, were {len(before.incidents)}"
    for old, new in zip(before.incidents, after.incidents, strict=False):
        if (old.kind, old.phase, old.started) != (new.kind, new.phase, new.started):
            yield f"incident {old.id} is {new.kind} in {new.phase}, was {old.kind} in {old.phase}"
        yield from _ranking(f"incident {old.id}", old.diagnoses, new.diagnoses)
    for place, (ours, theirs) in enumerate(zip(before.ledger, after.ledger, strict=False), 1):
        if (ours.rank, ours.total_bytes, ours.parts) != (theirs.rank, theirs.total_bytes, theirs.parts):
            yield f"entry {place} of the ledger"
    if len(before.ledger) != len(after.ledger):
        yield f"{len(after.ledger)} entries in the ledger, were {len(before.ledger)}"


def _ranking(where: str, before: Sequence[Diagnosis], after: Sequence[Diagnosis]) -> Iterator[str]:
    if [item.cause for item in before] != [item.cause for item in after]:
        yield f"{where}: the order of causes"
    by_cause = {item.cause: item for item in after}
    for old in before:
        new = by_cause.get(old.cause)
        if new is None:
            yield f"{where}: {old.cause} is gone"
            continue
        if round(old.probability, 9) != round(new.probability, 9):
            yield f"{where}: {old.cause} has {new.probability:.4f}, had {old.probability:.4f}"
        if old.reason != new.reason:
            yield f"{where}: {old.cause} for {new.reason}, was {old.reason}"
        if _evidence(old) != _evidence(new):
            yield f"{where}: the evidence of {old.cause}"
        if [action.id for action in old.actions] != [action.id for action in new.actions]:
            yield f"{where}: the advice against {old.cause}"


def _evidence(item: Diagnosis) -> Any:
    told = [(piece.id, round(piece.weight, 9), dict(piece.values)) for piece in (*item.evidence, *item.against)]
    lines = [[ref.rpartition(":")[2] for ref in piece.refs] for piece in (*item.evidence, *item.against)]
    return told, lines, item.unknown
