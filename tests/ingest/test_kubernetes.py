"""Cluster texts: descriptions, tables, objects, fragments, autoscalers, supervisors; and what is none of them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoc.evidence.tables import TABLES
from oomdoc.ingest import kubernetes, kubernetes_lines, make_head, scaler_lines
from oomdoc.ingest.base import Pattern
from oomdoc.intake.scan import chunks
from verdicts import analysed

PATTERNS = (*kubernetes_lines.PATTERNS, *scaler_lines.PATTERNS)
SAMPLES = [(pattern, text, want) for pattern in PATTERNS for text, want in pattern.samples]
NAMES = [f"{pattern.name}-{number}" for number, (pattern, _, _) in enumerate(SAMPLES)]


def told(text: str) -> list[tuple[str, dict[str, Any]]]:
    """What the patterns tell of a text, line by line."""
    found = []
    for line in text.split("\n"):
        for pattern in PATTERNS:
            if any(anchor in line for anchor in pattern.anchors):
                found += [(pattern.table, row) for row in pattern.rows(line)]
    return found


def read(text: str | bytes, size: int = 1 << 20) -> dict[str, list[dict[str, Any]]]:
    data = text if isinstance(text, bytes) else text.encode()
    tables: dict[str, list[dict[str, Any]]] = {}
    for batch in kubernetes.read("any", chunks(io.BytesIO(data), size)):
        names, columns = list(batch.columns), list(batch.columns.values())
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        tables.setdefault(batch.table, []).extend(rows)
    return tables


def flags(tables: dict[str, list[dict[str, Any]]]) -> dict[str, str]:
    return {row["flag"]: row["value"] for row in tables.get("engine_flag", [])}


def is_kubernetes(text: str) -> bool:
    return kubernetes.matches(make_head("any", text.encode()))


@pytest.mark.parametrize(("pattern", "text", "want"), SAMPLES, ids=NAMES)
def test_every_sample_gives_its_row(pattern: Pattern, text: str, want: dict[str, Any]) -> None:
    assert any(anchor in text for anchor in pattern.anchors)
    row = next(iter(pattern.rows(text)))
    assert {name: row.get(name) for name in want} == want
    assert set(row) <= set(TABLES[pattern.table].column_names)


@pytest.mark.parametrize(("pattern", "text", "want"), SAMPLES, ids=NAMES)
def test_no_sample_is_told_twice_in_one_table(pattern: Pattern, text: str, want: dict[str, Any]) -> None:
    others = [other for other in PATTERNS if other is not pattern and other.table == pattern.table]
    assert [other.name for other in others if list(other.rows(text))] == []


DESCRIBED = """NAME       READY   STATUS             RESTARTS        AGE
engine-0   0/1     CrashLoopBackOff   6 (90s ago)     21m
Name:             engine-0
Namespace:        lab
Controlled By:    ReplicaSet/engine
Init Containers:
  fetch:
    Image:         busybox:1.36
    State:          Terminated
      Reason:       Completed
      Exit Code:    0
    Ready:          True
    Restart Count:  0
Containers:
  engine:
    Image:         vllm/vllm-openai:v0.9.2
    Command:
      python3
      -m
      vllm.entrypoints.openai.api_server
      --model
      org/model
    Args:
      --max-model-len=16384
      --enforce-eager
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Started:      Thu, 19 Nov 2026 05:00:01 +0100
      Finished:     Thu, 19 Nov 2026 05:01:31 +0100
    Ready:          False
    Restart Count:  7
    Limits:
      memory:                  24Gi
      nvidia.com/mig-1g.10gb:  1
    Liveness:       http-get http://:8000/health delay=30s timeout=1s period=10s #success=1 #failure=3
    Environment:
      PYTORCH_CUDA_ALLOC_CONF:  expandable_segments:True
      OTHER_NAME:               ignored
    Mounts:
      /dev/shm from dshm (rw)
Volumes:
  dshm:
    Type:       EmptyDir (a temporary directory that shares a pod's lifetime)
    Medium:     Memory
    SizeLimit:  1Gi
QoS Class:      Burstable
Events:
  Type     Reason     Age                From     Message
  ----     ------     ----               ----     -------
  Warning  Unhealthy  2m (x9 over 8m)    kubelet  Liveness probe failed: HTTP probe failed with statuscode: 503
  Normal   Killing    90s (x3 over 8m)   kubelet  Container engine failed liveness probe, will be restarted
"""


@pytest.mark.parametrize("size", [64, 1 << 20])
def test_a_described_pod(size: int) -> None:
    assert is_kubernetes(DESCRIBED)
    tables = read(DESCRIBED, size)
    assert [row["name"] for row in tables["container"]] == ["fetch", "engine"]
    row = tables["container"][1]
    assert (row["pod"], row["state"], row["reason"]) == ("engine-0", "Waiting", "CrashLoopBackOff")
    assert (row["last_reason"], row["exit_code"], row["restarts"], row["ran_s"]) == ("OOMKilled", 137, 7, 90.0)
    assert (row["memory_limit_bytes"], row["mig_profile"]) == (24 << 30, "1g.10gb")
    assert row["liveness"].startswith("http-get") and row["gpus"] is None
    assert flags(tables) == {
        "version": "0.9.2",
        "model": "org/model",
        "max_model_len": "16384",
        "enforce_eager": "True",
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
    }


def test_events_are_left_to_the_patterns() -> None:
    assert "cluster_event" not in read(DESCRIBED)
    events = [row for table, row in told(DESCRIBED) if table == "cluster_event"]
    assert [(row["reason"], row.get("count")) for row in events] == [
        ("OOMKilled", None),
        ("Unhealthy", 9),
        ("Killing", 3),
    ]


def test_a_state_block_alone_with_odd_indentation() -> None:
    text = "      State:          Waiting\n   Reason:       CrashLoopBackOff\n Last State:     Terminated\n"
    text += "        Reason:       Error\n      Exit Code:    1\n"
    assert is_kubernetes(text)
    (row,) = read(text)["container"]
    assert (row["state"], row["reason"], row["last_reason"], row["exit_code"]) == (
        "Waiting",
        "CrashLoopBackOff",
        "Error",
        1,
    )
    assert row["pod"] is None and row["name"] is None and row["restarts"] is None


def test_a_list_of_pods_and_their_memory() -> None:
    text = "NAMESPACE   NAME   READY   STATUS   RESTARTS   AGE\n"
    text += "lab   engine-0   0/1   OOMKilled   4 (25s ago)   9m\nlab   web-1   1/1   Running   0   2d\n"
    assert is_kubernetes(text)
    first, second = read(text)["container"]
    assert (first["pod"], first["last_reason"], first["restarts"]) == ("engine-0", "OOMKilled", 4)
    assert (second["state"], second["last_reason"], second["restarts"]) == ("Running", None, 0)
    top = "NAME       CPU(cores)   MEMORY(bytes)\nengine-0   2114m        15230Mi\n"
    (sample,) = read(top)["process_memory"]
    assert (sample["name"], sample["bytes"], sample["resource"]) == ("engine-0", 15230 << 20, "host")


POD: dict[str, Any] = {
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "vllm/vllm-openai:v0.8.4",
                "args": ["--model", "org/m", "--max-num-seqs=8"],
                "resources": {"limits": {"memory": "16Gi", "nvidia.com/gpu": "2"}},
                "startupProbe": {"httpGet": {"path": "/health", "port": 8000}, "failureThreshold": 6},
                "volumeMounts": [{"name": "s", "mountPath": "/dev/shm"}],
            }
        ],
        "volumes": [{"name": "s", "emptyDir": {"medium": "Memory", "sizeLimit": "512Mi"}}],
    },
    "status": {
        "containerStatuses": [
            {
                "name": "c",
                "restartCount": 3,
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {
                    "terminated": {
                        "exitCode": 137,
                        "reason": "Error",
                        "startedAt": "2026-11-19T04:00:00Z",
                        "finishedAt": "2026-11-19T04:00:18Z",
                    }
                },
            }
        ]
    },
}
EVENT = {
    "kind": "Event",
    "reason": "Unhealthy",
    "type": "Warning",
    "message": "Startup probe failed: refused",
    "count": 4,
    "lastTimestamp": "2026-11-19T04:00:01Z",
    "involvedObject": {"kind": "Pod", "name": "p"},
}


@pytest.mark.parametrize("indent", [None, 1])
def test_objects_as_json(indent: int | None) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [POD, EVENT]}, indent=indent)
    assert is_kubernetes(text)
    tables = read(text)
    (row,) = tables["container"]
    assert (row["pod"], row["gpus"], row["ran_s"]) == ("p", 2, 18.0)
    assert row["startup"] == "http-get http://:8000/health delay=0s timeout=1s period=10s #success=1 #failure=6"
    (event,) = tables["cluster_event"]
    assert (event["object"], event["count"], event["t"]) == ("pod/p", 4, 1795060801.0)
    assert flags(tables)["max_num_seqs"] == "8" and flags(tables)["model"] == "org/m"
    assert row["line"] >= 1 and (indent is None or row["line"] > 3)


def test_a_manifest_and_a_scaler_as_yaml() -> None:
    text = """apiVersion: apps/v1
kind: Deployment
metadata:
  name: engine
spec:
  template:
    spec:
      containers:
      - name: engine
        image: vllm/vllm-openai:latest
        args:
        - --model
        - org/m
        - "--tensor-parallel-size=2"
        env:
        - {name: VLLM_USE_V1, value: "0"}
        resources:
          limits: {memory: 8Gi}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
spec:
  triggers:
  - type: cpu
    metadata:
      value: "80"
"""
    assert is_kubernetes(text)
    tables = read(text)
    assert tables["container"][0]["memory_limit_bytes"] == 8 << 30
    assert flags(tables) == {"VLLM_USE_V1": "0", "model": "org/m", "tensor_parallel_size": "2"}
    assert [(row["kind"], row["name"], row["line"]) for row in tables["scaler"]] == [("metric", "cpu", 24)]


def test_docker_inspect() -> None:
    state = {"Status": "exited", "OOMKilled": True, "ExitCode": 137}
    config = {"Image": "vllm/vllm-openai:v0.9.1", "Cmd": ["--model", "org/m"], "Env": ["VLLM_X=1"]}
    host = {"Memory": 1 << 34, "ShmSize": 64 << 20}
    text = json.dumps(
        [{"Name": "/e", "RestartCount": 2, "State": state, "HostConfig": host, "Config": config}], indent=2
    )
    assert is_kubernetes(text)
    tables = read(text)
    (row,) = tables["container"]
    assert (row["last_reason"], row["restarts"], row["memory_limit_bytes"]) == ("OOMKilled", 2, 1 << 34)
    assert row["name"] == "e"  # as `docker ps` and exporters call it
    assert flags(tables) == {"version": "0.9.1", "VLLM_X": "1", "model": "org/m"}


def test_a_node_counts_its_devices_once() -> None:
    text = """Name:               node-b
Labels:             nvidia.com/gpu.product=NVIDIA-A100-SXM4-80GB
                    nvidia.com/gpu.memory=81920
Capacity:
  nvidia.com/gpu:     8
Allocatable:
  nvidia.com/gpu:     8
"""
    assert is_kubernetes(text)
    (row,) = read(text)["gpu_device"]
    assert (row["name"], row["count"], row["total_bytes"]) == ("NVIDIA A100 SXM4 80GB", 8, 81920 << 20)


def test_an_autoscaler_without_its_metric() -> None:
    text = """Conditions:
  Type           Status  Reason                 Message
  ----           ------  ------                 -------
  AbleToScale    True    SucceededGetScale      the controller was able to get the current scale
  ScalingActive  False   FailedGetPodsMetric    unable to get metric queue_len: no metrics returned
"""
    assert is_kubernetes(text)
    rows = [row for _, row in told(text)]
    assert [(row["kind"], row.get("status")) for row in rows] == [
        ("condition", "True"),
        ("condition", "False"),
        ("blind", None),
    ]


def test_an_annotation_file() -> None:
    assert is_kubernetes("serving.example.org/model-id: small-model\n")
    (row,) = read("serving.example.org/model-id: small-model\n")["scaler"]
    assert (row["kind"], row["status"]) == ("annotation", "small-model")


def test_a_supervisor_that_plays_the_kubelet() -> None:
    text = "\n".join(
        f"2026-11-19T04:00:0{number}Z keeper: {said}"
        for number, said in enumerate(
            [
                "started pid=11 restart=0",
                "startup probe failed: refused",
                "startup probe deadline 9s exceeded, sending SIGTERM",
                "pid=11 exited code=-9",
                "started pid=12 restart=1",
            ]
        )
    )
    assert is_kubernetes(text)
    rows = told(text)
    assert [row.get("reason") or row["exit_code"] for _, row in rows] == [
        "Started",
        "Unhealthy",
        "Killing",
        -9,
        "Restarted",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "INFO 01-05 12:00:00 [api_server.py:1] vLLM API server version 0.9.1\n" * 9 + "  Reason: nothing\n",
        "Name: a story\nOnce upon a time there was a pod.\n",
        "Warning  this model is old\nNormal  people read on\n",
        '{"model": "org/m", "max_model_len": 4096}',
        "vllm serve org/m --max-model-len 4096\n",
    ],
)
def test_other_texts_are_not_the_clusters(text: str) -> None:
    assert not is_kubernetes(text)


@pytest.mark.parametrize(
    "line",
    [
        "Warning  this model may be slow",
        '    "message": "Startup probe failed: refused",',
        "  message: Liveness probe failed: HTTP probe failed",
        "the container was not OOMKilled, exit code 137 came from elsewhere",
        '        "OOMKilled": false,',
        "restart=always",
        "there is no metrics endpoint to skip",
        "the program exited early",
    ],
)
def test_near_misses_are_no_events(line: str) -> None:
    assert told(line) == []


def test_a_broken_object_is_a_problem() -> None:
    assert list(read('{"kind": "Pod", "spec": ')) == ["problem"]


@given(st.binary(max_size=400) | st.text(max_size=300).map(str.encode))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_read_without_an_exception(data: bytes) -> None:
    kubernetes.matches(make_head("any", data))
    read(data, 64)
    told(data.decode("utf-8", "replace"))


@given(st.lists(st.sampled_from(DESCRIBED.split("\n")), max_size=40))
@settings(max_examples=100, deadline=None)
def test_any_order_of_known_lines_is_read_without_an_exception(lines: list[str]) -> None:
    read("\n".join(lines), 200)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["kind", "spec", "status", "items", "containers", "metadata", "name", "containerStatuses", "State",
                         "HostConfig", "env", "resources", "limits", "args", "state", "lastState", "involvedObject", "reason",
                         "capacity", "labels", "metrics", "template", "triggers", "volumes", "emptyDir"]),
        inner | st.sampled_from(["Pod", "Event", "Node", "List", "HorizontalPodAutoscaler", "ScaledObject"]),
        max_size=5,
    ),
    max_leaves=25,
)  # fmt: skip


@given(JSON)
@settings(max_examples=200, deadline=None)
def test_any_object_is_read_without_an_exception(value: Any) -> None:
    read(json.dumps(value))


# ---- nodes, measurements, hand-written YAML

NODE = """\
apiVersion: v1
kind: Node
metadata:
  name: gpu-1
  labels:
    nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3
    nvidia.com/gpu.memory: "81559"
    nvidia.com/gpu.count: "8"
    nvidia.com/gpu.replicas: "4"
status:
  capacity:
    nvidia.com/gpu: "32"
  conditions:
  - type: MemoryPressure
    status: "True"
    message: kubelet has insufficient memory available
    lastTransitionTime: "2026-11-20T20:04:51Z"
"""


def test_a_node_under_memory_pressure() -> None:
    (event,) = read(NODE)["cluster_event"]
    assert (event["reason"], event["object"], event["t"], event["line"]) == (
        "MemoryPressure",
        "node/gpu-1",
        1795205091.0,
        14,
    )
    assert "cluster_event" not in read(NODE.replace('status: "True"', 'status: "False"'))
    assert "cluster_event" not in read(NODE.replace("MemoryPressure", "DiskPressure"))


def test_time_slicing_does_not_multiply_devices() -> None:
    assert [row["count"] for row in read(NODE)["gpu_device"]] == [8]
    assert [row["count"] for row in read(NODE.replace('replicas: "4"', 'replicas: "1"'))["gpu_device"]] == [32]


def test_what_the_kubelet_measures_and_top_prints() -> None:
    summary = {
        "node": {"nodeName": "gpu-1", "memory": {"workingSetBytes": 9}},
        "pods": [{"podRef": {"name": "chat-0"}, "containers": [
            {"name": "vllm", "memory": {"time": "2026-11-20T20:04:51Z", "workingSetBytes": 67_000_000_000}},
            {"name": "proxy", "memory": {"time": "2026-11-20T20:04:51Z"}},
        ]}],
    }  # fmt: skip
    text = json.dumps(summary, indent=1)
    assert is_kubernetes(text)
    (row,) = read(text)["process_memory"]
    assert (row["name"], row["bytes"], row["t"]) == ("vllm", 67_000_000_000, 1795205091.0)
    top = "POD      NAME   CPU(cores)   MEMORY(bytes)\nchat-0   vllm   950m         61234Mi\n"
    assert is_kubernetes(top)
    assert [(row["name"], row["bytes"]) for row in read(top)["process_memory"]] == [("vllm", 61234 << 20)]
    nodes = "NAME    CPU(cores)   CPU%   MEMORY(bytes)   MEMORY%\ngpu-1   9500m        9%     1000Gi          94%\n"
    assert is_kubernetes(nodes)
    assert "process_memory" not in read(nodes)  # a machine is no process


def test_a_pod_with_anchors_and_a_script() -> None:
    text = """\
apiVersion: v1
kind: Pod
metadata:
  annotations: &note
    "a/b": 'x: y'
  name: chat-0
spec:
  containers:
  - name: vllm
    image: vllm/vllm-openai:v0.11.0
    command: ["/bin/sh", "-c"]
    args:
    - "export A=1\\nvllm serve acme/m-7b --max-model-len 32768"
    resources:
      limits: &limits
        memory: 64Gi
        nvidia.com/gpu: "2"
      requests: *limits
status:
  containerStatuses:
  - name: vllm
    restartCount: 3
    lastState:
      terminated: {exitCode: 137, reason: OOMKilled}
"""
    tables = read(text)
    (row,) = tables["container"]
    assert (row["memory_limit_bytes"], row["gpus"], row["last_reason"], row["exit_code"]) == (
        64 << 30,
        2,
        "OOMKilled",
        137,
    )
    assert flags(tables) == {"version": "0.11.0", "model": "acme/m-7b", "max_model_len": "32768"}


@pytest.mark.parametrize(
    ("text", "table", "values"),
    [
        ("decode-7d9f6-bb4wq   1/1 Running 0 3d\ndecode-7d9f6-x2lpn   1/1 Running 2 3d\n", "container", {"pod": "decode-7d9f6-x2lpn", "restarts": 2}),
        ("model-0   2110m   21480Mi\n", "process_memory", {"name": "model-0", "bytes": 21480 << 20}),
    ],
)  # fmt: skip
def test_rows_of_a_listing_are_read_without_its_header(text: str, table: str, values: dict[str, object]) -> None:
    head = make_head("pods.txt", text.encode())
    assert kubernetes.matches(head)
    rows = [batch for batch in kubernetes.read("pods.txt", chunks(io.BytesIO(text.encode()))) if batch.table == table]
    assert {name: rows[0].columns[name][-1] for name in values} == values
    assert not kubernetes.matches(make_head("note.txt", (text + "that is all\n").encode()))


def test_a_task_that_runs_is_one_and_another_services_end_is_not_its_own(tmp_path: Path) -> None:
    tasks = [
        {
            "taskArn": "arn:aws:ecs:x:0:task/prod/1",
            "group": "service:umbra-chat",
            "lastStatus": "RUNNING",
            "startedAt": "2026-01-20T06:03:12+00:00",
            "memory": "65536",
            "containers": [{"name": "engine", "image": "vllm/vllm-openai:v0.13.0", "gpuIds": ["GPU-1", "GPU-2"]}],
        },
        {
            "taskArn": "arn:aws:ecs:x:0:task/prod/2",
            "group": "service:thumbs",
            "lastStatus": "STOPPED",
            "stoppedAt": "2026-01-19T21:40:55+00:00",
            "stoppedReason": "Essential container in task exited",
            "containers": [
                {"name": "thumbs", "exitCode": 137, "reason": "OutOfMemoryError: Container killed due to memory usage"}
            ],
        },
    ]
    (tmp_path / "tasks.json").write_text(json.dumps({"tasks": tasks}), encoding="utf-8")
    (tmp_path / "engine.log").write_text(
        "INFO 01-20 06:03:54 [api_server.py:1896] vLLM API server version 0.13.0\n"
        "INFO 01-20 06:05:03 [api_server.py:1971] Starting vLLM API server 0 on http://0.0.0.0:8000\n"
        "INFO 01-20 06:06:00 [loggers.py:257] Engine 000: Avg prompt throughput: 76.7 tokens/s, Avg generation throughput: 78.1 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 4.1%, Prefix cache hit rate: 3.0%\n",
        encoding="utf-8",
    )
    with analysed(tmp_path) as analysis:
        _, (runs,) = analysis.sql(
            "SELECT pod, state, last_reason, serves, gpus, memory_limit_bytes FROM container ORDER BY state"
        )
        assert runs == ("umbra-chat", "Running", None, True, 2, 64 * 1024**3)
        assert analysis.report.diagnoses[0].cause != "host-memory-exhausted"


def test_the_room_of_a_volume_that_is_shared_memory() -> None:
    manifest = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: chat-0}\nspec:\n  containers:\n  - name: engine\n    image: vllm/vllm-openai:v0.11.0\n"
        "    volumeMounts:\n    - {name: models, mountPath: /models}\n    - {name: fast, mountPath: /dev/shm}\n"
        "  - name: proxy\n    image: nginx:1.27\n    volumeMounts: [{name: fast, mountPath: /dev/shm}]\n"
        "  volumes:\n  - {name: models, emptyDir: {sizeLimit: 90Gi}}\n  - {name: fast, emptyDir: {medium: Memory, sizeLimit: 12Gi}}\n"
    )
    described = (
        "Name:         chat-0\nNamespace:    ml\nContainers:\n  engine:\n    Image:          vllm/vllm-openai:v0.11.0\n    Restart Count:  2\n"
        "    Mounts:\n      /dev/shm from fast (rw)\n      /models from models (ro)\nVolumes:\n  models:\n    Type:       EmptyDir\n    SizeLimit:  90Gi\n"
        "  fast:\n    Type:       EmptyDir (a temporary directory that shares a pod's lifetime)\n    Medium:     Memory\n    SizeLimit:  12Gi\nEvents:  <none>\n"
    )
    for name, text in (("pod.yaml", manifest), ("describe.txt", described)):
        sizes = [row["value"] for row in read(text)["note"] if row["topic"] == "shm-size"]
        assert sizes == [12 * 2**30], name
