"""The report in at most five lines, for a chat: the story's own lines, made harmless."""

from __future__ import annotations

from typing import Any

from oomdoc.model import Report
from oomdoc.report.facts import story_of
from oomdoc.report.words import incomplete, neutral


def render(report: Report, **_: Any) -> str:
    """Five lines at most; where something was cut off the first says so."""
    lines = [neutral(line) for line in story_of(report).brief] or [neutral(story_of(report).title)]
    lost = incomplete(report)
    if lost and "INCOMPLETE" not in lines[0]:
        lines[0] = f"INCOMPLETE BUNDLE. {lines[0]}"
    return "\n".join(lines) + "\n"
