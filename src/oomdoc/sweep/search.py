"""Which bundles show a line or a quantity: the evidence that a store has kept, asked without reading a bundle again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from oomdoc import __version__
from oomdoc.errors import UsageError
from oomdoc.sweep import evidence
from oomdoc.sweep.columns import READ
from oomdoc.sweep.dataset import Dataset, existing
from oomdoc.sweep.places import Access
from oomdoc.sweep.trends import questions

Progress = Callable[[int, int], None]
"""Called with how many bundles were asked, and of how many."""


@dataclass(frozen=True)
class Found:
    """Rows with their bundle in front, in order of bundle.

    `asked` is how many bundles have kept evidence, `shown` in how many of them there was something, `without` those that could not
    be asked: too many rows to be kept, read by another release, or not readable.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    asked: int
    shown: int
    without: tuple[str, ...]


def lines(store: str, text: str, access: Access, progress: Progress | None = None) -> Found:
    """Where a text stands in what was read as evidence, in any case of letters: bundle, cause, place, table and the text itself."""
    if not text.strip():
        raise UsageError("--find needs a text", "Write a word or a part of a message")
    wanted = text.casefold()
    rows: list[tuple[Any, ...]] = []

    def look(bundle: str, cause: str | None, packed: bytes) -> bool:
        found = list(_matches(evidence.unpacked(packed)["tables"], wanted))
        rows.extend((bundle, cause, *each) for each in found)
        return bool(found)

    asked, shown, without = _each(existing(store, access), look, progress)
    return Found(("bundle", "cause", "ref", "table", "text"), tuple(rows), asked, shown, without)


def _matches(tables: dict[str, Any], wanted: str) -> Iterator[tuple[str | None, str, str]]:
    """Place, table and text of what has the text in one of its columns, in order of place; of a line that is in several tables the
    longest text."""
    found: dict[tuple[str, int], tuple[str, str]] = {}
    for name, table in sorted(tables.items()):
        if name == "source":
            continue
        at = {column: place for place, column in enumerate(table["columns"])}
        texts = [place for column, place in at.items() if column != "source"]
        for row in table["rows"]:
            told = [row[place] for place in texts if isinstance(row[place], str) and wanted in row[place].casefold()]
            if told:
                key = (
                    str(row[at["source"]]) if "source" in at else "",
                    int(row[at["line"]] or 0) if "line" in at else 0,
                )
                held = found.get(key)
                text = max(told, key=len)
                if held is None or len(text) > len(held[1]):
                    found[key] = (name, text)
    for (source, line), (name, text) in sorted(found.items()):
        yield (f"{source}:{line}" if line else source or None), name, text


def answers(store: str, query: str, access: Access, progress: Progress | None = None) -> Found:
    """What one SELECT over the evidence tables answers for each bundle; bundles without a row show nothing."""
    names: list[str] = []
    rows: list[tuple[Any, ...]] = []

    def look(bundle: str, _: str | None, packed: bytes) -> bool:
        columns, found = evidence.ask(packed, query)
        names[:] = columns
        rows.extend((bundle, *row) for row in found)
        return bool(found)

    asked, shown, without = _each(existing(store, access), look, progress)
    return Found(("bundle", *names), tuple(rows), asked, shown, without)


def _each(
    dataset: Dataset, look: Callable[[str, str | None, bytes], bool], progress: Progress | None
) -> tuple[int, int, tuple[str, ...]]:
    """Call `look` for every bundle whose evidence is kept as of its latest content: how many were asked, how many showed something."""
    with questions(dataset) as ask:
        latest = {
            row["bundle"]: row
            for row in ask.rows_of("SELECT bundle, sha256, cause, status, copy_of FROM latest_bundle ORDER BY bundle")
            if row["status"] != "gone" and row["copy_of"] is None
        }
    places = {}
    for part in sorted(
        (part for part in dataset.manifest.files if part.table == "evidence"), key=lambda part: part.night
    ):
        columns = dataset.read(part, ["bundle", "sha256", "oomdoc_version"]).to_pydict()
        for bundle, sha256, version in zip(*columns.values(), strict=True):
            if bundle in latest and latest[bundle]["sha256"] == sha256 and version == __version__:
                places[bundle] = part
    shown = done = 0
    for part in sorted(set(places.values()), key=lambda part: (part.night, part.path)):
        columns = dataset.read(part, ["bundle", "sha256", "tables"]).to_pydict()
        for bundle, sha256, packed in zip(*columns.values(), strict=True):
            if places.get(bundle) != part or latest[bundle]["sha256"] != sha256:
                continue
            shown += look(bundle, latest[bundle]["cause"], packed)
            done += 1
            if progress:
                progress(done, len(places))
    return (
        done,
        shown,
        tuple(bundle for bundle, row in latest.items() if bundle not in places and row["status"] in READ),
    )
