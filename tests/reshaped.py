"""The same evidence as tools and people hand it over that `forms.py` does not know: other names, documents, damage, wrappings.

`forms.py` measures the names and layouts that the vocabulary was written with. Here are others: what gpustat, nvitop, Telegraf,
OpenTelemetry, benchmarks, gateways, SGLang and people call the same; how Elasticsearch, Grafana, SQL shells, pandas, web pages and
metric stores print records; sources that are cut off; and texts (logs, manifests, screens) behind prefixes, wrapped at 120
columns, in a code fence, in one line, as a string in a document. A text is held against all rows that it gave as it was.

`python tests/reshaped.py FOLDER` prints the share that comes back by group, form and way of speaking; `--every N` takes each
N-th case only, `--show S` prints what stays below a share.
"""

from __future__ import annotations

import argparse
import csv
import html
import io
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import forms
from forms import Form, Row, Source

# ---- other names: (column, name, unit)

OTHER_NAMES: dict[str, dict[str, list[tuple[str, str, str]]]] = {
    "gpu_sample": {
        "gpustat": [("gpu", "index", ""), ("name", "name", ""), ("gpu_util", "utilization.gpu", "%"), ("used_bytes", "memory.used", "MiB"), ("total_bytes", "memory.total", "MiB"), ("t", "query_time", "iso")],
        "telegraf": [("t", "time", "iso"), ("gpu", "nvidia_smi.index", ""), ("used_bytes", "nvidia_smi.memory_used", "MiB"), ("total_bytes", "nvidia_smi.memory_total", "MiB"), ("gpu_util", "nvidia_smi.utilization_gpu", "%"), ("memory_util", "nvidia_smi.utilization_memory", "%")],
        "otel": [("t", "timestamp", "iso"), ("gpu", "gpu.index", ""), ("used_bytes", "hw.gpu.memory.usage", "B"), ("total_bytes", "hw.gpu.memory.limit", "B"), ("gpu_util", "hw.gpu.utilization", "1")],
        "person": [("t", "When", "iso"), ("gpu", "GPU #", ""), ("name", "Card", ""), ("used_bytes", "Mem used (GiB)", "GiB"), ("total_bytes", "Mem size (GiB)", "GiB"), ("gpu_util", "Busy %", "%")],
        "screen": [("gpu", "GPU", ""), ("name", "Name", ""), ("used_bytes", "Memory-Used", "MiB+"), ("total_bytes", "Memory-Total", "MiB+"), ("gpu_util", "GPU-Util", "%+"), ("t", "Timestamp", "slash")],
        "exporter": [("t", "ts_ms", "ms"), ("gpu", "minor_number", ""), ("used_bytes", "gpu_memory_usage_bytes", "B"), ("total_bytes", "gpu_memory_capacity_bytes", "B"), ("gpu_util", "gpu_duty_cycle_pct", "%")],
    },
    "gpu_process": {
        "screen": [("gpu", "GPU", ""), ("pid", "PID", ""), ("type", "Type", ""), ("name", "Process name", ""), ("used_bytes", "GPU Memory Usage", "MiB+")],
        "nvitop": [("gpu", "GPU", ""), ("pid", "PID", ""), ("used_bytes", "GPU-MEM", "GiB+"), ("name", "COMMAND", "")],
        "pmon": [("gpu", "gpu", ""), ("pid", "pid", ""), ("type", "type", ""), ("used_bytes", "fb_mib", "MiB"), ("name", "command", "")],
        "agent": [("t", "collected_at", "iso"), ("gpu", "gpu_ordinal", ""), ("pid", "host_pid", ""), ("name", "cmd", ""), ("used_bytes", "gpu_mem_bytes", "B")],
    },
    "request": {
        "otel": [("t", "timestamp", "iso"), ("model", "gen_ai.request.model", ""), ("input_tokens", "gen_ai.usage.input_tokens", ""), ("output_tokens", "gen_ai.usage.output_tokens", ""), ("max_tokens", "gen_ai.request.max_tokens", ""), ("ttft_s", "gen_ai.server.time_to_first_token", "s"), ("latency_s", "gen_ai.server.request.duration", "s"), ("status", "http.response.status_code", "")],
        "benchmark": [("t", "Start", "iso"), ("input_tokens", "ISL", ""), ("output_tokens", "OSL", ""), ("ttft_s", "TTFT (ms)", "ms"), ("latency_s", "E2E latency (ms)", "ms"), ("status", "Status", "")],
        "gateway": [("t", "startTime", "iso"), ("tenant", "team_id", ""), ("model", "model", ""), ("input_tokens", "tokens_in", ""), ("output_tokens", "tokens_out", ""), ("cached_tokens", "cache_read_input_tokens", ""), ("latency_s", "response_time_ms", "ms"), ("status", "response_status", "")],
        "tracing": [("t", "start", "iso"), ("tenant", "userId", ""), ("input_tokens", "inputTokens", ""), ("output_tokens", "outputTokens", ""), ("latency_s", "latencySeconds", "s"), ("ttft_s", "timeToFirstTokenSeconds", "s"), ("status", "statusCode", "")],
        "person": [("t", "When", "iso"), ("input_tokens", "prompt length", ""), ("output_tokens", "reply tokens", ""), ("max_tokens", "max new tokens", ""), ("latency_s", "total time (s)", "s"), ("status", "HTTP", "")],
        "other-engine": [("t", "received_at", "epoch"), ("input_tokens", "input_length", ""), ("output_tokens", "generated_tokens", ""), ("max_tokens", "max_new_tokens", ""), ("latency_s", "total_time", "s"), ("ttft_s", "first_token_latency", "s"), ("status", "status", "")],
    },
    "engine_stat": {
        "metric-words": [("t", "Time", "iso"), ("running", "num_requests_running", ""), ("waiting", "num_requests_waiting", ""), ("kv_used", "KV cache usage %", "%"), ("prompt_tokens_per_s", "prompt tok/s", ""), ("generation_tokens_per_s", "gen tok/s", "")],
        "statistics": [("t", "timestamp", "iso"), ("prompt_tokens_per_s", "Avg prompt throughput", ""), ("generation_tokens_per_s", "Avg generation throughput", ""), ("running", "Running", ""), ("waiting", "Waiting", ""), ("kv_used", "GPU KV cache usage", "%+"), ("prefix_hit_rate", "Prefix cache hit rate", "%+")],
        "sglang": [("t", "time", "iso"), ("running", "#running-req", ""), ("waiting", "#queue-req", ""), ("kv_used", "token usage", "1"), ("generation_tokens_per_s", "gen throughput (token/s)", "")],
        "person": [("t", "when", "iso"), ("running", "in flight", ""), ("waiting", "backlog", ""), ("kv_used", "KV %", "%"), ("prompt_tokens_per_s", "prefill tok/s", ""), ("generation_tokens_per_s", "decode tok/s", "")],
        "dashboard": [("t", "Time", "ms"), ("running", "Num Running", ""), ("waiting", "Num Waiting", ""), ("kv_used", "Cache Utilization", "1"), ("prompt_tokens_per_s", "Prompt Tokens/Sec", ""), ("generation_tokens_per_s", "Generation Tokens/Sec", "")],
    },
    "process_memory": {
        "ps": [("name", "COMMAND", ""), ("bytes", "RSS (KiB)", "KiB")],
        "agent": [("t", "collected_at", "iso"), ("name", "process_name", ""), ("bytes", "memory_rss_bytes", "B")],
        "person": [("name", "Process", ""), ("bytes", "Resident memory", "GiB+"), ("t", "When", "iso")],
    },
    "cluster_event": {
        "describe": [("type", "Type", ""), ("reason", "Reason", ""), ("age_s", "Age", "age"), ("object", "Object", ""), ("message", "Message", "")],
        "export": [("age_s", "last seen", "age"), ("type", "severity", ""), ("reason", "event_reason", ""), ("object", "involved_object", ""), ("count", "times", ""), ("message", "description", "")],
    },
}  # fmt: skip


def cell(column: str, value: Any, unit: str) -> Any:
    """A value as its column wants it, KiB and cells in GiB too."""
    if value is not None and unit == "KiB":
        return round(value / 1024)
    return forms.cell(column, value, unit)


def spoken(source: Source, names: Sequence[tuple[str, str, str]]) -> tuple[list[str], list[list[Any]], list[str]]:
    """Header, rows and columns of a source; columns that are never told are left out."""
    kept = [entry for entry in names if any(row.get(entry[0]) is not None for row in source.rows)]
    rows = [[cell(column, row.get(column), unit) for column, _, unit in kept] for row in source.rows]
    return [name for _, name, _ in kept], rows, [column for column, _, _ in kept]


# ---- other forms of a table

_text = forms._text
_objects = forms._objects


def _hits(header: list[str], rows: list[list[Any]]) -> str:
    hits = [{"_index": "llm-000001", "_id": str(n), "_score": None, "_source": entry} for n, entry in enumerate(_objects(header, rows))]  # fmt: skip
    return json.dumps({"took": 3, "timed_out": False, "hits": {"total": {"value": len(hits)}, "hits": hits}})


def _frames(header: list[str], rows: list[list[Any]]) -> str:
    fields = [{"name": name, "type": "string" if any(isinstance(row[at], str) for row in rows) else "number"} for at, name in enumerate(header)]  # fmt: skip
    values = [[row[at] for row in rows] for at in range(len(header))]
    return json.dumps({"results": {"A": {"status": 200, "frames": [{"schema": {"refId": "A", "fields": fields}, "data": {"values": values}}]}}})  # fmt: skip


def _expanded(header: list[str], rows: list[list[Any]]) -> str:
    """psql with `\\x`: a block for each record."""
    width = max(map(len, header))
    return "".join(
        f"-[ RECORD {n} ]{'-' * 20}\n"
        + "".join(f"{name.ljust(width)} | {_text(value)}\n" for name, value in zip(header, row, strict=True))
        for n, row in enumerate(rows, 1)
    )


def _vertical(header: list[str], rows: list[list[Any]]) -> str:
    """mysql with `\\G`."""
    width = max(map(len, header))
    return "".join(
        f"*************************** {n}. row ***************************\n"
        + "".join(f"{name.rjust(width)}: {_text(value) or 'NULL'}\n" for name, value in zip(header, row, strict=True))
        for n, row in enumerate(rows, 1)
    )


def _pandas(header: list[str], rows: list[list[Any]]) -> str:
    """`print(frame)`: right-aligned, two blanks between columns, a nameless index."""
    cells = [[str(n), *("NaN" if value is None else _text(value) for value in row)] for n, row in enumerate(rows)]
    widths = [max(len(line[at]) for line in [["", *header], *cells]) for at in range(len(header) + 1)]
    return "".join("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)) + "\n" for line in [["", *header], *cells])  # fmt: skip


def _web_table(header: list[str], rows: list[list[Any]]) -> str:
    line = lambda tag, cells: "<tr>" + "".join(f"<{tag}>{html.escape(_text(c))}</{tag}>" for c in cells) + "</tr>\n"  # noqa: E731
    return "<table>\n<thead>\n" + line("th", header) + "</thead>\n<tbody>\n" + "".join(line("td", row) for row in rows) + "</tbody>\n</table>\n"  # fmt: skip


def _toml(header: list[str], rows: list[list[Any]]) -> str:
    out = ['title = "collected by the node agent"\n']
    for row in rows:
        pairs = (f"{json.dumps(name)} = {json.dumps(value)}\n" for name, value in zip(header, row, strict=True) if value is not None)  # fmt: skip
        out.append("\n[[sample]]\n" + "".join(pairs))
    return "".join(out)


def _quoted(header: list[str], rows: list[list[Any]]) -> str:
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows([header, *([_text(value) for value in row] for row in rows)])
    return "\ufeff" + out.getvalue()


def _fenced(header: list[str], rows: list[list[Any]]) -> str:
    return "This is what I see on the node:\n\n```csv\n" + forms.FORMS["comma"](header, rows) + "```\n\nThanks!\n"


def _logged(header: list[str], rows: list[list[Any]]) -> str:
    """Records as JSON behind a stamp, a level and a logger's name."""
    return "".join(
        f"2026-11-20 20:04:51,{n % 1000:03d} INFO collector.sink: {json.dumps(entry)}\n"
        for n, entry in enumerate(_objects(header, rows))
    )


def _prefixed(header: list[str], rows: list[list[Any]]) -> str:
    lines = forms.FORMS["comma"](header, rows).splitlines()
    return "".join(f"[pod/node-agent-x7/collector] {line}\n" for line in lines)


def _deep(header: list[str], rows: list[list[Any]]) -> str:
    return json.dumps([{"meta": {"agent": "1.2", "host": "n7"}, "payload": {"data": entry}} for entry in _objects(header, rows)])  # fmt: skip


def _shuffled(header: list[str], rows: list[list[Any]]) -> str:
    """The columns the other way round, others between them that say nothing here."""
    names = [*reversed(header), "driver_version", "hostname", "temperature_c"]
    return forms.FORMS["tab"](names, [[*reversed(row), "570.86", "node-7", 61] for row in rows])


def _cut(write: Form, keep: float = 0.6) -> Form:
    def form(header: list[str], rows: list[list[Any]]) -> str:
        whole = write(header, rows)
        return whole[: max(int(len(whole) * keep), whole.find("\n") + 1)]

    return form


_KEYS = frozenset(name for ways in OTHER_NAMES.values() for names in ways.values() for column, name, _ in names if column in ("t", "gpu", "pid", "name", "type"))  # fmt: skip


def _long(header: list[str], rows: list[list[Any]]) -> str:
    """A row for each value; when, which device and whose stand before it."""
    stay, rest = [at for at, name in enumerate(header) if name in _KEYS], [at for at, name in enumerate(header) if name not in _KEYS]  # fmt: skip
    lines = [[*(row[at] for at in stay), header[at], row[at]] for row in rows for at in rest if row[at] is not None]
    return forms.FORMS["semicolon"]([*(header[at] for at in stay), "metric", "value"], lines)


OTHER_FORMS: dict[str, Form] = {
    "comma": forms.FORMS["comma"], "markdown": forms.FORMS["markdown"], "json-array": forms.FORMS["json-array"], "json-lines": forms.FORMS["json-lines"],
    "json-columns": forms.FORMS["json-columns"], "yaml": forms.FORMS["yaml"], "long-semicolon": _long,
    "shuffled": _shuffled, "quoted": _quoted, "fenced": _fenced, "prefixed": _prefixed, "pandas": _pandas, "web-table": _web_table, "expanded": _expanded, "vertical": _vertical,
    "hits": _hits, "frames": _frames, "deep": _deep, "toml": _toml, "logged": _logged,
    "cut-comma": _cut(forms.FORMS["comma"]), "cut-json": _cut(forms.FORMS["json-array"]), "cut-lines": _cut(forms.FORMS["json-lines"]), "cut-yaml": _cut(forms.FORMS["yaml"]),
}  # fmt: skip
TABULAR = frozenset(("comma", "markdown", "long-semicolon", "shuffled", "quoted", "fenced", "prefixed", "pandas", "web-table", "cut-comma"))  # fmt: skip
_NOT_FOR: dict[str, tuple[str, ...]] = {
    "request": ("long-semicolon",), "cluster_event": ("long-semicolon", "json-columns", "frames", "pandas"), "process_memory": ("long-semicolon", "json-columns"),
}  # fmt: skip
_FOR_SEVERAL = ("json-columns", "frames", "cut-comma", "cut-json", "cut-lines", "cut-yaml", "json-lines", "logged")


def _kept(source: Source, form: str, header: list[str], rows: list[list[Any]]) -> Source:
    """The rows that are whole in what was left of a cut text."""
    text, whole = OTHER_FORMS[form](header, rows), 0
    for count in range(len(rows), 0, -1):
        part = OTHER_FORMS[form.removeprefix("cut-").replace("json", "json-array") if form == "cut-json" else {"cut-lines": "json-lines"}.get(form, form.removeprefix("cut-"))](header, rows[:count]).rstrip("]\n ")  # fmt: skip
        if text.startswith(part):
            whole = count
            break
    return source._replace(rows=source.rows[:whole])


# ---- series of an exporter, with their labels


def _label_pairs(labels: str | None) -> dict[str, str]:
    return dict(re.findall(r'([A-Za-z_]\w*)="([^"]*)"', labels or ""))


def _series(rows: Sequence[Row]) -> list[tuple[str, dict[str, str], float, float]]:
    return [(row["name"], _label_pairs(row["labels"]), row["t"] if row["t"] is not None else 1795205091.0, float(row["value"])) for row in rows]  # fmt: skip


def _by_series(rows: Sequence[Row]) -> list[tuple[dict[str, str], list[tuple[float, float]]]]:
    found: dict[str, tuple[dict[str, str], list[tuple[float, float]]]] = {}
    for name, labels, t, value in _series(rows):
        whole = {"__name__": name, **labels}
        found.setdefault(json.dumps(whole), (whole, []))[1].append((t, value))
    return list(found.values())


def _openmetrics(rows: Sequence[Row]) -> str:
    def line(name: str, labels: dict[str, str], t: float, value: float) -> str:
        shown = ",".join(f'{key}="{label}"' for key, label in labels.items())
        return name + ("{" + shown + "}" if shown else "") + f" {value!r} {round(t, 3)}\n"

    return "".join(line(*entry) for entry in _series(rows)) + "# EOF\n"


def _rows_of(name: str) -> Callable[[Sequence[Row]], str]:
    def write(rows: Sequence[Row]) -> str:
        labels = list(dict.fromkeys(key for _, found, _, _ in _series(rows) for key in found))
        header = ["timestamp", "name", *labels, "value"]
        return OTHER_FORMS[name](header, [[forms.moment(t, "iso"), metric, *(found.get(key) for key in labels), value] for metric, found, t, value in _series(rows)])  # fmt: skip

    return write


SERIES_FORMS: dict[str, Callable[[Sequence[Row]], str]] = {
    "openmetrics": _openmetrics,
    "query": lambda rows: json.dumps({"status": "success", "data": {"resultType": "vector", "result": [{"metric": whole, "value": [values[0][0], str(values[0][1])]} for whole, values in _by_series(rows)]}}),
    "query-range": lambda rows: json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [{"metric": whole, "values": [[t, str(v)] for t, v in values]} for whole, values in _by_series(rows)]}}),
    "victoria": lambda rows: "".join(json.dumps({"metric": whole, "values": [v for _, v in values], "timestamps": [round(t * 1000) for t, _ in values]}) + "\n" for whole, values in _by_series(rows)),
    "telegraf": lambda rows: "".join(json.dumps({"name": name, "tags": labels, "fields": {"gauge": v}, "timestamp": round(t)}) + "\n" for name, labels, t, v in _series(rows)),
    "influx": lambda rows: "".join(name + "".join(f",{k}={x.replace(' ', chr(92) + ' ')}" for k, x in labels.items() if x) + f" value={v} {round(t * 1e9)}\n" for name, labels, t, v in _series(rows)),
    "long-csv": _rows_of("comma"), "long-lines": _rows_of("json-lines"), "long-markdown": _rows_of("markdown"),
    "prefixed": lambda rows: "".join(f"[pod/probe/curl] {line}\n" for line in _openmetrics(rows).splitlines()),
    "fenced": lambda rows: "Metrics just before it died:\n\n```\n" + _openmetrics(rows) + "```\n",
    "cut": lambda rows: _openmetrics(rows).rsplit("\n", 3)[0][:-1],
}  # fmt: skip


def _series_score(rows: Sequence[Row], form: str) -> forms.Score:
    text = SERIES_FORMS[form](rows)
    if form == "query":
        rows = [row for n, row in enumerate(rows) if (row["name"], row["labels"]) not in {(r["name"], r["labels"]) for r in rows[:n]}]  # fmt: skip
    elif form == "cut":
        rows = rows[:-3]
    _, found = forms.read("evidence.txt", text.encode())
    key = lambda row: (row["name"], forms._rounded("value", float(row["value"])), tuple(sorted(k for k, v in _label_pairs(row["labels"]).items() if v and k in ("engine", "le", "model_name"))))  # noqa: E731  # fmt: skip
    wanted, again = Counter(map(key, rows)), Counter(map(key, found.get("metric", ())))
    odd = set(found) - {"metric", "column_reading", "problem", "lookalike", "engine_flag", "engine_figure", "note", "gpu_sample", "gpu_device", "host_event"}  # fmt: skip
    return forms.Score(sum(wanted.values()), sum((wanted & again).values()), tuple(sorted(odd)), len(found.get("problem", ())))  # fmt: skip


# ---- other shapes of a text


class Wrapped(NamedTuple):
    """A text in another shape, and the number of its lines that are told whole; None = all."""

    text: str
    lines: int | None = None


def _width(text: str, most: int = 120) -> str:
    """Hard line breaks, as a ticket or a terminal that was copied has them."""
    return "".join("\n".join(line[at : at + most] for at in range(0, max(len(line), 1), most)) + "\n" for line in text.splitlines())  # fmt: skip


def _truncated(text: str) -> Wrapped:
    lines = text.splitlines(keepends=True)
    keep = max(1, len(lines) * 7 // 10)
    return Wrapped("".join(lines[:keep]) + ("".join(lines[keep : keep + 1])[:9].rstrip("\n")), keep)


def _each(begin: str) -> Callable[[str], Wrapped]:
    return lambda text: Wrapped("".join(f"{begin}{line}\n" for line in text.splitlines()))


TEXT_FORMS: dict[str, Callable[[str], Wrapped]] = {
    "pod-prefix": _each("[pod/llm-0/server] "), "host-prefix": _each("node-7 | "), "quoted": _each("> "), "indented": _each("    "),
    "fenced": lambda text: Wrapped("Here is the whole output:\n\n```\n" + text.rstrip("\n") + "\n```\n"),
    "crlf": lambda text: Wrapped("".join(line + "\r\n" for line in text.splitlines())),
    "mark": lambda text: Wrapped("\ufeff" + text),
    "section": lambda text: Wrapped("==> /var/log/output <==\n" + text),
    "json-messages": lambda text: Wrapped("".join(json.dumps({"message": line, "host": "node-7"}) + "\n" for line in text.splitlines())),
    "json-string": lambda text: Wrapped(json.dumps({"host": "node-7", "output": text}, indent=1)),
    "yaml-block": lambda text: Wrapped("host: node-7\noutput: |\n" + "".join(f"  {line}\n" if line else "\n" for line in text.splitlines())),
    "one-line": lambda text: Wrapped(text.rstrip("\n").replace("\n", "\\n") + "\n"),
    "width-120": lambda text: Wrapped(_width(text)),
    "web-page": lambda text: Wrapped("<html><body><pre>\n" + html.escape(text) + "</pre></body></html>\n"),
    "truncated": _truncated,
}  # fmt: skip
GROUPS = {
    "gpu_sample": "samples of GPUs", "gpu_process": "processes", "request": "requests", "engine_stat": "statistics", "process_memory": "memory",
    "metric": "metrics", "cluster_event": "events", "vllm-log": "logs", "kernel-log": "kernel log", "launch": "launch", "kubernetes": "events",
    "metrics": "metrics", "memory-summary": "memory", "cgroup": "memory group", "nvidia-smi": "samples of GPUs", "request-log": "requests", "table": "tables",
}  # fmt: skip
_TEXT_ONLY = frozenset(("vllm-log", "kernel-log", "launch", "kubernetes", "metrics", "memory-summary", "memory-group", "cgroup", "nvidia-smi", "notes", "table"))  # fmt: skip
_ASIDE = frozenset(("column_reading", "problem", "lookalike"))
_NO_CELLS = frozenset(("line", "source", "text", "meaning"))


def _all_cells(tables: dict[str, list[Row]], lines: int | None = None) -> Counter[Any]:
    """Every cell of every table but where it stands and its wording."""
    return Counter(
        (table, column, forms._rounded(column, value))
        for table, rows in tables.items() if table not in _ASIDE
        for row in rows if lines is None or (row.get("line") or 0) <= lines
        for column, value in row.items() if column not in _NO_CELLS and value is not None and value == value
    )  # fmt: skip


def of_texts(path: str, data: bytes, only: Sequence[str] = ()) -> Iterator[tuple[str, str, str, forms.Score]]:
    """A text in every other shape: (group, form, kind, score)."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    kind, before = forms.read(path, data)
    if kind not in _TEXT_ONLY or text.lstrip()[:1] in ("{", "["):
        return
    for name, shape in TEXT_FORMS.items():
        if only and name not in only:
            continue
        shaped = shape(text)
        wanted = _all_cells(before, shaped.lines)
        _, found = forms.read(path, shaped.text.encode())
        again = _all_cells(found)
        odd = tuple(sorted({table for table in found if found[table] and table not in before} - _ASIDE - {"note"}))
        yield GROUPS.get(kind, kind), name, kind, forms.Score(sum(wanted.values()), sum((wanted & again).values()), odd, len(found.get("problem", ())))  # fmt: skip


def of_tables(path: str, data: bytes, ways: int = 1) -> Iterator[tuple[str, str, str, forms.Score]]:
    """Every table of a source in every form, each in so many ways of speaking: (group, form, way, score)."""
    _, tables = forms.read(path, data)
    for source in forms.told(tables):
        if source.name == "metric":
            rows = [row for row in source.rows if row["labels"] != "delta"]
            for form in SERIES_FORMS if len(rows) > 3 else ():
                yield "metrics", form, "series", _series_score(rows, form)
            continue
        speaking = list(OTHER_NAMES[source.name].items())
        for number, (form, write) in enumerate(OTHER_FORMS.items()):
            if form in _NOT_FOR.get(source.name, ()) or (len(source.rows) < 3 and form in _FOR_SEVERAL):
                continue
            for turn in range(ways):
                way, names = speaking[(number + turn + number // len(speaking)) % len(speaking)]
                header, rows_, columns = spoken(source, names)
                if len(columns) < 3:
                    continue
                kept = _kept(source, form, header, rows_) if form.startswith("cut-") else source
                yield GROUPS[source.name], form, way, forms.score(kept, columns, write(header, rows_))


# ---- a table as it is, names and cells, in other forms: whatever it is read as


SHEET_FORMS: dict[str, Form] = {
    "comma": forms.FORMS["comma"], "semicolon": forms.FORMS["semicolon"], "tab": forms.FORMS["tab"], "markdown": forms.FORMS["markdown"], "boxed": forms.FORMS["boxed"],
    "aligned": forms.FORMS["aligned"], "quoted": _quoted, "fenced": _fenced, "prefixed": _prefixed, "web-table": _web_table, "json-array": forms.FORMS["json-array"],
    "json-lines": forms.FORMS["json-lines"], "yaml": forms.FORMS["yaml"], "hits": _hits,
}  # fmt: skip


def sheet(text: str) -> tuple[list[str], list[list[str]]] | None:
    """Header and rows of a text that is one table behind commas, semicolons, tabs or bars; None for another text."""
    lines = [
        line for line in text.lstrip("\ufeff").splitlines() if line.strip() and not re.fullmatch(r"[\s|:+-]+", line)
    ]
    if len(lines) < 3 or lines[0].lstrip()[:1] in ("{", "[", "<", "#"):
        return None
    for cut in ("|", "\t", ";", ","):
        rows = [[cell.strip() for cell in (line.strip().strip("|").split("|") if cut == "|" else next(csv.reader([line], delimiter=cut)))] for line in lines]  # fmt: skip
        if len(rows[0]) > 1 and len({len(row) for row in rows}) == 1 and len(set(rows[0])) == len(rows[0]) and all(re.match(r"[^\W\d]", name) for name in rows[0]):  # fmt: skip
            return rows[0], rows[1:]
    return None


def of_sheets(path: str, data: bytes) -> Iterator[tuple[str, str, str, forms.Score]]:
    """A source that is one table, in every other form: (tables that it fills, form, kind, score)."""
    try:
        found = sheet(data.decode())
    except UnicodeDecodeError:
        return
    if found is None:
        return
    header, rows = found
    kind, before = forms.read(path, data)
    wanted = _all_cells(before)
    if not wanted or len(rows) > 500:
        return
    group = "+".join(sorted({table for table, _, _ in wanted}))
    blank: list[list[Any]] = [[cell or None for cell in row] for row in rows]
    for name, write in SHEET_FORMS.items():
        _, again_ = forms.read("evidence.txt", write(header, blank).encode())
        again = _all_cells(again_)
        odd = tuple(sorted({table for table in again_ if again_[table] and table not in before} - _ASIDE - {"note"}))
        yield group, name, kind, forms.Score(sum(wanted.values()), sum((wanted & again).values()), odd, len(again_.get("problem", ())))  # fmt: skip


# ---- by hand, over any folder of cases


def evidence(cases: Path, every: int = 1, first: int = 0) -> Iterator[Path]:
    """The files of each N-th case."""
    for folder in sorted(path for path in cases.iterdir() if path.is_dir())[first::every]:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.name != "case.toml" and not path.name.startswith("truth.") and path.suffix not in (".gz", ".xz", ".zst", ".zip", ".tar"):  # fmt: skip
                yield path


def main(argv: list[str]) -> int:
    """Shares by group, form and way over the cases of a folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", type=Path)
    parser.add_argument("--every", type=int, default=1, help="each N-th case only")
    parser.add_argument("--first", type=int, default=0, help="the place of the first case")
    parser.add_argument("--ways", type=int, default=1)
    parser.add_argument("--what", choices=("tables", "texts", "sheets", "all"), default="all")
    parser.add_argument("--show", type=float, default=0.0, help="print pairs whose share is below this")
    chosen = parser.parse_args(argv)
    by: dict[str, Counter[str]] = {}
    misread: Counter[str] = Counter()
    for path in evidence(chosen.cases, chosen.every, chosen.first):
        data = path.read_bytes()[: 1 << 20]
        pairs: list[tuple[str, tuple[str, str, str, forms.Score]]] = []
        if chosen.what in ("sheets", "all"):
            pairs += [("sheet", pair) for pair in of_sheets(str(path), data)]
        if chosen.what in ("tables", "all"):
            pairs += [("table", pair) for pair in of_tables(str(path), data, chosen.ways)]
        if chosen.what in ("texts", "all"):
            pairs += [("text", pair) for pair in of_texts(str(path), data)]
        for what, (group, form, way, one) in pairs:
            kind = "sheets" if what == "sheet" else "tables" if what == "table" and form in TABULAR else "documents" if what == "table" else "texts"  # fmt: skip
            for key in ("all", kind, f"{what} group {group}", f"{what} form {form}", f"{what} way {group} {way}"):
                counter = by.setdefault(key, Counter())
                counter.update(cells=one.cells, back=one.back, pairs=1)
            for other in one.misread:
                misread[f"{group} as {other} ({form})"] += 1
            if one.cells and one.back < chosen.show * one.cells:
                print(f"{path.parent.name}/{path.name} {group} {form} {way}: {one.back} of {one.cells}, {one.problems} problems, {one.misread}")  # fmt: skip
    for key, counter in sorted(by.items()):
        print(f"{key:46} {counter['back'] / max(1, counter['cells']):.3f} of {counter['cells']:7} cells in {counter['pairs']} pairs")  # fmt: skip
    print("misread:", dict(misread) or "nothing")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
