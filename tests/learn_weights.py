"""`make weights`: fits the weights of all signs at once to the recorded first runs, and writes `src/oomdoc/judge/fitted.json`.

A multinomial regression on the answers: a cause's log-odds are those of how common it is and the weights of its answers, of a `group` only of the
one that counts most, and its probability is its share among all causes and "none of these". Weights are pulled towards the counted ones
(`PULL`), and a sign that speaks for a cause never comes to speak against it. Words are left out: those of the rounds are of the same writers.

With `--later ROUND,...` nothing is written: the fit is made without these rounds, and what it and the counted weights are worth on them,
with the words that were heard when they were run, is printed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

from learn_wording import tell
from oomdoc.judge.fitted import Fitted
from oomdoc.judge.rules import Rule, load_rules
from oomdoc.judge.weigh import ELSEWHERE, log_odds, weight_of
from oomdoc.sweep import counting

ROOT = Path(__file__).parents[1]
ROUNDS = ROOT / "tests" / "rounds"
PLACE = ROOT / "src" / "oomdoc" / "judge" / "fitted.json"

PULL = 2.0
"""The penalty of a squared log-odds that a weight is away from the counted one; a quarter ranks later rounds 0.01 better and cases of other writers 0.01 worse, five times 0.01 the other way round."""
FEWEST = 5
"""First runs that must have given an answer."""


def learn(cases: Sequence[counting.Case], rules: Sequence[Rule]) -> Fitted:
    """The weights that tell best what these bundles had."""
    places = [
        (at, item.id, holds) for at, rule in enumerate(rules) for item in rule.evidence for holds in (True, False)
    ]
    column = {place: number for number, place in enumerate(places)}
    told = np.zeros((len(cases), len(places)))
    for row, case in enumerate(cases):
        for at, rule in enumerate(rules):
            finding = counting.weighed(case, rule)
            for name, weight in finding.weights.items():
                if weight:
                    told[row, column[at, name, bool(finding.answers[name].holds)]] = 1
    items = {(at, item.id): item for at, rule in enumerate(rules) for item in rule.evidence}
    counted = np.array([weight_of(items[at, name], holds) for at, name, holds in places])
    of_cause = np.zeros((len(places), len(rules)))
    of_cause[np.arange(len(places)), [at for at, _, _ in places]] = 1
    priors = np.array([log_odds(rule.prior) for rule in rules])
    used = told.sum(0) >= FEWEST
    rest = told[:, ~used] @ (of_cause[~used] * counted[~used, None]) + priors
    ids = [rule.id for rule in rules]
    truth = np.eye(len(rules))[[ids.index(case.cause) for case in cases]]
    some, cause_of = told[:, used], of_cause[used]

    def loss(weights: Any) -> tuple[float, Any]:
        scores = rest + some @ (cause_of * weights[:, None])
        scores = np.hstack([scores, np.full((len(cases), 1), ELSEWHERE)])
        shares = np.exp(scores - scores.max(1, keepdims=True))
        shares = (shares / shares.sum(1, keepdims=True))[:, : len(rules)]
        away = weights - counted[used]
        surprise = -np.log(np.maximum((shares * truth).sum(1), 1e-12)).sum()
        slope = ((some.T @ (shares - truth)) * cause_of).sum(1)
        return surprise + PULL / 2 * (away @ away), slope + PULL * away

    sides = [(0.0, None) if weight > 0 else (None, 0.0) for weight in counted[used]]
    found = minimize(loss, counted[used], jac=True, method="L-BFGS-B", bounds=sides, options={"maxiter": 500}).x
    weights: dict[str, dict[str, tuple[float | None, float | None]]] = {}
    for (at, name, holds), weight in zip(np.array(places, object)[used], found, strict=True):
        pair = weights.setdefault(ids[at], {}).get(name, (None, None))
        each = round(float(weight), 3) + 0.0
        weights[ids[at]][name] = (each, pair[1]) if holds else (pair[0], each)
    return Fitted(len(cases), weights)


def write(fitted: Fitted, path: Path) -> None:
    """One sign a line, so that a change can be read."""
    lines = [f' "bundles": {fitted.bundles}']
    causes = []
    for cause, signs in sorted(fitted.weights.items()):
        told = ",\n".join(f"   {json.dumps(sign)}: {json.dumps(pair)}" for sign, pair in sorted(signs.items()))
        causes.append(f"  {json.dumps(cause)}: {{\n{told}}}")
    lines.append(' "weights": {\n' + ",\n".join(causes) + "}")
    path.write_text("{\n" + ",\n".join(lines) + "}\n", encoding="utf-8")


def later(cases: Sequence[counting.Case], rules: Sequence[Rule], rounds: frozenset[str]) -> None:
    """Print what the counted and the fitted weights are worth on rounds that the fit has not seen."""
    fitted = learn([case for case in cases if case.round not in rounds], rules)
    unseen = [case for case in cases if case.round in rounds]
    for words in (True, False):
        these = unseen if words else [replace(case, wording={}) for case in unseen]
        for title, weights in (("counted", None), ("fitted", fitted)):
            ranked = [counting.ranking(case, rules, weights) for case in these]
            tell(f"{title}, {'with' if words else 'without'} words", these, rules, ranked, weights)


def main() -> None:
    """Fit and write, or print what it is worth."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--later", help="rounds to be left out, with commas between: print figures instead of writing")
    asked = parser.parse_args()
    rules = load_rules()[0]
    cases = counting.recorded([ROUNDS], rules)
    if asked.later:
        later(cases, rules, frozenset(asked.later.split(",")))
    else:
        write(learn([replace(case, wording={}) for case in cases], rules), PLACE)


if __name__ == "__main__":
    main()
