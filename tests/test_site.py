"""The documentation as a site: every page has its place, links stay inside, and, where mkdocs is installed, it builds."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from oomdoc.judge.rules import load_rules

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SITE: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))


def hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("oomdoc_docs_site", DOCS / "site.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def places(entry: Any) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    inner = entry.values() if isinstance(entry, dict) else entry
    return [place for part in inner for place in places(part)]


def test_every_page_has_one_place_in_the_navigation() -> None:
    listed = places(hook().navigation(SITE["nav"], DOCS))
    assert sorted(listed) == sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


def test_a_page_that_nobody_named_is_found_under_more(tmp_path: Path) -> None:
    (tmp_path / "decisions").mkdir()
    for name in ("index.md", "new.md", "decisions/0001-x.md"):
        (tmp_path / name).touch()
    assert hook().navigation([{"Start": "index.md"}], tmp_path) == [
        {"Start": "index.md"},
        {"Decisions": ["decisions/0001-x.md"]},
        {"More": ["new.md"]},
    ]


def test_every_cause_has_its_page_and_no_other_is_left() -> None:
    pages = {path.stem for path in (DOCS / "causes").glob("*.md")} - {"README"}
    assert pages == {rule.id for rule in load_rules(None)[0]}


def test_the_site_is_strict_and_fetches_nothing() -> None:
    assert SITE["strict"] is True and SITE["theme"]["font"] is False
    assert not SITE.get("extra_javascript") and not SITE.get("extra_css")
    assert "offline" in SITE["plugins"]  # else a browser that opens the folder lets the search load nothing
    for script in SITE["extra"]["polyfills"]:  # a copy of ours, so that nobody asks another site for it
        assert "iframe-worker" in script and (DOCS / script).is_file()


def test_links_that_leave_the_pages_become_text() -> None:
    inward = hook().inward
    assert (
        inward("see [`x`](../../rules/a/x.toml), [y](../tables.md#y), [z](https://e.org)", "causes/x.md")
        == "see `x`, [y](../tables.md#y), [z](https://e.org)"
    )
    assert inward("[start](../../README.md#run)", "causes/x.md") == "[start](../index.md)"
    for path in DOCS.rglob("*.md"):
        page = path.relative_to(DOCS).as_posix()
        told = re.sub(r"^```.*?^```$", "", inward(path.read_text(encoding="utf-8"), page), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)\s#]+\.\w+)[)#]", told):
            if "://" not in target:
                assert ((path.parent / target).resolve()).is_relative_to(DOCS), f"{page}: {target}"


@pytest.mark.skipif(importlib.util.find_spec("material") is None, reason="the extra `docs` is not installed")
def test_it_builds_without_a_warning(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "site" / "causes" / "gpu-shared.html").is_file()
    scripts = re.findall(
        r"<script[^>]*src=.?([^\s>\"']+)", (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    )
    assert "search/search_index.js" in scripts and not any("://" in script for script in scripts)
    _searched(tmp_path / "site" / "index.html")


def _searched(page: Path) -> None:
    """Opened from its folder in a browser, where there is one, the site finds what is typed and asks nobody else."""
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        pytest.skip("no Chromium here: install the package `chromium`, or name a binary in CHROMIUM")
    with playwright.sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        shown = browser.new_page()
        asked: list[str] = []
        shown.on("request", lambda request: asked.append(request.url))
        shown.goto(page.as_uri())
        shown.locator("input[name=query]").first.click()
        shown.keyboard.type("fragmentation")
        shown.locator(".md-search-result__item").first.wait_for(timeout=20_000)
        assert "fragmentation" in shown.locator(".md-search-result__list").inner_text().lower()
        assert [url for url in asked if not url.startswith(("file:", "data:", "blob:", "about:"))] == []
        browser.close()
