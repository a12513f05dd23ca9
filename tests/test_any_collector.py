"""Whatever stands before a record, and whatever a collector, a shell or a notebook makes of it: the same failure is told.

And whose it is: which device, which process, which life, which of two failures.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from verdicts import analysed

REPLAYS_ANEW = True

V1 = (
    "(APIServer pid=1) INFO 04-21 07:20:20 [utils.py:233] vLLM API server version 0.18.1",
    "(EngineCore pid=288) INFO 04-21 07:20:29 [core.py:101] Initializing a V1 LLM engine (v0.18.1) with config: model='acme/chat-7b', tensor_parallel_size=1",
    "(EngineCore pid=288) INFO 04-21 07:21:29 [gpu_model_runner.py:4000] Model loading took 14.25 GiB memory and 12.0 seconds",
    "(EngineCore pid=288) ERROR 04-21 07:22:33 [core.py:1070] EngineCore failed to start.",
    "(EngineCore pid=288) ERROR 04-21 07:22:33 [core.py:1070] RuntimeError: Data processing error: IO Error: No space left on device (os error 28)",
    "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}",
)
V0 = (
    "INFO 04-21 07:20:20 api_server.py:712] vLLM API server version 0.6.3.post1",
    "INFO 04-21 07:20:29 llm_engine.py:237] Initializing an LLM engine (v0.6.3.post1) with config: model='acme/chat-7b', tensor_parallel_size=1",
    "INFO 04-21 07:21:39 model_runner.py:1071] Loading model weights took 14.2487 GB",
    "Traceback (most recent call last):",
    "RuntimeError: Data processing error: IO Error: No space left on device (os error 28)",
    "RuntimeError: Engine process failed to start",
)
STAMP = "2026-04-21T07:20:30"
KNOWN: dict[str, Callable[[str], str]] = {
    "stern": lambda line: f"chat-7d9f8b6c5-x2x9q vllm {line}",
    "stern of a set": lambda line: f"chat-0 vllm {line}",
    "swarm": lambda line: f"llm_vllm.1.k3j2h1g0f9e8@gpu01    | {line}",
    "pm2": lambda line: f"0|vllm  | {line}",
    "foreman": lambda line: f"07:20:30 vllm.1   | {line}",
    "short-full": lambda line: f"Tue 2026-04-21 07:20:30 UTC gpuhost vllm[881]: {line}",
    "short-unix": lambda line: f"1776756030.123456 gpuhost vllm[881]: {line}",
    "short-monotonic": lambda line: f"[ 8123.000123] gpuhost vllm[881]: {line}",
    "grep": lambda line: f"vllm.log:120:{line}",
    "azure": lambda line: json.dumps({"TimeStamp": STAMP, "Log": line}),
    "nomad": lambda line: json.dumps({"@level": "info", "@message": line, "@timestamp": f"{STAMP}Z"}),
    "elastic": lambda line: json.dumps({"_source": {"@timestamp": f"{STAMP}Z", "message": line}}),
}
"""Envelopes that are taken off, so that lines without a head of their own are read too."""
UNKNOWN: dict[str, Callable[[str], str]] = {
    "aws logs tail": lambda line: f"{STAMP}.123000+00:00 ecs/coder/0123456789abcdef {line}",
    "fly": lambda line: f"{STAMP}Z app[148e21a2f04389] ord [info]{line}",
    "cloud logging": lambda line: f"{STAMP}.123456789Z  chat-7d9f8b6c5-x2x9q  {line}",
    "kubetail": lambda line: f"[chat-7d9f8b6c5-x2x9q vllm] {line}",
    "parallel": lambda line: f"node07\t{line}",
    "pdsh": lambda line: f"gpu-node07: {line}",
    "numbered": lambda line: f"120  {line}",
    "supervisor": lambda line: f"2026-04-21 07:20:30,123 DEBG 'vllm' stdout output: {line}",
    "of nobody": lambda line: f"~~ house 7 ~~ {line}",
}
"""Of these nothing is known: a record of the engine is found in the line."""


def told(root: Path, files: dict[str, str], *queries: str) -> list[Any]:
    """What some queries answer about a bundle, and last its first cause."""
    for name, text in files.items():
        (root / name).write_text(text, encoding="utf-8")
    with analysed(root) as analysis:
        answers = [analysis.sql(query)[1] for query in queries]
        first = analysis.report.diagnoses[0].cause if analysis.report.diagnoses else analysis.report.verdict
    return [*answers, first]


SAID = "SELECT exception, kind FROM log_error WHERE kind <> 'echo'"


@pytest.mark.parametrize("name", [*KNOWN, *UNKNOWN])
def test_an_error_is_read_behind_whatever_a_collector_puts_first(name: str, tmp_path: Path) -> None:
    wrap = {**KNOWN, **UNKNOWN}[name]
    plain, wrapped = tmp_path / "plain", tmp_path / "wrapped"
    for root, lines in ((plain, V1), (wrapped, tuple(wrap(line) for line in V1))):
        root.mkdir()
        (root / "server.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    queries = (
        SAID,
        "SELECT name FROM milestone ORDER BY name",
        "SELECT name, value FROM engine_figure",
        "SELECT kind FROM source",
    )
    assert told(wrapped, {}, *queries) == told(plain, {}, *queries)


@pytest.mark.parametrize("name", KNOWN)
def test_a_line_without_a_head_is_read_behind_an_envelope_that_is_known(name: str, tmp_path: Path) -> None:
    text = "\n".join(KNOWN[name](line) for line in V0) + "\n"
    said, first = told(tmp_path, {"server.log": text}, SAID)
    assert said == [("RuntimeError", "missing-file")] and first == "not-memory"


def test_what_a_person_quotes_behind_a_bar_is_no_record(tmp_path: Path) -> None:
    said, _ = told(tmp_path, {"note.txt": f"they wrote:\n  | {V1[4]}\nand nothing else came\n"}, SAID)
    assert said == []


@pytest.mark.parametrize("kept", [24, 27, 31])
def test_a_message_that_was_cut_is_known_by_its_beginning(kept: int, tmp_path: Path) -> None:
    cut = "ValueError: Free memory on device (20.0/47.4 GiB)"[:kept]
    lines = [*V1[:2], f"(EngineCore pid=288) ERROR 04-21 07:20:33 [core.py:1070] {cut}", V1[5]]
    checks, _ = told(tmp_path, {"server.log": "\n".join(lines) + "\n"}, "SELECT DISTINCT name FROM startup_check")
    assert checks == [("free-memory",)]


# ---- notebooks


def test_what_the_cells_of_a_notebook_printed_is_a_log(tmp_path: Path) -> None:
    log = [
        "INFO 11-18 13:22:07 [utils.py:328] non-default args: {'gpu_memory_utilization': 0.3, 'model': 'acme/chat-7b'}",
        "(EngineCore_DP0 pid=41) INFO 11-18 13:22:17 [core.py:76] Initializing a V1 LLM engine (v0.10.2) with config: model='acme/chat-7b', tensor_parallel_size=1",
        "(EngineCore_DP0 pid=41) INFO 11-18 13:22:28 [gpu_model_runner.py:2392] Model loading took 13.5 GiB and 6.9 seconds",
        "(EngineCore_DP0 pid=41) INFO 11-18 13:23:11 [gpu_worker.py:298] Available KV cache memory: -0.71 GiB",
        "(EngineCore_DP0 pid=41) ERROR 11-18 13:23:11 [core.py:718] ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
    ]
    cell = {
        "cell_type": "code", "execution_count": 4, "metadata": {}, "source": ["llm = LLM(model='acme/chat-7b', gpu_memory_utilization=0.3)\n"],
        "outputs": [{"name": "stderr", "output_type": "stream", "text": [line + "\n" for line in log]}],
    }  # fmt: skip
    book = json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)
    checks, first = told(tmp_path, {"try.ipynb": book}, "SELECT name, line FROM startup_check")
    assert first == "memory-utilization-too-low"
    [(name, line)] = checks
    assert name == "no-kv-blocks" and "No available memory" in book.split("\n")[line - 1], "a line keeps its number"


# ---- /dev/shm and signals

SERVED = "\n".join([*V1[:3], "(APIServer pid=1) INFO:     Application startup complete."]) + "\n"


def test_dev_shm_is_followed_behind_stamps(tmp_path: Path) -> None:
    plain = "".join(f"2026-04-21T08:0{at}:00Z shm 131072 {20_000 * (at + 1)} 1000 50% /dev/shm\n" for at in range(5))
    keyed = "".join(
        f"2026-04-21 08:0{at}:00 /dev/shm in vl: size=131072K used={20_000 * (at + 1)}K avail=1K\n" for at in range(5)
    )
    for name, text in (("plain", plain), ("keyed", keyed)):
        root = tmp_path / name
        root.mkdir()
        rows, _ = told(root, {"server.log": SERVED, "df.txt": text}, "SELECT t, bytes FROM process_memory WHERE resource = 'shm' ORDER BY t")  # fmt: skip
        assert [size for _, size in rows] == [20_480_000 * (at + 1) for at in range(5)] and all(t for t, _ in rows)


@pytest.mark.parametrize(
    ("line", "whose"),
    [
        ('Apr 21 07:30:02 host kernel: audit: type=1701 audit(1776756602.650:41): auid=1 uid=0 gid=0 ses=1 subj=unconfined pid=288 comm="VLLM::EngineCor" exe="/usr/bin/python3.12" sig=7 res=1', "own"),
        ('Apr 21 07:30:02 host kernel: audit: type=1701 audit(1776756602.650:41): auid=1 uid=0 gid=0 ses=1 subj=unconfined pid=77 comm="thumbnailer" exe="/usr/bin/thumbnailer" sig=7 res=1', "unknown"),
    ],
)  # fmt: skip
def test_a_signal_in_the_kernel_s_audit_is_the_engine_s_by_its_name(line: str, whose: str, tmp_path: Path) -> None:
    bonds, _ = told(tmp_path, {"server.log": SERVED, "kernel.txt": f"{line}\n" * 2}, "SELECT DISTINCT whose FROM relation WHERE of_table = 'host_event'")  # fmt: skip
    assert bonds == [(whose,)]


# ---- calls


def test_calls_in_a_writer_s_own_words(tmp_path: Path) -> None:
    text = "".join(
        f"[21/Apr/2026:07:4{at}:00 +0000] chat {200 if at else 503} prompt={1000 + at} out=20 6.50s\n"
        for at in range(5)
    )
    rows, _ = told(tmp_path, {"server.log": SERVED, "gateway.log": text}, "SELECT status, input_tokens, output_tokens, latency_s FROM request ORDER BY line")  # fmt: skip
    assert rows == [(200 if at else 503, 1000 + at, 20, 6.5) for at in range(5)]


def test_nginx_says_which_calls_got_no_answer(tmp_path: Path) -> None:
    line = '2026/04/21 07:4{at}:00 [error] 8#8: *12 {what} while reading response header from upstream, client: 10.0.0.7, server: x, request: "POST /v1/chat/completions HTTP/1.1", upstream: "http://10.0.0.9:8000/v1/chat/completions"\n'
    text = "".join(line.format(at=at, what=what) for at, what in enumerate(("upstream timed out (110: Connection timed out)", "recv() failed (104: Connection reset by peer)", "upstream prematurely closed connection")))  # fmt: skip
    rows, _ = told(tmp_path, {"server.log": SERVED, "error.log": text}, "SELECT status FROM request ORDER BY line")
    assert rows == [(504,), (502,), (502,)]


# ---- devices


def test_a_query_without_header_has_the_columns_that_its_command_asked_for(tmp_path: Path) -> None:
    text = "# nvidia-smi --query-gpu=timestamp,index,memory.free,memory.total,memory.used --format=csv,noheader -l 5\n" + "".join(
        f"2026/04/21 07:30:0{at}.100, {gpu}, 40000 MiB, 49140 MiB, {9000 + at} MiB\n" for at in range(3) for gpu in (0, 1)
    )  # fmt: skip
    rows, _ = told(tmp_path, {"server.log": SERVED, "smi.csv": text}, "SELECT gpu, used_bytes >> 20, total_bytes >> 20 FROM gpu_sample ORDER BY line")  # fmt: skip
    assert rows == [(gpu, 9000 + at, 49140) for at in range(3) for gpu in (0, 1)]


@pytest.mark.parametrize(("given", "elsewhere"), [("0", True), ("1", False)])
def test_a_neighbour_on_a_device_that_the_server_was_not_put_on_is_none(given: str, elsewhere: bool, tmp_path: Path) -> None:  # fmt: skip
    compose = f"""services:
  llm:
    image: vllm/vllm-openai:v0.11.2
    command: acme/chat-7b --max-model-len 8192
    deploy:
      resources:
        reservations:
          devices:
            - {{driver: nvidia, device_ids: ["{given}"], capabilities: [gpu]}}
  speech:
    image: registry.example/speech:2
    deploy:
      resources:
        reservations:
          devices:
            - {{driver: nvidia, device_ids: ["1"], capabilities: [gpu]}}
"""
    smi = "index, pid, process_name, used_gpu_memory [MiB]\n1, 4711, /opt/speech/bin/transcriber, 30000 MiB\n"
    rows, counted, _ = told(
        tmp_path, {"server.log": "\n".join(V1) + "\n", "docker-compose.yml": compose, "apps.csv": smi},
        "SELECT foreigner, elsewhere FROM listed_process", "SELECT foreign_processes FROM device",
    )  # fmt: skip
    assert rows == [(True, elsewhere)] and counted == [(0 if elsewhere else 1,)]


# ---- which failure, which life


def test_a_model_that_was_replaced_by_one_that_fails_is_history(tmp_path: Path) -> None:
    def start(model: str, hour: int, *ends: str) -> list[str]:
        return [
            f"(APIServer pid=1) INFO 04-21 {hour:02}:20:20 [utils.py:233] vLLM API server version 0.18.1",
            f"(APIServer pid=1) INFO 04-21 {hour:02}:20:21 [utils.py:261] non-default args: {{'model': '{model}', 'max_model_len': 8192}}",
            f"(EngineCore pid=288) INFO 04-21 {hour:02}:20:29 [core.py:101] Initializing a V1 LLM engine (v0.18.1) with config: model='{model}', tensor_parallel_size=1",
            *(f"(EngineCore pid=288) ERROR 04-21 {hour:02}:21:29 [core.py:1070] {end}" for end in ends),
        ]

    full = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 384.00 MiB. GPU 0 has a total capacity of 23.52 GiB of which 221.00 MiB is free."
    disk = "RuntimeError: Data processing error: IO Error: No space left on device (os error 28)"
    replaced = [*start("acme/chat-30b", 7, full), *start("acme/chat-30b-fp8", 9, disk)]
    came_back = [*replaced, *start("acme/chat-30b", 11, full)]
    kinds = {}
    for name, lines in (("replaced", replaced), ("came back", came_back)):
        root = tmp_path / name
        root.mkdir()
        [[(kind,)], _] = told(root, {"server.log": "\n".join(lines) + "\n"}, "SELECT kind FROM incident LIMIT 1")
        kinds[name] = kind
    assert kinds == {"replaced": "error", "came back": "device-oom"}


def test_a_command_line_that_is_refused_behind_a_server_is_a_start_of_its_own(tmp_path: Path) -> None:
    log = SERVED + (
        "(APIServer pid=1) INFO:     Shutting down\n(APIServer pid=1) INFO:     Application shutdown complete.\n"
        "vllm serve: error: unrecognized arguments: --swap-space 16\n"
    )
    starts, incident, first = told(tmp_path, {"server.log": log}, "SELECT served FROM engine_start ORDER BY first_line", "SELECT kind FROM incident")  # fmt: skip
    assert starts == [(True,), (False,)] and incident == [("error",)] and first == "not-memory"


def test_a_word_of_slurm_about_a_job_is_no_command_line(tmp_path: Path) -> None:
    line = "Dec  8 02:33:09 node3 slurmd[51]: slurmd: error: job 4187 step batch completed with slurm_rc = 0, job_rc = 35072\n"
    errors, _ = told(tmp_path, {"server.log": SERVED, "syslog.txt": line * 2}, "FROM log_error")
    assert errors == []


@pytest.mark.parametrize("starts", [2, 4])
def test_one_start_after_the_other_that_gets_as_far_as_its_cache_is_over(starts: int, tmp_path: Path) -> None:
    lines = [
        line
        for at in range(starts)
        for line in (
            f"(APIServer pid=1) INFO 04-21 0{at}:20:20 [utils.py:233] vLLM API server version 0.18.1",
            f"(EngineCore pid=288) INFO 04-21 0{at}:20:29 [core.py:101] Initializing a V1 LLM engine (v0.18.1) with config: model='acme/chat-7b', tensor_parallel_size=1",
            f"(EngineCore pid=288) INFO 04-21 0{at}:21:49 [gpu_worker.py:300] Available KV cache memory: 2.35 GiB",
        )
    ]
    over, _ = told(tmp_path, {"server.log": "\n".join(lines) + "\n"}, "SELECT count(*) FROM given_up")
    assert over == [(starts - 1 if starts > 2 else 0,)]
