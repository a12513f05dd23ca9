"""Every form of nvidia-smi: what its rows say, what is left unknown, and that the fast way reads as the plain one does."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoc.ingest import make_head, nvidia_smi
from oomdoc.intake.scan import chunks
from oomdoc.units import MIB, parse_time

Tables = dict[str, list[dict[str, Any]]]


def read(text: str | bytes, size: int = 1 << 20) -> Tables:
    """All rows by table, without their NULLs, in the order of lines."""
    data = text if isinstance(text, bytes) else text.encode()
    tables: Tables = {}
    for batch in nvidia_smi.read("any", chunks(io.BytesIO(data), size)):
        columns = [column.tolist() if isinstance(column, np.ndarray) else column for column in batch.columns.values()]
        rows = (dict(zip(batch.columns, row, strict=True)) for row in zip(*columns, strict=True))
        tables.setdefault(batch.table, []).extend(
            {name: value for name, value in row.items() if value is not None} for row in rows
        )
    for rows_ in tables.values():
        rows_.sort(key=lambda row: row["line"])
    return tables


def is_smi(text: str) -> bool:
    return nvidia_smi.matches(make_head("any", text.encode()))


def t(text: str) -> float:
    seconds = parse_time(text)
    assert seconds is not None
    return seconds


QUERY = """\
timestamp, index, utilization.gpu [%], utilization.memory [%], memory.used [MiB], memory.total [MiB]
2026/11/20 20:04:51.120, 0, 93 %, 61 %, 76012 MiB, 81559 MiB
2026/11/20 20:04:51.121, 1, 0 %, 0 %, 3 MiB, 81559 MiB
"""
LOOP = """\
=== 2026-11-20 20:04:51 ===
0, 93 %, 61 %, 76012 MiB, 81559 MiB
1, 0 %, 0 %, 3 MiB, 81559 MiB
=== 2026-11-20 20:04:53 ===
0, 94 %, 62 %, 76014 MiB, 81559 MiB
1, [N/A], [N/A], [N/A], 81559 MiB
"""
BOX = """\
Fri Nov 20 20:04:51 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.90.07              Driver Version: 550.90.07      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA L40S                    On  |   00000000:3D:00.0 Off |                    0 |
| N/A   38C    P0             81W /  350W |   40121MiB /  46068MiB |     87%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA L40S                    On  |   00000000:3E:00.0 Off |                    0 |
| N/A   30C    P8             21W /  350W |       4MiB /  46068MiB |      0%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|    0   N/A  N/A      4711      C   VLLM::EngineCore                            40104MiB |
|    1   N/A  N/A      1822      G   /usr/lib/xorg/Xorg                              4MiB |
+-----------------------------------------------------------------------------------------+
"""


def test_a_query_with_header_and_units() -> None:
    tables = read(QUERY)
    assert tables == {
        "gpu_sample": [
            {"line": 2, "t": t("2026-11-20 20:04:51.120"), "gpu": 0, "used_bytes": 76012 * MIB, "total_bytes": 81559 * MIB,
             "gpu_util": 0.93, "memory_util": 0.61},
            {"line": 3, "t": t("2026-11-20 20:04:51.121"), "gpu": 1, "used_bytes": 3 * MIB, "total_bytes": 81559 * MIB,
             "gpu_util": 0.0, "memory_util": 0.0},
        ]
    }  # fmt: skip


def test_the_order_of_columns_follows_the_header() -> None:
    rows = read(
        "memory.free [MiB], memory.total [MiB], power.draw [W], index, memory.used [MiB]\n100, 81559, 310.5, 3, 81459\n"
    )
    assert rows["gpu_sample"] == [{"line": 2, "gpu": 3, "used_bytes": 81459 * MIB, "total_bytes": 81559 * MIB}]


def test_headers_may_repeat_and_change() -> None:
    rows = read(QUERY + QUERY + "index, memory.used [MiB]\n4, 17 MiB\n")["gpu_sample"]
    assert [(row["line"], row["gpu"], row["used_bytes"] // MIB) for row in rows] == [
        (2, 0, 76012), (3, 1, 3), (5, 0, 76012), (6, 1, 3), (8, 4, 17),
    ]  # fmt: skip


def test_names_give_devices_once() -> None:
    text = "index, name, memory.total [MiB]\n" + "0, NVIDIA H100 NVL, 95830 MiB\n1, NVIDIA H100 NVL, 95830 MiB\n" * 2
    tables = read(text)
    assert tables["gpu_device"] == [
        {"line": 2, "gpu": 0, "name": "NVIDIA H100 NVL", "total_bytes": 95830 * MIB, "count": 1},
        {"line": 3, "gpu": 1, "name": "NVIDIA H100 NVL", "total_bytes": 95830 * MIB, "count": 1},
    ]
    assert len(tables["gpu_sample"]) == 4


def test_without_index_the_bus_id_tells_the_device() -> None:
    text = "pci.bus_id, memory.used [MiB]\n" + "00000000:3D:00.0, 5 MiB\n00000000:3E:00.0, 6 MiB\n" * 2
    assert [(row["gpu"], row["used_bytes"] // MIB) for row in read(text)["gpu_sample"]] == [
        (0, 5),
        (1, 6),
        (0, 5),
        (1, 6),
    ]
    assert "gpu" not in read("timestamp, memory.used [MiB]\n2026/11/20 20:04:51.120, 5 MiB\n")["gpu_sample"][0]


@pytest.mark.parametrize("null", ["[N/A]", "[Not Supported]", "N/A", "[Unknown Error]", "[GPU is lost]", "ERR!", "-"])
def test_missing_values_are_unknown(null: str) -> None:
    tables = read(f"index, memory.used [MiB], memory.total [MiB], utilization.gpu [%]\n0, {null}, {null}, {null}\n")
    assert tables == {"gpu_sample": [{"line": 2, "gpu": 0}]}


def test_broken_rows_are_problems() -> None:
    tables = read(QUERY + "2026/11/20 20:04:52.120, 0, 93 %\n2026/11/20 20:04:53.120, x, 93 %, 61 %, many, 81559 MiB\n")
    assert [row["line"] for row in tables["problem"]] == [4, 5, 5]
    assert tables["gpu_sample"][-1] == {
        "line": 5, "t": t("2026-11-20 20:04:53.120"), "total_bytes": 81559 * MIB, "gpu_util": 0.93, "memory_util": 0.61,
    }  # fmt: skip


def test_numbers_beyond_any_device_are_problems() -> None:
    tables = read(f"index, memory.used [MiB], utilization.gpu [%]\n{10**12}, {10**14} MiB, 101 %\n")
    assert len(tables["problem"]) == 3
    assert tables["gpu_sample"] == [{"line": 2}]


def test_a_loop_of_blocks() -> None:
    rows = read(LOOP)["gpu_sample"]
    assert [(row["line"], row["t"], row["gpu"]) for row in rows] == [
        (2, t("2026-11-20 20:04:51"), 0), (3, t("2026-11-20 20:04:51"), 1),
        (5, t("2026-11-20 20:04:53"), 0), (6, t("2026-11-20 20:04:53"), 1),
    ]  # fmt: skip
    assert rows[2] == {
        "line": 5, "t": t("2026-11-20 20:04:53"), "gpu": 0, "used_bytes": 76014 * MIB, "total_bytes": 81559 * MIB,
        "gpu_util": 0.94, "memory_util": 0.62,
    }  # fmt: skip
    assert "used_bytes" not in rows[3]


def test_a_loop_that_was_killed_in_a_row() -> None:
    tables = read(LOOP + "=== 2026-11-20 20:04:55 ===\n0, 95 %, 6")
    assert len(tables["gpu_sample"]) == 4
    assert [row["line"] for row in tables["problem"]] == [8]


def test_the_larger_constant_size_is_the_total() -> None:
    rows = read("0, 81559 MiB, 5 MiB\n0, 81559 MiB, 7 MiB\n")["gpu_sample"]
    assert [(row["used_bytes"] // MIB, row["total_bytes"] // MIB) for row in rows] == [(5, 81559), (7, 81559)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0, 93, 61, 76012, 81559\n1, 0, 0, 3, 81559\n", "without header and units"),
        ("0, 81559 MiB\n1, 81559 MiB\n", "used or total"),
        ("0, 5 MiB, 9 MiB\n1, 9 MiB, 5 MiB\n", "largest"),
    ],
)
def test_columns_that_cannot_be_told(text: str, reason: str) -> None:
    tables = read(text)
    assert "gpu_sample" not in tables
    assert reason in tables["problem"][0]["reason"]
    assert len(tables["problem"]) == 1


def test_used_and_free_are_not_guessed() -> None:
    tables = read("0, 81559 MiB, 60000 MiB, 21000 MiB\n0, 81559 MiB, 60001 MiB, 20999 MiB\n")
    assert tables["gpu_sample"][0] == {"line": 1, "gpu": 0, "total_bytes": 81559 * MIB}
    assert "free" in tables["problem"][0]["reason"]


def test_processes_of_a_query() -> None:
    tables = read(
        "timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n"
        "2026/11/20 20:04:51.120, GPU-11111111-2222-3333-4444-555555555555, 4711, VLLM::EngineCore, 40104 MiB\n"
        "2026/11/20 20:04:51.120, GPU-11111111-2222-3333-4444-555555555555, 4712, [Not Found], [N/A]\n"
    )
    assert tables["gpu_process"] == [
        {"line": 2, "t": t("2026-11-20 20:04:51.120"), "pid": 4711, "type": "C", "name": "VLLM::EngineCore",
         "used_bytes": 40104 * MIB, "gpu_uuid": "GPU-11111111-2222-3333-4444-555555555555"},
        {"line": 3, "t": t("2026-11-20 20:04:51.120"), "pid": 4712, "type": "C", "name": "[Not Found]",
         "gpu_uuid": "GPU-11111111-2222-3333-4444-555555555555"},
    ]  # fmt: skip
    assert read("pid, process_name, used_gpu_memory [MiB]\n") == {}
    assert read("4711, python3, 40104 MiB\n4712, /opt/x, 3 MiB\n")["gpu_process"][0]["pid"] == 4711


def test_a_list_ties_uuids_to_indices() -> None:
    text = (
        "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-aaaaaaaa-0000-0000-0000-000000000000)\n"
        "  MIG 3g.40gb     Device  0: (UUID: MIG-bbbbbbbb-0000-0000-0000-000000000000)\n"
        "  MIG 1g.10gb     Device  1: (UUID: MIG-cccccccc-0000-0000-0000-000000000000)\n"
        "GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-dddddddd-0000-0000-0000-000000000000)\n"
        "gpu_uuid, pid, used_gpu_memory [MiB]\nGPU-dddddddd-0000-0000-0000-000000000000, 9, 5 MiB\n"
    )
    tables = read(text)
    assert tables["gpu_device"] == [
        {
            "line": 1,
            "gpu": 0,
            "name": "NVIDIA A100-SXM4-80GB",
            "count": 1,
            "uuid": "GPU-aaaaaaaa-0000-0000-0000-000000000000",
        },
        {"line": 2, "gpu": 0, "name": "NVIDIA A100-SXM4-80GB", "mig_profile": "3g.40gb", "count": 1},
        {"line": 3, "gpu": 0, "name": "NVIDIA A100-SXM4-80GB", "mig_profile": "1g.10gb", "count": 1},
        {
            "line": 4,
            "gpu": 1,
            "name": "NVIDIA A100-SXM4-80GB",
            "count": 1,
            "uuid": "GPU-dddddddd-0000-0000-0000-000000000000",
        },
    ]
    assert tables["gpu_process"][0]["gpu"] == 1


def test_the_boxed_table() -> None:
    tables = read(BOX)
    at = t("2026-11-20 20:04:51")
    assert tables["gpu_sample"] == [
        {"line": 10, "t": at, "gpu": 0, "used_bytes": 40121 * MIB, "total_bytes": 46068 * MIB, "gpu_util": 0.87},
        {"line": 14, "t": at, "gpu": 1, "used_bytes": 4 * MIB, "total_bytes": 46068 * MIB, "gpu_util": 0.0},
    ]
    assert tables["gpu_device"][1] == {
        "line": 14,
        "gpu": 1,
        "name": "NVIDIA L40S",
        "total_bytes": 46068 * MIB,
        "count": 1,
        "bus_id": "00000000:3E:00.0",
    }
    assert tables["gpu_process"] == [
        {
            "line": 23,
            "t": at,
            "gpu": 0,
            "pid": 4711,
            "type": "C",
            "name": "VLLM::EngineCore",
            "used_bytes": 40104 * MIB,
        },
        {"line": 24, "t": at, "gpu": 1, "pid": 1822, "type": "G", "name": "/usr/lib/xorg/Xorg", "used_bytes": 4 * MIB},
    ]
    assert "problem" not in tables


def test_a_watched_table_has_the_time_of_each_block() -> None:
    later = BOX.replace(
        "Fri Nov 20 20:04:51 2026", "Every 2.0s: nvidia-smi     gpu-7: Fri Nov 20 20:04:53 2026"
    ).replace("40121", "40321")
    tables = read(BOX + "\n" + later)
    assert [(row["t"] - t("2026-11-20 20:04:51"), row["used_bytes"] // MIB) for row in tables["gpu_sample"]] == [
        (0, 40121), (0, 4), (2, 40321), (2, 4),
    ]  # fmt: skip
    assert len(tables["gpu_device"]) == 2


def test_a_narrow_table_of_an_old_driver() -> None:
    text = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 450.80.02    Driver Version: 450.80.02    CUDA Version: 11.0     |
|   0  Tesla V100-SXM2...  On   | 00000000:1A:00.0 Off |                    0 |
| N/A   41C    P0    57W / 300W |  14321MiB / 16160MiB |     55%      Default |
|   1  Tesla V100-SXM2...  On   | 00000000:1B:00.0 Off |                 ERR! |
| ERR!  ERR!  ERR!  ERR! / 300W |      N/A             |     ERR!     Default |
|    0      9001      C   python                          14318MiB |
|  No running processes found                                                 |
"""
    tables = read(text)
    assert tables["gpu_sample"] == [
        {"line": 4, "gpu": 0, "used_bytes": 14321 * MIB, "total_bytes": 16160 * MIB, "gpu_util": 0.55},
        {"line": 6, "gpu": 1},
    ]
    assert tables["gpu_process"] == [
        {"line": 7, "gpu": 0, "pid": 9001, "type": "C", "name": "python", "used_bytes": 14318 * MIB}
    ]


def test_slices_are_devices_and_no_samples() -> None:
    text = """\
| NVIDIA-SMI 535.104.05   Driver Version: 535.104.05   CUDA Version: 12.2     |
|   0  NVIDIA A100-SXM4-40GB          On  | 00000000:07:00.0 Off |                   On |
| N/A   33C    P0              51W / 400W |  20010MiB / 40960MiB |     N/A      Default |
|                                         |                      |              Enabled |
+---------------------------------------------------------------------------------------+
| MIG devices:                                                                            |
|  0    1   0   0  |           19950MiB / 20096MiB    | 42      0 |  3   0    2    0    0 |
|                  |                 2MiB / 32767MiB  |           |                       |
|  0    2   0   1  |              12MiB / 20096MiB    | 42      0 |  3   0    2    0    0 |
"""
    tables = read(text)
    assert [row["line"] for row in tables["gpu_sample"]] == [3]
    assert tables["gpu_device"][1:] == [
        {
            "line": 7,
            "gpu": 0,
            "name": "NVIDIA A100-SXM4-40GB",
            "total_bytes": 20096 * MIB,
            "mig_profile": "MIG",
            "count": 1,
            "used_bytes": 19950 * MIB,
        },
        {
            "line": 9,
            "gpu": 0,
            "name": "NVIDIA A100-SXM4-40GB",
            "total_bytes": 20096 * MIB,
            "mig_profile": "MIG",
            "count": 1,
            "used_bytes": 12 * MIB,
        },
    ]


LISTING = """\

==============NVSMI LOG==============

Timestamp                                 : Fri Nov 20 20:04:51 2026
Driver Version                            : 550.90.07
Attached GPUs                             : 2
GPU 00000000:3D:00.0
    Product Name                          : NVIDIA A100-SXM4-80GB
    MIG Mode
        Current                           : Enabled
    MIG Device
        Index                             : 0
        Device Attributes
            Shared
                Multiprocessor count      : 42
        FB Memory Usage
            Total                         : 40192 MiB
            Used                          : 107 MiB
        BAR1 Memory Usage
            Total                         : 65535 MiB
    FB Memory Usage
        Total                             : 81920 MiB
        Reserved                          : 700 MiB
        Used                              : 61234 MiB
        Free                              : 19986 MiB
    BAR1 Memory Usage
        Total                             : 131072 MiB
        Used                              : 1 MiB
    Utilization
        Gpu                               : 97 %
        Memory                            : 44 %
        Encoder                           : 0 %
    Processes
        GPU instance ID                   : N/A
        Process ID                        : 4711
            Type                          : C
            Name                          : VLLM::Worker_TP0
            Used GPU Memory               : 61000 MiB
        Process ID                        : 4712
            Type                          : C
            Name                          : python3
            Used GPU Memory               : Not available in WDDM driver model
GPU 00000000:3E:00.0
    Product Name                          : NVIDIA A100-SXM4-80GB
    FB Memory Usage
        Total                             : 81920 MiB
        Used                              : N/A
    Processes                             : None
"""


def test_a_listing() -> None:
    tables = read(LISTING)
    at = t("2026-11-20 20:04:51")
    assert tables["gpu_sample"] == [
        {
            "line": 24,
            "t": at,
            "gpu": 0,
            "used_bytes": 61234 * MIB,
            "total_bytes": 81920 * MIB,
            "gpu_util": 0.97,
            "memory_util": 0.44,
        },
        {"line": 47, "t": at, "gpu": 1, "total_bytes": 81920 * MIB},
    ]
    assert tables["gpu_device"] == [
        {
            "line": 18,
            "gpu": 0,
            "name": "NVIDIA A100-SXM4-80GB",
            "total_bytes": 40192 * MIB,
            "mig_profile": "MIG",
            "count": 1,
            "used_bytes": 107 * MIB,
        },
        {
            "line": 24,
            "gpu": 0,
            "name": "NVIDIA A100-SXM4-80GB",
            "total_bytes": 81920 * MIB,
            "count": 1,
            "bus_id": "00000000:3D:00.0",
        },
        {
            "line": 47,
            "gpu": 1,
            "name": "NVIDIA A100-SXM4-80GB",
            "total_bytes": 81920 * MIB,
            "count": 1,
            "bus_id": "00000000:3E:00.0",
        },
    ]
    assert tables["gpu_process"] == [
        {
            "line": 35,
            "t": at,
            "gpu": 0,
            "pid": 4711,
            "type": "C",
            "name": "VLLM::Worker_TP0",
            "used_bytes": 61000 * MIB,
        },
        {"line": 39, "t": at, "gpu": 0, "pid": 4712, "type": "C", "name": "python3"},
    ]
    assert "problem" not in tables
    again = read(LISTING + LISTING)["gpu_sample"]
    assert [row["gpu"] for row in again] == [0, 1, 0, 1]


def test_a_listing_as_xml() -> None:
    text = """\
<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
	<timestamp>Fri Nov 20 20:04:51 2026</timestamp>
	<gpu id="00000000:3D:00.0">
		<product_name>NVIDIA H200</product_name>
		<fb_memory_usage>
			<total>143771 MiB</total>
			<used>130000 MiB</used>
		</fb_memory_usage>
		<bar1_memory_usage>
			<total>262144 MiB</total>
			<used>5 MiB</used>
		</bar1_memory_usage>
		<utilization>
			<gpu_util>88 %</gpu_util>
			<memory_util>N/A</memory_util>
		</utilization>
		<processes>
			<process_info>
				<pid>77</pid>
				<type>C</type>
				<process_name>python3</process_name>
				<used_memory>129990 MiB</used_memory>
			</process_info>
		</processes>
	</gpu>
</nvidia_smi_log>
"""
    tables = read(text)
    at = t("2026-11-20 20:04:51")
    assert tables["gpu_sample"] == [
        {"line": 9, "t": at, "gpu": 0, "used_bytes": 130000 * MIB, "total_bytes": 143771 * MIB, "gpu_util": 0.88}
    ]
    assert tables["gpu_device"] == [
        {
            "line": 9,
            "gpu": 0,
            "name": "NVIDIA H200",
            "total_bytes": 143771 * MIB,
            "count": 1,
            "bus_id": "00000000:3D:00.0",
        }
    ]
    assert tables["gpu_process"] == [
        {"line": 21, "t": at, "gpu": 0, "pid": 77, "type": "C", "name": "python3", "used_bytes": 129990 * MIB}
    ]
    assert is_smi(text)


def test_monitors_go_by_the_names_of_their_columns() -> None:
    text = """\
#Date       Time        gpu     fb   bar1     sm    mem
#YYYYMMDD   HH:MM:SS    Idx     MB     MB      %      %
 20261120   20:04:51      0  76012      4     93     61
 20261120   20:04:51      1      3      4      -      -
# gpu    pwr  gtemp     sm    mem
# Idx      W      C      %      %
    0    310     55     92     60
"""
    assert read(text)["gpu_sample"] == [
        {
            "line": 3,
            "t": t("2026-11-20 20:04:51"),
            "gpu": 0,
            "used_bytes": 76012 * MIB,
            "gpu_util": 0.93,
            "memory_util": 0.61,
        },
        {"line": 4, "t": t("2026-11-20 20:04:51"), "gpu": 1, "used_bytes": 3 * MIB},
        {"line": 7, "gpu": 0, "gpu_util": 0.92, "memory_util": 0.6},
    ]
    assert is_smi(text)


def test_process_monitors() -> None:
    text = """\
# gpu         pid   type     fb   ccpm     sm    mem    command
# Idx           #    C/G     MB     MB      %      %    name
    0       4711     C   40104      0     99     30    VLLM::EngineCor
    0       4712     C     512      0      -      -    two words
    1          -     -      -      -      -      -    -
    1       4713
"""
    tables = read(text)
    assert tables["gpu_process"] == [
        {"line": 3, "gpu": 0, "pid": 4711, "type": "C", "name": "VLLM::EngineCor", "used_bytes": 40104 * MIB},
        {"line": 4, "gpu": 0, "pid": 4712, "type": "C", "name": "two words", "used_bytes": 512 * MIB},
    ]
    assert [row["line"] for row in tables["problem"]] == [6]


def test_a_driver_that_does_not_answer_is_a_problem() -> None:
    text = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
    assert read(text)["problem"][0]["line"] == 1
    assert is_smi(text)


def test_rows_in_an_envelope() -> None:
    text = "".join(
        f"2026-11-20T20:04:5{at}.000000000Z stdout F {row}\n" for at, row in enumerate(LOOP.splitlines()[1:3])
    )
    rows = read(text)["gpu_sample"]
    assert [(row["t"], row["gpu"]) for row in rows] == [(t("2026-11-20 20:04:50"), 0), (t("2026-11-20 20:04:51"), 1)]


# ---- the fast way


def both_ways(text: str | bytes, size: int, monkeypatch: pytest.MonkeyPatch) -> Tables:
    """The rows, after a look that both ways give them."""
    with monkeypatch.context() as patch:
        patch.setattr(nvidia_smi, "WORTHWHILE_BYTES", 1)
        fast = read(text, size)
        patch.setattr(nvidia_smi, "WORTHWHILE_BYTES", 1 << 60)
        assert fast == read(text, size)
    return fast


def rows_of(count: int, header: str = "", block: int = 0) -> str:
    """A long query: several minutes, a null now and then."""
    lines = [header] if header else []
    for at in range(count):
        if block and at % block == 0:
            lines.append(f"=== 2026-11-20 {20 + at // 36000:02}:{at // 600 % 60:02}:{at // 10 % 60:02} ===")
        stamp = "" if block else f"2026/11/20 20:{at // 600 % 60:02}:{at // 10 % 60:02}.{at % 10}00, "
        used = "[N/A]" if at % 97 == 5 else f"{at * 31 % 81560} MiB"
        lines.append(f"{stamp}{at % 8}, {at % 101} %, {at % 7} %, {used}, 81559 MiB")
    return "\n".join(lines) + "\n"


HEADER = QUERY.splitlines()[0]


@pytest.mark.parametrize("size", [1 << 20, 3000])
@pytest.mark.parametrize(
    "text",
    [
        rows_of(500, HEADER),
        rows_of(500, HEADER).rstrip("\n"),
        rows_of(500, HEADER).replace("\n", "\r\n"),
        rows_of(200, HEADER) + rows_of(200, HEADER),
        rows_of(200, HEADER) + "\n\n" + rows_of(100) + "2026/11/20 20:04:51.000, 0, 93 %\n" + rows_of(100),
        rows_of(200, HEADER) + rows_of(9).replace("MiB", "GiB") + rows_of(50),
        rows_of(200, HEADER) + rows_of(9).replace(" 5 %", " 500 %"),
        rows_of(200, HEADER)
        + "index, a, b, memory.used [MiB], memory.total [MiB], c\n"
        + "1, x, y, 5 MiB, 6 MiB, z\n" * 9,
        rows_of(400, block=8),
        rows_of(400, block=1),
        rows_of(40) + rows_of(400, block=8),
        rows_of(400, block=8) + "0, 5 %",
        rows_of(90, block=8)
        + "0, 5 %, 6\n0, x, y, z, 1 MiB\n"
        + rows_of(9, block=8)
        + "0, 5 %, 6 %, 7 MiB\n"
        + rows_of(90),
        rows_of(90, HEADER) + "0, 5 %, 6\n0, x, y, z, 1 MiB, w\nx, y\n" + rows_of(90) + "NVIDIA-SMI has failed, so\n",
        rows_of(50, block=8) + "words in between\n" + rows_of(50, block=8),
        "uuid, memory.used [MiB], memory.total [MiB]\n"
        + "GPU-aaaaaaaa-1, 5 MiB, 9 MiB\nGPU-bbbbbbbb-2, [N/A], 9 MiB\n" * 60,
        "index, memory.used [MiB]\n" + "0, [N/A]\n" * 60 + "1, 12345678901234567 MiB\n",
        "index, utilization.gpu [%], memory.used [MiB]\n" + "0, 93, 76012\n1, [N/A], 9\n" * 60,
        QUERY + BOX + LOOP,
    ],
)
def test_the_fast_way_reads_alike(text: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert both_ways(text, size, monkeypatch)["gpu_sample"]


def test_the_fast_way_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = "2026/11/20 20:04:51.000, 0, 93 %\n2026/11/20 20:04:51.000, 0, 9, x, many, 5 MiB\n\n" + HEADER + "\n"
    for text in (rows_of(2000, HEADER), rows_of(4000, block=8), rows_of(1000, HEADER) + broken + rows_of(1000)):
        batches = list(nvidia_smi.read("any", chunks(io.BytesIO(text.encode()))))
        assert len(text) > nvidia_smi.WORTHWHILE_BYTES
        assert sum(batch.rows for batch in batches if isinstance(batch.columns["line"], np.ndarray)) > 0.9 * text.count(
            "MiB, 81559"
        )


def test_every_device_of_a_long_query_is_told() -> None:
    header = "index, name, memory.used [MiB], memory.total [MiB]\n"
    text = header + "".join(f"{at % 8}, NVIDIA H200, {at} MiB, 143771 MiB\n" for at in range(4000))
    assert len(text) > nvidia_smi.WORTHWHILE_BYTES
    assert [row["gpu"] for row in read(text)["gpu_device"]] == list(range(8))


CELLS = st.sampled_from(
    ["0", "7", "93 %", "5 MiB", "81559 MiB", "[N/A]", "x", "2026/11/20 20:04:51.120", "123456789012345678 MiB", ""]
)
SHUFFLED = st.lists(
    st.one_of(
        st.sampled_from([*QUERY.splitlines(), *LOOP.splitlines(), *QUERY.splitlines()[1:], *QUERY.splitlines()[1:]]),
        st.lists(CELLS, min_size=1, max_size=6).map(", ".join),
    ),
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(SHUFFLED, st.integers(20, 2000))
def test_any_rows_read_alike(lines: list[str], size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        both_ways("\n".join(lines), size, patch)


EVERYTHING = "\n".join([QUERY, LOOP, BOX, LISTING]).encode().splitlines()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(EVERYTHING), st.binary(max_size=60))), st.integers(1, 2000))
def test_any_bytes(lines: list[bytes], size: int) -> None:
    data = b"\n".join(lines)
    tables = read(data, size)
    assert all(1 <= row["line"] <= data.count(b"\n") + 1 for rows in tables.values() for row in rows)
    nvidia_smi.matches(make_head("any", data))


# ---- recognising


@pytest.mark.parametrize(
    "text",
    [QUERY, LOOP, BOX, LISTING, QUERY.splitlines()[0], "0, 5 %, 1 %, 17 MiB, 81559 MiB\n" * 5, LOOP.splitlines()[0] + "\n" + LOOP.splitlines()[1],
     "gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n", "GPU 0: NVIDIA L4 (UUID: GPU-aaaaaaaa-0000-0000-0000-000000000000)\n"],
)  # fmt: skip
def test_recognised(text: str) -> None:
    assert is_smi(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "INFO 11-20 20:04:51 [gpu_worker.py:232] Available KV cache memory: 36.12 GiB, 81559 MiB in all\n" * 9,
        "INFO 11-20 20:04:51 [x.py:1] a line\n" * 90 + BOX,
        "GPU 0: NVIDIA GeForce RTX 5090, 32607 MiB\nGPU 1: NVIDIA GeForce RTX 5090, 32607 MiB\n",
        "We saw 76012 MiB, then 81559 MiB, then nothing.\nThe card was full, as before, at 81559 MiB, all day.\n",
        "timestamp,pid,name,rss_bytes,shared_bytes\n2026-11-20T21:30:25.394Z,169,python,629305344,133513216\n",
        "timestamp,input_tokens,output_tokens\n2026-11-20T20:04:51Z,5,6\n",
        "Name: vllm-0\nLimits:\n  memory: 64Gi\n  nvidia.com/gpu: 8\nEvents:  <none>\n",
        "[  12.5] NVRM: Xid (PCI:0000:3d:00): 31, pid=77, name=python, Ch 00000008\n",
        "state,nvidia_smi_process_mib\nasleep,412\n",
        "+---+---+\n| a | b |\n+---+---+\n| 1 | 2 |\n",
        "=== 2026-11-20 20:04:51 ===\nstarting, please wait, now\n",
        "image: vllm\nname, index: 5\n",
    ],
)
def test_not_recognised(text: str) -> None:
    assert not is_smi(text)


XML_MIG = """\
<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
  <timestamp>Fri Nov 20 20:04:51 2026</timestamp>
  <gpu id="00000000:65:00.0">
    <product_name>NVIDIA H100 80GB HBM3</product_name>
    <mig_devices>
      <mig_device>
        <index>0</index>
        <gpu_instance_id>7</gpu_instance_id>
        <compute_instance_id>0</compute_instance_id>
        <fb_memory_usage><total>9984 MiB</total><used>5000 MiB</used></fb_memory_usage>
        <bar1_memory_usage><total>16383 MiB</total><used>1 MiB</used></bar1_memory_usage>
      </mig_device>
    </mig_devices>
    <fb_memory_usage><total>81559 MiB</total><reserved>559 MiB</reserved><used>71000 MiB</used></fb_memory_usage>
    <processes><process_info><pid>4242</pid><type>C</type><process_name>VLLM::EngineCore</process_name>
      <used_memory>70500 MiB</used_memory></process_info></processes>
  </gpu>
</nvidia_smi_log>
"""


def test_xml_without_line_breaks_says_the_same() -> None:
    import re

    spread = re.sub(r"><", ">\n<", XML_MIG)
    folded = re.sub(r">\s+<", "><", XML_MIG)
    assert is_smi(spread) and is_smi(folded)
    plain, one_line = read(spread), read(folded)
    assert plain["gpu_sample"][0]["used_bytes"] == 71000 * MIB
    assert plain["gpu_process"][0]["used_bytes"] == 70500 * MIB

    def without_lines(tables: Tables) -> Tables:
        return {
            name: sorted(({key: cell for key, cell in row.items() if key != "line"} for row in rows), key=repr)
            for name, rows in tables.items()
        }

    assert without_lines(one_line) == without_lines(plain)
    assert {row["line"] for rows in one_line.values() for row in rows} == {1}
    assert without_lines(read(XML_MIG)) == without_lines(plain)  # some elements on one line, some not


def test_memory_in_use_of_an_instance_is_its_own() -> None:
    tables = read(XML_MIG.replace("><", ">\n<"))
    (instance,) = [row for row in tables["gpu_device"] if "mig_profile" in row]
    assert (instance["used_bytes"], instance["total_bytes"]) == (5000 * MIB, 9984 * MIB)
    assert all("used_bytes" not in row for row in tables["gpu_device"] if "mig_profile" not in row)
    boxed = "|  0    1   0   0  |             107MiB / 40192MiB    | 42      0 |  3   0    2    0    0 |\n"
    assert read(boxed)["gpu_device"][0]["used_bytes"] == 107 * MIB


def test_entities_of_xml_are_text() -> None:
    """The reader knows tags only: nothing that a document declares is expanded or fetched."""
    bomb = '<?xml version="1.0"?>\n<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b SYSTEM "file:///etc/passwd">]>\n'
    tables = read(bomb + XML_MIG.replace("NVIDIA H100 80GB HBM3", "&a;&b;").split("?>\n", 1)[1])
    assert {row.get("name") for row in tables["gpu_device"]} == {"&a;&b;"}


@pytest.mark.parametrize("stamp", ["22:10:42", "2026-03-02 22:10:42", "2026-03-02T22:10:42Z"])
def test_a_monitor_whose_rows_somebody_stamped(stamp: str) -> None:
    """A shell put the time before each row, and the header knows nothing of it."""
    text = "# gpu     fb   bar1     sm    mem\n# Idx     MB     MB      %      %\n" + "".join(
        f"{stamp}     0   {used}      4     10      0\n" for used in (430, 9000, 22500)
    )
    rows = read(text)["gpu_sample"]
    assert [row["used_bytes"] >> 20 for row in rows] == [430, 9000, 22500]
    assert [row.get("t") for row in rows] == [parse_time(stamp)] * 3
