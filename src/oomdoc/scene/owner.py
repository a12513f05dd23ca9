"""Whose an event is: the one relation between what hosts, clusters and drivers report and the server of the bundle.

An event is the server's own, or happened on its host or device in its time, or is not its own, or nothing says whose it is.
Each answer comes with its reason, which reports show. Identity decides before time, time before names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oomdoc.regexes import regex
from oomdoc.scene.lives import (
    ANOTHER_DAY_S,
    LAST_S,
    SEEN_S,
    WENT_ON_S,
    ZONES_S,
    Life,
    Server,
    ended_another_day,
    outlived,
    zone_apart,
)
from oomdoc.scene.places import (
    JOB_LOG,
    age_told,
    group_of_path,
    id_of,
    is_engine,
    job_of,
    same_id,
    step_in_path,
    step_of,
    uid_of,
    workload_of,
)
from oomdoc.units import show_bytes, show_seconds

OWN, NEAR, FOREIGN, UNKNOWN = "own", "near", "foreign", "unknown"

BEFORE_S = 5.0
"""Stamps of the kernel and of a log differ by the resolution of the kernel's clock and by buffered output: some seconds."""
AFTER_S = 600.0
"""A log may fall silent before the process ends: a collector waits for an idle engine, NCCL for a dead peer (ten minutes by default)."""
QUARTER_S = 900.0
"""What clocks of two zones differ by, at the least."""


@dataclass(frozen=True)
class Bond:
    """Whose an event is, the life that it belongs to (None = all or none), and why."""

    whose: str
    why: str
    life: str | None = None


Row = Mapping[str, Any]
OTHER_WORK = regex(
    r"(?i)train|fine-?tun|notebook|jupyter|etl|diffus|render|transcod|sweep|hpo|simulat|(?<![a-z])sim(?![a-z])"
)
"""What is done on devices beside serving."""
_BESIDE = regex(r"(?i)text-embeddi|infinity_emb|whisper-?serv")
"""Programs that serve models beside a language model and write no log like its: what became of them is their own."""
_NAMED_UNIT = regex(
    r"/((?!docker|containerd|crio|kubelet|libpod|podman|init|system|machine|session|user@|app|run-)[A-Za-z][\w.-]{2,60}?)(?:@[^/]{0,60})?\.service(?:/|$)"
)
"""A memory group of the service manager that has a name of its own; `user@1000.service` is whatever that person started."""
_NAMED_TASK = regex(r"/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22,27}\.(?P<task>[\w-]{1,60})\.scope(?:/|$)")
"""A memory group of Nomad: the allocation, and the task of it."""
_SESSION = regex(r"/user\.slice/|/session-\d{1,9}\.scope")
_OTHER_SERVER = regex(r"(?i)llama[-_.]?(?:cpp|server)|ollama|tritonserver|text[-_]generation|sglang|lmdeploy|koboldcpp")
"""Programs that serve a language model, and are not vLLM."""
_UNIT = regex(r"(?:\.service|\.scope|^user-\d+\.slice)$")
"""Memory groups of the service manager: of a daemon, a session, a person who is logged in."""


def of_kill(row: Row, server: Server) -> Bond:
    """A process that the kernel or a daemon ended for want of memory: `process`, `memory_group`, `t`, `kind`."""
    name, group, t = row["process"], row["memory_group"] or "", row["t"]
    who = f"the kernel ended {name}" if name else "the kernel ended a process"
    known = _of_group(group, server)
    if known is False:
        return Bond(FOREIGN, f"{who} in the memory group of another container")
    job, jobs = job_of(row, group), {found["job"] for life in server.lives if (found := JOB_LOG.search(life.source))}
    step, its_steps = step_of(group, row["text"] or ""), {step_in_path(life.source) for life in server.lives}
    if job in jobs and step and None not in its_steps and step not in its_steps:
        return Bond(FOREIGN, f"{who} in step {step} of job {job}, and the server is in another step of it")
    if job and jobs:
        return Bond(OWN if job in jobs else FOREIGN, f"{who} in job {job}" + ("" if job in jobs else ", and the server's is another"))  # fmt: skip
    unit = _NAMED_UNIT.search(group)
    if unit and not is_engine(unit[1]) and not server.kin.has(unit[1]):
        return Bond(FOREIGN, f"{who} in the memory group of {unit[1]}")
    task = _NAMED_TASK.search(group)
    if (
        task
        and task["task"] not in server.containers
        and (server.containers or is_engine(name) is False)
        and not is_engine(task["task"])
    ):
        return Bond(FOREIGN, f"{who} in the memory group of task {task['task']}")
    if known is None and server.container_ids and _SESSION.search(group) and not id_of(group):
        return Bond(FOREIGN, f"{who} in the session of a person, and the server runs in a container")
    if server.is_vllm and _OTHER_SERVER.search(name or ""):
        return Bond(FOREIGN, f"{who}, a server of another make")
    engine = is_engine(name)
    if server.kin.has(name) and not (
        server.lives and name and (_BESIDE.search(name) or server.kin.of_another_task(name))
    ):
        engine = True
    alone = row["kind"] == "cgroup-oom-kill"
    same = _same_limit(row, server) if alone else None
    if (
        same is False
        and known is None
        and not (is_engine(name) or (name and server.kin.shares_a_word(name)))
        and not any(life.end == "killed" for life in server.lives)
    ):
        return Bond(
            FOREIGN,
            f"{who} in a memory group of {show_bytes(row['limit_bytes'])}, which is not the limit of the server's container",
        )
    if same is not False and engine is not False and (last := _last_of(t, server, bool(known or same))):
        its, ahead = last
        bound = f"{who} within seconds of the last line of {its.source}, by a clock {show_seconds(abs(ahead))} {'ahead' if ahead > 0 else 'behind'}"
        by = (
            "; it is the server's memory group"
            if known
            else "; its limit is that of the server's container"
            if same
            else ""
        )
        return Bond(OWN, bound + by, its.id)
    if known is None and engine is False:
        if alone:
            return Bond(FOREIGN, f"{who} in a memory group of its own")
        when, _ = in_time(t, server)
        if when == "before" or when == "after":
            return Bond(FOREIGN, f"{who}, {apart(t, server)}")
        age = age_told(row["text"] or "")
        if when == "untimed" and age is not None and age > ANOTHER_DAY_S:
            return Bond(FOREIGN, f"{who}, another program, {show_seconds(age)} before it was listed")
        if when == "untimed":
            return Bond(UNKNOWN, f"{who}, another program, at a time that cannot be compared")
        return Bond(NEAR, f"{who} because the whole host was full")
    when, life = in_time(t, server)
    own = None if life is None else life.id
    if known and t is not None and any(-BEFORE_S <= ended - t <= SEEN_S for ended in server.ended):
        return Bond(OWN, f"{who} in the server's memory group, and its container ended within seconds of that")
    if when == "before":
        if shifted := _shifted(t, server):
            return Bond(
                OWN,
                f"the clocks of {row['source']} and {shifted.source} differ by whole quarters of an hour",
                shifted.id,
            )
        if engine and (earlier := _untimed_and_killed(server)):
            return Bond(
                OWN, f"{earlier.source} shows an earlier start that was ended by a signal and tells no time", earlier.id
            )
        return Bond(FOREIGN, f"{who} {apart(t, server)}")
    if when == "after":
        if shifted := _shifted(t, server):
            return Bond(
                OWN,
                f"the clocks of {row['source']} and {shifted.source} differ by whole quarters of an hour",
                shifted.id,
            )
        if server.came_up and server.running_since is not None and t is not None and server.running_since < t:
            return Bond(FOREIGN, f"{who}, and the server's container runs on")
        if life is not None and life.end in ("failed", "stopped"):
            return Bond(FOREIGN, f"{who} {apart(t, server)}")
        return Bond(
            OWN if engine or known or same else UNKNOWN,
            f"{who} after the last line of {life.source if life else 'the log'}",
            own,
        )
    if when == "survived" and life is not None:
        return Bond(FOREIGN, f"{who}, and the server of {life.source} answered on after it")
    if (
        when == "during"
        and life is not None
        and row["kind"] == "ray-memory-kill"
        and not known
        and _failed_later(t, life)
    ):
        return Bond(
            FOREIGN,
            f"{who} {show_seconds((life.end_t or 0.0) - (t or 0.0))} before the server failed, and Ray tells of a lost worker at once",
        )
    if when == "untimed" and not known and server.lives:
        if server.came_up and (not engine or server.running_since is not None):
            return Bond(UNKNOWN, f"{who} at a time that cannot be compared, and the server shows no failure")
        if not engine and all(life.end == "failed" for life in server.lives):
            return Bond(
                UNKNOWN, f"{who} at a time that cannot be compared, and the server's log ends with an error of its own"
            )
        return Bond(OWN, f"{who}; its time cannot be compared", None)
    return Bond(OWN, who, own)


def shows_identity(kill: Row, server: Server) -> bool:
    """Whether a kill shows that it is the server's: by the name of the process, by its memory group, by the limit of that."""
    name = kill["process"]
    return bool(
        is_engine(name) or server.kin.has(name) or _of_group(kill["memory_group"] or "", server) or _same_limit(kill, server)
        or any(life.end == "killed" for life in server.lives)
    )  # fmt: skip


_MOUNTED = regex(r"\s{0,8}\S{1,40}(?: +\d[\d.]{0,15}[KMGT]?){3} +\d{1,3}% +/dev/shm\b")
"""A row of `df`: size, used, available, share, where it is mounted."""


_AT_ONCE_S = 15.0
"""Between the signal and the last line of a server: its front end waits up to ten seconds for an engine that is gone, and then says so."""


def of_statement(row: Row, server: Server) -> Bond:
    """A statement about host memory, shared memory or a lost worker in a text that is no log of the server's: `t`."""
    when, life = in_time(row["t"], server)
    if row["kind"] == "bus-error" and row["process"] and is_engine(row["process"]) is None and row["t"] is not None:
        ended = next((life for life in server.lives if life.end_t and abs(life.end_t - row["t"]) <= _AT_ONCE_S), None)
        if ended:
            return Bond(OWN, f"an interpreter ended at the moment at which the server of {ended.source} did", ended.id)
    if when in ("before", "after"):
        return Bond(FOREIGN, f"another program's log, {apart(row['t'], server)}")
    if when == "survived" and life is not None:
        return Bond(FOREIGN, f"another program's log, and the server of {life.source} answered on after it")
    if row["kind"] == "shm-full" and _MOUNTED.match(row["text"] or ""):
        return Bond(NEAR, "how full shared memory is, as somebody looked it up: no other program's message")
    if row["kind"] == "bus-error" and is_engine(row["process"]):
        return Bond(
            OWN, f"the kernel names the process, which is the engine's: {row['process']}", life.id if life else None
        )
    return Bond(UNKNOWN, "a text that is no log of the server's")


def of_counter(row: Row, server: Server) -> Bond:
    """Counters of a memory group: `memory_group`."""
    group = row["memory_group"] or group_of_path(row["source"]) or ""
    known = _of_group(group, server)
    if known is False:
        return Bond(FOREIGN, f"the counters of another container's memory group ({group[-60:]})")
    unit = group.rstrip("/").rsplit("/", 1)[-1]
    if known is None and _UNIT.search(unit) and is_engine(unit) is False and not _names(server, unit) and not server.kin.has(unit):  # fmt: skip
        return Bond(FOREIGN, f"the counters of another unit's memory group ({unit})")
    return Bond(OWN, "its memory group")


def of_container(row: Row, server: Server) -> Bond:
    """A container's state: `pod`, `name`, `namespace`, `serves`."""
    pod, name = row["pod"], row["name"]
    said = f"container {name} of pod {pod}" if pod and name else f"pod {pod}" if pod else f"container {name}"
    bond = of_pod(pod, row["namespace"], server, said)
    if bond is not None and bond.whose == FOREIGN:
        return bond
    if outlived(row, server.lives):
        return Bond(FOREIGN, f"{said} ended, and the server answered on after it")
    if (before := ended_another_day(row, server)) is not None:
        return Bond(FOREIGN, f"{said} ended {show_seconds(before)} before the server began that has been up since")
    if pod in server.initializing and name not in server.containers:
        return Bond(OWN, f"{said}, which the server waits for")
    if row["serves"] is False and (server.containers - {name}):
        return Bond(FOREIGN, f"{said} is not the one that serves")
    another = bool(name and server.containers) and name not in server.containers
    if another and (not pod or (bond is not None and row["serves"] is None)):
        return Bond(FOREIGN, f"{said} is not the one that serves")
    # of a task or a service whose name nobody gave, the container that is named as the one that serves
    named = bool(name) and not server.pods and name in server.containers
    return bond or Bond(OWN if row["serves"] or named else UNKNOWN, said)


def of_measured(namespace: str | None, pod: str | None, container: str | None, server: Server, kin_told: bool) -> Bond:
    """What an exporter measured of a container. `kin_told`: it tells of a pod that is called as this server or a model server is."""
    said = f"measured of {pod or container or 'a container'}"
    bond = of_pod(pod, namespace, server, said)
    if bond is not None:
        return bond
    if pod and kin_told and server.kin.has(pod) is False:
        return Bond(FOREIGN, f"{said}, beside a model server")
    if not pod and container and server.containers:
        return Bond(OWN if container in server.containers else FOREIGN, said)
    return Bond(UNKNOWN, said)


def of_cluster_event(row: Row, server: Server) -> Bond:
    """A Kubernetes event: `object`, `namespace`, `message`."""
    about, namespace = row["object"] or "", row["namespace"]
    kind, _, name = about.rpartition("/")
    if kind.lower() in ("node", "nodes"):
        if server.nodes and name not in server.nodes:
            return Bond(FOREIGN, f"an event of another node, {name}")
        return Bond(NEAR, f"an event of node {name}")
    if kind and kind.lower() not in ("pod", "pods") and "/" not in kind and kind != namespace:
        own = not server.workloads or any(name.startswith(each) or each.startswith(name) for each in server.workloads)
        if not own or _other_namespace(namespace, server):
            return Bond(FOREIGN, f"an event of {about}")
        return Bond(OWN, f"an event of {about}")
    said = f"an event of {about}"
    bond = of_pod(name or None, namespace, server, said)
    if bond is not None or not name:
        return bond or Bond(UNKNOWN, "an event that names nobody")
    if server.kin.has(name):
        if server.came_up and server.kin.words and not server.kin.shares_a_word(name) and not _FRONT.search(name):
            return Bond(FOREIGN, f"{said}, named as a model server is, while this server shows no end")
        return Bond(OWN, f"{said}, named as a model server is")
    if row["beside_kin"]:
        return Bond(FOREIGN, f"{said}, beside those of a model server")
    return Bond(UNKNOWN, f"{said}, of which nothing says that it is the server")


def of_scaler(row: Row, server: Server) -> Bond:
    """A statement about an autoscaler: `target`, `namespace`."""
    target = row["target"]
    if _other_namespace(row["namespace"], server):
        return Bond(FOREIGN, f"an autoscaler in namespace {row['namespace']}")
    if target and server.workloads and not any(
        target.startswith(each) or each.startswith(target) for each in server.workloads
    ):  # fmt: skip
        return Bond(FOREIGN, f"an autoscaler of {target}")
    if (
        target
        and not server.workloads
        and server.kin.shown_beside(row["source"])
        and not server.kin.has(target)
        and not _FOLLOWS_ENGINE.search(row["name"] or "")
    ):
        return Bond(FOREIGN, f"an autoscaler of {target}, of which nothing says that it is the server")
    return Bond(OWN if target and (server.workloads or server.kin.has(target)) else UNKNOWN, "an autoscaler")


_FOLLOWS_ENGINE = regex(r"(?i)vllm|llm|sglang|tgi|queue|token|kv|cache|ttft|request|gpu|dcgm|infer")
"""Metrics that only somebody who serves a model scales by."""


def of_exit(row: Row, server: Server) -> Bond:
    """A process that ended, said outside the server's logs: `name`, `exit_code`, `t`."""
    name, t = row["name"], row["t"]
    said = f"{name} ended" if name else "a process ended"
    if name and of_another_program(name, server):
        return Bond(FOREIGN, f"{said}, another program")
    when, _ = in_time(t, server)
    if when in ("before", "after"):
        return Bond(FOREIGN, f"{said} {apart(t, server)}")
    by_itself = row["exit_code"] is not None and 0 <= row["exit_code"] < 128
    if by_itself and name and (is_engine(name) or server.kin.shares_a_word(name)):
        broken = [life for life in server.lives if life.end == "open" and not life.served]
        near = [
            life
            for life in broken
            if t is not None and life.end_t is not None and -BEFORE_S <= t - life.end_t <= SEEN_S
        ]
        if len(near) == 1:
            return Bond(OWN, f"{said} within seconds of the last line of {near[0].source}", near[0].id)
        if is_engine(name) and (len({life.source for life in server.lives}) == 1 or len(broken) == 1):
            return Bond(
                OWN, f"{said}, and no other server is in the bundle", broken[0].id if len(broken) == 1 else None
            )
    return Bond(UNKNOWN, said)


def of_another_program(name: str, server: Server) -> bool:
    """Whether a name is that of another program: no engine's, no interpreter's, and none that the server goes by."""
    return is_engine(name) is False and not _names(server, name) and not server.kin.shares_a_word(name)


_CONTAINER_GROUP = regex(r"docker|libpod|podman|nerdctl|/lxc")


def _same_limit(row: Row, server: Server) -> bool | None:
    """Whether the limit of a killed group is that of the server's container to the byte; None where one of them is not told.

    A larger limit tells only of a container that no cluster runs: a pod's own group holds the sum of its containers.
    """
    limit = row["limit_bytes"]
    if not limit or not server.memory_limits:
        # what people tell of limits may be of any container, but a group has one of them, or a pod their sum
        return False if limit and server.told_limits and limit < min(server.told_limits) else None
    if limit in server.memory_limits:
        return True
    if limit < min(server.memory_limits):
        return False  # a pod's group holds the sum of its containers, and is no smaller than one of them
    return False if _CONTAINER_GROUP.search(row["memory_group"] or "") else None


def _last_of(t: float | None, server: Server, bound: bool) -> tuple[Life, float] | None:
    """The life whose last line a kill follows within seconds, by a clock of another zone, and how far that is ahead.

    The log ends without a word of an end, while it worked. Where nothing else binds the kill, it has to come after all lines:
    of what comes before the last one, chance makes some agree. What is bound may come a little later, and end a start, which
    is at work without writing of it.
    """
    for life in server.lives:
        at_work = (bound and not life.served) or (life.at_work_t or 0.0) >= (life.end_t or 0.0) - LAST_S
        if t is None or life.end != "open" or life.end_t is None or not at_work:
            continue
        ahead = zone_apart(t, life, SEEN_S if bound else LAST_S)
        if ahead and (bound or ahead > 0):
            return life, ahead
    return None


def _of_group(group: str, server: Server) -> bool | None:
    """Whether a memory group is the server's, by the pod's uid or the container's id; None where one of them is not known."""
    uid, container = uid_of(group), id_of(group)
    if container and server.container_ids:
        return any(same_id(container, own) for own in server.container_ids)
    if uid and server.pod_uids:
        return uid in server.pod_uids
    return None


def of_pod(pod: str | None, namespace: str | None, server: Server, said: str) -> Bond | None:
    """By the pod: its own, another replica, somebody else's; None where no pod is named."""
    if _other_namespace(namespace, server):
        return Bond(FOREIGN, f"{said} in namespace {namespace}")
    if not pod:
        return None
    if pod in server.pods or pod in server.containers:
        return Bond(OWN, said)
    if not server.pods:
        return None
    if workload_of(pod) in server.workloads:
        return Bond(OWN, f"{said}, a replica of the same workload")
    if _FRONT.search(pod):
        return Bond(UNKNOWN, f"{said}, which stands before the server")
    return Bond(FOREIGN, said)


_FRONT = regex(r"(?i)litellm|(?<![a-z])(?:v?llm|model|inference)[-_]?(?:gateway|router|proxy)(?![a-z])")
"""What takes requests for a model server and hands them on: to its callers both are one service."""


def _other_namespace(namespace: str | None, server: Server) -> bool:
    return bool(namespace and server.namespaces and namespace not in server.namespaces)


def _names(server: Server, name: str) -> bool:
    """Whether a name is one of the server's containers or pods, or holds one."""
    return any(own in name or name in own for own in (*server.containers, *server.pods, *server.workloads) if own)


def in_time(t: float | None, server: Server) -> tuple[str, Life | None]:
    """When an event was: `during` a life, `survived` by it, `before` all, `after` the nearest one before it, or `untimed`."""
    timed = [life for life in server.lives if life.begin_t is not None and life.end_t is not None]
    if t is None or not timed:
        return "untimed", None
    begun = [life for life in timed if life.begin_t is not None and life.begin_t - BEFORE_S <= t]
    if not begun:
        return "before", None
    life = max(begun, key=lambda each: (each.begin_t or 0.0, each.id))
    assert life.end_t is not None
    if life.at_work_t is not None and life.at_work_t > t + WENT_ON_S:
        return "survived", life
    # a server without traffic writes nothing; one that ended by its own words is over
    return ("during", life) if t <= life.end_t + AFTER_S else ("after", life)


def _failed_later(t: float | None, life: Life) -> bool:
    """Whether a life ended by an error of its own, too late for one that follows from what was at `t`."""
    return t is not None and life.end == "failed" and life.end_t is not None and life.end_t - t > SEEN_S


def _shifted(t: float | None, server: Server) -> Life | None:
    """The life whose killed worker the event is, seen by a clock of another zone."""
    for life in server.lives:
        if t is None or life.end_t is None or life.end != "killed":
            continue
        apart = life.end_t - t
        steps = round(apart / QUARTER_S)
        if steps and abs(apart) <= ZONES_S and abs(apart - steps * QUARTER_S) <= SEEN_S:
            return life
    return None


def _untimed_and_killed(server: Server) -> Life | None:
    """The one life that was killed and tells no time, where a later one of the same source does."""
    lives = [life for life in server.lives if life.begin_t is None and life.end_t is None and life.end == "killed"]
    if len(lives) != 1 or not any(life.source == lives[0].source and life.id > lives[0].id for life in server.lives):
        return None
    return lives[0]


def apart(t: float | None, server: Server) -> str:
    """How far before the server's first line or after its last an event lies."""
    begins = [life.begin_t for life in server.lives if life.begin_t is not None]
    ends = [life.end_t for life in server.lives if life.end_t is not None]
    if t is None or not begins:
        return "at another time"
    if t < min(begins):
        return f"{show_seconds(min(begins) - t)} before this server started"
    if ends and t > max(ends):
        return f"{show_seconds(t - max(ends))} after its last line"
    return "between its starts"
