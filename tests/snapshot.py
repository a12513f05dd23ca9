"""Whole outputs held against accepted files; `OOMDOC_UPDATE=1` writes them anew and a person reads the diff."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path


def check(path: Path, text: str, alike: Callable[[str], str] = str) -> None:
    """Compare with the accepted text, or accept this one; what `alike` makes the same is no difference."""
    if os.environ.get("OOMDOC_UPDATE") == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    assert path.is_file(), f"no accepted {path.name}; OOMDOC_UPDATE=1 writes it"
    assert alike(_undated(text)) == alike(_undated(path.read_bytes().decode())), (
        f"{path.name} differs; OOMDOC_UPDATE=1 accepts the new text"
    )


def _undated(text: str) -> str:
    """The digest of the rules changes with every word of a rule, the version with every release; what a report says does not."""
    return re.sub(r"\boomdoc [\d.]+, rules [0-9a-f]{12}$", f"oomdoc 0.0.0, rules {'0' * 12}", text, flags=re.M)
