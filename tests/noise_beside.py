"""Innocent evidence: what a node, a cluster and its people leave beside a server's files, of which none is the server's.

A kind is a function from a scene (the bundle's files, the times of the server, a source of chance) to the files that it adds
or changes; an empty answer means that it does not fit this bundle. Every kind can be set aside for a reason that the text
shows: another memory group, pod, namespace, host or device, another day, or a quotation.
"""

from __future__ import annotations

import datetime as dt
import json
import random
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import shapes
from noise_words import ADVICE, ENGINE_SOURCE, GATED_START, OLD_LIFE, QUOTES, VICTIMS

Files = dict[str, bytes]
HOUR, DAY = 3600.0, 86400.0


class Scene(NamedTuple):
    """A bundle to which evidence is added: its files, the first and the last moment of the server, a source of chance."""

    files: Files
    begin: float
    end: float
    rng: random.Random

    def hexes(self, count: int) -> str:
        """So many hexadecimal digits."""
        return "".join(self.rng.choice("0123456789abcdef") for _ in range(count))

    def uid(self) -> str:
        """A pod's or device's identifier."""
        return "-".join(self.hexes(count) for count in (8, 4, 4, 4, 12))

    def pod(self, name: str) -> str:
        """A pod's name with the suffixes of its replica set."""
        return f"{name}-{self.hexes(9)}-{''.join(self.rng.choice('bcdfghjklmnpqrstvwxz2456789') for _ in range(5))}"

    def quotes(self, count: int) -> list[str]:
        """Messages to quote."""
        return self.rng.sample(QUOTES, count)

    def add(self, path: str, text: str) -> Files:
        """A new file, whose path is free."""
        return {shapes.free(self.files, path): text.encode()}


Kind = Callable[[Scene], Files]
KINDS: dict[str, Kind] = {}


def kind(function: Kind) -> Kind:
    """Lists a function as a kind by its name."""
    KINDS[function.__name__.replace("_", "-")] = function
    return function


def scene_of(files: Files, rng: random.Random) -> Scene:
    """The scene of a bundle: times are those of its logs, else a day in May."""
    year = shapes.year_of(files)
    stamps: list[float] = []
    for data in files.values():
        for line in data[:200_000].decode("utf-8", "replace").split("\n"):
            stamp = shapes._moment(line, year)
            if stamp is not None:
                stamps.append(stamp)
    begin = min(stamps, default=dt.datetime(year, 5, 22, 9, 0, tzinfo=dt.UTC).timestamp())
    return Scene(files, begin, max(stamps, default=begin + HOUR), rng)


def utc(t: float, form: str) -> str:
    """A moment as `strftime` writes it."""
    return dt.datetime.fromtimestamp(t, dt.UTC).strftime(form)


# ---- the kernel

_CALLS = ("dump_stack_lvl+0x76/0xa0", "dump_header+0x4e/0x1f0", "oom_kill_process+0x110/0x280", "out_of_memory+0x103/0x350", "mem_cgroup_out_of_memory+0x14b/0x170", "try_charge_memcg+0x6f2/0x810", "charge_memcg+0x5a/0xe0", "do_anonymous_page+0x1ea/0x6b0", "handle_mm_fault+0x19e/0x380", "asm_exc_page_fault+0x27/0x30")  # fmt: skip


def kill_report(scene: Scene, name: str, group: str | None, limit_mib: int) -> list[str]:
    """What a kernel of our days writes when it ends a process for want of memory; no group means the whole node."""
    rng = scene.rng
    pid = rng.randint(400_000, 3_900_000)
    rss = int(limit_mib * 1024 * rng.uniform(0.9, 0.99)) // 4 * 4
    adj = rng.choice((-997, 0, 936, 984, 1000))
    lines = [
        f"{name} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj={adj}",
        f"CPU: {rng.randint(0, 95)} PID: {pid} Comm: {name} Tainted: P           OE      6.8.0-71-generic #71-Ubuntu",
        "Hardware name: Example Systems GX-8/GX-8, BIOS 2.4 11/02/2025",
        "Call Trace:",
        " <TASK>",
        *(f" {call}" for call in _CALLS),
        " </TASK>",
    ]
    if group:
        lines += [
            f"memory: usage {limit_mib * 1024}kB, limit {limit_mib * 1024}kB, failcnt {rng.randint(40, 9000)}",
            "swap: usage 0kB, limit 9007199254740988kB, failcnt 0",
            f"Memory cgroup stats for {group}:",
            f"anon {rss * 1024}",
            "file 0",
        ]
    else:
        lines += [
            "Mem-Info:",
            f"active_anon:{rng.randint(9, 99)}12311 inactive_anon:231 isolated_anon:0",
            f"Node 0 Normal free:{rng.randint(50000, 90000)}kB boost:0kB min:90112kB low:112640kB high:135168kB",
        ]
    lines += [
        "Tasks state (memory values in pages):",
        "[  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name",
        f"[{pid - 40:7d}] 65535 {pid - 40:5d}      255        1        0        1         0    28672        0          -998 pause",
        f"[{pid:7d}]  1000 {pid:5d} {rss // 3:8d} {rss // 4:8d} {rss // 4:8d}        0         0 {rss // 2:8d}        0 {adj:13d} {name[:15]}",
    ]
    where = f"oom_memcg={group},task_memcg={group}/cri-containerd-{scene.hexes(64)}.scope" if group else "global_oom,task_memcg=/user.slice/user-1000.slice/session-7.scope"  # fmt: skip
    constraint = "CONSTRAINT_MEMCG" if group else "CONSTRAINT_NONE"
    lines.append(f"oom-kill:constraint={constraint},nodemask=(null),cpuset={'cri-containerd-' + scene.hexes(64) + '.scope' if group else '/'},mems_allowed=0-1,{where},task={name[:15]},pid={pid},uid=1000")  # fmt: skip
    start = "Memory cgroup out of memory" if group else "Out of memory"
    lines.append(f"{start}: Killed process {pid} ({name[:15]}) total-vm:{rss * 3}kB, anon-rss:{rss}kB, file-rss:{rng.randint(0, 9000) * 4}kB, shmem-rss:0kB, UID:1000 pgtables:{rss // 400}kB oom_score_adj:{adj}")  # fmt: skip
    lines.append(f"oom_reaper: reaped process {pid} ({name[:15]}), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB")
    return lines


def other_group(scene: Scene) -> str:
    """The memory group of another pod."""
    quality = scene.rng.choice(("burstable", "besteffort"))
    uid = scene.uid().replace("-", "_")
    return f"/kubepods.slice/kubepods-{quality}.slice/kubepods-{quality}-pod{uid}.slice"


_UPTIME = re.compile(rb"\[ *(\d+)\.\d{6}\] ")
_CTIME = re.compile(rb"\[[A-Z][a-z]{2} ([A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d \d{4})\] ")
_FORMS: dict[str, Callable[[float], str]] = {
    "ctime": lambda t: utc(t, "[%a %b %e %H:%M:%S %Y] "),
    "iso": lambda t: utc(t, "%Y-%m-%dT%H:%M:%S,123456+00:00 "),
    "journal": lambda t: utc(t, "%b %d %H:%M:%S gpu-node-3 kernel: "),
    "uptime": lambda t: f"[{t:12.6f}] ",
}


def kernel_says(scene: Scene, reports: list[tuple[float, list[str]]]) -> Files:
    """Lay reports in the bundle's own kernel log, by its form of time and in order, else in a kernel log of their own."""
    path = next((p for p in scene.files if "dmesg" in p or "kern" in p.rsplit("/", 1)[-1]), None)
    data = scene.files[path] if path else b""
    if path and data.startswith((b"[", b"\n[")) and not data.startswith(b"\x1f\x8b"):
        lines = data.decode("utf-8", "replace").split("\n")
        ctime = sum(bool(_CTIME.match(line.encode())) for line in lines)
        uptimes = [float(m[1]) for line in lines if (m := _UPTIME.match(line.encode()))]
        if ctime:
            stamped = [(t, f"{_FORMS['ctime'](t)}{text}") for t, texts in reports for text in texts]
            return {path: _merged(lines, stamped)}
        if uptimes:
            # no boot time: what lies before the server is put before the first line, the rest behind the last
            first, last = uptimes[0], uptimes[-1]
            early, late = [], []
            for t, texts in reports:
                at = max(1.0, first * 0.4) if t < scene.begin else last + 600
                (early if t < scene.begin else late).extend(f"{_FORMS['uptime'](at)}{text}" for text in texts)
            tail = lines[:-1] if lines and not lines[-1] else lines
            return {path: ("\n".join([*early, *tail, *late]) + "\n").encode()}
    form = scene.rng.choice(("ctime", "iso", "journal"))
    text = "".join(f"{_FORMS[form](t)}{line}\n" for t, lines_ in sorted(reports) for line in lines_)
    return scene.add({"journal": "journal-kernel.txt"}.get(form, "dmesg.txt"), text)


def _merged(lines: list[str], added: list[tuple[float, str]]) -> bytes:
    """Lines of a kernel log with others laid in by their moment."""
    out, rest = [], sorted(added, key=lambda entry: entry[0])
    for line in lines:
        found = _CTIME.match(line.encode())
        if found:
            moment = dt.datetime.strptime(found[1].decode(), "%b %d %H:%M:%S %Y").replace(tzinfo=dt.UTC).timestamp()
            while rest and rest[0][0] <= moment:
                out.append(rest.pop(0)[1])
        out.append(line)
    while out and not out[-1]:
        out.pop()
    return ("\n".join([*out, *(text for _, text in rest)]) + "\n").encode()


@kind
def kernel_kill_before(scene: Scene) -> Files:
    """Another pod's process, ended hours or days before the server started."""
    t = scene.begin - scene.rng.uniform(2 * HOUR, 6 * DAY)
    return kernel_says(scene, [(t, kill_report(scene, scene.rng.choice(VICTIMS), other_group(scene), 2048))])


@kind
def kernel_kill_during(scene: Scene) -> Files:
    """Another pod's process, ended in its own memory group while the server ran."""
    t = scene.rng.uniform(scene.begin, scene.end)
    return kernel_says(scene, [(t, kill_report(scene, scene.rng.choice(VICTIMS), other_group(scene), 4096))])


@kind
def kernel_kill_after(scene: Scene) -> Files:
    """Another pod's process, ended after the last line of the server."""
    t = scene.end + scene.rng.uniform(1.5 * HOUR, 9 * HOUR)
    return kernel_says(scene, [(t, kill_report(scene, scene.rng.choice(VICTIMS), other_group(scene), 512))])


@kind
def kernel_kill_weeks_ago(scene: Scene) -> Files:
    """The node itself ran short weeks ago and a shell's program was ended."""
    t = scene.begin - scene.rng.uniform(12 * DAY, 45 * DAY)
    return kernel_says(scene, [(t, kill_report(scene, scene.rng.choice(VICTIMS), None, 200_000))])


@kind
def kernel_kill_of_an_earlier_server(scene: Scene) -> Files:
    """A worker of another server, of the same name, in a memory group that is gone, half an hour before."""
    t = scene.begin - scene.rng.uniform(20 * 60, 90 * 60)
    name = scene.rng.choice(("VLLM::Worker", "VLLM::EngineCore"))
    return kernel_says(scene, [(t, kill_report(scene, name, other_group(scene), 32_768))])


@kind
def unit_killed(scene: Scene) -> Files:
    """The service manager tells of another unit."""
    t = scene.begin - scene.rng.uniform(HOUR, 3 * DAY)
    unit = scene.rng.choice(("backup-restic", "mlocate", "snap.multipass", "nightly-export"))
    head = utc(t, "%b %d %H:%M:%S gpu-node-3 systemd[1]: ")
    return scene.add("journal-units.txt", f"{head}{unit}.service: A process of this unit has been killed by the OOM killer.\n{head}{unit}.service: Main process exited, code=killed, status=9/KILL\n{head}{unit}.service: Failed with result 'oom-kill'.\n{head}{unit}.service: Consumed 2min 11.310s CPU time.\n")  # fmt: skip


@kind
def memory_events_of_another_unit(scene: Scene) -> Files:
    """Counters of another unit's memory group."""
    unit = scene.rng.choice(("system.slice/cron.service", "system.slice/elasticsearch.service", "user.slice/user-1000.slice"))  # fmt: skip
    return scene.add(f"cgroup/{unit}/memory.events", f"low 0\nhigh 0\nmax {scene.rng.randint(100, 9000)}\noom {scene.rng.randint(1, 9)}\noom_kill {scene.rng.randint(1, 9)}\noom_group_kill 0\n")  # fmt: skip


@kind
def xid_on_another_card(scene: Scene) -> Files:
    """A fault of a graphics program on a card of another PCI address, days before."""
    bus = next(f"{n:02x}" for n in (0xE1, 0xD8, 0x9B, 0x5E) if f"{n:02x}:00".encode() not in b"".join(scene.files.values()).lower())  # fmt: skip
    t = scene.begin - scene.rng.uniform(DAY, 9 * DAY)
    code, what = scene.rng.choice(((13, "Graphics SM Warp Exception on (GPC 2, TPC 1, SM 0): Out Of Range Address"), (31, "Ch 00000018, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f2a_10000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ"), (43, "Ch 00000009")))  # fmt: skip
    return kernel_says(
        scene,
        [(t, [f"NVRM: Xid (PCI:0000:{bus}:00): {code}, pid={scene.rng.randint(3000, 90000)}, name=blender, {what}"])],
    )


# ---- the cluster

_APPS = ("checkout-api", "imgproxy", "billing-worker", "search-indexer", "web-frontend", "kafka-connect", "grafana", "thanos-store")  # fmt: skip


def _described(scene: Scene, app: str, namespace: str, t: float, memory: str, last: str, restarts: int) -> str:
    pod = scene.pod(app)
    since = utc(t, "%a, %d %b %Y %H:%M:%S +0000")
    return f"""\
Name:             {pod}
Namespace:        {namespace}
Priority:         0
Service Account:  {app}
Node:             cpu-node-{scene.rng.randint(2, 40)}/192.0.2.{scene.rng.randint(2, 250)}
Start Time:       {utc(t - 9 * DAY, "%a, %d %b %Y %H:%M:%S +0000")}
Labels:           app.kubernetes.io/name={app}
Status:           Running
Controlled By:    ReplicaSet/{pod.rsplit("-", 1)[0]}
Containers:
  {app}:
    Container ID:   containerd://{scene.hexes(64)}
    Image:          registry.example.org/shop/{app}:2.{scene.rng.randint(1, 60)}.0
    Port:           8080/TCP
    State:          Running
      Started:      {since}
    Last State:     Terminated
{last}      Started:      {utc(t - DAY, "%a, %d %b %Y %H:%M:%S +0000")}
      Finished:     {since}
    Ready:          True
    Restart Count:  {restarts}
    Limits:
      cpu:     2
      memory:  {memory}
    Requests:
      cpu:      500m
      memory:   256Mi
    Liveness:   http-get http://:8080/healthz delay=10s timeout=1s period=10s #success=1 #failure=3
    Startup:    http-get http://:8080/healthz delay=0s timeout=1s period=5s #success=1 #failure=30
Conditions:
  Type              Status
  Ready             True
QoS Class:          Burstable
Events:             <none>
"""


@kind
def another_pod_oomkilled(scene: Scene) -> Files:
    """A web program's pod that passed its own limit."""
    app = scene.rng.choice(_APPS)
    text = _described(scene, app, "shop", scene.begin - scene.rng.uniform(0, 5 * DAY), "512Mi", "      Reason:       OOMKilled\n      Exit Code:    137\n", scene.rng.randint(1, 14))  # fmt: skip
    return scene.add(f"describe-{app}.txt", text)


@kind
def another_pod_oomkilled_json(scene: Scene) -> Files:
    """The same as `kubectl get pods -o json` writes it."""
    app = scene.rng.choice(_APPS)
    t = scene.begin - scene.rng.uniform(HOUR, 5 * DAY)
    iso = "%Y-%m-%dT%H:%M:%SZ"
    status = {
        "name": app,
        "image": f"registry.example.org/shop/{app}:1.4",
        "restartCount": scene.rng.randint(1, 9),
        "ready": True,
        "state": {"running": {"startedAt": utc(t, iso)}},
        "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137, "startedAt": utc(t - DAY, iso), "finishedAt": utc(t, iso)}},
    }  # fmt: skip
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": scene.pod(app), "namespace": "shop", "uid": scene.uid(), "labels": {"app": app}},
        "spec": {"nodeName": "cpu-node-9", "containers": [{"name": app, "image": status["image"], "resources": {"limits": {"memory": "1Gi", "cpu": "1"}}, "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10}}]},
        "status": {"phase": "Running", "containerStatuses": [status]},
    }  # fmt: skip
    return scene.add("pods-shop.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod]}, indent=4))


def _events(rows: list[tuple[str, str, str, str, str, str]], namespaces: bool) -> str:
    head = (("NAMESPACE",) if namespaces else ()) + ("LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE")
    cells = [head, *(row if namespaces else row[1:] for row in rows)]
    widths = [max(len(row[place]) for row in cells) + 3 for place in range(len(head) - 1)]
    return "".join("".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)) + row[-1] + "\n" for row in cells)  # fmt: skip


@kind
def probes_of_other_pods(scene: Scene) -> Files:
    """Web pods that are slow to answer and are started anew."""
    rows = []
    for _ in range(scene.rng.randint(2, 5)):
        app = scene.rng.choice(_APPS)
        pod = scene.pod(app)
        rows += [
            ("shop", f"{scene.rng.randint(1, 59)}m", "Warning", "Unhealthy", f"pod/{pod}", f'Liveness probe failed: Get "http://198.51.100.{scene.rng.randint(2, 250)}:8080/healthz": context deadline exceeded'),
            ("shop", f"{scene.rng.randint(1, 59)}m", "Normal", "Killing", f"pod/{pod}", f"Container {app} failed liveness probe, will be restarted"),
            ("shop", f"{scene.rng.randint(1, 59)}m", "Warning", "BackOff", f"pod/{pod}", f"Back-off restarting failed container {app} in pod {pod}_shop({scene.uid()})"),
        ]  # fmt: skip
    return scene.add("events-shop.txt", _events(rows, namespaces=False))


@kind
def events_of_other_namespaces(scene: Scene) -> Files:
    """`kubectl get events -A` of a busy cluster."""
    rows = []
    for namespace, app in scene.rng.sample([("shop", "checkout-api"), ("ci", "runner"), ("monitoring", "thanos-store"), ("kube-system", "metrics-server"), ("data", "spark-driver"), ("web", "imgproxy")], 4):  # fmt: skip
        pod = scene.pod(app)
        rows += [
            (namespace, f"{scene.rng.randint(1, 58)}m", "Warning", "Unhealthy", f"pod/{pod}", "Startup probe failed: HTTP probe failed with statuscode: 503"),
            (namespace, f"{scene.rng.randint(1, 58)}m", "Normal", "Killing", f"pod/{pod}", f"Container {app} failed startup probe, will be restarted"),
            (namespace, f"{scene.rng.randint(1, 58)}m", "Warning", "BackOff", f"pod/{pod}", f"Back-off restarting failed container {app} in pod {pod}_{namespace}({scene.uid()})"),
        ]  # fmt: skip
    rows.append(("data", "41m", "Warning", "OOMKilling", "node/cpu-node-12", f"Memory cgroup out of memory: Killed process {scene.rng.randint(9000, 99999)} (java) total-vm:9120344kB, anon-rss:4190012kB, file-rss:0kB"))  # fmt: skip
    return scene.add("events-all-namespaces.txt", _events(rows, namespaces=True))


@kind
def evictions(scene: Scene) -> Files:
    """A node of another pool evicts batch pods for want of disk or memory."""
    rows: list[tuple[str, str, str, str, str, str]] = [("batch", f"{scene.rng.randint(1, 58)}m", "Warning", "Evicted", f"pod/{scene.pod('report-builder')}", f"The node was low on resource: {resource}. Threshold quantity: 100Mi, available: 81240Ki.") for resource in ("memory", "ephemeral-storage")]  # fmt: skip
    rows.append(("batch", "12m", "Warning", "EvictionThresholdMet", "node/cpu-node-31", "Attempting to reclaim memory"))
    return scene.add("events-batch.txt", _events(rows, namespaces=False))


@kind
def node_without_gpus(scene: Scene) -> Files:
    """`kubectl describe node` of a node of another pool."""
    pods = "".join(f"  shop        {scene.pod(app):46s} 500m (3%)     2 (12%)     256Mi (0%)       512Mi (1%)     {scene.rng.randint(1, 90)}d\n" for app in _APPS[:5])  # fmt: skip
    return scene.add(
        "describe-node-cpu-node-12.txt",
        f"""\
Name:               cpu-node-12
Roles:              <none>
Labels:             kubernetes.io/hostname=cpu-node-12
                    node.kubernetes.io/instance-type=m6i.4xlarge
Taints:             <none>
Unschedulable:      false
Conditions:
  Type             Status  LastHeartbeatTime                 LastTransitionTime                Reason                       Message
  MemoryPressure   True    {utc(scene.begin - 60, "%a, %d %b %Y %H:%M:%S +0000")}   {utc(scene.begin - 9000, "%a, %d %b %Y %H:%M:%S +0000")}   KubeletHasInsufficientMemory   kubelet has insufficient memory available
  Ready            True    {utc(scene.begin - 60, "%a, %d %b %Y %H:%M:%S +0000")}   {utc(scene.begin - 9 * DAY, "%a, %d %b %Y %H:%M:%S +0000")}   KubeletReady                 kubelet is posting ready status
Capacity:
  cpu:                16
  memory:             64843312Ki
  pods:               110
Allocatable:
  cpu:                15890m
  memory:             61790768Ki
Non-terminated Pods:          (5 in total)
  Namespace   Name                                           CPU Requests  CPU Limits  Memory Requests  Memory Limits  Age
{pods}Allocated resources:
  Resource           Requests          Limits
  cpu                2500m (15%)       10 (62%)
  memory             59Gi (98%)        118Gi (196%)
Events:
  Type     Reason                   Age   From     Message
  Warning  SystemOOM                {scene.rng.randint(2, 50)}m   kubelet  System OOM encountered, victim process: java, pid: {scene.rng.randint(4000, 99999)}
  Normal   NodeHasInsufficientMemory 9m   kubelet  Node cpu-node-12 status is now: NodeHasInsufficientMemory
""",
    )


@kind
def scaler_of_a_web_shop(scene: Scene) -> Files:
    """A horizontal autoscaler on CPU of a web deployment."""
    return scene.add(
        "describe-hpa-checkout.txt",
        f"""\
Name:                                                  checkout-api
Namespace:                                             shop
Reference:                                             Deployment/checkout-api
Metrics:                                               ( current / target )
  resource cpu on pods  (as a percentage of request):  {scene.rng.randint(3, 20)}% (40m) / 70%
Min replicas:                                          2
Max replicas:                                          20
Deployment pods:                                       2 current / 2 desired
Conditions:
  Type            Status  Reason            Message
  AbleToScale     True    ReadyForNewScale  recommended size matches current size
  ScalingActive   True    ValidMetricFound  the HPA was able to successfully calculate a replica count from cpu resource utilization (percentage of request)
  ScalingLimited  True    TooFewReplicas    the desired replica count is less than the minimum replica count
Events:           <none>
""",
    )


@kind
def inspected_container(scene: Scene) -> Files:
    """`docker inspect` of another container that its limit ended."""
    value = [{"Id": scene.hexes(64), "Name": "/jupyter-anna", "Config": {"Image": "jupyter/scipy-notebook:2025-10", "Cmd": ["start-notebook.py"]}, "State": {"Status": "exited", "Running": False, "OOMKilled": True, "ExitCode": 137, "FinishedAt": utc(scene.begin - 2 * DAY, "%Y-%m-%dT%H:%M:%S.102934Z")}, "HostConfig": {"Memory": 4 << 30, "ShmSize": 67108864}}]  # fmt: skip
    return scene.add("docker-inspect-jupyter.json", json.dumps(value, indent=4))


# ---- devices elsewhere


def _smi(scene: Scene, rows: list[tuple[int, str, int, int]], mig: str, processes: str) -> str:
    wide = "+-----------------------------------------------------------------------------------------+"
    lines = [utc(scene.begin - 2 * HOUR, "%a %b %e %H:%M:%S %Y"), wide, "| NVIDIA-SMI 570.133.20             Driver Version: 570.133.20     CUDA Version: 12.8     |", "|-----------------------------------------+------------------------+----------------------+", "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |", "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |", "|                                         |                        |               MIG M. |", "|=========================================+========================+======================|"]  # fmt: skip
    for place, name, used, total in rows:
        lines += [
            f"| {place:3d}  {name:<27s}    On |   00000000:{0x41 + place:02X}:00.0 Off |                    0 |",
            f"| N/A   {41 + place}C    P0            {311 + place}W /  400W | {used:8d}MiB /{total:7d}MiB |     98%      Default |",
            f"|                                         |                        |{mig:>21s} |",
            "+-----------------------------------------+------------------------+----------------------+",
        ]
    return "\n".join(lines) + "\n" + processes


@kind
def full_cards_of_another_node(scene: Scene) -> Files:
    """`nvidia-smi` of a training node: every card full, of a trainer."""
    rows = [(place, "NVIDIA A100-SXM4-80GB", scene.rng.randint(79200, 81100), 81920) for place in range(4)]
    processes = "+-----------------------------------------------------------------------------------------+\n| Processes:                                                                              |\n|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |\n|        ID   ID                                                               Usage      |\n|=========================================================================================|\n"  # fmt: skip
    processes += "".join(f"| {place:4d}   N/A  N/A {scene.rng.randint(20000, 90000):16d}      C   python train.py {used - 500:29d}MiB |\n" for place, _, used, _ in rows)  # fmt: skip
    return scene.add("nodes/train-node-2/nvidia-smi.txt", _smi(scene, rows, "Disabled", processes + "+" + "-" * 89 + "+\n"))  # fmt: skip


@kind
def mig_cards_of_another_node(scene: Scene) -> Files:
    """`nvidia-smi` of a node whose cards are cut in slices."""
    text = _smi(scene, [(0, "NVIDIA A100-SXM4-40GB", 9100, 40960)], "Enabled", "")
    text += "+-----------------------------------------------------------------------------------------+\n| MIG devices:                                                                            |\n+------------------+----------------------------------+-----------+-----------------------+\n| GPU  GI  CI  MIG |                     Memory-Usage |        Vol|        Shared         |\n|      ID  ID  Dev |                       BAR1-Usage | SM     Unc| CE ENC  DEC  OFA  JPG |\n|                  |                                  |        ECC|                       |\n|==================+==================================+===========+=======================|\n"  # fmt: skip
    text += "".join(f"|  0    {7 + place}   0   {place}  |            {4600 + place:8d}MiB /  4864MiB | 14      0 |  1   0    0    0    0 |\n|                  |                 2MiB /  8191MiB  |           |                       |\n+------------------+----------------------------------+-----------+-----------------------+\n" for place in range(2))  # fmt: skip
    return scene.add("nodes/notebook-node-1/nvidia-smi.txt", text)


# ---- other servers


@kind
def healthy_replica(scene: Scene) -> Files:
    """Another replica, on another node, that serves."""
    t = scene.begin - scene.rng.uniform(HOUR, DAY)
    stamp = lambda after: utc(t + after, "%m-%d %H:%M:%S")  # noqa: E731
    lines = [
        f"(APIServer pid=1) INFO {stamp(0)} [api_server.py:1896] vLLM API server version 0.11.0",
        f"(APIServer pid=1) INFO {stamp(0)} [utils.py:233] non-default args: {{'model_tag': 'acme/tiny-chat-3b', 'model': 'acme/tiny-chat-3b', 'port': 8000, 'max_model_len': 8192}}",
        f"(APIServer pid=1) INFO {stamp(4)} [model.py:1510] Using max model len 8192",
        f"(EngineCore_DP0 pid=88) INFO {stamp(9)} [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='acme/tiny-chat-3b', dtype=torch.bfloat16, max_seq_len=8192, tensor_parallel_size=1",
        f"(EngineCore_DP0 pid=88) INFO {stamp(31)} [gpu_model_runner.py:2653] Model loading took 5.9120 GiB and 11.214411 seconds",
        f"(EngineCore_DP0 pid=88) INFO {stamp(52)} [gpu_worker.py:298] Available KV cache memory: 61.44 GiB",
        f"(EngineCore_DP0 pid=88) INFO {stamp(52)} [kv_cache_utils.py:1087] GPU KV cache size: 575,216 tokens",
        f"(EngineCore_DP0 pid=88) INFO {stamp(52)} [kv_cache_utils.py:1091] Maximum concurrency for 8,192 tokens per request: 70.22x",
        f"(EngineCore_DP0 pid=88) INFO {stamp(66)} [gpu_model_runner.py:3480] Graph capturing finished in 9 secs, took 0.52 GiB",
        "(APIServer pid=1) INFO:     Started server process [1]",
        "(APIServer pid=1) INFO:     Application startup complete.",
    ]  # fmt: skip
    lines += [f"(APIServer pid=1) INFO {stamp(80 + 10 * n)} [loggers.py:127] Engine 000: Avg prompt throughput: {scene.rng.uniform(50, 900):.1f} tokens/s, Avg generation throughput: {scene.rng.uniform(80, 400):.1f} tokens/s, Running: {scene.rng.randint(1, 9)} reqs, Waiting: 0 reqs, GPU KV cache usage: {scene.rng.uniform(1, 12):.1f}%, Prefix cache hit rate: {scene.rng.uniform(30, 50):.1f}%" for n in range(30)]  # fmt: skip
    return scene.add("nodes/gpu-node-9/tiny-chat-0.log", "\n".join(lines) + "\n")


def _life(scene: Scene, text: str, begin: float, model: str, prefixes: tuple[str, str] = ("", "")) -> str:
    stamps = {f"t{n}": utc(begin + after, "%m-%d %H:%M:%S") for n, after in enumerate((0, 6, 13, 41, 58))}
    return text.format(api=prefixes[0], core=prefixes[1], version="0.11.0", model=model, **stamps)


@kind
def failed_start_of_another_model(scene: Scene) -> Files:
    """Another team's model, whose start failed a week ago for want of a licence."""
    begin = scene.begin - scene.rng.uniform(5 * DAY, 9 * DAY)
    return scene.add("other-team/embedder.log", _life(scene, GATED_START, begin, "acme/gated-embed-7b"))


_BEGINS = re.compile(rb"vLLM API server version|non-default args|Initializing an? (?:V1 )?LLM engine")


@kind
def older_failure_mended(scene: Scene) -> Files:
    """The same server's start was refused days ago, and mended; the same log tells of both."""
    for path in sorted(scene.files):
        data = scene.files[path]
        head = b"\n".join(data.split(b"\n", 40)[:40])
        if shapes.is_log(path, data) and _BEGINS.search(head) and b"\r" not in head and shapes._STAMP.search(head.decode("utf-8", "replace")):  # fmt: skip
            new = b"(APIServer pid=" in head or b"(EngineCore" in head
            prefixes = ("(APIServer pid=1) ", "(EngineCore_DP0 pid=131) ") if new else ("", "")
            model = re.search(rb"model(?:_tag)?['\"]?[=:] ?['\"]([\w./-]+)['\"]", head)
            name = model[1].decode() if model else "acme/chat-13b"
            begin = scene.begin - scene.rng.uniform(2 * DAY, 4 * DAY)
            return {path: _life(scene, OLD_LIFE, begin, name, prefixes).encode() + data}
    return {}


# ---- texts of people


@kind
def runbook(scene: Scene) -> Files:
    """A runbook that quotes messages as examples, with what to do."""
    parts = ["# Runbook: LLM serving", "", "Owner: platform team. Escalate to the on-call of the week.", ""]
    for number, quote in enumerate(scene.quotes(5), 1):
        parts += [
            f"## {number}. {scene.rng.choice(('The server does not start', 'Users see 500', 'A worker is gone', 'Requests queue up'))}",
            "",
            "You may see a line like this, as an example:",
            "",
            "```",
            quote,
            "```",
            "",
            *(f"{step}. {advice}" for step, advice in enumerate(scene.rng.sample(ADVICE, 3), 1)),
            "",
        ]
    return scene.add(scene.rng.choice(("docs/runbook.md", "RUNBOOK.md", "wiki/llm-oncall.md")), "\n".join(parts))


@kind
def documentation(scene: Scene) -> Files:
    """A page of a manual that says what options do and what messages mean."""
    parts = ["Troubleshooting memory", "======================", "", ".. contents::", "   :local:", ""]
    for title, quote in zip(("Start-up", "Serving", "Several cards", "Containers"), scene.quotes(4), strict=True):
        parts += [title, "-" * len(title), "", "If the engine reports", "", "::", "", f"    {quote}", "", f"then {scene.rng.choice(ADVICE)[0].lower()}{scene.rng.choice(ADVICE)[1:]}", "This option increases system memory footprint until the program exits.", ""]  # fmt: skip
    return scene.add("docs/troubleshooting.rst", "\n".join(parts))


_NAMES = ("anna", "bo", "chidi", "dora", "emre")


@kind
def chat(scene: Scene) -> Files:
    """An export of a team's channel, weeks old, in which people paste messages."""
    t = scene.begin - 20 * DAY
    lines = []
    for quote in scene.quotes(5):
        for says in (f"anyone seen this? {quote}", scene.rng.choice(("yes, last month", "not on our cluster", "+1", "which model?")), scene.rng.choice(ADVICE)):  # fmt: skip
            t += scene.rng.uniform(30, 4000)
            lines.append(f"[{utc(t, '%Y-%m-%d %H:%M')}] {scene.rng.choice(_NAMES)}: {says}")
    return scene.add("slack-export-llm-help.txt", "\n".join(lines) + "\n")


@kind
def chat_json(scene: Scene) -> Files:
    """The same as a messenger's JSON export."""
    t = scene.begin - 33 * DAY
    messages = [{"type": "message", "user": f"U0{scene.hexes(7).upper()}", "text": text, "ts": f"{t + 100 * place:.6f}"} for place, text in enumerate([*scene.quotes(4), *scene.rng.sample(ADVICE, 2)])]  # fmt: skip
    return scene.add("slack/llm-help/2026-04-01.json", json.dumps(messages, indent=4))


@kind
def upstream_thread(scene: Scene) -> Files:
    """An issue of the engine's tracker, saved with its answers: another person's server."""
    quote, other = scene.quotes(2)
    return scene.add(
        "links/upstream-issue.md",
        f"""\
# [Bug]: server dies after some minutes #{scene.rng.randint(4000, 29000)}

**someuser** opened this issue on Mar 11 · 6 comments

### Your current environment

4x RTX 3090, driver 550, engine 0.8.2, Ubuntu 22.04

### Describe the bug

When I start a 32B model with four cards it shows:

```
{quote}
```

---

**maintainer-a** commented on Mar 12

Can you try the nightly? We have seen `{other[:150]}` in cases where the utilization is too high.

**someuser** commented on Mar 12

Same with nightly. {scene.rng.choice(ADVICE)}

**maintainer-a** commented on Mar 14

Closing in favour of another issue.
""",
    )


@kind
def patch(scene: Scene) -> Files:
    """A change to the engine's sources, as `git format-patch` writes it."""
    removed, added = scene.quotes(2)
    head = f"From {scene.hexes(40)} Mon Sep 17 00:00:00 2001\nFrom: Dora <dora@example.org>\nDate: Tue, 3 Mar 2026 10:11:12 +0100\nSubject: [PATCH] worker: say what to do when memory is short\n\n---\n vllm/v1/worker/gpu_worker.py | 6 +++---\n 1 file changed, 3 insertions(+), 3 deletions(-)\n\n"  # fmt: skip
    body = f"diff --git a/vllm/v1/worker/gpu_worker.py b/vllm/v1/worker/gpu_worker.py\nindex {scene.hexes(7)}..{scene.hexes(7)} 100644\n--- a/vllm/v1/worker/gpu_worker.py\n+++ b/vllm/v1/worker/gpu_worker.py\n@@ -211,9 +211,9 @@ class Worker(WorkerBase):\n         if free < wanted:\n             raise ValueError(\n-                \"{removed}\"\n+                \"{added}\"\n             )\n         logger.info(\"Available KV cache memory: %.2f GiB\", available)\n"  # fmt: skip
    return scene.add("patches/0001-worker.patch", head + body + "-- \n2.43.0\n")


@kind
def engine_source(scene: Scene) -> Files:
    """A module of the engine, as somebody who looked into it left it in the folder."""
    return scene.add("vllm/v1/worker/gpu_worker.py", ENGINE_SOURCE)


@kind
def closed_incident(scene: Scene) -> Files:
    """A report on an incident of last quarter, on other machines, closed."""
    quote = scene.quotes(1)[0]
    return scene.add(
        "postmortems/2025-Q4-search.md",
        f"""\
# Post-mortem: search assistant down for 40 minutes

Status: closed. Date of the incident: {utc(scene.begin - 120 * DAY, "%Y-%m-%d")}. Cluster: eu-west (not this one).

## What happened

The search team's server (other model, other cards) failed after a change of settings:

> {quote}

## What we did

- {scene.rng.choice(ADVICE)}
- We added an alert.

## Lessons

Review settings before a roll-out.
""",
    )


@kind
def quoted_prompts(scene: Scene) -> Files:
    """Users ask a model about messages: prompts in a file of samples."""
    rows = [{"id": f"prompt-{n}", "messages": [{"role": "user", "content": f"What does this mean?\n{quote}"}]} for n, quote in enumerate(scene.quotes(6))]  # fmt: skip
    return scene.add("eval/prompts.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


@kind
def prompts_in_the_log(scene: Scene) -> Files:
    """The server's own log echoes prompts that quote messages."""
    for path in sorted(scene.files):
        data = scene.files[path]
        if not shapes.is_log(path, data) or b"\r" in data:
            continue
        lines = data.decode("utf-8", "surrogateescape").split("\n")
        marks = [n for n, line in enumerate(lines) if "Avg prompt throughput" in line]
        if not marks:
            continue
        at = marks[0]
        stamp = shapes._STAMP.search(lines[at])
        if stamp is None:
            continue
        when = "{}-{} {}:{}:{}".format(*stamp.groups())
        echoes = [f"INFO {when} [logger.py:43] Received request cmpl-{scene.hexes(8)}-0: prompt: {quote!r}, params: SamplingParams(n=1, temperature=0.7, max_tokens=256), prompt_token_ids: None, lora_request: None." for quote in scene.quotes(3)]  # fmt: skip
        return {path: "\n".join([*lines[: at + 1], *echoes, *lines[at + 1 :]]).encode("utf-8", "surrogateescape")}
    return {}


@kind
def alert_rules(scene: Scene) -> Files:
    """Rules of an alerting system, with words of the field and no alert."""
    return scene.add(
        "monitoring/alerts.yaml",
        """\
groups:
  - name: llm
    rules:
      - alert: KVCacheNearlyFull
        expr: vllm:gpu_cache_usage_perc > 0.95
        for: 10m
        annotations:
          summary: KV cache usage at 95 % for ten minutes, preemptions are likely
      - alert: ContainerOOMKilled
        expr: kube_pod_container_status_last_terminated_reason{reason="OOMKilled"} > 0
        annotations:
          summary: A container was OOMKilled, raise its memory limit
      - alert: PrefixCacheUseless
        expr: rate(vllm:prefix_cache_hits_total[5m]) == 0
        annotations:
          summary: prefix cache hit rate is 0, nothing is reused
""",
    )


# ---- other programs

_TENANT = ("GET /cart", "POST /checkout", "GET /static/app.js", "GET /search?q=memory+leak", "POST /v2/orders", "GET /healthz")  # fmt: skip


@kind
def access_log_of_another_service(scene: Scene) -> Files:
    """A web server's traffic, with time-outs."""
    lines = [f'203.0.113.{scene.rng.randint(1, 250)} - - [{utc(scene.begin + 2 * n, "%d/%b/%Y:%H:%M:%S +0000")}] "{scene.rng.choice(_TENANT)} HTTP/1.1" {scene.rng.choice((200, 200, 200, 304, 499, 503))} {scene.rng.randint(100, 90000)} "-" "Mozilla/5.0" {scene.rng.uniform(0.01, 31):.3f}' for n in range(80)]  # fmt: skip
    return scene.add("nginx/access.log", "\n".join(lines) + "\n")


@kind
def requests_of_another_tenant(scene: Scene) -> Files:
    """A JSON request log of a shop's service."""
    rows = [{"time": utc(scene.begin + n, "%Y-%m-%dT%H:%M:%SZ"), "service": "checkout-api", "route": scene.rng.choice(_TENANT), "status": scene.rng.choice((200, 200, 500, 504)), "duration_ms": scene.rng.randint(2, 30000), "error": scene.rng.choice((None, None, "upstream timed out", "java.lang.OutOfMemoryError: Java heap space"))} for n in range(60)]  # fmt: skip
    return scene.add("checkout/requests.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


@kind
def redis_info(scene: Scene) -> Files:
    """`redis-cli INFO`: hits, misses, evicted keys, memory."""
    return scene.add("redis-info.txt", f"# Server\r\nredis_version:7.2.4\r\nuptime_in_seconds:{scene.rng.randint(9000, 900000)}\r\n\r\n# Clients\r\nconnected_clients:41\r\nblocked_clients:0\r\n\r\n# Memory\r\nused_memory:{scene.rng.randint(10**9, 10**10)}\r\nused_memory_rss_human:9.81G\r\nmaxmemory_human:10.00G\r\nmaxmemory_policy:allkeys-lru\r\nmem_fragmentation_ratio:1.92\r\n\r\n# Stats\r\nkeyspace_hits:12\r\nkeyspace_misses:{scene.rng.randint(10**5, 10**7)}\r\nevicted_keys:{scene.rng.randint(10**4, 10**6)}\r\n")  # fmt: skip


@kind
def exporters(scene: Scene) -> Files:
    """Metrics of other programs: node, web server, file system cache, queue."""
    return scene.add(
        "metrics-node-exporter.prom",
        f"""\
# HELP node_memory_MemAvailable_bytes Memory information field MemAvailable_bytes.
# TYPE node_memory_MemAvailable_bytes gauge
node_memory_MemAvailable_bytes {scene.rng.randint(10**11, 4 * 10**11)}
node_memory_MemTotal_bytes 5.4e+11
node_vmstat_oom_kill {scene.rng.randint(1, 40)}
node_zfs_arc_hits 0
node_zfs_arc_misses {scene.rng.randint(10**6, 10**8)}
node_zfs_arc_evict_skip 88123
nginx_connections_waiting {scene.rng.randint(50, 900)}
redis_keyspace_hits_total 3
redis_keyspace_misses_total {scene.rng.randint(10**5, 10**7)}
rabbitmq_queue_messages_ready{{queue="mail"}} {scene.rng.randint(1000, 90000)}
container_memory_failcnt{{namespace="shop",pod="checkout-api-0"}} 91233
container_oom_events_total{{namespace="shop",pod="checkout-api-0"}} 3
""",
    )


@kind
def spark_log(scene: Scene) -> Files:
    """A batch job of another cluster ran out of heap."""
    t = scene.begin - scene.rng.uniform(0, DAY)
    at = utc(t, "%y/%m/%d %H:%M:%S")
    return scene.add(
        "spark/driver.log",
        f"""\
{at} INFO SparkContext: Running Spark version 3.5.1
{at} INFO ResourceUtils: Resources for spark.driver: Map()
{at} INFO YarnClientSchedulerBackend: Application application_17512_0042 has started running.
{at} INFO TaskSetManager: Starting task 118.0 in stage 7.0 (TID 4211) (data-node-4, executor 12, partition 118, PROCESS_LOCAL, 9120 bytes)
{at} ERROR Executor: Exception in task 118.0 in stage 7.0 (TID 4211)
java.lang.OutOfMemoryError: Java heap space
\tat java.base/java.util.Arrays.copyOf(Arrays.java:3537)
\tat org.apache.spark.util.collection.ExternalSorter.insertAll(ExternalSorter.scala:208)
\tat java.base/java.lang.Thread.run(Thread.java:840)
{at} ERROR YarnScheduler: Lost executor 12 on data-node-4: Container killed by YARN for exceeding memory limits. 9.1 GB of 9 GB physical memory used.
{at} WARN TaskSetManager: Lost task 118.0 in stage 7.0 (TID 4211): ExecutorLostFailure (executor 12 exited caused by one of the running tasks) Reason: Container from a bad node. Exit status: 137.
{at} INFO DAGScheduler: Job 3 finished: count at Report.scala:88, took 311.201 s
""",
    )


@kind
def trainer_elsewhere(scene: Scene) -> Files:
    """A fine-tuning job on another node that a card was too small for."""
    t = scene.begin - scene.rng.uniform(HOUR, 2 * DAY)
    used = scene.rng.uniform(38.1, 39.0)
    return scene.add(
        "nodes/train-node-2/train.log",
        f"""\
{utc(t, "%Y-%m-%d %H:%M:%S")},104 INFO trainer.main: world size 1, bf16, gradient accumulation 8
{{'loss': 2.1131, 'grad_norm': 1.4421, 'learning_rate': 1.2e-05, 'epoch': 0.01}}
{{'loss': 1.9921, 'grad_norm': 1.2012, 'learning_rate': 2.4e-05, 'epoch': 0.02}}
Traceback (most recent call last):
  File "/home/anna/finetune/train.py", line 212, in <module>
    trainer.train()
  File "/home/anna/venv/lib/python3.11/site-packages/transformers/trainer.py", line 2245, in train
    return inner_training_loop(
  File "/home/anna/venv/lib/python3.11/site-packages/torch/_tensor.py", line 581, in backward
    torch.autograd.backward(
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.12 GiB. GPU 0 has a total capacity of 39.39 GiB of which {39.2 - used:.2f} GiB is free. Process {scene.rng.randint(9000, 99999)} has {used:.2f} GiB memory in use. Of the allocated memory {used - 2.2:.2f} GiB is allocated by PyTorch, and 1.61 GiB is reserved by PyTorch but unallocated.
  1%|          | 118/10000 [03:12<4:28:21,  1.63s/it]
""",
    )


@kind
def process_list(scene: Scene) -> Files:
    """`docker stats` and `ps` of the machine at another time: names and shares of memory."""
    rows = "".join(f"{scene.hexes(12)}   {name:16s} {scene.rng.uniform(0, 40):5.2f}%    {used:.1f}GiB / 125.8GiB   {used / 1.258:.2f}%    1.2GB / 90MB   0B / 0B   {scene.rng.randint(3, 90)}\n" for name, used in (("postgres-14", 31.1), ("jupyter-anna", 60.2), ("vllm-staging", 3.4), ("traefik", 0.1)))  # fmt: skip
    return scene.add("docker-stats.txt", "CONTAINER ID   NAME             CPU %     MEM USAGE / LIMIT     MEM %     NET I/O        BLOCK I/O   PIDS\n" + rows)  # fmt: skip


@kind
def package_list(scene: Scene) -> Files:
    """Installed packages and the words of their descriptions."""
    rows = "".join(f"ii  {name:24s} {scene.rng.randint(1, 9)}.{scene.rng.randint(0, 30)}-1ubuntu2  amd64  {what}\n" for name, what in (("earlyoom", "Early OOM daemon: kills processes when memory is out"), ("memcached", "high-performance in-memory object cache"), ("libnuma1", "libraries for controlling NUMA policy"), ("redis-server", "persistent key-value database")))  # fmt: skip
    return scene.add("dpkg-l.txt", "Desired=Unknown/Install/Remove/Purge/Hold\n||/ Name                     Version      Architecture Description\n" + rows)  # fmt: skip


def with_noise(files: Files, seed: str, count: int = 2, only: str | None = None) -> tuple[Files, tuple[str, ...]]:
    """A bundle with innocent evidence of some kinds, and their names; the same seed gives the same."""
    rng = random.Random(seed)
    names = [only] if only else list(KINDS)
    rng.shuffle(names)
    out, used = dict(files), []
    for name in names:
        if len(used) == count:
            break
        added = KINDS[name](scene_of(out, random.Random(f"{seed}/{name}")))
        if added:
            out.update(added)
            used.append(name)
    return out, tuple(used)


def each_kind(files: Files, seed: str) -> Iterator[tuple[str, Files]]:
    """The bundle with one kind beside it, for every kind that fits."""
    for name in KINDS:
        out, used = with_noise(files, seed, 1, only=name)
        if used == (name,):
            yield name, out
