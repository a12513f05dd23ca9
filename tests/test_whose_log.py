"""Whose a log is that stands beside the server's own: of the pod that a command asked for, of an earlier batch job."""

from __future__ import annotations

from pathlib import Path

import pytest

from test_whose_event import bonds, serving

REFUSED = "ValueError: Free memory on device (9.81/79.25 GiB) on startup is less than desired GPU memory utilization (0.9, 71.33 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.\n"
PODS = (
    "$ kubectl get pods -o wide\n"
    "NAME                       READY  STATUS             RESTARTS      AGE  NODE\n"
    "tutor7-5b4d8f9c44-7hzmk    1/1    Running            0             2d   g-03\n"
    "sorter-84b9d7f9b8-kc5np    0/1    CrashLoopBackOff   14 (2m ago)   55m  g-04\n"
    "$ kubectl logs {pod} --previous | tail -1\n" + REFUSED
)
SCRAPE = '# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{{engine="0",model_name="{name}"}} 4.0\n'


@pytest.mark.parametrize(
    ("name", "pod", "apart"),
    [("tutor-7b", "sorter-84b9d7f9b8-kc5np", True), ("tutor-7b", "tutor7-5b4d8f9c44-7hzmk", False), ("base", "sorter-84b9d7f9b8-kc5np", False)],
    ids=["of another pod", "of the server's own", "nobody says which is the server's"],
)  # fmt: skip
def test_a_log_that_a_command_asked_for(name: str, pod: str, apart: bool, tmp_path: Path) -> None:
    """The server goes by the name of its model; a log of the pod beside it says nothing of it."""
    found = bonds(tmp_path, {"m.prom": SCRAPE.format(name=name), "session.txt": PODS.format(pod=pod)}, "startup_check")
    assert (found.get(f"session.txt[{pod}]:0", ("", ""))[0] == "foreign") is apart


OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total capacity of 79.11 GiB of which 1.02 GiB is free.\n"


@pytest.mark.parametrize(
    ("failed", "ending", "apart"),
    [("48190", "10:", True), ("48190", "09:", False), ("48233", "10:", False)],
    ids=["the later job works for an hour and more", "it works for minutes", "the one that failed is the later"],
)
def test_the_log_of_an_earlier_job(failed: str, ending: str, apart: bool, tmp_path: Path) -> None:
    """A batch system numbers its jobs as they come: who works for hours has got over what ended the one before."""
    log = serving().replace(" 09:19:", f" {ending}39:")
    found = bonds(tmp_path, {"slurm-48211.out": log, f"slurm-{failed}.out": f"0: job {failed}\n0: {OOM}"}, "oom")
    assert (found.get(f"slurm-{failed}.out:0", ("", ""))[0] == "foreign") is apart


def test_a_later_job_that_failed_as_well_is_over_nothing(tmp_path: Path) -> None:
    log = serving().replace(" 09:19:", " 10:39:") + f"(EngineCore_DP0 pid=41) ERROR 11-24 10:40:04 [core.py:708] {OOM}"
    found = bonds(tmp_path, {"slurm-48211.out": log, "slurm-48190.out": f"0: job 48190\n0: {OOM}"}, "oom")
    assert found.get("slurm-48190.out:0", ("", ""))[0] != "foreign"
