"""What `docker stats` and `podman stats` print: courses of containers, limits that somebody set, and what is neither."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import forms
from verdicts import analysed

GIB = 1 << 30
HEADER = "CONTAINER ID   NAME         CPU %     MEM USAGE / LIMIT     MEM %     NET I/O     BLOCK I/O   PIDS\n"
ROW = "3b7e40c1d5aa   umbra-chat   118.42%   {used} / {limit}   64.10%   18GB / 5.9GB   118GB / 94MB   341\n"


def read(text: str) -> dict[str, list[dict[str, Any]]]:
    _, tables = forms.read("stats.txt", text.encode())
    return {name: [{k: v for k, v in row.items() if v is not None} for row in rows] for name, rows in tables.items()}


def looks(sizes: list[str], stamp: str = "2026-03-02T0{at}:00:00Z\n", limit: str = "64GiB") -> str:
    return "".join(stamp.format(at=at) + HEADER + ROW.format(used=size, limit=limit) for at, size in enumerate(sizes))


def test_looks_under_their_moments_are_a_course() -> None:
    found = read(looks(["20.5GiB", "24.5GiB", "31.25GiB"]))["process_memory"]
    assert [row["bytes"] / GIB for row in found] == [20.5, 24.5, 31.25]
    assert [row["t"] - found[0]["t"] for row in found] == [0, 3600, 7200]
    assert {(row["name"], row["resource"]) for row in found} == {("umbra-chat", "container")}


def test_looks_without_moments_have_an_order() -> None:
    found = read(looks(["20.5GiB", "24.5GiB", "31.25GiB"], stamp=""))["process_memory"]
    assert [row["step"] for row in found] == [1, 2, 3] and not any("t" in row for row in found)


def test_one_look_tells_a_limit_and_no_course() -> None:
    found = read("$ docker stats --no-stream\n" + looks(["20.5GiB", "24.5GiB"], stamp=""))
    assert "process_memory" not in found
    assert [row["memory_limit_bytes"] for row in found["container"]] == [64 * GIB]


@pytest.mark.parametrize(
    ("limit", "told"),
    [("96GiB", 96 * GIB), ("512MiB", GIB // 2), ("68.72GB", 64 * GIB), ("62.71GiB", None), ("67.33GB", None), ("251GiB", None), ("503.6GiB", None)],
)  # fmt: skip
def test_the_size_of_the_host_is_no_limit(limit: str, told: int | None) -> None:
    found = read(looks(["20.5GiB"], limit=limit)).get("container", [])
    assert [row["memory_limit_bytes"] for row in found] == ([] if told is None else [told])


def test_objects_of_one_line() -> None:
    lines = [
        {"Name": "umbra-chat", "CPUPerc": "1.00%", "MemUsage": f"{size}GiB / 64GiB", "MemPerc": "9.00%"}
        for size in (20, 30, 40)
    ]
    found = read("\n".join(map(json.dumps, lines)) + "\n")
    assert [row["bytes"] for row in found["process_memory"]] == [20 * GIB, 30 * GIB, 40 * GIB]
    assert "note" not in found  # no size of a host


@pytest.mark.parametrize(
    "text", ["MEM USAGE / LIMIT\n", ROW.format(used="1GiB", limit="2GiB"), HEADER + "nothing runs\n"]
)
def test_what_is_no_such_table(text: str) -> None:
    assert not {"container", "process_memory"} & read(text).keys()


def test_a_container_that_fills_its_limit_before_it_is_gone(tmp_path: Path) -> None:
    sizes = ["31.10GiB", "39.85GiB", "48.02GiB", "55.90GiB", "63.71GiB"]
    (tmp_path / "stats.txt").write_text(looks(sizes), encoding="utf-8")
    (tmp_path / "engine.log").write_text(
        "INFO 03-02 00:01:54 [api_server.py:1896] vLLM API server version 0.13.0\n"
        "INFO 03-02 00:03:03 [api_server.py:1971] Starting vLLM API server 0 on http://0.0.0.0:8000\n",
        encoding="utf-8",
    )
    (tmp_path / "state.json").write_text(
        json.dumps([{"Name": "/umbra-chat", "State": {"Status": "exited", "ExitCode": 137, "OOMKilled": False, "FinishedAt": "2026-03-02T04:01:00Z"}, "HostConfig": {}, "Config": {"Image": "vllm/vllm-openai:v0.13.0"}}]),
        encoding="utf-8",
    )  # fmt: skip
    with analysed(tmp_path) as analysis:
        assert analysis.report.diagnoses[0].cause in ("host-memory-exhausted", "memory-leak")


def test_rows_that_somebody_picked_out_of_many_looks_are_read_in_words() -> None:
    rows = "".join(f"07:{size}  " + ROW.format(used=f"{size}GiB", limit="64GiB") for size in (20, 30, 40))
    found = read(rows)["process_memory"]
    assert [row["bytes"] for row in found] == [20 * GIB, 30 * GIB, 40 * GIB]


def test_looks_as_markdown_and_without_the_processor() -> None:
    rows = (
        (HEADER, "| --- |\n", ROW),
        ("NAME  MEM USAGE / LIMIT  MEM %\n", "", "umbra-chat  {used} / {limit}  64.10%\n"),
    )
    for header, rule, row in rows:
        barred = bool(rule)
        shown = [header, *(row.format(used=size, limit="64GiB") for size in ("20.5GiB", "24.5GiB", "31.25GiB"))]
        lines = [
            "| " + " | ".join(filter(None, line.strip().split("  "))) + " |\n" if barred else line for line in shown
        ]
        found = read("".join((lines[0], rule, *lines[1:])))
        assert [row["memory_limit_bytes"] for row in found["container"]] == [64 * GIB]
        assert [row["bytes"] / GIB for row in found["process_memory"]] == [20.5, 24.5, 31.25]
