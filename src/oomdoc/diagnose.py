"""The wiring: bundle -> sources -> ingest -> tables -> views -> rules -> evidence -> diagnosis.

`analyze` reads like that line; each arrow is a function of another module. The result is an `Analysis`: the report, and
the tables behind it for further questions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from oomdoc import ingest
from oomdoc.assemble import assemble
from oomdoc.bundle import BLOCKS_FROM, DEFAULT_LIMITS, Begin, Intake, Limits, Member, binary_form, open_bundle
from oomdoc.errors import BundleError, UsageError
from oomdoc.ingest import kept
from oomdoc.ingest.base import Reading, read_by
from oomdoc.limits import scratch_folder
from oomdoc.model import Excerpt, ExcerptLine, Report, SourceRow, Unread
from oomdoc.physics.config import config_of_file
from oomdoc.redact import manifest
from oomdoc.rules import Rule, load_rules
from oomdoc.scan import CHUNK_BYTES, Chunk, chunks, newlines, read_ahead
from oomdoc.store import Store
from oomdoc.tables import LOOKALIKE, Batch, source_of
from oomdoc.units import parse_size, show_bytes, zone
from oomdoc.unwrap import lasting_form, unwrap
from oomdoc.weigh import Finding


@dataclass(frozen=True)
class Kept:
    """A file up to a place behind one of its lines: what proves that it is the same, its reading there, what that had told.

    `form` is how its collector wrapped it (`unwrap.lasting_form`), `reading` and `told` are of `ingest.kept`.
    """

    begin: Begin
    form: str
    kind: str
    reading: str
    told: bytes


@dataclass
class Resumed:
    """Files by their path in the bundle: `known` from another day, `kept` for the next one."""

    known: Mapping[str, Kept] = field(default_factory=dict)
    kept: dict[str, Kept] = field(default_factory=dict)


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
    progress: Callable[[str, int], None] | None = None
    loaded: tuple[Sequence[Rule], Sequence[str]] | None = None
    """Rules and faults as `load_rules` gave them, for many bundles in a row: reading the files is a tenth of a small one."""
    resumed: Resumed | None = None
    """For files that grow: where to go on in those that were read before, and where the next time."""


class Analysis:
    """A finished analysis: `report`, and `sql` over its tables until it is closed. Use as a context manager."""

    def __init__(self, report: Report, findings: Sequence[Finding], store: Store, scratch: ExitStack) -> None:
        self.report = report
        self.answers: dict[str, dict[str, bool | None]] = {
            finding.rule.id: {name: told.holds for name, told in finding.answers.items()} for finding in findings
        }
        """What every rule's evidence answered about the gravest incident, by cause and evidence id."""
        self._store = store
        self._scratch = scratch

    def __enter__(self) -> Analysis:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the tables and remove the scratch folder."""
        self._store.close()
        self._scratch.close()

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of the report."""
        return self.report.to_dict()

    def sql(self, query: str, limit: int | None = None) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Column names and rows that one SELECT gives; UsageError with DuckDB's sentence where it is wrong."""
        return self._store.query(query, limit)

    def parquet(self, query: str, path: Path, limit: int | None = None) -> int:
        """Write the rows of one SELECT to a Parquet file; how many they were."""
        return self._store.parquet(query, path, limit)

    def traffic(self, bounds: Sequence[int]) -> dict[str, Any]:
        """The report's traffic with other bounds of the buckets: the token counts at which M, L and XL begin."""
        from oomdoc.traffic import profile

        gravest = self._store.rows_of("SELECT * FROM incident LIMIT 1")
        return profile(self._store, gravest[0] if gravest else None, bounds)

    def replay(self, settings: Mapping[str, str], **options: Any) -> dict[str, Any]:
        """The recorded traffic against the pool that other flags would give (`oomdoc.replay.replay` says what comes back)."""
        from oomdoc.replay import replay

        gravest = self._store.rows_of("SELECT incident FROM incident LIMIT 1")
        return replay(self._store, gravest[0]["incident"] if gravest else None, settings, **options)


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
    store = None
    try:
        store = Store(scratch.enter_context(scratch_folder()), options.db)
        sources, unread = _ingest(intake, store, options)
        if not sources:
            raise BundleError(
                f"{intake.name} holds nothing that can be read" + _why(unread),
                "Hand over logs as text, or an archive of them",
            )
        config = _tell(store, options)
        tz = zone(options.tz) if options.tz else None
        if options.since is not None or options.until is not None:
            store.keep_between(options.since, options.until, tz)
        store.finish(tz)
        report, findings = assemble(intake, store, rules, sources, unread, list(faults), config)
        if any(row.kind == manifest.KIND for row in sources):
            report = dataclasses.replace(report, warnings=(*report.warnings, manifest.SAYS))
        if options.details and not isinstance(paths, Intake):
            report = _detailed(report, paths, store)
    except BaseException:
        if store is not None:
            store.close()
        scratch.close()
        raise
    return Analysis(report, findings, store, scratch)


# ---- report -> report with what people look up


MOST_REFS = 80  # references whose lines travel with a report
MOST_TEXT = 600  # characters of a line
MOST_REPLAYED = 20_000  # requests: beyond, a replay of the fix costs more than the analysis
MOST_COLUMNS = 360  # of the recorded usage beside a replay


def _detailed(report: Report, paths: str | Path | Sequence[str | Path], store: Store) -> Report:
    """The report with the lines behind its references and the replay of its fix, as far as the bundle can be read again."""
    from oomdoc.show import excerpts

    given = [paths] if isinstance(paths, (str, Path)) else list(paths)
    warnings = list(report.warnings)
    found = {}
    if "-" in given:
        warnings.append("the lines behind the references are left out: standard input cannot be read twice")
    else:
        found = excerpts(given, _cited(report))
    told = tuple(
        Excerpt(ref, entry.first, entry.last, tuple(ExcerptLine(line, text[:MOST_TEXT]) for line, text in entry.lines))
        for ref, entry in found.items()
    )
    return dataclasses.replace(report, excerpts=told, fix_replay=_fix_replay(report, store), warnings=tuple(warnings))


def _cited(report: Report) -> list[str]:
    """The references that a reader will want to see, the gravest first."""
    refs = [incident.first_failure.ref for incident in report.incidents if incident.first_failure]
    for diagnosis in report.diagnoses[:4]:
        refs += [ref for item in (*diagnosis.evidence, *diagnosis.against) for ref in item.refs[:3]]
    refs += [ref for incident in report.incidents for ref in incident.cascade[:4]]
    refs += [mark["ref"] for mark in report.timeline.get("marks", ())]
    refs += [ref for entry in report.ledger[:1] for ref in entry.refs]
    return list(dict.fromkeys(refs))[:MOST_REFS]


def _fix_replay(report: Report, store: Store) -> dict[str, Any] | None:
    """The recorded traffic with the first fix that a replay understands; None without one, or without enough to replay."""
    from oomdoc.replay import FLAGS, replay

    actions = report.diagnoses[0].actions if report.verdict == "diagnosed" else ()
    action = next((item for item in actions if item.changes and set(item.changes) <= set(FLAGS)), None)
    requests = report.traffic.get("requests") or 0
    if action is None or not 0 < requests <= MOST_REPLAYED:
        return None
    gravest = store.rows_of("SELECT incident FROM incident LIMIT 1")
    try:
        told = replay(
            store,
            gravest[0]["incident"] if gravest else None,
            {name: str(value) for name, value in action.changes.items()},
        )
    except (BundleError, UsageError):  # no pool, no times: nothing to replay
        return None
    if told["after"] is None:
        return None
    recorded = told["recorded"]
    return {
        "action": action.id, "settings": told["settings"], "requests": told["traffic"]["requests"], "left_out": told["traffic"]["left_out"],
        "before": _without(told["before"], "at_recorded"), "after": _without(told["after"], "at_recorded"),
        "recorded": _thinned(recorded["series"]) if recorded else None,
        "usage_mean_abs_error": told["error"]["usage_mean_abs"] if told["error"] else None,
        "assumptions": told["assumptions"], "unknown": told["unknown"],
    }  # fmt: skip


def _without(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}


def _thinned(series: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of at most `MOST_COLUMNS` values: the highest of neighbours, at the time of the first of them."""
    each = -(-len(series["at_s"]) // MOST_COLUMNS) or 1
    places = range(0, len(series["at_s"]), each)
    told: dict[str, Any] = {"from_t": series["from_t"], "at_s": [series["at_s"][place] for place in places]}
    for name in ("used", "running", "waiting"):
        known = [[value for value in series[name][place : place + each] if value is not None] for place in places]
        told[name] = [max(values, default=None) for values in known]
    return told


def _why(unread: Sequence[Unread]) -> str:
    return f" ({unread[0].path}: {unread[0].why})" if unread else ""


# ---- bundle -> tables

_BLOCK_BYTES = CHUNK_BYTES  # how much of a source is read at once


class _Mark(NamedTuple):
    """Everything before this place was handed out, and the source can be read on from here."""

    begin: Begin
    form: str


def _stream(intake: Intake, resumed: Resumed | None) -> Iterator[Member | Chunk | _Mark]:
    for member in intake.members():
        yield member
        if resumed is not None and _may_go_on(member, 0):
            yield from _marked(intake, member, resumed)
        else:
            yield from unwrap(chunks(member.stream, _BLOCK_BYTES), partial(intake.note, member.path))


def _may_go_on(member: Member, taken: int) -> bool:
    """Whether a member is a file as it stands, in which a block ends behind these bytes."""
    return member.size is not None and not member.layers and member.size >= max(taken + _BLOCK_BYTES, BLOCKS_FROM)


def _marked(intake: Intake, member: Member, resumed: Resumed) -> Iterator[Chunk | _Mark]:
    """The chunks of a file that may grow; behind the last that will be the same when it has grown, a mark.

    A file is read in blocks of one size whatever its length, so up to there it will be cut into the same chunks: what a
    reader makes of the end of a chunk does not matter.
    """
    begin = member.begin or Begin(0, 1, 0, "")
    passed, latest = begin.passed, Chunk(b"", begin.line, True)
    form = known = resumed.known[member.path].form if member.begin else None

    def counted() -> Iterator[Chunk]:
        nonlocal passed, latest, form
        for chunk in chunks(member.stream, _BLOCK_BYTES, line=begin.line, rest=begin.rest):
            if not passed:
                form = lasting_form(chunk.data)
            passed += len(chunk.data)
            latest = chunk
            yield chunk

    assert member.size is not None
    for piece in unwrap(counted(), partial(intake.note, member.path), known):
        yield piece
        taken = intake.taken(member)
        last = (taken - BLOCKS_FROM) % _BLOCK_BYTES == 0 and taken + _BLOCK_BYTES > member.size
        if last and form is not None and piece.data.endswith(b"\n"):
            line = piece.first_line + newlines(piece.data)
            hashed, sha256 = intake.hashed()
            if hashed == taken and line == latest.first_line + newlines(
                latest.data
            ):  # nothing waits for its other half
                yield _Mark(Begin(passed, line, taken, sha256), form)


def _ingest(intake: Intake, store: Store, options: Options) -> tuple[list[SourceRow], list[Unread]]:
    """Read every member with its ingestor into the store; what was not read is named with the reason."""
    sources: list[SourceRow] = []
    refused: list[Unread] = []
    readings = _readings(options.resumed)
    if options.resumed is not None:
        intake.begins = {path: options.resumed.known[path].begin for path in readings}
    events = read_ahead(_stream(intake, options.resumed))
    current: Member | Chunk | _Mark | None = next(events, None)
    while current is not None:
        member = current
        assert isinstance(member, Member)
        counted = _Counted(events, member, options.progress)
        if member.begin is not None:
            row: SourceRow | None = _read_on(member, counted, store, options, readings[member.path])
        else:
            row = _read_member(member, counted, store, options, refused)
        for _ in counted:  # whatever the ingestor left
            pass
        if row is not None:
            # as handed out: `unwrap` may have made more or less of it
            row = dataclasses.replace(row, bytes=getattr(member.stream, "taken", counted.bytes))
            sources.append(row)
            if row.kind == manifest.KIND:  # about the copy, no evidence
                current = counted.following
                continue
            store.add(
                "source",
                [
                    {
                        "source": row.path,
                        "kind": row.kind,
                        "bytes": row.bytes,
                        "lines": row.lines,
                        "rows": row.rows,
                        "problems": row.problems,
                        "lookalikes": row.lookalikes,
                    }
                ],
            )
        current = counted.following
    unread = [Unread(entry.path, entry.why) for entry in intake.unread]
    return sorted(sources, key=lambda row: row.path), sorted(
        [*unread, *refused], key=lambda entry: (entry.path, entry.why)
    )


class _Counted:
    """The chunks of one member out of the stream of all, with lines and bytes counted; `following` is what came after."""

    def __init__(
        self,
        events: Iterator[Member | Chunk | _Mark],
        member: Member,
        progress: Callable[[str, int], None] | None,
    ) -> None:
        self._events, self._path, self._progress = events, member.path, progress
        self._before = member.begin.line - 1 if member.begin else 0
        self.marked: Callable[[_Mark], None] | None = None
        """Called at a mark, when the chunks before it have been read."""
        self._held: Chunk | None = None
        self.following: Member | None = None
        self._ended = False
        self.bytes = 0
        self._last: Chunk | None = None

    def peek(self) -> Chunk | None:
        """The first chunk, which stays in line; None for an empty member."""
        if self._held is None:
            self._held = self._next()
        return self._held

    def __iter__(self) -> Iterator[Chunk]:
        while (chunk := self.peek()) is not None:
            self._held = None
            yield chunk

    def _next(self) -> Chunk | None:
        if self._ended:
            return None
        event = next(self._events, None)
        while isinstance(event, _Mark):
            if self.marked:
                self.marked(event)
            event = next(self._events, None)
        if not isinstance(event, Chunk):
            self.following, self._ended = event, True
            return None
        self.bytes += len(event.data)
        self._last = event
        if self._progress:
            self._progress(self._path, self.bytes)
        return event

    @property
    def lines(self) -> int:
        """Physical lines so far; a last line without newline counts."""
        if self._last is None:
            return self._before
        last = self._last
        return last.first_line - 1 + last.data.count(b"\n") + (0 if last.data.endswith(b"\n") else 1)


def _read_member(
    member: Member, counted: _Counted, store: Store, options: Options, refused: list[Unread]
) -> SourceRow | None:
    first = counted.peek()
    if first is None:
        return SourceRow(member.path, "empty", 0, 0, 0, 0)
    head = ingest.make_head(member.path, first.data)
    form = binary_form(head.data)
    if form is not None and not ingest.reads_binary(head):
        for _ in counted:  # to its end, so that its size is known
            pass
        refused.append(Unread(member.path, f"{form} of {show_bytes(counted.bytes)}: no format that holds evidence"))
        return None
    if manifest.is_manifest(head.data):
        refused += manifest.left_out(member.path, (chunk.data for chunk in counted))
        return SourceRow(member.path, manifest.KIND, counted.bytes, counted.lines, 0, 0)
    if ingest.is_label(head):
        refused.append(Unread(member.path, "the label of a sample case, no evidence"))
        return None
    ingestor, kind = ingest.recognise(head, options.types)
    reading = ingest.reading(ingestor, member.path) if options.resumed and _may_go_on(member, 0) else None
    if reading is None:
        return _load(member, kind, counted, store, ingest.read(ingestor, member.path, counted))
    assert options.resumed is not None
    told = kept.Told(member.size or 0)
    counted.marked = partial(_keep, options.resumed, member.path, kind, reading, told)
    return _load(member, kind, counted, store, told.heard(read_by(reading, counted)))


def _readings(resumed: Resumed | None) -> dict[str, Reading]:
    """The readings that can go on; what this program did not keep is read from its beginning."""
    made = {}
    for path, known in resumed.known.items() if resumed else ():
        with suppress(kept.NotKeptError):
            made[path] = kept.thaw(known.reading)
    return made


def _keep(resumed: Resumed, path: str, kind: str, reading: Reading, told: kept.Told, mark: _Mark) -> None:
    """Note where to go on the next time, unless that is more than is kept."""
    packed = told.close()
    if packed is not None:
        with suppress(kept.NotKeptError):
            resumed.kept[path] = Kept(mark.begin, mark.form, kind, kept.freeze(reading), packed)


def _read_on(member: Member, counted: _Counted, store: Store, options: Options, reading: Reading) -> SourceRow:
    """Load what a file had told before, and read what came since."""
    assert options.resumed is not None
    assert member.begin is not None
    known = options.resumed.known[member.path]
    batches = chain(kept.told(known.told), read_by(reading, counted))
    if _may_go_on(member, member.begin.taken):
        told = kept.Told(member.size or 0, known.told)
        counted.marked = partial(_keep, options.resumed, member.path, known.kind, reading, told)
        batches = chain(kept.told(known.told), told.heard(read_by(reading, counted)))
    else:
        options.resumed.kept[member.path] = known
    return _load(member, known.kind, counted, store, batches)


def _load(member: Member, kind: str, counted: _Counted, store: Store, batches: Iterable[Batch]) -> SourceRow:
    """Everything that a member tells, into the store."""
    rows = problems = lookalikes = 0
    others: set[str] = set()
    for batch in batches:
        rows, problems, lookalikes = _count(batch, rows, problems, lookalikes)
        source = source_of(member.path, batch.writer)
        if batch.writer:
            others.add(source)
        store.load(source, batch)
    store.add("source", [{"source": source, "kind": kind, "bytes": 0, "lines": counted.lines, "rows": 0, "problems": 0, "lookalikes": 0} for source in sorted(others)])  # fmt: skip
    return SourceRow(member.path, kind, counted.bytes, counted.lines, rows, problems, lookalikes)


def _count(batch: Batch, rows: int, problems: int, lookalikes: int) -> tuple[int, int, int]:
    if batch.table == LOOKALIKE:
        return rows, problems, lookalikes + batch.rows
    if batch.table == "problem":
        return rows, problems + batch.rows, lookalikes
    return rows + batch.rows, problems, lookalikes


_CONFIG_FLAGS = {"torch_dtype": "dtype", "dtype": "dtype", "max_position_embeddings": "max_position_embeddings", "num_hidden_layers": "num_hidden_layers",
                 "num_attention_heads": "num_attention_heads", "num_key_value_heads": "num_key_value_heads", "head_dim": "head_dim", "hidden_size": "hidden_size"}  # fmt: skip


def _tell(store: Store, options: Options) -> dict[str, Any] | None:
    """What the person knows and the bundle may not: the device (`--gpu`), the model's config.json (`--model-config`), given back."""
    if options.gpu:
        size = parse_size(options.gpu)
        store.add(
            "gpu_device",
            [{"source": "--gpu", "line": 1, "name": None if size else options.gpu, "total_bytes": size, "count": 1}],
        )
    if options.model_config is None:
        return None
    config = config_of_file(options.model_config)
    inner = config.get("text_config")  # multimodal models keep the language model's figures one level down
    text: dict[str, Any] = inner if isinstance(inner, dict) else config
    told = {flag: text[key] for key, flag in _CONFIG_FLAGS.items() if isinstance(text.get(key), (str, int))}
    method = config.get("quantization_config")
    if isinstance(method, dict) and isinstance(method.get("quant_method"), str):
        told["quantization"] = method["quant_method"]
    architectures = config.get("architectures")
    if isinstance(architectures, list) and architectures:
        told["architecture"] = architectures[0]
    store.add(
        "engine_flag",
        [
            {"source": options.model_config.name, "line": 1, "flag": flag, "value": str(value), "origin": "file"}
            for flag, value in told.items()
        ],
    )
    return config
