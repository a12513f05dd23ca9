"""Whose a source or a name is: pods, containers and nodes in paths, ids in memory groups, names of engine processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from oomdoc.regexes import regex
from oomdoc.units import parse_age

_NAME = r"[a-z0-9](?:[a-z0-9.-]{0,250}[a-z0-9])?"
_PATHS = tuple(
    regex(shape)
    for shape in (
        # the kubelet's own folders
        rf"(?:^|/)pods/(?P<namespace>{_NAME})_(?P<pod>{_NAME})_(?P<uid>[0-9a-f-]{{8,36}})/(?P<container>{_NAME})/",
        rf"(?:^|/)containers/(?P<pod>{_NAME})_(?P<namespace>{_NAME})_(?P<container>{_NAME})-(?P<id>[0-9a-f]{{12,64}})\.log",
        # troubleshoot.sh
        rf"(?:^|/)pods/logs/(?P<namespace>{_NAME})/(?P<pod>{_NAME})/(?P<container>{_NAME}?)(?:-previous)?\.log",
        # must-gather, then `kubectl cluster-info dump`
        rf"(?:^|/)namespaces/(?P<namespace>{_NAME})/pods/(?P<pod>{_NAME})/(?:(?P<container>{_NAME})/)?",
        rf"(?:^|/)(?P<namespace>{_NAME})/(?P<pod>{_NAME})/logs\.txt",
    )
)
_NODE = regex(rf"(?:^|/)(?:(?:nodes?|hosts?)/(?P<node>{_NAME})/|(?:nodes|hosts)/(?P<file>{_NAME})\.(?:txt|log|json)$)")
"""`nodes/gpu-7/dmesg.txt`, `hosts/gpu-7.txt`; in `node/nvidia-smi.txt` lie the files of the one node."""
_UID = regex(r"pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})")
_ID = regex(r"(?<![0-9a-f_-])([0-9a-f]{64}|[0-9a-f]{12})(?![0-9a-f_-])")
_SCOPE = regex(r"/(?:docker|libpod|nerdctl)-([0-9a-f]{8,64})\.scope")
"""The scope of a container that no cluster runs: it has one id in all its lives; somebody may have cut it."""
_REPLICA = regex(r"-[0-9a-f]{5,10}-[a-z0-9]{5}$|-(?:(?=[a-z]{0,4}\d)[a-z0-9]{5}|[b-df-hj-np-tv-z]{5})$|-\d{1,4}$")
"""What a cluster puts behind a workload's name: five letters and digits without a vowel (apimachinery, util/rand), so that `-large` is a name's own; a number."""

ENGINE = regex(
    r"(?i)vllm|enginecore|^ray::|^raylet|rayworker|workerproc|sglang|sgl_|text-generation|tritonserver|trtllm|lmdeploy|"
    r"llama-server|llama\.cpp|aphrodite|api_server|(?<![-\w])api ?server|^worker_(?:tp|pp|dp|ep)\d"
)
"""Names that only an LLM server's processes have. The kernel cuts names after 15 characters."""
INTERPRETER = regex(r"(?i)^(?:\S*/)?(?:python[\d.]*|pt_main_thread|pt_\w+|uv|ld-linux\S*|torchrun)\b")
"""Names that a server's process has as well as many another program."""


@dataclass(frozen=True)
class Place:
    """Where in a cluster a source comes from; None = its path does not say."""

    namespace: str | None = None
    pod: str | None = None
    container: str | None = None
    pod_uid: str | None = None
    container_id: str | None = None
    node: str | None = None


def pod_in_path(path: str, pods: Iterable[str]) -> str | None:
    """The pod of these after which a folder or a file is called: people name a log as `kubectl logs` asked for it. None where none is.

    >>> pod_in_path("logs/llm-0_vllm-previous.log", {"llm-0", "llm-01"}), pod_in_path("billing-0/start.log", {"billing-0"}), pod_in_path("llm.log", {"llm-0"})
    ('llm-0', 'billing-0', None)
    """
    parts = path.split("/")
    named = [
        pod for pod in pods
        if pod and any(part == pod or (part.startswith(pod) and not part[len(pod)].isalnum()) for part in parts)
    ]  # fmt: skip
    return max(named, key=len, default=None)


def place_of_path(path: str) -> Place:
    """What the path of a source says.

    >>> place_of_path("var/log/pods/prod_llm-0_0a1b2c3d/server/0.log").pod
    'llm-0'
    """
    node = _NODE.search(path)
    for shape in _PATHS:
        found = shape.search(path)
        if found:
            parts = found.groupdict()
            return Place(
                parts.get("namespace"), parts.get("pod"), parts.get("container"), parts.get("uid"), parts.get("id")
            )
    return Place(node=(node["node"] or node["file"]) if node else None)


def workload_of(pod: str) -> str:
    """The name that replicas of a workload share.

    >>> workload_of("llm-7d9f8c6b5-x2x4z"), workload_of("llm-0"), workload_of("llm"), workload_of("mistral-large-0"), workload_of("mistral-large")
    ('llm', 'llm', 'llm', 'mistral-large', 'mistral-large')
    """
    return _REPLICA.sub("", pod)


SAME_SIZE = 0.03
"""Two totals of one device differ by what driver and firmware reserve, some 1 to 2 %; the nearest two products differ by 10 % and more."""


def uid_of(group: str) -> str | None:
    """The pod's uid in the path of a memory group, with dashes."""
    found = _UID.search(group)
    return found[1].replace("_", "-") if found else None


def id_of(group: str) -> str | None:
    """The container's id in the path of a memory group.

    >>> id_of("/system.slice/docker-4be1907cd2aa.scope"), id_of("/docker/4be1907cd2aa"), id_of("/system.slice/cron.service")
    ('4be1907cd2aa', '4be1907cd2aa', None)
    """
    if (scope := _SCOPE.search(group)) and uid_of(group) is None:
        return scope[1]
    found = _ID.findall(group)
    return str(found[-1]) if found else None


_GROUP_FILE = regex(r"(?:^|/)(?P<group>(?:[^/]+/)*[^/]+\.(?:service|scope|slice))/memory\.[\w.]+$")


def group_of_path(path: str) -> str | None:
    """The memory group of the service manager whose file this is; None where the path names none.

    >>> group_of_path("cgroup/system.slice/cron.service/memory.events"), group_of_path("cgroup/memory.events")
    ('cgroup/system.slice/cron.service', None)
    """
    found = _GROUP_FILE.search(path)
    return found["group"] if found else None


def same_id(one: str, other: str) -> bool:
    """Whether two ids of a container are the same: tools print the first twelve characters, or all."""
    return one.startswith(other) or other.startswith(one)


def is_engine(name: str | None) -> bool | None:
    """Whether a process is an LLM server's by its name: None where an interpreter's name leaves it open, or there is none.

    >>> [is_engine(name) for name in ("Worker_TP1", "APIServer_0", "kube-apiserver", "worker", "python3")]
    [True, True, False, False, None]
    """
    if not name:
        return None
    if ENGINE.search(name):
        return True
    return None if INTERPRETER.match(name) else False


JOB_LOG = regex(r"(?i)(?:(?:slurm|job)[-_.]?|[-_.](?=\d{4,10}\.(?:out|err)$))(?P<job>\d{3,10})(?!\d)")
"""`slurm-4711.out`, `serve.4711.err`: the log of a batch job by its number."""
_JOB = regex(
    r"/job_(?P<group>\d{3,10})(?!\d)|\bStepId=(?P<step>\d{3,10})|^(?P<row>\d{3,10})(?:[._+][\w.]{1,20})?[|,;\t ]+\S"
)


def job_of(row: Mapping[str, Any], group: str) -> str | None:
    """The batch job that an event is of: by its memory group, its step, the list of jobs that it stands in, or the log it is told in."""
    for text in (group, row["text"] or ""):
        if found := _JOB.search(text):
            return found["group"] or found["step"] or found["row"]
    found = JOB_LOG.search(row["source"]) if row["kind"] == "slurm-oom-kill" else None
    return found["job"] if found else None


_STEP = regex(
    r"/job_\d{3,10}/step_(?P<group>\d{1,6})(?!\d)|\bStepId=\d{3,10}\.(?P<step>\d{1,6})(?!\d)|^\d{3,10}\.(?P<row>\d{1,6})[|,;\t ]"
)
_STEP_LOG = regex(r"(?i)(?<![a-z])step[-_.]?(?P<step>\d{1,6})(?!\d)")


def step_of(group: str, text: str) -> str | None:
    """The step of a batch job that an event is of: by its memory group, its step's number, the list of steps that it stands in.

    >>> step_of("/slurm/uid_20/job_4711/step_3/task_0", ""), step_of("", "error: Detected 1 oom_kill event in StepId=4711.2."), step_of("", "4711.batch  batch")
    ('3', '2', None)
    """
    for told in (group, text):
        if found := _STEP.search(told):
            return found["group"] or found["step"] or found["row"]
    return None


def step_in_path(path: str) -> str | None:
    """The step that a job's log is of, by its name: `slurm-4711.out.step0`."""
    found = _STEP_LOG.search(path.rsplit("/", 1)[-1])
    return found["step"] if found else None


_AGED = regex(r"\b(?:SystemOOM|OOMKilling)\s+(?P<age>(?:\d{1,5}[ydhms])+)\b")


def age_told(text: str) -> float | None:
    """Seconds since an event of a node, as its description tells them; None where it tells none.

    >>> age_told("Warning  SystemOOM  9d  kubelet  System OOM encountered"), age_told("Killed process 7 (java)")
    (777600.0, None)
    """
    told = _AGED.search(text)
    return parse_age(told["age"]) if told else None
