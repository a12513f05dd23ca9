"""Tables that people keep themselves: memory over time with what it is compared by, and experiments with what came of each.

`grammar` says what a name is, `series` and `experiment` ask the cells, and `Rows` of the source get what comes of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from oomdoc.ingest.base import TEXT_CAP, Rows
from oomdoc.ingest.forms import grammar
from oomdoc.ingest.forms.cells import (
    CLOCK,
    DAYS_BEFORE,
    UnreadableError,
    Values,
    is_number,
    null,
    number_of,
    number_or_none,
    seconds_in_year,
    size_of,
)
from oomdoc.ingest.forms.experiment import ASKED_FOR, SPOKEN, Experiment, experiment_of
from oomdoc.ingest.forms.figures import figure_of
from oomdoc.ingest.forms.grammar import column_of
from oomdoc.ingest.forms.prepare import Abridged, unquoted, with_points, writes_commas
from oomdoc.ingest.forms.series import WHOLE, Series, named_cells, series_of, share_cell
from oomdoc.ingest.outcome_words import outcome_of
from oomdoc.ingest.request_keys import moment
from oomdoc.ingest.setting_names import settings_in
from oomdoc.units import parse_age, parse_size


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


def is_of_own(names: Sequence[str]) -> bool:
    """Whether names of columns can be those of a series or an experiment: a look at the header alone."""
    roles = [column_of(name).role for name in names if name]
    if len(roles) >= 2 and any(grammar.service(name)[0] for name in names):
        return True
    words = [grammar.pieces(name) for name in names if name]
    # `config; generation tokens/s`: the settings stand in the cells
    if any(each and each[-1] in SPOKEN for each in words) and any(figure_of(each, column_of(name))[0] for each, name in zip(words, filter(None, names), strict=True)):  # fmt: skip
        return True
    return len(roles) >= 2 and (grammar.MEMORY in roles or grammar.SETTING in roles) and sum(role == grammar.FIGURE for role in roles) <= len(roles) - 1  # fmt: skip


def own_of(records: Sequence[Values], tables: frozenset[str] = frozenset()) -> Own | None:
    """The series and the experiment in some records; None for neither. `tables` are those that the vocabulary fills from them."""
    abridged = Abridged()
    records = [abridged.whole(unquoted(record)) for record in records]
    commas = writes_commas(records)
    if commas:
        records = [with_points(record) for record in records]
    columns = {name: column_of(name) for record in records for name in record}
    if not columns or len(columns) > 200:
        return None
    series = series_of(records, columns, tables)
    experiment = experiment_of(records, columns, tables)
    return Own(series, experiment, commas) if series or experiment else None


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
        values = self._abridged.whole(unquoted(values))
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
            match = CLOCK.fullmatch(str(cell).strip())
            if match is None:
                day = seconds_in_year(str(cell))
                return None, None if day is None else self._since(day), None
            seconds = int(match["hour"]) * 3600.0 + int(match["minute"]) * 60 + int(match["second"] or 0)
            if match["month"] and 1 <= int(match["month"]) <= 12:
                t = moment(f"{match['year']}-{int(match['month']):02}-{int(match['day']):02} {int(match['hour']):02}:{match['minute']}:{match['second'] or '00'}") if match["year"] else None  # fmt: skip
                if t is not None:
                    return t, None, None
                seconds += 86400 * (DAYS_BEFORE[int(match["month"]) - 1] + int(match["day"]))
            elif self._first is not None and seconds + 86400 * self._days < self._last - 3600:
                self._days += 1
            return None, self._since(seconds + 86400 * (0 if match["month"] else self._days)), None
        if series.role == grammar.ELAPSED:
            if is_number(cell):
                number, behind = number_of(cell)
                factor = {"": series.seconds or 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}.get(behind.lower())  # fmt: skip
                return None, None if factor is None else number * factor, None
            age = parse_age(str(cell))
            match = CLOCK.fullmatch(str(cell).strip())
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
        who = named_cells(series.who, values)
        varied = " ".join(str(values.get(name)) for name in series.variant if not null(values.get(name)))
        gpu = number_or_none(values.get(next((name for name in series.who if set(grammar.pieces(name)) & {"gpu", "device", "card"}), "")))  # fmt: skip
        running = number_or_none(values.get(series.running)) if series.running else None
        requests = number_or_none(values.get(series.requests)) if series.requests else None
        state = values.get(series.state) if series.state else None
        for name, column, unit in series.memory:
            binary = column.resource == "gpu" or unit[1:2] == "i"
            share = share_cell(values.get(name), unit) if unit in WHOLE else None
            size = None if unit in WHOLE else size_of(values.get(name), unit, binary)
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
                    asked = ASKED_FOR.search(str(cell))
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
