"""The forms of a report: each a function from a `Report` to text, imported when it is asked for.

A form takes the options it understands (`top`, `width`, `color`) and ignores the others, so that every form can be
called alike. Adding one: a module with `render(report, **options) -> str`, a line in `REPORTS` and its suffix here.
Reports see `oomdoc.model` only: no tables, no rules, no files but their own templates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

from oomdoc.model import Report

Form = Callable[..., str]


def _lazy(module: str) -> Form:
    def render(report: Report, **options: Any) -> str:
        text: str = import_module(f"oomdoc.report.{module}").render(report, **options)
        return text

    return render


REPORTS: Mapping[str, Form] = MappingProxyType(
    {
        "terminal": _lazy("terminal"),
        "brief": _lazy("brief"),
        "json": _lazy("json"),
        "markdown": _lazy("markdown"),
        "html": _lazy("html"),
    }
)
"""Form -> function(report, **options) -> text that ends with a newline."""

SUFFIXES: Mapping[str, str] = MappingProxyType(
    {".txt": "terminal", ".json": "json", ".md": "markdown", ".html": "html", ".htm": "html"}
)
"""File suffix -> form."""
