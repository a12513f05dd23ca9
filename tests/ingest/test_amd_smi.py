"""AMD's tools: text, CSV and JSON of both say the same of a device."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoc.evidence.tables import COLUMN_READING
from oomdoc.ingest import amd_smi, make_head, recognise
from oomdoc.intake.scan import chunks
from oomdoc.units import GIB, MIB
from verdicts import tables

TOTAL, USED = 206_141_652_992, 142_917_206_016

ROCM_TEXT = f"""\
============================ ROCm System Management Interface ============================
================================== Memory Usage (Bytes) ==================================
GPU[0]\t\t: VRAM Total Memory (B): {TOTAL}
GPU[0]\t\t: VRAM Total Used Memory (B): {USED}
GPU[1]\t\t: VRAM Total Memory (B): {TOTAL}
GPU[1]\t\t: VRAM Total Used Memory (B): 299237376
GPU[1]\t\t: GTT Total Used Memory (B): 77
==========================================================================================
================================== End of ROCm SMI Log ===================================
"""
ROCM_CSV = f"device,VRAM Total Memory (B),VRAM Total Used Memory (B)\ncard0,{TOTAL},{USED}\ncard1,{TOTAL},299237376\n"
ROCM_JSON = json.dumps(
    {
        "card0": {"VRAM Total Memory (B)": str(TOTAL), "VRAM Total Used Memory (B)": str(USED), "GPU use (%)": "97"},
        "card1": {
            "VRAM Total Memory (B)": str(TOTAL),
            "VRAM Total Used Memory (B)": "299237376",
            "Card Series": "AMD Instinct MI300X",
        },
        "system": {"Driver version": "6.8"},
    },
    indent=1,
)
METRIC = """\
GPU: 0
    USAGE:
        GFX_ACTIVITY: 97 %
        UMC_ACTIVITY: 40 %
    MEM_USAGE:
        TOTAL_VRAM: 196592 MB
        USED_VRAM: 136296 MB
        FREE_VRAM: 60296 MB
        TOTAL_VISIBLE_VRAM: 196592 MB
        TOTAL_GTT: 515828 MB

GPU: 1
    MEM_USAGE:
        TOTAL_VRAM: 196592 MB
        USED_VRAM: 283 MB
"""
MONITOR = """\
GPU  POWER  GFX%  VRAM_USED  VRAM_TOTAL
  0  712 W  97 %  136296 MB   196592 MB
  1  135 W   0 %     283 MB   196592 MB
"""
METRIC_CSV = "gpu,gfx_activity,total_vram,used_vram,free_vram\n0,97,196592,136296,60296\n1,N/A,196592,283,196309\n"
METRIC_JSON = json.dumps([
    {"gpu": 0, "usage": {"gfx_activity": {"value": 97, "unit": "%"}},
     "mem_usage": {"total_vram": {"value": 196592, "unit": "MB"}, "used_vram": {"value": 136296, "unit": "MB"}}},
    {"gpu": 1, "mem_usage": {"total_vram": {"value": 196592, "unit": "MB"}, "used_vram": {"value": 283, "unit": "MB"}}},
])  # fmt: skip


def read(text: str, size: int = 1 << 20) -> dict[str, list[dict[str, Any]]]:
    tables: dict[str, list[dict[str, Any]]] = {}
    module, _ = recognise(make_head("any", text.encode()))
    for batch in module.read("any", chunks(io.BytesIO(text.encode()), size)):
        if batch.table == COLUMN_READING:
            continue
        for row in zip(*batch.columns.values(), strict=True):
            told = {name: value for name, value in zip(batch.columns, row, strict=True) if value is not None}
            tables.setdefault(batch.table, []).append(told)
    return tables


def kind(text: str) -> str:
    return recognise(make_head("any", text.encode()))[1]


@pytest.mark.parametrize("text", [ROCM_TEXT, ROCM_CSV, ROCM_JSON])
def test_rocm_smi_counts_bytes(text: str) -> None:
    tables = read(text)
    assert kind(text) == ("amd-smi" if text == ROCM_TEXT else "table")
    assert [(row["gpu"], row["used_bytes"], row["total_bytes"]) for row in tables["gpu_sample"]] == [
        (0, USED, TOTAL), (1, 299_237_376, TOTAL)]  # fmt: skip
    assert "problem" not in tables


@pytest.mark.parametrize("text", [METRIC, MONITOR, METRIC_CSV, METRIC_JSON])
def test_amd_smi_counts_binary_megabytes(text: str) -> None:
    tables = read(text)
    assert kind(text) == ("amd-smi" if text == METRIC else "table")
    assert [(row["gpu"], row["used_bytes"], row["total_bytes"]) for row in tables["gpu_sample"]] == [
        (0, 136_296 * MIB, 196_592 * MIB), (1, 283 * MIB, 196_592 * MIB)]  # fmt: skip
    assert tables["gpu_sample"][0]["gpu_util"] == 0.97
    assert "problem" not in tables


def test_lines_are_those_of_the_device() -> None:
    assert [row["line"] for row in read(ROCM_TEXT)["gpu_sample"]] == [3, 5]
    assert [row["line"] for row in read(ROCM_JSON)["gpu_sample"]] == [3, 8]
    assert [row["line"] for row in read(MONITOR, 80)["gpu_sample"]] == [2, 3]


def test_names_sizes_and_processes() -> None:
    static = "GPU: 0\n    ASIC:\n        MARKET_NAME: AMD Instinct MI300X\n    VRAM:\n        TYPE: HBM3\n        SIZE: 196592 MB\n    CACHE:\n        SIZE: 32 KB\n"
    assert kind(static) == "amd-smi"
    assert read(static) == {
        "gpu_device": [{"line": 3, "gpu": 0, "name": "AMD Instinct MI300X", "total_bytes": 196_592 * MIB, "count": 1}]
    }
    pids = (
        "================= KFD Processes =================\nKFD process information:\n"
        "PID     PROCESS NAME    GPU(s)  VRAM USED       SDMA USED       CU OCCUPANCY\n"
        "4242    VLLM::EngineCore        1       142917206016    0       0\n"
        "==================================================\n"
    )
    assert kind(pids) == "amd-smi"
    assert read(pids)["gpu_process"] == [
        {"line": 4, "pid": 4242, "name": "VLLM::EngineCore", "type": "C", "used_bytes": USED}]  # fmt: skip
    process = (
        "GPU: 3\n    PROCESS_INFO:\n        NAME: python3\n        PID: 77\n        MEMORY_USAGE:\n            VRAM_MEM: 12.5 GB\n"
        "    PROCESS_INFO:\n        NAME: N/A\n        PID: 78\n"
    )
    assert read(process)["gpu_process"] == [
        {"line": 2, "gpu": 3, "pid": 77, "name": "python3", "type": "C", "used_bytes": int(12.5 * GIB)},
        {"line": 7, "gpu": 3, "pid": 78, "type": "C"},
    ]


def test_a_loop_is_a_sample_each_with_the_time_above() -> None:
    text = f"2026-11-20 20:04:51\n{MONITOR}2026-11-20 20:05:01\n{MONITOR}"
    rows = read(text)["gpu_sample"]
    assert [(row["gpu"], row["t"]) for row in rows] == [
        (0, 1795205091),
        (1, 1795205091),
        (0, 1795205101),
        (1, 1795205101),
    ]
    assert len(read(ROCM_TEXT * 3)["gpu_sample"]) == 6


def test_what_the_tool_does_not_know_is_null() -> None:
    assert "gpu_sample" not in read("GPU: 0\n    MEM_USAGE:\n        TOTAL_VRAM: N/A\n        USED_VRAM: N/A\n")
    tables = read("device,VRAM Total Memory (B),VRAM Total Used Memory (B)\ncard0,much,5\ncard1,9,7\n")
    assert [row["used_bytes"] for row in tables["gpu_sample"]] == [5, 7]
    assert "total_bytes" not in tables["gpu_sample"][0]


def test_the_documents_of_both_tools_tell_names_sizes_and_processes() -> None:
    static = json.dumps(
        [{"gpu": 0, "asic": {"market_name": "AMD Instinct MI300X"}, "vram": {"size": {"value": 196592, "unit": "MB"}}}]
    )
    assert [(row["name"], row["total_bytes"]) for row in read(static)["gpu_device"]] == [
        ("AMD Instinct MI300X", 196_592 * MIB)
    ]
    info = {"name": "python3", "pid": 77, "memory_usage": {"vram_mem": {"value": 12800, "unit": "MB"}}}
    process = json.dumps([{"gpu": 3, "process_list": [{"process_info": info}]}])
    assert [(row["gpu"], row["pid"], row["used_bytes"]) for row in read(process)["gpu_process"]] == [
        (3, 77, 12800 * MIB)
    ]
    usage = "GPU  XCP  POWER  GFX%  VRAM_USAGE\n  0  0  712 W  97 %  136.0/192.0 GB\n  1  0  135 W  0 %  0.5/192.0 GB\n"
    assert [(row["used_bytes"], row["total_bytes"]) for row in read(usage)["gpu_sample"]] == [(136 * GIB, 192 * GIB), (GIB // 2, 192 * GIB)]  # fmt: skip


def test_a_document_that_breaks_off_tells_what_stands_before_the_break() -> None:
    assert [row["gpu"] for row in read(ROCM_JSON[: ROCM_JSON.index('"card1"')])["gpu_sample"]] == [0]


@pytest.mark.parametrize(
    "text",
    [
        "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-5a)\n",
        "index, memory.used [MiB], memory.total [MiB]\n0, 5 MiB, 9 MiB\n",
        "GPU: 0\nThe server was slow on this one, nothing was in the log.\n",
        '{"gpu": 0, "request_id": "a", "usage": {"prompt_tokens": 5}}',
        "INFO the card printed: GPU[0] : VRAM Total Memory (B): 5\n" * 3,
    ],
)
def test_near_miss(text: str) -> None:
    assert kind(text) != "amd-smi"


def test_rules_see_the_devices(tmp_path: Any) -> None:
    (tmp_path / "rocm.txt").write_text(ROCM_TEXT)
    with tables(tmp_path) as analysis:
        _, rows = analysis.sql("SELECT devices, used_max_bytes, idle_devices FROM device")
    assert rows == [(2, USED, 1)]


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_damaged_texts_never_raise(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([ROCM_TEXT, ROCM_CSV, ROCM_JSON, METRIC, MONITOR, METRIC_CSV, METRIC_JSON]))
    cut = data.draw(st.integers(0, len(text)))
    noise = data.draw(st.text(alphabet='GPU[]:,0123456789 \n\t{}"VRAM_USED%MB', max_size=40))
    mixed = text[:cut] + noise + text[cut:][: data.draw(st.integers(0, 300))]
    amd_smi.matches(make_head("any", mixed.encode()))
    read(mixed, data.draw(st.sampled_from([7, 1 << 20])))
