"""From what a person gave to an analysis: paths, moments, limits, rules, each refused in one sentence where it is wrong."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oomdoc.cli import console
from oomdoc.errors import UsageError
from oomdoc.limits import MEMORY_BYTES, TIMEOUT_S, limited

if TYPE_CHECKING:
    from oomdoc.diagnose import Analysis
    from oomdoc.judge.rules import Rule


@contextmanager
def analysis(
    paths: Sequence[str],
    quiet: bool,
    types: Sequence[str] | None,
    since: str | None,
    until: str | None,
    tz: str | None,
    *,
    timeout: float | None = None,
    memory_limit: str | None = None,
    redact: bool = False,
    redaction_map: Path | None = None,
    **options: Any,
) -> Iterator[Analysis]:
    """Analyse with a progress line, within the limits of a run; the store is closed at the end."""
    for given in types or ():
        glob, _, kind = given.rpartition("=")
        if not glob or not kind:
            raise UsageError(f"--type '{given}' lacks a part", "Write GLOB=KIND, such as '*.txt=vllm-log'")
    begin, end = _moment("--since", since, tz), _moment("--until", until, tz)
    if begin is not None and end is not None and begin > end:
        raise UsageError(f"--since {since} is after --until {until}", "Swap them")
    read = inputs(paths)
    from oomdoc import diagnose
    from oomdoc.report.words import incomplete

    progress = console.Progress(quiet)
    chosen = diagnose.Options(
        types=tuple(types or ()), since=begin, until=end, tz=tz, progress=progress if progress.on else None, **options
    )
    with ExitStack() as held:
        held.enter_context(limited(*allowed(timeout, memory_limit)))
        try:
            if redact:
                read = [held.enter_context(_redacted(read, redaction_map, chosen))]
            made = diagnose.analyze(read, chosen)
        finally:
            progress.clear()
        if lost := incomplete(made.report):
            console.note(f"bundle is incomplete: {lost}", quiet)
        yield held.enter_context(made)


@contextmanager
def _redacted(inputs: Sequence[str], redaction_map: Path | None, chosen: Any) -> Iterator[str]:
    """A redacted copy of the inputs in a folder that is deleted with the run, under a redacted name."""
    from oomdoc.limits import scratch_folder
    from oomdoc.redact.run import Redaction, redact

    with scratch_folder() as folder:
        copy = folder / "copy"
        options = Redaction(map=redaction_map, limits=chosen.limits, progress=chosen.progress)
        manifest = redact(inputs, copy, options)
        yield str(copy.rename(copy.with_name(manifest.name)))


MOST_SECONDS = 1e8  # three years; the system's timers end at some point beyond


def allowed(timeout: float | None, memory_limit: str | None) -> tuple[float | None, int | None]:
    """Seconds and bytes that a run may take; 0 of either is no limit."""
    from oomdoc.units import parse_size

    if timeout is not None and not 0 <= timeout <= MOST_SECONDS:  # nor is NaN
        raise UsageError(f"--timeout {timeout:g} is no number of seconds", "Write it like 600; 0 is no limit")
    size: int | None = MEMORY_BYTES
    if memory_limit is not None:
        size = 0 if memory_limit.strip() == "0" else parse_size(memory_limit)
        if size is None or size < 0:
            raise UsageError(f"--memory-limit '{memory_limit}' is no size", "Write it like 2GiB or 500MB")
    return (TIMEOUT_S if timeout is None else timeout or None), size or None


def inputs(paths: Sequence[str]) -> list[str]:
    """The paths as given; UsageError where `-` is a terminal."""
    if "-" in paths and sys.stdin is not None and sys.stdin.isatty():
        raise UsageError(
            "- reads standard input, and that is a terminal",
            "Pipe a bundle into it: `oomdoc analyze - < bundle.tar.gz`",
        )
    return list(paths)


def limits(size: str | None, members: int | None) -> Any:
    """The limits of the intake with what a person set."""
    from dataclasses import replace

    from oomdoc.intake.bundle import DEFAULT_LIMITS
    from oomdoc.units import parse_size

    limits = DEFAULT_LIMITS
    if size is not None:
        total = parse_size(size)
        if not total or total < 0:
            raise UsageError(f"--max-size '{size}' is no size", "Write it like 8GiB or 500MB")
        limits = replace(limits, max_total_bytes=total, max_member_bytes=min(total, limits.max_member_bytes))
    return limits if members is None else replace(limits, max_members=members)


def _moment(option: str, text: str | None, tz: str | None) -> float | None:
    """Epoch seconds of an option; a time without a zone is in `--tz`, else UTC."""
    import datetime as dt

    zone: dt.tzinfo = dt.UTC
    if tz is not None:
        zone = _zone(tz)
    if text is None:
        return None
    try:
        moment = dt.datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(
            f"{option} '{text}' is no ISO 8601 time", "Write it like 2026-11-20T20:04:51Z or 2026-11-20"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp()


def _zone(name: str) -> Any:
    from oomdoc.units import zone

    found = zone(name)
    if found is None:
        raise UsageError(
            f"--tz '{name}' is no time zone", "Write an offset such as +02:00, or a name such as Europe/Berlin"
        )
    return found


def form(name: str, known: Iterable[str]) -> str:
    """The form that `--format` names; UsageError where the command does not know it."""
    *most, last = known
    if name in (*most, last):
        return name
    raise UsageError(f"--format {name} is unknown", f"Choose {', '.join(most)} or {last}")


def target(name: str, form: str, suffixes: Mapping[str, str]) -> tuple[str, str]:
    """Form and place of one `-o`: the suffix chooses the form, `-` takes that of `--format`."""
    return (form, "-") if name == "-" else (form_of_file(name, suffixes), name)


def form_of_file(name: str, suffixes: Mapping[str, str]) -> str:
    """The form that a file's suffix chooses; UsageError for another suffix, or where there is no such folder."""
    path = Path(name)
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        *most, last = suffixes
        raise UsageError(
            f"-o {name} does not say which form to write", f"End the name with {', '.join(most)} or {last}"
        )
    if not path.parent.is_dir():
        raise UsageError(f"cannot write {name}, there is no folder {path.parent}", "Make it first")
    return suffixes[suffix]


def spare_inputs(paths: Sequence[str], targets: Sequence[str]) -> None:
    """Refuse to write over what is read: an input itself, or a file in a folder that is one, but for a page of our own."""
    for target in targets:
        if target == "-" or not Path(target).exists():
            continue
        for path in paths:
            if path == "-" or not Path(path).exists():
                continue
            if Path(path).samefile(target):
                raise UsageError(f"{target} is the input", "Choose another file to write")
            within = Path(path).is_dir() and Path(target).resolve().is_relative_to(Path(path).resolve())
            if within and Path(target).is_file() and not _made_here(Path(target)):
                raise UsageError(f"{target} is part of the input {path}", "Choose another file to write")


_OURS = (b'{\n  "schema_version": "', b'<meta name="generator" content="oomdoc ')


def _made_here(path: Path) -> bool:
    """Whether a file is a report that was written there before."""
    with path.open("rb") as file:
        head = file.read(4096)
    return head.startswith(_OURS[0]) or _OURS[1] in head


def existing(path: Path | None) -> Path | None:
    """The path of a file that is there; UsageError where it is not, None where none is given."""
    if path is not None and not path.is_file():
        raise UsageError(f"no file {path}", "Give the config.json that lies beside the model's weights")
    return path


def rule_set(folder: Path | None, told: bool = False) -> tuple[list[Rule], list[str]]:
    """The rules and the faults of broken files; the faults go to standard error unless the caller tells them."""
    from oomdoc.judge.rules import load_rules

    rules, faults = load_rules(folder)
    for fault in () if told else faults:
        console.say(f"warning: {fault}")
    return rules, faults
