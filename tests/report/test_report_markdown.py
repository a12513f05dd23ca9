"""The Markdown form: accepted pages of two bundles, and text of a bundle that stays text."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grids import report_of
from oomdoc.report import REPORTS
from oomdoc.report.markdown import code, fenced, plain
from report_samples import SAMPLES, kv_demand
from snapshot import check

SNAPSHOTS = Path(__file__).parent / "snapshots"


@pytest.mark.parametrize("name", ["kv-demand-long-chats", "prompt-logprobs-spike"])
def test_page_as_accepted_snapshot(name: str) -> None:
    check(SNAPSHOTS / f"{name}.markdown.md", REPORTS["markdown"](report_of(name)))


@pytest.mark.parametrize("name", SAMPLES)
def test_the_verdict_comes_first_and_no_control_gets_through(name: str) -> None:
    text = REPORTS["markdown"](SAMPLES[name]())
    assert text.startswith("## ")
    assert text.endswith("\n") and not text.endswith("\n\n")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", text)


HOSTILE = [
    "<script>alert(1)</script>",
    "![x](https://example.org/p.png)",
    "[click](javascript:alert(1))",
    "@everyone see #12 and owner/repo#7, GH-3",
    "`code` ```fence``` | cell | <!-- gone -->",
    "https://example.org www.example.org mailto:a@example.org",
    "- item",
    "1. item",
    "# heading",
    "=SUM(A1)",
    "&lt;b&gt; $x$ ~~x~~ **x** __x__",
    "two\nlines\r\n\r\n## heading",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_a_bundle_is_no_markup(text: str) -> None:
    shown = plain(text)
    bare = re.sub(r"\\.", "", shown.replace("&#8203;", "\u200b"))  # without what is escaped
    assert not re.search(r"[<>\[\]*_`|~$]", bare)
    assert not re.search(r"[@#]\w|\bGH-\d|(?i:https?:|www\.|mailto:)", bare)
    assert not re.match(r"[-+#=]|\d+[.)]\s", shown)
    assert "\n" not in shown


@given(st.text())
def test_any_text_keeps_its_line_and_its_span(text: str) -> None:
    assert "\n" not in plain(text)
    span = code(text)
    assert span == "" or (span.count("`"), "|" in span, "\n" in span) == (2, False, False)
    block = fenced([text])
    assert not re.fullmatch(f"`{{{len(block[0])},}}", block[1].strip())


def test_a_hostile_bundle_breaks_no_table() -> None:
    bad = "a | b\n| c | `d` <b>"
    report = kv_demand()
    first = dataclasses.replace(report.diagnoses[0], summary=bad)
    coverage = dataclasses.replace(
        report.coverage, sources=(dataclasses.replace(report.coverage.sources[0], path=bad, kind=bad),)
    )
    text = REPORTS["markdown"](dataclasses.replace(report, diagnoses=(first, *report.diagnoses[1:]), coverage=coverage))
    for block in re.findall(r"(?:^\|.*\n)+", text, re.M):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1, block
    assert "<b>" not in re.sub(r"`[^`\n]*`", "", text)
