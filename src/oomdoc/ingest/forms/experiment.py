"""What somebody tried and what came of it, as people keep it in tables of their own.

An *experiment* has settings of a server as columns and a result: a word (`ok`, `oom`), or figures. Each row of it is a try.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from oomdoc.ingest.base import TEXT_CAP, Rows
from oomdoc.ingest.forms import grammar
from oomdoc.ingest.forms.cells import (
    FIT,
    UnreadableError,
    Values,
    filled,
    is_moment,
    is_number,
    is_size,
    is_text,
    null,
    number_of,
    share_of,
    size_of,
)
from oomdoc.ingest.forms.figures import figure_of, with_unit
from oomdoc.ingest.forms.grammar import Column
from oomdoc.ingest.outcome_words import outcome_of
from oomdoc.ingest.setting_names import WEAK, settings_in
from oomdoc.ingest.vocabulary.words import TIME_UNITS, named, word_set
from oomdoc.regexes import regex
from oomdoc.units import parse_size

_MOST_TRIES = 200  # a person's experiment; a longer table is a log


@dataclass(frozen=True)
class Experiment:
    """Which column is what in a table of tries."""

    settings: tuple[tuple[str, str], ...]  # name, flag
    conditions: tuple[str, ...]
    outcome: str
    figures: tuple[tuple[str, str, str], ...]  # name, quantity, unit
    spread: tuple[tuple[str, str, str], ...] = ()  # name, flag, value: the outcomes with one setting stand side by side


def experiment_of(
    records: Sequence[Values], columns: Mapping[str, Column], tables: frozenset[str]
) -> Experiment | None:
    """The experiment that some records are; None for another table."""
    if not 2 <= len(records) <= _MOST_TRIES or tables & {"gpu_process", "cluster_event", "container"}:
        return None
    outcome = _outcome_column(records, columns)
    dated = any((column.role == grammar.TIME or "time" in grammar.pieces(name)[:1]) and share_of(filled(records, name), is_moment) >= FIT for name, column in columns.items())  # fmt: skip
    if dated and not outcome:  # who notes what became of each try may note its day as well
        return _measured(records, columns, tables)
    settings: list[tuple[str, str]] = []
    conditions: list[str] = []
    figures: list[tuple[str, str, str]] = []
    on_device = any(column.role == grammar.WHO and set(grammar.pieces(name)) & {"gpu", "device", "card"} for name, column in columns.items())  # fmt: skip
    spread = _spread(records, columns)
    apart = {name for name, _, _ in spread}
    for name, column in columns.items():
        cells = filled(records, name)
        words = grammar.pieces(name)
        if not cells or name in apart or name == outcome or _just_counts(words, cells):
            continue
        if share_of(cells, _asked_for) >= FIT:
            figures.append((name, "requested_bytes", ""))
        elif "cache" in words and len(words) <= 3 and share_of(cells, _is_kv_dtype) == 1:
            settings.append((name, "kv_cache_dtype"))
        elif outcome and set(words) & _PROMPTS and "tokens" in words and not (set(words) & {"s", "sec", "cached", "hit"}) and share_of(cells, is_number) == 1:  # fmt: skip
            conditions.append(name)
        elif column.role == grammar.SETTING and _can_be(column.setting, cells):
            settings.append((name, column.setting))
        elif outcome and words in _OF_MEMORY and _can_be("gpu_memory_utilization", cells):
            settings.append((name, "gpu_memory_utilization"))
        elif share_of(cells, is_text) == 1 and len(words) <= 2 and share_of(cells, _is_switch) >= FIT:
            settings.append((name, "_".join(words)))
        elif words and words[-1] in SPOKEN and says_settings(cells):
            settings.append((name, ""))
        elif column.role in (grammar.ORDINAL, grammar.RUNNING, grammar.REQUESTS, grammar.WHO, grammar.STATE) or (
            outcome and column.role == grammar.FIGURE and _sorts(cells, len(records))
        ):
            conditions.append(name)
        elif column.role in (grammar.FIGURE, grammar.MEMORY) and share_of(cells, is_size) >= FIT:
            quantity, unit = figure_of(words, with_unit(name, column, cells))
            if not quantity and list(words) == ["tokens"] and any(found == "kv_bytes" for _, found, _ in figures):
                quantity = "kv_tokens"  # beside the bytes of a pool: what it holds
            if column.role == grammar.MEMORY and not quantity and on_device:
                quantity = "gpu_bytes"
            figures.append((name, quantity, unit))
    varied = [flag for name, flag in settings if len({str(cell) for cell in filled(records, name)}) > 1]
    asked = outcome and any(quantity == "requested_bytes" for _, quantity, _ in figures)
    if not varied and not spread and not asked:
        return _measured(records, columns, tables) or _judged(records, columns, outcome)
    if spread:
        return Experiment(tuple(settings), tuple(conditions), "", (), spread)
    spoken = any(says_settings(filled(records, name)) for name, flag in settings if not flag or flag == "mode")
    strong = [flag for flag in varied if flag and (flag not in WEAK or (flag == "mode" and spoken))] + [""] * spoken
    if outcome:
        outcomes = {outcome_of(str(cell), True) for cell in filled(records, outcome)}
        if not strong and outcomes != {True, False}:
            return None
    elif not any(quantity for _, quantity, _ in figures) or (not strong and not any(quantity in _DECIDING for _, quantity, _ in figures)):  # fmt: skip
        return (
            None if "cache_policy" in varied else _measured(records, columns, tables)
        )  # a policy alone may be one of routing
    if "request" in tables and not strong and not asked:
        return None
    return Experiment(tuple(settings), tuple(conditions), outcome, tuple(figures))


def in_ms(experiment: Experiment, records: Sequence[Values]) -> Experiment:
    """An experiment whose latencies name no unit, in milliseconds where one of them is 1000 or more: a table has one writer."""
    bare = {name for name, quantity, _ in experiment.figures if quantity in _DURATIONS and not TIME_UNITS.keys() & set(grammar.pieces(name)) - {"min", "m"}}  # fmt: skip
    if not any(is_number(cell) and number_of(cell)[1] == "" and number_of(cell)[0] >= 1000 for name in bare for cell in filled(records, name)):  # fmt: skip
        return experiment
    return replace(experiment, figures=tuple((name, quantity, "ms" if name in bare else unit) for name, quantity, unit in experiment.figures))  # fmt: skip


OF_SERVING = named("of_serving")
"""What a server of models is loaded with or given: a condition of this name says that a table of outcomes is about one."""


def _judged(records: Sequence[Values], columns: Mapping[str, Column], outcome: str) -> Experiment | None:
    """What became of tries under conditions that are no settings: an input's length, a limit, how many cards; some worked, some did not."""
    if not outcome or columns[outcome].role not in (grammar.OUTCOME, grammar.SETTING):
        return None
    if {outcome_of(str(cell), True) for cell in filled(records, outcome)} != {True, False}:
        return None
    others = [name for name, column in columns.items() if name != outcome and column.role != grammar.MEMORY and filled(records, name)]  # fmt: skip
    of_serving = [name for name in others if set(grammar.pieces(name)) & OF_SERVING and share_of(filled(records, name), _is_amount) >= FIT]  # fmt: skip
    if not of_serving or any(column.role == grammar.TIME for column in columns.values()):
        return None
    return Experiment((), tuple(others), outcome, ())


_AMOUNT = regex(r"[~<>≈]?\s?\d[\d.,]{0,12}\s?(?:[kKMGT](?:i?B)?|tokens|tok|x)?")


def _is_amount(cell: Any) -> bool:
    return is_number(cell) or (isinstance(cell, str) and _AMOUNT.fullmatch(cell.strip()) is not None)


def _outcome_column(records: Sequence[Values], columns: Mapping[str, Column]) -> str:
    """The column that says what became of each try: by its name, else the only one whose cells say it; "" for none."""
    texts = {name: cells for name in columns if (cells := filled(records, name)) and not any(map(is_number, cells))}
    for name, cells in texts.items():
        by_name = columns[name].role == grammar.OUTCOME or (columns[name].setting == "start_order" and share_of(cells, _is_switch) == 1)  # fmt: skip
        if by_name and share_of(cells, _is_outcome) >= 0.5:
            return name
    said = [
        name for name, cells in texts.items()
        if columns[name].role in (grammar.FIGURE, grammar.STATE) and share_of(cells, _is_switch) < 1 and share_of(cells, _is_outcome) >= _SAYS
        and {outcome_of(str(cell), True) for cell in cells} >= {True, False}
    ]  # fmt: skip
    return said[0] if len(said) == 1 else ""


_SAYS = 0.75  # of the cells of a column whose name is not known are an outcome
_PROMPTS = word_set("prompt input context")
_ASKED_FOR = regex(
    r"(?i)\b(?:tr(?:ied|ying) to allocate|fail(?:ed|ure) to allocate|allocat(?:e|ing|ion) of|could not allocate|cannot allocate)\s{1,3}(?P<size>\d[\d.,]{0,12}\s?[KMGT]i?B)\b"
)
"""What an allocator was asked for when it failed, in a cell that quotes its message."""


def _asked_for(cell: Any) -> bool:
    return isinstance(cell, str) and _ASKED_FOR.search(cell) is not None


_OF_MEMORY = (["gpu", "util"], ["gpu", "utilization"], ["gpu", "mem"], ["gpu", "memory"])
"""What a share is called that a start was given, in a table of what became of starts."""
_KIND = 32  # letters: longer is a sentence about what became of it


def _sorts(cells: Sequence[Any], records: int) -> bool:
    """Whether a column names the kind of each try: a few words that come again (`chat`, `scoring`), and no line of its log."""
    return len(cells) == records and all(len(str(cell)) <= _KIND for cell in cells) and share_of(cells, is_text) == 1 and 2 <= len({str(cell) for cell in cells}) <= records // 2  # fmt: skip


_KV_DTYPE = regex(r"(?i)auto|default|fp8(?:_e[45]m[23])?|b?fp?16|bfloat16|float16|int8|(?:8|16)[- ]bit")


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
        cells = filled(records, name)
        if len(tried) == 1 and tried[0].value and (tried[0].at, tried[0].end) == (0, len(name)) and cells and share_of(cells, _is_outcome) == 1:  # fmt: skip
            found.append((name, tried[0].flag, tried[0].value))
    return tuple(found) if len(found) >= 2 and len({flag for _, flag, _ in found}) == 1 else ()


def _is_outcome(cell: Any) -> bool:
    return not is_number(cell) and outcome_of(str(cell), True) is not None


_KNOWN_BETTER = word_set("request engine_stat metric")
"""Tables whose rows are moments or requests: what is in them is folded by views."""
_LEAST_MEASURED = 2
_NAMED_FIRST = 2  # columns that say what a row was measured under


def _is_status(cell: Any) -> bool:
    return str(cell).strip().isdigit() and 200 <= int(cell) < 600


def _measured(records: Sequence[Values], columns: Mapping[str, Column], tables: frozenset[str]) -> Experiment | None:
    """A table of what users see (latencies, hit rates) under conditions that are no settings: sources, routes, set sizes, hours."""
    known = tables & _KNOWN_BETTER
    if known and "request" not in known and not any(column.role == grammar.TIME for column in columns.values()):
        # moments without a time are rows that somebody folded: what users see beside them is told nowhere else
        known = known if not any(grammar.service(name)[0] for name in columns) else frozenset()
    if "request" not in known and {"asked_tokens", "hit_tokens"} <= {
        figure_of(grammar.pieces(name), column)[0] for name, column in columns.items()
    }:
        known = frozenset()  # what was looked up and found in each hour stands in no table of moments
    if known or len(records) < _LEAST_MEASURED:
        return None
    if any({"status", "code", "http"} & {*grammar.pieces(name)} and not grammar.fate(name) and share_of(filled(records, name), _is_status) == 1 for name in columns):  # fmt: skip
        return None  # calls, one by one
    figures: list[tuple[str, str, str]] = []
    conditions: list[str] = []
    for name, column in columns.items():
        cells = filled(records, name)
        words = grammar.pieces(name)
        quantity, unit = figure_of(words, column)
        if not cells:
            continue
        if share_of(cells, lambda cell: is_number(cell) or _is_duration(cell)) >= FIT and (quantity or len(conditions) >= _NAMED_FIRST or set(words) & _QUEUES):  # fmt: skip
            figures.append((name, quantity, unit))
        elif len(conditions) < _NAMED_FIRST:
            conditions.append(name)
    told = {quantity for _, quantity, _ in figures}
    if not conditions or not (told & _OF_USERS or ("failed" in told and told & {"answered", "sent"})):
        return None
    return Experiment((), tuple(conditions), "", tuple(figures))


_QUEUES = word_set("queue queued waiting backlog pending")
"""What a row came to, and never what it was measured under."""
_OF_USERS = word_set("ttft_s tpot_s latency_s hit_rate")
_DECIDING = word_set("hit_tokens hit_rate kv_tokens kv_bytes")
SPOKEN = named("spoken")


def _is_duration(cell: Any) -> bool:
    return isinstance(cell, str) and grammar.seconds_of(cell, "s") is not None


def says_settings(cells: Sequence[Any]) -> bool:
    """Whether a cell speaks of settings of a server."""
    return any(any(True for _ in settings_in(str(cell))) for cell in cells)


def _can_be(flag: str, cells: Sequence[Any]) -> bool:
    return flag != "gpu_memory_utilization" or share_of(cells, lambda cell: is_number(cell) and 0 < number_of(cell)[0] <= 1) >= FIT  # fmt: skip


def _is_switch(cell: Any) -> bool:
    return str(cell).strip().lower() in ("on", "off", "true", "false", "yes", "no", "enabled", "disabled", "with", "without", "default")  # fmt: skip


class ExperimentRows:
    """Makes the rows of one experiment: `trial` and `trial_figure`. `number` is its own in the source, `next_attempt` gives those of its tries."""

    def __init__(self, rows: Rows, plan: Experiment, number: int, next_attempt: Callable[[], int]) -> None:
        self._rows, self._plan, self._experiment, self._next_attempt = rows, plan, number, next_attempt

    def add(self, line: int, values: Values) -> None:
        """The tries of one record."""
        plan = self._plan
        for name, flag, value in plan.spread:  # each cell is a try of its own
            if not null(values.get(name)):
                self._one(line, values, name, ((flag, value),))
        if not plan.spread:
            self._one(line, values, plan.outcome)

    def _one(self, line: int, values: Values, outcome: str, more: Sequence[tuple[str, str]] = ()) -> None:
        plan = self._plan
        said = values.get(outcome) if outcome else None
        works = None if null(said) else outcome_of(str(said), True)
        if outcome and works is None and not plan.figures:
            return
        attempt = self._next_attempt()
        others = {name for name, _, _ in plan.spread} - {outcome}
        shown = ", ".join(f"{name}={value}" for name, value in values.items() if not null(value) and name not in others)[:TEXT_CAP]  # fmt: skip
        tried: list[tuple[str, str | None]] = [*more]
        for name, flag in plan.settings:
            cell = values.get(name)
            if null(cell):
                continue
            spoken = list(settings_in(str(cell))) if not flag or flag == "mode" else []
            tried += [(one.flag, one.value) for one in spoken] or [(flag or "configuration", str(cell).strip()[:100])]
        tried += [("@" + "_".join(grammar.pieces(name)), str(values[name]).strip()[:100]) for name in plan.conditions if not null(values.get(name))]  # fmt: skip
        for flag, value in tried:
            self._rows.add("trial", line, experiment=self._experiment, attempt=attempt, flag=flag, value=value, works=works, text=shown)  # fmt: skip
        for name, quantity, unit in plan.figures:
            number = _value_of(values.get(name), quantity, unit)
            if number is not None:
                self._rows.add("trial_figure", line, experiment=self._experiment, attempt=attempt, name="_".join(grammar.pieces(name))[:100], quantity=quantity or None, value=number)  # fmt: skip


_DURATIONS = ("ttft_s", "tpot_s", "latency_s")
_PLAIN = frozenset(("", "hit_tokens", "asked_tokens", "kv_tokens", "kv_blocks", "preemptions", "hit_rate", "tokens_s", "sent", "answered", "failed"))  # fmt: skip
"""Figures that are a number and need no unit."""


def _value_of(cell: Any, quantity: str, unit: str) -> float | None:
    """The figure that a cell gives, in bytes, seconds, tokens or as a share; None for none."""
    if null(cell):
        return None
    try:
        if quantity in _PLAIN:
            number = number_of(cell)[0]
            return number / 100 if quantity == "hit_rate" and (unit == "%" or number > 1) else number
        if quantity == "requested_bytes":
            asked = _ASKED_FOR.search(str(cell))
            size = parse_size(asked["size"].replace(",", ""), binary=True) if asked else None
            return None if size is None else float(size)
        if quantity in _DURATIONS:
            return grammar.seconds_of(str(cell), unit)
        size = size_of(cell, unit or "B", True)
        if size is not None:
            return float(size)
        if quantity == "kv_bytes" and number_of(cell)[0] < 0:
            return -float(size_of(-number_of(cell)[0], unit or "B", True) or 0)  # less than nothing was left
    except UnreadableError:
        pass
    return None
