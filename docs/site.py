"""Hooks of mkdocs: pages that the navigation does not name find their place, and links that leave docs/ lose their target.

A site of the pages does not hold the source.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def inward(markdown: str, page: str) -> str:
    """The page's text with links into docs/ as they are, README as the site's first page, and others as plain text.

    >>> inward("[a](../src/x.py) [b](tables.md#x) [c](../README.md)", "method.md")
    'a [b](tables.md#x) [c](index.md)'
    """

    def replaced(match: re.Match[str]) -> str:
        said, target = match[1], match[2]
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        place = target.partition("#")[0]
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), place))
        if path.startswith("docs/"):
            return match[0]
        if path == "README.md":
            return f"[{said}]({posixpath.relpath('index.md', posixpath.dirname(page) or '.')})"
        return said

    return LINK.sub(replaced, markdown)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by mkdocs for every page."""
    return inward(markdown, page.file.src_uri)


FOLDERS = {"causes": "Causes", "decisions": "Decisions"}


def navigation(named: list[Any], docs: Path) -> list[Any]:
    """The navigation with every page that it does not name: of a folder under its title, others under `More`."""
    known = set(re.findall(r"[\w./-]+\.md", repr(named)))
    rest = sorted(path.relative_to(docs).as_posix() for path in docs.rglob("*.md"))
    groups: dict[str, list[str]] = {}
    for page in (page for page in rest if page not in known):
        groups.setdefault(FOLDERS.get(page.split("/")[0], "More"), []).append(page)
    return [*named, *({title: pages} for title, pages in sorted(groups.items()))]


def on_config(config: Any, **_: Any) -> Any:
    """Called by mkdocs once, before it reads the pages."""
    config["nav"] = navigation(config["nav"], Path(config["docs_dir"]))
    return config
