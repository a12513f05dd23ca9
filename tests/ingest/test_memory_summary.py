"""Allocator tables of torch: units, pools, versions, and what is no such table."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoc.ingest import make_head, memory_summary
from oomdoc.intake.scan import chunks
from oomdoc.units import GIB, KIB, MIB, TIB

BAR, RULE = "|" + "=" * 75 + "|", "|" + "-" * 75 + "|"
SIZES = ("Allocated memory", "Active memory", "Requested memory", "GPU reserved memory", "Non-releasable memory")
COUNTS = ("Allocations", "Active allocs", "GPU reserved segments", "Non-releasable allocs")


def size_row(label: str, *cells: tuple[int, str]) -> str:
    return f"| {label:<22}|" + "".join(f" {number:6d} {unit:<3} |" for number, unit in cells)


def count_row(label: str, *cells: tuple[int, str]) -> str:
    return f"| {label:<22}|" + "".join(f" {number:7d} {unit:<1}  |" for number, unit in cells)


def table(
    device: int = 0,
    ooms: int = 0,
    retries: int = 0,
    brief: bool = False,
    unit: str = "MiB",
    sizes: tuple[str, ...] = SIZES,
) -> list[str]:
    """A table as torch lays it out, with figures of its own."""
    pools = ("",) if brief else ("", "      from large pool", "      from small pool")
    lines = [BAR, f"|{f'PyTorch CUDA memory summary, device ID {device}':^75}|", RULE]
    lines += [f"|{f'CUDA OOMs: {ooms}':^36}|{f'cudaMalloc retries: {retries}':^38}|", BAR]
    lines += ["|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |"]
    for at, name in enumerate(sizes):
        lines.append(RULE)
        lines += [size_row(pool or name, (40 + at, unit), (50 + at, unit), (90, unit), (30, unit)) for pool in pools]
    for name in COUNTS:
        lines.append(RULE)
        lines += [count_row(pool or name, (1200, ""), (1300, ""), (1234, "K"), (2, "M")) for pool in pools]
    for name in ("Oversize allocations", "Oversize GPU segments"):
        lines += [RULE, count_row(name, (0, ""), (0, ""), (0, ""), (0, ""))]
    return [*lines, BAR]


def read(text: str | bytes, size: int = 1 << 20) -> dict[str, list[dict[str, Any]]]:
    """All rows by table."""
    data = text if isinstance(text, bytes) else text.encode()
    tables: dict[str, list[dict[str, Any]]] = {}
    for batch in memory_summary.read("any", chunks(io.BytesIO(data), size)):
        names, columns = list(batch.columns), list(batch.columns.values())
        tables.setdefault(batch.table, []).extend(
            dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)
        )
    return tables


def is_summary(text: str) -> bool:
    return memory_summary.matches(make_head("any", text.encode()))


def test_lines_are_77_wide_as_torch_prints_them() -> None:
    assert {len(line) for line in table(3, 1, 20)} == {77}


def test_a_full_table() -> None:
    tables = read("\n".join(table(device=2, ooms=1, retries=21)))
    rows = tables["allocator_stat"]
    assert "problem" not in tables
    assert len(rows) == 2 + 9 + 2
    assert {(row["device"], row["summary"]) for row in rows} == {(2, 1)}
    at = {row["metric"]: row for row in rows}
    assert at["num_ooms"]["current"] == 1
    assert at["num_alloc_retries"] == {
        "line": 4, "device": 2, "summary": 1, "metric": "num_alloc_retries", "current": 21,
    }  # fmt: skip
    assert at["allocated_bytes"]["line"] == 8
    assert set(at) == {
        "num_ooms", "num_alloc_retries", "allocated_bytes", "active_bytes", "requested_bytes", "reserved_bytes", "inactive_split_bytes",
        "allocation", "active", "segment", "inactive_split", "oversize_allocations", "oversize_segments",
    }  # fmt: skip


def test_a_brief_table_of_an_old_torch() -> None:
    sizes = tuple(name for name in SIZES if name != "Requested memory")
    rows = read("\n".join(table(brief=True, unit="MB", sizes=sizes)))["allocator_stat"]
    assert len(rows) == 2 + 8 + 2
    assert next(row for row in rows if row["metric"] == "allocated_bytes")["current"] == 40 * MIB


@pytest.mark.parametrize(
    ("unit", "factor"),
    [("B", 1), ("KB", KIB), ("KiB", KIB), ("MB", MIB), ("GB", GIB), ("GiB", GIB), ("TiB", TIB), ("PiB", KIB * TIB)],
)
def test_all_units_are_binary(unit: str, factor: int) -> None:
    row = read("\n".join(table(unit=unit)))["allocator_stat"][2]
    assert (row["metric"], row["current"]) == ("allocated_bytes", 40 * factor)


def test_many_tables_between_other_text() -> None:
    text = "step 1\n" + "\n".join(table(0)) + "\n\nstep 2 | done\n" + "\r\n".join(table(1)) + "\n"
    rows = read(text)["allocator_stat"]
    assert {(row["device"], row["summary"]) for row in rows} == {(0, 1), (1, 2)}
    assert rows[0]["line"] == 5
    assert read(text, 100) == read(text)


def test_a_table_in_an_envelope() -> None:
    text = "\n".join(f"2026-11-20T20:04:51.123456789Z stdout F {line}" for line in table(1))
    assert len(read(text)["allocator_stat"]) == 13
    assert is_summary(text)


def test_a_table_of_another_width_is_refused() -> None:
    narrow = [line.replace("=" * 75, "=" * 60).replace("-" * 75, "-" * 60) for line in table()]
    tables = read("\n".join(narrow))
    assert "allocator_stat" not in tables
    assert [row["line"] for row in tables["problem"]] == [2]
    assert not is_summary("\n".join(narrow))


def test_unknown_rows_are_problems() -> None:
    lines = table()
    lines[7] = size_row("Reserved memory", (1, "MiB"), (1, "MiB"), (1, "MiB"), (1, "MiB"))
    lines[11] = lines[11].replace(" MiB ", " Mib ")
    lines[15] = lines[15].replace("    42 MiB", "   4.2 MiB")
    lines[19] = size_row("GPU reserved memory", (999999, "PiB"), (1, "MiB"), (1, "MiB"), (1, "MiB"))
    assert [row["line"] for row in read("\n".join(lines))["problem"]] == [8, 12, 16, 20]


def test_recognised() -> None:
    assert is_summary("\n".join(table()))
    assert is_summary("after the second batch:\n" + "\n".join(table()))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "call torch.cuda.memory_summary() and send the PyTorch CUDA memory summary, device ID 0\n",
        "\n".join(["INFO 11-20 20:04:51 [core.py:586] a line of the server"] * 9 + table()),
        'Traceback (most recent call last):\n  File "x.py", line 3\ntorch.OutOfMemoryError: CUDA out of memory.\n'
        + "\n".join(table()),
        "words of a report\n" * 60 + "\n".join(table()),
        "| NVIDIA-SMI 535.1   Driver Version: 535.1   CUDA Version: 12.2 |\n",
    ],
)
def test_not_recognised(text: str) -> None:
    assert not is_summary(text)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(st.sampled_from([line.encode() for line in table()]), st.binary(max_size=90))),
    st.integers(1, 300),
)
def test_any_bytes(lines: list[bytes], size: int) -> None:
    data = b"\n".join(lines)
    tables = read(data, size)
    assert all(1 <= row["line"] <= data.count(b"\n") + 1 for rows in tables.values() for row in rows)
    memory_summary.matches(make_head("any", data))


# ---- quoted inside of another text


def quoted(text: str, size: int = 1 << 20) -> list[dict[str, Any]]:
    heard = memory_summary.Quoted()
    for chunk in chunks(io.BytesIO(text.encode()), size):
        heard.chunk(chunk)
    rows = []
    for batch in heard.take():
        if batch.table == "allocator_stat":
            rows += [dict(zip(batch.columns, row, strict=True)) for row in zip(*batch.columns.values(), strict=True)]
    return rows


LOG = "INFO 11-20 20:04:51 [core.py:58] a line of the engine"


@pytest.mark.parametrize("size", [1 << 20, 300])
@pytest.mark.parametrize("prefix", ["", "2026-11-20T20:04:51.123456789Z stdout F "])
def test_a_table_inside_a_log_is_read(prefix: str, size: int) -> None:
    lines = [LOG, *table(device=1, ooms=2), LOG, "| a row | of something | else |", LOG, *table(ooms=3), LOG]
    text = "\n".join(prefix + line for line in lines) + "\n"
    rows = quoted(text, size)
    ooms = [(row["device"], row["summary"], row["current"]) for row in rows if row["metric"] == "num_ooms"]
    assert ooms == [(1, 1, 2), (0, 2, 3)]
    for row in rows:
        if row["metric"] == "reserved_bytes":
            assert "GPU reserved memory" in lines[row["line"] - 1]
    alone = read("\n".join(table(device=1, ooms=2)))["allocator_stat"]
    assert [row["current"] for row in rows if row["summary"] == 1] == [row["current"] for row in alone]


def test_near_miss_rules_and_banners_apart_are_no_table() -> None:
    assert quoted("\n".join([LOG, BAR, "| something else |", *table()[2:]])) == []
    assert quoted("\n".join([LOG, *table()[1:]])) == []
    assert quoted("\n".join(table()).replace("|", "/")) == []


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 40))
def test_a_table_cut_by_the_end_of_a_chunk_goes_on_in_the_next(line: int) -> None:
    text = "\n".join([*table(3), ""] * 4 + [""]).encode()
    lines = text.split(b"\n")
    half = len(lines) // 2 + line
    first, second = b"\n".join(lines[:half]) + b"\n", b"\n".join(lines[half:])
    whole, cut = memory_summary._Tables(), memory_summary._Tables()
    rows = [[row for batch in found for row in zip(*batch.columns.values(), strict=True)] for found in (whole.chunk(text, 1), [*cut.chunk(first, 1), *cut.chunk(second, half + 1)])]  # fmt: skip
    assert rows[0] == rows[1] and len(rows[0]) > 4 * 10
