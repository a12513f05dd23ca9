"""From text to verdict: what is first of a bundle of these files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from oomdoc import diagnose


def first(folder: Path, files: Mapping[str, str]) -> tuple[str, float]:
    """The cause in the first place, and its probability; `files` are texts by name, written into the folder."""
    for name, text in files.items():
        (folder / name).write_text(text)
    with diagnose.analyze(str(folder)) as analysis:
        top = analysis.report.diagnoses[0]
        return top.cause, top.probability
