"""Whose a message is that a sentence quotes, which devices a pod was given, and whose a container is that is listed beside a server: each beside what decides otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oomdoc.intake.entries import is_sheet_to_order
from verdicts import UP, likely, minute, shows, tables

SERVES = UP + "".join(minute(at, 4, 0, 9.0 + at % 5) for at in range(2, 40))
QUOTE = 'Incident 118 (closed): the old profile ended with "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.40 GiB" at a share of 0.97.\n'
PASTED = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.40 GiB. GPU 0 has a total capacity of 79.15 GiB of which 310.00 MiB is free.\n"


SPIKE = "prefill-activation-spike"
HANDOVER = "Handover of the week, written on Friday.\n"


@pytest.mark.parametrize(("told", "ill"), [(QUOTE, False), ("It ends like this:\n" + PASTED, True)])
def test_a_message_that_a_sentence_quotes_is_no_failure_of_a_server_whose_log_met_none(
    tmp_path: Path, told: str, ill: bool
) -> None:
    assert (likely(tmp_path, {"vllm.log": SERVES, "handover.md": HANDOVER + told}) == SPIKE) is ill


def test_a_quoted_message_leaves_the_log_that_serves_the_servers_own(tmp_path: Path) -> None:
    assert shows(tmp_path, {"vllm.log": SERVES, "handover.md": QUOTE}, "healthy", "pool-has-room")


def test_a_quoted_message_counts_beside_a_log_that_ends_in_an_error(tmp_path: Path) -> None:
    died = SERVES + "ERROR 03-02 08:41:00 [core.py:700] RuntimeError: worker 1 lost\n"
    assert likely(tmp_path, {"vllm.log": died, "handover.md": HANDOVER + QUOTE}) == SPIKE


def _node(pod_gpus: int) -> dict[str, str]:
    """A pod on a node of four cards, of which one is full and one idle, whose start leaves nothing for the pool."""
    log = (
        "INFO 03-02 08:00:01 [utils.py:328] non-default args: {'model': 'meta-llama/Llama-3.3-70B-Instruct', 'gpu_memory_utilization': 0.92}\n"
        "INFO 03-02 08:00:02 [core.py:58] Initializing a V1 LLM engine (v0.12.0) with config: model='meta-llama/Llama-3.3-70B-Instruct', dtype=torch.bfloat16, tensor_parallel_size=1, pipeline_parallel_size=1\n"
        "INFO 03-02 08:03:40 [gpu_model_runner.py:2392] Model loading took 131.5600 GiB and 90.1 seconds\n"
        "INFO 03-02 08:04:02 [gpu_worker.py:298] Available KV cache memory: -7.21 GiB\n"
        "ERROR 03-02 08:04:03 [core.py:700] ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"
    )
    head = "Name:         rater-6b7f9d8c5-vfz8k\nNamespace:    eval\nNode:         box-8/10.2.0.9\nContainers:\n  vllm:\n    Image:          vllm/vllm-openai:v0.12.0\n    State:          Waiting\n      Reason:       CrashLoopBackOff\n"
    limits = f"    Last State:     Terminated\n      Reason:       Error\n      Exit Code:    1\n    Restart Count:  3\n    Limits:\n      nvidia.com/gpu:  {pod_gpus}\n"
    cards = "index, name, memory.used [MiB], memory.total [MiB]\n" + "".join(
        f"{at}, NVIDIA H200, {used} MiB, 143771 MiB\n" for at, used in enumerate((136020, 98704, 4, 120011))
    )
    return {"vllm.log": log, "pod.txt": head + limits, "cards.csv": cards}


@pytest.mark.parametrize(("gpus", "more"), [(1, False), (4, True)])
def test_a_pod_sees_the_devices_that_it_was_given_and_not_those_of_its_node(
    tmp_path: Path, gpus: int, more: bool
) -> None:
    assert shows(tmp_path, _node(gpus), "tp-undersharded", "more-devices-than-ranks") is more


@pytest.mark.parametrize(("gpus", "idle"), [(1, False), (4, True)])
def test_an_idle_device_of_the_node_is_none_of_a_pods_own(tmp_path: Path, gpus: int, idle: bool) -> None:
    assert shows(tmp_path, _node(gpus), "tp-undersharded", "idle-devices") is idle


def _listed(killed: str, other: str) -> str:
    """What `docker inspect` says of two containers, of which one was ended for its memory."""
    return json.dumps(
        [
            {"Id": f"{at}" * 64, "Name": f"/{name}", "State": {"Status": "running", "OOMKilled": name == killed, "ExitCode": 0}, "RestartCount": 2 if name == killed else 0}
            for at, name in enumerate((killed, other))
        ],
        indent=1,
    )  # fmt: skip


@pytest.mark.parametrize(("killed", "own"), [("drawing", False), ("chat-vllm-1", True)])
def test_a_container_beside_one_that_is_named_as_the_server_is_another_programs(
    tmp_path: Path, killed: str, own: bool
) -> None:
    other = "chat-vllm-1" if killed == "drawing" else "drawing"
    files = {"chat-vllm-1.log": SERVES, "inspect.json": _listed(killed, other)}
    assert shows(tmp_path, files, "host-memory-exhausted", "oomkilled") is own


@pytest.mark.parametrize(("day", "ill"), [("2026-04-22", False), ("2026-05-05", True)])
def test_a_report_of_another_day_is_no_start_of_the_server(tmp_path: Path, day: str, ill: bool) -> None:
    log = "".join(f"2026-05-05T08:{at:02}:00Z {line}\n" for at, line in enumerate(SERVES.splitlines()))
    files = {"vllm.log": log, "report.txt": f"REPORT {day}\n{PASTED}Cause: a share of 0.97, now 0.92.\n"}
    assert (likely(tmp_path, files) == SPIKE) is ill


ROWS = ("2026-01-15 20:23:22.100,last", "2026-01-15 20:23:21.050,third", "2026-01-15 20:23:20.650,second", "2026-01-15 20:23:19.000,first")  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "falls"),
    [(ROWS, True), (ROWS[::-1], False), (ROWS[:3], False), ((*ROWS, "2026-01-15 20:23:59.000,later"), False)],
)
def test_a_viewers_sheet_is_turned_round_where_its_moments_only_go_back(rows: tuple[str, ...], falls: bool) -> None:
    assert is_sheet_to_order(("Time,Line\n" + "".join(f"{row}\n" for row in rows)).encode()) is falls


def test_a_sheet_newest_line_first_ends_with_its_failure(tmp_path: Path) -> None:
    lines = [*SERVES.splitlines(), "ERROR 03-02 08:41:00 [core.py:700] " + PASTED.strip()]
    sheet = "Time,Line\n" + "".join(
        f'2026-03-02 08:{at:02}:00.000,"{line}"\n' for at, line in reversed(list(enumerate(lines)))
    )
    assert likely(tmp_path, {"export.csv": sheet}) not in {None, "healthy", "not-memory"}


@pytest.mark.parametrize(("second", "sources"), [("chat-1", 2), ("chat-0", 1)])
def test_lines_of_several_pods_in_one_sheet_are_logs_of_their_own(tmp_path: Path, second: str, sources: int) -> None:
    pods = ("chat-0", second)
    rows = [f'2026-03-02 08:{at:02}:0{place}.000,{pod},"{line}"\n' for at, line in enumerate(SERVES.splitlines()) for place, pod in enumerate(pods)]  # fmt: skip
    (tmp_path / "export.csv").write_text("Time,pod,Line\n" + "".join(rows))
    with tables(tmp_path) as analysis:
        assert analysis.sql("SELECT count(DISTINCT source) FROM main.milestone")[1] == [(sources,)]


def test_a_sheet_of_a_clusters_events_is_not_taken_for_lines_of_pods(tmp_path: Path) -> None:
    rows = [f"2026-03-02 08:0{at}:00.000,{reason},chat-{at},Container vllm was seen\n" for at, reason in enumerate(("Pulled", "BackOff"))]  # fmt: skip
    assert not is_sheet_to_order(("time,reason,pod,message\n" + "".join(rows)).encode())
