"""What the keys and values of request logs mean, and the rows they make.

Keys are what the vocabulary says of them. `_NAMES` lists what else they mean where they stand in a request: names that would be
too weak for a table, and moments; compared without case, dots, dashes, underscores and camel case. `request_log` finds the pairs,
`request_shapes` reads the dense ones by columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

from oomdoc.evidence.tables import TABLES, Batch
from oomdoc.ingest.problems import Capped
from oomdoc.ingest.vocabulary import is_irrelevant, meanings
from oomdoc.ingest.vocabulary.quantity import read
from oomdoc.ingest.vocabulary.words import named
from oomdoc.intake.cells import MONTHS, is_null, month_first, stamp
from oomdoc.regexes import regex

COLUMNS = TABLES["request"].column_names[1:]
_TOKEN_CAP = 10**15

# ---- keys

_NAMES: Mapping[str, str] = read("keys")["names"]
_MOMENTS: Mapping[str, str] = read("keys")["moments"]
_CLOCKS = "utc gmt iso iso8601 ts at"
"""What stands behind the name of a moment: the clock that it was read from, or that it is one (`first_token_utc`, `ended_at`)."""
_TEXTS = "prompt system_prompt prefix system_prefix context template document doc file manual"
_KEYS = "hash sha sha1 sha256 md5 digest fingerprint key"
"""What stands behind the name of a text: a digest of it, by which it is known when it comes again (`system_prompt_sha`)."""
_LASTED = ("dur", "lat", "req", "resp", "response", "request", "call")
"""What a record of a request calls how long it took, with the unit behind it (`dur_ms`); `ms` alone is one as well."""
_SINCE = "offset arrival_offset start_offset since_start since_begin since_first relative_time rel_time t_rel relative_timestamp submit_offset"
"""What a time since the first is called; it counts where a unit stands behind it."""
_FACTORS: Mapping[str, float] = {
    "ms": 1e3, "millis": 1e3, "milliseconds": 1e3, "msec": 1e3, "s": 1.0, "sec": 1.0, "secs": 1.0,
    "seconds": 1.0, "us": 1e6, "micros": 1e6, "microseconds": 1e6, "ns": 1e9, "nanos": 1e9, "nanoseconds": 1e9,
}  # fmt: skip
_CONTAINERS = named("containers")
"""Keys under which another object is looked into; never messages, prompts or choices."""
DEPTH = 5


class Meaning(NamedTuple):
    """What a key says: one of the words of `_NAMES`, the divisor to seconds of a duration or of a time since the first (0 = the key
    does not tell)."""

    what: str
    divisor: float
    apart: bool  # `input_tokens`: the style in which cached tokens stand beside the count, not in it


def _fold(name: str) -> str:
    return re.sub(r"[_.\- @]", "", name.lower())


def _meanings() -> dict[str, Meaning]:
    meanings = {_fold(name): Meaning(what, 0.0, False) for what, names in _NAMES.items() for name in names.split()}
    for text in map(_fold, _TEXTS.split()):
        meanings |= {text + key: Meaning("tenant", 0.0, False) for key in _KEYS.split()}
    for what, names in _MOMENTS.items():
        for name in names.split():
            meanings |= {_fold(name) + clock: Meaning(what, 0.0, False) for clock in _CLOCKS.split()}
    for name in map(_fold, _SINCE.split()):
        meanings |= {name + suffix: Meaning("stamp", divisor, False) for suffix, divisor in _FACTORS.items()}
    meanings |= {name + unit: Meaning("latency", _FACTORS[unit], False) for name in _LASTED for unit in ("ms", "s")}
    meanings["ms"] = Meaning("latency", _FACTORS["ms"], False)
    return meanings


class _Keys(dict[str, "Meaning | None"]):
    """Meanings of keys as written; those that were seen cost one lookup."""

    _folded = _meanings()

    def __missing__(self, name: str) -> Meaning | None:
        if len(self) >= 4096:
            self.clear()
        meaning = self[name] = self._find(name) if len(name) < 60 else None
        return meaning

    def _find(self, name: str) -> Meaning | None:
        """By the list above, by the vocabulary, or by the end of a dotted name whose beginning only wraps (`usage.`)."""
        if _fold(name) in _PARTS:
            return Meaning("part", 0.0, False)
        counts = (
            name.lower().endswith("s") and name[:-1].lower() in _LASTED
        )  # `calls` are many, `call_s` is how long one took
        known = (None if counts else self._folded.get(_fold(name))) or _by_vocabulary(name)
        if known is None or known.what in ("start", "stamp"):
            known = _in_units(name, known) or known
        if known is None and "." in name:
            above, _, last = name.rpartition(".")
            if all(is_container(step) for step in above.split(".")):
                return self[last]
        return known


WEAKLY = ("tenant", "replica")
_PARTS = frozenset(_fold(f"{part}_tokens") for part in ("system", "user", "prefix", "system_prompt", "user_prompt"))
"""Parts of a prompt: together they are the prompt where its own count is not told."""
WHAT: Mapping[str, str] = read("names")["request_parts"]
_DIVISORS = {"": 0.0, "ms": 1e3, "s": 1.0, "us": 1e6, "ns": 1e9, "min": 1 / 60}


def _by_vocabulary(name: str) -> Meaning | None:
    """What a name says that means nothing else; a weak name needs the company of others (`forms`), or the unit of what it may mean.

    Whose a request is and who served it are said by weak names as well (`tenant?`): they count where no other says so.
    """
    for match in meanings(name):
        what = WHAT.get(match.quantity.id)
        if what and (match.strong or (what == "latency" and _DIVISORS.get(match.unit))):
            return Meaning(what, _DIVISORS.get(match.unit, 0.0), _fold(name) == "inputtokens")
        if what in WEAKLY and not match.told and not is_irrelevant(name):
            return Meaning(what + "?", 0.0, False)
    return None


def _in_units(name: str, known: Meaning | None) -> Meaning | None:
    """A moment whose name says in what it is counted, from whatever beginning: `t_s`, `arrival_ms`."""
    for match in meanings(name):
        if match.quantity.id == "time" and (divisor := _DIVISORS.get(match.unit)):
            return Meaning(known.what if known else "stamp", divisor, False)
    return None


MEANING = _Keys()


def are_requests(meant: Iterable[str]) -> bool:
    """Whether keys of these meanings tell what went into a request and what came out."""
    return {"input", "output"} <= {"input" if what == "part" else what for what in meant}


@lru_cache(maxsize=4096)
def is_container(name: str) -> bool:
    """Whether an object under this key may hold the counts of a request."""
    return _fold(name) in _CONTAINERS


# ---- values

_STATUS = regex(r"([0-9]{1,3})(?: .{0,60})?")
_COUNT = regex(r"([0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,15})(?:\.0*)?")
_DURATION = regex(r"([0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,18}(?:\.[0-9]{1,18})?)\s*(ms|s|us|µs|ns|m)?")
_UNITS = {None: 0.0, "ms": 1e3, "s": 1.0, "us": 1e6, "µs": 1e6, "ns": 1e9, "m": 1 / 60}
_CLF = regex(r"(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d:\d\d:\d\d) ([+-]\d{4})", re.ASCII)


class UnreadableError(ValueError):
    """A value that its key says to be a number and that is none."""


def tokens(value: Any) -> int | None:
    """A count of tokens, or None for a spelled NULL; anything else is an `UnreadableError`."""
    if isinstance(value, str):
        text = value.strip()
        match = _COUNT.fullmatch(text)
        if match:
            return int(match[1].replace(",", ""))
        if is_null(text.encode("utf-8", "replace")):
            return None
    elif value is None or isinstance(value, bool) or value != value:
        return None
    elif isinstance(value, (int, float)) and 0 <= value < _TOKEN_CAP and value == int(value):
        return int(value)
    raise UnreadableError


def number(value: Any) -> tuple[float | None, float]:
    """A number and the divisor to seconds that a unit behind it names (0 = none)."""
    if isinstance(value, str):
        match = _DURATION.fullmatch(value.strip())
        return (float(match[1].replace(",", "")), _UNITS[match[2]]) if match else (None, 0.0)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e18:
        return float(value), 0.0
    return None, 0.0


def epoch(value: float) -> float | None:
    """Seconds of an epoch number in s, ms, us or ns by its size (1990 to 2200); None for a number that is none.

    >>> epoch(1795205091.5), epoch(1795205091500), epoch(27482)
    (1795205091.5, 1795205091.5, None)
    """
    for factor in (1.0, 1e3, 1e6, 1e9):
        if 6.3e8 <= value / factor < 7.3e9:
            return value / factor
    return None


_DAY_FIRST = regex(r"(\d\d?)([/.])(\d\d?)\2(\d{4}),?[T ](\d\d?):(\d\d)(?::(\d\d))?")
"""`15/09/2025 06:00`, `15.9.2025 06:00`. Beside dots the day stands first; beside slashes only where it can be no month."""
_MINUTE = regex(r"(\d{4}-\d\d-\d\d)[T ](\d\d)(:\d\d)?(Z|[+-]\d\d:?\d\d)?")
"""A stamp to the minute or to the hour, as people and spreadsheets write it."""


def moment(value: Any) -> float | None:
    """Epoch seconds of a stamp (ISO or of an access log) or of an epoch number."""
    if value is None:
        return None
    if isinstance(value, str):
        text = value[:400]
        seconds = stamp(text)
        if seconds is not None:
            return seconds
        if minute := _MINUTE.fullmatch(text.strip()):
            return stamp(f"{minute[1]}T{minute[2]}{minute[3] or ':00'}:00{minute[4] or 'Z'}")
        if day := _DAY_FIRST.fullmatch(text.strip()):
            first, second = int(day[1]), int(day[3])
            month, date = (first, second) if second > 12 and day[2] == "/" else (second, first)
            if month <= 12 and (day[2] == "." or max(first, second) > 12 or first == second):
                return stamp(f"{day[4]}-{month:02}-{date:02}T{int(day[5]):02}:{day[6]}:{day[7] or '00'}Z")
        if named := month_first(text):
            return stamp(named)
        clf = _CLF.search(text)
        if clf and clf[2] in MONTHS:
            return stamp(f"{clf[3]}-{MONTHS[clf[2]]:02}-{clf[1]} {clf[4]}{clf[5]}")
        try:
            value = float(text)
        except ValueError:
            return None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e20:
        return epoch(float(value))
    return None


OUTCOMES: dict[str, int] = {
    word: code
    for code, words in (
        (200, "ok success succeeded successful completed complete finished done stop length"),
        (499, "aborted abort cancelled canceled disconnected"),
        (429, "rejected throttled"),
        (500, "error errored failed failure exception dead died crash crashed engine_dead engine_died server_died"),
        (504, "timeout timed_out"),
    )
    for word in words.split()
}
"""What became of a request, as benchmarks and gateways name it, by the HTTP status (RFC 9110; 499 as nginx has it) that means the same."""


_NO_ANSWER = regex(
    r"(?i)\s*(?:(?:client|read|request|connection|gateway|server)[ _-]?)?(?:time(?:d)?[ _-]?out|no (?:answer|response|reply|bytes))\b.{0,60}$"
)
"""`client timeout (no bytes)`: nobody answered, whoever gave up."""


def status(value: Any) -> int | None:
    """An HTTP status; that of a word such as `success`; None for anything else."""
    if isinstance(value, str):
        match = _STATUS.fullmatch(value)
        if match:
            return int(match[1])
        word = value.strip().lower().replace(" ", "_")
        return OUTCOMES.get(word, 504 if _NO_ANSWER.match(value) else None)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1000 else None


@lru_cache(maxsize=1 << 14)
def _text(value: str) -> str | None:
    data = value.encode("utf-8", "replace")
    return None if is_null(data) else data[:64].decode("utf-8", "replace")


def word(value: Any) -> str | None:
    """A name, at most 64 bytes long."""
    if isinstance(value, str):
        return _text(value)
    return _text(str(value)) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


class Bare:
    """The unit of durations whose key names none: decided once a source, from the first values that tell."""

    def __init__(self) -> None:
        self.divisor: float | None = None

    def see(self, values: Iterable[float]) -> None:
        """Learn from values without a unit: milliseconds where one is 1000 or more (nanoseconds where those were days), seconds where one has a fraction."""
        if self.divisor is None:
            seen = list(values)
            if seen and max(seen) >= 1000:
                self.divisor = 1e9 if max(seen) >= DAYS_IN_MS else 1e3
            elif any(value != int(value) for value in seen):
                self.divisor = 1.0


# ---- one request

DAYS_IN_MS = 1e9  # no request takes eleven days: who writes longer durations without a unit counts nanoseconds, as programs in Go do
NO_EPOCH = 1e8
"""A smaller number counts from the beginning of a recording, in whatever unit: no epoch of this century is as small."""
Found = dict[str, Any]
"""Values by meaning; under the meaning and a slash what the key told besides."""


def put(found: Found, meaning: Meaning, value: Any) -> None:
    """Note a value under its meaning; the first that is not null stays."""
    what = meaning.what
    if what == "part":
        with suppress(UnreadableError):
            found[what] = found.get(what, 0) + (tokens(value) or 0)
        return
    if found.get(what) is not None or (value is None and what in found):
        return
    if what == "status":
        value = status(value)
        if value is None:
            return
    elif what in ("start", "stamp") and (since := number(value)[0]) is not None and since < NO_EPOCH:
        if meaning.divisor:
            found.setdefault("elapsed", since / meaning.divisor)
        return  # counts from the start of a recording, or is a proxy's `request_time`
    found[what] = value
    found[what + "/"] = meaning


def collect(value: Mapping[str, Any], found: Found, depth: int = 0) -> Found:
    """Values by meaning from an object and the containers in it, outer ones first."""
    inner = []
    for name, entry in value.items():
        kind = type(entry)
        if kind is dict:
            if is_container(name):
                inner.append(entry)
        elif kind is list:
            if name == "attributes":  # OTLP: [{"key": ..., "value": {"intValue": "12"}}]
                inner.append(
                    {str(pair.get("key")): _otlp(pair.get("value")) for pair in entry if isinstance(pair, dict)}
                )
        else:
            meaning = MEANING[name]
            if meaning is not None:
                put(found, meaning, entry)
    if depth < DEPTH:
        for entry in inner:
            collect(entry, found, depth + 1)
    return found


def _otlp(value: Any) -> Any:
    return next(iter(value.values()), None) if isinstance(value, dict) else value


_DAY_S = 86_400.0


class Requests:
    """Rows of requests, gathered from keys and values; handed out once a chunk."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.bare = Bare()
        self.noted = Capped()
        self._days = 0
        self._last = 0.0

    def add(self, line: int, found: Found, otherwise_t: float | None, text: str | bytes, known: bool = False) -> bool:
        """A row from values by meaning; False where they are no request. `text` is told if a count is none.

        `known` says that others of its table are requests: one that ended without an answer has a status and a duration alone.
        """
        if "part" in found and "input" not in found:
            found["input"], found["input/"] = found["part"], Meaning("input", 0.0, False)
        if (
            "input" not in found
            and "output" not in found
            and not (known and found.get("status") and "latency" in found)
        ):
            return False
        given, made = self._count(line, found, "input", text), self._count(line, found, "output", text)
        cached, limit = self._count(line, found, "cached"), self._count(line, found, "limit")
        if "cache_read" in found:
            read = self._count(line, found, "cache_read")
            cached = read if cached is None else cached
            if given is not None and read is not None and found["input/"].apart:
                given += read + (self._count(line, found, "cache_write") or 0)
        start, end = moment(found.get("start")), moment(found.get("end"))
        latency, ttft = self._seconds(found, "latency"), self._seconds(found, "ttft")
        if end is not None:
            if not isinstance(latency, float) and start is not None and end >= start:
                latency = end - start
            elif start is None and isinstance(latency, float):
                start = end - latency
        if start is None:
            start = moment(found.get("stamp"))
        if ttft is None and start is not None and "first" in found:
            first = moment(found["first"])
            ttft = first - start if first is not None and first >= start else None
        t = start if start is not None else otherwise_t
        since, till, first = (found.get(f"{what}_clock") for what in ("start", "end", "first"))
        if since is not None:  # clocks without a date, or seconds: no interval of a request is longer than a day
            latency = (till - since) % _DAY_S if latency is None and till is not None else latency
            ttft = (first - since) % _DAY_S if ttft is None and first is not None else ttft
            since = self._after(since)
        names = (word(found.get(name, found.get(f"{name}?"))) for name in ("model", *WEAKLY))
        elapsed = None if t is not None else found.get("elapsed") if since is None else since
        self.rows.append((line, t, given, made, limit, cached, latency, ttft, found.get("status"), *names, elapsed))
        return True

    def _after(self, since: float) -> float:
        """A clock that stands half a day before the one above it is the next day's."""
        if since + self._days * _DAY_S < self._last - _DAY_S / 2:
            self._days += 1
        self._last = since + self._days * _DAY_S
        return self._last

    def _count(self, line: int, found: Found, what: str, text: str | bytes | None = None) -> int | None:
        value = found.get(what)
        if value is None:
            return None
        try:
            return tokens(value)
        except UnreadableError:
            if text is not None:
                shown = text if isinstance(text, str) else text[:400].decode("utf-8", "replace")
                self.noted.problem(line, f"{what} tokens are not a number", shown)
            return None

    @staticmethod
    def _seconds(found: Found, what: str) -> float | tuple[float] | None:
        """Seconds; a tuple holds a number whose unit is not known yet."""
        if what not in found:
            return None
        value, unit = number(found[what])
        if value is None:
            return None
        divisor = unit or found[what + "/"].divisor
        return value / divisor if divisor else (value,)

    def take(self) -> Iterator[Batch]:
        """The rows gathered so far, durations without unit settled, and the problems."""
        rows, self.rows = self.rows, []
        if rows:
            columns = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
            for name in ("latency_s", "ttft_s"):
                column = columns[name]
                bare = [value[0] for value in column if isinstance(value, tuple)]
                if bare:
                    self.bare.see(bare)
                    divisor = self.bare.divisor
                    settled = [value[0] / divisor if divisor else None for value in column if isinstance(value, tuple)]
                    values = iter(settled)
                    columns[name] = [next(values) if isinstance(value, tuple) else value for value in column]
            yield Batch("request", columns)
        yield from self.noted.take()
