"""Bundle in, redacted copy out.

`redact` reads twice: first to learn which names there are, then to write the copy. Both readings go through the
limits of the intake, member by member; what is no text is left out and named. Lines stay where they are.
"""

from __future__ import annotations

import codecs
import io
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import BinaryIO, cast

from oomdoc.errors import BundleError, UsageError
from oomdoc.intake.bundle import DEFAULT_LIMITS, Intake, Limits, open_bundle
from oomdoc.intake.members import Layer, Member
from oomdoc.intake.scan import Chunk, chunks
from oomdoc.intake.unwrap import unwrap
from oomdoc.limits import scratch_folder
from oomdoc.redact.copy import Copy, named_layers
from oomdoc.redact.forms import HEAD_BYTES, form_of
from oomdoc.redact.manifest import NAME, Manifest
from oomdoc.redact.names import Pseudonyms
from oomdoc.redact.text import Redactor, lines_of
from oomdoc.redact.values import Tally
from oomdoc.units import show_bytes

_LONGEST_PIECE = 512 << 10  # of a line without end: cut at a comma or brace, so that no value is torn

__all__ = ["Manifest", "Pseudonyms", "Redaction", "redact", "redact_stream"]


@dataclass(frozen=True)
class Redaction:
    """How to redact: the map to use and keep (None: names of this run only), further words, limits of the intake."""

    map: Path | None = None
    words: tuple[str, ...] = ()
    limits: Limits = DEFAULT_LIMITS
    progress: Callable[[str, int], None] | None = None


def redact(paths: str | Path | Sequence[str | Path], out: str | Path, options: Redaction | None = None) -> Manifest:
    """Write a redacted copy of what `paths` name to `out`, which must not exist; what was replaced and left out.

    A folder or several paths give a folder, an archive or file one of the same form; where `out` ends like an archive (`.tar.gz`,
    `.zip`, ...) they are packed into one. BundleError where nothing can be read,
    UsageError where the copy cannot be written. Without a map two runs give different stand-ins; with one the same.
    """
    options = options or Redaction()
    given = [paths] if isinstance(paths, (str, Path)) else list(paths)
    target = Path(out)
    _check_target(given, target)
    pseudonyms = Pseudonyms.read(options.map) if options.map else Pseudonyms()
    pseudonyms.add("word", options.words)
    with scratch_folder() as scratch:
        twice = _seekable(given, scratch, options.limits)
        _learn(twice, pseudonyms, options)
        try:
            manifest = _write(twice, target, pseudonyms, scratch, options)
            if options.map:
                pseudonyms.write(options.map)
        except BaseException:  # half a copy is none, and one without the map that was asked for cannot be read back
            if target.is_dir():
                shutil.rmtree(target, ignore_errors=True)
            else:
                target.unlink(missing_ok=True)
            raise
    return manifest


def _check_target(given: Sequence[str | Path], target: Path) -> None:
    if target.exists() or target.is_symlink():
        raise UsageError(f"{target} exists already", "Name a new file or folder, or remove this one first")
    if not target.absolute().parent.is_dir():
        raise UsageError(f"cannot write {target}, there is no folder {target.parent}", "Make it first")
    place = target.absolute().parent.resolve()
    for path in given:
        if str(path) != "-" and Path(path).is_dir() and place.is_relative_to(Path(path).resolve()):
            raise UsageError(f"{target} lies in the bundle itself", "Choose a place outside of it")


def _seekable(given: Sequence[str | Path], scratch: Path, limits: Limits) -> list[str | Path]:
    """Paths that can be read twice: standard input and pipes are kept in the scratch folder."""
    kept: list[str | Path] = []
    for place, path in enumerate(given):
        pipe = str(path) == "-"
        if not pipe and not Path(path).is_fifo():
            kept.append(path)
            continue
        name = "stdin" if pipe else Path(path).name
        copy = scratch / "given" / str(place) / name
        copy.parent.mkdir(parents=True)
        left = limits.max_total_bytes
        with copy.open("xb") as file:
            source = sys.stdin.buffer if pipe else Path(path).open("rb")  # noqa: SIM115 - closed with the program
            while data := source.read(1 << 20):
                left -= len(data)
                if left < 0:
                    raise BundleError(
                        f"{name} is larger than {show_bytes(limits.max_total_bytes)}", "Give it as a file"
                    )
                file.write(data)
        kept.append(copy)
    return kept


# ---- reading


def _open(given: Sequence[str | Path], limits: Limits) -> Intake:
    return open_bundle(list(given), limits, hashing=False)


def _learn(given: Sequence[str | Path], pseudonyms: Pseudonyms, options: Redaction) -> None:
    """The names of the bundle, from every field and place that tells one."""
    redactor = Redactor(pseudonyms, common_words())
    redactor.learning()
    for member in _open(given, options.limits).members():
        redactor.path(member.path)
        if _refused(member) is None:
            for _ in redact_stream(member.stream, redactor, _silent):
                pass
            if options.progress:
                options.progress(member.path, getattr(member.stream, "taken", 0))


def _write(
    given: Sequence[str | Path], target: Path, pseudonyms: Pseudonyms, scratch: Path, options: Redaction
) -> Manifest:
    intake = _open(given, options.limits)
    is_folder = len(given) > 1 or Path(given[0]).is_dir()
    around = _around(given, target, is_folder, options.limits)
    is_folder = is_folder and not around
    copy = Copy(target, is_folder, scratch, around)
    if is_folder:
        target.mkdir(mode=0o700)
    total = Tally()
    namer = Redactor(pseudonyms, common_words())
    namer.learned()
    files: dict[str, dict[str, int]] = {}
    left_out: list[tuple[str, str]] = []
    renamed = members = 0
    for member in intake.members():
        path = namer.path(member.path)
        if why := _refused(member):
            left_out.append((path, f"{why}, left out by the redaction"))
            continue
        if member.path == NAME or member.path.endswith("/" + NAME):
            continue  # of an earlier copy: this one has its own
        tally = Tally()
        redactor = Redactor(pseudonyms, common_words(), tally)
        redactor.learned()
        with tempfile.TemporaryFile(dir=scratch) as file:
            for data in redact_stream(member.stream, redactor, partial(intake.note, member.path)):
                file.write(data)
            copy.put(member.path, member.layers, namer.path, file)
        members += 1
        renamed += path != member.path
        if tally.counts:
            files[path] = tally.counts
            for kind, count in tally.counts.items():
                total.counts[kind] = total.counts.get(kind, 0) + count
        if options.progress:
            options.progress(member.path, getattr(member.stream, "taken", 0))
    if not members:
        raise BundleError(
            f"{intake.name} holds no text that could be redacted", "Give logs as text, or an archive of them"
        )
    left_out += [(namer.path(entry.path), namer.whole(entry.why)) for entry in intake.unread]
    name = namer.path(Path(intake.name).name) or "copy"
    manifest = Manifest(total.counts, files, tuple(sorted(set(left_out))), renamed, members, name)
    with io.BytesIO(manifest.to_json().encode()) as file:
        copy.add(NAME, file)
    copy.finish()
    return manifest


def _around(given: Sequence[str | Path], target: Path, is_folder: bool, limits: Limits) -> tuple[Layer, ...]:
    """The archive to pack a folder or a plain file into, where the copy's name promises one; UsageError where the bundle is another archive."""
    promised = named_layers(target.name)
    if not promised or is_folder:
        return promised
    layers = next((member.layers for member in _open(given, limits).members()), ())
    forms = tuple(layer.form for layer in layers)
    wanted = tuple(layer.form for layer in promised)
    if forms[: len(wanted)] == wanted:
        return ()
    if not {"tar", "zip"} & set(forms[:2]):
        return promised
    raise UsageError(
        f"{target.name} names another kind of archive than {Path(given[0]).name} is",
        "End it as the bundle does, or unpack the bundle and give the folder",
    )


def _silent(why: str) -> None:
    pass


def _refused(member: Member) -> str | None:
    """Why a member cannot be redacted: it is no text."""
    return form_of(_head(cast(io.BufferedReader, member.stream))).refused


def _head(stream: io.BufferedReader) -> bytes:
    return stream.peek(HEAD_BYTES)[:HEAD_BYTES]


def redact_stream(stream: BinaryIO, redactor: Redactor, note: Callable[[str], None]) -> Iterator[bytes]:
    """The lines of a source as its ingestor sees them (collectors' cuts and documents undone), redacted."""
    form = form_of(_head(cast(io.BufferedReader, stream)))
    if form.encoding != "utf-8":
        stream.read(len(form.mark))
        yield form.mark
        decoder = codecs.getincrementaldecoder(form.encoding)("replace")
        texts: Iterator[str] = (decoder.decode(block) for block in iter(lambda: stream.read(1 << 20), b""))
        for made in lines_of(_whole_lines(texts), redactor):
            yield made.encode(form.encoding, "surrogatepass")
        return
    yield form.mark
    stream.read(len(form.mark))
    pieces = (chunk.data.decode("utf-8", "surrogateescape") for chunk in _even(unwrap(chunks(stream), note)))
    for made in lines_of(pieces, redactor):
        yield made.encode("utf-8", "surrogateescape")


def _whole_lines(texts: Iterator[str]) -> Iterator[str]:
    held = ""
    for text in texts:
        cut = text.rfind("\n") + 1
        if cut or len(held) > _LONGEST_PIECE:
            yield held + text[:cut]
            held = text[cut:]
        else:
            held += text
    if held:
        yield held


def _even(pieces: Iterator[Chunk]) -> Iterator[Chunk]:
    """Whole lines; a line without end is cut behind a comma, brace or blank, never within a character or a word."""
    held = b""
    for chunk in pieces:
        data = held + chunk.data if held else chunk.data
        cut = data.rfind(b"\n") + 1
        if len(data) - cut > _LONGEST_PIECE:
            floor = max(cut, len(data) - _LONGEST_PIECE)
            cut = max(cut, *(data.rfind(mark, floor) + 1 for mark in (b"},", b"],", b", ")))
            if cut <= floor:
                cut = max(cut, *(data.rfind(mark, floor) + 1 for mark in (b",", b" ")))
        held = data[cut:]
        if cut:
            yield chunk._replace(data=data[:cut])
    if held:
        yield Chunk(held, 0, False)


@cache
def common_words() -> frozenset[str]:
    """Words that the patterns of the ingestors are made of: replaced in a field, but not wherever they stand."""
    import re

    from oomdoc.evidence.tables import TABLES
    from oomdoc.ingest import KINDS
    from oomdoc.ingest.text_log import PATTERNS

    texts = [*KINDS, *TABLES]
    for pattern in PATTERNS:
        texts += [pattern.regex.pattern, *pattern.anchors]
    for table in TABLES.values():
        texts += table.column_names
    return frozenset(word.lower() for text in texts for word in re.findall(r"[A-Za-z]{2,}", text))
