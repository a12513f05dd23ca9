"""Units that were ended, memory beside its load, pools that nobody holds, and those who come back: from text to verdict, each beside its near miss."""

from __future__ import annotations

from pathlib import Path

import pytest

from verdicts import likely


def _unit(name: str, run: str) -> str:
    return (
        f"× {name}.service - service\n     Active: failed (Result: oom-kill) since Tue 2026-06-02 10:01:30 UTC; 3min ago\n"
        f"   Main PID: 881 (code=killed, signal=KILL)\n     Memory: 31.9G (max: 32.0G available: 0B peak: 32.0G)\n             └─ExecStart={run}\n"
    )


_SHOWN = "Id=inference.service\nResult=oom-kill\nExecStart={ path=/opt/v/bin/vllm ; argv[]=vllm serve m --port 1 }\nMemoryMax=68719476736\nMemoryPeak=68719407104\n"
_LOADING = (
    "INFO 06-02 10:00:02 [api_server.py:100] vLLM API server version 0.11.0\nINFO 06-02 10:00:09 [gpu_model_runner.py:90] Starting to load model m...\n"
    "Loading safetensors checkpoint shards:  40% Completed | 12/30 [01:00<01:30,  5.00s/it]\n"
)
_SERVING = "".join(f"INFO 06-02 10:{m:02}:00 [loggers.py:118] Engine 000: Avg prompt throughput: 200.0 tokens/s, Avg generation throughput: 90.0 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 9.0%, Prefix cache hit rate: 20.0%\n" for m in range(0, 40, 5))  # fmt: skip


@pytest.mark.parametrize(
    ("status", "log", "cause"),
    [
        (_unit("llm-chat", "/usr/bin/vllm serve m"), _LOADING, "host-memory-exhausted"),
        (_SHOWN, _LOADING, "host-memory-exhausted"),
    ],
)
def test_a_unit_that_was_ended_has_an_owner(tmp_path: Path, status: str, log: str, cause: str) -> None:
    assert likely(tmp_path, status__txt=status, vllm__log=log) == cause


def test_another_unit_of_the_host(tmp_path: Path) -> None:
    status = _unit("redis", "/usr/bin/redis-server")
    assert likely(tmp_path, status__txt=status, vllm__log=_SERVING) != "host-memory-exhausted"


def _evicted(what: str, pod: str) -> str:
    return (
        "LAST SEEN   TYPE      REASON    OBJECT        MESSAGE\n"
        f"4m          Warning   Evicted   pod/{pod}     The node was low on resource: {what}. Threshold quantity: 100Mi, available: 60Mi.\n"
        f"4m          Normal    Killing   pod/{pod}     Stopping container main\n"
    )


def test_an_eviction_ends_a_life(tmp_path: Path) -> None:
    assert likely(tmp_path, events__txt=_evicted("memory", "vllm-0"), vllm__log=_SERVING) == "host-memory-exhausted"


@pytest.mark.parametrize("events", [_evicted("ephemeral-storage", "vllm-0"), _evicted("memory", "batch-etl-7")])
def test_another_eviction_does_not(tmp_path: Path, events: str) -> None:
    assert likely(tmp_path, events__txt=events, vllm__log=_SERVING) != "host-memory-exhausted"


def _matrix(grow: float, name: str) -> str:
    values = [f'[{1780000000 + 3600 * k}, "{int((6 + grow * (k if k < 10 else max(9, k - 4))) * 2**30)}"]' for k in range(30)]  # fmt: skip
    load = [f'[{1780000000 + 3600 * k}, "{0 if 10 <= k < 14 else 9}"]' for k in range(30)]
    return (
        '{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"' + name + '","groupname":"api","memtype":"resident"},"values":['
        + ",".join(values) + ']},{"metric":{"panel":"requests_per_s"},"values":[' + ",".join(load) + "]}]}}"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (_matrix(0.7, "namedprocess_namegroup_memory_bytes"), "memory-leak"),
        (_matrix(1.9, "process_resident_memory_bytes"), "memory-leak"),
        (_matrix(0.0, "process_resident_memory_bytes"), "healthy"),
    ],
)
def test_a_pause_without_traffic_gives_nothing_back(tmp_path: Path, text: str, cause: str) -> None:
    assert likely(tmp_path, query__json=text) == cause


def _waves(leak: float) -> str:
    loads = [4, 8, 16, 24, 30, 24, 16, 8, 4] * 4
    rows = [
        f"{6 + k // 24:02}.05.2026 {k % 24:02}:00;{3.0 + 0.1 * n + leak * k:.2f};{n}".replace(".", ",").replace(
            ",05,2026", ".05.2026"
        )
        for k, n in enumerate(loads)
    ]
    return "Zeitpunkt;RSS Server (GiB);Anfragen/s\n" + "\n".join(rows) + "\n"


@pytest.mark.parametrize(("leak", "cause"), [(0.0, "healthy"), (0.3, "memory-leak")])
def test_memory_at_equal_load(tmp_path: Path, leak: float, cause: str) -> None:
    assert likely(tmp_path, verlauf__csv=_waves(leak)) == cause


def _nights(held: list[float], queue: int) -> str:
    parts = []
    for day, share in enumerate(held):
        parts.append(f"# 2026-03-{10 + day}T02:30:00Z\nvllm:num_requests_running 0\nvllm:num_requests_waiting 0\nvllm:kv_cache_usage_perc {share}\nvllm:num_preemptions_total 0\nvllm:request_success_total {900 * (day + 1)}\n")  # fmt: skip
    parts.append(f"# 2026-03-{10 + len(held)}T15:00:00Z\nvllm:num_requests_running 3\nvllm:num_requests_waiting {queue}\nvllm:kv_cache_usage_perc 0.99\nvllm:num_preemptions_total 70\nvllm:request_success_total 9000\n")  # fmt: skip
    return "".join(parts)


@pytest.mark.parametrize(
    ("held", "cause"),
    [
        ([0.09, 0.22, 0.41, 0.55], "memory-leak"),
        ([0.2, 0.31, 0.4, 0.52, 0.66], "memory-leak"),
        ([0.0, 0.0, 0.0, 0.0], "kv-demand-exceeds-pool"),  # empty at each pause
    ],
)
def test_a_pool_that_nobody_holds(tmp_path: Path, held: list[float], cause: str) -> None:
    assert likely(tmp_path, scrapes__prom=_nights(held, 30)) == cause


def _tenants(rates: dict[str, float], name: str) -> str:
    return f"| {name} | cached token share | TTFT p50 (s) |\n|---|---|---|\n" + "".join(f"| {n} | {rate} | {0.9 - 0.8 * rate:.2f} |\n" for n, rate in rates.items())  # fmt: skip


def test_a_sweep_of_those_who_take_turns(tmp_path: Path) -> None:
    text = _tenants({"6": 0.93, "9": 0.92, "10": 0.02, "14": 0.02}, "documents")
    assert likely(tmp_path, table__md=text) == "prefix-cache-thrash"


@pytest.mark.parametrize("rates", [{"6": 0.93, "9": 0.92, "20": 0.9}, {"1": 0.9, "50": 0.3}])
def test_a_sweep_that_loses_nothing_or_says_little(tmp_path: Path, rates: dict[str, float]) -> None:
    assert likely(tmp_path, table__md=_tenants(rates, "sessions")) != "prefix-cache-thrash"


def _counters(hits: list[int]) -> str:
    return "".join(f'# {9 + k}:00\nvllm:prefix_cache_queries_total{{engine="0"}} {3_000_000 * (k + 1)}\nvllm:prefix_cache_hits_total{{engine="0"}} {sum(hits[: k + 1])}\nvllm:num_requests_waiting{{engine="0"}} 0\nvllm:kv_cache_usage_perc{{engine="0"}} 0.1\n' for k in range(len(hits)))  # fmt: skip


def test_counters_of_untimed_scrapes_are_compared(tmp_path: Path) -> None:
    assert likely(tmp_path, m__prom=_counters([2_800_000, 2_800_000, 9_000])) == "prefix-cache-thrash"
    assert likely(tmp_path, m__prom=_counters([2_800_000, 2_800_000, 2_700_000])) != "prefix-cache-thrash"


def _turns(cached: float, people: int) -> str:
    rows = [f"{turn * 120 + who * 3},s{who},{4000 + 300 * turn},{500 + int(cached * (3500 + 300 * turn)) if turn else 500},400" for turn in range(6) for who in range(people)]  # fmt: skip
    return "t_s,session,prompt_tokens,cached_tokens,ttft_ms\n" + "\n".join(rows) + "\n"


_POOL = "(EngineCore_DP0 pid=9) INFO 06-02 09:00:00 [kv_cache_utils.py:1307] GPU KV cache size: 90,112 tokens\n"


@pytest.mark.parametrize(
    ("cached", "people", "thrash"), [(0.0, 40, True), (0.05, 30, True), (0.9, 40, False), (0.9, 10, False)]
)
def test_who_comes_back_finds_his_own_or_not(tmp_path: Path, cached: float, people: int, thrash: bool) -> None:
    found = likely(tmp_path, turns__csv=_turns(cached, people), vllm__log=_POOL + _SERVING)
    assert (found == "prefix-cache-thrash") is thrash


def _clocked(tokens: int, at_once: int) -> str:
    free, rows = [0.0] * at_once, []
    for k in range(80):
        begin = 3.0 * k
        lane = min(range(at_once), key=lambda n: free[n])
        first = max(begin + 1, free[lane])
        free[lane] = first + 30
        clock = [f"08:{int(s) // 60:02}:{s % 60:05.2f}" for s in (begin, first, first + 30)]
        rows.append(",".join(clock) + f",{tokens},200")
    return "ankunft,erstes_token,ende,eingabe_tokens,ausgabe_tokens\n" + "\n".join(rows) + "\n"


_BLOCKS = 'vllm:cache_config_info{block_size="16",num_gpu_blocks="6250",gpu_memory_utilization="0.9"} 1.0\n'


@pytest.mark.parametrize(("tokens", "at_once", "demand"), [(24_000, 4, True), (31_000, 3, True), (9_000, 4, False)])
def test_what_runs_fills_the_pool_or_leaves_room(tmp_path: Path, tokens: int, at_once: int, demand: bool) -> None:
    found = likely(tmp_path, anfragen__csv=_clocked(tokens, at_once), info__prom=_BLOCKS)
    assert (found == "kv-demand-exceeds-pool") is demand


def test_page_locked_memory_in_a_stack(tmp_path: Path) -> None:
    log = (
        "INFO 06-02 09:00:00 [core.py:210] init engine (profile, create kv cache, warmup model) took 40.0 seconds\n"
        'ERROR 06-02 09:10:00 [core.py:844]   File "/v/worker.py", line 80, in offload\n'
        "ERROR 06-02 09:10:00 [core.py:844]     self.host = torch.empty(n, dtype=torch.uint8, device='cpu', {pin})\n"
        "ERROR 06-02 09:10:00 [core.py:844] RuntimeError: CUDA error: out of memory\n"
    )
    assert likely(tmp_path, a__log=log.replace("{pin}", "pin_memory=True")) == "host-memory-exhausted"
    assert likely(tmp_path, a__log=log.replace("device='cpu', {pin}", "device='cuda'")) != "host-memory-exhausted"
