"""Kubernetes and its like: container states, events, probes, autoscalers, nodes; and supervisors that play the kubelet.

Single lines (events, probe failures, kills, conditions and metrics of an autoscaler, exits) are patterns of
`kubernetes_lines`, which look at every text. `read` takes what spans lines: `kubectl describe pod|node`, `kubectl get pods`, `kubectl top`, objects as
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

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from oomdoc.evidence.tables import Batch
from oomdoc.ingest import launch
from oomdoc.ingest.base import TEXT_CAP, Head, Rows
from oomdoc.ingest.configuration import offered
from oomdoc.ingest.kubernetes_describe import Describe, is_listed
from oomdoc.ingest.kubernetes_lines import EVENT, event_row
from oomdoc.ingest.kubernetes_objects import Objects
from oomdoc.ingest.record import HEAD
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

KIND = "kubernetes"

DOCUMENT_CAP_BYTES = 64 << 20  # JSON and YAML are held whole; a dump of a large cluster goes on in pieces elsewhere

# ---- recognition

_STRONG = regex(
    r"\s*(?:(?:Last )?State:\s+(?:Running|Waiting|Terminated)\b|Restart Count:\s+\d|Exit Code:\s+\d|QoS Class:\s"
    r"|Controlled By:\s|LAST SEEN\s+TYPE\s|Type\s+Reason\s+Age\s|NAME\s+READY\s+STATUS\s+RESTARTS"
    r"|NAMESPACE\s+NAME\s+READY|NAME\s+REFERENCE\s+TARGETS|(?:NAMESPACE\s+|POD\s+){0,2}NAME\s+CPU\(cores\)\s+(?:CPU%\s+)?MEMORY\(bytes\)"
    r"|Metrics:\s+\( current / target \)|(?:AbleToScale|ScalingActive|ScalingLimited)\s+(?:True|False)"
    r"|(?:Allocatable|Capacity):\s*$|\"?apiVersion\"?:\s|\"?kind\"?: \"?(?:Pod|PodList|List|Event|EventList|Node"
    r"|NodeList|Deployment|StatefulSet|HorizontalPodAutoscaler|PodAutoscaler|ScaledObject|InferenceService|LeaderWorkerSet)\"?,?\s*$)"
)
_SUPERVISED = regex(
    r".*\b(?:(?:startup|liveness|readiness) probe|exited code=|started pid=|New size:|decisionsApplied"
    r"|metrics available|skipping analysis|unable to (?:get|fetch)[^\n]{0,40} metric)"
)
_ANNOTATION = regex(r"\s*\"?(?P<key>[a-z0-9][a-z0-9.-]*\.[a-z]{2,}/[\w.-]+)\"?\s*[:=]\s*\"?(?P<value>[^\"]*?)\"?,?\s*$")
_DOCUMENT = regex(
    r"\s*(?:#[^\n]*\n\s*)*(?:- )?(?:[{\[]|apiVersion:|---|kind:|metadata:|spec:|status:|(?:- )?containerStatuses:|containers:|containerID:|exitCode:|lastState:|state:|terminated:|terminationGracePeriodSeconds:|(?:liveness|readiness|startup)Probe:|triggers:|metrics:|m(?:in|ax)Replica\w*:|scaleTargetRef:|behavior:)"
)
_SCALER = regex(rb'(?m)^\s*(?:"spec"\s*:\s*\{\s*)?"?(?:m(?:in|ax)Replica(?:s|Count)|scaleTargetRef)"?\s*:')
_BOX = regex(
    rb"(?m)^\s*(?:- )?(?:containerStatuses|lastState):|^\s*exitCode: *\d+\s*$(?=(?s:.)*^\s*(?:reason|finishedAt):)|^\s*(?:liveness|startup)Probe:(?=(?s:.)*\b(?:failureThreshold|periodSeconds|initialDelaySeconds)\b)"
)
"""What only the status of a container has, or its probes."""
_BOXED = regex(
    rb"containerStatuses:|lastState:|exitCode:|Probe:"
)  # found by their letters: no line is tried without them
_NODE = regex(rb'(?m)^\s*"?nvidia\.com/gpu\.product"?\s*:')
_LABELS = regex(rb'(?m)^[\s-]*"?labels"?\s*:')
_FOLLOWS = regex(rb'(?m)^\s*"?(?:metrics|triggers|behavior)"?\s*:')
"""What only the specification of an autoscaler has."""


def matches(head: Head) -> bool:
    """What kubectl prints, an object of the cluster, a supervisor's or autoscaler's own log, an annotation file."""
    lines = [line for line in head.lines if line.strip()]
    if not lines:
        return False
    if all(_ANNOTATION.match(line) or line.strip().rstrip(":") in ("annotations", "metadata") for line in lines):
        return True
    if all(map(is_listed, lines)):
        return True
    if _LIST.match(lines[0]):  # records of a program: `forms` reads them, unless they are the cluster's own objects
        return bool(_INSPECT.search(head.data))
    if _is_part(head.data) and _DOCUMENT.match(head.data[:4096].decode("utf-8", "replace")):
        return True
    records = sum(bool((found := HEAD.match(line)) and (found["src"] or found["mon"])) for line in lines)
    if records * 2 > len(lines):
        return False
    strong = sum(bool(_STRONG.match(line)) for line in lines)
    events = sum(bool((found := EVENT.match(line)) and event_row({}, found)) for line in lines)
    if strong >= 2 or events >= 2 or (strong and events) or (strong and len(lines) <= 30 and not records):
        return True
    if events and len(lines) <= 5:
        return True
    if lines[0].lstrip()[:1] in ("{", "[") and _INSPECT.search(head.data):
        return True
    supervised = sum(bool(_SUPERVISED.match(line)) for line in lines)
    return not records and supervised * 2 > len(lines)


def _is_part(data: bytes) -> bool:
    """What only a container's status, the specification of an autoscaler or the labels of a node have; letters are looked for first."""
    if _BOXED.search(data) and _BOX.search(data):
        return True
    if (b"Replica" in data or b"scaleTargetRef" in data) and _SCALER.search(data) and _FOLLOWS.search(data):
        return True
    return b"gpu.product" in data and bool(_NODE.search(data) and _LABELS.search(data))


_LIST = regex(r"\s*\[\s*\{")
_INSPECT = regex(
    rb'"(?:OOMKilled|RestartCount|containerStatuses|involvedObject|restartCount|podRef|stoppedReason|taskArn|containerDefinitions)"\s*:|"(?:terminated|waiting)"\s*:\s*\{|"kind"\s*:\s*"(?:Pod|Event|Node|List)'
)


# ---- reading


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """Containers, objects, nodes and annotations; the single-line statements are left to `PATTERNS`."""
    rows = Rows()
    describe = Describe(rows)
    parts: list[bytes] = []
    held = 0
    document: bool | None = None
    for chunk in chunks:
        offered(rows, chunk)  # the configuration of a device plugin, in a ConfigMap
        if document is None and chunk.data.strip():
            document = bool(_DOCUMENT.match(chunk.data[:4096].decode("utf-8", "replace")))
        if document:
            held += len(chunk.data)
            if held <= DOCUMENT_CAP_BYTES:
                parts.append(chunk.data)
            continue
        for number, text in chunk.lines(2000):
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
            text = match[0].strip()[:TEXT_CAP]
            rows.add("scaler", number, kind="annotation", name=name, status=value[:TEXT_CAP], text=text)


_DOCUMENT_START = regex(r"^[ \t]*[{\[]", re.M)


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
    objects = Objects(rows, text)
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
