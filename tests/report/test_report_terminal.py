"""The terminal form: whole reports as snapshots, and what must hold for every report."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from oomdoc.model import LedgerEntry, Report
from oomdoc.report import REPORTS, SUFFIXES
from oomdoc.story import told
from oomdoc.units import GIB
from report_samples import SAMPLES, hostile, kv_demand, parts, undecided, weights_exceed
from snapshot import check

SNAPSHOTS = Path(__file__).parent / "snapshots"
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
PASTED = re.compile(
    r" *(--|args: |command: |extraArgs: |\(leave out|[A-Z_]+=|kubectl |curl |nvidia-smi )|oomdoc (show|explain) "
)


def render(report: Report, **options: object) -> str:
    return REPORTS["terminal"](report, **options)


@pytest.mark.parametrize("width", [80, 160])
@pytest.mark.parametrize("name", SAMPLES)
def test_whole_report_as_accepted(name: str, width: int) -> None:
    check(SNAPSHOTS / f"{name}.terminal-{width}.txt", render(SAMPLES[name](), width=width))


def test_whole_report_in_colour_as_accepted() -> None:
    check(SNAPSHOTS / "kv-demand.terminal-80.ansi", render(kv_demand(), width=80, color=True))


def test_what_nobody_told_apart_is_named_by_what_it_is() -> None:
    """A message of torch knows neither weights nor pool: what is left of its sum is both, and no riddle."""
    report = kv_demand()
    known = parts(non_torch=2.0, unexplained=77.0, free=1.0)
    start = report.ledger[0].engine
    entry = LedgerEntry(start, 0, "GPU 0", 80 * GIB, known, None, None, ("vllm.log:1",), moment="failure")
    alone = replace(report, ledger=(entry,))
    for form in ("terminal", "markdown", "html"):
        page = REPORTS[form](alone, width=160)
        assert "not told apart" in page, form
        assert not re.search(r"(?<![-\w])unexplained(?![-\w])", re.sub(r"(?s)<(script|style)\b.*?</\1>", "", page)), (
            form
        )


@pytest.mark.parametrize("width", [40, 60, 80, 120, 160])
@pytest.mark.parametrize("name", SAMPLES)
def test_no_line_is_wider_than_the_terminal_unless_it_is_there_to_be_pasted(name: str, width: int) -> None:
    for line in render(SAMPLES[name](), width=width).splitlines():
        assert cell_len(line) <= width or PASTED.match(line), line


@pytest.mark.parametrize("name", SAMPLES)
def test_colour_adds_escapes_and_nothing_but_them(name: str) -> None:
    plain = render(SAMPLES[name](), width=100)
    colored = render(SAMPLES[name](), width=100, color=True)
    assert "\x1b" not in plain
    assert "\x1b[" in colored
    without = re.sub(r"\x1b\[[0-9;]*m", "", colored)
    squeezed = [" ".join(text.replace("`", "").split()) for text in (plain, without)]
    assert squeezed[0] == squeezed[1]


@pytest.mark.parametrize("name", SAMPLES)
def test_the_same_report_gives_the_same_bytes(name: str) -> None:
    assert render(SAMPLES[name](), width=90) == render(SAMPLES[name](), width=90)


@pytest.mark.parametrize("color", [False, True])
def test_hostile_text_moves_nothing_and_colours_nothing(color: bool) -> None:
    text = render(hostile(), width=100, color=color)
    harmless = re.sub(r"\x1b\[[0-9;]*m", "", text) if color else text
    assert not CONTROL.search(harmless)
    assert "]8;;" not in text  # no hyperlink made of markup
    assert "[red]" in harmless  # markup stays text
    assert "[/]" in harmless
    if color:  # only the styles of the report itself: no blinking, no bright red background of the evidence
        assert set(re.findall(r"\x1b\[([0-9;]*)m", text)) <= set(re.findall(r"\x1b\[([0-9;]*)m", _all_styles()))


def _all_styles() -> str:
    return "".join(render(sample(), color=True) for name, sample in SAMPLES.items() if name != "hostile")


def test_a_flag_from_a_bundle_cannot_leave_its_quotes() -> None:
    line = next(line for line in render(hostile(), width=100).splitlines() if "rm -rf" in line)
    assert line.strip().startswith("--model '$(rm -rf /); ")


def answers(text: str) -> dict[str, str]:
    """The first screen: what stands beside each question, later lines joined to it."""
    found: dict[str, str] = {}
    question = ""
    for line in text.split("\n\n")[0].splitlines()[1:]:
        if line[0] != " ":
            question = line[:16].strip()
        found[question] = f"{found.get(question, '')} {line[16:].strip()}".strip()
    return found


def test_the_first_screen_answers_in_the_order_of_the_questions() -> None:
    text = render(kv_demand(), width=100)
    assert text.startswith("VERY LIKELY (93%)  Live traffic needs more KV cache than the pool holds\n")
    said = answers(text)
    assert list(said) == ["What ran out", "Where", "When", "Why", "Who", "What it cost", "How sure", "What to change", "Bundle"]  # fmt: skip
    assert said["What ran out"] == "the KV cache pool"
    assert said["Where"] == "all 4 ranks (0 to 3)"
    assert said["Who"].startswith("`research` sends 17% of the requests and 66% of the tokens")
    assert "up to 612,404 tokens were in flight, each request counted in full; the pool stores 395,184" in said["Why"]
    assert (
        said["How sure"].startswith("12% before any evidence, ×21, ×5.2, ×1.9, ÷1.6 = ") or "= 93%" in said["How sure"]
    )
    assert said["What to change"] == "Lower `--max-num-seqs` from 256 to 49 --max-num-seqs 49"


@pytest.mark.parametrize("name", SAMPLES)
def test_the_short_form_is_two_screens_and_all_of_it_is_more(name: str) -> None:
    short, whole = render(SAMPLES[name](), width=80), render(SAMPLES[name](), width=80, everything=True)
    assert len(short.splitlines()) <= 100
    assert len(whole.splitlines()) > len(short.splitlines())
    assert "--all shows" in short and "--all shows" not in whole


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("healthy", "HEALTHY (97%)"),
        ("not-memory", "NOT A MEMORY FAILURE (91%)"),
        ("undecided", "UNDECIDED"),
        ("weights-exceed", "ALMOST CERTAIN (98%)"),
    ],
)
def test_each_verdict_is_worded(name: str, words: str) -> None:
    assert render(SAMPLES[name](), width=100).startswith(words)


def test_undecided_with_nothing_to_say_says_so() -> None:
    text = render(told(replace(undecided(), diagnoses=(), incidents=(), collect_next=())), width=100)
    assert text.startswith("UNDECIDED  Nothing in this bundle speaks about memory, for or against")


def test_top_chooses_how_many_causes_are_shown() -> None:
    few, many = (render(kv_demand(), top=number, everything=True) for number in (1, 10))
    assert "gpu-shared" not in few
    assert "3 further causes, 6% or less" in few
    assert "gpu-shared" in many


def test_ranks_that_look_alike_share_a_bar_and_others_do_not() -> None:
    lines = render(kv_demand(), width=80).splitlines()
    assert [line[:10] for line in lines if line.startswith("  rank")] == ["  rank 0  ", "  rank 1–3"]
    entries = tuple(
        LedgerEntry("e1", rank, None, 80 * GIB, parts(weights=30.0 + 5 * rank, free=50.0 - 5 * rank), None, None, ())
        for rank in range(4)
    )
    bars = [
        line
        for line in render(replace(kv_demand(), ledger=entries), width=80).splitlines()
        if line.startswith("  rank")
    ]
    assert len(bars) == 4
    assert len({len(bar) for bar in bars}) == 1


def test_an_unknown_part_is_named_and_not_drawn_as_zero() -> None:
    text = render(weights_exceed(), width=80, everything=True)
    assert "not known: KV pool, CUDA graphs, activations" in text
    assert "KV pool 0.00" not in text


def test_parts_beyond_the_device_still_fit_the_bar() -> None:
    entry = LedgerEntry("e1", 0, None, 24 * GIB, parts(weights=20.0, kv_pool=9.0, unexplained=-5.0), None, None, ())
    bar = next(
        line
        for line in render(replace(weights_exceed(), ledger=(entry,)), width=80).splitlines()
        if line.startswith("  rank")
    )
    assert cell_len(bar) <= 80
    assert "█" in bar and "▓" in bar


def test_every_form_is_registered_under_a_suffix() -> None:
    assert set(REPORTS) - {"brief"} <= set(SUFFIXES.values())  # a chat takes no file


# --- what happened when


def test_the_timeline_draws_readings_over_their_moments() -> None:
    text = render(kv_demand(), width=80)
    lines = text.split("What happened when")[1].splitlines()
    pool, waiting, marks = lines[1], lines[2], lines[4]
    assert pool.startswith("  KV pool in use    ▁") and pool.endswith("█  100%")
    assert waiting.endswith("█  184")
    assert lines[3].endswith("70.00 GiB of 79.00 GiB")
    assert re.search("▇  █  70", lines[3])  # the gap stays a gap
    assert pool[marks.index("F")] == "█" and waiting[marks.index("F") - 2] == "▁"  # each letter below its moment
    assert lines[5].strip() == "R ready, F failure"  # of moments in one cell the gravest is told


def test_a_bundle_without_times_has_no_timeline() -> None:
    assert "What happened when" not in render(undecided())
