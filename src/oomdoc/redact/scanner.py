"""The detectors of `detect-secrets`: keys and tokens of providers whose shapes others maintain (docs/decisions/0019-refused-by-default.md).

Only their expressions are used, over whole texts. Their verification, which would ask the provider, is never called.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any

from oomdoc.redact.names import is_stand_in
from oomdoc.redact.values import Values

_NOT = {
    "ip_public",  # addresses have stand-ins that keep their shape
    "keyword",  # names of fields: `words.kind_of` knows those of logs
    "private_key",  # finds the first line of a key only: `shapes.PRIVATE_KEY` takes the whole of it
    "high_entropy_strings",  # strings in quotes only: `refuse.is_random` with the same limits, quoted or not
}
_SHORTEST = 8  # characters: what detectors of assignments take for less is a word such as `none`


@cache
def detectors() -> tuple[re.Pattern[str], ...]:
    """Every expression of every detector, in the order of their names."""
    found: list[re.Pattern[str]] = []
    with _without_network():
        plugins = importlib.import_module("detect_secrets.plugins")
        for info in sorted(pkgutil.iter_modules(plugins.__path__), key=lambda info: info.name):
            if info.name in _NOT:
                continue
            module = importlib.import_module(f"{plugins.__name__}.{info.name}")
            for kind in vars(module).values():
                if isinstance(kind, type) and kind.__module__ == module.__name__:
                    listed = getattr(kind, "denylist", ())
                    found += [
                        regex
                        for regex in (listed if isinstance(listed, (list, tuple)) else ())
                        if isinstance(regex, re.Pattern)
                    ]
    return tuple(found)


class _NotThere(ModuleType):
    """Stands for a library that detectors import to ask a provider about a key, which nothing here does."""

    def __getattr__(self, name: str) -> Any:
        """Anything that an annotation may name."""
        if name.startswith("__"):
            raise AttributeError(name)
        return object


@contextmanager
def _without_network() -> Iterator[None]:
    """While the detectors are imported, the library of theirs that would reach for the network is not there.

    Imported, it opens a socket to see whether the machine speaks IPv6.
    """
    here = sys.modules.get("requests")
    if here is None:
        sys.modules["requests"] = _NotThere("requests")
    try:
        yield
    finally:
        if here is None:
            del sys.modules["requests"]


def scanned(values: Values, text: str) -> str:
    """The text with everything replaced that a detector finds; each detector's last group is its secret."""

    def replaced(match: re.Match[str]) -> str:
        group = max((at for at in range(1, (match.re.groups or 0) + 1) if match[at]), default=0)
        secret = match[group]
        bare = secret.strip(" \t\"'=:")
        if len(bare) < _SHORTEST or "\n" in secret or is_stand_in(bare) or "secret-" in bare or bare.isdigit():
            return match[0]
        begin, end = match.start(group) - match.start(), match.end(group) - match.start()
        return match[0][:begin] + secret.replace(bare, values.made("secret", bare)) + match[0][end:]

    for regex in detectors():
        text = regex.sub(replaced, text)
    return text
