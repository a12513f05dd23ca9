"""The HTML form: what it holds, what it forbids, and how it behaves in a real browser.

The browser is Chromium as the system installs it (`CHROMIUM` names another), driven by Playwright's library without a
download of its own; without it these tests are skipped and say so.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import html
import itertools
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from grids import detailed_report_of
from oomdoc.model import Excerpt, ExcerptLine, LedgerEntry, Report, closest, schema
from oomdoc.report import REPORTS, pictures
from oomdoc.report.charts import BARS, charts
from oomdoc.report.facts import bar_size
from oomdoc.story import told as with_story
from oomdoc.units import GIB, show_time
from report_samples import SAMPLES, hostile, kv_demand

ROOT = Path(__file__).parents[2]
MOST_BYTES = 1_500_000  # of a page, whatever the bundle
VEGA = "83ccec9941d4e3ea9bca5e9b732857c20ad43c211f231e5ef080b9cddedc08df"  # what docs/vega.py prints
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or ""


@pytest.fixture(scope="module")
def detailed() -> Report:
    """The shipped bundle with requests, statistics and devices, with everything a page can show."""
    return detailed_report_of("kv-demand-long-chats")


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found
    told: dict[str, Any] = json.loads(found[1])
    return told


# ---- the text of the page


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_is_a_whole_page_of_its_own(name: str) -> None:
    page = REPORTS["html"](SAMPLES[name]())
    assert page.startswith("<!doctype html>") and page.endswith("</html>\n")
    assert REPORTS["html"](SAMPLES[name]()) == page
    markup = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.S)
    assert not re.search(r"""\s(?:src|href|action|srcset|poster)=["'](?!#)""", markup), "a page names no other file"
    assert not re.search(r"\son\w+=|\sstyle=", markup), "the policy would refuse it"
    assert html.escape(SAMPLES[name]().diagnoses[0].cause) in page
    assert len(page.encode("utf-8")) < MOST_BYTES


def test_the_policy_allows_the_page_s_own_texts_and_nothing_else() -> None:
    page = REPORTS["html"](kv_demand())
    found = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    assert found
    policy = html.unescape(found[1])
    rules = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert rules.pop("default-src") == rules.pop("base-uri") == rules.pop("form-action") == "'none'"
    assert set(rules) == {"script-src", "style-src"}
    assert "unsafe" not in policy and "*" not in policy and ":" not in policy
    for kind, tag in (("script-src", r"<script>(.*?)</script>"), ("style-src", r"<style>(.*?)</style>")):
        texts = re.findall(tag, page, re.S)
        assert set(rules[kind].split()) == {
            "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'" for text in texts
        }
    assert page.index("Content-Security-Policy") < page.index("<style>")


def test_the_charts_library_is_the_one_that_was_made() -> None:
    """A change of the bundle is a change of code that runs at the reader's: `make vega` prints the hash to put here."""
    assets = ROOT / "src/oomdoc/report/assets"
    assert hashlib.sha256((assets / "vega.js").read_bytes()).hexdigest() == VEGA
    assert "BSD 3-Clause" in (assets / "vega.LICENSE.txt").read_text(encoding="utf-8")


def test_everything_of_the_page_is_in_the_json(detailed: Report) -> None:
    told = detailed.to_dict()
    jsonschema.Draft202012Validator(schema.load()).validate(told)
    page = html.unescape(re.sub(r"<[^>]+>", "", REPORTS["html"](detailed)))
    assert told["excerpts"] and told["fix_replay"]["after"]["survives"] is True
    for excerpt in told["excerpts"][:5]:
        assert all(row["text"].strip() in page for row in excerpt["lines"] if "\t" not in row["text"])
    drawn = {chart["id"]: chart for chart in data_of(REPORTS["html"](detailed))["charts"]}
    usage = next(row["values"] for row in told["timeline"]["series"] if row["chart"] == "kv_used")
    assert drawn["kv-used"]["series"][0]["values"] == [
        None if value is None else round(value * 100, 1) for value in usage
    ]


def test_bars_add_up_to_what_was_counted(detailed: Report) -> None:
    drawn = {chart.id: chart for chart in charts(detailed)}
    arrivals = drawn["arrivals"]
    assert len(arrivals.times_ms) <= BARS
    counted = sum(value for series in arrivals.series for value in series.values if value is not None)
    assert counted == detailed.traffic["requests"]


def test_a_day_of_eight_devices_stays_below_the_limit() -> None:
    steps = 361
    series = [
        {"chart": "device_memory", "name": f"GPU {gpu}", "unit": "bytes", "limit": 80 * GIB, "values": [70 * GIB + 12_345_678 * (n * 7 % 97) + gpu for n in range(steps)]}
        for gpu in range(8)
    ]  # fmt: skip
    for chart, name in (("kv_used", "KV pool in use"), ("requests", "running"), ("requests", "waiting"), ("preemptions", "preemptions"), *(("arrivals", size) for size in ("S", "M", "L", "XL"))):  # fmt: skip
        series.append(
            {
                "chart": chart,
                "name": name,
                "unit": "requests",
                "limit": None,
                "values": [n % 83 / 83 for n in range(steps)],
            }
        )
    lines = tuple(ExcerptLine(number, "x" * 600) for number in range(1, 6))
    report = dataclasses.replace(
        kv_demand(),
        timeline={"from_t": "2026-11-20T00:00:00Z", "step_s": 240.0, "steps": steps, "series": series, "marks": []},
        excerpts=tuple(Excerpt(f"vllm.log:{n}", 3, 3, lines) for n in range(80)),
    )
    assert len(REPORTS["html"](report).encode()) < MOST_BYTES


def test_an_engine_ends_in_the_same_words_in_every_form() -> None:
    made = kv_demand()
    report = dataclasses.replace(made, engines=tuple(dataclasses.replace(each, failed=False, outcome="ended") for each in made.engines))  # fmt: skip
    assert "was ended from outside" in REPORTS["html"](report)
    assert "did not fail" not in REPORTS["html"](report)


def test_a_ledger_of_devices_whose_size_nobody_knows_is_a_table_and_no_chart() -> None:
    made = kv_demand()
    unknown = tuple(dataclasses.replace(entry, total_bytes=None) for entry in made.ledger)
    page = REPORTS["html"](dataclasses.replace(made, ledger=unknown))
    assert "Memory by part" in page and 'id="ledger"' not in page
    assert data_of(page)["ledger"] is None


def test_moments_alone_are_drawn_over_the_time_that_they_take() -> None:
    made = kv_demand()
    failed = next(each.started for each in made.incidents if each.started)
    marks = [
        {"t": show_time(failed - 9), "kind": "start", "says": "engine start", "ref": "vllm.log:1"},
        {"t": show_time(failed), "kind": "failure", "says": "out of memory", "ref": "vllm.log:5"},
    ]
    timeline = {"from_t": show_time(failed - 7200), "step_s": 20.0, "steps": 361, "series": [], "marks": marks}
    drawn = pictures.around(dataclasses.replace(made, timeline=timeline))
    assert drawn and [round(mark["x"]) for mark in drawn["marks"]] == [46, 954]


def test_a_plan_larger_than_its_device_is_not_drawn_as_if_it_fitted() -> None:
    entry = LedgerEntry(None, 0, None, 80 * GIB, {"weights_bytes": 88 * GIB}, None, None, (), moment="plan")
    assert bar_size(entry) == "> 80.00 GiB"
    assert bar_size(dataclasses.replace(entry, moment="failure")) == "80.00 GiB"


def test_a_second_cause_is_named_only_where_it_is_near() -> None:
    first, second = SAMPLES["undecided"]().diagnoses[:2]
    far = dataclasses.replace(second, probability=0.03)
    assert closest([first, far]) == (first,)
    assert closest([first, dataclasses.replace(second, probability=0.2)])[1:]


def test_a_report_without_anything_to_draw_needs_no_library() -> None:
    assert len(REPORTS["html"](SAMPLES["undecided"]())) < 60_000


# ---- in a browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: `pip install playwright`"
    )
    if not CHROMIUM:
        pytest.skip("no Chromium here: install the package `chromium`, or name a binary in CHROMIUM")
    with sync_api.sync_playwright() as driver:
        try:
            made = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        except sync_api.Error as problem:
            pytest.skip(f"{CHROMIUM} does not start: {str(problem).splitlines()[0]}")
        yield made
        made.close()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens a report from disk in a context without network; at the end nothing was asked for and nothing complained."""
    contexts, told, asked = [], [], []

    def show(report: Report, width: int = 1280, **options: Any) -> Any:
        path = tmp_path / "report.html"
        path.write_text(REPORTS["html"](report), encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": 800}, offline=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: told.append(message.text))
        page.on("pageerror", lambda problem: told.append(str(problem)))
        page.on("dialog", lambda dialog: told.append(f"dialog {dialog.message}"))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        until(page, "document.documentElement.dataset.drawn !== undefined")
        return page

    yield show
    for context in contexts:
        context.close()
    assert told == []
    assert [url for url in asked if url != (tmp_path / "report.html").as_uri()] == []


def until(page: Any, condition: str, seconds: float = 30.0) -> None:
    """Wait until an expression is true; the library's own way of waiting is an `eval`, which the page's policy refuses."""
    for _ in range(round(seconds / 0.05)):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never: {condition}")


def test_charts_are_drawn_and_linked(opened: Callable[..., Any], detailed: Report) -> None:
    page = opened(detailed)
    names = page.eval_on_selector_all("figure[data-chart]", "all => all.map(one => one.dataset.chart)")
    assert names == [
        "device-memory",
        "kv-used",
        "requests",
        "preemptions",
        "arrivals",
        "host-memory",
        "tokens-in-flight",
        "replay-usage",
        "replay-waiting",
    ]
    for name in names:
        assert page.locator(f"#fig-{name} svg path[d*=L], #fig-{name} svg .mark-rect path").count() > 0
    assert page.locator("#ledger svg .mark-rect path").count() >= 12  # four ranks, three known parts
    assert "cause, failure" in page.locator("#fig-kv-used svg").text_content()

    resting = page.locator("#fig-requests .legend").text_content()
    plot = page.locator("#fig-kv-used .plot svg")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 60)
    assert page.locator("#now").text_content().startswith("2026-11-18 13:")
    assert page.locator("#fig-requests .legend").text_content() != resting  # pointing at one chart reads all of them

    labels = "[...document.querySelectorAll('#fig-requests .role-axis-label text')].map(one => one.textContent).sort().join()"
    before = json.dumps(page.evaluate(labels))
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + 60)
    page.mouse.up()
    until(page, f"{labels} !== {before}")
    page.get_by_role("button", name="Everything").click()
    until(page, f"{labels} === {before}")


def test_the_cursor_reads_what_the_json_says(opened: Callable[..., Any], detailed: Report) -> None:
    page = opened(detailed)
    page.locator("#fig-kv-used .plot").focus()
    page.keyboard.press("ArrowRight")  # from the failure one step on
    told = page.locator("#fig-kv-used p[aria-live]").text_content()
    moment, value = re.fullmatch(r"(\S+ \S+): KV pool in use ([\d.]+|–) %", told).groups()  # type: ignore[union-attr]
    chart = next(chart for chart in charts(detailed) if chart.id == "kv-used")
    shown = {(show_time(time // 1000) or "").replace("T", " "): at for at, time in enumerate(chart.times_ms)}
    place = max(at for time, at in shown.items() if time <= moment)
    assert float(value) == chart.series[0].values[place]


def test_evidence_opens_to_its_lines_and_tables_to_their_figures(opened: Callable[..., Any], detailed: Report) -> None:
    page = opened(detailed)
    first = detailed.diagnoses[0].evidence[0]
    lines = {row.line: row.text for item in detailed.excerpts if item.ref == first.refs[0] for row in item.lines}
    place = page.locator("#why details.ref").first
    assert not place.locator(".row").first.is_visible()
    place.locator("summary").focus()
    page.keyboard.press("Enter")
    assert place.locator(".row").first.is_visible()
    assert place.locator(".row code").all_text_contents() == list(lines.values())
    assert place.locator(".row.hit .ln").text_content() == first.refs[0].rpartition(":")[2]

    table = page.locator("#fig-requests details.table")
    table.locator("summary").click()
    table.locator("tbody tr").first.wait_for()
    values = [row["values"] for row in detailed.timeline["series"] if row["chart"] == "requests"]
    assert table.locator("tbody tr").count() == sum(
        any(value is not None for value in row) for row in zip(*values, strict=True)
    )
    assert table.locator("thead th").all_text_contents() == ["time (UTC)", "running, requests", "waiting, requests"]


def test_flags_are_copied(opened: Callable[..., Any], detailed: Report) -> None:
    page = opened(detailed, permissions=["clipboard-read", "clipboard-write"])
    button = page.locator("[data-copy=first-fix]")
    button.click()
    until(page, "document.querySelector('[data-copy=first-fix]').textContent.startsWith('Copied')")
    assert page.evaluate("navigator.clipboard.readText()") == "--kv-cache-dtype fp8"


@pytest.mark.parametrize(("width", "height"), [(390, 2400), (1280, 900), (1920, 1080)])
def test_the_first_screen_answers_and_nothing_runs_off_the_page(
    opened: Callable[..., Any], detailed: Report, width: int, height: int
) -> None:
    """At 1280 x 900 all answers and both pictures stand there without scrolling; a phone has them above all else."""
    page = opened(detailed, width)
    for place in page.locator(".answers dt, .answers dd, #first-ledger, #first-time").all():
        box = place.bounding_box()
        assert box["y"] + box["height"] <= height, place.text_content()
    assert page.locator("#first-ledger svg rect[class^=fill]").count() >= 4
    assert page.locator("#first-time svg .mark.failure").count() >= 1
    assert len(page.locator("#first-time svg .line").first.get_attribute("d")) > 200
    asked = ["What ran out", "Where", "When", "Why", "Who", "What it cost", "How sure", "What to change"]
    assert page.locator(".answers dt").all_text_contents() == asked
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_five_lines_are_copied_as_the_json_has_them(opened: Callable[..., Any], detailed: Report) -> None:
    page = opened(detailed, permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy for a chat").click()
    until(page, "document.querySelector('[data-copy=brief]').textContent.startsWith('Copied')")
    assert page.evaluate("navigator.clipboard.readText()").splitlines() == list(detailed.story.brief)


def test_headings_landmarks_and_names(opened: Callable[..., Any], detailed: Report) -> None:
    page = opened(detailed)
    levels = page.eval_on_selector_all("h1, h2, h3, h4", "all => all.map(one => +one.tagName[1])")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    nameless = page.eval_on_selector_all(
        "[tabindex], [role=img], button, meter, nav, section",
        "all => all.filter(one => !(one.getAttribute('aria-label') || one.getAttribute('aria-labelledby') || one.textContent.trim())).length",
    )
    assert nameless == 0
    assert page.eval_on_selector_all("[id]", "all => new Set(all.map(one => one.id)).size === all.length")
    assert page.eval_on_selector_all(
        "[aria-labelledby], nav a",
        "all => all.every(one => document.getElementById(one.getAttribute('aria-labelledby') || one.hash.slice(1)))",
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(opened: Callable[..., Any], detailed: Report, scheme: str) -> None:
    """WCAG AA: 4.5 to 1 for each colour of text on the page's grounds."""
    page = opened(detailed, color_scheme=scheme)
    names = ["--page", "--panel", "--text", "--muted", "--accent", "--bad", "--warn", "--good"]
    found = page.evaluate(
        "names => names.map(name => getComputedStyle(document.documentElement).getPropertyValue(name).trim())", names
    )
    colors = dict(zip(names, map(_luminance, found), strict=True))
    assert (colors["--page"] > 0.5) == (scheme == "light")
    for ground in ("--page", "--panel"):
        for text in names[2:]:
            low, high = sorted((colors[ground], colors[text]))
            assert (high + 0.05) / (low + 0.05) >= 4.5, f"{text} on {ground}"


def _luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_print_is_light_and_whole(opened: Callable[..., Any], detailed: Report) -> None:
    page = opened(detailed, color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("nav").is_visible()
    assert page.locator("#fig-kv-used svg").is_visible()


HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> </script><!-- {{ 7*7 }} \x1b[31mred\x1b[0m \x1b]0;t\x07 "
    'abc\u202etxt.exe\u202c \u2066x\u2069 =HYPERLINK("http://example.org") @SUM(A1) \u05d0\u05d1\u05d2'
)


def test_text_of_a_bundle_stays_text(opened: Callable[..., Any]) -> None:
    """Prompts and paths that try markup, scripts, escapes, direction marks and formulas: shown, not obeyed."""
    report = kv_demand()
    ref = report.diagnoses[0].evidence[0].refs[0]
    first = dataclasses.replace(
        report.diagnoses[0],
        title=HOSTILE,
        summary=HOSTILE,
        actions=(dataclasses.replace(report.diagnoses[0].actions[0], do=HOSTILE, changes={"model": HOSTILE}),),
    )
    sources = (dataclasses.replace(report.coverage.sources[0], path="=cmd|' /C calc'!A1" + HOSTILE, kind="+1"),)
    series = [
        {"chart": "device_memory", "name": HOSTILE, "unit": "bytes", "limit": None, "values": [GIB, None, 2 * GIB]}
    ]
    page = opened(
        with_story(dataclasses.replace(
            report, diagnoses=(first, *report.diagnoses[1:]), bundle=dataclasses.replace(report.bundle, name=HOSTILE), warnings=(HOSTILE,),
            excerpts=(Excerpt(ref, 2, 2, (ExcerptLine(1, "  " + HOSTILE), ExcerptLine(2, HOSTILE))),), coverage=dataclasses.replace(report.coverage, sources=sources),
            timeline={"from_t": "2026-11-20T20:00:00Z", "step_s": 60.0, "steps": 3, "series": series, "marks": [{"t": "2026-11-20T20:01:00Z", "kind": "failure", "says": HOSTILE, "ref": ref}]},
        ))
    )  # fmt: skip
    assert page.evaluate("document.scripts.length") == 3  # data, library, the page's own
    assert page.evaluate("document.images.length") == 0
    page.locator("details.ref summary").first.click()
    page.locator("#fig-device-memory details.table summary").click()
    text = page.evaluate("document.body.innerText")
    assert "<script>alert(1)</script><img src=x onerror=alert(2)>" in text
    assert "{{ 7*7 }}" in text
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]",
        page.evaluate("document.documentElement.textContent"),
    )
    cells = page.eval_on_selector_all("td, tbody th", "all => all.map(one => one.textContent.trim())")
    assert [cell for cell in cells if cell[:1] in ("=", "+", "@")] == []
    assert page.title().startswith("<script>")


def test_the_hostile_sample_opens(opened: Callable[..., Any]) -> None:
    assert opened(hostile()).locator("h1").count() == 1
