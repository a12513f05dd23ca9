"""Lists of a model's files: the size of a set that is whole, parts that are absent, and lists that were cut."""

from __future__ import annotations

from typing import Any

import pytest

import forms


def listed(text: str) -> list[dict[str, Any]]:
    _, tables = forms.read("list.txt", text.encode())
    return [{k: v for k, v in row.items() if v is not None} for row in tables.get("model_file", [])]


def parts(sizes: dict[int, int], of: int, row: str) -> str:
    return "\n".join(
        row.format(size=size, name=f"model-{at:05d}-of-{of:05d}.safetensors") for at, size in sizes.items()
    )


ROWS = {
    "long": "-rw-r--r-- 1 svc svc {size} Mar 11 21:14 {name}",
    "of numbers": "-rw-r--r--. 1 1000 1000 {size} 2026-03-11 21:14 {name}",
    "of another tongue": "-r--r----- 1 svc modelle {size} 11. Mär 2025  {name}",
    "without links": "-rw-rw-r-- svc svc {size} 3 déc. 21:14 {name}",
    "object store": "2026-03-11 21:14:03 {size} {name}",
    "two columns": "{size}\t./{name}",
    "tree": "├── [ {size}]  {name}",
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_set_that_is_whole_has_a_size(row: str) -> None:
    text = "$ ls -l /models/umbra-9b\n" + parts({1: 4_800_000_000, 2: 4_900_000_000, 3: 1_300_000_000}, 3, row)
    (found,) = listed(text + "\n" + row.format(size=17_000_000, name="tokenizer.json") + "\n")
    assert (found["file"], found["total_bytes"], found["absent"]) == ("listing", 11_000_000_000, 0)
    assert found["folder"] == "/models/umbra-9b"


def test_sizes_with_units_are_binary() -> None:
    (found,) = listed(
        "-rw-r--r-- 1 a a 4.5G Mar 11 21:14 model-00001-of-00002.safetensors\n-rw-r--r-- 1 a a 512M Mar 11 21:14 model-00002-of-00002.safetensors\n"
    )
    assert found["total_bytes"] == 5 * 1024**3


def test_parts_between_others_and_empty_ones_are_absent() -> None:
    of_five = {1: 4_000_000_000, 2: 4_000_000_000, 4: 4_000_000_000, 5: 0}
    (found,) = listed("$ ls -l /models/umbra-9b\n" + parts(of_five, 5, ROWS["long"]))
    assert found["absent"] == 2 and "total_bytes" not in found


@pytest.mark.parametrize("behind", ["| head -3", "| tail -3", "| less", "| grep -v 00001"])
def test_a_list_that_was_cut_tells_neither(behind: str) -> None:
    (found,) = listed(
        f"$ ls -l /models/umbra-9b {behind}\n" + parts({1: 4_000_000_000, 3: 4_000_000_000}, 5, ROWS["long"])
    )
    assert not {"absent", "total_bytes"} & found.keys()


def test_a_filter_for_the_weights_cuts_nothing() -> None:
    (found,) = listed(
        "$ ls -l /models/umbra-9b | grep safetensors\n" + parts({1: 4_000_000_000, 2: 4_000_000_000}, 2, ROWS["long"])
    )
    assert found["total_bytes"] == 8_000_000_000


def test_a_set_whose_last_parts_are_not_listed_has_no_size() -> None:
    (found,) = listed("$ ls -l /models/umbra-9b\n" + parts({1: 4_000_000_000, 2: 4_000_000_000}, 5, ROWS["long"]))
    assert found["absent"] == 0 and "total_bytes" not in found


def test_two_folders_are_two_sets_and_a_later_list_of_one_counts() -> None:
    one = parts({1: 4_000_000_000, 2: 0}, 2, ROWS["long"])
    again = parts({1: 4_000_000_000, 2: 3_000_000_000}, 2, ROWS["long"])
    found = listed(f"/models/a-7b:\ntotal 12\n{one}\n\n/models/b-7b:\n{again}\n\n/models/a-7b:\n{again}\n")
    assert {row["folder"]: row.get("total_bytes") for row in found} == {
        "/models/a-7b": 7_000_000_000,
        "/models/b-7b": 7_000_000_000,
    }


@pytest.mark.parametrize(
    "row",
    [
        "lrwxrwxrwx 1 a a 76 Mar 11 21:14 model-00001-of-00001.safetensors -> ../../blobs/0a1b",
        "-rw-r--r-- 1 a a 1400000000 Mar 11 21:14 optimizer.bin",
        "-rw-r--r-- 1 a a 1400000000 Mar 11 21:14 core-dump.bin",
        "-rw-r--r-- 1 a a 80000000 Mar 11 21:14 adapter_model.safetensors",
        "-rw-r--r-- 1 a a 5000 Mar 11 21:14 model.safetensors",
        "INFO 03-11 21:14:03 [weight_utils.py:348] Using model weights format ['*.safetensors']",
        "loading 4000000000 bytes of model-00001-of-00001.safetensors took 4 s",
    ],
)
def test_what_is_no_list_of_weights(row: str) -> None:
    assert listed(row + "\n") == []


def test_the_total_of_an_index_that_somebody_looked_up() -> None:
    (found,) = listed('$ grep total_size model.safetensors.index.json\n    "total_size": 47144806400\n')
    assert (found["file"], found["total_bytes"]) == ("weights-index", 47_144_806_400)
    assert listed('{"total_size": 3}\n') == []


def test_a_long_log_is_no_list() -> None:
    row = ROWS["long"].format(size=4_000_000_000, name="model.safetensors") + "\n"
    assert listed(row) and not listed("x" * 80 + "\n" + ("INFO loads /m/a.safetensors now\n" * 40_000) + row)
