"""Lists of processes: names in them are no statements, sizes are evidence."""

from __future__ import annotations

import io
from typing import Any

import pytest

from oomdoc import ingest
from oomdoc.ingest import make_head, process_list
from oomdoc.intake.scan import chunks


def read(text: str, size: int = 1 << 20) -> dict[str, list[dict[str, Any]]]:
    tables: dict[str, list[dict[str, Any]]] = {}
    for batch in process_list.read("any", chunks(io.BytesIO(text.encode()), size)):
        names, columns = list(batch.columns), list(batch.columns.values())
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        tables.setdefault(batch.table, []).extend(rows)
    return tables


def matches(text: str) -> bool:
    return process_list.matches(make_head("any", text.encode()))


def test_processes_and_orphans() -> None:
    text = "  PID  PPID     RSS STAT COMMAND\n   41     1  500000 Sl   VLLM::EngineCore\n   42    41    9000 S    bash -c x\n"
    assert matches(text)
    tables = read(text)
    names = [row["name"] for row in tables["process_memory"]]
    assert names == ["VLLM::EngineCore (pid 41)", "bash -c x (pid 42)"]
    assert [(row["topic"], row["value"]) for row in tables["note"]] == [("orphan-process", 500000 * 1024)]


def test_prose_above_a_listing_leaves_it_a_note() -> None:
    listing = "  PID  PPID     RSS STAT COMMAND\n   41     1  500000 Sl   VLLM::EngineCore\n"
    assert matches(listing) and not matches("the old server is dead,\nthis is what is left of it:\n" + listing)


def test_a_helper_of_process_one_is_no_orphan() -> None:
    text = "  PID  PPID     RSS STAT COMMAND\n   41     1   {} Sl   VLLM::EngineCore\n"
    assert "note" in read(text.format(64 << 10)) and "note" not in read(text.format((64 << 10) - 4))
    assert "note" not in read("PID PPID RSS COMMAND\n41 1 900000 postgres\n")


@pytest.mark.parametrize("columns", ["PID PPID RSS CMD", "PID PPID C CMD"])
def test_a_server_that_a_service_manager_started_has_lost_no_parent(columns: str) -> None:
    row = "{} 1 900000 {}\n"
    served = row.format(41, "/opt/e/bin/python3 /opt/e/bin/vllm serve /models/a --port 8101")
    assert "note" not in read(f"{columns}\n{served}")
    assert [each["text"] for each in read(f"{columns}\n{served}{row.format(77, 'VLLM::EngineCore')}")["note"]] == [
        "77 1 900000 VLLM::EngineCore"
    ]


def test_the_collectors_samples_have_their_time() -> None:
    text = "2026-11-19T04:00:00Z\n   41 500000 VLLM::EngineCore\n2026-11-19T04:00:05Z\n   41 500400 VLLM::EngineCore\n   77   1200 vllm serve /models/a\n"
    assert matches(text)
    rows = read(text)["process_memory"]
    assert [(row["t"], row["name"], row["bytes"] >> 10) for row in rows] == [
        (1795060800.0, "VLLM::EngineCore (pid 41)", 500000),
        (1795060805.0, "VLLM::EngineCore (pid 41)", 500400),
        (1795060805.0, "vllm serve /models/a (pid 77)", 1200),
    ]


def test_a_status_of_proc() -> None:
    text = "Name:\tVLLM::EngineCor\nTgid:\t41\nThreads:\t9\nVmPeak:\t  900 kB\nVmRSS:\t     800 kB\n"
    assert matches(text) and [row["bytes"] for row in read(text)["process_memory"]] == [800 << 10]


@pytest.mark.parametrize(
    "text",
    [
        "CONTAINER ID   NAME          CPU %     MEM USAGE / LIMIT   MEM %\n1f2e   vllm-lora     3.1%      60GiB / 64GiB       93.7%\n",
        "top - 10:00:00 up 1 day\n    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND\n     41 root      20   0   90.1g  12.1g  90112 D   0.0  10.1   1:11.22 vllm-lora\n",
        "USER   PID %CPU %MEM COMMAND\nroot     9  0.0  0.1 [nvidia]\n",
    ],
)
def test_other_lists_are_known_and_say_nothing(text: str) -> None:
    ingestor, kind = ingest.recognise(make_head("any", text.encode()))
    assert kind == "process-list"
    assert list(ingest.read(ingestor, "any", chunks(io.BytesIO(text.encode())))) == []
