"""How reports word things: the doctests, and harmless text whatever comes."""

from __future__ import annotations

import doctest
import random
import re
import shlex

import pytest

from oomdoc.report import page, words
from oomdoc.report.words import cells, flag, neutral, neutral_line, paste_lines, spark


@pytest.mark.parametrize("module", [words, page])
def test_examples_in_docstrings(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


def test_neutral_text_holds_no_character_that_a_terminal_acts_on() -> None:
    rng = random.Random(7)
    alphabet = [*range(0x120), *range(0x2000, 0x2070), 0xFEFF, 0xD800, 0xDFFF, 0xE0041, ord("界"), 0x1F600]
    unsafe = re.compile(
        "[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
    )
    for _ in range(2000):
        text = "".join(map(chr, rng.choices(alphabet, k=rng.randrange(30))))
        for clean in (neutral(text), neutral_line(text)):
            assert not unsafe.search(clean)
            assert neutral_line(clean) == clean
        neutral(text).encode("utf-8")


def test_ordinary_text_stays() -> None:
    for text in ("GPU 0 has 79.19 GiB × 2 — 界 é", "שלום a", "[red]not markup[/red]"):
        assert neutral(text) == text


def test_bars_fill_their_width_and_show_every_part() -> None:
    rng = random.Random(3)
    for _ in range(500):
        amounts = [rng.choice([0.0, 0.01, rng.random() * 40]) for _ in range(9)]
        width, whole = rng.randrange(12, 120), rng.choice([0.0, 24.0, 80.0])
        counts = cells(amounts, width, whole)
        assert sum(counts) <= max(width, 9)
        assert all((count > 0) == (amount > 0) for count, amount in zip(counts, amounts, strict=True))
        if any(amounts) and sum(amounts) >= whole:
            assert sum(counts) == width


def test_flags_survive_a_shell() -> None:
    for value in ("plain", "two words", "$(rm -rf /)", "it's", '{"a": [1, 2]}', "a;b|c&d"):
        assert shlex.split(flag("hf_overrides", value)) == ["--hf-overrides", value]
    assert flag("max_num_seqs", None) == "(leave out --max-num-seqs)"
    assert paste_lines({"a": 1, "b": 2.50}, {"a": 3, "b": None}) == [("--a 1", "# was 3"), ("--b 2.5", "")]


def test_spark_never_exceeds_its_width() -> None:
    for length in (0, 1, 7, 80, 1000):
        drawn = spark([float(i % 13) for i in range(length)], 60)
        assert len(drawn) == (min(length, 60) if length > 1 else 0)
