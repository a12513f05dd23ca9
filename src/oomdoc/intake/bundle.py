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
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from oomdoc.errors import BundleError
from oomdoc.intake.streams import (
    BLOCK,
    BZIP2,
    DEFLATE,
    LEAST,
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

BLOCKS_FROM = LEAST
"""How much of a file is read at first, to tell what it is; from there on it is read in blocks as large as is asked for."""
_SPOOL_IN_MEMORY = 4 * MIB  # a zip that cannot be sought in is kept in memory up to here, then in an unnamed file
_LABEL_CAP = 1024  # characters of a member's name; a header may claim megabytes
_ZIP_ENTRY_BYTES = 256  # of a zip's table of contents, per entry allowed: 46 are fixed, the rest is the name
_STDIN = Path("-")
_ZIP_METHODS: dict[int, Form | None] = {0: None, 8: DEFLATE, 12: BZIP2, 93: ZSTD}
_KINDS = {
    stat.S_IFLNK: "symbolic link, not followed",
    stat.S_IFIFO: "named pipe, not read",
    stat.S_IFSOCK: "socket, not read",
    stat.S_IFCHR: "device, not read",
    stat.S_IFBLK: "device, not read",
}
PASSED_OVER = frozenset({"node_modules", ".git", ".hg", ".svn", "__pycache__", "site-packages"})
"""Folders of programs and their history, which a tree has thousands of files in and none is evidence."""
_TAR_FOLDERS = (tarfile.DIRTYPE, b"D", b"V")  # the others are GNU's directory listings and volume labels
_TAR_KINDS = {
    tarfile.SYMTYPE: "symbolic link, not followed",
    tarfile.LNKTYPE: "hard link, not followed",
    tarfile.CHRTYPE: "device, not read",
    tarfile.BLKTYPE: "device, not read",
    tarfile.FIFOTYPE: "named pipe, not read",
}


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


class Layer(NamedTuple):
    """An archive or compression around a member: `tar`, `zip`, or the name of the compression, and its own path.

    `inside` is what the paths of its members begin with.
    """

    form: str
    label: str
    inside: str


class Begin(NamedTuple):
    """A place in a file behind a newline, from which its reading can go on.

    `passed` bytes and `line - 1` lines stand before it. `taken` is how far blocks had been read when the line before was cut
    off, and `sha256` is that of so many bytes. `rest` are the bytes between the two; "" until they were read.
    """

    passed: int
    line: int
    taken: int
    sha256: str
    rest: bytes = b""


class Member(NamedTuple):
    """One file of the bundle.

    `path` is a relative posix path, fit to print and unique in the bundle; nested ones read `outer.tar.gz/inner.log`.
    `stream` gives the decompressed bytes, forward only, and has to be consumed before the next member is asked for
    (what is left then is passed over). `read(n)` never raises for bad data and may give less than n, but at least
    64 KiB (or all n) before the end. `size` is what the archive or file system claims, None where nobody knows.
    `layers` are the archives and compressions around it, outermost first.
    `begin` is where the stream goes on, its `rest` before it, where what stands before was proved to be as it was.
    """

    path: str
    stream: BinaryIO
    size: int | None
    layers: tuple[Layer, ...] = ()
    begin: Begin | None = None


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

    def pass_over(self, count: int) -> None:
        """Account for bytes that a consumer has from elsewhere."""
        self.taken += count
        self._left -= count
        self._intake.handed_out(self.label, count)

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
    layers: tuple[Layer, ...] = ()

    def entry(self, label: str, size: int) -> _Place:
        """The place of a member of the archive here."""
        return _Place(label, f"{label}/", self.depth + 1, size=size, layers=self.layers)

    def within(self, form: str) -> _Place:
        """The same place with one more layer around what is inside."""
        return self._replace(layers=(*self.layers, Layer(form, self.label, self.inside)))


class _Given(NamedTuple):
    """A file to open: its path (None is standard input), and whether it was found in a folder."""

    path: Path | None
    place: _Place
    found: bool

    def open(self) -> contextlib.AbstractContextManager[BinaryIO]:
        if self.path is None:
            # without its buffer, whose lock a reader that waits for a pipe would hold when the program ends
            return contextlib.nullcontext(cast(BinaryIO, getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)))
        if not self.found:
            return _pipe(self.path) if self.path.is_fifo() else self.path.open("rb", buffering=0)
        # since it was listed, a file may have become a link or a pipe: neither follow the one nor wait for the other
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        raw = open(os.open(self.path, flags), "rb", buffering=0)  # noqa: PTH123, SIM115 - a descriptor, closed by `with`
        if not _is_regular(raw):
            raw.close()
            raise OSError("it is no regular file any more")
        return raw


WRITER_S = 10.0  # a script may open its end after ours; nobody who comes later is waited for


def _pipe(path: Path) -> BinaryIO:
    """A named pipe opened for reading once somebody writes into it; OSError where nobody does."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # without it, opening waits for a writer for ever
    until = time.monotonic() + WRITER_S
    first = b""
    try:
        while not first and time.monotonic() < until:
            try:
                first = os.read(number, 1)
            except BlockingIOError:  # somebody is there who has written nothing yet
                break
            if not first:
                time.sleep(0.02)
        else:
            if not first:
                raise OSError(f"nobody wrote into the pipe within {WRITER_S:.0f} s")
        os.set_blocking(number, True)
    except BaseException:
        os.close(number)
        raise
    return cast(BinaryIO, _Begun(open(number, "rb", buffering=0), first))  # noqa: PTH123 - closed by `with`


class _Begun(contextlib.AbstractContextManager["_Begun"]):
    """A file of which the first bytes were read already."""

    def __init__(self, raw: BinaryIO, first: bytes) -> None:
        self._raw, self._first = raw, first

    def read(self, size: int = -1) -> bytes:
        first, self._first = self._first, b""
        return first or self._raw.read(size)

    def fileno(self) -> int:
        return self._raw.fileno()

    def __exit__(self, *_: object) -> None:
        self._raw.close()


@dataclass
class Intake:
    """A bundle that is being read. Iterate `members` once; the other fields are filled on the way.

    `bytes` counts what was given, packed as it was; `content_bytes` and `files` what was handed out.
    `unread` lists what was not read, in the order it was met. `digest` is known at the end of the iteration: for a
    single file or standard input the SHA-256 of its bytes as given (what `sha256sum` prints), for a folder or several
    paths that of the lines `sha256sum` would print for its files (`<hex>  <path>`), sorted by path, so it does not
    depend on the order in which a file system lists them. Files that could not be opened have no line. A pipe counts
    as far as it was read, and so does a file beyond `max_total_bytes`; holes of 64 MiB and more are left out. Hashing costs 0.8 s of CPU per GiB given; `hashing=False` leaves it out, `digest` stays "".
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
    begins: Mapping[str, Begin] = field(default_factory=dict)
    """By path, where to go on in files whose first `taken` bytes are still those; others are read from their beginning."""
    _given: list[_Given] = field(default_factory=list, repr=False)
    _given_bytes: int = field(default=0, repr=False)
    _entries: int = field(default=0, repr=False)
    _unpacked: int = field(default=0, repr=False)
    _names: dict[str, int] = field(default_factory=dict, repr=False)
    _passed: dict[str, list[str]] = field(default_factory=dict, repr=False)  # folders passed over, by name
    _seen: dict[tuple[int, int], str] = field(default_factory=dict, repr=False)
    _before: int = field(default=0, repr=False)  # bytes of the files before the one at hand
    _digest: Any = field(default=None, repr=False)

    def members(self) -> Iterator[Member]:
        """Every file of the bundle, folders sorted by name and archives in their own order; to be called once.

        Raises BundleError at the end where nothing at all could be read.
        """
        hashes: list[tuple[str, str]] = []
        yield from self._members(hashes)
        for name, folders in self._passed.items():
            more = f", and {len(folders) - 1:,} more of that name" if len(folders) > 1 else ""
            self.unread.append(Unread(folders[0], f"{name}: a folder of programs, not looked into{more}"))
        if self.hashing and hashes:
            lines = "".join(f"{digest}  {label}\n" for label, digest in sorted(hashes))
            alone = len(self._given) == 1 and not self._given[0].found
            self.digest = hashes[0][1] if alone else hashlib.sha256(lines.encode()).hexdigest()
        if not self.content_bytes:
            raise self.nothing()

    def _members(self, hashes: list[tuple[str, str]]) -> Iterator[Member]:
        """The members, and the hash of every file given."""
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
                regular = _is_regular(raw)
                digest, begin = self._proved(raw, given.place) if regular else (hashlib.sha256(), None)
                self._before, self._digest = self.bytes, digest
                file = Source(raw, label, self.note, partial(self._took, digest))
                if begin is None:
                    yield from self._open(file, given.place, raw if regular else None)
                else:
                    yield from self._go_on(file, given.place, begin)
                if self.hashing and regular and not self.stopped:
                    file.skip(self.limits.max_total_bytes)
                hashes.append((label, digest.hexdigest()))

    def taken(self, member: Member) -> int:
        """How many bytes of a member were read so far."""
        return cast(Stream, member.stream).taken

    def hashed(self) -> tuple[int, str]:
        """How many bytes of the file at hand were read, and their SHA-256."""
        return self.bytes - self._before, self._digest.hexdigest()

    def _proved(self, raw: BinaryIO, place: _Place) -> tuple[Any, Begin | None]:
        """The hash of the bytes before the place to go on from, if they are what they were; else of none.

        Only all of them prove it: what stands before decides what the rest means, and may change in any byte.
        """
        begin = self.begins.get(place.label)
        digest = hashlib.sha256()
        if begin is None or not self.hashing or self.content_bytes + (place.size or 0) > self.limits.max_total_bytes:
            return digest, None
        left, rest = begin.taken, b""
        try:
            while left and (data := raw.read(min(left, MIB))):
                digest.update(data)
                left -= len(data)
                rest = (rest + data)[begin.passed - begin.taken :] if begin.taken > begin.passed else b""
        except OSError:
            left = 1
        if left or digest.hexdigest() != begin.sha256:
            raw.seek(0)
            return hashlib.sha256(), None
        return digest, begin._replace(rest=rest)

    def _go_on(self, stream: Stream, place: _Place, begin: Begin) -> Iterator[Member]:
        """The member that a proved file is, behind the place up to which it was read."""
        leaf = _Leaf(self, stream, place.label)
        self.bytes += begin.taken
        leaf.pass_over(begin.taken)
        self.files += 1
        yield Member(place.label, cast(BinaryIO, leaf), place.size, place.layers, begin)
        leaf.drain()

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

    def _took(self, digest: Any, data: Any) -> None:  # `bytes` is a field here
        """Account for data of what was given."""
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

    def _passes(self, path: str) -> bool:
        """Whether something lies in a folder to pass over, which is remembered."""
        parts = path.split("/")[:-1]
        name = next((part for part in parts if part in PASSED_OVER), None)
        if name is None:
            return False
        folder = "/".join(parts[: parts.index(name) + 1])
        folders = self._passed.setdefault(name, [])
        if folder not in folders[-1:]:
            folders.append(folder)
        return True

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
            yield Member(place.label, cast(BinaryIO, leaf), place.size, place.layers)
            leaf.drain()
        elif place.depth >= self.limits.max_depth:
            self.note(place.label, f"more than {self.limits.max_depth} archives inside each other: not opened")
        elif form == "tar":
            yield from self._tar(stream, place.within("tar"))
        elif form == "zip":
            yield from self._zip(stream, place.within("zip"), raw)
        else:
            unpacked = Unpacked(cast(Form, form), stream, place.label, self.note, self._grown)
            inner = place.within(cast(Form, form).name)
            yield from self._open(unpacked, inner._replace(depth=place.depth + place.packed, packed=True, size=None))

    def _tar(self, stream: Stream, place: _Place) -> Iterator[Member]:
        for info in tar_headers(stream):
            if not self._entry(place):
                return
            if info.type in _TAR_FOLDERS:
                continue
            label = place.inside + safe_path(info.name)
            if self._passes(label):
                continue
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
            bounded = _Bounded(raw or cast(BinaryIO, spool), self.limits.max_members * _ZIP_ENTRY_BYTES)
            try:
                archive = zipfile.ZipFile(cast(BinaryIO, bounded))
            except Exception as problem:  # `zipfile` raises many things for hostile bytes
                why = "truncated or damaged: no usable table of contents at its end"
                self.note(place.label, f"{why} ({reason(problem)})")
                return
            for info in archive.infolist():
                if not self._entry(place):
                    return
                if not info.filename.endswith("/") and not self._passes(place.inside + safe_path(info.filename)):
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

    def add_found(self, path: Path, label: str) -> None:
        """Take in a file as one that a folder's listing found, under a path of its own in the bundle."""
        self._found(path, path.stat(follow_symlinks=False), label)

    def taken_in(self) -> list[tuple[Path, str]]:
        """Files that will be read and their paths in the bundle, in order."""
        return [(given.path, given.place.label) for given in self._given if given.path is not None]

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
                    if not self._passes(f"{label}/"):
                        deeper.append((folder / entry.name, f"{label}/"))
                elif self._entry(_Place(self.name, "")):
                    self._found(folder / entry.name, status, label)
                else:
                    self.stopped = ""  # those that are listed by now are read
                    return
            folders += reversed(deeper)

    def _found(self, path: Path, status: os.stat_result, label: str) -> None:
        if why := _KINDS.get(stat.S_IFMT(status.st_mode)):
            self.note(label, why)
            return
        label = self._unique(label)
        self._file(path, status, _Place(label, f"{label}/", size=status.st_size), found=True)


def _is_regular(raw: BinaryIO) -> bool:
    try:
        return stat.S_ISREG(os.fstat(raw.fileno()).st_mode)
    except (OSError, ValueError):  # an object without descriptor in place of standard input
        return False


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
        if re.match(r"https?:/", str(path)):
            address = re.sub(r"(?<=:)/+", "//", str(path), count=1)
            raise BundleError(
                f"{address} is an address, and nothing is read over a network",
                "Pipe it in: curl -s ADDRESS | oomdoc COMMAND -",
            ) from None
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
    (0, b"LZIP", "lzip file, unpack it first"),
    (0, b"\x5d\0\0", "lzma file, unpack it first"),
    (0, b"\x89LZO\0", "lzop file, unpack it first"),
    (0, b"\xff\x06\0\0sNaPpY", "snappy file, unpack it first"),
    (0, b"!<arch>\n", "Debian package or ar archive, unpack it first"),
    (0, b"\xed\xab\xee\xdb", "RPM package, unpack it first"),
    (0, b"070701", "cpio archive, unpack it first"),
    (0, b"070702", "cpio archive, unpack it first"),
    (0, b"070707", "cpio archive, unpack it first"),
    (0, b"\xc7\x71", "cpio archive, unpack it first"),
    (0, b"\x71\xc7", "cpio archive, unpack it first"),
    (0, b"MSCF\0\0\0\0", "cabinet archive, unpack it first"),
    (0, b"xar!", "xar archive, unpack it first"),
    (2, b"-lh", "LHA archive, unpack it first"),
    (0, b"hsqs", "squashfs image, unpack it first"),
    (0, b"QFI\xfb", "disk image (qcow2), unpack it first"),
    (32769, b"CD001", "ISO 9660 image, unpack it first"),
    (0, b"age-encryption.org/v1", "file encrypted with age, decrypt it first"),
    (0, b"-----BEGIN AGE ENCRYPTED FILE-----", "file encrypted with age, decrypt it first"),
    (0, b"-----BEGIN PGP MESSAGE-----", "file encrypted with PGP, decrypt it first"),
    (0, b"Salted__", "file encrypted with OpenSSL, decrypt it first"),
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
    # nearly all text is without NUL, and a bundle may hold a thousand small files: 0.05 ms each instead of 0.5
    body = _HOLE.sub(b"", head) if b"\0" in head else head
    even, odd = (body[::2].count(0), body[1::2].count(0)) if b"\0" in body else (0, 0)
    if max(even, odd) > 0.35 * len(body) and min(even, odd) < 0.02 * len(body):
        return None  # UTF-16 without its mark: every other byte of ASCII text is NUL
    strange = len(body.translate(None, _TEXT))
    return "binary data" if strange > max(4, _ODD_SHARE * len(body)) else None
