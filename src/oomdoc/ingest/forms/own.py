"""Tables that people keep themselves: memory over time with what it is compared by, and experiments with what came of each.

`grammar` says what a name is, `series` and `experiment` ask the cells, and `Rows` of the source get what comes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from oomdoc.ingest.base import Rows
from oomdoc.ingest.forms import grammar
from oomdoc.ingest.forms.believe import LISTED
from oomdoc.ingest.forms.cells import Values
from oomdoc.ingest.forms.experiment import OF_SERVING, SPOKEN, Experiment, ExperimentRows, experiment_of, in_ms
from oomdoc.ingest.forms.figures import figure_of
from oomdoc.ingest.forms.grammar import column_of
from oomdoc.ingest.forms.prepare import Abridged, unquoted, with_points, writes_commas
from oomdoc.ingest.forms.series import HEADING, Series, SeriesRows, series_of


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
    if grammar.OUTCOME in roles and any(OF_SERVING & set(grammar.pieces(name)) for name in names):
        return True
    served = [quantity for name in names if (quantity := grammar.service(name)[0])]
    if served and (len(roles) >= 2 or len(served) >= 2 or any(quantity != "latency_s" for quantity in served)):
        return True
    fates = {grammar.fate(name) for name in names if name}
    if "failed" in fates and fates & {"answered", "sent"}:
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
    columns = {name: column_of(name) for record in records for name in record if name != HEADING}
    if not columns or len(columns) > 200 or "JobID" in columns:  # of Slurm: `slurm_jobs`
        return None
    series = series_of(records, columns, tables)
    experiment = None if LISTED in tables else experiment_of(records, columns, tables)
    experiment = in_ms(experiment, records) if experiment else None
    return Own(series, experiment, commas) if series or experiment else None


class OwnRows:
    """Makes the rows of one table of a source."""

    def __init__(self, rows: Rows, own: Own, experiment: int, next_attempt: Callable[[], int]) -> None:
        self._commas = own.commas
        self._abridged = Abridged()
        self._series = SeriesRows(rows, own.series) if own.series else None
        self._experiment = ExperimentRows(rows, own.experiment, experiment, next_attempt) if own.experiment else None

    def record(self, line: int, values: Values) -> None:
        """The rows of one record."""
        values = self._abridged.whole(unquoted(values))
        if self._commas:
            values = with_points(values)
        if self._series:
            self._series.add(line, values)
        if self._experiment:
            self._experiment.add(line, values)
