"""From text to verdict: which room has no space, slots for states, layouts, controllers, a request beyond the pool; each with a rival."""

from __future__ import annotations

from pathlib import Path

import pytest

from verdicts import first, likely, shows

_NO_SPACE = "2026-04-02 11:00:01 INFO gateway: loading over 4 devices\n2026-04-02 11:00:09 ERROR worker: OSError: [Errno 28] No space left on device\n"


def _df(shm: str, free: str, share: int) -> str:
    return (
        "Filesystem  Size  Used Avail Use% Mounted on\n"
        f"/dev/sda2   500G  200G  {free}  {share}% /\nshm   {shm}  12K  {shm}   1% /dev/shm\n"
    )


@pytest.mark.parametrize(
    ("shm", "free", "share", "told"),
    [("64M", "280G", 40, True), ("32M", "90G", 80, True), ("64M", "300M", 100, False), ("24G", "280G", 40, False)],
)
def test_error_28_without_a_name(tmp_path: Path, shm: str, free: str, share: int, told: bool) -> None:
    assert (first(tmp_path, {"out.log": _NO_SPACE, "df.txt": _df(shm, free, share)})[0] == "shm-exhausted") is told


def _states(used: float, found: int, anew: int) -> str:
    line = "[2026-05-04 08:{minute:02d}:00] Prefill batch, #new-seq: 2, #new-token: {anew}, #cached-token: {found}, full token usage: 0.31, mamba usage: {used:.2f}, #running-req: 60, #queue-req: {queue}\n"
    return "".join(line.format(minute=n, anew=anew, found=found, used=used, queue=9 + n % 3) for n in range(24))


@pytest.mark.parametrize(("found", "anew"), [(4000, 4000), (1500, 4500)])
def test_states_take_turns_over_full_slots(tmp_path: Path, found: int, anew: int) -> None:
    assert first(tmp_path, {"node.log": _states(0.99, found, anew)})[0] == "prefix-cache-thrash"


@pytest.mark.parametrize(("used", "found", "anew"), [(0.4, 4000, 4000), (0.99, 9500, 500)])
def test_free_slots_or_a_cache_that_serves_are_no_thrash(tmp_path: Path, used: float, found: int, anew: int) -> None:
    assert first(tmp_path, {"node.log": _states(used, found, anew)})[0] != "prefix-cache-thrash"


def _controller(end: str) -> str:
    lines = []
    for n in range(1, 4):
        lines += [f"I 02-03 0{n}:00:00 fleet: worker {n} came up"]
        lines += [
            f"W 02-03 0{n}:2{k}:00 fleet: readiness check failed for worker {n}: status 503, queue full"
            for k in range(3)
        ]
        lines += [f"I 02-03 0{n}:23:00 fleet: {end.format(n=n)}"]
    return "\n".join(lines) + "\n"


_BUSY = "INFO 02-03 01:{minute:02d}:00 [loggers.py:118] Engine 000: Avg prompt throughput: 900.0 tokens/s, Avg generation throughput: 300.0 tokens/s, Running: 24 reqs, Waiting: 30 reqs, GPU KV cache usage: 48.0%, Prefix cache hit rate: 0.0%\n"


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ("worker {n} is not ready after 3 checks, replacing it", True),
        ("Worker {n} is not healthy and exceeds the failure threshold. Terminating...", True),
        ("worker {n} gets no traffic until it answers", False),
    ],
)
def test_a_controller_that_ends_what_is_busy(tmp_path: Path, end: str, told: bool) -> None:
    files = {"fleet.log": _controller(end), "engine.log": "".join(_BUSY.format(minute=n) for n in range(10))}
    assert (first(tmp_path, files)[0] == "probe-restart-loop") is told


def _layout(pid: int, split: int, tokens: str, times: str, free: str = "60.0") -> str:
    asked = "{'model': 'deepseek-ai/DeepSeek-V3', 'tensor_parallel_size': 8, 'max_model_len': 65536" + (
        f", 'decode_context_parallel_size': {split}" if split > 1 else ""
    )
    return (
        f"(APIServer pid=1) INFO 03-04 1{split}:00:00 [utils.py:233] version 0.24.0\n(APIServer pid=1) INFO 03-04 1{split}:00:00 [utils.py:235] non-default args: {asked}}}\n"
        f"(Worker_TP0 pid={pid}) INFO 03-04 1{split}:05:00 [gpu_model_runner.py:900] Model loading took 80.0 GiB memory and 90.0 seconds\n(Worker_TP0 pid={pid}) INFO 03-04 1{split}:06:00 [gpu_worker.py:500] Available KV cache memory: {free} GiB\n"
        f"(EngineCore pid=3) INFO 03-04 1{split}:06:01 [kv_cache_utils.py:11] GPU KV cache size: {tokens} tokens\n(EngineCore pid=3) INFO 03-04 1{split}:06:01 [kv_cache_utils.py:12] Maximum concurrency for 65,536 tokens per request: {times}x\n(APIServer pid=1) INFO:     Application startup complete.\n"
    )


@pytest.mark.parametrize(
    ("split", "tokens", "free", "told"),
    [(4, "3,668,000", "60.0", True), (8, "7,336,000", "59.9", True), (4, "1,834,000", "120.0", False)],
)
def test_two_layouts_in_one_file(tmp_path: Path, split: int, tokens: str, free: str, told: bool) -> None:
    text = _layout(11, 1, "917,000", "13.99") + "\n" + _layout(12, split, tokens, "55.96", free)
    assert shows(tmp_path, {"starts.txt": text}, "tp-overhead", "split-context-multiplies-the-pool") is told


_POOL = "[2026-06-07 10:00:00 TP0] max_total_num_tokens={pool}, chunked_prefill_size=4096, max_running_requests=64, context_len=131072\n[2026-06-07 10:00:05] The server is fired up and ready to roll!\n"


@pytest.mark.parametrize(("pool", "running", "told"), [(40_000, 0, True), (45_999, 0, True), (90_000, 0, False), (40_000, 2, False)])  # fmt: skip
def test_a_request_beyond_the_pool_stands_at_the_head(tmp_path: Path, pool: int, running: int, told: bool) -> None:
    bench = f"load.py --random-input-len 44000 --random-output-len 2000 --num-prompts 5\n#running-req: {running}, #queue-req: 5\n"
    assert (likely(tmp_path, {"server.log": _POOL.format(pool=pool), "load.txt": bench}) == "kv-demand-exceeds-pool") is told  # fmt: skip


@pytest.mark.parametrize("cut", ["which is larger t", "which is lar...", "which is"])
def test_a_refusal_that_a_page_cut(tmp_path: Path, cut: str) -> None:
    text = f"INFO 06-07 11:00:00 [model.py:1] Using max model len 262144\nERROR 06-07 11:02:00 [core.py:1] ValueError: To serve at least one request with the model's max seq len (262144), (18.50 GiB KV cache is needed, {cut}\n"
    assert first(tmp_path, {"x.log": text})[0] == "kv-pool-below-max-model-len"


def _plan(weights: str, kv: str) -> str:
    return (
        f"INFO 01-02 03:04:05 model_runner.py:1115] Loading model weights took {weights} GB\n"
        f"INFO 01-02 03:04:09 worker.py:266] model weights take {weights[:-2]}GiB; non_torch_memory takes 0.00GiB; PyTorch activation peak memory takes 0.00GiB; the rest of the memory reserved for KV Cache is {kv}GiB.\n"
        "INFO 01-02 03:04:09 executor_base.py:108] # CUDA blocks: 20000, # CPU blocks: 100\n[rank0]: torch.OutOfMemoryError: CUDA out of memory.\n"
    )


@pytest.mark.parametrize(
    ("weights", "kv", "told"), [("0.0000", "71.19", True), ("0.0021", "38.00", True), ("15.0000", "50.00", False)]
)
def test_a_plan_that_did_not_see_the_weights(tmp_path: Path, weights: str, kv: str, told: bool) -> None:
    assert (first(tmp_path, {"train.log": _plan(weights, kv)})[0] == "memory-utilization-edge") is told


@pytest.mark.parametrize(
    ("name", "tp", "told"),
    [("DeepSeek-V3-bf16", 16, True), ("DeepSeek-R1-BF16", 8, True), ("DeepSeek-R1", 16, False)],
)
def test_a_copy_that_somebody_widened(tmp_path: Path, name: str, tp: int, told: bool) -> None:
    text = f"$ vllm serve /srv/{name} --tensor-parallel-size {tp}\nINFO 04-30 09:12:40 api_server.py:912] vLLM API server version 0.7.3\ntorch.OutOfMemoryError: CUDA out of memory.\n"
    assert (first(tmp_path, {"start.log": text})[0] == "weights-exceed-gpu") is told
