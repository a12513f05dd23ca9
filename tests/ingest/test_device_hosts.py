"""Devices of several hosts in one text: GPU 0 of one is another card than GPU 0 of the other."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from oomdoc import diagnose, ingest
from oomdoc.intake.scan import chunks
from oomdoc.intake.unwrap import unwrap
from oomdoc.units import MIB


def devices(text: str, table: str = "gpu_sample") -> dict[str, list[tuple[int, int, int]]]:
    """Line, number and MiB in use of each reading, by the part of the source in which it stands."""
    parts = list(unwrap(chunks(io.BytesIO(text.encode())), lambda _: None))
    found: dict[str, list[tuple[int, int, int]]] = {}
    ingestor, _ = ingest.recognise(ingest.make_head("paste.txt", parts[0].data))
    for batch in ingest.read(ingestor, "paste.txt", parts):
        if batch.table == table:
            columns = (batch.columns[name] for name in ("line", "gpu", "used_bytes"))
            found.setdefault(batch.writer, []).extend((line, gpu, used // MIB) for line, gpu, used in zip(*columns, strict=True))  # fmt: skip
    return found


def screen(first: int, second: int) -> str:
    """What nvidia-smi shows of two cards, shortened."""
    return "".join(
        f"|   {gpu}  NVIDIA L40S                    On  |   00000000:{gpu}1:00.0 Off |                    0 |\n"
        f"| N/A   39C    P0             88W /  350W |   {used}MiB /  46068MiB |     71%      Default |\n"
        for gpu, used in enumerate((first, second))
    )


ONE, TWO = screen(41007, 41008), screen(5107, 5108)


@pytest.mark.parametrize(
    ("text", "second"),
    [
        (f"== edge-3 ==\n{ONE}\n== edge-4 ==\n{TWO}", "edge-4"),
        (f"== gpu-01 ==\n{ONE}\n== gpu-02 ==\n{TWO}", "gpu-02"),
        (f"### edge3\n\n{ONE}\n### edge4\n\n{TWO}", "edge4"),
        (f"-----\nedge-3\n-----\n{ONE}-----\nedge-4\n-----\n{TWO}", "edge-4"),
        (f"edge-3 | CHANGED | rc=0 >>\n{ONE}\nedge-4 | CHANGED | rc=0 >>\n{TWO}", "edge-4"),
        (f"ops@alpha:~$ nvidia-smi\n{ONE}\nops@beta:~$ nvidia-smi\n{TWO}", "beta"),
        (f"$ ssh -p 22 ops@alpha nvidia-smi\n{ONE}\n$ ssh beta nvidia-smi\n{TWO}", "beta"),
        (
            f"$ kubectl -n ml exec chat-0 -- nvidia-smi\n{ONE}\n$ kubectl -n ml exec -it pod/chat-1 -- nvidia-smi\n{TWO}",
            "chat-1",
        ),
        (f"Host: alpha\n{ONE}\nHost: beta\n{TWO}", "beta"),
        (
            "".join(f"{host}: {line}\n" for host, text in (("n7", ONE), ("n8", TWO)) for line in text.splitlines()),
            "n8",
        ),
        (
            "".join(f"{host} | {line}\n" for host, text in (("n7", ONE), ("n8", TWO)) for line in text.splitlines()),
            "n8",
        ),
    ],
)
def test_screens_of_two_hosts_are_of_four_cards(text: str, second: str) -> None:
    found = devices(text)
    assert [*found] == ["", second]
    assert [each[1:] for each in found[""]] == [(0, 41007), (1, 41008)]
    assert [each[1:] for each in found[second]] == [(0, 5107), (1, 5108)]
    lines = text.split("\n")
    assert all(f"{used}MiB" in lines[line - 1] for part in found.values() for line, _, used in part)


@pytest.mark.parametrize("name", ["before", "gpu", "run-", "attempt"])
def test_a_moment_or_a_card_above_a_screen_is_no_host(name: str) -> None:
    text = f"== {name}1 ==\n{ONE}\n== {name}2 ==\n{TWO}"
    assert [*devices(text)] == [""] or name == "before"
    assert [*devices(f"== before ==\n{ONE}\n== after ==\n{TWO}")] == [""]


def test_a_command_between_two_answers_is_no_row() -> None:
    ask = "me@h7:~$ nvidia-smi --query-gpu=index,memory.used,memory.total --format=csv\n"
    head = "index, memory.used [MiB], memory.total [MiB]\n"
    assert devices(f"{ask}{head}0, 907 MiB, 46068 MiB\n{ask}{head}0, 908 MiB, 46068 MiB\n") == {
        "": [(3, 0, 907), (6, 0, 908)]
    }


def test_one_host_alone_keeps_its_source() -> None:
    assert [*devices(f"== edge-3 ==\n{ONE}\n== edge-3 ==\n{TWO}")] == [""]


def test_a_query_behind_the_names_of_hosts_keeps_its_columns() -> None:
    rows = (("n7", 0, 901), ("n8", 0, 40901), ("n7", 1, 902), ("n8", 1, 40902))
    found = devices("".join(f"{host}: {gpu}, {used} MiB, 46068 MiB, 71 %\n" for host, gpu, used in rows))
    assert found == {"": [(1, 0, 901), (3, 1, 902)], "n8": [(2, 0, 40901), (4, 1, 40902)]}


def test_screens_within_a_long_note_are_of_the_host_named_above_them() -> None:
    prose = "We have looked at it for a while and nobody has found out what it is about.\n" * 12
    short = "| {}  NVIDIA L40S | 00000000:18:00.0 | {}MiB / 46068MiB | 95% |\n"
    found = devices(f"{prose}\nnode-a:\n\n{short.format(0, 40007)}\nnode-b:\n\n{short.format(0, 507)}\n{prose}")
    assert [each[1:] for each in found[""]] == [(0, 40007)] and [each[1:] for each in found["node-b"]] == [(0, 507)]


ROWS = [(host, gpu, 40000 + 1000 * host + gpu) for host in (1, 2) for gpu in (0, 1)]


@pytest.mark.parametrize(
    "text",
    [
        "hostname, index, memory.used [MiB], memory.total [MiB]\n"
        + "".join(f"h{host}, {gpu}, {used} MiB, 46068 MiB\n" for host, gpu, used in ROWS),
        "| node | GPU | Memory-Usage | GPU-Util |\n|---|---|---|---|\n"
        + "".join(f"| h{host} | {gpu} | {used}MiB / 46068MiB | 71% |\n" for host, gpu, used in ROWS),
        "node  gpu  used_mib  total_mib\n" + "".join(f"h{host}    {gpu}    {used}     46068\n" for host, gpu, used in ROWS),
        "pod;gpu;vram_used_mib;vram_total_mib\n" + "".join(f"h{host};{gpu};{used};46068\n" for host, gpu, used in ROWS),
        json.dumps([{"host": f"h{host}", "gpu": gpu, "memory_used_mib": used, "memory_total_mib": 46068} for host, gpu, used in ROWS]),
        "".join(json.dumps({"instance": f"h{host}", "gpu": gpu, "memory_used_mib": used, "memory_total_mib": 46068}) + "\n" for host, gpu, used in ROWS),
    ],
)  # fmt: skip
def test_a_column_of_hosts_tells_cards_of_one_number_apart(text: str) -> None:
    found = {writer: [each[1:] for each in rows] for writer, rows in devices(text).items()}
    assert found == {"": [(0, 41000), (1, 41001)], "h2": [(0, 42000), (1, 42001)]}


def test_a_column_of_one_host_changes_nothing() -> None:
    assert [*devices("node;gpu;vram_used_mib\nh1;0;411\nh1;1;412\n")] == [""]


def clocks(text: str) -> list[tuple[str, str, float]]:
    parts = list(chunks(io.BytesIO(text.encode())))
    ingestor, _ = ingest.recognise(ingest.make_head("cards.csv", parts[0].data))
    return [
        (batch.writer, name, value)
        for batch in ingest.read(ingestor, "cards.csv", parts)
        if batch.table == "metric"
        for name, value in zip(batch.columns["name"], batch.columns["value"], strict=True)
    ]


def test_a_table_with_hosts_keeps_the_clocks_of_busy_cards() -> None:
    head = "time,node,gpu,mem_used_mib,mem_total_mib,gpu_util,sm_clock_mhz\n"
    rows = [(m, host, 1980 - 700 * (m > 1) * (host == 2)) for m in range(4) for host in (1, 2)]
    text = head + "".join(
        f"2026-04-02T08:0{m}:00Z,h{host},0,41000,46068,{95 - 90 * (m == 3)},{clock}\n" for m, host, clock in rows
    )
    name = "DCGM_FI_DEV_SM_CLOCK"
    assert clocks(text) == [("", name, 1980.0), ("h2", name, 1980.0), ("h2", name, 1280.0)]


def test_an_idle_card_of_another_host_is_no_place_for_a_shard(tmp_path: Path) -> None:
    path = tmp_path / "cards.txt"
    path.write_text(f"== edge-3 ==\n{screen(41007, 41008)}\n== edge-4 ==\n{screen(3, 4)}")
    with diagnose.analyze(str(path)) as analysis:
        told = analysis.sql("SELECT devices, idle_devices, used_min_bytes, used_max_bytes FROM device")[1]
    assert [tuple(row) for row in told] == [(2, 0, 41007 * MIB, 41008 * MIB)]
