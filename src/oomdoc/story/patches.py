"""The first change as it is pasted: flags, a variable of the environment, and patches for Kubernetes, Helm and compose.

Kubernetes replaces a container's whole `args`, compose the whole `command`: where the bundle shows the launch command a patch
has all of it, else it names what to add (`whole` is False). Helm speaks to the chart of vLLM's production stack.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from oomdoc.model import Action, Diagnosis, Patch
from oomdoc.regexes import regex
from oomdoc.story.seen import Seen
from oomdoc.units import GIB

_VARIABLE = regex(r"`([A-Z][A-Z0-9_]{2,})=([^`\s]+)`")
_CHART = {
    "max_model_len": "maxModelLen", "max_num_seqs": "maxNumSeqs", "gpu_memory_utilization": "gpuMemoryUtilization", "tensor_parallel_size": "tensorParallelSize", "max_loras": "maxLoras",
    "dtype": "dtype", "enable_prefix_caching": "enablePrefixCaching", "enable_chunked_prefill": "enableChunkedPrefill",
}  # fmt: skip
_ADDRESS = regex(r"http-get https?://[^:/\s]*:([\w-]+)(/\S*)")
_PROBES = {
    "startup-probe": "startupProbe",
    "probe-apart-from-the-load": "livenessProbe",
    "a-path-that-is-answered": "livenessProbe",
}
"""Actions that change a probe of the container, and which one."""
_PERIOD_S = 10


def patches(seen: Seen) -> tuple[Patch, ...]:
    """The leading cause's first change in every form that it has; empty where it is no setting, or where the report stands behind no change."""
    first = seen.first
    if first is None or not first.actions or seen.report.verdict not in ("diagnosed", "not-memory"):
        return ()
    action = first.actions[0]
    run_by = _run_by(seen)
    flags = {name: value for name, value in action.changes.items() if not name.isupper()}
    variables = {name: str(value) for name, value in action.changes.items() if name.isupper()}
    variables |= dict(_VARIABLE.findall(action.do))
    made: list[Patch] = []
    if flags:
        made.append(Patch("flags", " ".join(_argument(flags)), "flags" in run_by))
    if variables:
        text = "\n".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
        made.append(Patch("environment", text, not flags))
    made += _deployed(seen, first, action, flags, variables, run_by)
    made += _scaler(seen, action)
    return tuple(made)


_PROMETHEUS = "http://prometheus-operated.monitoring.svc:9090"
"""Where the Prometheus operator serves it by default; vLLM's production stack installs that one."""


def _scaler(seen: Seen, action: Action) -> list[Patch]:
    """The change of an autoscaler as the object that the bundle shows (a ScaledObject of KEDA or an HPA); without any, of KEDA."""
    has, told = seen.facts.scaler, action.values
    if action.id not in _SCALED or not has:
        return []
    # KEDA's own minimum is 0: without waiting requests it would end replicas that are at work
    fewest, most = max(has.get("minimum") or has.get("replicas") or 1, 1), told.get("most") or has.get("maximum")
    faster = action.id == "add-replicas-faster"
    bounds = [None, None] if faster else [int(fewest), int(most) if most else None]
    follows: tuple[str, float] | None = None
    if action.id == "scale-on-the-queue":
        follows = str(has["queue"]), told["per_replica"]
    elif action.id == "ask-for-the-series-that-is-there":
        if not has.get("threshold"):
            return []
        follows = str(has["rule"]).replace(has["asked"], has["exposed"]), has["threshold"]
    elif action.id == "raise-the-maximum" and "most" not in told:
        return []
    hpa = has.get("made_by") == "hpa"
    spec = _hpa(bounds, follows, faster) if hpa else _scaled_object(seen, bounds, follows, faster)
    kind = (
        {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
        if hpa
        else {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject"}
    )
    return [Patch("kubernetes", _yaml({**kind, "spec": spec}), bool(has.get("made_by")), False)]


_SCALED = ("scale-on-the-queue", "ask-for-the-series-that-is-there", "raise-the-maximum", "add-replicas-faster")
_FASTER = {"stabilizationWindowSeconds": 0, "policies": [{"type": "Percent", "value": 100, "periodSeconds": 60}]}


def _hpa(bounds: Sequence[int | None], follows: tuple[str, float] | None, faster: bool) -> dict[str, Any]:
    spec: dict[str, Any] = {
        name: value for name, value in zip(("minReplicas", "maxReplicas"), bounds, strict=True) if value
    }
    if follows:
        series, target = follows  # the adapter's usual name: an API path of Kubernetes has no colon
        metric = {"name": series.replace(":", "_")}
        spec["metrics"] = [
            {
                "type": "Pods",
                "pods": {"metric": metric, "target": {"type": "AverageValue", "averageValue": _quantity(target)}},
            }
        ]
    if faster:
        spec["behavior"] = {"scaleUp": _FASTER}
    return spec


def _scaled_object(
    seen: Seen, bounds: Sequence[int | None], follows: tuple[str, float] | None, faster: bool
) -> dict[str, Any]:
    spec: dict[str, Any] = (
        {"scaleTargetRef": {"name": seen.facts.scaler["workload"]}} if seen.facts.scaler.get("workload") else {}
    )
    spec |= {name: value for name, value in zip(("minReplicaCount", "maxReplicaCount"), bounds, strict=True) if value}
    if follows:
        series, target = follows
        model = seen.flag("served_model_name")
        labels = f'{{model_name="{model}"}}' if isinstance(model, str) and re.fullmatch(r"[\w./:-]+", model) else ""
        # KEDA divides what a query gives by the replicas: what stands for one server is added up
        asked = series if "(" in series else f"sum({series}{labels})"
        query = {"serverAddress": _PROMETHEUS, "query": asked, "threshold": f"{target:g}"}
        spec["triggers"] = [{"type": "prometheus", "metadata": query}]
    if faster:
        spec["advanced"] = {"horizontalPodAutoscalerConfig": {"behavior": {"scaleUp": _FASTER}}}
    return spec


def _quantity(value: float) -> str:
    """A number as Kubernetes writes quantities: whole, or in thousandths."""
    return str(int(value)) if value == int(value) else f"{round(value * 1000)}m"


def _run_by(seen: Seen) -> frozenset[str]:
    """How the server is run, as the sources show it."""
    paths = " ".join(source.path.lower() for source in seen.report.coverage.sources)
    found = set()
    if seen.facts.cluster:
        found.add("kubernetes")
    if "compose" in paths:
        found.add("compose")
    if not found:
        found.add("flags")
    return frozenset(found)


def _deployed(
    seen: Seen,
    first: Diagnosis,
    action: Action,
    flags: Mapping[str, Any],
    variables: Mapping[str, str],
    run_by: frozenset[str],
) -> list[Patch]:
    """The same for the three ways in which servers are commonly deployed."""
    named = seen.facts.container.get("name")
    name = str(named or "vllm")
    arguments, whole = _arguments(first, flags)
    kubernetes: dict[str, Any] = {"name": name}
    chart: dict[str, Any] = {}
    service: dict[str, Any] = {}
    spec: dict[str, Any] = {}
    probe: dict[str, Any] = {}
    if arguments:
        kubernetes["args"] = service["command"] = arguments
        config = {_CHART[flag]: value for flag, value in flags.items() if flag in _CHART}
        if rest := {flag: value for flag, value in flags.items() if flag not in _CHART}:
            config["extraArgs"] = [word for part in _argument(rest) for word in shlex.split(part)]
        chart["vllmConfig"] = config
    if variables:
        listed = [{"name": key, "value": value} for key, value in variables.items()]
        kubernetes["env"] = chart["env"] = listed
        service["environment"] = dict(variables)
    if action.id in ("raise-the-limit",) and action.values.get("need"):
        gib = math.ceil(action.values["need"] / GIB)
        kubernetes["resources"] = {"limits": {"memory": f"{gib}Gi"}}
        chart["limitMemory"] = f"{gib}Gi"
        service["mem_limit"] = f"{gib}g"
    if action.id == "more-shm":
        kubernetes["volumeMounts"] = [{"name": "shm", "mountPath": "/dev/shm"}]
        spec["volumes"] = [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}}]
        chart["shmSize"] = "16Gi"
        service["shm_size"] = "16g"
    if which := _PROBES.get(action.id):
        told = action.values
        if which == "startupProbe":
            probe = {"periodSeconds": _PERIOD_S, "failureThreshold": math.ceil(told["seconds"] / _PERIOD_S)}
        elif "timeout" in told:
            probe = {
                "timeoutSeconds": int(told["timeout"]), "periodSeconds": int(told["period"]), "failureThreshold": int(told["misses"]),
            }  # fmt: skip
        asked = _ADDRESS.search(str(seen.facts.container.get("liveness") or ""))
        port, path = (asked[1], asked[2]) if asked else (str(int(seen.number("port") or 8000)), "/health")
        moved = "status" in told  # the path that was asked is what is wrong
        address = {"path": "/health" if moved else path, "port": int(port) if port.isdigit() else port}
        kubernetes[which] = {"httpGet": address, **probe}
        probe = kubernetes[which] if moved else probe
    if len(kubernetes) == 1 or (probe and seen.facts.ended_by and not seen.facts.cluster):
        return []  # no setting of a container, or a supervisor that is none of Kubernetes' probed it
    pod = {"containers": [kubernetes], **spec}
    engine: dict[str, Any] = {which: probe} if which else {"modelSpec": [{"name": "MODEL", **chart}]}
    made = [
        Patch(
            "kubernetes", _yaml({"spec": {"template": {"spec": pod}}}), "kubernetes" in run_by, whole and bool(named)
        ),
        Patch("helm", _yaml({"servingEngineSpec": engine}), False, bool(probe)),
    ]
    if service:
        made.append(Patch("compose", _yaml({"services": {name: service}}), "compose" in run_by, False))
    return made


def _arguments(first: Diagnosis, flags: Mapping[str, Any]) -> tuple[list[str], bool]:
    """The launch arguments with the change, all of them where the command is known, else those that change."""
    if not flags:
        return [], True
    if first.command and not first.command.lstrip().startswith("#"):
        words = shlex.split(first.command.replace("\\\n", " "), comments=True)
        for begin in ("serve", "vllm.entrypoints.openai.api_server"):
            if begin in words:
                words = words[words.index(begin) + 1 :]
                break
        if words:
            return words, True
    return [word for part in _argument(flags) for word in shlex.split(part)], False


def _argument(flags: Mapping[str, Any]) -> list[str]:
    """Flags as they are typed, one item each."""
    made = []
    for name, value in flags.items():
        option = "--" + name.lstrip("-").replace("_", "-")
        if value is True:
            made.append(option)
        elif value is False:
            made.append("--no-" + option[2:])
        elif value is not None:
            text = (
                f"{value:.10g}" if isinstance(value, float) else value if isinstance(value, str) else json.dumps(value)
            )
            made.append(f"{option} {shlex.quote(text)}")
    return made


def _yaml(value: Any, indent: int = 0) -> str:
    """A small tree of mappings, lists and scalars as YAML; texts are quoted as JSON, which YAML reads."""
    pad = "  " * indent
    lines = []
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if isinstance(inner, (Mapping, list)) and inner and not _flat(inner):
                lines.append(f"{pad}{key}:\n{_yaml(inner, indent + 1)}")
            else:
                lines.append(f"{pad}{key}: {_scalar(inner)}")
    else:
        for inner in value:
            body = _yaml(inner, indent + 1) if isinstance(inner, Mapping) else ""
            lines.append(f"{pad}- {body.lstrip()}" if body else f"{pad}- {_scalar(inner)}")
    return "\n".join(lines)


def _flat(value: Any) -> bool:
    """A list of words goes on one line: it is read as the command that it is."""
    return (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and all(not isinstance(each, Mapping) for each in value)
    )


def _scalar(value: Any) -> str:
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z/][\w./-]*", value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=False)


_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "none", "y", "n"})
