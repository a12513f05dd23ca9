"""Kubernetes and its like: container states, events, probes, autoscalers, nodes; and supervisors that play the kubelet.

Single lines (events, probe failures, kills, conditions and metrics of an autoscaler, exits) are `PATTERNS`, which look
at every text. `read` takes what spans lines: `kubectl describe pod|node`, `kubectl get pods`, `kubectl top`, objects as
JSON or YAML, `docker inspect`, annotation files. It leaves the single lines to the patterns: nothing is told twice.

    State:          Waiting                        NAME     READY   STATUS             RESTARTS        AGE
      Reason:       CrashLoopBackOff               engine   0/1     CrashLoopBackOff   5 (2m30s ago)   13m
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137

`OOMKilled` is always host memory of the container's group, never the device. Exit code 137 alone proves nothing: the
reason does. Fragments are read by their keys, wherever the indentation went. Unknown is NULL: a pod without a memory
limit and a pod whose limits were not copied look alike.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from oomdoc.ingest import launch
from oomdoc.ingest.base import TEXT_CAP, Head, Pattern, Rows, regex
from oomdoc.ingest.record import HEAD
from oomdoc.scan import Chunk
from oomdoc.tables import Batch
from oomdoc.units import MIB, parse_age, parse_size, parse_time

KIND = "kubernetes"
TABLES: tuple[str, ...] = (
    "container",
    "cluster_event",
    "scaler",
    "gpu_device",
    "engine_flag",
    "process_memory",
    "process_exit",
    "problem",
)

DOCUMENT_CAP_BYTES = 64 << 20  # JSON and YAML are held whole; a dump of a large cluster goes on in pieces elsewhere

Row = dict[str, Any]

# ---- single lines

_AGE = r"(?:<unknown>|<invalid>|(?:\d+[ydhms])+)"
_EVENT = regex(
    rf"^\s*(?:(?P<ns>(?!{_AGE}\s)[a-z0-9][\w.-]*)\s+)?(?:(?P<age>{_AGE})(?: \(x(?P<times>\d+) over [^)]*\))?\s+)?"
    r"(?P<type>Normal|Warning)\s+(?P<reason>[A-Z][A-Za-z]+)(?:\s+(?P<rest>\S.*))?$"
)
_AFTER_REASON = regex(
    rf"(?P<age>{_AGE})(?: \(x(?P<times>\d+) over [^)]*\))?(?:\s+(?P<by>[\w./-]+(?:, \S+)?))?(?:\s+(?P<message>.*))?$"
)
_WIDE_TAIL = regex(rf"\s{{2,}}{_AGE}\s+(?P<times>\d+)\s+\S+\s*$")
_REASONS = frozenset(
    """
    Unhealthy Killing BackOff OOMKilling OOMKilled SystemOOM Evicted Preempted Preempting FailedScheduling Scheduled
    Pulling Pulled Created Started Failed FailedMount NodeNotReady NodeReady Rebooted UnexpectedAdmissionError
    FailedCreatePodSandBox SuccessfulRescale FailedGetResourceMetric FailedGetPodsMetric FailedGetExternalMetric
    FailedComputeMetricsReplicas EvictionThresholdMet NodeHasInsufficientMemory ProbeWarning Unschedulable
    """.split()  # noqa: SIM905
)
_FIELD = regex(r"^\s*(?:- )?\"?(?:message|reason|note|log|output)\"?\s*:|^\s*\|\s")


def _event_row(row: Row, match: re.Match[str]) -> Row | None:
    """A row of an event table: `describe` puts the age after the reason, `get events` before the type."""
    rest, reason = match["rest"] or "", match["reason"]
    told: Row = {"type": match["type"], "reason": reason}
    age, times = match["age"], match["times"]
    if age:
        about, _, message = rest.partition(" ")
        told["object"] = about or None
        tail = _WIDE_TAIL.search(message)
        if tail:
            times, message = times or tail["times"], message[: tail.start()]
    else:
        after = _AFTER_REASON.match(rest)
        if after:
            age, times, message = after["age"], after["times"], after["message"] or ""
        elif reason in _REASONS:
            message = rest
        else:
            return None
    told["age_s"] = parse_age(age) if age else None
    told["count"] = int(times[:9]) if times else None
    told["message"] = message.strip()[:TEXT_CAP] or None
    return told


def _alone(reason: str, kind: str | None = None) -> Any:
    """A converter for a statement outside event tables and outside fields of an object, which `read` takes."""

    def convert(row: Row, match: re.Match[str]) -> Row | None:
        if _FIELD.match(match.string):
            return None
        event = _EVENT.match(match.string)
        if event and _event_row({}, event):
            return None
        told: Row = {"reason": reason, "message": match.string[match.start() :].strip()[:TEXT_CAP]}
        if kind:
            told["type"] = kind
        if row.get("object"):
            told["object"] = row["object"]
        return told

    return convert


def _start(times: str, match: re.Match[str]) -> Row | None:
    told: Row | None = _alone("Restarted" if times.strip("0") else "Started")({}, match)
    return told


def _oom_killed(row: Row, match: re.Match[str]) -> Row | None:
    return {"reason": "OOMKilled", "message": match.string.strip()[:TEXT_CAP]}


_SIGNALS = {"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "ABRT": 6, "BUS": 7, "KILL": 9, "SEGV": 11, "PIPE": 13, "TERM": 15}


def _exit(row: Row, match: re.Match[str]) -> Row | None:
    signal = row.pop("signal", None)
    if signal:
        number = _SIGNALS.get(signal)
        if number is None:
            return None
        row["exit_code"] = -number
    return row


def _scaler(kind: str) -> Any:
    def convert(row: Row, match: re.Match[str]) -> Row | None:
        told = {
            name: (value or "").strip() or None for name, value in row.items() if name in ("name", "name2", "status")
        }
        name = told.pop("name2", None) or told.get("name")
        return {**told, "name": name, "kind": kind, "text": match.string.strip()[:TEXT_CAP]}

    return convert


def _replicas(current: object, desired: object) -> str:
    return "unchanged" if current == desired else f"{current} current / {desired} desired"


_METRICS = r"(?:custom|external|resource|pod|scaling|saturation|capacity|queue|load)"

PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "k8s-event-row",
        "k8s-events",
        (
            "Normal  ",
            "Warning  ",
            "Warning Unhealthy",
            "Normal Killing",
            "Normal Started",
            "Warning BackOff",
            "Warning OOMKilling",
            "Warning Evicted",
            "Warning FailedScheduling",
        ),
        _EVENT,
        "cluster_event",
        (
            (
                "  Warning  Unhealthy  9s (x4 over 20s)  kubelet  Startup probe failed: connection refused",
                {"type": "Warning", "reason": "Unhealthy", "age_s": 9.0, "count": 4, "object": None},
            ),
            (
                "2m     Normal    Killing     pod/engine-0   Container engine failed liveness probe, will be restarted",
                {"reason": "Killing", "age_s": 120.0, "object": "pod/engine-0", "count": None},
            ),
            (
                "prod  7m12s  Warning  BackOff  pod/engine-1  Back-off restarting failed container",
                {"reason": "BackOff", "age_s": 432.0, "object": "pod/engine-1"},
            ),
            (
                "  Warning  Evicted  <unknown>  kubelet  The node was low on resource: memory.",
                {"reason": "Evicted", "age_s": None, "message": "The node was low on resource: memory."},
            ),
        ),
        convert=_event_row,
    ),
    Pattern(
        "k8s-probe-failed",
        "k8s-events",
        ("probe failed", "probe errored", "probe timed out", "Probe failed"),
        regex(
            r"(?:(?:[Ss]tartup|[Ll]iveness) probe (?:failed|errored|timed out)"
            r"|\"Probe failed\" probeType=\"(?:Startup|Liveness)\"(?: pod=\"(?P<object>[^\"]*)\")?)"
        ),
        "cluster_event",
        (
            ("supervisor: startup probe failed: GET /health: refused", {"reason": "Unhealthy", "object": None}),
            (
                'prober.go:107] "Probe failed" probeType="Liveness" pod="prod/engine-0" containerName="engine"',
                {"reason": "Unhealthy", "object": "prod/engine-0"},
            ),
        ),
        convert=_alone("Unhealthy", "Warning"),
    ),
    Pattern(
        "k8s-probe-kill",
        "k8s-events",
        ("probe, will be", "exceeded, ", "sending SIG", "Killing container", "probe deadline", "probe threshold"),
        regex(
            r"(?:[Cc]ontainer (?P<object>\S+) )?failed (?:liveness|startup) probe, will be (?:restarted|killed)"
            r"|\b(?:liveness|startup|health) ?(?:probe|check)\b[^\n]{0,80}?(?:sending SIG(?:TERM|KILL)|"
            r"(?:deadline|threshold|limit)[^\n]{0,40}?exceeded)|Killing container with a grace period"
        ),
        "cluster_event",
        (
            (
                "kubelet: Container engine failed liveness probe, will be restarted",
                {"reason": "Killing", "object": "engine"},
            ),
            ("supervisor: startup probe deadline 30s exceeded, sending SIGTERM to pid=7", {"reason": "Killing"}),
        ),
        convert=_alone("Killing"),
    ),
    Pattern(
        "k8s-backoff",
        "k8s-events",
        ("restarting failed container",),
        regex(r"[Bb]ack-off (?:\S+ )?restarting failed container"),
        "cluster_event",
        (("back-off 5m0s restarting failed container=engine pod=engine-0_prod(0a)", {"reason": "BackOff"}),),
        convert=_alone("BackOff", "Warning"),
    ),
    Pattern(
        "k8s-oomkilled",
        "k8s-events",
        ("OOMKilled",),
        regex(r"[Rr]eason\W{1,24}OOMKilled\b|\b\d+/\d+\s+OOMKilled\s+\d|terminated \(OOMKilled\)"),
        "cluster_event",
        (("      Reason:       OOMKilled", {"reason": "OOMKilled"}),),
        convert=_oom_killed,
    ),
    Pattern(
        "k8s-evicted",
        "k8s-events",
        ("was low on resource",),
        regex(r"node was low on resource: (?:memory|ephemeral-storage)"),
        "cluster_event",
        (("Message: The node was low on resource: memory. Threshold quantity: 100Mi", {"reason": "Evicted"}),),
        convert=_alone("Evicted", "Warning"),
    ),
    Pattern(
        "supervisor-started",
        "supervisor",
        ("restart=", "restarts=", "restart counter is at", "restart_count="),
        regex(r"\bstarted\b[^\n]{0,120}?\brestart(?:s|_count)?=(?P<times>\d+)|restart counter is at (?P<counter>\d+)"),
        "cluster_event",
        (
            ("supervisor: started pid=25818 restart=0", {"reason": "Started", "count": None}),
            ("supervisor: started pid=26160 restart=1", {"reason": "Restarted", "count": None}),
            ("systemd[1]: engine.service: Scheduled restart job, restart counter is at 5.", {"reason": "Restarted"}),
        ),
        convert=lambda row, match: _start(match["times"] or match["counter"], match),
    ),
    Pattern(
        "supervisor-exit",
        "supervisor",
        ("exited", "Exited (", "Restarting ("),
        regex(
            r"\bpid[= ](?P<pid>\d+) exited (?:with )?(?:code|status)?[= ]?(?P<exit_code>-?\d+)"
            r"|(?<![\w.@-])(?P<name>[\w.@-]{1,80}): Main process exited, code=(?:killed|dumped), "
            r"status=\d+/(?P<signal>[A-Z]+)"
        ),
        "process_exit",
        (
            ("supervisor: pid=25818 exited code=-9", {"pid": 25818, "exit_code": -9}),
            (
                "systemd[1]: engine: Main process exited, code=killed, status=9/KILL",
                {"exit_code": -9, "name": "engine"},
            ),
        ),
        convert=_exit,
    ),
    Pattern(
        "service-exit",
        "supervisor",
        ("exited", "Exited (", "Restarting ("),
        regex(
            r"(?<![\w.@-])(?P<name>[\w.@-]{1,80}): Main process exited, code=exited, status=(?P<exit_code>\d+)"
            r"|\bexited: (?P<program>[\w.:-]{1,80}) "
            r"\((?:exit status (?P<status>\d+)|terminated by SIG(?P<signal>[A-Z]+))"
            r"|^(?:\S{1,80} )?(?P<container>[\w.-]{1,80}) exited with code (?P<code>\d+)\b"
            r"|\b(?:Exited|Restarting) \((?P<docker>\d+)\) "
        ),
        "process_exit",
        (
            (
                "systemd[1]: engine: Main process exited, code=exited, status=1/FAILURE",
                {"exit_code": 1, "name": "engine"},
            ),
            ("INFO exited: engine (terminated by SIGKILL; not expected)", {"exit_code": -9, "name": "engine"}),
            ("engine-1 exited with code 137", {"exit_code": 137, "name": "engine-1"}),
            ("0a1b   vllm-openai   Restarting (1) 5 seconds ago", {"exit_code": 1}),
        ),
        convert=lambda row, match: _exit(
            {
                "name": match["name"] or match["program"] or match["container"],
                "signal": match["signal"],
                "exit_code": next(
                    (int(code[:9]) for code in match.group("exit_code", "status", "code", "docker") if code), None
                ),
            },
            match,
        ),
    ),
    Pattern(
        "k8s-memory-pressure",
        "k8s-node",
        ("MemoryPressure ",),
        regex(r"^\s*MemoryPressure\s+True\s+(?P<message>\S.*)$"),
        "cluster_event",
        (
            (
                "  MemoryPressure   True    Fri, 20 Nov 2026 20:04:51 +0000   Fri, 20 Nov 2026 20:00:51 +0000   "
                "KubeletHasInsufficientMemory   kubelet has insufficient memory available",
                {"type": "Warning", "reason": "MemoryPressure", "t": 1795204851.0},
            ),
        ),
        convert=lambda row, match: {
            "type": "Warning",
            "reason": "MemoryPressure",
            "t": parse_date(re.split(r"\s{2,}(?=[A-Z][a-z]{2}, )", match[0])[-1]),
            "message": match[0].strip()[:TEXT_CAP],
        },
    ),
    # ---- autoscalers
    Pattern(
        "scaler-condition",
        "k8s-scaler",
        ("AbleToScale", "ScalingActive", "ScalingLimited"),
        regex(r"^\s*(?P<name>AbleToScale|ScalingActive|ScalingLimited)\s+(?P<status>True|False|Unknown)\s+[A-Z]\w+"),
        "scaler",
        (
            (
                "  ScalingLimited  True    TooManyReplicas  the desired replica count is more than the maximum",
                {"kind": "condition", "name": "ScalingLimited", "status": "True"},
            ),
        ),
        convert=_scaler("condition"),
    ),
    Pattern(
        "scaler-blind",
        "k8s-scaler",
        (
            "nable to get",
            "nable to fetch",
            "nable to retrieve",
            "no metrics",
            "o metrics",
            "metrics available",
            "metric not found",
            "skipping ",
            "FailedGet",
            "FailedComputeMetrics",
            "<unknown>",
            "missing request for",
            "ailed to get",
            "ailed to query",
        ),
        regex(
            r"[Uu]nable to (?:get|fetch|retrieve)[^\n]{0,60}\bmetrics?\b"
            rf"|[Nn]o (?:{_METRICS} )?metrics (?:were )?(?:returned|found)"
            rf"|[Nn]o {_METRICS} metrics (?:data )?(?:is |are )?available"
            r"|skipping (?:analysis|scaling|scale|optimization|reconcil)"
            r"|\bFailedGet\w*Metrics?\b|\bFailedComputeMetrics\w*|<unknown> ?/ ?\d"
            r"|missing request for (?:cpu|memory|nvidia)"
            rf"|[Ff]ailed to (?:get|query) [^\n]{{0,60}}\b{_METRICS} metrics?\b"
        ),
        "scaler",
        (
            (
                "the HPA was unable to get metric queue_len: no metrics returned from custom metrics API",
                {"kind": "blind"},
            ),
            ("No capacity metrics available for model, skipping analysis", {"kind": "blind"}),
            ("targets: <unknown>/80%", {"kind": "blind"}),
        ),
        convert=_scaler("blind"),
    ),
    Pattern(
        "scaler-decision",
        "k8s-scaler",
        ("ecisionsApplied", "ecisions applied", "New size:"),
        regex(r"(?P<name>decisions ?[Aa]pplied)\"?\s*[:=]\s*(?P<status>\d+)|(?P<name2>New size): (?P<size>\d+)"),
        "scaler",
        (
            ('Run finished {"mode": "auto", "models": 1, "decisionsApplied": 0}', {"kind": "decision", "status": "0"}),
            ("horizontal-pod-autoscaler  New size: 4; reason: cpu above target", {"name": "New size", "status": "4"}),
        ),
        convert=lambda row, match: {
            "kind": "decision",
            "name": match["name"] or match["name2"],
            "status": match["status"] or match["size"],
            "text": match.string.strip()[:TEXT_CAP],
        },
    ),
    Pattern(
        "scaler-metric",
        "k8s-scaler",
        (" on pods", "(target average value)", "(target value)", "of request)"),
        regex(
            r"^\s*(?:resource (?P<name>\w+)(?: of container \S+)? on pods|\"(?P<name2>[^\"]+)\"(?: on \S+(?: \S+)?)?)"
            r"\s*(?:\([^)]*\))?:\s+(?P<status>(?:<unknown>|[\d.]+\w*%?)(?: \([^)]*\))? ?/ ?\S.*)$"
        ),
        "scaler",
        (
            (
                "  resource cpu on pods  (as a percentage of request):  12% (240m) / 80%",
                {"kind": "metric", "name": "cpu", "status": "12% (240m) / 80%"},
            ),
            (
                '  "vllm:num_requests_waiting" on pods:  37 / 5',
                {"name": "vllm:num_requests_waiting", "status": "37 / 5"},
            ),
        ),
        convert=_scaler("metric"),
    ),
    Pattern(
        "scaler-row",
        "k8s-scaler",
        ("Deployment", "StatefulSet", "InferenceService", "LeaderWorkerSet"),
        regex(
            r"^\s*(?:[a-z0-9][\w.-]*\s+){1,2}(?:Deployment|StatefulSet|InferenceService|LeaderWorkerSet)/\S+\s+"
            r"(?:(?P<name>[\w:.-]+): )?(?P<status>(?:<unknown>|[\d.]+\w*%?) ?/ ?\S+(?: \(avg\))?(?:, \S.*?)??)"
            r"\s+\d+\s+\d+\s+\d+\s+\S+\s*$"
        ),
        "scaler",
        (
            (
                "engine   Deployment/engine   cpu: 12%/80%   1   4   1   3d",
                {"kind": "metric", "name": "cpu", "status": "12%/80%"},
            ),
        ),
        convert=_scaler("metric"),
    ),
    Pattern(
        "scaler-replicas",
        "k8s-scaler",
        (" pods:",),
        regex(r"^\s*(?P<name>[A-Z]\w+ pods):\s+(?P<current>\d+) current / (?P<desired>\d+) desired\s*$"),
        "scaler",
        (
            ("Deployment pods:  1 current / 1 desired", {"kind": "replicas", "status": "unchanged"}),
            ("Deployment pods:  1 current / 3 desired", {"kind": "replicas", "status": "1 current / 3 desired"}),
        ),
        convert=lambda row, match: {
            "kind": "replicas",
            "name": match["name"],
            "status": _replicas(match["current"], match["desired"]),
            "text": match.string.strip()[:TEXT_CAP],
        },
    ),
    Pattern(
        "scaler-bounds",
        "k8s-scaler",
        ("Min replicas", "Max replicas"),
        regex(r"^\s*(?P<name>M(?:in|ax) replicas):\s+(?P<status>\d+)\s*$"),
        "scaler",
        (("Max replicas:           8", {"kind": "condition", "name": "Max replicas", "status": "8"}),),
        convert=_scaler("condition"),
    ),
)
"""Statements of the cluster, of supervisors and of autoscalers in one line."""


# ---- recognition

_STRONG = regex(
    r"\s*(?:(?:Last )?State:\s+(?:Running|Waiting|Terminated)\b|Restart Count:\s+\d|Exit Code:\s+\d|QoS Class:\s"
    r"|Controlled By:\s|LAST SEEN\s+TYPE\s|Type\s+Reason\s+Age\s|NAME\s+READY\s+STATUS\s+RESTARTS"
    r"|NAMESPACE\s+NAME\s+READY|NAME\s+REFERENCE\s+TARGETS|(?:NAME|POD\s+NAME)\s+CPU\(cores\)\s+(?:CPU%\s+)?MEMORY\(bytes\)"
    r"|Metrics:\s+\( current / target \)|(?:AbleToScale|ScalingActive|ScalingLimited)\s+(?:True|False)"
    r"|(?:Allocatable|Capacity):\s*$|\"?apiVersion\"?:\s|\"?kind\"?: \"?(?:Pod|PodList|List|Event|EventList|Node"
    r"|NodeList|Deployment|StatefulSet|HorizontalPodAutoscaler|ScaledObject|InferenceService|LeaderWorkerSet)\"?,?\s*$)"
)
_SUPERVISED = regex(
    r".*\b(?:(?:startup|liveness|readiness) probe|exited code=|started pid=|New size:|decisionsApplied"
    r"|metrics available|skipping analysis|unable to (?:get|fetch)[^\n]{0,40} metric)"
)
_ANNOTATION = regex(r"\s*\"?(?P<key>[a-z0-9][a-z0-9.-]*\.[a-z]{2,}/[\w.-]+)\"?\s*[:=]\s*\"?(?P<value>[^\"]*?)\"?,?\s*$")
_DOCUMENT = regex(r"\s*(?:[{\[]|apiVersion:|---)")


def matches(head: Head) -> bool:
    """What kubectl prints, an object of the cluster, a supervisor's or autoscaler's own log, an annotation file."""
    lines = [line for line in head.lines if line.strip()]
    if not lines:
        return False
    if all(_ANNOTATION.match(line) or line.strip().rstrip(":") in ("annotations", "metadata") for line in lines):
        return True
    records = sum(bool((found := HEAD.match(line)) and (found["src"] or found["mon"])) for line in lines)
    if records * 2 > len(lines):
        return False
    strong = sum(bool(_STRONG.match(line)) for line in lines)
    events = sum(bool((found := _EVENT.match(line)) and _event_row({}, found)) for line in lines)
    if strong >= 2 or events >= 2 or (strong and events) or (strong and len(lines) <= 30 and not records):
        return True
    if events and len(lines) <= 5:
        return True
    if lines[0].lstrip()[:1] in ("{", "[") and _INSPECT.search(head.data):
        return True
    supervised = sum(bool(_SUPERVISED.match(line)) for line in lines)
    return not records and supervised * 2 > len(lines)


_INSPECT = re.compile(
    rb'"(?:OOMKilled|RestartCount|containerStatuses|involvedObject|restartCount|podRef)"\s*:|"kind"\s*:\s*"(?:Pod|Event|Node|List)'
)


# ---- described objects

_PAIR = regex(r"^(?P<indent>\s*)(?P<key>[A-Za-z][\w ./()+-]*?):(?:\s+(?P<value>.*))?$")
_CONTAINER_NAME = regex(r"^\s{0,6}(?P<name>[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?):\s*$")
_POD_ROW = regex(
    r"^\s*(?:(?P<ns>[a-z0-9][a-z0-9-]*)\s+)?(?P<pod>[a-z0-9][a-z0-9.-]*)\s+\d+/\d+\s+(?P<status>[A-Za-z][\w:/-]*)\s+"
    r"(?P<restarts>\d+)(?: \((?P<ago>\S+) ago\))?\s+\S+"
)
_TOP_ROW = regex(r"^\s*(?:[a-z0-9-]+\s+)?(?P<pod>[a-z0-9][a-z0-9.-]*)\s+\d+m?\s+(?P<memory>\d+[KMG]i)\s*$")
_DATE = regex(r"(?:[A-Z][a-z]{2}, )?(\d{1,2}) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MIG_KEY = regex(r"nvidia\.com/mig-(?P<profile>[\w.+-]+)")
_GPU_KEY = regex(r"(?:nvidia|amd)\.com/gpu(?:\.shared)?$")
_DOCKER_STATES = {"running": "Running", "restarting": "Waiting", "created": "Waiting", "exited": "Terminated"}
_RUNNING = frozenset(("Running", "Completed", "Succeeded"))
_ENDED = frozenset(("OOMKilled", "Error", "Completed", "ContainerCannotRun", "StartError", "Evicted", "Unknown"))


def parse_date(text: str) -> float | None:
    """Epoch seconds of a date as `kubectl describe` prints it, or of an ISO stamp; None for neither.

    >>> parse_date("Thu, 19 Nov 2026 05:00:01 +0100"), parse_date("2026-11-19T04:00:01Z")
    (1795060801.0, 1795060801.0)
    """
    match = _DATE.search(text)
    if not match or match[2] not in _MONTHS:
        return parse_time(text)
    day, year, hour, minute, second = (int(match[group]) for group in (1, 3, 4, 5, 6))
    try:
        moment = dt.datetime(year, _MONTHS.index(match[2]) + 1, day, hour, minute, second, tzinfo=dt.UTC)
    except ValueError:
        return None
    offset = (int(match[8]) * 3600 + int(match[9]) * 60) * (1 if match[7] == "+" else -1)
    return moment.timestamp() - offset


class _Container:
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
        self.shm_volume: str | None = None

    @property
    def told(self) -> bool:
        """Whether anything beyond the name is known."""
        return len(self.row) > 1 or bool(self.codes or self.reasons or self.words)

    def finish(self, pod: str | None, volumes: Mapping[str, Row]) -> Row:
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
        volume = volumes.get(self.shm_volume or "")
        if volume and volume.get("memory"):
            row["shm_bytes"] = volume.get("size")
        row["pod"] = pod
        return row


class _Describe:
    """Reads `kubectl` text line by line; what is complete goes to `rows`."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.pod: str | None = None
        self.section = ""
        self.container: _Container | None = None
        self.containers: list[_Container] = []
        self.volumes: dict[str, Row] = {}
        self.volume: str | None = None
        self.listed: dict[str, tuple[int, Row]] = {}
        self.node: Row = {}
        self.node_line = 0

    def line(self, number: int, text: str) -> None:
        """One line."""
        listed = _POD_ROW.match(text)
        if listed:
            self._listed(number, listed)
            return
        top = _TOP_ROW.match(text)
        if top:
            self.rows.add(
                "process_memory", number, name=top["pod"], resource="host", bytes=parse_size(top["memory"]), state="top"
            )
            return
        if "nvidia.com/gpu" in text:
            self._label(number, text)
        pair = _PAIR.match(text)
        if pair is None:
            self._bare(number, text.strip())
            return
        key, value = pair["key"].strip(), (pair["value"] or "").strip()
        if not pair["indent"] and key in (
            "Name",
            "Namespace",
            "Events",
            "Conditions",
            "Volumes",
            "Capacity",
            "Allocatable",
        ):
            self._top(number, key, value)
        elif key in ("Containers", "Init Containers", "Ephemeral Containers") and not value:
            self._close()
            self.section = "Containers"
        elif key in ("Volumes", "Conditions", "Events", "QoS Class") and not (
            self.container and self.container.block == "Limits"
        ):
            self._close()
            self.section = key
        elif self.section == "Volumes":
            self._volume(text, key, value)
        elif self.section in ("Capacity", "Allocatable"):
            self._resource(number, key, value)
        else:
            self._field(number, text, key, value)

    def _top(self, number: int, key: str, value: str) -> None:
        if key == "Name":
            self.finish()
            self.pod = value or None
        elif key in ("Capacity", "Allocatable", "Volumes", "Events", "Conditions"):
            self._close()
            self.section = key
            self.node_line = self.node_line or number

    def _listed(self, number: int, match: re.Match[str]) -> None:
        status = match["status"]
        row: Row = {"pod": match["pod"], "restarts": int(match["restarts"][:9])}
        if status in _RUNNING:
            row["state"] = "Running" if status == "Running" else "Terminated"
        elif status in _ENDED:
            row |= {"state": "Terminated", "reason": status, "last_reason": status}
        else:
            row |= {"state": "Waiting", "reason": status}
        self.listed[match["pod"]] = (number, row)

    def _bare(self, number: int, text: str) -> None:
        """A line without a key: an argument, a mount, a wrapped text."""
        container = self.container
        if container is None or not text:
            return
        if container.block in ("Command", "Args"):
            container.words.append((number, text))
        elif "/dev/shm from " in text:
            container.shm_volume = text.partition("/dev/shm from ")[2].split(" ")[0]

    def _field(self, number: int, text: str, key: str, value: str) -> None:
        named = _CONTAINER_NAME.match(text)
        if named and self.section == "Containers" and (self.container is None or self.container.block in _CLOSED):
            self._close()
            self.container = _Container(named["name"], number)
            return
        states = key in ("State", "Last State") or key == "Restart Count"
        if self.container is None:
            if not (states or key in ("Exit Code", "Liveness", "Startup", "Limits")):
                return
            self.container = _Container(None, number)
        container = self.container
        if key == "State" and "state" in container.row:  # a fragment of the next container
            self._close()
            container = self.container = _Container(None, number)
        handler = _HANDLERS.get(key)
        if handler:
            handler(container, number, key, value)
        elif container.block in ("Command", "Args"):
            container.words.append((number, text.strip()))
        elif container.block == "Limits" or (
            container.block == "Requests" and _GPU_KEY.match(key) and "gpus" not in container.row
        ):
            _limit(container, key, value)
        elif container.block == "Environment" and value and launch.is_environment(key):
            container.environment.append((number, key, value))
        elif container.block == "Mounts" and "/dev/shm from " in text:
            container.shm_volume = text.partition("/dev/shm from ")[2].split(" ")[0]

    def _volume(self, text: str, key: str, value: str) -> None:
        if not value and _CONTAINER_NAME.match(text):
            self.volume = key
            self.volumes[key] = {}
        elif self.volume is not None:
            if key == "Medium":
                self.volumes[self.volume]["memory"] = value == "Memory"
            elif key == "SizeLimit":
                self.volumes[self.volume]["size"] = parse_size(value)

    def _resource(self, number: int, key: str, value: str) -> None:
        """A node's `Capacity` or `Allocatable`: devices are counted once."""
        mig = _MIG_KEY.fullmatch(key)
        count = int(value) if value.isdigit() and len(value) < 6 else 0
        if mig and count:
            self.node.setdefault("mig", {}).setdefault(mig["profile"].replace("-", "."), (number, count))
        elif _GPU_KEY.match(key) and count:
            self.node.setdefault("count", (number, count))

    def _label(self, number: int, text: str) -> None:
        for name, value in re.findall(r"nvidia\.com/(gpu\.(?:product|memory|count|replicas))[=:] ?\"?([\w.-]+)", text):
            self.node.setdefault(name, (number, value))

    def _close(self) -> None:
        if self.container is not None and self.container.told:
            self.containers.append(self.container)
        self.container = None

    def finish(self) -> None:
        """Hand on the pod or node in hand and begin anew."""
        self._close()
        for container in self.containers:
            row = container.finish(self.pod, self.volumes)
            listed = self.listed.pop(self.pod or "", None)
            if listed:
                row = {**listed[1], **{name: value for name, value in row.items() if value is not None}}
            _emit(self.rows, container, row)
        self._devices()
        self.containers, self.volumes, self.volume, self.pod, self.section = [], {}, None, None, ""

    def end(self) -> None:
        """The end of the source: pods that were listed and not described."""
        self.finish()
        for number, row in self.listed.values():
            self.rows.add("container", number, **row)

    def _devices(self) -> None:
        node, self.node = self.node, {}
        for profile, (number, count) in node.get("mig", {}).items():
            self.rows.add("gpu_device", number, name=_product(node), mig_profile=profile, count=count)
        number, count = node.get("count") or node.get("gpu.count") or (0, 0)
        if node.get("gpu.count") and node.get("gpu.replicas", (0, "1"))[1] not in ("0", "1"):
            number, count = node["gpu.count"]  # with time slicing the capacity counts each device several times
        if (number and not node.get("mig")) or (node.get("gpu.product") and not node.get("mig")):
            size = node.get("gpu.memory", (0, ""))[1]
            number = number or node["gpu.product"][0]
            self.rows.add(
                "gpu_device",
                number,
                name=_product(node),
                total_bytes=int(size) * MIB if size.isdigit() and len(size) < 9 else None,
                count=int(count) if str(count).isdigit() and int(count) else 1,
            )


_CLOSED = frozenset(("", "State", "Last State", "Limits", "Requests", "Environment", "Mounts", "Done"))


def _product(node: Mapping[str, Any]) -> str | None:
    found = node.get("gpu.product")
    return re.sub(r"-(?:MIG-\S+|SHARED)$", "", found[1]).replace("-", " ") if found else None


def _set_state(container: _Container, number: int, key: str, value: str) -> None:
    container.block = key
    if key == "State":
        container.row["state"] = value or None


def _set_block(container: _Container, number: int, key: str, value: str) -> None:
    container.block = key
    if value and key in ("Command", "Args"):
        container.words.append((number, value))


def _set_detail(container: _Container, number: int, key: str, value: str) -> None:
    block = container.block if container.block in ("State", "Last State") else "Last State"
    if key == "Reason":
        container.reasons.setdefault(block, value)
    elif key == "Exit Code" and re.fullmatch(r"-?\d{1,9}", value):
        container.codes.setdefault(block, int(value))
    elif key in ("Started", "Finished"):
        moment = parse_date(value)
        if moment is not None:
            container.times.setdefault((block, key), moment)


def _set_plain(container: _Container, number: int, key: str, value: str) -> None:
    if key == "Restart Count" and value.isdigit():
        container.row["restarts"] = int(value[:9])
    elif key in ("Liveness", "Startup"):
        container.row[key.lower()] = value or None
    elif key == "Image":
        container.image = (number, value)
    if container.block in ("Limits", "Requests", "Command", "Args", "Environment"):
        container.block = "Done"


def _limit(container: _Container, key: str, value: str) -> None:
    mig = _MIG_KEY.fullmatch(key)
    if key == "memory":
        container.row["memory_limit_bytes"] = parse_size(value)
    elif mig:
        container.row["mig_profile"] = mig["profile"]
    elif _GPU_KEY.match(key) and value.isdigit() and len(value) < 6:
        container.row["gpus"] = int(value)


_HANDLERS = {
    **dict.fromkeys(("State", "Last State"), _set_state),
    **dict.fromkeys(("Limits", "Requests", "Environment", "Mounts", "Command", "Args"), _set_block),
    **dict.fromkeys(("Reason", "Exit Code", "Signal", "Message", "Started", "Finished"), _set_detail),
    **dict.fromkeys(
        ("Restart Count", "Liveness", "Readiness", "Startup", "Image", "Ready", "Port", "Host Port"), _set_plain
    ),
    **dict.fromkeys(("Image ID", "Container ID", "Ports", "Host Ports"), _set_plain),
}


def _emit(rows: Rows, container: _Container, row: Row) -> None:
    """A container's row, and the engine settings of its command, environment and image."""
    rows.add("container", container.line, **row)
    version = launch.image_version(container.image[1])
    if version:
        rows.add("engine_flag", container.image[0], flag="version", value=version, origin="command")
    for number, name, value in container.environment:
        rows.add("engine_flag", number, flag=name, value=launch.shown(name, value), origin="environment")
    words = [word for _, word in container.words]
    if any(re.search(r"\s--?\w|\bvllm serve ", word) for word in words):
        flags = launch.flags_of("\n".join(words))
    else:
        flags = launch.flags_of_tokens(words, sure="vllm" in container.image[1])
    for flag, value in flags:
        spelled = flag.replace("_", "-")
        line = next((number for number, word in container.words if spelled in word), container.line)
        rows.add("engine_flag", line, flag=flag, value=value, origin="command")


# ---- objects


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _whole(value: Any) -> int | None:
    text = str(value)
    return int(text) if re.fullmatch(r"-?\d{1,9}", text) else None


def _text(value: Any) -> str | None:
    return str(value)[:TEXT_CAP] if isinstance(value, str) and value else None


class _Objects:
    """Reads objects of the cluster; `where` finds the line of a name in the source."""

    def __init__(self, rows: Rows, source: str) -> None:
        self.rows = rows
        self.source = source
        self.at = 0

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
        items = value.get("items")
        if isinstance(items, list):
            for item in items:
                if isinstance(item, Mapping) and not item.get("kind") and kind.endswith("List") and len(kind) > 4:
                    item = {**item, "kind": kind.removesuffix("List")}
                self.take(item, depth + 1)
        elif "HostConfig" in value and "State" in value:
            self.inspected(value)
        elif isinstance(value.get("pods"), list) and isinstance(value.get("node"), Mapping):
            self.measured(value)
        elif kind == "Event" or ("involvedObject" in value and "reason" in value):
            self.event(value)
        elif kind == "Node":
            self.node(value)
        elif kind == "HorizontalPodAutoscaler":
            self.scaler(value)
        elif kind == "ScaledObject":
            for trigger in _list(_mapping(value.get("spec")).get("triggers")):
                meta = _mapping(_mapping(trigger).get("metadata"))
                name = _text(meta.get("metricName")) or _text(meta.get("query")) or _text(_mapping(trigger).get("type"))
                self._scaled(trigger, "metric", name, _text(meta.get("threshold")) or _text(meta.get("value")))
        elif "containers" in _mapping(value.get("spec")) or "containerStatuses" in _mapping(value.get("status")):
            self.pod(value)
        else:
            template = _mapping(_mapping(value.get("spec")).get("template"))
            if "containers" in _mapping(template.get("spec")):
                self.pod({"metadata": value.get("metadata"), "spec": template.get("spec")})

    def pod(self, pod: Mapping[str, Any]) -> None:
        """One row per container of a pod or of a pod template."""
        spec, status = _mapping(pod.get("spec")), _mapping(pod.get("status"))
        name = _text(_mapping(pod.get("metadata")).get("name"))
        volumes = {
            str(_mapping(volume).get("name")): _mapping(_mapping(volume).get("emptyDir"))
            for volume in _list(spec.get("volumes"))
        }
        known = {
            str(_mapping(one).get("name")): _mapping(one)
            for key in ("containerStatuses", "initContainerStatuses")
            for one in _list(status.get(key))
        }
        wanted = [_mapping(one) for one in _list(spec.get("containers"))]
        names = {str(one.get("name")) for one in wanted}
        wanted += [{"name": one} for one in known if one not in names]
        for one in wanted:
            container = _Container(_text(one.get("name")), self.where(one, one.get("name")))
            self._spec(container, one, volumes)
            self._status(container, known.get(str(one.get("name")), {}))
            row = container.finish(name, {})
            if status.get("reason") == "Evicted":
                row["last_reason"] = "Evicted"
            _emit(self.rows, container, row)

    def _spec(self, container: _Container, one: Mapping[str, Any], volumes: Mapping[str, Mapping[str, Any]]) -> None:
        resources = _mapping(one.get("resources"))
        for part in ("requests", "limits"):
            for key, value in _mapping(resources.get(part)).items():
                if part == "limits" or _GPU_KEY.match(key):
                    _limit(container, key, str(value))
        for mount in _list(one.get("volumeMounts")):
            volume = volumes.get(str(_mapping(mount).get("name")), {})
            if _mapping(mount).get("mountPath") == "/dev/shm" and volume.get("medium") == "Memory":
                container.row["shm_bytes"] = parse_size(str(volume.get("sizeLimit", "")))
        for probe in ("liveness", "startup"):
            container.row[probe] = _probe(_mapping(one.get(f"{probe}Probe")))
        for variable in _list(one.get("env")):
            name, value = _mapping(variable).get("name"), _mapping(variable).get("value")
            if isinstance(name, str) and value is not None and launch.is_environment(name):
                container.environment.append((getattr(variable, "line", 0) or container.line, name, str(value)))
        container.image = (container.line, str(one.get("image") or ""))
        words = [
            str(word) for key in ("command", "args") for word in _list(one.get(key)) if not isinstance(word, Mapping)
        ]
        container.words = [(container.line, word) for word in words]

    def _status(self, container: _Container, status: Mapping[str, Any]) -> None:
        container.row["restarts"] = _whole(status.get("restartCount"))
        for block, key in (("State", "state"), ("Last State", "lastState")):
            for name, detail in _mapping(status.get(key)).items():
                if block == "State":
                    container.row["state"] = str(name).capitalize()
                detail = _mapping(detail)
                if detail.get("reason"):
                    container.reasons[block] = str(detail["reason"])[:TEXT_CAP]
                code = _whole(detail.get("exitCode"))
                if code is not None:
                    container.codes[block] = code
                for field, label in (("startedAt", "Started"), ("finishedAt", "Finished")):
                    moment = parse_time(str(detail.get(field) or ""))
                    if moment is not None:
                        container.times[block, label] = moment

    def event(self, event: Mapping[str, Any]) -> None:
        """One event."""
        about = _mapping(event.get("involvedObject") or event.get("regarding"))
        stamps = (event.get(key) for key in ("lastTimestamp", "eventTime", "firstTimestamp"))
        series = _mapping(event.get("series"))
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
        )

    def measured(self, summary: Mapping[str, Any]) -> None:
        """What the kubelet's `/stats/summary` says that each container holds of the host's memory."""
        for pod in _list(summary.get("pods")):
            for one in _list(_mapping(pod).get("containers")):
                memory, name = _mapping(_mapping(one).get("memory")), _text(_mapping(one).get("name"))
                size = memory.get("workingSetBytes")
                if isinstance(size, int) and 0 <= size < 1 << 50:
                    line = self.where(one, _mapping(_mapping(pod).get("podRef")).get("name"), name)
                    t = parse_time(str(memory.get("time") or ""))
                    self.rows.add("process_memory", line, t=t, name=name, state="kubelet", resource="host", bytes=size)

    def node(self, node: Mapping[str, Any]) -> None:
        """The devices of a node, and what the kubelet says of its memory."""
        metadata, status = _mapping(node.get("metadata")), _mapping(node.get("status"))
        labels, capacity = _mapping(metadata.get("labels")), _mapping(status.get("capacity"))
        for condition in _list(status.get("conditions")):
            one = _mapping(condition)
            if one.get("type") == "MemoryPressure" and str(one.get("status")) == "True":
                self.rows.add(
                    "cluster_event", self.where(condition, "MemoryPressure"), type="Warning", reason="MemoryPressure",
                    t=parse_time(str(one.get("lastTransitionTime") or "")), object=f"node/{metadata.get('name')}",
                    message=_text(one.get("message")),
                )  # fmt: skip
        text = _Describe(self.rows)
        line = self.where(node, _mapping(node.get("metadata")).get("name"))
        for key, value in capacity.items():
            text._resource(line, str(key), str(value))
        for key, value in labels.items():
            text._label(line, f"{key}={value}")
        text._devices()

    def scaler(self, scaler: Mapping[str, Any]) -> None:
        """What a HorizontalPodAutoscaler measures and what it says of itself."""
        spec, status = _mapping(scaler.get("spec")), _mapping(scaler.get("status"))
        for metric in _list(spec.get("metrics")):
            kind = str(_mapping(metric).get("type") or "")
            inner = _mapping(_mapping(metric).get(kind[:1].lower() + kind[1:]))
            name = inner.get("name") or _mapping(inner.get("metric")).get("name")
            self._scaled(metric, "metric", _text(name), None)
        for condition in _list(status.get("conditions")):
            one = _mapping(condition)
            self._scaled(one, "condition", _text(one.get("type")), _text(one.get("status")), _text(one.get("message")))
            if one.get("type") == "ScalingActive" and str(one.get("status")) == "False":
                self._scaled(one, "blind", _text(one.get("reason")), "False", _text(one.get("message")))
        if "currentReplicas" in status:
            replicas = _replicas(status.get("currentReplicas"), status.get("desiredReplicas"))
            self._scaled(status, "replicas", "pods", replicas)

    def _scaled(self, value: Any, kind: str, name: str | None, status: str | None, text: str | None = None) -> None:
        self.rows.add("scaler", self.where(value, name), kind=kind, name=name, status=status, text=text or name)

    def inspected(self, value: Mapping[str, Any]) -> None:
        """A container as `docker inspect` prints it."""
        state, host, config = (_mapping(value.get(key)) for key in ("State", "HostConfig", "Config"))
        container = _Container(_text(value.get("Name")), self.where(value, "State"))
        code = _whole(state.get("ExitCode"))
        begin, end = (parse_time(str(state.get(key) or "")) for key in ("StartedAt", "FinishedAt"))
        running = str(state.get("Status") or "") == "running"
        row: Row = {
            **container.row,
            "state": _DOCKER_STATES.get(str(state.get("Status"))),
            "last_reason": "OOMKilled" if state.get("OOMKilled") is True else None,
            "exit_code": None if running else code,
            "restarts": _whole(value.get("RestartCount")),
            "ran_s": end - begin if begin and end and end > begin and not running else None,
            "memory_limit_bytes": host.get("Memory")
            if isinstance(host.get("Memory"), int) and host["Memory"] > 0
            else None,
            "shm_bytes": host.get("ShmSize") if isinstance(host.get("ShmSize"), int) and host["ShmSize"] > 0 else None,
        }
        for variable in _list(config.get("Env")):
            name, _, text = str(variable).partition("=")
            if launch.is_environment(name):
                container.environment.append((container.line, name, text))
        container.image = (container.line, str(config.get("Image") or ""))
        words = [str(word) for key in ("Entrypoint", "Cmd") for word in _list(config.get(key))]
        container.words = [(container.line, word) for word in words]
        _emit(self.rows, container, row)


def _probe(probe: Mapping[str, Any]) -> str | None:
    """A probe in the words of `kubectl describe`; defaults of the API where a field is not set."""
    if not probe:
        return None
    get = _mapping(probe.get("httpGet"))
    what = (
        f"http-get http://:{get.get('port', '')}{get.get('path', '')}"
        if get
        else "exec"
        if "exec" in probe
        else "tcp-socket"
    )
    numbers = {
        name: probe.get(field, default)
        for name, field, default in (
            ("delay", "initialDelaySeconds", 0),
            ("timeout", "timeoutSeconds", 1),
            ("period", "periodSeconds", 10),
            ("success", "successThreshold", 1),
            ("failure", "failureThreshold", 3),
        )
    }
    return (
        f"{what} delay={numbers['delay']}s timeout={numbers['timeout']}s period={numbers['period']}s "
        f"#success={numbers['success']} #failure={numbers['failure']}"
    )


# ---- reading


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """Containers, objects, nodes and annotations; the single-line statements are left to `PATTERNS`."""
    rows = Rows()
    describe = _Describe(rows)
    parts: list[bytes] = []
    held = 0
    document: bool | None = None
    for chunk in chunks:
        if document is None and chunk.data.strip():
            document = bool(_DOCUMENT.match(chunk.data[:4096].decode("utf-8", "replace")))
        if document:
            held += len(chunk.data)
            if held <= DOCUMENT_CAP_BYTES:
                parts.append(chunk.data)
            continue
        for number, line in enumerate(chunk.data.split(b"\n"), chunk.first_line):
            if line.strip() and (number > chunk.first_line or chunk.at_line_start):
                text = line[:2000].decode("utf-8", "replace").rstrip("\r")
                noted = _ANNOTATION.match(text)
                if noted:
                    _annotation(rows, number, noted)
                describe.line(number, text)
        if rows.count >= 10_000:
            yield from rows.take()
    describe.end()
    if document:
        _document(rows, b"".join(parts), held)
    yield from rows.take()


def _annotation(rows: Rows, number: int, match: re.Match[str]) -> None:
    """An annotation that tells an autoscaler or router what to look at."""
    if re.search(r"model|scal|replica|metric|target|llm|accelerator|vllm", match["key"]) and match["value"]:
        name, value = match["key"], match["value"].strip()
        if not name.startswith(("kubernetes.io/", "kubectl.", "nvidia.com/")):
            rows.add(
                "scaler",
                number,
                kind="annotation",
                name=name,
                status=value[:TEXT_CAP],
                text=match[0].strip()[:TEXT_CAP],
            )


_DOCUMENT_START = re.compile(r"^[ \t]*[{\[]", re.M)


def _documents(text: str) -> Iterator[Any]:
    """JSON values that begin a line, one after the other, with whatever between them: JSON lines, `kubectl cluster-info dump`."""
    decoder = json.JSONDecoder()
    at = 0
    while (start := _DOCUMENT_START.search(text, at)) is not None:
        try:
            value, at = decoder.raw_decode(text, start.end() - 1)
        except (ValueError, RecursionError, MemoryError):
            at = start.end()
        else:
            yield value


def _document(rows: Rows, data: bytes, held: int) -> None:
    """Objects of a JSON or YAML text; several JSON values are taken one by one."""
    text = data.decode("utf-8", "replace")
    if held > DOCUMENT_CAP_BYTES:
        rows.problem(1, "a document of more than 64 MiB: only its beginning was read", text)
    objects = _Objects(rows, text)
    before = rows.count
    try:
        objects.take(json.loads(text))
    except MemoryError:  # a million empty objects take 25 times their text
        rows.problem(1, "a document that needs more memory than there is", text)
    except (ValueError, RecursionError):
        if text.lstrip()[:1] not in ("{", "["):
            for document in launch.read_document(text):
                objects.take(document)
        else:
            found = [value for value in _documents(text) if isinstance(value, (dict, list))]
            for value in found:
                objects.take(value)
            if rows.count == before and not found:
                rows.problem(1, "an object of the cluster as JSON", text.strip())
