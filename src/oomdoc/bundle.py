"""A folder, an archive, single files or `-` (standard input) become a stream of members: a path and its bytes.

Nothing is unpacked to disk and nothing is ever written under a name that an archive chose: members are read forward,
one at a time, however deep they lie (`node.tar.gz` in `bundle.zip`). Formats are told by their first bytes, never by
the file's name. Links, devices and pipes are never followed. What could not be read stands in `Intake.unread` with the
reason, and the rest is read all the same; only an input that gives nothing at all is a `BundleError`.

Reading bytes is the work of `streams.py`; here one generator, `Intake._open`, looks at the first bytes of a stream and
goes one layer deeper, and the limits are kept. This module does not know what a log is; it offers `binary_form` to tell
what is no text. docs/decisions/0008-intake-on-libraries.md says why it is built on libraries, and what that costs.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import os
import re
import stat
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from oomdoc.errors import BundleError
from oomdoc.streams import (
    BLOCK,
    BZIP2,
    DEFLATE,
    UNPRINTABLE,
    ZSTD,
    Checked,
    Form,
    Slice,
    Source,
    Stream,
    Unpacked,
    form_of,
    reason,
    stored_bytes,
    tar_headers,
)
from oomdoc.units import GIB, MIB, show_bytes

_SPOOL_IN_MEMORY = 4 * MIB  # a zip that cannot be sought in is kept in memory up to here, then in an unnamed file
_LABEL_CAP = 1024  # characters of a member's name; a header may claim megabytes
_ZIP_ENTRY_BYTES = 256  # of a zip's table of contents, per entry allowed: 46 are fixed, the rest is the name
_STDIN = Path("-")


@dataclass(frozen=True)
class Limits:
    """Where reading stops, so that a hostile or broken bundle costs bounded time and memory. Sizes are bytes.

    `max_members` counts files, links and an archive's folders over the whole bundle (a large must-gather has some ten
    thousand).
    `max_depth` is how many archives may lie inside each other: real ones have two or three, self-copying ones no end.
    `max_total_bytes` bounds what is handed out and, counted apart, what all decompressors together give.
    `max_member_bytes` bounds one member; what follows is left out.
    `max_ratio` is how many times its packed size a stream may give, and all of them together the size of the input:
    deflate reaches 1032, logs 5 to 300. It counts only past `ratio_from_bytes` of output, since zstd packs a constant
    log ten-thousandfold, and reading that much costs a second.
    `max_spool_bytes` bounds a zip that comes through a pipe or out of another archive: its table of contents is at its
    end, so it has to be kept in a temporary file.
    """

    max_members: int = 100_000
    max_depth: int = 6
    max_total_bytes: int = 64 * GIB
    max_member_bytes: int = 16 * GIB
    max_ratio: int = 2000
    ratio_from_bytes: int = 512 * MIB
    max_spool_bytes: int = 4 * GIB


DEFAULT_LIMITS = Limits()


class Member(NamedTuple):
    """One file of the bundle.

    `path` is a relative posix path, fit to print and unique in the bundle; nested ones read `outer.tar.gz/inner.log`.
    `stream` gives the decompressed bytes, forward only, and has to be consumed before the next member is asked for
    (what is left then is passed over). `read(n)` never raises for bad data and may give less than n, but at least
    64 KiB (or all n) before the end. `size` is what the archive or file system claims, None where nobody knows.
    """

    path: str
    stream: BinaryIO
    size: int | None


class Unread(NamedTuple):
    """Something that was not read, or not to its end, and why."""

    path: str
    why: str


_WINDOWS = re.compile(r"[A-Za-z]:|\\|.*[\\/]\.\.\\|\.\.\\|.*\\\.\.(?:$|[\\/])", re.S)


def safe_path(name: str) -> str:
    """A relative posix path for a name that somebody else chose: no root, no drive, no `..`, nothing unprintable.

    >>> safe_path("./logs/a.log"), safe_path("/etc/../../passwd"), safe_path("C:\\\\logs\\\\a.log"), safe_path("..")
    ('logs/a.log', 'etc/passwd', 'logs/a.log', 'unnamed')
    """
    while True:
        if _WINDOWS.match(name):
            name = re.sub(r"^(?:[A-Za-z]:)+", "", name.replace("\\", "/"))
        parts = [part for part in UNPRINTABLE.sub("\ufffd", name).split("/") if part not in ("", ".", "..")]
        label = "/".join(parts)[-_LABEL_CAP:] or "unnamed"
        if label == name:
            return label
        name = label  # what was taken away may have hidden more: `/C:/x`


def _shortest_tails(paths: Sequence[Path]) -> list[str]:
    """For each path the shortest tail that tells it from the others: `vllm.log`, or `node1/vllm.log`."""
    whole = [
        ("stdin",) if path == _STDIN else (path.resolve() if path.name in ("", "..") else path.absolute()).parts
        for path in paths
    ]
    tails = []
    for index, parts in enumerate(whole):
        others = [other for at, other in enumerate(whole) if at != index]
        count = 1
        while count < len(parts) and any(other[-count:] == parts[-count:] for other in others):
            count += 1
        tails.append(safe_path("/".join(parts[-count:])))
    return tails


class _Leaf(Stream):
    """What a member's consumer reads: counted, and cut at the limits."""

    def __init__(self, intake: Intake, source: Stream, label: str) -> None:
        super().__init__(label, intake.note)
        self._intake = intake
        self._source = source
        self._left = intake.limits.max_member_bytes

    def _more(self, size: int) -> bytes:
        if self.failed or self._intake.stopped:
            return b""
        if not self._left:
            if self._source.ahead(1):
                self.fail(f"larger than {show_bytes(self._intake.limits.max_member_bytes)}: the rest was not read")
            return b""
        data = self._source.read(min(size, self._left))
        self._left -= len(data)
        self._intake.handed_out(self.label, len(data))
        return data


class _Place(NamedTuple):
    """Where a stream lies: its own path, what its members' paths begin with, how many archives are around it.

    `packed` says that the layer around it is a compression: an archive in that is the same archive.
    """

    label: str
    inside: str
    depth: int = 0
    packed: bool = False
    size: int | None = None

    def entry(self, label: str, size: int) -> _Place:
        """The place of a member of the archive here."""
        return _Place(label, f"{label}/", self.depth + 1, size=size)


class _Given(NamedTuple):
    """A file to open: its path (None is standard input), and whether it was found in a folder."""

    path: Path | None
    place: _Place
    found: bool

    def open(self) -> contextlib.AbstractContextManager[BinaryIO]:
        if self.path is None:
            return contextlib.nullcontext(sys.stdin.buffer)
        if not self.found:
            return self.path.open("rb", buffering=0)
        # since it was listed, a file may have become a link or a pipe: neither follow the one nor wait for the other
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        raw = open(os.open(self.path, flags), "rb", buffering=0)  # noqa: PTH123, SIM115 - a descriptor, closed by `with`
        if not _is_regular(raw):
            raw.close()
            raise OSError("it is no regular file any more")
        return raw


@dataclass
class Intake:
    """A bundle that is being read. Iterate `members` once; the other fields are filled on the way.

    `bytes` counts what was given, packed as it was; `content_bytes` and `files` what was handed out.
    `unread` lists what was not read, in the order it was met. `digest` is known at the end of the iteration: for a
    single file or standard input the SHA-256 of its bytes as given (what `sha256sum` prints), for a folder or several
    paths that of the lines `sha256sum` would print for its files (`<hex>  <path>`), sorted by path, so it does not
    depend on the order in which a file system lists them. Files that could not be opened have no line. A pipe counts
    as far as it was read. Hashing costs 0.8 s of CPU per GiB given; `hashing=False` leaves it out, `digest` stays "".
    """

    name: str
    limits: Limits = DEFAULT_LIMITS
    hashing: bool = True
    unread: list[Unread] = field(default_factory=list)
    digest: str = ""
    bytes: int = 0
    content_bytes: int = 0
    files: int = 0
    stopped: str = ""  # why nothing more is read: a limit of the whole bundle
    _given: list[_Given] = field(default_factory=list, repr=False)
    _given_bytes: int = field(default=0, repr=False)
    _entries: int = field(default=0, repr=False)
    _unpacked: int = field(default=0, repr=False)
    _names: dict[str, int] = field(default_factory=dict, repr=False)
    _seen: dict[tuple[int, int], str] = field(default_factory=dict, repr=False)

    def members(self) -> Iterator[Member]:
        """Every file of the bundle, folders sorted by name and archives in their own order; to be called once.

        Raises BundleError at the end where nothing at all could be read.
        """
        hashes: list[tuple[str, str]] = []
        for given in self._given:
            label = given.place.label
            if self.stopped:
                self.note(label, self.stopped)
                continue
            try:
                opened = given.open()
            except OSError as problem:
                self.note(label, reason(problem))
                continue
            with opened as raw:
                digest = hashlib.sha256()
                file = Source(raw, label, self.note, partial(self._took, digest))
                regular = _is_regular(raw)
                yield from self._open(file, given.place, raw if regular else None)
                if self.hashing and regular:
                    file.drain()
                hashes.append((label, digest.hexdigest()))
        if self.hashing and hashes:
            lines = "".join(f"{digest}  {label}\n" for label, digest in sorted(hashes))
            alone = len(self._given) == 1 and not self._given[0].found
            self.digest = hashes[0][1] if alone else hashlib.sha256(lines.encode()).hexdigest()
        if not self.content_bytes:
            raise self.nothing()

    def note(self, path: str, why: str) -> None:
        """List something as unread. Once a limit has stopped everything, only that is worth telling."""
        if not self.stopped or why == self.stopped:
            self.unread.append(Unread(path, why))

    def nothing(self) -> BundleError:
        """The error that says why nothing could be read."""
        if not self.unread:
            what = "holds no files" if not self.files else "is empty" if self.files == 1 else "holds only empty files"
            hint = "Give the folder, archive or log file that holds the server's output"
            return BundleError(f"{self.name} {what}", hint)
        path, why = self.unread[0]
        where = "" if path == self.name else f"{path}: "
        more = f", and {len(self.unread) - 1:,} more" if len(self.unread) > 1 else ""
        told = f"nothing in {self.name} could be read ({where}{why}{more})"
        return BundleError(told, "Check how the bundle was made")

    # limits

    def handed_out(self, label: str, count: int) -> None:
        """Account for `count` more bytes that a consumer reads."""
        self.content_bytes += count
        if self.content_bytes > self.limits.max_total_bytes:
            self._stop(label, f"more than {show_bytes(self.limits.max_total_bytes)} in all: the rest was not read")

    def _took(self, digest: Any, data: bytes) -> None:
        """Account for bytes of what was given."""
        self.bytes += len(data)
        if self.hashing:
            digest.update(data)

    def _grown(self, count: int, out: int, taken: int) -> str:
        """Account for `count` more unpacked bytes of a stream, now `out` from `taken`; why it has to end, or ""."""
        self._unpacked += count
        ratio, start = self.limits.max_ratio, self.limits.ratio_from_bytes
        if out > start and out > ratio * taken:
            return f"grew more than {ratio:,} times while unpacking: the rest was not read"
        if self._unpacked > start and self._unpacked > ratio * max(self.bytes, self._given_bytes):
            return f"the bundle grew more than {ratio:,} times while unpacking: the rest of this was not read"
        if self._unpacked > self.limits.max_total_bytes:
            self.stopped = f"more than {show_bytes(self.limits.max_total_bytes)} in all: the rest was not read"
        return self.stopped

    def _entry(self, place: _Place) -> bool:
        """Count one more file, link or packed folder (50 µs each); False where there are too many."""
        self._entries += 1
        if self._entries > self.limits.max_members:
            self._stop(place.label, f"more than {self.limits.max_members:,} files in all: the rest was not read")
        return not self.stopped

    def _stop(self, label: str, why: str) -> None:
        if not self.stopped:
            self.stopped = why
            self.note(label, why)

    def _unique(self, label: str) -> str:
        """The label, or with `#2`, `#3` ... where it was used before."""
        number = self._names.get(label, 0) + 1
        self._names[label] = number
        return label if number == 1 else self._unique(f"{label}#{number}")

    # one layer deeper

    def _open(self, stream: Stream, place: _Place, raw: BinaryIO | None = None) -> Iterator[Member]:
        """The members of a stream, whatever it is: itself, or what it holds. `raw` is its file, if one can seek in it."""
        head = stream.ahead(BLOCK)
        if not head and (stream.failed or self.stopped):
            return
        form = form_of(head)
        if form is None:
            leaf = _Leaf(self, stream, place.label)
            self.files += 1
            yield Member(place.label, cast(BinaryIO, leaf), place.size)
            leaf.drain()
        elif place.depth >= self.limits.max_depth:
            self.note(place.label, f"more than {self.limits.max_depth} archives inside each other: not opened")
        elif form == "tar":
            yield from self._tar(stream, place)
        elif form == "zip":
            yield from self._zip(stream, place, raw)
        else:
            unpacked = Unpacked(cast(Form, form), stream, place.label, self.note, self._grown)
            yield from self._open(unpacked, place._replace(depth=place.depth + place.packed, packed=True, size=None))

    def _tar(self, stream: Stream, place: _Place) -> Iterator[Member]:
        for info in tar_headers(stream):
            if not self._entry(place):
                return
            if info.type in _TAR_FOLDERS:
                continue
            label = place.inside + safe_path(info.name)
            if info.type in _TAR_KINDS:
                self.note(label, _TAR_KINDS[info.type])
                continue
            label = self._unique(label)
            body = Slice(stream, stored_bytes(info), label, self.note)
            yield from self._open(body, place.entry(label, stored_bytes(info)))
            body.drain()

    def _zip(self, stream: Stream, place: _Place, raw: BinaryIO | None) -> Iterator[Member]:
        with tempfile.SpooledTemporaryFile(_SPOOL_IN_MEMORY) as spool:
            if raw:
                stream.drain()  # for the digest
            elif why := self._spool(stream, cast(BinaryIO, spool)):
                self.note(place.label, why)
                return
            try:
                archive = zipfile.ZipFile(
                    cast(BinaryIO, _Bounded(raw or cast(BinaryIO, spool), self.limits.max_members * _ZIP_ENTRY_BYTES))
                )
            except Exception as problem:  # `zipfile` raises many things for hostile bytes
                why = "truncated or damaged: no usable table of contents at its end"
                self.note(place.label, f"{why} ({reason(problem)})")
                return
            for info in archive.infolist():
                if not self._entry(place):
                    return
                if not info.is_dir():
                    yield from self._zip_entry(archive, info, place)

    def _zip_entry(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo, place: _Place) -> Iterator[Member]:
        """`zipfile` finds an entry and gives it packed; unpacked it is like everything else, damage and bombs too."""
        label = place.inside + safe_path(info.filename)
        if why := _refused(info):
            self.note(label, why)
            return
        as_packed = copy.copy(info)
        as_packed.compress_type, as_packed.file_size = zipfile.ZIP_STORED, info.compress_size
        del as_packed.CRC  # it is that of the content
        try:
            packed = archive.open(as_packed)
        except Exception as problem:  # as above
            self.note(label, f"damaged: the zip has no such entry where it says ({reason(problem)})")
            return
        label = self._unique(label)
        stream: Stream = Source(cast(BinaryIO, packed), label, self.note)
        if form := _ZIP_METHODS[info.compress_type]:
            stream = Unpacked(form, stream, label, self.note, self._grown)
        yield from self._open(Checked(stream, info.CRC, self.note), place.entry(label, info.file_size))

    def _spool(self, stream: Stream, spool: BinaryIO) -> str:
        """Keep a zip that cannot be sought in, since its table of contents is at its end; why that was not possible."""
        left = self.limits.max_spool_bytes
        while data := stream.read(MIB):
            left -= len(data)
            if left < 0:
                cap = show_bytes(self.limits.max_spool_bytes)
                return f"zip of more than {cap} in an archive or pipe: give it as a file"
            try:
                spool.write(data)
            except OSError as problem:
                return f"no room to keep the zip in a temporary file: {reason(problem)}"
        return ""

    # what a person named

    def add(self, path: Path, label: str, inside: str) -> None:
        """Take in one path: its label in notes, and what the paths of its members begin with."""
        if path == _STDIN:
            self._given.append(_Given(None, _Place(label, inside), found=False))
            self._unique(label)
            return
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            before = len(self._given)
            self.walk(path, inside)
            if len(self._given) == before and inside:
                self.note(label, "folder holds no files")
            return
        if inside:
            label = self._unique(label)
            inside = f"{label}/"
        if stat.S_ISFIFO(status.st_mode):
            self._given.append(_Given(path, _Place(label, inside), found=False))
        else:
            self._file(path, status, _Place(label, inside, size=status.st_size), found=False)

    def _file(self, path: Path, status: os.stat_result, place: _Place, found: bool) -> None:
        """Take in a regular file, unless it is there already by another name."""
        first = self._seen.setdefault((status.st_dev, status.st_ino), place.label) if status.st_ino else place.label
        if first != place.label:
            self.note(place.label, f"the same file as {first}, read once")
            return
        self._given_bytes += status.st_size
        self._given.append(_Given(path, place, found))

    def walk(self, root: Path, inside: str) -> None:
        """List the regular files below a folder, its own first, by name; note what is no file."""
        folders = [(root, inside)]
        while folders:
            folder, prefix = folders.pop()
            try:
                with os.scandir(folder) as listing:
                    entries = sorted(listing, key=lambda entry: entry.name)
            except OSError as problem:
                self.note(prefix.rstrip("/") or self.name, f"folder not listed: {reason(problem)}")
                continue
            deeper = []
            for entry in entries:
                label = prefix + safe_path(entry.name)
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError as problem:
                    self.note(label, reason(problem))
                    continue
                if stat.S_ISDIR(status.st_mode):
                    deeper.append((folder / entry.name, f"{label}/"))
                elif self._entry(_Place(self.name, "")):
                    self._found(folder / entry.name, status, label)
                else:
                    self.stopped = ""  # those that are listed by now are read
                    return
            folders += reversed(deeper)

    def _found(self, path: Path, status: os.stat_result, label: str) -> None:
        why = _KINDS.get(stat.S_IFMT(status.st_mode))
        if why:
            self.note(label, why)
            return
        label = self._unique(label)
        self._file(path, status, _Place(label, f"{label}/", size=status.st_size), found=True)


_KINDS = {
    tarfile.SYMTYPE: "symbolic link, not followed",
    tarfile.LNKTYPE: "hard link, not followed",
    tarfile.CHRTYPE: "device, not read",
    tarfile.BLKTYPE: "device, not read",
    tarfile.FIFOTYPE: "named pipe, not read",
}
_TAR_LISTS = (b"D", b"N", b"V")  # GNU's directory listings, old long names and volume labels: no files


def _tar_header(block: bytes) -> tarfile.TarInfo | None:
    """The header in a block of 512 bytes, None where its checksum or its numbers say that it is none."""
    if len(block) < _BLOCK:
        return None
    try:
        info = tarfile.TarInfo.frombuf(block, "utf-8", "replace")
    except tarfile.HeaderError:
        return None
    return info if info.size >= 0 else None


def _tar_extra(stream: _Stream, info: tarfile.TarInfo) -> dict[str, str]:
    """What a GNU long name or a pax header says of the member after it; other headers of that sort say nothing here."""
    padded = info.size + -info.size % _BLOCK
    if padded > _LEAST or info.type not in (tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE):
        stream.skip(padded)
        return {}
    data = stream.read(padded)[: info.size]
    if info.type == tarfile.GNUTYPE_LONGNAME:
        return {"path": data.partition(b"\0")[0].decode("utf-8", "replace")}
    found: dict[str, str] = {}
    at = 0
    while match := _PAX.match(data, at):
        at += int(match[1])
        if at <= match.end():
            break
        found[match[2].decode("utf-8", "replace")] = data[match.end() : at - 1].decode("utf-8", "replace")
    return found


def _pass_sparse_map(body: _Stream) -> None:
    """Pass over the map of holes that begins a sparse file of pax format 1.0: a number a line, padded to a block."""
    lines = wanted = 0
    while block := body.read(_BLOCK):
        if not wanted:
            count = block.partition(b"\n")[0]
            wanted = 1 + 2 * int(count) if count.isdigit() and len(count) < 8 else 1
        lines += block.count(b"\n")
        if lines >= wanted:
            return


class _ZipEntry(NamedTuple):
    """A file in a zip; `packed` and `crc` are None where only what follows the content would tell."""

    name: str
    flags: int
    method: int
    crc: int | None
    packed: int | None
    size: int | None
    link: bool


def _zip_local(stream: _Stream) -> _ZipEntry | None:
    """The header in front of an entry's content, which is then next in the stream; None where there is none."""
    head = stream.read(30)
    if len(head) < 30 or head[:4] != _ZIP[0]:
        return None
    flags, method, crc, packed, size, name, extra = struct.unpack("<6xHH4xIIIHH", head)
    text = stream.read(name).decode("utf-8" if flags & 0x800 else "cp437", "replace")
    stream.skip(extra)
    if flags & 8 or packed == 0xFFFFFFFF:
        return _ZipEntry(text, flags, method, None, None, None, False)
    return _ZipEntry(text, flags, method, crc, packed, size, False)


class _Bounded:
    """A file for `zipfile` that refuses to read a table of contents larger than `cap` bytes at once."""

    def __init__(self, file: BinaryIO, cap: int) -> None:
        self._file = file
        self._cap = cap

    def read(self, size: int = -1) -> bytes:
        if size > self._cap:
            raise OSError("its table of contents is too large")
        return self._file.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


# --- names --------------------------------------------------------------------------------------------------

_WINDOWS = re.compile(r"[A-Za-z]:|\\|.*[\\/]\.\.\\|\.\.\\|.*\\\.\.(?:$|[\\/])", re.S)
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def safe_path(name: str) -> str:
    """A relative posix path for a name that somebody else chose: no root, no drive, no `..`, nothing unprintable.

    >>> safe_path("./logs/a.log"), safe_path("/etc/../../passwd"), safe_path("C:\\\\logs\\\\a.log"), safe_path("..")
    ('logs/a.log', 'etc/passwd', 'logs/a.log', 'unnamed')
    """
    while True:
        if _WINDOWS.match(name):
            name = re.sub(r"^(?:[A-Za-z]:)+", "", name.replace("\\", "/"))
        parts = [part for part in _UNPRINTABLE.sub("\ufffd", name).split("/") if part not in ("", ".", "..")]
        label = "/".join(parts)[-_LABEL_CAP:] or "unnamed"
        if label == name:
            return label
        name = label  # what was taken away may have hidden more: `/C:/x`


def _shortest_tails(paths: Sequence[Path]) -> list[str]:
    """For each path the shortest tail that tells it from the others: `vllm.log`, or `node1/vllm.log`."""
    whole = [
        ("stdin",) if path == _STDIN else (path.resolve() if path.name in ("", "..") else path.absolute()).parts
        for path in paths
    ]
    tails = []
    for index, parts in enumerate(whole):
        others = [other for at, other in enumerate(whole) if at != index]
        count = 1
        while count < len(parts) and any(other[-count:] == parts[-count:] for other in others):
            count += 1
        tails.append(safe_path("/".join(parts[-count:])))
    return tails


def _reason(problem: Exception) -> str:
    """Why, in a few words."""
    if isinstance(problem, OSError) and problem.errno:
        return {errno.ENOENT: "it is gone", errno.EACCES: "permission denied"}.get(
            problem.errno, os.strerror(problem.errno).lower()
        )
    return _UNPRINTABLE.sub(" ", str(problem))[:100] or type(problem).__name__


# --- the bundle ---------------------------------------------------------------------------------------------


class _Place(NamedTuple):
    """Where a stream lies: its own path, what its members' paths begin with, how many archives are around it.

    `packed` says that the layer around it is a compression: an archive in that is the same archive.
    """

    label: str
    inside: str
    depth: int = 0
    packed: bool = False
    size: int | None = None


class _Given(NamedTuple):
    """A file to open: its path (None is standard input), and whether it was found in a folder."""

    path: Path | None
    place: _Place
    found: bool


@dataclass
class Intake:
    """A bundle that is being read. Iterate `members` once; the other fields are filled on the way.

    `bytes` counts what was given, packed as it was; `content_bytes` and `files` what was handed out.
    `unread` lists what was not read, in the order it was met. `digest` is known at the end of the iteration: for a
    single file or standard input the SHA-256 of its bytes as given (what `sha256sum` prints), for a folder or several
    paths that of the lines `sha256sum` would print for its files (`<hex>  <path>`), sorted by path, so it does not
    depend on the order in which a file system lists them. Files that could not be opened have no line. A pipe counts
    as far as it was read. Hashing costs 0.8 s of CPU per GiB given; `hashing=False` leaves it out, `digest` stays "".
    """

    name: str
    limits: Limits = DEFAULT_LIMITS
    hashing: bool = True
    unread: list[Unread] = field(default_factory=list)
    digest: str = ""
    bytes: int = 0
    content_bytes: int = 0
    files: int = 0
    stopped: str = ""  # why nothing more is read: a limit of the whole bundle
    _given: list[_Given] = field(default_factory=list, repr=False)
    _given_bytes: int = field(default=0, repr=False)
    _entries: int = field(default=0, repr=False)
    _headers: int = field(default=0, repr=False)
    _unpacked: int = field(default=0, repr=False)
    _names: dict[str, int] = field(default_factory=dict, repr=False)
    _seen: dict[tuple[int, int], str] = field(default_factory=dict, repr=False)

    def members(self) -> Iterator[Member]:
        """Every file of the bundle, folders sorted by name and archives in their own order; to be called once.

        Raises BundleError at the end where nothing at all could be read.
        """
        hashes: list[tuple[str, str]] = []
        for given in self._given:
            label = given.place.label
            if self.stopped:
                self.note(label, self.stopped)
                continue
            try:
                opened = self._raw(given)
            except OSError as problem:
                self.note(label, _reason(problem))
                continue
            with opened as raw:
                file = _File(self, raw, label, regular=_is_regular(raw))
                yield from self._open(file, given.place)
                if file.regular and file.hash:
                    file.drain()
                if file.hash:
                    hashes.append((label, file.hash.hexdigest()))
        if hashes and len(self._given) == 1 and not self._given[0].found:
            self.digest = hashes[0][1]
        elif hashes:
            lines = "".join(f"{digest}  {label}\n" for label, digest in sorted(hashes))
            self.digest = hashlib.sha256(lines.encode()).hexdigest()
        if not self.content_bytes:
            raise self.nothing()

    def note(self, path: str, why: str) -> None:
        """List something as unread. Once a limit has stopped everything, only that is worth telling."""
        if not self.stopped or why == self.stopped:
            self.unread.append(Unread(path, why))

    def grown(self, count: int, out: int, taken: int) -> str:
        """Account for `count` more unpacked bytes of a stream, now `out` from `taken`; why it has to end, or ""."""
        self._unpacked += count
        ratio, start = self.limits.max_ratio, self.limits.ratio_from_bytes
        if out > start and out > ratio * taken:
            return f"grew more than {ratio:,} times while unpacking: the rest was not read"
        if self._unpacked > start and self._unpacked > ratio * max(self.bytes, self._given_bytes):
            return f"the bundle grew more than {ratio:,} times while unpacking: the rest of this was not read"
        if self._unpacked > self.limits.max_total_bytes:
            self.stopped = f"more than {show_bytes(self.limits.max_total_bytes)} in all: the rest was not read"
        return self.stopped

    def handed_out(self, label: str, count: int) -> None:
        """Account for `count` more bytes that a consumer reads."""
        self.content_bytes += count
        if self.content_bytes > self.limits.max_total_bytes and not self.stopped:
            self.stopped = f"more than {show_bytes(self.limits.max_total_bytes)} in all: the rest was not read"
            self.note(label, self.stopped)

    def nothing(self) -> BundleError:
        """The error that says why nothing could be read."""
        if not self.unread:
            what = "holds no files" if not self.files else "is empty" if self.files == 1 else "holds only empty files"
            return BundleError(
                f"{self.name} {what}", "Give the folder, archive or log file that holds the server's output"
            )
        path, why = self.unread[0]
        where = "" if path == self.name else f"{path}: "
        more = f", and {len(self.unread) - 1:,} more" if len(self.unread) > 1 else ""
        return BundleError(
            f"nothing in {self.name} could be read ({where}{why}{more})", "Check how the bundle was made"
        )

    def _raw(self, given: _Given) -> contextlib.AbstractContextManager[BinaryIO]:
        if given.path is None:
            return contextlib.nullcontext(sys.stdin.buffer)
        if not given.found:
            return given.path.open("rb", buffering=0)
        # since it was listed, a file may have become a link or a pipe: neither follow the one nor wait for the other
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        raw = open(os.open(given.path, flags), "rb", buffering=0)  # noqa: PTH123, SIM115 - a descriptor, closed by `with`
        if not _is_regular(raw):
            raw.close()
            raise OSError("it is no regular file any more")
        return raw

    def _open(self, stream: _Stream, place: _Place) -> Iterator[Member]:
        """The members of a stream, whatever it is: itself, or what it holds when unpacked."""
        head = stream.ahead()
        if not head and (stream.failed or self.stopped):
            return
        form = _form(head)
        if form is None:
            yield from self._leaf(stream, place)
        elif place.depth >= self.limits.max_depth:
            self.note(place.label, f"more than {self.limits.max_depth} archives inside each other: not opened")
        elif form == "tar":
            yield from self._tar(stream, place)
        elif form == "zip":
            yield from self._zip(stream, place)
        else:
            unpacked = _Unpacked(self, _decoder(form, stream), stream, form, place.label)
            yield from self._open(unpacked, place._replace(depth=place.depth + place.packed, packed=True, size=None))

    def _leaf(self, stream: _Stream, place: _Place) -> Iterator[Member]:
        leaf = _Leaf(self, stream, place.label)
        self.files += 1
        yield Member(place.label, cast(BinaryIO, leaf), place.size)
        leaf.drain()

    def _within(self, place: _Place, name: str) -> str:
        return place.inside + safe_path(name)

    def _unique(self, label: str) -> str:
        """The label, or with `#2`, `#3` ... where it was used before."""
        number = self._names.get(label, 0) + 1
        self._names[label] = number
        return label if number == 1 else self._unique(f"{label}#{number}")

    def _entry(self, place: _Place) -> bool:
        """Count one more file or link; False where there are too many."""
        self._entries += 1
        if self._entries > self.limits.max_members and not self.stopped:
            self.stopped = f"more than {self.limits.max_members:,} files in all: the rest was not read"
            self.note(place.label, self.stopped)
        return not self.stopped

    def _header(self, place: _Place) -> bool:
        """Count one more header of any sort, folders too, each of which costs 20 µs; False where there are too many."""
        self._headers += 1
        if self._headers > _HEADERS_PER_MEMBER * self.limits.max_members and not self.stopped:
            self.stopped = f"more than {_HEADERS_PER_MEMBER * self.limits.max_members:,} entries: the rest was not read"
            self.note(place.label, self.stopped)
        return not self.stopped

    # tar: own walk over the headers, since `tarfile` ends without a word at a damaged one and reads a pax header whole

    def _tar(self, stream: _Stream, place: _Place) -> Iterator[Member]:
        extra: dict[str, str] = {}
        hurts = 0
        while not self.stopped and (block := stream.read(_BLOCK)):
            if not any(block):  # the end, or the seam of archives written one after the other
                stream.skip_zeros(_BLOCK)
                continue
            info = _tar_header(block)
            if not self._header(place):
                return
            if info is None:
                hurts += 1
                if hurts > _HURTS:
                    self.note(place.label, f"damaged in more than {_HURTS} places: the rest was not read")
                    return
                self._find_tar_header(stream, place, len(block))
                extra = {}
            elif info.type in (b"L", b"K", b"x", b"X", b"g"):
                extra |= _tar_extra(stream, info)
            else:
                mapped = info.type == tarfile.GNUTYPE_SPARSE and bool(block[482])
                yield from self._tar_entry(stream, info, mapped, extra, place)
                extra = {}

    def _tar_entry(
        self, stream: _Stream, info: tarfile.TarInfo, mapped: bool, extra: dict[str, str], place: _Place
    ) -> Iterator[Member]:
        given = extra.get("size", "")
        size = int(given) if given.isascii() and given.isdigit() and len(given) < 20 else info.size
        name = self._within(place, extra.get("GNU.sparse.name") or extra.get("path") or info.name)
        if info.type in _TAR_LISTS:
            stream.skip(size + -size % _BLOCK)
        elif info.type in _TAR_KINDS:
            if self._entry(place):
                self.note(name, _TAR_KINDS[info.type])
        elif info.type != tarfile.DIRTYPE and self._entry(place):
            while mapped:  # more of the map of holes; the holes themselves are left out: zeros are no text
                more = stream.read(_BLOCK)
                mapped = len(more) == _BLOCK and bool(more[504])
            label = self._unique(name)
            body = _Slice(self, stream, size, label)
            if extra.get("GNU.sparse.major") == "1":
                _pass_sparse_map(body)
            yield from self._open(body, _Place(label, f"{label}/", place.depth + 1, size=size))
            body.drain()
            stream.skip(-size % _BLOCK)

    def _find_tar_header(self, stream: _Stream, place: _Place, size: int) -> None:
        """Go on to the next block that is a header, and note what was passed over."""
        start = stream.taken - size
        found = False
        while not found and (data := stream.read(_LEAST)):
            for at in range(0, len(data), _BLOCK):
                if data[at + 257 : at + 262] == b"ustar" and _tar_header(data[at : at + _BLOCK]):
                    stream.push_back(data[at:])
                    found = True
                    break
        lost = stream.taken - start
        why = "truncated: ended within a header" if lost < _BLOCK else "damaged: no tar header where one should be"
        self.note(place.label, f"{why}, {lost:,} bytes at {start:,} not read")

    # zip: `zipfile` reads the table of contents; entries are read here, three times as fast, and without it if need be

    def _zip(self, stream: _Stream, place: _Place) -> Iterator[Member]:
        import zipfile

        with self._seekable(stream, place) as file:
            if file is None:
                return
            plain = _Random(file, place.label)
            try:
                cap = self.limits.max_members * _ZIP_ENTRY_BYTES
                with zipfile.ZipFile(cast(BinaryIO, _Bounded(file, cap))) as archive:
                    listed = archive.infolist()
                if listed and all(info.header_offset for info in listed):
                    raise ValueError("the one found is that of a zip within")
            except Exception as problem:  # `zipfile` raises many things for hostile bytes
                why = "truncated or damaged: no usable table of contents at its end"
                self.note(place.label, f"{why} ({_reason(problem)}); entries were looked for one after the other")
                yield from self._zip_without_table(plain, place)
                return
            for info in listed:
                if not self._header(place):
                    return
                if info.is_dir():
                    continue
                link = info.create_system == 3 and stat.S_ISLNK(info.external_attr >> 16)
                entry = _ZipEntry(
                    info.filename,
                    info.flag_bits,
                    info.compress_type,
                    info.CRC,
                    info.compress_size,
                    info.file_size,
                    link,
                )
                try:
                    plain.go(info.header_offset)
                    there = _zip_local(plain) is not None
                except (OSError, ValueError):
                    there = False
                if there:
                    yield from self._zip_entry(plain, entry, place)
                else:
                    self.note(self._within(place, info.filename), "damaged: the zip has no such entry where it says")

    def _zip_without_table(self, plain: _Random, place: _Place) -> Iterator[Member]:
        plain.go(0)
        while not self.stopped:
            while (at := (data := plain.ahead()).find(_ZIP[0])) < 0 and len(data) > 3:
                plain.skip(len(data) - 3)
            if at < 0:
                return
            plain.skip(at)
            entry = _zip_local(plain)
            if entry is None or not self._header(place):
                return
            start = plain.taken
            if not entry.name.endswith("/"):
                yield from self._zip_entry(plain, entry, place)
            plain.skip(max(0, start + (entry.packed or 0) - plain.taken))

    def _zip_entry(self, plain: _Random, entry: _ZipEntry, place: _Place) -> Iterator[Member]:
        if not self._entry(place):
            return
        label = self._within(place, entry.name)
        why = ""
        if entry.link:
            why = "symbolic link, not followed"
        elif entry.flags & 1:
            why = "encrypted: unpack it with its password and give the files"
        elif entry.method not in _ZIP_METHODS:
            why = f"zip compression method {entry.method} is not supported: pack it anew with deflate"
        elif entry.packed is None and entry.method != 8:
            why = "the end of the entry cannot be told without the zip's table of contents"
        if why:
            self.note(label, why)
            return
        label = self._unique(label)
        body = plain if entry.packed is None else _Slice(self, plain, entry.packed, label)
        stream: _Stream = body
        if entry.method:
            stream = _Unpacked(self, _ZIP_METHODS[entry.method](body), body, _ZIP_NAMES[entry.method], label)
        if entry.crc is not None:
            stream = _Checked(self, stream, entry.crc)
        yield from self._open(stream, _Place(label, f"{label}/", place.depth + 1, size=entry.size))
        if entry.packed is None:
            stream.drain()  # its end is where the next entry is looked for

    @contextlib.contextmanager
    def _seekable(self, stream: _Stream, place: _Place) -> Iterator[BinaryIO | None]:
        """The stream as a file that can be sought in; a temporary one, unnamed and for the owner only, if need be."""
        if isinstance(stream, _File) and stream.regular:
            stream.drain()  # for the digest
            yield stream.raw
            stream.raw.seek(0, os.SEEK_END)
            return
        import tempfile

        with tempfile.SpooledTemporaryFile(_SPOOL_IN_MEMORY) as spool:
            why = self._spool(stream, cast(BinaryIO, spool))
            if why:
                self.note(place.label, why)
            yield None if why else cast(BinaryIO, spool)

    def _spool(self, stream: _Stream, spool: BinaryIO) -> str:
        left = self.limits.max_spool_bytes
        while data := stream.read(_STEP):
            left -= len(data)
            if left < 0:
                cap = show_bytes(self.limits.max_spool_bytes)
                return f"zip of more than {cap} in an archive or pipe: give it as a file"
            try:
                spool.write(data)
            except OSError as problem:
                return f"no room to keep the zip in a temporary file: {_reason(problem)}"
        return ""

    # what a person named

    @property
    def empty(self) -> bool:
        """Whether there is nothing to open."""
        return not self._given

    def add(self, path: Path, label: str, inside: str) -> None:
        """Take in one path: its label in notes, and what the paths of its members begin with."""
        if path == _STDIN:
            self._given.append(_Given(None, _Place(label, inside), found=False))
            self._unique(label)
            return
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            before = len(self._given)
            self.walk(path, inside)
            if len(self._given) == before and inside:
                self.note(label, "folder holds no files")
            return
        if inside:
            label = self._unique(label)
            inside = f"{label}/"
        if stat.S_ISFIFO(status.st_mode):
            self._given.append(_Given(path, _Place(label, inside), found=False))
        else:
            self._file(path, status, _Place(label, inside, size=status.st_size), found=False)

    def _file(self, path: Path, status: os.stat_result, place: _Place, found: bool) -> None:
        """Take in a regular file, unless it is there already by another name."""
        first = self._seen.setdefault((status.st_dev, status.st_ino), place.label) if status.st_ino else place.label
        if first != place.label:
            self.note(place.label, f"the same file as {first}, read once")
            return
        self._given_bytes += status.st_size
        self._given.append(_Given(path, place, found))

    def walk(self, root: Path, inside: str) -> None:
        """List the regular files below a folder, its own first, by name; note what is no file."""
        folders = [(root, inside)]
        while folders:
            folder, prefix = folders.pop()
            try:
                with os.scandir(folder) as listing:
                    entries = sorted(listing, key=lambda entry: entry.name)
            except OSError as problem:
                self.note(prefix.rstrip("/") or self.name, f"folder not listed: {_reason(problem)}")
                continue
            deeper = []
            for entry in entries:
                label = prefix + safe_path(entry.name)
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError as problem:
                    self.note(label, _reason(problem))
                    continue
                if stat.S_ISDIR(status.st_mode):
                    deeper.append((folder / entry.name, f"{label}/"))
                elif self._entry(_Place(self.name, "")):
                    self._found(folder / entry.name, status, label)
                else:
                    self.stopped = ""  # those that are listed by now are read
                    return
            folders += reversed(deeper)

    def _found(self, path: Path, status: os.stat_result, label: str) -> None:
        why = _KINDS.get(stat.S_IFMT(status.st_mode))
        if why:
            self.note(label, why)
            return
        label = self._unique(label)
        self._file(path, status, _Place(label, f"{label}/", size=status.st_size), found=True)


_KINDS = {
    stat.S_IFLNK: "symbolic link, not followed",
    stat.S_IFIFO: "named pipe, not read",
    stat.S_IFSOCK: "socket, not read",
    stat.S_IFCHR: "device, not read",
    stat.S_IFBLK: "device, not read",
}
_TAR_FOLDERS = (tarfile.DIRTYPE, b"D", b"V")  # the others are GNU's directory listings and volume labels
_TAR_KINDS = {
    tarfile.SYMTYPE: "symbolic link, not followed",
    tarfile.LNKTYPE: "hard link, not followed",
    tarfile.CHRTYPE: "device, not read",
    tarfile.BLKTYPE: "device, not read",
    tarfile.FIFOTYPE: "named pipe, not read",
}


def _is_regular(raw: BinaryIO) -> bool:
    try:
        return stat.S_ISREG(os.fstat(raw.fileno()).st_mode)
    except (OSError, ValueError):  # an object without descriptor in place of standard input
        return False


_ZIP_METHODS: dict[int, Form | None] = {0: None, 8: DEFLATE, 12: BZIP2, 93: ZSTD}


def _refused(info: zipfile.ZipInfo) -> str:
    """Why an entry of a zip is not read, or ""."""
    if info.create_system == 3 and stat.S_ISLNK(info.external_attr >> 16):
        return "symbolic link, not followed"
    if info.flag_bits & 1:
        return "encrypted: unpack it with its password and give the files"
    if info.compress_type not in _ZIP_METHODS:
        return f"zip compression method {info.compress_type} is not supported: pack it anew with deflate"
    return ""


class _Bounded:
    """A file for `zipfile` that refuses to read a table of contents larger than `cap` bytes at once."""

    def __init__(self, file: BinaryIO, cap: int) -> None:
        self._file = file
        self._cap = cap

    def read(self, size: int = -1) -> bytes:
        if size > self._cap:
            raise OSError("its table of contents is too large")
        return self._file.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def open_bundle(paths: Sequence[str | Path], limits: Limits = DEFAULT_LIMITS, *, hashing: bool = True) -> Intake:
    """Make ready to read what a person named: folders, archives, files, `-` for standard input.

    Members of a single folder or archive have the paths they have in it; with several paths each begins with the
    shortest tail of its path that tells it from the others (`node1/vllm.log`, `node2.tar.gz/vllm.log`). The same path
    given twice is read once. A named pipe that is named here is read like standard input.

    Raises BundleError for a path that does not exist or may not be read, for a device, and where there are no files.
    """
    if not paths:
        raise BundleError("no path was given", "Name a folder, an archive, log files, or - for standard input")
    wanted: dict[Path, Path] = {}
    for given in paths:
        # `./-` is a file, though its Path equals that of `-`
        path = _STDIN if os.fspath(given) == "-" else Path(given)
        path = path.absolute() if path == _STDIN and os.fspath(given) != "-" else path
        _check(path)
        wanted.setdefault(_STDIN if path == _STDIN else path.resolve(), path)
    labels = _shortest_tails(list(wanted.values()))
    only = len(wanted) == 1
    intake = Intake(labels[0] if only else f"{labels[0]} and {len(wanted) - 1} more", limits, hashing)
    for path, label in zip(wanted.values(), labels, strict=True):
        intake.add(path, label, "" if only else f"{label}/")
    if not intake._given:
        raise intake.nothing()
    return intake


def _check(path: Path) -> None:
    """Refuse a path that cannot be opened, before anything is read."""
    if path == _STDIN:
        if getattr(sys.stdin, "buffer", None) is None:
            raise BundleError("standard input is closed", "Pipe the bundle in, or name a file instead of -")
        return
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
        if kind == stat.S_IFDIR:
            os.scandir(path).close()
        elif kind == stat.S_IFREG:
            path.open("rb").close()
    except (FileNotFoundError, NotADirectoryError):
        raise BundleError(f"{path} does not exist", "Check the path") from None
    except (OSError, ValueError) as problem:
        raise BundleError(f"{path} cannot be read: {reason(problem)}", "Check the path and its permissions") from None
    if kind not in (stat.S_IFDIR, stat.S_IFREG, stat.S_IFIFO):
        raise BundleError(f"{path} is a device or a socket", "Name a folder, an archive or a file")


# --- what is no text ----------------------------------------------------------------------------------------

_BINARY: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n", "PNG image"),
    (0, b"\xff\xd8\xff", "JPEG image"),
    (0, b"GIF8", "GIF image"),
    (0, b"%PDF-", "PDF document"),
    (0, b"\x7fELF", "ELF program or core dump"),
    (0, b"SQLite format 3\0", "SQLite database"),
    (8, b"DUCK", "DuckDB database"),
    (0, b"PAR1", "Parquet file"),
    (0, b"ARROW1", "Arrow file"),
    (0, b"\x89HDF", "HDF5 file"),
    (0, b"\x93NUMPY", "NumPy array"),
    (0, b"GGUF", "GGUF model"),
    (0, b"LPKSHHRH", "systemd journal, export it with `journalctl --file`"),
    (0, b"7z\xbc\xaf\x27\x1c", "7-Zip archive, unpack it first"),
    (0, b"Rar!\x1a\x07", "RAR archive, unpack it first"),
    (0, b"\x04\x22\x4d\x18", "lz4 file, unpack it first"),
    (0, b"\x1f\x9d", "compress (.Z) file, unpack it first"),
    (0, b"\xca\xfe\xba\xbe", "Java or Mach-O program"),
)
_PICKLE = re.compile(rb"\x80[\x02-\x05][\x95cq(}\]\x8a\x8c)X]")
_SAFETENSORS = re.compile(rb"[\x00-\xff]{4}\0{4}\{\"", re.S)
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_HOLE = re.compile(rb"\0{32,}")
_TEXT = bytes(value for value in range(256) if value >= 32 or value in b"\b\t\n\v\f\r\x1b")
_ODD_SHARE = 0.05  # control bytes: random bytes have 0.09, text with colours and progress bars under 0.001


def binary_form(head: bytes) -> str | None:
    """What a file is, if by its first bytes (up to 64 KiB) it is no text: `PNG image`, `binary data`; None for text.

    UTF-16 is text, with or without a byte order mark. So are logs with a few NUL bytes, with the long runs of them that
    a crash or `copytruncate` leaves, and in any eight-bit code page.

    >>> binary_form(b"\\x7fELF\\x02"), binary_form("INFO grün".encode("utf-16")), binary_form(b"INFO a\\0b")
    ('ELF program or core dump', None, None)
    """
    for at, magic, name in _BINARY:
        if head.startswith(magic, at):
            return name
    if _PICKLE.match(head):
        return "Python pickle"
    if _SAFETENSORS.match(head):
        return "safetensors model"
    if head.startswith(_UTF16):
        return None
    body = _HOLE.sub(b"", head)
    even, odd = body[::2].count(0), body[1::2].count(0)
    if max(even, odd) > 0.35 * len(body) and min(even, odd) < 0.02 * len(body):
        return None  # UTF-16 without its mark: every other byte of ASCII text is NUL
    strange = len(body.translate(None, _TEXT))
    return "binary data" if strange > max(4, _ODD_SHARE * len(body)) else None


def looks_binary(head: bytes) -> bool:
    """Whether a file's first bytes say that it is no text; `binary_form` says what it is."""
    return binary_form(head) is not None
