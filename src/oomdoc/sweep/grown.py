"""Files that grow: how far a sweep has read them, as bytes, so that the next one goes on from there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import zstandard

from oomdoc.intake.members import Begin
from oomdoc.loading.resume import Kept

MOST_BYTES = 16 << 20
"""Kept for one bundle; the files that would take the longest to read come first."""
_LEVEL = 3  # of zstd
_SIZE_BYTES = 4  # of the first part


def pack(kept: Kept) -> bytes:
    """The length of the first part, that part (all but the rows, as packed JSON), and the rows, which are packed already."""
    first = json.dumps(
        [
            kept.begin.passed,
            kept.begin.line,
            kept.begin.taken,
            kept.begin.sha256,
            kept.form,
            kept.kind,
            kept.reading,
            kept.words,
        ]
    )
    packed = zstandard.ZstdCompressor(level=_LEVEL).compress(first.encode())
    return len(packed).to_bytes(_SIZE_BYTES, "little") + packed + kept.told


def unpack(packed: bytes) -> Kept | None:
    """What `pack` wrote; None for anything else."""
    end = _SIZE_BYTES + int.from_bytes(packed[:_SIZE_BYTES], "little")
    try:
        first = json.loads(zstandard.ZstdDecompressor().decompress(packed[_SIZE_BYTES:end]))
        passed, line, taken, sha256, form, kind, reading, words = first
    except (zstandard.ZstdError, ValueError):
        return None
    return Kept(Begin(passed, line, taken, sha256), form, kind, reading, packed[end:], words)


def rows(kept: Mapping[str, Kept]) -> list[dict[str, Any]]:
    """Rows of the table `grown`, as many as one bundle may have."""
    made: list[dict[str, Any]] = []
    left = MOST_BYTES
    for path, each in sorted(kept.items(), key=lambda entry: (-entry[1].begin.taken, entry[0])):
        packed = pack(each)
        if len(packed) <= left:
            left -= len(packed)
            begin = each.begin
            made.append({"source": path, "bytes": begin.taken, "source_sha256": begin.sha256, "state": packed})
    return sorted(made, key=lambda row: str(row["source"]))


def known(told: Iterable[tuple[str, bytes]]) -> dict[str, Kept]:
    """Files by their path in the bundle, from (path, packed) of kept rows."""
    made = {}
    for path, packed in told:
        each = unpack(packed)
        if each is not None:
            made[path] = each
    return made
