"""The same quantities in another form: renamed, in other units, behind another delimiter, nested, long, as a document.

What a source tells is read once as it is; its rows are then written down again as other tools and people would, and read
again. What counts is the share of cells that come back with their value, and that none comes back as something else.
`python tests/forms.py FOLDER` does it for every case below a folder and prints the shares; `--every N` takes each N-th pair.

Names and units here are written from what tools print, not from the vocabulary of the package.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import io
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from oomdoc import ingest
from oomdoc.intake.scan import chunks
from oomdoc.intake.unwrap import unwrap

MIB, GIB = 1 << 20, 1 << 30
ROWS = 40  # of one table that are written again
Row = dict[str, Any]


class Source(NamedTuple):
    """A table that a source told: its name, its rows."""

    name: str
    rows: list[Row]


# ---- what a source tells


def read(path: str, data: bytes) -> tuple[str, dict[str, list[Row]]]:
    """The kind of a source, and its rows by table."""
    parts = list(unwrap(chunks(io.BytesIO(data)), lambda _: None))
    if not parts:
        return "empty", {}
    ingestor, kind = ingest.recognise(ingest.make_head(path, parts[0].data))
    found: dict[str, list[Row]] = {}
    for batch in ingest.read(ingestor, path, parts):
        columns = {name: _plain(values) for name, values in batch.columns.items()}
        found.setdefault(batch.table, []).extend(
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        )
    return kind, found


def _plain(values: Any) -> list[Any]:
    if isinstance(values, list):
        return values
    return [None if value is None else value for value in values.tolist()]


def told(tables: Mapping[str, list[Row]]) -> Iterator[Source]:
    """The tables that are written again. Cards give their names to the samples."""
    names = {row["gpu"]: row["name"] for row in tables.get("gpu_device", ()) if row["name"] and not row["mig_profile"]}
    for name in ("gpu_sample", "gpu_process", "request", "engine_stat", "cluster_event"):
        rows = [dict(row) for row in tables.get(name, ())][:ROWS]
        if name == "gpu_sample":
            rows = [{**row, "name": names.get(row["gpu"])} for row in rows if row["used_bytes"] is not None]
        elif name == "gpu_process":
            rows = [row for row in rows if row["used_bytes"] is not None and row["gpu"] is not None]
        elif name == "engine_stat":
            rows = [row for row in rows if row["kv_used"] is not None]
        if len(rows) >= (1 if name in ("gpu_sample", "gpu_process", "cluster_event") else 3):
            yield Source(name, rows)
    resident = [
        row
        for row in tables.get("process_memory", ())
        if row["resource"] == "host" and row["name"] and not row["state"]
    ]
    if resident:
        yield Source("process_memory", resident[:ROWS])
    metrics = [row for row in tables.get("metric", ()) if row["name"].startswith("vllm:") and row["labels"] != "delta"]
    if metrics:
        yield Source("metric", metrics[: 3 * ROWS])


# ---- how columns are called: (column, name, unit), a set for each way of speaking

NAMES: dict[str, list[list[tuple[str, str, str]]]] = {
    "gpu_sample": [
        [("t", "timestamp", "slash"), ("gpu", "index", ""), ("name", "name", ""), ("used_bytes", "memory.used [MiB]", "MiB+"), ("total_bytes", "memory.total [MiB]", "MiB+"), ("gpu_util", "utilization.gpu [%]", "%+"), ("memory_util", "utilization.memory [%]", "%+")],
        [("t", "ts", "epoch"), ("gpu", "gpu", ""), ("used_bytes", "mem_used_mib", "MiB"), ("total_bytes", "mem_total_mib", "MiB"), ("gpu_util", "gpu_util", "%"), ("memory_util", "mem_util", "%")],
        [("gpu", "GPU", ""), ("t", "Time", "iso"), ("used_bytes", "VRAM used (GiB)", "GiB"), ("total_bytes", "VRAM total (GiB)", "GiB"), ("gpu_util", "GPU load %", "%"), ("name", "Product Name", "")],
        [("t", "datetime", "iso"), ("gpu", "device", "cuda"), ("name", "model", ""), ("used_bytes", "fb_used", "MiB"), ("total_bytes", "fb_total", "MiB"), ("gpu_util", "util", "%"), ("memory_util", "mem_copy_util", "%")],
        [("t", "time_ms", "ms"), ("gpu", "gpu_id", ""), ("used_bytes", "memoryUsedBytes", "B"), ("total_bytes", "memoryTotalBytes", "B"), ("gpu_util", "gpuUtilization", "1"), ("memory_util", "memoryUtilization", "1")],
        [("total_bytes", "vram_capacity_mb", "MiB"), ("used_bytes", "used_vram_mb", "MiB"), ("gpu_util", "gpu_busy_pct", "%"), ("gpu", "card", ""), ("t", "sampled_at", "iso")],
    ],
    "gpu_process": [
        [("t", "timestamp", "slash"), ("gpu", "gpu", ""), ("pid", "pid", ""), ("name", "process_name", ""), ("used_bytes", "used_gpu_memory [MiB]", "MiB+")],
        [("gpu", "gpu_index", ""), ("pid", "PID", ""), ("name", "command", ""), ("used_bytes", "vram_mib", "MiB")],
        [("pid", "process_id", ""), ("name", "process", ""), ("gpu", "gpu_id", ""), ("used_bytes", "gpu_mem_gib", "GiB"), ("t", "time", "iso")],
        [("t", "ts", "epoch"), ("gpu", "device", ""), ("pid", "pid", ""), ("used_bytes", "usedGpuMemoryBytes", "B"), ("name", "program", "")],
    ],
    "request": [
        [("t", "timestamp", "iso"), ("model", "model", ""), ("tenant", "tenant", ""), ("input_tokens", "prompt_tokens", ""), ("output_tokens", "completion_tokens", ""), ("cached_tokens", "cached_tokens", ""), ("max_tokens", "max_tokens", ""), ("latency_s", "latency_ms", "ms"), ("ttft_s", "ttft_ms", "ms"), ("status", "status", "")],
        [("t", "ts", "epoch"), ("model", "model_name", ""), ("input_tokens", "in_tok", ""), ("output_tokens", "out_tok", ""), ("cached_tokens", "cached_tok", ""), ("max_tokens", "max_tok", ""), ("latency_s", "took_s", "s"), ("ttft_s", "ttft_s", "s"), ("status", "http_code", "")],
        [("status", "code", ""), ("t", "start_time", "iso"), ("input_tokens", "n_prompt", ""), ("output_tokens", "generated", ""), ("latency_s", "duration_ms", "ms"), ("ttft_s", "first_token_ms", "ms"), ("model", "served_model", "")],
        [("t", "time", "ms"), ("model", "model_id", ""), ("tenant", "team", ""), ("input_tokens", "input_length", ""), ("output_tokens", "output_length", ""), ("cached_tokens", "cache_hit_tokens", ""), ("max_tokens", "limit_tokens", ""), ("latency_s", "elapsed_s", "s"), ("ttft_s", "time_to_first_token_s", "s"), ("status", "status_code", "")],
        [("t", "arrival_time", "epoch"), ("tenant", "customer", ""), ("input_tokens", "usage.prompt_tokens", ""), ("output_tokens", "usage.completion_tokens", ""), ("max_tokens", "max_completion_tokens", ""), ("latency_s", "e2e_latency_s", "s"), ("status", "response_code", "")],
        [("t", "created_at", "iso"), ("input_tokens", "promptTokens", ""), ("output_tokens", "completionTokens", ""), ("latency_s", "latencyMs", "ms"), ("ttft_s", "ttftMs", "ms"), ("status", "httpStatus", "")],
    ],
    "engine_stat": [
        [("t", "time", "iso"), ("running", "running", ""), ("waiting", "waiting", ""), ("kv_used", "kv_usage", "1"), ("prompt_tokens_per_s", "prompt_tps", ""), ("generation_tokens_per_s", "gen_tps", ""), ("prefix_hit_rate", "prefix_hit_rate", "1")],
        [("t", "ts", "epoch"), ("running", "running_reqs", ""), ("waiting", "queue_depth", ""), ("kv_used", "KV cache usage (%)", "%"), ("prompt_tokens_per_s", "prompt throughput (tok/s)", ""), ("generation_tokens_per_s", "generation throughput (tok/s)", "")],
        [("waiting", "pending", ""), ("t", "timestamp", "iso"), ("running", "requests_running", ""), ("kv_used", "kv_cache_used_pct", "%"), ("prompt_tokens_per_s", "prompt_tokens_per_s", ""), ("generation_tokens_per_s", "generation_tokens_per_s", "")],
        [("t", "datetime", "slash"), ("running", "active_requests", ""), ("waiting", "queued_requests", ""), ("kv_used", "gpu_kv_cache_usage", "%+"), ("prefix_hit_rate", "prefix_cache_hit_rate", "%+")],
    ],
    "process_memory": [
        [("t", "timestamp", "iso"), ("name", "process", ""), ("bytes", "rss_bytes", "B")],
        [("t", "ts", "epoch"), ("name", "command", ""), ("bytes", "rss_mib", "MiB")],
        [("name", "name", ""), ("bytes", "resident_gib", "GiB"), ("t", "time", "iso")],
    ],
    "cluster_event": [
        [("age_s", "LAST SEEN", "age"), ("type", "TYPE", ""), ("reason", "REASON", ""), ("object", "OBJECT", ""), ("message", "MESSAGE", "")],
        [("type", "type", ""), ("reason", "reason", ""), ("object", "involvedObject", ""), ("count", "count", ""), ("message", "message", "")],
    ],
}  # fmt: skip


def moment(t: float, how: str) -> Any:
    """A time in one of the ways in which tools print it."""
    at = dt.datetime.fromtimestamp(round(t, 3), dt.UTC)
    if how == "epoch":
        return round(t, 3)
    if how == "ms":
        return round(t * 1000)
    if how == "slash":
        return at.strftime("%Y/%m/%d %H:%M:%S.") + f"{at.microsecond // 1000:03d}"
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


def cell(column: str, value: Any, unit: str) -> Any:
    """A value as the unit of its column wants it; `+` writes the unit into the cell."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if column == "t":
        return moment(value, unit)
    behind = unit.endswith("+")
    bare = unit.rstrip("+")
    if bare in ("MiB", "GiB", "B"):
        number = value / {"MiB": MIB, "GiB": GIB, "B": 1}[bare]
        number = round(number, 6) if bare == "GiB" else round(number)
        return f"{number} {bare}" if behind else number
    if bare == "%":
        number = round(value * 100, 4)
        number = int(number) if number == int(number) else number
        return f"{number} %" if behind else number
    if bare == "ms":
        return round(value * 1000, 3)
    if bare == "s":
        return round(value, 6)
    if bare == "age":
        return f"{int(value)}s"
    if unit == "cuda":
        return f"cuda:{value}"
    return value


def spoken(source: Source, way: int) -> tuple[list[str], list[list[Any]], list[str]] | None:
    """Header, rows and columns of a source in one way of speaking; columns that are never told are left out."""
    if source.name == "metric":
        prefix = ("vllm:", "vllm_")[way % 2]
        names = list(dict.fromkeys(row["name"] for row in source.rows))
        moments = list(dict.fromkeys(row["t"] for row in source.rows))
        first: dict[tuple[Any, str], Any] = {}
        for row in source.rows:
            first.setdefault((row["t"], row["name"]), row["value"])
        timed = any(t is not None for t in moments)
        header = (["timestamp"] if timed else []) + [prefix + name.removeprefix("vllm:") for name in names]
        rows = [([moment(t, "iso")] if timed and t is not None else [None] if timed else []) + [first.get((t, name)) for name in names] for t in moments]  # fmt: skip
        return header, rows, (["t"] if timed else []) + names
    names_of = NAMES[source.name][way % len(NAMES[source.name])]
    kept = [
        (column, name, unit)
        for column, name, unit in names_of
        if any(row.get(column) is not None for row in source.rows)
    ]
    rows = [[cell(column, row.get(column), unit) for column, _, unit in kept] for row in source.rows]
    return [name for _, name, _ in kept], rows, [column for column, _, _ in kept]


# ---- forms of a table

Form = Callable[[list[str], list[list[Any]]], str]


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _delimited(delimiter: str) -> Form:
    def form(header: list[str], rows: list[list[Any]]) -> str:
        out = io.StringIO()
        writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([[_text(value) for value in row] for row in rows])
        return out.getvalue()

    return form


def _markdown(header: list[str], rows: list[list[Any]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(map(_text, row)) + " |" for row in rows)]) + "\n"


def _widths(header: list[str], rows: list[list[Any]]) -> list[int]:
    return [max(len(header[at]), *(len(_text(row[at]) or "-") for row in rows)) for at in range(len(header))]


def _boxed(header: list[str], rows: list[list[Any]]) -> str:
    widths = _widths(header, rows)
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    line = lambda cells: "| " + " | ".join(_text(c).ljust(w) for c, w in zip(cells, widths, strict=True)) + " |"  # noqa: E731
    return "\n".join([rule, line(header), rule, *map(line, rows), rule]) + "\n"


def _aligned(header: list[str], rows: list[list[Any]]) -> str:
    widths = _widths(header, rows)
    line = lambda cells: "  ".join((_text(c) or "-").ljust(w) for c, w in zip(cells, widths, strict=True)).rstrip()  # noqa: E731
    return "\n".join([line(header), *map(line, rows)]) + "\n"


def _objects(header: list[str], rows: list[list[Any]]) -> list[Row]:
    return [dict(zip(header, row, strict=True)) for row in rows]


def _nested(header: list[str], rows: list[list[Any]]) -> str:
    """Objects below the words of a name: `memory.used [MiB]` has `memory: {used: ...}`."""
    entries = []
    for row in rows:
        entry: Row = {}
        for name, value in zip(header, row, strict=True):
            plain, _, rest = name.partition(".")
            if rest and " " not in plain:
                at = entry.setdefault(plain, {})
                at[rest] = value
            else:
                entry[name] = value
        entries.append(entry)
    return json.dumps({"tool": "collector", "version": "1.2", "result": {"samples": entries}}, indent=1)


def _yaml(header: list[str], rows: list[list[Any]]) -> str:
    lines = ["collected_by: node-agent", "samples:"]
    for row in rows:
        for at, (name, value) in enumerate(zip(header, row, strict=True)):
            lead = "  - " if at == 0 else "    "
            lines.append(
                f"{lead}{json.dumps(name)}: {json.dumps(value) if isinstance(value, str) or value is None else value}"
            )
    return "\n".join(lines) + "\n"


def _blocks(header: list[str], rows: list[list[Any]]) -> str:
    return "\n".join(
        "".join(f"{name}: {_text(value) or 'N/A'}\n" for name, value in zip(header, row, strict=True)) for row in rows
    )


def _pairs(header: list[str], rows: list[list[Any]]) -> str:
    """logfmt: names without blanks, texts with blanks in quotes."""
    lines = []
    for row in rows:
        parts = []
        for name, value in zip(header, row, strict=True):
            if value is not None:
                plain = (
                    name.replace(" [", "_")
                    .replace("]", "")
                    .replace(" (", "_")
                    .replace(")", "")
                    .replace(" ", "_")
                    .replace("/", "_per_")
                )
                text = _text(value)
                parts.append(f'{plain}="{text}"' if " " in text else f"{plain}={text}")
        lines.append(" ".join(parts))
    return "\n".join(lines) + "\n"


def _long_names(header: list[str]) -> tuple[list[int], list[int]]:
    """Which columns stay (when, whose), which become rows."""
    keys = (
        "time",
        "stamp",
        "ts",
        "date",
        "sampled",
        "created",
        "index",
        "gpu_id",
        "pid",
        "process",
        "command",
        "program",
        "name",
        "model",
        "product",
        "t",
    )
    stay = [at for at, name in enumerate(header) if name.lower() in ("gpu", "card", "device") or any(key == name.lower() or (len(key) > 3 and name.lower().startswith(key)) for key in keys)]  # fmt: skip
    return stay, [at for at in range(len(header)) if at not in stay]


def _long(write: Form) -> Form:
    def form(header: list[str], rows: list[list[Any]]) -> str:
        stay, rest = _long_names(header)
        lines = [[*(row[at] for at in stay), header[at], row[at]] for row in rows for at in rest if row[at] is not None]
        return write([*(header[at] for at in stay), "metric", "value"], lines)

    return form


def _lines(header: list[str], rows: list[list[Any]]) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in _objects(header, rows))


FORMS: dict[str, Form] = {
    "comma": _delimited(","),
    "semicolon": _delimited(";"),
    "tab": _delimited("\t"),
    "bar": _delimited("|"),
    "title": lambda header, rows: "# exported by the node agent, all times UTC\n\n" + _delimited(",")(header, rows),
    "markdown": _markdown,
    "prose": lambda header, rows: "# Findings\n\nHere is what the collector saw on the node before the restart.\n\n" + _markdown(header, rows) + "\nThat is all there is.\n",
    "boxed": _boxed,
    "aligned": _aligned,
    "json-array": lambda header, rows: json.dumps(_objects(header, rows), indent=2),
    "json-lines": _lines,
    "json-columns": lambda header, rows: json.dumps({name: [row[at] for row in rows] for at, name in enumerate(header)}),
    "json-split": lambda header, rows: json.dumps({"columns": header, "data": rows}),
    "json-nested": _nested,
    "yaml": _yaml,
    "blocks": _blocks,
    "pairs": _pairs,
    "long-comma": _long(_delimited(",")),
    "long-lines": _long(_lines),
}  # fmt: skip
_SINGLE_ROW_IS_NONE = ("json-columns", "long-lines", "pairs", "json-lines")
_NOT_FOR: dict[str, tuple[str, ...]] = {
    "request": ("long-comma", "long-lines", "blocks"), "cluster_event": ("long-comma", "long-lines", "pairs", "blocks", "json-columns"),
    "metric": ("blocks", "aligned"), "process_memory": ("json-columns",),
}  # fmt: skip
"""Forms that nobody writes such a table in."""


# ---- what comes back


class Score(NamedTuple):
    """Cells that were written, of them those that came back, rows that came back as something else, columns told missing."""

    cells: int
    back: int
    misread: tuple[str, ...]
    problems: int


def _rounded(column: str, value: Any) -> Any:
    if isinstance(value, float) and not math.isnan(value):
        if column == "t":
            return round(value, 1)
        return float(f"{value:.3g}") if abs(value) < 1e6 else float(f"{value:.4g}")
    if column in ("used_bytes", "total_bytes", "bytes"):
        return float(f"{value:.4g}")
    return value


def _cells(rows: Sequence[Row], columns: Sequence[str]) -> Counter[tuple[str, Any]]:
    return Counter(
        (column, _rounded(column, row[column]))
        for row in rows
        for column in columns
        if row.get(column) is not None and not (isinstance(row[column], float) and math.isnan(row[column]))
    )


_BESIDE = {
    "gpu_sample": {"gpu_device"},
    "metric": {"engine_flag", "engine_figure"},
    "cluster_event": {"host_event", "log_error", "container"},
}


def score(source: Source, columns: Sequence[str], text: str, path: str = "evidence.txt") -> Score:
    """Read a text again, and hold it against its source."""
    _, found = read(path, text.encode())
    if source.name == "metric":
        wanted: Counter[Any] = Counter()
        seen = set()
        for row in source.rows:
            if (row["t"], row["name"]) not in seen and row["name"] in columns:
                seen.add((row["t"], row["name"]))
                wanted[row["name"], _rounded("value", float(row["value"]))] += 1
        again = Counter((row["name"], _rounded("value", float(row["value"]))) for row in found.get("metric", ()))
    else:
        wanted = _cells(source.rows, [column for column in columns if column != "name" or source.name != "gpu_sample"])
        again = _cells(found.get(source.name, ()), list(dict.fromkeys(columns)))
        if source.name == "gpu_sample" and "name" in columns:
            names = {row["name"] for row in source.rows if row.get("name")}
            wanted.update({("name", name): 1 for name in names})
            again.update({("name", name): 1 for name in {row["name"] for row in found.get("gpu_device", ())} & names})
    about = {"column_reading", "problem", "lookalike", "note", source.name} | _BESIDE.get(source.name, set())
    misread = tuple(sorted(set(found) - about))
    return Score(sum(wanted.values()), sum((wanted & again).values()), misread, len(found.get("problem", ())))


def tried(name: str, data: bytes, ways: int = 2) -> Iterator[tuple[str, str, Score]]:
    """Every table of a source in every form, in so many ways of speaking: (table, form, score)."""
    _, tables = read(name, data)
    for source in told(tables):
        for number, (form_name, form) in enumerate(FORMS.items()):
            if form_name in _NOT_FOR.get(source.name, ()):
                continue
            for way in range(ways):
                said = spoken(source, number + way * 3 + (number // 5))
                if said is None or not said[1]:
                    continue
                header, rows, columns = said
                if len(rows) < 2 and form_name in _SINGLE_ROW_IS_NONE:
                    continue
                yield source.name, form_name, score(source, columns, form(header, rows))


def main(argv: list[str]) -> int:
    """Shares by table and form over the cases of a folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", type=Path)
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--every", type=int, default=1, help="each N-th source only")
    parser.add_argument("--ways", type=int, default=1)
    parser.add_argument("--show", type=float, default=0.0, help="print pairs whose share is below this")
    chosen = parser.parse_args(argv)
    by: dict[str, Counter[str]] = {}
    misread: Counter[str] = Counter()
    files = [path for folder in sorted(chosen.cases.iterdir()) if folder.is_dir() and chosen.only in folder.name for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "case.toml" and not path.name.startswith("truth.") and path.suffix not in (".gz", ".xz", ".zst", ".zip", ".tar")]  # fmt: skip
    for path in files[:: chosen.every]:
        for table, form, one in tried(str(path), path.read_bytes()[: 1 << 20], chosen.ways):
            for key in (
                f"table {table}",
                f"form {form}",
                "all",
                "tables" if form not in ("blocks", "pairs", "yaml") and "json" not in form else "documents",
            ):
                counter = by.setdefault(key, Counter())
                counter["cells"] += one.cells
                counter["back"] += one.back
                counter["pairs"] += 1
            for other in one.misread:
                misread[f"{table} as {other} ({form})"] += 1
            if one.cells and one.back < chosen.show * one.cells:
                print(
                    f"{path.parent.name}/{path.name} {table} {form}: {one.back} of {one.cells}, {one.problems} problems, {one.misread}"
                )
    for key, counter in sorted(by.items()):
        print(
            f"{key:32} {counter['back'] / max(1, counter['cells']):.3f} of {counter['cells']:7} cells in {counter['pairs']} pairs"
        )
    print("misread:", dict(misread) or "nothing")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
