"""Tables that people keep themselves: memory over time with what it is compared by, and experiments with what came of each.

A *series* has a column of memory and an order (a time, hours since a start, rounds, requests done, states); what stands beside it
(load, phase, process, total) goes with each sample, and what distinguishes its columns (`prefix_on`, `0_8_0`) is the variant.
An *experiment* has settings of a server as columns and a result: a word (`ok`, `oom`), or figures. Each row of it is a try.

`forms.grammar` says what a name is, this module asks the cells, and `Rows` of the source get what comes of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oomdoc.ingest.base import TEXT_CAP, Rows
from oomdoc.ingest.forms import grammar
from oomdoc.ingest.forms.cells import UnreadableError, is_number, null, number_of, with_points, writes_commas
from oomdoc.ingest.forms.grammar import Column, column_of
from oomdoc.ingest.outcome_words import outcome_of
from oomdoc.ingest.request_keys import moment
from oomdoc.ingest.setting_names import WEAK, settings_in
from oomdoc.ingest.vocabulary import foreign_program
from oomdoc.units import GIB, KIB, MIB, parse_age, parse_size

Values = Mapping[str, Any]
_MOST_TRIES = 200  # a person's experiment; a longer table is a log
_FOREIGN = 2  # columns of another program's table
_FIT = 0.7  # of the cells of a column must be what its name says
_MOST = 64 << 40
_CLOCK = re.compile(r"(?:(?P<year>\d{4})[-/])?(?:(?P<month>\d\d?)[-/.](?P<day>\d\d?)[ T])?(?P<hour>\d\d?):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.\d+)?)?")  # fmt: skip
_DAYS = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
_DAY_MONTH = re.compile(r"(?i)(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6},? )?(?:(?P<day>\d\d?)\.? (?P<month>[a-z]{3})[a-z]{0,6}|(?P<month2>[a-z]{3})[a-z]{0,6} (?P<day2>\d\d?))(?:,? (?P<hour>\d\d?):(?P<minute>\d\d))?")  # fmt: skip
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SPOKEN = frozenset(("run", "config", "configuration", "setup", "args", "flags", "variant", "case", "mode", "settings", "command", "cmd", "try", "what", "change", "test", "options"))  # fmt: skip


@dataclass(frozen=True)
class Series:
    """Which column is what in a table of memory over time."""

    memory: tuple[tuple[str, Column, str], ...]  # name, what it is, the unit of bare cells
    totals: tuple[tuple[str, Column, str], ...]
    axis: str = ""
    role: str = ""
    seconds: float = 0.0
    state: str = ""
    who: tuple[str, ...] = ()
    variant: tuple[str, ...] = ()
    running: str = ""
    requests: str = ""


@dataclass(frozen=True)
class Experiment:
    """Which column is what in a table of tries."""

    settings: tuple[tuple[str, str], ...]  # name, flag
    conditions: tuple[str, ...]
    outcome: str
    figures: tuple[tuple[str, str, str], ...]  # name, quantity, unit
    spread: tuple[tuple[str, str, str], ...] = ()  # name, flag, value: the outcomes with one setting stand side by side


@dataclass(frozen=True)
class Own:
    """What a table tells beside what the vocabulary knows."""

    series: Series | None
    experiment: Experiment | None
    commas: bool = False  # `5,86` is less than six, and `27.424` twenty-seven thousand

    @property
    def names(self) -> frozenset[str]:
        """The columns that are understood."""
        found: set[str] = set()
        if self.series:
            one = self.series
            found |= {name for name, _, _ in (*one.memory, *one.totals)} | {one.axis, one.state, one.running, one.requests, *one.who, *one.variant}  # fmt: skip
        if self.experiment:
            two = self.experiment
            found |= {name for name, _ in two.settings} | {name for name, _, _ in two.figures} | {two.outcome, *two.conditions}  # fmt: skip
        return frozenset(found - {""})


# ---- cells that quote a line

_QUOTED = re.compile(
    r"[`\"']?(?P<name>[A-Za-z][\w /-]{3,40}?)(?:: | = |=)(?P<value>-?\d[\d,]{0,20}(?:\.\d{1,9})?)(?: ?(?P<unit>[A-Za-z]{1,8}))?[`\"'.]?"
)
"""`GPU KV cache size: 1,024 tokens`: a statement of a log in a cell, name and unit with the value."""


_STATEMENT = re.compile(r"(?:^|[|,;\t`\"' ])(?:[\w-]+ ){1,6}[\w-]+: -?\d[\d,.]{0,20} (?:[KMGT]i?B|tokens)\b")


def _quoted(values: Values) -> Values:
    """A record whose cells quote statements, each under the name that the statement has; any other record as it is."""
    found: dict[str, Any] = {}
    if any("=" in name or ":" in name for name in values):
        return values  # a line of pairs, and no table
    for name, cell in values.items():
        match = (
            _QUOTED.fullmatch(cell.strip())
            if isinstance(cell, str) and len(cell) < 100 and not is_number(cell)
            else None
        )
        if match is None or any(True for _ in settings_in(cell)):
            found[name] = cell
        else:
            found[f"{match['name']} {match['unit'] or ''}".strip()] = match["value"]
    return found


# ---- cells that point to another row

_AS_BEFORE = re.compile(
    r"(?i)(?:the )?(?:same|ditto|dito|idem|again|as (?:above|before)|unchanged|\"|″|〃)"
    r"(?: as(?: (?:run|row|try|no\.?|number))? ?#?(?P<number>\d{1,3}))?(?P<more>[,;+] ?.{1,80})?"
)
_NAMED_ROWS = 200


class Abridged:
    """Fills in cells that only say that they are as in the row before, or in one that is named by its number.

    >>> rows = Abridged()
    >>> [rows.whole(row)["kv"] for row in ({"run": "1", "kv": "fp8"}, {"run": "2", "kv": "same"}, {"run": "3", "kv": "auto"}, {"run": "4", "kv": "same as 2, TP 2"})]
    ['fp8', 'fp8', 'auto', 'fp8, TP 2']
    """

    def __init__(self) -> None:
        self._before: dict[str, Any] = {}
        self._rows: dict[str, Values] = {}

    def whole(self, values: Values) -> Values:
        """The record with such cells filled in; a cell whose other row is not known stays as it is."""
        found = {name: self._cell(name, cell) if isinstance(cell, str) else cell for name, cell in values.items()}
        self._before.update((name, cell) for name, cell in found.items() if not null(cell))
        if found and len(self._rows) < _NAMED_ROWS:
            self._rows[str(next(iter(found.values()))).strip(" #.")] = found
        return found

    def _cell(self, name: str, cell: str) -> Any:
        match = _AS_BEFORE.fullmatch(cell.strip()) if len(cell) < 120 else None
        if match is None:
            return cell
        base = self._rows.get(match["number"], {}).get(name) if match["number"] else self._before.get(name)
        return cell if base is None else f"{base}{match['more'] or ''}"


# ---- what a table is


def is_of_own(names: Sequence[str]) -> bool:
    """Whether names of columns can be those of a series or an experiment: a look at the header alone."""
    roles = [column_of(name).role for name in names if name]
    if len(roles) >= 2 and any(grammar.service(name)[0] for name in names):
        return True
    words = [grammar.pieces(name) for name in names if name]
    # `config; generation tokens/s`: the settings stand in the cells
    if any(each and each[-1] in _SPOKEN for each in words) and any(_quantity(each, column_of(name))[0] for each, name in zip(words, filter(None, names), strict=True)):  # fmt: skip
        return True
    return len(roles) >= 2 and (grammar.MEMORY in roles or grammar.SETTING in roles) and sum(role == grammar.FIGURE for role in roles) <= len(roles) - 1  # fmt: skip


def may_quote(lines: Sequence[str]) -> bool:
    """Whether rows below the first line hold a log's statement in a cell, so that this header need not name a quantity."""
    return not any(letter.isdigit() for letter in lines[0]) and any(_STATEMENT.search(line) for line in lines[1:])


def own_of(records: Sequence[Values], tables: frozenset[str] = frozenset()) -> Own | None:
    """The series and the experiment in some records; None for neither. `tables` are those that the vocabulary fills from them."""
    abridged = Abridged()
    records = [abridged.whole(_quoted(record)) for record in records]
    commas = writes_commas(records)
    if commas:
        records = [with_points(record) for record in records]
    columns = {name: column_of(name) for record in records for name in record}
    if not columns or len(columns) > 200:
        return None
    series = _series(records, columns, tables)
    experiment = _experiment(records, columns, tables)
    return Own(series, experiment, commas) if series or experiment else None


def _told(records: Sequence[Values], name: str) -> list[Any]:
    return [record[name] for record in records if name in record and not null(record[name])]


def _share(cells: Sequence[Any], fits: Any) -> float:
    return sum(bool(fits(cell)) for cell in cells) / len(cells) if cells else 0.0


def _is_size(cell: Any) -> bool:
    return is_number(cell) or (isinstance(cell, str) and parse_size(cell) is not None)


def _is_text(cell: Any) -> bool:
    return isinstance(cell, str) and not is_number(cell)


def _series(records: Sequence[Values], columns: Mapping[str, Column], tables: frozenset[str]) -> Series | None:
    if "request" in tables or len(records) < 2:
        return None
    sizes = [
        (
            name,
            column,
            _share_unit(_told(records, name)) if column.unit == "%" else column.unit or _bare(_told(records, name)),
        )
        for name, column in columns.items()
        if column.role in (grammar.MEMORY, grammar.TOTAL) and _share(_told(records, name), _is_size) >= _FIT
    ]
    memory = tuple(size for size in sizes if size[1].role == grammar.MEMORY and (size[1].unit or size[1].resource))
    if not memory or sum(bool(foreign_program(name)) for name in columns) >= _FOREIGN:
        return None
    found: dict[str, str] = {}
    texts: list[str] = []
    who: list[str] = []
    for name, column in columns.items():
        cells = _told(records, name)
        role = column.role
        if role in (grammar.ELAPSED, grammar.ORDINAL, grammar.STATE) and _share(cells, lambda cell: isinstance(cell, str) and _in_year(cell) is not None) >= _FIT:  # fmt: skip
            role = grammar.TIME  # `Mon 3 Nov` under `day`
        if role == grammar.TIME and _share(cells, _stamp) < _FIT:
            role = grammar.ELAPSED if _share(cells, is_number) >= _FIT else grammar.STATE
        elif role == grammar.ELAPSED and _share(cells, lambda cell: moment(cell) is not None) >= _FIT:
            role = grammar.TIME
        elif role in (grammar.ELAPSED, grammar.ORDINAL, grammar.REQUESTS, grammar.RUNNING) and _share(cells, _counted) < _FIT:  # fmt: skip
            role = grammar.STATE if role in (grammar.ELAPSED, grammar.ORDINAL) else ""
        elif role == grammar.RUNNING and "%" in name:
            role = ""  # a share of time in which a device was busy
        elif role == grammar.STATE and _share(cells, is_number) >= _FIT:
            role = grammar.ORDINAL
        if role == grammar.STATE:
            texts.append(name)
        elif role == grammar.WHO:
            who.append(name)
        elif role:
            found.setdefault(role, name)
    axis_role = next((role for role in (grammar.TIME, grammar.ELAPSED, grammar.ORDINAL, grammar.REQUESTS) if role in found), "")  # fmt: skip
    axis = found.get(axis_role, "")
    states = {column.state for _, column, _ in memory if column.state}
    varied = tuple(name for name, column in columns.items() if column.role == grammar.SETTING)
    if axis_role in (grammar.ORDINAL, grammar.REQUESTS) and not texts and len({str(cell) for cell in _told(records, axis)}) < min(3, len(records)):  # fmt: skip
        axis = axis_role = ""
    named = bool(who or varied)
    if not (axis or texts or (len(states) >= 2 and named) or (states and len(who) >= 2)):
        return None
    if varied and not axis and not texts and len(states) < 2:
        return None  # an experiment
    known = "gpu_sample" in tables or "process_memory" in tables or "gpu_process" in tables
    beside = grammar.RUNNING in found or grammar.REQUESTS in found or any(column.variant or column.state for _, column, _ in memory)  # fmt: skip
    clocked = axis_role == grammar.TIME and _share(_told(records, axis), lambda cell: moment(cell) is None) >= _FIT
    if known and not beside and not clocked and axis_role != grammar.ELAPSED:
        return None  # the vocabulary has all of it
    if axis_role == grammar.ORDINAL and not texts and not beside and all(not column.resource for _, column, _ in memory):  # fmt: skip
        return None  # `index, memory.used`: a list, and no series
    return Series(
        memory, tuple(size for size in sizes if size[1].role == grammar.TOTAL), axis, axis_role,
        columns[axis].seconds if axis else 0.0, texts[0] if texts else "", tuple(who), varied,
        found.get(grammar.RUNNING, ""), found.get(grammar.REQUESTS, ""),
    )  # fmt: skip


def _experiment(records: Sequence[Values], columns: Mapping[str, Column], tables: frozenset[str]) -> Experiment | None:
    if not 2 <= len(records) <= _MOST_TRIES or tables & {"gpu_process", "cluster_event"}:
        return None
    if any((column.role == grammar.TIME or "time" in grammar.pieces(name)[:1]) and _share(_told(records, name), _stamp) >= _FIT for name, column in columns.items()):  # fmt: skip
        return _measured(records, columns, tables)
    settings: list[tuple[str, str]] = []
    conditions: list[str] = []
    figures: list[tuple[str, str, str]] = []
    outcome = _outcome_column(records, columns)
    on_device = any(column.role == grammar.WHO and set(grammar.pieces(name)) & {"gpu", "device", "card"} for name, column in columns.items())  # fmt: skip
    spread = _spread(records, columns)
    apart = {name for name, _, _ in spread}
    for name, column in columns.items():
        cells = _told(records, name)
        words = grammar.pieces(name)
        if not cells or name in apart or name == outcome or _just_counts(words, cells):
            continue
        if _share(cells, _asked_for) >= _FIT:
            figures.append((name, "requested_bytes", ""))
        elif "cache" in words and len(words) <= 3 and _share(cells, _is_kv_dtype) == 1:
            settings.append((name, "kv_cache_dtype"))
        elif outcome and set(words) & _PROMPTS and "tokens" in words and not (set(words) & {"s", "sec", "cached", "hit"}) and _share(cells, is_number) == 1:  # fmt: skip
            conditions.append(name)
        elif column.role == grammar.SETTING and _can_be(column.setting, cells):
            settings.append((name, column.setting))
        elif _share(cells, _is_text) == 1 and len(words) <= 2 and _share(cells, _is_switch) >= _FIT:
            settings.append((name, "_".join(words)))
        elif words and words[-1] in _SPOKEN and _says_settings(cells):
            settings.append((name, ""))
        elif column.role in (grammar.ORDINAL, grammar.RUNNING, grammar.REQUESTS, grammar.WHO, grammar.STATE) or (
            outcome and column.role == grammar.FIGURE and _sorts(cells, len(records))
        ):
            conditions.append(name)
        elif column.role in (grammar.FIGURE, grammar.MEMORY) and _share(cells, _is_size) >= _FIT:
            quantity, unit = _quantity(words, _with_unit(column, cells))
            if not quantity and list(words) == ["tokens"] and any(found == "kv_bytes" for _, found, _ in figures):
                quantity = "kv_tokens"  # beside the bytes of a pool: what it holds
            if column.role == grammar.MEMORY and not quantity and on_device:
                quantity = "gpu_bytes"
            figures.append((name, quantity, unit))
    varied = [flag for name, flag in settings if len({str(cell) for cell in _told(records, name)}) > 1]
    asked = outcome and any(quantity == "requested_bytes" for _, quantity, _ in figures)
    if not varied and not spread and not asked:
        return _measured(records, columns, tables)
    if spread:
        return Experiment(tuple(settings), tuple(conditions), "", (), spread)
    spoken = any(_says_settings(_told(records, name)) for name, flag in settings if not flag or flag == "mode")
    strong = [flag for flag in varied if flag and (flag not in WEAK or (flag == "mode" and spoken))] + [""] * spoken
    if outcome:
        told = {outcome_of(str(cell), True) for cell in _told(records, outcome)}
        if not strong and told != {True, False}:
            return None
    elif not any(quantity for _, quantity, _ in figures) or (not strong and not any(quantity in _TELLING for _, quantity, _ in figures)):  # fmt: skip
        return None
    if "request" in tables and not strong and not asked:
        return None
    return Experiment(tuple(settings), tuple(conditions), outcome, tuple(figures))


def _outcome_column(records: Sequence[Values], columns: Mapping[str, Column]) -> str:
    """The column that says what became of each try: by its name, else the only one whose cells say it; "" for none."""
    told = {name: cells for name in columns if (cells := _told(records, name)) and not any(map(is_number, cells))}
    for name, cells in told.items():
        by_name = columns[name].role == grammar.OUTCOME or (columns[name].setting == "start_order" and _share(cells, _is_switch) == 1)  # fmt: skip
        if by_name and _share(cells, _is_outcome) >= 0.5:
            return name
    said = [
        name for name, cells in told.items()
        if columns[name].role in (grammar.FIGURE, grammar.STATE) and _share(cells, _is_switch) < 1 and _share(cells, _is_outcome) >= _SAYS
        and {outcome_of(str(cell), True) for cell in cells} >= {True, False}
    ]  # fmt: skip
    return said[0] if len(said) == 1 else ""


_SAYS = 0.75  # of the cells of a column whose name is not known tell an outcome
_PROMPTS = frozenset(("prompt", "input", "context"))
_ASKED_FOR = re.compile(
    r"(?i)\b(?:tr(?:ied|ying) to allocate|fail(?:ed|ure) to allocate|allocat(?:e|ing|ion) of|could not allocate|cannot allocate)\s{1,3}(?P<size>\d[\d.,]{0,12}\s?[KMGT]i?B)\b"
)
"""What an allocator was asked for when it failed, in a cell that quotes its message."""


def _asked_for(cell: Any) -> bool:
    return isinstance(cell, str) and _ASKED_FOR.search(cell) is not None


_KIND = 32  # letters: longer is a sentence about what became of it


def _sorts(cells: Sequence[Any], records: int) -> bool:
    """Whether a column names the kind of each try: a few words that come again (`chat`, `scoring`), and no line of its log."""
    return len(cells) == records and all(len(str(cell)) <= _KIND for cell in cells) and _share(cells, _is_text) == 1 and 2 <= len({str(cell) for cell in cells}) <= records // 2  # fmt: skip


_KV_DTYPE = re.compile(r"(?i)auto|default|fp8(?:_e[45]m[23])?|b?fp?16|bfloat16|float16|int8|(?:8|16)[- ]bit")


def _is_kv_dtype(cell: Any) -> bool:
    return isinstance(cell, str) and _KV_DTYPE.fullmatch(cell.strip()) is not None


def _just_counts(words: Sequence[str], cells: Sequence[Any]) -> bool:
    """Whether a column merely numbers the rows: no two tries have the same, so it is no condition that they could share."""
    return len(words) <= 2 and len(cells) >= 2 and [str(cell).strip(" #.") for cell in cells] == [str(at) for at in range(1, len(cells) + 1)]  # fmt: skip


def _spread(records: Sequence[Values], columns: Mapping[str, Column]) -> tuple[tuple[str, str, str], ...]:
    """Columns that are headed by a value of one setting and hold what became of it (`TP 1 | TP 2 | TP 4`): name, setting, value."""
    found: list[tuple[str, str, str]] = []
    for name in columns:
        tried = list(settings_in(name))
        cells = _told(records, name)
        if len(tried) == 1 and tried[0].value and (tried[0].at, tried[0].end) == (0, len(name)) and cells and _share(cells, _is_outcome) == 1:  # fmt: skip
            found.append((name, tried[0].flag, tried[0].value))
    return tuple(found) if len(found) >= 2 and len({flag for _, flag, _ in found}) == 1 else ()


def _is_outcome(cell: Any) -> bool:
    return not is_number(cell) and outcome_of(str(cell), True) is not None


_KNOWN_BETTER = frozenset(("request", "engine_stat", "metric"))
"""Tables whose rows are moments or requests: what is in them is folded by views."""
_LEAST_MEASURED = 2
_NAMED_FIRST = 2  # columns that say what a row was measured under


def _measured(records: Sequence[Values], columns: Mapping[str, Column], tables: frozenset[str]) -> Experiment | None:
    """A table of what users see (latencies, hit rates) under conditions that are no settings: sources, routes, set sizes, hours."""
    known = tables & _KNOWN_BETTER
    if known and "request" not in known and not any(column.role == grammar.TIME for column in columns.values()):
        # moments without a time are rows that somebody folded: what users see beside them is told nowhere else
        known = known if not any(grammar.service(name)[0] for name in columns) else frozenset()
    if known or len(records) < _LEAST_MEASURED:
        return None
    figures: list[tuple[str, str, str]] = []
    conditions: list[str] = []
    for name, column in columns.items():
        cells = _told(records, name)
        words = grammar.pieces(name)
        quantity, unit = _quantity(words, column)
        if not cells:
            continue
        if _share(cells, lambda cell: is_number(cell) or _lasting(cell)) >= _FIT and (quantity or len(conditions) >= _NAMED_FIRST):  # fmt: skip
            figures.append((name, quantity, unit))
        elif len(conditions) < _NAMED_FIRST:
            conditions.append(name)
    if not conditions or not any(quantity in _SEEN for _, quantity, _ in figures):
        return None
    return Experiment((), tuple(conditions), "", tuple(figures))


def _lasting(cell: Any) -> bool:
    return isinstance(cell, str) and grammar.seconds_of(cell, "s") is not None


_SEEN = frozenset(("ttft_s", "tpot_s", "latency_s", "hit_rate"))
_TELLING = frozenset(("hit_tokens", "hit_rate", "kv_tokens", "kv_bytes"))


def _says_settings(cells: Sequence[Any]) -> bool:
    return any(any(True for _ in settings_in(str(cell))) for cell in cells)


def _can_be(flag: str, cells: Sequence[Any]) -> bool:
    if flag == "gpu_memory_utilization":
        return _share(cells, lambda cell: is_number(cell) and 0 < number_of(cell)[0] <= 1) >= _FIT
    return True


def _is_switch(cell: Any) -> bool:
    return str(cell).strip().lower() in ("on", "off", "true", "false", "yes", "no", "enabled", "disabled", "with", "without", "default")  # fmt: skip


def _with_unit(column: Column, cells: Sequence[Any]) -> Column:
    """The column with the unit of bytes that its cells name, where its own name has none (`16.44 GiB` below `loading took`)."""
    if column.unit or not all(isinstance(cell, str) and not cell.strip().isdigit() for cell in cells):
        return column
    units = {match[1].upper() + ("iB" if match[2] or match[1] else "B") for cell in cells if (match := _SIZED.fullmatch(str(cell).strip()))}  # fmt: skip
    whole = all(_SIZED.fullmatch(str(cell).strip()) for cell in cells)
    return column._replace(unit=units.pop()) if whole and len(units) == 1 else column


_SIZED = re.compile(r"-?\d[\d,]{0,12}(?:\.\d{1,6})?\s?([KMGT])(i)?B?")
_SPARE = frozenset(("free", "available", "left", "livre", "libre", "frei", "freier", "libero", "wolne", "disponible", "disponivel"))  # fmt: skip
_SHARED = frozenset(("card", "gpu", "rank", "device", "user", "request", "req", "stream", "client", "replica", "node"))
_READING = frozenset(("prompt", "input", "in", "prefill", "prompts"))


def _quantity(words: Sequence[str], column: Column) -> tuple[str, str]:
    """Which of the figures that decide something a column is, "" for another; and its unit."""
    among = set(words)
    if column.unit == "%":
        return "", ""  # a share of memory in use is none of them
    if among & {"activation", "activations", "act"} and column.unit:
        return "activation_bytes", column.unit
    if among & {"graph", "graphs", "cudagraph", "cudagraphs"} and column.unit:
        return "graph_bytes", column.unit
    if ({"non", "torch"} <= among or {"outside", "torch"} <= among or among & {"nontorch", "nccl"}) and column.unit:
        return "non_torch_bytes", column.unit
    tokens = bool(among & {"token", "tokens", "tok", "toks"})
    rate = bool(among & {"rate", "ratio", "pct", "percent", "share"})
    per_second = bool(among & {"s", "sec", "second"}) and tokens
    if column.role == grammar.MEMORY:
        return {"host": "host_bytes", "container": "host_bytes", "host-used": "host_bytes", "gpu": "gpu_bytes"}.get(column.resource, ""), column.unit or "B"  # fmt: skip
    if among & {"hit", "hits", "cached", "reused"}:
        return "hit_rate" if rate else "hit_tokens", "%" if among & {"pct", "percent"} else ""
    if (
        tokens
        and not per_second
        and among
        & {
            "reusable",
            "total",
            "prompt",
            "query",
            "queries",
            "looked",
            "asked",
            "all",
            "working",
            "distinct",
            "corpus",
            "together",
        }
    ):
        return "asked_tokens", ""
    if per_second:  # of the whole server, and what it writes: reading prompts is another work
        return ("" if among & (_SHARED | _READING) else "tokens_s"), ""
    if among & {"kv", "pool"} and tokens:
        return "kv_tokens", ""
    if "kv" in among and column.unit:
        return "kv_bytes", column.unit
    if {"kv", "cache", "size"} <= among and not among & {"block", "blocks", "page", "dtype"}:
        return "kv_tokens", ""  # as the engine prints it: tokens
    if "cache" in among and among & _SPARE and column.unit and not among & {"page", "cpu", "host", "encoder", "disk"}:
        return "kv_bytes", column.unit
    if among & {"weights", "weight", "model", "pesos", "gewichte", "poids", "pesi", "wagi"} and column.unit:
        return "weights_bytes", column.unit
    if among & {"blocks"} and among & {"gpu", "kv"}:
        return "kv_blocks", ""
    if among & {"preemptions", "preempted", "preemption"}:
        return "preemptions", ""
    seen = grammar.service(" ".join(words))
    if seen[0]:
        return seen
    if among & {"errors", "error", "failed", "failures", "timeouts"} and not rate:
        return "failed", ""
    return "", column.unit


# ---- cells


def _stamp(cell: Any) -> bool:
    return moment(cell) is not None or (isinstance(cell, str) and (_CLOCK.fullmatch(cell.strip()) is not None or _in_year(cell) is not None))  # fmt: skip


def _in_year(cell: str) -> float | None:
    """Seconds since the year began of a day and month, with a clock or without; the year is not told.

    >>> _in_year("Mon 3 Nov"), _in_year("Jan 2, 06:00"), _in_year("run 3")
    (26438400.0, 108000.0, None)
    """
    match = _DAY_MONTH.fullmatch(cell.strip())
    if match is None or (month := (match["month"] or match["month2"]).lower()) not in _MONTHS:
        return None
    days = _DAYS[_MONTHS.index(month)] + int(match["day"] or match["day2"]) - 1
    return days * 86400.0 + int(match["hour"] or 0) * 3600 + int(match["minute"] or 0) * 60


def _counted(cell: Any) -> bool:
    return is_number(cell) or (isinstance(cell, str) and (parse_age(cell) is not None or _CLOCK.fullmatch(cell.strip()) is not None))  # fmt: skip


def _bare(cells: Sequence[Any]) -> str:
    """The unit of sizes that name none, by how large they are, as `cells.unit_of` does."""
    found = [number_of(cell)[0] for cell in cells if is_number(cell)]
    if not found:
        return ""
    return "GiB" if max(found) <= 1024 else "MiB" if max(found) < 1e7 else "B"


_WHOLE = {"%": 100.0, "1": 1.0}


def _share_unit(cells: Sequence[Any]) -> str:
    """Percent, or shares of one: no column in percent stays at one and below, with digits behind the point."""
    numbers = [number_of(cell)[0] for cell in cells if is_number(cell)]
    return "1" if numbers and max(numbers) <= 1 and any(number != int(number) for number in numbers) else "%"


_FACTORS = {"B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": 1024 * GIB}
_DECIMAL = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def size_of(cell: Any, unit: str, binary: bool) -> int | None:
    """A size in bytes; `MB` of a device is 2**20, of a host what it says."""
    if null(cell):
        return None
    if isinstance(cell, str) and not is_number(cell):
        size = parse_size(cell, binary=binary)
        return size if size is not None and size <= _MOST else None
    try:
        number, behind = number_of(cell)
    except UnreadableError:
        return None
    if behind:
        size = parse_size(str(cell), binary=binary)
        return size if size is not None and size <= _MOST else None
    factor = _FACTORS.get(unit) or (_FACTORS[unit[0] + "iB"] if binary else _DECIMAL[unit]) if unit else 1
    value = round(number * factor)
    return value if 0 <= value <= _MOST else None


# ---- rows


class Keeper:
    """Makes the rows of one table of a source."""

    def __init__(self, rows: Rows, own: Own, experiment: int, attempts: list[int]) -> None:
        self._rows, self._own, self._experiment, self._attempts = rows, own, experiment, attempts
        self._abridged = Abridged()
        self._first: float | None = None
        self._last = 0.0
        self._days = 0

    def record(self, line: int, values: Values) -> None:
        """The rows of one record."""
        values = self._abridged.whole(_quoted(values))
        if self._own.commas:
            values = with_points(values)
        if self._own.series:
            self._sample(line, self._own.series, values)
        if self._own.experiment:
            self._try(line, self._own.experiment, values)

    def _when(self, series: Series, cell: Any) -> tuple[float | None, float | None, int | None]:
        """Time, seconds since the first sample or a beginning, and the number in an order."""
        if null(cell):
            return None, None, None
        if series.role == grammar.TIME:
            t = moment(cell)
            if t is not None:
                return t, None, None
            match = _CLOCK.fullmatch(str(cell).strip())
            if match is None:
                day = _in_year(str(cell))
                return None, None if day is None else self._since(day), None
            seconds = int(match["hour"]) * 3600.0 + int(match["minute"]) * 60 + int(match["second"] or 0)
            if match["month"] and 1 <= int(match["month"]) <= 12:
                t = moment(f"{match['year']}-{int(match['month']):02}-{int(match['day']):02} {int(match['hour']):02}:{match['minute']}:{match['second'] or '00'}") if match["year"] else None  # fmt: skip
                if t is not None:
                    return t, None, None
                seconds += 86400 * (_DAYS[int(match["month"]) - 1] + int(match["day"]))
            elif self._first is not None and seconds + 86400 * self._days < self._last - 3600:
                self._days += 1
            return None, self._since(seconds + 86400 * (0 if match["month"] else self._days)), None
        if series.role == grammar.ELAPSED:
            if is_number(cell):
                number, behind = number_of(cell)
                factor = {"": series.seconds or 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}.get(behind.lower())  # fmt: skip
                return None, None if factor is None else number * factor, None
            age = parse_age(str(cell))
            match = _CLOCK.fullmatch(str(cell).strip())
            if age is None and match is not None:
                age = int(match["hour"]) * 3600.0 + int(match["minute"]) * 60 + int(match["second"] or 0)
            return None, age, None
        return None, None, round(number_of(cell)[0]) if is_number(cell) else None

    def _since(self, seconds: float) -> float:
        if self._first is None:
            self._first = seconds
        self._last = seconds
        return seconds - self._first

    def _sample(self, line: int, series: Series, values: Values) -> None:
        t, elapsed, step = self._when(series, values.get(series.axis)) if series.axis else (None, None, None)
        who = _named(series.who, values)
        varied = " ".join(str(values.get(name)) for name in series.variant if not null(values.get(name)))
        gpu = _number(values.get(next((name for name in series.who if set(grammar.pieces(name)) & {"gpu", "device", "card"}), "")))  # fmt: skip
        running = _number(values.get(series.running)) if series.running else None
        requests = _number(values.get(series.requests)) if series.requests else None
        state = values.get(series.state) if series.state else None
        for name, column, unit in series.memory:
            binary = column.resource == "gpu" or unit[1:2] == "i"
            share = _share_cell(values.get(name), unit) if unit in _WHOLE else None
            size = None if unit in _WHOLE else size_of(values.get(name), unit, binary)
            if size is None and share is None:
                continue
            device = column.gpu if column.gpu is not None else None if gpu is None else int(gpu)
            label = " ".join(part for part in (column.who, who) if part)
            if not label and column.resource == "gpu" and device is not None:
                label = f"GPU {device}"
            if not label and len(series.memory) > 1 and not column.state:
                label = name
            resource = column.resource or ("gpu" if device is not None or any(c.resource == "gpu" for _, c, _ in series.totals) else None)  # fmt: skip
            shown = " ".join(str(part) for part in (column.state, state) if part and not null(part)) or None
            self._rows.add(
                "process_memory", line, t=t, name=label or None, state=shown[:TEXT_CAP] if shown else None, resource=resource, bytes=size, share=share,
                elapsed_s=elapsed, step=step, running=running, requests=requests, variant=" ".join(part for part in (column.variant, varied) if part)[:200] or None,
            )  # fmt: skip

    def _try(self, line: int, plan: Experiment, values: Values) -> None:
        if plan.spread:
            for name, flag, value in plan.spread:  # each cell is a try of its own
                if not null(values.get(name)):
                    self._one(line, plan, values, name, ((flag, value),))
            return
        self._one(line, plan, values, plan.outcome)

    def _one(
        self, line: int, plan: Experiment, values: Values, outcome: str, more: Sequence[tuple[str, str]] = ()
    ) -> None:
        told = values.get(outcome) if outcome else None
        works = None if null(told) else outcome_of(str(told), True)
        if outcome and works is None and not plan.figures:
            return
        self._attempts[0] += 1
        attempt = self._attempts[0]
        others = {name for name, _, _ in plan.spread} - {outcome}
        shown = ", ".join(f"{name}={value}" for name, value in values.items() if not null(value) and name not in others)[:TEXT_CAP]  # fmt: skip
        for flag, value in more:
            self._rows.add("trial", line, experiment=self._experiment, attempt=attempt, flag=flag, value=value, works=works, text=shown)  # fmt: skip
        for name, flag in plan.settings:
            cell = values.get(name)
            if null(cell):
                continue
            spoken = list(settings_in(str(cell))) if not flag or flag == "mode" else []
            if spoken:
                for tried in spoken:
                    self._rows.add("trial", line, experiment=self._experiment, attempt=attempt, flag=tried.flag, value=tried.value, works=works, text=shown)  # fmt: skip
            else:
                self._rows.add("trial", line, experiment=self._experiment, attempt=attempt, flag=flag or "configuration", value=str(cell).strip()[:100], works=works, text=shown)  # fmt: skip
        for name in plan.conditions:
            if not null(values.get(name)):
                self._rows.add("trial", line, experiment=self._experiment, attempt=attempt, flag="@" + "_".join(grammar.pieces(name)), value=str(values[name]).strip()[:100], works=works, text=shown)  # fmt: skip
        for name, quantity, unit in plan.figures:
            cell = values.get(name)
            try:
                if quantity in (
                    "",
                    "hit_tokens",
                    "asked_tokens",
                    "kv_tokens",
                    "kv_blocks",
                    "preemptions",
                    "hit_rate",
                    "tokens_s",
                    "failed",
                ):
                    number = number_of(cell)[0] if not null(cell) else None
                    number = number / 100 if number is not None and quantity == "hit_rate" and (unit == "%" or number > 1) else number  # fmt: skip
                elif quantity == "requested_bytes":
                    asked = _ASKED_FOR.search(str(cell))
                    size = parse_size(asked["size"].replace(",", ""), binary=True) if asked else None
                    number = None if size is None else float(size)
                elif quantity in ("ttft_s", "tpot_s", "latency_s"):
                    number = grammar.seconds_of(str(cell), unit) if not null(cell) else None
                else:
                    number = float(found) if (found := size_of(cell, unit or "B", True)) is not None else None
                    if number is None and quantity == "kv_bytes" and not null(cell) and number_of(cell)[0] < 0:
                        number = -float(
                            size_of(-number_of(cell)[0], unit or "B", True) or 0
                        )  # less than nothing was left
            except UnreadableError:
                number = None
            if number is not None:
                self._rows.add("trial_figure", line, experiment=self._experiment, attempt=attempt, name="_".join(grammar.pieces(name))[:100], quantity=quantity or None, value=number)  # fmt: skip


def _share_cell(cell: Any, unit: str) -> float | None:
    """A share of one: of a cell in percent, or of one that is a share of one itself."""
    number = _number(cell)
    whole = _WHOLE["%"] if isinstance(cell, str) and cell.strip().endswith("%") else _WHOLE[unit]
    return round(number / whole, 6) if number is not None and 0 <= number <= whole else None


def _named(names: Sequence[str], values: Values) -> str:
    found = [f"{name} {values[name]}" if is_number(values[name]) else str(values[name]) for name in names if not null(values.get(name))]  # fmt: skip
    return " ".join(found)[:200]


def _number(cell: Any) -> float | None:
    try:
        return None if null(cell) else number_of(cell)[0]
    except UnreadableError:
        return None
