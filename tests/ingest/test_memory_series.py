"""Memory of processes over time: CSV, columns, a table of Markdown."""

from __future__ import annotations

import io
from typing import Any

import pytest

from oomdoc.ingest import make_head, memory_series
from oomdoc.intake.scan import chunks


def read(text: str, size: int = 1 << 20) -> dict[str, list[dict[str, Any]]]:
    tables: dict[str, list[dict[str, Any]]] = {}
    for batch in memory_series.read("any", chunks(io.BytesIO(text.encode()), size)):
        names, columns = list(batch.columns), list(batch.columns.values())
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        tables.setdefault(batch.table, []).extend(rows)
    return tables


def matches(text: str) -> bool:
    return memory_series.matches(make_head("any", text.encode()))


def test_a_series_by_state_as_csv() -> None:
    text = "state,nvidia_smi_process_mib\nasleep after boot,400\nasleep after a day,5000\n"
    assert matches(text)
    rows = read(text)["process_memory"]
    assert [(row["state"], row["resource"], row["bytes"]) for row in rows] == [
        ("asleep after boot", "gpu", 400 << 20),
        ("asleep after a day", "gpu", 5000 << 20),
    ]


@pytest.mark.parametrize("size", [50, 1 << 20])
def test_a_long_series_by_process(size: int) -> None:
    lines = ["timestamp,pid,name,rss_bytes,shared_bytes"]
    lines += [f"2026-11-19T04:{minute // 60:02}:{minute % 60:02}Z,{pid},engine,{pid * 1000 + minute},7"
              for minute in range(1500) for pid in (11, 12)]  # fmt: skip
    text = "\n".join(lines) + "\n"
    assert len(text) > 64 << 10 and matches(text)
    rows = read(text, size)["process_memory"]
    assert len(rows) == 3000 and rows[0]["line"] == 2
    assert (rows[1]["t"], rows[1]["name"], rows[1]["bytes"]) == (1795060800.0, "engine (pid 12)", 12000)


def test_a_table_of_markdown_and_two_quantities() -> None:
    text = "| phase | RSS (MiB) |\n|---|---|\n| boot | 400 |\n| night | 900 |\n"
    assert [row["state"] for row in read(text)["process_memory"]] == ["boot", "night"]
    text = "state       rss_mib   gpu_mib\nidle        3000      20000\n"
    assert [row["resource"] for row in read(text)["process_memory"]] == ["host", "gpu"]
