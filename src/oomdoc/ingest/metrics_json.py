"""Metrics as JSON: answers of Prometheus' query API, and what Grafana exports of a panel.

    {"status": "success", "data": {"resultType": "matrix", "result": [
      {"metric": {"__name__": "vllm:kv_cache_usage_perc", "engine": "0"}, "values": [[1795205091, "0.42"], [1795205106, "0.97"]]}]}}
    [{"metric": {"__name__": "..."}, "value": [1795205091.5, "3"]}]                          (`promtool query -o json`)
    {"metric": {"__name__": "..."}, "values": [0.42], "timestamps": [1795205091000]}          (VictoriaMetrics, a series a line)
    {"results": {"A": {"frames": [{"schema": {"fields": [{"name": "Time"}, {"name": "Value", "labels": {...}}]},
                                   "data": {"values": [[1795205091000], [0.42]]}}]}}}         (Grafana; times in ms)

Answers may stand behind each other or under names that a collector chose. Rows, and which series are kept, are as in `metrics`;
labels are written as in its text. A series without a name is the result of an expression: nobody can tell of what, so it is a
problem and no row.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from oomdoc.evidence.tables import Batch
from oomdoc.ingest import device_metrics
from oomdoc.ingest.base import Head
from oomdoc.ingest.forms.grammar import RUNNING, column_of
from oomdoc.ingest.json_pieces import ITEM, BrokenError, pieces
from oomdoc.ingest.metrics import CONFIG, YEARS, kept_name, of_process, tell_config, tell_host
from oomdoc.ingest.problems import Capped
from oomdoc.ingest.vocabulary import meanings
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

KIND = "metrics-json"

_FLUSH_ROWS = 20_000
_LABEL_NAME = regex(r"[A-Za-z_][\w.:-]*")
_DISPLAYED = regex(r"([A-Za-z_:][\w:]*)(?:\{(.*)\})?")
_GROWN = regex(
    r"(?:sum\()?(?:increase|delta)\(\s*(?P<name>[A-Za-z_:][\w:]{3,100})(?:\{[^{}]*\})?\[\w+(?::\w*)?\]\s*\)+"
)
"""What a counter grew by at each sample: summed up it is that counter again, from nought; exact where samples are a window apart."""
_LISTS = ((), ("result",), ("results",), ("series",), ("frames",))
"""What a list of series is called; whoever gathers answers keeps them under a name of the kind, or under none."""
_LINE = regex(rb'\s*\{"metric"\s*:\s*\{')
_SHAPES = regex(
    rb'"resultType"\s*:\s*"(?:matrix|vector)"|"vllm:\w+"\s*:\s*\[\s*\{\s*"metric"|"metric"\s*:\s*\{\s*"__name__"\s*:|"frames"\s*:\s*\[\s*\{\s*"schema"\s*:'
)


def matches(head: Head) -> bool:
    """JSON with the keys of an answer of the query API, or of Grafana's frames."""
    if head.data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"["):
        return False
    found = _SHAPES.search(head.data)
    if found and b"frames" in found[0]:  # a frame without names of series is a table of somebody's own
        return b'"labels"' in head.data or b"displayNameFromDS" in head.data
    return bool(found)


class _Answers:
    """The state of one source."""

    def __init__(self) -> None:
        self.rows = Capped()
        self._devices = device_metrics.Devices(by_series=True)
        self._configs: set[str] = set()
        self._processes: list[tuple[int, float, str, float]] = []
        self._load: dict[float, float] = {}
        self._columns: dict[str, list[Any]] = {}
        self.ready = 0
        self.begin()

    def begin(self) -> None:
        """Begin anew after rows were handed on."""
        self._columns = {name: [] for name in ("line", "t", "name", "labels", "value")}
        self.ready = 0

    def value(self, line: int, value: Any, asked: str | None = None, depth: int = 0) -> None:
        """A series, or whatever holds series; `asked` is the series that was asked for, by the query or the key above."""
        if isinstance(value, list) and depth < 8:
            for entry in value:
                self.value(line, entry, asked, depth + 1)
        elif isinstance(value, dict):
            if isinstance(value.get("metric"), dict) and ("values" in value or "value" in value):
                self._series(line, value["metric"], value, asked)
            elif isinstance(value.get("schema"), dict):
                self._frame(line, value)
            elif depth < 8:
                if isinstance(query := value.get("query", value.get("expr")), str):
                    asked = asked_for(query)
                for key, entry in value.items():
                    self.value(line, entry, kept_name(key) or asked, depth + 1)

    def _series(self, line: int, metric: Mapping[str, Any], series: Mapping[str, Any], asked: str | None) -> None:
        labels = {key: label for key, label in metric.items() if isinstance(label, str)}
        name = labels.pop("__name__", None) or asked
        values, times = series.get("values"), series.get("timestamps")
        if name is None:
            if not self._of_load(metric, values):
                self.rows.problem(line, "a series without a name, the result of an expression", _text(labels) or "")
            return
        if isinstance(values, list) and isinstance(times, list):  # as VictoriaMetrics exports
            self._samples(line, name, labels, zip(times, values, strict=False), 1000.0)
            return
        samples = values if isinstance(values, list) else [series.get("value")]
        self._samples(
            line, name, labels, (entry for entry in samples if isinstance(entry, list) and len(entry) == 2), 1.0
        )

    def _of_load(self, metric: Mapping[str, Any], values: Any) -> bool:
        """Take a series that somebody called requests a second, clients or the like: it says when the memory beside it grew without load."""
        if not isinstance(values, list) or not any(column_of(str(label)).role == RUNNING for label in metric.values()):
            return False
        for entry in values:
            try:
                self._load.setdefault(float(entry[0]), float(entry[1]))
            except (TypeError, ValueError, IndexError, OverflowError):
                continue
        return True

    def _frame(self, line: int, frame: Mapping[str, Any]) -> None:
        """A frame of Grafana: a column of times and columns of values, each with the labels of its series."""
        fields = frame["schema"].get("fields")
        data = frame.get("data")
        columns = data.get("values") if isinstance(data, dict) else None
        if (
            not isinstance(fields, list)
            or not isinstance(columns, list)
            or len(columns) < 2
            or not isinstance(columns[0], list)
        ):
            return
        for field, column in zip(fields[1:], columns[1:], strict=False):
            if not isinstance(field, dict) or not isinstance(column, list):
                continue
            found = field.get("labels")
            labels = (
                {key: text for key, text in found.items() if isinstance(text, str)} if isinstance(found, dict) else {}
            )
            config = field.get("config")
            shown = config.get("displayNameFromDS") if isinstance(config, dict) else None
            match = _DISPLAYED.fullmatch(shown) if isinstance(shown, str) else None
            name = labels.pop("__name__", None) or (
                match[1] if match and (match[2] or labels or ":" in match[1]) else None
            )
            if name is None:
                self.rows.problem(line, "a series without a name, the result of an expression", str(shown or "")[:200])
                continue
            self._samples(line, name, labels, zip(columns[0], column, strict=False), 1000.0)

    def _samples(self, line: int, name: str, labels: Mapping[str, str], samples: Iterable[Any], divisor: float) -> None:
        grown = _GROWN.fullmatch(name)
        kept = _kept(grown["name"] if grown else name)
        if kept is None:
            self._replicas(line, name, samples, divisor)
            return
        name = kept
        text = _text(labels)
        found = []
        sum_of = 0.0
        for at, printed in samples:
            try:
                t, value = float(at) / divisor, float(printed)
            except (TypeError, ValueError, OverflowError):
                if printed is not None:
                    self.rows.problem(line, "no sample of a series", f"{name} {at} {printed}"[:200])
                continue
            if math.isfinite(value):
                if grown:
                    value = sum_of = sum_of + max(0.0, value)
                found.append((line, t if YEARS[0] <= t < YEARS[1] else None, name, text, value))
        for column, cells in zip(self._columns.values(), zip(*found, strict=True), strict=False):
            column.extend(cells)
        self.ready += len(found)
        owner = of_process(name, text)
        if owner is not None:
            self._processes += [(line, t, owner, value) for line, t, _, _, value in found if t is not None]
        if found:
            tell_host(self.rows, self._configs, line, name, found[-1][4])
        if name in device_metrics.NAMES:
            self._devices.add(found, self.rows)
        if name in CONFIG and found and text and text not in self._configs and len(self._configs) < 1000:
            self._configs.add(text)
            tell_config(self.rows, line, found[0][1], text)

    def _replicas(self, line: int, name: str, samples: Iterable[Any], divisor: float) -> None:
        """What the cluster counts of replicas, as a statement of the scaler wherever it changes."""
        column = next((match.quantity.column for match in meanings(name) if match.strong and match.quantity.table == "scaler" and match.quantity.kind == "count"), None) if name.startswith("kube_") else None  # fmt: skip
        before = None
        for at, printed in samples if column else ():
            try:
                t, count = float(at) / divisor, int(float(printed))
            except (TypeError, ValueError, OverflowError):
                continue
            if count != before and column:
                self.rows.add("scaler", line, t=t if YEARS[0] <= t < YEARS[1] else None, kind="replicas", text=f"{name} {count}", **{column: count})  # fmt: skip
            before = count

    def take(self) -> Iterator[Batch]:
        """What was read so far."""
        if self.ready:
            columns = self._columns
            self.begin()
            yield Batch("metric", columns)
        yield from self.rows.take()

    def close(self) -> Iterator[Batch]:
        """Everything that is left."""
        self._devices.close(self.rows)
        for line, t, owner, value in self._processes:
            self.rows.add("process_memory", line, t=t, name=owner or None, resource="host", bytes=int(value), running=self._load.get(t))  # fmt: skip
        yield from self.take()
        yield from self.rows.close()


def _kept(name: str) -> str | None:
    """Under which name a series is kept; of one without the engine's prefix where the vocabulary knows it as the engine's."""
    if kept := kept_name(name):
        return kept
    if name.endswith(("_bucket", "_created")):
        return None  # a part of a histogram, and when a counter began
    return next((match.quantity.column[1:] for match in meanings(name) if match.strong and match.quantity.column.startswith(":vllm:")), None)  # fmt: skip


_PLAIN = regex(
    r"(?:(?:sum|max|min|avg) ?(?:(?:by|without) ?\([^()]*\))? ?\( ?)?(?P<name>[A-Za-z_:][\w:]{3,100})(?:\{[^{}]*\})? ?\)?"
)


def asked_for(query: str) -> str | None:
    """The series whose values a query gives as they are, or their sum; None for one that computes.

    >>> asked_for("sum by (pod) (vllm:num_requests_waiting)"), asked_for("rate(vllm:num_preemptions_total[5m])")
    ('vllm:num_requests_waiting', None)
    """
    found = _PLAIN.fullmatch(query.strip())
    return kept_name(found["name"]) if found else None


def _text(labels: Mapping[str, str]) -> str | None:
    """Labels as Prometheus' text writes them, in order."""
    escaped = ((key, label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")) for key, label in sorted(labels.items()) if _LABEL_NAME.fullmatch(key))  # fmt: skip
    return ",".join(f'{key}="{label}"' for key, label in escaped) or None


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """Rows of `metric`, samples of devices, settings from the labels of the cache configuration."""
    answers = _Answers()

    stream = iter(chunks)
    first = next(stream, None)
    lines = first is not None and _LINE.match(first.data) is not None  # a series a line
    chunks = itertools.chain([] if first is None else [first], stream)

    def whole(way: tuple[str, ...]) -> bool:
        return (lines and way == ()) or (
            way[-1:] == (ITEM,) and (len(way) == 2 or way[-2:-1] in _LISTS or kept_name(way[-2]) is not None)
        )

    try:
        for piece in pieces(chunks, whole):
            if piece.path[-1:] == (ITEM,) or (lines and not piece.path):
                keyed = (kept_name(step) for step in piece.path if step != ITEM)
                answers.value(piece.line, piece.value, next(filter(None, keyed), None))
            elif piece.path[-1:] == ("error",) and isinstance(piece.value, str):
                answers.rows.problem(piece.line, "the query failed", piece.value)
            if answers.ready >= _FLUSH_ROWS:
                yield from answers.take()
    except BrokenError as problem:
        answers.rows.problem(problem.line, f"an answer of a query: {problem}", "")
    yield from answers.close()
