"""Timers, counters and caches as dashboards and fragments tell them: from text to verdict, each beside its near miss."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from verdicts import likely


def _board(names: str, full: bool) -> str:
    rows = [
        f"{9 + k // 12:02}:{k % 12 * 5:02};{31 + 2 * min(k, 33) if full else 31 + k % 5},{k % 7};{41 - k // 3 if full else 22};{max(0, k - 20) * 3 if full else 0};{40 + max(0, k - 20) * 21 if full else 40}".replace(
            ",", "."
        )
        for k in range(40)
    ]
    return names + "\n" + "\n".join(rows) + "\n"


GERMAN = "Uhrzeit;KV-Cache-Belegung (%);Laufende Anfragen;Warteschlange;Verdrängungen gesamt"
FRENCH = "Heure;Occupation du cache KV (%);En cours;File d'attente;Préemptions"


def _scrapes(rises: tuple[int, ...], n: int = 14) -> str:
    rows = [f"2026-03-{k + 1:02},{2 * sum(k >= at for at in rises)},{0.97 if k in rises else 0.41 + k % 3 / 50},{5 if k in rises else 0}" for k in range(n)]  # fmt: skip
    return "date,preemptions_total,kv_max_1d,waiting_max_1d\n" + "\n".join(rows) + "\n"


def _idle(share: float) -> str:
    one = f"vllm:num_requests_running 0.0\nvllm:num_requests_waiting 0.0\nvllm:kv_cache_usage_perc {share}\nvllm:request_success_total 812.0\n"
    return "".join(f"## look {k}\n{one}" for k in range(4))


def _grown(kept: float) -> str:
    times = [1772000000 + 60 * k for k in range(30)]
    hits = [41000 if k < 9 else round(41000 * kept) for k in range(30)]
    series = {"increase(vllm:prefix_cache_queries_total[1m])": [50000] * 30, "increase(vllm:prefix_cache_hits_total[1m])": hits, "kv_cache_usage_perc": [0.31] * 30}  # fmt: skip
    result = [{"metric": {"__name__": name}, "values": [[t, str(v)] for t, v in zip(times, values, strict=True)]} for name, values in series.items()]  # fmt: skip
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def _talks(found: float) -> str:
    turns = [{"session": f"s{k % 4}", "prompt_tokens": 9000 + 700 * (k // 4), "cached_tokens": int(found * 9000), "completion_tokens": 210, "ttft_ms": 900} for k in range(24)]  # fmt: skip
    return "".join(json.dumps(turn) + "\n" for turn in turns)


def _probed(fails_before: bool) -> str:
    rows = [
        f"14:{k:02},{3 + (k >= 12) + (k >= 25)},{(7 + 3 * (k >= 11) + 3 * (k >= 24)) if fails_before else 7 + 3 * (k >= 17)},{30 if k % 13 in (9, 10) else 6},{0.31 if k % 13 in (9, 10) else 0.08}"
        for k in range(36)
    ]
    return "minute,container_restarts_total,liveness_failures_total,requests_running,kv_usage\n" + "\n".join(rows) + "\n"  # fmt: skip


def _lives(lengths: tuple[int, ...], reason: str) -> str:
    begins = [9000 + 1500 * k for k in range(len(lengths))]
    clock = lambda s: f"{s // 3600:02}:{s % 3600 // 60:02}:{s % 60:02}"  # noqa: E731
    return "started,ended,exit_code,reason\n" + "".join(f"{clock(b)},{clock(b + n)},137,{reason}\n" for b, n in zip(begins, lengths, strict=True))  # fmt: skip


POD = """
containers:
- name: server
  image: registry/vllm-openai:v0.11.0
  args: [--model, /w/Qwen3-235B-A22B]
  startupProbe: {httpGet: {path: /health, port: 8000}, periodSeconds: 15, failureThreshold: 40}
"""
BOX = """status:
  containerStatuses:
  - name: vllm
    ready: true
    restartCount: 5
    state: {running: {startedAt: "2026-01-05T02:11:00Z"}}
    lastState:
      terminated: {exitCode: %d, reason: %s, startedAt: "2026-01-01T00:00:00Z", finishedAt: "2026-01-05T02:04:00Z"}
"""


def _stands(generated: float) -> str:
    moves = "".join(f"INFO 03-18 05:{k // 6:02}:{k % 6}0 [loggers.py:123] Engine 000: Avg prompt throughput: 200.0 tokens/s, Avg generation throughput: 180.0 tokens/s, Running: 8 reqs, Waiting: 0 reqs, GPU KV cache usage: {40 + 2 * k}.0%, Prefix cache hit rate: 1.0%\n" for k in range(28))  # fmt: skip
    return moves + "".join(f"INFO 03-18 06:{k // 6:02}:{k % 6}0 [loggers.py:123] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: {generated} tokens/s, Running: {8 - (k // 4 if generated else 0)} reqs, Waiting: {k} reqs, GPU KV cache usage: 97.2%, Prefix cache hit rate: 1.0%\n" for k in range(12))  # fmt: skip


def _gateway(timed: bool) -> str:
    rows = [f"2026-05-02T08:{k:02}:00Z,{'504,' + str(90003 + k % 5 if timed else 20000 + k * 911) + ',' if k % 3 == 0 else '200,' + str(4000 + 700 * (k % 20)) + ',' + str(80 + 9 * (k % 20))}" for k in range(50)]  # fmt: skip
    return "ts,status,request_time_ms,completion_tokens\n" + "\n".join(rows) + "\n"


METRICS = "vllm:num_requests_running 4\nvllm:num_requests_waiting 0\nvllm:kv_cache_usage_perc 0.22\nvllm:num_preemptions_total 0\n"
AUTOHEAL = "".join(f"03-04-2026 0{k}:11:02 Container /engine (1f5a) found to be unhealthy - Restarting container now with 10s timeout\n" for k in range(1, 5))  # fmt: skip
INSPECT = json.dumps({"State": {"Status": "running", "OOMKilled": False, "ExitCode": 0, "StartedAt": "2026-04-03T04:11:20Z", "Health": {"Status": "healthy", "Log": [{"Start": f"2026-04-03T04:1{k}:00Z", "ExitCode": 1, "Output": "timed out"} for k in range(3)]}}})  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "cause"),
    [
        ({"a.csv": _board(GERMAN, True)}, "kv-demand-exceeds-pool"),
        ({"a.csv": _board(FRENCH, True)}, "kv-demand-exceeds-pool"),
        ({"a.csv": _scrapes((3,))}, "healthy"),
        ({"a.csv": _scrapes((3, 6, 9, 12, 13))}, "kv-demand-exceeds-pool"),  # it goes on
        ({"looks.txt": _idle(0.64)}, "memory-leak"),
        ({"looks.txt": _idle(0.0)}, "healthy"),
        ({"range.json": _grown(0.02)}, "prefix-cache-thrash"),
        ({"talks.jsonl": _talks(0.001)}, "prefix-cache-thrash"),
        ({"minutes.csv": _probed(True), "vllm.log": _stands(180.0).split("INFO 03-18 05:01")[0]}, "probe-restart-loop"),
        ({"lives.csv": _lives((630, 631, 629, 630), "Error"), "pod.yaml": POD}, "probe-restart-loop"),
        ({"lives.csv": _lives((630, 631, 629, 630), "OOMKilled"), "pod.yaml": POD}, "host-memory-exhausted"),
        ({"pod.yaml": BOX % (255, "Unknown")}, "healthy"),  # its machine was started anew
        ({"pod.yaml": BOX % (137, "OOMKilled")}, "host-memory-exhausted"),
        ({"vllm.log": _stands(0.0)}, "not-memory"),
        ({"vllm.log": _stands(120.0)}, "kv-demand-exceeds-pool"),  # it goes on, and fewer run
        ({"access.csv": _gateway(True), "metrics.txt": METRICS}, "not-memory"),
        ({"watch.log": AUTOHEAL, "inspect.json": INSPECT, "metrics.txt": METRICS}, "probe-restart-loop"),
    ],
)
def test_what_a_timer_a_counter_or_a_cache_tells(tmp_path: Path, texts: dict[str, str], cause: str) -> None:
    assert likely(tmp_path, texts) == cause


@pytest.mark.parametrize(
    ("texts", "cause"),
    [
        ({"range.json": _grown(1.0)}, "prefix-cache-thrash"),  # hits as before
        ({"talks.jsonl": _talks(0.9)}, "prefix-cache-thrash"),
        ({"minutes.csv": _probed(False)}, "probe-restart-loop"),  # probes failed at another time
        ({"lives.csv": _lives((214, 630, 97, 402), "Error"), "pod.yaml": POD}, "probe-restart-loop"),  # no timer
        ({"access.csv": _gateway(False), "metrics.txt": METRICS}, "not-memory"),  # no common age
    ],
)
def test_what_they_do_not_tell(tmp_path: Path, texts: dict[str, str], cause: str) -> None:
    assert likely(tmp_path, texts) != cause
