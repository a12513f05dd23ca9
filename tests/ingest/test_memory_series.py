"""Memory of processes over time: CSV, columns, a table of Markdown."""

from __future__ import annotations

import io
from typing import Any

import pytest

from oomdoc.ingest import make_head, recognise
from oomdoc.ingest import read as read_source
from oomdoc.intake.scan import chunks


def read(text: str, size: int = 1 << 20) -> dict[str, list[dict[str, Any]]]:
    tables: dict[str, list[dict[str, Any]]] = {}
    module, _ = recognise(make_head("any", text.encode()))
    for batch in read_source(module, "any", chunks(io.BytesIO(text.encode()), size)):
        names, columns = list(batch.columns), list(batch.columns.values())
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        tables.setdefault(batch.table, []).extend(rows)
    return tables


def matches(text: str) -> bool:
    return recognise(make_head("any", text.encode()))[1] == "table"


def test_a_series_by_state_as_csv() -> None:
    text = "state,nvidia_smi_process_mib\nasleep after boot,400\nasleep after a day,5000\n"
    assert matches(text)
    rows = read(text)["process_memory"]
    assert [(row["state"], row["resource"], row["bytes"]) for row in rows] == [
        ("asleep after boot", "gpu", 400 << 20),
        ("asleep after a day", "gpu", 5000 << 20),
    ]


@pytest.mark.parametrize("size", [500, 1 << 20])
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
    text = "state       rss_mib   gpu_mib\nidle        3000      20000\nasleep      3100      900\n"
    assert [row["resource"] for row in read(text)["process_memory"]] == ["host", "gpu", "host", "gpu"]


def test_aligned_columns_go_on_in_the_next_chunk() -> None:
    rows = "".join(f"2026-11-19T04:{minute:02}:00Z  {minute + 100}\n" for minute in range(10, 60))
    assert len(read("time                  rss_mib\n" + rows, 400)["process_memory"]) == 50


def test_memory_by_seconds_of_an_epoch_and_of_a_list_of_ray() -> None:
    assert [row["t"] for row in read("epoch_s,memory_used_mib\n1789632005.0,482\n1789632012.0,900\n")["process_memory"]] == [1789632005.0, 1789632012.0]  # fmt: skip
    text = "PID\tMEM(GB)\tCOMMAND\n41\t11.2\tray::A.generate\n42\t0.5\tray::main_task\n"
    assert [(row["name"], row["bytes"]) for row in read(text)["process_memory"]] == [("ray::A.generate (pid 41)", 11_200_000_000), ("ray::main_task (pid 42)", 500_000_000)]  # fmt: skip


def test_two_measures_of_one_holder_are_two_series() -> None:
    """What a process holds itself and what its container is charged for are no readings of one quantity, in whatever order the columns stand."""
    own, charged = "container_memory_rss_bytes", "container_memory_working_set_bytes"
    for first, second in ((own, charged), (charged, own)):
        sizes = {own: 4_000_000_000, charged: 6_000_000_000}
        rows = "".join(
            f"2026-11-19T04:{minute:02}:00Z,chat-0,{sizes[first] + minute},{sizes[second] + minute},{minute % 3}\n"
            for minute in range(10, 30)
        )
        found = read(f"timestamp_utc,pod,{first},{second},vllm_num_requests_running\n{rows}")["process_memory"]
        series = {
            name: [row["bytes"] for row in found if row["name"] == name] for name in {row["name"] for row in found}
        }
        assert {name: len(sizes) for name, sizes in series.items()} == {"chat-0": 20, f"chat-0 {charged}": 20}
        assert max(series["chat-0"]) < 5_000_000_000 < min(series[f"chat-0 {charged}"])
        assert found[0]["running"] == 1  # the make before the name of a quantity is no other quantity
