"""What holds for every form that people read: none of them leaves out what another tells about the failure and its fix."""

from __future__ import annotations

import dataclasses
import html
import re

import pytest

from oomdoc.model import Impact, NotHelping, Report, Watch
from oomdoc.report import REPORTS
from oomdoc.story import told
from report_samples import SAMPLES, hostile, kv_demand

FORMS = ("terminal", "markdown", "html")


def staged() -> Report:
    """A report whose best change waits for a load test, with everything that may be told about a fix."""
    report = kv_demand()
    first = report.diagnoses[0]
    best = dataclasses.replace(
        first.actions[0], id="later", do="Store KV in 8 bits", when="after-load-test", proof="the replay held"
    )
    now = dataclasses.replace(first.actions[0], id="now", do="Lower the number of sequences", when="now")
    changed = dataclasses.replace(
        first,
        actions=(best, now),
        until_then="now",
        command="vllm serve /models/a \\\n--max-num-seqs 14",
        not_helping=(NotHelping("restarting the server", "the same traffic comes back", "vllm.log:7"),),
    )
    incident = dataclasses.replace(report.incidents[0], impact=Impact(restarts=2, requests_lost=31, preemptions=515))
    books = (
        dataclasses.replace(report.ledger[0], contradictions=("two lines cannot both be true",)),
        *report.ledger[1:],
    )
    diagnoses = (changed, *report.diagnoses[1:])
    return told(
        dataclasses.replace(
            report, diagnoses=diagnoses, ledger=books, incidents=(dataclasses.replace(incident, diagnoses=diagnoses),)
        )
    )


def words(form: str, report: Report) -> str:
    """What a person reads: no markup, blanks collapsed."""
    page = REPORTS[form](report, width=120, everything=True)
    if form == "html":
        page = html.unescape(re.sub(r"<(script|style)\b.*?</\1>|<[^>]+>", " ", page, flags=re.S))
    return " ".join(page.replace("\\", "").replace("`", "").replace("**", "").split())


@pytest.mark.parametrize("form", FORMS)
def test_every_form_tells_the_fix_its_proof_and_what_would_not_help(form: str) -> None:
    said = words(form, staged())
    for part in (
        "the replay held", "vllm serve /models/a", "restarting the server", "the same traffic comes back", "vllm.log:7",
        "two lines cannot both be true", "2 starts after it", "31 requests lost", "515 preemptions", "the KV cache pool",
    ):  # fmt: skip
        assert part in said, part


@pytest.mark.parametrize("form", FORMS)
def test_what_waits_for_a_load_test_comes_with_what_to_do_until_then(form: str) -> None:
    said = words(form, staged())
    ends = {"terminal": "Where the memory is", "markdown": "### How sure", "html": "How sure, and why"}
    first_screen = said[: said.index(ends[form])]
    assert "after a load test" in first_screen
    assert re.search(r"Until then[ :|]+Lower the number of sequences", first_screen)
    assert "Until then" not in words(form, kv_demand())


@pytest.mark.parametrize("form", FORMS)
def test_a_healthy_report_says_what_came_near_and_has_nothing_to_fix(form: str) -> None:
    near = Watch("surge", "prompts were 2.6 times as long", 2.6, 2.0, "ratio", True, ("requests.jsonl:7",), None)
    said = words(form, dataclasses.replace(SAMPLES["healthy"](), watch=(near,)))
    assert "prompts were 2.6 times as long" in said and "near" in said and "requests.jsonl:7" in said
    assert "The fix" not in said and "none: " not in said


@pytest.mark.parametrize("form", FORMS)
def test_hostile_words_stay_words_in_what_a_fix_tells(form: str) -> None:
    report = hostile()
    bad = "<script>alert(1)</script> \x1b[31m\u202e =1+1"
    first = dataclasses.replace(report.diagnoses[0], command=bad, not_helping=(NotHelping(bad, bad, bad),))
    page = REPORTS[form](told(dataclasses.replace(report, diagnoses=(first, *report.diagnoses[1:]))), width=120)
    assert "\x1b" not in page and "\u202e" not in page
    if form == "html":
        assert "<script>alert" not in page
    if form == "markdown":
        outside = re.sub(r"(?ms)^ *(```+)\w*$.*?^ *\1$|`[^`\n]*`", "", page)
        assert "<script>" not in outside.replace("\\<", "")
