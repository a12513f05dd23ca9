"""What gains and keeps, and what comes back: from text to verdict, each beside its near miss."""

from __future__ import annotations

from pathlib import Path

import pytest

from verdicts import likely


def _status(gain: int) -> str:
    return "".join(
        f"## after {k * 4} h\nName:\tVLLM::EngineCor\nVmLck:\t  8388608 kB\nVmRSS:\t {14_000_000 + k * gain} kB\n"
        f"RssAnon:\t {13_000_000 + k * gain} kB\nRssFile:\t 900000 kB\nThreads:\t210\n"
        for k in range(6)
    )


def _shared(gain: float) -> str:
    return "".join(
        f"Tue {6 + 2 * k:02}:00 $ df -h /dev/shm\nFilesystem      Size  Used Avail Use% Mounted on\n"
        f"tmpfs            32G  {1.1 + k * gain:.1f}G   {30.9 - k * gain:.1f}G  {int(4 + k * gain * 3)}% /dev/shm\n"
        for k in range(6)
    )


def _device(gain: int, steps: int) -> str:
    return "".join(
        f'{{"ts": "2026-05-{1 + k // 4:02}T{6 * (k % 4):02}:00:00Z", "pid": 771, "process": "VLLM::EngineCore", "gpu_mem_mib": {60210 + min(k, steps) * gain}}}\n'
        for k in range(30)
    )


def _pauses(gain: float) -> str:
    rows = [
        f"2026-05-01T{k // 4:02}:{(k % 4) * 15:02}:00Z,{0 if k % 4 == 3 else 5},0,{gain * (k // 4) + (0 if k % 4 == 3 else 0.12):.4f}"
        for k in range(40)
    ]
    return (
        "time,vllm:num_requests_running,vllm:num_requests_waiting,vllm:kv_cache_usage_perc\n" + "\n".join(rows) + "\n"
    )


def _waves(gain: int) -> str:
    rows = [f"2026-06-01T{k // 12:02}:{(k % 12) * 5:02}:00,{(40000 if k % 20 < 12 else 3000) + gain * (k // 20)}" for k in range(200)]  # fmt: skip
    return "time,gpu0_used_mib\n" + "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (_status(1_600_000), "memory-leak"),
        (_shared(2.3), "memory-leak"),
        (_device(95, 30), "memory-leak"),
        (_device(300, 3), "healthy"),  # three firsts, then the same
        (_pauses(0.011), "memory-leak"),
        (_pauses(0.0), "healthy"),  # blocks come back at each pause
        (_waves(900), "memory-leak"),
        (_waves(0), "healthy"),  # the same floor and top
    ],
)
def test_a_gain_is_told_from_a_return(tmp_path: Path, text: str, cause: str) -> None:
    assert likely(tmp_path, **{"kept__jsonl" if text.startswith("{") else "kept__txt": text}) == cause


@pytest.mark.parametrize("text", [_status(0), _shared(0.0)])
def test_what_stays_is_no_leak(tmp_path: Path, text: str) -> None:
    assert likely(tmp_path, kept__txt=text) in (None, "healthy")


def test_a_declared_cache_that_fills_is_no_leak(tmp_path: Path) -> None:
    text = "hour  rss_gib\n" + "".join(f"{k}  {5 + k * 1.1:.2f}\n" for k in range(12))
    assert likely(tmp_path, rss__txt=text, run__sh="vllm serve m --mm-processor-cache-gb 30 --port 1\n") is None


def test_idle_memory_is_not_all_that_is_there(tmp_path: Path) -> None:
    free = "$ free -g\n              total        used        free      shared  buff/cache   available\n"
    assert likely(tmp_path, host__txt=free + "Mem:           1007         101           7           3         898         880\n") == "healthy"  # fmt: skip
    assert likely(tmp_path, host__txt=free + "Mem:           1007         981           7           3          18          11\n") != "healthy"  # fmt: skip


def _log(waiting: list[int]) -> str:
    lines = ["(APIServer pid=9) INFO:     Application startup complete."]
    for k, count in enumerate(waiting):
        idle = k >= len(waiting) - 3
        lines.append(
            f"(APIServer pid=9) INFO 07-12 10:{k // 6:02}:{(k % 6) * 10:02} [loggers.py:123] Engine 000: Avg prompt throughput: 900.0 tokens/s, "
            f"Avg generation throughput: 2900.0 tokens/s, Running: {0 if idle else 64} reqs, Waiting: {count} reqs, "
            f"GPU KV cache usage: {0 if idle else 31}.0%, Prefix cache hit rate: 0.0%"
        )
    return "\n".join(lines) + "\n"


def test_a_heap_that_is_worked_off_is_told_from_a_queue_that_grew(tmp_path: Path) -> None:
    heap = [max(0, 2000 - 30 * k) for k in range(80)]
    grown = [min(30 * k, max(0, 30 * (76 - k))) for k in range(80)]
    assert likely(tmp_path, server__log=_log(heap)) == "healthy"
    assert likely(tmp_path, server__log=_log(grown)) != "healthy"


def _from_the_start(held: list[int]) -> str:
    """A recording that begins before the server: an empty card, then weights and pool, then what it holds from there on."""
    readings = [3] * 4 + [9_000] * 3 + held
    rows = [f"2026-04-02 10:{k * 10 // 60:02}:{k * 10 % 60:02}, 0, {mib} MiB, 40960 MiB" for k, mib in enumerate(readings)]  # fmt: skip
    return "timestamp, index, memory.used [MiB], memory.total [MiB]\n" + "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    ("held", "cause"),
    [
        ([30_500 + 31 * k for k in range(64)], "memory-leak"),  # ten minutes, as steady as a clock
        ([30_500 + int(2_000 * (1 - 0.93**k)) for k in range(64)], None),  # arenas fill, ever more slowly
        ([30_500 + 400 * (k > 30) for k in range(64)], None),  # one step
        ([30_500 + (37 * k) % 90 for k in range(64)], None),
    ],
)
def test_what_fills_a_device_at_its_start_is_no_part_of_its_growth(
    tmp_path: Path, held: list[int], cause: str | None
) -> None:
    assert (likely(tmp_path, smi__csv=_from_the_start(held)) == "memory-leak") is (cause == "memory-leak")


def _nodes(gains: tuple[float, float]) -> str:
    rows = [f"{pod},2026-02-0{2 + late} 0{3 + 4 * late}:15,{180.5 + late * gain:.2f}" for pod, gain in zip(("dec-0", "dec-1"), gains, strict=True) for late in (0, 1)]  # fmt: skip
    return "pod,time,rss_gib\n" + "\n".join(rows) + "\n"


@pytest.mark.parametrize(("gains", "leak"), [((21.3, 20.2), True), ((21.3, 9.0), False), ((1.1, 1.0), False)])
def test_two_of_a_kind_that_gain_the_same_share_what_grows(
    tmp_path: Path, gains: tuple[float, float], leak: bool
) -> None:
    assert (likely(tmp_path, nodes__csv=_nodes(gains)) == "memory-leak") is leak


@pytest.mark.parametrize(
    ("sizes", "leak"), [(("6.1", "14.8", "22.9"), True), (("6.1", "6.2", "6.1"), False)]
)  # fmt: skip
def test_what_sleep_leaves_told_in_words(tmp_path: Path, sizes: tuple[str, ...], leak: bool) -> None:
    text = "".join(f"round {k}: roughly {size} GiB are still held after going to sleep\n" for k, size in enumerate(sizes, 1))  # fmt: skip
    assert (likely(tmp_path, told__txt=text) == "memory-leak") is leak


def _phases(after: str) -> str:
    """Three hours of load, of which the memory rises, and an hour without: kept, given back, or never risen."""
    rows = []
    for k in range(120):
        loaded = k < 90
        held = 8.2 if after == "level" else 8.2 + 0.31 * min(k, 89) if loaded or after == "kept" else 8.9
        rows.append(f"{2 * k},{held + 0.02 * (k % 3):.2f},{3 if loaded else 0},{9 * min(k, 89)},{'load' if loaded else 'drained'}")  # fmt: skip
    return "minute,engine_rss_gib,concurrency,requests_done,phase\n" + "\n".join(rows) + "\n"


@pytest.mark.parametrize(("after", "leak"), [("kept", True), ("level", False)])
def test_what_rose_under_load_and_is_kept_at_rest_is_no_level(tmp_path: Path, after: str, leak: bool) -> None:
    assert (likely(tmp_path, rss__csv=_phases(after)) == "memory-leak") is leak
