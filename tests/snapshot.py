"""Whole outputs held against accepted files; `OOMDOC_UPDATE=1` writes them anew and a person reads the diff."""

from __future__ import annotations

import os
from pathlib import Path


def check(path: Path, text: str) -> None:
    """Compare with the accepted text, or accept this one."""
    if os.environ.get("OOMDOC_UPDATE") == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    assert path.is_file(), f"no accepted {path.name}; OOMDOC_UPDATE=1 writes it"
    assert text == path.read_bytes().decode(), f"{path.name} differs; OOMDOC_UPDATE=1 accepts the new text"
