"""The profile for a person, with all it can hold and with next to nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from oomdoc.report.profile import render
from report_samples import healthy, hostile, kv_demand
from snapshot import check

SNAPSHOTS = Path(__file__).parent / "snapshots"


@pytest.mark.parametrize("width", [80, 160])
def test_whole_profile_as_accepted(width: int) -> None:
    text = render(kv_demand(), width=width)
    check(SNAPSHOTS / f"kv-demand.profile-{width}.txt", text)
    assert all(cell_len(line) <= width for line in text.splitlines())


def test_what_is_not_known_is_left_out() -> None:
    text = render(healthy(), width=80)
    assert "Long contexts" not in text
    assert "in flight" not in text
    assert "-" in text  # a percentile that the bundle does not give
    assert render(replace(healthy(), traffic={"requests": 3}), width=80).splitlines()[1] == "3 requests"


def test_hostile_text_is_harmless() -> None:
    assert "\x1b" not in render(hostile(), width=80)
