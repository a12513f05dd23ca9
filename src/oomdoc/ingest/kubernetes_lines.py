"""Statements of the cluster, of supervisors and of autoscalers in one line: events, probe failures, kills, exits, conditions."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

from oomdoc.ingest.base import TEXT_CAP, Pattern, regex
from oomdoc.units import parse_age, parse_time

Row = dict[str, Any]

_DATE = regex(r"(?:[A-Z][a-z]{2}, )?(\d{1,2}) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_AGE = r"(?:<unknown>|<invalid>|(?:\d+[ydhms])+)"
EVENT = regex(
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


def event_row(row: Row, match: re.Match[str]) -> Row | None:
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
    told["namespace"] = match["ns"]
    return told


def _alone(reason: str, kind: str | None = None) -> Any:
    """A converter for a statement outside event tables and outside fields of an object, which `read` takes."""

    def convert(row: Row, match: re.Match[str]) -> Row | None:
        if _FIELD.match(match.string):
            return None
        event = EVENT.match(match.string)
        if event and event_row({}, event):
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
        groups = match.groupdict()
        counts = {name: int(groups[name]) for name in ("minimum", "maximum", "replicas") if groups.get(name)}
        scaled = value_and_threshold(told.get("status")) if kind == "metric" else {}
        return {**told, "name": name, "kind": kind, "text": match.string.strip()[:TEXT_CAP], **scaled, **counts}

    return convert


_SCALED = regex(
    r"(?P<value>\d+(?:\.\d+)?)(?P<unit>m|k|%)?(?: \([^)]*\))? ?/ ?(?P<threshold>\d+(?:\.\d+)?)(?P<unit2>m|k|%)?"
)
_FACTOR = {"m": 1e-3, "k": 1e3, "%": 1.0}
_REPLICAS = regex(
    r"\b(?:(?P<minimum>min\w*)|(?P<maximum>max\w*)|(?P<replicas>current|observed|actual|ready|healthy|available|running)|(?P<desired>desired|target|wanted|recommended))"
    r"(?:[ _]?replicas?)?\\?\"?\s{0,3}[:=]?\s{0,8}(?P<number>\d{1,4})\b(?![.:])",
    re.I,
)
_OF = regex(r"\b(?P<now>\d{1,4})(?: of |/| / )(?P<all>\d{1,4}) (?P<word>ready )?replicas\b", re.I)


def value_and_threshold(status: str | None) -> Row:
    """What a metric was and what it is compared with, out of `37 / 5`, `1500m/2` or `12% (240m) / 80%`.

    >>> value_and_threshold("1500m/2")
    {'value': 1.5, 'threshold': 2.0}
    """
    found = _SCALED.match(status or "")
    if not found:
        return {}
    return {
        "value": float(found["value"]) * _FACTOR.get(found["unit"] or "", 1.0),
        "threshold": float(found["threshold"]) * _FACTOR.get(found["unit2"] or "", 1.0),
    }


def _replica_statement(row: Row, match: re.Match[str]) -> Row | None:
    """Counts of replicas in a sentence: `replicas: min 1, max 5, observed 1`; None where fewer than two kinds are told."""
    text = match.string.strip()
    found: Row = {}
    for each in _REPLICAS.finditer(text[:600]):
        kind = next(name for name in ("minimum", "maximum", "replicas", "desired") if each[name])
        found.setdefault(kind, int(each["number"]))
    if ratio := _OF.search(text):
        found.setdefault("replicas", int(ratio["now"]))
        found.setdefault("desired" if ratio["word"] else "maximum", int(ratio["all"]))
    if len(found) < 2 or found.get("replicas", 0) > found.get("maximum", 10**4):
        return None
    return {"kind": "replicas", "name": "replicas", "text": text[:TEXT_CAP], **found}


def replicas_of(current: object, desired: object) -> str:
    """Current and desired replicas, or that they are the same."""
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
        EVENT,
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
        convert=event_row,
    ),
    Pattern(
        "k8s-probe-failed",
        "k8s-events",
        (
            "probe failed",
            "probe errored",
            "probe timed out",
            "Probe failed",
            "health check",
            "healthcheck",
            "Health check",
            "eadiness check",
        ),
        regex(
            r"(?:(?:[Ss]tartup|[Ll]iveness|[Rr]eadiness) (?:probe|check) (?:failed|errored|timed out)"
            r"|[Hh]ealth ?check (?:\S+ ){0,2}?(?:failed|timed out|errored)"
            r"|\"Probe failed\" probeType=\"(?:Startup|Liveness)\"(?: pod=\"(?P<object>[^\"]*)\")?)"
        ),
        "cluster_event",
        (
            ("supervisor: startup probe failed: GET /health: refused", {"reason": "Unhealthy", "object": None}),
            (
                "keeper WARNING health check failed: ReadTimeout(3.0) GET http://127.0.0.1/health",
                {"reason": "Unhealthy"},
            ),
            (
                'prober.go:107] "Probe failed" probeType="Liveness" pod="prod/engine-0" containerName="engine"',
                {"reason": "Unhealthy", "object": "prod/engine-0"},
            ),
            # a controller of replicas; `workload` counts readiness only where somebody ends what is not ready
            ("fleet: readiness check failed for worker 7: status 503", {"reason": "Unhealthy"}),
        ),
        convert=_alone("Unhealthy", "Warning"),
    ),
    Pattern(
        "k8s-probe-kill",
        "k8s-events",
        (
            "probe, will be",
            "exceeded, ",
            "sending SIG",
            "Killing container",
            "probe deadline",
            "probe threshold",
            "not available, restarting",
            "unhealthy, restarting",
            "not responding, restarting",
            "is unhealthy, kill",
            "unhealthy - ",
            "unhealthy. Restart",
            "unhealthy; restart",
            "erminating",
            "eplacing",
        ),
        regex(
            r"(?:[Cc]ontainer (?P<object>\S+) )?failed (?:liveness|startup) probe, will be (?:restarted|killed)"
            r"|\b(?:liveness|startup|health) ?(?:probe|check)\b[^\n]{0,80}?(?:sending SIG(?:TERM|KILL)|"
            r"(?:deadline|threshold|limit)[^\n]{0,40}?exceeded)|Killing container with a grace period"
            r"|(?:not (?:available|responding|healthy|ready)|unhealthy)(?: (?:and|after|for|beyond|since)\b[^\n]{0,60}?)?(?:,|;|:|\.| -+)? (?:so )?"
            r"(?:[Rr]estarting|[Kk]illing|[Tt]erminating|[Rr]eplacing)\b"
        ),
        "cluster_event",
        (
            (
                "kubelet: Container engine failed liveness probe, will be restarted",
                {"reason": "Killing", "object": "engine"},
            ),
            ("supervisor: startup probe deadline 30s exceeded, sending SIGTERM to pid=7", {"reason": "Killing"}),
            ("keeper ERROR engine reported not available, restarting it", {"reason": "Killing"}),
            ("fleet: worker 7 is not ready after 4 checks, replacing it", {"reason": "Killing"}),
            (
                "04-03-2026 09:11:02 Container /engine (1f5a) found to be unhealthy - Restarting container now with 10s timeout",
                {"reason": "Killing"},
            ),
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
            "ailed to fetch",
            "ailed to update",
            "ailed to scrape",
            "ailed to read",
            "ailed to retrieve",
            "label mismatch",
            "labels mismatch",
        ),
        regex(
            r"[Uu]nable to (?:get|fetch|retrieve)[^\n]{0,60}\bmetrics?\b"
            rf"|[Nn]o (?:{_METRICS} )?metrics (?:were )?(?:returned|found)"
            rf"|[Nn]o {_METRICS} metrics (?:data )?(?:is |are )?available"
            r"|skipping (?:analysis|scaling|scale|optimization|reconcil)"
            r"|\bFailedGet\w*Metrics?\b|\bFailedComputeMetrics\w*|<unknown> ?/ ?\d"
            r"|missing request for (?:cpu|memory|nvidia)"
            rf"|[Ff]ailed to (?:get|query) [^\n]{{0,60}}\b{_METRICS} metrics?\b"
            # a line that speaks of scaling, of metrics that cannot be had, or of labels by which nobody finds them
            r"|(?i:autoscaler|scale target|scaled ?object)[^\n]{0,200}\b[Ff]ailed to (?:fetch|update|scrape|read|retrieve)\b[^\n]{0,40}\bmetrics?\b"
            r"|[Ff]ailed to (?:fetch|update|scrape|read|retrieve)\b[^\n]{0,40}\bmetrics?\b[^\n]{0,60}(?i:autoscaler|scale target|scaled ?object)"
            r"|\bmetrics?\b[^\n]{0,120}\blabels? mismatch"
        ),
        "scaler",
        (
            (
                "the HPA was unable to get metric queue_len: no metrics returned from custom metrics API",
                {"kind": "blind"},
            ),
            ("No capacity metrics available for model, skipping analysis", {"kind": "blind"}),
            ("targets: <unknown>/80%", {"kind": "blind"}),
            (
                "Reconciler error: failed to update metrics for scale target reference: dial tcp 10.1.2.3:8000: connect: connection refused",
                {"kind": "blind"},
            ),
            (
                "ScaledObject decode: failed to read the metrics of trigger 2: context deadline exceeded",
                {"kind": "blind"},
            ),
            ("Pod has engine metrics but no arrival rate: possible label mismatch", {"kind": "blind"}),
        ),
        convert=_scaler("blind"),
    ),
    Pattern(
        # KEDA's documentation, "Pause autoscaling with deployments": the scaler neither asks nor acts
        "scaler-paused",
        "k8s-scaler",
        ("autoscaling.keda.sh",),
        regex(
            r"(?P<name>autoscaling\.keda\.sh/paused(?:-replicas|-scale-(?:in|out))?)\"?\s*[:=]\s*\"?(?P<status>[Tt]rue|\d+)"
        ),
        "scaler",
        (
            ('    autoscaling.keda.sh/paused: "true"', {"kind": "blind", "status": "true"}),
            ("autoscaling.keda.sh/paused-replicas=2", {"kind": "blind", "status": "2"}),
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
        # a gateway or an operator that sets replicas itself: what it asked for beside what there was
        "scaler-set",
        "k8s-scaler",
        ("esiredScale", "esired_replicas", "esiredReplicas", "esired replicas", "esired="),
        regex(
            r"\b(?:[A-Za-z]{0,6}[Dd]esired(?:_?[Ss]cale|[_ ]?[Rr]eplicas)?)(?:\(|[=:] ?)(?P<desired>\d{1,4})\b(?=.*?\bcurrent(?:[_ ]?[Rr]eplicas)?[=:] ?(?P<replicas>\d{1,4})\b)"
            r"(?:(?=.*?\bmin(?:[_ ]?[Rr]eplicas)?[=:] ?(?P<minimum>\d{1,4})\b))?(?:(?=.*?\bmax(?:[_ ]?[Rr]eplicas)?[=:] ?(?P<maximum>\d{1,4})\b))?"
        ),
        "scaler",
        (
            (
                "2027/04/05 17:31:07 SetDesiredScale(1), current: 12, min: 1, max: 40",
                {"kind": "decision", "desired": 1, "replicas": 12, "minimum": 1, "maximum": 40},
            ),
            (
                "target evaluated: desired_replicas=3 current_replicas=3",
                {"kind": "decision", "status": "0", "desired": 3, "replicas": 3},
            ),
        ),
        convert=lambda row, match: {
            **row,
            "kind": "decision",
            "status": str(row["desired"] - row["replicas"]),
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
            r"^\s*(?:\[?(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d(?::\d\d)?(?:\.\d+)?Z?\]?\s+)?(?:[a-z0-9][\w.-]*\s+){1,2}(?:Deployment|StatefulSet|InferenceService|LeaderWorkerSet)/\S+\s+"
            r"(?:(?P<name>[\w:.-]+): )?(?P<status>(?:<unknown>|[\d.]+\w*%?) ?/ ?\S+(?: \(avg\))?(?:, \S.*?)??)"
            r"\s+(?P<minimum>\d+)\s+(?P<maximum>\d+)\s+(?P<replicas>\d+)\s+\S+\s*$"
        ),
        "scaler",
        (
            (
                "engine   Deployment/engine   cpu: 12%/80%   1   4   1   3d",
                {
                    "kind": "metric",
                    "name": "cpu",
                    "status": "12%/80%",
                    "value": 12.0,
                    "minimum": 1,
                    "maximum": 4,
                    "replicas": 1,
                },
            ),
        ),
        convert=_scaler("metric"),
    ),
    Pattern(
        # what a scaler's own trigger came to, and what it is held against
        "scaler-trigger-value",
        "k8s-scaler",
        ("trigger", "Trigger", "scaler", "metric"),
        regex(
            r"\b(?:[Tt]rigger|[Ss]caler|[Mm]etric)\b[^\n]{0,60}?\b(?:value|current)\s*[:=]?\s*(?P<value>\d+(?:\.\d+)?)[,;]?\s+(?:threshold|target)\s*[:=]?\s*(?P<threshold>\d+(?:\.\d+)?)\b"
            r"(?:[^\n]{0,40}?\breplicas\b[^\n\d]{0,30}(?P<replicas>\d{1,4})\b)?"
        ),
        "scaler",
        (
            (
                "trigger s0 value: 3.58  threshold 20  -> replicas big: 2",
                {"kind": "metric", "value": 3.58, "threshold": 20.0, "replicas": 2},
            ),
            ("scaler chat: current=41, target=10", {"kind": "metric", "value": 41.0, "threshold": 10.0}),
        ),
        convert=lambda row, match: {
            "kind": "metric",
            "status": f"{match['value']}/{match['threshold']}",
            "text": match.string.strip()[:TEXT_CAP],
            "value": float(match["value"]),
            "threshold": float(match["threshold"]),
            **({"replicas": int(match["replicas"])} if match["replicas"] else {}),
        },
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
            "status": replicas_of(match["current"], match["desired"]),
            "text": match.string.strip()[:TEXT_CAP],
            "replicas": int(match["current"]),
            "desired": int(match["desired"]),
        },
    ),
    Pattern(
        "scaler-bounds",
        "k8s-scaler",
        ("Min replicas", "Max replicas"),
        regex(r"^\s*(?P<name>M(?:in|ax) replicas):\s+(?P<status>\d+)\s*$"),
        "scaler",
        (("Max replicas:           8", {"kind": "condition", "name": "Max replicas", "status": "8", "maximum": 8}),),
        convert=lambda row, match: {
            "kind": "condition",
            "name": match["name"],
            "status": match["status"],
            "text": match.string.strip()[:TEXT_CAP],
            "minimum" if match["name"][1] == "i" else "maximum": int(match["status"]),
        },
    ),
    Pattern(
        "scaler-replica-statement",
        "k8s-scaler",
        ("replicas", "Replicas"),
        # not the rows that the patterns above read, nor settings of a manifest, each of which stands on a line of its own
        regex(r"^(?!\s*[A-Z]\w+ pods:)(?=.*\d)(?=.*\breplicas\b).{10,600}$", re.I),
        "scaler",
        (
            (
                "INFO   replicas:      min 1  max 5  observed 1",
                {"kind": "replicas", "minimum": 1, "maximum": 5, "replicas": 1},
            ),
            ("endpoint chat-svc   replicas desired 1   healthy 1   degraded 0", {"replicas": 1, "desired": 1}),
            ("scaling chat: 2 of 6 replicas, queue 31", {"replicas": 2, "maximum": 6}),
        ),
        convert=_replica_statement,
    ),
)
"""Statements of the cluster, of supervisors and of autoscalers in one line."""
