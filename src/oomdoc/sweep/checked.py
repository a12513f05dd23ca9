"""Reading a store's files with a proof: each has the hash of its content in its name, and is hashed before it is used.

A file system for pyarrow, so that everything that reads a store through oomdoc, DuckDB's scans too, reads what was written.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import fs

from oomdoc.errors import BundleError
from oomdoc.sweep.faults import sentence
from oomdoc.sweep.places import Folder, Place
from oomdoc.sweep.record import Part, damaged, hash_of, twice
from oomdoc.units import MIB, show_bytes

_HELD_BYTES = 256 * MIB  # of objects, so that the questions of a morning fetch a file once


class Files(fs.FileSystemHandler):  # type: ignore[misc]
    """The files of a store by their paths in it, to be read only. `fault` is the first error that a reader met.

    A local file is hashed by its first opening; an object is fetched whole each time it is not at hand, and hashed.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.fault: BundleError | None = None
        self._whole: set[str] = set()
        self._held: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def arrow(self) -> Any:
        """It as a pyarrow file system."""
        return fs.PyFileSystem(self)

    def need(self, path: str) -> None:
        """BundleError where a file cannot be read, DamagedError where it is not what was written."""
        try:
            if isinstance(self.place, Folder):
                self._proven(self.place, path)
            else:
                self._fetched(path)
        except BundleError as problem:
            self.fault = self.fault or problem
            raise

    def open_input_file(self, path: str) -> Any:
        """A file, proven."""
        self.need(path)
        if isinstance(self.place, Folder):
            return fs.LocalFileSystem().open_input_file(str(self.place.root.absolute() / path))
        return pa.BufferReader(self._fetched(path))

    def open_input_stream(self, path: str) -> Any:
        """The same."""
        return self.open_input_file(path)

    def _proven(self, place: Folder, path: str) -> None:
        if path in self._whole:
            return

        def read() -> None:
            try:
                found = place.digest(path)
            except OSError as problem:
                raise self._unread(path, problem) from None
            self._hold(path, found)

        twice(read)
        self._whole.add(path)

    def _fetched(self, path: str) -> bytes:
        def read() -> bytes:
            try:
                data = self.place.read(path)
            except OSError as problem:
                raise self._unread(path, problem) from None
            self._hold(path, None if data is None else hashlib.sha256(data).hexdigest())
            return data or b""

        with self._lock:
            if path in self._held:
                self._held.move_to_end(path)
                return self._held[path]
            data = twice(read)
            self._held[path] = data
            while sum(map(len, self._held.values())) > _HELD_BYTES and len(self._held) > 1:
                self._held.popitem(last=False)
            return data

    def _hold(self, path: str, digest: str | None) -> None:
        """DamagedError unless the digest is the one in the name."""
        if digest is None:
            raise damaged(self.place.address, f"{path} is missing")
        if not digest.startswith(hash_of(path)):
            raise damaged(self.place.address, f"the content of {path} is not what was written")

    def _unread(self, path: str, problem: OSError) -> BundleError:
        return BundleError(
            f"{self.place.address}/{path} cannot be read: {sentence(problem)}",
            "Nothing says that the store is damaged: sweep again when its place answers",
        )

    # ---- what pyarrow asks for besides

    def get_type_name(self) -> str:
        """A name for messages."""
        return "store"

    def normalize_path(self, path: str) -> str:
        """Paths are used as they are."""
        return path

    def get_file_info(self, paths: Sequence[str]) -> list[Any]:
        """Every path is taken for a file: its opening shows."""
        return [fs.FileInfo(path, fs.FileType.File) for path in paths]

    def get_file_info_selector(self, selector: Any) -> list[Any]:
        """Nothing is listed: the record says what there is."""
        raise NotImplementedError

    def _refuse(self, *_: Any) -> Any:
        raise NotImplementedError("a store is read here, not written")

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = _refuse
    move = copy_file = open_output_stream = open_append_stream = _refuse


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
