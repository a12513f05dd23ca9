"""A store looked over as a whole, and mended: the record from its generations or from the files, files from where they went.

What is mended is proven: a file counts only where its content is the one in its name. What cannot be mended is said, stays
where it is, and is taken back when it is put right (from a backup, say) and the store is mended again.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from oomdoc.errors import BundleError, BusyError, DamagedError, UsageError
from oomdoc.sweep import faults
from oomdoc.sweep.columns import TABLES
from oomdoc.sweep.dataset import Dataset
from oomdoc.sweep.faults import sentence
from oomdoc.sweep.locks import locked
from oomdoc.sweep.places import Access, Seen, place
from oomdoc.sweep.record import Book, Manifest, Part, Survey, hash_of, number, survey

_READ_AGAIN = ("evidence", "grown")
"""Tables that only save work: what they held is read again from the bundles."""


@dataclass
class Health:
    """What was found: `damage` in sentences, what was `mended`, what is `lost`; whole where there is neither damage nor loss.

    `left_over` are files of the store's own shape that its record does not name, `foreign` all others: both stay untouched.
    """

    address: str
    files: int = 0
    rows: int = 0
    bytes: int = 0
    nights: int = 0
    generation: int = 0
    damage: list[str] = field(default_factory=list)
    mended: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    left_over: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)


def check(address: str, access: Access) -> Health:
    """Read every file of a store and compare it with its name. Nothing is written.

    UsageError where there is no store, BusyError where a sweep committed meanwhile.
    """
    dataset = Dataset(place(address, access))
    health = Health(address)
    found = survey(dataset.place.files())
    try:
        dataset.load()
    except DamagedError as problem:
        health.damage.append(problem.message)
        whole = _proven(dataset, found.data)[0]
        health.damage += [f"{path} is not what was written" for path in found.data if path not in whole]
    else:
        _stored(dataset.manifest, address)
        for part in dataset.manifest.parts:
            try:
                dataset.need(part)
            except DamagedError as problem:
                health.damage.append(f"{problem.message} ({_held(part)})")
        if Book(dataset.place).load() != dataset.manifest:
            raise BusyError(f"a sweep was at work on {address} while it was checked", "Check it again afterwards")
    _count(health, dataset.manifest, found)
    return health


def repair(address: str, access: Access) -> Health:
    """Mend what can be mended, and say what cannot. Nothing is removed. Errors as `check`."""
    there = place(address, access)
    seen = there.files()
    found = survey(seen)
    if not found.data and not found.generations:
        raise UsageError(f"{address} is no store of a sweep", "Name the folder or URI that --store had")
    with locked(there) as still:
        dataset = Dataset(there, still=still)
        health = Health(address)
        whole, elsewhere = _proven(dataset, found.data)
        try:
            manifest = dataset.load().manifest
        except DamagedError as problem:
            health.damage.append(problem.message)
            manifest, how = _record(dataset, found, whole, seen)
            health.mended.append(how)
        before = manifest
        _put_back(dataset, manifest, whole, elsewhere, health)
        manifest = _without(manifest, whole, health)
        if manifest != before or health.damage:
            numbers = [number(path) for path in found.generations]
            dataset.mend(replace(manifest, generation=max([manifest.generation, *numbers])))
        _count(health, dataset.manifest, survey(there.files()))
    return health


def _stored(manifest: Manifest, address: str) -> None:
    if not manifest.generation and not manifest.first_form:
        raise UsageError(f"{address} is no store of a sweep", "Name the folder or URI that --store had")


def _count(health: Health, manifest: Manifest, found: Survey) -> None:
    named = {part.path for part in (*manifest.parts, *manifest.lost)} | set(manifest.retired)
    health.files, health.nights = len(manifest.files), len(manifest.nights)
    health.rows = sum(part.rows for part in manifest.files)
    health.bytes = sum(part.bytes for part in manifest.files)
    health.generation = manifest.generation
    health.lost = [f"{part.path} ({_held(part)})" for part in manifest.lost]
    health.left_over = [path for path in found.data if path not in named] if manifest.generation else []
    health.foreign = found.foreign


def _held(part: Part) -> str:
    what = "kept work, which is done again" if part.table in _READ_AGAIN else f"rows of {part.table}"
    return f"{part.rows} {what}, night {part.night}"


def _proven(dataset: Dataset, paths: Iterable[str]) -> tuple[set[str], dict[str, str]]:
    """Files whose content is the one in their names; and of the others hash -> where that content lies."""
    whole, elsewhere = set(), {}
    for path in paths:
        try:
            digest = (dataset.place.digest(path) or "")[: len(hash_of(path))]
        except OSError as problem:
            if problem.errno != errno.EIO:  # rights and connections are no damage
                raise BundleError(
                    f"{dataset.place.address}/{path} cannot be read: {sentence(problem)}",
                    "Nothing was changed: mend the store when all of it can be read",
                ) from None
            continue
        if digest == hash_of(path):
            whole.add(path)
        else:
            elsewhere[digest] = path
    return whole, elsewhere


def _record(dataset: Dataset, found: Survey, whole: set[str], seen: Mapping[str, Seen]) -> tuple[Manifest, str]:
    """The newest generation, where that is to be had; else what the files say. An older one would forget what came after.

    Without a pointer a generation in the middle of a night may be the one before the newest: the files say what came of it.
    """
    book = Book(dataset.place)
    pointed = book.pointed()
    readable = ((path, book.generation(path)) for path in reversed(found.generations))
    path, known = next(((path, made) for path, made in readable if made is not None), ("", Manifest()))
    if path and (path == pointed or (pointed is None and path == found.generations[-1] and not known.pending)):
        return known, f"the record is generation {known.generation} again ({path})"
    made = _from_files(dataset, whole - set(known.retired), seen, known)
    return made, "the record was made anew from the files, their order in a night from their times"


def _put_back(
    dataset: Dataset, manifest: Manifest, whole: set[str], elsewhere: Mapping[str, str], health: Health
) -> None:
    """Write content that lies under another file's name where it belongs."""
    wanted = {hash_of(part.path): part.path for part in (*manifest.parts, *manifest.lost) if part.path not in whole}
    # all is read before anything is written: two files may lie in each other's place
    found = [(wanted[digest], origin, dataset.place.read(origin)) for digest, origin in elsewhere.items() if digest in wanted]  # fmt: skip
    for path, origin, data in found:
        if data is not None:
            with faults.writing(dataset.place.address):
                dataset.place.write(path, data)
            whole.add(path)
            health.damage.append(f"the content of {path} was in {origin}")
            health.mended.append(f"{path} is back in its place")


def _without(manifest: Manifest, whole: set[str], health: Health) -> Manifest:
    """A manifest without the files that are not whole, and with those lost before that are whole again."""
    back = [part for part in manifest.lost if part.path in whole]
    gone = [part for part in manifest.files if part.path not in whole]
    # a batch is read again as a whole: nothing of it was told yet
    pending = tuple(batch for batch in manifest.pending if all(part.path in whole for part in batch))
    for part in gone:
        health.damage.append(f"{part.path} is missing or not what was written ({_held(part)})")
    if len(pending) < len(manifest.pending):
        health.damage.append("batches of a night that was not finished are not whole")
        health.mended.append("their bundles are read again by the next sweep")
    for part in back:
        health.mended.append(f"{part.path} is whole again and counts again")
    kept = [part for part in manifest.files if part.path in whole]
    files = sorted([*kept, *back], key=lambda part: (part.night, list(TABLES).index(part.table), part.path))
    lost = [part for part in (*manifest.lost, *gone) if part not in back and part.table not in _READ_AGAIN]
    if not back and not gone and pending == manifest.pending:
        return manifest
    return replace(manifest, files=tuple(files), pending=pending, lost=tuple(lost))


# ---- a store without any record


class _File(NamedTuple):
    """A data file and the bundles that it has rows of. In order of age: time, and rows where the place's clock is coarse."""

    written_ns: int
    rows: int
    path: str
    bytes: int
    keys: list[str]


def _from_files(dataset: Dataset, whole: Iterable[str], seen: Mapping[str, Seen], known: Manifest) -> Manifest:
    """What the files themselves say: every night of which there are some, finished or not. Of `known`, an older generation,
    the counts of its nights are taken over, and what was lost before.

    Of a bundle that a night told twice the later word counts. A word's `bundle` row is written first and its other rows
    after it, in one file a table; so the newest file of a table counts that is no older than the one with that row.
    """
    nights: dict[str, dict[str, list[_File]]] = {}
    for path in sorted(whole):
        table, day, _ = path.split("/")
        keys = dataset.read_path(path, ["bundle"]).column(0).to_pylist()
        file = _File(seen[path].modified_ns, len(keys), path, seen[path].bytes, keys)
        nights.setdefault(day.removeprefix("day="), {}).setdefault(table, []).append(file)
    parts: list[Part] = []
    for night, tables in sorted(nights.items()):
        told: dict[str, int] = {key: file.written_ns for file in sorted(tables.get("bundle", ())) for key in file.keys}
        for name in TABLES:
            parts += _later_words(dataset, name, night, sorted(tables.get(name, ())), {} if name == "seen" else told)
    nights_known = {str(entry["night"]): entry for entry in known.nights}
    nights_known |= {entry["night"]: entry for entry in _nights(dataset, parts) if entry["night"] not in nights_known}
    return Manifest(
        tuple(parts),
        nights=tuple(nights_known[night] for night in sorted(nights_known)),
        lost=known.lost,
        states=known.states,
    )


def _later_words(
    dataset: Dataset, name: str, night: str, files: list[_File], told: Mapping[str, int]
) -> Iterator[Part]:
    import pyarrow as pa

    last = {key: file.path for file in files for key in file.keys if file.written_ns >= told.get(key, 0)}
    for file in files:
        keep = [last.get(key) == file.path for key in file.keys]
        if all(keep):
            yield Part(name, night, file.path, file.rows, file.bytes)
        elif any(keep):
            yield dataset.add(name, night, dataset.read_path(file.path).filter(pa.array(keep, pa.bool_())))


def _nights(dataset: Dataset, parts: Sequence[Part]) -> Iterator[dict[str, str]]:
    """What is known of every night: how many bundles it found is not."""
    for night in sorted({part.night for part in parts}):
        told: dict[str, str] = {"night": night}
        for part in parts:
            if part.night == night and part.table == "bundle":
                for row in dataset.read(part, ["rules_version", "oomdoc_version"]).to_pylist():
                    told |= {name: value for name, value in row.items() if value is not None}
        yield told
