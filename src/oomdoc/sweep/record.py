"""The record of a store: which files count. It is kept in generations, and it alone says what the store owns.

`manifest.json` is a pointer of a few bytes, replaced as a whole; it names a generation, `records/NUMBER-HASH.json`, which is
written before it and never changed. A store that has data and no readable pointer is damaged, never new; a folder with
anything else in it is somebody else's. Nothing is removed that the store's own records do not name.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple, TypeVar

from oomdoc.errors import BusyError, DamagedError, UsageError
from oomdoc.sweep import faults
from oomdoc.sweep.columns import DATASET_VERSION, TABLES
from oomdoc.sweep.places import Place, temporary

T = TypeVar("T")

POINTER = "manifest.json"
LOCK = "lock"
INTENDED = "records/writing.json"
KEPT_GENERATIONS = 20
"""Older generations stay so long: a night of a large fleet makes some ten, each of 250 bytes per file of the store."""
_DIGITS = 20  # of SHA-256 in a file's name: 80 bits
_DATA = re.compile(rf"(?:{'|'.join(TABLES)})/day=\d{{4}}-\d\d-\d\d/[0-9a-f]{{{_DIGITS}}}\.parquet")
_GENERATION = re.compile(rf"records/(\d{{8}})-([0-9a-f]{{{_DIGITS}}})\.json")
CLAIM = re.compile(rf"{LOCK}/[0-9a-f]{{16}}")


@dataclass(frozen=True)
class Part:
    """One Parquet file: its path in the store, and what is in it."""

    table: str
    night: str
    path: str
    rows: int
    bytes: int


@dataclass(frozen=True)
class Manifest:
    """One commit: `files` are the dataset, `pending` batches of a night that is not committed yet, `retired` files that a
    reader of the commit before may still be reading. `nights` in order, with what the sweep counted.

    `lost` are files that were damaged when the store was mended: what they held is in no table. `generation` counts
    commits; 0 for a place without a record, and for one that the first oomdoc wrote (`first_form`).
    """

    files: tuple[Part, ...] = ()
    pending: tuple[tuple[Part, ...], ...] = ()
    retired: tuple[str, ...] = ()
    nights: tuple[Mapping[str, Any], ...] = ()
    lost: tuple[Part, ...] = ()
    generation: int = 0
    first_form: bool = False
    states: tuple[Mapping[str, str], ...] = ()
    """What people said of a fingerprint: {fingerprint, state, note, night}, one each, the last word of it."""

    def to_dict(self) -> dict[str, Any]:
        """Its JSON form."""
        return {
            "oomdoc_dataset": DATASET_VERSION,
            "generation": self.generation,
            "nights": [dict(night) for night in self.nights],
            "files": [asdict(part) for part in self.files],
            "pending": [[asdict(part) for part in batch] for batch in self.pending],
            "retired": list(self.retired),
            "lost": [asdict(part) for part in self.lost],
            **({"states": [dict(state) for state in self.states]} if self.states else {}),
        }

    @property
    def parts(self) -> tuple[Part, ...]:
        """The files that have to be there: committed and pending ones."""
        return (*self.files, *(part for batch in self.pending for part in batch))

    @property
    def empty(self) -> bool:
        """Whether it names nothing."""
        return not (self.files or self.pending or self.nights or self.lost)


class Survey(NamedTuple):
    """What lies in a place: `data` files and `generations`, oldest first, by the shape of their names; all else is `foreign`."""

    data: list[str]
    generations: list[str]
    foreign: list[str]


def digits(data: bytes) -> str:
    """The hash that a file has in its name."""
    return hashlib.sha256(data).hexdigest()[:_DIGITS]


def data_path(table: str, night: str, data: bytes) -> str:
    """Where a file of a table lies."""
    return f"{table}/day={night}/{digits(data)}.parquet"


def is_data(path: str) -> bool:
    """Whether a path has the shape that the store gives its own Parquet files."""
    return _DATA.fullmatch(path) is not None


def hash_of(path: str) -> str:
    """The hash in a data file's name."""
    return path.rpartition("/")[2].removesuffix(".parquet")


def number(path: str) -> int:
    """The number of a generation, from its name."""
    shape = _GENERATION.fullmatch(path)
    return int(shape[1]) if shape else 0


def survey(names: Iterable[str]) -> Survey:
    """Sort what lies in a place by the shape of its name."""
    made = Survey([], [], [])
    for name in sorted(names):
        if is_data(name):
            made.data.append(name)
        elif _GENERATION.fullmatch(name):
            made.generations.append(name)
        elif name not in (POINTER, LOCK, INTENDED) and not CLAIM.fullmatch(name) and not _unfinished(name):
            made.foreign.append(name)
    return made


def _unfinished(name: str) -> bool:
    """Whether it is a file of the store's own that a killed process has not completed."""
    folder, _, file = name.rpartition("/")
    whole = f"{folder}/{file.removeprefix(temporary(''))}" if folder else file.removeprefix(temporary(""))
    return whole != name and bool(whole in (POINTER, INTENDED) or is_data(whole) or _GENERATION.fullmatch(whole))


def twice(read: Callable[[], T]) -> T:
    """What is read; DamagedError only where a second reading, a moment later, finds the same."""
    try:
        return read()
    except DamagedError:
        time.sleep(faults.LOOK_AGAIN_S)
        return read()


def damaged(address: str, what: str) -> DamagedError:
    """The sentence about a store that is not as it was written."""
    return DamagedError(
        f"the store {address} is damaged: {what}",
        f"`oomdoc sweep --check --store {address}` lists all damage, --repair mends what can be mended",
    )


@dataclass
class Book:
    """Reads and writes the record of one place; remembers the pointer it saw last, so that two writers are noticed."""

    place: Place
    _seen: bytes | None = None

    def load(self) -> Manifest | None:
        """The commit that counts; None where the place is empty. DamagedError where the record is not whole.

        UsageError where the place holds something else, or a version that this one cannot read.
        """
        return twice(self._load)

    def _load(self) -> Manifest | None:
        address = self.place.address
        self._seen = data = self.place.read(POINTER)
        if data is None:
            self._without_pointer()
            return None
        try:
            told = json.loads(data)
            version = told["oomdoc_dataset"]
        except (ValueError, KeyError, TypeError):
            if self._owned():
                raise damaged(address, f"{POINTER} is not as it was written") from None
            raise UsageError(
                f"{address}/{POINTER} is not that of a sweep", "Name another folder with --store"
            ) from None
        if version != DATASET_VERSION:
            raise UsageError(
                f"{address} was written by another version of oomdoc (dataset {version}, this one writes {DATASET_VERSION})",
                "Name another folder with --store",
            )
        if "files" in told:
            return replace(parsed(told, address), first_form=True)
        name = told.get("record")
        if not isinstance(name, str) or not _GENERATION.fullmatch(name):
            raise damaged(address, f"{POINTER} names no record")
        manifest = self.generation(name)
        if manifest is None:
            raise damaged(address, f"its record {name} is missing or not as it was written")
        return manifest

    def generation(self, path: str) -> Manifest | None:
        """A generation of the record; None where it is missing, or its content is not what its name says."""
        shape = _GENERATION.fullmatch(path)
        data = self.place.read(path)
        if shape is None or data is None or digits(data) != shape[2]:
            return None
        return parsed(json.loads(data), self.place.address)

    def pointed(self) -> str | None:
        """The generation that the pointer names, whether it is there or not; None where the pointer cannot be read."""
        try:
            name = json.loads(self.place.read(POINTER) or b"").get("record")
        except (ValueError, AttributeError):
            return None
        return name if isinstance(name, str) and _GENERATION.fullmatch(name) else None

    def _owned(self) -> bool:
        found = survey(self.place.files())
        return bool(found.data or found.generations)

    def _without_pointer(self) -> None:
        address = self.place.address
        found = survey(self.place.files())
        generations = [self.generation(path) for path in found.generations]
        # the very first commit may have been killed between the record and the pointer
        if found.data or any(made is None or not made.empty for made in generations):
            raise damaged(address, f"it has data and no {POINTER}")
        if found.foreign:
            some = ", ".join(found.foreign[:3]) + (" and more" if len(found.foreign) > 3 else "")
            raise UsageError(
                f"{address} is no store of a sweep, and not empty: it holds {some}",
                "Choose an empty folder or a new one: a sweep makes a store nowhere else",
            )

    def commit(self, manifest: Manifest) -> Manifest:
        """Make it the one that counts. BusyError where somebody else committed since this one looked."""
        made = replace(manifest, generation=manifest.generation + 1, first_form=False)
        text = json.dumps(made.to_dict(), indent=1, sort_keys=True) + "\n"
        path = f"records/{made.generation:08}-{digits(text.encode())}.json"
        pointer = json.dumps({"generation": made.generation, "oomdoc_dataset": DATASET_VERSION, "record": path}) + "\n"
        with faults.writing(self.place.address):
            self.place.write(path, text.encode())
            if self.place.read(POINTER) != self._seen:
                raise BusyError(
                    f"another sweep has written into {self.place.address}", "A store is swept by one at a time"
                )
            self.place.write(POINTER, pointer.encode())
        self._seen = pointer.encode()
        return made

    def intended(self, current: int) -> list[str]:
        """Files that a run said it would write: what it left behind if it was killed.

        Nothing where that note is damaged, or younger than the `current` generation: then the record was put back to an
        older one, and the files may be what came after it.
        """
        try:
            told = json.loads(self.place.read(INTENDED) or b"{}")
            paths = told.get("files", []) if int(told.get("generation", 0)) <= current else []
        except (ValueError, AttributeError, TypeError):
            return []
        return [path for path in paths if isinstance(path, str) and is_data(path)]

    def intend(self, paths: Iterable[str], current: int) -> None:
        """Note files before they are written, on top of the `current` generation."""
        with faults.writing(self.place.address):
            note = {"files": sorted(paths), "generation": current}
            self.place.write(INTENDED, (json.dumps(note, indent=1) + "\n").encode())

    def prune(self, names: Iterable[str], current: int) -> None:
        """Remove generations that are too old to be kept, and records that a killed run has not completed."""
        for name in names:
            shape = _GENERATION.fullmatch(name)
            if shape is None:
                if _unfinished(name) and not is_data(name.replace(temporary(""), "")):
                    self.place.delete(name)
            elif int(shape[1]) <= current - KEPT_GENERATIONS and self.generation(name) is not None:
                self.place.delete(name)


def parsed(told: Mapping[str, Any], address: str) -> Manifest:
    """A record out of its JSON; DamagedError where it is none, or names files that cannot be a store's."""
    try:
        made = Manifest(
            tuple(Part(**part) for part in told["files"]),
            tuple(tuple(Part(**part) for part in batch) for batch in told["pending"]),
            tuple(told["retired"]),
            tuple(told["nights"]),
            tuple(Part(**part) for part in told.get("lost", ())),
            int(told.get("generation", 0)),
            states=tuple({str(name): str(value) for name, value in entry.items()} for entry in told.get("states", ())),
        )
        strange = [path for path in (*(part.path for part in made.parts), *made.retired) if not is_data(path)]
    except (ValueError, KeyError, TypeError):
        raise damaged(address, "its record cannot be understood") from None
    if strange:
        raise damaged(address, f"its record names {strange[0]}, which is no file of a store")
    return made
