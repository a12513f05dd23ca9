"""Request logs: token counts, times and outcomes of single requests, whoever wrote them.

Shapes (each may stand in docker, CRI or kubectl envelopes):
    2026-11-20 20:04:51.120 INFO gw request_id=r1 model=qwen input_tokens=7420 output_tokens=312 latency_ms=8123 status=200
    {"ts": "2026-11-20T20:04:51Z", "response": {"usage": {"prompt_tokens": 7420, "completion_tokens": 312}}, "status": 200}
    timestamp,prompt_tokens,completion_tokens       (CSV with a header; `;` and tabs too)
    {"duration": 10.0, ..., "input_lens": [512, 80], "output_lens": [128, 20], "ttfts": [...]}     (vLLM's serving benchmark)
Keys are compared without case, dots, dashes, underscores and camel case; `_KEYS` lists the synonyms of gateways, SDKs,
OpenTelemetry and datasets. A line without token counts gives no row, and never takes over those of the line before.

Units: a suffix of the key or of the value rules (`_ms`, `1.2s`); durations without any are read as milliseconds where the
first chunk shows 1000 or more, as seconds where it shows fractions below, else they stay unknown. `t` is the arrival: a
start time, else an end time less the latency, else the line's own stamp. Epoch numbers are s, ms, us or ns by
their size; times that count from the start of a recording stay unknown. Cached tokens are part of the prompt tokens, save
in the form `input_tokens` beside `cache_read_input_tokens`, where both are added up.

A chunk of lines of one shape goes through a `columns.Template`, learned from its lines; every other line through json or a
regular expression. Text of prompts is never searched.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from oomdoc.columns import WORTHWHILE_BYTES, Cut, Field, Memo, Template, is_null
from oomdoc.ingest.base import Head
from oomdoc.ingest.problems import Capped
from oomdoc.ingest.record import ANSI, HEAD, Clock, peel
from oomdoc.scan import Chunk
from oomdoc.tables import TABLES as ALL_TABLES, Batch
from oomdoc.units import parse_time

KIND = "request-log"
TABLES = ("request", "problem")

_COLUMNS = ALL_TABLES["request"].column_names[1:]
_DOCUMENT_CAP = 64 << 20  # a benchmark's JSON of several lines, or of one very long line, is read whole up to here
_LEARN_CAP = 16 << 10  # longer lines hold prompts, and are read by json anyway
_TOKEN_CAP = 10**15
_LINE_CAP = 64 << 10  # key=value pairs stand before any text of prompts

# ---- what keys mean

_SAME: Mapping[str, str] = {
    "input": "input_tokens prompt_tokens prompt_token_count input_token_count num_prompt_tokens n_prompt_tokens prompt_len "
    "input_len input_length prompt_length prefill_tokens context_tokens tokens_in in_tokens llm_input_token llm_input_tokens "
    "gen_ai.usage.input_tokens gen_ai.usage.prompt_tokens prompt_eval_count num_input_tokens request_tokens",
    "output": "output_tokens completion_tokens completion_token_count generated_tokens generation_tokens num_output_tokens "
    "num_generated_tokens num_generation_tokens num_completion_tokens output_token_count output_len output_length tokens_out "
    "out_tokens llm_output_token llm_output_tokens gen_ai.usage.output_tokens gen_ai.usage.completion_tokens eval_count "
    "candidates_token_count response_tokens",
    "cached": "cached_tokens prefix_cached_tokens num_cached_tokens prompt_cached_tokens cached_prompt_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
    "limit": "max_tokens max_new_tokens max_completion_tokens max_output_tokens gen_ai.request.max_tokens",
    "start": "start_time start_ts created_at arrival_time received_at request_start_time arrived_at start_time_unix_nano",
    "stamp": "timestamp ts time @timestamp created request_time date datetime",
    "end": "end_time end_ts finish_time finished_at completed_at completion_time end_time_unix_nano",
    "first": "completion_start_time first_token_time",
    "latency": "latency duration elapsed e2e_latency response_time request_latency total_time request_duration total_latency "
    "e2e_request_latency gen_ai.latency.e2e e2e",
    "ttft": "ttft time_to_first_token first_token gen_ai.latency.time_to_first_token first_token_latency",
    "status": "status status_code http_status response_code http_status_code response_status",
    "model": "model model_name model_id served_model gen_ai.request.model served_model_name",
    "tenant": "tenant tenant_id user user_id client client_id customer team api_key_alias",
}
_FACTORS = {"": 0.0, "ms": 1e3, "millis": 1e3, "milliseconds": 1e3, "msec": 1e3, "s": 1.0, "sec": 1.0, "secs": 1.0,
            "seconds": 1.0, "us": 1e6, "micros": 1e6, "microseconds": 1e6, "ns": 1e9, "nanos": 1e9, "nanoseconds": 1e9}  # fmt: skip
"""Divisors to seconds by suffix; 0 = the name does not say."""
_CONTAINERS = frozenset(
    ("usage", "response", "body", "responsebody", "data", "metainfo", "metrics", "request", "requestbody", "attributes",
     "metadata", "payload", "result", "record", "fields", "jsonpayload", "extra", "prompttokensdetails", "inputtokensdetails",
     "usagemetadata", "log", "event", "params", "samplingparams", "message")
)  # fmt: skip
"""Keys under which another object is looked into; never messages, prompts or choices."""


def _fold(name: str) -> str:
    return name.lower().replace("_", "").replace(".", "").replace("-", "").replace(" ", "").replace("@", "")


def _keys() -> dict[str, tuple[str, float]]:
    keys: dict[str, tuple[str, float]] = {}
    for meaning, names in _SAME.items():
        for name in names.split():
            if meaning in ("latency", "ttft"):
                keys.update((_fold(name) + suffix, (meaning, factor)) for suffix, factor in _FACTORS.items())
            else:
                keys[_fold(name)] = (meaning, 0.0)
    # OpenTelemetry's durations are seconds by definition
    keys["genailatencye2e"] = ("latency", 1.0)
    keys["genailatencytimetofirsttoken"] = ("ttft", 1.0)
    return keys


_KEYS = _keys()


@lru_cache(maxsize=4096)
def _meaning(name: str) -> tuple[str, float] | None:
    """What a key says, and the divisor to seconds that its suffix names."""
    return _KEYS.get(_fold(name)) if len(name) < 60 else None


# ---- values

_STATUS = re.compile(r"([0-9]{1,3})(?: .{0,60})?")
_COUNT = re.compile(r"([0-9]{1,15})(?:\.0*)?")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|us|µs|ns|m)?")
_UNITS = {"ms": 1e3, "s": 1.0, "us": 1e6, "µs": 1e6, "ns": 1e9}
_CLF = re.compile(r"(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d:\d\d:\d\d) ([+-]\d{4})")
_MONTHS = {name: f"{number:02}" for number, name in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)}


class _Unreadable(ValueError):
    """A value that its key says to be a number and that is none."""


def _tokens(value: Any) -> int | None:
    """A count of tokens, or None for a spelled NULL; anything else is `_Unreadable`."""
    if value is None or isinstance(value, bool) or value != value:
        return None
    if isinstance(value, str):
        text = value.strip()
        if is_null(text.encode("utf-8", "replace")):
            return None
        match = _COUNT.fullmatch(text)
        if not match:
            raise _Unreadable(text)
        return int(match[1])
    if isinstance(value, (int, float)) and 0 <= value < _TOKEN_CAP and value == int(value):
        return int(value)
    raise _Unreadable(str(value))


def _number(value: Any) -> tuple[float | None, float]:
    """A number and the divisor to seconds that a unit behind it names (0 = none)."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return (float(value), 0.0) if 0 <= value < 1e18 else (None, 0.0)
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if not match or len(match[1]) > 18:
        return None, 0.0
    return (float(match[1]) * 60, 1.0) if match[2] == "m" else (float(match[1]), _UNITS.get(match[2] or "", 0.0))


def epoch(value: float) -> float | None:
    """Seconds of an epoch number in s, ms, us or ns by its size (1990 to 2200); None for a number that is none.

    >>> epoch(1795205091.5), epoch(1795205091500), epoch(27482)
    (1795205091.5, 1795205091.5, None)
    """
    for factor in (1.0, 1e3, 1e6, 1e9):
        if 6.3e8 <= value / factor < 7.3e9:
            return value / factor
    return None


def _time(value: Any) -> float | None:
    """Epoch seconds of a stamp or an epoch number."""
    if isinstance(value, str):
        text = value[:400]
        stamp = parse_time(text)
        if stamp is not None:
            return stamp
        clf = _CLF.search(text)
        if clf and clf[2] in _MONTHS:
            return parse_time(f"{clf[3]}-{_MONTHS[clf[2]]}-{clf[1]} {clf[4]} {clf[5]}")
        try:
            value = float(text)
        except ValueError:
            return None
    return epoch(float(value)) if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e20 else None


def _status(value: Any) -> int | None:
    """An HTTP status; None for words such as `success`."""
    if isinstance(value, str):
        match = _STATUS.fullmatch(value)
        return int(match[1]) if match else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1000 else None


def _word(value: Any) -> str | None:
    """A name, at most 64 bytes long."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or is_null(value.encode("utf-8", "replace")):
        return None
    return value.encode("utf-8", "replace")[:64].decode("utf-8", "replace")


class Bare:
    """The unit of durations whose key names none: decided once a source, from the first values that tell."""

    def __init__(self) -> None:
        self.divisor: float | None = None

    def see(self, values: Iterable[float]) -> None:
        """Learn from values that were written without a unit."""
        if self.divisor is None:
            seen = list(values)
            if seen and max(seen) >= 1000:
                self.divisor = 1e3
            elif any(value != int(value) for value in seen):
                self.divisor = 1.0


# ---- one request


class _Requests:
    """Rows of requests, gathered from keys and values; handed out once a chunk."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.bare = Bare()
        self.noted = Capped()

    def add(self, line: int, found: Mapping[str, Any], fallback_t: float | None, text: str) -> bool:
        """A row from values by meaning (as `_collect` and the readers of lines find them); False where they are none."""
        if "input" not in found and "output" not in found:
            return False
        counts: dict[str, int | None] = {}
        for name in ("input", "output", "cached", "cache_read", "cache_write", "limit"):
            if name in found:
                try:
                    counts[name] = _tokens(found[name])
                except _Unreadable:
                    counts[name] = None
                    if name in ("input", "output"):
                        self.noted.problem(line, f"{name} tokens are not a number", text)
        given, read = counts.get("input"), counts.get("cache_read")
        cached = counts.get("cached")
        if read is not None:
            cached = read if cached is None else cached
            if given is not None and found.get("apart"):
                given += read + (counts.get("cache_write") or 0)
        start, end = _time(found.get("start")), _time(found.get("end"))
        latency = self._seconds(found, "latency")
        if not isinstance(latency, float) and start is not None and end is not None and end >= start:
            latency = end - start
        if start is None and end is not None and isinstance(latency, float):
            start = end - latency
        if start is None:
            start = _time(found.get("stamp"))
        ttft = self._seconds(found, "ttft")
        first = _time(found.get("first"))
        if ttft is None and first is not None and start is not None and first >= start:
            ttft = first - start
        t = start if start is not None else fallback_t
        self.rows.append(
            (line, t, given, counts.get("output"), counts.get("limit"), cached, latency, ttft,
             _status(found.get("status")), _word(found.get("model")), _word(found.get("tenant")))
        )  # fmt: skip
        return True

    @staticmethod
    def _seconds(found: Mapping[str, Any], name: str) -> float | tuple[float] | None:
        """Seconds; a tuple holds a number whose unit is not known yet."""
        if name not in found:
            return None
        value, unit = _number(found[name])
        if value is None:
            return None
        divisor = unit or found.get(name + "/", 0.0)
        return value / divisor if divisor else (value,)

    def take(self) -> Iterator[Batch]:
        """The rows gathered so far, durations without unit settled, and the problems."""
        rows, self.rows = self.rows, []
        if rows:
            columns = [list(column) for column in zip(*rows, strict=True)]
            for at in (_COLUMNS.index("latency_s"), _COLUMNS.index("ttft_s")):
                column = columns[at]
                bare = [value[0] for value in column if isinstance(value, tuple)]
                if bare:
                    self.bare.see(bare)
                    divisor = self.bare.divisor
                    columns[at] = [
                        (value[0] / divisor if divisor else None) if isinstance(value, tuple) else value for value in column
                    ]
            yield Batch("request", dict(zip(_COLUMNS, columns, strict=True)))
        yield from self.noted.take()


def _put(found: dict[str, Any], name: str, value: Any) -> None:
    """Note a value under its meaning; the first that is not null stays."""
    meaning = _meaning(name)
    if meaning is None:
        return
    what, divisor = meaning
    if found.get(what) is None and (what not in found or value is not None):
        if what in ("start", "stamp") and isinstance(value, (int, float)) and value < 1e8:
            return  # counts from the start of a recording, or is a proxy's `request_time`
        if what == "status" and _status(value) is None:
            return
        if what == "tenant" and isinstance(value, (dict, list)):
            return
        found[what] = value
        found[what + "/"] = divisor
        if what == "input":
            found["apart"] = _fold(name) == "inputtokens"


def _collect(value: Mapping[str, Any], found: dict[str, Any], depth: int = 0) -> dict[str, Any]:
    """Values by meaning from an object and the containers in it, outer ones first."""
    inner = []
    for name, entry in value.items():
        if isinstance(entry, dict):
            if _fold(name) in _CONTAINERS:
                inner.append(entry)
        elif not isinstance(entry, list):
            _put(found, name, entry)
        elif name == "attributes":  # OTLP: [{"key": ..., "value": {"intValue": "12"}}]
            inner.append({str(pair.get("key")): _otlp(pair.get("value")) for pair in entry if isinstance(pair, dict)})
    if depth < 5:
        for entry in inner:
            _collect(entry, found, depth + 1)
    return found


def _otlp(value: Any) -> Any:
    return next(iter(value.values()), None) if isinstance(value, dict) else value


# ---- lines: key=value text and JSON

_KV = re.compile(r"""(?<![^\s,;|(\[{])([A-Za-z_@][\w.@-]*)=("[^"]*"|[^\s,;"]*)""")
_EPOCH_HEAD = re.compile(r"\[?(\d{10}(?:\.\d+)?|\d{13})\b")
_TEXT_KEYS = ("log", "message", "msg", "MESSAGE", "line", "textPayload")


def _bare_value(text: str) -> str:
    return text.strip("\"'").rstrip(")]}")


class _Lines:
    """The plain reader of lines: any line, any order, any envelope."""

    def __init__(self, requests: _Requests) -> None:
        self._requests = requests
        self._clock = Clock()

    def line(self, number: int, raw: bytes) -> None:
        """Read one physical line."""
        body = raw.strip()
        if body[:1] in (b"{", b"["):
            self._json(number, body)
        elif b"=" in body or b"{" in body:
            self._text(number, body.decode("utf-8", "replace"), None)

    def _json(self, number: int, body: bytes) -> None:
        value = _loads(body)
        if value is None:
            if body[:1] == b"{":
                self._requests.noted.problem(number, "no valid JSON", body[:400].decode("utf-8", "replace"))
            else:
                self._text(number, body.decode("utf-8", "replace"), None)
        else:
            self.value(number, value, None)

    def value(self, number: int, value: Any, t: float | None) -> None:
        """A JSON value: requests, a benchmark, spans, or an envelope around one of them."""
        if isinstance(value, list):
            for entry in value:
                if isinstance(entry, dict):
                    self.value(number, entry, t)
            return
        if not isinstance(value, dict):
            return
        if isinstance(value.get("input_lens"), list) or isinstance(value.get("output_lens"), list):
            self._bench(number, value)
            return
        if isinstance(value.get("resourceSpans"), list):
            for span in _spans(value):
                self.value(number, span, t)
            return
        found = _collect(value, {})
        if self._requests.add(number, found, t, str(value)[:400] if "input" in found or "output" in found else ""):
            return
        for key in _TEXT_KEYS:
            text = value.get(key)
            if isinstance(text, str):
                stamp = _time(found.get("start", found.get("stamp")))
                self._text(number, text.strip(), stamp if stamp is not None else t)
                return

    def _text(self, number: int, text: str, t: float | None) -> None:
        brace = text.find("{")
        if 0 <= brace < 200 and text.endswith("}"):
            value = _loads(text[brace:])
            if isinstance(value, dict):
                stamp = parse_time(text[:brace])
                self.value(number, value, stamp if stamp is not None else t)
                return
        text = text[:_LINE_CAP]
        if "\x1b" in text:
            text = ANSI.sub("", text)
        found: dict[str, Any] = {}
        start = len(text)
        for match in _KV.finditer(text):
            start = min(start, match.start())
            _put(found, match[1], _bare_value(match[2]))
        if "input" not in found and "output" not in found:
            return
        head = text[:start]
        stamp = _time(head) if head else None
        if stamp is None and (match := _EPOCH_HEAD.match(head)):
            stamp = epoch(float(match[1]))
        if stamp is None and head[:1].isalpha():
            _, stamp, extra = peel(text)
            if stamp is None and "stamp" in extra and extra["stamp"][0]:
                stamp = self._clock.at(*extra["stamp"])
        self._requests.add(number, found, stamp if stamp is not None else t, text)

    def _bench(self, number: int, value: Mapping[str, Any]) -> None:
        """vLLM's serving benchmark: parallel arrays, one request an index; only durations without a unit, in seconds."""
        lists = {name: entry for name, entry in value.items() if isinstance(entry, list)}
        given, made = lists.get("input_lens", []), lists.get("output_lens", [])
        first, steps, starts = lists.get("ttfts", []), lists.get("itls", []), lists.get("start_times", [])
        count = max(len(given), len(made))
        # the clock of start_times is a monotonic one; the file's date is the end of the run
        date = value.get("date")
        ended = parse_time(re.sub(r"(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)", r"\1-\2-\3 \4:\5:\6", date)) if isinstance(date, str) else None
        lasted = _number(value.get("duration"))[0]
        numbers = [entry for entry in starts if isinstance(entry, (int, float))]
        zero = ended - lasted - min(numbers) if ended is not None and lasted is not None and numbers else None
        for index in range(count):
            ttft = _number(_at(first, index))[0]
            gaps = _at(steps, index)
            rest = sum(gap for gap in gaps if isinstance(gap, (int, float))) if isinstance(gaps, list) else None
            begun = _at(starts, index)
            found: dict[str, Any] = {"input": _at(given, index), "output": _at(made, index), "model": value.get("model_id")}
            if ttft is not None:
                found.update({"ttft": ttft, "ttft/": 1.0})
                if rest is not None:
                    found.update({"latency": ttft + rest, "latency/": 1.0})
            t = zero + begun if zero is not None and isinstance(begun, (int, float)) else None
            self._requests.add(number, found, t, "input_lens, output_lens")


def _at(values: Sequence[Any], index: int) -> Any:
    return values[index] if index < len(values) else None


def _spans(value: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for resource in value["resourceSpans"]:
        for scope in resource.get("scopeSpans") or () if isinstance(resource, dict) else ():
            for span in scope.get("spans") or () if isinstance(scope, dict) else ():
                if isinstance(span, dict):
                    yield span


def _loads(text: str | bytes) -> Any:
    try:
        return json.loads(text if isinstance(text, str) else text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


# ---- CSV


@dataclass(frozen=True)
class _Sheet:
    """The header of a CSV log: its delimiter, and what each column means."""

    delimiter: str
    names: tuple[str, ...]
    header: bytes


def _sheet(line: bytes) -> _Sheet | None:
    """The header that a line is, if it names input and output tokens."""
    text = line.decode("utf-8", "replace").strip().lstrip("\ufeff")
    for delimiter in (",", ";", "\t"):
        names = tuple(name.strip().strip('"') for name in text.split(delimiter))
        meant = {meaning[0] for name in names if (meaning := _meaning(name))}
        if len(names) > 1 and {"input", "output"} <= meant:
            return _Sheet(delimiter, names, line.strip())
    return None


def _csv_row(sheet: _Sheet, requests: _Requests, number: int, raw: bytes) -> None:
    text = raw.decode("utf-8", "replace").strip("\r\n")
    if not text.strip() or raw.strip() == sheet.header:
        return
    try:
        cells = next(csv.reader([text], delimiter=sheet.delimiter)) if '"' in text else text.split(sheet.delimiter)
    except (csv.Error, StopIteration):
        cells = []
    if len(cells) != len(sheet.names):
        requests.noted.problem(number, f"not {len(sheet.names)} cells as in the header", text)
        return
    found: dict[str, Any] = {}
    for name, cell in zip(sheet.names, cells, strict=True):
        value = cell.strip()
        _put(found, name, None if is_null(value.encode("utf-8", "replace")) else value)
    requests.add(number, found, None, text)


# ---- the fast way: a template learned from a line


@dataclass(frozen=True)
class _Plan:
    """A template, and the divisors of its durations (0 = not known)."""

    template: Template
    divisors: Mapping[str, float]
    doubled: frozenset[str] = frozenset()  # meanings that a second key has too: it would stand in where the first is NULL


_STAMP = re.compile(rb"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,](\d{1,9}))?(\s?(?:Z|[+-]\d\d:?\d\d))?")
_PAIR = re.compile(rb"""([(\[{]?)([A-Za-z_@][\w.@-]*)=("[^"]*"|[^\s,;"=]*?)([)\]},;]*)""")
_WHOLE = re.compile(rb"\d{1,15}")
_REAL = re.compile(rb"\d{1,15}(?:\.\d{1,9})?")
_JSON_CELL = re.compile(rb"""(\s*(?:\{\s*)?(?:"[^"\\]*"\s*:\s*(?:\{\s*)?)+)("[^"\\]*"|[^"\\{}\[\]\s]+|\[[^"\\\[\]{}]*\]|\{\})([\s}]*)""")
_KINDS = {"input": "integer", "output": "integer", "cached": "integer", "limit": "integer", "status": "integer",
          "latency": "real", "ttft": "real", "model": "text", "tenant": "text", "start": "stamp", "stamp": "stamp"}  # fmt: skip
_TEXT = Memo(lambda text: _word(_bare_value(re.split(r"[\s,;\"]", text.decode("utf-8", "replace"), maxsplit=1)[0])))
_CSV_TEXT = Memo(lambda text: _word(text.strip().decode("utf-8", "replace")))
_JSON_TEXT = Memo(lambda text: _word(_loads(text)) if text[:1] in b'"-0123456789' else None)


class _Refused(Exception):
    """The line has no shape that a template can hold."""


def _value_field(what: str, cell: int, prefix: bytes, value: bytes, suffix: bytes, text: Memo) -> Field:
    """The field of a value with a meaning, judged by the value that the sample line has."""
    kind = _KINDS.get(what)
    if kind == "text":
        return Field("text", what, cell, cell, prefix, suffix, decode=text)
    if kind == "stamp":
        match = _STAMP.fullmatch(value)
        if match:
            return _stamp_field(match, "t", cell, cell, prefix, suffix)
        if _REAL.fullmatch(value) and epoch(float(value)) is not None:
            return Field("real", "epoch", cell, cell, prefix, suffix)
    elif kind == "integer" and _WHOLE.fullmatch(value):
        return Field("integer", what, cell, cell, prefix, suffix)
    elif kind == "real" and _REAL.fullmatch(value):
        return Field("real", what, cell, cell, prefix, suffix)
    raise _Refused


def _stamp_field(match: re.Match[bytes], name: str, first: int, last: int, prefix: bytes, suffix: bytes) -> Field:
    whole = parse_time(match[0].decode())
    naked = parse_time(match[0][: match.end() - match.start() - len(match[2] or b"")].decode())
    if whole is None or naked is None:
        raise _Refused
    return Field("stamp", name, first, last, prefix, (match[2] or b"") + suffix, len(match[1] or b""), float(round(naked - whole)))


def _learn_pairs(line: bytes) -> _Plan:
    """The template of a key=value line."""
    if b"\x1b" in line or line[:1] in b"{[>" or line.count(b'"') % 2:
        raise _Refused
    ending = b"\r" if line.endswith(b"\r") else b""
    cells = line[: len(line) - len(ending)].split(b" ")
    starts = [sum(len(cell) + 1 for cell in cells[:index]) for index in range(len(cells))]
    fields: list[Field] = []
    divisors: dict[str, float] = {}
    first_pair, quoted = None, False
    for index, cell in enumerate(cells):
        close = ending if index == len(cells) - 1 else b""
        match = _PAIR.fullmatch(cell)
        if quoted or cell.count(b'"') == 1:  # a quoted text of several words has to stay the same
            quoted ^= cell.count(b'"') == 1
            fields.append(Field("same", "", index, index, cell + close))
        elif match:
            meaning = _meaning(match[2].decode())
            quote = b'"' if match[3][:1] == b'"' else b""
            prefix, suffix, value = match[1] + match[2] + b"=" + quote, quote + match[4] + close, match[3].strip(b'"')
            if not meaning:
                fields.append(Field("key", "", index, index, prefix, suffix if quote else b""))
            elif meaning[0] == "status" and not _WHOLE.fullmatch(value):
                fields.append(Field("same", "", index, index, cell + close))
            elif meaning[0] in divisors:
                raise _Refused
            else:
                divisors[meaning[0]] = meaning[1]
                fields.append(_value_field(meaning[0], index, prefix, value, suffix, _TEXT))
        elif b"=" in cell or b'"' in cell:
            raise _Refused
        else:
            continue
        first_pair = index if first_pair is None else first_pair
    if first_pair is None or not {"input", "output"} & divisors.keys():
        raise _Refused
    if not {"start", "stamp"} & divisors.keys():
        fields.extend(_leading_stamp(line, cells, starts, first_pair))
    counts = ((b"=", line.count(b"=")), (b'"', line.count(b'"')), (b"\x1b", 0))
    return _Plan(Template(b" ", len(cells), tuple(fields), counts), divisors)


def _leading_stamp(line: bytes, cells: list[bytes], starts: list[int], first_pair: int) -> Iterator[Field]:
    head = line[: starts[first_pair]]
    match = _STAMP.search(head)
    if not match:
        text = head.decode("utf-8", "replace")
        _, stamp, extra = peel(line.decode("utf-8", "replace"))
        if stamp is not None or extra or _CLF.search(text) or _EPOCH_HEAD.match(text):
            raise _Refused
        return
    first = max(index for index, start in enumerate(starts) if start <= match.start())
    last = max(index for index, start in enumerate(starts) if start < match.end())
    end = starts[last] + len(cells[last])
    yield _stamp_field(match, "t", first, last, line[starts[first] : match.start()], line[match.end() : end])


def _learn_json(line: bytes) -> _Plan:
    """The template of a JSON line whose strings hold no commas."""
    value = _loads(line)
    if not isinstance(value, dict) or b"\\" in line or {"input_lens", "output_lens", "resourceSpans", "attributes"} & value.keys():
        raise _Refused
    cells = line.split(b",")
    checks: list[Field] = []
    found: dict[str, tuple[int, Field]] = {}  # by meaning: the depth of its key, its field
    divisors: dict[str, float] = {}
    doubled: set[str] = set()
    path: list[bool] = []  # of every object that is open: whether it is looked into
    opened = closed = 0
    for index, cell in enumerate(cells):
        match = _JSON_CELL.fullmatch(cell)
        if not match:
            raise _Refused
        prefix, text, suffix = match.groups()
        name = ""
        for token in re.findall(rb'\{|"[^"]*"', prefix):
            if token == b"{":
                path.append(all(path) and (not path or (_fold(name) in _CONTAINERS and len(path) < 6)))
                opened += 1
            else:
                name = token[1:-1].decode("utf-8", "replace")
        meaning = _meaning(name) if all(path) else None
        what = meaning[0] if meaning else ""
        closing = suffix if b"}" in suffix else b""
        checks.append(Field("key", "", index, index, prefix, closing))
        if meaning and what == "status" and not _WHOLE.fullmatch(text):
            checks.append(Field("same", "", index, index, cell))
        elif meaning:
            depth = len(path)
            if what in found:
                doubled.add(what)
                if min(depth, found[what][0]) > 1 or max(depth, found[what][0]) == 1:
                    raise _Refused  # which of them counts is not plain to see
            if what not in found or depth < found[what][0]:
                quote = b'"' if text[:1] == b'"' and _KINDS.get(what) == "stamp" else b""
                value = text[len(quote) : len(text) - len(quote)]
                found[what] = (depth, _value_field(what, index, prefix + quote, value, quote + suffix, _JSON_TEXT))
                divisors[what] = meaning[1]
        for _ in range(suffix.count(b"}")):
            if not path:
                raise _Refused
            path.pop()
            closed += 1
    if path or not {"input", "output"} & divisors.keys() or {"start", "stamp"} <= divisors.keys():
        raise _Refused
    used = {field.first for _, field in found.values()}
    fields = (*(field for field in checks if field.kind == "same" or field.first not in used), *(field for _, field in found.values()))
    return _Plan(Template(b",", len(cells), fields, ((b"\\", 0), (b"{", opened), (b"}", closed))), divisors, frozenset(doubled))


def _learn_csv(line: bytes, sheet: _Sheet) -> _Plan:
    """The template of a CSV row under its header."""
    if b'"' in line:
        raise _Refused
    cells = line.split(sheet.delimiter.encode())
    if len(cells) != len(sheet.names):
        raise _Refused
    fields: list[Field] = []
    divisors: dict[str, float] = {}
    for index, (name, cell) in enumerate(zip(sheet.names, cells, strict=True)):
        meaning = _meaning(name)
        if not meaning:
            continue
        if meaning[0] in divisors:
            raise _Refused
        divisors[meaning[0]] = meaning[1]
        value = cell.strip()
        at = cell.index(value)
        fields.append(_value_field(meaning[0], index, cell[:at], value, cell[at + len(value) :], _CSV_TEXT))
    if {"start", "stamp"} <= divisors.keys():
        raise _Refused
    return _Plan(Template(sheet.delimiter.encode(), len(cells), tuple(fields), ((b'"', 0),)), divisors)


def _plan_batch(plan: _Plan, cut: Cut, first_line: int, bare: Bare) -> Batch | None:
    """The table's columns from a template's; None where a NULL would have to be filled from a second key."""
    import numpy as np

    for name in plan.doubled:
        value = cut.columns["t" if "t" in cut.columns and name in ("start", "stamp") else name if name in cut.columns else "epoch"]
        if np.ma.getmaskarray(value).any() or (value.dtype == object and (value == None).any()):  # noqa: E711
            return None

    columns: dict[str, Any] = {"line": cut.lines + first_line}
    for name, value in cut.columns.items():
        if name in ("latency", "ttft"):
            divisor: float | None = plan.divisors[name]
            if not divisor:
                known = np.ma.compressed(value)
                if len(known):
                    bare.see([float(known.max()), *known[known != np.floor(known)][:1].tolist()])
                divisor = bare.divisor
            if divisor:
                columns[name + "_s"] = value / divisor
        elif name == "epoch":
            columns["t"] = _epochs(value)
        elif name == "status":
            columns[name] = np.ma.masked_greater(value, 999) if len(value) and value.max() > 999 else value
        else:
            columns[_TABLE_NAMES[name]] = value
    return Batch("request", columns)


_TABLE_NAMES = {"t": "t", "input": "input_tokens", "output": "output_tokens", "limit": "max_tokens", "cached": "cached_tokens",
                "model": "model", "tenant": "tenant"}  # fmt: skip


def _epochs(values: Any) -> Any:
    """`epoch` of a column."""
    import numpy as np

    plain, missing = np.ma.getdata(values), np.ma.getmaskarray(values)
    seconds, known = np.zeros(len(plain)), np.zeros(len(plain), np.bool_)
    for factor in (1.0, 1e3, 1e6, 1e9):
        scaled = plain / factor
        fits = ~known & (scaled >= 6.3e8) & (scaled < 7.3e9)
        seconds[fits], known = scaled[fits], known | fits
    return np.ma.masked_array(seconds, mask=missing | ~known) if (missing | ~known).any() else seconds


# ---- the source


class _Reader:
    """The state of one source: its CSV header, its last template, its requests so far."""

    def __init__(self) -> None:
        self.requests = _Requests()
        self.lines = _Lines(self.requests)
        self.sheet: _Sheet | None = None
        self.plan: _Plan | None = None
        self.begun = False

    def chunk(self, data: bytes, first_line: int) -> Iterator[Batch]:
        """Everything that a chunk of whole lines holds."""
        if not self.begun and data.strip():
            self.begun = True
            lead = len(data) - len(data.lstrip())
            begin = data.rfind(b"\n", 0, lead) + 1
            stop = data.find(b"\n", lead)
            stop = len(data) if stop < 0 else stop + 1
            self.sheet = _sheet(data[begin:stop])
            if self.sheet:
                first_line += data.count(b"\n", 0, stop)
                data = data[stop:]
        if len(data) >= WORTHWHILE_BYTES:
            for plan in self._plans(data):
                cut = plan.template.read(data)
                batch = _plan_batch(plan, cut, first_line, self.requests.bare) if cut is not None else None
                if cut is not None and batch is not None:
                    self.plan = plan
                    yield batch
                    for line, begin, end in cut.odd_lines():
                        self.line(first_line + line, data[begin:end])
                    yield from self.requests.take()
                    return
        number = first_line
        for raw in data.split(b"\n"):
            self.line(number, raw)
            number += 1
        yield from self.requests.take()

    def line(self, number: int, raw: bytes) -> None:
        """One line, the plain way."""
        if self.sheet:
            _csv_row(self.sheet, self.requests, number, raw)
        else:
            self.lines.line(number, raw)

    def _plans(self, data: bytes) -> Iterator[_Plan]:
        """Templates worth trying: the last one that fitted, then those of three lines of the chunk."""
        if self.plan:
            yield self.plan
        tried = {self.plan.template if self.plan else None}
        for place in (0, len(data) // 2, len(data) // 4):
            begin = data.find(b"\n", place) + 1 if place else 0
            end = data.find(b"\n", begin)
            line = data[begin : end if end >= 0 else len(data)]
            if len(line) > _LEARN_CAP:
                continue
            try:
                plan = _learn_csv(line, self.sheet) if self.sheet else _learn_json(line) if line[:1] == b"{" else _learn_pairs(line)
            except _Refused:
                continue
            if plan.template not in tried:
                tried.add(plan.template)
                yield plan

    def document(self, data: bytes, first_line: int) -> Iterator[Batch]:
        """A JSON document of several lines, or of one that is longer than a chunk."""
        value = _loads(data)
        if value is None:
            self.requests.noted.problem(first_line, "no valid JSON document", data[:400].decode("utf-8", "replace"))
        else:
            self.lines.value(first_line, value, None)
        yield from self.requests.take()


_DOCUMENT = re.compile(rb'\s*(?:\[\s*(\{|\Z)|\{\s*(?:"|\Z))')


def _opens_document(data: bytes) -> bool:
    """Whether the source begins with a JSON value that its first line does not close."""
    begin = _DOCUMENT.match(data)
    if not begin:
        return False
    first, _, rest = data.lstrip().partition(b"\n")
    if _loads(first) is not None:
        return False
    return begin[1] is not None or rest.lstrip()[:1] != b"{"


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """Rows of `request`, and of `problem` for lines that ought to have been requests."""
    reader = _Reader()
    held: list[bytes] = []
    held_bytes, held_line, document = 0, 1, False
    for chunk in chunks:
        data, first_line = chunk.data, chunk.first_line
        if not reader.begun and not held and data.strip() and _opens_document(data):
            document, held_line, reader.begun = True, first_line, True
        if document:
            held_bytes += len(data)
            if held_bytes <= _DOCUMENT_CAP:
                held.append(data)
            continue
        if not chunk.at_line_start:
            cut = data.find(b"\n") + 1
            if not cut:
                continue
            data, first_line = data[cut:], first_line + 1
        yield from reader.chunk(data, first_line)
    if document:
        if held_bytes > _DOCUMENT_CAP:
            reader.requests.noted.problem(held_line, f"a JSON document of {held_bytes} bytes is longer than is read", "")
        else:
            yield from reader.document(b"".join(held), held_line)
    yield from reader.requests.noted.close()


# ---- recognising

_SERVER_LINE = re.compile(r"(?:\([^)]*\) )*" + HEAD.pattern)


def _is_pairs(line: str) -> bool:
    """Whether a line logs a request in key=value form, and does not only mention one in a sentence."""
    pairs = _KV.findall(line)
    meant = {meaning[0] for name, value in pairs if (meaning := _meaning(name)) and (value[:1].isdigit() or meaning[0] not in ("input", "output"))}
    if not {"input", "output"} <= meant:
        return False
    words = [word for word in _KV.sub(" ", line).split() if len(word) > 1 and word.isalpha() and word.islower()]
    return len(words) <= len(pairs) + 2


def _is_json(line: str) -> bool | None:
    """Whether a JSON line is a request; None where it is no JSON at all."""
    value = _loads(line)
    if not isinstance(value, dict):
        return None
    if "resourceSpans" in value:
        return any("genai" in _fold(json.dumps(span)[:4000]) for span in _spans(value))
    return {"input", "output"} <= _collect(value, {}).keys()


def matches(head: Head) -> bool:
    """Request lines in at least three of ten lines that are there, or a CSV header, or a benchmark's arrays."""
    raw = [line for line in head.data.split(b"\n")[:400] if line.strip()]
    if not raw:
        return False
    if _sheet(raw[0]):
        sheet = _sheet(raw[0])
        assert sheet is not None
        requests = _Requests()
        for number, line in enumerate(raw[1:20], 1):
            _csv_row(sheet, requests, number, line)
        return len(raw) == 1 or any(isinstance(count, int) for row in requests.rows for count in row[2:4])
    begin = head.data.lstrip()[:1]
    if begin == b"{" and re.search(rb'"(?:input_lens|output_lens)"\s*:\s*\[|"total_input_tokens"\s*:', head.data):
        return True
    lines = [line for line in head.lines if line.strip()]
    if sum(1 for line in lines if (found := _SERVER_LINE.match(line)) and found["src"] and found["mon"]) > len(lines) // 10:
        return False
    hits = sum(1 for line in lines if _is_pairs(line))
    if hits == 0:
        # the raw lines: a request's own `message` would be taken for an envelope
        whole = raw[:-1] if len(head.data) >= 64 << 10 and len(raw) > 1 else raw
        hits = sum(1 for line in whole[:100] if b"{" in line and _is_json_line(line))
        lines = [line.decode("utf-8", "replace") for line in whole[:100]]
        if not hits and begin in (b"{", b"["):
            value = _loads(head.data) if len(head.data) < 64 << 10 else None
            entries = value if isinstance(value, list) else [value]
            return any(isinstance(entry, dict) and {"input", "output"} <= _collect(entry, {}).keys() for entry in entries[:20])
    return hits > 0 and hits >= 0.3 * len(lines)


def _is_json_line(line: bytes) -> bool:
    """A request as a JSON line, bare or in an envelope."""
    text = line.decode("utf-8", "replace").strip()
    brace = text.find("{")
    if brace < 0 or brace > 200 or not text.endswith("}"):
        return False
    known = _is_json(text[brace:])
    if known:
        return True
    value = _loads(text[brace:])
    if isinstance(value, dict):
        for key in _TEXT_KEYS:
            inner = value.get(key)
            if isinstance(inner, str):
                return bool(_is_json(inner.strip())) if inner.lstrip()[:1] == "{" else _is_pairs(inner)
    return False

