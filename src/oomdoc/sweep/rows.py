"""A report becomes rows of the dataset: pure, one bundle at a time, knowing nothing of other bundles or nights."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from oomdoc.model import Diagnosis, Engine, Incident, LedgerEntry, Report, last_moments
from oomdoc.units import show_time

FINDING_FROM = 0.05  # causes below it are told by nobody; the first one is kept in any case
SHAPE_FROM = 0.05  # parts of a device below it differ from start to start
MEMORY_FLAGS = (
    "block_size", "cpu_offload_gb", "data_parallel_size", "dtype", "enable_chunked_prefill", "enable_lora",
    "enable_prefix_caching", "enforce_eager", "gpu_memory_utilization", "kv_cache_dtype", "kv_cache_memory_bytes",
    "max_model_len", "max_num_batched_tokens", "max_num_seqs", "num_gpu_blocks_override", "pipeline_parallel_size",
    "quantization", "swap_space", "tensor_parallel_size",
)  # fmt: skip
"""Engine flags that bear on memory: part of a fingerprint, and looked at for change points."""

Rows = dict[str, list[dict[str, Any]]]


def rows_of(report: Report, key: str) -> Rows:
    """The rows of one report by table; the caller adds the night and the ledger's own columns to `bundle`."""
    engines = {engine.id: engine for engine in report.engines}
    shape = ledger_shape(report.ledger)
    gravest = next((item for item in report.incidents if item.diagnoses and item.diagnoses == report.diagnoses), None)
    engine = _engine_of(gravest, engines, report.engines)
    incidents = [
        _incident(report, item, _engine_of(item, engines, report.engines), shape, key) for item in report.incidents
    ]
    if not report.incidents and report.verdict in ("diagnosed", "not-memory"):
        incidents.append(_verdict(report, engine, shape, key))
    first = report.diagnoses[0] if report.diagnoses else None
    host = report.story.host if report.story else None
    bundle = {
        "host": host, "sha256": report.bundle.sha256 or None, "bytes": report.bundle.bytes, "files": report.bundle.files,
        "rules_version": report.rules_version, "oomdoc_version": report.oomdoc_version, "verdict": report.verdict,
        **_top(first), **_engine_columns(engine), "ledger_shape": shape or None, "incidents": len(incidents),
        "problems": sum(row.problems for row in report.coverage.sources), "unread": len(report.coverage.unread),
    }  # fmt: skip
    for row in incidents:
        row["host"] = host
    told: Rows = {
        "bundle": [bundle],
        "finding": [_finding(item) for item in report.diagnoses if item.rank == 1 or item.probability >= FINDING_FROM],
        "incident": incidents,
        "ledger": [_ledger(entry) for entry in last_moments(report.ledger)],
        "engine": [_engine(item) for item in report.engines],
        "traffic": [{"requests": report.traffic.get("requests"), "profile": _json(report.traffic)}]
        if report.traffic.get("requests")
        else [],
        "coverage": [
            *({"source": row.path, "kind": row.kind, "bytes": row.bytes, "lines": row.lines, "rows": row.rows, "problems": row.problems}
              for row in report.coverage.sources),
            *({"source": row.path, "why": row.why} for row in report.coverage.unread),
        ],
    }  # fmt: skip
    for name in told:
        told[name] = [{"bundle": key, **row} for row in told[name]]
    return told


def ledger_shape(ledger: Sequence[LedgerEntry]) -> str:
    """Parts of the first rank's device, largest first, from 5 % on; "" where nothing is known.

    >>> parts = {"weights_bytes": 40, "kv_pool_bytes": 50, "free_bytes": 1, "unexplained_bytes": None}
    >>> ledger_shape([LedgerEntry(None, 0, None, 100, parts, None, None, ())])
    'kv_pool>weights'
    """
    for entry in ledger:
        known = {name.removesuffix("_bytes"): size for name, size in entry.parts.items() if size is not None}
        whole = entry.total_bytes or sum(known.values())
        large = [name for name, size in known.items() if whole and size >= SHAPE_FROM * whole]
        return ">".join(sorted(large, key=lambda name: (-known[name], name)))
    return ""


def memory_flags(engine: Engine | None) -> str | None:
    """The flags of an engine that bear on memory, as JSON in order of name; None where none is known."""
    if engine is None:
        return None
    known = {name: engine.flags[name].value for name in MEMORY_FLAGS if name in engine.flags}
    return _json(known) if known else None


def _engine_of(incident: Incident | None, engines: Mapping[str, Engine], every: Sequence[Engine]) -> Engine | None:
    if incident is not None and incident.engine is not None and incident.engine in engines:
        return engines[incident.engine]
    return every[-1] if every else None


def _engine_columns(engine: Engine | None) -> dict[str, Any]:
    if engine is None:
        return {}
    return {"model": engine.model, "version": engine.version, "flags": memory_flags(engine)}


def _top(first: Diagnosis | None) -> dict[str, Any]:
    if first is None:
        return {}
    return {"cause": first.cause, "reason": first.reason, "probability": first.probability}


def _incident(report: Report, item: Incident, engine: Engine | None, shape: str, key: str) -> dict[str, Any]:
    failure = item.first_failure
    top = _top(item.diagnoses[0] if item.diagnoses else None)
    started = show_time(item.started)
    # a place moves when its log is cut or rotated; a time does not
    place = started or (failure.ref if failure else "")
    return {
        "incident": item.id, "incident_key": _hash([key, item.kind, place, failure.text if failure else None], 16),
        "kind": item.kind, "phase": item.phase, "started": started, "engine": item.engine,
        "ref": failure.ref if failure else None, "text": failure.text if failure else None,
        **top, **_engine_columns(engine), "fingerprint": _fingerprint(top, engine, shape),
        "action": _action(item.diagnoses[0] if item.diagnoses else None, report), **_story(report, item.diagnoses),
    }  # fmt: skip


def _action(first: Diagnosis | None, report: Report) -> str | None:
    """The first thing to do, as the bundle's report says it."""
    if first is None:
        return None
    if report.verdict == "undecided" and report.diagnoses and report.diagnoses[0].cause == first.cause:
        # as on the report's first screen: no change without a cause
        asked = report.collect_next[0].what if report.collect_next else None
        return f"Collect more and analyse again: {asked}" if asked else "No change is advised before a cause is known"
    do = first.actions[0].do if first.actions else None
    led = report.diagnoses[0].actions[:1] if report.diagnoses and report.diagnoses[0].cause == first.cause else ()
    alike = bool(led) and led[0].do == do
    return (report.story.change if report.story and alike else None) or do


def _story(report: Report, ranked: Sequence[Diagnosis]) -> dict[str, Any]:
    """The report's own title and what users lost: both speak of the gravest incident."""
    if report.story is None or not ranked or ranked != report.diagnoses or report.verdict == "undecided":
        return {}
    return {"title": report.story.title, "cost": report.story.cost}


def _verdict(report: Report, engine: Engine | None, shape: str, key: str) -> dict[str, Any]:
    first = report.diagnoses[0]
    top = _top(first)
    started = show_time(engine.started) if engine else None
    return {
        "incident": "verdict", "incident_key": _hash([key, "verdict", started], 16), "kind": "verdict",
        "started": started, "engine": engine.id if engine else None, "ref": next((ref for item in first.evidence for ref in item.refs), None),
        "text": first.evidence[0].says if first.evidence else first.title, **top, **_engine_columns(engine), "fingerprint": _fingerprint(top, engine, shape),
        "action": _action(first, report), **_story(report, report.diagnoses),
    }  # fmt: skip


def _fingerprint(top: Mapping[str, Any], engine: Engine | None, shape: str) -> str:
    model, version = (engine.model, engine.version) if engine else (None, None)
    return _hash([top.get("cause"), top.get("reason"), model, version, memory_flags(engine), shape], 12)


def _finding(item: Diagnosis) -> dict[str, Any]:
    return {
        "rank": item.rank, "cause": item.cause, "category": item.category, "reason": item.reason, "probability": item.probability,
        "title": item.title, "evidence": _pieces(item.evidence), "against": _pieces(item.against),
        "actions": _json([{"id": action.id, "do": action.do, "changes": dict(action.changes)} for action in item.actions]),
    }  # fmt: skip


def _pieces(evidence: Sequence[Any]) -> str:
    return _json(
        [{"id": item.id, "says": item.says, "weight": item.weight, "refs": list(item.refs)} for item in evidence]
    )


def _ledger(entry: LedgerEntry) -> dict[str, Any]:
    return {
        "engine": entry.engine, "rank": entry.rank, "device": entry.device, "moment": entry.moment, "total_bytes": entry.total_bytes, **entry.parts,
        "kv_bytes_per_token": entry.kv_bytes_per_token, "kv_pool_tokens": entry.kv_pool_tokens,
    }  # fmt: skip


def _engine(item: Engine) -> dict[str, Any]:
    flags = {name: flag.value for name, flag in item.flags.items()}
    return {
        "engine": item.id, "ref": item.ref, "started": show_time(item.started), "version": item.version, "model": item.model,
        "flags": _json(flags), "last_milestone": item.last_milestone, "failed": item.failed,
    }  # fmt: skip


def _json(value: Any) -> str:
    return json.dumps(_plain(value), ensure_ascii=True, separators=(",", ":"), sort_keys=True, default=str)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain(dataclasses.asdict(value))
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return round(value, 6) if value == value and abs(value) != float("inf") else None
    return value


def _hash(parts: Sequence[Any], digits: int) -> str:
    return hashlib.sha256(_json(list(parts)).encode()).hexdigest()[:digits]
