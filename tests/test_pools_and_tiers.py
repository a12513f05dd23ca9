"""What fills a pool of KV cache, and what its prefixes find there: from text to verdict, with a rival each."""

from __future__ import annotations

from pathlib import Path

import pytest

from verdicts import UP, likely, minute


@pytest.mark.parametrize(("used", "cause"), [(100.0, "kv-demand-exceeds-pool"), (31.0, "not-memory")])
def test_what_filled_the_pool_alone_never_comes_back(tmp_path: Path, used: float, cause: str) -> None:
    """One conversation grows until it is put back and has no room in the empty pool; another engine just stops with room left."""
    log = UP.replace("390,000", "3,840") + "".join(minute(at, 1, 0, used * at / 30) for at in range(10, 31))
    log += "".join(minute(at, 0, 1, 0.0).replace("900.0", "0.0").replace("700.0", "0.0") for at in range(31, 50))
    assert likely(tmp_path, {"vllm.log": log, "note.txt": "After that nobody gets an answer any more.\n"}) == cause


def test_what_a_tier_finds_is_not_the_pool_s(tmp_path: Path) -> None:
    """Blocks are evicted a few seconds after their last use; a cache on the host finds a part of them and hides nothing of it."""
    scrape = (
        "# HELP at 08:{at:02}:00\n"
        'vllm:num_requests_running{{engine="0"}} 24\nvllm:num_requests_waiting{{engine="0"}} 4\nvllm:kv_cache_usage_perc{{engine="0"}} 0.7\n'
        'vllm:prefix_cache_queries_total{{engine="0"}} {asked}\nvllm:prefix_cache_hits_total{{engine="0"}} {own}\n'
        'vllm:external_prefix_cache_queries_total{{engine="0"}} {asked}\nvllm:external_prefix_cache_hits_total{{engine="0"}} {tier}\n'
        'vllm:kv_block_idle_before_evict_seconds_sum{{engine="0"}} {idle}\nvllm:kv_block_idle_before_evict_seconds_count{{engine="0"}} {gone}\n'
        'vllm:kv_block_reuse_gap_seconds_count{{engine="0"}} {again}\n'
    )
    first_one = scrape.format(at=10, asked=9_000_000, own=150_000, tier=3_000_000, idle=20_000, gone=5_000, again=300)
    second = scrape.format(at=15, asked=15_000_000, own=240_000, tier=5_400_000, idle=44_000, gone=13_000, again=380)
    log = UP + "".join(minute(at, 24, 4, 70.0) for at in range(10, 16))
    assert (
        likely(tmp_path, {"vllm.log": log, "metrics-0810.prom": first_one, "metrics-0815.prom": second})
        == "prefix-cache-thrash"
    )


def test_sessions_whose_turns_never_find_their_history(tmp_path: Path) -> None:
    """A sheet of turns in which what the cards found is counted: nothing of what was sent before, or most of it."""
    log = UP + "".join(minute(at, 18, 0, 55.0 + at % 6) for at in range(10, 16))
    head = "session,turn,pod,prompt_tok,gpu_hit_tok,ttft_s\n"
    rows = [(s, t, (s + t) % 3, 20_000 + 4_000 * t) for s in range(3) for t in range(1, 8)]
    for name, found in (("lost", lambda size: 0), ("kept", lambda size: size - 4_000)):
        (tmp_path / name).mkdir()
        sheet = head + "".join(f"s-{s},{t},pod-{pod},{size},{found(size) if t > 1 else 0},{6.1 if name == 'lost' or t == 1 else 0.6}\n" for s, t, pod, size in rows)  # fmt: skip
        (tmp_path / name / "turns.csv").write_text(sheet)
    assert likely(tmp_path / "lost", {"vllm.log": log}) == "prefix-cache-thrash"
    assert likely(tmp_path / "kept", {"vllm.log": log}) == "healthy"
