"""Samples in names, forms and damage that the vocabulary was not written with, and wrapped as people hand texts on."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import forms
import reshaped

SAMPLES = Path(__file__).parents[2] / "sample_logs"
TABLES = [
    "one-of-four-cards/gpu-samples.csv", "second-tenant-on-card-one/node/nvidia-smi.txt", "edge-097-chat-server/requests.csv",
    "prompt-logprobs-spike/gateway.jsonl", "kv-demand-long-chats/vllm.log", "healthy-full-device/metrics-20261124T090219Z.prom", "startup-probe-too-short/events.txt",
]  # fmt: skip
TEXTS = sorted(path for path in SAMPLES.glob("*/*") if path.is_file() and path.name != "case.toml")[::4]
LEAST_TABLES = {
    "samples of GPUs": 0.98,
    "processes": 0.98,
    "requests": 0.96,
    "statistics": 0.98,
    "metrics": 0.98,
    "events": 0.95,
}
LEAST_TEXTS = 0.96


@pytest.mark.parametrize("source", TABLES)
def test_quantities_come_back_under_other_names_and_in_other_forms(source: str) -> None:
    cells: Counter[str] = Counter()
    back: Counter[str] = Counter()
    tried = set()
    for group, form, way, one in reshaped.of_tables(source, (SAMPLES / source).read_bytes()):
        assert not one.misread, (group, form, way, one.misread)
        cells[group] += one.cells
        back[group] += one.back
        tried.add(form)
    assert len(tried) >= 8
    assert {group for group in cells if back[group] < LEAST_TABLES[group] * cells[group]} == set(), (cells, back)


def test_texts_come_back_out_of_what_was_put_around_them() -> None:
    cells: Counter[str] = Counter()
    back: Counter[str] = Counter()
    for number, path in enumerate(TEXTS):
        names = [name for at, name in enumerate(reshaped.TEXT_FORMS) if (at + number) % 2 == 0]
        for _, form, _, one in reshaped.of_texts(str(path), path.read_bytes(), names):
            cells[form] += one.cells
            back[form] += one.back
    assert set(cells) == set(reshaped.TEXT_FORMS)
    assert sum(back.values()) >= LEAST_TEXTS * sum(cells.values()), {
        form: back[form] / max(1, cells[form]) for form in cells
    }


def test_a_column_that_nobody_knows_is_a_problem_with_its_name() -> None:
    text = "ts,gpu,fb_used_mib,fb_total_mib,blorp_level\n" + "".join(
        f"179520509{at},{at},{70000 + at},81559,{at}.5\n" for at in range(4)
    )
    for name, form in (
        ("comma", None),
        ("pandas", reshaped.OTHER_FORMS["pandas"]),
        ("hits", reshaped.OTHER_FORMS["hits"]),
        ("frames", reshaped.OTHER_FORMS["frames"]),
    ):
        lines = [line.split(",") for line in text.splitlines()]
        shown = (
            text
            if form is None
            else form(lines[0], [[float(cell) if "." in cell else int(cell) for cell in line] for line in lines[1:]])
        )
        _, found = forms.read("evidence.txt", shown.encode())
        assert [row["text"] for row in found["problem"]] == ["blorp_level"], name
        assert [row["used_bytes"] >> 20 for row in found["gpu_sample"]] == [70000, 70001, 70002, 70003], name


def test_processes_under_other_headers_are_not_guessed_by_their_cells() -> None:
    _, found = forms.read(
        "gpu.csv",
        b"GPU,PID,Type,Process name,GPU Memory Usage\n0,4711,C,/usr/bin/python3,32046 MiB\n1,4712,C,/usr/bin/python3,32049 MiB\n",
    )
    assert [(row["gpu"], row["pid"], row["name"]) for row in found["gpu_process"]] == [
        (0, 4711, "/usr/bin/python3"),
        (1, 4712, "/usr/bin/python3"),
    ]


def test_a_share_of_time_is_no_count_of_processes() -> None:
    text = reshaped.OTHER_FORMS["json-lines"](
        ["When", "GPU #", "Card", "Mem used (GiB)", "Mem size (GiB)", "Busy %"],
        [[f"2026-11-20T20:04:{at}Z", 0, "NVIDIA A100-SXM4-40GB", 18.5, 40.0, 90 + at % 9] for at in range(10, 20)],
    )
    _, found = forms.read("evidence.txt", text.encode())
    assert "process_memory" not in found and len(found["gpu_sample"]) == 10


@pytest.mark.parametrize("form", ["deep", "toml", "json-array"])
def test_events_come_back_out_of_one_line_and_out_of_toml(form: str) -> None:
    """Sentences of the cluster, in records of another program: neither kubectl's output nor a catalogue of messages."""
    header = ["last seen", "severity", "event_reason", "involved_object", "description"]
    rows = [
        ["567s", "Normal", "Scheduled", "pod/chat-0", "Successfully assigned ml/chat-0 to gpu-28"],
        ["30s", "Warning", "BackOff", "pod/chat-0", "Back-off restarting failed container vllm in pod chat-0_ml"],
        ["20s", "Warning", "Unhealthy", "pod/chat-0", "Liveness probe failed: HTTP probe failed with statuscode: 503"],
        ["10s", "Normal", "Killing", "pod/chat-0", "Container vllm failed liveness probe, will be restarted"],
    ]
    _, found = forms.read("events.txt", reshaped.OTHER_FORMS.get(form, forms.FORMS.get(form))(header, rows).encode())
    assert [(row["reason"], row["object"], row["message"]) for row in found["cluster_event"]] == [
        (row[2], "pod/chat-0", row[4]) for row in rows
    ]
