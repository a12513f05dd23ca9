"""A server that stays up while its users suffer, or that computes again what it had: from text to the first cause, with near misses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from oomdoc import diagnose
from verdicts import shows

Verdict = Callable[..., str]


@pytest.fixture
def first(tmp_path: Path) -> Verdict:
    """The cause in the first place of a bundle of these files, "" where nothing is decided."""

    def told(**files: str) -> str:
        for name, text in files.items():
            stem, _, ending = name.rpartition("_")
            (tmp_path / f"{stem}.{ending}").write_text(text)
        with diagnose.analyze(str(tmp_path), diagnose.Options(wording=False)) as analysis:
            report = analysis.report
            return "" if report.verdict == "undecided" else report.diagnoses[0].cause

    return told


# ---- the prefix cache, by what is computed between two moments


def _scrape(day: str, queries: int, hits: int, idle: float, evicted: int) -> str:
    labels = '{model_name="m",engine="0"}'
    return (
        f"# scrape {day}\nvllm:prefix_cache_queries_total{labels} {queries}\nvllm:prefix_cache_hits_total{labels} {hits}\n"
        f"vllm:kv_cache_usage_perc{labels} 0.31\nvllm:num_requests_running{labels} 4\nvllm:num_requests_waiting{labels} 0\n"
        f"vllm:kv_block_idle_before_evict_seconds_sum{labels} {idle}\nvllm:kv_block_idle_before_evict_seconds_count{labels} {evicted}\n"
    )


def test_hits_stand_still_between_two_scrapes(first: Verdict) -> None:
    files = {"before_prom": _scrape("2026-05-04T08:00:00Z", 9_000_000, 5_400_000, 90_000, 3_000), "after_prom": _scrape("2026-05-04T08:30:00Z", 11_500_000, 5_410_000, 900_000, 31_000)}  # fmt: skip
    assert first(**files) == "prefix-cache-thrash"


def test_near_miss_hits_grow_with_the_queries(first: Verdict) -> None:
    files = {"before_prom": _scrape("2026-05-04T08:00:00Z", 9_000_000, 5_400_000, 90_000, 3_000), "after_prom": _scrape("2026-05-04T08:30:00Z", 11_500_000, 6_800_000, 130_000, 4_000)}  # fmt: skip
    assert first(**files) != "prefix-cache-thrash"


def _prefills(*pairs: tuple[int, int]) -> str:
    return "".join(
        f"[2026-02-03 11:{at // 6:02}:{at % 6}0 DP1 TP0] Prefill batch, #new-seq: 1, #new-token: {new}, #cached-token: {cached}, token usage: 0.21, #running-req: 2, #queue-req: 0,\n"
        for at, (new, cached) in enumerate(pairs)
    )


def test_prompts_as_long_as_before_are_computed_again(first: Verdict) -> None:
    log = _prefills(*((150 + at, 5100) for at in range(15)), *((4600 - at, 640) for at in range(15)))
    text = "Time to first token (median): last week 0.2 s, since the new gateway 1.4 s\n"
    assert first(engine_log=log, mail_txt=text) == "prefix-cache-thrash"


def test_near_miss_other_prompts_find_nothing(first: Verdict) -> None:
    assert first(engine_log=_prefills(*((150 + at, 5100) for at in range(15)), *((380 + at, 64) for at in range(15)))) != "prefix-cache-thrash"  # fmt: skip


_SWEEP = "| tenants | working set (tokens) | cache hit ratio | TTFT median (ms) |\n|---|---|---|---|\n"


def test_hits_end_where_the_set_passes_the_pool(first: Verdict) -> None:
    table = _SWEEP + "| 3 | 90000 | 0.97 | 120 |\n| 5 | 150000 | 0.96 | 125 |\n| 7 | 210000 | 0.02 | 1900 |\n| 9 | 270000 | 0.01 | 1950 |\n"  # fmt: skip
    assert first(sweep_md=table, start_log="GPU KV cache size: 180,224 tokens\n") == "prefix-cache-thrash"


def test_near_miss_hits_end_far_below_the_pool(first: Verdict) -> None:
    table = _SWEEP + "| 3 | 9000 | 0.97 | 120 |\n| 5 | 15000 | 0.96 | 125 |\n| 7 | 21000 | 0.02 | 1900 |\n| 9 | 27000 | 0.01 | 1950 |\n"  # fmt: skip
    assert first(sweep_md=table, start_log="GPU KV cache size: 1,802,240 tokens\n") != "prefix-cache-thrash"


# ---- slow for a reason that is not memory


def test_one_route_is_slow_beside_an_empty_pool(tmp_path: Path) -> None:
    table = "| region | requests | time to first token p50 | failures |\n|---|---|---|---|\n| eu-west | 8100 | 310 ms | 2 |\n| ap-south | 960 | 6.2 s | 118 |\n"
    log = "".join(f"INFO 04-02 10:0{at}:00 [loggers.py:127] Engine 000: Avg prompt throughput: 900.0 tokens/s, Avg generation throughput: 210.0 tokens/s, Running: 5 reqs, Waiting: 0 reqs, GPU KV cache usage: 11.0%, Prefix cache hit rate: 40.0%\n" for at in range(5))  # fmt: skip
    assert shows(tmp_path, {"split.md": table, "vllm.log": log}, "not-memory", "slow-beside-an-empty-pool")


def test_near_miss_more_clients_wait_longer(first: Verdict) -> None:
    table = "| concurrency | time to first token p50 |\n|---|---|\n| 1 | 90 ms |\n| 16 | 310 ms |\n| 64 | 1.9 s |\n"
    log = "".join(f"INFO 04-02 10:0{at}:00 [loggers.py:127] Engine 000: Avg prompt throughput: 900.0 tokens/s, Avg generation throughput: 210.0 tokens/s, Running: 5 reqs, Waiting: 0 reqs, GPU KV cache usage: 11.0%, Prefix cache hit rate: 40.0%\n" for at in range(5))  # fmt: skip
    assert first(split_md=table, vllm_log=log) != "not-memory"


def _fleet(crowded: str, kv: float, others: int) -> str:
    rows = ["timestamp;backend;requests_running;requests_waiting;kv_cache_usage"]
    for at in range(5):
        rows += [f"2026-08-09 16:0{at}:00;{name};{run};{wait};{use}" for name, run, wait, use in (("east-a", others, 0, 0.06), (crowded, 48, 22 + at, kv), ("east-c", others, 0, 0.05))]  # fmt: skip
    return "\n".join(rows) + "\n"


def test_one_backend_of_three_takes_all(first: Verdict) -> None:
    assert first(fleet_csv=_fleet("east-b", 0.37, 5)) == "not-memory"


def test_near_miss_the_crowded_backend_is_full(first: Verdict) -> None:
    assert first(fleet_csv=_fleet("east-b", 0.99, 5)) == "kv-demand-exceeds-pool"


def _clocks(util: int) -> str:
    rows = [
        "timestamp, index, utilization.gpu [%], clocks.sm [MHz], memory.used [MiB], memory.total [MiB], temperature.gpu"
    ]
    rows += [f"2026/06/01 07:{at:02}:00.000, 0, {util if at > 9 else 97} %, {1410 if at < 10 else 420} MHz, 70112 MiB, 81920 MiB, {64 + at}" for at in range(24)]  # fmt: skip
    return "\n".join(rows) + "\n"


def test_a_busy_device_lowers_its_clock(first: Verdict) -> None:
    assert first(gpu_csv=_clocks(98), mail_txt="ITL went from 12 ms to 41 ms at ten past seven\n") == "not-memory"


def test_near_miss_an_idle_device_lowers_its_clock(first: Verdict) -> None:
    assert first(gpu_csv=_clocks(0)) != "not-memory"


def test_media_of_requests_cannot_be_fetched(first: Verdict) -> None:
    log = "".join(
        f"[2026-03-01 05:0{at}:00] Prefill batch, #new-seq: 1, #new-token: 800, #cached-token: 0, token usage: 0.04, #running-req: 1, #queue-req: 0,\n[2026-03-01 05:0{at}:30] ERROR: Request a{at}f failed: httpx.ConnectTimeout: timed out\n"
        for at in range(6)
    )
    assert first(worker_log=log) == "not-memory"


# ---- who else is on the device


def _two_starts(processes: str) -> str:
    return (
        "INFO 07-01 08:00:00 [gpu_model_runner.py:1] Model loading took 14.2000 GiB and 9.1 seconds\nINFO 07-01 08:00:20 [kv_cache_utils.py:1] GPU KV cache size: 310,000 tokens\n"
        "INFO 07-08 08:00:00 [gpu_model_runner.py:1] Model loading took 14.2000 GiB and 8.8 seconds\nINFO 07-08 08:00:20 [kv_cache_utils.py:1] GPU KV cache size: 120,400 tokens\n"
        "$ nvidia-smi --query-compute-apps=pid,process_name,used_gpu_memory --format=csv\npid, process_name, used_gpu_memory [MiB]\n" + processes +
        "$ nvidia-smi --query-gpu=name,memory.used,memory.total --format=csv,noheader\nNVIDIA A100-SXM4-80GB, 72100 MiB, 81920 MiB\n"
    )  # fmt: skip


def test_the_pool_shrank_and_another_process_is_there(first: Verdict) -> None:
    assert first(shell_txt=_two_starts("4100, /usr/bin/python3, 49000 MiB\n7711, python, 23100 MiB\n")) == "gpu-shared"


def test_near_miss_the_pool_shrank_and_nobody_else_is_there(first: Verdict) -> None:
    assert first(shell_txt=_two_starts("4100, /usr/bin/python3, 72000 MiB\n")) != "gpu-shared"


def test_an_id_beside_a_numbered_turn_is_the_conversations(tmp_path: Path) -> None:
    """Each of twelve callers comes back to a cache that has kept nothing but the instructions that all share."""
    rows = ["ts,visit_id,turn,prompt_tokens,cached_tokens,ttft_s,output_tokens"]
    moment = 0
    for turn in range(1, 6):
        for visit in range(12):
            moment += 1
            size = 6000 + 150 * turn + visit
            kept = size - 150 if turn == 2 or (turn > 2 and visit < 3) else 1500
            rows.append(
                f"2026-04-01T10:{moment // 60:02}:{moment % 60:02}Z,v{visit:02},{turn},{size},{kept},{0.3 if kept > 1500 else 3.1},40"
            )
    bundle = tmp_path / "b"
    bundle.mkdir()
    (bundle / "visits.csv").write_text("\n".join(rows) + "\n")
    (bundle / "note.txt").write_text("vllm 0.11.0, one H100, nothing waits and nothing is preempted\n")
    with diagnose.analyze(str(bundle)) as analysis:
        first = analysis.report.diagnoses[0]
    assert first.cause == "prefix-cache-thrash"
    assert first.probability > 0.6
