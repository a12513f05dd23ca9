"""Weights that were fitted all at once: where they are used, that none changes sides, and that their arithmetic is the one shown."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from oomdoc import diagnose
from oomdoc.judge.fitted import Fitted, shipped
from oomdoc.judge.rules import load_rules
from oomdoc.judge.weigh import Answer, log_odds, rank, tally, weight_of
from oomdoc.model import FINEST

RULES = {rule.id: rule for rule in load_rules()[0]}
DEMO = Path(__file__).parents[1] / "sample_logs" / "kv-demand-long-chats"


def test_every_fitted_weight_is_of_a_sign_and_on_its_side() -> None:
    fitted = shipped()
    assert fitted.starts.keys() == RULES.keys() and fitted.bundles > 2_000
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
    fitted = Fitted(1, {rule.id: -1.5}, {rule.id: {"pool-pinned": (0.75, None)}})
    found = tally(rule, answers, None, fitted)
    assert (found.start, found.weights["pool-pinned"], found.weights["queue-at-full-pool"]) == (-1.5, 0.75, 0.0)
    assert found.odds == pytest.approx(-0.75)
    # what was not fitted keeps what was counted, and a rule that was not fitted its prior
    assert tally(rule, answers, None, Fitted(1, {rule.id: -1.5}, {})).odds == pytest.approx(-1.5 + weight_of(pinned, True))  # fmt: skip
    assert tally(rule, answers, None, Fitted(1, {}, {})).odds == tally(rule, answers).odds
    assert tally(rule, answers).odds == pytest.approx(log_odds(rule.prior) + weight_of(pinned, True))


def test_a_share_among_rivals_is_the_probability() -> None:
    one, two = RULES["healthy"], RULES["not-memory"]
    fitted = Fitted(1, {one.id: 1.0, two.id: 1.0}, {})
    silent = {rule.id: {item.id: Answer(None, {}) for item in rule.evidence} for rule in (one, two)}
    ranked = rank([tally(rule, silent[rule.id], None, fitted) for rule in (one, two)], lambda sql: None)
    part, nothing = math.exp(1 / 0.85), math.exp(-1 / 0.85)
    assert [each.probability for each in ranked] == [round(part / (2 * part + nothing), 4)] * 2
    assert ranked[0].own_probability == ranked[0].prior == round(1 / (1 + math.exp(-1)), 4)


@pytest.mark.parametrize("learnt", [True, False])
def test_the_arithmetic_that_is_shown_is_the_one_that_is_done(learnt: bool) -> None:
    with diagnose.analyze(DEMO, diagnose.Options(wording=learnt)) as analysis:
        first = analysis.report.diagnoses[0]
        total = log_odds(first.prior) + sum(item.weight for item in (*first.evidence, *first.against))
    assert first.own_probability == pytest.approx(min(FINEST, 1 / (1 + math.exp(-total))), abs=2e-3)
    assert (first.prior == RULES[first.cause].prior) is not learnt


def test_rules_of_ones_own_weigh_as_they_say(tmp_path: Path) -> None:
    (tmp_path / "kv-cache").mkdir()
    text = RULES["kv-demand-exceeds-pool"].path.read_text("utf-8")
    (tmp_path / "kv-cache" / "kv-demand-exceeds-pool.toml").write_text(text, "utf-8")
    with diagnose.analyze(DEMO, diagnose.Options(rules=tmp_path)) as analysis:
        found = {item.cause: item for item in analysis.report.diagnoses}
    assert found["kv-demand-exceeds-pool"].prior == RULES["kv-demand-exceeds-pool"].prior
    assert found["healthy"].prior == round(1 / (1 + math.exp(-shipped().starts["healthy"])), 4)
