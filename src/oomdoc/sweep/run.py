"""The wiring of a night: find, plan, work, commit, tell.

Whatever ends a sweep, the next one goes on: what was finished is kept in batches, a night becomes visible as a whole, and
nothing is told twice, since a bundle's last word of a night replaces the one before.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from oomdoc import __version__
from oomdoc.errors import BundleError, UsageError
from oomdoc.judge.rules import load_rules, rules_version
from oomdoc.model.morning import NO_FAILURE, Morning
from oomdoc.sweep import engines, ledger, places, sources, trends
from oomdoc.sweep.columns import READ, TABLES
from oomdoc.sweep.dataset import Dataset
from oomdoc.sweep.ledger import Known, Step
from oomdoc.sweep.locks import locked
from oomdoc.sweep.places import Access
from oomdoc.sweep.work import page_name

_BATCH_BYTES = 64 << 20  # of readings that go on the next time, which are the largest rows
_BATCH_S = 30.0  # a crash costs at most half a minute of work, or one batch

Progress = Callable[[int, int, int], None]


@dataclass(frozen=True)
class Settings:
    """What a person may set. `night` is an ISO date, None: today in UTC. `progress(done, of, errors)` after every bundle.

    `batch_bundles` finished ones are kept at once.
    """

    store: str
    group_by: str = "folder"
    engine: str = "embedded"
    jobs: int | None = None
    limits: engines.Limits = field(default_factory=engines.Limits)
    night: str | None = None
    retention_days: int | None = None
    rebuild: bool = False
    rules: Path | None = None
    access: Access = field(default_factory=Access)
    batch_bundles: int = 500
    progress: Progress | None = None
    reports: Path | None = None  # a folder for the report of each bundle as a page


def sweep(paths: Sequence[str], settings: Settings) -> Morning:
    """Read what is new below the paths into the store, and report the night.

    BundleError where there is nothing, or nothing could be read or written; BusyError where another sweep is at work.
    """
    places.need_pyarrow()
    if settings.engine not in engines.ENGINES:
        raise UsageError(f"--engine {settings.engine} is unknown", f"Choose {' or '.join(engines.ENGINES)}")
    if settings.reports is not None and settings.engine == "ray":
        raise UsageError("--reports is for --engine embedded", "Workers of a cluster have folders of their own")
    if settings.reports is not None:
        settings.reports.mkdir(parents=True, exist_ok=True)
    night = _night(settings.night)
    rules, faults = load_rules(settings.rules, tests=False)
    version = rules_version(rules)
    place = places.place(settings.store, settings.access)
    Dataset(place).load()  # before the lock is written into what may be somebody else's folder
    with locked(place) as still, _scratch(settings.store) as scratch:
        dataset = Dataset(place, still=still, scratch=scratch).load()
        newest = max((str(entry["night"]) for entry in dataset.manifest.nights), default=night)
        if night < newest:
            raise UsageError(f"--night {night} is before {newest}, which the store holds already", "Nights go forward")
        said = dataset.prepare()
        for left in sorted({batch[0].night for batch in dataset.manifest.pending} - {night}):
            _finish(dataset, left, None, version)
        spare = [os.path.abspath(settings.store) if place.local else place.address]  # noqa: PTH100
        candidates, unlisted = sources.find(paths, settings.group_by, settings.access, time.time_ns(), spare)
        known = ledger.read(dataset)
        evidence = ledger.kept_for(dataset, "evidence", __version__) if _judges(known, version) else {}
        steps = ledger.plan(candidates, known, evidence, night, version, __version__, settings.rebuild)
        if not settings.rebuild:
            steps = _with_grown(dataset, steps, known)
        _work(dataset, steps, known, night, version, settings, scratch)
        _finish(
            dataset, night, {"found": len(candidates), "rules_version": version, "oomdoc_version": __version__}, version
        )
        present = {candidate.key for candidate in candidates}
        _retain(dataset, night, present, settings.retention_days)
        warnings = [
            *said,
            *(f"rule left out: {fault}" for fault in faults),
            *(f"not listed: {fault}" for fault in unlisted),
        ]
        titles = {rule.id: rule.title for rule in rules}
        told = trends.morning(dataset, night, present, warnings, titles, _pages(settings.reports, present))
    if told.counts.errors == told.counts.found:
        first = told.errors[0]
        raise BundleError(f"none of the {told.counts.found} bundles could be read ({first.bundle}: {first.why})", "Check paths and permissions")  # fmt: skip
    return told


def _pages(folder: Path | None, present: Iterable[str]) -> dict[str, str]:
    """Bundle -> its page, as seen from beside the folder; those alone that are written."""
    if folder is None:
        return {}
    return {key: f"{folder.name}/{page_name(key)}" for key in present if (folder / page_name(key)).is_file()}


def _night(text: str | None) -> str:
    if text is None:
        return dt.datetime.now(dt.UTC).date().isoformat()
    try:
        if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
            raise ValueError
        return dt.date.fromisoformat(text).isoformat()
    except ValueError:
        raise UsageError(f"--night '{text}' is no date", "Write it like 2026-11-20") from None


def _judges(known: Mapping[str, Known], version: str) -> bool:
    """Whether anything was judged by other rules, so that kept evidence is worth looking for."""
    return any(last.rules_version != version for last in known.values())


def _with_grown(dataset: Dataset, steps: Sequence[Step], known: Mapping[str, Known]) -> list[Step]:
    """The same steps, with how far the files of a log tree were read before."""
    if not any(step.candidate.key in known and not step.candidate.alone for step in steps):
        return list(steps)
    kept = ledger.kept_for(dataset, "grown", __version__)
    told = []
    for step in steps:
        last = known.get(step.candidate.key)
        sha256 = last.sha256 if last is not None else None
        part = kept.get((step.candidate.key, sha256 or "")) if step.evidence is None else None
        told.append(replace(step, grown=part, sha256=sha256))
    return told


# ---- the work


def _work(
    dataset: Dataset,
    steps: Sequence[Step],
    known: Mapping[str, Known],
    night: str,
    version: str,
    settings: Settings,
    scratch: Path,
) -> None:
    """Do the steps and keep what they give, batch by batch; also what was finished when somebody interrupts."""
    if not steps:
        return
    by_key = {step.candidate.key: step for step in steps}
    # where files were lost, a bundle may be unknown and its incidents not
    seen_before = _first_nights(dataset, by_key.keys() if dataset.manifest.lost else by_key.keys() & known.keys())
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    held = large = errors = done = 0
    since = time.monotonic()
    jobs = settings.jobs or os.cpu_count() or 1
    tasks = _tasks(dataset, steps, settings)
    outcomes = (
        engines.on_ray(tasks, settings.limits, settings.jobs, scratch)
        if settings.engine == "ray"
        else engines.embedded(tasks, settings.limits, min(jobs, len(steps)), scratch)
    )
    try:
        for outcome in outcomes:
            step = by_key[outcome["bundle"]]
            for name, made in _told(outcome, step, known.get(step.candidate.key), night, version, seen_before).items():
                rows[name] += made
                large += sum(len(row["state"]) for row in made) if name == "grown" else 0
            held += 1
            done += 1
            errors += outcome["status"] not in (*READ, "same")
            if settings.progress:
                settings.progress(done, len(steps), errors)
            if held >= settings.batch_bundles or large >= _BATCH_BYTES or time.monotonic() - since >= _BATCH_S:
                dataset.batch(night, rows)
                rows, held, large, since = {name: [] for name in TABLES}, 0, 0, time.monotonic()
    except KeyboardInterrupt:
        dataset.batch(night, rows)
        raise
    dataset.batch(night, rows)


def _tasks(dataset: Dataset, steps: Iterable[Step], settings: Settings) -> Iterator[dict[str, Any]]:
    """The steps as tasks; what is kept is fetched file by file, so that a file is read once and few wait at a time."""
    judged: dict[str, list[Step]] = {}
    going_on: dict[str, list[Step]] = {}
    rules = str(settings.rules.absolute()) if settings.rules else None
    for step in steps:
        if step.evidence is not None:
            judged.setdefault(step.evidence.path, []).append(step)
        elif step.grown is not None:
            going_on.setdefault(step.grown.path, []).append(step)
        else:
            yield _task(step, rules, settings.access, settings.reports)
    for group in judged.values():
        part = group[0].evidence
        assert part is not None
        columns = dataset.read(part, ["bundle", "tables"]).to_pydict()
        packed = dict(zip(columns["bundle"], columns["tables"], strict=True))
        for step in group:
            yield {
                **_task(step, rules, settings.access, settings.reports),
                "evidence": base64.b64encode(packed[step.candidate.key]).decode(),
            }

    for group in going_on.values():
        part = group[0].grown
        assert part is not None
        for step in group:
            told = dataset.grown(part, step.candidate.key, step.sha256 or "")
            states = [(source, base64.b64encode(state).decode()) for source, state in told]
            yield {**_task(step, rules, settings.access, settings.reports), "grown": states}


def _task(step: Step, rules: str | None, access: Access, reports: Path | None = None) -> dict[str, Any]:
    candidate = step.candidate
    return {
        "bundle": candidate.key, "name": candidate.name, "base": candidate.base, "alone": candidate.alone,
        "files": [list(file) for file in candidate.files], "signature": candidate.signature, "settled": candidate.settled,
        "expect": step.expect, "rules": rules, "endpoint_url": access.endpoint_url, "anonymous": access.anonymous,
        "reports": str(reports.absolute()) if reports else None,
    }  # fmt: skip


def _first_nights(dataset: Dataset, keys: Iterable[str]) -> dict[str, str]:
    """Incident key -> the first night that saw it, for bundles that are read again."""
    wanted = set(keys)
    found: dict[str, str] = {}
    if not wanted:
        return found
    for part in dataset.manifest.parts:
        if part.table != "incident":
            continue
        columns = dataset.read(part, ["bundle", "incident_key", "first_night"]).to_pydict()
        for bundle, key, first in zip(columns["bundle"], columns["incident_key"], columns["first_night"], strict=True):
            if bundle in wanted:
                found[key] = min(found.get(key, "9999"), first.isoformat())
    return found


def _told(
    outcome: Mapping[str, Any], step: Step, last: Known | None, night: str, version: str, seen_before: Mapping[str, str]
) -> dict[str, list[dict[str, Any]]]:
    """The rows of one outcome, complete."""
    candidate, status = step.candidate, outcome["status"]
    place = {"night": night, "bundle": candidate.key}
    if status == "same":
        return {
            "seen": [{**place, "sha256": step.expect, "signature": outcome["signature"], "settled": outcome["settled"]}]
        }
    own = {**place, "name": candidate.name, "host": candidate.host, "pod": candidate.pod, "status": status}
    if status not in READ:
        tries = (
            last.attempts + 1
            if last is not None and last.status not in READ and last.signature == candidate.signature
            else 1
        )
        return {"bundle": [{**own, "why": outcome["why"], "attempts": tries, "bytes": candidate.bytes, "signature": candidate.signature,
                            "settled": candidate.settled, "rules_version": version, "oomdoc_version": __version__, "new_failures": 0}]}  # fmt: skip
    rows: dict[str, list[dict[str, Any]]] = {
        name: [{**row, **place} for row in made] for name, made in outcome["rows"].items()
    }
    for incident in rows["incident"]:
        incident["host"] = incident.get("host") or candidate.host
        incident["first_night"] = min(night, seen_before.get(incident["incident_key"], night))
    fresh = sum(row["first_night"] == night and row.get("cause") not in NO_FAILURE for row in rows["incident"])
    rows["bundle"] = [
        {**row, **own, "host": row.get("host") or candidate.host, "signature": outcome["signature"], "etag": outcome.get("etag"), "settled": outcome["settled"], "attempts": 0, "new_failures": fresh}
        for row in rows["bundle"]
    ]  # fmt: skip
    sha256 = rows["bundle"][0]["sha256"]
    for row in rows.get("grown", ()):
        row |= {"sha256": sha256, "oomdoc_version": __version__, "state": base64.b64decode(row["state"])}
    if outcome.get("evidence"):
        rows["evidence"] = [
            {**place, "sha256": sha256, "oomdoc_version": __version__, "tables": base64.b64decode(outcome["evidence"])}
        ]
    return rows


# ---- the end of a night


def _finish(dataset: Dataset, night: str, counts: Mapping[str, Any] | None, version: str) -> None:
    """Commit a night: copies are told of one bundle only."""
    waiting = any(batch[0].night == night for batch in dataset.manifest.pending)
    if not waiting and (
        counts is None or any(dict(entry) == {"night": night, **counts} for entry in dataset.manifest.nights)
    ):
        return
    every = ledger.read(dataset)
    tonight = {key: last for key, last in every.items() if last.night == night}
    before = {key: last for key, last in every.items() if last.night < night}
    found = ledger.copies(tonight, before, version, __version__)
    dataset.commit_night(night, {"night": night, **counts} if counts else None, found)


def _retain(dataset: Dataset, night: str, present: set[str], days: int | None) -> None:
    known = ledger.read(dataset)
    # a copy has no findings of its own: those of its original stay with it, wherever that has gone
    wanted = present | {origin for key in present if key in known and (origin := known[key].copy_of) in known}
    living = {key: (known[key].night, known[key].sha256) for key in wanted if key in known}
    since = "" if days is None else (dt.date.fromisoformat(night) - dt.timedelta(days=days)).isoformat()
    dataset.retain(since, living)


@contextmanager
def _scratch(store: str) -> Iterator[Path]:
    """A folder for what workers unpack: one per store, so that the next sweep removes what a killed one has left."""
    owner = os.getuid() if hasattr(os, "getuid") else 0
    mark = hashlib.sha256(store.encode()).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"oomdoc-sweep-{owner}-{mark}"
    with suppress(FileNotFoundError):
        status = folder.lstat()
        if stat.S_ISDIR(status.st_mode) and status.st_uid == owner:
            shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:  # somebody else's: nothing of it is touched
        folder = Path(tempfile.mkdtemp(prefix="oomdoc-sweep-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
