"""From text to verdict: layouts that are compared, and scalers by their own figures; each with a near miss."""

from __future__ import annotations

from pathlib import Path

import pytest

from verdicts import analysed, first, shows

_WORKER = "(VllmWorker rank={rank} pid={pid}) INFO 03-02 11:00:0{second} [{file}] {text}\n"


def _start(ranks: int, weights: str, room: str, tokens: str) -> str:
    loaded = "".join(_WORKER.format(rank=r, pid=80 + r, second=1, file="gpu_model_runner.py:1", text=f"Model loading took {weights} GiB and 31.5 seconds") for r in range(ranks))  # fmt: skip
    left = "".join(_WORKER.format(rank=r, pid=80 + r, second=2, file="gpu_worker.py:2", text=f"Available KV cache memory: {room} GiB") for r in range(ranks))  # fmt: skip
    return (
        loaded
        + left
        + f"(EngineCore_0 pid=70) INFO 03-02 11:00:03 [kv_cache_utils.py:3] GPU KV cache size: {tokens} tokens\n"
    )


def test_two_starts_whose_tokens_cost_the_same_on_a_rank(tmp_path: Path) -> None:
    assert first(tmp_path, {"two.log": _start(2, "30.11", "10.00", "131,072"), "four.log": _start(4, "15.20", "24.00", "314,572")})[0] == "tp-overhead"  # fmt: skip


def test_two_starts_whose_tokens_cost_half(tmp_path: Path) -> None:
    cause, probability = first(tmp_path, {"two.log": _start(2, "30.11", "10.00", "131,072"), "four.log": _start(4, "15.20", "24.00", "629,145")})  # fmt: skip
    assert cause not in ("tp-overhead", "rank-imbalance") or probability < 0.15


def test_one_rank_of_one_start_has_less_room(tmp_path: Path) -> None:
    uneven = _start(4, "15.20", "24.00", "131,072").replace("rank=3 pid=83) INFO 03-02 11:00:02 [gpu_worker.py:2] Available KV cache memory: 24.00", "rank=3 pid=83) INFO 03-02 11:00:02 [gpu_worker.py:2] Available KV cache memory: 10.00")  # fmt: skip
    assert first(tmp_path, {"serve.log": uneven})[0] == "rank-imbalance"


@pytest.mark.parametrize(("second", "told"), [("1,140", True), ("2,600", False)])
def test_a_table_of_generated_tokens(tmp_path: Path, second: str, told: bool) -> None:
    table = f"config;generation tokens/s;TTFT p50 ms\nTP=1;1,520;210\nTP=2;{second};250\n"
    assert shows(tmp_path, {"bench.csv": table}, "tp-overhead", "more-shards-are-slower") is told


@pytest.mark.parametrize(("reached", "told"), [((1, 1, 2, 2, 2, 2, 3, 3), True), ((1, 4, 8, 9, 9, 9, 9, 9), False)])
def test_a_watched_scaler_behind_a_clock(tmp_path: Path, reached: tuple[int, ...], told: bool) -> None:
    values = (40, 55, 60, 62, 58, 61, 57, 60) if told else (40, 12, 9, 6, 6, 5, 6, 5)
    rows = "".join(f"14:0{minute}:00 chat  StatefulSet/chat  {value}/6  1  10  {replicas}  2d\n" for minute, (value, replicas) in enumerate(zip(values, reached, strict=True)))  # fmt: skip
    cause, probability = first(
        tmp_path,
        {
            "watch.txt": "NAME  REFERENCE  TARGETS  MINPODS  MAXPODS  REPLICAS  AGE\n" + rows,
            "pod.prom": '# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine="0"} 31\n',
        },
    )
    assert (cause == "autoscaling-blind" and probability > 0.5) is told


_TRIGGER = """triggers:
- type: prometheus
  metadata:
    query: avg(vllm:num_requests_waiting{{namespace="nlp"}})
    threshold: "{threshold}"
minReplicaCount: 1
maxReplicaCount: 5
scaleTargetRef: {{name: writer}}
"""


@pytest.mark.parametrize(("other", "told"), [("rerank", True), ("writer", False)])
def test_an_instant_query_over_two_models(tmp_path: Path, other: str, told: bool) -> None:
    answers = "".join(f'{{pod="p{n}", model_name="{model}"}} => {value} @[1790000000]\n' for n, (model, value) in enumerate([("writer", 44), (other, 0), (other, 0), (other, 1)]))  # fmt: skip
    query = '## vllm:num_requests_waiting{namespace="nlp"}\n' + answers
    (tmp_path / "q.txt").write_text(query)
    (tmp_path / "so.yaml").write_text(_TRIGGER.format(threshold=16))
    with analysed(str(tmp_path)) as analysis:
        top = analysis.report.diagnoses[0]
        signs = {evidence.id for evidence in top.evidence}
    assert (top.cause == "autoscaling-blind" and "mean-over-other-servers" in signs) is told


def test_a_document_of_runs_beside_a_setting(tmp_path: Path) -> None:
    text = """{"gpu_memory_utilization": 0.92, "runs": [
 {"layout": "TP4", "kv_gib": 21.0, "kv_tokens": 320000},
 {"layout": "TP16", "kv_gib": 63.0, "kv_tokens": 960000}]}
"""
    assert first(tmp_path, {"runs.json": text})[0] == "tp-overhead"
