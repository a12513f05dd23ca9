"""The engine's defaults by version, as data with its source (`engine_defaults.toml`)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import tomli

from oomdoc.physics.gpus import unified_memory
from oomdoc.units import GIB

OLDEST_READ = "0.1.7"
NEWEST_READ = "0.33.0"
_NEWEST = 10**12


@dataclass(frozen=True)
class Default:
    """A default: flag, first and last version number it holds for (see `version_number`), value."""

    flag: str
    since: int
    until: int
    value: float


@dataclass(frozen=True)
class BudgetRule:
    """How a release gets from utilization to the bytes for KV.

    `also` are terms taken off besides weights, activations and what is outside torch: `others`, `graphs`, `slack`.
    `free_at_start_checked`: it refuses to start where less than total x utilization is free.
    """

    generation: str
    name: str
    also: tuple[str, ...]
    non_torch: bool
    free_at_start_checked: bool


@lru_cache(maxsize=1024)  # a worksheet asks for the same few texts thousands of times
def version_number(version: str) -> int | None:
    """Major x 10^6 + minor x 10^3 + patch of a version text; None where there is no version in it.

    `0.1.dev1+g0a1b2c3` is what a build from a clone without tags calls itself: it says nothing of the release.

    >>> version_number("0.11.2+cu128"), version_number("main"), version_number("0.1.dev1+gda1daf40b")
    (11002, None, None)
    """
    match = None if re.match(r"0\.1\.dev\d+\+g", version) else re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", version)
    return int(match[1]) * 10**6 + int(match[2]) * 1000 + int(match[3] or 0) if match else None


def show_release(number: int) -> str:
    """A `version_number` as people write it.

    >>> show_release(20_001)
    '0.20.1'
    """
    return f"{number // 10**6}.{number // 1000 % 1000}.{number % 1000}"


ANY_RELEASE = "any"
"""What is asked where nobody knows the release: all rules since the first release without V0."""


def is_version(text: str) -> bool:
    """Whether a text is a version at all, be it one that says nothing of its release.

    >>> is_version("0.11.2"), is_version("0.1.dev1+gda1daf40b"), is_version("any"), is_version("newest")
    (True, True, True, False)
    """
    return text == ANY_RELEASE or re.search(r"\d+\.\d+", text) is not None


def releases_meant(text: str) -> tuple[int, ...]:
    """The releases whose rules a version may follow where it names none exactly, oldest first; empty where it does.

    A build between two releases (`rc`, `dev`) has what the development branch had that day: more than the release before it,
    and of a patch's builds up to what the next minor release has. A build of changed files upon a tag (`dev0+g….d…`) is that tag.

    >>> releases_meant("0.19.2rc1.dev134+gfe9c3d6c5"), releases_meant("0.15.0rc3"), releases_meant("0.11.2+cu128")
    ((19000, 20000), (14000, 15000), ())
    >>> releases_meant("0.26.1.dev0+gd3d3b2cca.d20260805"), releases_meant("0.1.dev1+gda1daf40b") == releases_meant("any")
    ((26000,), True)
    """
    every = rule_releases()
    number = version_number(text)
    if number is None:
        return every
    if re.search(r"\.dev0\+g\w+\.d\d+", text) and number % 1000:
        return (number - 1,)
    if not re.search(r"\d\.?(?:rc|a|b|dev)\d", text):
        return ()
    minor = number // 1000
    first, last = (minor * 1000, (minor + 1) * 1000) if number % 1000 else ((minor - 1) * 1000, minor * 1000)
    return tuple(sorted({first, last, *(each for each in every if first < each < last)}))


def releases_serving(meant: tuple[int, ...], family: str) -> tuple[int, ...]:
    """Of the releases whose rules may be meant, those in which the engine knows the family: the rule that held when it came, and later ones.

    >>> releases_serving((17_000, 20_000, 29_000, 32_000), "qwen4_exp_text"), releases_serving((17_000, 20_000), "llama")
    ((29000, 32000), (17000, 20000))
    >>> releases_serving((17_000, 20_000), "gemma4_text"), releases_serving((17_000,), "qwen4_exp_text")
    ((17000, 20000), (17000,))
    """
    first = _served_since().get(family, 0)
    return tuple(each for nth, each in enumerate(meant) if nth + 1 == len(meant) or meant[nth + 1] > first)


@cache
def _served_since() -> dict[str, int]:
    return {
        family: version_number(since) or 0 for since, families in _raw()["served_since"].items() for family in families
    }


def release_weights(releases: tuple[int, ...]) -> tuple[float, ...]:
    """How many minor releases each rule stands for, until the next rule of all: any release is as likely as another. A patch's rule: half.

    >>> release_weights((11_000, 12_000, 17_000, 20_000, 20_001))
    (0.5, 3, 3, 0.5, 2)
    """
    every = (*rule_releases(), (version_number(NEWEST_READ) or 0) // 1000 * 1000 + 1000)
    after = [next((each for each in every if each > one), one + 1000) for one in releases]
    return tuple(max(0.5, each // 1000 - one // 1000) for one, each in zip(releases, after, strict=True))


@cache
def rule_releases() -> tuple[int, ...]:
    """The releases from which on something is computed in another way, from the first without V0 to the newest that was read."""
    return tuple(version_number(each) or 0 for each in _raw()["rules_since"])


@cache
def _raw() -> dict[str, Any]:
    return tomli.loads(Path(__file__).with_name("engine_defaults.toml").read_text(encoding="utf-8"))


@cache
def defaults() -> tuple[Default, ...]:
    """All known defaults, in the order of the file."""
    return tuple(
        Default(
            row["flag"],
            version_number(row["since"]) or 0,
            version_number(row.get("until", "")) or _NEWEST,
            float(row["value"]),
        )
        for row in _raw()["default"]
    )


def default_of(flag: str, version: int) -> float | None:
    """The default of a flag in a release; None where none is recorded.

    >>> default_of("gpu_memory_utilization", 19_001), default_of("gpu_memory_utilization", 20_002)
    (0.9, 0.92)
    """
    return next((row.value for row in defaults() if row.flag == flag and row.since <= version <= row.until), None)


def generation_of(version: int) -> str:
    """The engine that a release starts by default: V0 or V1.

    >>> generation_of(7_003), generation_of(33_000)
    ('V0', 'V1')
    """
    return str(_row("generation", version, None)["default"])


def default_max_num_seqs(version: int, total_bytes: float | None, device: str = "", generation: str = "") -> int:
    """Sequences in one batch where no flag says; an unknown device counts as a small one.

    >>> default_max_num_seqs(10_000, 80 * GIB, "NVIDIA H100 80GB HBM3"), default_max_num_seqs(10_000, 80 * GIB, "A100")
    (1024, 256)
    """
    return _sized("max_num_seqs", version, total_bytes, device, generation)


def default_max_num_batched_tokens(
    version: int, total_bytes: float | None, max_model_len: int | None, device: str = "", generation: str = ""
) -> int:
    """Tokens of one step of the server where no flag says.

    V0 takes whole prompts; above 32,768 tokens it prefills in chunks by itself (0.5.4 to 0.10.2).

    >>> default_max_num_batched_tokens(10_000, 24 * GIB, 32768), default_max_num_batched_tokens(6_003, 24 * GIB, 32768)
    (2048, 32768)
    >>> default_max_num_batched_tokens(6_006, 24 * GIB, 131_072)
    2048
    """
    found = _sized("max_num_batched_tokens", version, total_bytes, device, generation)
    row = _row("max_num_batched_tokens", version, generation or generation_of(version))
    if not row.get("whole_prompt"):
        return found
    length = max_model_len or 0
    if length > row["chunked_above"] and version >= (version_number(row["chunked_since"]) or 0):
        wider = version >= (version_number(row["chunked_wider_since"]) or 0)
        return int(row["chunked_wider" if wider else "chunked"])
    return max(found, length)


def server_max_num_seqs(version: int, total_bytes: float | None, platform: str = "gpu", generation: str = "") -> int:
    """The same by platform: the CPU backend has a default of its own whatever the node's memory.

    >>> server_max_num_seqs(14_000, 512 * GIB, "cpu"), server_max_num_seqs(14_000, 24 * GIB)
    (128, 256)
    """
    own = default_of("max_num_seqs_cpu", version) if platform == "cpu" else None
    return default_max_num_seqs(version, total_bytes, "", generation) if own is None else int(own)


def server_max_num_batched_tokens(
    version: int, total_bytes: float | None, platform: str = "gpu", generation: str = "", max_model_len: int | None = None
) -> int:  # fmt: skip
    """Tokens of one step by platform, alike.

    >>> server_max_num_batched_tokens(14_000, 512 * GIB, "cpu"), server_max_num_batched_tokens(14_000, 80 * GIB)
    (2048, 8192)
    """
    own = default_of("max_num_batched_tokens_cpu", version) if platform == "cpu" else None
    return (
        default_max_num_batched_tokens(version, total_bytes, max_model_len, "", generation) if own is None else int(own)
    )


def _sized(table: str, version: int, total_bytes: float | None, device: str, generation: str) -> int:
    row = _row(table, version, generation or generation_of(version))
    if device.lower() == "cpu":
        return int(_raw()["cpu"][table])
    # the driver of unified memory reports no size, so the engine takes the defaults of a small card
    total_gib = 0 if unified_memory(device) else (total_bytes or 0) / GIB
    if "huge" in row and total_gib >= row["huge_from_gib"]:
        return int(row["huge"])
    spared = row.get("not_a100") and "a100" in device.lower()
    if "large" in row and total_gib >= row["large_from_gib"] and not spared:
        return int(row["large"])
    return int(row["value"])


@dataclass(frozen=True)
class RunnerRule:
    """Which models a release runs on the second model runner by default (`engine_defaults.toml` says what the fields are)."""

    families: frozenset[str]
    dense: bool
    every: bool
    quantised: bool
    without: frozenset[str]


@cache
def runner_rule(version: int) -> RunnerRule | None:
    """The rule of a release; None where every model runs on the first runner.

    >>> runner_rule(21_000), runner_rule(26_000).dense, runner_rule(29_000).every
    (None, True, True)
    """
    rows = _raw()["model_runner"]
    if version < (version_number(rows[0]["since"]) or 0):
        return None
    row = _row("model_runner", version, None)
    return RunnerRule(
        frozenset(row["families"]),
        row.get("dense", False),
        row.get("every", False),
        row.get("quantised", True),
        frozenset(row["without"]),
    )


def budget_rule(version: int, generation: str = "") -> BudgetRule:
    """The rule of a release for the bytes that KV gets.

    >>> budget_rule(19_001).also, budget_rule(20_002).also
    ((), ('graphs',))
    """
    row = _row("kv_budget", version, generation or generation_of(version))
    return BudgetRule(
        row["generation"],
        row["name"],
        tuple(row["also"]),
        not row.get("without_non_torch", False),
        row.get("free_at_start_checked", False),
    )


def _row(table: str, version: int, generation: str | None) -> dict[str, Any]:
    """The row of this version; of the nearest older one where the version lies outside (V1 asked of a V0 release)."""
    rows = [row for row in _raw()[table] if generation is None or row["generation"] == generation]
    for row in rows:
        since, until = version_number(row["since"]) or 0, version_number(row.get("until", "")) or _NEWEST
        if since <= version <= until:
            return dict(row)
    return dict(rows[0] if version < (version_number(rows[0]["since"]) or 0) else rows[-1])
