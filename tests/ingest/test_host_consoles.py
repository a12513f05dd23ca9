"""What consoles of a host print: processes in any order of columns, in any locale, and devices with those who use them."""

from __future__ import annotations

from typing import Any

from forms import read
from oomdoc.units import GIB, MIB


def rows(text: str, table: str, name: str = "any.txt") -> list[dict[str, Any]]:
    return read(name, text.encode())[1].get(table, [])


SMEM = """\
$ sudo smem -tk -c 'pid user command swap uss rss'
  PID User     Command                         Swap      USS      RSS
  700 llm      /opt/v/bin/python3 serve.py   112.0M     1.0G     1.5G
  701 llm      VLLM::EngineCore                2.0G    40.0G    44.0G
  702 llm      ray::IDLE                         0     80.0M    96.0M
----------------------------------------------------------------------
    3 1                                        2.1G    41.1G    45.6G
"""


def test_a_command_may_stand_in_the_middle_of_a_listing() -> None:
    assert [(row["name"], row["bytes"]) for row in rows(SMEM, "process_memory")] == [
        ("/opt/v/bin/python3 serve.py (pid 700)", 3 * GIB // 2),
        ("VLLM::EngineCore (pid 701)", 44 * GIB),
        ("ray::IDLE (pid 702)", 96 * MIB),
    ]
    assert not rows(SMEM, "trial")
    assert not rows(SMEM.replace("RSS", "PSS"), "note")


TOP = """\
top - 03:00:0{n} up 2 days,  1:00,  0 users,  load average: 1,00, 1,00, 1,00
GiB Mem :    250,5 total,     10,5 free,    200,0 used,     40,0 buff/cache
GiB Swap:      0,0 total,      0,0 free,      0,0 used.     48,5 avail Mem

    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND
    901 llm       20   0  300,0g  9{n},5g   1,0g R  99,0  37,0  80:11 VLLM::EngineCor

"""


def test_two_calls_of_top_in_a_locale_of_commas() -> None:
    both = TOP.format(n=1) + TOP.format(n=2)
    assert [(row["bytes"], row["elapsed_s"]) for row in rows(both, "process_memory") if row["resource"] == "host"] == [
        (int(91.5 * GIB), 0.0),
        (int(92.5 * GIB), 1.0),
    ]
    assert {row["value"] for row in rows(both, "note") if row["topic"] == "host-ready"} == {48.5 * GIB}
    assert not rows(TOP.format(n=1), "process_memory")  # one look shows no course


GPUSTAT = """\
box-3                Sun Jun  7 08:09:10 2026  560.10
[0] NVIDIA A40 | 55'C,  30 %,  91 %,  200 / 300 W | 40210 / 46068 MB | ann:VLLM::Worker/4711(39800M) bob:python/99(300M)
[1] NVIDIA A40 | 31'C,   0 % |     3 / 46068 MB |
[2] NVIDIA A40 | 31'C,   1 % |   700 / 46068 MB | bob(600M)
"""


def test_a_line_for_each_device_with_its_users() -> None:
    assert [
        (row["gpu"], row["used_bytes"] // MIB, row["total_bytes"] // MIB, row["gpu_util"])
        for row in rows(GPUSTAT, "gpu_sample")
    ] == [(0, 40210, 46068, 0.91), (1, 3, 46068, 0.0), (2, 700, 46068, 0.01)]
    assert [
        (row["gpu"], row.get("pid"), row["name"], row["used_bytes"] // MIB) for row in rows(GPUSTAT, "gpu_process")
    ] == [
        (0, 4711, "VLLM::Worker", 39800),
        (0, 99, "python", 300),
        (2, None, "bob", 600),
    ]


def test_a_list_of_links_shows_no_device() -> None:
    assert not rows("[0] a name | first | 3 / 4 pages |\n[1] another | second | 12 / 400 pages |\n", "gpu_sample")


PM2 = """\
┌────┬──────────┬─────────┬───────┬────┬──────────┬──────────┐
│ id │ name     │ mode    │ pid   │ ↺  │ status   │ mem      │
├────┼──────────┼─────────┼───────┼────┼──────────┼──────────┤
│ 0  │ chat     │ fork    │ 611   │ 9  │ online   │ 2.5gb    │
│ 1  │ front    │ fork    │ 612   │ 0  │ online   │ 512.0mb  │
└────┴──────────┴─────────┴───────┴────┴──────────┴──────────┘
"""
POWERSHELL = """\
Name        Id WS(GB) PM(MB)
----        -- ------ ------
vmmem     4711  12.50  13100
python     902   1.50   2900
"""


def test_a_sign_may_head_a_column_and_a_rule_below_a_header_is_no_row() -> None:
    assert [(row["name"], row["bytes"]) for row in rows(PM2, "process_memory")] == [
        ("chat (pid 611)", 2_500_000_000),
        ("front (pid 612)", 512_000_000),
    ]
    assert [(row["name"], row["bytes"]) for row in rows(POWERSHELL, "process_memory")] == [
        ("vmmem", 25 * GIB // 2),
        ("python", 3 * GIB // 2),
    ]
    assert not rows(PM2.replace("mem ", "age ").replace("gb", "d ").replace("mb", "d "), "process_memory")
    assert not rows(POWERSHELL.replace("WS(GB)", "Weight"), "process_memory")
