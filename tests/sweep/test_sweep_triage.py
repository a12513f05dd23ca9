"""Thirty mixed bundles in one morning report: whoever reads it knows what happened where, how sure, since when, and what to do."""

from __future__ import annotations

import dataclasses
import html
import json
import os
import re
import shutil
import tomllib
from pathlib import Path
from urllib.parse import unquote

import pytest
from night import night
from rich.cells import cell_len

from oomdoc import diagnose
from oomdoc.model.morning import Morning
from oomdoc.report.morning import FORMS, terminal
from oomdoc.sweep.rows import _action

TESTS = Path(__file__).parents[1]
SAMPLES = sorted(path.parent for path in (TESTS.parent / "sample_logs").glob("*/case.toml"))
OTHERS = (
    "gpu-shared-a1", "gpu-shared-o5", "healthy-b5", "memory-leak-b6", "mig-slice-too-small-b7", "not-memory-b4", "prefix-cache-thrash-g6", "probe-restart-loop-b1",
    "rank-imbalance-a7", "shm-exhausted-a4", "tp-undersharded-b8", "host-memory-exhausted-a5", "allocator-fragmentation-c5", "autoscaling-blind-c1",
)  # fmt: skip
FIRST, SECOND = "2026-11-20", "2026-11-21"
UNCLEAR = "without-its-cause"
"""A bundle that names a failure and not what it was: its cause is undecided whatever the samples are."""

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, all_here: None) -> tuple[Path, Morning]:
    """The second of two nights: some bundles are known, some new, one cannot be read, and program text lies about.

    Swept in this process, where replays that other tests have done are not done again.
    """
    root = tmp_path_factory.mktemp("triage")
    fleet = root / "fleet"
    folders = [*SAMPLES, *(TESTS / "cases" / name for name in OTHERS)]
    for place in folders[: len(folders) // 2]:
        shutil.copytree(place, fleet / place.name)
    night(root / "store", fleet, FIRST, reports=root / "reports")
    for place in folders[len(folders) // 2 :]:
        shutil.copytree(place, fleet / place.name)
    (fleet / UNCLEAR).mkdir()
    (fleet / UNCLEAR / "server.log").write_text(
        "INFO 03-02 08:00:02 [core.py:58] Initializing a V1 LLM engine (v0.12.0) with config: model='Qwen/Qwen3-8B', dtype=torch.bfloat16\n"
        "INFO 03-02 08:00:40 [gpu_model_runner.py:2392] Model loading took 15.2672 GiB and 9.1 seconds\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n"
    )
    (fleet / "broken.tar.gz").write_bytes(bytes(range(1, 256)) * 12)
    (fleet / "tools").mkdir()
    (fleet / "tools" / "units.py").write_text(
        (TESTS.parent / "src" / "oomdoc" / "units.py").read_text("utf-8"), "utf-8"
    )
    made = night(root / "store", fleet, SECOND, reports=root / "reports")
    return root, made


def test_thirty_bundles_are_there_and_every_one_is_accounted_for(told: tuple[Path, Morning]) -> None:
    _, morning = told
    assert morning.counts.found >= 30
    assert len(morning.errors) == 1 and "broken.tar.gz" in morning.errors[0].bundle
    assert not any("tools" in item.name for item in morning.standing)
    standing = {item.name.partition("/")[0] for item in morning.standing}
    labels = {place.name: tomllib.loads((place / "case.toml").read_text("utf-8"))["cause"] for place in [*SAMPLES, *(TESTS / "cases" / name for name in OTHERS)]}  # fmt: skip
    assert standing == {UNCLEAR, *(name for name, cause in labels.items() if cause != "healthy")}
    assert {item.state for item in morning.standing} == {"new", "known"}
    # names tell bundles apart, also those whose last folder is called alike
    named = [(item.name, item.fingerprint) for item in morning.standing]
    assert len(named) == len(set(named))


def test_each_row_answers_without_a_second_file(told: tuple[Path, Morning]) -> None:
    _, morning = told
    causes = {
        place.name: (case["cause"], *case.get("also", ()))
        for place in SAMPLES
        for case in [tomllib.loads((place / "case.toml").read_text("utf-8"))]
    }
    page = html.unescape(re.sub(r"<[^>]+>", " ", FORMS["html"](morning)))
    pages = {"html": page, "terminal": terminal(morning, width=100), "markdown": re.sub(r"\\(.)", r"\1", FORMS["markdown"](morning))}  # fmt: skip
    for form, text in pages.items():
        flat = " ".join(text.split())
        for item in morning.standing:
            place = item.name.partition("/")[0]
            if place in causes:
                assert item.cause in causes[place]
                assert item.action, "every sample has something to do"
            assert item.probability is not None
            said = [item.title, item.cause or "", item.name, item.host or "", item.model or "", f"night of {item.since}"]  # fmt: skip
            if item.cause == "not-memory":
                words_alone = re.sub(r"^[\w.]+Error: ", "", " ".join((item.text or "").split()))  # without its class
                said[0] = "Not memory: " + words_alone[:30]
            for words in (*said, item.action or "the bundle shows too little to name a change"):
                plain = " ".join(words.replace("`", "").split())
                assert re.sub(r"\W", "", plain)[:60] in re.sub(r"\W", "", flat), (form, item.name, words)
    undecided = [item for item in morning.standing if item.verdict == "undecided"]
    assert undecided
    for item in undecided:
        closest = "Not memory: " if item.cause == "not-memory" and item.text else item.title
        assert f"Undecided; closest: {closest}" in page


def test_what_hurts_stands_first_and_rows_lead_to_their_reports(told: tuple[Path, Morning]) -> None:
    root, morning = told
    states = [item.state for item in morning.standing]
    assert states == sorted(states, key=("new", "known").index)
    memory = [item.cause != "not-memory" for item in morning.standing if item.state == "new"]
    assert memory == sorted(memory, reverse=True)
    kinds = [(item.state, item.cause != "not-memory", item.event, item.verdict) for item in morning.standing]
    for place, kind in enumerate(kinds):  # what nobody knows the cause of stands behind what has one
        assert kind[3] != "undecided" or (*kind[:3], "diagnosed") not in kinds[place:]
    page = FORMS["html"](morning)
    (root / "morning.html").write_text(page, encoding="utf-8")
    links = [unquote(html.unescape(link)) for link in re.findall(r'<a href="([^"#]+)"', page)]
    assert len(links) == len(morning.standing) + len(morning.quiet)
    assert all((root / link).is_file() or Path(link).is_file() for link in links)
    rows = [json.loads(line) for line in FORMS["jsonl"](morning).splitlines()]
    assert sum(row["kind"] == "incident" for row in rows) == len(morning.standing)
    assert max(cell_len(line) for line in terminal(morning, width=80).splitlines()) <= 80


@pytest.mark.parametrize("width", [400, 1280, 1920])
def test_in_a_browser_links_open_and_nothing_runs_off_the_page(told: tuple[Path, Morning], width: int) -> None:
    """On a phone, a laptop and a large screen; the page asks for nothing, and each link leads to the report of its bundle."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        pytest.skip("no Chromium here: install the package `chromium`, or name a binary in CHROMIUM")
    root, morning = told
    (root / "morning.html").write_text(FORMS["html"](morning), encoding="utf-8")
    asked: list[str] = []
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_context(viewport={"width": width, "height": 900}, offline=True).new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto((root / "morning.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        cells = page.locator(".triage tbody td")
        assert cells.count() == 8 * len(morning.standing)
        for cell in (cells.nth(n) for n in range(16)):
            box = cell.bounding_box()
            if box is None:  # a phone leaves out what is not known
                assert width == 400 and cell.text_content() == ""
                continue
            assert box["x"] >= 0 and box["x"] + box["width"] <= width and box["height"] > 0
            assert cell.evaluate("cell => cell.scrollWidth <= cell.clientWidth + 1"), cell.text_content()
        assert asked == [(root / "morning.html").as_uri()]
        first = morning.standing[0]
        page.locator(".triage tbody a").first.click()
        page.wait_for_load_state()
        assert page.url == (root / (first.page or "")).as_uri()
        assert first.title in page.locator("h1").text_content()
        browser.close()


def test_a_bundle_without_a_cause_is_given_no_fix() -> None:
    """The row says what the bundle's own report says: collect more."""
    with diagnose.analyze(
        TESTS.parent / "sample_logs" / "edge-097-chat-server", diagnose.Options(wording=False)
    ) as analysis:
        report = analysis.report
    first = report.diagnoses[0]
    assert _action(first, report) == report.story.change  # type: ignore[union-attr]
    torn = dataclasses.replace(report, verdict="undecided", story=None)
    assert _action(first, torn) == f"Collect more and analyse again: {report.collect_next[0].what}"
    assert _action(first, dataclasses.replace(torn, collect_next=())) == "No change is advised before a cause is known"
    assert _action(report.diagnoses[1], torn) == report.diagnoses[1].actions[0].do  # of another incident of the bundle
