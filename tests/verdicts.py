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


LIKELY = 0.3
"""Below it a first place is a guess between priors."""


def likely(folder: Path, files: Mapping[str, str] | None = None, **texts: str) -> str | None:
    """The cause in the first place, None where it is a guess or there is no server; `rss__csv=...` is the file rss.csv."""
    for name, text in {**(files or {}), **{name.replace("__", "."): text for name, text in texts.items()}}.items():
        (folder / name).write_text(text)
    with diagnose.analyze(str(folder)) as analysis:
        best = next(iter(analysis.report.diagnoses), None)
        return best.cause if best and best.probability > LIKELY else None
