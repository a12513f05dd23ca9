"""What the engine's arguments are called, which variables count, and one setting of a text."""

from __future__ import annotations

import re
from typing import NamedTuple

from oomdoc.ingest.vocabulary.quantity import read
from oomdoc.ingest.vocabulary.words import named
from oomdoc.regexes import regex

_VALUE_CAP = 2000
_NAMES = read("names")
SHORT_OPTIONS: dict[str, str] = _NAMES["short_options"]
"""vLLM's short options."""
RENAMED: dict[str, str] = _NAMES["renamed"]
ENGINE_FLAGS: frozenset[str] = frozenset(read("servers")["engine_flags"].split())
"""Engine arguments that no other program uses for something else: one of them marks a text as vLLM's."""
COMMON_FLAGS = named("common_flags")
"""Engine arguments whose names are everybody's: believed only beside one of `ENGINE_FLAGS`."""
SWITCHES = named("switches")
LISTS = named("list_flags")
SWITCH_PREFIX = ("enable_", "disable_", "use_", "no_", "return_")
TRUTH = regex(r"(?:true|false|yes|no|on|off|0|1)", re.I)
ENVIRONMENT = regex(
    r"(?:VLLM|CUDA|PYTORCH|TORCH|NCCL|RAY|NVIDIA|HIP|ROCR|HSA|ASCEND|LMCACHE|MALLOC|FLASHINFER|SGLANG|GPU|TPU|OMNI)_[A-Z0-9_]+"
    r"|OMP_NUM_THREADS|LD_PRELOAD|RAYON_NUM_THREADS"
)
"""Variables that bear on memory or devices; others are left alone."""
_SECRET = regex(r"api_?key|token$|secret|passw|credential", re.I)
VARIABLE_FLAGS: dict[str, str] = _NAMES["variables"]
"""Variables of launch scripts that are named for an engine argument; they come before the environment's own."""
_VERSION = regex(r"vllm[\w./-]*:v?(\d+\.\d+(?:\.\d+)?[\w.+-]*)")


class Setting(NamedTuple):
    """One setting found in a text; `line` counts from 1, `engine` numbers the command it belongs to, from 0."""

    line: int
    flag: str
    value: str
    origin: str
    engine: int = 0


def image_version(image: str) -> str | None:
    """The engine's version in a container image's tag; None where the tag names none.

    >>> image_version("vllm/vllm-openai:v0.9.1"), image_version("vllm/vllm-openai:latest")
    ('0.9.1', None)
    """
    found = _VERSION.search(image)
    return found[1] if found else None


def is_environment(name: str) -> bool:
    """Whether a variable's name is one that bears on memory, devices or the engine."""
    return bool(ENVIRONMENT.fullmatch(name))


def shown(flag: str, value: str) -> str:
    """A value fit to be shown: secrets masked, length bounded."""
    return "***" if _SECRET.search(flag) else value[:_VALUE_CAP]
