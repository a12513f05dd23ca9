"""What changed between two reports, and which change explains the failure: pure, and through the command."""

from __future__ import annotations

import dataclasses
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oomdoc import cli
from oomdoc.errors import UsageError
from oomdoc.model import Action, Evidence, Flag, LedgerEntry, Report
from oomdoc.report import diff
from oomdoc.report.compare import check, compare
from oomdoc.report.json import render as render_json
from oomdoc.units import GIB
from report_samples import diagnosis, engine, healthy, kv_demand, parts, undecided

ROOT = Path(__file__).parents[1]


def served(**settings: Any) -> Report:
    """The healthy report with these engine settings, a pool of 400,000 tokens and quiet traffic."""
    flags = {name: Flag(value, "logged", "vllm.log:3") for name, value in settings.items()}
    entry = LedgerEntry("e1", 0, None, 80 * GIB, parts(weights=34.0, kv_pool=36.0, free=5.0), 96 * 1024.0, 400_000, ())
    traffic = {
        "requests": 500,
        "failed": 0,
        "per_s": 2.0,
        "percentiles": {"context_tokens": {"p95": 6000, "max": 9000}},
    }
    return dataclasses.replace(healthy(), engines=(engine(flags=flags),), ledger=(entry,), traffic=traffic)


def starved(advised: int = 40, **settings: Any) -> Report:
    """The same server when the pool was too small for the traffic; the advice sets max_num_seqs."""
    leading = diagnosis(
        1, "kv-demand-exceeds-pool", 0.97, "Live traffic needs more KV cache than the pool holds",
        evidence=(Evidence("preempting", "310 preemptions counted", 3.2, ("metrics.prom:9",), {"preemptions": 310}),),
        actions=(
            Action("cap", f"Lower `--max-num-seqs` to {advised}", "tokens in the pool / tokens per request", "waiting", {"max_num_seqs": advised}),
        ),
    )  # fmt: skip
    return dataclasses.replace(served(**settings), verdict="diagnosed", diagnoses=(leading,), incidents=())


def names(report: Any) -> list[str]:
    return [change.name for change in report.changes]


def test_the_flag_that_moved_away_from_the_advice_explains_the_failure() -> None:
    told = compare(
        served(max_num_seqs=64, swap_space=4, port=8000).to_dict(),
        starved(max_num_seqs=512, swap_space=4, port=9000).to_dict(),
    )
    assert (told.outcome, told.judged, told.cause) == ("failed", "new", "kv-demand-exceeds-pool")
    assert told.explained_by == ("max_num_seqs",)
    first = told.changes[0]
    assert (first.name, first.before, first.after, first.factor) == ("max_num_seqs", 64, 512, 8.0)
    assert first.because[0] == "advised: Lower `--max-num-seqs` to 40"
    assert names(told) == ["max_num_seqs", "port"]  # what is equal is no change
    assert [sign.id for sign in told.evidence_new] == ["preempting"]


def test_near_miss_a_flag_that_moved_towards_the_advice_explains_nothing() -> None:
    told = compare(served(max_num_seqs=512).to_dict(), starved(max_num_seqs=64).to_dict())
    assert names(told) == ["max_num_seqs"]
    assert told.explained_by == ()


def test_a_recovery_is_explained_by_what_turned_for_the_better() -> None:
    told = compare(starved(max_num_seqs=512).to_dict(), served(max_num_seqs=40).to_dict())
    assert (told.outcome, told.judged) == ("recovered", "old")
    assert told.explained_by == ("max_num_seqs",)
    assert [sign.id for sign in told.evidence_gone] == ["preempting"]
    assert compare(starved(max_num_seqs=40).to_dict(), served(max_num_seqs=512).to_dict()).explained_by == ()


def test_longer_contexts_explain_where_no_flag_changed() -> None:
    traffic = {
        "requests": 500,
        "failed": 0,
        "per_s": 2.0,
        "percentiles": {"context_tokens": {"p95": 18000, "max": 9050}},
    }
    told = compare(served().to_dict(), dataclasses.replace(starved(), traffic=traffic).to_dict())
    assert told.explained_by == ("context_p95_tokens",)
    assert names(told) == ["context_p95_tokens"]  # 9000 to 9050 is noise
    shorter = dataclasses.replace(starved(), traffic={**traffic, "percentiles": {"context_tokens": {"p95": 2000}}})
    assert compare(served().to_dict(), shorter.to_dict()).explained_by == ()


def test_a_flag_is_judged_by_the_figure_it_moves() -> None:
    small = LedgerEntry("e1", 0, None, 80 * GIB, parts(weights=34.0, kv_pool=9.0, free=32.0), 96 * 1024.0, 100_000, ())
    told = compare(
        served(gpu_memory_utilization=0.9).to_dict(),
        dataclasses.replace(starved(gpu_memory_utilization=0.6), ledger=(small,)).to_dict(),
    )
    assert told.explained_by == ("gpu_memory_utilization",)
    assert told.changes[0].because[0].startswith("it moves kv_pool")


def test_what_one_side_does_not_state_is_no_zero_and_no_change_of_a_figure() -> None:
    told = compare(served(max_num_seqs=64).to_dict(), dataclasses.replace(starved(), ledger=(), traffic={}).to_dict())
    (change,) = told.changes
    assert (change.name, change.stated, change.before, change.after, change.factor) == (
        "max_num_seqs",
        (True, False),
        64,
        None,
        None,
    )
    assert any("no request log" in sentence for sentence in told.incomparable)
    assert "not stated" in diff.render(told)


def test_written_differently_is_not_different() -> None:
    told = compare(
        served(dtype="torch.bfloat16", max_num_seqs=64).to_dict(),
        starved(dtype="bfloat16", max_num_seqs=64.0).to_dict(),
    )
    assert told.changes == ()


@pytest.mark.parametrize(
    ("old", "new", "outcome"),
    [
        (healthy(), healthy(), "healthy"),
        (kv_demand(), kv_demand(), "same-cause"),
        (undecided(), kv_demand(), "unclear"),
    ],
)
def test_outcomes(old: Report, new: Report, outcome: str) -> None:
    assert compare(old.to_dict(), new.to_dict()).outcome == outcome


def test_a_report_against_itself_has_no_changes_and_says_so() -> None:
    told = compare(kv_demand().to_dict(), kv_demand().to_dict())
    assert (told.changes, told.evidence_new, told.evidence_gone) == ((), (), ())
    assert "both are the same bundle, byte for byte" in told.incomparable


def test_there_and_back_the_same_things_change() -> None:
    one, two = served(max_num_seqs=64, max_model_len=4096).to_dict(), starved(max_num_seqs=512).to_dict()
    there, back = compare(one, two), compare(two, one)
    assert sorted(names(there)) == sorted(names(back))
    assert {(item.name, item.before, item.after) for item in there.changes} == {
        (item.name, item.after, item.before) for item in back.changes
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["id", "engine", "flags", "value", "parts", "percentiles", "context_tokens", "p95", "total_bytes", "evidence", "weight", "cause", "name", "actions", "changes"]
    ), inner, max_size=4), max_leaves=12,
)  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(
        st.sampled_from(["verdict", "diagnoses", "bundle", "engines", "ledger", "traffic", "incidents"]), JSON
    )
)
def test_any_object_that_claims_to_be_a_report_compares_without_an_exception(claimed: dict[str, Any]) -> None:
    good = kv_demand().to_dict()
    for told in (compare(claimed, good), compare(good, claimed)):
        for form in diff.FORMS.values():
            assert form(told).endswith("\n")


@pytest.mark.parametrize(
    ("given_report", "sentence"),
    [
        ({"a": 1}, "no report"),
        ([1], "no report"),
        ({"verdict": "healthy", "diagnoses": [], "bundle": {}, "schema_version": "9"}, "'9'"),
    ],
)
def test_what_is_no_report_is_refused_in_a_sentence(given_report: Any, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        check(given_report, "x.json")


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        assert not {name for name, _ in attrs} & {"src", "href", "onerror", "onload"}


def test_nothing_of_a_bundle_becomes_markup() -> None:
    nasty = "<script>alert(1)</script>|**x**\x1b[31m"
    told = compare(served(quantization=nasty).to_dict(), starved(quantization="fp8").to_dict())
    page = Tags()
    page.feed(diff.html(told))
    assert "script" not in page.seen and "table" in page.seen
    assert "Content-Security-Policy" in diff.html(told) and "unsafe" not in diff.html(told)
    assert "prefers-color-scheme: dark" in diff.html(told) and "@media print" in diff.html(told)
    assert "<script" not in diff.markdown(told)
    row = next(line for line in diff.markdown(told).splitlines() if "quantization" in line)
    assert len(re.findall(r"(?<!\\)\|", row)) == 5
    assert "\x1b" not in diff.render(told)


def test_what_both_state_explains_before_what_one_leaves_out() -> None:
    told = compare(served(max_num_seqs=64, gpu_memory_utilization=0.94).to_dict(), starved(max_num_seqs=512).to_dict())
    stated = [next(change.stated for change in told.changes if change.name == name) for name in told.explained_by]
    assert told.explained_by and stated == sorted(stated, key=lambda sides: not all(sides))


# ---- the command


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    status = cli.run(["diff", *argv])
    out, err = capsys.readouterr()
    return status, out, err


def test_a_report_made_before_and_a_bundle_can_be_mixed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = str(ROOT / "sample_logs" / "kv-demand-long-chats")
    old = tmp_path / "before.json"
    assert cli.run(["analyze", bundle, "-q", "-o", str(old)]) == 0
    status, out, _ = run(capsys, str(old), bundle, "--format", "json")
    told = json.loads(out)
    assert (status, told["outcome"], told["changes"]) == (0, "same-cause", [])
    assert "both are the same bundle, byte for byte" in told["incomparable"]


def test_every_form_is_written_by_its_suffix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(render_json(served(max_num_seqs=64)), encoding="utf-8")
    new.write_text(render_json(starved(max_num_seqs=512)), encoding="utf-8")
    targets = [tmp_path / f"diff.{suffix}" for suffix in ("txt", "json", "md", "html")]
    status, out, _ = run(
        capsys, str(old), str(new), "-q", *(word for target in targets for word in ("-o", str(target)))
    )
    assert (status, out) == (0, "")
    assert all("512" in target.read_text(encoding="utf-8") for target in targets)
    assert json.loads(targets[1].read_text(encoding="utf-8"))["explained_by"] == ["max_num_seqs"]


def test_wrong_calls_are_told_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "r.json"
    report.write_text('{"schema_version": "7", "verdict": "healthy", "diagnoses": [], "bundle": {}}', encoding="utf-8")
    for argv, status, said in (
        ([str(report), str(report)], 2, "schema_version '7'"),
        (["-", "-"], 2, "standard input"),
        ([str(report), str(report), "--format", "pdf"], 2, "pdf is unknown"),
        ([str(report), str(report), "-o", "x.pdf"], 2, "which form"),
        ([str(tmp_path / "none"), str(report)], 3, "none"),
    ):
        told = run(capsys, *argv)
        assert told[0] == status and said in told[2] and "Traceback" not in told[2]


@pytest.mark.parametrize(
    ("became", "said"),
    [
        ("ended", "has been ended from outside"),
        ("refused", "does not start"),
        ("stuck", "stands still"),
        ("degraded", "serves worse"),
        ("died", "has failed"),
    ],
)
@pytest.mark.parametrize("form", ["terminal", "markdown", "html"])
def test_a_server_that_did_not_fail_by_itself_is_not_said_to(became: str, said: str, form: str) -> None:
    """A kill while loading is no failure of the server's own; the words follow what became of the start that is compared."""
    failing = starved()
    failing = dataclasses.replace(failing, engines=(dataclasses.replace(failing.engines[0], outcome=became),))
    told = compare(served().to_dict(), failing.to_dict())
    assert (told.outcome, told.new.became) == ("failed", became)
    page = diff.FORMS[form](told)
    assert f"It was healthy and {said}" in page
    assert ("has failed" in page) == (became == "died")
