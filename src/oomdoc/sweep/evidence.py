"""Evidence kept and judged again: the tables of a bundle as one packed text, and a report made from it with other rules.

It holds what was read, before any rule: the same program judges it exactly as if the bundle had been read again.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import zstandard

from oomdoc.assemble.assemble import assemble
from oomdoc.diagnose import Analysis
from oomdoc.evidence.store import Store
from oomdoc.evidence.tables import TABLES
from oomdoc.intake.bundle import Intake
from oomdoc.judge.rules import Rule
from oomdoc.model import Report, SourceRow, Unread

MOST_ROWS = 20_000
"""A bundle with more rows of evidence is not kept and is read again under new rules: packing costs 5 to 10 us a row, and
a dense request log packs to megabytes."""
_LEVEL = 6  # of zstd: 9 saves two percent more for twice the time


def pack(analysis: Analysis) -> bytes | None:
    """The evidence tables of an analysis; None where they are too large to keep."""
    counts = analysis.sql(" UNION ALL ".join(f"SELECT '{name}', count(*) FROM {name}" for name in TABLES))[1]
    filled = [name for name, rows in counts if rows]
    if sum(rows for _, rows in counts) > MOST_ROWS:
        return None
    tables = {}
    for name in filled:
        columns, rows = analysis.sql(f"SELECT * FROM {name}")
        tables[name] = {"columns": columns, "rows": rows}
    report = analysis.report
    held = {
        "bundle": [report.bundle.name, report.bundle.sha256, report.bundle.bytes, report.bundle.files],
        "unread": [[entry.path, entry.why] for entry in report.coverage.unread],
        "tables": tables,
    }
    text = json.dumps(held, ensure_ascii=True, separators=(",", ":"))
    return zstandard.ZstdCompressor(level=_LEVEL).compress(text.encode())


def unpacked(packed: bytes) -> dict[str, Any]:
    """What `pack` has kept: `bundle`, `unread`, and `tables` by name, each with its `columns` and `rows`."""
    held: dict[str, Any] = json.loads(zstandard.ZstdDecompressor().decompress(packed))
    return held


def _fill(store: Store, held: Mapping[str, Any]) -> None:
    for name, table in held["tables"].items():
        store.add(name, [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]])


def ask(packed: bytes, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """What one SELECT over the tables and views answers on kept evidence: names of columns, and rows."""
    with tempfile.TemporaryDirectory(prefix="oomdoc-") as scratch, Store(Path(scratch)) as store:
        _fill(store, unpacked(packed))
        store.finish()
        gravest = store.rows_of("SELECT incident FROM incident LIMIT 1")
        store.focus(gravest[0]["incident"] if gravest else None)
        return store.query(query)


def judge(packed: bytes, rules: Sequence[Rule], faults: Sequence[str]) -> Report:
    """The report that the rules give on kept evidence."""
    held = unpacked(packed)
    with tempfile.TemporaryDirectory(prefix="oomdoc-") as scratch, Store(Path(scratch)) as store:
        _fill(store, held)
        sources = [
            SourceRow(row["source"], row["kind"], row["bytes"], row["lines"], row["rows"], row["problems"], row["lookalikes"])
            for row in (dict(zip(held["tables"]["source"]["columns"], values, strict=True)) for values in held["tables"]["source"]["rows"])
        ]  # fmt: skip
        store.finish()
        name, digest, size, files = held["bundle"]
        intake = Intake(name, digest=digest, bytes=size, files=files)
        unread = [Unread(path, why) for path, why in held["unread"]]
        report, _ = assemble(
            intake, store, list(rules), sorted(sources, key=lambda row: row.path), unread, list(faults)
        )
    return report
