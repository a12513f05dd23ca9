"""Turns of conversations beside the pool, told from text to verdict; and bars of a run that failed."""

from __future__ import annotations

from pathlib import Path

import oomdoc
from verdicts import SIGNS, analysed

START = (
    "INFO 04-11 08:00:02 [core.py:58] Initializing a V1 LLM engine (v0.11.0) with config: model='Qwen/Qwen3-8B', dtype=torch.bfloat16\n"
    "INFO 04-11 08:00:40 [gpu_model_runner.py:2392] Model loading took 15.2683 GiB and 20.1 seconds\n"
    "INFO 04-11 08:01:02 [kv_cache_utils.py:864] GPU KV cache size: {pool:,} tokens\n"
    "INFO:     Application startup complete.\n"
)


def first_of(folder: Path) -> tuple[str, float]:
    with analysed(folder, SIGNS) as analysis:
        first = analysis.report.diagnoses[0]
    return first.cause, first.probability


def conversations(found_when_many: bool) -> str:
    """One caller alone, then six in turn; each adds 400 tokens to its prompt, and all share the first 1,600."""
    rows, clock = ["time,user,turn,prompt_tokens,cached_tokens,completion_tokens,ttft_s"], 0
    for turn in range(10):
        tokens, clock = 9_000 + 400 * turn, clock + 15
        rows.append(
            f"09:{clock // 60:02}:{clock % 60:02},u0,{turn + 1},{tokens},{tokens - 416 if turn else 0},90,{0.2 if turn else 2.9}"
        )
    for turn in range(10):
        for user in range(1, 7):
            tokens, clock = 9_000 + 400 * turn, clock + 5
            found = tokens - 416 if turn and (turn < 4 or found_when_many) else 1_600
            rows.append(
                f"09:{clock // 60:02}:{clock % 60:02},u{user},{turn + 1},{tokens},{found},90,{0.2 if found > 1_600 else 3.1}"
            )
    return "\n".join(rows) + "\n"


def test_many_who_lose_what_one_alone_keeps(tmp_path: Path) -> None:
    """The very first prompt finds nothing, and those after it the beginning that all share: that is no reuse of their own."""
    (tmp_path / "vllm.log").write_text(START.format(pool=64_000))
    (tmp_path / "turns.csv").write_text(conversations(found_when_many=False))
    cause, sure = first_of(tmp_path)
    assert cause == "prefix-cache-thrash" and sure > 0.8
    (tmp_path / "turns.csv").write_text(conversations(found_when_many=True))
    assert first_of(tmp_path)[0] == "healthy"


def calls(folder: Path, pool: int) -> None:
    """Ten calls of one client that is alone; each repeats the one before, and finds 48 tokens of it."""
    (folder / "vllm.log").write_text(START.format(pool=pool))
    rows, asked = ["time,prompt_tokens,cached_tokens,completion_tokens,ttft_s"], 0
    for call in range(10):
        tokens = 21_000 + 700 * call
        asked += tokens
        rows.append(f"09:{call:02}:30,{tokens},48,200,3.{call}")
    (folder / "calls.csv").write_text("\n".join(rows) + "\n")
    text = ""
    for clock, queries, hits in (("08:59:00", 900_000, 720_000), ("09:10:00", 900_000 + asked, 720_480)):
        text += f"# 2026-04-11T{clock}Z\n"
        text += 'vllm:kv_cache_usage_perc{model_name="m"} 0.0\nvllm:num_preemptions_total{model_name="m"} 0.0\n'
        text += f'vllm:prefix_cache_queries_total{{model_name="m"}} {queries}.0\nvllm:prefix_cache_hits_total{{model_name="m"}} {hits}.0\n\n'
    (folder / "metrics.txt").write_text(text)


def test_what_nothing_came_between_was_not_evicted(tmp_path: Path) -> None:
    """The same calls: beside a pool that stores several of them, and beside one that does not store one."""
    calls(tmp_path, pool=120_000)
    cause, sure = first_of(tmp_path)
    assert cause == "not-memory" and sure > 0.8
    calls(tmp_path, pool=20_000)
    assert first_of(tmp_path)[0] == "prefix-cache-thrash"


RUN = (
    "INFO 07-02 22:40:02 llm_engine.py:100] Initializing an LLM engine (v0.5.1) with config: model='Qwen/Qwen1.5-1.8B-Chat', dtype=torch.bfloat16\n"
    "INFO 07-02 22:40:07 model_runner.py:175] Loading model weights took 3.4594 GB\n"
    "INFO 07-02 22:40:08 gpu_executor.py:114] # GPU blocks: 3300, # CPU blocks: 1365\n"
    "Processed prompts:   0%|          | 0/300 [00:00<?, ?it/s]\n"
    "Processed prompts:  12%|#         | 36/300 [00:04<00:30,  8.6it/s]\n"
    "[rank0]: Traceback (most recent call last):\n"
    '[rank0]:   File "/opt/vllm/model_executor/layers/sampler.py", line 90, in forward\n'
    "[rank0]: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.10 GiB. GPU 0 has a total capacity of 15.70 GiB of which "
    "301.25 MiB is free. Including non-PyTorch memory, this process has 15.39 GiB memory in use. Of the allocated memory 14.80 GiB is allocated "
    "by PyTorch, and 80.10 MiB is reserved by PyTorch but unallocated.\n"
)


def test_a_bar_that_is_drawn_once_more_is_no_work_done(tmp_path: Path) -> None:
    """A progress bar draws its last state when it is closed, also behind the error that ended the run."""
    (tmp_path / "run.log").write_text(RUN + "Processed prompts:  12%|#         | 36/300 [00:05<00:36,  7.2it/s]\n")
    with oomdoc.analyze(tmp_path, SIGNS) as analysis:
        report = analysis.report
    assert [engine.outcome for engine in report.engines] == ["died"]
    assert report.diagnoses[0].cause == "prefill-activation-spike"
    (tmp_path / "run.log").write_text(RUN + "Processed prompts: 100%|##########| 300/300 [00:44<00:00,  6.8it/s]\n")
    assert first_of(tmp_path)[0] == "healthy"
