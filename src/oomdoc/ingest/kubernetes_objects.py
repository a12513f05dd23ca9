"""Objects of the cluster as JSON or YAML, and what `docker inspect` prints: pods, nodes, events, autoscalers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from oomdoc.ingest import custom_resources, launch
from oomdoc.ingest.base import TEXT_CAP, Rows
from oomdoc.ingest.json_pieces import mapping
from oomdoc.ingest.kubernetes_describe import DOCKER_STATES, GPU_KEY, Container, Describe, emit, limit
from oomdoc.ingest.launch import servers
from oomdoc.ingest.scaler_lines import KNATIVE_SHARE, replicas_of, service_of
from oomdoc.units import MIB, parse_time

Row = dict[str, Any]


def _as_in_a_pod(one: Mapping[str, Any]) -> dict[str, Any]:
    """A container of a task's definition (ECS) in the words of a pod: its MiB, its devices, its words."""
    gpus = [need.get("value") for need in map(mapping, _list(one.get("resourceRequirements"))) if need.get("type") == "GPU"][:1]  # fmt: skip
    limits = ({"nvidia.com/gpu": gpus[0]} if gpus else {}) | (
        {"memory": f"{one['memory']}Mi"} if one.get("memory") else {}
    )
    return {**one, "command": one.get("entryPoint"), "args": one.get("command"), "env": one.get("environment"), "resources": {"limits": limits}}  # fmt: skip


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _whole(value: Any) -> int | None:
    text = str(value)
    return int(text) if re.fullmatch(r"-?\d{1,9}", text) else None


def _text(value: Any) -> str | None:
    return str(value)[:TEXT_CAP] if isinstance(value, str) and value else None


def _number(value: Any) -> float | None:
    """A quantity of a metric: `5`, `"0.8"`, `1500m`."""
    found = re.fullmatch(r"(\d{1,12}(?:\.\d{1,6})?)(m|k)?", str(value))
    return float(found[1]) * {"m": 1e-3, "k": 1e3}.get(found[2], 1.0) if found else None


def _followed(metric: Any, key: str) -> tuple[str | None, float | None]:
    """The name of a metric that a scaler follows, and its `target` or `current` figure."""
    kind = str(mapping(metric).get("type") or "")
    inner = mapping(mapping(metric).get(kind[:1].lower() + kind[1:]))
    figures = mapping(inner.get(key))
    figure = next((figures[name] for name in ("averageValue", "value", "averageUtilization") if name in figures), None)
    return _text(inner.get("name") or mapping(inner.get("metric")).get("name")), _number(figure)


_PROBES = frozenset(("livenessProbe", "startupProbe"))
"""What only a container has: whoever copies it may leave out whose it is."""


def _is_node(value: Mapping[str, Any]) -> bool:
    """A node without its kind: what somebody cut out of a list of nodes has the labels of its devices."""
    return any(str(key).startswith(("nvidia.com/gpu.", "nvidia.com/mig.")) for key in mapping(mapping(value.get("metadata")).get("labels")))  # fmt: skip


class Objects:
    """Reads objects of the cluster; `where` finds the line of a name in the source."""

    def __init__(self, rows: Rows, source: str) -> None:
        self.rows = rows
        self.source = source
        self.at = 0
        self.target: dict[str, str | None] = {}
        """What the scaler in hand scales, and in which namespace."""

    def where(self, value: Any, *needles: Any) -> int:
        """The line of an object: its own where the reader knows it, else the next place of one of its names."""
        line = getattr(value, "line", 0)
        if line:
            return int(line)
        for needle in needles:
            found = self.source.find(f'"{needle}"', self.at) if needle else -1
            if found >= 0:
                self.at = found
                return self.source.count("\n", 0, found) + 1
        return 1

    def take(self, value: Any, depth: int = 0) -> None:
        """Any object, or a list of them."""
        if depth > 6:
            return
        if isinstance(value, list):
            for item in value:
                self.take(item, depth + 1)
            return
        if not isinstance(value, Mapping):
            return
        kind = str(value.get("kind") or "")
        if not kind and (found := _unnamed_scaler(value)):
            kind, value = found
        self.serverless(value)
        items = value.get("items")
        if isinstance(items, list):
            for item in items:
                if isinstance(item, Mapping) and not item.get("kind") and kind.endswith("List") and len(kind) > 4:
                    item = {**item, "kind": kind.removesuffix("List")}
                self.take(item, depth + 1)
        elif "State" in value and ("HostConfig" in value or _DOCKER_STATE & mapping(value["State"]).keys()):
            self.inspected(value)
        elif isinstance(value.get("pods"), list) and isinstance(value.get("node"), Mapping):
            self.measured(value)
        elif kind == "Event" or ("involvedObject" in value and "reason" in value):
            self.event(value)
        elif kind == "Node" or (not kind and _is_node(value)):
            self.node(value)
        elif kind == "HorizontalPodAutoscaler":
            self.scaler(value)
        elif kind == "PodAutoscaler":
            self.pod_autoscaler(value)
        elif kind == "ScaledObject":
            self.target = _target(value)
            spec = mapping(value.get("spec"))
            self._bounds(value, spec.get("minReplicaCount"), spec.get("maxReplicaCount"))
            for trigger in _list(mapping(value.get("spec")).get("triggers")):
                meta = mapping(mapping(trigger).get("metadata"))
                name = _text(meta.get("metricName")) or _text(meta.get("query")) or _text(mapping(trigger).get("type"))
                threshold = meta.get("threshold", meta.get("value"))
                self._scaled(trigger, "metric", name, _text(threshold), threshold=_number(threshold))
            for one in map(mapping, _list(mapping(value.get("status")).get("conditions"))):
                self._scaled(one, "condition", _text(one.get("type")), _text(one.get("status")), _text(one.get("message")))  # fmt: skip
            self.target = {}
        elif "containers" in mapping(value.get("spec")) or "containerStatuses" in mapping(value.get("status")):
            self.pod(value)
        elif isinstance(value.get("tasks"), list):
            for task in value["tasks"]:
                self.take(task, depth + 1)
        elif "stoppedReason" in value or "taskArn" in value:
            self.task(value)
        elif isinstance(value.get("containerDefinitions"), list):
            self.pod({"spec": {"containers": [_as_in_a_pod(mapping(one)) for one in value["containerDefinitions"]]}})
        elif any(isinstance(one, Mapping) for one in _list(value.get("containers"))):
            self.pod({"metadata": value.get("metadata"), "spec": value})
        elif isinstance(value.get("containerStatuses"), list):
            self.pod({"status": value})
        elif ("name" in value and _OF_CONTAINER & value.keys()) or _PROBES & value.keys():
            self.pod({"spec": {"containers": [value]}, "status": {"containerStatuses": [value]}})
        else:
            template = mapping(mapping(value.get("spec")).get("template"))
            if "containers" in mapping(template.get("spec")):
                self.pod({"metadata": value.get("metadata"), "spec": template.get("spec")})
            elif (state := _part_of_status(value)) is not None:
                self.pod({"status": {"containerStatuses": [state]}})
            elif value.get("apiVersion") and isinstance(value.get("spec"), Mapping):
                self.resource(value)

    def resource(self, value: Mapping[str, Any]) -> None:
        """An object of an extension of the cluster: what it has for containers, and the settings among its keys."""
        found = list(custom_resources.boxes(value["spec"]))
        if found:
            self.pod({"metadata": value.get("metadata"), "spec": {"containers": found}})
        for one in custom_resources.settings(value["spec"], told=bool(found)):
            self.rows.add("engine_flag", one.line or self.where(value, value.get("kind")), flag=one.flag, value=one.value, origin=one.origin)  # fmt: skip

    def pod(self, pod: Mapping[str, Any]) -> None:
        """One row per container of a pod or of a pod template."""
        spec, status = mapping(pod.get("spec")), mapping(pod.get("status"))
        metadata = mapping(pod.get("metadata"))
        name = _text(metadata.get("name"))
        place = {"namespace": _text(metadata.get("namespace")), "node": _text(spec.get("nodeName")), "pod_uid": _text(metadata.get("uid"))}  # fmt: skip
        known = {str(mapping(one).get("name")): mapping(one) for key in ("containerStatuses", "initContainerStatuses") for one in _list(status.get(key))}  # fmt: skip
        wanted = [mapping(one) for one in _list(spec.get("containers"))]
        names = {str(one.get("name")) for one in wanted}
        wanted += [{"name": status.get("name")} for one, status in known.items() if one not in names]
        for one in wanted:
            state = known.get(str(one.get("name")), {})
            line = self.where(one if getattr(one, "line", 0) else state, one.get("name"), *state, *mapping(state.get("lastState")))  # fmt: skip
            container = Container(_text(one.get("name")), line)
            self._spec(container, one)
            volume = next((each.get("name") for each in map(mapping, _list(one.get("volumeMounts"))) if each.get("mountPath") == "/dev/shm"), None)  # fmt: skip
            room = next((each.get("emptyDir") for each in map(mapping, _list(spec.get("volumes"))) if each.get("name") == volume), None)  # fmt: skip
            container.shared = str(mapping(room).get("sizeLimit") or "")
            self._status(container, state)
            row = container.finish(name)
            if status.get("reason") == "Evicted":
                row["last_reason"] = "Evicted"
            elif status.get("phase") == "Pending" and not state:
                row["reason"] = "Pending"
            row |= place
            emit(self.rows, container, row)

        for one in map(mapping, _list(status.get("conditions"))):
            if one.get("type") == "PodScheduled" and one.get("reason") == "Unschedulable":
                t = parse_time(str(one.get("lastTransitionTime") or ""))
                self.rows.add("cluster_event", self.where(one, "PodScheduled"), t=t, type="Warning", reason="FailedScheduling", object=f"pod/{name}", message=_text(one.get("message")), namespace=place["namespace"])  # fmt: skip

    def _spec(self, container: Container, one: Mapping[str, Any]) -> None:
        resources = mapping(one.get("resources"))
        for part in ("requests", "limits"):
            for key, value in mapping(resources.get(part)).items():
                if part == "limits" or GPU_KEY.match(key):
                    limit(container, key, str(value))
        for probe in ("liveness", "startup"):
            container.row[probe] = _probe(mapping(one.get(f"{probe}Probe")))
        for variable in _list(one.get("env")):
            name, value = mapping(variable).get("name"), mapping(variable).get("value")
            if isinstance(name, str) and value is not None and launch.is_environment(name):
                container.environment.append((getattr(variable, "line", 0) or container.line, name, str(value)))
        container.image = (container.line, str(one.get("image") or ""))
        words = [
            str(word) for key in ("command", "args") for word in _list(one.get(key)) if not isinstance(word, Mapping)
        ]
        container.words = [(container.line, word) for word in words]

    def _status(self, container: Container, status: Mapping[str, Any]) -> None:
        container.row["restarts"] = _whole(status.get("restartCount"))
        container.id = str(status.get("containerID") or "").rpartition("//")[2] or None
        for block, key in (("State", "state"), ("Last State", "lastState")):
            for name, detail in mapping(status.get(key)).items():
                if block == "State":
                    container.row["state"] = str(name).capitalize()
                detail = mapping(detail)
                if detail.get("reason"):
                    container.reasons[block] = str(detail["reason"])[:TEXT_CAP]
                code = _whole(detail.get("exitCode"))
                if code is not None:
                    container.codes[block] = code
                for field, label in (("startedAt", "Started"), ("finishedAt", "Finished")):
                    moment = parse_time(str(detail.get(field) or ""))
                    if moment is not None:
                        container.times[block, label] = moment

    def task(self, task: Mapping[str, Any]) -> None:
        """A task of ECS: the life of each of its containers, the MiB that they may have, and who ended those of one that was stopped.

        The containers of all tasks of a service are one here: each task is the next life of the same.
        """
        why = str(task.get("stoppedReason") or "")
        group = str(task.get("group") or "").removeprefix("service:") or str(task.get("taskArn") or "").rpartition(":")[2].removeprefix("task/").rpartition("/")[0]  # fmt: skip
        begin, end = (parse_time(str(task.get(key) or "")) for key in ("startedAt", "stoppingAt"))
        end = end if end is not None else parse_time(str(task.get("stoppedAt") or ""))
        line = self.where(task, task.get("taskArn"))
        runs = task.get("lastStatus") == "RUNNING" and end is None
        for one in map(mapping, _list(task.get("containers"))):
            code, reason = _whole(one.get("exitCode")), str(one.get("reason") or "")
            limit = _whole(one.get("memory")) or _whole(task.get("memory"))
            ended = "OOMKilled" if "OutOfMemory" in reason else "Completed" if code == 0 else "Error"
            self.rows.add(
                "container", line, pod=group or None, name=_text(one.get("name")), image=_text(one.get("image")), exit_code=code,
                memory_limit_bytes=limit * MIB if limit else None, gpus=len(_list(one.get("gpuIds"))) or None,
                serves=servers.serves(str(one.get("image") or ""), ()), state="Running" if runs else "Terminated", last_reason=None if runs else ended, started_t=begin, ended_t=end,
                ran_s=end - begin if begin is not None and end is not None and end >= begin else None,
            )  # fmt: skip
        if "health check" in why:  # the balancer found the target unhealthy, and the scheduler ended it: two statements
            for reason in ("Unhealthy", "Killing"):
                self.rows.add("cluster_event", line, t=end, type="Warning", reason=reason, object=group or None, message=why[:TEXT_CAP])  # fmt: skip

    def event(self, event: Mapping[str, Any]) -> None:
        """One event."""
        about = mapping(event.get("involvedObject") or event.get("regarding"))
        stamps = (event.get(key) for key in ("lastTimestamp", "eventTime", "firstTimestamp"))
        series = mapping(event.get("series"))
        kind, name = str(about.get("kind") or "").lower(), str(about.get("name") or "")
        self.rows.add(
            "cluster_event",
            self.where(event, event.get("message"), event.get("reason")),
            t=next((moment for stamp in stamps if (moment := parse_time(str(stamp or ""))) is not None), None),
            type=_text(event.get("type")),
            reason=_text(event.get("reason")),
            object=f"{kind}/{name}" if kind and name else name or None,
            count=_whole(event.get("count")) or _whole(series.get("count")),
            message=_text(event.get("message") or event.get("note")),
            namespace=_text(about.get("namespace")) or _text(mapping(event.get("metadata")).get("namespace")),
        )

    def measured(self, summary: Mapping[str, Any]) -> None:
        """What the kubelet's `/stats/summary` says that each container holds of the host's memory."""
        for pod in _list(summary.get("pods")):
            for one in _list(mapping(pod).get("containers")):
                memory, name = mapping(mapping(one).get("memory")), _text(mapping(one).get("name"))
                size = memory.get("workingSetBytes")
                if isinstance(size, int) and 0 <= size < 1 << 50:
                    line = self.where(one, mapping(mapping(pod).get("podRef")).get("name"), name)
                    t = parse_time(str(memory.get("time") or ""))
                    self.rows.add("process_memory", line, t=t, name=name, state="kubelet", resource="host", bytes=size)

    def node(self, node: Mapping[str, Any]) -> None:
        """The devices of a node, and what the kubelet says of its memory."""
        metadata, status = mapping(node.get("metadata")), mapping(node.get("status"))
        labels, capacity = mapping(metadata.get("labels")), mapping(status.get("capacity"))
        for one in map(mapping, _list(status.get("conditions"))):
            if one.get("type") == "MemoryPressure" and str(one.get("status")) == "True":
                self.rows.add(
                    "cluster_event", self.where(one, "MemoryPressure"), type="Warning", reason="MemoryPressure",
                    t=parse_time(str(one.get("lastTransitionTime") or "")), object=f"node/{metadata.get('name')}",
                    message=_text(one.get("message")),
                )  # fmt: skip
        text = Describe(self.rows)
        line = self.where(node, mapping(node.get("metadata")).get("name"))
        if name := _text(metadata.get("name")):
            text.node["name"] = (line, name)
        for key, value in (capacity or mapping(status.get("allocatable"))).items():
            text._resource(line, str(key), str(value))
        for key, value in labels.items():
            text._label(line, f"{key}={value}")
        text._devices()

    def scaler(self, scaler: Mapping[str, Any]) -> None:
        """What a HorizontalPodAutoscaler measures and what it says of itself."""
        spec, status = mapping(scaler.get("spec")), mapping(scaler.get("status"))
        self.target = _target(scaler)
        current = dict(_followed(metric, "current") for metric in _list(status.get("currentMetrics")))
        for metric in _list(spec.get("metrics")):
            name, aim = _followed(metric, "target")
            self._scaled(metric, "metric", name, None, threshold=aim, value=current.get(name))
        self._bounds(scaler, spec.get("minReplicas"), spec.get("maxReplicas"))
        for one in map(mapping, _list(status.get("conditions"))):
            self._scaled(one, "condition", _text(one.get("type")), _text(one.get("status")), " ".join(filter(None, (_text(one.get("reason")), _text(one.get("message"))))) or None)  # fmt: skip
            if one.get("type") == "ScalingActive" and str(one.get("status")) == "False":
                self._scaled(one, "blind", _text(one.get("reason")), "False", _text(one.get("message")))
        if "currentReplicas" in status:
            replicas = replicas_of(status.get("currentReplicas"), status.get("desiredReplicas"))
            now, wanted = _whole(status.get("currentReplicas")), _whole(status.get("desiredReplicas"))
            self._scaled(status, "replicas", "pods", replicas, replicas=now, desired=wanted)
        self.target = {}

    def pod_autoscaler(self, scaler: Mapping[str, Any]) -> None:
        """What a PodAutoscaler (AIBrix, Knative) follows, and its bounds."""
        spec, status = mapping(scaler.get("spec")), mapping(scaler.get("status"))
        self.target = _target(scaler)
        for source in _list(spec.get("metricsSources")):
            one = mapping(source)
            aim = one.get("targetValue")
            self._scaled(one, "metric", _text(one.get("targetMetric")), _text(aim), threshold=_number(aim))
        self._bounds(scaler, spec.get("minReplicas"), spec.get("maxReplicas"))
        if "actualScale" in status:
            now, wanted = _whole(status.get("actualScale")), _whole(status.get("desiredScale"))
            self._scaled(status, "replicas", "pods", replicas_of(now, wanted), replicas=now, desired=wanted)
        self.target = {}

    def serverless(self, value: Mapping[str, Any]) -> None:
        """What scales a service of Knative, or a model server of KServe: annotations of it or of its pods, or fields of its predictor."""
        metadata, spec = mapping(value.get("metadata")), mapping(value.get("spec"))
        predictor, template = mapping(spec.get("predictor")), mapping(spec.get("template"))
        notes: dict[str, Any] = {}
        for one in (metadata, mapping(template.get("metadata")), predictor):
            notes |= {str(key).removeprefix(_KNATIVE): set_to for key, set_to in mapping(one.get("annotations")).items() if str(key).startswith(_KNATIVE)}  # fmt: skip
        least = predictor.get("minReplicas", notes.get("min-scale", notes.get("minScale")))
        most = predictor.get("maxReplicas", notes.get("max-scale", notes.get("maxScale")))
        asked = {"scaleMetric", "scaleTarget"} & predictor.keys() or {"class", "metric", "target"} & notes.keys()
        if not asked and (_whole(most) or 0) <= max(_whole(least) or 0, 1):
            return
        self.target = {
            "target": service_of(str(metadata["name"])) if metadata.get("name") else None,
            "namespace": _text(metadata.get("namespace")),
        }
        metric = str(notes.get("metric") or predictor.get("scaleMetric") or "concurrency").lower()
        within = predictor.get("containerConcurrency", mapping(template.get("spec")).get("containerConcurrency"))
        aim = _number(notes.get("target", predictor.get("scaleTarget"))) or _number(within) or None
        by_pods = metric in ("concurrency", "rps") and not str(notes.get("class") or "").startswith("hpa")
        if asked or aim:
            share = (
                (_number(notes.get("target-utilization-percentage")) or 100 * KNATIVE_SHARE) / 100 if by_pods else 1.0
            )
            told = (
                f"{metric}, target {aim:g}" + (f", of which {share:.0%} is aimed at" if by_pods else "")
                if aim
                else metric
            )
            self._scaled(
                value, "metric", metric, f"{aim:g}" if aim else None, told, threshold=aim * share if aim else None
            )
        if _whole(most):
            self._bounds(value, least if least is not None else 1, most)
        self.target = {}

    def _bounds(self, scaler: Any, minimum: Any, maximum: Any) -> None:
        """The fewest and the most replicas that a scaler may set."""
        if maximum is not None:
            self._scaled(scaler, "condition", "bounds", f"{minimum} to {maximum}", minimum=_whole(minimum), maximum=_whole(maximum))  # fmt: skip

    def _scaled(self, at: Any, kind: str, name: str | None, status: str | None, text: str | None = None, **figures: float | None) -> None:  # fmt: skip
        self.rows.add("scaler", self.where(at, name), kind=kind, name=name, status=status, text=text or name, **self.target, **figures)  # fmt: skip

    def inspected(self, value: Mapping[str, Any]) -> None:
        """A container as `docker inspect` prints it."""
        state, host, config = (mapping(value.get(key)) for key in ("State", "HostConfig", "Config"))
        # Docker keeps the slash of a hierarchy that it never had
        named = (_text(value.get("Name")) or "").lstrip("/") or None
        container = Container(named, self.where(value, "State"))
        code = _whole(state.get("ExitCode"))
        begin, end = (parse_time(str(state.get(key) or "")) for key in ("StartedAt", "FinishedAt"))
        running = str(state.get("Status") or "") == "running"
        row: Row = {
            **container.row,
            "state": DOCKER_STATES.get(str(state.get("Status"))),
            # Docker tells no reason; a status other than 0 is what a kubelet calls Error
            "last_reason": "OOMKilled" if state.get("OOMKilled") is True else "Error" if code and not running else None,
            "exit_code": None if running else code,
            "restarts": _whole(value.get("RestartCount")),
            "ran_s": end - begin if begin and end and end > begin and not running else None,
            "memory_limit_bytes": host.get("Memory")
            if isinstance(host.get("Memory"), int) and host["Memory"] > 0
            else None,
            "container_id": _text(value.get("Id")),
            "started_t": begin,
            "ended_t": end if end and end > 0 and not running else None,
            "liveness": launch.health_check(mapping(config.get("Healthcheck"))),
        }
        for variable in _list(config.get("Env")):
            name, _, text = str(variable).partition("=")
            if launch.is_environment(name):
                container.environment.append((container.line, name, text))
        container.image = (container.line, str(config.get("Image") or ""))
        words = [str(word) for key in ("Entrypoint", "Cmd") for word in _list(config.get(key))]
        container.words = [(container.line, word) for word in words]
        given = [
            str(one)
            for request in _list(host.get("DeviceRequests"))
            for one in _list(mapping(request).get("DeviceIDs"))
        ]
        if given and container.serves:
            container.environment.append((container.line, "CUDA_VISIBLE_DEVICES", ",".join(given)))
        emit(self.rows, container, row)
        shm = host.get("ShmSize")
        # with the host's or another container's namespace the size is that of theirs
        if isinstance(shm, int) and shm > 0 and str(host.get("IpcMode") or "private") in ("private", "shareable") and container.serves:  # fmt: skip
            self.rows.add("note", self.where(host, shm, "ShmSize"), topic="shm-size", value=float(shm), text=f"ShmSize {shm}")  # fmt: skip
        self._health(named, mapping(state.get("Health")))

    def _health(self, name: str | None, health: Mapping[str, Any]) -> None:
        """The failed health checks that the engine of the container remembers."""
        for entry in _list(health.get("Log")):
            one = mapping(entry)
            if _whole(one.get("ExitCode")) not in (0, None):
                begin = str(one.get("Start") or "")
                said = " ".join(str(one.get("Output") or "").split())[:200]
                self.rows.add("cluster_event", self.where(entry, begin, "Health"), t=parse_time(begin), type="Warning", reason="Unhealthy", object=name, message=f"health check failed: {said}")  # fmt: skip


_DOCKER_STATE = frozenset(("OOMKilled", "FinishedAt", "Health"))
_OF_CONTAINER = frozenset(("livenessProbe", "startupProbe", "lastState", "restartCount"))


def _unnamed_scaler(value: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]] | None:
    """A scaler of which only the specification was handed in, or whose kind was cut away: its own names tell which."""
    spec = mapping(value.get("spec")) or value
    if isinstance(spec.get("triggers"), list) and ({"maxReplicaCount", "minReplicaCount", "scaleTargetRef"} & spec.keys() or all("metadata" in mapping(one) for one in spec["triggers"])):  # fmt: skip
        return "ScaledObject", {**value, "spec": spec}
    if "maxReplicas" in spec and (isinstance(spec.get("metrics"), list) or "behavior" in spec):
        return "HorizontalPodAutoscaler", {**value, "spec": spec}
    return None


def _target(scaler: Mapping[str, Any]) -> dict[str, str | None]:
    """The workload that an autoscaler scales, and its namespace."""
    about = mapping(mapping(scaler.get("spec")).get("scaleTargetRef"))
    name = _text(about.get("name"))
    return {
        "target": service_of(name) if name else None,
        "namespace": _text(mapping(scaler.get("metadata")).get("namespace")),
    }


_KNATIVE = "autoscaling.knative.dev/"
_STATES = ("terminated", "waiting", "running")


def _part_of_status(value: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """A container's status of which only a part was printed: `{"terminated": {"exitCode": 137}}`; None for anything else."""
    if any(_STATES_KEYS & set(mapping(value.get(name))) for name in _STATES):
        return {"lastState": value}
    if "exitCode" in value and "reason" in value:
        return {"lastState": {"terminated": value}}
    if "restartCount" in value and ("lastState" in value or "state" in value):
        return value
    return None


_STATES_KEYS = frozenset(("exitCode", "reason", "startedAt"))


def _probe(probe: Mapping[str, Any]) -> str | None:
    """A probe in the words of `kubectl describe`; defaults of the API where a field is not set."""
    if not probe:
        return None
    get = mapping(probe.get("httpGet"))
    what = f"http-get http://:{get.get('port', '')}{get.get('path', '')}" if get else "exec" if "exec" in probe else "tcp-socket"  # fmt: skip
    one = {**_PROBE_DEFAULTS, **probe}
    return (
        f"{what} delay={one['initialDelaySeconds']}s timeout={one['timeoutSeconds']}s period={one['periodSeconds']}s "
        f"#success={one['successThreshold']} #failure={one['failureThreshold']}"
    )


_PROBE_DEFAULTS = {"initialDelaySeconds": 0, "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}  # fmt: skip
