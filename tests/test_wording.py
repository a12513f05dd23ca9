"""The words of a bundle: which are heard, what they weigh, how far they reach, and that signs stand without them."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import oomdoc
from oomdoc.evidence.words import PART_BYTES, words_in
from oomdoc.judge import wording
from oomdoc.judge.rules import load_rules
from oomdoc.judge.weigh import Answer, diagnose, tally, weight_of
from oomdoc.judge.wording import FEWEST, MOST, Model, Wording, heard, shipped, vocabulary
from verdicts import UP, minute

SAMPLES = Path(__file__).parents[1] / "sample_logs"
COMMON = ["alpha", "bravo", "carol", "delta", "eagle", "frost", "giant", "hotel", "igloo", "joker", "kayak", "lemon"]
SMALL = Model(
    100,
    ("leak", "probe"),
    (0.0, 0.0),
    (math.log(0.5), math.log(0.5)),
    {**dict.fromkeys(COMMON, (0, 0)), "restart": (-100, 100), "growth": (300, -300), "said:restart": (0, 50)},
)


def test_enough_known_words_are_needed() -> None:
    assert SMALL.weigh([*COMMON[:-1]]) == {}
    assert len(COMMON) == FEWEST and set(SMALL.weigh(COMMON)) == {"leak", "probe"}


def test_log_odds_are_those_against_the_usual_share() -> None:
    told = SMALL.weigh([*COMMON, "restart"])
    share = math.exp(1) / (math.exp(1) + math.exp(-1))
    assert told["probe"].weight == pytest.approx(math.log(share / 0.5))
    assert told["probe"].words == ("restart",)
    assert SMALL.weigh(COMMON)["leak"].weight == pytest.approx(0.0)


def test_words_reach_so_far_and_no_further() -> None:
    told = SMALL.weigh([*COMMON, "growth"])
    assert told["probe"].weight == -MOST and told["leak"].weight < MOST
    assert told["leak"].weight == pytest.approx(math.log(2), abs=0.01)


def test_what_a_person_says_is_a_word_of_its_own() -> None:
    printed, said = (
        SMALL.weigh({*COMMON, *heard(kind, ["restart"])})["probe"].weight for kind in ("vllm-log", "notes")
    )
    assert said > printed
    assert SMALL.weigh({*COMMON, *heard("notes", ["restart"])})["probe"].words == ("restart",)


def test_words_that_nobody_knows_say_nothing() -> None:
    assert SMALL.weigh([*COMMON, "restart", "zebra", "yellow"]) == SMALL.weigh([*COMMON, "restart"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"--enable-prefix-caching", {"enable_prefix_caching"}),
        (b"vllm:kv_cache_usage_perc 0.9", {"vllm", "kv_cache_usage_perc"}),
        (b"pod chat-7c9f-x on gpu03", {"pod", "on"}),
        (b"OOMKilled a b", {"oomkilled"}),
        ("später Größe".encode(), {"sp", "ter", "gr"}),
        (b"prompt: 'the card leaks', params: x\nnext line", {"next", "line"}),
        (b'{"messages": [{"role": "user", "content": "OOM"}]}\n', set()),
        (b"prompt tokens: 55", {"prompt", "tokens"}),
        (b"\xff\x00\x01", set()),
    ],
)
def test_words_of_a_text(text: bytes, words: set[str]) -> None:
    assert words_in(text) == words


def test_the_shipped_model_knows_the_causes_and_is_finite() -> None:
    model = shipped()
    assert set(model.causes) == {rule.id for rule in load_rules(tests=False)[0]}
    assert sum(math.exp(each) for each in model.usual) == pytest.approx(1, abs=0.01)
    assert all(len(weights) == len(model.causes) for weights in model.words.values())
    assert 1_000 < len(vocabulary()) <= len(model.words)
    assert not any(character.isdigit() for word in model.words for character in word)


def test_the_factor_is_a_line_of_the_report_and_part_of_the_sum() -> None:
    rule = next(rule for rule in load_rules(tests=False)[0] if rule.id == "memory-leak")
    nothing = {item.id: Answer(None, {}) for item in rule.evidence}
    plain = tally(rule, nothing)
    for weight in (1.2, -0.7):
        finding = tally(rule, nothing, Wording(weight, ("growth", "night")))
        assert finding.odds == pytest.approx(plain.odds + weight)
        told = diagnose(finding, lambda sql: None)
        (line,) = told.evidence if weight > 0 else told.against
        assert (line.id, line.weight) == (wording.ID, weight) and "`growth`, `night`" in line.says
    assert diagnose(plain, lambda sql: None).evidence == ()


def test_a_start_and_an_end_are_heard_and_the_middle_is_not(tmp_path: Path) -> None:
    filler = b"1234567890\n" * (PART_BYTES // 5)
    (tmp_path / "a.log").write_bytes(b"begin probe\n" + filler + b"kubelet\n" + filler + b"eviction end\n")
    with oomdoc.analyze(tmp_path) as analysis:
        ((words,),) = analysis.sql("SELECT words FROM source")[1]
    assert {"probe", "eviction"} <= set(words.split()) and "kubelet" not in words.split()
    assert "kubelet" in vocabulary()


def test_without_words_the_signs_judge_alone() -> None:
    with (
        oomdoc.analyze(SAMPLES / "graph-capture-on-24gb") as both,
        oomdoc.analyze(SAMPLES / "graph-capture-on-24gb", oomdoc.Options(wording=False)) as signs,
    ):
        assert both.wording and not signs.wording
        assert both.answers == signs.answers
        told = [
            {
                item.cause: {piece.id: piece.weight for piece in (*item.evidence, *item.against)}
                for item in each.report.diagnoses
            }
            for each in (both, signs)
        ]
    rules = {rule.id: rule for rule in load_rules(tests=False)[0]}
    for cause, weights in told[0].items():
        assert weights.pop(wording.ID) == pytest.approx(both.wording[cause], abs=1e-4)
        judged = {item.id: item for item in rules[cause].evidence}
        assert {name: weight for name, weight in told[1][cause].items() if weight} == {
            name: pytest.approx(weight_of(judged[name], signs.answers[cause][name]), abs=1e-4)
            for name, weight in told[1][cause].items()
            if weight
        }


def test_a_rule_of_ones_own_is_weighed_without_words(tmp_path: Path) -> None:
    place = tmp_path / "rules" / "host"
    place.mkdir(parents=True)
    (place / "own-cause.toml").write_text(
        'id = "own-cause"\ntitle = "Ours"\nsummary = "Ours."\nprior = 0.05\n'
        '[[evidence]]\nid = "seen"\nsays = "it is seen"\nsql = "SELECT true AS holds"\np_cause = 0.9\np_other = 0.1\n'
    )
    with oomdoc.analyze(SAMPLES / "graph-capture-on-24gb", oomdoc.Options(rules=tmp_path / "rules")) as analysis:
        own = next(item for item in analysis.report.diagnoses if item.cause == "own-cause")
    assert [piece.id for piece in own.evidence] == ["seen"] and own.against == ()


def test_only_the_gravest_incident_hears_them(tmp_path: Path) -> None:
    for name in ("kv-demand-long-chats", "graph-capture-on-24gb"):
        (tmp_path / f"{name}.log").write_bytes((SAMPLES / name / "vllm.log").read_bytes())
    with oomdoc.analyze(tmp_path) as analysis:
        told = [f'"{wording.ID}"' in json.dumps(each) for each in analysis.to_dict()["incidents"] if each["diagnoses"]]
    assert sorted(told) == [False, True]


OTHER = (
    "INFO 03-01 01:00:02 [core.py:58] Initializing a V1 LLM engine (v0.12.0) with config: model='acme/tiny-embed', dtype=torch.bfloat16\n"
    "ERROR 03-01 01:00:09 [core.py:700] liveness probe failed, kubelet restarted the container\n"
)


@pytest.mark.parametrize(
    ("name", "text", "hears"),
    [
        ("other/vllm.log", OTHER, False),  # a server of another model, the day before
        ("RUNBOOK.md", "# Runbook\n\n## When a probe fires\n\nIf the liveness probe fails, kubelet restarts the pod: raise `failureThreshold`.\n" * 4, False),
        ("note.txt", "Since Monday the liveness probe fails and kubelet restarts it.\n", True),
    ],
)  # fmt: skip
def test_who_is_heard(tmp_path: Path, name: str, text: str, hears: bool) -> None:
    (tmp_path / "vllm.log").write_text(UP + "".join(minute(at, 3, 0, 12.5) for at in range(1, 30)))
    with oomdoc.analyze(tmp_path) as analysis:
        alone = analysis.wording
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    with oomdoc.analyze(tmp_path) as analysis:
        assert (analysis.wording != alone) is hears
        assert alone or not hears
