"""What `kubectl describe`, `kubectl get pods` and `kubectl top` print, read line by line: containers, their ends, limits, nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from oomdoc.ingest import launch
from oomdoc.ingest.base import Rows
from oomdoc.ingest.kubernetes_lines import parse_date
from oomdoc.ingest.launch import servers
from oomdoc.ingest.prompts import typed
from oomdoc.intake.cells import date
from oomdoc.regexes import regex
from oomdoc.units import MIB, parse_size

Row = dict[str, Any]

_PAIR = regex(r"^(?P<indent>\s*)(?P<key>[A-Za-z][\w ./()+-]*?):(?:\s+(?P<value>.*))?$")
_CONTAINER_NAME = regex(r"^\s{0,6}(?P<name>[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?):\s*$")
_POD_ROW = regex(
    r"^\s*(?:(?P<ns>[a-z0-9][a-z0-9-]*)\s+)?(?P<pod>[a-z0-9][a-z0-9.-]*)\s+\d+/\d+\s+(?P<status>[A-Za-z][\w:/-]*)\s+"
    r"(?P<restarts>\d+)(?: \((?P<ago>\S+) ago\))?(?:\s+\d\w*\s+(?:\d{1,3}(?:\.\d{1,3}){3}|<none>)\s+(?P<node>[a-z0-9][a-z0-9.-]*)|\s+\S+|\s*$)"
)
_TOP_ROW = regex(r"^\s*(?:[a-z0-9.-]+\s+){0,2}(?P<pod>[a-z0-9][a-z0-9.-]*)\s+\d+m?\s+(?P<memory>\d+[KMG]i)\s*$")


_STAMP = regex(r"\s*(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b.{10,30}\d{4})")


def is_listed(line: str) -> bool:
    """Whether a line is a row of `kubectl get pods` or `kubectl top`, which people paste without its header."""
    return bool(_POD_ROW.match(line) or _TOP_ROW.match(line))


MIG_KEY = regex(r"nvidia\.com/mig-(?P<profile>[\w.+-]+)")
GPU_KEY = regex(r"(?:nvidia|amd)\.com/gpu(?:\.shared)?$")
DOCKER_STATES = {"running": "Running", "restarting": "Waiting", "created": "Waiting", "exited": "Terminated"}
RUNNING = frozenset(("Running", "Completed", "Succeeded"))
ENDED = frozenset(("OOMKilled", "Error", "Completed", "ContainerCannotRun", "StartError", "Evicted", "Unknown"))


class Container:
    """A container while its description is read."""

    def __init__(self, name: str | None, line: int) -> None:
        self.line = line
        self.row: Row = {"name": name}
        self.block = ""  # State, Last State, Limits, Requests, Environment, Mounts, Command, Args
        self.times: dict[tuple[str, str], float] = {}
        self.reasons: dict[str, str] = {}
        self.codes: dict[str, int] = {}
        self.words: list[tuple[int, str]] = []
        self.environment: list[tuple[int, str, str]] = []
        self.image: tuple[int, str] = (line, "")
        self.id: str | None = None
        self.shared: str | None = None  # the volume that it has for shared memory, then the size of that

    @property
    def told(self) -> bool:
        """Whether anything beyond the name is known."""
        return len(self.row) > 1 or bool(self.codes or self.reasons or self.words)

    @property
    def serves(self) -> bool | None:
        """Whether it is an LLM server's, by its image and its command; None where neither is there."""
        return servers.serves(self.image[1], (word for _, word in self.words))

    def take(self, number: int, key: str, value: str) -> bool:
        """A line whose key every container has; False for another, which belongs to the block that is open."""
        if key in ("State", "Last State"):
            self.block = key
            if key == "State":
                self.row["state"] = value or None
        elif key in _BLOCKS:
            self.block = key
            if value and key in ("Command", "Args"):
                self.words.append((number, value))
        elif key in _DETAILS:
            self._detail(self.block if self.block in ("State", "Last State") else "Last State", key, value)
        elif key in _PLAIN:
            if key == "Restart Count" and value.isdigit():
                self.row["restarts"] = int(value[:9])
            elif key in ("Liveness", "Startup"):
                self.row[key.lower()] = value or None
            elif key == "Image":
                self.image = (number, value)
            elif key == "Container ID":
                self.id = value.rpartition("//")[2] or None
            if self.block in ("Limits", "Requests", "Command", "Args", "Environment"):
                self.block = "Done"
        else:
            return False
        return True

    def _detail(self, block: str, key: str, value: str) -> None:
        moment = parse_date(value) if key in ("Started", "Finished") else None
        if moment is not None:
            self.times.setdefault((block, key), moment)
        elif key == "Reason":
            self.reasons.setdefault(block, value)
        elif key == "Exit Code" and re.fullmatch(r"-?\d{1,9}", value):
            self.codes.setdefault(block, int(value))

    def finish(self, pod: str | None) -> Row:
        """The row of table `container`."""
        row = self.row
        ended = "Last State" if "Last State" in self.reasons or "Last State" in self.codes else "State"
        row["reason"] = self.reasons.get("State")
        if ended == "Last State" or row.get("state") == "Terminated":
            row["last_reason"] = self.reasons.get(ended)
            row["exit_code"] = self.codes.get(ended)
            begin, end = self.times.get((ended, "Started")), self.times.get((ended, "Finished"))
            if begin is not None and end is not None and end >= begin:
                row["ran_s"] = end - begin
            row["ended_t"] = end
        row["started_t"] = self.times.get(("State", "Started"), self.times.get((ended, "Started")))
        row["pod"] = pod
        row["container_id"] = self.id
        return row


_ASKED_FOR = regex(r"(?:kubectl|oc)\s[^|]*?\b(?:describe|get)\s+(?:pods?|po)[ /](?P<pod>[a-z0-9][\w.-]{0,100})\b")
_IN_NAMESPACE = regex(r"\s(?:-n|--namespace)[ =](?P<namespace>[\w.-]{1,63})")


class Describe:
    """Reads `kubectl` text line by line; what is complete goes to `rows`."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.pod: str | None = None
        self.t: float | None = None
        self.namespace: str | None = None
        self.on_node: str | None = None
        self.section = ""
        self.container: Container | None = None
        self.containers: list[Container] = []
        self.listed: dict[str, tuple[int, Row]] = {}
        self.node: Row = {}
        self.about: Row = {}
        self.volume = ""

    def line(self, number: int, text: str) -> None:
        """One line."""
        asked = _ASKED_FOR.match(typed(text) or "") if "$" in text or "#" in text else None
        if asked:  # what is cut out of the answer bears no name: the question does
            self._top(number, "Name", asked["pod"])
            within = _IN_NAMESPACE.search(text)
            self.namespace = within["namespace"] if within else None
            return
        listed = _POD_ROW.match(text)
        if listed:
            self._listed(number, listed)
            return
        if len(text) < 40 and _STAMP.match(text):
            self.t = parse_date(text) or date(text.strip())
            return
        top = _TOP_ROW.match(text)
        if top:
            size = parse_size(top["memory"])
            self.rows.add("process_memory", number, t=self.t, name=top["pod"], resource="host", bytes=size, state="top")
            return
        if "nvidia.com/gpu" in text:
            self._label(number, text)
        pair = _PAIR.match(text)
        if pair is None:
            self._bare(number, text.strip())
            return
        key, value = pair["key"].strip(), (pair["value"] or "").strip()
        if not pair["indent"] and key in _TOP:
            self._top(number, key, value)
        elif key in ("Containers", "Init Containers", "Ephemeral Containers") and not value:
            self._close()
            self.section = "Containers"
        elif key in ("Volumes", "Conditions", "Events", "QoS Class") and not (
            self.container and self.container.block == "Limits"
        ):
            self._close()
            self.section = key
        elif self.section in ("Capacity", "Allocatable"):
            self._resource(number, key, value)
        elif self.section != "Volumes":
            self._field(number, text, key, value)
        elif not value:
            self.volume = key
        for one in self.containers if key == "SizeLimit" and self.section == "Volumes" else ():
            one.shared = value if one.shared == self.volume else one.shared

    def _top(self, number: int, key: str, value: str) -> None:
        if key == "Name":
            self.finish()
            self.pod = value or None
            self.about = {"line": number, "kind": "pod", "name": value}
        elif key == "Namespace":
            self.namespace = value or None
        elif key == "Node":
            self.on_node = value.partition("/")[0] or None
        elif key == "Reference":
            self.about |= {"kind": "scaler", "target": value.rpartition("/")[2] or None}
        else:
            if key in ("Capacity", "Allocatable"):
                self.about |= {"kind": "node", "gpus": self.about.get("gpus", 0)}
            self._close()
            self.section = key

    def _listed(self, number: int, match: re.Match[str]) -> None:
        status = match["status"]
        row: Row = {"pod": match["pod"], "restarts": int(match["restarts"][:9]), "node": match["node"]}
        if status in RUNNING:
            row["state"] = "Running" if status == "Running" else "Terminated"
        elif status in ENDED:
            row |= {"state": "Terminated", "reason": status, "last_reason": status}
        else:
            row |= {"state": "Waiting", "reason": status}
        self.listed[match["pod"]] = (number, row)

    def _bare(self, number: int, text: str) -> None:
        """A line without a key: an argument, a wrapped text."""
        if self.container is not None and text and self.container.block in ("Command", "Args"):
            self.container.words.append((number, text))
        elif self.container is not None and self.container.block == "Mounts" and text.startswith("/dev/shm from "):
            self.container.shared = text.split()[2]

    def _field(self, number: int, text: str, key: str, value: str) -> None:
        named = _CONTAINER_NAME.match(text)
        if named and self.section == "Containers" and (self.container is None or self.container.block in _CLOSED):
            self._close()
            self.container = Container(named["name"], number)
            return
        states = key in ("State", "Last State") or key == "Restart Count"
        if self.container is None:
            if not (states or key in ("Exit Code", "Liveness", "Startup", "Limits")):
                return
            self.container = Container(None, number)
        container = self.container
        if key == "State" and "state" in container.row:  # a fragment of the next container
            self._close()
            container = self.container = Container(None, number)
        if container.take(number, key, value):
            return
        if container.block in ("Command", "Args"):
            container.words.append((number, text.strip()))
        elif container.block == "Limits" or (
            container.block == "Requests" and GPU_KEY.match(key) and "gpus" not in container.row
        ):
            limit(container, key, value)
        elif container.block == "Environment" and value and launch.is_environment(key):
            container.environment.append((number, key, value))

    def _resource(self, number: int, key: str, value: str) -> None:
        """A node's `Capacity` or `Allocatable`: devices are counted once."""
        mig = MIG_KEY.fullmatch(key)
        count = int(value) if value.isdigit() and len(value) < 6 else 0
        if mig and count:
            self.node.setdefault("mig", {}).setdefault(mig["profile"].replace("-", "."), (number, count))
        elif GPU_KEY.match(key) and count:
            self.node.setdefault("count", (number, count))
        if (mig or GPU_KEY.match(key)) and count:
            self.about["gpus"] = max(count, self.about.get("gpus", 0))
        size = parse_size(value) if key == "memory" and self.section != "Allocatable" else None
        if size:
            self.rows.add("note", number, topic="host-size", value=float(size), text=f"memory of the node: {value}")

    def _label(self, number: int, text: str) -> None:
        for name, value in re.findall(
            r"nvidia\.com/(gpu\.(?:product|memory|count|replicas))\"?[=:] ?\"?([\w.-]+)", text
        ):
            self.node.setdefault(name, (number, value))

    def _close(self) -> None:
        if self.container is not None and self.container.told:
            self.containers.append(self.container)
        self.container = None

    def finish(self) -> None:
        """Hand on the pod or node in hand and begin anew."""
        self._close()
        for container in self.containers:
            row = container.finish(self.pod)
            row |= {"namespace": self.namespace, "node": self.on_node}
            listed = self.listed.pop(self.pod or "", None)
            if listed:
                row = {**listed[1], **{name: value for name, value in row.items() if value is not None}}
            emit(self.rows, container, row)
        self._devices()
        about, self.about = self.about, {}
        if about.get("name"):
            self.rows.add("described", about.pop("line"), **about, namespace=self.namespace)
        self.containers, self.pod, self.section = [], None, ""
        self.namespace = self.on_node = None

    def end(self) -> None:
        """The end of the source: pods that were listed and not described."""
        self.finish()
        for number, row in self.listed.values():
            self.rows.add("container", number, **row)

    def _devices(self) -> None:
        node, self.node = self.node, {}
        for profile, (number, count) in node.get("mig", {}).items():
            self.rows.add("gpu_device", number, name=_product(node), mig_profile=profile, count=count)
        name, product = node.get("name"), node.get("gpu.product")
        sliced = _SLICED.search(product[1]) if product else None
        if name and (product or node.get("mig")):
            topic = "node-of-slices" if sliced or node.get("mig") else "node-of-whole-devices"
            self.rows.add("note", name[0], topic=topic, text=name[1])
        number, count = node.get("count") or node.get("gpu.count") or (0, 0)
        if node.get("gpu.count") and node.get("gpu.replicas", (0, "1"))[1] not in ("0", "1"):
            number, count = node["gpu.count"]  # with time slicing the capacity counts each device several times
        if (number or product) and not node.get("mig"):
            size = node.get("gpu.memory", (0, ""))[1]
            number = number or node["gpu.product"][0]
            self.rows.add(
                "gpu_device",
                number,
                name=_product(node),
                mig_profile=sliced[1] if sliced else None,
                total_bytes=int(size) * MIB if size.isdigit() and len(size) < 9 else None,
                count=int(count) if str(count).isdigit() and int(count) else 1,
            )


_CLOSED = frozenset(("", "State", "Last State", "Limits", "Requests", "Environment", "Mounts", "Done"))


_SLICED = regex(r"-MIG-(\dg\.\d{1,3}gb)")
"""How the device plugin's strategy `single` names the product of a node whose cards are cut: NVIDIA-A100-SXM4-40GB-MIG-1g.5gb."""


def _product(node: Mapping[str, Any]) -> str | None:
    found = node.get("gpu.product")
    return re.sub(r"-(?:MIG-\S+|SHARED)$", "", found[1]).replace("-", " ") if found else None


def limit(container: Container, key: str, value: str) -> None:
    """A limit of a container: memory, devices or a slice of one."""
    mig = MIG_KEY.fullmatch(key)
    if key == "memory":
        container.row["memory_limit_bytes"] = parse_size(value)
    elif mig:
        container.row["mig_profile"] = mig["profile"]
    elif GPU_KEY.match(key) and value.isdigit() and len(value) < 6:
        container.row["gpus"] = int(value)


_TOP = ("Name", "Namespace", "Node", "Events", "Conditions", "Volumes", "Capacity", "Allocatable", "Reference")
_BLOCKS = ("Limits", "Requests", "Environment", "Mounts", "Command", "Args")
_DETAILS = ("Reason", "Exit Code", "Signal", "Message", "Started", "Finished")
_PLAIN = ("Restart Count", "Liveness", "Readiness", "Startup", "Image", "Ready", "Port", "Host Port", "Image ID", "Container ID", "Ports", "Host Ports")  # fmt: skip


def emit(rows: Rows, container: Container, row: Row) -> None:
    """A container's row, and the engine settings of its command, environment and image."""
    rows.add("container", container.line, **row, image=container.image[1] or None, serves=container.serves)
    if container.serves is not False and (size := parse_size(container.shared or "")):
        rows.add("note", container.line, topic="shm-size", value=float(size), text=f"/dev/shm: sizeLimit {container.shared}")  # fmt: skip
    version = launch.image_version(container.image[1])
    if version:
        rows.add("engine_flag", container.image[0], flag="version", value=version, origin="command")
    for number, name, value in container.environment:
        rows.add("engine_flag", number, flag=name, value=launch.shown(name, value), origin="environment")
        if name.endswith("ARGS") and "--" in value:  # an image's own way to hand options on
            for flag, set_to in launch.flags_of(f"vllm serve {value}"):
                rows.add("engine_flag", number, flag=flag, value=set_to, origin="environment")
    words = [word for _, word in container.words]
    if any(re.search(r"\s--?\w|\bvllm serve ", word) for word in words):
        flags = launch.flags_of("\n".join(words))
    else:
        flags = launch.flags_of_tokens(words, sure="vllm" in container.image[1])
    for flag, value in flags:
        spelled = flag.replace("_", "-")
        line = next((number for number, word in container.words if spelled in word), container.line)
        rows.add("engine_flag", line, flag=flag, value=value, origin="command")
