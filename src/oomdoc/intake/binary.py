"""What is no text, by its first bytes."""

from __future__ import annotations

import re

from oomdoc.regexes import regex

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
_PICKLE = regex(rb"\x80[\x02-\x05][\x95cq(}\]\x8a\x8c)X]")
_SAFETENSORS = regex(rb"[\x00-\xff]{4}\0{4}\{\"", re.S)
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_HOLE = regex(rb"\0{32,}")
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
