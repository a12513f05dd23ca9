"""Nothing that a person reads is missing from the JSON, and no figure differs between the forms: held over all samples."""

from __future__ import annotations

import dataclasses
import functools
import html
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grids import detailed_report_of
from oomdoc.model import Flag, Report
from oomdoc.report import REPORTS
from oomdoc.report.facts import engine_line, figures, tie
from oomdoc.units import GIB, count, factor, percent, show_bytes, show_moment, show_seconds
from report_samples import SAMPLES

SAMPLE_LOGS = Path(__file__).parents[2] / "sample_logs"
BUNDLES = sorted(path.parent.name for path in SAMPLE_LOGS.glob("*/case.toml"))
FIGURE = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")


@functools.cache
def report_of(name: str) -> Report:
    return SAMPLES[name[5:]]() if name.startswith("made:") else detailed_report_of(name)


@functools.cache
def page_of(form: str, name: str) -> str:
    return text_of(form, report_of(name))


def text_of(form: str, report: Report) -> str:
    """What a person reads of a form."""
    page = REPORTS[form](report, width=200, everything=True)
    if form == "html":
        page = re.sub(r"<(script|style|svg)\b.*?</\1>", " ", page, flags=re.S)
        page = re.sub(r"<div class=\"row.*?</div>", " ", page, flags=re.S)  # lines of the bundle, quoted as they are
        page = re.sub(r"bundle [0-9a-f]{16}…", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))  # half of the digest
    if form == "markdown":
        page = html.unescape(page)
    return page.replace("\\", "").replace("`", "")


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from leaves(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from leaves(inner)
    else:
        yield value


def spellings(number: float) -> Iterator[str]:
    """Every way in which a form may write a number of the JSON."""
    yield from (str(number), f"{number:g}", f"{number:.10g}", count(number))
    if math.isfinite(number):
        yield from (
            f"{number / GIB:.2f}",
            show_bytes(number),
            show_seconds(abs(number)),
            f"{number:,.3g}",
            f"{number:,.0f}",
            f"{number:.2f}",
        )
        if abs(number) < 40:
            yield factor(number)  # a weight in log-odds
        if number > 0:
            yield factor(math.log(number))  # a factor of the odds
            for size in (number, 1 / number):  # with the digits that a reader needs to come to the same figure
                yield from (f"{size:.{digits}f}" for digits in range(5))
        if 0 <= number <= 1:
            yield percent(number)
            yield from (f"{number:.{digits}%}" for digits in range(4))


@functools.cache
def allowed(name: str) -> frozenset[str]:
    """The figures that the JSON holds, in all their spellings, those of its sentences, and numbers of things in its lists."""
    plain = json.loads(REPORTS["json"](report_of(name)))
    found: set[str] = set()
    for leaf in leaves(plain):
        if isinstance(leaf, bool) or leaf is None:
            continue
        texts = [leaf, show_moment(leaf)] if isinstance(leaf, str) else [*spellings(leaf)]
        for text in texts:
            found.update(FIGURE.findall(text))
            found.update(FIGURE.findall(text.replace("_", " ").replace("T", " ").replace("Z", " ").replace("-", " ")))
    return frozenset(found | counted(plain))


def counted(plain: dict[str, Any]) -> set[str]:
    """Numbers of things that stand in lists of the JSON: a reader of it counts them."""
    found = {str(number) for number in range(10)}

    def sizes(value: Any) -> None:
        if isinstance(value, (list, dict)):
            for near in range(4):  # "and 7 more"
                found.add(count(max(len(value) - near, 0)))
            for inner in value.values() if isinstance(value, dict) else value:
                sizes(inner)

    sizes(plain)
    sources = plain["coverage"]["sources"]
    for name in ("bytes", "lines", "rows", "problems", "lookalikes"):
        total = sum(row[name] for row in sources)
        found.update(FIGURE.findall(f"{count(total)} {show_bytes(total)}"))
    timeline = plain["timeline"]
    if timeline:
        found.update(FIGURE.findall(show_seconds(timeline["step_s"] * timeline["steps"])))
    for item in plain["diagnoses"]:  # what weaker lines do together
        product = 1.0
        for step in reversed((plain["story"] or {}).get("steps", [])):
            product *= step["factor"]
            found.update(FIGURE.findall(factor(math.log(product))))
        found.add(str(len(item["evidence"])))
        without = sum(not each["lacks"] for each in item["unanswered"])  # questions that do not arise, and the others
        found.update((str(without), str(len(item["unanswered"]) - without)))
    return found


@pytest.mark.parametrize("form", ["terminal", "markdown", "html", "brief"])
@pytest.mark.parametrize("name", [*BUNDLES, *(f"made:{name}" for name in SAMPLES if name != "hostile")])
def test_every_figure_of_a_form_stands_in_the_json(name: str, form: str) -> None:
    known = allowed(name)
    page = page_of(form, name)
    if form == "html":  # buckets' and axes' own words, and spans of the picture, which are read off the timeline
        page = re.sub(
            r"(?s)Around the failure .*? to \d\d:\d\d:\d\d|Over time .*? to \d\d:\d\d:\d\d|in use, 0 to 100|S below 512.*?above",
            " ",
            page,
        )
        page = re.sub(r"at most [\d.,]+( [GMK]iB)?( of [\d.]+ GiB)?%?", " ", page)
        page = re.sub(r"\b\d\d:\d\d:\d\d\b", " ", page)
    strange = sorted(
        {figure for figure in FIGURE.findall(page) if figure.rstrip(",.") not in known and figure not in known}
    )
    assert strange == []


UNREADABLE = re.compile(
    r"(?<![\w.\-/#])\d+(?:\.\d+)?e[+-]?\d{2}\b|(?<![\w.:\-/=\"',{(\[#@])\d{7,}(?:\.\d+)?(?![\w\-/:])"
)
"""Numbers with an exponent, and seven digits or more in a row: sizes in bytes, seconds since 1970."""


@pytest.mark.parametrize("form", ["terminal", "markdown", "html", "brief"])
@pytest.mark.parametrize("name", [*BUNDLES, "made:kv-demand"])
def test_numbers_are_written_for_people(name: str, form: str) -> None:
    report = report_of(name)
    quoted = " ".join(each.first_failure.text for each in report.incidents if each.first_failure)
    page = page_of(form, name).replace(report.rules_version, "")  # a digest may begin with nine digits
    assert [found for found in UNREADABLE.findall(page) if found not in quoted] == []


def test_a_size_among_the_settings_of_a_start_is_one() -> None:
    assert UNREADABLE.search("kv-cache-memory-bytes 67108864, of 7e+10 parameters")
    start = report_of("edge-097-chat-server").engines[0]
    start = dataclasses.replace(start, flags={"kv_cache_memory_bytes": Flag(67108864, "logged", "vllm.log:1")})
    assert "kv-cache-memory-bytes 64.0 MiB" in engine_line(start)


@pytest.mark.parametrize("name", BUNDLES)
def test_the_answers_are_the_same_words_in_every_form(name: str) -> None:
    report = report_of(name)
    story = report.story
    assert story is not None
    pages = {
        form: " ".join(page_of(form, name).replace("*", "").replace("\u200b", "").split())
        for form in ("terminal", "markdown", "html")
    }
    words = [
        story.title,
        story.where,
        story.when,
        story.who,
        story.cost,
        story.change,
        story.replay,
        *(link.says for link in story.chain),
    ]
    for said in (" ".join(each.replace("`", "").replace("*", "").split()) for each in words if each):
        flat = re.sub(r"\s+", "", said)
        for form, page in pages.items():
            assert flat in re.sub(r"\s+|→", "", page), (form, said)


@pytest.mark.parametrize("name", BUNDLES)
def test_whoever_multiplies_what_is_written_comes_to_the_figure(name: str) -> None:
    """Each form gives the start, every factor and the end; the written figures alone lead from one to the other."""
    report = report_of(name)
    assert report.story is not None
    start, factors = figures(report.story.steps)
    odds = float(start.rstrip("%")) / 100
    odds /= 1 - odds
    for written in factors:
        size = 1.0 if written == "=" else float(written[1:])
        odds *= 1 / size if written.startswith("÷") else size
    assert percent(odds / (1 + odds)) == percent(report.diagnoses[0].probability)
    for form in ("terminal", "markdown", "html"):
        page = page_of(form, name)
        assert start in page and all(written in page for written in factors), form


def test_a_tie_stands_on_the_first_screen_of_every_form() -> None:
    report = report_of("edge-097-chat-server")
    assert tie(report) is None
    first, rival, *others = report.diagnoses
    first, rival = (dataclasses.replace(each, probability=0.45, actions=first.actions) for each in (first, rival))
    assert report.story
    told = dataclasses.replace(report.story, keeps=(rival.cause,))
    report = dataclasses.replace(report, diagnoses=(first, rival, *others), story=told)
    said = tie(report)
    assert said and rival.title in said and rival.cause in said and said.endswith("the same change helps both")
    for form in ("terminal", "markdown", "html"):
        page = " ".join(text_of(form, report).replace("*", "").split())
        assert said in page and page.index(said) < page.index(
            "What failed first" if form != "terminal" else "Where the memory is"
        ), form
    assert tie(report_of("kv-demand-long-chats")) is None


def test_an_engine_that_was_ended_is_not_said_to_be_fine() -> None:
    said = engine_line(report_of("killed-while-loading").engines[0])
    assert "was ended from outside, last seen: load-progress" in said
