"""Two reports in, what changed between them out, ordered by what the leading cause of the failing one speaks of.

Works on the JSON objects of reports, so that one made months ago compares with one made now. Pure functions; nothing
is opened and no rule is asked: which change matters is read off the report's own evidence (sentences, figures,
weights) and actions (the flags they set). A value that a report does not tell is *not stated*: never zero, and never
taken for a default.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from oomdoc.errors import UsageError
from oomdoc.report.changes import ALWAYS, FIGURES, FLAGS, MOVES, Change, Comparison, Side, Sign

NOISE = 0.02  # measured figures that differ by less are the same
STATED = 3.0  # an action that sets the flag speaks of it as strongly as evidence of about ×20
INHERITED = 0.9  # of the relevance of a figure that a flag moves
CONSEQUENCE = 0.6  # figures that follow from settings explain less than the settings
WRONG_WAY = 0.1  # a change that eases the cause does not explain the failure
MOST_WEIGHT = 4.0


def check(report: Any, name: str) -> Mapping[str, Any]:
    """The object if it is a report of `oomdoc analyze --format json`; UsageError with a sentence otherwise."""
    if not isinstance(report, Mapping) or not {"verdict", "diagnoses", "bundle"} <= report.keys():
        raise UsageError(
            f"{name} is JSON, and no report of `oomdoc analyze --format json`", "Give a report or a bundle"
        )
    if report.get("schema_version") != "1":
        raise UsageError(
            f"{name} has schema_version {report.get('schema_version')!r}, and this program reads '1'",
            "Analyse the bundle itself again",
        )
    return report


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> Comparison:
    """What changed from one report to the other, and which change explains the failure of the one that failed."""
    sides = _side(old), _side(new)
    outcome = _outcome(*sides)
    judged = None if outcome == "healthy" else "old" if outcome == "recovered" or _told(sides[1]) is None else "new"
    judged = None if judged == "old" and _told(sides[0]) is None else judged
    failing = {"old": old, "new": new}.get(judged or "")
    first = _mapping(next(iter(_list((failing or {}).get("diagnoses"))), None))
    # a recovery is explained by what turned for the better
    bearing = _Bearing(first, -1 if judged == "old" else 1)
    changes = _ranked([*_settings(old, new), *_figures(old, new)], bearing)
    signs = [_signs(report, first.get("cause")) for report in (old, new)]
    return Comparison(
        old=sides[0],
        new=sides[1],
        outcome=outcome,
        judged=judged,
        cause=_text(first.get("cause")),
        changes=changes,
        explained_by=tuple(
            item.name
            for item in sorted(changes, key=lambda item: not all(item.stated))  # what both state comes first
            if item.set_by_people and item.relevance >= 1.0
        ),
        evidence_new=tuple(sign for sign in signs[1] if sign.id not in {other.id for other in signs[0]}),
        evidence_gone=tuple(sign for sign in signs[0] if sign.id not in {other.id for other in signs[1]}),
        incomparable=tuple(_incomparable(old, new, sides)),
    )


# ---- who they are


def _side(report: Mapping[str, Any]) -> Side:
    bundle = _mapping(report.get("bundle"))
    first = _mapping(next(iter(_list(report.get("diagnoses"))), None))
    return Side(
        _text(bundle.get("name")) or "a bundle",
        _text(bundle.get("sha256")) or "",
        _text(report.get("verdict")) or "undecided",
        _text(first.get("cause")),
        _text(first.get("title")),
        _number(first.get("probability")),
        _text(report.get("oomdoc_version")) or "",
        _text(report.get("rules_version")) or "",
        _text(_engine(report).get("outcome")),
    )


def _told(side: Side) -> str | None:
    """The failure that a side tells; None for healthy and undecided ones."""
    return side.cause if side.verdict in ("diagnosed", "not-memory") else None


def _outcome(old: Side, new: Side) -> str:
    if "undecided" in (old.verdict, new.verdict):
        return "unclear"
    before, after = _told(old), _told(new)
    if before is None or after is None:
        return "healthy" if before == after else "failed" if after else "recovered"
    return "same-cause" if before == after else "other-cause"


def _incomparable(old: Mapping[str, Any], new: Mapping[str, Any], sides: tuple[Side, Side]) -> Iterable[str]:
    before, after = sides
    if before.sha256 and before.sha256 == after.sha256:
        yield "both are the same bundle, byte for byte"
    if before.oomdoc_version != after.oomdoc_version:
        yield f"oomdoc {before.oomdoc_version} made the old report and {after.oomdoc_version} the new one"
    elif before.rules_version != after.rules_version:
        yield f"rules {before.rules_version} made the old report and {after.rules_version} the new one"
    models = [_text(_engine(report).get("model")) for report in (old, new)]
    if None not in models and models[0] != models[1]:
        yield "they serve different models: two servers, perhaps, and not one on two days"
    for name, report in (("old", old), ("new", new)):
        if not _list(report.get("engines")):
            yield f"the {name} one shows no start of an engine: its settings are not stated"
        if not _mapping(report.get("traffic")):
            yield f"the {name} one holds no request log: its traffic is not known"


def _signs(report: Mapping[str, Any], cause: Any) -> list[Sign]:
    for diagnosis in map(_mapping, _list(report.get("diagnoses"))):
        if diagnosis.get("cause") == cause and cause is not None:
            return [
                Sign(
                    _text(item.get("id")) or "",
                    _text(item.get("says")) or "",
                    _number(item.get("weight")) or 0.0,
                    tuple(ref for ref in _list(item.get("refs")) if isinstance(ref, str)),
                )
                for item in map(_mapping, _list(diagnosis.get("evidence")))
            ]
    return []


# ---- what differs

_Pair = tuple[str, str, Any, Any, tuple[bool, bool]]  # area, name, before, after, which sides state it


def _settings(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterable[_Pair]:
    """Release, model and flags of the engine start of the gravest incident (the last start where there is none)."""
    engines = _engine(old), _engine(new)
    for name in ("version", "model"):
        before, after = (engine.get(name) for engine in engines)
        if before is not None and after is not None and before != after:
            yield name, name, before, after, (True, True)
    flags = tuple(_mapping(engine.get("flags")) for engine in engines)
    for name in sorted(str(key) for key in flags[0].keys() | flags[1].keys()):
        if name in ("version", "model") or not all(engines):
            continue
        stated = name in flags[0], name in flags[1]
        before, after = (_mapping(side.get(name)).get("value") for side in flags)
        if not _alike(before, after) or stated[0] != stated[1]:
            yield "flag", name, before, after, stated


def _alike(before: Any, after: Any) -> bool:
    """Equal, also where one log writes a number and another its text, or one names torch's module before the type."""
    return bool(before == after) or _written(before) == _written(after)


def _written(value: Any) -> str:
    text = f"{float(value):.12g}" if _number(value) is not None else str(value)
    return text.strip("'\"").removeprefix("torch.")


def _engine(report: Mapping[str, Any]) -> Mapping[str, Any]:
    engines = [_mapping(item) for item in _list(report.get("engines"))]
    wanted = _gravest(report).get("engine")
    return next(
        (engine for engine in engines if wanted is not None and engine.get("id") == wanted),
        engines[-1] if engines else {},
    )


def _gravest(report: Mapping[str, Any]) -> Mapping[str, Any]:
    incidents = [_mapping(item) for item in _list(report.get("incidents"))]
    alike = (item for item in incidents if item.get("diagnoses") == report.get("diagnoses"))
    return next(alike, incidents[0] if incidents else {})


def _figures(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterable[_Pair]:
    before, after = _measured(old), _measured(new)
    for name, figure in FIGURES.items():
        one, two = before.get(name), after.get(name)
        # a figure of one side only is no change: the other bundle may just not hold that source
        if one is None or two is None or abs(two - one) <= NOISE * max(abs(one), abs(two)):
            continue
        yield figure.area, name, one, two, (True, True)


def _measured(report: Mapping[str, Any]) -> dict[str, float]:
    """The figures of a report by name. Of several devices the tightest speaks: the largest part, the least total, pool and free."""
    found: dict[str, list[float]] = {}
    entries = [_mapping(item) for item in _list(report.get("ledger"))]
    start = _engine(report).get("id")
    ranks = set()
    for entry in [item for item in entries if item.get("engine") == start] or entries:
        if entry.get("rank") in ranks:
            continue  # an earlier moment of the same rank
        ranks.add(entry.get("rank"))
        parts = {
            **_mapping(entry.get("parts")),
            **{key: entry.get(key) for key in ("total_bytes", "kv_pool_tokens", "kv_bytes_per_token")},
        }
        for name, value in parts.items():
            if (number := _number(value)) is not None:
                found.setdefault(str(name), []).append(number)
    told = {
        name: min(values) if name in FIGURES and FIGURES[name].worse < 0 else max(values)
        for name, values in found.items()
    }
    return {**told, **_traffic(_mapping(report.get("traffic")))}


def _traffic(traffic: Mapping[str, Any]) -> dict[str, float]:
    percentiles, peaks = _mapping(traffic.get("percentiles")), _mapping(traffic.get("peaks"))
    asked: dict[str, Any] = {
        "requests_per_s": traffic.get("per_s"),
        "input_p95_tokens": _mapping(percentiles.get("input_tokens")).get("p95"),
        "output_p95_tokens": _mapping(percentiles.get("output_tokens")).get("p95"),
        "context_p95_tokens": _mapping(percentiles.get("context_tokens")).get("p95"),
        "context_max_tokens": _mapping(percentiles.get("context_tokens")).get("max"),
        "tokens_in_flight_max": _mapping(peaks.get("tokens_in_flight")).get("value"),
        "requests_in_flight_max": _mapping(peaks.get("requests_in_flight")).get("value"),
    }
    buckets = [_mapping(item) for item in _list(_mapping(traffic.get("buckets")).get("context"))]
    long = [
        share
        for item in buckets
        if item.get("name") in ("L", "XL") and (share := _number(item.get("share"))) is not None
    ]
    asked["long_context_share"] = sum(long) if long else None
    requests, failed = _number(traffic.get("requests")), _number(traffic.get("failed"))
    asked["failed_share"] = failed / requests if requests and failed is not None else None
    return {name: number for name, value in asked.items() if (number := _number(value)) is not None}


# ---- what it means


class _Bearing:
    """What the leading cause of the failing report says of a flag or a figure."""

    def __init__(self, diagnosis: Mapping[str, Any], sign: int) -> None:
        self.sign = sign
        self.evidence: list[tuple[str, frozenset[str], float, str]] = []
        for item in map(_mapping, _list(diagnosis.get("evidence"))):
            says = _text(item.get("says")) or ""
            told = f"{(_text(item.get('id')) or '').replace('-', ' ')} {says}".lower()
            weight = min(max(_number(item.get("weight")) or 0.0, 0.1), MOST_WEIGHT)
            self.evidence.append((told, frozenset(map(str, _mapping(item.get("values")))), weight, says))
        self.actions = [_mapping(item) for item in _list(diagnosis.get("actions"))]

    def of_figure(self, name: str) -> tuple[float, list[str]]:
        """How strongly evidence and the arithmetic of actions speak of a figure."""
        words = re.compile(FIGURES[name].words)
        reasons = [(weight, f"evidence: {says}") for told, _, weight, says in self.evidence if words.search(told)]
        for action in self.actions:
            why = _text(action.get("why")) or ""
            if words.search(why.lower()):
                reasons.append((1.5, f"the advice counts with it: {why}"))
                break
        return _strongest(reasons)

    def of_flag(self, name: str, before: Any, after: Any) -> tuple[float, list[str], float | None]:
        """The same for a flag; at last whether the change went against the advice (1), with it (-1), or no one knows."""
        spelled = re.compile(rf"(?<![\w-]){re.escape(name).replace('_', '[-_]')}(?![\w-])")
        reasons = [
            (weight, f"evidence: {says}")
            for told, values, weight, says in self.evidence
            if spelled.search(told) or name in values
        ]
        against: float | None = None
        for place, action in enumerate(self.actions):
            changes = _mapping(action.get("changes"))
            if name not in changes:
                continue
            reasons.append((max(STATED - 0.3 * place, 1.0), f"advised: {_text(action.get('do')) or ''}"))
            against = _against(before, after, changes[name]) if against is None else against
        return (*_strongest(reasons), against)


def _strongest(reasons: Sequence[tuple[float, str]]) -> tuple[float, list[str]]:
    ordered = sorted(reasons, key=lambda item: -item[0])
    return (ordered[0][0], [text for _, text in ordered[:3]]) if ordered else (0.0, [])


def _against(before: Any, after: Any, advised: Any) -> float | None:
    """1 where the new value is further from the advised one than the old, -1 where it is nearer."""
    was, now, goal = _number(before), _number(after), _number(advised)
    if was is None or now is None or goal is None:
        return -1.0 if _alike(after, advised) else 1.0 if _alike(before, advised) else None
    return 0.0 if abs(now - goal) == abs(was - goal) else math.copysign(1.0, abs(now - goal) - abs(was - goal))


def _ranked(pairs: Iterable[_Pair], bearing: _Bearing) -> tuple[Change, ...]:
    pairs = list(pairs)
    figures: dict[str, tuple[float, list[str]]] = {}
    changes = []
    for area, name, before, after, stated in pairs:
        if name in FIGURES:
            strength, because = bearing.of_figure(name)
            strength *= _size(before, after) * _way(FIGURES[name].worse, before, after, bearing.sign)
            strength *= 1.0 if FIGURES[name].set_by_people else CONSEQUENCE
            figures[name] = strength, because
            changes.append(_change(area, name, before, after, stated, FIGURES[name].set_by_people, strength, because))
    for area, name, before, after, stated in pairs:
        if name in FIGURES:
            continue
        # "version" and "model" are common words: their bearing comes from what they change by themselves
        strength, because, against = (0.0, [], None) if area != "flag" else bearing.of_flag(name, before, after)
        worse, moves = FLAGS.get(name, (0, MOVES.get(name, ())))
        if against is not None:
            strength *= 1.0 if against == bearing.sign else WRONG_WAY
        else:
            strength *= _way(worse, before, after, bearing.sign)
        if stated[0] != stated[1]:
            strength *= 0.5  # the silent side may have had the same value
        for figure in moves:
            passed_on, told = figures.get(figure, (0.0, []))
            passed_on *= INHERITED / CONSEQUENCE * _way(worse, before, after, bearing.sign)
            if against is None and passed_on > strength:
                strength = passed_on
                because = [f"it moves {figure}", *told[:1]]
        if bearing.evidence and strength < ALWAYS.get(name, 0.0):
            strength, because = (
                ALWAYS[name],
                [f"a new {'release' if name == 'version' else name} changes {_by_itself(name)} by itself"],
            )
        changes.append(_change(area, name, before, after, stated, True, strength, because))
    order = ("version", "model", "flag", "device", "traffic", "ledger")
    return tuple(
        sorted(changes, key=lambda item: (-item.relevance, name_known(item), order.index(item.area), item.name))
    )


def name_known(change: Change) -> int:
    """0 for what decides about memory, 1 for the other flags: they come last among equals."""
    return 0 if change.area != "flag" or change.name in FLAGS else 1


def _by_itself(name: str) -> str:
    return "defaults and reservations" if name == "version" else "weights and KV cache"


def _change(
    area: str,
    name: str,
    before: Any,
    after: Any,
    stated: tuple[bool, bool],
    by_people: bool,
    strength: float,
    because: list[str],
) -> Change:
    was, now = _number(before), _number(after)
    factor = round(now / was, 4) if was and now is not None and was > 0 and now >= 0 else None
    relevance = round(strength, 3)
    return Change(
        area, name, before, after, stated, factor, by_people, relevance, tuple(because) if relevance >= 0.05 else ()
    )


def _size(before: float, after: float) -> float:
    """How large a change is, 0..1: 1 from twice or half on."""
    if before <= 0 or after <= 0:
        return 1.0
    return min(1.0, abs(math.log(after / before)) / math.log(2))


def _way(worse: int, before: Any, after: Any, sign: int) -> float:
    """1 where the change goes the way that explains it (or nobody knows which that is), else a tenth."""
    was, now = _number(before), _number(after)
    if not worse or was is None or now is None:
        return 1.0
    return 1.0 if (now - was) * worse * sign > 0 else WRONG_WAY


# ---- values of a JSON object that anybody may have written


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else ()


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -1e300 < value < 1e300:
        return None
    return float(value)
