"""Two tables with one header in one text: what stands above each tells the series apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from oomdoc.ingest import forms
from oomdoc.intake.scan import Chunk
from verdicts import analysed


def _table(first: float, step: float, cut: str = "  ") -> str:
    rows = [["hour", "rss_gib", "requests"], *([hour, round(first + step * hour, 1), 4000 * hour] for hour in range(7))]
    return "\n".join(cut.join(map(str, row)) for row in rows)


def _variants(text: str) -> set[str | None]:
    batches = forms.read("any", [Chunk(text.encode(), 1, True)])
    return {variant for batch in batches if batch.table == "process_memory" for variant in batch.columns["variant"]}


@pytest.mark.parametrize(
    ("new", "old", "told"),
    [
        ("# 0.12.0, 4 workers", "# 0.11.2, 4 workers", {"0.12.0", "0.11.2"}),
        ("# release 0.12.0, 4 workers", "# release 0.11.2, 4 workers", {"release 0.12.0", "release 0.11.2"}),
        ("With prefix caching:", "Without prefix caching:", {"With prefix caching", "Without prefix caching"}),
        ("## node-a", "## node-b", {"node-a", "node-b"}),
        ("Monday", "Tuesday", None),  # one server, told day by day
        ("2027-02-03", "2027-02-04", None),
        ("## node-a", "## node-a", None),
    ],
)
def test_the_heading_is_the_variant(new: str, old: str, told: set[str] | None) -> None:
    text = f"{new}\n{_table(9, 2)}\n\n{old}\n{_table(9, 0)}\n"
    assert _variants(text) == (told or {None})


def test_a_list_that_is_printed_again_has_no_variant() -> None:
    text = "\n".join(
        f"sample {i}\npid  name  rss_mib\n11  engine  {900 + i}\n12  worker  {500 + i}\n" for i in range(4)
    )
    assert _variants(text) <= {None}


TICKET = """Memory of the engine core (vLLM 0.12.0, Qwen3-8B on an L40S) after the upgrade, same replay, same flags.

{above_new}
{new}

{above_old}
{old}

We restart it at night.
"""


def _ticket(above_new: str, above_old: str, old_step: float) -> str:
    return TICKET.format(above_new=above_new, above_old=above_old, new=_table(9, 2.1), old=_table(9, old_step))


def _signs(folder: Path) -> tuple[str, dict[str, str]]:
    with analysed(str(folder)) as analysis:
        best = analysis.report.diagnoses[0]
        return best.cause, {item.id: item.says for item in best.evidence}


def test_a_release_that_stays_beside_one_that_climbs(tmp_path: Path) -> None:
    (tmp_path / "ticket.md").write_text(_ticket("### build 0.12.0", "### build 0.11.2", 0.01))
    cause, signs = _signs(tmp_path)
    assert cause == "memory-leak"
    assert "build 0.12.0" in signs["control-stays-flat"] and "build 0.11.2" in signs["control-stays-flat"]


def test_where_both_climb_there_is_no_control(tmp_path: Path) -> None:
    (tmp_path / "ticket.md").write_text(_ticket("### build 0.12.0", "### build 0.11.2", 2.0))
    assert "control-stays-flat" not in _signs(tmp_path)[1]


def test_a_header_of_columns_far_apart_is_not_cut_at_single_blanks() -> None:
    text = """                       req/s   prompt tok  TTFT p50   TTFT p90
14:00  LR, 4 replicas   1.53    3011        2.61 s     4.40 s
15:00  A: 1 replica     1.02    2987        5.02 s     9.75 s
16:00  B: hash, 4       1.60    3006        0.52 s     0.94 s
"""
    batches = forms.read("any", [Chunk(text.encode(), 1, True)])
    figures = [value for batch in batches if batch.table == "trial_figure" for value in batch.columns["value"]]
    assert not {2987.0, 3006.0, 3011.0} & set(figures), "tokens of a prompt are no seconds"
