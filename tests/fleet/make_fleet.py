"""Writes a fleet of support bundles for measuring and testing sweeps: hosts, models, versions and causes mixed by a seed.

    python make_fleet.py OUT --bundles 2000 [--seed 1] [--night 2026-11-20]

Half of the bundles are archives (`OUT/archives/HOST_NNNN.tar.gz`), half are log trees (`OUT/logs/HOST_NNNN/`). One in fifty
archives is cut short, one in a hundred holds nothing. The same arguments give the same bytes and times.
"""

from __future__ import annotations

import argparse
import datetime as dt
import gzip
import io
import os
import random
import tarfile
from pathlib import Path

MODELS = {
    "Qwen/Qwen3-8B": (8, 15.3),
    "meta-llama/Llama-3.1-8B-Instruct": (8, 14.99),
    "mistralai/Mistral-Small-24B-Instruct-2501": (24, 44.0),
}
CAUSES = ("healthy", "healthy", "healthy", "weights", "pool", "demand", "shared", "sampler", "not-memory")


def server_log(cause: str, model: str, version: str, moment: dt.datetime, rng: random.Random) -> str:
    """A server's log: a start, and what became of it."""
    clock = moment
    out: list[str] = []

    def say(text: str, place: str = "core.py:93", level: str = "INFO", step_s: float = 2.0) -> None:
        nonlocal clock
        clock += dt.timedelta(seconds=step_s)
        out.append(f"(EngineCore_DP0 pid=211) {level} {clock:%m-%d %H:%M:%S} [{place}] {text}")

    seqs = rng.choice((64, 128, 256))
    out.append(f"(APIServer pid=1) INFO {clock:%m-%d %H:%M:%S} [api_server.py:1839] vLLM API server version {version}")
    out.append(
        f"(APIServer pid=1) INFO {clock:%m-%d %H:%M:%S} [utils.py:253] non-default args: "
        f"{{'model': '{model}', 'max_model_len': 16384, 'max_num_seqs': {seqs}, 'gpu_memory_utilization': 0.9}}"
    )
    weights = MODELS[model][1]
    say(f"Model loading took {weights} GiB and {rng.uniform(8, 30):.6f} seconds", "gpu_model_runner.py:2653", step_s=20)
    if cause == "weights":
        say("EngineCore failed to start.", "core.py:700", "ERROR")
        say(
            f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 896.00 MiB. GPU 0 has a total capacity of 15.77 GiB of "
            f"which {rng.randint(20, 200)}.00 MiB is free. Including non-PyTorch memory, this process has 15.60 GiB memory in use. Of "
            "the allocated memory 15.20 GiB is allocated by PyTorch, and 40.00 MiB is reserved by PyTorch but unallocated.",
            "core.py:700",
            "ERROR",
        )
        return "\n".join(out) + "\n"
    if cause == "not-memory":
        say("EngineCore failed to start.", "core.py:700", "ERROR")
        say(
            "RuntimeError: CUDA error: no kernel image is available for execution on the device", "core.py:700", "ERROR"
        )
        return "\n".join(out) + "\n"
    if cause == "pool":
        say("Available KV cache memory: 1.20 GiB", "gpu_worker.py:298")
        say("EngineCore failed to start.", "core.py:700", "ERROR")
        say(
            "ValueError: To serve at least one request with the models's max seq len (16384), (2.00 GiB KV cache is needed, which is "
            "larger than the available KV cache memory (1.20 GiB). Based on the available memory, the estimated maximum model length is "
            "9824. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.",
            "core.py:700",
            "ERROR",
        )
        return "\n".join(out) + "\n"
    if cause == "shared":
        say("EngineCore failed to start.", "core.py:700", "ERROR")
        say(
            f"ValueError: Free memory on device ({rng.uniform(20, 40):.2f}/79.11 GiB) on startup is less than desired GPU memory "
            "utilization (0.9, 71.2 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
            "core.py:700",
            "ERROR",
        )
        return "\n".join(out) + "\n"
    say("Available KV cache memory: 18.40 GiB", "gpu_worker.py:298")
    say("GPU KV cache size: 133,984 tokens", "kv_cache_utils.py:864")
    say("Maximum concurrency for 16,384 tokens per request: 8.18x", "kv_cache_utils.py:868")
    if cause == "sampler":
        say("EngineCore failed to start.", "core.py:700", "ERROR")
        for place in (
            'gpu_worker.py", line 200, in compile_or_warm_up_model',
            'gpu_model_runner.py", line 1700, in _dummy_sampler_run',
        ):
            say(f'  File "/v/vllm/v1/worker/{place}', "core.py:700", "ERROR", 0)
        say(
            f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.45 GiB. GPU 0 has a total capacity of 47.40 GiB of which "
            f"{rng.randint(300, 900)}.00 MiB is free. Including non-PyTorch memory, this process has 46.40 GiB memory in use. Of the "
            "allocated memory 45.00 GiB is allocated by PyTorch, and 120.00 MiB is reserved by PyTorch but unallocated.",
            "core.py:700",
            "ERROR",
            0,
        )
        return "\n".join(out) + "\n"
    say("Graph capturing finished in 9 secs, took 0.52 GiB", "gpu_model_runner.py:3480", step_s=9)
    full = cause == "demand"
    for sample in range(30):
        used = min(99.9, 80 + sample * 2) if full else rng.uniform(4, 30)
        waiting = sample * 2 if full and sample > 9 else 0
        running = 40 - sample if full and sample > 9 else rng.randint(1, 12)
        say(
            f"Engine 000: Avg prompt throughput: {rng.uniform(100, 900):.1f} tokens/s, Avg generation throughput: {rng.uniform(50, 500):.1f} "
            f"tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: {used:.1f}%, Prefix cache hit rate: 0.0%",
            "loggers.py:118",
            step_s=10,
        )
    return "\n".join(out) + "\n"


def write_bundle(
    out: Path, number: int, seed: int, night: str, version: str | None = None, cause: str | None = None
) -> Path:
    """One bundle; what is not given is drawn from the seed and the number. Returns the archive or folder."""
    rng = random.Random(f"{seed}/{number}")
    made = cause or rng.choice(CAUSES)
    model = rng.choice(list(MODELS))
    release = version or rng.choice(("0.11.0", "0.11.2"))
    day = dt.datetime.fromisoformat(night)
    moment = day.replace(hour=rng.randrange(24), minute=rng.randrange(60), second=rng.randrange(60)) - dt.timedelta(
        days=1
    )
    host = f"gpu-node-{rng.randrange(40):02d}"
    files = {
        "vllm.log": server_log(made, model, release, moment, rng),
        "command.txt": f"vllm serve {model} --max-model-len 16384 --gpu-memory-utilization 0.9\n",
        "date.txt": f"{moment:%Y-%m-%dT%H:%M:%S}Z collected on {host}\n",
    }
    name = f"{host}_{number:04d}"
    written = int(moment.timestamp())
    if number % 2 == 0:
        path = out / "archives" / f"{name}.tar.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        data = _packed(files, written)
        kind = number // 2
        path.write_bytes(b"" if kind % 100 == 99 else data[: len(data) // 3] if kind % 50 == 49 else data)
        os.utime(path, (written, written))
        return path
    folder = out / "logs" / name
    folder.mkdir(parents=True, exist_ok=True)
    for inside, text in files.items():
        (folder / inside).write_text(text, encoding="utf-8")
        os.utime(folder / inside, (written, written))
    return folder


def _packed(files: dict[str, str], written: int) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name, text in files.items():
            data = text.encode()
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(data), written
            archive.addfile(info, io.BytesIO(data))
    return gzip.compress(raw.getvalue(), 6, mtime=0)


def write_fleet(out: Path, bundles: int, seed: int = 1, night: str = "2026-11-20") -> list[Path]:
    """So many bundles below `out`, in order of number."""
    return [write_bundle(out, number, seed, night) for number in range(bundles)]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--bundles", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--night", default="2026-11-20")
    given = parser.parse_args()
    write_fleet(given.out, given.bundles, given.seed, given.night)


if __name__ == "__main__":
    main()
