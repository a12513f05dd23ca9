"""Answers of stores that are asked for logs and figures, as lines of JSON: Elasticsearch and OpenSearch, their SQL, Grafana's frames of log lines.

    {"hits": {"hits": [{"_source": {"@timestamp": t, "message": "..."}}]}}      {"@timestamp": t, "message": "..."}
    {"aggregations": {"m": {"buckets": [{"key_as_string": t, "waiting": {"value": 3}}]}}}      {"time": t, "waiting": 3}
    {"columns": [{"name": "t"}, {"name": "running"}], "values": [[t, 20]]}      {"t": t, "running": 20}

Rows stand in the order of their moments, oldest first; what names a bucket that holds others (a pod) stands in each of those.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from oomdoc.regexes import regex

_LEVELS = 8  # of buckets within buckets
_MOST = 400_000  # rows
_ASKED = regex(
    rb'"aggregations"\s*:\s*\{[^\x00]{0,2000}?"buckets"\s*:\s*[\[{]|"hits"\s*:\s*\{[^\x00]{0,2000}?"hits"\s*:\s*\[\s*\{[^\x00]{0,2000}?"(?:_source|fields)"\s*:\s*\{'
    rb'|"(?:columns|schema)"\s*:\s*\[\s*\{[^\x00]{0,4000}?\]\s*,\s*"(?:values|rows|datarows)"\s*:\s*\[\s*\[|"frames"\s*:\s*\[[^\x00]{0,2000}?"type"\s*:\s*"string"'
)
_TEXTS = ("message", "log", "msg", "line", "Line", "body", "Body")
_TIMES = ("@timestamp", "timestamp", "time", "Time", "ts", "key_as_string")
_BOOKS = frozenset(("key", "key_as_string", "doc_count", "from", "to", "from_as_string", "to_as_string"))
_COUNTS = regex(r"_tokens\": ?\d")


def is_answer(head: bytes) -> bool:
    """Whether a text begins as such an answer does."""
    return _ASKED.search(head) is not None


def lines_of(text: str) -> str | None:
    """The rows of an answer, one a line; None where it is none, or its figures stand in nothing that is known here.

    >>> lines_of('{"aggregations": {"by": {"buckets": [{"key": "a", "m": {"buckets": [{"key_as_string": "T1", "key": 1, "doc_count": 4, "wait": {"value": 2.0}}]}}]}}}')
    '{"by": "a", "time": "T1", "count": 4, "wait": 2.0}\\n'
    >>> lines_of('{"columns": [{"name": "t"}, {"name": "n"}], "rows": [["T1", 5]]}'), lines_of('{"a": 1}')
    ('{"t": "T1", "n": 5}\\n', None)
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    inner = value.get("rawResponse")
    rows = list(zip(_rows(inner if isinstance(inner, dict) else value), range(_MOST), strict=False))
    ordered = sorted(
        (row for row, _ in rows), key=lambda row: str(next((row[key] for key in _TIMES if key in row), ""))
    )
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ordered) or None


def _rows(value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    hits, found = value.get("hits"), value.get("aggregations")
    columns = value.get("columns") or value.get("schema")
    listed = next((value[key] for key in ("values", "rows", "datarows") if isinstance(value.get(key), list)), None)
    if isinstance(found, dict):
        yield from _buckets(found, {}, 0)
    elif isinstance(hits, dict) and isinstance(hits.get("hits"), list):
        yield from (row for hit in hits["hits"] if isinstance(hit, dict) and (row := _hit(hit)))
    elif isinstance(columns, list) and listed is not None:
        yield from _table([one.get("name") if isinstance(one, dict) else one for one in columns], listed)
    elif isinstance(value.get("results"), dict):
        for answer in value["results"].values():
            frames = answer.get("frames") if isinstance(answer, dict) else None
            for frame in frames if isinstance(frames, list) else ():
                yield from _frame(frame)


def _table(names: Sequence[Any], rows: Sequence[Any]) -> Iterator[dict[str, Any]]:
    if names and all(isinstance(name, str) for name in names):
        yield from (dict(zip(names, row, strict=False)) for row in rows if isinstance(row, list))


def _frame(frame: Any) -> Iterator[dict[str, Any]]:
    """The lines of a frame of a log; frames of series are read as such."""
    schema, data = (frame.get("schema"), frame.get("data")) if isinstance(frame, dict) else (None, None)
    fields = schema.get("fields") if isinstance(schema, dict) else None
    columns = data.get("values") if isinstance(data, dict) else None
    if isinstance(fields, list) and isinstance(columns, list) and all(isinstance(each, list) for each in columns):
        names = [one.get("name") if isinstance(one, dict) else None for one in fields]
        if any(name in _TEXTS for name in names):
            yield from _table(["line" if name == "Line" else "time" if name == "Time" else name for name in names], [list(row) for row in zip(*columns, strict=False)])  # fmt: skip


def _hit(hit: Mapping[str, Any]) -> dict[str, Any]:
    """A document: of a line of a log its text, its moment and its pod, of any other all that it holds."""
    source = hit.get("_source") or hit.get("fields")
    if not isinstance(source, dict):
        return {}
    row = {key: each[0] if isinstance(each, list) and len(each) == 1 else each for key, each in source.items()}
    text = next((key for key in _TEXTS if isinstance(row.get(key), str)), None)
    if text is None or _COUNTS.search(json.dumps(row)):
        return row
    cluster = row.get("kubernetes")
    named = cluster.get("pod", {}) if isinstance(cluster, dict) else {}
    pod = row.get("kubernetes.pod.name") or (named.get("name") if isinstance(named, dict) else named) or (cluster.get("pod_name") if isinstance(cluster, dict) else None)  # fmt: skip
    return {key: row[key] for key in _TIMES if key in row} | {"message": row[text]} | ({"pod": pod} if pod else {})


def _buckets(level: Mapping[str, Any], above: dict[str, Any], depth: int) -> Iterator[dict[str, Any]]:
    """A row for each innermost bucket."""
    for name, told in level.items():
        buckets = told.get("buckets") if isinstance(told, dict) else None
        entries = list(buckets.values()) if isinstance(buckets, dict) else buckets
        if not isinstance(entries, list) or depth > _LEVELS:
            continue
        for entry in entries:
            if not isinstance(entry, dict):
                continue
            own = {"time": entry["key_as_string"]} if "key_as_string" in entry else {name: entry.get("key")}
            whole = above | own
            if any(isinstance(each, dict) and "buckets" in each for each in entry.values()):
                yield from _buckets(entry, whole, depth + 1)
            else:
                yield whole | ({"count": entry["doc_count"]} if "doc_count" in entry else {}) | _figures(entry)


def _figures(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What is told of a bucket: a value, percentiles by their number, sums of a kind (`avg`, `max`)."""
    found: dict[str, Any] = {}
    for name, told in entry.items():
        if name in _BOOKS or not isinstance(told, dict):
            continue
        if "value" in told:
            found[name] = told["value"]
            continue
        parts = told["values"] if isinstance(told.get("values"), dict) else told
        for part, number in parts.items():
            if isinstance(number, (int, float)):
                bare = part.removesuffix(".0")
                found[f"{name}_{'p' + bare if bare.replace('.', '').isdigit() else bare}"] = number
    return found
