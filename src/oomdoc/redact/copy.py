"""Writes the copy: the same folder, archive or file, archives within archives included, with redacted members.

Members come from `Intake` within its limits, one after the other, and their `layers` say which archives are open. Sizes
are known only when a member is written, so each is kept in a nameless temporary file of the scratch folder until its archive
takes it; memory does not grow with the bundle. Owners, modes and times of archives are not carried over.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import shutil
import stat
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Protocol, cast

from oomdoc.faults import unwritable
from oomdoc.intake.members import Layer

_BLOCK = 1 << 20


class _Open(Protocol):
    """An archive that is being written."""

    def put(self, name: str, file: IO[bytes]) -> None:
        """Take in a member."""

    def close(self) -> IO[bytes]:
        """The finished archive, at its beginning."""


def _size(file: IO[bytes]) -> int:
    file.seek(0, 2)
    size = file.tell()
    file.seek(0)
    return size


class _Tar:
    def __init__(self, scratch: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=scratch)  # noqa: SIM115 - given away by `close`
        self._tar = tarfile.open(fileobj=self._file, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115 - closed by `close`

    def put(self, name: str, file: IO[bytes]) -> None:
        info = tarfile.TarInfo(name)
        info.size, info.mode = _size(file), 0o600
        self._tar.addfile(info, file)

    def close(self) -> IO[bytes]:
        self._tar.close()
        self._file.seek(0)
        return self._file


class _Zip:
    def __init__(self, scratch: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=scratch)  # noqa: SIM115 - given away by `close`
        self._zip = zipfile.ZipFile(self._file, "w", zipfile.ZIP_DEFLATED)

    def put(self, name: str, file: IO[bytes]) -> None:
        info = zipfile.ZipInfo(name)  # of 1980-01-01, the oldest that the format has
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = (stat.S_IFREG | 0o600) << 16
        with self._zip.open(info, "w", force_zip64=_size(file) > 1 << 31) as member:
            shutil.copyfileobj(file, member, _BLOCK)

    def close(self) -> IO[bytes]:
        self._zip.close()
        self._file.seek(0)
        return self._file


class _Packed:
    """One compressed stream."""

    def __init__(self, form: str, scratch: Path) -> None:
        self._form = form
        self._file = tempfile.TemporaryFile(dir=scratch)  # noqa: SIM115 - given away by `close`

    def put(self, name: str, file: IO[bytes]) -> None:
        file.seek(0)
        if self._form == "zstd":
            import zstandard

            zstandard.ZstdCompressor().copy_stream(file, self._file)
            return
        if self._form == "gzip":
            packed: IO[bytes] = cast("IO[bytes]", gzip.GzipFile("", "wb", 6, self._file, mtime=0))
        elif self._form == "xz":
            packed = cast("IO[bytes]", lzma.LZMAFile(self._file, "wb", preset=1))  # noqa: SIM115 - closed below
        else:
            packed = cast("IO[bytes]", bz2.BZ2File(self._file, "wb"))
        with packed:
            shutil.copyfileobj(file, packed, _BLOCK)

    def close(self) -> IO[bytes]:
        self._file.seek(0)
        return self._file


def _new(layer: Layer, scratch: Path) -> _Open:
    return (
        _Tar(scratch) if layer.form == "tar" else _Zip(scratch) if layer.form == "zip" else _Packed(layer.form, scratch)
    )


_NAMED: Mapping[str, tuple[str, ...]] = {
    ".tar.gz": ("gzip", "tar"), ".tgz": ("gzip", "tar"), ".tar.bz2": ("bzip2", "tar"), ".tbz": ("bzip2", "tar"), ".tbz2": ("bzip2", "tar"),
    ".tar.xz": ("xz", "tar"), ".txz": ("xz", "tar"), ".tar.zst": ("zstd", "tar"), ".tzst": ("zstd", "tar"), ".tar": ("tar",), ".zip": ("zip",),
}  # fmt: skip


def named_layers(name: str) -> tuple[Layer, ...]:
    """The archive that a file's name promises, from the outside in; empty where it promises none.

    >>> [layer.form for layer in named_layers("copy.tar.gz")], named_layers("copy")
    (['gzip', 'tar'], ())
    """
    low = name.lower()
    return next(
        (tuple(Layer(form, "", "") for form in forms) for end, forms in _NAMED.items() if low.endswith(end)), ()
    )


class Copy:
    """The copy being written. `target` is a folder to fill (`is_folder`) or the one file or archive itself; `around` is packed around all of it."""

    def __init__(self, target: Path, is_folder: bool, scratch: Path, around: tuple[Layer, ...] = ()) -> None:
        self._target = target
        self._around = around
        self._is_folder = is_folder
        self._scratch = scratch
        self._open: list[tuple[Layer, str, _Open]] = []
        self.paths: set[str] = set()
        self.layers: tuple[Layer, ...] = ()

    def put(self, path: str, layers: tuple[Layer, ...], name_of: Naming, file: IO[bytes]) -> None:
        """Take in a member whose path and layers are those of the original; `name_of` renames."""
        layers = (*self._around, *layers)
        shared = 0
        for (mine, _, _), theirs in zip(self._open, layers, strict=False):
            if mine != theirs:
                break
            shared += 1
        while len(self._open) > shared:
            self._close_last()
        for layer in layers[shared:]:
            self._open.append((layer, self._name(layer.label, name_of), _new(layer, self._scratch)))
        self.layers = layers
        self._give(self._name(path, name_of), file)

    def add(self, name: str, file: IO[bytes]) -> bool:
        """Take in one more member beside the last ones, in the outermost archive or folder; False where there is none."""
        outer = next((place for place, (layer, _, _) in enumerate(self._open) if layer.form in ("tar", "zip")), None)
        if self._is_folder:
            while self._open:
                self._close_last()
        elif outer is None:
            return False
        else:
            while len(self._open) > outer + 1:
                self._close_last()
        self._give(name, file)
        return True

    def finish(self) -> None:
        """Close what is open."""
        while self._open:
            self._close_last()

    def _name(self, path: str, name_of: Naming) -> str:
        """The path of a member or archive within the innermost archive that is open around it."""
        if not self._open:
            return name_of(path)
        return name_of(path[len(self._open[-1][0].inside) :])

    def _give(self, name: str, file: IO[bytes]) -> None:
        if self._open:
            self._open[-1][2].put(name, file)
            return
        file.seek(0)
        target = self._target
        if self._is_folder:
            target = self._target / name
            while target.exists() or str(target) in self.paths:
                target = target.with_name(target.name + "_")
        try:
            if self._is_folder:
                for folder in reversed(target.relative_to(self._target).parents[:-1]):
                    (self._target / folder).mkdir(mode=0o700, exist_ok=True)
            handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
            with os.fdopen(handle, "wb") as out:
                os.fchmod(handle, 0o600)  # whatever the umask
                shutil.copyfileobj(file, out, _BLOCK)
        except OSError as problem:
            raise unwritable(problem, str(target)) from None

    def _close_last(self) -> None:
        _, name, archive = self._open.pop()
        with archive.close() as file:
            self._give(name, file)


class Naming(Protocol):
    """Renames a path."""

    def __call__(self, path: str) -> str:
        """The path in the copy."""
