"""The engine's defaults by version, as data with its source (`engine_defaults.toml`)."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_NEWEST = 10**12


@dataclass(frozen=True)
class Default:
    """A default: flag, first and last version number it holds for (see `version_number`), value."""

    flag: str
    since: int
    until: int
    value: float


def version_number(version: str) -> int | None:
    """Major x 10^6 + minor x 10^3 + patch of a version text; None where there is no version in it.

    >>> version_number("0.11.2+cu128"), version_number("main")
    (11002, None)
    """
    match = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", version)
    return int(match[1]) * 10**6 + int(match[2]) * 1000 + int(match[3] or 0) if match else None


@cache
def defaults() -> tuple[Default, ...]:
    """All known defaults, in the order of the file."""
    raw = tomllib.loads(Path(__file__).with_name("engine_defaults.toml").read_text(encoding="utf-8"))
    return tuple(
        Default(
            row["flag"],
            version_number(row["since"]) or 0,
            version_number(row.get("until", "")) or _NEWEST,
            float(row["value"]),
        )
        for row in raw["default"]
    )
