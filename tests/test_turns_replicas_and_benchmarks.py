"""Turns that find what all share and no more, replicas whose pool is too small for what comes again, a queue that is a benchmark's own:
from text to verdict, with a rival each."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import pytest

from verdicts import likely, tables


def started(pool: int, model: str = "Qwen/Qwen3-8B") -> str:
    return (
        f"INFO 04-11 07:30:02 [core.py:58] Initializing a V1 LLM engine (v0.12.0) with config: model='{model}', dtype=torch.bfloat16, "
        "tensor_parallel_size=1, pipeline_parallel_size=1, data_parallel_size=1, enable_prefix_caching=True\n"
        "INFO 04-11 07:30:40 [gpu_model_runner.py:2392] Model loading took 15.2672 GiB and 9.1 seconds\n"
        f"INFO 04-11 07:31:02 [kv_cache_utils.py:864] GPU KV cache size: {pool:,} tokens\n"
        "INFO:     Application startup complete.\n"
    )


def moment(nth: int, running: int, waiting: int, used: float) -> str:
    return (
        f"INFO 04-11 07:{40 + nth // 6:02}:{nth % 6}5 [loggers.py:123] Engine 000: Avg prompt throughput: 5100.0 tokens/s, "
        f"Avg generation throughput: 2700.0 tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: {used}%, "
        "Prefix cache hit rate: 0.0%\n"
    )


BENCHMARK = (
    "============ Serving Benchmark Result ============\n"
    "Successful requests:                     {done}\n"
    "Benchmark duration (s):                  71.30\n"
    "Total input tokens:                      307200\n"
    "Total generated tokens:                  76800\n"
    "Request throughput (req/s):              8.41\n"
)


def course(*lines: tuple[int, int]) -> str:
    return "".join(moment(nth, running, waiting, min(running, 64) / 5) for nth, (running, waiting) in enumerate(lines))


RUN = ((64, 512), (64, 330), (64, 140), (51, 0), (0, 0))
LATER = ((64, 500), (64, 340), (64, 160), (64, 12), (20, 0), (0, 0))
SWELLING = (
    (64, 90),
    (64, 210),
    (64, 330),
    (64, 290),
    (64, 410),
    (64, 380),
    (64, 300),
    (64, 350),
    (64, 420),
    (64, 390),
    (64, 360),
)


@pytest.mark.parametrize(("lines", "cause"), [((*RUN, *LATER), "healthy"), (SWELLING, None)])
def test_the_queue_of_a_benchmark_is_its_own(tmp_path: Path, lines: tuple[tuple[int, int], ...], cause: str) -> None:
    """What a load generator handed in at once, twice, was worked off each time; a queue that only grows is that of users at a cap, and no health."""
    files = {"server.log": started(390_000) + course(*lines)}
    if cause == "healthy":
        files["bench.txt"] = BENCHMARK.format(done=600)
    assert likely(tmp_path, files) == cause


@pytest.mark.parametrize(
    ("waiting", "cause"), [((2, 3, 0, 1, 4, 2, 3, 1), "healthy"), ((61, 80, 44, 75, 92, 70, 66, 58), None)]
)
def test_what_comes_in_with_the_next_step_is_no_queue(tmp_path: Path, waiting: tuple[int, ...], cause: str) -> None:
    """Two or three in line behind 700 that run, beside a table of layouts of which the best was kept; sixty and more are a queue."""
    log = started(2_100_000) + "".join(moment(nth, 700, many, 44.0) for nth, many in enumerate(waiting))
    layouts = "layout,total_tok_s,note\nTP4 x DP1,3100,\nTP2 x DP2,6900,\nTP1 x DP4,12800,kept\n"
    log = log.replace("data_parallel_size=1", "data_parallel_size=4")
    assert likely(tmp_path, {"vllm.log": log, "layouts.csv": layouts}) == cause


def kept(pool: int, parts: int) -> tuple[str, float]:
    """Nine manuals of 5,000 tokens asked of two replicas in turn, each with a pool of its own that drops the longest unused."""
    pools: list[OrderedDict[int, None]] = [OrderedDict(), OrderedDict()]
    rows, found = ["n,picture_id,replica,prompt_tokens,cached_tokens,ttft_ms"], 0
    for nth in range(160):
        manual = (nth * nth * 7 + nth // 3 * 5) % 9
        replica = manual % parts if parts > 1 else nth % 2
        held = pools[replica]
        hit = manual in held
        held.pop(manual, None)
        held[manual] = None
        while len(held) * 5_000 > pool:
            held.popitem(last=False)
        found += hit
        rows.append(f"{nth + 1},pic-{manual},llm-{replica},{5_040 + nth % 30},{4_992 if hit else 0},{240 + nth % 60 if hit else 1900 + 9 * nth}")  # fmt: skip
    return "\n".join(rows) + "\n", found / 160


@pytest.mark.parametrize(("pool", "cause"), [(22_000, "prefix-cache-thrash"), (60_000, "healthy")])
def test_a_set_that_no_replica_can_keep(tmp_path: Path, pool: int, cause: str) -> None:
    """Every replica is asked for all pictures: what comes again late is computed anew where the pool is smaller than all of them."""
    sheet, rate = kept(pool, 1)
    assert (rate < 0.75) == (cause == "prefix-cache-thrash")
    log = started(pool) + "".join(moment(nth, 4, 0, 61.0) for nth in range(8))
    assert likely(tmp_path, {"llm-0.log": log, "requests.csv": sheet}) == cause


def test_scrapes_of_two_servers_in_turn_are_two_courses(tmp_path: Path) -> None:
    """Each heading says when and of whom: what one found between two scrapes is no difference to the other's."""
    counts = {("a", "09:00:00"): (900_000, 700_000), ("b", "09:00:00"): (800_000, 500_000), ("a", "09:05:00"): (1_000_000, 760_000), ("b", "09:05:00"): (900_000, 530_000)}  # fmt: skip
    (tmp_path / "scrapes.txt").write_text(
        "".join(
            f"# scrape 2026-02-11T{at}Z llm-{server}:8000/metrics (part)\n"
            f'vllm:prefix_cache_queries_total{{engine="0"}} {queries}.0\nvllm:prefix_cache_hits_total{{engine="0"}} {hits}.0\n'
            for (server, at), (queries, hits) in counts.items()
        )
    )
    with tables(tmp_path) as analysis:
        assert analysis.sql("SELECT recent_queries, recent_rate FROM prefix_cache")[1] == [(200_000, 0.45)]


@pytest.mark.parametrize(
    ("column", "cell", "told"),
    [("prefix hits/queries", "52.1 %", ("hit_rate", 0.521)), ("prefix hits", "5210", ("hit_tokens", 5210.0))],
)
def test_hits_of_what_was_looked_up_are_a_rate(tmp_path: Path, column: str, cell: str, told: tuple[str, float]) -> None:
    (tmp_path / "trial.csv").write_text(
        f"router policy,ttft_p50_ms,{column}\nround robin,568,{cell}\nby prefix,434,{cell}\n"
    )
    with tables(tmp_path) as analysis:
        told_of = "SELECT DISTINCT quantity, value FROM trial_figure WHERE quantity LIKE 'hit%'"
        assert analysis.sql(told_of)[1] == [told]


CHATS, SAYS = 14, "Fourteen chats of a support desk, one at a time; every message carries the whole chat so far.\n"


def rounds(keeps: bool) -> str:
    """Six rounds of all chats, each 1,500 tokens longer than the one before behind a beginning of 800 that all share."""
    rows, queries, hits, before = ["round,mean_history_tokens,mean_ttft_s,vllm_prefix_cache_queries_total,vllm_prefix_cache_hits_total"], 0, 0, 0  # fmt: skip
    for nth in range(6):
        asked = CHATS * (4_000 + 1_500 * nth)
        queries, hits = queries + asked, hits + max(before if keeps else 0, (CHATS - (not nth)) * 800)
        rows.append(
            f"{nth + 1},{asked // CHATS},{0.4 if keeps and nth else round(asked / CHATS / 4200, 2)},{queries},{hits}"
        )
        before = asked
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    ("pool", "keeps", "cause"), [(40_000, False, "prefix-cache-thrash"), (260_000, True, "healthy")]
)
def test_rounds_that_find_what_all_share(tmp_path: Path, pool: int, keeps: bool, cause: str) -> None:
    """What every round finds is the same beginning while the chats grow: the pool drops each before it comes again."""
    log = started(pool) + "".join(moment(nth, 1, 0, 24.0) for nth in range(8))
    assert likely(tmp_path, {"vllm.log": log, "rounds.csv": rounds(keeps), "note.md": SAYS}) == cause


@pytest.mark.parametrize(
    ("pool", "keeps", "cause"), [(40_000, False, "prefix-cache-thrash"), (260_000, True, "healthy")]
)
def test_a_sheet_tells_who_comes_back_with_how_much(tmp_path: Path, pool: int, keeps: bool, cause: str) -> None:
    """All histories together are beyond the pool, were asked for four times, and next to nothing but what all share was found.

    The second row is of another server, which stores them all.
    """
    last = rounds(keeps).splitlines()[-1].split(",")
    counters = f"vllm:prefix_cache_queries_total {last[-2]}.0\nvllm:prefix_cache_hits_total {last[-1]}.0\n"
    sheet = f"model,kv_pool_tokens,users,history_tokens,ttft_s\nQwen3-8B,{pool},{CHATS},11500,2.7\nQwen3-4B,310000,{CHATS},11800,0.3\n"
    log = started(pool) + "".join(moment(nth, 1, 0, 24.0) for nth in range(8))
    assert likely(tmp_path, {"vllm.log": log, "sheet.csv": sheet, "metrics.txt": counters}) == cause
