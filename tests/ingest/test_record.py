"""One line, any envelope, one record."""

import datetime as dt
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoc.ingest.record import Clock, decode, peel, read_record

LINE = "(Worker_TP1 pid=77) ERROR 11-20 20:04:51 [gpu_worker.py:12] out of luck"
STAMP = "2026-11-20T20:04:51.5Z"


@pytest.mark.parametrize(
    "raw",
    [
        LINE,
        f"{STAMP} stdout F {LINE}",
        f"{STAMP} {LINE}",
        f"[pod/llm-0/vllm] {LINE}",
        f"vllm-1  | {LINE}",
        f"Nov 20 20:04:51 host vllm[99]: {LINE}",
        f"> {LINE}",
        f"0: {LINE}",
        f"WARN  PyProcess W-252-model-stderr: {LINE}",
        f"2026-11-20T20:04:51,500 [INFO ] W-9000-llama_1.0-stdout MODEL_LOG - {LINE}",
        f"2026-11-20 20:04:51.243 | {LINE}",
        json.dumps({"log": LINE + "\n", "stream": "stderr", "time": STAMP}),
        json.dumps({"MESSAGE": LINE, "__REALTIME_TIMESTAMP": "1795205091500000"}),
        "\x1b[1;36m(Worker_TP1 pid=77)\x1b[0;0m ERROR 11-20 20:04:51 [gpu_worker.py:12] out of luck",
        "[0;36m(Worker_TP1 pid=77)[0;0m ERROR 11-20 20:04:51 [gpu_worker.py:12] out of luck",
        f"{STAMP} [pod/llm-0/vllm] {LINE}\r",
        f"[pod/llm-0/vllm] {STAMP} {LINE}",
        f"vllm-1  | {STAMP} {LINE}",
        f"2026-11-20T20:04:51+0000 node-7 vllm[4711]: {LINE}",
        f"2026-11-20T20:04:51.500000+00:00 node-7 vllm[4711]: {LINE}",
        f"Nov 20 20:04:51.500000 node-7 vllm[4711]: {LINE}",
        f"Nov 20 20:04:51 {LINE}",
        f"<14>1 {STAMP} node-7 vllm 4711 - - {LINE}",
        f'<14>1 {STAMP} node-7 vllm 4711 ID4 [a b="c \\"d\\""][e f="g"] {LINE}',
        f"<14>Nov 20 20:04:51 node-7 vllm[4711]: {LINE}",
        f'{STAMP} {{pod="vllm-0", namespace="llm"}} {LINE}',
        f"{STAMP} 01O {LINE}",
        f"{STAMP}\tkube.var.log.x\t" + json.dumps({"log": LINE + "\n", "stream": "stderr"}),
        json.dumps({"date": 1795205091.5, "log": LINE, "kubernetes": {"pod_name": "vllm-0"}}),
        json.dumps({"textPayload": LINE, "timestamp": STAMP}),
        json.dumps({"jsonPayload": {"message": LINE}, "timestamp": STAMP}),
        json.dumps(
            {
                "log": "\x1b[1;36m(Worker_TP1 pid=77)\x1b[0;0m ERROR 11-20 20:04:51 [gpu_worker.py:12] out of luck\r\n",
                "time": STAMP,
            }
        ),
        f"(ServeReplica:llm:LLMServer pid=9, ip=192.0.2.7) {STAMP} {LINE}",
        f"\x1b[36m(EngineWorker pid=9)\x1b[0m {LINE}",
    ],
)
def test_every_envelope_gives_the_same_record(raw: str) -> None:
    record = read_record(3, raw, Clock())
    assert (record.line, record.text.strip(), record.process, record.pid, record.rank, record.level) == (
        3,
        "out of luck",
        "Worker_TP1",
        77,
        1,
        "ERROR",
    )
    assert record.headed


@pytest.mark.parametrize(
    ("raw", "process", "rank", "text"),
    [
        ("INFO 01-05 12:00:00 model_runner.py:415] old layout", None, None, "old layout"),
        ("(VllmWorker rank=3 pid=8) INFO 01-05 12:00:00 [a.py:1] v1", "VllmWorker", 3, "v1"),
        (
            "(RayWorkerWrapper pid=5, ip=192.0.2.9) INFO 01-05 12:00:00 [a.py:1] ray [repeated 3x across cluster]",
            "RayWorkerWrapper",
            None,
            "ray",
        ),
        (
            "(Worker_DP0_TP2_EP2 pid=5) torch.OutOfMemoryError: CUDA",
            "Worker_DP0_TP2_EP2",
            2,
            "torch.OutOfMemoryError: CUDA",
        ),
        ("[rank5]: torch.OutOfMemoryError: CUDA", None, 5, "torch.OutOfMemoryError: CUDA"),
        ("Loading: 50%| 2/4 [00:01<00:01, 1.9it/s]INFO 01-05 12:00:00 [a.py:1] glued", None, None, "glued"),
        ("WARN  other::logger: relay: engine.py:518] passed on", None, None, "passed on"),
    ],
)
def test_layouts_tags_and_relays(raw: str, process: str | None, rank: int | None, text: str) -> None:
    record = read_record(1, raw, Clock())
    assert (record.process, record.rank, record.text) == (process, rank, text)


@pytest.mark.parametrize(
    "raw",
    [
        f"{STAMP} RuntimeError: CUDA error: out of memory",
        f"{STAMP} CUDA error: out of memory",
        f"{STAMP} host is gone: yes",
        '{"a": "b"} and more',
        "<b>bold</b> text",
        "May I ask: why",
    ],
)
def test_what_looks_like_an_envelope_is_left(raw: str) -> None:
    assert peel(raw)[0] == raw.removeprefix(STAMP + " ")


def test_an_envelope_gives_year_and_time_to_lines_without() -> None:
    record = read_record(1, f"{STAMP} stdout F torch.OutOfMemoryError: CUDA out of memory", Clock())
    assert record.t == dt.datetime(2026, 11, 20, 20, 4, 51, 500000, dt.UTC).timestamp()


def test_a_ray_repeat_is_a_weight() -> None:
    assert read_record(1, "(W pid=1) x [repeated 7x across cluster]", Clock()).repeat == 7


def test_json_logging_carries_level_process_and_time() -> None:
    raw = json.dumps(
        {
            "asctime": "2026-11-20 20:46:31,815",
            "levelname": "ERROR",
            "process": 5,
            "message": "boom",
            "vllm_process_name": "Worker_TP3",
            "exc_info": "Traceback\nValueError: x",
        }
    )
    record = read_record(1, raw, Clock())
    assert (record.level, record.pid, record.process, record.rank, record.headed) == ("ERROR", 5, "Worker_TP3", 3, True)
    assert record.text == "boom\nTraceback\nValueError: x"
    assert record.t == pytest.approx(dt.datetime(2026, 11, 20, 20, 46, 31, 815000, dt.UTC).timestamp())


def test_a_pipe_without_a_service_is_no_envelope() -> None:
    record = read_record(1, "  | ERROR 03-15 01:02:03 [core.py:586] torch.OutOfMemoryError: quoted", Clock())
    assert not record.headed
    assert record.text.startswith("  |")


def test_new_year_is_stepped_over() -> None:
    clock = Clock()
    old = read_record(1, "INFO 12-31 23:59:59 [a.py:1] x", clock).t
    new = read_record(2, "INFO 01-01 00:00:01 [a.py:1] x", clock).t
    assert old is not None and new is not None and new - old == 2


def test_an_outer_stamp_gives_the_year() -> None:
    clock = Clock()
    read_record(1, f"{STAMP} {LINE}", clock)
    t = read_record(2, "INFO 11-20 20:05:00 [a.py:1] x", clock).t
    assert t == dt.datetime(2026, 11, 20, 20, 5, tzinfo=dt.UTC).timestamp()


@given(st.binary(max_size=400))
def test_any_bytes_give_a_record(raw: bytes) -> None:
    record = read_record(1, decode(raw), Clock())
    assert isinstance(record.text, str)
    peel(decode(raw))


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("E0914 07:41:12.200317 1 model_lifecycle.cc:638] failed to load 'qwen' version 3: Internal: ValueError: no such adapter", "ValueError: no such adapter"),
        ("I20260914 07:41:11.002 88 pb_stub.cc:402] Failed to initialize stub: torch.cuda.OutOfMemoryError: CUDA out of memory.", "torch.cuda.OutOfMemoryError: CUDA out of memory."),
        ("I0914 07:41:13.1 1 server.cc:674] all is well: nothing failed", "all is well: nothing failed"),
        ("ERROR 09-14 07:41:13 [a.py:1] ValueError: x", "ERROR 09-14 07:41:13 [a.py:1] ValueError: x"),
    ],
)  # fmt: skip
def test_a_server_in_cpp_quotes_what_failed_in_its_python(line: str, text: str) -> None:
    assert peel(line)[0] == text
