"""The dataset of a store: Parquet files by table and night, as its record names them.

Files are written first and never changed; then the record (`record`) is replaced as a whole. A reader that goes through it
sees one commit or the next, never half of one. What a sweep has finished so far waits as `pending`: safe from a crash, and
not part of the tables until the night is committed.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from oomdoc.errors import UsageError
from oomdoc.sweep import faults
from oomdoc.sweep.checked import Files, sized
from oomdoc.sweep.columns import TABLES, arrow_schema, arrow_table
from oomdoc.sweep.locks import Still
from oomdoc.sweep.places import Access, Folder, Place, place, temporary
from oomdoc.sweep.record import Book, Manifest, Part, data_path, twice
from oomdoc.units import MIB

_FILE_BYTES = 32 * MIB  # files are joined up to here, packed: a reader's row groups stay large, and memory bounded
_ROW_GROUP = {"evidence": 64, "grown": 8}  # fetched by bundle: a few kilobytes each, a few megabytes at most
_KEPT = ("evidence", "grown")  # for the bundle's content of the moment alone


@dataclass
class Dataset:
    """A store that is open: its place and the manifest as it stands. `still` raises where the lock was lost; copies of
    objects lie below `scratch`, None: where the system keeps temporary files.
    """

    place: Place
    manifest: Manifest = field(default_factory=Manifest)
    still: Still = lambda: None
    scratch: Path | None = None

    def __post_init__(self) -> None:
        self._book = Book(self.place)
        self._files = Files(self.place, self.scratch)
        self._intended: set[str] = set()

    def load(self) -> Dataset:
        """Read the record again: an empty one where the place is empty. Errors as `Book.load`."""
        self.manifest = self._book.load() or Manifest()
        self._intended = {part.path for batch in self.manifest.pending for part in batch}
        return self

    # ---- before and after

    def prepare(self) -> list[str]:
        """Make the store where there is none, and put away what runs before this one left; what a person should know.

        DamagedError where a file is missing or has another size than was written.
        """
        before = self.manifest
        if before.empty and not before.generation:
            self._commit(before)
            return []
        names = twice(self._sized)
        said = []
        if before.first_form:
            self._commit(before)
            said.append(f"the store {self.place.address} was written by an earlier oomdoc: its record is kept in generations from now on")  # fmt: skip
        named = {part.path for part in self.manifest.parts}
        for path in sorted({*self._book.intended(self.manifest.generation), *self.manifest.retired} - named):
            self._remove(path)
        if self.manifest.retired:
            self._commit(replace(self.manifest, retired=()))
        self._book.prune(names, self.manifest.generation)
        return said

    def _sized(self) -> list[str]:
        """The names of all that lies in the place; DamagedError where one listing shows damage."""
        sizes = {name: seen.bytes for name, seen in self.place.files().items()}
        sized(self.place, self.manifest.parts, sizes)
        return list(sizes)

    def _remove(self, path: str) -> None:
        """Remove a file that the record names, finished or not."""
        self.place.delete(path)
        if isinstance(self.place, Folder):
            self.place.delete(temporary(path))

    # ---- writing

    def batch(self, night: str, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Keep what is finished so far: from here on a crash does not lose it."""
        parts = self._written((name, night, arrow_table(name, rows[name])) for name in TABLES if rows.get(name))
        if parts:
            self._commit(replace(self.manifest, pending=(*self.manifest.pending, tuple(parts))))

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
        table = pa.concat_tables(held, promote_options="default")  # an earlier program of this night knew fewer columns
        # stable: rows of one bundle keep their order
        order = sorted(range(table.num_rows), key=table.column("bundle").to_pylist().__getitem__)
        if order:
            yield self.add(name, night, table.take(pa.array(order)))

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
                parts.append(self.add(part.table, part.night, self.read(part).filter(pa.array(keep, pa.bool_()))))
        nights = [entry for entry in self.manifest.nights if str(entry["night"]) >= since]
        if parts != list(self.manifest.files) or len(nights) != len(self.manifest.nights):
            self._replace(parts, self.manifest.pending, nights, keep_retired=True)

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
            replace(
                self.manifest,
                files=tuple(ordered),
                pending=tuple(tuple(batch) for batch in pending),
                retired=tuple(sorted(gone)),
                nights=tuple(nights),
                lost=tuple(part for part in self.manifest.lost if part.path not in kept),
            )
        )
        for path in sorted(waited - gone):  # no reader was ever sent there
            self._remove(path)

    def mend(self, manifest: Manifest) -> None:
        """Make a record that was put together anew the one that counts."""
        self._commit(manifest)

    def _commit(self, manifest: Manifest) -> None:
        self.still()
        self.manifest = self._book.commit(manifest)

    def add(self, name: str, night: str, table: Any) -> Part:
        """Write a file; it counts from the commit on that names it."""
        return self._written([(name, night, table)])[0]

    def _written(self, tables: Iterable[tuple[str, str, Any]]) -> list[Part]:
        """Tables as files. Their names are noted before: what a run that is killed leaves is known as the store's own."""
        import pyarrow.parquet as pq

        made = []
        for name, night, table in tables:
            out = io.BytesIO()
            group = _ROW_GROUP.get(name, 100_000)
            pq.write_table(table, out, compression="zstd", row_group_size=group, use_dictionary=name not in _KEPT)
            data = out.getvalue()
            made.append((Part(name, night, data_path(name, night, data), table.num_rows, len(data)), data))
        if not made:
            return []
        self._intended |= {part.path for part, _ in made}
        self._book.intend(self._intended, self.manifest.generation)
        for part, data in made:
            with faults.writing(self.place.address):
                self.place.write(part.path, data)
        return [part for part, _ in made]

    # ---- reading

    def need(self, part: Part) -> None:
        """Prove a file: BundleError where a file cannot be read, DamagedError where it is not what was written."""
        self._files.need(part.path)

    def read(self, part: Part, columns: Sequence[str] | None = None) -> Any:
        """One file as a pyarrow table."""
        return self.read_path(part.path, columns)

    def read_path(self, path: str, columns: Sequence[str] | None = None) -> Any:
        """One file as a pyarrow table, by its path in the store."""
        import pyarrow.parquet as pq

        names = list(columns) if columns else None
        return pq.read_table(self._files.need(path), columns=names, partitioning=None)

    def grown(self, part: Part, bundle: str, sha256: str) -> list[tuple[str, bytes]]:
        """(path, state) of the files of one bundle and content in a file of table `grown`; memory for one row group."""
        import pyarrow.parquet as pq

        found = []
        with pq.ParquetFile(self._files.need(part.path)) as file:
            for group in range(file.num_row_groups):
                keys = file.read_row_group(group, ["bundle", "sha256"]).to_pylist()
                at = [place for place, row in enumerate(keys) if (row["bundle"], row["sha256"]) == (bundle, sha256)]
                if at:
                    columns = file.read_row_group(group, ["source", "state"]).take(at).to_pydict()
                    found += list(zip(columns["source"], columns["state"], strict=True))
        return found

    def tables(self) -> dict[str, Any]:
        """Every table as a pyarrow dataset over the committed files, to be read once they are `need`ed; one without rows too."""
        import pyarrow as pa
        import pyarrow.dataset as ds
        from pyarrow import fs

        made = {}
        for name, table in TABLES.items():
            paths = [self._files.at(part.path) for part in self.manifest.files if part.table == name]
            schema = arrow_schema(table)
            made[name] = (
                ds.FileSystemDataset.from_paths(
                    paths, schema=schema, format=ds.ParquetFileFormat(), filesystem=fs.LocalFileSystem()
                )
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
    dataset = Dataset(place(address, access)).load()
    if not dataset.manifest.generation and not dataset.manifest.first_form:
        raise UsageError(f"{address} is no store of a sweep", "Name the folder or URI that --store had")
    return dataset
