"""Devices: what `--gpu` means in bytes, as data with its source (`gpus.toml`)."""

from __future__ import annotations

import difflib
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from oomdoc.errors import UsageError
from oomdoc.physics.interval import Interval, point
from oomdoc.units import GIB, parse_size


@dataclass(frozen=True)
class Gpu:
    """A device: its name (empty where only a size was given) and its total in bytes."""

    name: str
    total_bytes: Interval


@cache
def gpus() -> tuple[tuple[Gpu, tuple[str, ...]], ...]:
    """Every device of the table with the words that find it."""
    raw = tomllib.loads(Path(__file__).with_name("gpus.toml").read_text(encoding="utf-8"))
    return tuple(
        (
            Gpu(row["name"], Interval(row["total_gib"][0] * GIB, row["total_gib"][1] * GIB, "catalogue")),
            tuple(row["match"]),
        )
        for row in raw["gpu"]
    )


def find_gpu(text: str) -> Gpu:
    """The device of a name or a size. UsageError where it is neither.

    A bare number is GiB. `80GB` is what it says, 80 x 10^9 bytes, which is less than an 80 GB card has: name the card.

    >>> find_gpu("H100").name, find_gpu("NVIDIA A100-SXM4-40GB").name, find_gpu("24GiB").total_bytes.lo / GIB
    ('NVIDIA H100 80GB', 'NVIDIA A100 40GB', 24.0)
    """
    size = parse_size(text, unit="GiB")
    if size is not None and size > 0:
        return Gpu("", point(size, "given"))
    plain = _plain(text)
    hits = [
        (len(words), gpu)
        for gpu, match in gpus()
        for words in match
        if re.search(rf"(?<![a-z0-9]){re.escape(_plain(words))}(?=$|[^a-z0-9]|g(?:i?b)?(?![a-z0-9]))", plain)
    ]
    if hits:
        return max(hits, key=lambda hit: hit[0])[1]
    names = {words: gpu.name for gpu, match in gpus() for words in match}
    near = difflib.get_close_matches(plain, names, 2, 0.5)
    meant = f"Did you mean {' or '.join(dict.fromkeys(word.upper() for word in near))}? " if near else ""
    raise UsageError(
        f"no device '{text}' is known", f"{meant}Name a size such as 80GiB, or one such as H100, L40S, A10G"
    )


def _plain(text: str) -> str:
    return re.sub(r"[\s_\-]+", " ", text.lower()).strip()
