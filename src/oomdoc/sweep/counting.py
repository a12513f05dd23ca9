"""Counts what rules claim: labelled bundles are analysed, and the answers to every piece of evidence are counted.

A labelled bundle is a folder with a `case.toml` (`cause`, perhaps `also`: causes that a fair person could put first as well)
and evidence; the label and `truth.*` files are not handed over. What a rule says of its evidence was judged by people first;
the judgement stays in the file (`judged`) and counts as much as `STRENGTH` bundles, so that a few cases cannot make a
certainty. Every figure about the result is made leaving out the bundle that is judged, or the whole round that it came in.

Evidence that was written by people who had read a bundle proves nothing on it. So the answers of a first run are kept
(`first_run.jsonl` in the folder of a round: a line for each bundle, the evidence that held and that did not, by cause, and what its
words added), and can be counted later, whatever has been built for those bundles since.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import shutil
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from oomdoc import diagnose
from oomdoc.errors import BundleError, UsageError
from oomdoc.judge.fitted import Fitted
from oomdoc.judge.rules import EvidenceRule, Rule
from oomdoc.judge.weigh import SHARPNESS, Answer, Finding, shares, sharpness_of, stated, tally
from oomdoc.judge.wording import Wording

STRENGTH = 60.0  # bundles that a judgement is worth: from 20 to 60 first runs, left out by rounds, are ranked alike, with more a little worse (docs/method.md)
RECORD = "first_run.jsonl"
"""What a round's first run answered, in the folder of the round."""
_FINEST = 3  # digits behind the point of what is written
_LEAST = 0.002  # a share that nothing counted proves
_BINS = 10

Counts = Mapping[tuple[str, str], tuple[int, int, int, int]]


@dataclass(frozen=True)
class Case:
    """A labelled bundle and what every rule's evidence answered: TRUE, FALSE, None by cause and evidence id.

    `round` is what it was drawn with, which is left out with it; empty where nobody says: then it alone is left out.
    `wording` is what its words add to the log-odds of each cause (`judge.wording`); empty where nobody heard them.
    """

    name: str
    cause: str
    also: tuple[str, ...]
    answers: Mapping[str, Mapping[str, bool | None]]
    round: str = ""
    wording: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Figures:
    """How good a ranking is over labelled bundles; all shares 0..1.

    `fair`: the first place is the label or one of its `also`; `strict`: the label; `top3`: fair within three places;
    `brier`, `ece`: of the first place's probability against being fair; `bins`: lowest probability, bundles, mean
    probability, share that was fair; `confused`: label, first place, bundles, where it was not fair.
    """

    bundles: int
    fair: float
    strict: float
    top3: float
    category: float
    brier: float
    ece: float
    bins: tuple[tuple[float, int, float, float], ...]
    confused: tuple[tuple[str, str, int], ...]


def find_cases(folders: Iterable[Path]) -> list[Path]:
    """Every folder below those given that holds a `case.toml`, in order of name; UsageError where there is none."""
    found = sorted({label.parent for folder in folders for label in folder.glob("**/case.toml")})
    if not found:
        raise UsageError("no case.toml lies below these folders", "Name a folder of labelled bundles")
    return found


def read_case(folder: Path, rules: Sequence[Rule], extra: Path | None = None) -> Case:
    """Analyse one labelled bundle, with the rules of the folder `extra` on top; UsageError for a label that is none."""
    cause, also = _label(folder, rules)
    with tempfile.TemporaryDirectory(prefix="oomdoc-") as scratch:
        evidence = Path(scratch) / "bundle"
        shutil.copytree(folder, evidence, ignore=shutil.ignore_patterns("case.toml", "truth.*"))
        try:
            with diagnose.analyze(evidence, diagnose.Options(rules=extra)) as analysis:
                answers, wording = analysis.answers, analysis.wording
        except BundleError:
            answers, wording = {rule.id: {} for rule in rules}, {}
    return Case(folder.name, cause, also, answers, wording=wording)


def _label(folder: Path, rules: Sequence[Rule]) -> tuple[str, tuple[str, ...]]:
    """The cause of a labelled bundle, and those that a fair person could name as well."""
    path = folder / "case.toml"
    try:
        label = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise UsageError(f"{path} cannot be read ({problem})", 'Write cause = "..." into it') from None
    if label.get("cause") not in {rule.id for rule in rules}:
        raise UsageError(
            f"{path}: cause {label.get('cause')!r} is not in the rule set", "`oomdoc rules list` shows them"
        )
    return label["cause"], tuple(label.get("also", ()))


def recorded(folders: Iterable[Path], rules: Sequence[Rule]) -> list[Case]:
    """What first runs answered, of every round below the folders that has a record; UsageError where there is none.

    Labels are those of today. Evidence that no rule has any more is passed over; what was written since answered nothing.
    """
    records = sorted({record for folder in folders for record in folder.glob(f"**/{RECORD}")})
    if not records:
        raise UsageError(f"no {RECORD} lies below these folders", "`--record` writes one, on the first run of a round")
    cases = []
    for record in records:
        try:
            lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
            told = [(line["case"], _answers(line), dict(line.get("wording", {}))) for line in lines]
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as problem:
            raise UsageError(f"{record} cannot be read ({problem})", "Restore it: it cannot be made again") from None
        for name, answers, wording in told:
            cases.append(Case(name, *_label(record.parent / name, rules), answers, record.parent.name, wording))
    return cases


def _answers(line: Mapping[str, Mapping[str, Sequence[str]]]) -> dict[str, dict[str, bool | None]]:
    answers: dict[str, dict[str, bool | None]] = {}
    for key, holds in (("holds", True), ("not", False)):
        for cause, items in line[key].items():
            answers.setdefault(cause, {}).update(dict.fromkeys(items, holds))
    return answers


def record(folders: Sequence[Path], rules: Sequence[Rule], extra: Path | None, progress: Callable[[str], None]) -> None:
    """Analyse the bundles of each round, a folder of labelled bundles, and keep what was answered; UsageError where that is kept already."""
    for folder in folders:
        if (folder / RECORD).exists():
            raise UsageError(
                f"{folder / RECORD} is there already", "A round has one first run: what came later proves nothing"
            )
    for folder in folders:
        lines = []
        for bundle in find_cases([folder]):
            progress(bundle.name)
            lines.append(_line(read_case(bundle, rules, extra)))
        (folder / RECORD).write_text("".join(lines), encoding="utf-8")


def _line(case: Case) -> str:
    told = {
        key: {
            cause: sorted(item for item, holds in answers.items() if holds is wanted)
            for cause, answers in sorted(case.answers.items())
            if wanted in answers.values()
        }
        for key, wanted in (("holds", True), ("not", False))
    }
    wording = (
        {"wording": {cause: round(odds, 3) for cause, odds in sorted(case.wording.items())}} if case.wording else {}
    )
    return json.dumps({"case": case.name, **told, **wording}, separators=(",", ":")) + "\n"


def count(cases: Sequence[Case], rules: Sequence[Rule]) -> Counts:
    """By cause and evidence: held and answered with the cause, held and answered without it.

    Bundles for which the cause is one that a fair person could name as well count on neither side.
    """
    found = {}
    for rule in rules:
        having = [case.answers.get(rule.id, {}) for case in cases if case.cause == rule.id]
        lacking = [
            case.answers.get(rule.id, {}) for case in cases if case.cause != rule.id and rule.id not in case.also
        ]
        for item in rule.evidence:
            sides = [
                [told for answers in side if (told := answers.get(item.id)) is not None] for side in (having, lacking)
            ]
            found[rule.id, item.id] = (sum(sides[0]), len(sides[0]), sum(sides[1]), len(sides[1]))
    return found


def estimated(rules: Sequence[Rule], cases: Sequence[Case]) -> list[Rule]:
    """The rules with what was counted: judgement and count weighed together.

    First runs say nothing new of how common a cause is: rounds are drawn to a mix. What stands in the rules stays.
    """
    counts = count(cases, rules)
    return [_estimated(rule, counts, cases) for rule in rules]


def _estimated(rule: Rule, counts: Counts, cases: Sequence[Case]) -> Rule:
    judged = rule.prior if rule.prior_judged is None else rule.prior_judged
    having = sum(case.cause == rule.id for case in cases)
    either = sum(rule.id in case.also and case.cause != rule.id for case in cases)
    of = (having, len(cases) - having - either)
    evidence = tuple(_item(item, counts[rule.id, item.id], of) for item in rule.evidence)
    if any(case.round for case in cases):
        return dataclasses.replace(rule, evidence=evidence)
    return dataclasses.replace(
        rule, prior=_share(judged, having, len(cases)), prior_judged=judged, prior_counted=(having, len(cases)), evidence=evidence
    )  # fmt: skip


def _item(item: EvidenceRule, counted: tuple[int, int, int, int], of: tuple[int, int]) -> EvidenceRule:
    """One piece of evidence with what was counted of it; `of`: bundles with the cause and without it, whatever they could answer."""
    if not any(counted) and item.judged is None:
        return item  # no bundle could answer it: what was judged stands
    judged = item.judged or (item.p_cause, item.p_other)
    p_cause, p_other = _share(judged[0], *counted[:2]), _share(judged[1], *counted[2:])
    if (p_cause > p_other) != (judged[0] > judged[1]):
        # a handful of bundles does not turn a meaning round, but what they contradict weighs no more than it did in all of them: evidence
        # that only ever holds, or is unknown, is answered by the few bundles that it misleads
        odds = math.log((counted[0] + 0.5) / (of[0] + 1)) - math.log((counted[2] + 0.5) / (of[1] + 1))
        limit = math.log(judged[0] / judged[1])
        odds = min(max(odds, 0.0), limit) if limit > 0 else max(min(odds, 0.0), limit)
        p_cause = min(p_cause, p_other)
        p_cause, p_other = (p_cause, p_cause / math.exp(odds)) if odds >= 0 else (p_cause * math.exp(odds), p_cause)
        p_cause, p_other = (round(max(p, _LEAST), _FINEST) for p in (p_cause, p_other))
    return dataclasses.replace(item, p_cause=p_cause, p_other=p_other, judged=judged, counted=counted)


def _share(judged: float, held: int, answered: int) -> float:
    share = (held + STRENGTH * judged) / (answered + STRENGTH)
    return round(min(max(share, _LEAST), 1 - _LEAST), _FINEST)


def ranking(case: Case, rules: Sequence[Rule], fitted: Fitted | None = None) -> list[tuple[float, str]]:
    """Log-odds and cause, best first, as `weigh.rank` has them; by the counted weights, or by `fitted` ones."""
    found = [(weighed(case, rule, fitted).odds, rule.id) for rule in rules]
    told = zip(chances(found, rules, fitted), found, strict=True)
    return [entry for _, entry in sorted(told, key=lambda item: (-round(item[0], 4), -item[1][0], item[1][1]))]


def weighed(case: Case, rule: Rule, fitted: Fitted | None = None) -> Finding:
    """One cause weighed by what a bundle answered."""
    told = case.answers.get(rule.id, {})
    heard = case.wording.get(rule.id)
    return tally(
        rule,
        {item.id: Answer(told.get(item.id), {}) for item in rule.evidence},
        None if heard is None else Wording(heard, ()),
        fitted,
    )


def chances(ranked: Sequence[tuple[float, str]], rules: Sequence[Rule], fitted: Fitted | None = None) -> list[float]:
    """Probabilities of a ranking as the report shows them."""
    by_share = fitted is not None
    among = _shares(ranked, rules, sharpness_of(by_share))
    return [stated(odds, share, by_share) for (odds, _), share in zip(ranked, among, strict=True)]


def _shares(ranked: Sequence[tuple[float, str]], rules: Sequence[Rule], sharpness: float = SHARPNESS) -> list[float]:
    unseen = {rule.id: rule.unseen for rule in rules}
    return shares([odds for odds, _ in ranked], [unseen[cause] for _, cause in ranked], sharpness)


def left_out(cases: Sequence[Case], rules: Sequence[Rule]) -> list[list[tuple[float, str]]]:
    """For every bundle its ranking by rules that were counted on all the others, those of its round left out with it."""
    made: dict[str, list[Rule]] = {}
    rankings = []
    for at, case in enumerate(cases):
        if not case.round:
            rules_of = estimated(rules, [*cases[:at], *cases[at + 1 :]])
        elif case.round in made:
            rules_of = made[case.round]
        else:
            rules_of = made[case.round] = estimated(rules, [other for other in cases if other.round != case.round])
        rankings.append(ranking(case, rules_of))
    return rankings


def figures(
    cases: Sequence[Case],
    rules: Sequence[Rule],
    rankings: Sequence[Sequence[tuple[float, str]]],
    fitted: Fitted | None = None,
) -> Figures:
    """What the rankings are worth."""
    category = {rule.id: rule.category for rule in rules}
    told: list[tuple[float, bool]] = []
    strict = top3 = same = 0
    confused: dict[tuple[str, str], int] = {}
    for case, ranked in zip(cases, rankings, strict=True):
        accepted, first = {case.cause, *case.also}, ranked[0][1]
        told.append((chances(ranked, rules, fitted)[0], first in accepted))
        strict += first == case.cause
        top3 += any(cause in accepted for _, cause in ranked[:3])
        same += category[first] == category[case.cause]
        if first not in accepted:
            confused[case.cause, first] = confused.get((case.cause, first), 0) + 1
    bins = []
    for place in range(_BINS):
        inside = [entry for entry in told if min(int(entry[0] * _BINS), _BINS - 1) == place]
        if inside:
            n = len(inside)
            bins.append((place / _BINS, n, sum(p for p, _ in inside) / n, sum(fair for _, fair in inside) / n))
    n = len(cases)
    return Figures(
        n, sum(fair for _, fair in told) / n, strict / n, top3 / n, same / n, sum((p - fair) ** 2 for p, fair in told) / n,
        sum(size * abs(mean - share) for _, size, mean, share in bins) / n, tuple(bins),
        tuple((*pair, times) for pair, times in sorted(confused.items())),
    )  # fmt: skip


def best_sharpness(
    cases: Sequence[Case], rules: Sequence[Rule], rankings: Sequence[Sequence[tuple[float, str]]]
) -> float:
    """The sharpness under which the labels are likeliest, of 0.3, 0.35 ... 1.5: what `weigh.SHARPNESS` should be."""

    def surprise(sharpness: float) -> float:
        total = 0.0
        for case, ranked in zip(cases, rankings, strict=True):
            among = _shares(ranked, rules, sharpness)
            total -= math.log(
                max(1e-9, next(share for share, (_, cause) in zip(among, ranked, strict=True) if cause == case.cause))
            )
        return total

    return min((step / 20 for step in range(6, 31)), key=surprise)


def write(rule: Rule) -> None:
    """Write the numbers of a counted rule into its file; everything else stays as it is."""
    text = rule.path.read_text(encoding="utf-8")
    top, mark, rest = text.partition("[[evidence]]")
    if rule.prior_counted is not None and rule.prior_judged is not None:
        top = _set(top, "prior", f"{rule.prior:g}")
        top = _after(top, "prior", "prior_judged", f"{rule.prior_judged:g}")
        top = _after(top, "prior_judged", "prior_counted", _list(rule.prior_counted))
    parts = re.split(r"(?m)^(?=\[\[)", mark + rest)
    for item in rule.evidence:
        if item.counted is None:
            continue
        at = next(
            i for i, part in enumerate(parts) if re.match(rf'\[\[evidence\]\]\s+id\s*= "{re.escape(item.id)}"', part)
        )
        part = _set(parts[at], "p_cause", f"{item.p_cause:g}")
        part = _set(part, "p_other", f"{item.p_other:g}")
        part = _after(part, "p_other", "judged", _list(item.judged or ()))
        parts[at] = _after(part, "judged", "counted", _list(item.counted or ()))
    made = rule.path.with_name(f".{rule.path.name}.writing")  # a full disk costs nobody the rule that was there
    try:
        made.write_text(top + "".join(parts), encoding="utf-8")
        made.replace(rule.path)
    finally:
        made.unlink(missing_ok=True)


def _list(values: Sequence[float]) -> str:
    return "[" + ", ".join(f"{value:g}" for value in values) + "]"


def _set(text: str, key: str, value: str) -> str:
    """Set a key; the reason that stands behind its value stays."""
    return re.sub(rf"(?m)^({key}\s*= )(?:\[[^\]\n]*\]|[^#\n]*?)(\s*#.*)?$", rf"\g<1>{value}\g<2>", text, count=1)


def _after(text: str, before: str, key: str, value: str) -> str:
    """Set a key, or add it behind another, flush with it."""
    if re.search(rf"(?m)^{key}\s*= ", text):
        return _set(text, key, value)
    found = re.search(rf"(?m)^{before}(\s*)= .*$", text)
    if found is None:
        return text
    width = max(len(before) + len(found[1]), len(key) + 1)
    return f"{text[: found.end()]}\n{key:<{width}}= {value}{text[found.end() :]}"


def run(
    folders: Sequence[Path],
    rules: Sequence[Rule],
    extra: Path | None,
    progress: Callable[[str], None],
    first_runs: bool = False,
) -> tuple[list[Case], list[Rule]]:
    """Read all cases, and the rules counted on them. `rules` are the shipped ones and those of `extra`.

    `first_runs`: nothing is analysed, the answers that first runs gave are read.
    """
    if first_runs:
        cases = recorded(folders, rules)
        return cases, estimated(rules, cases)
    cases = []
    for folder in find_cases(folders):
        progress(folder.name)
        cases.append(read_case(folder, rules, extra))
    return cases, estimated(rules, cases)
