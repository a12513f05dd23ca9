"""What the same requests find in the caches of several servers, before and after others came, and behind a gate: from text to verdict,
with a rival each."""

from __future__ import annotations

import random
from collections import OrderedDict
from pathlib import Path

import pytest

from verdicts import likely, tables


def started(pool: int, more: str = "") -> str:
    return (
        "INFO 05-06 06:10:02 [core.py:58] Initializing a V1 LLM engine (v0.14.0) with config: model='mistralai/Ministral-8B', "
        f"dtype=torch.bfloat16, tensor_parallel_size=1, pipeline_parallel_size=1, enable_prefix_caching=True{more}\n"
        "INFO 05-06 06:10:40 [gpu_model_runner.py:2392] Model loading took 15.2672 GiB and 9.1 seconds\n"
        f"INFO 05-06 06:11:02 [kv_cache_utils.py:864] GPU KV cache size: {pool:,} tokens\n"
        "INFO:     Application startup complete.\n"
    )


def moment(nth: int, *, read: float = 900.0, running: int = 2, waiting: int = 0, used: float = 21.0, hits: float | None = None) -> str:  # fmt: skip
    rate = "" if hits is None else f", Prefix cache hit rate: {hits}%"
    return (
        f"INFO 05-06 09:{nth // 6:02}:{nth % 6}3 [loggers.py:123] Engine 000: Avg prompt throughput: {read} tokens/s, "
        f"Avg generation throughput: 44.0 tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: {used}%{rate}\n"
    )


def served(rounds: int, servers: int, pool: int, by: str) -> tuple[int, int]:
    """Tokens asked for and found where 40 patient files of 3,000 tokens are asked for in a random order, of servers that drop the longest unused."""
    dice = random.Random(7)
    pools: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(servers)]
    found = 0
    for nth in range(rounds):
        file = dice.randrange(40)
        held = pools[file % servers if by == "file" else nth % servers]
        found += file in held
        held.pop(file, None)
        held[file] = None
        while len(held) * 3_000 > pool:
            held.popitem(last=False)
    return rounds * 3_000, found * 3_000


@pytest.mark.parametrize(("pool", "cause"), [(36_000, "prefix-cache-thrash"), (200_000, "healthy")])
def test_one_load_spread_two_ways(tmp_path: Path, pool: int, cause: str) -> None:
    """Dealt in turn every server meets every file, which only a large pool keeps; both sheets look alike but for what was found."""
    rows = ["picker,requests,prompt_tokens,cached_tokens,ttft_mean_ms,tpot_mean_ms"]
    for by in ("in turn", "file"):
        asked, found = served(900, 4, pool, by)
        rows.append(f"{by},900,{asked},{found},{90 + 900 * (1 - found / asked):.0f},21")
    log = started(pool) + "".join(moment(nth) for nth in range(14))
    assert likely(tmp_path, {"server-2.log": log, "pickers.csv": "\n".join(rows) + "\n"}) == cause


@pytest.mark.parametrize(("asked", "cause"), [(40, "prefix-cache-thrash"), (6, "healthy")])
def test_what_the_spread_alone_loses_is_not_evicted(tmp_path: Path, asked: int, cause: str) -> None:
    """A text that is asked for six times and meets eight servers is missed on most of them, with or without room; one of forty times is not."""
    found_once = (asked - 1) / asked
    rows = ["backend,routing,asked_tokens,hit_tokens,ttft_mean_ms"]
    for routing, share in (("random", 0.3), ("session", found_once)):
        rows += [f"e{nth},{routing},{400_000 + 900 * nth},{(400_000 + 900 * nth) * share:.0f},{60 + 700 * (1 - share):.0f}" for nth in range(8)]  # fmt: skip
    log = started(150_000) + "".join(moment(nth) for nth in range(14))
    assert likely(tmp_path, {"e3.log": log, "routing.csv": "\n".join(rows) + "\n"}) == cause


@pytest.mark.parametrize(("lost", "cause"), [(True, "prefix-cache-thrash"), (False, "healthy")])
def test_two_policies_of_what_is_dropped(tmp_path: Path, lost: bool, cause: str) -> None:
    """The engine keeps nothing, a tier beside it does: what is found again under the one policy and not under the other was evicted."""
    rows = ["eviction_policy,step,request,latency_ms,tier_hit_tokens"]
    for policy in ("fifo", "s3-fifo"):
        for step, share in (("fill", 0), ("again", 1), ("after the import", 0 if lost and policy == "fifo" else 1)):
            rows += [f"{policy},{step},card-{card},{300 - 210 * share},{768 * share}" for card in (1, 2, 3)]
    log = started(90_000).replace("enable_prefix_caching=True", "enable_prefix_caching=False") + (
        "INFO 05-06 06:10:01 [utils.py:253] non-default args: {'enable_prefix_caching': False, 'kv_transfer_config': KVTransferConfig(kv_connector='OffloadingConnector')}\n"
    )
    log += "".join(moment(nth, used=0.0) for nth in range(14))
    assert likely(tmp_path, {"vllm.log": log, "steps.csv": "\n".join(rows) + "\n"}) == cause


SAID = "Our {many} playbooks are bots with a voice of their own: {many} bots, each with its own rules of 5,200 tokens, and 300 of chat.\n"


@pytest.mark.parametrize(("many", "cause"), [("60", "prefix-cache-thrash"), ("nine", None)])
def test_a_set_that_a_sentence_counts(tmp_path: Path, many: str, cause: str) -> None:
    """Sixty of 5,200 tokens do not fit 120,000, and are asked for far more than twice without being found; nine fit, and the queue is another's."""
    scrape = (
        'vllm:prefix_cache_queries_total{engine="0"} 9100000.0\nvllm:prefix_cache_hits_total{engine="0"} 190000.0\n'
        'vllm:num_preemptions_total{engine="0"} 0.0\n'
    )
    log = started(120_000) + "".join(
        moment(nth, read=9100, running=17, waiting=30 + nth, used=41.0) for nth in range(14)
    )
    assert likely(tmp_path, {"llm.log": log, "metrics.prom": scrape, "note.txt": SAID.format(many=many)}) == cause


def hours(found_at_night: int, asked_at_night: int) -> str:
    rows = ["at,lookups_tokens,hits_tokens,ttft_p50_ms,preempted"]
    for nth in range(30):
        night = 10 <= nth < 19
        asked, found = (asked_at_night, found_at_night) if night else (30_000, 26_000)
        rows.append(f"23:{nth:02},{asked + 40 * (nth % 7)},{found + 16 * (nth % 5)},{310 if night else 80},0")
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    ("found", "asked", "cause"),
    [(1_100, 120_000, "prefix-cache-thrash"), (26_000, 120_000, "healthy"), (1_100, 9_000, "healthy")],
)
def test_who_pushes_the_others_out_for_a_time(tmp_path: Path, found: int, asked: int, cause: str) -> None:
    """An import of texts that nobody sends twice; beside it the others find what they found, or have gone home."""
    log = started(48_000) + "".join(moment(nth) for nth in range(14))
    assert likely(tmp_path, {"llm.log": log, "by-minute.csv": hours(found, asked)}) == cause


@pytest.mark.parametrize(("running", "waiting", "cause"), [(5, 0, "not-memory"), (256, 0, "healthy")])
def test_a_gate_before_engines_that_have_room(tmp_path: Path, running: int, waiting: int, cause: str) -> None:
    """Thousands wait at the gateway; the engine runs five of the 256 that it may, or all of them."""
    sheet = "variant,p99_ttft_ms,gateway_queue_depth,replicas\ngate on,61000,2140,4\ngate on again,60500,2090,4\n"
    log = started(400_000) + "".join(moment(nth, running=running, waiting=waiting, used=9.0) for nth in range(14))
    told = likely(tmp_path, {"engine.log": log, "runs.csv": sheet})
    assert (told == "not-memory") == (cause == "not-memory")


def mails(times: int) -> str:
    rows = ["nr;host;text_sha256;text_tokens;cached_tokens;ttft_ms;status"]
    rows += [f"{nth};mx-{nth % 2};{(nth % (60 // times)) * 7919:012x};{1_400 + 97 * (nth % (60 // times))};0;{300 + 31 * (nth % (60 // times))};200" for nth in range(60)]  # fmt: skip
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize(("times", "cause"), [(1, "healthy"), (4, "prefix-cache-thrash")])
def test_texts_that_are_sent_once(tmp_path: Path, times: int, cause: str) -> None:
    """Nothing is ever found: of mails that come once there is nothing to find, of fifteen that come again and again there is."""
    said = "The prefix cache never hits anything, 0.0 %. Do we need a larger card?\n"
    log = started(30_000) + "".join(moment(nth, hits=0.0) for nth in range(14))
    assert likely(tmp_path, {"mx.log": log, "mails.csv": mails(times), "question.txt": said}) == cause


def visits(gap: int) -> str:
    rows = ["at,visitor_id,turn,prompt_tokens,cached_tokens,ttft_ms"]
    for turn in range(1, 9):
        for visitor in range(3):
            second = (turn - 1) * gap + visitor * 5
            rows.append(f"{8 + second // 3600:02}:{second // 60 % 60:02}:{second % 60:02},v-{visitor},{turn},{6_000 + 700 * turn + 60 * visitor},0,{1_100 + 90 * turn}")  # fmt: skip
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize(("gap", "cause"), [(40, "not-memory"), (900, "prefix-cache-thrash")])
def test_what_is_computed_while_somebody_is_away(tmp_path: Path, gap: int, cause: str) -> None:
    """At 940 tokens a second 40 s are a tenth of the pool, so nothing was evicted; a quarter of an hour is twice the pool."""
    log = started(400_000) + "".join(moment(nth) for nth in range(14))
    assert likely(tmp_path, {"llm.log": log, "visits.csv": visits(gap)}) == cause


def test_sums_over_requests_are_no_requests(tmp_path: Path) -> None:
    """A row that counts its requests, or has more tokens than any prompt, is a sum of many; a row that numbers them is one."""
    (tmp_path / "a.csv").write_text(
        "method,completed,prompt_tokens,cached_prompt_tokens,ttft_ms\nx,40,90000,100,9\ny,40,90000,80000,3\n"
    )
    (tmp_path / "b.csv").write_text("pod,prompt_tokens,cached_tokens,ttft_ms\na,4000000,100,9\nb,4200000,800000,3\n")
    (tmp_path / "c.csv").write_text("request,prompt_tokens,cached_tokens,ttft_ms\n11,9000,100,9\n12,9000,8000,3\n")
    with tables(tmp_path) as analysis:
        assert analysis.sql("SELECT source, count(*) FROM request GROUP BY source")[1] == [("c.csv", 2)]


def laps(pool: int) -> str:
    """Seven leases of 6,000 to 7,000 tokens in turn, with a question of some other length each time."""
    held: OrderedDict[int, None] = OrderedDict()
    rows = ["pass,lease,prompt_tokens,cached_tokens,ttft_ms"]
    for nth in range(35):
        lease = nth % 7
        cached = 5_984 + 160 * lease if lease in held else 0
        held.pop(lease, None)
        held[lease] = None
        while len(held) * 6_500 > pool:
            held.popitem(last=False)
        size = 6_020 + 160 * lease + nth * 13 % 50
        rows.append(f"{nth // 7 + 1},L{lease},{size},{cached},{80 + (size - cached) // 4}")
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize(("pool", "cause"), [(26_000, "prefix-cache-thrash"), (90_000, "healthy")])
def test_a_text_that_is_asked_something_else_each_time(tmp_path: Path, pool: int, cause: str) -> None:
    """No column is known to say whose the requests are; the one by which their lengths go says which text they are about."""
    log = started(pool) + "".join(moment(nth, running=1) for nth in range(14))
    assert likely(tmp_path, {"llm.log": log, "passes.csv": laps(pool)}) == cause


def policies(slow: float) -> str:
    rows = ["policy,rate_rps,max_concurrency,completed,failed,ttft_mean_ms,ttft_p99_ms,kv_usage_max"]
    for rate, ttft, used in ((50, 120, 0.04), (400, 1_300, 0.5)):
        rows += [f"{policy},{rate},{rate * 8},{rate * 60},0,{ttft + nth * 3 if rate == 400 else ttft * (slow if nth else 1):.0f},{ttft * 3},{used}" for nth, policy in enumerate(("in turn", "least busy", "by prefix"))]  # fmt: skip
    return "\n".join(rows) + "\n"


def test_ways_that_differ_in_nothing_under_the_same_load(tmp_path: Path) -> None:
    """Ten times the rate takes ten times as long, whichever way the requests go, and one or two stand in line for the next step."""
    log = started(2_000_000) + "".join(
        moment(nth, running=96 + nth % 9, waiting=nth % 3, used=5.0) for nth in range(20)
    )
    assert likely(tmp_path, {"engine.log": log, "policies.csv": policies(1.0)}) == "healthy"
