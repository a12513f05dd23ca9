"""Regular expressions that are compiled when they are first used.

There are more than a thousand in the program, and to compile one costs 0.1 to 8 ms; a small bundle meets a third of them.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class Regex:
    """Stands for a regular expression until it is used."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern = pattern
        self.flags = flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self.pattern, self.flags)
        for method in ("search", "match", "fullmatch", "finditer", "findall", "sub", "split"):
            setattr(self, method, getattr(compiled, method))  # found before this function is asked again
        return getattr(compiled, name)


def regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """A regular expression that is compiled by its first use. A broken one is found by the tests, which use every one."""
    return cast("re.Pattern[AnyStr]", Regex(pattern, flags))
