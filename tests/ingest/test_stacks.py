"""Stacks of a running process: which wait of a main thread is one for others, and which is one for work."""

import io

import pytest

from oomdoc.ingest.texts import Texts
from oomdoc.intake.scan import chunks


def errors(text: str) -> list[dict]:
    texts = Texts()
    for chunk in chunks(io.BytesIO(text.encode())):
        texts.hear(chunk)
    found = []
    for batch in texts.close():
        if batch.table == "log_error":
            names = list(batch.columns)
            found += [dict(zip(names, row, strict=True)) for row in zip(*batch.columns.values(), strict=True)]
    return found


def spied(name: str, *calls: str) -> str:
    return f'Process 71: {name}\nPython v3.12.1 (/usr/bin/python3.12)\n\nThread 71 (active): "MainThread"\n' + "".join(f"    {call}\n" for call in calls) + 'Thread 80 (idle): "Thread-1"\n    wait (threading.py:359)\n\n'  # fmt: skip


@pytest.mark.parametrize(
    ("calls", "wait"),
    [
        (("all_reduce (torch/distributed/distributed_c10d.py:2806)", "forward (models/m.py:41)"), "in a collective"),
        (("irecv (vllm/distributed/parallel_state.py:700)", "execute_model (gpu_worker.py:300)"), "in a collective"),
        (("synchronize (torch/cuda/streams.py:230)", "sample_tokens (gpu_model_runner.py:3000)"), "for the device"),
        (("cudaStreamSynchronize (libcudart.so.12)", "_local_scalar_dense (libtorch.so)"), "for the device"),
        (("poll (zmq/sugar/poll.py:106)", "dequeue (shm_broadcast.py:794)", "get_response (multiproc_executor.py:387)"), "for an answer of a worker"),
        (("acquire (filelock/_api.py:292)", "download (hub.py:10)"), "for a lock"),
    ],
)  # fmt: skip
def test_a_main_thread_that_waits_for_others(calls: tuple[str, ...], wait: str) -> None:
    (row,) = errors(spied("VLLM::Worker_TP1", *calls))
    assert (row["kind"], row["process"], row["pid"], row["line"]) == ("hang", "VLLM::Worker_TP1", 71, 4)
    assert wait in row["text"]


@pytest.mark.parametrize(
    "calls",
    [
        ("poll (zmq/sugar/poll.py:106)", "acquire_read (shm_broadcast.py:698)", "dequeue (shm_broadcast.py:779)", "worker_busy_loop (multiproc_executor.py:973)"),
        ("select (selectors.py:468)", "_run_once (asyncio/base_events.py:1998)", "run_forever (asyncio/base_events.py:645)"),
        ("matmul (numpy/core.py:1)", "train (train.py:20)"),
    ],
)  # fmt: skip
def test_a_main_thread_that_waits_for_work_or_works(calls: tuple[str, ...]) -> None:
    assert errors(spied("VLLM::Worker_TP1", *calls)) == []


def test_the_stack_of_faulthandler() -> None:
    text = 'Timeout (0:05:00)!\nThread 0x00007f11 (most recent call first):\n  File "/env/torch/distributed/distributed_c10d.py", line 4159 in barrier\n  File "/env/vllm/worker.py", line 99 in init_device\n'
    (row,) = errors(text)
    assert row["kind"] == "hang" and "barrier" in row["text"] and row["line"] == 2


def test_a_traceback_is_no_stack_of_a_running_process() -> None:
    assert errors('Traceback (most recent call last):\n  File "/x/c10d.py", line 4 in barrier\n') == []
