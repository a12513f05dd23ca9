"""Weights that were fitted all at once: where they are used, that none changes sides, and that their arithmetic is the one shown."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from oomdoc import diagnose
from oomdoc.judge.fitted import SHARPNESS, Fitted, shipped
from oomdoc.judge.rules import load_rules
from oomdoc.judge.weigh import Answer, log_odds, rank, tally, weight_of
from oomdoc.model import FINEST

RULES = {rule.id: rule for rule in load_rules()[0]}
DEMO = Path(__file__).parents[1] / "sample_logs" / "kv-demand-long-chats"


def test_every_fitted_weight_is_of_a_sign_and_on_its_side() -> None:
    fitted = shipped()
    assert fitted.weights.keys() == RULES.keys() and fitted.bundles > 2_000
    for cause, signs in fitted.weights.items():
        items = {item.id: item for item in RULES[cause].evidence}
        assert signs.keys() <= items.keys(), cause
        for sign, pair in signs.items():
            for holds, weight in zip((True, False), pair, strict=True):
                if weight is not None:
                    assert weight * weight_of(items[sign], holds) >= 0, (cause, sign, holds)


def test_of_a_group_the_one_that_counts_most_has_its_fitted_weight() -> None:
    rule = RULES["kv-demand-exceeds-pool"]
    pinned, queued = (next(item for item in rule.evidence if item.id == name) for name in ("pool-pinned", "queue-at-full-pool"))  # fmt: skip
    assert pinned.group == queued.group
    answers = {item.id: Answer(None, {}) for item in rule.evidence}
    answers |= {"pool-pinned": Answer(True, {}), "queue-at-full-pool": Answer(True, {})}
    fitted = Fitted(1, {rule.id: {"pool-pinned": (0.75, None)}})
    found = tally(rule, answers, None, fitted)
    assert (found.fitted, found.weights["pool-pinned"], found.weights["queue-at-full-pool"]) == (True, 0.75, 0.0)
    assert found.odds == pytest.approx(log_odds(rule.prior) + 0.75)
    # what was not fitted keeps what was counted
    unfitted = tally(rule, answers, None, Fitted(1, {}))
    assert unfitted.odds == tally(rule, answers).odds == pytest.approx(log_odds(rule.prior) + weight_of(pinned, True))


def test_a_share_among_rivals_is_the_probability() -> None:
    one, two = RULES["healthy"], RULES["not-memory"]
    silent = {rule.id: {item.id: Answer(None, {}) for item in rule.evidence} for rule in (one, two)}
    ranked = rank([tally(rule, silent[rule.id], None, Fitted(1, {})) for rule in (one, two)], lambda sql: None)
    parts = {rule.id: math.exp(log_odds(rule.prior) / SHARPNESS) for rule in (one, two)}
    whole = sum(parts.values()) + math.exp(-1 / SHARPNESS)  # and "none of these", which weighs -1 beside these two
    assert {each.cause: each.probability for each in ranked} == {
        cause: round(part / whole, 4) for cause, part in parts.items()
    }
    assert {each.cause: each.own_probability for each in ranked} == {rule.id: rule.prior for rule in (one, two)}


@pytest.mark.parametrize("learnt", [True, False])
def test_the_arithmetic_that_is_shown_is_the_one_that_is_done(learnt: bool) -> None:
    with diagnose.analyze(DEMO, diagnose.Options(wording=learnt)) as analysis:
        first = analysis.report.diagnoses[0]
        total = log_odds(first.prior) + sum(item.weight for item in (*first.evidence, *first.against))
    assert first.own_probability == pytest.approx(min(FINEST, 1 / (1 + math.exp(-total))), abs=2e-3)
    assert first.prior == RULES[first.cause].prior
    counted = {item.id: weight_of(item, True) for item in RULES[first.cause].evidence}
    weights = {item.id: item.weight for item in first.evidence if item.id in counted and item.weight}
    assert weights and all(
        (weight == pytest.approx(counted[name], abs=1e-3)) is not learnt for name, weight in weights.items()
    )


def test_rules_of_ones_own_weigh_as_they_say(tmp_path: Path) -> None:
    (tmp_path / "kv-cache").mkdir()
    text = RULES["kv-demand-exceeds-pool"].path.read_text("utf-8")
    (tmp_path / "kv-cache" / "kv-demand-exceeds-pool.toml").write_text(text, "utf-8")
    with diagnose.analyze(DEMO, diagnose.Options(rules=tmp_path)) as analysis:
        found = {item.cause: item for item in analysis.report.diagnoses}
    counted = {item.id: weight_of(item, True) for item in RULES["kv-demand-exceeds-pool"].evidence}
    own = [item for item in found["kv-demand-exceeds-pool"].evidence if item.id in counted and item.weight]
    assert own and all(item.weight == pytest.approx(counted[item.id], abs=1e-3) for item in own)
