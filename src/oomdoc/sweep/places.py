"""Where things lie: a local folder or an object store, with the few operations that a sweep needs.

Object stores are reached through pyarrow (`s3://`, `gs://`) with the credentials of the environment that every other tool
uses. A write is seen as a whole or not at all: local files are renamed into place, objects appear when they are complete.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from oomdoc.errors import BundleError, UsageError

SCHEMES = ("s3://", "gs://", "gcs://")
TEMPORARY = ".writing-"


@dataclass(frozen=True)
class Access:
    """How object stores are reached; None and False: as the environment says."""

    endpoint_url: str | None = None
    anonymous: bool = False


class Seen(NamedTuple):
    """A file or object as a listing shows it. `changed_ns`: last change of the inode, 0 for objects."""

    address: str
    bytes: int
    modified_ns: int
    changed_ns: int = 0


def is_uri(text: str) -> bool:
    """Whether it names an object store."""
    return text.startswith(SCHEMES)


def need_pyarrow() -> None:
    """UsageError with the command to install it, where pyarrow is missing."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise UsageError("a sweep needs pyarrow, which is not installed", "pip install 'oomdoc[sweep]'") from None


def filesystem(uri: str, access: Access) -> tuple[Any, str]:
    """The pyarrow file system of a URI, and the path in it; UsageError for a scheme that nobody knows."""
    from pyarrow import fs

    scheme, _, rest = uri.partition("://")
    path = rest.rstrip("/")
    if not path:
        raise UsageError(f"{uri} names no bucket", "Write s3://BUCKET/PREFIX")
    endpoint_scheme, _, endpoint = (access.endpoint_url or "").rpartition("://")
    options: dict[str, Any] = {"anonymous": True} if access.anonymous else {}
    if access.endpoint_url:
        options |= {"endpoint_override": endpoint.rstrip("/"), "scheme": endpoint_scheme or "https"}
    try:
        if scheme == "s3":
            # named here, since pyarrow would ask the store for it before every run
            region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
            if region or access.endpoint_url:
                options["region"] = region or "us-east-1"
            else:
                options["region"] = fs.resolve_s3_region(path.split("/")[0])
            return fs.S3FileSystem(**options), path
        return fs.GcsFileSystem(**options), path
    except (OSError, ValueError, TypeError) as problem:
        raise BundleError(
            f"{uri} cannot be reached: {sentence(problem)}", "Check address, region and credentials"
        ) from None


def sentence(problem: BaseException) -> str:
    """An error of pyarrow or the system in one short line."""
    text = " ".join((getattr(problem, "strerror", None) or str(problem) or type(problem).__name__).split())
    return text[:300].rstrip(".")


class Folder:
    """A store's folder on a local file system. Names are relative and use `/`."""

    local = True

    def __init__(self, root: Path) -> None:
        self.root = root
        self.address = str(root)
        try:
            root.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise UsageError(
                f"the store {root} cannot be made: {sentence(problem)}", "Choose a folder that can be written"
            ) from None

    def read(self, name: str) -> bytes | None:
        """The bytes of a file, None where there is none."""
        try:
            return (self.root / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        """Write a file as a whole: readers see the old one or the new one. OSError where that fails, and nothing is left."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=TEMPORARY, dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).chmod(0o644)
            Path(temporary).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(temporary).unlink()
            raise
        _sync_folder(path.parent)

    def delete(self, name: str) -> None:
        """Remove a file, if it is there."""
        (self.root / name).unlink(missing_ok=True)

    def names(self) -> list[str]:
        """Every file below, in order of name, unfinished ones too."""
        return sorted(path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if path.is_file())

    def arrow(self) -> tuple[Any, str]:
        """The pyarrow file system and the folder's path in it."""
        from pyarrow import fs

        return fs.LocalFileSystem(), str(self.root.absolute())


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # some file systems have no such thing
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class Bucket:
    """A store's folder in an object store."""

    local = False

    def __init__(self, uri: str, access: Access) -> None:
        self.address = uri.rstrip("/")
        self._fs, self._base = filesystem(uri, access)

    def read(self, name: str) -> bytes | None:
        """The bytes of an object, None where there is none."""
        try:
            with self._fs.open_input_stream(f"{self._base}/{name}", compression=None) as stream:
                data: bytes = stream.read()
                return data
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        """Put an object: it appears when it is complete."""
        with self._fs.open_output_stream(f"{self._base}/{name}", compression=None) as stream:
            stream.write(data)

    def delete(self, name: str) -> None:
        """Remove an object, if it is there."""
        with suppress(FileNotFoundError):
            self._fs.delete_file(f"{self._base}/{name}")

    def names(self) -> list[str]:
        """Every object below, in order of name."""
        return [seen.address for seen in listing(self._fs, self._base)]

    def times(self) -> dict[str, int]:
        """Objects below and when the store says they were written, nanoseconds."""
        return {seen.address: seen.modified_ns for seen in listing(self._fs, self._base)}

    def arrow(self) -> tuple[Any, str]:
        """The pyarrow file system and the folder's path in it."""
        return self._fs, self._base


Place = Folder | Bucket


def place(address: str, access: Access) -> Place:
    """The folder of a store, local or not."""
    return Bucket(address, access) if is_uri(address) else Folder(Path(address))


def listing(files: Any, base: str) -> Iterator[Seen]:
    """Objects below a path of a pyarrow file system, in order, with addresses relative to it; nothing where it is absent."""
    from pyarrow import fs

    infos = files.get_file_info(fs.FileSelector(base, recursive=True, allow_not_found=True))
    for info in sorted(infos, key=lambda info: str(info.path)):
        if info.type == fs.FileType.File:
            relative = PurePosixPath(info.path).relative_to(base).as_posix()
            yield Seen(relative, int(info.size), int(info.mtime_ns or 0))
