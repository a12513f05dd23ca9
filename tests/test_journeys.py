"""From a number of a report to the bytes it came from: the journeys of docs/architecture.md, walked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grids import report_of

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PART = PAGE.split("\n## From a number back to its bytes\n")[1].split("\n## ")[0]
JOURNEYS = {match[1]: match[0] for match in re.finditer(r"(?ms)^\*\*(.+?)\*\*.*?(?=^\*\*|\Z)", PART)}
SAMPLE = "kv-demand-long-chats"


def steps(title: str) -> list[tuple[Path, list[str], str]]:
    """The files of a journey, the words that are to stand in each, and the sentence about it."""
    found = re.findall(r"(?m)^\d\. \[[^\]]+\]\(\.\./([^)]+)\): (.+)$", JOURNEYS[title])
    return [(ROOT / path, re.findall(r"`([^`]+)`", said), said) for path, said in found]


def test_there_are_three() -> None:
    assert len(JOURNEYS) == 3


@pytest.mark.parametrize("title", JOURNEYS)
def test_four_files_at_most_each_with_its_words(title: str) -> None:
    walked = steps(title)
    assert 2 <= len({path for path, _, _ in walked}) <= 4
    for path, words, _ in walked[:-1]:
        text = path.read_text(encoding="utf-8")
        assert words and [word for word in words if word not in text] == [], path


@pytest.mark.parametrize("title", JOURNEYS)
def test_the_last_step_is_the_line_that_the_report_names(title: str) -> None:
    path, words, said = steps(title)[-1]
    line = re.match(r"line (\d+), ", said)
    assert line
    assert words[0] in path.read_bytes().split(b"\n")[int(line[1]) - 1].decode()
    ref = f"{path.name}:{line[1]}"
    assert f"`{ref}`" in JOURNEYS[title].split("\n")[0]
    report = report_of(SAMPLE)
    if title.startswith("weights"):
        first = report.ledger[0]
        assert ref in first.refs
        assert round((first.parts["weights_bytes"] or 0) / 2**30, 2) == float(title.split()[1])
    else:
        (item,) = [item for item in report.diagnoses[0].evidence if title in item.says]
        assert ref in item.refs


def test_a_decision_that_was_superseded_says_so_at_its_head() -> None:
    pages = {path.name[:4]: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "decisions").glob("*.md")}
    named = {(new, old) for new, text in pages.items() for old in re.findall(r"supersedes[^.]*?\[(\d{4})\]", text)}
    marked = {(new, old) for old, text in pages.items() for new in re.findall(r"superseded by \[(\d{4})\]", text)}
    assert named and named <= marked
    for new, old in marked:
        assert new > old
        assert "superseded by" in pages[old].split("\n## ")[0], f"{old} says so where nobody looks first"
