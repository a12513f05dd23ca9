"""What a running server says when it is asked: `/version` and `/v1/models` of vLLM's API, and why it refuses a request.

    {"version":"0.11.0"}
    {"object":"list","data":[{"id":"chat","object":"model","owned_by":"vllm","root":"org/model-7b","max_model_len":32768}]}

    {"error":{"message":"no such adapter: tax-7","type":"NotFoundError","param":null,"code":404}}

Release, model and length are settings (`engine_flag`, origin `file`). Adapters are listed with a parent and say nothing of the engine.
What it answers to a request that it does not take is a note `request-refused` with the status.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import HEAD_BYTES, TEXT_CAP, Head, Rows, beginning
from oomdoc.ingest.json_pieces import loads
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

KIND = "server-answer"

_RELEASE = regex(r"v?\d+\.\d+[\w.+!-]{0,60}$")


def _settings(text: str) -> Iterator[tuple[str, str]]:
    """Flags and values; nothing where the text is no such answer."""
    value = loads(text)
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


def _refusal(text: str) -> tuple[int, str] | None:
    """Status and reason of an error that the API of OpenAI's form answers; None for anything else."""
    value = loads(text) if '"message"' in text else None
    error = value.get("error", value if value.get("object") == "error" else None) if isinstance(value, dict) else None
    if not isinstance(error, dict) or not isinstance(error.get("message"), str):
        return None
    code = str(error.get("code") or error.get("status") or "")
    return (int(code), error["message"]) if re.fullmatch(r"[45]\d\d", code) else None


def matches(head: Head) -> bool:
    """A small JSON object that is one of these answers."""
    if len(head.data) >= HEAD_BYTES:
        return False
    text = head.data.decode("utf-8", "replace")
    return any(True for _ in _settings(text)) or _refusal(text) is not None


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """The settings or the reason, on the first line that is not blank: an answer is one statement."""
    rows = Rows()
    text = beginning(chunks, HEAD_BYTES)[:HEAD_BYTES].decode("utf-8", "replace")
    line = 1 + text[: len(text) - len(text.lstrip())].count("\n")
    for flag, value in _settings(text):
        rows.add("engine_flag", line, flag=flag, value=value, origin="file")
    if refused := _refusal(text):
        rows.add("note", line, topic="request-refused", value=float(refused[0]), text=refused[1][:TEXT_CAP])
    yield from rows.take()
