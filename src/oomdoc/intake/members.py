"""What a bundle is read into: members with their paths and layers, and what was not read."""

from __future__ import annotations

import re
from typing import BinaryIO, NamedTuple

from oomdoc.intake.streams import UNPRINTABLE
from oomdoc.regexes import regex

_LABEL_CAP = 1024  # characters of a member's name; a header may claim megabytes


class Layer(NamedTuple):
    """An archive or compression around a member: `tar`, `zip`, or the name of the compression, and its own path.

    `inside` is what the paths of its members begin with.
    """

    form: str
    label: str
    inside: str


TAIL_BYTES = 256 << 10  # of a source, whose lines show the form of the last


class Begin(NamedTuple):
    """A place in a file behind a newline, from which its reading can go on.

    `passed` bytes and `line - 1` lines stand before it. `taken` is how far blocks had been read when the line before was cut
    off, and `sha256` is that of so many bytes. `rest` are the bytes between the two, `before` the last `TAIL_BYTES` that were passed;
    "" until they were read.
    """

    passed: int
    line: int
    taken: int
    sha256: str
    rest: bytes = b""
    before: bytes = b""


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


class Place(NamedTuple):
    """Where a stream lies: its own path, what its members' paths begin with, how many archives are around it.

    `packed` says that the layer around it is a compression: an archive in that is the same archive.
    """

    label: str
    inside: str
    depth: int = 0
    packed: bool = False
    size: int | None = None
    layers: tuple[Layer, ...] = ()

    def entry(self, label: str, size: int) -> Place:
        """The place of a member of the archive here."""
        return Place(label, f"{label}/", self.depth + 1, size=size, layers=self.layers)

    def within(self, form: str) -> Place:
        """The same place with one more layer around what is inside."""
        return self._replace(layers=(*self.layers, Layer(form, self.label, self.inside)))


_WINDOWS = regex(r"[A-Za-z]:|\\|.*[\\/]\.\.\\|\.\.\\|.*\\\.\.(?:$|[\\/])", re.S)


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
