"""Logs that live as long as a container, listings of two moments, sets of prefixes that pass the pool: from text to verdict, each beside its near miss."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from verdicts import UP, likely


def _clock(second: int) -> str:
    return (
        (dt.datetime(2026, 5, 4, 9, 0, tzinfo=dt.UTC) + dt.timedelta(seconds=second)).isoformat().replace("+00:00", "Z")
    )


def _pod(name: str, begun: int, ended: int) -> str:
    zone = dt.timezone(dt.timedelta(hours=2))
    one, two = ((dt.datetime(2026, 5, 4, 9, 0, tzinfo=dt.UTC) + dt.timedelta(seconds=at)).astimezone(zone).strftime("%a, %d %b %Y %H:%M:%S %z") for at in (begun, ended))  # fmt: skip
    return (
        f"Name:         {name}\nNamespace:    find\nContainers:\n  main:\n    Image:          registry.example/embed/encoder:2.1\n    State:          Running\n"
        f"    Last State:     Terminated\n      Reason:       Error\n      Exit Code:    137\n      Started:      {one}\n      Finished:     {two}\n    Restart Count:  17\n"
        "    Limits:\n      memory:  6Gi\n    Liveness:   http-get http://:8080/live delay=60s timeout=1s period=5s #success=1 #failure=3\nEvents:\n"
        "  Type     Reason     Age                   From     Message\n  ----     ------     ----                  ----     -------\n"
        '  Warning  Unhealthy  2m (x52 over 95m)     kubelet  Liveness probe failed: Get "http://10.1.2.3:8080/live": context deadline exceeded\n'
        "  Normal   Killing    2m (x17 over 95m)     kubelet  Container main failed liveness probe, will be restarted\n"
    )


_ENCODER = (
    f"{_clock(0)} INFO:     Started server process [9]\n{_clock(11)} INFO:     Application startup complete.\n"
    + "".join(
        f'{_clock(14 + 3 * k)} INFO:     10.1.2.{k % 9}:51{k:03} - "POST /encode HTTP/1.1" 200 OK\n' for k in range(70)
    )
    + f"{_clock(226)} INFO:     Shutting down\n"
)


@pytest.mark.parametrize(
    ("begun", "ended", "cause"),
    [(-4, 256, "probe-restart-loop"), (-4, 9000, None), (-4000, 256, None)],
)
def test_a_log_that_lives_as_long_as_a_container_is_its(
    tmp_path: Path, begun: int, ended: int, cause: str | None
) -> None:
    """Its image and its pod are named as nothing that serves a language model is; the probe that ended it is its own all the same."""
    assert (
        likely(
            tmp_path,
            describe__txt=_pod("text-inference-7c9d8f6b5-xk2lq", begun, ended),
            files={"previous-container.log": _ENCODER},
        )
        == cause
    )


_FULL = (
    "2026-05-04 11:02:10 ERROR voices: add failed\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 96.00 MiB. GPU 0 has a total capacity of 44.43 GiB of which "
    "60.00 MiB is free. Process 4100 has 24.00 GiB memory in use. Including non-PyTorch memory, this process has 20.36 GiB memory in use. Of the allocated memory 19.80 GiB is "
    "allocated by PyTorch, and 210.00 MiB is reserved by PyTorch but unallocated.\n"
)


def _listing(first: str, second: str) -> str:
    return (
        "# 2026-05-04 11:02:20\n|   0  NVIDIA A40                     On  | 00000000:3B:00.0 Off |                    0 |\n"
        "|  0%   51C    P0             112W / 300W |  45448MiB / 46068MiB |     18%      Default |\n"
        f"|    0   N/A  N/A    4000      C   {first:<38}20849MiB |\n|    0   N/A  N/A    4100      C   {second:<38}24576MiB |\n"
        "# 2026-05-04 11:09:00, after the restart\n|  0%   44C    P0              78W / 300W |  26900MiB / 46068MiB |      0%      Default |\n"
        f"|    0   N/A  N/A    5000      C   {first:<38} 2310MiB |\n|    0   N/A  N/A    5100      C   {second:<38}24576MiB |\n"
    )


_GROWN = "time,gpu_used_mib,voices\n" + "".join(f"2026-05-0{1 + k // 12} {2 * (k % 12):02}:00,{27000 + 430 * k},{3 + 9 * k}\n" for k in range(43))  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second", "cause"),
    [
        ("python voices serve", "python voices serve (EngineCore)", "memory-leak"),
        ("python voices serve", "/opt/train/bin/tune --steps 900", "gpu-shared"),
    ],
)
def test_who_was_started_by_one_command_is_no_stranger(tmp_path: Path, first: str, second: str, cause: str) -> None:
    files = {
        "vram.csv": _GROWN,
        "service.log": UP.replace("03-02", "05-04") + _FULL,
        "smi.txt": _listing(first, second),
    }
    assert likely(tmp_path, files) == cause


def _held(rise: float, *beside: str) -> str:
    rows = "".join(
        f"2026-05-04 {k // 4:02}:{15 * (k % 4):02},{1500 * min(k, 20) + 1500 * max(0, k - 30)},{9 + rise * (min(k, 20) + max(0, k - 30)):.2f},0.21,61210\n"
        for k in range(52)
    )
    return "time,requests_done," + ",".join(beside) + "\n" + rows


def test_the_working_set_of_a_group_is_known_by_its_company(tmp_path: Path) -> None:
    (tmp_path / "leak").mkdir()
    (tmp_path / "flat").mkdir()
    columns = ("working_set_gib", "page_cache_gib", "gpu_used_mib")
    assert likely(tmp_path / "leak", cadvisor__csv=_held(0.6, *columns)) == "memory-leak"
    assert likely(tmp_path / "flat", cadvisor__csv=_held(0.0, *columns)) == "healthy"


def _sweep(name: str, callers: tuple[int, ...]) -> str:
    rows = zip((8, 40, 80, 120, 160, 320), callers, (190, 200, 205, 260, 2400, 9100), strict=True)
    return f"{name},clients,ttft_p50_ms,errors\n" + "".join(f"{n},{by},{ms},0\n" for n, by, ms in rows)


@pytest.mark.parametrize(
    ("name", "callers", "cause"),
    [
        ("distinct_prefixes", (64,) * 6, "prefix-cache-thrash"),
        ("unique_documents", (64,) * 6, "prefix-cache-thrash"),
        ("distinct_prefixes", (8, 40, 80, 120, 160, 320), None),
    ],
)
def test_a_first_token_waits_longer_with_more_prefixes(tmp_path: Path, name: str, callers: tuple[int, ...], cause: str | None) -> None:  # fmt: skip
    """With as many callers, how many different beginnings there are matters to a cache only; with more callers it may be their queue."""
    told = likely(tmp_path, sweep__csv=_sweep(name, callers), vllm__log=UP)
    assert (told == "prefix-cache-thrash") == (cause is not None)


def _asked(kept: int, name: str, size: int) -> str:
    """Forty callers at random; of a prompt's beginning as much is found as is left after `kept` others."""
    rows, last = [], {}
    for k in range(120):
        who = (k * 17 + k * k * 5) % 41
        again = k - last[who] if who in last else None
        last[who] = k
        rows.append(
            f"08:{k // 30:02}:{2 * (k % 30):02}.100,{name}{who:02},{size + 30 * (who % 5)},{size - 400 if again and again <= kept else 0},140,90\n"
        )
    return f"arrival,{name},prompt_tokens,cached_tokens,ttft_ms,output_tokens\n" + "".join(rows)


@pytest.mark.parametrize("name", ["assistant", "manual_id", "repo"])
def test_prompts_that_come_back_late_are_lost(tmp_path: Path, name: str) -> None:
    pool = UP.replace("390,000", "60,000")
    assert likely(tmp_path, requests__csv=_asked(14, name, 4000), vllm__log=pool) == "prefix-cache-thrash"


def test_prompts_that_are_found_again_are_not(tmp_path: Path) -> None:
    assert likely(tmp_path, requests__csv=_asked(200, "assistant", 4000), vllm__log=UP) != "prefix-cache-thrash"
