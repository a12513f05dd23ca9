"""Devices: what `--gpu` means in bytes, as data with its source (`gpus.toml`)."""

from __future__ import annotations

import difflib
import functools
import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import tomli

from oomdoc.errors import UsageError
from oomdoc.physics.interval import Interval, point
from oomdoc.units import GIB, parse_size


@dataclass(frozen=True)
class Gpu:
    """A device: its name (empty where only a size was given), its total in bytes, and how many of it were named.

    `unified`: host and device share the memory.
    """

    name: str
    total_bytes: Interval
    count: int = 1
    unified: bool = False


_MOST_BYTES = 4096 * GIB  # a larger "size" is a name that ends like a unit, such as 3080Ti
_MOST_ON_THE_BOX = 512  # GB that a card's name states
_OF_THE_BOX = (0.91, 1.0)
"""What an engine sees of the GB on a card's box, in GiB: 14.6 of a 16 GB T4, 22.0 of a 24 GB L4, 15.98 of a 16 GB Radeon."""


@cache
def gpus() -> tuple[tuple[Gpu, tuple[str, ...]], ...]:
    """Every device of the table with the words that find it."""
    raw = tomli.loads(Path(__file__).with_name("gpus.toml").read_text(encoding="utf-8"))
    return tuple(
        (
            Gpu(
                row["name"],
                Interval(row["total_gib"][0] * GIB, row["total_gib"][1] * GIB, "catalogue"),
                unified=row.get("unified", False),
            ),
            tuple(row["match"]),
        )
        for row in raw["gpu"]
    )


def find_gpu(text: str) -> Gpu:
    """The device of a name or a size. UsageError where it is neither.

    A bare number is GiB. `80GB` is what it says, 80 x 10^9 bytes, which is less than an 80 GB card has: name the card.
    `4xA100-40GB` are four of them. `H100 MIG 3g.40gb` is the slice, never the whole card. A card that is not in the table
    but whose name ends with its capacity has about that: a range, with the origin `assumed`. A name and a total with
    decimals (`RX 7900 GRE 15.98GiB`), as an engine prints it, is that card with exactly that total.

    >>> find_gpu("H100").name, find_gpu("NVIDIA A100-SXM4-40GB").name, find_gpu("24GiB").total_bytes.lo / GIB
    ('NVIDIA H100 80GB', 'NVIDIA A100 40GB', 24.0)
    """
    many = re.fullmatch(r"\s*(\d{1,4})\s*[x×*]\s*(\D.*|\d.*[gG].*)", text)
    if many and int(many[1]) > 0:
        return replace(find_gpu(many[2]), count=int(many[1]))
    if slice_ := _mig(text):
        return slice_
    size = parse_size(text, unit="GiB")
    if size is not None and 0 < size <= _MOST_BYTES:
        return Gpu("", point(size, "given"))
    if found := _with_total(text):
        return found
    plain = _plain(text)
    if found := _by_name(plain):
        return found
    if found := _by_box(text):
        return found
    names = {words: gpu.name for gpu, match in gpus() for words in match}
    near = difflib.get_close_matches(plain, names, 2, 0.6)
    meant = f"Did you mean {' or '.join(dict.fromkeys(word.upper() for word in near))}? " if near else ""
    raise UsageError(
        f"no device '{text}' is known", f"{meant}Name a size such as 80GiB, or one such as H100, L40S, A10G"
    )


def _with_total(text: str) -> Gpu | None:
    """A card by its name with the total that something printed of it; None where the text ends otherwise."""
    named = re.fullmatch(r"\s*([^\W\d_][\w\s().\-]*?)\s+(\d{1,3}\.\d{1,3})\s*GiB\s*", text)
    if named is None or not 0 < float(named[2]) * GIB <= _MOST_BYTES:
        return None
    return Gpu(" ".join(named[1].split()), point(float(named[2]) * GIB, "given"))


def _by_box(text: str) -> Gpu | None:
    """The card that no table has but whose name ends with the GB on its box; None where it ends otherwise."""
    named = re.fullmatch(r"\s*([^\W\d_][\w\s().\-]*?)[\s\-(]+(\d{1,3})\s*[gG][iI]?[bB]\s*\)?\s*", text)
    if named is None or not 0 < int(named[2]) <= _MOST_ON_THE_BOX:
        return None
    size = int(named[2]) * GIB
    return Gpu(" ".join(text.split()), Interval(_OF_THE_BOX[0] * size, _OF_THE_BOX[1] * size, "assumed"))


def unified_memory(device: str) -> bool:
    """Whether a device's name is one whose memory is the host's: its driver reports no size, and defaults are small.

    >>> unified_memory("NVIDIA GB10"), unified_memory("NVIDIA H100 80GB HBM3"), unified_memory("")
    (True, False, False)
    """
    found = _by_name(_plain(device))
    return found is not None and found.unified


_MIG_SHARE = (0.91, 0.99)
"""GiB of a MIG slice / the GB in its profile: 4.75 for 1g.5gb and 39.25 for 3g.40gb of an A100, 16.5 for 1g.18gb of an H200."""


def _mig(text: str) -> Gpu | None:
    """The slice that a MIG profile names; UsageError where it names MIG without one, or more than the card has."""
    profile = re.search(r"(?i)(?<![a-z0-9])(\d)g\.(\d+)gb", text)
    if profile is None:
        if re.search(r"(?i)(?<![a-z0-9])mig(?![a-z0-9])", text):
            raise UsageError(
                f"'{text}' names no MIG profile", "Write it like 'H100 MIG 3g.40gb', or the slice's size as 39GiB"
            )
        return None
    size = int(profile[2])
    card = _by_name(_plain(re.sub(r"(?i)\bmig\b|\d+c\.|\dg\.\d+gb(\+\w+)*", " ", text)))
    if card is not None and size * 0.9 * GIB > card.total_bytes.hi:
        raise UsageError(f"a {card.name} has no slice {profile[0]}", "Name the profile that nvidia-smi -L shows")
    name = f"{card.name if card else 'NVIDIA'} MIG {profile[0].lower()}"
    return Gpu(name, Interval(size * _MIG_SHARE[0] * GIB, size * _MIG_SHARE[1] * GIB, "catalogue"))


@functools.lru_cache(maxsize=256)  # a bundle asks of its few devices some thirty times
def _by_name(plain: str) -> Gpu | None:
    hits = [
        (len(words), gpu)
        for gpu, match in gpus()
        for words in match
        if _plain(words) in plain  # a search for each of a hundred devices costs as much as their table
        and re.search(rf"(?<![a-z0-9]){re.escape(_plain(words))}(?=$|[^a-z0-9]|g(?:i?b)?(?![a-z0-9]))", plain)
    ]
    return max(hits, key=lambda hit: hit[0])[1] if hits else None


def _plain(text: str) -> str:
    return re.sub(r"[\s_\-]+", " ", text.lower()).strip()
