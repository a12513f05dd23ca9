"""From text to verdict: sizes that follow a step, a pool of another rank, what ranks add, idle cards, one memory; each with near misses."""

from __future__ import annotations

from pathlib import Path

import pytest

from verdicts import likely, shows

_LENGTHS = """\
| try | kind | prompt tokens | max_num_batched_tokens | result | message |
|---|---|---|---|---|---|
| 1 | answers | 12000 | 16384 | ok | |
| 2 | scores | 1500 | 16384 | ok | |
| 3 | scores | 6000 | 16384 | crash | Tried to allocate {one} |
| 4 | scores | 12000 | 16384 | crash | Tried to allocate {two} |
| 5 | answers | 3000 | 16384 | ok | |
| 6 | answers | 6000 | 16384 | ok | |
"""
_STEPS = """\
case,what,input tokens,mnbt,outcome,note
a,rank,20000,2048,fine,
b,rank,20000,4096,dead,failed to allocate {one}
c,rank,20000,8192,dead,failed to allocate {two}
d,write,20000,8192,fine,
e,write,4000,8192,fine,
f,rank,900,8192,fine,
"""


@pytest.mark.parametrize(
    ("sheet", "one", "two", "spike"),
    [
        (_LENGTHS, "3.40 GiB", "6.80 GiB", True),
        (_STEPS, "1.20 GiB", "2.40 GiB", True),
        (_LENGTHS, "3.40 GiB", "3.40 GiB", False),  # of one size at any length
    ],
)
def test_what_fails_follows_the_tokens_of_the_step(tmp_path: Path, sheet: str, one: str, two: str, spike: bool) -> None:
    name = "sheet.md" if sheet is _LENGTHS else "sheet.csv"
    files = {name: sheet.format(one=one, two=two), "setup.txt": "vLLM 0.11.2 serves acme/base-8B on one L4\n"}
    assert (likely(tmp_path, files) == "prefill-activation-spike") is spike


_PARTED = """\
INFO 04-11 08:00:01 [utils.py:328] non-default args: {{'model': 'Qwen/Qwen2.5-72B-Instruct', '{layout}_parallel_size': 4}}
(Worker_{tag}0 pid=81) INFO 04-11 08:02:30 [gpu_worker.py:298] Available KV cache memory: {room} GiB
(EngineCore_DP0 pid=70) INFO 04-11 08:02:31 [kv_cache_utils.py:1087] GPU KV cache size: {tokens} tokens
(APIServer pid=1) INFO 04-11 08:30:01 [loggers.py:127] Engine 000: Avg prompt throughput: 200.0 tokens/s, Avg generation throughput: 61.0 tokens/s, Running: 6 reqs, Waiting: 31 reqs, GPU KV cache usage: 98.4%, Prefix cache hit rate: 2.0%
"""


@pytest.mark.parametrize(
    ("layout", "tag", "room", "tokens", "another"),
    [
        ("pipeline", "PP", "11.40", "31,200", True),
        ("tensor", "TP", "14.80", "50,016", True),
        ("tensor", "TP", "3.82", "50,016", False),  # the pool takes what the rank has
    ],
)  # fmt: skip
def test_the_pool_is_that_of_another_rank(tmp_path: Path, layout: str, tag: str, room: str, tokens: str, another: bool) -> None:  # fmt: skip
    log = _PARTED.format(layout=layout, tag=tag, room=room, tokens=tokens)
    assert shows(tmp_path, {"engine.log": log}, "rank-imbalance", "pool-is-that-of-another-rank") is another


_PARTS = "{who} INFO 05-0{day} 10:00:00 [gpu_worker.py:391] Free memory on device (23.40/23.99 GiB) on startup. Desired GPU memory utilization is (0.4, 9.60 GiB). Actual usage is {weights} GiB for weight, 0.70 GiB for peak activation, {outside} GiB for non-torch memory, and {graphs} GiB for CUDAGraph memory. Current kv cache memory in use is 3221225472 bytes.\n"


@pytest.mark.parametrize(
    ("outside", "graphs", "cause"),
    [(("0.30", "2.60"), ("0.50", "1.40"), "tp-overhead"), (("0.30", "0.60"), ("0.50", "0.60"), None)],
)
def test_ranks_add_more_than_they_divide(tmp_path: Path, outside: tuple[str, str], graphs: tuple[str, str], cause: str | None) -> None:  # fmt: skip
    one = _PARTS.format(who="(EngineCore_DP0 pid=41)", day=1, weights="3.00", outside=outside[0], graphs=graphs[0])
    four = _PARTS.format(who="(Worker_TP0 pid=52)", day=2, weights="0.76", outside=outside[1], graphs=graphs[1])
    assert likely(tmp_path, {"sums.log": one + four}) == cause


def test_ranks_add_more_than_they_divide_in_a_table(tmp_path: Path) -> None:
    sheet = "GPUs (TP);weights GiB;non-torch GiB;graphs GiB\n1;2.9;0.3;0.4\n2;1.5;1.4;0.8\n4;0.8;2.6;1.3\n"
    assert likely(tmp_path, {"parts.csv": sheet}) == "tp-overhead"


_REFUSED = """\
INFO 06-02 11:20:01 [utils.py:328] non-default args: {'model': 'acme/base-64B', 'max_model_len': 98304, 'tensor_parallel_size': 2}
(Worker_TP0 pid=33) INFO 06-02 11:22:40 [gpu_model_runner.py:2392] Model loading took 61.2000 GiB and 88.120331 seconds
(EngineCore_DP0 pid=20) ERROR 06-02 11:23:32 [core.py:718] ValueError: To serve at least one request with the models's max seq len (98304), (15.00 GiB KV cache is needed, which is larger than the available KV cache memory (5.10 GiB). Based on the available memory, the estimated maximum model length is 33408.
"""


@pytest.mark.parametrize(
    ("beside", "cause"), [("4", "tp-undersharded"), ("69120", "kv-pool-below-max-model-len")]
)  # free, and somebody's
def test_cards_beside_would_hold_the_length(tmp_path: Path, beside: str, cause: str) -> None:
    cards = "".join(f'DCGM_FI_DEV_FB_USED{{gpu="{n}",Hostname="n1"}} {69000 if n < 2 else beside}\n' for n in range(4))
    assert likely(tmp_path, {"start.log": _REFUSED, "cards.prom": cards}) == cause


_LOADS = """\
(EngineCore_DP0 pid=61) ERROR 09-12 07:55:40 [gpu_model_runner.py:3590] Failed to load model - not enough GPU memory. (original error: CUDA out of memory. Tried to allocate 440.00 MiB. GPU 0 has a total capacity of 39.49 GiB of which 123.31 MiB is free. Including non-PyTorch memory, this process has 39.36 GiB memory in use. Of the allocated memory 38.90 GiB is allocated by PyTorch, and 9.84 MiB is reserved by PyTorch but unallocated.)
"""


@pytest.mark.parametrize(("cards", "cause"), [(4, "tp-undersharded"), (1, "weights-exceed-gpu")])
def test_cards_that_the_container_was_given(tmp_path: Path, cards: int, cause: str) -> None:
    spec = f'args: [--model, acme/large-34B, --max-model-len, "16384"]\nresources: {{limits: {{nvidia.com/gpu: {cards}, memory: 120Gi}}}}\n'
    assert likely(tmp_path, {"crash.log": _LOADS, "spec.yaml": spec}) == cause


_START = """\
(Worker_TP0 pid=11) INFO 09-02 21:40:11 [gpu_worker.py:451] Available KV cache memory: 21.00 GiB
(EngineCore pid=12) INFO 09-02 21:40:12 [kv_cache_utils.py:1731] GPU KV cache size: 400,000 tokens
"""


@pytest.mark.parametrize(
    ("left", "cause"), [((26.5, 5.1, 2.2), "host-memory-exhausted"), ((60.0, 55.5, 54.9), "healthy")]
)
def test_the_host_loses_what_the_pool_takes(tmp_path: Path, left: tuple[float, ...], cause: str | None) -> None:
    rows = "".join(f"{60 * at},{phase},{size}\n" for at, phase, size in zip((1, 2, 3), ("loaded", "pool", "graphs"), left, strict=True))  # fmt: skip
    found = likely(tmp_path, {"start.log": _START, "mem.csv": f"t_s,phase,host_MemAvailable_GiB\n0,before,110.0\n{rows}"})  # fmt: skip
    assert found == cause


_SCALER = """\
Name:                                                     {name}
Reference:                                                Deployment/{name}
Metrics:                                                  ( current / target )
  resource memory on pods  (as a percentage of request):  64% (51200Mi) / 85%
Min replicas:                                             {now}
Max replicas:                                             9
Deployment pods:                                          {now} current / {now} desired
"""


@pytest.mark.parametrize(("series", "now"), [("vllm:num_requests_waiting:sum", 3), ("vllm:num_requests_waiting", 2)])
def test_answers_under_any_name(tmp_path: Path, series: str, now: int) -> None:
    values = ",".join(f'[{1772700000 + 300 * at}, "{20 * at}"]' for at in range(12))
    answers = f'{{"results": [{{"metric": {{"__name__": "{series}"}}, "values": [{values}]}}]}}'
    files = {"answers.json": answers, "hpa.txt": _SCALER.format(name="chat-eu", now=now)}
    assert likely(tmp_path, files) == "autoscaling-blind"
