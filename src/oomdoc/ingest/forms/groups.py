"""Records of one source, gathered until it is known what they are, then read: tables in wide form, in long form, and series.

A table in long form has a row for each value, its name in one column and the value in another. Where the names are quantities,
rows of one moment and device become one record; where they are series of an exporter, each row is a sample of its series.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from oomdoc.ingest import device_metrics
from oomdoc.ingest.benchmark_sums import of_statistics
from oomdoc.ingest.forms import grammar
from oomdoc.ingest.forms.believe import SAMPLE, Plan, plan_for
from oomdoc.ingest.forms.cells import is_number, null
from oomdoc.ingest.forms.fill import Filler
from oomdoc.ingest.forms.own import OwnRows, own_of
from oomdoc.ingest.forms.prepare import with_points, writes_commas
from oomdoc.ingest.forms.series import Series, of_both
from oomdoc.ingest.forms.text import NAMELESS
from oomdoc.ingest.forms.trees import Record
from oomdoc.ingest.metrics import kept_name
from oomdoc.ingest.request_keys import moment
from oomdoc.ingest.vocabulary import meanings
from oomdoc.ingest.vocabulary.words import UNITS, named, word_set
from oomdoc.regexes import regex

_NAME_COLUMNS = named("name_columns")
_VALUE_COLUMNS = word_set(
    "value asint asdouble countervalue val _value reading amount v y sample values measure result"
)
_UNIT_COLUMNS = word_set("unit units")
_LABEL_COLUMNS = word_set("labels tags label scope")
_TIME_COLUMNS = word_set(
    "time timeunixnano t ts clock timestamp timestamps date datetime _time at when @timestamp scraped_at sampled_at"
)
_STATISTICS = ("maximum", "max", "average", "avg", "mean", "last", "p99", "p95", "total", "sum", "minimum", "min")
"""What a store of metrics calls the value of a window, the first that is there."""
_MARGINALIA = frozenset(("table", "_start", "_stop", "result", "help", "type", "", "#group", "job"))
_BARE_UNITS = frozenset(("", "1", "count", "ratio", "none", "short", "percentunit"))
"""Units that leave a number as it is; the last three are Grafana's, of a whole panel."""
_BOOKS = frozenset(("table", "_start", "_stop", "result", ""))  # of Influx's tables: they tell no two moments apart
_KNOWN_SHARE = 0.3  # of the names must be quantities: an exporter lists temperatures, clocks and power beside what is asked for here
_MOST_RECORDS = 400_000  # of a table in long form


@dataclass
class _Long:
    """The columns of a table in long form."""

    name: str
    value: str
    unit: str | None
    series: bool


@dataclass
class Group:
    """Records of one place: of one list, of one table."""

    pending: list[Record] = field(default_factory=list)
    plan: Plan | None = None
    long: _Long | None = None
    own_rows: OwnRows | None = None
    decided: bool = False
    commas: bool = False  # its numbers are written with a decimal comma
    merged: dict[tuple[Any, ...], Record] = field(default_factory=dict)  # the record at hand for each moment and device
    records: list[Record] = field(default_factory=list)


def short(name: str) -> str:
    """The last step of a dotted name, in small letters."""
    return name.rsplit(".", 1)[-1].strip().lower() if "." in name.strip(".") else name.strip().lower()


def long_form(records: Sequence[Mapping[str, Any]]) -> _Long | None:
    """The columns of a long form; None for another table."""
    names = {short(name): name for record in records for name in record}
    names |= {name: name for record in records for name in record if name in _NAME_COLUMNS}
    value = next((names[name] for name in names if name in _VALUE_COLUMNS and any(is_number(record.get(names[name])) for record in records)), None)  # fmt: skip
    if value is None and _TIME_COLUMNS & names.keys():
        value = next((names[name] for name in _STATISTICS if name in names and any(is_number(record.get(names[name])) for record in records)), None)  # fmt: skip
    if value is None:
        return None
    for wanted in names:
        if wanted not in _NAME_COLUMNS or names[wanted] == value:
            continue
        named = {str(record.get(names[wanted])) for record in records if isinstance(record.get(names[wanted]), str)}
        numeric = sum(is_number(record.get(value)) or null(record.get(value)) for record in records)
        if not named or numeric < 0.7 * len(records):
            continue
        series = sum(kept_name(name.partition("{")[0]) is not None and not _of_device(name) for name in named)
        unit = next((names[name] for name in names if name in _UNIT_COLUMNS), None)
        if 2 * series >= len(named):
            return _Long(names[wanted], value, unit, True)
        if sum(bool(meanings(_instance(name)[1])) for name in named) >= _KNOWN_SHARE * len(named):
            return _Long(names[wanted], value, unit, False)
    return None


def _of_device(name: str) -> bool:
    """Whether a series is a device's by its name alone, and none of an exporter whose labels tell which."""
    return name not in device_metrics.NAMES and any(match.quantity.id.startswith("gpu.") for match in meanings(name))


_STORED = regex(r"^prometheus\.googleapis\.com/(.+)/\w+$")  # as Google's store names a series of an exporter


def _instance(name: str) -> tuple[str, str]:
    """Whose a series is and its name, where a legend puts what tells it apart before the name that an exporter gave it.

    >>> _instance("i-07 1 nvidia_smi_memory_used"), _instance("Memory used"), _instance("prometheus.googleapis.com/vllm:x/gauge")
    (('i-07 1', 'nvidia_smi_memory_used'), ('', 'Memory used'), ('', 'vllm:x'))
    """
    whose, _, last = name.rpartition(" ")
    told = "_" in last and any(map(str.isdigit, whose)) and not meanings(name)
    return (whose, last) if told else ("", _STORED.sub(r"\1", name))


_PAIRED = regex(r'([A-Za-z_]\w*)\s*[=:]\s*"?([^",;{}]*)"?')
_OF_ROWS = named("of_rows")
_TRY = regex(
    r"(?i)\W*(?:attempt|start|run|try|trial|config(?:uration)?|setup|test|variant|experiment|launch|boot)[ _#.-]*(?:no\.? ?)?\w{1,12}\W*"
)
_CARD = regex(r"(?i)(?:gpu|card|device|npu|cuda)[ _:#-]{0,2}\d{1,3}")
_ONE_OF_SEVERAL = regex(
    r"(?i)(?!run|try|attempt|test|v\d|tp|dp|bs|ctx|p\d)[a-z][a-z_.-]{0,40}?[-_ .#]?\d{1,4}(?::\d{2,5})?|(?:\d{1,3}\.){3}\d{1,3}(?::\d{2,5})?"
)
_STATISTIC = regex(
    r"(?i)avg|average|mean|median|min(?:imum)?|max(?:imum)?|p\d\d(?:\.?\d{1,2})?|std(?:dev|_dev)?|count|sum|unit"
)
_DIFFERENCE = regex(r"(?i)\bvs\b|\bversus\b|\bdelta\b|\bdiff\w*|\bchange\b|\bgain\b|\bspeed-?up\b|\bratio\b|Δ")
_MEASURED = 2  # things that were compared, and rows whose names are known


def may_turn(names: Sequence[str]) -> bool:
    """Whether a table of these columns can stand on its side: a look at the header alone."""
    return len(names) > _MEASURED and (
        names[0].strip().lower() in _OF_ROWS or all(_TRY.fullmatch(name) for name in names[1:]) or (names[0] in ("", NAMELESS) and all(map(_CARD.fullmatch, names[1:])))
    )  # fmt: skip


def turned(records: Sequence[Record]) -> list[Record] | None:
    """The records of a table that stands on its side: a row for each quantity or setting, a column for each thing that was compared or tried.

    None for another table. Columns that only tell the difference of two others are left out; each record stands where the
    first latency does, or else the first setting or the outcome.

    >>> table = [Record(3, "", {"Metric": "P99 TTFT (ms)", "cold": "900", "warm": "80", "cold vs warm": "11x"}), Record(4, "", {"Metric": "KV cache usage", "cold": "41%", "warm": "44%", "cold vs warm": ""})]
    >>> [record.values for record in turned(table)]
    [{'variant': 'cold', 'P99 TTFT (ms)': '900', 'KV cache usage': '41%'}, {'variant': 'warm', 'P99 TTFT (ms)': '80', 'KV cache usage': '44%'}]
    """
    names = list(records[0].values) if records else []
    if not may_turn(names) or len(records) < _MEASURED:
        return None
    rows = {name: record for record in records if isinstance(name := record.values.get(names[0]), str)}
    tried = {name for name in rows if grammar.column_of(name).role in (grammar.SETTING, grammar.OUTCOME)}
    served = [name for name in rows if grammar.service(name)[0]]
    known = tried.union(served, (name for name in rows if meanings(name)))
    least = 0.7 * len(rows)
    compared = [name for name in names[1:] if not _DIFFERENCE.search(name) and sum(is_number(row.values.get(name)) or (bool(tried) and not null(row.values.get(name))) for row in rows.values()) >= least]  # fmt: skip
    if len(known) < _MEASURED or len(compared) < _MEASURED or all(map(_STATISTIC.fullmatch, names[1:])):
        return None
    of = {match.quantity.table for name in rows for match in meanings(name) if match.strong}
    cards = all(map(_CARD.fullmatch, compared)) and any(match.quantity.id.startswith("gpu.") for name in rows for match in meanings(name))  # fmt: skip
    who = "gpu" if cards else "replica" if all(map(_ONE_OF_SEVERAL.fullmatch, compared)) and of & {"engine_stat", "metric"} else ""  # fmt: skip
    if who and (cards or not tried):
        return [Record(records[0].line, records[0].context, {who: each, **{name: row.values.get(each) for name, row in rows.items()}}) for each in compared]  # fmt: skip
    if not (served or tried):
        return None
    first = rows[served[0] if served else next(name for name in rows if name in tried)]
    return [Record(first.line, first.context, {"variant": each, **{name: row.values.get(each) for name, row in rows.items()}}) for each in compared]  # fmt: skip


_CONTAINER = frozenset(("pids", "netio", "block io", "net io", "mem %", "mem_percent", "memperc"))
"""Columns beside which memory is a container's, and what there is of it its limit."""
_OF_TOTAL = regex(r"\s*(\d[\d.,]*\s?[A-Za-z]{0,5})\s*/\s*(\d[\d.,]*\s?[A-Za-z]{0,5})\s*")


def _of_totals(record: Record) -> Record:
    """A record whose cells "3817/9120" are two, what is used and what there is, where both have a meaning here."""
    halves = {name: found for name, value in record.values.items() if isinstance(value, str) and "/" in value and (found := _OF_TOTAL.fullmatch(value))}  # fmt: skip
    if not halves:
        return record
    values: dict[str, Any] = {}
    for name, value in record.values.items():
        found = halves.get(name)
        whole = re.sub("(?i)used?|usage", "limit" if _CONTAINER & {*map(str.lower, record.values)} else "total", name) if found else ""  # fmt: skip
        if found and whole != name and meanings(name) and meanings(whole):
            values[name], values[whole] = found[1], found[2]
        else:
            values[name] = value
    return record._replace(values=values) if values.keys() != record.values.keys() else record


def _without_series(plan: Plan, series: Series) -> Plan | None:
    """A plan without the memory of a process that has neither name nor number, or of which the series tells more: it tells the same, and when."""
    whose = () if of_both(series.memory) else ("process.name", "process.pid", "process.state")
    parts = tuple(
        part for part in plan.parts
        if part.entity.table != "process_memory" or {taken.quantity.id for taken in part.columns}.intersection(whose)
    )  # fmt: skip
    return replace(plan, parts=parts) if parts else None


def _without_settings(plan: Plan, settings: set[str]) -> Plan | None:
    """A plan without samples of devices that are no more than what starts were given."""
    parts = tuple(part for part in plan.parts if part.entity.table != "gpu_sample" or not {taken.name for taken in part.columns} <= settings)  # fmt: skip
    return replace(plan, parts=parts) if parts else None


class Gatherer:
    """All records of a source."""

    def __init__(self) -> None:
        self.filler = Filler()
        self._groups: dict[str, Group] = {}
        self._attempts = 0
        self._experiments = 0
        self.understood = 0

    def new_experiment(self) -> int:
        """The number of an experiment that stands outside of tables."""
        self._experiments += 1
        return self._experiments

    def new_attempt(self) -> int:
        """The number of the next try in this source."""
        self._attempts += 1
        return self._attempts

    def add(self, record: Record) -> bool | None:
        """Take a record; False where its group is known to be none of ours, None where nothing is decided yet."""
        record = _of_totals(record)
        group = self._groups.get(record.context)
        if group is None:
            if len(self._groups) >= 1000:
                return False
            group = self._groups[record.context] = Group()
        if not group.decided:
            group.pending.append(record)
            if len(group.pending) < SAMPLE:
                return None
            self._decide(group, record.context)
            return group.plan is not None or group.long is not None or group.own_rows is not None
        return self._read(group, record)

    def flush(self) -> None:
        """Decide about what was gathered, and read it: the source, or a table in it, ends here."""
        for context, group in self._groups.items():
            self._end(group, context)

    def forget(self, context: str) -> None:
        """The next records of this context are of another table."""
        group = self._groups.pop(context, None)
        if group is not None:
            self._end(group, context)

    def _end(self, group: Group, context: str) -> None:
        if not group.decided:
            self._decide(group, context)
        if group.merged:
            self._unmerge(group, context)

    def _decide(self, group: Group, context: str) -> None:
        group.decided = True
        pending, group.pending = group.pending, []
        if run := of_statistics([record.values for record in pending]):
            whole = {
                name: round(value) if name.endswith(("_tokens", "clients")) else value for name, value in run.items()
            }
            self.filler.rows.add("load_run", pending[0].line, run=1, text="a benchmark's statistics", **whole)
            self.understood += len(pending)
            return
        pending = turned(pending) or pending
        values = [record.values for record in pending]
        group.long = long_form(values) if values else None
        if group.long is None and values:
            group.commas = writes_commas(values)
            plain = [with_points(record) for record in values] if group.commas else values
            group.plan = plan_for(plain, context, pending[0].inherited)
            own = own_of(values, group.plan.tables if group.plan is not None else frozenset())
            if own is not None and own.series is not None and group.plan is not None:
                group.plan = _without_series(group.plan, own.series)
            if own is not None and own.experiment is not None and own.experiment.outcome and group.plan is not None:
                group.plan = _without_settings(group.plan, {name for name, _ in own.experiment.settings})
            if own is not None:
                self._experiments += own.experiment is not None
                group.own_rows = OwnRows(self.filler.rows, own, self._experiments, self.new_attempt)
                for name in sorted(own.names):
                    self.filler.column_taken(
                        pending[0].line, name, "a column of a series" if own.series else "a column of an experiment"
                    )
            if group.plan is not None:
                unknown = tuple(name for name in group.plan.unknown if own is None or name not in own.names)
                self.filler.announce(pending[0].line, replace(group.plan, unknown=unknown))
        elif group.long is not None:
            self.filler.column_taken(
                pending[0].line, group.long.name, "names of series" if group.long.series else "names of quantities"
            )
            self.filler.column_taken(pending[0].line, group.long.value, "their values")
        for record in pending:
            self._read(group, record)

    def _read(self, group: Group, record: Record) -> bool:
        if group.own_rows is not None:
            group.own_rows.record(record.line, record.values)
        if group.plan is not None:
            self.filler.record(record.line, group.plan, with_points(record.values) if group.commas else record.values)
        elif group.long is not None and group.own_rows is None:
            if group.long.series:
                self._sample(group.long, record)
            else:
                self._merge(group, group.long, record)
        elif group.own_rows is None:
            return False
        self.understood += 1
        return True

    def _sample(self, long: _Long, record: Record) -> None:
        t, labels = None, []
        for name, value in record.values.items():
            if name in (long.name, long.value, long.unit) or null(value):
                continue
            last = short(name)
            if last in _TIME_COLUMNS:
                t = moment(value)
            elif last in _LABEL_COLUMNS and isinstance(value, str):
                labels += _PAIRED.findall(value)
            elif last not in _MARGINALIA and isinstance(value, (str, int)) and len(labels) < 64:
                labels.append((re.sub(r"\W", "_", last), str(value)))
        series, _, own = str(record.values.get(long.name)).partition("{")  # a legend holds the labels as well
        labels += _PAIRED.findall(own)
        shown = ",".join(f'{name}="{value}"' for name, value in labels) if labels else None
        self.filler.series(record.line, t, series, shown, record.values.get(long.value))

    def _merge(self, group: Group, long: _Long, record: Record) -> None:
        common = {name: value for name, value in record.values.items() if name not in (long.name, long.value, long.unit) and name not in _BOOKS}  # fmt: skip
        common |= {key: cell for name, value in common.items() if short(name) in _LABEL_COLUMNS for key, cell in _PAIRED.findall(str(value))}  # fmt: skip
        whose, name = _instance(str(record.values.get(long.name)))
        if whose:
            common |= {"instance": whose, **({"gpu": whose.split()[-1]} if whose.split()[-1].isdigit() else {})}
        unit = record.values.get(long.unit) if long.unit else None
        key: tuple[Any, ...] = tuple(str(value) for value in common.values())
        value = record.values.get(long.value)
        if unit and not null(unit) and not null(value):
            unit = str(unit).removesuffix("y") if str(unit).endswith("By") else unit  # as UCUM writes bytes
            value = f"{value} {UNITS.get(str(unit).lower(), unit)}" if str(unit).lower() not in _BARE_UNITS else value
        found = group.merged.get(key)
        if found is not None and name not in found.values:
            found.values[name] = value
        elif len(group.records) < _MOST_RECORDS:  # the first of its key, or without a time the next sample
            group.merged[key] = Record(record.line, "/".join(common), {**common, name: value})
            group.records.append(group.merged[key])

    def _unmerge(self, group: Group, context: str) -> None:
        records, group.records, group.merged = group.records, [], {}
        for labels in dict.fromkeys(record.context for record in records):  # series of other labels are of other things
            alike = [record for record in records if record.context == labels]
            plan = plan_for([record.values for record in alike], context)
            if plan is None:
                continue
            self.filler.announce(alike[0].line, plan)
            for record in alike:
                self.filler.record(record.line, plan, record.values)


class OfLines:
    """What reads the lines of a text in one form: the records go to a gatherer."""

    def __init__(self, gatherer: Gatherer) -> None:
        self._gatherer = gatherer
