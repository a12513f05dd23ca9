"""`kubectl get hpa`: one row for each autoscaler, with what it follows, its bounds, and how many replicas there are.

NAME           REFERENCE           TARGETS            MINPODS   MAXPODS   REPLICAS   AGE
keda-hpa-chat  Deployment/chat     0/8 (avg)          1         6         1          3d4h
chat           Deployment/chat     <unknown>/80%, 3/5 1         4         2          9d
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oomdoc.ingest.base import TEXT_CAP
from oomdoc.regexes import regex

HEADER = regex(r"\s*(?:NAMESPACE\s+)?NAME\s+REFERENCE\s+TARGETS\s+MINPODS\s+MAXPODS\s+REPLICAS\b")
_ROW = regex(
    r"\s*(?:(?P<namespace>[a-z0-9][\w.-]*)\s+)??(?P<name>(?:horizontalpodautoscaler\S*/)?[\w.-]+)\s+(?P<target>[\w.]+/[\w.-]+)\s+(?P<targets>\S.*?)\s+(?P<min>\d{1,6}|<unset>)\s+(?P<max>\d{1,6})\s+(?P<now>\d{1,6})(?:\s+\S+)?\s*$"
)
_FOLLOWED = regex(r"(?:(?P<metric>[\w./-]+): )?(?P<value><unknown>|\d{1,12}(?:\.\d+)?)(?P<scale>m|k|%)?/(?P<threshold>\d{1,12}(?:\.\d+)?)(?P<scale2>m|k|%)?")  # fmt: skip
_SCALES = {"m": 1e-3, "k": 1e3, "%": 1.0, "": 1.0}


def rows(line: str) -> Iterator[dict[str, Any]]:
    """The rows of `scaler` that a line below the header makes: its replicas, then each metric that it follows.

    >>> [(r["kind"], r.get("value"), r.get("threshold"), r.get("replicas"), r.get("maximum")) for r in rows("a  Deployment/a  0/8 (avg)  1  6  1  3d4h")]
    [('replicas', None, None, 1, 6), ('metric', 0.0, 8.0, None, None)]
    """
    found = _ROW.match(line)
    if found is None:
        return
    about = {"target": found["target"].partition("/")[2], "namespace": found["namespace"], "text": line.strip()[:TEXT_CAP]}  # fmt: skip
    least = int(found["min"]) if found["min"].isdigit() else None
    yield {**about, "kind": "replicas", "name": found["name"], "replicas": int(found["now"]), "minimum": least, "maximum": int(found["max"])}  # fmt: skip
    for one in _FOLLOWED.finditer(found["targets"]):
        told = one["value"] != "<unknown>"
        value = float(one["value"]) * _SCALES[one["scale"] or ""] if told else None
        yield {**about, "kind": "metric", "name": one["metric"], "status": one[0], "value": value, "threshold": float(one["threshold"]) * _SCALES[one["scale2"] or ""]}  # fmt: skip
