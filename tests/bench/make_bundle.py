"""Writes a support bundle of any size for measuring, and what a correct reader must find in it.

    python make_bundle.py OUT --size 64M [--seed 1]

OUT/bundle/** are the files, OUT/bundle.tar.gz the same packed, OUT/truth.json the figures: for each name of `QUERIES` the
row that the query must give on the evidence tables. The same size and seed give the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

START = 1_767_600_000  # 2026-01-05, a Monday morning in UTC
MIB = 1 << 20
GPUS = ENGINES = 8

_TOKENS = "select count(*), sum(input_tokens)::bigint, sum(output_tokens)::bigint from request where source like "
_USED = f"select count(*), (sum(used_bytes) / {MIB})::bigint from gpu_sample where source like "
QUERIES = {
    "stats": "select count(*), sum(running)::bigint from engine_stat",
    "ooms": "select count(*) from oom",
    "preemptions": "select count(*), sum(cumulative)::bigint from preemption",
    "starts": "select count(*) from engine_figure where name = 'kv_available_bytes'",
    "lookalikes": "select sum(lookalikes)::bigint from source",
    "key_value": _TOKENS + "'%gateway.log'",
    "json_lines": _TOKENS + "'%gateway.jsonl'",
    "gpu_csv": _USED + "'%nvidia-smi.csv'",
    "gpu_loop": _USED + "'%loop.txt'",
    "metrics": "select count(*), sum(value)::bigint from metric",
    "summaries": "select count(*), sum(current) filter (metric = 'num_ooms')::bigint from allocator_stat",
}

Rows = Iterator[tuple[bytes, dict[str, int]]]  # text, and what of it is to be added to the truth

STATS = (
    "INFO %s [loggers.py:118] Engine %03d: Avg prompt throughput: %.1f tokens/s, Avg generation throughput: %.1f tokens/s, "
    "Running: %d reqs, Waiting: %d reqs, GPU KV cache usage: %.1f%%, Prefix cache hit rate: %.1f%%\n"
)
PARAMS = (
    b"params: SamplingParams(n=1, presence_penalty=0.0, frequency_penalty=0.0, repetition_penalty=1.0, temperature=0.7, "
    b"top_p=0.9, top_k=0, min_p=0.0, seed=None, stop=[], stop_token_ids=[], bad_words=[], include_stop_str_in_output=False, "
    b"ignore_eos=False, max_tokens=%d, min_tokens=0, logprobs=None, prompt_logprobs=None, skip_special_tokens=True, "
    b"guided_decoding=None, extra_args=None), prompt_token_ids: None, lora_request: None.\n"
)
BOOT = """\
INFO {0} [api_server.py:1287] vLLM API server version 0.9.0
INFO {0} [gpu_model_runner.py:1549] Model loading took 16.3902 GiB and 12.718042 seconds
INFO {0} [gpu_worker.py:206] Available KV cache memory: 51.27 GiB
INFO {0} [kv_cache_utils.py:637] GPU KV cache size: 420,032 tokens
INFO {0} [kv_cache_utils.py:640] Maximum concurrency for 16,384 tokens per request: 25.64x
"""
MESSAGE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %.2f GiB. GPU %d has a total capacity of 79.15 GiB of which "
    "%.2f GiB is free. Process %d has 78.31 GiB memory in use. Of the allocated memory 74.05 GiB is allocated by PyTorch, and "
    "2.68 GiB is reserved by PyTorch but unallocated."
)
CRASH = """\
EngineCore encountered a fatal error.
Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/vllm/v1/engine/core.py", line 493, in run_engine_core
    engine_core.run_busy_loop()
  File "/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_model_runner.py", line 1185, in execute_model
    output = self.model(
"""
KEY_VALUE = (
    "%s INFO gateway request_id=r-%012x model=Llama-3.1-70B status=%d input_tokens=%d output_tokens=%d latency_ms=%d "
    "ttft_ms=%d finish_reason=stop\n"
)
JSON_LINE = (
    '{"ts": "%sZ", "level": "info", "request_id": "r-%012x", "model": "Llama-3.1-70B", "status": %d, "input_tokens": %d, '
    '"output_tokens": %d, "latency_ms": %d.5, "ttft_ms": %d.25, "finish_reason": "stop", "stream": true}\n'
)
PREEMPTED = (
    "WARNING %s [scheduler.py:1768] Sequence group cmpl-%x is preempted by PreemptionMode.RECOMPUTE mode because there is not "
    "enough KV cache space. This can affect the end-to-end performance. total_num_cumulative_preemption=%d\n"
)
IN_PROMPTS = (  # what users paste into their prompts: no evidence
    rb"why this? \nERROR 01-05 08:00:01 [core.py:500] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.88 GiB. ",
    b"explain: Engine 000: Avg prompt throughput: 9.9 tokens/s, Running: 777 reqs, Waiting: 0 reqs, GPU KV cache usage: 99.9% ",
)
AS_LINES = (
    b"  | the log that I pasted\n"
    b"  | ERROR 01-05 08:00:02 [core.py:500] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 6.66 GiB.\n"
)


def prose(rng: random.Random, size: int = 4 * MIB) -> bytes:
    """Words of a made-up language, with what real prompts hold besides; slices of it are the prompts."""
    parts = [first + then for first in "bcdfghjklmnprstvwz" for then in ("a", "e", "i", "o", "un")]
    words = ["".join(rng.choices(parts, k=rng.randint(1, 4))) for _ in range(5000)]
    words += ["\\n", "\\n\\n", "GPU", "memory", "naïve", "Größe", "说明", "<|im_end|>", "it\\'s", '{"a": [1, 2]}']
    rng.shuffle(words)
    weights = [1 / (rank + 4) for rank in range(len(words))]
    return " ".join(rng.choices(words, weights, k=size // 4)).encode()[:size]


def stamp(form: str, t: float) -> str:
    return time.strftime(form, time.gmtime(t))


def server(rng: random.Random, text: bytes, target: int) -> Rows:
    """A vLLM 0.9 log: prompts, statistics every 10 s, access lines; it runs out of memory twice, whatever the size."""
    t, next_stats, running, size, number, preempted, crashes, long = float(START), 0.0, 20, 0, 0, 0, 0, 0
    yield BOOT.format(stamp("%m-%d %H:%M:%S", t)).encode(), {"starts.0": 1}
    while size < target:
        t += rng.uniform(0.1, 0.4)
        number += 1
        now, out, found = stamp("%m-%d %H:%M:%S", t), [], Counter[str]()
        if t >= next_stats:
            next_stats = t + 10
            for engine in range(ENGINES):
                running = max(0, running + rng.randint(-3, 3))
                used, speed = min(99.8, running * 1.6 + rng.random() * 9), rng.random()
                waiting = int(used > 80) * rng.randint(0, 9)
                out.append((STATS % (now, engine, speed * 8000, speed * 2000, running, waiting, used, 37.5)).encode())
                found.update({"stats.0": 1, "stats.1": running})
        at = rng.randrange(len(text) - MIB)
        prompt = text[at : at + int(60 * 2 ** rng.uniform(0, 7.2))]
        if number % 397 == 0:
            prompt += IN_PROMPTS[number // 397 % 2] + prompt[:40]
            found["lookalikes.0"] += 1
        elif target > 16 * MIB and size > (long + 1) * target // 3:
            long += 1
            prompt = text[at : at + MIB]
        name = b"chatcmpl-%032x" % rng.getrandbits(128)
        head = b"INFO " + now.encode()
        out.append(b"%s [logger.py:42] Received request %s: prompt: '%s', " % (head, name, prompt))
        out.append(PARAMS % rng.randint(16, 4096) + b"%s [async_llm.py:261] Added request %s.\n" % (head, name))
        for _ in range(3):
            client, port = rng.randrange(1 << 16), rng.randint(1025, 65535)
            path = rng.choice((b"POST /v1/completions", b"GET /health"))
            out.append(b'INFO:     10.4.%d.%d:%d - "%s HTTP/1.1" 200 OK\n' % (client >> 8, client & 255, port, path))
        if number % 211 == 0:
            preempted += 1
            out.append((PREEMPTED % (now, rng.getrandbits(60), preempted)).encode())
            found.update({"preemptions.0": 1, "preemptions.1": preempted})
        if number % 613 == 0:
            out.append(AS_LINES)
            found["lookalikes.0"] += 1
        if size > (2 * crashes + 1) * target // 4:
            crashes += 1
            figures = rng.uniform(0.5, 8), rng.randrange(GPUS), rng.random(), rng.randint(1000, 90000)
            out += [f"ERROR {now} [core.py:502] {line}\n".encode() for line in (CRASH + MESSAGE % figures).splitlines()]
            t += 45
            out.append(BOOT.format(stamp("%m-%d %H:%M:%S", t)).encode())
            found.update({"ooms.0": 1, "starts.0": 1})
        block = b"".join(out)
        size += len(block)
        yield block, found


def gateway(rng: random.Random, form: str, name: str) -> Rows:
    """Requests in one of the two forms that gateways write."""
    t, date = float(START), "%Y-%m-%dT%H:%M:%S" if name == "json_lines" else "%Y-%m-%d %H:%M:%S"
    while True:
        t += rng.random() / 4
        now, status = f"{stamp(date, t)}.{int(t * 1000) % 1000:03d}", 200 if rng.random() < 0.98 else 503
        asked, given = int(30 * 2 ** rng.uniform(0, 9.5)), rng.randint(1, 2000)
        text = form % (now, rng.getrandbits(48), status, asked, given, rng.randint(90, 80_000), rng.randint(20, 4000))
        yield text.encode(), {f"{name}.0": 1, f"{name}.1": asked, f"{name}.2": given}


def statistics(rng: random.Random) -> Rows:
    """A server log of nothing but its statistics: request logging off."""
    t = float(START)
    while True:
        t += 10
        now, used = stamp("%m-%d %H:%M:%S", t), rng.random()
        figures = (rng.random() * 8000, rng.random() * 2000, rng.randint(0, 99), rng.randint(0, 9), used * 99, 37.5)
        yield b"".join((STATS % (now, engine, *figures)).encode() for engine in range(ENGINES)), {"stats.0": ENGINES}


def accesses(rng: random.Random) -> Rows:
    """A server log of nothing but access lines."""
    while True:
        client, port = rng.randrange(1 << 16), rng.randint(1025, 65535)
        yield b'INFO:     10.4.%d.%d:%d - "GET /health HTTP/1.1" 200 OK\n' % (client >> 8, client & 255, port), {}


def endless(rng: random.Random) -> Rows:
    """One line."""
    while True:
        yield b"%020x" % rng.getrandbits(80) * 1000, {}


def gpu_csv(rng: random.Random) -> Rows:
    """`nvidia-smi --query-gpu=... --format=csv -l 1`."""
    yield b"timestamp, index, utilization.gpu [%], utilization.memory [%], memory.used [MiB], memory.total [MiB]\n", {}
    used, t = [72_000] * GPUS, START
    while True:
        t += 1
        used = [min(81_000, max(60_000, mib + rng.randint(-40, 41))) for mib in used]
        yield gpu_lines(rng, used, stamp("%Y/%m/%d %H:%M:%S.120, ", t)), {"gpu_csv.0": GPUS, "gpu_csv.1": sum(used)}


def gpu_loop(rng: random.Random) -> Rows:
    """A shell loop of `date` and `nvidia-smi`: rows without header and time."""
    t = START
    while True:
        t += 2
        used = [rng.randint(60_000, 80_000) for _ in range(GPUS)]
        lines = stamp("=== %Y-%m-%d %H:%M:%S ===\n", t).encode() + gpu_lines(rng, used)
        yield lines, {"gpu_loop.0": GPUS, "gpu_loop.1": sum(used)}


def gpu_lines(rng: random.Random, used: list[int], head: str = "") -> bytes:
    form = "{}{}, {} %, {} %, {} MiB, 81559 MiB\n"
    return "".join(
        form.format(head, gpu, rng.randint(0, 100), rng.randint(0, 90), mib) for gpu, mib in enumerate(used)
    ).encode()


def scrape(rng: random.Random) -> Rows:
    """`/metrics`: mostly histogram buckets, which are no evidence. Whole numbers, so that the sum is exact."""
    labels = 'engine="%d",model_name="meta-llama/Llama-3.1-70B-Instruct"'
    gauges = ("num_requests_running", "num_requests_waiting", "num_preemptions_total", "prompt_tokens_total")
    for name in ("time_to_first_token_seconds", "e2e_request_latency_seconds", "request_prompt_tokens", *gauges):
        kind, suffixes = ("gauge", ("",)) if name in gauges else ("histogram", ("_sum", "_count"))
        values = [rng.randint(0, 99_999) for _ in range(ENGINES * len(suffixes))]
        lines = [f"# HELP vllm:{name} {name}.\n# TYPE vllm:{name} {kind}\n"]
        for at, value in enumerate(values):
            label = labels % (at % ENGINES)
            if at < ENGINES and name not in gauges:
                bucket = f'vllm:{name}_bucket{{le="%s",{label}}} %d.0\n'
                lines += [bucket % (2**power / 1000, rng.randint(0, 9000)) for power in range(28)]
            lines.append(f"vllm:{name}{suffixes[at // ENGINES]}{{{label}}} {value}.0\n")
        yield "".join(lines).encode(), {"metrics.0": len(values), "metrics.1": sum(values)}


def summaries(rng: random.Random) -> Rows:
    """`torch.cuda.memory_summary()`, one table after another."""
    thin, thick = f"|{'-' * 75}|\n", f"|{'=' * 75}|\n"
    sizes = ("Allocated memory", "Active memory", "Requested memory", "GPU reserved memory", "Non-releasable memory")
    while True:
        failures = rng.randint(0, 3)
        lines = [
            thick, f"|                  PyTorch CUDA memory summary, device ID {rng.randrange(GPUS):<18}|\n", thin,
            f"|            CUDA OOMs: {failures:<13}|        cudaMalloc retries: {rng.randint(0, 40):<13}|\n", thick,
            "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n", thin,
        ]  # fmt: skip
        for metric in (*sizes, "Allocations", "Active allocs", "GPU reserved segments", "Non-releasable allocs"):
            cell = " {:6} MiB |" if metric in sizes else " {:7}    |"
            for label in (metric, "      from large pool", "      from small pool"):
                lines.append(f"| {label:<22}|{''.join(cell.format(rng.randint(900, 80_000)) for _ in range(4))}\n")
            lines.append(thin)
        yield "".join([*lines[:-1], thick, "\n"]).encode(), {"summaries.0": 11, "summaries.1": failures}


def write(path: Path, rows: Rows, target: float, truth: Counter[str]) -> int:
    """Write a file until it has its size; what was written is added to the truth."""
    path.parent.mkdir(parents=True, exist_ok=True)
    size = 0
    with path.open("wb") as out:
        for block, found in rows:
            out.write(block)
            size += len(block)
            truth.update(found)
            if size >= target:
                break
    return size


def make(out: Path, size: int, seed: int = 1) -> None:
    """Write the bundle, its archive and the truth, which comes last: where it is, the rest is whole."""
    bundle, truth = out / "bundle", Counter[str]()
    text = prose(random.Random(seed))
    for number in range(2):
        log = server(random.Random(seed * 100 + number), text, size * 31 // 100)
        write(bundle / f"server/node-{number}.log", log, size, truth)
    plan = {
        "traffic/gateway.log": (0.10, lambda rng: gateway(rng, KEY_VALUE, "key_value")),
        "traffic/gateway.jsonl": (0.08, lambda rng: gateway(rng, JSON_LINE, "json_lines")),
        "gpu/nvidia-smi.csv": (0.12, gpu_csv),
        "gpu/loop.txt": (0.01, gpu_loop),
        "torch/memory_summary.txt": (0.01, summaries),
    }
    for number, (name, (share, rows)) in enumerate(plan.items(), 10):
        write(bundle / name, rows(random.Random(seed * 100 + number)), size * share, truth)
    rng, written, at = random.Random(seed * 100 + 20), 0, START
    while written < size * 0.06:
        written += write(bundle / f"metrics/metrics-{at}.prom", scrape(rng), size, truth)
        at += 60
    with (out / "bundle.tar.gz").open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as zipped:
        tar = tarfile.open(mode="w|", fileobj=zipped)  # noqa: SIM115 - closed below
        for path in sorted(path for path in bundle.rglob("*") if path.is_file()):
            entry = tarfile.TarInfo(path.relative_to(out).as_posix())
            entry.size, entry.mtime = path.stat().st_size, START
            with path.open("rb") as content:
                tar.addfile(entry, content)
        tar.close()
    rows_of = {name: [truth[key] for key in sorted(truth) if key.startswith(name + ".")] for name in QUERIES}
    (out / "truth.json").write_text(json.dumps(rows_of, indent=1) + "\n")


WORST: Mapping[str, tuple[str, Callable[[random.Random], Rows]]] = {
    "one line": ("server.log", endless),
    "statistics": ("server.log", statistics),
    "access lines": ("server.log", accesses),
    "key=value": ("gateway.log", lambda rng: gateway(rng, KEY_VALUE, "key_value")),
    "JSON lines": ("gateway.jsonl", lambda rng: gateway(rng, JSON_LINE, "json_lines")),
    "samples": ("nvidia-smi.csv", gpu_csv),
}
"""Inputs of one kind alone, by what they hold: the file's name and its rows."""


def parse_size(text: str) -> int:
    unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:].upper())
    return int(float(text[:-1]) * unit) if unit else int(text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write a support bundle for measuring.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", type=parse_size, default="64M")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    make(options.out, options.size, options.seed)
