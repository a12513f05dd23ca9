"""Runs as people keep them: entries of TOML with their flags below, a day beside what became of each."""

from __future__ import annotations

from typing import Any

from forms import read
from oomdoc.units import GIB, MIB


def rows(text: str, table: str, name: str) -> list[dict[str, Any]]:
    return read(name, text.encode())[1].get(table, [])


RUNS = """\
# one card, notes of the week
[box]
owner = "ann"

[[run]]
day = 2026-05-04
config = { max_num_seqs = 512, gpu_memory_utilization = 0.95 }
outcome = "OOM after 3 min"
peak_gpu = "23_900 MiB"

[[run]]
day = 2026-05-05
config = { max_num_seqs = 128, gpu_memory_utilization = 0.95 }
outcome = "served"
peak_gpu = "21_504 MiB"
kv_tokens = 40_960
"""


def test_entries_of_toml_are_tries() -> None:
    tried = {(row["line"], row["flag"], row["value"], row["works"]) for row in rows(RUNS, "trial", "runs.toml")}
    assert {(5, "max_num_seqs", "512", False), (11, "max_num_seqs", "128", True)} <= tried
    figures = [(row["line"], row["quantity"], row["value"]) for row in rows(RUNS, "trial_figure", "runs.toml")]
    assert figures == [(5, "gpu_bytes", 23_900 * MIB), (11, "gpu_bytes", 21 * GIB), (11, "kv_tokens", 40_960)]


def test_entries_of_other_toml_are_none() -> None:
    lock = '[[package]]\nname = "gpu-used"\nversion = "1.0.2"\n\n[[package]]\nname = "memory"\nversion = "0.9.1"\n'
    assert not rows(lock, "trial", "Cargo.lock") and not rows(lock, "trial_figure", "Cargo.lock")
    broken = RUNS.replace('"ann"', "ann")
    assert not rows(broken, "trial_figure", "runs.toml")


SHEET = "date,max_num_seqs,peak_mem_gib,result\n2026-05-04,512,23.4,OOM at start\n2026-05-05,128,21.0,ok\n"


def test_a_day_beside_each_outcome_leaves_an_experiment_one() -> None:
    assert [(row["flag"], row["value"], row["works"]) for row in rows(SHEET, "trial", "sheet.csv")] == [
        ("max_num_seqs", "512", False),
        ("max_num_seqs", "128", True),
    ]


def test_a_course_of_settings_without_an_outcome_is_none() -> None:
    course = "date,max_num_seqs,peak_mem_gib\n2026-05-04,512,23.4\n2026-05-05,128,21.0\n"
    assert not rows(course, "trial", "sheet.csv")
