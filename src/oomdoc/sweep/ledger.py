"""What is known of every bundle, and what that means for tonight: leave it, judge its evidence again, or read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from oomdoc.sweep.columns import READ
from oomdoc.sweep.dataset import Dataset
from oomdoc.sweep.record import Part
from oomdoc.sweep.sources import Candidate

RETRIED = ("timeout", "memory", "crashed")
"""Failures that may be the machine's: tried again in later nights, up to `MOST_ATTEMPTS` in all."""
ALWAYS_RETRIED = ("changing", "gone", "io")
MOST_ATTEMPTS = 3


class Known(NamedTuple):
    """The last word on a bundle."""

    night: str
    sha256: str | None
    bytes: int | None
    signature: str | None
    settled: bool
    rules_version: str | None
    oomdoc_version: str | None
    status: str
    attempts: int
    copy_of: str | None


_COLUMNS = ["night", "bundle", "sha256", "bytes", "signature", "settled", "rules_version", "oomdoc_version", "status", "attempts", "copy_of"]  # fmt: skip


def read(dataset: Dataset, pending: bool = True) -> dict[str, Known]:
    """Bundle -> the last word on it, with what a crashed run has left as pending."""
    known: dict[str, Known] = {}
    for part in _parts(dataset, "bundle", pending):
        columns = dataset.read(part, _COLUMNS).to_pydict()
        for key, night, *rest in zip(
            columns["bundle"], columns["night"], *(columns[name] for name in _COLUMNS[2:]), strict=True
        ):
            told = Known(night.isoformat(), *rest)
            if key not in known or known[key].night <= told.night:
                known[key] = told
    for part in _parts(dataset, "seen", pending):
        columns = dataset.read(part, ["bundle", "night", "sha256", "signature", "settled"]).to_pydict()
        for key, night, sha256, signature, settled in zip(*columns.values(), strict=True):
            before = known.get(key)
            if before is not None and before.sha256 == sha256 and before.night <= night.isoformat():
                known[key] = before._replace(signature=signature, settled=settled)
    return known


def _parts(dataset: Dataset, table: str, pending: bool) -> list[Part]:
    """Files of a table, the later word last."""
    committed = sorted((part for part in dataset.manifest.files if part.table == table), key=lambda part: part.night)
    waiting = [part for batch in dataset.manifest.pending for part in batch if part.table == table] if pending else []
    return [*committed, *waiting]


def kept_for(dataset: Dataset, table: str, oomdoc_version: str) -> dict[tuple[str, str], Part]:
    """(bundle, content) -> the file of table `evidence` or `grown` that holds what is kept of it, as this program reads it."""
    kept = {}
    for part in _parts(dataset, table, True):
        columns = dataset.read(part, ["bundle", "sha256", "oomdoc_version"]).to_pydict()
        for key, sha256, version in zip(*columns.values(), strict=True):
            if version == oomdoc_version:
                kept[key, sha256] = part
    return kept


@dataclass(frozen=True)
class Step:
    """What to do with a candidate: `judge` its `evidence`, or read it.

    `expect` is the content that it may turn out to have still; `grown` holds how far its files were read when it was `sha256`.
    """

    candidate: Candidate
    expect: str | None = None
    evidence: Part | None = None
    grown: Part | None = None
    sha256: str | None = None


def plan(
    candidates: Iterable[Candidate], known: Mapping[str, Known], evidence: Mapping[tuple[str, str], Part],
    night: str, rules_version: str, oomdoc_version: str, rebuild: bool = False,
) -> list[Step]:  # fmt: skip
    """The steps of a night, in order of address; what is unchanged and judged by these rules has none."""
    steps = []
    unchanged = {}
    every = list(candidates)
    for candidate in every:
        last = known.get(candidate.key)
        unchanged[candidate.key] = last is not None and last.signature == candidate.signature and last.settled
    for candidate in every:
        last = known.get(candidate.key)
        if last is None or rebuild:
            steps.append(Step(candidate))
            continue
        step = _step(candidate, last, unchanged, known, evidence, night, rules_version, oomdoc_version)
        if step is not None:
            steps.append(step)
    return steps


def _step(
    candidate: Candidate, last: Known, unchanged: Mapping[str, bool], known: Mapping[str, Known],
    evidence: Mapping[tuple[str, str], Part], night: str, rules_version: str, oomdoc_version: str,
) -> Step | None:  # fmt: skip
    same = unchanged[candidate.key]
    if last.status not in READ:
        if not same or last.oomdoc_version != oomdoc_version or last.status in ALWAYS_RETRIED:
            return Step(candidate)
        again = last.status in RETRIED and last.attempts < MOST_ATTEMPTS and last.night != night
        return Step(candidate) if again else None
    if last.oomdoc_version != oomdoc_version:
        return Step(candidate)
    if not same:
        equal_size = last.bytes == candidate.bytes and last.rules_version == rules_version
        return Step(candidate, expect=last.sha256 if equal_size else None)
    if last.rules_version == rules_version:
        origin = known.get(last.copy_of or "")
        # its original got another content in the same night: nobody tells the findings of this one any more
        orphan = origin is not None and origin.night == last.night and origin.sha256 != last.sha256
        return Step(candidate) if orphan else None
    if last.status == "copy" and last.copy_of is not None:
        origin = known.get(last.copy_of)
        if origin is not None and origin.sha256 == last.sha256 and unchanged.get(last.copy_of):
            return None  # the rules judge the original
    return Step(candidate, evidence=evidence.get((candidate.key, last.sha256 or "")))


def copies(
    tonight: Mapping[str, Known], before: Mapping[str, Known], rules_version: str, oomdoc_version: str
) -> dict[str, str]:
    """Bundle of tonight -> the bundle with the same content that the findings are told of: an older one, else the first by address."""
    origin: dict[str, str] = {}
    for key in sorted(before):
        last = before[key]
        current = last.rules_version == rules_version and last.oomdoc_version == oomdoc_version
        if last.status in ("read", "judged") and last.sha256 and current and key not in tonight:
            origin.setdefault(last.sha256, key)
    found = {}
    for key in sorted(tonight):
        sha256 = tonight[key].sha256
        if tonight[key].status in READ and sha256 and origin.setdefault(sha256, key) != key:
            found[key] = origin[sha256]
    return found
