"""Records of YAML: those of its lists of mappings, and of what stands beside them; `launch.read_document` reads the text.

TOML that keeps entries (`[[run]]`) says the same in other signs.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator

from oomdoc.ingest import launch
from oomdoc.ingest.forms.trees import Record, exploded
from oomdoc.ingest.text_form import TOML_ENTRY

CAP_BYTES = 512 << 10  # status files and exports of tools are below 100 KB


class NotYamlError(ValueError):
    """More of a text than is read."""


def records(text: str) -> Iterator[Record]:
    """Records of every document, each with the line in which it begins. Raises `NotYamlError`."""
    if len(text) > CAP_BYTES:
        raise NotYamlError("too long")
    if TOML_ENTRY.search(text):
        yield from _of_entries(text)
        return
    for document in launch.read_document(text):
        if isinstance(document, list):
            for entry in document:
                if isinstance(entry, dict):
                    yield from exploded(getattr(entry, "line", 1) or 1, "", entry, {})
        elif isinstance(document, dict):
            lists = {name: value for name, value in document.items() if isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value)}  # fmt: skip
            rest = {name: value for name, value in document.items() if name not in lists}
            above = {name: value for name, value in rest.items() if not isinstance(value, (dict, list))}
            for name, entries in lists.items():
                for entry in entries:
                    yield from exploded(getattr(entry, "line", 1) or 1, name, entry, above)
            if rest:
                yield from exploded(getattr(document, "line", 1) or 1, "", rest, {})


def _of_entries(text: str) -> Iterator[Record]:
    places: dict[str, list[int]] = {}
    for found in TOML_ENTRY.finditer(text):
        places.setdefault(found["name"], []).append(text.count("\n", 0, found.start()) + 1)
    try:
        document = json.loads(json.dumps(tomllib.loads(text), default=str))  # moments as they are written
    except (ValueError, RecursionError) as problem:
        raise NotYamlError(str(problem)) from None
    for name, value in document.items():
        for line, entry in zip(places.get(name, [1]), value if isinstance(value, list) else [value], strict=False):
            if isinstance(entry, dict):
                yield from exploded(line, name, entry, {})
