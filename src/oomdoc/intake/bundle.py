"""A folder, an archive, single files or `-` (standard input) become a stream of members: a path and its bytes.

Nothing is unpacked to disk and nothing is ever written under a name that an archive chose: members are read forward,
one at a time, however deep they lie (`node.tar.gz` in `bundle.zip`). Formats are told by their first bytes, never by
the file's name. Links, devices and pipes are never followed. What could not be read stands in `Intake.unread` with the
reason, and the rest is read all the same; only an input that gives nothing at all is a `BundleError`.

Reading bytes is the work of `streams.py`; here one generator, `Intake._open`, looks at the first bytes of a stream and
goes one layer deeper, and the limits are kept. This module does not know what a log is. docs/decisions/0008-intake-on-libraries.md says why it is built on libraries, and what that costs.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

from oomdoc.errors import BundleError
from oomdoc.intake import zips
from oomdoc.intake.given import STDIN, Given, check_path, is_regular, shortest_tails
from oomdoc.intake.members import TAIL_BYTES, Begin, Member, Place, Unread, safe_path
from oomdoc.intake.streams import (
    BLOCK,
    LEAST,
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
    _given: list[Given] = field(default_factory=list, repr=False)
    _given_bytes: int = field(default=0, repr=False)
    _entries: int = field(default=0, repr=False)
    _unpacked: int = field(default=0, repr=False)
    _names: dict[str, int] = field(default_factory=dict, repr=False)
    _passed: dict[str, list[str]] = field(default_factory=dict, repr=False)  # folders passed over, by name
    _by_inode: dict[tuple[int, int], str] = field(default_factory=dict, repr=False)
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
                regular = is_regular(raw)
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

    def _proved(self, raw: BinaryIO, place: Place) -> tuple[Any, Begin | None]:
        """The hash of the bytes before the place to go on from, if they are what they were; else of none.

        Only all of them prove it: what stands before decides what the rest means, and may change in any byte.
        """
        begin = self.begins.get(place.label)
        digest = hashlib.sha256()
        if begin is None or not self.hashing or self.content_bytes + (place.size or 0) > self.limits.max_total_bytes:
            return digest, None
        left, tail = begin.taken, b""
        waiting = begin.taken - begin.passed
        try:
            while left and (data := raw.read(min(left, MIB))):
                digest.update(data)
                left -= len(data)
                tail = (tail + data)[-(TAIL_BYTES + waiting) :]
        except OSError:
            left = 1
        if left or digest.hexdigest() != begin.sha256:
            raw.seek(0)
            return hashlib.sha256(), None
        cut = len(tail) - waiting
        return digest, begin._replace(rest=tail[cut:], before=tail[:cut])

    def _go_on(self, stream: Stream, place: Place, begin: Begin) -> Iterator[Member]:
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
        message = f"nothing in {self.name} could be read ({where}{why}{more})"
        return BundleError(message, "Check how the bundle was made")

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

    def _entry(self, place: Place) -> bool:
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

    def _open(self, stream: Stream, place: Place, raw: BinaryIO | None = None) -> Iterator[Member]:
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

    def _tar(self, stream: Stream, place: Place) -> Iterator[Member]:
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

    def _zip(self, stream: Stream, place: Place, raw: BinaryIO | None) -> Iterator[Member]:
        with tempfile.SpooledTemporaryFile(_SPOOL_IN_MEMORY) as spool:
            if raw:
                stream.drain()  # for the digest
            elif why := zips.spooled(stream, cast(BinaryIO, spool), self.limits.max_spool_bytes):
                self.note(place.label, why)
                return
            archive = zips.opened(raw or cast(BinaryIO, spool), self.limits.max_members)
            if isinstance(archive, str):
                self.note(place.label, archive)
                return
            for info in archive.infolist():
                if not self._entry(place):
                    return
                if not info.filename.endswith("/") and not self._passes(place.inside + safe_path(info.filename)):
                    yield from self._zip_entry(archive, info, place)

    def _zip_entry(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo, place: Place) -> Iterator[Member]:
        label = place.inside + safe_path(info.filename)
        stored = zips.packed(archive, info)
        if isinstance(stored, str):
            self.note(label, stored)
            return
        label = self._unique(label)
        body = zips.content(stored, info, label, self.note, self._grown)
        yield from self._open(body, place.entry(label, info.file_size))

    # what a person named

    def add(self, path: Path, label: str, inside: str) -> None:
        """Take in one path: its label in notes, and what the paths of its members begin with."""
        if path == STDIN:
            self._given.append(Given(None, Place(label, inside), found=False))
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
            self._given.append(Given(path, Place(label, inside), found=False))
        else:
            self._file(path, status, Place(label, inside, size=status.st_size), found=False)

    def add_found(self, path: Path, label: str) -> None:
        """Take in a file as one that a folder's listing found, under a path of its own in the bundle."""
        self._found(path, path.stat(follow_symlinks=False), label)

    def taken_in(self) -> list[tuple[Path, str]]:
        """Files that will be read and their paths in the bundle, in order."""
        return [(given.path, given.place.label) for given in self._given if given.path is not None]

    def _file(self, path: Path, status: os.stat_result, place: Place, found: bool) -> None:
        """Take in a regular file, unless it is there already by another name."""
        first = self._by_inode.setdefault((status.st_dev, status.st_ino), place.label) if status.st_ino else place.label
        if first != place.label:
            self.note(place.label, f"the same file as {first}, read once")
            return
        self._given_bytes += status.st_size
        self._given.append(Given(path, place, found))

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
                elif self._entry(Place(self.name, "")):
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
        self._file(path, status, Place(label, f"{label}/", size=status.st_size), found=True)


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
        path = STDIN if os.fspath(given) == "-" else Path(given)
        path = path.absolute() if path == STDIN and os.fspath(given) != "-" else path
        check_path(path)
        wanted.setdefault(STDIN if path == STDIN else path.resolve(), path)
    labels = shortest_tails(list(wanted.values()))
    only = len(wanted) == 1
    intake = Intake(labels[0] if only else f"{labels[0]} and {len(wanted) - 1} more", limits, hashing)
    for path, label in zip(wanted.values(), labels, strict=True):
        intake.add(path, label, "" if only else f"{label}/")
    if not intake._given:
        raise intake.nothing()
    return intake
