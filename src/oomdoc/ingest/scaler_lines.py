"""Statements of autoscalers in one line: what they compare, what they decided, why they could not."""

from __future__ import annotations

import re

from oomdoc.ingest.base import TEXT_CAP, Convert, Finish, Pattern, Row, Sample, pattern, phrases
from oomdoc.regexes import regex


def _told(kind: str, row: Row, match: re.Match[str]) -> Row:
    """The row finished: second names and statuses under the first, of a metric the value and the threshold that its status tells."""
    for name in ("name", "status"):
        row[name] = (row.pop(f"{name}2", None) or row.get(name) or "").strip() or None
    scaled = value_and_threshold(row["status"]) if kind == "metric" else {}
    return {**row, **scaled, "kind": kind, "text": match.string.strip()[:TEXT_CAP]}


def _statement(
    kind: str, name: str, anchors: tuple[str, ...], shape: str, *samples: Sample | str, convert: Convert | None = None
) -> Pattern:
    """A pattern of a statement of this kind; of a sample without columns the kind is all that it must show."""

    def finish(row: Row, match: re.Match[str]) -> Row | None:
        row = _told(kind, row, match)
        return convert(row, match) if convert else row

    return pattern(name, "k8s-scaler", anchors, (shape,), Finish("scaler", {"kind": kind}, finish), *samples)


_SCALED = regex(
    r"(?P<value>\d+(?:\.\d+)?)(?P<unit>m|k|%)?(?: \([^)]*\))? ?/ ?(?P<threshold>\d+(?:\.\d+)?)(?P<unit2>m|k|%)?"
)
_FACTOR = {"m": 1e-3, "k": 1e3, "%": 1.0}
_REPLICAS = regex(
    r"\b(?:(?P<minimum>min\w*)|(?P<maximum>max\w*)|(?P<replicas>(?:old|previous) target|current|observed|actual|ready|healthy|available|running)|(?P<desired>desired|target|wanted|recommended))"
    r"(?:(?: number of)?[ _]?replicas?)?\\?\"?\s{0,3}[:=]?\s{0,8}(?P<number>\d{1,4})\b(?![.:]\S)",
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
    return {**row, "name": "replicas", **found}


def replicas_of(current: object, desired: object) -> str:
    """Current and desired replicas, or that they are the same."""
    return "unchanged" if current == desired else f"{current} current / {desired} desired"


KNATIVE_SHARE = 0.7
"""Of a target Knative's autoscaler aims at this share, where nothing else is set (knative.dev, target-utilization-percentage)."""
_REVISION = regex(r"(?:-predictor(?:-default)?)?-\d{5}(?:-deployment)?$|-predictor(?:-default)?$")


def service_of(name: str) -> str:
    """The service that a revision of Knative is of, and the model server that KServe made it for.

    >>> service_of("chat-predictor-00004"), service_of("draft-00012-deployment"), service_of("chat-7b")
    ('chat', 'draft', 'chat-7b')
    """
    return _REVISION.sub("", name)


def _observed(row: Row, match: re.Match[str]) -> Row | None:
    """What Knative's autoscaler observed of all pods, as a figure of each; None while there is no pod."""
    pods, value = int(match["pods"]), float(match["observed"])
    groups = match.groupdict()
    aim = float(match["aim"]) if groups.get("aim") else KNATIVE_SHARE * float(match["capacity"])
    if not pods or not aim:
        return None
    told = {name: row.get(name) for name in ("kind", "name", "text", "desired")}
    return {**told, "value": value / pods, "threshold": aim, "replicas": pods}


_METRICS = r"(?:custom|external|resource|pod|scaling|saturation|capacity|queue|load)"

PATTERNS: tuple[Pattern, ...] = (
    _statement(
        "condition", "scaler-condition", ("AbleToScale", "ScalingActive", "ScalingLimited"),
        r"^\s*(?P<name>AbleToScale|ScalingActive|ScalingLimited)\s+(?P<status>True|False|Unknown)\s+[A-Z]\w+",
        ("  ScalingLimited  True    TooManyReplicas  the desired replica count is more than the maximum", {"name": "ScalingLimited", "status": "True"}),
    ),
    _statement(
        "blind", "scaler-blind",
        phrases(
            "nable to get|nable to fetch|nable to retrieve|no metrics|o metrics|metrics available|"
            "metric not found|skipping |FailedGet|FailedComputeMetrics|<unknown>|missing request for|ailed to get|"
            "ailed to query|ailed to fetch|ailed to update|ailed to scrape|ailed to read|ailed to retrieve|"
            "label mismatch|labels mismatch"
        ),
        (
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
        "the HPA was unable to get metric queue_len: no metrics returned from custom metrics API",
        "No capacity metrics available for model, skipping analysis",
        "targets: <unknown>/80%",
        "Reconciler error: failed to update metrics for scale target reference: dial tcp 10.1.2.3:8000: connect: connection refused",
        "ScaledObject decode: failed to read the metrics of trigger 2: context deadline exceeded",
        "Pod has engine metrics but no arrival rate: possible label mismatch",
    ),
    _statement(
        "blind",
        # KEDA's documentation, "Pause autoscaling with deployments": the scaler neither asks nor acts
        "scaler-paused",
        ("autoscaling.keda.sh",),
        r"(?P<name>autoscaling\.keda\.sh/paused(?:-replicas|-scale-(?:in|out))?)\"?\s*[:=]\s*\"?(?P<status>[Tt]rue|\d+)",
        ('    autoscaling.keda.sh/paused: "true"', {"status": "true"}),
        ("autoscaling.keda.sh/paused-replicas=2", {"status": "2"}),
    ),
    _statement(
        "decision", "scaler-decision", ("ecisionsApplied", "ecisions applied", "New size:"),
        # an event names the scaler, which is called after what it scales
        r"(?P<name>decisions ?[Aa]pplied)\"?\s*[:=]\s*(?P<status>\d+)"
        r"|(?:\b(?i:horizontalpodautoscalers?(?:\.autoscaling)?|hpa)/(?:keda-hpa-)?(?P<target>[\w.-]{1,100})\s[^\n]*?)?(?P<name2>New size): (?P<status2>\d+)",
        ('Run finished {"mode": "auto", "models": 1, "decisionsApplied": 0}', {"status": "0"}),
        ("horizontal-pod-autoscaler  New size: 4; reason: cpu above target", {"name": "New size", "status": "4", "target": None}),
        ("4m Normal SuccessfulRescale horizontalpodautoscaler/builds New size: 9; reason: cpu above target", {"status": "9", "target": "builds"}),
    ),
    _statement(
        "decision",
        # a gateway or an operator that sets replicas itself: what it asked for beside what there was
        "scaler-set",
        ("esiredScale", "esired_replicas", "esiredReplicas", "esired replicas", "esired="),
        (
            r"\b(?:[A-Za-z]{0,6}[Dd]esired(?:_?[Ss]cale|[_ ]?[Rr]eplicas)?)(?:\(|[=:] ?)(?P<desired>\d{1,4})\b(?=.*?\bcurrent(?:[_ ]?[Rr]eplicas)?[=:] ?(?P<replicas>\d{1,4})\b)"
            r"(?:(?=.*?\bmin(?:[_ ]?[Rr]eplicas)?[=:] ?(?P<minimum>\d{1,4})\b))?(?:(?=.*?\bmax(?:[_ ]?[Rr]eplicas)?[=:] ?(?P<maximum>\d{1,4})\b))?"
        ),
        ("2027/04/05 17:31:07 SetDesiredScale(1), current: 12, min: 1, max: 40", {"desired": 1, "replicas": 12, "minimum": 1, "maximum": 40}),
        ("target evaluated: desired_replicas=3 current_replicas=3", {"status": "0", "desired": 3, "replicas": 3}),
        convert=lambda row, match: {**row, "status": str(row["desired"] - row["replicas"])},
    ),
    _statement(
        "decision",
        # Nomad's autoscaler: what it left and what it set, of which job
        "nomad-scaler-set", ("policy_eval.worker: ",),
        r"policy_eval\.worker: (?:target is within limits|scaling target)\b.{0,120}? from=(?P<replicas>\d{1,4}) to=(?P<desired>\d{1,4})\b.{0,300}? Job=(?P<target>[\w.-]{1,100})",
        ("[DEBUG] policy_eval.worker: target is within limits, nothing to do: policy_id=1 from=2 to=2 target=nomad-target Job=chat Group=g", {"status": "0", "replicas": 2, "desired": 2, "target": "chat"}),
        convert=lambda row, match: {**row, "status": str(row["desired"] - row["replicas"])},
    ),
    _statement(
        "metric", "nomad-scaler-query", ("query",),
        r"^\s*query\s*=\s*\"(?P<name>(?:avg|max|min|sum)_(?:cpu|memory)(?:-allocated)?)\"",
        ('          query  = "max_memory-allocated"', {"name": "max_memory-allocated"}),
    ),
    _statement(
        "metric", "scaler-metric", (" on pods", "(target average value)", "(target value)", "of request)"),
        (
            r"^\s*(?:resource (?P<name>\w+)(?: of container \S+)? on pods|\"(?P<name2>[^\"]+)\"(?: on \S+(?: \S+)?)?)"
            r"\s*(?:\([^)]*\))?:\s+(?P<status>(?:<unknown>|[\d.]+\w*%?)(?: \([^)]*\))? ?/ ?\S.*)$"
        ),
        ("  resource cpu on pods  (as a percentage of request):  12% (240m) / 80%", {"name": "cpu", "status": "12% (240m) / 80%"}),
        ('  "vllm:num_requests_waiting" on pods:  37 / 5', {"name": "vllm:num_requests_waiting", "status": "37 / 5"}),
    ),
    _statement(
        "metric", "scaler-row", ("Deployment", "StatefulSet", "InferenceService", "LeaderWorkerSet", " (avg)"),
        (
            r"^\s*(?:\[?(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d(?::\d\d)?(?:\.\d+)?Z?\]?\s+)?(?:[a-z0-9][\w./-]*\s+){1,2}[A-Z][A-Za-z]{3,60}/\S+\s+"
            r"(?:(?P<name>[\w:.-]+): )?(?P<status>(?:<unknown>|[\d.]+\w*%?) ?/ ?\S+(?: \(avg\))?(?:, \S.*?)??)"
            r"\s+(?P<minimum>\d+)\s+(?P<maximum>\d+)\s+(?P<replicas>\d+)\s+\S+\s*$"
        ),
        ("engine   Deployment/engine   cpu: 12%/80%   1   4   1   3d", {"name": "cpu", "status": "12%/80%", "value": 12.0, "minimum": 1, "maximum": 4, "replicas": 1}),
        ("horizontalpodautoscaler/keda-hpa-b   ModelServing/b   0/8 (avg)   2   6   3   3d4h", {"status": "0/8 (avg)", "value": 0.0, "minimum": 2, "maximum": 6, "replicas": 3}),
    ),
    _statement(
        "metric",
        # what a scaler's own trigger came to, and what it is held against
        "scaler-trigger-value",
        ("trigger", "Trigger", "scaler", "metric"),
        (
            r"\b(?:[Tt]rigger|[Ss]caler|[Mm]etric)\b[^\n]{0,60}?\b(?:value|current)\s*[:=]?\s*(?P<value>\d+(?:\.\d+)?)[,;]?\s+(?:threshold|target)\s*[:=]?\s*(?P<threshold>\d+(?:\.\d+)?)\b"
            r"(?:[^\n]{0,40}?\breplicas\b[^\n\d]{0,30}(?P<replicas>\d{1,4})\b)?"
        ),
        ("trigger s0 value: 3.58  threshold 20  -> replicas big: 2", {"value": 3.58, "threshold": 20.0, "replicas": 2}),
        ("scaler chat: current=41, target=10", {"value": 41.0, "threshold": 10.0}),
        convert=lambda row, match: {**row, "status": f"{match['value']}/{match['threshold']}"},
    ),
    _statement(
        "replicas", "scaler-replicas", (" pods:",),
        r"^\s*(?P<name>[A-Z]\w+ pods):\s+(?P<replicas>\d+) current / (?P<desired>\d+) desired\s*$",
        ("Deployment pods:  1 current / 1 desired", {"status": "unchanged"}),
        ("Deployment pods:  1 current / 3 desired", {"status": "1 current / 3 desired"}),
        convert=lambda row, match: {**row, "status": replicas_of(row["replicas"], row["desired"])},
    ),
    _statement(
        "metric",
        # knative.dev/serving, pkg/autoscaler/scaling/autoscaler.go: what all pods hold, and what one may before its share of the target
        "scaler-knative-capacity",
        ("ObsStableValue=",),
        r"\bPodCount=(?P<pods>\d{1,4}) Total1PodCap=(?P<capacity>[\d.]{1,12}) ObsStableValue=(?P<observed>\d{1,9}(?:\.\d{1,6})?)\b",
        ("PodCount=2 Total1PodCap=50.000 ObsStableValue=24.500 ObsPanicValue=25.000 TargetBC=211.000 ExcessBC=-86.000", {"value": 12.25, "threshold": 35.0, "replicas": 2}),
        convert=_observed,
    ),
    _statement(
        "metric", "scaler-knative-observed", ("observed values: stable",),
        (
            r"(?:For metric (?P<name>[\w-]{1,40}) )?observed values: stable = (?P<observed>\d{1,9}(?:\.\d{1,6})?); panic = [\d.]{1,12}; target = (?P<aim>\d{1,9}(?:\.\d{1,6})?)\.?"
            r" Desired StablePodCount = (?P<desired>\d{1,4}), PanicPodCount = \d{1,4}, ReadyEndpointCount = (?P<pods>\d{1,4})"
        ),
        (
            "For metric rps observed values: stable = 9.000; panic = 9.500; target = 14.000 Desired StablePodCount = 1, PanicPodCount = 1, ReadyEndpointCount = 1, MaxScaleUp = 1000",
            {"name": "rps", "value": 9.0, "threshold": 14.0, "replicas": 1, "desired": 1},
        ),
        convert=_observed,
    ),
    _statement(
        "replicas",
        # `kubectl get podautoscaler`: NAME DESIREDSCALE ACTUALSCALE READY REASON; a revision's name ends in five digits
        "scaler-knative-row",
        (" True", " False", " Unknown"),
        r"^\s*(?:[a-z0-9][\w.-]{0,62}\s+)?(?P<target>[a-z0-9][\w.-]{0,120}-\d{5})\s+(?P<desired>\d{1,4})\s+(?P<replicas>\d{1,4})\s+(?:True|False|Unknown)(?:\s+[A-Z]\w*)?\s*$",
        ("chat-predictor-00004   1   1   True", {"status": "unchanged", "target": "chat", "replicas": 1, "desired": 1}),
        ("draft-00012   3   1   Unknown   Queued", {"status": "1 current / 3 desired", "target": "draft"}),
        convert=lambda row, match: {
            **row,
            "name": "pods",
            "status": replicas_of(row["replicas"], row["desired"]),
            "target": service_of(match["target"]),
        },
    ),
    _statement(
        "condition",
        # Ray's autoscaler (python/ray/autoscaler/_private/util.py): it adds nodes for tasks, actors and placement groups that find no
        # place, and for nothing else; a request that waits inside an engine is none of them
        "scaler-ray-demands",
        ("(no resource demands)",),
        r"\(no resource demands\)",
        (" (no resource demands)", {"name": "Demands", "status": "False"}),
        ("autoscaler.py:427 -- (unchanged) Demands: (no resource demands); 4.0/4.0 GPU", {"name": "Demands"}),
        convert=lambda row, match: {**row, "name": "Demands", "status": "False"},
    ),
    _statement(
        "condition", "scaler-bounds", ("Min replicas", "Max replicas"),
        r"^\s*(?P<name>M(?:in|ax) replicas):\s+(?P<status>\d+)\s*$",
        ("Max replicas:           8", {"name": "Max replicas", "status": "8", "maximum": 8}),
        convert=lambda row, match: {**row, "minimum" if match["name"][1] == "i" else "maximum": int(match["status"])},
    ),
    _statement(
        "replicas", "scaler-replica-statement", ("replicas", "Replicas"),
        # not the rows that the patterns above read, nor settings of a manifest, each of which stands on a line of its own
        r"(?i)^(?!\s*[A-Z]\w+ pods:)(?=.*\d)(?=.*\breplicas\b).{10,600}$",
        ("INFO   replicas:      min 1  max 5  observed 1", {"minimum": 1, "maximum": 5, "replicas": 1}),
        ("endpoint chat-svc   replicas desired 1   healthy 1   degraded 0", {"replicas": 1, "desired": 1}),
        ("scaling chat: 2 of 6 replicas, queue 31", {"replicas": 2, "maximum": 6}),
        ("Old target number of replicas: 2. Current target number of replicas: 3. Upscale counter: 0/15.", {"replicas": 2, "desired": 3}),
        convert=_replica_statement,
    ),
)  # fmt: skip
