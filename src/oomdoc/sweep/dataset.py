"""The dataset of a store: Parquet files by table and night, a manifest that says which of them count, and a lock.

Files are written first and never changed; then one small file, the manifest, is replaced as a whole. A reader that goes
through the manifest sees one commit or the next, never half of one. What a sweep has finished so far waits as `pending`:
safe from a crash, and not part of the tables until the night is committed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from oomdoc.errors import BundleError, BusyError, UsageError
from oomdoc.sweep.columns import DATASET_VERSION, TABLES, arrow_schema, arrow_table
from oomdoc.sweep.places import TEMPORARY, Access, Bucket, Folder, Place, place, sentence
from oomdoc.units import MIB

MANIFEST = "manifest.json"
_LOCK = "lock"
_FILE_BYTES = 32 * MIB  # files are joined up to here, packed: a reader's row groups stay large, and memory bounded
_ROW_GROUP = {"evidence": 64, "grown": 8}  # fetched by bundle: a few kilobytes each, a few megabytes at most
_KEPT = ("evidence", "grown")  # for the bundle's content of the moment alone
_LEASE_NS = 600 * 10**9  # a claim in an object store that nobody renewed for so long is of a dead sweep
_RENEW_S = 60.0


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
    """

    files: tuple[Part, ...] = ()
    pending: tuple[tuple[Part, ...], ...] = ()
    retired: tuple[str, ...] = ()
    nights: tuple[Mapping[str, Any], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Its JSON form."""
        return {
            "oomdoc_dataset": DATASET_VERSION,
            "nights": [dict(night) for night in self.nights],
            "files": [part.__dict__ for part in self.files],
            "pending": [[part.__dict__ for part in batch] for batch in self.pending],
            "retired": list(self.retired),
        }


@dataclass
class Dataset:
    """A store that is open: its place and the manifest as it stands."""

    place: Place
    manifest: Manifest = field(default_factory=Manifest)

    def load(self) -> Dataset:
        """Read the manifest again; UsageError where the folder holds something else, or a version that this one cannot read."""
        data = self.place.read(MANIFEST)
        self.manifest = Manifest() if data is None else _manifest(data, self.place.address)
        return self

    # ---- writing

    def batch(self, night: str, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Keep what is finished so far: from here on a crash does not lose it."""
        parts = [self._write(name, night, arrow_table(name, rows[name])) for name in TABLES if rows.get(name)]
        if parts:
            self._commit(
                Manifest(
                    self.manifest.files,
                    (*self.manifest.pending, tuple(parts)),
                    self.manifest.retired,
                    self.manifest.nights,
                )
            )

    def commit_night(self, night: str, counts: Mapping[str, Any] | None, copies: Mapping[str, str]) -> None:
        """Make the pending batches part of the dataset: of each bundle the last word of the night, small files joined.

        `copies` maps a bundle to the one with the same content that the findings are told of.
        """
        mine = [batch for batch in self.manifest.pending if batch[0].night == night]
        others = tuple(batch for batch in self.manifest.pending if batch[0].night != night)
        before = [part for part in self.manifest.files if part.night == night]
        groups = [tuple(before), *mine] if before else mine
        told, seen = self._last_words("bundle", groups), self._last_words("seen", groups)
        parts = [part for part in self.manifest.files if part.night != night]
        for name in TABLES:
            parts += self._joined(name, night, groups, seen if name == "seen" else told, copies)
        nights = [entry for entry in self.manifest.nights if entry["night"] != night]
        known = [dict(counts)] if counts else [entry for entry in self.manifest.nights if entry["night"] == night]
        made = sorted([*nights, *(known or [{"night": night}])], key=lambda entry: str(entry["night"]))
        self._replace(parts, others, made)

    def _last_words(self, table: str, groups: Sequence[Sequence[Part]]) -> dict[str, int]:
        """Bundle -> the number of the batch that spoke of it last."""
        return {
            key: number
            for number, batch in enumerate(groups)
            for part in batch
            if part.table == table
            for key in self.read(part, ["bundle"]).column(0).to_pylist()
        }

    def _joined(self, name: str, night: str, groups: Sequence[Sequence[Part]], last: Mapping[str, int], copies: Mapping[str, str]) -> Iterator[Part]:  # fmt: skip
        """The files of one table of one night, in order of bundle inside each; memory for one file's rows at a time."""
        import pyarrow as pa

        held: list[Any] = []
        size = 0
        for number, batch in enumerate(groups):
            for part in batch:
                if part.table != name:
                    continue
                table = self.read(part)
                keys = table.column("bundle").to_pylist()
                keep = [last[key] == number and (name in ("bundle", "seen") or key not in copies) for key in keys]
                table = table.filter(pa.array(keep, pa.bool_())) if not all(keep) else table
                if name == "bundle":
                    table = _with_copies(table, copies)
                held.append(table)
                size += part.bytes
                if size >= _FILE_BYTES:
                    yield from self._whole(name, night, held)
                    held, size = [], 0
        yield from self._whole(name, night, held)

    def _whole(self, name: str, night: str, held: Sequence[Any]) -> Iterator[Part]:
        import pyarrow as pa

        if not held:
            return
        table = pa.concat_tables(held)
        # stable: rows of one bundle keep their order
        order = sorted(range(table.num_rows), key=table.column("bundle").to_pylist().__getitem__)
        if order:
            yield self._write(name, night, table.take(pa.array(order)))

    def retain(self, since: str, living: Mapping[str, tuple[str, str | None]]) -> None:
        """Drop nights before `since`; of those the ledger rows of `living` bundles stay, so that nothing is read anew.

        `living` maps a bundle that is still there to its newest night and content. Kept evidence that nobody can ask for any
        more goes in any case.
        """
        import pyarrow as pa

        parts: list[Part] = []
        for part in self.manifest.files:
            old = part.night < since
            if part.table not in ("bundle", "seen", *_KEPT) or (part.table not in _KEPT and not old):
                if not old:
                    parts.append(part)
                continue
            if part.table in _KEPT:
                held = self.read(part, ["bundle", "sha256"]).to_pylist()
                keep = [living.get(row["bundle"], ("", None))[1] == row["sha256"] for row in held]
            else:
                keys = self.read(part, ["bundle"]).column(0).to_pylist()
                keep = [key in living and (part.table == "seen" or living[key][0] == part.night) for key in keys]
            if all(keep) or (not old and sum(keep) * 2 >= len(keep)):
                parts.append(part)
            elif any(keep):
                parts.append(self._write(part.table, part.night, self.read(part).filter(pa.array(keep, pa.bool_()))))
        nights = [entry for entry in self.manifest.nights if str(entry["night"]) >= since]
        if parts != list(self.manifest.files) or len(nights) != len(self.manifest.nights):
            self._replace(parts, self.manifest.pending, nights, keep_retired=True)

    def sweep_away(self) -> None:
        """Remove what no commit speaks of: files retired by the last run, and those of a run that was killed."""
        named = {
            part.path for part in (*self.manifest.files, *(part for batch in self.manifest.pending for part in batch))
        }
        for name in self.place.names():
            folder, _, file = name.rpartition("/")
            if name not in named and (folder.split("/")[0] in TABLES or (not folder and file.startswith(TEMPORARY))):
                self.place.delete(name)
        if self.manifest.retired:
            self._commit(Manifest(self.manifest.files, self.manifest.pending, (), self.manifest.nights))

    def _replace(
        self,
        parts: Sequence[Part],
        pending: Sequence[Sequence[Part]],
        nights: Sequence[Mapping[str, Any]],
        keep_retired: bool = False,
    ) -> None:
        kept = {part.path for part in (*parts, *(part for batch in pending for part in batch))}
        waited = {part.path for batch in self.manifest.pending for part in batch} - kept
        gone = {part.path for part in self.manifest.files} - kept
        if keep_retired:
            gone |= set(self.manifest.retired) - kept
        ordered = sorted(parts, key=lambda part: (part.night, list(TABLES).index(part.table), part.path))
        self._commit(
            Manifest(tuple(ordered), tuple(tuple(batch) for batch in pending), tuple(sorted(gone)), tuple(nights))
        )
        for path in sorted(waited - gone):  # no reader was ever sent there
            self.place.delete(path)

    def _commit(self, manifest: Manifest) -> None:
        text = json.dumps(manifest.to_dict(), indent=1, sort_keys=True) + "\n"
        with _told(self.place.address):
            self.place.write(MANIFEST, text.encode())
        self.manifest = manifest

    def _write(self, name: str, night: str, table: Any) -> Part:
        import pyarrow.parquet as pq

        out = io.BytesIO()
        group = _ROW_GROUP.get(name, 100_000)
        pq.write_table(table, out, compression="zstd", row_group_size=group, use_dictionary=name not in _KEPT)
        data = out.getvalue()
        path = f"{name}/day={night}/{hashlib.sha256(data).hexdigest()[:20]}.parquet"
        with _told(self.place.address):
            self.place.write(path, data)
        return Part(name, night, path, table.num_rows, len(data))

    # ---- reading

    def read(self, part: Part, columns: Sequence[str] | None = None) -> Any:
        """One file as a pyarrow table."""
        import pyarrow.parquet as pq

        files, base = self.place.arrow()
        try:
            return pq.read_table(
                f"{base}/{part.path}", filesystem=files, columns=list(columns) if columns else None, partitioning=None
            )
        except (OSError, ValueError) as problem:
            raise BundleError(
                f"{self.place.address}/{part.path} cannot be read: {sentence(problem)}",
                "The store is damaged: sweep into a new one",
            ) from None

    def grown(self, part: Part, bundle: str, sha256: str) -> list[tuple[str, bytes]]:
        """(path, state) of the files of one bundle and content in a file of table `grown`; memory for one row group."""
        import pyarrow.parquet as pq

        files, base = self.place.arrow()
        found = []
        try:
            with pq.ParquetFile(f"{base}/{part.path}", filesystem=files) as file:
                for group in range(file.num_row_groups):
                    keys = file.read_row_group(group, ["bundle", "sha256"]).to_pylist()
                    at = [place for place, row in enumerate(keys) if (row["bundle"], row["sha256"]) == (bundle, sha256)]
                    if at:
                        columns = file.read_row_group(group, ["source", "state"]).take(at).to_pydict()
                        found += list(zip(columns["source"], columns["state"], strict=True))
        except (OSError, ValueError):
            return []  # it is read whole
        return found

    def tables(self) -> dict[str, Any]:
        """Every table as a pyarrow dataset over the committed files; one without rows too."""
        import pyarrow as pa
        import pyarrow.dataset as ds

        files, base = self.place.arrow()
        made = {}
        for name, table in TABLES.items():
            paths = [f"{base}/{part.path}" for part in self.manifest.files if part.table == name]
            schema = arrow_schema(table)
            made[name] = (
                ds.dataset(paths, schema=schema, format="parquet", filesystem=files, partitioning=None)
                if paths
                else ds.dataset(pa.Table.from_batches([], schema=schema))
            )
        return made


def _with_copies(table: Any, copies: Mapping[str, str]) -> Any:
    import pyarrow as pa

    keys = table.column("bundle").to_pylist()
    if not any(key in copies for key in keys):
        return table
    for name, told in (("status", "copy"), ("new_failures", 0)):
        old = table.column(name).to_pylist()
        new = [told if key in copies else value for key, value in zip(keys, old, strict=True)]
        table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), pa.array(new, table.schema.field(name).type))  # fmt: skip
    origin = table.schema.get_field_index("copy_of")
    return table.set_column(
        origin, table.schema.field(origin), pa.array([copies.get(key) for key in keys], pa.string())
    )


def existing(address: str, access: Access) -> Dataset:
    """The dataset of a store that is there; UsageError where there is none."""
    there = place(address, access)
    if there.read(MANIFEST) is None:
        raise UsageError(f"{address} is no store of a sweep", "Name the folder or URI that --store had")
    return Dataset(there).load()


def _manifest(data: bytes, address: str) -> Manifest:
    try:
        held = json.loads(data)
        version = held["oomdoc_dataset"]
        if version != DATASET_VERSION:
            raise UsageError(
                f"{address} was written by another version of oomdoc (dataset {version}, this one writes {DATASET_VERSION})",
                "Name another folder with --store",
            )
        return Manifest(
            tuple(Part(**part) for part in held["files"]),
            tuple(tuple(Part(**part) for part in batch) for batch in held["pending"]),
            tuple(held["retired"]),
            tuple(held["nights"]),
        )
    except (ValueError, KeyError, TypeError):
        raise UsageError(f"{address}/{MANIFEST} is not that of a sweep", "Name another folder with --store") from None


@contextmanager
def _told(address: str) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise BundleError(
            f"the store {address} cannot be written: {sentence(problem)}",
            "What was committed before is whole; make room and sweep again, it goes on from there",
        ) from None


# ---- one sweep at a time


@contextmanager
def locked(place: Place) -> Iterator[None]:
    """Hold the store alone; BusyError where another sweep does."""
    with _locked_folder(place) if isinstance(place, Folder) else _locked_bucket(place):
        yield


def _busy(address: str) -> BusyError:
    return BusyError(f"another sweep is at work on {address}", "Wait for it: a store is swept by one at a time")


@contextmanager
def _locked_folder(place: Folder) -> Iterator[None]:
    """The system's own lock: it goes with the process, however that ends."""
    try:
        import fcntl
    except ImportError:
        raise UsageError("a store on this system's file system cannot be locked", "Sweep on Linux or macOS, or into an object store") from None  # fmt: skip
    try:
        handle = os.open(place.root / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as problem:
        raise UsageError(
            f"the store {place.root} cannot be written: {sentence(problem)}", "Choose a folder that can be written"
        ) from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise _busy(place.address) from None
        yield
    finally:
        os.close(handle)


@contextmanager
def _locked_bucket(place: Bucket) -> Iterator[None]:
    """A claim beside the data. Everybody writes a claim, then looks: who sees a living claim of somebody else steps back.

    Stores show a written object in every listing from then on, so of two that claim at once at least one sees the other;
    both may step back, never both go on. Ages are taken from the store's clock alone.
    """
    name = f"{_LOCK}/{secrets.token_hex(8)}"
    with _told(place.address):
        place.write(name, b"")
    stop = threading.Event()

    def renew() -> None:
        while not stop.wait(_RENEW_S):
            with suppress(OSError):
                place.write(name, b"")

    try:
        claims = {claim: written for claim, written in place.times().items() if claim.startswith(f"{_LOCK}/")}
        now = claims.get(name, time.time_ns())
        if any(claim != name and now - written < _LEASE_NS for claim, written in claims.items()):
            raise _busy(place.address)
        for claim in claims:
            if claim != name:
                place.delete(claim)
        keeper = threading.Thread(target=renew, name="oomdoc-lease", daemon=True)
        keeper.start()
        yield
    finally:
        stop.set()
        with suppress(OSError):
            place.delete(name)
