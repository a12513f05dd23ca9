"""The published JSON Schema of the report (draft 2020-12): what `oomdoc schema` prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("report.schema.json")


def text() -> str:
    """The schema as it is published."""
    return PATH.read_text(encoding="utf-8")


def load() -> dict[str, Any]:
    """The schema as an object."""
    schema: dict[str, Any] = json.loads(text())
    return schema
