"""What a morning report holds: frozen dataclasses with every figure that a form of it prints, and their JSON form.

Made by `sweep.trends` out of a store, printed by `report.morning`; neither knows the other. Shares are 0 to 1, nights are
ISO dates, None is unknown.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

MORNING_VERSION = "1"


@dataclass(frozen=True)
class Counts:
    """Bundles of the night: found = told tonight + unchanged. `read` were read, `judged` by new rules on kept evidence.

    `failing` have an incident with a memory cause that nobody had seen before; `healthy`, `not_memory`, `undecided` and `no_server` are
    verdicts of those told tonight. `errors` could not be read, tonight or earlier and still not.
    """

    found: int
    unchanged: int
    read: int
    judged: int
    copies: int
    failing: int
    healthy: int
    not_memory: int
    undecided: int
    errors: int
    bytes: int
    no_server: int = 0


@dataclass(frozen=True)
class Group:
    """Incidents of tonight with one fingerprint. `new` says that no night before had it; `first_night` is its first.

    `incidents`, `bundles` and `hosts` are tonight's, `before` the incidents of earlier nights. `probability` is the highest.
    `example`, `ref`, `text`, `action` are those of the most probable incident.
    """

    fingerprint: str
    new: bool
    cause: str | None
    reason: str | None
    probability: float | None
    model: str | None
    version: str | None
    flags: str | None
    incidents: int
    bundles: int
    hosts: tuple[str, ...]
    first_night: str
    before: int
    nights: int
    example: str
    ref: str | None
    text: str | None
    action: str | None


@dataclass(frozen=True)
class Resolved:
    """A fingerprint of the nights before that did not come back, though `read` bundles of its hosts or its model were read."""

    fingerprint: str
    cause: str | None
    model: str | None
    version: str | None
    incidents: int
    last_night: str
    read: int


@dataclass(frozen=True)
class Trend:
    """Bundles read and failing tonight against the nights before, for one value of `dimension`: cause, model, version, host.

    For a cause `bundles` are all of the night. `before_*` sum the nights of the window that have data.
    """

    dimension: str
    value: str
    bundles: int
    failing: int
    before_bundles: int
    before_failing: int


@dataclass(frozen=True)
class ChangePoint:
    """Failures became more or less frequent when `what` moved: the version, a flag, or only the time.

    `subject` is the model, or the cause for `what` = night. `p` is the chance of so large a difference without a change
    (Fisher's exact test, times the number of comparisons made).
    """

    what: str
    subject: str
    before: str
    after: str
    since: str
    before_failing: int
    before_bundles: int
    after_failing: int
    after_bundles: int
    p: float


@dataclass(frozen=True)
class Outlier:
    """A host that fails more often than the others; `p` as in `ChangePoint`."""

    host: str
    failing: int
    bundles: int
    rest_failing: int
    rest_bundles: int
    p: float


@dataclass(frozen=True)
class ReadError:
    """A bundle that could not be read: nothing is known of it."""

    bundle: str
    host: str | None
    pod: str | None
    status: str
    why: str
    since: str


@dataclass(frozen=True)
class Failing:
    """One bundle with new incidents of a memory cause."""

    bundle: str
    host: str | None
    verdict: str | None
    cause: str | None
    probability: float | None
    model: str | None
    version: str | None
    new_failures: int


@dataclass(frozen=True)
class Standing:
    """One incident of a bundle that is there tonight, new or not. `title` is its verdict in words, `since` the night that saw it first.

    `state` is new (nobody had seen its fingerprint), known, acknowledged or gone, the last two set by people, who may leave a
    `note`. `cured` is the note of the last incident alike (same cause and model, else same cause) that was said to be gone.
    `event` is what was seen first. `page` is the report of the bundle, beside the morning report, where reports are written.
    """

    fingerprint: str
    state: str
    bundle: str
    name: str
    host: str | None
    model: str | None
    version: str | None
    cause: str | None
    title: str
    probability: float | None
    event: str | None
    started: str | None
    since: str
    ref: str | None
    text: str | None
    action: str | None
    note: str | None
    cured: str | None
    page: str | None
    times: int = 1  # how often it is in the bundle: the starts of a crash loop are one row
    cost: str | None = None  # what users lost, as the bundle's report says it
    verdict: str | None = None  # of the bundle: of an undecided one the cause is only the closest


@dataclass(frozen=True)
class Quiet:
    """A bundle that was told tonight and has no incident: healthy, without a server, or undecided with nothing that failed."""

    bundle: str
    name: str
    verdict: str
    probability: float | None
    model: str | None
    version: str | None
    page: str | None


@dataclass(frozen=True)
class Morning:
    """The whole report of a night. `previous` is the night before it in the store, None on the first."""

    night: str
    previous: str | None
    oomdoc_version: str
    rules_version: str
    counts: Counts
    groups: tuple[Group, ...]
    resolved: tuple[Resolved, ...]
    trends: tuple[Trend, ...]
    changes: tuple[ChangePoint, ...]
    outliers: tuple[Outlier, ...]
    errors: tuple[ReadError, ...]
    failing: tuple[Failing, ...]
    warnings: tuple[str, ...]
    standing: tuple[Standing, ...] = ()
    quiet: tuple[Quiet, ...] = ()
    morning_version: str = MORNING_VERSION

    @property
    def new_incidents(self) -> int:
        """Incidents of tonight with a memory cause."""
        return sum(group.incidents for group in self.groups if group.cause not in NO_FAILURE)

    def to_dict(self) -> dict[str, Any]:
        """Plain dicts, lists, numbers, strings and None, in a fixed order."""
        plain = dataclasses.asdict(self)
        return {"morning_version": plain.pop("morning_version"), **plain}


NO_FAILURE = ("healthy", "not-memory", None)
"""First causes of an incident that is no failure of memory."""
