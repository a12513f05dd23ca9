"""Zips: `zipfile` finds an entry and gives it packed; unpacked it is like everything else, damage and bombs too."""

from __future__ import annotations

import copy
import stat
import zipfile
from typing import Any, BinaryIO, cast

from oomdoc.intake.streams import BZIP2, DEFLATE, ZSTD, Allow, Checked, Form, Note, Source, Stream, Unpacked, reason
from oomdoc.units import MIB, show_bytes

_ZIP_METHODS: dict[int, Form | None] = {0: None, 8: DEFLATE, 12: BZIP2, 93: ZSTD}
_ENTRY_BYTES = 256  # of a zip's table of contents, per entry allowed: 46 are fixed, the rest is the name


def spooled(stream: Stream, spool: BinaryIO, cap: int) -> str:
    """Keep a zip that cannot be sought in, since its table of contents is at its end; why that was not possible, or ""."""
    left = cap
    while data := stream.read(MIB):
        left -= len(data)
        if left < 0:
            return f"zip of more than {show_bytes(cap)} in an archive or pipe: give it as a file"
        try:
            spool.write(data)
        except OSError as problem:
            return f"no room to keep the zip in a temporary file: {reason(problem)}"
    return ""


def opened(file: BinaryIO, most_entries: int) -> zipfile.ZipFile | str:
    """The zip in a file that can be sought in; or why it is none."""
    try:
        return zipfile.ZipFile(cast(BinaryIO, _Bounded(file, most_entries * _ENTRY_BYTES)))
    except Exception as problem:  # `zipfile` raises many things for hostile bytes
        return f"truncated or damaged: no usable table of contents at its end ({reason(problem)})"


def packed(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> BinaryIO | str:
    """The bytes of an entry as they are stored; or why it is not read."""
    if why := _refused(info):
        return why
    as_packed = copy.copy(info)
    as_packed.compress_type, as_packed.file_size = zipfile.ZIP_STORED, info.compress_size
    del as_packed.CRC  # it is that of the content
    try:
        return cast(BinaryIO, archive.open(as_packed))
    except Exception as problem:  # as above
        return f"damaged: the zip has no such entry where it says ({reason(problem)})"


def content(stored: BinaryIO, info: zipfile.ZipInfo, label: str, note: Note, grown: Allow) -> Stream:
    """What an entry holds, unpacked and checked."""
    stream: Stream = Source(stored, label, note)
    if form := _ZIP_METHODS[info.compress_type]:
        stream = Unpacked(form, stream, label, note, grown)
    return Checked(stream, info.CRC, note)


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
