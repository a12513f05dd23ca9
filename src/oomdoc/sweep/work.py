"""One bundle: read it or judge its kept evidence, and give the rows. The function that every engine runs.

Task and outcome are JSON, so that any engine can carry them. Whatever goes wrong with the bundle is part of the outcome:
a status and one sentence. Nothing of the fleet is known here.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from oomdoc import diagnose
from oomdoc.errors import BundleError, OomdocError
from oomdoc.ingest.kept import NotKeptError
from oomdoc.intake.bundle import DEFAULT_LIMITS, Intake
from oomdoc.intake.members import safe_path
from oomdoc.judge.rules import Rule, load_rules
from oomdoc.loading.resume import Resumed
from oomdoc.model import Report
from oomdoc.sweep import evidence, grown
from oomdoc.sweep.faults import patiently, sentence
from oomdoc.sweep.places import Access, Seen, filesystem, is_uri
from oomdoc.sweep.rows import Rows, rows_of
from oomdoc.sweep.sources import look, signature


class _ChangedError(Exception):
    """The bundle is another one than before it was read."""


def run(text: bytes) -> bytes:
    """Do one task. Never raises for what a bundle holds, only for what ends the process."""
    task: dict[str, Any] = json.loads(text)
    return json.dumps({"bundle": task["bundle"], **_outcome(task)}, ensure_ascii=True).encode()


def _outcome(task: Mapping[str, Any]) -> dict[str, Any]:
    try:
        if task.get("evidence") is not None:
            return _judged(task)
        for afresh in (False, True):  # a bundle that changes while it is read is read once more
            try:
                return _read(task, afresh)
            except (_ChangedError, NotKeptError):
                continue
        return _failed("changing", "it changed while it was read, twice")
    except BundleError as problem:
        return _failed("unreadable", problem.message)
    except OomdocError as problem:
        return _failed("error", problem.message)
    except MemoryError:
        return _failed("memory", "it needs more memory than a worker may take")
    except FileNotFoundError:
        return _failed("gone", "it was there when the sweep began, and is not any more")
    except OSError as problem:
        return _failed("io", sentence(problem))
    except Exception as problem:  # one bundle that meets a bug must not end a night
        return _failed("error", f"{type(problem).__name__}: {sentence(problem)}")


def _failed(status: str, why: str) -> dict[str, Any]:
    return {"status": status, "why": why}


@functools.lru_cache(maxsize=2)
def _rules(folder: str | None) -> tuple[tuple[Rule, ...], tuple[str, ...]]:
    rules, faults = load_rules(Path(folder) if folder else None, tests=False)
    return tuple(rules), tuple(faults)


def _judged(task: Mapping[str, Any]) -> dict[str, Any]:
    rules, faults = _rules(task["rules"])
    report = evidence.judge(base64.b64decode(task["evidence"]), rules, faults)
    _write_page(task, report)
    return {"status": "judged", "rows": rows_of(report, task["bundle"]), "signature": task["signature"], "settled": task["settled"]}  # fmt: skip


def _read(task: Mapping[str, Any], afresh: bool = False) -> dict[str, Any]:
    files = [Seen(*file) for file in task["files"]]
    with tempfile.TemporaryDirectory(prefix="bundle-") as scratch:
        if any(is_uri(file.address) for file in files):
            access = Access(task.get("endpoint_url"), bool(task.get("anonymous")))
            here, etag, seen = _fetch(files, access, Path(scratch))
        else:
            here, etag, seen = [Path(file.address) for file in files], None, [look(file.address) for file in files]
        told = {"signature": signature(seen), "etag": etag, "settled": bool(task["settled"]) and seen == files}
        intake = _intake(task, here)
        if task.get("expect") and _digest(intake, task["alone"]) == task["expect"]:
            if not _still(seen):
                raise _ChangedError
            return {"status": "same", **told}
        known = (
            {} if afresh else grown.known((path, base64.b64decode(state)) for path, state in task.get("grown") or ())
        )
        resumed = None if task["alone"] else Resumed(known)
        options = diagnose.Options(loaded=_rules(task["rules"]), resumed=resumed)
        with diagnose.analyze(intake, options) as analysis:
            rows: Rows = rows_of(analysis.report, task["bundle"])
            _write_page(task, analysis.report)
            packed = evidence.pack(analysis)
        if resumed is not None:
            rows["grown"] = [
                {**row, "state": base64.b64encode(row["state"]).decode()} for row in grown.rows(resumed.kept)
            ]
    if not _still(seen):
        raise _ChangedError
    return {"status": "read", **told, "rows": rows, "evidence": base64.b64encode(packed).decode() if packed else None}


def page_name(bundle: str) -> str:
    """The file of a bundle's report: its last words, and a hash, since two may end alike.

    >>> page_name("/srv/bundles/gpu-node-07_0004.tar.gz")
    'gpu-node-07_0004.tar.gz-80fcb3a2.html'
    """
    words = re.sub(r"[^A-Za-z0-9._-]+", "-", bundle.rstrip("/").rpartition("/")[2])[-80:].strip("-.") or "bundle"
    return f"{words}-{hashlib.sha256(bundle.encode('utf-8', 'surrogateescape')).hexdigest()[:8]}.html"


def _write_page(task: Mapping[str, Any], report: Report) -> None:
    """The report as a page, whole or not at all."""
    if not task.get("reports"):
        return
    from oomdoc.report import REPORTS

    place = Path(task["reports"]) / page_name(task["bundle"])
    beside = place.with_name(f".{place.name}.writing")
    try:
        beside.write_text(REPORTS["html"](report), encoding="utf-8", errors="backslashreplace")
        beside.replace(place)
    except OSError as problem:
        beside.unlink(missing_ok=True)
        raise OomdocError(f"its page {place} cannot be written: {sentence(problem)}") from None


def _still(seen: Sequence[Seen]) -> bool:
    """Whether local files are as they were; objects are fetched as a whole and compared while that is done."""
    return all(is_uri(file.address) or look(file.address) == file for file in seen)


def _names(task: Mapping[str, Any]) -> list[str]:
    """The paths of the files inside the bundle."""
    start = len(str(task["base"]).rstrip("/")) + 1
    return [safe_path(str(file[0])[start:]) for file in task["files"]]


def _intake(task: Mapping[str, Any], here: Sequence[Path]) -> Intake:
    """What `open_bundle` gives for the same archive or folder: the same names, the same digest."""
    intake = Intake(safe_path(str(task["name"])), DEFAULT_LIMITS)
    for path, name in zip(here, _names(task), strict=True):
        if task["alone"]:
            intake.add(path, intake.name, "")
        else:
            intake.add_found(path, name)
    return intake


def _digest(intake: Intake, alone: bool) -> str:
    """What `intake.digest` will be, without taking anything apart."""
    hashes = []
    for path, name in intake.taken_in():
        with path.open("rb") as file:
            hashes.append((name, hashlib.file_digest(file, "sha256").hexdigest()))
    if alone:
        return hashes[0][1]
    return hashlib.sha256("".join(f"{digest}  {name}\n" for name, digest in sorted(hashes)).encode()).hexdigest()


def _fetch(files: Sequence[Seen], access: Access, scratch: Path) -> tuple[list[Path], str | None, list[Seen]]:
    """Objects as files in the scratch folder, their entity tags, and how the store showed them when they were fetched."""
    here, tags, seen = [], [], []
    opened: dict[str, Any] = {}
    for number, file in enumerate(files):
        scheme, _, rest = file.address.partition("://")
        bucket = rest.split("/", 1)[0]
        if bucket not in opened:
            opened[bucket] = filesystem(f"{scheme}://{bucket}", access)[0]
        source = opened[bucket]
        target = scratch / str(number)
        now, tag = patiently(lambda: _copied(source, rest, target))  # noqa: B023 - done before the next round
        here.append(target)
        tags.append(tag)
        seen.append(Seen(file.address, *now))
    return here, ",".join(tag for tag in tags if tag)[:1000] or None, seen


def _copied(source: Any, path: str, target: Path) -> tuple[tuple[int, int], str]:
    """(bytes, time) and entity tag of an object that was copied whole; _ChangedError where it changed meanwhile."""
    before = source.get_file_info(path)
    if before.size is None:
        raise FileNotFoundError(path)
    copied = 0
    with source.open_input_stream(path, compression=None) as stream, target.open("wb") as out:
        tag = _tag(stream)
        while data := stream.read(1 << 20):
            copied += out.write(data)
    after = source.get_file_info(path)
    if (before.size, before.mtime_ns) != (after.size, after.mtime_ns):
        raise _ChangedError
    if copied != after.size:
        raise ConnectionError(f"an answer of the store was cut at {copied} bytes of {after.size}")
    return (int(after.size), int(after.mtime_ns or 0)), tag


def _tag(stream: Any) -> str:
    """The store's own hash of an object; "" where it gives none."""
    told = {str(name).lower(): value for name, value in (stream.metadata() or {}).items()}
    return bytes(told.get("etag", b"")).decode("utf-8", "replace").strip('"')
