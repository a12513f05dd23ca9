"""What a running server says of itself when it is asked: `/version` and `/v1/models` of vLLM's API.

    {"version":"0.11.0"}
    {"object":"list","data":[{"id":"chat","object":"model","owned_by":"vllm","root":"org/model-7b","max_model_len":32768}]}

Release, model and length are settings (`engine_flag`, origin `file`). Adapters are listed with a parent and say nothing of the engine.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from oomdoc.ingest.base import HEAD_BYTES, Head, Rows, regex
from oomdoc.scan import Chunk
from oomdoc.tables import Batch

KIND = "server-answer"
TABLES: tuple[str, ...] = ("engine_flag",)

_RELEASE = regex(r"v?\d+\.\d+[\w.+!-]{0,60}$")


def _settings(text: str) -> Iterator[tuple[str, str]]:
    """Flags and values; nothing where the text is no such answer."""
    if text.lstrip()[:1] != "{":
        return
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return
    if not isinstance(value, dict):
        return
    if set(value) == {"version"} and isinstance(value["version"], str) and _RELEASE.match(value["version"]):
        yield "version", value["version"].removeprefix("v")
    models = value.get("data")
    if value.get("object") != "list" or not isinstance(models, list):
        return
    own = [
        each for each in models if isinstance(each, dict) and each.get("owned_by") == "vllm" and not each.get("parent")
    ]
    for each in own[:1]:  # further names of the same model
        name = each.get("root") or each.get("id")
        if isinstance(name, str):
            yield "model", name
        length = each.get("max_model_len")
        if isinstance(length, int) and not isinstance(length, bool) and length > 0:
            yield "max_model_len", str(length)


def matches(head: Head) -> bool:
    """A small JSON object that is one of these answers."""
    return len(head.data) < HEAD_BYTES and any(True for _ in _settings(head.data.decode("utf-8", "replace")))


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """The settings, on the first line: an answer is one statement."""
    rows = Rows()
    text = b"".join(chunk.data for chunk in chunks)[:HEAD_BYTES].decode("utf-8", "replace")
    for flag, value in _settings(text):
        rows.add("engine_flag", 1, flag=flag, value=value, origin="file")
    yield from rows.take()
