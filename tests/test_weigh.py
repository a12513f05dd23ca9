"""The arithmetic of a diagnosis, done by hand beside it; sentences that any data may fill; advice only with its numbers."""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import math
import string
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import oomdoc.judge.weigh
from oomdoc.judge.rules import ActionRule, EvidenceRule, ReasonRule, Rule, load_rules
from oomdoc.judge.weigh import (
    ACTION_FROM,
    LEFT_OVER,
    Answer,
    Ask,
    answer,
    log_odds,
    probability,
    rank,
    say,
    shares,
    weigh,
    weight_of,
)
from oomdoc.model import FINEST, Diagnosis

Rows = Mapping[str, Mapping[str, Any] | None]


def item(
    name: str, p_cause: float = 0.9, p_other: float = 0.1, group: str | None = None, says: str = "", unless: str = ""
) -> EvidenceRule:
    """Evidence whose query is its own name."""
    return EvidenceRule(name, says or f"{name} holds", name, p_cause, p_other, group, unless)


def advice(name: str, changes: Mapping[str, Any] | None = None, do: str = "do it", why: str = "because") -> ActionRule:
    """Advice whose query is its own name."""
    return ActionRule(name, do, why, "a cost", "a check", changes or {}, name)


def rule(
    *evidence: EvidenceRule,
    prior: float = 0.1,
    name: str = "a-cause",
    actions: tuple[ActionRule, ...] = (),
    reasons: tuple[str, ...] = (),
) -> Rule:
    """A rule of the parts that matter here."""
    told = tuple(ReasonRule(reason, "", reason) for reason in reasons)
    return Rule(name, "none", "Title", "Summary", prior, evidence, told, actions, (), (), Path("a.toml"))


def bundle(rows: Rows) -> Ask:
    """A bundle that answers a query by its name; what is not listed gives no row."""
    return lambda sql: rows.get(sql)


def holding(*names: str, failing: tuple[str, ...] = ()) -> Ask:
    """A bundle in which some evidence holds, some does not, and the rest is unknown."""
    return bundle({**{name: {"holds": True} for name in names}, **{name: {"holds": False} for name in failing}})


def diagnose(of: Rule, ask: Ask) -> Diagnosis:
    """The one diagnosis of one rule."""
    return oomdoc.judge.weigh.diagnose(weigh(of, ask), ask)


def chance(of: Rule, ask: Ask) -> float:
    """The probability before rounding."""
    return probability(weigh(of, ask).odds)


# ---- by hand


def test_nothing_known_leaves_the_prior() -> None:
    assert chance(rule(item("a"), item("b", 0.02, 0.6), prior=0.12), holding()) == pytest.approx(0.12)


def test_one_item_that_holds() -> None:
    # odds 1 : 9, times 0.9 / 0.1, are 1 : 1
    assert chance(rule(item("a")), holding("a")) == pytest.approx(0.5)


def test_one_item_that_does_not_hold() -> None:
    # odds 1 : 9, times 0.1 / 0.9, are 1 : 81
    assert chance(rule(item("a")), holding(failing=("a",))) == pytest.approx(1 / 82)


def test_several_items_multiply_and_the_unknown_adds_nothing() -> None:
    # 1 : 9 x 0.9/0.1 x (0.5/0.75) x 0.03/0.60 = 1 : 30
    of = rule(item("a"), item("b", 0.5, 0.25), item("c", 0.03, 0.6), item("d", 0.99, 0.01))
    finding = weigh(of, holding("a", "c", failing=("b",)))
    assert finding.odds == pytest.approx(math.log(1 / 30))
    assert finding.weights == pytest.approx({"a": math.log(9), "b": math.log(2 / 3), "c": math.log(1 / 20), "d": 0})
    assert probability(finding.odds) == pytest.approx(1 / 31)


def test_of_a_group_the_strongest_alone_counts() -> None:
    of = rule(item("a", 0.8, 0.1, "g"), item("b", 0.9, 0.1, "g"), item("c", 0.6, 0.3))
    finding = weigh(of, holding("a", "b", "c"))
    assert finding.weights == pytest.approx({"a": 0, "b": math.log(9), "c": math.log(2)})
    assert probability(finding.odds) == pytest.approx(2 / 3)  # 1 : 9 x 9 x 2


def test_of_a_group_the_strongest_may_speak_against() -> None:
    of = rule(item("a", 0.6, 0.3, "g"), item("b", 0.9, 0.1, "g"))
    finding = weigh(of, holding("a", failing=("b",)))
    assert finding.weights == pytest.approx({"a": 0, "b": math.log(1 / 9)})


def test_an_unknown_item_of_a_group_leaves_the_other() -> None:
    of = rule(item("a", 0.6, 0.3, "g"), item("b", 0.9, 0.1, "g"))
    assert weigh(of, holding("a")).weights == pytest.approx({"a": math.log(2), "b": 0})
    assert weigh(of, holding()).weights == {"a": 0, "b": 0}


def test_equal_items_of_a_group_count_once() -> None:
    of = rule(item("a", group="g"), item("b", group="g"))
    assert sorted(weigh(of, holding("a", "b")).weights.values()) == pytest.approx([0, math.log(9)])


def test_groups_are_apart_from_each_other() -> None:
    of = rule(item("a", group="g"), item("b", group="h"))
    assert weigh(of, holding("a", "b")).odds == pytest.approx(math.log(9))  # 1 : 9 x 9 x 9


def test_the_ceiling() -> None:
    of = rule(*(item(name, 0.99, 0.01) for name in "abcdef"))
    assert diagnose(of, holding(*"abcdef")).probability == FINEST == 0.99
    assert chance(of, holding(failing=tuple("abcdef"))) == pytest.approx(0, abs=1e-11)


@pytest.mark.parametrize("odds", [-1e6, -745.2, -40.0, 0.0, 40.0, 709.8, 1e6, math.inf, -math.inf])
def test_no_odds_overflow(odds: float) -> None:
    assert 0 <= probability(odds) <= FINEST


def test_no_row_and_null_are_unknown() -> None:
    assert answer(bundle({}), "q") == Answer(None, {})
    assert answer(bundle({"q": {"holds": None, "n": 3}}), "q") == Answer(None, {"n": 3})
    assert answer(bundle({"q": {"n": 3}}), "q") == Answer(None, {"n": 3})
    assert answer(bundle({"q": {"holds": 1, "n": 3}}), "q") == Answer(True, {"n": 3})


# ---- what a diagnosis holds


def test_support_and_counter_evidence_are_sorted_by_weight() -> None:
    of = rule(
        item("b", 0.6, 0.3),
        item("a", 0.6, 0.3),
        item("c", 0.9, 0.1),
        item("x", 0.05, 0.5),
        item("y", 0.9, 0.3),
        item("z"),
    )
    told = diagnose(of, holding("a", "b", "c", "x", failing=("y",)))
    assert [piece.id for piece in told.evidence] == ["c", "a", "b"]
    assert [piece.id for piece in told.against] == ["x", "y"]
    assert told.unknown == ("z",)
    assert [piece.weight for piece in told.evidence] == [
        round(math.log(9), 4),
        round(math.log(2), 4),
        round(math.log(2), 4),
    ]
    assert all(piece.weight < 0 for piece in told.against)


def test_words_for_what_holds_and_what_does_not() -> None:
    of = rule(
        item("a", says="{n:,} seen", unless="none of {n:,} seen"),
        item("b", says="{n:,} seen"),
        item("c", says="{n:,} seen"),
    )
    told = diagnose(
        of, bundle({"a": {"holds": False, "n": 1234}, "b": {"holds": False, "n": 5}, "c": {"holds": True, "n": None}})
    )
    assert {piece.id: piece.says for piece in (*told.evidence, *told.against)} == {
        "a": "none of 1,234 seen", "b": "not so: 5 seen", "c": "unknown seen",
    }  # fmt: skip


def test_references_and_numbers_of_a_piece() -> None:
    row = {
        "holds": True, "ref": "vllm.log:8", "oom_ref": "vllm.log:9", "refs": ["vllm.log:8", "dmesg.txt:2"], "href": "no", "n": 3, "share": 0.5,
        "flag": True, "text": "x", "nan": math.nan, "none": None, "check_ref": None,
    }  # fmt: skip
    (piece,) = diagnose(rule(item("a")), bundle({"a": row})).evidence
    assert piece.refs == ("vllm.log:8", "vllm.log:9", "dmesg.txt:2")
    assert piece.values == {"n": 3, "share": 0.5}


def test_the_first_reason_that_holds_is_told() -> None:
    of = rule(item("a"), reasons=("one", "two", "three"))
    assert diagnose(of, holding("a", "two", "three", failing=("one",))).reason == "two"
    assert diagnose(of, holding("a")).reason is None


def test_an_unlikely_cause_gives_neither_reason_nor_advice() -> None:
    of = rule(item("a"), prior=0.04, reasons=("why",), actions=(advice("act"),))
    told = diagnose(of, holding("why", "act"))
    assert told.probability < ACTION_FROM and told.reason is None and told.actions == ()
    assert diagnose(of, holding("a", "why", "act")).actions


def test_advice_carries_its_numbers() -> None:
    of = rule(
        item("a"),
        actions=(
            advice(
                "act", {"max_num_seqs": "seqs", "kv_cache_dtype": "fp8"}, do="lower to {seqs}", why="{pool:,} tokens"
            ),
        ),
    )
    (made,) = diagnose(
        of, bundle({"a": {"holds": True}, "act": {"holds": True, "seqs": 25, "pool": 200_000, "now": 256}})
    ).actions
    assert (made.id, made.do, made.why, made.cost, made.verify) == (
        "act",
        "lower to 25",
        "200,000 tokens",
        "a cost",
        "a check",
    )
    assert made.changes == {"max_num_seqs": 25, "kv_cache_dtype": "fp8"}
    assert made.was == {}, "which of two flags was `now` is not told"


def test_the_present_value_of_a_single_change() -> None:
    of = rule(item("a"), actions=(advice("act", {"gpu_memory_utilization": "util"}),))
    (made,) = diagnose(
        of, bundle({"a": {"holds": True}, "act": {"holds": True, "util": 0.8600000001, "now": 0.9}})
    ).actions
    assert (made.changes, made.was) == ({"gpu_memory_utilization": 0.86}, {"gpu_memory_utilization": 0.9})


@pytest.mark.parametrize(
    "row",
    [
        None,
        {"holds": None, "seqs": 25},
        {"holds": False, "seqs": 25},
        {"holds": True, "seqs": None},
    ],
)
def test_advice_without_its_number_is_no_advice(row: Mapping[str, Any] | None) -> None:
    of = rule(item("a"), actions=(advice("act", {"max_num_seqs": "seqs"}), advice("other", {"enforce_eager": True})))
    told = diagnose(of, bundle({"a": {"holds": True}, "act": row, "other": {"holds": True}}))
    assert [made.id for made in told.actions] == ["other"]
    assert told.actions[0].changes == {"enforce_eager": True}


def test_ranking_is_by_odds_and_ties_by_id() -> None:
    rules = [rule(item("a"), name=name) for name in ("m", "z", "b")] + [rule(item("a"), prior=0.2, name="x")]
    ask = holding("a")
    for order in itertools.permutations(rules):
        told = rank([weigh(of, ask) for of in order], ask)
        assert [(diagnosis.rank, diagnosis.cause) for diagnosis in told] == [(1, "x"), (2, "b"), (3, "m"), (4, "z")]


def test_beyond_the_ceiling_the_odds_still_rank() -> None:
    strong = rule(item("a", 0.99, 0.01), item("b", 0.99, 0.01), item("c", 0.99, 0.01), name="z-strong")
    ask = holding("a", "b", "c")
    told = rank([weigh(rule(item("a", 0.999, 0.001), name="a-weaker"), ask), weigh(strong, ask)], ask)
    assert [diagnosis.cause for diagnosis in told] == ["z-strong", "a-weaker"]
    assert [diagnosis.probability for diagnosis in told] == [FINEST, FINEST]


# ---- shares among rivals, by hand

REFERENCES = ({"url": "https://example.com", "backs": "what it says"},)


def test_shares_are_those_of_the_odds_sharpened_beside_something_else() -> None:
    sharp = 0.5
    parts = [math.exp(1.0 / sharp), math.exp(-1.0 / sharp)]
    other = math.exp(-2.0 / sharp)
    assert shares([1.0, -1.0], sharpness=sharp) == pytest.approx([part / (sum(parts) + other) for part in parts])
    assert shares([1.0, -1.0]) == shares([1.0, -1.0], (), 0.5)


def test_something_else_may_be_told_for_one_rival_alone() -> None:
    for_first, for_second = shares([1.0, -1.0], [3.0, None], 1.0)
    whole = math.exp(1.0) + math.exp(-1.0)
    assert for_first == pytest.approx(math.exp(1.0) / (whole + math.exp(3.0)))
    assert for_second == pytest.approx(math.exp(-1.0) / (whole + math.exp(-2.0)))


def test_far_odds_do_not_overflow_and_lone_low_ones_lose_to_something_else() -> None:
    assert shares([1e6, -1e6]) == pytest.approx([1.0, 0.0])
    assert shares([-2.0])[0] == pytest.approx(0.5)


def test_something_else_needs_a_value_for_each_rival() -> None:
    with pytest.raises(ValueError, match="zip"):
        shares([1.0, 2.0], [None])


def test_a_ranked_cause_has_the_share_it_takes_from_rivals_and_its_own_beside_it() -> None:
    unlikely = replace(
        rule(item("a", 0.5, 0.4), prior=0.3, name="leader", actions=(advice("act"),)),
        unseen=-5.0,
        references=REFERENCES,
    )
    ask = bundle({"a": {"holds": True}, "act": {"holds": True, "now": 3}})
    first, second = rank([weigh(rule(item("b"), prior=0.09, name="other"), ask), weigh(unlikely, ask)], ask)
    odds = log_odds(0.3) + math.log(0.5 / 0.4)
    assert (first.cause, first.category, first.title, first.summary, first.prior) == (
        "leader",
        "none",
        "Title",
        "Summary",
        0.3,
    )
    assert first.own_probability == round(probability(odds), 4)
    share = shares([odds, log_odds(0.09)], [-5.0, None])[0]
    assert first.probability == round(LEFT_OVER * share, 4) > first.own_probability
    assert [(act.id, act.when, act.values) for act in first.actions] == [("act", "now", {"now": 3})]
    assert (second.rank, first.references) == (2, REFERENCES)


def test_advice_begins_at_its_probability() -> None:
    at = rule(item("a"), prior=ACTION_FROM, reasons=("why",), actions=(advice("act"),))
    assert diagnose(at, bundle({"why": {"holds": True}, "act": {"holds": True}})).reason == "why"


def test_costs_and_checks_carry_numbers_too() -> None:
    act = replace(advice("act"), cost="costs {n}", verify="see {n}")
    act = replace(act, when="after-load-test", do="set {share}")
    (made,) = diagnose(
        rule(item("a"), prior=0.5, actions=(act,)), bundle({"act": {"holds": True, "n": 7, "share": 0.1 + 0.2}})
    ).actions
    assert (made.cost, made.verify, made.when, made.do) == ("costs 7", "see 7", "after-load-test", "set 0.3")


def test_evidence_without_weight_is_shown_where_it_holds_and_speaks_for_the_cause() -> None:
    """Of a group the weaker face adds nothing and is shown all the same; what is FALSE or speaks against is not."""
    of = rule(
        item("strong", 0.9, 0.1, "g"),
        item("weak", 0.6, 0.4, "g"),
        item("counter", 0.4, 0.6, "g"),
        item("no", 0.9, 0.8, "g"),
        item("last"),
    )
    told = diagnose(of, holding("strong", "weak", "counter", "last", failing=("no",)))
    assert {piece.id for piece in told.evidence} == {"strong", "weak", "last"}
    assert told.against == () and told.unknown == ()


def test_unknown_evidence_hides_nothing_that_comes_after_it() -> None:
    told = diagnose(rule(item("a"), item("b"), item("c")), holding("a", "c"))
    assert ([piece.id for piece in told.evidence], told.unknown) == (["a", "c"], ("b",))


def test_only_columns_named_refs_are_lists_of_places() -> None:
    told = diagnose(
        rule(item("a")), bundle({"a": {"holds": True, "refs": ["x:1", "y:2"], "names": ["p"], "refs_n": 2}})
    )
    assert told.evidence[0].refs == ("x:1", "y:2")


# ---- properties

SHARE = st.floats(0.001, 0.999)
GROUP = st.sampled_from([None, None, "g", "h"])
HOLDS = st.sampled_from([True, False, None])
PIECE = st.tuples(SHARE, SHARE, GROUP, HOLDS)


def _made(prior: float, pieces: list[tuple[float, float, str | None, bool | None]]) -> tuple[Rule, Ask]:
    of = rule(*(item(f"e{place}", a, b, group) for place, (a, b, group, _) in enumerate(pieces)), prior=prior)
    return of, bundle({f"e{place}": {"holds": holds} for place, (*_, holds) in enumerate(pieces)})


@given(SHARE, st.lists(st.tuples(SHARE, SHARE, st.none(), HOLDS), max_size=6))
def test_it_is_bayes(prior: float, pieces: list[tuple[float, float, None, bool | None]]) -> None:
    of, ask = _made(prior, pieces)  # type: ignore[arg-type]
    cause, other = prior, 1 - prior
    for a, b, _, holds in pieces:
        if holds is not None:
            cause, other = cause * (a if holds else 1 - a), other * (b if holds else 1 - b)
    assert chance(of, ask) == pytest.approx(min(FINEST, cause / (cause + other)), rel=1e-6, abs=1e-9)


@given(SHARE, st.lists(PIECE, max_size=6), st.tuples(SHARE, SHARE), GROUP)
def test_evidence_for_it_never_lowers_and_against_it_never_raises(
    prior: float,
    pieces: list[tuple[float, float, str | None, bool | None]],
    shares: tuple[float, float],
    group: str | None,
) -> None:
    low, high = sorted(shares)
    before = weigh(*_made(prior, pieces)).odds
    assert weigh(*_made(prior, [*pieces, (high, low, group, True)])).odds >= before - 1e-9
    assert weigh(*_made(prior, [*pieces, (low, high, group, False)])).odds >= before - 1e-9
    assert weigh(*_made(prior, [*pieces, (low, high, group, True)])).odds <= before + 1e-9
    assert weigh(*_made(prior, [*pieces, (high, low, group, False)])).odds <= before + 1e-9
    assert weigh(*_made(prior, [*pieces, (high, low, group, None)])).odds == pytest.approx(before)


@given(SHARE, st.lists(PIECE, max_size=6))
def test_a_weight_has_the_sign_of_its_shares_or_is_zero(
    prior: float, pieces: list[tuple[float, float, str | None, bool | None]]
) -> None:
    finding = weigh(*_made(prior, pieces))
    for place, (a, b, group, holds) in enumerate(pieces):
        weight = finding.weights[f"e{place}"]
        if holds is None:
            assert weight == 0
        elif weight:
            assert (weight > 0) == ((a > b) == holds)
        elif group is None:
            assert a == pytest.approx(b, rel=1e-9)  # shares that differ in their last bit say nothing
    for group in ("g", "h"):
        assert sum(1 for place, piece in enumerate(pieces) if piece[2] == group and finding.weights[f"e{place}"]) <= 1


@given(SHARE, st.lists(PIECE, max_size=5), st.randoms())
def test_the_order_of_evidence_does_not_matter(
    prior: float, pieces: list[tuple[float, float, str | None, bool | None]], random: Any
) -> None:
    shuffled = list(pieces)
    random.shuffle(shuffled)
    told, other = weigh(*_made(prior, pieces)).odds, weigh(*_made(prior, shuffled)).odds
    ties = any(
        math.isclose(abs(weight_of(x, a[3])), abs(weight_of(y, b[3])))
        for (x, a), (y, b) in itertools.combinations([(item("e", *piece[:3]), piece) for piece in pieces], 2)
        if x.group is not None and x.group == y.group and a[3] is not None and b[3] is not None
    )
    assert ties or told == pytest.approx(other)


@given(SHARE)
def test_odds_and_back(share: float) -> None:
    assert probability(log_odds(share)) == pytest.approx(min(share, FINEST))


@given(st.floats(-50, 50), st.floats(0, 20))
def test_more_odds_are_no_less_probable(odds: float, more: float) -> None:
    assert probability(odds) <= probability(odds + more)


# ---- sentences

SPECS = sorted(
    {
        spec or ""
        for one in load_rules()[0]
        for text in (
            *(part for piece in one.evidence for part in (piece.says, piece.unless)),
            *(part for act in one.actions for part in (act.do, act.why, act.cost, act.verify)),
        )
        for _, name, spec, _ in string.Formatter().parse(text)
        if name is not None
    }
    | {"bytes", "seconds", "d", "s", "x", "e", "%", ",.2f", ">12", "nonsense", "%Y-%m-%d"}
)
VALUE = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**64), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=20), st.binary(max_size=5),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**18), max_value=10**18, places=2), st.datetimes(), st.dates(), st.timedeltas(),
    st.lists(st.integers(), max_size=3), st.dictionaries(st.text(max_size=3), st.integers(), max_size=2), st.uuids(),
)  # fmt: skip


@given(st.sampled_from(SPECS), VALUE)
def test_a_sentence_is_made_of_whatever_the_data_hold(spec: str, value: Any) -> None:
    told = say(f"<{{n:{spec}}}>" if spec else "<{n}>", {"n": value})
    assert told.startswith("<") and told.endswith(">")
    if value is None:
        assert told == "<unknown>"


@pytest.mark.parametrize("spec", ["bytes", "seconds", ".0f", ",", ".1%", ".3g", ""])
@pytest.mark.parametrize(
    "value", [math.inf, -math.inf, math.nan, 10**400, -(10**400)], ids=["inf", "-inf", "nan", "huge", "-huge"]
)
def test_a_sentence_is_made_of_numbers_out_of_all_bounds(value: float, spec: str) -> None:
    assert say(f"{{n:{spec}}}", {"n": value})


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ("{a:bytes} of {b:bytes}", "1.00 GiB of 512 B"),
        ("{c:.0%} and {c:.1%}", "87% and 87.4%"),
        ("{d:seconds}", "12 min 30 s"),
        ("{n:,} {n}", "200,000 200000"),
        ("{absent} {absent:bytes} {absent:,.0f}", "unknown unknown unknown"),
        ("{word:bytes} {word:,} {word:seconds}", "some some some"),
        ("{{literal}}", "{literal}"),
        ("", ""),
    ],
)
def test_sentences(template: str, says: str) -> None:
    assert say(template, {"a": 1 << 30, "b": 512, "c": 0.874, "d": 750, "n": 200_000, "word": "some"}) == says


def test_types_that_duckdb_gives_are_printed() -> None:
    assert (
        say("{x} {y:%Y}", {"x": decimal.Decimal("0.90"), "y": dt.datetime(2026, 11, 20, tzinfo=dt.UTC)}) == "0.90 2026"
    )
