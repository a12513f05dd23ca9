"""Forward-only streams: files, slices of them, and what the libraries unpack of them; forms told by their first bytes.

A `read` never raises for bad data, since it runs wherever the consumer runs: it ends early and says why to `note`.
Nothing here knows of bundles, names or limits; `bundle.py` lays these streams over each other.
"""

from __future__ import annotations

import bz2
import errno
import io
import lzma
import os
import re
import tarfile
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple, cast

from oomdoc.regexes import regex
from oomdoc.units import KIB, MIB

LEAST = 128 * KIB  # a read gives at least this much (or all that was asked) before the end
BLOCK = tarfile.BLOCKSIZE
_MEMORY_CAP = 256 * MIB  # dictionary of one xz decoder: `xz -9` needs 65 MiB, the format would allow 4 GiB
_WINDOW_CAP = 128 * MIB  # window of one zstd decoder: the zstd tool's own limit without `--long`
_HOLE_FROM = (
    64 * MIB
)  # of NUL bytes in a row: a hole may follow (a log that was truncated under its writer), and is jumped over
_NULS_CAP = 1024 * MIB  # of them that no jump passes (a second's reading): a device, or space that was never written
_HEADER_CAP = 16 * KIB  # kept of one tar header: two paths of 4,096 and attributes; it may claim gigabytes
_HEADERS_CAP = 64 * KIB  # of all headers before one member; old versions of `tarfile` may hold 4,000 times as much

UNPRINTABLE = regex("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")

Note = Callable[[str, str], None]  # (label, why): something was not read, or not to its end
Allow = Callable[[int, int, int], str]  # (new bytes, unpacked bytes so far, packed bytes so far) -> why to stop, or ""


class Stream(io.BufferedIOBase):
    """A forward-only reader; a subclass gives bytes by `_more`, b"" at the end and ever after, and never raises there.

    `label` is how notes name it, `taken` counts bytes given, `failed` says that it ended before its time.
    """

    def __init__(self, label: str, note: Note) -> None:
        super().__init__()
        self.label = label
        self.taken = 0
        self.failed = False
        self._note = note
        self._held = b""  # read ahead, given out up to `_at`
        self._at = 0

    def _more(self, size: int) -> bytes:
        """Up to about `size` bytes."""
        raise NotImplementedError

    def fail(self, why: str) -> None:
        """Note why this ends before its time."""
        self.failed = True
        self._note(self.label, why)

    def _hold(self, need: int, ask: int = LEAST) -> None:
        """Have `need` bytes in hand, or all there are; where nothing is, `ask` at once, so that no copy is made."""
        have = len(self._held) - self._at
        if have >= need:
            return
        parts = [self._held[self._at :]] if have else []
        while have < need and (more := self._more(LEAST if have else ask)):
            parts.append(more)
            have += len(more)
        self._held, self._at = parts[0] if len(parts) == 1 else b"".join(parts), 0

    def readable(self) -> bool:
        """That it is."""
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """Up to `size` bytes, but `LEAST` of them (or all that was asked) before the end."""
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(MIB), b""))
        self._hold(min(size, LEAST), max(size, LEAST))
        data = self._held[self._at : self._at + size]
        self._at += len(data)
        if self._at == len(self._held):  # let go, so that the memory serves the next read: a tenth of the CPU
            self._held, self._at = b"", 0
        self.taken += len(data)
        return data

    def read1(self, size: int | None = -1, /) -> bytes:
        """The same."""
        return self.read(size)

    def peek(self, size: int = 0, /) -> bytes:
        """Some of the next bytes: what `readline` asks for."""
        return self.ahead(LEAST)

    def ahead(self, size: int) -> bytes:
        """The next `size` bytes (less at the end), which the next read gives again."""
        self._hold(size)
        return self._held[self._at : self._at + size]

    def skip(self, size: int) -> None:
        """Pass over `size` bytes, or what there is."""
        while size > 0 and (data := self.read(min(size, MIB))):
            size -= len(data)

    def skip_zeros(self) -> None:
        """Pass over blocks of NUL bytes."""
        while data := self.ahead(LEAST):
            rest = len(data.lstrip(b"\0"))
            self.skip((len(data) - rest) // BLOCK * BLOCK if rest else len(data))
            if rest:
                return

    def drain(self) -> None:
        """Pass over the rest."""
        while self.read(MIB):
            pass


class Source(Stream):
    """The bytes of a file object; `seen` gets them too. Holes of sparse files are passed over, and endless NUL bytes end it."""

    def __init__(self, raw: BinaryIO, label: str, note: Note, seen: Callable[[bytes], None] | None = None) -> None:
        super().__init__(label, note)
        self._raw = raw
        self._seen = seen
        self._over = False
        self._nuls = 0  # in a row

    def _more(self, size: int) -> bytes:
        if self._over:  # somebody else may have gone elsewhere in the file since
            return b""
        data = b""
        try:
            data = self._raw.read(size) or b""
        except Exception as problem:  # OSError of a disk, anything of an entry in a hostile zip
            self.fail(f"read error: {reason(problem)}")
        self._over = not data
        if self._seen:
            self._seen(data)
        if data and not data[0] and not data[-1] and data.count(0) == len(data):
            self._nuls += len(data)
            if self._nuls >= _HOLE_FROM:
                self._pass_hole()
        else:
            self._nuls = 0
        return data

    def _pass_hole(self) -> None:
        """Go to where the next data of a sparse file are; give up where there are too many NUL bytes."""
        try:
            at = self._raw.tell()
            there = os.lseek(self._raw.fileno(), at, os.SEEK_DATA)
            self._raw.seek(there)
            self._nuls = 0 if there > at else self._nuls
        except OSError as problem:
            self._over = problem.errno == errno.ENXIO  # nothing but a hole up to the end
        except (AttributeError, ValueError):  # a system, or an object, without holes
            pass
        if self._nuls >= _NULS_CAP and not self._over:
            self._over = True
            self.fail(f"nothing but NUL bytes for {_NULS_CAP // MIB:,} MiB: the rest was not read")


class Slice(Stream):
    """The next `size` bytes of another stream; notes when that one ends before."""

    def __init__(self, source: Stream, size: int, label: str, note: Note) -> None:
        super().__init__(label, note)
        self._source = source
        self._size = self._left = max(size, 0)

    def _more(self, size: int) -> bytes:
        if not self._left or self.failed:
            return b""
        data = self._source.read(min(size, self._left))
        self._left -= len(data)
        if not data:
            self.fail(f"truncated: ended after {self._size - self._left:,} of {self._size:,} bytes")
        return data


class Checked(Stream):
    """Another stream, its CRC-32 compared at the end: the bytes are given in any case."""

    def __init__(self, source: Stream, crc: int, note: Note) -> None:
        from isal import isal_zlib

        super().__init__(source.label, note)
        self._crc32: Callable[[bytes, int], int] = isal_zlib.crc32
        self._source = source
        self._wanted = crc
        self._crc = 0

    def _more(self, size: int) -> bytes:
        data = self._source.read(size)
        self._crc = self._crc32(data, self._crc)
        if not data and self._source.failed:
            self.failed = True
        elif not data and self._crc != self._wanted and not self.failed:
            self.fail("damaged: the checksum of the zip entry differs, the content is not as packed")
        return data


def reason(problem: Exception) -> str:
    """Why, in a few words."""
    if isinstance(problem, OSError) and problem.errno:
        told = {errno.ENOENT: "it is gone", errno.EACCES: "permission denied"}
        return told.get(problem.errno, os.strerror(problem.errno).lower())
    return UNPRINTABLE.sub(" ", str(problem))[:100] or type(problem).__name__


# --- what is packed -------------------------------------------------------------------------------------------


class _Zstd:
    """The object of `zstandard` in the shape of the others.

    Its `stream_reader` ends without a word where a frame is cut off (0.25). This object says `eof`, but gives all that
    its input holds at once, 32,000 times as much in the worst case, and needs twice the room for it: it is fed small
    pieces, which cost nothing: crumbs at first and where the last one grew to a megabyte.
    """

    _PIECE = 2 * KIB
    _CRUMB = 64
    _MUCH = MIB

    def __init__(self) -> None:
        import zstandard

        self._frame = zstandard.ZstdDecompressor(max_window_size=_WINDOW_CAP).decompressobj()
        self._rest = memoryview(b"")
        self._piece = self._CRUMB

    @property
    def eof(self) -> bool:
        return self._frame.eof

    @property
    def needs_input(self) -> bool:
        return not self._rest

    @property
    def unused_data(self) -> bytes:
        return self._frame.unused_data + self._rest

    def decompress(self, data: bytes | memoryview, max_length: int = -1) -> bytes:
        if data:
            self._rest = memoryview(data)
        parts: list[bytes] = []
        while self._rest and not self.eof and sum(map(len, parts)) < max_length:
            piece, self._rest = self._rest[: self._piece], self._rest[self._piece :]
            parts.append(self._frame.decompress(piece))
            self._piece = self._CRUMB if len(parts[-1]) > self._MUCH else self._PIECE
        return b"".join(parts)


def _isal(flag: str) -> Any:
    from isal import igzip_lib

    return igzip_lib.IgzipDecompressor(flag=getattr(igzip_lib, flag))


class Form(NamedTuple):
    """A compression: its name, its first bytes (None where others say so), the size of the checksum at its end.

    `new` gives a decompressor for one stream, of the shape that bz2's, lzma's and isal's have in common: `decompress`,
    `needs_input`, `eof`, `unused_data`.
    """

    name: str
    magic: re.Pattern[bytes] | None
    new: Callable[[], Any]
    tail: int = 0


DEFLATE = Form("deflate", None, lambda: _isal("DECOMP_DEFLATE"))
GZIP = Form("gzip", regex(rb"\x1f\x8b"), lambda: _isal("DECOMP_GZIP"), tail=8)
# the second is a frame to pass over, with which pzstd begins
ZSTD = Form("zstd", regex(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"), _Zstd, tail=4)
XZ = Form("xz", regex(rb"\xfd7zXZ\0"), lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY_CAP))
BZIP2 = Form("bzip2", regex(rb"BZh[1-9](?:1AY&SY|\x17\x72\x45\x38\x50\x90)"), bz2.BZ2Decompressor)
_ZIP = regex(rb"PK(?:\x03\x04|\x05\x06)")


def form_of(head: bytes) -> Form | str | None:
    """Which form a stream has by its first 512 bytes: a compression, "zip", "tar"; None for a plain file."""
    for form in (GZIP, ZSTD, XZ, BZIP2):
        if form.magic and form.magic.match(head):
            return form
    return "zip" if _ZIP.match(head) else "tar" if is_tar(head) else None


class Unpacked(Stream):
    """What a library unpacks of another stream; several compressed ones in a row are one, as their tools have it.

    It ends at damage, or where `allow` says so, and notes why. What was good before is given.
    """

    def __init__(self, form: Form, source: Stream, label: str, note: Note, allow: Allow) -> None:
        super().__init__(label, note)
        self._form = form
        self._engine = form.new()
        self._source = source
        self._unfed = b""
        self._before = source.taken
        self._allow = allow
        self._out = 0
        self._over = False

    def _more(self, size: int) -> bytes:
        if self._over:
            return b""
        parts: list[bytes] = []
        start = self._out
        # a packed block of text is half of what is asked: readers that work on arrays pay twice for chunks of half the size
        enough = max(LEAST, size * 3 // 4)
        why = ""
        try:
            while not self._over and self._out - start < enough:
                parts.append(self._piece(max(LEAST, size - (self._out - start))))
                self._out += len(parts[-1])
                self._over = not parts[-1]
        except EOFError:
            why = f"truncated: the {self._form.name} data end too early, after {self._out:,} bytes of content"
        except Exception as problem:  # decoders raise what they like for hostile bytes
            why = f"damaged: bad {self._form.name} data after {self._out:,} bytes of content ({reason(problem)})"
        stop = self._allow(self._out - start, self._out, self._source.taken - self._before)
        if why or stop:
            self._over = True
            self.fail(why or stop)
        return b"" if stop else b"".join(parts)

    def _piece(self, size: int) -> bytes:
        """Some more content, b"" at the end; EOFError where the packed bytes end too early."""
        while not self._engine.eof or self._follows():
            packed = self._feed() if self._engine.needs_input else b""
            data: bytes = self._engine.decompress(packed, size)
            if data:
                return data
        return b""

    def _feed(self) -> memoryview:
        """The next packed bytes, `LEAST` of them: isal (1.9) misreads a gzip header that comes in two pieces.

        A checksum at the end comes alone, so that the content is out when it is compared.
        """
        more = self._source.read(LEAST)
        packed = memoryview(self._unfed + more)
        if not packed:
            raise EOFError
        cut = max(len(packed) - self._form.tail, 0) if more else len(packed)
        self._unfed = bytes(packed[cut:])
        return packed[:cut]

    def _follows(self) -> bool:
        """Make ready for the stream that follows, if one does, perhaps after padding with zeros."""
        if not self._form.magic:
            return False
        rest = (self._engine.unused_data + self._unfed).lstrip(b"\0")
        while len(rest) < BLOCK and (more := self._source.read(LEAST)):
            rest = (rest + more).lstrip(b"\0")
        if rest and not self._form.magic.match(rest):
            raise OSError("other data follow the end")
        self._unfed = rest
        self._engine = self._form.new()
        return bool(rest)


# --- tar ------------------------------------------------------------------------------------------------------


def is_tar(head: bytes) -> bool:
    """Whether the first 512 bytes are a tar header."""
    try:
        return tarfile.TarInfo.frombuf(head[:BLOCK], "utf-8", "replace").size >= 0
    except tarfile.HeaderError:
        return False


class _Headers:
    """The file that `tarfile` reads headers from: a stream that goes forward only, `left` bytes of it per member."""

    _HOSTILE = regex(rb"\d{1000}")  # before 3.11.10 `tarfile` takes quadratic time for digits (CVE-2024-6232)

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.left = _HEADERS_CAP

    def tell(self) -> int:
        return self._stream.taken

    def seek(self, to: int) -> None:
        if to < self._stream.taken:
            raise tarfile.ReadError("a header that points backwards")
        self._stream.skip(to - self._stream.taken)

    def read(self, size: int) -> bytes:
        kept = min(size, _HEADER_CAP)
        self.left -= kept
        if size < 0 or self.left < 0:
            raise tarfile.ReadError("headers of an impossible size")
        data = self._stream.read(kept)
        self._stream.skip(size - kept)
        if self._HOSTILE.search(data):
            raise tarfile.ReadError("a header full of digits")
        return data


def tar_headers(stream: Stream) -> Iterator[tarfile.TarInfo]:
    """The headers of a tar, and of those written behind it, by `tarfile`; after each, the stream stands at its content.

    The content is read from the stream itself: as much as `stored_bytes` says, or less. Where there is no header any
    more, the rest is noted as one.
    """
    start, why = stream.taken, "no tar header where one should be"
    try:
        while is_tar(stream.ahead(BLOCK)):
            headers = _Headers(stream)
            archive: Any = tarfile.TarFile(fileobj=cast(BinaryIO, headers), encoding="utf-8", errors="replace")
            while info := archive.next():
                yield info
                start = stream.taken
                headers.seek(archive.offset)
                start = stream.taken
                if not is_tar(stream.ahead(BLOCK)):
                    break
                headers.left = _HEADERS_CAP
                archive.members.clear()  # it would keep all
                archive.pax_headers.clear()
            stream.skip_zeros()
            start = stream.taken
    except Exception as problem:  # `tarfile` raises many things for hostile headers
        why = reason(problem)
    stream.drain()
    if lost := stream.taken - start:
        cut = "truncated: ended within a header" if lost < BLOCK else f"damaged: {why}"
        stream.fail(f"{cut}, {lost:,} bytes at {start:,} not read")


def stored_bytes(info: tarfile.TarInfo) -> int:
    """How many bytes of a tar member are there; the holes of a sparse file are not, and zeros are no text."""
    sparse: list[tuple[int, int]] | None = getattr(info, "sparse", None)
    return info.size if sparse is None else sum(size for _, size in sparse)
