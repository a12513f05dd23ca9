"""Reading a store's files with a proof: each has the hash of its content in its name, and is hashed before it is used.

Readers are given paths of local files alone: of a folder its own, of an object store copies that were fetched whole. So a
fault of the network meets nobody in the middle of a table.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path

from oomdoc.errors import BundleError
from oomdoc.sweep.faults import sentence
from oomdoc.sweep.places import Folder, Place
from oomdoc.sweep.record import Part, damaged, digits, hash_of, twice
from oomdoc.units import show_bytes


class Files:
    """The files of a store by their paths in it; each is hashed once. Copies of objects lie below `scratch` until the end."""

    def __init__(self, place: Place, scratch: Path | None = None) -> None:
        self._place = place
        self._proven: set[str] = set()
        if isinstance(place, Folder):
            self._root = place.root.absolute()
        else:
            self._root = Path(tempfile.mkdtemp(prefix="oomdoc-store-", dir=scratch))
            weakref.finalize(self, shutil.rmtree, self._root, ignore_errors=True)

    def at(self, path: str) -> str:
        """Where a file is once it is `need`ed."""
        return str(self._root / path)

    def need(self, path: str) -> str:
        """Where a proven file is. BundleError where it cannot be read, DamagedError where it is not what was written."""
        if path not in self._proven:
            twice(lambda: self._prove(path))
            self._proven.add(path)
        return self.at(path)

    def _prove(self, path: str) -> None:
        place = self._place
        try:
            if isinstance(place, Folder):
                data = None
                found = place.digest(path)
            else:
                data = place.read(path)
                found = None if data is None else digits(data)
        except OSError as problem:
            raise BundleError(
                f"{place.address}/{path} cannot be read: {sentence(problem)}",
                "Nothing says that the store is damaged: go on when it answers",
            ) from None
        if found is None:
            raise damaged(place.address, f"{path} is missing")
        if not found.startswith(hash_of(path)):
            raise damaged(place.address, f"the content of {path} is not what was written")
        if data is not None:
            copy = self._root / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(data)


def sized(place: Place, parts: Sequence[Part], sizes: Mapping[str, int]) -> None:
    """DamagedError where a file is missing or has another size than the record says: one listing shows it for all."""
    for part in parts:
        size = sizes.get(part.path)
        if size is None:
            raise damaged(place.address, f"{part.path} is missing")
        if size != part.bytes:
            raise damaged(
                place.address, f"{part.path} has {show_bytes(size)} and was written with {show_bytes(part.bytes)}"
            )
