"""Autoscalers of Knative and KServe: what they aim at, what they observed, from text to verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

import oomdoc
from verdicts import SIGNS, tables

SERVICE = """apiVersion: serving.knative.dev/v1
kind: Service
metadata:
  name: draft-13b
  namespace: writers
spec:
  template:
    metadata:
      annotations:
        autoscaling.knative.dev/metric: rps
        autoscaling.knative.dev/target: "{target}"
        autoscaling.knative.dev/min-scale: "2"
        autoscaling.knative.dev/max-scale: "6"
    spec:
      containerConcurrency: 0
"""
PREDICTOR = """apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata:
  name: draft-13b
spec:
  predictor:
    minReplicas: 2
    maxReplicas: 6
    scaleMetric: rps
    scaleTarget: {target}
    model:
      modelFormat: {{name: huggingface}}
"""
LINE = (
    "{ts} For metric rps observed values: stable = {stable}; panic = {stable}; target = {aim} Desired StablePodCount = {wanted}, "
    "PanicPodCount = {wanted}, ReadyEndpointCount = 2, MaxScaleUp = 2000, MaxScaleDown = 1\n"
)
START = (
    "INFO 04-09 08:00:01 [api_server.py:1839] vLLM API server version 0.11.0\n"
    "INFO 04-09 08:00:02 [utils.py:253] non-default args: {'model': 'org/draft-13b', 'max_model_len': 16384}\n"
    "INFO 04-09 08:02:41 [launcher.py:46] Application startup complete.\n"
)
STAT = (
    "INFO 04-09 10:0{m}:10 [loggers.py:127] Engine 000: Avg prompt throughput: 6120.0 tokens/s, Avg generation throughput: 310.2 tokens/s, "
    "Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: 44.0%, Prefix cache hit rate: 2.0%\n"
)


def analyzed(tmp_path: Path, service: str, stable: float, aim: float, wanted: int, waiting: int) -> oomdoc.Report:
    (tmp_path / "service.yaml").write_text(service)
    seen = "".join(
        LINE.format(ts=f"2026-04-09T10:0{at}:00Z", stable=f"{stable:.3f}", aim=f"{aim:.3f}", wanted=wanted)
        for at in range(6)
    )
    (tmp_path / "scaler.txt").write_text(
        f"$ kubectl -n writers get podautoscaler\nNAME              DESIREDSCALE   ACTUALSCALE   READY   REASON\ndraft-13b-00007   {wanted}              2             True\n$ kubectl -n knative-serving logs deploy/autoscaler\n{seen}"
    )
    (tmp_path / "engine.log").write_text(
        START + "".join(STAT.format(m=m, waiting=waiting, running=18 + m % 3) for m in range(6))
    )
    with oomdoc.analyze(tmp_path, SIGNS) as analysis:
        return analysis.report


@pytest.mark.parametrize("service", [SERVICE, PREDICTOR])
def test_a_target_that_saturated_pods_never_reach(tmp_path: Path, service: str) -> None:
    told = analyzed(tmp_path, service.format(target=40), stable=18.0, aim=28.0, wanted=2, waiting=55)
    first = told.diagnoses[0]
    assert (told.verdict, first.cause) == ("diagnosed", "autoscaling-blind")
    said = {item.id: item.says for item in first.evidence}
    assert said["signal-stays-below-target"].startswith("rps is 9, target 28, ")
    assert "stayed at 2, of at most 6" in said["replicas-stand-under-load"]


@pytest.mark.parametrize(
    ("stable", "wanted", "waiting"),
    [(18.0, 2, 0), (60.0, 3, 8)],  # nobody waits; it sees the load, and adds a pod
)
def test_a_scaler_that_sees_what_there_is(tmp_path: Path, stable: float, wanted: int, waiting: int) -> None:
    told = analyzed(tmp_path, SERVICE.format(target=40), stable, 28.0, wanted, waiting)
    assert not told.diagnoses or told.diagnoses[0].cause != "autoscaling-blind" or told.verdict != "diagnosed"


def scalers(tmp_path: Path, name: str, text: str) -> list[tuple[object, ...]]:
    (tmp_path / name).write_text(text)
    with tables(tmp_path) as analysis:
        return analysis.sql("SELECT kind, name, target, threshold, minimum, maximum FROM main.scaler ORDER BY line, kind DESC")[1]  # fmt: skip


def test_what_a_service_aims_at(tmp_path: Path) -> None:
    rows = scalers(tmp_path, "service.yaml", SERVICE.format(target=40))
    assert rows == [("metric", "rps", "draft-13b", 28.0, None, None), ("condition", "bounds", "draft-13b", None, 2, 6)]


def test_a_share_of_its_own_and_a_limit_of_the_pods(tmp_path: Path) -> None:
    text = SERVICE.replace("metric: rps", 'target-utilization-percentage: "90"').replace(
        '        autoscaling.knative.dev/target: "{target}"\n', ""
    )
    rows = scalers(tmp_path, "service.yaml", text.replace("containerConcurrency: 0", "containerConcurrency: 20"))
    assert ("metric", "concurrency", "draft-13b", 18.0, None, None) in rows


def test_one_replica_and_no_more_is_no_scaler(tmp_path: Path) -> None:
    text = PREDICTOR.replace("    scaleMetric: rps\n    scaleTarget: {target}\n", "").replace(
        "Replicas: 6", "Replicas: 1"
    )
    assert not scalers(tmp_path, "isvc.yaml", text.format().replace("minReplicas: 2", "minReplicas: 1"))
