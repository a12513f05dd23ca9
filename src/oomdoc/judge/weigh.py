"""Rule + answers -> diagnosis. Pure arithmetic: it is handed `ask(sql)`, it opens nothing.

Start at ln(prior / (1 - prior)). Add ln(p_cause / p_other) where an item holds, ln((1 - p_cause) / (1 - p_other)) where it does
not, 0 where it is unknown; of a `group` only the item with the largest weight counts. Add what the words of the bundle say (`wording`). Back to a probability at the end: by
its own evidence, and by its share among the rivals, since a cause that is left over when the others are ruled out is the
more likely for it: that is weaker proof, and counts for a little less. The larger of the two counts, so two causes can be true. With weights
that were fitted all at once (`fitted`) the share itself is the probability. docs/method.md redoes one by hand.
"""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from oomdoc.judge.fitted import SHARPNESS as FITTED_SHARPNESS
from oomdoc.judge.fitted import Fitted
from oomdoc.judge.rules import ActionRule, EvidenceRule, Rule
from oomdoc.judge.wording import ID as WORDING
from oomdoc.judge.wording import Wording
from oomdoc.model import FINEST, Action, Diagnosis, Evidence
from oomdoc.regexes import regex
from oomdoc.units import show_bytes, show_seconds

Ask = Callable[[str], Mapping[str, Any] | None]

SHARPNESS = 0.5  # of the share among rivals: log-odds are divided by it; the error of first runs stays below 0.08 with it (docs/method.md)
LEFT_OVER = 0.89  # of a share: that rivals are ruled out is weaker proof than signs of one's own, and by itself never a sure verdict: of 236 first runs told so 0.84 were right (docs/method.md)
ELSEWHERE = -2.0  # log-odds of "none of these": a leader far below it leaves the diagnosis undecided
ACTION_FROM = 0.05  # advice is computed for causes at or above this probability


@dataclass(frozen=True)
class Answer:
    """What a query said: TRUE, FALSE or None (the bundle cannot tell), and its other columns."""

    holds: bool | None
    values: Mapping[str, Any]


_WIDE = regex(r"\d{3}|[{}]")


class Sentence(string.Formatter):
    """Templates of rule files: `{share:.0%}`, `{free_bytes:bytes}`, `{age:seconds}`; an unknown value reads `unknown`."""

    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """A column of the query; what is absent is unknown."""
        return kwargs.get(str(key))

    def format_field(self, value: Any, format_spec: str) -> str:
        """Format a number by the specification, never failing on what the data hold."""
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            return "unknown"
        if format_spec == "bytes":
            return _guarded(show_bytes, value)
        if format_spec == "seconds":
            return _guarded(show_seconds, value)
        if isinstance(value, float) and not format_spec:
            format_spec = ".6g"  # 0.9299999999999999 is 0.93
        if _WIDE.search(format_spec):  # `{n:1000000000}` is a gigabyte of blanks
            return str(value)
        try:
            return format(value, format_spec)
        except (ValueError, TypeError, OverflowError):
            return str(value)


def _guarded(show: Callable[[float], str], value: Any) -> str:
    """A number in its unit; what is no number, or too large for one, as it is."""
    try:
        return show(value) if isinstance(value, (int, float)) else str(value)
    except OverflowError:
        return str(value)


_SENTENCE = Sentence()


def say(template: str, values: Mapping[str, Any]) -> str:
    """Fill a template of a rule file.

    >>> say("{free:bytes} free of {total:bytes}, {n} requests", {"free": 1 << 30, "n": 3})
    '1.00 GiB free of unknown, 3 requests'
    """
    return _SENTENCE.vformat(template, (), values)


def answer(ask: Ask, sql: str) -> Answer:
    """Ask one query; no row and NULL both mean that the bundle cannot tell."""
    row = ask(sql)
    if row is None:
        return Answer(None, {})
    holds = row.get("holds")
    return Answer(
        None if holds is None else bool(holds), {name: value for name, value in row.items() if name != "holds"}
    )


def weight_of(item: EvidenceRule, holds: bool | None) -> float:
    """What an item adds to the log-odds."""
    if holds is None:
        return 0.0
    if holds:
        return math.log(item.p_cause / item.p_other)
    return math.log((1 - item.p_cause) / (1 - item.p_other))


def log_odds(p: float) -> float:
    """ln(p / (1 - p))."""
    return math.log(p / (1 - p))


def probability(odds: float) -> float:
    """The probability of log-odds, held between 1 - FINEST and FINEST... computed without overflow."""
    p = 1 / (1 + math.exp(-max(-40.0, min(40.0, odds))))
    return min(FINEST, p)


def stated(odds: float, share: float, fitted: bool = False) -> float:
    """The probability that a report states: by a cause's own evidence or by its share among the rivals, whichever is larger; of fitted weights the share.

    >>> stated(6.0, 0.5), stated(0.0, 1.0), stated(6.0, 0.5, fitted=True)
    (0.99, 0.89, 0.5)
    """
    return min(FINEST, share) if fitted else max(probability(odds), LEFT_OVER * share)


def sharpness_of(fitted: bool) -> float:
    """What log-odds are divided by for shares: fitted weights do not say things twice."""
    return FITTED_SHARPNESS if fitted else SHARPNESS


def shares(odds: Sequence[float], unseen: Sequence[float | None] = (), sharpness: float = SHARPNESS) -> list[float]:
    """What share each of several rivals has if one of them, or something else, is the main cause (softmax).

    `unseen` are the log-odds of that something else for each of them, `ELSEWHERE` where nothing is said.

    >>> [round(share, 2) for share in shares([1.0, -1.0])]
    [0.98, 0.02]
    """
    nothing = [ELSEWHERE if value is None else value for value in unseen] or [ELSEWHERE] * len(odds)
    top = max([*odds, *nothing])
    parts = [math.exp((value - top) / sharpness) for value in odds]
    whole = sum(parts)
    return [part / (whole + math.exp((other - top) / sharpness)) for part, other in zip(parts, nothing, strict=True)]


@dataclass(frozen=True)
class Finding:
    """One cause weighed: its log-odds and the answers behind them, and what the bundle's words add; None: nobody heard them."""

    rule: Rule
    odds: float
    answers: Mapping[str, Answer]
    weights: Mapping[str, float]
    wording: Wording | None = None
    fitted: bool = False
    """Whether the weights were fitted all at once; else the counted ones stand."""


def weigh(rule: Rule, ask: Ask, wording: Wording | None = None, fitted: Fitted | None = None) -> Finding:
    """Weigh one rule against a bundle."""
    return tally(rule, {item.id: answer(ask, item.sql) for item in rule.evidence}, wording, fitted)


def tally(
    rule: Rule, answers: Mapping[str, Answer], wording: Wording | None = None, fitted: Fitted | None = None
) -> Finding:
    """Weigh the answers to a rule's evidence, by the counted weights or by `fitted` ones, and what the words of the bundle say of its cause."""
    weights = {item.id: weight_of(item, answers[item.id].holds) for item in rule.evidence}
    strongest: dict[str, str] = {}
    for item in rule.evidence:
        if item.group is None:
            continue
        held = strongest.get(item.group)
        if held is None or abs(weights[item.id]) > abs(weights[held]):
            strongest[item.group] = item.id
    for item in rule.evidence:
        if item.group is not None and strongest[item.group] != item.id:
            weights[item.id] = 0.0
    if fitted:
        weights = {
            name: fitted.weight(rule.id, name, bool(answers[name].holds), weight) if weight else 0.0
            for name, weight in weights.items()
        }
    odds = log_odds(rule.prior) + sum(weights.values()) + (wording.weight if wording else 0.0)
    return Finding(rule, odds, answers, weights, wording, fitted is not None)


def rank(findings: Iterable[Finding], ask: Ask) -> tuple[Diagnosis, ...]:
    """Findings of all causes as a ranked diagnosis, most probable first, then by odds; ties by id so that the same bundle gives
    the same bytes."""
    found = tuple(findings)
    together = any(finding.fitted for finding in found)
    among = shares(
        [finding.odds for finding in found], [finding.rule.unseen for finding in found], sharpness_of(together)
    )
    told = [(diagnose(finding, ask, share), finding.odds) for finding, share in zip(found, among, strict=True)]
    told.sort(key=lambda item: (-item[0].probability, -item[1], item[0].cause))
    return tuple(replace(diagnosis, rank=place) for place, (diagnosis, _) in enumerate(told, 1))


def diagnose(finding: Finding, ask: Ask, share: float = 0.0) -> Diagnosis:
    """One cause told: `share` is its share among rivals, where it has any."""
    rule = finding.rule
    support, against, unknown = [], [], []
    for item in rule.evidence:
        told = finding.answers[item.id]
        if told.holds is None:
            unknown.append(item.id)
            continue
        weight = finding.weights[item.id]
        words = say(item.says, told.values) if told.holds else _denied(item, told)
        piece = Evidence(item.id, words, round(weight, 4), _refs(told.values), _numbers(told.values))
        if weight > 0 or (weight == 0 and told.holds and item.p_cause > item.p_other):
            support.append(piece)
        elif weight < 0:
            against.append(piece)
    if finding.wording is not None and finding.wording.words:
        (support if finding.wording.weight > 0 else against).append(_heard(finding.wording))
    own = probability(finding.odds)
    p = stated(finding.odds, share, finding.fitted)
    reason = None
    actions: list[Action] = []
    if p >= ACTION_FROM:
        for candidate in rule.reasons:
            if answer(ask, candidate.sql).holds:
                reason = candidate.id
                break
        actions = [made for made in (_action(item, ask) for item in rule.actions) if made is not None]
    support.sort(key=lambda piece: (-piece.weight, piece.id))
    against.sort(key=lambda piece: (piece.weight, piece.id))
    return Diagnosis(
        rank=0, cause=rule.id, category=rule.category, reason=reason, probability=round(p, 4), own_probability=round(own, 4), prior=rule.prior, title=rule.title, summary=rule.summary,
        evidence=tuple(support), against=tuple(against), unknown=tuple(unknown), actions=tuple(actions), references=rule.references,
    )  # fmt: skip


def _heard(wording: Wording) -> Evidence:
    """What the words of the bundle say, as one observation: no line proves it, it is the whole that reads so."""
    words = ", ".join(f"`{word}`" for word in wording.words)
    often = "more often" if wording.weight > 0 else "less often"
    return Evidence(
        WORDING,
        f"bundles that speak as this one does ({words}) have this cause {often} than others",
        round(wording.weight, 4),
    )


def _denied(item: EvidenceRule, told: Answer) -> str:
    if item.unless:
        return say(item.unless, told.values)
    return "not so: " + say(item.says, told.values)


def _action(item: ActionRule, ask: Ask) -> Action | None:
    told = answer(ask, item.sql)
    if not told.holds:
        return None
    changes = {
        flag: _plain(told.values.get(value, value) if isinstance(value, str) else value)
        for flag, value in item.changes.items()
    }
    if any(value is None for value in changes.values()):
        return None  # advice without its number is no advice
    was = {
        flag: _plain(told.values["now"])
        for flag in item.changes
        if told.values.get("now") is not None and len(item.changes) == 1
    }
    values = told.values
    return Action(
        item.id,
        say(item.do, values),
        say(item.why, values),
        say(item.cost, values),
        changes,
        say(item.verify, values),
        was,
        when=item.when,
        values=_numbers(values),
    )


def _plain(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value


def _refs(values: Mapping[str, Any]) -> tuple[str, ...]:
    refs = []
    for name, value in values.items():
        if (name == "ref" or name.endswith("_ref")) and isinstance(value, str):
            refs.append(value)
        elif name == "refs" and isinstance(value, list):
            refs.extend(str(entry) for entry in value)
    return tuple(dict.fromkeys(refs))


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    return {
        name: value
        for name, value in values.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    }
