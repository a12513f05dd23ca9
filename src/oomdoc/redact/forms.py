"""What a member is before anything is replaced in it: text of an encoding, parts that end with NUL, or nothing that can be redacted.

The magic of a format comes first, so that no file that happens to look like text in places is copied as one.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

from oomdoc.intake.binary import binary_form

HEAD_BYTES = 64 << 10
_MARKS = (  # longest first: the mark of UTF-32 little endian begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_MAGIC: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "Microsoft compound document"),
    (0, b"ID3", "MP3 sound"),
    (0, b"RIFF", "RIFF sound, film or picture"),
    (0, b"OggS", "Ogg sound or film"),
    (0, b"fLaC", "FLAC sound"),
    (4, b"ftyp", "MP4 film"),
    (0, b"\x1aE\xdf\xa3", "Matroska film"),
    (0, b"II*\0", "TIFF picture"),
    (0, b"MM\0*", "TIFF picture"),
    (0, b"BM", "BMP picture"),
    (0, b"\xd4\xc3\xb2\xa1", "packet capture"),
    (0, b"\xa1\xb2\xc3\xd4", "packet capture"),
    (0, b"\x0a\x0d\x0d\x0a", "packet capture"),
    (0, b"Obj\x01", "Avro file"),
    (0, b"ORC", "ORC file"),
    (0, b"FEA1", "Feather file"),
    (0, b"REDIS0", "Redis dump"),
    (0, b"!<arch>\n", "ar archive or Debian package"),
    (0, b"070701", "cpio archive"),
    (0, b"\xed\xab\xee\xdb", "RPM package"),
    (0, b"LZIP", "lzip file"),
    (0, b"age-encryption.org/", "encrypted file"),
    (0, b"Salted__", "encrypted file"),
    (0, b"LUKS\xba\xbe", "encrypted disk"),
    (0, b"MZ", "Windows program"),
    (0, b"\0asm", "WebAssembly program"),
    (0, b"PGDMP", "PostgreSQL dump"),
    (0, b"\xfe\xed\xfe\xed", "Java key store"),
)
"""Formats beyond those of the intake, which reads what it can: here everything else is left out."""
_ONLY_BINARY = {b"BM", b"MZ", b"ORC", b"ID3", b"RIFF"}  # also how a text may begin: with control characters only
_STRANGE = bytes(value for value in range(32) if value not in b"\b\t\n\v\f\r\x1b")
_STRANGE_SHARE = 0.01
"""Control characters in a text, holes of NUL apart; random bytes have 0.09. A log with a stray NUL now and then has under 0.001."""
_HOLE = re.compile(rb"\0{32,}")


class Form(NamedTuple):
    """How to read a member: its encoding, the bytes of its mark, and why it cannot be read as text (None where it can)."""

    encoding: str = "utf-8"
    mark: bytes = b""
    refused: str | None = None


def form_of(head: bytes) -> Form:
    """The form of a member by its first bytes (up to `HEAD_BYTES`).

    >>> form_of("INFO".encode("utf-32")).encoding, form_of(b"HF_TOKEN=x\\0HOME=/root\\0").refused
    ('utf-32-le', None)
    >>> form_of(b"SQLite format 3\\0 a prompt").refused
    'SQLite database'
    """
    for at, magic, name in _MAGIC:
        if head.startswith(magic, at) and (magic not in _ONLY_BINARY or _strange(head)):
            return Form(refused=name)
    for mark, encoding in _MARKS:
        if head.startswith(mark) and (encoding != "utf-16-le" or head[2:4] != b"\0\0"):
            return Form(encoding, mark)
    named = binary_form(head)
    if b"\0" not in head or named not in (None, "binary data"):
        return Form(refused=named or ("binary data" if _strange(head) else None))
    if encoding := _wide(head):
        return Form(encoding)
    if is_nul_separated(head):
        return Form()
    return Form(refused=named or ("binary data" if _strange(head) else None))


def _wide(head: bytes) -> str:
    """UTF-16 or UTF-32 without a mark by where ASCII has its NULs; "" for neither."""
    share = [head[at::4].count(0) / max(1, len(head[at::4])) for at in range(4)]
    if len(head) >= 16:
        if min(share[1:]) > 0.9 and share[0] < 0.1:
            return "utf-32-le"
        if min(share[:3]) > 0.9 and share[3] < 0.1:
            return "utf-32-be"
    even, odd = head[::2].count(0), head[1::2].count(0)
    if len(head) > 20 and max(even, odd) > 0.35 * len(head) and min(even, odd) < 0.02 * len(head):
        return "utf-16-le" if odd > even else "utf-16-be"
    return ""


def is_nul_separated(head: bytes) -> bool:
    """Whether a source is text whose parts end with NUL, as `/proc/PID/environ` and `cmdline` are: every part is text.

    >>> is_nul_separated(b"vllm\\0serve\\0x\\0"), is_nul_separated(b"ab\\0\\x01\\x02\\0")
    (True, False)
    """
    if b"\0" not in head or b"\n\0" in head or b"\0\0\0\0" in head.rstrip(b"\0"):
        return False
    parts = head.split(b"\0")
    if len(head) >= HEAD_BYTES:
        parts.pop()  # cut, perhaps within a character
    try:
        return all(
            part.decode("utf-8").replace("\n", "").replace("\t", "").replace("\x1b", "").isprintable() for part in parts
        )
    except UnicodeDecodeError:
        return False


def _strange(head: bytes) -> bool:
    body = _HOLE.sub(b"", head)
    strange = len(body) - len(body.translate(None, _STRANGE))
    return strange > max(4, _STRANGE_SHARE * len(body))
