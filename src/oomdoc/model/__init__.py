"""What a report may see: frozen dataclasses that hold every number a report prints, and their JSON form.

The fields are the public contract (docs/json.md); sizes are bytes, times epoch seconds (ISO 8601 in JSON), shares 0..1,
None is unknown. This module knows neither DuckDB nor rules nor how a report looks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oomdoc.units import show_time

SCHEMA_VERSION = "1"


@dataclass(frozen=True)
class Evidence:
    """One observation that weighs for or against a cause.

    `weight` is what it added to the log-odds (natural logarithm); the factor in words is exp(|weight|). Weight 0: it holds, but
    a stronger item of the same group counted. `refs` are `path:line`.
    """

    id: str
    says: str
    weight: float
    refs: tuple[str, ...] = ()
    values: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Action:
    """Something to do: `changes` maps engine flags (underscores) to new values, numbers where they are numbers."""

    id: str
    do: str
    why: str
    cost: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    verify: str = ""
    was: Mapping[str, Any] = field(default_factory=dict)  # the present values of the same flags, where known
    predicted: Mapping[str, Any] = field(default_factory=dict)  # what the change gives, computed; {} = not computed
    proof: str = ""  # how that is known: a replay, the failure's own books, or the start-up arithmetic; "" = not proven
    when: str = (
        "now"  # or "after-load-test": it changes what clients or other systems see, so it is tried under load first
    )
    values: Mapping[str, float] = field(default_factory=dict)  # the numbers behind its sentences


@dataclass(frozen=True)
class NotHelping:
    """Something that one might try and that would not help here: what, why, and where a log itself advises it (or None)."""

    what: str
    why: str
    ref: str | None = None


@dataclass(frozen=True)
class Unanswered:
    """Evidence that the bundle could not answer: `asks` is its sentence without numbers, `lacks` the sources that would tell.

    An empty `lacks` means that nothing is missing: the question does not arise here.
    """

    id: str
    asks: str
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Diagnosis:
    """One cause with its probability and what made it so.

    `own_probability` is what prior and weights give by themselves; `probability` is the share among the rivals or, where no weights
    were fitted, the larger of the two (docs/method.md).
    """

    rank: int
    cause: str
    category: str
    reason: str | None
    probability: float
    own_probability: float
    prior: float
    title: str
    summary: str
    evidence: tuple[Evidence, ...]
    against: tuple[Evidence, ...]
    unknown: tuple[str, ...]
    actions: tuple[Action, ...]
    references: tuple[Mapping[str, str], ...] = ()
    not_helping: tuple[NotHelping, ...] = ()
    command: str | None = None  # the whole launch command with the best action's changes; None = not told
    until_then: str | None = None  # the action (its id) to take now where the first one waits for a load test
    unanswered: tuple[Unanswered, ...] = ()  # `unknown` in words, for causes of 5 % or more


@dataclass(frozen=True)
class FirstFailure:
    """The line that failed first: `path:line`, its time, its text."""

    ref: str
    time: float | None
    text: str


@dataclass(frozen=True)
class Impact:
    """What an incident cost. None is unknown; `down_s` counts to the next time that the server was ready."""

    down_s: float | None = None
    back_ref: str | None = None
    restarts: int | None = None
    requests_lost: int | None = None
    preemptions: int | None = None


FINEST = 0.99
"""Nothing is stated surer: one bundle in a hundred and fifty labelled ones is the finest that could be counted."""
CLOSE = 0.1
"""Least probability of a second cause that a report without a decision names beside its first."""


def closest(diagnoses: Sequence[Diagnosis]) -> tuple[Diagnosis, ...]:
    """What an undecided report names: its first cause, and the second where it is near enough to be looked at."""
    return tuple(item for place, item in enumerate(diagnoses[:2]) if place == 0 or item.probability >= CLOSE)


@dataclass(frozen=True)
class Incident:
    """One failure or episode. `kind` says what was seen first (the kinds of view `incident`)."""

    id: str
    kind: str
    phase: str | None
    started: float | None
    engine: str | None
    first_failure: FirstFailure | None
    cascade: tuple[str, ...]
    diagnoses: tuple[Diagnosis, ...]
    impact: Impact = Impact()


@dataclass(frozen=True)
class Range:
    """A figure between two bounds, both included, and where it is known from (`physics.interval.ORIGINS`)."""

    low: float
    high: float
    origin: str


@dataclass(frozen=True)
class LedgerEntry:
    """Where the memory of one device was at one moment of one engine start and rank. A part that is None is unknown.

    `moment`: `plan` (what utilization grants, and the engine's formula leaves for KV; free is what is outside the plan),
    `loaded` (weights), `profiled` (weights and the peak of activations, no pool yet), `rest` (a server that is up),
    `failure`. Each closes by itself: parts of two moments are never added. `intervals` are the parts between the bounds that
    rounding or source leave, with their origin, `expected` what model, flags and device ought to give, `unusual` parts well
    above what such a server's are. `closes`: the parts, known or as expected, add up to the device; None = cannot be told.
    """

    engine: str | None
    rank: int | None
    device: str | None
    total_bytes: int | None
    parts: Mapping[str, int | None]
    kv_bytes_per_token: float | None
    kv_pool_tokens: int | None
    refs: tuple[str, ...]
    moment: str | None = None
    intervals: Mapping[str, Range] = field(default_factory=dict)
    expected: Mapping[str, Range] = field(default_factory=dict)
    closes: bool | None = None
    contradictions: tuple[str, ...] = ()
    unusual: tuple[str, ...] = ()


def last_moments(ledger: Sequence[LedgerEntry]) -> tuple[LedgerEntry, ...]:
    """Of each rank of each start the entry of its last known moment: one row per device, as a report shows it."""
    found: dict[tuple[str | None, int | None], LedgerEntry] = {}
    for entry in ledger:
        found.setdefault((entry.engine, entry.rank), entry)
    return tuple(found.values())


@dataclass(frozen=True)
class Flag:
    """An engine setting and where it is known from: logged, config, command, environment, metrics, file, default."""

    value: Any
    origin: str
    ref: str | None = None


@dataclass(frozen=True)
class Engine:
    """One engine start."""

    id: str
    ref: str
    started: float | None
    version: str | None
    model: str | None
    generation: str | None
    flags: Mapping[str, Flag]
    last_milestone: str | None
    failed: bool
    outcome: str = "not-told"  # refused, died, ended, degraded, stuck, grew, served, starting, not-told
    outcome_ref: str | None = None


@dataclass(frozen=True)
class SetAside:
    """What was seen and is not this server's: what it says, where, and why it does not count."""

    says: str
    refs: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class Missing:
    """Something that was cut off: what is missing, and where (a path, or `path:line` where it stops)."""

    what: str
    where: str


@dataclass(frozen=True)
class Bundle:
    """What was handed over. `sha256` is that of the file given, or of the `sha256sum` listing of a folder in path order.

    `complete` is False where something of it was cut off, which `missing` names.
    """

    name: str
    sha256: str
    bytes: int
    files: int
    complete: bool = True
    missing: tuple[Missing, ...] = ()


@dataclass(frozen=True)
class SourceRow:
    """What was read of one source."""

    path: str
    kind: str
    bytes: int
    lines: int
    rows: int
    problems: int
    lookalikes: int = 0


@dataclass(frozen=True)
class Unread:
    """What was not read, and why."""

    path: str
    why: str


@dataclass(frozen=True)
class Uncollected:
    """What the collector could not have: `why` says how to get it, too."""

    what: str
    why: str
    ref: str


@dataclass(frozen=True)
class Coverage:
    """Everything read, everything not read, and what the collector says it could not have."""

    sources: tuple[SourceRow, ...]
    unread: tuple[Unread, ...]
    uncollected: tuple[Uncollected, ...] = ()


@dataclass(frozen=True)
class CollectNext:
    """What would move the ranking most: the missing evidence, the command that fetches it, causes it would separate."""

    what: str
    command: str
    separates: tuple[str, ...]
    moves: float


@dataclass(frozen=True)
class Watch:
    """A quantity that fails when it goes on: what it was, and from where on it is near failing.

    `value` and `threshold` are in `unit` (bytes, share of 0..1, ratio, count). `alert` is its rule in docs/monitoring, if any.
    """

    id: str
    says: str
    value: float
    threshold: float
    unit: str
    near: bool
    refs: tuple[str, ...]
    alert: str | None


@dataclass(frozen=True)
class ExcerptLine:
    """A physical line of a source, cut where it is very long."""

    line: int
    text: str


@dataclass(frozen=True)
class Excerpt:
    """The lines of a reference and some around them, `first` to `last` being those of the reference itself."""

    ref: str
    first: int
    last: int
    lines: tuple[ExcerptLine, ...]


@dataclass(frozen=True)
class Link:
    """One step of the way from cause to effect, in the numbers of this bundle."""

    says: str
    refs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Step:
    """One step of the arithmetic that leads to a probability: the odds times `factor` give `probability`."""

    says: str
    factor: float
    probability: float
    evidence: str | None = None  # the id of the evidence that it is; None for start, rivals and limits


@dataclass(frozen=True)
class TrackRecord:
    """How many of the verdicts like this one were right on bundles that nobody had seen before."""

    says: str
    right: int
    verdicts: int


@dataclass(frozen=True)
class Patch:
    """A change as it is pasted: `form` is flags, environment, kubernetes, helm or compose.

    `fits`: the bundle shows that the server is run that way. `whole`: nothing has to be filled in or joined by hand.
    """

    form: str
    text: str
    fits: bool = False
    whole: bool = True


@dataclass(frozen=True)
class Story:
    """The first screen: the answers about this bundle, in words and figures that all forms of a report share.

    `chain` goes from cause to effect, `who` says whose requests made the difference, `cost` what users lost of it, `steps` lead to the
    probability of the first cause, `brief` is the whole in at most five lines.
    """

    title: str
    ran_out: str
    where: str | None
    when: str | None
    chain: tuple[Link, ...]
    who: str | None
    cost: str | None
    steps: tuple[Step, ...]
    record: TrackRecord | None
    change: str | None
    patches: tuple[Patch, ...]
    keeps: tuple[str, ...]  # causes (ids) that something in the bundle keeps in play beside the first
    brief: tuple[str, ...]
    host: str | None = None  # the machine that ran the server, as the evidence names it
    replay: str | None = (
        None  # how soon users are served with the change, by its replay of the recorded traffic; None = not replayed
    )


@dataclass(frozen=True, repr=False)
class Report:
    """The whole answer. `verdict` is diagnosed, healthy, not-memory, undecided or no-server."""

    oomdoc_version: str
    rules_version: str
    bundle: Bundle
    verdict: str
    diagnoses: tuple[Diagnosis, ...]
    incidents: tuple[Incident, ...]
    ledger: tuple[LedgerEntry, ...]
    engines: tuple[Engine, ...]
    traffic: Mapping[str, Any]
    coverage: Coverage
    collect_next: tuple[CollectNext, ...]
    warnings: tuple[str, ...]
    timeline: Mapping[str, Any] = field(default_factory=dict)  # series and marks over time (module `timeline`)
    excerpts: tuple[Excerpt, ...] = ()  # lines behind the references, where they were asked for
    fix_replay: Mapping[str, Any] | None = None  # the recorded traffic with the fix, likewise
    schema_version: str = SCHEMA_VERSION
    watch: tuple[Watch, ...] = ()
    set_aside: tuple[SetAside, ...] = ()
    story: Story | None = None

    def __repr__(self) -> str:
        first = self.diagnoses[0] if self.diagnoses else None
        cause = f", {first.cause} {first.probability:.2f}" if first else ""
        return f"<oomdoc.Report of {self.bundle.name}: {self.verdict}{cause}>"

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of the contract: plain dicts, lists, numbers, strings and None, in a fixed order."""
        plain: dict[str, Any] = _plain(self)
        return {"schema_version": plain.pop("schema_version"), **plain}


_TIMES = frozenset({"started", "time", "from_t", "to_t"})


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            item.name: show_time(getattr(value, item.name))
            if item.name in _TIMES
            else _plain(getattr(value, item.name))
            for item in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return None if value != value else round(value, 6)
    return value
