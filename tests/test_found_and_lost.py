"""Prefixes that are found, and lost: from text to verdict, each beside its near miss."""

from __future__ import annotations

from pathlib import Path

import pytest

from verdicts import likely

START = """(APIServer pid=1) INFO 03-02 06:58:11 [utils.py:325] non-default args: {'model': '/m/chat-14b', 'max_model_len': 65536}
(EngineCore_DP0 pid=88) INFO 03-02 07:00:37 [kv_cache_utils.py:1305] GPU KV cache size: 262,144 tokens
(EngineCore_DP0 pid=88) INFO 03-02 07:00:37 [kv_cache_utils.py:1310] Maximum concurrency for 65,536 tokens per request: 4.00x
(APIServer pid=1) INFO 03-02 07:00:51 [launcher.py:46] Application startup complete.
"""


def _series(found: int, more: int) -> str:
    """Twelve minutes in which 9 of 10 tokens are found, then twelve with `more` looked up a minute and `found` found."""
    lines, queries, hits = [], 5_000_000, 4_500_000
    for minute in range(25):
        lines.append(f"06:{minute + 10}:00;2;0;0.19;{queries};{hits}")
        queries += 200_000 if minute < 12 else 200_000 + more
        hits += 180_000 if minute < 12 else found
    head = "time;vllm:num_requests_running;vllm:num_requests_waiting;vllm:kv_cache_usage_perc;vllm:prefix_cache_queries_total;vllm:prefix_cache_hits_total"
    return "\n".join([head, *lines]) + "\n"


@pytest.mark.parametrize(
    ("found", "more", "cause"),
    [
        (60_000, 150_000, "prefix-cache-thrash"),
        (180_000, 500_000, "healthy"),  # others came that send nothing twice
        (60_000, -130_000, "healthy"),  # those who sent the same again have left
        (170_000, 0, "healthy"),
    ],
)
def test_fewer_are_found_of_more(found: int, more: int, cause: str, tmp_path: Path) -> None:
    (tmp_path / "vllm.log").write_text(START)
    (tmp_path / "series.csv").write_text(_series(found, more))
    assert likely(tmp_path) == cause


BLOCK = "(EngineCore pid=88) INFO 03-02 07:00:31 [interface.py:773] Setting attention block size to {} tokens to ensure that attention page size is >= mamba page size.\n"


STAT = "(APIServer pid=1) INFO 03-02 09:{:02}:10 [loggers.py:248] Engine 000: Avg prompt throughput: 900.0 tokens/s, Avg generation throughput: 214.0 tokens/s, Running: 4 reqs, Waiting: 0 reqs, GPU KV cache usage: 7.{}%, Prefix cache hit rate: 0.0%\n"


def _counters(prompts: int, tokens: int) -> str:
    return "".join(
        f'{name}{{engine="0",model_name="m"}} {value}\n'
        for name, value in (
            ("vllm:prefix_cache_queries_total", prompts * tokens),
            ("vllm:prefix_cache_hits_total", 0),
            ("vllm:prompt_tokens_total", prompts * tokens),
            ("vllm:generation_tokens_total", prompts * 50),
            ("vllm:request_prompt_tokens_sum", prompts * tokens),
            ("vllm:request_prompt_tokens_count", prompts),
            ("vllm:num_requests_waiting", 0),
            ("vllm:num_preemptions_total", 0),
        )
    )


@pytest.mark.parametrize(
    ("block", "prompts", "tokens", "cause"),
    [
        (528, 40_000, 210, "healthy"),  # nothing of 210 tokens fills a block of 528
        (16, 40_000, 210, "prefix-cache-thrash"),
        (16, 500, 210, "healthy"),  # 130,000 tokens in a pool of 262,144: nothing was evicted yet
    ],
)
def test_what_is_never_kept_or_never_evicted_is_not_lost_by_eviction(block: int, prompts: int, tokens: int, cause: str, tmp_path: Path) -> None:  # fmt: skip
    (tmp_path / "vllm.log").write_text(BLOCK.format(block) + START + "".join(STAT.format(n, n) for n in range(8)))
    (tmp_path / "metrics.txt").write_text(_counters(prompts, tokens))
    (tmp_path / "mail.txt").write_text(
        "The same instructions stand before every question, and the prefix cache hit rate has been 0 % all day.\n"
    )
    assert likely(tmp_path) == cause


def _dossiers(names: int) -> str:
    """Three rounds over so many texts of 5,000 tokens; only the beginning that all share is found."""
    rows, clock = [], 0
    for _ in range(3):
        for name in range(names):
            clock += 2
            rows.append(
                f"2026-03-02T08:{clock // 60 % 60:02}:{clock % 60:02}Z,{name + 1},{5200 + name % 40},210,150,1.4"
            )
    return "time,document_id,prompt_tokens,cached_tokens,output_tokens,ttft_s\n" + "\n".join(rows) + "\n"


@pytest.mark.parametrize(("names", "cause"), [(90, "prefix-cache-thrash"), (30, None)])
def test_texts_that_come_round_are_lost_where_they_pass_the_pool(names: int, cause: str | None, tmp_path: Path) -> None:
    (tmp_path / "vllm.log").write_text(START)
    (tmp_path / "requests.csv").write_text(_dossiers(names))
    assert (likely(tmp_path) == "prefix-cache-thrash") == (cause is not None)
