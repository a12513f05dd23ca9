"""Prompts that come again and are computed anew: a sheet of requests, and scrapes of several servers in one file."""

from __future__ import annotations

from pathlib import Path

import pytest

from oomdoc import diagnose

SCROLLS = {"vita": 18432, "annals": 18101, "psalter": 18690, "herbal": 17995}
SHARED = 3072


def _sheet(found: bool, output: bool) -> str:
    lines = ["lap,scroll,prompt_tokens,cached_tokens,ttft_ms" + (",completion_tokens" if output else "")]
    for lap in range(1, 4):
        for scroll, size in SCROLLS.items():
            cached = (size // 16 * 16 if found else SHARED) if lap > 1 else SHARED if scroll != "vita" else 0
            lines.append(
                f"{lap},{scroll},{size},{cached},{900 if cached > SHARED else 9000}" + (",200" if output else "")
            )
    return "\n".join(lines) + "\n"


def _log(pool: int) -> str:
    return (
        "INFO 06-29 10:04:01 [gpu_worker.py:423] Available KV cache memory: 9.35 GiB\n"
        f"INFO 06-29 10:04:01 [kv_cache_utils.py:1316] GPU KV cache size: {pool:,} tokens\n"
        "INFO:     Application startup complete.\n"
        "INFO 06-29 10:11:50 [loggers.py:259] Engine 000: Avg prompt throughput: 2341.2 tokens/s, Avg generation throughput: 14.9 tokens/s, "
        "Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 40.2%, Prefix cache hit rate: 20.4%\n"
    )


def _first(folder: Path) -> str:
    with diagnose.analyze(str(folder)) as analysis:
        return str(analysis.to_dict()["diagnoses"][0]["cause"])


@pytest.mark.parametrize("output", [False, True])
def test_a_set_larger_than_the_pool_is_computed_anew_each_time(tmp_path: Path, output: bool) -> None:
    (tmp_path / "laps.csv").write_text(_sheet(False, output))
    (tmp_path / "vllm.log").write_text(_log(52000))
    assert _first(tmp_path) == "prefix-cache-thrash"


def test_near_miss_a_set_that_fits_the_pool_is_found(tmp_path: Path) -> None:
    (tmp_path / "laps.csv").write_text(_sheet(True, False))
    (tmp_path / "vllm.log").write_text(_log(72000))
    assert _first(tmp_path) == "healthy"


def _scrape(asked: int, found: int) -> str:
    return "".join(
        f'==> llm-{name} <==\nvllm:prefix_cache_queries_total{{engine="0"}} {asked + less}\nvllm:prefix_cache_hits_total{{engine="0"}} {found + less // 2}\n'
        f'vllm:num_requests_running{{engine="0"}} 3\nvllm:kv_cache_usage_perc{{engine="0"}} 0.2\n'
        for name, less in (("0", 90_000), ("1", 40_000), ("2", 70_000))
    )


@pytest.mark.parametrize(("late", "first"), [(2_650_000, True), (2_150_000, False)])
def test_servers_that_find_what_they_computed_anew_at_another_routing(tmp_path: Path, late: int, first: bool) -> None:
    for clock, asked, found in (
        ("08h10", 9_000_000, 1_000_000),
        ("08h20", 10_000_000, 1_100_000),
        ("17h10", 19_000_000, 1_900_000),
        ("17h20", 20_000_000, late),
    ):
        (tmp_path / f"scrape_{clock}.txt").write_text(_scrape(asked, found))
    assert (_first(tmp_path) == "prefix-cache-thrash") is first
