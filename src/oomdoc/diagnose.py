"""The wiring: bundle -> sources -> ingest -> tables -> views -> rules -> evidence -> diagnosis.

`analyze` reads like that line; each arrow is a function of another module. The result is an `Analysis`: the report, and
the tables behind it for further questions.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from oomdoc import ingest
from oomdoc.assemble.assemble import assemble
from oomdoc.assemble.details import detailed
from oomdoc.errors import BundleError, UsageError
from oomdoc.evidence.questions import KeptTables
from oomdoc.evidence.store import Store
from oomdoc.faults import unwritable
from oomdoc.intake.bundle import DEFAULT_LIMITS, Intake, Limits, open_bundle
from oomdoc.judge.rules import Rule, load_rules
from oomdoc.judge.weigh import Finding
from oomdoc.judge.wording import vocabulary
from oomdoc.limits import scratch_folder
from oomdoc.loading.load import EMPTY, Progress, load, tell
from oomdoc.loading.resume import Resumed
from oomdoc.model import Report, Unread
from oomdoc.redact import manifest
from oomdoc.units import zone


@dataclass(frozen=True)
class Options:
    """What a person may set. `types` are `GLOB=KIND`; times are epoch seconds; `progress(path, bytes_so_far)` is called per chunk."""

    rules: Path | None = None
    db: Path | None = None
    types: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None
    tz: str | None = None
    model_config: Path | None = None
    gpu: str | None = None
    limits: Limits = DEFAULT_LIMITS
    details: bool = False  # also the lines behind the references (a second pass) and the replay of the fix
    progress: Progress | None = None
    wording: bool = True
    """Whether what was learnt from labelled bundles is heard: words beside the signs (`judge.wording`), weights that were fitted all at once (`judge.fitted`). Else the rules judge as they stand."""
    loaded: tuple[Sequence[Rule], Sequence[str]] | None = None
    """Rules and faults as `load_rules` gave them, for many bundles in a row: reading the files is a tenth of a small one."""
    resumed: Resumed | None = None
    """For files that grow: where to go on in those that were read before, and where the next time."""


def _let_go(store: Store, scratch: ExitStack) -> None:
    with scratch:
        store.close()


class Analysis:
    """A finished analysis: `report`, and `sql` over its tables until it is closed. Use as a context manager."""

    def __init__(
        self,
        report: Report,
        findings: Sequence[Finding],
        store: Store,
        scratch: ExitStack,
        db: tuple[Path, Path] | None = None,
    ) -> None:
        self.report = report
        self.answers: dict[str, dict[str, bool | None]] = {
            finding.rule.id: {name: told.holds for name, told in finding.answers.items()} for finding in findings
        }
        """What every rule's evidence answered about the gravest incident, by cause and evidence id."""
        self.wording: dict[str, float] = {
            finding.rule.id: finding.wording.weight for finding in findings if finding.wording is not None
        }
        """What the words of the bundle add to the log-odds of each cause; empty where they are too few."""
        self._store = store
        self._scratch = scratch
        self._db = db
        """Where the tables are written, and the file they become when all are."""
        self._left_open = weakref.finalize(self, _let_go, store, scratch)
        """Closes what a script or a notebook has not, at its end at the latest."""

    def __enter__(self) -> Analysis:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the tables, put the database of `db` in its place, and remove the scratch folder."""
        self._left_open.detach()
        with self._scratch:
            db, self._db = self._db, None
            self._store.close(whole=db is not None)
            if db is not None:
                made, place = db
                made.chmod(0o600)
                made.replace(place)

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of the report."""
        return self.report.to_dict()

    def sql(self, query: str, limit: int | None = None) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Column names and rows that one SELECT gives; UsageError with DuckDB's sentence where it is wrong."""
        return self._store.query(query, limit)

    def arrow(self, name: str) -> Any:
        """A table or view, or the rows of one SELECT, as an Arrow table; needs pyarrow, which is imported here and not before."""
        _needs("pyarrow", "arrow")
        return self._store.arrow(_select(name))

    def table(self, name: str) -> Any:
        """The same as a polars frame, over the same memory; needs polars and pyarrow, which are imported here."""
        polars = _needs("polars", "table")
        return polars.from_arrow(self.arrow(name))

    def html(self) -> str:
        """The report as one HTML page that needs nothing else."""
        return self._form("html")

    def markdown(self) -> str:
        """The report in the Markdown of GitHub."""
        return self._form("markdown")

    def brief(self) -> str:
        """The report in at most five lines."""
        return self._form("brief")

    def _form(self, name: str) -> str:
        from importlib import import_module  # the forms stand above this: whoever asks for one brings it in

        text: str = import_module("oomdoc.report").REPORTS[name](self.report)
        return text

    def _repr_html_(self) -> str:
        """What a notebook shows: the page in a frame of its own, so that its style stays there."""
        import html

        return (
            f'<iframe srcdoc="{html.escape(self.html())}" width="100%" height="900" sandbox="allow-scripts"></iframe>'
        )

    def __repr__(self) -> str:
        first = self.report.diagnoses[0] if self.report.diagnoses else None
        cause = f", {first.cause} {first.probability:.2f}" if first else ""
        return f"<oomdoc.Analysis of {self.report.bundle.name}: {self.report.verdict}{cause}>"

    def parquet(self, query: str, path: Path, limit: int | None = None) -> int:
        """Write the rows of one SELECT to a Parquet file; how many they were."""
        return self._store.parquet(query, path, limit)

    def traffic(self, bounds: Sequence[int]) -> dict[str, Any]:
        """The report's traffic with other bounds of the buckets: the token counts at which M, L and XL begin."""
        from oomdoc.assemble.traffic import profile

        gravest = self._store.rows_of("SELECT * FROM incident LIMIT 1")
        return profile(self._store, gravest[0] if gravest else None, bounds)

    def replay(self, settings: Mapping[str, str], **options: Any) -> dict[str, Any]:
        """The recorded traffic against the pool that other flags would give (`oomdoc.replay.replay` says what comes back)."""
        from oomdoc.replay import replay

        gravest = self._store.rows_of("SELECT incident FROM incident LIMIT 1")
        return replay(self._store, gravest[0]["incident"] if gravest else None, settings, **options)


def _needs(module: str, method: str) -> Any:
    """A library that only this method uses; UsageError with what to install where it is missing."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError:
        raise UsageError(f"Analysis.{method} needs {module}", f"pip install {module}") from None


def _select(name: str) -> str:
    """A name as a SELECT of all of it; what is more than a name as it is."""
    return f"FROM {name}" if name.isidentifier() else name


def analyze(paths: str | Path | Sequence[str | Path] | Intake, options: Options | None = None) -> Analysis:
    """Diagnose a bundle: an archive, a folder, files, or `-`. Raises BundleError where nothing can be analysed.

    An `Intake` is a bundle that the caller has put together.
    """
    options = options or Options()
    ingest.check_types(options.types)
    told, faults = options.loaded or load_rules(options.rules, tests=False)
    rules = list(told)
    if isinstance(paths, Intake):
        intake = paths
    else:
        intake = open_bundle([paths] if isinstance(paths, (str, Path)) else list(paths), options.limits)
    scratch = ExitStack()
    store = db = None
    try:
        if options.db is not None:
            db = _beside(options.db, scratch), options.db
        store = Store(scratch.enter_context(scratch_folder()), db and db[0])
        sources, unread = load(
            intake,
            store,
            options.types,
            options.progress,
            options.resumed,
            vocabulary() if options.wording else frozenset(),
        )
        limited = any(" in all: the rest was not read" in entry.why for entry in unread)  # more is there
        if not sources or (all(row.kind == EMPTY for row in sources) and not limited):
            what = "holds nothing but blank lines" if sources and not unread else "holds nothing that can be read"
            raise BundleError(
                f"{intake.name} {what}" + _why(unread),
                "Hand over logs as text, or an archive of them",
            )
        config = tell(store, options.gpu, options.model_config)
        tz = zone(options.tz) if options.tz else None
        if options.since is not None or options.until is not None:
            store.keep_between(options.since, options.until, tz)
        store.finish(tz)
        report, findings = assemble(intake, store, rules, sources, unread, list(faults), config, options.wording)
        if any(row.kind == manifest.KIND for row in sources):
            report = dataclasses.replace(report, warnings=(*report.warnings, manifest.SAYS))
        if options.details and not isinstance(paths, Intake):
            report = detailed(report, paths, store)
    except BaseException:
        if store is not None:
            store.close()
        scratch.close()
        raise
    return Analysis(report, findings, store, scratch, db)


def kept_tables(path: Path) -> KeptTables:
    """The tables of a file that `Options.db` has written, to be asked and not changed."""
    return KeptTables(path)


def _beside(db: Path, scratch: ExitStack) -> Path:
    """Where to write a database that is to stay: in a folder of its own beside its place, which goes if the run fails."""
    if db.exists():
        raise UsageError(f"{db} exists already", "Name a new file, or remove this one first")
    try:
        return scratch.enter_context(scratch_folder(db.absolute().parent)) / "tables.duckdb"
    except OSError as problem:
        raise unwritable(problem, str(db)) from None


def _why(unread: Sequence[Unread]) -> str:
    return f" ({unread[0].path}: {unread[0].why})" if unread else ""
