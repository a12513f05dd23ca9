"""Devices in sentences: how much of one is in use, told beside its whole."""

from __future__ import annotations

import pytest

from forms import read
from oomdoc.units import GIB, MIB


def devices(text: str) -> list[tuple[int, int, int | None]]:
    rows = read("note.txt", text.encode())[1].get("gpu_sample", [])
    return [(row["gpu"], row["used_bytes"], row.get("total_bytes")) for row in rows]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu1 on box-2 was at 40.5 of 44.5 GiB then, gpu0 only 9.5 GiB", [(1, 81 * GIB // 2, 89 * GIB // 2), (0, 19 * GIB // 2, None)]),
        ("during the third run card 3 stood at 12,288 of 46,068 MiB", [(3, 12_288 * MIB, 46_068 * MIB)]),
        ("À 9 h la carte 2 affiche 12\u202f288 Mio sur 46\u202f068 Mio, rien de plus.", [(2, 12_288 * MIB, 46_068 * MIB)]),
        ("gpu 1 has 3.5 of 44.5 GiB free", [(1, 41 * GIB, 89 * GIB // 2)]),
        ("Um neun war Karte 0 bei 12,5 GiB von 44,5 GiB", [(0, 25 * GIB // 2, 89 * GIB // 2)]),
        ("2 号卡显存占用 12288MiB / 46068MiB，别的都正常", [(2, 12_288 * MIB, 46_068 * MIB)]),
    ],
)  # fmt: skip
def test_what_somebody_says_of_a_device(text: str, expected: list[tuple[int, int, int | None]]) -> None:
    assert devices(f"notes of the morning shift\n{text}\nnobody touched it\n") == expected


@pytest.mark.parametrize(
    "text",
    [
        "gpu 0 only 9.5 GiB",  # of what, and in use or left?
        "card 2 needs 40 GiB of 44.5 GiB for the model",
        "GPU 0 has a total capacity of 44.39 GiB of which 402.31 MiB is free.",
        "the gpu 1 fan ran at 40 of 90 percent",
        "gpu_memory_utilization 0.9 of 1.0 GiB",
        "discard 1 at 40.5 of 44.5 GiB",
    ],
)
def test_what_is_no_use_of_a_device(text: str) -> None:
    assert not devices(f"notes of the morning shift\n{text}\nnobody touched it\n")
