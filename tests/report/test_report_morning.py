"""The forms of the morning report: complete, harmless, and readable by the tools they are for."""

from __future__ import annotations

import dataclasses
import json
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoc.model.morning import (
    ChangePoint,
    Counts,
    Failing,
    Group,
    Morning,
    Outlier,
    Quiet,
    ReadError,
    Resolved,
    Standing,
    Trend,
)
from oomdoc.report.morning import FORMS, junit, markdown, prometheus, sections, terminal
from snapshot import check

EVIL = "\x1b[31m<script>alert(1)</script> | `x` \u202e ]]> &amp; {{ 7 * 7 }} *b*"


def group(number: int = 1, **changes: object) -> Group:
    made = Group(
        fingerprint=f"{number:012x}", new=True, cause="kv-demand-exceeds-pool", reason=None, probability=0.97, model="Qwen/Qwen3-8B",
        version="0.28.0", flags='{"max_num_seqs":256}', incidents=12, bundles=9, hosts=("gpu-node-03", "gpu-node-07", "gpu-node-11", "gpu-node-12"),
        first_night="2026-11-20", before=0, nights=1, example="/srv/bundles/gpu-node-07_0004.tar.gz", ref="vllm.log:812",
        text="usage of the KV pool reaches its limit", action="Lower `--max-num-seqs` to 11",
    )  # fmt: skip
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


def test_incidents_come_first_and_lead_to_their_reports() -> None:
    made = sections(night())
    assert [section.title for section in made[:2]] == ["In short", "Incidents"]
    assert "New" not in [section.title for section in made]  # a row says so itself
    row = made[1].rows[0]
    assert row[0] == "new" and row[1].startswith("Live traffic needs more KV cache than the pool holds, 3 times")
    assert row[4] == "gpu-node-07" and "what cured one alike: two replicas" in row[7]
    assert "note: ticket 4711" in made[1].rows[1][7]
    page = FORMS["html"](night())
    assert '<a href="reports/a-1.html">' in page
    assert "(reports/a-1.html)" in markdown(night())
    kinds = [json.loads(line)["kind"] for line in FORMS["jsonl"](night()).splitlines()]
    assert kinds.count("incident") == 2


def test_without_nights_to_compare_there_are_no_trends() -> None:
    assert "Trends" not in [section.title for section in sections(night(previous=None, trends=()))]


def night(text: str = "no such file", **changes: object) -> Morning:
    made = Morning(
        night="2026-11-20", previous="2026-11-19", oomdoc_version="0.1.0", rules_version="cdea13a2fd9b",
        counts=Counts(found=2000, unchanged=1890, read=104, judged=0, copies=3, failing=10, healthy=88, not_memory=4, undecided=2, errors=3, bytes=48_318_382),
        groups=(
            group(),
            group(2, cause="gpu-shared", new=False, before=4, nights=3, first_night="2026-11-17", incidents=1, bundles=1, hosts=(), text=text, action=None),
            group(3, cause="not-memory", incidents=2),
        ),
        resolved=(Resolved("abc", "weights-exceed-gpu", "mistral", "0.27.1", 6, "2026-11-18", 14),),
        trends=(Trend("cause", "kv-demand-exceeds-pool", 104, 9, 800, 11), Trend("host", "gpu-node-07", 0, 0, 12, 3)),
        changes=(
            ChangePoint("version", "Qwen/Qwen3-8B", "0.27.1", "0.28.0", "2026-11-18", 2, 50, 12, 39, 0.0011),
            ChangePoint("night", "gpu-shared", "2026-11-15", "2026-11-16", "2026-11-16", 0, 400, 9, 410, 0.002),
        ),
        outliers=(Outlier("gpu-node-07", 6, 12, 9, 800, 1e-7),),
        errors=(
            ReadError("/srv/bundles/a.tar.gz", "gpu-node-01", None, "unreadable", text, "2026-11-19"),
            ReadError("/srv/bundles/b.tar.gz", "gpu-node-01", None, "unreadable", "empty", "2026-11-20"),
            ReadError("/srv/logs#pod=chat-0", None, "chat-0", "timeout", "it took longer than 10 min", "2026-11-20"),
        ),
        failing=(Failing("/srv/bundles/gpu-node-07_0004.tar.gz", "gpu-node-07", "diagnosed", "kv-demand-exceeds-pool", 0.97, "Qwen/Qwen3-8B", "0.28.0", 1),),
        warnings=(text,),
        standing=(
            Standing("00000000000a", "new", "/srv/bundles/gpu-node-07_0004.tar.gz", "gpu-node-07_0004.tar.gz", "gpu-node-07", "Qwen/Qwen3-8B", "0.28.0", "kv-demand-exceeds-pool",
                     "Live traffic needs more KV cache than the pool holds", 0.97, "pressure", "2026-11-20T03:12:44Z", "2026-11-20", "vllm.log:812", text, "Lower `--max-num-seqs` to 11", None, "two replicas", "reports/a-1.html", 3),
            Standing("00000000000b", "acknowledged", "/srv/bundles/b.tar.gz", "b.tar.gz", None, None, None, "not-memory", "The failure has a cause other than memory", 0.9, "error", None,
                     "2026-11-17", "vllm.log:3", text, None, "ticket 4711", None, None),
        ),
    )  # fmt: skip
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["terminal", "markdown", "html", "jsonl", "junit", "prometheus"])
def test_a_night_in_every_form_is_the_snapshot(form: str) -> None:
    if form == "html":
        pytest.importorskip("jinja2")
    check(Path(__file__).parent / "snapshots" / f"morning.{form}.txt", FORMS[form](night()))


def test_a_row_says_the_cost_and_bundles_without_an_incident_are_named() -> None:
    first = dataclasses.replace(
        night().standing[0], title="Nothing of the rule", cost="120 of 324 requests failed with it"
    )
    quiet = Quiet("/srv/bundles/c.tar.gz", "c.tar.gz", "no-server", None, None, None, "reports/c.html")
    told = night(standing=(first,), quiet=(quiet,))
    for form in ("terminal", "markdown", "html"):
        text = " ".join(FORMS[form](told).split())
        assert "120 of 324 requests failed with it" in text and "Nothing of the rule" in text, form
        assert "no server in it" in text and "tar.gz" in text.rpartition("no server in it")[2], form
    assert 'href="reports/c.html"' in FORMS["html"](told)
    assert '"kind":"quiet"' in FORMS["jsonl"](told).replace(" ", "")


def test_the_terminal_keeps_its_width() -> None:
    assert max(len(line) for line in terminal(night(), width=80).splitlines()) <= 80


@pytest.mark.parametrize("form", ["terminal", "markdown", "html", "junit"])
def test_every_host_with_read_errors_is_named(form: str) -> None:
    many = tuple(
        ReadError(f"/b/{n}.tar.gz", f"gpu-node-{n}", None, "unreadable", "cut short", "2026-11-20") for n in range(300)
    )
    text = FORMS[form](night(errors=many))
    assert all(f"gpu-node-{n}" in text for n in range(300))


def test_nothing_of_a_bundle_is_markup() -> None:
    pytest.importorskip("jinja2")
    page = FORMS["html"](night(EVIL))
    tags: list[str] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            tags.append(tag)

    Tags().feed(page)
    assert "script" not in tags
    assert "{{ 7 * 7 }}" in page and "\u202e" not in page and "\x1b" not in page
    assert "://" not in page, "nothing is fetched"
    assert "Content-Security-Policy" in page and "unsafe" not in page and "@media print" in page
    text = markdown(night(EVIL))
    assert "<script>" not in text and "\\`x\\`" in text and "\\|" in text
    assert "\x1b" not in terminal(night(EVIL)) and "\u202e" not in terminal(night(EVIL))


@given(st.text())
def test_junit_is_xml_whatever_a_bundle_holds(text: str) -> None:
    root = ET.fromstring(junit(night(text)))
    cases = root.findall("testcase")
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == (str(len(cases)), "2", "3")
    assert len(root.findall(".//error")) == 3


@given(st.text())
def test_gauges_are_read_by_prometheus(host: str) -> None:
    parser = pytest.importorskip("prometheus_client.parser")
    error = ReadError("/b", host or None, None, "unreadable", "cut", "2026-11-20")
    families = {
        family.name: family for family in parser.text_string_to_metric_families(prometheus(night(errors=(error,))))
    }
    assert families["oomdoc_sweep_failing_bundles"].samples[0].value == 10
    assert {sample.labels["cause"]: sample.value for sample in families["oomdoc_sweep_new_incidents"].samples} == {
        "gpu-shared": 1, "kv-demand-exceeds-pool": 12, "not-memory": 2,
    }  # fmt: skip
    assert families["oomdoc_sweep_night_timestamp_seconds"].samples[0].value == 1_795_132_800


def test_lines_of_json_hold_everything() -> None:
    lines = [json.loads(line) for line in FORMS["jsonl"](night()).splitlines()]
    assert [line["kind"] for line in lines] == [
        "night", *["group"] * 3, "resolved", *["trend"] * 2, *["change"] * 2, "outlier", *["error"] * 3, "failing", *["incident"] * 2,
    ]  # fmt: skip
    assert lines[0]["counts"]["found"] == 2000 and lines[0]["warnings"] == ["no such file"]


def test_other_failures_are_no_new_memory_incidents() -> None:
    assert night().new_incidents == 13
    quiet = night(groups=(group(3, cause="not-memory"),), changes=(), outliers=())
    assert quiet.new_incidents == 0
    assert any("No new memory incident." in section.says for section in sections(quiet))


def test_another_failure_is_named_by_its_words_not_by_its_class() -> None:
    said = "pydantic_core._pydantic_core.ValidationError: User-specified max_model_len (65536) is greater than the derived max_model_len (max_position_embeddings=32768.0)"
    standing = tuple(dataclasses.replace(item, text=said) for item in night().standing if item.cause == "not-memory")
    row = sections(night(standing=standing))[1].rows[0]
    assert row[1].startswith(
        "Not memory: User-specified max_model_len (65536) is greater than the derived max_model_len ("
    )
    for kept in ("Error: 803", "the driver is too old: update it", "worker died"):
        standing = tuple(dataclasses.replace(item, text=kept) for item in standing)
        assert sections(night(standing=standing))[1].rows[0][1].startswith(f"Not memory: {kept}")
