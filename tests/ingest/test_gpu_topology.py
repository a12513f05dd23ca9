"""The matrix of links between devices."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoc.ingest import gpu_topology, make_head, recognise
from oomdoc.intake.scan import chunks

NVIDIA = """\
\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
GPU0\t X \tNV18\tPIX\t0-47\t0\t\tN/A
GPU1\tNV18\t X \tSYS\t48-95\t1\t\tN/A
NIC0\tPIX\tSYS\t X \t\t\t\t

Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the interconnect between nodes
  NV#  = Connection traversing a bonded set of # links

NIC Legend:

  NIC0: mlx5_0
"""
AMD = """\
================ Link Type between two GPUs ================
       GPU0         GPU1
GPU0   0            XGMI
GPU1   XGMI         0
"""


def read(text: str) -> dict[str, list[dict[str, Any]]]:
    tables: dict[str, list[dict[str, Any]]] = {}
    for batch in gpu_topology.read("any", chunks(io.BytesIO(text.encode()))):
        for row in zip(*batch.columns.values(), strict=True):
            tables.setdefault(batch.table, []).append(dict(zip(batch.columns, row, strict=True)))
    return tables


def test_links() -> None:
    rows = [tuple(row.values()) for row in read(NVIDIA)["gpu_link"]]
    assert rows == [(2, 0, "GPU1", "NV18"), (2, 0, "NIC0", "PIX"), (3, 1, "GPU0", "NV18"), (3, 1, "NIC0", "SYS")]
    assert [tuple(row.values()) for row in read(AMD)["gpu_link"]] == [(3, 0, "GPU1", "XGMI"), (4, 1, "GPU0", "XGMI")]
    assert "problem" not in read(NVIDIA)
    for text in (NVIDIA, AMD):
        assert recognise(make_head("any", text.encode()))[1] == "gpu-topology"


def test_a_row_that_is_cut_is_a_problem() -> None:
    tables = read("        GPU0    GPU1    GPU2\nGPU0     X      NV4\nGPU1    NV4      X      NV4\n")
    assert [row["line"] for row in tables["problem"]] == [2]
    assert len(tables["gpu_link"]) == 2


@pytest.mark.parametrize(
    "text",
    [
        "GPU0 GPU1\nGPU0 is slower than GPU1\n",
        "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-5a)\n",
        "INFO topology: GPU0 X NV4\n" * 4,
    ],
)
def test_near_miss(text: str) -> None:
    assert not gpu_topology.matches(make_head("any", text.encode()))


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="GPU01 XNVSY\t\nCPU Affinity", max_size=80))
def test_any_text_never_raises(text: str) -> None:
    gpu_topology.matches(make_head("any", text.encode()))
    read("      GPU0    GPU1\n" + text)
