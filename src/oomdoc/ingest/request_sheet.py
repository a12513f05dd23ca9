"""Requests in CSV: the header that names tokens, and the rows below it."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass

from oomdoc.ingest.forms.believe import are_sums
from oomdoc.ingest.request_keys import MEANING, Found, Requests, are_requests, put
from oomdoc.ingest.request_owner import conversation_of, names_prompts
from oomdoc.intake.cells import is_null


@dataclass(frozen=True)
class Sheet:
    """The header of a CSV log: its delimiter, and the name of each column."""

    delimiter: str
    names: tuple[str, ...]
    header: bytes


def _conversed(names: tuple[str, ...], meant: set[str]) -> tuple[str, ...]:
    """The names of the columns, that of the conversation's id under a name that says so."""
    whose = None if "tenant" in meant else conversation_of(names)
    return tuple("conversation_id" if name == whose else name for name in names)


def header_of(line: bytes) -> Sheet | None:
    """The header that a line is, if it names input and output tokens."""
    text = line[:8192].decode("utf-8", "replace").strip().lstrip("\ufeff")
    if text[:1] in "{[":  # a document that names its columns is no header
        return None
    for delimiter in (",", ";", "\t"):
        names = tuple(name.strip().strip('"') for name in text.split(delimiter))
        meant = {meaning.what for name in names if (meaning := MEANING[name])}
        if len(names) > 1 and are_requests(meant):
            return Sheet(delimiter, _conversed(names, meant), line.strip())
    return None


def has_named_prompts(sheet: Sheet, lines: Sequence[bytes]) -> bool:
    """Whether a column that nobody knows by its name tells by its cells which prompt each row is of."""
    meant = {name: meaning.what for name in sheet.names if (meaning := MEANING[name])}
    if "tenant" in meant.values() or "cached" not in meant.values():
        return False
    rows = [line.decode("utf-8", "replace").strip("\r\n").split(sheet.delimiter) for line in lines]
    rows = [row for row in rows if len(row) == len(sheet.names)]
    size = next((at for at, name in enumerate(sheet.names) if meant.get(name) == "input"), None)
    return size is not None and any(
        names_prompts([(row[at].strip(), row[size].strip()) for row in rows if row[at].strip() and row[size].strip()])
        for at, name in enumerate(sheet.names)
        if name not in meant
    )


def of_sums(sheet: Sheet, lines: Sequence[bytes]) -> bool:
    """Whether the rows are sums over many requests."""
    size = next((name for name in sheet.names if (meaning := MEANING[name]) and meaning.what == "input"), None)
    rows = [line.decode("utf-8", "replace").strip("\r\n").split(sheet.delimiter) for line in lines]
    columns = {name: [row[at] for row in rows if at < len(row)] for at, name in enumerate(sheet.names)}
    return size is not None and are_sums(columns, size, {name for name in sheet.names if MEANING[name]})


def add_row(sheet: Sheet, requests: Requests, line: int, raw: bytes) -> None:
    """The request of a row."""
    text = raw.decode("utf-8", "replace").strip("\r\n")
    if not text.strip() or raw.strip() == sheet.header:
        return
    try:
        cells = next(csv.reader([text], delimiter=sheet.delimiter)) if '"' in text else text.split(sheet.delimiter)
    except (csv.Error, StopIteration):
        cells = []
    if len(cells) != len(sheet.names):
        requests.noted.problem(line, f"not {len(sheet.names)} cells as in the header", text)
        return
    found: Found = {}
    for name, cell in zip(sheet.names, cells, strict=True):
        meaning = MEANING[name]
        if meaning is not None:
            value = cell.strip()
            put(found, meaning, None if is_null(value.encode("utf-8", "replace")) else value)
    requests.add(line, found, None, text)
