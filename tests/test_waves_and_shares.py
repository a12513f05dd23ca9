"""A queue that a scaler answers, and memory told in percent: from text to verdict, each beside its near miss."""

from __future__ import annotations

from pathlib import Path

import pytest

from verdicts import likely, tables

_HPA = """Name:                                  keda-hpa-chat
Reference:                             Deployment/chat
Metrics:                               ( current / target )
  "s0-prometheus" (target average value):  1 / 8
Min replicas:                          1
Max replicas:                          3
Deployment pods:                       3 current / 3 desired
Events:
  Normal  SuccessfulRescale  21m  horizontal-pod-autoscaler  New size: 3; reason: external metric s0-prometheus above target
"""


def _course(waiting: list[int], ready: list[int], head: str) -> str:
    rows = [f"{k},{w},{r}" for k, (w, r) in enumerate(zip(waiting, ready, strict=True))]
    return f"{head}\n" + "\n".join(rows) + "\n"


_RISE = [0, 3, 14, 29, 41, 44]
_GONE = [30, 12, 3, 1, 0, 2, 0, 1, 0, 0, 0, 1]
_STAYS = [43, 46, 44, 47, 49, 45, 48, 51, 47, 46, 49, 50]


@pytest.mark.parametrize(
    ("head", "waiting", "cause"),
    [
        ("minute,vllm:num_requests_waiting (sum),ready_replicas", _RISE + _GONE, "healthy"),
        ("t_min,requests_waiting_sum,replicas_ready", _RISE + _GONE, "healthy"),
        ("minute,vllm:num_requests_waiting (sum),ready_replicas", _RISE + _STAYS, None),
        ("minute,vllm:num_requests_waiting (sum),ready_replicas", [*_RISE, *_GONE[:6], *_RISE], None),
    ],
)
def test_a_wave_that_replicas_took_is_no_failure(
    tmp_path: Path, head: str, waiting: list[int], cause: str | None
) -> None:
    ready = [1] * 6 + [3] * (len(waiting) - 6)
    found = likely(tmp_path, hpa__txt=_HPA, course__csv=_course(waiting, ready, head))
    assert (found == "healthy") is (cause == "healthy"), found


def _percent(column: str, name: str, values: list[float]) -> str:
    return f"hour,{column},container\n" + "".join(f"{2 * k},{value},{name}\n" for k, value in enumerate(values))


@pytest.mark.parametrize(
    ("column", "values", "leak"),
    [
        ("node_memory_used_percent", [21 + 0.9 * k for k in range(60)], True),
        ("MEM %", [21 + 0.9 * k for k in range(60)], True),
        ("node_memory_used_percent", [21 + 25 * (1 - 0.9**k) for k in range(60)], False),  # caches fill, and stay
        ("node_memory_used_percent", [21 + 0.05 * k for k in range(60)], False),  # three hundredths in five days
        ("gpu_utilization_memory_pct", [21 + 0.9 * k for k in range(60)], False),  # how busy it is
        ("kv_cache_usage_percent", [21 + 0.9 * k for k in range(60)], False),
    ],
)
def test_memory_told_in_percent_of_the_whole(tmp_path: Path, column: str, values: list[float], leak: bool) -> None:
    rounded = [round(value, 1) for value in values]
    assert (likely(tmp_path, mem__csv=_percent(column, "rank-2", rounded)) == "memory-leak") is leak


def test_another_of_the_same_kind_that_stays_is_a_control(tmp_path: Path) -> None:
    grows = [round(18 + 0.8 * k, 1) for k in range(60)]
    level = [round(18 + 0.2 * (k % 3), 1) for k in range(60)]
    texts = {"new__csv": _percent("host_mem_pct", "v2", grows), "old__csv": _percent("host_mem_pct", "v1", level)}
    assert likely(tmp_path, **texts) == "memory-leak"


def test_a_share_of_memory_among_tries_is_no_size(tmp_path: Path) -> None:
    """A table of tries with memory in percent: a condition's figure, which no unit of bytes is sought for."""
    rows = ["max_num_seqs,gpu_mem_pct,host_mem_pct,ttft_p50_s,works"]
    rows += [f"{seqs},{40 + seqs / 8},{21 + k},{0.3 + k / 10:.1f},{'yes' if seqs < 256 else 'no'}" for k, seqs in enumerate((64, 128, 256))]  # fmt: skip
    (tmp_path / "tries.csv").write_text("\n".join(rows) + "\n")
    with tables(str(tmp_path)) as found:
        assert found.sql("SELECT count(*) FROM trial_figure WHERE quantity IN ('gpu_bytes', 'host_bytes')")[1] == [(0,)]
        assert found.sql("SELECT count(*) > 0 FROM trial")[1] == [(True,)]
