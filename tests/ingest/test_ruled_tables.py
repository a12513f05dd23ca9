"""Tables whose columns a line of dashes tells, and what Slurm says in one; lists of containers and of file systems in any form."""

from __future__ import annotations

import json
import time

import pytest

from forms import read
from oomdoc.intake.ruled import has_blank_cells
from oomdoc.units import GIB, KIB, MIB

JOB = (("JobID", 12), ("JobName", 10), ("State", 10), ("ExitCode", 8), ("MaxRSS", 10), ("ReqMem", 10))


def ruled(*rows: tuple[str, ...]) -> str:
    """A table as sacct prints it: cells at the right, cut at the width, blank where there is none."""

    def line(cells: tuple[str, ...]) -> str:
        return " ".join((cell if len(cell) <= width else cell[: width - 1] + "+").rjust(width) for cell, (_, width) in zip(cells, JOB, strict=True))  # fmt: skip

    head = line(tuple(name for name, _ in JOB))
    return "\n".join((head, " ".join("-" * width for _, width in JOB), *map(line, rows), ""))


def piped(*rows: tuple[str, ...]) -> str:
    return "\n".join("|".join(cells) for cells in (tuple(name for name, _ in JOB), *rows)) + "\n"


SHORT = (
    ("77", "chat", "OUT_OF_MEMORY", "0:125", "", "48G"),
    ("77.batch", "batch", "OUT_OF_MEMORY", "0:125", "50121032K", ""),
)
KILLED = (("78", "chat", "FAILED", "0:9", "", "500M"), ("78.0", "python3", "FAILED", "0:9", "1.5G", ""), ("79", "bench", "FAILED", "2:0", "", "9Gc"))  # fmt: skip


@pytest.mark.parametrize("form", [ruled, piped])
def test_what_a_step_held_and_what_its_job_asked_for(form: object) -> None:
    assert callable(form)
    found = read("job.txt", form(*SHORT).encode())[1]
    (held,) = found["process_memory"]
    assert (held["bytes"], held["resource"], held["name"]) == (50121032 * KIB, "host", "chat (step batch)")
    (limit,) = found["note"]
    assert (limit["topic"], limit["value"]) == ("container-limit", 48 * GIB)
    assert {row["kind"] for row in found["host_event"]} == {"slurm-oom-kill"} and "process_exit" not in found


@pytest.mark.parametrize("form", [ruled, piped])
def test_a_signal_ends_a_job_once_and_memory_per_core_is_no_jobs(form: object) -> None:
    assert callable(form)
    found = read("job.txt", f"$ sacct -j 78,79\n{form(*KILLED)}".encode())[1]
    assert [(row["name"], row["exit_code"]) for row in found["process_exit"]] == [("chat", -9), ("bench", 2)]
    assert [row["value"] for row in found["note"]] == [500 * MIB]
    assert "host_event" not in found


def test_a_table_whose_cells_are_all_there_stays_as_it_is() -> None:
    rows = (("77", "chat", "RUNNING", "0:0", "4096K", "48G"),)
    assert "|" not in ruled(*rows) and "process_exit" not in read("job.txt", ruled(*rows).encode())[1]


def test_lines_of_dashes_alone_are_looked_at_once() -> None:
    begun = time.perf_counter()
    assert not has_blank_cells(b"--- --- --- ---\n" * 20_000)
    assert time.perf_counter() - begun < 10


MOUNTS = (("overlay", "900G", "800G", "100G", "89%", "/"), ("shm", "64M", "64M", "0", "100%", "/dev/shm"), ("tmpfs", "31G", "4K", "31G", "1%", "/run"))  # fmt: skip
HEAD = ("Filesystem", "Size", "Used", "Avail", "Use%", "Mounted on")


@pytest.mark.parametrize(
    "text",
    [
        "| " + " | ".join(HEAD) + " |\n|" + "---|" * 6 + "\n" + "".join("| " + " | ".join(row) + " |\n" for row in MOUNTS),
        ",".join(HEAD) + "\n" + "".join(",".join(row) + "\n" for row in MOUNTS),
        json.dumps([dict(zip(("filesystem", "size", "used", "avail", "use_percent", "mounted_on"), row, strict=True)) for row in MOUNTS]),
        f"$ df -h\n{HEAD[0]:12}  Size  Used Avail Use% {HEAD[5]}\n" + "".join(f"{row[0]:12} {row[1]:>5} {row[2]:>5} {row[3]:>5} {row[4]:>4} {row[5]}\n" for row in MOUNTS),
    ],
)  # fmt: skip
def test_file_systems_are_no_memory_of_a_process_in_any_form(text: str) -> None:
    found = read("mounts.txt", text.encode())[1]
    told = {(row["topic"], row["value"]) for row in found["note"] if row["topic"] != "shm"}
    assert told == {("disk-free", 100 * GIB), ("shm-size", 64 * MIB), ("shm-used", 64 * MIB)}
    (full,) = found["host_event"]
    assert (full["kind"], full["bytes"], full["limit_bytes"]) == ("shm-full", 64 * MIB, 64 * MIB)
    assert not {"process_memory", "gpu_sample", "trial", "trial_figure"} & found.keys()


LISTED = (
    ("8d1f0a77c2b3", "vllm/vllm-openai:v0.10.2", "Exited (137) 9 minutes ago", "chat"),
    ("1c2d3e4f5a6b", "nginx:1.27", "Up 2 days", "front"),
)


@pytest.mark.parametrize(
    "text",
    [
        "".join(json.dumps({"ID": one, "Image": image, "Names": name, "State": status.split()[0].lower(), "Status": status, "Size": "0B"}) + "\n" for one, image, status, name in LISTED),
        f"{'CONTAINER ID':15}{'IMAGE':30}{'STATUS':30}NAMES\n" + "".join(f"{one:15}{image:30}{status:30}{name}\n" for one, image, status, name in LISTED),
    ],
)  # fmt: skip
def test_a_list_of_containers_is_no_experiment_and_says_who_ended_once(text: str) -> None:
    found = read("ps.txt", text.encode())[1]
    assert [(row["name"], row["container_id"]) for row in found["container"]] == [("chat", "8d1f0a77c2b3"), ("front", "1c2d3e4f5a6b")]  # fmt: skip
    assert [(row["name"], row["exit_code"]) for row in found["process_exit"]] == [("chat", 137)]
    assert not {"trial", "trial_figure", "process_memory"} & found.keys()


def test_looks_at_a_container_without_a_limit_are_its_course() -> None:
    head = "CONTAINER       NAME    CPU %   MEM     DISK    INODES  SWAP\n"
    text = "".join(f"2026-05-0{day}T07:00:00Z\n{head}8d1f0a77c2b31   chat    7.10    {used}GB  1MB     9       0B\n" for day, used in ((1, 10), (2, 12), (3, 14)))  # fmt: skip
    found = read("stats.txt", text.encode())[1]
    assert [(row["name"], row["resource"], row["bytes"]) for row in found["process_memory"]] == [("chat", "container", used * 10**9) for used in (10, 12, 14)]  # fmt: skip
    assert "container" not in found


SEFF = "Job ID: 77\nState: {state} (exit code 0)\nMemory Utilized: 47.80 GB\nMemory Efficiency: 99.58% of 48.00 GB\n"


@pytest.mark.parametrize("state", ["OUT_OF_MEMORY", "COMPLETED"])
def test_how_much_of_what_was_asked_for_a_job_used(state: str) -> None:
    found = read("seff.txt", SEFF.format(state=state).encode())[1]
    assert [(row["name"], row["bytes"]) for row in found["process_memory"]] == [("job 77", round(47.8 * GIB))]
    assert [row["value"] for row in found["note"] if row["topic"] == "container-limit"] == [48 * GIB]
    assert ("host_event" in found) is (state == "OUT_OF_MEMORY")


def test_a_share_of_memory_that_is_no_jobs_is_none() -> None:
    assert "note" not in read("x.txt", b"Memory Efficiency of the cluster: 40% of 2 TB\nCPU Efficiency: 12.10% of 3-13:20:00\n")[1]  # fmt: skip
