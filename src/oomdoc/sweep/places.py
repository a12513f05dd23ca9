"""Where things lie: a local folder or an object store, with the few operations that a sweep needs.

Object stores are reached through pyarrow (`s3://`, `gs://`) with the credentials of the environment that every other tool
uses. A write is seen as a whole or not at all: local files are renamed into place, objects appear when they are complete.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from oomdoc.errors import BundleError, UsageError
from oomdoc.sweep.faults import patiently, sentence

SCHEMES = ("s3://", "gs://", "gcs://")
_TEMPORARY = ".writing-"
_CONNECT_S, _ANSWER_S = 10.0, 60.0  # what a connection and an answer of an object store may take, for one try


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
                options["region"] = patiently(lambda: fs.resolve_s3_region(path.split("/")[0]))
            return fs.S3FileSystem(
                **options, connect_timeout=_CONNECT_S, request_timeout=_ANSWER_S, allow_delayed_open=True
            ), path
        return fs.GcsFileSystem(**options, retry_time_limit=dt.timedelta(seconds=_ANSWER_S)), path
    except (OSError, ValueError, TypeError) as problem:
        raise BundleError(
            f"{uri} cannot be reached: {sentence(problem)}", "Check address, region and credentials"
        ) from None


class Folder:
    """A store's folder on a local file system, made by the first write. Names are relative and use `/`."""

    local = True

    def __init__(self, root: Path) -> None:
        self.root = root
        self.address = str(root)

    def make(self) -> None:
        """Make the folder, if it is not there; UsageError where that cannot be."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise UsageError(
                f"the store {self.root} cannot be made: {sentence(problem)}", "Choose a folder that can be written"
            ) from None

    def read(self, name: str) -> bytes | None:
        """The bytes of a file, None where there is none."""
        try:
            return (self.root / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, name: str, data: bytes) -> None:
        """Write a file as a whole: readers see the old one or the new one. OSError where that fails, and nothing is left.

        What a killed process leaves is named after the file (`temporary`), so that the store knows it as its own.
        """
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.root / temporary(name)
        beside.unlink(missing_ok=True)
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        except BaseException:
            with suppress(OSError):
                beside.unlink()
            raise
        _sync_folder(path.parent)

    def delete(self, name: str) -> None:
        """Remove a file, if it is there."""
        (self.root / name).unlink(missing_ok=True)

    def files(self) -> dict[str, Seen]:
        """Everything below that is no folder, in order of name: links and unfinished files too."""
        found = {}
        for folder, folders, names in os.walk(self.root):
            links = [name for name in folders if os.path.islink(f"{folder}/{name}")]  # noqa: PTH114
            for path in (Path(folder) / name for name in (*names, *links)):
                with suppress(FileNotFoundError):  # gone since it was listed
                    status = path.lstat()
                    name = path.relative_to(self.root).as_posix()
                    found[name] = Seen(name, status.st_size, status.st_mtime_ns)
        return {name: found[name] for name in sorted(found)}

    def digest(self, name: str) -> str | None:
        """SHA-256 of a file, 64 hex digits; None where there is none."""
        try:
            with (self.root / name).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except (FileNotFoundError, NotADirectoryError):
            return None


def temporary(name: str) -> str:
    """The name that a file has in a folder until it is complete."""
    folder, _, file = name.rpartition("/")
    return f"{folder}/{_TEMPORARY}{file}" if folder else f"{_TEMPORARY}{file}"


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

    def make(self) -> None:
        """Nothing: in an object store a folder is there when something is in it."""

    def read(self, name: str) -> bytes | None:
        """The bytes of an object, None where there is none. OSError where it cannot be had after all patience."""

        def whole() -> bytes:
            with self._fs.open_input_file(f"{self._base}/{name}") as file:
                data: bytes = file.read()
                if len(data) != file.size():
                    raise ConnectionError(f"{name} was cut at {len(data)} bytes of {file.size()}")
                return data

        try:
            return patiently(whole)
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        """Put an object: it appears when it is complete."""

        def put() -> None:
            with self._fs.open_output_stream(f"{self._base}/{name}", compression=None) as stream:
                stream.write(data)

        patiently(put)

    def delete(self, name: str) -> None:
        """Remove an object, if it is there."""
        with suppress(FileNotFoundError):
            patiently(lambda: self._fs.delete_file(f"{self._base}/{name}"))

    def files(self) -> dict[str, Seen]:
        """Every object below, in order of name, with its size and when the store says it was written."""
        return {seen.address: seen for seen in patiently(lambda: list(listing(self._fs, self._base)))}

    def digest(self, name: str) -> str | None:
        """SHA-256 of an object, 64 hex digits; None where there is none."""
        data = self.read(name)
        return None if data is None else hashlib.sha256(data).hexdigest()


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
